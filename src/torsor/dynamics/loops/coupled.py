"""The closure equation of a coupling: a sum of polynomials of coordinates, and its derivatives.

With phi = sum of p_k(q_k) - offset,

    phi' = sum of p_k' v_k        phi'' = sum of p_k' a_k + p_k'' v_k^2
"""

import casadi as ca

from torsor.dynamics.loops.relative import RateDerivatives
from torsor.dynamics.trees.tree import Relation, Tree


class Coupled:
    """The equation of a coupling at positions q, with the functions of a ``Chain``."""

    count = 1

    def __init__(self, tree: Tree, q: ca.SX, relation: Relation):
        self._nv, self._offset = tree.nv, relation.offset
        self._terms = [(q[i], j, _derivatives(c)) for i, j, c in relation.terms]

    @property
    def error(self) -> ca.SX:
        """The residual phi."""
        values = (_polynomial(powers[0], x) for x, _, powers in self._terms)
        return sum(values, start=ca.SX(-self._offset))

    def _row(self, order: int, v: ca.SX | None = None, power: int = 0) -> ca.SX:
        """Return the derivatives of this order of each polynomial, times a power of v, as a row (1 x nv)."""
        row = ca.SX(1, self._nv)
        for x, j, powers in self._terms:
            if powers[order]:
                value = _polynomial(powers[order], x)
                row[0, j] = value if v is None else value * v[j] ** power
        return row

    def jacobian(self) -> ca.SX:
        """Return the row of phi' = A v (1 x nv)."""
        return self._row(1)

    def second(self, v: ca.SX) -> ca.SX:
        """Return phi'' for zero acceleration."""
        return ca.sum2(self._row(2, v, 2))

    def rate_derivatives(self, v: ca.SX, a: ca.SX) -> RateDerivatives:
        """Return the derivatives of phi' and phi'' by positions and velocities (1 x nv each)."""
        by_q = self._row(2, a, 1) + self._row(3, v, 2)
        return RateDerivatives(self._row(2, v, 1), by_q, 2 * self._row(2, v, 1))

    def stiffness(self, force: ca.SX) -> ca.SX:
        """Return the derivative of A^T force with respect to q (nv x nv), for a constant force."""
        return ca.diag(self._row(2) * force) if any(powers[2] for _, _, powers in self._terms) else self._none

    @property
    def _none(self) -> ca.SX:
        return ca.SX(self._nv, self._nv)


def _derivatives(coefficients: tuple[float, ...]) -> list[list[float]]:
    """Return the coefficients of 1, x, x^2, ... of a polynomial without constant, and of its first three derivatives.

    Example:
        >>> _derivatives((3.0, 1.0))
        [[0.0, 3.0, 1.0], [3.0, 2.0], [2.0], []]
    """
    found = [[0.0, *coefficients]]
    for _ in range(3):
        found.append([power * c for power, c in enumerate(found[-1])][1:])
    return found


def _polynomial(coefficients: list[float], x: ca.SX) -> ca.SX:
    """Return a polynomial by Horner's rule."""
    value = ca.SX(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        value = value * x + c
    return value
