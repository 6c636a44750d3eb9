"""An interior-point method for few variables and many inequalities: each step solves a dense system in the variables.

It is a primal-dual method with a filter line search, second-order corrections and an adaptive barrier parameter
(Waechter and Biegler 2006; Nocedal, Waechter and Waltz 2009), on the condensed system of ``newton``.
"""

import numpy as np

from torsor.base.arrays import Array
from torsor.optimisation.barrier import Direction, Point, Step
from torsor.optimisation.newton import Condensed, Regularisation, Spaces
from torsor.optimisation.outcome import Outcome, Settings
from torsor.optimisation.program import NonlinearProgram
from torsor.optimisation.record import Record, run_solver
from torsor.optimisation.standard import SIGNS, StandardForm, restore_feasibility

PUSH = 1e-2  # distance of the start from its bounds, relative to their size and to their distance
WARM_PUSH = 1e-6
LOOSER = 100.0  # factor on the tolerance that is accepted where no better step is found
CORRECTIONS = 4  # second-order corrections of a step
SHORTEST = 1e-8  # fraction of the largest step at which the line search gives up
FAR, OFF = 10.0, 0.3  # largest growth of the residual in a step, or largest mean residual
SOFT = 0.9999  # factor of the error below which a step is accepted although the filter rejects it
RESTARTS, RESTART_MU = 5, 1e-4
STILL, STILLS = 1e-14, 20  # relative step that counts as 0, and how many of them in a row are accepted
SHARE, LESS = 0.25, 0.1  # first gap of the barrier problem relative to the objective, and the factor that shrinks it
SETTLED = 0.3  # predicted decrease, relative to the gap, below which the gap shrinks
CLOSE = 3e-3  # mean residual below which the gap shrinks, and all curvature of the constraints counts
SHORT, SHORTS = 1e-2, 4  # step length that counts as short, and how many of them in a row count as stuck


def solve_condensed(program: NonlinearProgram, start: Array, settings: Settings) -> Outcome:
    """Solve a program from a start (n,) by the interior-point method.

    Example:
        >>> from torsor.optimisation.formula import Formula
        >>> valley = Formula(lambda x: (x[0] - 2) ** 2 + x[1] ** 2, lambda x: x[0] + x[1], n=2, row_upper=1.0)
        >>> solve_condensed(valley, [0.0, 0.0], Settings()).x.round(6).tolist()
        [1.5, -0.5]
    """
    return run_solver(program, start, settings, lambda record, x: _Search(record, x).run())


class Filter:
    """Earlier pairs (violation, objective): a new pair is rejected if one of them is at least as good in both.

    ``margin`` is the fraction of the violation by which a new pair has to be better (Fletcher and Leyffer 2002).

    Example:
        >>> earlier = Filter(margin=1e-5)
        >>> earlier.add(1.0, 5.0)
        >>> earlier.accepts(0.5, 9.0), earlier.accepts(1.0, 5.0), earlier.accepts(2.0, 4.0)
        (True, False, True)
    """

    def __init__(self, margin: float):
        self.margin = margin
        self._earlier = list[tuple[float, float]]()

    def clear(self) -> None:
        """Remove all pairs."""
        self._earlier.clear()

    def add(self, violation: float, objective: float) -> None:
        """Add a pair."""
        least = self.margin * violation
        pair = violation - least, objective - least
        self._earlier = [each for each in self._earlier if each[0] < pair[0] or each[1] < pair[1]] + [pair]

    def accepts(self, violation: float, objective: float) -> bool:
        """Whether a pair is better than each earlier one in violation or objective."""
        return all(violation < v or objective < f for v, f in self._earlier)


class _Search:
    """The state of the solver."""

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
        self.share = min(SHARE, self.point.mu * self.point.products.size / size)
        self.second_order: Array | None = None
        self.filter = Filter(1e-5)
        self.small = 1e-4 * max(1.0, self.point.theta)
        self.past = Filter(1e-5)  # of all iterations: decides between the adaptive and the monotone barrier

    # The start

    def _first(self, x: Array) -> Point:
        form, warm = self.form, self.settings.multipliers
        push = PUSH if warm is None else WARM_PUSH
        w = self._interior(x, push)
        if warm is not None:
            given = self.settings.bound_multipliers
            y, u, z = form.own(warm, np.zeros(form.program.n) if given is None else given)
            both = np.concatenate([z, u])
            pairs = np.where(np.isfinite(form.w_bounds), np.maximum(-SIGNS * both, WARM_PUSH), 0.0)
            return Point(form, w, y, u, pairs)
        return self._with_multipliers(w, np.isfinite(form.w_bounds).astype(float))

    def _interior(self, x: Array, push: float) -> Array:
        """Return variables and slacks inside their bounds; closer to x where values are not finite."""
        form = self.form
        inner = _inside(x, form.lower, form.upper, push)
        while not form.is_finite(inner) and push > 1e-12:
            push /= 10
            inner = _inside(x, form.lower, form.upper, push)
        return np.concatenate([inner, _inside(form.value(inner)[2], form.row_lower, form.row_upper, push)])

    def _with_multipliers(self, w: Array, pairs: Array) -> Point:
        """Return a point with least-squares estimates of the multipliers y and u, for those of the bounds (2, w)."""
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

    # Iterations

    def run(self) -> Outcome:
        """Iterate until the optimality conditions hold."""
        for _ in range(self.settings.iterations + 1):
            self.record.note(*self._solution())
            if self._is_optimal(self.settings.tolerance):
                return self._done("optimal")
            if len(self.record.log) > self.settings.iterations:
                break
            if not self._advance() or self.shorts >= SHORTS:
                self.shorts = 0
                if self._is_optimal(LOOSER * self.settings.tolerance):
                    return self._done("optimal to a looser tolerance")
                if not self._restart():
                    status = "no better step was found" if self._is_feasible() else "no feasible point was found nearby"
                    return self.record.outcome(status, False)
        return self.record.outcome("stopped at the iteration limit", False)

    def _is_optimal(self, tolerance: float) -> bool:
        """Whether the optimality conditions hold; the sum of the products bounds the error of f."""
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
        self.is_flat = self.is_flat and self.point.theta <= self.first  # a search without curvature may diverge
        try:
            direction = Direction(self.point, self.regularisation, self.spaces, self._curvature)
        except np.linalg.LinAlgError:
            return False
        return self._search(direction, self._choose(direction))

    @property
    def _curvature(self) -> float:
        """The weight of the constraints' curvature: little far from feasibility, where multipliers mislead."""
        count = len(self.point.value[1])
        return min(1.0, CLOSE * count / max(self.point.theta, 1e-300)) if count and self.is_flat else 1.0

    @property
    def _gap(self) -> float:
        """The least gap of the barrier problem, a share of the objective that shrinks as the search settles.

        Without it the adaptive barrier parameter vanishes long before the search is near the optimum, and short steps
        along bounds follow.
        """
        return self.share * abs(self.point.value[0])

    def _choose(self, direction: Direction) -> Step:
        """Choose the barrier parameter; return the step."""
        point, count = self.point, max(self.point.products.size, 1)
        progresses = self.past.accepts(point.theta, point.value[0])
        if self.is_free and not progresses:
            self.is_free, self.mu = False, max(0.8 * point.mu, self.least)
            self.filter.clear()
        elif not self.is_free and progresses:
            self.is_free = True
        if self.is_free:
            self.past.add(point.theta, point.value[0])
        while True:
            least = max(self.least, self._gap / count)
            step = self._step(direction, least)
            decrease = abs(float(point.merit_gradient(self.mu) @ step.w))
            if self._curvature < 1.0 or decrease > SETTLED * self._gap or least == self.least:
                return step
            self.share *= LESS

    def _step(self, direction: Direction, least: float) -> Step:
        """Return the step; its barrier parameter is adaptive while that makes progress, else monotone."""
        point, self.second_order = self.point, None
        if self.is_free:
            self.mu, self.second_order, step = direction.corrected(least, max(least, self.most))
            self.filter.clear()
            return step
        while point.error(self.mu) <= 10 * self.mu and self.mu > least:
            self.mu = max(least, min(0.2 * self.mu, self.mu**1.5))
            self.filter.clear()
        return Step(*(each[0] for each in direction.steps(np.array([self.mu]))))

    def _search(self, direction: Direction, step: Step) -> bool:
        """Shorten the step until the filter accepts it."""
        point, mu = self.point, self.mu
        nearest = max(0.99, 1 - mu)
        primal, dual = (float(each[0]) for each in direction.lengths(Step(*(each[None] for each in step)), nearest))
        slope = float(point.merit_gradient(mu) @ step.w)
        here = point.theta, point.merit(mu)
        length = primal
        if np.abs(step.w / (1 + np.abs(point.w))).max(initial=0.0) < STILL:  # only multipliers still change
            self.point, self.stills = point.moved(step, primal, dual, mu), self.stills + 1
            return self.stills < STILLS
        self.stills = 0
        while length > SHORTEST * primal:
            trial = point.moved(step, length, dual, mu)
            if self._accepts(trial, here, slope, length):
                self.point = trial
                self.shorts = self.shorts + 1 if length < SHORT else 0
                return True
            if length == primal and trial.theta >= here[0] and self._correct(direction, trial, here, slope, length):
                return True
            length /= 2
        return self._take_if_better(step, min(primal, dual))

    def _take_if_better(self, step: Step, length: float) -> bool:
        """Take the whole step although the filter rejects it, if it reduces the error of the barrier problem."""
        trial = self.point.moved(step, length, length, self.mu)
        if not np.isfinite(trial.value[0]) or not trial.error(self.mu) <= SOFT * self.point.error(self.mu):
            return False
        self.point = trial
        return True

    def _correct(
        self, direction: Direction, trial: Point, here: tuple[float, float], slope: float, length: float
    ) -> bool:
        """Try second-order corrections."""
        point, mu, off, before = self.point, self.mu, self.point.value[1], trial.theta
        for _ in range(CORRECTIONS):
            off = length * off + trial.value[1]
            several = direction.steps(np.array([mu]), self.second_order, off)
            primal, dual = (float(each[0]) for each in direction.lengths(several, max(0.99, 1 - mu)))
            trial = point.moved(Step(*(each[0] for each in several)), primal, dual, mu)
            if self._accepts(trial, here, slope, length):
                self.point = trial
                return True
            if not trial.theta <= 0.99 * before:
                return False
            length, before = primal, trial.theta
        return False

    def _accepts(self, trial: Point, here: tuple[float, float], slope: float, length: float) -> bool:
        """Whether a point is accepted; the filter is extended by steps that mainly reduce the violation."""
        theta, merit = trial.theta, trial.merit(self.mu)
        far = theta > max(FAR * here[0], OFF * len(trial.value[1]))
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
        """Restart from a point with less violation, inside the bounds; return whether there is one."""
        form, x = self.form, self.point.x
        if not self._is_feasible():
            found = restore_feasibility(form, self.record, x, 0.1 * self.point.theta)
            if found is None:
                return False
            x = found
        elif self.restarts >= RESTARTS:
            return False
        self.restarts += 1
        w = self._interior(x, PUSH)
        self.mu = max(self.mu, RESTART_MU)
        self.point = self._with_multipliers(w, self.mu / form.gaps(w))
        self.is_free = True
        self.past.clear()
        return True


def _inside(w: Array, lower: Array, upper: Array, push: float) -> Array:
    """Return w moved inside its bounds by ``push`` times their size, or times their distance if that is less."""
    with np.errstate(invalid="ignore"):
        span = push * (upper - lower)
        low = lower + np.minimum(push * np.maximum(1.0, np.abs(lower)), span)
        high = upper - np.minimum(push * np.maximum(1.0, np.abs(upper)), span)
    low, high = np.where(np.isfinite(lower), low, -np.inf), np.where(np.isfinite(upper), high, np.inf)
    return np.clip(w, low, high)
