"""A scaled program for solvers: an objective that is not tiny, and no bounds on rows that are constant.

- Tolerances are absolute, so an objective of 1e-9 would be optimal at any start. An objective that is smaller than 1
  near the start, together with its gradient, is scaled up to 1; solvers scale large ones themselves.
- Some rows are at a bound and depend on no variable, as the first position of a joint that begins at its limit.
  Interior-point methods would search for a point off that bound, which does not exist, and return a meaningless
  multiplier.
"""

from dataclasses import replace

import numpy as np

from torsor.base.arrays import Array, Flags
from torsor.optimisation.outcome import Settings
from torsor.optimisation.program import Evaluations

STILL = 1e-12  # derivatives and changes of scaled rows that count as 0
NEARBY = 1e-2  # distance from the start to a second point, where constant rows must have the same values
LEAST = 1e-100  # objectives below this count as 0


class Scaled:
    """A program whose objective is multiplied by ``weight``, and whose constant rows at a bound have no bounds.

    Example:
        >>> from torsor.optimisation.formula import Formula
        >>> slide = Formula(lambda x: 1e-9 * x[0], lambda x: x[:2], n=2, row_upper=1.0, lower=[-1, 1], upper=[1, 1])
        >>> scaled = Scaled(Evaluations(slide), np.ones(2), 1e-6)
        >>> round(scaled.value(np.ones(2))[0], 1)
        1.0
    """

    def __init__(self, evaluations: Evaluations, start: Array, tolerance: float):
        program, self._evaluations = evaluations.program, evaluations
        self.n, self.m, self.scales = program.n, program.m, program.scales
        self.lower, self.upper = program.lower, program.upper
        self.structure, self.hessian_structure = program.structure, program.hessian_structure
        moves = np.random.default_rng(0).uniform(-NEARBY, NEARBY, self.n)
        nearby = np.clip(start + moves, self.lower, self.upper)
        with np.errstate(invalid="ignore"):
            size, rows, still = self._sample(start)
            still &= np.minimum(np.abs(rows - program.row_lower), np.abs(rows - program.row_upper)) <= tolerance
            if size < 1 or still.any():
                other = self._sample(nearby)
                size, still = float(np.fmax(size, other[0])), still & other[2] & (np.abs(other[1] - rows) <= STILL)
        self.weight = 1 / size if LEAST < size < 1 else 1.0
        self.row_lower = np.where(still, -np.inf, program.row_lower)
        self.row_upper = np.where(still, np.inf, program.row_upper)

    def _sample(self, x: Array) -> tuple[float, Array, Flags]:
        """Return the size of f and its gradient, the rows (m,), and which of these have a zero derivative."""
        (f, rows), (gradient, entries) = self._evaluations.value(x), self._evaluations.jacobian(x)
        still = np.ones(self.m, dtype=bool)
        still[self.structure[0][~(np.abs(entries) <= STILL)]] = False
        return float(max(abs(f), np.abs(gradient).max(initial=0.0))), rows, still

    def value(self, x: Array) -> tuple[float, Array]:
        """Return f and the rows (m,)."""
        f, rows = self._evaluations.value(x)
        return self.weight * f, rows

    def jacobian(self, x: Array) -> tuple[Array, Array]:
        """Return the gradient (n,) of f and the entries of the rows' Jacobian."""
        gradient, entries = self._evaluations.jacobian(x)
        return gradient if self.weight == 1 else self.weight * gradient, entries

    def hessian(self, x: Array, multipliers: Array, weight: float) -> Array:
        """Return the Hessian."""
        return self._evaluations.hessian(x, multipliers, self.weight * weight)

    def settings(self, given: Settings) -> Settings:
        """Return settings with the multipliers scaled to this program."""
        rows, bounds = (
            None if each is None else self.weight * each for each in (given.multipliers, given.bound_multipliers)
        )
        return replace(given, multipliers=rows, bound_multipliers=bounds)
