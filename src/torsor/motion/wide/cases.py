"""Programs with the same structure as a batch with row Jacobians.

``transcription.cases`` computes sums over the rows of a node in compiled code, whose size grows with the square of the
number of profiles. Here, compiled code computes only the derivatives at the nodes, and the sums are products of dense
blocks. The rows need not be at nodes, and costs may couple neighbouring nodes.
"""

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise
from typing import Any, cast

import casadi as ca
import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.sparse import csr_array

from torsor.base.arrays import Array, Flags, Indices
from torsor.compiler import Signature
from torsor.compiler.cache import source_hash
from torsor.motion.batched import PathStep, Prediction, RowCorrections, RowPoint, Rows, RowStep, RowTotals, Trial
from torsor.motion.linear_systems import Systems
from torsor.motion.transcription.cases import Cases, kinds_of_bounds, largest_violation, nodes_structure
from torsor.motion.transcription.program import Program
from torsor.motion.transcription.variables import Linear
from torsor.motion.wide.blocks import Block, Boundary, NodeBlocks, RowJacobian
from torsor.motion.wide.linear import LinearRows, linear_structure
from torsor.motion.wide.rates import BatchedRates, RatesAt, rates_structure
from torsor.optimisation.barrier import FAR, Bounded
from torsor.optimisation.standard import MAX_GRADIENT
from torsor.robot.kernels import Kernels
from torsor.robot.target import Target

AT_A_TIME = 2  # cases whose matrices are computed together and fit into the cache
WIDTH = 16  # number of active cases; the Jacobian of a walk takes 6 MB


def wide_structure_of(program: Program) -> tuple[Any, ...] | None:
    """Return a key that is equal for programs that can be solved in one batch; None if a program cannot be batched."""
    is_closed = any(batch.kernels.node.model.is_closed for batch in program.batches)
    if is_closed or not program.n or not program.m or not program.batches:
        return None
    own = linear_structure(program.linear), rates_structure(program)
    return "wide", nodes_structure(program), kinds_of_bounds(program), *own


# Row arithmetic for single entries


def _row_point() -> ca.Function:
    at, u, off = Bounded(1, True), ca.SX.sym("u"), ca.SX.sym("off")
    total, most, least = at.products()
    dual = (1 - at.is_equation) * ca.fabs(at.z_high - at.z_low - u)
    outputs = at.stiffness, at.pushed(off, u), at.repulsion, total, dual, most, least
    return ca.Function("row_point", [*at.inputs.values(), u, off], list(outputs))


def _row_prediction() -> ca.Function:
    at, ds, zero = Bounded(1, True), ca.SX.sym("ds"), ca.SX(0)
    outputs = at.bend(ds), *at.product_changes(ds), *at.ratios(ds, ds, zero, zero)
    return ca.Function("row_prediction", [*at.inputs.values(), ds], list(outputs))


def _row_ratios() -> ca.Function:
    at, symbols = Bounded(1, True), [ca.SX.sym(name) for name in ("ds", "predictor", "mu", "corrector")]
    return ca.Function("row_ratios", [*at.inputs.values(), *symbols], list(at.ratios(*symbols)))


def _row_correction() -> ca.Function:
    at, symbols = Bounded(1, True), [ca.SX.sym(name) for name in ("u", "off", "predictor", "mu", "corrector")]
    u, off, predictor, mu, corrector = symbols
    total = at.pushed(off, u) + mu * at.repulsion + corrector * at.bend(predictor)
    return ca.Function("row_correction", [*at.inputs.values(), *symbols], [total])


def _row_move() -> ca.Function:
    names = "u", "h", "ds", "predictor", "mu", "corrector", "length", "dual"
    at, symbols = Bounded(1, True), [ca.SX.sym(name) for name in names]
    u, h, ds, predictor, mu, corrector, length, dual = symbols
    w, z_low, z_high = at.moved(ds, predictor, mu, corrector, length, dual)
    du = at.multiplier_step(u, ds, predictor, mu, corrector)
    outside = ca.fmax(ca.fmax(at.low - h, h - at.high), 0)
    change = (1 - at.is_equation) * ca.fabs(ds) / (1 + ca.fabs(at.w))
    outputs = w, u + length * du, z_low, z_high, ca.fabs(h - w), at.logs(w), outside, change
    return ca.Function("row_move", [*at.inputs.values(), *symbols], list(outputs))


@cache
def _compiled() -> Kernels:
    return Kernels(Target(), lambda: source_hash("motion/wide/cases.py", "optimisation/barrier.py"))


def _kernel(make: Callable[[], ca.Function]) -> Any:
    return _compiled().kernel(make.__name__, make, _scalars).direct


def _scalars(of: Signature) -> tuple[list[tuple[()]], list[tuple[()]]]:
    return [()] * len(of.sizes_in), [()] * len(of.sizes_out)


class Form:
    """Data shared by programs with the same structure: row blocks, and the indices of all parts of the matrices.

    ``specials`` are the indices in x of the durations and the shared numbers.
    """

    def __init__(self, program: Program, linear: LinearRows, rates: Sequence[BatchedRates]):
        n = self.n = program.n
        edges = np.cumsum([0, *(batch.m for batch in program.batches)]).tolist()
        self.rows = [slice(first, last) for first, last in pairwise(edges)]
        self.linear_rows = slice(edges[-1], edges[-1] + linear.m)
        self.blocks = [NodeBlocks(batch, rows.start) for batch, rows in zip(program.batches, self.rows, strict=True)]
        durations = [layout.duration for layout in program.layout.phases if layout.duration >= 0]
        self.specials = [*durations, *program.layout.numbers.values()]
        self.places = [[self.specials.index(column) for column in own.batch.others] for own in self.blocks]
        self.boundaries = [Boundary.all_of(self.blocks[rate.index].windows) for rate in rates]
        # The parts of a matrix are sums of second derivatives and products of blocks. Their indices are row * n +
        # column.
        parts = list[Indices]()
        for own in self.blocks:
            lower = own.second.places.to // n >= own.second.places.to % n
            parts.append(np.full(own.second.size, -1))
            parts[-1][own.second.places.taken[lower]] = own.second.places.to[lower]
            parts += [self._square(window.columns) for window in own.windows]
        parts += [self._square(boundary.columns) for own in self.boundaries for boundary in own]
        parts.append(self._square(linear.columns))
        ends = np.cumsum([0, *(len(part) for part in parts)]).tolist()
        self.parts, self.size = [slice(first, last) for first, last in pairwise(ends)], ends[-1]
        to, pattern = np.concatenate(parts), np.zeros((n, n), dtype=bool)
        used = np.flatnonzero(to >= 0)
        pattern.ravel()[to[used]] = True
        pattern[self.specials] = True
        self.systems = Systems(pattern | pattern.T, np.flatnonzero(program.lower == program.upper))
        places = self.systems.places.ravel()[to[used]], used
        self._scatter = csr_array((np.ones(len(used)), places), shape=(len(self.systems.rows), self.size))
        border = self.systems.places[self.specials]
        for k in range(len(self.specials)):  # entries among the specials must be added only once
            border[k, self.specials[:k]] = -1
        self._border = np.flatnonzero(border >= 0), border[border >= 0]

    def _square(self, columns: Indices) -> Indices:
        """Return the indices of the entries of a block product, -1 above the diagonal."""
        return np.where(columns[:, None] >= columns, columns[:, None] * self.n + columns, -1).ravel()

    def entries(self, parts: Array) -> Array:
        """Return the entries (B, nnz) of the matrices from their parts (B, size)."""
        return np.stack([self._scatter @ own for own in parts])

    def add_border(self, entries: Array, border: Array) -> None:
        """Add the rows (B, specials, n) of the matrices and the corresponding columns to the entries."""
        used, places = self._border
        entries[:, places] += border.reshape(len(border), -1)[:, used]


@dataclass(frozen=True, eq=False)
class WideCases:
    """The programs of B cases with the structure of ``program``; ``at_nodes`` are the cases without linear rows.

    The rows of the programs are divided by ``units`` (B, m), which limits their derivatives at the start.
    """

    program: Program
    form: Form
    at_nodes: Cases
    linear: LinearRows
    rates: tuple[BatchedRates, ...]
    units: Array

    device, width = "cpu", WIDTH

    @classmethod
    def of(cls, programs: Sequence[Program], starts: Array) -> "WideCases":
        """Return the batch of programs with equal ``wide_structure_of``, scaled at starts (B, n)."""
        linear, rates = LinearRows.of(programs, FAR), BatchedRates.all_of(programs)
        at_nodes = Cases.of([without_linear(program) for program in programs])
        form, ones = Form(programs[0], linear, rates), np.ones((len(programs), programs[0].m))
        plain = cls(programs[0], form, at_nodes, linear, rates, ones)
        low, high = plain.row_bounds
        point = plain.point(starts, Rows((low + high) / 2, *[np.zeros_like(ones)] * 3), ones[:, 0], ones[:, 0])
        most = np.where(low == high, 1.0, MAX_GRADIENT)  # equations are stiff
        return replace(plain, units=np.maximum(1.0, point.steepest / most))

    def take(self, cases: Indices) -> "WideCases":
        """Return the batch of ``cases``."""
        rates = tuple(rate.take(cases) for rate in self.rates)
        return replace(
            self,
            at_nodes=self.at_nodes.take(cases),
            linear=self.linear.take(cases),
            rates=rates,
            units=self.units[cases],
        )

    def on_cpu(self) -> "WideCases":
        """Return the cases themselves."""
        return self

    def on(self, program: Program) -> "WideCases | None":
        """Return the same cases at the nodes of another program with the same variables; None if terms have data."""
        at_nodes = self.at_nodes.on(without_linear(program))
        if at_nodes is None:
            return None
        return replace(self, program=program, at_nodes=at_nodes, rates=(), units=np.ones((len(self), program.m)))

    def __len__(self) -> int:
        return len(self.at_nodes)

    @property
    def lower(self) -> Array:
        """Lower bounds (B, n) of the variables."""
        return self.at_nodes.lower

    @property
    def upper(self) -> Array:
        """Upper bounds (B, n) of the variables."""
        return self.at_nodes.upper

    @cached_property
    def row_bounds(self) -> tuple[Array, Array]:
        """Lower and upper bounds (B, m) of the rows."""
        both = zip(self.at_nodes.row_bounds, self.linear.bounds.swapaxes(0, 1), strict=False)
        sides = [np.concatenate(pair, axis=1) for pair in both]
        low, high = (np.where(np.abs(side) < FAR, side / self.units, side) for side in sides)
        return low, high

    @cached_property
    def inverse(self) -> Array:
        """The inverse scales (B, m) of the rows."""
        pairs = zip(self.at_nodes.program.batches, self.at_nodes.bounds, strict=True)
        parts = [np.tile(own[:, 2], len(batch.s)) for batch, own in pairs]
        return np.concatenate([*parts, self.linear.bounds[:, 2]], axis=1) / self.units

    def violations(self, x: Array, required: Flags) -> Array:
        """Return the largest bound violation (B,) of ``required`` rows (m,), or NaN."""
        return largest_violation(self.value(x)[1], self.row_bounds, required)

    def durations(self, x: Array) -> list[Array]:
        """Return the duration (B,) of each phase."""
        return [self.at_nodes.duration(phase, x) for phase in range(len(self.program.layout.phases))]

    def value(self, x: Array) -> tuple[Array, Array]:
        """Return f (B,) and the scaled rows (B, m) at x (B, n)."""
        f, rows = self.at_nodes.value(x)
        linear = self.linear.value(x, self.durations(x)) * self.linear.bounds[:, 2]
        rows = np.concatenate([rows, linear], axis=1) / self.units
        for rate in self.rates_at(x, rows):
            f = f + self.program.factor * rate.value
        return f, rows

    def rates_at(self, x: Array, rows: Array) -> list[RatesAt]:
        """Return the costs of row rates from the scaled rows (B, m)."""
        result, T = list[RatesAt](), self.durations(x)
        for rate in self.rates:
            batch, own = rate.own.batch, self.form.rows[rate.index]
            raw = (rows[:, own] / self.inverse[:, own]).reshape(len(x), len(batch.s), -1)
            result.append(rate.at(x, T[batch.phase], raw))
        return result

    def gradient(self, x: Array, rows: Rows) -> Array:
        """Return the gradient (B, n) of f at x (B, n)."""
        ones = np.ones(len(x))
        return self.point(x, rows, ones, ones).gradient

    def point(self, x: Array, rows: Rows, weight: Array, curvature: Array) -> "WidePoint":
        """Return the derivatives at x (B, n) and ``rows``; ``curvature`` (B,) weights the curvature of the rows."""
        return WidePoint(self, x, rows, weight, curvature)

    def moved(self, x: Array, rows: Rows, step: RowStep | PathStep, length: Array, dual: Array) -> Trial:
        """Return the rows and f after steps of the relative lengths ``length`` (B,) to x (B, n)."""
        f, h = self.value(x)
        own = cast(RowStep, step)
        scalars = (values[:, None] for values in (own.mu, own.corrector, length, dual))
        *moved, off, logs, outside, change = _kernel(_row_move)(
            rows.w, rows.z_low, rows.z_high, *self.row_bounds, rows.u, h, own.ds, own.predictor, *scalars
        )
        sums, largest = (off.sum(axis=1), logs.sum(axis=1)), ((self.units * outside).max(axis=1), change.max(axis=1))
        return Trial(Rows(*moved), f, *sums, *largest)


def without_linear(program: Program) -> Program:
    """Return the program without linear rows and costs that couple nodes."""
    return replace(program, linear=Linear((), program.layout), rates=())


class WidePoint(RowPoint, RowCorrections):
    """The rows at a point, and their derivatives."""

    def __init__(self, cases: WideCases, x: Array, rows: Rows, weight: Array, curvature: Array):
        self._cases, self._rows, form = cases, rows, cases.form
        weight, T, (_, h) = cases.program.factor * weight, cases.durations(x), cases.value(x)
        self._off = h - rows.w
        stiffness, pushed, repulsion, products, dual, most, least = _kernel(_row_point)(
            *self._bounded, rows.u, self._off
        )
        self.totals = RowTotals(
            products.sum(axis=1),
            (rows.z_low + rows.z_high).sum(axis=1),
            np.abs(rows.u).sum(axis=1),
            (repulsion * self._off).sum(axis=1),
            np.abs(self._off).max(axis=1),
            dual.max(axis=1),
            most.max(axis=1),
            least.min(axis=1),
        )
        multipliers = curvature[:, None] * rows.u * cases.inverse
        rates, pulled = cases.rates_at(x, h), [rows.u, pushed, repulsion]
        for rate, at in zip(cases.rates, rates, strict=True):
            own = form.rows[rate.index]
            by_rows = weight[:, None, None] * rate.multipliers(at)
            multipliers[:, own] += by_rows[:, 0]
            for values in by_rows.swapaxes(0, 1):
                pulled.append(np.zeros_like(h))
                pulled[-1][:, own] = values / cases.inverse[:, own]
        parts = _Parts(cases, x, rates, weight, multipliers, stiffness * cases.inverse**2)
        self._jacobian = parts.jacobian
        back = self._jacobian.transposed_times(np.stack(pulled, axis=1))
        self.multiplied, self.pushed, self.repelled = back[:, 0], back[:, 1], back[:, 2]
        self.gradient, self.entries, border = parts.gradient, parts.entries, parts.border
        cases.linear.add_hessian(border, form.specials, x, T, multipliers[:, form.linear_rows])
        first = 3
        for rate, at in zip(cases.rates, rates, strict=True):
            columns, squares = rate.own.columns, (at.d**2).sum(axis=2)
            mixed = back[:, first + 1 : first + 1 + len(columns)]
            self.gradient += back[:, first]
            self.gradient[:, columns] += weight[:, None] * (squares[:, None] @ at.first)[:, 0]
            places = [form.specials.index(column) for column in columns]
            border[:, places] += mixed
            border[:, :, columns] += mixed[..., form.specials].swapaxes(1, 2)
            corner = weight[:, None, None] * (squares[..., None, None] * at.second).sum(axis=1)
            border[np.ix_(range(len(x)), places, columns)] += corner
            first += 1 + len(columns)
        form.add_border(self.entries, border)

    @property
    def _bounded(self) -> tuple[Array, ...]:
        rows = self._rows
        return rows.w, rows.z_low, rows.z_high, *self._cases.row_bounds

    @property
    def systems(self) -> Systems:
        """The linear systems of the condensed matrices."""
        return self._cases.form.systems

    @property
    def steepest(self) -> Array:
        """The largest derivative (B, m) of each row."""
        return self._jacobian.steepest()

    @property
    def off(self) -> Array:
        """The residuals (B, m) of h - s = 0."""
        return self._off

    def take(self, at: Indices, step: RowStep | PathStep) -> "tuple[WidePoint, RowStep]":
        """Return the rows of the cases ``at`` and their steps, for corrections."""
        other = copy(self)
        other._cases, other._rows = self._cases.take(at), Rows(*(values[at] for values in self._rows))
        other._jacobian, other._off = self._jacobian.take(at), self._off[at]
        return other, cast(RowStep, step)

    def predicted(self, dx: Array) -> Prediction:
        """Return the effect of the steps (B, 2, n) without a barrier and for a unit barrier parameter."""
        ds, self._unit = self._jacobian.times(dx).swapaxes(0, 1)
        self._predictor = ds + self._off
        bend, along, both, primal, dual = _kernel(_row_prediction)(*self._bounded, self._predictor)
        sums = along.sum(axis=1), both.sum(axis=1), primal.max(axis=1), dual.max(axis=1)
        return Prediction(self._jacobian.transposed_times(bend[:, None])[:, 0], *sums)

    def ratios(self, dx: Array, mu: Array, correctors: Array) -> tuple[Array, Array]:
        """Return the largest relative reductions (B, correctors) of distances and multipliers by the steps."""
        self._second = self._jacobian.times(dx[:, None])[:, 0]
        ds = (self._predictor + mu[:, None] * self._unit)[:, None] + correctors[..., None] * self._second[:, None]
        bounded = (values[:, None] for values in self._bounded)
        scalars = mu[:, None, None], correctors[..., None]
        primal, dual = _kernel(_row_ratios)(*bounded, ds, self._predictor[:, None], *scalars)
        return primal.max(axis=2), dual.max(axis=2)

    def step(self, mu: Array, corrector: Array) -> RowStep:
        """Return the chosen step of the rows."""
        ds = self._predictor + mu[:, None] * self._unit + corrector[:, None] * self._second
        return RowStep(self._predictor, ds, mu, corrector)

    def correction(self, step: RowStep, off: Array) -> Array:
        """Return J^T (B, n) times the rows of the step with the residuals ``off`` (B, m)."""
        values = _kernel(_row_correction)(
            *self._bounded, self._rows.u, off, step.predictor, step.mu[:, None], step.corrector[:, None]
        )
        return self._jacobian.transposed_times(values[:, None])[:, 0]

    def corrected(self, step: RowStep, off: Array, dx: Array) -> tuple[RowStep, Array, Array]:
        """Return the step dx (B, n) with the residuals ``off``, and its largest relative reductions (B,)."""
        ds = self._jacobian.times(dx[:, None])[:, 0] + off
        primal, dual = _kernel(_row_ratios)(
            *self._bounded, ds, step.predictor, step.mu[:, None], step.corrector[:, None]
        )
        return step._replace(ds=ds), primal.max(axis=1), dual.max(axis=1)


class _Parts:
    """The Jacobian, the gradient of the integrals, and the entries of the matrices without their ``border``."""

    def __init__(
        self, cases: WideCases, x: Array, rates: list[RatesAt], weight: Array, multipliers: Array, stiffness: Array
    ):
        form, B = cases.form, len(x)
        self._cases, self._rates, self._weight, self._stiffness = cases, rates, weight, stiffness
        self._values = [np.empty((B, own.size)) for own in form.blocks]
        linear = cases.linear.jacobian(x, cases.durations(x))
        self.gradient, self.border = np.zeros((B, form.n)), np.zeros((B, len(form.specials), form.n))
        self.entries = np.empty((B, len(form.systems.rows)))
        inputs = [
            nodes.inputs(x)
            | {"multipliers": multipliers[:, rows].reshape(B, len(nodes.batch.s), nodes.batch.kernels.m)}
            for nodes, rows in zip(cases.at_nodes.nodes, form.rows, strict=True)
        ]
        for first in range(0, B, AT_A_TIME):
            some = slice(first, min(first + AT_A_TIME, B))
            parts = np.empty((some.stop - some.start, form.size))
            left = iter(form.parts)
            for k, own in enumerate(inputs):
                self._add_nodes(k, {name: v if name == "s" else v[some] for name, v in own.items()}, some, parts, left)
            for rate, at, boundaries in zip(cases.rates, rates, form.boundaries, strict=True):
                blocks, values = form.blocks[rate.index], self._values[rate.index][some]
                c = weight[some, None] * at.c[some]
                for boundary in boundaries:
                    _add_square(rate.across(blocks, values, boundary, c), parts[:, next(left)])
            _add_square(np.sqrt(stiffness[some, form.linear_rows, None]) * linear[some], parts[:, next(left)])
            self.entries[some] = form.entries(parts)
        all_blocks = [
            Block(window.rows, window.columns, own.block(values, window)[:, : window.rows.stop - window.rows.start])
            for own, values in zip(form.blocks, self._values, strict=True)
            for window in own.windows
            if own.batch.m
        ]
        all_blocks.append(Block(form.linear_rows, cases.linear.columns, linear))
        self.jacobian = RowJacobian(all_blocks, cases.inverse, form.n)

    def _add_nodes(self, k: int, inputs: dict[str, Array], some: slice, parts: Array, left: Iterator[slice]) -> None:
        """Add the derivatives at the nodes of batch k for the cases ``some``."""
        form, nodes = self._cases.form, self._cases.at_nodes.nodes[k]
        own, batch, b = form.blocks[k], nodes.batch, len(parts)
        D, N, U, s = batch.kernels.orders, batch.kernels.count, batch.kernels.profiles, len(batch.others)
        weight = self._weight[some, None] * batch.weights
        first = own.jacobian.call(**inputs)
        second = own.hessian.call(**inputs, weight=weight)
        if batch.kernels.costs:
            cost = first["cost"] * weight[..., None]
            pulled = {"pulled": np.ascontiguousarray(cost[..., :U]), "pulled_specials": cost[..., U:]}
            self.gradient[some] += nodes.pulled(pulled, 1)[:, 0]
        if s:
            mixed = second["mixed"].reshape(b, -1, D, N, s).swapaxes(3, 4).reshape(b, len(batch.s), -1)
            pulled = {"pulled": mixed, "pulled_specials": second["corner"]}
            self.border[some, form.places[k]] += nodes.pulled(pulled, s)
        at = next(left)
        if at.stop > at.start:
            parts[:, at] = own.second.parts(second["blocks"])
        own.fill(self._values[k][some], first, second)
        q = batch.kernels.square_count
        squares = np.repeat(2 * weight, q, axis=1)
        for index, window in enumerate(own.windows):
            nodes_at = slice(window.nodes.start * q, window.nodes.stop * q)
            roots = np.sqrt(np.concatenate([self._stiffness[some, window.rows], squares[:, nodes_at]], axis=1))
            at = next(left)
            _add_square(roots[..., None] * own.block(self._values[k][some], window), parts[:, at])
            for rate, at_rate in zip(self._cases.rates, self._rates, strict=True):
                c = self._weight[some, None] * at_rate.c[some]
                steps = rate.inside(own, self._values[k][some], index, c) if rate.index == k else None
                if steps is not None:
                    _add_square(steps, parts[:, at], is_first=False)


def _add_square(block: Array, out: Array, is_first: bool = True) -> None:
    """Add the lower triangles of block^T block, for blocks (B, rows, columns), to ``out`` (B, columns^2)."""
    if not block.size:
        out[:] = 0.0 if is_first else out
        return
    for own, total in zip(block, out.reshape(len(block), block.shape[2], -1), strict=True):
        dsyrk(1.0, own.T, beta=0.0 if is_first else 1.0, c=total.T, overwrite_c=1)
