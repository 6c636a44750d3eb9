"""Solids of unit density: volume, centre and inertia of primitive shapes and of closed surfaces."""

import numpy as np

from torsor.base.arrays import Array

Solid = tuple[float, Array, Array]


def primitive_solid(kind: str, size: Array) -> Solid:
    """Return volume, centre and inertia about it of a primitive shape (as of ``Shape``) of unit density, in its axes.

    Example:
        >>> volume, center, inertia = primitive_solid("box", np.array([1.0, 2.0, 3.0]))
        >>> volume, np.diag(inertia).round(9).tolist()
        (6.0, [6.5, 5.0, 2.5])
    """
    if kind == "box":
        volume, squares = float(np.prod(size)), size**2 / 12
    elif kind in ("sphere", "ellipsoid"):
        axes = np.broadcast_to(size, 3)
        volume, squares = 4 / 3 * np.pi * float(np.prod(axes)), axes**2 / 5
    else:
        r, length = size
        rod, ball = np.pi * r**2 * length, 4 / 3 * np.pi * r**3 * (kind == "capsule")
        volume = rod + ball
        # Half balls at the ends: their second moment about the middle, with their centres 3/8 r beyond the ends.
        ends = ball * (r**2 / 5 + length**2 / 4 + 3 / 8 * r * length)
        across = (rod * r**2 / 4 + ball * r**2 / 5) / volume
        squares = np.array([across, across, (rod * length**2 / 12 + ends) / volume])
    return volume, np.zeros(3), volume * np.diag(squares.sum() - squares)


def tetrahedra_solid(corners: Array, volumes: Array) -> Solid:
    """Return volume, centre and inertia about it of tetrahedra that share the origin, of unit density.

    ``corners`` (n, 3, 3) are the faces opposite of the origin, ``volumes`` (n,) those of the tetrahedra: with the signs
    of det(corners) / 6, the tetrahedra over a closed surface are the solid in it, wherever the origin is.

    Example:
        >>> corner = np.eye(3)[None]
        >>> volume, center, _ = tetrahedra_solid(corner, np.linalg.det(corner) / 6)
        >>> round(volume, 9), center.tolist()
        (0.166666667, [0.25, 0.25, 0.25])
    """
    volume, sums = float(volumes.sum()), corners.sum(axis=1)
    center = (volumes[:, None] * sums).sum(axis=0) / (4 * volume)
    second = np.einsum("f,fki,fkj->ij", volumes, corners, corners) + np.einsum("f,fi,fj->ij", volumes, sums, sums)
    second = second / 20 - volume * np.outer(center, center)
    return volume, center, np.trace(second) * np.eye(3) - second
