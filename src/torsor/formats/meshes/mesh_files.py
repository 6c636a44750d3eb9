"""Mesh files as triangles (trimesh, of the extra ``view``). Files may be hostile: none that they name is opened."""

from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import ParseError

import numpy as np

from torsor.base.errors import ModelError, describe, missing
from torsor.formats.meshes.mesh_colors import Materials, painted, without_textures
from torsor.formats.meshes.mesh_folders import ALLOWED, is_inside
from torsor.formats.meshes.triangles import Triangles, joined
from torsor.formats.meshes.usd_files import read_surface, split_prim
from torsor.formats.meshes.vtp_files import read_vtp

SUFFIXES = (".stl", ".obj", ".dae", ".ply", ".glb", ".vtp")
MAX_MESH_BYTES = 256 * 2**20  # bytes of a mesh file
MANY = 2_000_000  # triangles of a mesh


class Painted(NamedTuple):
    """A surface and its colour (red, green, blue, opacity, 0 to 1); None where the file has none."""

    surface: Triangles
    color: tuple[float, float, float, float] | None


def read_painted(path: str | Path, folders: tuple[str, ...] | None = None) -> tuple[Painted, ...]:
    """Return the triangles of a mesh file (.stl, .obj, .dae, .ply, .glb, .vtp) by colour, in the units of the file.

    ``robot.usda#/arm/shell`` is a mesh in a stage of USD.
    Colours are those of materials (.dae, .glb, .obj with its .mtl file in the same folder) and of vertices and faces.
    Textures are not read, and no other file that the mesh names is opened. Other kinds of files, devices, files above
    256 MiB and files without triangles raise ModelError, and so do files outside of ``folders`` and of those that the
    environment allows (ROS_PACKAGE_PATH, TORSOR_MESHES); None allows all.
    """
    real, prim = split_prim(Path(path))
    if folders is not None and not is_inside(real, folders):
        found = f"the file is outside of the folder of the description: {real}"
        fix = f"if you trust it, set {ALLOWED} to its folder, or copy it beside the description"
        raise ModelError(describe(found, where=f"mesh {real.name!r}", fix=fix))
    if prim:
        return tuple(Painted(*each) for each in read_surface(real, prim, folders or ()))
    return _read(real, _stamp(real))


def read_mesh(path: str | Path, folders: tuple[str, ...] | None = None) -> Triangles:
    """Return the triangles of a mesh file as one surface; see ``read_painted``."""
    return joined([each.surface for each in read_painted(path, folders)])


def _stamp(path: Path) -> tuple[int, int] | None:
    """Return the time and the size of a file, which tell whether it has changed; None if there is no file."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return (found.st_mtime_ns, found.st_size) if path.is_file() else None


@lru_cache(maxsize=256)
def _read(path: Path, stamp: tuple[int, int] | None) -> tuple[Painted, ...]:
    where = f"mesh {path.name!r}"
    if path.suffix.lower() not in SUFFIXES:
        raise ModelError(describe(f"a file {path.suffix!r}", where=where, allowed=", ".join(SUFFIXES)))
    if stamp is None:
        raise ModelError(describe("no such file", where=where, fix="check the path in the description of the robot"))
    if stamp[1] > MAX_MESH_BYTES:
        raise ModelError(
            describe(f"{stamp[1] / 2**20:.0f} MiB", where=where, allowed=f"{MAX_MESH_BYTES / 2**20:.0f} MiB")
        )
    if path.suffix.lower() == ".vtp":
        return (Painted(_polygons(path, where), None),)
    try:
        import trimesh
    except ImportError:
        raise missing("meshes need trimesh", "view") from None
    kind = path.suffix.lower()[1:]
    try:
        if kind == "dae" and _names_entities(path):  # they can fill the memory, or name other files
            raise ModelError(describe("it has a document type", where=where, fix="export it again without <!DOCTYPE"))
        with path.open("rb") as file:  # an open file, not a path: trimesh then finds no other file
            source = BytesIO(without_textures(file.read())) if kind == "glb" else file
            others = {"resolver": Materials(path.parent)} if kind == "obj" else {"skip_materials": kind != "glb"}
            scene = trimesh.load_scene(source, file_type=kind, **others)
        meshes = [each for each in scene.dump() if isinstance(each, trimesh.Trimesh) and len(each.faces)]
        vertices = [np.asarray(each.vertices, dtype=float) for each in meshes]
        faces = [np.asarray(each.faces, dtype=np.int64) for each in meshes]
        finite, count = all(np.isfinite(each).all() for each in vertices), sum(map(len, faces))
        right = finite and 0 < count <= MANY
        found = (
            [part for parts in zip(meshes, vertices, faces, strict=True) for part in painted(*parts)] if right else []
        )
    except ModelError:
        raise
    except Exception as error:  # the readers of trimesh raise errors of any kind
        raise ModelError(describe(f"cannot be read: {error}", where=where, fix="open it in a mesh editor")) from None
    if not right:
        what = f"{count} triangles" if finite else "vertices that are not finite"
        raise ModelError(describe(what, where=where, allowed=f"1 to {MANY} triangles with finite corners"))
    return tuple(Painted(*part) for part in found)


def _polygons(path: Path, where: str) -> Triangles:
    """Return the surface of a .vtp file."""
    fix = "save it in ParaView as .vtp with ASCII numbers, or as .stl"
    if _names_entities(path):
        raise ModelError(describe("it has a document type", where=where, fix=fix))
    try:
        surface = read_vtp(path)
    except (ValueError, ParseError) as error:
        raise ModelError(describe(f"cannot be read: {error}", where=where, fix=fix)) from None
    if not (0 < len(surface.faces) <= MANY and np.isfinite(surface.vertices).all()):
        allowed = f"1 to {MANY} with finite corners"
        raise ModelError(describe(f"{len(surface.faces)} triangles", where=where, allowed=allowed))
    return surface


def _names_entities(path: Path) -> bool:
    """Return whether an XML file has a document type, in any encoding that expat reads (the mark is ASCII in all)."""
    content = path.read_bytes().replace(b"\0", b"")
    return b"<!DOCTYPE" in content or b"<!ENTITY" in content
