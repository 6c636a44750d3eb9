"""Springs, dampers and friction, whose forces along the coordinates need no recursion.

Each acts along x, a linear combination of coordinates with coefficients c (the coordinate of a joint; motor minus joint
for an elastic joint), and adds c F to the forces of these coordinates. The force F is K(x) x + D x' + Fs sign(x'), or
with Fs tanh(x' / smooth) for smooth friction, plus a function of x' if the friction has a model.
"""

import operator
from collections.abc import Iterable, Iterator
from itertools import product

import casadi as ca

from torsor.dynamics.trees.tree import Passive, Tree
from torsor.mechanism.drives import energy_at, friction_at, stiffness_at


def gather(nv: int, forces: Iterable[tuple[int, ca.SX]]) -> ca.SX:
    """Return the sum (nv x 1) of generalised forces given as (coordinate, force) pairs."""
    tau: list[ca.SX] = [ca.SX.zeros(1, 1)] * nv
    for index, force in forces:
        tau[index] = tau[index] + force
    return ca.vertcat(ca.SX.zeros(0, 1), *tau)


def acts(strength: float | str | ca.SX) -> bool:
    """Return whether a stiffness, damping or friction is nonzero; inputs are treated as nonzero."""
    return isinstance(strength, ca.SX) or bool(strength)


def _along(passive: Passive, indices: tuple[int, ...], values: ca.SX) -> ca.SX:
    return sum((c * values[k] for c, k in zip(passive.c, indices, strict=True)), start=ca.SX(0))


def _deflection(passive: Passive, q: ca.SX) -> ca.SX:
    return _along(passive, passive.q, q) + passive.offset


def _onto_coordinates(tree: Tree, forces: Iterable[tuple[Passive, ca.SX]]) -> ca.SX:
    forces_by_coordinate = ((k, c * F) for passive, F in forces for c, k in zip(passive.c, passive.v, strict=True))
    return gather(tree.nv, forces_by_coordinate)


def friction_force(tree: Tree, v: ca.SX) -> ca.SX:
    """Return Fs sign(v) + D v (nv x 1), or Fs tanh(v / smooth) + D v, where D includes the dampers of springs.

    The forces of friction models are added.
    """
    rubbing = (item for item in tree.passives if acts(item.coulomb) or acts(item.damping) or item.model)
    return _onto_coordinates(tree, ((item, _friction(item, _along(item, item.v, v))) for item in rubbing))


def _friction(passive: Passive, rate: ca.SX) -> ca.SX:
    direction = ca.tanh(rate / passive.smooth) if passive.smooth else ca.sign(rate)
    linear = passive.coulomb * direction + passive.damping * rate
    return linear + friction_at(passive.model, rate, passive.smooth) if passive.model else linear


def spring_force(tree: Tree, q: ca.SX) -> ca.SX:
    """Return K(x) x of the springs for each coordinate (nv x 1), with the sign of tau in inverse dynamics.

    x is the deflection, including the offset.
    """
    springs = (passive for passive in tree.passives if acts(passive.stiffness))
    return _onto_coordinates(tree, ((spring, _spring(spring, _deflection(spring, q))) for spring in springs))


def _spring(passive: Passive, x: ca.SX) -> ca.SX:
    return ca.SX(stiffness_at(passive.stiffness, x) * x)


def _friction_slope(passive: Passive, rate: ca.SX, chord: bool) -> ca.SX:
    """Return the slope of friction with respect to its rate, along the tangent or along the chord from rest."""
    further = ca.SX(0)
    if passive.model:
        x = ca.SX.sym("x")
        force = ca.SX(friction_at(passive.model, x, passive.smooth))
        further = ca.substitute(ca.gradient(force, x), x, rate)
        if chord:  # the force of a model may decrease with the rate (Stribeck effect)
            near = ca.fabs(rate) < 1e-12
            ends = (ca.substitute(force, x, at) for at in (rate, ca.SX(0)))
            further = ca.fmax(ca.if_else(near, further, operator.sub(*ends) / ca.if_else(near, 1.0, rate)), 0)
    if not passive.smooth:
        return passive.damping + further
    s = rate / passive.smooth
    tanh = ca.tanh(s)
    near = ca.fabs(s) < 1e-4
    slope = ca.if_else(near, 1.0, tanh / ca.if_else(near, 1.0, s)) if chord else 1 - tanh**2
    return passive.damping + passive.coulomb / passive.smooth * slope + further


def passive_jacobians(
    tree: Tree, q: ca.SX, v: ca.SX, chord: bool = False
) -> dict[tuple[int, int], tuple[ca.SX, ca.SX]]:
    """Return the entries (i, j), i <= j, of the symmetric q and v derivatives of the passive forces.

    If ``chord`` is True, the slope of friction is that of the chord from rest, which is never too small.
    """
    x = ca.SX.sym("x")
    result: dict[tuple[int, int], tuple[ca.SX, ca.SX]] = {}
    for passive in tree.passives:
        deflection = _deflection(passive, q) if acts(passive.stiffness) else 0
        K = ca.substitute(ca.gradient(_spring(passive, x), x), x, deflection)
        D = _friction_slope(passive, _along(passive, passive.v, v), chord)
        for (i, j), c in _pairs(passive):
            if i <= j:
                before = result.get((i, j), (ca.SX(0), ca.SX(0)))
                result[i, j] = before[0] + c * K, before[1] + c * D
    return result


def _pairs(passive: Passive) -> Iterator[tuple[tuple[int, int], float]]:
    """Yield each pair of coordinates with the product of their coefficients."""
    for one, other in product(zip(passive.v, passive.c, strict=True), repeat=2):
        yield (one[0], other[0]), one[1] * other[1]


def passive_hessians(
    tree: Tree, q: ca.SX, v: ca.SX, weight: ca.SX
) -> Iterator[tuple[tuple[int, int], tuple[ca.SX, ca.SX]]]:
    """Yield the second derivatives (dq, dv) of weight . passive forces, as terms of symmetric matrices."""
    x = ca.SX.sym("x")
    for passive in tree.passives:
        laws = _spring(passive, x), _friction(passive, x)
        at = _deflection(passive, q) if acts(passive.stiffness) else 0, _along(passive, passive.v, v)
        along = _along(passive, passive.v, weight)
        curvature = [along * ca.substitute(ca.hessian(law, x)[0], x, here) for law, here in zip(laws, at, strict=True)]
        if not all(change.is_zero() for change in curvature):
            yield from ((pair, (c * curvature[0], c * curvature[1])) for pair, c in _pairs(passive))


def passive_force(tree: Tree, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return the part of tau that balances springs, dampers and friction (nv x 1)."""
    return spring_force(tree, q) + friction_force(tree, v)


def spring_energy(tree: Tree, q: ca.SX) -> ca.SX:
    """Return the energy (J) of the springs, which is the sum of the integrals of K(x) x."""
    springs = (passive for passive in tree.passives if acts(passive.stiffness))
    return sum((energy_at(spring.stiffness, _deflection(spring, q)) for spring in springs), start=ca.SX(0))
