"""The nonlinear program that every solver takes: an objective, bounded variables and bounded constraint rows.

``Evaluations`` caches its last evaluation.
"""

from typing import Protocol

import numpy as np

from torsor.base.arrays import Array, Indices


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
    return violations_of(program, program.value(x)[1])


def violations_of(program: NonlinearProgram, rows: Array) -> Array:
    """Return the violation (m,) of each row, from the values of the rows (m,)."""
    return np.maximum(np.maximum(program.row_lower - rows, rows - program.row_upper), 0.0)


def largest_violation(program: NonlinearProgram, x: Array, rows: Array) -> float:
    """Return the largest violation of a bound of the variables x (n,) or the rows (m,); 0 if all bounds hold."""
    excess = (program.lower - x, x - program.upper, program.row_lower - rows, rows - program.row_upper)
    return float(max(0.0, *(each.max(initial=0.0) for each in excess)))


class Evaluations:
    """The functions of a program, each evaluated once per x: solvers evaluate f, rows and derivatives one by one.

    Values that are not finite raise no error and no warning; ``is_finite`` is False where there are any.
    """

    def __init__(self, program: NonlinearProgram):
        self.program = program
        self._x: Array | None = None
        self._value: tuple[float, Array] | None = None
        self._jacobian: tuple[Array, Array] | None = None

    def _move(self, x: Array) -> None:
        if self._x is None or not np.array_equal(x, self._x):
            self._x, self._value, self._jacobian = x.copy(), None, None

    def value(self, x: Array) -> tuple[float, Array]:
        """Return f and the rows (m,)."""
        self._move(x)
        if self._value is None:
            with np.errstate(all="ignore"):
                self._value = self.program.value(x)
        return self._value

    def jacobian(self, x: Array) -> tuple[Array, Array]:
        """Return the gradient (n,) and the entries of the rows' Jacobian."""
        self._move(x)
        if self._jacobian is None:
            with np.errstate(all="ignore"):
                self._jacobian = self.program.jacobian(x)
        return self._jacobian

    def hessian(self, x: Array, multipliers: Array, weight: float) -> Array:
        """Return the Hessian; second derivatives that are not finite are replaced by 0."""
        with np.errstate(all="ignore"):
            found = self.program.hessian(x, multipliers, weight)
        return found if np.isfinite(found).all() else np.nan_to_num(found, nan=0.0, posinf=0.0, neginf=0.0)

    def is_finite(self, x: Array) -> bool:
        """Whether f, the rows, and their first derivatives are finite at x."""
        f, rows = self.value(x)
        if not (np.isfinite(f) and np.isfinite(rows).all()):
            return False
        gradient, entries = self.jacobian(x)
        return bool(np.isfinite(gradient).all() and np.isfinite(entries).all())
