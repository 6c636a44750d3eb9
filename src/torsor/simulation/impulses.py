"""The impulses of hard contact: Coulomb's cone, by one factorisation and sweeps of projected Gauss-Seidel."""

from typing import NamedTuple

import casadi as ca

from torsor.simulation.contact import Contact
from torsor.simulation.mobility import Mobility, Sticking

# Relative to its diagonal, what makes G regular in the first guess: points may be more than the motion can tell apart.
_REGULAR = 1e-6
# Relative to the diagonal of G, the compliance in the first guess of a point that does not touch.
_AWAY = 1e9
# 1/kg: that of a point that cannot move in some direction. Also keeps derivatives of square roots finite at zero.
_IMMOBILE = 1e-12


class Impulses(NamedTuple):
    """Impulses (3 K x 1) at K points: of the step, and ``held``, which cancel given velocities where shapes touch."""

    found: ca.SX
    held: ca.SX


def impulses(contact: Contact, mobility: Mobility, free: ca.SX, distance: ca.SX, given: ca.SX, h: ca.SX) -> Impulses:
    """Return the impulses of a step of length h, and those that cancel the velocities ``given`` of points that touch.

    ``free`` (3 K x 1) are the velocities of the points without impulses, normal and two tangents each, ``distance``
    (K x 1) what h times the normal velocity at the end is added to.
    """
    count, mu, spring = distance.numel(), contact.friction, contact.stiffness * h * (h + contact.relaxation)
    blocks = [mobility.block(3 * k) for k in range(count)]
    wanted, added = ca.SX(free), ca.SX.zeros(3 * count, 1)
    wanted[::3] += distance / ca.if_else(distance > 0, h, h + contact.relaxation)
    touching = distance + h * free[::3] < 0
    stuck = ca.DM([_REGULAR] + 2 * [_REGULAR if mu else _AWAY])
    for k in range(count):
        added[3 * k : 3 * k + 3] = ca.if_else(touching[k], stuck, _AWAY) * (ca.diag(blocks[k]) + _IMMOBILE)
    sticking = Sticking(mobility, added)
    held = -sticking.solve(given)
    left = mobility.read @ (mobility.write @ held) + given
    held -= sticking.solve(left)  # what rests shall not move by what makes G regular
    added[::3] += 1 / spring
    guess = -Sticking(mobility, added).solve(wanted)
    return Impulses(_swept(contact, mobility, blocks, wanted, ca.vertsplit(guess), 1 / spring), held)


def _swept(
    contact: Contact, mobility: Mobility, blocks: list[ca.SX], wanted: ca.SX, p: list[ca.SX], soft: ca.SX
) -> ca.SX:
    """Return the impulses after sweeps of projected Gauss-Seidel that begin with p.

    The state of the points is kept up to date with every impulse, so that one waits only for the one before it.
    """
    mu, points = contact.friction, range(0, len(p), 3)
    for n in points:
        p[n] = ca.fmax(p[n], 0)
        p[n + 1 : n + 3] = _on_disc(p[n + 1], p[n + 2], mu * p[n])
    read, write = mobility.read, mobility.write
    state = write @ ca.vertcat(*p)
    rates = [1 / (G[0, 0] + soft) for G in blocks]
    slower = [_inverse_of_largest(G[1, 1], G[1, 2], G[2, 2]) for G in blocks]
    for _ in range(contact.sweeps):
        for n, rate, slow in zip(points, rates, slower, strict=True):
            a, b = n + 1, n + 2
            pushed = ca.fmax(p[n] - rate * (read[n, :] @ state + wanted[n] + soft * p[n]), 0)
            state, p[n] = state + write[:, n] * (pushed - p[n]), pushed
            if mu:
                x, y = (p[i] - slow * (read[i, :] @ state + wanted[i]) for i in (a, b))
                x, y = _on_disc(x, y, mu * p[n])
                state, p[a], p[b] = state + write[:, a] * (x - p[a]) + write[:, b] * (y - p[b]), x, y
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
