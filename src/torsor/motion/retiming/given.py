"""The paths that users give: waypoints, joint trajectories, and the message JointTrajectory of ROS."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from torsor.arrays import Array, real_numbers
from torsor.checks import positive, real_array
from torsor.errors import ModelError, describe, shortened
from torsor.motion.retiming.path import MOST_WAYPOINTS, JointPath
from torsor.robot.robot import Robot

NANO = 1e-9
FAR = 1e100  # rad, m: no waypoint, but a mistake
APART = 1e-6  # of a path: the least distance of the points of a spline


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
    numbers = real_numbers(given)
    if numbers is None:
        found = f"waypoints of type {type(given).__name__} that are no array of real numbers"
        allowed = f"(K, {robot.nv}) or (B, K, {robot.nv}), as many waypoints in each path"
        raise ModelError(describe(found, where=where, allowed=allowed))
    q = np.array(numbers, dtype=float)
    batch = q.ndim == 3
    if q.ndim not in (2, 3) or q.shape[-1] != robot.nv or q.shape[-2] < 2 or not len(q):
        allowed = f"({robot.nv} numbers) in 2 rows or more, or several such paths"
        raise ModelError(describe(f"waypoints of shape {q.shape}", where=where, allowed=allowed))
    if q.shape[-2] > MOST_WAYPOINTS:
        found = f"{q.shape[-2]} waypoints"
        raise ModelError(describe(found, where=where, allowed=f"{MOST_WAYPOINTS} or fewer", fix="leave some out"))
    if not np.maximum.reduce(np.abs(q), axis=None) < FAR:  # NaN too
        at = [int(k) for k in np.argwhere(~(np.abs(q) < FAR))[0]]
        raise ModelError(describe(f"waypoints{at} is {q[tuple(at)]:g}", where=where, allowed="finite numbers"))
    q = q if batch else q[None]
    step = q[:, 1:] - q[:, :-1]
    squares = np.add.reduce(step * step, axis=-1)
    if np.count_nonzero(squares) < squares.size:
        raise ModelError(describe(f"{_pair(squares, batch)} are equal", where=where, fix="leave one out"))
    if tolerance is not None:
        return Given(JointPath.blended(q, positive(tolerance, where, "tolerance")), batch)
    if times is None:
        steps, s = np.sqrt(squares), np.zeros(q.shape[:2])
        np.add.accumulate(steps, axis=1, out=s[:, 1:])
    else:
        s = _times(times, q.shape[1], where)
        steps = s[:, 1:] - s[:, :-1]
    if np.count_nonzero(steps < APART * (s[:, -1:] - s[:, :1])):
        found = f"{_pair(steps, batch)} are only {steps.min():.2g} apart"
        allowed = f"{APART:g} of the whole path, so that a spline through them is not lost in rounding"
        raise ModelError(describe(found, where=where, allowed=allowed, fix="leave one out"))
    return Given(JointPath.through(s, q), batch)


def _pair(distances: Array, batch: bool) -> str:
    """Return the names of the two waypoints with the smallest of some distances (B, K - 1)."""
    which, k = np.unravel_index(np.argmin(distances), distances.shape)
    return f"waypoints {k} and {k + 1}" + (f" of path {which}" if batch else "")


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
    """Return the times (1, K) of a trajectory."""
    found = real_array(times, where, "times")
    if found.shape != (count,) or np.count_nonzero(found[1:] > found[:-1]) < count - 1 or not np.isfinite(found).all():
        raise ModelError(describe("times of the path", where=where, allowed=f"{count} increasing finite numbers"))
    return found[None]


def _message(robot: Robot, message: Mapping[str, Any], where: str) -> tuple[Any, Any]:
    """Return the times and positions of a JointTrajectory of ROS, its joints in the order of the robot.

    It may be in a RobotTrajectory, or alone in a DisplayTrajectory. Without times, or with equal ones, there are none.
    """
    try:
        parts = message.get("trajectory", [message])
        message = (parts[0] if len(parts) == 1 else {}).get("joint_trajectory", message)
        names, points = list(message["joint_names"]), list(message["points"])
        positions = [list(point["positions"]) for point in points]
        times = [_seconds(point.get("time_from_start")) for point in points]
    except (KeyError, TypeError, ValueError, AttributeError):
        allowed = "joint_names, and points with positions, and perhaps time_from_start {sec, nanosec}"
        raise ModelError(describe("no JointTrajectory", where=where, allowed=allowed)) from None
    wanted = list(robot.coordinate_names)
    if sorted(map(str, names)) != sorted(wanted):
        found = f"joint_names {shortened(', '.join(map(str, names)))}"
        raise ModelError(describe(found, where=where, allowed=f"{', '.join(wanted)}, in any order"))
    wrong = next((k for k, each in enumerate(positions) if len(each) != len(names)), None)
    if wrong is not None:
        found = f"{len(positions[wrong])} positions in point {wrong}"
        raise ModelError(describe(found, where=where, allowed=f"{len(names)}, one for each of joint_names"))
    order = [names.index(name) for name in wanted]
    timed = len(set(times)) > 1 and None not in times
    return times if timed else None, [[each[k] for k in order] for each in positions]


def _seconds(stamp: Any) -> float | None:
    """Return a duration of ROS 2 {sec, nanosec} or ROS 1 {secs, nsecs} in seconds; None for none."""
    if stamp is None:
        return None
    whole, parts = ("secs", "nsecs") if "secs" in stamp else ("sec", "nanosec")
    return float(stamp[whole]) + NANO * float(stamp.get(parts, 0))
