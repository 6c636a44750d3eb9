"""The chain rule from derivatives at nodes to derivatives by control points, with constant matrices.

At node k, profile i has the derivatives B_dk c_i by s of order d = 0, 1, ..., which depend on few control points c_i.
Derivatives J_kd by these become J_kd B_dk by control points. Nodes between the same knots have the same control points,
so that only the sum over such nodes of second derivatives matters, and

    sum_kde H_kde B_dk^T B_ek

is one matrix product for all pairs of profiles.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array, Indices
from torsor.motion.transcription.layout import PhaseLayout
from torsor.motion.transcription.splines import Spline


class SplineGroup(NamedTuple):
    """Profiles with the same spline: B (orders, K, P), the first point (K,), and B of all points (orders K, count)."""

    profiles: Indices
    B: Array
    first: Indices
    wide: Array


class ScatterSum(NamedTuple):
    """A scatter-add: the indices of entries that are ``taken``, and the places ``to`` which they are added."""

    taken: Indices
    to: Indices

    @classmethod
    def of(cls, *places: list[Indices]) -> "ScatterSum":
        """Return the scatter-add of entries with one place or several each, -1 for none."""
        parts = [np.concatenate([np.zeros(0, dtype=int), *each]) for each in places]
        taken = [np.flatnonzero(each >= 0) for each in parts]
        return cls(np.concatenate(taken), np.concatenate([a[b] for a, b in zip(parts, taken, strict=True)]))

    def total(self, values: Array, size: int) -> Array:
        """Return the sums (size,)."""
        if not self.to.size:
            return np.zeros(size)
        return np.bincount(self.to, values.ravel()[self.taken], minlength=size).astype(float, copy=False)


@dataclass(frozen=True, eq=False)
class ChainRule:
    """Nodes at increasing ``s`` (K,) of a phase, ``orders`` of derivatives by s, and ``size`` variables."""

    phase_layout: PhaseLayout
    s: Array
    orders: int
    size: int

    @cached_property
    def groups(self) -> list[SplineGroup]:
        """The profiles, grouped by their splines."""
        found: dict[tuple[int, bytes], tuple[Spline, list[int]]] = {}
        for i, spline in enumerate(self.phase_layout.splines):
            found.setdefault((spline.degree, spline.inner.tobytes()), (spline, []))[1].append(i)
        groups = []
        for spline, profiles in found.values():
            local = [spline.local(self.s, d) for d in range(self.orders)]
            wide = np.concatenate([spline.matrix(self.s, d) for d in range(self.orders)])
            groups.append(SplineGroup(np.array(profiles), np.stack([B for B, _ in local]), local[0][1], wide))
        return groups

    @cached_property
    def spans(self) -> list[slice]:
        """Slices of successive nodes that have the same control points in all profiles."""
        firsts = np.stack([group.first for group in self.groups])
        edges = [0, *(1 + np.flatnonzero((np.diff(firsts, axis=1) != 0).any(axis=0))).tolist(), len(self.s)]
        return [slice(begin, end) for begin, end in pairwise(edges) if begin < end]

    def columns(self, group: SplineGroup, node: int) -> Indices:
        """Return the indices in x of the control points (profiles of the group, P) at a node; -1 for known ones."""
        first, P = group.first[node], group.B.shape[2]
        return np.asarray(self.phase_layout.columns[group.profiles, first : first + P])

    def rates(self, x: Array) -> Array:
        """Return profiles and their derivatives by s (orders, K, N)."""
        C = self.phase_layout.points(x)
        found = np.empty((self.orders, len(self.s), len(C)))
        if len(self.groups) == 1:
            np.matmul(self.groups[0].wide, C.T, out=found.reshape(-1, len(C)))
            return found
        for group in self.groups:
            own = C[group.profiles, : group.wide.shape[1]]
            found[:, :, group.profiles] = (group.wide @ own.T).reshape(self.orders, len(self.s), -1)
        return found

    def sums(self, values: Array, count: int) -> Array:
        """Return gradients (count, n) of functions, summed over nodes, from derivatives (K, orders N count)."""
        by_order = values.reshape(len(self.s), self.orders, -1, count)
        found = np.zeros((count, self.size + 1))  # known points add to the last column
        for group in self.groups:
            own = by_order if len(self.groups) == 1 else by_order[:, :, group.profiles]
            total = group.wide.T @ own.transpose(1, 0, 2, 3).reshape(len(group.wide), -1)
            shaped = total.reshape(len(total), len(group.profiles), count)
            found[:, self.phase_layout.columns[group.profiles, : len(total)]] = shaped.transpose(2, 1, 0)
        return found[:, :-1]

    def gram(self, values: Array, weights: Array, specials: Sequence[int]) -> Array:
        """Return J^T W J (n, n) of m functions, from derivatives (K, orders m N + m specials).

        ``weights`` (K,) are those of the nodes, ``specials`` the indices of T and the numbers in x (-1: known).
        """
        found, count = np.zeros((self.size, self.size)), len(self.phase_layout.splines)
        m = values.shape[1] // (self.orders * count + len(specials))
        root = np.sqrt(np.abs(weights))[:, None, None]
        rates = values[:, : self.orders * m * count].reshape(len(self.s), self.orders, m, count)
        others = values[:, self.orders * m * count :].reshape(len(self.s), m, -1) * root
        for span in self.spans:
            size = span.stop - span.start
            parts, places = [others[span].reshape(size * m, -1)], [np.array(specials, dtype=int)]
            for group in self.groups:
                own = rates[span] if len(self.groups) == 1 else rates[span][..., group.profiles]
                # points (nodes, P, functions profiles): one product a node
                points = (group.B[:, span].transpose(1, 2, 0) * root[span]) @ own.reshape(size, self.orders, -1)
                points = points.reshape(size, -1, m, len(group.profiles)).transpose(0, 2, 1, 3)
                parts.append(points.reshape(size * m, -1))
                places.append(self.columns(group, span.start).T.ravel())
            known = [place < 0 for place in places]
            own_parts = [a if not b.any() else a[:, ~b] for a, b in zip(parts, known, strict=True) if not b.all()]
            to = np.concatenate([a[~b] for a, b in zip(places, known, strict=True)])
            if to.size:
                J = own_parts[0] if len(own_parts) == 1 else np.concatenate(own_parts, axis=1)
                signs = np.repeat(np.sign(weights[span]), m)[:, None]
                found[np.ix_(to, to)] += J.T @ (J if (signs >= 0).all() else J * signs)
        return found

    @property
    def variables(self) -> Indices:
        """The indices in x of the control points of these nodes."""
        parts = [
            self.phase_layout.columns[group.profiles, : group.wide.shape[1]][:, group.wide.any(axis=0)].ravel()
            for group in self.groups
        ]
        found = np.unique(np.concatenate(parts))
        return np.asarray(found[found >= 0])


@dataclass(frozen=True, eq=False)
class Pairs:
    """First derivatives by control points, of pairs of a row and a profile that are the same at every node."""

    chain: ChainRule
    profiles: Indices

    @cached_property
    def _parts(self) -> list[tuple[SplineGroup, Indices, Indices]]:
        """For each group its pairs, and the indices in x of their control points (K, pairs, P)."""
        found = []
        for group in self.chain.groups:
            index = np.flatnonzero(np.isin(self.profiles, group.profiles))
            own = np.searchsorted(group.profiles, self.profiles[index])
            columns = [self.chain.columns(group, node)[own] for node in range(len(self.chain.s))]
            found.append((group, index, np.stack(columns)))
        return found

    @cached_property
    def structure(self) -> tuple[Indices, Indices, Indices]:
        """Nodes, pairs and columns of the entries; the column is -1 where a control point is known."""
        found = []
        for _, index, columns in self._parts:
            nodes, pairs, _ = np.indices(columns.shape)
            found.append(np.stack([nodes, index[pairs], columns]).reshape(3, -1))
        nodes, pairs, columns = np.concatenate(found, axis=1)
        return nodes, pairs, columns

    def entries(self, values: Array) -> list[Array]:
        """Return the entries, from derivatives (K, orders pairs)."""
        by_order, found = values.reshape(len(self.chain.s), self.chain.orders, -1), []
        for group, index, _ in self._parts:
            own = by_order if len(index) == by_order.shape[2] else by_order[:, :, index]
            found.append(np.matmul(own.transpose(0, 2, 1), group.B.transpose(1, 0, 2)).ravel())
        return found


@dataclass(frozen=True, eq=False)
class Blocks:
    """Second derivatives by control points of profiles ``i`` and ``j`` (blocks,), i >= j."""

    chain: ChainRule
    i: Indices
    j: Indices

    @cached_property
    def _group_pairs(self) -> list[tuple[SplineGroup, SplineGroup, Indices]]:
        """The pairs of groups, and the indices of their blocks."""
        found = []
        for group in self.chain.groups:
            for other in self.chain.groups:
                index = np.flatnonzero(np.isin(self.i, group.profiles) & np.isin(self.j, other.profiles))
                if index.size:
                    found.append((group, other, index))
        return found

    @cached_property
    def _products(self) -> list[tuple[slice, Indices | None, Array]]:
        """Slices of nodes and orders, blocks, and B_dp B_eq (nodes d e, p q), for each pair of groups and span."""
        found, square = [], self.chain.orders**2
        for group, other, index in self._group_pairs:
            blocks = None if index.size == self.i.size else index
            for span in self.chain.spans:
                product = np.einsum("dkp,ekq->kdepq", group.B[:, span], other.B[:, span])
                flat = product.reshape(-1, product.shape[3] * product.shape[4])
                found.append((slice(span.start * square, span.stop * square), blocks, flat))
        return found

    @cached_property
    def places(self) -> ScatterSum:
        """The places in (n, n) of entries (groups, spans, blocks, P P); those off the diagonal have two."""
        n, once, twice = self.chain.size, list[Indices](), list[Indices]()
        for group, other, index in self._group_pairs:
            alike = (self.i[index] == self.j[index])[:, None, None]
            for span in self.chain.spans:
                rows = self.chain.columns(group, span.start)[np.searchsorted(group.profiles, self.i[index]), :, None]
                columns = self.chain.columns(other, span.start)[np.searchsorted(other.profiles, self.j[index]), None]
                known = (rows < 0) | (columns < 0)
                once.append(np.where(known, -1, rows * n + columns).ravel())
                twice.append(np.where(known | alike, -1, columns * n + rows).ravel())
        return ScatterSum.of(once, twice)

    def total(self, values: Array) -> Array:
        """Return the matrix (n, n) from second derivatives (K, orders of i, orders of j, blocks)."""
        flat, n = values.reshape(len(self.chain.s) * self.chain.orders**2, -1), self.chain.size
        parts = [np.zeros(0)]
        for own, blocks, product in self._products:
            parts.append(((flat[own] if blocks is None else flat[own][:, blocks]).T @ product).ravel())
        return self.places.total(np.concatenate(parts), n * n).reshape(n, n)
