"""Stages of USD: opened from files beside them alone, their units and axes, poses of prims, and exact numbers.

Most attributes of UsdPhysics are of single precision. A number of the schema is read as the shortest decimal that it
stands for, 1.3 and not 1.2999999523. Exact numbers are beside the schema, in the dictionary ``torsor`` of the
customData of a prim; they count as long as they agree with the schema, so that a stage may be edited elsewhere.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from torsor.arrays import Array
from torsor.errors import ModelError, describe, missing
from torsor.files import read_limited
from torsor.meshes.mesh_folders import is_inside, own_folders
from torsor.spatial import from_quaternion, make_pose

SUFFIXES = (".usda", ".usd", ".usdc", ".usdz")
LARGEST = 256_000_000  # bytes of a file: stages may have meshes inside
AGREE = 2e-6  # relative: a few roundings of single precision
STRAIGHT = 1e-4  # products of unit axes that count as perpendicular: rotations in files have few digits
_BINARY = (b"PXR-USDC", b"PK")  # how binary stages and archives begin
OWN = "torsor"  # the dictionary of customData


class Units(NamedTuple):
    """Metres and kilograms of the units of a stage; seconds are seconds."""

    length: float = 1.0
    mass: float = 1.0

    @property
    def torque(self) -> float:
        """N m of a unit of torque, and kg m^2 of a unit of inertia."""
        return self.mass * self.length**2

    @property
    def force(self) -> float:
        """N of a unit of force."""
        return self.mass * self.length


def import_usd(where: str) -> Any:
    """Return the package ``pxr`` with the modules in use; raise ImportError with the extra if it is missing."""
    try:
        import pxr
        from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics, UsdShade, Vt  # noqa: F401  # pxr.Usd and so on
    except ImportError:
        raise missing(
            "USD is read and written by the package usd-core, which is not installed", "usd", where=where
        ) from None
    return pxr


def open_stage(pxr: Any, path: Path) -> Any:
    """Return the stage of a file; references, payloads and sublayers may only be files of the folder of the robot."""
    content = read_limited(path, LARGEST)
    if not content.startswith(_BINARY):
        try:
            content.decode()
        except UnicodeDecodeError as error:
            raise ModelError(describe(f"it is no text of UTF-8 ({error})", where=path.name)) from None
    layer = _layer(pxr, str(path), path)
    layer.Reload(True)  # USD keeps layers: the file may have changed since
    _check_files(pxr, layer, own_folders(path), {layer.identifier}, path)
    try:
        stage = pxr.Usd.Stage.Open(layer)
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
        file = Path(found.split("[")[0])  # of a file in an archive: robot.usdz[arm.usdc]
        fix = "save the stage as one file: usdcat --flatten"
        if "://" in asset or not is_inside(file, folders):
            allowed = "files in its own folder, or in folders of TORSOR_MESHES"
            raise ModelError(describe(f"it refers to {asset!r}", where=path.name, allowed=allowed, fix=fix))
        if not file.is_file():
            raise ModelError(describe(f"it refers to {asset!r}, which is missing", where=path.name, fix=fix))
        if found not in seen:
            seen.add(found)
            _check_files(pxr, _layer(pxr, found, path), folders, seen, path)


class Place(NamedTuple):
    """Where a prim is in the stage: its rigid ``pose`` (4 x 4, in m), and its ``scale`` (3,) along its own axes."""

    pose: Array
    scale: Array


def place_of(M: Array, units: Units, where: str) -> Place:
    """Return the place of a transform (4 x 4, of columns); shear and mirrors, which no body has, raise ModelError."""
    scale = np.linalg.norm(M[:3, :3], axis=0)
    if not np.isfinite(M).all() or not scale.all():
        raise ModelError(describe("its transform is not finite, or has a scale of 0", where=where))
    axes = M[:3, :3] / scale
    if np.abs(axes.T @ axes - np.eye(3)).max() > STRAIGHT or np.linalg.det(axes) < 0:
        allowed = "rotations, translations and scales above 0"
        raise ModelError(describe("its transform shears or mirrors", where=where, allowed=allowed))
    scale = np.where(abs(scale - 1) < AGREE, 1.0, scale)
    return Place(make_pose(nearest_rotation(axes), M[:3, 3] * units.length), scale)


def nearest_rotation(R: Array) -> Array:
    """Return the rotation nearest to a matrix; a rotation to rounding stays as it is.

    Example:
        >>> nearest_rotation(1.0001 * np.eye(3)).tolist()
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    if np.abs(R.T @ R - np.eye(3)).max() < 1e-15:
        return R
    U, _, V = np.linalg.svd(R)
    return np.asarray(U @ V)


def decimal(value: Any) -> float:
    """Return a number of single precision as the shortest decimal that it stands for.

    Example:
        >>> decimal(np.float32(1.3))
        1.3
    """
    return float(str(np.float32(value)))


def number_of(attribute: Any, default: float = 0.0) -> float:
    """Return the number of an attribute of single precision, or the default if there is none."""
    value = attribute.Get() if attribute else None
    return default if value is None else decimal(value)


def vector_of(attribute: Any, default: float = 0.0) -> Array:
    """Return the three numbers of an attribute of single precision, three defaults if there is none."""
    value = attribute.Get() if attribute else None
    return np.full(3, default) if value is None else np.array([decimal(each) for each in value])


def rotation_of(attribute: Any) -> Array | None:
    """Return the rotation (3 x 3) of a quaternion of single precision, None for none and for the quaternion 0."""
    given = attribute.Get() if attribute else None
    if given is None:
        return None
    quaternion = np.array([*(decimal(each) for each in given.GetImaginary()), decimal(given.GetReal())])
    if not np.isfinite(quaternion).all() or not quaternion.any():
        return None
    return np.asarray(from_quaternion(quaternion))


# Exact numbers beside the schema


def own_data(prim: Any) -> Mapping[str, Any]:
    """Return what Torsor wrote beside the schema of a prim, by name."""
    found = prim.GetCustomDataByKey(OWN)
    return found if isinstance(found, Mapping) else {}


def agrees(data: Mapping[str, Any], key: str, plain: Any) -> bool:
    """Return whether there are exact numbers of a key, and they agree with those of the schema to its precision.

    Example:
        >>> agrees({"mass": 1.23456789}, "mass", 1.2345679), agrees({"mass": 1.23456789}, "mass", 2.0)
        (True, False)
    """
    if key not in data:
        return False
    given, found = np.array(data[key], dtype=float), np.array(plain, dtype=float)
    if given.shape != found.shape:
        return False
    finite = np.isfinite(found)
    size = np.abs(found[finite]).max(initial=0.0)
    close = np.abs(given[finite] - found[finite]).max(initial=0.0) <= AGREE * size
    return bool(close) and np.array_equal(given[~finite], found[~finite])


def exact(data: Mapping[str, Any], key: str, plain: Any) -> Any:
    """Return the exact numbers of a key if they agree with those of the schema, else those of the schema.

    Example:
        >>> exact({"mass": 1.23456789}, "mass", 1.2345679), exact({"mass": 1.23456789}, "mass", 2.0)
        (1.23456789, 2.0)
    """
    if not agrees(data, key, plain):
        return plain
    given = np.array(data[key], dtype=float)
    return float(given) if given.ndim == 0 else given
