"""What terms of a motion problem have in common: where they hold, and what they give at a node."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, ClassVar, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from torsor.errors import ModelError, describe
from torsor.motion.transcription.motion_model import MotionModel
from torsor.motion.transcription.node import Node
from torsor.motion.transcription.phase import Phase, is_phase
from torsor.motion.transcription.splines import finite_numbers

__all__ = ["Constraint", "Cost", "Number", "Rows", "Term", "chosen", "named", "one_of", "positive", "spread"]

Array = NDArray[np.float64]

TOUCHING = 1e-9  # shares of a phase that are the same moment


class Rows(NamedTuple):
    """Rows (m x 1) that stay between bounds (m,); ``labels`` tell them apart."""

    expression: ca.SX
    lower: Array
    upper: Array
    labels: tuple[str, ...]


class Number(NamedTuple):
    """A variable that all phases share: what it starts from, and its bounds."""

    start: float
    lower: float = -np.inf
    upper: float = np.inf


@dataclass(frozen=True, eq=False, kw_only=True)
class Term:
    """Part of a problem that is looked at in moments of a phase.

    ``phase`` is the index or the name of one phase, None for all. ``at`` are shares of the phase (0 to 1) at which it
    holds; otherwise it holds at the nodes from the first to the second of ``during``. ``name`` appears in reports.
    """

    name: str = ""
    phase: int | str | None = None
    at: float | Sequence[float] | None = None
    during: tuple[float, float] = (0.0, 1.0)
    together: ClassVar[str] = ""  # terms that say the same are compiled together, where they hold in the same moments

    @property
    def title(self) -> str:
        """The name, or what it is."""
        return self.name or type(self).__name__

    def numbers(self) -> Mapping[str, Number]:
        """Return the shared numbers that it adds to the problem."""
        return {}

    def companions(self) -> Sequence["Term"]:
        """Return other terms that belong to it."""
        return ()

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return what it gives for ``node.data`` by name, at shares s (K,): (K, count) each."""
        return {}

    def profiles(self) -> Mapping[str, tuple[float, float]]:
        """Return the profiles that it adds to those of the robot, with what they begin and end at."""
        return {}

    @property
    def has_rows(self) -> bool:
        """Whether it is looked at in moments; if not, it only bounds control points."""
        return True

    def point_bounds(self, subject: MotionModel) -> Mapping[int, tuple[float, float]]:
        """Return bounds of the control points of profiles, by their indices."""
        return {}

    def check(self) -> None:
        """Refuse moments that are none, and a name that is no string."""
        if not isinstance(self.name, str):
            raise ModelError(describe(f"name is {self.name!r}", where=type(self).__name__, allowed="a string"))
        at, during = (finite_numbers(each) for each in (self.at, self.during))
        if self.at is not None and (at is None or not at.size or at.min() < 0 or at.max() > 1):
            raise ModelError(describe(f"at is {self.at!r}", where=self.title, allowed="shares from 0 to 1"))
        if during is None or during.size != 2 or not 0 <= during[0] <= during[1] <= 1:
            allowed = "(first, last) share of the phase, from 0 to 1"
            raise ModelError(describe(f"during is {self.during!r}", where=self.title, allowed=allowed))

    def holds_in(self, index: int, phase: Phase) -> bool:
        """Whether it belongs to a phase."""
        return self.phase is None or is_phase(self.phase, index, phase)

    def moments(self, phase: Phase) -> Array:
        """Return the shares (K,) of a phase at which it holds."""
        if self.at is not None:
            return np.unique(np.asarray(self.at, dtype=float))
        first, last = self.during
        nodes = phase.nodes
        inside = nodes[(nodes > first + TOUCHING) & (nodes < last - TOUCHING)]
        return np.unique(np.concatenate([[first], inside, [last]]))


@dataclass(frozen=True, eq=False, kw_only=True)
class Constraint(Term):
    """A constraint: numbers that stay between bounds."""

    def rows(self, node: Node) -> Rows:
        """Return the rows at a node."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False, kw_only=True)
class Cost(Term):
    """A part of the objective: ``weight`` times the integral over time, or the sum over the moments ``at``."""

    weight: float = 1.0
    is_even: ClassVar[bool] = False  # whether the integrand is the same in all moments

    @property
    def is_sum(self) -> bool:
        """Whether it is a sum over moments, and no integral."""
        return self.at is not None

    def check(self) -> None:
        """Refuse moments that are none, an integral over no time, and a weight that is no number."""
        super().check()
        if not self.is_sum and not self.during[0] < self.during[1]:
            found = f"during is {self.during!r}: an integral over no time"
            raise ModelError(describe(found, where=self.title, fix="give a longer one, or at, for a sum over moments"))
        weight = finite_numbers(self.weight)
        if weight is None or np.ndim(self.weight):
            raise ModelError(describe(f"weight is {self.weight!r}", where=self.title, allowed="a finite number"))

    def fewest(self, subject: MotionModel) -> int:
        """Return how many points its integral has at least: what follows a path is as wound as that."""
        return 0 if subject.path is None else 12 * subject.path.spline.count

    def integrand(self, node: Node) -> ca.SX:
        """Return what is integrated."""
        raise NotImplementedError

    def squares(self, node: Node) -> ca.SX:
        """Return a column whose squares are integrated beside the integrand.

        Where they are many, derivatives take less code so than in the integrand: products J^T J are left to BLAS.
        """
        return ca.SX(0, 1)


def spread(value: Any, count: int, where: str) -> Array:
    """Return numbers (count,) from one for all, or one for each.

    Example:
        >>> spread(2.0, 3, "limits").tolist()
        [2.0, 2.0, 2.0]
    """
    try:
        array = np.asarray(value)
    except ValueError:  # rows of several lengths
        array = np.array("")
    if array.dtype.kind not in "iuf" or array.shape not in ((), (count,)) or np.isnan(array).any():
        raise ModelError(describe(f"{value!r}", where=where, allowed=f"a number, or {count} of them"))
    return np.broadcast_to(array.astype(float), (count,))


def named(value: Any, names: Sequence[str], missing: float, where: str) -> Array:
    """Return numbers (names,) from one for all, one for each, or {name: number}, the others being ``missing``.

    Example:
        >>> named({"elbow": 2.0}, ["shoulder", "elbow"], np.inf, "limits").tolist()
        [inf, 2.0]
    """
    if not isinstance(value, Mapping):
        return spread(value, len(names), where)
    found = np.full(len(names), missing)
    found[chosen(list(value), names, where)] = spread(list(value.values()), len(value), where)
    return found


def chosen(wanted: Sequence[str] | None, names: Sequence[str], where: str) -> list[int]:
    """Return the indices of names, all of them for None.

    Example:
        >>> chosen(["elbow"], ["shoulder", "elbow"], "limits")
        [1]
    """
    if isinstance(wanted, str):
        wanted = [wanted]
    if not isinstance(wanted, (Sequence, NoneType)):
        raise ModelError(describe(f"{wanted!r}", where=where, allowed=f"some of {', '.join(names)}"))
    for name in wanted or ():
        if name not in names:
            raise ModelError(describe(f"no {name!r}", where=where, allowed=", ".join(names)))
    return list(range(len(names))) if wanted is None else [names.index(name) for name in wanted]


def positive(value: Any, what: str, where: str) -> float:
    """Return a number above 0.

    Example:
        >>> positive(2, "width", "effort")
        2.0
    """
    plain = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not plain or not 0 < value < np.inf:
        raise ModelError(describe(f"{what} is {value!r}", where=where, allowed="a finite number above 0"))
    return float(value)


def one_of(value: Any, allowed: Sequence[str], what: str, where: str) -> None:
    """Refuse what is none of the words that are allowed.

    Example:
        >>> one_of("mean", ["mean", "peak"], "kind", "reaction")
    """
    if value not in allowed:
        raise ModelError(describe(f"{what} is {value!r}", where=where, allowed=", ".join(map(repr, allowed))))
