"""Surfaces of bodies in .osim files: of version 4 attached to frames, of version 3 in the body.

OpenSim looks for the files of meshes beside the model and in the folder Geometry there.
"""

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from torsor.base.arrays import Array
from torsor.formats.osim.frames import Frames
from torsor.formats.osim.model import GROUND, OsimShape
from torsor.formats.osim.values import flag_in, numbers_in, place_in, text_in
from torsor.formats.search_path import given_folders

_GEOMETRY = "Geometry"  # the folder of meshes beside a model
# The numbers that give the size of each kind, and how many they are.
_SIZES = {
    "Brick": (("half_lengths", 3),),
    "Sphere": (("radius", 1),),
    "Cylinder": (("radius", 1), ("half_height", 1)),
    "Ellipsoid": (("radii", 3),),
}


def shapes_of(path: Path, model: ET.Element, frames: Frames) -> Iterator[OsimShape]:
    """Yield the surfaces of all bodies and of the ground, without those that are hidden."""
    for owner in frames.paths:
        if owner.find("attached_geometry") is not None:
            body, place = frames.of(owner)
            for each in owner.iterfind("attached_geometry/*"):
                if flag_in(path, each, "Appearance/visible", default=True):
                    yield _attached(path, each, body, place)
    for owner in model.iterfind("BodySet/objects/Body"):
        for visible in owner.iterfind("VisibleObject"):
            yield from _displayed(path, visible, owner.get("name", GROUND))


def _attached(path: Path, element: ET.Element, body: str, place: Array) -> OsimShape:
    """Return a surface of version 4."""
    numbers = [numbers_in(path, element, key, count) for key, count in _SIZES.get(element.tag, ())]
    size = np.concatenate(numbers) if numbers else np.ones(3)
    name, file = element.get("name", ""), text_in(element, "mesh_file")
    scale = numbers_in(path, element, "scale_factors", 3, (1.0,) * 3)
    looks = element.find("Appearance")
    color = None if looks is None else _color(path, looks)
    return OsimShape(name, body, element.tag, size, scale, place, color, file, _found(path, file))


def _displayed(path: Path, visible: ET.Element, body: str) -> Iterator[OsimShape]:
    """Yield the meshes of a body of version 3: its own scale counts besides theirs."""
    outer = numbers_in(path, visible, "scale_factors", 3, (1.0,) * 3)
    for file in text_in(visible, "geometry_files").split():
        yield OsimShape(Path(file).stem, body, "Mesh", np.ones(3), outer, np.zeros(6), None, file, _found(path, file))
    for each in visible.iterfind("GeometrySet/objects/DisplayGeometry"):
        if text_in(each, "display_preference") == "0":
            continue
        place = place_in(path, each, "transform", count=6)
        place = np.concatenate([place[3:], place[:3]])  # angles come first there
        scale, file = outer * numbers_in(path, each, "scale_factors", 3, (1.0,) * 3), text_in(each, "geometry_file")
        name = each.get("name", "") or Path(file).stem
        found = _found(path, file)
        yield OsimShape(name, body, "Mesh", np.ones(3), scale, place, _color(path, each), file, found)


def _color(path: Path, element: ET.Element) -> tuple[float, ...]:
    """Return red, green, blue and opacity, white without them."""
    color = numbers_in(path, element, "color", 3, (1.0,) * 3)
    return (*color.tolist(), float(numbers_in(path, element, "opacity", 1, (1.0,))[0]))


def _found(path: Path, file: str) -> str | None:
    """Return the path of a mesh file: beside the model, in folders to search, or in the folder Geometry of these."""
    for folder in (path.parent, *given_folders()):
        for candidate in (folder / file, folder / _GEOMETRY / file):
            try:
                if candidate.is_file():
                    return str(candidate)
            except (OSError, ValueError):  # no file can have such a name
                return None
    return None
