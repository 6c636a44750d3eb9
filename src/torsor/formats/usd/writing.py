"""Writing UsdPhysics, for ``read_usd`` and for simulators: an articulation with bodies, joints, shapes and a scene.

The attributes of the schema have single precision. Exact numbers are stored outside the schema (``stage``). Friction,
rotor inertia, velocity limits and followers are PhysX attributes, because UsdPhysics has none for them.
"""

import json
import re
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError
from torsor.formats.joint_decomposition import decomposed_joints, without_couplings
from torsor.formats.meshes.mesh_files import import_usd, read_painted
from torsor.formats.meshes.triangles import joined
from torsor.formats.usd.joints import AXES, DEGREE
from torsor.formats.usd.stage import OWN
from torsor.formats.writing import FRICTION_MODELS, MeshNames, Omissions, refuse_elastic, refused_loop, write_file
from torsor.mechanism import Coupling, Joint, Link, Loop, Mechanism, Shape, Visual, ends_of
from torsor.mechanism.build import fixed_at
from torsor.mechanism.names import claim_name
from torsor.mechanism.parts import PER_VELOCITY
from torsor.spatial import axis_frame, make_pose, to_quaternion

_KINDS = {"box": "Cube", "sphere": "Sphere", "ellipsoid": "Sphere", "cylinder": "Cylinder", "capsule": "Capsule"}
_KINDS |= {"plane": "Plane", "mesh": "Mesh"}
_SINGLE = ("float", "float3", "point3f", "vector3f", "color3f")
# Attributes that may be infinite, which means no limit.
_LIMITS = ("lowerLimit", "upperLimit", "low", "high", "maxForce", "maxJointVelocity")
_GREY = (0.7, 0.7, 0.7, 1.0)  # of a mesh part without a colour, next to others that have one


class Parts:
    """A stage in memory, in metres and kilograms, and methods that add prims to it."""

    def __init__(self, pxr: Any, path: Path, omissions: Omissions):
        self.pxr, self.path, self.omissions = pxr, path, omissions
        self.stage = pxr.Usd.Stage.CreateInMemory()
        pxr.UsdGeom.SetStageMetersPerUnit(self.stage, 1.0)
        pxr.UsdPhysics.SetStageKilogramsPerUnit(self.stage, 1.0)
        self.names = MeshNames(path, Omissions())  # surfaces in other stages are written here, not only named
        self.taken: dict[str, set[str]] = defaultdict(set)

    def define(self, parent: str, name: str, kind: str) -> Any:
        """Add a prim of a kind. A name that USD does not allow is changed, and the original is stored separately."""
        plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
        plain = claim_name(plain if re.match(r"[A-Za-z_]", plain) else f"_{plain}", self.taken[parent])
        prim = self.stage.DefinePrim(f"{parent}/{plain}", kind)
        if plain != name:
            self.own(prim, name=name)
        return prim

    def own(self, prim: Any, **values: Any) -> None:
        """Store exact numbers, texts, and dictionaries of these, outside the schema of a prim."""
        for key, value in values.items():
            if isinstance(value, Mapping):
                self.own(prim, **{f"{key}:{inner}": entry for inner, entry in value.items()})
            else:
                if isinstance(value, list):
                    value = self.pxr.Vt.StringArray(value)
                elif not isinstance(value, bool | str | int):
                    gf, numbers = self.pxr.Gf, np.asarray(value, dtype=float)
                    kinds = {(): float, (3,): gf.Vec3d, (3, 3): gf.Matrix3d, (4, 4): gf.Matrix4d}
                    value = kinds.get(numbers.shape, self.pxr.Vt.DoubleArray)(numbers.tolist())
                prim.SetCustomDataByKey(f"{OWN}:{key}", value)

    def check(self) -> None:
        """Raise ModelError for numbers other than limits that are infinite in single precision."""
        for prim in self.stage.Traverse():
            for attribute in prim.GetAuthoredAttributes():
                single = str(attribute.GetTypeName()).removesuffix("[]") in _SINGLE
                bounded = single and attribute.GetBaseName() not in _LIMITS
                if bounded and not np.isfinite(np.array(attribute.Get())).all():
                    message = f"{attribute.GetName()} of {prim.GetPath()} is too large for single precision"
                    allowed = f"numbers up to {np.finfo(np.float32).max:.3g}"
                    raise ModelError(message, where=self.path.name, allowed=allowed, fix="save as .toml")

    def quaternion(self, R: Array, kind: Any) -> Any:
        """Return a rotation as a USD quaternion (real part first)."""
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

    def surface(self, body: Any, part: Visual | Shape) -> None:
        """Add a visual or a collision shape of a body. Collision shapes are not drawn."""
        collides, path = isinstance(part, Shape), str(body.GetPath())
        folder = "collisions" if collides else "visuals"
        if not self.stage.GetPrimAtPath(f"{path}/{folder}"):
            self.define(path, folder, "Scope")
        prim = self.define(f"{path}/{folder}", part.name or part.shape, _KINDS[part.shape])
        shape, size = getattr(self.pxr.UsdGeom, _KINDS[part.shape])(prim), np.array(part.size)
        scaled = part.shape in ("box", "ellipsoid")
        self.place(prim, part.pose, size if scaled else None)
        self.own(prim, name=part.name)
        if part.shape == "box":
            shape.CreateSizeAttr(1.0)
        elif part.shape in ("sphere", "ellipsoid"):
            shape.CreateRadiusAttr(1.0 if scaled else part.size[0])
        elif part.shape in ("cylinder", "capsule"):
            shape.CreateAxisAttr("Z")
            shape.CreateRadiusAttr(part.size[0])
            shape.CreateHeightAttr(part.size[1])
        elif part.shape == "plane":
            shape.CreateAxisAttr("Z")
        else:
            self._mesh(prim, part)
        if isinstance(part, Shape):
            self.pxr.UsdPhysics.CollisionAPI.Apply(prim)
            shape.CreatePurposeAttr("guide")
            masks = {"contype": part.contype, "conaffinity": part.conaffinity}
            self.own(prim, link=part.link, **masks, friction=part.friction, priority=part.priority)
        elif part.color is not None:
            shape.CreateDisplayColorAttr([self.pxr.Gf.Vec3f(*part.color[:3])])
            shape.CreateDisplayOpacityAttr([part.color[3] if len(part.color) > 3 else 1.0])

    def _mesh(self, prim: Any, shape: Visual | Shape) -> None:
        """Add the scaled surface of a mesh, with its file name and scale."""
        file = self.names.name(shape)
        self.own(prim, mesh=file, scale=np.array(shape.size))
        try:
            parts = read_painted(shape.path, shape.folders) if shape.path else ()
        except (ModelError, ImportError) as error:
            self.omissions.note("surfaces of meshes that cannot be read, and are only named", f"{file}: {error}")
            return
        if not parts:
            self.omissions.note("surfaces of meshes whose files are not found, and are only named", file)
            return
        surface = joined([part.surface for part in parts]).scaled(shape.size)
        mesh, vt = self.pxr.UsdGeom.Mesh(prim), self.pxr.Vt
        points = surface.vertices.astype(np.float32)
        mesh.CreatePointsAttr(vt.Vec3fArray.FromNumpy(points))
        mesh.CreateFaceVertexCountsAttr(vt.IntArray.FromNumpy(np.full(len(surface.faces), 3, dtype=np.int32)))
        mesh.CreateFaceVertexIndicesAttr(vt.IntArray.FromNumpy(surface.faces.astype(np.int32).ravel()))
        mesh.CreateExtentAttr(vt.Vec3fArray.FromNumpy(np.stack([points.min(axis=0), points.max(axis=0)])))
        mesh.CreateSubdivisionSchemeAttr("none")
        if isinstance(shape, Shape):
            self.pxr.UsdPhysics.MeshCollisionAPI.Apply(prim).CreateApproximationAttr("convexHull")
        elif shape.color is None and any(part.color for part in parts):
            # The colours of the file are written per face, so that none of them is read as the colour of the visual.
            shades = np.array([part.color or _GREY for part in parts], dtype=np.float32)
            colors = np.repeat(shades, [len(part.surface.faces) for part in parts], axis=0)
            rgb, opacity = np.ascontiguousarray(colors[:, :3]), np.ascontiguousarray(colors[:, 3])
            mesh.CreateDisplayColorPrimvar("uniform").Set(vt.Vec3fArray.FromNumpy(rgb))
            mesh.CreateDisplayOpacityPrimvar("uniform").Set(vt.FloatArray.FromNumpy(opacity))


SUFFIXES = (".usda", ".usd", ".usdc")
_TYPES = ("revolute", "continuous", "prismatic", "spherical", "free")
_PHYSX = {"armature": "armature", "coulomb": "jointFriction", "velocity_limit": "maxJointVelocity"}
# For cut joints: the prim type, and for a general joint the free axes.
_CUTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "weld": ("FixedJoint", ()),
    "revolute": ("RevoluteJoint", ()),
    "prismatic": ("PrismaticJoint", ()),
    "spherical": ("SphericalJoint", ()),
    "cylindrical": ("Joint", ("transZ", "rotZ")),
    "planar": ("Joint", ("transX", "transY", "rotZ")),
    "rod": ("DistanceJoint", ()),
}


def write_usd(mechanism: Mechanism, path: str | Path) -> None:
    """Write a mechanism as a USD stage in text (.usda) or binary (.usd, .usdc). The extra ``usd`` is required.

    The file is replaced atomically: if writing fails, the old file is kept. The stage is in metres and kilograms, with
    the bodies at the poses of the links at position zero. Planar and helical joints become chains of joints with
    massless bodies between them. Springs and viscous friction become drives. Coulomb friction, rotor inertia, velocity
    limits and followers become PhysX attributes. Loops are joints outside the articulation. A ``ModelWarning`` names
    properties that are not written, or that only Torsor reads. Elastic joints, flexible links and universal loops raise
    ``ModelError``.
    """
    write_file(path, SUFFIXES, _Writer(mechanism, Path(path)).content)


class _Writer:
    """Writer of one stage."""

    def __init__(self, mechanism: Mechanism, path: Path):
        self.path, self.source, self.omissions = path, path.name, Omissions()
        self.pxr = import_usd(path.name)
        whole = self.omissions.without_toml_only(mechanism)
        couplings = tuple(loop for loop in whole.loops if isinstance(loop, Coupling))
        self.loops = [loop for loop in whole.loops if isinstance(loop, Loop)]
        self.mechanism = without_couplings(replace(whole, loops=couplings, active=()), self.source, "USD")
        followers = {joint.name for joint in self.mechanism.joints if joint.follows}
        self.active = [name for name in mechanism.active if name not in followers]
        self.parts = Parts(self.pxr, path, self.omissions)

    def content(self) -> bytes:
        pxr, m, parts = self.pxr, self.mechanism, self.parts
        refuse_elastic(m, self.source, "USD", "save as .toml")
        pxr.UsdGeom.SetStageUpAxis(parts.stage, "Y" if abs(m.gravity[1]) > abs(m.gravity[2]) else "Z")
        root = parts.define("", m.name, "Xform")
        parts.stage.SetDefaultPrim(root)
        pxr.UsdPhysics.ArticulationRootAPI.Apply(root)
        self.root = str(root.GetPath())
        parts.own(root, base=m.base.name)
        if m.posture_table:
            parts.own(root, postures=json.dumps({name: dict(posture) for name, posture in m.posture_table.items()}))
        if m.allowed_collisions:
            parts.own(root, allowed=json.dumps(m.allowed_collisions))
        if self.loops:
            parts.own(root, active=self.active)
        scene, size = parts.define("", "physicsScene", "PhysicsScene"), float(np.linalg.norm(m.gravity))
        physics, down = pxr.UsdPhysics.Scene(scene), m.gravity / (size or 1.0)
        physics.CreateGravityDirectionAttr(pxr.Gf.Vec3f(*down.tolist()))
        physics.CreateGravityMagnitudeAttr(size)
        parts.own(scene, gravity=m.gravity)
        moving = list(decomposed_joints(m, lambda joint: joint.type in _TYPES, self.source, self.omissions))
        self._bodies(moving)
        self.prims = dict[str, Any]()
        for _, joint in moving:
            self._joint(joint)
        for joint in (joint for _, joint in moving if joint.follows):
            self._follower(joint)
        for loop in self.loops:
            self._loop(loop)
        parts.check()
        self.omissions.report(self.source, "USD")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, f"stage{self.path.suffix.lower()}")
            parts.stage.GetRootLayer().Export(str(file))
            return file.read_bytes()

    # Bodies

    def _bodies(self, moving: list[tuple[Link, Joint]]) -> None:
        """Add the bodies at position zero, their frames, and the weld of the base to the world."""
        m, base = self.mechanism, self.mechanism.base
        poses, self.paths = {base.name: np.eye(4)}, dict[str, str]()
        ends = {end for loop in self.loops for end in ends_of(m, loop)} | {frame.link for frame in m.frames}
        children = [joint for _, joint in moving if joint.parent == base.name]
        bare = not (base.mass or base.inertia.any() or base.visuals or base.shapes or base.name in ends)
        self.is_bare = bare and len(children) == 1 and children[0].type == "free"
        if not self.is_bare:
            self._body(base, poses[base.name])
            weld = self._prim("joints", f"{base.name}/world", "PhysicsFixedJoint")
            self._frames(weld, "", base.name, np.eye(4), np.eye(4))
            self.parts.own(weld, placement=np.eye(4))
        for link, joint in moving:
            zero = joint.kind.neutral if joint.nq != 1 else np.array([joint.offset if joint.follows else 0.0])
            poses[link.name] = poses[joint.parent] @ fixed_at(joint, zero).placement
            self._body(link, poses[link.name])
        for frame in m.frames:
            prim = self.parts.define(self.paths[frame.link], frame.name, "Xform")
            self.parts.place(prim, frame.pose)
            self.parts.own(prim, frame=True, pose=frame.pose)
        for a, b, _ in m.allowed_collisions:
            if a in self.paths and b in self.paths:
                api = self.pxr.UsdPhysics.FilteredPairsAPI.Apply(self.parts.stage.GetPrimAtPath(self.paths[a]))
                api.CreateFilteredPairsRel().AddTarget(self.paths[b])

    def _body(self, link: Link, pose: Array) -> None:
        physics, gf = self.pxr.UsdPhysics, self.pxr.Gf
        prim = self.parts.define(self.root, link.name, "Xform")
        self.paths[link.name] = str(prim.GetPath())
        self.parts.place(prim, pose)
        physics.RigidBodyAPI.Apply(prim)
        mass = physics.MassAPI.Apply(prim)
        inertia = (link.inertia + link.inertia.T) / 2
        moments, axes = np.linalg.eigh(inertia)
        if np.count_nonzero(inertia - np.diag(inertia.diagonal())) == 0:
            moments, axes = inertia.diagonal(), np.eye(3)
        axes = axes * (1.0 if np.linalg.det(axes) > 0 else -1.0)
        mass.CreateMassAttr(link.mass)
        mass.CreateCenterOfMassAttr(gf.Vec3f(*link.com.tolist()))
        mass.CreateDiagonalInertiaAttr(gf.Vec3f(*moments.tolist()))
        mass.CreatePrincipalAxesAttr(self.parts.quaternion(axes, gf.Quatf))
        self.parts.own(prim, mass=link.mass, com=link.com, inertia=inertia)
        what = "links without mass, for which simulators use the density of water"
        self.omissions.note(what, link.name, not link.mass and link.name != self.mechanism.base.name)
        what = "inertias of 0, for which simulators use those of the collision shapes"
        self.omissions.note(what, link.name, link.mass and link.shapes and not link.inertia.any())
        for visual in link.visuals:
            self.parts.surface(prim, visual)
        for shape in link.shapes:
            self.parts.surface(prim, shape)

    # Joints

    def _prim(self, folder: str, name: str, kind: str) -> Any:
        """Add a prim to a folder below the root."""
        path = f"{self.root}/{folder}"
        if not self.parts.stage.GetPrimAtPath(path):
            self.parts.define(self.root, folder, "Scope")
        return self.parts.define(path, name, kind)

    def _frames(self, prim: Any, parent: str, child: str, before: Array, after: Array) -> None:
        """Set the bodies of a joint and its frames on them. The parent "" is the world."""
        gf, joint = self.pxr.Gf, self.pxr.UsdPhysics.Joint(prim)
        if parent in self.paths:
            joint.CreateBody0Rel().SetTargets([self.paths[parent]])
        joint.CreateBody1Rel().SetTargets([self.paths[child]])
        for side, T in enumerate((before, after)):
            getattr(joint, f"CreateLocalPos{side}Attr")(gf.Vec3f(*T[:3, 3].tolist()))
            getattr(joint, f"CreateLocalRot{side}Attr")(self.parts.quaternion(T[:3, :3], gf.Quatf))

    def _joint(self, joint: Joint) -> None:
        if joint.type == "free" and joint.parent == self.mechanism.base.name:
            body = self.parts.stage.GetPrimAtPath(self.paths[joint.child])
            self.parts.own(body, free=joint.name, free_placement=joint.placement)
            self._several(body, joint)
            return
        kinds = {"prismatic": "Prismatic", "spherical": "Spherical", "free": ""}
        prim = self._prim("joints", joint.name, f"Physics{kinds.get(joint.type, 'Revolute')}Joint")
        self.prims[joint.name] = prim
        axes = [k for k in range(3) if joint.nv != 1 or np.array_equal(joint.axis, np.eye(3)[k])]
        along, frame = ("XYZ"[axes[0]], np.eye(3)) if axes else ("Z", axis_frame(joint.axis))
        after = make_pose(frame, joint.point)
        self._frames(prim, joint.parent, joint.child, joint.placement @ after, after)
        self.parts.own(prim, placement=joint.placement, axis=joint.axis, point=joint.point)
        if joint.nv == 1:
            prim.GetAttribute("physics:axis").Set(along)
            self._settings(prim, joint)
        else:
            self._several(prim, joint)

    def _several(self, prim: Any, joint: Joint) -> None:
        """Add friction, limits and rotor inertia of a joint with several velocities, which USD cannot express."""
        for key in PER_VELOCITY:
            values = np.ravel(getattr(joint, key))
            if (values[np.isfinite(values)] != 0).any():
                self.parts.own(prim, **{key: values})
                self.omissions.note(f"{key} of free and spherical joints, which other readers drop", joint.name)

    def _settings(self, prim: Any, joint: Joint) -> None:
        """Add limits, friction, rotor inertia and drive of a hinge or slide."""
        set_exact, unit = self.parts.own, 1.0 if joint.type == "prismatic" else DEGREE
        names = ("lower", "upper", "velocity_limit", "effort_limit", "coulomb", "viscous", "rotor_inertia")
        lower, upper, velocity, effort, coulomb, viscous, rotor = (float(np.ravel(getattr(joint, k))[0]) for k in names)
        prim.GetAttribute("physics:lowerLimit").Set(lower / unit)
        prim.GetAttribute("physics:upperLimit").Set(upper / unit)
        set_exact(prim, lower=lower, upper=upper)
        motor, spring = joint.motor, joint.spring
        self.omissions.note(FRICTION_MODELS, joint.name, joint.friction_model)
        armature = rotor + (motor.inertia * motor.ratio**2 if motor is not None else 0.0)
        properties = {"armature": armature, "coulomb": coulomb, "smooth": joint.smooth}
        properties |= {key: float(np.ravel(getattr(joint, key))[0]) for key in ("kp", "kd")}
        properties = {key: value for key, value in properties.items() if value}
        properties |= {"velocity_limit": velocity} if np.isfinite(velocity) else {}
        set_exact(prim, type=joint.type, **properties)
        physx = {_PHYSX[key]: value for key, value in properties.items() if key in _PHYSX}
        if physx:
            prim.AddAppliedSchema("PhysxJointAPI")
        for key, value in physx.items():
            per = unit if key == _PHYSX["velocity_limit"] else 1.0  # degrees per second
            prim.CreateAttribute(f"physxJoint:{key}", self.pxr.Sdf.ValueTypeNames.Float).Set(value / per)
        damping, stiffness, rest = viscous, 0.0, 0.0
        if motor is not None:
            keys = ("carrier", "inertia", "ratio", "axis", "coulomb", "viscous", "smooth")
            set_exact(prim, rotor_inertia=rotor, motor={key: getattr(motor, key) for key in keys})
            damping += motor.viscous
        if spring is not None:
            self.omissions.note("nonlinear stiffness", joint.name, isinstance(spring.stiffness, str))
            if not isinstance(spring.stiffness, str):
                stiffness, rest = spring.stiffness, spring.rest
                set_exact(prim, spring={"stiffness": stiffness, "damping": spring.damping, "rest": rest})
            damping += spring.damping
            viscous += spring.damping if isinstance(spring.stiffness, str) else 0.0
        if not (damping or stiffness or np.isfinite(effort)):
            return
        drive = self.pxr.UsdPhysics.DriveAPI.Apply(prim, "linear" if joint.type == "prismatic" else "angular")
        drive.CreateTypeAttr("force")
        if np.isfinite(effort):
            drive.CreateMaxForceAttr(effort)
            set_exact(prim, effort_limit=effort)
        if damping or stiffness:
            drive.CreateDampingAttr(damping * unit)
            drive.CreateStiffnessAttr(stiffness * unit)
            drive.CreateTargetPositionAttr(rest / unit)
            set_exact(prim, viscous=viscous, drive_stiffness=stiffness, drive_damping=damping, drive_target=rest)

    def _follower(self, joint: Joint) -> None:
        """Add a PhysX mimic joint: q + gearing q(leader) + offset = 0."""
        prim, single = self.prims[joint.name], self.pxr.Sdf.ValueTypeNames.Float
        unit = 1.0 if joint.type == "prismatic" else DEGREE
        axis = f"rot{prim.GetAttribute('physics:axis').Get()}"
        prim.AddAppliedSchema(f"PhysxMimicJointAPI:{axis}")
        leader = self.prims[joint.coordinate].GetPath()
        prim.CreateRelationship(f"physxMimicJoint:{axis}:referenceJoint").SetTargets([leader])
        prim.CreateAttribute(f"physxMimicJoint:{axis}:gearing", single).Set(-joint.ratio)
        prim.CreateAttribute(f"physxMimicJoint:{axis}:offset", single).Set(-joint.offset / unit)
        self.parts.own(prim, ratio=joint.ratio, offset=joint.offset)

    def _loop(self, loop: Loop) -> None:
        """Add a joint between two frames, which is not part of the articulation."""
        m = self.mechanism
        if loop.kind not in _CUTS:
            raise refused_loop(loop, _CUTS, self.source, "USD")
        kind, free = _CUTS[loop.kind]
        prim = self._prim("loops", loop.name, f"Physics{kind}")
        frames = {frame.name: (frame.link, frame.pose) for frame in m.frames}
        (a, before), (b, after) = (frames.get(end, (end, np.eye(4))) for end in (loop.a, loop.b))
        self._frames(prim, a, b, before, after)
        self.pxr.UsdPhysics.Joint(prim).CreateExcludeFromArticulationAttr(True)
        self.parts.own(prim, a=loop.a, b=loop.b)
        if kind in ("RevoluteJoint", "PrismaticJoint"):
            prim.GetAttribute("physics:axis").Set("Z")
        for axis in set(AXES) - set(free) if kind == "Joint" else ():
            limit = self.pxr.UsdPhysics.LimitAPI.Apply(prim, axis)
            limit.CreateLowAttr(1.0)
            limit.CreateHighAttr(-1.0)
        if loop.kind == "rod":
            for key in ("min", "max"):
                prim.GetAttribute(f"physics:{key}Distance").Set(loop.length)
            self.parts.own(prim, length=loop.length)
