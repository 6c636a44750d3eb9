"""What solvers take and give, whichever it is."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Iteration", "Outcome", "Settings", "Solvable", "StoppedError", "violation"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


class Solvable(Protocol):
    """A nonlinear program: f(x) least, with bounds on the ``n`` variables x and on the ``m`` rows g(x).

    Bounds may be infinite. ``structure`` has the rows and columns of the entries of dg/dx, column after column, and
    ``hessian_structure`` those of the upper triangle of ``hessian``, the Hessian of weight f + multipliers . g:
    (n, n), or (k, k) where f and g are linear in the variables from k on. ``scales`` (m,) is what the rows were divided
    by: a row times its scale is in units of its own.
    """

    @property
    def n(self) -> int:
        """Number of variables."""

    @property
    def m(self) -> int:
        """Number of rows."""

    @property
    def lower(self) -> Array:
        """Lower bounds (n,) of the variables."""

    @property
    def upper(self) -> Array:
        """Upper bounds (n,) of the variables."""

    @property
    def row_lower(self) -> Array:
        """Lower bounds (m,) of the rows."""

    @property
    def row_upper(self) -> Array:
        """Upper bounds (m,) of the rows."""

    @property
    def scales(self) -> Array:
        """What the rows were divided by (m,)."""

    @property
    def structure(self) -> tuple[Indices, Indices]:
        """Rows and columns of the entries of dg/dx."""

    @property
    def hessian_structure(self) -> tuple[Indices, Indices]:
        """Rows and columns of the entries of the Hessian's upper triangle."""

    def value(self, x: Array) -> tuple[float, Array]:
        """Return f and g (m,)."""

    def jacobian(self, x: Array) -> tuple[Array, Array]:
        """Return the gradient (n,) of f and the entries of dg/dx."""

    def hessian(self, x: Array, multipliers: Array, weight: float) -> Array:
        """Return the Hessian of weight f + multipliers . g."""


class Iteration(NamedTuple):
    """One iteration: its number, f, the largest violation of a bound, and the largest change of a variable."""

    number: int
    objective: float
    violation: float
    step: float


class StoppedError(Exception):
    """Raised by whoever watches, to end the search."""


@dataclass(frozen=True)
class Settings:
    """How far and how long to search, from what multipliers, and who watches.

    ``tolerance`` is that of optimality and of the rows as scaled; ``iterations`` and ``seconds`` are the most that are
    spent. ``watch`` is called with each iteration and its x, and may raise StoppedError. ``multipliers`` (m,) and
    ``bound_multipliers`` (n,) of an earlier outcome make a warm start: the x that is started from is then taken to be
    near the optimum.

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
    """Variables x, multipliers of the rows (m,) and of the variables' bounds (n,), and how it went, in words.

    Multipliers are positive at upper bounds, negative at lower ones: gradient f + J^T multipliers + bounds' = 0. So
    df*/d(bound) = -multiplier: what the optimum changes by, for each unit that a bound is moved. What was not solved
    is the best that was seen: of points that hold all bounds to the tolerance the one with the least f, or else that
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


def violation(program: Solvable, x: Array, rows: Array) -> float:
    """Return the largest violation of a bound of the variables x (n,) or the rows (m,); 0 where all hold."""
    apart = (program.lower - x, x - program.upper, program.row_lower - rows, rows - program.row_upper)
    return float(max(0.0, *(each.max(initial=0.0) for each in apart)))
