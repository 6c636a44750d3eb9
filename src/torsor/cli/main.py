"""The command ``torsor``: it reads the arguments, runs a command, and reports errors."""

import argparse
import errno
import re
import sys
import traceback
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.markup import escape

import torsor
from torsor.base.documents import STANDARD_OUTPUT
from torsor.base.errors import Message, ModelError, ModelWarning, MotionError, SimulationError, shown
from torsor.base.registry import subpackages
from torsor.base.startup import STOPPED, WORDS
from torsor.cli.command import ALL, ARGUMENTS, DONE, INTERNAL, Command, PlainConsole, status_of_error, statuses_help
from torsor.cli.outputs import add_json, check_output

COMMANDS = {
    "info": "show the links, joints and frames of a robot, or what a recording of a person holds",
    "dynamics": "compute forces, accelerations, matrices, reactions, energies ... at a state or over a table of states",
    "kinematics": "show where links and frames are: position, roll, pitch, yaw; with --v also their twists in own axes",
    "ik": "find a posture with links or frames at given positions or poses, or all postures of a six-axis arm",
    "count": "count the operations of a robot's algorithms",
    "equations": "print an algorithm of a robot as LaTeX or SymPy",
    "simulate": "simulate a robot from an initial state, save or plot the motion",
    "predict": "find an optimal motion, save or plot it",
    "retime": "find the fastest timing of a path of the joints within bounds",
    "measure": "joint angles, moments and powers of a recorded person, from markers and ground forces",
    "sweep": "compute many cases of a problem, side by side",
    "excite": "find a motion within limits that shows the parameters of a robot, for torsor identify",
    "identify": "identify masses, inertias and friction of a robot from recorded motions and forces",
    "reproduce": "compare the five documents with the library",
    "convert": "write a robot as URDF, SDF, MJCF, USD or TOML",
    "export": "write a robot's algorithms as C, C++ or JavaScript source, as a ROS 2 package, or as an FMU",
    "view": "show robots and results in the browser",
    "cache": "show or clear the compiled kernels on disk",
    "warm": "compile a robot's algorithms ahead, so that no first call waits",
    "doctor": "show versions, processor, cache and extras, and test the installation in a few seconds",
    "demo": "show tables of an industrial arm on a move, and save a plot",
    "examples": "list the examples and tutorials that come with Torsor, or copy them to a folder",
    "completion": "print a script that completes commands and options in a shell",
}

_module = subpackages("torsor.cli", *COMMANDS)


def command(name: str) -> Command:
    """Return a command; its module is imported here."""
    found: Command = _module(name).COMMAND
    return found


# By itself, argparse takes -1e-3 for an option.
NEGATIVE_NUMBER = re.compile(r"^-(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$")
QUOTES = "'\""
PACKAGE = Path(torsor.__file__).parent


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status, one of those that ``torsor --help`` lists.

    Example:
        >>> main(["info", "no_such_robot"])
        1
    """
    argv = sys.argv[1:] if argv is None else argv
    parser = _parser(next((word for word in argv if not word.startswith("-")), ""))
    if not argv:  # a newcomer: the list of the commands tells more than an error
        parser.print_help(sys.stderr)
        return ARGUMENTS
    arguments = parser.parse_args(argv)
    # With JSON on standard output, everything else goes to standard error.
    console = PlainConsole(stderr=getattr(arguments, "json", None) == STANDARD_OUTPUT)
    errors = PlainConsole(stderr=True, highlight=False, soft_wrap=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ModelWarning)
        try:
            check_output(getattr(arguments, "json", None))
            status = arguments.run(arguments, console) or DONE
        except KeyboardInterrupt:
            errors.print(WORDS)
            status = STOPPED
        except Exception as error:
            status = _report(error, arguments, errors)
    for warning in caught:
        errors.print(f"[yellow]warning[/yellow]: {escape(_in_options(warning.message, arguments))}")
    return status


def _parser(wanted: str) -> argparse.ArgumentParser:
    """Return the parser of the command line, with the options of the ``wanted`` command; completion wants them all."""
    parser = argparse.ArgumentParser(
        prog="torsor",
        description="Exact dynamics of robots, by Newton-Euler recursion.",
        epilog=statuses_help(ALL),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"torsor {torsor.__version__}")
    parsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, summary in COMMANDS.items():
        own = parsers.add_parser(
            name, help=summary, description=summary, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        if wanted in (name, "completion"):
            _add_command(own, command(name))
            own.set_defaults(parser=parser)
    return parser


def _add_command(parser: argparse.ArgumentParser, own: Command) -> None:
    examples = ["examples:", *(f"  {each}" for each in own.examples), "", ""] if own.examples else []
    parser.epilog = "\n".join(examples) + statuses_help(own.statuses)
    parser._negative_number_matcher = NEGATIVE_NUMBER
    own.add_arguments(parser)
    add_json(parser)
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    for action in parser._actions:
        if action.type is Path or (action.type is None and not action.option_strings):
            action.type = partial(_named, action.type or str)
    flags = {action.dest: action.option_strings[-1] for action in parser._actions if action.option_strings}
    parser.set_defaults(run=own.run, flags={**flags, **own.options})


def _named(kind: type, text: str) -> object:
    """Return a name or path of the command line; an empty path would be the folder in which the command runs."""
    if not text:
        raise argparse.ArgumentTypeError("an empty name; fix: give a name, or leave it out")
    return kind(text)


def _report(error: Exception, arguments: argparse.Namespace, errors: Console) -> int:
    """Print an error in one line and return the exit status; with ``--debug``, its traceback before."""
    if arguments.debug:
        errors.print(escape("".join(traceback.format_exception(error))))
    if _is_mistake(error):
        errors.print(f"[bold red]error[/bold red]: {escape(_in_options(error, arguments))}")
        return status_of_error(error)
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    version = f"torsor {torsor.__version__}, Python {sys.version.split()[0]}, {sys.platform}"
    errors.print(f"[bold red]internal error[/bold red]: {escape(text)}")
    traced = "with the lines above" if arguments.debug else "with what the same command prints with --debug"
    errors.print(f"This is a bug in Torsor. Please report it, {traced}, and: {version}")
    return INTERNAL


def _is_mistake(error: Exception) -> bool:
    """Return whether an error is a mistake of the user; any other error is a bug in Torsor."""
    if isinstance(error, OSError):
        if error.filename is None:
            return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EPIPE)
        return PACKAGE not in Path(str(error.filename)).resolve().parents
    if isinstance(error, ImportError):
        return error.name is None  # Torsor's own message about an extra to install; Python's errors name the module
    return isinstance(error, (ModelError, MotionError, SimulationError))


def _in_options(message: Exception | Warning | str, arguments: argparse.Namespace) -> str:
    """Return a message of the library with the options of the command in place of the arguments of the library."""
    if not isinstance(message, Message):
        return str(message)
    fields = {name: _code_in_options(getattr(message, name), arguments.flags) for name in ("what", "allowed", "fix")}
    given = getattr(arguments, message.argument, None)
    given = given[0] if isinstance(given, list) and len(given) == 1 else given  # one number for all
    # A file may have a key with the name of an option.
    is_given = given not in (None, False) if message.value is ... else shown(message.value) == shown(given)
    if message.argument in arguments.flags and is_given:
        fields["argument"] = arguments.flags[message.argument]
    return str(message.but(**fields))


def _code_in_options(text: str, flags: Mapping[str, str]) -> str:
    """Return a text with the arguments between backquotes, as in `steps=2`, as options."""
    parts = text.split("`")
    for k in range(1, len(parts), 2):
        name, _, value = parts[k].partition("=")
        flag = flags.get(name)
        implied = flag and value == str(not flag.startswith("--no-"))
        option = flag if implied or not value else f"{flag} {value.strip(QUOTES)}"
        parts[k] = f"`{parts[k]}`" if flag is None else str(option)
    return "".join(parts)
