"""Search for objective weights by a trust-region Gauss-Newton method on the residuals of optima.

The weights are positive and only their ratios matter, so the variables are their logarithms t, and their sum is fixed.
Because a common factor does not change x, dr/dt_k = w_k dr/dx dx/dw_k. Exact sensitivities of the optimum
(``optimisation.optimum``) yield the full Jacobian from one factorisation. Each step is the least-squares step within
the trust region. The next optimum is computed from the point that the sensitivities predict.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from torsor.base.arrays import Array, Indices
from torsor.base.checks import number, one_of, positive, table, whole_number
from torsor.base.errors import ModelError, warn
from torsor.motion.inverse.measured import Residuals
from torsor.motion.inverse.weight_fit import WeightFit
from torsor.motion.inverse.weighted_optima import SOLVER_TOLERANCE, Optima, Solved, WeightedProgram, cost_groups
from torsor.motion.problem import MotionProblem, MotionResult
from torsor.motion.starts import read_start
from torsor.optimisation import SOLVERS, Iteration, Settings, Watch
from torsor.optimisation.optimum import free_directions

# Weights from the data alone, without computing optima: they minimise the gradient of the Lagrangian at the data.

# # At an optimum, the active constraints balance the weighted gradients of the objectives: if Z is a basis of their
# null space, sum_k w_k Z^T grad f_k = 0. At the motion nearest to the measured data, the residual of this equation is
# minimised by linear least squares (Keshavarz, Wang and Boyd 2011). Data errors have more effect here than in
# ``fit_weights``, so the result only initialises that search.

ACTIVE_DISTANCE = 1e-3  # scaled distance from its bound within which an inequality counts as active
MIN_START_WEIGHT = 1e-3  # smallest returned weight relative to their sum, because the search takes logarithms
NEAREST_MOTION_TOLERANCE = 1e-9  # of the nearest motion, whose distances from bounds determine which are active
# Weight of the objective relative to the distance from the data, because the data may not determine the motion.
OBJECTIVE_WEIGHT = 1e-8


class NearestMotion:
    """The program whose solution is the feasible motion of a weighted program nearest to data.

    The objective is half the sum of squared distances, plus a small part of the weighted objective, because the data
    may not determine the motion. Second derivatives are Gauss-Newton approximations.
    """

    def __init__(self, program: WeightedProgram, residuals: Residuals):
        self._program, self._residuals = program, residuals
        self.n, self.m = program.n, program.m
        self.lower, self.upper = program.lower, program.upper
        self.row_lower, self.row_upper, self.scales = program.row_lower, program.row_upper, program.scales
        self.structure = program.structure

    @property
    def hessian_structure(self) -> tuple[Indices, Indices]:
        """Rows and columns of the upper triangle of the Hessian, in column-major order."""
        columns, rows = np.tril_indices(self.n)
        return rows, columns

    def value(self, x: Array) -> tuple[float, Array]:
        """Return the objective and the rows (m,)."""
        f, rows = self._program.value(x)
        r = self._residuals.value(x)
        return float(r @ r) / 2 + OBJECTIVE_WEIGHT * f, rows

    def jacobian(self, x: Array) -> tuple[Array, Array]:
        """Return the gradient (n,) and the entries of the row Jacobian."""
        gradient, entries = self._program.jacobian(x)
        return self._residuals.value(x) @ self._residuals.jacobian(x) + OBJECTIVE_WEIGHT * gradient, entries

    def hessian(self, x: Array, multipliers: Array, weight: float) -> Array:
        """Return the approximate Hessian (n, n) of weight . objective + multipliers . rows."""
        J = self._residuals.jacobian(x)
        return self._program.hessian(x, multipliers, OBJECTIVE_WEIGHT * weight) + weight * (J.T @ J)


def balancing_weights(program: WeightedProgram, x: Array) -> Array:
    """Return the nonnegative weights (k,), with sum 1, that minimise the reduced gradient at variables x (n,)."""
    gradients = free_directions(program, x, ACTIVE_DISTANCE).T @ program.gradients(x)
    sizes = np.linalg.norm(gradients, axis=0)
    if not (sizes > 0).all():  # a term that does not depend on the motion carries no information
        return np.full(len(sizes), 1.0 / len(sizes))
    columns, kept = gradients / sizes, list(range(len(sizes)))  # normalised, so that units do not matter
    while True:  # drop weights that would be negative, one by one
        active = columns[:, kept]
        gram = active.T @ active
        w = np.linalg.solve(gram + 1e-14 * np.trace(gram) * np.eye(len(kept)), np.ones(len(kept)))
        w /= w.sum()
        if len(kept) == 1 or w.min() >= 0:
            break
        kept.pop(int(np.argmin(w)))
    result = np.zeros(len(sizes))
    result[kept] = w
    result /= sizes
    result = np.maximum(result / result.sum(), MIN_START_WEIGHT)
    return np.asarray(result / result.sum())


SOLVER_ITERATIONS = 500  # solver iterations per optimum
MIN_WEIGHT = 1e-6  # smallest weight relative to their sum, at which weights end that the data drive to 0
FIRST_RADIUS, MAX_RADIUS, MIN_RADIUS = 1.0, 3.0, 1e-10  # trust radius of the logarithms: initial, largest and final
# Ratio of actual to predicted reduction above which a step is accepted, and the radius grows.
ACCEPTED_RATIO, GOOD_RATIO = 1e-4, 0.75
SETTLED_CHANGE = 1e-9  # the search ends when no logarithm changes by more than this
ZERO_SINGULAR_VALUE = 1e-12  # relative magnitude below which singular values count as 0
# Factor of the nearest motion's distance, and offset, below which no second start is needed.
ENOUGH_FACTOR, ENOUGH_OFFSET = 2.0, 1e-4
MIN_EXPLAINED = 0.5  # explained fraction of the data below which a warning is issued


def fit_weights(
    problem: MotionProblem,
    data: Any,
    weights: Mapping[str, float] | None = None,
    *,
    groups: Mapping[str, Sequence[str]] | None = None,
    start: Any = None,
    solver: str = "condensed",
    iterations: int = 50,
    seconds: float = np.inf,
    progress: bool | None = None,
) -> WeightFit:
    """Return the objective weights with which a problem best predicts data (inverse optimal control).

    ``data`` are one or more ``motion.Measured`` or named ``motion.Reference``. The objective is sum_k w_k f_k, where
    each f_k is a term with its own weight, which sets its unit. Terms in one of the ``groups`` {name: titles} share a
    weight w_k. The search starts from ``weights``. The w_k are positive, and their sum is that of ``weights``, or 1.
    Without ``weights``, the search starts from the weights with the smallest gradient at the motion nearest to the
    data, and also from equal weights unless the first search ends near the data. The optimum is local, so try other
    initial weights too.

    ``start`` is the initial guess of the first optimum (see ``MotionProblem.solve``), by default the motion nearest to
    the data. ``solver`` is the solver of the optima. ``iterations`` and ``seconds`` limit the search, which Ctrl-C also
    ends; the result then contains the best weights so far. ``progress`` shows the iterations on stderr.

    Example:
        >>> from torsor import motion
        >>> ends = [motion.Start(q=0.0, v=0.0), motion.End(q=1.0, v=0.0)]
        >>> aims = [motion.Effort(weight=0.01), motion.Jerk(weight=1e-5)]
        >>> robot, phase = torsor.library.planar_chain(1), motion.Phase(1.0, points=7)
        >>> weighted = [replace(term, weight=w * term.weight) for term, w in zip(aims, (0.3, 0.7))]
        >>> truth = motion.MotionProblem(robot, phase, weighted, ends).solve(tolerance=1e-9)
        >>> measured = motion.Measured(name="synthetic", values=truth.at(np.linspace(0.0, 1.0, 9)).q)
        >>> fit = motion.fit_weights(motion.MotionProblem(robot, phase, aims, ends), measured)
        >>> {name: round(value, 4) for name, value in fit.weights.items()}
        {'Effort': 0.3, 'Jerk': 0.7}
    """
    began, where = perf_counter(), f"{problem.name}: weights"
    shared = cost_groups(problem, groups)
    start_weights = None if weights is None else _checked(weights, tuple(shared), where)
    one_of(solver, list(SOLVERS), where, "solver")
    whole_number(iterations, where, "iterations")
    number(seconds, where, "seconds", above=0.0, finite=False)
    residuals = Residuals(problem, data)
    with threadpool_limits(1):
        program = WeightedProgram(problem, shared, np.full(len(shared), 1.0 / len(shared)))
        x = read_start(problem, start)
        program.jacobian(x), program.hessian(x, np.zeros(program.m), 1.0), residuals.jacobian(x)  # compiles
        setup = perf_counter() - began
        with Watch(progress, where) as watch:
            optima = Optima(program, solver, SOLVER_ITERATIONS, watch, began + seconds)
            limits = Settings(NEAREST_MOTION_TOLERANCE, SOLVER_ITERATIONS, watch=optima.check)
            nearest = SOLVERS[solver](NearestMotion(program, residuals), x, limits).x
            even = np.full(len(shared), 1.0 / len(shared))
            candidates = [start_weights] if start_weights is not None else [balancing_weights(program, nearest), even]
            starts = [nearest, x] if start is None else [x]
            firsts = _first_optima(optima, residuals, candidates, starts, where)
            least = float(np.sqrt(np.mean(residuals.value(nearest) ** 2)))
            searches = [_Search(optima, residuals, first, iterations) for first in firsts]
            search = _best_search(searches, ENOUGH_FACTOR * least + ENOUGH_OFFSET)
    best, r = search.at, search.r
    factors = {term.title: float(w) for w, own in zip(best.weights, shared.values(), strict=True) for term in own}
    costs = [replace(cost, weight=factors[cost.title] * cost.weight) for cost in problem.costs]
    outcome = replace(best.outcome, objective=float(best.weights @ program.parts(best.optimum.x)))
    fitted, times = problem.changed(objective=costs), (setup, perf_counter() - began - setup)
    result = WeightFit(
        motion=MotionResult(fitted, outcome, solver, SOLVER_TOLERANCE, *times),
        names=tuple(shared),
        values=best.weights,
        data=residuals.names,
        distances=residuals.root_mean_squares(r),
        nearest=least,
        explained=1.0 - float(r @ r) / max(residuals.spread, np.finfo(float).tiny),
        x_by_weights=optima.by_weights(best),
        data_by_weights=search.by_weights,
        history=np.array([[misfit, *own] for misfit, own in search.steps]),
        residuals=r,
        status=search.status,
        flat=best.optimum.flat,
        weak=best.optimum.weak,
    )
    if result.explained < MIN_EXPLAINED:
        what = f"the best weights explain only {100 * max(result.explained, 0.0):.0f} % of the data"
        fix = "use other objective terms; the result's 'nearest' is the smallest distance that the constraints allow"
        warn(what, where=where, fix=fix)
    return result


def _checked(weights: Mapping[str, float], names: tuple[str, ...], where: str) -> Array:
    """Return the weights as an array (k,); raise ModelError if one is missing, unknown or not positive."""
    by_title = table(weights, where, "weights")
    for name in by_title:
        one_of(name, names, where, "weights")
    missing = [name for name in names if name not in by_title]
    if missing:
        raise ModelError(f"there is no weight for {missing[0]!r}", where=where, allowed=", ".join(names))
    return np.array([positive(by_title[name], where, f"weight of {name!r}") for name in names])


def _first_optima(
    optima: Optima, residuals: Residuals, candidates: Sequence[Array], starts: Sequence[Array], where: str
) -> list[Solved]:
    """Return an optimum for each set of weights, from the first successful start, sorted by distance from the data."""
    solved = (
        next((candidate for candidate in (optima.solved(w, x) for x in starts) if candidate), None) for w in candidates
    )
    optima_found = [candidate for candidate in solved if candidate is not None]
    if not optima_found and optima.watch.interrupted:
        raise KeyboardInterrupt
    if not optima_found and perf_counter() > optima.until:
        raise ModelError("the time limit was reached before the first optimum", where=where, fix="increase seconds")
    if not optima_found:
        fix = "solve the problem first and pass the result as `start=...`, or give other weights"
        raise ModelError("no optimum was found for the initial weights", where=where, fix=fix)
    return sorted(optima_found, key=lambda each: float(np.sum(residuals.value(each.optimum.x) ** 2)))


def _best_search(searches: Sequence["_Search"], enough: float) -> "_Search":
    """Run searches until one ends within the root mean square distance ``enough``, and return the best.

    Fits have local optima. If the data do not determine the motion, weights from gradients at the data may lead to one.
    """
    done = list[_Search]()
    for search in searches:
        search.status = search.run()
        done.append(search)
        if search.distance <= enough or not search.status.startswith("optimal"):
            break
    return min(done, key=lambda each: each.distance)


@dataclass(eq=False)
class _Search:
    """The state of the search: the best optimum so far, and the accepted steps."""

    optima: Optima
    residuals: Residuals
    at: Solved
    iterations: int

    def __post_init__(self) -> None:
        self.total = float(self.at.weights.sum())
        self.steps, self.radius, self.status = (
            list[tuple[float, Array]](),
            FIRST_RADIUS,
            "",
        )  # sum of squares, and weights
        self._arrive(self.at, self.residuals.value(self.at.optimum.x))

    def _arrive(self, at: Solved, r: Array) -> None:
        self.at, self.r = at, r
        self.by_weights = self.residuals.jacobian(at.optimum.x) @ self.optima.by_weights(at)
        self.steps.append((float(r @ r), at.weights))

    @property
    def distance(self) -> float:
        """The root mean square distance from the data."""
        return float(np.sqrt(np.mean(self.r**2)))

    def run(self) -> str:
        """Search until the weights converge, and return the status."""
        for k in range(self.iterations):
            change, predicted = self._step()
            size = float(np.abs(change).max())
            if size <= SETTLED_CHANGE or predicted <= ZERO_SINGULAR_VALUE**2 * self.steps[-1][0]:
                return "optimal" if self.at.is_exact else "optimal; constraints are degenerate"
            note = Iteration(k, self.distance, 0.0, size)
            if self.optima.is_over(note):
                return "stopped by Ctrl-C" if self.optima.watch.interrupted else "stopped at the time limit"
            if not self._try(change, predicted) and self.radius < MIN_RADIUS:
                return "no better weights were found nearby"
        return "stopped at the iteration limit"

    def _step(self) -> tuple[Array, float]:
        """Return the change (k,) of the logarithms within the trust region, and the predicted reduction."""
        w = self.at.weights
        J = self.by_weights * w
        gradient = J.T @ self.r
        kept = ~((w <= 1.01 * MIN_WEIGHT * self.total) & (gradient > 0))  # not those at a bound that would leave it
        u, s, vt = np.linalg.svd(J[:, kept], full_matrices=False)
        good = s > ZERO_SINGULAR_VALUE * max(s.max(initial=0.0), np.finfo(float).tiny)
        s, v, along = s[good], vt[good].T, (u.T @ self.r)[good]
        damping = 0.0
        change = -v @ (along / s)
        while np.linalg.norm(change) > self.radius:
            damping = max(2 * damping, 1e-6 * float(s.max() ** 2))
            change = -v @ (along * s / (s**2 + damping))
        whole = np.zeros(len(w))
        whole[kept] = change
        return whole, float(self.r @ self.r - np.sum((self.r + J @ whole) ** 2))

    def _try(self, change: Array, predicted: float) -> bool:
        """Compute the optimum for changed weights; return whether the change is accepted."""
        new_weights = np.maximum(self.at.weights * np.exp(change), MIN_WEIGHT * self.total)
        solved = self.optima.moved(self.at, new_weights * (self.total / new_weights.sum()))
        size = float(np.linalg.norm(change))
        if solved is not None:
            r = self.residuals.value(solved.optimum.x)
            ratio = (self.steps[-1][0] - float(r @ r)) / predicted
            if ratio > ACCEPTED_RATIO:
                if ratio > GOOD_RATIO:
                    self.radius = min(max(self.radius, 2 * size), MAX_RADIUS)
                self._arrive(solved, r)
                return True
        self.radius = size / 4
        return False
