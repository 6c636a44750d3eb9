"""The look-ahead: the fastest timing over a window of path samples, found in small pieces of work."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from torsor.arrays import Array
from torsor.control.scaling.newton import FROM_REST, Kernels, free_points, row_size

LEAST = 4  # intervals of a window
GAP = 3e-3  # of the time of a window
STATIONARY = 1e-2  # of the first residual of the gradient that may be left
FEASIBLE = 3e-3  # of squared loads beyond the bounds less the margin: the loads themselves are checked afterwards
CENTERING = 0.1, 0.3, 0.6  # of the products of slacks and multipliers: after long, short and very short steps
LONG, SHORT = 0.5, 0.2  # the parts of a Newton step that separate these
BOUNDARY = 0.97  # the part of the way to the nearest bound that a step takes
FIRST_SLACK = 0.2  # of rows that are violated, or nearly, by the first guess
FIRST_DISTANCE = 1e-3  # the same for the bounds of x itself
TIGHTER, TIGHTEST = 1.02, 2.0  # the factor of tighter bounds over the use that broke them, and the largest one
SLOWER = 60  # times that x is halved at most


class _Piece(NamedTuple):
    """The arrays of some intervals of a window."""

    systems: Array
    changes: Array
    rows: Array
    triples: Array
    slacks: Array
    steps: Array


class Window:
    """A window of at most ``count`` intervals of a robot with n joints.

    ``fill`` takes the samples, ``improve`` searches in pieces: each ``next`` is at most one call of a kernel, for at
    most ``piece`` intervals. ``points`` are the control points of x, ``use`` says whether they are within the bounds:
    loads times ``spare``, since between two checked points they may be a little larger.
    """

    def __init__(
        self, kernels: Kernels, spacing: float, ratio: Array, count: int, width: int, piece: int, spare: float
    ):
        self.kernels, self.count, self.piece, self._width, self._spare = kernels, count, piece, width, spare
        n, m = len(ratio), kernels.rows_count
        self._common = np.array([spacing, 0.0, 0.0, *ratio])
        self._rows = np.zeros((count, row_size(n, width // n)))
        self._m = m
        self._all, self._steps = np.zeros(count + 2), np.zeros(count + 2)
        self._triples, self._step_triples = (
            as_strided(each, (count, 3), (8, 8), writeable=False) for each in (self._all, self._steps)
        )
        self._systems, self._slacks = np.zeros((count, 10)), np.ones((count, 2 * m))
        self._changes = np.zeros((count, 2 * m + 2))
        ends = [(start, end) for start in ("rest", "given", "free") for end in ("rest", "free")]
        self._maps = {each: free_points(count, *each) for each in ends}
        self.n, self.start, self.end, self.tight = 0, "rest", "rest", np.zeros(0)
        self.iterations, self.is_feasible = 0, False
        self._views: dict[int, list[_Piece]] = {}

    @property
    def points(self) -> Array:
        """The control points (n + 2) of x."""
        return self._all[: self.n + 2]

    def fill(self, samples: Array, fastest: Array, tight: Array, guess: Array, start: str, end: str) -> None:
        """Take the samples of a window, and a first guess.

        Samples are coefficients (n + 1, width) and the largest x (n + 1); ``tight`` are the factors of the loads of the
        intervals (n), so that a margin is kept; ``guess`` are control points (n + 2).
        """
        n, width = len(samples) - 1, self._width
        self.n, self.start, self.end, self.tight = n, start, end, tight
        rows = self._rows[:n]
        rows[:, :width], rows[:, width : 2 * width], rows[:, 2 * width] = (
            samples[:-1],
            samples[1:],
            np.minimum(fastest[:-1], fastest[1:]),
        )
        maps = self._maps[start, end]
        rows[:-2, 2 * width + 2 :], rows[-2:, 2 * width + 2 :] = maps[: n - 2], maps[-2:]
        self.is_feasible, self._systems[n:] = False, 0.0
        self._all[: n + 2] = guess
        self._constrain(self._all)

    def take(self, points: Array) -> None:
        """Use other control points (n + 2); those that are given or depend on others stay so."""
        kept = 2 if self.start == "given" else 0
        self._all[kept : self.n + 2] = points[kept:]
        self._constrain(self._all)

    def _constrain(self, points: Array) -> None:
        """Set the control points that depend on others."""
        n = self.n
        if self.start == "rest":
            points[:2] = FROM_REST[0] * points[2], FROM_REST[1] * points[2]
        elif self.start == "free":
            points[0] = points[1]
        if self.end == "rest":
            points[n : n + 2] = FROM_REST[1] * points[n - 1], FROM_REST[0] * points[n - 1]
        else:
            points[n + 1] = points[n]

    def slow_down(self, use: float = 1.0) -> None:
        """Halve x until the use of bounds is at most this one, as it is at last wherever the robot can stand still."""
        for _ in range(SLOWER):
            if self.use() <= use:
                return
            self.take(self.points / 2)

    def use(self) -> float:
        """Return the largest use of a bound: 1 at the bound, infinite for points that are no motion."""
        return float(self.uses().max())

    def uses(self) -> Array:
        """Return the largest use of a bound in each interval (n)."""
        return np.concatenate(list(self.uses_in_pieces()))

    def uses_in_pieces(self) -> Iterator[Array]:
        """Yield the largest use of a bound in each interval, piece by piece."""
        self._rows[: self.n, 2 * self._width + 1] = self._spare
        for piece in self._pieces():
            yield self.kernels.use(self._common, piece.rows, piece.triples)

    def tighten(self, uses: Array) -> None:
        """Make the bounds tighter in intervals where they were broken, for the next search."""
        self.tight = self.tight * np.where(uses > 1, np.minimum(TIGHTER * uses, TIGHTEST), 1.0)

    def _pieces(self) -> list[_Piece]:
        """Return the pieces of a window: views of the arrays, which stay the same for windows of this length."""
        if self.n not in self._views:
            n = self.n
            slices = [slice(k, min(k + self.piece, n)) for k in range(0, n, self.piece)]
            arrays = self._systems, self._changes, self._rows, self._triples, self._slacks, self._step_triples
            self._views[n] = [_Piece(*(array[part] for array in arrays)) for part in slices]
        return self._views[self.n]

    def improve(self, iterations: int) -> Iterator[None]:
        """Search for the least time within the tightened bounds, in pieces and so many iterations.

        It may be ended early where ``is_feasible`` says that the points keep these bounds, at the samples.
        """
        n, m, kernels, common = self.n, self._m, self.kernels, self._common
        self._rows[:n, 2 * self._width + 1] = self.tight
        pieces = self._pieces()
        yield
        rows = kernels.rows(self._common, self._rows[:n], self._triples[:n])
        yield
        y, multipliers = self._slacks[:n, :m], self._slacks[:n, m:]
        np.negative(rows, out=y)
        np.maximum(y[:, :-2], FIRST_SLACK, out=y[:, :-2])
        np.maximum(y[:, -2:], FIRST_DISTANCE, out=y[:, -2:])
        np.divide(1 / y.size, y, out=multipliers)
        self._common[2] = 1 / (self._common[0] * (self._all[1 : n + 1] ** -0.5).sum())
        taken, residual = 1.0, 1.0
        yield
        for self.iterations in range(iterations):
            gap = float(np.vdot(y, multipliers))
            self._common[1] = CENTERING[(taken < LONG) + (taken < SHORT)] * gap / y.size
            for each in pieces:
                each.systems[:] = kernels.system(common, each.rows, each.triples, each.slacks)
                yield
            self.is_feasible = bool(self._systems[:n, -1].max() < FEASIBLE)
            if gap < GAP and residual < STATIONARY and self.is_feasible:
                break
            self._steps[:] = kernels.solve(self._systems)
            yield
            for each in pieces:
                each.changes[:] = kernels.step(common, each.rows, each.triples, each.slacks, each.steps)
                yield
            largest = self._changes[:n, -2:].max(axis=0).tolist()
            primal, dual = (BOUNDARY / max(each, BOUNDARY) for each in largest)
            self._constrain(self._steps)
            if self.start == "given":
                self._steps[:2] = 0.0
            self.is_feasible = False  # not known
            self._all[: n + 2] += primal * self._steps[: n + 2]
            y += primal * self._changes[:n, :m]
            multipliers += dual * self._changes[:n, m:-2]
            taken = min(primal, dual)
            residual *= 1 - taken
