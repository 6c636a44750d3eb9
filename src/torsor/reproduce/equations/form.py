"""Which equations are as printed, and which are corrected."""

from collections.abc import Iterable
from typing import Any, TypeVar

from numpy.typing import NDArray

T = TypeVar("T")
Vector = NDArray[Any]  # real, or complex for derivatives by complex steps
Matrix = NDArray[Any]


class Form:
    """The equations of a document: corrected, but for the places that are to be as printed.

    Example:
        >>> corrected, printed = Form(), Form(["17"])
        >>> corrected("17", "R f", "R f'"), printed("17", "R f", "R f'")
        ('R f', "R f'")
    """

    def __init__(self, printed: Iterable[str] = ()) -> None:
        self.printed = frozenset(printed)

    def __call__(self, place: str, corrected: T, printed: T) -> T:
        """Return one of two values."""
        return printed if place in self.printed else corrected


CORRECTED = Form()
