"""Capsules that enclose shapes: smooth and conservative in place of boxes and meshes, for motions and contact."""

from dataclasses import replace

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import instance_of
from torsor.base.errors import ModelError, describe
from torsor.geometry.closed_forms import box_corners
from torsor.geometry.hulls import hull_of
from torsor.mechanism import Shape
from torsor.spatial import axis_frame, make_pose


def enclosing_capsule(shape: Shape) -> Shape:
    """Return a capsule that contains a shape, about its longest axis (of a mesh: the principal one of its vertices).

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
    raise ModelError(describe(f"no capsule encloses a {shape.shape}", where=f"shape {shape.name!r}"))


def _about(shape: Shape, points: Array, axis: Array, trim: bool = True) -> Shape:
    """Return the capsule about an axis through the middle of points that contains all of them."""
    middle = (points.max(axis=0) + points.min(axis=0)) / 2
    along = (points - middle) @ axis
    across = np.linalg.norm(points - middle - np.outer(along, axis), axis=1)
    radius = float(across.max())
    cap = np.sqrt(np.maximum(radius**2 - across**2, 0.0)) if trim else 0.0  # how far the end may be from a point
    low, high = float((along + cap).min()), float((along - cap).max())
    if high < low:
        low = high = (low + high) / 2
    pose = make_pose(axis_frame(axis), middle + (low + high) / 2 * axis)
    inside = np.maximum(np.abs(along - (low + high) / 2) - (high - low) / 2, 0.0)
    return _capsule(shape, pose, float(np.hypot(across, inside).max()), high - low)


def _capsule(shape: Shape, pose: Array, radius: float, length: float) -> Shape:
    placed = replace(shape, mesh=None, path=None, folders=None, pose=shape.pose @ pose)
    return replace(placed, shape="capsule", size=(radius, length))
