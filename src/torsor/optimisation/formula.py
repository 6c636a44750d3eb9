"""Small nonlinear programs from CasADi expressions, for tests and examples of solvers."""

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array, Indices


def _places(pattern: ca.Sparsity) -> tuple[Indices, Indices]:
    """Return rows and columns of the entries, in column-major order."""
    rows, columns = pattern.get_triplet()
    return np.array(rows, dtype=int), np.array(columns, dtype=int)


class Formula:
    """A program whose objective and rows are CasADi expressions of x (n x 1), differentiated by CasADi.

    Bounds are one number for all or one for each; infinite by default.

    Example:
        >>> circle = Formula(lambda x: x[0] + x[1], lambda x: ca.sumsqr(x), n=2, row_upper=2.0)
        >>> circle.value(np.array([1.0, 2.0]))
        (3.0, array([5.]))
    """

    def __init__(
        self,
        objective: Callable[[ca.SX], Any],
        rows: Callable[[ca.SX], Any] | None = None,
        *,
        n: int,
        lower: ArrayLike = -np.inf,
        upper: ArrayLike = np.inf,
        row_lower: ArrayLike = -np.inf,
        row_upper: ArrayLike = np.inf,
    ):
        x = ca.SX.sym("x", n)
        f, g = ca.SX(objective(x)), ca.densify(ca.SX(rows(x))) if rows else ca.SX(0, 1)
        weight, multipliers = ca.SX.sym("weight"), ca.SX.sym("multipliers", g.numel())
        jacobian, hessian = ca.jacobian(g, x), ca.hessian(weight * f + ca.dot(multipliers, g), x)[0]
        self.n, self.m = n, int(g.numel())
        self.lower, self.upper = (np.array(np.broadcast_to(each, n), dtype=float) for each in (lower, upper))
        self.row_lower, self.row_upper = (
            np.array(np.broadcast_to(each, self.m), dtype=float) for each in (row_lower, row_upper)
        )
        self.scales = np.ones(self.m)
        self._value = ca.Function("value", [x], [f, g])
        self._jacobian = ca.Function("jacobian", [x], [ca.densify(ca.gradient(f, x)), jacobian])
        self._hessian = ca.Function("hessian", [x, multipliers, weight], [ca.densify(hessian)])
        self.structure = _places(jacobian.sparsity())
        self.hessian_structure = _places(ca.triu(hessian.sparsity()))

    def value(self, x: Array) -> tuple[float, Array]:
        """Return f and the rows (m,)."""
        f, g = self._value(x)
        return float(f), g.full().ravel()

    def jacobian(self, x: Array) -> tuple[Array, Array]:
        """Return the gradient (n,) of f, and the entries of the rows' Jacobian."""
        gradient, jacobian = self._jacobian(x)
        return gradient.full().ravel(), np.array(jacobian.nonzeros())

    def hessian(self, x: Array, multipliers: Array, weight: float) -> Array:
        """Return the Hessian (n, n) of weight f + multipliers . rows."""
        found: Array = self._hessian(x, multipliers, weight).full()
        return found
