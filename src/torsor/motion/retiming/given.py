"""The paths that users give: waypoints, joint trajectories, and the message JointTrajectory of ROS."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from torsor.arrays import Array
from torsor.checks import positive, real_array
from torsor.errors import ModelError, describe
from torsor.motion.retiming.path import MOST_WAYPOINTS, JointPath
from torsor.robot.robot import Robot

NANO = 1e-9


class Given(NamedTuple):
    """B paths, and whether they were given as a batch."""

    path: JointPath
    batch: bool


def check_retimable(robot: Any) -> None:
    """Raise ModelError for what is no robot whose joints can follow a given path.

    Example:
        >>> check_retimable(torsor.library.four_bar())
        Traceback (most recent call last):
        torsor.errors.ModelError: four_bar: retime: closed loops: the torques of their drives are not retimed; fix: \
robot.open_tree() for velocity and acceleration bounds of all joints
    """
    if not isinstance(robot, Robot):
        raise ModelError(describe(f"retime for {robot!r}", allowed="a torsor.Robot"))
    where = f"{robot.name}: retime"
    if robot.loops:
        fix = "robot.open_tree() for velocity and acceleration bounds of all joints"
        raise ModelError(describe("closed loops: the torques of their drives are not retimed", where=where, fix=fix))
    if robot.nq != robot.nv:
        fix = "fix the base, and use joints with one coordinate"
        raise ModelError(describe("positions are quaternions", where=where, allowed="robots with nq = nv", fix=fix))
    if robot.elastic:
        found = f"joint {robot.elastic[0].name!r} is elastic: its motor does not follow a path of the joints"
        raise ModelError(describe(found, where=where, fix="without_motor(...), for the arm with stiff joints"))


def read_path(robot: Robot, path: Any, tolerance: float | None, where: str) -> Given:
    """Return the paths in what a user gives: see ``retime``.

    Example:
        >>> robot = torsor.library.two_link()
        >>> read_path(robot, [[0.0, 0.0], [3.0, 4.0]], None, "example").path.breaks.tolist()  # the length
        [[0.0, 5.0]]
        >>> read_path(robot, ([0.0, 2.0], [[0.0, 0.0], [3.0, 4.0]]), None, "example").path.breaks.tolist()  # times
        [[0.0, 2.0]]
    """
    times, given = _parts(robot, path, where)
    q = real_array(given, where, "waypoints")
    batch = q.ndim == 3
    if q.ndim not in (2, 3) or q.shape[-1] != robot.nv or q.shape[-2] < 2 or not len(q):
        allowed = f"({robot.nv} numbers) in 2 rows or more, or several such paths"
        raise ModelError(describe(f"waypoints of shape {q.shape}", where=where, allowed=allowed))
    if q.shape[-2] > MOST_WAYPOINTS:
        found = f"{q.shape[-2]} waypoints"
        raise ModelError(describe(found, where=where, allowed=f"{MOST_WAYPOINTS} or fewer", fix="leave some out"))
    q = q if batch else q[None]
    step = q[:, 1:] - q[:, :-1]
    squares = (step * step).sum(axis=-1)
    if not 0 < squares.min() <= squares.max() < np.inf:  # NaN too
        _check_points(q if batch else q[0], where)
    if tolerance is not None:
        if times is not None:
            found = "a tolerance for a trajectory with times"
            raise ModelError(describe(found, where=where, fix="give its positions alone, or no tolerance"))
        return Given(JointPath.blended(q, positive(tolerance, where, "tolerance")), batch)
    if times is not None:
        return Given(JointPath.through(_times(times, q.shape[1], where), q), batch)
    s = np.zeros(q.shape[:2])
    np.add.accumulate(np.sqrt(squares), axis=1, out=s[:, 1:])
    return Given(JointPath.through(s, q), batch)


def _check_points(q: Array, where: str) -> None:
    """Raise the error of waypoints (K, n) or (B, K, n) that are not finite, or without a distance between them."""
    if not np.isfinite(q).all():
        at = [int(k) for k in np.argwhere(~np.isfinite(q))[0]]
        raise ModelError(describe(f"waypoints{at} is {q[tuple(at)]}", where=where, allowed="finite numbers"))
    step = np.diff(q, axis=-2)
    with np.errstate(over="ignore"):
        wrong = ~np.isfinite(step) | ~np.isfinite(step**2)
    if wrong.any():
        at = [int(k) for k in np.argwhere(wrong)[0]]
        raise ModelError(describe(f"waypoints{at} is {q[tuple(at)]:g}", where=where, allowed="smaller distances"))
    *which, k = (int(each) for each in np.argwhere((step**2).sum(axis=-1) == 0)[0])
    found = f"waypoints {k} and {k + 1}{f' of path {which[0]}' if which else ''} are equal"
    raise ModelError(describe(found, where=where, fix="leave one out"))


def _parts(robot: Robot, path: Any, where: str) -> tuple[Any, Any]:
    """Return the times, None for waypoints, and the positions of what is given."""
    if isinstance(path, Mapping):
        return _message(robot, path, where)
    if hasattr(path, "times") and hasattr(path, "q") and not callable(path.q):
        return path.times, path.q
    if isinstance(path, tuple) and len(path) == 2 and np.ndim(path[1]) > np.ndim(path[0]) == 1:
        return path
    return None, path


def _times(times: Any, count: int, where: str) -> Array:
    found = real_array(times, where, "times")
    steps = found[1:] - found[:-1] if found.shape == (count,) else np.zeros(1)
    if not 0 < steps.min() <= steps.max() < np.inf:  # NaN too
        raise ModelError(describe("times of the path", where=where, allowed=f"{count} increasing finite numbers"))
    return found


def _message(robot: Robot, message: Mapping[str, Any], where: str) -> tuple[Any, Any]:
    """Return the times and positions of a JointTrajectory of ROS, its joints in the order of the robot."""
    try:
        names, points = list(message["joint_names"]), list(message["points"])
        positions = np.array([point["positions"] for point in points], dtype=float)
        stamps = [point["time_from_start"] for point in points]
        times = [float(each["sec"]) + NANO * float(each.get("nanosec", 0)) for each in stamps]
    except (KeyError, TypeError, ValueError, AttributeError):
        allowed = "joint_names, and points with positions and time_from_start {sec, nanosec}"
        raise ModelError(describe("no JointTrajectory", where=where, allowed=allowed)) from None
    wanted = list(robot.coordinate_names)
    if sorted(map(str, names)) != sorted(wanted) or positions.shape != (len(points), len(names)):
        found = f"joint_names {', '.join(map(str, names))}"
        raise ModelError(describe(found, where=where, allowed=f"{', '.join(wanted)}, in any order"))
    return times, positions[:, [names.index(name) for name in wanted]]
