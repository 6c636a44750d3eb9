"""Distances between convex shapes without a closed form, computed by coal (GJK and EPA in C++) pair by pair."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Array
from torsor.base.checks import instance_of
from torsor.base.errors import ModelError, missing
from torsor.formats.meshes.mesh_files import read_mesh
from torsor.geometry.closed_forms import box_corners
from torsor.geometry.placed import Placed
from torsor.mechanism import Shape
from torsor.spatial import axis_frame, make_pose

# Convex hulls of meshes: vertices and triangles (SciPy's Qhull), read when a distance needs them.

MIN_HULL_THICKNESS = 1e-6  # ratio of a hull's thickness to its length below which it is flat
MAX_REDUCED_VERTICES = 32  # each is a contact point
MIN_REDUCED_GAP = 1e-5  # ratio of the gap of a vertex to the size of its hull below which it is omitted


class Reduced(NamedTuple):
    """Some ``vertices`` (n, 3) of a convex hull, and the Hausdorff distance ``error`` (m) of the hull from theirs."""

    vertices: Array
    error: float


@dataclass(frozen=True, eq=False)
class Hull:
    """A convex hull: ``vertices`` (n, 3) in m, ``faces`` (m, 3) as vertex indices, counterclockwise from outside."""

    vertices: Array
    faces: NDArray[np.int64]

    @cached_property
    def reduced(self) -> Reduced:
        """At most 32 of the vertices, for contact; their hull is inside this one, so that contact never begins early.

        The first four are those of a large tetrahedron. Each further vertex is the one that is farthest above a face of
        the hull of the others, or farthest from this hull if all faces are near.
        """
        from scipy.spatial import ConvexHull

        points, chosen = self.vertices, list[int]()
        if len(points) <= MAX_REDUCED_VERTICES:
            return Reduced(points, 0.0)
        origin = points.mean(axis=0)
        for _ in range(4):
            span = points[chosen[1:]] - origin
            away = points - origin
            away -= away @ np.linalg.pinv(span) @ span
            chosen.append(int(np.linalg.norm(away, axis=1).argmax()))
            origin = points[chosen[0]]
        enough = MIN_REDUCED_GAP * float(np.ptp(points, axis=0).max())
        while True:
            hull = ConvexHull(points[chosen])
            gaps = hull.equations[:, :3] @ points.T + hull.equations[:, 3:]
            away = gaps.max(axis=0)  # a point is at least this far from the hull
            full = len(chosen) == MAX_REDUCED_VERTICES
            if full or away.max() <= enough:
                corners = points[chosen][hull.simplices]
                far = np.flatnonzero(_from_triangles(points, corners[gaps.argmax(axis=0)]) > away.max())
                away[far] = _from_triangles(points[far, None], corners).min(axis=1)
                if full or away.max() <= enough:
                    return Reduced(points[sorted(chosen)], max(float(away.max()), 0.0))
            chosen.append(int(away.argmax()))


def _from_triangles(points: Array, corners: Array) -> Array:
    """Return the distances (...) of points (..., 3) from triangles (..., 3, 3)."""
    edges, along = np.roll(corners, -1, axis=-2) - corners, points[..., None, :] - corners
    share = np.clip((along * edges).sum(axis=-1) / (edges**2).sum(axis=-1), 0, 1)
    borders = np.linalg.norm(along - share[..., None] * edges, axis=-1).min(axis=-1)
    normal = np.cross(edges[..., 0, :], edges[..., 1, :])
    above = (np.cross(edges, along) * normal[..., None, :]).sum(axis=-1).min(axis=-1) >= 0
    height = np.abs((along[..., 0, :] * normal).sum(axis=-1)) / np.linalg.norm(normal, axis=-1)
    return np.asarray(np.where(above, height, borders))


def hull_of(shape: Shape, where: str) -> Hull:
    """Return the scaled convex hull of a mesh in the axes of its shape; ``where`` names the shape in messages."""
    if shape.path is None:
        message = f"the mesh {shape.mesh!r} is not found" if shape.mesh else "the mesh has no file"
        fix = "correct its path, pass its folder (`search=FOLDER`), or replace the shape: robot.with_shapes"
        raise ModelError(message, where=where, fix=fix)
    return _hull(shape.path, shape.folders, shape.size, where)


@lru_cache(maxsize=1024)
def _hull(path: str, folders: tuple[str, ...] | None, scale: tuple[float, ...], where: str) -> Hull:
    try:
        return hull_of_points(read_mesh(path, folders).vertices * np.array(scale), where)
    except ModelError as error:
        raise (error if error.where.startswith(where) else error.inside(where)) from None


def hull_of_points(points: Array, where: str) -> Hull:
    """Return the convex hull of points (n, 3); raise ModelError for coplanar points."""
    from scipy.spatial import ConvexHull, QhullError

    if not np.isfinite(points).all():
        raise ModelError("its vertices are not finite", where=where, fix="open the mesh in an editor")
    spread = np.linalg.svd(points - points.mean(axis=0), compute_uv=False) if len(points) > 3 else np.zeros(3)
    if not spread[-1] > MIN_HULL_THICKNESS * spread[0]:
        result, fix = "its convex hull is flat: it has no volume", "use a thin box instead of the mesh"
        raise ModelError(result, where=where, fix=fix)
    try:
        result = ConvexHull(points)
    except QhullError as error:
        said = str(error).split("\n", 1)[0]
        raise ModelError(f"no convex hull: {said}", where=where, fix="repair the mesh") from None
    kept = result.vertices
    numbers = np.full(len(points), -1)
    numbers[kept] = np.arange(len(kept))
    faces, vertices = numbers[result.simplices], points[kept]
    corners = vertices[faces]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    inward = np.einsum("ij,ij->i", across, result.equations[:, :3]) < 0  # Qhull's normals point outwards
    faces[inward] = faces[inward][:, ::-1]
    return Hull(vertices, faces)


def radius_about_origin(shape: Shape, where: str) -> float:
    """Return the radius (m) of the smallest sphere about a shape's origin that contains it; inf for a plane."""
    size = shape.size
    match shape.shape:
        case "plane":
            return float("inf")
        case "mesh":
            return float(np.linalg.norm(hull_of(shape, where).vertices, axis=1).max())
        case "capsule":
            return size[0] + size[1] / 2
        case "cylinder":
            return float(np.hypot(size[0], size[1] / 2))
        case "box":
            return float(np.linalg.norm(size)) / 2
    return max(size)


# Capsules that enclose shapes: smooth and conservative replacements for boxes and meshes in motions and contact.


def enclosing_capsule(shape: Shape) -> Shape:
    """Return a capsule that contains a shape, along its longest axis (for a mesh, the principal axis of its vertices).

    A plane raises ModelError.

    Example:
        >>> enclosing_capsule(Shape("cylinder", (0.1, 0.5))).size
        (0.1, 0.5)
        >>> enclosing_capsule(Shape("box", (0.6, 0.8, 2.0))).size
        (0.5, 2.0)
    """
    size = instance_of(shape, Shape, "enclosing_capsule", "shape").size
    match shape.shape:
        case "sphere":
            return _capsule(shape, np.eye(4), size[0], 0.0)
        case "capsule" | "cylinder":
            return _capsule(shape, np.eye(4), size[0], size[1])
        case "ellipsoid":
            longest = int(np.argmax(size))
            radius = max(np.delete(size, longest))
            return _capsule(shape, make_pose(axis_frame(np.eye(3)[longest])), radius, 2 * (size[longest] - radius))
        case "box":
            longest = int(np.argmax(size))
            return _about(shape, box_corners(size), np.eye(3)[longest], trim=False)
        case "mesh":
            points = hull_of(shape, f"shape {shape.name!r}").vertices
            return _about(shape, points, np.linalg.svd(points - points.mean(axis=0))[2][0])
    raise ModelError(f"no capsule encloses a {shape.shape}", where=f"shape {shape.name!r}")


def _about(shape: Shape, points: Array, axis: Array, trim: bool = True) -> Shape:
    """Return a capsule about an axis through the centre of the points that contains all of them."""
    middle = (points.max(axis=0) + points.min(axis=0)) / 2
    along = (points - middle) @ axis
    across = np.linalg.norm(points - middle - np.outer(along, axis), axis=1)
    radius = float(across.max())
    cap = np.sqrt(np.maximum(radius**2 - across**2, 0.0)) if trim else 0.0  # allowed distance of an end from each point
    low, high = float((along + cap).min()), float((along - cap).max())
    if high < low:
        low = high = (low + high) / 2
    pose = make_pose(axis_frame(axis), middle + (low + high) / 2 * axis)
    inside = np.maximum(np.abs(along - (low + high) / 2) - (high - low) / 2, 0.0)
    return _capsule(shape, pose, float(np.hypot(across, inside).max()), high - low)


def _capsule(shape: Shape, pose: Array, radius: float, length: float) -> Shape:
    placed = replace(shape, mesh=None, path=None, folders=None, pose=shape.pose @ pose)
    return replace(placed, shape="capsule", size=(radius, length))


# Tolerance of the squared distance in GJK: with the default of 1e-6, normals of cylinders have only 3 correct digits.
TOLERANCE = 1e-9
ITERATIONS = 1000


def _coal() -> Any:
    try:
        import coal
    except ImportError:
        message = "coal computes distances of meshes, and between boxes, cylinders and ellipsoids"
        raise missing(f"{message}, but it is not installed", "collision") from None
    return coal


def geometry_of(placed: Placed, where: str) -> Any:
    """Return a shape as a coal geometry in its own axes."""
    if placed.shape.shape == "height field":
        raise ModelError(f"{placed.name!r} is a height field, which has no distances", where=where, fix="omit it")
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
    """Shape pairs of one robot for coal; each row contains two shape indices."""

    def __init__(self, shapes: Sequence[Placed], pairs: Sequence[tuple[int, int]], where: str):
        coal = _coal()
        self.where, self.shapes, self.pairs = where, shapes, tuple(pairs)
        self.used = sorted({index for pair in pairs for index in pair})
        # Coal's functions hold pointers to the geometries, which must outlive them.
        self._geometries = {index: geometry_of(shapes[index], where) for index in self.used}
        self._transforms = {index: coal.Transform3s() for index in self.used}
        self._calls = [
            (coal.ComputeDistance(self._geometries[a], self._geometries[b]), self._transforms[a], self._transforms[b])
            for a, b in pairs
        ]
        self._fine, self._coarse, self._result = coal.DistanceRequest(), coal.DistanceRequest(), coal.DistanceResult()
        self._fine.gjk_tolerance, self._fine.gjk_max_iterations = TOLERANCE, ITERATIONS
        self._curved = [not {shapes[a].shape.shape, shapes[b].shape.shape}.isdisjoint(_CURVED_SHAPES) for a, b in pairs]

    def __call__(self, poses: Array, distance: Array, normal: Array, first: Array, wanted: Array | None = None) -> None:
        """Write distances (states, pairs), normals and points of the first shapes (states, pairs, 3) into arrays.

        ``poses`` is (states, shapes, 3, 4). ``wanted`` (states, pairs) selects the pairs to compute, by default all.
        """
        result, everyone = self._result, range(len(self._calls))
        R, p = np.ascontiguousarray(poses[..., :3]), np.ascontiguousarray(poses[..., 3])
        for state in range(len(poses)):
            for index in self.used:
                self._transforms[index].setTransform(R[state, index], p[state, index])
            for k in everyone if wanted is None else np.flatnonzero(wanted[state]).tolist():
                call, A, B = self._calls[k]
                result.clear()
                results = call(A, B, self._fine if self._curved[k] else self._coarse, result)
                if not abs(results) < _MAX_DISTANCE:
                    result.clear()
                    results = call(A, B, self._coarse, result)
                if not abs(results) < _MAX_DISTANCE:
                    a, b = (self.shapes[index].name for index in self.pairs[k])
                    message = f"coal finds no distance between the shapes {a!r} and {b!r}"
                    raise ModelError(message, where=self.where, fix="check their sizes and meshes")
                distance[state, k] = results
                normal[state, k] = result.normal
                first[state, k] = result.getNearestPoint1()


_CURVED_SHAPES = {"cylinder", "ellipsoid"}
_MAX_DISTANCE = 1e100  # m: coal returns the largest float if GJK fails
