"""Nonlinear programs and their solvers, independent of robots; each solver is a function (program, start, settings).

- ``ipopt``: interior-point method for sparse programs, the default choice;
- ``condensed``: interior-point method for few variables and many inequalities, several times faster on these;
- ``sqp``: sequential quadratic programming, needs the fewest iterations, above all from a good initial guess; with
  several phases of free durations, or force rates of a whole arm, it takes hundreds of iterations, the others far
  fewer.

Measures of infeasibility are programs too: ``MinSumViolation``, ``MinMaxViolation`` and ``SquaredPenalty``.
"""

from collections.abc import Callable

from torsor.base.arrays import Array
from torsor.optimisation.condensed import solve_condensed
from torsor.optimisation.ipopt import solve_ipopt
from torsor.optimisation.min_max_violation import MinMaxViolation, min_max_violation
from torsor.optimisation.min_sum_violation import LeastViolation, MinSumViolation, min_sum_violation
from torsor.optimisation.outcome import Iteration, Outcome, Settings, StoppedError
from torsor.optimisation.program import NonlinearProgram, largest_violation, row_violations
from torsor.optimisation.sqp import solve_sqp
from torsor.optimisation.squared_penalty import SquaredPenalty, min_squared_violation
from torsor.optimisation.watch import Patience, Watch

__all__ = [
    "SOLVERS",
    "Iteration",
    "LeastViolation",
    "MinMaxViolation",
    "MinSumViolation",
    "NonlinearProgram",
    "Outcome",
    "Patience",
    "Settings",
    "SquaredPenalty",
    "StoppedError",
    "Watch",
    "largest_violation",
    "min_max_violation",
    "min_squared_violation",
    "min_sum_violation",
    "row_violations",
    "solve_condensed",
    "solve_ipopt",
    "solve_sqp",
]

SOLVERS: dict[str, Callable[[NonlinearProgram, Array, Settings], Outcome]] = {
    "condensed": solve_condensed,
    "ipopt": solve_ipopt,
    "sqp": solve_sqp,
}
