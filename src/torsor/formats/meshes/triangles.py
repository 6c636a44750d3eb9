"""Surfaces of simple shapes as triangles, for viewers, pages and pictures."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.base.arrays import Array

AROUND = 24  # corners of a circle


class Triangles(NamedTuple):
    """A surface with ``vertices`` (n, 3) in m and ``faces`` (m, 3) of indices, counterclockwise seen from outside.

    Example:
        >>> box([1.0, 2.0, 3.0]).vertices.shape, sphere(1.0).at(np.eye(4)).faces.shape[1], box([1.0, 2.0, 3.0]).area
        ((24, 3), 3, 22.0)
    """

    vertices: Array
    faces: NDArray[np.int64]

    def at(self, pose: Array) -> "Triangles":
        """Return the surface moved by a pose (4 x 4)."""
        return Triangles(self.vertices @ pose[:3, :3].T + pose[:3, 3], self.faces)

    @property
    def area(self) -> float:
        """The area of the surface (m^2)."""
        a, b, c = (self.vertices[self.faces[:, k]] for k in range(3))
        return float(np.linalg.norm(np.cross(b - a, c - a), axis=1).sum()) / 2

    def scaled(self, factors: ArrayLike) -> "Triangles":
        """Return the surface scaled along the axes by ``factors``, a number or (3,).

        If the factors mirror the surface, the corners of each face are reversed, so faces remain counterclockwise seen
        from outside.
        """
        scale = np.broadcast_to(np.asarray(factors, dtype=float), (3,))
        return Triangles(self.vertices * scale, self.faces if np.prod(scale) > 0 else self.faces[:, ::-1])


def joined(surfaces: list[Triangles]) -> Triangles:
    """Return several surfaces as one."""
    starts = np.cumsum([0, *(len(surface.vertices) for surface in surfaces)])
    faces = [surface.faces + start for surface, start in zip(surfaces, starts, strict=False)]
    return Triangles(np.concatenate([surface.vertices for surface in surfaces]), np.concatenate(faces))


def fans(corners: NDArray[np.int64], counts: NDArray[np.int64], points: int) -> NDArray[np.int64]:
    """Return the triangles (m, 3) of polygons, each a fan from its first corner.

    ``corners`` contains the indices of the corners of all polygons among ``points`` points, and ``counts`` contains the
    number of corners of each polygon. Inconsistent values raise ValueError.
    """
    inside = not corners.size or (corners.min() >= 0 and corners.max() < points)
    if not inside or (counts < 0).any() or counts.sum() != corners.size:
        raise ValueError(f"{corners.size} corners of {counts.size} faces do not fit {points} points")
    size = np.maximum(counts - 2, 0)
    first = np.repeat(np.cumsum(counts) - counts, size)
    second = first + np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size) + 1
    return np.asarray(corners[np.stack([first, second, second + 1], axis=-1)])


def box(sizes: ArrayLike) -> Triangles:
    """Return a box about the origin with edges ``sizes`` (3,) in m. Corners are not shared, so edges are sharp."""
    square = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    sides = []
    for axis in range(3):
        for sign in (-1.0, 1.0):
            corners = np.insert(square if sign > 0 else square[::-1], 0, sign, axis=1)
            sides.append(Triangles(np.roll(corners, axis, axis=1), np.array([[0, 1, 2], [0, 2, 3]])))
    return joined(sides).scaled(np.asarray(sizes, dtype=float) / 2)


def turned(profile: ArrayLike, around: int = AROUND) -> Triangles:
    """Return the surface of revolution of (radius, z) points (n, 2), bottom to top; circles have ``around`` corners."""
    points = np.asarray(profile, dtype=float)
    angles = 2 * np.pi * np.arange(around) / around
    rings = points[:, None, :1] * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    vertices = np.concatenate([rings, np.broadcast_to(points[:, None, 1:], (*rings.shape[:2], 1))], axis=-1)
    here = np.arange(around)
    there = (here + 1) % around
    faces = []
    for ring in range(len(points) - 1):
        low, high = ring * around, (ring + 1) * around
        if points[ring, 0] > 0:
            faces.append(np.stack([low + here, low + there, high + there], axis=-1))
        if points[ring + 1, 0] > 0:
            faces.append(np.stack([low + here, high + there, high + here], axis=-1))
    return Triangles(vertices.reshape(-1, 3), np.concatenate(faces))


def _arc(start: float, end: float, count: int, radius: float, height: float) -> Array:
    angles = np.linspace(start, end, count)
    across = np.cos(angles).round(12)  # 0 at the poles, where triangles end in one point
    return radius * np.stack([across, np.sin(angles)], axis=-1) + [0.0, height]


def sphere(radius: float, around: int = AROUND) -> Triangles:
    """Return a sphere about the origin; ``radius`` is in m."""
    return turned(_arc(-np.pi / 2, np.pi / 2, around // 2 + 1, radius, 0.0), around)


def cylinder(radius: float, length: float, around: int = AROUND) -> Triangles:
    """Return a cylinder about the z axis, centred at the origin, in m."""
    low, high = (radius, -length / 2), (radius, length / 2)  # in three parts, so that the edges are sharp
    parts = [[(0.0, low[1]), low], [low, high], [high, (0.0, high[1])]]
    return joined([turned(part, around) for part in parts])


def capsule(radius: float, length: float) -> Triangles:
    """Return a cylinder of ``length`` (m) with hemispheres at its ends, about the z axis, centred at the origin.

    Example:
        >>> round(float(capsule(0.1, 2.0).vertices[:, 2].max()), 9)
        1.1
    """
    count = AROUND // 4 + 1
    low = _arc(-np.pi / 2, 0.0, count, radius, -length / 2)
    return turned(np.concatenate([low, _arc(0.0, np.pi / 2, count, radius, length / 2)]))


def arrow(length: float, radius: float) -> Triangles:
    """Return an arrow from the origin along z. Its head is a cone of at most a third of its length."""
    neck = length - min(length / 3, 6 * radius)
    return turned([(0.0, 0.0), (radius, 0.0), (radius, neck), (2.5 * radius, neck), (0.0, length)])
