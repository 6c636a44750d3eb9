"""Wheels: rolling contact of a link with a plane, the ground.

A wheel is a cut joint between the ground and the link that rolls on it. Its first equation is the height of the contact
point above the ground, an equation of positions. The others are velocities of the contact point that are zero: they
restrict the motion, not the positions (non-holonomic constraints).

With the normal n of the ground (z of frame a), the axle u (z of frame b, the origin of which is the centre) and the
radius r, the contact point of a disc is the lowest point of its rim, at -r w from the centre; along it the disc rolls,
and across it an edge or a tyre does not slip:

    w = (n - (n.u) u) / s        along = u x n / s        across = n x along        s = |u x n|

A ball has its contact at -r n, whatever its axle. The height of the lowest point of a body changes with the velocity of
the point of the body that is there, so that all equations are velocities of one point.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import cos, pi, sin

import casadi as ca

from torsor.base.checks import LARGEST, name_of, number, one_of
from torsor.base.errors import ModelError, describe
from torsor.mechanism.part import Part
from torsor.spatial import cross

FLAT = 1e-6  # sine of the angle between axle and normal below which a disc lies flat: it has no direction to roll in

_UP = ca.SX([0.0, 0.0, 1.0])


def _disc(R: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Return the directions across (3 x 1), along and w of a disc."""
    u, s = R[:, 2], ca.sqrt(_square(R))
    along = ca.vertcat(u[1], -u[0], 0) / s
    return ca.vertcat(-along[1], along[0], 0), along, (_UP - u[2] * u) / s


def _square(R: ca.SX) -> ca.SX:
    """Return s^2, the squared sine of the angle between the axle and the normal of the ground."""
    return R[0, 2] ** 2 + R[1, 2] ** 2


# By kind: whether it is a disc, whether it has a radius (None: it may have one), and the directions in which the
# contact point does not slip, from (across, along, angle of the rollers).
_Slip = Callable[[ca.SX, ca.SX, float], list[ca.SX]]
_KINDS: dict[str, tuple[bool, bool | None, _Slip]] = {
    "wheel": (True, True, lambda across, along, angle: [along, across]),
    "omni": (True, True, lambda across, along, angle: [cos(angle) * along + sin(angle) * across]),
    "edge": (True, False, lambda across, along, angle: [across]),
    "ball": (False, True, lambda across, along, angle: [ca.SX([1.0, 0.0, 0.0]), ca.SX([0.0, 1.0, 0.0])]),
    "skid": (False, None, lambda across, along, angle: []),
}
WHEELS = tuple(_KINDS)
"""The kinds of wheels."""


@dataclass(frozen=True, eq=False)
class Wheel(Part):
    """A rolling contact of the frame (or link) ``frame`` with the ground, the plane z = 0 of the frame ``ground``.

    The origin of ``frame`` is the centre, its z axis the axle. ``ground`` is the robot's base by default; a slope or a
    moving platform is another frame. ``radius`` is in m. The kinds are:

    - "wheel": a thin disc that rolls without slipping;
    - "omni": a wheel with rollers on its rim. It does not slip along the axes of the rollers, which make the angle
      ``roller`` (rad) with the direction in which the wheel rolls: 0 for an omni wheel, pi/4 or -pi/4 for a mecanum
      wheel;
    - "edge": a knife edge or skate of no radius, which does not slip along the axle (across itself);
    - "ball": a ball that rolls without slipping in all directions;
    - "skid": a point, or a ball with a ``radius``, that slides without friction.

    The ground pushes and pulls: where the force of the first equation, ``loop_forces``, is negative, a real wheel would
    lift off.

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
            raise ModelError(describe(f"{self.frame!r} rolls on itself", where=where, allowed="another frame"))
        one_of(self.kind, WHEELS, where, "kind")
        radius, needed = number(self.radius, where, "radius", most=LARGEST), _KINDS[self.kind][1]
        if radius < 0 or (needed is not None and (radius > 0) != needed):
            allowed = {True: "above 0 (m)", False: "0: an edge has no radius", None: "0 or more (m)"}[needed]
            raise ModelError(describe(f"radius of the {self.kind} is {radius:g}", where=where, allowed=allowed))
        roller = number(self.roller, where, "roller")
        if roller and (self.kind != "omni" or abs(roller) >= pi / 2):
            allowed = "between -pi/2 and pi/2 (rad)" if self.kind == "omni" else "0: only an omni wheel has rollers"
            raise ModelError(describe(f"roller of the {self.kind} is {roller:g}", where=where, allowed=allowed))
        self._set(radius=radius, roller=roller)

    @property
    def is_disc(self) -> bool:
        """Whether the axle matters: it must not be normal to the ground."""
        return _KINDS[self.kind][0]

    @property
    def count(self) -> int:
        """Number of equations."""
        return self.positions + len(_KINDS[self.kind][2](_UP, _UP, 0.0))

    @property
    def positions(self) -> int:
        """Number of equations of positions, which come first; the others are equations of velocities."""
        return 1

    def units(self, length: float) -> list[float]:
        """Return the scale of each equation: the characteristic length (m) of the mechanism."""
        return [length] * self.count

    def error(self, R: ca.SX, p: ca.SX) -> ca.SX:
        """Return the height (m) of the lowest point at the pose of the frame in the ground, and zeros (count x 1).

        The height of a disc that lies flat is NaN.
        """
        centre = ca.SX(self.radius)
        if self.is_disc:
            square = _square(R)
            centre = ca.if_else(square > FLAT**2, self.radius * ca.sqrt(square), ca.SX.nan())
        return ca.vertcat(p[2] - centre, ca.SX(self.count - 1, 1))

    def slips(self, R: ca.SX) -> ca.SX:
        """Return the matrix (count x 6) from the twist of the frame, at its origin in axes of the ground, to slips."""
        across, along, w = _disc(R) if self.is_disc else (_UP, _UP, _UP)
        rows = [_UP, *_KINDS[self.kind][2](across, along, self.roller)]
        return ca.vertcat(*(ca.horzcat(cross(-self.radius * w, d).T, d.T) for d in rows))
