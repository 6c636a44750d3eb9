"""Writing MJCF, which MuJoCo and ``read_mjcf`` read.

MuJoCo has no moving bodies without mass, but bodies with several joints, which act in their order: hinges with massless
links between them are joints of one body.
"""

import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from torsor.errors import ModelError, describe
from torsor.formats.mjcf_closing import write_equalities
from torsor.formats.plain_joints import limited, plain_joints
from torsor.formats.xml_writing import LeftOut, add, content, put, seen_from
from torsor.mechanism import Coupling, Joint, Link, Mechanism, Visual
from torsor.mechanism.assemble import free_name
from torsor.spatial import inverse_pose, to_quaternion

__all__ = ["write_mjcf"]

Array = NDArray[np.float64]

_TYPES = {"revolute": "hinge", "continuous": "hinge", "prismatic": "slide", "spherical": "ball", "free": "free"}
_WORLD = "world"  # what MuJoCo calls its base
_LEAST = 1e-14  # kg, or kg m^2: MuJoCo refuses moving bodies with less than 1e-15
_MOST_DOFS = 6  # of one body, in MuJoCo
_MESHES = (".stl", ".obj", ".msh")


def write_mjcf(mechanism: Mechanism, path: str | Path) -> None:
    """Write a mechanism as MJCF, all at once: a write that fails leaves what was there before.

    Bodies have the names and frames of links, sites those of frames; the base is a body that stands still, unless it is
    named ``world``. A massless link whose only load is the next joint is no body: both joints belong to the body behind
    it. One that must be a body, and a link without inertia about an axis, get 1e-14 kg and kg m^2. A planar joint is
    written as two slides and a hinge with the names of its coordinates, a helical one as a hinge and a slide.

    ``damping`` is the viscous friction with that of the spring, ``frictionloss`` the Coulomb friction: MuJoCo makes it
    a soft constraint that holds the joint at rest, where sign(0) = 0 here. ``armature`` is the rotor inertia and that
    of a rigid motor by its ratio squared. Joints that follow others, couplings of one or two coordinates and loops that
    are welds, spherical or revolute (two points on the axis) are <equality>; active coordinates have a motor each. A
    ``ModelWarning`` tells what is not written; other loops and elastic joints are refused.

    Example:
        >>> import tempfile
        >>> from torsor.mechanism import assemble
        >>> arm = Link("arm", 1.0, (0.5, 0, 0), np.diag([0.01, 0.1, 0.1]))
        >>> robot = assemble("arm", [Link("world"), arm], [Joint("hinge", "continuous", "world", "arm")])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_mjcf(robot, folder + "/arm.xml")
        ...     '<joint name="hinge" type="hinge"' in Path(folder, "arm.xml").read_text()
        True
    """
    put(path, (".xml", ".mjcf"), _Writer(mechanism, Path(path)).content)


class _Row(NamedTuple):
    """Joints on their way into one body: where they hang, and each with its placement."""

    parent: ET.Element
    joints: tuple[Joint, ...]


class _Writer:
    """One file being made."""

    def __init__(self, mechanism: Mechanism, path: Path):
        self.mechanism, self.path, self.source = mechanism, path, path.name
        self.left_out = LeftOut()
        self.root = ET.Element("mujoco", {"model": mechanism.name})
        add(self.root, "compiler", angle="radian", autolimits="true", inertiafromgeom="false")
        add(self.root, "option", gravity=mechanism.gravity)
        self.geoms: set[str] = set()
        self.assets: dict[tuple[Any, ...], str] = {}
        self.asset, self.world = add(self.root, "asset"), add(self.root, "worldbody")
        self.bodies: dict[str, ET.Element] = {}

    def content(self) -> bytes:
        m = self.mechanism
        self._refuse()
        moving = list(plain_joints(m, self._has, self.source, self.left_out))
        self._base(m.base)
        carried = Counter(joint.parent for _, joint in moving)
        places = {frame.name: frame.link for frame in m.frames}
        ends = {places.get(end, end) for loop in m.loops if not isinstance(loop, Coupling) for end in (loop.a, loop.b)}
        needed = {*places.values(), *ends}  # bodies, however light, for something is fixed to them
        below = {joint.parent: joint for _, joint in moving}
        rows: dict[str, _Row] = {}
        for link, joint in moving:
            row = rows.pop(joint.parent, None)
            row = _Row(self._parent(joint), (joint,)) if row is None else _Row(row.parent, (*row.joints, joint))
            empty = not (link.mass or link.inertia.any() or link.visuals) and link.name not in needed
            if empty and carried[link.name] == 1 and _go_on(row.joints, below[link.name]):
                rows[link.name] = row
            else:
                self._body(link, row)
        for frame in m.frames:
            add(self.bodies[frame.link], "site", name=frame.name, **_place(frame.pose))
        write_equalities(self.root, self.bodies, m, [joint for _, joint in moving], self.source)
        self._actuators()
        if not len(self.asset):
            self.root.remove(self.asset)
        self.left_out.tell(self.source, "MJCF")
        return content(self.root, self.source)

    def _refuse(self) -> None:
        m = self.mechanism
        for joint in m.elastic:
            found, fix = f"joint {joint.name!r} is elastic: its motor has a coordinate of its own", "save as .urdf"
            raise ModelError(describe(found, where=self.source, fix=f"{fix}, or make it rigid with with_motor"))
        if _WORLD in m.link_names:
            found, fix = f"a moving link is named {_WORLD!r}, as MuJoCo names its base", "give it another name"
            raise ModelError(describe(found, where=self.source, fix=fix))
        for link in m.links:
            if link.defect:
                raise ModelError(f"{self.source}: MuJoCo refuses it: {link.defect}")

    def _has(self, joint: Joint) -> bool:
        """Whether MuJoCo has such a joint: a free one only on the world, where it counts from the origin."""
        if joint.type == "free":
            return joint.parent == self.mechanism.base.name and np.array_equal(joint.placement, np.eye(4))
        return joint.type in _TYPES

    # Bodies

    def _base(self, base: Link) -> None:
        if base.name == _WORLD:
            self.left_out.note("mass of the base", base.name, base.mass or base.inertia.any())
            self.bodies[base.name] = self.world
        else:
            self.bodies[base.name] = add(self.world, "body", name=base.name)
            if base.mass > _LEAST and not base.defect:
                self._inertial(self.bodies[base.name], base)
            else:
                self.left_out.note("inertia of the base", base.name, base.mass or base.inertia.any())
        self._geoms(base)

    def _parent(self, joint: Joint) -> ET.Element:
        return self.world if joint.type == "free" else self.bodies[joint.parent]

    def _body(self, link: Link, row: _Row) -> None:
        """Add the body of a link with the joints before it, in the frame that it has when all of them are at zero."""
        behind, places = np.eye(4), []
        for joint in reversed(row.joints):  # of each joint: the pose of its own link, seen from the body
            places.append(inverse_pose(behind))
            behind = joint.placement @ behind
        body = self.bodies[link.name] = add(row.parent, "body", name=link.name, **_place(behind))
        self._inertial(body, link)
        for joint, place in zip(row.joints, reversed(places), strict=True):
            self._joint(body, joint, place)
        self._geoms(link)

    def _inertial(self, body: ET.Element, link: Link) -> None:
        """Add mass and inertia, in principal axes: MuJoCo would look for them less exactly."""
        inertia = (link.inertia + link.inertia.T) / 2
        diagonal = np.count_nonzero(inertia - np.diag(np.diag(inertia))) == 0
        moments, R = (np.diag(inertia), np.eye(3)) if diagonal else np.linalg.eigh(inertia)
        light = "mass or inertia of 0 in moving bodies, which is written as 1e-14"
        self.left_out.note(light, link.name, min(link.mass, *moments) < _LEAST)
        moments = np.maximum(moments, _LEAST)
        moments = np.minimum(moments, moments.sum() - moments)  # none is larger than the sum of the others, to rounding
        R = R * np.sign(np.linalg.det(R))
        quat = None if diagonal else np.roll(to_quaternion(R), 1)
        add(body, "inertial", pos=link.com, quat=quat, mass=max(link.mass, _LEAST), diaginertia=moments)

    def _geoms(self, link: Link) -> None:
        for visual in link.visuals:
            size, mesh = visual.size, None
            if visual.shape == "mesh":
                mesh, size = self._mesh(visual), None  # type: ignore[assignment]
                if mesh is None:
                    self.left_out.note("meshes that are not found or no .stl, .obj or .msh", visual.mesh or link.name)
                    continue
            elif visual.shape == "box":
                size = tuple(np.array(size) / 2)
            elif visual.shape != "sphere":
                size = size[0], size[1] / 2
            look = {"type": visual.shape, "mesh": mesh, "size": size, "rgba": visual.color}
            unfelt = {"contype": "0", "conaffinity": "0", "group": "2"}
            name = free_name(visual.name, self.geoms) if visual.name else None
            self.geoms |= {name} if name else set()
            add(self.bodies[link.name], "geom", name=name, **look, **_place(visual.pose), **unfelt)

    def _mesh(self, visual: Visual) -> str | None:
        """Return the asset of a mesh, where MuJoCo can have one: it refuses files whose meshes it does not find."""
        if not visual.path or not Path(visual.path).is_file() or Path(visual.path).suffix.lower() not in _MESHES:
            return None
        file = seen_from(self.path, visual.path)
        name = self.assets.get((file, *visual.size))
        if name is None:
            name = free_name(Path(file).stem, self.assets.values())
            self.assets[(file, *visual.size)] = name
            add(self.asset, "mesh", name=name, file=file, scale=visual.size)
        return name

    # Joints

    def _joint(self, body: ET.Element, joint: Joint, place: Array) -> None:
        """Add a joint to a body from which its own link is seen at ``place``."""
        kind, single = _TYPES[joint.type], joint.nv == joint.nq == 1
        settings: dict[str, Any] = {"name": joint.name, "type": kind}
        if kind != "free":
            settings["pos"] = _unless_zero(place[:3, :3] @ joint.point + place[:3, 3]) if kind != "slide" else None
            settings["axis"] = place[:3, :3] @ joint.axis if kind != "ball" else None
        settings |= self._passive(joint) | (self._limits(joint) if single else {})
        if not single:
            bounded = limited(joint) or np.isfinite(joint.effort_limit).any()
            self.left_out.note(f"limits of {joint.type} joints", joint.name, bounded)
        self.left_out.note("velocity limits", joint.name, np.isfinite(joint.velocity_limit).any())
        add(body, "joint", **settings)

    def _limits(self, joint: Joint) -> dict[str, Any]:
        lower, upper = float(np.ravel(joint.lower)[0]), float(np.ravel(joint.upper)[0])
        effort, found = float(np.ravel(joint.effort_limit)[0]), dict[str, Any]()
        if np.isfinite([lower, upper]).any():
            self.left_out.note("limits that leave no room", joint.name, lower == upper)
            found |= {"range": [lower, upper]} if lower < upper else {}
        if np.isfinite(effort):
            self.left_out.note("effort limits of 0", joint.name, effort == 0)
            found |= {"actuatorfrcrange": [-effort, effort]} if effort else {}
        return found

    def _passive(self, joint: Joint) -> dict[str, Any]:
        """Return armature, friction and spring; what is not the same for all velocities of a joint is left out."""
        one = {key: self._one(joint, key) for key in ("viscous", "coulomb", "rotor_inertia")}
        found: dict[str, Any] = {}
        smooth = joint.smooth if one["coulomb"] else 0.0
        if joint.motor is not None:
            motor = joint.motor
            one["rotor_inertia"] += motor.ratio**2 * motor.inertia
            one["viscous"], one["coulomb"] = one["viscous"] + motor.viscous, one["coulomb"] + motor.coulomb
            smooth = max(smooth, motor.smooth if motor.coulomb else 0.0)
            moved = motor.carrier != self.mechanism.base.name and motor.inertia * motor.ratio
            self.left_out.note(
                "the spin that rotors have in moving links (their armature is written)", joint.name, moved
            )
        self.left_out.note("smooth Coulomb friction, which is written as sharp", joint.name, smooth)
        if joint.spring is not None:
            one["viscous"] += joint.spring.damping
            law = isinstance(joint.spring.stiffness, str)
            self.left_out.note("stiffness that is no number", joint.name, law)
            found = {} if law else {"stiffness": joint.spring.stiffness, "springref": joint.spring.rest}
        words = {"viscous": "damping", "coulomb": "frictionloss", "rotor_inertia": "armature"}
        for key, word in words.items():
            if joint.type == "free" and key != "viscous":
                self.left_out.note(f"{key} of free joints", joint.name, one[key])
            elif one[key]:
                found[word] = one[key]
        return found

    def _one(self, joint: Joint, key: str) -> float:
        values = np.ravel(getattr(joint, key))
        if (values == values[0]).all():
            return float(values[0])
        self.left_out.note(f"{key} that differs between the velocities of a joint", joint.name)
        return 0.0

    def _actuators(self) -> None:
        single = {
            element.get("name") for element in self.root.iter("joint") if element.get("type") in ("hinge", "slide")
        }
        driven = [name for name in self.mechanism.active if name in single]
        for name in self.mechanism.active:
            self.left_out.note("motors of joints with several velocities", name, name not in single)
        if driven:
            actuator = add(self.root, "actuator")
            for name in driven:
                add(actuator, "motor", name=name, joint=name)


def _go_on(joints: tuple[Joint, ...], after: Joint) -> bool:
    """Whether one body can have these joints and the next one: in MuJoCo a ball is the last turn, free joints alone."""
    ends = any(joint.type in ("free", "spherical") for joint in joints) or after.type == "free"
    return not ends and sum(joint.nv for joint in (*joints, after)) <= _MOST_DOFS


def _unless_zero(p: Array) -> Array | None:
    return p if p.any() else None


def _place(T: Array) -> dict[str, Any]:
    """Return the attributes of a pose, without what is zero anyway."""
    turned = not np.array_equal(T[:3, :3], np.eye(3))
    return {"pos": _unless_zero(T[:3, 3]), "quat": np.roll(to_quaternion(T[:3, :3]), 1) if turned else None}
