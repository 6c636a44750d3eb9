"""The definition of a command of the command line."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.text import Text

from torsor.base.errors import MotionError, SimulationError, printable
from torsor.base.startup import STOPPED

DONE, MISTAKE, ARGUMENTS, NONE, UNFINISHED, ONLY_AT_NODES, INTERNAL = 0, 1, 2, 3, 4, 5, 70

_EVERYWHERE = {
    DONE: "the command succeeded",
    MISTAKE: 'the input is wrong; "error: ..." says why',
    ARGUMENTS: "the command line is wrong: an unknown command or option, or a missing argument",
    INTERNAL: "internal error: a bug in Torsor; please report it",
    STOPPED: "stopped by Ctrl-C",
}
SIMULATED = {NONE: "the simulation failed"}
DOCTORED = {NONE: "a check of the self-test fails"}
EXCITED = {STOPPED: "stopped by Ctrl-C; the best motion until then is written"}
CHECKED = {NONE: "with --check: something in the logs is suspicious"}
REPRODUCED = {NONE: "an item fails: ours differs from the printed value, and no reason explains it"}
SWEPT = {
    DONE: "all cases are done",
    NONE: "cases failed, or their motions were not solved; their rows have the reason",
    STOPPED: "stopped by Ctrl-C; what is done is kept, and --resume goes on",
}
PREDICTED = {
    DONE: "the command succeeded; the predicted motion is optimal, also between the nodes",
    NONE: "the motion problem is infeasible; the nearest motion is written",
    UNFINISHED: "the search ended before an optimum: at --seconds or --iterations, or without a better step",
    ONLY_AT_NODES: "the predicted motion is optimal at the nodes only: between them it violates a constraint",
    STOPPED: "stopped by Ctrl-C; a motion that was found until then is written",
}
ALL = _EVERYWHERE | PREDICTED
ALL[DONE] = "the command succeeded; a predicted motion is optimal, also between the nodes"
ALL[NONE] = (
    "the motion problem is infeasible (the nearest motion is written); a simulation, an item, a case of a sweep or a "
    "check fails, a checked log is suspicious"
)


def statuses_help(own: Mapping[int, str]) -> str:
    """Return the list of exit statuses for ``--help``: those of all commands, and those of one with its own words."""
    texts = sorted((_EVERYWHERE | dict(own)).items())
    return "\n".join(["exit status:", *(f"  {status:<4} {text}" for status, text in texts), ""])


def status_of_error(error: Exception) -> int:
    """Return the exit status of an error of the user's input, of a search or of a simulation.

    A search whose constraints are in conflict has another status than one that ended without a motion.
    """
    if isinstance(error, MotionError):
        return NONE if error.conflict else UNFINISHED
    return NONE if isinstance(error, SimulationError) else MISTAKE


# The console of the command line: names from files are shown, and cannot command the terminal.


class PlainConsole(Console):
    """A console that shows control characters as escapes, in text and in the cells of tables."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Return text as Rich shows it, its control characters as escapes."""
        return super().render_str(printable(text), **options)


@dataclass(frozen=True)
class Command:
    """One command: ``torsor NAME ...``, the object ``COMMAND`` of the file ``NAME.py``.

    ``add_arguments`` declares its options besides ``--json`` and ``--debug``, which all have. ``run`` does the work and
    prints to the console; it raises a ``ModelError`` (or ``MotionError``, ``SimulationError``, ``OSError``) for a
    mistake of the user, and returns None when it succeeded, or another exit status of ``torsor.cli.command``.
    ``statuses`` are those that not all commands have, or with another meaning, and their words in ``--help``, which
    also shows ``examples``: whole command lines. ``options`` names the option of each argument of the library that has
    another name than its option.
    """

    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace, Console], int | None]
    statuses: Mapping[int, str] = field(default_factory=dict)
    examples: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
