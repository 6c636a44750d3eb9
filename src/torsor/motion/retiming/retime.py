"""``retime``: the fastest timing of a path within bounds."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array, Indices
from torsor.base.checks import number, real_array, whole_number
from torsor.base.errors import ModelError, describe
from torsor.motion.retiming.bounds import Bounds
from torsor.motion.retiming.causes import cause
from torsor.motion.retiming.given import check_retimable, read_path
from torsor.motion.retiming.path import Grid, JointPath
from torsor.motion.retiming.reachability import Profile, fastest
from torsor.motion.retiming.result import Retimed
from torsor.motion.retiming.rows import RowKernel
from torsor.motion.retiming.smooth import intervals_of, smooth_timing
from torsor.motion.retiming.timing import Timing
from torsor.robot.robot import Robot

MAX_CACHED_BOUNDS = 64  # sets of bounds of a robot
ROUNDS = 20  # timings in a row, each with friction at the speeds of the one before
CONVERGED = 1e-10  # of the largest x
REFINEMENTS = 6  # of the grid
CHECKED = np.linspace(0.0, 1.0, 9)  # parts of an interval at which it is decided whether to divide it
WANTED = 2e-3  # of a bound, that may be exceeded between knots
NEAR, LONG = 1e-3, 5e-4  # of a bound that is not reached in an interval, and of the time that such an interval may take
MOST_PARTS = 6  # of an interval, in one refinement
SLOWER = 4.0  # the divisor of x where friction at that speed leaves no timing


def retime(
    robot: Robot,
    path: Any,
    *,
    velocity: Any = None,
    acceleration: Any = None,
    jerk: Any = None,
    torque: Any = None,
    torque_rate: Any = None,
    reactions: Any = None,
    tolerance: float | None = None,
    start: float = 0.0,
    end: float = 0.0,
    knots: Any = None,
) -> Any:
    """Return the fastest timing of a path of the joints within bounds, a ``Retimed``; a tuple of them for a batch.

    ``path`` are waypoints (K, n) in rad and m, or (B, K, n) for B paths; or a joint trajectory: (times, positions), a
    result with ``times`` and ``q`` or the document of one, or a JointTrajectory of ROS as a dictionary. The path of a
    ``Retimed`` is used as it is. The motion goes exactly through the waypoints, on the cubic spline over the length of
    the path (or over the times); with a ``tolerance`` (rad, m) it is straight between them, with corners blended at
    that distance; waypoints within half of it of another one are left out with a warning, so that corners are not too
    short. Velocities of a trajectory, and its times where there is a tolerance, are not used.

    Bounds are one number for all coordinates, one for each, {name: number}, or (n, 2) lower and upper ones: of
    ``velocity`` (rad/s, m/s) and ``torque`` (N m, N) by default those of the robot, also for names that a table leaves
    out, of ``acceleration``, ``jerk`` and ``torque_rate`` none by default. A coordinate without a velocity limit, or
    without both torque and acceleration bounds, is an error: np.inf says that there is none. ``reactions`` are
    {joint: {"force": N, "moment": N m}}, bounds of the magnitude of what the joint transmits
    (``Robot.joint_wrenches``). Payloads are those of the robot (``robot.with_payload``).

    The motion starts and ends at rest, or with a speed ``start`` and ``end``, the norm of the joint velocities. The
    bounds hold at both sides of every knot of a grid: ``knots`` is the number of intervals of each piece of the path,
    or an array of s; by default it is refined where a bound is exceeded by more than 0.2 % between knots. What is left
    is stated: ``result.excess``.

    Method: reachability analysis (Pham and Pham 2018), with x = (ds/dt)^2 linear in s between knots. Friction is
    exact in the limit of its iterations. With bounds of jerk or torque rate, ds^2/dt^2 is continuous, and the time is
    minimised by an interior-point method.

    Example:
        >>> motion = retime(torsor.library.two_link(), [[0, 0], [1, 1], [2, 0]], velocity=2.0, acceleration=5.0)
        >>> bool(abs(motion.v).max() <= 2.0 + 1e-9), bool(abs(motion.a).max() <= 5.0 + 1e-9)
        (True, True)
        >>> q, v, a = motion.at(motion.duration)
        >>> q.round(9).tolist(), bool(abs(v).max() < 1e-9)
        ([2.0, 0.0], True)
    """
    check_retimable(robot)
    where = f"{robot.name}: retime"
    if robot.target.dtype != "float64" or robot.target.device == "cuda":
        robot = robot.to(dtype="float64", device="cpu")
    given = {
        "velocity": velocity,
        "acceleration": acceleration,
        "jerk": jerk,
        "torque": torque,
        "torque_rate": torque_rate,
    }
    bounds, rows = _bounds(robot, given, reactions)
    paths, batch, first = read_path(robot, path, tolerance, where)
    if first and np.ndim(knots):
        knots = real_array(knots, where, "knots") - first
    speeds = number(start, where, "start", least=0.0), number(end, where, "end", least=0.0)
    settings = {"start": speeds[0], "end": speeds[1], "tolerance": tolerance}
    # A grid that is refined for all paths of a batch would be much finer than each of them needs.
    parts = paths if knots is not None else [each.path(b) for each in paths for b in range(len(each.breaks))]
    found: list[Retimed] = []
    for b, part in enumerate(parts):
        here = where if len(parts) == 1 else f"{where}: path {b}"
        found += _timed(rows, bounds, part, knots, settings, here)
    return tuple(found) if batch else found[0]


def _timed(
    rows: RowKernel, bounds: Bounds, paths: JointPath, knots: Any, settings: dict[str, Any], where: str
) -> list[Retimed]:
    """Return the timings of paths on the same grid."""
    grid, speeds = _grid(paths, knots, where), (settings["start"], settings["end"])
    profile = _profile(rows, paths, grid, speeds, where)
    if bounds.smooth:
        count = intervals_of(paths, where) if knots is None else len(grid.piece)
        return [
            _smooth(rows, bounds, paths.path(b), time, count, settings, where)
            for b, time in enumerate(profile.times[:, -1].tolist())
        ]
    for _ in range(REFINEMENTS if knots is None else 0):
        parts = _needed(rows, paths, grid, profile)
        if parts.max() == 1:
            break
        grid = grid.split(parts)
        profile = _profile(rows, paths, grid, speeds, where)
    piece, way = grid.knots
    s = paths.breaks.take(piece, axis=1) + way
    s[:, -1] = paths.breaks[:, -1]
    none, found = np.zeros(len(grid.piece)), []
    for b in range(len(s)):
        timing = Timing(profile.times[b], s[b], profile.x[b], profile.u[b], none)
        found.append(Retimed(rows.robot, paths.path(b), timing, bounds, settings))
    return found


def _bounds(robot: Robot, given: Mapping[str, Any], reactions: Any) -> tuple[Bounds, RowKernel]:
    """Return the bounds and what they mean along a path; those of the last calls are remembered."""
    known: dict[Any, tuple[Bounds, RowKernel]] = robot.kernels.once("bounds of retiming", dict)
    key = *map(_key, given.values()), _key(reactions)
    found = known.get(key)
    if found is None:
        bounds = Bounds.of(robot, given, reactions)
        if len(known) >= MAX_CACHED_BOUNDS:
            known.clear()
        found = known[key] = bounds, RowKernel.of(robot, bounds)
    return found


def _key(value: Any) -> Any:
    """Return the content of arguments: numbers, arrays, and tables and lists of them."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (float, int)):
        return type(value), value
    if isinstance(value, Mapping):
        return "table", *((name, _key(each)) for name, each in value.items())
    if isinstance(value, list | tuple):
        return tuple(_key(each) for each in value)
    array = np.asarray(value)
    return array.shape, array.dtype.str, array.tobytes()


def _smooth(
    rows: RowKernel,
    bounds: Bounds,
    path: JointPath,
    least: float,
    count: int,
    settings: dict[str, Any],
    where: str,
) -> Retimed:
    """Return the timing of one path within bounds of jerk and torque rate."""
    if settings["start"] or settings["end"]:
        found = f"start is {settings['start']:g} and end {settings['end']:g}, with bounds of jerk or torque rate"
        raise ModelError(describe(found, where=where, allowed="0 and 0, from rest to rest"))
    return Retimed(rows.robot, path, smooth_timing(rows, bounds, path, least, count, where), bounds, settings)


def _grid(paths: JointPath, knots: Any, where: str) -> Grid:
    if knots is None or np.ndim(knots) == 0:
        return Grid.even(paths, None if knots is None else whole_number(knots, where, "knots", most=10_000))
    return Grid.at(paths, real_array(knots, where, "knots").ravel(), where)


def _profile(rows: RowKernel, paths: JointPath, grid: Grid, speeds: tuple[float, float], where: str) -> Profile:
    """Return the fastest timing, or raise the error that says why there is none."""
    piece, way = grid.knots
    table, most = rows.at(paths.pieces.take(piece, axis=1), way)
    start, end = (_at_end(paths, piece[k], way[:, k], speed) for k, speed in zip((0, -1), speeds, strict=True))
    found = fastest(table, most, grid.h, start, end)
    if rows.has_friction and not np.count_nonzero(found.failing):
        d1, x = paths.at(piece, way)[1], found.x
        turning = np.zeros(d1.shape, dtype=bool)
        turning[:, 1:] = np.sign(d1[:, 1:]) != np.sign(d1[:, :-1])
        turning[:, :-1] |= turning[:, 1:]
        for _ in range(ROUNDS):
            rubbed = rows.with_friction(table, d1, x, turning)
            found = fastest(rubbed, most, grid.h, start, end)
            if np.count_nonzero(found.failing):
                x = x / SLOWER  # the tangent of friction at a high speed is too large at rest
                continue
            change, x = np.abs(found.x - x).max(), found.x
            if change <= CONVERGED * x.max():
                break
        table = rubbed
    if np.count_nonzero(found.failing):
        b = int(np.argmax(found.failing.any(axis=1)))
        here = f"{where}: path {b}" if len(most) > 1 else where
        s = paths.breaks[b, grid.piece] + np.broadcast_to(grid.first, found.u.shape)[b]
        raise ModelError(cause(rows, table[b], most[b], found.path(b), np.append(s, paths.breaks[b, -1]), speeds, here))
    return found


def _at_end(paths: JointPath, piece: int, way: Array, speed: float) -> ArrayLike:
    """Return x (B, 1) of a speed, the norm of the joint velocities, at an end of the paths."""
    if speed == 0:
        return 0.0
    slope = np.linalg.norm(paths.at(np.array([piece]), way[:, None])[1], axis=-1)
    return np.asarray((speed / np.maximum(slope, 1e-300)) ** 2)


def _needed(rows: RowKernel, paths: JointPath, grid: Grid, found: Profile) -> Indices:
    """Return into how many parts (G,) intervals are to be divided.

    What is exceeded between two knots falls with the square of their distance. An interval in which no bound is reached
    has a switch within: there s'' should change, which costs time.
    """
    x, time = found.x, np.diff(found.times)
    way, inner = (
        first[..., None] + CHECKED * change[..., None]
        for first, change in ((grid.first, grid.h), (x[:, :-1], np.diff(x)))
    )
    table, most = rows.at(paths.pieces[:, grid.piece, None], way)
    if rows.has_friction:
        shape, piece = (len(x), -1), np.repeat(grid.piece, len(CHECKED))
        table = rows.with_friction(table, paths.at(piece, way.reshape(shape))[1].reshape(*way.shape, -1), inner)
    a, b, low, high = (table[..., k, :] for k in range(4))
    value = a * found.u[..., None, None] + b * inner[..., None]
    left = 2 * (np.minimum(high - value, value - low) / (high - low)).min(axis=(-1, -2))
    speed = np.sqrt(inner / most)
    beyond, slow = np.maximum(-left, speed.max(axis=-1) - 1), 1 - speed.min(axis=-1)
    idle = (left > NEAR) & (slow > NEAR) & (time > LONG * time.sum(axis=1, keepdims=True))
    parts: Indices = np.ceil(np.sqrt(beyond.clip(0) / WANTED)).clip(1, MOST_PARTS).astype(int)
    needed: Indices = np.maximum(parts, np.where(idle, MOST_PARTS, 1)).max(axis=0)
    return needed
