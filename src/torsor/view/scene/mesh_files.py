"""Mesh files as triangles (trimesh, of the extra ``view``). Files may be hostile: none that they name is opened."""

from functools import lru_cache
from pathlib import Path

import numpy as np

from torsor.errors import ModelError, describe, missing
from torsor.formats.mesh_folders import ALLOWED, is_inside
from torsor.view.scene.triangles import Triangles

SUFFIXES = (".stl", ".obj", ".dae", ".ply", ".glb")
LARGEST = 256 * 2**20  # bytes of a mesh file
MANY = 2_000_000  # triangles of a mesh


def read_mesh(path: str | Path, folders: tuple[str, ...] | None = None) -> Triangles:
    """Return the triangles of a mesh file (.stl, .obj, .dae, .ply, .glb), in the units of the file.

    Materials and textures are not read, and no other file that the mesh names is opened. Other kinds of files, devices,
    files above 256 MiB and files without triangles raise ModelError, and so do files outside of ``folders`` and of
    those that the environment allows (ROS_PACKAGE_PATH, TORSOR_MESHES); None allows all.
    """
    real = Path(path)
    if folders is not None and not is_inside(real, folders):
        found = f"the file is outside of the folder of the description: {real}"
        fix = f"if you trust it, set {ALLOWED} to its folder, or copy it beside the description"
        raise ModelError(describe(found, where=f"mesh {real.name!r}", fix=fix))
    return _read(real)


@lru_cache(maxsize=256)
def _read(path: Path) -> Triangles:
    where = f"mesh {path.name!r}"
    if path.suffix.lower() not in SUFFIXES:
        raise ModelError(describe(f"a file {path.suffix!r}", where=where, allowed=", ".join(SUFFIXES)))
    try:
        size = path.stat().st_size if path.is_file() else -1
    except (OSError, ValueError):
        size = -1
    if size < 0:
        raise ModelError(describe("no such file", where=where, fix="check the path in the description of the robot"))
    if size > LARGEST:
        raise ModelError(describe(f"{size / 2**20:.0f} MiB", where=where, allowed=f"{LARGEST / 2**20:.0f} MiB"))
    try:
        import trimesh
    except ImportError:
        raise missing("meshes need trimesh", "view") from None
    if path.suffix.lower() == ".dae" and _names_entities(path):  # they can fill the memory, or name other files
        raise ModelError(describe("it has a document type", where=where, fix="export it again without <!DOCTYPE"))
    try:
        with path.open("rb") as file:  # an open file, not a path: trimesh then finds no other file
            scene = trimesh.load_scene(file, file_type=path.suffix.lower()[1:], skip_materials=True)
        mesh = scene.to_mesh()
        vertices, faces = np.asarray(mesh.vertices, dtype=float), np.asarray(mesh.faces, dtype=np.int64)
    except Exception as error:  # the readers of trimesh raise errors of any kind
        raise ModelError(describe(f"cannot be read: {error}", where=where, fix="open it in a mesh editor")) from None
    if not len(faces) or not np.isfinite(vertices).all() or len(faces) > MANY:
        found = f"{len(faces)} triangles" if np.isfinite(vertices).all() else "vertices that are not finite"
        raise ModelError(describe(found, where=where, allowed=f"1 to {MANY} triangles with finite corners"))
    return Triangles(vertices, faces)


def _names_entities(path: Path) -> bool:
    """Return whether an XML file has a document type, in any encoding that expat reads (the mark is ASCII in all)."""
    content = path.read_bytes().replace(b"\0", b"")
    return b"<!DOCTYPE" in content or b"<!ENTITY" in content
