"""Putting a mechanism with loops together: positions of all joints, from those of the active ones.

Damped Newton from a guess. Where it does not arrive, the active coordinates are led from where they are in a closed
configuration to where they are wanted, step by step, as far as they come.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Closer", "nearest"]

Array = NDArray[np.float64]

TOLERANCE = 1e-12  # m, or sines of angles
MOST = 60  # steps
HALVINGS = 8
SMALLEST = 1e-4  # share of the way that is tried last
STRIDE = 0.25  # rad or m of the active coordinates


@dataclass(frozen=True, eq=False)
class Closer:
    """What closing needs: errors (..., c), Newton's step (..., nv) and how positions move along a step."""

    error: Callable[[Array], Array]
    step: Callable[[Array], Array]
    integrate: Callable[[Array, Array], Array]

    def size(self, q: Array) -> Array:
        """Return the largest error of closure (...)."""
        return np.asarray(np.nan_to_num(np.abs(self.error(q)), nan=np.inf).max(axis=-1, initial=0.0))

    def close(self, q: Array) -> tuple[Array, Array]:
        """Return positions (batch, nq) with the independent coordinates as given, and the errors that are left."""
        q, size = q.copy(), self.size(q)
        for _ in range(MOST):
            open_ = np.flatnonzero(size > TOLERANCE)
            if not open_.size:
                break
            step = np.clip(np.nan_to_num(self.step(q[open_])), -1.0, 1.0)
            better = np.zeros(open_.size, dtype=bool)
            for halving in range(HALVINGS):
                tried = np.flatnonzero(~better)
                there = self.integrate(q[open_[tried]], step[tried] * 0.5**halving)
                new = self.size(there)
                good = new < size[open_[tried]] * (1 - 0.1 * 0.5**halving)
                taken = open_[tried[good]]
                q[taken], size[taken], better[tried[good]] = there[good], new[good], True
                if better.all():
                    break
            if not better.any():
                break
            if not better.all() and size[open_[better]].max(initial=0.0) <= TOLERANCE:
                break
        return q, size

    def walk(self, begin: Array, places: list[int], wanted: Array) -> tuple[Array, Array]:
        """Return positions (batch, nq) with the independent coordinates led from ``begin`` to where they are wanted.

        Several steps where the way is long, so that the way of assembly stays what it was; and the errors left.
        """
        way = wanted - begin[:, places]
        count = max(1, int(np.ceil(np.abs(way).max(initial=0.0) / STRIDE)))
        q, size = begin.copy(), np.zeros(len(begin))
        for k in range(1, count + 1):
            q[:, places] = begin[:, places] + k / count * way
            q, size = self.close(q)
        return q, size

    def lead(self, closed: Array, places: list[int], wanted: Array) -> tuple[Array, float]:
        """Return the positions (nq,) farthest on the way of the independent coordinates, and the share of the way."""
        start, share, pace = closed[places].copy(), 0.0, 0.25
        q = closed.copy()
        while share < 1 and pace > SMALLEST:
            trial = q.copy()
            trial[places] = start + min(1.0, share + pace) * (wanted - start)
            found, size = self.close(trial[None])
            near = np.abs(found[0] - q).max() < 0.5  # the same way of assembly, not another one
            if size[0] <= TOLERANCE and near:
                q, share, pace = found[0], min(1.0, share + pace), 1.5 * pace
            else:
                pace /= 2
        return q, share


def nearest(
    error: Callable[[Array], Array],
    jacobian: Callable[[Array], Array],
    integrate: Callable[[Array, Array], Array],
    q: Array,
) -> tuple[Array, float]:
    """Return positions (nq,) near q that close the loops as well as they can be, and the error that is left.

    Every coordinate moves, by the least steps (Levenberg and Marquardt).
    """
    damping, phi = 1e-3, error(q)
    for _ in range(200):
        if np.abs(phi).max(initial=0.0) <= TOLERANCE / 10:
            break
        A = jacobian(q)
        damped = A @ A.T + damping * (phi @ phi + 1e-20) * np.eye(len(A))
        step = -A.T @ np.linalg.lstsq(damped, phi, rcond=None)[0]  # spare equations make it singular
        there = integrate(q, np.clip(step, -1.0, 1.0))
        new = error(there)
        if new @ new < phi @ phi:
            q, phi, damping = there, new, damping / 5
        elif damping > 1e12:
            break
        else:
            damping *= 4
    return q, float(np.abs(phi).max(initial=0.0))
