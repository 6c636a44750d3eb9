"""Level of detail: simplified meshes, and the number of circle corners."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Array
from torsor.base.scenes import Solid
from torsor.formats.meshes.triangles import Triangles, cylinder, joined, sphere
from torsor.view.scene.bodies import UNIT_SURFACES
from torsor.view.scene.scene import Scene, Shown

# Meshes are simplified by vertex clustering with quadric errors.
MEAN_WEIGHT = 1e-3  # weight of the mean of a cluster, which decides where its planes do not
SEARCH_STEPS = 10  # bisection steps of the search for the cell size


def simplified(surface: Triangles, cell: float) -> Triangles:
    """Return a surface with the vertices in each cell of a grid, with edges of ``cell`` (m), merged into one.

    The merged vertex minimises the sum of squared distances from the planes of the adjacent faces (Garland and
    Heckbert's quadric error), which keeps edges and corners in place.
    """
    _, cluster = np.unique(_cells(surface, cell), return_inverse=True)
    faces = cluster[surface.faces]
    return _tidied(Triangles(_vertices(surface, cluster, cell), faces[_differ(faces)]))


def _cells(surface: Triangles, cell: float) -> NDArray[np.int64]:
    """Return the index of the grid cell of each vertex."""
    points = surface.vertices
    places = np.floor((points - points.min(axis=0)) / cell).astype(np.int64)
    _, height, depth = (int(places[:, k].max(initial=0)) + 1 for k in range(3))
    return np.asarray((places[:, 0] * height + places[:, 1]) * depth + places[:, 2])


def _differ(faces: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether the three corners of each face (m, 3) are distinct."""
    a, b, c = (faces[:, k] for k in range(3))
    return np.asarray((a != b) & (b != c) & (c != a))


def _vertices(surface: Triangles, cluster: NDArray[np.int64], cell: float) -> Array:
    """Return the vertex of each cluster."""
    count, points = int(cluster.max()) + 1, surface.vertices
    sizes = np.bincount(cluster, minlength=count)
    mean = np.stack([np.bincount(cluster, points[:, k], count) for k in range(3)], axis=-1) / sizes[:, None]
    corners = points[surface.faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])  # their length weighs by area
    clusters, ways = cluster[surface.faces].T.ravel(), np.tile(normals, (3, 1))
    offsets = np.einsum("fi,fi->f", ways, corners.transpose(1, 0, 2).reshape(-1, 3) - mean[clusters])
    products = np.column_stack([ways[:, i] * ways[:, j] for i in range(3) for j in range(3)])
    summed = [np.bincount(clusters, column, count) for column in np.column_stack([products, ways * offsets[:, None]]).T]
    planes, moments = np.stack(summed[:9], axis=-1).reshape(-1, 3, 3), np.stack(summed[9:], axis=-1)
    weight = MEAN_WEIGHT * np.trace(planes, axis1=1, axis2=2) + np.finfo(float).tiny
    shift = np.linalg.solve(planes + weight[:, None, None] * np.eye(3), moments[:, :, None])[:, :, 0]
    return np.asarray(mean + np.clip(shift, -cell, cell))


def _tidied(surface: Triangles) -> Triangles:
    """Return a surface without unused vertices or duplicate faces."""
    low, middle, high = np.sort(surface.faces, axis=1).T
    count = len(surface.vertices)
    alike = np.unique(low * count + middle, return_inverse=True)[1] * count + high  # a product of three may overflow
    _, first = np.unique(alike, return_index=True)
    used, faces_of_used = np.unique(surface.faces[np.sort(first)], return_inverse=True)
    return Triangles(surface.vertices[used], faces_of_used.reshape(-1, 3))


def within(surfaces: Sequence[Triangles], limit: int) -> list[Triangles]:
    """Return surfaces with at most about ``limit`` triangles in total, all simplified with the same cell size."""
    if sum(len(surface.faces) for surface in surfaces) <= limit or not surfaces:
        return list(surfaces)
    largest = max(float(np.ptp(surface.vertices, axis=0).max()) for surface in surfaces)
    low, high = largest / 4096, largest
    for _ in range(SEARCH_STEPS):
        middle = float(np.sqrt(low * high))
        count = sum(int(_differ(_cells(surface, middle)[surface.faces]).sum()) for surface in surfaces)
        low, high = (low, middle) if count <= limit else (middle, high)
    return [simplified(surface, high) for surface in surfaces]


CIRCLE_CORNERS = ((24, 16), (16, 12), (16, 10), (12, 8), (10, 6))  # of bodies, and of rods and joints

THIN = ("bone", "inner")  # kinds of surfaces that are rods and joints


@lru_cache
def unit(shape: str, around: int) -> Triangles:
    """Return the surface of a unit solid whose circles have ``around`` corners."""
    if shape == "box":
        return UNIT_SURFACES[shape]
    return sphere(1.0, around) if shape == "ball" else cylinder(1.0, 1.0, around)


def level(scene: Scene, limit: int) -> tuple[int, int]:
    """Return the largest numbers of corners per circle that give at most ``limit`` triangles.

    If there are none, the smallest numbers are returned. The first number is for bodies, the second for rods and joints
    (``CIRCLE_CORNERS``).
    """
    for corners in CIRCLE_CORNERS:
        solids = ((solid, corners[shown.kind in THIN]) for shown in scene.shown for solid in shown.solids)
        if sum(len(unit(solid.shape, around).faces) for solid, around in solids) <= limit:
            return corners
    return CIRCLE_CORNERS[-1]


def drawn(solid: Solid, around: int) -> Triangles:
    """Return the surface of a solid whose circles have ``around`` corners."""
    return unit(solid.shape, around).scaled(solid.size).at(solid.pose)


def detailed(shown: Shown, corners: tuple[int, int]) -> Triangles:
    """Return a scene surface whose circles have ``corners`` corners, as returned by ``level``."""
    if not shown.solids:
        return shown.surface
    return joined([drawn(solid, corners[shown.kind in THIN]) for solid in shown.solids])
