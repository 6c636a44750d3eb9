"""The nonlinear program that every solver takes: an objective, bounded variables and bounded constraint rows."""

from typing import Protocol

import numpy as np

from torsor.arrays import Array, Indices


class NonlinearProgram(Protocol):
    """Minimise f(x) subject to lower <= x <= upper (n,) and row_lower <= g(x) <= row_upper (m,).

    Bounds may be infinite. ``structure`` has the rows and columns of the nonzero entries of the Jacobian dg/dx, in
    column-major order, and ``hessian_structure`` those of the upper triangle of ``hessian``, the Hessian of
    weight f + multipliers . g: (n, n), or (k, k) where f and g are linear in the variables from k on. ``scales`` (m,)
    has the numbers by which the rows were divided: row times scale is in physical units.
    """

    @property
    def n(self) -> int:
        """Number of variables."""

    @property
    def m(self) -> int:
        """Number of constraint rows."""

    @property
    def lower(self) -> Array:
        """Lower bounds (n,) of the variables."""

    @property
    def upper(self) -> Array:
        """Upper bounds (n,) of the variables."""

    @property
    def row_lower(self) -> Array:
        """Lower bounds (m,) of the rows."""

    @property
    def row_upper(self) -> Array:
        """Upper bounds (m,) of the rows."""

    @property
    def scales(self) -> Array:
        """Divisors (m,) of the rows."""

    @property
    def structure(self) -> tuple[Indices, Indices]:
        """Rows and columns of the nonzero entries of dg/dx."""

    @property
    def hessian_structure(self) -> tuple[Indices, Indices]:
        """Rows and columns of the nonzero entries of the Hessian's upper triangle."""

    def value(self, x: Array) -> tuple[float, Array]:
        """Return f and g (m,)."""

    def jacobian(self, x: Array) -> tuple[Array, Array]:
        """Return the gradient (n,) of f and the nonzero entries of dg/dx."""

    def hessian(self, x: Array, multipliers: Array, weight: float) -> Array:
        """Return the Hessian of weight f + multipliers . g."""


def row_violations(program: NonlinearProgram, x: Array) -> Array:
    """Return the violation (m,) of each row at x, 0 where the row is within its bounds.

    Example:
        >>> from torsor.optimisation.formula import Formula
        >>> box = Formula(lambda x: x[0], lambda x: x, n=2, row_lower=0.0, row_upper=1.0)
        >>> row_violations(box, np.array([-0.5, 3.0])).tolist()
        [0.5, 2.0]
    """
    rows = program.value(x)[1]
    return np.maximum(np.maximum(program.row_lower - rows, rows - program.row_upper), 0.0)


def largest_violation(program: NonlinearProgram, x: Array, rows: Array) -> float:
    """Return the largest violation of a bound of the variables x (n,) or the rows (m,); 0 if all bounds hold."""
    excess = (program.lower - x, x - program.upper, program.row_lower - rows, rows - program.row_upper)
    return float(max(0.0, *(each.max(initial=0.0) for each in excess)))
