"""The surfaces of boxes, balls and cylinders: viewers draw all of one kind at once."""

import numpy as np

from torsor.base.arrays import Array
from torsor.base.scenes import Solid
from torsor.formats.meshes.triangles import Triangles, box, cylinder, joined, sphere
from torsor.spatial import axis_frame, make_pose

UNITS = {"box": box([1.0, 1.0, 1.0]), "ball": sphere(1.0), "cylinder": cylinder(1.0, 1.0)}
"""The surfaces of solids of size 1: edges of a box, radius of a ball, radius and length of a cylinder along z."""


def surface_of(*solids: Solid) -> Triangles:
    """Return the triangles of solids as one surface.

    Example:
        >>> surface_of(Solid("box", np.eye(4), np.array([1.0, 2.0, 3.0]))).vertices.max(axis=0).tolist()
        [0.5, 1.0, 1.5]
    """
    return joined([UNITS[each.shape].scaled(each.size).at(each.pose) for each in solids])


def ball(radius: float, pose: Array) -> Solid:
    """Return a ball."""
    return Solid("ball", pose, np.full(3, radius))


def rod(start: Array, end: Array, radius: float) -> Solid:
    """Return a cylinder between two points.

    Example:
        >>> bool(np.allclose(rod(np.zeros(3), np.ones(3), 0.1).pose[:3, 3], 0.5))
        True
    """
    length = float(np.linalg.norm(end - start))
    return Solid("cylinder", make_pose(axis_frame(end - start), (start + end) / 2), np.array([radius, radius, length]))
