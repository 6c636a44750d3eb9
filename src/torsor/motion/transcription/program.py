"""The nonlinear program of a motion problem: minimise f(x) subject to bounds on x and on the rows g(x)."""

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from torsor.base.arrays import Array, Indices
from torsor.motion.terms.term import Constraint, Rows
from torsor.motion.transcription.batch import Batch, ScatterSum
from torsor.motion.transcription.node import Node
from torsor.motion.transcription.node_kernels import NodeKernels
from torsor.motion.transcription.variables import Equation, Layout, Linear, PhaseLayout
from torsor.optimisation.standard import RowBlocks

# The mean square of row rates over a phase: a cost that couples neighbouring nodes.
#
# With rows g_k at the nodes, d_k = g_{k+1} - g_k, and the times dt_k = T dh_k between them,
#
#     phi = weight / T sum_k |d_k|^2 / dt_k
#
# approximates the mean of |dg/dt|^2. Its derivatives follow from those of the rows:
#
#     phi_x  = A^T (2 c d) + phi_p                 c_k = weight / (T^2 dh_k)      A = dd/dx
#     phi_xx = A^T 2 c A + A^T M + M^T A + phi_pp + sum_k (phi_g)_k d2g_k/dx2      M = d(2 c d)/dp
#
# where p consists of T, the clock variables and the divisor of the cost. The last term is the Hessian of the rows with
# multipliers phi_g.


class RateDerivatives(NamedTuple):
    """The entries of A, c for each row of A, M, phi_pp, and the multipliers phi_g (K m,)."""

    entries: Array
    weights: Array
    mixed: Array
    corner: Array
    multipliers: Array


@dataclass(frozen=True, eq=False)
class RowRates:
    """The cost of the rates of the rows ``chosen`` (row indices of one node) of a batch.

    ``per`` is the name of the shared number that divides the cost, if it is a variable.
    """

    batch: Batch
    chosen: Indices
    weight: float
    per: str = ""

    @property
    def _phase_layout(self) -> PhaseLayout:
        return self.batch.layout.phases[self.batch.phase]

    @cached_property
    def columns(self) -> list[int]:
        """Indices in x of T, the clock variables and the speed, if they are variables."""
        layout, numbers = self._phase_layout, self.batch.layout.numbers
        duration = [layout.duration] if layout.duration >= 0 else []
        return [*duration, *layout.ticks, *([numbers[self.per]] if self.per in numbers else [])]

    def _coefficients(self, x: Array) -> tuple[Array, Array, Array]:
        """Return c (K - 1,), and its first (K - 1, P) and second (K - 1, P, P) derivatives in ``columns``.

        c is a product of powers, so its derivatives follow from those of its logarithm, which is a sum.
        """
        layout, s = self._phase_layout, self.batch.s
        T, clock = layout.seconds(x), layout.phase.timing
        h = np.diff(clock.numeric(s, x[list(layout.ticks)]))
        c = self.weight / (T**2 * h)
        # h is linear in the clock variables.
        ticks = [np.diff(clock.numeric(s, direction) - s) / h for direction in np.eye(len(layout.ticks))]
        slopes, bends = ([], []) if layout.duration < 0 else ([np.full(len(h), -2 / T)], [np.full(len(h), 2 / T**2)])
        slopes += [-tick for tick in ticks]
        speeds = [x[column] for column in self.columns[len(slopes) :]]
        for speed in speeds:
            c /= speed
            slopes.append(np.full(len(h), -1 / speed))
        L = np.stack(slopes, axis=1) if slopes else np.zeros((len(h), 0))
        second = L[:, :, None] * L[:, None, :]
        first = len(bends)
        for k, bend in enumerate(bends):
            second[:, k, k] += bend
        for j, one in enumerate(ticks):
            for k, other in enumerate(ticks):
                second[:, first + j, first + k] += one * other
        for speed in speeds:
            second[:, -1, -1] += 1 / speed**2
        return c, c[:, None] * L, c[:, None, None] * second

    def _steps(self, x: Array) -> Array:
        """Return the differences d (K - 1, chosen) of the rows between successive nodes."""
        rows = self.batch.value(x)[0].reshape(len(self.batch.s), -1)[:, self.chosen]
        return np.diff(rows, axis=0)

    def value(self, x: Array) -> float:
        """Return phi at variables x (n,)."""
        return float(self._coefficients(x)[0] @ (self._steps(x) ** 2).sum(axis=1))

    @cached_property
    def structure(self) -> tuple[Indices, Array, Indices, Indices]:
        """The entries of the batch's Jacobian in A ((K - 1) chosen, n): entries, signs, rows and columns."""
        rows, columns = self.batch.structure
        node, row = np.divmod(rows, self.batch.kernels.m)
        place = np.full(self.batch.kernels.m, -1)
        place[self.chosen] = np.arange(len(self.chosen))
        is_used, count = (columns >= 0) & (place[row] >= 0), len(self.batch.s)
        later, earlier = np.flatnonzero(is_used & (node > 0)), np.flatnonzero(is_used & (node < count - 1))
        kept, steps = np.concatenate([later, earlier]), np.concatenate([node[later] - 1, node[earlier]])
        signs = np.repeat([1.0, -1.0], [len(later), len(earlier)])
        return kept, signs, steps * len(self.chosen) + place[row[kept]], columns[kept]

    @cached_property
    def _chosen_entries(self) -> tuple[Indices, Indices, Indices]:
        """The entries of the batch's Jacobian in the chosen rows, with their rows and columns."""
        rows, columns = self.batch.structure
        kept = np.flatnonzero((columns >= 0) & np.isin(rows % self.batch.kernels.m, self.chosen))
        return kept, rows[kept], columns[kept]

    def _multipliers(self, c: Array, d: Array) -> Array:
        """Return the derivatives phi_g (K m,) of phi with respect to all rows."""
        slopes, result = 2 * c[:, None] * d, np.zeros((len(self.batch.s), self.batch.kernels.m))
        result[1:, self.chosen] += slopes
        result[:-1, self.chosen] -= slopes
        return result.ravel()

    def gradient(self, x: Array) -> Array:
        """Return the gradient (n,)."""
        (c, first, _), d = self._coefficients(x), self._steps(x)
        kept, rows, columns = self._chosen_entries
        entries = self.batch.jacobian(x)[0][kept] * self._multipliers(c, d)[rows]
        result = np.bincount(columns, entries, self.batch.layout.size).astype(float, copy=False)
        result[self.columns] += first.T @ (d**2).sum(axis=1)
        return result

    def second_derivatives(self, x: Array) -> RateDerivatives:
        """Return the parts of the Hessian."""
        (c, first, second), d, (kept, signs, _, _) = self._coefficients(x), self._steps(x), self.structure
        mixed = (2 * d[:, :, None] * first[:, None, :]).reshape(d.size, len(self.columns))
        corner = np.tensordot((d**2).sum(axis=1), second, axes=1)
        entries = signs * self.batch.jacobian(x)[0][kept]
        return RateDerivatives(entries, np.repeat(c, len(self.chosen)), mixed, corner, self._multipliers(c, d))


def _free(columns: Indices) -> Indices | slice:
    """Return the entries of variables that are not known, from their columns (-1: known)."""
    return slice(None) if (columns >= 0).all() else np.flatnonzero(columns >= 0)


class Row(NamedTuple):
    """The description of a row: title of its term, label, phase, and s (None at ends)."""

    title: str
    label: str
    phase: int | None = None
    s: float | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class _EndRows(Constraint):
    """Linear rows of one end of a phase as rows of a node; ``mean`` is the mean of the duration bounds."""

    equations: tuple[Equation, ...]
    mean: float

    def rows(self, node: Node) -> Rows:
        """Return the values of the equations, with their bounds."""
        values, by_mean = [], node.given(1 / self.mean)
        for equation in self.equations:
            parts = [part.coefficient * node.y[part.order][part.profile] for part in equation.parts]
            factor = (node.T * by_mean) ** equation.parts[0].order if equation.is_timeless else 1
            values.append(factor * sum(parts, start=ca.SX(0)))
        lower, upper = (np.array([getattr(one, side) for one in self.equations]) for side in ("lower", "upper"))
        return Rows(ca.vertcat(*values), lower, upper, tuple(one.label for one in self.equations))


@dataclass(frozen=True, eq=False)
class Program:
    """Batches of nodes and linear rows over the variables of a layout.

    ``lower`` and ``upper`` (n,) are bounds of the variables. Rows are those of the batches, followed by the linear
    ones. Each is divided by its entry of ``scales``, which makes bounds close to 1. ``factor`` multiplies f; with 0,
    every feasible motion is a solution.
    """

    layout: Layout
    batches: tuple[Batch, ...]
    linear: Linear
    lower: Array
    upper: Array
    factor: float = 1.0
    rates: tuple[RowRates, ...] = ()
    # The last values and derivatives with their x, because solvers evaluate f and g separately.
    _last: dict[str, tuple[bytes, Any]] = field(default_factory=dict, init=False)

    @property
    def n(self) -> int:
        """Number of variables."""
        return self.layout.size

    def with_known(self, known: Sequence[Array]) -> "Program":
        """Return the program with the known control points (N, P) of each phase replaced."""
        pairs = zip(self.layout.phases, known, strict=True)
        layout = replace(self.layout, phases=tuple(replace(phase, known=own) for phase, own in pairs))
        batches = {id(batch): replace(batch, layout=layout) for batch in self.batches}
        rates = tuple(replace(rate, batch=batches[id(rate.batch)]) for rate in self.rates)
        linear = Linear(self.linear.equations, layout)
        return replace(self, layout=layout, batches=tuple(batches.values()), linear=linear, rates=rates)

    def __reduce__(self) -> Any:
        """Raise PicklingError with the reason."""
        message = "a nonlinear program cannot be pickled: its functions are compiled for one process"
        raise pickle.PicklingError(f"{message}; fix: pickle the MotionProblem, which rebuilds its program")

    @cached_property
    def m(self) -> int:
        """Number of rows."""
        return sum(batch.m for batch in self.batches) + self.linear.m

    @cached_property
    def at_nodes(self) -> "tuple[Program, Indices] | None":
        """The program with its linear rows as rows of nodes, and the indices (m,) of its rows in this program.

        It is None if a linear row connects several times, depends on a pace, or belongs to a phase with a clock.
        """
        if not self.linear.m:
            return self, np.arange(self.m)
        ends: dict[tuple[int, float], list[int]] = {}
        for k, equation in enumerate(self.linear.equations):
            places = {(part.phase, part.s) for part in equation.parts}
            if len(places) > 1 or equation.pace or self.layout.phases[min(places)[0]].phase.clock:
                return None
            ends.setdefault(places.pop(), []).append(k)
        if not self.batches:
            return None
        first, batches, order = self.batches[0].kernels, list(self.batches), [np.arange(self.m - self.linear.m)]
        for (phase, s), members in ends.items():
            mean = sum(self.layout.phases[phase].phase.bounds) / 2
            own = _EndRows(equations=tuple(self.linear.equations[k] for k in members), mean=mean, at=(s,))
            kernels = NodeKernels(first.node, [own], [], first.of_problem)
            batches.append(Batch(kernels, self.layout, phase, np.array([s]), np.zeros(1)))
            order.append(self.m - self.linear.m + np.array(members))
        return replace(self, batches=tuple(batches), linear=Linear((), self.layout)), np.concatenate(order)

    @cached_property
    def rows(self) -> list[Row]:
        """The descriptions of the rows."""
        descriptions = list[Row]()
        for batch in self.batches:
            labels = batch.kernels.labels
            descriptions += [Row(*names, batch.phase, float(s)) for s in batch.s for names in labels]
        return descriptions + [Row(equation.title, equation.label) for equation in self.linear.equations]

    @cached_property
    def _raw_bounds(self) -> tuple[Array, Array]:
        sides = []
        for side in ("lower", "upper"):
            parts = list[Array]()
            for batch in self.batches:
                node_bounds = np.concatenate([np.zeros(0), *(getattr(row, side) for row in batch.kernels.rows)])
                parts.append(np.tile(node_bounds, len(batch.s)))
            sides.append(np.concatenate([*parts, [getattr(equation, side) for equation in self.linear.equations]]))
        return sides[0], sides[1]

    @cached_property
    def scales(self) -> Array:
        """Divisors of the rows: half the distance between their bounds, or the magnitude of the only bound.

        Divisors of equations are at least 1, because a small right-hand side does not need a smaller tolerance.
        """
        lower, upper = self._raw_bounds
        same = lower == upper
        both = np.isfinite(lower) & np.isfinite(upper) & ~same
        one = np.where(np.isfinite(lower), np.abs(lower), np.where(np.isfinite(upper), np.abs(upper), 1.0))
        with np.errstate(invalid="ignore"):
            scale = np.where(same, np.maximum(one, 1.0), np.where(both, (upper - lower) / 2, one))
        return np.where((scale > 1e-6) & np.isfinite(scale), scale, 1.0)

    @cached_property
    def row_lower(self) -> Array:
        """Lower bounds of the scaled rows."""
        return self._raw_bounds[0] / self.scales

    @cached_property
    def row_upper(self) -> Array:
        """Upper bounds of the scaled rows."""
        return self._raw_bounds[1] / self.scales

    def _at(self, what: str, x: Array, find: Callable[[Array], Any]) -> Any:
        place = x.tobytes()
        if what not in self._last or self._last[what][0] != place:
            self._last[what] = place, find(x)
        return self._last[what][1]

    def value(self, x: Array) -> tuple[float, Array]:
        """Return f and the rows (m,), read-only."""
        result: tuple[float, Array] = self._at("value", x, self._value)
        return result

    def _value(self, x: Array) -> tuple[float, Array]:
        parts = [batch.value(x) for batch in self.batches]
        rows = np.concatenate([*(rows for rows, _ in parts), self.linear.value(x)])
        rows /= self.scales
        rows.setflags(write=False)
        return self.factor * (sum(cost for _, cost in parts) + sum(rate.value(x) for rate in self.rates)), rows

    @cached_property
    def structure(self) -> tuple[Indices, Indices]:
        """Rows and columns of the entries of the row Jacobian: those of the batches, followed by the linear rows."""
        rows, columns = self._places
        return rows[self._free_entries], columns[self._free_entries]

    @cached_property
    def _places(self) -> tuple[Indices, Indices]:
        """Rows and columns of all entries; the columns of known points are -1."""
        rows, columns, first = [], [], 0
        parts = [(batch.m, batch.structure) for batch in self.batches]
        for m, (i, j) in (*parts, (self.linear.m, np.nonzero(self.linear.pattern))):
            rows.append(i + first)
            columns.append(j)
            first += m
        return np.concatenate(rows), np.concatenate(columns)

    @cached_property
    def _free_entries(self) -> Indices | slice:
        """The entries of variables that are not known."""
        return _free(self._places[1])

    @cached_property
    def _entry_scales(self) -> Array:
        return self.scales[self.structure[0]]

    def jacobian(self, x: Array) -> tuple[Array, Array]:
        """Return the gradient (n,) of f and the entries of the row Jacobian (see ``structure``), read-only."""
        result: tuple[Array, Array] = self._at("jacobian", x, self._jacobian)
        return result

    def _jacobian(self, x: Array) -> tuple[Array, Array]:
        gradient, entries = np.zeros(self.n), list[Array]()
        for batch in self.batches:
            values, batch_gradient = batch.jacobian(x)
            gradient += self.factor * batch_gradient
            entries.append(values)
        for cost in self.rates:
            gradient += self.factor * cost.gradient(x)
        if self.linear.m:
            entries.append(self.linear.jacobian(x)[self.linear.pattern])
        values = np.concatenate([np.zeros(0), *entries])[self._free_entries]
        values /= self._entry_scales
        for array in (gradient, values):
            array.setflags(write=False)
        return gradient, values

    @cached_property
    def _specials(self) -> list[int]:
        """Indices in x of the durations and the shared numbers."""
        durations = [phase.duration for phase in self.layout.phases if phase.duration >= 0]
        return [*durations, *self.layout.numbers.values()]

    @cached_property
    def _blocks(self) -> ScatterSum:
        """Target indices in (n, n) of the parts of the second derivatives of all batches."""
        return ScatterSum.joined([(batch.blocks.places, batch.blocks.size) for batch in self.batches])

    @cached_property
    def _squares(self) -> tuple[RowBlocks, Indices | slice]:
        """The blocks of the derivatives of squares and row differences, and the entries of variables."""
        rows, columns, first = [np.zeros(0, dtype=int)], [np.zeros(0, dtype=int)], 0
        parts = [(len(batch.s) * batch.kernels.square_count, batch.square_structure) for batch in self.batches]
        parts += [((len(rate.batch.s) - 1) * len(rate.chosen), rate.structure[2:]) for rate in self.rates]
        for count, (i, j) in parts:
            rows.append(i + first)
            columns.append(j)
            first += count
        all_rows, all_columns = np.concatenate(rows), np.concatenate(columns)
        free = _free(all_columns)
        return RowBlocks((first, self.n), all_rows[free], all_columns[free]), free

    def hessian(self, x: Array, multipliers: Array, weight: float) -> Array:
        """Return the Hessian (n, n) of weight f + multipliers . rows."""
        n, scale, specials, first = self.n, self.factor * weight, self._specials, 0
        unscaled = multipliers / self.scales
        border = np.zeros((len(specials), n))  # contains half of the corner
        parts, squares, weights = list[Array](), list[Array](), list[Array]()
        rates = [(rate, rate.second_derivatives(x)) for rate in self.rates] if scale else []
        for batch in self.batches:
            batch_multipliers = unscaled[first : first + batch.m]
            for rate, at in rates:
                if rate.batch is batch:
                    batch_multipliers = batch_multipliers + scale * at.multipliers
            second = batch.second_derivatives(x, batch_multipliers, scale)
            parts.append(second.parts)
            squares.append(second.squares)
            weights.append(np.repeat(batch.weights, batch.kernels.square_count))
            border[[specials.index(other) for other in batch.others]] += second.border
            first += batch.m
        total = self._blocks.total(np.concatenate([np.zeros(0), *parts]), n * n).reshape(n, n)
        blocks, free = self._squares
        if scale and blocks.shape[0]:
            J = blocks.filled(np.concatenate([*squares, *(at.entries for _, at in rates)])[free])
            gram = J.gram(2 * abs(scale) * np.concatenate([*weights, *(at.weights for _, at in rates)]))
            total = total + gram if scale > 0 else total - gram
            row = blocks.shape[0] - sum(len(at.mixed) for _, at in rates)
            for rate, at in rates:
                places = [specials.index(column) for column in rate.columns]
                mixed = np.zeros((blocks.shape[0], len(places)))
                mixed[row : row + len(at.mixed)] = at.mixed
                row += len(at.mixed)
                border[places] += scale * J.transposed_times(mixed).T
                border[np.ix_(places, rate.columns)] += scale / 2 * at.corner
        total[specials] += border
        total[:, specials] += border.T
        return total + self.linear.hessian(x, unscaled[first:]) if self.linear.is_curved else total

    @cached_property
    def hessian_structure(self) -> tuple[Indices, Indices]:
        """Rows and columns of the entries of the upper triangle of the Hessian, in column-major order."""
        patterns = [self.linear.hessian_pattern, *(batch.hessian_pattern for batch in self.batches)]
        if self.rates:
            patterns.append(np.ones((self.n, self.n), dtype=bool))
        columns, rows = np.nonzero(np.tril(np.logical_or.reduce(patterns)))
        return rows, columns
