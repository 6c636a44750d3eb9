"""Surfaces of OpenSim's bodies as visuals: meshes with their files, boxes, spheres and cylinders."""

import numpy as np

from torsor.formats.osim.model import OsimModel, OsimShape
from torsor.formats.osim.steps import pose_of
from torsor.mechanism import Visual
from torsor.spatial import make_pose

_UPRIGHT = make_pose(np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]]))  # cylinders there are about y


def visuals_of(model: OsimModel, body: str) -> tuple[Visual, ...]:
    """Return the surfaces of a body that can be drawn.

    Example:
        >>> brick = OsimShape("box", "foot", "Brick", np.array([0.1, 0.05, 0.02]), np.ones(3), np.zeros(6))
        >>> visuals_of(OsimModel("block", {}, {}, {}, np.zeros(3), shapes=(brick,)), "foot")[0].size
        (0.2, 0.1, 0.04)
    """
    found = (_visual(model, shape) for shape in model.shapes if shape.body == body)
    return tuple(visual for visual in found if visual is not None)


def not_drawn(model: OsimModel) -> dict[str, list[str]]:
    """Return the names of surfaces that no visual is like, by kind: cones, lines."""
    found: dict[str, list[str]] = {}
    for shape in model.shapes:
        if _visual(model, shape) is None:
            found.setdefault(f"surfaces of the kind {shape.kind}", []).append(shape.name)
    return found


def _visual(model: OsimModel, shape: OsimShape) -> Visual | None:
    pose, scale = pose_of(shape.place), np.abs(shape.scale)
    if shape.kind == "Mesh" and shape.scale.all():
        size = tuple(shape.scale.tolist())
        return Visual("mesh", size, pose, shape.color, shape.file, shape.found, shape.name, model.folders)
    if not scale.all() or not shape.size.all():
        return None
    if shape.kind == "Brick":
        return Visual("box", tuple((2 * shape.size * scale).tolist()), pose, shape.color, name=shape.name)
    if shape.kind == "Cylinder" and scale[0] == scale[2]:
        size = (float(shape.size[0] * scale[0]), float(2 * shape.size[1] * scale[1]))
        return Visual("cylinder", size, pose @ _UPRIGHT, shape.color, name=shape.name)
    if shape.kind in ("Sphere", "Ellipsoid"):
        radii = (shape.size * scale).tolist()
        kind, size = ("sphere", radii[:1]) if len(set(radii)) == 1 else ("ellipsoid", radii)
        return Visual(kind, tuple(size), pose, shape.color, name=shape.name)
    return None
