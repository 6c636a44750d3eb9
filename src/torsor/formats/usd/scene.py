"""What the readers of the parts of a USD stage share: the stage, its units, bodies by prim, and what is left out."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, describe, listing
from torsor.base.faults import refuse_or_warn
from torsor.formats.meshes.mesh_folders import own_folders
from torsor.formats.meshes.usd_files import import_usd, open_stage
from torsor.formats.search_path import Finder, given_folders
from torsor.formats.usd.stage import (
    Place,
    Units,
    exact,
    flag_of,
    number_of,
    own_data,
    place_of,
    vector_of,
)
from torsor.formats.writing import Omissions
from torsor.mechanism.names import claim_name

_LARGEST_UNIT = 1e20  # m or kg: that of light years is 1e16
EARTH = 9.81  # m/s^2, where a scene gives none


@dataclass(frozen=True)
class Scene:
    """A stage that is being read: the package ``pxr``, the stage, its units, the name of its file for messages.

    ``folders`` are those that its meshes may lie in.
    """

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
            found = f"metersPerUnit is {units.length:g}, kilogramsPerUnit {units.mass:g}"
            raise ModelError(describe(found, where=path.name, allowed=f"{1 / _LARGEST_UNIT:g} to {_LARGEST_UNIT:g}"))
        return cls(pxr, stage, units, path.name, strict, path, (*own_folders(path), *search))

    @cached_property
    def finder(self) -> Finder:
        """What finds the files of meshes that Torsor named."""
        return Finder(self.path)

    @cached_property
    def _cache(self) -> Any:
        return self.pxr.UsdGeom.XformCache()

    @cached_property
    def prims(self) -> list[Any]:
        """All active prims, those in instances too, parents first."""
        return list(self.pxr.Usd.PrimRange.Stage(self.stage, self.pxr.Usd.TraverseInstanceProxies()))

    def where(self, prim: Any) -> str:
        """Return file and path of a prim, for messages."""
        return f"{self.source}: {prim.GetPath()}"

    def name(self, prim: Any, kind: str) -> str:
        """Return the name of a prim: that of Torsor, the displayed one, or its own, made unique among its ``kind``.

        Converters display the names that USD does not allow, such as ``joint_0.0``.
        """
        path = str(prim.GetPath())
        if path not in self._names:
            wanted = str(own_data(prim).get("name", "")) or prim.GetDisplayName() or prim.GetName()
            self._names[path] = self.unused(wanted, kind)
        return self._names[path]

    def unused(self, wanted: str, kind: str) -> str:
        """Return a name that no part of a ``kind`` has, and claim it."""
        return claim_name(wanted, self._taken.setdefault(kind, set()))

    def place(self, prim: Any) -> Place:
        """Return the pose of a prim in the stage, and its scale."""
        M = np.array(self._cache.GetLocalToWorldTransform(prim)).T
        return place_of(M, self.units, self.where(prim))

    def place_in(self, prim: Any, body: Any) -> Place:
        """Return the pose of a prim in the axes of the body that it is below, and its scale, which may mirror it."""
        M = np.array(self._cache.ComputeRelativeTransform(prim, body)[0]).T
        M[:3] *= self.place(body).scale[:, None]
        return place_of(M, self.units, self.where(prim), mirrors=True)

    def is_body(self, prim: Any) -> bool:
        """Whether a prim is a body that moves: neither disabled nor kinematic."""
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
        found: dict[str, list[Any]] = {}
        for prim in self.prims:
            if prim.IsA(self.pxr.UsdGeom.Gprim):
                body = self.body_of(prim)
                if body is not None:
                    found.setdefault(str(body.GetPath()), []).append(prim)
        return found

    def gravity(self) -> Array:
        """Return the gravity (3,) of the physics scene in the axes of the stage, in m/s^2."""
        axis = str(self.pxr.UsdGeom.GetStageUpAxis(self.stage))
        if axis not in ("Y", "Z"):
            raise ModelError(describe(f"upAxis is {axis[:20]!r}", where=self.source, allowed="Y, Z"))
        up = np.array([0.0, 0.0, 1.0] if axis == "Z" else [0.0, 1.0, 0.0])
        scenes = [prim for prim in self.prims if prim.IsA(self.pxr.UsdPhysics.Scene)]
        if not scenes:
            return -EARTH * up
        scene, *others = scenes
        for other in others:
            self.left_out.note("physics scenes beside the first", str(other.GetPath()))
        physics = self.pxr.UsdPhysics.Scene(scene)
        along, size = (
            vector_of(physics.GetGravityDirectionAttr()),
            number_of(physics.GetGravityMagnitudeAttr(), -np.inf),
        )
        if not np.isfinite(along).all() or np.isnan(size) or size == np.inf:
            raise ModelError(describe(f"gravity is {size:g} along {along}", where=self.where(scene)))
        if not flag_of(scene.GetAttribute("newton:gravityEnabled"), True):
            return np.zeros(3)
        length = float(np.linalg.norm(along))
        direction = along / length if length else -up
        plain = direction * (EARTH if size < 0 else size * self.units.length)
        return np.asarray(exact(own_data(scene), "gravity", plain))

    def report(self, base: str | None) -> None:
        """Warn, or raise ModelError if reading is strict, of what is left out, and of bodies that move without mass."""
        light = [path for path in self.without_mass if path != base]
        if light:
            found = f"no mass, or no inertia, and no collision shape that gives one: {listing(light, most=4)}"
            fix = "add mass and diagonalInertia (PhysicsMassAPI)"
            refuse_or_warn(describe(found, where=self.source, fix=fix), self.strict)
        wet = [path for path in self.of_water if path != base]
        if wet:
            found = f"no mass is given of {listing(wet, most=4)}: that of its collision shapes filled with water"
            fix = "if it is not meant so, add mass (PhysicsMassAPI)"
            refuse_or_warn(describe(f"{found} is taken, as UsdPhysics says", where=self.source, fix=fix), self.strict)
        lines = [f"{what} ({listing(names, most=4)})" for what, names in self.left_out.found.items()]
        if lines:
            omitted = "mechanisms do not have" if self.strict else "omitted, because mechanisms do not have it:"
            refuse_or_warn(f"{self.source}: {omitted} {'; '.join(lines)}", self.strict)
