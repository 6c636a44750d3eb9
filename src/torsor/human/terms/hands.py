"""Terms of tasks in which given forces act on the hands: the terms of ``forces`` and ``trunk`` with these forces."""

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca

from torsor.base.arrays import Array
from torsor.human.body.hand_forces import HandForces
from torsor.human.contact.hand_node import FORCES, loaded
from torsor.human.terms.forces import Balance, Effort, Grounded, hand_data
from torsor.human.terms.trunk import LimbTorques, TrunkTorques
from torsor.motion import Node
from torsor.motion.terms.term import Rows


@dataclass(frozen=True, eq=False, kw_only=True)
class Handled(Grounded):
    """A term with forces on the ``hands``, in a motion that takes ``seconds``."""

    hands: HandForces
    seconds: float

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the data of the other terms, the forces (K, 6), and where they act on the hands (K, 3)."""
        forces = self.hands.at(s * self.seconds).reshape(len(s), -1)
        return {**super().data(s), **hand_data(self.body, s), FORCES: forces}


@dataclass(frozen=True, eq=False, kw_only=True)
class HandEffort(Handled, Effort):
    """``Effort`` with forces on the hands."""

    def squares(self, node: Node) -> ca.SX:
        """Return torques divided by strengths."""
        return super().squares(loaded(node))


@dataclass(frozen=True, eq=False, kw_only=True)
class HandTorques(Handled, LimbTorques):
    """``LimbTorques`` with forces on the hands."""

    def rows(self, node: Node) -> Rows:
        """Return torques divided by strengths."""
        return super().rows(loaded(node))


@dataclass(frozen=True, eq=False, kw_only=True)
class HandTrunk(Handled, TrunkTorques):
    """``TrunkTorques`` with forces on the hands."""

    def rows(self, node: Node) -> Rows:
        """Return torques divided by the strength of the trunk."""
        return super().rows(loaded(node))


@dataclass(frozen=True, eq=False, kw_only=True)
class HandBalance(Handled, Balance):
    """``Balance`` with forces on the hands."""

    def rows(self, node: Node) -> Rows:
        """Return the sides of the box of the pressure, the vertical force and the friction cones."""
        return super().rows(loaded(node))
