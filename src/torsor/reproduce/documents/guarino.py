"""Guarino Lo Bianco 2009: force rates, the Stanford arm, its accuracy, operation counts and times."""

import math
import timeit
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from torsor import library
from torsor.base.arrays import Array
from torsor.formats import MDHLink
from torsor.identification.logs.sampling import quintic
from torsor.reproduce.documents.drawing import curves, modified_frames, tidy
from torsor.reproduce.equations import guarino
from torsor.reproduce.errata.guarino import PRINTED
from torsor.reproduce.item import ROUNDING, Item, Kind, Outcome, Row, claim, number, numbers, only, same, zero
from torsor.reproduce.samples import modified
from torsor.robot.load import from_mdh
from torsor.robot.robot import Robot

SECONDS = 2.0
QUARTER = math.pi / 2
TABLE_3 = {"initial": "π/2, 0, 0, π/2, π/4, π/2", "final": "π/4, π/2, 2, π/4, π/2, 0"}
ANGLES = {"0": 0.0, "2": 2.0, "π/4": QUARTER / 2, "π/2": QUARTER}
START, END = (np.array([ANGLES[each] for each in printed.split(", ")]) for printed in TABLE_3.values())
PERIODS = (1e-4, 1e-3, 1e-2)
WORDS = {0: "0", 1: "π/2", -1: "-π/2"}
# Table I: alpha_i, d_{i+1} and theta_{i+1}; the joint's variable is printed in place of 0.
GEOMETRY = ((0, "0.412", 0), (-1, "0.154", 0), (1, "0", -1), (0, "0", 0), (-1, "0", 0), (1, "0.263", 0))
MASSES = ("9.29", "5.01", "4.25", "1.08", "0.63", "0.51")  # Table II
CENTRES = (
    ("0", "-0.1105", "-0.0175"), ("0", "0", "-0.1054"), ("0", "0", "-0.6447"),
    ("0", "-0.0054", "-0.0092"), ("0", "-0.0566", "0"), ("0", "0", "0.1554"),
)  # fmt: skip


@cache
def arm() -> Robot:
    """Return the Stanford arm of the library."""
    return library.stanford()


def move(t: Array) -> tuple[Array, Array, Array, Array]:
    """Return q, v, a, j (T, 6) at times (T,) on the quintic between the end points of Table III."""
    s = np.asarray(t)[:, None] / SECONDS
    shape = (
        10 * s**3 - 15 * s**4 + 6 * s**5,
        30 * (s - s**2) ** 2,
        60 * s - 180 * s**2 + 120 * s**3,
        60 - 360 * s * (1 - s),
    )
    q, v, a, j = ((END - START) * each / SECONDS**k for k, each in enumerate(shape))
    return START + q, v, a, j


@cache
def differences(period: float, other: Robot | None = None) -> tuple[Array, Array]:
    """Return times and the difference between force_rate and backward differences of the forces (eq. 36)."""
    robot = arm() if other is None else other
    t = np.linspace(0.0, SECONDS, round(SECONDS / period) + 1)
    tau, rate = robot.force_rate(*move(t))
    return t[1:], np.asarray(np.abs(rate[1:] - np.diff(tau, axis=0) / period))


def _recursion() -> list[Row]:
    data, robot, motion = modified()
    rates, ours = guarino.force_rates(data, *motion), robot.force_rate(*motion)
    w = robot.velocities(*motion[:2])[:, :3]
    wrench, rate = robot.joint_wrench_rates(*motion)
    turned = [rate[:, part] + np.cross(w, wrench[:, part]) for part in (slice(3, 6), slice(0, 3))]  # seen at rest
    return [
        same("τ, eqs. 18, 19", rates.tau, ours[0], unit="N m, N"),
        same("τ', eqs. 20, 21", rates.tau_rate, ours[1], unit="N m/s, N/s"),
        same("f_i, eq. 14", rates.f, wrench[:, 3:], unit="N"),
        same("n_i, eq. 15", rates.n, wrench[:, :3], unit="N m"),
        same("f'_i, eq. 16", rates.f_rate, turned[0], unit="N/s"),
        same("n'_i, eq. 17", rates.n_rate, turned[1], unit="N m/s"),
    ]


def _geometry() -> list[Row]:
    rows = list[Row]()
    for i, (joint, (alpha, d, theta)) in enumerate(zip(arm().joints, GEOMETRY, strict=True)):
        place = joint.placement
        x, z, p = place[:3, 0], place[:3, 2], place[:3, 3]
        ours = p[0], math.atan2(-z[1], z[2]), float(z @ p), math.atan2(-place[0, 1], x[0])
        printed = "0", WORDS[alpha], d, WORDS[theta]
        expected = [0.0, alpha * QUARTER, float(d), theta * QUARTER]
        rows.append(numbers(f"a_{i}, α_{i}, d_{i + 1}, θ_{i + 1}", printed, ours, "m, rad", expected))
    return rows


def _masses() -> list[Row]:
    rows = list[Row]()
    for k, link in enumerate(arm().links):
        rows.append(numbers(f"link {k + 1}: mass, x, y, z", [MASSES[k], *CENTRES[k]], [link.mass, *link.com], "kg, m"))
        columns = (0, 1) if k < 5 else (0, 2)  # which column the copy has lost: the erratum guarino/table-2-column
        moments = np.diag(link.inertia)[list(columns)]
        what = f"link {k + 1}: {' and '.join(('Ixx', 'Iyy', 'Izz')[each] for each in columns)} (two of three)"
        rows.append(numbers(what, [f"{each:g}" for each in PRINTED[k]], moments, "kg m²"))
    return rows


def _ends() -> Outcome:
    q, v, a, j = move(np.array([0.0, SECONDS]))
    t = np.linspace(0.0, SECONDS, 401)
    ends = np.array([0.0, SECONDS]), (q, 0 * q, 0 * q)  # at rest, without accelerations
    rows = [only(f"{name} values, used as printed", printed) for name, printed in TABLE_3.items()]
    rows.append(same("quintic between the ends, at rest without accelerations", move(t)[0], quintic(*ends, t)))
    rows += [zero(f"{name} at the ends", values) for name, values in (("velocities", v), ("accelerations", a))]
    largest, smooth = float(np.abs(j).max()), _end_jerk(7)
    rows.append(claim("jerks at the ends", "0", f"{largest:.3g}", largest == 0, predicted=smooth < ROUNDING))

    def draw(figure: Any) -> None:
        axes = figure.subplots(1, 2)
        for axis, values, title in zip(axes, move(t)[:2], ("positions", "velocities"), strict=True):
            curves(axis, t, values, arm().coordinate_names if title == "velocities" else ("",) * 6)
            unit = "rad, m" if title == "positions" else "rad/s, m/s"
            tidy(axis, f"{title} of the move of Table III", "s", unit, title == "velocities")

    return Outcome(rows, draw, (9.0, 3.6))


def _end_jerk(degree: int) -> float:
    """Return the end jerk of a polynomial from 0 to 1 whose derivatives up to the third are to vanish at both ends.

    The conditions are met in the sense of least squares: exactly, if the polynomial has enough coefficients.
    """
    powers = [np.polynomial.polynomial.polyvander([0.0, 1.0], degree)]
    for k in range(1, 4):  # row: a derivative at an end
        factor = np.array([math.perm(i, k) for i in range(degree + 1)])
        powers.append(np.pad(factor[k:] * powers[0][:, : degree + 1 - k], ((0, 0), (k, 0))))
    conditions, values = np.concatenate(powers), np.array([0.0, 1.0, *np.zeros(6)])
    found = np.linalg.lstsq(conditions, values, rcond=None)[0]
    return float(np.abs(conditions @ found - values).max())


def _accuracy() -> Outcome:
    largest = {period: differences(period)[1].max(axis=0) for period in PERIODS}
    rows = [number("joint 1, every 1e-4 s", "2.462e-2", float(largest[1e-4][0]), "N m/s", explained=0.03)]
    rows.append(only("the same with θ_3 = π/2", f"{_with_other_sign():.4g} N m/s"))
    for period in PERIODS[1:]:
        ratio = largest[period] / largest[period / 10]
        worst = float(np.abs(ratio - 10).max())
        words = f"{ratio.min():.3f} to {ratio.max():.3f} times"
        rows.append(claim(f"all joints, every {period:g} s", "one order of magnitude more", words, worst < 0.5))

    def draw(figure: Any) -> None:
        rates, late, worst = figure.subplots(1, 3)
        t = np.linspace(0.0, SECONDS, 401)
        curves(rates, t, arm().force_rate(*move(t))[1], arm().coordinate_names)
        tidy(rates, "force rates (eqs. 20, 21)", "s", "N m/s, N/s")
        for period in PERIODS:
            times, distance = differences(period)
            late.semilogy(times, distance[:, 0], label=f"every {period:g} s", linewidth=1.0)
        late.set_ylim(1e-6, 30)
        tidy(late, "joint 1: |rate - difference| (eq. 36)", "s", "N m/s")
        for k, name in enumerate(arm().coordinate_names):
            worst.loglog(PERIODS, [largest[each][k] for each in PERIODS], "o-", label=name, markersize=4)
        worst.loglog(1e-4, 2.462e-2, "kx", markersize=10, label="printed, joint 1")
        worst.set_ylim(1e-10, 30)
        tidy(worst, "largest over the move", "sampling period (s)", "N m/s, N/s")

    return Outcome(rows, draw, (13.0, 4.0))


def _with_other_sign() -> float:
    """Return the largest difference for joint 1, sampled every 1e-4 s, with theta_3 = pi/2."""
    links = []
    for k, (link, (alpha, d, theta)) in enumerate(zip(arm().links, GEOMETRY, strict=True)):
        body: dict[str, Any] = {"mass": link.mass, "com": link.com, "inertia": link.inertia}
        kind = "prismatic" if k == 2 else "revolute"
        links.append(MDHLink(k - 1, alpha=alpha * QUARTER, theta=-theta * QUARTER, r=float(d), joint=kind, **body))
    return float(differences(1e-4, from_mdh(links))[1][:, 0].max())


def _general(n: int) -> Robot:
    """Return an arm with n revolute joints and no zero parameters, as counted in the paper."""
    rng, full = np.random.default_rng(0), 0.3 * np.eye(3) + 0.01
    links = []
    for i in range(n):
        alpha, d, r = (0.0, 0.0, 0.3) if i == 0 else rng.uniform(0.3, 1.2, 3)
        links.append(MDHLink(i - 1, alpha=alpha, d=d, r=r, mass=1.0, com=rng.uniform(0.1, 0.2, 3), inertia=full))
    return from_mdh(links, name="general")


def _counts() -> list[Row]:
    n, rows = 6, list[Row]()
    both, alone = (_general(n).operation_count(name, external=True) for name in ("force_rate", "inverse_dynamics"))
    for name, slope, printed, older, ours in (
        ("multiplications", "309N-162", 309 * n - 162, 327 * n - 81, both.multiplications),
        ("additions", "268N-138", 268 * n - 138, 274 * n - 72, both.additions),
    ):
        rows.append(number(f"{name}, {slope} for N = 6", str(printed), ours, explained=0.6))
        rows.append(number(f"{name} of the standard convention", str(older), ours, explained=0.6))
    ratio = both.arithmetic / alone.arithmetic
    rows.append(
        claim("cost of forces and rates relative to forces", "approximately doubles", f"{ratio:.2f}", 1.6 < ratio < 2.6)
    )
    count = arm().operation_count("force_rate")
    rows.append(only("Stanford arm, multiplications and additions", f"{count.multiplications}, {count.additions}"))
    return rows


def _per_call(call: Callable[[], Any], count: int = 200) -> float:
    """Return the smallest of five mean times (s) per call."""
    return min(timeit.repeat(call, repeat=5, number=count)) / count


def _times() -> Outcome:
    robot, state = arm(), [each[0] for each in move(np.array([0.7]))]
    both, alone = _per_call(lambda: robot.force_rate(*state)), _per_call(lambda: robot.inverse_dynamics(*state[:3]))
    q, v, a, j = (np.tile(each, (4096, 1)) for each in state)
    batch = _per_call(lambda: robot.force_rate(q, v, a, j), 1) / 4096
    printed = {"τ and τ'": 5.255e-5, "τ alone": 2.399e-5}
    rows = [
        number("τ and τ'", "5.255e-5", both, "s", explained=math.inf),
        number("τ alone", "2.399e-5", alone, "s", explained=math.inf),
        only("τ and τ', per state in a batch of 4096", f"{batch:.3g} s"),
        claim("suitable for online use", "compatible", "below 1 ms", both < 1e-3),
    ]

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        names = [*printed, "τ and τ', 4096 states"]
        axes.barh(np.arange(2) + 0.2, [1e6 * each for each in printed.values()], 0.36, label="printed: Matlab, 1.4 GHz")
        ours = [1e6 * each for each in (both, alone, batch)]
        axes.barh(np.arange(3) - 0.2, ours, 0.36, label="ours, this computer, from Python")
        axes.set_yticks(range(3), names)
        axes.set_xscale("log")
        axes.invert_yaxis()
        tidy(axes, "time for one state of the Stanford arm", "µs")

    return Outcome(rows, draw, (7.0, 3.0))


SIGNS = (
    "Table II lacks a column (completed from published data), and the tables do not determine all signs: with θ_3 = "
    "π/2 instead of -π/2 the number is closer. A quintic with zero jerk at both ends, as printed, does not exist"
)
COUNTED = "the library folds constants and shares common terms, so it counts fewer operations than the paper"
COMPUTER = "computer and language differ; the paper used Matlab on a 1.4 GHz Pentium in 2009"
QUINTIC = (
    "no quintic has zero velocity, acceleration and jerk at both ends; the values are those with zero acceleration. A "
    "polynomial of degree 7 has zero jerk, as printed"
)
N = Kind.NUMBER
ITEMS = [
    Item("guarino/fig-1", "modified Denavit-Hartenberg frames", Kind.FIGURE, "Fig. 1", modified_frames),
    Item("guarino/force-rates", "forces and their rates", Kind.ALGORITHM, "section III, eqs. 3 to 21", _recursion),
    Item("guarino/table-1", "geometry of the Stanford arm", Kind.TABLE, "Table I", _geometry),
    Item("guarino/table-2", "mass parameters of the Stanford arm", Kind.TABLE, "Table II", _masses),
    Item("guarino/table-3", "end points of the motion", Kind.TABLE, "Table III", _ends, QUINTIC),
    Item("guarino/accuracy", "force rates and backward differences", N, "section V, eq. 36", _accuracy, SIGNS, first=3),
    Item("guarino/operations", "operation counts", N, "section V", _counts, COUNTED),
    Item("guarino/cpu-times", "evaluation times", N, "section V", _times, COMPUTER, seconds=1),
]
