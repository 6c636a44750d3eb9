"""``torsor export``: write a robot's algorithms as source code, a ROS 2 package or an FMU."""

import re
from argparse import ArgumentParser, Namespace

from rich.console import Console

from torsor import export
from torsor.base.errors import ModelError
from torsor.base.progress import working
from torsor.cli.command import Command
from torsor.cli.options import OutputFile, add_option
from torsor.cli.outputs import print_paths, write_json
from torsor.cli.states import add_robot, as_robot, load_robot, pair
from torsor.compiler import DTYPES
from torsor.robot.parallel import ParallelRobot

FMI_OPTIONS = ("names", "version", "inverse", "parameters", "external", "q0", "v0", "step", "binary")
"""The arguments of ``torsor.export.fmi`` that are options."""

FLAGS = {"version": "fmi-version", "binary": "no-binary"}
"""The options whose names differ from those of the arguments."""


def add_fmi_options(parser: ArgumentParser) -> None:
    """Declare the FMU options. An option that is not given is None."""
    group = parser.add_argument_group("functional mock-up units (--to fmi FILE.fmu)")
    text = "version of the FMI standard (default: 3)"
    group.add_argument("--fmi-version", dest="version", type=int, choices=(2, 3), help=text)
    text = "export inverse dynamics, with inputs q, v and a and output tau"
    group.add_argument("--inverse", action="store_const", const=True, help=text)
    text = "tunable parameters, such as links.hand.mass or gravity"
    group.add_argument("--parameters", metavar="PATH", nargs="+", help=text)
    group.add_argument("--external", metavar="LINK", nargs="+", help="links whose external wrenches are inputs")
    add_option(group, "--q0", " (default: posture in the file, or neutral)", type=float, nargs="+")
    add_option(group, "--v0", " (default: zero)", type=float, nargs="+")
    add_option(group, "--step", " of co-simulation (default: 0.001)", type=float)
    text = "write only C sources, without a library for this machine"
    group.add_argument("--no-binary", dest="binary", action="store_const", const=False, help=text)


_SOURCE = ("names", "dtype", "name", "prefix")
# The help and the options of each target, which the function ``torsor.export.NAME`` writes to PATH.
_TARGETS = {
    "c": ("C99 source", _SOURCE),
    "cpp": ("C99 source with a C++17 header", _SOURCE),
    "js": ("an ES module for browsers and Node", _SOURCE),
    "ros2": ("a ROS 2 package with a controller and a solver", ("name",)),
    "fmi": ("a functional mock-up unit, FILE.fmu", FMI_OPTIONS),
}
_OF_PARALLEL = ("c", "cpp", "js")  # targets that support parallel robots
_OPTIONS = sorted({option for _, own in _TARGETS.values() for option in own})


def _add_arguments(parser: ArgumentParser) -> None:
    add_robot(parser)
    text = "output folder, or FILE.fmu with --to fmi"
    parser.add_argument("path", metavar="PATH", action=OutputFile, kind="target", help=text)
    listed = "; ".join(f"{name}: {what}" for name, (what, _) in _TARGETS.items())
    text = f"c, cpp, js, ros2 or fmi (default: c). {listed[0].upper()}{listed[1:]}"
    parser.add_argument("--to", choices=_TARGETS, default="c", metavar="TARGET", help=text)
    details = " (default: inverse dynamics). For fmi, these are outputs in addition to q, v and a, such as pose:LINK"
    add_option(parser, "--names", details, nargs="+")
    add_option(parser, "--dtype", " (default: float64)", choices=DTYPES)
    text = "name of the files and the library. The default is torsor_kernels, or ROBOT_dynamics for ros2"
    parser.add_argument("--name", metavar="NAME", help=text)
    parser.add_argument("--prefix", metavar="PREFIX", help="prefix of the function names")
    text = "fix joints at these positions (rad, m), such as finger=0. Joints that follow them are fixed too"
    parser.add_argument("--fix", nargs="+", type=pair, default=[], metavar="JOINT=Q", help=text)
    add_fmi_options(parser)


def _run(arguments: Namespace, console: Console) -> None:
    robot = load_robot(arguments)
    settings = {option: value for option in _OPTIONS if (value := getattr(arguments, option)) is not None}
    target, taken = arguments.to, _TARGETS[arguments.to][1]
    for option in settings:
        if option not in taken:
            what, allowed = f"--to {target} does not support {_flag(option)}", ", ".join(map(_flag, taken))
            raise ModelError(what, where=robot.name, allowed=allowed or "no options", fix="omit the option")
    if arguments.path.suffix == ".fmu" and target != "fmi":
        what = f"--to {target} writes a folder, but PATH is the name of an FMU"
        raise ModelError(what, where=str(arguments.path), allowed="a folder", fix="--to fmi")
    if isinstance(robot, ParallelRobot) and target not in _OF_PARALLEL:
        allowed = ", ".join(f"--to {name}" for name in _OF_PARALLEL)
        raise ModelError(f"--to {target} does not support parallel robots", where=robot.name, allowed=allowed)
    if arguments.fix:
        robot = as_robot(robot)
        for joint, value in arguments.fix:
            robot = robot.fix(joint, value)
    try:
        with working(f"exporting {robot.name}"):
            paths = getattr(export, target)(robot, arguments.path, **settings, overwrite=arguments.force)
    except ModelError as error:
        raise error.but(fix=re.sub(r"robot\.fix\('(.+)', 0\.0\)", r"--fix \1=0", error.fix)) from None
    print_paths(console, *paths)
    write_json(arguments, console, {"robot": robot.name, "files": [str(path) for path in paths]})


def _flag(option: str) -> str:
    return f"--{FLAGS.get(option, option)}"


_EXAMPLES = (
    "torsor export stanford c_code --names inverse_dynamics mass_matrix",
    "torsor export robot.urdf robot_dynamics --to ros2 --fix finger_joint1=0",
    "torsor export ur5 ur5.fmu --to fmi --names pose:ee_link",
)
_MAIN = "--to --names --dtype --name --prefix --fix --force --json"
COMMAND = Command(_add_arguments, _run, examples=_EXAMPLES, options={"overwrite": "--force"}, main=_MAIN)
