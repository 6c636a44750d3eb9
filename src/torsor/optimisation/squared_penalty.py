"""Least squares of the violations of some rows, subject to the others (a quadratic penalty).

A small weight of the objective determines the variables that the penalty leaves free. The largest violation is larger
than in ``min_max_violation``, but the program is smooth and often converges where that one does not.
"""

import numpy as np

from torsor.base.arrays import Array, Flags
from torsor.optimisation.condensed import solve_condensed
from torsor.optimisation.outcome import Outcome, Settings
from torsor.optimisation.program import NonlinearProgram

OBJECTIVE, PENALTY = 0.01, 10.0  # weights of the objective, and of half the squared violations


class SquaredPenalty:
    """A program whose ``soft`` rows (m,) are penalised in its objective; rows that are not ``kept`` (m,) are free.

    Example:
        >>> from torsor.optimisation.formula import Formula
        >>> both = Formula(lambda x: 0 * x[0], lambda x: x, n=1, row_lower=2.0, upper=1.0)
        >>> float(SquaredPenalty(both, np.ones(1, dtype=bool), np.ones(1, dtype=bool)).value(np.zeros(1))[0])
        20.0
    """

    def __init__(self, program: NonlinearProgram, soft: Flags, kept: Flags):
        self.program, self._soft, self._hard = program, soft, kept & ~soft
        self.n, self.m, self.scales = program.n, program.m, program.scales
        self.lower, self.upper, self.structure = program.lower, program.upper, program.structure
        self.row_lower = np.where(self._hard, program.row_lower, -np.inf)
        self.row_upper = np.where(self._hard, program.row_upper, np.inf)
        self.hessian_structure = np.tril_indices(self.n)[::-1]  # the dense upper triangle, in column-major order

    def _outside(self, x: Array) -> Array:
        """Return the violation of soft rows (m,): positive above the upper bound, negative below the lower one."""
        rows, program = self.program.value(x)[1], self.program
        over = np.maximum(rows - program.row_upper, 0.0) - np.maximum(program.row_lower - rows, 0.0)
        return np.where(self._soft, over, 0.0)

    def value(self, x: Array) -> tuple[float, Array]:
        """Return the objective, and the rows (m,)."""
        (f, rows), outside = self.program.value(x), self._outside(x)
        return OBJECTIVE * f + PENALTY / 2 * float(outside @ outside), rows

    def jacobian(self, x: Array) -> tuple[Array, Array]:
        """Return the gradient (n,), and the entries of the rows' Jacobian."""
        (gradient, entries), (rows, columns) = self.program.jacobian(x), self.structure
        penalty = np.bincount(columns, entries * self._outside(x)[rows], minlength=self.n)
        return OBJECTIVE * gradient + PENALTY * penalty, entries

    def hessian(self, x: Array, multipliers: Array, weight: float) -> Array:
        """Return the Hessian (n, n)."""
        outside, (rows, columns), entries = self._outside(x), self.structure, self.program.jacobian(x)[1]
        J = np.zeros((self.m, self.n))
        J[rows, columns] = entries
        J = J[outside != 0]
        row_multipliers = np.where(self._hard, multipliers, 0.0) + weight * PENALTY * outside
        total: Array = self.program.hessian(x, row_multipliers, weight * OBJECTIVE) + weight * PENALTY * J.T @ J
        return total


def min_squared_violation(
    program: NonlinearProgram, start: Array, settings: Settings, soft: Flags, kept: Flags
) -> Outcome:
    """Return the outcome of the penalised program from a start (n,).

    Example:
        >>> from torsor.optimisation.formula import Formula
        >>> both = Formula(lambda x: 0 * x[0], lambda x: x, n=1, row_lower=2.0, upper=1.0)
        >>> all_ = np.ones(1, dtype=bool)
        >>> min_squared_violation(both, np.zeros(1), Settings(), all_, all_).x.round(5).tolist()
        [1.0]
    """
    return solve_condensed(SquaredPenalty(program, soft, kept), start, settings)
