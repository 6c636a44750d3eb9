"""Timings with continuous d2s/dt2 within jerk and torque-rate bounds, by an interior-point method.

With x = (ds/dt)^2, u = d2s/dt2 and w = du/ds, the rate of a row a u + b x + c is
sqrt(x) (a w + (a_s + 2 b) u + b_s x + c_s), where the index s denotes d/ds. For a = q_s, b = q_ss and c = 0, it is the
jerk. For the rows of joint forces, it is the torque rate. Both have the form of the loads in ``control/scaling``, whose
interior-point method over quadratic splines x(s) is applied here to the full path.

The splines describe the progress p of ``path.stretched``: near rest, where x(s) would be proportional to s^(4/3),
the rate of p is nearly constant.
"""

import math
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import casadi as ca
import numpy as np

from torsor.base.arrays import Array, Indices
from torsor.base.errors import ModelError
from torsor.compiler import AnyKernel, compile
from torsor.compiler.cache import source_hash
from torsor.control.scaling.path_dynamics import CHECKED_FRACTIONS, loads
from torsor.control.scaling.window import Kernels, Sampled, Window, kernels, solve
from torsor.motion.retiming.bounds import LARGEST_BOUND, POLYGON_SIDES, TINY, Bounds, RowKernel, on_path
from torsor.motion.retiming.path import BLEND_COEFFICIENTS, JointPath, Timing, progress, stretched

# Loads near the breaks of a path, which a grid with equal intervals may miss.
#
# Jerks and torque rates jump at the breaks of a spline, and a blended corner may be shorter than an interval.

# Tightening of an exceeded bound: factor relative to its use, and the largest factor.
TIGHTENING_FACTOR, MAX_TIGHTENING = 1.002, 1.2
SPLINE_PLACES, BLEND_PLACES = 9, 25  # number of points between a break and a knot at which loads are checked
REACHED_FRACTION = 0.98  # fraction of the largest x that counts as reached


def beside_breaks(path: JointPath, knots: Array) -> tuple[Indices, Array, Array]:
    """Return pieces, path parameters and fractions of the progress (P,) between each path break and the adjacent knots.

    The knots (G + 1) are values of the progress, in the unit of s.
    """
    first, length = knots[0], knots[-1] - knots[0]
    breaks = first + length * progress((path.breaks[0, 1:-1] - first) / length)
    ends = np.union1d(knots, breaks)
    beside = np.isin(ends[:-1], breaks) | np.isin(ends[1:], breaks)
    start, step = ends[:-1][beside], np.diff(ends)[beside]
    places = np.linspace(0.0, 1.0, BLEND_PLACES if path.pieces.shape[2] == BLEND_COEFFICIENTS else SPLINE_PLACES)
    part = (start[:, None] + places * step[:, None] - first) / length
    piece = path.piece_of(first + length * stretched((start + step / 2 - first) / length)[0])
    return np.repeat(piece, len(places)), (first + length * stretched(part)[0]).ravel(), part.ravel()


class PathWindow(Window):
    """A window over a full path; its ``uses`` include additional points.

    ``at`` (P, parts * r + 2) contains the coefficients at the fractions ``parts`` (P,) of the progress.
    """

    def __init__(self, kernels: Kernels, samples: Sampled, ratio: Array, count: int, parts: Array, at: Array):
        super().__init__(kernels, samples, ratio, count, count, 1.0)
        self._of = np.minimum((parts * count).astype(int), count - 1)
        self._part, self._at, self._ratio = parts * count - self._of, at, ratio
        self._use = _use(len(ratio), (at.shape[1] - 2) // len(ratio))

    def uses(self) -> Generator[None, None, Array]:
        """Return the largest ratio (n,) of a quantity to its bound in each interval; yield after each kernel call."""
        result = yield from super().uses()
        t0, t1, t2 = (self.points[self._of + k] for k in range(3))
        part, h = self._part, self._samples.spacing
        w, first = (t2 - 2 * t1 + t0) / (2 * h**2), (t1 - t0) / (2 * h)
        x = (t0 + t1) / 2 + h * part * (2 * first + h * part * w)
        np.maximum.at(result, self._of, self._use(self._at, self._ratio, w, first + h * part * w, x))
        return result

    def tighten(self, uses: Array) -> None:
        """Tighten the bounds for the next search in intervals where they were exceeded, and in neighbouring intervals.

        The largest x is reduced where the last search reached it.
        """
        near = np.maximum(uses, np.maximum(np.append(uses[1:], 0.0), np.append(0.0, uses[:-1])))
        more = np.where(near > 1, np.minimum(TIGHTENING_FACTOR * near, MAX_TIGHTENING), 1.0)
        self.tight = self.tight * more
        if self.feasible is not None:
            fastest = self._own[: self.n, 0]
            fastest /= np.where(self.feasible[1:-1] > REACHED_FRACTION * fastest, more, 1.0) ** 2


@cache
def _use(r: int, parts: int) -> AnyKernel:
    """Return the largest relative load, rate and speed of r rows; infinite if x < 0."""
    at, ratio = ca.SX.sym("at", parts * r + 2), ca.SX.sym("ratio", r)
    w, u, x = (ca.SX.sym(name) for name in "wux")
    load, rate, *_ = loads(ca.vertsplit(at[:-2], r), ratio, w, u, x)
    most = ca.fmax(ca.mmax(ca.fabs(ca.vertcat(load, rate))), ca.sqrt(x / at[-2]))
    return compile(ca.Function("use", [at, ratio, w, u, x], [ca.if_else(x > 0, most, np.inf)]))


INTERVAL_MULTIPLE = 200  # the number of intervals of a path is a multiple of this
# For splines: default and fewest intervals per piece, most per path.
INTERVALS_PER_PIECE, MIN_INTERVALS_PER_PIECE, MAX_INTERVALS = 24, 12, 6000
# For blends: intervals of the shortest piece, and most intervals per path.
INTERVALS_PER_BLEND, MAX_BLEND_INTERVALS = 8.0, 4000
CHECKED_PLACES = np.array([0.0, *CHECKED_FRACTIONS, 1.0])  # interval fractions: ends and checked points
MAX_ITERATIONS, MAX_SEARCHES = 120, 10  # iterations per search, and searches with tighter bounds
GAP_TOLERANCE = 1e-4  # relative improvement of the time at which a search ends
CENTERING_FACTORS = 0.1, 0.5, 3.0  # as in ``window``; 3.0 moves away from the bounds after very short steps
ALLOWED_EXCESS = 1e-3  # fraction by which a bound may be exceeded between checked points
# Tolerance of the factor of x by which a timing is slowed down to satisfy all bounds.
ENOUGH_FACTOR, FACTOR_PRECISION = 0.999, 1e-3
MAX_X_FACTOR = 30.0  # largest x relative to that of the mean rate
FIRST_X_FACTOR = 0.3  # largest x of the initial guess, relative to that of the mean rate
SMOOTHING_PARTS = 30  # number of path parts; the initial guess changes smoothly over two of them
INSIDE_FRACTION = 1e-9  # fraction of half an interval
FIRST_USE = 0.7  # largest use of a bound by the initial guess, relative to the remainder at standstill
# Factors of x in the initial guess: at standstill, and the smallest local factor.
STILL_FACTOR, MIN_X_FACTOR = 1e-6, 1e-3


@dataclass
class _Sampled:
    """Samples of one path in the form that the interior-point method requires."""

    capacity: int
    spacing: float
    near: Array
    inner: Array
    fastest: Array
    tight: Array


def smooth_timing(rows: RowKernel, bounds: Bounds, path: JointPath, least: float, count: int, where: str) -> Timing:
    """Return the fastest timing of one path from rest to rest, with ``count`` intervals and continuous s''.

    ``least`` is a lower bound of the duration (s), which scales the search.
    """
    _check_friction(rows, bounds, where)
    s = np.linspace(path.breaks[0, 0], path.breaks[0, -1], count + 1)
    h = float(s[1] - s[0])
    coefficients = _coefficients(rows, path, *_inside(path, s[:-1, None] + h * CHECKED_PLACES))
    at, inner = coefficients[..., :-2], np.ascontiguousarray(coefficients[:, 1:])
    near = np.concatenate([at[:, 0], at[:, len(CHECKED_FRACTIONS) // 2 + 1], at[:, -1]], axis=1)
    mean = (count * h / least) ** 2
    fastest = _largest(np.minimum(coefficients[..., -2], MAX_X_FACTOR * mean))
    samples = _Sampled(count, h, near, inner.reshape(count, -1), fastest, np.ones(count))
    compiled = _kernels(len(rows.names), at.shape[-1] // len(rows.names))
    piece, place, part = beside_breaks(path, s)
    beside = _coefficients(rows, path, piece, place, part)
    window = PathWindow(compiled, samples, _ratios(rows, bounds), count, part, beside)
    _finish(window.fill(0, count, "free", "free"))
    if not _begin(window, mean, fastest):
        fix = "use wider bounds, so that the robot can stand still everywhere"
        raise ModelError("no timing within the bounds was found", where=where, fix=fix)
    best = window.points.copy()
    shortest = _timing(s, best).duration
    for _ in range(MAX_SEARCHES):
        _finish(window.improve(MAX_ITERATIONS, GAP_TOLERANCE, CENTERING_FACTORS))
        if window.feasible is None:
            break
        window.take(window.feasible)
        uses = _finish(window.uses())
        scale = _slower(window)
        time = _timing(s, window.points).duration
        if time < shortest:
            best, shortest = window.points.copy(), time
        if scale > ENOUGH_FACTOR and window.iterations < MAX_ITERATIONS - 1:
            break
        window.tighten(uses)
    return _timing(s, best)


def _begin(window: Window, mean: float, fastest: Array) -> bool:
    """Set an initial guess slightly inside the bounds; return whether one exists."""
    window.begin(np.full(window.count + 2, FIRST_X_FACTOR * mean))
    moving = _finish(window.uses())
    window.take(STILL_FACTOR * window.points)
    standing = _finish(window.uses())
    spare = FIRST_USE * (1 - standing) / np.maximum(moving - standing, TINY)
    window.take(
        _envelope(
            np.minimum(FIRST_X_FACTOR * mean * np.clip(spare, MIN_X_FACTOR, 1 / FIRST_X_FACTOR), FIRST_USE * fastest)
        )
    )
    most = float((standing + FIRST_USE * (1 - standing)).max())
    return bool(_finish(window.slow_down(most)).max() <= 1)


def _envelope(limits: Array) -> Array:
    """Return a smooth curve (G + 2) below limits (G): an initial guess that is slow only where necessary."""
    width = max(1, len(limits) // SMOOTHING_PARTS)
    near = np.lib.stride_tricks.sliding_window_view(np.pad(limits, (2 * width, 2 * width + 2), "edge"), 2 * width + 1)
    even = np.ones(width + 1) / (width + 1)
    result: Array = np.exp(np.convolve(np.convolve(np.log(near.min(axis=1)), even, "valid"), even, "valid"))
    return result


def _slower(window: Window) -> float:
    """Scale x by the largest factor up to 1 that keeps the bounds, and return it.

    Such a factor exists if the robot can stand still, because slower motions need smaller forces and rates.
    """
    low, high, points = 0.0, 2.0, window.points.copy()
    while high - low > FACTOR_PRECISION:
        factor = min(1.0, (low + high) / 2)
        window.take(factor * points)
        if _finish(window.uses()).max() <= 1 + ALLOWED_EXCESS:
            low = factor
            if factor == 1.0:
                return 1.0
        else:
            high = factor
    window.take(low * points)
    return low


def intervals_of(path: JointPath, where: str) -> int:
    """Return the default number of intervals of paths, based on the number of spline pieces or the shortest blend."""
    if path.pieces.shape[2] != BLEND_COEFFICIENTS:
        pieces = int(path.pieces.shape[1])
        return min(
            max(MAX_INTERVALS, MIN_INTERVALS_PER_PIECE * pieces),
            INTERVAL_MULTIPLE * math.ceil(INTERVALS_PER_PIECE * pieces / INTERVAL_MULTIPLE),
        )
    lengths = np.diff(path.breaks)
    shortest = float((lengths.min(axis=1) / lengths.sum(axis=1)).min())
    if shortest * MAX_BLEND_INTERVALS < 1:
        message = f"a corner or line is {shortest:.2g} of the path, too short for jerk or torque-rate bounds"
        allowed, fix = f"{1 / MAX_BLEND_INTERVALS:g} or more", "use a larger tolerance, or waypoints farther apart"
        raise ModelError(message, where=where, allowed=allowed, fix=fix)
    return min(MAX_BLEND_INTERVALS, INTERVAL_MULTIPLE * math.ceil(INTERVALS_PER_BLEND / shortest / INTERVAL_MULTIPLE))


def _timing(s: Array, points: Array) -> Timing:
    """Return the timing of control points (G + 2) of x."""
    x, u = (points[1:] + points[:-1]) / 2, np.diff(points) / (2 * (s[1] - s[0]))
    return Timing.smooth(s, x, u)


def _finish(work: Iterator[None] | Generator[None, None, Any]) -> Any:
    """Run a generator to its end and return its result."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value


@cache
def _kernels(r: int, parts: int) -> Kernels:
    return kernels(r, parts, solve)


def _ratios(rows: RowKernel, bounds: Bounds) -> Array:
    """Return half the range of each row divided by the bound of its rate; 0 if that bound is infinite."""
    ratios = []
    kinds = ("acceleration", "jerk", rows.accelerations), ("torque", "torque_rate", rows.torques)
    for kind, rate, indices in kinds:
        low, high = (np.clip(value[list(indices)], -LARGEST_BOUND, LARGEST_BOUND) for value in bounds.values[kind])
        ratios.append((high - low) / 2 / bounds.values[rate][1, list(indices)])
    return np.concatenate([*ratios, np.zeros(len(rows.reactions) * POLYGON_SIDES // 2)])


def _largest(most: Array) -> Array:
    """Return bounds (G,) on control points of x from bounds on x at points (G, P) of the intervals.

    If the bound has the second derivative f'', the spline exceeds the middle control point by f'' h^2 / 8.
    """
    first, middle, last = most[:, 0], most[:, most.shape[1] // 2], most[:, -1]
    result: Array = np.maximum(middle - np.maximum((first + last) / 2 - middle, 0.0), most.min(axis=1))
    return result


def _inside(path: JointPath, p: Array) -> tuple[Indices, Array, Array]:
    """Return pieces, path parameters and fractions for values p (G, P) of the progress, in the unit of s."""
    first, length = path.breaks[0, 0], path.breaks[0, -1] - path.breaks[0, 0]
    inside = p + INSIDE_FRACTION * (
        p[:, p.shape[1] // 2, None] - p
    )  # the end of an interval belongs to the piece before it
    part = (inside - first) / length
    s = first + length * stretched(part)[0]
    return path.piece_of(s), s, part


def _coefficients(rows: RowKernel, path: JointPath, piece: Indices, s: Array, part: Array) -> Array:
    """Return coefficients and their slopes relative to bounds, and the largest x, at points of a path.

    The path parameters s (...) are in pieces (...), at fractions ``part`` (...) of the progress.
    """
    length = path.breaks[0, -1] - path.breaks[0, 0]
    shape = np.stack([derivative / length**k for k, derivative in enumerate(stretched(part)[1:])], axis=-1)
    powers = path.pieces.shape[2]
    key = "smooth retiming", powers, rows.key, source_hash("motion/retiming")
    r, parts = len(rows.names), 8 if rows.has_friction else 6
    shapes = [(powers, rows.robot.nv), (), (3,), rows.numbers.shape], [(parts * r + 2,)]
    kernel: AnyKernel = rows.robot.kernels.kernel(key, lambda: _trace(rows, powers), lambda _: shapes)
    result: Array = kernel(path.pieces[0, piece], s - path.breaks[0, piece], shape, rows.numbers)
    return result


def _trace(rows: RowKernel, powers: int) -> ca.Function:
    """Return the coefficients in terms of the progress p; ``shape`` contains the derivatives of s with respect to p.

    u = s'' and x = s'^2 follow from u_p and x_p of the progress: u = g1 u_p + g2 x_p and x = g1^2 x_p.
    """
    n, first = rows.robot.nv, len(rows.accelerations)
    piece, way, numbers = ca.SX.sym("piece", powers, n), ca.SX.sym("way"), ca.SX.sym("numbers", len(rows.numbers))
    shape, change = ca.SX.sym("shape", 3), ca.SX.sym("change")
    g1, g2, g3 = ca.vertsplit(shape)
    # The path parameter and its slopes near p, as functions of a small change of p.
    place = way + change * (g1 + change * (g2 / 2 + change * g3 / 6))
    slope, bend = g1 + change * (g2 + change * g3 / 2), g2 + change * g3
    table, most = rows.trace(powers)(piece, place, numbers)
    a, b, low, high = (column.T for column in ca.vertsplit(table))
    half, parts = (high - low) / 2, [a * slope, a * bend + b * slope**2, -(high + low) / 2]
    if rows.has_friction:
        friction, torques = rows.robot.function("friction_force"), list(rows.torques)
        d1 = on_path(piece, place, 2)[1]
        once, twice = friction(d1)[torques], friction(2 * d1)[torques]
        none = ca.SX.zeros(len(rows.names) - first - len(torques), 1)
        parts[2] += ca.vertcat(ca.SX.zeros(first, 1), 2 * once - twice, none)
        parts.append(slope * ca.vertcat(ca.SX.zeros(first, 1), twice - once, none))
    slopes = [ca.jtimes(part, change, 1) for part in parts]
    largest = ca.fmin(most / ca.fmax(slope**2, TINY), LARGEST_BOUND)
    scaled = ca.vertcat(*(term / half for term in (*parts, *slopes)), largest, 0)
    result = ca.densify(ca.cse(ca.substitute(scaled, change, 0)))
    return ca.Function("smooth_retiming", [piece, way, shape, numbers], [result])


def _check_friction(rows: RowKernel, bounds: Bounds, where: str) -> None:
    """Raise ModelError if friction has an infinite torque rate, or is neither dry nor viscous."""
    if not rows.has_friction:
        return
    robot = rows.robot
    smooth = [joint.name for joint in robot.joints if joint.smooth or joint.friction_model]
    dry = [joint.name for joint in robot.joints if np.any(joint.coulomb)]
    if smooth or (dry and bounds.has("torque_rate")):
        message = f"jerk and torque-rate bounds do not support the friction of {(smooth or dry)[0]!r}"
        allowed = "viscous friction, or dry friction without a torque-rate bound"
        fix = "use robot.without_friction() and subtract the friction from the torque bounds"
        raise ModelError(message, where=where, allowed=allowed, fix=fix)
