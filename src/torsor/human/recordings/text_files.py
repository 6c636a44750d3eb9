"""Text files of recordings: tables (.mot, .sto), markers (.trc) and comma-separated columns (.csv)."""

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import indices_of, one_of, positive, table
from torsor.base.decimals import number_in, text_of
from torsor.base.errors import ModelError, warn
from torsor.base.files import replacing
from torsor.base.number_tables import TABS_OR_BLANKS, NumberTable, Row, cells_of, check_size, separator_of, text_rows
from torsor.human.recordings.axes import OPENSIM
from torsor.human.recordings.recording import (
    MAX_BYTES,
    UNITS,
    GroundForces,
    Markers,
    MotionTable,
    Recording,
    checked_names,
    checked_times,
    rate_of,
    unique_names,
)


def _recorded_rows(path: Path, what: str) -> list[Row]:
    """Return the lines of a file, which may be in Latin-1 because Windows programs write accented names."""
    return text_rows(path, path.name, what, max_bytes=MAX_BYTES, other_encoding="latin-1")


def _fields(row: Row) -> list[str]:
    return cells_of(row, TABS_OR_BLANKS, "")


# Ground forces as columns of a table, recognised by name and written with OpenSim names.

_SIDES = {"r": "right", "l": "left", "right": "right", "left": "left"}
_SIDE_LETTERS = {"right": "r", "left": "l"}


def forces_of(table: MotionTable, axes: str = OPENSIM) -> GroundForces | None:
    """Return the ground forces in a table, or None if there are none.

    A plate or foot has nine columns: a name with the endings vx, vy, vz (N) and px, py, pz (m), and the same name with
    "torque" or "moment" instead of "force" and the endings x, y, z (N m). Examples are ground_force_r_vx with
    ground_torque_r_x, and 1_ground_force_vx with 1_ground_torque_x. Without torques, the free moments are 0.
    """
    stems = [name[:-2] for name in table.names if name.endswith("vx") and "force" in name.lower()]
    stems = [stem for stem in stems if all(f"{stem}{end}" in table.names for end in _ENDS)]
    if not stems:
        return None
    six = table.only([f"{stem}{end}" for stem in stems for end in _ENDS]).values.reshape(len(table), -1, 2, 3)
    forces, centers, moments = six[:, :, 0], six[:, :, 1], np.zeros_like(six[:, :, 0])
    for k, stem in enumerate(stems):
        torque = next((names for names in _torques(stem) if set(names) <= set(table.names)), None)
        if torque is not None:
            moments[:, k] = table.only(torque).values
    return GroundForces(_names(stems), table.times, forces, centers, moments, axes=axes, source=table.source)


def table_of(forces: GroundForces) -> MotionTable:
    """Return ground forces as OpenSim columns: ground_force_r_vx, ..., ground_torque_r_z; NaN becomes 0."""
    names, columns = list[str](), []
    for k, name in enumerate(forces.names):
        short = _SIDE_LETTERS.get(name, re.sub(r"\W+", "_", name))
        names += [f"ground_force_{short}_{kind}{axis}" for kind in "vp" for axis in "xyz"]
        names += [f"ground_torque_{short}_{axis}" for axis in "xyz"]
        columns += [values[:, k] for values in (forces.forces, forces.centers, forces.moments)]
    # OpenSim cannot read NaN; without a force, the centre of pressure has no effect.
    return MotionTable(tuple(names), forces.times, np.nan_to_num(np.hstack(columns)), False, "ground forces")


_ENDS = tuple(f"{kind}{axis}" for kind in "vp" for axis in "xyz")


def _torques(stem: str) -> list[list[str]]:
    """Return the possible torque names."""
    others = [re.sub("force", word, stem, flags=re.IGNORECASE) for word in ("torque", "moment")]
    return [[f"{other}{kind}{axis}" for axis in "xyz"] for other in (*others, stem) for kind in ("", "m", "t")]


def _names(stems: Sequence[str]) -> tuple[str, ...]:
    feet = list[str]()
    for stem in stems:
        bare = re.sub(r"ground|force|grf|calcn", "", stem, flags=re.IGNORECASE).strip("_ .").lower()
        bare = _SIDES.get(bare, f"plate {bare}" if bare.isdigit() else bare or "plate")
        feet.append(bare)
    if sorted(feet) == ["left", "plate"]:  # in older OpenSim files, names of the right foot have no prefix
        feet[feet.index("plate")] = "right"
    return tuple(feet) if len(set(feet)) == len(feet) else tuple(stem.strip("_ .") for stem in stems)


# Motion and storage files (.mot, .sto): tables over time from OpenSim 2 to 4 and SIMM.

MOT_KIND = "a .mot or .sto file (a table over time)"
MAX_MOT_HEADER_LINES = 1000  # maximum number of lines before the table
_SIMM_KEYS = ("datacolumns", "datarows", "range", "name")  # keys of the SIMM header, in lines "key value"
# Number of comma-separated values per field, by column type.
_PARTS = dict.fromkeys(("double", "float", ""), 1) | {
    "vec3": 3, "quaternion": 4, "spatialvec": 6, "vec2": 2, "vec4": 4, "vec5": 5, "vec6": 6, "unitvec3": 3,
}  # fmt: skip


def read_mot(path: str | Path) -> MotionTable:
    """Return the table in a .mot or .sto file, with unconverted values.

    Headers of OpenSim 2, 3 and 4 and of SIMM are supported. The row and column counts in headers are ignored. A column
    of vectors (DataType=Vec3) becomes three columns name_x, name_y and name_z; vectors of other types become name_1,
    name_2 and so on. The time column may be at any position.
    """
    path = Path(path)
    rows = _recorded_rows(path, MOT_KIND)
    title, values, names_at = _mot_header(path, rows)
    kind = values.get("datatype", "double").lower()
    if kind not in _PARTS:
        allowed = f"double, {', '.join(name for name, parts in _PARTS.items() if parts > 1)}"
        raise ModelError(f"DataType is {kind[:40]!r}", where=path.name, allowed=allowed)
    parts = _PARTS[kind]
    names = _fields(rows[names_at])
    while names and not names[-1]:
        names.pop()
    table = _mot_numbers(path, rows[names_at + 1 :], names, parts)
    _compare_count(path, values.get("nrows", values.get("datarows", "")), len(table), "rows")
    at = next((k for k, name in enumerate(names) if name.lower() in ("time", "t")), None)
    if at is None:
        times = _times_of_range(path, values, len(table))
    else:
        times, table = table[:, at, 0], np.delete(table, at, axis=1)
        del names[at]
    if not names:
        raise ModelError("there are no columns except time", where=path.name, allowed=MOT_KIND)
    suffixes = "xyz" if parts == 3 else range(1, parts + 1)
    full = names if parts == 1 else [f"{name}_{suffix}" for name in names for suffix in suffixes]
    degrees = {"yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}
    in_degrees = degrees.get(values.get("indegrees", "").lower())
    unique = unique_names(full, path, "column")
    return MotionTable(unique, times, table.reshape(len(table), -1), in_degrees, title, path.name)


def _mot_header(path: Path, rows: Sequence[Row]) -> tuple[str, dict[str, str], int]:
    """Return the title, the values by lower-case key, and the index of the line of column names.

    The title is the first line, the value of "name", or "". The header ends at "endheader", or before the first line
    whose first field is "time".
    """
    title, values = "", dict[str, str]()
    for k, row in enumerate(rows[:MAX_MOT_HEADER_LINES]):
        line = row.text.strip()
        if line.lower() == "endheader":
            if k + 1 == len(rows):
                raise ModelError(
                    "endheader is not followed by data", where=path.name, fix="copy or export the file again"
                )
            return title, values, k + 1
        if _fields(row)[0].lower() == "time" and "=" not in line:
            return title, values, k
        key, equals, value = line.partition("=")
        words = line.split(None, 1)
        if equals and re.fullmatch(r"[A-Za-z_]\w*\s*", key):
            values[key.strip().lower()] = value.strip()
            title = title or values.get("name", "")
        elif words and words[0].lower() in _SIMM_KEYS:
            values[words[0].lower()] = words[1].strip() if len(words) > 1 else ""
            title = title or values.get("name", "")
        elif not title and row.line == 1:
            title = line
    fix = "check that it is one; the header ends with the line endheader"
    raise ModelError("there is neither endheader nor a line of names", where=path.name, allowed=MOT_KIND, fix=fix)


def _mot_numbers(path: Path, rows: list[Row], names: Sequence[str], parts: int) -> Array:
    """Return the numbers (K, columns, parts); times have only the first part."""
    check_size(len(rows), len(names) * parts, path.name)
    rows = _whole_rows(path, rows, bool(rows) and len(_fields(rows[-1])) < len(names), "row", MOT_KIND)
    if parts > 1:
        rows = [Row(row.line, "\t".join(_all_parts(path, row, names, parts))) for row in rows]
        names = [name for name in names for _ in range(parts)]
    table = NumberTable(path.name, rows, TABS_OR_BLANKS, len(names), names)
    return table.numbers(missing=True).reshape(len(rows), -1, parts)


def _all_parts(path: Path, row: Row, names: Sequence[str], parts: int) -> list[str]:
    """Return the cells of a row of vectors, one per part."""
    cells = list[str]()
    for k, field in enumerate(_fields(row)):
        numbers = [number for number in re.sub(r"[~\[\]()\s]", "", field).split(",") if number]
        if len(numbers) not in (0, 1, parts) or (len(numbers) == 1 and names[k : k + 1] not in (["time"], ["Time"])):
            raise ModelError(f"line {row.line}: {field[:40]!r} is not {parts} numbers", where=path.name)
        cells += numbers or ["nan"]
        cells += ["nan"] * (parts - len(numbers or "0"))
    return cells


def _compare_count(path: Path, declared: str, count: int, what: str) -> None:
    """Warn if the number of rows or frames in the header differs from that in the table."""
    expected = int(declared) if declared.isascii() and declared.isdigit() and len(declared) < 12 else count
    # More rows than declared in a .mot file are harmless, and wrong column counts are too common to be meaningful.
    if expected > count or (expected < count and what == "frames"):
        note = f"the header declares {declared} {what}, but the table has {count}, which are used"
        fix = f"copy or export the file again if {what} are missing" if expected > count else ""
        warn(note, where=path.name, fix=fix)


def _whole_rows(path: Path, rows: list[Row], is_cut: bool, what: str, kind: str) -> list[Row]:
    """Return the rows, without the last one if it was truncated; raise ModelError if there are none."""
    if is_cut:
        fix = f"copy or export it again; the {what}s before it are used"
        warn(f"the file ends within this {what}", where=f"{path.name}: line {rows[-1].line}", fix=fix)
        rows = rows[:-1]
    if not rows:
        raise ModelError(f"there are no {what}s", where=path.name, allowed=kind)
    return rows


def _times_of_range(path: Path, values: Mapping[str, str], rows: int) -> Array:
    """Return equally spaced times within the range of a SIMM header."""
    try:
        first, last = (number_in(word) for word in values.get("range", "").split())
    except ValueError:
        fix = "name a column time"
        raise ModelError("there is no time column", where=path.name, allowed=MOT_KIND, fix=fix) from None
    return np.linspace(first, last, rows)


def write_mot(table: MotionTable, path: str | Path) -> None:
    """Write a table as an OpenSim .mot or .sto file; numbers read back exactly."""
    path = Path(path)
    for name in table.names:
        if re.search(r"\s", name):
            what = f"the column name {name!r} has blanks"
            raise ModelError(what, value=name, where=path.name, allowed="names without blanks")
    head = [
        re.sub(r"[\t\r\n=]", " ", table.title) or path.stem,
        "version=1",
        f"nRows={len(table)}",
        f"nColumns={len(table.names) + 1}",
        *([] if table.in_degrees is None else [f"inDegrees={'yes' if table.in_degrees else 'no'}"]),
        "endheader",
        "\t".join(["time", *table.names]),
    ]
    rows = ("\t".join(map(text_of, row)) for row in np.column_stack([table.times, table.values]).tolist())
    _write_lines(path, [*head, *rows])


def _write_lines(path: Path, lines: Sequence[str]) -> None:
    with replacing(path) as part:
        part.write_text("\n".join([*lines, ""]), encoding="utf-8", newline="\n")


# Marker files (.trc): marker positions over time, as exchanged between motion capture programs and OpenSim.

TRC_KIND = "a .trc file (markers)"
POWERS = {"m": 0, "cm": -2, "mm": -3}  # powers of ten for conversion to m
_WORDS = {"meters": "m", "meter": "m", "metres": "m", "millimeters": "mm", "millimetres": "mm", "centimeters": "cm"}
KEYS = (
    *("DataRate", "CameraRate", "NumFrames", "NumMarkers", "Units"),
    *("OrigDataRate", "OrigDataStartFrame", "OrigNumFrames"),
)
MAX_TRC_HEADER_LINES = 30  # maximum number of lines before the line of names
ABSENT_VALUE = "9999999"  # number that some programs write for missing markers
RATE_TOLERANCE = 0.02  # relative tolerance, because times are often written with three decimals


def read_trc(path: str | Path, *, unit: str | None = None, axes: str = OPENSIM) -> Markers:
    """Return the markers in a .trc file, with positions in m.

    ``unit`` ("m", "cm" or "mm") replaces the unit in the file. The file does not state its ``axes``, which are assumed
    to be OpenSim's axes. A marker is missing (NaN) if its fields are empty, NaN, 9999999, or all exactly 0. If counts
    in the header contradict the table, the table is used and a warning is issued.
    """
    path = Path(path)
    rows = _recorded_rows(path, TRC_KIND)
    values, names, first = _trc_header(path, rows)
    unit = _unit(path, values) if unit is None else one_of(unit, UNITS, path.name, "unit")
    times, positions = _trc_numbers(path, rows[first:], names, POWERS[unit])
    times = checked_times(times, path.name)
    _compare_count(path, values.get("numframes", ""), len(times), "frames")
    rate = _rate(path, values, times)
    return Markers(unique_names(names, path, "marker"), times, positions, rate, axes, unit, path.name)


def _trc_header(path: Path, rows: Sequence[Row]) -> tuple[dict[str, str], list[str], int]:
    """Return the values by key, the marker names, and the index of the first line of the table."""
    values: dict[str, str] = {}
    for k, row in enumerate(rows[:MAX_TRC_HEADER_LINES]):
        fields = _fields(row)
        if fields[0].lower() == "datarate" and k + 1 < len(rows):
            # Some programs write two tabs between values, so only the order counts.
            values = dict(zip((key.lower() for key in row.text.split()), rows[k + 1].text.split(), strict=False))
        if re.fullmatch(r"frame\s*#?|frames?", fields[0], re.IGNORECASE):
            names = [field for field in fields[2:] if field]
            if not names:
                where = f"{path.name}: line {row.line}"
                raise ModelError("there are no marker names", where=where, allowed=TRC_KIND)
            has_letters = k + 1 < len(rows) and re.match(r"\s*X1\b", rows[k + 1].text)
            return values, names, k + 2 if has_letters else k + 1
    what = "no line begins with Frame#"
    raise ModelError(what, where=path.name, allowed=TRC_KIND, fix="export the markers again")


def _unit(path: Path, values: dict[str, str]) -> str:
    stated = values.get("units", "")
    unit = _WORDS.get(stated.lower(), stated.lower())
    if unit not in POWERS:
        what = f"the unit is {stated!r}" if stated else "the unit is missing"
        fix = 'pass it: torsor.human.recordings.load(path, unit="mm")'
        raise ModelError(what, where=path.name, allowed=", ".join(UNITS), fix=fix)
    return unit


def _trc_numbers(path: Path, rows: list[Row], markers: list[str], power: int) -> tuple[Array, Array]:
    """Return times (K,) and positions (K, M, 3)."""
    names = ["frame", "time", *(f"{name} {letter}" for name in markers for letter in "xyz")]
    width = len(names)
    check_size(len(rows), width, path.name)
    for row in rows:
        cells = 0 if "\t" in row.text else len(row.text.split())
        if 0 < cells < width and row is not rows[-1]:
            fix = "separate the fields by tabs: a missing marker is then three empty fields"
            what = f"there are {cells} of {width} fields, separated by blanks, so the missing ones are ambiguous"
            raise ModelError(what, where=f"{path.name}: line {row.line}", fix=fix)
    last = len(_fields(rows[-1])) if rows else width
    # If a line ends within a marker, the file is truncated there.
    is_cut = last < width and ("\t" not in rows[-1].text or last % 3 != 2)
    rows = _whole_rows(path, rows, is_cut, "frame", TRC_KIND)
    powers = [0] + [power] * (width - 2)
    table = NumberTable(path.name, rows, TABS_OR_BLANKS, width)
    numbers = table.numbers(range(1, width), names[1:], powers=powers, missing=True, short=True)
    positions = numbers[:, 1:].reshape(len(rows), -1, 3)
    absent = (positions == 0).all(axis=2) | (positions == number_in(ABSENT_VALUE, power)).any(axis=2)
    positions[absent | np.isnan(positions).any(axis=2)] = np.nan
    return numbers[:, 0], positions


def _rate(path: Path, values: dict[str, str], times: Array) -> float:
    """Return the rate (Hz) in the header; if it contradicts the times, warn and return the rate of the times."""
    real = rate_of(times)
    try:
        stated = number_in(values.get("datarate", "0"))
    except ValueError:
        stated = 0.0
    if not 0.0 < stated < np.inf:
        return real
    if real and abs(stated / real - 1) > RATE_TOLERANCE:
        what = f"the header declares {stated:g} Hz, but times step by {1 / real:g} s, {real:g} Hz, which is used"
        warn(what, where=path.name, fix="correct the rate, or the times, in the file")
        return real
    return stated


def write_trc(markers: Markers, path: str | Path, *, unit: str | None = None) -> None:
    """Write markers as a .trc file in their unit, or in ``unit``; numbers read back exactly."""
    path = Path(path)
    unit = markers.unit if unit is None else one_of(unit, UNITS, path.name, "unit")
    for name in markers.names:
        if re.search(r"[\t\r\n]", name):
            allowed = "names without tabs and line ends"
            what = f"the marker name {name!r} is invalid"
            raise ModelError(what, value=name, where=path.name, allowed=allowed)
    rate, count = text_of(markers.rate), str(len(markers))
    letters = (f"{letter}{k}" for k in range(1, len(markers.names) + 1) for letter in "XYZ")
    head = [
        f"PathFileType\t4\t(X/Y/Z)\t{path.name}",
        "\t".join(KEYS),
        "\t".join((rate, rate, count, str(len(markers.names)), unit, rate, "1", count)),
        "Frame#\tTime\t" + "\t\t\t".join(markers.names) + "\t\t",
        "\t\t" + "\t".join(letters),
        "",
    ]
    power = -POWERS[unit]
    values = np.column_stack([markers.times, markers.positions.reshape(len(markers), -1)]).tolist()
    rows = (
        "\t".join([str(k), text_of(time), *("" if x != x else text_of(x, power) for x in row)])
        for k, (time, *row) in enumerate(values, start=1)
    )
    _write_lines(path, [*head, *rows])


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
    """Return the content of a .csv file; ``columns`` {file column: name} renames columns.

    A column "time" (s) or the ``rate`` (Hz) is required. Columns whose names end with x, y and z, such as "R.Heel x",
    become a marker; their ``unit`` ("m", "cm" or "mm") is then required. Columns such as ground_force_r_vx become
    ground forces. All other columns form the table. Separators are commas, semicolons or tabs; with semicolons, commas
    in numbers are decimal points.
    """
    path = Path(path)
    cells = csv_table(path)
    names = unique_names([head or f"column {k + 1}" for k, head in enumerate(cells.heads)], path, "column")
    chosen = {name: name for name in names} if columns is None else table(columns, path.name, "columns")
    at = indices_of(list(chosen), names, path.name, "column")
    new = list(checked_names(list(chosen.values()), path.name, "column"))
    markers = _markers(new)
    if markers and unit is None:
        what, fix = f"have the marker {next(iter(markers))!r} without a unit", 'pass it: `unit="mm"`'
        raise ModelError(what, argument="columns", where=path.name, allowed=", ".join(UNITS), fix=fix)
    power = 0 if unit is None else POWERS[one_of(unit, UNITS, path.name, "unit")]
    of_markers = {k for triple in markers.values() for k in triple}
    powers = [power if k in of_markers else 0 for k in range(len(new))]
    if not cells.rows:
        raise ModelError("there are no rows", where=path.name, allowed=CSV_KIND)
    values = cells.numbers(at, [names[k] for k in at], powers=powers, missing=True)
    times = _times(path, new, values, rate)
    kept = [k for k, name in enumerate(new) if k not in of_markers and name.lower() != "time"]
    rest = (
        MotionTable(tuple(new[k] for k in kept), times, values[:, kept], None, path.stem, path.name) if kept else None
    )
    recorded = None
    if markers:
        positions = values[:, [k for triple in markers.values() for k in triple]].reshape(len(times), -1, 3)
        recorded = Markers(tuple(markers), times, positions, rate or 0.0, axes, unit or "m", path.name)
    return Recording(path.name, recorded, None if rest is None else forces_of(rest, axes), rest)


def csv_table(path: Path) -> NumberTable:
    """Return the headers and rows of a .csv file; with semicolons as separators, decimal commas are allowed."""
    first, *rows = _recorded_rows(path, CSV_KIND)
    separator = separator_of(first.text, otherwise=",")
    heads = cells_of(first, separator, path.name)
    return NumberTable(path.name, rows, separator, len(heads), heads, decimal_comma=separator == ";")


def write_csv(table: MotionTable, path: str | Path) -> None:
    """Write a table with a time column as a .csv file; numbers read back exactly."""
    with replacing(Path(path)) as part, part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["time", *table.names])
        for row in np.column_stack([table.times, table.values]).tolist():
            writer.writerow(map(text_of, row))


def _markers(names: list[str]) -> dict[str, list[int]]:
    """Return the columns x, y and z of each marker, by name."""
    columns: dict[str, dict[str, int]] = {}
    for k, name in enumerate(names):
        matched = _COORDINATE.fullmatch(name)
        if matched and "torque" not in name and "moment" not in name:
            columns.setdefault(matched[1], {})[matched[2].lower()] = k
    return {name: [axes[axis] for axis in "xyz"] for name, axes in columns.items() if len(axes) == 3}


def _times(path: Path, names: list[str], values: Array, rate: float | None) -> Array:
    named = [k for k, name in enumerate(names) if name.lower() == "time"]
    if named:
        return values[:, named[0]]
    if rate is None:
        fix = 'name the column in the map, {"its name": "time"}, or pass `rate=100.0` (Hz)'
        raise ModelError("no column is named time", where=path.name, fix=fix)
    return np.arange(len(values)) / positive(rate, path.name, "rate (Hz)")
