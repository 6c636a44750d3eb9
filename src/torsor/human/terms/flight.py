"""Constraints of a run: where the foot presses while it stands, and that nothing is left to press in flight."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import casadi as ca
import numpy as np

from torsor.human.contact.of_node import contact_forces
from torsor.human.contact.one_foot import OneFootContact
from torsor.human.terms.forces import ARM, Grounded
from torsor.motion import Node, Number
from torsor.motion.terms.term import Constraint, Rows
from torsor.motion.transcription.clock import SLOWEST

WRENCH = ("force along x", "force along y", "force along z", "moment about x", "moment about y", "moment about z")


def one_foot_contact(node: Node) -> OneFootContact:
    """Return the contact of a node of a run."""
    contact = contact_forces(node)
    assert isinstance(contact, OneFootContact)
    return contact


@dataclass(frozen=True, eq=False, kw_only=True)
class OneFootBalance(Grounded, Constraint):
    """The centre of pressure stays within the sole, the force within the friction cone, and time runs forward.

    In flight, and where it begins and ends, there is no force: all rows are 1 there. ``variables`` are speed and step
    width. ``lateral=False`` leaves out the lateral sides of the sole.
    """

    lateral: bool = True
    variables: Mapping[str, Number] = field(default_factory=dict)

    def numbers(self) -> Mapping[str, Number]:
        """Return speed and step width."""
        return self.variables

    def rows(self, node: Node) -> Rows:
        """Return distances (dm) times the vertical force, and forces, all divided by the weight."""
        contact = one_foot_contact(node)
        rows = {
            name: row / (ARM * contact.weight)
            for name, row in contact.rows.items()
            if self.lateral or "sole" not in name
        }
        x, y, z = ca.vertsplit(contact.force / contact.weight)
        rows |= {"vertical force": y, "friction, right": (contact.friction * y) ** 2 - x**2 - z**2}
        masked = [1 + contact.presses * (row - 1) for row in rows.values()]
        lower, labels = [0.0] * len(rows), tuple(rows)
        if node.clock.harmonics:
            masked, lower, labels = [*masked, node.clock_rate], [*lower, SLOWEST], (*labels, "rate of time")
        return Rows(ca.vertcat(*masked), np.array(lower), np.full(len(lower), np.inf), labels)


@dataclass(frozen=True, eq=False, kw_only=True)
class Flight(Grounded, Constraint):
    """Nothing touches the ground: the six global coordinates need no force, as in free fall."""

    def rows(self, node: Node) -> Rows:
        """Return the force, divided by the weight, and its moment about the pelvis, divided by the weight times 1 m."""
        contact = one_foot_contact(node)
        about = contact.moment - ca.cross(node.position("pelvis"), contact.force)
        return Rows(ca.vertcat(contact.force, about) / contact.weight, np.zeros(6), np.zeros(6), WRENCH)
