"""Mesh files as triangles (trimesh, extra ``view``). Files may be malicious, so no referenced file is opened."""

import json
import os
import re
import xml.etree.ElementTree as ET
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, missing
from torsor.base.files import read_limited
from torsor.formats.meshes.triangles import Triangles, fans, joined

# VTK polygon files (.vtp), such as OpenSim's bones: points and faces as ASCII numbers in XML.


def read_vtp(path: Path) -> Triangles:
    """Return the polygons of a .vtp file as triangles, in the units of the file (m in OpenSim).

    Polygons with more than three corners are split into fans from their first corner. Strips, lines, arrays that are
    not ASCII, and other files raise ValueError.
    """
    root = ET.fromstring(path.read_bytes())
    pieces = root.findall("PolyData/Piece")
    if root.tag != "VTKFile" or not pieces:
        raise ValueError("no VTK polygons (PolyData)")
    surfaces = []
    for piece in pieces:
        if _numbers(piece, "Strips", "connectivity").size:
            raise ValueError("triangle strips; save it with polygons")
        points = _numbers(piece, "Points").reshape(-1, 3)
        corners, ends = (_numbers(piece, "Polys", name).astype(np.int64) for name in ("connectivity", "offsets"))
        surfaces.append(Triangles(points, fans(corners, np.diff(ends, prepend=0), len(points))))
    return joined(surfaces)


def _numbers(piece: ET.Element, group: str, name: str | None = None) -> NDArray[np.float64]:
    """Return the numbers of a named array in a group, or of the first array; none if it is missing."""
    arrays = piece.findall(f"{group}/DataArray")
    result = next((array for array in arrays if name in (None, array.get("Name"))), None)
    if result is None:
        return np.zeros(0)
    if result.get("format") != "ascii":
        raise ValueError(f"{group} as {result.get('format')}; save it as ASCII")
    return np.array((result.text or "").split(), dtype=float)


_MIN_VERTICES = 4  # vertices: MuJoCo rejects fewer


def obj_content(surface: Triangles) -> bytes:
    """Return the bytes of an .obj file in single precision (nine digits). A single triangle gets a fourth vertex."""
    corners = surface.vertices.tolist()
    corners += corners[:1] * (_MIN_VERTICES - len(corners))
    vertices = "".join(f"v {x:.9g} {y:.9g} {z:.9g}\n" for x, y, z in corners)
    faces = "".join(f"f {a} {b} {c}\n" for a, b, c in (surface.faces + 1).tolist())
    return (vertices + faces).encode("ascii")


# Colours in mesh files: of materials, vertices and faces. Textures are not read.
Color = tuple[float, float, float, float]
MAX_MATERIAL_BYTES = 2**20  # bytes of a material file
LEVELS = (32, 8, 4, 2)  # shades of each of red, green and blue, reduced until there are few enough colours
MAX_COLOURS = 24  # colours of a surface: each is drawn separately


class Painted(NamedTuple):
    """A surface and its colour (red, green, blue, opacity, 0 to 1), or None if the file has none."""

    surface: Triangles
    color: Color | None


class Materials:
    """The files that a mesh in a folder may refer to: materials (.mtl) in the same folder, without textures."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()

    def __getitem__(self, name: str) -> bytes:
        """Return names and colours of a material file. Any other file raises FileNotFoundError."""
        path = (self.folder / name.strip()).resolve()
        if path.suffix.lower() != ".mtl" or path.parent != self.folder or not path.is_file():
            raise FileNotFoundError(name)
        with path.open("rb") as file:
            return plain_materials(file.read(MAX_MATERIAL_BYTES).decode(errors="replace")).encode()

    get = __getitem__


def plain_materials(text: str) -> str:
    """Return the names and diffuse colours (with opacity) of the materials in an .mtl text."""
    result = dict[str, dict[str, list[str]]]()
    material = dict[str, list[str]]()
    for line in text.splitlines():
        key, *rest = line.split() or [""]
        if key == "newmtl":
            material = result.setdefault(" ".join(rest), {})
        elif key in ("Kd", "d"):
            material[key] = rest
    painted = {name: own["Kd"][:3] + own.get("d", ["1"])[:1] for name, own in result.items() if "Kd" in own}
    return "\n".join(f"newmtl {name}\nKd {' '.join(color)}" for name, color in painted.items())


def without_textures(data: bytes) -> bytes:
    """Return a .glb file whose materials have only colours, without decoding its images."""
    length = int.from_bytes(data[12:16], "little")
    header = json.loads(data[20 : 20 + length])
    for name in ("images", "textures", "samplers"):
        header.pop(name, None)
    key, looks = "baseColorFactor", "pbrMetallicRoughness"
    colors = [item.get(looks, {}).get(key, [1, 1, 1, 1]) for item in header.get("materials", [])]
    header["materials"] = [{looks: {key: color}} for color in colors]
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 4)
    chunks = len(text).to_bytes(4, "little") + data[16:20] + text + data[20 + length :]
    return data[:8] + (12 + len(chunks)).to_bytes(4, "little") + chunks


def painted(surface: Triangles, look: Any) -> list[Painted]:
    """Return a surface split by colour, from the ``visual`` of a trimesh mesh, or None if it has no colours."""
    if getattr(look, "kind", None) in ("vertex", "face"):
        colors = np.asarray(look.face_colors, dtype=float) / 255
        if colors.shape == (len(surface.faces), 4):
            return by_color(surface, colors)
    return [Painted(surface, _material_color(look))]


def by_color(surface: Triangles, colors: Array) -> list[Painted]:
    """Return a surface with face ``colors`` (m, 4), split into parts of one colour each."""
    shades, shade_indices = _few(colors)
    result = []
    for number, shade in enumerate(shades):
        used, indices = np.unique(surface.faces[shade_indices == number], return_inverse=True)
        red, green, blue, opacity = shade.tolist()
        result.append(Painted(Triangles(surface.vertices[used], indices.reshape(-1, 3)), (red, green, blue, opacity)))
    return result


def _material_color(look: Any) -> Color | None:
    """Return the colour of the material, if the file has one."""
    material = getattr(look, "material", None)
    if material is None or getattr(material, "name", None) == "default":
        return None
    factor = getattr(material, "baseColorFactor", None)
    factor = getattr(material, "diffuse", None) if factor is None else factor
    if factor is None or np.size(factor) not in (3, 4):
        return None
    red, green, blue, opacity = (*(np.asarray(factor, dtype=float).ravel() / 255).tolist(), 1.0)[:4]
    return red, green, blue, opacity if opacity > 0 else 1.0


def _few(colors: Array) -> tuple[Array, NDArray[np.int64]]:
    """Reduce colours (m, 4) to a limited number (k, 4) by averaging similar ones; return them and the index of each."""
    for levels in LEVELS:
        _, indices = np.unique(np.minimum((colors * levels).astype(int), levels - 1), axis=0, return_inverse=True)
        indices = indices.reshape(-1)
        if indices.max() < MAX_COLOURS:
            break
    sizes = np.bincount(indices)
    return np.stack([np.bincount(indices, column) for column in colors.T], axis=-1) / sizes[:, None], indices


# The folders from which a robot file may load meshes: an untrusted file must not refer to arbitrary files.
GROUPED = ("urdf", "robots", "robot", "xacro", "mjcf", "xml", "model", "models", "description")
"""Usual names of the description folder inside its package: meshes are next to it, in ``../meshes``."""
MARKS = "package.xml", "model.config"  # of a ROS package and of a Gazebo model
ALLOWED = "TORSOR_MESHES"  # environment variable: folders that the user allows
SEARCH_VARIABLES = "TORSOR_PATH", "ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH", "GZ_SIM_RESOURCE_PATH", "GAZEBO_MODEL_PATH"
"""Environment variables that list folders of packages and models; all of them are allowed."""


def own_folders(path: Path) -> tuple[str, ...]:
    """Return the folders whose meshes a description may use: its own folder or, if it is in a package, the package.

    If the description is a symbolic link (as in install folders of ROS), the folders of its target are included.
    """
    folders = []
    for file in dict.fromkeys((path.absolute(), path.resolve())):
        package = next((folder for folder in file.parents if is_package(folder)), None)
        around = file.parent.parent if file.parent.name.lower() in GROUPED else file.parent
        folders.append(str(around if package is None else package))
    return tuple(dict.fromkeys(folders))


def is_package(folder: Path) -> bool:
    """Return whether a folder is a ROS package or a Gazebo model."""
    try:
        return any((folder / mark).is_file() for mark in MARKS)
    except (OSError, ValueError):
        return False


def is_inside(path: Path, folders: tuple[str, ...]) -> bool:
    """Return whether a file (after resolving symbolic links) is in one of the folders or in one allowed by the user."""
    listed = (os.environ.get(name, "").split(os.pathsep) for name in (*SEARCH_VARIABLES, ALLOWED))
    allowed, real = (name for names in listed for name in names if name), path.resolve()
    return any(real.is_relative_to(Path(folder).resolve()) for folder in (*folders, *allowed))


# USD files: stages, which may be composed only of files in allowed folders, and their surfaces.
#
# A surface in a stage is named like a file: ``robot.usda#/arm/upper/visuals/shell``.

USD_SUFFIXES = (".usda", ".usd", ".usdc", ".usdz")
MAX_USD_BYTES = 256_000_000  # bytes of a file: stages may contain meshes
_BINARY = (b"PXR-USDC", b"PK")  # magic bytes of binary stages and archives


def import_usd(where: str) -> Any:
    """Return the package ``pxr`` with the modules in use. If it is missing, the ImportError names the extra."""
    try:
        import pxr
        from pxr import Ar, Gf, Sdf, Usd, UsdGeom, UsdPhysics, UsdShade, Vt  # noqa: F401  # pxr.Usd and so on
    except ImportError:
        raise missing("USD files need the package usd-core, which is not installed", "usd", where=where) from None
    return pxr


def split_prim(path: Path) -> tuple[Path, str]:
    """Return the file and the prim path of a name like ``scene.usda#/World/arm``; other files have the prim path ""."""
    if "#" not in path.name and "#" not in str(path):
        return path, ""
    file, _, prim = path.as_posix().partition("#")
    is_usd = file.lower().endswith(USD_SUFFIXES)
    return (Path(file), f"/{prim.strip('/')}" if prim else "") if is_usd else (path, "")


def open_stage(pxr: Any, path: Path, search: tuple[str, ...] = ()) -> Any:
    """Return the stage in a file.

    References, payloads and sublayers must be files in the robot's folder or package, in the folders ``search``, or in
    a folder that the user allows (TORSOR_MESHES). Names that do not begin with ``./`` or ``../`` are also searched for
    in ``search``.
    """
    content = read_limited(path, MAX_USD_BYTES)
    if not content:
        raise ModelError("the file is empty", where=path.name, allowed="a USD stage")
    if not content.startswith(_BINARY):
        try:
            content.decode()
        except UnicodeDecodeError as error:
            raise ModelError(f"it is not UTF-8 text ({error})", where=path.name) from None
    context = pxr.Ar.DefaultResolverContext(list(search))
    with pxr.Ar.ResolverContextBinder(context):
        layer = _layer(pxr, str(path), path)
        layer.Reload(True)  # USD caches layers, and the file may have changed
        _check_files(pxr, layer, (*own_folders(path), *search), {layer.identifier}, path)
    try:
        stage = pxr.Usd.Stage.Open(layer, context)
        errors = stage.GetCompositionErrors()
    except (RuntimeError, UnicodeDecodeError) as error:
        raise ModelError(f"USD rejects it: {_line(error)}", where=path.name) from None
    if errors:
        raise ModelError(f"its layers cannot be composed: {_line(errors[0])}", where=path.name)
    return stage


def _layer(pxr: Any, identifier: str, path: Path) -> Any:
    try:
        layer = pxr.Sdf.Layer.FindOrOpen(identifier)
    except (RuntimeError, UnicodeDecodeError) as error:
        raise ModelError(f"USD rejects it: {_line(error)}", where=path.name) from None
    if layer is None:
        raise ModelError(f"{Path(identifier).name!r} is not a USD file", where=path.name)
    return layer


def _line(error: object) -> str:
    """Return a USD error on one line, without its source location."""
    return re.sub(r"^.*? in file \S+ : ", "", " ".join(str(error).split()))[:300]


def _check_files(pxr: Any, layer: Any, folders: tuple[str, ...], seen: set[str], path: Path) -> None:
    """Raise ModelError if a layer is composed of anything but files in these folders. ``seen`` breaks cycles."""
    for asset in filter(None, layer.GetCompositionAssetDependencies()):  # an empty one is the layer itself
        result = layer.ComputeAbsolutePath(asset)
        result = str(pxr.Ar.GetResolver().Resolve(result)) or result
        file = Path(result.split("[")[0])  # of a file in an archive: robot.usdz[arm.usdc]
        fix = "pass its folder, `search=FOLDER`, or flatten it: pxr.Usd.Stage.Open(FILE).Export(NEW_FILE)"
        if "://" in asset or not is_inside(file, folders):
            allowed = "files in its own folder, in search folders or in TORSOR_MESHES"
            raise ModelError(f"it refers to {asset!r}", value=asset, where=path.name, allowed=allowed, fix=fix)
        if not file.is_file():
            raise ModelError(f"it refers to {asset!r}, which is missing", value=asset, where=path.name, fix=fix)
        if result not in seen:
            seen.add(result)
            _check_files(pxr, _layer(pxr, result, path), folders, seen, path)


def read_surface(path: Path, prim: str, folders: tuple[str, ...] = ()) -> list[Painted]:
    """Return the surface of a Mesh prim by colour, in the units and axes of the prim.

    The colours are those of the faces. For a mesh with a single colour, the colour is None, because the visual stores
    it. ``folders`` are searched for files that the stage refers to.
    """
    where = f"mesh {path.name}#{prim}"
    if not path.is_file():
        raise ModelError("no such file", where=where, fix="check the path in the robot description")
    result = _stage(path, path.stat().st_mtime_ns, folders).GetPrimAtPath(prim)
    if not result or result.GetTypeName() != "Mesh":
        raise ModelError(f"no mesh at {prim}", where=where, allowed="the path of a Mesh prim")
    surface, counts = triangles_of(result, where)
    count, shown = len(counts), import_usd(where).UsdGeom.Gprim(result)
    primvar = shown.GetDisplayColorPrimvar()
    colors, opacities = primvar.ComputeFlattened(), shown.GetDisplayOpacityPrimvar().ComputeFlattened()
    by_face = primvar.GetInterpolation() == "uniform" and colors is not None and len(colors) == count
    if not by_face or not len(surface.faces):
        return [Painted(surface, None)]
    opacity = np.array(opacities) if opacities is not None and len(opacities) == count else np.ones(count)
    shades = np.column_stack([np.array(colors), opacity]).astype(float)
    if not np.isfinite(shades).all():
        return [Painted(surface, None)]
    return by_color(surface, np.repeat(shades, np.maximum(counts - 2, 0), axis=0))


@lru_cache(maxsize=4)
def _stage(path: Path, _changed: int, folders: tuple[str, ...]) -> Any:
    return open_stage(import_usd(path.name), path, folders)


def triangles_of(prim: Any, where: str) -> tuple[Triangles, NDArray[np.int64]]:
    """Return the surface of a Mesh prim, and the number of corners of each face; raise ModelError if it is invalid."""
    attributes = [prim.GetAttribute(name).Get() for name in ("points", "faceVertexCounts", "faceVertexIndices")]
    points, counts, corners = (np.array([] if value is None else value) for value in attributes)
    points, counts, corners = points.reshape(-1, 3).astype(float), counts.astype(np.int64), corners.astype(np.int64)
    try:
        if not np.isfinite(points).all():
            raise ValueError("points that are not finite")
        faces = fans(corners, counts, len(points))
    except ValueError as error:
        raise ModelError(str(error), where=where) from None
    left_handed = prim.GetAttribute("orientation").Get() == "leftHanded"
    return Triangles(points, faces[:, ::-1] if left_handed else faces), counts


SUFFIXES = (".stl", ".obj", ".dae", ".ply", ".glb", ".vtp")
MAX_MESH_BYTES = 256 * 2**20  # bytes of a mesh file
MAX_TRIANGLES = 2_000_000  # triangles of a mesh


def read_painted(path: str | Path, folders: tuple[str, ...] | None = None) -> tuple[Painted, ...]:
    """Return the triangles of a mesh file (.stl, .obj, .dae, .ply, .glb, .vtp) by colour, in the units of the file.

    ``robot.usda#/arm/shell`` is a mesh in a USD stage. Colours are taken from materials (.dae, .glb, .obj with an .mtl
    file in the same folder), vertices and faces. Textures and other files that the mesh refers to are not opened.

    Other file types, devices, files above 256 MiB, files without triangles, and files outside ``folders`` and the
    folders that the environment allows (ROS_PACKAGE_PATH, TORSOR_MESHES) raise ModelError. None allows all folders.
    """
    real, prim = split_prim(Path(path))
    if folders is not None and not is_inside(real, folders):
        message = f"the file is outside the folder of the description: {real}"
        fix = f"if you trust it, set {ALLOWED} to its folder, or copy it next to the description"
        raise ModelError(message, where=f"mesh {real.name!r}", fix=fix)
    if prim:
        return tuple(read_surface(real, prim, folders or ()))
    return _read(real, _stamp(real))


def read_mesh(path: str | Path, folders: tuple[str, ...] | None = None) -> Triangles:
    """Return the triangles of a mesh file as one surface; see ``read_painted``."""
    return joined([item.surface for item in read_painted(path, folders)])


def _stamp(path: Path) -> tuple[int, int] | None:
    """Return the time and size of a file, which are used to detect changes, or None if there is no file."""
    try:
        result = path.stat()
    except (OSError, ValueError):
        return None
    return (result.st_mtime_ns, result.st_size) if path.is_file() else None


@lru_cache(maxsize=256)
def _read(path: Path, stamp: tuple[int, int] | None) -> tuple[Painted, ...]:
    where = f"mesh {path.name!r}"
    if path.suffix.lower() not in SUFFIXES:
        message, allowed = f"the file type is {path.suffix!r}", ", ".join(SUFFIXES)
        raise ModelError(message, value=path.suffix, where=where, allowed=allowed)
    if stamp is None:
        raise ModelError("no such file", where=where, fix="check the path in the robot description")
    if stamp[1] > MAX_MESH_BYTES:
        raise ModelError(f"{stamp[1] / 2**20:.0f} MiB", where=where, allowed=f"{MAX_MESH_BYTES / 2**20:.0f} MiB")
    kind, fix = path.suffix.lower()[1:], "open it in a mesh editor"
    try:
        import trimesh
    except ImportError:
        if kind != "vtp":
            raise missing("meshes need trimesh", "view") from None
    try:
        if kind in ("dae", "vtp"):
            content = path.read_bytes().replace(b"\0", b"")  # "<!DOCTYPE" is ASCII in all encodings that expat reads
            if b"<!DOCTYPE" in content or b"<!ENTITY" in content:  # they can exhaust memory, or name other files
                raise ModelError("it has a document type", where=where, fix="export it again without <!DOCTYPE")
        looks = list[tuple[Triangles, Any]]()
        if kind == "vtp":
            fix = "save it in ParaView as .vtp with ASCII numbers, or as .stl"
            looks.append((read_vtp(path), None))
        else:
            with path.open("rb") as file:  # an open file instead of a path, so that trimesh finds no other file
                source = BytesIO(without_textures(file.read())) if kind == "glb" else file
                others = {"resolver": Materials(path.parent)} if kind == "obj" else {"skip_materials": kind != "glb"}
                meshes = trimesh.load_scene(source, file_type=kind, **others).dump()
            for item in (mesh for mesh in meshes if isinstance(mesh, trimesh.Trimesh) and len(mesh.faces)):
                vertices, faces = np.asarray(item.vertices, dtype=float), np.asarray(item.faces, dtype=np.int64)
                looks.append((Triangles(vertices, faces), item.visual))
        finite = all(np.isfinite(surface.vertices).all() for surface, _ in looks)
        count = sum(len(surface.faces) for surface, _ in looks)
        right = finite and 0 < count <= MAX_TRIANGLES
        result = [part for look in looks for part in painted(*look)] if right else []
    except ModelError:
        raise
    except Exception as error:  # trimesh readers raise any kind of error
        raise ModelError(f"it cannot be read: {error}", where=where, fix=fix) from None
    if not right:
        what = f"{count} triangles" if finite else "vertices that are not finite"
        raise ModelError(what, where=where, allowed=f"1 to {MAX_TRIANGLES} triangles with finite corners")
    return tuple(result)
