"""The least possible largest violation: how much all bounds of rows have to be relaxed at least.

One variable t relaxes the bounds of all scaled rows:

    minimise t  subject to  row_lower - t <= g(x) <= row_upper + t,  t >= 0

Optionally only some rows are relaxed, and others are left out.
"""

from dataclasses import replace
from functools import cached_property

import numpy as np

from torsor.base.arrays import Array, Flags, Indices
from torsor.optimisation.condensed import solve_condensed
from torsor.optimisation.outcome import Outcome, Settings
from torsor.optimisation.program import NonlinearProgram, row_violations


class MinMaxViolation:
    """A program whose rows are relaxed by a last variable t; rows with two bounds appear twice, once for each.

    ``soft`` (m,) are the rows that t relaxes, ``kept`` (m,) the rows that are not left out; None means all.

    Example:
        >>> from torsor.optimisation.formula import Formula
        >>> both = Formula(lambda x: x[0], lambda x: x, n=1, row_lower=2.0, upper=1.0)
        >>> relaxed = MinMaxViolation(both, np.zeros(1))
        >>> relaxed.n, relaxed.start.tolist()
        (2, [0.0, 2.0])
    """

    def __init__(self, program: NonlinearProgram, start: Array, soft: Flags | None = None, kept: Flags | None = None):
        self.program, n = program, program.n
        self._soft, kept = (np.ones(program.m, dtype=bool) if each is None else each for each in (soft, kept))
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
        """Variables (n,): the start, and its largest violation."""
        return np.append(self._near, row_violations(self.program, self._near)[self._soft].max(initial=0.0))

    @cached_property
    def _entries(self) -> tuple[Indices, Indices, Indices]:
        """Rows and columns of the entries in column-major order, and the program's entry that each is (-1: by t)."""
        rows, columns = self.program.structure
        order = np.argsort(rows, kind="stable")
        first = np.searchsorted(rows[order], np.arange(self.program.m + 1))
        counts = np.diff(first)[self._taken]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        source = order[np.repeat(first[self._taken], counts) + within]
        new_rows = np.concatenate([np.repeat(np.arange(self.m), counts), np.arange(self.m)])
        new_columns = np.concatenate([columns[source], np.full(self.m, self.program.n)])
        sorting = np.lexsort((new_rows, new_columns))
        all_sources = np.concatenate([source, np.full(self.m, -1)])
        return new_rows[sorting], new_columns[sorting], all_sources[sorting]

    def value(self, x: Array) -> tuple[float, Array]:
        """Return t, and the rows (m,)."""
        return float(x[-1]), self.program.value(x[:-1])[1][self._taken] + self._t_entries * x[-1]

    def jacobian(self, x: Array) -> tuple[Array, Array]:
        """Return the gradient (n,), and the entries of the rows' Jacobian."""
        entries, (rows, _, source) = self.program.jacobian(x[:-1])[1], self._entries
        padded = np.append(entries, 0.0)[source]
        return np.append(np.zeros(self.n - 1), 1.0), np.where(source < 0, self._t_entries[rows], padded)

    def hessian(self, x: Array, multipliers: Array, weight: float) -> Array:
        """Return the Hessian by x; the rows are linear in t."""
        row_multipliers = np.zeros(self.program.m)
        np.add.at(row_multipliers, self._taken, multipliers)
        return self.program.hessian(x[:-1], row_multipliers, 0.0)


def min_max_violation(
    program: NonlinearProgram, start: Array, settings: Settings, soft: Flags | None = None, kept: Flags | None = None
) -> tuple[Array, float, Outcome]:
    """Return the variables (n,) of the least largest violation near a start, that violation (scaled), and the outcome.

    ``soft`` (m,) are the rows that may be violated, ``kept`` (m,) the rows that are not left out; None means all.

    Example:
        >>> from torsor.optimisation.formula import Formula
        >>> both = Formula(lambda x: x[0], lambda x: x, n=1, row_lower=2.0, upper=1.0)
        >>> x, most, _ = min_max_violation(both, np.zeros(1), Settings())
        >>> x.round(5).tolist(), round(most, 5)
        ([1.0], 1.0)
    """
    relaxed = MinMaxViolation(program, start, soft, kept)
    outcome = solve_condensed(relaxed, relaxed.start, replace(settings, multipliers=None, bound_multipliers=None))
    x = np.clip(outcome.x[:-1], program.lower, program.upper)
    return x, float(row_violations(program, x).max(initial=0.0)), outcome
