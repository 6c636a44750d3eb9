"""The equations of loop closure: residual, Jacobian, and the velocity terms of the second derivative (drift).

For each loop the pose of frame b relative to frame a follows from the joints between them, up to their common ancestor;
the kind of the loop determines which of its entries are zero (``mechanism.loops``). With phi(q) = 0 for closed loops,

    phi' = A(q) v        phi'' = A(q) a + drift(q, v)

Wheels also have equations of velocities alone, A(q) v = 0, which are no derivative of any phi(q)
(``mechanism.wheels``): their rows of A and drift are as above, and those of phi are 0.

Khalil 2010, section 2.2, eqs. 3-5; here with the smallest number of equations for each kind of cut joint.
"""

from collections.abc import Iterator
from functools import cached_property

import casadi as ca

from torsor.dynamics.loops.coupled import Coupled
from torsor.dynamics.loops.relative import Chain, RateDerivatives
from torsor.dynamics.recursions.kinematics import moves
from torsor.dynamics.trees.tree import Cut, Relation, Tree


def closure_error(tree: Tree, q: ca.SX) -> ca.SX:
    """Return phi (c x 1): lengths in m, angles as 2 sin(angle/2), couplings in units of their coordinates."""
    moved = moves(tree, q)
    rows = [ca.SX.zeros(0, 1)]
    for closure in tree.closures:
        if isinstance(closure, Relation):
            rows.append(Coupled(tree, q, closure).error)
        else:
            rows.append(closure.loop.error(*Chain(tree, moved, closure).pose))
    return ca.vertcat(*rows)


def velocity_rows(tree: Tree) -> list[int]:
    """Return the equations without a position level: the slips of wheels, whose closure error is always 0."""
    found, first = list[int](), 0
    for closure in tree.closures:
        count, positions = (1, 1) if isinstance(closure, Relation) else (closure.loop.count, closure.loop.positions)
        found += range(first + positions, first + count)
        first += count
    return found


class Closures:
    """The equations of closure at positions q: their Jacobian, second derivative in time, and derivatives of these.

    They are valid where the loops are closed; with ``exact``, the Jacobian is that of ``closure_error`` everywhere.
    """

    def __init__(self, tree: Tree, q: ca.SX, exact: bool = False):
        moved = moves(tree, q)
        self._parts: list[Chain | Coupled] = [
            Chain(tree, moved, each, exact) if isinstance(each, Cut) else Coupled(tree, q, each)
            for each in tree.closures
        ]
        self._nv = tree.nv

    @property
    def chains(self) -> list[Chain]:
        """The chains of the cut joints."""
        return [each for each in self._parts if isinstance(each, Chain)]

    @cached_property
    def A(self) -> ca.SX:
        """The Jacobian (c x nv)."""
        return ca.vertcat(ca.SX(0, self._nv), *(each.jacobian() for each in self._parts))

    def drift(self, v: ca.SX) -> ca.SX:
        """Return phi'' for zero acceleration (c x 1)."""
        return ca.vertcat(ca.SX(0, 1), *(each.second(v) for each in self._parts))

    def rate_derivatives(self, v: ca.SX, a: ca.SX) -> RateDerivatives:
        """Return the derivatives of phi' with respect to q, and of phi'' with respect to q and v (c x nv each)."""
        start, parts = [ca.SX(0, self._nv)] * 3, (each.rate_derivatives(v, a) for each in self._parts)
        return RateDerivatives(*(ca.vertcat(*kind) for kind in zip(start, *parts, strict=True)))

    def stiffness(self, forces: ca.SX) -> ca.SX:
        """Return the derivative of A^T forces with respect to q (nv x nv), for constant forces (c x 1)."""
        parts = (each.stiffness(force) for each, force in self._shared(forces))
        return sum(parts, start=ca.SX(self._nv, self._nv))

    def wrenches(self, forces: ca.SX) -> list[ca.SX]:
        """Return the wrench (6 x 1) of a on b in each cut joint, at frame a in its axes."""
        return [each.wrench(force) for each, force in self._cut(forces)]

    def wrench_changes(self, forces: ca.SX, dq: ca.SX, changes: ca.SX) -> list[ca.SX]:
        """Return the changes (6 x k each) of these wrenches for steps dq (nv x k) and changes of the forces (c x k)."""
        parts = zip(self._cut(forces), self._cut(changes), strict=True)
        return [each.wrench_changes(force, dq, change) for (each, force), (_, change) in parts]

    def _shared(self, forces: ca.SX) -> Iterator[tuple[Chain | Coupled, ca.SX]]:
        """Yield each closure with its rows of the forces."""
        first = 0
        for each in self._parts:
            yield each, forces[first : first + each.count, :]
            first += each.count

    def _cut(self, forces: ca.SX) -> Iterator[tuple[Chain, ca.SX]]:
        """Yield each chain with its rows of the forces."""
        return ((each, force) for each, force in self._shared(forces) if isinstance(each, Chain))


def closure_jacobian(tree: Tree, q: ca.SX) -> ca.SX:
    """Return A (c x nv) with phi' = A v."""
    return Closures(tree, q, exact=True).A


def closure_rate(tree: Tree, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return A v (c x 1): the rates of phi, and the slips of wheels."""
    return closure_jacobian(tree, q) @ v
