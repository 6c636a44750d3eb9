"""Distances of convex shapes without a closed form, by coal (GJK and EPA): meshes, boxes, cylinders, ellipsoids.

Coal gives the normal and nearest points; it computes one pair in one state at a time, in C++.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, describe, missing
from torsor.geometry.hulls import hull_of
from torsor.geometry.placed import Placed

# GJK ends where the squared distance is known to this: 1e-6, its default, leaves a normal of cylinders with 3 digits.
TOLERANCE = 1e-9
ITERATIONS = 1000


def _coal() -> Any:
    try:
        import coal
    except ImportError:
        found = "distances of meshes, and of boxes, cylinders and ellipsoids from each other, are computed by coal"
        raise missing(f"{found}, which is not installed", "collision") from None
    return coal


def geometry_of(placed: Placed, where: str) -> Any:
    """Return a shape as a geometry of coal, in the axes of the shape."""
    coal, shape = _coal(), placed.shape
    if shape.shape == "mesh":
        hull = hull_of(shape, f"{where}: shape {placed.name!r}")
        points, triangles = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
        for vertex in hull.vertices:
            points.append(vertex)
        for face in hull.faces.tolist():
            triangles.append(coal.Triangle(*face))
        return coal.Convex(points, triangles)
    if shape.shape == "plane":
        return coal.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0)
    return getattr(coal, shape.shape.capitalize())(*shape.size)


class ConvexPairs:
    """Pairs of shapes of one robot, as coal computes them; the numbers of pairs are rows of indices of shapes."""

    def __init__(self, shapes: Sequence[Placed], pairs: Sequence[tuple[int, int]], where: str):
        coal = _coal()
        self.where, self.shapes, self.pairs = where, shapes, tuple(pairs)
        self.used = sorted({index for pair in pairs for index in pair})
        # Coal's functions point to geometries, which must live as long as they do.
        self._geometries = {index: geometry_of(shapes[index], where) for index in self.used}
        self._transforms = {index: coal.Transform3s() for index in self.used}
        self._calls = [
            (coal.ComputeDistance(self._geometries[a], self._geometries[b]), self._transforms[a], self._transforms[b])
            for a, b in pairs
        ]
        self._fine, self._coarse, self._result = coal.DistanceRequest(), coal.DistanceRequest(), coal.DistanceResult()
        self._fine.gjk_tolerance, self._fine.gjk_max_iterations = TOLERANCE, ITERATIONS
        self._curved = [not {shapes[a].shape.shape, shapes[b].shape.shape}.isdisjoint(_CURVED) for a, b in pairs]

    def __call__(self, poses: Array, distance: Array, normal: Array, first: Array, wanted: Array | None = None) -> None:
        """Write distances (states, pairs), normals and points of the first shapes (states, pairs, 3) into arrays.

        ``poses`` (states, shapes, 3, 4); ``wanted`` (states, pairs) are the pairs that are computed, by default all.
        """
        result, everyone = self._result, range(len(self._calls))
        R, p = np.ascontiguousarray(poses[..., :3]), np.ascontiguousarray(poses[..., 3])
        for state in range(len(poses)):
            for index in self.used:
                self._transforms[index].setTransform(R[state, index], p[state, index])
            for k in everyone if wanted is None else np.flatnonzero(wanted[state]).tolist():
                call, A, B = self._calls[k]
                result.clear()
                found = call(A, B, self._fine if self._curved[k] else self._coarse, result)
                if not math.isfinite(found) or abs(found) > _LARGEST:
                    result.clear()
                    found = call(A, B, self._coarse, result)
                    self._check(found, k)
                distance[state, k] = found
                normal[state, k] = result.normal
                first[state, k] = result.getNearestPoint1()

    def _check(self, found: float, k: int) -> None:
        if not math.isfinite(found) or abs(found) > _LARGEST:
            a, b = (self.shapes[index].name for index in self.pairs[k])
            text = f"coal finds no distance of the shapes {a!r} and {b!r}"
            raise ModelError(describe(text, where=self.where, fix="check their sizes and meshes"))


_CURVED = {"cylinder", "ellipsoid"}
_LARGEST = 1e100  # m: coal returns the largest number where GJK fails
