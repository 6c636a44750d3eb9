"""The definition of a motion that ``torsor predict`` finds: options, problem, report."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from torsor.motion import MotionProblem, MotionResult


class Option:
    """An option of some predictions: its flag, and further arguments of ``ArgumentParser.add_argument``.

    Two predictions that have the same option share one object. Without the option, its value is None.

    Example:
        >>> Option("--seat", type=float, metavar="M", help="height of the seat").name
        'seat'
    """

    def __init__(self, flag: str, **settings: Any) -> None:
        self.flag, self.settings = flag, {"default": None, **settings}
        self.name = flag.removeprefix("--").replace("-", "_")


@dataclass(frozen=True)
class Report:
    """Output in addition to the table of a result: more ``tables``, a ``plot``, and ``figures`` for the JSON file."""

    plot: Callable[[Path], object]
    tables: tuple[RenderableType, ...] = ()
    figures: Mapping[str, Any] = field(default_factory=dict)


def plain_report(result: MotionResult) -> Report:
    """Return the report of any motion: its plot."""
    return Report(result.plot)


@dataclass(frozen=True)
class Prediction:
    """A motion that can be predicted: ``torsor predict NAME``.

    ``problem`` makes the motion problem from {name of an option: value}, for the ``options`` that are given; ``report``
    is called with the result.
    """

    name: str
    problem: Callable[[Mapping[str, Any]], MotionProblem]
    options: tuple[Option, ...] = ()
    report: Callable[[MotionResult], Report] = plain_report
