"""Hybrid dynamics: each coordinate is driven by motion (its acceleration is given) or by force (its force is given).

If all coordinates are driven by force, this is forward dynamics (direct dynamics in Khalil's terms). If the base is
driven by force and the joints by motion, it is the inverse dynamics of a moving base. If all are driven by motion, it
is inverse dynamics. The equations are always linear in the unknowns:

    1. inverse dynamics with the unknown accelerations at zero computes the forces tau0;
    2. the unknown accelerations x solve M_ff x = tau_f - tau0_f, by elimination from the tips to the root (articulated
       bodies, Khalil 2010, eqs. 36-54, without velocity terms, which step 1 includes):

           U = I S,  D = S^T U + Ia,  u = r - S^T p      I, p: articulated inertia and force of the body
           passed to the parent:  I - U U^T / D  and  p + U u / D

    3. from the root to the tips,  x = (u - U^T A) / D,  A <- A + S x;
    4. the forces of coordinates driven by motion are tau0 + S^T (I A + p).

``elimination`` performs steps 2 to 4. If the motion of a body is expressed in few coordinates, its wrench from step 1
remains in p and is projected onto these coordinates once.
"""

import casadi as ca

from torsor.dynamics.recursions.elimination import Elimination, LinkImpedance, Stiffness
from torsor.dynamics.recursions.kinematics import moves
from torsor.dynamics.recursions.newton_euler import inverse_dynamics_with_cuts
from torsor.dynamics.trees.tree import Tree


def hybrid_dynamics(
    tree: Tree,
    q: ca.SX,
    v: ca.SX,
    a: ca.SX,
    tau: ca.SX,
    forced: frozenset[int],
    external: ca.SX | None = None,
    impedance: Stiffness | None = None,
    on_links: LinkImpedance | None = None,
) -> tuple[ca.SX, ca.SX]:
    """Return (a, tau) of all coordinates; tau is given for the coordinates in ``forced``, a for the others.

    The entries (i, j), i <= j, of ``impedance`` are added to the mass matrix of the coordinates in ``forced``, and the
    impedances ``on_links`` to the articulated inertia of links. Neither changes the wrenches at zero acceleration.
    """
    known = ca.vertcat(ca.SX.zeros(0, 1), *(ca.SX(0) if k in forced else a[k] for k in range(tree.nv)))
    elimination = Elimination(tree, moves(tree, q), forced, impedance or {}, on_links or {})
    tau0, wrenches = inverse_dynamics_with_cuts(tree, q, v, known, external, elimination.few)
    result, extra = elimination.solve({k: tau[k] - tau0[k] for k in forced}, wrenches)
    all_a = [result[k] if k in forced else a[k] for k in range(tree.nv)]
    all_tau = [tau[k] if k in forced else tau0[k] + extra[k] for k in range(tree.nv)]
    return ca.vertcat(ca.SX.zeros(0, 1), *all_a), ca.vertcat(ca.SX.zeros(0, 1), *all_tau)


def forward_dynamics(
    tree: Tree,
    q: ca.SX,
    v: ca.SX,
    tau: ca.SX,
    external: ca.SX | None = None,
    impedance: Stiffness | None = None,
    on_links: LinkImpedance | None = None,
) -> ca.SX:
    """Return a = (M + impedance)^-1 (tau - C v - g - springs - friction + J^T external) (nv x 1), in O(n).

    Impedances Z ``on_links`` add the sum of J^T Z J to M.
    """
    forced = frozenset(range(tree.nv))
    return hybrid_dynamics(tree, q, v, ca.SX.zeros(tree.nv, 1), tau, forced, external, impedance, on_links)[0]
