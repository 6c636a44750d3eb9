"""Path arguments: waypoints, joint trajectories, and ROS JointTrajectory messages."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from torsor.base.arrays import Array, real_numbers
from torsor.base.checks import instance_of, positive, real_array
from torsor.base.errors import ModelError, listing, shortened, warn
from torsor.motion.retiming.path import MAX_WAYPOINTS, JointPath
from torsor.motion.retiming.result import Retimed
from torsor.robot.robot import Robot

NANO = 1e-9
MAX_POSITION = 1e100  # rad, m; larger waypoints are treated as errors
MIN_SQUARED_DISTANCE = 1e-200  # squared distance below which waypoints are equal
MIN_RELATIVE_TOLERANCE = 1e-9  # smallest corner tolerance relative to the path
OMISSION_FRACTION = 0.5  # distance relative to the tolerance below which waypoints are omitted
MIN_RELATIVE_DISTANCE = 1e-6  # smallest distance of spline points relative to the path


class Given(NamedTuple):
    """Paths grouped by number of pieces, whether they form a batch, and the offset of s."""

    paths: list[JointPath]
    batch: bool
    first: float = 0.0


def check_retimable(robot: Any) -> None:
    """Raise ModelError unless the argument is a robot whose joints can follow a path."""
    robot = instance_of(robot, Robot, "retime", "robot", allowed="a torsor.Robot")
    where = f"{robot.name}: retime"
    if robot.loops:
        fix = "use robot.open_tree() for velocity and acceleration bounds of all joints"
        raise ModelError("retiming does not support the drive torques of closed loops", where=where, fix=fix)
    if robot.nq != robot.nv:
        fix = "fix the base, and use joints with one coordinate"
        raise ModelError("the positions contain quaternions", where=where, allowed="robots with nq = nv", fix=fix)
    if robot.elastic:
        message = f"joint {robot.elastic[0].name!r} is elastic: its motor does not follow a joint path"
        raise ModelError(message, where=where, fix="use robot.without_motor(...), which makes the joints rigid")


def read_path(robot: Robot, path: Any, tolerance: float | None, where: str) -> Given:
    """Return the paths described by the ``path`` argument of ``retime``."""
    if isinstance(path, Retimed) and tolerance is None:
        if path.robot.coordinate_names != robot.coordinate_names:
            message = f"the motion of {path.robot.name} has the coordinates {listing(path.robot.coordinate_names)}"
            raise ModelError(message, where=where, allowed=listing(robot.coordinate_names))
        return Given([path.path], batch=False)
    times, positions = _parts(robot, path, where)
    numbers = real_numbers(positions)
    if numbers is None:
        message = f"the waypoints, of type {type(positions).__name__}, are not an array of real numbers"
        allowed = f"(K, {robot.nv}) or (B, K, {robot.nv}), with the same number of waypoints in each path"
        raise ModelError(message, where=where, allowed=allowed)
    q = np.array(numbers, dtype=float)
    batch = q.ndim == 3
    if q.ndim not in (2, 3) or q.shape[-1] != robot.nv or q.shape[-2] < 2 or not len(q):
        allowed = f"at least 2 rows of {robot.nv} numbers, or several such paths"
        raise ModelError(f"the waypoints have shape {q.shape}", where=where, allowed=allowed)
    if q.shape[-2] > MAX_WAYPOINTS:
        message = f"there are {q.shape[-2]} waypoints"
        raise ModelError(message, where=where, allowed=f"{MAX_WAYPOINTS} or fewer", fix="omit some")
    if not np.maximum.reduce(np.abs(q), axis=None) < MAX_POSITION:  # NaN too
        at = [int(k) for k in np.argwhere(~(np.abs(q) < MAX_POSITION))[0]]
        raise ModelError(f"waypoints{at} is {q[tuple(at)]:g}", where=where, allowed="finite numbers")
    q = q if batch else q[None]
    step = q[:, 1:] - q[:, :-1]
    squares = np.add.reduce(step * step, axis=-1)
    if np.minimum.reduce(squares, axis=None) < MIN_SQUARED_DISTANCE:
        raise ModelError(f"{_pair(squares, batch)} are equal", where=where, fix="omit one")
    if tolerance is not None:
        far, length = positive(tolerance, where, "tolerance"), np.sqrt(squares).sum(axis=-1).max()
        if not MIN_RELATIVE_TOLERANCE * length <= far < MAX_POSITION:
            allowed = f"{MIN_RELATIVE_TOLERANCE * length:.2g} (for a path of this length) to {MAX_POSITION:g}"
            raise ModelError(f"is {far:g}", argument="tolerance", value=far, where=where, allowed=allowed)
        is_near = squares.min() < (OMISSION_FRACTION * far) ** 2 and q.shape[1] > 2
        return Given(_blended(q, far, batch, where) if is_near else [JointPath.blended(q, far)], batch)
    first = 0.0
    if times is None:
        steps, s = np.sqrt(squares), np.zeros(q.shape[:2])
        np.add.accumulate(steps, axis=1, out=s[:, 1:])
    else:
        known, count = real_array(times, where, "times"), q.shape[1]
        is_rising = known.shape == (count,) and np.isfinite(known).all() and (known[1:] > known[:-1]).all()
        if not is_rising:
            allowed = f"{count} increasing finite numbers"
            raise ModelError("of the path are invalid", argument="times", where=where, allowed=allowed)
        first = float(known[0])
        s = (known - first)[None]  # absolute clock times, such as 1.7e9 s, would reduce the precision
        steps = s[:, 1:] - s[:, :-1]
    if np.count_nonzero(steps < MIN_RELATIVE_DISTANCE * s[:, -1:]):
        message = f"{_pair(steps, batch)} are only {steps.min():.2g} apart"
        allowed = (
            f"{MIN_RELATIVE_DISTANCE:g} of the path length, so that rounding does not spoil the spline through them"
        )
        raise ModelError(message, where=where, allowed=allowed, fix="omit one")
    return Given([JointPath.through(s, q)], batch, first)


def _blended(q: Array, tolerance: float, batch: bool, where: str) -> list[JointPath]:
    """Return straight-line paths through the waypoints (B, K, n), with corners blended within the tolerance.

    Waypoints closer to others than ``OMISSION_FRACTION`` times the tolerance are omitted with a warning. ModelError is
    raised if a closed path has no other waypoint left.
    """
    kept = [_kept(points, tolerance) for points in q]
    wrong = next((b for b, (indices, _) in enumerate(kept) if len(indices) == 2 and (q[b, 0] == q[b, -1]).all()), None)
    if wrong is not None:
        message = "all waypoints" + (f" of path {wrong}" if batch else "") + " are within the tolerance of the first"
        raise ModelError(message, where=where, fix="use a smaller tolerance")
    out = {
        b: np.setdiff1d(np.arange(q.shape[1]), indices)
        for b, (indices, _) in enumerate(kept)
        if len(indices) < q.shape[1]
    }
    b = next(iter(out), None)
    if b is None:  # none are omitted
        return [JointPath.blended(q, tolerance)]
    of = (f" of path {b}" + (f", and some of {len(out) - 1} others," if len(out) > 1 else "")) if batch else ""
    message = (
        f"waypoints {listing(map(str, out[b]))}{of} within {OMISSION_FRACTION * tolerance:g} of another one are omitted"
    )
    fix = "use a smaller tolerance if the path must be closer"
    warn(f"{message}: the path passes them within the tolerance", where=where, fix=fix)
    return [JointPath.blended(q[b : b + 1, indices], left[None, 1:-1, None]) for b, (indices, left) in enumerate(kept)]


def _kept(points: Array, tolerance: float) -> tuple[list[int], Array]:
    """Return the indices of the kept waypoints (K, n), and the tolerances of their blended corners.

    The path also passes omitted waypoints within the tolerance, because the tolerance of the nearby corner is reduced
    accordingly. If they were kept, corners would be as short as the lines between them, and therefore very slow.
    """
    kept, left, near = [0], np.full(len(points), tolerance), OMISSION_FRACTION * tolerance
    for k in range(1, len(points) - 1):
        far = float(np.linalg.norm(points[k] - points[kept[-1]]))
        if far >= near:
            kept.append(k)
        else:
            left[kept[-1]] = min(left[kept[-1]], tolerance - far)
    while len(kept) > 1 and np.linalg.norm(points[kept[-1]] - points[-1]) < near:
        kept.pop()
    kept.append(len(points) - 1)
    return kept, left[kept]


def _pair(distances: Array, batch: bool) -> str:
    """Return the names of the two closest waypoints, from the distances (B, K - 1)."""
    which, k = np.unravel_index(np.argmin(distances), distances.shape)
    return f"waypoints {k} and {k + 1}" + (f" of path {which}" if batch else "")


def _parts(robot: Robot, path: Any, where: str) -> tuple[Any, Any]:
    """Return the times (None for waypoints) and the positions of a path argument."""
    if isinstance(path, Mapping):
        return (_document if "torsor" in path else _message)(robot, path, where)
    if hasattr(path, "times") and hasattr(path, "q") and not callable(path.q):
        return path.times, path.q
    if isinstance(path, tuple) and len(path) == 2 and np.ndim(path[1]) > np.ndim(path[0]) == 1:
        return path
    return None, path


def _document(robot: Robot, document: Mapping[str, Any], where: str) -> tuple[Any, Any]:
    """Return the times and positions of a motion document (``Result.to_dict``)."""
    try:
        names, times, q = list(document["robot"]["positions"]), document["times"], document["q"]
    except (KeyError, TypeError):
        allowed = "the document of a trajectory or of a retimed motion: robot, times, q"
        raise ModelError("the document is not a motion", where=where, allowed=allowed) from None
    if names != list(robot.position_names):
        message = f"the positions belong to {shortened(', '.join(map(str, names)))}"
        raise ModelError(message, where=where, allowed=", ".join(robot.position_names))
    return times, q


def _message(robot: Robot, message: Mapping[str, Any], where: str) -> tuple[Any, Any]:
    """Return the times and positions of a ROS JointTrajectory, with joints in the order of the robot.

    The message may be part of a RobotTrajectory, or the only trajectory of a DisplayTrajectory. The times are None if
    they are missing or equal.
    """
    try:
        parts = message.get("trajectory", [message])
        message = (parts[0] if len(parts) == 1 else {}).get("joint_trajectory", message)
        names, points = list(message["joint_names"]), list(message["points"])
        positions = [list(point["positions"]) for point in points]
        stamps = [_stamp(point.get("time_from_start")) for point in points]
    except (KeyError, TypeError, ValueError, AttributeError):
        allowed = "joint_names, and points with positions and optionally time_from_start {sec, nanosec}"
        raise ModelError("the dictionary is not a JointTrajectory", where=where, allowed=allowed) from None
    joint_names = list(robot.coordinate_names)
    if sorted(map(str, names)) != sorted(joint_names):
        mistake = f"the joint_names are {shortened(', '.join(map(str, names)))}"
        raise ModelError(mistake, where=where, allowed=f"{', '.join(joint_names)}, in any order")
    wrong = next((k for k, position in enumerate(positions) if len(position) != len(names)), None)
    if wrong is not None:
        mistake = f"point {wrong} has {len(positions[wrong])} positions"
        raise ModelError(mistake, where=where, allowed=f"{len(names)}, one per joint name")
    order = [names.index(name) for name in joint_names]
    known = [stamp for stamp in stamps if stamp is not None]
    timed = len(set(known)) > 1 and len(known) == len(stamps)
    times = [(whole - known[0][0]) + NANO * (parts - known[0][1]) for whole, parts in known] if timed else None
    return times, [[position[k] for k in order] for position in positions]


def _stamp(stamp: Any) -> tuple[float, float] | None:
    """Return seconds and nanoseconds of a ROS 2 {sec, nanosec} or ROS 1 {secs, nsecs} duration, or None."""
    if stamp is None:
        return None
    whole, parts = ("secs", "nsecs") if "secs" in stamp else ("sec", "nanosec")
    return float(stamp[whole]), float(stamp.get(parts, 0))
