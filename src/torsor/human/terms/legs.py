"""The largest moments that the legs need: peaks of hip and knee extension over the whole motion."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from torsor.human.body.coordinates import GLOBAL, SIDES
from torsor.human.contact.of_node import contact_forces
from torsor.human.terms.forces import Grounded
from torsor.motion import Node
from torsor.motion.terms.term import Constraint, Cost, Number, Rows, Term

LEG_JOINTS = ("hip", "knee")
START = 1.5  # initial guess of each peak (N m/kg): above those of least effort


def _peak(title: str, joint: str) -> str:
    """Return the name of the shared number that is the peak of a joint."""
    return f"{title}, {joint}"


@dataclass(frozen=True, eq=False, kw_only=True)
class _LegsBelow(Grounded, Constraint):
    """Hip and knee extension moments of both legs, divided by the mass, below their peaks, which are shared numbers."""

    def rows(self, node: Node) -> Rows:
        """Return how far the moments are below their peaks (N m/kg)."""
        contact, names = contact_forces(node), node.robot.coordinate_names
        mass = contact.weight / float(np.linalg.norm(self.body.gravity))
        rows, labels = list[ca.SX](), list[str]()
        for side in SIDES:
            for joint in LEG_JOINTS:
                extension = -contact.torques[names.index(f"{side}_{joint}_flexion") - len(GLOBAL)]
                rows.append(node.shared[_peak(self.title, joint)] - extension / mass)
                labels.append(f"{side} {joint}")
        return Rows(ca.vertcat(*rows), np.zeros(len(rows)), np.full(len(rows), np.inf), tuple(labels))


@dataclass(frozen=True, eq=False, kw_only=True)
class LegPeaks(Grounded, Cost):
    """The sum of the largest hip and the largest knee extension moment, divided by the mass (N m/kg).

    Yoshioka et al. (2007) use this sum to compare ways of standing up.
    """

    at: float | Sequence[float] | None = 1.0

    def numbers(self) -> Mapping[str, Number]:
        """Return the peaks."""
        return {_peak(self.title, joint): Number(START, 0.0) for joint in LEG_JOINTS}

    def companions(self) -> Sequence[Term]:
        """Return the rows that bound the moments at all nodes by the peaks."""
        return (_LegsBelow(body=self.body, support=self.support, friction=self.friction, name=self.title),)

    def integrand(self, node: Node) -> ca.SX:
        """Return the sum of the peaks."""
        return sum((node.shared[_peak(self.title, joint)] for joint in LEG_JOINTS), start=ca.SX(0))
