"""Writing URDF: what ``read_urdf``, Pinocchio and ROS read.

A link without mass has no <inertial>. URDF turns a joint about the origin of its child, so an axis elsewhere gets a
massless link ``child/axis`` of its own, with the link itself behind it by a fixed joint: link frames stay where they
are. Frames are links on fixed joints.
"""

import math
import sys
import xml.etree.ElementTree as ET
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torsor.errors import ModelError, describe
from torsor.formats.plain_joints import limited, plain_joints
from torsor.formats.xml_writing import LeftOut, add, content, put, seen_from
from torsor.mechanism import Joint, Link, Mechanism, Motor, Visual
from torsor.mechanism.assemble import free_name
from torsor.spatial import from_rpy, inverse_pose, make_pose, to_rpy

__all__ = ["write_urdf"]

Array = NDArray[np.float64]

_TYPES = {
    "revolute": "revolute",
    "continuous": "continuous",
    "prismatic": "prismatic",
    "free": "floating",
    "planar": "planar",
}
_USUAL_GRAVITY = (0.0, 0.0, -9.81)
_NO_LIMIT = sys.float_info.max  # many readers take no "inf", and a limit must have a number


def write_urdf(mechanism: Mechanism, path: str | Path) -> None:
    """Write a mechanism as URDF, all at once: a write that fails leaves what was there before.

    Read back it moves as before, link for link and frame for frame; its joints then come depth first. A helical joint
    is written as a hinge and a slide that mimics it. Viscous friction, and the damper of a spring, are <dynamics>
    ``damping``, Coulomb friction is ``friction`` (N m or N, with a sharp sign). The spring of a joint is
    ``spring_stiffness`` and ``spring_reference``; motors are transmissions; a rotor inertia seen from the joint is that
    of a motor with the ratio 1 that the base carries. A ``ModelWarning`` tells what is not written: gravity other than
    (0, 0, -9.81), and forces and limits that URDF has no word for. Loops and spherical joints are refused.

    Example:
        >>> import tempfile
        >>> from torsor.formats import read_urdf
        >>> from torsor.mechanism import assemble
        >>> arm = Link("arm", 1.0, (0.5, 0, 0), np.diag([0.01, 0.1, 0.1]))
        >>> robot = assemble("arm", [Link("ground"), arm], [Joint("hinge", "continuous", "ground", "arm")])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_urdf(robot, folder + "/arm.urdf")
        ...     read_urdf(Path(folder, "arm.urdf")) == robot
        True
    """
    put(path, (".urdf",), _Writer(mechanism, Path(path)).content)


class _Writer:
    """One file being made."""

    def __init__(self, mechanism: Mechanism, path: Path):
        self.mechanism, self.path, self.source = mechanism, path, path.name
        self.left_out = LeftOut()
        self.root = ET.Element("robot", {"name": mechanism.name})

    def content(self) -> bytes:
        m = self.mechanism
        if m.loops:
            found = f"{m.loops[0].name!r} closes a loop, which URDF cannot say"
            fix = "save as .xml (MJCF) or .toml, or open it: robot.without_loop(name)"
            raise ModelError(describe(found, where=self.source, fix=fix))
        usual = np.array_equal(m.gravity, _USUAL_GRAVITY)
        self.left_out.note("gravity, which readers take to be (0, 0, -9.81)", str(m.gravity.tolist()), not usual)
        self.left_out.note("active coordinates", ", ".join(m.active), m.active)
        moving = list(plain_joints(m, lambda joint: joint.type in _TYPES, self.source, self.left_out))
        self.joints = {joint.name for _, joint in moving}
        self.links = {*m.places, *(link.name for link, _ in moving)}
        self._link(m.base)
        for link, joint in moving:
            self._link(link)
            self._joint(joint)
        for frame in m.frames:
            add(self.root, "link", name=frame.name)
            self._fixed(frame.name, frame.link, frame.pose)
        self._motors([joint for _, joint in moving])
        self.left_out.tell(self.source, "URDF")
        return content(self.root, self.source)

    # Links

    def _link(self, link: Link) -> None:
        element = add(self.root, "link", name=link.name)
        if link.mass or link.inertia.any():
            inertial = add(element, "inertial")
            add(inertial, "origin", xyz=link.com, rpy="0 0 0")
            add(inertial, "mass", value=link.mass)
            inertia = (link.inertia + link.inertia.T) / 2
            upper = {f"i{'xyz'[i]}{'xyz'[j]}": inertia[i, j] for i in range(3) for j in range(i, 3)}
            add(inertial, "inertia", **upper)
        for k, visual in enumerate(link.visuals):
            self._visual(element, visual, f"{link.name}/{k}")

    def _visual(self, element: ET.Element, visual: Visual, material: str) -> None:
        shapes = [visual]
        if visual.shape == "capsule":  # a word that few readers have: it looks as a cylinder and two spheres do
            radius, length = visual.size
            ends = [visual.pose @ make_pose(p=[0, 0, side * length / 2]) for side in (-1, 1)]
            shapes = [replace(visual, shape="cylinder")]
            shapes += [replace(visual, shape="sphere", size=(radius,), pose=end) for end in ends]
        for shape in shapes:
            made = add(element, "visual", name=shape.name or None)
            _origin(made, shape.pose)
            add(add(made, "geometry"), shape.shape, **self._size(shape))
            if shape.color is not None:
                add(add(made, "material", name=material), "color", rgba=shape.color)

    def _size(self, visual: Visual) -> dict[str, Any]:
        if visual.shape == "mesh":
            file = visual.mesh or ""
            if visual.path and not file.startswith("package://"):
                file = seen_from(self.path, visual.path)
            return {"filename": file, "scale": visual.size}
        if visual.shape == "box":
            return {"size": visual.size}
        return dict(zip(("radius", "length"), visual.size, strict=False))

    # Joints

    def _fixed(self, child: str, parent: str, pose: Array) -> None:
        name = free_name(f"{child}/fixed", self.joints)
        self.joints.add(name)
        element = add(self.root, "joint", name=name, type="fixed")
        _origin(element, pose)
        add(element, "parent", link=parent)
        add(element, "child", link=child)

    def _joint(self, joint: Joint) -> None:
        at, child = _axis_pose(joint), joint.child
        if not np.array_equal(at, np.eye(4)):
            child = free_name(f"{joint.child}/axis", self.links)
            self.links.add(child)
            add(self.root, "link", name=child)
            self._fixed(joint.child, child, inverse_pose(at))
        kind = _TYPES[joint.type]
        if joint.type in ("revolute", "continuous"):
            kind = "revolute" if limited(joint) else "continuous"
        element = add(self.root, "joint", name=joint.name, type=kind)
        _origin(element, joint.placement @ at)
        add(element, "parent", link=joint.parent)
        add(element, "child", link=child)
        if kind != "floating":
            add(element, "axis", xyz="0 0 1" if kind == "planar" else joint.axis)
        self._limits(element, joint, kind)
        self._dynamics(element, joint)
        if joint.follows:
            add(element, "mimic", joint=joint.coordinate, multiplier=joint.ratio, offset=joint.offset)

    def _limits(self, element: ET.Element, joint: Joint, kind: str) -> None:
        limits = {"effort": self._one(joint, "effort_limit"), "velocity": self._one(joint, "velocity_limit")}
        if kind in ("revolute", "prismatic"):
            limits = {"lower": float(np.ravel(joint.lower)[0]), "upper": float(np.ravel(joint.upper)[0])} | limits
        else:
            self.left_out.note("position limits", joint.name, limited(joint))
        if kind in ("revolute", "prismatic") or np.isfinite(list(limits.values())).any():
            add(element, "limit", **{key: np.clip(value, -_NO_LIMIT, _NO_LIMIT) for key, value in limits.items()})

    def _dynamics(self, element: ET.Element, joint: Joint) -> None:
        viscous, coulomb, found = self._one(joint, "viscous"), self._one(joint, "coulomb"), dict[str, Any]()
        self.left_out.note("smooth Coulomb friction, which is written as sharp", joint.name, coulomb and joint.smooth)
        motor, spring = joint.motor, joint.spring
        if spring is not None:
            viscous += spring.damping
            if isinstance(spring.stiffness, str):
                self.left_out.note("stiffness that is no number", joint.name)
            else:
                found = {"spring_stiffness": spring.stiffness, "spring_reference": spring.rest}
        if motor is not None and not motor.is_elastic:
            viscous += motor.viscous
        if viscous or coulomb or found:
            add(element, "dynamics", damping=viscous, friction=coulomb, **found)

    def _one(self, joint: Joint, key: str) -> float:
        """Return the number that stands for all velocities of a joint, or leave out numbers that differ."""
        values = np.ravel(getattr(joint, key))
        if (values == values[0]).all():
            return float(values[0])
        self.left_out.note(f"{key} that differs between the velocities of a joint", joint.name)
        return math.inf if key.endswith("limit") else 0.0

    # Motors

    def _motors(self, joints: list[Joint]) -> None:
        """Add the motors, and the rotor inertias, those of joints that follow at the joints that lead them."""
        armature: dict[str, float] = defaultdict(float)
        for joint in joints:
            if joint.nv == 1:
                share = joint.ratio if joint.follows else 1.0
                armature[joint.coordinate] += share**2 * float(np.ravel(joint.rotor_inertia)[0])
            else:
                self.left_out.note(
                    "rotor inertia of joints with several velocities", joint.name, np.any(joint.rotor_inertia)
                )
        for joint in joints:
            motor, seen = joint.motor, armature[joint.name] if joint.nv == 1 else 0.0
            if motor is None:
                if seen:
                    self._transmission(joint, Motor(self.mechanism.base.name, seen))
                continue
            self.left_out.note("smooth friction of motors", joint.name, motor.coulomb and motor.smooth)
            if motor.is_elastic:
                self.left_out.note("rotor inertia of elastic joints beside that of the motor", joint.name, seen)
                self.left_out.note("viscous friction of the motors of elastic joints", joint.name, motor.viscous)
            elif seen:  # one rotor with the same momentum in its carrier, and the inertia of both for its joint
                spin, whole = motor.inertia * motor.ratio, motor.inertia * motor.ratio**2 + seen
                if spin:
                    motor = replace(motor, inertia=spin**2 / whole, ratio=whole / spin)
                else:
                    motor = replace(motor, carrier=self.mechanism.base.name, inertia=seen, ratio=1.0)
            self._transmission(joint, motor)

    def _transmission(self, joint: Joint, motor: Motor) -> None:
        self.root.set("xmlns:drake", "http://drake.mit.edu")  # whose words the rotor has
        element = add(self.root, "transmission", name=f"{joint.name}/motor")
        add(element, "type").text = "transmission_interface/SimpleTransmission"
        add(element, "joint", name=joint.name)
        actuator = add(element, "actuator", name=f"{joint.name}/motor")
        add(actuator, "drake:rotor_inertia", value=motor.inertia)
        add(actuator, "drake:gear_ratio", value=motor.ratio)
        add(element, "carrier", link=motor.carrier)
        add(element, "axis", xyz=motor.axis)
        if isinstance(motor.stiffness, str):
            found = f"the spring between joint {joint.name!r} and its motor has the stiffness {motor.stiffness!r}"
            raise ModelError(describe(found, where=self.source, allowed="a number", fix="save as .toml"))
        if motor.stiffness is not None:
            add(element, "stiffness", value=motor.stiffness)
            add(element, "damping", value=motor.damping)
        if motor.coulomb:
            add(element, "friction", value=motor.coulomb)


def _axis_pose(joint: Joint) -> Array:
    """Return the pose, in the child's axes, of the frame that URDF lets the joint move: its origin is on the axis."""
    if joint.type in ("prismatic", "free"):  # wherever its axis is, a slide is the same
        return np.eye(4)
    along = joint.axis * (joint.axis @ joint.point)
    across = joint.point - along
    if np.linalg.norm(across) <= 1e-15 * np.linalg.norm(joint.point):
        across = np.zeros(3)
    # Some readers take the normal of a planar joint to be z, whatever its axis.
    return make_pose(joint.frame[:3, :3] if joint.type == "planar" else None, across)


def _origin(element: ET.Element, T: Array) -> None:
    if not np.array_equal(T, np.eye(4)):
        add(element, "origin", xyz=T[:3, 3], rpy=_rpy(T[:3, :3]))


def _rpy(R: Array) -> Array:
    """Return angles that give a rotation to the last digit or so, short ones where there are."""
    exact = to_rpy(R)
    short = np.array([round(float(angle), 14) for angle in exact])
    rpy = np.where(np.abs(short - exact) <= 2e-16, short, exact)  # 0.3, not 0.30000000000000004
    if np.abs(from_rpy(rpy) - R).max() <= 4e-16:
        return rpy
    # Near a pitch of a quarter turn, roll and yaw are known by their sum only: what yaw lacks, roll has to have.
    yaw = math.atan2(R[1, 0], R[0, 0])
    c, s = math.cos(yaw), math.sin(yaw)
    pitch = math.atan2(-R[2, 0], c * R[0, 0] + s * R[1, 0])
    roll = math.atan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    return np.array([roll, pitch, yaw])
