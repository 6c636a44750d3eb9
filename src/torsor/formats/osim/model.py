"""Skeletons of OpenSim as data: bodies, joints with their functions, coordinates, markers, couplings and loops."""

from dataclasses import dataclass, field
from typing import NamedTuple

from torsor.base.arrays import Array

GROUND = "ground"


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


class OsimLoop(NamedTuple):
    """A constraint between two bodies, a "weld" or a "spherical" point: their names and where (6,) it is on each.

    Places are as in ``OsimJoint``.
    """

    name: str
    kind: str
    bodies: tuple[str, str]
    places: tuple[Array, Array]


class OsimShape(NamedTuple):
    """A surface of a ``body``, of a ``kind`` such as "Mesh" or "Brick", with its ``size`` in m and its ``scale`` (3,).

    A Brick has three half edges, a Sphere its radius, a Cylinder (about y) radius and half height, an Ellipsoid three
    radii. ``place`` (6,) is as in ``OsimJoint``, ``color`` red, green, blue and opacity. ``file`` is the file of a
    Mesh as the model names it, ``found`` its path, None where there is no such file.
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

    ``couplings`` are coordinates that follow others, as those of the kneecaps do, ``loops`` constraints between
    bodies. ``left_out`` are the names of what the file has besides, by kind: muscles, contact surfaces, controllers.
    ``shapes`` are the surfaces of bodies, ``folders`` those that their files may lie in.
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
        """The mass of all bodies, in kg."""
        return sum(body.mass for body in self.bodies.values())

    @property
    def coordinates(self) -> dict[str, OsimCoordinate]:
        """The coordinates of all joints, by name."""
        return {each.name: each for joint in self.joints.values() for each in joint.coordinates}
