"""The argument ROBOT, which several commands have: a file, or a robot of the library."""

import math
from argparse import ArgumentParser, Namespace
from difflib import get_close_matches
from pathlib import Path

from torsor.base.errors import ModelError
from torsor.formats.dispatch import is_description
from torsor.robot.load import load, named_robot, robot_names
from torsor.robot.parallel import ParallelRobot
from torsor.robot.robot import Robot


def add_robot(parser: ArgumentParser) -> None:
    """Declare the argument ROBOT and the options of reading it: ``--base``, ``--strict``, ``--snap``, ..."""
    files = "a .urdf, .sdf, .xml, .xacro, .usda, .osim, .toml or .yaml file, robot_descriptions:NAME"
    files_or_names = f"{files}, or {', '.join(robot_names())}"
    parser.add_argument("robot", metavar="ROBOT", help=files_or_names)
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
    """Return the robot that the arguments name. A file takes precedence over a robot of the library of that name.

    A folder does not: it may be that of an earlier export.

    Example:
        >>> given_robot(Namespace(robot="two_link", base="fixed")).nv
        2
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
    """Raise ModelError if an option is given without as many finite numbers as one of the ``counts``.

    ``last`` are words about the last of these counts.

    Example:
        >>> check_numbers(torsor.library.two_link(), "--target", [1.0], 2)
        Traceback (most recent call last):
        torsor.ModelError: two_link: count of numbers after --target is 1; allowed: 2
    """
    if values is None:
        return
    if len(values) not in counts:
        allowed = ", or ".join(map(str, dict.fromkeys(counts)))
        raise ModelError(f"count of numbers after {option} is {len(values)}", where=robot.name, allowed=allowed + last)
    if not all(map(math.isfinite, values)):
        found = f"{option} is {' '.join(f'{each:g}' for each in values)}"
        raise ModelError(found, where=robot.name, allowed="finite numbers")
