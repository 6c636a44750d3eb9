"""Reading of number tables in text files, with errors that name the file, line and column."""

import csv
import math
import re
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import add
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Array
from torsor.base.decimals import number_in
from torsor.base.errors import ModelError, listing
from torsor.base.files import read_limited

MAX_BYTES = 1_000_000_000  # largest file
MAX_LINES = 50_000_000
MAX_NUMBERS = 100_000_000  # largest table (800 MB)
MAX_COLUMNS = 20_000
MISSING = {"", "nan", "na", "n/a", "#n/a", "null", "none", "-nan", "+nan"}  # cells without a number, in lower case
INFINITE = {sign + word for sign in ("", "+", "-") for word in ("inf", "infinity")}
TABS_OR_BLANKS = ""  # separator: tabs if a line has any, so that empty cells keep their places, otherwise blanks
Head = str | int
PROBED_ROWS = 100  # number of rows that are checked for decimal commas
_LINE_END = re.compile(r"\r\n|\r|\n")
_DECIMAL_COMMA = re.compile(r"(?:^|;)\s*([+-]?\d+,\d+(?:[eE][+-]?\d+)?)\s*(?:;|$)")


class Columns(NamedTuple):
    """Columns of a table: ``values`` (N, k) by name, and the line numbers ``lines`` (N,) of the rows in the file."""

    values: dict[str, Array]
    lines: NDArray[np.intp]


class Row(NamedTuple):
    """A line of a table: its number in the file, and its text."""

    line: int
    text: str


@dataclass(frozen=True)
class NumberTable:
    """The rows of numbers in a text file, with ``width`` columns, and the headers ``heads`` if there are any.

    Example:
        >>> rows = [Row(7, "0;1,5"), Row(8, "1;")]
        >>> NumberTable("log.csv", rows, ";", 2, decimal_comma=True).numbers(missing=True).tolist()
        [[0.0, 1.5], [1.0, nan]]
        >>> NumberTable("log.csv", rows, ";", 2).numbers()
        Traceback (most recent call last):
        torsor.ModelError: log.csv: line 7, column 1: '1,5' is not a number; ...
    """

    where: str
    rows: Sequence[Row]
    separator: str
    width: int
    heads: Sequence[str] = field(default=())
    decimal_comma: bool = False

    def numbers(
        self,
        places: Sequence[int] | None = None,
        names: Sequence[Head] | None = None,
        *,
        powers: Sequence[int] = (),
        missing: bool = False,
        short: bool = False,
        fix: str = "complete or remove the line",
    ) -> Array:
        """Return the numbers (N, columns) at ``places`` (default: all columns), times 10**power of each column.

        If ``missing`` is True, cells without a number become NaN and infinities are kept; otherwise they raise
        ModelError. Rows with too few cells raise ModelError, or are padded with NaN if ``short`` is True. ``names`` and
        ``fix`` are used in messages.
        """
        places = range(self.width) if places is None else places
        names = (self.heads or places) if names is None else names
        check_size(len(self.rows), self.width, self.where)
        if self.rows and not any(powers):
            result = self._by_numpy(places)
            if result is not None and (missing or np.isfinite(result).all()):
                return result
        table = np.full((len(self.rows), len(places)), np.nan)
        powers = powers or [0] * len(places)
        suffixes = [f"e{power}" if power else "" for power in powers]
        for k, row in enumerate(self.rows):
            cells = self.cells(row)
            if short and len(cells) < self.width:
                cells += [""] * (self.width - len(cells))
            if max(places, default=0) >= len(cells) or min(places, default=0) < 0:
                j = next(j for j, place in enumerate(places) if not 0 <= place < len(cells))
                message = f"line {row.line} has {len(cells)} columns, but none for {names[j]!r}"
                counted = "; columns are counted from 0" if isinstance(names[j], int) else ""
                repair = f"complete the line, or remove it{counted}"
                raise ModelError(message, where=self.where, allowed=str(self.width), fix=repair)
            chosen = [cells[place] for place in places]
            numbers = _quick_numbers(chosen, suffixes) if "_" not in row.text and row.text.isascii() else None
            if numbers is None:
                parts = zip(chosen, powers, names, strict=True)
                numbers = [self._number(cell, power, row.line, name, missing, fix) for cell, power, name in parts]
            table[k] = numbers
            if len(cells) != self.width:
                repair = "write decimal points, not commas, and one cell per column"
                if len(cells) == self.width + 1 and not cells[-1]:
                    repair = "remove the delimiter at the end of the lines, or add one to the header"
                message = f"line {row.line} has {len(cells)} columns, but the table has {self.width}"
                raise ModelError(message, where=self.where, allowed=str(self.width), fix=repair)
        return table

    def cells(self, row: Row) -> list[str]:
        """Return the cells of a row without surrounding blanks."""
        cells = cells_of(row, self.separator, self.where)
        if self.separator == TABS_OR_BLANKS:
            while len(cells) > self.width and not cells[-1]:
                cells.pop()
        return [cell.replace(",", ".") for cell in cells] if self.decimal_comma else cells

    def _by_numpy(self, places: Sequence[int]) -> Array | None:
        """Return the numbers as read by NumPy, or None if a cell or the width of a row is unusual."""
        lines, width = [row.text for row in self.rows], self.width
        tabs = self.separator == TABS_OR_BLANKS and all("\t" in line for line in lines)
        separator = "\t" if tabs else self.separator or " "
        by_blanks = separator == " "
        if any((len(line.split()) if by_blanks else line.count(separator) + 1) != width for line in lines):
            return None
        if min(places, default=0) < 0 or max(places, default=0) >= width:
            return None
        try:
            return np.loadtxt(lines, delimiter=None if by_blanks else separator, usecols=places, ndmin=2, comments=None)
        except ValueError:  # a cell is not a number; reading cell by cell will find it
            return None

    def _number(self, cell: str, power: int, line: int, name: Head, missing: bool, fix: str) -> float:
        word = cell.lower()
        if missing and word in MISSING:
            return math.nan
        if missing and word in INFINITE:
            return float(word)
        try:
            value = number_in(cell, power)
        except ValueError:
            value = math.nan
        if math.isfinite(value):
            return value
        if word not in MISSING | INFINITE:
            fix = "write decimal points and numbers only; remove lines that are not rows"
        message = f"line {line}, column {name!r}: {reprlib.repr(cell)} is not a number"
        raise ModelError(message, value=name, where=self.where, allowed="a finite number with a decimal point", fix=fix)


def _quick_numbers(cells: Sequence[str], suffixes: Sequence[str]) -> list[float] | None:
    """Return finite numbers from cells with exponents appended, or None if a cell must be read individually."""
    try:
        numbers = [*map(float, map(add, cells, suffixes))]
    except ValueError:
        return None
    return numbers if math.isfinite(sum(numbers)) else None


def read_columns(
    path: Path,
    wanted: Mapping[str, Sequence[Head]],
    delimiter: str | None = None,
    *,
    missing: bool = False,
    fix: str = "complete or remove the line",
) -> Columns:
    r"""Return columns of a text file; ``wanted`` maps names to column headers, or column numbers from 0.

    By default, the ``delimiter`` is detected from the first line. Lines that begin with # are comments, but the header
    before the numbers may also begin with #. All rows must have the same number of cells. Cells without a number raise
    ModelError, or become NaN if ``missing`` is True.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     log = Path(folder, "log.csv")
        ...     _ = log.write_text("ms;elbow\n0;0\n10;\n", encoding="utf-8")
        ...     found = read_columns(log, {"q": ["elbow"]}, missing=True)
        >>> found.values["q"].tolist(), found.lines.tolist()
        ([[0.0], [nan]], [2, 3])
    """
    names = [item for chosen in wanted.values() for item in chosen]
    table = read_table(path, delimiter, names)
    if not table.rows:
        raise ModelError("it has no rows of numbers", where=table.where, fix="write a header line, and rows below it")
    places = [_place(name, table.heads, table.where) for name in names]
    numbers = table.numbers(places, names, missing=missing, fix=fix)
    numbers[np.isinf(numbers)] = np.nan
    ends = np.cumsum([len(chosen) for chosen in wanted.values()])[:-1]
    values = dict(zip(wanted, np.split(numbers, ends, axis=1), strict=True))
    return Columns(values, np.array([row.line for row in table.rows]))


def read_table(path: Path, delimiter: str | None = None, wanted: Sequence[Head] = ()) -> NumberTable:
    r"""Return the table of a text file whose header contains the ``wanted`` columns.

    The header is the first line that is not a comment or, if that line contains numbers, a comment before it.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     log = Path(folder, "log.csv")
        ...     _ = log.write_text("t,elbow [deg]\n0,0\n", encoding="utf-8")
        ...     read_table(log).heads
        ['t', 'elbow [deg]']
    """
    where = str(path)
    rows = text_rows(path, where, "a table with a header and rows of numbers")
    start = next((k for k, row in enumerate(rows) if not _is_comment(row)), len(rows))
    plain, comments = [row for row in rows if not _is_comment(row)], rows[:start][::-1]
    separator = separator_of((plain or rows)[0].text, delimiter, where)
    for row in plain[:PROBED_ROWS] if ";" in (plain or rows)[0].text else []:
        if found := _DECIMAL_COMMA.search(row.text):
            message, fix = f"line {row.line}: {found[1]!r} has a decimal comma", "export the table with decimal points"
            raise ModelError(message, value=found[1], where=where, allowed="numbers with decimal points", fix=fix)
    above = [cells_of(row._replace(text=row.text.lstrip("# \t")), separator, where) for row in comments]
    if not plain:
        return NumberTable(where, [], separator, len(above[0]), above[0])
    first = cells_of(plain[0], separator, where)
    if not _has_numbers(first, wanted):
        return NumberTable(where, plain[1:], separator, len(first), first)
    named = {name for name in wanted if isinstance(name, str)}
    fitting = [item for item in above if len(item) == len(first)]
    heads = max(fitting, key=lambda item: len(named & set(item)), default=[])
    return NumberTable(where, plain, separator, len(first), heads)


def text_rows(
    path: Path, where: str, what: str, *, max_bytes: int = MAX_BYTES, other_encoding: str | None = None
) -> list[Row]:
    """Return the nonblank lines of a UTF-8 file; ``what`` describes the expected content.

    Files that are not UTF-8 raise ModelError, unless ``other_encoding`` is given.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "walk.mot").write_bytes(bytes(range(256)))
        ...     text_rows(Path(folder, "walk.mot"), "walk.mot", "a table")
        Traceback (most recent call last):
        torsor.ModelError: walk.mot: it is not a text file; allowed: a table as UTF-8 text; fix: unpack it, export it \
again as text, or save it as UTF-8
    """
    content = read_limited(path, max_bytes)
    if content.count(b"\n") + content.count(b"\r") > 2 * MAX_LINES:
        raise ModelError("it has too many lines", where=where, allowed=f"{MAX_LINES} or fewer")
    try:
        if content.startswith(b"PK\x03\x04") or b"\0" in content:
            raise ValueError
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            if other_encoding is None:
                raise
            text = content.decode(other_encoding)
    except ValueError:
        fix = "unpack it, export it again as text, or save it as UTF-8"
        raise ModelError("it is not a text file", where=where, allowed=f"{what} as UTF-8 text", fix=fix) from None
    rows = [Row(k, line) for k, line in enumerate(_LINE_END.split(text), start=1) if line.strip()]
    if not rows:
        raise ModelError("it is empty", where=where, allowed=what)
    return rows


def separator_of(line: str, given: str | None = None, where: str = "", *, otherwise: str = " ") -> str:
    r"""Return the separator of a line: ``given``, a semicolon, tab or comma that it contains, or ``otherwise``.

    Example:
        >>> separator_of("t;q"), separator_of("t, q"), separator_of("t q")
        (';', ',', ' ')
    """
    if given is None:
        return next((item for item in (";", "\t", ",") if item in line), otherwise)
    if not isinstance(given, str) or len(given) != 1 or given in '\r\n"':
        raise ModelError(f"delimiter is {given!r}", value=given, where=where, allowed='one character, such as ";"')
    return given


def cells_of(row: Row, separator: str, where: str) -> list[str]:
    r"""Return the cells of a line without surrounding blanks.

    Example:
        >>> cells_of(Row(1, "1\t0.5\t\t2 "), TABS_OR_BLANKS, ""), cells_of(Row(1, "1   0.5 2"), TABS_OR_BLANKS, "")
        (['1', '0.5', '', '2'], ['1', '0.5', '2'])
    """
    if separator == TABS_OR_BLANKS:
        cells = row.text.split("\t") if "\t" in row.text.strip() else row.text.split()
    elif separator == " ":
        cells = row.text.split()
    else:
        try:
            cells = next(csv.reader([row.text], delimiter=separator), [])
        except csv.Error as error:
            raise ModelError(f"line {row.line}: {error}", where=where, fix="correct the line") from None
    return [cell.strip() for cell in cells]


def check_size(rows: int, columns: int, where: str) -> None:
    """Raise ModelError if a table has too many columns or numbers, as in a damaged or malicious file.

    Example:
        >>> check_size(10, 10**6, "walk.mot")
        Traceback (most recent call last):
        torsor.ModelError: walk.mot: 10 rows of 1000000 columns; allowed: 20000 columns and 100000000 numbers; \
fix: check the header line, or split the file
    """
    if columns > MAX_COLUMNS or rows * columns > MAX_NUMBERS:
        message, allowed = f"{rows} rows of {columns} columns", f"{MAX_COLUMNS} columns and {MAX_NUMBERS} numbers"
        raise ModelError(message, where=where, allowed=allowed, fix="check the header line, or split the file")


def _is_comment(row: Row) -> bool:
    return row.text.lstrip().startswith("#")


def _has_numbers(cells: list[str], columns: Sequence[Head]) -> bool:
    """Return whether the first line is a row of numbers, in the requested columns or in all columns."""
    if {name for name in columns if isinstance(name, str)} & set(cells):
        return False
    if cells == ["", *map(str, range(len(cells) - 1))]:  # headers of a table with an index, as written by pandas
        return False
    numbered = [cells[name] for name in columns if isinstance(name, int) and 0 <= name < len(cells)]
    return any(_is_number(cell) or cell.lower() in MISSING - {""} for cell in numbered or cells)


def _place(chosen: Head, heads: Sequence[str], where: str) -> int:
    """Return the index of a column."""
    if isinstance(chosen, int):
        return chosen
    if list(heads).count(chosen) != 1:
        what = "no column" if chosen not in heads else "several columns"
        allowed = listing(heads, most=20) if heads else "headers in the first line, or column numbers from 0"
        raise ModelError(f"{what} {chosen!r}", value=chosen, where=where, allowed=allowed)
    return list(heads).index(chosen)


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(number_in(text))
    except ValueError:
        return False
