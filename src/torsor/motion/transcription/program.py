"""A motion problem as a nonlinear program: f(x) least, with bounds on x and on rows g(x)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from torsor.motion.transcription.batch import Batch
from torsor.motion.transcription.layout import Layout
from torsor.motion.transcription.linear_rows import Linear

__all__ = ["Program", "Row"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


class Row(NamedTuple):
    """What a row is: the title of its term, a label, and the phase and share of it at which it holds (None: ends)."""

    title: str
    label: str
    phase: int | None = None
    s: float | None = None


@dataclass(frozen=True, eq=False)
class Program:
    """Batches of nodes and linear rows over the variables of a layout.

    ``lower`` and ``upper`` (x,) are bounds of the variables. Rows are those of the batches, then the linear ones; each
    is divided by its entry of ``scales``, so that numbers near 1 are asked for. ``factor`` is that of f: with 0, any
    motion that keeps the bounds is a solution.
    """

    layout: Layout
    batches: tuple[Batch, ...]
    linear: Linear
    lower: Array
    upper: Array
    factor: float = 1.0

    @property
    def n(self) -> int:
        """Number of variables."""
        return self.layout.size

    @cached_property
    def m(self) -> int:
        """Number of rows."""
        return sum(batch.m for batch in self.batches) + self.linear.m

    @cached_property
    def rows(self) -> list[Row]:
        """What each row is."""
        found = list[Row]()
        for batch in self.batches:
            names = [
                (rows.title, label)
                for rows, bound in zip(batch.traced.rows, batch.traced.bounds, strict=True)
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
                    np.concatenate([np.zeros(0), *(getattr(each, side) for each in batch.traced.bounds)]), len(batch.s)
                )
                for batch in self.batches
            ]
            sides.append(np.concatenate([*parts, [getattr(each, side) for each in self.linear.equations]]))
        return sides[0], sides[1]

    @cached_property
    def scales(self) -> Array:
        """What rows are divided by: half the distance of their bounds, or the size of the one that there is.

        Of an equation it is at least 1: that it is small does not mean that it must hold the better.
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
        """Lower bounds of the rows, as scaled."""
        return self._raw_bounds[0] / self.scales

    @cached_property
    def row_upper(self) -> Array:
        """Upper bounds of the rows, as scaled."""
        return self._raw_bounds[1] / self.scales

    @cached_property
    def _last(self) -> dict[str, tuple[bytes, Any]]:
        """What was found last, by what it is, with the x that it was found at: solvers ask for f and g one by one."""
        return {}

    def _at(self, what: str, x: Array, find: Callable[[Array], Any]) -> Any:
        place = x.tobytes()
        if what not in self._last or self._last[what][0] != place:
            self._last[what] = place, find(x)
        return self._last[what][1]

    def value(self, x: Array) -> tuple[float, Array]:
        """Return f, and the rows (m,), which are not to be written to."""
        found: tuple[float, Array] = self._at("value", x, self._value)
        return found

    def _value(self, x: Array) -> tuple[float, Array]:
        found = [batch.value(x) for batch in self.batches]
        rows = np.concatenate([*(rows for rows, _ in found), self.linear.value(x)])
        rows /= self.scales
        rows.setflags(write=False)
        return self.factor * sum(cost for _, cost in found), rows

    @cached_property
    def structure(self) -> tuple[Indices, Indices]:
        """Rows and columns of the entries of the rows' derivatives, column after column."""
        order, rows, columns = self._order
        return rows[order], columns[order]

    @cached_property
    def _order(self) -> tuple[Indices, Indices, Indices]:
        """Which of the entries of batches and linear rows are kept, in order; and where all of them are."""
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
    def _linear_entries(self) -> NDArray[np.bool_]:
        found = np.zeros((self.linear.m, self.n), dtype=bool)
        for (phase, order), (A, b) in self.linear._parts.items():
            found |= A != 0
            at = self.layout.stretches[phase].duration
            if at >= 0 and order:
                found[:, at] |= (A != 0).any(axis=1) | (b != 0)
        return found

    @cached_property
    def _entry_scales(self) -> Array:
        return self.scales[self.structure[0]]

    def jacobian(self, x: Array) -> tuple[Array, Array]:
        """Return the gradient (x,) of f, and the entries of the rows' derivatives (see ``structure``).

        They are not to be written to.
        """
        found: tuple[Array, Array] = self._at("jacobian", x, self._slope)
        return found

    def _slope(self, x: Array) -> tuple[Array, Array]:
        gradient, entries = np.zeros(self.n), list[Array]()
        for batch in self.batches:
            values, own = batch.jacobian(x)
            gradient += self.factor * own
            entries.append(values)
        if self.linear.m:
            entries.append(self.linear.jacobian(x)[self._linear_entries])
        values = np.concatenate([np.zeros(0), *entries])[self._order[0]]
        values /= self._entry_scales
        for each in (gradient, values):
            each.setflags(write=False)
        return gradient, values

    def hessian(self, x: Array, multipliers: Array, weight: float) -> Array:
        """Return the Hessian (x, x) of weight f + multipliers . rows."""
        total, first, felt = np.zeros((self.n, self.n)), 0, multipliers / self.scales
        for batch in self.batches:
            total += batch.hessian(x, felt[first : first + batch.m], self.factor * weight)
            first += batch.m
        return total + self.linear.hessian(x, felt[first:]) if self.linear.m else total

    @cached_property
    def hessian_structure(self) -> tuple[Indices, Indices]:
        """Rows and columns of the entries of the Hessian's upper triangle, column after column."""
        touched = np.logical_or.reduce([self.linear.touched, *(batch.touched for batch in self.batches)])
        columns, rows = np.nonzero(np.tril(touched))
        return rows, columns
