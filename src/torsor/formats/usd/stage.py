"""Stages of USD: their units, poses of prims, and exact numbers.

Most attributes of UsdPhysics are of single precision. A number of the schema is read as the shortest decimal that it
stands for, 1.3 and not 1.2999999523. Exact numbers are beside the schema, in the dictionary ``torsor`` of the
customData of a prim; they count as long as they agree with the schema, so that a stage may be edited elsewhere.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, describe, shortened
from torsor.spatial import from_quaternion, make_pose

AGREE = 2e-6  # relative: a few roundings of single precision
STRAIGHT = 1e-4  # products of unit axes that count as perpendicular: rotations in files have few digits
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


class Place(NamedTuple):
    """Where a prim is in the stage: its rigid ``pose`` (4 x 4, in m), and its ``scale`` (3,) along its own axes.

    The scale of a mirrored surface is negative along z.
    """

    pose: Array
    scale: Array


def place_of(M: Array, units: Units, where: str, mirrors: bool = False) -> Place:
    """Return the place of a transform (4 x 4, of columns); shear, and mirrors unless allowed, raise ModelError."""
    scale = np.linalg.norm(M[:3, :3], axis=0)
    if not np.isfinite(M).all() or not scale.all():
        raise ModelError(describe("its transform is not finite, or has a scale of 0", where=where))
    scale[2] *= -1.0 if mirrors and np.linalg.det(M[:3, :3]) < 0 else 1.0
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


def wrong_type(attribute: Any, value: Any, allowed: str) -> ModelError:
    """Return the error of an attribute whose value is of another type than its schema says."""
    prim = attribute.GetPrim()
    where = f"{prim.GetStage().GetRootLayer().GetDisplayName()}: {prim.GetPath()}"
    return ModelError(describe(f"{attribute.GetName()} is {shortened(str(value))}", where=where, allowed=allowed))


def number_of(attribute: Any, default: float = 0.0) -> float:
    """Return the number of an attribute of single precision, or the default if there is none."""
    value = attribute.Get() if attribute else None
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
        raise wrong_type(attribute, value, "a number")
    return decimal(value)


def vector_of(attribute: Any, default: float = 0.0) -> Array:
    """Return the three numbers of an attribute of single precision, three defaults if there is none."""
    value = attribute.Get() if attribute else None
    if value is None:
        return np.full(3, default)
    try:
        x, y, z = (decimal(each) for each in value)
    except (TypeError, ValueError):
        raise wrong_type(attribute, value, "three numbers") from None
    return np.array([x, y, z])


def rotation_of(attribute: Any) -> Array | None:
    """Return the rotation (3 x 3) of a quaternion of single precision, None for none and for the quaternion 0."""
    given = attribute.Get() if attribute else None
    if given is None:
        return None
    if not hasattr(given, "GetImaginary"):
        raise wrong_type(attribute, given, "a quaternion")
    quaternion = np.array([*(decimal(each) for each in given.GetImaginary()), decimal(given.GetReal())])
    if not np.isfinite(quaternion).all():
        raise wrong_type(attribute, given, "finite numbers")
    return np.asarray(from_quaternion(quaternion)) if quaternion.any() else None


def flag_of(attribute: Any, default: bool) -> bool:
    """Return whether an attribute is true, or the default if there is none."""
    value = attribute.Get() if attribute else None
    if value is not None and not isinstance(value, bool):
        raise wrong_type(attribute, value, "true, false")
    return default if value is None else value


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
