"""All nodes of a kind at once: the function of a node evaluated as one batch, and carried to the variables.

Profiles and their rates at a node are w_d = T^-d B_d c, with few control points c each, so that

    dw_d/dc = T^-d B_d      dw_d/dT = -d/T w_d      d2w_d/dc dT = -d/T T^-d B_d      d2w_d/dT2 = d (d + 1)/T^2 w_d

carry derivatives of a node's terms to control points and to the duration (Barman 2020, eq. 4.15, which leaves T out).
The kernels do what has T in it, and give derivatives by B_d c; ``carry`` does the rest.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from torsor.motion.transcription.chain_rule import Blocks, Carry, Pairs
from torsor.motion.transcription.layout import Layout
from torsor.motion.transcription.node_kernels import Bend, Slope, Traced

__all__ = ["Batch"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


class _Scaled(NamedTuple):
    """The duration T at x, and the profiles with their rates in time w (orders, K, N)."""

    T: float
    w: Array


@dataclass(frozen=True, eq=False)
class Batch:
    """Nodes at shares ``s`` (K,), rising, of one phase; ``weights`` (K,) are those of the integral.

    ``traced`` has the terms. Rows are node after node: row k m + r is row r of node k.
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
    def _carry(self) -> Carry:
        return Carry(self.layout.stretches[self.phase], self.s, self.traced.orders, self.layout.size)

    def _scaled(self, x: Array) -> _Scaled:
        T, w = self._carry.stretch.seconds(x), self._carry.rates(x)
        for d in range(1, len(w)):
            w[d] /= T**d
        return _Scaled(T, w)

    @cached_property
    def _specials(self) -> list[int]:
        """Where T (-1 if it is known) and the numbers are in x."""
        return [self._carry.stretch.duration, *self.layout.numbers.values()]

    @property
    def _by_T(self) -> bool:
        """Whether T is a variable."""
        return self._specials[0] >= 0

    @property
    def _others(self) -> list[int]:
        """Where in x is what derivatives are by beside control points: T, if it is a variable, and the numbers."""
        return self._specials if self._by_T else self._specials[1:]

    @cached_property
    def _slope(self) -> Slope:
        return self.traced.jacobian(self._by_T)

    @cached_property
    def _bend(self) -> Bend:
        return self.traced.hessian(self._by_T)

    def _numbers(self, x: Array) -> Array:
        return x[self._specials[1:]]

    def _inputs(self, x: Array, at: _Scaled) -> dict[str, Array]:
        Q = self._closed(at.w[0]) if self.traced.node.subject.is_closed else None
        return self.traced.inputs(at.w, at.T, self._numbers(x), self.s, Q) | {"data": self._data}

    @cached_property
    def _data(self) -> Array:
        return self.traced.data(self.s)

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

    @cached_property
    def _last(self) -> list[Any]:
        """The x of which inputs were last asked for, and they: values and derivatives follow each other."""
        return [None, {}]

    def _at(self, x: Array) -> dict[str, Array]:
        place = x.tobytes()
        if place != self._last[0]:
            self._last[:] = place, self._inputs(x, self._scaled(x))
        inputs: dict[str, Array] = self._last[1]
        return inputs

    def value(self, x: Array) -> tuple[Array, float]:
        """Return the rows (K m,), and the integral."""
        found = self.traced.value(**self._at(x))
        rows = found["rows"].ravel() if self.traced.m else np.zeros(0)
        return rows, float(self.weights @ found["cost"][:, 0])

    # First derivatives

    @cached_property
    def _pairs(self) -> Pairs:
        return Pairs(self._carry, self._slope.pairs[1])

    @cached_property
    def structure(self) -> tuple[Indices, Indices]:
        """Rows and columns of the entries that ``jacobian`` gives: for control points, then T, then the numbers.

        The column is -1 where what the entry is by is known.
        """
        jacobian, at = self._slope, np.arange(len(self.s)) * self.traced.m
        nodes, pairs, columns = self._pairs.structure
        timed, shared = at[:, None] + jacobian.timed, at[:, None] + jacobian.entries[0]
        places = np.broadcast_to(np.array(self._specials[1:], dtype=int)[jacobian.entries[1]], shared.shape)
        rows = np.concatenate([at[nodes] + jacobian.pairs[0][pairs], timed.ravel(), shared.ravel()])
        return rows, np.concatenate([columns, np.full(timed.size, self._specials[0]), places.ravel()])

    def jacobian(self, x: Array) -> tuple[Array, Array]:
        """Return the entries of the rows' derivatives (see ``structure``), and the gradient (x,) of the integral."""
        found = self._slope.call(**self._at(x))
        values = self._pairs.entries(found["rows"]) if "rows" in found else [np.zeros(0)]
        values += [found[name].ravel() for name in ("timed", "shared") if name in found]
        return np.concatenate(values), self._gradient(found["cost"])

    def _gradient(self, jacobians: Array) -> Array:
        """Return the gradient (x,) of the integral, from derivatives (K, orders N + specials) of the integrand."""
        if not self.traced.costs:
            return np.zeros(self.layout.size)
        weighted, own = jacobians * self.weights[:, None], self.traced.profiles
        gradient: Array = self._carry.sums(weighted[:, :own], 1)[0]
        for place, value in zip(self._others, weighted[:, own:].sum(axis=0), strict=True):
            gradient[place] += value
        return gradient

    # Second derivatives

    @cached_property
    def _blocks(self) -> Blocks:
        return Blocks(self._carry, *self._bend.blocks)

    def hessian(self, x: Array, multipliers: Array, weight: float) -> Array:
        """Return the Hessian (x, x) of weight . integral + multipliers . rows."""
        given = {"multipliers": multipliers.reshape(len(self.s), self.traced.m), "weight": weight * self.weights}
        found = self._bend.call(**self._at(x), **given)
        n, others = self.layout.size, self._others
        total = self._blocks.total(found["blocks"]) if "blocks" in found else np.zeros((n, n))
        if "squares" in found:
            total += self._carry.gram(found["squares"], 2 * given["weight"], others)
        if others:
            mixed = self._carry.sums(found["mixed"], len(others))
            for place, own in zip(others, mixed, strict=True):
                total[place] += own
                total[:, place] += own
            total[np.ix_(others, others)] += found["corner"].sum(axis=0).reshape(len(others), -1)
        return total

    @cached_property
    def touched(self) -> NDArray[np.bool_]:
        """Where the Hessian may be other than zero (x, x)."""
        n, specials = self.layout.size, [place for place in self._specials if place >= 0]
        found = np.zeros((n, n), dtype=bool)
        found.ravel()[self._blocks.places.to] = True
        seen = self._carry.seen
        for special in specials:
            found[special, seen] = found[seen, special] = True
            found[special, specials] = True
        return found
