"""Dynamics with closed loops in all coordinates, with Lagrange multipliers, and the projection onto closed loops.

With the chosen independent equations of closure, phi(q) = 0 and A v = 0, the loops exert forces along A^T:

    M a + h = tau + A^T lambda        A a = -drift - 2 r A v - r^2 phi        h = C v + g + friction - J^T external

(closure: Khalil 2010, section 2.2; index 1: its equations are those of the accelerations). With M = L D L^T,
Z = L^-1 A^T, u = L^-1 (tau - h) and G = A M^-1 A^T = Z^T D^-1 Z,

    a = L^-T D^-1 (u + Z lambda),   lambda = -G^-1 (Z^T D^-1 u + drift + ...)

L has the pattern of the tree, and Z has rows only where a joint moves a loop: M^-1 A^T, which is full, is not formed.

No coordinates are chosen as dependent or active: it is enough that the rows of A are independent, also where a choice
of dependent coordinates would be singular. The rate r (1/s) stabilises the loops against errors of the integrator
(Baumgarte); without it, closed loops stay closed up to these errors. With the same Z and G a state is projected onto
closed loops: to the nearest one in the norm of the mass matrix.

Where the motion of the active coordinates is given and all others are free of force, the active coordinates are
equations too: with their rows S, [A; S] a = [-drift; a_active], and their multipliers are the forces of the drives.
"""

import casadi as ca

from torsor.dynamics.loops.closure import Closures, closure_error
from torsor.dynamics.loops.constrained import ClosureChoice
from torsor.dynamics.loops.factors import Squares
from torsor.dynamics.recursions.composite import mass_matrix
from torsor.dynamics.recursions.configuration import chart
from torsor.dynamics.recursions.kinematics import symmetric
from torsor.dynamics.recursions.newton_euler import Load, inverse_dynamics
from torsor.dynamics.trees.tree import Tree

# The error e of an integrator is 1e-5 at most. Newton's first step leaves about e^2, and the second, with the same
# matrix, about e^3.
CORRECTIONS = 2
# Residual of closure, relative to the size of the mechanism, up to which loops count as closed.
CLOSED = 1e-10
# A margin above this does not vanish within one step of a reasonable length.
NEAR = 0.1


class _WithMultipliers:
    """A mechanism at positions q with the chosen rows of A: factors of the equations with multipliers.

    If active coordinates are chosen, their rows follow.
    """

    def __init__(self, tree: Tree, q: ca.SX, choice: ClosureChoice):
        self.rows, self.closures = list(choice.rows), Closures(tree, q)
        self.A = self.closures.A[self.rows, :]
        if choice.active:
            self.A = ca.vertcat(self.A, ca.SX.eye(tree.nv)[list(choice.active), :])
        self.mass = Squares(mass_matrix(tree, q), list(reversed(range(tree.nv))))  # from the tips to the root
        self.Z = ca.vertcat(ca.SX(0, self.A.size1()), *self.mass.forth(self.A[:, self.mass.order].T))
        self.r = 1 / self.mass.D
        self.factors = Squares(symmetric(self.Z.T @ (ca.diag(self.r) @ self.Z)))
        # The part of each row that is independent of those before it, relative to its size at a regular configuration.
        independent = self.factors.D / ca.SX(list(choice.scales)) if choice.scales else ca.SX.ones(1, 1)
        self.margin = ca.sqrt(ca.fmax(0, ca.mmin(independent)))

    def project(self, x: ca.SX, rate: ca.SX) -> ca.SX:
        """Return the vector nearest to x (nv x 1), in the norm of M, with A times it equal to A x - ``rate``.

        ``rate`` is that of the chosen equations of closure; active coordinates stay as they are.
        """
        kept = ca.SX.zeros(self.A.size1() - len(self.rows), 1)
        return x - self.spread(self.Z @ self.factors.solve(ca.vertcat(rate, kept)))

    def spread(self, u: ca.SX) -> ca.SX:
        """Return L^-T D^-1 u (nv x 1)."""
        rows = ca.vertsplit(u * self.r) if u.size1() else []
        return self.mass.placed(self.mass.back(rows, 1))

    def free(self, force: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return u = L^-1 force (nv x 1), in the order of elimination, and A M^-1 force: rates without multipliers."""
        u = ca.vertcat(ca.SX(0, 1), *self.mass.forth(force[self.mass.order, :]))
        return u, self.Z.T @ (u * self.r)

    def result(self, value: ca.SX, margin: bool) -> ca.SX:
        """Return a result, with the margin below it if asked for: one function then has both."""
        return ca.vertcat(value, self.margin) if margin else value

    def accelerations(
        self,
        tree: Tree,
        q: ca.SX,
        v: ca.SX,
        tau: ca.SX,
        external: Load,
        rate: float | ca.SX = 0.0,
        a_active: ca.SX | None = None,
    ) -> tuple[ca.SX, ca.SX]:
        """Return a (nv x 1) and minus the multipliers of the chosen rows; those of active coordinates follow."""
        u, free = self.free(tau - inverse_dynamics(tree, q, v, ca.SX.zeros(tree.nv, 1), external))
        drift, A = self.closures.drift(v)[self.rows], self.A[: len(self.rows), :]
        if isinstance(rate, ca.SX) or rate:
            drift += 2 * rate * (A @ v) + rate**2 * closure_error(tree, q)[self.rows]
        known = drift if a_active is None else ca.vertcat(drift, -a_active)
        minus_lambda = self.factors.solve(free + known)
        return self.spread(u - self.Z @ minus_lambda), minus_lambda


def closed_forward_dynamics(
    tree: Tree,
    q: ca.SX,
    v: ca.SX,
    tau: ca.SX,
    choice: ClosureChoice,
    external: Load = None,
    rate: float | ca.SX = 0.0,
    margin: bool = False,
    a_active: ca.SX | None = None,
) -> ca.SX:
    """Return a (nv x 1) of all coordinates with closed loops; ``rate`` (1/s) is that of Baumgarte stabilisation.

    Active coordinates, if there are any in the choice, have given accelerations ``a_active``.
    """
    system = _WithMultipliers(tree, q, choice)
    return system.result(system.accelerations(tree, q, v, tau, external, rate, a_active)[0], margin)


def closed_inverse_dynamics(
    tree: Tree,
    q: ca.SX,
    v: ca.SX,
    a_active: ca.SX,
    choice: ClosureChoice,
    external: Load = None,
    margin: bool = False,
) -> ca.SX:
    """Return the forces (N x 1) of the active coordinates that give them a_active; all others are free of force."""
    system = _WithMultipliers(tree, q, choice)
    _, loose = system.free(-inverse_dynamics(tree, q, v, ca.SX.zeros(tree.nv, 1), external))
    missing = ca.vertcat(-system.closures.drift(v)[system.rows], a_active) - loose
    return system.result(system.factors.solve(missing)[len(system.rows) :], margin)


def closed_loop_forces(
    tree: Tree, q: ca.SX, v: ca.SX, tau: ca.SX, choice: ClosureChoice, external: Load = None, margin: bool = False
) -> ca.SX:
    """Return lambda (c x 1) of M a + h = tau + A^T lambda for all equations of closure, 0 for redundant ones."""
    system = _WithMultipliers(tree, q, choice)
    found = ca.SX(system.closures.A.size1(), 1)
    found[list(choice.rows)] = -system.accelerations(tree, q, v, tau, external)[1]
    return system.result(found, margin)


def closed_velocities(tree: Tree, q: ca.SX, v: ca.SX, choice: ClosureChoice, margin: bool = False) -> ca.SX:
    """Return the velocities with A v = 0 that are nearest to v (nv x 1) in the norm of the mass matrix."""
    system = _WithMultipliers(tree, q, choice)
    return system.result(system.project(v, system.A @ v), margin)


def closure_margin(tree: Tree, q: ca.SX, choice: ClosureChoice) -> ca.SX:
    """Return the distance of the chosen equations from dependence: the least part of a row independent of those before.

    Lengths are in the norm of M^-1 and relative to those at a regular configuration, so that units do not matter.
    """
    return _WithMultipliers(tree, q, choice).margin


def closed_state(tree: Tree, q: ca.SX, v: ca.SX, choice: ClosureChoice) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Return the nearest (q, v) with closed loops, and the margin; v is NaN where the loops could not be closed."""
    return _closed_state(tree, q, v, choice)[:3]


def _closed_state(tree: Tree, q: ca.SX, v: ca.SX, choice: ClosureChoice) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
    """Return the same, and the rate of closure that is left, relative to the velocities."""
    system = _WithMultipliers(tree, q, choice)
    still = ca.SX.zeros(tree.nv, 1)
    for _ in range(CORRECTIONS):
        q = chart(tree, q, system.project(still, closure_error(tree, q)[system.rows]))
    A = Closures(tree, q).A[system.rows, :]
    for _ in range(CORRECTIONS):
        v = system.project(v, A @ v)
    gap = ca.norm_2(ca.vertcat(ca.SX.zeros(1, 1), closure_error(tree, q) / ca.SX(choice.units)))
    units = ca.SX([choice.units[k] for k in system.rows])
    rate = ca.norm_2(ca.vertcat(ca.SX.zeros(1, 1), A @ v / units)) / ca.fmax(1, ca.norm_2(v))
    return q, ca.if_else(gap <= CLOSED, v, ca.SX.nan(tree.nv, 1)), system.margin, rate


def projected_end(
    tree: Tree, q: ca.SX, q_next: ca.SX, v_next: ca.SX, choice: ClosureChoice
) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Return the state (q, v) at the end of a step from q, projected onto closed loops, and its margin.

    The margin is negative where, at the rate of this step, it vanishes within the next. As positions that could not be
    closed, velocities that open loops, or let wheels slip, become NaN: the step was too long.
    """
    before = closure_margin(tree, q, choice)
    q_next, v_next, after, rate = _closed_state(tree, q_next, v_next, choice)
    v_next = ca.if_else(rate <= CLOSED, v_next, ca.SX.nan(tree.nv, 1))
    vanishes = ca.logic_and(2 * after <= before, after < NEAR)
    return q_next, v_next, ca.if_else(vanishes, -after, after)
