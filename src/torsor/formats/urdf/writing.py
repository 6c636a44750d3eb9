"""Writing URDF, for ``read_urdf``, Pinocchio and ROS.

A link without mass has no <inertial>. The axis of a URDF joint passes through the origin of its child. If the axis
is elsewhere, a massless link ``child/axis`` is added, to which the link itself is fixed, so that link frames are kept.
Frames are written as links with fixed joints.
"""

import sys
import xml.etree.ElementTree as ET
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError
from torsor.formats.joint_decomposition import decomposed_joints, has_position_limits, without_couplings
from torsor.formats.urdf.reading import capsule_parts
from torsor.formats.writing import MeshNames, Omissions, moments_of, short_rpy, write_file
from torsor.formats.xml import add_element
from torsor.mechanism import Joint, Link, Mechanism, Motor, Shape, Visual
from torsor.mechanism.names import claim_name
from torsor.mechanism.parts import FRICTION
from torsor.spatial import inverse_pose, make_pose

_TYPES = ("revolute", "continuous", "prismatic", "planar", "free")
_SHAPES = ("box", "cylinder", "sphere", "capsule", "mesh")  # a capsule in three parts
_USUAL_GRAVITY = (0.0, 0.0, -9.81)
_NO_LIMIT = sys.float_info.max  # a limit must be a number, and many readers do not accept "inf"


def write_urdf(mechanism: Mechanism, path: str | Path) -> None:
    """Write a mechanism as URDF. The file is replaced atomically: if writing fails, the old file is kept.

    When the file is read back, all links and frames move in the same way, and the joints are in depth-first order. A
    helical joint becomes a revolute joint and a prismatic joint that mimics it. In <dynamics>, ``damping`` is the
    viscous friction plus the damping of the spring, ``friction`` is the Coulomb friction (N m or N, with sign(v)), and
    ``spring_stiffness`` and ``spring_reference`` define the spring. Motors become transmissions. The ``rotor_inertia``
    of a joint becomes a motor with ratio 1 on the base. A coupling of two joints becomes a <mimic>, so one of
    them has no independent coordinate in the file.

    A ``ModelWarning`` names properties that are not written (gravity other than (0, 0, -9.81), wheels, forces and
    limits that URDF cannot express) and those that other readers drop (springs, elastic joints and, except in Drake,
    rotor inertias). Other couplings, loops and spherical joints raise ``ModelError``.
    """
    write_file(path, (".urdf",), _Writer(mechanism, Path(path)).content)


class _Writer:
    """Writer of one file."""

    def __init__(self, mechanism: Mechanism, path: Path):
        self.omissions = Omissions()
        self.meshes, self.source, self.active = MeshNames(path, self.omissions), path.name, mechanism.active
        self.mechanism = without_couplings(self.omissions.without_toml_only(mechanism), self.source, "URDF")
        self.carriers = {link.name: link for link in (mechanism.base, *mechanism.links)}
        self.root = ET.Element("robot", {"name": mechanism.name})

    def content(self) -> bytes:
        m = self.mechanism
        usual = np.array_equal(m.gravity, _USUAL_GRAVITY)
        self.omissions.note("gravity, which readers assume to be (0, 0, -9.81)", str(m.gravity.tolist()), not usual)
        self.omissions.note("active coordinates", ", ".join(self.active), self.active)
        moving = list(decomposed_joints(m, lambda joint: joint.type in _TYPES, self.source, self.omissions))
        self.joints = {joint.name for _, joint in moving}
        self.links = {*m.places, *(link.name for link, _ in moving)}
        self.frames = {frame.name for frame in m.frames}
        self._link(m.base)
        for link, joint in moving:
            self._link(link)
            self._joint(joint)
        for frame in m.frames:
            # The shapes of a welded link, which is a frame of the mechanism, are in the axes of that frame.
            shapes, back = self.carriers[frame.link].shapes, inverse_pose(frame.pose)
            frame_shapes = [replace(shape, pose=back @ shape.pose) for shape in shapes if shape.link == frame.name]
            self._shapes(add_element(self.root, "link", name=frame.name), frame_shapes)
            self._fixed_joint(frame.name, frame.link, frame.pose, frame.joint)
        self._motors([joint for _, joint in moving])
        for a, b, _ in m.allowed_collisions:
            self.omissions.note("allowed collisions, which torsor.geometry saves as .srdf", f"{a} and {b}")
        return self.meshes.finished(self.root, "URDF")

    # Links

    def _link(self, link: Link) -> None:
        element = add_element(self.root, "link", name=link.name)
        if link.mass or link.inertia.any():
            inertial = add_element(element, "inertial")
            add_element(inertial, "origin", xyz=link.com, rpy="0 0 0")
            add_element(inertial, "mass", value=link.mass)
            add_element(inertial, "inertia", **moments_of(link))
        for k, visual in enumerate(link.visuals):
            self.omissions.note("ellipsoids", visual.name or link.name, visual.shape not in _SHAPES)
            if visual.shape not in _SHAPES:
                continue
            for made in self._geometry(element, "visual", visual):
                if visual.color is not None:
                    material = add_element(made, "material", name=f"{link.name}/{k}")
                    add_element(material, "color", rgba=(*visual.color, 1.0)[:4])  # opaque by default
        self._shapes(element, [shape for shape in link.shapes if shape.link not in self.frames])

    def _shapes(self, element: ET.Element, shapes: list[Shape]) -> None:
        for shape in shapes:
            known, name = shape.shape in _SHAPES, shape.name or element.get("name", "")
            self.omissions.note("collision planes and ellipsoids", name, not known)
            masked = (shape.contype, shape.conaffinity) != (1, 1)
            self.omissions.note("contype and conaffinity of shapes", name, known and masked)
            rough = (shape.friction, shape.priority) != (FRICTION, 0)
            self.omissions.note("friction of shapes", name, known and rough)
            if known:
                self._geometry(element, "collision", shape)

    def _geometry(self, element: ET.Element, tag: str, part: Visual | Shape) -> list[ET.Element]:
        """Add a visual or a collision shape, and return its elements."""
        shapes = capsule_parts(part, len(element.findall(tag))) if part.shape == "capsule" else [part]
        made = []
        for shape in shapes:
            made.append(add_element(element, tag, name=shape.name or None))
            _origin(made[-1], shape.pose)
            size: dict[str, Any] = dict(zip(("radius", "length"), shape.size, strict=False))
            if shape.shape == "mesh":
                size = {"filename": self.meshes.file(shape), "scale": shape.size}
            elif shape.shape == "box":
                size = {"size": shape.size}
            add_element(add_element(made[-1], "geometry"), shape.shape, **size)
        return made

    # Joints

    def _fixed_joint(self, child: str, parent: str, pose: Array, name: str = "") -> None:
        name = claim_name(name or f"{child}/fixed", self.joints)
        element = add_element(self.root, "joint", name=name, type="fixed")
        _origin(element, pose)
        add_element(element, "parent", link=parent)
        add_element(element, "child", link=child)

    def _joint(self, joint: Joint) -> None:
        at, child = _axis_pose(joint), joint.child
        if not np.array_equal(at, np.eye(4)):
            child = claim_name(f"{joint.child}/axis", self.links)
            add_element(self.root, "link", name=child)
            self._fixed_joint(joint.child, child, inverse_pose(at))
        kind = "floating" if joint.type == "free" else joint.type
        if joint.type in ("revolute", "continuous"):
            kind = "revolute" if has_position_limits(joint) else "continuous"
        element = add_element(self.root, "joint", name=joint.name, type=kind)
        _origin(element, joint.placement @ at)
        add_element(element, "parent", link=joint.parent)
        add_element(element, "child", link=child)
        if kind != "floating":
            add_element(element, "axis", xyz="0 0 1" if kind == "planar" else joint.axis)
        limits = {key: self.omissions.common(joint, f"{key}_limit") for key in ("effort", "velocity")}
        if kind in ("revolute", "prismatic"):
            limits = {"lower": float(np.ravel(joint.lower)[0]), "upper": float(np.ravel(joint.upper)[0])} | limits
        else:
            self.omissions.note("position limits", joint.name, has_position_limits(joint))
        if kind in ("revolute", "prismatic") or np.isfinite(list(limits.values())).any():
            clipped = {key: np.clip(value, -_NO_LIMIT, _NO_LIMIT) for key, value in limits.items()}
            add_element(element, "limit", **clipped)
        self._dynamics(element, joint)
        if joint.follows:
            add_element(element, "mimic", joint=joint.coordinate, multiplier=joint.ratio, offset=joint.offset)

    def _dynamics(self, element: ET.Element, joint: Joint) -> None:
        viscous, coulomb, spring = self.omissions.passive(joint, with_motor=False)
        if joint.motor is not None and not joint.is_elastic:
            viscous += joint.motor.viscous
        result: dict[str, Any] = {}
        if spring:
            result = {"spring_stiffness": spring["stiffness"], "spring_reference": spring["rest"]}
            what = "springs, written as spring_stiffness and spring_reference, which other readers drop"
            self.omissions.note(what, joint.name)
        self.omissions.note("gains of drives", joint.name, np.any(joint.kp) or np.any(joint.kd))
        if viscous or coulomb or result:
            add_element(element, "dynamics", damping=viscous, friction=coulomb, **result)

    # Motors

    def _motors(self, joints: list[Joint]) -> None:
        """Add motors and rotor inertias. The rotor inertia of a follower is reflected to its leader."""
        armature: dict[str, float] = defaultdict(float)
        for joint in joints:
            if joint.nv == 1:
                ratio = joint.ratio if joint.follows else 1.0
                armature[joint.coordinate] += ratio**2 * float(np.ravel(joint.rotor_inertia)[0])
            else:
                what = "rotor inertia of joints with several velocities"
                self.omissions.note(what, joint.name, np.any(joint.rotor_inertia))
        for joint in joints:
            motor, reflected = joint.motor, armature[joint.name] if joint.nv == 1 else 0.0
            if motor is None:
                if reflected:
                    self._transmission(joint, Motor(self.mechanism.base.name, reflected))
                continue
            self.omissions.note("smooth friction of motors", joint.name, motor.coulomb and motor.smooth)
            if motor.is_elastic:
                self.omissions.note("elastic joints, which other readers treat as rigid", joint.name)
                what = "rotor inertia of elastic joints in addition to that of the motor"
                self.omissions.note(what, joint.name, reflected)
                self.omissions.note("viscous friction of the motors of elastic joints", joint.name, motor.viscous)
            elif reflected:  # one rotor with the spin momentum of the motor and the reflected inertia of both
                spin, total = motor.inertia * motor.ratio, motor.inertia * motor.ratio**2 + reflected
                if spin:
                    motor = replace(motor, inertia=spin**2 / total, ratio=total / spin)
                else:
                    motor = replace(motor, carrier=self.mechanism.base.name, inertia=reflected, ratio=1.0)
            self._transmission(joint, motor)

    def _transmission(self, joint: Joint, motor: Motor) -> None:
        what = "rotor inertias, written as drake:rotor_inertia of transmissions, which readers other than Drake drop"
        self.omissions.note(what, joint.name, motor.inertia and not motor.is_elastic)
        self.root.set("xmlns:drake", "http://drake.mit.edu")  # Drake's elements for the rotor
        element = add_element(self.root, "transmission", name=f"{joint.name}/motor")
        add_element(element, "type").text = "transmission_interface/SimpleTransmission"
        add_element(element, "joint", name=joint.name)
        actuator = add_element(element, "actuator", name=f"{joint.name}/motor")
        add_element(actuator, "drake:rotor_inertia", value=motor.inertia)
        add_element(actuator, "drake:gear_ratio", value=motor.ratio)
        add_element(element, "carrier", link=motor.carrier)
        add_element(element, "axis", xyz=motor.axis)
        if isinstance(motor.stiffness, str):
            message = f"the spring between joint {joint.name!r} and its motor has the stiffness {motor.stiffness!r}"
            raise ModelError(message, where=self.source, allowed="a number", fix="save as .toml")
        if motor.stiffness is not None:
            add_element(element, "stiffness", value=motor.stiffness)
            add_element(element, "damping", value=motor.damping)
        if motor.coulomb:
            add_element(element, "friction", value=motor.coulomb)


def _axis_pose(joint: Joint) -> Array:
    """Return the pose, in the child's axes, of the frame that the URDF joint moves, whose origin is on the axis."""
    if joint.type in ("prismatic", "free"):  # the position of a prismatic axis does not matter
        return np.eye(4)
    along = joint.axis * (joint.axis @ joint.point)
    across = joint.point - along
    if np.linalg.norm(across) <= 1e-15 * np.linalg.norm(joint.point):
        across = np.zeros(3)
    # Some readers ignore the axis of a planar joint and use z as its normal.
    return make_pose(joint.frame[:3, :3] if joint.type == "planar" else None, across)


def _origin(element: ET.Element, T: Array) -> None:
    if not np.array_equal(T, np.eye(4)):
        add_element(element, "origin", xyz=T[:3, 3], rpy=short_rpy(T[:3, :3]))
