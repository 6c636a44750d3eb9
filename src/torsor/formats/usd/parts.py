"""Prims of a USD stage that is written: names, places, exact numbers in customData, and surfaces."""

import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from torsor.arrays import Array
from torsor.formats.usd.stage import OWN
from torsor.formats.writing import Omissions, relative_file
from torsor.mechanism import Shape, Visual
from torsor.mechanism.names import claim_name
from torsor.spatial import to_quaternion

_KINDS = {"box": "Cube", "sphere": "Sphere", "ellipsoid": "Sphere", "cylinder": "Cylinder", "capsule": "Capsule"}
_KINDS |= {"plane": "Plane", "mesh": "Mesh"}


class Parts:
    """A stage in memory, in metres and kilograms, and how prims are added to it."""

    def __init__(self, pxr: Any, path: Path, omissions: Omissions):
        self.pxr, self.path, self.omissions = pxr, path, omissions
        self.stage = pxr.Usd.Stage.CreateInMemory()
        pxr.UsdGeom.SetStageMetersPerUnit(self.stage, 1.0)
        pxr.UsdPhysics.SetStageKilogramsPerUnit(self.stage, 1.0)
        self.taken: dict[str, set[str]] = defaultdict(set)

    def define(self, parent: str, name: str, kind: str) -> Any:
        """Add a prim of a kind; a name that USD does not allow is changed, and kept beside."""
        plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
        plain = claim_name(plain if re.match(r"[A-Za-z_]", plain) else f"_{plain}", self.taken[parent])
        prim = self.stage.DefinePrim(f"{parent}/{plain}", kind)
        if plain != name:
            self.own(prim, name=name)
        return prim

    def own(self, prim: Any, **values: Any) -> None:
        """Set exact numbers, texts and dictionaries of them beside the schema of a prim."""
        for key, value in values.items():
            if isinstance(value, Mapping):
                self.own(prim, **{f"{key}:{inner}": each for inner, each in value.items()})
            else:
                prim.SetCustomDataByKey(f"{OWN}:{key}", self._typed(value))

    def _typed(self, value: Any) -> Any:
        gf, shape = self.pxr.Gf, np.shape(value)
        if isinstance(value, list):
            return self.pxr.Vt.StringArray(value)
        if isinstance(value, bool | str | int):
            return value
        kinds = {(): float, (3,): gf.Vec3d, (3, 3): gf.Matrix3d, (4, 4): gf.Matrix4d}
        return kinds.get(shape, self.pxr.Vt.DoubleArray)(np.asarray(value, dtype=float).tolist())

    def quaternion(self, R: Array, kind: Any) -> Any:
        """Return a rotation as a quaternion of USD, real part first."""
        x, y, z, w = to_quaternion(R).tolist()
        return kind(w, x, y, z)

    def place(self, prim: Any, pose: Array, scale: Array | None = None) -> None:
        """Set the pose of a prim in the axes of its parent, in double precision."""
        gf, ops = self.pxr.Gf, self.pxr.UsdGeom.Xformable(prim)
        double = self.pxr.UsdGeom.XformOp.PrecisionDouble
        ops.AddTranslateOp().Set(gf.Vec3d(*pose[:3, 3].tolist()))
        ops.AddOrientOp(double).Set(self.quaternion(pose[:3, :3], gf.Quatd))
        if scale is not None:
            ops.AddScaleOp(double).Set(gf.Vec3d(*scale.tolist()))

    def surface(self, body: Any, given: Visual | Shape) -> None:
        """Add a visual or a collision shape of a body; what collides is not drawn."""
        collides, path = isinstance(given, Shape), str(body.GetPath())
        folder = "collisions" if collides else "visuals"
        if not self.stage.GetPrimAtPath(f"{path}/{folder}"):
            self.define(path, folder, "Scope")
        prim = self.define(f"{path}/{folder}", given.name or given.shape, _KINDS[given.shape])
        shape, size = getattr(self.pxr.UsdGeom, _KINDS[given.shape])(prim), np.array(given.size)
        scaled = given.shape in ("box", "ellipsoid")
        self.place(prim, given.pose, size if scaled else None)
        self.own(prim, name=given.name)
        if given.shape == "box":
            shape.CreateSizeAttr(1.0)
        elif given.shape in ("sphere", "ellipsoid"):
            shape.CreateRadiusAttr(1.0 if scaled else given.size[0])
        elif given.shape in ("cylinder", "capsule"):
            shape.CreateAxisAttr("Z")
            shape.CreateRadiusAttr(given.size[0])
            shape.CreateHeightAttr(given.size[1])
        elif given.shape == "plane":
            shape.CreateAxisAttr("Z")
        else:
            self._mesh(prim, given)
        if isinstance(given, Shape):
            self.pxr.UsdPhysics.CollisionAPI.Apply(prim)
            shape.CreatePurposeAttr("guide")
            self.own(prim, link=given.link, contype=given.contype, conaffinity=given.conaffinity)
        elif given.color is not None:
            shape.CreateDisplayColorAttr([self.pxr.Gf.Vec3f(*given.color[:3])])
            shape.CreateDisplayOpacityAttr([given.color[3] if len(given.color) > 3 else 1.0])

    def _mesh(self, prim: Any, given: Visual | Shape) -> None:
        file = given.mesh or ""
        if given.path and "://" not in file:
            file = relative_file(self.path, given.path)
        self.own(prim, mesh=file, scale=np.array(given.size))
        self.omissions.note("surfaces of meshes, whose files are only named", file)
