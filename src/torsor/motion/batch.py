"""All nodes of a kind at once: the function of a node evaluated as one batch, and carried to the variables.

Profiles and their rates at a node are w_d = T^-d B_d c, with few control points c each, so that

    dw_d/dc = T^-d B_d      dw_d/dT = -d/T w_d      d2w_d/dc dT = -d/T T^-d B_d      d2w_d/dT2 = d (d + 1)/T^2 w_d

carry derivatives of a node's terms to control points and to the duration (document 001, eq. 4.15, which leaves T out).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from torsor.motion.layout import Layout
from torsor.motion.traced import Traced

__all__ = ["Batch"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


class _Scaled(NamedTuple):
    """The basis in time at x: T, w (orders, K, N), and T^-d B_d (orders, K, N, P)."""

    T: float
    w: Array
    B: Array


@dataclass(frozen=True, eq=False)
class Batch:
    """Nodes at shares ``s`` (K,) of one phase, with the terms that ``traced`` has; ``weights`` (K,) are the integral's.

    Rows are node after node: row k m + r is row r of node k.
    """

    traced: Traced
    layout: Layout
    phase: int
    s: Array
    weights: Array

    @property
    def m(self) -> int:
        """Number of rows."""
        return len(self.s) * self.traced.m

    @cached_property
    def _basis(self) -> tuple[Array, Indices]:
        return self.layout.stretches[self.phase].basis(self.s, self.traced.orders)

    @cached_property
    def _columns(self) -> Indices:
        """Where the control points (K, N, P) are in x; -1 for those that are known."""
        stretch, places = self.layout.stretches[self.phase], self._basis[1]
        return stretch.columns[np.arange(places.shape[1])[None, :, None], places]

    def _scaled(self, x: Array) -> _Scaled:
        stretch, (B, places) = self.layout.stretches[self.phase], self._basis
        T = stretch.seconds(x)
        C = stretch.points(x)[np.arange(places.shape[1])[None, :, None], places]
        B = B * (T ** -np.arange(len(B), dtype=float))[:, None, None, None]
        return _Scaled(T, np.einsum("dkip,kip->dki", B, C), B)

    def _numbers(self, x: Array) -> Array:
        return x[list(self.layout.numbers.values())]

    def _inputs(self, x: Array, at: _Scaled) -> dict[str, Array]:
        Q = self._closed(at.w[0]) if self.traced.node.subject.is_closed else None
        return self.traced.inputs(at.w, at.T, self._numbers(x), self.s, Q)

    @cached_property
    def _before(self) -> list[Array]:
        """The profiles (K, N) and positions (K, nq) that closed loops were last put together with."""
        return []

    def _closed(self, y: Array) -> Array:
        """Return positions (K, nq) of closed loops, from where they were before; NaN where they cannot be closed."""
        before = self._before
        if before and np.array_equal(before[0], y):
            return before[1]
        guess = before[2] if before else None
        Q = self.traced.node.subject.positions(y, guess)
        good = np.asarray(np.isfinite(Q).all(axis=1))
        if good.all() or guess is not None:  # what cannot be closed does not lose the way of assembly
            before[:] = [y.copy(), Q, Q if guess is None else np.where(good[:, None], Q, guess)]
        return Q

    def value(self, x: Array) -> tuple[Array, float]:
        """Return the rows (K m,), and the integral."""
        rows, cost = self.traced.value(**self._inputs(x, self._scaled(x)))
        return rows.ravel(), float(self.weights @ cost[:, 0])

    # First derivatives

    @cached_property
    def _pairs(self) -> tuple[Indices, list[tuple[Indices, Indices]]]:
        """The pairs (row, profile) that depend on each other, and for each order which entries belong to which pair."""
        N, (rows, columns) = self.traced.count, self.traced.pattern
        own = columns < self.traced.profiles
        pairs, index = np.unique(np.stack([rows, columns % N])[:, own], axis=1, return_inverse=True)
        orders = columns[own] // N
        entries = np.flatnonzero(own)
        parts = [(entries[orders == d], index.ravel()[orders == d]) for d in range(self.traced.orders)]
        return pairs, parts

    @cached_property
    def structure(self) -> tuple[Indices, Indices]:
        """Rows and columns of the entries that ``slope`` gives: for control points, then T, then the numbers."""
        K, m, (pairs, _) = len(self.s), self.traced.m, self._pairs
        rows = np.broadcast_to(np.arange(K)[:, None, None] * m + pairs[0][:, None], self._shape).ravel()
        columns = self._columns[:, pairs[1], :].ravel()
        parts = [(rows[self._free], columns[self._free])]
        at, numbers = self.layout.stretches[self.phase].duration, list(self.layout.numbers.values())
        if at >= 0:
            parts.append((self._rows_of(self._timed), np.full(K * len(self._timed), at)))
        entries, which = self._number_entries
        places = np.array(numbers, dtype=int)[which]
        rows_ = np.arange(K)[:, None] * m + self.traced.pattern.rows[entries]
        parts.append((rows_.ravel(), np.broadcast_to(places, rows_.shape).ravel()))
        return np.concatenate([each[0] for each in parts]), np.concatenate([each[1] for each in parts])

    @property
    def _shape(self) -> tuple[int, int, int]:
        return len(self.s), self._pairs[0].shape[1], self._columns.shape[2]

    @cached_property
    def _free(self) -> Indices:
        """Which of the entries (K, pairs, P) are by variables; functions that only pad the basis are none."""
        wide = self._basis[0].any(axis=0)  # (K, N, P)
        pairs = self._pairs[0]
        return np.flatnonzero(((self._columns >= 0) & wide)[:, pairs[1], :].ravel())

    def _rows_of(self, rows: Indices) -> Indices:
        return np.asarray((np.arange(len(self.s))[:, None] * self.traced.m + rows).ravel())

    @cached_property
    def _timed(self) -> Indices:
        """Rows that depend on the duration."""
        N, (rows, columns) = self.traced.count, self.traced.pattern
        return np.unique(rows[((columns >= N) & (columns < self.traced.profiles)) | (columns == self.traced.profiles)])

    @cached_property
    def _number_entries(self) -> tuple[Indices, Indices]:
        which = self.traced.pattern.columns - self.traced.profiles - 1
        entries = np.flatnonzero(which >= 0)
        return entries, which[entries]

    @cached_property
    def _into_timed(self) -> Array:
        """What adds entries (nnz, timed rows) of orders above 0, times -d, and of T, to the column of T."""
        return np.asarray(self.traced.pattern.rows[:, None] == self._timed, dtype=float)

    def _rates(self, at: _Scaled) -> Array:
        """Return du/dT of all of u (K, u): -d/T w_d, and 1 for T itself."""
        K, N = len(self.s), self.traced.count
        found = np.zeros((K, self.traced.size))
        for d in range(1, self.traced.orders):
            found[:, d * N : (d + 1) * N] = -d / at.T * at.w[d]
        found[:, self.traced.profiles] = 1.0
        return found

    def slope(self, x: Array) -> tuple[Array, Array]:
        """Return the entries of the rows' derivatives (see ``structure``), and the gradient (x,) of the integral."""
        at = self._scaled(x)
        rows, cost = self.traced.slope(**self._inputs(x, at))
        return self._entries(rows, at), self._gradient(cost * self.weights[:, None], at)

    def _entries(self, found: Array, at: _Scaled) -> Array:
        pairs, parts = self._pairs
        local = np.zeros(self._shape)
        for d, (entries, index) in enumerate(parts):
            if entries.size:
                i = pairs[1][index]
                local[:, index, :] += found[:, entries, None] * at.B[d][:, i, :]
        values = [local.ravel()[self._free]]
        if self.layout.stretches[self.phase].duration >= 0:
            timed = found * self._rates(at)[:, self.traced.pattern.columns]
            values.append((timed @ self._into_timed).ravel())
        values.append(found[:, self._number_entries[0]].ravel())
        return np.concatenate(values)

    def _gradient(self, slopes: Array, at: _Scaled) -> Array:
        """Return the gradient (x,) of a sum of functions of nodes, from its derivatives (K, u)."""
        gradient, D, N = np.zeros(self.layout.size + 1), self.traced.orders, self.traced.count
        z = slopes[:, : D * N].reshape(len(self.s), D, N)
        np.add.at(gradient, self._columns, np.einsum("kdi,dkip->kip", z, at.B))
        duration = self.layout.stretches[self.phase].duration
        if duration >= 0:
            gradient[duration] += (slopes * self._rates(at)).sum()
        if self.layout.numbers:
            gradient[list(self.layout.numbers.values())] += slopes[:, D * N + 1 :].sum(axis=0)
        return gradient[:-1]  # what is known has gone to the last

    # Second derivatives

    def bend(self, x: Array, multipliers: Array, weight: float) -> Array:
        """Return the Hessian (x, x) of weight . integral + multipliers . rows."""
        at, K, D, N = self._scaled(x), len(self.s), self.traced.orders, self.traced.count
        given = {"multipliers": multipliers.reshape(K, self.traced.m), "weight": weight * self.weights}
        lower, slopes = self.traced.bend(**self._inputs(x, at), **given)
        H = self.traced.unpack(lower)
        n = self.layout.size
        total = np.zeros((n + 1, n + 1))
        z = H[:, : D * N, : D * N].reshape(K, D, N, D, N)
        half = sum(z[:, :, :, d, :, None] * at.B[d][:, None, None, :, :] for d in range(D))  # (K, D, N, N, P)
        local = sum(half[:, d, :, None, :, :] * at.B[d][:, :, :, None, None] for d in range(D))  # (K, N, P, N, P)
        where = self._columns.reshape(K, -1)
        flat = np.where(where < 0, n, where)
        index = (flat[:, :, None] * (n + 1) + flat[:, None, :]).ravel()
        total += np.bincount(index, local.ravel(), minlength=(n + 1) ** 2).reshape(n + 1, n + 1)
        duration, numbers = self.layout.stretches[self.phase].duration, list(self.layout.numbers.values())
        if duration >= 0:
            rates = self._rates(at)
            pulled = np.einsum("kuv,kv->ku", H, rates)
            orders = np.repeat(np.arange(D), N)
            mixed = (pulled[:, : D * N] - orders / at.T * slopes[:, : D * N]).reshape(K, D, N)
            column = np.bincount(flat.ravel(), np.einsum("kdi,dkip->kip", mixed, at.B).ravel(), minlength=n + 1)
            total[duration] += column
            total[:, duration] += column
            w = at.w.transpose(1, 0, 2).reshape(K, D * N)
            second = (slopes[:, : D * N] * orders * (orders + 1) * w).sum() / at.T**2
            total[duration, duration] += (pulled * rates).sum() + second
            if numbers:
                across = pulled[:, D * N + 1 :].sum(axis=0)
                total[duration, numbers] += across
                total[numbers, duration] += across
        for k, number in enumerate(numbers):
            by_number = H[:, : D * N, D * N + 1 + k].reshape(K, D, N)
            column = np.bincount(flat.ravel(), np.einsum("kdi,dkip->kip", by_number, at.B).ravel(), minlength=n + 1)
            total[number] += column
            total[:, number] += column
            total[number, numbers] += H[:, D * N + 1 + k, D * N + 1 :].sum(axis=0)
        return total[:-1, :-1]

    @cached_property
    def touched(self) -> NDArray[np.bool_]:
        """Where the Hessian may be other than zero (x, x), as 0 and 1."""
        n, D, N = self.layout.size, self.traced.orders, self.traced.count
        pattern = np.zeros((self.traced.size, self.traced.size), dtype=bool)
        i, j = self.traced.bend_pattern
        pattern[i, j] = pattern[j, i] = True
        own = pattern[: D * N, : D * N].reshape(D, N, D, N).any(axis=(0, 2))
        found = np.zeros((n + 1, n + 1), dtype=bool)
        flat = np.where(self._columns < 0, n, self._columns)
        for i, j in np.argwhere(own):
            rows, columns = np.broadcast_arrays(flat[:, i, :, None], flat[:, j, None, :])
            found[rows, columns] = True
        duration, numbers = self.layout.stretches[self.phase].duration, list(self.layout.numbers.values())
        seen = np.unique(flat)
        for special in ([duration] if duration >= 0 else []) + numbers:
            found[special, seen] = found[seen, special] = True
            found[special, numbers] = found[numbers, special] = True
            if duration >= 0:
                found[special, duration] = found[duration, special] = True
        return found[:-1, :-1]
