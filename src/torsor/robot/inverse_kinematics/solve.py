"""Inverse kinematics: input checks, batched searches, secondary objectives, and the result."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array, Shape
from torsor.base.checks import arrays, common_shape, flag, positive, whole_number
from torsor.base.errors import ModelError
from torsor.geometry.pairs import Pairs
from torsor.robot.inverse_kinematics.apart import Apart, ApartRunner
from torsor.robot.inverse_kinematics.problem import Problem, relative_weights
from torsor.robot.inverse_kinematics.result import InverseKinematicsResult, Mask, Miss, Shapes
from torsor.robot.inverse_kinematics.search import Runner, search
from torsor.robot.inverse_kinematics.step import refined
from torsor.robot.inverse_kinematics.targets import Target, made
from torsor.robot.robot import Robot, checked_robot

LEAST_TOLERANCE = 1e-12  # m, rad: below it, rounding dominates
AT_LIMIT = 1e-9  # rad, m: distance within which a posture is at a limit
MIN_GRADIENT = 1e-9  # component of the gradient of the squared errors above which a limit blocks a posture


def inverse_kinematics(
    robot: Robot,
    targets: Any,
    q0: ArrayLike | None = None,
    limits: bool = True,
    tolerance: float = 1e-9,
    restarts: int = 100,
    posture: ArrayLike | None = None,
    manipulability: bool = False,
    clearance: float | None = None,
    pairs: Pairs = None,
) -> InverseKinematicsResult:
    """Return postures that meet targets: ``result.q`` (..., nq), ``result.error`` (...), ``result.solved`` (...).

    ``targets`` is {place: pose (..., 4, 4) or position (..., 3)}, or a list of targets (Pose, Position, Orientation,
    Direction, LookAt, CenterOfMass), in base axes, m and rad. Leading axes form a batch. A search starts at ``q0``
    (..., nq), or at an automatically chosen posture, and restarts up to ``restarts`` times if it gets stuck. Loops
    remain closed.

    - ``limits``: enforce the joint limits.
    - ``tolerance`` (m, rad): the largest error of a solved posture.
    - ``posture`` (..., nq): return a solution near this posture.
    - ``manipulability``: increase the manipulability of the solution; it cannot be combined with ``posture``.
    - ``clearance`` (m): keep the collision shapes of ``pairs`` (see ``robot.shapes.distances``) at least this far
      apart; the default is all checked pairs.

    For unreachable targets, the closest posture is returned with ``solved`` False; see ``result.cause(index)``.

    Example:
        >>> arm = torsor.library.ur5()
        >>> there = arm.pose([0.3, -1.0, 1.2, 0.4, 0.9, -0.2], "ee_link")
        >>> found = torsor.inverse_kinematics(arm, {"ee_link": there})
        >>> bool(found.solved), bool(np.allclose(arm.pose(found.q, "ee_link"), there, rtol=0, atol=1e-8))
        (True, True)
    """
    where = f"{checked_robot(robot).name}: inverse_kinematics"
    checked = made(targets, where)
    problem = Problem.of(robot, checked, flag(limits, where, "limits"))
    tolerance = positive(tolerance, where, "tolerance")
    if tolerance < LEAST_TOLERANCE:
        allowed = f"{LEAST_TOLERANCE:g} or more"
        raise ModelError(f"is {tolerance:g}", argument="tolerance", value=tolerance, where=where, allowed=allowed)
    restarts = whole_number(restarts, where, "restarts", least=0)
    wish = flag(manipulability, where, "manipulability")
    if wish and posture is not None:
        message = "and manipulability are mutually exclusive"
        raise ModelError(message, argument="posture", where=where, allowed="one of them")
    if clearance is None and pairs is not None:
        raise ModelError("needs a clearance", argument="pairs", where=where, fix="pass clearance, in m")
    apart = None if clearance is None else Apart.of(problem, clearance, pairs, where)
    data = problem.data(checked)
    start = None if q0 is None else _positions(robot, q0, where, "q0")
    preferred = None if posture is None else _positions(robot, posture, where, "posture")
    shapes = {"targets": data.shape[:-1]}
    shapes |= {name: item.shape[:-1] for name, item in (("q0", start), ("posture", preferred)) if item is not None}
    batch = common_shape(where, **shapes)

    def flat(array: Array) -> Array:
        return np.ascontiguousarray(np.broadcast_to(array, (*batch, array.shape[-1])).reshape(-1, array.shape[-1]))

    data, start = flat(data), None if start is None else flat(start)
    enough = (tolerance * (min(map(min, relative_weights(checked))) if problem.weighted else 1.0)) ** 2
    run = Runner(problem, enough) if apart is None else ApartRunner(problem, enough, apart)
    result = search(run, start, data, restarts)
    q = result.q
    if wish or preferred is not None:
        q = _chosen(run, q, data, None if preferred is None else flat(preferred), result.cost <= enough)
    if problem.has_hard and apart is None:  # searches with shapes enforce hard rows themselves, by weights
        q = _kept(problem, q, data, result.cost <= enough)
    return _result(problem, checked, apart, q, data, batch, result.starts, tolerance)


def _positions(robot: Robot, value: ArrayLike, where: str, what: str) -> Array:
    """Return positions (..., nq) with unit quaternions."""
    q = arrays(value, (robot.nq,), where, what)
    for joint, at in zip(robot.joints, robot.coordinates, strict=True):
        if joint.kind.nq != joint.kind.nv:
            some = slice(at.q.stop - 4, at.q.stop)
            length = np.linalg.norm(q[..., some], axis=-1, keepdims=True)
            if not (length > AT_LIMIT).all():
                message, fix = f"the quaternion of {joint.name!r} in {what} is zero", "start from robot.neutral()"
                raise ModelError(message, value=joint.name, where=where, allowed="a rotation", fix=fix)
            q[..., some] /= length
    return q


def _chosen(run: Runner, q: Array, data: Array, preferred: Array | None, solved: Mask) -> Array:
    """Return solutions near ``preferred`` or with high manipulability, where q (K, nq) is ``solved``."""
    todo = np.flatnonzero(solved)
    if not len(todo):
        return q
    name = "manipulability" if preferred is None else "posture"
    goal = q if preferred is None else preferred
    better, _ = refined(run.problem, name, q[todo], data[todo], goal[todo])
    exact = run.ends(run.problem.clipped(better), data[todo], patient=True)
    well = exact.cost <= run.enough
    q = q.copy()
    q[todo[well]] = exact.q[well]
    return q


def _kept(problem: Problem, q: Array, data: Array, solved: Mask) -> Array:
    """Return positions that meet hard targets and close loops, and minimise the errors of the other targets."""
    todo = np.flatnonzero(~solved)
    if not len(todo) or all(target.hard for target in problem.targets):
        return q
    q = q.copy()
    q[todo], _ = refined(problem, "misses", q[todo], data[todo], q[todo])
    return q


def _result(
    problem: Problem,
    targets: tuple[Target, ...],
    apart: Apart | None,
    q: Array,
    data: Array,
    batch: Shape,
    starts: Any,
    tolerance: float,
) -> InverseKinematicsResult:
    """Return the result, with errors recomputed from the postures by a kernel that the searches do not use."""
    robot = problem.robot
    plain, gradient = problem.check(q, data)
    misses, first = dict[str, Miss](), 0
    for item in problem.targets:
        parts: dict[str, Array] = {}
        for kind in item.kinds:
            rows = plain[:, first : first + 3]
            size = np.sqrt(np.einsum("ki,ki->k", rows, rows)).reshape(batch)
            parts["p" if kind == "p" else "a"] = 2 * np.arcsin(np.minimum(size / 2, 1)) if kind == "d" else size
            first += 3
        label, again = item.label, 2
        while label in misses:
            label, again = f"{item.label} ({again})", again + 1
        misses[label] = Miss(parts.get("p"), parts.get("a"))
    closure = np.zeros(batch)
    if first < plain.shape[1]:
        closure = np.abs(plain[:, first:]).max(axis=1).reshape(batch)
    error = reduce(np.maximum, (miss.largest for miss in misses.values()), closure)
    solved, shapes = np.asarray(error <= tolerance), None
    if apart is not None:
        least, holding = apart.judged(q, gradient)
        solved &= least.reshape(batch) >= apart.clearance
        holding = holding.reshape(*batch, holding.shape[1]) & ~solved[..., None]
        shapes = Shapes(apart.clearance, apart.model.names, apart.moving, least.reshape(batch), holding)
    limits = np.zeros((*batch, robot.nq), dtype=bool)
    if not solved.all():
        limits = _held(problem, q, gradient).reshape(limits.shape) & ~solved[..., None]
    labelled = dict(zip(misses, targets, strict=True))
    alone = partial(_alone, robot, problem.limited, labelled, batch, tolerance)
    shaped = q.reshape(*batch, robot.nq), np.asarray(error), solved, misses, closure, limits
    return InverseKinematicsResult(robot, *shaped, np.reshape(starts, batch), tolerance, alone, shapes)


def _held(problem: Problem, q: Array, gradient: Array) -> Mask:
    """Return a mask (K, nq) of positions at a limit beyond which the squared errors would decrease."""
    held = np.zeros(q.shape, dtype=bool)
    for k, (at, low, high) in enumerate(zip(problem.places_in_q, *problem.bounds, strict=True)):
        if at >= 0:
            below = (q[:, at] <= low + AT_LIMIT) & (gradient[:, k] > MIN_GRADIENT)
            held[:, at] = below | ((q[:, at] >= high - AT_LIMIT) & (gradient[:, k] < -MIN_GRADIENT))
    return held


def _alone(
    robot: Robot, limited: bool, targets: Mapping[str, Target], batch: Shape, tolerance: float, at: Shape
) -> Mapping[str, bool]:
    """Return whether each target can be met without the others, at one index of the batch."""
    result = dict[str, bool]()
    for label, target in targets.items():
        light = (replace(target, weight=1.0),)
        one = Problem.of(robot, light, limited)
        numbers = one.data(light)
        data = np.broadcast_to(numbers, (*batch, numbers.shape[-1]))[at][None]
        ends = search(Runner(one, tolerance**2), None, data, 10)
        result[label] = bool(ends.cost[0] <= tolerance**2)
    return result
