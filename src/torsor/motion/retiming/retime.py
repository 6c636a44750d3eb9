"""``retime``: the fastest timing of a joint path within bounds."""

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array, Flags, Indices
from torsor.base.checks import number, real_array, whole_number
from torsor.base.errors import ModelError
from torsor.compiler import compile
from torsor.compiler.repeat import Call, Workspace, narrow
from torsor.mechanism.mechanism import force_units
from torsor.motion.retiming.bounds import KINDS, Bounds, RowKernel
from torsor.motion.retiming.given import check_retimable, read_path
from torsor.motion.retiming.path import Grid, JointPath, Timing
from torsor.motion.retiming.result import Retimed
from torsor.motion.retiming.smooth import intervals_of, smooth_timing
from torsor.robot.robot import Robot

# The fastest timing of a path by reachability analysis (Pham and Pham 2018), as compiled branch-free functions.
#
# On a grid, u = s'' is constant in each interval of length h, so x = s'^2 changes by 2 h u. Bounds are rows L <= a u +
# b x <= H at both ends of an interval, with x + 2 h u instead of x at the second end. Signs are chosen such that a >=
# 0. Two rows i, j allow some u if
#
#     x (a_j b_i - a_i b_j) <= a_j H_i - a_i L_j
#
# and the same with i and j exchanged (Fourier and Motzkin). Pairs of rows of one interval bound its first x, for all
# intervals simultaneously. Their pairs with the row of the next interval, lo' <= 2 h u + x <= hi', are affine in lo'
# and hi'. The backward pass is therefore a minimum of affine functions of two numbers. So is the forward pass, which
# takes the largest u of the controllable set.

LARGEST_X = 1e30  # represents an unbounded x
TINY = 1e-300
NO_BOUND_OFFSET = LARGEST_X * TINY  # added to a number before division by TINY, so that 0 <= 0 is no bound
MIN_INERTIA_RATIO = 1e-11  # ratio of a to 2 h b below which a row bounds x but not u
MAX_ROWS_PAIRED = 16  # largest number of rows at a knot whose pairs are one function; larger ones compile slowly
ROUNDING_TOLERANCE = 1e-9  # amount of x by which the ends of a controllable set may cross
MAX_CACHED_SIZES = 64  # problem sizes


class Profile(NamedTuple):
    """Timings of B paths: ``x`` and ``times`` (B, G + 1) at the knots, and ``u`` = s'' (B, G) in the intervals.

    The controllable sets are the intervals from ``low`` to ``high``. ``failing`` (B, G) flags intervals without a
    timing: a set at one end is empty or does not contain x, or the duration is not finite.
    """

    x: Array
    times: Array
    u: Array
    low: Array
    high: Array
    failing: Flags


def fastest(rows: Array, most: Array, h: Array, start: ArrayLike, end: ArrayLike) -> Profile:
    """Return the fastest timing of B paths with G intervals of lengths h (B, G).

    ``rows`` (B, G + 1, 4, r) are a, b and the bounds low, high at the knots, ``most`` (B, G + 1) is the largest x
    within velocity bounds, and ``start`` and ``end`` (B, 1) are the x at both ends. If a controllable set is empty, low
    exceeds high, and x is meaningless.
    """
    count, knots, _, r = rows.shape
    work = _passes(r, count, knots)
    room = work.take()
    arrays = room.arrays
    arrays["rows"][:], arrays["most"][:], arrays["h"][:] = rows, most, h
    arrays["x"][:, :1], arrays["sets"][:, -1] = start, end
    room.run()
    timing, times = arrays["timing"].copy(), np.zeros((count, knots))
    np.add.accumulate(timing[..., 0], axis=1, out=times[:, 1:])
    x, sets = arrays["x"].copy(), arrays["sets"].copy()
    work.give_back(room)
    return Profile(x, times, timing[..., 1], sets[..., 0], sets[..., 1], timing[..., 2] != 0)


@lru_cache(maxsize=MAX_CACHED_SIZES)
def _passes(r: int, count: int, knots: int) -> Workspace:
    """Return both passes for r rows at ``knots`` knots of ``count`` paths."""
    m, G, kernels = 2 * r, knots - 1, _kernels(r, narrow(count))
    shapes = {"rows": (count, knots, 4, r), "most": (count, knots), "h": (count, G), "x": (count, knots)}
    shapes |= {"sets": (count, knots, 2), "timing": (count, G, 3), "back": (count, G, 2 + 4 * m)}
    shapes |= {"ahead": (count, G, 2 * m), "own": (count, G if r > MAX_ROWS_PAIRED else 0, m, 4)}

    def calls(arrays: dict[str, Array]) -> list[Call]:
        rows, most, h, x, sets, timing, back, ahead, interval_rows = arrays.values()
        ends = [part for array in (sets, most, x) for part in (array[:, :-1], array[:, 1:])]
        by_knot, several, made = sets.swapaxes(0, 1), [], [back, ahead]
        if r > MAX_ROWS_PAIRED:
            made.append(interval_rows)
            interval_rows = interval_rows.reshape(-1, m, 4)
            each, best = (
                np.broadcast_to(interval_rows, (m, *interval_rows.shape))
                for interval_rows in (interval_rows, back.reshape(-1, 2 + 4 * m)[:, :2])
            )
            several = [Call(kernels["pairs"], [each, interval_rows.swapaxes(0, 1), best], [best])]
        return [
            Call(kernels["interval"], [rows[:, :-1], rows[:, 1:], h], made),
            *several,
            Call(kernels["backward"], [back.swapaxes(0, 1)[::-1], most.T[-2::-1], by_knot[:0:-1]], [by_knot[-2::-1]]),
            Call(kernels["forward"], [ahead.swapaxes(0, 1), by_knot[1:], x.T[:-1]], [x.T[1:]]),
            Call(kernels["timing"], [*ends, h], [timing]),
        ]

    return Workspace(shapes, calls)


@cache
def _kernels(r: int, width: int | None) -> dict[str, Any]:
    """Return the compiled functions for r rows at each knot; ``width`` applies to the passes."""
    m = 2 * r
    results = [(2 + 4 * m,), (2 * m,), *([] if r <= MAX_ROWS_PAIRED else [(m, 4)])]
    return {
        "interval": compile(_interval(r), inputs=[(4, r), (4, r), ()], outputs=results),
        "pairs": compile(_pairs(m), inputs=[(m, 4), (4,), (2,)], outputs=[(2,)]),
        "backward": compile(_backward(m), inputs=[(2 + 4 * m,), (), (2,)], outputs=[(2,)], width=width),
        "forward": compile(_forward(m), inputs=[(2 * m,), (2,), ()], outputs=[()], width=width),
        "timing": compile(_timing(), inputs=[(2,), (2,), (), (), (), (), ()], outputs=[(3,)]),
    }


def _interval(r: int) -> ca.Function:
    """Return the limits of x, the affine functions of both passes and, if there are many, the rows of an interval."""
    left, right, h = ca.SX.sym("left", 4, r), ca.SX.sym("right", 4, r), ca.SX.sym("h")
    step, signed = 2 * h, []
    for at, ahead in ((left, 0), (right, step)):
        a, b, low, high = ca.vertsplit(at)
        a = a + ahead * b
        turned = a < 0
        sign = ca.if_else(turned, -1, 1)
        signed.append(ca.vertcat(sign * a, sign * b, ca.if_else(turned, -low, high), ca.if_else(turned, -high, low)).T)
    rows = ca.vertcat(*signed)
    a, b, high, low = ca.horzsplit(rows)
    d = step * b - a  # for the pair with the row of the next interval
    size, behind = ca.fmax(ca.fabs(d), TINY), d < 0
    ratio, by_high, by_low = a / size, (step * high + NO_BOUND_OFFSET) / size, (step * low - NO_BOUND_OFFSET) / size
    affine = [
        ca.if_else(behind, ratio, 0),
        ca.if_else(behind, 0, -ratio),
        ca.if_else(behind, -by_low, by_high),
        ca.if_else(behind, -by_high, by_low),
    ]
    free = a <= MIN_INERTIA_RATIO * ca.fabs(step * b)
    inverse = step / ca.if_else(free, 1, ca.fmax(a, TINY))
    forward = [ca.if_else(free, 0, 1 - b * inverse), ca.if_else(free, LARGEST_X, high * inverse)]
    least, most = ca.SX(0), ca.SX(LARGEST_X)
    if r <= MAX_ROWS_PAIRED:
        for k in range(1, 2 * r):
            lower, upper = _limits(rows[:k, :], rows[k, :])
            least, most = ca.fmax(least, lower), ca.fmin(most, upper)
    results = [ca.vertcat(least, most, *affine), ca.vertcat(*forward), *([] if r <= MAX_ROWS_PAIRED else [rows])]
    return ca.Function("retiming_interval", [left, right, h], [ca.cse(result) for result in results])


def _limits(rows: ca.SX, row: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return the limits of x due to the pairs of one row with other rows (K, 4)."""
    a, b, high, low = ca.horzsplit(row)
    others, others_b, others_high, others_low = ca.horzsplit(rows)
    d = others * b - a * others_b
    first, second = others * high - a * others_low + NO_BOUND_OFFSET, a * others_high - others * low + NO_BOUND_OFFSET
    size, positive = ca.fmax(ca.fabs(d), TINY), d > 0
    least = -ca.if_else(positive, second, first) / size
    return ca.mmax(least), ca.mmin(ca.if_else(positive, first, second) / size)


def _pairs(m: int) -> ca.Function:
    """Return the limits of x due to all pairs with an additional row."""
    rows, row, best = ca.SX.sym("rows", m, 4), ca.SX.sym("row", 4), ca.SX.sym("best", 2)
    lower, upper = _limits(rows, row.T)
    result = ca.vertcat(ca.fmax(best[0], lower), ca.fmin(best[1], upper))
    return ca.Function("retiming_pairs", [rows, row, best], [result])


def _backward(m: int) -> ca.Function:
    """Return the controllable set (low, high) of an interval from the set of the next one."""
    interval, most, after = ca.SX.sym("found", 2 + 4 * m), ca.SX.sym("most"), ca.SX.sym("after", 2)
    limits, affine = ca.vertsplit(interval, [0, 2, 2 + 4 * m])
    same, other, high, low = ca.vertsplit(affine, m)
    high = ca.vertcat(limits[1], most, same * after[1] + other * after[0] + high)
    low = ca.vertcat(limits[0], same * after[0] + other * after[1] + low)
    return ca.Function("retiming_backward", [interval, most, after], [ca.vertcat(ca.mmax(low), ca.mmin(high))])


def _forward(m: int) -> ca.Function:
    """Return the largest x of the next knot that is reachable from x."""
    interval, after, x = ca.SX.sym("found", 2 * m), ca.SX.sym("after", 2), ca.SX.sym("x")
    slope, offset = ca.vertsplit(interval, m)
    reached = ca.mmin(slope * x + offset)
    return ca.Function("retiming_forward", [interval, after, x], [ca.fmax(ca.fmin(reached, after[1]), after[0])])


def _timing() -> ca.Function:
    """Return the time, u, and a flag, which is 1 for an interval without a timing and otherwise 0."""
    sets, most, x = (
        [ca.SX.sym(name, *size) for _ in range(2)] for name, size in (("set", (2,)), ("most", ()), ("x", ()))
    )
    h, fits = ca.SX.sym("h"), x[0] + x[1] > 0
    for (low, high), largest, speed in zip(map(ca.vertsplit, sets), most, x, strict=True):
        size = ROUNDING_TOLERANCE * ca.fmax(high, 1e-6 * ca.fmin(largest, 1))
        for lower, upper in ((low, high), (low, speed), (speed, high), (speed, largest)):
            fits = ca.logic_and(fits, lower <= upper + size)
    time = 2 * h / (ca.sqrt(x[0]) + ca.sqrt(x[1]))
    result = ca.vertcat(time, (x[1] - x[0]) / (2 * h), ca.if_else(fits, 0, 1))
    return ca.Function("retiming_timing", [*sets, *most, *x, h], [result])


# The reason why a path has no timing within the bounds, with location and numbers.


def cause(
    rows: RowKernel, table: Array, most: Array, found: Profile, s: Array, speeds: tuple[float, float], where: str
) -> ModelError:
    """Return the error for a path without a timing; ``table`` (G + 1, 4, r) and other arrays are those of the path."""
    if len(found.u) == 1 and not any(speeds):
        message = "the grid has only one interval from rest to rest"
        return ModelError(message, where=where, allowed="2 or more", fix="use more knots")
    low, high = table[:, 2], table[:, 3]
    held = np.maximum(low, -high)
    if (held > 0).any():
        k, row = (
            int(index) for index in np.unravel_index(np.argmax(held / np.maximum(high - low, 1e-300)), held.shape)
        )
        kind, name = rows.names[row]
        place = f"at {name!r}, at s = {s[k]:.4g} of {s[-1]:.4g}"
        fix = "use a larger bound, a smaller load or another path"
        if kind != "torque":  # a row is one side of the polygon inscribed in the circle of the magnitude
            return ModelError(f"standing still exceeds the {kind} bound {place}", where=where, fix=fix)
        unit = force_units(rows.robot).get(name, "N m")
        most_torque = (high[k, row] - low[k, row]) / 2
        message = f"standing still needs {abs(held[k, row]) + most_torque:.4g} {unit} of torque {place}"
        return ModelError(message, where=where, allowed=f"{most_torque:.4g} {unit}", fix=fix)
    if found.x[-1] > most[-1]:
        allowed = f"0 to {speeds[1] * np.sqrt(most[-1] / found.x[-1]):.6g}, from the velocity bounds"
        return ModelError(argument="end", value=float(speeds[1]), where=where, allowed=allowed)
    if found.x[0] > found.high[0] >= found.low[0]:
        fastest = speeds[0] * np.sqrt(max(found.high[0], 0.0) / found.x[0])
        allowed = f"0 to {fastest:.6g} (a faster motion cannot brake in time)"
        return ModelError(argument="start", value=float(speeds[0]), where=where, allowed=allowed)
    if found.x[0] < found.low[0] <= found.high[0]:
        allowed = "more (a slower motion cannot reach the end within the bounds)"
        return ModelError(argument="start", value=float(speeds[0]), where=where, allowed=allowed)
    empty = np.flatnonzero(~(found.low <= found.high))
    k = int(empty[-1]) if len(empty) else int(np.argmin(found.x[1:] + found.x[:-1]))
    message = f"no speed is within the bounds at s = {s[k]:.4g} of {s[-1]:.4g}"
    return ModelError(message, where=where, fix="use wider bounds, a lower speed at the end, or another path")


MAX_CACHED_BOUNDS = 64  # number of cached sets of bounds per robot
MAX_FRICTION_ROUNDS = 20  # successive timings, each with friction at the speeds of the previous one
CONVERGENCE_TOLERANCE = 1e-10  # change relative to the largest x
MAX_REFINEMENTS = 6  # largest number of grid refinements
CHECKED_FRACTIONS = np.linspace(0.0, 1.0, 9)  # interval fractions at which the excess is checked
TARGET_EXCESS = 2e-3  # fraction of a bound by which it may be exceeded between knots
# Margin below which a bound counts as reached, and largest share of the time of intervals without a reached bound.
IDLE_MARGIN, MAX_IDLE_SHARE = 1e-3, 5e-4
MAX_PARTS = 6  # largest number of parts of an interval in one refinement
SLOWDOWN_DIVISOR = 4.0  # divisor of x if no timing exists with friction at that speed


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
) -> Retimed | tuple[Retimed, ...]:
    """Return the fastest timing of a joint path within bounds as a ``Retimed``, or a tuple of them for a batch.

    ``path`` is one of the following:

    - waypoints (K, n) in rad and m, or (B, K, n) for B paths
    - a joint trajectory: (times, positions), a result with ``times`` and ``q``, or a motion document (``to_dict``)
    - a ROS JointTrajectory as a dictionary
    - a ``Retimed``, whose path is used unchanged

    The motion follows the cubic spline through the waypoints over the path length (or over the times). With a
    ``tolerance`` (rad, m), it follows straight lines between the waypoints, with corners blended within that distance.
    If two waypoints are closer than half the tolerance, one of them is omitted with a warning, so that corners are not
    too short. The velocities of a trajectory are not used; with a tolerance, its times are not used either.

    Bounds are one number, one per coordinate, {name: number}, or (n, 2) lower and upper bounds (equal in magnitude for
    ``jerk`` and ``torque_rate``). ``velocity`` (rad/s, m/s) and ``torque`` (N m, N) default to the robot's limits,
    including for names that a table omits. ``acceleration`` (rad/s^2, m/s^2), ``jerk`` (rad/s^3, m/s^3) and
    ``torque_rate`` (N m/s, N/s) are unbounded by default. ModelError is raised for a coordinate without a velocity
    limit, or with neither torque nor acceleration bounds. To leave a velocity unbounded, pass np.inf. To leave a
    coordinate without torque and acceleration bounds, pass both arguments; at least one coordinate must be bounded.
    ``reactions`` {joint: {"force": N, "moment": N m}} bounds the magnitudes of the joint reactions
    (``Robot.joint_wrenches``). Payloads are part of the robot (``robot.with_payload``).

    ``start`` and ``end`` are the speeds at the ends (norms of the joint velocities). With jerk or torque-rate bounds,
    both must be 0. The bounds hold on both sides of every grid knot. ``knots`` is the number of intervals per path
    piece, or an array of values of the path parameter s (path length, or time if the path has times). By default, the
    grid is refined, at most 6 times, where a bound is exceeded by more than 0.2 % between knots or where no bound is
    reached. The remaining excess is ``result.excess``.

    The method is reachability analysis (Pham and Pham 2018), with x = (ds/dt)^2 linear in s between knots. Friction is
    linearised at the speeds of the previous timing, and the timing is repeated until it converges (at most 20 times).
    With jerk or torque-rate bounds, d2s/dt2 is continuous, and an interior-point method minimises the time on a grid
    that is not refined.

    Example:
        >>> motion = retime(torsor.library.two_link(), [[0, 0], [1, 1], [2, 0]], velocity=2.0, acceleration=5.0)
        >>> bool(abs(motion.v).max() <= 2.0 + 1e-9), bool(abs(motion.a).max() <= 5.0 + 1e-9)
        (True, True)
        >>> end = motion.at(motion.duration)
        >>> end.q.round(9).tolist(), bool(abs(end.v).max() < 1e-9)
        ([2.0, 0.0], True)
    """
    check_retimable(robot)
    where = f"{robot.name}: retime"
    if robot.target.dtype != "float64" or robot.target.device == "cuda":
        robot = robot.to(dtype="float64", device="cpu")
    named_bounds = dict(zip(KINDS, (velocity, acceleration, jerk, torque, torque_rate), strict=True))
    bounds, rows = _bounds(robot, named_bounds, reactions)
    paths, batch, first = read_path(robot, path, tolerance, where)
    if first and np.ndim(knots):
        knots = real_array(knots, where, "knots") - first
    speeds = number(start, where, "start", least=0.0), number(end, where, "end", least=0.0)
    settings = {"start": speeds[0], "end": speeds[1], "tolerance": tolerance}
    # A shared grid for all paths of a batch would be much finer than each path needs.
    parts = paths if knots is not None else [path.path(b) for path in paths for b in range(len(path.breaks))]
    retimed: list[Retimed] = []
    for b, part in enumerate(parts):
        here = where if len(parts) == 1 else f"{where}: path {b}"
        retimed += _timed(rows, bounds, part, knots, settings, here)
    return tuple(retimed) if batch else retimed[0]


def _timed(
    rows: RowKernel, bounds: Bounds, paths: JointPath, knots: Any, settings: dict[str, Any], where: str
) -> list[Retimed]:
    """Return the timings of paths on the same grid."""
    speeds = settings["start"], settings["end"]
    if np.ndim(knots):
        grid = Grid.at(paths, real_array(knots, where, "knots").ravel(), where)
    else:
        grid = Grid.even(paths, None if knots is None else whole_number(knots, where, "knots", most=10_000))
    profile = _profile(rows, paths, grid, speeds, where)
    if bounds.smooth:
        count = intervals_of(paths, where) if knots is None else len(grid.piece)
        if any(speeds):
            message = f"start is {speeds[0]:g} and end {speeds[1]:g}, with jerk or torque-rate bounds"
            raise ModelError(message, where=where, allowed="0 and 0, from rest to rest")
        single = [paths.path(b) for b in range(len(paths.breaks))]
        return [
            Retimed(rows.robot, path, smooth_timing(rows, bounds, path, least, count, where), bounds, settings)
            for path, least in zip(single, profile.times[:, -1].tolist(), strict=True)
        ]
    for _ in range(MAX_REFINEMENTS if knots is None else 0):
        parts = _needed(rows, paths, grid, profile)
        if parts.max() == 1:
            break
        grid = grid.split(parts)
        profile = _profile(rows, paths, grid, speeds, where)
    piece, way = grid.knots
    s = paths.breaks.take(piece, axis=1) + way
    s[:, -1] = paths.breaks[:, -1]
    none, retimed = np.zeros(len(grid.piece)), []
    for b in range(len(s)):
        timing = Timing(profile.times[b], s[b], profile.x[b], profile.u[b], none)
        retimed.append(Retimed(rows.robot, paths.path(b), timing, bounds, settings))
    return retimed


def _bounds(robot: Robot, given: Mapping[str, Any], reactions: Any) -> tuple[Bounds, RowKernel]:
    """Return the bounds and their rows along a path; recent ones are cached."""
    known: dict[Any, tuple[Bounds, RowKernel]] = robot.kernels.once("bounds of retiming", dict)
    key = *map(_key, given.values()), _key(reactions)
    result = known.get(key)
    if result is None:
        bounds = Bounds.of(robot, given, reactions)
        if len(known) >= MAX_CACHED_BOUNDS:
            known.clear()
        result = known[key] = bounds, RowKernel.of(robot, bounds)
    return result


def _key(value: Any) -> Any:
    """Return a hashable key for arguments: numbers, arrays, and dicts and lists of them."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (float, int)):
        return type(value), value
    if isinstance(value, Mapping):
        return "table", *((name, _key(entry)) for name, entry in value.items())
    if isinstance(value, list | tuple):
        return tuple(_key(entry) for entry in value)
    array = np.asarray(value)
    return array.shape, array.dtype.str, array.tobytes()


def _profile(rows: RowKernel, paths: JointPath, grid: Grid, speeds: tuple[float, float], where: str) -> Profile:
    """Return the fastest timing, or raise an error that states why there is none."""
    piece, way = grid.knots
    table, most = rows.at(paths.pieces.take(piece, axis=1), way)
    start, end = (_at_end(paths, piece[k], way[:, k], speed) for k, speed in zip((0, -1), speeds, strict=True))
    profile = fastest(table, most, grid.h, start, end)
    if rows.has_friction and not np.count_nonzero(profile.failing):
        d1, x = paths.slopes(piece, way), profile.x
        turning = np.zeros(d1.shape, dtype=bool)
        turning[:, 1:] = np.sign(d1[:, 1:]) != np.sign(d1[:, :-1])
        turning[:, :-1] |= turning[:, 1:]
        for _ in range(MAX_FRICTION_ROUNDS):
            rubbed = rows.with_friction(table, d1, x, turning)
            profile = fastest(rubbed, most, grid.h, start, end)
            if np.count_nonzero(profile.failing):
                x = x / SLOWDOWN_DIVISOR  # the friction tangent of a high speed is too large at rest
                continue
            change, x = np.abs(profile.x - x).max(), profile.x
            if change <= CONVERGENCE_TOLERANCE * x.max():
                break
        table = rubbed
    if np.count_nonzero(profile.failing):
        b = int(np.argmax(profile.failing.any(axis=1)))
        here = f"{where}: path {b}" if len(most) > 1 else where
        s = paths.breaks[b, grid.piece] + np.broadcast_to(grid.first, profile.u.shape)[b]
        failed = Profile(*(array[b] for array in profile))
        raise cause(rows, table[b], most[b], failed, np.append(s, paths.breaks[b, -1]), speeds, here)
    return profile


def _at_end(paths: JointPath, piece: int, way: Array, speed: float) -> ArrayLike:
    """Return x (B, 1) for a speed (norm of the joint velocities) at an end of the paths."""
    if speed == 0:
        return 0.0
    slope = np.linalg.norm(paths.slopes(np.array([piece]), way[:, None]), axis=-1)
    return np.asarray((speed / np.maximum(slope, 1e-300)) ** 2)


def _needed(rows: RowKernel, paths: JointPath, grid: Grid, found: Profile) -> Indices:
    """Return the number of parts (G,) into which each interval should be divided.

    The excess between two knots decreases with the square of their distance. An interval in which no bound is reached
    contains a switch of s'', so a coarse grid costs time there.
    """
    x, time = found.x, np.diff(found.times)
    way, inner = (
        first[..., None] + CHECKED_FRACTIONS * change[..., None]
        for first, change in ((grid.first, grid.h), (x[:, :-1], np.diff(x)))
    )
    table, most = rows.at(paths.pieces[:, grid.piece, None], way)
    if rows.has_friction:
        shape, piece = (len(x), -1), np.repeat(grid.piece, len(CHECKED_FRACTIONS))
        table = rows.with_friction(table, paths.slopes(piece, way.reshape(shape)).reshape(*way.shape, -1), inner)
    a, b, low, high = (table[..., k, :] for k in range(4))
    value = a * found.u[..., None, None] + b * inner[..., None]
    left = 2 * (np.minimum(high - value, value - low) / (high - low)).min(axis=(-1, -2))
    speed = np.sqrt(inner / most)
    beyond, slow = np.maximum(-left, speed.max(axis=-1) - 1), 1 - speed.min(axis=-1)
    idle = (left > IDLE_MARGIN) & (slow > IDLE_MARGIN) & (time > MAX_IDLE_SHARE * time.sum(axis=1, keepdims=True))
    parts: Indices = np.ceil(np.sqrt(beyond.clip(0) / TARGET_EXCESS)).clip(1, MAX_PARTS).astype(int)
    needed: Indices = np.maximum(parts, np.where(idle, MAX_PARTS, 1)).max(axis=0)
    return needed
