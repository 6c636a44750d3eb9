"""Dynamics with closed loops in all coordinates, through the forces that hold the loops together.

    M a + H = B tau + A^T lambda        A a + drift = 0

with the equations that are independent. M = U^T U from the tips to the root makes it a projection: with x = U a and
W = U^-T A^T, the accelerations are those nearest to what the tree would do on its own, x_0 = U^-T (B tau - H), with
W^T x = -drift. The columns of W are made orthogonal, never squared, so that nothing is lost. No coordinate is chosen as
dependent: it holds also where the active ones lose hold of the mechanism, as long as the equations are independent.
"""

import casadi as ca

from torsor.dynamics.closure import Closures
from torsor.dynamics.composite import mass_matrix
from torsor.dynamics.constrained import Closing
from torsor.dynamics.factors import Columns, Squares
from torsor.dynamics.newton_euler import inverse_dynamics
from torsor.dynamics.tree import Tree

__all__ = ["closed_forward_dynamics", "closed_velocities"]


class _Projection:
    """What keeps loops closed, at positions q, in the metric of the mass matrix."""

    def __init__(self, tree: Tree, q: ca.SX, closing: Closing):
        self.closures, self.rows = Closures(tree, q), list(closing.rows)
        self.A = self.closures.A[self.rows, :]
        self._mass = Squares(mass_matrix(tree, q), list(reversed(range(tree.nv))))
        self._roots = ca.sqrt(self._mass.D)
        self._W = Columns(self.weighed(self.A.T))

    def weighed(self, forces: ca.SX) -> ca.SX:
        """Return U^-T times forces (nv x k)."""
        rows = self._mass.forth(ca.densify(forces[self._mass.order, :]))
        return ca.vertcat(ca.SX(0, forces.size2()), *(row / self._roots[k] for k, row in enumerate(rows)))

    def moved(self, x: ca.SX) -> ca.SX:
        """Return U^-1 x (nv x 1)."""
        rows = [row / self._roots[k] for k, row in enumerate(ca.vertsplit(x) if x.size1() else [])]
        return self._mass.placed(self._mass.back(rows, 1))

    def least(self, right: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the least x with W^T x = right, and the multipliers with x = W lambda."""
        return self._W.solve_transposed(right), self._W.solve_square(right)


def closed_forward_dynamics(
    tree: Tree, q: ca.SX, v: ca.SX, tau_active: ca.SX, closing: Closing, external: ca.SX | None = None
) -> tuple[ca.SX, ca.SX]:
    """Return the accelerations of all coordinates (nv x 1) and the multipliers of all equations (c x 1)."""
    at = _Projection(tree, q, closing)
    given = -inverse_dynamics(tree, q, v, ca.SX.zeros(tree.nv, 1), external)
    for k, index in enumerate(closing.active):
        given[index] += tau_active[k]
    free = at.weighed(given)
    alone = at.moved(free)
    step, passed = at.least(-(at.closures.drift(v)[at.rows] + at.A @ alone))
    forces = ca.SX(at.closures.A.size1(), 1)
    forces[at.rows] = passed
    return alone + at.moved(step), forces


def closed_velocities(tree: Tree, q: ca.SX, v: ca.SX, closing: Closing) -> ca.SX:
    """Return the velocities with A v = 0 that are nearest to v (nv x 1) in kinetic energy."""
    at = _Projection(tree, q, closing)
    return v - at.moved(at.least(at.A @ v)[0])
