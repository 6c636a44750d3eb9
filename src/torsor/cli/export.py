"""``torsor export``: the algorithms of a robot as C source or as a JavaScript module."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from rich.console import Console

from torsor.cli.command import Command
from torsor.cli.outputs import add_json, print_paths, write_json
from torsor.cli.robots import add_robot, given_robot
from torsor.compiler import DTYPES
from torsor.errors import ModelError

# Targets, each with what --help says of it; the method ``export_NAME`` of a robot writes it.
_TARGETS = {"c": "C99 for controllers", "js": "an ES module for web pages and Node"}


def _add_arguments(parser: ArgumentParser) -> None:
    add_robot(parser)
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="folder of the written files")
    listed = "; ".join(f"{name}: {what}" for name, what in _TARGETS.items())
    parser.add_argument("--to", choices=_TARGETS, default="c", help=f"language ({listed}); by default c")
    names = "algorithms (name or name:link); by default inverse dynamics, of closed mechanisms the constrained one"
    parser.add_argument("--names", nargs="+", default=None, help=names)
    parser.add_argument("--dtype", choices=DTYPES, default="float64", help="type of the numbers")
    parser.add_argument("--name", default="torsor_kernels", help="name of the files and of the library or module")
    parser.add_argument("--prefix", default="", help="prefix of the names of the functions")
    add_json(parser)


def _run(arguments: Namespace, console: Console) -> None:
    robot = given_robot(arguments)
    settings = {"dtype": arguments.dtype, "name": arguments.name, "prefix": arguments.prefix}
    if arguments.names is not None:
        settings["names"] = arguments.names
    try:
        paths = getattr(robot, f"export_{arguments.to}")(arguments.folder, **settings)
    except ValueError as error:
        # The compiler does not know ModelError. Its messages about a wrong name or folder say what is allowed or the
        # fix; a ValueError without either is an internal error.
        if "; allowed: " in str(error) or "; fix: " in str(error):
            raise ModelError(str(error)) from None
        raise
    print_paths(console, *paths)
    write_json(arguments, console, {"robot": robot.name, "files": [str(path) for path in paths]})


_EXAMPLES = (
    "torsor export stanford c_code --names inverse_dynamics mass_matrix",
    "torsor export two_link page --to js --names poses",
)
COMMAND = Command(_add_arguments, _run, examples=_EXAMPLES)
