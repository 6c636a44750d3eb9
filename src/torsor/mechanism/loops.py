"""Loop closures: cut joints between two frames of the tree, and couplings between coordinates.

A cut joint is defined by its closure equations, which are functions of the pose (R, p) of frame b relative to frame a.
Its axes are the z axes of the two frames.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import cos, pi, sin
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from torsor.base.checks import MAX_NUMBER, name_of, number, one_of
from torsor.base.errors import ModelError
from torsor.mechanism.part import Part
from torsor.spatial import cross

# Wheels: rolling contact of a link with the ground, which is a plane.
#
# A wheel is a cut joint between the ground and the link that rolls on it. Its first equation is the height of the
# contact point above the ground, a position equation. The others set velocities of the contact point to zero, which
# restricts the motion but not the positions (nonholonomic constraints).
#
# Let n be the normal of the ground (z of frame a), u the axle (z of frame b, whose origin is the centre) and r the
# radius. The contact point of a disc is the lowest point of its rim, at -r w from the centre. The disc rolls in the
# direction ``along``, and an edge or a tyre does not slip in the direction ``across``:
#
#     w = (n - (n.u) u) / s        along = u x n / s        across = n x along        s = |u x n|
#
# The contact point of a ball is at -r n, independent of its axle. The rate of the lowest point's height is the velocity
# of the body point there, so all equations are velocities of one point.

MIN_AXLE_SINE = 1e-6  # sine of the angle between axle and normal below which a disc lies flat and cannot roll

_UP = ca.SX([0.0, 0.0, 1.0])


def _disc(R: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Return the directions across, along and w (3 x 1 each) of a disc."""
    u, s = R[:, 2], ca.sqrt(_square(R))
    along = ca.vertcat(u[1], -u[0], 0) / s
    return ca.vertcat(-along[1], along[0], 0), along, (_UP - u[2] * u) / s


def _square(R: ca.SX) -> ca.SX:
    """Return s^2, the squared sine of the angle between the axle and the normal of the ground."""
    return R[0, 2] ** 2 + R[1, 2] ** 2


# For each kind: whether it is a disc, whether it has a radius (None: optional), and the directions in which the contact
# point does not slip, as a function of (across, along, roller angle).
_Slip = Callable[[ca.SX, ca.SX, float], list[ca.SX]]
_KINDS: dict[str, tuple[bool, bool | None, _Slip]] = {
    "wheel": (True, True, lambda across, along, angle: [along, across]),
    "omni": (True, True, lambda across, along, angle: [cos(angle) * along + sin(angle) * across]),
    "edge": (True, False, lambda across, along, angle: [across]),
    "ball": (False, True, lambda across, along, angle: [ca.SX([1.0, 0.0, 0.0]), ca.SX([0.0, 1.0, 0.0])]),
    "skid": (False, None, lambda across, along, angle: []),
}
WHEELS = tuple(_KINDS)
"""Wheel kinds."""


@dataclass(frozen=True, eq=False)
class Wheel(Part):
    """A rolling contact of the frame (or link) ``frame`` with the ground, the plane z = 0 of the frame ``ground``.

    The origin of ``frame`` is the centre, and its z axis is the axle. ``ground`` is the robot's base by default; for a
    slope or a moving platform it is another frame. ``radius`` is in m. The kinds are:

    - "wheel": a thin disc that rolls without slipping.
    - "omni": a wheel with rollers on its rim. It does not slip along the roller axes, which make the angle ``roller``
      (rad) with the rolling direction: 0 for an omni wheel, pi/4 or -pi/4 for a mecanum wheel.
    - "edge": a knife edge or skate without radius, which does not slip along the axle.
    - "ball": a ball that rolls without slipping in all directions.
    - "skid": a point, or a ball with a ``radius``, that slides without friction.

    The contact is bilateral: a real wheel would lift off if its first force in ``robot.closed.loop_forces`` is
    negative.

    Example:
        >>> Wheel("left", "left_wheel", radius=0.1).kind
        'wheel'
    """

    name: str
    frame: str
    kind: str = "wheel"
    radius: float = 0.0
    roller: float = 0.0
    ground: str = ""
    source: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        name_of(self.name, "wheel", self.source)
        name_of(self.frame, "frame of a wheel", self.source)
        where = f"{self.source}: wheel {self.name!r}" if self.source else f"wheel {self.name!r}"
        if self.ground:
            name_of(self.ground, "ground of a wheel", self.source)
        if self.ground == self.frame:
            raise ModelError(f"{self.frame!r} rolls on itself", value=self.frame, where=where, allowed="another frame")
        one_of(self.kind, WHEELS, where, "kind")
        radius, needed = number(self.radius, where, "radius", most=MAX_NUMBER), _KINDS[self.kind][1]
        if radius < 0 or (needed is not None and (radius > 0) != needed):
            allowed = {True: "above 0 (m)", False: "0, because an edge has no radius", None: "0 or more (m)"}[needed]
            raise ModelError(f"of the {self.kind} is {radius:g}", argument="radius", where=where, allowed=allowed)
        roller = number(self.roller, where, "roller")
        if roller and (self.kind != "omni" or abs(roller) >= pi / 2):
            other = "0, because only an omni wheel has rollers"
            allowed = "between -pi/2 and pi/2 (rad)" if self.kind == "omni" else other
            raise ModelError(f"of the {self.kind} is {roller:g}", argument="roller", where=where, allowed=allowed)
        self._set(radius=radius, roller=roller)

    @property
    def is_disc(self) -> bool:
        """Whether the contact depends on the axle, which then must not be normal to the ground."""
        return _KINDS[self.kind][0]

    @property
    def count(self) -> int:
        """Number of equations."""
        return self.positions + len(_KINDS[self.kind][2](_UP, _UP, 0.0))

    @property
    def positions(self) -> int:
        """Number of position equations, which come first; the others are velocity equations."""
        return 1

    def units(self, length: float) -> list[float]:
        """Return the scale of each equation: the characteristic length (m) of the mechanism."""
        return [length] * self.count

    def error(self, R: ca.SX, p: ca.SX) -> ca.SX:
        """Return (count x 1) the height (m) of the lowest point at the pose (R, p) in the ground frame, then zeros.

        The height of a disc that lies flat is NaN.
        """
        centre = ca.SX(self.radius)
        if self.is_disc:
            square = _square(R)
            centre = ca.if_else(square > MIN_AXLE_SINE**2, self.radius * ca.sqrt(square), ca.SX.nan())
        return ca.vertcat(p[2] - centre, ca.SX(self.count - 1, 1))

    def slips(self, R: ca.SX) -> ca.SX:
        """Return the matrix (count x 6) that maps the frame's twist, at its origin in ground axes, to slips (m/s)."""
        across, along, w = _disc(R) if self.is_disc else (_UP, _UP, _UP)
        rows = [_UP, *_KINDS[self.kind][2](across, along, self.roller)]
        return ca.vertcat(*(ca.horzcat(cross(-self.radius * w, d).T, d.T) for d in rows))


HIGHEST_POWER = 4  # maximum power of a coordinate in a coupling, as in MJCF
# Squared sine of the angle between opposite axes below which their common perpendicular is rounding error.
_OPPOSITE = 1e-24


class AxisEquations(NamedTuple):
    """Closure equations of the axes: sines of the angles between them, and the corresponding 2 sin(angle / 2)."""

    sines: Callable[[ca.SX], list[ca.SX]]
    chords: Callable[[ca.SX], list[ca.SX]]


def _tilt(R: ca.SX) -> list[ca.SX]:
    """Return the sines of the angles between the z axes."""
    return [R[0, 2], R[1, 2]]


def _turn(R: ca.SX) -> list[ca.SX]:
    """Return the axis of a rotation times the sine of its angle."""
    return [(R[2, 1] - R[1, 2]) / 2, (R[0, 2] - R[2, 0]) / 2, (R[1, 0] - R[0, 1]) / 2]


def _tilt_chords(R: ca.SX) -> list[ca.SX]:
    """Return 2 sin(angle / 2) between the z axes, which is the sine divided by the cosine of half the angle.

    For exactly opposite axes the direction is undefined, so the error is 2 along x and changes like the sines.
    """
    x, y = _tilt(R)
    sine, behind = x**2 + y**2, R[2, 2] < 0
    opposite = ca.logic_and(behind, sine < _OPPOSITE)
    twice = ca.if_else(opposite, 2, ca.if_else(behind, sine / (1 - R[2, 2]), 1 + R[2, 2]))  # 2 cos^2(angle / 2)
    half = ca.sqrt(twice / 2)
    return [x / half + ca.if_else(opposite, 2, 0), y / half]


def _turn_chords(R: ca.SX) -> list[ca.SX]:
    """Return the axis of a rotation times 2 sin(angle / 2): twice the vector part of its unit quaternion.

    With the quaternion (x, y, z, w), w >= 0, the entries of 4 (x, y, z, w)^T (x, y, z, w) are linear in R. A column,
    divided by the root of its diagonal entry, is twice the quaternion. The column of w is used for angles up to 120
    degrees, and the largest other column beyond, so that no divisor is below 1. At half a turn, either sign of the axis
    is possible.
    """
    wx, wy, wz = (2 * item for item in _turn(R))
    xy, yz, zx = R[0, 1] + R[1, 0], R[1, 2] + R[2, 1], R[2, 0] + R[0, 2]
    trace = ca.trace(R)
    squares = [1 + 2 * R[k, k] - trace for k in range(3)]  # 4 x^2, 4 y^2, 4 z^2
    columns = [[squares[0], xy, zx, wx], [xy, squares[1], yz, wy], [zx, yz, squares[2], wz]]
    near, first = trace >= 0, ca.logic_and(squares[0] >= squares[1], squares[0] >= squares[2])
    second = squares[1] >= squares[2]

    def chosen(w: ca.SX, x: ca.SX, y: ca.SX, z: ca.SX) -> ca.SX:
        return ca.if_else(near, w, ca.if_else(first, x, ca.if_else(second, y, z)))

    root = ca.sqrt(chosen(1 + trace, *squares))
    root = ca.if_else(near, root, ca.if_else(chosen(1 + trace, *(c[3] for c in columns)) < 0, -root, root))
    return [chosen(w, *(c[k] for c in columns)) / root for k, w in enumerate((wx, wy, wz))]


_FREE = AxisEquations(lambda R: [], lambda R: [])
_PARALLEL = AxisEquations(_tilt, _tilt_chords)
_ALIGNED = AxisEquations(_turn, _turn_chords)
_PERPENDICULAR = AxisEquations(lambda R: [R[2, 2]], lambda R: [R[2, 2]])

CUTS: dict[str, tuple[tuple[int, ...], AxisEquations]] = {
    "weld": ((0, 1, 2), _ALIGNED),
    "revolute": ((0, 1, 2), _PARALLEL),
    "prismatic": ((0, 1), _ALIGNED),
    "cylindrical": ((0, 1), _PARALLEL),
    "universal": ((0, 1, 2), _PERPENDICULAR),
    "spherical": ((0, 1, 2), _FREE),
    "planar": ((2,), _PARALLEL),
    "rod": ((), _FREE),
}
"""For each cut-joint kind: the axes of frame a along which the origins coincide, and the equations of the axes.

A rod has one equation instead: the distance between the origins."""


@dataclass(frozen=True, eq=False)
class Loop(Part):
    """A cut joint of the given ``kind`` between the frames (or links) ``a`` and ``b``.

    A weld lets nothing move, and a spherical joint rotates about the common origin of the frames.
    A revolute joint rotates about the z axes of both frames, a prismatic joint slides along them, a cylindrical joint
    does both, and a planar joint slides perpendicular to them and rotates about them. For these kinds, the z axes point
    in the same direction. The axes of a universal joint are the z axes of ``a`` and ``b``, which are perpendicular to
    each other. A "rod" is massless and ``length`` (m) long, with a spherical joint at each origin.

    Example:
        >>> Loop("tip", "left_tip", "right_tip").kind
        'revolute'
    """

    name: str
    a: str
    b: str
    kind: str = "revolute"
    length: float = 0.0
    source: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        name_of(self.name, "loop", self.source)
        for end in (self.a, self.b):
            name_of(end, "frame of a loop", self.source)
        where = f"{self.source}: loop {self.name!r}" if self.source else f"loop {self.name!r}"
        one_of(self.kind, tuple(CUTS), where, "kind")
        if self.a == self.b:
            raise ModelError(f"both ends are {self.a!r}", value=self.a, where=where, allowed="two different frames")
        length = number(self.length, where, "length", least=-MAX_NUMBER, most=MAX_NUMBER)
        if (self.kind == "rod") != (length > 0):
            allowed = "a length above 0" if self.kind == "rod" else "0, because only a rod has a length"
            raise ModelError(f"of a {self.kind} is {length}", argument="length", where=where, allowed=allowed)
        self._set(length=length)

    @property
    def count(self) -> int:
        """Number of equations."""
        return self.lengths + len(CUTS[self.kind][1].sines(ca.SX.eye(3)))

    @property
    def positions(self) -> int:
        """Number of position equations; all equations of a loop are position equations."""
        return self.count

    @property
    def lengths(self) -> int:
        """Number of equations in metres, which come first; the others are sines of angles."""
        return len(CUTS[self.kind][0]) if self.kind != "rod" else 1

    def units(self, length: float) -> list[float]:
        """Return the scale of each equation: the characteristic length (m) of the mechanism, or 1 for angles."""
        return [length] * self.lengths + [1.0] * (self.count - self.lengths)

    def rows(self, R: ca.SX, p: ca.SX) -> ca.SX:
        """Return the closure equations (count x 1) at the pose (R, p) of b in a: lengths (m), then sines."""
        if self.kind == "rod":
            return ca.sqrt(p.T @ p) - self.length
        axes, of_axes = CUTS[self.kind]
        return ca.vertcat(*(p[k] for k in axes), *of_axes.sines(R))

    def error(self, R: ca.SX, p: ca.SX) -> ca.SX:
        """Return the closure error (count x 1): ``rows`` with 2 sin(angle / 2) instead of sin(angle).

        Both have the same first and second time derivatives if the loop is closed. ``rows`` takes fewer operations, but
        unlike this error it is also zero for opposite axes.
        """
        return ca.vertcat(self.rows(R, p)[: self.lengths], *CUTS[self.kind][1].chords(R))


@dataclass(frozen=True, eq=False, init=False)
class Coupling(Part):
    """A gear, belt, cam or lock: a sum of polynomials of coordinates equals ``offset``.

    A coefficient is a number (the factor of the coordinate q) or a list of up to 4 factors of q, q^2, q^3 and q^4.

    Example:
        >>> Coupling("belt", {"joint1": 1.0, "joint3": -2.0}).coefficients["joint3"]
        -2.0
        >>> Coupling("knee", {"slide": 1.0, "knee": [0.1, -0.02]}).polynomials["knee"]
        (0.1, -0.02)
    """

    name: str
    coefficients: Mapping[str, float | tuple[float, ...]]
    offset: float = 0.0
    source: str = field(default="", compare=False, repr=False)

    def __init__(
        self, name: str, coefficients: Mapping[str, float | Sequence[float]], offset: float = 0.0, source: str = ""
    ) -> None:
        name_of(name, "coupling", source)
        where = f"{source}: coupling {name!r}" if source else f"coupling {name!r}"
        if not isinstance(coefficients, Mapping) or not coefficients:
            message, allowed = f"are {coefficients!r}", "{coordinate: number} with at least one coordinate"
            raise ModelError(message, argument="coefficients", value=coefficients, where=where, allowed=allowed)
        checked = {key: _coefficient(value, where, f"coefficient of {key!r}") for key, value in coefficients.items()}
        offset = number(offset, where, "offset", least=-MAX_NUMBER, most=MAX_NUMBER)
        self._set(name=name, coefficients=checked, offset=offset, source=source)

    @property
    def polynomials(self) -> Mapping[str, tuple[float, ...]]:
        """Coefficients of q, q^2, ... per coordinate: like ``coefficients``, but with single numbers as 1-tuples."""
        return {key: c if isinstance(c, tuple) else (c,) for key, c in self.coefficients.items()}

    @property
    def is_linear(self) -> bool:
        """Whether the equation is linear in all coordinates."""
        return all(isinstance(c, float) for c in self.coefficients.values())

    @property
    def count(self) -> int:
        """Number of equations."""
        return 1

    @property
    def positions(self) -> int:
        """Number of position equations; all equations of a coupling are position equations."""
        return self.count

    def units(self, length: float) -> list[float]:
        """Return the scale of the equation, which is 1 for any ``length``."""
        return [1.0]


def _coefficient(value: object, where: str, what: str) -> float | tuple[float, ...]:
    """Return a number, or the factors of the powers of a coordinate as a tuple without trailing zeros."""
    several = isinstance(value, Sequence | np.ndarray) and not isinstance(value, str) and np.ndim(value) == 1
    coefficients: Any = value if several else [value]
    factors = [number(item, where, what, least=-MAX_NUMBER, most=MAX_NUMBER) + 0.0 for item in coefficients]
    if len(factors) > HIGHEST_POWER:
        raise ModelError(f"has {len(factors)} factors", argument=what, where=where, allowed=f"1 to {HIGHEST_POWER}")
    while factors and factors[-1] == 0:
        factors.pop()
    if not factors:
        raise ModelError("is 0", argument=what, where=where, allowed="any other number")
    return factors[0] if len(factors) == 1 else tuple(factors)


CutJoint = Loop | Wheel
Closure = CutJoint | Coupling


def renamed(loop: Closure, name: Callable[[str], str]) -> Closure:
    """Return a loop closure with all names, including frame and coordinate names, mapped by ``name``."""
    if isinstance(loop, Coupling):
        return replace(loop, name=name(loop.name), coefficients={name(k): c for k, c in loop.coefficients.items()})
    if isinstance(loop, Wheel):
        ground = name(loop.ground) if loop.ground else ""  # empty means the base, even after attaching to another robot
        return replace(loop, name=name(loop.name), frame=name(loop.frame), ground=ground)
    return replace(loop, name=name(loop.name), a=name(loop.a), b=name(loop.b))
