"""Sequential quadratic programming: each step solves a quadratic model with linear rows, by a solver of CasADi.

The model of a step d, with the Hessian H of the Lagrangian made convex, is

    1/2 d^T H d + gradient . d + weight t  least,  with rows + J d between their bounds widened by t times what they
    violate now, 0 <= t <= 1

so that it always has a solution: d = 0, t = 1 (Powell 1978). Steps are shortened until f + penalty x the sum of
violations falls, and the next ones go no further than where that was.
"""

from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from torsor.optimisation.outcome import Outcome, Settings, Solvable
from torsor.optimisation.record import Record, searched

__all__ = ["solve_sqp"]

Array = NDArray[np.float64]

# PIQP, a proximal interior-point method. Measured against it: qpOASES is as good but writes to the screen, qrqp takes
# hundreds of times as long, and DAQP and ProxQP end with steps that are not precise enough.
QP = "piqp"
OPTIONS: dict[str, Any] = {
    "error_on_fail": False,
    "print_time": False,
    "piqp": {"eps_abs": 1e-10, "eps_rel": 1e-11, "max_iter": 250},
}
FLATTEST = 1e-8  # of the largest: eigenvalues of the convex Hessian are at least this
SHORTEST = 1e-6  # share of a step that is tried last
RELAXED, MOST_RELAXED = 1e3, 1e8  # the weight of t: at first, and what it may grow to where rows stay widened
WIDE = 1e-3  # t from which on rows count as widened
FINEST = 1e-8  # tolerance: models are not solved more precisely
STILL, STILLS = 1e-14, 3  # changes of x that are none, and how many steps of these are taken
SHORT = 0.2  # steps that are shortened to less show how far the model is good for
GROWTH, LEAST = 3.0, 1e-6  # how the most that variables may change grows, and the least it is
LOOSER = 100.0  # times the tolerance: what is still called optimal, where no better step is found
BENDS = (0.0, 1e-4, 1e-2, 1.0, 100.0)  # what is added to the Hessian's diagonal, until a step leads on


def solve_sqp(program: Solvable, start: Array, settings: Settings) -> Outcome:
    """Return what sequential quadratic programming finds from a start (n,); tolerances below 1e-8 count as that.

    Example:
        >>> from torsor.optimisation.formula import Formula
        >>> valley = Formula(lambda x: (x[0] - 2) ** 2 + x[1] ** 2, lambda x: x[0] + x[1], n=2, row_upper=1.0)
        >>> solve_sqp(valley, [0.0, 0.0], Settings()).x.round(6).tolist()
        [1.5, -0.5]
    """
    return searched(program, start, settings, lambda record, x: _Search(record, x).run())


class _Step(NamedTuple):
    """The step (n,), how much the rows were widened, and the multipliers of rows and bounds."""

    x: Array
    widened: float
    multipliers: Array
    bound_multipliers: Array


class _Model:
    """The quadratic model, solved for one point after another."""

    def __init__(self, program: Solvable):
        self.program, n = program, program.n
        self._kept = np.isfinite(program.row_lower) | np.isfinite(program.row_upper)
        rows, columns = program.structure
        self._entries, m = self._kept[rows], int(self._kept.sum())
        places = np.cumsum(self._kept) - 1
        pattern = ca.Sparsity.triplet(m, n, places[rows[self._entries]].tolist(), columns[self._entries].tolist())
        self._rows = ca.horzcat(pattern, ca.Sparsity.dense(m, 1))
        self._hessian = ca.diagcat(ca.Sparsity.dense(n, n), ca.Sparsity.dense(1, 1))
        self._qp = ca.conic("model", QP, {"h": self._hessian, "a": self._rows}, OPTIONS)
        self._given: dict[str, Any] = {}

    def at(
        self, x: Array, hessian: Array, gradient: Array, entries: Array, rows: Array, *, weight: float, radius: float
    ) -> None:
        """Set the point: derivatives there, the rows (m,), the weight of t, and the most that variables may change."""
        program = self.program
        self._low, self._high = program.lower - x, program.upper - x
        self._radius = radius
        widening = np.maximum(program.row_lower - rows, 0.0) - np.maximum(rows - program.row_upper, 0.0)
        self._given = {
            "h": ca.DM(self._hessian, [*hessian.T.ravel(), FLATTEST]),
            "a": ca.DM(self._rows, [*entries[self._entries], *widening[self._kept]]),
            "g": np.append(gradient, weight),
            "lbx": np.append(np.maximum(self._low, -radius), 0.0),
            "ubx": np.append(np.minimum(self._high, radius), 1.0),
        }

    def step(self, rows: Array) -> _Step | None:
        """Return the step, with these for the rows at the point; None where there is none."""
        sides = {"lba": self.program.row_lower - rows, "uba": self.program.row_upper - rows}
        bounds = {name: side[self._kept] for name, side in sides.items()}
        found = self._qp(**self._given, **bounds)
        x, multipliers, held = (np.asarray(found[key].full()).ravel() for key in ("x", "lam_a", "lam_x"))
        if not (self._qp.stats()["success"] and np.isfinite([*x, *multipliers, *held]).all()):
            return None
        multipliers = _spread(multipliers, self._kept)
        own = np.where(held[:-1] > 0, self._high, -self._low) <= self._radius  # the radius is no bound of the program
        return _Step(x[:-1], float(np.clip(x[-1], 0.0, 1.0)), multipliers, np.where(own, held[:-1], 0.0))


def _spread(values: Array, kept: NDArray[np.bool_]) -> Array:
    """Return values at the places that are kept, and zero elsewhere."""
    found = np.zeros(len(kept))
    found[kept] = values
    return found


class _Search:
    """One search: where it is, with which multipliers and penalty."""

    def __init__(self, record: Record, start: Array):
        self.record, self.program, self.settings = record, record.program, record.settings
        self.evaluations, self.x, self.model = record.evaluations, start.copy(), _Model(record.program)
        n, m, given = self.program.n, self.program.m, self.settings
        self._dense = np.zeros((m, n))
        self.multipliers = np.zeros(m) if given.multipliers is None else given.multipliers.copy()
        self.bound_multipliers = np.zeros(n) if given.bound_multipliers is None else given.bound_multipliers.copy()
        self.penalty, self.weight, self._still = 1.0, RELAXED, 0
        self.radius = np.inf
        self.tolerance = max(self.settings.tolerance, FINEST)

    # The functions at x

    def _off(self, x: Array) -> Array:
        """Return what each row violates."""
        rows = self.evaluations.value(x)[1]
        found: Array = np.maximum(np.maximum(self.program.row_lower - rows, rows - self.program.row_upper), 0.0)
        return found

    def _merit(self, x: Array) -> float:
        return self.evaluations.value(x)[0] + self.penalty * float(self._off(x).sum())

    def _jacobian(self, x: Array) -> Array:
        self._dense[self.program.structure] = self.evaluations.jacobian(x)[1]
        return self._dense

    def _hessian(self) -> Array:
        """Return the Hessian of the Lagrangian, its eigenvalues taken positive."""
        n = self.program.n
        H = self.evaluations.hessian(self.x, self.multipliers, 1.0)
        if len(H) < n:
            H = np.pad(H, (0, n - len(H)))
        values, vectors = np.linalg.eigh((H + H.T) / 2)
        least = FLATTEST * max(float(np.abs(values).max(initial=0.0)), 1.0)
        found: Array = (vectors * np.maximum(np.abs(values), least)) @ vectors.T
        return found

    def _is_optimal(self, tolerance: float) -> bool:
        """Whether the conditions hold, and with them f: it is at most the sum of the products from its least."""
        program, x, y, z = self.program, self.x, self.multipliers, self.bound_multipliers
        f, rows = self.evaluations.value(x)
        pull = self.evaluations.jacobian(x)[0] + y @ self._jacobian(x) + z
        average = float(np.abs(y).sum() + np.abs(z).sum()) / max(len(y) + len(z), 1)
        at, force = np.concatenate([rows, x]), np.concatenate([y, z])
        lower, upper = np.append(program.row_lower, program.lower), np.append(program.row_upper, program.upper)
        held = force != 0
        products = np.abs(force[held] * np.where(force > 0, upper - at, at - lower)[held])
        most = max(
            float(np.abs(pull).max(initial=0.0)) / max(1.0, average / 100),
            float(products.sum()) / max(1.0, abs(f)),
            self.record.log[-1].violation,
        )
        return most <= tolerance

    # Iterations

    def run(self) -> Outcome:
        """Search until the conditions hold."""
        while True:
            self.record.note(self.x, self.multipliers, self.bound_multipliers)
            if self._is_optimal(self.tolerance):
                return self._done("optimal")
            if len(self.record.log) > self.settings.iterations:
                return self.record.outcome("stopped at the most iterations", False)
            if not self._advance():
                if self._is_optimal(LOOSER * self.tolerance):
                    return self._done("optimal to a looser tolerance")
                holds = self.record.log[-1].violation <= self.settings.tolerance
                words = "no better step was found" if holds else "no feasible motion was found nearby"
                return self.record.outcome(words, False)

    def _done(self, words: str) -> Outcome:
        return self.record.outcome(words, True, (self.x, self.multipliers, self.bound_multipliers))

    def _advance(self) -> bool:
        """Take a step, of a model that is bent more and more until there is one; whether there was."""
        rows, (gradient, entries) = self.evaluations.value(self.x)[1], self.evaluations.jacobian(self.x)
        H = self._hessian()
        for hessian in BENDS:
            self.model.at(
                self.x, H + hessian * np.eye(len(H)), gradient, entries, rows, weight=self.weight, radius=self.radius
            )
            step = self.model.step(rows)
            if step is not None and self._search(step):
                return True
        return False

    def _search(self, step: _Step) -> bool:
        """Shorten the step until the merit falls, and take it."""
        x, off = self.x, float(self._off(self.x).sum())
        if step.widened > WIDE:
            self.weight = min(10 * self.weight, MOST_RELAXED)
        self.penalty = max(self.penalty, 1.5 * float(np.abs(step.multipliers).max(initial=0.0)))
        jacobian = float(self.evaluations.jacobian(x)[0] @ step.x) - self.penalty * (1 - step.widened) * off
        here, length = self._merit(x), 1.0
        slack = 1e-13 * max(1.0, abs(here))
        if jacobian > slack:
            return False
        while length > SHORTEST:
            trial = np.clip(x + length * step.x, self.program.lower, self.program.upper)
            if self.evaluations.is_finite(trial):
                if self._merit(trial) <= here + 1e-4 * length * jacobian + slack:
                    return self._take(trial, step, length)
                if length == 1.0 and self._bent(trial, step, here + 1e-4 * jacobian + slack):
                    return True
            length /= 2
        return False

    def _bent(self, trial: Array, step: _Step, most: float) -> bool:
        """Try a step that is bent along curved rows; whether it was taken."""
        found = self.evaluations.value(trial)[1]
        better = self.model.step(found - self._jacobian(self.x) @ step.x)
        if better is None:
            return False
        x = np.clip(self.x + better.x, self.program.lower, self.program.upper)
        return self.evaluations.is_finite(x) and self._merit(x) <= most and self._take(x, better, 1.0)

    def _take(self, x: Array, step: _Step, length: float) -> bool:
        change = float(np.abs(x - self.x).max(initial=0.0))
        if length < SHORT:
            self.radius = max(GROWTH * change, LEAST)
        elif change > self.radius / GROWTH:
            self.radius *= GROWTH
        moved = change > STILL * max(1.0, float(np.abs(x).max(initial=0.0)))
        self._still = 0 if moved else self._still + 1
        self.x = x
        self.multipliers = self.multipliers + length * (step.multipliers - self.multipliers)
        self.bound_multipliers = self.bound_multipliers + length * (step.bound_multipliers - self.bound_multipliers)
        return self._still < STILLS  # multipliers may still become better where x does not
