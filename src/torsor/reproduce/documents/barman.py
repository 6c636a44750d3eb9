"""Barman 2020, chapters II and III: the recursion with sensitivities; tables and splines of chapter IV."""

import math
from collections.abc import Sequence

import numpy as np

from torsor import library
from torsor.motion.problems import two_link_time
from torsor.reproduce.documents import sketches
from torsor.reproduce.equations import barman, denavit_hartenberg
from torsor.reproduce.errata.barman import by_complex_steps
from torsor.reproduce.item import Item, Kind, Outcome, Row, claim, numbers, same
from torsor.reproduce.samples import standard
from torsor.robot.robot import Robot

QUARTER = math.pi / 2
LENGTH = 0.4  # of each link (m)


# Chapters II and III


def _transforms() -> Outcome:
    data, robot, (q, _, _), *_ = standard()
    poses, found, T = robot.poses(q), [], np.eye(4)
    for j in range(len(data.m)):
        theta, d = data.theta[j] + data.revolute[j] * q[j], data.d[j] + (not data.revolute[j]) * q[j]
        step = np.eye(4)
        step[:3, :3] = denavit_hartenberg.rotation(theta, data.alpha[j])  # 2.10
        step[:3, 3] = data.a[j] * np.cos(theta), data.a[j] * np.sin(theta), d  # 2.11
        T = T @ step
        found.append(T)
    return Outcome([same("⁰T_j of all links, eqs. 2.3 to 2.11", found, poses)])


def _recursion() -> Outcome:
    data, robot, state, load, external = standard()
    tau, Fp, Tp = denavit_hartenberg.inverse_dynamics(data, *state, load)
    wrenches = robot.joint_wrenches(*state, external=external)
    levers = np.array([barman.Link(data, j, state[0]).Dx for j in range(len(data.m))])
    return Outcome(
        [
            same("τ_j, f_j (3.92, 3.94)", tau, robot.inverse_dynamics(*state, external=external), unit="N m, N"),
            same("internal forces F_jp (3.74, 3.78)", Fp, wrenches[:, 3:], unit="N"),
            same("internal torques τ_jp (3.82 to 3.90)", Tp - np.cross(levers, Fp), wrenches[:, :3], unit="N m"),
        ]
    )


def _sensitivities() -> Outcome:
    data, robot, state, load, _ = standard()
    free = robot.inverse_dynamics_derivatives(*state)
    of_wrenches = robot.joint_wrench_derivatives(*state)
    found, rows = barman.sensitivities(data, *state), list[Row]()
    for name, expected, ours, reaction in zip(("q", "q'", "q''"), found.tau[1:], free, of_wrenches, strict=True):
        rows.append(same(f"∂τ/∂{name} (3.93, 3.95)", expected, ours))
        column = found.Fp[1 + len(rows) // 2]
        rows.append(same(f"∂F/∂{name} (3.75)", column, reaction[:, 3:]))
    loaded = barman.sensitivities(data, *state, load)
    parts = zip((loaded.tau, loaded.Fp, loaded.Tp), by_complex_steps(), strict=True)
    worst = max(float(np.abs(a - b).max()) for part, steps in parts for a, b in zip(part[1:], steps, strict=True))
    rows.append(claim("under a load, to complex steps", "exact", f"{worst:.1e}", worst < 1e-12))
    return Outcome(rows)


# Tables


def _table(robot: Robot, rows: Sequence[tuple[str, str, str, str]]) -> Outcome:
    """Compare a printed table (theta, d, a, alpha, in quarter turns and links) with the poses of the library."""
    size = {"0": 0.0, "L1": LENGTH, "L2": LENGTH, "π/2": QUARTER}
    poses, before, found = robot.poses(robot.neutral()), np.eye(4), list[Row]()
    for k, row in enumerate(rows):
        theta, d, a, alpha = (size[each] for each in row)
        step = np.eye(4)
        step[:3, :3] = denavit_hartenberg.rotation(theta, alpha)
        step[:3, 3] = a * np.cos(theta), a * np.sin(theta), d
        ours = np.linalg.inv(before) @ poses[k]
        held = bool(np.allclose(ours, step, atol=1e-12))
        place = ", ".join(f"{each + 0.0:.4g}" for each in ours[:3, 3])
        found.append(claim(f"link {k + 1}: θ, d, a, α", ", ".join(row), f"the same pose (O at {place})", held))
        before = poses[k]
    return Outcome(found)


def _data(robot: Robot, centres: Sequence[tuple[str, str]], limits: Sequence[str]) -> Outcome:
    rows = list[Row]()
    for k, (link, centre, limit) in enumerate(zip(robot.links, centres, limits, strict=True)):
        printed, ours = ["0.5", "0.1", *centre], [link.mass, link.inertia[2, 2], *link.com[:2]]
        rows.append(numbers(f"link {k + 1}: mass, inertia, centre of mass", printed, ours, "kg, kg m², m"))
        ends = [-robot.effort_limit[k], robot.effort_limit[k]]
        unit = "N" if robot.joints[k].type == "prismatic" else "N m"
        rows.append(numbers(f"joint {k + 1}: bounds", [f"-{limit}", limit], ends, unit))
    return Outcome(rows)


TURNS = (("0", "0", "L1", "0"), ("0", "0", "L2", "0"))
SLIDES = (("π/2", "L1", "0", "π/2"), ("π/2", "0", "L2", "0"))


# Splines


def _splines() -> Outcome:
    """Compare the derivatives of torques by control points and the duration with differences: eqs. 4.13 to 4.15."""
    problem = two_link_time(points=8)
    program, rng = problem.program, np.random.default_rng(2)
    x = problem.guess() + 0.1 * rng.normal(size=program.n)
    way, h = rng.normal(size=program.n), 1e-5
    rows, columns = program.structure
    ours = np.zeros(program.m)
    np.add.at(ours, rows, program.jacobian(x)[1] * way[columns])
    at = [np.asarray(program.value(x + k * h * way)[1]) for k in (-2, -1, 1, 2)]
    found = (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * h)
    return Outcome([same("torques along a direction of control points and T", found, ours, 1e-7)])


A, F, T = Kind.ALGORITHM, Kind.FIGURE, Kind.TABLE
ITEMS = [
    Item("barman/fig-2.1", "free body of a link", F, "Figure 2.1, eqs. 2.1, 2.2", sketches.free_body),
    Item("barman/fig-2.2", "frames of a joint and a centre of mass", F, "Figure 2.2", sketches.standard_frames),
    Item("barman/transforms", "Denavit-Hartenberg transforms", A, "eqs. 2.3 to 2.12", _transforms),
    Item("barman/recursion", "forces and internal forces", A, "chapter III, eqs. 2.1 to 3.94", _recursion),
    Item("barman/sensitivities", "analytical sensitivities", A, "chapter III, eqs. 3.1 to 3.95", _sensitivities),
    Item("barman/table-4.1", "table of the two-link arm", T, "Table 4.1", lambda: _table(library.two_link(), TURNS)),
    Item(
        "barman/table-4.2",
        "parameters of the two-link arm",
        T,
        "Table 4.2",
        lambda: _data(library.two_link(), (("-0.2", "0"), ("-0.2", "0")), ("10", "10")),
    ),
    Item("barman/table-4.3", "table of the slide", T, "Table 4.3", lambda: _table(library.slide_link(), SLIDES)),
    Item(
        "barman/table-4.4",
        "parameters of the slide",
        T,
        "Table 4.4",
        lambda: _data(library.slide_link(), (("0", "-0.2"), ("-0.2", "0")), ("10", "10")),
    ),
    Item(
        "barman/splines",
        "derivatives by control points and duration",
        A,
        "eqs. 4.13 to 4.15",
        _splines,
        seconds=1,
        first=2,
    ),
    Item("barman/fig-4.1", "the two-link arm", F, "Figure 4.1", sketches.two_link_arm),
]
