"""Batches of nodes with the same kernels, and their derivatives with respect to the variables.

Profiles and their time derivatives at a node are w_d = T^-d B_d c, with few control points c each, so

    dw_d/dc = T^-d B_d      dw_d/dT = -d/T w_d      d2w_d/dc dT = -d/T T^-d B_d      d2w_d/dT2 = d (d + 1)/T^2 w_d

are the derivatives with respect to control points and the duration (Barman 2020, eq. 4.15, which omits T). The kernels
contain the factors of T and return derivatives with respect to B_d c, and ``ChainRule`` multiplies them by B_d.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from torsor.base.arrays import Array, Flags, Indices
from torsor.compiler.fold import SplineNodes
from torsor.motion.transcription.barrier import BarrierKernels
from torsor.motion.transcription.barrier_folds import BarrierFolds
from torsor.motion.transcription.node_kernels import NodeHessian, NodeJacobian, NodeKernels
from torsor.motion.transcription.splines import Spline
from torsor.motion.transcription.variables import Layout, PhaseLayout

# The chain rule from node derivatives to derivatives with respect to control points, with constant matrices.

# # At node k, profile i has the derivatives B_dk c_i of order d = 0, 1, ... with respect to s, which depend on few
# control points c_i. Derivatives J_kd with respect to these become J_kd B_dk with respect to control points. Nodes
# between the same knots share control points, so only the sum of second derivatives over such nodes is needed, and
#
#     sum_kde H_kde B_dk^T B_ek
#
# is one matrix product for all pairs of profiles.


class SplineGroup(NamedTuple):
    """Profiles with the same spline: B (orders, K, P), the first point (K,), and B of all points.

    ``wide`` (orders K, count) contains all of B, and ``rows`` (K orders, count) the same in the order of the nodes.
    """

    profiles: Indices
    B: Array
    first: Indices
    wide: Array
    rows: Array


@lru_cache(maxsize=256)
def _bases(degree: int, inner: bytes, s: bytes, orders: int) -> tuple[Array, Indices, Array, Array]:
    """Return the read-only arrays of a ``SplineGroup``, which many problems share."""
    spline, at = Spline(degree, np.frombuffer(inner)), np.frombuffer(s)
    local = [spline.local(at, d) for d in range(orders)]
    wide = np.concatenate([spline.matrix(at, d) for d in range(orders)])
    rows = np.ascontiguousarray(wide.reshape(orders, len(at), -1).swapaxes(0, 1)).reshape(wide.shape)
    result = np.stack([B for B, _ in local]), local[0][1], wide, rows
    for array in result:
        array.setflags(write=False)
    return result


class ScatterSum(NamedTuple):
    """A scatter-add: the indices of the entries that are ``taken``, and the indices ``to`` which they are added."""

    taken: Indices
    to: Indices

    @classmethod
    def of(cls, *places: list[Indices]) -> "ScatterSum":
        """Return the scatter-add of entries with one or more target indices each (-1: none)."""
        parts = [np.concatenate([np.zeros(0, dtype=int), *place]) for place in places]
        taken = [np.flatnonzero(part >= 0) for part in parts]
        return cls(np.concatenate(taken), np.concatenate([a[b] for a, b in zip(parts, taken, strict=True)]))

    @classmethod
    def joined(cls, sums: Sequence[tuple["ScatterSum", int]]) -> "ScatterSum":
        """Return the scatter-add of the concatenated entries of several scatter-adds, with their numbers of entries."""
        firsts = np.cumsum([0, *(count for _, count in sums)])
        taken = [own.taken + first for (own, _), first in zip(sums, firsts, strict=False)]
        none = np.zeros(0, dtype=int)
        return cls(np.concatenate([none, *taken]), np.concatenate([none, *(own.to for own, _ in sums)]))

    def total(self, values: Array, size: int) -> Array:
        """Return the sums (size,)."""
        if not self.to.size:
            return np.zeros(size)
        return np.bincount(self.to, values.ravel()[self.taken], minlength=size).astype(float, copy=False)


@dataclass(frozen=True, eq=False)
class ChainRule:
    """Nodes at increasing ``s`` (K,) of a phase: ``orders`` derivatives with respect to s, and ``size`` variables."""

    phase_layout: PhaseLayout
    s: Array
    orders: int
    size: int

    @cached_property
    def groups(self) -> list[SplineGroup]:
        """The profiles, grouped by spline."""
        by_spline: dict[tuple[int, bytes], list[int]] = {}
        for i, spline in enumerate(self.phase_layout.splines):
            by_spline.setdefault((spline.degree, spline.inner.tobytes()), []).append(i)
        s = self.s.tobytes()
        return [
            SplineGroup(np.array(profiles), *_bases(*spline, s, self.orders)) for spline, profiles in by_spline.items()
        ]

    @cached_property
    def spans(self) -> list[slice]:
        """Slices of successive nodes with the same control points in all profiles."""
        firsts = np.stack([group.first for group in self.groups])
        edges = [0, *(1 + np.flatnonzero((np.diff(firsts, axis=1) != 0).any(axis=0))).tolist(), len(self.s)]
        return [slice(begin, end) for begin, end in pairwise(edges) if begin < end]

    def columns(self, group: SplineGroup, nodes: Indices | slice, profiles: Indices) -> Indices:
        """Return the indices in x of the control points (nodes, k, P) of ``profiles`` (k,) at nodes.

        Indices are -1 for known control points and for profiles outside the group.
        """
        points = group.first[nodes][:, None] + np.arange(group.B.shape[2])
        is_member = np.isin(profiles, group.profiles)
        at_nodes = self.phase_layout.columns[profiles[:, None], points[:, None]]
        return np.where(is_member[:, None], at_nodes, -1)

    def rates(self, x: Array) -> Array:
        """Return profiles and their derivatives with respect to s (orders, K, N)."""
        C = self.phase_layout.points(x)
        result = np.empty((self.orders, len(self.s), len(C)))
        if len(self.groups) == 1:
            np.matmul(self.groups[0].wide, C.T, out=result.reshape(-1, len(C)))
            return result
        for group in self.groups:
            points = C[group.profiles, : group.wide.shape[1]]
            result[:, :, group.profiles] = (group.wide @ points.T).reshape(self.orders, len(self.s), -1)
        return result

    def sums(self, values: Array, count: int) -> Array:
        """Return gradients (count, n) of functions, summed over nodes, from derivatives (K, orders N count)."""
        by_order = values.reshape(len(self.s), self.orders, -1, count)
        result = np.zeros((count, self.size + 1))  # the last column collects known points
        for group in self.groups:
            derivatives = by_order if len(self.groups) == 1 else by_order[:, :, group.profiles]
            total = group.wide.T @ derivatives.transpose(1, 0, 2, 3).reshape(len(group.wide), -1)
            shaped = total.reshape(len(total), len(group.profiles), count)
            result[:, self.phase_layout.columns[group.profiles, : len(total)]] = shaped.transpose(2, 1, 0)
        return result[:, :-1]

    @property
    def variables(self) -> Indices:
        """Indices in x of the control points of these nodes."""
        columns = [self.phase_layout.columns[group.profiles, : group.wide.shape[1]] for group in self.groups]
        used = zip(columns, self.groups, strict=True)
        result = np.unique(np.concatenate([indices[:, group.wide.any(axis=0)].ravel() for indices, group in used]))
        return np.asarray(result[result >= 0])


def _mostly_all(chosen: Flags) -> Indices:
    """Return the indices of chosen entries, or all indices if most are chosen, which avoids a selection."""
    return np.arange(len(chosen)) if 2 * int(chosen.sum()) > len(chosen) else np.flatnonzero(chosen)


@dataclass(frozen=True, eq=False)
class Pairs:
    """First derivatives with respect to control points, for pairs of a row and a profile that all nodes share."""

    chain: ChainRule
    profiles: Indices

    @cached_property
    def _parts(self) -> list[tuple[SplineGroup, Indices, Indices]]:
        """The pairs of each group, and the indices in x of their control points (K, P, pairs)."""
        parts = []
        for group in self.chain.groups:
            index = _mostly_all(np.isin(self.profiles, group.profiles))
            columns = self.chain.columns(group, slice(None), self.profiles[index])
            parts.append((group, index, columns.swapaxes(1, 2)))
        return parts

    @cached_property
    def structure(self) -> tuple[Indices, Indices, Indices]:
        """Nodes, pairs and columns of the entries; the column is -1 if a control point is known."""
        blocks = []
        for _, index, columns in self._parts:
            nodes, _, pairs = np.indices(columns.shape)
            blocks.append(np.stack([nodes, index[pairs], columns]).reshape(3, -1))
        nodes, pairs, columns = np.concatenate(blocks, axis=1)
        return nodes, pairs, columns

    def entries(self, values: Array) -> list[Array]:
        """Return the entries from derivatives (K, orders pairs)."""
        by_order, result = values.reshape(len(self.chain.s), self.chain.orders, -1), []
        for group, index, _ in self._parts:
            derivatives = by_order if len(index) == by_order.shape[2] else by_order[:, :, index]
            result.append(np.matmul(group.B.transpose(1, 2, 0), derivatives).ravel())
        return result


@dataclass(frozen=True, eq=False)
class Blocks:
    """Second derivatives with respect to control points of profiles ``i`` and ``j`` (blocks,), i >= j."""

    chain: ChainRule
    i: Indices
    j: Indices

    @cached_property
    def _group_pairs(self) -> list[tuple[SplineGroup, SplineGroup, Indices]]:
        """The pairs of groups, and the indices of their blocks."""
        group_pairs = []
        for group in self.chain.groups:
            for other in self.chain.groups:
                index = _mostly_all(np.isin(self.i, group.profiles) & np.isin(self.j, other.profiles))
                if index.size:
                    group_pairs.append((group, other, index))
        return group_pairs

    @cached_property
    def products(self) -> list[tuple[slice, Indices | None, Array]]:
        """Slices of nodes and orders, blocks, and B_dp B_eq (nodes d e, p q), for each pair of groups and span."""
        products, square = [], self.chain.orders**2
        for group, other, index in self._group_pairs:
            blocks = None if index.size == self.i.size else index
            for span in self.chain.spans:
                product = np.einsum("dkp,ekq->kdepq", group.B[:, span], other.B[:, span])
                flat = product.reshape(-1, product.shape[3] * product.shape[4])
                products.append((slice(span.start * square, span.stop * square), blocks, flat))
        return products

    @cached_property
    def places(self) -> ScatterSum:
        """Target indices in (n, n) of entries (groups, spans, blocks, P P); off-diagonal entries have two."""
        n, once, twice = self.chain.size, list[Indices](), list[Indices]()
        starts = np.array([span.start for span in self.chain.spans])
        for group, other, index in self._group_pairs:
            alike = (self.i[index] == self.j[index])[:, None, None]
            rows = self.chain.columns(group, starts, self.i[index])[..., None]
            columns = self.chain.columns(other, starts, self.j[index])[:, :, None]
            known = (rows < 0) | (columns < 0)
            once.append(np.where(known, -1, rows * n + columns).ravel())
            twice.append(np.where(known | alike, -1, columns * n + rows).ravel())
        return ScatterSum.of(once, twice)

    def parts(self, values: Array, products: Sequence[tuple[slice, Indices | None, Array]] | None = None) -> Array:
        """Return the sums (..., size) of second derivatives (..., K, orders of i, orders of j, blocks) over nodes.

        The argument ``products`` contains the arrays of the property on the device of the values.
        """
        lead = values.shape[:-2]
        flat = values.reshape(*lead, len(self.chain.s) * self.chain.orders**2, -1)
        parts = [np.zeros((*lead, 0), like=values)]
        for node_orders, blocks, product in self.products if products is None else products:
            own = flat[..., node_orders, :] if blocks is None else flat[..., node_orders, :][..., blocks]
            parts.append((np.swapaxes(own, -1, -2) @ product).reshape(*lead, -1))
        return np.concatenate(parts, axis=-1)

    @cached_property
    def size(self) -> int:
        """Number of parts."""
        return sum(
            len(index) * product.shape[1]
            for _, blocks, product in self.products
            for index in [range(len(self.i)) if blocks is None else blocks]
        )


class SecondDerivatives(NamedTuple):
    """The ``parts`` of ``Blocks``, derivatives with respect to T and the numbers, and those of the squares.

    ``border`` (others, n) contains half of the derivatives among T and the numbers. ``squares`` are sparse entries.
    """

    parts: Array
    border: Array
    squares: Array


@dataclass(frozen=True, eq=False)
class Batch:
    """Nodes at increasing ``s`` (K,) of one phase, with integration weights (K,).

    ``kernels`` are the kernels of the terms. Rows are ordered by node: row k m + r is row r of node k.
    """

    kernels: NodeKernels
    layout: Layout
    phase: int
    s: Array
    weights: Array
    # The last profiles (K, N) and closed-loop positions (K, nq), and the last positions at which the loops were closed.
    _before: list[Array] = field(default_factory=list, init=False)
    # The last x with its inputs, because values and derivatives are evaluated at the same x, and their Jacobian.
    _last: list[Any] = field(default_factory=lambda: [None, {}], init=False)
    _last_jacobian: list[Any] = field(default_factory=lambda: [None, ()], init=False)

    @property
    def m(self) -> int:
        """Number of rows."""
        return len(self.s) * self.kernels.m

    @cached_property
    def chain(self) -> ChainRule:
        """The chain rule from the nodes to the variables."""
        return ChainRule(self.layout.phases[self.phase], self.s, self.kernels.orders, self.layout.size)

    @cached_property
    def _specials(self) -> list[int]:
        """Indices in x of T (-1 if it is known) and of the shared numbers."""
        return [self.chain.phase_layout.duration, *self.layout.numbers.values()]

    @cached_property
    def others(self) -> list[int]:
        """Indices in x of T, if it is a variable, and of the shared numbers."""
        return [place for place in self._specials if place >= 0]

    @cached_property
    def _node_jacobian(self) -> NodeJacobian:
        return self.kernels.jacobian(self._specials[0] >= 0)

    @cached_property
    def _node_hessian(self) -> NodeHessian:
        return self.kernels.hessian(self._specials[0] >= 0)

    def _inputs(self, x: Array) -> dict[str, Array]:
        """Return the kernel inputs: T, the profiles and their time derivatives (orders, K, N), and the others."""
        T, w = self.chain.phase_layout.seconds(x), self.chain.rates(x)
        for d in range(1, len(w)):
            w[d] /= T**d
        Q = self._closed_positions(w[0]) if self.kernels.node.model.is_closed else None
        inputs: dict[str, Any] = {f"y_{k}": w[k] for k in range(self.kernels.orders)}
        inputs |= {"T": np.array(T), "numbers": x[self._specials[1:]], "s": self.s, "data": self.data}
        inputs["given"] = self.kernels.given
        return inputs if Q is None else inputs | {"Q": Q}

    @cached_property
    def data(self) -> Array:
        """The data (K, count) of the terms."""
        return self.kernels.data(self.s)

    def _closed_positions(self, y: Array) -> Array:
        """Return positions (K, nq) of closed loops near the last ones, or NaN if the loops cannot be closed."""
        before = self._before
        if before and np.array_equal(before[0], y):
            return before[1]
        guess = before[2] if before else None
        Q = self.kernels.node.model.positions(y, guess)
        good = np.asarray(np.isfinite(Q).all(axis=1))
        if good.all() or guess is not None:  # after a failure, the assembly mode is kept
            before[:] = [y.copy(), Q, Q if guess is None else np.where(good[:, None], Q, guess)]
        return Q

    def _at(self, x: Array) -> dict[str, Array]:
        place = x.tobytes()
        if place != self._last[0]:
            self._last[:] = place, self._inputs(x)
        inputs: dict[str, Array] = self._last[1]
        return inputs

    def value(self, x: Array) -> tuple[Array, float]:
        """Return the rows (K m,) and the integral."""
        result = self.kernels.value(**self._at(x))
        rows = result["rows"].ravel() if self.kernels.m else np.zeros(0)
        return rows, float(self.weights @ result["cost"][:, 0])

    # First derivatives

    @cached_property
    def _pairs(self) -> Pairs:
        return Pairs(self.chain, self._node_jacobian.pairs[1])

    @cached_property
    def structure(self) -> tuple[Indices, Indices]:
        """Rows and columns of the entries of ``jacobian``: with respect to control points, T and the numbers.

        The column is -1 if a control point or T is known.
        """
        jacobian, at = self._node_jacobian, np.arange(len(self.s)) * self.kernels.m
        nodes, pairs, columns = self._pairs.structure
        timed, shared = at[:, None] + jacobian.timed, at[:, None] + jacobian.entries[0]
        places = np.broadcast_to(np.array(self._specials[1:], dtype=int)[jacobian.entries[1]], shared.shape)
        rows = np.concatenate([at[nodes] + jacobian.pairs[0][pairs], timed.ravel(), shared.ravel()])
        return rows, np.concatenate([columns, np.full(timed.size, self._specials[0]), places.ravel()])

    def jacobian(self, x: Array) -> tuple[Array, Array]:
        """Return the entries of the row Jacobian (see ``structure``), and the gradient (n,) of the integral."""
        inputs = self._at(x)
        if self._last_jacobian[0] is not inputs:
            derivatives = self._node_jacobian.call(**inputs)
            values = self._pairs.entries(derivatives["rows"]) if "rows" in derivatives else [np.zeros(0)]
            values += [derivatives[name].ravel() for name in ("timed", "shared") if name in derivatives]
            gradient = np.zeros(self.layout.size)
            if self.kernels.costs:  # the integrand has derivatives (K, orders N + specials)
                weighted, profile_count = derivatives["cost"] * self.weights[:, None], self.kernels.profiles
                gradient = self.chain.sums(weighted[:, :profile_count], 1)[0]
                for place, value in zip(self.others, weighted[:, profile_count:].sum(axis=0), strict=True):
                    gradient[place] += value
            self._last_jacobian[:] = inputs, (np.concatenate(values), gradient)
        entries, gradient = self._last_jacobian[1]
        return entries, gradient

    # Second derivatives

    @cached_property
    def blocks(self) -> Blocks:
        """The blocks of second derivatives."""
        return Blocks(self.chain, *self._node_hessian.blocks)

    @cached_property
    def _square_pairs(self) -> Pairs:
        return Pairs(self.chain, self._node_hessian.pairs[1])

    @property
    def square_structure(self) -> tuple[Indices, Indices]:
        """Rows and columns of the derivatives of the squares; row k count + r is square r of node k."""
        count, (nodes, index, columns) = self.kernels.square_count, self._square_pairs.structure
        rows = np.concatenate(
            [
                nodes * count + self._node_hessian.pairs[0][index],
                np.repeat(np.arange(len(self.s) * count), len(self.others)),
            ]
        )
        return rows, np.concatenate([columns, np.tile(np.array(self.others, dtype=int), len(self.s) * count)])

    @cached_property
    def barrier(self) -> BarrierKernels:
        """The kernels of the rows in an interior-point method."""
        return BarrierKernels(self.kernels, self._specials[0] >= 0)

    @cached_property
    def folds(self) -> BarrierFolds | None:
        """The folds of the rows; None if the profiles have different splines."""
        groups = self.chain.groups
        return BarrierFolds(self.barrier, groups[0].B.shape[2]) if len(groups) == 1 else None

    @cached_property
    def spline_nodes(self) -> SplineNodes:
        """The nodes of the only spline."""
        group = self.chain.groups[0]
        return SplineNodes(group.B, group.first, group.wide.shape[1])

    @cached_property
    def condensed_blocks(self) -> Blocks:
        """The blocks of second derivatives of the condensed matrix."""
        return Blocks(self.chain, *self.barrier.blocks)

    def second_derivatives(self, x: Array, multipliers: Array, weight: float) -> SecondDerivatives:
        """Return the second derivatives of weight . integral + multipliers . rows, without products of squares."""
        weights = {"multipliers": multipliers.reshape(len(self.s), self.kernels.m), "weight": weight * self.weights}
        derivatives, others = self._node_hessian.call(**self._at(x), **weights), self.others
        parts = self.blocks.parts(derivatives["blocks"]) if "blocks" in derivatives else np.zeros(0)
        border, squares = np.zeros((len(others), self.layout.size)), list[Array]()
        if others:
            border = self.chain.sums(derivatives["mixed"], len(others))
            border[:, others] += derivatives["corner"].sum(axis=0).reshape(len(others), -1) / 2
        if "squares" in derivatives:
            size = self.kernels.orders * len(self._square_pairs.profiles)
            squares = self._square_pairs.entries(derivatives["squares"][:, :size])
            squares.append(derivatives["squares"][:, size:].ravel())
        return SecondDerivatives(parts, border, np.concatenate([np.zeros(0), *squares]))

    @cached_property
    def hessian_pattern(self) -> Flags:
        """The sparsity pattern (n, n) of the Hessian."""
        n, others, seen = self.layout.size, self.others, self.chain.variables
        result = np.zeros((n, n), dtype=bool)
        result.ravel()[self.blocks.places.to] = True
        for other in others:
            result[other, seen] = result[seen, other] = True
            result[other, others] = True
        return result
