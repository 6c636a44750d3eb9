"""Geoms of an MJCF file that is written: visuals, which touch nothing, and collision shapes, which MuJoCo hides."""

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError
from torsor.formats.mjcf.mesh_assets import MeshAssets
from torsor.formats.mjcf.notes import mesh_entry
from torsor.formats.writing import MeshNames, Omissions
from torsor.formats.xml import add_element
from torsor.mechanism import Shape, Visual
from torsor.mechanism.names import unused_name
from torsor.spatial import to_quaternion

_VISUAL = {"contype": "0", "conaffinity": "0", "group": "2"}
_COLLISION_GROUP = "3"  # MuJoCo's viewer hides it by default
_UNSEEN = "which MuJoCo does not see: a note for Torsor keeps them"


class Geoms:
    """The geoms of one file; ``unseen`` are the meshes that are noted, because MuJoCo cannot read them.

    ``kept`` are the names of all collision shapes: a visual of the same name gets another.
    """

    def __init__(self, asset: ET.Element, path: Path, omissions: Omissions, kept: set[str]):
        self.mesh_names, self.omissions = MeshNames(path, omissions), omissions
        self.meshes = MeshAssets(asset, self.mesh_names)
        self.names, self.kept = set[str](), kept
        self.unseen: list[dict[str, Any]] = []

    def save_copies(self) -> None:
        """Write the copies of meshes beside the file."""
        self.mesh_names.copies.save()

    def add_visual(self, body: ET.Element, visual: Visual) -> None:
        """Add a visual to a body; a mesh without a colour has those of its file."""
        color = None if visual.color is None else (*visual.color, 1.0)[:4]
        self._add(body, visual, color, _VISUAL)

    def add_shape(self, body: ET.Element, shape: Shape) -> None:
        """Add a collision shape to a body."""
        masks = {"contype": str(shape.contype), "conaffinity": str(shape.conaffinity)}
        self._add(body, shape, None, masks | {"group": _COLLISION_GROUP})

    def _add(
        self, body: ET.Element, given: Visual | Shape, color: tuple[float, ...] | None, settings: dict[str, str]
    ) -> None:
        if given.shape == "mesh":
            for mesh, own in self._meshes(body, given):
                self._geom(body, given, {"type": "mesh", "mesh": mesh, "rgba": color or own, **settings})
            return
        kind, size = given.shape, np.array(given.size)
        if kind == "box":
            size = size / 2
        elif kind in ("capsule", "cylinder"):
            size = size / [1, 2]
            if kind == "capsule" and not size[1]:  # MuJoCo needs a length
                kind, size = "sphere", size[:1]
        elif kind == "plane":
            size = np.array([0, 0, 1])  # without end
        self._geom(body, given, {"type": kind, "size": size, "rgba": color, **settings})

    def _geom(self, body: ET.Element, given: Visual | Shape, look: dict[str, Any]) -> None:
        own = self.names if isinstance(given, Shape) else self.names | self.kept
        name = unused_name(given.name, own) if given.name else None
        self.names |= {name} if name else set()
        add_element(body, "geom", name=name, **placed(given.pose), **look)

    def _meshes(self, body: ET.Element, given: Visual | Shape) -> list[tuple[str, tuple[float, ...] | None]]:
        """Return names and colours of the meshes of a visual or shape; none and a note, if MuJoCo cannot have it."""
        try:
            return list(self.meshes.parts(given))
        except (ModelError, ImportError) as error:
            if given.path:
                self.omissions.note(f"meshes that cannot be converted to .obj, {_UNSEEN}", str(error))
            else:
                self.omissions.note(f"meshes that are not found, {_UNSEEN}", given.mesh or given.name)
            self.unseen.append(mesh_entry(body.get("name", "world"), given, self.mesh_names))
            return []


def placed(T: Array) -> dict[str, Any]:
    """Return the attributes of a pose; zero positions and identity rotations are not written.

    Example:
        >>> placed(np.eye(4))
        {'pos': None, 'quat': None}
    """
    turned = not np.array_equal(T[:3, :3], np.eye(3))
    return {
        "pos": T[:3, 3] if T[:3, 3].any() else None,
        "quat": np.roll(to_quaternion(T[:3, :3]), 1) if turned else None,
    }
