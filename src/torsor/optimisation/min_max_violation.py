"""By how much all bounds of rows would have to give way, at least: the least largest violation.

One variable t widens all rows alike, each in parts of its own scale, and is least:

    t least,  row_lower - t <= g(x) <= row_upper + t,  t >= 0

Where some rows are said to give way, t widens those alone; others may be left out.
"""

from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from torsor.optimisation.condensed import solve_condensed
from torsor.optimisation.outcome import Outcome, Settings, Solvable

__all__ = ["MinMaxViolation", "least_widening"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Flags = NDArray[np.bool_]


class MinMaxViolation:
    """A program with its rows widened by a last variable t; rows with two bounds are there twice, once for each.

    Example:
        >>> from torsor.optimisation.formula import Formula
        >>> both = Formula(lambda x: x[0], lambda x: x, n=1, row_lower=2.0, upper=1.0)
        >>> wide = MinMaxViolation(both, np.zeros(1))
        >>> wide.n, wide.start.tolist()
        (2, [0.0, 2.0])
    """

    def __init__(self, program: Solvable, start: Array, soft: Flags | None = None, kept: Flags | None = None):
        self.program, n = program, program.n
        self._soft, kept = (np.ones(program.m, dtype=bool) if each is None else each for each in (soft, kept))
        self._near = np.clip(np.asarray(start, dtype=float), program.lower, program.upper)
        below, above = (np.flatnonzero(np.isfinite(side) & kept) for side in (program.row_lower, program.row_upper))
        self._taken, self._signs = np.concatenate([below, above]), np.repeat([1.0, -1.0], [len(below), len(above)])
        self.n, self.m, self.scales = n + 1, len(self._taken), program.scales[self._taken]
        self.lower, self.upper = np.append(program.lower, 0.0), np.append(program.upper, np.inf)
        self._wider = self._signs * self._soft[self._taken]
        free = np.full(self.m, np.inf)
        self.row_lower = np.where(self._signs > 0, program.row_lower[self._taken], -free)
        self.row_upper = np.where(self._signs < 0, program.row_upper[self._taken], free)

    @property
    def start(self) -> Array:
        """Variables (n,) from the start, with the most that it violates."""
        rows = self.program.value(self._near)[1]
        over = np.maximum(rows - self.program.row_upper, self.program.row_lower - rows)
        return np.append(self._near, max(float(over[self._soft].max(initial=0.0)), 0.0))

    @cached_property
    def _entries(self) -> tuple[Indices, Indices, Indices]:
        """Rows and columns of the entries, column after column, and which entry of the program each is (-1: by t)."""
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

    @property
    def structure(self) -> tuple[Indices, Indices]:
        """Rows and columns of the entries of the rows' derivatives, column after column."""
        return self._entries[:2]

    @property
    def hessian_structure(self) -> tuple[Indices, Indices]:
        """Rows and columns of the Hessian's upper triangle: that of x."""
        return self.program.hessian_structure

    def value(self, x: Array) -> tuple[float, Array]:
        """Return t, and the rows (m,)."""
        return float(x[-1]), self.program.value(x[:-1])[1][self._taken] + self._wider * x[-1]

    def jacobian(self, x: Array) -> tuple[Array, Array]:
        """Return the gradient (n,), and the entries of the rows' derivatives."""
        entries, (rows, _, source) = self.program.jacobian(x[:-1])[1], self._entries
        padded = np.append(entries, 0.0)[source]
        return np.append(np.zeros(self.n - 1), 1.0), np.where(source < 0, self._wider[rows], padded)

    def hessian(self, x: Array, multipliers: Array, weight: float) -> Array:
        """Return the Hessian by x, in which alone the rows are not linear."""
        felt = np.zeros(self.program.m)
        np.add.at(felt, self._taken, multipliers)
        return self.program.hessian(x[:-1], felt, 0.0)


def least_widening(
    program: Solvable, start: Array, settings: Settings, soft: Flags | None = None, kept: Flags | None = None
) -> tuple[Array, float, Outcome]:
    """Return variables near a start (n,), the least largest violation there in parts of the rows' scales, and how.

    ``soft`` (m,) are the rows that may give way, ``kept`` (m,) those that are asked for; None means all.

    Example:
        >>> from torsor.optimisation.formula import Formula
        >>> both = Formula(lambda x: x[0], lambda x: x, n=1, row_lower=2.0, upper=1.0)
        >>> x, most, _ = least_widening(both, np.zeros(1), Settings())
        >>> x.round(5).tolist(), round(most, 5)
        ([1.0], 1.0)
    """
    wide = MinMaxViolation(program, start, soft, kept)
    outcome = solve_condensed(wide, wide.start, replace(settings, multipliers=None, bound_multipliers=None))
    x = np.clip(outcome.x[:-1], program.lower, program.upper)
    rows = program.value(x)[1]
    over = np.maximum(rows - program.row_upper, program.row_lower - rows)
    return x, max(float(over.max(initial=0.0)), 0.0), outcome
