"""Files of recordings as signals: .mot, .sto, and .csv with units in its heads, over time or over the stride."""

import csv
import re
from pathlib import Path

import numpy as np

from torsor.base.errors import ModelError, describe
from torsor.human.comparison.signals import COORDINATES, DIRECT, Signals, of_forces, of_table
from torsor.human.comparison.strides import Signal
from torsor.human.recordings import MotionTable, load
from torsor.human.recordings.csv_files import CSV_KIND, read_csv
from torsor.human.recordings.recording import Recording
from torsor.human.recordings.text import lines_of

SUFFIXES = (".mot", ".sto", ".csv")
_HEAD = re.compile(r"(.*?)\s*[\[(]([^\[\]()]*)[\])]\s*")
# Columns of a table over the stride, in place of time.
SHARES = ("share of the stride", "share", "percent", "%", "% of stride", "gait cycle", "gait_cycle", "% gait cycle")
# Columns of ``Stride.save("walk.csv")`` for the own foot, by the names of comparisons.
_OWN = {
    f"force own foot {way}": name for way, name in (("medial", "medial"), ("up", "vertical"), ("forward", "forward"))
}
_KINDS = re.compile(r"(angle|moment|power) (\w+)")


def of_file(path: Path, side: str) -> Signals:
    """Return what a file holds of one side."""
    suffix = path.suffix.lower()
    if suffix in (".trc", ".c3d"):
        fix = "torsor.human.measured finds angles and moments from markers: compare with what inverse_dynamics returns"
        raise ModelError(describe("markers, not curves", where=path.name, fix=fix))
    if suffix not in SUFFIXES:
        allowed = f"a recording: {', '.join(SUFFIXES)}, or a .npz file on its own"
        found = "one of several files" if suffix == ".npz" else f"unknown kind of file {path.suffix!r}"
        raise ModelError(describe(found, where=path.name, allowed=allowed))
    if suffix == ".csv" and path.is_file():
        return _of_csv(path, side)
    return of_recording(load(path, check=False), side)


def of_recording(recording: Recording, side: str, units: dict[str, str] | None = None) -> Signals:
    """Return what a loaded recording holds of one side."""
    found = Signals()
    if recording.has("table"):
        found = of_table(recording.table, side, units)
    if recording.has("forces"):
        found = found.with_more(of_forces(recording.forces, side), recording.source)
    if found.is_empty:
        names = recording.table.names if recording.has("table") else ()
        text = f"no curve of the {side} side is known by its name" + (f": {', '.join(names[:6])}, ..." if names else "")
        allowed = f"names of OpenSim, such as hip_flexion_r, or {', '.join([*list(COORDINATES)[:2], *DIRECT['force']])}"
        raise ModelError(describe(text, where=recording.source, allowed=allowed))
    return found


def _of_csv(path: Path, side: str) -> Signals:
    """Return what a .csv file holds; a unit in brackets at the end of a head is that of the column."""
    names, units = _heads(path)
    bare = {head: name for head, name in names.items() if name.lower() == "time"}
    shares = [head for head, name in names.items() if name.lower() in SHARES]
    if not bare and not shares:
        allowed = f"a column named time, or of the share of the stride: {', '.join(SHARES[:3])}"
        raise ModelError(describe("no column is named time", where=path.name, allowed=allowed))
    # Columns that end with x, y and z would be markers.
    wanted = {head: name for head, name in names.items() if not re.fullmatch(r"(pressure|reaction) .*", name)}
    wanted |= dict.fromkeys(bare or shares[:1], "time")
    if bare:
        wanted = {head: name for head, name in wanted.items() if head not in shares}
    recording = read_csv(path, wanted)
    table = recording.table
    ends = (float(table.times[0]), float(table.times[-1]))
    own = MotionTable(tuple(_own(each) for each in table.names), table.times, table.values, None, "", path.name)
    known = {_own(names[head]): unit for head, unit in units.items()}
    found = of_recording(Recording(path.name, None, recording.found_forces, own), side, known)
    _check_bands(found, own)
    if shares:
        found.span = ends
        if not bare:
            found.rates = {name: Signal(s.times, np.full(len(s.times), np.nan)) for name, s in found.angles.items()}
    return found


def _heads(path: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return the name of each head without its unit, and the units."""
    lines = lines_of(path, CSV_KIND)
    separator = max(",;\t", key=lines[0].count)
    names, units = dict[str, str](), dict[str, str]()
    for head in (each.strip() for each in next(csv.reader([lines[0]], delimiter=separator))):
        matched = _HEAD.fullmatch(head)
        names[head] = matched[1] if matched and matched[1] else head
        if matched and matched[1] and matched[2] not in ("s", "1", ""):
            units[head] = matched[2]
    return names, units


def _own(name: str) -> str:
    """Return the name in comparisons of a column that ``Stride.save`` wrote; other names stay.

    Example:
        >>> _own("moment hip_extension"), _own("power hip"), _own("force own foot up"), _own("knee_angle_r")
        ('hip_extension', 'hip_power', 'vertical', 'knee_angle_r')
    """
    if name in _OWN:
        return _OWN[name]
    matched = _KINDS.fullmatch(name)
    if not matched:
        return name
    return f"{matched[2]}_power" if matched[1] == "power" else matched[2]


def _check_bands(found: Signals, table: MotionTable) -> None:
    """Take columns that end with _sd as the bands of curves over a stride."""
    for name in table.names:
        curve = name.removesuffix("_sd")
        if curve != name and (curve in found.curves or curve in found.angles):
            found.bands[curve] = table.column(name)
