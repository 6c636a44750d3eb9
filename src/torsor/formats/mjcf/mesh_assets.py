"""Mesh files of an MJCF file that is written: those that MuJoCo reads, and copies (.obj) of those that it does not."""

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np

from torsor.base.errors import ModelError, describe
from torsor.formats.meshes.mesh_files import read_painted
from torsor.formats.meshes.triangles import Triangles, joined
from torsor.formats.meshes.usd_files import split_prim
from torsor.formats.writing import MeshNames, relative_file
from torsor.formats.xml import add_element
from torsor.mechanism import Shape, Visual
from torsor.mechanism.names import unused_name

Color = tuple[float, float, float, float]
_MOST_TRIANGLES = 200_000  # of an .stl file in MuJoCo
_LEAST_AREA = 1e-12  # m^2: MuJoCo refuses meshes without a surface
_FLAT = 1e-6  # thickness over length below which MuJoCo finds no convex hull


class MeshAssets:
    """The <mesh> elements of one file, and the copies that it needs."""

    def __init__(self, asset: ET.Element, names: MeshNames):
        self.asset, self.mesh_names = asset, names
        self.names: dict[tuple[str, tuple[float, ...]], str] = {}
        self._parts: dict[tuple[object, ...], list[tuple[Path, Color | None]]] = {}

    def parts(self, given: Visual | Shape) -> list[tuple[str, Color | None]]:
        """Return the names of the meshes that show a visual or shape, with the colours of the file where it has some.

        A file that MuJoCo reads is one mesh. Of another kind, and of .obj files with materials, a visual without a
        colour is a mesh for each colour of its file. Files that are missing or cannot be converted raise ModelError or,
        without trimesh, ImportError.
        """
        path = Path(given.path or "")
        if not given.path or not split_prim(path)[0].is_file():
            raise ModelError(describe("no such file", where=f"mesh {given.mesh!r}"))
        if _is_for_mujoco(path) and not _has_materials(given):
            return [(self._name(self.mesh_names.reachable(given), given), None)]
        key = given.path, given.size, type(given), getattr(given, "color", None) is None
        if key not in self._parts:
            copies = self.mesh_names.copies
            self._parts[key] = [(copies.add(path.stem, surface), color) for surface, color in _surfaces(given)]
        return [(self._name(copy, given), color) for copy, color in self._parts[key]]

    def _name(self, path: Path, given: Visual | Shape) -> str:
        """Return the name of the mesh of a file at the scale that is given; its element is added if it is new."""
        file = relative_file(self.mesh_names.path, str(path))
        name = self.names.get((file, given.size))
        if name is None:
            name = self.names[file, given.size] = unused_name(path.stem, self.names.values())
            # Inertias are given: a shell has no volume that could be too small for MuJoCo.
            add_element(self.asset, "mesh", name=name, file=file, scale=given.size, inertia="shell")
        return name


def _is_for_mujoco(path: Path) -> bool:
    """Return whether MuJoCo reads a mesh file: .obj, .msh, and .stl that is binary and not too large."""
    if path.suffix.lower() != ".stl":
        return path.suffix.lower() in (".obj", ".msh")
    try:
        with path.open("rb") as file:
            count = int.from_bytes(file.read(84)[80:], "little")
        return 0 < count <= _MOST_TRIANGLES and path.stat().st_size >= 84 + 50 * count
    except OSError:
        return False


def _has_materials(given: Visual | Shape) -> bool:
    """Return whether a visual has the colours of materials of its .obj file, which MuJoCo does not read."""
    path = Path(given.path or "")
    if not isinstance(given, Visual) or given.color is not None or path.suffix.lower() != ".obj":
        return False
    try:
        return any(part.color is not None for part in read_painted(path, given.folders))
    except (ModelError, ImportError):  # MuJoCo may read it all the same
        return False


def _surfaces(given: Visual | Shape) -> list[tuple[Triangles, Color | None]]:
    """Return the surface of a mesh file: for each colour of its own, or as one where colours do not matter."""
    where = f"mesh {given.mesh!r}"
    painted = read_painted(given.path or "", given.folders)
    by_color: dict[Color | None, list[Triangles]] = {}
    for surface, color in painted:
        by_color.setdefault(color if isinstance(given, Visual) and given.color is None else None, []).append(surface)
    found = [(joined(surfaces), color) for color, surfaces in by_color.items()]
    found = [each for each in found if each[0].scaled(given.size).area > _LEAST_AREA]
    if not found:
        raise ModelError(describe("its surface has no area", where=where))
    if isinstance(given, Shape):
        points = found[0][0].scaled(given.size).vertices
        spread = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
        if spread.size < 3 or not spread[-1] > _FLAT * spread[0]:
            raise ModelError(describe("its convex hull is flat", where=where, fix="use a thin box"))
    return found
