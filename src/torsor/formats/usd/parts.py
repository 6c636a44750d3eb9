"""Prims of a USD stage that is written: names, places, exact numbers in customData, and surfaces."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, describe
from torsor.formats.meshes.mesh_files import Painted, read_painted
from torsor.formats.meshes.triangles import joined
from torsor.formats.usd.stage import OWN
from torsor.formats.writing import MeshNames, Omissions
from torsor.mechanism import Shape, Visual
from torsor.mechanism.names import claim_name
from torsor.spatial import to_quaternion

_KINDS = {"box": "Cube", "sphere": "Sphere", "ellipsoid": "Sphere", "cylinder": "Cylinder", "capsule": "Capsule"}
_KINDS |= {"plane": "Plane", "mesh": "Mesh"}
_SINGLE = ("float", "float3", "point3f", "vector3f", "color3f")
# Attributes that may be infinite: without a limit.
_LIMITS = ("lowerLimit", "upperLimit", "low", "high", "maxForce", "maxJointVelocity")
_GREY = (0.7, 0.7, 0.7, 1.0)  # of a part of a mesh without a colour, beside others that have one


class Parts:
    """A stage in memory, in metres and kilograms, and how prims are added to it."""

    def __init__(self, pxr: Any, path: Path, omissions: Omissions):
        self.pxr, self.path, self.omissions = pxr, path, omissions
        self.stage = pxr.Usd.Stage.CreateInMemory()
        pxr.UsdGeom.SetStageMetersPerUnit(self.stage, 1.0)
        pxr.UsdPhysics.SetStageKilogramsPerUnit(self.stage, 1.0)
        self.names = MeshNames(path, Omissions())  # surfaces in other stages are not only named here
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

    def check(self) -> None:
        """Raise ModelError for numbers that are infinite in single precision, where they are no limits."""
        for prim in self.stage.Traverse():
            for attribute in prim.GetAuthoredAttributes():
                single = str(attribute.GetTypeName()).removesuffix("[]") in _SINGLE
                bounded = single and attribute.GetBaseName() not in _LIMITS
                if bounded and not np.isfinite(np.array(attribute.Get())).all():
                    found = f"{attribute.GetName()} of {prim.GetPath()} is too large for single precision"
                    allowed = f"numbers up to {np.finfo(np.float32).max:.3g}"
                    raise ModelError(describe(found, where=self.path.name, allowed=allowed, fix="save as .toml"))

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
        """Add the surface of a mesh, scaled, and beside it the name of its file and the scale."""
        file = self.names.name(given)
        self.own(prim, mesh=file, scale=np.array(given.size))
        try:
            parts = read_painted(given.path, given.folders) if given.path else ()
        except (ModelError, ImportError) as error:
            self.omissions.note("surfaces of meshes that cannot be read, and are only named", f"{file}: {error}")
            return
        if not parts:
            self.omissions.note("surfaces of meshes whose files are not found, and are only named", file)
            return
        surface, mesh, vt = (
            joined([each.surface for each in parts]).scaled(given.size),
            self.pxr.UsdGeom.Mesh(prim),
            self.pxr.Vt,
        )
        points = surface.vertices.astype(np.float32)
        mesh.CreatePointsAttr(vt.Vec3fArray.FromNumpy(points))
        mesh.CreateFaceVertexCountsAttr(vt.IntArray.FromNumpy(np.full(len(surface.faces), 3, dtype=np.int32)))
        mesh.CreateFaceVertexIndicesAttr(vt.IntArray.FromNumpy(surface.faces.astype(np.int32).ravel()))
        mesh.CreateExtentAttr(vt.Vec3fArray.FromNumpy(np.stack([points.min(axis=0), points.max(axis=0)])))
        mesh.CreateSubdivisionSchemeAttr("none")
        if isinstance(given, Shape):
            self.pxr.UsdPhysics.MeshCollisionAPI.Apply(prim).CreateApproximationAttr("convexHull")
        elif given.color is None and any(each.color for each in parts):
            self._face_colors(mesh, parts)

    def _face_colors(self, mesh: Any, parts: Sequence[Painted]) -> None:
        """Add the colours that a mesh file has, face by face, so that none of them counts as that of the visual."""
        shades = [each.color or _GREY for each in parts]
        colors = np.repeat(np.array(shades, dtype=np.float32), [len(each.surface.faces) for each in parts], axis=0)
        vt = self.pxr.Vt
        for primvar, values in (
            (mesh.CreateDisplayColorPrimvar("uniform"), vt.Vec3fArray.FromNumpy(np.ascontiguousarray(colors[:, :3]))),
            (mesh.CreateDisplayOpacityPrimvar("uniform"), vt.FloatArray.FromNumpy(np.ascontiguousarray(colors[:, 3]))),
        ):
            primvar.Set(values)
