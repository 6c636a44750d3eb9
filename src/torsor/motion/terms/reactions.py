"""Joint reactions, the wrenches that parents exert on their links: bounded, or minimised as a mean or as a peak."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import casadi as ca
import numpy as np

from torsor.base.checks import indices_of, one_of, positive
from torsor.base.errors import ModelError, describe
from torsor.motion.terms.term import Constraint, Cost, Number, Rows, Term
from torsor.motion.transcription.node import Node
from torsor.motion.transcription.phase import Phase


@dataclass(frozen=True, eq=False, kw_only=True)
class _Reacting(Term):
    """Reactions of ``joints`` (names; None: all), relative to a ``force`` (N) and a ``moment`` (N m); None: not used.

    Moments are about the origin of the link that the joint moves.
    """

    joints: Sequence[str] | None = None
    force: float | None = None
    moment: float | None = None

    def _loads(self, node: Node) -> tuple[tuple[str, ...], list[ca.SX]]:
        """Return the labels of reactions, and the squared ratio of each to its limit."""
        robot, labels, ratios = node.robot, list[str](), list[ca.SX]()
        if self.force is None and self.moment is None:
            raise ModelError(describe("neither force nor moment is given", where=self.title, fix="give one of them"))
        moving = [joint for joint in robot.joints if joint.child in robot.link_names]
        names = [joint.name for joint in moving]
        wrenches = node.wrenches()
        wanted = indices_of(self.joints, names, self.title, "joint")
        if not wanted:
            raise ModelError(describe("joints is empty", where=self.title, allowed=", ".join(names)))
        for k in wanted:
            row = wrenches[robot.link_names.index(moving[k].child), :]
            for kind, size, part in (("force", self.force, row[3:]), ("moment", self.moment, row[:3])):
                if size is not None:
                    labels.append(f"{kind} of {names[k]}")
                    ratios.append(ca.sumsqr(part) / positive(size, self.title, kind) ** 2)
        return tuple(labels), ratios


@dataclass(frozen=True, eq=False, kw_only=True)
class Reactions(_Reacting, Constraint):
    """The magnitudes of reaction force (N) and moment (N m) of joints stay below limits.

    Rows are (|f| / limit)^2 <= 1, which is smooth also where a reaction vanishes.

    Example:
        >>> Reactions(joints=["joint1"], force=500.0).title
        'Reactions'
    """

    def rows(self, node: Node) -> Rows:
        """Return the squared ratios to the limits."""
        labels, ratios = self._loads(node)
        return Rows(ca.vertcat(*ratios), np.full(len(labels), -np.inf), np.ones(len(labels)), labels)


@dataclass(frozen=True, eq=False, kw_only=True)
class Reaction(_Reacting, Cost):
    """Reactions of joints, relative to ``force`` (N) and ``moment`` (N m): x = |f| / force, |n| / moment.

    ``kind`` is "squared", the integral of the sum of x^2; "mean", the same divided by the duration; "power", the
    integral of the sum of x^power, dominated by the largest x (``power`` is even, 8 by default: a reaction of 0.8 of
    the scale counts a sixth of one at the scale); or "peak", the exact largest x of all nodes: a shared number that no
    x exceeds.

    Example:
        >>> sorted(Reaction(kind="peak", force=100.0).numbers())
        ['Reaction']
    """

    kind: str = "mean"
    power: int = 8

    @property
    def _is_peak(self) -> bool:
        one_of(self.kind, ("squared", "mean", "power", "peak"), self.title, "kind")
        return self.kind == "peak"

    @property
    def is_sum(self) -> bool:
        """Whether the term is a sum over moments instead of an integral."""
        return self._is_peak or self.at is not None

    def numbers(self) -> Mapping[str, Number]:
        """Return the largest ratio, for a peak."""
        return {self.title: Number(1.0, 0.0)} if self._is_peak else {}

    def companions(self) -> Sequence[Term]:
        """Return the rows that bound all nodes by the peak."""
        if not self._is_peak:
            return ()
        own = {each.name: getattr(self, each.name) for each in fields(_Below)}
        return (_Below(**own | {"name": self.title}),)

    def moments(self, phase: Phase) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
        """Return the moments: a peak is counted once."""
        return np.zeros(1) if self._is_peak else super().moments(phase)

    def holds_in(self, index: int, phase: Phase) -> bool:
        """Whether it belongs to a phase: a peak of all phases is counted in the first."""
        return index == 0 if self._is_peak and self.phase is None else super().holds_in(index, phase)

    def integrand(self, node: Node) -> ca.SX:
        """Return the integrand, or the peak."""
        if self._is_peak:
            return node.shared[self.title]
        ratios = self._loads(node)[1]
        if self.kind == "power":
            if type(self.power) is not int or self.power < 2 or self.power % 2:
                found = f"power is {self.power!r}"
                raise ModelError(describe(found, where=self.title, allowed="an even whole number"))
            return sum((ratio ** (self.power // 2) for ratio in ratios), start=ca.SX(0))
        total: ca.SX = sum(ratios, start=ca.SX(0))
        if self.kind != "mean":
            return total
        return total / (node.T * (self.during[1] - self.during[0]) if self.at is None else np.unique(self.at).size)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Below(_Reacting, Constraint):
    """Rows x^2 - peak^2 <= 0 of the peak with the same name."""

    def rows(self, node: Node) -> Rows:
        """Return a row for each reaction."""
        (labels, ratios), peak = self._loads(node), node.shared[self.title]
        rows = ca.vertcat(*(ratio - peak**2 for ratio in ratios))
        return Rows(rows, np.full(len(labels), -np.inf), np.zeros(len(labels)), labels)
