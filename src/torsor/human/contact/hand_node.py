"""Nodes with forces on the hands: given ones, and those of rails that the hands hold."""

from functools import lru_cache

import casadi as ca

from torsor.human.body.coordinates import SIDES
from torsor.human.contact.balance import Wrench, moment_about
from torsor.motion import Node

FORCES, KNUCKLES = "hand forces", "knuckles"  # data of a node: of both hands, and where they act on the hand
WEIGHT = "weight on rails"  # data of a node: the unit of the forces of rails
RAILS = tuple(f"rail on {side} hand, {axis}" for side in SIDES for axis in "xyz")  # profiles, in weights


class _HandNode(Node):
    """A node whose joint forces include what balances the forces on the hands; all else is that of the node itself."""

    def __init__(self, node: Node):
        self.__dict__ = node.__dict__  # the same symbols, so that quantities are computed once for both

    def hand_forces(self) -> ca.SX:
        """Return the forces (6 x 1) (N) on the right and the left hand, in base axes."""
        return rail_forces(self)

    @property
    def tau(self) -> ca.SX:
        """Forces (nv x 1) of all coordinates without the ground, with the forces on the hands."""
        names, found = self.robot.coordinate_names, ca.SX(super().tau)
        forces, at = self.hand_forces(), self.data(KNUCKLES, 3)
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


class _LoadedNode(_HandNode):
    """A node with given forces on the hands, and those of rails."""

    def hand_forces(self) -> ca.SX:
        """Return the sum of both."""
        given: ca.SX = self.data(FORCES, 3 * len(SIDES))
        return given + rail_forces(self) if has_rails(self) else given


def has_rails(node: Node) -> bool:
    """Whether the hands of a node hold rails."""
    return RAILS[0] in node.model.names


def rail_forces(node: Node) -> ca.SX:
    """Return the forces (6 x 1) (N) of rails on the right and the left hand."""
    found: ca.SX = node.data(WEIGHT, 1) * ca.vertcat(*(node.profile(name) for name in RAILS))
    return found


def rail_power(node: Node, side: str) -> ca.SX:
    """Return the power of a rail at the hand of a side."""
    k, pose, V = SIDES.index(side), node.pose(f"{side}_hand"), node.velocity(f"{side}_hand")
    velocity = pose[:3, :3] @ (V[3:] + ca.cross(V[:3], node.data(KNUCKLES, 3)))
    found: ca.SX = ca.dot(rail_forces(node)[3 * k : 3 * k + 3], velocity)
    return found


@lru_cache(maxsize=8)
def loaded(node: Node) -> Node:
    """Return a node with given forces on the hands, the same object for all terms of the node."""
    return _LoadedNode(node)


@lru_cache(maxsize=8)
def railed(node: Node) -> Node:
    """Return a node with the forces of its rails, the same object for all terms of the node."""
    return node if isinstance(node, _HandNode) or not has_rails(node) else _HandNode(node)
