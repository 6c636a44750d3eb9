"""Skeletons of OpenSim (.osim, version 4): bodies, joints, coordinates and markers, without muscles."""

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from torsor.arrays import Array
from torsor.checks import frozen_array
from torsor.errors import ModelError, describe, listing
from torsor.formats.xml import Element, parse_xml
from torsor.recordings.text import number_in

KIND = "an .osim file of OpenSim 4"
OLDEST = 40000  # the version of the document from which joints are in a set of their own
GROUND = "ground"
_FUNCTIONS = ("LinearFunction", "Constant", "SimmSpline", "PolynomialFunction", "PiecewiseLinearFunction")


class OsimBody(NamedTuple):
    """A body: mass (kg), centre of mass (3,) (m), inertia (3, 3) about it (kg m²), and the scale (3,) of its surface.

    The scale is by how much the generic skeleton was scaled along x, y and z, as far as its surfaces tell; 1 without
    them.
    """

    name: str
    mass: float
    com: Array
    inertia: Array
    scale: Array


class OsimCoordinate(NamedTuple):
    """A coordinate of a joint: its default value, its range (rad or m), whether it is locked, and kept in its range."""

    name: str
    default: float
    lower: float
    upper: float
    locked: bool
    clamped: bool = False


class OsimAxis(NamedTuple):
    """One of the six motions of a CustomJoint: "rotation1" to "translation3", about or along ``axis`` (3,).

    It is ``scale`` times a ``function`` of ``coordinates`` (at most one, most often): "LinearFunction" with
    coefficients (slope, constant), "Constant" (value), "PolynomialFunction" (highest power first), "SimmSpline" or
    "PiecewiseLinearFunction" with points (x1, y1, x2, y2, ...) in ``numbers``.
    """

    name: str
    axis: Array
    coordinates: tuple[str, ...]
    function: str
    numbers: Array
    scale: float


class OsimJoint(NamedTuple):
    """A joint, of a ``kind`` such as "PinJoint" (about z), between frames on ``parent`` and ``child``.

    ``parent_place`` and ``child_place`` (6,) are where these frames lie on the bodies: translation (m), and orientation
    as three angles (rad) about x, then the new y, then the new z. ``axes`` are those of a CustomJoint.
    """

    name: str
    kind: str
    parent: str
    child: str
    parent_place: Array
    child_place: Array
    coordinates: tuple[OsimCoordinate, ...]
    axes: tuple[OsimAxis, ...]


class OsimMarker(NamedTuple):
    """A marker on a ``body`` at ``location`` (3,), in m; ``fixed`` ones are not moved when a skeleton is scaled."""

    name: str
    body: str
    location: Array
    fixed: bool


class OsimCoupling(NamedTuple):
    """A coordinate that follows another: ``scale`` times a ``function`` of it, as in ``OsimAxis``."""

    dependent: str
    independent: str
    function: str
    numbers: Array
    scale: float


Part = TypeVar("Part", OsimBody, OsimJoint, OsimMarker)


@dataclass(frozen=True, eq=False)
class OsimModel:
    """A skeleton: ``bodies``, ``joints`` and ``markers`` by name, and ``gravity`` (3,) in m/s².

    ``couplings`` are coordinates that follow others, as those of the kneecaps do.
    """

    name: str
    bodies: dict[str, OsimBody]
    joints: dict[str, OsimJoint]
    markers: dict[str, OsimMarker]
    gravity: Array
    source: str = "model"
    couplings: tuple[OsimCoupling, ...] = ()

    @property
    def mass(self) -> float:
        """The mass of all bodies, in kg."""
        return sum(body.mass for body in self.bodies.values())

    @property
    def coordinates(self) -> dict[str, OsimCoordinate]:
        """The coordinates of all joints, by name."""
        return {each.name: each for joint in self.joints.values() for each in joint.coordinates}


def read_osim(path: str | Path) -> OsimModel:
    """Return the skeleton in an .osim file of OpenSim 4: bodies, joints, markers; muscles and surfaces are left out.

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
        raise ModelError(describe("no such file", where=str(path), allowed=KIND))
    root = parse_xml(path)
    model = _model(path, root)
    bodies = _by_name([_body(path, each) for each in _objects(model, "BodySet")], path, "bodies")
    joints = _by_name([_joint(path, each, bodies) for each in _objects(model, "JointSet")], path, "joints")
    markers = _by_name([_marker(path, each, bodies) for each in _objects(model, "MarkerSet")], path, "markers")
    if not bodies:
        raise ModelError(describe("it has no body", where=path.name, allowed=KIND))
    gravity = _numbers(path, model, "gravity", 3, (0.0, -9.80665, 0.0))
    coupled = model.iterfind("ConstraintSet/objects/CoordinateCouplerConstraint")
    couplings = tuple(_coupling(path, each) for each in coupled)
    return OsimModel(model.get("name", path.stem), bodies, joints, markers, gravity, path.name, couplings)


def _model(path: Path, root: Element) -> ET.Element:
    version = root.get("Version", "")
    if root.tag != "OpenSimDocument" or not (version.isascii() and version.isdigit() and len(version) < 9):
        text = f"the root element is <{root.tag}>" + (f" of version {version[:20]!r}" if version else "")
        raise ModelError(describe(text, where=path.name, allowed=KIND))
    if int(version) < OLDEST:
        fix = "open it in OpenSim 4 and save it"
        raise ModelError(describe(f"version {version}", where=path.name, allowed=f"{OLDEST} or later", fix=fix))
    model = root.find("Model")
    if model is None:
        found = f"<{root[0].tag}>" if len(root) else "nothing"
        raise ModelError(describe(f"{found} in place of <Model>", where=path.name, allowed=KIND))
    return model


def _objects(model: ET.Element, name: str) -> Iterator[ET.Element]:
    found = model.find(f"{name}/objects")
    return iter(() if found is None else found)


def _body(path: Path, element: ET.Element) -> OsimBody:
    name = _name(path, element)
    mass = float(_numbers(path, element, "mass", 1)[0])
    if mass < 0:
        raise ModelError(describe(f"mass is {mass:g} kg", where=_where(path, element), allowed="0 or more"))
    xx, yy, zz, xy, xz, yz = _numbers(path, element, "inertia", 6, (0.0,) * 6)
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    mesh = element.find("attached_geometry/Mesh")
    scale = np.ones(3) if mesh is None else _numbers(path, mesh, "scale_factors", 3, (1.0,) * 3)
    return OsimBody(name, mass, _numbers(path, element, "mass_center", 3, (0.0,) * 3), inertia, scale)


def _joint(path: Path, element: ET.Element, bodies: dict[str, OsimBody]) -> OsimJoint:
    frames = {each.get("name", ""): each for each in element.iterfind("frames/PhysicalOffsetFrame")}
    ends = []
    for role in ("parent", "child"):
        socket = _text(element, f"socket_{role}_frame").split("/")[-1]
        if socket in frames:
            frame = frames[socket]
            body = _text(frame, "socket_parent").split("/")[-1]
            values = [_numbers(path, frame, key, 3, (0.0,) * 3) for key in ("translation", "orientation")]
            place = np.concatenate(values)
        else:
            body, place = socket, np.zeros(6)
        _check_body(path, element, body, bodies)
        ends.append((body, place))
    coordinates = tuple(_coordinate(path, each) for each in element.iterfind("coordinates/Coordinate"))
    axes = tuple(_axis(path, each) for each in element.iterfind("SpatialTransform/TransformAxis"))
    (parent, parent_place), (child, child_place) = ends
    name = _name(path, element)
    return OsimJoint(name, element.tag, parent, child, parent_place, child_place, coordinates, axes)


def _coordinate(path: Path, element: ET.Element) -> OsimCoordinate:
    default = float(_numbers(path, element, "default_value", 1, (0.0,))[0])
    lower, upper = _numbers(path, element, "range", 2, (-np.inf, np.inf))
    locked, clamped = (_text(element, key).lower() == "true" for key in ("locked", "clamped"))
    return OsimCoordinate(_name(path, element), default, float(lower), float(upper), locked, clamped)


def _axis(path: Path, element: ET.Element) -> OsimAxis:
    own = next((each for each in element if each.tag.endswith(("Function", "Spline", "Constant"))), None)
    axis = _numbers(path, element, "axis", 3)
    coordinates = tuple(_text(element, "coordinates").split())
    return OsimAxis(element.get("name", ""), axis, coordinates, *_function(path, element, own))


def _coupling(path: Path, element: ET.Element) -> OsimCoupling:
    names = _text(element, "independent_coordinate_names").split()
    if len(names) != 1:
        text = f"it depends on {len(names)} coordinates"
        raise ModelError(describe(text, where=_where(path, element), allowed="1"))
    kind, numbers, scale = _function(path, element, element.find("coupled_coordinates_function/*"))
    scale *= float(_numbers(path, element, "scale_factor", 1, (1.0,))[0])
    return OsimCoupling(_text(element, "dependent_coordinate_name"), names[0], kind, numbers, scale)


def _function(path: Path, element: ET.Element, function: ET.Element | None) -> tuple[str, Array, float]:
    """Return the kind, the numbers and the scale of a function, the constant 0 where there is none."""
    scale = 1.0
    if function is not None and function.tag == "MultiplierFunction":
        scale = float(_numbers(path, function, "scale", 1, (1.0,))[0])
        function = function.find("function/*")
    if function is None:
        return "Constant", np.zeros(1), scale
    kind = function.tag
    if kind not in _FUNCTIONS:
        text = f"a {kind} in {element.get('name', 'it')!r}"
        raise ModelError(describe(text, where=_where(path, element), allowed=", ".join(_FUNCTIONS)))
    if kind == "Constant":
        return kind, _numbers(path, function, "value", 1, (0.0,)), scale
    if kind in ("LinearFunction", "PolynomialFunction"):
        return kind, _numbers(path, function, "coefficients", None, (0.0,)), scale
    x, y = (_numbers(path, function, key, None) for key in "xy")
    if len(x) != len(y):
        text = f"{len(x)} x and {len(y)} y in a {kind}"
        raise ModelError(describe(text, where=_where(path, function), allowed="as many of both"))
    return kind, np.stack([x, y], axis=1).ravel(), scale


def _marker(path: Path, element: ET.Element, bodies: dict[str, OsimBody]) -> OsimMarker:
    body = _text(element, "socket_parent_frame").split("/")[-1]
    _check_body(path, element, body, bodies)
    fixed = _text(element, "fixed").lower() == "true"
    return OsimMarker(_name(path, element), body, _numbers(path, element, "location", 3), fixed)


def _check_body(path: Path, element: ET.Element, body: str, bodies: dict[str, OsimBody]) -> None:
    if body not in bodies and body != GROUND:
        allowed = f"ground, {listing(bodies, like=body)}"
        raise ModelError(describe(f"the body is {body[:60]!r}", where=_where(path, element), allowed=allowed))


def _by_name(parts: list[Part], path: Path, what: str) -> dict[str, Part]:
    found: dict[str, Part] = {}
    for part in parts:
        if part.name in found:
            raise ModelError(describe(f"two {what} are named {part.name!r}", where=path.name, fix="rename one"))
        found[part.name] = part
    return found


def _name(path: Path, element: ET.Element) -> str:
    name = element.get("name", "")
    if not name:
        raise ModelError(describe("it has no name", where=_where(path, element)))
    return name


def _text(element: ET.Element, key: str) -> str:
    return (element.findtext(key) or "").strip()


def _numbers(
    path: Path, element: ET.Element, key: str, count: int | None, missing: tuple[float, ...] | None = None
) -> Array:
    """Return the numbers in a child element: ``count`` of them, or any number; ``missing`` without that element."""
    text = _text(element, key)
    if not text and missing is not None:
        return np.array(missing)
    where = _where(path, element)
    try:
        values = [number_in(each) for each in text.replace(",", " ").split()]
    except ValueError as error:
        raise ModelError(describe(f"<{key}>: {error}", where=where, allowed="numbers")) from None
    if not values or (count is not None and len(values) != count):
        allowed = f"{'some' if count is None else count} numbers"
        raise ModelError(describe(f"<{key}> has {len(values)} numbers", where=where, allowed=allowed))
    return frozen_array(values, (len(values),), where, f"<{key}>")


def _where(path: Path, element: ET.Element) -> str:
    line = f"line {element.line}: " if isinstance(element, Element) else ""
    return f"{path.name}: {line}{element.tag} {element.get('name', '')!r}"
