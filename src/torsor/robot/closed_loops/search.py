"""Putting a mechanism with loops together: positions of all joints, from those of the active ones.

The active coordinates are led from where they are in a closed configuration to where they are wanted, in strides that
become shorter near singular places, so that none is passed unseen; after each the loops are closed again by damped
Newton, all of a batch at once. What cannot be reached so is looked for one by one: the closed configuration whose
active coordinates are nearest to the wanted ones.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from torsor.arrays import Array, Flags
from torsor.errors import ModelError
from torsor.robot.closed_loops.mobility import null_space

# Errors of closure, measured by the size of the mechanism (angles, as 2 sin(angle/2), by 1).
EXACT = 1e-12  # what is aimed at
CLOSED = 1e-11  # what an assembled mechanism may be open by
LOOSE = 1e-3  # what it may be open by on the way, of the distance from singular squared

MOST = 100  # trials
SMALLEST = 0.5**8  # share of Newton's step that is tried last
STRIDES, STRIDE, SHORTEST = 2000, 0.25, 1e-6  # how many there may be, and their length: rad or sizes
BEFORE = 0.5  # of the distance from singular that a stride may go
DROP = 0.4  # what must be left of that distance after it
JUMP = 0.6  # rad or sizes: what goes farther in one stride went to another way of assembly
NEAREST = 1e-4  # to singular: nearer, forces that depend on its square have lost half their digits
ASIDE = 1e-2  # rad or sizes: how far beside a dead point the search begins
FEW = 16  # states among which one is worth picking out
CHUNK = 2048  # states that stay in the cache of one core


class AssemblyError(ModelError):
    """No closed configuration has the active coordinates that were wanted.

    ``q`` (nq,) is the closed configuration whose active coordinates came nearest, ``q_active`` are these, and
    ``closing_error`` is the least that the loops stay open by with the wanted ones (m, or 2 sin(angle/2)).
    """

    def __init__(self, message: str, q: Array, q_active: Array, closing_error: float):
        super().__init__(message)
        self.q, self.q_active, self.closing_error = q, q_active, closing_error


class _State(NamedTuple):
    """Positions (batch, nq), Newton's step from there (batch, nv), what is open (batch,), and the side (batch,).

    The side is how far from singular they are, with a sign that tells ways of assembly apart.
    """

    q: Array
    step: Array
    open: Array
    side: Array


@dataclass(frozen=True, eq=False)
class Closer:
    """Closes loops of a batch with the independent coordinates as given.

    ``trial`` is ``closure_trial`` compiled; ``q_units`` (nq) and ``v_units`` (nv) are what coordinates are measured by.
    """

    trial: Callable[[Array, Array], Array]
    q_units: Array
    v_units: Array

    def _tried(self, q: Array, dv: Array) -> _State:
        packed, nq = self.trial(q, dv), q.shape[-1]
        return _State(packed[:, :nq], packed[:, nq:-2], packed[:, -2], packed[:, -1])

    def close(self, q: Array, move: Array, until: float | Array = EXACT) -> tuple[Array, Array, Array]:
        """Return closed positions (batch, nq) near those after the step ``move``, what is open, and the side."""
        now, share, damped = self._tried(q, move), np.ones(len(q)), False
        for _ in range(MOST):
            late = ~(now.open <= until)  # also where it is no number
            if damped:
                late &= share > SMALLEST
            left = np.flatnonzero(late)
            if not left.size:
                break
            if FEW * left.size > len(late):  # it is quicker to do all than to pick them out
                new = self._tried(now.q, share[:, None] * now.step if damped else now.step)
                good = (new.open < (1 - 0.1 * share) * now.open) | (new.open <= until)
                if good.all() and not damped:
                    now = new
                    continue
                left = np.arange(len(late))
            else:
                new = self._tried(now.q[left], share[left, None] * now.step[left])
                good = new.open < now.open[left] * (1 - 0.1 * share[left])
            for old, latest in zip(now, new, strict=True):
                old[left[good]] = latest[good]
            share[left] = np.where(good, 1.0, share[left] / 2)
            damped = not good.all()
        if np.ndim(until) == 0:  # once more, to the last digits: near singular places they matter
            last = self._tried(now.q, now.step)
            finer = last.open <= np.maximum(now.open, until)
            now = last if finer.all() else now
        return now.q, now.open, now.side

    def side(self, q: Array) -> Array:
        """Return the side (batch,) that positions are on."""
        return self._tried(q, np.zeros((len(q), len(self.v_units)))).side

    def walk(self, begin: Array, side: Array, way: Array) -> tuple[Array, Flags]:
        """Return closed positions (batch, nq) a ``way`` (batch, nv) of the active coordinates from closed ones.

        And which of them (batch,) arrived; the way of assembly stays what it was, on the ``side`` (batch,) that it was.
        """
        found, well = np.empty_like(begin), np.zeros(len(begin), dtype=bool)
        for first in range(0, len(begin), CHUNK):
            part = slice(first, first + CHUNK)
            found[part], well[part] = self._abreast(begin[part], side[part], way[part])
        late = np.flatnonzero(~well)
        for first in range(0, len(late), CHUNK):
            some = late[first : first + CHUNK]
            found[some], well[some] = self._apart(begin[some], side[some], way[some])
        return found, well

    def _went(self, q: Array, there: Array, side: Array, beyond: Array) -> Flags:
        """Return which strides went well: without a jump, and to no place much nearer to singular, or beyond it."""
        gone = (there - q) / self.q_units
        return np.asarray((np.einsum("ij,ij->i", gone, gone) < JUMP**2) & (beyond / side > DROP))

    def _abreast(self, q: Array, side: Array, way: Array) -> tuple[Array, Flags]:
        """Return positions after the way, in as many strides for all, and for which of them these were short enough."""
        length = np.abs(way / self.v_units).max(axis=-1, initial=0.0)
        count = max(1, int(np.ceil(length.max(initial=0.0) / STRIDE)))
        move, well = way / count, np.ones(len(q), dtype=bool)
        for k in range(1, min(count, MOST) + 1):
            until = EXACT if k == count else LOOSE * side**2
            there, left, beyond = self.close(q, move, until)
            well &= self._went(q, there, side, beyond) & (length <= count * BEFORE * np.abs(side))
            q, side = there, beyond
            if not well.any():
                break
        return q, well & (left <= CLOSED) & (np.abs(side) > NEAREST)

    def _apart(self, q: Array, side: Array, way: Array) -> tuple[Array, Flags]:
        """Return positions after the way, each in strides of its own, and which of them arrived."""
        length = np.maximum(np.abs(way / self.v_units).max(axis=-1, initial=0.0), SHORTEST**2)
        q, side, done, pace = q.copy(), side.copy(), np.zeros(len(q)), np.minimum(STRIDE, BEFORE * np.abs(side))
        for _ in range(STRIDES):
            late = np.flatnonzero((done < 1) & (pace > SHORTEST))
            if not late.size:
                break
            share = np.minimum(1 - done[late], pace[late] / length[late])
            until = LOOSE * side[late] ** 2
            there, left, beyond = self.close(q[late], share[:, None] * way[late], until)
            good = (left <= until) & self._went(q[late], there, side[late], beyond)
            q[late[good]], side[late[good]] = there[good], beyond[good]
            done[late[good]] += share[good]
            longest = np.minimum(2 * pace[late], np.minimum(STRIDE, BEFORE * np.abs(beyond)))
            pace[late] = np.where(good, longest, pace[late] / 2)
        q, left, side = self.close(q, np.zeros_like(way))
        return q, (done >= 1) & (left <= CLOSED) & (np.abs(side) > NEAREST)


@dataclass(frozen=True, eq=False)
class Space:
    """The configurations of a mechanism, one at a time.

    Errors of closure (c,) and their Jacobian (c x nv), both without units; how positions move along a step; and what
    coordinates are measured by (nv).
    """

    error: Callable[[Array], Array]
    jacobian: Callable[[Array], Array]
    integrate: Callable[[Array, Array], Array]
    units: Array

    def closest(self, q: Array, free: list[int] | None = None) -> tuple[Array, float]:
        """Return positions near q that close the loops as well as they can be, and what is left open.

        Coordinates that are ``free`` (all, by default) move by the least steps (Levenberg and Marquardt).
        """
        columns = np.arange(len(self.units)) if free is None else np.array(free, dtype=int)
        damping, phi = 1e-3, self.error(q)
        for _ in range(200):
            if not EXACT / 10 < np.abs(phi).max(initial=0.0) < np.inf:  # axes that are just opposite say no number
                break
            A, step = self.jacobian(q)[:, columns], np.zeros(len(self.units))
            if not np.isfinite(A).all():  # the ends of a rod meet, and point nowhere: begin a little beside
                q = self.integrate(q, 1e-3 * np.cos(np.arange(len(self.units))) * self.units)
                phi = self.error(q)
                continue
            damped = np.vstack([A, np.sqrt(damping * (phi @ phi)) * np.eye(len(columns))])
            step[columns] = np.linalg.lstsq(damped, np.r_[-phi, np.zeros(len(columns))], rcond=1e-12)[0]
            there = self.integrate(q, np.clip(step, -1.0, 1.0) * self.units)
            new = self.error(there)
            if new @ new < phi @ phi:
                q, phi, damping = there, new, damping / 5
            elif damping > 1e12:
                break
            else:
                damping *= 4
        return q, float(np.abs(phi).max(initial=0.0))

    def approach(self, q: Array, missing: Callable[[Array], Array], active: list[int]) -> tuple[Array, float]:
        """Return the closed positions from which least is ``missing`` to the active coordinates, and how much is.

        Descent from the closed positions q along motions that keep the loops closed (Levenberg and Marquardt).
        """
        damping, rest = 1e-3, missing(q)
        motions = null_space(self.jacobian(q))
        if len(motions) and np.linalg.norm(motions[:, active] @ rest) <= ASIDE**2 * np.linalg.norm(rest):
            # A dead point: no motion leads there, but beside it one may, either way.
            loose = null_space(motions[:, active].T, 1.0) @ motions
            beside = [self.closest(self.integrate(q, way * ASIDE * self.units))[0] for m in loose for way in (m, -m)]
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
            if left <= CLOSED and new @ new < rest @ rest:
                q, rest, damping = there, new, damping / 5
            else:
                damping *= 4
        return q, float(np.linalg.norm(rest))
