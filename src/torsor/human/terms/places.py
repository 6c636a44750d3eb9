"""Constraints on the positions of hands, hips and a box, for lifting, reaching and standing up."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError
from torsor.human.body.coordinates import SIDES
from torsor.human.body.loads import Box
from torsor.human.body.postures import landmark
from torsor.human.contact.contact_forces import RAILS
from torsor.human.contact.support import Rails
from torsor.human.terms.feet import SharingBounds
from torsor.human.terms.forces import Grounded, at_least
from torsor.motion import Node
from torsor.motion.terms.term import Constraint, Rows
from torsor.robot.robot import Robot

AXES = "xyz"

# Discs of the body that a box keeps clear of, seen from the side: centred between two links, with a radius (m).
SHIN, THIGH, BELLY, CHEST = 0.06, 0.08, 0.10, 0.12
LEG = (("foot", "shank", SHIN), ("shank", "shank", SHIN), ("shank", "thigh", THIGH))
TRUNK = (
    ("pelvis", "pelvis", BELLY),
    ("spine1", "spine1", BELLY),
    ("spine2", "spine3", BELLY),
    ("spine4", "spine4", CHEST),
)
DISCS = (*((f"{side}_{a}", f"{side}_{b}", r) for side in SIDES for a, b, r in LEG), *TRUNK)


@dataclass(frozen=True, eq=False, kw_only=True)
class Placed(Constraint):
    """A ``frame`` or link of a body is at a ``place`` (3,) in base axes, within ``near`` (m).

    ``axes`` are the axes along which this holds.

    Example:
        >>> Placed(body=torsor.library.human(), frame="right_knuckles", place=(-0.2, 1.0, 0.5), at=1.0).near
        0.0
    """

    body: Robot
    frame: str
    place: tuple[float, float, float]
    near: float = 0.0
    axes: str = AXES

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the position of the frame on its link (K, 3)."""
        return {self.title: np.tile(self.body.place(self.frame).pose[:3, 3], (len(s), 1))}

    def rows(self, node: Node) -> Rows:
        """Return the coordinates of the frame."""
        link = self.body.link_names[self.body.place(self.frame).link]
        pose, held = node.pose(link), [AXES.index(axis) for axis in self.axes]
        rows = (pose[:3, :3] @ node.data(self.title, 3) + pose[:3, 3])[held]
        aim = np.array([self.place[k] for k in held], dtype=float)
        labels = tuple(f"{axis} of {self.frame}" for axis in self.axes)
        return Rows(rows, aim - self.near, aim + self.near, labels)


@dataclass(frozen=True, eq=False, kw_only=True)
class ChestLean(Constraint):
    """The chest leans forward by the angle ``most`` (rad) or less; a body that hangs upside down is excluded too."""

    most: float

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return cosine and sine of the largest lean (K, 2)."""
        return {self.title: np.tile([np.cos(self.most), np.sin(self.most)], (len(s), 1))}

    def rows(self, node: Node) -> Rows:
        """Return the sine of the lean beyond the largest one."""
        up, (cosine, sine) = node.pose("spine4")[:3, 1], ca.vertsplit(node.data(self.title, 2))
        return Rows(up[2] * cosine - up[1] * sine, np.array([-np.inf]), np.zeros(1), ("forward",))


@dataclass(frozen=True, eq=False, kw_only=True)
class Held(Constraint):
    """Base class of the constraints of a ``box`` that a ``body`` holds in both hands."""

    body: Robot
    box: Box

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the position of the knuckles on the hands (K, 3)."""
        return {"knuckles": np.tile(self.body.place("left_knuckles").pose[:3, 3], (len(s), 1))}

    def hands(self, node: Node) -> list[ca.SX]:
        """Return the positions (3 x 1) of the knuckles of the right and the left hand."""
        poses = [node.pose(f"{side}_hand") for side in SIDES]
        return [pose[:3, :3] @ node.data("knuckles", 3) + pose[:3, 3] for pose in poses]


@dataclass(frozen=True, eq=False, kw_only=True)
class BoxLevel(Held):
    """The box stays level and centred in front of the body: the hands are its width apart, within ``near`` (m)."""

    near: float = 0.005

    def rows(self, node: Node) -> Rows:
        """Return the vector from the right hand to the left, and the lateral position of their midpoint."""
        right, left = self.hands(node)
        near = np.array([self.near] * 3 + [2 * self.near])
        aim = np.array([self.box.width, 0.0, 0.0, 0.0])
        rows = ca.vertcat(left - right, (right[0] + left[0]) / 2)
        return Rows(rows, aim - near, aim + near, ("width", "level", "skew", "middle aside"))


@dataclass(frozen=True, eq=False, kw_only=True)
class BoxAt(Held):
    """The centre of the box is at a ``height``, and ``ahead`` of the heels (m)."""

    height: float
    ahead: float

    def rows(self, node: Node) -> Rows:
        """Return the height and the distance ahead."""
        right, left = self.hands(node)
        aim = np.array([self.height, self.ahead])
        return Rows(((right + left) / 2)[1:], aim, aim, ("height", "ahead"))


@dataclass(frozen=True, eq=False, kw_only=True)
class BoxGripped(Held):
    """The box stays level and its width is kept, within ``near`` (m), while it may turn and move sideways."""

    near: float = 0.005

    def rows(self, node: Node) -> Rows:
        """Return the squared distance of the hands divided by the width, and their difference in height."""
        right, left = self.hands(node)
        across, width = left - right, self.box.width
        rows = ca.vertcat(ca.sumsqr(across) / width, across[1])
        aim, near = np.array([width, 0.0]), self.near * np.array([2.0, 1.0])
        return Rows(rows, aim - near, aim + near, ("width", "level"))


@dataclass(frozen=True, eq=False, kw_only=True)
class BoxFacing(Held):
    """The centre of the box is at a ``place`` (3,) (m), turned by ``turn`` (rad) to the left, within ``near`` (m)."""

    place: tuple[float, float, float]
    turn: float = 0.0
    near: float = 0.005

    def rows(self, node: Node) -> Rows:
        """Return the centre of the box, and the horizontal vector between the hands."""
        right, left = self.hands(node)
        across = self.box.width * np.array([np.cos(self.turn), -np.sin(self.turn)])
        aim, near = np.concatenate([self.place, across]), self.near * np.array([0.0, 0.0, 0.0, 1.0, 1.0])
        rows = ca.vertcat((right + left) / 2, (left - right)[0], (left - right)[2])
        return Rows(rows, aim - near, aim + near, ("aside", "height", "ahead", "turned", "skew"))


@dataclass(frozen=True, eq=False, kw_only=True)
class BoxClears(Held):
    """Seen from the side, the box, a disc of half its ``depth`` (m), keeps clear of discs of legs and trunk."""

    depth: float = 0.3

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the position of the knuckles on the hands, and the squared sums of radii (K, discs)."""
        squares = np.array([(self.depth / 2 + radius) ** 2 for *_, radius in DISCS])
        return {**super().data(s), self.title: np.tile(squares, (len(s), 1))}

    def rows(self, node: Node) -> Rows:
        """Return squared distances divided by their lower bounds."""
        right, left = self.hands(node)
        box, squares, rows = (right + left) / 2, node.data(self.title, len(DISCS)), dict[str, ca.SX]()
        for k, (a, b, _) in enumerate(DISCS):
            way = (box - (node.position(a) + node.position(b)) / 2)[1:]
            rows[a if a == b else f"middle of {b} and {a}"] = ca.sumsqr(way) / squares[k]
        return at_least(1.0, rows)


NEAR = 0.005  # m: a hand is within this of its place


@dataclass(frozen=True, eq=False, kw_only=True)
class RailForces(Grounded, Constraint):
    """The force of each rail is at most its share of the weight, and within its friction cone if the hand rests.

    ``sides`` are the hands that hold rails. ``is_released`` is for forces that are zero at both ends of the motion.
    """

    rails: Rails
    sides: tuple[str, ...] = SIDES
    is_released: bool = False
    together = ""

    def profiles(self) -> Mapping[str, tuple[float | None, float | None]]:
        """Return the forces of both hands, in weights."""
        return dict.fromkeys(RAILS, (0.0, 0.0) if self.is_released else (None, None))

    def rows(self, node: Node) -> Rows:
        """Return for each hand the squared forces that are left, and the upward force, all in weights."""
        rows = dict[str, ca.SX]()
        for side in self.sides:
            k = 3 * SIDES.index(side)
            x, y, z = (node.profile(name) for name in RAILS[k : k + 3])
            rows[f"share of {side} hand"] = self.rails.share**2 - (x**2 + y**2 + z**2)
            if self.rails.friction is not None:
                cone = (self.rails.friction * y) ** 2 - x**2 - z**2
                rows |= {f"{side} hand rests": y, f"friction of {side} hand": cone}
        return at_least(0.0, rows)


def _bounds(rails: Rails, sides: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return the bounds of the forces: none on hands that hold nothing."""
    own = [f"rail on {side} hand" for side in sides]
    return {name: (-rails.share, rails.share) if name.startswith(tuple(own)) else (0.0, 0.0) for name in RAILS}


def rail_constraints(
    ground: Mapping[str, Any],
    rails: Rails,
    during: tuple[float, float] = (0.0, 1.0),
    *,
    sides: tuple[str, ...] = SIDES,
    is_released: bool = False,
) -> list[Constraint]:
    """Return the constraints of hands that hold rails from a first to a last s, and have no force at other times."""
    hold: dict[str, Any] = {"body": ground["body"], "near": NEAR, "during": during}
    forces: dict[str, Any] = {"rails": rails, "sides": sides, "is_released": is_released, "during": during}
    found: list[Constraint] = [
        Placed(**hold, frame=f"{side}_knuckles", place=rails.place(side), name=f"{side} hand on the rail")
        for side in sides
    ]
    found.append(RailForces(**ground, **forces, name="rail forces"))
    found.append(SharingBounds(ways=_bounds(rails, sides), name="bounds of rail forces"))
    before, after = (0.0, during[0]), (during[1], 1.0)
    for free, name in ((before, "hands before the rails"), (after, "hands off the rails")):
        if free[0] < free[1]:
            found.append(SharingBounds(ways=_bounds(rails, ()), during=free, name=name))
    return found


def check_reach(body: Robot, rails: Rails, shoulder: tuple[float, float, float], where: str) -> None:
    """Raise ModelError if the rails are farther from a (right) shoulder (m) than the arm reaches."""
    arm = float(landmark(body, "right_upper_arm")[1] - landmark(body, "right_knuckles")[1])
    way = math.dist(shoulder, rails.place("right"))
    if way > arm:
        found = f"the rails are {way:.2f} m from the shoulders"
        fix = "rails that are closer: change their height, ahead or apart"
        raise ModelError(found, where=where, allowed=f"within {arm:.2f} m, the length of the arm", fix=fix)
