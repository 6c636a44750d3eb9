"""Weights from the data alone, without solving for optima: the least gradient of the Lagrangian at the data.

At an optimum the weighted gradients of the objectives are balanced by the active constraints: with Z a basis of the
directions that these leave free, sum_k w_k Z^T grad f_k = 0. At the motion nearest to measured data, the weights that
leave the least of it are a linear least-squares problem (Keshavarz, Wang and Boyd 2011). Errors of the data have more
effect here than in ``fit_weights``: it is the start of that search.
"""

from dataclasses import replace

import numpy as np

from torsor.base.arrays import Array, Indices
from torsor.motion.inverse.measured import Residuals
from torsor.motion.inverse.weighted import WeightedProgram
from torsor.optimisation import SOLVERS, Settings
from torsor.optimisation.optimum import free_directions

HELD = 1e-3  # scaled distance from its bound within which an inequality is active at the data
LEAST = 1e-3  # smallest weight that is returned, relative to their sum: the search takes logarithms
NEAREST_MOTION_TOLERANCE = 1e-9  # of the nearest motion: its distances from bounds tell which are active
SLIGHT = 1e-8  # weight of the objective beside the distance from the data, which need not determine the motion


def nearest_motion(
    program: WeightedProgram, residuals: Residuals, start: Array, solver: str, settings: Settings
) -> Array:
    """Return the variables (n,) of the motion nearest to data that a solver finds from a start (n,)."""
    return SOLVERS[solver](
        NearestMotion(program, residuals), start, replace(settings, tolerance=NEAREST_MOTION_TOLERANCE)
    ).x


class NearestMotion:
    """The program of the motion nearest to data among those that satisfy the constraints of a weighted program.

    The objective is half the sum of squared distances, with a slight part of the weighted objective where data leave
    the motion open; second derivatives are those of Gauss and Newton.
    """

    def __init__(self, program: WeightedProgram, residuals: Residuals):
        self._program, self._residuals = program, residuals
        self.n, self.m = program.n, program.m
        self.lower, self.upper = program.lower, program.upper
        self.row_lower, self.row_upper, self.scales = program.row_lower, program.row_upper, program.scales
        self.structure = program.structure

    @property
    def hessian_structure(self) -> tuple[Indices, Indices]:
        """Rows and columns of the upper triangle, in column-major order."""
        columns, rows = np.tril_indices(self.n)
        return rows, columns

    def value(self, x: Array) -> tuple[float, Array]:
        """Return the objective and the rows (m,)."""
        f, rows = self._program.value(x)
        r = self._residuals.value(x)
        return float(r @ r) / 2 + SLIGHT * f, rows

    def jacobian(self, x: Array) -> tuple[Array, Array]:
        """Return the gradient (n,) and the entries of the rows' Jacobian."""
        gradient, entries = self._program.jacobian(x)
        return self._residuals.value(x) @ self._residuals.jacobian(x) + SLIGHT * gradient, entries

    def hessian(self, x: Array, multipliers: Array, weight: float) -> Array:
        """Return the approximate Hessian (n, n) of weight . objective + multipliers . rows."""
        J = self._residuals.jacobian(x)
        return self._program.hessian(x, multipliers, SLIGHT * weight) + weight * (J.T @ J)


def balancing_weights(program: WeightedProgram, x: Array) -> Array:
    """Return the weights (k,), 0 or more with the sum 1, that leave the least gradient at variables x (n,)."""
    gradients = free_directions(program, x, HELD).T @ program.gradients(x)
    sizes = np.linalg.norm(gradients, axis=0)
    if not (sizes > 0).all():  # a term that the motion cannot change tells nothing
        return np.full(len(sizes), 1.0 / len(sizes))
    found = _least(gradients / sizes) / sizes  # equal gradients count equally, whatever their units
    found = np.maximum(found / found.sum(), LEAST)
    return np.asarray(found / found.sum())


def _least(columns: Array) -> Array:
    """Return w (k,), 0 or more with the sum 1, with the least |columns w|; negative ones are dropped one by one."""
    kept = list(range(columns.shape[1]))
    while True:
        own = columns[:, kept]
        gram = own.T @ own
        w = np.linalg.solve(gram + 1e-14 * np.trace(gram) * np.eye(len(kept)), np.ones(len(kept)))
        w /= w.sum()
        if len(kept) == 1 or w.min() >= 0:
            found = np.zeros(columns.shape[1])
            found[kept] = w
            return found
        kept.pop(int(np.argmin(w)))
