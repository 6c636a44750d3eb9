"""Numerical detection of singularities of a parallel robot.

First kind: A_q of a leg loses rank, and the leg can move by itself. Second kind: J_p^-1 loses rank, and the
platform can move with locked drives. Both matrices are scaled to have no units.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array, Flags
from torsor.dynamics.loops.characteristic_scales import characteristic_scales
from torsor.robot.parallel.decomposition import Parts

SINGULAR = 1e-5  # rank tolerance: smallest singular value over the largest


def legs(parts: Parts, matrices: Array) -> tuple[Flags, Array]:
    """Return which legs are singular (..., legs), and the velocities (..., nv) along which these can move.

    ``matrices`` are the entries of A_q of all legs, as ``leg_matrices`` gives them.
    """
    batch, first = matrices.shape[:-1], 0
    found = np.zeros((*batch, len(parts.limbs)), dtype=bool)
    motion = np.zeros((*batch, parts.limbs[-1].v.stop))
    for k, limb in enumerate(parts.limbs):
        n = limb.tree.nv
        rows, columns = limb.units
        A = matrices[..., first : first + n * n].reshape(*batch, n, n) / np.array(rows)[:, None] * columns
        first += n * n
        _, values, V = np.linalg.svd(np.where(np.isfinite(A), A, 0.0))
        found[..., k] = values[..., -1] < SINGULAR * np.maximum(values[..., 0], 1e-300)
        motion[..., limb.v] = np.where(found[..., k, None], _unit(V[..., -1, :] * columns), 0.0)
    return found, motion


class Platforms(NamedTuple):
    """Condition number of J_p^-1 (...), whether it is singular, and the platform's free motion (..., n) there."""

    condition: Array
    singular: Flags
    motion: Array


def platforms(parts: Parts, K: Array, length: float | None = None) -> Platforms:
    """Return the singularities of the second kind, from J_p^-1 (..., N, n); ``length`` (m) scales translations."""
    own = characteristic_scales(parts.platform, parts.length if length is None else length)[1]
    finite: Flags = np.asarray(np.isfinite(K).all(axis=(-2, -1)))
    _, values, V = np.linalg.svd(np.where(finite[..., None, None], K, 0.0) * own)
    with np.errstate(divide="ignore", invalid="ignore"):
        condition = np.where(finite, values[..., 0] / values[..., -1], np.inf)
    singular: Flags = np.asarray(finite & ~(values[..., -1] >= SINGULAR * values[..., 0]))
    return Platforms(condition, singular, np.where(singular[..., None], _unit(V[..., -1, :] * own), 0.0))


def _unit(vectors: Array) -> Array:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))


def moving(names: Sequence[str], motion: Array) -> str:
    """Return a motion in words.

    Example:
        >>> moving(["x", "y"], np.array([0.6, 0.0]))
        'x (0.6) can move'
    """
    shown = (f"{name} ({value:.3g})" for name, value in zip(names, motion, strict=True) if abs(value) > 1e-6)
    return f"{', '.join(shown)} can move"
