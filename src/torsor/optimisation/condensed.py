"""An interior-point method for few variables and many inequalities: each step solves a dense system of the variables.

It is a primal-dual method with a filter line search, second-order corrections and a barrier that is chosen anew in each
iteration (Waechter and Biegler 2006; Nocedal, Waechter and Waltz 2009), on the condensed system of ``newton``.
"""

import numpy as np
from numpy.typing import NDArray

from torsor.optimisation.barrier import Direction, Point, Step
from torsor.optimisation.filters import Filter
from torsor.optimisation.newton import Condensed, Regularisation, Spaces
from torsor.optimisation.outcome import Outcome, Settings, Solvable
from torsor.optimisation.record import Record, searched
from torsor.optimisation.restoration import restored
from torsor.optimisation.standard import Standard

__all__ = ["solve_condensed"]

Array = NDArray[np.float64]

PUSH = 1e-2  # how far from its bounds a start is put, as a share of their size and of their distance
WARM_PUSH = 1e-6
LOOSER = 100.0  # times the tolerance: what is still called optimal, where no better step is found
CORRECTIONS = 4
SHORTEST = 1e-8
FAR, OFF = 10.0, 0.3  # equations may become this many times as wrong in a step, or this wrong on average
SOFT = 0.9999  # what a step that the filter refuses must make of the error, to be taken
RESTARTS, RESTART_MU = 5, 1e-4
STILL, STILLS = 1e-14, 20  # steps of which length are none, and how many of them in a row are taken
SHORT, SHORTS = 1e-2, 4  # steps of which length, and how many of them in a row, are called stuck


def solve_condensed(program: Solvable, start: Array, settings: Settings) -> Outcome:
    """Return what the interior-point method finds from a start (n,).

    Example:
        >>> from torsor.optimisation.formula import Formula
        >>> valley = Formula(lambda x: (x[0] - 2) ** 2 + x[1] ** 2, lambda x: x[0] + x[1], n=2, row_upper=1.0)
        >>> solve_condensed(valley, [0.0, 0.0], Settings()).x.round(6).tolist()
        [1.5, -0.5]
    """
    return searched(program, start, settings, lambda record, x: _Search(record, x).run())


class _Search:
    """One search: where it is, and what it remembers."""

    def __init__(self, record: Record, start: Array):
        self.record, self.settings = record, record.settings
        self.form = Standard(record, start)
        self.regularisation, self.spaces = Regularisation(), Spaces()
        self.point = self._first(start[self.form.free])
        self.least = max(0.1 * self.settings.tolerance / max(self.point.products.size, 1), 1e-14)
        self.most = 1e3 * max(self.point.mu, 1e-8)
        self.mu, self.is_free = self.point.mu, True
        self.shorts = self.stills = self.restarts = 0
        self.bent: tuple[Array, Array] | None = None
        self.filter = Filter(1e-5)
        self.small = 1e-4 * max(1.0, self.point.theta)
        self.past = Filter(1e-5)  # of all iterations: whether the barrier may be chosen freely

    # The start

    def _first(self, x: Array) -> Point:
        form, warm = self.form, self.settings.multipliers
        push = PUSH if warm is None else WARM_PUSH
        w = self._apart(x, push)
        bounds = np.concatenate([form.lower, form.row_lower]), np.concatenate([form.upper, form.row_upper])
        if warm is not None:
            given = self.settings.bound_multipliers
            y, u, z = form.own(warm, np.zeros(form.program.n) if given is None else given)
            both = np.concatenate([z, u])
            z_lower, z_upper = (
                np.where(np.isfinite(side), np.maximum(sign * both, WARM_PUSH), 0.0)
                for side, sign in zip(bounds, (-1, 1), strict=True)
            )
            return Point(form, w, y, u, z_lower, z_upper)
        return self._with_multipliers(w, *(np.isfinite(side).astype(float) for side in bounds))

    def _apart(self, x: Array, push: float) -> Array:
        """Return variables and slacks, off their bounds; nearer to x where numbers are not finite."""
        form = self.form
        inner = _inside(x, form.lower, form.upper, push)
        while not form.is_finite(inner) and push > 1e-12:
            push /= 10
            inner = _inside(x, form.lower, form.upper, push)
        return np.concatenate([inner, _inside(form.value(inner)[2], form.row_lower, form.row_upper, push)])

    def _with_multipliers(self, w: Array, z_lower: Array, z_upper: Array) -> Point:
        """Return a point with the y and u that leave the least of the Lagrangian's gradient."""
        form, n = self.form, len(self.form.free)
        gradient, E, H = form.jacobian(w[:n])
        z = z_upper - z_lower
        by_x, u = gradient + z[:n], z[n:]
        dx, dy = Condensed(np.eye(n) + H.T @ H, E, Regularisation(), self.spaces).solve(
            -(by_x + H.T @ u)[:, None], np.zeros((len(E), 1))
        )
        y, u = dy[:, 0], u + H @ dx[:, 0]
        if max(np.abs(y).max(initial=0.0), np.abs(u).max(initial=0.0)) > 1e3:
            y, u = np.zeros_like(y), np.zeros_like(u)
        return Point(form, w, y, u, z_lower, z_upper)

    # Iterations

    def run(self) -> Outcome:
        """Search until the conditions hold."""
        for _ in range(self.settings.iterations + 1):
            self._note()
            if self._is_optimal(self.settings.tolerance):
                return self._done("optimal")
            if len(self.record.log) > self.settings.iterations:
                break
            if not self._advance() or self.shorts >= SHORTS:
                self.shorts = 0
                if self._is_optimal(LOOSER * self.settings.tolerance):
                    return self._done("optimal to a looser tolerance")
                if not self._restart():
                    better = "no better step was found" if self._holds() else "no feasible motion was found nearby"
                    return self.record.outcome(better, False)
        return self.record.outcome("stopped at the most iterations", False)

    def _is_optimal(self, tolerance: float) -> bool:
        """Whether the conditions hold, and with them f: it is at most the sum of the products from its least."""
        point = self.point
        gap = float(point.products.sum()) / max(1.0, abs(point.value[0]))
        return max(point.error(0.0), gap, self.record.log[-1].violation) <= tolerance

    def _holds(self) -> bool:
        return self.record.log[-1].violation <= self.settings.tolerance

    def _note(self) -> None:
        self.record.note(*self._found())

    def _found(self) -> tuple[Array, Array, Array]:
        point, n = self.point, self.point.n
        z = (point.z_upper - point.z_lower)[:n]
        return self.form.full(point.x).copy(), *self.form.multipliers(point.x, point.y, point.u, z)

    def _done(self, words: str) -> Outcome:
        return self.record.outcome(words, True, self._found())

    def _advance(self) -> bool:
        """Take a step; whether there was one."""
        point = self.point
        try:
            direction = Direction(point, self.regularisation, self.spaces)
        except np.linalg.LinAlgError:
            return False
        return self._search(direction, self._choose(direction))

    def _choose(self, direction: Direction) -> Step:
        """Choose the barrier: freely while that leads on, or else one that is lowered as its problem is solved.

        Return the step with it.
        """
        point = self.point
        leads_on = self.past.takes(point.theta, point.value[0])
        if self.is_free and not leads_on:
            self.is_free, self.mu = False, max(0.8 * point.mu, self.least)
            self.filter.clear()
        elif not self.is_free and leads_on:
            self.is_free = True
        self.bent = None
        if self.is_free:
            self.past.add(point.theta, point.value[0])
            self.mu, self.bent, step = direction.corrected(self.least, self.most)
            self.filter.clear()
            return step
        while point.error(self.mu) <= 10 * self.mu and self.mu > self.least:
            self.mu = max(self.least, min(0.2 * self.mu, self.mu**1.5))
            self.filter.clear()
        return Step(*(each[0] for each in direction.steps(np.array([self.mu]))))

    def _search(self, direction: Direction, step: Step) -> bool:
        """Shorten the step until the filter takes it."""
        point, mu = self.point, self.mu
        nearest = max(0.99, 1 - mu)
        primal, dual = (float(each[0]) for each in direction.lengths(Step(*(each[None] for each in step)), nearest))
        jacobian = float(point.pull(mu) @ step.w)
        here = point.theta, point.merit(mu)
        length = primal
        if np.abs(step.w / (1 + np.abs(point.w))).max(initial=0.0) < STILL:  # multipliers alone are to change yet
            self.point, self.stills = point.moved(step, primal, dual, mu), self.stills + 1
            return self.stills < STILLS
        self.stills = 0
        while length > SHORTEST * primal:
            trial = point.moved(step, length, dual, mu)
            if self._takes(trial, here, jacobian, length):
                self.point = trial
                self.shorts = self.shorts + 1 if length < SHORT else 0
                return True
            if (
                length == primal
                and trial.theta >= here[0]
                and self._corrected(direction, trial, here, jacobian, length)
            ):
                return True
            length /= 2
        return self._softly(step, min(primal, dual))

    def _softly(self, step: Step, length: float) -> bool:
        """Take the whole step, though the filter does not, where the conditions of the barrier problem gain by it."""
        trial = self.point.moved(step, length, length, self.mu)
        if not np.isfinite(trial.value[0]) or not trial.error(self.mu) <= SOFT * self.point.error(self.mu):
            return False
        self.point = trial
        return True

    def _corrected(
        self, direction: Direction, trial: Point, here: tuple[float, float], jacobian: float, length: float
    ) -> bool:
        """Try steps that are bent along curved equations."""
        point, mu, off, before = self.point, self.mu, self.point.value[1], trial.theta
        for _ in range(CORRECTIONS):
            off = length * off + trial.value[1]
            several = direction.steps(np.array([mu]), self.bent, off)
            primal, dual = (float(each[0]) for each in direction.lengths(several, max(0.99, 1 - mu)))
            trial = point.moved(Step(*(each[0] for each in several)), primal, dual, mu)
            if self._takes(trial, here, jacobian, length):
                self.point = trial
                return True
            if not trial.theta <= 0.99 * before:
                return False
            length, before = primal, trial.theta
        return False

    def _takes(self, trial: Point, here: tuple[float, float], jacobian: float, length: float) -> bool:
        """Whether a point is taken; the filter grows where f is not what led there."""
        theta, merit = trial.theta, trial.merit(self.mu)
        far = theta > max(FAR * here[0], OFF * len(trial.value[1]))
        if far or not (np.isfinite(merit) and self.filter.takes(theta, merit)):
            return False
        slack = 1e-13 * abs(here[1])
        leads_down = jacobian < 0 and length * (-jacobian) ** 2.3 > here[0] ** 1.1
        if leads_down and here[0] <= self.small:
            return merit <= here[1] + 1e-8 * length * jacobian + slack
        if theta > (1 - 1e-5) * here[0] and merit > here[1] - 1e-8 * here[0] + slack:
            return False
        self.filter.add(*here)
        return True

    def _restart(self) -> bool:
        """Begin again where less is violated, away from bounds; whether there is such a place."""
        form, x = self.form, self.point.x
        if not self._holds():
            found = restored(form, self.record, x, 0.1 * self.point.theta, self._note_at)
            if found is None:
                return False
            x = found
        elif self.restarts >= RESTARTS:
            return False
        self.restarts += 1
        w = self._apart(x, PUSH)
        self.mu = max(self.mu, RESTART_MU)
        self.point = self._with_multipliers(w, *(self.mu / gap for gap in (w - self.point.lower, self.point.upper - w)))
        self.is_free = True
        self.past.clear()
        return True

    def _note_at(self, x: Array) -> None:
        zero = np.zeros(self.form.program.m), np.zeros(self.form.program.n)
        self.record.note(self.form.full(x).copy(), *zero)


def _inside(w: Array, lower: Array, upper: Array, push: float) -> Array:
    """Return w moved off its bounds by a share ``push`` of their size, and of the distance between them."""
    with np.errstate(invalid="ignore"):
        span = push * (upper - lower)
        low = lower + np.minimum(push * np.maximum(1.0, np.abs(lower)), span)
        high = upper - np.minimum(push * np.maximum(1.0, np.abs(upper)), span)
    low, high = np.where(np.isfinite(lower), low, -np.inf), np.where(np.isfinite(upper), high, np.inf)
    return np.clip(w, low, high)
