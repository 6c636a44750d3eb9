"""Which equations are as printed, which are corrected, and the vector product of all."""

from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

# The numbers of all equations of the documents, to check citations. The Lie-algebra notes have sections only.


def _chapter(number: int, first: int, last: int) -> list[str]:
    return [f"{number}.{k}" for k in range(first, last + 1)]


BARMAN = frozenset([*_chapter(2, 1, 12), *_chapter(3, 1, 95), *_chapter(4, 13, 19), *_chapter(5, 1, 10)])
GUARINO = frozenset(map(str, range(1, 37)))
KHALIL = frozenset(map(str, range(1, 113)))
HUA = frozenset(map(str, range(1, 53)))

SECTIONS = {
    "Barman 2020": frozenset(
        ["4.1", "4.1.1", "4.1.2", "4.1.3", "4.2", "4.2.1", "4.2.2", "5.1", "5.2", "5.2.1", "5.2.2", "5.3", "6.1", "6.2"]
    ),
    "Guarino Lo Bianco 2009": frozenset(["I", "II", "III", "IV", "V", "VI"]),
    "Khalil 2010": frozenset(
        [
            *("1", "2", "2.1", "2.2", "3", "3.1", "3.2", "3.3", "3.3.1", "3.3.2", "4", "5"),
            *("6", "6.1", "6.2", "6.3", "7", "7.1", "7.2", "7.3", "8"),
        ]
    ),
    "Hua et al. 2022": frozenset(["I", "II", "III", "IV", "V", "VI"]),
}
TABLES = {
    "Barman 2020": frozenset(["4.1", "4.2", "4.3", "4.4"]),
    "Guarino Lo Bianco 2009": frozenset(["I", "II", "III"]),
    "Khalil 2010": frozenset[str](),
    "Hua et al. 2022": frozenset(["I"]),
}
EQUATIONS = {"Barman 2020": BARMAN, "Guarino Lo Bianco 2009": GUARINO, "Khalil 2010": KHALIL, "Hua et al. 2022": HUA}


T = TypeVar("T")
Vector = NDArray[Any]  # real, or complex for derivatives by complex steps
Matrix = NDArray[Any]


class Form:
    """The equations of a document: corrected, but for the places that are to be as printed."""

    def __init__(self, printed: Iterable[str] = ()) -> None:
        self.printed = frozenset(printed)

    def __call__(self, place: str, corrected: T, printed: T) -> T:
        """Return one of two values."""
        return printed if place in self.printed else corrected


CORRECTED = Form()


def cross(a: Vector, b: Vector) -> Vector:
    """Return the vector product of vectors (3,) or of columns (3, n)."""
    (x, y, z), (u, v, w) = a, b
    return np.array([y * w - z * v, z * u - x * w, x * v - y * u])
