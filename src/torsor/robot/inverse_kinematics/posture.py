"""Poses of places and their Jacobians in base axes, over symbols: what targets of inverse kinematics are made of.

With w and v the axis of a joint as a twist at its origin o, in base axes, a point x that the joint moves has the
velocity v + w x (x - o) for a unit rate, and its link the angular velocity w (Featherstone 2008, section 2.4).
"""

from functools import cached_property

import casadi as ca

from torsor.dynamics.recursions.configuration import steps
from torsor.dynamics.recursions.kinematics import moves, world_poses
from torsor.dynamics.recursions.momentum import center_of_mass
from torsor.dynamics.recursions.places import place_in_body
from torsor.dynamics.trees.tree import Tree
from torsor.mechanism import Mechanism, Place
from torsor.spatial import cross

Rows = tuple[ca.SX, ca.SX]  # values (m x 1), and their derivatives (m x nv) along ``integrate``


class Posture:
    """The bodies of a tree at the positions q (nq x 1)."""

    def __init__(self, tree: Tree, q: ca.SX):
        self.tree, self.q = tree, q
        self._moved = moves(tree, q)
        self._poses = world_poses(tree, self._moved)

    def pose(self, place: Place) -> tuple[ca.SX, ca.SX]:
        """Return (R, p) of a place in base axes."""
        R, p = place_in_body(self.tree, place)
        if place.link < 0:
            return R, p
        R_body, p_body = self._poses[place.link]
        return R_body @ R, p_body + R_body @ p

    def jacobians(self, place: Place, point: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the Jacobians (3 x nv each) of the angular velocity and of the velocity of a point (3 x 1)."""
        turning, moving = [ca.SX(3, 1)] * self.tree.nv, [ca.SX(3, 1)] * self.tree.nv
        k = place.link
        while k >= 0:
            body, (_, origin) = self.tree.bodies[k], self._poses[k]
            for c, (w, v) in enumerate(self._axes[k]):
                at = body.v.start + c
                turning[at] = turning[at] + body.joint.ratio * w
                moving[at] = moving[at] + body.joint.ratio * (v + cross(w, point - origin))
            k = body.parent
        return ca.horzcat(ca.SX(3, 0), *turning), ca.horzcat(ca.SX(3, 0), *moving)

    @cached_property
    def _axes(self) -> list[list[Rows]]:
        """The axes of each body's joint in base axes: angular and linear (3 x 1 each)."""
        found = []
        for move, (R, _) in zip(self._moved, self._poses, strict=True):
            own = range(move.S.size2())
            found.append([(R @ move.S[:3, c], R @ move.S[3:, c]) for c in own])
        return found

    def center_of_mass(self) -> Rows:
        """Return the centre of mass (3 x 1) in base axes, and its Jacobian (3 x nv); the tree must not be lean."""
        q = ca.SX.sym("q", self.tree.nq)  # derivatives are taken by symbols: the positions may be expressions
        c = center_of_mass(self.tree, q)
        at, J = ca.Function("c", [q], [c, ca.jacobian(c, q) @ steps(self.tree, q)]).call([self.q])
        return at, J


def coordinates_of(mechanism: Mechanism, place: Place) -> set[int]:
    """Return the indices in v of the coordinates that move a place.

    Example:
        >>> arm = torsor.library.two_link()
        >>> sorted(coordinates_of(arm, arm.place("link1"))), sorted(coordinates_of(arm, arm.place("link2")))
        ([0], [0, 1])
    """
    found, k = set[int](), place.link
    while k >= 0:
        own = mechanism.coordinates[k].v
        found |= set(range(own.start, own.stop))
        k = mechanism.parents[k]
    return found
