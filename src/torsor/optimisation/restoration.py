"""Feasibility restoration: damped least squares over the equations and the violated inequalities."""

import numpy as np

from torsor.arrays import Array
from torsor.optimisation.record import Record
from torsor.optimisation.standard import StandardForm


def restore_feasibility(form: StandardForm, record: Record, start: Array, target: float) -> Array | None:
    """Return variables whose sum of violations is at most ``target``, or None if none are found nearby."""
    x, damping = start, 1e-4
    off, E = _residuals(form, x)
    while len(record.log) <= record.settings.iterations:
        if np.abs(off).sum() <= target:
            return x
        gradient = off @ E
        held = ((x <= form.lower) & (gradient > 0)) | ((x >= form.upper) & (gradient < 0))
        if np.abs(gradient[~held]).max(initial=0.0) <= 1e-8 * max(1.0, np.abs(off).max()):
            return None
        J = np.where(held, 0.0, E)
        curve, size = J.T @ J, float(off @ off)
        while True:
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
    return np.concatenate([c, off]), np.concatenate([E, np.where(off != 0, 1.0, 0.0)[:, None] * H])
