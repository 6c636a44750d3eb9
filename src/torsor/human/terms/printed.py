"""Constraints of walking as Barman 2020 prints them: the zero-moment point (5.5) and the arm-leg coupling (5.6)."""

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.human.contact.of_node import contact_forces
from torsor.human.contact.polygon import SIDES_MOST, support_sides
from torsor.human.terms.forces import ARM, Grounded
from torsor.human.vector_layout import VectorLayout
from torsor.motion import Node
from torsor.motion.terms.term import Constraint, Rows

POLYGON = VectorLayout({f"side {k + 1}": 3 for k in range(SIDES_MOST)})


@dataclass(frozen=True, eq=False, kw_only=True)
class InSupport(Grounded, Constraint):
    """The zero-moment point is within the support polygon (Barman 2020, eq. 5.5).

    With the zero-moment point x = n_z / f_y, z = -n_x / f_y, the distance from a side times the vertical force is
    a n_z - b n_x + c f_y: no division. Rows are divided by the weight, in dm. All of them together imply f_y >= 0.
    """

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the data of ``Grounded``, and the sides of the polygon (K, 18)."""
        sides = support_sides(self.body, self.support, s).reshape(len(s), -1)
        return {**super().data(s), "polygon": sides}

    def rows(self, node: Node) -> Rows:
        """Return the distances from the sides, times the vertical force."""
        contact, sides = contact_forces(node), POLYGON.unpack(node.data("polygon", POLYGON.size))
        f, n = contact.level
        moments = ca.vertcat(n[2], -n[0], f[1]) / (ARM * contact.weight)
        rows = ca.vertcat(*(ca.dot(side, moments) for side in sides.values()))
        return Rows(rows, np.zeros(SIDES_MOST), np.full(SIDES_MOST, np.inf), tuple(sides))


def pendulums(node: Node) -> ca.SX:
    """Return the product of the forward components of the left arm and the right leg, in dm^2 (Barman 2020, eq. 5.6).

    The arm is the vector from shoulder to wrist, the leg that from hip to ankle.
    """
    arm = node.position("left_hand") - node.position("left_upper_arm")
    leg = node.position("right_foot") - node.position("right_thigh")
    return 100 * arm[2] * leg[2]
