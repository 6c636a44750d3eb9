"""OpenSim files (.osim, versions 3 and 4): bodies, joints, coordinates, markers and constraints, without muscles.

In version 4, joints are in their own set, with frames on their two bodies. In version 3, each body contains its joint.
"""

import posixpath
import xml.etree.ElementTree as ET
from collections.abc import Collection, Iterator
from itertools import count
from pathlib import Path
from typing import TypeVar

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import MAX_NUMBER, frozen_array
from torsor.base.decimals import number_in
from torsor.base.errors import ModelError, listing, warn
from torsor.formats.meshes.mesh_files import own_folders
from torsor.formats.osim.model import (
    GROUND,
    OsimAxis,
    OsimBody,
    OsimCoordinate,
    OsimCoupling,
    OsimJoint,
    OsimLoop,
    OsimMarker,
    OsimModel,
    OsimShape,
    pose_of,
)
from torsor.formats.search_path import given_folders
from torsor.formats.xml import Element, flag_of, parse_xml, text_of, where_is
from torsor.mechanism.mechanism import check_unique
from torsor.mechanism.names import claim_name
from torsor.mechanism.parts import symmetric
from torsor.spatial import to_rpy


def _owner(element: ET.Element) -> str:
    return f"{element.tag} {element.get('name', '')!r}"


def _error(message: str, element: ET.Element, **fields: str) -> ModelError:
    return ModelError(message, where=where_is(element, _owner(element)), **fields)


def name_of(element: ET.Element) -> str:
    """Return the name of an element. Raise ModelError if it has none."""
    name = element.get("name", "")
    if not name:
        raise _error("it has no name", element)
    return name


def flag_is(element: ET.Element, key: str, default: bool = False) -> bool:
    """Return whether a child element is true, or ``default`` if it is missing."""
    return flag_of(element, key, _owner(element), default)


def numbers_in(element: ET.Element, key: str, count: int | None, missing: tuple[float, ...] | None = None) -> Array:
    """Return the numbers in a child element (``count`` of them, if given), or ``missing`` if there is no element."""
    text = text_of(element, key)
    if not text and missing is not None:
        return np.array(missing)
    try:
        values = [number_in(word) for word in text.replace(",", " ").split()]
    except ValueError as error:
        raise _error(f"<{key}>: {error}", element, allowed="numbers") from None
    if not values or (count is not None and len(values) != count):
        allowed = f"{'some' if count is None else count} numbers"
        raise _error(f"<{key}> has {len(values)} numbers", element, allowed=allowed)
    return frozen_array(values, (len(values),), where_is(element, _owner(element)), f"<{key}>", most=MAX_NUMBER)


def place_in(element: ET.Element, *keys: str, count: int = 3) -> Array:
    """Return the translation and orientation (6,) of a frame, each with ``count`` numbers. Missing numbers are zero."""
    return np.concatenate([numbers_in(element, key, count, (0.0,) * count) for key in keys])


# Frames of an .osim file, each with its body and place. Sockets refer to frames by paths.
#
# A path is absolute ("/bodyset/femur/offset"), or relative to the element with the socket ("offset", "..").

OFFSET = "PhysicalOffsetFrame"
_SETS = ("BodySet", "JointSet", "ConstraintSet", "ComponentSet", "MarkerSet")
_PLACE = ("translation", "orientation")
_MAX_DEPTH = 20  # of frames on frames (more are a cycle) and of nested frames


class Frames:
    """The frames of a model: bodies, the ground, and frames placed on other frames."""

    def __init__(self, model: ET.Element, bodies: Collection[str]):
        self.bodies = bodies
        self.paths: dict[ET.Element, str] = {}
        self.offsets: dict[str, ET.Element] = {}
        self._add(model, "")
        for name in _SETS:
            for item in model.iterfind(f"{name}/objects/*"):
                self._add(item, f"/{name.lower()}/{item.get('name', '')}")
        for item in model.iterfind("Ground"):
            self._add(item, f"/{GROUND}")

    def _add(self, element: ET.Element, path: str, depth: int = 0) -> None:
        if depth > _MAX_DEPTH:
            raise _error("frames are nested too deeply", element, allowed=f"{_MAX_DEPTH} or fewer")
        self.paths[element] = path
        if element.tag == OFFSET:
            self.offsets[path] = element
        for item in (*element.iterfind("components/*"), *element.iterfind("frames/*")):
            self._add(item, f"{path}/{item.get('name', '')}", depth + 1)

    def of(self, owner: ET.Element) -> tuple[str, Array]:
        """Return the body of a frame, and its place (6,) on that body. The frame may be a body or the ground itself."""
        if owner.tag != OFFSET:
            return self.paths[owner].rpartition("/")[2], np.zeros(6)
        return self._followed(owner, owner, "socket_parent", [place_in(owner, *_PLACE)])

    def at(self, element: ET.Element, socket: str) -> tuple[str, Array]:
        """Return the body to which a socket of an element refers, and the place (6,) of its frame on that body."""
        return self._followed(element, element, f"socket_{socket}", [])

    def _followed(self, element: ET.Element, owner: ET.Element, key: str, places: list[Array]) -> tuple[str, Array]:
        """Follow sockets from frame to frame until they lead to a body."""
        while len(places) < _MAX_DEPTH:
            named = text_of(owner, key)
            result = self._offset(owner, named)
            if result is None:
                body = (named if named != ".." else self.paths[owner].rpartition("/")[0]).rpartition("/")[2]
                self.check(element, body)
                if len(places) < 2:
                    return body, places[0] if places else np.zeros(6)
                pose = np.eye(4)
                for place in reversed(places):
                    pose = pose @ pose_of(place)
                return body, np.concatenate([pose[:3, 3], -to_rpy(pose[:3, :3].T)])
            places.append(place_in(result, *_PLACE))
            owner, key = result, "socket_parent"
        raise _error("its frames form a cycle", element)

    def _offset(self, owner: ET.Element, named: str) -> ET.Element | None:
        """Return the frame to which a path leads, or None if it leads to a body."""
        path = posixpath.normpath(posixpath.join(self.paths[owner] or "/", named))
        last = named.rpartition("/")[2]
        if path in self.offsets or last in self.bodies or last in ("..", GROUND):
            return self.offsets.get(path)
        alike = [offset for key, offset in self.offsets.items() if key.rpartition("/")[2] == last]
        return alike[0] if len(alike) == 1 else None

    def check(self, element: ET.Element, body: str) -> None:
        """Raise ModelError if there is no such body."""
        if body not in self.bodies and body != GROUND:
            allowed = f"ground, {listing(self.bodies, like=body)}"
            raise _error(f"the body is {body[:60]!r}", element, allowed=allowed)


# Surfaces of bodies in .osim files: attached to frames in version 4, in the body in version 3.
#
# OpenSim looks for mesh files next to the model and in its subfolder Geometry.

_GEOMETRY = "Geometry"  # the folder of meshes next to a model
# The size parameters of each kind, and their number.
_SIZES = {
    "Brick": (("half_lengths", 3),),
    "Sphere": (("radius", 1),),
    "Cylinder": (("radius", 1), ("half_height", 1)),
    "Ellipsoid": (("radii", 3),),
}


def shapes_of(path: Path, model: ET.Element, frames: Frames) -> Iterator[OsimShape]:
    """Yield the surfaces of all bodies and of the ground, except hidden ones."""
    for owner in frames.paths:
        if owner.find("attached_geometry") is not None:
            body, place = frames.of(owner)
            for item in owner.iterfind("attached_geometry/*"):
                if not flag_is(item, "Appearance/visible", default=True):
                    continue
                numbers = [numbers_in(item, key, count) for key, count in _SIZES.get(item.tag, ())]
                size, file = np.concatenate(numbers) if numbers else np.ones(3), text_of(item, "mesh_file")
                scale, looks = numbers_in(item, "scale_factors", 3, (1.0,) * 3), item.find("Appearance")
                color = None if looks is None else _color(looks)
                surface = item.tag, size, scale, place, color, file, _found(path, file)
                yield OsimShape(item.get("name", ""), body, *surface)
    for owner in model.iterfind("BodySet/objects/Body"):
        for visible in owner.iterfind("VisibleObject"):
            yield from _displayed(path, visible, owner.get("name", GROUND))


def _displayed(path: Path, visible: ET.Element, body: str) -> Iterator[OsimShape]:
    """Yield the meshes of a body of version 3, whose scale applies in addition to those of the meshes."""
    outer = numbers_in(visible, "scale_factors", 3, (1.0,) * 3)
    for file in text_of(visible, "geometry_files").split():
        yield OsimShape(Path(file).stem, body, "Mesh", np.ones(3), outer, np.zeros(6), None, file, _found(path, file))
    for item in visible.iterfind("GeometrySet/objects/DisplayGeometry"):
        if text_of(item, "display_preference") == "0":
            continue
        place = np.roll(place_in(item, "transform", count=6), 3)  # angles come first there
        scale, file = outer * numbers_in(item, "scale_factors", 3, (1.0,) * 3), text_of(item, "geometry_file")
        surface = "Mesh", np.ones(3), scale, place, _color(item), file, _found(path, file)
        yield OsimShape(item.get("name", "") or Path(file).stem, body, *surface)


def _color(element: ET.Element) -> tuple[float, ...]:
    """Return red, green, blue and opacity, or opaque white if there are none."""
    color = numbers_in(element, "color", 3, (1.0,) * 3)
    return (*color.tolist(), float(numbers_in(element, "opacity", 1, (1.0,))[0]))


def _found(path: Path, file: str) -> str | None:
    """Return the path of a mesh file next to the model, in search folders, or in their subfolders Geometry."""
    for folder in (path.parent, *given_folders()):
        for candidate in (folder / file, folder / _GEOMETRY / file):
            try:
                if candidate.is_file():
                    return str(candidate)
            except (OSError, ValueError):  # no file can have such a name
                return None
    return None


KIND = "an .osim file of OpenSim 3 or 4"
MIN_VERSION = 20300  # the first document version of OpenSim 3
_FUNCTIONS = ("LinearFunction", "Constant", "SimmSpline", "PolynomialFunction", "PiecewiseLinearFunction")
_OLD_NAMES = {"NaturalCubicSpline": "SimmSpline", "natCubicSpline": "SimmSpline"}  # as OpenSim renames them
_COUPLER, _LOOPS = "CoordinateCouplerConstraint", {"WeldConstraint": "weld", "PointConstraint": "spherical"}
# Sets of a model that are not part of a skeleton.
_OTHER_SETS = ("ForceSet", "ContactGeometrySet", "ControllerSet", "ProbeSet", "ComponentSet")
_WRAPS = "surfaces that muscles wrap around"

Part = TypeVar("Part", OsimJoint, OsimMarker)


def read_osim(path: str | Path) -> OsimModel:
    """Return the skeleton in an .osim file of OpenSim 3 or 4: bodies, joints and markers, without muscles.

    Example:
        >>> import tempfile
        >>> text = '''<OpenSimDocument Version="40500"><Model name="block"><BodySet><objects><Body name="foot">
        ... <mass>1.5</mass><mass_center>0.1 0 0</mass_center><inertia>1 2 3 0 0 0</inertia></Body></objects></BodySet>
        ... <JointSet><objects/></JointSet><MarkerSet><objects><Marker name="heel">
        ... <socket_parent_frame>/bodyset/foot</socket_parent_frame><location>0 0.1 0</location></Marker></objects>
        ... </MarkerSet></Model></OpenSimDocument>'''
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "block.osim").write_text(text)
        ...     model = read_osim(folder + "/block.osim")
        >>> model.mass, model.markers["heel"].body, model.markers["heel"].location.tolist()
        (1.5, 'foot', [0.0, 0.1, 0.0])
    """
    path = Path(path)
    if not path.is_file():
        raise ModelError("no such file", where=str(path), allowed=KIND)
    model = _model(path, parse_xml(path))
    described = [item for item in model.iterfind("BodySet/objects/*") if item.get("name") != GROUND]
    check_unique(map(name_of, described), "bodies", path.name)
    bodies = {item.get("name", ""): _body(item) for item in described}
    if not bodies:
        raise ModelError("it has no body", where=path.name, allowed=KIND)
    _name_parts(model)
    frames = Frames(model, bodies)
    made = [_joint(item, frames) for item in model.iterfind("JointSet/objects/*")]
    made += [_joint(joint, frames, item) for item in described for joint in item.iterfind("Joint/*")]
    joints = _by_name(made, path, "joints")
    owners = dict[str, str]()  # of coordinates, which functions and couplers name
    for joint in made:
        for name in (coordinate.name for coordinate in joint.coordinates):
            if name in owners:
                message = f"{owners[name]!r} and {joint.name!r} both have a coordinate {name!r}"
                raise ModelError(message, argument="joints", where=path.name, fix="rename one")
            owners[name] = joint.name
    markers = _by_name([_marker(item, frames) for item in model.iterfind("MarkerSet/objects/*")], path, "markers")
    gravity = numbers_in(model, "gravity", 3, (0.0, -9.80665, 0.0))
    listed = model.iterfind("ConstraintSet/objects/*")
    enforced = [item for item in listed if flag_is(item, "isEnforced", default=True)]
    constraints = [item for item in enforced if not flag_is(item, "isDisabled")]
    couplings = tuple(_coupling(constraint) for constraint in constraints if constraint.tag == _COUPLER)
    loops = tuple(_loop(constraint, frames) for constraint in constraints if constraint.tag in _LOOPS)
    name, left_out = model.get("name") or path.stem, _left_out(model, constraints)
    shapes, folders = tuple(shapes_of(path, model, frames)), (*own_folders(path), *map(str, given_folders()))
    return OsimModel(name, bodies, joints, markers, gravity, path.name, couplings, loops, left_out, shapes, folders)


def _model(path: Path, root: Element) -> ET.Element:
    version = root.get("Version", "")
    if root.tag != "OpenSimDocument" or not (version.isascii() and version.isdigit() and len(version) < 9):
        message = f"the root element is <{root.tag}>" + (f" of version {version[:20]!r}" if version else "")
        raise ModelError(message, where=path.name, allowed=KIND)
    if int(version) < MIN_VERSION:
        fix = "open it in OpenSim and save it"
        raise ModelError(f"version {version}", where=path.name, allowed=f"{MIN_VERSION} or later", fix=fix)
    model = root.find("Model")
    if model is None:
        result = f"<{root[0].tag}>" if len(root) else "nothing"
        raise ModelError(f"{result} instead of <Model>", where=path.name, allowed=KIND)
    length = text_of(model, "length_units")
    if length.lower() not in ("", "m", "meter", "meters"):
        result = f"is {length[:20]!r}, but its numbers are read as m, as in OpenSim"
        warn(result, argument="length_units", where=path.name)
    return model


def _left_out(model: ET.Element, constraints: list[ET.Element]) -> dict[str, list[str]]:
    """Return the names of muscles, contact surfaces and other parts that act in OpenSim, by kind."""
    result: dict[str, list[str]] = {}
    others = [constraint for constraint in constraints if constraint.tag not in (_COUPLER, *_LOOPS)]
    parts = [part for name in _OTHER_SETS for part in model.iterfind(f"{name}/objects/*")]
    parts += [part for owner in model.iter("components") for part in owner]
    for item in (*others, *(part for part in parts if part.tag != OFFSET)):
        result.setdefault(item.tag, []).append(item.get("name", ""))
    wraps = [entry.get("name", "") for entry in model.iterfind("BodySet/objects/Body//WrapObjectSet/objects/*")]
    prescribed = [element.get("name", "") for element in model.iter("Coordinate") if flag_is(element, "prescribed")]
    return result | {what: names for what, names in ((_WRAPS, wraps), ("prescribed motions", prescribed)) if names}


def _body(element: ET.Element) -> OsimBody:
    name = name_of(element)
    mass = float(numbers_in(element, "mass", 1)[0])
    if mass < 0:
        raise _error(f"is {mass:g} kg", element, argument="mass", allowed="0 or more")
    if element.find("inertia_xx") is None:
        inertia = numbers_in(element, "inertia", 6, (0.0,) * 6)
    else:  # of version 3
        keys = (f"inertia_{key}" for key in ("xx", "yy", "zz", "xy", "xz", "yz"))
        inertia = np.concatenate([numbers_in(element, key, 1, (0.0,)) for key in keys])
    inertia = symmetric(inertia)
    surface = element.find("attached_geometry/Mesh")
    surface = element.find("VisibleObject") if surface is None else surface  # of version 3
    scale = np.ones(3) if surface is None else numbers_in(surface, "scale_factors", 3, (1.0,) * 3)
    return OsimBody(name, mass, numbers_in(element, "mass_center", 3, (0.0,) * 3), inertia, scale)


def _name_parts(model: ET.Element) -> None:
    """Name unnamed joints and constraints after their class, and unnamed coordinates after their joint."""
    joints = [*model.iterfind("JointSet/objects/*"), *model.iterfind("BodySet/objects/*/Joint/*")]
    for parts in (joints, [*model.iterfind("ConstraintSet/objects/*")]):
        taken = {item.get("name", "") for item in parts}
        for item in parts:
            if not item.get("name"):
                item.set("name", claim_name(item.tag, taken))
    for item in joints:
        for k, coordinate in enumerate(item.iter("Coordinate")):
            if not coordinate.get("name"):
                coordinate.set("name", f"{item.get('name')}_coord_{k}")  # OpenSim's own default


def _joint(element: ET.Element, frames: Frames, body: ET.Element | None = None) -> OsimJoint:
    """Return a joint of version 4, or a joint of version 3, which is an element of the ``body`` that it moves."""
    if body is None:
        ends = [frames.at(element, f"{role}_frame") for role in ("parent", "child")]
    elif flag_is(element, "reverse"):
        raise _error("the joint is reversed", element, fix="open it in OpenSim 4 and save it")
    else:
        on = text_of(element, "parent_body")
        frames.check(element, on)
        ends = [(on, place_in(element, "location_in_parent", "orientation_in_parent"))]
        ends.append((name_of(body), place_in(element, "location", "orientation")))
    (parent, before), (child, after) = ends
    result = element.iterfind("coordinates/Coordinate" if body is None else "CoordinateSet/objects/Coordinate")
    parts = tuple(map(_coordinate, result)), tuple(map(_axis, element.iterfind("SpatialTransform/TransformAxis")))
    return OsimJoint(name_of(element), element.tag, parent, child, before, after, *parts)


def _loop(element: ET.Element, frames: Frames) -> OsimLoop:
    """Return a weld or a point that two bodies share. Welds of version 4 have frames; others have places on bodies."""
    if element.find("socket_frame1") is not None:
        ends = [frames.at(element, f"frame{k}") for k in "12"]
    else:
        ends = []
        for k in "12":
            body = text_of(element, f"body_{k}") or text_of(element, f"socket_body_{k}").split("/")[-1]
            frames.check(element, body)
            ends.append((body, place_in(element, f"location_body_{k}", f"orientation_body_{k}")))
    (a, at), (b, there) = ends
    return OsimLoop(name_of(element), _LOOPS[element.tag], (a, b), (at, there))


def _coordinate(element: ET.Element) -> OsimCoordinate:
    default = float(numbers_in(element, "default_value", 1, (0.0,))[0])
    lower, upper = numbers_in(element, "range", 2, (-np.inf, np.inf))
    locked, clamped = (flag_is(element, key) for key in ("locked", "clamped"))
    return OsimCoordinate(name_of(element), default, float(lower), float(upper), locked, clamped)


def _axis(element: ET.Element) -> OsimAxis:
    named = (item for item in element if item.tag not in ("coordinates", "axis", "function"))
    function = next(named, element.find("function/*"))  # in version 3 within <function>
    axis = numbers_in(element, "axis", 3)
    coordinates = tuple(text_of(element, "coordinates").split())
    return OsimAxis(element.get("name", ""), axis, coordinates, *_function(element, function))


def _coupling(element: ET.Element) -> OsimCoupling:
    names = text_of(element, "independent_coordinate_names").split()
    if len(names) != 1:
        raise _error(f"it depends on {len(names)} coordinates", element, allowed="1")
    function = element.find("coupled_coordinates_function/*")
    if function is None:
        raise _error("no function", element, allowed=", ".join(_FUNCTIONS))
    kind, numbers, scale = _function(element, function)
    scale *= float(numbers_in(element, "scale_factor", 1, (1.0,))[0])
    return OsimCoupling(text_of(element, "dependent_coordinate_name"), names[0], kind, numbers, scale)


def _function(element: ET.Element, function: ET.Element | None) -> tuple[str, Array, float]:
    """Return the kind, numbers and scale of a function, or the constant 0 if there is none."""
    scale = 1.0
    if function is not None and function.tag == "MultiplierFunction":
        scale = float(numbers_in(function, "scale", 1, (1.0,))[0])
        function = function.find("function/*")
    if function is None:
        return "Constant", np.zeros(1), scale
    kind = _OLD_NAMES.get(function.tag, function.tag)
    if kind not in _FUNCTIONS:
        message = f"{element.get('name', 'it')!r} has a {kind}"
        raise _error(message, element, allowed=", ".join(_FUNCTIONS))
    if kind == "Constant":
        return kind, numbers_in(function, "value", 1, (0.0,)), scale
    if kind in ("LinearFunction", "PolynomialFunction"):
        count, default = (2, (1.0, 0.0)) if kind == "LinearFunction" else (None, (0.0,))
        return kind, numbers_in(function, "coefficients", count, default), scale
    x, y = (numbers_in(function, key, None) for key in "xy")
    if len(x) != len(y):
        message = f"a {kind} has {len(x)} x and {len(y)} y"
        raise _error(message, function, allowed="equal numbers of x and y")
    return kind, np.stack([x, y], axis=1).ravel(), scale


def _marker(element: ET.Element, frames: Frames) -> OsimMarker:
    location, fixed = numbers_in(element, "location", 3), flag_is(element, "fixed")
    body = text_of(element, "body")  # of version 3
    if body:
        frames.check(element, body)
    else:
        body, place = frames.at(element, "parent_frame")
        if place.any():
            pose = pose_of(place)
            location = pose[:3, :3] @ location + pose[:3, 3]
    return OsimMarker(name_of(element), body, location, fixed)


def _by_name(parts: list[Part], path: Path, what: str) -> dict[str, Part]:
    """Return parts by name. Duplicates are renamed as in OpenSim: "back" becomes "back_0"."""
    result: dict[str, Part] = {}
    for part in parts:
        numbers = (f"{part.name}_{k}" for k in count())
        name = part.name if part.name not in result else next(number for number in numbers if number not in result)
        if name != part.name:
            warn(f"two {what} are named {part.name!r}; the later one is now {name!r}", where=path.name)
        result[name] = part._replace(name=name)
    return result
