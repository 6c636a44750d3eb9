"""Row Jacobians of many cases in dense blocks, because rows between two knots depend on the same control points."""

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array, Indices
from torsor.motion.transcription.batch import Batch, Blocks


class Window(NamedTuple):
    """A block: nodes, rows of the program, columns (indices in x), and location in the array of a batch.

    The rows at the nodes are followed by the squares of the integrand at the nodes, ``height`` rows in all.
    """

    nodes: slice
    rows: slice
    columns: Indices
    at: slice
    height: int


class _Product(NamedTuple):
    """Derivatives with respect to control points: a basis (K, P, orders) times those of rows (kind 0) or squares (1).

    ``chosen`` selects pairs of a row and a profile (None: all), and ``at`` is the slice of the result.
    """

    kind: int
    basis: Array
    chosen: Indices | None
    at: slice


class NodeBlocks:
    """The derivatives of the rows and squares of a batch, whose first row is row ``first`` of the program."""

    def __init__(self, batch: Batch, first: int):
        chain, kernels = batch.chain, batch.kernels
        layout, K, m, q = chain.phase_layout, len(chain.s), kernels.m, kernels.square_count
        self.batch = batch
        by_T = layout.duration >= 0
        self.jacobian, self.hessian = kernels.jacobian(by_T), kernels.hessian(by_T)
        self.second = Blocks(chain, *self.hessian.blocks)
        numbers, others = np.array([*batch.layout.numbers.values()], dtype=int), np.array(batch.others, dtype=int)
        by_profile = tuple(self.jacobian.pairs), (m + self.hessian.pairs[0], self.hessian.pairs[1])
        self._products, sources = list[_Product](), list[Array]()
        for kind, (row, profile) in enumerate(by_profile):
            for group in chain.groups if len(row) else []:
                index = np.flatnonzero(np.isin(profile, group.profiles))
                is_main = 2 * len(index) > len(row)  # computed for all pairs, which avoids a selection
                taken = np.arange(len(row)) if is_main else index
                node, point, pair = np.indices((K, group.B.shape[2], len(taken)))
                column = layout.columns[profile[taken][pair], group.first[node] + point]
                column = np.where(np.isin(profile, group.profiles)[taken][pair], column, -1)
                first_source = sum(part.shape[1] for part in sources)
                sources.append(np.stack([node, row[taken][pair], column]).reshape(3, -1))
                at = slice(first_source, first_source + node.size)
                basis = np.ascontiguousarray(group.B.transpose(1, 2, 0))
                self._products.append(_Product(kind, basis, None if is_main else index, at))
        specials = (
            (self.jacobian.timed, np.full(len(self.jacobian.timed), layout.duration)),
            (self.jacobian.entries[0], numbers[self.jacobian.entries[1]]),
            (m + np.repeat(np.arange(q), len(others)), np.tile(others, q)),
        )
        self._specials = sum(part.shape[1] for part in sources)
        for rows, columns in specials:
            node, entry = np.indices((K, len(rows)))
            sources.append(np.stack([node, rows[entry], columns[entry]]).reshape(3, -1))
        node, row, column = np.concatenate(sources, axis=1)
        self.windows, gathers, size = list[Window](), list[Indices](), 0
        for span in chain.spans if m + q else []:
            count, start = span.stop - span.start, span.start
            used = np.flatnonzero((node >= start) & (node < span.stop) & (column >= 0))
            columns, place = np.unique(column[used], return_inverse=True)
            by_row = (node[used] - start) * m + row[used]
            by_square = count * m + (node[used] - start) * q + row[used] - m
            gather = np.full(count * (m + q) * len(columns), len(node))  # the last source is 0
            gather[np.where(row[used] < m, by_row, by_square) * len(columns) + place.reshape(-1)] = used
            rows_at = slice(first + start * m, first + span.stop * m)
            at = slice(size, size + len(gather))
            self.windows.append(Window(span, rows_at, columns, at, count * (m + q)))
            gathers.append(gather)
            size = at.stop
        self._count = len(node)
        self._gather = np.concatenate([np.zeros(0, dtype=int), *gathers])
        self.size = size

    def fill(self, out: Array, first: Mapping[str, Array], second: Mapping[str, Array]) -> None:
        """Write the blocks (B, size) from the derivatives at the nodes."""
        B, K, D, q = len(out), len(self.batch.s), self.batch.kernels.orders, self.batch.kernels.square_count
        squares, edge = second["squares"] if q else np.zeros((B, K, 0)), D * self.hessian.pairs.shape[1]
        rows, timed, shared = (first.get(name, np.zeros((B, K, 0))) for name in ("rows", "timed", "shared"))
        pairs = rows.reshape(B, K, D, -1), squares[..., :edge].reshape(B, K, D, -1)
        sources = np.empty((B, self._count + 1))
        for kind, basis, index, at in self._products:
            own = pairs[kind] if index is None else np.take(pairs[kind], index, axis=3)
            np.matmul(basis, own, out=sources[:, at].reshape(B, K, basis.shape[1], -1))
        edges = np.cumsum([self._specials, *(K * part.shape[2] for part in (timed, shared, squares[..., edge:]))])
        for part, (begin, end) in zip((timed, shared, squares[..., edge:]), pairwise(edges.tolist()), strict=True):
            sources[:, begin:end] = part.reshape(B, -1)
        sources[:, -1] = 0.0
        np.take(sources, self._gather, axis=1, out=out, mode="clip")

    def block(self, values: Array, window: Window) -> Array:
        """Return a block (B, count, columns) of values (B, size)."""
        return values[:, window.at].reshape(len(values), window.height, len(window.columns))


class Block(NamedTuple):
    """The derivatives (B, rows, columns) of selected rows of the program with respect to selected variables."""

    rows: slice
    columns: Indices
    values: Array


class RowJacobian:
    """The Jacobian of the scaled rows of all cases, from that of the rows and the inverse scales (B, m)."""

    def __init__(self, blocks: list[Block], inverse: Array, n: int):
        self._blocks, self._inverse, self._n = blocks, inverse, n

    def take(self, at: Indices) -> "RowJacobian":
        """Return the Jacobian of the cases ``at``."""
        blocks = [block._replace(values=block.values[at]) for block in self._blocks]
        return RowJacobian(blocks, self._inverse[at], self._n)

    def steepest(self) -> Array:
        """Return the largest derivative (B, m) of each row."""
        result = np.zeros_like(self._inverse)
        for rows, _, values in self._blocks:
            result[:, rows] = np.abs(values).max(axis=2, initial=0.0)
        return result * self._inverse

    def times(self, x: Array) -> Array:
        """Return J x (B, k, m) of k vectors (B, k, n)."""
        result = np.empty((*x.shape[:2], self._inverse.shape[1]))
        for rows, columns, values in self._blocks:
            result[..., rows] = np.take(x, columns, axis=2) @ values.swapaxes(1, 2)
        result *= self._inverse[:, None]
        return result

    def transposed_times(self, y: Array) -> Array:
        """Return J^T y (B, k, n) of k vectors (B, k, m)."""
        scaled, result = y * self._inverse[:, None], np.zeros((*y.shape[:2], self._n))
        for rows, columns, values in self._blocks:
            result[..., columns] += scaled[..., rows] @ values
        return result


class Boundary(NamedTuple):
    """Two neighbouring blocks of a batch, the union of their columns, and the indices of their columns in it."""

    earlier: Window
    later: Window
    columns: Indices
    of_earlier: Indices
    of_later: Indices

    @classmethod
    def all_of(cls, windows: list[Window]) -> "list[Boundary]":
        """Return the boundaries between successive blocks."""
        boundaries = []
        for one, other in pairwise(windows):
            columns = np.union1d(one.columns, other.columns)
            places = (np.searchsorted(columns, window.columns) for window in (one, other))
            boundaries.append(cls(one, other, columns, *places))
        return boundaries
