"""What solvers take and give, whichever it is."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Iteration", "Outcome", "Settings", "StoppedError"]

Array = NDArray[np.float64]


class Iteration(NamedTuple):
    """One iteration: its number, f, the largest violation of a bound, and the length of the step."""

    number: int
    objective: float
    violation: float
    step: float


class StoppedError(Exception):
    """Raised by whoever watches, to end the search."""


@dataclass(frozen=True)
class Settings:
    """``tolerance`` of optimality and of scaled rows, most ``iterations`` and ``seconds``, and who ``watch``es."""

    tolerance: float = 1e-6
    iterations: int = 500
    seconds: float = np.inf
    watch: Callable[[Iteration, Array], None] | None = None


@dataclass(frozen=True, eq=False)
class Outcome:
    """Variables x, multipliers of the rows (m,) and of the variables' bounds (x,), and how it went, in words.

    Multipliers are positive at upper bounds, negative at lower ones: gradient f + J^T multipliers + bounds' = 0.
    """

    x: Array
    multipliers: Array
    bound_multipliers: Array
    objective: float
    iterations: int
    status: str
    is_solved: bool
    log: list[Iteration] = field(default_factory=list)
