"""Geoms of a model that MuJoCo compiled: visuals where they are seen, collision shapes where they touch something."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.formats.meshes.mesh_folders import own_folders
from torsor.formats.mjcf.notes import Note
from torsor.mechanism import Shape, Visual
from torsor.mechanism.parts import VISUAL_SIZES
from torsor.spatial import from_quaternion, inverse_pose, make_pose

# Numbers of mjtGeom. Height fields and signed distance functions are neither drawn nor collide.
_SHAPES = {0: "plane", 2: "sphere", 3: "capsule", 4: "ellipsoid", 5: "cylinder", 6: "box", 7: "mesh"}
# MuJoCo's viewer shows these groups of geoms by default; by convention the others are for collisions.
_VISIBLE_GROUPS = (0, 1, 2)
_NO_COLOR = (0.5, 0.5, 0.5, 1.0)  # of geoms that have neither rgba nor a material


def pose_of(position: ArrayLike, wxyz: ArrayLike) -> Array:
    """Return the pose of a position and a quaternion (w, x, y, z), MuJoCo's order.

    Example:
        >>> pose_of([0.1, 0.2, 0.3], [1, 0, 0, 0])[:3, 3].tolist()
        [0.1, 0.2, 0.3]
    """
    return make_pose(from_quaternion(np.roll(wxyz, -1)), position)


class GeomReader:
    """The geoms of one compiled model; ``unread`` are the files of meshes that MuJoCo did not read, by mesh."""

    def __init__(self, model: Any, path: Path, unread: Mapping[str, str], note: Note):
        self.model, self.path, self.unread, self.note = model, path, unread, note

    def of_body(self, body: int, name: str) -> tuple[tuple[Visual, ...], tuple[Shape, ...]]:
        """Return the visuals and the collision shapes of a body, with the meshes that are noted for it."""
        visuals, shapes = list[Visual](), list[Shape]()
        for g in np.flatnonzero(self.model.geom_bodyid == body).tolist():
            self._geom(g, visuals, shapes)
        visuals += [visual for owner, visual in self.note.visuals if owner == name]
        shapes += [shape for owner, shape in self.note.shapes if owner == name]
        return tuple(visuals), tuple(shapes)

    def _geom(self, g: int, visuals: list[Visual], shapes: list[Shape]) -> None:
        """Add a geom to the visuals if it is visible, and to the shapes if it can collide."""
        m, shape = self.model, _SHAPES.get(int(self.model.geom_type[g]))
        material, masks = m.geom_matid[g], (int(m.geom_contype[g]), int(m.geom_conaffinity[g]))
        rgba = tuple(float(str(each)) for each in (m.geom_rgba[g] if material < 0 else m.mat_rgba[material]))
        collides = any(masks) or g in self._paired
        # What is transparent and touches nothing is a visual all the same: otherwise it would be lost.
        visible = shape in VISUAL_SIZES and m.geom_group[g] in _VISIBLE_GROUPS and (rgba[3] != 0 or not collides)
        if shape is None or not (visible or collides):
            return
        pose, (a, b, c) = pose_of(m.geom_pos[g], m.geom_quat[g]), m.geom_size[g].tolist()
        sizes = {"sphere": (a,), "box": (2 * a, 2 * b, 2 * c), "ellipsoid": (a, b, c), "plane": ()}
        found: dict[str, Any] = {"shape": shape, "size": sizes.get(shape, (a, 2 * b)), "pose": pose}
        if shape == "mesh":
            found["pose"], found["size"], mesh = self._mesh(int(m.geom_dataid[g]), pose)
            path = self.path.parent / mesh
            found |= {"mesh": mesh or None, "path": str(path) if mesh and path.is_file() else None}
            found["folders"] = own_folders(self.path) if mesh else None
        found["name"] = m.geom(g).name
        if visible:
            uncolored = material < 0 and rgba == _NO_COLOR
            visuals.append(Visual(**found, color=None if uncolored else rgba))
        if collides:
            shapes.append(Shape(**found, contype=masks[0], conaffinity=masks[1]))

    @cached_property
    def _paired(self) -> set[int]:
        """The geoms of <pair>, which collide whatever their masks are."""
        return {*self.model.pair_geom1.tolist(), *self.model.pair_geom2.tolist()}

    def _mesh(self, mesh: int, pose: Array) -> tuple[Array, tuple[float, ...], str]:
        """Return the pose, scale and file of a mesh; MuJoCo moved it to its principal axes."""
        m, start = self.model, int(self.model.mesh_pathadr[mesh])
        file = "" if start < 0 else m.paths[start:].split(b"\0", 1)[0].decode()
        file = self.unread.get(m.mesh(mesh).name, file)
        moved = pose_of(m.mesh_pos[mesh], m.mesh_quat[mesh])
        return pose @ inverse_pose(moved), tuple(m.mesh_scale[mesh].tolist()), file
