"""Writing SDFormat, for Gazebo and ``read_sdf``: the lowest version, at least 1.7, that supports all parts.

The pose of a link is relative to its parent, that of a joint to its child, and that of a shape of a welded link to the
frame that replaces the link. All poses are those of the mechanism, so they are read back exactly.
"""

import math
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError
from torsor.formats.joint_decomposition import decomposed_joints, has_position_limits, without_couplings
from torsor.formats.sdf.models import WORLD
from torsor.formats.sdf.reading import ROTOR
from torsor.formats.writing import MeshNames, Omissions, moments_of, refuse_elastic, refused_loop, short_rpy, write_file
from torsor.formats.xml import add_element, numbers
from torsor.mechanism import Coupling, Joint, Link, Loop, Mechanism, Shape, Visual
from torsor.mechanism.names import claim_name, unused_name
from torsor.mechanism.parts import FRICTION
from torsor.spatial import inverse_pose

_JOINTS = {"weld": "fixed", "revolute": "revolute", "prismatic": "prismatic", "universal": "universal"}
_JOINTS |= {"spherical": "ball"}
_CLOSURE_TOLERANCE = 1e-9  # largest error of a loop at zero, in m and rad
_TYPES = {kind: kind for kind in ("revolute", "continuous", "prismatic")} | {"helical": "screw", "spherical": "ball"}
_EARTH = (0.0, 0.0, -9.81)


def write_sdf(mechanism: Mechanism, path: str | Path) -> None:
    """Write a mechanism as an SDF model. The file is replaced atomically: if writing fails, the old file is kept.

    A fixed base is a link that is welded to the world, or the world itself if its name is ``world``. A free joint of
    the first link is implicit in SDF, where models move freely by default: ``read_sdf`` restores it with
    ``base="floating"``. If gravity is not (0, 0, -9.81), the model is written inside a <world>. A helical joint becomes
    a screw joint, and a planar joint becomes two prismatic joints and a revolute one. Couplings of two joints become
    <mimic> (version 1.11). Weld, revolute, prismatic, universal and spherical loops that are closed at zero become
    joints to a link that already has a parent. Rotor inertias are written in Drake's element.

    A ``ModelWarning`` names properties that are not written (gyroscopic moments of rotors, wheels) and those that
    Gazebo does not accept (links without mass). Other loops and elastic joints raise ``ModelError``.
    """
    write_file(path, (".sdf",), _Writer(mechanism, Path(path)).content)


class _Writer:
    """Writer of one file."""

    def __init__(self, mechanism: Mechanism, path: Path):
        self.source, self.omissions, self.version = path.name, Omissions(), 7
        self.meshes = MeshNames(path, self.omissions)
        kept = self.omissions.without_toml_only(mechanism)
        self.loops = [loop for loop in kept.loops if isinstance(loop, Loop)]
        couplings = tuple(loop for loop in kept.loops if isinstance(loop, Coupling))
        self.active = mechanism.active
        self.mechanism = without_couplings(replace(kept, loops=couplings), self.source, "SDF")
        shapes = [shape for link in (mechanism.base, *mechanism.links) for shape in link.shapes]
        self.masked = any((shape.contype, shape.conaffinity) != (1, 1) for shape in shapes)
        self.frames = {frame.name: frame.pose for frame in mechanism.frames}
        self.root = ET.Element("sdf")

    def content(self) -> bytes:
        m = self.mechanism
        refuse_elastic(m, self.source, "SDF", "save as .toml or .urdf")
        around = self.root
        if not np.array_equal(m.gravity, _EARTH):
            around = add_element(self.root, "world", name="default")
            add_element(around, "gravity").text = numbers(m.gravity)
        self.model = add_element(around, "model", name=m.name)
        free = self._floating()
        moving = list(decomposed_joints(m, self._is_supported, self.source, self.omissions))
        poses = {m.base.name: np.eye(4)}
        self.taken = {*m.places, *(link.name for link, _ in moving), WORLD}
        named = [joint.name for _, joint in moving if joint.name != free]
        self.joint_names = {name: claim_name(name, self.taken) for name in named}
        self.moved_world = unused_name(WORLD, self.taken)  # the new name of a moving link that has the name of the base
        renamed = f"a moving link {WORLD!r}, written as {self.moved_world!r}"
        self.omissions.note(renamed, WORLD, WORLD in m.link_names)
        self.base = self._base() if free is None else ""
        for link, joint in moving:
            on_base = joint.parent == m.base.name
            parent = None if on_base and self.base in ("", WORLD) else self._name(joint.parent)
            self._link(self._name(link.name), link, parent, joint.placement)
            if joint.name != free:
                self._joint(joint)
        for frame in m.frames:
            element = add_element(self.model, "frame", name=frame.name, attached_to=self._name(frame.link))
            _pose(element, frame.pose)
        for link, joint in moving:
            poses[link.name] = poses[joint.parent] @ joint.placement
        for loop in self.loops:
            self._loop(loop, poses)
        self._notes()
        self.root.set("version", f"1.{self.version}")
        return self.meshes.finished(self.root, "SDF")

    def _notes(self) -> None:
        """Record properties of the mechanism that SDF does not support."""
        m = self.mechanism
        self.omissions.note("active coordinates", ", ".join(self.active), self.active)
        if self.base == "":
            free = "a free base, which is implicit in Gazebo if no joint holds the model"
            self.omissions.note(f"{free}: load it with `base='floating'`", m.joints[0].name)
            self.omissions.note("limits of free joints", m.joints[0].name, has_position_limits(m.joints[0]))
        for name in m.postures:
            self.omissions.note("postures", name)
        for a, b, _ in m.allowed_collisions:
            self.omissions.note("allowed collisions, which torsor.geometry saves as .srdf", f"{a} and {b}")
        if self.version > 7:
            for name in self.taken:
                self.omissions.note("'::' in names, which Gazebo reads as nested models", name, "::" in name)

    def _is_supported(self, joint: Joint) -> bool:
        if joint.type == "free":
            return joint.name == self._floating()
        return joint.type in _TYPES and not (joint.type == "helical" and not joint.pitch)

    def _floating(self) -> str | None:
        """Return the name of the free joint that is implicit in SDF, or None."""
        m = self.mechanism
        on_base = [joint for joint in m.joints if joint.parent == m.base.name]
        used = {frame.link for frame in m.frames}
        bare = not self._has_body(m.base) and m.base.name not in used and not self.loops
        if len(on_base) != 1 or on_base[0].type != "free" or not bare:
            return None
        joint = on_base[0]
        resisted = np.any(joint.viscous) or np.any(joint.coulomb) or np.any(joint.rotor_inertia)
        return joint.name if np.array_equal(joint.placement, np.eye(4)) and not resisted else None

    @staticmethod
    def _has_body(link: Link) -> bool:
        return bool(link.mass or link.inertia.any() or link.visuals or link.shapes)

    # Links

    def _name(self, link: str) -> str:
        """Return the name that a link has in the file."""
        if link == self.mechanism.base.name:
            return self.base
        return self.moved_world if link == WORLD else link

    def _base(self) -> str:
        """Add the base welded to the world and return its name, or return the world if it is the base."""
        m = self.mechanism
        if m.base.name == WORLD and not self._has_body(m.base) and all(frame.link != WORLD for frame in m.frames):
            return WORLD
        name = claim_name(f"{WORLD}/body", self.taken) if m.base.name == WORLD else m.base.name
        self._link(name, m.base, None, np.eye(4))
        self._ends(claim_name(f"{name}/fixed", self.taken), "fixed", WORLD, name)
        return name

    def _link(self, name: str, link: Link, relative_to: str | None, pose: Array) -> None:
        element = add_element(self.model, "link", name=name)
        _pose(element, pose, relative_to)
        light = "links without mass or inertia, which Gazebo does not accept"
        self.omissions.note(light, name, not link.mass or not np.linalg.eigvalsh(link.inertia)[0] > 0)
        impossible = "physically impossible inertias, which Gazebo does not accept"
        self.omissions.note(impossible, name, str(link.defect or ""))
        inertial = add_element(element, "inertial")
        if np.any(link.com):
            add_element(inertial, "pose").text = f"{numbers(link.com)} 0 0 0"
        add_element(inertial, "mass").text = numbers(link.mass)
        _add_texts(add_element(inertial, "inertia"), moments_of(link))
        names: set[str] = set()
        for visual in link.visuals:
            made = self._geometry(element, "visual", visual, names)
            if visual.color is not None:
                material, color = add_element(made, "material"), (*visual.color, 1.0)[:4]
                _add_texts(material, {"ambient": color, "diffuse": color})
        names = set()
        for shape in link.shapes:
            made = self._geometry(element, "collision", shape, names)
            one = shape.contype == shape.conaffinity
            self.omissions.note("contype and conaffinity that differ", shape.name or link.name, not one)
            rough = (shape.friction, shape.priority) != (FRICTION, 0)
            self.omissions.note("friction of shapes", shape.name or link.name, rough)
            if self.masked and one:
                contact = add_element(add_element(made, "surface"), "contact")
                add_element(contact, "collide_bitmask").text = str(shape.contype % 2**32)

    def _geometry(self, link: ET.Element, tag: str, part: Visual | Shape, names: set[str]) -> ET.Element:
        """Add a visual or a collision shape. A shape of a link that became a frame is written in that frame."""
        element = add_element(link, tag, name=claim_name(part.name or f"{tag}{len(names) + 1}", names))
        welded = part.link if isinstance(part, Shape) and part.link in self.frames else None
        _pose(element, part.pose if welded is None else inverse_pose(self.frames[welded]) @ part.pose, welded)
        shape = add_element(add_element(element, "geometry"), part.shape)
        if part.shape in ("capsule", "ellipsoid"):
            self.version = max(self.version, 8)
        if part.shape == "mesh":
            add_element(shape, "uri").text = self.meshes.file(part)
            add_element(shape, "scale").text = numbers(part.size)
        elif part.shape == "plane":
            add_element(shape, "normal").text = "0 0 1"
            add_element(shape, "size").text = "1 1"
        elif part.shape in ("box", "ellipsoid"):
            add_element(shape, "size" if part.shape == "box" else "radii").text = numbers(part.size)
        else:
            _add_texts(shape, dict(zip(("radius", "length"), part.size, strict=False)))
        return element

    # Joints

    def _joint(self, joint: Joint) -> None:
        name = self.joint_names[joint.name]
        self.omissions.note("joints with the name of a link, which are renamed", joint.name, name != joint.name)
        self.omissions.note("gains of drives", joint.name, np.any(joint.kp) or np.any(joint.kd))
        kind = "revolute" if joint.type == "continuous" and has_position_limits(joint) else _TYPES[joint.type]
        element = self._ends(name, kind, self._name(joint.parent), self._name(joint.child))
        if np.any(joint.point):
            add_element(element, "pose").text = f"{numbers(joint.point)} 0 0 0"
        if kind == "screw":
            self.version = max(self.version, 10)
            add_element(element, "screw_thread_pitch").text = numbers(2 * math.pi * joint.pitch)
        if kind == "ball":
            acting = np.any(joint.viscous) or np.any(joint.coulomb) or has_position_limits(joint)
            acting = acting or np.isfinite(joint.effort_limit).any() or np.isfinite(joint.velocity_limit).any()
            self.omissions.note("limits and friction of spherical joints", joint.name, acting)
            self.omissions.note("rotor inertia", joint.name, np.any(joint.rotor_inertia))
            return
        axis = add_element(element, "axis")
        add_element(axis, "xyz").text = numbers(joint.axis)
        self._limits(axis, joint)
        self._dynamics(axis, joint)
        self._rotor(element, joint)
        if joint.follows:
            self.version = max(self.version, 11)
            mimic = add_element(axis, "mimic", joint=self.joint_names[joint.coordinate], axis="axis")
            _add_texts(mimic, {"multiplier": joint.ratio, "offset": joint.offset, "reference": 0.0})

    def _limits(self, axis: ET.Element, joint: Joint) -> None:
        limits = {key: float(np.ravel(getattr(joint, key))[0]) for key in ("lower", "upper")}
        limits |= {key: self.omissions.common(joint, f"{key}_limit") for key in ("effort", "velocity")}
        finite = {key: value for key, value in limits.items() if math.isfinite(value)}
        if finite:
            _add_texts(add_element(axis, "limit"), finite)

    def _dynamics(self, axis: ET.Element, joint: Joint) -> None:
        viscous, coulomb, spring = self.omissions.passive(joint)
        result = {"damping": viscous, "friction": coulomb}
        if spring:
            result |= {"spring_stiffness": spring["stiffness"], "spring_reference": spring["rest"]}
        if viscous or coulomb or spring:
            _add_texts(add_element(axis, "dynamics"), result)

    def _rotor(self, element: ET.Element, joint: Joint) -> None:
        """Add the reflected rotor inertia, in the element that Drake reads."""
        inertia, motor = self.omissions.common(joint, "rotor_inertia"), joint.motor
        if motor is not None:
            inertia += motor.ratio**2 * motor.inertia
            moved = motor.carrier != self.mechanism.base.name and motor.inertia
            what = "gyroscopic moments of rotors in moving links (their reflected inertia is written)"
            self.omissions.note(what, joint.name, moved)
        if inertia:
            self.root.set("xmlns:drake", "http://drake.mit.edu")
            add_element(element, ROTOR).text = numbers(inertia)

    def _loop(self, loop: Loop, poses: dict[str, Array]) -> None:
        """Add the joint of a loop, which must be closed at position zero, where the links have these ``poses``."""
        if loop.kind not in _JOINTS:
            raise refused_loop(loop, _JOINTS, self.source, "SDF")
        frames = {frame.name: (frame.link, frame.pose) for frame in self.mechanism.frames}
        ends = [frames.get(end, (end, np.eye(4))) for end in (loop.a, loop.b)]
        a, b = (poses[link] @ pose for link, pose in ends)
        between = inverse_pose(a) @ b
        error = np.array(ca.DM(ca.evalf(loop.error(ca.SX(between[:3, :3]), ca.SX(between[:3, 3])))))
        if np.abs(error).max() > _CLOSURE_TOLERANCE:
            message = f"loop {loop.name!r} is open with all joints at zero, which is the pose of SDF files"
            raise ModelError(message, value=loop.name, where=self.source, fix="save as .toml or .xml (MJCF)")
        if ends[1][0] == self.mechanism.base.name:  # the child of a joint that closes a loop already has a parent
            ends, between = ends[::-1], inverse_pose(between)
        (parent, _), (child, pose) = ends
        name = claim_name(loop.name, self.taken)
        element = self._ends(name, _JOINTS[loop.kind], self._name(parent), self._name(child))
        add_element(element, "pose").text = f"{numbers(pose[:3, 3])} {numbers(short_rpy(pose[:3, :3]))}"
        if loop.kind in ("revolute", "prismatic", "universal"):
            axis = between[2, :3] if loop.kind == "universal" else np.array([0.0, 0.0, 1.0])
            add_element(add_element(element, "axis"), "xyz").text = numbers(axis)
        if loop.kind == "universal":
            add_element(add_element(element, "axis2"), "xyz").text = "0 0 1"

    def _ends(self, name: str, kind: str, parent: str, child: str) -> ET.Element:
        """Add a joint between two links."""
        element = add_element(self.model, "joint", name=name, type=kind)
        add_element(element, "parent").text = parent
        add_element(element, "child").text = child
        return element


def _add_texts(element: ET.Element, values: Mapping[str, Any]) -> None:
    """Add children with numbers as their text."""
    for tag, value in values.items():
        add_element(element, tag).text = numbers(value)


def _pose(element: ET.Element, T: Array, relative_to: str | None = None) -> None:
    if relative_to is not None or not np.array_equal(T, np.eye(4)):
        place = add_element(element, "pose", relative_to=relative_to)
        place.text = f"{numbers(T[:3, 3])} {numbers(short_rpy(T[:3, :3]))}"
