"""A program as it is put to a solver: an objective that is not tiny, and no rows that leave it no room.

- Tolerances are absolute, so that an objective of 1e-9 would be called optimal wherever the search starts. One that is
  smaller than 1 near the start, with its gradient, is multiplied up to that size; large ones are the solvers' affair.
- A joint that begins at its limit has a row at its bound that no variable moves. Interior-point methods would look for
  a place apart from the bound, which there is none of, and give the row a multiplier that means nothing.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from torsor.optimisation.evaluations import Evaluations
from torsor.optimisation.outcome import Settings

__all__ = ["Scaled"]

Array = NDArray[np.float64]

STILL = 1e-12  # derivatives and changes of rows, as scaled, that are none
NEARBY = 1e-2  # how far from the start it is looked what changes
LEAST = 1e-100  # an objective that is smaller is none


class Scaled:
    """A program whose objective is multiplied by ``weight``, and whose rows that are still have no bounds.

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
            size, rows, still = self._seen(start)
            still &= np.minimum(np.abs(rows - program.row_lower), np.abs(rows - program.row_upper)) <= tolerance
            if size < 1 or still.any():
                other = self._seen(nearby)
                size, still = float(np.fmax(size, other[0])), still & other[2] & (np.abs(other[1] - rows) <= STILL)
        self.weight = 1 / size if LEAST < size < 1 else 1.0
        self.row_lower = np.where(still, -np.inf, program.row_lower)
        self.row_upper = np.where(still, np.inf, program.row_upper)

    def _seen(self, x: Array) -> tuple[float, Array, NDArray[np.bool_]]:
        """Return the size of f and its gradient, the rows (m,), and which of these have no derivative."""
        (f, rows), (gradient, entries) = self._evaluations.value(x), self._evaluations.jacobian(x)
        still = np.ones(self.m, dtype=bool)
        still[self.structure[0][~(np.abs(entries) <= STILL)]] = False
        return float(max(abs(f), np.abs(gradient).max(initial=0.0))), rows, still

    def value(self, x: Array) -> tuple[float, Array]:
        """Return f and the rows (m,)."""
        f, rows = self._evaluations.value(x)
        return self.weight * f, rows

    def jacobian(self, x: Array) -> tuple[Array, Array]:
        """Return the gradient (n,) of f and the entries of the rows' derivatives."""
        gradient, entries = self._evaluations.jacobian(x)
        return gradient if self.weight == 1 else self.weight * gradient, entries

    def hessian(self, x: Array, multipliers: Array, weight: float) -> Array:
        """Return the Hessian."""
        return self._evaluations.hessian(x, multipliers, self.weight * weight)

    def settings(self, given: Settings) -> Settings:
        """Return settings whose multipliers are those of this program."""
        rows, bounds = (
            None if each is None else self.weight * each for each in (given.multipliers, given.bound_multipliers)
        )
        return replace(given, multipliers=rows, bound_multipliers=bounds)
