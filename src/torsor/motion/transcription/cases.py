"""Programs with the same structure as a batch: each kernel is called once for all nodes of all cases.

The cases have the same kernels, nodes, splines and variables. Their ends, bounds, fixed durations, fixed numbers and
data differ, and are arrays with one row per case. All rows are at nodes. ``Cases`` provides sums over the rows, but no
Jacobian, to the interior-point method of ``motion.batched``.

The arrays are NumPy arrays, or CuPy arrays on a GPU. The code is the same, because NumPy functions dispatch CuPy arrays
to CuPy; new arrays are created ``like`` others.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from scipy.sparse import csr_array

from torsor.base.arrays import Array, Flags, Indices
from torsor.compiler import array_module, free_memory, on_host
from torsor.compiler.fold import Fold, Targets
from torsor.motion.batched import (
    WIDTHS,
    PathStep,
    Prediction,
    RowCorrections,
    RowPoint,
    Rows,
    RowStep,
    RowTotals,
    Trial,
)
from torsor.motion.linear_systems import Systems
from torsor.motion.transcription.batch import Batch
from torsor.motion.transcription.program import Program
from torsor.optimisation.barrier import FAR

PULLED = "point", "predicted", "gradient"  # folds that return derivatives with respect to the variables
AT_A_TIME = 4  # number of cases whose second derivatives a CPU computes together


def structure_of(program: Program) -> tuple[Any, ...] | None:
    """Return a key that is equal for programs that can be solved in one batch; None if a program cannot be batched."""
    if program.at_nodes is None:
        return None
    program = program.at_nodes[0]
    is_closed = any(batch.kernels.node.model.is_closed for batch in program.batches)
    if program.rates or is_closed or not program.n or not program.m:
        return None
    return nodes_structure(program), kinds_of_bounds(program)


def nodes_structure(program: Program) -> tuple[Any, ...]:
    """Return a key that is equal for programs with the same variables, kernels and nodes."""
    layouts = tuple(
        (phase.columns.tobytes(), phase.duration, phase.ticks, *((s.degree, s.inner.tobytes()) for s in phase.splines))
        for phase in program.layout.phases
    )
    batches = tuple(
        (batch.kernels.identity, batch.phase, batch.s.tobytes(), batch.weights.tobytes()) for batch in program.batches
    )
    return layouts, batches, program.factor


def kinds_of_bounds(program: Program) -> tuple[bytes, ...]:
    """Return flags of the bounds that exist, and of equal bounds."""
    pairs = (program.lower, program.upper), (program.row_lower, program.row_upper)
    kinds = [kind for low, high in pairs for kind in (np.isfinite(low), np.isfinite(high), low == high)]
    return tuple(kind.tobytes() for kind in kinds)


class Constants:
    """The arrays of a batch of nodes that all cases share, on a device."""

    def __init__(self, batch: Batch, device: str):
        placed, layout = array_module(device).asarray, batch.chain.phase_layout
        self._batch, self._placed = batch, placed
        self.s, self.weights = placed(batch.s), placed(batch.weights)
        self.points = placed(layout.columns.T.copy())  # (P, N)
        self.others = placed(np.array(batch.others, dtype=int))
        self.numbers = placed(np.array(list(batch.layout.numbers.values()), dtype=int))
        # rows (K orders, P) of each spline, its profiles, and the indices in x of its control points (P, profiles)
        columns = [layout.columns[group.profiles, : group.rows.shape[1]].T for group in batch.chain.groups]
        self.groups = [
            (placed(group.rows), placed(group.profiles), placed(points))
            for group, points in zip(batch.chain.groups, columns, strict=True)
        ]

    @cached_property
    def blocks(self) -> list[tuple[slice, Any, Any]]:
        """The ``products`` of the blocks of the condensed matrix."""
        return [
            (orders, None if blocks is None else self._placed(blocks), self._placed(product))
            for orders, blocks, product in self._batch.condensed_blocks.products
        ]


class Assembly:
    """The sparsity pattern of the condensed matrices, and the indices of the node derivatives in them."""

    def __init__(self, program: Program, device: str):
        self._program, self._device = program, device
        self.constants = {id(batch): Constants(batch, device) for batch in program.batches}

    @cached_property
    def systems(self) -> Systems:
        """The linear systems of the condensed matrices."""
        program, pattern = self._program, np.zeros((self._program.n,) * 2, dtype=bool)
        for batch in program.batches:
            pattern.ravel()[batch.condensed_blocks.places.to] = True
            pattern[batch.others] = pattern[:, batch.others] = True
        return Systems(pattern, np.flatnonzero(program.lower == program.upper), self._device)

    @cached_property
    def _places(self) -> list[tuple[Any, list[tuple[Indices, Indices]]]]:
        """For each batch, the scatter matrix of the blocks, and the indices of the columns of T and the numbers."""
        result, xp = [], array_module(self._device)
        for batch in self._program.batches:
            shape, places = (len(self.systems.rows), batch.condensed_blocks.size), self._of_blocks(batch)
            scatter = csr_array((np.ones(len(places[0])), places), shape=shape)
            columns = self.systems.places[batch.others]
            for k in range(len(batch.others)):  # entries among T and the numbers must be added only once
                columns[k, batch.others[:k]] = -1
            used = [(xp.asarray(to[to >= 0]), xp.asarray(np.flatnonzero(to >= 0))) for to in columns]
            result.append((scatter if self._device == "cpu" else xp.asarray(_summed(scatter)), used))
        return result

    def _of_blocks(self, batch: Batch) -> tuple[Indices, Indices]:
        """Return the indices of entries, and of the block parts that are added to them."""
        places = batch.condensed_blocks.places
        row, column = np.divmod(places.to, self._program.n)
        lower = row >= column
        return self.systems.places[row[lower], column[lower]], places.taken[lower]

    @cached_property
    def targets(self) -> list[dict[str, dict[str, Targets]]]:
        """For each batch, the target indices of fold outputs by name."""
        result = []
        for batch in self._program.batches:
            size, (to, taken) = len(self.systems.rows), self._of_blocks(batch)
            places = np.full(batch.condensed_blocks.size, size)
            places[taken] = to
            pulled, one = (self._of_pulled(batch, k) for k in (4 + len(batch.others), 1))
            own = {"blocks": Targets(places, size), "pulled": pulled}
            result.append({"point": own, "predicted": {"pulled": one}, "gradient": {"pulled": one}})
        return result

    def _of_pulled(self, batch: Batch, k: int) -> Targets:
        """Return the target indices in (k, n) of k derivatives with respect to control points (points, k, N)."""
        n, ((_, _, columns),) = self._program.n, self.constants[id(batch)].groups
        places = np.where(columns[:, None] < 0, k * n, columns[:, None] + n * np.arange(k)[:, None])
        return Targets(places.ravel(), k * n)

    def entries(self, parts: Sequence[Array], columns: Sequence[Array]) -> Array:
        """Return the entries (B, nnz) of the matrices from block sums and columns (B, specials, n), by batch."""
        total = np.zeros((len(parts[0]), len(self.systems.rows)), like=parts[0])
        for (scatter, _), part in zip(self._places, parts, strict=True):
            if isinstance(scatter, csr_array):
                total += (scatter @ part.T).T
            else:
                total += np.concatenate([part, np.zeros_like(part[:, :1])], axis=1)[:, scatter].sum(axis=2)
        self.add_columns(total, columns)
        return total

    def add_columns(self, entries: Array, columns: Sequence[Array]) -> None:
        """Add the columns (B, specials, n) of T and the numbers, by batch, to the matrix entries."""
        for (_, places), column in zip(self._places, columns, strict=True):
            for k, (to, taken) in enumerate(places):
                entries[:, to] += column[:, k, taken]


def _summed(scatter: csr_array) -> Indices:
    """Return the indices (rows, most) of the columns that each row sums, padded with the index of an added 0."""
    counts = np.diff(scatter.indptr)
    result = np.full((len(counts), counts.max(initial=1)), scatter.shape[1])
    result[np.arange(result.shape[1]) < counts[:, None]] = scatter.indices
    return result


@dataclass(frozen=True, eq=False)
class Cases:
    """The programs of B cases with the structure of ``program``.

    ``bounds`` contains, for each batch, the lower and upper bounds of the scaled rows of a node and the inverse scales
    (B, 3, m). ``known`` contains the known control points (B, N, P) of each phase, and ``seconds`` its fixed duration
    (B,). ``data`` contains the data (B, K, count) of each batch, and ``given`` its fixed numbers (B, count).
    """

    program: Program
    assembly: Assembly
    device: str
    lower: Array
    upper: Array
    bounds: tuple[Array, ...]
    known: tuple[Array, ...]
    seconds: tuple[Array, ...]
    data: tuple[Array, ...]
    given: tuple[Array, ...]

    @classmethod
    def of(cls, programs: Sequence[Program], device: str = "cpu", like: "Cases | None" = None) -> "Cases":
        """Return the batch of programs with equal ``structure_of``; ``like`` is an earlier one."""
        programs = [program.at_nodes[0] for program in programs if program.at_nodes is not None]
        first, placed = programs[0], array_module(device).asarray
        phases = [[program.layout.phases[k] for program in programs] for k in range(len(first.layout.phases))]
        batches = list(zip(*(program.batches for program in programs), strict=True))
        edges = np.cumsum([0, *(batch.m for batch in first.batches)])
        bounds = []
        for batch, edge in zip(first.batches, edges, strict=False):
            at = slice(edge, edge + batch.kernels.m)  # the rows of the first node represent those of all nodes
            sides = [(own.row_lower[at], own.row_upper[at], 1 / own.scales[at]) for own in programs]
            bounds.append(placed(np.clip(np.array(sides, dtype=float), -FAR, FAR)))
        return cls._on(
            first,
            device,
            like,
            lower=placed(np.stack([program.lower for program in programs])),
            upper=placed(np.stack([program.upper for program in programs])),
            bounds=tuple(bounds),
            known=tuple(placed(np.stack([layout.known for layout in layouts])) for layouts in phases),
            seconds=tuple(placed(np.array([layout.phase.bounds[0] for layout in layouts])) for layouts in phases),
            data=tuple(placed(np.stack([batch.data for batch in each])) for each in batches),
            given=tuple(placed(np.stack([batch.kernels.given for batch in each])) for each in batches),
        )

    @classmethod
    def with_known(
        cls, program: Program, known: Sequence[Array], device: str = "cpu", like: "Cases | None" = None
    ) -> "Cases":
        """Return the batch of programs that differ in the known control points (B, N, P) of each phase."""
        one, placed = cls.of([program], device, like), array_module(device).asarray
        same = one.take(np.zeros(len(known[0]), dtype=int, like=one.lower))
        return replace(same, known=tuple(map(placed, known)))

    @classmethod
    def _on(cls, program: Program, device: str, like: "Cases | None", **arrays: Any) -> "Cases":
        """Return a batch with the kernels of a program on a device, or with those of ``like``."""
        if like is not None:
            return replace(like, **arrays)
        batches = tuple(replace(batch, kernels=batch.kernels.on(device)) for batch in program.batches)
        program = replace(program, batches=batches)
        return cls(program, Assembly(program, device), device, **arrays)

    def take(self, cases: Indices) -> "Cases":
        """Return the batch of ``cases``."""

        def part(value: Any) -> Any:
            return tuple(array[cases] for array in value) if isinstance(value, tuple) else value[cases]

        arrays = (part(getattr(self, field.name)) for field in fields(self)[3:])
        return Cases(self.program, self.assembly, self.device, *arrays)

    def on_cpu(self) -> "Cases":
        """Return the same cases with arrays on the CPU."""
        arrays = {field.name: getattr(self, field.name) for field in fields(self)[3:]}
        copied = {
            name: tuple(map(on_host, value)) if isinstance(value, tuple) else on_host(value)
            for name, value in arrays.items()
        }
        return self._on(self.program, "cpu", None, **copied)

    def on(self, program: Program, like: "Cases | None" = None) -> "Cases | None":
        """Return the cases at the nodes of another program with the same variables, or None if terms have data.

        ``like`` is an earlier result for this program.
        """
        if any(data.shape[2] for data in self.data):
            return None
        known = [(id(batch.kernels), batch.phase) for batch in self.program.batches]
        places = [known.index((id(batch.kernels), batch.phase)) for batch in program.batches]
        data = tuple(np.zeros((len(self), len(batch.s), 0), like=self.lower) for batch in program.batches)
        bounds, given = (tuple(values[place] for place in places) for values in (self.bounds, self.given))
        others = {name: getattr(self, name) for name in ("lower", "upper", "known", "seconds")}
        return self._on(program, self.device, like, data=data, bounds=bounds, given=given, **others)

    def __len__(self) -> int:
        return len(self.lower)

    @property
    def data_arrays(self) -> list[Array]:
        """All arrays (B, ...) that may differ between cases."""
        arrays = (getattr(self, field.name) for field in fields(self)[3:])
        return [array for value in arrays for array in (value if isinstance(value, tuple) else [value])]

    @property
    def width(self) -> int:
        """Number of active cases; on a GPU, twice the inputs and outputs of their nodes fit into memory."""
        if self.device == "cpu":
            return WIDTHS["cpu"]
        numbers = (
            len(batch.s) * (40 * batch.kernels.m + 5 * batch.kernels.profiles + batch.barrier.entries)
            + len(batch.s) * batch.chain.orders**2 * len(batch.condensed_blocks.i)
            for batch in self.program.batches
        )
        return min(WIDTHS["cuda"], max(1, free_memory("cuda") // (16 * sum(numbers))))

    @property
    def units(self) -> Array:
        """Divisors (B, m) of the rows of the programs."""
        return np.ones((len(self), sum(batch.m for batch in self.program.batches)), like=self.lower)

    @property
    def n(self) -> int:
        """Number of variables of a case."""
        return self.program.n

    @cached_property
    def nodes(self) -> list["Nodes"]:
        """The nodes of each batch."""
        return [Nodes(batch, self, k) for k, batch in enumerate(self.program.batches)]

    def duration(self, phase: int, x: Array) -> Array:
        """Return the durations (B,) of a phase."""
        place = self.program.layout.phases[phase].duration
        return self.seconds[phase] if place < 0 else x[:, place]

    @cached_property
    def row_bounds(self) -> tuple[Array, Array]:
        """Lower and upper bounds (B, m) of all rows."""
        pairs = list(zip(self.program.batches, self.bounds, strict=True))
        low, high = (
            np.concatenate([np.tile(own[:, side], (1, len(batch.s))) for batch, own in pairs], axis=1)
            for side in range(2)
        )
        return low, high

    def value(self, x: Array) -> tuple[Array, Array]:
        """Return f (B,) and the scaled rows (B, m) at x (B, n)."""
        f, parts = np.zeros(len(x), like=x), list[Array]()
        for nodes in self.nodes:
            rows, cost = nodes.value(x)
            f += cost
            parts.append(rows)
        return self.program.factor * f, _side_by_side(parts)

    @cached_property
    def is_folded(self) -> bool:
        """Whether compiled code loops over the nodes (``barrier_folds``): on a CPU, with one spline per phase."""
        return self.device == "cpu" and all(batch.folds is not None for batch in self.program.batches)

    def point(self, x: Array, rows: Rows, weight: Array, curvature: Array) -> "RowPoint":
        """Return the derivatives at x (B, n) and ``rows``; ``curvature`` (B,) weights the curvature of the rows."""
        kind = FoldedPoint if self.is_folded else CasesPoint
        return kind(self, x, rows, weight, curvature)

    def moved(self, x: Array, rows: Rows, step: RowStep | PathStep, length: Array, dual: Array) -> Trial:
        """Return the rows and f after steps of the relative lengths ``length`` (B,) to x (B, n)."""
        if isinstance(step, PathStep):
            return self._folded_move(x, rows, step, length, dual)
        f, parts, totals = np.zeros(len(x), like=x), list[Rows](), list[Array]()
        scalars = {"mu": step.mu[:, None], "corrector": step.corrector[:, None]}
        scalars |= {"length": length[:, None], "dual": dual[:, None]}
        for nodes, first, last in self.parts:
            if not nodes.batch.m:
                f += nodes.value(x)[1]
                continue
            at = slice(first, last)
            inputs = nodes.inputs(x) | nodes.rows(rows, at) | nodes.bounds | scalars
            inputs |= {"predictor": nodes.shaped(step.predictor[:, at]), "ds": nodes.shaped(step.ds[:, at])}
            result = nodes.batch.barrier.moved(**inputs)
            f += (result["cost"][..., 0] * nodes.constants.weights).sum(axis=1)
            names = ("w_new", "u_new", "z_low_new", "z_high_new")
            parts.append(Rows(*(result[name].reshape(len(x), -1) for name in names)))
            totals.append(result["totals"])
        all_ = _by_total(totals)
        sums, largest = all_[:2].sum(axis=2), all_[2:].max(axis=2)
        return Trial(Rows(*map(_side_by_side, zip(*parts, strict=True))), self.program.factor * f, *sums, *largest)

    def gradient(self, x: Array, rows: Rows) -> Array:
        """Return the gradient (B, n) of f at x (B, n)."""
        if not self.is_folded:
            ones = np.ones_like(x[:, 0])
            return CasesPoint(self, x, rows, ones, ones).gradient
        total = np.zeros((len(x), self.n))
        for nodes in self.nodes:
            total += nodes.folded_pull(nodes.fold("gradient", nodes.folded(x)), 1)[:, 0]
        return self.program.factor * total

    def violations(self, x: Array, required: Flags) -> Array:
        """Return the largest bound violation (B,) of ``required`` rows (m,), or NaN."""
        if not self.is_folded:
            return largest_violation(self.value(x)[1], self.row_bounds, required)
        worst = np.zeros(len(x))
        for nodes, first, last in self.parts:
            own = required[first:last].reshape(len(nodes.batch.s), -1).astype(float)
            result = nodes.fold("outside", nodes.folded(x) | {"required": own})
            worst = np.maximum(worst, np.where(np.isnan(result["sums"][:, 0]), np.nan, result["largest"][:, 0]))
        return worst

    def _folded_move(self, x: Array, rows: Rows, step: PathStep, length: Array, dual: Array) -> Trial:
        f, parts, worst = np.zeros(len(x)), list[Rows](), np.full((2, len(x)), -np.inf)
        total = np.zeros((2, len(x)))
        scalars = {"mu": step.mu, "corrector": step.corrector, "length": length, "dual": dual}
        changes = np.stack([step.dx, step.predictor], axis=1)
        for nodes, first, last in self.parts:
            if not nodes.batch.m:
                f += nodes.value(x)[1]
                continue
            inputs = nodes.folded(step.x) | nodes.folded_rows(rows, slice(first, last)) | nodes.folded_changes(changes)
            inputs |= {f"new_{name}": values for name, values in nodes.folded_point(x).items()} | scalars
            result = nodes.fold("moved", inputs)
            f += result["sums"][:, 2]
            total += result["sums"][:, :2].T
            worst = np.maximum(worst, result["largest"].T)
            parts.append(Rows(*(result[name] for name in ("w_new", "u_new", "z_low_new", "z_high_new"))))
        new = Rows(*map(_side_by_side, zip(*parts, strict=True)))
        return Trial(new, self.program.factor * f, *total, *worst)

    @cached_property
    def parts(self) -> list[tuple["Nodes", int, int]]:
        """The nodes of each batch, and their first and last row."""
        edges = np.cumsum([0, *(batch.m for batch in self.program.batches)]).tolist()
        return list(zip(self.nodes, edges[:-1], edges[1:], strict=True))


def largest_violation(rows: Array, bounds: tuple[Array, Array], required: Flags) -> Array:
    """Return the largest violation (B,) of bounds (B, m) by ``required`` (m,) rows (B, m), or NaN."""
    low, high = bounds
    outside = np.maximum(low - rows, rows - high)
    result: Array = np.where(required & ~(outside <= 0), outside, 0.0).max(axis=1)
    return result


def _side_by_side(parts: Sequence[Array]) -> Array:
    """Return arrays (B, ...) concatenated along their second axis; a single array is not copied."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def _by_total(parts: Sequence[Array]) -> Array:
    """Return totals (B, K, count) of batches as (count, B, nodes), whose last axis is contiguous for fast sums."""
    joined = _side_by_side(parts)
    return joined.transpose(2, 0, 1).copy()


class Nodes:
    """The nodes of one batch of the program, for all cases."""

    def __init__(self, batch: Batch, cases: Cases, index: int):
        self.batch, self._cases, self._index = batch, cases, index
        self.constants = cases.assembly.constants[id(batch)]
        self._count = len(batch.chain.phase_layout.splines)
        self._last: tuple[Array | None, dict[str, Array]] = (None, {})
        self._last_folded: tuple[Array | None, dict[str, Array]] = (None, {})
        low, high, inverse = (cases.bounds[index][:, None, k] for k in range(3))
        self.bounds = {"low": low, "high": high, "inverse": inverse}

    def shaped(self, rows: Array) -> Array:
        """Return rows (B, K m) as (B, K, m)."""
        return rows.reshape(len(rows), len(self.batch.s), -1)

    def rows(self, rows: Rows, at: slice) -> dict[str, Array]:
        """Return the slacks and multipliers of these nodes."""
        return {name: self.shaped(values[:, at]) for name, values in rows._asdict().items()}

    def rates(self, points: Array) -> Array:
        """Return profiles and derivatives with respect to s (..., K, orders N) from control points (..., P, N)."""
        groups, K, lead = self.constants.groups, len(self.batch.s), points.shape[:-2]
        if len(groups) == 1:
            rates: Array = (groups[0][0] @ points).reshape(*lead, K, -1)
            return rates
        orders = self.batch.chain.orders
        result = np.empty((*lead, K, orders, points.shape[-1]), like=points)
        for rows, profiles, _ in groups:
            own = points[..., : rows.shape[1], profiles]
            result[..., profiles] = (rows @ own).reshape(*lead, K, orders, -1)
        return result.reshape(*lead, K, -1)

    def _rates_of(self, order: int, points: Array) -> Array:
        """Return the derivatives (B, K, N) with respect to s of one order from control points (B, P, N)."""
        groups, K = self.constants.groups, len(self.batch.s)
        every = [rows.reshape(K, -1, rows.shape[1])[:, order] for rows, _, _ in groups]
        if len(groups) == 1:
            rates: Array = every[0] @ points
            return rates
        result = np.empty((len(points), K, points.shape[-1]), like=points)
        for rows, (_, profiles, _) in zip(every, groups, strict=True):
            result[..., profiles] = rows @ points[:, : rows.shape[1], profiles]
        return result

    def _points(self, x: Array, known: Array | None) -> Array:
        """Return control points (..., P, N) of variables x (..., n); known points are 0 if ``known`` is None."""
        padded = np.concatenate([x, np.zeros((*x.shape[:-1], 1), like=x)], axis=-1)
        points: Array = np.take(padded, self.constants.points, axis=-1)  # contiguous; the index -1 is the added 0
        return points if known is None else points + known.swapaxes(-1, -2)

    def inputs(self, x: Array) -> dict[str, Array]:
        """Return the inputs of the node at x (B, n)."""
        if self._last[0] is not x:
            cases, batch = self._cases, self.batch
            T, points = cases.duration(batch.phase, x), self._points(x, cases.known[batch.phase])
            inputs = {f"y_{d}": self._rates_of(d, points / T[:, None, None] ** d) for d in range(batch.chain.orders)}
            numbers = x[:, self.constants.numbers][:, None]
            inputs |= {"T": T[:, None], "numbers": numbers, "s": self.constants.s, "data": cases.data[self._index]}
            self._last = x, inputs | {"given": cases.given[self._index][:, None]}
        return self._last[1]

    def value(self, x: Array) -> tuple[Array, Array]:
        """Return the scaled rows (B, K m) and this batch's part of the integral of the objective (B,), at x (B, n)."""
        result = self.batch.kernels.value(**self.inputs(x))
        rows = result["rows"] * self.bounds["inverse"] if self.batch.kernels.m else np.zeros((len(x), 0), like=x)
        return rows.reshape(len(x), -1), (result["cost"][..., 0] * self.constants.weights).sum(axis=1)

    def changes(self, dx: Array) -> dict[str, Array]:
        """Return the kernel inputs of k changes (B, k, n) of the variables."""
        (B, k), K = dx.shape[:2], len(self.batch.s)
        points = self._points(dx, None)  # (B, k, P, N)
        if len(self.batch.chain.groups) == 1:
            wide = self.rates(points.swapaxes(1, 2).reshape(B, points.shape[2], -1))
        else:
            own = self.rates(points).reshape(B, k, K, self.batch.chain.orders, -1)
            wide = np.moveaxis(own, 1, 3).reshape(B, K, -1)
        return {"changes": wide, "specials": dx[:, :, self.constants.others].reshape(B, 1, -1)}

    def pulled(self, results: dict[str, Array], k: int) -> Array:
        """Return k derivatives (B, k, n), summed over the nodes."""
        groups, others, values = self.constants.groups, self.constants.others, results["pulled"]
        B, rows_count = len(values), len(self.batch.s) * self.batch.chain.orders
        total = np.zeros((B, k, self._cases.n + 1), like=values)  # known points are collected in the last column
        by_node = values.reshape(B, rows_count, k, self._count)
        for rows, profiles, columns in groups:
            own = by_node if len(groups) == 1 else by_node[..., profiles]
            sums = (rows.T @ own.reshape(B, rows_count, -1)).reshape(B, -1, k, len(profiles))
            total[:, :, columns] = sums.swapaxes(1, 2)
        if len(others):
            total[:, :, others] += results["pulled_specials"].sum(axis=1).reshape(B, k, -1)
        return total[..., :-1]

    # Folds over the nodes

    def folded_point(self, x: Array) -> dict[str, Array]:
        """Return the inputs of folds that depend on the variables (B, n)."""
        phase = self.batch.phase
        points = self._points(x, self._cases.known[phase])
        return {"points": points, "T": self._cases.duration(phase, x), "numbers": x[:, self.constants.numbers]}

    def folded(self, x: Array) -> dict[str, Array]:
        """Return the inputs of folds at x (B, n)."""
        if self._last_folded[0] is x:
            return self._last_folded[1]
        cases, constants, nodes = self._cases, self.constants, self.batch.spline_nodes
        fixed = {"basis": nodes.basis, "s": constants.s[:, None], "node_weight": constants.weights[:, None]}
        given = {"data": cases.data[self._index], "given": cases.given[self._index]}
        self._last_folded = x, fixed | self.bounds | given | self.folded_point(x)
        return self._last_folded[1]

    def folded_rows(self, rows: Rows, at: slice) -> dict[str, Array]:
        """Return the slacks and multipliers of these nodes as inputs of folds."""
        return {name: values[:, at] for name, values in rows._asdict().items()}

    def folded_changes(self, dx: Array) -> dict[str, Array]:
        """Return the inputs of folds for k changes (B, k, n) of the variables."""
        points = self._points(dx, None).swapaxes(1, 2)
        return {"change_points": points, "specials": dx[:, :, self.constants.others]}

    def fold(self, name: str, inputs: dict[str, Array]) -> dict[str, Array]:
        """Return the outputs of a fold of ``barrier_folds``."""
        fold: Fold = getattr(self.batch.folds, name)
        targets = self._cases.assembly.targets[self._index][name] if name in PULLED else {}
        return fold(self.batch.spline_nodes, len(inputs["points"]), inputs, targets)

    def folded_pull(self, results: dict[str, Array], k: int) -> Array:
        """Return k derivatives (B, k, n) from their sums over the nodes."""
        total = results["pulled"].reshape(-1, k, self._cases.n)
        if len(self.constants.others):
            total[:, :, self.constants.others] += results["pulled_specials"].reshape(len(total), k, -1)
        return total

    def point(self, x: Array, rows: dict[str, Array], weight: Array, curvature: Array) -> dict[str, Array]:
        """Return "jacobian", "off" and "totals" of the nodes, the "pulled" derivatives (B, k, n), and "parts".

        The parts are sums of blocks of the condensed matrix. Only a few cases are computed together, because the blocks
        of all cases would not fit into the cache.
        """
        batch, B, call = self.batch, len(x), self.batch.barrier.point
        inputs = self.inputs(x) | rows | self.bounds
        inputs["multipliers"] = curvature[:, None, None] * rows["u"] * self.bounds["inverse"]
        inputs["weight"] = weight[:, None] * self.constants.weights
        count = 4 + len(batch.others)
        if self._cases.device == "cuda":
            result = call(**inputs)
            kept = {name: result[name] for name in ("jacobian", "off", "totals") if batch.m}
            blocks = result["blocks"] if batch.condensed_blocks.size else np.zeros((B, len(batch.s), 0), like=x)
            parts = batch.condensed_blocks.parts(blocks, self.constants.blocks)
            return kept | {"parts": parts, "pulled": self.pulled(result, count)}
        shared = {name: values for name, values in inputs.items() if name == "s"}
        own = {name: values for name, values in inputs.items() if name not in shared}
        kept = {}
        if batch.m:
            sizes = {"jacobian": batch.barrier.entries, "off": batch.kernels.m, "totals": len(RowTotals._fields)}
            kept = {name: np.empty((B, len(batch.s), size)) for name, size in sizes.items()}
        parts, pulled = np.empty((B, batch.condensed_blocks.size)), np.empty((B, count, self._cases.n))
        for first in range(0, B, AT_A_TIME):
            some = slice(first, first + AT_A_TIME)
            written = {name: values[some] for name, values in kept.items()}
            result = call(**shared, **{name: values[some] for name, values in own.items()}, out=written)
            if parts.size:  # costs may depend on numbers only
                parts[some] = batch.condensed_blocks.parts(result["blocks"])
            pulled[some] = self.pulled(result, pulled.shape[1])
        return kept | {"parts": parts, "pulled": pulled}


class FoldedPoint(RowPoint):
    """The rows at a point, with sums over the nodes by compiled code instead of a Jacobian."""

    def __init__(self, cases: Cases, x: Array, rows: Rows, weight: Array, curvature: Array):
        self._cases, self._x, self._rows = cases, x, rows
        total, sums, largest = np.zeros((len(x), 4, cases.n)), np.zeros((len(x), 4)), np.full((len(x), 4), -np.inf)
        self.entries, columns = np.zeros((len(x), len(cases.assembly.systems.rows))), list[Array]()
        scalars = {"weight": cases.program.factor * weight, "curvature": curvature}
        for nodes, first, last in cases.parts:
            result = nodes.fold("point", self._inputs(nodes, first, last) | scalars)
            pulled = nodes.folded_pull(result, 4 + len(nodes.batch.others))
            total += pulled[:, :4]
            self.entries += result.get("blocks", 0.0)  # absent if the costs depend on numbers only
            columns.append(pulled[:, 4:])
            if nodes.batch.m:
                sums += result["sums"]
                largest = np.maximum(largest, result["largest"])
        cases.assembly.add_columns(self.entries, columns)
        self.gradient, self.multiplied, self.pushed, self.repelled = total.swapaxes(0, 1)
        self.totals = RowTotals(*np.concatenate([sums, largest[:, :3], -largest[:, 3:]], axis=1).T)

    @property
    def systems(self) -> Systems:
        """The linear systems of the condensed matrices."""
        return self._cases.assembly.systems

    def _inputs(self, nodes: Nodes, first: int, last: int) -> dict[str, Array]:
        return nodes.folded(self._x) | nodes.folded_rows(self._rows, slice(first, last))

    def _each(self) -> Iterator[tuple[Nodes, dict[str, Array]]]:
        for nodes, first, last in self._cases.parts:
            if nodes.batch.m:
                yield nodes, self._inputs(nodes, first, last)

    def take(self, at: Indices, step: RowStep | PathStep) -> tuple["CasesPoint", RowStep]:
        """Return the rows of the cases ``at`` with their Jacobian, and the row steps, for corrections."""
        step, cases, rows = cast(PathStep, step), self._cases.take(at), Rows(*(values[at] for values in self._rows))
        results, predictors = list[dict[str, Array]](), list[Array]()
        for nodes, first, last in cases.parts:
            if nodes.batch.m:
                inputs = nodes.inputs(step.x) | nodes.bounds | nodes.rows(rows, slice(first, last))
                results.append(nodes.batch.barrier.rows_of_step(**inputs, **nodes.changes(step.predictor[:, None])))
                predictors.append(results[-1].pop("predictor").reshape(len(at), -1))
        predictor = _side_by_side(predictors)
        return CasesPoint.of_results(cases, rows, results), RowStep(predictor, predictor, step.mu, step.corrector)

    def predicted(self, dx: Array) -> Prediction:
        """Return the effect of the steps (B, 2, n) without a barrier and for a unit barrier parameter."""
        pulled, sums, largest = np.zeros((len(dx), self._cases.n)), np.zeros((len(dx), 2)), np.zeros((len(dx), 2))
        for nodes, inputs in self._each():
            result = nodes.fold("predicted", inputs | nodes.folded_changes(dx))
            pulled += nodes.folded_pull(result, 1)[:, 0]
            sums += result["sums"]
            largest = np.maximum(largest, result["largest"])
        self._first = dx
        return Prediction(pulled, *sums.T, *largest.T)

    def ratios(self, dx: Array, mu: Array, correctors: Array) -> tuple[Array, Array]:
        """Return the largest relative reductions (B, correctors) by the steps; dx (B, n) is the second-order part."""
        changes = np.concatenate([self._first, dx[:, None]], axis=1)
        worst, scalars = list[Array](), {"mu": mu, "correctors": correctors}
        for nodes, inputs in self._each():
            worst.append(nodes.fold("ratios", inputs | nodes.folded_changes(changes) | scalars)["largest"])
        self._second, count = dx, correctors.shape[1]
        largest: Array = np.max(worst, axis=0)
        return largest[:, :count], largest[:, count:]

    def step(self, mu: Array, corrector: Array) -> PathStep:
        """Return the chosen step of the rows."""
        first, unit = self._first.swapaxes(0, 1)
        dx = first + mu[:, None] * unit + corrector[:, None] * self._second
        return PathStep(self._x, dx, first, mu, corrector)


class CasesPoint(RowPoint, RowCorrections):
    """The rows at a point, and their derivatives."""

    def __init__(self, cases: Cases, x: Array, rows: Rows, weight: Array, curvature: Array):
        self._cases, self._rows = cases, rows
        B, n, factor = len(x), cases.n, cases.program.factor
        total, totals = np.zeros((B, 4, n), like=x), list[Array]()
        self._results = list[dict[str, Array]]()
        parts, columns = list[Array](), list[Array]()
        for nodes, first, last in cases.parts:
            result = nodes.point(x, nodes.rows(rows, slice(first, last)), factor * weight, curvature)
            total += result["pulled"][:, :4]
            parts.append(result["parts"])
            columns.append(result["pulled"][:, 4:])
            if nodes.batch.m:
                totals.append(result["totals"])
                self._results.append({"jacobian": result["jacobian"], "off": result["off"]})
        self.entries = cases.assembly.entries(parts, columns)
        self.gradient, self.multiplied, self.pushed, self.repelled = total.swapaxes(0, 1)
        all_ = _by_total(totals)
        (products, z, u, slope), (off, dual, most) = all_[:4].sum(axis=2), all_[4:7].max(axis=2)
        self.totals = RowTotals(products, z, u, slope, off, dual, most, all_[7].min(axis=1))

    @property
    def systems(self) -> Systems:
        """The linear systems of the condensed matrices."""
        return self._cases.assembly.systems

    @classmethod
    def of_results(cls, cases: Cases, rows: Rows, results: list[dict[str, Array]]) -> "CasesPoint":
        """Return a point for corrections from the "jacobian" and "off" of each batch of nodes."""
        point = cls.__new__(cls)
        point._cases, point._rows, point._results = cases, rows, results
        return point

    def take(self, at: Indices, step: RowStep | PathStep) -> tuple["CasesPoint", RowStep]:
        """Return the rows of the cases ``at`` and their steps, for corrections."""
        rows = Rows(*(values[at] for values in self._rows))
        results = [{name: values[at] for name, values in own.items()} for own in self._results]
        return CasesPoint.of_results(self._cases.take(at), rows, results), cast(RowStep, step)

    @property
    def off(self) -> Array:
        """The residuals (B, m) of h - s = 0."""
        B = len(self._rows.w)
        return _side_by_side([result["off"].reshape(B, -1) for result in self._results])

    def _each(self) -> Any:
        return zip((part for part in self._cases.parts if part[0].batch.m), self._results, strict=True)

    def _inputs(self, nodes: Nodes, first: int, last: int) -> dict[str, Array]:
        return nodes.rows(self._rows, slice(first, last)) | nodes.bounds

    def predicted(self, dx: Array) -> Prediction:
        """Return the effect of the steps (B, 2, n) without a barrier and for a unit barrier parameter."""
        pulled, totals = np.zeros((len(dx), self._cases.n), like=dx), list[Array]()
        for (nodes, first, last), own in self._each():
            result = nodes.batch.barrier.predicted(**own, **self._inputs(nodes, first, last), **nodes.changes(dx))
            pulled += nodes.pulled(result, 1)[:, 0]
            totals.append(result["totals"])
            own["steps"] = result["ds"]
        all_ = _by_total(totals)
        return Prediction(pulled, *all_[:2].sum(axis=2), *all_[2:].max(axis=2))

    def ratios(self, dx: Array, mu: Array, correctors: Array) -> tuple[Array, Array]:
        """Return the largest relative reductions (B, correctors) of distances and multipliers by the steps."""
        totals = list[Array]()
        for (nodes, first, last), own in self._each():
            inputs = self._inputs(nodes, first, last) | nodes.changes(dx[:, None])
            inputs |= {"mu": mu[:, None], "correctors": correctors[:, None], "steps": own["steps"]}
            result = nodes.batch.barrier.ratios(jacobian=own["jacobian"], **inputs)
            own["second"] = result["ds"]
            totals.append(result["totals"])
        worst = _by_total(totals).max(axis=2).T
        return worst[:, : correctors.shape[1]], worst[:, correctors.shape[1] :]

    def step(self, mu: Array, corrector: Array) -> RowStep:
        """Return the chosen step of the rows."""
        predictor, ds = list[Array](), list[Array]()
        for own in self._results:
            m = own["off"].shape[2]
            first, unit = own["steps"][..., :m], own["steps"][..., m:]
            predictor.append(first.reshape(len(mu), -1))
            all_ = first + mu[:, None, None] * unit + corrector[:, None, None] * own["second"]
            ds.append(all_.reshape(len(mu), -1))
        return RowStep(_side_by_side(predictor), _side_by_side(ds), mu, corrector)

    def correction(self, step: RowStep, off: Array) -> Array:
        """Return J^T (B, n) times the rows of the step with the residuals ``off`` (B, m)."""
        total = np.zeros((len(off), self._cases.n), like=off)
        for (nodes, first, last), own in self._each():
            inputs = self._corrected_inputs(nodes, first, last, own, step, off)
            total += nodes.pulled(nodes.batch.barrier.corrected[0](**inputs), 1)[:, 0]
        return total

    def corrected(self, step: RowStep, off: Array, dx: Array) -> tuple[RowStep, Array, Array]:
        """Return the step dx (B, n) with the residuals ``off``, and its largest relative reductions (B,)."""
        parts, totals = list[Array](), list[Array]()
        for (nodes, first, last), own in self._each():
            inputs = self._corrected_inputs(nodes, first, last, own, step, off) | nodes.changes(dx[:, None])
            result = nodes.batch.barrier.corrected[1](**inputs)
            parts.append(result["ds"].reshape(len(dx), -1))
            totals.append(result["totals"].max(axis=1))
        worst = np.stack(totals).max(axis=0)
        return step._replace(ds=_side_by_side(parts)), worst[:, 0], worst[:, 1]

    def _corrected_inputs(
        self, nodes: Nodes, first: int, last: int, own: dict[str, Array], step: RowStep, off: Array
    ) -> dict[str, Array]:
        at = slice(first, last)
        inputs = self._inputs(nodes, first, last) | {"mu": step.mu[:, None], "corrector": step.corrector[:, None]}
        inputs |= {"off": nodes.shaped(off[:, at]), "predictor": nodes.shaped(step.predictor[:, at])}
        return inputs | {"jacobian": own["jacobian"]}
