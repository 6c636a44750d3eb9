"""Operation counts of a document's equations as written, by placeholders for numbers that count operations."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from torsor.compiler.program import OperationCount
from torsor.reproduce.equations.form import Vector


class Counted:
    """An unknown number. Operations on it are added to a shared count (multiplications, additions, sines and cosines).

    Products with 0, 1 and -1, sums with 0 and changes of sign are not counted.
    """

    def __init__(self, tally: list[int]) -> None:
        self.tally = tally

    def _result(self, kind: int) -> "Counted":
        self.tally[kind] += 1
        return self

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented  # element by element
        if isinstance(other, Counted) or abs(other) not in (0, 1):
            return self._result(0)
        return self if other else 0.0

    def __add__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        return self._result(1) if isinstance(other, Counted) or other else self

    def __neg__(self) -> "Counted":
        return self

    def __pow__(self, power: int) -> "Counted":
        self.tally[0] += power - 1
        return self

    def sin(self) -> "Counted":
        """Return the sine, for NumPy."""
        return self._result(2)

    cos = sin
    __radd__ = __sub__ = __rsub__ = __add__
    __rmul__ = __mul__


def count_as_written(equations: Callable[..., Any], *arguments: ArrayLike) -> OperationCount:
    """Return the operations of a function of arrays whose zeros and ones (also -1) are known.

    Example:
        >>> count_as_written(lambda x: np.sin(x[0]) * x + 1, [0.3, 0.4])
        OperationCount(multiplications=2, additions=2, trigonometric=1, other=0)
    """
    tally = [0, 0, 0]
    equations(*(counted(values, tally) for values in arguments))
    return OperationCount(tally[0], tally[1], tally[2], 0)


def counted(values: ArrayLike, tally: list[int]) -> Vector:
    """Return an array of unknown numbers, except those that are 0, 1 or -1."""
    known = np.asarray(values, dtype=float)
    unknown = np.full(known.shape, Counted(tally), dtype=object)
    return np.where(np.isin(known, (-1.0, 0.0, 1.0)), known, unknown)
