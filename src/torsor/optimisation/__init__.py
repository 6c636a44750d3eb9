"""Solvers of nonlinear programs: each is a function of a program, a start and settings.

- ``ipopt``: an interior-point method for sparse programs, the choice where nothing is known;
- ``condensed``: an interior-point method for few variables and many inequalities, several times faster on these;
- ``sqp``: sequential quadratic programming, the fewest iterations and the best from a start that is near; with several
  phases of free durations, or force rates of a whole arm, it takes hundreds of iterations, the others far fewer.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from torsor.optimisation.condensed import solve_condensed
from torsor.optimisation.ipopt import solve_ipopt
from torsor.optimisation.min_max_violation import MinMaxViolation, least_widening
from torsor.optimisation.min_sum_violation import MinSumViolation, Shortfall, least_violation
from torsor.optimisation.outcome import Iteration, Outcome, Settings, Solvable, StoppedError, violation
from torsor.optimisation.sqp import solve_sqp

__all__ = [
    "SOLVERS",
    "Iteration",
    "MinMaxViolation",
    "MinSumViolation",
    "Outcome",
    "Settings",
    "Shortfall",
    "Solvable",
    "StoppedError",
    "least_violation",
    "least_widening",
    "solve_condensed",
    "solve_ipopt",
    "solve_sqp",
    "violation",
]

SOLVERS: dict[str, Callable[[Solvable, NDArray[np.float64], Settings], Outcome]] = {
    "condensed": solve_condensed,
    "ipopt": solve_ipopt,
    "sqp": solve_sqp,
}
