"""Second-order conditions of optima, refinement to machine precision, and exact sensitivity to the objective.

At an optimum, the active rows (equations, and inequalities at their bounds) and the variables at bounds stay active
after a small change of the objective. Let A be the Jacobian of the active rows with respect to the free variables, Z a
basis of its null space, and H the Hessian of the Lagrangian. The optimum of f + e g then moves by

    dx/de = -Z (Z^T H Z)^-1 Z^T grad g

(implicit function theorem). Newton steps to the optimum use the same matrices. If the reduced Hessian Z^T H Z is
singular, the optimum is not unique: directions without curvature are omitted from the derivative and counted as
``flat``. An inequality at its bound whose multiplier is nearly 0 is counted as ``weak``, because the derivative is then
one-sided. If the reduced Hessian has a negative eigenvalue, the point is a saddle point (``curvature_at``).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array, Flags
from torsor.optimisation.newton import inverse_and_null_space
from torsor.optimisation.program import NonlinearProgram, Outcome, padded

FLAT_CURVATURE = 1e-11  # curvature, relative to the largest entry of the Hessian, below which a direction is flat
WEAK_MULTIPLIER = 1e-6  # multiplier below which an active inequality is weak, relative to the largest one (at least 1)
MAX_NEWTON_STEPS, MAX_SET_CHANGES = 12, 40  # largest numbers of Newton steps per active set, and of changes of the set
LAST_STEP_SIZE = 1e-13  # relative size of a Newton step at convergence
ACCEPTED_VIOLATION = 1e-9  # largest violation of an optimum, and largest relative multiplier of the wrong sign
EQUAL_BOUND_DISTANCE = 1e-14  # distance below which two bounds are equal
# Distance from a bound that counts as 0, and largest relative length of a Newton step.
NEAR_BOUND_DISTANCE, MAX_STEP_LENGTH = 1e-7, 0.1

# Curvature, relative to the largest entry of the Hessian, below which a point is a saddle point. Smaller magnitudes are
# due to rounding, or to directions that the optimum leaves undetermined.
NEGATIVE_CURVATURE = 1e-5
# Relative decrease of the objective, before a move ends at a bound, from which curvature counts as negative; shorter
# moves near other bounds are irrelevant.
MIN_DECREASE = 1e-4
MAX_DIRECTIONS = 20  # largest number of directions of negative curvature, most negative first, whose moves are computed
PENALTY = 1e6  # weight of active rows in the test for negative curvature, relative to the Hessian

# ``sides`` (m + n,) contains the active bound of each row, followed by those of the variables: -1 for the lower bound,
# 1 for the upper bound, 0 for none. Equations and variables with equal bounds have 1.


@dataclass(frozen=True, eq=False)
class Optimum:
    """A point that satisfies the optimality conditions to machine precision.

    ``x`` (n,), ``multipliers`` (m,) and ``bound_multipliers`` (n,) are as in ``Outcome``. ``directions`` (n, d) are the
    directions in which the point can move, with the ``curvatures`` (d,) of the Lagrangian. ``flat`` is the number of
    directions without curvature, and ``weak`` the number of active inequalities with multipliers near 0. ``sides`` (m +
    n,) are the active bounds of rows and variables: -1 for the lower one, 1 for the upper one, 0 for none.
    """

    x: Array
    multipliers: Array
    bound_multipliers: Array
    directions: Array
    curvatures: Array
    flat: int
    weak: int
    sides: Array

    def moved_by(self, gradients: Array) -> Array:
        """Return dx/de (n, k) for objectives f + e g_k from the gradients (n, k) of g_k.

        Example:
            >>> from torsor.optimisation import Settings, solve_condensed
            >>> from torsor.optimisation.program import Formula
            >>> bowl = Formula(lambda x: x[0] ** 2 + 2 * x[1] ** 2, lambda x: x[0] + x[1], n=2, row_lower=3.0)
            >>> best = polished(bowl, solve_condensed(bowl, [0.0, 0.0], Settings()))
            >>> best.x.round(12).tolist(), best.moved_by(np.array([[1.0], [0.0]])).round(12).tolist()
            ([2.0, 1.0], [[-0.166666666667], [0.166666666667]])
        """
        curved = self.curvatures > 0
        Z = self.directions[:, curved]
        return np.asarray(-Z @ ((Z.T @ gradients) / self.curvatures[curved][:, None]))


class Curvature(NamedTuple):
    """The second-order conditions at an optimum: the least curvature of the Lagrangian along the active constraints.

    ``least`` is 0 if there is no negative curvature, or if bounds end a move along it before the objective decreases by
    1e-4. Otherwise, the point is a saddle point, and the objective decreases along the unit vector ``direction`` (n,).
    ``variables`` is the number of variables, and ``active`` is the number of equations and inequalities with nonzero
    multipliers, which do not change to first order along the direction.
    """

    least: float
    variables: int
    active: int
    direction: Array | None = None

    @property
    def is_minimum(self) -> bool:
        """Whether no direction has negative curvature."""
        return self.least >= 0


def curvature_at(program: NonlinearProgram, outcome: Outcome) -> Curvature:
    """Return the least curvature of the Lagrangian at an outcome, from its exact Hessian H.

    Let A be the Jacobian of the active rows. H is positive definite where A d = 0 if H + p A^T A is positive definite
    for some p (Finsler's lemma), which a Cholesky factorisation shows. If it fails, the eigenvalues of Z^T H Z are
    computed, where Z is a basis of the null space of A.

    Example:
        >>> from torsor.optimisation import Settings, solve_condensed
        >>> from torsor.optimisation.program import Formula
        >>> hill = Formula(lambda x: x[0] ** 2 - x[1] ** 2 + x[1] ** 4, n=2)
        >>> [curvature_at(hill, solve_condensed(hill, [1.0, y], Settings())).is_minimum for y in (0.0, 0.1)]
        [False, True]
    """
    sides = active_sides(program, outcome, with_multiplier=True)
    rows, free = np.flatnonzero(sides[: program.m]), np.flatnonzero(sides[program.m :] == 0)
    active = program.n - len(free) + len(rows)
    H = padded(program.hessian(outcome.x, outcome.multipliers, 1.0), program.n)[np.ix_(free, free)]
    size = float(np.abs(H).max(initial=0.0))
    if not size > 0 or not np.isfinite(size):
        return Curvature(0.0, program.n, active)
    H = (H + H.T) / 2
    place, entries = np.full(program.m, -1), program.jacobian(outcome.x)[1]
    place[rows] = np.arange(len(rows))
    kept = place[program.structure[0]] >= 0
    A = np.zeros((len(rows), program.n))
    np.add.at(A, (place[program.structure[0][kept]], program.structure[1][kept]), entries[kept])
    A = A[:, free] / np.maximum(np.linalg.norm(A, axis=1), 1e-300)[:, None]
    try:
        np.linalg.cholesky(H + PENALTY * size * A.T @ A + NEGATIVE_CURVATURE * size * np.eye(len(free)))
    except np.linalg.LinAlgError:
        pass
    else:
        return Curvature(0.0, program.n, active)
    Z = inverse_and_null_space(A)[1]
    curvatures, turn = np.linalg.eigh(Z.T @ H @ Z)
    is_negative = curvatures[:MAX_DIRECTIONS] < -NEGATIVE_CURVATURE * size
    curvatures, turn = curvatures[:MAX_DIRECTIONS], turn[:, :MAX_DIRECTIONS]
    directions = np.zeros((program.n, int(is_negative.sum())))
    directions[free] = Z @ turn[:, is_negative]
    lengths = _longest_moves(program, outcome.x, sides, directions)
    decreases = -curvatures[is_negative] * lengths**2 / 2
    if not decreases.max(initial=0.0) > MIN_DECREASE * max(abs(program.value(outcome.x)[0]), MIN_DECREASE):
        return Curvature(0.0, program.n, active)
    best = int(np.argmax(decreases))
    return Curvature(float(curvatures[best]), program.n, active, directions[:, best] * np.sign(lengths[best]))


def _longest_moves(program: NonlinearProgram, x: Array, sides: Array, directions: Array) -> Array:
    """Return the distances (d,) that x can move along directions (n, d), or backwards (negative), up to a bound.

    Rows are linearised, and active ones are ignored. Moves end at ``MAX_STEP_LENGTH`` of the variables.
    """
    values, lower, upper = values_and_bounds(program, x)
    rates = np.zeros((program.m + program.n, directions.shape[1]))
    entries = program.jacobian(x)[1]
    np.add.at(rates, program.structure[0], entries[:, None] * directions[program.structure[1]])
    rates[program.m :] = directions
    rates, open_sides = rates[sides == 0], (values - lower, upper - values)
    below, above = (np.maximum(side[sides == 0], 0.0)[:, None] for side in open_sides)
    most = MAX_STEP_LENGTH * (1.0 + np.abs(x).max(initial=0.0)) / np.maximum(np.abs(directions).max(axis=0), 1e-300)
    ahead, back = most.copy(), most.copy()
    with np.errstate(divide="ignore", invalid="ignore"):
        for move, rate in ((ahead, rates), (back, -rates)):
            room = np.where(rate > 0, above / rate, np.where(rate < 0, below / -rate, np.inf))
            np.minimum(move, room.min(axis=0, initial=np.inf), out=move)
    return np.asarray(np.where(ahead >= back, ahead, -back))


def polished(program: NonlinearProgram, outcome: Outcome) -> Optimum | None:
    """Return the optimum near an outcome, by Newton steps on its active set, or None if there is none nearby.

    The active set is corrected: inequalities with a multiplier of the wrong sign are released, and violated ones become
    active.
    """
    x, sides = outcome.x.copy(), active_sides(program, outcome)
    for _ in range(MAX_SET_CHANGES):
        result = stationary_point(program, x, sides)
        if result is None:
            return None
        x = result.x
        changed = _changed_sides(program, result, sides)
        if changed is None:
            return result if (result.curvatures >= 0).all() else None
        sides = changed
    return None


def free_directions(program: NonlinearProgram, x: Array, near: float) -> Array:
    """Return an orthonormal basis (n, d) of directions that do not change rows within ``near`` of a bound."""
    values, lower, upper = values_and_bounds(program, x)
    is_near = np.minimum(values - lower, upper - values) < near
    rows, free = np.flatnonzero(is_near[: program.m]), np.flatnonzero(~is_near[program.m :])
    _, Z = inverse_and_null_space(first_derivatives(program, x)[1][np.ix_(rows, free)])
    result = np.zeros((program.n, Z.shape[1]))
    result[free] = Z
    return result


def values_and_bounds(program: NonlinearProgram, x: Array) -> tuple[Array, Array, Array]:
    """Return the values, lower bounds and upper bounds (m + n,) of the rows and the variables."""
    lower, upper = np.append(program.row_lower, program.lower), np.append(program.row_upper, program.upper)
    return np.append(program.value(x)[1], x), lower, upper


def active_sides(program: NonlinearProgram, outcome: Outcome, *, with_multiplier: bool = False) -> Array:
    """Return the active sides (m + n,) of rows and variables at an outcome: -1 lower, 1 upper, 0 inactive.

    For an equation, the side is 1. An inequality is active if its multiplier, relative to the largest one, has the sign
    of the side and exceeds the distance from the bound. Inequalities at their bound are also active without a
    multiplier, unless ``with_multiplier`` is True.
    """
    values, lower, upper = values_and_bounds(program, outcome.x)
    z = np.concatenate([outcome.multipliers, outcome.bound_multipliers])
    size = np.abs(z) / max(1.0, np.abs(z).max(initial=0.0))
    below, above = values - lower, upper - values
    side = np.where(below < above, -1.0, 1.0)
    near = np.minimum(below, above)
    active = (near < size) & (side * z > 0)
    if not with_multiplier:
        active |= near < NEAR_BOUND_DISTANCE
    return np.where(upper - lower <= EQUAL_BOUND_DISTANCE, 1.0, np.where(active, side, 0.0))


def estimated(program: NonlinearProgram, outcome: Outcome) -> Optimum:
    """Return an outcome as an optimum without Newton steps, to the solver's tolerance, for degenerate optima."""
    return _linearised(program, outcome.x, active_sides(program, outcome))[0]


def stationary_point(program: NonlinearProgram, x: Array, sides: Array) -> Optimum | None:
    """Return the stationary point with the active ``sides``, by Newton steps from x, or None without convergence."""
    held = sides[program.m :]
    x = np.where(held != 0, np.where(held < 0, program.lower, program.upper), x)
    for _ in range(MAX_NEWTON_STEPS):
        result, step = _linearised(program, x, sides)
        size = float(np.abs(step).max(initial=0.0)) / (1.0 + float(np.abs(x).max(initial=0.0)))
        if not np.isfinite(size) or size > MAX_STEP_LENGTH:
            return None
        if size <= LAST_STEP_SIZE:
            return result
        x = x + step
    return result if size <= ACCEPTED_VIOLATION else None  # rounding may prevent convergence to LAST_STEP_SIZE


def _linearised(program: NonlinearProgram, x: Array, sides: Array) -> tuple[Optimum, Array]:
    """Return the optimality conditions at x with the active ``sides``, and the Newton step (n,) to the optimum."""
    of_rows, held = sides[: program.m], sides[program.m :] != 0
    rows, free = np.flatnonzero(of_rows), np.flatnonzero(~held)
    target = np.where(of_rows < 0, program.row_lower, program.row_upper)[rows]
    gradient, J = first_derivatives(program, x)
    inverse, Z = inverse_and_null_space(J[np.ix_(rows, free)])
    y = np.zeros(program.m)
    y[rows] = -inverse.T @ gradient[free]
    H = padded(program.hessian(x, y, 1.0), program.n)[np.ix_(free, free)]
    curvatures, turn = np.linalg.eigh(Z.T @ H @ Z)
    Z = Z @ turn
    curved = np.abs(curvatures) > FLAT_CURVATURE * max(np.abs(H).max(initial=0.0), 1e-300)
    step, directions = np.zeros(program.n), np.zeros((program.n, Z.shape[1]))
    values, lower, upper = values_and_bounds(program, x)
    back = -inverse @ (values[rows] - target)
    slope = Z.T @ (gradient[free] + H @ back)
    step[free] = back - Z[:, curved] @ (slope[curved] / curvatures[curved])
    directions[free] = Z
    bound = np.where(held, -(gradient + y @ J), 0.0)
    z = np.concatenate([y, bound])
    is_inequality = (sides != 0) & (upper - lower > EQUAL_BOUND_DISTANCE)
    weak = np.abs(z[is_inequality]) <= WEAK_MULTIPLIER * max(1.0, np.abs(z).max(initial=0.0))
    curvatures = np.where(curved, curvatures, 0.0)
    return Optimum(x, y, bound, directions, curvatures, int((~curved).sum()), int(np.sum(weak)), sides), step


def first_derivatives(program: NonlinearProgram, x: Array) -> tuple[Array, Array]:
    """Return the gradient (n,) and the dense Jacobian (m, n) of the rows."""
    gradient, entries = program.jacobian(x)
    J = np.zeros((program.m, program.n))
    np.add.at(J, program.structure, entries)
    return gradient, J


def _changed_sides(program: NonlinearProgram, found: Optimum, sides: Array) -> Array | None:
    """Return the sides with the worst one changed, or None if all are right.

    The most violated bound becomes active. If no bound is violated, the active bound whose multiplier has the wrong
    sign by most is released.
    """
    values, lower, upper = values_and_bounds(program, found.x)
    z, changed = np.concatenate([found.multipliers, found.bound_multipliers]), sides.copy()
    violation = np.where(changed == 0, np.maximum(lower - values, values - upper), 0.0)
    is_fixed: Flags = upper - lower <= EQUAL_BOUND_DISTANCE
    wrong = np.where((changed != 0) & ~is_fixed, -changed * z, 0.0) / max(1.0, np.abs(z).max(initial=0.0))
    worst, worst_sign = int(np.argmax(violation)), int(np.argmax(wrong))
    if violation[worst] > ACCEPTED_VIOLATION:
        changed[worst] = -1.0 if values[worst] < lower[worst] else 1.0
    elif wrong[worst_sign] > ACCEPTED_VIOLATION:
        changed[worst_sign] = 0.0
    else:
        return None
    return changed
