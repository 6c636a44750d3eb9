"""The robot and the state of a command: options such as ``--q`` and ``--v``, or a table of states (.csv)."""

import math
import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, describe, listing, warn
from torsor.base.number_tables import read_table
from torsor.formats.dispatch import is_description
from torsor.mechanism.mechanism import FORCES, units
from torsor.robot.load import load, named_robot, robot_names
from torsor.robot.parallel import ParallelRobot
from torsor.robot.robot import Robot


def add_robot(parser: ArgumentParser) -> None:
    """Declare the argument ROBOT and the options for reading it: ``--base``, ``--strict``, ``--snap``, ..."""
    text = "robot file or library robot, such as ur5. Files: .urdf, .sdf, .xml (MJCF), .xacro, .usda, "
    text += f".osim, .toml, .yaml; also robot_descriptions:NAME. Library robots: {', '.join(robot_names())}"
    parser.add_argument("robot", metavar="ROBOT", help=text)
    add_base(parser)
    parser.add_argument("--strict", action="store_true", help="turn warnings about the robot file into errors")
    text = "round angles within X rad of multiples of pi/12. Use 1e-5 for files that contain 1.5708 for pi/2"
    parser.add_argument("--snap", metavar="X", type=float, default=0.0, help=text)
    add_search(parser)


def add_base(parser: ArgumentParser) -> None:
    """Declare the option ``--base``."""
    text = "motion of the root link of a robot file (default: fixed)"
    parser.add_argument("--base", choices=("fixed", "floating"), default="fixed", help=text)


def add_search(parser: ArgumentParser) -> None:
    """Declare the options ``--search`` and ``--xacro``, which locate what a file refers to."""
    text = "folder of packages and models, for package:// and model:// paths. The option may be repeated"
    parser.add_argument("--search", metavar="FOLDER", action="append", default=[], help=text)
    text = "argument of a .xacro file. The option may be repeated"
    parser.add_argument("--xacro", metavar="NAME=VALUE", action="append", default=[], help=text)


def load_robot(arguments: Namespace) -> Robot | ParallelRobot:
    """Return the robot that the arguments name. A file, but not a folder, takes precedence over a library robot."""
    name = arguments.robot
    exists = Path(name).exists() and not (Path(name).is_dir() and name in robot_names())
    if exists or Path(name.partition("#")[0]).is_file() or is_description(name):
        strict, pairs = arguments.strict or None, [text.partition("=") for text in arguments.xacro]
        if not all(key and equals for key, equals, _ in pairs):
            found = " ".join(f"--xacro {pair}" for pair in arguments.xacro)
            raise ModelError(f"{found} has no name or no value", where=name, allowed="--xacro NAME=VALUE")
        xacro = {key: value for key, _, value in pairs}
        return load(name, arguments.base, strict, arguments.snap, arguments.search, xacro)
    if name not in robot_names():
        allowed = f"a robot file, or one of {', '.join(robot_names())}"
        near = get_close_matches(name, robot_names(), 1)
        fix = f"did you mean {near[0]}?" if near else ""
        raise ModelError("no such file or library robot", where=name, allowed=allowed, fix=fix)
    if arguments.base == "floating":
        found, fix = "library robots have a fixed base", f"torsor convert {name} {name}.toml, then use that file"
        raise ModelError(found, where=name, allowed="--base fixed", fix=fix)
    robot = named_robot(name)
    assert isinstance(robot, (Robot, ParallelRobot))
    return robot


def as_robot(given: Robot | ParallelRobot) -> Robot:
    """Return the robot; a parallel robot becomes a tree with loops."""
    return given.as_robot() if isinstance(given, ParallelRobot) else given


def check_numbers(robot: Robot, option: str, values: list[float] | None, *counts: int, last: str = "") -> None:
    """Raise ModelError unless an option has as many finite numbers as one of ``counts``; ``last`` explains the last."""
    if values is None:
        return
    if len(values) not in counts:
        allowed = ", or ".join(map(str, dict.fromkeys(counts)))
        raise ModelError(f"{option} has {_counted(len(values))}", where=robot.name, allowed=allowed + last)
    if not all(map(math.isfinite, values)):
        found = f"{option} is {' '.join(f'{value:g}' for value in values)}"
        raise ModelError(found, where=robot.name, allowed="finite numbers")


def _counted(count: int) -> str:
    return "1 number" if count == 1 else f"{count} numbers"


def pair(text: str) -> tuple[str, float]:
    """Return (name, number) from the text NAME=NUMBER."""
    name, _, value = text.partition("=")
    try:
        return name, float(value)
    except ValueError:
        allowed = "NAME=NUMBER, such as right_knee_flexion=10"
        raise ArgumentTypeError(describe(f"{text!r} is not a name and a number", allowed=allowed)) from None


def number_or_list(values: list[float] | None) -> float | list[float] | None:
    """Return the numbers of an option: one number for all coordinates, or a list with one each."""
    return values[0] if values is not None and len(values) == 1 else values


LETTERS = {"q": "positions", "v": "velocities", "a": "accelerations", "j": "jerks", "tau": "torques"}
_COLUMN = re.compile(r"(?:held )?(\S+) (.*?)(?: \[([^]]*)\])?")
_TIME = re.compile(r"time(?: \[([^]]*)\])?")


def add_states(parser: ArgumentParser, letters: str) -> None:
    """Declare the options of a state, such as those of "q v a", and ``--states``."""
    for letter in letters.split():
        default = "neutral posture" if letter == "q" else "zero"
        details = ". A robot with loops needs those of the active coordinates alone" if letter == "q" else ""
        text = f"joint {LETTERS[letter]} (default: {default}){details}"
        parser.add_argument(f"--{letter}", type=float, nargs="+", metavar=letter.upper(), help=text)
    text = (
        "table of states in place of one state. It is a saved trajectory (.csv, .npz), or any .csv file with columns "
    )
    text += "such as 'q NAME'"
    parser.add_argument("--states", type=Path, metavar="FILE", help=text)


def given_states(arguments: Namespace, load_robot: Robot | ParallelRobot) -> dict[str, Array]:
    """Return arrays by letter: (n,) for one state, (K, n) for a table, which may also have "time" (K,)."""
    robot = as_robot(load_robot)
    letters = [letter for letter in LETTERS if hasattr(arguments, letter)]
    given = {letter: getattr(arguments, letter) for letter in letters if getattr(arguments, letter) is not None}
    if arguments.states is None:
        states = {letter: np.array(numbers, dtype=float) for letter, numbers in given.items()}
    elif given:
        raise ModelError(f"--states and --{next(iter(given))} are both given", where=robot.name, allowed="one of them")
    else:
        states = states_of(arguments.states, robot)
    if robot.loops and robot.active and arguments.states is None and len(states.get("q", ())) == len(robot.active):
        states["q"] = robot.closed.assemble(states["q"])
    for letter, values in states.items():
        count = robot.nq if letter == "q" else robot.nv
        if letter != "time" and values.shape[-1] != count:
            what = f"--{letter} has {_counted(values.shape[-1])}"
            raise ModelError(what, where=robot.name, allowed=f"{count}: {', '.join(names(robot, letter))}")
        if not np.isfinite(values).all():
            raise ModelError(f"--{letter} contains NaN or infinity", where=robot.name, allowed="finite numbers")
    if "q" not in states:
        states["q"] = home_of(load_robot)
    return states


def home_of(robot: Robot | ParallelRobot) -> Array:
    """Return the default posture: neutral with closed loops, or the home of a parallel robot."""
    if isinstance(robot, ParallelRobot):
        return np.concatenate([robot.home, robot.leg_home])
    return np.asarray(robot.closed.positions(robot.neutral()) if robot.loops else robot.neutral())


def names(robot: Robot, letter: str) -> tuple[str, ...]:
    """Return the coordinate names for a letter."""
    return robot.position_names if letter == "q" else robot.coordinate_names


def unit_of(robot: Robot, letter: str) -> list[str]:
    """Return the units for a letter."""
    positions, rates = units(robot)
    if letter == "q":
        return positions
    order = {"v": "/s", "a": "/s^2", "j": "/s^3"}
    return [FORCES[unit] if letter == "tau" else unit + order[letter] for unit in rates]


def warn_of_zeros(path: Path | None, needed: Iterable[str], states: Mapping[str, Array]) -> None:
    """Warn if a table of states lacks columns that are needed; they are assumed to be zero."""
    missing = [letter for letter in LETTERS if letter in needed and letter not in states]
    if path is not None and missing:
        columns = " and ".join(repr(f"{letter} NAME") for letter in missing)
        found = f"the columns {columns} are missing and are assumed to be zero"
        warn(found, where=path.name, fix="add them, unless the robot is at rest")


def states_of(path: Path, robot: Robot) -> dict[str, Array]:
    """Return the states of a table by letter (K, n), and "time" (K,) if it has that column.

    Columns are named 'q NAME', 'v NAME', ..., where a unit in brackets may follow: it must be that of the coordinate.
    Without any 'q NAME', columns 'NAME' are positions. Others are left out. A .npz file is a saved trajectory.
    """
    where = path.name
    if path.suffix.lower() == ".npz":
        from torsor.simulation import Trajectory  # slow to import, and few commands need it

        saved = Trajectory.load(path)
        if saved.q.ndim != 2 or saved.robot.position_names != robot.position_names:
            what = f"the file is a trajectory of {saved.robot.name} with positions of shape {saved.q.shape}"
            raise ModelError(what, where=where, allowed=f"one motion of {robot.name}")
        return {"q": saved.q, "v": saved.v, "a": saved.a, "tau": saved.tau, "time": saved.times}
    table = read_table(path, ",")
    columns = _columns(table.heads, where)
    if not any(letter == "q" for letter, _ in columns):  # columns with the plain name of a position are that position
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
            raise ModelError(what, where=where, allowed=allowed, fix="add it, units in [] may follow")
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
    """A column of a table: its head, its unit as it is written, "" without one, and its place."""

    head: str
    unit: str
    place: int


def _columns(header: Sequence[str], where: str) -> dict[tuple[str, str], _Column]:
    columns: dict[tuple[str, str], _Column] = {}
    for k, cell in enumerate(header):
        time, match = _TIME.fullmatch(cell), _COLUMN.fullmatch(cell)
        key = ("time", "") if time else (match[1], match[2]) if match else ("", cell)
        if key in columns:
            raise ModelError(f"the column {cell!r} is there twice", value=cell, where=where)
        columns[key] = _Column(cell, (time[1] if time else match[3] if match else "") or "", k)
    return columns


def _check_unit(column: _Column, unit: str, where: str) -> None:
    """Raise ModelError if a column is in another unit; N·m, Nm and N m are the same, so are s² and s^2."""
    written, expected = (
        re.sub(r"[\s·*]", "", text).replace("²", "^2").replace("³", "^3") for text in (column.unit, unit)
    )
    if column.unit and written != expected:
        fix = f"convert its numbers, and write [{unit}]"
        found = f"the column {column.head!r} has another unit"
        raise ModelError(found, value=column.head, where=where, allowed=unit, fix=fix)
