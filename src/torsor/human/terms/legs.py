"""The largest moment that the legs need: the sum of hip and knee extension, over the whole motion."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from torsor.human.body.coordinates import GLOBAL, SIDES
from torsor.human.contact.contact_forces import contact_forces
from torsor.human.terms.forces import Grounded
from torsor.motion import Node
from torsor.motion.terms.term import Constraint, Cost, Number, Rows, Term

START = 3.0  # initial guess of the largest moment (N m/kg): above that of least effort


@dataclass(frozen=True, eq=False, kw_only=True)
class _LegsBelow(Grounded, Constraint):
    """Hip and knee extension of either leg, in sum and divided by the mass, below the shared number of the title."""

    def rows(self, node: Node) -> Rows:
        """Return how far the sums are below the number (N m/kg)."""
        contact, names = contact_forces(node), node.robot.coordinate_names
        mass = contact.weight / float(np.linalg.norm(self.body.gravity))
        sums = [
            -sum(contact.torques[names.index(f"{side}_{joint}_flexion") - len(GLOBAL)] for joint in ("hip", "knee"))
            for side in SIDES
        ]
        rows = ca.vertcat(*(node.shared[self.title] - each / mass for each in sums))
        return Rows(rows, np.zeros(len(SIDES)), np.full(len(SIDES), np.inf), SIDES)


@dataclass(frozen=True, eq=False, kw_only=True)
class LegPeak(Grounded, Cost):
    """The largest sum of hip and knee extension moments of a leg, divided by the mass (N m/kg)."""

    at: float | Sequence[float] | None = 1.0

    def numbers(self) -> Mapping[str, Number]:
        """Return the largest sum."""
        return {self.title: Number(START, 0.0)}

    def companions(self) -> Sequence[Term]:
        """Return the rows that bound all nodes by the largest sum."""
        return (_LegsBelow(body=self.body, support=self.support, friction=self.friction, name=self.title),)

    def integrand(self, node: Node) -> ca.SX:
        """Return the largest sum."""
        return node.shared[self.title]
