"""Counting the operations of a CasADi function: a measure of cost that is the same on every machine."""

from collections import Counter
from typing import NamedTuple

import casadi as ca


class OperationCount(NamedTuple):
    """The number of scalar operations of a function, by class."""

    multiplications: int
    additions: int
    trigonometric: int
    other: int

    @property
    def arithmetic(self) -> int:
        """Multiplications and additions together."""
        return self.multiplications + self.additions


_FREE = {ca.OP_INPUT, ca.OP_OUTPUT, ca.OP_CONST, ca.OP_PARAMETER}
_CLASSES: dict[int, str] = {
    **dict.fromkeys((ca.OP_MUL, ca.OP_SQ), "multiplications"),
    **dict.fromkeys((ca.OP_ADD, ca.OP_SUB, ca.OP_TWICE), "additions"),
    **dict.fromkeys(
        (ca.OP_SIN, ca.OP_COS, ca.OP_TAN, ca.OP_ASIN, ca.OP_ACOS, ca.OP_ATAN, ca.OP_ATAN2), "trigonometric"
    ),
}


def count_operations(function: ca.Function) -> OperationCount:
    """Return the number of operations of a CasADi function of SX; divisions, sign changes and the rest are ``other``.

    Example:
        >>> x = ca.SX.sym("x")
        >>> count_operations(ca.Function("f", [x], [ca.sin(x) * x + 1]))
        OperationCount(multiplications=1, additions=1, trigonometric=1, other=0)
    """
    found: Counter[str] = Counter()
    for k in range(function.n_instructions()):
        operation = function.instruction_id(k)
        if operation not in _FREE:
            found[_CLASSES.get(operation, "other")] += 1
    return OperationCount(*(found[name] for name in OperationCount._fields))
