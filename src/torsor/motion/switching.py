"""Bang-bang motions: minimum time under torque limits, with the switching times of the torques as unknowns.

In a minimum-time motion from rest to rest, every torque is almost always at one of its bounds and jumps between them. A
spline solution approximates this motion and shows when each torque is at which bound. With the switching times and the
duration as unknowns z, forward dynamics yields the final state y(T; z), and

    y(T; z) - (q_end, v_end) = 0

are 2 nv equations. Newton's method solves them if there are as many unknowns as equations, that is, 2 nv - 1 switches,
which is the usual number. The motion is an extremal if there are costates p(t) whose switching functions p_v^T M^-1
(one per torque) have the sign of the active bound (Pontryagin's principle).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array, Indices
from torsor.base.checks import positive, whole_number
from torsor.base.errors import ModelError
from torsor.motion.problem import MotionProblem, MotionResult
from torsor.motion.terms.ends import End, Start
from torsor.motion.terms.limits import Torques
from torsor.motion.terms.objectives import Time
from torsor.robot.robot import Robot

AT_BOUND_FRACTION = 0.8  # fraction of half the torque range beyond which a torque counts as being at its bound
STEP_COUNTS = (2, 4, 6, 8, 10, 12)  # step counts of the midpoint rule, extrapolated to order 12
MIN_CLEAR_VALUE = 0.02  # smaller scaled switching functions are close to a switch and ignored
TORQUE_SAMPLES = 2001  # samples of the spline torques


class _Task(NamedTuple):
    """Boundary-value problem between two states (2 nv,), with torque bounds (nv,)."""

    robot: Robot
    start: Array
    end: Array
    lower: Array
    upper: Array


@dataclass(frozen=True, eq=False)
class BangBang:
    """A motion whose torques are at their bounds and jump between them.

    ``T`` is the duration (s), ``switches`` are the times (s) at which each torque jumps, and ``first`` (nv,) is +1 for
    torques that start at the upper bound and -1 for those that start at the lower bound. ``lower`` and ``upper`` (nv,)
    are the bounds (N m, N), and ``start`` (2 nv,) is the initial state (q, v). ``residual`` is the largest
    position or velocity error at the end, and ``iterations`` is the number of Newton iterations. ``margin`` is the
    smallest switching function sampled away from the switches, scaled to at most 1 and multiplied by the sign of its
    bound. If ``margin`` is negative, some torque is at the wrong bound, and a different order of switches is faster.
    """

    robot: Robot
    start: Array
    lower: Array
    upper: Array
    T: float
    switches: tuple[Array, ...]
    first: Array
    residual: float
    margin: float
    iterations: int

    def torques(self, t: ArrayLike) -> Array:
        """Return the torques (..., nv) at times (...)."""
        at = np.asarray(t, dtype=float)
        count = np.stack([np.searchsorted(switch, at, side="right") for switch in self.switches], axis=-1)
        return np.where(self.first * (-1.0) ** count > 0, self.upper, self.lower)

    def states(self, samples: int = 201) -> tuple[Array, Array, Array]:
        """Return equidistant times (samples,), positions (samples, nv) and velocities (samples, nv)."""
        times = np.linspace(0.0, self.T, samples)
        result, jumps, rate = [self.start], np.sort(np.concatenate(self.switches)), partial(_rate, self.robot)
        for begin, end in pairwise(times):
            y = result[-1]
            for a, b in pairwise([begin, *jumps[(jumps > begin) & (jumps < end)], end]):
                y = _integrate(rate, y, self.torques((a + b) / 2), np.array(b - a), 1)
            result.append(y)
        n = self.robot.nv
        return times, np.array(result)[:, :n], np.array(result)[:, n:]


def switching(solved: MotionProblem | MotionResult, tolerance: float = 1e-10, iterations: int = 50) -> BangBang:
    """Return the bang-bang motion near the minimum-time spline motion of a problem or its result.

    The problem must have one phase, fixed positions and velocities at both ends, the objective ``Time`` and bounds on
    all torques, but no other terms. A problem is solved first. ``tolerance`` applies to the end state (rad, m, rad/s,
    m/s), and ``iterations`` limits Newton's method. ModelError is raised if the motion does not have 2 nv - 1 switches.

    Example:
        >>> from torsor import motion
        >>> ends = motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)
        >>> arm, phase = torsor.library.two_link(), motion.Phase((0.1, 2.0), points=12)
        >>> best = motion.switching(motion.MotionProblem(arm, phase, motion.Time(), [*ends, motion.Torques()]))
        >>> round(best.T, 9), [times.round(6).tolist() for times in best.switches]
        (0.39185454, [[0.195927], [0.045709, 0.2353]])
    """
    problem = solved if isinstance(solved, MotionProblem) else getattr(solved, "problem", None)
    if not isinstance(problem, MotionProblem):
        raise ModelError(f"switching got {solved!r}", value=solved, allowed="a MotionProblem or its MotionResult")
    positive(tolerance, problem.name, "tolerance")
    whole_number(iterations, problem.name, "iterations")
    task = _task(problem)
    x = problem.solve().x if isinstance(solved, MotionProblem) else solved.x
    first, switches, T = _structure(problem, task, x)
    result = _Shooting(task, first, np.repeat(np.arange(len(switches)), [len(switch) for switch in switches]))
    if len(result.order) + 1 != 2 * task.robot.nv:
        seen = "; ".join(f"{name}: {at.size}" for name, at in zip(task.robot.coordinate_names, switches, strict=True))
        needed = f"{2 * task.robot.nv - 1} in total, one fewer than equations"
        fix = "solve with more control points; if torques stay between their bounds, no bang-bang motion exists"
        raise ModelError(f"the numbers of switches are {seen}", where=problem.name, allowed=needed, fix=fix)
    return result.solve(np.concatenate([*switches, [T]]), tolerance, iterations, problem.name)


def _task(problem: MotionProblem) -> _Task:
    """Return the boundary-value problem; raise ModelError if it has terms that a bang-bang motion cannot satisfy."""
    model, where = problem.model, problem.name
    if model.is_closed or model.path is not None or model.frozen or model.parameters or len(problem.stages) > 1:
        allowed = "one phase of a robot whose coordinates are all free"
        raise ModelError(
            "the problem has loops, a path, free parameters, frozen coordinates or several phases",
            where=where,
            allowed=allowed,
        )
    if not all(isinstance(cost, Time) for cost in problem.costs):
        raise ModelError("the objective is not only the time", where=where, allowed="only Time")
    extra = [condition.title for condition in problem.conditions if not isinstance(condition, (Start, End, Torques))]
    if extra:
        raise ModelError(f"the problem has {extra[0]}", where=where, allowed="only Start, End and Torques")
    names, n = model.names, model.robot.nv
    states = []
    for kind in (Start, End):
        state = dict[tuple[int, int], float]()
        for condition in problem.conditions:
            state |= condition.values(names) if isinstance(condition, kind) else {}
        if set(state) != {(profile, order) for profile in range(n) for order in (0, 1)}:
            message = f"{kind.__name__} must specify q and v of every coordinate"
            raise ModelError(message, where=where, fix="give only q and v")
        states.append(np.array([state[profile, order] for order in (0, 1) for profile in range(n)]))
    limits = [condition for condition in problem.conditions if isinstance(condition, Torques)]
    if any(limit.at is not None or tuple(limit.during) != (0.0, 1.0) for limit in limits):
        raise ModelError("the torque bounds hold only at some times", where=where, allowed="bounds at all times")
    bounds = [limit.rows(problem.node) for limit in limits]
    if len(bounds) != 1 or bounds[0].labels != names or not np.isfinite([bounds[0].lower, bounds[0].upper]).all():
        raise ModelError(
            "some torques lack a bound", where=where, fix="give lower and upper Torques of every coordinate"
        )
    return _Task(model.robot, states[0], states[1], bounds[0].lower, bounds[0].upper)


def _structure(problem: MotionProblem, task: _Task, x: Array) -> tuple[Array, tuple[Array, ...], float]:
    """Return the initial sides (nv,) of the torques, their switching times and the duration of a spline solution."""
    phase_layout, s = problem.program.layout.phases[0], np.linspace(0.0, 1.0, TORQUE_SAMPLES)
    tau = task.robot.inverse_dynamics(*phase_layout.profiles(x, s, 3))
    scaled = (tau - (task.lower + task.upper) / 2) / ((task.upper - task.lower) / 2)
    T, first, switches = phase_layout.seconds(x), np.zeros(task.robot.nv), list[Array]()
    for k, level in enumerate(scaled.T):
        at = np.flatnonzero(np.abs(level) > AT_BOUND_FRACTION)
        if not at.size:
            name = task.robot.coordinate_names[k]
            raise ModelError(f"the torque of {name} does not reach a bound", where=problem.name)
        sides = np.sign(level[at])
        first[k] = sides[0]
        jumps = np.flatnonzero(np.diff(sides))
        switches.append(np.array([_crossing(level, at[j], at[j + 1]) for j in jumps]) * T / (TORQUE_SAMPLES - 1))
    return first, tuple(switches), T


def _crossing(level: Array, begin: int, end: int) -> float:
    """Return the zero of a sampled function between two samples of opposite sign, as a fractional index."""
    k = begin + int(np.flatnonzero(np.sign(level[begin : end + 1]) != np.sign(level[begin]))[0])
    return float(k - level[k] / (level[k] - level[k - 1]))


@dataclass(frozen=True, eq=False)
class _Shooting:
    """Shooting equations in z = (switching times, T); ``order`` contains the torque index of each switch."""

    task: _Task
    first: Array
    order: Indices

    def _pieces(self, z: Array) -> tuple[Array, Array]:
        """Return the durations (..., pieces) between switches, and the torques (..., pieces, nv), for many z."""
        jumps, T = z[..., :-1], z[..., -1:]
        ranks = np.argsort(jumps, axis=-1, kind="stable")
        edges = np.concatenate([np.zeros_like(T), np.take_along_axis(jumps, ranks, -1), T], axis=-1)
        flips = np.ones((*ranks.shape, self.task.robot.nv))
        np.put_along_axis(flips, self.order[ranks][..., None], -1.0, axis=-1)
        sides = np.concatenate([np.ones((*ranks.shape[:-1], 1, self.task.robot.nv)), flips], axis=-2).cumprod(axis=-2)
        return np.diff(edges, axis=-1), np.where(self.first * sides > 0, self.task.upper, self.task.lower)

    def end(self, z: Array, parts: int) -> Array:
        """Return the final states (..., 2 nv)."""
        lengths, torques = self._pieces(z)
        y = np.broadcast_to(self.task.start, (*z.shape[:-1], len(self.task.start)))
        rate = partial(_rate, self.task.robot)
        for k in range(lengths.shape[-1]):
            y = _integrate(rate, y, torques[..., k, :], lengths[..., k], parts)
        return y

    def jacobians(self, z: Array, parts: int) -> Array:
        """Return the derivatives (2 nv, z) of the final state, by central differences."""
        step = 1e-6 * z[-1]
        ahead, behind = (self.end(z + sign * step * np.eye(len(z)), parts) for sign in (1, -1))
        return np.asarray((ahead - behind).T / (2 * step))

    def solve(self, z: Array, tolerance: float, iterations: int, where: str) -> BangBang:
        """Return the motion, by Newton's method with steps that keep the switches of each torque in order.

        ModelError is raised if the switching equations are singular or the iterations do not converge.
        """
        parts, off = 2, self.end(z, 2) - self.task.end
        for iteration in range(iterations):
            if np.abs(off).max() < tolerance:
                finer = self.end(z, 2 * parts) - self.task.end
                if np.abs(finer - off).max() < tolerance / 10:
                    task, residual, margin = self.task, float(np.abs(off).max()), self._margin(z, parts)
                    motion = task.start, task.lower, task.upper, float(z[-1]), self._switches(z), self.first
                    return BangBang(task.robot, *motion, residual, margin, iteration)
                parts, off = 2 * parts, finer
                continue
            jacobians = self.jacobians(z, parts)
            if np.linalg.cond(jacobians) > 1e12:
                raise ModelError("the switching equations are singular", where=where)
            step, fraction = np.linalg.solve(jacobians, -off), 1.0
            for _ in range(30):
                new = z + fraction * step
                if all((np.diff([0.0, *switch, new[-1]]) > 0).all() for switch in self._switches(new)):
                    moved = self.end(new, parts) - self.task.end
                    if np.linalg.norm(moved) < np.linalg.norm(off):
                        break
                fraction /= 2
            else:
                break
            z, off = new, moved
        message = f"Newton's method did not converge: the error of the end state is {np.abs(off).max():.3g}"
        raise ModelError(message, where=where, fix="solve with more control points")

    def _switches(self, z: Array) -> tuple[Array, ...]:
        """Return the switching times of each torque."""
        return tuple(z[:-1][self.order == k] for k in range(self.task.robot.nv))

    def _margin(self, z: Array, parts: int) -> float:
        """Return the smallest signed switching function, by backward integration of the costates p' = -(df/dy)^T p."""
        jacobians, n = self.jacobians(z, parts), self.task.robot.nv
        p = np.linalg.svd(jacobians[:, :-1])[0][:, -1]  # p . y(T) does not depend on the switches, and p . y'(T) > 0
        y = np.concatenate([self.task.end, p * np.sign(p @ jacobians[:, -1])])
        lengths, torques = self._pieces(z)
        rate, samples = partial(_costate_rate, self.task.robot), 8
        switching_functions, sides = [], []
        for length, tau in zip(lengths[::-1], torques[::-1], strict=True):
            for _ in range(samples):
                switching_functions.append(np.linalg.solve(self.task.robot.mass_matrix(y[:n]), y[3 * n :]))
                sides.append(np.sign(tau - (self.task.lower + self.task.upper) / 2))
                y = _integrate(rate, y, tau, np.array(-length / samples), 1)
        scaled = np.array(switching_functions) / np.abs(switching_functions).max(axis=0) * np.array(sides)
        return float(scaled[np.abs(scaled) > MIN_CLEAR_VALUE].min())


def _rate(robot: Robot, y: Array, tau: Array) -> Array:
    """Return y' of y = (q, v), by forward dynamics."""
    q, v = y[..., : robot.nv], y[..., robot.nv :]
    return np.concatenate([v, robot.forward_dynamics(q, v, tau)], axis=-1)


def _costate_rate(robot: Robot, y: Array, tau: Array) -> Array:
    """Return the rate of (q, v, p), where p_q' = -a_q^T p_v and p_v' = -p_q - a_v^T p_v with a = a(q, v)."""
    q, v, p_q, p_v = np.split(y, 4)
    a_q, a_v, _ = robot.derivatives.forward_dynamics(q, v, tau)
    return np.concatenate([v, robot.forward_dynamics(q, v, tau), -a_q.T @ p_v, -p_q - a_v.T @ p_v])


def _integrate(rate: Callable[[Array, Array], Array], y: Array, tau: Array, length: Array, parts: int) -> Array:
    """Return states (..., y) after times (...) with constant torques, by extrapolated midpoint rules (Gragg 1965)."""
    for _ in range(parts):
        H, table = (length / parts)[..., None], list[Array]()
        for row, count in enumerate(STEP_COUNTS):
            h, before, now = H / count, y, y + H / count * rate(y, tau)
            for _ in range(count - 1):
                before, now = now, before + 2 * h * rate(now, tau)
            new = [(before + now + h * rate(now, tau)) / 2]
            for k in range(row):
                new.append(new[k] + (new[k] - table[k]) / ((count / STEP_COUNTS[row - k - 1]) ** 2 - 1))
            table = new
        y = table[-1]
    return y
