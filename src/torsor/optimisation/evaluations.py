"""A cache of the last evaluation of a program: solvers evaluate f, rows and derivatives at the same x one by one."""

import numpy as np

from torsor.arrays import Array
from torsor.optimisation.program import NonlinearProgram


class Evaluations:
    """The functions of a program, each evaluated once per x.

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
