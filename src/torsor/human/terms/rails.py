"""Constraints of hands that hold rails: their places, and the forces of the rails on them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca
import numpy as np

from torsor.errors import ModelError, describe
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
    """The force of each rail is at most its share of the weight, and within its friction cone if the hand rests."""

    rails: Rails
    together = ""

    def profiles(self) -> Mapping[str, tuple[float | None, float | None]]:
        """Return the forces, free at both ends."""
        return dict.fromkeys(RAILS, (None, None))

    def rows(self, node: Node) -> Rows:
        """Return for each hand the squared forces that are left, and the upward force, all in weights."""
        rows, labels = list[ca.SX](), list[str]()
        for k, side in enumerate(SIDES):
            x, y, z = (node.profile(name) for name in RAILS[3 * k : 3 * k + 3])
            rows.append(self.rails.share**2 - (x**2 + y**2 + z**2))
            labels.append(f"share of {side} hand")
            if self.rails.friction is not None:
                rows += [y, (self.rails.friction * y) ** 2 - x**2 - z**2]
                labels += [f"{side} hand rests", f"friction of {side} hand"]
        return Rows(ca.vertcat(*rows), np.zeros(len(rows)), np.full(len(rows), np.inf), tuple(labels))


def rail_constraints(
    ground: Mapping[str, object], rails: Rails, during: tuple[float, float] = (0.0, 1.0)
) -> list[Constraint]:
    """Return the constraints of hands that hold rails from a first to a last s, and have no force at other times."""
    body: Robot = ground["body"]  # type: ignore[assignment]  # a table of arguments of all terms
    found: list[Constraint] = [
        Placed(
            body=body,
            frame=f"{side}_knuckles",
            place=rails.place(side),
            near=NEAR,
            during=during,
            name=f"{side} hand on the rail",
        )
        for side in SIDES
    ]
    found.append(RailForces(**ground, rails=rails, during=during, name="rail forces"))  # type: ignore[arg-type]
    most = dict.fromkeys(RAILS, (-rails.share, rails.share))
    found.append(SharingBounds(ways=most, name="rail forces, bounds"))
    for first, last in ((0.0, during[0]), (during[1], 1.0)):
        if first < last:
            nothing = dict.fromkeys(RAILS, (0.0, 0.0))
            name = "hands before the rails" if first == 0.0 else "hands off the rails"
            found.append(SharingBounds(ways=nothing, during=(first, last), name=name))
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
