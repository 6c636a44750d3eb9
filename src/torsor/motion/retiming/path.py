"""Joint paths for retiming: piecewise polynomials q(s), either through all waypoints or with blended corners.

Both kinds have continuous q, q' and q'' (primes denote derivatives with respect to s), so that forces along them are
continuous. Blends also have continuous q'''.
"""

import math
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any, NamedTuple, cast

import casadi as ca
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from torsor.base.arrays import Array, Indices, Shape
from torsor.base.errors import ModelError
from torsor.base.time_series import polynomials
from torsor.compiler import Kernel, compile
from torsor.compiler.repeat import Call, Workspace, narrow

# Cubic splines through points with not-a-knot end conditions, as compiled sweeps (de Boor 1978).
#
# With the distances h and the divided differences d of the intervals before and after a point, the slopes m satisfy
#
#     h1 m_k-1 + 2 (h0 + h1) m_k + h0 m_k+1 = 3 (h1 d0 + h0 d1)
#
# and h1 m_0 + (h0 + h1) m_1 = ((3 h0 + 2 h1) h1 d0 + h0^2 d1) / (h0 + h1) at the ends, so that the third derivative is
# continuous at the second point. Three points define one parabola, with m_0 + m_1 = 2 d0. The matrix is tridiagonal: a
# forward sweep eliminates the entries below the diagonal, and a backward sweep computes the slopes.

CUBIC_COEFFICIENTS = 4  # coefficients of a piece
FIRST_POINT, INNER_POINT, LAST_POINT = range(3)  # points
MAX_CACHED_SPLINES = 64  # spline sizes


def spline(s: Array, q: Array) -> Array:
    """Return the pieces (B, K - 1, 4, n) of splines through q (B, K, n) at s (K,) or (B, K), with K > 2."""
    work = _sweeps(*q.shape)
    room = work.take()
    arrays = room.arrays
    arrays["s"][:], arrays["q"][:] = s, q
    room.run()
    result: Array = arrays["pieces"].copy()
    work.give_back(room)
    return result


@lru_cache(maxsize=MAX_CACHED_SPLINES)
def _sweeps(count: int, points: int, n: int) -> Workspace:
    """Return both sweeps for ``count`` splines through ``points`` points with n coordinates."""
    shapes = {"s": (count, points), "q": (count, points, n), "pieces": (count, points - 1, CUBIC_COEFFICIENTS, n)}
    shapes |= {"above": (count, points), "right": (count, points, n), "slopes": (count, points, n)}
    width = narrow(count)

    def calls(arrays: dict[str, Array]) -> list[Call]:
        s, q, pieces, above, right, slopes = (array.swapaxes(0, 1) for array in arrays.values())
        near, pairs = (
            [sliding_window_view(s, k, axis=0), sliding_window_view(q, k, axis=0).swapaxes(-1, -2)] for k in (3, 2)
        )
        first, inner, last = (_row(n, points == 3, point, width) for point in (FIRST_POINT, INNER_POINT, LAST_POINT))
        back, known = [pair[::-1] for pair in pairs], [above[-2::-1], right[-2::-1], slopes[:0:-1]]
        return [
            Call(first, [array[:1] for array in near], [above[:1], right[:1]]),
            Call(inner, [*near, above[:-2], right[:-2]], [above[1:-1], right[1:-1]]),
            Call(last, [*(array[-1:] for array in near), above[-2:-1], right[-2:-1]], [slopes[-1:]]),
            Call(_back(n, width), [*back, *known], [slopes[-2::-1], pieces[::-1]]),
        ]

    return Workspace(shapes, calls)


@cache
def _row(n: int, parabola: bool, point: int, width: int | None) -> Kernel:
    """Return the forward sweep at a point: the entry above the diagonal and the right-hand side (n)."""
    s, q, above, before = ca.SX.sym("s", 3), ca.SX.sym("q", 3, n), ca.SX.sym("above"), ca.SX.sym("before", n)
    h0, h1 = s[1] - s[0], s[2] - s[1]
    d0, d1 = (q[1, :] - q[0, :]).T / h0, (q[2, :] - q[1, :]).T / h1
    if point == INNER_POINT:
        lower, middle, upper, right = h1, 2 * (h0 + h1), h0, 3 * (h1 * d0 + h0 * d1)
    elif parabola:
        lower, middle, upper = ca.SX(1), ca.SX(1), ca.SX(1)
        right = 2 * (d0 if point == FIRST_POINT else d1)
    else:  # h and d of the last interval and of its neighbour
        h, beside, d, other = (h0, h1, d0, d1) if point == FIRST_POINT else (h1, h0, d1, d0)
        lower, middle, upper = h + beside, beside, h + beside
        right = ((3 * h + 2 * beside) * beside * d + h**2 * other) / (h + beside)
    arguments: list[tuple[ca.SX, Shape]] = [(s, (3,)), (q, (3, n))]
    if point != FIRST_POINT:
        middle, right = middle - lower * above, right - lower * before
        arguments += [(above, ()), (before, (n,))]
    first_outputs: list[tuple[ca.SX, Shape]] = [] if point == LAST_POINT else [(upper / middle, ())]
    (inputs, sizes), (outputs, shapes) = (
        zip(*pairs, strict=True) for pairs in (arguments, [*first_outputs, (right / middle, (n,))])
    )
    function = ca.Function("spline_row", list(inputs), [ca.cse(output) for output in outputs])
    return cast(Kernel, compile(function, inputs=sizes, outputs=shapes, width=width))


@cache
def _back(n: int, width: int | None) -> Kernel:
    """Return the backward sweep: the slope (n) at a point from the next slope, and the piece between them."""
    s, q, above, right = ca.SX.sym("s", 2), ca.SX.sym("q", 2, n), ca.SX.sym("above"), ca.SX.sym("right", n)
    after, h = ca.SX.sym("after", n), s[1] - s[0]
    d, slope = (q[1, :] - q[0, :]).T / h, right - above * after
    piece = ca.horzcat(q[0, :].T, slope, (3 * d - 2 * slope - after) / h, (slope + after - 2 * d) / h**2).T
    function = ca.Function("spline_back", [s, q, above, right, after], [slope, piece])
    sizes, shapes = [(2,), (2, n), (), (n,), (n,)], [(n,), (CUBIC_COEFFICIENTS, n)]
    return cast(Kernel, compile(function, inputs=sizes, outputs=shapes, width=width))


# The timing s(t) of a path. In each interval, s'' is a linear function of s, so s(t) has a closed form.
#
# With the rate v = s' and u = s'' at the start of an interval and w = du/ds in it, v'' = w v over time, so
#
#     s = v S + u E,    s' = v + w v E + u S,    s'' = u + w (v S + u E),    s''' = w s'
#
# with S = sinh(k t) / k and E = (cosh(k t) - 1) / w for k^2 = w, or sin and cos if w < 0. For w = 0, s'' is constant.
# If s'' has to be continuous, these equations describe a progress p that determines s (``stretched``). Near rest, s is
# proportional to p^3, so a constant p' starts with a constant jerk.

_SERIES_ANGLE = 1e-3  # angle below which a series is exact to rounding
_BISECTIONS = 54  # bisections after which p is exact to rounding
_MAX_NEWTON_STEPS = 20  # largest number of Newton steps to the end of an interval; three or four are typical


def flow(w: Any, time: Any) -> tuple[Any, Any]:
    """Return S and E of intervals (...) at times (...) from their start, as arrays, or as numbers for one interval."""
    if not isinstance(time, np.ndarray):
        return _flow(float(w), float(time))
    half = time / 2
    angle, square = np.sqrt(np.abs(w)) * half, w * half * half
    safe = np.maximum(angle, _SERIES_ANGLE)
    near, grows = angle < _SERIES_ANGLE, w > 0
    with np.errstate(over="ignore"):
        sine = np.where(grows, np.sinh(safe), np.sin(safe)) * half / safe
        cosine = np.where(grows, np.cosh(safe), np.cos(safe))
    sine = np.where(near, half * (1 + square / 6 * (1 + square / 20)), sine)
    cosine = np.where(near, 1 + square / 2 * (1 + square / 12), cosine)
    return 2 * sine * cosine, 2 * sine * sine


def _flow(w: float, time: float) -> tuple[float, float]:
    half = time / 2
    angle, square = math.sqrt(abs(w)) * half, w * half * half
    if angle < _SERIES_ANGLE:
        sine, cosine = half * (1 + square / 6 * (1 + square / 20)), 1 + square / 2 * (1 + square / 12)
    else:
        sine = (math.sinh(angle) if w > 0 else math.sin(angle)) * half / angle
        cosine = math.cosh(angle) if w > 0 else math.cos(angle)
    return 2 * sine * cosine, 2 * sine * sine


def stretched(p: Any) -> tuple[Any, Any, Any, Any]:
    """Return the path parameters s (...) at progress p (...), both from 0 to 1, and three derivatives by p.

    s = 10 p^3 - 15 p^4 + 6 p^5 is the smooth step of degree 5, with s' = s'' = 0 at both ends.
    """
    rest = p * (1 - p)
    return p**3 * (10 - 15 * p + 6 * p * p), 30 * rest**2, 60 * rest * (1 - 2 * p), 60 * (1 - 6 * rest)


def progress(s: Array) -> Array:
    """Return the progress p at path parameters s, both from 0 to 1, by bisection (the inverse of ``stretched``)."""
    low, high = np.zeros_like(s), np.ones_like(s)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        below = stretched(middle)[0] < s
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return high


class Timing(NamedTuple):
    """A timing: ``times`` (G + 1), ``s`` and ``x`` = s'^2 at knots; ``u`` and ``w`` (G) in intervals.

    If ``stretch`` is True, they describe the progress along the path, in the unit of s, and ``stretched`` yields s.
    """

    times: Array
    s: Array
    x: Array
    u: Array
    w: Array
    stretch: bool = False

    @classmethod
    def smooth(cls, s: Array, x: Array, u: Array) -> "Timing":
        """Return the timing with continuous rates from the progress s, x and u (G + 1) at the knots."""
        h, rate, first = np.diff(s), np.sqrt(x), u[:-1]
        w, v = np.diff(u) / h, rate[:-1]
        used = 2 * h / (rate[1:] + v)
        for _ in range(_MAX_NEWTON_STEPS):
            S, E = flow(w, used)
            change = (v * S + first * E - h) / (v + w * v * E + first * S)
            used = used - change
            if np.abs(change).max() <= 1e-15 * used.max():
                break
        return cls(np.concatenate([[0.0], np.cumsum(used)]), s, x, first, w, True)

    @property
    def duration(self) -> float:
        """The duration, in s."""
        return float(self.times[-1])

    def at(self, t: Any, k: Any) -> tuple[Any, Any, Any, Any]:
        """Return s, s', s'' and s''' at times (...), in intervals k (...)."""
        sqrt, larger = (math.sqrt, max) if isinstance(k, int) else (np.sqrt, np.maximum)
        time, v, u, w = t - self.times[k], sqrt(self.x[k]), self.u[k], self.w[k]
        S, E = flow(w, time)
        way, rate = v * S + u * E, v + w * v * E + u * S
        result = self.s[k] + way, larger(rate, 0.0), u + w * way, w * rate
        return self._stretched(*result) if self.stretch else result

    def along(self, p: Array, k: Indices) -> tuple[Array, Array, Array, Array]:
        """Return s, s', s'' and s''' in intervals k (...) at p (...), which has the meaning of the knots."""
        way, u, w = p - self.s[k], self.u[k], self.w[k]
        rate = np.sqrt(np.maximum(self.x[k] + way * (2 * u + way * w), 0.0))
        result = p, rate, u + way * w, w * rate
        return self._stretched(*result) if self.stretch else result

    def reached(self, s: Array) -> Array:
        """Return p for path parameters s; p has the meaning of the knots (path parameter or progress)."""
        first, length = self.s[0], self.s[-1] - self.s[0]
        return first + length * progress((s - first) / length) if self.stretch else s

    def _stretched(self, p: Array, rate: Array, u: Array, jerk: Array) -> tuple[Array, Array, Array, Array]:
        """Return s and its rates from the progress and its rates."""
        first, length = self.s[0], self.s[-1] - self.s[0]
        s, g1, g2, g3 = stretched((p - first) / length)
        g2, g3 = g2 / length, g3 / length**2
        higher = g1 * jerk + 3 * g2 * rate * u + g3 * rate**3
        return first + length * s, g1 * rate, g1 * u + g2 * rate**2, higher


BLEND_COEFFICIENTS = 7  # coefficients of a blend
MAX_WAYPOINTS = 2000
MAX_BLEND_FRACTION = 0.45  # largest fraction of a straight piece that a blend replaces
DEFAULT_INTERVALS, MIN_PIECE_INTERVALS = 360, 30  # default number of intervals of a path, and minimum per piece
MAX_CACHED_GRIDS = 64  # number of cached grids


class JointPath(NamedTuple):
    """Polynomial pieces of B paths: ``breaks`` (B, S + 1) in s, ``pieces`` (B, S, powers, n) in s minus the break."""

    breaks: Array
    pieces: Array

    @classmethod
    def through(cls, s: Array, q: Array) -> "JointPath":
        """Return the cubic splines through q (B, K, n) at s (K,) or (B, K); see ``spline``."""
        if s.shape != q.shape[:2]:
            s = np.broadcast_to(s, q.shape[:2])
        if q.shape[1] > 2:
            return cls(s, spline(s, q))
        slope = np.diff(q, axis=1) / np.diff(s, axis=1)[..., None]
        return cls(s, np.stack([q[:, :-1], slope, *np.zeros((2, *slope.shape))], axis=2))

    @classmethod
    def blended(cls, q: Array, tolerance: float | Array) -> "JointPath":
        """Return straight lines through q (B, K, n) with corners blended within the distance ``tolerance``.

        The tolerance is one number or an array (B, K - 2, 1). A blend turns from the direction e of one line to the
        direction f of the next. Its ends, with q'' = q''' = 0, are at the distance l from the corner. The largest
        deviation from the corner is 5/32 l |f - e|, in the middle of the blend.
        """
        line = np.diff(q, axis=1)
        length = np.linalg.norm(line, axis=-1, keepdims=True)
        e = line / length
        turn = np.linalg.norm(np.diff(e, axis=1), axis=-1, keepdims=True)
        way = np.minimum(
            32 / 5 * tolerance / np.maximum(turn, 1e-12), MAX_BLEND_FRACTION * np.minimum(length[:, 1:], length[:, :-1])
        )
        none = np.zeros((len(q), 1, 1))
        straight = length - np.concatenate([none, way], axis=1) - np.concatenate([way, none], axis=1)
        count, n = 2 * q.shape[1] - 3, q.shape[2]
        pieces, lengths = np.zeros((len(q), count, BLEND_COEFFICIENTS, n)), np.empty((len(q), count))
        lengths[:, ::2], lengths[:, 1::2] = straight[..., 0], 2 * way[..., 0]
        pieces[:, ::2, 0] = q[:, :-1] + np.concatenate([none, way], axis=1) * e
        pieces[:, ::2, 1] = e
        first, last, L = e[:, :-1], e[:, 1:], 2 * way
        pieces[:, 1::2, 0], pieces[:, 1::2, 1] = q[:, 1:-1] - way * first, first
        # q' = e + (f - e) (10 z^3 - 15 z^4 + 6 z^5) with z from 0 to 1, so the ends are L (e + f) / 2 apart.
        for power, factor in ((4, 2.5), (5, -3.0), (6, 1.0)):
            pieces[:, 1::2, power] = factor * (last - first) / L ** (power - 1)
        breaks = np.concatenate([none[..., 0], np.cumsum(lengths, axis=1)], axis=1)
        return cls(breaks, pieces)

    def slopes(self, piece: Indices, way: Array) -> Array:
        """Return the first derivatives of q (B, G, n) in pieces (G,), at distances (B, G) from their start."""
        C = self.pieces[:, piece]
        value: Array = np.zeros_like(C[:, :, 0])
        for power in reversed(range(1, C.shape[2])):
            value = value * way[..., None] + float(power) * C[:, :, power]
        return value

    def on(self, piece: Any, s: Any) -> Array:
        """Return q and its derivatives with respect to s (..., 4, n) at s (...) in pieces (...) of the first path."""
        return polynomials(self.pieces[0, piece], s - self.breaks[0, piece], 4)

    def path(self, b: int) -> "JointPath":
        """Return path ``b`` of the batch."""
        return self if len(self.breaks) == 1 else JointPath(self.breaks[b : b + 1], self.pieces[b : b + 1])

    def piece_of(self, s: Array) -> Indices:
        """Return the pieces (G,) that contain the path parameters s (G,) on the first path."""
        return np.clip(np.searchsorted(self.breaks[0], s, side="right") - 1, 0, self.pieces.shape[1] - 1)


@dataclass(frozen=True, eq=False)
class Grid:
    """Intervals of B paths: ``piece`` (G,), and the distances (B, G) of their ends from the start of the piece."""

    piece: Indices
    first: Array
    last: Array

    @classmethod
    def even(cls, path: JointPath, count: int | None) -> "Grid":
        """Return a grid with ``count`` equal intervals per piece, by default sufficiently many for a smooth timing."""
        pieces = path.pieces.shape[1]
        count = max(MIN_PIECE_INTERVALS, -(-DEFAULT_INTERVALS // pieces)) if count is None else count
        parts = np.linspace(0.0, 1.0, count + 1)
        lengths = np.diff(path.breaks)[..., None]
        first, last = ((lengths * fractions).reshape(len(path.breaks), -1) for fractions in (parts[:-1], parts[1:]))
        return cls(np.repeat(np.arange(pieces), count), first, last)

    @classmethod
    def at(cls, path: JointPath, s: Array, where: str) -> "Grid":
        """Return the grid with knots s (G + 1) and all breaks of the path; it is shared by all paths."""
        breaks = path.breaks[0]
        if len(path.breaks) > 1 and (path.breaks != breaks).any():
            fix = "pass the number of intervals per piece"
            raise ModelError("knots cannot be an array for paths of different lengths", where=where, fix=fix)
        result = _with_knots(breaks.tobytes(), s.tobytes())
        if result is None:
            allowed = f"increasing numbers from its first s or time to the last, {breaks[-1] - breaks[0]:g} apart"
            raise ModelError("the knots do not match the path", where=where, allowed=allowed)
        return result

    def split(self, parts: Indices) -> "Grid":
        """Return the grid with each interval divided into ``parts`` (G,)."""
        of = np.repeat(np.arange(len(parts)), parts)
        turn = np.arange(len(of)) - np.repeat(np.cumsum(parts) - parts, parts)
        step = ((self.last - self.first) / parts)[:, of]
        first = self.first[:, of] + turn * step
        last = np.where(turn + 1 == parts[of], self.last[:, of], first + step)
        return Grid(self.piece[of], first, last)

    @cached_property
    def knots(self) -> tuple[Indices, Array]:
        """The pieces (G + 1) of all knots, and their distances (B, G + 1) from the starts of the pieces."""
        return np.append(self.piece, self.piece[-1]), np.concatenate([self.first, self.last[:, -1:]], axis=1)

    @cached_property
    def h(self) -> Array:
        """The lengths (B, G) of the intervals."""
        return self.last - self.first


@lru_cache(maxsize=MAX_CACHED_GRIDS)
def _with_knots(breaks_of_path: bytes, knots: bytes) -> Grid | None:
    """Return the grid with all ``knots`` and the breaks of a path, or None if they do not match the path."""
    breaks, s = np.frombuffer(breaks_of_path), np.frombuffer(knots)
    size = breaks[-1] - breaks[0]
    if len(s) < 2 or not (np.diff(s) > 0).all() or max(abs(s[0] - breaks[0]), abs(s[-1] - breaks[-1])) > 1e-9 * size:
        return None
    s = np.union1d(s[(np.abs(s[:, None] - breaks) > 1e-9 * size).all(axis=1)], breaks)
    piece = np.searchsorted(breaks, (s[1:] + s[:-1]) / 2, side="right") - 1
    return Grid(piece, (s[:-1] - breaks[piece])[None], (s[1:] - breaks[piece])[None])
