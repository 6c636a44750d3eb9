"""Sequential quadratic programming: each step solves a quadratic model with linear rows, by a solver of CasADi.

The model of a step d, with the Hessian H of the Lagrangian made convex, is

    1/2 d^T H d + gradient . d + weight t  least,  with rows + J d between their bounds widened by t times what they
    violate now, 0 <= t <= 1

so that it always has a solution: d = 0, t = 1 (Powell 1978). Steps are shortened until f + penalty x the sum of
violations falls.
"""

from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from torsor.motion.solvers.outcome import Outcome, Settings, Solvable
from torsor.motion.solvers.record import Record, searched

__all__ = ["solve_sqp"]

Array = NDArray[np.float64]

OPTIONS: dict[str, dict[str, Any]] = {
    "proxqp": {"proxqp": {"eps_abs": 1e-9, "max_iter": 2000, "backend": "dense"}},
    "piqp": {"piqp": {"eps_abs": 1e-10, "eps_rel": 1e-11, "max_iter": 250}},
    "daqp": {},
    "qpoases": {"printLevel": "none", "sparse": False},
    "qrqp": {"print_iter": False, "print_header": False, "print_info": False},
    "osqp": {"osqp": {"eps_abs": 1e-8, "eps_rel": 1e-8, "max_iter": 20000, "verbose": False}},
}
QP = "piqp"
FLATTEST = 1e-8  # of the largest: eigenvalues of the convex Hessian are at least this
SHORTEST = 1e-6
RELAXED = 1e4  # weight of t, times the largest multiplier


def solve_sqp(program: Solvable, start: Array, settings: Settings, qp: str = QP) -> Outcome:
    """Return what sequential quadratic programming finds from a start (n,); ``qp`` is the solver of the models.

    Example:
        >>> from torsor.motion.solvers.formula import Formula
        >>> valley = Formula(lambda x: (x[0] - 2) ** 2 + x[1] ** 2, lambda x: x[0] + x[1], n=2, row_upper=1.0)
        >>> solve_sqp(valley, [0.0, 0.0], Settings()).x.round(6).tolist()
        [1.5, -0.5]
    """
    return searched(program, start, settings, lambda record, x: _Search(record, x, qp).run())


class _Model(NamedTuple):
    """The step (n,), how much the rows were widened, and the multipliers of rows and bounds."""

    step: Array
    widened: float
    multipliers: Array
    bound_multipliers: Array


class _Search:
    def __init__(self, record: Record, start: Array, qp: str):
        self.record, self.program, self.settings = record, record.program, record.settings
        self.evaluations, self.x = record.evaluations, start.copy()
        n, m = self.program.n, self.program.m
        rows, columns = self.program.structure
        self._sort = np.lexsort((rows, columns))
        pattern = ca.Sparsity.triplet(m, n, rows.tolist(), columns.tolist())
        self._pattern = ca.horzcat(pattern, ca.Sparsity.dense(m, 1))
        self._dense = np.zeros((m, n))
        self.multipliers = np.zeros(m) if self.settings.multipliers is None else self.settings.multipliers.copy()
        given = self.settings.bound_multipliers
        self.bound_multipliers = np.zeros(n) if given is None else given.copy()
        hessian = ca.diagcat(ca.Sparsity.dense(n, n), ca.Sparsity.dense(1, 1))
        options = {"error_on_fail": False, "print_time": False, **OPTIONS[qp]}
        self._qp = ca.conic("model", qp, {"h": hessian, "a": self._pattern}, options)
        self.penalty = 1.0

    # The functions at x

    def _off(self, x: Array) -> Array:
        """Return what each row violates."""
        rows = self.evaluations.value(x)[1]
        found: Array = np.maximum(np.maximum(self.program.row_lower - rows, rows - self.program.row_upper), 0.0)
        return found

    def _merit(self, x: Array) -> float:
        return self.evaluations.value(x)[0] + self.penalty * float(self._off(x).sum())

    def _is_optimal(self, tolerance: float) -> bool:
        """Whether the conditions hold; f is at most the sum of the products from its least."""
        program, x, y, z = self.program, self.x, self.multipliers, self.bound_multipliers
        f, rows = self.evaluations.value(x)
        gradient, entries = self.evaluations.slope(x)
        self._dense[program.structure] = entries
        pull = gradient + y @ self._dense + z
        size = max(1.0, float(np.abs(y).sum() + np.abs(z).sum()) / max(len(y) + len(z), 1) / 100)
        gaps = 0.0
        for at, lower, upper, force in ((rows, program.row_lower, program.row_upper, y), (x, program.lower, program.upper, z)):
            away = np.where(force > 0, upper - at, at - lower)
            gaps += float(np.abs(force[force != 0] * away[force != 0]).sum())
        most = max(float(np.abs(pull).max(initial=0.0)) / size, gaps / max(1.0, abs(f)))
        return max(most, self.record.log[-1].violation) <= tolerance

    # Iterations

    def run(self) -> Outcome:
        """Search until the conditions hold."""
        while True:
            self.record.note(self.x, self.multipliers, self.bound_multipliers)
            if self._is_optimal(self.settings.tolerance):
                return self._done("optimal")
            if len(self.record.log) > self.settings.iterations:
                return self.record.outcome("stopped at the most iterations", False)
            model = self._model()
            if model is None or not self._search(model):
                if self._is_optimal(100 * self.settings.tolerance):
                    return self._done("optimal to a looser tolerance")
                holds = self.record.log[-1].violation <= self.settings.tolerance
                words = "no better step was found" if holds else "no feasible motion was found nearby"
                return self.record.outcome(words, False)

    def _done(self, words: str) -> Outcome:
        return self.record.outcome(words, True, (self.x, self.multipliers, self.bound_multipliers))

    def _hessian(self) -> Array:
        n = self.program.n
        H = self.evaluations.bend(self.x, self.multipliers, 1.0)
        if len(H) < n:
            H = np.pad(H, (0, n - len(H)))
        values, vectors = np.linalg.eigh((H + H.T) / 2)
        least = FLATTEST * max(float(np.abs(values).max(initial=0.0)), 1.0)
        found: Array = (vectors * np.maximum(np.abs(values), least)) @ vectors.T
        return found

    def _model(self, extra: Array | None = None) -> _Model | None:
        program, x, n = self.program, self.x, self.program.n
        if extra is None:
            rows, off = self.evaluations.value(x)[1], self._off(x)
            gradient, entries = self.evaluations.slope(x)
            weight = RELAXED * max(1.0, float(np.abs(self.multipliers).max(initial=0.0)))
            H = self._hessian()
            self._given = {
                "h": ca.DM(ca.diagcat(ca.Sparsity.dense(n, n), ca.Sparsity.dense(1, 1)), [*H.T.ravel(), 1e-8]),
                "g": np.append(gradient, weight),
                "lbx": np.append(program.lower - x, 0.0),
                "ubx": np.append(program.upper - x, 1.0),
            }
            up, down = np.maximum(rows - program.row_upper, 0.0), np.maximum(program.row_lower - rows, 0.0)
            self._given["a"] = ca.DM(self._pattern, [*entries, *(down - up)])
            self._rows, self._model_off = rows, off
        rows = self._rows if extra is None else extra
        found = self._qp(**self._given, lba=program.row_lower - rows, uba=program.row_upper - rows)
        step, multipliers, bounds = (np.asarray(found[key].full()).ravel() for key in ("x", "lam_a", "lam_x"))
        if not (np.isfinite(step).all() and np.isfinite(multipliers).all()):
            return None
        self._curve = H if extra is None else self._curve
        return _Model(step[:n], float(np.clip(step[n], 0.0, 1.0)), multipliers, bounds[:n])

    def _search(self, model: _Model) -> bool:
        """Shorten the step until the merit falls."""
        x, step = self.x, model.step
        gradient = self.evaluations.slope(x)[0]
        off = float(self._off(x).sum())
        self.penalty = max(self.penalty, 1.5 * float(np.abs(model.multipliers).max(initial=0.0))) if model.widened < 1e-6 else self.penalty * 2
        slope = float(gradient @ step) - self.penalty * (1 - model.widened) * off
        here, length = self._merit(x), 1.0
        if slope > -1e-14 * max(1.0, abs(here)):
            self.multipliers, self.bound_multipliers = model.multipliers, model.bound_multipliers
            return float(np.abs(step).max(initial=0.0)) > 1e-12
        while length > SHORTEST:
            trial = np.clip(x + length * step, self.program.lower, self.program.upper)
            if self.evaluations.is_finite(trial):
                if self._merit(trial) <= here + 1e-4 * length * slope + 1e-14 * abs(here):
                    return self._take(trial, model, length)
                if length == 1.0:
                    rows = self.evaluations.value(trial)[1]
                    J = self._jacobian(x)
                    better = self._model(rows - J @ step)
                    if better is not None:
                        bent = np.clip(x + better.step, self.program.lower, self.program.upper)
                        if self.evaluations.is_finite(bent) and self._merit(bent) <= here + 1e-4 * slope:
                            return self._take(bent, better, 1.0)
            length /= 2
        return False

    def _jacobian(self, x: Array) -> Array:
        self._dense[self.program.structure] = self.evaluations.slope(x)[1]
        return self._dense

    def _take(self, x: Array, model: _Model, length: float) -> bool:
        self.x = x
        self.multipliers = self.multipliers + length * (model.multipliers - self.multipliers)
        self.bound_multipliers = self.bound_multipliers + length * (model.bound_multipliers - self.bound_multipliers)
        return True
