"""Cubic splines through points, without a knot at the points next to the ends, as compiled sweeps (de Boor 1978).

With the distances h and the divided differences d of the intervals before and after a point, the slopes m solve

    h1 m_k-1 + 2 (h0 + h1) m_k + h0 m_k+1 = 3 (h1 d0 + h0 d1)

and at the ends h1 m_0 + (h0 + h1) m_1 = ((3 h0 + 2 h1) h1 d0 + h0^2 d1) / (h0 + h1), where the third derivative is
continuous at the second point. Three points are on one parabola, with m_0 + m_1 = 2 d0. The matrix has three diagonals:
one sweep eliminates those below, and one back gives the slopes.
"""

from functools import cache, lru_cache
from typing import cast

import casadi as ca
from numpy.lib.stride_tricks import sliding_window_view

from torsor.base.arrays import Array, Shape
from torsor.compiler import Kernel, compile
from torsor.compiler.repeat import Call
from torsor.compiler.workspace import Workspace, narrow

CUBIC = 4  # coefficients of a piece
FIRST, INNER, LAST = range(3)  # points
MAX_CACHED_SPLINES = 64  # sizes of splines


def spline(s: Array, q: Array) -> Array:
    """Return the pieces (B, K - 1, 4, n) of the splines through q (B, K, n) at s (K,) or (B, K), with K > 2.

    Example:
        >>> s = np.array([0.0, 1.0, 2.0, 4.0, 5.0])
        >>> spline(s, s[None, :, None] ** 3)[0, 2, :, 0].round(9).tolist()  # (2 + x)^3
        [8.0, 12.0, 6.0, 1.0]
    """
    work = _sweeps(*q.shape)
    room = work.take()
    arrays = room.arrays
    arrays["s"][:], arrays["q"][:] = s, q
    room.run()
    found: Array = arrays["pieces"].copy()
    work.give_back(room)
    return found


@lru_cache(maxsize=MAX_CACHED_SPLINES)
def _sweeps(count: int, points: int, n: int) -> Workspace:
    """Return both sweeps for some splines through so many points with n coordinates."""
    shapes = {"s": (count, points), "q": (count, points, n), "pieces": (count, points - 1, CUBIC, n)}
    shapes |= {"above": (count, points), "right": (count, points, n), "slopes": (count, points, n)}
    width = narrow(count)

    def calls(arrays: dict[str, Array]) -> list[Call]:
        s, q, pieces, above, right, slopes = (each.swapaxes(0, 1) for each in arrays.values())
        near, pairs = (
            [sliding_window_view(s, k, axis=0), sliding_window_view(q, k, axis=0).swapaxes(-1, -2)] for k in (3, 2)
        )
        first, inner, last = (_row(n, points == 3, point, width) for point in (FIRST, INNER, LAST))
        back, known = [each[::-1] for each in pairs], [above[-2::-1], right[-2::-1], slopes[:0:-1]]
        return [
            Call(first, [each[:1] for each in near], [above[:1], right[:1]]),
            Call(inner, [*near, above[:-2], right[:-2]], [above[1:-1], right[1:-1]]),
            Call(last, [*(each[-1:] for each in near), above[-2:-1], right[-2:-1]], [slopes[-1:]]),
            Call(_back(n, width), [*back, *known], [slopes[-2::-1], pieces[::-1]]),
        ]

    return Workspace(shapes, calls)


@cache
def _row(n: int, parabola: bool, point: int, width: int | None) -> Kernel:
    """Return the step of the first sweep at a point: what is above the diagonal, and the right side (n)."""
    s, q, above, before = ca.SX.sym("s", 3), ca.SX.sym("q", 3, n), ca.SX.sym("above"), ca.SX.sym("before", n)
    h0, h1 = s[1] - s[0], s[2] - s[1]
    d0, d1 = (q[1, :] - q[0, :]).T / h0, (q[2, :] - q[1, :]).T / h1
    if point == INNER:
        lower, middle, upper, right = h1, 2 * (h0 + h1), h0, 3 * (h1 * d0 + h0 * d1)
    elif parabola:
        lower, middle, upper = ca.SX(1), ca.SX(1), ca.SX(1)
        right = 2 * (d0 if point == FIRST else d1)
    else:  # h, d of the interval at the end, and of that beside it
        h, beside, d, other = (h0, h1, d0, d1) if point == FIRST else (h1, h0, d1, d0)
        lower, middle, upper = h + beside, beside, h + beside
        right = ((3 * h + 2 * beside) * beside * d + h**2 * other) / (h + beside)
    given: list[tuple[ca.SX, Shape]] = [(s, (3,)), (q, (3, n))]
    if point != FIRST:
        middle, right = middle - lower * above, right - lower * before
        given += [(above, ()), (before, (n,))]
    found: list[tuple[ca.SX, Shape]] = [] if point == LAST else [(upper / middle, ())]
    (inputs, sizes), (outputs, shapes) = (zip(*each, strict=True) for each in (given, [*found, (right / middle, (n,))]))
    function = ca.Function("spline_row", list(inputs), [ca.cse(each) for each in outputs])
    return cast(Kernel, compile(function, inputs=sizes, outputs=shapes, width=width))


@cache
def _back(n: int, width: int | None) -> Kernel:
    """Return the step of the sweep back: the slope (n) at a point from that at the next, and the piece between."""
    s, q, above, right = ca.SX.sym("s", 2), ca.SX.sym("q", 2, n), ca.SX.sym("above"), ca.SX.sym("right", n)
    after, h = ca.SX.sym("after", n), s[1] - s[0]
    d, slope = (q[1, :] - q[0, :]).T / h, right - above * after
    piece = ca.horzcat(q[0, :].T, slope, (3 * d - 2 * slope - after) / h, (slope + after - 2 * d) / h**2).T
    function = ca.Function("spline_back", [s, q, above, right, after], [slope, piece])
    sizes, shapes = [(2,), (2, n), (), (n,), (n,)], [(n,), (CUBIC, n)]
    return cast(Kernel, compile(function, inputs=sizes, outputs=shapes, width=width))
