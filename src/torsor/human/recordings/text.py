"""Tables in text files: lines, fields that keep their places, and numbers in other units without a rounding error."""

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path

from torsor.base.errors import ModelError, describe
from torsor.base.files import read_limited

LARGEST = 200_000_000  # bytes of a recording; ten minutes of two plates at 1 kHz take half of it
MOST_LINES = 5_000_000  # 40 minutes at 2 kHz
MOST_NUMBERS = 50_000_000  # of a table: 400 MB
MOST_COLUMNS = 20_000  # of a table; full-body recordings have some hundred
_LINE = re.compile(r"\r\n|\r|\n")


def lines_of(path: Path, what: str) -> list[str]:
    """Return the lines of a text file; ``what`` it should be, such as "a .trc file", is said where it is binary."""
    content = read_limited(path, LARGEST)
    if b"\0" in content:
        raise ModelError("it has binary data", where=path.name, allowed=f"{what}, which is text", fix="export it again")
    if content.count(b"\n") + content.count(b"\r") > 2 * MOST_LINES:
        raise ModelError("it has too many lines", where=path.name, allowed=f"{MOST_LINES} or fewer")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")  # names with accents, from programs of Windows
    lines = _LINE.split(text)
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise ModelError("it is empty", where=path.name, allowed=what)
    return lines


def fields_of(line: str) -> list[str]:
    """Return the fields of a line: between tabs if it has any, so that empty fields keep their place, else blanks."""
    return [field.strip() for field in line.split("\t")] if "\t" in line.strip() else line.split()


def numbers_in(fields: Sequence[str], power: int = 0) -> list[float] | None:
    """Return the numbers of fields, each as ``number_in`` reads it; None if one is empty or needs a closer look."""
    if not all(fields):
        return None
    suffix = f"e{power}" if power else ""
    try:
        text = f"{suffix} ".join(fields) + suffix
        numbers = [float(each) for each in text.split()]
    except ValueError:
        return None
    return numbers if len(numbers) == len(fields) and "_" not in text else None  # a field may hold a blank


def text_of(value: float, power: int = 0) -> str:
    """Return the shortest text that ``number_in(text, -power)`` reads as the same number; "NaN" for NaN."""
    if value != value:
        return "NaN"
    shortest = repr(value + 0.0).removesuffix(".0")
    if not power:
        return shortest
    if "e" in shortest or power < 0:
        moved = format(Decimal(shortest).scaleb(power), "f")
        return (moved.rstrip("0").rstrip(".") if "." in moved else moved) or "0"
    sign, digits = ("-", shortest[1:]) if shortest[0] == "-" else ("", shortest)
    whole, _, part = digits.partition(".")
    before, after = (whole + part[:power].ljust(power, "0")).lstrip("0"), part[power:]
    return f"{sign}{before or '0'}.{after}" if after else f"{sign}{before}" if before else "0"


def at_line(path: Path, index: int) -> str:
    """Return the words for a line in a message; ``index`` counts from 0."""
    return f"{path.name}: line {index + 1}"


def unique_names(names: Iterable[str], path: Path, what: str) -> tuple[tuple[str, ...], list[str]]:
    """Return names that differ, and messages about those that occurred twice: the second "heel" becomes "heel_2"."""
    given = list(names)
    taken, found, messages = set(given), list[str](), list[str]()
    for name in given:
        if name not in found:
            found.append(name)
            continue
        k = 2
        while f"{name}_{k}" in taken or f"{name}_{k}" in found:
            k += 1
        found.append(f"{name}_{k}")
        text = f"two {what}s are named {name!r}; the later one is now {found[-1]!r}"
        messages.append(describe(text, where=path.name, fix="rename it in the file if it is another one"))
    return tuple(found), messages


def check_size(rows: int, columns: int, where: str) -> None:
    """Raise ModelError where a table has too many columns or numbers: a damaged file, or one made to fill memory."""
    if columns > MOST_COLUMNS or rows * columns > MOST_NUMBERS:
        text, allowed = f"{rows} rows of {columns} columns", f"{MOST_COLUMNS} columns and {MOST_NUMBERS} numbers"
        raise ModelError(text, where=where, allowed=allowed, fix="check the line of names, or split the file")


def check_width(fields: Sequence[str], width: int, where: str, what: str, least: int = 0) -> None:
    """Raise ModelError where a row has more fields than the table has columns, or fewer than ``least``."""
    if not least <= len(fields) <= width:
        fix = "export the file again, or remove the line"
        raise ModelError(f"it has {len(fields)} fields", where=where, allowed=f"{width}, as there are {what}", fix=fix)
