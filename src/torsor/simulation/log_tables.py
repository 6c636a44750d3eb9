"""Tables of numbers in text files: columns by their heads or numbers; errors name the file, the line and the column."""

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from torsor.arrays import Array
from torsor.errors import ModelError, describe, listing
from torsor.files import read_limited

LARGEST_LOG = 1_000_000_000  # bytes
MISSING = {"", "nan", "na", "n/a", "null", "none", "-nan", "+nan"}  # cells that have no number, in small letters
Head = str | int


class Columns(NamedTuple):
    """Columns of a table: ``values`` (N, k) for each name, and the ``lines`` (N,) of the file that the rows are in."""

    values: dict[str, Array]
    lines: NDArray[np.intp]


class Row(NamedTuple):
    """A line of a table: its number in the file, and its text."""

    line: int
    text: str


def read_columns(
    path: Path, wanted: Mapping[str, Sequence[Head]], delimiter: str | None = None, *, missing: bool = False
) -> Columns:
    r"""Return columns of a text file; ``wanted`` has heads, or numbers of columns from 0, for each name.

    The ``delimiter`` is found in the first line if it is not given. Lines that begin with # are comments; one that has
    the heads may begin so. Every row must have as many cells as the first line. Cells without a number are refused, or
    NaN with ``missing``.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     log = Path(folder, "log.csv")
        ...     _ = log.write_text("ms;elbow\n0;0\n10;\n", encoding="utf-8")
        ...     found = read_columns(log, {"q": ["elbow"]}, missing=True)
        >>> found.values["q"].tolist(), found.lines.tolist()
        ([[0.0], [nan]], [2, 3])
    """
    where = str(path)
    rows = _rows(path)
    separator = _delimiter(rows[0].text, delimiter, where)
    heads, rows = _split(rows, separator, any(isinstance(each, str) for chosen in wanted.values() for each in chosen))
    if not rows:
        raise ModelError(describe("it has no rows of numbers", where=where))
    names = [each for chosen in wanted.values() for each in chosen]
    places = [_place(each, heads, where) for each in names]
    width = len(heads) or len(_cells(rows[0].text, separator))
    table = _quick(rows, separator, places, width)
    if table is None or not (missing or np.isfinite(table).all()):
        table = _careful(rows, separator, places, names, width, missing, where)
    ends = np.cumsum([len(chosen) for chosen in wanted.values()])[:-1]
    values = dict(zip(wanted, np.split(table, ends, axis=1), strict=True))
    return Columns(values, np.array([row.line for row in rows]))


def heads_of(path: Path, delimiter: str | None = None) -> list[str]:
    r"""Return the heads of a table: the cells of its first line, none where that has numbers.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     log = Path(folder, "log.csv")
        ...     _ = log.write_text("t,elbow [deg]\n0,0\n", encoding="utf-8")
        ...     heads_of(log)
        ['t', 'elbow [deg]']
    """
    rows = _rows(path)
    return _split(rows[:1], _delimiter(rows[0].text, delimiter, str(path)), False)[0]


def _rows(path: Path) -> list[Row]:
    """Return the lines of a text file that are not empty, with their numbers."""
    try:
        text = read_limited(path, LARGEST_LOG).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ModelError(describe("it is no text", where=str(path), allowed="a table as UTF-8 text")) from None
    rows = [Row(k, line) for k, line in enumerate(text.splitlines(), start=1) if line.strip()]
    if not rows:
        raise ModelError(describe("it is empty", where=str(path)))
    return rows


def _delimiter(first: str, given: str | None, where: str) -> str:
    if given is None:
        return next((each for each in (";", "\t", ",") if each in first), " ")
    if not isinstance(given, str) or len(given) != 1:
        raise ModelError(describe(f"delimiter is {given!r}", where=where, allowed="one character"))
    return given


def _cells(text: str, separator: str) -> list[str]:
    cells = text.split() if separator == " " else next(csv.reader([text], delimiter=separator))
    return [cell.strip() for cell in cells]


def _split(rows: Sequence[Row], separator: str, named: bool) -> tuple[list[str], list[Row]]:
    """Return the heads (none, if no column is named and the first line has numbers), and the rows of numbers."""
    first = _cells(rows[0].text.lstrip("#").strip(), separator)
    has_heads = named or not _is_number(first[0])
    rest = [row for row in rows[int(has_heads) :] if not row.text.lstrip().startswith("#")]
    return first if has_heads else [], rest


def _place(chosen: Head, heads: list[str], where: str) -> int:
    """Return the number of a column."""
    if isinstance(chosen, int):
        return chosen
    if heads.count(chosen) != 1:
        what = "no column" if chosen not in heads else "several columns"
        raise ModelError(describe(f"{what} {chosen!r}", where=where, allowed=listing(heads, most=20)))
    return heads.index(chosen)


def _quick(rows: Sequence[Row], separator: str, places: Sequence[int], width: int) -> Array | None:
    """Return the numbers (N, columns) by NumPy's reader, or None where a cell or the width of a row is not as usual."""
    by_space = separator == " "
    if any((len(row.text.split()) if by_space else row.text.count(separator) + 1) != width for row in rows):
        return None
    if min(places, default=0) < 0 or max(places, default=0) >= width:
        return None
    lines = [row.text for row in rows]
    try:
        return np.loadtxt(lines, delimiter=None if by_space else separator, usecols=places, ndmin=2, comments=None)
    except ValueError:  # a cell is no number: the careful reader says which
        return None


def _careful(
    rows: Sequence[Row],
    separator: str,
    places: Sequence[int],
    names: Sequence[Head],
    width: int,
    missing: bool,
    where: str,
) -> Array:
    """Return the numbers (N, columns) cell by cell, or raise the ModelError of the first one that is none."""
    values = np.empty((len(rows), len(places)))
    for k, row in enumerate(rows):
        cells = _cells(row.text, separator)
        for j, place in enumerate(places):
            if not 0 <= place < len(cells):
                found = f"line {row.line} has {len(cells)} columns, and none for {names[j]!r}"
                fix = "complete the line, or remove it"
                raise ModelError(describe(found, where=where, fix=fix))
            values[k, j] = _number(cells[place], row.line, names[j], missing, where)
        if len(cells) != width:
            fix = "write decimal points, not commas; one cell for each column"
            text = f"line {row.line} has {len(cells)} columns, and the first line {width}"
            raise ModelError(describe(text, where=where, allowed=str(width), fix=fix))
    return values


def _number(cell: str, line: int, name: Head, missing: bool, where: str) -> float:
    if _is_number(cell):
        return float(cell)
    if cell.lower() not in MISSING:
        found = f"line {line}, column {name!r}: {cell!r}"
        raise ModelError(describe(found, where=where, allowed="a finite number with a decimal point"))
    if missing:
        return math.nan
    found = f"line {line}, column {name!r}: {cell!r} is no number"
    fix = 'complete or remove the line; missing = "skip" in the map of a log leaves it out'
    raise ModelError(describe(found, where=where, allowed="a finite number with a decimal point", fix=fix))


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
