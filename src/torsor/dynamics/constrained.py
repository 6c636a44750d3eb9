"""Dynamics with closed loops, in the coordinates that are driven.

Of the equations of closure A v = 0 as many as are independent are kept, and of the coordinates as many are dependent;
the others, x, move the mechanism:

    v = G x,   G = [1; -A_d^-1 A_x]             a = G x' + g,   g = [0; -A_d^-1 drift]

Forces that the loops pass on do no work along G, so that what the tree takes, projected, is what the drives give:

    G^T ID(q, v, a) = G_a^T tau_a        M_c x' + H_c = G_a^T tau_a,   M_c = G^T M G,   H_c = G^T ID(q, v, g)

(document 003, eqs. 55-58). Where more coordinates are driven than are needed, of all forces that do it those with the
least sum of tau^2 / share are found. The forces in the cut joints are the multipliers of A.
"""

from typing import NamedTuple

import casadi as ca

from torsor.dynamics.closure import closure_drift, closure_jacobian
from torsor.dynamics.composite import mass_matrix
from torsor.dynamics.newton_euler import inverse_dynamics
from torsor.dynamics.tree import Tree

__all__ = [
    "Closing",
    "constrained_accelerations",
    "constrained_forward_dynamics",
    "constrained_inverse_dynamics",
    "constrained_velocities",
    "loop_forces",
]


class Closing(NamedTuple):
    """Which equations of closure are kept, which coordinates move the mechanism, and which are driven.

    ``units`` (c) and ``length`` (m) say what errors of closure and steps of coordinates are measured by. Where
    multipliers hold the loops no coordinate moves the others; ``scales`` then has what A M^-1 A^T of each kept equation
    is where the mechanism is far from singular.
    """

    rows: tuple[int, ...]
    independent: tuple[int, ...] = ()
    active: tuple[int, ...] = ()
    units: tuple[float, ...] = ()
    length: float = 1.0
    scales: tuple[float, ...] = ()


def solved(A: ca.SX, B: ca.SX) -> ca.SX:
    """Return A^-1 B by Gram and Schmidt's columns, of A and B alike.

    Without pivoting, which no flat list of operations can do, this is as exact as A allows; what is sparse stays so.
    """
    n, Q, R, Y = A.size1(), list[ca.SX](), ca.SX(*A.shape), list[ca.SX]()
    for j, column in enumerate(ca.horzsplit(ca.densify(A))):
        for k, q in enumerate(Q):
            R[k, j] = ca.dot(q, column)
            column = column - R[k, j] * q
        R[j, j] = ca.sqrt(ca.dot(column, column))
        Q.append(column / R[j, j])
    B = ca.densify(B)
    for q in Q:
        Y.append(q.T @ B)
        B = B - q @ Y[-1]
    X: list[ca.SX] = [ca.SX(1, B.size2())] * n
    for k in reversed(range(n)):
        rest = sum((R[k, j] * X[j] for j in range(k + 1, n)), start=ca.SX(1, B.size2()))
        X[k] = (Y[k] - rest) / R[k, k]
    return ca.vertcat(ca.SX(0, B.size2()), *X)


class _Closed:
    """A mechanism at a place where its loops are closed: what its dependent coordinates do."""

    def __init__(self, tree: Tree, q: ca.SX, closing: Closing):
        self.tree, self.q, self.closing = tree, q, closing
        self.rows, self.independent = list(closing.rows), list(closing.independent)
        self.dependent = [k for k in range(tree.nv) if k not in closing.independent]
        self.A = closure_jacobian(tree, q)[self.rows, :]
        self.G = self.complete(ca.SX.eye(len(self.independent)), -self.solve(self.A[:, self.independent]))
        self.G_active = self.G[list(closing.active), :]

    def solve(self, right: ca.SX) -> ca.SX:
        """Return A_d^-1 times the right side."""
        if not self.dependent:
            return ca.SX(0, right.size2())
        return solved(self.A[:, self.dependent], right)

    def complete(self, independent: ca.SX, dependent: ca.SX) -> ca.SX:
        """Return rows of all coordinates, from those of the independent and of the dependent ones."""
        whole = ca.SX(self.tree.nv, independent.size2())
        whole[self.independent, :] = independent
        whole[self.dependent, :] = dependent
        return whole

    def among_active(self, x_active: ca.SX) -> ca.SX:
        """Return the rates of the independent coordinates, from those of the active ones."""
        return x_active[[self.closing.active.index(k) for k in self.independent]]

    def left_over(self, v: ca.SX) -> ca.SX:
        """Return g (nv x 1), the accelerations where the independent coordinates have none."""
        drift = closure_drift(self.tree, self.q, v)[self.rows]
        return self.complete(ca.SX.zeros(len(self.independent), 1), -self.solve(drift))

    def motion(self, v_active: ca.SX, a_active: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return v and a (nv x 1 each) of all coordinates, from those of the active ones."""
        v = self.G @ self.among_active(v_active)
        return v, self.G @ self.among_active(a_active) + self.left_over(v)

    def drives(self, force: ca.SX, share: ca.SX) -> ca.SX:
        """Return the forces of the active coordinates that do what ``force`` on the independent ones would do."""
        if len(self.closing.active) == len(self.independent):
            order = [self.independent.index(k) for k in self.closing.active]
            return force[order]
        spread = ca.diag(share) @ self.G_active
        return spread @ solved(self.G_active.T @ spread, force)


def constrained_velocities(tree: Tree, q: ca.SX, v_active: ca.SX, closing: Closing) -> ca.SX:
    """Return v (nv x 1), of all coordinates."""
    closed = _Closed(tree, q, closing)
    return closed.G @ closed.among_active(v_active)


def constrained_accelerations(
    tree: Tree, q: ca.SX, v_active: ca.SX, a_active: ca.SX, closing: Closing
) -> tuple[ca.SX, ca.SX]:
    """Return v and a (nv x 1 each), of all coordinates."""
    return _Closed(tree, q, closing).motion(v_active, a_active)


def constrained_inverse_dynamics(
    tree: Tree,
    q: ca.SX,
    v_active: ca.SX,
    a_active: ca.SX,
    share: ca.SX,
    closing: Closing,
    external: ca.SX | None = None,
) -> ca.SX:
    """Return the forces of the active coordinates."""
    closed = _Closed(tree, q, closing)
    v, a = closed.motion(v_active, a_active)
    return closed.drives(closed.G.T @ inverse_dynamics(tree, q, v, a, external), share)


def constrained_forward_dynamics(
    tree: Tree, q: ca.SX, v_active: ca.SX, tau_active: ca.SX, closing: Closing, external: ca.SX | None = None
) -> ca.SX:
    """Return the accelerations of the active coordinates."""
    closed = _Closed(tree, q, closing)
    v = closed.G @ closed.among_active(v_active)
    rest = closed.left_over(v)
    H = closed.G.T @ inverse_dynamics(tree, q, v, rest, external)
    M = closed.G.T @ mass_matrix(tree, q) @ closed.G
    x = solved(M, closed.G_active.T @ tau_active - H)
    return closed.G_active @ x + rest[list(closing.active)]


def loop_forces(
    tree: Tree,
    q: ca.SX,
    v_active: ca.SX,
    a_active: ca.SX,
    share: ca.SX,
    closing: Closing,
    external: ca.SX | None = None,
) -> ca.SX:
    """Return the multipliers (c x 1) of the equations of closure: what each cut joint passes on from a to b."""
    closed = _Closed(tree, q, closing)
    v, a = closed.motion(v_active, a_active)
    tau = inverse_dynamics(tree, q, v, a, external)
    given = ca.SX(tree.nv, 1)
    given[list(closing.active)] = closed.drives(closed.G.T @ tau, share)
    missing = (tau - given)[closed.dependent]
    found = ca.SX(closure_jacobian(tree, q).size1(), 1)
    found[closed.rows] = solved(closed.A[:, closed.dependent].T, missing)
    return found
