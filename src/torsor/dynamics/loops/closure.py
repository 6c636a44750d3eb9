"""The equations of loop closure: residual, Jacobian, and the velocity terms of the second derivative (drift).

For each loop the pose of frame b relative to frame a follows from the joints between them, up to their common ancestor;
the kind of the loop determines which of its entries are zero (``mechanism.loops``). With phi(q) = 0 for closed loops,

    phi' = A(q) v        phi'' = A(q) a + drift(q, v)

Khalil 2010, section 2.2, eqs. 3-5; here with the smallest number of equations for each kind of cut joint.
"""

from collections.abc import Iterator
from functools import cached_property

import casadi as ca

from torsor.dynamics.loops.relative import Chain, RateDerivatives
from torsor.dynamics.recursions.configuration import steps
from torsor.dynamics.recursions.kinematics import moves
from torsor.dynamics.trees.tree import Cut, Relation, Tree


def closure_error(tree: Tree, q: ca.SX) -> ca.SX:
    """Return phi (c x 1): lengths in m, angles as 2 sin(angle/2), couplings in units of their coordinates."""
    moved = moves(tree, q)
    rows = [ca.SX.zeros(0, 1)]
    for closure in tree.closures:
        if isinstance(closure, Relation):
            rows.append(sum((c * q[k] for k, c in closure.coefficients), start=ca.SX(-closure.offset)))
        else:
            rows.append(closure.loop.error(*Chain(tree, moved, closure).pose))
    return ca.vertcat(*rows)


class Closures:
    """The equations of closure at positions q: their Jacobian, second derivative in time, and derivatives of these.

    They are valid where the loops are closed; with ``exact``, the Jacobian is that of ``closure_error`` everywhere.
    """

    def __init__(self, tree: Tree, q: ca.SX, exact: bool = False):
        moved = moves(tree, q)
        self._parts: list[Chain | ca.SX] = [  # for a coupling, its row of A
            Chain(tree, moved, each, exact) if isinstance(each, Cut) else _relation(tree, q, each)
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
        rows = (each.jacobian() if isinstance(each, Chain) else each for each in self._parts)
        return ca.vertcat(ca.SX(0, self._nv), *rows)

    def drift(self, v: ca.SX) -> ca.SX:
        """Return phi'' for zero acceleration (c x 1)."""
        parts = (each.second(v) if isinstance(each, Chain) else ca.SX(1, 1) for each in self._parts)
        return ca.vertcat(ca.SX(0, 1), *parts)

    def rate_derivatives(self, v: ca.SX, a: ca.SX) -> RateDerivatives:
        """Return the derivatives of phi' with respect to q, and of phi'' with respect to q and v (c x nv each)."""
        start, none = ([ca.SX(rows, self._nv)] * 3 for rows in (0, 1))
        parts = [
            each.rate_derivatives(v, a) if isinstance(each, Chain) else RateDerivatives(*none) for each in self._parts
        ]
        return RateDerivatives(*(ca.vertcat(*kind) for kind in zip(start, *parts, strict=True)))

    def stiffness(self, forces: ca.SX) -> ca.SX:
        """Return the derivative of A^T forces with respect to q (nv x nv), for constant forces (c x 1)."""
        parts = (each.stiffness(force) for each, force in self._cut(forces))
        return sum(parts, start=ca.SX(self._nv, self._nv))

    def wrenches(self, forces: ca.SX) -> list[ca.SX]:
        """Return the wrench (6 x 1) of a on b in each cut joint, at frame a in its axes."""
        return [each.wrench(force) for each, force in self._cut(forces)]

    def wrench_changes(self, forces: ca.SX, dq: ca.SX, changes: ca.SX) -> list[ca.SX]:
        """Return the changes (6 x k each) of these wrenches for steps dq (nv x k) and changes of the forces (c x k)."""
        parts = zip(self._cut(forces), self._cut(changes), strict=True)
        return [each.wrench_changes(force, dq, change) for (each, force), (_, change) in parts]

    def _cut(self, forces: ca.SX) -> Iterator[tuple[Chain, ca.SX]]:
        """Yield each chain with its rows of the forces; cut joints come first."""
        first = 0
        for chain in self.chains:
            yield chain, forces[first : first + chain.count, :]
            first += chain.count


def _relation(tree: Tree, q: ca.SX, relation: Relation) -> ca.SX:
    """Return the row (1 x nv) of a coupling."""
    row = ca.SX(1, tree.nq)
    for k, c in relation.coefficients:
        row[0, k] = c
    return row @ steps(tree, q)


def closure_jacobian(tree: Tree, q: ca.SX) -> ca.SX:
    """Return A (c x nv) with phi' = A v."""
    return Closures(tree, q, exact=True).A
