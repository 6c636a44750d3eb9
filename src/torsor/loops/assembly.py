"""Putting a mechanism with loops together: positions of all joints, from those of the active ones.

The active coordinates are led from where they are in a closed configuration to where they are wanted, in strides; after
each the loops are closed again by damped Newton, all of a batch at once. What cannot be reached so is looked for one by
one: the closed configuration whose active coordinates are nearest to the wanted ones.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from torsor.errors import ModelError
from torsor.loops.mobility import null_space

__all__ = ["AssemblyError", "Closer", "Space"]

Array = NDArray[np.float64]

# Errors of closure, measured by the size of the mechanism (angles, as 2 sin(angle/2), by 1).
EXACT = 1e-12  # what is aimed at
CLOSED = 1e-11  # what an assembled mechanism may be open by
LOOSE = 1e-3  # what it may be open by on the way

MOST = 100  # trials
SMALLEST = 0.5**8  # share of Newton's step that is tried last
STRIDES = (0.25, 0.06, 0.015)  # rad or sizes of the active coordinates; shorter ones where the longer did not do
JUMP = 0.6  # rad or sizes: what goes farther in one stride went to another way of assembly
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
    """Positions (batch, nq), Newton's step from there (batch, nv), and how far open the loops are (batch,)."""

    q: Array
    step: Array
    open: Array


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
        return _State(packed[:, :nq], packed[:, nq:-1], packed[:, -1])

    def close(self, q: Array, move: Array, until: float = EXACT) -> tuple[Array, Array]:
        """Return closed positions (batch, nq) near those after the step ``move``, and what they are still open by."""
        now, share, damped = self._tried(q, move), np.ones(len(q)), False
        for _ in range(MOST):
            late = ~(now.open <= until)  # also where it is no number
            if damped:
                late &= share > SMALLEST
            left = np.flatnonzero(late)
            if not left.size:
                break
            if 2 * left.size > len(late):  # most: it is quicker to do all than to pick them out
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
        return now.q, now.open

    def _stride(self, begin: Array, way: Array, stride: float) -> tuple[Array, Array]:
        """Return positions after the way in strides, and which arrived without a jump."""
        count = max(1, int(np.ceil(np.abs(way / self.v_units).max(initial=0.0) / stride)))
        q, move, well = begin, way / count, np.ones(len(begin), dtype=bool)
        for k in range(1, count + 1):
            until, enough = (EXACT, CLOSED) if k == count else (LOOSE, 10 * LOOSE)
            there, left = self.close(q, move, until)
            gone = (there - q) / self.q_units
            well &= (left <= enough) & (np.einsum("ij,ij->i", gone, gone) < JUMP**2)
            q = there
        return q, well

    def walk(self, begin: Array, way: Array) -> tuple[Array, Array]:
        """Return closed positions (batch, nq) a ``way`` (batch, nv) of the active coordinates from closed ones.

        And which of them (batch,) arrived; the way of assembly stays what it was.
        """
        found, well = np.empty_like(begin), np.zeros(len(begin), dtype=bool)
        for first in range(0, len(begin), CHUNK):
            part = slice(first, first + CHUNK)
            found[part], well[part] = self._stride(begin[part], way[part], STRIDES[0])
        for stride in STRIDES[1:]:
            late = np.flatnonzero(~well)
            if late.size:
                found[late], well[late] = self._stride(begin[late], way[late], stride)
        return found, well


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
        for _ in range(300):
            motions = null_space(self.jacobian(q))
            seen = motions[:, active]
            slope = seen @ rest
            if np.linalg.norm(slope) <= 1e-10 * np.linalg.norm(rest) or damping > 1e12 or rest @ rest < 1e-26:
                break
            step = np.linalg.solve(seen @ seen.T + damping * np.eye(len(seen)), slope) @ motions
            step *= min(1.0, 0.3 / float(np.linalg.norm(step)))
            there, left = self.closest(self.integrate(q, step * self.units))
            new = missing(there)
            if left <= CLOSED and new @ new < rest @ rest:
                q, rest, damping = there, new, damping / 5
            else:
                damping *= 4
        return q, float(np.linalg.norm(rest))
