"""Terms of tasks in which given forces act on the hands: the terms of ``forces`` and ``trunk`` with these forces."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

import casadi as ca
import numpy as np

from torsor.arrays import Array
from torsor.human.body.coordinates import SIDES
from torsor.human.body.hand_forces import HandForces
from torsor.human.contact.balance import Wrench, moment_about
from torsor.human.terms.forces import Balance, Effort, Grounded
from torsor.human.terms.trunk import LimbTorques, TrunkTorques
from torsor.motion import Node
from torsor.motion.terms.term import Rows

FORCES, KNUCKLES = "hand forces", "knuckles"  # data of a node: of both hands, and where they act on the hand


class _LoadedNode(Node):
    """A node whose joint forces include what balances the forces on the hands; all else is that of the node itself."""

    def __init__(self, node: Node):
        self.__dict__ = node.__dict__  # the same symbols, so that quantities are computed once for both

    @property
    def tau(self) -> ca.SX:
        """Forces (nv x 1) of all coordinates without the ground, with the forces on the hands."""
        names, found = self.robot.coordinate_names, ca.SX(super().tau)
        forces, at = self.data(FORCES, 3 * len(SIDES)), self.data(KNUCKLES, 3)
        for k, side in enumerate(SIDES):
            link = self.robot.link_names.index(f"{side}_hand")
            pose, force = self.pose(f"{side}_hand"), forces[3 * k : 3 * k + 3]
            wrench = Wrench(force, ca.cross(pose[:3, :3] @ at + pose[:3, 3], force))
            while link >= 0:
                joint = self.robot.joints[link]
                own = self.pose(joint.child)
                axis = own[:3, :3] @ ca.SX(joint.axis)
                slides = joint.type == "prismatic"
                taken = ca.dot(axis, wrench.f) if slides else moment_about(wrench, axis, own[:3, 3])
                found[names.index(joint.name)] -= taken
                link = self.robot.parents[link]
        return found


@lru_cache(maxsize=8)
def loaded(node: Node) -> Node:
    """Return a node with the forces on the hands, the same object for all terms of the node."""
    return _LoadedNode(node)


@dataclass(frozen=True, eq=False, kw_only=True)
class Handled(Grounded):
    """A term with forces on the ``hands``, in a motion that takes ``seconds``."""

    hands: HandForces
    seconds: float

    @cached_property
    def _knuckles(self) -> Array:
        return np.asarray(self.body.place("left_knuckles").pose[:3, 3])

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the data of the other terms, the forces (K, 6), and where they act on the hands (K, 3)."""
        forces = self.hands.at(s * self.seconds).reshape(len(s), -1)
        return {**super().data(s), FORCES: forces, KNUCKLES: np.tile(self._knuckles, (len(s), 1))}


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
