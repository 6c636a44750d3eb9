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
from torsor.base.errors import ModelError, ModelWarning, MotionError, SimulationError
from torsor.base.startup import STOPPED, WORDS
from torsor.cli.command import Command
from torsor.cli.commands import COMMANDS, command
from torsor.cli.console import PlainConsole
from torsor.cli.outputs import check_output
from torsor.cli.statuses import ALL, ARGUMENTS, DONE, INTERNAL, status_of_error, statuses_help

# Advice that has no option, or one of another name: by the words of the library, those of the command line.
IN_PYTHON = {
    r"\bsimplify=False\b": "--no-simplify",
    r"load\(\.\.\., search=\[\.\.\.\]\)": "--search FOLDER",
    r"use inverse_kinematics\b": "leave --all out",
    r"use kind=\"compliant\"": "use --contact compliant",
    r" \(start=, \w+\)": " (in Python: solve(start=...))",
    r"robot\.open_tree\(\), or loops='open' where it is an argument,": "in Python, robot.open_tree()",
}
# By itself, argparse takes -1e-3 for an option.
NEGATIVE_NUMBER = re.compile(r"^-(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$")
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
        text = _in_options(str(warning.message), arguments.flags, vars(arguments))
        errors.print(f"[yellow]warning[/yellow]: {escape(text)}")
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
    parser.epilog = _examples(own) + statuses_help(own.statuses)
    parser._negative_number_matcher = NEGATIVE_NUMBER
    own.add_arguments(parser)
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    for action in parser._actions:
        if action.type is Path or (action.type is None and not action.option_strings):
            action.type = partial(_named, action.type or str)
    flags = {action.dest: action.option_strings[-1] for action in parser._actions if action.option_strings}
    parser.set_defaults(run=own.run, flags=flags)


def _named(kind: type, text: str) -> object:
    """Return a name or path of the command line; an empty path would be the folder in which the command runs.

    Example:
        >>> str(_named(Path, "arm.toml"))
        'arm.toml'
    """
    if not text:
        raise argparse.ArgumentTypeError("an empty name; fix: give a name, or leave it out")
    return kind(text)


def _examples(command: Command) -> str:
    return "\n".join(["examples:", *(f"  {each}" for each in command.examples), "", ""]) if command.examples else ""


def _report(error: Exception, arguments: argparse.Namespace, errors: Console) -> int:
    """Print an error in one line and return the exit status; with ``--debug``, its traceback before."""
    if arguments.debug:
        errors.print(escape("".join(traceback.format_exception(error))))
    if _is_mistake(error):
        text = escape(_in_options(str(error), arguments.flags, vars(arguments)))
        errors.print(f"[bold red]error[/bold red]: {text}")
        return status_of_error(error)
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    version = f"torsor {torsor.__version__}, Python {sys.version.split()[0]}, {sys.platform}"
    errors.print(f"[bold red]internal error[/bold red]: {escape(text)}")
    traced = "with the lines above" if arguments.debug else "with what the same command prints with --debug"
    errors.print(f"This is a mistake in Torsor, not in your input. Please report it, {traced}, and: {version}")
    return INTERNAL


def _is_mistake(error: Exception) -> bool:
    """Return whether an error is a mistake of the user; any other error is a mistake in Torsor."""
    if isinstance(error, OSError):
        if error.filename is None:
            return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EPIPE)
        return PACKAGE not in Path(str(error.filename)).resolve().parents
    if isinstance(error, ImportError):
        return error.name is None  # Torsor's own message about an extra to install; Python's errors name the module
    return isinstance(error, (ModelError, MotionError, SimulationError))


def _in_options(message: str, flags: Mapping[str, str], given: Mapping[str, object]) -> str:
    """Return a message of the library in the words of the command line: ``--steps 2`` in place of ``steps=2``.

    Example:
        >>> flags = {"steps": "--steps", "version": "--version"}
        >>> _in_options("walk: steps is 3; fix: version='clean'", flags, {"steps": 3})
        'walk: --steps is 3; fix: --version clean'
        >>> _in_options("tie_break of given durations; fix: leave it out", {"tie_break": "--tie-break"}, {})
        '--tie-break of given durations; fix: leave it out'
        >>> _in_options("the control points is 2; fix: solve(points=...)", {"points": "--points"}, {"points": 2})
        'the control points is 2; fix: solve(points=...)'
        >>> _in_options("no compiler; fix: binary=False", {"binary": "--no-binary"}, {})
        'no compiler; fix: --no-binary'
    """
    for words, instead in IN_PYTHON.items():
        message = re.sub(words, instead, message)
    for name, flag in flags.items():
        message = re.sub(rf"\b{name}={not flag.startswith('--no-')}\b", flag, message)
        message = re.sub(rf"\b{name}=(['\"]?)([\w+-][\w.+-]*)\1", rf"{flag} \2", message)
        if "_" in name:  # no word of a sentence
            message = re.sub(rf"(?<![\w./'\"-]){name}(?![\w./'\"=-])", flag, message)
        value = given.get(name)
        value = value[0] if isinstance(value, list) and len(value) == 1 else value  # one number for all
        found, told = re.escape(f"{name} is {value!r}"), f"{flag} is {value}".replace("\\", r"\\")
        message = re.sub(rf"(?:^|(?<=: )){found}(?=;|$)", told, message)
    return message
