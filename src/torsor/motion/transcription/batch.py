"""All nodes of a kind at once: the kernels of a node evaluated as one batch, with derivatives by the variables.

Profiles and their time derivatives at a node are w_d = T^-d B_d c, with few control points c each, so that

    dw_d/dc = T^-d B_d      dw_d/dT = -d/T w_d      d2w_d/dc dT = -d/T T^-d B_d      d2w_d/dT2 = d (d + 1)/T^2 w_d

give derivatives by control points and by the duration (Barman 2020, eq. 4.15, which leaves T out). The kernels
contain the factors of T and give derivatives by B_d c; ``chain_rule`` does the rest.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from torsor.base.arrays import Array, Flags, Indices
from torsor.motion.transcription.chain_rule import Blocks, ChainRule, Pairs
from torsor.motion.transcription.layout import Layout
from torsor.motion.transcription.node_kernels import NodeHessian, NodeJacobian, NodeKernels


@dataclass(frozen=True, eq=False)
class Batch:
    """Nodes at increasing ``s`` (K,) of one phase, with the weights (K,) of the integral.

    ``kernels`` are those of the terms. Rows are ordered by node: row k m + r is row r of node k.
    """

    kernels: NodeKernels
    layout: Layout
    phase: int
    s: Array
    weights: Array

    @property
    def m(self) -> int:
        """Number of rows."""
        return len(self.s) * self.kernels.m

    @cached_property
    def _chain(self) -> ChainRule:
        return ChainRule(self.layout.phases[self.phase], self.s, self.kernels.orders, self.layout.size)

    @cached_property
    def _specials(self) -> list[int]:
        """Indices in x of T (-1 if it is known) and of the shared numbers."""
        return [self._chain.phase_layout.duration, *self.layout.numbers.values()]

    @property
    def _by_T(self) -> bool:
        """Whether T is a variable."""
        return self._specials[0] >= 0

    @property
    def _others(self) -> list[int]:
        """Indices in x of T, if it is a variable, and of the shared numbers."""
        return self._specials if self._by_T else self._specials[1:]

    @cached_property
    def _node_jacobian(self) -> NodeJacobian:
        return self.kernels.jacobian(self._by_T)

    @cached_property
    def _node_hessian(self) -> NodeHessian:
        return self.kernels.hessian(self._by_T)

    def _inputs(self, x: Array) -> dict[str, Array]:
        """Return the inputs of kernels: T, the profiles with their time derivatives (orders, K, N), and the others."""
        T, w = self._chain.phase_layout.seconds(x), self._chain.rates(x)
        for d in range(1, len(w)):
            w[d] /= T**d
        Q = self._closed_positions(w[0]) if self.kernels.node.model.is_closed else None
        return self.kernels.inputs(w, T, x[self._specials[1:]], self.s, Q) | {"data": self._data}

    @cached_property
    def _data(self) -> Array:
        return self.kernels.data(self.s)

    @cached_property
    def _before(self) -> list[Array]:
        """The last profiles (K, N) and positions (K, nq) of closed loops, and the last ones that closed."""
        return []

    def _closed_positions(self, y: Array) -> Array:
        """Return positions (K, nq) of closed loops, near the last ones; NaN where the loops cannot be closed."""
        before = self._before
        if before and np.array_equal(before[0], y):
            return before[1]
        guess = before[2] if before else None
        Q = self.kernels.node.model.positions(y, guess)
        good = np.asarray(np.isfinite(Q).all(axis=1))
        if good.all() or guess is not None:  # a failure keeps the assembly mode
            before[:] = [y.copy(), Q, Q if guess is None else np.where(good[:, None], Q, guess)]
        return Q

    @cached_property
    def _last(self) -> list[Any]:
        """The last x and its inputs: values and derivatives are evaluated at the same x in turn."""
        return [None, {}]

    def _at(self, x: Array) -> dict[str, Array]:
        place = x.tobytes()
        if place != self._last[0]:
            self._last[:] = place, self._inputs(x)
        inputs: dict[str, Array] = self._last[1]
        return inputs

    def value(self, x: Array) -> tuple[Array, float]:
        """Return the rows (K m,) and the integral."""
        found = self.kernels.value(**self._at(x))
        rows = found["rows"].ravel() if self.kernels.m else np.zeros(0)
        return rows, float(self.weights @ found["cost"][:, 0])

    # First derivatives

    @cached_property
    def _pairs(self) -> Pairs:
        return Pairs(self._chain, self._node_jacobian.pairs[1])

    @cached_property
    def structure(self) -> tuple[Indices, Indices]:
        """Rows and columns of the entries of ``jacobian``: by control points, then T, then the numbers.

        The column is -1 where a control point or T is known.
        """
        jacobian, at = self._node_jacobian, np.arange(len(self.s)) * self.kernels.m
        nodes, pairs, columns = self._pairs.structure
        timed, shared = at[:, None] + jacobian.timed, at[:, None] + jacobian.entries[0]
        places = np.broadcast_to(np.array(self._specials[1:], dtype=int)[jacobian.entries[1]], shared.shape)
        rows = np.concatenate([at[nodes] + jacobian.pairs[0][pairs], timed.ravel(), shared.ravel()])
        return rows, np.concatenate([columns, np.full(timed.size, self._specials[0]), places.ravel()])

    def jacobian(self, x: Array) -> tuple[Array, Array]:
        """Return the entries of the rows' Jacobian (see ``structure``), and the gradient (n,) of the integral."""
        inputs = self._at(x)
        if self._last_jacobian[0] is not inputs:
            found = self._node_jacobian.call(**inputs)
            values = self._pairs.entries(found["rows"]) if "rows" in found else [np.zeros(0)]
            values += [found[name].ravel() for name in ("timed", "shared") if name in found]
            self._last_jacobian[:] = inputs, (np.concatenate(values), self._gradient(found["cost"]))
        entries, gradient = self._last_jacobian[1]
        return entries, gradient

    @cached_property
    def _last_jacobian(self) -> list[Any]:
        """The last inputs and their Jacobian: costs of rates (``row_rates``) need it again."""
        return [None, ()]

    def _gradient(self, jacobians: Array) -> Array:
        """Return the gradient (n,) of the integral, from derivatives (K, orders N + specials) of the integrand."""
        if not self.kernels.costs:
            return np.zeros(self.layout.size)
        weighted, own = jacobians * self.weights[:, None], self.kernels.profiles
        gradient: Array = self._chain.sums(weighted[:, :own], 1)[0]
        for place, value in zip(self._others, weighted[:, own:].sum(axis=0), strict=True):
            gradient[place] += value
        return gradient

    # Second derivatives

    @cached_property
    def _blocks(self) -> Blocks:
        return Blocks(self._chain, *self._node_hessian.blocks)

    def hessian(self, x: Array, multipliers: Array, weight: float) -> Array:
        """Return the Hessian (n, n) of weight . integral + multipliers . rows."""
        given = {"multipliers": multipliers.reshape(len(self.s), self.kernels.m), "weight": weight * self.weights}
        found = self._node_hessian.call(**self._at(x), **given)
        n, others = self.layout.size, self._others
        total = self._blocks.total(found["blocks"]) if "blocks" in found else np.zeros((n, n))
        if "squares" in found:
            total += self._chain.gram(found["squares"], 2 * given["weight"], others)
        if others:
            mixed = self._chain.sums(found["mixed"], len(others))
            for place, own in zip(others, mixed, strict=True):
                total[place] += own
                total[:, place] += own
            total[np.ix_(others, others)] += found["corner"].sum(axis=0).reshape(len(others), -1)
        return total

    @cached_property
    def hessian_pattern(self) -> Flags:
        """The sparsity pattern (n, n) of the Hessian."""
        n, specials = self.layout.size, [place for place in self._specials if place >= 0]
        found = np.zeros((n, n), dtype=bool)
        found.ravel()[self._blocks.places.to] = True
        seen = self._chain.variables
        for special in specials:
            found[special, seen] = found[seen, special] = True
            found[special, specials] = True
        return found
