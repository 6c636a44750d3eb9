"""Files of USD: stages, opened from files beside them alone, and the surfaces in them.

A surface in a stage is named like a file: ``robot.usda#/arm/upper/visuals/shell``.
"""

import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, describe, missing
from torsor.base.files import read_limited
from torsor.formats.meshes.mesh_colors import Color, by_color
from torsor.formats.meshes.mesh_folders import is_inside, own_folders
from torsor.formats.meshes.triangles import Triangles, fans

USD_SUFFIXES = (".usda", ".usd", ".usdc", ".usdz")
MAX_USD_BYTES = 256_000_000  # bytes of a file: stages may have meshes inside
_BINARY = (b"PXR-USDC", b"PK")  # how binary stages and archives begin


def import_usd(where: str) -> Any:
    """Return the package ``pxr`` with the modules in use; raise ImportError with the extra if it is missing."""
    try:
        import pxr
        from pxr import Ar, Gf, Sdf, Usd, UsdGeom, UsdPhysics, UsdShade, Vt  # noqa: F401  # pxr.Usd and so on
    except ImportError:
        raise missing(
            "USD is read and written by the package usd-core, which is not installed", "usd", where=where
        ) from None
    return pxr


def split_prim(path: Path) -> tuple[Path, str]:
    """Return the file and the path of the prim in it of a name like ``scene.usda#/World/arm``.

    Example:
        >>> file, prim = split_prim(Path("scene.usda#/World/arm"))
        >>> file.name, prim
        ('scene.usda', '/World/arm')
    """
    file, _, prim = path.as_posix().partition("#")
    is_usd = file.lower().endswith(USD_SUFFIXES)
    return (Path(file), f"/{prim.strip('/')}" if prim else "") if is_usd else (path, "")


def open_stage(pxr: Any, path: Path, search: tuple[str, ...] = ()) -> Any:
    """Return the stage of a file; references, payloads and sublayers may only be files of the folder of the robot.

    Names that do not begin with ``./`` or ``../`` are looked for in the folders ``search`` too.
    """
    content = read_limited(path, MAX_USD_BYTES)
    if not content:
        raise ModelError(describe("the file is empty", where=path.name, allowed="a stage of USD"))
    if not content.startswith(_BINARY):
        try:
            content.decode()
        except UnicodeDecodeError as error:
            raise ModelError(describe(f"it is no text of UTF-8 ({error})", where=path.name)) from None
    context = pxr.Ar.DefaultResolverContext(list(search))
    with pxr.Ar.ResolverContextBinder(context):
        layer = _layer(pxr, str(path), path)
        layer.Reload(True)  # USD keeps layers: the file may have changed since
        _check_files(pxr, layer, (*own_folders(path), *search), {layer.identifier}, path)
    try:
        stage = pxr.Usd.Stage.Open(layer, context)
        errors = stage.GetCompositionErrors()
    except (RuntimeError, UnicodeDecodeError) as error:
        raise ModelError(describe(f"USD refuses it: {_line(error)}", where=path.name)) from None
    if errors:
        raise ModelError(describe(f"its parts do not fit together: {_line(errors[0])}", where=path.name))
    return stage


def _layer(pxr: Any, identifier: str, path: Path) -> Any:
    try:
        layer = pxr.Sdf.Layer.FindOrOpen(identifier)
    except (RuntimeError, UnicodeDecodeError) as error:
        raise ModelError(describe(f"USD refuses it: {_line(error)}", where=path.name)) from None
    if layer is None:
        raise ModelError(describe(f"{Path(identifier).name!r} is no file of USD", where=path.name))
    return layer


def _line(error: object) -> str:
    """Return an error of USD on one line, without the place in its source."""
    text = " ".join(str(error).split())
    return re.sub(r"^.*? in file \S+ : ", "", text)[:300]


def _check_files(pxr: Any, layer: Any, folders: tuple[str, ...], seen: set[str], path: Path) -> None:
    """Raise ModelError if a layer is composed with anything but files in these folders; ``seen`` ends cycles."""
    for asset in filter(None, layer.GetCompositionAssetDependencies()):  # an empty one is the layer itself
        found = layer.ComputeAbsolutePath(asset)
        found = str(pxr.Ar.GetResolver().Resolve(found)) or found
        file = Path(found.split("[")[0])  # of a file in an archive: robot.usdz[arm.usdc]
        fix = "give its folder: load(..., search=[...]), or make one file: pxr.Usd.Stage.Open(FILE).Export(NEW_FILE)"
        if "://" in asset or not is_inside(file, folders):
            allowed = "files in its own folder, in folders to search or of TORSOR_MESHES"
            raise ModelError(describe(f"it refers to {asset!r}", where=path.name, allowed=allowed, fix=fix))
        if not file.is_file():
            raise ModelError(describe(f"it refers to {asset!r}, which is missing", where=path.name, fix=fix))
        if found not in seen:
            seen.add(found)
            _check_files(pxr, _layer(pxr, found, path), folders, seen, path)


def read_surface(path: Path, prim: str, folders: tuple[str, ...] = ()) -> list[tuple[Triangles, Color | None]]:
    """Return the surface of a prim of the type Mesh by colour, in the units and the axes of the prim.

    The colours are those of its faces; a mesh of one colour has None here, as its visual knows it. ``folders`` are
    searched for files that the stage refers to.
    """
    where = f"mesh {path.name}#{prim}"
    if not path.is_file():
        raise ModelError(describe("no such file", where=where, fix="check the path in the description of the robot"))
    found = _stage(path, path.stat().st_mtime_ns, folders).GetPrimAtPath(prim)
    if not found or found.GetTypeName() != "Mesh":
        raise ModelError(describe(f"no mesh at {prim}", where=where, allowed="the path of a prim of the type Mesh"))
    surface, counts = triangles_of(found, where)
    shades = face_colors(import_usd(where), found, len(counts))
    if shades is None or not len(surface.faces):
        return [(surface, None)]
    return by_color(surface, np.repeat(shades, np.maximum(counts - 2, 0), axis=0))


@lru_cache(maxsize=4)
def _stage(path: Path, _changed: int, folders: tuple[str, ...]) -> Any:
    return open_stage(import_usd(path.name), path, folders)


def triangles_of(prim: Any, where: str) -> tuple[Triangles, NDArray[np.int64]]:
    """Return the surface of a prim of the type Mesh, and how many corners each of its faces has."""
    names = ("points", "faceVertexCounts", "faceVertexIndices")
    given = [prim.GetAttribute(name).Get() for name in names]
    points, counts, corners = (np.array([] if each is None else each) for each in given)
    points, counts, corners = points.reshape(-1, 3).astype(float), counts.astype(np.int64), corners.astype(np.int64)
    try:
        if not np.isfinite(points).all():
            raise ValueError("points that are not finite")
        faces = fans(corners, counts, len(points))
    except ValueError as error:
        raise ModelError(describe(str(error), where=where)) from None
    left_handed = prim.GetAttribute("orientation").Get() == "leftHanded"
    return Triangles(points, faces[:, ::-1] if left_handed else faces), counts


def face_colors(pxr: Any, prim: Any, count: int) -> Array | None:
    """Return the colours (count, 4) of the faces of a prim, None without own ones that are finite."""
    surface = pxr.UsdGeom.Gprim(prim)
    given = surface.GetDisplayColorPrimvar()
    if given.GetInterpolation() != "uniform":
        return None
    colors, opacities = given.ComputeFlattened(), surface.GetDisplayOpacityPrimvar().ComputeFlattened()
    if colors is None or len(colors) != count:
        return None
    opacity = np.array(opacities) if opacities is not None and len(opacities) == count else np.ones(count)
    found = np.column_stack([np.array(colors), opacity]).astype(float)
    return found if np.isfinite(found).all() else None
