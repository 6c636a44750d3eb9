"""From derivatives at nodes to derivatives by control points: what is linear, with numbers that never change.

At node k, profile i has rates by the share s of B_dk c_i, d = 0, 1, ..., of few control points c_i. Derivatives J_kd by
these rates become J_kd B_dk by control points. Nodes between the same knots have the same control points, so that of
second derivatives only the sum over such nodes matters, and

    sum_kde H_kde B_dk^T B_ek

is one product of matrices for all pairs of profiles.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from torsor.motion.transcription.layout import PhaseLayout
from torsor.motion.transcription.splines import Spline

__all__ = ["Blocks", "Carry", "Kind", "Pairs", "Sum"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


class Kind(NamedTuple):
    """Profiles with the same spline: B (orders, K, P), the first point (K,), and B of all points (orders K, count)."""

    profiles: Indices
    B: Array
    first: Indices
    wide: Array


class Sum(NamedTuple):
    """What adds entries to their places: which are ``taken``, and where they go (``to``)."""

    taken: Indices
    to: Indices

    @classmethod
    def of(cls, *places: list[Indices]) -> "Sum":
        """Return the sum of entries with one place or several, -1 for none."""
        parts = [np.concatenate([np.zeros(0, dtype=int), *each]) for each in places]
        taken = [np.flatnonzero(each >= 0) for each in parts]
        return cls(np.concatenate(taken), np.concatenate([a[b] for a, b in zip(parts, taken, strict=True)]))

    def total(self, values: Array, size: int) -> Array:
        """Return the sums (size,)."""
        if not self.to.size:
            return np.zeros(size)
        return np.bincount(self.to, values.ravel()[self.taken], minlength=size).astype(float, copy=False)


@dataclass(frozen=True, eq=False)
class Carry:
    """Nodes at shares ``s`` (K,), rising, of a phase; ``orders`` of rates are used, and ``size`` counts variables."""

    stretch: PhaseLayout
    s: Array
    orders: int
    size: int

    @cached_property
    def kinds(self) -> list[Kind]:
        """The profiles, those with the same spline together."""
        found: dict[tuple[int, bytes], tuple[Spline, list[int]]] = {}
        for i, spline in enumerate(self.stretch.splines):
            found.setdefault((spline.degree, spline.inner.tobytes()), (spline, []))[1].append(i)
        kinds = []
        for spline, profiles in found.values():
            local = [spline.local(self.s, d) for d in range(self.orders)]
            wide = np.concatenate([spline.matrix(self.s, d) for d in range(self.orders)])
            kinds.append(Kind(np.array(profiles), np.stack([B for B, _ in local]), local[0][1], wide))
        return kinds

    @cached_property
    def spans(self) -> list[slice]:
        """Nodes, one after the other, that have the same control points in all profiles."""
        firsts = np.stack([kind.first for kind in self.kinds])
        edges = [0, *(1 + np.flatnonzero((np.diff(firsts, axis=1) != 0).any(axis=0))).tolist(), len(self.s)]
        return [slice(begin, end) for begin, end in pairwise(edges) if begin < end]

    def columns(self, kind: Kind, node: int) -> Indices:
        """Return where the control points (profiles of the kind, P) at a node are in x; -1 for those that are known."""
        first, P = kind.first[node], kind.B.shape[2]
        return np.asarray(self.stretch.columns[kind.profiles, first : first + P])

    def rates(self, x: Array) -> Array:
        """Return profiles and their rates by s (orders, K, N)."""
        C = self.stretch.points(x)
        found = np.empty((self.orders, len(self.s), len(C)))
        if len(self.kinds) == 1:
            np.matmul(self.kinds[0].wide, C.T, out=found.reshape(-1, len(C)))
            return found
        for kind in self.kinds:
            own = C[kind.profiles, : kind.wide.shape[1]]
            found[:, :, kind.profiles] = (kind.wide @ own.T).reshape(self.orders, len(self.s), -1)
        return found

    def sums(self, values: Array, count: int) -> Array:
        """Return (count, x): sums over nodes of derivatives (K, orders N count) by rates, of ``count`` functions."""
        by_order = values.reshape(len(self.s), self.orders, -1, count)
        found = np.zeros((count, self.size + 1))  # what is known goes to the last column
        for kind in self.kinds:
            own = by_order if len(self.kinds) == 1 else by_order[:, :, kind.profiles]
            total = kind.wide.T @ own.transpose(1, 0, 2, 3).reshape(len(kind.wide), -1)
            shaped = total.reshape(len(total), len(kind.profiles), count)
            found[:, self.stretch.columns[kind.profiles, : len(total)]] = shaped.transpose(2, 1, 0)
        return found[:, :-1]

    def gram(self, values: Array, weights: Array, specials: Sequence[int]) -> Array:
        """Return J^T W J (x, x) of m functions with derivatives (K, orders m N + m specials), by rates and by others.

        ``weights`` (K,) are those of the nodes, ``specials`` say where the others are in x (-1: known).
        """
        found, count = np.zeros((self.size, self.size)), len(self.stretch.splines)
        m = values.shape[1] // (self.orders * count + len(specials))
        root = np.sqrt(np.abs(weights))[:, None, None]
        rates = values[:, : self.orders * m * count].reshape(len(self.s), self.orders, m, count)
        others = values[:, self.orders * m * count :].reshape(len(self.s), m, -1) * root
        for span in self.spans:
            size = span.stop - span.start
            parts, places = [others[span].reshape(size * m, -1)], [np.array(specials, dtype=int)]
            for kind in self.kinds:
                own = rates[span] if len(self.kinds) == 1 else rates[span][..., kind.profiles]
                # points (nodes, P, functions profiles): one product a node
                points = (kind.B[:, span].transpose(1, 2, 0) * root[span]) @ own.reshape(size, self.orders, -1)
                points = points.reshape(size, -1, m, len(kind.profiles)).transpose(0, 2, 1, 3)
                parts.append(points.reshape(size * m, -1))
                places.append(self.columns(kind, span.start).T.ravel())
            known = [place < 0 for place in places]
            own_parts = [a if not b.any() else a[:, ~b] for a, b in zip(parts, known, strict=True) if not b.all()]
            to = np.concatenate([a[~b] for a, b in zip(places, known, strict=True)])
            if to.size:
                J = own_parts[0] if len(own_parts) == 1 else np.concatenate(own_parts, axis=1)
                signs = np.repeat(np.sign(weights[span]), m)[:, None]
                found[np.ix_(to, to)] += J.T @ (J if (signs >= 0).all() else J * signs)
        return found

    @property
    def seen(self) -> Indices:
        """Which variables the control points at these nodes are."""
        parts = [
            self.stretch.columns[kind.profiles, : kind.wide.shape[1]][:, kind.wide.any(axis=0)].ravel()
            for kind in self.kinds
        ]
        found = np.unique(np.concatenate(parts))
        return np.asarray(found[found >= 0])


@dataclass(frozen=True, eq=False)
class Pairs:
    """Entries by rates of profiles, at every node the same ``profiles`` (pairs,), each by all control points."""

    carry: Carry
    profiles: Indices

    @cached_property
    def _parts(self) -> list[tuple[Kind, Indices, Indices]]:
        """For each kind the pairs that are of its profiles, and where their control points (K, pairs, P) are in x."""
        found = []
        for kind in self.carry.kinds:
            index = np.flatnonzero(np.isin(self.profiles, kind.profiles))
            own = np.searchsorted(kind.profiles, self.profiles[index])
            columns = [self.carry.columns(kind, node)[own] for node in range(len(self.carry.s))]
            found.append((kind, index, np.stack(columns)))
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
        """Return the entries, from those by rates (K, orders pairs)."""
        by_order, found = values.reshape(len(self.carry.s), self.carry.orders, -1), []
        for kind, index, _ in self._parts:
            own = by_order if len(index) == by_order.shape[2] else by_order[:, :, index]
            found.append(np.matmul(own.transpose(0, 2, 1), kind.B.transpose(1, 0, 2)).ravel())
        return found


@dataclass(frozen=True, eq=False)
class Blocks:
    """Second derivatives by rates of profiles ``i`` and ``j`` (blocks,), i >= j."""

    carry: Carry
    i: Indices
    j: Indices

    @cached_property
    def _kinds(self) -> list[tuple[Kind, Kind, Indices]]:
        """The pairs of kinds, and which blocks are of them."""
        found = []
        for kind in self.carry.kinds:
            for other in self.carry.kinds:
                index = np.flatnonzero(np.isin(self.i, kind.profiles) & np.isin(self.j, other.profiles))
                if index.size:
                    found.append((kind, other, index))
        return found

    @cached_property
    def _products(self) -> list[tuple[slice, Indices | None, Array]]:
        """Of each pair of kinds and span: nodes times orders, which blocks, and B_dp B_eq (nodes d e, p q)."""
        found, square = [], self.carry.orders**2
        for kind, other, index in self._kinds:
            blocks = None if index.size == self.i.size else index
            for span in self.carry.spans:
                product = np.einsum("dkp,ekq->kdepq", kind.B[:, span], other.B[:, span])
                flat = product.reshape(-1, product.shape[3] * product.shape[4])
                found.append((slice(span.start * square, span.stop * square), blocks, flat))
        return found

    @cached_property
    def places(self) -> Sum:
        """Where entries (kinds, spans, blocks, P P) go in (x, x); those off the diagonal go to both sides of it."""
        n, once, twice = self.carry.size, list[Indices](), list[Indices]()
        for kind, other, index in self._kinds:
            alike = (self.i[index] == self.j[index])[:, None, None]
            for span in self.carry.spans:
                rows = self.carry.columns(kind, span.start)[np.searchsorted(kind.profiles, self.i[index]), :, None]
                columns = self.carry.columns(other, span.start)[np.searchsorted(other.profiles, self.j[index]), None]
                known = (rows < 0) | (columns < 0)
                once.append(np.where(known, -1, rows * n + columns).ravel())
                twice.append(np.where(known | alike, -1, columns * n + rows).ravel())
        return Sum.of(once, twice)

    def total(self, values: Array) -> Array:
        """Return the matrix (x, x) from second derivatives by rates (K, orders of i, orders of j, blocks)."""
        flat, n = values.reshape(len(self.carry.s) * self.carry.orders**2, -1), self.carry.size
        parts = [np.zeros(0)]
        for own, blocks, product in self._products:
            parts.append(((flat[own] if blocks is None else flat[own][:, blocks]).T @ product).ravel())
        return self.places.total(np.concatenate(parts), n * n).reshape(n, n)
