"""The command ``torsor``: parse the arguments, run a command, and report errors."""

import argparse
import errno
import re
import sys
import traceback
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import torsor
from torsor.base.errors import ModelError, ModelWarning, MotionError, SimulationError
from torsor.base.progress import print_lines, working
from torsor.base.registry import subpackages
from torsor.base.startup import STOPPED, WORDS, is_command
from torsor.cli.command import ALL, ARGUMENTS, DONE, INTERNAL, Command, CommandParser, status_of_error, statuses_help
from torsor.cli.options import OutputFile, add_option, in_options

if TYPE_CHECKING:
    from rich.console import Console

GROUPS = {
    "Compute": {
        "info": "show the parts of a robot, or the content of a recording",
        "dynamics": "compute torques, accelerations, matrices, joint loads and energies",
        "kinematics": "compute poses and velocities of links and frames",
        "ik": "solve inverse kinematics",
        "equations": "print an algorithm as LaTeX or SymPy",
        "count": "count the arithmetic operations of the algorithms",
    },
    "Simulate and predict motion": {
        "simulate": "simulate a robot with controllers, contact and limits",
        "predict": "solve a motion problem, such as minimum time, walking or lifting",
        "retime": "find the fastest timing of a joint path within limits",
        "sweep": "solve many cases of a motion problem in parallel",
    },
    "Identify from measurements": {
        "identify": "identify masses, inertias and friction from logs",
        "excite": "design an excitation trajectory for identify",
        "measure": "compute joint angles, moments and powers of a recorded person",
    },
    "Files and tools": {
        "convert": "write a robot as URDF, SDF, MJCF, USD or TOML",
        "export": "export to C, C++, JavaScript, a ROS 2 package or an FMU",
        "view": "show robots and results in the browser",
        "warm": "compile the algorithms of a robot in advance",
        "cache": "show or clear the compiled kernels on disk",
        "doctor": "show versions and extras, and test the installation",
        "demo": "show tables and a plot of an industrial arm",
        "examples": "list or copy the examples and tutorials",
        "reproduce": "compare published results with computed ones",
        "completion": "print a completion script for a shell",
    },
}
COMMANDS = {name: summary for commands in GROUPS.values() for name, summary in commands.items()}

_module = subpackages("torsor.cli", *COMMANDS)


def command(name: str) -> Command:
    """Import the module of a command, and return the command."""
    found: Command = _module(name).COMMAND
    return found


# Without this expression, argparse takes -1e-3 for an option.
NEGATIVE_NUMBER = re.compile(r"^-(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$")
PACKAGE = Path(torsor.__file__).parent


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit status; ``torsor --help-all`` lists the statuses.

    Example:
        >>> main(["info", "no_such_robot"])
        1
    """
    argv = sys.argv[1:] if argv is None else argv
    if is_command():
        print_lines()
    with working("loading torsor"):
        parser = _parser(next((word for word in argv if not word.startswith("-")), ""))
    if not argv:
        parser.print_help(sys.stderr)
        return ARGUMENTS
    arguments = parser.parse_args(argv)
    from torsor.base.documents import STANDARD_OUTPUT  # slow to import, and the help does not need it
    from torsor.cli.outputs import PlainConsole, check_outputs

    # With JSON on standard output, everything else goes to standard error.
    console = PlainConsole(stderr=getattr(arguments, "json", None) == STANDARD_OUTPUT)
    errors = PlainConsole(stderr=True, highlight=False, soft_wrap=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ModelWarning)
        try:
            check_outputs(arguments)
            status = arguments.run(arguments, console) or DONE
        except KeyboardInterrupt:
            errors.print(WORDS)
            status = STOPPED
        except Exception as error:
            status = _report(error, arguments, errors)
    for warning in caught:
        errors.print(f"[yellow]warning[/yellow]: {_markup(in_options(warning.message, arguments))}")
    return status


class _MainParser(CommandParser):
    """The parser of ``torsor``, whose help lists the commands in groups."""

    def format_help(self, is_whole: bool = False) -> str:
        """Return the list of commands and, with ``is_whole``, the exit statuses."""
        lines = ["usage: torsor COMMAND [options]", "", str(self.description), ""]
        for title, commands in GROUPS.items():
            lines += [f"{title}:", *(f"  {name:<11} {summary}" for name, summary in commands.items()), ""]
        if is_whole:
            return "\n".join([*lines, statuses_help(ALL)])
        lines.append("Quantities are in SI units and rad; angles of people are in degrees.")
        lines.append("torsor COMMAND --help shows the main options, --help-all shows all options.")
        lines += ["torsor --help-all shows the exit statuses, and --version shows the version.", ""]
        return "\n".join(lines)


def _parser(wanted: str) -> argparse.ArgumentParser:
    """Return the command-line parser with the options of one command, or of all commands for "completion"."""
    parser = _MainParser(prog="torsor", description="Dynamics of robots and of the human body.")
    parser.add_argument("--version", action="version", version=f"torsor {torsor.__version__}")
    parsers = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=CommandParser)
    for name, summary in COMMANDS.items():
        described = f"{summary[0].upper()}{summary[1:]}."
        subparser = parsers.add_parser(name, help=summary, description=described)
        if wanted in (name, "completion"):
            _add_command(subparser, command(name))
            subparser.set_defaults(parser=parser)
    return parser


def _add_command(parser: CommandParser, own: Command) -> None:
    parser._negative_number_matcher = NEGATIVE_NUMBER
    own.add_arguments(parser)
    add_option(parser, "--json", ". With -, tables go to standard error", action=OutputFile)
    add_option(parser, "--force", action="store_true")
    add_option(parser, "--debug", action="store_true")
    parser.complete(own)
    outputs = [action for action in parser._actions if isinstance(action, OutputFile)]
    read = [action for action in parser._actions if action.metavar == "FILE" or not action.option_strings]
    inputs = [action.dest for action in read if not isinstance(action, OutputFile)]  # they may name files
    for action in parser._actions:
        if action.type is Path or (action.type is None and not action.option_strings):
            action.type = partial(_named, action.type or str)
    dests = {action.option_strings[-1]: action.dest for action in parser._actions if action.option_strings}
    flags = {dest: flag for flag, dest in dests.items()} | dict(own.options)
    parser.set_defaults(run=own.run, flags=flags, dests=dests, outputs=outputs, inputs=inputs)


def _named(kind: type, text: str) -> object:
    """Return a name or path, or raise an error if it is empty: an empty path would mean the working directory."""
    if not text:
        raise argparse.ArgumentTypeError("the name is empty; fix: give a name, or omit the option")
    return kind(text)


def _report(error: Exception, arguments: argparse.Namespace, errors: "Console") -> int:
    """Print an error in one line (after its traceback if ``--debug`` is given), and return the exit status."""
    if arguments.debug:
        errors.print(_markup("".join(traceback.format_exception(error))))
    if _is_mistake(error):
        errors.print(f"[bold red]error[/bold red]: {_markup(in_options(error, arguments))}")
        return status_of_error(error)
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    version = f"torsor {torsor.__version__}, Python {sys.version.split()[0]}, {sys.platform}"
    errors.print(f"[bold red]internal error[/bold red]: {_markup(text)}")
    traced = "with the lines above" if arguments.debug else "with the output of the same command with --debug"
    errors.print(f"This is a bug in Torsor. Please report it {traced}. Version: {version}")
    return INTERNAL


def _is_mistake(error: Exception) -> bool:
    """Return whether an error is due to the input. Any other error is a bug in Torsor."""
    if isinstance(error, OSError):
        if error.filename is None:
            return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EPIPE)
        return PACKAGE not in Path(str(error.filename)).resolve().parents
    if isinstance(error, ImportError):
        return error.name is None  # Torsor's own message about an extra to install; Python's errors name the module
    return isinstance(error, (ModelError, MotionError, SimulationError))


def _markup(text: str) -> str:
    from rich.markup import escape

    return escape(text)
