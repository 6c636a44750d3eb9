"""The robot and the state that a command uses: options such as ``--q`` and ``--v``, or a table of states (.csv)."""

import math
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, describe, warn
from torsor.formats.dispatch import is_description
from torsor.mechanism.mechanism import default_posture
from torsor.robot.load import load, named_robot, robot_names
from torsor.robot.parallel import ParallelRobot
from torsor.robot.robot import Robot
from torsor.robot.state_tables import LETTERS, names, read_states


def add_robot(parser: ArgumentParser) -> None:
    """Declare the argument ROBOT and the options for reading it: ``--base``, ``--strict``, ``--snap``, ..."""
    text = "robot file (URDF, xacro, SDF, MJCF, USD, OpenSim, TOML or YAML), robot_descriptions:NAME, or library "
    text += f"robot, such as ur5. Library robots: {', '.join(robot_names())}"
    parser.add_argument("robot", metavar="ROBOT", help=text)
    add_base(parser)
    parser.add_argument("--strict", action="store_true", help="turn warnings about the robot file into errors")
    text = "round angles within X rad of multiples of pi/12 (default: 0). Use 1e-5 if the file has 1.5708 for pi/2"
    parser.add_argument("--snap", metavar="X", type=float, default=0.0, help=text)
    add_search(parser)


def add_base(parser: ArgumentParser) -> None:
    """Declare the option ``--base``."""
    text = "type of the root link of a robot file (default: fixed)"
    parser.add_argument("--base", choices=("fixed", "floating"), default="fixed", help=text)


def add_search(parser: ArgumentParser) -> None:
    """Declare the options ``--search`` and ``--xacro`` for paths and arguments in robot files."""
    text = "folder with packages and models for package:// and model:// paths. The option may be repeated"
    parser.add_argument("--search", metavar="FOLDER", action="append", default=[], help=text)
    text = "argument of a .xacro file. The option may be repeated"
    parser.add_argument("--xacro", metavar="NAME=VALUE", action="append", default=[], help=text)


def load_robot(arguments: Namespace) -> Robot | ParallelRobot:
    """Return the robot that the arguments name. A file takes precedence over a library robot, but a folder does not."""
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
    robot = named_robot(name, arguments.base)
    assert isinstance(robot, (Robot, ParallelRobot))
    return robot


def as_robot(given: Robot | ParallelRobot) -> Robot:
    """Return the robot; a parallel robot becomes a tree with loops."""
    return given.as_robot() if isinstance(given, ParallelRobot) else given


def check_numbers(robot: Robot, option: str, values: list[float] | None, *counts: int, last: str = "") -> None:
    """Raise ModelError unless an option has finite numbers and an allowed count; ``last`` explains the last count."""
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
    """Return the numbers of an option: one number for all coordinates, or a list with one number per coordinate."""
    return values[0] if values is not None and len(values) == 1 else values


UNITS = {"q": "rad, m", "v": "rad/s, m/s", "a": "rad/s^2, m/s^2", "j": "rad/s^3, m/s^3", "tau": "N m, N"}


def add_states(parser: ArgumentParser, letters: str) -> None:
    """Declare the options of a state, such as ``--q`` and ``--v`` for "q v", and ``--states``."""
    for letter in letters.split():
        default = "posture in the file, or neutral" if letter == "q" else "zero"
        details = ". For a robot with loops, only the active coordinates are needed" if letter == "q" else ""
        text = f"joint {LETTERS[letter]} ({UNITS[letter]}; default: {default}){details}"
        parser.add_argument(f"--{letter}", type=float, nargs="+", metavar=letter.upper(), help=text)
    text = "table of states instead of one state. It is a saved trajectory (.csv, .npz), or any .csv file with columns "
    text += "such as 'q NAME'"
    parser.add_argument("--states", type=Path, metavar="FILE", help=text)


def given_states(arguments: Namespace, load_robot: Robot | ParallelRobot) -> dict[str, Array]:
    """Return arrays by letter: (n,) for one state, or (K, n) for a table, which may also contain "time" (K,).

    Without positions, "q" is the home position. If q contains only the active coordinates of closed loops, the loops
    are assembled. ModelError is raised for wrong lengths and for values that are not finite.
    """
    robot = as_robot(load_robot)
    letters = [letter for letter in LETTERS if hasattr(arguments, letter)]
    given = {letter: getattr(arguments, letter) for letter in letters if getattr(arguments, letter) is not None}
    if arguments.states is None:
        states = {letter: np.array(numbers, dtype=float) for letter, numbers in given.items()}
    elif given:
        raise ModelError(f"--states and --{next(iter(given))} are both given", where=robot.name, allowed="one of them")
    else:
        states = read_states(arguments.states, robot)
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
    """Return the default posture with closed loops: that of the file, or neutral; for a parallel robot, its home."""
    if isinstance(robot, ParallelRobot):
        return np.concatenate([robot.home, robot.leg_home])
    return np.asarray(robot.closed.positions(default_posture(robot)) if robot.loops else default_posture(robot))


def warn_of_zeros(path: Path | None, needed: Iterable[str], states: Mapping[str, Array]) -> None:
    """Warn if columns that are needed, and therefore assumed to be zero, are missing in a table of states."""
    missing = [letter for letter in LETTERS if letter in needed and letter not in states]
    if path is not None and missing:
        columns = " and ".join(repr(f"{letter} NAME") for letter in missing)
        found = f"the columns {columns} are missing and are assumed to be zero"
        warn(found, where=path.name, fix="add them, unless the robot is at rest")
