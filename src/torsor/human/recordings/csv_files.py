"""Tables separated by commas (.csv): columns that a map names become markers, ground forces or a table over time."""

import csv
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import indices_of, one_of, positive, table
from torsor.base.errors import ModelError, describe, warn
from torsor.base.files import replacing
from torsor.formats.decimals import number_in
from torsor.human.recordings.axes import OPENSIM
from torsor.human.recordings.force_columns import forces_of
from torsor.human.recordings.markers import UNITS, Markers
from torsor.human.recordings.motion_table import MotionTable
from torsor.human.recordings.recording import Recording
from torsor.human.recordings.sampled import checked_names
from torsor.human.recordings.text import at_line, check_size, check_width, lines_of, text_of, unique_names
from torsor.human.recordings.trc import POWERS

CSV_KIND = "a .csv file with a line of names"
_COORDINATE = re.compile(r"(.+)[ ._]([xyz])", re.IGNORECASE)


def read_csv(
    path: str | Path,
    columns: Mapping[str, str] | None = None,
    *,
    unit: str | None = None,
    axes: str = OPENSIM,
    rate: float | None = None,
) -> Recording:
    """Return what a .csv file holds; ``columns`` is a map {column of the file: name}, by default all as they are.

    One column is named "time" (s), or ``rate`` (Hz) is given. Names that end with x, y and z, as in "R.Heel x",
    become a marker, in ``unit`` ("m", "cm" or "mm"), which must then be given. Names such as ground_force_r_vx become
    ground forces. All other columns are the table. Separators are commas, semicolons or tabs; with semicolons, commas
    in numbers are decimal points.
    """
    path = Path(path)
    lines = lines_of(path, CSV_KIND)
    separator = max(",;\t", key=lines[0].count)
    heads = [each.strip() for each in next(csv.reader([lines[0]], delimiter=separator))]
    names, messages = unique_names([head or f"column {k + 1}" for k, head in enumerate(heads)], path, "column")
    # Checked before the unit of each column is known: a marker's numbers are converted without a rounding error.
    for message in messages:
        warn(message)
    wanted = {name: name for name in names} if columns is None else table(columns, path.name, "columns")
    at = indices_of(list(wanted), names, path.name, "column")
    new = list(checked_names(list(wanted.values()), path.name, "column"))
    markers = _markers(new)
    if markers and unit is None:
        text, fix = f"columns of the marker {next(iter(markers))!r}, without a unit", 'say it: unit="mm"'
        raise ModelError(describe(text, where=path.name, allowed=", ".join(UNITS), fix=fix))
    power = 0 if unit is None else POWERS[one_of(unit, UNITS, path.name, "unit")]
    of_markers = {k for triple in markers.values() for k in triple}
    powers = [power if k in of_markers else 0 for k in range(len(new))]
    values = _values(path, lines, separator, at, powers, len(heads))
    times = _times(path, new, values, rate)
    kept = [k for k, name in enumerate(new) if k not in of_markers and name.lower() != "time"]
    rest = (
        MotionTable(tuple(new[k] for k in kept), times, values[:, kept], None, path.stem, path.name) if kept else None
    )
    found = None
    if markers:
        positions = values[:, [k for triple in markers.values() for k in triple]].reshape(len(times), -1, 3)
        found = Markers(tuple(markers), times, positions, rate or 0.0, axes, unit or "m", path.name)
    return Recording(path.name, found, None if rest is None else forces_of(rest, axes), rest)


def write_csv(table: MotionTable, path: str | Path) -> None:
    """Write a table with a column of times as .csv; numbers read back as the same float64."""
    with replacing(Path(path)) as part, part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["time", *table.names])
        for time, row in zip(table.times.tolist(), table.values.tolist(), strict=True):
            writer.writerow(map(text_of, [time, *row]))


def _markers(names: list[str]) -> dict[str, list[int]]:
    """Return the columns x, y and z of each marker, by its name."""
    found: dict[str, dict[str, int]] = {}
    for k, name in enumerate(names):
        matched = _COORDINATE.fullmatch(name)
        if matched and "torque" not in name and "moment" not in name:
            found.setdefault(matched[1], {})[matched[2].lower()] = k
    return {name: [axes[each] for each in "xyz"] for name, axes in found.items() if len(axes) == 3}


def _values(path: Path, lines: list[str], separator: str, at: list[int], powers: list[int], width: int) -> Array:
    rows = [k for k in range(1, len(lines)) if lines[k].strip()]
    check_size(len(rows), width, path.name)
    if not rows:
        raise ModelError(describe("there are no rows", where=path.name, allowed=CSV_KIND))
    found = np.full((len(rows), len(at)), np.nan)
    for row, k in enumerate(rows):
        fields = next(csv.reader([lines[k]], delimiter=separator))
        check_width(fields, width, at_line(path, k), "columns", width)
        for column, index in enumerate(at):
            field = fields[index].strip()
            if not field:
                continue
            try:
                found[row, column] = number_in(field.replace(",", ".") if separator == ";" else field, powers[column])
            except ValueError as error:
                raise ModelError(describe(str(error), where=at_line(path, k), allowed="numbers")) from None
    return found


def _times(path: Path, names: list[str], values: Array, rate: float | None) -> Array:
    named = [k for k, name in enumerate(names) if name.lower() == "time"]
    if named:
        return values[:, named[0]]
    if rate is None:
        fix = 'name the column in the map, {"its name": "time"}, or give rate=100.0 (Hz)'
        raise ModelError(describe("no column is named time", where=path.name, fix=fix))
    return np.arange(len(values)) / positive(rate, path.name, "rate (Hz)")
