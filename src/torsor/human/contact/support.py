"""What stands on the ground when, over a motion, and how the feet share what the ground gives: data, by moments.

x points to the left, y up from the ground, z forward. A share s of the motion, from 0 to 1, tells the moment.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from torsor.checks import positive
from torsor.errors import ModelError, describe
from torsor.human.body.landmarks import landmark
from torsor.robot.robot import Robot

__all__ = ["FORE", "SIDES", "WHOLE", "Carried", "Foot", "Sitting", "Stance", "Standing", "Support"]

Array = NDArray[np.float64]
SIDES = ("right", "left")

# Points of a foot, each with the axes along which it is held: six rows that hold a foot, or its toes.
WHOLE = (("heel", "xyz"), ("ball", "xy"), ("ball_medial", "y"))
FORE = (("ball", "xyz"), ("toe", "xy"), ("toe_medial", "y"))

# Where feet push and may be pushed, in parts of a foot's length from the heel, and of half its width.
PRESSED, FOREFOOT, TIP = 0.275, 0.853, 0.98  # in front at toe-off; behind at the start, and at the end
FLAT_ENDS, FORE_ENDS = (0.02, 0.7059), (0.7059, 0.98)  # they touch at the ball: pressure cannot jump
WIDE, LONG = 0.667, 0.147  # half the box about the point of pressure while both feet stand
MEET = 4.0  # how high the lines of the feet's forces meet: about where the centre of mass is


class Stance(NamedTuple):
    """A foot on the ground from the first to the last share of a motion: which points of it stand, and where.

    ``points`` are landmarks without the side, each with the axes ("xyz") along which it is held; ``heel`` (x, z) is
    where the heel is when the whole foot stands (m).
    """

    side: str
    first: float
    last: float
    points: tuple[tuple[str, str], ...]
    heel: tuple[float, float]


class Foot(NamedTuple):
    """Length of a foot from heel to toes, and half its width (m)."""

    length: float
    half: float

    @classmethod
    def of(cls, body: Robot) -> "Foot":
        """Return that of a body.

        Example:
            >>> import torsor
            >>> [round(each, 3) for each in Foot.of(torsor.library.human())]
            [0.255, 0.045]
        """
        heel, toe, ball, inner = (landmark(body, f"right_{name}") for name in ("heel", "toe", "ball", "ball_medial"))
        return cls(float(toe[2] - heel[2]), float(abs(inner[0] - ball[0])))


class Carried(NamedTuple):
    """How the feet carry at moments (K): the ``share`` (K,) of the right one, and where they push, (x, z) (K, 2) each.

    ``toes`` (K, 2) is 1 where the right, the left foot pushes with its toes alone. The point of pressure stays in the
    ``box`` (K, 4): least and most x, least and most z (m). The lines of the feet's forces and of their sum meet at the
    height ``meet`` (m) above the ground; where that is infinite, they are parallel.

    Example:
        >>> feet = np.array([[-0.05, 0.0]]), np.array([[0.05, -0.4]])
        >>> Carried(np.array([0.5]), *feet, np.zeros((1, 2)), np.zeros((1, 4)), 1.0).across.tolist()
        [[0.025, -0.1]]
    """

    share: Array
    right: Array
    left: Array
    toes: Array
    box: Array
    meet: float = np.inf

    @property
    def across(self) -> Array:
        """What the right foot pushes to the side and forward beyond its share (K, 2), in parts of the force upwards.

        The left foot pushes back as much. Both are along the line through the feet, so that no moment comes of it.
        """
        return (self.share * (1 - self.share) / self.meet)[:, None] * (self.left - self.right)

    @property
    def leans(self) -> Array:
        """By how much the force of the right foot leans aside and forward beyond that of both, then of the left (K, 4).

        They are parts of the force upwards, and zero of a foot that carries nothing.
        """
        parts = (1 - self.share) * (self.share > 0), -self.share * (self.share < 1)
        return np.hstack([(part / self.meet)[:, None] * (self.left - self.right) for part in parts])

    @property
    def table(self) -> Array:
        """All of it (K, 17), one row a moment."""
        return np.column_stack([self.share, self.right, self.left, self.toes, self.box, self.across, self.leans])

    def mirrored(self, ahead: float) -> "Carried":
        """Return the same with left and right exchanged, so far ahead (m)."""
        flip, shift = np.array([-1.0, 1.0]), np.array([0.0, ahead])
        box = np.stack([-self.box[:, 1], -self.box[:, 0], self.box[:, 2] + ahead, self.box[:, 3] + ahead], axis=1)
        feet = self.left * flip + shift, self.right * flip + shift
        return Carried(1 - self.share, *feet, self.toes[:, ::-1], box, self.meet)


@dataclass(frozen=True)
class Support:
    """What stands when: ``stances``, and how the feet carry (``carried``)."""

    @property
    def stances(self) -> tuple[Stance, ...]:
        """What stands when."""
        raise NotImplementedError

    def carried(self, s: Array, foot: Foot) -> Carried:
        """Return how feet of that size carry at shares s (K,)."""
        raise NotImplementedError

    def seated(self, s: Array) -> Array:
        """Return the share of a seat in what is carried, and where it pushes (x, y, z), at shares s (K,): (K, 4)."""
        return np.zeros((len(s), 4))

    def free(self, side: str, point: str) -> list[tuple[float, float]]:
        """Return the shares, from the first to the last, between which a point of a foot does not stand.

        Example:
            >>> Standing().free("left", "toe_medial"), Standing().free("left", "heel")
            ([(0.0, 1.0)], [])
        """
        held = sorted(
            (stance.first, stance.last)
            for stance in self.stances
            if stance.side == side and any(name == point for name, _ in stance.points)
        )
        found, at = list[tuple[float, float]](), 0.0
        for first, last in [*held, (1.0, 1.0)]:
            if first > at + 1e-9:
                found.append((at, first))
            at = max(at, last)
        return found


@dataclass(frozen=True)
class Standing(Support):
    """Both feet flat beside each other, their heels ``width`` apart (m) at z = 0; each carries half.

    Example:
        >>> import torsor
        >>> at = Standing().carried(np.zeros(1), Foot.of(torsor.library.human()))
        >>> at.share.tolist(), at.box.round(3).tolist()
        ([0.5], [[-0.145, 0.145, 0.005, 0.25]])
    """

    width: float = 0.2

    def __post_init__(self) -> None:
        positive(self.width, "standing", "width")

    @cached_property
    def stances(self) -> tuple[Stance, ...]:
        """The whole of both feet, all the time."""
        half = self.width / 2
        return tuple(Stance(side, 0.0, 1.0, WHOLE, (x, 0.0)) for side, x in zip(SIDES, (-half, half), strict=True))

    def carried(self, s: Array, foot: Foot) -> Carried:
        """Return how feet of that size carry: pressed under their middles."""
        ones, half = np.ones(len(s)), self.width / 2
        places = [np.outer(ones, [x, (FLAT_ENDS[0] + FORE_ENDS[1]) / 2 * foot.length]) for x in (-half, half)]
        aside = half + foot.half
        box = np.outer(ones, [-aside, aside, FLAT_ENDS[0] * foot.length, FORE_ENDS[1] * foot.length])
        return Carried(ones / 2, places[0], places[1], np.zeros((len(s), 2)), box)


@dataclass(frozen=True)
class Sitting(Standing):
    """As ``Standing``, and a seat ``height`` above the ground that carries a share until the body has left it.

    It pushes at its height, ``back`` (m) behind the heels, on the pelvis. It carries ``share`` of the whole force at
    the start and smoothly less, nothing from the share ``off`` of the motion on; both feet carry the rest. The point
    of pressure of all three is no farther from their middle than toes or heels are from that of a foot.

    Example:
        >>> Sitting(off=0.4).seated(np.array([0.0, 0.2, 0.4, 1.0])).tolist()[:2]
        [[0.8, 0.0, 0.45, -0.3], [0.4, 0.0, 0.45, -0.3]]
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
            if not positive(getattr(self, name), "sitting", name) < 1:
                found = f"{name} is {getattr(self, name)!r}"
                raise ModelError(describe(found, where="sitting", allowed="a share between 0 and 1"))

    def seated(self, s: Array) -> Array:
        """Return the share of the seat, and where it pushes."""
        u = np.clip(np.asarray(s, dtype=float) / self.off, 0.0, 1.0)
        at = np.tile([0.0, self.height, -self.back], (len(u), 1))
        return np.column_stack([self.share * (1 - u * u * (3 - 2 * u)), at])

    def carried(self, s: Array, foot: Foot) -> Carried:
        """Return how feet of that size carry: the box goes from the seat to them."""
        feet, seat = super().carried(s, foot), self.seated(s)
        back = seat[:, 0] * (seat[:, 3] - feet.right[:, 1])
        return feet._replace(box=feet.box + np.outer(back, [0.0, 0.0, 1.0, 1.0]))
