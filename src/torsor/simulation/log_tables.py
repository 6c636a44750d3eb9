"""Tables of numbers in text files: columns by their heads or numbers; errors name the file, the line and the column."""

import csv
import math
import reprlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, listing
from torsor.base.files import read_limited

LOGS = "a log: a table as text (.csv), or a saved trajectory (.npz)"
LARGEST_LOG = 1_000_000_000  # bytes
MISSING = {"", "nan", "na", "n/a", "#n/a", "null", "none", "-nan", "+nan"}  # cells without a number, in small letters
INFINITE = {sign + word for sign in ("", "+", "-") for word in ("inf", "infinity")}
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

    The ``delimiter`` is found in the first line if it is not given. Lines that begin with # are comments; one before
    the numbers that has the heads may begin so. Every row must have as many cells as the first line. Cells without a
    number are refused, or NaN with ``missing``.

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
    names = [each for chosen in wanted.values() for each in chosen]
    heads, rows, separator = _split(_rows(path), delimiter, names, where)
    if not rows:
        raise ModelError("it has no rows of numbers", where=where, fix="write heads, and rows below them")
    places = [_place(each, heads, where) for each in names]
    width = len(heads) or len(_cells(rows[0], separator, where))
    table = _quick(rows, separator, places, width)
    if table is None or not (missing or np.isfinite(table).all()):
        table = _careful(rows, separator, places, names, width, missing, where)
    ends = np.cumsum([len(chosen) for chosen in wanted.values()])[:-1]
    values = dict(zip(wanted, np.split(table, ends, axis=1), strict=True))
    return Columns(values, np.array([row.line for row in rows]))


def heads_of(path: Path, delimiter: str | None = None) -> list[str]:
    r"""Return the heads of a table: the cells of its first line, or of a comment before it where that has numbers.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     log = Path(folder, "log.csv")
        ...     _ = log.write_text("t,elbow [deg]\n0,0\n", encoding="utf-8")
        ...     heads_of(log)
        ['t', 'elbow [deg]']
    """
    return _split(_rows(path), delimiter, (), str(path))[0]


def _rows(path: Path) -> list[Row]:
    """Return the lines of a text file that are not empty, with their numbers."""
    content = read_limited(path, LARGEST_LOG)
    try:
        if content.startswith(b"PK\x03\x04") or b"\0" in content[:4096]:
            raise ValueError
        text = content.decode("utf-8-sig")
    except ValueError:
        fix = "unpack it, export it as CSV, or save it as UTF-8"
        raise ModelError("it is no text", where=str(path), allowed="a table as UTF-8 text", fix=fix) from None
    rows = [Row(k, line) for k, line in enumerate(text.splitlines(), start=1) if line.strip()]
    if not rows:
        raise ModelError("it is empty", where=str(path), allowed="a table with heads and rows of numbers")
    return rows


def _delimiter(first: str, given: str | None, where: str) -> str:
    if given is None:
        return next((each for each in (";", "\t", ",") if each in first), " ")
    if not isinstance(given, str) or len(given) != 1 or given in '\r\n"':
        raise ModelError(f"delimiter is {given!r}", value=given, where=where, allowed='one character, such as ";"')
    return given


def _cells(row: Row, separator: str, where: str) -> list[str]:
    text = row.text.lstrip("# \t") if _is_comment(row) else row.text
    try:
        cells = text.split() if separator == " " else next(csv.reader([text], delimiter=separator), [])
    except csv.Error as error:
        raise ModelError(f"line {row.line}: {error}", where=where, fix="correct the line") from None
    return [cell.strip() for cell in cells]


def _is_comment(row: Row) -> bool:
    return row.text.lstrip().startswith("#")


def _split(
    rows: Sequence[Row], delimiter: str | None, wanted: Sequence[Head], where: str
) -> tuple[list[str], list[Row], str]:
    """Return the heads (none, if there are none), the rows of numbers, and the delimiter.

    Heads are in the first line that is no comment, or in a comment before it, if it has numbers.
    """
    start = next((k for k, row in enumerate(rows) if not _is_comment(row)), len(rows))
    plain, comments = [row for row in rows if not _is_comment(row)], rows[:start][::-1]
    separator = _delimiter((plain or rows)[0].text, delimiter, where)
    above = [_cells(row, separator, where) for row in comments]
    if not plain:
        return above[0], [], separator
    first = _cells(plain[0], separator, where)
    if not _has_numbers(first, wanted):
        return first, plain[1:], separator
    named = {each for each in wanted if isinstance(each, str)}
    fitting = [each for each in above if len(each) == len(first)]
    return max(fitting, key=lambda each: len(named & set(each)), default=[]), plain, separator


def _has_numbers(cells: list[str], wanted: Sequence[Head]) -> bool:
    """Return whether the first line is a row of numbers: in the columns that are wanted by their number, or in all."""
    if {each for each in wanted if isinstance(each, str)} & set(cells):
        return False
    if cells == ["", *map(str, range(len(cells) - 1))]:  # heads of a table with an index, as pandas writes them
        return False
    numbered = [cells[each] for each in wanted if isinstance(each, int) and 0 <= each < len(cells)]
    return any(_is_number(cell) or cell.lower() in MISSING - {""} for cell in numbered or cells)


def _place(chosen: Head, heads: list[str], where: str) -> int:
    """Return the number of a column."""
    if isinstance(chosen, int):
        return chosen
    if heads.count(chosen) != 1:
        what = "no column" if chosen not in heads else "several columns"
        allowed = listing(heads, most=20) if heads else "heads in the first line, or numbers of columns from 0"
        raise ModelError(f"{what} {chosen!r}", value=chosen, where=where, allowed=allowed)
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
        cells = _cells(row, separator, where)
        for j, place in enumerate(places):
            if not 0 <= place < len(cells):
                found = f"line {row.line} has {len(cells)} columns, and none for {names[j]!r}"
                count_from = "; columns are counted from 0" if isinstance(names[j], int) else ""
                raise ModelError(found, where=where, fix=f"complete the line, or remove it{count_from}")
            values[k, j] = _number(cells[place], row.line, names[j], missing, where)
        if len(cells) != width:
            fix = "write decimal points, not commas; one cell for each column"
            if len(cells) == width + 1 and not cells[-1]:
                fix = "remove the delimiter at the end of the lines, or add one to the heads"
            text = f"line {row.line} has {len(cells)} columns, and the first line {width}"
            raise ModelError(text, where=where, allowed=str(width), fix=fix)
    return values


def _number(cell: str, line: int, name: Head, missing: bool, where: str) -> float:
    if _is_number(cell):
        return float(cell)
    if cell.lower() not in MISSING | INFINITE:
        found = f"line {line}, column {name!r}: {reprlib.repr(cell)}"
        fix = "write decimal points, and numbers alone; remove lines that are no rows"
        raise ModelError(found, value=name, where=where, allowed="a finite number with a decimal point", fix=fix)
    if missing:
        return math.nan
    found = f"line {line}, column {name!r}: {cell!r} is no number"
    fix = 'complete or remove the line; missing = "skip" in the map of a log leaves it out'
    raise ModelError(found, where=where, allowed="a finite number with a decimal point", fix=fix)


def _is_number(text: str) -> bool:
    if not text.isascii() or "_" in text:  # Python reads 1_0 as 10, and digits of other scripts
        return False
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
