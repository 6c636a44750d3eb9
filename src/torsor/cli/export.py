"""``torsor export``: the algorithms of a robot as C source."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from rich.console import Console

from torsor.cli.command import Command
from torsor.cli.outputs import print_paths
from torsor.cli.robots import add_robot, given_robot
from torsor.compiler import DTYPES
from torsor.errors import ModelError


def _add_arguments(parser: ArgumentParser) -> None:
    add_robot(parser)
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="folder of the C files")
    names = "algorithms (name or name:link); by default inverse dynamics, of closed mechanisms the constrained one"
    parser.add_argument("--names", nargs="+", default=None, help=names)
    parser.add_argument("--dtype", choices=DTYPES, default="float64", help="type of the numbers")
    parser.add_argument("--name", default="torsor_kernels", help="name of the files and of the library")
    parser.add_argument("--prefix", default="", help="prefix of the names of the C functions")


def _run(arguments: Namespace, console: Console) -> None:
    robot = given_robot(arguments)
    settings = {"dtype": arguments.dtype, "name": arguments.name, "prefix": arguments.prefix}
    if arguments.names is not None:
        settings["names"] = arguments.names
    try:
        paths = robot.export_c(arguments.folder, **settings)
    except ValueError as error:
        # The compiler does not know ModelError. Its messages about a wrong name or folder say what is allowed or the
        # fix; a ValueError without either is an internal error.
        if "; allowed: " in str(error) or "; fix: " in str(error):
            raise ModelError(str(error)) from None
        raise
    print_paths(console, *paths)


EXPORT = Command("export", "write a robot's algorithms as C source for controllers", _add_arguments, _run)
