"""Modes from shapes at nodes, as finite elements give them."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import frozen_array, positive_vector, real_array
from torsor.base.errors import ModelError, describe, shortened, warn
from torsor.mechanism.flexible import Modes

# Distance of nodes from a straight line, relative to its length.
_STRAIGHT = 1e-9
# Relative change of a natural frequency that lumped masses may cause without a warning.
_FREQUENCY = 0.01


def node_modes(
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
    """Return modes from shapes at nodes; ``Modes`` has the shapes and units of the arrays.

    Give the ``stiffness``, (n, n) or (n,), or the ``frequencies`` (n,) rad/s of the modes. ``damping`` (n,) are damping
    ratios. Without ``rotations`` the nodes do not turn. Nodes along a straight line from the clamped end, in order, get
    the second-order displacements of a line that does not become longer between the nodes; other nodes get none.

    Example:
        >>> x, shapes = np.array([[0.5, 0, 0], [1.0, 0, 0]]), np.zeros((2, 3, 1))
        >>> shapes[:, 1, 0] = [0.3, 1.0]
        >>> modes = node_modes(x, [1.0, 0.5], shapes, frequencies=[20.0])
        >>> modes.frequencies.round(9).tolist(), modes.second[-1, 0].round(9).tolist()
        ([20.0], [[-1.16]])
    """
    Phi, m = real_array(shapes, source, "shapes"), real_array(masses, source, "masses")
    if m.ndim != 1 or Phi.ndim != 3 or Phi.shape[:2] != (m.size, 3):
        found = f"masses have shape {m.shape}, mode shapes {Phi.shape}"
        raise ModelError(describe(found, where=source, allowed="(N,) and (N, 3, n): N nodes, n modes"))
    if (stiffness is None) == (frequencies is None):
        found = "neither stiffness nor frequencies" if stiffness is None else "both stiffness and frequencies"
        raise ModelError(describe(found, where=source, allowed="one of them"))
    n = Phi.shape[2]
    r = frozen_array(positions, (m.size, 3), source, "positions")
    ratios = positive_vector(damping, n, source, "damping", or_zero=True)
    turned = np.zeros_like(Phi) if rotations is None else rotations
    parts: dict[str, Any] = {"positions": r, "masses": m, "shapes": Phi, "rotations": turned, "source": source}
    parts |= {"second": _shortening(r, Phi), "inertias": inertias}
    M = Modes(stiffness=1.0, **parts).mass_matrix.diagonal()
    if frequencies is not None:
        stiffness = positive_vector(frequencies, n, source, "frequencies") ** 2 * M
    made = Modes(stiffness=stiffness, **parts)  # type: ignore[arg-type]  # one of them is given
    K = made.stiffness_matrix
    if frequencies is not None:
        _check_frequencies(made, np.sort(np.sqrt(K.diagonal() / M)), source)
    return Modes(stiffness=K, damping=2 * ratios * np.sqrt(K.diagonal() * M), **parts)


def _check_frequencies(modes: Modes, given: Array, where: str) -> None:
    """Warn where shapes are not orthogonal with the masses of the nodes: the frequencies are then not those given."""
    found = modes.frequencies
    if np.abs(found / given - 1).max() > _FREQUENCY:
        natural = f"{shortened(found)} rad/s instead of {shortened(given)}"
        text = f"natural frequencies are {natural}: the shapes are not orthogonal with the masses of the nodes"
        fix = "check masses and shapes, or give the stiffness matrix"
        warn(describe(text, where=where, fix=fix))


def _shortening(r: Array, Phi: Array) -> Array | None:
    """Return the second-order displacements (N, 3, n, n) of nodes along a straight line from the origin."""
    length = float(np.linalg.norm(r[-1]))
    along = r[-1] / length if length else r[-1]
    steps = np.diff(r @ along, prepend=0.0)
    off_line = np.abs(r - np.outer(r @ along, along)).max(initial=0.0)
    if not length or steps[1:].min(initial=1.0) <= 0 or steps[0] < 0 or off_line > _STRAIGHT * length:
        return None
    across = Phi - np.einsum("x,y,iyk->ixk", along, along, Phi)
    bent = np.diff(across, axis=0, prepend=0 * across[:1])
    held = np.where(steps > 0, steps, np.inf)  # a node at the clamped end
    pairs = np.cumsum(np.einsum("ixk,ixl->ikl", bent, bent) / held[:, None, None], axis=0)
    return np.asarray(-np.einsum("x,ikl->ixkl", along, pairs))
