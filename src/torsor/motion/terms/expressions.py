"""Terms of the user's own: any CasADi expression of a node's quantities, integrated or bounded."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from torsor.base.checks import by_name
from torsor.base.errors import ModelError, describe
from torsor.motion.terms.term import Constraint, Cost, Rows
from torsor.motion.transcription.node import Node


def _evaluate(function: Callable[[Node], Any], node: Node, where: str) -> ca.SX:
    """Return the column that a function gives for a node, checked to depend on the node's symbols only."""
    if not callable(function):
        raise ModelError(describe(f"function is {function!r}", where=where, allowed="a function of a node"))
    found = function(node)
    try:
        column = ca.SX(found)
    except (NotImplementedError, TypeError):
        found_ = f"the function gives {type(found).__name__}"
        raise ModelError(describe(found_, where=where, allowed="CasADi SX of the node's quantities")) from None
    own = {each.__hash__() for each in ca.symvar(node.symbols)}
    foreign = [str(each) for each in ca.symvar(column) if each.__hash__() not in own]
    if foreign or column.shape[1] != 1:
        text = f"the function depends on {foreign[0]}" if foreign else f"the function gives shape {column.shape}"
        raise ModelError(describe(text, where=where, allowed="one column of the node's own quantities"))
    return ca.densify(column)


@dataclass(frozen=True, eq=False, kw_only=True)
class ExpressionCost(Cost):
    """The integral of ``function(node)``, a CasADi SX scalar; or its sum over the moments ``at``.

    A node has q, v, a, j, tau, tau_rate, t, s, T, pose(place), velocity(place), wrenches() and more: see ``Node``.

    Example:
        >>> ExpressionCost(function=lambda node: node.tau[0] ** 2).title
        'ExpressionCost'
    """

    function: Callable[[Node], Any]

    def integrand(self, node: Node) -> ca.SX:
        """Return the value of the function."""
        found = _evaluate(self.function, node, self.title)
        if found.numel() != 1:
            raise ModelError(describe(f"the function gives {found.numel()} numbers", where=self.title, allowed="one"))
        return found


@dataclass(frozen=True, eq=False, kw_only=True)
class ExpressionConstraint(Constraint):
    """``function(node)``, a CasADi SX column (m), stays between ``lower`` and ``upper``.

    Bounds are one number for all, one for each row (m,), or {label: number}; ``labels`` (m) name the rows in reports.

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
        found = _evaluate(self.function, node, self.title)
        m = found.numel()
        labels = tuple(self.labels) or tuple(f"row {k}" for k in range(m))
        if len(labels) != m:
            raise ModelError(describe(f"{len(labels)} labels", where=self.title, allowed=f"{m}, one for each row"))
        lower = by_name(self.lower, labels, -np.inf, f"{self.title}: lower")
        upper = by_name(self.upper, labels, np.inf, f"{self.title}: upper")
        if not (lower <= upper).all():
            raise ModelError(describe("a lower bound is above the upper", where=self.title))
        kept = np.flatnonzero(np.isfinite(lower) | np.isfinite(upper))
        if not kept.size:
            raise ModelError(describe("no row has a finite bound", where=self.title, fix="give lower or upper"))
        return Rows(found[kept.tolist()], lower[kept], upper[kept], tuple(labels[k] for k in kept))
