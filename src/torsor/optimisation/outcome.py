"""The settings that a solver takes and the outcome that it returns, the same for all solvers."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array


class Iteration(NamedTuple):
    """One iteration: its number, f, the largest constraint violation, and the largest change of a variable."""

    number: int
    objective: float
    violation: float
    step: float


class StoppedError(Exception):
    """Raised by a ``watch`` function to stop the solver."""


@dataclass(frozen=True)
class Settings:
    """Tolerance, limits and warm start of a solver.

    ``tolerance`` is that of optimality and of the scaled rows; ``iterations`` and ``seconds`` are upper limits.
    ``watch`` is called with each iteration and its x (n,), and may raise StoppedError. ``multipliers`` (m,) and
    ``bound_multipliers`` (n,) of an earlier outcome make a warm start: the initial x is then assumed to be close to the
    optimum.

    Example:
        >>> Settings(tolerance=1e-8).iterations
        500
    """

    tolerance: float = 1e-6
    iterations: int = 500
    seconds: float = np.inf
    watch: Callable[[Iteration, Array], None] | None = None
    multipliers: Array | None = None
    bound_multipliers: Array | None = None


@dataclass(frozen=True, eq=False)
class Outcome:
    """Variables x (n,), Lagrange multipliers of the rows (m,) and of the variables' bounds (n,), and a status text.

    Multipliers are positive at upper bounds and negative at lower ones: gradient f + J^T multipliers +
    bound_multipliers = 0. So df*/d(bound) = -multiplier is the change of the optimal objective per unit of a bound. If
    ``is_solved`` is false, x is the best iterate: the feasible one (to the tolerance) with the least f, or else the one
    with the least ``violation``.
    """

    x: Array
    multipliers: Array
    bound_multipliers: Array
    objective: float
    iterations: int
    status: str
    is_solved: bool
    log: list[Iteration] = field(default_factory=list)
    violation: float = 0.0
    seconds: float = 0.0
