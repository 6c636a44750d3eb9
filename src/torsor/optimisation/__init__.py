"""Nonlinear programs and their solvers, independent of robots; solvers are functions (program, start, settings).

- ``ipopt``: interior-point method for sparse programs (the default)
- ``condensed``: interior-point method for few variables and many inequalities, for which it is several times faster
- ``sqp``: sequential quadratic programming, which often needs the fewest iterations, especially from a good initial
  guess. With several phases of free duration, or with force rates of a full arm, it takes hundreds of iterations, far
  more than the other solvers.

The programs ``MinSumViolation``, ``MinMaxViolation`` and ``SquaredPenalty`` measure infeasibility.
"""

from collections.abc import Callable

from torsor.base.arrays import Array
from torsor.optimisation.condensed import solve_condensed
from torsor.optimisation.feasibility import (
    LeastViolation,
    MinMaxViolation,
    MinSumViolation,
    SquaredPenalty,
    min_max_violation,
    min_squared_violation,
    min_sum_violation,
)
from torsor.optimisation.ipopt import solve_ipopt
from torsor.optimisation.program import (
    Iteration,
    NonlinearProgram,
    Outcome,
    Settings,
    StoppedError,
    largest_violation,
    row_violations,
)
from torsor.optimisation.record import Patience, Watch
from torsor.optimisation.sqp import solve_sqp

__all__ = [
    "SOLVERS", "Iteration", "LeastViolation", "MinMaxViolation", "MinSumViolation", "NonlinearProgram", "Outcome",
    "Patience", "Settings", "SquaredPenalty", "StoppedError", "Watch", "largest_violation", "min_max_violation",
    "min_squared_violation", "min_sum_violation", "row_violations", "solve_condensed", "solve_ipopt", "solve_sqp",
]  # fmt: skip

SOLVERS: dict[str, Callable[[NonlinearProgram, Array, Settings], Outcome]] = {
    "condensed": solve_condensed,
    "ipopt": solve_ipopt,
    "sqp": solve_sqp,
}
