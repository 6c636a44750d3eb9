"""Joints of SDF: trees of them, cut joints where a link has a second parent, and gearboxes as couplings."""

import math
import sys
from typing import Any, NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import direction
from torsor.base.errors import ModelError, describe
from torsor.base.faults import refuse_or_warn
from torsor.formats.sdf.frames import WORLD, SdfFrame, relative_pose
from torsor.formats.sdf.models import Part
from torsor.formats.sdf.unread import Unread
from torsor.formats.sdf.values import flag_of, number_of, numbers_of, text_of, where_of
from torsor.mechanism import Coupling, Frame, Joint, Link, Loop, Spring
from torsor.mechanism.loops import Closure
from torsor.mechanism.names import claim_name
from torsor.spatial import axis_frame, make_pose

_KINDS = {
    "revolute": "revolute",
    "continuous": "continuous",
    "prismatic": "prismatic",
    "screw": "helical",
    "ball": "spherical",
    "fixed": "fixed",
}
_TWO_AXES = ("universal", "revolute2")
_TYPES = (*_KINDS, *_TWO_AXES, "gearbox")
# The cut joints that a joint with a link that has a parent already becomes.
_CUTS = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "ball": "spherical",
    "universal": "universal",
    "fixed": "weld",
}
ROTOR, GEAR = "drake:rotor_inertia", "drake:gear_ratio"  # Drake's elements of a joint, as text
_NO_LIMIT = 1e16  # SDF's default of limits
_PARALLEL = 1e-6  # largest sine of the angle between an axis of a gearbox and its joint


class Joints(NamedTuple):
    """The joints of a model, the links between axes of universal joints, frames and equations of closed loops."""

    joints: list[Joint]
    links: list[Link]
    frames: list[Frame]
    loops: list[Closure]


def read_joints(parts: list[Part], strict: bool, unread: Unread, taken: set[str]) -> Joints:
    """Return the joints of a model; a link that has a parent already is closed to another one by a cut joint.

    ``taken`` are the names of links and frames, to which those that are made here are added.
    """
    reader = _JointReader(strict, unread, taken, parts)
    for part in parts:
        reader.read(part)
    for part in parts:
        if part.element.get("type") == "gearbox":
            reader.gearbox(part)
    return reader.found


class _JointReader:
    """The state of reading the joints of a model."""

    def __init__(self, strict: bool, unread: Unread, taken: set[str], parts: list[Part]):
        self.strict, self.unread, self.taken = strict, unread, taken
        self.names = {part.frame.name for part in parts}
        self.two_axes = {part.frame.name for part in parts if part.element.get("type") in _TWO_AXES}
        self.found = Joints([], [], [], [])
        self.children: set[str] = set()
        self.hinges: dict[frozenset[str], tuple[Joint, Array]] = {}  # by its two links, with the axis in the world

    def read(self, part: Part) -> None:
        """Add a joint, or the two joints of one with two axes, or a loop."""
        kind, where = part.element.get("type", ""), part.frame.where
        if kind not in _TYPES:
            raise ModelError(describe(f"unknown joint type {kind!r}", where=where, allowed=", ".join(_TYPES)))
        if kind == "gearbox":
            return
        parent, child = (self._end(part, role).carrier() for role in ("parent", "child"))
        if child.kind == WORLD:
            raise ModelError(describe("the child is the world", where=where, fix="make the world the parent"))
        if parent is child:
            raise ModelError(describe(f"both ends are parts of {child.name!r}", where=where, allowed="two links"))
        closing = child.name in self.children
        if self._rotor(part) and (closing or kind in (*_TWO_AXES, "fixed", "ball")):
            self.unread.note(f"<{ROTOR}> of a joint that closes a loop or has not one axis", part.element)
        if closing:
            self._loop(part, kind, parent, child)
            return
        self.children.add(child.name)
        placement, at = relative_pose(parent, child), relative_pose(child, part.frame)
        if kind in _TWO_AXES:
            middle, name = claim_name(f"{part.frame.name}/axis", self.taken), part.frame.name
            self.found.links.append(Link(middle))
            axes = [self._axis(part, tag, child) for tag in ("axis", "axis2")]
            first, second = (claim_name(f"{name}/{tag}", self.names) for tag in ("axis", "axis2"))
            settings = [self._settings(part, tag) for tag in ("axis", "axis2")]
            self._add(Joint(first, "revolute", parent.name, middle, placement, axes[0], at[:3, 3], **settings[0]))
            self._add(Joint(second, "revolute", middle, child.name, np.eye(4), axes[1], at[:3, 3], **settings[1]))
            return
        more: dict[str, Any] = {"source": part.scope.source}
        if kind not in ("fixed", "ball"):
            more |= self._settings(part, "axis") | {"axis": self._axis(part, "axis", child)}
            more["rotor_inertia"] = self._rotor(part)
        if kind not in ("fixed", "prismatic"):
            more["point"] = at[:3, 3]
        if kind == "screw":
            more["pitch"] = self._pitch(part)
        if kind == "continuous":
            more |= {"lower": -math.inf, "upper": math.inf}
        joint = Joint(part.frame.name, _KINDS[kind], parent.name, child.name, placement, **more)
        self._add(joint)
        if kind in ("revolute", "continuous"):
            axis = child.in_world()[:3, :3] @ joint.axis
            self.hinges[frozenset((parent.name, child.name))] = joint, axis

    def _add(self, joint: Joint) -> None:
        self.found.joints.append(joint)

    def _end(self, part: Part, role: str) -> SdfFrame:
        name = text_of(part.element, role)
        if not name:
            fix = f"add <{role}>...</{role}>"
            raise ModelError(describe(f"no <{role}>", where=part.frame.where, fix=fix))
        return part.scope.find(name, part.frame.where)

    def _axis(self, part: Part, tag: str, child: SdfFrame) -> Array:
        """Return a unit vector along an axis, in the axes of the child."""
        axis, source, owner = part.element.find(tag), part.scope.source, f"joint {part.frame.name!r}"
        if axis is None:
            raise ModelError(describe(f"no <{tag}>", where=part.frame.where, fix=f"add <{tag}><xyz>...</xyz></{tag}>"))
        given = axis.find("xyz")
        xyz = np.array([0.0, 0.0, 1.0]) if given is None else numbers_of(given, 3, source, owner, sys.float_info.max)
        frame, where = part.frame, where_of(axis, source, owner)
        expressed_in = "" if given is None else (given.get("expressed_in") or "").strip()
        if expressed_in:
            frame = part.scope.find(expressed_in, where)
        elif flag_of(axis, "use_parent_model_frame", source, owner, default=part.scope.version < (1, 5)):
            frame = part.scope.frame
        return relative_pose(child, frame)[:3, :3] @ direction(xyz, where, "axis")

    def _pitch(self, part: Part) -> float:
        """Return the advance of a screw in m/rad; <thread_pitch> is rad/m of a left-handed thread."""
        source, owner = part.scope.source, f"joint {part.frame.name!r}"
        if part.element.find("screw_thread_pitch") is None and part.element.find("thread_pitch") is not None:
            turns = number_of(part.element, "thread_pitch", None, source, owner)
            if not turns:
                where = part.frame.where
                raise ModelError(describe("thread_pitch is 0", where=where, allowed="any other number (rad/m)"))
            return -1.0 / turns
        return number_of(part.element, "screw_thread_pitch", 1.0, source, owner) / (2 * math.pi)

    def _rotor(self, part: Part) -> float:
        """Return the rotor inertia after the gear, as Drake takes it: without the gyroscopic moments of the rotor."""
        owner = f"joint {part.frame.name!r}"
        inertia, ratio = (
            float(
                next((numbers_of(each, 1, part.scope.source, owner)[0] for each in part.element if each.tag == tag), x)
            )
            for tag, x in ((ROTOR, 0.0), (GEAR, 1.0))
        )
        return inertia * ratio * ratio  # ** raises an error of its own where it overflows

    def _settings(self, part: Part, tag: str) -> dict[str, Any]:
        """Return limits, friction, spring and leader of an axis."""
        axis, source, owner = part.element.find(tag), part.scope.source, f"joint {part.frame.name!r}"
        found: dict[str, Any] = {"source": source}
        limit, dynamics = (None if axis is None else axis.find(key) for key in ("limit", "dynamics"))
        for key in ("effort", "velocity"):
            most = number_of(limit, key, -1.0, source, owner, most=math.inf)
            found[f"{key}_limit"] = most if 0 <= most < sys.float_info.max else math.inf  # below 0: no limit
        ends = [
            number_of(limit, key, sign * _NO_LIMIT, source, owner, most=math.inf)
            for key, sign in (("lower", -1), ("upper", 1))
        ]
        if ends[0] > ends[1]:
            text = f"lower limit {ends[0]:g} is above upper limit {ends[1]:g}"
            message = describe(text if self.strict else f"{text}: read as no limit", where=part.frame.where)
            refuse_or_warn(message, self.strict)
            ends = [-math.inf, math.inf]
        found["lower"], found["upper"] = (x if abs(x) < _NO_LIMIT else math.copysign(math.inf, x) for x in ends)
        for key, name in (("viscous", "damping"), ("coulomb", "friction")):
            found[key] = number_of(dynamics, name, 0.0, source, owner)
        stiffness = number_of(dynamics, "spring_stiffness", 0.0, source, owner)
        if stiffness:
            rest = number_of(dynamics, "spring_reference", 0.0, source, owner)
            found["spring"] = Spring(stiffness, rest=rest, source=part.frame.where)
        return found | self._mimic(part, axis)

    def _mimic(self, part: Part, axis: Any) -> dict[str, Any]:
        """Return the leader of an axis: position = multiplier (position of the leader - reference) + offset."""
        mimic = None if axis is None else axis.find("mimic")
        if mimic is None:
            return {}
        source, owner, where = part.scope.source, f"joint {part.frame.name!r}", part.frame.where
        leader = part.scope.find((mimic.get("joint") or "").strip(), where)
        if leader.kind != "joint" or leader is part.frame:
            raise ModelError(describe(f"<mimic> of {mimic.get('joint')!r}", where=where, allowed="another joint"))
        ratio, offset, reference = (
            number_of(mimic, key, default, source, owner)
            for key, default in (("multiplier", 1.0), ("offset", 0.0), ("reference", 0.0))
        )
        name, which = leader.name, (mimic.get("axis") or "axis").strip()
        name = f"{name}/{which}" if name in self.two_axes else name
        return {"coordinate": name, "ratio": ratio, "offset": offset - ratio * reference}

    def _loop(self, part: Part, kind: str, parent: SdfFrame, child: SdfFrame) -> None:
        """Add a cut joint between a link and one that has a parent already; its frames have the axes along z."""
        name, where = part.frame.name, part.frame.where
        if kind not in _CUTS:
            found = f"a {kind} joint closes a loop at {child.name!r}, which has a parent joint already"
            raise ModelError(describe(found, where=where, allowed=", ".join(_CUTS)))
        turns = [np.eye(3)] * 2
        if kind not in ("ball", "fixed"):
            turns = [axis_frame(self._axis(part, "axis", part.frame))] * 2
            settings = self._settings(part, "axis")
            ignored = any(settings.pop(key, 0.0) for key in ("viscous", "coulomb", "spring", "coordinate"))
            ignored = ignored or bool(np.isfinite([v for v in settings.values() if isinstance(v, float)]).any())
            if ignored:
                self.unread.note("limits, friction, springs and <mimic> of joints that close loops", part.element)
        if kind == "universal":
            turns[1] = axis_frame(self._axis(part, "axis2", part.frame))
        ends = []
        for side, link, turn in (("a", parent, turns[0]), ("b", child, turns[1])):
            ends.append(claim_name(f"{name}/{side}", self.taken))
            pose = relative_pose(link, part.frame) @ make_pose(turn)
            self.found.frames.append(Frame(ends[-1], link.name, pose))
        self.found.loops.append(Loop(name, ends[0], ends[1], _CUTS[kind], source=part.scope.source))

    def gearbox(self, part: Part) -> None:
        """Add theta_2 = -ratio theta_1: the angles of child and parent about the axes, from the reference body."""
        source, owner, where = part.scope.source, f"joint {part.frame.name!r}", part.frame.where
        reference = part.scope.find(text_of(part.element, "gearbox_reference_body"), where).carrier()
        ratio = number_of(part.element, "gearbox_ratio", 1.0, source, owner)
        factors: dict[str, float] = {}
        for role, tag, factor in (("parent", "axis", ratio), ("child", "axis2", 1.0)):
            link = self._end(part, role).carrier()
            hinge = self.hinges.get(frozenset((reference.name, link.name)))
            if hinge is None:
                found = f"no hinge between the gearbox_reference_body {reference.name!r} and {link.name!r}"
                raise ModelError(describe(found, where=where, fix="add a revolute joint of these links"))
            joint, axis = hinge
            own = link.in_world()[:3, :3] @ self._axis(part, tag, link)
            if np.linalg.norm(np.cross(own, axis)) > _PARALLEL:
                raise ModelError(describe(f"<{tag}> is not along the axis of joint {joint.name!r}", where=where))
            sign = math.copysign(1.0, float(own @ axis)) * (1.0 if joint.child == link.name else -1.0)
            factors[joint.name] = factors.get(joint.name, 0.0) + sign * factor
        self.found.loops.append(Coupling(part.frame.name, factors, source=source))
