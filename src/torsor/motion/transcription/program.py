"""The nonlinear program of a motion problem: minimise f(x) subject to bounds on x and on rows g(x)."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from torsor.base.arrays import Array, Flags, Indices
from torsor.motion.transcription.batch import Batch
from torsor.motion.transcription.layout import Layout
from torsor.motion.transcription.linear_rows import Linear
from torsor.motion.transcription.row_rates import RowRates


class Row(NamedTuple):
    """The description of a row: the title of its term, a label, and its phase and moment s (None at ends)."""

    title: str
    label: str
    phase: int | None = None
    s: float | None = None


@dataclass(frozen=True, eq=False)
class Program:
    """Batches of nodes and linear rows over the variables of a layout.

    ``lower`` and ``upper`` (n,) are bounds of the variables. Rows are those of the batches, then the linear ones; each
    is divided by its entry of ``scales``, so that bounds are near 1. ``factor`` multiplies f: with 0, every feasible
    motion is a solution.
    """

    layout: Layout
    batches: tuple[Batch, ...]
    linear: Linear
    lower: Array
    upper: Array
    factor: float = 1.0
    rates: tuple[RowRates, ...] = ()

    @property
    def n(self) -> int:
        """Number of variables."""
        return self.layout.size

    def __reduce__(self) -> Any:
        """Refuse to be pickled, in words."""
        found = "a nonlinear program cannot be pickled: its functions are compiled for one process"
        raise pickle.PicklingError(f"{found}; fix: pickle the MotionProblem, which makes its program again")

    @cached_property
    def m(self) -> int:
        """Number of rows."""
        return sum(batch.m for batch in self.batches) + self.linear.m

    @cached_property
    def rows(self) -> list[Row]:
        """The descriptions of the rows."""
        found = list[Row]()
        for batch in self.batches:
            names = [
                (rows.title, label)
                for rows, bound in zip(batch.kernels.constraints, batch.kernels.rows, strict=True)
                for label in bound.labels
            ]
            found += [Row(title, label, batch.phase, float(s)) for s in batch.s for title, label in names]
        return found + [Row(each.title, each.label) for each in self.linear.equations]

    @cached_property
    def _raw_bounds(self) -> tuple[Array, Array]:
        sides = []
        for side in ("lower", "upper"):
            parts = [
                np.tile(
                    np.concatenate([np.zeros(0), *(getattr(each, side) for each in batch.kernels.rows)]), len(batch.s)
                )
                for batch in self.batches
            ]
            sides.append(np.concatenate([*parts, [getattr(each, side) for each in self.linear.equations]]))
        return sides[0], sides[1]

    @cached_property
    def scales(self) -> Array:
        """Divisors of the rows: half the distance of their bounds, or the size of the only bound.

        For an equation it is at least 1: a small right-hand side does not need a smaller tolerance.
        """
        lower, upper = self._raw_bounds
        same = lower == upper
        both = np.isfinite(lower) & np.isfinite(upper) & ~same
        one = np.where(np.isfinite(lower), np.abs(lower), np.where(np.isfinite(upper), np.abs(upper), 1.0))
        with np.errstate(invalid="ignore"):
            scale = np.where(same, np.maximum(one, 1.0), np.where(both, (upper - lower) / 2, one))
        return np.where((scale > 1e-6) & np.isfinite(scale), scale, 1.0)

    @cached_property
    def row_lower(self) -> Array:
        """Lower bounds of the scaled rows."""
        return self._raw_bounds[0] / self.scales

    @cached_property
    def row_upper(self) -> Array:
        """Upper bounds of the scaled rows."""
        return self._raw_bounds[1] / self.scales

    @cached_property
    def _last(self) -> dict[str, tuple[bytes, Any]]:
        """The last values and derivatives with their x: solvers evaluate f and g one by one."""
        return {}

    def _at(self, what: str, x: Array, find: Callable[[Array], Any]) -> Any:
        place = x.tobytes()
        if what not in self._last or self._last[what][0] != place:
            self._last[what] = place, find(x)
        return self._last[what][1]

    def value(self, x: Array) -> tuple[float, Array]:
        """Return f and the rows (m,), read-only."""
        found: tuple[float, Array] = self._at("value", x, self._value)
        return found

    def _value(self, x: Array) -> tuple[float, Array]:
        found = [batch.value(x) for batch in self.batches]
        rows = np.concatenate([*(rows for rows, _ in found), self.linear.value(x)])
        rows /= self.scales
        rows.setflags(write=False)
        return self.factor * (sum(cost for _, cost in found) + sum(each.value(x) for each in self.rates)), rows

    @cached_property
    def structure(self) -> tuple[Indices, Indices]:
        """Rows and columns of the entries of the rows' Jacobian, in column-major order."""
        order, rows, columns = self._order
        return rows[order], columns[order]

    @cached_property
    def _order(self) -> tuple[Indices, Indices, Indices]:
        """The order of the entries of batches and linear rows (known variables left out), and all rows and columns."""
        rows, columns, first = [], [], 0
        for batch in self.batches:
            i, j = batch.structure
            rows.append(i + first)
            columns.append(j)
            first += batch.m
        i, j = np.nonzero(self._linear_entries)
        rows.append(i + first)
        columns.append(j)
        all_rows, all_columns = np.concatenate(rows), np.concatenate(columns)
        order = np.lexsort((all_rows, all_columns))
        return order[all_columns[order] >= 0], all_rows, all_columns

    @cached_property
    def _linear_entries(self) -> Flags:
        found = np.zeros((self.linear.m, self.n), dtype=bool)
        for (phase, order), (A, b) in self.linear._parts.items():
            found |= A != 0
            at = self.layout.phases[phase].duration
            if at >= 0 and order:
                found[:, at] |= (A != 0).any(axis=1) | (b != 0)
        return found | self.linear.paced_entries

    @cached_property
    def _entry_scales(self) -> Array:
        return self.scales[self.structure[0]]

    def jacobian(self, x: Array) -> tuple[Array, Array]:
        """Return the gradient (n,) of f and the entries of the rows' Jacobian (see ``structure``), read-only."""
        found: tuple[Array, Array] = self._at("jacobian", x, self._jacobian)
        return found

    def _jacobian(self, x: Array) -> tuple[Array, Array]:
        gradient, entries = np.zeros(self.n), list[Array]()
        for batch in self.batches:
            values, own = batch.jacobian(x)
            gradient += self.factor * own
            entries.append(values)
        for cost in self.rates:
            gradient += self.factor * cost.gradient(x)
        if self.linear.m:
            entries.append(self.linear.jacobian(x)[self._linear_entries])
        values = np.concatenate([np.zeros(0), *entries])[self._order[0]]
        values /= self._entry_scales
        for each in (gradient, values):
            each.setflags(write=False)
        return gradient, values

    def hessian(self, x: Array, multipliers: Array, weight: float) -> Array:
        """Return the Hessian (n, n) of weight f + multipliers . rows."""
        total, first, unscaled = np.zeros((self.n, self.n)), 0, multipliers / self.scales
        curved = [(each.batch, each.hessian(x)) for each in self.rates] if self.factor * weight else []
        for batch in self.batches:
            own = unscaled[first : first + batch.m]
            for other, curvature in curved:
                if other is batch:
                    own = own + self.factor * weight * curvature.multipliers
            total += batch.hessian(x, own, self.factor * weight)
            first += batch.m
        total += self.factor * weight * sum(curvature.hessian for _, curvature in curved)
        return total + self.linear.hessian(x, unscaled[first:]) if self.linear.m else total

    @cached_property
    def hessian_structure(self) -> tuple[Indices, Indices]:
        """Rows and columns of the entries of the Hessian's upper triangle, in column-major order."""
        patterns = [self.linear.hessian_pattern, *(batch.hessian_pattern for batch in self.batches)]
        if self.rates:
            patterns.append(np.ones((self.n, self.n), dtype=bool))
        columns, rows = np.nonzero(np.tril(np.logical_or.reduce(patterns)))
        return rows, columns
