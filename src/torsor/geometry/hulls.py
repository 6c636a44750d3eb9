"""Meshes of shapes as convex hulls: vertices and triangles (SciPy's Qhull), read when a distance needs them."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, describe, missing
from torsor.formats.meshes.mesh_files import read_mesh
from torsor.mechanism import Shape

FLAT = 1e-6  # thickness of a hull over its length below which it is a surface, not a body
MANY = 2048  # vertices of a hull that distances search without long waits


class Hull(NamedTuple):
    """A convex hull: ``vertices`` (n, 3) in m, ``faces`` (m, 3) of three indices, counterclockwise from outside."""

    vertices: Array
    faces: NDArray[np.int64]


def hull_of(shape: Shape, where: str) -> Hull:
    """Return the convex hull of a mesh in the axes of the shape, scaled; ``where`` names the shape in messages."""
    if shape.path is None:
        found = f"the mesh {shape.mesh!r} is not found" if shape.mesh else "a mesh without a file"
        fix = "correct its path, load(..., search=[...]) for package://, or replace the shape: robot.with_shapes"
        raise ModelError(describe(found, where=where, fix=fix))
    return _hull(shape.path, shape.folders, shape.size, where)


@lru_cache(maxsize=1024)
def _hull(path: str, folders: tuple[str, ...] | None, scale: tuple[float, ...], where: str) -> Hull:
    try:
        return hull_of_points(read_mesh(path, folders).vertices * np.array(scale), where)
    except ModelError as error:
        text = str(error)
        raise ModelError(text if text.startswith(where) else f"{where}: {text}") from None


def hull_of_points(points: Array, where: str) -> Hull:
    """Return the convex hull of points (n, 3); points in a plane, and hulls of very many vertices, are errors.

    Example:
        >>> hull_of_points(np.vstack([np.zeros(3), np.eye(3), 0.1 * np.ones((1, 3))]), "mesh").vertices.shape
        (4, 3)
    """
    try:
        from scipy.spatial import ConvexHull, QhullError
    except ImportError:
        raise missing("convex hulls need SciPy", "collision", where=where) from None
    if not np.isfinite(points).all():
        raise ModelError(describe("vertices that are not finite", where=where, fix="open the mesh in an editor"))
    spread = np.linalg.svd(points - points.mean(axis=0), compute_uv=False) if len(points) > 3 else np.zeros(3)
    if not spread[-1] > FLAT * spread[0]:
        found, fix = "its convex hull is flat: it has no volume", "use a thin box in place of the mesh"
        raise ModelError(describe(found, where=where, fix=fix))
    try:
        found = ConvexHull(points)
    except QhullError as error:
        said = str(error).split("\n", 1)[0]
        raise ModelError(describe(f"no convex hull: {said}", where=where, fix="repair the mesh")) from None
    kept = found.vertices
    if len(kept) > MANY:
        text = f"its convex hull has {len(kept)} vertices"
        fix = "simplify the mesh, or use a primitive shape"
        raise ModelError(describe(text, where=where, allowed=f"{MANY} or fewer", fix=fix))
    numbers = np.full(len(points), -1)
    numbers[kept] = np.arange(len(kept))
    faces, vertices = numbers[found.simplices], points[kept]
    corners = vertices[faces]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    inward = np.einsum("ij,ij->i", across, found.equations[:, :3]) < 0  # Qhull's normals point outwards
    faces[inward] = faces[inward][:, ::-1]
    return Hull(vertices, faces)


def radius_about_origin(shape: Shape, where: str) -> float:
    """Return the radius (m) of the ball about the origin of a shape that contains it; infinite for a plane.

    Example:
        >>> radius_about_origin(Shape("capsule", (0.1, 0.4)), "link")
        0.30000000000000004
    """
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
