"""Solvers of nonlinear programs: each is a function of a program, a start and settings.

- ``ipopt``: an interior-point method for sparse programs, the choice where nothing is known;
- ``condensed``: an interior-point method for few variables and many inequalities, several times faster on these;
- ``sqp``: sequential quadratic programming, the fewest iterations and the best from a start that is near; with several
  phases of free durations, or force rates of a whole arm, it takes hundreds of iterations, the others far fewer.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from torsor.motion.solvers.condensed import solve_condensed
from torsor.motion.solvers.elastic import Elastic, Shortfall, least_violation
from torsor.motion.solvers.ipopt import solve_ipopt
from torsor.motion.solvers.outcome import Iteration, Outcome, Settings, Solvable, StoppedError, violation
from torsor.motion.solvers.sqp import solve_sqp
from torsor.motion.solvers.widened import Widened, least_widening

__all__ = [
    "SOLVERS",
    "Elastic",
    "Iteration",
    "Outcome",
    "Settings",
    "Shortfall",
    "Solvable",
    "StoppedError",
    "Widened",
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
