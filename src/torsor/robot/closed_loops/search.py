"""Searches that close loops: continuation in the active coordinates for batches, least squares for single states.

The active coordinates move from a closed configuration to their goal in steps, which become shorter near singularities
so that none is crossed unnoticed. After each step, damped Newton iterations close the loops of the whole batch. For
each goal that is not reached, a separate search finds the closed configuration whose active coordinates are nearest to
the goal.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from torsor.base.arrays import Array, Flags
from torsor.base.errors import ModelError
from torsor.robot.closed_loops.mobility import null_space

# Closure errors relative to the size of the mechanism (2 sin(angle/2) for angles).
NEWTON_TOLERANCE = 1e-12  # error at which the iterations end
CLOSURE_TOLERANCE = 1e-11  # largest error of an assembled mechanism
INTERMEDIATE_TOLERANCE = 1e-3  # largest intermediate error, relative to the squared distance from a singularity

MAX_ITERATIONS = 100  # Newton iterations
MIN_NEWTON_FRACTION = 0.5**8  # smallest fraction of a Newton step that is tried
MAX_STRIDES, MAX_STRIDE, MIN_STRIDE = 2000, 0.25, 1e-6  # continuation steps: number, longest, shortest (rad or sizes)
MAX_STEP_FRACTION = 0.5  # longest step, as a fraction of the distance from a singularity
MIN_REMAINING_FRACTION = 0.4  # minimum fraction of that distance that must remain after a step
JUMP_LENGTH = 0.6  # rad or sizes: a longer motion in one step is a jump to another assembly mode
# Distance from a singularity below which forces, which depend on its square, lose half their digits.
MIN_SINGULAR_DISTANCE = 1e-4
# Minimum distance of a start from a singularity. At a dead point, position errors are 1e-6, the square root of the
# closure error, so rounding would decide the assembly mode.
DEAD_POINT_DISTANCE = 1e-5
DEAD_POINT_OFFSET = 1e-2  # rad or sizes: distance from a dead point at which the search begins
MAX_SEARCH_STEPS = 200  # maximum number of steps to the smallest closure error
SMALLEST_VALUE = 1e-12  # singular values below this fraction of the largest are rounding errors
# Slope of the error, relative to the steepest possible slope, below which a search has ended with open loops. Where
# closure equations lose rank, the slope vanishes only together with the error.
STATIONARY_SLOPE, MIN_STATIONARY_ERROR = 1e-3, 1e-3
SELECTION_RATIO = 16  # unfinished states are computed separately if they are at most one in this many
CHUNK = 2048  # number of states that fit into the cache of one core


@cache
def _linear_algebra() -> ThreadpoolController:
    """Return the thread control of NumPy's linear algebra; the lookup takes milliseconds, so it is cached."""
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[object]:
    """Return a context that limits linear algebra to one thread, which is faster for small matrices."""
    return _linear_algebra().limit(limits=1)  # type: ignore[no-any-return]


class AssemblyError(ModelError):
    """Error for active coordinates that no closed configuration has.

    ``q`` (nq,) is the closed configuration whose active coordinates, ``q_active``, are nearest to the requested ones.
    ``closing_error`` is the smallest closure error for the requested coordinates (m, or 2 sin(angle/2)).
    """

    q: Array
    q_active: Array
    closing_error: float


class _State(NamedTuple):
    """Positions (batch, nq), the next Newton step (batch, nv), the closure error (batch,), and the side (batch,).

    The side is the distance from a singularity, with a sign that distinguishes assembly modes.
    """

    q: Array
    step: Array
    open: Array
    side: Array


@dataclass(frozen=True, eq=False)
class Closer:
    """A batched Newton solver, with the compiled ``closure_trial`` as ``trial``, and the scales of q and v as units."""

    trial: Callable[[Array, Array], Array]
    q_units: Array
    v_units: Array

    def _trial(self, q: Array, dv: Array) -> _State:
        packed, nq = self.trial(q, dv), q.shape[-1]
        return _State(packed[:, :nq], packed[:, nq:-2], packed[:, -2], packed[:, -1])

    def close(self, q: Array, move: Array, until: float | Array = NEWTON_TOLERANCE) -> tuple[Array, Array, Array]:
        """Return closed positions (batch, nq) near the state after the step ``move``, with their errors and sides."""
        now, fraction, damped = self._trial(q, move), np.ones(len(q)), False
        for _ in range(MAX_ITERATIONS):
            late = ~(now.open <= until)  # also true for NaN
            if damped:
                late &= fraction > MIN_NEWTON_FRACTION
            left = np.flatnonzero(late)
            if not left.size:
                break
            if SELECTION_RATIO * left.size > len(late):  # computing all is faster than selecting
                new = self._trial(now.q, fraction[:, None] * now.step if damped else now.step)
                good = (new.open < (1 - 0.1 * fraction) * now.open) | (new.open <= until)
                if good.all() and not damped:
                    now = new
                    continue
                left = np.arange(len(late))
            else:
                new = self._trial(now.q[left], fraction[left, None] * now.step[left])
                good = new.open < now.open[left] * (1 - 0.1 * fraction[left])
            for old, latest in zip(now, new, strict=True):
                old[left[good]] = latest[good]
            fraction[left] = np.where(good, 1.0, fraction[left] / 2)
            damped = not good.all()
        if np.ndim(until) == 0:  # one more step to full precision, which matters near singularities
            last = self._trial(now.q, now.step)
            finer = last.open <= np.maximum(now.open, until)
            now = last if finer.all() else now
        return now.q, now.open, now.side

    def side(self, q: Array) -> Array:
        """Return the sides (batch,) of positions q, which are signed distances from singularities."""
        return self._trial(q, np.zeros((len(q), len(self.v_units)))).side

    def walk(self, begin: Array, side: Array, displacement: Array) -> tuple[Array, Flags]:
        """Return closed positions (batch, nq) after a displacement of the active coordinates, and success flags."""
        result, well = np.empty_like(begin), np.zeros(len(begin), dtype=bool)
        for first in range(0, len(begin), CHUNK):
            part = slice(first, first + CHUNK)
            result[part], well[part] = self._walk_together(begin[part], side[part], displacement[part])
        well &= np.abs(side) > DEAD_POINT_DISTANCE
        late = np.flatnonzero(~well & (np.abs(side) > DEAD_POINT_DISTANCE))
        for first in range(0, len(late), CHUNK):
            some = late[first : first + CHUNK]
            result[some], well[some] = self._walk_separately(begin[some], side[some], displacement[some])
        return result, well

    def accepted(self, q: Array, there: Array, side: Array, beyond: Array) -> Flags:
        """Return a mask of accepted steps: those that do not jump, and neither cross nor approach a singularity."""
        gone = (there - q) / self.q_units
        least = MIN_REMAINING_FRACTION * np.abs(side)  # not a quotient: both sides may be 0 at a dead point
        return np.asarray((np.einsum("ij,ij->i", gone, gone) < JUMP_LENGTH**2) & (beyond * np.sign(side) > least))

    def _walk_together(self, q: Array, side: Array, displacement: Array) -> tuple[Array, Flags]:
        """Return positions after equal steps for the whole batch, and success flags."""
        length = np.abs(displacement / self.v_units).max(axis=-1, initial=0.0)
        count = max(1, int(np.ceil(length.max(initial=0.0) / MAX_STRIDE)))
        move, well = displacement / count, np.ones(len(q), dtype=bool)
        for k in range(1, min(count, MAX_ITERATIONS) + 1):
            until = NEWTON_TOLERANCE if k == count else INTERMEDIATE_TOLERANCE * side**2
            there, left, beyond = self.close(q, move, until)
            well &= self.accepted(q, there, side, beyond) & (length <= count * MAX_STEP_FRACTION * np.abs(side))
            q, side = there, beyond
            if not well.any():
                break
        return q, well & (left <= CLOSURE_TOLERANCE) & (np.abs(side) > MIN_SINGULAR_DISTANCE)

    def _walk_separately(self, q: Array, side: Array, displacement: Array) -> tuple[Array, Flags]:
        """Return positions after the displacement, with one step length per state, and success flags."""
        length = np.maximum(np.abs(displacement / self.v_units).max(axis=-1, initial=0.0), MIN_STRIDE**2)
        pace = np.minimum(MAX_STRIDE, MAX_STEP_FRACTION * np.abs(side))
        q, side, done = q.copy(), side.copy(), np.zeros(len(q))
        for _ in range(MAX_STRIDES):
            late = np.flatnonzero((done < 1) & (pace > MIN_STRIDE))
            if not late.size:
                break
            fraction = np.minimum(1 - done[late], pace[late] / length[late])
            until = INTERMEDIATE_TOLERANCE * side[late] ** 2
            there, left, beyond = self.close(q[late], fraction[:, None] * displacement[late], until)
            good = (left <= until) & self.accepted(q[late], there, side[late], beyond)
            q[late[good]], side[late[good]] = there[good], beyond[good]
            done[late[good]] += fraction[good]
            longest = np.minimum(2 * pace[late], np.minimum(MAX_STRIDE, MAX_STEP_FRACTION * np.abs(beyond)))
            pace[late] = np.where(good, longest, pace[late] / 2)
        q, left, side = self.close(q, np.zeros_like(displacement))
        return q, (done >= 1) & (left <= CLOSURE_TOLERANCE) & (np.abs(side) > MIN_SINGULAR_DISTANCE)


@dataclass(frozen=True, eq=False)
class Space:
    """The configuration space of a mechanism: scaled closure errors, their Jacobian, and steps, for one state."""

    error: Callable[[Array], Array]
    jacobian: Callable[[Array], Array]
    integrate: Callable[[Array, Array], Array]
    units: Array

    def closest(self, q: Array, free: list[int] | None = None) -> tuple[Array, float]:
        """Return positions near q with the smallest closure error, and the error; only ``free`` coordinates move."""
        with one_thread():
            return self._closest(q, np.arange(len(self.units)) if free is None else np.array(free, dtype=int))

    def _closest(self, q: Array, columns: NDArray[np.intp]) -> tuple[Array, float]:
        """Minimise the closure error by Levenberg-Marquardt steps of some coordinates."""
        damping, phi, factors = 1e-3, self.error(q), None
        for _ in range(MAX_SEARCH_STEPS):
            if not NEWTON_TOLERANCE / 10 < np.abs(phi).max(initial=0.0) < np.inf:  # exactly opposite axes give NaN
                break
            if factors is None:
                A = self.jacobian(q)[:, columns]
                if not np.isfinite(A).all():  # the ends of a rod coincide and its direction is undefined: perturb
                    q = self.integrate(q, 1e-3 * np.cos(np.arange(len(self.units))) * self.units)
                    phi = self.error(q)
                    continue
                factors = np.linalg.svd(A, full_matrices=False)
            U, values, V = factors
            along, size = phi @ U, float(np.linalg.norm(phi))
            slope, steepest = float(np.linalg.norm(values * along)), float(values.max(initial=0.0)) * size
            if slope <= STATIONARY_SLOPE * steepest and size > MIN_STATIONARY_ERROR:
                break
            squares = values**2 + damping * size**2
            kept = squares > (SMALLEST_VALUE * squares.max(initial=0.0) ** 0.5) ** 2
            step = np.zeros(len(self.units))
            step[columns] = -np.where(kept, values * along / np.where(kept, squares, 1.0), 0.0) @ V
            there = self.integrate(q, np.clip(step, -1.0, 1.0) * self.units)
            new = self.error(there)
            if new @ new < phi @ phi:
                q, phi, damping, factors = there, new, damping / 5, None
            elif damping > 1e12:
                break
            else:
                damping *= 4
        return q, float(np.abs(phi).max(initial=0.0))

    def approach(self, q: Array, missing: Callable[[Array], Array], active: list[int]) -> tuple[Array, float]:
        """Return the closed positions nearest to a goal, and their distance from it; ``missing(q)`` is the offset."""
        damping, rest = 1e-3, missing(q)
        motions = null_space(self.jacobian(q))
        if len(motions) and np.linalg.norm(motions[:, active] @ rest) <= DEAD_POINT_OFFSET**2 * np.linalg.norm(rest):
            # At a dead point no motion leads to the goal. Start again next to it, on either side.
            loose = null_space(motions[:, active].T, 1.0) @ motions
            steps = (side * DEAD_POINT_OFFSET * motion * self.units for motion in loose for side in (1, -1))
            beside = [self.closest(self.integrate(q, step))[0] for step in steps]
            q = min(beside, key=lambda at: float(np.linalg.norm(missing(at))), default=q)
            rest = missing(q)
        for _ in range(300):
            motions = null_space(self.jacobian(q))
            seen = motions[:, active]
            descent = seen @ rest
            if np.linalg.norm(descent) <= 1e-10 * np.linalg.norm(rest) or damping > 1e12 or rest @ rest < 1e-26:
                break
            step = np.linalg.solve(seen @ seen.T + damping * np.eye(len(seen)), descent) @ motions
            step *= min(1.0, 0.3 / float(np.linalg.norm(step)))
            there, left = self.closest(self.integrate(q, step * self.units))
            new = missing(there)
            if left <= CLOSURE_TOLERANCE and new @ new < rest @ rest:
                q, rest, damping = there, new, damping / 5
            else:
                damping *= 4
        return q, float(np.linalg.norm(rest))
