"""The platform at one state, over symbols: its motion in base axes, and generalised forces of wrenches on it."""

import casadi as ca
import numpy as np

from torsor.dynamics.recursions.axes import place_in_body
from torsor.dynamics.recursions.composite import mass_matrix
from torsor.dynamics.recursions.kinematics import motions, moves, sx, symmetric, twists, world_poses
from torsor.dynamics.recursions.newton_euler import inverse_dynamics
from torsor.dynamics.recursions.places import jacobian
from torsor.dynamics.trees.tree import Tree
from torsor.mechanism import Place
from torsor.spatial import cross, inverse_pose, skew


class Platform:
    """The platform with its coordinates x, velocities u and accelerations u_rate; those not given are zero."""

    def __init__(self, tree: Tree, x: ca.SX, u: ca.SX | None = None, u_rate: ca.SX | None = None):
        self.tree, self.x = tree, x
        self.u = ca.SX.zeros(tree.nv, 1) if u is None else u
        self.u_rate = ca.SX.zeros(tree.nv, 1) if u_rate is None else u_rate
        self._moved = moves(tree, x)
        self.R, self.p = world_poses(tree, self._moved)[-1]
        self.is_free = len(tree.bodies) == 1 and tree.nv == 6
        self._twist = twists(tree, self._moved, self.u)[-1]
        motion = motions(tree, self._moved, self.u, self.u_rate)[-1]
        # Rotated to base axes once, for all legs.
        self._w, self._v = self.R @ self._twist[:3], self.R @ self._twist[3:]
        self._wd, self._a = self.R @ motion.wd, self.R @ motion.a
        W = skew(self._w)
        self._U = skew(self._wd) + symmetric(W @ W)

    def place(self, at: Place) -> tuple[ca.SX, ca.SX]:
        """Return the position of a place from the platform's origin, and its axes (3 x 3), both in base axes."""
        R, p = place_in_body(self.tree, at)
        return self.R @ p, self.R @ R

    def velocity_at(self, r: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return (omega, v) of a point of the platform, in base axes."""
        return self._w, self._v + cross(self._w, r)

    def acceleration_at(self, r: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return (rate of omega, acceleration) of a point of the platform, in base axes, without gravity."""
        return self._wd, self._a + self._U @ r

    def project(self, wrench: ca.SX) -> ca.SX:
        """Return the generalised forces (nv rows) of wrenches (6 rows) at its origin in base axes."""
        own = ca.vertcat(self.R.T @ wrench[:3, :], self.R.T @ wrench[3:, :])
        if self.is_free:
            return own
        k = len(self.tree.bodies) - 1
        return jacobian(self.tree, self.x, Place(k, inverse_pose(self.tree.bodies[k].link))).T @ own

    def lifted(self, force: ca.SX) -> ca.SX:
        """Return the wrench (6 x 1) at its origin in base axes of forces on the coordinates of a free platform."""
        return ca.vertcat(self.R @ force[:3], self.R @ force[3:])

    def forces(self, external: ca.SX | None = None) -> ca.SX:
        """Return the forces (nv x 1) of its own motion; ``external`` (6 x 1) acts at its link's origin in its axes."""
        rows = None
        if external is not None:
            above = len(self.tree.bodies) - 1
            rows = ca.vertcat(ca.SX.zeros(above, 6), external.T)
        return inverse_dynamics(self.tree, self.x, self.u, self.u_rate, rows)

    def mass_matrix(self) -> ca.SX:
        """Return its own mass matrix (nv x nv)."""
        return mass_matrix(self.tree, self.x)

    def unit_rates(self) -> ca.SX:
        """Return the twists (6 x nv), at its origin in base axes, of unit rates of its coordinates."""
        return self.project(sx(np.eye(6))).T
