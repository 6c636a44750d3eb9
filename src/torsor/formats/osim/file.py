"""Files of OpenSim (.osim, versions 3 and 4): bodies, joints, coordinates, markers and constraints, without muscles.

In version 4 joints are in a set of their own, with frames on their two bodies; in version 3 a body has the joint that
moves it.
"""

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import numpy as np

from torsor.arrays import Array
from torsor.checks import frozen_array
from torsor.errors import ModelError, describe, listing, warn
from torsor.formats.decimals import number_in
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
)
from torsor.formats.xml import Element, parse_xml

KIND = "an .osim file of OpenSim 3 or 4"
OLDEST = 20300  # the version of the document that OpenSim 3 began with
_FUNCTIONS = ("LinearFunction", "Constant", "SimmSpline", "PolynomialFunction", "PiecewiseLinearFunction")
_OLD_NAMES = {"NaturalCubicSpline": "SimmSpline", "natCubicSpline": "SimmSpline"}  # as OpenSim renames them
_COUPLER, _LOOPS = "CoordinateCouplerConstraint", {"WeldConstraint": "weld", "PointConstraint": "spherical"}
# Sets of a model that a skeleton does not have.
_OTHER_SETS = ("ForceSet", "ContactGeometrySet", "ControllerSet", "ProbeSet", "ComponentSet")
_WRAPS = "surfaces that muscles wrap around"

Part = TypeVar("Part", OsimBody, OsimJoint, OsimMarker)


def read_osim(path: str | Path) -> OsimModel:
    """Return the skeleton in an .osim file of OpenSim 3 or 4: bodies, joints, markers; muscles are left out.

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
    described = [each for each in _objects(model, "BodySet") if each.get("name") != GROUND]
    bodies = _by_name([_body(path, each) for each in described], path, "bodies")
    made = [_joint(path, each, bodies) for each in _objects(model, "JointSet")]
    made += [_inner_joint(path, each, joint, bodies) for each in described for joint in each.iterfind("Joint/*")]
    joints = _by_name(made, path, "joints")
    markers = _by_name([_marker(path, each, bodies) for each in _objects(model, "MarkerSet")], path, "markers")
    if not bodies:
        raise ModelError(describe("it has no body", where=path.name, allowed=KIND))
    gravity = _numbers(path, model, "gravity", 3, (0.0, -9.80665, 0.0))
    constraints = [each for each in _objects(model, "ConstraintSet") if _is_enforced(each)]
    couplings = tuple(_coupling(path, each) for each in constraints if each.tag == _COUPLER)
    loops = tuple(_loop(path, each, bodies) for each in constraints if each.tag in _LOOPS)
    name = model.get("name") or path.stem
    return OsimModel(name, bodies, joints, markers, gravity, path.name, couplings, loops, _left_out(model, constraints))


def _model(path: Path, root: Element) -> ET.Element:
    version = root.get("Version", "")
    if root.tag != "OpenSimDocument" or not (version.isascii() and version.isdigit() and len(version) < 9):
        text = f"the root element is <{root.tag}>" + (f" of version {version[:20]!r}" if version else "")
        raise ModelError(describe(text, where=path.name, allowed=KIND))
    if int(version) < OLDEST:
        fix = "open it in OpenSim and save it"
        raise ModelError(describe(f"version {version}", where=path.name, allowed=f"{OLDEST} or later", fix=fix))
    model = root.find("Model")
    if model is None:
        found = f"<{root[0].tag}>" if len(root) else "nothing"
        raise ModelError(describe(f"{found} in place of <Model>", where=path.name, allowed=KIND))
    length = (model.findtext("length_units") or "").strip()
    if length.lower() not in ("", "m", "meter", "meters"):
        warn(describe(f"length_units is {length[:20]!r}; its numbers are read as m, as OpenSim does", where=path.name))
    return model


def _objects(model: ET.Element, name: str) -> Iterator[ET.Element]:
    found = model.find(f"{name}/objects")
    return iter(() if found is None else found)


def _is_enforced(element: ET.Element) -> bool:
    return _text(element, "isEnforced").lower() != "false" and _text(element, "isDisabled").lower() != "true"


def _left_out(model: ET.Element, constraints: list[ET.Element]) -> dict[str, list[str]]:
    """Return the names of muscles, contact surfaces and other parts that act in OpenSim, by kind."""
    found: dict[str, list[str]] = {}
    others = [each for each in constraints if each.tag not in (_COUPLER, *_LOOPS)]
    for each in (*others, *(part for name in _OTHER_SETS for part in _objects(model, name))):
        found.setdefault(each.tag, []).append(each.get("name", ""))
    wraps = [each.get("name", "") for each in model.iterfind("BodySet/objects/Body//WrapObjectSet/objects/*")]
    prescribed = [each.get("name", "") for each in model.iter("Coordinate") if _text(each, "prescribed") == "true"]
    return found | {what: names for what, names in ((_WRAPS, wraps), ("prescribed motions", prescribed)) if names}


def _body(path: Path, element: ET.Element) -> OsimBody:
    name = _name(path, element)
    mass = float(_numbers(path, element, "mass", 1)[0])
    if mass < 0:
        raise ModelError(describe(f"mass is {mass:g} kg", where=_where(path, element), allowed="0 or more"))
    if element.find("inertia_xx") is None:
        xx, yy, zz, xy, xz, yz = _numbers(path, element, "inertia", 6, (0.0,) * 6)
    else:  # of version 3
        keys = ("xx", "yy", "zz", "xy", "xz", "yz")
        xx, yy, zz, xy, xz, yz = (_numbers(path, element, f"inertia_{key}", 1, (0.0,))[0] for key in keys)
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    surface = element.find("attached_geometry/Mesh")
    surface = element.find("VisibleObject") if surface is None else surface  # of version 3
    scale = np.ones(3) if surface is None else _numbers(path, surface, "scale_factors", 3, (1.0,) * 3)
    return OsimBody(name, mass, _numbers(path, element, "mass_center", 3, (0.0,) * 3), inertia, scale)


def _joint(path: Path, element: ET.Element, bodies: dict[str, OsimBody]) -> OsimJoint:
    """Return a joint of version 4."""
    (parent, before), (child, after) = (_framed(path, element, f"{role}_frame", bodies) for role in ("parent", "child"))
    coordinates = tuple(_coordinate(path, each) for each in element.iterfind("coordinates/Coordinate"))
    return OsimJoint(_name(path, element), element.tag, parent, child, before, after, coordinates, _axes(path, element))


def _framed(path: Path, element: ET.Element, socket: str, bodies: dict[str, OsimBody]) -> tuple[str, Array]:
    """Return the body of a socket, and where on it the frame of the socket lies."""
    name = _text(element, f"socket_{socket}").split("/")[-1]
    frames = {each.get("name", ""): each for each in element.iterfind("frames/PhysicalOffsetFrame")}
    body, place = name, np.zeros(6)
    if name in frames:
        body = _text(frames[name], "socket_parent").split("/")[-1]
        place = _place(path, frames[name], "translation", "orientation")
    _check_body(path, element, body, bodies)
    return body, place


def _inner_joint(path: Path, body: ET.Element, element: ET.Element, bodies: dict[str, OsimBody]) -> OsimJoint:
    """Return the joint of version 3 that is in the body that it moves."""
    if _text(element, "reverse").lower() == "true":
        fix = "open it in OpenSim 4 and save it"
        raise ModelError(describe("the joint is reversed", where=_where(path, element), fix=fix))
    parent = _text(element, "parent_body")
    _check_body(path, element, parent, bodies)
    before = _place(path, element, "location_in_parent", "orientation_in_parent")
    after = _place(path, element, "location", "orientation")
    coordinates = tuple(_coordinate(path, each) for each in element.iterfind("CoordinateSet/objects/Coordinate"))
    ends = parent, _name(path, body), before, after
    return OsimJoint(_name(path, element), element.tag, *ends, coordinates, _axes(path, element))


def _place(path: Path, element: ET.Element, *keys: str) -> Array:
    """Return translation and orientation (6,) of a frame, zeros where they are missing."""
    return np.concatenate([_numbers(path, element, key, 3, (0.0,) * 3) for key in keys])


def _axes(path: Path, element: ET.Element) -> tuple[OsimAxis, ...]:
    return tuple(_axis(path, each) for each in element.iterfind("SpatialTransform/TransformAxis"))


def _loop(path: Path, element: ET.Element, bodies: dict[str, OsimBody]) -> OsimLoop:
    """Return a weld or a point that two bodies share; version 4 has frames of welds, all others places on bodies."""
    if element.find("socket_frame1") is not None:
        (a, at), (b, there) = (_framed(path, element, f"frame{k}", bodies) for k in "12")
        return OsimLoop(_name(path, element), _LOOPS[element.tag], (a, b), (at, there))
    names, places = [], []
    for k in "12":
        names.append(_text(element, f"body_{k}") or _text(element, f"socket_body_{k}").split("/")[-1])
        _check_body(path, element, names[-1], bodies)
        places.append(_place(path, element, f"location_body_{k}", f"orientation_body_{k}"))
    return OsimLoop(_name(path, element), _LOOPS[element.tag], (names[0], names[1]), (places[0], places[1]))


def _coordinate(path: Path, element: ET.Element) -> OsimCoordinate:
    default = float(_numbers(path, element, "default_value", 1, (0.0,))[0])
    lower, upper = _numbers(path, element, "range", 2, (-np.inf, np.inf))
    locked, clamped = (_text(element, key).lower() == "true" for key in ("locked", "clamped"))
    return OsimCoordinate(_name(path, element), default, float(lower), float(upper), locked, clamped)


def _axis(path: Path, element: ET.Element) -> OsimAxis:
    named = (each for each in element if each.tag.endswith(("Function", "Spline", "Constant")))
    own = next(named, element.find("function/*"))  # in version 3 within <function>
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
    kind = _OLD_NAMES.get(function.tag, function.tag)
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
    body = _text(element, "body") or _text(element, "socket_parent_frame").split("/")[-1]
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
