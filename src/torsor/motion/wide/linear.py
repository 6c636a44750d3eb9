"""Linear rows of many cases: end states, continuity of phases, periodicity and symmetry."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from torsor.base.arrays import Array, Indices
from torsor.motion.transcription.program import Program
from torsor.motion.transcription.variables import Layout, Linear


def linear_structure(linear: Linear) -> tuple[Any, ...]:
    """Return a key that is equal for linear rows that differ only in their bounds, known points and paces."""
    return tuple(
        (one.parts, one.is_timeless, bool(one.pace), one.paced_by if one.pace else "") for one in linear.equations
    )


@dataclass(frozen=True, eq=False)
class LinearRows:
    """Linear rows of B cases: parts T^-order (A x + b) with A (B, e, columns) and b (B, e), by phase and order.

    ``columns`` are the indices in x of all variables on which the rows depend. ``paces`` (B, count) are the paces of
    ``paced``, which are pairs of a row and the index of a shared number (-1: none). ``bounds`` (B, 3, e) are the scaled
    lower and upper bounds, and the inverse scales.
    """

    layout: Layout
    columns: Indices
    paced: tuple[tuple[int, int], ...]
    keys: tuple[tuple[int, int], ...]
    parts: tuple[tuple[Array, Array], ...]
    paces: Array
    bounds: Array

    @classmethod
    def of(cls, programs: Sequence[Program], most: float) -> "LinearRows":
        """Return the linear rows of programs with the same structure; infinite bounds become ``most``."""
        linears = [program.linear for program in programs]
        first, m = linears[0], linears[0].m
        columns = np.flatnonzero(first.pattern.any(axis=0))
        keys = tuple(first.parts)
        parts = tuple(
            (np.stack([A[:, columns] for A, _ in own]), np.stack([b for _, b in own]))
            for own in ([one.parts[key] for one in linears] for key in keys)
        )
        sides = [
            (own.row_lower[own.m - m :], own.row_upper[own.m - m :], 1 / own.scales[own.m - m :]) for own in programs
        ]
        return cls(
            first.layout,
            columns,
            tuple((row, column) for row, column, _ in first.paces),
            keys,
            parts,
            np.array([[pace for _, _, pace in one.paces] for one in linears]).reshape(len(programs), -1),
            np.clip(np.array(sides), -most, most),
        )

    def take(self, at: Indices) -> "LinearRows":
        """Return the rows of the cases ``at``."""
        parts = tuple((A[at], b[at]) for A, b in self.parts)
        return LinearRows(self.layout, self.columns, self.paced, self.keys, parts, self.paces[at], self.bounds[at])

    @property
    def m(self) -> int:
        """Number of rows of a case."""
        return int(self.bounds.shape[2])

    def _sums(self, x: Array) -> list[Array]:
        """Return A x + b (B, e) of each part."""
        own = np.take(x, self.columns, axis=1)[..., None]
        return [(A @ own)[..., 0] + b for A, b in self.parts]

    def value(self, x: Array, T: Sequence[Array]) -> Array:
        """Return the rows (B, e) for the duration (B,) of each phase."""
        total = np.zeros((len(x), self.m))
        for (phase, order), own in zip(self.keys, self._sums(x), strict=True):
            total += own / T[phase][:, None] ** order
        for k, (row, column) in enumerate(self.paced):
            total[:, row] += self.paces[:, k] * (x[:, column] if column >= 0 else 1.0) * T[0]
        return total

    def jacobian(self, x: Array, T: Sequence[Array]) -> Array:
        """Return the derivatives (B, e, columns)."""
        total = np.zeros((len(x), self.m, len(self.columns)))
        for (phase, order), (A, _), own in zip(self.keys, self.parts, self._sums(x), strict=True):
            seconds, at = T[phase][:, None], self.layout.phases[phase].duration
            total += A / seconds[..., None] ** order
            if at >= 0 and order:
                total[..., self._place(at)] -= order * own / seconds ** (order + 1)
        at = self.layout.phases[0].duration
        for k, (row, column) in enumerate(self.paced):
            if at >= 0:
                total[:, row, self._place(at)] += self.paces[:, k] * (x[:, column] if column >= 0 else 1.0)
            if column >= 0:
                total[:, row, self._place(column)] += self.paces[:, k] * T[0]
        return total

    def _place(self, column: int) -> int:
        return int(np.searchsorted(self.columns, column))

    def add_hessian(self, border: Array, specials: list[int], x: Array, T: Sequence[Array], multipliers: Array) -> None:
        """Add the second derivatives of multipliers . rows to rows (B, specials, n) of the Hessians."""
        for (phase, order), (A, _), own in zip(self.keys, self.parts, self._sums(x), strict=True):
            at = self.layout.phases[phase].duration
            if at >= 0 and order:
                row, seconds = specials.index(at), T[phase]
                by_points = (multipliers[:, None] @ A)[:, 0]
                border[:, row, self.columns] -= order * by_points / seconds[:, None] ** (order + 1)
                border[:, row, at] += order * (order + 1) * (multipliers * own).sum(axis=1) / seconds ** (order + 2)
        at = self.layout.phases[0].duration
        for k, (row, column) in enumerate(self.paced):
            if at >= 0 and column >= 0:
                for one, other in ((at, column), (column, at)):
                    border[:, specials.index(one), other] += self.paces[:, k] * multipliers[:, row]
