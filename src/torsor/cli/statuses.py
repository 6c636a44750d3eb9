"""Exit statuses of the command line, by outcome."""

from collections.abc import Mapping

from torsor.base.errors import MotionError, SimulationError
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
ALL = (
    _EVERYWHERE
    | PREDICTED
    | {
        DONE: "the command succeeded; a predicted motion is optimal, also between the nodes",
        NONE: "the motion problem is infeasible (the nearest motion is written); a simulation, an item, "
        "a case of a sweep or a check fails, a checked log is suspicious",
    }
)


def statuses_help(own: Mapping[int, str]) -> str:
    """Return the list of exit statuses for ``--help``: those of all commands, and those of one with its own words.

    Example:
        >>> print(statuses_help({}).splitlines()[1])
          0    the command succeeded
    """
    texts = sorted((_EVERYWHERE | dict(own)).items())
    return "\n".join(["exit status:", *(f"  {status:<4} {text}" for status, text in texts), ""])


def status_of_error(error: Exception) -> int:
    """Return the exit status of an error that is no internal one.

    A conflict of constraints is told from a search that ended without a motion.

    Example:
        >>> status_of_error(SimulationError("too fast")), status_of_error(ValueError("mass is -1"))
        (3, 1)
    """
    if isinstance(error, MotionError):
        return NONE if error.conflict else UNFINISHED
    return NONE if isinstance(error, SimulationError) else MISTAKE
