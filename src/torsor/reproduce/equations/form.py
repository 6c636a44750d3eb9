"""The choice between printed and corrected equations, and the cross product."""

from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
Vector = NDArray[Any]  # real, or complex for complex-step derivatives
Matrix = NDArray[Any]


class Form:
    """The equations of a document, which are corrected except for those to evaluate as printed."""

    def __init__(self, printed: Iterable[str] = ()) -> None:
        self.printed = frozenset(printed)

    def __call__(self, place: str, corrected: T, printed: T) -> T:
        """Return the printed or the corrected value."""
        return printed if place in self.printed else corrected


CORRECTED = Form()


def cross(a: Vector, b: Vector) -> Vector:
    """Return the cross product of vectors (3,) or of columns (3, n)."""
    (x, y, z), (u, v, w) = a, b
    return np.array([y * w - z * v, z * u - x * w, x * v - y * u])
