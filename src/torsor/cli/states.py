"""The state that a command computes at: numbers after ``--q``, ``--v``, ... or a table of states (.csv)."""

import math
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, listing, warn
from torsor.base.number_tables import read_table
from torsor.formats.dispatch import is_description
from torsor.mechanism.mechanism import FORCES, units
from torsor.robot.load import load, named_robot, robot_names
from torsor.robot.parallel import ParallelRobot
from torsor.robot.robot import Robot
from torsor.simulation import Trajectory


def add_robot(parser: ArgumentParser) -> None:
    """Declare the argument ROBOT and the options of reading it: ``--base``, ``--strict``, ``--snap``, ..."""
    files = "a .urdf, .sdf, .xml, .xacro, .usda, .osim, .toml or .yaml file, robot_descriptions:NAME"
    parser.add_argument("robot", metavar="ROBOT", help=f"{files}, or {', '.join(robot_names())}")
    parser.add_argument("--base", choices=("fixed", "floating"), default="fixed", help="motion of the root link")
    parser.add_argument("--strict", action="store_true", help="refuse what files often have and is only warned of")
    help_snap = "make angles of a file exact that are within X rad of multiples of pi/12 (1e-5 for files with 1.5708)"
    parser.add_argument("--snap", metavar="X", type=float, default=0.0, help=help_snap)
    add_search(parser)


def add_search(parser: ArgumentParser) -> None:
    """Declare the options ``--search`` and ``--xacro``, which name what a file needs besides itself."""
    help_search = "a folder of packages and models, for package:// and model://; may be given several times"
    parser.add_argument("--search", metavar="FOLDER", action="append", default=[], help=help_search)
    help_xacro = "an argument of a .xacro file; may be given several times"
    parser.add_argument("--xacro", metavar="NAME=VALUE", action="append", default=[], help=help_xacro)


def given_robot(arguments: Namespace) -> Robot | ParallelRobot:
    """Return the robot that the arguments name. A file takes precedence over a robot of the library.

    A folder does not take precedence: it may be that of an earlier export.
    """
    name = arguments.robot
    exists = Path(name).exists() and not (Path(name).is_dir() and name in robot_names())
    if exists or Path(name.partition("#")[0]).is_file() or is_description(name):
        strict, pairs = arguments.strict or None, [each.partition("=") for each in arguments.xacro]
        if not all(key and equals for key, equals, _ in pairs):
            raise ModelError(f"--xacro {arguments.xacro}", where=name, allowed="--xacro NAME=VALUE")
        xacro = {key: value for key, _, value in pairs}
        return load(name, arguments.base, strict, arguments.snap, arguments.search, xacro)
    if name not in robot_names():
        allowed = f"a robot file, or one of {', '.join(robot_names())}"
        near = get_close_matches(name, robot_names(), 1)
        raise ModelError("no such file", where=name, allowed=allowed, fix=f"write {near[0]}" if near else "")
    if arguments.base == "floating":
        found, fix = "robots of the library have a fixed base", "save it as .toml and give that file"
        raise ModelError(found, where=name, allowed="--base fixed", fix=fix)
    robot = named_robot(name)
    assert isinstance(robot, (Robot, ParallelRobot))
    return robot


def as_robot(given: Robot | ParallelRobot) -> Robot:
    """Return a robot as a tree, with loops if it is a parallel robot."""
    return given.as_robot() if isinstance(given, ParallelRobot) else given


def check_numbers(robot: Robot, option: str, values: list[float] | None, *counts: int, last: str = "") -> None:
    """Raise ModelError unless a given option has as many finite numbers as one of ``counts``.

    ``last`` is a text about the last of these counts.
    """
    if values is None:
        return
    if len(values) not in counts:
        allowed = ", or ".join(map(str, dict.fromkeys(counts)))
        raise ModelError(f"count of numbers after {option} is {len(values)}", where=robot.name, allowed=allowed + last)
    if not all(map(math.isfinite, values)):
        found = f"{option} is {' '.join(f'{each:g}' for each in values)}"
        raise ModelError(found, where=robot.name, allowed="finite numbers")


def number_or_list(values: list[float] | None) -> float | list[float] | None:
    """Return the numbers of an option: one for all coordinates, or a list with one for each."""
    return values[0] if values is not None and len(values) == 1 else values


LETTERS = {"q": "positions", "v": "velocities", "a": "accelerations", "j": "jerks", "tau": "forces"}
_COLUMN = re.compile(r"(?:held )?(\S+) (.*?)(?: \[([^]]*)\])?")
_TIME = re.compile(r"time(?: \[([^]]*)\])?")


def add_states(parser: ArgumentParser, letters: str) -> None:
    """Declare the options of a state, such as those of "q v a", and ``--states``."""
    for letter in letters.split():
        default = "the neutral posture, loops closed" if letter == "q" else "zero"
        closed = "; of a robot with loops, those of the active ones are enough" if letter == "q" else ""
        text = f"{LETTERS[letter]}, one number for each coordinate (default: {default}){closed}"
        parser.add_argument(f"--{letter}", type=float, nargs="+", metavar="NUMBER", help=text)
    text = "a table of states in place of one: a trajectory (.csv, .npz), or any .csv with columns such as 'q NAME'"
    parser.add_argument("--states", type=Path, metavar="FILE", help=text)


def given_states(arguments: Namespace, given_robot: Robot | ParallelRobot) -> dict[str, Array]:
    """Return the given arrays by letter: (n,) of one state, (K, n) of a table, which may also have "time" (K,)."""
    robot = as_robot(given_robot)
    letters = [letter for letter in LETTERS if hasattr(arguments, letter)]
    given = {letter: getattr(arguments, letter) for letter in letters if getattr(arguments, letter) is not None}
    if arguments.states is None:
        found = {letter: np.array(numbers, dtype=float) for letter, numbers in given.items()}
    elif given:
        raise ModelError(f"--states and --{next(iter(given))} are both given", where=robot.name, allowed="one of them")
    else:
        found = states_of(arguments.states, robot)
    if robot.loops and robot.active and arguments.states is None and len(found.get("q", ())) == len(robot.active):
        found["q"] = robot.closed.assemble(found["q"])
    for letter, values in found.items():
        count = robot.nq if letter == "q" else robot.nv
        if letter != "time" and values.shape[-1] != count:
            what = f"count of numbers after --{letter} is {values.shape[-1]}"
            raise ModelError(what, where=robot.name, allowed=f"{count}: {', '.join(names(robot, letter))}")
        if not np.isfinite(values).all():
            raise ModelError(f"{letter} has NaN or infinity", where=robot.name, allowed="finite numbers")
    if "q" not in found:
        found["q"] = home_of(given_robot)
    return found


def home_of(robot: Robot | ParallelRobot) -> Array:
    """Return the posture in which a robot is shown: the neutral one, loops closed; of a parallel robot, its home."""
    if isinstance(robot, ParallelRobot):
        return np.concatenate([robot.home, robot.leg_home])
    return np.asarray(robot.closed.positions(robot.neutral()) if robot.loops else robot.neutral())


def names(robot: Robot, letter: str) -> tuple[str, ...]:
    """Return the names of the numbers of a letter."""
    return robot.position_names if letter == "q" else robot.coordinate_names


def unit_of(robot: Robot, letter: str) -> list[str]:
    """Return the units of the numbers of a letter."""
    positions, rates = units(robot)
    if letter == "q":
        return positions
    order = {"v": "/s", "a": "/s^2", "j": "/s^3"}
    return [FORCES[unit] if letter == "tau" else unit + order[letter] for unit in rates]


def warn_of_zeros(path: Path | None, needed: Iterable[str], states: Mapping[str, Array]) -> None:
    """Warn if a table of states lacks the columns of a letter that is needed: the robot is taken to be at rest."""
    missing = [letter for letter in LETTERS if letter in needed and letter not in states]
    if path is not None and missing:
        found = f"no columns {' and '.join(repr(f'{letter} NAME') for letter in missing)}, which are taken to be zero"
        warn(found, where=path.name, fix="add them, unless the robot is at rest")


def states_of(path: Path, robot: Robot) -> dict[str, Array]:
    """Return the states of a table by letter (K, n), and "time" (K,) if it has that column.

    Columns are named 'q NAME', 'v NAME', ..., where a unit in brackets may follow: it must be that of the coordinate.
    Without any 'q NAME', columns 'NAME' are positions. Others are left out. A .npz file is a saved trajectory.
    """
    where = path.name
    if path.suffix.lower() == ".npz":
        saved = Trajectory.load(path)
        if saved.q.ndim != 2 or saved.robot.position_names != robot.position_names:
            found = f"a trajectory of {saved.robot.name} with positions of shape {saved.q.shape}"
            raise ModelError(found, where=where, allowed=f"one motion of {robot.name}")
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
        wanted = [(letter, name) for name in names(robot, letter)]
        missing = [name for key, name in wanted if (key, name) not in columns]
        if len(missing) == len(wanted) and (letter != "q" or not wanted):
            continue
        if missing:
            allowed = listing([f"{letter} {name}" for _, name in wanted])
            what = f"no column '{letter} {missing[0]}'"
            raise ModelError(what, where=where, allowed=allowed, fix="add it, units in [] may follow")
        used = [columns[key] for key in wanted]
        states[letter] = table.numbers([column.place for column in used], [column.head for column in used])
        for key, unit in zip(wanted, unit_of(robot, letter), strict=True):
            _check_unit(columns[key], unit, where)
    if ("time", "") in columns:
        _check_unit(columns["time", ""], "s", where)
        states["time"] = table.numbers([columns["time", ""].place], ["time"])[:, 0]
    if not table.rows:
        raise ModelError("no states", where=where, allowed="a header and at least one row")
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
    given, own = (re.sub(r"[\s·*]", "", each).replace("²", "^2").replace("³", "^3") for each in (column.unit, unit))
    if column.unit and given != own:
        fix = f"convert its numbers, and write [{unit}]"
        found = f"the column {column.head!r} has another unit"
        raise ModelError(found, value=column.head, where=where, allowed=unit, fix=fix)
