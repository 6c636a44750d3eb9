"""Interior-point method for few variables and many inequalities, with a dense linear system in the variables.

This is a primal-dual method with a filter line search, second-order corrections and an adaptive barrier parameter
(Waechter and Biegler 2006; Nocedal, Waechter and Waltz 2009), and uses the condensed system of ``newton``.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.optimisation.newton import Condensed, Regularisation, Spaces
from torsor.optimisation.program import NonlinearProgram, Outcome, Settings
from torsor.optimisation.record import Record, run_solver
from torsor.optimisation.standard import BOUND_SIGNS, Jacobians, StandardForm, restore_feasibility

# The barrier problem of an interior-point method: points, Newton steps, and the choice of the barrier parameter.
#
# w = (x, s) are the variables and the slacks of the inequalities, each with a pair of bounds. y and u are the
# multipliers of c(x) = 0 and h(x) - s = 0, and z (2, w) those of the lower and upper bounds. Infinite bounds have
# infinite gaps and zero multipliers.

CORRECTOR_WEIGHTS = 9  # number of trial corrector weights
MAX_BOUND_FRACTION = 0.99  # largest fraction of the distance to a bound that a step covers


def longest_steps(gap: Array, change: Array, nearest: float) -> Array:
    """Return the longest steps (k,), up to 1, along changes (k, 2, w) that keep 1 - nearest times the gaps (2, w)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        worst = np.nan_to_num(change / gap, nan=0.0).min(axis=(-2, -1), initial=0.0)
    return np.asarray(np.minimum(1.0, nearest / np.maximum(-worst, 1e-300)))


class Step(NamedTuple):
    """Changes of w, y, u and the bound multipliers z (2, w), or of k steps (k, ...)."""

    w: Array
    y: Array
    u: Array
    z: Array


@dataclass(frozen=True, eq=False)
class Point:
    """A point of the barrier problem, with cached values and derivatives."""

    form: StandardForm
    w: Array
    y: Array
    u: Array
    z: Array

    @property
    def n(self) -> int:
        """Number of variables."""
        return len(self.form.free)

    @property
    def x(self) -> Array:
        """The variables (n,), without the slacks."""
        return self.w[: self.n]

    @cached_property
    def gaps(self) -> Array:
        """Distances (2, w) of w from its bounds."""
        return self.form.gaps(self.w)

    @cached_property
    def value(self) -> tuple[float, Array]:
        """f, and the residuals (c, h - s)."""
        f, c, h = self.form.value(self.x)
        return f, np.concatenate([c, h - self.w[self.n :]])

    @cached_property
    def theta(self) -> float:
        """Sum of the absolute residuals of the equations."""
        return float(np.abs(self.value[1]).sum())

    def merit(self, mu: float) -> float:
        """Return f - mu sum log gaps."""
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = sum(float(np.log(gap[np.isfinite(gap)]).sum()) for gap in self.gaps)
        return self.value[0] - mu * logs

    def merit_gradient(self, mu: float) -> Array:
        """Return the gradient of the merit function with respect to w."""
        gradient = np.concatenate([self.jacobians.gradient, np.zeros(len(self.w) - self.n)])
        return np.asarray(gradient - mu / self.gaps[0] + mu / self.gaps[1])

    @cached_property
    def jacobians(self) -> Jacobians:
        """The first derivatives of f, c and h."""
        return self.form.jacobian(self.x)

    @cached_property
    def stationarity(self) -> Array:
        """Gradient of the Lagrangian with respect to w, without the bound multipliers."""
        gradient, E, H = self.jacobians
        return np.concatenate([gradient + self.y @ E + H.transposed_times(self.u), -self.u])

    @cached_property
    def dual(self) -> Array:
        """Gradient of the Lagrangian with respect to w."""
        return np.asarray(self.stationarity - self.z[0] + self.z[1])

    @cached_property
    def products(self) -> Array:
        """Products of gaps and multipliers of finite bounds."""
        finite = np.isfinite(self.gaps)
        return self.gaps[finite] * self.z[finite]

    @property
    def mu(self) -> float:
        """The average complementarity."""
        return float(self.products.mean()) if self.products.size else 0.0

    def error(self, mu: float) -> float:
        """Return the largest optimality residual of the barrier problem, scaled for large multipliers."""
        z = float(self.z[0].sum() + self.z[1].sum())
        bounds = max(self.products.size, 1)
        all_ = float(np.abs(self.y).sum() + np.abs(self.u).sum()) + z
        by_dual = max(100.0, all_ / max(len(self.y) + len(self.u) + bounds, 1)) / 100
        by_gap = max(100.0, z / bounds) / 100
        return max(
            float(np.abs(self.dual).max(initial=0.0)) / by_dual,
            float(np.abs(self.value[1]).max(initial=0.0)),
            float(np.abs(self.products - mu).max(initial=0.0)) / by_gap,
        )

    def moved(self, step: Step, length: float, dual_length: float, mu: float) -> "Point":
        """Return the point after a step, with bound multipliers clipped in accordance with its gaps."""
        w = np.clip(self.w + length * step.w, *self.form.inner)
        centre = mu / self.form.gaps(w)
        z = np.clip(self.z + dual_length * step.z, centre * 1e-10, centre * 1e10)
        return Point(self.form, w, self.y + length * step.y, self.u + length * step.u, z)


class Direction:
    """The factorised Newton equations at a point; ``curvature`` is the weight of the constraints in the Hessian."""

    def __init__(self, point: Point, regularisation: Regularisation, spaces: Spaces, curvature: float = 1.0):
        self.point, n = point, point.n
        _, E, H = point.jacobians
        self._S = (point.z / point.gaps).sum(axis=0)
        matrix = point.form.hessian(point.x, curvature * point.y, curvature * point.u) + H.gram(self._S[n:])
        matrix[np.diag_indices(n)] += self._S[:n]
        self._system = Condensed(matrix, E, regularisation, spaces)

    @property
    def is_shifted(self) -> bool:
        """Whether the matrix is positive definite only with a diagonal shift."""
        return self._system.shift > 0

    def steps(self, mu: Array, second_order: Array | None = None, equations: Array | None = None) -> Step:
        """Return steps (k, ...) for barrier parameters mu (k,).

        ``second_order``, (2, w) or (k, 2, w), contains the products of gap and multiplier changes that the linear
        equations neglect. ``equations`` replaces the residuals (c, h - s).
        """
        point, n, e = self.point, self.point.n, len(self.point.y)
        H = point.jacobians.inequalities
        off = point.value[1] if equations is None else equations
        centre = mu[:, None, None] / point.gaps
        if second_order is not None:
            centre = centre - second_order / point.gaps
        r = point.stationarity[:, None] - (centre[:, 0] - centre[:, 1]).T
        c, d = off[:e, None], off[e:, None]
        by_x = -r[:n] - H.transposed_times(self._S[n:, None] * d + r[n:])
        dx, dy = self._system.solve(by_x, np.repeat(-c, len(mu), axis=1))
        ds = H.times(dx) + d
        du = self._S[n:, None] * ds + r[n:]
        dw = np.concatenate([dx, ds]).T
        return Step(dw, dy.T, du.T, centre - point.z - BOUND_SIGNS * point.z / point.gaps * dw[:, None])

    def lengths(self, step: Step, nearest: float) -> tuple[Array, Array]:
        """Return the longest steps (k,) of the variables and of the bound multipliers."""
        primal = longest_steps(self.point.gaps, BOUND_SIGNS * step.w[:, None], nearest)
        return primal, longest_steps(self.point.z, step.z, nearest)

    def corrected(self, least: float, most: float) -> tuple[float, Array, Step]:
        """Return a barrier parameter, second-order products (2, w), and the corresponding step.

        They are based on Mehrotra's predictor, the step without a barrier. The length of the predictor determines the
        barrier parameter, and the products of its changes are the terms that the linear equations neglect. The weight
        of the products, between the predictor's length and 1, maximises the step length (Colombo and Gondzio 2008).
        """
        point, step = self.point, self.steps(np.zeros(1))
        primal, dual = (float(length[0]) for length in self.lengths(step, 1.0))
        finite = np.isfinite(point.gaps)
        gaps, z = point.gaps + primal * BOUND_SIGNS * step.w[0], point.z + dual * step.z[0]
        total = sum(float((gaps[k][finite[k]] * z[k][finite[k]]).sum()) for k in range(2))
        products = np.where(finite, BOUND_SIGNS * step.w[0] * step.z[0], 0.0)
        average = total / max(point.products.size, 1)
        mu = (average / point.mu) ** 3 * point.mu if point.mu else 0.0
        mu = min(max(mu, least), most)
        both = self.steps(np.array([mu, mu]), np.stack([np.zeros_like(products), products]))  # weights 0 and 1
        weights = np.linspace(primal * dual, 1.0, CORRECTOR_WEIGHTS)
        several = Step(*(change[0] + np.multiply.outer(weights, change[1] - change[0]) for change in both))
        lengths = self.lengths(several, MAX_BOUND_FRACTION)
        best = int(np.argmax(lengths[0] * lengths[1]))
        return mu, weights[best] * products, Step(*(change[best] for change in several))


START_PUSH = 1e-2  # distance of the start from its bounds, relative to their magnitude and to their distance
WARM_PUSH = 1e-6  # the same for a warm start
MAX_WARM_ERROR = 1.0  # optimality error of a warm start above which START_PUSH is used
LOOSER_FACTOR = 100.0  # accepted multiple of the tolerance if no better step is found
MAX_CORRECTIONS = 4  # largest number of second-order corrections of a step
MIN_STEP_FRACTION = 1e-8  # fraction of the longest step at which the line search fails
MAX_RESIDUAL_GROWTH, MAX_MEAN_RESIDUAL = 10.0, 0.3  # largest growth of the residual in a step, or largest mean residual
SOFT_ERROR_FACTOR = 0.9999  # ratio of errors below which a step is accepted although the filter rejects it
MAX_RESTARTS, RESTART_MU = 5, 1e-4
# Relative step that counts as 0, and largest number of successive such steps.
STILL_STEP, MAX_STILL_STEPS = 1e-14, 20
# Initial gap of the barrier problem relative to the objective, and its reduction factor.
FIRST_GAP_SHARE, GAP_FACTOR = 0.25, 0.1
SETTLED_DECREASE = 0.3  # predicted decrease, relative to the gap, below which the gap is reduced
# The same while the matrix needs a shift, because the search is then far from the optimum and steps end at bounds.
SHIFTED_GAP_FACTOR, SHIFTED_SETTLED_DECREASE = 0.3, 0.03
CLOSE_RESIDUAL = 3e-3  # mean residual below which the gap is reduced and the full constraint curvature is used
# Length of a short step, and number of successive short steps that counts as stuck.
SHORT_STEP, MAX_SHORT_STEPS = 1e-2, 4


def solve_condensed(program: NonlinearProgram, start: Array, settings: Settings) -> Outcome:
    """Solve a program from a start (n,) with the condensed interior-point method.

    Example:
        >>> from torsor.optimisation.program import Formula
        >>> valley = Formula(lambda x: (x[0] - 2) ** 2 + x[1] ** 2, lambda x: x[0] + x[1], n=2, row_upper=1.0)
        >>> solve_condensed(valley, [0.0, 0.0], Settings()).x.round(6).tolist()
        [1.5, -0.5]
    """
    return run_solver(program, start, settings, lambda record, x: _Search(record, x).run())


class Filter:
    """Earlier pairs (violation, objective); a new pair is rejected if an earlier one is at least as good in both.

    ``margin`` is the fraction of the violation by which a new pair must be better (Fletcher and Leyffer 2002).
    """

    def __init__(self, margin: float):
        self.margin = margin
        self._earlier = list[tuple[float, float]]()

    def clear(self) -> None:
        """Remove all pairs."""
        self._earlier.clear()

    def add(self, violation: float, objective: float) -> None:
        """Add a pair and remove those that it makes redundant."""
        least = self.margin * violation
        pair = violation - least, objective - least
        self._earlier = [earlier for earlier in self._earlier if earlier[0] < pair[0] or earlier[1] < pair[1]] + [pair]

    def accepts(self, violation: float, objective: float) -> bool:
        """Return whether a pair improves on every earlier pair in violation or objective."""
        return all(violation < v or objective < f for v, f in self._earlier)


class _Search:
    """The solver and its state: point, barrier parameter, regularisation and filter."""

    def __init__(self, record: Record, start: Array):
        self.record, self.settings = record, record.settings
        self.form = StandardForm(record, start)
        self.regularisation, self.spaces = Regularisation(), Spaces()
        self.point = self._first(start[self.form.free])
        self.least = max(0.1 * self.settings.tolerance / max(self.point.products.size, 1), 1e-14)
        self.most = 1e3 * max(self.point.mu, 1e-8)
        self.mu, self.is_free = self.point.mu, True
        self.shorts = self.stills = self.restarts = 0
        size = max(abs(self.point.value[0]), 1e-300)
        self.is_flat, self.first = True, self.point.theta
        self.share = min(FIRST_GAP_SHARE, self.point.mu * self.point.products.size / size)
        self.second_order: Array | None = None
        self.filter = Filter(1e-5)
        self.small = 1e-4 * max(1.0, self.point.theta)
        self.past = Filter(1e-5)  # filter of all iterations, which selects the adaptive or the monotone barrier

    def _first(self, x: Array) -> Point:
        form, warm = self.form, self.settings.multipliers
        if warm is None:
            return self._with_multipliers(self._interior(x, START_PUSH), np.isfinite(form.w_bounds).astype(float))
        bound_multipliers = self.settings.bound_multipliers
        y, u, z = form.own(warm, np.zeros(form.program.n) if bound_multipliers is None else bound_multipliers)
        both = np.concatenate([z, u])
        pairs = np.where(np.isfinite(form.w_bounds), np.maximum(-BOUND_SIGNS * both, WARM_PUSH), 0.0)
        point = Point(form, self._interior(x, WARM_PUSH), y, u, pairs)
        is_far = point.error(0.0) > MAX_WARM_ERROR
        return Point(form, self._interior(x, START_PUSH), y, u, pairs) if is_far else point

    def _interior(self, x: Array, push: float) -> Array:
        """Return variables and slacks inside their bounds; they are closer to x if values are not finite."""
        form = self.form
        inner = _inside(x, form.lower, form.upper, push)
        while not form.is_finite(inner) and push > 1e-12:
            push /= 10
            inner = _inside(x, form.lower, form.upper, push)
        return np.concatenate([inner, _inside(form.value(inner)[2], form.row_lower, form.row_upper, push)])

    def _with_multipliers(self, w: Array, pairs: Array) -> Point:
        """Return a point with least-squares estimates of the multipliers y and u for bound multipliers (2, w)."""
        form, n = self.form, len(self.form.free)
        gradient, E, H = form.jacobian(w[:n])
        z = pairs[1] - pairs[0]
        by_x, u = gradient + z[:n], z[n:]
        system = Condensed(np.eye(n) + H.gram(np.ones(len(u))), E, Regularisation(), self.spaces)
        dx, dy = system.solve(-(by_x + H.transposed_times(u))[:, None], np.zeros((len(E), 1)))
        y, u = dy[:, 0], u + H.times(dx[:, 0])
        if max(np.abs(y).max(initial=0.0), np.abs(u).max(initial=0.0)) > 1e3:
            y, u = np.zeros_like(y), np.zeros_like(u)
        return Point(form, w, y, u, pairs)

    def run(self) -> Outcome:
        """Iterate until the optimality conditions are satisfied."""
        for _ in range(self.settings.iterations + 1):
            self.record.note(*self._solution())
            if self._is_optimal(self.settings.tolerance):
                return self._done("optimal")
            if len(self.record.log) > self.settings.iterations:
                break
            if not self._advance() or self.shorts >= MAX_SHORT_STEPS:
                self.shorts = 0
                if self._is_optimal(LOOSER_FACTOR * self.settings.tolerance):
                    return self._done("optimal to a looser tolerance")
                if not self._restart():
                    status = "no better step was found" if self._is_feasible() else "no feasible point was found nearby"
                    return self.record.outcome(status, False)
        return self.record.outcome("stopped at the iteration limit", False)

    def _is_optimal(self, tolerance: float) -> bool:
        """Return whether the optimality conditions are satisfied; the sum of the products bounds the error of f."""
        point = self.point
        gap = float(point.products.sum()) / max(1.0, abs(point.value[0]))
        return max(point.error(0.0), gap, self.record.log[-1].violation) <= tolerance

    def _is_feasible(self) -> bool:
        return self.record.log[-1].violation <= self.settings.tolerance

    def _solution(self) -> tuple[Array, Array, Array]:
        point, n = self.point, self.point.n
        z = (point.z[1] - point.z[0])[:n]
        return self.form.full(point.x).copy(), *self.form.multipliers(point.x, point.y, point.u, z)

    def _done(self, words: str) -> Outcome:
        return self.record.outcome(words, True, self._solution())

    def _advance(self) -> bool:
        """Take a step; return whether one was accepted."""
        self.is_flat = self.is_flat and self.point.theta <= self.first  # without curvature, the search may diverge
        try:
            direction = Direction(self.point, self.regularisation, self.spaces, self._curvature)
        except np.linalg.LinAlgError:
            return False
        return self._search(direction, self._choose(direction))

    @property
    def _curvature(self) -> float:
        """Weight of the constraint curvature, which is small far from feasibility, where multipliers are unreliable."""
        count = len(self.point.value[1])
        return min(1.0, CLOSE_RESIDUAL * count / max(self.point.theta, 1e-300)) if count and self.is_flat else 1.0

    @property
    def _gap(self) -> float:
        """Smallest gap of the barrier problem, a fraction of the objective that decreases as the search converges.

        Without it, the adaptive barrier parameter would vanish long before the search is near the optimum, which would
        lead to short steps along bounds.
        """
        return self.share * abs(self.point.value[0])

    def _choose(self, direction: Direction) -> Step:
        """Choose the barrier parameter and return the step."""
        point, count = self.point, max(self.point.products.size, 1)
        progresses = self.past.accepts(point.theta, point.value[0])
        if self.is_free and not progresses:
            self.is_free, self.mu = False, max(0.8 * point.mu, self.least)
            self.filter.clear()
        elif not self.is_free and progresses:
            self.is_free = True
        if self.is_free:
            self.past.add(point.theta, point.value[0])
        settled, factor = SETTLED_DECREASE, GAP_FACTOR
        if direction.is_shifted:
            settled, factor = SHIFTED_SETTLED_DECREASE, SHIFTED_GAP_FACTOR
        while True:
            least = max(self.least, self._gap / count)
            step = self._step(direction, least)
            decrease = abs(float(point.merit_gradient(self.mu) @ step.w))
            if self._curvature < 1.0 or decrease > settled * self._gap or least == self.least:
                return step
            self.share *= factor

    def _step(self, direction: Direction, least: float) -> Step:
        """Return the step, with an adaptive barrier parameter while that makes progress, otherwise a monotone one."""
        point, self.second_order = self.point, None
        if self.is_free:
            self.mu, self.second_order, step = direction.corrected(least, max(least, self.most))
            self.filter.clear()
            return step
        while point.error(self.mu) <= 10 * self.mu and self.mu > least:
            self.mu = max(least, min(0.2 * self.mu, self.mu**1.5))
            self.filter.clear()
        return Step(*(step[0] for step in direction.steps(np.array([self.mu]))))

    def _search(self, direction: Direction, step: Step) -> bool:
        """Shorten the step until the filter accepts it."""
        point, mu = self.point, self.mu
        nearest = max(0.99, 1 - mu)
        primal, dual = (
            float(change[0]) for change in direction.lengths(Step(*(change[None] for change in step)), nearest)
        )
        slope = float(point.merit_gradient(mu) @ step.w)
        here = point.theta, point.merit(mu)
        length = primal
        if np.abs(step.w / (1 + np.abs(point.w))).max(initial=0.0) < STILL_STEP:  # only multipliers change
            self.point, self.stills = point.moved(step, primal, dual, mu), self.stills + 1
            return self.stills < MAX_STILL_STEPS
        self.stills = 0
        while length > MIN_STEP_FRACTION * primal:
            trial = point.moved(step, length, dual, mu)
            if self._accepts(trial, here, slope, length):
                self.point = trial
                self.shorts = self.shorts + 1 if length < SHORT_STEP else 0
                return True
            if length == primal and trial.theta >= here[0] and self._correct(direction, trial, here, slope, length):
                return True
            length /= 2
        return self._take_if_better(step, min(primal, dual))

    def _take_if_better(self, step: Step, length: float) -> bool:
        """Take the full step although the filter rejects it, if it reduces the error of the barrier problem."""
        trial = self.point.moved(step, length, length, self.mu)
        if not np.isfinite(trial.value[0]) or not trial.error(self.mu) <= SOFT_ERROR_FACTOR * self.point.error(self.mu):
            return False
        self.point = trial
        return True

    def _correct(
        self, direction: Direction, trial: Point, here: tuple[float, float], slope: float, length: float
    ) -> bool:
        """Try second-order corrections of a rejected step; return whether one was accepted."""
        point, mu, off, before = self.point, self.mu, self.point.value[1], trial.theta
        for _ in range(MAX_CORRECTIONS):
            off = length * off + trial.value[1]
            several = direction.steps(np.array([mu]), self.second_order, off)
            primal, dual = (float(length[0]) for length in direction.lengths(several, max(0.99, 1 - mu)))
            trial = point.moved(Step(*(change[0] for change in several)), primal, dual, mu)
            if self._accepts(trial, here, slope, length):
                self.point = trial
                return True
            if not trial.theta <= 0.99 * before:
                return False
            length, before = primal, trial.theta
        return False

    def _accepts(self, trial: Point, here: tuple[float, float], slope: float, length: float) -> bool:
        """Return whether a point is accepted; steps that mainly reduce the violation extend the filter."""
        theta, merit = trial.theta, trial.merit(self.mu)
        far = theta > max(MAX_RESIDUAL_GROWTH * here[0], MAX_MEAN_RESIDUAL * len(trial.value[1]))
        if far or not (np.isfinite(merit) and self.filter.accepts(theta, merit)):
            return False
        slack = 1e-13 * abs(here[1])
        descends = slope < 0 and length * (-slope) ** 2.3 > here[0] ** 1.1
        if descends and here[0] <= self.small:
            return merit <= here[1] + 1e-8 * length * slope + slack
        if theta > (1 - 1e-5) * here[0] and merit > here[1] - 1e-8 * here[0] + slack:
            return False
        self.filter.add(*here)
        return True

    def _restart(self) -> bool:
        """Restart from a point inside the bounds with a smaller violation; return whether one was found."""
        form, x = self.form, self.point.x
        if not self._is_feasible():
            restored = restore_feasibility(form, self.record, x, 0.1 * self.point.theta)
            if restored is None:
                return False
            x = restored
        elif self.restarts >= MAX_RESTARTS:
            return False
        self.restarts += 1
        w = self._interior(x, START_PUSH)
        self.mu = max(self.mu, RESTART_MU)
        self.point = self._with_multipliers(w, self.mu / form.gaps(w))
        self.is_free = True
        self.past.clear()
        return True


def _inside(w: Array, lower: Array, upper: Array, push: float) -> Array:
    """Return w moved inside its bounds by ``push`` times their magnitude or, if smaller, times their distance."""
    with np.errstate(invalid="ignore"):
        span = push * (upper - lower)
        low = lower + np.minimum(push * np.maximum(1.0, np.abs(lower)), span)
        high = upper - np.minimum(push * np.maximum(1.0, np.abs(upper)), span)
    low, high = np.where(np.isfinite(lower), low, -np.inf), np.where(np.isfinite(upper), high, np.inf)
    return np.clip(w, low, high)
