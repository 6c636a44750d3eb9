"""The margin of stability of a walk, from the extrapolated centre of mass (Hof, Gazendam and Sinke 2005).

A body that falls like an inverted pendulum of the length l is stopped by a foot at the extrapolated centre of mass

    xi = x + v / w      w = sqrt(g / l)

with x and v the position and velocity of the centre of mass. The margin of stability b is the distance of xi from the
border of the support: below 0 the body falls to that side unless it takes a step there. Here l is the height of the
centre of mass of the standing body, and the borders are the lateral ones of the feet that carry: the right side of the
right sole and the left side of the left sole. Forward, walking is a fall that the next step stops: that margin is
negative by design and does not count.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.human.body.coordinates import SIDES
from torsor.human.contact.sharing import heel_shift
from torsor.human.contact.support import Foot
from torsor.human.terms.forces import Grounded
from torsor.human.terms.muscles import metres
from torsor.human.terms.sharing import shared_contact
from torsor.motion import Node
from torsor.motion.terms.term import Cost
from torsor.robot.robot import Robot


def pendulum_rate(body: Robot) -> float:
    """Return w (1/s) of a body (``library.human``): the root of gravity over the height of its centre of mass.

    Example:
        >>> round(pendulum_rate(torsor.library.human()), 2)
        3.11
    """
    still = body.neutral()
    ground = min(float(body.pose(still, f"{side}_heel")[1, 3]) for side in SIDES)
    height = float(body.center_of_mass(still)[1]) - ground
    return float(np.sqrt(np.linalg.norm(body.gravity) / height))


def margins(node: Node, rate: ca.SX) -> ca.SX:
    """Return the margins (m) to the right side of the right sole and to the left side of the left sole, (2 x 1).

    The left one is large after toe-off, when the left foot carries nothing.
    """
    contact = shared_contact(node)
    velocity = node.call("momentum", node.q, node.v)[3] / contact.mass
    xi = node.call("center_of_mass", node.q)[0] + velocity / rate
    right = heel_shift(node, "right")[0] + contact.soles["right"][0]
    left = heel_shift(node, "left")[0] + contact.soles["left"][1]
    found: ca.SX = ca.vertcat(xi - right, left - xi)
    return found


@dataclass(frozen=True, eq=False, kw_only=True)
class Instability(Grounded, Cost):
    """The squared shortfall of the lateral margin of stability, in half widths of a sole, for each metre (s/m).

    With u = -b / (half width), the shortfall is log(1 + exp(u)): about u where the margin is negative, and it vanishes
    where the margin is several half widths.
    """

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the data of ``Grounded``, the rate of the pendulum (1/s) and half the width of a sole (m)."""
        own = [pendulum_rate(self.body), Foot.of(self.body).half]
        return {**super().data(s), "pendulum": np.tile(own, (len(s), 1))}

    def integrand(self, node: Node) -> ca.SX:
        """Return 0: the whole cost is a sum of squares."""
        return ca.SX(0)

    def squares(self, node: Node) -> ca.SX:
        """Return the shortfalls of both sides."""
        given = node.data("pendulum", 2)
        short: ca.SX = ca.log1p(ca.exp(-margins(node, given[0]) / given[1]))
        return short / ca.sqrt(metres(node))
