"""Reading SDFormat, the Gazebo format, versions 1.2 and later.

A model is a graph of links at poses, with joints between them. Its positions are zero at the poses of the file.
"""

import math
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import direction
from torsor.base.errors import ModelError, listing, warn
from torsor.base.faults import refuse_or_warn
from torsor.formats.sdf.models import (
    THE_WORLD,
    WORLD,
    Model,
    Part,
    SdfFrame,
    number_of,
    numbers_of,
    pose_of,
    read_model,
    relative_pose,
)
from torsor.formats.xml import FLAGS, Element, flag_of, parse_xml, text_of, where_is
from torsor.mechanism import Coupling, Frame, Joint, Link, Loop, Mechanism, Shape, Spring, Visual, build
from torsor.mechanism.loops import Closure
from torsor.mechanism.names import claim_name
from torsor.mechanism.parts import SHAPE_SIZES, VISUAL_SIZES, link_of, symmetric
from torsor.spatial import axis_frame, make_pose

# By element: the children that are read, and those that do not influence the motion of the model by itself.
_READ = {
    "sdf": "model include world",
    "world": "model include frame gravity",
    "model": "link joint frame model include pose static self_collide allow_auto_disable enable_wind",
    "include": "uri name pose placement_frame static",
    "link": "pose inertial visual collision self_collide must_be_base_link enable_wind gravity kinematic",
    "inertial": "pose mass inertia density auto_inertia_params",
    "visual": "pose geometry material cast_shadows laser_retro transparency visibility_flags meta",
    "collision": "pose geometry surface laser_retro max_contacts density auto_inertia_params",
    "joint": """parent child pose axis axis2 gearbox_ratio gearbox_reference_body thread_pitch screw_thread_pitch
        physics drake:rotor_inertia drake:gear_ratio""",
    "axis": "xyz limit dynamics mimic use_parent_model_frame",
    "axis2": "xyz limit dynamics mimic use_parent_model_frame",
}
# Omitted elements that do not affect motion by themselves: reported, but never rejected.
_HARMLESS_TAGS = """sensor plugin light gripper audio audio_sink audio_source projector battery particle_emitter scene
    physics gui atmosphere magnetic_field spherical_coordinates state population road actor"""


class Unread:
    """Omitted elements with their line numbers. One warning names all of them.

    Their kinds are "acting" (may affect the motion), "harmless" (do not), and "assumed" (defaults of SDF).
    """

    def __init__(self, source: str, strict: bool):
        self.source, self.strict = source, strict
        self.found: dict[str, dict[str, list[int]]] = {"acting": {}, "harmless": {}, "assumed": {}}

    def note(self, what: str, element: Any, kind: str = "acting") -> None:
        """Record an omission and its line."""
        self.found[kind].setdefault(what, []).append(getattr(element, "line", 0))

    def children(self, elements: Iterable[Any]) -> None:
        """Record all unread children of these elements, recursively."""
        waiting = list(elements)
        while waiting:
            element = waiting.pop()
            known = _READ[element.tag].split()
            for child in element:
                if child.tag not in known:
                    self.note(f"<{child.tag}>", child, "harmless" if child.tag in _HARMLESS_TAGS.split() else "acting")
                elif child.tag in _READ and child.tag not in ("model", "world"):  # these are listed separately
                    waiting.append(child)
            if element.tag == "link":  # Gazebo switches that change the motion: no gravity, or no forces
                if not FLAGS.get(text_of(element, "gravity").lower(), True):
                    self.note("<gravity> that is off for a link", element)
                if FLAGS.get(text_of(element, "kinematic").lower(), False):
                    self.note("<kinematic>", element)

    def report(self) -> None:
        """Issue the warning, or raise ModelError if reading is strict and something may affect the motion."""
        acting, harmless, assumed = (self.found[kind] for kind in ("acting", "harmless", "assumed"))
        parts = [f"SDF defaults are used for {_lines(assumed)}"] if assumed else []
        if self.strict:
            parts += [f"not read: {_lines(acting)}"] if acting else []
            if parts:
                refuse_or_warn(ModelError("; ".join(parts), where=self.source), strict=True)
            parts, acting = [], {}
        parts += [f"not read: {_lines(acting | harmless)}"] if acting or harmless else []
        if parts:
            fix = "if they affect the motion, the robot here differs from the one in the file"
            warn("; ".join(parts), where=self.source, fix=fix if acting else "")


def _lines(noted: dict[str, list[int]]) -> str:
    return listing([f"{what} ({len(lines)}, line {lines[0]})" for what, lines in noted.items()], most=12)


ALL_MASKS = 0xFFFF  # SDF's default of <collide_bitmask>
# By shape: the elements that give its size, and the count of their numbers.
_SIZES: dict[str, tuple[tuple[str, int], ...]] = {
    "box": (("size", 3),),
    "sphere": (("radius", 1),),
    "cylinder": (("radius", 1), ("length", 1)),
    "capsule": (("radius", 1), ("length", 1)),
    "ellipsoid": (("radii", 3),),
    "plane": (),
    "mesh": (),
}


class _LinkReader:
    """Reader of one link. ``unread`` records omissions."""

    def __init__(self, part: Part, strict: bool, unread: Unread):
        self.part, self.strict, self.unread = part, strict, unread

    def read(self, masked: bool) -> Link:
        """Return the link. ``masked`` is true if any shape of the file has a mask."""
        parts = self._inertia(), tuple(self._surfaces("visual")), tuple(self._surfaces("collision", masked))
        return link_of(self.part.frame.name, *parts, self.strict, where_is(self.part.element))

    def _pose(self, element: Any) -> Array:
        """Return the pose of an element of the link in the axes of the link."""
        T, name = pose_of(element, self.part.owner)
        if not name:
            return T
        base = self.part.scope.find(name, where_is(element.find("pose"), self.part.owner))
        return relative_pose(self.part.frame, base) @ T

    def _frame_of(self, element: Any) -> str:
        """Return the <frame> of this link in which a shape is placed, or an empty string."""
        at = self.part.scope.names.get(pose_of(element, self.part.owner)[1])
        return at.name if at is not None and at.kind == "frame" and at.carrier() is self.part.frame else ""

    def _inertia(self) -> tuple[float, Array, Array]:
        """Return mass, centre of mass and inertia about it, in link axes, with the defaults of SDF."""
        inertial = self.part.element.find("inertial")
        if inertial is None:
            self.unread.note("links without <inertial>, 1 kg and 1 kg m^2", self.part.element, "assumed")
            return 1.0, np.zeros(3), np.eye(3)
        if inertial.get("auto", "false").strip().lower() in ("true", "1"):
            fix = "expand it: gz sdf --print --expand-auto-inertials"
            where = where_is(inertial, self.part.owner)
            raise ModelError("the inertia has to be computed from shapes", where=where, fix=fix)
        matrix = inertial.find("inertia")
        if matrix is None or inertial.find("mass") is None:
            self.unread.note("<inertial> without <mass> or <inertia>, 1 kg or 1 kg m^2", inertial, "assumed")
        defaults = {"ixx": 1.0, "iyy": 1.0, "izz": 1.0, "ixy": 0.0, "ixz": 0.0, "iyz": 0.0}
        six = [number_of(matrix, key, default, self.part.owner) for key, default in defaults.items()]
        T = self._pose(inertial)
        inertia = T[:3, :3] @ symmetric(six) @ T[:3, :3].T
        return number_of(inertial, "mass", 1.0, self.part.owner), T[:3, 3], 0.5 * (inertia + inertia.T)

    def _surfaces(self, tag: str, masked: bool = False) -> Iterator[Any]:
        """Yield the visuals or the collision shapes. Unusable ones are omitted with a warning."""
        for element in self.part.element.findall(tag):
            try:
                result = self._geometry(element, VISUAL_SIZES if tag == "visual" else SHAPE_SIZES)
                if result is not None and tag == "visual":
                    yield Visual(**result, color=self._color(element))
                elif result is not None:
                    mask = self._mask(element) if masked else 1
                    yield Shape(**result, link=self._frame_of(element), contype=mask, conaffinity=mask)
            except ModelError as error:
                if not error.where.startswith(element.source):
                    error = error.inside(where_is(element, self.part.owner))
                what = "visual" if tag == "visual" else "shape"
                refuse_or_warn(error, self.strict, f"this {what} is omitted")

    def _mask(self, element: Any) -> int:
        """Return the mask of a shape, which has 32 bits; the highest is the sign here."""
        text = text_of(element, "surface/contact/collide_bitmask")
        try:
            mask = int(text[:40], 0) if text else ALL_MASKS
        except ValueError:
            mask = -1
        if not 0 <= mask < 2**32:
            message, where = f"collide_bitmask is {text[:40]!r}", where_is(element, self.part.owner)
            raise ModelError(message, where=where, allowed="a whole number of 32 bits")
        return mask - 2**32 if mask >= 2**31 else mask

    def _geometry(self, element: Any, kinds: dict[str, int]) -> dict[str, Any] | None:
        """Return the common fields of visuals and collision shapes, or None for unsupported kinds."""
        geometry = element.find("geometry")
        shape = None if geometry is None else next(iter(geometry), None)
        if shape is None or shape.tag == "empty":
            return None
        if shape.tag not in kinds:
            self.unread.note(f"<{element.tag}> of a <{shape.tag}>", element)
            return None
        size: list[float] = []
        for tag, count in _SIZES[shape.tag]:
            child = shape.find(tag)
            if child is None:
                raise ModelError(f"<{shape.tag}> has no <{tag}>", where=where_is(shape, self.part.owner))
            size += numbers_of(child, count, self.part.owner).tolist()
        found_shape: dict[str, Any] = {"shape": shape.tag, "pose": self._pose(element), "name": element.get("name", "")}
        if shape.tag == "plane":
            normal = shape.find("normal")
            axis = [0, 0, 1] if normal is None else numbers_of(normal, 3, self.part.owner)
            if not np.any(axis):
                raise ModelError("the normal has length 0", where=where_is(shape, self.part.owner))
            found_shape["pose"] = found_shape["pose"] @ make_pose(axis_frame(axis))
        elif shape.tag == "mesh":
            scale, uri = shape.find("scale"), text_of(shape, "uri") or text_of(shape, "filename")  # before version 1.3
            if not uri:
                raise ModelError("<mesh> has no <uri>", where=where_is(shape, self.part.owner))
            if shape.find("submesh") is not None:
                self.unread.note("<submesh>, for which the whole mesh is used", shape)
            file = self.part.finder.file(uri)  # resolved before ``folders`` is read, because it may add one
            found_shape |= {"mesh": uri, "path": file, "folders": self.part.finder.folders}
            size = [1.0] * 3 if scale is None else numbers_of(scale, 3, self.part.owner).tolist()
        return found_shape | {"size": tuple(size)}

    def _color(self, element: Any) -> tuple[float, ...] | None:
        """Return red, green, blue and opacity of a visual, or None if its material has no colour."""
        kinds = (element.find(f"material/{kind}") for kind in ("diffuse", "ambient"))
        color = next((kind for kind in kinds if kind is not None), None)
        if color is None:
            return None
        count = 3 if len((color.text or "").split()) == 3 else 4  # the opacity may be left out
        rgba = numbers_of(color, count, self.part.owner).tolist()
        opacity = 1.0 - number_of(element, "transparency", 0.0, self.part.owner)
        return (*rgba[:3], (rgba[3] if count == 4 else 1.0) * opacity)


_KINDS = {kind: kind for kind in ("revolute", "continuous", "prismatic")}
_KINDS |= {"screw": "helical", "ball": "spherical", "fixed": "fixed"}
_TWO_AXES = ("universal", "revolute2")
_TYPES = (*_KINDS, *_TWO_AXES, "gearbox")
# The cut joints for joints whose child already has a parent.
_CUTS = {"revolute": "revolute", "continuous": "revolute", "prismatic": "prismatic", "ball": "spherical"}
_CUTS |= {"universal": "universal", "fixed": "weld"}
ROTOR, GEAR = "drake:rotor_inertia", "drake:gear_ratio"  # Drake's joint elements, as text
_NO_LIMIT = 1e16  # SDF's default of limits
_PARALLEL_TOLERANCE = 1e-6  # largest sine of the angle between an axis of a gearbox and its joint


class _JointReader:
    """Reader of joints. ``taken`` contains the names of links and frames, including those created here."""

    def __init__(self, parts: list[Part], strict: bool, unread: Unread, taken: set[str]):
        self.strict, self.unread, self.taken = strict, unread, taken
        self.names = {part.frame.name for part in parts}
        self.two_axes = {part.frame.name for part in parts if part.element.get("type") in _TWO_AXES}
        # In addition to joints: the links between axes of universal joints, frames and equations of closed loops.
        self.joints, self.links = list[Joint](), list[Link]()
        self.frames, self.loops = list[Frame](), list[Closure]()
        self.children: set[str] = set()
        self.hinges: dict[frozenset[str], tuple[Joint, Array]] = {}  # by its two links, with the axis in the world
        for part in parts:
            self._read(part)
        for part in parts:
            if part.element.get("type") == "gearbox":
                self._gearbox(part)

    def _read(self, part: Part) -> None:
        """Add a joint, the two joints of a joint with two axes, or a loop."""
        kind, where = part.element.get("type", ""), part.frame.where
        if kind not in _TYPES:
            raise ModelError(f"unknown joint type {kind!r}", value=kind, where=where, allowed=", ".join(_TYPES))
        if kind == "gearbox":
            return
        parent, child = (self._end(part, role).carrier() for role in ("parent", "child"))
        if child.kind == WORLD:
            raise ModelError("the child is the world", where=where, fix="make the world the parent")
        if parent is child:
            message = f"both ends are parts of {child.name!r}"
            raise ModelError(message, value=child.name, where=where, allowed="two links")
        closing = child.name in self.children
        if self._rotor(part) and (closing or kind in (*_TWO_AXES, "fixed", "ball")):
            self.unread.note(f"<{ROTOR}> of a joint that closes a loop or does not have one axis", part.element)
        if closing:
            self._loop(part, kind, parent, child)
            return
        self.children.add(child.name)
        placement, at = relative_pose(parent, child), relative_pose(child, part.frame)
        if kind in _TWO_AXES:
            middle, name = claim_name(f"{part.frame.name}/axis", self.taken), part.frame.name
            self.links.append(Link(middle))
            axes = [self._axis(part, tag, child) for tag in ("axis", "axis2")]
            first, second = (claim_name(f"{name}/{tag}", self.names) for tag in ("axis", "axis2"))
            settings = [self._settings(part, tag) for tag in ("axis", "axis2")]
            made = Joint(first, "revolute", parent.name, middle, placement, axes[0], at[:3, 3], **settings[0])
            last = Joint(second, "revolute", middle, child.name, np.eye(4), axes[1], at[:3, 3], **settings[1])
            self.joints.extend([made, last])
            return
        more: dict[str, Any] = {"source": part.element.source}
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
        self.joints.append(joint)
        if kind in ("revolute", "continuous"):
            axis = child.in_world()[:3, :3] @ joint.axis
            self.hinges[frozenset((parent.name, child.name))] = joint, axis

    def _end(self, part: Part, role: str) -> SdfFrame:
        name = text_of(part.element, role)
        if not name:
            raise ModelError(f"no <{role}>", where=part.frame.where, fix=f"add <{role}>...</{role}>")
        return part.scope.find(name, part.frame.where)

    def _axis(self, part: Part, tag: str, child: SdfFrame) -> Array:
        """Return a unit vector along an axis, in the axes of the child."""
        axis, owner = part.element.find(tag), part.owner
        if axis is None:
            raise ModelError(f"no <{tag}>", where=part.frame.where, fix=f"add <{tag}><xyz>...</xyz></{tag}>")
        xyz_element, xyz = axis.find("xyz"), np.array([0.0, 0.0, 1.0])
        if xyz_element is not None:
            xyz = numbers_of(xyz_element, 3, owner, sys.float_info.max)
        frame, where = part.frame, where_is(axis, owner)
        expressed_in = "" if xyz_element is None else (xyz_element.get("expressed_in") or "").strip()
        if expressed_in:
            frame = part.scope.find(expressed_in, where)
        elif flag_of(axis, "use_parent_model_frame", owner, part.scope.version < (1, 5)):
            frame = part.scope.frame
        return relative_pose(child, frame)[:3, :3] @ direction(xyz, where, "axis")

    def _pitch(self, part: Part) -> float:
        """Return the advance of a screw in m/rad. <thread_pitch> is in rad/m, for a left-handed thread."""
        if part.element.find("screw_thread_pitch") is None and part.element.find("thread_pitch") is not None:
            turns = number_of(part.element, "thread_pitch", 0.0, part.owner)
            if not turns:
                where = part.frame.where
                raise ModelError("is 0", argument="thread_pitch", where=where, allowed="any other number (rad/m)")
            return -1.0 / turns
        return number_of(part.element, "screw_thread_pitch", 1.0, part.owner) / (2 * math.pi)

    def _rotor(self, part: Part) -> float:
        """Return the reflected rotor inertia, as in Drake: without the gyroscopic moments of the rotor."""
        result = (item for item in part.element if item.tag in (ROTOR, GEAR))
        values = {item.tag: float(numbers_of(item, 1, part.owner)[0]) for item in result}
        ratio = values.get(GEAR, 1.0)
        return values.get(ROTOR, 0.0) * ratio * ratio  # ** raises its own error on overflow

    def _settings(self, part: Part, tag: str) -> dict[str, Any]:
        """Return limits, friction, spring and leader of an axis."""
        axis, owner = part.element.find(tag), part.owner
        result: dict[str, Any] = {"source": part.element.source}
        limit, dynamics = (None if axis is None else axis.find(key) for key in ("limit", "dynamics"))
        for key in ("effort", "velocity"):
            most = number_of(limit, key, -1.0, owner, most=math.inf)
            result[f"{key}_limit"] = most if 0 <= most < sys.float_info.max else math.inf  # below 0: no limit
        defaults = {"lower": -_NO_LIMIT, "upper": _NO_LIMIT}
        ends = [number_of(limit, key, default, owner, most=math.inf) for key, default in defaults.items()]
        if ends[0] > ends[1]:
            message = f"lower limit {ends[0]:g} is above upper limit {ends[1]:g}"
            refuse_or_warn(ModelError(message, where=part.frame.where), self.strict, "read as no limit")
            ends = [-math.inf, math.inf]
        result["lower"], result["upper"] = (x if abs(x) < _NO_LIMIT else math.copysign(math.inf, x) for x in ends)
        for key, name in (("viscous", "damping"), ("coulomb", "friction")):
            result[key] = number_of(dynamics, name, 0.0, owner)
        stiffness = number_of(dynamics, "spring_stiffness", 0.0, owner)
        if stiffness:
            rest = number_of(dynamics, "spring_reference", 0.0, owner)
            result["spring"] = Spring(stiffness, rest=rest, source=part.frame.where)
        return result | self._mimic(part, axis)

    def _mimic(self, part: Part, axis: Any) -> dict[str, Any]:
        """Return the leader of an axis: position = multiplier (position of the leader - reference) + offset."""
        mimic = None if axis is None else axis.find("mimic")
        if mimic is None:
            return {}
        where = part.frame.where
        leader = part.scope.find((mimic.get("joint") or "").strip(), where)
        if leader.kind != "joint" or leader is part.frame:
            raise ModelError(f"<mimic> of {mimic.get('joint')!r}", where=where, allowed="another joint")
        defaults = {"multiplier": 1.0, "offset": 0.0, "reference": 0.0}
        ratio, offset, reference = (number_of(mimic, key, x, part.owner) for key, x in defaults.items())
        name, which = leader.name, (mimic.get("axis") or "axis").strip()
        name = f"{name}/{which}" if name in self.two_axes else name
        return {"coordinate": name, "ratio": ratio, "offset": offset - ratio * reference}

    def _loop(self, part: Part, kind: str, parent: SdfFrame, child: SdfFrame) -> None:
        """Add a cut joint between a link and one that already has a parent. Its axis is the z axis of its frames."""
        name, where = part.frame.name, part.frame.where
        if kind not in _CUTS:
            message = f"a {kind} joint closes a loop at {child.name!r}, which already has a parent joint"
            raise ModelError(message, value=child.name, where=where, allowed=", ".join(_CUTS))
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
            self.frames.append(Frame(ends[-1], link.name, relative_pose(link, part.frame) @ make_pose(turn)))
        self.loops.append(Loop(name, ends[0], ends[1], _CUTS[kind], source=part.element.source))

    def _gearbox(self, part: Part) -> None:
        """Add theta_2 = -ratio theta_1: the angles of child and parent about the axes, from the reference body."""
        where = part.frame.where
        reference = part.scope.find(text_of(part.element, "gearbox_reference_body"), where).carrier()
        ratio = number_of(part.element, "gearbox_ratio", 1.0, part.owner)
        factors: dict[str, float] = {}
        for role, tag, factor in (("parent", "axis", ratio), ("child", "axis2", 1.0)):
            link = self._end(part, role).carrier()
            hinge = self.hinges.get(frozenset((reference.name, link.name)))
            if hinge is None:
                message = f"there is no hinge between the gearbox_reference_body {reference.name!r} and {link.name!r}"
                raise ModelError(message, where=where, fix="add a revolute joint between these links")
            joint, axis = hinge
            axis_direction = link.in_world()[:3, :3] @ self._axis(part, tag, link)
            if np.linalg.norm(np.cross(axis_direction, axis)) > _PARALLEL_TOLERANCE:
                message = f"<{tag}> is not along the axis of joint {joint.name!r}"
                raise ModelError(message, value=joint.name, where=where)
            sign = math.copysign(1.0, float(axis_direction @ axis)) * (1.0 if joint.child == link.name else -1.0)
            factors[joint.name] = factors.get(joint.name, 0.0) + sign * factor
        self.loops.append(Coupling(part.frame.name, factors, source=part.element.source))


def read_sdf(
    path: Path,
    base: str = "fixed",
    strict: bool = False,
    root: Element | None = None,
    snap: float = 0.0,
    model: str = "",
) -> Mechanism:
    """Return the mechanism of a model in an SDF file. ``root`` is its root element if it is already parsed.

    ``model`` names one of several models, by default the first that is not static. Parts of nested models are named
    ``model::part``. A joint with two axes (universal, revolute2) becomes two joints ``name/axis`` and ``name/axis2``. A
    link with a second parent joint closes a loop, a gearbox becomes a coupling, and a <frame> becomes a frame.

    The base is ``world`` if joints attach the model to the world, or if its root link is not at the world origin.
    Otherwise, it is the root link, even if that link is welded to the world. With ``base="floating"``, the root link is
    free, as in Gazebo if no joint attaches it to the world. A model with several roots has the base ``world``, in which
    the roots are either fixed or free. Gravity is taken from the enclosing world; the default is (0, 0, -9.81). A
    ``ModelWarning`` names the elements that are not read.
    """
    root = parse_xml(path, strict) if root is None else root
    result, unread = read_model(path, root, model), Unread(path.name, strict)
    mask = "collision/surface/contact/collide_bitmask"
    masked = any(part.element.find(mask) is not None for part in result.links)
    links = [_LinkReader(part, strict, unread).read(masked) for part in result.links]
    taken = {link.name for link in links} | {part.frame.name for part in result.frames} | {WORLD}
    carried = [(part.frame, part.frame.carrier()) for part in result.frames]
    frames = [Frame(at.name, carrier.name, relative_pose(carrier, at)) for at, carrier in carried]
    made = _JointReader([] if result.static else result.joints, strict, unread, taken)
    if result.static:
        names = {part.frame.name for part in result.joints}
        for part in result.links:
            name = claim_name(f"{part.frame.name}/fixed", names)
            made.joints.append(Joint(name, "fixed", WORLD, part.frame.name, part.frame.in_world()))
    for item in () if result.static else result.resting:
        unread.note("<static> of a nested model", item)
    unread.children(result.roots)
    unread.report()
    links, joints, frames = [*links, *made.links], made.joints, [*frames, *made.frames]
    links, joints, base = _on_world(result, links, joints, frames, base)
    return build(result.name, links, joints, frames, result.gravity, path.name, base, made.loops, snap=snap)


def _on_world(
    model: Model, links: list[Link], joints: list[Joint], frames: list[Frame], base: str
) -> tuple[list[Link], list[Joint], str]:
    """Return links, joints and ``base``, with the world as the base if the file or several roots require it."""
    held = [joint for joint in joints if joint.parent == WORLD]
    on_world = any(frame.link == WORLD for frame in frames)
    children = {joint.child for joint in joints if joint.parent != WORLD}
    roots = [part.frame for part in model.links if part.frame.name not in children]
    if len(roots) > 1 or on_world or (held and not (len(held) == 1 and held[0].is_fixed)):
        ends = {joint.child for joint in held}
        loose = [root for root in roots if root.name not in ends]
        if base == "floating" and not loose:
            message = f"the base cannot float, because {len(held)} joints attach the model to the world"
            raise ModelError(message, where=model.roots[0].source, allowed="one fixed joint, or none")
        kind, names = "free" if base == "floating" else "fixed", {joint.name for joint in joints}
        holds = [(claim_name(f"{root.name}/{kind}", names), root) for root in loose]
        added = [Joint(name, kind, WORLD, root.name, relative_pose(THE_WORLD, root)) for name, root in holds]
        if len(loose) > 1 and kind == "fixed":
            listed = listing([repr(root.name) for root in loose], most=6)
            message = f"{len(loose)} links have no parent joint and are fixed to the world: {listed}"
            warn(message, where=model.roots[0].source, fix="`base='floating'` lets each move freely, as in Gazebo")
        return [Link(WORLD), *links], [*added, *joints], "fixed"
    at = relative_pose(THE_WORLD, roots[0]) if roots else np.eye(4)
    if base == "floating" or np.array_equal(at, np.eye(4)):  # ``base`` already implies the weld of the root link
        return links, [joint for joint in joints if joint not in held], base
    name = claim_name(f"{roots[0].name}/fixed", {joint.name for joint in joints})
    weld = held or [Joint(name, "fixed", WORLD, roots[0].name, at)]
    return [Link(WORLD), *links], [*weld, *(joint for joint in joints if joint not in held)], base
