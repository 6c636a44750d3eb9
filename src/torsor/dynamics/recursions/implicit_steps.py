"""One step of the implicit midpoint rule on the configuration group: symplectic, of order 2, stable for any stiffness.

The step moves the positions q to chart(q, h w), with a mean rate w of the local coordinates. Its discrete action is h
times the Lagrangian L at the midpoint u = h w / 2, where the velocity is v(u, w). Let mu = M v be the momentum at the
midpoint, and Q = dL/dq + F all forces there, including forces F that are not part of L. Varying both ends of each step
(Marsden and West 2001; on groups, Kobilarov and Marsden 2011) gives

    e = v_w^T (mu + h/2 Q) + h/2 v_u^T mu
    mu1 = B(h w)^T e                                     the momentum at the end
    mu0 = C(h w)^T mu1 - h C(u)^T Q                      the momentum at the start, which is solved for w

where B(u) maps velocities to rates of u (``chart_rate``), and C(u) transforms a velocity at the start to the point u
(``chart_carry``). If Q is zero, both momenta are the same vector in different frames, so every step conserves the
momentum of a floating robot up to rounding. Newton's method solves for w with the matrix M + h^2/4 K + h/2 D, where K
and D are the Jacobians of springs, dampers and friction. The linear equations are solved by the elimination of
``hybrid``. If other forces depend on the state, their Jacobians are included and the matrix is dense. If Newton's
method does not converge, the velocities are NaN.

Loops exert impulses along A^T at both ends of the step. At the start, the multipliers are such that the loops are
closed at the end, phi(q1) = 0; at the end, they are such that A v = 0 (RATTLE, Andersen 1983, applied to the midpoint
rule). This scheme is also variational, so energy does not drift. The velocity equations of wheels, A v = 0, are
satisfied at the midpoint instead, also with impulses at both ends (the discrete Lagrange-d'Alembert principle, Cortes
and Martinez 2001).
"""

import math
from collections.abc import Callable
from functools import partial

import casadi as ca

from torsor.dynamics.loops.closure import closure_error, closure_jacobian, velocity_rows
from torsor.dynamics.loops.constrained import CLOSURE_TOLERANCE, ClosureChoice
from torsor.dynamics.loops.factors import Columns
from torsor.dynamics.recursions.composite import mass_matrix
from torsor.dynamics.recursions.configuration import chart, chart_carry, chart_rate, chart_velocity
from torsor.dynamics.recursions.elimination import Elimination, Stiffness
from torsor.dynamics.recursions.kinematics import moves
from torsor.dynamics.recursions.momentum import gravity_energy, kinetic_energy
from torsor.dynamics.recursions.newton_euler import inertial_force, inverse_dynamics, load_force
from torsor.dynamics.recursions.passive import friction_force, passive_jacobians, spring_force
from torsor.dynamics.trees.tree import Tree

Forces = Callable[[ca.SX, ca.SX], tuple[ca.SX, ca.SX | None]]

# Each iteration reduces the error by a factor of about the relative change of the mass matrix within a step.
# Steep friction needs more iterations: first with secants from rest (chords), which always converge, then tangents.
EVALUATIONS, EVALUATIONS_WITH_FRICTION, CHORDS = 7, 16, 8
# Largest residual of the equations, relative to momenta and impulses.
RESIDUAL_TOLERANCE = 1e-6


def midpoint_step(
    tree: Tree, q: ca.SX, v: ca.SX, h: ca.SX, forces: Forces, choice: ClosureChoice | None = None
) -> tuple[ca.SX, ca.SX]:
    """Return (q, v) after a step of length h (s); ``forces`` returns tau and external wrenches at the midpoint.

    If ``choice`` is given, the loops are closed at q, and v must be projected by ``closed_state``.
    """
    if not tree.nv:
        return q, v
    mu0 = inertial_force(tree, q, v)
    near = chart(tree, q, h / 2 * v)
    # (q, v) -> dL/dq at constant v, along the local coordinates s about q; springs belong to F.
    q_s, v_s, s = ca.SX.sym("q", tree.nq), ca.SX.sym("v", tree.nv), ca.SX.sym("s", tree.nv)
    moved = chart(tree, q_s, s)
    L = kinetic_energy(tree, moved, v_s) - gravity_energy(tree, moved)
    L_by_q = ca.substitute(ca.gradient(L, s), s, ca.SX.zeros(tree.nv, 1))
    lagrangian_force = ca.Function("lagrangian_force", [q_s, v_s], [L_by_q])
    with_friction = {k for passive in tree.passives if passive.coulomb or passive.model for k in passive.v}
    evaluations = EVALUATIONS_WITH_FRICTION if with_friction else EVALUATIONS
    outer = outer_jacobians(tree, near, v, forces)
    # Friction is concave in the speed: Newton's method converges from rest, and may overshoot from higher speeds.
    w = ca.vertcat(*(ca.SX(0) if k in with_friction else v[k] for k in range(tree.nv)))
    mu1, residual, scale = mu0, mu0, mu0
    loops = None if choice is None else _Loops(tree, q, v, h, choice)
    for k in range(evaluations):
        u = h / 2 * w
        q_mid, v_mid = chart(tree, q, u), chart_velocity(tree, u, w)
        tau, external = forces(q_mid, v_mid)
        Q = lagrangian_force(q_mid, v_mid) + tau - spring_force(tree, q_mid) - friction_force(tree, v_mid)
        if external is not None:
            Q = Q + load_force(tree, q_mid, external)
        mu1, start = _ends(tree, w, h, inertial_force(tree, q_mid, v_mid), Q)
        residual, scale = mu0 - start, ca.norm_1(mu0) + ca.norm_1(start) + ca.fabs(h) * ca.norm_1(Q)
        if loops is not None:
            residual = residual + loops.A_T @ loops.multipliers  # impulse at the start
        if k < evaluations - 1:
            passive_terms = passive_jacobians(tree, q_mid, v_mid, chord=k < CHORDS)
            solve = newton_solver(tree, near, passive_terms, outer, h / 2)
            change = solve(residual)
            w = w + (change if loops is None else loops.closing(w, change, solve))
    q_end = chart(tree, q, h * w)
    v_end = _solve(tree, q_end, mu1, {})
    converged = ca.norm_1(residual) <= RESIDUAL_TOLERANCE * scale
    if loops is not None:
        converged = ca.logic_and(converged, ca.norm_inf(loops.error(w)) <= CLOSURE_TOLERANCE)
    return q_end, ca.if_else(converged, v_end, ca.SX.nan(tree.nv, 1))


def newton_solver(
    tree: Tree,
    q: ca.SX,
    passive_terms: dict[tuple[int, int], tuple[ca.SX, ca.SX]],
    outer: tuple[ca.SX, ca.SX] | None,
    h: ca.SX,
) -> Callable[[ca.SX], ca.SX]:
    """Return the function that solves (M + h^2 K + h D) x = residual, with M at q.

    ``passive_terms`` are the entries of K and D due to springs and friction (``passive_jacobians``), and ``outer`` are
    the Jacobians of other forces (``outer_jacobians``). If ``outer`` is None, the elimination of ``hybrid`` is used.
    """
    stiffness = {key: h**2 * K + h * D for key, (K, D) in passive_terms.items()}
    if outer is None:
        return partial(_solve, tree, q, stiffness=stiffness)
    A = mass_matrix(tree, q) + h**2 * outer[0] + h * outer[1]
    for (i, j), value in stiffness.items():
        for row, column in {(i, j), (j, i)}:
            A[row, column] += value
    return lambda residual: ca.solve(A, residual)


class _Loops:
    """The loops in the equations of the step: an impulse at the start that closes the loops at the end."""

    def __init__(self, tree: Tree, q: ca.SX, v: ca.SX, h: ca.SX, choice: ClosureChoice):
        self.tree, self.q, self.h, self.rows = tree, q, h, list(choice.rows)
        self.A_T = closure_jacobian(tree, q)[self.rows, :].T
        self.multipliers = ca.SX.zeros(len(self.rows), 1)
        self._velocities = velocity_rows(tree)
        w = ca.SX.sym("w", tree.nv)
        by_w = ca.jacobian(self.error(w), w)
        self.jacobian = ca.substitute(by_w, w, v)  # derivative of the error at the predicted end

    def error(self, w: ca.SX) -> ca.SX:
        """Return the closure error after a step with the mean rate w, and the slip of wheels at its midpoint."""
        error = closure_error(self.tree, chart(self.tree, self.q, self.h * w))
        if self._velocities:
            u = self.h / 2 * w
            A, v = closure_jacobian(self.tree, chart(self.tree, self.q, u)), chart_velocity(self.tree, u, w)
            error[self._velocities] = self.h * (A[self._velocities, :] @ v)
        return error[self.rows]

    def closing(self, w: ca.SX, change: ca.SX, solve: Callable[[ca.SX], ca.SX]) -> ca.SX:
        """Return ``change`` (of w) corrected so that the loops close, and update the multipliers."""
        X = ca.horzcat(*(solve(column) for column in ca.horzsplit(self.A_T)))
        more = -Columns(self.jacobian @ X).solve(self.error(w) + self.jacobian @ change)
        self.multipliers = self.multipliers + more
        return change + X @ more


def outer_jacobians(tree: Tree, q: ca.SX, v: ca.SX, forces: Forces) -> tuple[ca.SX, ca.SX] | None:
    """Return the negative derivatives of tau and external wrenches with respect to q and v; None if all are zero."""
    here, s, x = ca.SX.sym("q", tree.nq), ca.SX.sym("s", tree.nv), ca.SX.sym("x", tree.nv)
    moved = chart(tree, here, s)
    tau, external = forces(moved, x)
    F = tau if external is None else tau + load_force(tree, moved, external)
    result = ca.jacobian(F, s), ca.jacobian(F, x)
    if not any(item.nnz() for item in result):
        return None
    at = ca.vertcat(here, s, x), ca.vertcat(q, ca.SX.zeros(tree.nv, 1), v)
    K, D = (ca.substitute(-ca.densify(item), *at) for item in result)
    return K, D


def _ends(tree: Tree, w: ca.SX, h: ca.SX, mu: ca.SX, Q: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return the momenta at the end and at the start of a step with the mean rate w."""
    u, rate, x = (ca.SX.sym(name, tree.nv) for name in ("u", "rate", "x"))
    velocity, turned, carried = chart_velocity(tree, u, rate), chart_rate(tree, u, x), chart_carry(tree, u, x)
    by_rate, by_u = ca.jacobian(velocity, rate), ca.jacobian(velocity, u)
    v_w, v_u = (ca.substitute(item, ca.vertcat(u, rate), ca.vertcat(h / 2 * w, w)) for item in (by_rate, by_u))
    B, C = ca.jacobian(turned, x), ca.jacobian(carried, x)
    e = v_w.T @ (mu + h / 2 * Q) + h / 2 * (v_u.T @ mu)
    mu1 = ca.substitute(B, u, h * w).T @ e
    return mu1, ca.substitute(C, u, h * w).T @ mu1 - h * (ca.substitute(C, u, h / 2 * w).T @ Q)


def _solve(tree: Tree, q: ca.SX, residual: ca.SX, stiffness: Stiffness) -> ca.SX:
    """Return x with (M + stiffness) x = residual, in O(n); ``stiffness`` has entries (i, j), i <= j."""
    rows = dict(enumerate(ca.vertsplit(residual)))
    result, _ = Elimination(tree, moves(tree, q), rows.keys(), stiffness, {}).solve(rows, {})
    return ca.vertcat(*(result[k] for k in range(tree.nv)))


# One step of a diagonally implicit Runge-Kutta method of order 2 that is L-stable: stiff motion is damped.
#
# Both stages have the same diagonal coefficient g = 1 - 1/sqrt(2), and the second stage is the end of the step
# (Alexander 1977):
#
#      g  |  g
#      1  |  1 - g   g
#
# With local coordinates u about the positions q at the start of the step (``chart``), a stage at u, v has the rates
# u' = chart_rate(u, v) and v' = k. Its acceleration k is found by Newton's method from the equation of motion
#
#     tau - inverse_dynamics(chart(q, u), v, k) = 0,    u = u0 + h g u',    v = v0 + h g k
#
# with the matrix M + (h g)^2 K + h g D, as for the midpoint rule. The amplification of a mode with an infinite
# eigenvalue is 0 instead of -1, so a stiff damped spring comes to rest within a few steps. However, energy is not
# conserved: undamped oscillations that the step does not resolve are also damped.

GAMMA = 1 - 1 / math.sqrt(2)


def sdirk_step(tree: Tree, q: ca.SX, v: ca.SX, h: ca.SX, forces: tuple[Forces, Forces]) -> tuple[ca.SX, ca.SX]:
    """Return (q, v) after a step of length h (s); v is NaN if Newton's method does not converge.

    ``forces`` are two functions that return tau and external wrenches at the two stages, g h and h after the start.
    """
    if not tree.nv:
        return q, v
    zero = ca.SX.zeros(tree.nv, 1)
    u, rate, k, first = _stage(tree, q, (zero, v), h, forces[0])
    begin = (1 - GAMMA) * h * rate, v + (1 - GAMMA) * h * k
    u, _, k, second = _stage(tree, q, begin, h, forces[1])
    v_next = begin[1] + GAMMA * h * k
    return chart(tree, q, u), ca.if_else(ca.logic_and(first, second), v_next, ca.SX.nan(tree.nv, 1))


def _stage(
    tree: Tree, q: ca.SX, begin: tuple[ca.SX, ca.SX], h: ca.SX, forces: Forces
) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
    """Return u, u' and v' of a stage that begins at (u0, v0), and whether its equations were solved."""
    (u0, v0), g = begin, GAMMA * h
    with_friction = {k for item in tree.passives if item.coulomb or item.model for k in item.v}
    evaluations = EVALUATIONS_WITH_FRICTION if with_friction else EVALUATIONS
    near = chart(tree, q, u0)
    outer = outer_jacobians(tree, near, v0, forces)
    # Friction is concave in the speed: Newton's method converges from rest, and may overshoot from higher speeds.
    k = ca.vertcat(*(-v0[i] / g if i in with_friction else ca.SX(0) for i in range(tree.nv)))
    u, residual, scale = u0, v0, v0
    for count in range(evaluations):
        v = v0 + g * k
        u = u0 + g * chart_rate(tree, u, v)
        here = chart(tree, q, u)
        tau, external = forces(here, v)
        residual = tau - inverse_dynamics(tree, here, v, k, external)
        if count < evaluations - 1:
            passive_terms = passive_jacobians(tree, here, v, chord=count < CHORDS)
            k = k + newton_solver(tree, near, passive_terms, outer, g)(residual)
            continue
        momenta = ca.norm_1(inertial_force(tree, here, v0)) + ca.norm_1(inertial_force(tree, here, v))
        passive = ca.norm_1(spring_force(tree, here)) + ca.norm_1(friction_force(tree, v))
        scale = ca.norm_1(tau) + ca.norm_1(inertial_force(tree, here, k)) + passive + momenta / ca.fabs(h)
    return u, chart_rate(tree, u, v0 + g * k), k, ca.norm_1(residual) <= RESIDUAL_TOLERANCE * scale
