"""The support of a motion: stances of the feet, and force distribution among feet and rails.

x points to the left, y upwards from the ground, and z forward. Times s are fractions of the motion's duration, from 0
to 1.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import number, positive
from torsor.human.body.coordinates import SIDES
from torsor.human.body.postures import landmark
from torsor.motion.terms.term import TOUCHING
from torsor.robot.robot import Robot


@dataclass(frozen=True)
class Rails:
    """Two rails or armrests, one per hand, whose forces on the hands are results of the optimisation.

    Each hand is at the ``height`` (m) above the ground, ``ahead`` (m) of the heels and ``apart`` (m) from the other
    hand. The force on each hand is at most the fraction ``share`` of body weight. A resting hand is pushed upwards,
    within a ``friction`` cone. With ``friction=None``, the hand grips the rail, and the force may have any direction.
    In a task, the hands hold the rails until the fraction ``until`` of the duration (when sitting down, from 1 minus
    this fraction onwards). In a walk, the hand on the side of the swing leg holds its rail at this position, relative
    to the tread and the heel of the leading foot, for the full step. The other hand moves to its next position.

    Example:
        >>> Rails(height=0.65).place("right")
        (-0.25, 0.65, 0.0)
    """

    height: float = 0.65
    ahead: float = 0.0
    apart: float = 0.5
    share: float = 0.25
    friction: float | None = 0.5
    until: float = 0.6

    def __post_init__(self) -> None:
        positive(self.height, "rails", "height")
        positive(self.apart, "rails", "apart")
        number(self.ahead, "rails", "ahead")
        number(self.share, "rails", "share", above=0.0, most=1.0)
        number(self.until, "rails", "until", above=0.0, most=1.0)
        if self.friction is not None:
            positive(self.friction, "rails", "friction")

    def place(self, side: str) -> tuple[float, float, float]:
        """Return the position (m) of the knuckles of a hand, in base axes."""
        half = self.apart / 2
        return (-half if side == SIDES[0] else half, self.height, self.ahead)


# Points of a foot with the axes along which they are fixed: six rows that fix the full foot or its toes.
WHOLE = (("heel", "xyz"), ("ball", "xy"), ("ball_medial", "y"))
FORE = (("ball", "xyz"), ("toe", "xy"), ("toe_medial", "y"))

# Bounds of the centre of pressure, as fractions of the foot length from the heel.
FLAT_ENDS, FORE_ENDS = (0.02, 0.7059), (0.7059, 0.98)  # both end at the ball, so that the pressure is continuous


def smoothstep(u: Array) -> Array:
    """Return u^2 (3 - 2 u) with u clipped to [0, 1], which increases from 0 to 1 with zero slope at both ends."""
    u = np.clip(np.asarray(u, dtype=float), 0.0, 1.0)
    return u * u * (3 - 2 * u)


class Stance(NamedTuple):
    """Stance of a foot from the time ``first`` to the time ``last``, as fractions of the motion.

    ``points`` are the landmarks in contact, named without the side, with the axes ("xyz") along which they are fixed.
    ``heel`` (x, z) (m) is the heel position while the full foot is on the ground, at ``height`` (m). If positions are
    variables, it is relative to ``contact_forces.heel_place``, with the left foot at ``left_at``.
    """

    side: str
    first: float
    last: float
    points: tuple[tuple[str, str], ...]
    heel: tuple[float, float]
    height: float = 0.0
    left_at: tuple[float, float] = (0.0, -1.0)


class Foot(NamedTuple):
    """Foot length from heel to toes, and half of the foot width (m)."""

    length: float
    half: float

    @classmethod
    def of(cls, body: Robot) -> "Foot":
        """Return the foot size of a body.

        Example:
            >>> [round(each, 3) for each in Foot.of(torsor.library.human())]
            [0.255, 0.045]
        """
        heel, toe, ball, inner = (landmark(body, f"right_{name}") for name in ("heel", "toe", "ball", "ball_medial"))
        return cls(float(toe[2] - heel[2]), float(abs(inner[0] - ball[0])))


class Carried(NamedTuple):
    """The distribution of the ground force between the feet at K times.

    ``right_fraction`` (K,) is the fraction of the force on the right foot. ``right`` and ``left`` (K, 2) are the points
    of application (x, z) (m). ``toes`` (K, 2) is 1 where only the forefoot of the right or left foot is in contact, and
    the force acts on its toes. The centre of pressure stays within the ``box`` (K, 4): lower and upper x, lower and
    upper z (m). The lines of action of both foot forces and of their sum meet at the height ``meet`` (m) above the
    ground; if it is infinite, they are parallel.

    Example:
        >>> feet = np.array([[-0.05, 0.0]]), np.array([[0.05, -0.4]])
        >>> Carried(np.array([0.5]), *feet, np.zeros((1, 2)), np.zeros((1, 4)), 1.0).across.tolist()
        [[0.025, -0.1]]
    """

    right_fraction: Array
    right: Array
    left: Array
    toes: Array
    box: Array
    meet: float = np.inf

    @property
    def across(self) -> Array:
        """Horizontal force (x, z) (K, 2) on the right foot in excess of its share, relative to the vertical force.

        The excess force on the left foot is opposite. Both act along the line through the feet and have no resultant
        moment.
        """
        return (self.right_fraction * (1 - self.right_fraction) / self.meet)[:, None] * (self.left - self.right)

    @property
    def leans(self) -> Array:
        """Inclinations (x, z) of the right and left foot forces relative to the inclination of their sum, (K, 4).

        They are divided by the vertical force, and are zero for an unloaded foot.
        """
        right = self.right_fraction
        parts = (1 - right) * (right > 0), -right * (right < 1)
        return np.hstack([(part / self.meet)[:, None] * (self.left - self.right) for part in parts])

    def mirrored(self, ahead: float) -> "Carried":
        """Return the mirror image (left and right exchanged), moved forward by ``ahead`` (m)."""
        flip, shift = np.array([-1.0, 1.0]), np.array([0.0, ahead])
        box = np.stack([-self.box[:, 1], -self.box[:, 0], self.box[:, 2] + ahead, self.box[:, 3] + ahead], axis=1)
        feet = self.left * flip + shift, self.right * flip + shift
        return Carried(1 - self.right_fraction, *feet, self.toes[:, ::-1], box, self.meet)


class Seat(NamedTuple):
    """A seat that carries the ``fraction`` (K,) of the total force at a ``point`` (K, 3) (m), at K times."""

    fraction: Array
    point: Array


@dataclass(frozen=True)
class Support:
    """Base class of supports: ``stances`` of the feet, force distribution (``carried``), and ``rails``."""

    rails: Rails | None = field(default=None, kw_only=True)

    @property
    def stances(self) -> tuple[Stance, ...]:
        """All stances of the motion."""
        raise NotImplementedError

    def carried(self, s: Array, foot: Foot) -> Carried:
        """Return the force distribution between the feet at times s (K,)."""
        raise NotImplementedError

    def seated(self, s: Array) -> Seat:
        """Return the fraction of the total force on a seat, and its point of application, at times s (K,)."""
        return Seat(np.zeros(len(s)), np.zeros((len(s), 3)))

    def heights(self, s: Array) -> Array:
        """Return the ground heights (K, 2) (m) under the right and left foot at times s (K,)."""
        return np.zeros((len(s), len(SIDES)))

    def free(self, side: str, point: str) -> list[tuple[float, float]]:
        """Return the intervals of s in which a point of a foot is not in stance.

        Example:
            >>> Standing().free("left", "toe_medial"), Standing().free("left", "heel")
            ([(0.0, 1.0)], [])
        """
        held = sorted(
            (stance.first, stance.last)
            for stance in self.stances
            if stance.side == side and any(name == point for name, _ in stance.points)
        )
        intervals, at = list[tuple[float, float]](), 0.0
        for first, last in [*held, (1.0, 1.0)]:
            if first > at + 1e-9:
                intervals.append((at, first))
            at = max(at, last)
        return intervals


class SharedSupport(Support):
    """A support whose force distribution between the feet is optimised."""

    def shared(self, s: Array, body: Robot, friction: float) -> Array:
        """Return the sharing data (K, ``SHARED.size``) at times s (K,)."""
        raise NotImplementedError


@dataclass(frozen=True)
class Standing(Support):
    """Both feet flat, side by side, with the heels ``width`` (m) apart at z = 0; each carries half of the force.

    Example:
        >>> at = Standing().carried(np.zeros(1), Foot.of(torsor.library.human()))
        >>> at.right_fraction.tolist(), at.box.round(3).tolist()
        ([0.5], [[-0.145, 0.145, 0.005, 0.25]])
    """

    width: float = 0.2

    def __post_init__(self) -> None:
        positive(self.width, "standing", "width")

    @cached_property
    def stances(self) -> tuple[Stance, ...]:
        """Both feet flat on the ground for the full duration."""
        half = self.width / 2
        return tuple(Stance(side, 0.0, 1.0, WHOLE, (x, 0.0)) for side, x in zip(SIDES, (-half, half), strict=True))

    def carried(self, s: Array, foot: Foot) -> Carried:
        """Return the force distribution, with forces at the middle of each foot."""
        ones, half = np.ones(len(s)), self.width / 2
        places = [np.outer(ones, [x, (FLAT_ENDS[0] + FORE_ENDS[1]) / 2 * foot.length]) for x in (-half, half)]
        aside = half + foot.half
        box = np.outer(ones, [-aside, aside, FLAT_ENDS[0] * foot.length, FORE_ENDS[1] * foot.length])
        return Carried(ones / 2, places[0], places[1], np.zeros((len(s), 2)), box)


@dataclass(frozen=True)
class Sitting(Standing):
    """Like ``Standing``, but with a seat at ``height`` (m) that carries part of the force until seat-off.

    The seat acts on the pelvis at the seat height, at the distance ``back`` (m) behind the heels. Initially, it carries
    the fraction ``share`` of the total force, which decreases smoothly to zero at the time ``off``. The feet carry the
    remainder. The box of the total centre of pressure moves from the seat to the feet with constant size.

    Example:
        >>> Sitting(off=0.4).seated(np.array([0.0, 0.2, 0.4, 1.0])).fraction.tolist()
        [0.8, 0.4, 0.0, 0.0]
    """

    height: float = 0.45
    back: float = 0.3
    share: float = 0.8
    off: float = 0.4

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("height", "back"):
            positive(getattr(self, name), "sitting", name)
        for name in ("share", "off"):
            number(getattr(self, name), "sitting", name, above=0.0, below=1.0)

    def seated(self, s: Array) -> Seat:
        """Return the fraction of the total force on the seat, and its point of application."""
        fraction = self.share * (1 - smoothstep(s / self.off))
        return Seat(fraction, np.tile([0.0, self.height, -self.back], (len(s), 1)))

    def carried(self, s: Array, foot: Foot) -> Carried:
        """Return the force distribution between the feet; the box moves from the seat to the feet."""
        feet, seat = super().carried(s, foot), self.seated(s)
        back = seat.fraction * (seat.point[:, 2] - feet.right[:, 1])
        return feet._replace(box=feet.box + np.outer(back, [0.0, 0.0, 1.0, 1.0]))


# The support polygon is the convex hull of the sole points in contact with the ground.

MAX_SIDES = 6  # number of edges of the polygon of one forefoot and the other heel
NO_SIDE = (0.0, 0.0, 1.0)  # an edge with all points on its inner side


def support_points(body: Robot, support: Support, s: float) -> Array:
    """Return the sole points (x, z) (P, 2) (m) in contact at a time s.

    A heel, ball or toe in contact contributes one point at each edge of the sole.
    """
    half, points = Foot.of(body).half, list[tuple[float, float]]()
    for stance in support.stances:
        if not stance.first - TOUCHING <= s <= stance.last + TOUCHING:
            continue
        (x, z), heel = stance.heel, landmark(body, f"{stance.side}_heel")
        for point, _ in stance.points:
            if not point.endswith("_medial"):  # its line across the sole is that of the point without this suffix
                ahead = float((landmark(body, f"{stance.side}_{point}") - heel)[2])
                points += [(x - half, z + ahead), (x + half, z + ahead)]
    return np.array(list(dict.fromkeys(points)))


def convex_hull(points: ArrayLike) -> Array:
    """Return the corners (C, 2) of the convex hull of planar points (P, 2), in anticlockwise order."""
    ordered = sorted(map(tuple, np.asarray(points, dtype=float).tolist()))
    chains = []
    for way in (ordered, ordered[::-1]):
        chain = list[tuple[float, ...]]()
        for point in way:
            while len(chain) > 1 and _turn(chain[-2], chain[-1], point) <= 0:
                chain.pop()
            chain.append(point)
        chains += chain[:-1]
    return np.array(chains)


def _turn(a: tuple[float, ...], b: tuple[float, ...], c: tuple[float, ...]) -> float:
    """Return twice the signed area of a triangle, which is positive if a, b, c are anticlockwise."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def support_sides(body: Robot, support: Support, s: Array) -> Array:
    """Return the edges (K, 6, 3) of the support polygon at times s (K,): (a, b, c) with a x + b z + c >= 0 inside.

    (a, b) is the inward unit normal, so a x + b z + c is the distance (m) of a point (x, z) from the edge. Unused edges
    are (0, 0, 1).
    """
    sides = np.tile(NO_SIDE, (len(s), MAX_SIDES, 1))
    for k, time in enumerate(s.tolist()):
        corners = convex_hull(support_points(body, support, time))
        along = np.roll(corners, -1, axis=0) - corners
        inward = np.stack([-along[:, 1], along[:, 0]], axis=1) / np.linalg.norm(along, axis=1)[:, None]
        sides[k, : len(corners)] = np.column_stack([inward, -np.sum(inward * corners, axis=1)])
    return sides
