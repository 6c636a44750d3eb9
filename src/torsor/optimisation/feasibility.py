"""Diagnosis of infeasible programs by minimising the sum, the maximum or the sum of squares of violations.

For the sum, each row bound is relaxed by a variable:

    minimise sum (p + q)  subject to  row_lower <= g(x) + p - q <= row_upper,  p, q >= 0

Unlike the sum of squares, the sum (an L1 penalty) leaves only a few, conflicting rows violated.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from torsor.base.arrays import Array, Flags, Indices
from torsor.optimisation.condensed import solve_condensed
from torsor.optimisation.ipopt import solve_ipopt
from torsor.optimisation.program import NonlinearProgram, Outcome, Settings, row_violations

# The minimum of the largest violation, by which all row bounds would have to be relaxed.
#
# One variable t relaxes the bounds of all scaled rows:
#
#     minimise t  subject to  row_lower - t <= g(x) <= row_upper + t,  t >= 0
#
# Optionally, only some rows are relaxed, and others are omitted.


class MinMaxViolation:
    """A program whose rows are relaxed by an additional variable t; rows with two bounds occur once per bound.

    ``soft`` (m,) selects the rows that t relaxes, ``kept`` (m,) the rows that are not omitted; None means all.

    Example:
        >>> from torsor.optimisation.program import Formula
        >>> both = Formula(lambda x: x[0], lambda x: x, n=1, row_lower=2.0, upper=1.0)
        >>> relaxed = MinMaxViolation(both, np.zeros(1))
        >>> relaxed.n, relaxed.start.tolist()
        (2, [0.0, 2.0])
    """

    def __init__(self, program: NonlinearProgram, start: Array, soft: Flags | None = None, kept: Flags | None = None):
        self.program, n = program, program.n
        self._soft, kept = (np.ones(program.m, dtype=bool) if flags is None else flags for flags in (soft, kept))
        self._near = np.clip(np.asarray(start, dtype=float), program.lower, program.upper)
        below, above = (np.flatnonzero(np.isfinite(side) & kept) for side in (program.row_lower, program.row_upper))
        self._taken, self._signs = np.concatenate([below, above]), np.repeat([1.0, -1.0], [len(below), len(above)])
        self.n, self.m, self.scales = n + 1, len(self._taken), program.scales[self._taken]
        self.lower, self.upper = np.append(program.lower, 0.0), np.append(program.upper, np.inf)
        self._t_entries = self._signs * self._soft[self._taken]
        free = np.full(self.m, np.inf)
        self.row_lower = np.where(self._signs > 0, program.row_lower[self._taken], -free)
        self.row_upper = np.where(self._signs < 0, program.row_upper[self._taken], free)
        self.structure, self.hessian_structure = self._entries[:2], program.hessian_structure

    @property
    def start(self) -> Array:
        """Initial variables (n,): the start and its largest violation."""
        return np.append(self._near, row_violations(self.program, self._near)[self._soft].max(initial=0.0))

    @cached_property
    def _entries(self) -> tuple[Indices, Indices, Indices]:
        """Rows and columns of the entries, and their indices in the program (-1 for t)."""
        rows, columns = self.program.structure
        order = np.argsort(rows, kind="stable")
        first = np.searchsorted(rows[order], np.arange(self.program.m + 1))
        counts = np.diff(first)[self._taken]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        source = order[np.repeat(first[self._taken], counts) + within]
        new_rows = np.concatenate([np.repeat(np.arange(self.m), counts), np.arange(self.m)])
        new_columns = np.concatenate([columns[source], np.full(self.m, self.program.n)])
        return new_rows, new_columns, np.concatenate([source, np.full(self.m, -1)])

    def value(self, x: Array) -> tuple[float, Array]:
        """Return t and the rows (m,)."""
        return float(x[-1]), self.program.value(x[:-1])[1][self._taken] + self._t_entries * x[-1]

    def jacobian(self, x: Array) -> tuple[Array, Array]:
        """Return the gradient (n,) and the entries of the row Jacobian."""
        entries, (rows, _, source) = self.program.jacobian(x[:-1])[1], self._entries
        padded = np.append(entries, 0.0)[source]
        return np.append(np.zeros(self.n - 1), 1.0), np.where(source < 0, self._t_entries[rows], padded)

    def hessian(self, x: Array, multipliers: Array, weight: float) -> Array:
        """Return the Hessian with respect to x; the rows are linear in t."""
        row_multipliers = np.zeros(self.program.m)
        np.add.at(row_multipliers, self._taken, multipliers)
        return self.program.hessian(x[:-1], row_multipliers, 0.0)


def min_max_violation(
    program: NonlinearProgram, start: Array, settings: Settings, soft: Flags | None = None, kept: Flags | None = None
) -> tuple[Array, float, Outcome]:
    """Return the variables (n,) that minimise the largest scaled violation, that violation, and the outcome.

    ``soft`` (m,) selects the rows that may be violated, and ``kept`` (m,) the rows that are not omitted; None means
    all.

    Example:
        >>> from torsor.optimisation.program import Formula
        >>> both = Formula(lambda x: x[0], lambda x: x, n=1, row_lower=2.0, upper=1.0)
        >>> x, most, _ = min_max_violation(both, np.zeros(1), Settings())
        >>> x.round(5).tolist(), round(most, 5)
        ([1.0], 1.0)
    """
    relaxed = MinMaxViolation(program, start, soft, kept)
    outcome = solve_condensed(relaxed, relaxed.start, replace(settings, multipliers=None, bound_multipliers=None))
    x = np.clip(outcome.x[:-1], program.lower, program.upper)
    return x, float(row_violations(program, x).max(initial=0.0)), outcome


# Least-squares violations of some rows subject to the others (a quadratic penalty).
#
# An objective with a small weight determines variables that the penalty leaves free. The largest violation is larger
# than with ``min_max_violation``, but the program is smooth and often converges when the other does not.

OBJECTIVE_WEIGHT, PENALTY_WEIGHT = 0.01, 10.0  # weights of the objective, and of half the squared violations


class SquaredPenalty:
    """A program with a penalty on the ``soft`` rows (m,) in its objective; rows that are not ``kept`` (m,) are free.

    Example:
        >>> from torsor.optimisation.program import Formula
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
        """Return the violations (m,) of soft rows, positive above the upper bound and negative below the lower one."""
        rows, program = self.program.value(x)[1], self.program
        over = np.maximum(rows - program.row_upper, 0.0) - np.maximum(program.row_lower - rows, 0.0)
        return np.where(self._soft, over, 0.0)

    def value(self, x: Array) -> tuple[float, Array]:
        """Return the objective and the rows (m,)."""
        (f, rows), outside = self.program.value(x), self._outside(x)
        return OBJECTIVE_WEIGHT * f + PENALTY_WEIGHT / 2 * float(outside @ outside), rows

    def jacobian(self, x: Array) -> tuple[Array, Array]:
        """Return the gradient (n,) and the entries of the row Jacobian."""
        (gradient, entries), (rows, columns) = self.program.jacobian(x), self.structure
        penalty = np.bincount(columns, entries * self._outside(x)[rows], minlength=self.n)
        return OBJECTIVE_WEIGHT * gradient + PENALTY_WEIGHT * penalty, entries

    def hessian(self, x: Array, multipliers: Array, weight: float) -> Array:
        """Return the Hessian (n, n)."""
        outside, (rows, columns), entries = self._outside(x), self.structure, self.program.jacobian(x)[1]
        J = np.zeros((self.m, self.n))
        J[rows, columns] = entries
        J = J[outside != 0]
        row_multipliers = np.where(self._hard, multipliers, 0.0) + weight * PENALTY_WEIGHT * outside
        curvature = self.program.hessian(x, row_multipliers, weight * OBJECTIVE_WEIGHT)
        return np.asarray(curvature + weight * PENALTY_WEIGHT * J.T @ J)


def min_squared_violation(
    program: NonlinearProgram, start: Array, settings: Settings, soft: Flags, kept: Flags
) -> Outcome:
    """Return the outcome of ``SquaredPenalty`` from a start (n,).

    It penalises the squared violations of the ``soft`` rows (m,). The other ``kept`` rows (m,) are constraints.

    Example:
        >>> from torsor.optimisation.program import Formula
        >>> both = Formula(lambda x: 0 * x[0], lambda x: x, n=1, row_lower=2.0, upper=1.0)
        >>> all_ = np.ones(1, dtype=bool)
        >>> min_squared_violation(both, np.zeros(1), Settings(), all_, all_).x.round(5).tolist()
        [1.0]
    """
    return solve_condensed(SquaredPenalty(program, soft, kept), start, settings)


PROXIMITY_WEIGHT = 1e-6  # weight of the squared distance from the start, which makes x unique


class MinSumViolation:
    """A program with elastic rows and variables (x, p, q): p relaxes lower row bounds, and q upper ones.

    Example:
        >>> from torsor.optimisation.program import Formula
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
        upper = np.eye(program.n, dtype=bool)  # upper triangle of the Hessian, with the full diagonal
        upper[program.hessian_structure] = True
        places = np.nonzero(upper.T)
        self.hessian_structure = places[1], places[0]

    @property
    def start(self) -> Array:
        """Initial variables (n,): the start and its violations."""
        rows = self.program.value(self._near)[1]
        short = np.maximum(self.row_lower - rows, 0.0)[self._p], np.maximum(rows - self.row_upper, 0.0)[self._q]
        return np.concatenate([self._near, *short])

    def value(self, x: Array) -> tuple[float, Array]:
        """Return the objective and the rows (m,).

        The objective is the sum of violations, plus a small multiple of the squared distance from the start.
        """
        n, count = self.program.n, len(self._p)
        rows = self.program.value(x[:n])[1].copy()
        rows[self._p] += x[n : n + count]
        rows[self._q] -= x[n + count :]
        away = x[:n] - self._near
        return float(x[n:].sum() + PROXIMITY_WEIGHT / 2 * away @ away), rows

    def jacobian(self, x: Array) -> tuple[Array, Array]:
        """Return the gradient (n,) and the entries of the row Jacobian."""
        n = self.program.n
        entries = self.program.jacobian(x[:n])[1]
        gradient = np.concatenate([PROXIMITY_WEIGHT * (x[:n] - self._near), np.ones(self.n - n)])
        return gradient, np.concatenate([entries, np.ones(len(self._p)), -np.ones(len(self._q))])

    def hessian(self, x: Array, multipliers: Array, weight: float) -> Array:
        """Return the Hessian with respect to x; the rows are linear in p and q."""
        n = self.program.n
        return self.program.hessian(x[:n], multipliers, 0.0) + weight * PROXIMITY_WEIGHT * np.eye(n)


@dataclass(frozen=True, eq=False)
class LeastViolation:
    """The smallest violation: variables ``x`` (n,), sum ``total`` over the scaled rows, and violated ``rows``.

    ``amounts`` are in the units of the rows, positive above the upper bound and negative below the lower one.
    ``outcome`` is the outcome of the program in (x, p, q).
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
    """Return the smallest sum of violations near a start (n,), with the variables within their bounds.

    IPOPT is the default solver, because it exploits that most of the many variables occur in only one row.

    Example:
        >>> from torsor.optimisation.program import Formula
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
