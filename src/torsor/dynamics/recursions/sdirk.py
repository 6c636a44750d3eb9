"""One step of a diagonally implicit Runge-Kutta method of order 2 that is L-stable: stiff motion is damped.

Both stages have the same coefficient g = 1 - 1/sqrt(2) on the diagonal, and the second one is the end of the step
(Alexander 1977):

     g  |  g
     1  |  1 - g   g

With local coordinates u about the positions q at the start of the step (``chart``), a stage at u, v has the rates
u' = chart_rate(u, v) and v' = k. Its acceleration k is found by Newton's method from the equation of motion

    tau - inverse_dynamics(chart(q, u), v, k) = 0,    u = u0 + h g u',    v = v0 + h g k

with the matrix M + (h g)^2 K + h g D of ``midpoint``. The amplification of a mode with an infinite eigenvalue is 0,
where that of the midpoint rule is -1: a stiff damped spring comes to rest within a few steps. In return energy is not
conserved: undamped oscillations that the step does not resolve are damped too.
"""

import math

import casadi as ca

from torsor.dynamics.recursions.configuration import chart, chart_rate
from torsor.dynamics.recursions.midpoint import (
    CHORDS,
    CONVERGED,
    EVALUATIONS,
    EVALUATIONS_WITH_FRICTION,
    Forces,
    newton_solver,
    outer_jacobians,
)
from torsor.dynamics.recursions.newton_euler import inertial_force, inverse_dynamics
from torsor.dynamics.recursions.passive import friction_force, passive_jacobians, spring_force
from torsor.dynamics.trees.tree import Tree

GAMMA = 1 - 1 / math.sqrt(2)


def sdirk_step(tree: Tree, q: ca.SX, v: ca.SX, h: ca.SX, forces: tuple[Forces, Forces]) -> tuple[ca.SX, ca.SX]:
    """Return (q, v) after a step of length h (s).

    ``forces`` give tau and the external wrenches at the times of the two stages, g h and h after the start. If Newton's
    method does not converge, the velocities are NaN.
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
    """Return u, u' and v' of a stage that begins at (u0, v0), and whether its equations are solved."""
    (u0, v0), g = begin, GAMMA * h
    with_friction = {k for each in tree.passives if each.coulomb for k in each.v}
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
            own = passive_jacobians(tree, here, v, chord=count < CHORDS)
            k = k + newton_solver(tree, near, own, outer, g)(residual)
            continue
        momenta = ca.norm_1(inertial_force(tree, here, v0)) + ca.norm_1(inertial_force(tree, here, v))
        passive = ca.norm_1(spring_force(tree, here)) + ca.norm_1(friction_force(tree, v))
        scale = ca.norm_1(tau) + ca.norm_1(inertial_force(tree, here, k)) + passive + momenta / ca.fabs(h)
    return u, chart_rate(tree, u, v0 + g * k), k, ca.norm_1(residual) <= CONVERGED * scale
