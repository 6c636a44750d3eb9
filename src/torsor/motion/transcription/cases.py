"""Programs of one structure as one batch: the values and derivatives of all cases in one call of each kernel.

The cases have the same kernels, nodes, splines and variables. Their ends, bounds, given durations, held numbers and
data differ, and are arrays with one row per case.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from torsor.base.arrays import Array, Indices
from torsor.motion.transcription.batch import Batch, ChainRule
from torsor.motion.transcription.program import Program


def structure_of(program: Program) -> tuple[Any, ...] | None:
    """Return a key that is equal for programs that can be solved in one batch; None if a program cannot be batched."""
    if program.rates or any(batch.kernels.node.model.is_closed for batch in program.batches):
        return None
    layouts = tuple(
        (phase.columns.tobytes(), phase.duration, phase.ticks, *((s.degree, s.inner.tobytes()) for s in phase.splines))
        for phase in program.layout.phases
    )
    batches = tuple(
        (batch.kernels.identity, batch.phase, batch.s.tobytes(), batch.weights.tobytes()) for batch in program.batches
    )
    linear = tuple((key, A.tobytes()) for key, (A, _) in program.linear.parts.items())
    paces = tuple((row, column) for row, column, _ in program.linear.paces)
    bounds = (program.lower, program.upper, program.row_lower, program.row_upper)
    finite = tuple(np.isfinite(side).tobytes() for side in bounds)
    equal = (program.lower == program.upper).tobytes(), (program.row_lower == program.row_upper).tobytes()
    return layouts, batches, linear, paces, finite, equal, program.factor


@dataclass(frozen=True, eq=False)
class Cases:
    """The programs of B cases with the structure of ``program``.

    ``known`` has the known control points (B, N, P) of each phase, ``seconds`` its given duration (B,), ``data`` the
    data (B, K, count) of each batch, ``constants`` the columns b (B, rows) of the linear rows, and ``paces`` their
    factors (B, paces) of the duration.
    """

    program: Program
    lower: Array
    upper: Array
    row_lower: Array
    row_upper: Array
    scales: Array
    held: Array
    known: tuple[Array, ...]
    seconds: tuple[Array, ...]
    data: tuple[Array, ...]
    constants: tuple[Array, ...]
    paces: Array

    @classmethod
    def of(cls, programs: Sequence[Program]) -> Self:
        """Return the batch of programs with equal ``structure_of``."""
        first = programs[0]
        sides = ("lower", "upper", "row_lower", "row_upper", "scales")
        held = [list(program.batches[0].kernels.node.held.values()) if program.batches else [] for program in programs]
        paces = [[pace for *_, pace in program.linear.paces] for program in programs]
        phases = [[program.layout.phases[k] for program in programs] for k in range(len(first.layout.phases))]
        batches = range(len(first.batches))
        return cls(
            first,
            **{name: np.stack([getattr(program, name) for program in programs]) for name in sides},
            held=np.array(held, dtype=float).reshape(len(programs), -1),
            known=tuple(np.stack([layout.known for layout in layouts]) for layouts in phases),
            seconds=tuple(np.array([layout.phase.bounds[0] for layout in layouts]) for layouts in phases),
            data=tuple(np.stack([program.batches[k].data for program in programs]) for k in batches),
            constants=tuple(
                np.stack([program.linear.parts[key][1] for program in programs]) for key in first.linear.parts
            ),
            paces=np.array(paces, dtype=float).reshape(len(programs), -1),
        )

    def take(self, cases: Indices) -> "Cases":
        """Return the batch of some cases."""

        def part(value: Any) -> Any:
            return tuple(array[cases] for array in value) if isinstance(value, tuple) else value[cases]

        return Cases(self.program, *(part(getattr(self, field.name)) for field in fields(self)[1:]))

    def __len__(self) -> int:
        return len(self.lower)

    @property
    def n(self) -> int:
        """Number of variables of a case."""
        return self.program.n

    @cached_property
    def _nodes(self) -> list["_Nodes"]:
        return [_Nodes(batch, self, k) for k, batch in enumerate(self.program.batches)]

    def _duration(self, phase: int, x: Array) -> Array:
        place = self.program.layout.phases[phase].duration
        return self.seconds[phase] if place < 0 else x[:, place]

    def value(self, x: Array) -> tuple[Array, Array]:
        """Return f (B,) and the scaled rows (B, m) at x (B, n)."""
        f, parts = np.zeros(len(x)), list[Array]()
        for nodes in self._nodes:
            rows, cost = nodes.value(x)
            f += cost
            parts.append(rows)
        return self.program.factor * f, np.concatenate([*parts, self._linear(x)], axis=1) / self.scales

    def _linear(self, x: Array) -> Array:
        linear = self.program.linear
        total = np.zeros((len(x), linear.m))
        for (key, (A, _)), b in zip(linear.parts.items(), self.constants, strict=True):
            total += ((x[:, None] @ A.T)[:, 0] + b) / self._duration(key[0], x)[:, None] ** key[1]
        for k, (row, column, _) in enumerate(linear.paces):
            pace = self.paces[:, k] * (x[:, column] if column >= 0 else 1.0)
            total[:, row] += pace * self._duration(0, x)
        return total

    def on(self, program: Program) -> "Cases | None":
        """Return the same cases at the nodes of another program with the same variables; None if terms have data.

        The bounds and scales of a row are the same at all nodes.
        """
        if any(data.shape[2] for data in self.data):
            return None
        first, kept = 0, list[Indices]()
        others = {(id(batch.kernels), batch.phase): batch for batch in program.batches}
        for batch in self.program.batches:
            other, m = others.get((id(batch.kernels), batch.phase)), batch.kernels.m
            if other is not None:
                kept.append(first + np.tile(np.arange(m), len(other.s)))
            first += batch.m
        rows = np.concatenate([*kept, np.arange(first, self.program.m)])
        sides = {name: getattr(self, name)[:, rows] for name in ("row_lower", "row_upper", "scales")}
        data = tuple(np.zeros((len(self), len(batch.s), 0)) for batch in program.batches)
        return replace(self, program=program, data=data, **sides)

    def linearised(self, x: Array) -> "Linearised":
        """Return the first derivatives at x (B, n)."""
        return Linearised(self, x)


class Linearised:
    """The derivatives of a batch at x (B, n): its gradient (B, n), products with the Jacobian, and curvature."""

    def __init__(self, cases: Cases, x: Array):
        self._cases, self._x, program = cases, x, cases.program
        self.gradient, self._jacobians = np.zeros((len(x), cases.n)), []
        for nodes in cases._nodes:
            derivatives = nodes.jacobian(x)
            self._jacobians.append(derivatives)
            if nodes.batch.kernels.costs:
                self.gradient += program.factor * nodes.pulled(derivatives["cost"] * nodes.batch.weights[:, None])
        self._edges = np.cumsum([0, *(batch.m for batch in program.batches)])
        self._linear = self._linear_jacobian() if program.linear.m else None

    def take(self, cases: Indices) -> "Linearised":
        """Return the derivatives of some cases."""
        result = object.__new__(Linearised)
        result._cases, result._x, result._edges = self._cases.take(cases), self._x[cases], self._edges
        result.gradient = self.gradient[cases]
        result._jacobians = [{name: array[cases] for name, array in own.items()} for own in self._jacobians]
        result._linear = None if self._linear is None else self._linear[cases]
        return result

    def _linear_jacobian(self) -> Array:
        cases, x, linear = self._cases, self._x, self._cases.program.linear
        total = np.zeros((len(x), linear.m, cases.n))
        for (key, (A, _)), b in zip(linear.parts.items(), cases.constants, strict=True):
            T, place = cases._duration(key[0], x)[:, None], cases.program.layout.phases[key[0]].duration
            total += A / T[:, :, None] ** key[1]
            if place >= 0 and key[1]:
                total[:, :, place] -= key[1] * ((x[:, None] @ A.T)[:, 0] + b) / T ** (key[1] + 1)
        place = cases.program.layout.phases[0].duration
        for k, (row, column, _) in enumerate(linear.paces):
            if place >= 0:
                total[:, row, place] += cases.paces[:, k] * (x[:, column] if column >= 0 else 1.0)
            if column >= 0:
                total[:, row, column] += cases.paces[:, k] * cases._duration(0, x)
        return total

    def times(self, change: Array) -> Array:
        """Return J times changes (B, n), or (B, k, n)."""
        parts = [
            nodes.times(derivatives, change)
            for nodes, derivatives in zip(self._cases._nodes, self._jacobians, strict=True)
        ]
        if self._linear is not None:
            parts.append((change[..., None, :] @ np.swapaxes(self._expanded(self._linear, change), -1, -2))[..., 0, :])
        rows = np.concatenate(parts, axis=-1)
        return np.asarray(rows / self._expanded(self._cases.scales, change))

    @staticmethod
    def _expanded(array: Array, like: Array) -> Array:
        return array if like.ndim == 2 else array[:, None]

    def transposed_times(self, rows: Array) -> Array:
        """Return J^T times rows (B, m), or (B, k, m)."""
        rows = rows / self._expanded(self._cases.scales, rows)
        total = np.zeros((*rows.shape[:-1], self._cases.n))
        for k, (nodes, derivatives) in enumerate(zip(self._cases._nodes, self._jacobians, strict=True)):
            total += nodes.transposed_times(derivatives, rows[..., self._edges[k] : self._edges[k + 1]])
        if self._linear is not None:
            total += (rows[..., None, self._edges[-1] :] @ self._expanded(self._linear, rows))[..., 0, :]
        return total

    def condensed(self, multipliers: Array, barrier: Array, weight: Array) -> Array:
        """Return the Hessian (B, n, n) of weight f + multipliers . rows, plus J^T diag(barrier) J.

        ``multipliers`` and ``barrier`` are (B, m), ``weight`` is (B,).
        """
        cases, x = self._cases, self._x
        multipliers, barrier = multipliers / cases.scales, barrier / cases.scales**2
        total = np.zeros((len(x), cases.n, cases.n))
        for k, nodes in enumerate(cases._nodes):
            at = slice(self._edges[k], self._edges[k + 1])
            nodes.add_condensed(x, multipliers[:, at], barrier[:, at], cases.program.factor * weight, total)
        if self._linear is not None:
            at = slice(self._edges[-1], None)
            self._add_linear(multipliers[:, at], total)
            total += np.swapaxes(self._linear, 1, 2) @ (barrier[:, at, None] * self._linear)
        return total

    def _add_linear(self, multipliers: Array, total: Array) -> None:
        """Add the Hessian of the linear rows, which depend on the durations."""
        cases, x, linear = self._cases, self._x, self._cases.program.linear
        for (key, (A, _)), b in zip(linear.parts.items(), cases.constants, strict=True):
            place, order = cases.program.layout.phases[key[0]].duration, key[1]
            if place >= 0 and order:
                T = cases._duration(key[0], x)
                by_T = -order * (multipliers[:, None] @ A)[:, 0] / T[:, None] ** (order + 1)
                total[:, place] += by_T
                total[:, :, place] += by_T
                bend = order * (order + 1) * (multipliers * ((x[:, None] @ A.T)[:, 0] + b)).sum(axis=1)
                total[:, place, place] += bend / T ** (order + 2)
        place = cases.program.layout.phases[0].duration
        for k, (row, column, _) in enumerate(linear.paces):
            if place >= 0 and column >= 0:
                for one, other in ((place, column), (column, place)):
                    total[:, one, other] += cases.paces[:, k] * multipliers[:, row]


class _Nodes:
    """The nodes of one batch of the program, for all cases."""

    def __init__(self, batch: Batch, cases: Cases, index: int):
        self.batch, self._cases, self._index = batch, cases, index
        self._chain: ChainRule = batch.chain
        self._layout = self._chain.phase_layout
        self._by_T = self._layout.duration >= 0
        self._last: tuple[Array | None, dict[str, Array]] = (None, {})

    def _points(self, x: Array, known: Array | None) -> Array:
        """Return control points (..., N, P) of variables x (..., n); known points are 0 without ``known``."""
        padded = np.concatenate([x, np.zeros((*x.shape[:-1], 1))], axis=-1)
        points = padded[..., self._layout.columns]  # the index -1 is the added 0
        return points if known is None else np.asarray(points + known)

    def _rates(self, points: Array) -> Array:
        """Return profiles and their derivatives with respect to s (..., orders, K, N) of points (..., N, P)."""
        chain, lead = self._chain, points.shape[:-2]
        if len(chain.groups) == 1:
            flat = chain.groups[0].wide @ np.swapaxes(points, -1, -2)
            return np.asarray(flat.reshape(*lead, chain.orders, len(chain.s), -1))
        result = np.empty((*lead, chain.orders, len(chain.s), points.shape[-2]))
        for group in chain.groups:
            own = np.swapaxes(points[..., group.profiles, : group.wide.shape[1]], -1, -2)
            result[..., group.profiles] = (group.wide @ own).reshape(*lead, chain.orders, len(chain.s), -1)
        return result

    def _inputs(self, x: Array) -> dict[str, Array]:
        if self._last[0] is x:
            return self._last[1]
        cases, batch, index = self._cases, self.batch, self._index
        w = self._rates(self._points(x, cases.known[batch.phase]))
        T = cases._duration(batch.phase, x)
        inputs = {"y_0": w[:, 0]}
        for d in range(1, self._chain.orders):
            inputs[f"y_{d}"] = w[:, d] / T[:, None, None] ** d
        numbers = list(cases.program.layout.numbers.values())
        inputs |= {"T": T[:, None], "numbers": x[:, None, numbers], "s": batch.s, "data": cases.data[index]}
        inputs["held"] = cases.held[:, None]
        self._last = x, inputs
        return inputs

    def value(self, x: Array) -> tuple[Array, Array]:
        """Return the rows (B, K m) and the integral (B,)."""
        result = self.batch.kernels.value(**self._inputs(x))
        rows = result["rows"].reshape(len(x), -1) if self.batch.kernels.m else np.zeros((len(x), 0))
        return rows, (result["cost"][..., 0] * self.batch.weights).sum(axis=1)

    def jacobian(self, x: Array) -> dict[str, Array]:
        """Return the derivatives of the nodes."""
        return self.batch.kernels.jacobian(self._by_T).call(**self._inputs(x))

    def pulled(self, change: Array) -> Array:
        """Return the derivatives (..., n) summed over nodes, given those with respect to (B c, T, numbers)."""
        chain, lead, count = self._chain, change.shape[:-2], len(self._layout.splines)
        result = np.zeros((*lead, self._cases.n + 1))  # known points are collected in the last column
        by_order = change[..., : chain.orders * count].reshape(*lead, len(chain.s), chain.orders, count)
        by_order = np.swapaxes(by_order, -2, -3).reshape(*lead, -1, count)
        for group in chain.groups:
            own = by_order if len(chain.groups) == 1 else by_order[..., group.profiles]
            total = np.swapaxes(group.wide.T @ own, -1, -2)
            result[..., self._layout.columns[group.profiles, : total.shape[-1]]] = total
        for k, place in enumerate(self.batch.others):
            result[..., place] += change[..., chain.orders * count + k].sum(axis=-1)
        return result[..., :-1]

    @cached_property
    def _products(self) -> Any:
        return self.batch.kernels.products(self._by_T)

    def _jacobian_of(self, derivatives: dict[str, Array], like: Array) -> dict[str, Array]:
        used = {name: array for name, array in derivatives.items() if name != "cost"}
        return used if like.ndim == 2 else {name: array[:, None] for name, array in used.items()}

    def times(self, derivatives: dict[str, Array], change: Array) -> Array:
        """Return J times changes (..., n): (..., K m)."""
        lead, kernels, K = change.shape[:-1], self.batch.kernels, len(self.batch.s)
        if not kernels.m:
            return np.zeros((*lead, 0))
        w = np.swapaxes(self._rates(self._points(change, None)), -2, -3).reshape(*lead, K, -1)
        specials = np.broadcast_to(change[..., None, self.batch.others], (*lead, K, len(self.batch.others)))
        both = np.concatenate([w, specials], axis=-1)
        rows = self._products[0](**self._jacobian_of(derivatives, change), change=both)["result"]
        return np.asarray(rows.reshape(*lead, -1))

    def transposed_times(self, derivatives: dict[str, Array], rows: Array) -> Array:
        """Return J^T times rows (..., K m): (..., n)."""
        if not self.batch.kernels.m:
            return np.zeros((*rows.shape[:-1], self._cases.n))
        by_node = rows.reshape(*rows.shape[:-1], len(self.batch.s), -1)
        return self.pulled(self._products[1](**self._jacobian_of(derivatives, rows), given=by_node)["result"])

    @cached_property
    def _places(self) -> Indices:
        """For each entry of (n, n), the parts of the block sums that are added to it; the last part is 0."""
        places, n = self.batch.condensed_blocks.places, self._cases.n
        order = np.argsort(places.to, kind="stable")
        to, taken = places.to[order], places.taken[order]
        rank = np.arange(len(to)) - np.searchsorted(to, to)
        last = self.batch.condensed_blocks.size
        table = np.full((n * n, int(rank.max(initial=0)) + 1), last)
        table[to, rank] = taken
        return table

    def add_condensed(self, x: Array, multipliers: Array, barrier: Array, weight: Array, total: Array) -> None:
        """Add the condensed matrix (B, n, n) of these nodes to a total."""
        batch, K, n = self.batch, len(self.batch.s), self._cases.n
        weights = {"multipliers": multipliers.reshape(len(x), K, -1), "barrier": barrier.reshape(len(x), K, -1)}
        weights["weight"] = weight[:, None] * batch.weights
        derivatives = batch.kernels.condensed(self._by_T).call(**self._inputs(x), **weights)
        if "blocks" in derivatives:
            parts = batch.condensed_blocks.parts(derivatives["blocks"])
            padded = np.concatenate([parts, np.zeros((len(x), 1))], axis=1)
            total += padded[:, self._places].sum(axis=-1).reshape(-1, n, n)
        others = batch.others
        if others:
            mixed = derivatives["mixed"].reshape(len(x), K, -1, len(others))
            corner = derivatives["corner"].sum(axis=1).reshape(len(x), len(others), -1)
            zeros = np.zeros((len(x), K, len(others)))
            for k, place in enumerate(others):
                row = self.pulled(np.concatenate([mixed[..., k], zeros], axis=-1))
                total[:, place] += row
                total[:, :, place] += row
            total[:, np.array(others)[:, None], others] += corner
