"""Reading URDF, including common deviations from the specification in published files."""

import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from torsor.base.arrays import IDENTITY, Array
from torsor.base.checks import MAX_NUMBER, direction
from torsor.base.errors import ModelError, listing, warn
from torsor.base.faults import refuse_or_warn, stop_reading
from torsor.formats.search_path import Finder
from torsor.formats.xml import FLAGS, Element, floats_in, numbers_in, parse_xml, where_is
from torsor.mechanism import Frame, Joint, Link, Loop, Mechanism, Motor, Shape, Spring, Visual, build
from torsor.mechanism.names import claim_name
from torsor.mechanism.parts import link_of
from torsor.spatial import axis_frame, from_rpy, make_pose

# URDF elements other than links and joints: Drake's frames and loop joints are read, and unread elements are reported.
#
# An unknown element may affect the motion (a spring, a cable, an included file), so it is never dropped silently.
# Elements that do not affect it (collision, sensors, Gazebo and controller settings) are dropped.

# By element: the children that are read, or that do not affect the motion.
_KNOWN = {
    "robot": """link joint material transmission frame loop_joint gazebo sensor ros2_control mujoco camera plugin
        controller actuator drake:collision_filter_group collision_filter_group disable_collisions enable_collisions
        disable_default_collisions group group_state end_effector virtual_joint passive_joint author version
        description metadata""",
    "link": """inertial visual collision contact material sensor gazebo gravity kinematic surface self_filter
        self_collision_checking collision_checking drake:proximity_properties""",
    "inertial": "origin mass inertia",
    "joint": "parent child origin axis limit dynamics mimic safety_controller calibration gazebo hardwareInterface",
}
_DYNAMICS = ("damping", "friction", "spring_stiffness", "spring_reference")
_REVOLUTE = ("revolute", "continuous", None)  # the types of a loop joint whose meaning is clear


def read_extras(
    root: Element, links: list[Link], joints: list[Joint], strict: bool
) -> tuple[list[Frame], list[Loop], list[str]]:
    """Return Drake's <frame> and <loop_joint> elements. Unread elements cause a warning, or an error if ``strict``.

    A loop joint is a hinge about ``axis`` between a frame on ``link1`` and one on ``link2``. In a robot
    with loops, the joints of transmissions are active.
    """
    taken, loops = {link.name for link in links}, list[Loop]()
    on, frames = set(taken), list[Frame]()
    for element in root:
        name = element.get("name") or ""
        where = where_is(element, f"<{element.tag} name={name!r}>")
        try:
            if element.tag == "frame":
                if name in taken:
                    raise ModelError("it has the name of another link or frame", where=where)
                frames.append(Frame(name, *_placed(element, on, where)))
                taken.add(name)
            elif element.tag == "loop_joint":
                a, b = _loop_frames(element, on, where)
                made = [Frame(claim_name(f"{name}/{end}", taken), *at) for end, at in (("a", a), ("b", b))]
                loops.append(Loop(name, made[0].name, made[1].name, source=where))
                frames += made
        except ModelError as error:
            refuse_or_warn(error, strict, "it is ignored")
    unread: dict[str, list[int]] = defaultdict(list)
    for tag, stranger in _strangers(root):
        unread[tag].append(stranger.line)
    if unread:
        names = [f"<{tag}> ({len(lines)}, line {lines[0]})" for tag, lines in unread.items()]
        message = f"elements that are not read: {listing(names, most=8)}"
        fix = "if they affect the motion, the robot here differs from the one in the file"
        refuse_or_warn(ModelError(message, where=root.source, fix=fix), strict)
    moving = [joint.name for joint in joints if not joint.is_fixed and not joint.follows]
    driven = {item.get("name") for transmission in root.findall("transmission") for item in transmission.iter("joint")}
    return frames, loops, [name for name in moving if name in driven] if loops else []


def _loop_frames(element: Any, links: set[str], where: str) -> list[tuple[str, Array]]:
    """Return (link, pose) of both frames of a loop joint, whose z axes are its axis."""
    if element.get("type") not in _REVOLUTE:
        allowed = ", ".join(kind for kind in _REVOLUTE if kind)
        raise ModelError(f"type is {element.get('type')!r}", where=where, allowed=allowed)
    turned = make_pose(axis_frame(direction(_three(element.find("axis"), "xyz", where, "1 0 0"), where, "axis")))
    ends = []
    for role in ("link1", "link2"):
        end = element.find(role)
        if end is None:
            raise ModelError(f"no <{role}>", where=where, fix=f'add <{role} link="..." xyz="..."/>')
        link, pose = _placed(end, links, where)
        ends.append((link, pose @ turned))
    return ends


def _placed(element: Any, links: set[str], where: str) -> tuple[str, Array]:
    """Return the link of an element, and the pose of its ``xyz`` and ``rpy``. Drake has no <origin> there."""
    link = element.get("link")
    if link not in links:
        raise ModelError(f"its link is {link!r}", value=link, where=where, allowed="a link of this file")
    return str(link), make_pose(from_rpy(_three(element, "rpy", where)), _three(element, "xyz", where))


def _three(element: Any, attribute: str, where: str, default: str = "0 0 0") -> Array:
    text = default if element is None else element.get(attribute, default)
    return numbers_in(text, 3, f"{attribute} is {text!r}", where, sys.float_info.max)


def _strangers(root: Element) -> Iterator[tuple[str, Any]]:
    places = {tag: frozenset(names.split()) for tag, names in _KNOWN.items()}
    parents = [root, *root.findall("link"), *root.findall("link/inertial"), *root.findall("joint")]
    for parent in parents:
        for element in parent:
            if "xacro" in element.tag:
                continue  # the reader reports it separately
            if element.tag not in places[parent.tag]:
                yield element.tag, element
            elif parent.tag == "link" and element.tag in ("gravity", "kinematic"):
                # Gazebo switches: without gravity, or moved without forces.
                switch = FLAGS.get((element.text or "").strip().lower())
                if switch is (element.tag == "kinematic"):
                    yield element.tag, element
            elif parent.tag == "joint" and element.tag == "limit" and parent.get("type") == "spherical":
                yield from ((f"limit {key}=", element) for key in ("lower", "upper") if key in element.attrib)
            elif parent.tag == "joint" and element.tag == "dynamics":
                yield from ((f"dynamics {key}=", element) for key in element.attrib if key not in _DYNAMICS)
            elif parent.tag == "robot" and element.tag == "frame":
                yield from ((f"frame><{child.tag}", child) for child in element)


# Drake's and our own rotor elements, each with the elements of its gear ratio; the first match is used. Drake does
# not read <mechanicalReduction>, which is 1 in its files.
_ROTORS = {
    "drake:rotor_inertia": ("drake:gear_ratio", "mechanicalReduction"),
    "rotorInertia": ("mechanicalReduction", "drake:gear_ratio"),
}
# Our other motor elements, and the property that each sets.
_TAGS = {"stiffness": "stiffness", "damping": "damping", "friction": "coulomb", "axis": "axis", "carrier": "carrier"}


def with_motors(root: Element, joints: list[Joint], strict: bool = False) -> list[Joint]:
    """Return the joints with motors from simple transmissions that have a rotor inertia.

    The carrier of the motor is the parent link of the joint, and its spin axis the joint axis, unless ``carrier`` and
    ``axis`` are given. A transmission without rotor inertia does not affect the motion and is ignored. A transmission
    with a rotor inertia that drives no joint or several joints causes a warning, or ModelError if ``strict``.
    """
    result = {joint.name: joint for joint in joints}
    for transmission in root.findall("transmission"):
        where = where_is(transmission, f"transmission {transmission.get('name', '')!r}")
        if not any(_has(transmission, tag) for tag in _ROTORS):
            if _has(transmission, "stiffness"):
                warn("a stiffness without a rotor inertia is ignored", where=where, fix="add rotorInertia")
            continue
        driven = [element.get("name", "") for element in transmission.iter("joint")]
        unused = None
        if len(driven) != 1 or len(list(transmission.iter("actuator"))) > 1:
            unused = ModelError(f"it drives {len(driven)} joints", where=where, allowed="one joint")
        elif driven[0] not in result or result[driven[0]].is_fixed:
            what = "does not exist" if driven[0] not in result else "is fixed"
            unused = ModelError(f"its joint {driven[0]!r} {what}", where=where)
        if unused:
            refuse_or_warn(unused, strict, "its motor is ignored")
            continue
        joint = result[driven[0]]
        if joint.motor is not None:
            raise ModelError(f"its joint {joint.name!r} already has a motor", value=joint.name, where=where)
        result[joint.name] = replace(joint, motor=_motor(transmission, joint, where))
    return [result[joint.name] if result[joint.name].motor is not None else joint for joint in joints]


def _motor(transmission: Any, joint: Joint, where: str) -> Motor:
    rotor = next(tag for tag in _ROTORS if _has(transmission, tag))
    values: dict[str, Any] = {"inertia": _value(transmission, rotor, where)}
    gears = {tag: _value(transmission, tag, where) for tag in _ROTORS[rotor] if _has(transmission, tag)}
    if gears:
        used, values["ratio"] = next(iter(gears.items()))
        other = next((tag for tag, ratio in gears.items() if ratio not in (1.0, values["ratio"])), None)
        if other is not None:
            warn(f"<{used}> is {values['ratio']:g} and <{other}> {gears[other]:g}; the first is used", where=where)
        elif used == "mechanicalReduction" and rotor == "drake:rotor_inertia" and values["ratio"] != 1:
            message = f"no <drake:gear_ratio>: <mechanicalReduction> {values['ratio']:g} is used, where Drake takes 1"
            warn(message, where=where, fix='add <drake:gear_ratio value="..."/>')
    values |= {name: _value(transmission, tag, where) for tag, name in _TAGS.items() if _has(transmission, tag)}
    if values.get("carrier", joint.parent) != joint.parent and "axis" not in values:
        fix = 'add <axis xyz="..."/> in the axes of that link'
        raise ModelError(f"the motor on {values['carrier']!r} has no axis", where=where, fix=fix)
    along = joint.placement[:3, :3] @ joint.axis
    return Motor(**({"carrier": joint.parent, "axis": along} | values), source=where)


def _has(transmission: Any, tag: str) -> bool:
    return next(transmission.iter(tag), None) is not None


def _value(transmission: Any, tag: str, where: str) -> Any:
    """Return the value of an element, from its text or attribute: a number, an axis or a name."""
    element = next(transmission.iter(tag))
    text = element.get("value") or element.get("xyz") or element.get("link") or element.text or ""
    if tag == "carrier":
        return text.strip()
    numbers = numbers_in(text, 3 if tag == "axis" else 1, f"<{tag}> is {text!r}", where)
    return numbers if tag == "axis" else float(numbers[0])


# Capsules in URDF: a cylinder and two spheres whose names mark them as one capsule.
#
# URDF has no capsules, and few readers support the element <capsule>. Its three parts are one body for all readers.

Surface = TypeVar("Surface", bound=Visual | Shape)
_NAME = re.compile(r"(?:(.*)/)?capsule\d+", re.DOTALL)
_ENDS = {"low": -0.5, "high": 0.5}
_TOLERANCE = 1e-9  # of positions, relative to the size of the capsule


def capsule_parts(capsule: Surface, number: int) -> list[Surface]:
    """Return a capsule as a cylinder and the spheres at its ends. A capsule of length 0 is one sphere.

    ``number`` makes the names of the parts unique in the link: ``NAME/capsule0``, ``NAME/capsule0/low``.
    """
    radius, length = capsule.size
    if not length:
        return [replace(capsule, shape="sphere", size=(radius,))]
    name = f"{capsule.name}/capsule{number}" if capsule.name else f"capsule{number}"
    ball = replace(capsule, shape="sphere", size=(radius,))
    spheres = [replace(ball, name=f"{name}/{end}", pose=_end(capsule, side)) for end, side in _ENDS.items()]
    return [replace(capsule, shape="cylinder", name=name), *spheres]


def joined_capsules(parts: list[Surface]) -> list[Surface]:
    """Return visuals or shapes with ``capsule_parts`` replaced by capsules. Modified parts are kept."""
    result, k = list[Surface](), 0
    while k < len(parts):
        whole = _capsule(parts[k : k + 3])
        result.append(parts[k] if whole is None else whole)
        k += 1 if whole is None else 3
    return result


def _capsule(parts: list[Surface]) -> Surface | None:
    if [part.shape for part in parts] != ["cylinder", "sphere", "sphere"]:
        return None
    name = _NAME.fullmatch(parts[0].name)
    if name is None:
        return None
    cylinder, *spheres = parts
    capsule = replace(cylinder, shape="capsule", name=name[1] or "")
    for sphere, (end, side) in zip(spheres, _ENDS.items(), strict=True):
        away = np.abs(sphere.pose[:3, 3] - _end(capsule, side)[:3, 3]).max()
        same = getattr(sphere, "color", None) == getattr(cylinder, "color", None)
        fits = sphere.size[0] == cylinder.size[0] and away <= _TOLERANCE * sum(cylinder.size)
        if not (fits and same and sphere.name == f"{cylinder.name}/{end}"):
            return None
    return capsule


def _end(capsule: Visual | Shape, side: float) -> np.ndarray:
    return capsule.pose @ make_pose(p=[0, 0, side * capsule.size[1]])


T = TypeVar("T")
_SURPLUS_POINT = re.compile(r"^([-+]?\d*\.\d+)\.$", re.ASCII)  # 1.57.
_TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar", "spherical")  # the last one is Bullet's
_WORLD = "world"  # in Drake's files, a parent that needs no <link>
_GRAVITY = (0.0, 0.0, -9.81)
_AT_ORIGIN = {"0 0 0", "0.0 0.0 0.0"}  # xyz and rpy of most shapes: nothing to compute
EXPAND = "expand it first: xacro FILE > robot.urdf, or name it FILE.xacro"
_LEFT_OVER = ("xacro:property", "xacro:arg", "xacro:macro")  # definitions that create nothing by themselves


def read_urdf(
    path: Path, base: str = "fixed", strict: bool = False, root: Element | None = None, snap: float = 0.0
) -> Mechanism:
    """Return the mechanism of a URDF file. ``root`` is its root element if it is already parsed.

    Joints are in depth-first order, children in the order of the file. A ``mimic`` joint follows the coordinate of its
    leader. ``dynamics`` defines viscous and Coulomb friction and a spring (``spring_stiffness``, ``spring_reference``).
    A ``transmission`` with a rotor inertia defines a motor. Fixed joints are merged. Angles within 1e-10 of a multiple
    of pi/2 are rounded to it, and angles within ``snap`` of a multiple of pi/12 are rounded likewise. Elements that
    do not affect the motion (gazebo, ...) are ignored. A ``ModelWarning`` names other unread ones. Meshes are not read.
    """
    return _Reader(path, parse_xml(path, strict) if root is None else root, strict).read(base, snap)


class _Reader:
    """Reader of one file, with its path for messages, its root element, its materials and packages."""

    def __init__(self, path: Path, root: Element, strict: bool):
        self.path, self.root, self.strict = path, root, strict
        self.materials: dict[str, tuple[float, ...]] = {}
        self.macro: Any = None
        self.finder = Finder(path)

    def read(self, base: str, snap: float) -> Mechanism:
        if self.root.tag != "robot":
            raise ModelError(f"root element <{self.root.tag}>", where=self.path.name, allowed="<robot>")
        self._check_macros()
        for material in self.root.iter("material"):
            color = material.find("color")
            if color is not None:
                name = material.get("name", "")
                with self._drawn(f"material {name!r} has no colour"):
                    self.materials.setdefault(name, self._color(color))
        # Only direct children: <transmission> and extensions contain elements with the same names.
        links, joints = self._each("link", self._link), self._each("joint", self._joint)
        if len(links) + len(joints) < len(self.root.findall("link")) + len(self.root.findall("joint")):
            stop_reading()  # without these parts, the tree would have more faults
        names = {link.name for link in links}
        if links and _WORLD not in names and any(joint.parent == _WORLD for joint in joints):
            links.insert(0, Link(_WORLD))
        joints = with_motors(self.root, self._without_missing_leaders(joints), self.strict)
        frames, loops, active = read_extras(self.root, links, joints, self.strict)
        name = self.root.get("name") or self.path.stem
        source, joints = self.path.name, _depth_first(joints)
        try:
            return build(name, links, joints, frames, _GRAVITY, source, base, loops, active, snap=snap)
        except ModelError:
            if self.macro is None:
                raise
            raise ModelError("a xacro macro, not plain URDF", where=where_is(self.macro), fix=EXPAND) from None

    def _each(self, tag: str, read: Callable[[Any], T]) -> list[T]:
        """Return the objects described by the elements with a tag. If strict, collect the faults of all elements."""
        result, elements = list[T](), self.root.findall(tag)
        for element in elements:
            try:
                result.append(read(element))
            except ModelError as error:
                if not self.strict:
                    raise
                refuse_or_warn(error, strict=True)
        return result

    def _check_macros(self) -> None:
        """Reject xacro around links and joints or in place of their numbers, and warn about leftovers elsewhere."""
        macros = [element for element in self.root if "xacro" in element.tag and element.tag not in _LEFT_OVER]
        tags = (".//link", ".//joint")
        around = [element for element in macros if any(element.find(tag) is not None for tag in tags)]
        for element in [*self.root.findall("link"), *self.root.findall("joint")]:
            parts = [*element, *(part for item in element.findall("inertial") for part in item)]
            around += [part for part in parts if "xacro" in part.tag and part.tag not in _LEFT_OVER]
        left = [element for element in self.root.iter() if "xacro" in element.tag]
        around += left if self.root.find("link") is None else []
        if around:
            raise ModelError("a xacro macro, not plain URDF", where=where_is(around[0]), fix=EXPAND)
        self.macro = next(iter(macros), None)  # a macro of a sensor, or of links without which the tree is incomplete
        if left:
            message = f"<{left[0].tag}>, which xacro should have replaced, is ignored ({len(left)} in all)"
            message += ", and so are the links and joints that it stands for" if macros else ""
            refuse_or_warn(ModelError(message, where=where_is(left[0]), fix=EXPAND), self.strict)

    @contextmanager
    def _drawn(self, effect: str) -> Iterator[None]:
        """Turn an error in visual elements into a warning that names the effect, unless reading is strict."""
        try:
            yield
        except ModelError as error:
            refuse_or_warn(error, self.strict, effect)

    # Numbers and names

    def _numbers(
        self, element: Any, attribute: str, count: int, default: str | None, owner: str, most: float = MAX_NUMBER
    ) -> list[float]:
        text = element.get(attribute, default) if element is not None else default
        if text is None:
            what = f"<{element.tag}> has no {attribute}"
            raise ModelError(what, where=where_is(element, owner), fix=f'add {attribute}="..."')
        text = text.replace(",", " ")
        values = floats_in(text, count, most)
        if values is None:
            values = self._repaired(element, attribute, text, count, owner, most)
        return values

    def _repaired(self, element: Any, attribute: str, text: str, count: int, owner: str, most: float) -> list[float]:
        """Return the numbers in a text with superfluous zeros or points, as Bullet does, and warn."""
        message, where = f"<{element.tag} {attribute}={element.get(attribute)!r}>", where_is(element, owner)
        words = [_SURPLUS_POINT.sub(r"\1", word) for word in text.split()]
        values = floats_in(" ".join(words), len(words), most) or []
        if len(values) < count or any(values[count:]):
            return list(numbers_in(text, count, message, where, most))  # raises the error
        fault = ModelError(message, value=text, where=where, allowed="a number" if count == 1 else f"{count} numbers")
        refuse_or_warn(fault, self.strict, f"read as {' '.join(words[:count])}")
        return values[:count]

    def _number(self, element: Any, attribute: str, default: str | None, owner: str, most: float = MAX_NUMBER) -> float:
        text: Any = default if element is None else element.get(attribute, default)
        try:
            value = float(text)
        except (TypeError, ValueError):  # missing, a comma, or not a number
            return self._numbers(element, attribute, 1, default, owner, most)[0]
        if -most <= value <= most and text.isascii() and "_" not in text:
            return value
        return self._numbers(element, attribute, 1, default, owner, most)[0]

    def _name(self, element: Any) -> str:
        name = element.get("name")
        if not name:
            raise ModelError(f"a <{element.tag}> has no name", where=where_is(element))
        return str(name)

    def _origin(self, element: Any, owner: str) -> Array:
        origin = element.find("origin")
        if origin is None or {*origin.attrib.values()} <= _AT_ORIGIN:
            return IDENTITY
        T = IDENTITY.copy()
        T[:3, 3] = self._numbers(origin, "xyz", 3, "0 0 0", owner)
        rpy = self._numbers(origin, "rpy", 3, "0 0 0", owner)
        if any(rpy):
            T[:3, :3] = from_rpy(rpy)
        return T

    def _color(self, element: Any) -> tuple[float, ...]:
        return tuple(self._numbers(element, "rgba", 4, "0.7 0.7 0.7 1", "color"))

    # Links

    def _link(self, element: Any) -> Link:
        name = self._name(element)
        owner = f"link {name!r}"
        visuals = tuple(joined_capsules(list(self._visuals(element, owner))))
        shapes = tuple(joined_capsules(list(self._shapes(element, owner))))
        inertial = element.find("inertial")
        if inertial is None:
            return Link(name, visuals=visuals, shapes=shapes)
        whole, matrix = inertial.find("mass"), inertial.find("inertia")
        mass = 0.0 if whole is None else self._number(whole, "value", None, owner)
        six = (self._number(matrix, key, "0", owner) for key in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz"))
        xx, yy, zz, xy, xz, yz = six
        T = self._origin(inertial, owner)
        # Missing products of inertia are 0, as for most bodies.
        missing = ["<mass>"] if whole is None else []
        missing += [key for key in ("ixx", "iyy", "izz") if matrix is not None and key not in matrix.attrib]
        missing += ["<inertia>"] if matrix is None else []
        if missing:
            message, where = f"<inertial> has no {', '.join(missing)}", where_is(inertial, owner)
            refuse_or_warn(ModelError(message, where=where, fix="add the missing elements"), self.strict, "read as 0")
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        if T is not IDENTITY:
            inertia = T[:3, :3] @ inertia @ T[:3, :3].T
            inertia = 0.5 * (inertia + inertia.T)
        return link_of(name, (mass, T[:3, 3], inertia), visuals, shapes, self.strict, where_is(element))

    def _visuals(self, element: Any, owner: str) -> Iterator[Visual]:
        for visual in element.findall("visual"):
            with self._drawn("this visual is omitted"):
                shape, material = self._geometry(visual, owner), visual.find("material")
                if shape is None:
                    continue
                color = None if material is None else material.find("color")
                named = None if material is None else self.materials.get(material.get("name", ""))
                rgba = named if color is None else self._color(color)
                try:
                    yield Visual(**shape, color=rgba)
                except ModelError as error:
                    raise error.inside(where_is(visual, owner)) from None

    def _shapes(self, element: Any, owner: str) -> Iterator[Shape]:
        """Yield the collision shapes of a link. Unusable ones are omitted with a warning."""
        for collision in element.findall("collision"):
            with self._drawn("this collision shape is omitted"):
                shape, where = self._geometry(collision, owner), where_is(collision, owner)
                if shape is None:
                    kinds = [f"<{item.tag}>" for item in collision.iterfind("geometry/*")]
                    if not kinds:  # as some files have for links without a shape
                        continue
                    message, allowed = f"a <collision> with {kinds[0]}", ", ".join(f"<{kind}>" for kind in _SIZES)
                    raise ModelError(message, where=where, allowed=allowed)
                try:
                    yield Shape(**shape)
                except ModelError as error:
                    raise error.inside(where) from None

    def _geometry(self, element: Any, owner: str) -> dict[str, Any] | None:
        """Return the common fields of visuals and collision shapes (shape, size, pose, name, mesh), or None."""
        geometry = element.find("geometry")
        shape = None if geometry is None else next((item for item in geometry if item.tag in _SIZES), None)
        if shape is None:
            return None
        parts = (self._numbers(shape, *item, owner, sys.float_info.max) for item in _SIZES[shape.tag])
        size = tuple(number for part in parts for number in part)
        result = {"shape": shape.tag, "size": size, "name": element.get("name", "")}
        result["pose"] = self._origin(element, owner)
        mesh = shape.get("filename")
        if not mesh:
            return result
        file = self.finder.file(mesh)  # resolved before ``folders`` is read, because it may add one
        return result | {"mesh": mesh, "path": file, "folders": self.finder.folders}

    # Joints

    def _joint(self, element: Any) -> Joint:
        name = self._name(element)
        owner = f"joint {name!r}"
        where = where_is(element, owner)
        result = element.get("type")
        if result not in _TYPES:
            raise ModelError(f"unknown joint type {result!r}", value=result, where=where, allowed=", ".join(_TYPES))
        ends = []
        for role in ("parent", "child"):
            end = element.find(role)
            if end is None or not end.get("link"):
                raise ModelError(f"no {role} link", where=where, fix=f'add <{role} link="..."/>')
            ends.append(end.get("link"))
        settings: dict[str, Any] = {"source": where_is(element)}
        if result != "fixed":
            settings |= self._limits(element, result, owner)
            settings |= self._dynamics(element, owner) | self._mimic(element, owner)
        if result in ("revolute", "continuous", "prismatic", "planar"):
            settings["axis"] = self._numbers(element.find("axis"), "xyz", 3, "1 0 0", owner, sys.float_info.max)
        kind = "free" if result == "floating" else result
        return Joint(name, kind, ends[0], ends[1], self._origin(element, owner), **settings)

    def _without_missing_leaders(self, joints: list[Joint]) -> list[Joint]:
        """Give a joint its own coordinate if the joint that it mimics is missing, as in some published files."""
        names = {joint.name for joint in joints}
        kept = []
        for joint in joints:
            if joint.coordinate not in names:
                message = f"it mimics {joint.coordinate!r}, which does not exist"
                where, allowed = f"{joint.source}: joint {joint.name!r}", "another joint of the file"
                fields: dict[str, str] = {"value": joint.coordinate, "allowed": allowed}
                fault = ModelError(message, where=where, fix="correct the name in <mimic>", **fields)
                refuse_or_warn(fault, self.strict, "it gets its own coordinate instead")
                joint = replace(joint, coordinate="", ratio=1.0, offset=0.0)
            kept.append(joint)
        return kept

    def _limits(self, element: Any, kind: str, owner: str) -> dict[str, Any]:
        limit = element.find("limit")
        if kind in ("revolute", "prismatic") and (limit is None or not {"lower", "upper"} & limit.attrib.keys()):
            message = f"a {kind} joint without lower and upper limit"
            fix = 'add <limit lower="..." upper="..."/>, which other readers require or take as 0'
            error = ModelError(message, where=where_is(element, owner), fix=fix)
            refuse_or_warn(error, self.strict, "read as no limit")
        if limit is None:
            return {}
        largest = {key: self._number(limit, key, "inf", owner, np.inf) for key in ("effort", "velocity")}
        for key, value in largest.items():
            if value < 0:
                message, where = f"the {key} limit is {value:g}", where_is(limit, owner)
                fault = ModelError(message, value=value, where=where, allowed="0 or more")
                refuse_or_warn(fault, self.strict, f"read as {-value:g}")
        limits = {f"{key}_limit": abs(value) for key, value in largest.items()}
        if kind in ("revolute", "prismatic") and {"lower", "upper"} & limit.attrib.keys():
            ends = {key: self._number(limit, key, "0", owner, np.inf) for key in ("lower", "upper")}
            if ends["lower"] > ends["upper"]:  # Bullet's notation for no limit
                message = f"lower limit {ends['lower']:g} is above upper limit {ends['upper']:g}"
                where, fix = where_is(limit, owner), 'remove lower and upper, or make it type="continuous"'
                refuse_or_warn(ModelError(message, where=where, fix=fix), self.strict, "read as no limit")
            else:
                limits |= ends
        # The largest number means no limit: a limit must be a number, and many readers do not accept "inf".
        no_limit = sys.float_info.max
        return {key: x if abs(x) < no_limit else np.copysign(np.inf, x) for key, x in limits.items()}

    def _dynamics(self, element: Any, owner: str) -> dict[str, Any]:
        dynamics = element.find("dynamics")
        if dynamics is None:
            return {}
        result: dict[str, Any] = {"viscous": self._number(dynamics, "damping", "0", owner)}
        result["coulomb"] = self._number(dynamics, "friction", "0", owner)
        stiffness = self._number(dynamics, "spring_stiffness", "0", owner)
        if stiffness:
            rest = self._number(dynamics, "spring_reference", "0", owner)
            result["spring"] = Spring(stiffness, rest=rest, source=where_is(dynamics, owner))
        return result

    def _mimic(self, element: Any, owner: str) -> dict[str, Any]:
        mimic = element.find("mimic")
        if mimic is None:
            return {}
        leader = mimic.get("joint")
        if not leader or leader == element.get("name"):
            message = "<mimic> of itself" if leader else "<mimic> without a joint"
            raise ModelError(message, where=where_is(mimic, owner), fix="name the joint that it follows")
        ratio, offset = self._number(mimic, "multiplier", "1", owner), self._number(mimic, "offset", "0", owner)
        return {"coordinate": leader, "ratio": ratio, "offset": offset}


# By shape: (attribute, count of numbers, default).
_SIZES: dict[str, tuple[tuple[str, int, str | None], ...]] = {
    "box": (("size", 3, None),),
    "cylinder": (("radius", 1, None), ("length", 1, None)),
    "capsule": (("radius", 1, None), ("length", 1, None)),
    "sphere": (("radius", 1, None),),
    "mesh": (("scale", 3, "1 1 1"),),
}


def _depth_first(joints: list[Joint]) -> list[Joint]:
    """Return the joints in depth-first order. Joints in a cycle, for which ``build`` raises an error, come last."""
    below: dict[str, list[Joint]] = defaultdict(list)
    children = set()
    for joint in joints:
        below[joint.parent].append(joint)
        children.add(joint.child)
    waiting = [joint for joint in reversed(joints) if joint.parent not in children]
    ordered: list[Joint] = []
    seen: set[int] = set()
    while waiting:
        joint = waiting.pop()
        if id(joint) not in seen:
            seen.add(id(joint))
            ordered.append(joint)
            waiting.extend(reversed(below[joint.child]))
    return ordered + [joint for joint in joints if id(joint) not in seen]
