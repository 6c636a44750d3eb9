"""The mean square of the rates of rows over a phase: a cost that joins neighbouring nodes.

With rows g_k at the nodes, d_k = g_{k+1} - g_k, and the times dt_k = T dh_k between them,

    phi = weight / T sum_k |d_k|^2 / dt_k

approximates the mean of |dg/dt|^2. Its derivatives follow from those of the rows:

    phi_x  = A^T (2 c d) + phi_p                 c_k = weight / (T^2 dh_k)      A = dd/dx
    phi_xx = A^T 2 c A + A^T M + M^T A + phi_pp + sum_k (phi_g)_k d2g_k/dx2      M = d(2 c d)/dp

where p are T and the variables of the clock, and the last term is the Hessian of the rows with multipliers phi_g.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse

from torsor.arrays import Array, Indices
from torsor.motion.transcription.batch import Batch


class Curvature(NamedTuple):
    """The Hessian (n, n) without the curvature of the rows, and the multipliers (K m,) by which that is added."""

    hessian: Array
    multipliers: Array


@dataclass(frozen=True, eq=False)
class RowRates:
    """The cost of the rates of some rows (``chosen``, indices of the rows of one node) of a batch."""

    batch: Batch
    chosen: Indices
    weight: float

    def _coefficients(self, x: Array) -> tuple[Array, Array, Array]:
        """Return c (K - 1,), its first derivatives (K - 1, P) and its second ones (K - 1, P, P) by T and the clock."""
        layout = self.batch.layout.phases[self.batch.phase]
        T, ticks = layout.seconds(x), x[list(layout.ticks)]
        h = np.diff(layout.phase.clock.fraction(self.batch.s, ticks))
        # h is linear in the variables of the clock
        slopes = [np.diff(layout.phase.clock.fraction(self.batch.s, each)) - np.diff(self.batch.s) for each in np.eye(len(ticks))]
        H = np.stack(slopes, axis=1) if slopes else np.zeros((len(h), 0))
        c = self.weight / (T**2 * h)
        by_T = [] if layout.duration < 0 else [-2 * c / T]
        first = np.column_stack([*by_T, -c[:, None] / h[:, None] * H])
        second = np.zeros((len(h), first.shape[1], first.shape[1]))
        k = len(by_T)
        second[:, k:, k:] = (2 * c / h**2)[:, None, None] * H[:, :, None] * H[:, None, :]
        if k:
            second[:, 0, 0] = 6 * c / T**2
            second[:, 0, 1:] = second[:, 1:, 0] = (2 * c / (T * h))[:, None] * H
        return c, first, second

    @property
    def _columns(self) -> list[int]:
        """Indices in x of T, if it is a variable, and of the clock."""
        layout = self.batch.layout.phases[self.batch.phase]
        return [*([] if layout.duration < 0 else [layout.duration]), *layout.ticks]

    def _steps(self, x: Array) -> Array:
        """Return d (K - 1, chosen)."""
        rows = self.batch.value(x)[0].reshape(len(self.batch.s), -1)[:, self.chosen]
        return np.diff(rows, axis=0)

    def value(self, x: Array) -> float:
        """Return phi."""
        return float(self._coefficients(x)[0] @ (self._steps(x) ** 2).sum(axis=1))

    @cached_property
    def _pattern(self) -> tuple[Indices, Indices, Indices]:
        rows, columns = self.batch.structure
        kept = np.flatnonzero(columns >= 0)
        return kept, rows[kept], columns[kept]

    def _slopes(self, x: Array) -> Array:
        """Return A as (K - 1, chosen, n)."""
        kept, rows, columns = self._pattern
        K, m, n = len(self.batch.s), self.batch.kernels.m, self.batch.layout.size
        J = scipy.sparse.csr_matrix((self.batch.jacobian(x)[0][kept], (rows, columns)), shape=(K * m, n))
        chosen = (np.arange(K)[:, None] * m + self.chosen).ravel()
        return np.diff(J[chosen].toarray().reshape(K, len(self.chosen), n), axis=0)

    def gradient(self, x: Array) -> Array:
        """Return the gradient (n,)."""
        (c, first, _), d, A = self._coefficients(x), self._steps(x), self._slopes(x)
        found = np.tensordot(2 * c[:, None] * d, A, axes=2)
        found[self._columns] += first.T @ (d**2).sum(axis=1)
        return np.asarray(found)

    def hessian(self, x: Array) -> Curvature:
        """Return the second derivatives."""
        (c, first, second), d, A = self._coefficients(x), self._steps(x), self._slopes(x)
        n, columns = A.shape[2], self._columns
        flat = (np.sqrt(2 * c)[:, None, None] * A).reshape(-1, n)
        total = flat.T @ flat
        # (K - 1, chosen, P): the derivative of 2 c d by T and the clock, beside that of d itself
        mixed = np.tensordot(A, 2 * d[:, :, None] * first[:, None, :], axes=([0, 1], [0, 1]))
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
