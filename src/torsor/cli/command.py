"""The definition of a command, and the parser that prints its help."""

import argparse
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field
from textwrap import fill
from typing import TYPE_CHECKING, Any

from torsor.base.errors import MotionError, SimulationError
from torsor.base.startup import STOPPED

if TYPE_CHECKING:
    from rich.console import Console

DONE, MISTAKE, ARGUMENTS, NONE, UNFINISHED, ONLY_AT_NODES, INTERNAL = 0, 1, 2, 3, 4, 5, 70

_EVERYWHERE = {
    DONE: "success",
    MISTAKE: 'invalid input; the line "error: ..." states the reason',
    ARGUMENTS: "invalid command line: unknown command or option, missing argument",
    INTERNAL: "internal error: a bug in Torsor, please report it",
    STOPPED: "stopped by Ctrl-C",
}
SIMULATED = {NONE: "the simulation failed", STOPPED: "stopped by Ctrl-C; the motion so far is written"}
DOCTORED = {NONE: "a check of the self-test failed"}
EXCITED = {STOPPED: "stopped by Ctrl-C; the best trajectory so far is written"}
CHECKED = {NONE: "with --check: a quality check of the logs failed"}
REPRODUCED = {NONE: "an item differs from the printed value without a known reason"}
SWEPT = {
    DONE: "all cases are solved",
    NONE: "some cases failed; their rows contain the reason",
    STOPPED: "stopped by Ctrl-C; finished cases are kept, and --resume continues",
}
PREDICTED = {
    DONE: "success; the motion is optimal and satisfies its constraints between the nodes",
    NONE: "the motion problem is infeasible; the closest motion is written",
    UNFINISHED: "the solver did not reach an optimum: time limit, iteration limit or no progress",
    ONLY_AT_NODES: "the motion is optimal at the nodes but violates a constraint between them",
    STOPPED: "stopped by Ctrl-C; the best motion so far is written",
}
ALL = _EVERYWHERE | PREDICTED
ALL[DONE] = "success"
ALL[NONE] = "infeasible problem, failed simulation, failed check or failed case"

WIDTH, INDENT = 80, 24  # columns of the help, and indentation of the descriptions
_POSITIONAL = "positional arguments"  # argparse's name for this group
# Options that many commands share and that only ``--help-all`` shows.
GENERAL = ("--base", "--strict", "--snap", "--search", "--xacro", "--force", "--debug")


def statuses_help(statuses: Mapping[int, str]) -> str:
    """Return the list of exit statuses: those of all commands and those of one command, by number."""
    texts = sorted((_EVERYWHERE | dict(statuses)).items())
    lines = [fill(f"  {status:<4} {text}", WIDTH - 1, subsequent_indent=" " * 7) for status, text in texts]
    return "\n".join(["exit status:", *lines, ""])


def status_of_error(error: Exception) -> int:
    """Return the exit status of an error.

    An infeasible problem and an unsuccessful search have different statuses.
    """
    if isinstance(error, MotionError):
        return NONE if error.conflict else UNFINISHED
    return NONE if isinstance(error, SimulationError) else MISTAKE


@dataclass(frozen=True)
class Command:
    """A command, ``torsor NAME ...``: the object ``COMMAND`` in the file ``NAME.py``.

    ``add_arguments`` declares its options in addition to ``--json``, ``--force`` and ``--debug``, which all commands
    have. ``run`` does the work and prints to the console. It raises ``ModelError``, ``MotionError``,
    ``SimulationError`` or ``OSError`` if the input is invalid, and returns None for success or an exit status.
    ``statuses`` contains the exit statuses of this command alone. ``examples`` are complete command lines for
    ``--help``. ``options`` maps library arguments to options with different names. ``main`` lists the options that
    ``--help`` shows (default: all but ``GENERAL``); ``--help-all`` shows all.
    """

    add_arguments: Callable[[ArgumentParser], None]
    run: "Callable[[Namespace, Console], int | None]"
    statuses: Mapping[int, str] = field(default_factory=dict)
    examples: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    main: str = ""


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Formatter that writes options as ``-o, --output FILE`` and lists of values as ``Q ...``, in 80 columns."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=INDENT, width=WIDTH - 1)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings:
            return self._format_args(action, action.dest)
        names = ", ".join(action.option_strings)
        return names if action.nargs == 0 else f"{names} {self._format_args(action, action.dest.upper())}"

    def _format_args(self, action: argparse.Action, default_metavar: str) -> str:
        if action.nargs not in ("+", "*"):
            return super()._format_args(action, default_metavar)
        names = action.metavar or default_metavar
        return f"{names if isinstance(names, str) else ' '.join(names)} ..."


class CommandParser(ArgumentParser):
    """A parser whose ``--help`` shows the main options, with the first sentence of each description.

    ``--help-all`` shows all options with their full descriptions, and the exit statuses.
    """

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **{**settings, "formatter_class": HelpFormatter, "add_help": False})
        self.add_argument("-h", "--help", action=_Help, help="show this help and exit")
        self.add_argument("--help-all", action=_Help, help="show all options and the exit statuses")
        self.own: Command | None = None

    def complete(self, own: Command) -> None:
        """Add the examples and the main options of a command, after its arguments are declared."""
        self.own = own
        formatter, words = HelpFormatter(self.prog), []
        for action in self._actions:
            if not action.option_strings:
                word = formatter._format_args(action, action.dest)
                words.append(f"[{word.strip('[]')}]" if action.nargs in ("*", "?") else word)
            elif action.required:
                words.append(formatter._format_action_invocation(action))
        self.usage = " ".join(["%(prog)s", *words, "[options]"])

    def format_help(self, is_whole: bool = False) -> str:
        """Return the help of the command: the main options, or all of them."""
        if self.own is None:
            return super().format_help()
        formatter = HelpFormatter(self.prog)
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        hidden = sum(not self._is_main(action) for action in self._actions)
        if is_whole:
            sections = {str(group.title): group._group_actions for group in self._action_groups}
        else:
            main = [_shortened(action) for action in self._actions if self._is_main(action)]
            sections = {_POSITIONAL: [action for action in main if not action.option_strings]}
            sections["options"] = [action for action in main if action.option_strings]
        for title, actions in sections.items():
            formatter.start_section("arguments" if title == _POSITIONAL else title)
            formatter.add_arguments(actions)
            formatter.end_section()
        text = formatter.format_help()
        if self.own.examples:
            text += "\n".join(["\nexamples:", *(f"  {line}" for line in self.own.examples), ""])
        if is_whole:
            return f"{text}\n{statuses_help(self.own.statuses)}"
        return f"{text}\n{self.prog} --help-all shows {hidden} more options and the exit statuses.\n"

    def _is_main(self, action: argparse.Action) -> bool:
        if not action.option_strings:
            return True
        assert self.own is not None
        flag = action.option_strings[-1]
        return flag in self.own.main.split() if self.own.main else flag not in ("--help", "--help-all", *GENERAL)


class _Help(argparse.Action):
    """Print the help (in full for ``--help-all``) and exit."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **{**settings, "nargs": 0, "default": argparse.SUPPRESS})

    def __call__(self, parser: ArgumentParser, namespace: Namespace, values: Any, option: str | None = None) -> None:
        assert isinstance(parser, CommandParser)
        sys.stdout.write(parser.format_help(is_whole=option == "--help-all"))
        parser.exit()


def _shortened(action: argparse.Action) -> argparse.Action:
    """Return an argument with the first sentence of its help."""
    short = copy(action)
    short.help = (action.help or "").partition(". ")[0]
    return short
