"""The fastest timing of a path by reachability analysis (Pham and Pham 2018), as compiled functions without branches.

On a grid, u = s'' is constant in each interval of length h, so x = s'^2 changes by 2 h u. Bounds are rows
L <= a u + b x <= H of an interval, at both of its ends: at the last one, a u + b (x + 2 h u). Their signs are such
that a >= 0. Two rows i, j leave some u if

    x (a_j b_i - a_i b_j) <= a_j H_i - a_i L_j

and the same with i and j exchanged (Fourier and Motzkin). Pairs of rows of one interval bound its first x, for all
intervals at once. The pairs with the row of the next interval, lo' <= 2 h u + x <= hi', are affine in its lo' and hi'.
So the backward pass is a minimum of affine functions of two numbers, and so is the forward pass, which takes the
largest u of the controllable set.
"""

from functools import cache, lru_cache
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array, Flags
from torsor.compiler import Kernel, compile
from torsor.compiler.repeat import Call
from torsor.compiler.workspace import Workspace, narrow

LARGEST = 1e30  # x where nothing bounds it
TINY = 1e-300
NOTHING = LARGEST * TINY  # added to what is divided by TINY, so that 0 <= 0 bounds nothing
NO_INERTIA = 1e-11  # of a relative to 2 h b: such a row bounds x, but not u
FEW = 16  # rows at a knot up to which all pairs are one function; more would take long to compile
ROUNDING = 1e-9  # of x by which a controllable set may be empty
MAX_CACHED_SIZES = 64  # sizes of problems


class Profile(NamedTuple):
    """``x`` and ``times`` (B, G + 1) at the knots of B paths, and s'' in the intervals: ``u`` (B, G).

    The controllable sets ``low`` to ``high`` contain x. ``failing`` (B, G) are the intervals without a timing: with an
    empty set at an end, an x beyond it, or without an end.
    """

    x: Array
    times: Array
    u: Array
    low: Array
    high: Array
    failing: Flags

    def path(self, b: int) -> "Profile":
        """Return that of one path."""
        return Profile(*(each[b] for each in self))


class _Kernels(NamedTuple):
    """``interval`` makes of the rows at its ends: limits of x, affine functions of both passes, and its rows.

    ``pairs`` returns the limits of x by all pairs with one row, where they are not part of ``interval``. ``backward``
    and ``forward`` are the passes, and ``timing`` returns the time, u and whether there is no timing.
    """

    interval: Kernel
    pairs: Kernel
    backward: Kernel
    forward: Kernel
    timing: Kernel


def fastest(rows: Array, most: Array, h: Array, start: ArrayLike, end: ArrayLike) -> Profile:
    """Return the fastest timing of B paths with G intervals of lengths h (B, G).

    ``rows`` (B, G + 1, 4, r) are a, b and the bounds low, high at the knots, ``most`` (B, G + 1) the largest x of
    velocity bounds, and ``start`` and ``end`` (B, 1) x at both ends. Where a controllable set is empty, its low is
    above its high, and x has no meaning.

    Example:
        >>> rows = np.tile([[1.0], [0.0], [-1.0], [1.0]], (1, 5, 1, 1))  # |u| <= 1
        >>> found = fastest(rows, np.full((1, 5), 9.0), np.ones((1, 4)), 0.0, 0.0)
        >>> found.x.tolist(), found.u.tolist(), bool(found.failing.any())
        ([[0.0, 2.0, 4.0, 2.0, 0.0]], [[1.0, 1.0, -1.0, -1.0]], False)
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
    """Return both passes for r rows at so many knots of ``count`` paths."""
    m, G, kernels = 2 * r, knots - 1, _kernels(r, narrow(count))
    shapes = {"rows": (count, knots, 4, r), "most": (count, knots), "h": (count, G), "x": (count, knots)}
    shapes |= {"sets": (count, knots, 2), "timing": (count, G, 3), "back": (count, G, 2 + 4 * m)}
    shapes |= {"ahead": (count, G, 2 * m), "own": (count, G if r > FEW else 0, m, 4)}

    def calls(arrays: dict[str, Array]) -> list[Call]:
        rows, most, h, x, sets, timing, back, ahead, own = arrays.values()
        ends = [part for each in (sets, most, x) for part in (each[:, :-1], each[:, 1:])]
        by_knot, several = sets.swapaxes(0, 1), []
        if r > FEW:
            own = own.reshape(-1, m, 4)
            each, best = (
                np.broadcast_to(array, (m, *array.shape)) for array in (own, back.reshape(-1, 2 + 4 * m)[:, :2])
            )
            several = [Call(kernels.pairs, [each, own.swapaxes(0, 1), best], [best])]
        return [
            Call(
                kernels.interval, [rows[:, :-1], rows[:, 1:], h], [back, ahead, *([arrays["own"]] if r > FEW else [])]
            ),
            *several,
            Call(kernels.backward, [back.swapaxes(0, 1)[::-1], most.T[-2::-1], by_knot[:0:-1]], [by_knot[-2::-1]]),
            Call(kernels.forward, [ahead.swapaxes(0, 1), by_knot[1:], x.T[:-1]], [x.T[1:]]),
            Call(kernels.timing, [*ends, h], [timing]),
        ]

    return Workspace(shapes, calls)


@cache
def _kernels(r: int, width: int | None) -> _Kernels:
    """Return the compiled functions for r rows at each knot; ``width`` is that of the passes."""
    m = 2 * r
    results = [(2 + 4 * m,), (2 * m,), *([] if r <= FEW else [(m, 4)])]
    made: list[Any] = [
        compile(_interval(r), inputs=[(4, r), (4, r), ()], outputs=results),
        compile(_pairs(m), inputs=[(m, 4), (4,), (2,)], outputs=[(2,)]),
        compile(_backward(m), inputs=[(2 + 4 * m,), (), (2,)], outputs=[(2,)], width=width),
        compile(_forward(m), inputs=[(2 * m,), (2,), ()], outputs=[()], width=width),
        compile(_timing(), inputs=[(2,), (2,), (), (), (), (), ()], outputs=[(3,)]),
    ]
    return _Kernels(*made)


def _interval(r: int) -> ca.Function:
    left, right, h = ca.SX.sym("left", 4, r), ca.SX.sym("right", 4, r), ca.SX.sym("h")
    step, found = 2 * h, []
    for at, ahead in ((left, 0), (right, step)):
        a, b, low, high = ca.vertsplit(at)
        a = a + ahead * b
        turned = a < 0
        sign = ca.if_else(turned, -1, 1)
        found.append(ca.vertcat(sign * a, sign * b, ca.if_else(turned, -low, high), ca.if_else(turned, -high, low)).T)
    rows = ca.vertcat(*found)
    a, b, high, low = ca.horzsplit(rows)
    d = step * b - a  # of the pair with the row of the next interval
    size, behind = ca.fmax(ca.fabs(d), TINY), d < 0
    own, by_high, by_low = a / size, (step * high + NOTHING) / size, (step * low - NOTHING) / size
    affine = [
        ca.if_else(behind, own, 0),
        ca.if_else(behind, 0, -own),
        ca.if_else(behind, -by_low, by_high),
        ca.if_else(behind, -by_high, by_low),
    ]
    free = a <= NO_INERTIA * ca.fabs(step * b)
    inverse = step / ca.if_else(free, 1, ca.fmax(a, TINY))
    forward = [ca.if_else(free, 0, 1 - b * inverse), ca.if_else(free, LARGEST, high * inverse)]
    least, most = ca.SX(0), ca.SX(LARGEST)
    if r <= FEW:
        for k in range(1, 2 * r):
            lower, upper = _limits(rows[:k, :], rows[k, :])
            least, most = ca.fmax(least, lower), ca.fmin(most, upper)
    results = [ca.vertcat(least, most, *affine), ca.vertcat(*forward), *([] if r <= FEW else [rows])]
    return ca.Function("retiming_interval", [left, right, h], [ca.cse(each) for each in results])


def _limits(rows: ca.SX, row: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return the limits of x by the pairs of one row with others (K, 4)."""
    a, b, high, low = ca.horzsplit(row)
    others, others_b, others_high, others_low = ca.horzsplit(rows)
    d = others * b - a * others_b
    first, second = others * high - a * others_low + NOTHING, a * others_high - others * low + NOTHING
    size, positive = ca.fmax(ca.fabs(d), TINY), d > 0
    least = -ca.if_else(positive, second, first) / size
    return ca.mmax(least), ca.mmin(ca.if_else(positive, first, second) / size)


def _pairs(m: int) -> ca.Function:
    """Return the limits of x by all pairs with one more row."""
    rows, row, best = ca.SX.sym("rows", m, 4), ca.SX.sym("row", 4), ca.SX.sym("best", 2)
    lower, upper = _limits(rows, row.T)
    return ca.Function(
        "retiming_pairs", [rows, row, best], [ca.vertcat(ca.fmax(best[0], lower), ca.fmin(best[1], upper))]
    )


def _backward(m: int) -> ca.Function:
    """Return the controllable set (low, high) of an interval from that of the next one."""
    found, most, after = ca.SX.sym("found", 2 + 4 * m), ca.SX.sym("most"), ca.SX.sym("after", 2)
    limits, affine = ca.vertsplit(found, [0, 2, 2 + 4 * m])
    same, other, high, low = ca.vertsplit(affine, m)
    high = ca.vertcat(limits[1], most, same * after[1] + other * after[0] + high)
    low = ca.vertcat(limits[0], same * after[0] + other * after[1] + low)
    return ca.Function("retiming_backward", [found, most, after], [ca.vertcat(ca.mmax(low), ca.mmin(high))])


def _forward(m: int) -> ca.Function:
    """Return the largest next x that is reached from x."""
    found, after, x = ca.SX.sym("found", 2 * m), ca.SX.sym("after", 2), ca.SX.sym("x")
    slope, offset = ca.vertsplit(found, m)
    reached = ca.mmin(slope * x + offset)
    return ca.Function("retiming_forward", [found, after, x], [ca.fmax(ca.fmin(reached, after[1]), after[0])])


def _timing() -> ca.Function:
    """Return the time, u, and 1 for an interval without a timing, else 0."""
    sets, most, x = (
        [ca.SX.sym(name, *size) for _ in range(2)] for name, size in (("set", (2,)), ("most", ()), ("x", ()))
    )
    h, fits = ca.SX.sym("h"), x[0] + x[1] > 0
    for (low, high), largest, own in zip(map(ca.vertsplit, sets), most, x, strict=True):
        size = ROUNDING * ca.fmax(high, 1e-6 * ca.fmin(largest, 1))
        for lower, upper in ((low, high), (low, own), (own, high), (own, largest)):
            fits = ca.logic_and(fits, lower <= upper + size)
    time = 2 * h / (ca.sqrt(x[0]) + ca.sqrt(x[1]))
    found = ca.vertcat(time, (x[1] - x[0]) / (2 * h), ca.if_else(fits, 0, 1))
    return ca.Function("retiming_timing", [*sets, *most, *x, h], [found])
