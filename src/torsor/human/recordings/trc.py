"""Marker files (.trc): places of markers over time, as motion capture programs and OpenSim exchange them."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import one_of
from torsor.base.errors import ModelError, describe, warn
from torsor.base.files import replacing
from torsor.formats.decimals import number_in
from torsor.human.recordings.axes import OPENSIM
from torsor.human.recordings.markers import UNITS, Markers
from torsor.human.recordings.sampled import checked_times, rate_of
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

TRC_KIND = "a .trc file (markers)"
POWERS = {"m": 0, "cm": -2, "mm": -3}  # of ten, to m
_WORDS = {"meters": "m", "meter": "m", "metres": "m", "millimeters": "mm", "millimetres": "mm", "centimeters": "cm"}
KEYS = (
    *("DataRate", "CameraRate", "NumFrames", "NumMarkers", "Units"),
    *("OrigDataRate", "OrigDataStartFrame", "OrigNumFrames"),
)
MAX_TRC_HEADER_LINES = 30  # within which the line of names must begin
ABSENT = "9999999"  # the number that some programs write for a marker that was not seen
RATE_TOLERANCE = 0.02  # relative: times are often written with three decimals


class _TrcHeader(NamedTuple):
    """The values of the header by key, the names of the markers, and the index of the first line of the table."""

    values: dict[str, str]
    names: list[str]
    first: int


def read_trc(path: str | Path, *, unit: str | None = None, axes: str = OPENSIM) -> Markers:
    """Return the markers in a .trc file, in m.

    ``unit`` ("m", "cm" or "mm") is used in place of the one in the file. The file does not say its ``axes``: those of
    OpenSim are assumed. A marker is missing (NaN) where its fields are empty, NaN, 9999999, or all three exactly 0.
    Counts in the header are not trusted: the table decides, with a warning where they differ.
    """
    path = Path(path)
    lines = lines_of(path, TRC_KIND)
    header = _trc_header(path, lines)
    unit = _unit(path, header.values) if unit is None else one_of(unit, UNITS, path.name, "unit")
    times, positions = _table(path, lines, header, POWERS[unit])
    times = checked_times(times, path.name)
    names, messages = unique_names(header.names, path, "marker")
    rate = _rate(path, header.values, times)
    markers = Markers(names, times, positions, rate, axes, unit, path.name)
    for message in messages:
        warn(message)
    return markers


def _trc_header(path: Path, lines: Sequence[str]) -> _TrcHeader:
    values: dict[str, str] = {}
    for k, line in enumerate(lines[:MAX_TRC_HEADER_LINES]):
        fields = fields_of(line)
        if fields and fields[0].lower() == "datarate" and k + 1 < len(lines):
            # Some programs put two tabs between values: only the order counts.
            values = dict(zip((each.lower() for each in line.split()), lines[k + 1].split(), strict=False))
        if fields and re.fullmatch(r"frame\s*#?|frames?", fields[0], re.IGNORECASE):
            names = [field for field in fields[2:] if field]
            if not names:
                raise ModelError(describe("there are no names of markers", where=at_line(path, k), allowed=TRC_KIND))
            return _TrcHeader(values, names, k + 1)
    found = "no line begins with Frame#"
    raise ModelError(describe(found, where=path.name, allowed=TRC_KIND, fix="export the markers again"))


def _unit(path: Path, values: dict[str, str]) -> str:
    given = values.get("units", "")
    unit = _WORDS.get(given.lower(), given.lower())
    if unit not in POWERS:
        found = f"the unit is {given!r}" if given else "the unit is not given"
        fix = 'say it: torsor.human.recordings.load(path, unit="mm")'
        raise ModelError(describe(found, where=path.name, allowed=", ".join(UNITS), fix=fix))
    return unit


def _table(path: Path, lines: Sequence[str], header: _TrcHeader, power: int) -> tuple[Array, Array]:
    """Return times (K,) and positions (K, M, 3)."""
    count, width = len(header.names), 2 + 3 * len(header.names)
    first = header.first
    if first < len(lines) and re.match(r"\s*X1\b", lines[first]):
        first += 1
    rows = [k for k in range(first, len(lines)) if lines[k].strip()]
    check_size(len(rows), width, path.name)
    table = np.full((len(rows), width - 1), np.nan)
    for row, k in enumerate(rows):
        where, fields = at_line(path, k), fields_of(lines[k])
        while len(fields) > width and not fields[-1]:
            fields.pop()
        check_width(fields, width, where, f"{count} markers")
        if len(fields) < width and "\t" not in lines[k]:
            fix = "separate the fields by tabs: a missing marker is then three empty fields"
            found = f"{len(fields)} of {width} fields, separated by blanks, so that it is not known which are missing"
            if k != rows[-1]:
                raise ModelError(describe(found, where=where, fix=fix))
        # A line that ends within a marker is the end of a file that was cut off.
        if k == rows[-1] and len(fields) < width and ("\t" not in lines[k] or len(fields) % 3 != 2):
            fix = "copy or export it again; the frames before it are used"
            warn(describe("the file ends within this frame", where=where, fix=fix))
            table = table[:-1]
            break
        table[row, 0] = _number(fields[1] if len(fields) > 1 else "", 0, where, "the time")
        quick = numbers_in(fields[2:], power)
        if quick is not None:
            table[row, 1 : 1 + len(quick)] = quick
            continue
        for column, field in enumerate(fields[2:]):
            if field:
                marker = header.names[column // 3]
                table[row, 1 + column] = _number(field, power, where, f"marker {marker!r}, {'xyz'[column % 3]}")
    if not len(table):
        raise ModelError(describe("there are no frames", where=path.name, allowed=TRC_KIND))
    _compare_frames(path, header.values, len(table))
    positions = table[:, 1:].reshape(-1, count, 3)
    absent = (positions == 0).all(axis=2) | (positions == number_in(ABSENT, power)).any(axis=2)
    positions[absent | np.isnan(positions).any(axis=2)] = np.nan
    return table[:, 0], positions


def _number(field: str, power: int, where: str, what: str) -> float:
    try:
        return number_in(field, power)
    except ValueError as error:
        raise ModelError(describe(f"{what}: {error}", where=where, allowed="a number, empty where missing")) from None


def _compare_frames(path: Path, values: dict[str, str], frames: int) -> None:
    declared = values.get("numframes", "")
    if declared.isascii() and declared.isdigit() and len(declared) < 12 and int(declared) != frames:
        text = f"the header says {declared} frames, the table has {frames}, which are used"
        fix = "copy or export the file again if frames are missing" if int(declared) > frames else ""
        warn(describe(text, where=path.name, fix=fix))


def _rate(path: Path, values: dict[str, str], times: Array) -> float:
    """Return the rate of the header; that of the times, with a warning, where they disagree."""
    real = rate_of(times)
    try:
        given = number_in(values.get("datarate", "0"))
    except ValueError:
        given = 0.0
    if not 0.0 < given < np.inf:
        return real
    if real and abs(given / real - 1) > RATE_TOLERANCE:
        text = f"the header says {given:g} Hz, but times step by {1 / real:g} s, {real:g} Hz, which is used"
        warn(describe(text, where=path.name, fix="correct the rate, or the times, in the file"))
        return real
    return given


def write_trc(markers: Markers, path: str | Path, *, unit: str | None = None) -> None:
    """Write markers as a .trc file in their unit, or in ``unit``: numbers read back as the same float64."""
    path = Path(path)
    unit = markers.unit if unit is None else one_of(unit, UNITS, path.name, "unit")
    for name in markers.names:
        if re.search(r"[\t\r\n]", name):
            raise ModelError(describe(f"marker {name!r}", where=path.name, allowed="names without tabs and line ends"))
    rate, count = text_of(markers.rate), str(len(markers))
    values = (rate, rate, count, str(len(markers.names)), unit, rate, "1", count)
    letters = (f"{letter}{k}" for k in range(1, len(markers.names) + 1) for letter in "XYZ")
    head = [
        f"PathFileType\t4\t(X/Y/Z)\t{path.name}",
        "\t".join(KEYS),
        "\t".join(values),
        "Frame#\tTime\t" + "\t\t\t".join(markers.names) + "\t\t",
        "\t\t" + "\t".join(letters),
        "",
    ]
    power = -POWERS[unit]
    rows = (
        "\t".join([str(k), text_of(time), *("" if x != x else text_of(x, power) for x in row)])
        for k, (time, row) in enumerate(
            zip(markers.times.tolist(), markers.positions.reshape(len(markers), -1).tolist(), strict=True), start=1
        )
    )
    with replacing(path) as part:
        part.write_text("\n".join([*head, *rows, ""]), encoding="utf-8", newline="\n")
