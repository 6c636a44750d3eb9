"""An item of a document: the printed value, the computed value, and the verdict."""

import io
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.errors import ModelError
from torsor.base.figures import new_figure
from torsor.base.interrupts import Stoppable

if TYPE_CHECKING:
    from matplotlib.figure import Figure


ROUNDING = 1e-12  # relative difference of results of the same equations, which computers may round differently
BY_DIFFERENCES = 1e-9  # relative difference of results if one of them is computed by finite differences
MAX_NUMBERS_SHOWN = 6  # a longer vector is shortened to its first FIRST_NUMBERS_SHOWN
FIRST_NUMBERS_SHOWN = 3


class Kind(StrEnum):
    """The kind of an item."""

    ALGORITHM = "algorithm"
    TABLE = "table"
    FIGURE = "figure"
    NUMBER = "number"
    ERRATUM = "erratum"


class Verdict(StrEnum):
    """The result of a comparison between printed and computed values."""

    AGREES = "agrees"
    DIFFERS = "differs"  # for a stated reason
    MISSING = "not reproducible"  # the document lacks data
    DEFINES = "definition"  # a sketch of symbols, without numbers
    FAILS = "fails"


class Basis(StrEnum):
    """The kind of value that a row compares with the library. An item has the first kind among its rows."""

    NUMBER = "printed numbers"
    EQUATION = "equations"
    PROPERTY = "properties"
    NONE = "definitions"


class Row(NamedTuple):
    """One comparison: the printed value, the computed value and their difference, as text."""

    what: str
    printed: str
    ours: str
    difference: str
    verdict: Verdict | None  # None: the document prints no value
    basis: Basis = Basis.NONE
    predicted: str = ""  # the printed value according to the reason for a difference


@dataclass(frozen=True)
class Outcome:
    """The rows of an item and, if it has a figure, a function that draws it with matplotlib."""

    rows: Sequence[Row]
    draw: Callable[[Any], None] | None = None
    size: tuple[float, float] = (7.0, 4.5)  # figure size in inches


Compute = Callable[[], Outcome | list[Row]]


@dataclass(frozen=True)
class Item:
    """An algorithm, a table, a figure, a printed number or an erratum of a document.

    ``name`` is "document/item", and ``place`` its location in the document. ``compute`` returns an outcome, or only
    rows. ``reason`` explains differences, and ``missing`` names data that the document omits. ``seconds`` is the
    approximate run time of ``compute`` on one core with compiled kernels, and ``first`` includes compilation. ``basis``
    is the kind of value that the item compares.

    Example:
        >>> two = Item("notes/two", "two and two", Kind.NUMBER, "page 1", lambda: [number("sum", "4", 2 + 2)])
        >>> run(two).verdict
        <Verdict.AGREES: 'agrees'>
    """

    name: str
    title: str
    kind: Kind
    place: str
    compute: Compute
    reason: str = ""
    missing: str = ""
    seconds: float = 0.5
    first: float = 0.0
    basis: Basis = Basis.NONE

    @property
    def document(self) -> str:
        """The name of the document."""
        return self.name.partition("/")[0]


def number(
    what: str, printed: str, ours: float, unit: str = "", tolerance: float | None = None, predicted: float | None = None
) -> Row:
    """Return a row that compares a printed number with the computed one.

    ``tolerance`` is absolute; the default is half a unit in the last printed digit. ``predicted`` is the printed number
    that the item's reason predicts, as computed by the item. If the difference exceeds the tolerance, the row differs
    if the predicted number agrees with the printed one, and fails otherwise.
    """
    value = float(printed)
    limit = (_half_digit(printed) if tolerance is None else tolerance) * (1 + 1e-9)
    difference = ours - value
    state = Verdict.FAILS
    if abs(difference) <= limit:
        state = Verdict.AGREES
    elif predicted is not None and abs(predicted - value) <= limit:
        state = Verdict.DIFFERS
    relative = f"{100 * difference / value:+.2g} %" if value else f"{difference:+.2g}"
    expected = "" if predicted is None else _with(_digits(predicted, printed), unit)
    is_equal = abs(difference) <= ROUNDING * abs(value)
    texts = _with(printed, unit), _with(_digits(ours, printed), unit), "0" if is_equal else relative
    return Row(what, *texts, state, Basis.NUMBER, expected)


def same(what: str, published: ArrayLike, ours: ArrayLike, tolerance: float = ROUNDING, unit: str = "") -> Row:
    """Return a row that compares the document's equations with the library, relative to the largest component.

    A scalar ``published`` is compared with every value. If all published values are zero, the difference is absolute.
    """
    expected, values = _real(what, published), _real(what, ours)
    if expected.ndim and expected.shape != values.shape:
        message = f"the shapes are {expected.shape} in the document and {values.shape} in the library"
        raise ModelError(message, where=what, allowed="equal shapes, or a scalar in the document")
    size = np.abs(expected).max() or 1.0
    with np.errstate(invalid="ignore"):  # infinite values have a difference of NaN, which fails
        error = float(np.abs(values - expected).max() / size)
    state, shown = _bounded(error, tolerance)
    first, second = (_with(vector(each, tolerance * size), unit) for each in (expected, values))
    return Row(what, first, second, shown, state, Basis.EQUATION)


def zero(what: str, ours: ArrayLike, size: float = 1.0, tolerance: float = ROUNDING, unit: str = "") -> Row:
    """Return a row for values that are zero in the document, relative to ``size``. Rounding errors are not shown."""
    if not 0 < size < math.inf:
        raise ModelError(f"the size is {size:g}", value=size, where=what, allowed="a positive number")
    values = _real(what, ours)
    state, shown = _bounded(float(np.abs(values).max()) / size, tolerance)
    value = "0" if state is Verdict.AGREES else vector(values)
    return Row(what, _with("0", unit), _with(value, unit), shown, state, Basis.EQUATION)


def _real(what: str, values: ArrayLike) -> Array:
    """Return a nonempty array of real numbers, or raise ModelError."""
    array = np.asarray(values)
    if not array.size or np.iscomplexobj(array):
        found = "complex numbers" if array.size else "no values"
        raise ModelError(f"there are {found} to compare", where=what, allowed="one or more real numbers")
    return array.astype(float)


def _bounded(error: float, tolerance: float) -> tuple[Verdict, str]:
    """Return the verdict on a relative error, and its bound as text (the error itself depends on the computer)."""
    if not 0 < tolerance < 1:
        raise ModelError(f"the tolerance is {tolerance:g}", value=tolerance, allowed="a number between 0 and 1")
    if error <= tolerance:
        return Verdict.AGREES, f"below {power(tolerance)}"
    return Verdict.FAILS, power(error)


def power(value: float) -> str:
    """Return a small number as text with one digit, such as 1e-9."""
    return f"{value:.0e}".replace("e-0", "e-")


def numbers(
    what: str, printed: Sequence[str], ours: ArrayLike, unit: str = "", expected: Sequence[float] | None = None
) -> Row:
    """Return a row that compares several printed numbers with computed numbers, all of which must be equal.

    ``expected`` contains the values of printed symbols, such as π/2.
    """
    values = _real(what, ours)
    targets = np.array([float(each) for each in printed] if expected is None else expected)
    if not targets.shape == values.shape == (len(printed),):
        message = f"{len(printed)} numbers are printed, {targets.size} expected and {values.size} computed"
        raise ModelError(message, where=what, allowed="equal numbers of values")
    held = np.isfinite(values).all() and np.allclose(values, targets, rtol=0, atol=1e-12)
    shown = ", ".join(f"{x + 0.0:.6g}" for x in values.round(9))
    row = claim(what, _with(", ".join(printed), unit), _with(shown, unit), bool(held))
    return row._replace(basis=Basis.NUMBER)


def claim(what: str, printed: str, ours: str, holds: bool, predicted: bool | None = None) -> Row:
    """Return a row about a statement in the document.

    ``predicted`` is true if the statement holds when the item's reason applies, as computed by the item. Then a
    statement that does not hold differs instead of failing.
    """
    for flag in (holds, predicted):
        if not isinstance(flag, bool | np.bool_ | None):
            raise ModelError(f"{flag!r} is neither true nor false", value=flag, where=what, allowed="a bool")
    other = Verdict.DIFFERS if predicted else Verdict.FAILS
    expected = "" if predicted is None else printed if predicted else f"not {printed}"
    return Row(what, printed, ours, "", Verdict.AGREES if holds else other, Basis.PROPERTY, expected)


def lacking(what: str, printed: str, ours: str, basis: Basis = Basis.NUMBER) -> Row:
    """Return a row whose printed value cannot be computed, because the document lacks data (``missing``)."""
    return Row(what, printed, ours, "", Verdict.MISSING, basis)


def only(what: str, ours: str) -> Row:
    """Return a row that contains only the computed value, because the document prints none."""
    return Row(what, "", ours, "", None)


def verdict(item: Item, outcome: Outcome) -> Verdict:
    """Return the verdict of an item from those of its rows. Only figures that define symbols may have no rows."""
    states = {row.verdict for row in outcome.rows} - {None}
    if not states:
        return Verdict.DEFINES if item.kind is Kind.FIGURE and outcome.draw else Verdict.FAILS
    needs_reason = Verdict.DIFFERS in states and not (item.reason or item.missing)
    if Verdict.FAILS in states or needs_reason or (Verdict.MISSING in states and not item.missing):
        return Verdict.FAILS
    if item.missing:
        return Verdict.MISSING
    return Verdict.DIFFERS if Verdict.DIFFERS in states else Verdict.AGREES


def _half_digit(printed: str) -> float:
    mantissa, _, exponent = printed.lower().partition("e")
    digits = len(mantissa.partition(".")[2])
    return 0.5 * 10.0 ** (int(exponent or 0) - digits) if digits or exponent else 0.0


def _digits(value: float, printed: str) -> str:
    """Return the computed value with two more digits than printed."""
    mantissa, _, exponent = printed.lower().partition("e")
    significant = len(mantissa.replace(".", "").lstrip("-0")) or 1
    if float(value).is_integer() and "." not in mantissa:
        return f"{int(value)}" if not exponent else f"{value:g}"
    return f"{value:.{significant + 2}g}"


def _with(text: str, unit: str) -> str:
    return f"{text} {unit}" if unit else text


def vector(values: ArrayLike, least: float = 0.0) -> str:
    """Return a shortened vector as text. Values below ``least`` are rounding errors, and are shown as zero."""
    flat = np.ravel(values)
    is_long = len(flat) > MAX_NUMBERS_SHOWN
    numbers = flat[:FIRST_NUMBERS_SHOWN] if is_long else flat
    shown = ", ".join("0" if abs(x) <= least else f"{x + 0.0:.6g}" for x in numbers)
    return f"{shown}, ... ({len(flat)})" if is_long else shown


@dataclass(frozen=True)
class Result:
    """The result of an item; outcome and verdict are None if it was skipped."""

    item: Item
    outcome: Outcome | None
    verdict: Verdict | None
    seconds: float

    @property
    def rows(self) -> Sequence[Row]:
        """The rows; empty if the item was skipped."""
        return () if self.outcome is None else self.outcome.rows

    @property
    def basis(self) -> Basis:
        """The kind of value that the rows compare."""
        found = {row.basis for row in self.rows}
        return next((basis for basis in Basis if basis in found), Basis.NONE)

    @property
    def has_figure(self) -> bool:
        """Whether there is a figure to draw."""
        return self.outcome is not None and self.outcome.draw is not None

    def figure(self) -> "Figure":
        """Return the matplotlib figure (extra ``plot``)."""
        assert self.outcome is not None and self.outcome.draw is not None
        figure = new_figure(*self.outcome.size)
        self.outcome.draw(figure)
        return figure

    def png(self, dpi: int = 100) -> bytes:
        """Return the figure as PNG data."""
        file = io.BytesIO()
        self.figure().savefig(file, dpi=dpi, format="png", pil_kwargs={"optimize": True})
        return file.getvalue()

    @property
    def because(self) -> str:
        """The reason for a difference, or the missing data."""
        if self.verdict is Verdict.MISSING:
            return self.item.missing
        return self.item.reason if self.verdict is Verdict.DIFFERS else ""


def run(item: Item) -> Result:
    """Compute an item. Ctrl-C skips it. An error in the library is a failure, and its message is a row of the result.

    Example:
        >>> from torsor.reproduce.registry import find
        >>> run(find(["lie/two-link"])[0]).verdict.value
        'agrees'
    """
    if not hasattr(item, "compute"):
        raise ModelError(f"{item!r} is not an item", value=item, where="run", fix='run(find(["khalil/inverse"])[0])')
    start = time.perf_counter()
    try:
        with Stoppable():
            found = item.compute()
        outcome = found if isinstance(found, Outcome) else Outcome(found)
        state = verdict(item, outcome)
    except KeyboardInterrupt:
        return Result(item, None, None, time.perf_counter() - start)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        state, outcome = Verdict.FAILS, Outcome([Row("error", "", text, "", Verdict.FAILS)])
    return Result(item, outcome, state, time.perf_counter() - start)
