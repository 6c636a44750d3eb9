"""Derivatives of what is solved for: accelerations of direct and hybrid dynamics.

With tau = ID(q, v, a), of which the accelerations x of the coordinates driven by force are found and the forces of the
others, changes obey, with the d(ID) at x held,

    M_ff dx = d(tau_f) - d(ID_f)        d(tau_o) = d(ID_o) + M_of dx

All driven by force is direct dynamics: -M^-1 d(ID)/dq, -M^-1 d(ID)/dv and M^-1.
"""

from typing import Any

import casadi as ca

from torsor.dynamics.derivatives import Loads, Three, inverse_dynamics_derivatives
from torsor.dynamics.hybrid import hybrid_dynamics
from torsor.dynamics.kinematics import sx
from torsor.dynamics.tree import Tree

__all__ = ["forward_dynamics_derivatives", "hybrid_dynamics_derivatives"]


def forward_dynamics_derivatives(tree: Tree, q: ca.SX, v: ca.SX, tau: ca.SX, **loads: Any) -> Three:
    """Return the derivatives of a = M^-1 (tau - ...) by q, v and tau, each nv x nv."""
    forced = frozenset(range(tree.nv))
    return hybrid_dynamics_derivatives(tree, q, v, ca.SX.zeros(tree.nv, 1), tau, forced, **loads)


def hybrid_dynamics_derivatives(
    tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX, tau: ca.SX, forced: frozenset[int], **loads: Any
) -> Three:
    """Return the derivatives by q, by v and by what is given, each nv x nv; a row is what is wanted of a coordinate."""
    a, _ = hybrid_dynamics(tree, q, v, a, tau, forced, Loads(**loads).external)
    # What is found twice is shared here: the solutions are long and have nothing twice.
    dq, dv, M = ca.cse(list(inverse_dynamics_derivatives(tree, q, v, a, **loads)))
    if not forced:
        return dq, dv, M
    # From the tips to the root, no entry fills in that was zero (Featherstone 2005).
    order, others = sorted(forced, reverse=True), [k for k in range(tree.nv) if k not in forced]
    D, L_T, _ = ca.ldl(M[order, order], False)
    n, changes = tree.nv, ca.horzcat(dq, dv, M[:, others])
    dx = -_solve(D, L_T, ca.densify(changes[order, :]))
    inverse = ca.tril2symm(_solve(D, L_T, sx(ca.SX.eye(len(order))), triangle=True))
    passed = M[others, order]
    complete, by_force = ca.SX(*changes.shape), ca.SX(n, len(order))
    complete[order, :], by_force[order, :] = dx, inverse
    complete[others, :], by_force[others, :] = changes[others, :] + passed @ dx, passed @ inverse
    given = ca.SX(n, n)
    given[:, others], given[:, order] = complete[:, 2 * n :], by_force
    return complete[:, :n], complete[:, n : 2 * n], given


def _solve(D: ca.SX, L_T: ca.SX, right: ca.SX, triangle: bool = False) -> ca.SX:
    """Return X with L diag(D) L^T X = right, or its lower triangle alone; L^T is without its ones.

    Of the inverse one triangle is enough: a row takes those after it, and of these no column that it has not itself.
    """
    rows, (above, right_of) = ca.vertsplit(right), L_T.sparsity().get_triplet()
    pairs = list(zip(above, right_of, strict=True))  # column after column
    for i, j in pairs:
        rows[j] = rows[j] - L_T[i, j] * rows[i]
    rows = [row / D[k] for k, row in enumerate(rows)]
    if triangle:
        rows = [row[:, : k + 1] for k, row in enumerate(rows)]
    for i, j in reversed(pairs):
        rows[i] = rows[i] - L_T[i, j] * rows[j][:, : rows[i].size2()]
    return ca.vertcat(*(ca.horzcat(row, ca.SX(1, right.size2() - row.size2())) for row in rows))
