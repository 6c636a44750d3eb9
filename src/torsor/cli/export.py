"""``torsor export``: the algorithms of a robot as source of other languages, and as models of other systems."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from rich.console import Console

from torsor import export
from torsor.base.errors import ModelError
from torsor.cli.command import Command
from torsor.cli.outputs import print_paths, write_json
from torsor.cli.states import add_robot, given_robot
from torsor.compiler import DTYPES
from torsor.robot.parallel import ParallelRobot

FMI_OPTIONS = ("names", "version", "inverse", "parameters", "external", "q0", "v0", "step", "binary")
"""The arguments of ``torsor.export.fmi`` that the command line has, as names of attributes."""

FLAGS = {"version": "fmi-version", "binary": "no-binary"}
"""The options of those whose names differ."""


def add_fmi_options(parser: ArgumentParser) -> None:
    """Declare the options; those that are not given are None."""
    group = parser.add_argument_group("functional mock-up units (--to fmi FILE.fmu)")
    group.add_argument("--fmi-version", dest="version", type=int, choices=(2, 3), help="of the standard; by default 3")
    inverse = "inverse dynamics: inputs q, v and a, output tau"
    group.add_argument("--inverse", action="store_const", const=True, help=inverse)
    tunable = "numbers that may be changed, such as links.hand.mass or gravity"
    group.add_argument("--parameters", metavar="PATH", nargs="+", help=tunable)
    group.add_argument("--external", metavar="LINK", nargs="+", help="links with a wrench as input")
    group.add_argument("--q0", metavar="X", type=float, nargs="+", help="positions at the start; by default neutral")
    group.add_argument("--v0", metavar="X", type=float, nargs="+", help="velocities at the start; by default 0")
    group.add_argument("--step", metavar="S", type=float, help="longest step of co-simulation, s; by default 0.001")
    sources = "C sources only, without a library for this machine"
    group.add_argument("--no-binary", dest="binary", action="store_const", const=False, help=sources)


_SOURCE = ("names", "dtype", "name", "prefix")
# What --help says of a target, and the options that it takes; the function ``torsor.export.NAME`` writes it to PATH.
_TARGETS = {
    "c": ("C99 for controllers", _SOURCE),
    "cpp": ("the same with a C++17 header", _SOURCE),
    "js": ("an ES module for web pages and Node", _SOURCE),
    "ros2": ("a ROS 2 package with a controller and a solver", ("name",)),
    "fmi": ("a functional mock-up unit, FILE.fmu, for other simulation programs", FMI_OPTIONS),
}
_OF_PARALLEL = ("c", "cpp", "js")  # targets of parallel robots
_OPTIONS = sorted({option for _, own in _TARGETS.values() for option in own})


def _add_arguments(parser: ArgumentParser) -> None:
    add_robot(parser)
    parser.add_argument("path", metavar="PATH", type=Path, help="folder of the written files; of fmi, the file")
    listed = "; ".join(f"{name}: {what}" for name, (what, _) in _TARGETS.items())
    parser.add_argument("--to", choices=_TARGETS, default="c", help=f"what is written ({listed}); by default c")
    names = "algorithms (name or name:link); by default inverse dynamics, of closed mechanisms the constrained one;"
    names += " of fmi, outputs besides q, v and a, such as pose:LINK and joint_wrenches:LINK"
    parser.add_argument("--names", nargs="+", help=names)
    parser.add_argument("--dtype", choices=DTYPES, help="type of the numbers; by default float64")
    files = "name of the files and of the library or module; by default torsor_kernels, of ros2 ROBOT_dynamics"
    parser.add_argument("--name", help=files)
    parser.add_argument("--prefix", help="prefix of the names of the functions")
    force = "replace files of an earlier export; without it an existing file is an error"
    parser.add_argument("--force", action="store_true", help=force)
    add_fmi_options(parser)


def _run(arguments: Namespace, console: Console) -> None:
    robot = given_robot(arguments)
    given = {option: value for option in _OPTIONS if (value := getattr(arguments, option)) is not None}
    taken = _TARGETS[arguments.to][1]
    for option in given:
        if option not in taken:
            found, allowed = f"{_flag(option)} with --to {arguments.to}", ", ".join(map(_flag, taken))
            raise ModelError(found, where=robot.name, allowed=allowed or "no options", fix="leave it out")
    if arguments.path.suffix == ".fmu" and arguments.to != "fmi":
        found = f"PATH has the name of an FMU with --to {arguments.to}"
        raise ModelError(found, where=str(arguments.path), allowed="a folder", fix="--to fmi")
    if isinstance(robot, ParallelRobot) and arguments.to not in _OF_PARALLEL:
        allowed = ", ".join(_OF_PARALLEL)
        raise ModelError(f"--to {arguments.to} of this kind of robot", where=robot.name, allowed=allowed)
    paths = getattr(export, arguments.to)(robot, arguments.path, **given, overwrite=arguments.force)
    print_paths(console, *paths)
    write_json(arguments, console, {"robot": robot.name, "files": [str(path) for path in paths]})


def _flag(option: str) -> str:
    return f"--{FLAGS.get(option, option)}"


_EXAMPLES = (
    "torsor export stanford c_code --names inverse_dynamics mass_matrix",
    "torsor export two_link page --to js --names poses",
    "torsor export six_axis_arm six_axis_arm_dynamics --to ros2",
    "torsor export ur5 ur5.fmu --to fmi --names pose:ee_link --parameters links.wrist_3_link.mass",
)
COMMAND = Command(_add_arguments, _run, examples=_EXAMPLES, options={"overwrite": "--force"})
