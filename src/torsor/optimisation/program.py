"""The nonlinear program of all solvers: an objective, bounded variables and bounded constraint rows.

``Evaluations`` caches the last evaluation of a program.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array, Indices

# The settings and the outcome, which are the same for all solvers.


class Iteration(NamedTuple):
    """One iteration: number, f, largest constraint violation, and largest change of a variable."""

    number: int
    objective: float
    violation: float
    step: float


class StoppedError(Exception):
    """Exception that a ``watch`` function raises to stop the solver."""


@dataclass(frozen=True)
class Settings:
    """Tolerance, limits and warm start of a solver.

    ``tolerance`` applies to optimality and to the scaled rows. ``iterations`` and ``seconds`` are upper limits.
    ``watch`` is called with each iteration and its x (n,), and may raise StoppedError. ``multipliers`` (m,) and
    ``bound_multipliers`` (n,) of an earlier outcome cause a warm start, for which the initial x is assumed to be close
    to the optimum.

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
    """Variables x (n,), Lagrange multipliers of the rows (m,) and variable bounds (n,), and a status text.

    Multipliers are positive at upper bounds and negative at lower ones: gradient f + J^T multipliers +
    bound_multipliers = 0. The change of the optimal objective per unit of a bound is therefore df*/d(bound) =
    -multiplier. If ``is_solved`` is False, x is the best iterate: the feasible one (to the tolerance) with the smallest
    f, or if there is none, the one with the smallest ``violation``.
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


def _places(pattern: ca.Sparsity) -> tuple[Indices, Indices]:
    """Return rows and columns of the entries, in column-major order."""
    rows, columns = pattern.get_triplet()
    return np.array(rows, dtype=int), np.array(columns, dtype=int)


class Formula:
    """A program of CasADi expressions in x (n x 1); bounds are one number or one per entry, by default infinite."""

    def __init__(
        self,
        objective: Callable[[ca.SX], Any],
        rows: Callable[[ca.SX], Any] | None = None,
        *,
        n: int,
        lower: ArrayLike = -np.inf,
        upper: ArrayLike = np.inf,
        row_lower: ArrayLike = -np.inf,
        row_upper: ArrayLike = np.inf,
    ):
        x = ca.SX.sym("x", n)
        f, g = ca.SX(objective(x)), ca.densify(ca.SX(rows(x))) if rows else ca.SX(0, 1)
        weight, multipliers = ca.SX.sym("weight"), ca.SX.sym("multipliers", g.numel())
        jacobian, hessian = ca.jacobian(g, x), ca.hessian(weight * f + ca.dot(multipliers, g), x)[0]
        self.n, self.m = n, int(g.numel())
        self.lower, self.upper = (np.array(np.broadcast_to(side, n), dtype=float) for side in (lower, upper))
        sides = (np.broadcast_to(side, self.m) for side in (row_lower, row_upper))
        self.row_lower, self.row_upper = (np.array(side, dtype=float) for side in sides)
        self.scales = np.ones(self.m)
        self._value = ca.Function("value", [x], [f, g])
        self._jacobian = ca.Function("jacobian", [x], [ca.densify(ca.gradient(f, x)), jacobian])
        self._hessian = ca.Function("hessian", [x, multipliers, weight], [ca.densify(hessian)])
        self.structure = _places(jacobian.sparsity())
        self.hessian_structure = _places(ca.triu(hessian.sparsity()))

    def value(self, x: Array) -> tuple[float, Array]:
        """Return f and the rows (m,)."""
        f, g = self._value(x)
        return float(f), g.full().ravel()

    def jacobian(self, x: Array) -> tuple[Array, Array]:
        """Return the gradient (n,) of f, and the nonzeros of the row Jacobian, in the order of ``structure``."""
        gradient, jacobian = self._jacobian(x)
        return gradient.full().ravel(), np.array(jacobian.nonzeros())

    def hessian(self, x: Array, multipliers: Array, weight: float) -> Array:
        """Return the Hessian (n, n) of weight f + multipliers . rows."""
        return np.asarray(self._hessian(x, multipliers, weight).full())


class NonlinearProgram(Protocol):
    """Minimise f(x) subject to lower <= x <= upper (n,) and row_lower <= g(x) <= row_upper (m,).

    Bounds may be infinite. ``structure`` contains the rows and columns of the nonzero entries of the Jacobian dg/dx,
    and ``hessian_structure`` those of the upper triangle of ``hessian``. The Hessian of weight f + multipliers . g is
    (n, n), or (k, k) if f and g are linear in the variables from index k on. ``scales`` (m,) contains the divisors of
    the rows: row times scale is in physical units.
    """

    @property
    def n(self) -> int:
        """Number of variables."""

    @property
    def m(self) -> int:
        """Number of constraint rows."""

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
        """Divisors (m,) of the rows."""

    @property
    def structure(self) -> tuple[Indices, Indices]:
        """Rows and columns of the nonzero entries of dg/dx."""

    @property
    def hessian_structure(self) -> tuple[Indices, Indices]:
        """Rows and columns of the nonzero entries of the Hessian's upper triangle."""

    def value(self, x: Array) -> tuple[float, Array]:
        """Return f and g (m,)."""

    def jacobian(self, x: Array) -> tuple[Array, Array]:
        """Return the gradient (n,) of f and the nonzero entries of dg/dx."""

    def hessian(self, x: Array, multipliers: Array, weight: float) -> Array:
        """Return the Hessian of weight f + multipliers . g."""


def row_violations(program: NonlinearProgram, x: Array) -> Array:
    """Return the row violations (m,) at x, which are 0 for rows within their bounds.

    Example:
        >>> from torsor.optimisation.program import Formula
        >>> box = Formula(lambda x: x[0], lambda x: x, n=2, row_lower=0.0, row_upper=1.0)
        >>> row_violations(box, np.array([-0.5, 3.0])).tolist()
        [0.5, 2.0]
    """
    return violations_of(program, program.value(x)[1])


def violations_of(program: NonlinearProgram, rows: Array) -> Array:
    """Return the row violations (m,) for row values (m,)."""
    return np.maximum(np.maximum(program.row_lower - rows, rows - program.row_upper), 0.0)


def largest_violation(program: NonlinearProgram, x: Array, rows: Array) -> float:
    """Return the largest bound violation of the variables x (n,) and the rows (m,); 0 if there is none."""
    excess = (program.lower - x, x - program.upper, program.row_lower - rows, rows - program.row_upper)
    return float(max(0.0, *(amount.max(initial=0.0) for amount in excess)))


def padded(hessian: Array, n: int) -> Array:
    """Return the Hessian (n, n) from one without the last variables, in which a program is linear."""
    return np.pad(hessian, (0, n - len(hessian))) if len(hessian) < n else hessian


class Evaluations:
    """A cache that evaluates the functions of a program once per x, because solvers request them separately.

    Non-finite values cause neither errors nor warnings; ``is_finite`` returns False if there are any.
    """

    def __init__(self, program: NonlinearProgram):
        self.program = program
        self._x: Array | None = None
        self._value: tuple[float, Array] | None = None
        self._jacobian: tuple[Array, Array] | None = None

    def _move(self, x: Array) -> None:
        if self._x is None or not np.array_equal(x, self._x):
            self._x, self._value, self._jacobian = x.copy(), None, None

    def value(self, x: Array) -> tuple[float, Array]:
        """Return f and the rows (m,)."""
        self._move(x)
        if self._value is None:
            with np.errstate(all="ignore"):
                self._value = self.program.value(x)
        return self._value

    def jacobian(self, x: Array) -> tuple[Array, Array]:
        """Return the gradient (n,) and the entries of the row Jacobian."""
        self._move(x)
        if self._jacobian is None:
            with np.errstate(all="ignore"):
                self._jacobian = self.program.jacobian(x)
        return self._jacobian

    def hessian(self, x: Array, multipliers: Array, weight: float) -> Array:
        """Return the Hessian, with non-finite second derivatives replaced by 0."""
        with np.errstate(all="ignore"):
            result = self.program.hessian(x, multipliers, weight)
        return result if np.isfinite(result).all() else np.nan_to_num(result, nan=0.0, posinf=0.0, neginf=0.0)

    def is_finite(self, x: Array) -> bool:
        """Return whether f, the rows and their first derivatives are finite at x."""
        f, rows = self.value(x)
        if not (np.isfinite(f) and np.isfinite(rows).all()):
            return False
        gradient, entries = self.jacobian(x)
        return bool(np.isfinite(gradient).all() and np.isfinite(entries).all())
