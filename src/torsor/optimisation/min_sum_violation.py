"""The least possible sum of violations: the diagnosis of infeasible programs.

Each bound of a row has a variable that relaxes it:

    minimise sum (p + q)  subject to  row_lower <= g(x) + p - q <= row_upper,  p, q >= 0

The sum (an L1 penalty), unlike a sum of squares, leaves few rows violated: those that conflict.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from torsor.base.arrays import Array, Indices
from torsor.optimisation.ipopt import solve_ipopt
from torsor.optimisation.outcome import Outcome, Settings
from torsor.optimisation.program import NonlinearProgram

PROXIMITY = 1e-6  # weight of the squared distance from the start, where violations do not determine x


class MinSumViolation:
    """A program with elastic rows: variables (x, p, q), p for rows with lower bounds, q for those with upper ones.

    Example:
        >>> from torsor.optimisation.formula import Formula
        >>> both = Formula(lambda x: x[0], lambda x: x, n=1, row_lower=2.0, upper=1.0)
        >>> elastic = MinSumViolation(both, np.zeros(1))
        >>> elastic.n, elastic.start.tolist()
        (2, [0.0, 2.0])
    """

    def __init__(self, program: NonlinearProgram, start: Array):
        self.program, self.m, self.scales = program, program.m, program.scales
        self._near = np.clip(np.asarray(start, dtype=float), program.lower, program.upper)
        self._p, self._q = (np.flatnonzero(np.isfinite(side)) for side in (program.row_lower, program.row_upper))
        more = len(self._p) + len(self._q)
        self.n = program.n + more
        self.lower = np.concatenate([program.lower, np.zeros(more)])
        self.upper = np.concatenate([program.upper, np.full(more, np.inf)])
        self.row_lower, self.row_upper = program.row_lower, program.row_upper
        rows, columns = program.structure
        new = np.arange(program.n, self.n)
        self.structure = np.concatenate([rows, self._p, self._q]), np.concatenate([columns, new])
        upper = np.eye(program.n, dtype=bool)  # the Hessian's upper triangle: that of x, with the whole diagonal
        upper[program.hessian_structure] = True
        places = np.nonzero(upper.T)
        self.hessian_structure = places[1], places[0]

    @property
    def start(self) -> Array:
        """Variables (n,): the start, and its violations."""
        rows = self.program.value(self._near)[1]
        short = np.maximum(self.row_lower - rows, 0.0)[self._p], np.maximum(rows - self.row_upper, 0.0)[self._q]
        return np.concatenate([self._near, *short])

    def value(self, x: Array) -> tuple[float, Array]:
        """Return the sum of violations, and the rows (m,)."""
        n, count = self.program.n, len(self._p)
        rows = self.program.value(x[:n])[1].copy()
        rows[self._p] += x[n : n + count]
        rows[self._q] -= x[n + count :]
        away = x[:n] - self._near
        return float(x[n:].sum() + PROXIMITY / 2 * away @ away), rows

    def jacobian(self, x: Array) -> tuple[Array, Array]:
        """Return the gradient (n,), and the entries of the rows' Jacobian."""
        n = self.program.n
        entries = self.program.jacobian(x[:n])[1]
        gradient = np.concatenate([PROXIMITY * (x[:n] - self._near), np.ones(self.n - n)])
        return gradient, np.concatenate([entries, np.ones(len(self._p)), -np.ones(len(self._q))])

    def hessian(self, x: Array, multipliers: Array, weight: float) -> Array:
        """Return the Hessian by x; the rows are linear in p and q."""
        n = self.program.n
        return self.program.hessian(x[:n], multipliers, 0.0) + weight * PROXIMITY * np.eye(n)


@dataclass(frozen=True, eq=False)
class LeastViolation:
    """The least violation: ``x`` (n,), its sum ``total`` over the scaled rows, and the indices of violated ``rows``.

    ``amounts`` are in the rows' own units, positive above the upper bound and negative below the lower one. ``outcome``
    is that of the program in (x, p, q).
    """

    x: Array
    total: float
    rows: Indices
    amounts: Array
    outcome: Outcome


def min_sum_violation(
    program: NonlinearProgram,
    start: Array,
    settings: Settings,
    solver: Callable[[NonlinearProgram, Array, Settings], Outcome] = solve_ipopt,
) -> LeastViolation:
    """Return the least sum of violations near a start (n,), with the variables within their bounds.

    IPOPT is the default solver: it exploits that most of the many variables appear in one row only.

    Example:
        >>> from torsor.optimisation.formula import Formula
        >>> both = Formula(lambda x: x[0], lambda x: x, n=1, row_lower=2.0, upper=1.0)
        >>> least = min_sum_violation(both, np.zeros(1), Settings())
        >>> least.rows.tolist(), least.amounts.round(5).tolist()
        ([0], [-1.0])
    """
    elastic = MinSumViolation(program, start)
    outcome = solver(elastic, elastic.start, replace(settings, multipliers=None, bound_multipliers=None))
    x = np.clip(outcome.x[: program.n], program.lower, program.upper)
    rows = program.value(x)[1]
    over, under = np.maximum(rows - program.row_upper, 0.0), np.maximum(program.row_lower - rows, 0.0)
    violated = np.flatnonzero(np.maximum(over, under) > max(10 * settings.tolerance, 1e-6))
    amounts = ((over - under) * program.scales)[violated]
    return LeastViolation(x, float((over + under).sum()), violated, amounts, outcome)
