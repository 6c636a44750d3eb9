"""Newton steps of the assembly of closed loops, and measures of closure and of the distance from singularity.

With the independent coordinates fixed, Newton's step of the dependent ones is -A_d^-1 phi (Khalil 2010, eqs. 3-4).
Errors are relative to the size of the mechanism, so that tolerances do not depend on it.
"""

import casadi as ca

from torsor.dynamics.loops.characteristic_scales import characteristic_scales
from torsor.dynamics.loops.closure import closure_error, closure_jacobian
from torsor.dynamics.loops.constrained import ClosureChoice, Linkage
from torsor.dynamics.loops.factors import reflected
from torsor.dynamics.recursions.configuration import integrate
from torsor.dynamics.trees.tree import Tree

LONGEST = 1.0  # step of any coordinate, in rad or in sizes of the mechanism


def closure_trial(tree: Tree, q: ca.SX, dv: ca.SX, choice: ClosureChoice) -> ca.SX:
    """Return a trial of assembly (nq + nv + 2): the positions after the step dv, Newton's next step, error and side.

    All in one column, so that the assembly calls one function per step. The side is the independence of the columns of
    A_d, with the sign of its determinant, which changes at a singularity.
    """
    there = integrate(tree, q, dv)
    error, rows = closure_error(tree, there), list(choice.rows)
    dependent = [k for k in range(tree.nv) if k not in choice.independent]
    newton, side = reflected(closure_jacobian(tree, there)[rows, dependent], error[rows])
    longest = ca.SX(LONGEST * characteristic_scales(tree, choice.length)[1])[dependent]
    step = ca.SX.zeros(tree.nv, 1)
    step[dependent] = ca.fmax(ca.fmin(-newton, longest), -longest)
    return ca.vertcat(there, step, ca.norm_2(error / ca.SX(choice.units)), side)


def closure_state(tree: Tree, q: ca.SX, choice: ClosureChoice) -> ca.SX:
    """Return (3 x 1) the residual of closure, the distance from singularity, and the residual of redundant equations.

    The second is 0 where dependent coordinates can move while the independent ones are fixed. The third is the rate of
    the equations that are left out, for motions that satisfy the chosen ones: 0 if they are redundant.
    """
    linkage, units = Linkage(tree, q, choice), ca.SX(choice.units)
    unseen = ca.SX(0)
    for k in range(len(choice.units)):
        if k not in choice.rows:
            unseen += ca.sumsqr(linkage.closures.A[k, :] @ linkage.G) / choice.units[k] ** 2
    unseen = ca.sqrt(unseen / ca.sumsqr(linkage.G)) if choice.independent else ca.SX(0)
    return ca.vertcat(ca.norm_2(closure_error(tree, q) / units), linkage.independence, unseen)
