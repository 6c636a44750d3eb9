"""Tables of robot states (.csv, .npz), with columns such as 'q NAME' and 'v NAME' and optional units."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from torsor.base.archive import load_result
from torsor.base.arrays import Array
from torsor.base.errors import ModelError, listing
from torsor.base.number_tables import read_table
from torsor.mechanism.mechanism import FORCES, units
from torsor.robot.robot import Robot

LETTERS = {"q": "positions", "v": "velocities", "a": "accelerations", "j": "jerks", "tau": "torques"}
_COLUMN = re.compile(r"(?:held )?(\S+) (.*?)(?: \[([^]]*)\])?")
_TIME = re.compile(r"time(?: \[([^]]*)\])?")


def names(robot: Robot, letter: str) -> tuple[str, ...]:
    """Return the coordinate names for a letter: q, v, a, j or tau."""
    return robot.position_names if letter == "q" else robot.coordinate_names


def unit_of(robot: Robot, letter: str) -> list[str]:
    """Return the units for a letter: q, v, a, j or tau."""
    positions, rates = units(robot)
    if letter == "q":
        return positions
    order = {"v": "/s", "a": "/s^2", "j": "/s^3"}
    return [FORCES[unit] if letter == "tau" else unit + order[letter] for unit in rates]


def read_states(path: Path, robot: Robot) -> dict[str, Array]:
    """Return the states (K, n) of a table by letter (q, v, ...), and "time" (K,) if it has that column.

    Columns are named 'q NAME', 'v NAME', ..., optionally followed by the coordinate's unit in brackets. If there is no
    column 'q NAME', columns 'NAME' are positions. Other columns are ignored. A .npz file must contain a trajectory.
    """
    where = path.name
    if path.suffix.lower() == ".npz":
        saved = load_result(path)
        if not all(hasattr(saved, name) for name in ("robot", "times", "q", "v", "a", "tau")):
            raise ModelError(f"the file contains {saved!r}", where=where, allowed=f"a trajectory of {robot.name}")
        if saved.q.ndim != 2 or saved.robot.position_names != robot.position_names:
            what = f"the file is a trajectory of {saved.robot.name} with positions of shape {saved.q.shape}"
            raise ModelError(what, where=where, allowed=f"one motion of {robot.name}")
        return {"q": saved.q, "v": saved.v, "a": saved.a, "tau": saved.tau, "time": saved.times}
    table = read_table(path, ",")
    columns = _columns(table.heads, where)
    if not any(letter == "q" for letter, _ in columns):  # columns with plain coordinate names are positions
        for column in list(columns.values()):
            name, _, unit = column.head.partition(" [")
            if name in names(robot, "q"):
                columns["q", name] = column._replace(unit=unit.removesuffix("]"))
    states = {}
    for letter in LETTERS:
        keys = [(letter, name) for name in names(robot, letter)]
        missing = [name for key, name in keys if (key, name) not in columns]
        if len(missing) == len(keys) and (letter != "q" or not keys):
            continue
        if missing:
            allowed = listing([f"{letter} {name}" for _, name in keys])
            what = f"no column '{letter} {missing[0]}'"
            raise ModelError(what, where=where, allowed=allowed, fix="add it; a unit in [] may follow")
        used = [columns[key] for key in keys]
        states[letter] = table.numbers([column.place for column in used], [column.head for column in used])
        for key, unit in zip(keys, unit_of(robot, letter), strict=True):
            _check_unit(columns[key], unit, where)
    if ("time", "") in columns:
        _check_unit(columns["time", ""], "s", where)
        states["time"] = table.numbers([columns["time", ""].place], ["time"])[:, 0]
    if not table.rows:
        raise ModelError("the table has no rows", where=where, allowed="a header and at least one row")
    return states


class _Column(NamedTuple):
    """A column of a table: its header, its unit as written ("" if there is none), and its index."""

    head: str
    unit: str
    place: int


def _columns(header: Sequence[str], where: str) -> dict[tuple[str, str], _Column]:
    columns: dict[tuple[str, str], _Column] = {}
    for k, cell in enumerate(header):
        time, match = _TIME.fullmatch(cell), _COLUMN.fullmatch(cell)
        key = ("time", "") if time else (match[1], match[2]) if match else ("", cell)
        if key in columns:
            raise ModelError(f"the column {cell!r} appears twice", value=cell, where=where)
        columns[key] = _Column(cell, (time[1] if time else match[3] if match else "") or "", k)
    return columns


def _check_unit(column: _Column, unit: str, where: str) -> None:
    """Raise ModelError if a column has another unit; N·m, Nm and N m are the same, as are s² and s^2."""
    plain = (re.sub(r"[\s·*]", "", text) for text in (column.unit, unit))
    written, expected = (text.replace("²", "^2").replace("³", "^3") for text in plain)
    if column.unit and written != expected:
        fix = f"convert its numbers, and write [{unit}]"
        found = f"the column {column.head!r} has another unit"
        raise ModelError(found, value=column.head, where=where, allowed=unit, fix=fix)
