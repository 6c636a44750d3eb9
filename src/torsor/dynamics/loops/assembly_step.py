"""Steps toward closed loops, and how closed and how far from singular a mechanism is.

With the independent coordinates held, Newton's step of the dependent ones is -A_d^-1 phi (Khalil 2010, section 2.2).
Errors are measured by the size of the mechanism, so that what is closed does not depend on it.
"""

import casadi as ca

from torsor.dynamics.loops.characteristic_scales import units
from torsor.dynamics.loops.closure import closure_error, closure_jacobian
from torsor.dynamics.loops.constrained import ClosureChoice, Linkage
from torsor.dynamics.loops.factors import reflected
from torsor.dynamics.recursions.configuration import integrate
from torsor.dynamics.trees.tree import Tree

__all__ = ["closure_state", "closure_trial"]

LONGEST = 1.0  # step of any coordinate, in rad or in sizes of the mechanism


def closure_trial(tree: Tree, q: ca.SX, dv: ca.SX, choice: ClosureChoice) -> ca.SX:
    """Return a trial of assembly (nq + nv + 2): the positions after the step dv, Newton's next step, error and side.

    All of one column, so that a search for closed loops calls one function for each of its steps. The side is how
    independent the dependent coordinates are, with a sign that changes where they become singular.
    """
    there = integrate(tree, q, dv)
    error, rows = closure_error(tree, there), list(choice.rows)
    dependent = [k for k in range(tree.nv) if k not in choice.independent]
    newton, side = reflected(closure_jacobian(tree, there)[rows, dependent], error[rows])
    longest = ca.SX(LONGEST * units(tree, choice.length)[1])[dependent]
    step = ca.SX.zeros(tree.nv, 1)
    step[dependent] = ca.fmax(ca.fmin(-newton, longest), -longest)
    return ca.vertcat(there, step, ca.norm_2(error / ca.SX(choice.units)), side)


def closure_state(tree: Tree, q: ca.SX, choice: ClosureChoice) -> ca.SX:
    """Return (3 x 1) how far open the loops are, how far from singular they are, and what spare equations say.

    The second is 0 where dependent coordinates can move while the independent ones are held. The third is the rate of
    the equations that are not kept while the others hold: not 0 where they are not spare.
    """
    linkage, units = Linkage(tree, q, choice), ca.SX(choice.units)
    unseen = ca.SX(0)
    for k in range(len(choice.units)):
        if k not in choice.rows:
            unseen += ca.sumsqr(linkage.closures.A[k, :] @ linkage.G) / choice.units[k] ** 2
    unseen = ca.sqrt(unseen / ca.sumsqr(linkage.G)) if choice.independent else ca.SX(0)
    return ca.vertcat(ca.norm_2(closure_error(tree, q) / units), linkage.independence, unseen)
