"""The look-ahead: the fastest timing over a window of path samples, found in small pieces of work."""

from collections.abc import Generator, Iterator
from typing import NamedTuple, Protocol

import numpy as np
from numpy.lib.stride_tricks import as_strided

from torsor.base.arrays import Array
from torsor.control.scaling.banded import SYSTEM
from torsor.control.scaling.newton import COMMON, ENDING, FROM_REST, OWN, Kernels, free_points

LEAST = 4  # intervals of a window
GAP = 3e-3  # of the time of a window
STATIONARY = 1e-2  # of the first residual of the gradient that may be left
FEASIBLE = 3e-3  # of squared loads beyond the bounds less the margin: the loads themselves are checked afterwards
CENTERING = 0.1, 0.3, 0.6  # of the products of slacks and multipliers: after long, short and very short steps
LONG_STEP, SHORT_STEP = 0.5, 0.2  # the parts of a Newton step that separate these
BOUNDARY = 0.97  # the part of the way to the nearest bound that a step takes
TIGHTER, TIGHTEST = 1.02, 2.0  # the factor of tighter bounds over the use that broke them, and the largest one
SLOWER = 60  # times that x is halved at most
STEPS = 2  # pieces whose steps are one piece of work, since a step takes less than half the time of a system
CHECKS = 2  # parts of a piece for the check, which takes about twice as long
LOWEST = 1e-3  # of the largest control point: those of a first guess are no smaller, since the time grows without end


class Sampled(Protocol):
    """Samples of a path: see ``samples.Samples``."""

    capacity: int
    spacing: float
    near: Array
    inner: Array
    fastest: Array
    tight: Array


class _Piece(NamedTuple):
    """The arrays of some intervals of a window."""

    systems: Array
    endings: Array
    steps: Array
    own: Array
    triples: Array
    near: Array
    inner: Array


class Window:
    """A window of at most ``count`` intervals of a robot with n joints.

    ``fill`` takes the samples, ``improve`` searches in pieces: each ``next`` is at most one call of a kernel, for some
    ``piece`` intervals. ``points`` are the control points of x, ``uses`` says whether they are within the bounds:
    loads times ``spare``, since between two checked points they may be a little larger.
    """

    def __init__(self, kernels: Kernels, samples: Sampled, ratio: Array, count: int, piece: int, spare: float):
        self.kernels, self.count, self.piece = kernels, count, piece
        self._samples, self._spare = samples, spare
        self._common = np.array([samples.spacing, *(COMMON - 1) * [0.0], *ratio])
        self._own = np.zeros((count, OWN))
        self._all, self._steps = np.zeros(count + 2), np.zeros(count + 2)
        self._triples, self._step_triples = (
            as_strided(each, (count, 3), (8, 8), writeable=False) for each in (self._all, self._steps)
        )
        self._systems, self._endings = np.zeros((count, SYSTEM)), np.zeros((ENDING, count))
        self._unchanged = np.zeros(2 * kernels.rows_count + ENDING)
        ends = [(start, end) for start in ("rest", "given", "free") for end in ("rest", "free")]
        self._maps = {each: free_points(count, *each) for each in ends}
        self.n, self.start, self.end, self.tight = 0, "rest", "rest", np.zeros(0)
        self.iterations = 0
        self.feasible: Array | None = None  # the last points that were within the tightened bounds
        self._pieces: list[_Piece] = []

    @property
    def points(self) -> Array:
        """The control points (n + 2) of x."""
        return self._all[: self.n + 2]

    def fill(self, m: int, n: int, start: str, end: str) -> Iterator[None]:
        """Take the n intervals from sample m on, in pieces of work; ``begin`` comes next."""
        samples, row = self._samples, m % self._samples.capacity
        self.n, self.start, self.end = n, start, end
        self.tight = samples.tight[row : row + n]
        own, maps = self._own[:n], self._maps[start, end]
        own[:, 0] = samples.fastest[row : row + n]
        own[:-2, 2:], own[-2:, 2:] = maps[: n - 2], maps[-2:]
        self._systems[n:] = 0.0
        yield
        self._pieces = []
        arrays = self._systems, self._endings.T, self._step_triples, self._own, self._triples
        size = -(-n // -(-n // self.piece))  # as equal as possible
        for first in range(0, n, size):
            last = min(first + size, n)
            parts = [each[first:last] for each in arrays]
            parts += [each[row + first : row + last] for each in (samples.near, samples.inner)]
            self._pieces.append(_Piece(*parts))
            if len(self._pieces) % 3 == 0:
                yield

    @property
    def pieces_of_check(self) -> int:
        """The pieces of work of ``uses``."""
        return CHECKS * len(self._pieces)

    def begin(self, points: Array) -> None:
        """Use control points (n + 2) as the first guess."""
        self._all[: self.n + 2] = points
        self._constrain(self._all)

    def take(self, points: Array) -> None:
        """Use other control points (n + 2); those that are given or depend on others stay so."""
        kept = 2 if self.start == "given" else 0
        self._all[kept : self.n + 2] = points[kept:]
        self._constrain(self._all)

    def clipped(self) -> Array:
        """Return the control points (n + 2), none above the largest x: a search may end a little beyond it."""
        found = self.points.copy()
        np.minimum(found[1:-1], self._own[: self.n, 0], out=found[1:-1])
        return found

    def _constrain(self, points: Array) -> None:
        """Set the control points that depend on others."""
        n = self.n
        if self.start == "rest":
            points[0], points[1] = FROM_REST[0] * points[2], FROM_REST[1] * points[2]
        elif self.start == "free":
            points[0] = points[1]
        if self.end == "rest":
            points[n], points[n + 1] = FROM_REST[1] * points[n - 1], FROM_REST[0] * points[n - 1]
        else:
            points[n + 1] = points[n]

    def slow_down(self, use: float = 1.0) -> Generator[None, None, Array]:
        """Halve x until the use of bounds is at most this one, as it is at last wherever the robot can stand still.

        Return the use in each interval (n).
        """
        for _ in range(SLOWER):
            uses = yield from self.uses()
            if uses.max() <= use:
                break
            self.take(self.points / 2)
        return uses

    def uses(self) -> Generator[None, None, Array]:
        """Return the largest use of a bound in each interval (n), in pieces of work: 1 at the bound."""
        self._own[: self.n, 1] = self._spare
        found = []
        for each in self._pieces:
            size = -(-len(each.own) // CHECKS)
            for first in range(0, len(each.own), size):
                part = slice(first, first + size)
                found.append(self.kernels.use(self._common, *(array[part] for array in each[-4:])))
                yield
        return np.concatenate(found)

    def tighten(self, uses: Array) -> None:
        """Make the bounds tighter in intervals where they were broken, for the next search."""
        self.tight = self.tight * np.where(uses > 1, np.minimum(TIGHTER * uses, TIGHTEST), 1.0)

    def improve(
        self, iterations: int, least_gap: float = GAP, centering: tuple[float, float, float] = CENTERING
    ) -> Iterator[None]:
        """Search for the least time within the tightened bounds, in pieces and so many iterations.

        It ends when at most ``least_gap`` of the time can be gained; ``centering`` as ``CENTERING``. It may be ended
        early: ``feasible`` are the last points that keep these bounds, at the samples.
        """
        n, kernels, common, pieces = self.n, self.kernels, self._common, self._pieces
        self._own[:n, 1], self.feasible = self.tight, None
        self.take(np.maximum(self.points, LOWEST * self.points.max()))
        yield
        size, taken, residual, gap = n * kernels.rows_count, 1.0, 1.0, 1.0
        # Products of slacks and multipliers, the scale of the time, primal and dual step
        time = common[0] * (1 / np.sqrt(self._all[2:n])).sum()
        common[1:COMMON] = gap / size, 1 / time, 0.0, 0.0
        kept, changes = [], len(pieces) * [self._unchanged]
        yield
        for each in pieces:
            kept.append(kernels.start(common, each.own, each.triples, each.near))
            yield
        for self.iterations in range(iterations):
            common[1] = centering[(taken < LONG_STEP) + (taken < SHORT_STEP)] * gap / size
            for k, each in enumerate(pieces):
                kept[k] = kernels.system(common, each.own, each.triples, each.near, kept[k], changes[k])
                each.systems[:] = kept[k][:, :SYSTEM]
                yield
            if self._systems[:n, -1].max() < FEASIBLE:
                self.feasible = self.points.copy()
                if gap < least_gap and residual < STATIONARY:
                    break
            self._steps[:] = kernels.solve(self._systems)
            yield
            for k, each in enumerate(pieces):
                changes[k] = kernels.step(common, each.own, kept[k], each.steps)
                each.endings[:] = changes[k][:, -ENDING:]
                if k % STEPS == STEPS - 1:
                    yield
            gap, taken = self._move()
            residual *= 1 - taken
            yield

    def _move(self) -> tuple[float, float]:
        """Take a step, as long as slacks and multipliers stay positive; return the next gap and the part taken."""
        n, endings = self.n, self._endings[:, : self.n]
        least_y, least_l = np.maximum.reduce(endings[:2], axis=1).tolist()
        primal, dual = BOUNDARY / max(least_y, BOUNDARY), BOUNDARY / max(least_l, BOUNDARY)
        now, by_primal, by_dual, by_both = np.add.reduce(endings[2:], axis=1).tolist()
        self._common[3], self._common[4] = primal, dual
        self._constrain(self._steps)
        if self.start == "given":
            self._steps[:2] = 0.0
        self._all[: n + 2] += primal * self._steps[: n + 2]
        return now + primal * by_primal + dual * by_dual + primal * dual * by_both, min(primal, dual)
