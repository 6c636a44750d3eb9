"""Constraints of hands that hold rails: their places, and the forces of the rails on them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from torsor.base.errors import ModelError, describe
from torsor.human.body.coordinates import SIDES
from torsor.human.body.postures import landmark
from torsor.human.contact.hand_node import RAILS
from torsor.human.contact.rails import Rails
from torsor.human.terms.forces import Grounded
from torsor.human.terms.places import Placed
from torsor.human.terms.sharing import SharingBounds
from torsor.motion import Node
from torsor.motion.terms.term import Constraint, Rows
from torsor.robot.robot import Robot

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
        rows, labels = list[ca.SX](), list[str]()
        for side in self.sides:
            k = 3 * SIDES.index(side)
            x, y, z = (node.profile(name) for name in RAILS[k : k + 3])
            rows.append(self.rails.share**2 - (x**2 + y**2 + z**2))
            labels.append(f"share of {side} hand")
            if self.rails.friction is not None:
                rows += [y, (self.rails.friction * y) ** 2 - x**2 - z**2]
                labels += [f"{side} hand rests", f"friction of {side} hand"]
        return Rows(ca.vertcat(*rows), np.zeros(len(rows)), np.full(len(rows), np.inf), tuple(labels))


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
    """Return the constraints of hands that hold rails from a first to a last s, and have no force at other times.

    In a walk the left hand holds its rail during a step and is then released: the right hand takes over.
    """
    hold: dict[str, Any] = {"body": ground["body"], "near": NEAR, "during": during}
    forces: dict[str, Any] = {"rails": rails, "sides": sides, "is_released": is_released, "during": during}
    found: list[Constraint] = [
        Placed(**hold, frame=f"{side}_knuckles", place=rails.place(side), name=f"{side} hand on the rail")
        for side in sides
    ]
    found.append(RailForces(**ground, **forces, name="rail forces"))
    found.append(SharingBounds(ways=_bounds(rails, sides), name="bounds of rail forces"))
    for (first, last), name in (
        ((0.0, during[0]), "hands before the rails"),
        ((during[1], 1.0), "hands off the rails"),
    ):
        if first < last:
            found.append(SharingBounds(ways=_bounds(rails, ()), during=(first, last), name=name))
    return found


def check_reach(body: Robot, rails: Rails, shoulder: tuple[float, float, float], where: str) -> None:
    """Raise ModelError if the rails are farther from a (right) shoulder (m) than the arm reaches.

    Example:
        >>> check_reach(torsor.library.human(), Rails(), (-0.2, 1.0, -0.2), "stand-up")
    """
    arm = float(landmark(body, "right_upper_arm")[1] - landmark(body, "right_knuckles")[1])
    way = math.dist(shoulder, rails.place("right"))
    if way > arm:
        found = f"the rails are {way:.2f} m from the shoulders"
        fix = "rails that are closer: change their height, ahead or apart"
        raise ModelError(describe(found, where=where, allowed=f"within {arm:.2f} m, the length of the arm", fix=fix))
