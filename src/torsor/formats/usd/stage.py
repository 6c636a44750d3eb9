"""USD stages: units, poses of prims, and exact numbers.

Most attributes of UsdPhysics have single precision. A number of the schema is read as the shortest decimal that
rounds to it: 1.3, not 1.2999999523. Exact numbers are stored outside the schema, in the dictionary ``torsor`` of the
customData of a prim. They are used if they agree with the schema, so a stage may be edited by other programs.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, listing, shortened
from torsor.base.faults import refuse_or_warn
from torsor.formats.meshes.mesh_files import import_usd, open_stage, own_folders
from torsor.formats.search_path import Finder, given_folders
from torsor.formats.writing import Omissions, left_out_error
from torsor.mechanism.names import claim_name
from torsor.spatial import from_quaternion, make_pose

AGREEMENT_TOLERANCE = 2e-6  # relative: a few single-precision rounding errors
ORTHOGONALITY_TOLERANCE = 1e-4  # largest product of perpendicular unit axes: rotations in files have few digits
OWN = "torsor"  # the dictionary of customData


class Units(NamedTuple):
    """Metres and kilograms per stage unit. Time is in seconds."""

    length: float = 1.0
    mass: float = 1.0

    @property
    def torque(self) -> float:
        """N m per unit of torque, and kg m^2 per unit of inertia."""
        return self.mass * self.length**2

    @property
    def force(self) -> float:
        """N per unit of force."""
        return self.mass * self.length


class Place(NamedTuple):
    """The place of a prim: rigid ``pose`` (4 x 4, m) and ``scale`` (3,) along its axes, with z < 0 if mirrored."""

    pose: Array
    scale: Array


def place_of(M: Array, units: Units, where: str, mirrors: bool = False) -> Place:
    """Return the place of a transform (4 x 4, columns). Raise ModelError for shear, and for mirrors unless allowed."""
    scale = np.linalg.norm(M[:3, :3], axis=0)
    if not np.isfinite(M).all() or not scale.all():
        raise ModelError("its transform is not finite, or has a scale of 0", where=where)
    scale[2] *= -1.0 if mirrors and np.linalg.det(M[:3, :3]) < 0 else 1.0
    axes = M[:3, :3] / scale
    if np.abs(axes.T @ axes - np.eye(3)).max() > ORTHOGONALITY_TOLERANCE or np.linalg.det(axes) < 0:
        allowed = "rotations, translations and scales above 0"
        raise ModelError("its transform shears or mirrors", where=where, allowed=allowed)
    scale = np.where(abs(scale - 1) < AGREEMENT_TOLERANCE, 1.0, scale)
    if np.abs(axes.T @ axes - np.eye(3)).max() >= 1e-15:  # a rotation up to rounding is kept
        U, _, V = np.linalg.svd(axes)
        axes = np.asarray(U @ V)  # the nearest rotation
    return Place(make_pose(axes, M[:3, 3] * units.length), scale)


def decimal(value: Any) -> float:
    """Return a single-precision number as the shortest decimal that rounds to it."""
    return float(str(np.float32(value)))


def wrong_type(attribute: Any, value: Any, allowed: str) -> ModelError:
    """Return the error for an attribute whose value does not have the type of its schema."""
    prim = attribute.GetPrim()
    where = f"{prim.GetStage().GetRootLayer().GetDisplayName()}: {prim.GetPath()}"
    return ModelError(f"{attribute.GetName()} is {shortened(str(value))}", where=where, allowed=allowed)


def number_of(attribute: Any, default: float = 0.0) -> float:
    """Return the number of a single-precision attribute, or the default if there is none."""
    value = attribute.Get() if attribute else None
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
        raise wrong_type(attribute, value, "a number")
    return decimal(value)


def vector_of(attribute: Any, default: float = 0.0) -> Array:
    """Return the three numbers of a single-precision attribute, or three defaults if there is none."""
    value = attribute.Get() if attribute else None
    if value is None:
        return np.full(3, default)
    try:
        x, y, z = (decimal(entry) for entry in value)
    except (TypeError, ValueError):
        raise wrong_type(attribute, value, "three numbers") from None
    return np.array([x, y, z])


def rotation_of(attribute: Any) -> Array | None:
    """Return the rotation (3 x 3) of a single-precision quaternion, or None if it is missing or zero."""
    value = attribute.Get() if attribute else None
    if value is None:
        return None
    if not hasattr(value, "GetImaginary"):
        raise wrong_type(attribute, value, "a quaternion")
    quaternion = np.array([*(decimal(item) for item in value.GetImaginary()), decimal(value.GetReal())])
    if not np.isfinite(quaternion).all():
        raise wrong_type(attribute, value, "finite numbers")
    return np.asarray(from_quaternion(quaternion)) if quaternion.any() else None


def flag_of(attribute: Any, default: bool) -> bool:
    """Return whether an attribute is true, or the default if there is none."""
    value = attribute.Get() if attribute else None
    if value is not None and not isinstance(value, bool):
        raise wrong_type(attribute, value, "true, false")
    return default if value is None else value


# Exact numbers outside the schema


def own_data(prim: Any) -> Mapping[str, Any]:
    """Return the data that Torsor wrote outside the schema of a prim, by name."""
    result = prim.GetCustomDataByKey(OWN)
    return result if isinstance(result, Mapping) else {}


def agrees(data: Mapping[str, Any], key: str, plain: Any) -> bool:
    """Return whether there are exact numbers for a key that agree with the schema to its precision."""
    if key not in data:
        return False
    exact_numbers, result = np.array(data[key], dtype=float), np.array(plain, dtype=float)
    if exact_numbers.shape != result.shape:
        return False
    finite = np.isfinite(result)
    size = np.abs(result[finite]).max(initial=0.0)
    close = np.abs(exact_numbers[finite] - result[finite]).max(initial=0.0) <= AGREEMENT_TOLERANCE * size
    return bool(close) and np.array_equal(exact_numbers[~finite], result[~finite])


def exact(data: Mapping[str, Any], key: str, plain: Any) -> Any:
    """Return the exact numbers of a key if they agree with the schema, and otherwise the numbers of the schema."""
    if not agrees(data, key, plain):
        return plain
    exact_numbers = np.array(data[key], dtype=float)
    return float(exact_numbers) if exact_numbers.ndim == 0 else exact_numbers


_LARGEST_UNIT = 1e20  # m or kg: a light year is 1e16
EARTH = 9.81  # m/s^2, if a scene gives none


@dataclass(frozen=True)
class Scene:
    """A stage to read: its units, its file name for messages, and the ``folders`` of its meshes."""

    pxr: Any
    stage: Any
    units: Units
    source: str
    strict: bool
    path: Path
    folders: tuple[str, ...]
    left_out: Omissions = field(default_factory=Omissions)
    without_mass: list[str] = field(default_factory=list)
    of_water: list[str] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict)
    _taken: dict[str, set[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, path: Path, strict: bool) -> "Scene":
        """Return the scene of a file."""
        pxr = import_usd(path.name)
        search = tuple(map(str, given_folders()))
        stage = open_stage(pxr, path, search)
        units = Units(pxr.UsdGeom.GetStageMetersPerUnit(stage), pxr.UsdPhysics.GetStageKilogramsPerUnit(stage))
        if not all(1 / _LARGEST_UNIT <= unit <= _LARGEST_UNIT for unit in units):
            message = f"metersPerUnit is {units.length:g}, kilogramsPerUnit {units.mass:g}"
            raise ModelError(message, where=path.name, allowed=f"{1 / _LARGEST_UNIT:g} to {_LARGEST_UNIT:g}")
        return cls(pxr, stage, units, path.name, strict, path, (*own_folders(path), *search))

    @cached_property
    def finder(self) -> Finder:
        """The finder of mesh files whose names Torsor wrote."""
        return Finder(self.path)

    @cached_property
    def _cache(self) -> Any:
        return self.pxr.UsdGeom.XformCache()

    @cached_property
    def prims(self) -> list[Any]:
        """All active prims, including those in instances, parents first."""
        return list(self.pxr.Usd.PrimRange.Stage(self.stage, self.pxr.Usd.TraverseInstanceProxies()))

    def where(self, prim: Any) -> str:
        """Return the file and the path of a prim, for messages."""
        return f"{self.source}: {prim.GetPath()}"

    def name(self, prim: Any, kind: str) -> str:
        """Return the name of a prim (Torsor's name, the display name or its own name), made unique among its ``kind``.

        Converters use display names for names that USD does not allow, such as ``joint_0.0``.
        """
        path = str(prim.GetPath())
        if path not in self._names:
            prim_name = str(own_data(prim).get("name", "")) or prim.GetDisplayName() or prim.GetName()
            self._names[path] = self.unused(prim_name, kind)
        return self._names[path]

    def unused(self, prim_name: str, kind: str) -> str:
        """Return a name that no part of a ``kind`` has, and claim it."""
        return claim_name(prim_name, self._taken.setdefault(kind, set()))

    def place(self, prim: Any) -> Place:
        """Return the pose of a prim in the stage, and its scale."""
        return place_of(np.array(self._cache.GetLocalToWorldTransform(prim)).T, self.units, self.where(prim))

    def place_in(self, prim: Any, body: Any) -> Place:
        """Return the pose of a prim in the axes of the body above it, and its scale, which may mirror it."""
        M = np.array(self._cache.ComputeRelativeTransform(prim, body)[0]).T
        M[:3] *= self.place(body).scale[:, None]
        return place_of(M, self.units, self.where(prim), mirrors=True)

    def is_body(self, prim: Any) -> bool:
        """Return whether a prim is a moving body: neither disabled nor kinematic."""
        physics = self.pxr.UsdPhysics
        if not prim.HasAPI(physics.RigidBodyAPI):
            return False
        body = physics.RigidBodyAPI(prim)
        return flag_of(body.GetRigidBodyEnabledAttr(), True) and not flag_of(body.GetKinematicEnabledAttr(), False)

    def body_of(self, prim: Any) -> Any:
        """Return the nearest prim at or above a prim that is a body, or None if it is part of the world."""
        while prim and not prim.IsPseudoRoot():
            if self.is_body(prim):
                return prim
            prim = prim.GetParent()
        return None

    @cached_property
    def parts(self) -> dict[str, list[Any]]:
        """The prims with a surface of each body, by the path of the body."""
        result: dict[str, list[Any]] = {}
        for prim in self.prims:
            if prim.IsA(self.pxr.UsdGeom.Gprim):
                body = self.body_of(prim)
                if body is not None:
                    result.setdefault(str(body.GetPath()), []).append(prim)
        return result

    def gravity(self) -> Array:
        """Return the gravity (3,) of the physics scene in the axes of the stage, in m/s^2."""
        axis = str(self.pxr.UsdGeom.GetStageUpAxis(self.stage))
        if axis not in ("Y", "Z"):
            raise ModelError(f"upAxis is {axis[:20]!r}", where=self.source, allowed="Y, Z")
        up = np.array([0.0, 0.0, 1.0] if axis == "Z" else [0.0, 1.0, 0.0])
        scenes = [prim for prim in self.prims if prim.IsA(self.pxr.UsdPhysics.Scene)]
        if not scenes:
            return -EARTH * up
        scene, *others = scenes
        for other in others:
            self.left_out.note("physics scenes other than the first", str(other.GetPath()))
        physics = self.pxr.UsdPhysics.Scene(scene)
        along = vector_of(physics.GetGravityDirectionAttr())
        size = number_of(physics.GetGravityMagnitudeAttr(), -np.inf)
        if not np.isfinite(along).all() or np.isnan(size) or size == np.inf:
            raise ModelError(f"gravity is {size:g} along {along}", where=self.where(scene))
        if not flag_of(scene.GetAttribute("newton:gravityEnabled"), True):
            return np.zeros(3)
        length = float(np.linalg.norm(along))
        direction = along / length if length else -up
        plain = direction * (EARTH if size < 0 else size * self.units.length)
        return np.asarray(exact(own_data(scene), "gravity", plain))

    def report(self, base: str | None) -> None:
        """Warn about omissions and moving bodies without mass, or raise ModelError if reading is strict."""
        light, wet = ([path for path in paths if path != base] for paths in (self.without_mass, self.of_water))
        if light:
            message = f"there is neither a mass nor a collision shape to compute it from for {listing(light, most=4)}"
            fix = "add mass and diagonalInertia (PhysicsMassAPI)"
            refuse_or_warn(ModelError(message, where=self.source, fix=fix), self.strict)
        if wet:
            taken = "the mass of the collision shapes filled with water is used, as UsdPhysics specifies"
            message = f"no mass is given for {listing(wet, most=4)}: {taken}"
            fix = "if this is not intended, add mass (PhysicsMassAPI)"
            refuse_or_warn(ModelError(message, where=self.source, fix=fix), self.strict)
        if self.left_out.found:
            refuse_or_warn(left_out_error(self.left_out.found, self.source, self.strict), self.strict)
