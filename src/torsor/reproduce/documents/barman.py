"""Barman 2020: the recursion with sensitivities (chapters II and III), and tables and splines (chapter IV)."""

import math
from functools import cache, partial
from typing import Any

import numpy as np

from torsor import library, motion
from torsor.base.arrays import Array
from torsor.motion.problems import slide_link, two_link_time
from torsor.reproduce.documents import drawing
from torsor.reproduce.documents.drawing import curve_panel, peaks, snapshots, tidy
from torsor.reproduce.equations import barman
from torsor.reproduce.errata.erratum import derivative
from torsor.reproduce.item import BY_DIFFERENCES, Item, Kind, Outcome, Row, claim, number, numbers, only, same
from torsor.reproduce.samples import standard
from torsor.spatial import make_pose

# Barman 2020, chapter IV: motions of two two-link arms with minimum time, and with time and effort.
QUARTER = math.pi / 2
LENGTH = 0.4  # of each link (m)
SNAPSHOT_TIMES = np.linspace(0.0, 1.0, 11)  # fractions of the duration, in pictures of a motion


# Section 4.1: two revolute joints


@cache
def two_link(points: int = 30) -> Any:
    """Return the motion with a given number of control points per joint."""
    return two_link_time(points=points).solve()


@cache
def bang_bang() -> Any:
    """Return the motion with discontinuous torques, which is the true optimum."""
    return motion.switching(two_link())


def _norms(result: Any) -> Array:
    return np.asarray(np.linalg.norm(result.reactions[..., 3:], axis=-1))


def _time() -> list[Row]:
    result, best = two_link(), bang_bang()
    return [
        number("minimum time T", "0.392", best.T, "s"),
        number("the same, 30 control points", "0.392", result.T, "s"),
        number("Xiang et al. 2009a, 20 control points", "0.393", two_link(20).T, "s"),
        number("Wang et al. 2005, 16 control points", "0.394", two_link(16).T, "s"),
    ]


def _torques() -> Outcome:
    result, best = two_link(), bang_bang()
    first, second = best.switches
    order = "".join("+-"[int(torque < 0)] for torque in best.torques([0.0, *second + 1e-9])[:, 1])
    largest = float(np.abs(result.tau).max())
    rows = [
        claim("link 2: sequence of bounds", "lower, upper, lower (-+-)", order, order == "-+-"),
        _shift("link 1 switches to the lower bound", "just over 0.2 s", 0, first[0], 0.2),
        _shift("link 2 returns to the lower bound", "after 0.25 s", 1, second[1], 0.25),
        claim("torque limits", "±10 N m", f"±{largest:.6g} N m, between nodes", largest < 10 * (1 + 1e-3)),
    ]

    def draw(figure: Any) -> None:
        axes, t = figure.subplots(), np.linspace(0.0, best.T, 2001)
        for k in range(2):
            (line,) = axes.plot(result.times, result.tau[:, k], label=f"joint {k + 1}")
            axes.plot(t, best.torques(t)[:, k], "--", color=line.get_color(), linewidth=0.9)
        tidy(axes, "Figure 4.2: joint torques (dashed: bang-bang)", "s", "N m")

    return Outcome(rows, draw)


def _shift(what: str, printed: str, joint: int, switch: float, at: float) -> Row:
    """Compare the switching time with the lower bound; spline torques switch over a longer time."""
    ends = dict[int, float]()
    for points in (20, 30):  # control points: when the torque is at its lower bound again, within 1 %
        t, tau = two_link(points).times, two_link(points).tau[:, joint]
        ends[points] = float(t[(t > switch) & (tau < -9.9)][0])
    words = ", ".join(f"{end:.4f} s ({points} points)" for points, end in ends.items())
    is_between = at - 0.05 < switch < at < ends[20]
    return claim(what, printed, f"{switch:.4f} s (bang-bang), {words}", False, is_explained=is_between)


def _forces() -> Outcome:
    result = two_link()
    norm = _norms(result)
    count = peaks(norm[:, 0], 0.3)
    above, apart = float(np.mean(norm[:, 0] >= norm[:, 1])), float(abs(norm[-1, 0] / norm[-1, 1] - 1))
    early = result.times < result.T / 3
    high = [norm[early].max(axis=0), norm[~early].max(axis=0)]  # both peaks
    largest = ", ".join(f"{a:.3g} and {b:.3g} N" for a, b in high)
    words = f"{100 * above:.0f} % of the time"
    rows = [
        claim("pattern of the norm of joint 1", "double peak", f"{count} peaks", count == 2),
        claim("joint 1 above joint 2 in the peaks", "yes", largest, all(a > b for a, b in high)),
        claim("both merge near the optimal time", "yes", f"{100 * apart:.1f} % apart at the end", apart < 0.1),
        claim("joint 1 above joint 2 before that", "yes", words, above > 0.95, is_explained=True),
    ]
    title = "Figure 4.3: norm of the internal joint forces"
    return Outcome(rows, curve_panel(title, "N", result.times, norm, ("joint 1", "joint 2")))


def _path() -> Outcome:
    result = two_link()
    angles = np.cumsum(result.at(SNAPSHOT_TIMES * result.T).q, axis=-1)
    x, y = (np.insert(np.cumsum(LENGTH * of(angles), axis=-1), 0, 0.0, axis=-1) for of in (np.cos, np.sin))
    rows = [
        numbers("q(0)", ["0.0", "-2.0"], result.q[0].round(9), "rad"),
        numbers("q(T)", ["1.0", "-1.0"], result.q[-1].round(9), "rad"),
    ]
    labels = "Figure 4.4: motion, dark to light", "m", "m"
    return Outcome(rows, lambda figure: snapshots(figure, x, y, SNAPSHOT_TIMES, *labels), (5.0, 5.0))


# Section 4.2: a slide and a revolute joint


@cache
def slide(variant: str = "printed") -> Any:
    """Return the motion for one interpretation of the problem."""
    return slide_link(points=16, variant=variant).solve(tolerance=1e-9)


def _duration() -> Row:
    return number("minimum travel time T", "0.5585", slide().T, "s", explained=0.17)


def _slide_time() -> list[Row]:
    found = slide()
    rows = [_duration()]
    for variant, words in (("reordered", "q1: 0.1 to 0.6, q2: π/4 to -π/4"), ("without-offset", "θ_2 = q_2")):
        rows.append(number(f"the same, {words}", "0.5585", slide(variant).T, "s", explained=0.06))
    rows.append(only("objective of eq. 4.18", f"{found.objective:.6f}"))
    rows.append(only("T from random initial guesses", f"{', '.join(f'{restart:.5f}' for restart in _restarts())} s"))
    return rows


def _restarts(count: int = 4) -> list[float]:
    """Return the optimal times of the same problem from random initial guesses."""
    problem, rng = slide_link(points=12), np.random.default_rng(3)
    lower, upper = problem.program.lower, problem.program.upper
    starts = (np.clip(problem.guess() + 0.5 * rng.normal(size=problem.program.n), lower, upper) for _ in range(count))
    return [problem.solve(start=start).T for start in starts]


def _turns(values: Array) -> str:
    """Return the signs of the two extrema of a curve, in order."""
    low, high = int(np.argmin(values)), int(np.argmax(values))
    return "positive, then negative" if high < low else "negative, then positive"


def _slide_forces() -> Outcome:
    result = slide()
    force, torque = _turns(result.tau[:, 0]), _turns(result.tau[:, 1])
    title, names = "Figure 4.5: actuating force and torque", ("force f_1 (N)", "torque τ_2 (N m)")
    rows = [
        _duration(),
        claim("peaks of the force f_1", "positive, then negative", force, force.startswith("positive")),
        claim("peaks of the torque τ_2", "negative, then positive", torque, torque.startswith("negative")),
        claim("within", "±10", f"±{np.abs(result.tau).max():.3g}", bool(np.abs(result.tau).max() <= 10)),
    ]
    return Outcome(rows, curve_panel(title, "N, N m", result.times, result.tau, names))


def _slide_reactions() -> Outcome:
    result = slide()
    norm = _norms(result)
    count = [peaks(norm[:, k], 0.05) for k in range(2)]
    below = float(np.mean(norm[:, 1] <= norm[:, 0]))
    words = f"{100 * below:.0f} % of the time"
    rows = [
        _duration(),
        claim("pattern of the norms", "double peak", f"{count[0]} and {count[1]} peaks", min(count) >= 2),
        claim("revolute below prismatic joint", "yes", words, below == 1, is_explained=True),
    ]
    title = "Figure 4.6: norm of the internal joint forces"
    return Outcome(rows, curve_panel(title, "N", result.times, norm, ("prismatic joint", "revolute joint")))


def _slide_path() -> Outcome:
    result = slide()
    poses = library.slide_link().to(device="casadi").poses(result.at(SNAPSHOT_TIMES * result.T).q)
    slider, tip = poses[:, 0, :3, 3], poses[:, 1, :3, 3]
    x = np.stack([0 * slider[:, 2], slider[:, 2], tip[:, 2]], axis=1)
    y = np.stack([0 * slider[:, 1], slider[:, 1], tip[:, 1]], axis=1)
    ends, expected = result.q[[0, -1]].round(9), [QUARTER / 2, -QUARTER / 2]
    rows = [
        _duration(),
        numbers("q(0)", ["0.1", "0.6"], ends[0], "m, rad"),
        claim("q(T)", "π/4, -π/4", f"{ends[1, 0]:.5g}, {ends[1, 1]:.5g}", bool(np.allclose(ends[1], expected))),
        claim("shape", "a translation and a rotation", "both", bool((np.abs(np.ptp(result.q, axis=0)) > 0.1).all())),
    ]
    title = "Figure 4.7: motion trajectory, dark to light"
    labels = title, "z of the base, along the slide (m)", "y of the base (m)"
    return Outcome(rows, lambda figure: snapshots(figure, x, y, SNAPSHOT_TIMES, *labels), (7.0, 4.0))


OTHER = (
    "the printed data have another optimum, which random initial guesses confirm. Reading the four boundary values "
    "as those of q1 and then of q2 comes closest; the thesis does not state which reading was used"
)
SPLINE = (
    "the SNOPT settings and splines of the earlier papers are unknown; their times correspond to about this number "
    "of control points"
)
SHIFTS = (
    "the number of control points is not printed. The true optimum switches earlier, at 0.196 s = T/2 and 0.235 s; "
    "spline torques need time to switch, and the printed times lie within the transitions with 20 points"
)
VALLEYS = (
    "between the peaks, joint 2 carries more. The thesis only describes its figure; the forces are those of the "
    "recursion that item barman/recursion checks"
)
F, N = Kind.FIGURE, Kind.NUMBER
SHORT: dict[str, Any] = {"seconds": 1, "first": 2}
LONG: dict[str, Any] = {"seconds": 2, "first": 4}
ARM_ITEMS = [
    Item("barman/time", "minimum time of the two-link arm", N, "section 4.1.3, eqs. 4.16, 4.17", _time, SPLINE, **LONG),
    Item("barman/fig-4.2", "joint torques", F, "Figure 4.2", _torques, SHIFTS, **LONG),
    Item("barman/fig-4.3", "internal joint forces", F, "Figure 4.3", _forces, VALLEYS, **SHORT),
    Item("barman/fig-4.4", "motion", F, "Figure 4.4", _path, **SHORT),
    Item(
        "barman/slide-time", "travel time of the slide", N, "section 4.2.2, eqs. 4.18, 4.19", _slide_time, OTHER, **LONG
    ),
    Item("barman/fig-4.5", "force and torque of the slide", F, "Figure 4.5", _slide_forces, OTHER, **SHORT),
    Item("barman/fig-4.6", "internal forces of the slide", F, "Figure 4.6", _slide_reactions, OTHER, **SHORT),
    Item("barman/fig-4.7", "motion of the slide", F, "Figure 4.7", _slide_path, OTHER, **SHORT),
]


# Chapters II and III


def _transform(theta: float, d: float, a: float, alpha: float) -> Array:
    """Return the pose of frame j in frame j-1, eqs. 2.10 and 2.11."""
    return make_pose(barman.rotation(theta, alpha), np.array([a * np.cos(theta), a * np.sin(theta), d]))


def _transforms() -> list[Row]:
    data, robot, (q, _, _), *_ = standard()
    poses, found, T = robot.poses(q), [], np.eye(4)
    for j in range(len(data.m)):
        theta, d = data.theta[j] + data.revolute[j] * q[j], data.d[j] + (not data.revolute[j]) * q[j]
        T = T @ _transform(theta, d, data.a[j], data.alpha[j])
        found.append(T)
    return [same("⁰T_j of all links, eqs. 2.3 to 2.11", found, poses)]


def _recursion() -> list[Row]:
    data, robot, state, load, external = standard()
    tau, Fp, Tp = barman.inverse_dynamics(data, *state, load)
    wrenches = robot.joint_wrenches(*state, external=external)
    arms = np.array([barman.Link(data, j, state[0]).Dx for j in range(len(data.m))])
    return [
        same("τ_j, f_j (3.92, 3.94)", tau, robot.inverse_dynamics(*state, external=external), unit="N m, N"),
        same("internal forces F_jp (3.74, 3.78)", Fp, wrenches[:, 3:], unit="N"),
        same("internal torques τ_jp (3.82 to 3.90)", Tp - np.cross(arms, Fp), wrenches[:, :3], unit="N m"),
    ]


def _sensitivities() -> list[Row]:
    data, robot, state, *_ = standard()
    free = robot.derivatives.inverse_dynamics(*state)
    of_wrenches = robot.derivatives.joint_wrenches(*state)
    found, rows = barman.sensitivities(data, *state), list[Row]()
    for name, expected, ours, reaction in zip(("q", "q'", "q''"), found.tau[1:], free, of_wrenches, strict=True):
        rows.append(same(f"∂τ/∂{name} (3.93, 3.95)", expected, ours))
        rows.append(same(f"∂F/∂{name} (3.75)", found.Fp[1 + len(rows) // 2], reaction[:, 3:]))
    loaded = barman.sensitivities(data, *state, standard().load).tau[1:]
    for k, (name, expected) in enumerate(zip(("q", "q'", "q''"), loaded, strict=True)):
        columns = [_loaded(k, unit) for unit in np.eye(len(data.m))]
        rows.append(same(f"∂τ/∂{name} with a load, by differences", expected, np.array(columns).T, BY_DIFFERENCES))
    return rows


def _loaded(k: int, unit: Array) -> Array:
    """Return the library's derivative of the forces along q, q' or q'' (``k``), with a load constant in base axes."""
    _, robot, state, load, _ = standard()

    def forces(t: float) -> Array:
        q, v, a = (value + t * unit * (order == k) for order, value in enumerate(state))
        R, external = robot.poses(q)[load.k, :3, :3], np.zeros((robot.nv, 6))
        force = R.T @ load.F
        external[load.k] = -np.concatenate([R.T @ load.tau + np.cross(load.r, force), force])
        return np.asarray(robot.inverse_dynamics(q, v, a, external=external))

    return np.asarray(derivative(forces, 1e-3))


# Tables 4.1 and 4.3: theta, d, a, alpha of both links, and the centres of mass of Tables 4.2 and 4.4.
PRINTED = {
    "two_link": (("0", "0", "L1", "0"), ("0", "0", "L2", "0")),
    "slide_link": (("π/2", "L1", "0", "π/2"), ("π/2", "0", "L2", "0")),
}
CENTRES = {"two_link": (("-0.2", "0"), ("-0.2", "0")), "slide_link": (("0", "-0.2"), ("-0.2", "0"))}


def _table(name: str) -> list[Row]:
    """Compare a printed table (in quarter turns and links) with the parameters of a library robot, from its poses."""
    robot, size = getattr(library, name)(), {"0": 0.0, "L1": LENGTH, "L2": LENGTH, "π/2": QUARTER}
    poses, before, rows = robot.poses(robot.neutral()), np.eye(4), list[Row]()
    for k, row in enumerate(PRINTED[name]):
        T = np.linalg.inv(before) @ poses[k]
        theta, alpha = math.atan2(T[1, 0], T[0, 0]), math.atan2(T[2, 1], T[2, 2])
        ours = theta, T[2, 3], T[:2, 3] @ [math.cos(theta), math.sin(theta)], alpha
        rows.append(numbers(f"link {k + 1}: θ, d, a, α", row, ours, "rad, m", [size[each] for each in row]))
        before = poses[k]
    return rows


def _data(name: str) -> list[Row]:
    robot, rows = getattr(library, name)(), list[Row]()
    for k, (link, centre) in enumerate(zip(robot.links, CENTRES[name], strict=True)):
        printed, ours = ["0.5", "0.1", *centre], [link.mass, link.inertia[2, 2], *link.com[:2]]
        rows.append(numbers(f"link {k + 1}: mass, inertia, centre of mass", printed, ours, "kg, kg m², m"))
        ends = [-robot.effort_limit[k], robot.effort_limit[k]]
        unit = "N" if robot.joints[k].type == "prismatic" else "N m"
        rows.append(numbers(f"joint {k + 1}: bounds", ["-10", "10"], ends, unit))
    return rows


def _basis(s: Array, knots: Array, degree: int, order: int = 0) -> Array:
    """Return B-splines, or derivatives of an order, at s (N, count) by the recursion of Cox and de Boor."""
    if degree == 0:
        inside = (knots[:-1] <= s[:, None]) & (s[:, None] < knots[1:])
        inside[:, np.flatnonzero(np.diff(knots))[-1]] |= s == knots[-1]  # the end belongs to the last span
        return inside.astype(float)
    lower, span = _basis(s, knots, degree - 1, max(order - 1, 0)), knots[degree:] - knots[:-degree]
    scaled = np.divide(lower, span, out=np.zeros(lower.shape), where=span > 0)
    if order:
        return degree * (scaled[:, :-1] - scaled[:, 1:])
    return (s[:, None] - knots[: -degree - 1]) * scaled[:, :-1] + (knots[degree + 1 :] - s[:, None]) * scaled[:, 1:]


def _splines() -> list[Row]:
    """Compare torques of splines and their derivatives in control points and duration, eqs. 4.13 to 4.15."""
    problem, none = two_link_time(points=8), np.zeros(2)
    program, phase = problem.program, problem.program.layout.phases[0]
    x = problem.guess() + 0.1 * np.random.default_rng(2).normal(size=program.n)
    T, s = x[phase.duration], phase.phase.nodes
    inertia = np.tile(np.diag([0.0, 0.0, 0.1]), (2, 1, 1))  # Table 4.2
    table = none == 0, none, none, none + LENGTH, none, np.tile([-LENGTH / 2, 0, 0], (2, 1)), none + 0.5, inertia
    arm = barman.Robot(*table, g=np.zeros(3))
    knots = np.concatenate([np.zeros(3), np.linspace(0.0, 1.0, 6), np.ones(3)])  # 4.14, repeated at the ends
    B = np.array([_basis(s, knots, 3, order) / T**order for order in range(3)])  # of q, q', q'' (3, nodes, points)
    P = np.where(phase.columns >= 0, x[phase.columns], phase.known)  # (joints, points)
    motion = np.einsum("onp,jp->onj", B, P)  # 4.13
    found = [barman.sensitivities(arm, *states).tau for states in motion.transpose(1, 0, 2)]
    slopes = np.array([each[1:] for each in found])  # (nodes, 3, joints, variables)
    by_points = np.einsum("nolj,onp->nljp", slopes, B)  # 4.15, as a sum over joints
    published = np.zeros((*by_points.shape[:2], program.n))
    published[..., phase.columns[phase.columns >= 0]] = by_points[..., phase.columns >= 0]
    published[..., phase.duration] = -np.einsum("onlj,onj->nl", [slopes[:, k] * k for k in range(3)], motion) / T
    ours, (rows, columns) = np.zeros((program.m, program.n)), program.structure
    np.add.at(ours, (rows, columns), program.jacobian(x)[1])
    torques, ours = program.scales * program.value(x)[1], program.scales[:, None] * ours
    return [
        same("torques (4.13)", [each.x for each in found], torques.reshape(-1, 2), unit="N m"),
        same("∂τ/∂p and ∂τ/∂T (4.15)", published, ours.reshape(published.shape)),
    ]


A, F, T = Kind.ALGORITHM, Kind.FIGURE, Kind.TABLE
ITEMS = [
    Item("barman/fig-2.1", "free body of a link", F, "Figure 2.1, eqs. 2.1, 2.2", drawing.free_body),
    Item("barman/fig-2.2", "joint frames and centre of mass", F, "Figure 2.2", drawing.standard_frames),
    Item("barman/transforms", "Denavit-Hartenberg transforms", A, "eqs. 2.3 to 2.12", _transforms),
    Item("barman/recursion", "forces and internal forces", A, "chapter III, eqs. 2.1 to 3.94", _recursion),
    Item("barman/sensitivities", "analytical sensitivities", A, "chapter III, eqs. 3.1 to 3.95", _sensitivities),
    Item(
        "barman/table-4.1", "Denavit-Hartenberg table of the two-link arm", T, "Table 4.1", partial(_table, "two_link")
    ),
    Item("barman/table-4.2", "parameters of the two-link arm", T, "Table 4.2", partial(_data, "two_link")),
    Item("barman/table-4.3", "Denavit-Hartenberg table of the slide", T, "Table 4.3", partial(_table, "slide_link")),
    Item("barman/table-4.4", "parameters of the slide", T, "Table 4.4", partial(_data, "slide_link")),
    Item(
        "barman/splines",
        "derivatives with respect to control points and duration",
        A,
        "eqs. 4.13 to 4.15",
        _splines,
        **SHORT,
    ),
    Item("barman/fig-4.1", "the two-link arm", F, "Figure 4.1", drawing.two_link_arm),
]
