"""Derivatives of an optimum with respect to data p of its program, by the implicit function theorem.

Let L = f + y . (g - b) + z . (x - c), where b and c are the active bounds of rows and variables. Let A be the Jacobian
of the active rows, and H the Hessian of the Lagrangian. A small change of the data keeps the active rows active, so

    H dx/dp + A^T dy/dp = -dL_x/dp      A dx/dp = -d(g - b)/dp      df*/dp = dL/dp

where the derivatives on the right are taken at constant x, y and z. This requires that no multiplier of an active
inequality is 0 and that H has positive curvature where A d = 0. Active rows may be linearly dependent if they change
consistently with the data, such as a velocity that stays at its bound over many nodes.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array, Indices
from torsor.optimisation.ipopt import solve_ipopt
from torsor.optimisation.newton import inverse_and_null_space
from torsor.optimisation.optimum import (
    ACCEPTED_VIOLATION,
    EQUAL_BOUND_DISTANCE,
    NEAR_BOUND_DISTANCE,
    Optimum,
    active_sides,
    first_derivatives,
    stationary_point,
    values_and_bounds,
)
from torsor.optimisation.program import NonlinearProgram, Outcome, Settings, padded

TIGHT_TOLERANCE, MAX_TIGHT_ITERATIONS = 1e-12, 50  # for the solution that separates active rows from the others
# Multiplier of an active row, relative to its distance from the bound at the tight solution, below which the row is
# weak, because both tend to 0.
MIN_MULTIPLIER_RATIO = 100.0
MAX_OBJECTIVE_CHANGE = 1e-4  # largest relative change of the objective for which the tight solution is the same optimum
UNDETERMINED_CURVATURE = 1e-8  # curvature, relative to the largest entry of H, below which a direction is undetermined


class Changes(NamedTuple):
    """Derivatives with respect to k data at constant x and multipliers: of f (k,), L_x (n, k), g - b (m, k), c (n, k).

    Entries of inactive rows and variables have no effect.
    """

    objective: Array
    gradient: Array
    rows: Array
    bounds: Array


@dataclass(frozen=True, eq=False)
class ImplicitOptimum:
    """An optimum as a function of data, near a solver outcome.

    ``x`` (n,), ``multipliers`` (m,) and ``bound_multipliers`` (n,) are as in ``Outcome``, and ``sides`` (m + n,) is as
    in ``Optimum``. ``weak`` contains the indices of rows, followed by those of variables (m and more), that are at a
    bound with a multiplier near 0. ``flat`` (n, d) are the directions in which the optimum is not unique. ``point`` is
    None if no point satisfies the optimality conditions to machine precision; then only the objective has a derivative.
    """

    program: NonlinearProgram
    x: Array
    multipliers: Array
    bound_multipliers: Array
    sides: Array
    weak: Indices
    flat: Array
    point: Optimum | None

    @classmethod
    def of(cls, program: NonlinearProgram, outcome: Outcome) -> "ImplicitOptimum":
        """Return the optimum near an outcome.

        Example:
            >>> from torsor.optimisation import Settings, solve_condensed
            >>> from torsor.optimisation.program import Formula
            >>> bowl = Formula(lambda x: x[0] ** 2 + 2 * x[1] ** 2, lambda x: x[0] + x[1], n=2, row_lower=3.0)
            >>> best = ImplicitOptimum.of(bowl, solve_condensed(bowl, [0.0, 0.0], Settings()))
            >>> zero = np.zeros((2, 1))  # the derivatives with respect to the bound 3
            >>> by_bound = Changes(np.zeros(1), zero, np.array([[-1.0]]), zero)
            >>> best.objective(by_bound).round(9).tolist(), best.moved(by_bound)[0].round(9).tolist()
            ([4.0], [[0.666666667], [0.333333333]])
        """
        for is_tight in (False, True):
            candidate = _tightened(program, outcome) if is_tight else outcome
            sides = active_sides(program, candidate, with_multiplier=True)
            point = stationary_point(program, candidate.x, sides)
            if point is None or not _is_optimal(program, point):
                continue
            weak = _weak(program, point, candidate)
            if is_tight or not weak.size:
                return cls._at(program, point, weak)
        z = np.concatenate([candidate.multipliers, candidate.bound_multipliers])
        sides, none = np.where(sides != 0, sides, np.sign(z)), np.zeros((program.n, 0))
        multipliers = candidate.multipliers, candidate.bound_multipliers
        return cls(program, candidate.x, *multipliers, sides, np.zeros(0, dtype=int), none, None)

    @classmethod
    def _at(cls, program: NonlinearProgram, point: Optimum, weak: Indices) -> "ImplicitOptimum":
        size = np.abs(program.hessian(point.x, point.multipliers, 1.0)).max(initial=0.0)
        flat = point.directions[:, point.curvatures <= UNDETERMINED_CURVATURE * size]
        return cls(program, point.x, point.multipliers, point.bound_multipliers, point.sides, weak, flat, point)

    def objective(self, changes: Changes) -> Array:
        """Return the derivatives (k,) of the optimal objective: those of the Lagrangian (envelope theorem)."""
        rows = self.multipliers @ changes.rows
        return np.asarray(changes.objective + rows - self.bound_multipliers @ changes.bounds)

    @cached_property
    def _system(self) -> tuple[Array, Array, Array]:
        """The Jacobian of the active rows, its pseudo-inverse for the free variables, and H."""
        assert self.point is not None
        m, n = self.program.m, self.program.n
        A = first_derivatives(self.program, self.x)[1][np.flatnonzero(self.sides[:m])]
        inverse = np.zeros((n, len(A)))
        inverse[self.sides[m:] == 0] = inverse_and_null_space(A[:, self.sides[m:] == 0])[0]
        return A, inverse, padded(self.program.hessian(self.x, self.multipliers, 1.0), n)

    def moved(self, changes: Changes) -> tuple[Array, Array]:
        """Return dx/dp (n, k), and the largest residuals (k,) of A dx/dp = -d(g - b)/dp.

        A nonzero residual means that the active rows cannot all remain active. Undetermined directions are omitted.
        """
        A, inverse, H = self._system
        assert self.point is not None
        m, curvatures = self.program.m, self.point.curvatures
        dx = np.where((self.sides[m:] != 0)[:, None], changes.bounds, 0.0)
        rows = changes.rows[np.flatnonzero(self.sides[:m])]
        dx = dx - inverse @ (rows + A @ dx)
        curved = curvatures > UNDETERMINED_CURVATURE * np.abs(H).max(initial=0.0)
        Z = self.point.directions[:, curved]
        dx = dx - Z @ ((Z.T @ (changes.gradient + H @ dx)) / curvatures[curved][:, None])
        return dx, np.abs(rows + A @ dx).max(axis=0, initial=0.0)


def _tightened(program: NonlinearProgram, outcome: Outcome) -> Outcome:
    """Return the optimum to a tight tolerance, or the outcome unchanged if that tolerance is not reached."""
    y, z = outcome.multipliers, outcome.bound_multipliers
    settings = Settings(TIGHT_TOLERANCE, MAX_TIGHT_ITERATIONS, multipliers=y, bound_multipliers=z)
    tight = solve_ipopt(program, outcome.x, settings)
    f, found = program.value(outcome.x)[0], program.value(tight.x)[0]
    return tight if tight.is_solved and abs(found - f) <= MAX_OBJECTIVE_CHANGE * max(abs(f), 1e-300) else outcome


def _are_independent(program: NonlinearProgram, point: Optimum) -> bool:
    """Return whether the active rows are linearly independent."""
    rows, free = (int((side != 0).sum()) for side in (point.sides[: program.m], point.sides[program.m :] == 0))
    return bool(rows + point.directions.shape[1] == free)


def _is_optimal(program: NonlinearProgram, point: Optimum) -> bool:
    """Return whether a stationary point is a minimum that satisfies all bounds, and active ones exactly."""
    values, lower, upper = values_and_bounds(program, point.x)
    outside = np.maximum(lower - values, values - upper).max(initial=0.0)
    inside = np.where(point.sides < 0, values - lower, upper - values)[point.sides != 0].max(initial=0.0)
    gradient, J = first_derivatives(program, point.x)
    slope = np.abs(gradient + point.multipliers @ J + point.bound_multipliers).max(initial=0.0)
    z = np.concatenate([point.multipliers, point.bound_multipliers])
    wrong = np.where(upper - lower > EQUAL_BOUND_DISTANCE, -point.sides * z, 0.0).max(initial=0.0)
    if not _are_independent(program, point):
        wrong = 0.0  # other multipliers are possible
    return bool(max(outside, inside, slope, wrong) <= ACCEPTED_VIOLATION and (point.curvatures >= 0).all())


def _weak(program: NonlinearProgram, point: Optimum, outcome: Outcome) -> Indices:
    """Return the indices of active inequalities whose multipliers tend to 0, and of inactive ones at a bound."""
    values, lower, upper = values_and_bounds(program, outcome.x)
    distance = np.abs(np.where(point.sides < 0, values - lower, upper - values)) + TIGHT_TOLERANCE
    z = np.concatenate([outcome.multipliers, outcome.bound_multipliers])
    values = values_and_bounds(program, point.x)[0]
    is_near = np.minimum(values - lower, upper - values) < NEAR_BOUND_DISTANCE
    is_weak = np.where(point.sides != 0, np.abs(z) <= MIN_MULTIPLIER_RATIO * distance, is_near)
    return np.flatnonzero(is_weak & (upper - lower > EQUAL_BOUND_DISTANCE))
