"""Orthogonal modes from any mode shapes: the eigenvectors of their stiffness and mass matrices."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from torsor.arrays import Array
from torsor.checks import frozen_array, positive_vector, real_array
from torsor.errors import ModelError, describe, shortened
from torsor.mechanism.flexible import ORTHOGONAL, Modes

# Distance of nodes from a straight line, relative to its length.
_STRAIGHT = 1e-9


def orthogonal_modes(
    positions: ArrayLike,
    masses: ArrayLike,
    shapes: ArrayLike,
    rotations: ArrayLike | None = None,
    stiffness: ArrayLike | None = None,
    frequencies: ArrayLike | None = None,
    damping: ArrayLike = 0.0,
    inertias: ArrayLike | None = None,
    source: str = "modes",
) -> Modes:
    """Return modes from shapes at nodes, as finite elements give them; ``Modes`` has the shapes and units of arrays.

    Give the ``stiffness``, (n, n) or (n,), or the ``frequencies`` (n,) rad/s of the modes. ``damping`` (n,) are damping
    ratios. Without ``rotations`` the nodes do not turn. Shapes that are orthogonal stay as they are; others are
    combined to orthogonal ones. Nodes along a straight line from the clamped end, in order, get the second-order
    displacements of a line that does not become longer, between the nodes; nodes of other links get none.

    Example:
        >>> x, shapes = np.array([[0.5, 0, 0], [1.0, 0, 0]]), np.zeros((2, 3, 1))
        >>> shapes[:, 1, 0] = [0.3, 1.0]
        >>> modes = orthogonal_modes(x, [1.0, 0.5], shapes, frequencies=[20.0])
        >>> modes.frequencies.round(9).tolist(), modes.second[-1, 0].round(9).tolist()
        ([20.0], [[-1.16]])
    """
    Phi, m = real_array(shapes, source, "shapes"), real_array(masses, source, "masses")
    if m.ndim != 1 or Phi.ndim != 3 or Phi.shape[:2] != (m.size, 3):
        found = f"masses have shape {m.shape}, mode shapes {Phi.shape}"
        raise ModelError(describe(found, where=source, allowed="(N,) and (N, 3, n): N nodes, n modes"))
    N, n = m.size, Phi.shape[2]
    Psi = np.zeros_like(Phi) if rotations is None else frozen_array(rotations, Phi.shape, source, "rotations")
    J = np.zeros((N, 3, 3)) if inertias is None else frozen_array(inertias, (N, 3, 3), source, "inertias")
    M = np.einsum("i,ixk,ixl->kl", m, Phi, Phi) + np.einsum("ixk,ixy,iyl->kl", Psi, J, Psi)
    K = _stiffness(stiffness, frequencies, M, source)
    ratios = positive_vector(damping, n, source, "damping", or_zero=True)
    turned = _combination(K, M, n, source)
    Phi, Psi = Phi @ turned, Psi @ turned
    K, M = (np.einsum("ki,kl,li->i", turned, each, turned) for each in (K, M))
    r = frozen_array(positions, (N, 3), source, "positions")
    parts: tuple[Any, ...] = (r, m, Phi, Psi, K, 2 * ratios * np.sqrt(K * M), _shortening(r, Phi), None, J)
    return Modes(*parts, source=source)


def _stiffness(stiffness: ArrayLike | None, frequencies: ArrayLike | None, M: Array, where: str) -> Array:
    """Return the stiffness matrix (n x n), symmetric and positive definite."""
    n = len(M)
    if (stiffness is None) == (frequencies is None):
        found = "neither stiffness nor frequencies" if stiffness is None else "both stiffness and frequencies"
        raise ModelError(describe(found, where=where, allowed="one of them"))
    if stiffness is None:
        K = np.diag(positive_vector(frequencies, n, where, "frequencies") ** 2 * M.diagonal())  # type: ignore[arg-type]
    elif np.ndim(stiffness) < 2:
        K = np.diag(positive_vector(stiffness, n, where, "stiffness"))
    else:
        K = frozen_array(stiffness, (n, n), where, "stiffness")
    if np.abs(K - K.T).max() > 1e-9 * np.abs(K).max() or np.linalg.eigvalsh(K).min() <= 0:
        found = f"stiffness {shortened(K)} has the eigenvalues {shortened(np.linalg.eigvalsh((K + K.T) / 2))}"
        raise ModelError(describe(found, where=where, allowed="a symmetric matrix with positive eigenvalues"))
    return (K + K.T) / 2


def _combination(K: Array, M: Array, n: int, where: str) -> Array:
    """Return the matrix (n x n) whose columns combine the shapes to orthogonal ones."""
    scale = np.sqrt(np.abs(M.diagonal()))
    if not scale.all() or np.linalg.eigvalsh(M / np.outer(scale, scale)).min() < 1e-10:
        found = f"{n} modes are not independent at the nodes that have mass"
        raise ModelError(describe(found, where=where, allowed="modes that move mass, each in its own way", fix="fewer"))
    both = ((A - np.diag(A.diagonal())) / np.sqrt(np.outer(A.diagonal(), A.diagonal())) for A in (K, M))
    if all(np.abs(off).max(initial=0.0) <= ORTHOGONAL for off in both):
        return np.eye(n)
    L = np.linalg.cholesky(M)
    reduced = np.linalg.solve(L, np.linalg.solve(L, K).T)
    columns = np.linalg.solve(L.T, np.linalg.eigh((reduced + reduced.T) / 2)[1])
    return np.asarray(columns / np.abs(columns).max(axis=0))


def _shortening(r: Array, Phi: Array) -> Array | None:
    """Return the second-order displacements (N, 3, n, n) of nodes along a straight line from the origin."""
    length = float(np.linalg.norm(r[-1]))
    along = r[-1] / length if length else r[-1]
    steps = np.diff(r @ along, prepend=0.0)
    if not length or steps[1:].min(initial=1.0) <= 0 or np.abs(r - np.outer(r @ along, along)).max() > _STRAIGHT * length:
        return None
    across = Phi - np.einsum("x,y,iyk->ixk", along, along, Phi)
    bent = np.diff(across, axis=0, prepend=0 * across[:1])
    held = np.where(steps > 0, steps, np.inf)  # a node at the clamped end
    pairs = np.cumsum(np.einsum("ixk,ixl->ikl", bent, bent) / held[:, None, None], axis=0)
    return -np.einsum("x,ikl->ixkl", along, pairs)
