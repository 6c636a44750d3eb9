"""Guarino Lo Bianco 2009: force rates, the Stanford arm, its accuracy, operation counts and times."""

import itertools
import math
import timeit
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from torsor import library
from torsor.base.arrays import Array
from torsor.compiler.program import OperationCount
from torsor.formats import DHLink, MDHLink
from torsor.reproduce.documents.drawing import curves, modified_frames, tidy
from torsor.reproduce.equations import guarino
from torsor.reproduce.equations.counted import count_as_written
from torsor.reproduce.errata.guarino import PRINTED
from torsor.reproduce.item import (
    BY_DIFFERENCES,
    ROUNDING,
    Compute,
    Outcome,
    Row,
    claim,
    number,
    numbers,
    only,
    same,
    zero,
)
from torsor.reproduce.samples import modified
from torsor.robot.load import from_dh, from_mdh
from torsor.robot.robot import Robot
from torsor.simulation.signals import Signal

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
    tip, (load, load_rate) = _tip_load(robot, *motion[:2])
    loaded, ours_loaded = guarino.force_rates(data, *motion, tip), robot.force_rate(*motion, load, load_rate)
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
        same("τ with a force and a moment at the tip", loaded.tau, ours_loaded[0], unit="N m, N"),
        same("τ' with their rates", loaded.tau_rate, ours_loaded[1], unit="N m/s, N/s"),
    ]


def _tip_load(robot: Robot, q: Array, v: Array) -> tuple[guarino.Tip, list[Array]]:
    """Return a load at the tip and its rate, in the forms of the paper and of the library.

    The paper's load acts on the environment, and its rate is relative to the base. The library's load acts on the
    robot.
    """
    R, p = guarino.placement(0.2, 0.5, 0.7, 0.3)
    tip, w = guarino.Tip(R, p, *10 * np.random.default_rng(7).normal(size=(4, 3))), robot.velocities(q, v)[-1, :3]
    f, n = R @ tip.f, R @ tip.n
    pairs = (n, f), (R @ tip.n_rate - np.cross(w, n), R @ tip.f_rate - np.cross(w, f))
    loads = []
    for moment, force in pairs:
        loads.append(np.zeros((robot.nv, 6)))
        loads[-1][-1] = -np.concatenate([moment + np.cross(p, force), force])
    return tip, loads


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
    t, q, none = np.linspace(0.0, SECONDS, 401), np.array([START, END]), np.zeros((2, 6))
    signal = Signal.joined(np.array([0.0, SECONDS]), [q, none, none])  # at rest, without accelerations
    ours = signal.at(t, 1)[:, 0]
    rows = [same("quintic with zero velocity and acceleration at both ends", move(t)[0], ours)]
    # The samples of the library determine the polynomial of degree 5, and thereby its derivatives.
    path = [np.polynomial.Polynomial.fit(t, column, 5) for column in ours.T]
    v, a, j = (np.array([each.deriv(k)(t[[0, -1]]) for each in path]) for k in (1, 2, 3))
    for name, values in (("velocities", v), ("accelerations", a)):
        rows.append(zero(f"{name} at the ends", values, tolerance=BY_DIFFERENCES))
    largest, smooth = float(np.abs(j).max()), _end_jerk(7)
    rows.append(
        claim("jerks at the ends", "0", f"{largest:.3g}", largest < BY_DIFFERENCES, predicted=smooth < ROUNDING)
    )

    def draw(figure: Any) -> None:
        axes = figure.subplots(1, 2)
        for axis, values, title in zip(axes, move(t)[:2], ("positions", "velocities"), strict=True):
            curves(axis, t, values, arm().coordinate_names if title == "velocities" else ("",) * 6)
            unit = "rad, m" if title == "positions" else "rad/s, m/s"
            tidy(axis, f"{title} of the move of Table III", "s", unit, title == "velocities")

    return Outcome(rows, draw, (9.0, 3.6))


def _end_jerk(degree: int) -> float:
    """Return the end jerk of a polynomial from 0 to 1 that should have zero derivatives up to the third at both ends.

    The conditions are satisfied in the least-squares sense: exactly, if the polynomial has enough coefficients.
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
    predicted = float(differences(1e-4, _other_signs())[1][:, 0].max())
    rows = [number("joint 1, time step 1e-4 s", "2.462e-2", float(largest[1e-4][0]), "N m/s", predicted=predicted)]
    choices = _sign_choices()
    values = list(choices.values())
    words = f"{sum(abs(value - 2.462e-2) <= 5e-6 for value in values)} of {len(values)}; all choices give "
    rows.append(
        only("choices of signs that give the printed number", f"{words}{min(values):.4g} to {max(values):.4g} N m/s")
    )
    for period in PERIODS[1:]:
        ratio = largest[period] / largest[period / 10]
        worst = float(np.abs(ratio - 10).max())
        words = f"{ratio.min():.3f} to {ratio.max():.3f} times"
        rows.append(claim(f"all joints, time step {period:g} s", "one order of magnitude more", words, worst < 0.5))

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


def _other_signs() -> Robot:
    """Return the arm with theta_3 = pi/2 and the centre of mass of link 4 on the other side."""
    links = []
    for k, (link, (alpha, d, theta)) in enumerate(zip(arm().links, GEOMETRY, strict=True)):
        body: dict[str, Any] = {"mass": link.mass, "com": (-1 if k == 3 else 1) * link.com, "inertia": link.inertia}
        kind = "prismatic" if k == 2 else "revolute"
        links.append(MDHLink(k - 1, alpha=alpha * QUARTER, theta=-theta * QUARTER, r=float(d), joint=kind, **body))
    return from_mdh(links)


def _sign_choices() -> dict[tuple[int, ...], float]:
    """Return the difference for joint 1 with each choice of the signs of theta_3 and of the centres of mass.

    The choices are the signs of theta_3 and of six coordinates; those of link 1 have no influence. The difference is
    evaluated at the time at which it is largest with the printed signs.
    """
    times, distance = differences(1e-4)
    late = times[np.argmax(distance[:, 0])]
    (q, v, a, j), (q0, v0, a0, _) = (tuple(each[0] for each in move(np.array([t]))) for t in (late, late - 1e-4))
    alpha, d, theta = np.array([[x * QUARTER, float(y), z * QUARTER] for x, y, z in GEOMETRY]).T
    m, c, inertia = (np.array([getattr(link, name) for link in arm().links]) for name in ("mass", "com", "inertia"))
    places, result = [(i, k) for i in range(1, 6) for k in range(3) if c[i, k]], {}
    data = guarino.Robot(np.arange(6) != 2, np.zeros(6), alpha, theta, d, m, c, inertia, arm().gravity)
    for signs in itertools.product((1, -1), repeat=1 + len(places)):
        centres = c.copy()
        for place, sign in zip(places, signs[1:], strict=True):
            centres[place] *= sign
        other = data._replace(theta=signs[0] * theta, c=centres)
        here, before = guarino.force_rates(other, q, v, a, j), guarino.inverse_dynamics(other, q0, v0, a0)[0]
        result[signs] = float(abs(here.tau_rate[0] - (here.tau[0] - before[0]) / 1e-4))
    return result


LENGTHS = (2, 6, 30)  # numbers of joints of counted arms


def _general(n: int, is_modified: bool = True) -> Robot:
    """Return an arm with n revolute joints and no zero parameters, as counted in the paper."""
    rng, links = np.random.default_rng(0), list[Any]()
    body: dict[str, Any] = {"mass": 1.0, "inertia": 0.3 * np.eye(3) + 0.01}
    for i in range(n):
        is_free = i == (0 if is_modified else n - 1)  # the base frame or the last one, which may be chosen
        alpha, d, r = (0.0, 0.0, 0.3) if is_free else rng.uniform(0.3, 1.2, 3)
        body["com"] = rng.uniform(0.1, 0.2, 3)
        links.append(MDHLink(i - 1, alpha=alpha, d=d, r=r, **body) if is_modified else DHLink(0.0, r, d, alpha, **body))
    return from_mdh(links, name="general") if is_modified else from_dh(links, name="general")


@cache
def as_written(n: int, is_general: bool = False) -> OperationCount:
    """Return the operations of (3) to (21) for n revolute joints, with full vectors and matrices.

    The base is at rest and gravity is parallel to the first axis, so the acceleration of the first link is -g. The load
    is given in frame N. With ``is_general``, the first axis and the frame of the load are arbitrary.
    """
    rng = np.random.default_rng(n)
    R, p, m, c, inertia = (rng.uniform(2, 3, shape) for shape in ((n, 3, 3), (n, 3), n, (n, 3), (n, 3, 3)))
    tip_R, tip_p = rng.uniform(2, 3, (3, 3)), rng.uniform(2, 3, 3)
    if not is_general:
        R[0], tip_R, tip_p = np.eye(3), np.eye(3), np.zeros(3)
    none = np.zeros(n)
    robot = guarino.Robot(np.ones(n, dtype=bool), none, none, none, none, m, c, inertia, np.zeros(3))

    def equations(R: Any, p: Any, tip_R: Any, tip_p: Any, tip: Any, rates: Any, base: Any, z: Any) -> Any:
        load, (qd, qdd, qddd), (a, j) = guarino.Tip(tip_R, tip_p, *tip), rates, base
        return guarino.rates(robot, list(R), list(p), qd, qdd, qddd, load, z=z, base=(a, j))

    full = (rng.uniform(2, 3, shape) for shape in ((4, 3), (3, n), (2, 3), 3))
    return count_as_written(equations, R, p, tip_R, tip_p, *full)


def _counts() -> Outcome:
    rows = list[Row]()
    lines = {"multiplications": ("309N-162", 309, -162), "additions": ("268N-138", 268, -138)}
    for name, (text, slope, offset) in lines.items():
        rows.append(number(f"{name} as written, N = 6", str(6 * slope + offset), getattr(as_written(6), name)))
        held = all(getattr(as_written(n), name) == slope * n + offset for n in range(2, 31, 4))
        counts = ", ".join(str(getattr(as_written(n), name)) for n in LENGTHS)
        rows.append(claim(f"{name} for N = 2 to 30", text, f"{counts} for N = 2, 6, 30", held))
    general = [as_written(n, is_general=True) for n in (2, 3)]
    per_link = [b - a for a, b in zip(*general, strict=True)][:2]
    rows.append(only("per link, base and load in any frame", f"{per_link[0]} and {per_link[1]}"))
    for n in LENGTHS:
        ours, other = (_general(n, kind).operation_count("force_rate", external=True) for kind in (True, False))
        (a, b, *_), (c, d, *_) = ours, other
        words = f"{a} and {b}, standard {c} and {d}"
        rows.append(claim(f"modified convention, N = {n}", "slightly more efficient", words, a < c and b < d))
    free = [_general(6, kind).operation_count("force_rate") for kind in (True, False)]
    words = " and ".join(f"{count.multiplications}, {count.additions}" for count in free)
    rows.append(only("both conventions without loads, N = 6, where the library may move frames", words))
    both, alone = (_general(6).operation_count(name, external=True) for name in ("force_rate", "inverse_dynamics"))
    ratio = both.arithmetic / alone.arithmetic
    rows.append(
        claim(
            "cost of forces and rates, relative to forces alone",
            "approximately doubles",
            f"{ratio:.2f}",
            1.6 < ratio < 2.6,
        )
    )
    count = arm().operation_count("force_rate")
    rows.append(only("Stanford arm, multiplications and additions", f"{count.multiplications}, {count.additions}"))

    def draw(figure: Any) -> None:
        axes, N = figure.subplots(), np.arange(2, 31, 4)
        axes.plot(N, 577 * N - 300, color="0.6", linewidth=4, label="printed, modified convention")
        axes.plot(N, 601 * N - 153, color="0.8", linewidth=4, label="printed, standard convention")
        axes.plot(N, [as_written(int(n)).arithmetic for n in N], "ko", markersize=4, label="counted, (3) to (21)")
        for is_modified, name in ((True, "modified"), (False, "standard")):
            counts = [_general(n, is_modified).operation_count("force_rate", external=True).arithmetic for n in LENGTHS]
            axes.plot(LENGTHS, counts, "s--", markersize=4, label=f"library, {name} convention")
        tidy(axes, "operations of forces and their rates", "joints N", "multiplications and additions")

    return Outcome(rows, draw, (7.0, 4.2))


def _per_call(call: Callable[[], Any], count: int = 200) -> float:
    """Return the smallest of five mean times (s) per call."""
    return min(timeit.repeat(call, repeat=5, number=count)) / count


def _times() -> Outcome:
    robot, state = arm(), [each[0] for each in move(np.array([0.7]))]
    one = _per_call(lambda: robot.force_rate(*state))
    q, v, a, j = (np.tile(each, (4096, 1)) for each in state)
    both, alone = (
        _per_call(call, 1) / 4096
        for call in (lambda: robot.force_rate(q, v, a, j), lambda: robot.inverse_dynamics(q, v, a))
    )
    printed, ratio = {"τ and τ'": 5.255e-5, "τ alone": 2.399e-5}, both / alone
    rows = [
        claim(
            "time of τ and τ', divided by the time of τ",
            f"{5.255 / 2.399:.2f}",
            "between 1.3 and 3.3",
            1.3 < ratio < 3.3,
        ),
        claim("suitable for online use", "compatible", "below 1 ms", one < 1e-3),
    ]

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        axes.barh(np.arange(2) + 0.2, [1e6 * each for each in printed.values()], 0.36, label="printed: Matlab, 1.4 GHz")
        axes.barh(np.arange(2) - 0.2, [1e6 * both, 1e6 * alone], 0.36, label="ours, this computer, 4096 states at once")
        axes.set_yticks(range(2), list(printed))
        axes.set_xscale("log")
        axes.invert_yaxis()
        tidy(axes, f"time per state of the Stanford arm; ratio {ratio:.2f} (printed 2.19)", "µs")

    return Outcome(rows, draw, (7.0, 3.0))


ITEMS: dict[str, Compute] = {
    "guarino/fig-1": modified_frames,
    "guarino/force-rates": _recursion,
    "guarino/table-1": _geometry,
    "guarino/table-2": _masses,
    "guarino/table-3": _ends,
    "guarino/accuracy": _accuracy,
    "guarino/operations": _counts,
    "guarino/cpu-times": _times,
}
