"""Writing MJCF, for MuJoCo and ``read_mjcf``.

MuJoCo does not allow moving bodies without mass, but a body may have several joints, which act in sequence. A chain of
joints with massless links between them is therefore written as the joints of one body.
"""

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError
from torsor.formats.joint_decomposition import decomposed_joints, has_position_limits
from torsor.formats.meshes.mesh_files import read_painted, split_prim
from torsor.formats.meshes.triangles import Triangles, joined
from torsor.formats.mjcf.equality import write_equalities
from torsor.formats.mjcf.notes import mesh_entry, write_note
from torsor.formats.writing import MeshNames, Omissions, refuse_elastic, relative_file, write_file
from torsor.formats.xml import add_element
from torsor.mechanism import Coupling, Frame, Joint, Link, Mechanism, Shape, Visual, ends_of
from torsor.mechanism.mechanism import default_posture
from torsor.mechanism.names import unused_name
from torsor.spatial import from_quaternion, inverse_pose, make_pose, to_quaternion

Color = tuple[float, float, float, float]
_MAX_TRIANGLES = 200_000  # triangles of an .stl file in MuJoCo
_LEAST_AREA = 1e-12  # m^2: MuJoCo rejects meshes without a surface
_MIN_HULL_THICKNESS = 1e-6  # thickness over length below which MuJoCo finds no convex hull


def _is_for_mujoco(path: Path) -> bool:
    """Return whether MuJoCo reads a mesh file: .obj, .msh, and binary .stl that is not too large."""
    if path.suffix.lower() != ".stl":
        return path.suffix.lower() in (".obj", ".msh")
    try:
        with path.open("rb") as file:
            count = int.from_bytes(file.read(84)[80:], "little")
        return 0 < count <= _MAX_TRIANGLES and path.stat().st_size >= 84 + 50 * count
    except OSError:
        return False


def _has_materials(visual: Visual | Shape) -> bool:
    """Return whether a visual has material colours from its .obj file, which MuJoCo does not read."""
    path = Path(visual.path or "")
    if not isinstance(visual, Visual) or visual.color is not None or path.suffix.lower() != ".obj":
        return False
    try:
        return any(part.color is not None for part in read_painted(path, visual.folders))
    except (ModelError, ImportError):  # MuJoCo may still read it
        return False


def _surfaces(shape: Visual | Shape) -> list[tuple[Triangles, Color | None]]:
    """Return the surfaces of a mesh file and their colours: one per colour, or a single one if colours are not needed.

    ModelError is raised if no surface has an area, or if the convex hull of a collision shape is flat.
    """
    where = f"mesh {shape.mesh!r}"
    painted = read_painted(shape.path or "", shape.folders)
    by_color: dict[Color | None, list[Triangles]] = {}
    for surface, color in painted:
        by_color.setdefault(color if isinstance(shape, Visual) and shape.color is None else None, []).append(surface)
    result = [(joined(surfaces), color) for color, surfaces in by_color.items()]
    result = [item for item in result if item[0].scaled(shape.size).area > _LEAST_AREA]
    if not result:
        raise ModelError("its surface has no area", where=where)
    if isinstance(shape, Shape):
        points = result[0][0].scaled(shape.size).vertices
        spread = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
        if spread.size < 3 or not spread[-1] > _MIN_HULL_THICKNESS * spread[0]:
            raise ModelError("its convex hull is flat", where=where, fix="use a thin box")
    return result


_VISUAL = {"contype": "0", "conaffinity": "0", "group": "2"}
_COLLISION_GROUP = "3"  # MuJoCo's viewer hides it by default
_UNSEEN_REASON = "which MuJoCo does not read; a note for Torsor keeps them"


class Geoms:
    """The geoms of one file. ``unseen`` contains the meshes that MuJoCo cannot read, which are written to the note.

    ``kept`` contains the names of all collision shapes. A visual with the same name is renamed.
    """

    def __init__(self, asset: ET.Element, path: Path, omissions: Omissions, kept: set[str]):
        self.asset, self.mesh_names, self.omissions = asset, MeshNames(path, omissions), omissions
        self.meshes: dict[tuple[str, tuple[float, ...]], str] = {}  # their names, by file and scale
        self.copied: dict[tuple[object, ...], list[tuple[Path, Color | None]]] = {}
        self.names, self.kept = set[str](), kept
        self.unseen: list[dict[str, Any]] = []

    def add(self, body: ET.Element, shape: Visual | Shape) -> None:
        """Add a visual or a collision shape to a body. A visual mesh without a colour gets the colours of its file."""
        color: tuple[float, ...] | None = None
        if isinstance(shape, Shape):
            settings: dict[str, Any] = {"contype": str(shape.contype), "conaffinity": str(shape.conaffinity)}
            settings |= {"friction": shape.friction, "priority": str(shape.priority), "group": _COLLISION_GROUP}
        else:
            color, settings = None if shape.color is None else (*shape.color, 1.0)[:4], _VISUAL
        if shape.shape == "mesh":
            for mesh, colour in self._meshes(body, shape):
                self._geom(body, shape, {"type": "mesh", "mesh": mesh, "rgba": color or colour, **settings})
            return
        kind, size = shape.shape, np.array(shape.size)
        if kind == "box":
            size = size / 2
        elif kind in ("capsule", "cylinder"):
            size = size / [1, 2]
            if kind == "capsule" and not size[1]:  # MuJoCo needs a length
                kind, size = "sphere", size[:1]
        elif kind == "plane":
            size = np.array([0, 0, 1])  # infinite
        self._geom(body, shape, {"type": kind, "size": size, "rgba": color, **settings})

    def _geom(self, body: ET.Element, shape: Visual | Shape, look: dict[str, Any]) -> None:
        used_names = self.names if isinstance(shape, Shape) else self.names | self.kept
        name = unused_name(shape.name, used_names) if shape.name else None
        self.names |= {name} if name else set()
        add_element(body, "geom", name=name, **placed(shape.pose), **look)

    def _meshes(self, body: ET.Element, shape: Visual | Shape) -> list[tuple[str, tuple[float, ...] | None]]:
        """Return names and colours of the meshes of a visual or shape. If MuJoCo cannot read it, add it to the note."""
        try:
            return list(self._parts(shape))
        except (ModelError, ImportError) as error:
            if shape.path:
                self.omissions.note(f"meshes that cannot be converted to .obj, {_UNSEEN_REASON}", str(error))
            else:
                self.omissions.note(f"meshes that are not found, {_UNSEEN_REASON}", shape.mesh or shape.name)
            self.unseen.append(mesh_entry(body.get("name", "world"), shape, self.mesh_names))
            return []

    def _parts(self, shape: Visual | Shape) -> list[tuple[str, Color | None]]:
        """Return the names of the meshes that show a visual or shape, with the colours of the file, if any.

        A file that MuJoCo reads is one mesh. For other types, and for .obj files with materials, a visual without a
        colour becomes one mesh per colour of its file. Files that are missing or cannot be converted raise
        ModelError. If trimesh is missing, ImportError is raised.
        """
        path = Path(shape.path or "")
        if not shape.path or not split_prim(path)[0].is_file():
            raise ModelError("no such file", where=f"mesh {shape.mesh!r}")
        if _is_for_mujoco(path) and not _has_materials(shape):
            return [(self._mesh(self.mesh_names.reachable(shape), shape), None)]
        key = shape.path, shape.size, type(shape), getattr(shape, "color", None) is None
        if key not in self.copied:
            add = self.mesh_names.copies.add
            self.copied[key] = [(add(path.stem, surface), color) for surface, color in _surfaces(shape)]
        return [(self._mesh(copy, shape), color) for copy, color in self.copied[key]]

    def _mesh(self, path: Path, shape: Visual | Shape) -> str:
        """Return the name of the mesh of a file at the given scale, and add its element if it is new."""
        file = relative_file(self.mesh_names.path, str(path))
        if (file, shape.size) not in self.meshes:
            name = self.meshes[file, shape.size] = unused_name(path.stem, self.meshes.values())
            # Inertias are given, and a shell has no volume that could be too small for MuJoCo.
            add_element(self.asset, "mesh", name=name, file=file, scale=shape.size, inertia="shell")
        return self.meshes[file, shape.size]


def placed(T: Array) -> dict[str, Any]:
    """Return the attributes of a pose. Zero positions and identity rotations are omitted."""
    quat = None if np.array_equal(T[:3, :3], np.eye(3)) else np.roll(to_quaternion(T[:3, :3]), 1)
    return {"pos": T[:3, 3] if T[:3, 3].any() else None, "quat": quat}


_TYPES = {"revolute": "hinge", "continuous": "hinge", "prismatic": "slide", "spherical": "ball", "free": "free"}
_WORLD = "world"  # MuJoCo's name of the base
_MIN_INERTIA = 1e-14  # kg and kg m^2: MuJoCo rejects moving bodies with less than 1e-15
_MAX_DOFS = 6  # of one body in MuJoCo


def write_mjcf(mechanism: Mechanism, path: str | Path) -> None:
    """Write a mechanism as MJCF. The file is replaced atomically: if writing fails, the old file is kept.

    Bodies have the names and frames of the links, and sites those of the frames. The base is a fixed body, or the world
    if its name is ``world``. A massless link that only carries the next joint is not written as a body: its joint
    becomes the first joint of the next body. Massless links that must be bodies get 1e-14 kg, and principal moments of
    zero become 1e-14 kg m^2. A planar joint becomes two slides and a hinge with the names of its coordinates,
    and a helical joint becomes a hinge and a slide. A moving link named ``world`` is renamed.

    ``damping`` is the viscous friction plus the damping of the spring. ``frictionloss`` is the Coulomb friction, which
    MuJoCo treats as a soft constraint that holds a joint at rest, while sign(0) = 0 here. ``armature`` is the rotor
    inertia plus ratio^2 times the inertia of a rigid motor. Followers, couplings of one or two coordinates, and weld,
    spherical and revolute loops (two points on the axis) become <equality> constraints. Active coordinates get motors;
    joints with gains ``kp`` or ``kd`` get servos.

    Visuals and collision shapes become geoms of groups 2 and 3. Meshes that MuJoCo does not read (.dae, .glb, .ply,
    .stl as text or with more than 200,000 triangles) become .obj files in the folder ``NAME_meshes`` next to the file.
    For ``read_mjcf``, <custom> contains meshes that are missing or cannot be converted, a base that is not ``world``,
    and the names of massless links that are not bodies. A ``ModelWarning`` names the properties that are not written.
    Other loops and elastic joints raise ``ModelError``.
    """
    write_file(path, (".xml", ".mjcf"), _Writer(mechanism, Path(path)).content)


class _Writer:
    """Writer of one file."""

    def __init__(self, mechanism: Mechanism, path: Path):
        self.omissions, self.path, self.source = Omissions(), path, path.name
        self.mechanism = self.omissions.without_toml_only(mechanism)
        self.root = ET.Element("mujoco", {"model": mechanism.name})
        add_element(self.root, "compiler", angle="radian", autolimits="true", inertiafromgeom="false")
        add_element(self.root, "option", gravity=mechanism.gravity)
        self.asset, self.world = add_element(self.root, "asset"), add_element(self.root, "worldbody")
        kept = {shape.name for link in (mechanism.base, *mechanism.links) for shape in link.shapes}
        self.geoms = Geoms(self.asset, path, self.omissions, kept)
        self.bodies: dict[str, ET.Element] = {}
        self.between: dict[str, Any] = {}  # by joint, the note about the link after it that is not a body
        self.carriers = {link.name: link for link in (mechanism.base, *mechanism.links)}

    def content(self) -> bytes:
        m = self.mechanism
        rigid = "robot.without_motor({joint!r}).with_motor({joint!r}, ...)"
        refuse_elastic(m, self.source, "MJCF", f"save as .toml or .urdf, or make the joint rigid: {rigid}")
        for link in m.links:
            if link.defect and np.abs(link.inertia).max() > _MIN_INERTIA:
                raise link.defect.inside(f"{self.source}: MuJoCo rejects it")
        moving = list(decomposed_joints(m, self._is_supported, self.source, self.omissions))
        places = {frame.name: frame.link for frame in m.frames}
        closed = {end for loop in m.loops if not isinstance(loop, Coupling) for end in ends_of(m, loop)}
        shapes = (shape for link in (m.base, *m.links) for shape in link.shapes)
        self.welded = {shape.link for shape in shapes if shape.link in places} - closed
        self._base(m.base)
        carried = Counter(joint.parent for _, joint in moving)
        # Sites are fixed to these links, so they must be bodies, with or without mass.
        needed = {*places.values(), *(places.get(end, end) for end in closed)}
        below = {joint.parent: joint for _, joint in moving}
        chains: dict[str, list[Joint]] = {}  # joints that will belong to one body
        for link, joint in moving:
            chain = [*chains.pop(joint.parent, []), joint]
            bare = not (link.mass or link.inertia.any() or link.visuals or link.shapes)
            empty = bare and link.name not in needed
            if empty and carried[link.name] == 1 and _fit_one_body(chain, below[link.name]):
                chains[link.name] = chain
            else:
                self._body(link, chain)
        for frame in m.frames:
            self._frame(frame)
        write_equalities(self.root, self.bodies, m, [joint for _, joint in moving], self.source)
        self._exclusions()
        joints = {joint.name: joint for _, joint in moving}
        self._actuators(joints)
        self._keyframes(joints)
        if not len(self.asset):
            self.root.remove(self.asset)
        write_note(self.root, "" if m.base.name == _WORLD else m.base.name, self.between, self.geoms.unseen)
        return self.geoms.mesh_names.finished(self.root, "MJCF")

    def _is_supported(self, joint: Joint) -> bool:
        """Return whether MuJoCo supports a joint. A free joint must be on the world, and its position the body pose."""
        if joint.type == "free":
            return joint.parent == self.mechanism.base.name and np.array_equal(joint.placement, np.eye(4))
        return joint.type in _TYPES

    # Bodies

    def _base(self, base: Link) -> None:
        if base.name == _WORLD:
            self.omissions.note("mass of the base", base.name, base.mass or base.inertia.any())
            self.bodies[base.name] = self.world
        else:
            self.bodies[base.name] = add_element(self.world, "body", name=base.name)
            if base.mass > _MIN_INERTIA and not base.defect:
                self._inertial(self.bodies[base.name], base)
            else:
                self.omissions.note("inertia of the base", base.name, base.mass or base.inertia.any())
        self._geoms(base)

    def _body(self, link: Link, chain: list[Joint]) -> None:
        """Add the body of a link with its chain of joints, at its pose if all positions are zero."""
        pose, places = np.eye(4), []
        for joint in reversed(chain):  # the pose of each joint's own link in the frame of the body
            places.append(inverse_pose(pose))
            pose = joint.placement @ pose
        if chain[0].type == "free":  # MuJoCo starts a free body at its pose in the file
            at = dict(zip(self.mechanism.position_names, default_posture(self.mechanism), strict=True))
            *point, x, y, z, w = (at[key] for key in chain[0].position_names)
            pose = make_pose(from_quaternion(np.array([x, y, z, w])), point)
        name = unused_name(_WORLD, self.mechanism.places) if link.name == _WORLD else link.name
        self.omissions.note(f"a moving link {_WORLD!r}, written as {name!r}", link.name, name != link.name)
        parent = self.world if chain[0].type == "free" else self.bodies[chain[0].parent]
        body = self.bodies[link.name] = add_element(parent, "body", name=name, **placed(pose))
        self._inertial(body, link)
        for joint, place in zip(chain, reversed(places), strict=True):
            self._joint(body, joint, place)
            if joint.child != link.name and joint.child in self.carriers:
                self.between[joint.name] = {"name": joint.child, "pose": place[:3].tolist()}
        self._geoms(link)

    def _inertial(self, body: ET.Element, link: Link) -> None:
        """Add mass and inertia in principal axes, which MuJoCo would compute less accurately."""
        inertia = (link.inertia + link.inertia.T) / 2
        diagonal = np.count_nonzero(inertia - np.diag(np.diag(inertia))) == 0
        moments, R = (np.diag(inertia), np.eye(3)) if diagonal else np.linalg.eigh(inertia)
        light = "mass or inertia of 0 in moving bodies, written as 1e-14"
        self.omissions.note(light, link.name, min(link.mass, *moments) < _MIN_INERTIA)
        moments = np.maximum(moments, _MIN_INERTIA)
        moments = np.minimum(moments, moments.sum() - moments)  # rounding may violate the triangle inequality
        R = R * np.sign(np.linalg.det(R))
        quat = None if diagonal else np.roll(to_quaternion(R), 1)
        add_element(body, "inertial", pos=link.com, quat=quat, mass=max(link.mass, _MIN_INERTIA), diaginertia=moments)

    def _geoms(self, link: Link) -> None:
        for visual in link.visuals:
            self.geoms.add(self.bodies[link.name], visual)
        for shape in link.shapes:
            moving = shape.shape == "plane" and link.name != self.mechanism.base.name
            self.omissions.note("planes on moving links", shape.name or link.name, moving)
            if not moving and shape.link not in self.welded:
                self.geoms.add(self.bodies[link.name], shape)

    def _frame(self, frame: Frame) -> None:
        """Add a site, or for a welded link with shapes a body without joints, unless it is the end of a loop."""
        around = self.bodies[frame.link]
        if frame.name not in self.welded:
            add_element(around, "site", name=frame.name, **placed(frame.pose))
            return
        self.bodies[frame.name] = add_element(around, "body", name=frame.name, **placed(frame.pose))
        back = inverse_pose(frame.pose)
        for shape in self.carriers[frame.link].shapes:
            if shape.link == frame.name and (shape.shape != "plane" or frame.link == self.mechanism.base.name):
                self.geoms.add(self.bodies[frame.name], replace(shape, pose=back @ shape.pose))

    def _exclusions(self) -> None:
        """Write allowed collisions. A welded link without shapes is not a body and cannot collide."""
        contact = add_element(self.root, "contact")
        for a, b, _ in self.mechanism.allowed_collisions:
            if a not in self.bodies or b not in self.bodies:
                self.omissions.note("allowed collisions of welded links without shapes", f"{a} and {b}")
            else:
                names = (self.bodies[item].get("name", _WORLD) for item in (a, b))
                add_element(contact, "exclude", **dict(zip(("body1", "body2"), names, strict=True)))
        if not len(contact):
            self.root.remove(contact)

    # Joints

    def _joint(self, body: ET.Element, joint: Joint, place: Array) -> None:
        """Add a joint to a body. ``place`` is the pose of the joint's link in the frame of the body."""
        kind, single = _TYPES[joint.type], joint.nv == joint.nq == 1
        settings: dict[str, Any] = {"name": joint.name, "type": kind}
        if kind != "free":
            point = place[:3, :3] @ joint.point + place[:3, 3]
            settings["pos"] = point if kind != "slide" and point.any() else None
            settings["axis"] = place[:3, :3] @ joint.axis if kind != "ball" else None
        settings |= self._passive(joint) | (self._limits(joint) if single else {})
        if not single:
            bounded = has_position_limits(joint) or np.isfinite(joint.effort_limit).any()
            self.omissions.note(f"limits of {joint.type} joints", joint.name, bounded)
        self.omissions.note("velocity limits", joint.name, np.isfinite(joint.velocity_limit).any())
        add_element(body, "joint", **settings)

    def _limits(self, joint: Joint) -> dict[str, Any]:
        lower, upper = float(np.ravel(joint.lower)[0]), float(np.ravel(joint.upper)[0])
        effort, result = float(np.ravel(joint.effort_limit)[0]), dict[str, Any]()
        if np.isfinite([lower, upper]).any():
            self.omissions.note("equal lower and upper limits", joint.name, lower == upper)
            result |= {"range": [lower, upper]} if lower < upper else {}
        if np.isfinite(effort):
            self.omissions.note("effort limits of 0", joint.name, effort == 0)
            result |= {"actuatorfrcrange": [-effort, effort]} if effort else {}
        return result

    def _passive(self, joint: Joint) -> dict[str, Any]:
        """Return armature, friction and spring. MuJoCo has one number for all velocities of a joint."""
        viscous, coulomb, spring = self.omissions.passive(joint)
        armature, motor = self.omissions.common(joint, "rotor_inertia"), joint.motor
        if motor is not None:
            armature += motor.ratio**2 * motor.inertia
            moved = motor.carrier != self.mechanism.base.name and motor.inertia * motor.ratio
            what = "gyroscopic moments of rotors in moving links (their armature is written)"
            self.omissions.note(what, joint.name, moved)
        result = {"stiffness": spring["stiffness"], "springref": spring["rest"]} if spring else {}
        result |= {"damping": viscous} if viscous else {}
        if joint.type == "free":
            self.omissions.note("coulomb of free joints", joint.name, coulomb)
            self.omissions.note("rotor_inertia of free joints", joint.name, armature)
            return result
        return result | {key: x for key, x in (("frictionloss", coulomb), ("armature", armature)) if x}

    def _actuators(self, joints: dict[str, Joint]) -> None:
        """Add servos for joints with gains, and motors for other active coordinates."""
        active, actuator = self.mechanism.active, ET.Element("actuator")
        for name, joint in joints.items():
            kp, kd = (self.omissions.common(joint, key) for key in ("kp", "kd"))
            single, driven = joint.nv == 1, name in active or not self.mechanism.loops
            self.omissions.note("gains of joints with several velocities", name, (kp or kd) and not single)
            self.omissions.note("gains of joints that are not active", name, (kp or kd) and not driven)
            if single and driven and (kp or kd):
                gains = {"gainprm": kp or kd, "biasprm": [0.0, -kp, -kd]}
                add_element(actuator, "general", name=name, joint=name, biastype="affine", **gains)
            elif single and name in active:
                add_element(actuator, "motor", name=name, joint=name)
        for name in active:
            several = name not in joints or joints[name].nv > 1
            self.omissions.note("motors of joints with several velocities", name, several)
        if len(actuator):
            self.root.append(actuator)

    def _keyframes(self, joints: dict[str, Joint]) -> None:
        """Add the postures. MuJoCo stores the positions in the order of the file, with quaternions (w, x, y, z)."""
        if not self.mechanism.postures:
            return
        keyframe = add_element(self.root, "keyframe")
        for name, q in self.mechanism.postures.items():
            at, qpos = dict(zip(self.mechanism.position_names, q.tolist(), strict=True)), list[float]()
            for element in self.world.iter("joint"):
                joint = joints[element.get("name", "")]
                if joint.follows:
                    qpos.append(joint.ratio * at[joint.coordinate] + joint.offset)
                elif joint.nq == 1:
                    qpos.append(at[joint.name])
                else:
                    *point, x, y, z, w = (at[key] for key in joint.position_names)
                    qpos += [*point, w, x, y, z]
            add_element(keyframe, "key", name=name, qpos=qpos)


def _fit_one_body(joints: Sequence[Joint], after: Joint) -> bool:
    """Return whether a body can have these joints and one more: a ball joint must be last, and a free joint alone."""
    ends = any(joint.type in ("free", "spherical") for joint in joints) or after.type == "free"
    return not ends and sum(joint.nv for joint in (*joints, after)) <= _MAX_DOFS
