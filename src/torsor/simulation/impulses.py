"""The impulses of hard contact: Coulomb's cone, by one factorisation and sweeps of projected Gauss-Seidel."""

from typing import NamedTuple

import casadi as ca

from torsor.dynamics.loops.factors import Squares
from torsor.simulation.contact import Contact

# Relative to its diagonal, what makes G regular in the first guess: points may be more than the motion can tell apart.
_REGULAR = 1e-6
# Relative to the diagonal of G, the compliance in the first guess of a point that does not touch.
_AWAY = 1e9
# 1/kg: that of a point that cannot move in some direction. Also keeps derivatives of square roots finite at zero.
_IMMOBILE = 1e-12


class Impulses(NamedTuple):
    """Impulses (3 K x 1) at K points: of the step, and those ``held`` that cancel given velocities where shapes touch."""

    found: ca.SX
    held: ca.SX


def impulses(contact: Contact, G: ca.SX, free: ca.SX, distance: ca.SX, given: ca.SX, h: ca.SX) -> Impulses:
    """Return the impulses of a step of length h, and those that cancel the velocities ``given`` of points that touch.

    ``G`` (3 K x 3 K) are the velocities of the points by their impulses, ``free`` (3 K x 1) their velocities without
    any, normal and two tangents each, ``distance`` (K x 1) what h times the normal velocity at the end is added to.
    """
    count, mu, spring = distance.numel(), contact.friction, contact.stiffness * h * (h + contact.relaxation)
    wanted, added = ca.SX(free), ca.SX.zeros(3 * count, 1)
    wanted[::3] += distance / ca.if_else(distance > 0, h, h + contact.relaxation)
    touching = distance + h * free[::3] < 0
    for k in range(count):
        own = range(3 * k, 3 * k + 3)
        size = sum((G[i, i] for i in own), start=ca.SX(_IMMOBILE))
        added[own] = ca.if_else(touching[k], ca.DM([_REGULAR] + 2 * [_REGULAR if mu else _AWAY]), _AWAY) * size
    sticking = Squares(G + ca.diag(added))
    held = -sticking.solve(given)
    held -= sticking.solve(G @ held + given)  # once more: what rests shall not move by what makes G regular
    added[::3] += 1 / spring
    guess = -Squares(G + ca.diag(added)).solve(wanted)
    return Impulses(_swept(contact, G, wanted, ca.vertsplit(guess), 1 / spring), held)


def _swept(contact: Contact, G: ca.SX, wanted: ca.SX, p: list[ca.SX], soft: ca.SX) -> ca.SX:
    """Return the impulses after sweeps of projected Gauss-Seidel that begin with p.

    The velocities are kept up to date with every impulse, so that a point waits only for the one before it.
    """
    mu, points = contact.friction, range(0, len(p), 3)
    for n in points:
        p[n] = ca.fmax(p[n], 0)
        p[n + 1 : n + 3] = _on_disc(p[n + 1], p[n + 2], mu * p[n])
    u = G @ ca.vertcat(*p) + wanted
    rate = {n: 1 / (G[n, n] + soft) for n in points}
    slow = {n: _inverse_of_largest(G[n + 1, n + 1], G[n + 1, n + 2], G[n + 2, n + 2]) for n in points}
    for _ in range(contact.sweeps):
        for n in points:
            a, b = n + 1, n + 2
            pushed = ca.fmax(p[n] - rate[n] * (u[n] + soft * p[n]), 0)
            u, p[n] = u + G[:, n] * (pushed - p[n]), pushed
            if mu:
                x, y = _on_disc(p[a] - slow[n] * u[a], p[b] - slow[n] * u[b], mu * p[n])
                u, p[a], p[b] = u + G[:, a] * (x - p[a]) + G[:, b] * (y - p[b]), x, y
    return ca.vertcat(*p)


def _inverse_of_largest(a: ca.SX, b: ca.SX, c: ca.SX) -> ca.SX:
    """Return 1 over the larger eigenvalue of the matrix [[a, b], [b, c]]."""
    return 1 / ((a + c) / 2 + ca.sqrt(((a - c) / 2) ** 2 + b**2 + _IMMOBILE**2))


def _on_disc(x: ca.SX, y: ca.SX, radius: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return the point of a disc about 0 that is nearest to (x, y)."""
    length = ca.sqrt(x**2 + y**2 + _IMMOBILE**2)
    outside = length > radius
    scale = ca.if_else(outside, radius / ca.if_else(outside, length, 1), 1)
    return scale * x, scale * y
