"""Sequential quadratic programming, in which each step solves a quadratic program (QP) with linearised rows.

With the convexified Hessian H of the Lagrangian, the QP for a step d is

    minimise 1/2 d^T H d + gradient . d + weight t   subject to rows + J d within their bounds, relaxed by t times
    their current violation, 0 <= t <= 1

It is always feasible, with d = 0 and t = 1 (Powell 1978). Steps are shortened until the merit function, f + penalty
times the sum of violations, decreases. The length of a shortened step limits the next ones.

A QP is a single library call, which neither the time limit nor Ctrl-C can interrupt. Both are checked before each QP,
whose number of iterations is limited by the remaining time.
"""

from time import perf_counter
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.optimisation.program import NonlinearProgram, Outcome, Settings, padded, violations_of
from torsor.optimisation.record import TIME_LIMIT_STATUS, LimitError, Record, run_solver

# The QP solver is PIQP, a proximal interior-point method. By comparison, qpOASES is equally good but prints to the
# screen, qrqp takes hundreds of times as long, and the steps of DAQP and ProxQP are not precise enough.
QP_SOLVER = "piqp"
QP_OPTIONS: dict[str, Any] = {"error_on_fail": False, "print_time": False, "piqp": {"eps_abs": 1e-10, "eps_rel": 1e-11}}
# Iteration limits of a QP. Successful QPs take about 30 iterations; fewer are allowed if little time is left.
QP_ITERATION_LIMITS = (100, 50, 25, 12)
LIMITED_STATUS = "max iterations reached"  # PIQP's status text
TIMING_ITERATIONS = 5  # number of iterations of the QP that measures the time per iteration
MIN_EIGENVALUE_RATIO = 1e-8  # smallest eigenvalue of the convex Hessian, relative to the largest
MIN_STEP_FRACTION = 1e-6  # fraction of a step at which the line search fails
# Initial and largest weight of t; it increases while rows stay relaxed.
FIRST_RELAXATION_WEIGHT, MAX_RELAXATION_WEIGHT = 1e3, 1e8
RELAXED_THRESHOLD = 1e-3  # t above which rows count as relaxed
MIN_TOLERANCE = 1e-8  # smallest tolerance, because QPs are not solved more precisely
# Relative change of x that counts as 0, and the largest number of such steps.
STILL_CHANGE, MAX_STILL_STEPS = 1e-14, 3
SHORT_STEP_FRACTION = 0.2  # steps shortened below this fraction limit the length of the next ones
RADIUS_GROWTH, MIN_RADIUS = 3.0, 1e-6  # growth factor and smallest value of the step limit
LOOSER_FACTOR = 100.0  # factor of the tolerance that is accepted if no better step is found
HESSIAN_SHIFTS = (0.0, 1e-4, 1e-2, 1.0, 100.0)  # shifts of the Hessian's diagonal, tried until a step is accepted


def solve_sqp(program: NonlinearProgram, start: Array, settings: Settings) -> Outcome:
    """Solve a program from a start (n,) by sequential quadratic programming; the smallest tolerance is 1e-8.

    Example:
        >>> from torsor.optimisation.program import Formula
        >>> valley = Formula(lambda x: (x[0] - 2) ** 2 + x[1] ** 2, lambda x: x[0] + x[1], n=2, row_upper=1.0)
        >>> solve_sqp(valley, [0.0, 0.0], Settings()).x.round(6).tolist()
        [1.5, -0.5]
    """
    return run_solver(program, start, settings, lambda record, x: _Search(record, x).run())


class _Step(NamedTuple):
    """The step (n,), the relaxation t, and the multipliers of the rows and bounds."""

    x: Array
    relaxation: float
    multipliers: Array
    bound_multipliers: Array


class _Model:
    """The quadratic program."""

    def __init__(self, program: NonlinearProgram):
        self.program, n = program, program.n
        self._kept = np.isfinite(program.row_lower) | np.isfinite(program.row_upper)
        rows, columns = program.structure
        order, m = np.lexsort(program.structure), int(self._kept.sum())  # CasADi's order of entries
        self._entries = order[self._kept[rows[order]]]
        places = np.cumsum(self._kept) - 1
        pattern = ca.Sparsity.triplet(m, n, places[rows[self._entries]].tolist(), columns[self._entries].tolist())
        self._rows = ca.horzcat(pattern, ca.Sparsity.dense(m, 1))
        self._hessian = ca.diagcat(ca.Sparsity.dense(n, n), ca.Sparsity.dense(1, 1))
        self._qps = dict[int, Any]()
        self._given: dict[str, Any] = {}
        self._seconds: tuple[float, float] | None = None  # time of a QP without iterations, and of an iteration (s)

    def _qp(self, iterations: int) -> Any:
        """Return the QP solver with an iteration limit."""
        if iterations not in self._qps:
            options = QP_OPTIONS | {"piqp": QP_OPTIONS["piqp"] | {"max_iter": iterations}}
            self._qps[iterations] = ca.conic("model", QP_SOLVER, {"h": self._hessian, "a": self._rows}, options)
        return self._qps[iterations]

    def at(
        self, x: Array, hessian: Array, gradient: Array, entries: Array, rows: Array, *, weight: float, radius: float
    ) -> None:
        """Set the point: derivatives, rows (m,), weight of t, and largest change of a variable (``radius``)."""
        program = self.program
        self._low, self._high = program.lower - x, program.upper - x
        self._radius = radius
        widening = np.maximum(program.row_lower - rows, 0.0) - np.maximum(rows - program.row_upper, 0.0)
        self._given = {
            "h": ca.DM(self._hessian, [*hessian.T.ravel(), MIN_EIGENVALUE_RATIO]),
            "a": ca.DM(self._rows, [*entries[self._entries], *widening[self._kept]]),
            "g": np.append(gradient, weight),
            "lbx": np.append(np.maximum(self._low, -radius), 0.0),
            "ubx": np.append(np.minimum(self._high, radius), 1.0),
        }

    def step(self, rows: Array, seconds: float) -> _Step | None:
        """Return the step for ``rows``, or None if the QP fails; raise LimitError if too little time is left."""
        if not np.isfinite(seconds):
            return self._solve(rows, QP_ITERATION_LIMITS[0])
        if self._seconds is None:
            first, later = (self._time(rows, count) for count in (1, TIMING_ITERATIONS))
            each = max(later - first, 0.0) / (TIMING_ITERATIONS - 1)
            self._seconds = max(first - each, 0.0), each
        before, each = self._seconds
        limit = next((k for k in QP_ITERATION_LIMITS if before + k * each <= seconds), QP_ITERATION_LIMITS[-1])
        result = self._solve(rows, limit)
        if limit < QP_ITERATION_LIMITS[0] and self._qp(limit).stats()["return_status"] == LIMITED_STATUS:
            raise LimitError(TIME_LIMIT_STATUS)
        return result

    def _time(self, rows: Array, iterations: int) -> float:
        began = perf_counter()
        self._solve(rows, iterations)
        return perf_counter() - began

    def _solve(self, rows: Array, iterations: int) -> _Step | None:
        sides = {"lba": self.program.row_lower - rows, "uba": self.program.row_upper - rows}
        bounds = {name: side[self._kept] for name, side in sides.items()}
        qp = self._qp(iterations)
        solution = qp(**self._given, **bounds)
        x, multipliers, held = (np.asarray(solution[key].full()).ravel() for key in ("x", "lam_a", "lam_x"))
        if not (qp.stats()["success"] and np.isfinite([*x, *multipliers, *held]).all()):
            return None
        spread = np.zeros(self.program.m)
        spread[self._kept] = multipliers
        is_bound = np.where(held[:-1] > 0, self._high, -self._low) <= self._radius  # excludes bounds due to the radius
        return _Step(x[:-1], float(np.clip(x[-1], 0.0, 1.0)), spread, np.where(is_bound, held[:-1], 0.0))


class _Search:
    """The state of the solver: x, multipliers and penalty."""

    def __init__(self, record: Record, start: Array):
        self.record, self.program, self.settings = record, record.program, record.settings
        self.evaluations, self.x, self.model = record.evaluations, start.copy(), _Model(record.program)
        n, m, settings = self.program.n, self.program.m, self.settings
        self._dense = np.zeros((m, n))
        self.multipliers = np.zeros(m) if settings.multipliers is None else settings.multipliers.copy()
        self.bound_multipliers = (
            np.zeros(n) if settings.bound_multipliers is None else settings.bound_multipliers.copy()
        )
        self.penalty, self.weight, self._still = 1.0, FIRST_RELAXATION_WEIGHT, 0
        self.radius = np.inf
        self.tolerance = max(self.settings.tolerance, MIN_TOLERANCE)

    def _violations(self, x: Array) -> Array:
        """Return the violation of each row."""
        return violations_of(self.program, self.evaluations.value(x)[1])

    def _merit(self, x: Array) -> float:
        return self.evaluations.value(x)[0] + self.penalty * float(self._violations(x).sum())

    def _jacobian(self, x: Array) -> Array:
        self._dense[self.program.structure] = self.evaluations.jacobian(x)[1]
        return self._dense

    def _hessian(self) -> Array:
        """Return the Hessian of the Lagrangian with positive eigenvalues."""
        H = padded(self.evaluations.hessian(self.x, self.multipliers, 1.0), self.program.n)
        values, vectors = np.linalg.eigh((H + H.T) / 2)
        least = MIN_EIGENVALUE_RATIO * max(float(np.abs(values).max(initial=0.0)), 1.0)
        return np.asarray((vectors * np.maximum(np.abs(values), least)) @ vectors.T)

    def _is_optimal(self, tolerance: float) -> bool:
        """Return whether the optimality conditions are satisfied; the sum of the products bounds the error of f."""
        program, x, y, z = self.program, self.x, self.multipliers, self.bound_multipliers
        f, rows = self.evaluations.value(x)
        gradient = self.evaluations.jacobian(x)[0] + y @ self._jacobian(x) + z
        average = float(np.abs(y).sum() + np.abs(z).sum()) / max(len(y) + len(z), 1)
        at, force = np.concatenate([rows, x]), np.concatenate([y, z])
        lower, upper = np.append(program.row_lower, program.lower), np.append(program.row_upper, program.upper)
        held = force != 0
        products = np.abs(force[held] * np.where(force > 0, upper - at, at - lower)[held])
        largest = max(
            float(np.abs(gradient).max(initial=0.0)) / max(1.0, average / 100),
            float(products.sum()) / max(1.0, abs(f)),
            self.record.log[-1].violation,
        )
        return largest <= tolerance

    def run(self) -> Outcome:
        """Iterate until the optimality conditions are satisfied."""
        while True:
            self.record.note(self.x, self.multipliers, self.bound_multipliers)
            if self._is_optimal(self.tolerance):
                return self._done("optimal")
            if len(self.record.log) > self.settings.iterations:
                return self.record.outcome("stopped at the iteration limit", False)
            if not self._advance():
                if self._is_optimal(LOOSER_FACTOR * self.tolerance):
                    return self._done("optimal to a looser tolerance")
                feasible = self.record.log[-1].violation <= self.settings.tolerance
                status = "no better step was found" if feasible else "no feasible point was found nearby"
                return self.record.outcome(status, False)

    def _done(self, words: str) -> Outcome:
        return self.record.outcome(words, True, (self.x, self.multipliers, self.bound_multipliers))

    def _advance(self) -> bool:
        """Take a step, shifting the Hessian until one is accepted; return whether one was accepted."""
        rows, (gradient, entries) = self.evaluations.value(self.x)[1], self.evaluations.jacobian(self.x)
        H = self._hessian()
        for shift in HESSIAN_SHIFTS:
            shifted = H + shift * np.eye(len(H))
            self.model.at(self.x, shifted, gradient, entries, rows, weight=self.weight, radius=self.radius)
            step = self._step(rows)
            if step is not None and self._search(step):
                return True
        return False

    def _step(self, rows: Array) -> _Step | None:
        """Return the QP step for ``rows``; raise an error at the time limit or after Ctrl-C."""
        self.record.check()
        return self.model.step(rows, self.settings.seconds - self.record.seconds)

    def _search(self, step: _Step) -> bool:
        """Shorten the step until the merit function decreases, and take it; return whether a step was taken."""
        x, violation = self.x, float(self._violations(self.x).sum())
        if step.relaxation > RELAXED_THRESHOLD:
            self.weight = min(10 * self.weight, MAX_RELAXATION_WEIGHT)
        self.penalty = max(self.penalty, 1.5 * float(np.abs(step.multipliers).max(initial=0.0)))
        slope = float(self.evaluations.jacobian(x)[0] @ step.x) - self.penalty * (1 - step.relaxation) * violation
        here, length = self._merit(x), 1.0
        slack = 1e-13 * max(1.0, abs(here))
        if slope > slack:
            return False
        while length > MIN_STEP_FRACTION:
            trial = np.clip(x + length * step.x, self.program.lower, self.program.upper)
            if self.evaluations.is_finite(trial):
                if self._merit(trial) <= here + 1e-4 * length * slope + slack:
                    return self._take(trial, step, length)
                if length == 1.0 and self._correct(trial, step, here + 1e-4 * slope + slack):
                    return True
            length /= 2
        return False

    def _correct(self, trial: Array, step: _Step, most: float) -> bool:
        """Try a second-order correction; return whether it was taken."""
        rows = self.evaluations.value(trial)[1]
        better = self._step(rows - self._jacobian(self.x) @ step.x)
        if better is None:
            return False
        x = np.clip(self.x + better.x, self.program.lower, self.program.upper)
        return self.evaluations.is_finite(x) and self._merit(x) <= most and self._take(x, better, 1.0)

    def _take(self, x: Array, step: _Step, length: float) -> bool:
        change = float(np.abs(x - self.x).max(initial=0.0))
        if length < SHORT_STEP_FRACTION:
            self.radius = max(RADIUS_GROWTH * change, MIN_RADIUS)
        elif change > self.radius / RADIUS_GROWTH:
            self.radius *= RADIUS_GROWTH
        moved = change > STILL_CHANGE * max(1.0, float(np.abs(x).max(initial=0.0)))
        self._still = 0 if moved else self._still + 1
        self.x = x
        self.multipliers = self.multipliers + length * (step.multipliers - self.multipliers)
        self.bound_multipliers = self.bound_multipliers + length * (step.bound_multipliers - self.bound_multipliers)
        return self._still < MAX_STILL_STEPS  # multipliers may improve while x does not
