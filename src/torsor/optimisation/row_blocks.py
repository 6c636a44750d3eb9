"""Sparse matrices with many rows and few kinds of rows, as dense blocks: rows with similar columns are stored together.

The rows of a motion at the nodes between two knots depend on the same few control points. Products with such blocks
take a fraction of the operations of a dense matrix, at the speed of dense ones.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from torsor.base.arrays import Array, Indices

MOST = 600  # kinds of rows: with more, one block holds all rows
CALL = 3e5  # operations that take as long as one more block
ADD = 25.0  # operations that take as long as adding an entry of a block's product to the whole matrix


@dataclass(frozen=True, eq=False)
class RowBlocks:
    """The places of entries at ``rows`` and ``columns`` (k,) of a matrix of a ``shape``, in dense blocks.

    Example:
        >>> pattern = RowBlocks((2, 3), np.array([0, 0, 1]), np.array([0, 2, 1]))
        >>> matrix = pattern.filled(np.array([1.0, 2.0, 3.0]))
        >>> matrix.times(np.ones(3)).tolist(), matrix.gram(np.ones(2)).tolist()
        ([3.0, 3.0], [[1.0, 0.0, 2.0], [0.0, 9.0, 0.0], [2.0, 0.0, 4.0]])
    """

    shape: tuple[int, int]
    rows: Indices
    columns: Indices

    @cached_property
    def blocks(self) -> list[tuple[Indices, Indices]]:
        """Rows and columns of each block; every row is in one block."""
        is_entry = np.zeros(self.shape, dtype=bool)
        is_entry[self.rows, self.columns] = True
        _, kind, counts = np.unique(np.packbits(is_entry, axis=1), axis=0, return_inverse=True, return_counts=True)
        kind = kind.reshape(-1)
        firsts = np.unique(kind, return_index=True)[1]
        whole = [(np.arange(self.shape[0]), np.arange(self.shape[1]))]
        if not 1 < len(counts) <= MOST:
            return whole
        groups, kinds = _merged(is_entry[firsts], counts.astype(float)), is_entry[firsts]
        found = [(np.flatnonzero(np.isin(kind, group)), np.flatnonzero(kinds[group].any(axis=0))) for group in groups]
        cost = sum(_cost(len(rows), len(columns)) for rows, columns in found)
        return found if cost < self.shape[0] * self.shape[1] ** 2 else whole

    @cached_property
    def _places(self) -> Indices:
        """Places of the entries in the concatenated blocks."""
        block_of, row_in, column_in = np.zeros(self.shape[0], dtype=int), np.zeros(self.shape[0], dtype=int), []
        for index, (rows, columns) in enumerate(self.blocks):
            block_of[rows], row_in[rows] = index, np.arange(len(rows))
            column_in.append(np.full(self.shape[1], -1))
            column_in[-1][columns] = np.arange(len(columns))
        own = block_of[self.rows]
        widths = np.array([len(columns) for _, columns in self.blocks])
        within = row_in[self.rows] * widths[own] + np.stack(column_in)[own, self.columns]
        return np.asarray(np.array(self._edges)[own] + within)

    @cached_property
    def _edges(self) -> list[int]:
        """Where each block begins, and the end."""
        return [0, *np.cumsum([len(rows) * len(columns) for rows, columns in self.blocks]).tolist()]

    def filled(self, entries: Array) -> "BlockMatrix":
        """Return the matrix with these entries (k,); entries at the same place are added."""
        flat = np.bincount(self._places, entries, self._edges[-1]).astype(float, copy=False)
        parts = [
            flat[begin:end].reshape(len(rows), len(columns))
            for (begin, end), (rows, columns) in zip(pairwise(self._edges), self.blocks, strict=True)
        ]
        return BlockMatrix(self, parts)


@dataclass(frozen=True, eq=False)
class BlockMatrix:
    """A matrix J (m, n) in the blocks of ``pattern``."""

    pattern: RowBlocks
    parts: list[Array]

    def times(self, x: Array) -> Array:
        """Return J x, for x (n,) or (n, k)."""
        found = np.empty((self.pattern.shape[0], *x.shape[1:]))
        for (rows, columns), part in zip(self.pattern.blocks, self.parts, strict=True):
            found[rows] = part @ x[columns]
        return found

    def transposed_times(self, y: Array) -> Array:
        """Return J^T y, for y (m,) or (m, k)."""
        found = np.zeros((self.pattern.shape[1], *y.shape[1:]))
        for (rows, columns), part in zip(self.pattern.blocks, self.parts, strict=True):
            found[columns] += part.T @ y[rows]
        return found

    def gram(self, weights: Array) -> Array:
        """Return J^T diag(weights) J (n, n), for weights (m,) that are not negative."""
        found, root = np.zeros((self.pattern.shape[1],) * 2), np.sqrt(weights)
        for (rows, columns), part in zip(self.pattern.blocks, self.parts, strict=True):
            scaled = part * root[rows, None]
            found[np.ix_(columns, columns)] += scaled.T @ scaled
        return found

    def dense(self) -> Array:
        """Return J (m, n)."""
        found = np.zeros(self.pattern.shape)
        for (rows, columns), part in zip(self.pattern.blocks, self.parts, strict=True):
            found[np.ix_(rows, columns)] = part
        return found


def _cost(rows: Array | float, columns: Array | float) -> Array | float:
    """Return the operations of the product of a block with its transpose."""
    return (rows + ADD) * columns**2 + CALL


def _merged(kinds: Array, counts: Array) -> list[list[int]]:
    """Return groups of kinds of rows (k, n), of which there are ``counts`` (k,): pairs are merged while that pays."""
    kinds, counts, groups = kinds.astype(float), counts.copy(), [[k] for k in range(len(counts))]
    sizes = kinds.sum(axis=1)
    unions = sizes[:, None] + sizes - kinds @ kinds.T
    alone = np.asarray(_cost(counts, sizes))
    gains = alone[:, None] + alone - _cost(counts[:, None] + counts, unions)
    np.fill_diagonal(gains, -np.inf)
    while True:
        one, other = divmod(int(gains.argmax()), len(gains))
        if not gains[one, other] > 0:
            return [group for group in groups if group]
        groups[one] += groups[other]
        groups[other] = []
        kinds[one] = np.maximum(kinds[one], kinds[other])
        counts[one] += counts[other]
        sizes[one] = kinds[one].sum()
        alone[one] = _cost(counts[one], sizes[one])
        union = sizes[one] + sizes - kinds @ kinds[one]
        gains[one] = gains[:, one] = np.where(
            [bool(group) for group in groups], alone[one] + alone - _cost(counts[one] + counts, union), -np.inf
        )
        gains[other] = gains[:, other] = gains[one, one] = -np.inf
