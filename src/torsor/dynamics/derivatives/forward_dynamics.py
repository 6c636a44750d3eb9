"""Derivatives of forward and hybrid dynamics.

Hybrid dynamics solves tau = ID(q, v, a) for the accelerations x of the coordinates driven by force (f) and the forces
of the other coordinates (o). With d(ID) taken at constant x, the differentials obey

    M_ff dx = d(tau_f) - d(ID_f)        d(tau_o) = d(ID_o) + M_of dx

If all coordinates are driven by force, this is forward dynamics: -M^-1 d(ID)/dq, -M^-1 d(ID)/dv and M^-1.
"""

from typing import Any

import casadi as ca

from torsor.dynamics.derivatives.inverse_dynamics import Loads, Three, inverse_dynamics_derivatives
from torsor.dynamics.loops.factors import Squares
from torsor.dynamics.recursions.hybrid import hybrid_dynamics
from torsor.dynamics.trees.tree import Tree


def forward_dynamics_derivatives(tree: Tree, q: ca.SX, v: ca.SX, tau: ca.SX, **loads: Any) -> Three:
    """Return the derivatives of a = M^-1 (tau - ...) with respect to q, v and tau, each nv x nv."""
    forced = frozenset(range(tree.nv))
    return hybrid_dynamics_derivatives(tree, q, v, ca.SX.zeros(tree.nv, 1), tau, forced, **loads)


def hybrid_dynamics_derivatives(
    tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX, tau: ca.SX, forced: frozenset[int], **loads: Any
) -> Three:
    """Return the derivatives of the unknown a or tau of each coordinate by q, v and the given one, each nv x nv."""
    a, _ = hybrid_dynamics(tree, q, v, a, tau, forced, Loads(**loads).external)
    # Common subexpressions are eliminated here: the solution below is long and adds none.
    dq, dv, M = ca.cse(list(inverse_dynamics_derivatives(tree, q, v, a, **loads)))
    if not forced:
        return dq, dv, M
    order, others = sorted(forced, reverse=True), [k for k in range(tree.nv) if k not in forced]
    factors = Squares(M[order, order])
    n, changes = tree.nv, ca.horzcat(dq, dv, M[:, others])
    dx = -factors.solve(ca.densify(changes[order, :]))
    inverse = factors.inverse()
    passed = M[others, order]
    complete, by_force = ca.SX(*changes.shape), ca.SX(n, len(order))
    complete[order, :], by_force[order, :] = dx, inverse
    complete[others, :], by_force[others, :] = changes[others, :] + passed @ dx, passed @ inverse
    given = ca.SX(n, n)
    given[:, others], given[:, order] = complete[:, 2 * n :], by_force
    return complete[:, :n], complete[:, n : 2 * n], given
