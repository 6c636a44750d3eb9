"""Dynamics with closed loops in all coordinates: the equations with multipliers, and the way back to closed loops.

With the equations of closure that are kept, phi(q) = 0 and A v = 0, the loops push along A^T:

    M a + h = tau + A^T lambda        A a = -drift - 2 r A v - r^2 phi        h = C v + g + friction - J^T external

(Khalil 2010, section 2.2; index 1: only accelerations are asked for). With X = M^-1 A^T and G = A X,

    a = a0 - X G^-1 (A a0 + drift + ...),   a0 = M^-1 (tau - h)

Nothing is dependent and nothing need be driven: it is enough that the rows of A are independent, also where a choice of
dependent coordinates is singular. The rate r (1/s) pulls what an integrator leaves open back; without it, loops that
are closed stay closed up to what the integrator does. The same X and G lead a state back to closed loops, each by the
least change in the norm of the mass matrix, which changes no more of the motion than it must.
"""

import casadi as ca

from torsor.dynamics.loops.closure import Closures, closure_error
from torsor.dynamics.loops.constrained import ClosureChoice
from torsor.dynamics.loops.factors import Squares
from torsor.dynamics.recursions.composite import mass_matrix
from torsor.dynamics.recursions.configuration import chart
from torsor.dynamics.recursions.kinematics import symmetric
from torsor.dynamics.recursions.newton_euler import inverse_dynamics
from torsor.dynamics.trees.tree import Tree

__all__ = [
    "closed_forward_dynamics",
    "closed_loop_forces",
    "closed_state",
    "closed_velocities",
    "closure_margin",
    "held_end",
]

# Of an integrator's error, 1e-5 at worst, Newton's first step leaves its square, and the second with the same matrix
# that times the first error.
CORRECTIONS = 2
# What may be left, of the size of the mechanism.
CLOSED = 1e-10
# Margins above this do not vanish within a step that is short enough for anything else.
NEAR = 0.1


class _Held:
    """A mechanism at a place: what its loops push, by the rows of A that are kept."""

    def __init__(self, tree: Tree, q: ca.SX, choice: ClosureChoice):
        self.rows, self.closures = list(choice.rows), Closures(tree, q)
        self.A = self.closures.A[self.rows, :]
        self.mass = Squares(mass_matrix(tree, q), list(reversed(range(tree.nv))))  # from the tips to the root
        self.X = self.mass.solve(ca.densify(self.A.T))
        self.factors = Squares(symmetric(self.A @ self.X))
        # What is left of a row when those before it are taken away, in parts of what it is in general.
        shares = self.factors.D / ca.SX(list(choice.scales)) if self.rows else ca.SX.ones(1, 1)
        self.margin = ca.sqrt(ca.fmax(0, ca.mmin(shares)))

    def without(self, x: ca.SX, rate: ca.SX) -> ca.SX:
        """Return x (nv x 1) changed the least, in the norm of M, so that A x is less by ``rate``."""
        return x - self.X @ self.factors.solve(rate)


def _pushed(
    tree: Tree,
    q: ca.SX,
    v: ca.SX,
    tau: ca.SX,
    choice: ClosureChoice,
    external: ca.SX | None,
    rate: float,
) -> tuple[ca.SX, ca.SX]:
    """Return a (nv x 1) and the multipliers of the rows that are kept."""
    held = _Held(tree, q, choice)
    a0 = held.mass.solve(tau - inverse_dynamics(tree, q, v, ca.SX.zeros(tree.nv, 1), external))
    too_much = held.A @ a0 + held.closures.drift(v)[held.rows]
    if rate:
        too_much += 2 * rate * (held.A @ v) + rate**2 * closure_error(tree, q)[held.rows]
    push = held.factors.solve(too_much)
    return a0 - held.X @ push, push


def closed_forward_dynamics(
    tree: Tree,
    q: ca.SX,
    v: ca.SX,
    tau: ca.SX,
    choice: ClosureChoice,
    external: ca.SX | None = None,
    rate: float = 0.0,
) -> ca.SX:
    """Return a (nv x 1) of all coordinates while the loops stay closed; ``rate`` (1/s) pulls back what is open."""
    return _pushed(tree, q, v, tau, choice, external, rate)[0]


def closed_loop_forces(
    tree: Tree, q: ca.SX, v: ca.SX, tau: ca.SX, choice: ClosureChoice, external: ca.SX | None = None
) -> ca.SX:
    """Return the multipliers (c x 1) of all equations of closure, 0 for those that are spare: M a + h = tau + A^T."""
    found = ca.SX(closure_error(tree, q).numel(), 1)
    found[list(choice.rows)] = -_pushed(tree, q, v, tau, choice, external, 0.0)[1]
    return found


def closed_velocities(tree: Tree, q: ca.SX, v: ca.SX, choice: ClosureChoice) -> ca.SX:
    """Return the velocities with A v = 0 that are nearest to v (nv x 1) in kinetic energy."""
    held = _Held(tree, q, choice)
    return held.without(v, held.A @ v)


def closure_margin(tree: Tree, q: ca.SX, choice: ClosureChoice) -> ca.SX:
    """Return how far the kept equations are from saying nothing new: the least part of one that those before it lack.

    Lengths are those of the norm of M^-1, in parts of what they are in general, so that units do not matter.
    """
    return _Held(tree, q, choice).margin


def closed_state(tree: Tree, q: ca.SX, v: ca.SX, choice: ClosureChoice) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Return the nearest (q, v) with closed loops, and the margin; NaN for v where they could not be closed."""
    held = _Held(tree, q, choice)
    still = ca.SX.zeros(tree.nv, 1)
    for _ in range(CORRECTIONS):
        q = chart(tree, q, held.without(still, closure_error(tree, q)[held.rows]))
    A = Closures(tree, q).A[held.rows, :]
    for _ in range(CORRECTIONS):
        v = held.without(v, A @ v)
    gap = ca.norm_2(ca.vertcat(ca.SX.zeros(1, 1), closure_error(tree, q) / ca.SX(choice.units)))
    return q, ca.if_else(gap <= CLOSED, v, ca.SX.nan(tree.nv, 1)), held.margin


def held_end(tree: Tree, q: ca.SX, q_next: ca.SX, v_next: ca.SX, choice: ClosureChoice) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Return the end (q, v) of a step from q with closed loops, and its margin.

    The margin is negative where at the pace of this step it vanishes within the next.
    """
    before, (q_next, v_next, after) = closure_margin(tree, q, choice), closed_state(tree, q_next, v_next, choice)
    vanishes = ca.logic_and(2 * after <= before, after < NEAR)
    return q_next, v_next, ca.if_else(vanishes, -after, after)
