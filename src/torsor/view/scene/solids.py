"""Boxes, balls and cylinders by their pose and size: viewers draw all of one kind at once."""

from dataclasses import dataclass

import numpy as np

from torsor.base.arrays import Array
from torsor.formats.meshes.triangles import Triangles, box, cylinder, joined, sphere
from torsor.spatial import axis_frame, make_pose

UNITS = {"box": box([1.0, 1.0, 1.0]), "ball": sphere(1.0), "cylinder": cylinder(1.0, 1.0)}
"""The surfaces of solids of size 1: edges of a box, radius of a ball, radius and length of a cylinder along z."""


@dataclass(frozen=True, eq=False)
class Solid:
    """A box, ball or cylinder of ``UNITS``, scaled by ``size`` (3,) along its axes and moved by ``pose`` (4 x 4).

    Example:
        >>> Solid("box", np.eye(4), np.array([1.0, 2.0, 3.0])).surface.vertices.max(axis=0).tolist()
        [0.5, 1.0, 1.5]
    """

    shape: str
    pose: Array
    size: Array

    @property
    def surface(self) -> Triangles:
        """The triangles."""
        return UNITS[self.shape].scaled(self.size).at(self.pose)


def surface_of(solids: tuple[Solid, ...]) -> Triangles:
    """Return the triangles of several solids as one surface."""
    return joined([each.surface for each in solids])


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
