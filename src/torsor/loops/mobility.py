"""What can move: degrees of freedom of a mechanism with loops, redundant equations, and what its drives control."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torsor.dynamics.constrained import Closing

__all__ = ["Mobility", "analyse", "choose", "quality"]

Array = NDArray[np.float64]

# Singular values below this share of the largest are zero: closing leaves 1e-12, real mechanisms 1e-4 and more.
RANK = 1e-8


@dataclass(frozen=True, eq=False)
class Mobility:
    """What can move at one configuration.

    ``dof`` is the number of degrees of freedom there, ``redundant`` how many of the ``equations`` of closure say
    nothing new. ``uncontrolled`` (k, nv) are motions that the active coordinates leave free when they are held (a
    singularity of the second kind, or too few drives); ``blocked`` (k, N) are directions of the active coordinates that
    no motion has (they are more than the degrees of freedom, or a singularity of the first kind).
    """

    dof: int
    equations: int
    redundant: int
    uncontrolled: Array
    blocked: Array

    @property
    def is_singular(self) -> bool:
        """Whether motion is left when the active coordinates are held."""
        return len(self.uncontrolled) > 0


def _null(A: Array, scale: float) -> Array:
    """Return orthonormal rows that span the null space of A."""
    if not A.size:
        return np.eye(A.shape[1])
    _, values, V = np.linalg.svd(A)
    return np.asarray(V[np.count_nonzero(values > RANK * scale) :])


def analyse(A: Array, active: list[int]) -> Mobility:
    """Return the mobility where the Jacobian of the equations of closure is A (c x nv)."""
    scale = max(float(np.linalg.norm(A, 2)) if A.size else 0.0, 1e-300)
    motions = _null(A, scale)
    seen = motions[:, active]  # of each motion, what the active coordinates do
    free = _null(seen.T, 1.0) if len(motions) else np.zeros((0, 0))
    blocked = _null(seen, 1.0) if active else np.zeros((0, 0))
    dof = len(motions)
    return Mobility(dof, len(A), len(A) - (A.shape[1] - dof), free @ motions, blocked)


def quality(A: Array, active: list[int]) -> tuple[int, float]:
    """Return the rank of A, and how far the mechanism is from moving while its active coordinates are held."""
    rank = A.shape[1] - analyse(A, []).dof
    passive = [k for k in range(A.shape[1]) if k not in active]
    values = np.linalg.svd(A[:, passive], compute_uv=False) if A.size and passive else np.ones(1)
    needed = min(rank, len(passive))
    return rank, float(values[needed - 1] / values[0]) if needed and values[0] > 0 else 0.0


def choose(A: Array, active: list[int]) -> Closing:
    """Return equations that are independent, and coordinates that move the mechanism: active ones, then others.

    Each is the one that is farthest from those taken before (elimination with pivoting), so that what is solved later
    is solved well.
    """
    scale = max(float(np.linalg.norm(A, 2)) if A.size else 0.0, 1e-300)
    rank = A.shape[1] - len(_null(A, scale))
    # Dependent coordinates first: those that nobody drives, then those that are driven too.
    order = [k for k in range(A.shape[1]) if k not in active], list(active)
    rest, dependent = A.copy(), list[int]()
    for group in order:
        while len(dependent) < rank and group:
            lengths = [float(np.linalg.norm(rest[:, k])) for k in group]
            best = int(np.argmax(lengths))
            if lengths[best] <= RANK * scale:
                break
            k = group.pop(best)
            direction = rest[:, k] / lengths[best]
            rest = rest - np.outer(direction, direction @ rest)
            dependent.append(k)
    rows, kept = A[:, dependent].copy(), list[int]()
    for _ in range(rank):
        lengths = [float(np.linalg.norm(row)) for row in rows]
        best = int(np.argmax(lengths))
        direction = rows[best] / lengths[best]
        rows = rows - np.outer(rows @ direction, direction)
        kept.append(best)
    independent = tuple(k for k in range(A.shape[1]) if k not in dependent)
    return Closing(tuple(sorted(kept)), independent, tuple(active))
