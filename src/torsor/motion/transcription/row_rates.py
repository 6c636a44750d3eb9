"""The mean square of the rates of rows over a phase: a cost that joins neighbouring nodes.

With rows g_k at the nodes, d_k = g_{k+1} - g_k, and the times dt_k = T dh_k between them,

    phi = weight / T sum_k |d_k|^2 / dt_k

approximates the mean of |dg/dt|^2. Its derivatives follow from those of the rows:

    phi_x  = A^T (2 c d) + phi_p                 c_k = weight / (T^2 dh_k)      A = dd/dx
    phi_xx = A^T 2 c A + A^T M + M^T A + phi_pp + sum_k (phi_g)_k d2g_k/dx2      M = d(2 c d)/dp

where p are T, the variables of the clock and the number by which the cost is divided, and the last term is the
Hessian of the rows with multipliers phi_g.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array, Indices
from torsor.motion.transcription.batch import Batch
from torsor.motion.transcription.layout import PhaseLayout
from torsor.optimisation.row_blocks import BlockMatrix, RowBlocks


class Curvature(NamedTuple):
    """The Hessian (n, n) without the curvature of the rows, and the multipliers (K m,) by which that is added."""

    hessian: Array
    multipliers: Array


@dataclass(frozen=True, eq=False)
class RowRates:
    """The cost of the rates of some rows (``chosen``, indices of the rows of one node) of a batch.

    ``per`` is the name of a shared number by which the cost is divided, if it is a variable.
    """

    batch: Batch
    chosen: Indices
    weight: float
    per: str = ""

    @property
    def _phase_layout(self) -> PhaseLayout:
        return self.batch.layout.phases[self.batch.phase]

    @cached_property
    def _columns(self) -> list[int]:
        """Indices in x of T, the clock and the speed, as far as they are variables."""
        layout, numbers = self._phase_layout, self.batch.layout.numbers
        own = [layout.duration] if layout.duration >= 0 else []
        return [*own, *layout.ticks, *([numbers[self.per]] if self.per in numbers else [])]

    def _coefficients(self, x: Array) -> tuple[Array, Array, Array]:
        """Return c (K - 1,), its first derivatives (K - 1, P) and its second ones (K - 1, P, P) by ``_columns``.

        c is a product of powers: the derivatives are those of its logarithm, which is a sum.
        """
        layout, s = self._phase_layout, self.batch.s
        T, clock = layout.seconds(x), layout.phase.timing
        h = np.diff(clock.fraction(s, x[list(layout.ticks)]))
        c = self.weight / (T**2 * h)
        # h is linear in the variables of the clock.
        ticks = [np.diff(clock.fraction(s, each) - s) / h for each in np.eye(len(layout.ticks))]
        slopes, bends = ([], []) if layout.duration < 0 else ([np.full(len(h), -2 / T)], [np.full(len(h), 2 / T**2)])
        slopes += [-each for each in ticks]
        speeds = [x[column] for column in self._columns[len(slopes) :]]
        for speed in speeds:
            c /= speed
            slopes.append(np.full(len(h), -1 / speed))
        L = np.stack(slopes, axis=1) if slopes else np.zeros((len(h), 0))
        second = L[:, :, None] * L[:, None, :]
        first = len(bends)
        for k, bend in enumerate(bends):
            second[:, k, k] += bend
        for j, one in enumerate(ticks):
            for k, other in enumerate(ticks):
                second[:, first + j, first + k] += one * other
        for speed in speeds:
            second[:, -1, -1] += 1 / speed**2
        return c, c[:, None] * L, c[:, None, None] * second

    def _steps(self, x: Array) -> Array:
        """Return d (K - 1, chosen)."""
        rows = self.batch.value(x)[0].reshape(len(self.batch.s), -1)[:, self.chosen]
        return np.diff(rows, axis=0)

    def value(self, x: Array) -> float:
        """Return phi."""
        return float(self._coefficients(x)[0] @ (self._steps(x) ** 2).sum(axis=1))

    @cached_property
    def _pattern(self) -> tuple[Indices, Array, RowBlocks]:
        """Which entries of the batch's Jacobian are in A, with their signs, and the places of A ((K - 1) chosen, n)."""
        rows, columns = self.batch.structure
        node, row = np.divmod(rows, self.batch.kernels.m)
        place = np.full(self.batch.kernels.m, -1)
        place[self.chosen] = np.arange(len(self.chosen))
        own, count = (columns >= 0) & (place[row] >= 0), len(self.batch.s)
        later, earlier = np.flatnonzero(own & (node > 0)), np.flatnonzero(own & (node < count - 1))
        kept, steps = np.concatenate([later, earlier]), np.concatenate([node[later] - 1, node[earlier]])
        shape = (count - 1) * len(self.chosen), self.batch.layout.size
        blocks = RowBlocks(shape, steps * len(self.chosen) + place[row[kept]], columns[kept])
        return kept, np.repeat([1.0, -1.0], [len(later), len(earlier)]), blocks

    def _slopes(self, x: Array) -> BlockMatrix:
        """Return A ((K - 1) chosen, n)."""
        kept, signs, blocks = self._pattern
        return blocks.filled(signs * self.batch.jacobian(x)[0][kept])

    def gradient(self, x: Array) -> Array:
        """Return the gradient (n,)."""
        (c, first, _), d, A = self._coefficients(x), self._steps(x), self._slopes(x)
        found = A.transposed_times((2 * c[:, None] * d).ravel())
        found[self._columns] += first.T @ (d**2).sum(axis=1)
        return found

    def hessian(self, x: Array) -> Curvature:
        """Return the second derivatives."""
        (c, first, second), d, A = self._coefficients(x), self._steps(x), self._slopes(x)
        columns = self._columns
        total = A.gram(np.repeat(2 * c, len(self.chosen)))
        # (n, P): A^T times the derivative of 2 c d by p
        mixed = A.transposed_times((2 * d[:, :, None] * first[:, None, :]).reshape(d.size, len(columns)))
        total[:, columns] += mixed
        total[columns] += mixed.T
        total[np.ix_(columns, columns)] += np.tensordot((d**2).sum(axis=1), second, axes=1)
        slopes = 2 * c[:, None] * d
        by_rows = np.zeros((len(self.batch.s), len(self.chosen)))
        by_rows[1:] += slopes
        by_rows[:-1] -= slopes
        multipliers = np.zeros((len(self.batch.s), self.batch.kernels.m))
        multipliers[:, self.chosen] = by_rows
        return Curvature(total, multipliers.ravel())
