"""OpenSim skeletons as data: bodies, joints with their functions, coordinates, markers, couplings and loops."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import MAX_NUMBER
from torsor.base.errors import ModelError, listing
from torsor.mechanism.curves import IDENTITY, Curve, broken_line, cubic_spline
from torsor.spatial import from_rpy, make_pose

GROUND = "ground"


class OsimBody(NamedTuple):
    """A body: mass (kg), centre of mass (3,) (m), inertia (3, 3) about it (kg m²), and the scale (3,) of its surface.

    The scale is relative to the generic skeleton along x, y and z. It is 1 if the surfaces do not determine it.
    """

    name: str
    mass: float
    com: Array
    inertia: Array
    scale: Array


class OsimCoordinate(NamedTuple):
    """A coordinate of a joint: default value, range (rad or m), and whether it is locked or clamped to its range."""

    name: str
    default: float
    lower: float
    upper: float
    locked: bool
    clamped: bool = False


class OsimAxis(NamedTuple):
    """One of the six motions of a CustomJoint, "rotation1" to "translation3", about or along ``axis`` (3,).

    The motion is ``scale`` times a ``function`` of ``coordinates`` (usually at most one): "LinearFunction" with
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
    """A joint of a ``kind`` such as "PinJoint" (about z), between frames on ``parent`` and ``child``.

    ``parent_place`` and ``child_place`` (6,) are the places of these frames on the bodies: translation (m), and
    orientation as three angles (rad) about x, the new y and the new z. ``axes`` contains the motions of a CustomJoint.
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
    """A marker on a ``body`` at ``location`` (3,) in m. ``fixed`` markers do not move when a skeleton is scaled."""

    name: str
    body: str
    location: Array
    fixed: bool


class OsimCoupling(NamedTuple):
    """A coordinate that follows another: ``scale`` times a ``function`` of the other, as in ``OsimAxis``."""

    dependent: str
    independent: str
    function: str
    numbers: Array
    scale: float


class OsimLoop(NamedTuple):
    """A "weld" or "spherical" constraint: the names of its two bodies, and its place (6,) on each (``OsimJoint``)."""

    name: str
    kind: str
    bodies: tuple[str, str]
    places: tuple[Array, Array]


class OsimShape(NamedTuple):
    """A surface of a ``body``, of a ``kind`` such as "Mesh" or "Brick", with its ``size`` in m and its ``scale`` (3,).

    ``size`` contains three half edges for a Brick, the radius for a Sphere, the radius and half height for a Cylinder
    (about y), and three radii for an Ellipsoid. ``place`` (6,) is defined as in ``OsimJoint``. ``color`` is red, green,
    blue and opacity. ``file`` is the file of a Mesh as named in the model, and ``found`` is its path, or None if it is
    missing.
    """

    name: str
    body: str
    kind: str
    size: Array
    scale: Array
    place: Array
    color: tuple[float, ...] | None = None
    file: str = ""
    found: str | None = None


@dataclass(frozen=True, eq=False)
class OsimModel:
    """A skeleton: ``bodies``, ``joints`` and ``markers`` by name, and ``gravity`` (3,) in m/s².

    ``couplings`` contains coordinates that follow others, such as those of the kneecap. ``loops`` contains constraints
    between bodies. ``left_out`` contains the names of omitted parts by kind: muscles, contact surfaces, controllers.
    ``shapes`` contains the surfaces of bodies, and ``folders`` the folders that may contain their files.
    """

    name: str
    bodies: dict[str, OsimBody]
    joints: dict[str, OsimJoint]
    markers: dict[str, OsimMarker]
    gravity: Array
    source: str = "model"
    couplings: tuple[OsimCoupling, ...] = ()
    loops: tuple[OsimLoop, ...] = ()
    left_out: dict[str, list[str]] = field(default_factory=dict)
    shapes: tuple[OsimShape, ...] = ()
    folders: tuple[str, ...] = ()

    @property
    def mass(self) -> float:
        """Mass of all bodies, in kg."""
        return sum(body.mass for body in self.bodies.values())

    @property
    def coordinates(self) -> dict[str, OsimCoordinate]:
        """Coordinates of all joints, by name."""
        return {coordinate.name: coordinate for joint in self.joints.values() for coordinate in joint.coordinates}


# OpenSim joints as a sequence of translations and rotations, each a function of a coordinate.
#
# A CustomJoint moves its child by three translations along axes of the parent's frame, then by three rotations, each
# about an axis of the frame that the previous one has rotated.

WELD, CUSTOM = "WeldJoint", "CustomJoint"
# Joints without functions: translations and rotations in order, each with its axis and coordinate number.
_KINDS: Mapping[str, tuple[tuple[str, int, int], ...]] = {
    "PinJoint": (("revolute", 2, 0),),
    "SliderJoint": (("prismatic", 0, 0),),
    "UniversalJoint": (("revolute", 0, 0), ("revolute", 1, 1)),
    "GimbalJoint": (("revolute", 0, 0), ("revolute", 1, 1), ("revolute", 2, 2)),
    "BallJoint": (("revolute", 0, 0), ("revolute", 1, 1), ("revolute", 2, 2)),
    "PlanarJoint": (("prismatic", 0, 1), ("prismatic", 1, 2), ("revolute", 2, 0)),
    "FreeJoint": tuple((kind, k, k + first) for kind, first in (("prismatic", 3), ("revolute", 0)) for k in range(3)),
}


class Step(NamedTuple):
    """A translation ("prismatic") or rotation ("revolute") with ``axis`` (3,), as a function of a coordinate."""

    kind: str
    axis: Array
    coordinate: str
    function: Curve


def pose_of(place: Array) -> Array:
    """Return the pose of a frame from its translation and its angles about x, the new y and the new z."""
    return make_pose(from_rpy(-place[3:]).T, place[:3])


def steps_of(model: OsimModel, joint: OsimJoint) -> list[Step]:
    """Return the translations and rotations of a joint in order. Constant ones use its first coordinate."""
    if joint.kind == WELD:
        return []
    where = f"{model.source}: joint {joint.name!r}"
    if joint.kind in _KINDS:
        steps = _KINDS[joint.kind]
        if len(joint.coordinates) != len(steps):
            message = f"a {joint.kind} has {len(joint.coordinates)} coordinates"
            raise ModelError(message, where=where, allowed=str(len(steps)))
        return [Step(kind, np.eye(3)[axis], joint.coordinates[k].name, IDENTITY) for kind, axis, k in steps]
    if joint.kind != CUSTOM:
        raise ModelError(f"a {joint.kind}", where=where, allowed=", ".join([CUSTOM, WELD, *_KINDS]))
    result = []
    first_coordinate = [coordinate.name for coordinate in joint.coordinates[:1]] or [""]
    for kind, axes in (("prismatic", joint.axes[3:]), ("revolute", joint.axes[:3])):
        for axis in axes:
            if len(axis.coordinates) > 1:
                message = f"{axis.name} depends on {', '.join(axis.coordinates)}"
                raise ModelError(message, where=where, allowed="one coordinate")
            function = curve_of(axis)
            if not axis.coordinates:
                function = Curve((float(function(np.zeros(1))[0][0]),))
                if not function.polynomial[0]:
                    continue
            (coordinate,) = axis.coordinates or first_coordinate
            result.append(Step(kind, axis.axis, coordinate, function))
    return result


def couplings_of(model: OsimModel, names: tuple[str, ...]) -> dict[str, tuple[str, Curve]]:
    """Return the coordinates among ``names`` that follow others, each with its leader and function."""
    direct = dict[str, OsimCoupling]()
    for item in model.couplings:
        if item.dependent not in names or item.dependent in direct:
            why = "has another coupler" if item.dependent in direct else "is missing"
            message = f"a coupler refers to {item.dependent!r}, which {why}"
            allowed = f"one of each of {listing(names)}"
            raise ModelError(message, value=item.dependent, where=model.source, allowed=allowed)
        direct[item.dependent] = item
    result: dict[str, tuple[str, Curve]] = {}
    for name, coupling in direct.items():
        where = f"{model.source}: coordinate {name!r}"
        if coupling.independent not in names or coupling.independent in direct:
            message = f"it follows {coupling.independent!r}"
            allowed = "a coordinate that follows no other"
            raise ModelError(message, value=coupling.independent, where=where, allowed=allowed)
        result[name] = coupling.independent, curve_of(coupling)
    return result


def curve_of(source: OsimAxis | OsimCoupling) -> Curve:
    """Return the function of an axis or of a coupling."""
    numbers = source.numbers
    if source.function in ("LinearFunction", "PolynomialFunction", "Constant"):
        return Curve(tuple((source.scale * numbers).tolist()))
    x, y = numbers[::2], source.scale * numbers[1::2]
    if len(x) < 2 or (np.diff(x) < 1 / MAX_NUMBER).any():
        name = source.name if isinstance(source, OsimAxis) else source.dependent
        message = f"the points x of {name} are {x[:8].tolist()}"
        raise ModelError(message, where=source.function, allowed="two or more, in increasing order")
    return broken_line(x, y) if source.function == "PiecewiseLinearFunction" else cubic_spline(x, y)
