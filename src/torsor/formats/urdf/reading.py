"""Reading URDF, with the deviations from the specification that published files have."""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from torsor.base.arrays import IDENTITY, Array
from torsor.base.checks import LARGEST
from torsor.base.errors import ModelError, describe, warn
from torsor.base.faults import refuse_or_warn, stop_reading
from torsor.formats.decimals import number_in, up_to
from torsor.formats.search_path import Finder
from torsor.formats.urdf.capsules import joined_capsules
from torsor.formats.urdf.extras import read_extras
from torsor.formats.urdf.motors import with_motors
from torsor.formats.xml import Element, parse_xml
from torsor.mechanism import Joint, Link, Mechanism, Shape, Spring, Visual, build
from torsor.spatial import from_rpy, make_pose

T = TypeVar("T")
_TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
_GRAVITY = (0.0, 0.0, -9.81)
_AT_ORIGIN = {"0 0 0", "0.0 0.0 0.0"}  # xyz and rpy of most shapes: nothing to compute
EXPAND = "expand it first: xacro FILE > robot.urdf, or name it FILE.xacro"
_LEFT_OVER = ("xacro:property", "xacro:arg")  # definitions that make nothing by themselves


def read_urdf(
    path: Path, base: str = "fixed", strict: bool = False, root: Element | None = None, snap: float = 0.0
) -> Mechanism:
    """Return the mechanism of a URDF file; ``root`` is its root element if it is parsed already.

    Joints are in depth-first order, children in the order of the file. A ``mimic`` joint follows the coordinate of its
    leader, ``dynamics`` gives viscous and Coulomb friction and a spring (``spring_stiffness``, ``spring_reference``), a
    ``transmission`` with a rotor inertia gives a motor, fixed joints are merged. Angles within 1e-10 of a multiple of
    pi/2 are rounded to it, and those within ``snap`` of a multiple of pi/12. Elements without influence on the motion
    (gazebo, ...) are ignored; a ``ModelWarning`` names the others that are not read. Meshes are named, not read.
    """
    return _Reader(path, parse_xml(path, strict) if root is None else root, strict).read(base, snap)


class _Reader:
    """The state of reading one file: its path for messages, its root element, its materials and packages."""

    def __init__(self, path: Path, root: Element, strict: bool):
        self.path, self.root, self.strict = path, root, strict
        self.materials: dict[str, tuple[float, ...]] = {}
        self.finder = Finder(path)

    def read(self, base: str, snap: float) -> Mechanism:
        if self.root.tag != "robot":
            raise ModelError(describe(f"root element <{self.root.tag}>", where=self.path.name, allowed="<robot>"))
        self._check_macros()
        for material in self.root.iter("material"):
            color = material.find("color")
            if color is not None:
                name = material.get("name", "")
                with self._drawn(f"material {name!r} has no colour"):
                    self.materials.setdefault(name, self._color(color))
        # Direct children only: <transmission> and extensions contain elements with the same names.
        links, joints = self._each("link", self._link), self._each("joint", self._joint)
        if len(links) + len(joints) < len(self.root.findall("link")) + len(self.root.findall("joint")):
            stop_reading()  # without them, the tree would have other faults
        joints = with_motors(self.root, self._without_missing_leaders(joints), self.path.name, self.strict)
        frames, loops, active = read_extras(self.root, links, joints, self.path.name, self.strict)
        name = self.root.get("name") or self.path.stem
        source, joints = self.path.name, _depth_first(joints)
        return build(name, links, joints, frames, _GRAVITY, source, base, loops, active, snap=snap)

    def _each(self, tag: str, read: Callable[[Any], T]) -> list[T]:
        """Return what the elements of a tag describe; if reading is strict, the faults of all of them are named."""
        found, elements = list[T](), self.root.findall(tag)
        for element in elements:
            try:
                found.append(read(element))
            except ModelError as error:
                if not self.strict:
                    raise
                refuse_or_warn(str(error), strict=True)
        return found

    def _check_macros(self) -> None:
        """Refuse xacro where it stands for links, joints or their numbers; elsewhere it is left over, and a warning."""
        for element in [self.root, *self.root.findall("link"), *self.root.findall("joint")]:
            for child in [*element, *(part for each in element.findall("inertial") for part in each)]:
                if "xacro" in child.tag and child.tag not in _LEFT_OVER:
                    raise ModelError(describe("a xacro macro, not plain URDF", where=self._where(child), fix=EXPAND))
        left = [element for element in self.root.iter() if "xacro" in element.tag]
        if left:
            found = f"<{left[0].tag}>, which xacro should have replaced, is ignored ({len(left)} in all)"
            refuse_or_warn(describe(found, where=self._where(left[0]), fix=EXPAND), self.strict)

    @contextmanager
    def _drawn(self, effect: str) -> Iterator[None]:
        """Make an error in what is only drawn a warning that names the effect, unless reading is strict."""
        try:
            yield
        except ModelError as error:
            refuse_or_warn(str(error) if self.strict else f"{error}; {effect}", self.strict)

    # Numbers and names

    def _where(self, element: Any, owner: str = "") -> str:
        line = f"{self.path.name}: line {element.line}" if isinstance(element, Element) else self.path.name
        return f"{line}: {owner}" if owner else line

    def _numbers(
        self, element: Any, attribute: str, count: int, default: str | None, owner: str, most: float = LARGEST
    ) -> Array:
        text = element.get(attribute, default) if element is not None else default
        if text is None:
            what = f"<{element.tag}> has no {attribute}"
            raise ModelError(describe(what, where=self._where(element, owner), fix=f'add {attribute}="..."'))
        try:
            values = np.array([number_in(word) for word in text.replace(",", " ").split()])
        except ValueError:
            values = np.zeros(0)
        if values.shape != (count,) or not (np.abs(values) <= most).all():  # NaN fails the comparison too
            what = f"<{element.tag} {attribute}={text!r}>"
            allowed = ("a number" if count == 1 else f"{count} finite numbers") + up_to(most)
            raise ModelError(describe(what, where=self._where(element, owner), allowed=allowed))
        return values

    def _number(self, element: Any, attribute: str, default: str | None, owner: str, most: float = LARGEST) -> float:
        return float(self._numbers(element, attribute, 1, default, owner, most)[0])

    def _name(self, element: Any, owner: str = "") -> str:
        name = element.get("name")
        if not name:
            raise ModelError(describe(f"<{element.tag}> without a name", where=self._where(element, owner)))
        return str(name)

    def _origin(self, element: Any, owner: str) -> Array:
        origin = element.find("origin")
        if origin is None or {*origin.attrib.values()} <= _AT_ORIGIN:
            return IDENTITY
        xyz = self._numbers(origin, "xyz", 3, "0 0 0", owner)
        return make_pose(from_rpy(self._numbers(origin, "rpy", 3, "0 0 0", owner)), xyz)

    def _color(self, element: Any) -> tuple[float, ...]:
        return tuple(self._numbers(element, "rgba", 4, "0.7 0.7 0.7 1", "color").tolist())

    # Links

    def _link(self, element: Any) -> Link:
        name = self._name(element)
        owner = f"link {name!r}"
        visuals = tuple(joined_capsules(list(self._visuals(element, owner))))
        shapes = tuple(joined_capsules(list(self._shapes(element, owner))))
        inertial = element.find("inertial")
        if inertial is None:
            return Link(name, visuals=visuals, shapes=shapes)
        mass_element, inertia_element = inertial.find("mass"), inertial.find("inertia")
        mass = 0.0 if mass_element is None else self._number(mass_element, "value", None, owner)
        xx, yy, zz, xy, xz, yz = (
            0.0 if inertia_element is None else self._number(inertia_element, key, "0", owner)
            for key in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
        )
        T = self._origin(inertial, owner)
        self._warn_of_missing(inertial, owner)
        R = T[:3, :3]
        inertia = R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T
        source = self._where(element)
        link = Link(name, mass, T[:3, 3], 0.5 * (inertia + inertia.T), visuals, self.strict, source, shapes)
        if link.defect and not self.strict:
            warn(link.defect)
        return link

    def _warn_of_missing(self, inertial: Any, owner: str) -> None:
        """Warn of a mass or of moments that are missing; products may be: they are 0 for most bodies."""
        inertia = inertial.find("inertia")
        missing = ["<mass>"] if inertial.find("mass") is None else []
        missing += [key for key in ("ixx", "iyy", "izz") if inertia is not None and key not in inertia.attrib]
        missing += ["<inertia>"] if inertia is None else []
        if missing:
            found = f"<inertial> without {', '.join(missing)}{'' if self.strict else ', read as 0'}"
            refuse_or_warn(describe(found, where=self._where(inertial, owner), fix="add what is missing"), self.strict)

    def _visuals(self, element: Any, owner: str) -> Iterator[Visual]:
        for visual in element.findall("visual"):
            with self._drawn("this visual is left out"):
                shape = self._geometry(visual, owner)
                if shape is not None:
                    yield Visual(**shape, color=self._visual_color(visual))

    def _shapes(self, element: Any, owner: str) -> Iterator[Shape]:
        """Yield the collision shapes of a link; one that cannot be used is a warning, and left out."""
        for collision in element.findall("collision"):
            with self._drawn("this collision shape is left out"):
                shape, where = self._geometry(collision, owner), self._where(collision, owner)
                if shape is None:
                    kinds = [f"<{each.tag}>" for each in collision.iterfind("geometry/*")]
                    if not kinds:  # as some files have for links without a shape
                        continue
                    found, allowed = f"a <collision> with {kinds[0]}", ", ".join(f"<{kind}>" for kind in _SIZES)
                    raise ModelError(describe(found, where=where, allowed=allowed))
                try:
                    yield Shape(**shape)
                except ModelError as error:
                    raise ModelError(f"{where}: {error}") from None

    def _geometry(self, element: Any, owner: str) -> dict[str, Any] | None:
        """Return what visuals and collision shapes have in common: shape, size, pose, name and mesh; None if none."""
        geometry = element.find("geometry")
        shape = None if geometry is None else next((each for each in geometry if each.tag in _SIZES), None)
        if shape is None:
            return None
        size = tuple(
            value
            for attribute, count, default in _SIZES[shape.tag]
            for value in self._numbers(shape, attribute, count, default, owner, sys.float_info.max).tolist()
        )
        found = {
            "shape": shape.tag,
            "size": size,
            "pose": self._origin(element, owner),
            "name": element.get("name", ""),
        }
        mesh = shape.get("filename")
        if not mesh:
            return found
        file = self.finder.file(mesh)  # before its folders, which it may add one to
        return found | {"mesh": mesh, "path": file, "folders": self.finder.folders}

    def _visual_color(self, visual: Any) -> tuple[float, ...] | None:
        material = visual.find("material")
        if material is None:
            return None
        color = material.find("color")
        return self.materials.get(material.get("name", "")) if color is None else self._color(color)

    # Joints

    def _joint(self, element: Any) -> Joint:
        name = self._name(element)
        owner = f"joint {name!r}"
        where = self._where(element, owner)
        found = element.get("type")
        if found not in _TYPES:
            raise ModelError(describe(f"unknown joint type {found!r}", where=where, allowed=", ".join(_TYPES)))
        ends = []
        for role in ("parent", "child"):
            end = element.find(role)
            if end is None or not end.get("link"):
                raise ModelError(describe(f"no {role} link", where=where, fix=f'add <{role} link="..."/>'))
            ends.append(end.get("link"))
        settings: dict[str, Any] = {"source": self._where(element)}
        if found != "fixed":
            settings |= self._limits(element, found, owner)
            settings |= self._dynamics(element, owner) | self._mimic(element, owner)
        if found in ("revolute", "continuous", "prismatic", "planar"):
            settings["axis"] = self._numbers(element.find("axis"), "xyz", 3, "1 0 0", owner, sys.float_info.max)
        kind = "free" if found == "floating" else found
        return Joint(name, kind, ends[0], ends[1], self._origin(element, owner), **settings)

    def _without_missing_leaders(self, joints: list[Joint]) -> list[Joint]:
        """Give a joint its own coordinate if the joint that it mimics is missing, as in some published files."""
        names = {joint.name for joint in joints}
        kept = []
        for joint in joints:
            if joint.coordinate not in names:
                found = f"it mimics {joint.coordinate!r}, which does not exist"
                found += "" if self.strict else "; it gets its own coordinate instead"
                where, allowed = f"{joint.source}: joint {joint.name!r}", "another joint of the file"
                message = describe(found, where=where, allowed=allowed, fix="correct the name in <mimic>")
                refuse_or_warn(message, self.strict)
                joint = replace(joint, coordinate="", ratio=1.0, offset=0.0)
            kept.append(joint)
        return kept

    def _limits(self, element: Any, kind: str, owner: str) -> dict[str, Any]:
        limit = element.find("limit")
        if limit is None:
            return {}
        largest = {key: self._number(limit, key, "inf", owner, np.inf) for key in ("effort", "velocity")}
        limits = {f"{key}_limit": abs(value) for key, value in largest.items()}
        if kind in ("revolute", "prismatic") and ("lower" in limit.attrib or "upper" in limit.attrib):
            ends = {key: self._number(limit, key, "0", owner, np.inf) for key in ("lower", "upper")}
            if ends["lower"] > ends["upper"]:  # Bullet's way to say that there is no limit
                found = f"lower limit {ends['lower']:g} is above upper limit {ends['upper']:g}"
                where, fix = self._where(limit, owner), 'remove lower and upper, or make it type="continuous"'
                message = describe(found if self.strict else f"{found}: read as no limit", where=where, fix=fix)
                refuse_or_warn(message, self.strict)
            else:
                limits |= ends
        # The largest number means no limit: a limit must be a number, and many readers do not accept "inf".
        no_limit = sys.float_info.max
        return {key: x if abs(x) < no_limit else np.copysign(np.inf, x) for key, x in limits.items()}

    def _dynamics(self, element: Any, owner: str) -> dict[str, Any]:
        dynamics = element.find("dynamics")
        found: dict[str, Any] = {
            "viscous": self._number(dynamics, "damping", "0", owner),
            "coulomb": self._number(dynamics, "friction", "0", owner),
        }
        stiffness = self._number(dynamics, "spring_stiffness", "0", owner)
        if stiffness:
            rest = self._number(dynamics, "spring_reference", "0", owner)
            found["spring"] = Spring(stiffness, rest=rest, source=self._where(dynamics, owner))
        return found

    def _mimic(self, element: Any, owner: str) -> dict[str, Any]:
        mimic = element.find("mimic")
        if mimic is None:
            return {}
        leader = mimic.get("joint")
        if not leader or leader == element.get("name"):
            found = "<mimic> of itself" if leader else "<mimic> without a joint"
            raise ModelError(describe(found, where=self._where(mimic, owner), fix="name the joint that it follows"))
        return {
            "coordinate": leader,
            "ratio": self._number(mimic, "multiplier", "1", owner),
            "offset": self._number(mimic, "offset", "0", owner),
        }


# By shape: (attribute, count of numbers, default).
_SIZES: dict[str, tuple[tuple[str, int, str | None], ...]] = {
    "box": (("size", 3, None),),
    "cylinder": (("radius", 1, None), ("length", 1, None)),
    "capsule": (("radius", 1, None), ("length", 1, None)),
    "sphere": (("radius", 1, None),),
    "mesh": (("scale", 3, "1 1 1"),),
}


def _depth_first(joints: list[Joint]) -> list[Joint]:
    """Return the joints in depth-first order; joints in a cycle come last, and ``build`` raises the error for them."""
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
