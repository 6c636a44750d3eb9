"""Barman 2020: the recursion with sensitivities (chapters II and III), and tables and splines (chapter IV)."""

import math
import warnings
from collections.abc import Sequence
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from torsor import library, motion
from torsor.base.arrays import Array
from torsor.base.errors import ModelWarning
from torsor.motion.problems import two_link_time
from torsor.reproduce.documents import drawing
from torsor.reproduce.documents.drawing import curve_panel, curves, peaks, snapshots, tidy
from torsor.reproduce.documents.work import transform
from torsor.reproduce.equations import barman
from torsor.reproduce.errata.erratum import derivative
from torsor.reproduce.item import (
    BY_DIFFERENCES,
    Compute,
    Outcome,
    Row,
    claim,
    lacking,
    number,
    numbers,
    only,
    same,
    zero,
)
from torsor.reproduce.samples import standard
from torsor.robot.robot import Robot

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
    """Return the motion with discontinuous torques, which is the exact optimum."""
    return motion.switching(two_link())


def _norms(result: Any) -> Array:
    return np.asarray(np.linalg.norm(result.reactions[..., 3:], axis=-1))


def _time() -> list[Row]:
    result, best = two_link(), bang_bang()
    away = [100 * (best.T / T - 1) for T in (0.393, 0.394)]
    words, near = ", ".join(f"{each:+.1f} %" for each in away), max(map(abs, away)) < 1
    others = "times in the literature (Xiang et al. 2009a, Wang et al. 2005)"
    return [
        number("minimum time T", "0.392", best.T, "s"),
        number("minimum time T, 30 control points", "0.392", result.T, "s"),
        claim(others, "comparable: 0.393, 0.394 s", words, near),
    ]


SPLINE_POINTS = 28  # control points with which the printed time and the printed switching times are obtained
OTHER_POINTS = (28, 30, 32, 34, 36)  # all have the printed time
LATE = (0.2, 0.21), (0.25, 0.27)  # s: "just over 0.2" and "after 0.25"


def _torques() -> Outcome:
    result, best, spline = two_link(), bang_bang(), two_link(SPLINE_POINTS)
    first, second = best.switches
    order = "".join("+-"[int(torque < 0)] for torque in best.torques([0.0, *second + 1e-9])[:, 1])
    largest = float(np.abs(result.tau).max())
    switches = first[0], second[1]
    matching = [
        str(points)
        for points in OTHER_POINTS
        if all(low < _at_bound(points, k, switches[k]) < high for k, (low, high) in enumerate(LATE))
    ]
    rows = [
        claim("link 2: sequence of bounds", "lower, upper, lower (-+-)", order, order == "-+-"),
        _shift("link 1 switches to the lower bound", "just over 0.2 s", 0, first[0]),
        _shift("link 2 returns to the lower bound", "after 0.25 s", 1, second[1]),
        number(f"minimum time with {SPLINE_POINTS} control points", "0.392", spline.T, "s"),
        only(
            f"control points that give both times (tried: {', '.join(map(str, OTHER_POINTS))})",
            ", ".join(matching),
        ),
        claim("torque limits", "±10 N m", f"±{largest:.6g} N m, between nodes", largest < 10 * (1 + 1e-3)),
    ]

    def draw(figure: Any) -> None:
        axes, t = figure.subplots(), np.linspace(0.0, best.T, 2001)
        for k in range(2):
            (line,) = axes.plot(spline.times, spline.tau[:, k], label=f"joint {k + 1}")
            axes.plot(t, best.torques(t)[:, k], "--", color=line.get_color(), linewidth=0.9)
        title = f"Figure 4.2: joint torques, {SPLINE_POINTS} control points (dashed: bang-bang)"
        tidy(axes, title, "s", "N m")

    return Outcome(rows, draw)


def _at_bound(points: int, joint: int, switch: float) -> float:
    """Return the time after a switching time at which the torque of a spline is at its lower bound, within 1 %."""
    t, tau = two_link(points).times, two_link(points).tau[:, joint]
    return float(t[(t > switch) & (tau < -9.9)][0])


def _shift(what: str, printed: str, joint: int, switch: float) -> Row:
    """Compare a switching time with the time at which the torque of a spline is at its lower bound."""
    (low, high), end = LATE[joint], _at_bound(SPLINE_POINTS, joint, switch)
    words = f"{switch:.4f} s (bang-bang); at the bound at {end:.3f} s with {SPLINE_POINTS} points"
    return claim(what, printed, words, low < switch < high, predicted=low < end < high)


def weighed(result: Any, robot: Robot, normal: Sequence[float]) -> Array:
    """Return the norms of the joint forces of a motion if gravity acts along a direction normal to its plane."""
    heavy = robot.with_gravity(9.81 * np.array(normal)).to(device="casadi")
    wrenches = heavy.joint_wrenches(result.q, result.v, result.a)
    return np.asarray(np.linalg.norm(wrenches[..., 3:], axis=-1))


def _above(upper: Array, lower: Array) -> tuple[bool, str]:
    share = float(np.mean(upper >= lower))
    return share == 1, f"{100 * share:.0f} % of the time"


def _with_weight(figure: Any, title: str, result: Any, names: tuple[str, str], norm: Array, heavy: Array) -> None:
    """Draw the norms of joint forces with and without the weight of the links."""
    axes = figure.subplots()
    curves(axes, result.times, norm, names)
    for k, column in enumerate(heavy.T):
        axes.plot(result.times, column, "--", color=f"C{k}", linewidth=1.0, label=f"{names[k]}, with weight")
    axes.set_ylim(0.0)
    tidy(axes, title, "s", "N")


def _forces() -> Outcome:
    result, names = two_link(), ("joint 1", "joint 2")
    norm, heavy = _norms(result), weighed(result, library.two_link(), (0, 0, -1))
    count, early = peaks(norm[:, 0], 0.3), result.times < result.T / 3
    apart = float(abs(norm[-1, 0] - norm[-1, 1]) / norm.max())
    high = [norm[early].max(axis=0), norm[~early].max(axis=0)]  # both peaks
    largest = ", ".join(f"{a:.3g} and {b:.3g} N" for a, b in high)
    (is_above, words), (is_heavy_above, _) = (_above(*each.T) for each in (norm, heavy))
    rows = [
        claim("peaks of the force norm of joint 1", "double peak", f"{count} peaks", count == 2),
        claim("force of joint 1 above that of joint 2 at the peaks", "yes", largest, all(a > b for a, b in high)),
        claim(
            "the two forces merge near the optimal time", "yes", f"{100 * apart:.1f} % of the peak apart", apart < 0.1
        ),
        claim("force of joint 1 above that of joint 2 before that", "yes", words, is_above, predicted=is_heavy_above),
    ]
    title = "Figure 4.3: norm of the internal joint forces"
    return Outcome(rows, lambda figure: _with_weight(figure, title, result, names, norm, heavy))


def _path() -> Outcome:
    result = two_link()
    angles = np.cumsum(result.at(SNAPSHOT_TIMES * result.T).q, axis=-1)
    x, y = (np.insert(np.cumsum(LENGTH * of(angles), axis=-1), 0, 0.0, axis=-1) for of in (np.cos, np.sin))
    q, v = np.split(_moved_by(bang_bang()), 2)
    rows = [
        same("q(T), by eq. 3.92 from q(0) = (0.0, -2.0) with Torsor's torques", [1.0, -1.0], q, 1e-6, "rad"),
        zero("q'(T)", v, tolerance=1e-6, unit="rad/s"),
    ]
    labels = "Figure 4.4: motion, dark to light", "m", "m"
    return Outcome(rows, lambda figure: snapshots(figure, x, y, SNAPSHOT_TIMES, *labels), (5.0, 5.0))


def printed_arm() -> barman.Robot:
    """Return the arm of Tables 4.1 and 4.2."""
    none, inertia = np.zeros(2), np.tile(np.diag([0.0, 0.0, 0.1]), (2, 1, 1))
    table = none == 0, none, none, none + LENGTH, none, np.tile([-LENGTH / 2, 0, 0], (2, 1)), none + 0.5, inertia
    return barman.Robot(*table, g=np.zeros(3))


def _moved_by(best: Any) -> Array:
    """Return q(T) and q'(T) for q(0) of eq. 4.17, from the torques of a motion and the equations of the thesis."""
    arm = printed_arm()

    def rate(t: float, y: Array, tau: Array) -> Array:
        q, v = np.split(y, 2)
        M = np.array([barman.inverse_dynamics(arm, q, 0 * v, unit)[0] for unit in np.eye(2)]).T
        return np.concatenate([v, np.linalg.solve(M, tau - barman.inverse_dynamics(arm, q, v, 0 * v)[0])])

    y = np.array([0.0, -2.0, 0.0, 0.0])
    for begin, end in pairwise([0.0, *np.sort(np.concatenate(best.switches)), best.T]):
        tau = best.torques((begin + end) / 2)
        y = solve_ivp(rate, (begin, end), y, "DOP853", args=(tau,), rtol=1e-9, atol=1e-9).y[:, -1]
    return np.asarray(y, dtype=float)


# Section 4.2: a slide and a revolute joint


ENDS = {  # interpretations of the four boundary values: (q1, q2) at the start and at the end
    "as printed": ((0.1, 0.6), (QUARTER / 2, -QUARTER / 2)),
    "q1 from 0.1 to 0.6, q2 from π/4 to -π/4": ((0.1, QUARTER / 2), (0.6, -QUARTER / 2)),
    "θ_2 = q_2": ((0.1, 0.6 - QUARTER), (QUARTER / 2, -1.5 * QUARTER)),
    "q1 from 0.1 to 0.6, q2 from 0.6 to -π/4": ((0.1, 0.6), (0.6, -QUARTER / 2)),
}
BOUND, WEIGHT = 10.0, 0.01  # N and N m; u


@cache
def slide(ends: str = "as printed", is_scaled: bool = True, points: int = 5, nodes: int | None = None) -> Any:
    """Return the motion for one interpretation of the problem; the default gives nearly the printed time.

    ``is_scaled`` divides force and torque in the objective by their bounds, as in eq. 5.1 of the thesis.
    """
    start, end = ENDS[ends]
    costs = [motion.Time(weight=1 - WEIGHT), motion.Effort(weight=WEIGHT, scale=BOUND if is_scaled else 1.0)]
    limits: list[Any] = [motion.Start(q=start, v=0.0), motion.End(q=end, v=0.0), motion.Torques(upper=BOUND)]
    phase = motion.Phase((0.1, 2.0), points=points, nodes=nodes)
    problem = motion.MotionProblem(library.slide_link(), phase, costs, limits, name="slide-link")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # few nodes, as in one of the interpretations
        return problem.solve(tolerance=1e-9)


def _duration() -> Row:
    return lacking("minimum travel time T", "0.5585 s", f"{slide().T:.4f} s (5 control points, scaled effort)")


def _slide_time() -> Outcome:
    rows, numbers_of_points = [_duration()], (5, 6, 8, 16)
    readings = [(ends, is_scaled) for ends in ENDS for is_scaled in (False, True)]
    others = [slide(*reading, points).T for reading in readings for points in numbers_of_points]
    rows.append(only("all choices in the figure", f"{min(others):.4f} to {max(others):.4f} s"))
    few = {nodes: slide(nodes=nodes).T for nodes in (10, 14, 18, 20)}
    words = ", ".join(f"{T:.4f} s ({nodes})" for nodes, T in few.items())
    rows.append(only("as in the first row, with bounds enforced at few instants (number in brackets)", words))

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for k, (ends, is_scaled) in enumerate(readings):
            times = [slide(ends, is_scaled, points).T for points in numbers_of_points]
            label = f"{ends}, {'scaled' if is_scaled else 'not scaled'}"
            axes.plot(
                numbers_of_points, times, "o-" if is_scaled else "s--", color=f"C{k // 2}", markersize=4, label=label
            )
        axes.axhline(0.5585, color="k", linewidth=1, label="printed")
        tidy(axes, "travel time for interpretations of the problem", "control points", "s", beside=True)

    return Outcome(rows, draw, (9.5, 4.2))


def _turns(values: Array) -> str:
    """Return the signs of the two extrema of a curve, in order."""
    low, high = int(np.argmin(values)), int(np.argmax(values))
    return "positive, then negative" if high < low else "negative, then positive"


def _slide_forces() -> Outcome:
    result = slide()
    force, torque, largest = _turns(result.tau[:, 0]), _turns(result.tau[:, 1]), float(np.abs(result.tau).max())
    title, names = "Figure 4.5: actuating force and torque", ("force f_1 (N)", "torque τ_2 (N m)")
    rows = [
        _duration(),
        claim("peaks of the force f_1", "positive, then negative", force, force.startswith("positive")),
        claim("peaks of the torque τ_2", "negative, then positive", torque, torque.startswith("negative")),
        claim("bounds", "±10", f"±{largest:.6g}, between nodes", largest < BOUND * (1 + 1e-3)),
    ]
    return Outcome(rows, curve_panel(title, "N, N m", result.times, result.tau, names))


def _slide_reactions() -> Outcome:
    result, names = slide(), ("prismatic joint", "revolute joint")
    norm, heavy = _norms(result), weighed(result, library.slide_link(), (1, 0, 0))
    count = [peaks(norm[:, k], 0.3) for k in range(2)]
    (is_above, words), (is_heavy_above, _) = (_above(*each.T) for each in (norm, heavy))
    rows = [
        _duration(),
        claim("peaks of the force norms", "double peak", f"{count[0]} and {count[1]} peaks", min(count) >= 2),
        claim(
            "force of the revolute joint below that of the prismatic joint",
            "yes",
            words,
            is_above,
            predicted=is_heavy_above,
        ),
    ]
    title = "Figure 4.6: norm of the internal joint forces"
    return Outcome(rows, lambda figure: _with_weight(figure, title, result, names, norm, heavy))


def _slide_path() -> Outcome:
    result = slide()
    poses = library.slide_link().to(device="casadi").poses(result.at(SNAPSHOT_TIMES * result.T).q)
    slider, tip = poses[:, 0, :3, 3], poses[:, 1, :3, 3]
    x = np.stack([0 * slider[:, 2], slider[:, 2], tip[:, 2]], axis=1)
    y = np.stack([0 * slider[:, 1], slider[:, 1], tip[:, 1]], axis=1)
    rows = [_duration()]
    title = "Figure 4.7: motion trajectory, dark to light"
    labels = title, "z of the base, along the slide (m)", "y of the base (m)"
    return Outcome(rows, lambda figure: snapshots(figure, x, y, SNAPSHOT_TIMES, *labels), (7.0, 4.0))


# Chapters II and III


def _transforms() -> list[Row]:
    data, robot, (q, _, _), *_ = standard()
    poses, found, T = robot.poses(q), [], np.eye(4)
    for j in range(len(data.m)):
        theta, d = data.theta[j] + data.revolute[j] * q[j], data.d[j] + (not data.revolute[j]) * q[j]
        T = T @ transform(theta, d, data.a[j], data.alpha[j])
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
        what = f"finite differences with a load, ∂τ/∂{name}"
        rows.append(same(what, expected, np.array(columns).T, BY_DIFFERENCES))
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
    """Compare a printed table (in quarter turns and link lengths) with the parameters of a library robot."""
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
    """Compare spline torques and their derivatives with respect to control points and duration, eqs. 4.13 to 4.15."""
    problem, arm = two_link_time(points=8), printed_arm()
    program, phase = problem.program, problem.program.layout.phases[0]
    x = problem.guess() + 0.1 * np.random.default_rng(2).normal(size=program.n)
    T, s = x[phase.duration], phase.phase.nodes
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


ITEMS: dict[str, Compute] = {
    "barman/time": _time,
    "barman/fig-4.2": _torques,
    "barman/fig-4.3": _forces,
    "barman/fig-4.4": _path,
    "barman/slide-time": _slide_time,
    "barman/fig-4.5": _slide_forces,
    "barman/fig-4.6": _slide_reactions,
    "barman/fig-4.7": _slide_path,
    "barman/fig-2.1": drawing.free_body,
    "barman/fig-2.2": drawing.standard_frames,
    "barman/transforms": _transforms,
    "barman/recursion": _recursion,
    "barman/sensitivities": _sensitivities,
    "barman/table-4.1": partial(_table, "two_link"),
    "barman/table-4.2": partial(_data, "two_link"),
    "barman/table-4.3": partial(_table, "slide_link"),
    "barman/table-4.4": partial(_data, "slide_link"),
    "barman/splines": _splines,
    "barman/fig-4.1": drawing.two_link_arm,
}
