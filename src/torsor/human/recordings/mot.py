"""Motion and storage files (.mot, .sto): tables over time of OpenSim 2 to 4 and of SIMM."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, describe, warn
from torsor.base.files import replacing
from torsor.formats.decimals import number_in
from torsor.human.recordings.motion_table import MotionTable
from torsor.human.recordings.text import (
    at_line,
    check_size,
    check_width,
    fields_of,
    lines_of,
    numbers_in,
    text_of,
    unique_names,
)

MOT_KIND = "a .mot or .sto file (a table over time)"
MAX_MOT_HEADER_LINES = 1000  # within which the table must begin
_SIMM_KEYS = ("datacolumns", "datarows", "range", "name")  # of the header of SIMM, "key value"
# Types of columns whose fields hold several numbers, x,y,z.
_PARTS = {"vec3": 3, "quaternion": 4, "spatialvec": 6, "vec2": 2, "vec4": 4, "vec5": 5, "vec6": 6, "unitvec3": 3}
_LETTERS = {3: "xyz"}


class _MotHeader(NamedTuple):
    """The first line, the values by key (in lower case), and the index of the line of names."""

    title: str
    values: dict[str, str]
    names_at: int


def read_mot(path: str | Path) -> MotionTable:
    """Return the table in a .mot or .sto file, with its values as they are written.

    Headers of OpenSim 2, 3 and 4 and of SIMM are read; the counts in them are not trusted, the table decides. A column
    of vectors (DataType=Vec3) becomes three: name_x, name_y and name_z; of other types name_1, name_2 and so on.
    Columns in another order than time first are sorted so.
    """
    path = Path(path)
    lines = lines_of(path, MOT_KIND)
    header = _mot_header(path, lines)
    parts = _parts(path, header)
    names = fields_of(lines[header.names_at])
    while names and not names[-1]:
        names.pop()
    table = _rows(path, lines, header.names_at + 1, names, parts)
    _compare_rows(path, header.values, len(table))
    at = next((k for k, name in enumerate(names) if name.lower() in ("time", "t")), None)
    if at is None:
        times = _times_of_range(path, header, len(table))
    else:
        times, table = table[:, at, 0], np.delete(table, at, axis=1)
        del names[at]
    if not names:
        raise ModelError(describe("there is no column but time", where=path.name, allowed=MOT_KIND))
    full = names if parts == 1 else [f"{name}_{each}" for name in names for each in _suffixes(parts)]
    unique, messages = unique_names(full, path, "column")
    degrees = {"yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}
    in_degrees = degrees.get(header.values.get("indegrees", "").lower())
    found = MotionTable(unique, times, table.reshape(len(table), -1), in_degrees, header.title, path.name)
    for message in messages:
        warn(message)
    return found


def _mot_header(path: Path, lines: Sequence[str]) -> _MotHeader:
    """Return the header: all before "endheader", or before the first line that begins with "time"."""
    title, values = "", dict[str, str]()
    for k, line in enumerate(lines[:MAX_MOT_HEADER_LINES]):
        text = line.strip()
        if text.lower() == "endheader":
            return _MotHeader(title, values, _next_line(path, lines, k + 1))
        if fields_of(line)[:1] and fields_of(line)[0].lower() == "time" and "=" not in text:
            return _MotHeader(title, values, k)
        key, equals, value = text.partition("=")
        words = text.split(None, 1)
        if equals and re.fullmatch(r"[A-Za-z_]\w*\s*", key):
            values[key.strip().lower()] = value.strip()
            title = title or values.get("name", "")
        elif words and words[0].lower() in _SIMM_KEYS:
            values[words[0].lower()] = words[1].strip() if len(words) > 1 else ""
            title = title or values.get("name", "")
        elif text and not title and k == 0:
            title = text
    fix = "check that it is one; the header ends with the line endheader"
    raise ModelError(
        describe("there is neither endheader nor a line of names", where=path.name, allowed=MOT_KIND, fix=fix)
    )


def _next_line(path: Path, lines: Sequence[str], start: int) -> int:
    for k in range(start, len(lines)):
        if lines[k].strip():
            return k
    raise ModelError(describe("nothing follows endheader", where=path.name, fix="copy or export the file again"))


def _parts(path: Path, header: _MotHeader) -> int:
    """Return how many numbers a field holds."""
    kind = header.values.get("datatype", "double").lower()
    if kind in ("double", "float", ""):
        return 1
    if kind not in _PARTS:
        allowed = f"double, {', '.join(_PARTS)}"
        raise ModelError(describe(f"DataType is {kind[:40]!r}", where=path.name, allowed=allowed))
    return _PARTS[kind]


def _suffixes(parts: int) -> Sequence[str]:
    return _LETTERS.get(parts) or [str(k) for k in range(1, parts + 1)]


def _rows(path: Path, lines: Sequence[str], first: int, names: Sequence[str], parts: int) -> Array:
    """Return the numbers (K, columns, parts); a time has only the first part."""
    rows = [k for k in range(first, len(lines)) if lines[k].strip()]
    check_size(len(rows), len(names) * parts, path.name)
    table = np.full((len(rows), len(names), parts), np.nan)
    for row, k in enumerate(rows):
        where, fields = at_line(path, k), fields_of(lines[k])
        while len(fields) > len(names) and not fields[-1]:
            fields.pop()
        if len(fields) < len(names) and k == rows[-1]:
            fix = "copy or export it again; the rows before it are used"
            warn(describe("the file ends within this row", where=where, fix=fix))
            table = table[:-1]
            break
        check_width(fields, len(names), where, "names of columns", len(names))
        try:
            if parts == 1:
                quick = numbers_in(fields)
                table[row, :, 0] = quick or [number_in(field) if field else np.nan for field in fields]
            else:
                for column, field in enumerate(fields):
                    numbers = [number_in(each) for each in re.sub(r"[~\[\]()\s]", "", field).split(",") if each]
                    if len(numbers) not in (0, 1, parts) or (len(numbers) == 1 and names[column].lower() != "time"):
                        raise ValueError(f"{field[:40]!r} is not {parts} numbers")
                    table[row, column, : len(numbers)] = numbers
        except ValueError as error:
            raise ModelError(describe(str(error), where=where, allowed="numbers, NaN where missing")) from None
    if not len(table):
        raise ModelError(describe("there are no rows", where=path.name, allowed=MOT_KIND))
    return table


def _compare_rows(path: Path, values: Mapping[str, str], rows: int) -> None:
    declared = values.get("nrows", values.get("datarows", ""))
    # More rows than declared are no loss; wrong numbers of columns are so common that they say nothing.
    if declared.isascii() and declared.isdigit() and len(declared) < 12 and int(declared) > rows:
        text = f"the header says {declared} rows, the table has {rows}, which are used"
        warn(describe(text, where=path.name, fix="copy or export the file again if rows are missing"))


def _times_of_range(path: Path, header: _MotHeader, rows: int) -> Array:
    """Return equally spaced times within the range that a header of SIMM gives."""
    try:
        first, last = (number_in(each) for each in header.values.get("range", "").split())
    except ValueError:
        fix = "name a column time"
        raise ModelError(describe("there is no column of times", where=path.name, allowed=MOT_KIND, fix=fix)) from None
    return np.linspace(first, last, rows)


def write_mot(table: MotionTable, path: str | Path) -> None:
    """Write a table as a .mot or .sto file of OpenSim; numbers read back as the same float64."""
    path = Path(path)
    for name in table.names:
        if re.search(r"\s", name):
            raise ModelError(describe(f"column {name!r}", where=path.name, allowed="names without blanks"))
    head = [
        re.sub(r"[\t\r\n=]", " ", table.title) or path.stem,
        "version=1",
        f"nRows={len(table)}",
        f"nColumns={len(table.names) + 1}",
        *([] if table.in_degrees is None else [f"inDegrees={'yes' if table.in_degrees else 'no'}"]),
        "endheader",
        "\t".join(["time", *table.names]),
    ]
    rows = (
        "\t".join(map(text_of, [time, *row]))
        for time, row in zip(table.times.tolist(), table.values.tolist(), strict=True)
    )
    with replacing(path) as part:
        part.write_text("\n".join([*head, *rows, ""]), encoding="utf-8", newline="\n")
