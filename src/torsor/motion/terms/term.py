"""Base classes of the terms of a motion problem: where they apply, and their expressions at a node."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import by_name, finite_vector, instance_of, number
from torsor.base.errors import ModelError
from torsor.motion.transcription.motion_model import MotionModel
from torsor.motion.transcription.node import Node
from torsor.motion.transcription.phase import Phase, is_phase

TOUCHING = 1e-9  # difference in s below which two times coincide


class Rows(NamedTuple):
    """Rows (m x 1) with bounds (m,) and ``labels``."""

    expression: ca.SX
    lower: Array
    upper: Array
    labels: tuple[str, ...]

    @classmethod
    def bounded(cls, values: ca.SX, lower: Any, upper: Any, labels: Sequence[str], where: str) -> "Rows":
        """Return rows for the ``values`` (m x 1) that have a finite bound.

        Bounds are one number, one per label, or {label: number}; None means no bound.
        """
        least = by_name(-np.inf if lower is None else lower, labels, -np.inf, f"{where}: lower")
        most = by_name(np.inf if upper is None else upper, labels, np.inf, f"{where}: upper")
        if not (least <= most).all():
            raise ModelError("a lower bound exceeds its upper bound", where=where)
        kept = np.flatnonzero(np.isfinite(least) | np.isfinite(most)).tolist()
        if not kept:
            raise ModelError("no row has a finite bound", where=where, fix="give lower or upper")
        return cls(values[kept], least[kept], most[kept], tuple(labels[k] for k in kept))


class Number(NamedTuple):
    """A variable shared by all phases, with the initial guess ``start`` and its bounds; equal bounds fix it."""

    start: float
    lower: float = -np.inf
    upper: float = np.inf


@dataclass(frozen=True, eq=False, kw_only=True)
class Term:
    """A part of a problem that is evaluated at times of a phase.

    ``phase`` is the index or the name of one phase, or None for all. Times are specified by s, the elapsed fraction of
    the phase (0 to 1). The term applies at the times ``at`` or, if that is None, at the nodes from the first to the
    second s of ``during``. ``name`` appears in reports.
    """

    name: str = ""
    phase: int | str | None = None
    at: float | Sequence[float] | None = None
    during: tuple[float, float] = (0.0, 1.0)
    together: ClassVar[str] = ""  # terms with the same key are compiled together if they apply at the same times

    @property
    def title(self) -> str:
        """The name, by default the class name."""
        return self.name or type(self).__name__

    def numbers(self) -> Mapping[str, Number]:
        """Return the shared numbers that the term adds to the problem."""
        return {}

    def companions(self) -> Sequence["Term"]:
        """Return further terms that this term requires."""
        return ()

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the values (K, count) of ``node.data`` by name, at times s (K,)."""
        return {}

    def profiles(self) -> Mapping[str, tuple[float | None, float | None]]:
        """Return the profiles that the term adds, with their first and last values (None: free)."""
        return {}

    @property
    def has_rows(self) -> bool:
        """Whether the term is evaluated at nodes; otherwise, it only bounds control points."""
        return True

    def point_bounds(self, model: MotionModel) -> Mapping[int, tuple[float, float]]:
        """Return bounds of the control points by profile index."""
        return {}

    def check(self) -> None:
        """Raise ModelError if the name is not a string, or if times are outside 0 to 1."""
        instance_of(self.name, str, type(self).__name__, "name", allowed="a string")
        at, during = (finite_vector(moments) for moments in (self.at, self.during))
        if self.at is not None and (at is None or not at.size or at.min() < 0 or at.max() > 1):
            allowed = "fractions of the phase from 0 to 1"
            raise ModelError(argument="at", value=self.at, where=self.title, allowed=allowed)
        if during is None or during.size != 2 or not 0 <= during[0] <= during[1] <= 1:
            allowed = "(first, last), fractions of the phase from 0 to 1"
            raise ModelError(argument="during", value=self.during, where=self.title, allowed=allowed)

    def holds_in(self, index: int, phase: Phase) -> bool:
        """Return whether the term applies to a phase."""
        return self.phase is None or is_phase(self.phase, index, phase)

    def moments(self, phase: Phase) -> Array:
        """Return the times s (K,) of a phase at which the term applies."""
        if self.at is not None:
            return np.unique(np.asarray(self.at, dtype=float))
        first, last = self.during
        nodes = phase.nodes
        inside = nodes[(nodes > first + TOUCHING) & (nodes < last - TOUCHING)]
        return np.unique(np.concatenate([[first], inside, [last]]))


@dataclass(frozen=True, eq=False, kw_only=True)
class Constraint(Term):
    """A constraint: rows between bounds."""

    def rows(self, node: Node) -> Rows:
        """Return the rows at a node."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False, kw_only=True)
class Cost(Term):
    """A term of the objective: ``weight`` times the integral over time, or times the sum over the times ``at``."""

    weight: float = 1.0
    is_even: ClassVar[bool] = False  # whether the integrand is constant

    @property
    def is_sum(self) -> bool:
        """Whether the term is a sum over times instead of an integral."""
        return self.at is not None

    def check(self) -> None:
        """Raise ModelError if the times, the integration interval or the weight is invalid."""
        super().check()
        if not self.is_sum and not self.during[0] < self.during[1]:
            message = f"is {self.during!r}, an empty integration interval"
            fix = "use a longer interval, or at for a sum over moments"
            raise ModelError(message, value=self.during, argument="during", where=self.title, fix=fix)
        number(self.weight, self.title, "weight")

    def fewest(self, model: MotionModel) -> int:
        """Return the smallest number of integration points; along a path, they must resolve its turns."""
        return 0 if model.path is None else 12 * model.path.spline.count

    def smoother(self) -> Self:
        """Return a smoother version of the term, which is optimised first, or the term itself."""
        return self

    def exact(self) -> Self:
        """Return the term without smoothing, which can be evaluated but has no derivatives, or the term itself."""
        return self

    def scaled(self, power: float) -> Self:
        """Return the term with smoothing proportional to the mean power (W) of a force, or the term itself."""
        return self

    def integrand(self, node: Node) -> ca.SX:
        """Return the integrand; 0 for a cost that consists only of ``squares``."""
        return ca.SX(0)

    def squares(self, node: Node) -> ca.SX:
        """Return a column whose squares are added to the integrand.

        For many squares, this needs less code than the integrand, because BLAS computes the products J^T J of their
        derivatives.
        """
        return ca.SX(0, 1)


def _evaluate(function: Callable[[Node], Any], node: Node, where: str) -> ca.SX:
    """Return the column that a function returns for a node; raise ModelError if it depends on other symbols."""
    if not callable(function):
        raise ModelError(argument="function", value=function, where=where, allowed="a function of a node")
    value = function(node)
    try:
        column = ca.SX(value)
    except (NotImplementedError, TypeError):
        message = f"the function returns {type(value).__name__}"
        raise ModelError(message, where=where, allowed="a CasADi SX of the node's quantities") from None
    foreign = ca.Function("column", [node.symbols], [column], {"allow_free": True}).get_free()
    if foreign or column.shape[1] != 1:
        message = f"the function depends on {foreign[0]}" if foreign else f"the function returns shape {column.shape}"
        raise ModelError(message, where=where, allowed="one column of the node's quantities")
    return ca.densify(column)


@dataclass(frozen=True, eq=False, kw_only=True)
class ExpressionCost(Cost):
    """The integral of ``function(node)``, a CasADi SX scalar, or its sum over the times ``at``.

    For the quantities of a node, such as q, v, a, j, tau, tau_rate, t, s, T, pose(place), velocity(place) and
    wrenches(), see ``Node``.
    """

    function: Callable[[Node], Any]

    def integrand(self, node: Node) -> ca.SX:
        """Return the value of the function."""
        result = _evaluate(self.function, node, self.title)
        if result.numel() != 1:
            raise ModelError(f"the function returns {result.numel()} numbers", where=self.title, allowed="one")
        return result


@dataclass(frozen=True, eq=False, kw_only=True)
class ExpressionConstraint(Constraint):
    """Bounds ``lower`` and ``upper`` on ``function(node)``, a CasADi SX column (m).

    Bounds are one number, one per row (m,), or {label: number}; ``labels`` (m) name the rows in reports.

    Example:
        >>> rows = ExpressionConstraint(function=lambda node: node.v[0] * node.v[1], upper=1.0, labels=["product"])
        >>> rows.lower, rows.upper
        (-inf, 1.0)
    """

    function: Callable[[Node], Any]
    lower: Any = -np.inf
    upper: Any = np.inf
    labels: Sequence[str] = ()

    def rows(self, node: Node) -> Rows:
        """Return the rows that have a finite bound."""
        result = _evaluate(self.function, node, self.title)
        m = result.numel()
        labels = tuple(self.labels) or tuple(f"row {k}" for k in range(m))
        if len(labels) != m:
            raise ModelError(f"there are {len(labels)} labels", where=self.title, allowed=f"{m}, one per row")
        return Rows.bounded(result, self.lower, self.upper, labels, self.title)
