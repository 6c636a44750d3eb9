"""Errata: equations as printed and as corrected, and the computations that decide between both forms."""

import csv
import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from torsor.base.errors import ModelError
from torsor.reproduce.equations.form import CORRECTED, Form

MAX_CORRECTED_ERROR = 1e-9  # maximum relative error of an equation that holds, including complex steps and differences
MIN_PRINTED_ERROR = 1e-6  # minimum relative error of an equation that does not hold


class Decision(NamedTuple):
    """Relative errors of the corrected and printed forms with respect to an independent result."""

    corrected: float
    printed: float

    @property
    def is_clear(self) -> bool:
        """Whether the corrected form holds and the printed form does not."""
        return self.corrected <= MAX_CORRECTED_ERROR and MIN_PRINTED_ERROR <= self.printed < math.inf


class Category(StrEnum):
    """The class of an erratum."""

    MISPRINT = "misprint"
    OMISSION = "omission"
    EXTRACTION = "extraction"  # a probable loss in the extraction of the text that was read


@dataclass(frozen=True)
class Erratum:
    """An erratum of a document.

    ``name`` is the item name ("khalil/eq-57"), ``place`` the equation or section, and ``truth`` the independent result
    with which ``decide`` compares both forms. An editorial erratum has no such computation.

    Example:
        >>> forms = "2 + 2 = 5", "2 + 2 = 4", "counting"
        >>> wrong = Erratum("notes/eq-1", Category.MISPRINT, "eq. 1", *forms, lambda: decide(2 + 2, 4, 5))
        >>> wrong.decide().is_clear
        True
    """

    name: str
    category: Category
    place: str
    printed: str
    corrected: str
    truth: str
    decide: Callable[[], Decision] | None = None


def read_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a tab-separated table, by column header."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def error(found: Any, expected: Any) -> float:
    """Return the largest difference relative to the largest expected component (or to 1 if all are zero).

    For tuples of arrays, the largest error is returned.
    """
    if isinstance(expected, tuple):
        return float(np.max([error(a, b) for a, b in zip(found, expected, strict=True)]))  # max() would ignore NaN
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape:
        raise ModelError(f"the shape is {found.shape}", where="erratum", allowed=str(expected.shape))
    return float(np.abs(found - expected).max() / (np.abs(expected).max() or 1.0))


def decide(truth: Any, corrected: Any, printed: Any) -> Decision:
    """Return the errors of two forms."""
    return Decision(error(corrected, truth), error(printed, truth))


def compare(place: str, truth: Any, evaluate: Callable[[Form], Any]) -> Decision:
    """Return the errors of the corrected equations, and of the equations with one of them as printed."""
    return decide(truth, evaluate(CORRECTED), evaluate(Form([place])))


def derivative(function: Callable[[float], Any], h: float) -> Any:
    """Return the derivative at 0 by fourth-order differences."""
    at = [np.asarray(function(k * h)) for k in (-2, -1, 1, 2)]
    return (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * h)


def by_place(decision: Callable[[str], Decision], *places: str) -> dict[str, Callable[[], Decision]]:
    """Return decisions by erratum name, each with one equation as printed."""
    return {f"eq-{place.replace(' ', '-')}": partial(decision, place) for place in places}


def words(holds: bool, printed_holds: bool) -> Decision:
    """Return the decision on a statement, whose error is 0 if it is true and 1 if it is false."""
    return Decision(float(not holds), float(not printed_holds))
