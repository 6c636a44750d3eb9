"""Loads in each piece of a path: what the places of a grid with equal intervals may miss.

Jerks and torque rates jump at the breaks of a spline, and a blended corner may be shorter than an interval.
"""

from collections.abc import Generator
from functools import cache

import casadi as ca
import numpy as np

from torsor.base.arrays import Array, Indices
from torsor.compiler import AnyKernel, compile
from torsor.control.scaling.newton import Kernels
from torsor.control.scaling.path_dynamics import loads
from torsor.control.scaling.window import Sampled, Window
from torsor.motion.retiming.path import BLEND, JointPath
from torsor.motion.retiming.timing import progress, stretched

TIGHTER, TIGHTEST = 1.002, 1.2  # the factor of tighter bounds over the use that broke them, and the largest one
OF_SPLINES, OF_BLENDS = 9, 25  # places between a break and a knot, at which loads are checked
REACHED = 0.98  # of the largest x


def beside_breaks(path: JointPath, knots: Array) -> tuple[Indices, Array, Array]:
    """Return pieces, places and parts of the whole progress (P,) between each break of a path and the knots beside it.

    Knots (G + 1) are progresses in the unit of s.

    Example:
        >>> path = JointPath.through(np.array([0.0, 1.0, 2.0]), np.zeros((1, 3, 1)))
        >>> piece, s, part = beside_breaks(path, np.array([0.0, 0.8, 1.2, 2.0]))
        >>> piece.tolist() == [0] * 9 + [1] * 9, part[[0, 8, 9, 17]].round(9).tolist()
        (True, [0.4, 0.5, 0.5, 0.6])
    """
    first, length = knots[0], knots[-1] - knots[0]
    breaks = first + length * progress((path.breaks[0, 1:-1] - first) / length)
    ends = np.union1d(knots, breaks)
    beside = np.isin(ends[:-1], breaks) | np.isin(ends[1:], breaks)
    start, step = ends[:-1][beside], np.diff(ends)[beside]
    places = np.linspace(0.0, 1.0, OF_BLENDS if path.pieces.shape[2] == BLEND else OF_SPLINES)
    part = (start[:, None] + places * step[:, None] - first) / length
    piece = path.piece_of(first + length * stretched((start + step / 2 - first) / length)[0])
    return np.repeat(piece, len(places)), (first + length * stretched(part)[0]).ravel(), part.ravel()


class PathWindow(Window):
    """A window over a whole path, whose ``uses`` are also those at some ``places`` of it.

    ``at`` (P, parts * r + 2) are the coefficients at the ``parts`` (P,) of the whole progress.
    """

    def __init__(self, kernels: Kernels, samples: Sampled, ratio: Array, count: int, parts: Array, at: Array):
        super().__init__(kernels, samples, ratio, count, count, 1.0)
        self._of = np.minimum((parts * count).astype(int), count - 1)
        self._part, self._at, self._ratio = parts * count - self._of, at, ratio
        self._use = _use(len(ratio), (at.shape[1] - 2) // len(ratio))

    def uses(self) -> Generator[None, None, Array]:
        """Return the largest use of a bound in each interval (n), in pieces of work: 1 at the bound."""
        found = yield from super().uses()
        t0, t1, t2 = (self.points[self._of + k] for k in range(3))
        part, h = self._part, self._samples.spacing
        w, first = (t2 - 2 * t1 + t0) / (2 * h**2), (t1 - t0) / (2 * h)
        x = (t0 + t1) / 2 + h * part * (2 * first + h * part * w)
        np.maximum.at(found, self._of, self._use(self._at, self._ratio, w, first + h * part * w, x))
        return found

    def tighten(self, uses: Array) -> None:
        """Make the bounds tighter in intervals where they were broken, and beside them, for the next search.

        The largest x is lowered where the last search reached it.
        """
        near = np.maximum(uses, np.maximum(np.append(uses[1:], 0.0), np.append(0.0, uses[:-1])))
        more = np.where(near > 1, np.minimum(TIGHTER * near, TIGHTEST), 1.0)
        self.tight = self.tight * more
        if self.feasible is not None:
            fastest = self._own[: self.n, 0]
            fastest /= np.where(self.feasible[1:-1] > REACHED * fastest, more, 1.0) ** 2


@cache
def _use(r: int, parts: int) -> AnyKernel:
    """Return the largest relative load, rate and speed for r rows; infinite where x < 0."""
    at, ratio = ca.SX.sym("at", parts * r + 2), ca.SX.sym("ratio", r)
    w, u, x = (ca.SX.sym(name) for name in "wux")
    load, rate, *_ = loads(ca.vertsplit(at[:-2], r), ratio, w, u, x)
    most = ca.fmax(ca.mmax(ca.fabs(ca.vertcat(load, rate))), ca.sqrt(x / at[-2]))
    return compile(ca.Function("use", [at, ratio, w, u, x], [ca.if_else(x > 0, most, np.inf)]))
