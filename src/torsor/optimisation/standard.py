"""The standard form of dense solvers: free variables, equations and inequalities apart, gradients scaled down.

``restore_feasibility`` reduces its violation alone.
"""

from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array, Flags
from torsor.optimisation.record import Record
from torsor.optimisation.row_blocks import BlockMatrix, RowBlocks

SIGNS = np.array([[1.0], [-1.0]])  # of distances from lower and upper bounds
CLOSEST = 1e-15  # least relative distance from a bound, against rounding
NARROW = 1e-12  # relative distance below which two bounds are equal
STALL, STALLED = 0.95, 30  # factor of the residual that counts as no progress, in so many iterations of a restoration
STEEPEST = 100.0  # larger gradients at the start are scaled down to this (as in IPOPT)


class Jacobians(NamedTuple):
    """First derivatives: the gradient (n,), of equations (e, n) and of inequalities (i, n)."""

    gradient: Array
    equations: Array
    inequalities: BlockMatrix


class StandardForm:
    """Minimise f(x) subject to c(x) = 0 (e,), row_lower <= h(x) <= row_upper (i,) and distinct bounds on x.

    Variables with equal bounds are constants here, and rows without bounds are left out. f and each row are multiplied
    by a factor of at most 1, so that no gradient at the start exceeds ``STEEPEST``. ``w_bounds`` (2, w)
    are those of w = (x, slacks of h), lower and upper, and ``inner`` the same, moved inside by rounding.
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
        self.weight = min(1.0, STEEPEST / steep) if steep > 0 else 1.0
        steep_rows = np.zeros(program.m)
        np.maximum.at(steep_rows, rows, np.abs(entries))
        self.scales = np.minimum(1.0, STEEPEST / np.maximum(steep_rows, 1e-300))
        self._entry_scales = self.scales[rows]
        row_at, column_at = (np.full(size, -1) for size in (program.m, program.n))
        row_at[self.e], row_at[self.i] = np.arange(len(self.e)), len(self.e) + np.arange(len(self.i))
        column_at[self.free] = np.arange(len(self.free))
        row, column = row_at[rows], column_at[columns]
        own = (row >= 0) & (column >= 0)
        self._entries_e = np.flatnonzero(own & (row < len(self.e)))
        self._entries_i = np.flatnonzero(own & (row >= len(self.e)))
        self._place_e = row[self._entries_e], column[self._entries_e]
        shape, entries_i = (len(self.i), len(self.free)), self._entries_i
        self._blocks = RowBlocks(shape, row[entries_i] - len(self.e), column[entries_i])
        self._target = program.row_lower[self.e]
        self.row_lower, self.row_upper = (
            (side * self.scales)[self.i] for side in (program.row_lower, program.row_upper)
        )
        self.w_bounds = np.stack([np.append(self.lower, self.row_lower), np.append(self.upper, self.row_upper)])
        self.inner = self.w_bounds + SIGNS * np.minimum(
            CLOSEST * _size(self.w_bounds), (self.w_bounds[1] - self.w_bounds[0]) / 4
        )

    def gaps(self, w: Array) -> Array:
        """Return the distances (2, w) of variables and slacks from their lower and upper bounds."""
        return SIGNS * (w - self.w_bounds)

    def full(self, x: Array) -> Array:
        """Return all variables of the program."""
        self._all[self.free] = x
        return self._all

    def is_finite(self, x: Array) -> bool:
        """Whether f, rows and first derivatives are finite."""
        return self._evaluations.is_finite(self.full(x))

    def value(self, x: Array) -> tuple[float, Array, Array]:
        """Return f, c (e,) and h (i,); NaN where a derivative is not finite."""
        f, rows = self._evaluations.value(self.full(x))
        if not self.is_finite(x):
            return np.nan, np.full(len(self.e), np.nan), np.full(len(self.i), np.nan)
        return self.weight * f, (rows[self.e] - self._target) * self.scales[self.e], (rows * self.scales)[self.i]

    def jacobian(self, x: Array) -> Jacobians:
        """Return the first derivatives."""
        gradient, entries = self._evaluations.jacobian(self.full(x))
        entries = entries * self._entry_scales
        E = np.zeros((len(self.e), len(self.free)))
        E[self._place_e] = entries[self._entries_e]
        return Jacobians(self.weight * gradient[self.free], E, self._blocks.filled(entries[self._entries_i]))

    def hessian(self, x: Array, y: Array, u: Array) -> Array:
        """Return the Hessian (n, n) of f + y . c + u . h."""
        multipliers = self._rows(y, u)
        found, n = self._evaluations.hessian(self.full(x), multipliers, self.weight), self.program.n
        if len(found) < n:
            found = np.pad(found, (0, n - len(found)))
        own: Array = found if len(self.free) == n else found[np.ix_(self.free, self.free)]
        return own

    def _rows(self, y: Array, u: Array) -> Array:
        found = np.zeros(self.program.m)
        found[self.e], found[self.i] = y, u
        found *= self.scales
        return found

    def multipliers(self, x: Array, y: Array, u: Array, z: Array) -> tuple[Array, Array]:
        """Return the multipliers of the program's rows (m,) and bounds (n,) from those of the standard form."""
        rows, bounds = self._rows(y, u) / self.weight, np.zeros(self.program.n)
        bounds[self.free] = z / self.weight
        if len(self.free) < self.program.n:  # a fixed variable: its multiplier balances the gradient of the Lagrangian
            gradient, entries = self._evaluations.jacobian(self.full(x))
            places = self.program.structure
            total = gradient + np.bincount(places[1], rows[places[0]] * entries, minlength=self.program.n)
            fixed = np.setdiff1d(np.arange(self.program.n), self.free)
            bounds[fixed] = -total[fixed]
        return rows, bounds

    def own(self, multipliers: Array, bound_multipliers: Array) -> tuple[Array, Array, Array]:
        """Return y (e,), u (i,) and z (n,) from multipliers of the program."""
        scaled = multipliers / self.scales * self.weight
        return scaled[self.e], scaled[self.i], bound_multipliers[self.free] * self.weight


def _is_equal(lower: Array, upper: Array) -> Flags:
    """Return which pairs of bounds are equal."""
    with np.errstate(invalid="ignore"):
        return np.asarray(upper - lower <= NARROW * _size(lower))


def _size(side: Array) -> Array:
    """Return the sizes of bounds, at least 1; 0 for infinite ones."""
    return np.where(np.isfinite(side), np.maximum(1.0, np.abs(side)), 0.0)


def restore_feasibility(form: StandardForm, record: Record, start: Array, target: float) -> Array | None:
    """Return variables whose sum of violations is at most ``target``, or None if none are found nearby.

    Damped least squares over the equations and the violated inequalities. It gives up where the residual falls by less
    than a twentieth in 30 iterations: at that rate it would take hundreds to reach the target, and a residual that
    does not vanish is approached ever more slowly.
    """
    x, damping = start, 1e-4
    off, E = _residuals(form, x)
    sizes = list[float]()
    while len(record.log) <= record.settings.iterations:
        if np.abs(off).sum() <= target:
            return x
        sizes.append(float(np.linalg.norm(off)))
        if len(sizes) > STALLED and sizes[-1] > STALL * sizes[-1 - STALLED]:
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
            found = _residuals(form, trial) if form.is_finite(trial) else None
            if found is not None and found[0] @ found[0] < size * (1 - 1e-8):
                break
            damping *= 10
            if damping > 1e16:
                return None
        x, (off, E) = trial, found
        damping = max(damping / 10, 1e-12)
        record.note(form.full(x).copy(), np.zeros(form.program.m), np.zeros(form.program.n))
    return None


def _residuals(form: StandardForm, x: Array) -> tuple[Array, Array]:
    """Return the residuals of equations and violated inequalities, and their Jacobian."""
    _, c, h = form.value(x)
    _, E, H = form.jacobian(x)
    off = h - np.clip(h, form.row_lower, form.row_upper)
    return np.concatenate([c, off]), np.concatenate([E, np.where(off != 0, 1.0, 0.0)[:, None] * H.dense()])
