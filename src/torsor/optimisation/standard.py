"""The standard form of dense solvers: free variables, separate equations and inequalities, and scaled gradients.

``restore_feasibility`` reduces only the violation.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array, Flags, Indices
from torsor.optimisation.program import padded
from torsor.optimisation.record import Record

# Sparse matrices with many rows but few row patterns are stored as dense blocks of rows with similar columns.
#
# The rows of a motion at nodes between two knots depend on the same few control points. Products with such blocks take
# a fraction of the operations of a dense matrix, at the speed of dense products.

MAX_KINDS = 600  # largest number of row patterns; with more, there is one block with all rows
BLOCK_COST = 3e5  # number of operations that take as long as an additional block
ENTRY_COST = 25.0  # number of operations that take as long as adding an entry of a block product to the full matrix


@dataclass(frozen=True, eq=False)
class RowBlocks:
    """Dense blocks for entries at ``rows`` and ``columns`` (k,) of a matrix with the shape ``shape``."""

    shape: tuple[int, int]
    rows: Indices
    columns: Indices

    @cached_property
    def blocks(self) -> list[tuple[Indices, Indices]]:
        """Rows and columns of each block; every row is in one block."""
        is_entry = np.zeros(self.shape, dtype=bool)
        is_entry[self.rows, self.columns] = True
        _, kind, counts = np.unique(np.packbits(is_entry, axis=1), axis=0, return_inverse=True, return_counts=True)
        kind = kind.reshape(-1)
        firsts = np.unique(kind, return_index=True)[1]
        whole = [(np.arange(self.shape[0]), np.arange(self.shape[1]))]
        if not 1 < len(counts) <= MAX_KINDS:
            return whole
        groups, kinds = _merged(is_entry[firsts], counts.astype(float)), is_entry[firsts]
        dense_blocks = [
            (np.flatnonzero(np.isin(kind, group)), np.flatnonzero(kinds[group].any(axis=0))) for group in groups
        ]
        cost = sum(_cost(len(rows), len(columns)) for rows, columns in dense_blocks)
        return dense_blocks if cost < self.shape[0] * self.shape[1] ** 2 else whole

    @cached_property
    def _places(self) -> Indices:
        """Indices of the entries in the concatenated blocks."""
        block_of, row_in, column_in = np.zeros(self.shape[0], dtype=int), np.zeros(self.shape[0], dtype=int), []
        for index, (rows, columns) in enumerate(self.blocks):
            block_of[rows], row_in[rows] = index, np.arange(len(rows))
            column_in.append(np.full(self.shape[1], -1))
            column_in[-1][columns] = np.arange(len(columns))
        blocks = block_of[self.rows]
        widths = np.array([len(columns) for _, columns in self.blocks])
        within = row_in[self.rows] * widths[blocks] + np.stack(column_in)[blocks, self.columns]
        return np.asarray(np.array(self._edges)[blocks] + within)

    @cached_property
    def _edges(self) -> list[int]:
        """The start of each block, and the end of the last one."""
        return [0, *np.cumsum([len(rows) * len(columns) for rows, columns in self.blocks]).tolist()]

    @cached_property
    def _is_unique(self) -> bool:
        """Whether all entries have different indices."""
        return int(np.bincount(self._places).max(initial=0)) < 2

    @cached_property
    def products(self) -> Indices:
        """Indices, in a flat (n, n) matrix, of the products of the columns of each block."""
        return np.concatenate([(columns[:, None] * self.shape[1] + columns).ravel() for _, columns in self.blocks])

    def filled(self, entries: Array) -> "BlockMatrix":
        """Return the matrix with ``entries`` (k,); entries with equal indices are added."""
        if self._is_unique:
            flat = np.zeros(self._edges[-1])
            flat[self._places] = entries
        else:
            flat = np.bincount(self._places, entries, self._edges[-1]).astype(float, copy=False)
        places = zip(pairwise(self._edges), self.blocks, strict=True)
        return BlockMatrix(self, [flat[slice(*at)].reshape(len(rows), len(columns)) for at, (rows, columns) in places])


@dataclass(frozen=True, eq=False)
class BlockMatrix:
    """A matrix J (m, n) in the blocks of ``pattern``."""

    pattern: RowBlocks
    parts: list[Array]

    def times(self, x: Array) -> Array:
        """Return J x for x (n,) or (n, k)."""
        result = np.empty((self.pattern.shape[0], *x.shape[1:]))
        for (rows, columns), part in zip(self.pattern.blocks, self.parts, strict=True):
            result[rows] = part @ x[columns]
        return result

    def transposed_times(self, y: Array) -> Array:
        """Return J^T y for y (m,) or (m, k)."""
        result = np.zeros((self.pattern.shape[1], *y.shape[1:]))
        for (rows, columns), part in zip(self.pattern.blocks, self.parts, strict=True):
            result[columns] += part.T @ y[rows]
        return result

    def gram(self, weights: Array) -> Array:
        """Return J^T diag(weights) J (n, n) for nonnegative weights (m,)."""
        n, root, first = self.pattern.shape[1], np.sqrt(weights), 0
        products = np.empty(len(self.pattern.products))
        for (rows, columns), part in zip(self.pattern.blocks, self.parts, strict=True):
            scaled, own, first = part * root[rows, None], first, first + len(columns) ** 2
            np.matmul(scaled.T, scaled, out=products[own:first].reshape(len(columns), -1))
        return np.bincount(self.pattern.products, products, n * n).astype(float, copy=False).reshape(n, n)

    def dense(self) -> Array:
        """Return J (m, n)."""
        result = np.zeros(self.pattern.shape)
        for (rows, columns), part in zip(self.pattern.blocks, self.parts, strict=True):
            result[np.ix_(rows, columns)] = part
        return result


def _cost(rows: Array | float, columns: Array | float) -> Array | float:
    """Return the number of operations in the product of a block and its transpose."""
    return (rows + ENTRY_COST) * columns**2 + BLOCK_COST


def _merged(kinds: Array, counts: Array) -> list[list[int]]:
    """Return groups of row patterns (k, n), which occur ``counts`` (k,) times, merged while that saves operations."""
    kinds, counts, groups = kinds.astype(float), counts.copy(), [[k] for k in range(len(counts))]
    sizes = kinds.sum(axis=1)
    unions = sizes[:, None] + sizes - kinds @ kinds.T
    alone = np.asarray(_cost(counts, sizes))
    gains = alone[:, None] + alone - _cost(counts[:, None] + counts, unions)
    np.fill_diagonal(gains, -np.inf)
    while True:
        one, other = divmod(int(gains.argmax()), len(gains))
        if not gains[one, other] > 0:
            return [group for group in groups if group]
        groups[one] += groups[other]
        groups[other] = []
        kinds[one] = np.maximum(kinds[one], kinds[other])
        counts[one] += counts[other]
        sizes[one] = kinds[one].sum()
        alone[one] = _cost(counts[one], sizes[one])
        union = sizes[one] + sizes - kinds @ kinds[one]
        gain, left = alone[one] + alone - _cost(counts[one] + counts, union), [bool(group) for group in groups]
        gains[one] = gains[:, one] = np.where(left, gain, -np.inf)
        gains[other] = gains[:, other] = gains[one, one] = -np.inf


BOUND_SIGNS = np.array([[1.0], [-1.0]])  # signs of the distances from lower and upper bounds
MIN_BOUND_DISTANCE = 1e-15  # smallest relative distance from a bound, which absorbs rounding
EQUAL_BOUND_TOLERANCE = 1e-12  # relative distance below which two bounds are equal
# Ratio of residuals that counts as no progress, and the corresponding number of restoration iterations.
STALL_FACTOR, STALL_ITERATIONS = 0.95, 30
MAX_GRADIENT = 100.0  # larger gradients at the start are scaled down to this (as in IPOPT)


class Jacobians(NamedTuple):
    """First derivatives of f (n,), equations (e, n) and inequalities (i, n)."""

    gradient: Array
    equations: Array
    inequalities: BlockMatrix


class StandardForm:
    """Minimise f(x) subject to c(x) = 0 (e,), row_lower <= h(x) <= row_upper (i,) and distinct bounds on x.

    Variables with equal bounds are constants, and rows without bounds are omitted. f and each row are multiplied by
    factors of at most 1, so that no gradient at the start exceeds ``MAX_GRADIENT``. ``w_bounds`` (2, w) are the lower
    and upper bounds of w = (x, slacks of h), and ``inner`` are these bounds moved inwards by the rounding error.
    """

    def __init__(self, record: Record, start: Array):
        program = self.program = record.program
        self._evaluations, self._all = record.evaluations, start.copy()
        self.free = np.flatnonzero(~_is_equal(program.lower, program.upper))
        self.lower, self.upper = program.lower[self.free], program.upper[self.free]
        bounded = np.isfinite(program.row_lower) | np.isfinite(program.row_upper)
        same = _is_equal(program.row_lower, program.row_upper)
        self.e, self.i = np.flatnonzero(bounded & same), np.flatnonzero(bounded & ~same)
        rows, columns = program.structure
        gradient, entries = record.evaluations.jacobian(start)
        steep = np.abs(gradient).max(initial=0.0)
        self.weight = min(1.0, MAX_GRADIENT / steep) if steep > 0 else 1.0
        steep_rows = np.zeros(program.m)
        np.maximum.at(steep_rows, rows, np.abs(entries))
        self.scales = np.minimum(1.0, MAX_GRADIENT / np.maximum(steep_rows, 1e-300))
        row_at, column_at = (np.full(size, -1) for size in (program.m, program.n))
        row_at[self.e], row_at[self.i] = np.arange(len(self.e)), len(self.e) + np.arange(len(self.i))
        column_at[self.free] = np.arange(len(self.free))
        row, column = row_at[rows], column_at[columns]
        is_used = (row >= 0) & (column >= 0)
        self._entries_e = np.flatnonzero(is_used & (row < len(self.e)))
        self._entries_i = np.flatnonzero(is_used & (row >= len(self.e)))
        self._place_e = row[self._entries_e], column[self._entries_e]
        self._scales_e, self._scales_i = (self.scales[rows[used]] for used in (self._entries_e, self._entries_i))
        shape, entries_i = (len(self.i), len(self.free)), self._entries_i
        self._blocks = RowBlocks(shape, row[entries_i] - len(self.e), column[entries_i])
        entries_fixed = np.flatnonzero(column < 0)
        self._entries_fixed = entries_fixed, rows[entries_fixed], columns[entries_fixed]
        self._target = program.row_lower[self.e]
        sides = program.row_lower, program.row_upper
        self.row_lower, self.row_upper = ((side * self.scales)[self.i] for side in sides)
        self.w_bounds = np.stack([np.append(self.lower, self.row_lower), np.append(self.upper, self.row_upper)])
        quarter = (self.w_bounds[1] - self.w_bounds[0]) / 4
        self.inner = self.w_bounds + BOUND_SIGNS * np.minimum(MIN_BOUND_DISTANCE * _size(self.w_bounds), quarter)

    def gaps(self, w: Array) -> Array:
        """Return the distances (2, w) of variables and slacks from their lower and upper bounds."""
        return BOUND_SIGNS * (w - self.w_bounds)

    def full(self, x: Array) -> Array:
        """Return all variables of the program, including constants, in an array that the next call overwrites."""
        self._all[self.free] = x
        return self._all

    def is_finite(self, x: Array) -> bool:
        """Return whether f, rows and first derivatives are finite."""
        return self._evaluations.is_finite(self.full(x))

    def value(self, x: Array) -> tuple[float, Array, Array]:
        """Return f, c (e,) and h (i,), or NaN if a derivative is not finite."""
        f, rows = self._evaluations.value(self.full(x))
        if not self.is_finite(x):
            return np.nan, np.full(len(self.e), np.nan), np.full(len(self.i), np.nan)
        return self.weight * f, (rows[self.e] - self._target) * self.scales[self.e], (rows * self.scales)[self.i]

    def jacobian(self, x: Array) -> Jacobians:
        """Return the first derivatives of f, c and h."""
        gradient, entries = self._evaluations.jacobian(self.full(x))
        E = np.zeros((len(self.e), len(self.free)))
        E[self._place_e] = entries[self._entries_e] * self._scales_e
        H = self._blocks.filled(entries[self._entries_i] * self._scales_i)
        return Jacobians(self.weight * gradient[self.free], E, H)

    def hessian(self, x: Array, y: Array, u: Array) -> Array:
        """Return the Hessian (n, n) of f + y . c + u . h."""
        n = self.program.n
        result = padded(self._evaluations.hessian(self.full(x), self._rows(y, u), self.weight), n)
        return result if len(self.free) == n else np.asarray(result[self.free][:, self.free])

    def _rows(self, y: Array, u: Array) -> Array:
        result = np.zeros(self.program.m)
        result[self.e], result[self.i] = y, u
        result *= self.scales
        return result

    def multipliers(self, x: Array, y: Array, u: Array, z: Array) -> tuple[Array, Array]:
        """Return the multipliers of the program's rows (m,) and bounds (n,) from those of the standard form."""
        rows, bounds = self._rows(y, u) / self.weight, np.zeros(self.program.n)
        bounds[self.free] = z / self.weight
        if len(self.free) < self.program.n:  # multipliers of fixed variables balance the gradient of the Lagrangian
            gradient, entries = self._evaluations.jacobian(self.full(x))
            at, by_row, by_column = self._entries_fixed
            total = gradient + np.bincount(by_column, rows[by_row] * entries[at], minlength=self.program.n)
            fixed = np.setdiff1d(np.arange(self.program.n), self.free)
            bounds[fixed] = -total[fixed]
        return rows, bounds

    def own(self, multipliers: Array, bound_multipliers: Array) -> tuple[Array, Array, Array]:
        """Return y (e,), u (i,) and z (n,) from the multipliers of the program."""
        scaled = multipliers / self.scales * self.weight
        return scaled[self.e], scaled[self.i], bound_multipliers[self.free] * self.weight


def _is_equal(lower: Array, upper: Array) -> Flags:
    """Return flags of the equal pairs of bounds."""
    with np.errstate(invalid="ignore"):
        return np.asarray(upper - lower <= EQUAL_BOUND_TOLERANCE * _size(lower))


def _size(side: Array) -> Array:
    """Return the magnitudes of bounds, at least 1, or 0 for infinite ones."""
    return np.where(np.isfinite(side), np.maximum(1.0, np.abs(side)), 0.0)


def restore_feasibility(form: StandardForm, record: Record, start: Array, target: float) -> Array | None:
    """Return variables with a sum of violations of at most ``target``, or None if none are found nearby.

    The method is damped least squares over the equations and the violated inequalities. It stops if the residual
    decreases by less than a twentieth in 30 iterations. At that rate, reaching the target would take hundreds of
    iterations, and convergence to a nonzero residual only becomes slower.
    """
    x, damping = start, 1e-4
    off, E = _residuals(form, x)
    sizes = list[float]()
    while len(record.log) <= record.settings.iterations:
        if np.abs(off).sum() <= target:
            return x
        sizes.append(float(np.linalg.norm(off)))
        if len(sizes) > STALL_ITERATIONS and sizes[-1] > STALL_FACTOR * sizes[-1 - STALL_ITERATIONS]:
            return None
        gradient = off @ E
        held = ((x <= form.lower) & (gradient > 0)) | ((x >= form.upper) & (gradient < 0))
        if np.abs(gradient[~held]).max(initial=0.0) <= 1e-8 * max(1.0, np.abs(off).max()):
            return None
        J = np.where(held, 0.0, E)
        curve, size = J.T @ J, float(off @ off)
        while True:
            record.check()
            change = np.linalg.solve(curve + damping * np.eye(len(x)), -off @ J)
            trial = np.clip(x + change, form.lower, form.upper)
            residuals = _residuals(form, trial) if form.is_finite(trial) else None
            if residuals is not None and residuals[0] @ residuals[0] < size * (1 - 1e-8):
                break
            damping *= 10
            if damping > 1e16:
                return None
        x, (off, E) = trial, residuals
        damping = max(damping / 10, 1e-12)
        record.note(form.full(x).copy(), np.zeros(form.program.m), np.zeros(form.program.n))
    return None


def _residuals(form: StandardForm, x: Array) -> tuple[Array, Array]:
    """Return the residuals of equations and violated inequalities, and their Jacobian."""
    _, c, h = form.value(x)
    _, E, H = form.jacobian(x)
    off = h - np.clip(h, form.row_lower, form.row_upper)
    return np.concatenate([c, off]), np.concatenate([E, np.where(off != 0, 1.0, 0.0)[:, None] * H.dense()])
