"""The definition of a motion that ``torsor predict`` finds: options, problem, report; and the options of a body."""

from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from torsor.base.errors import ModelError, describe
from torsor.human import animate
from torsor.human.body.percentiles import POPULATIONS
from torsor.human.body.person import described_person
from torsor.library.anthropometry import BODY_TABLES
from torsor.motion import MotionProblem, MotionResult
from torsor.robot.robot import Robot


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
    """Output in addition to the table of a result: more ``tables``, a ``plot``, and ``figures`` for the JSON file.

    ``csv`` writes the table of ``--csv``, by default the samples of the motion; ``saves`` has what ``--save`` writes in
    addition to .npz files, by suffix. ``is_stopped`` says that Ctrl-C ended the search before all of its starts.
    """

    plot: Callable[[Path], object]
    tables: tuple[RenderableType, ...] = ()
    figures: Mapping[str, Any] = field(default_factory=dict)
    csv: Callable[[Path], object] | None = None
    saves: Mapping[str, Callable[[Path], object]] = field(default_factory=dict)
    is_stopped: bool = False


def plain_report(result: MotionResult, given: Mapping[str, Any] | None = None) -> Report:
    """Return the report of any motion: its plot."""
    return Report(result.plot)


# Solves a problem, with the options of a prediction that are given, and with settings of ``MotionProblem.solve``.
Search = Callable[[MotionProblem, Mapping[str, Any], Mapping[str, Any]], tuple[MotionResult, Report]]


@dataclass(frozen=True)
class Prediction:
    """A motion that can be predicted: ``torsor predict NAME``.

    ``problem`` makes the motion problem from {name of an option: value}, for the ``options`` that are given; ``report``
    is called with the result and the same options. ``saves`` are suffixes of files that ``--save`` writes beside .npz.
    ``search`` replaces ``problem.solve()`` and ``report`` where options ask for another search.
    """

    name: str
    problem: Callable[[Mapping[str, Any]], MotionProblem]
    options: tuple[Option, ...] = ()
    report: Callable[[MotionResult, Mapping[str, Any]], Report] = plain_report
    saves: tuple[str, ...] = ()
    search: Search | None = None

    def solved(
        self, problem: MotionProblem, given: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> tuple[MotionResult, Report]:
        """Return the motion that is found, and its report."""
        if self.search is not None:
            return self.search(problem, given, settings)
        result = problem.solve(**settings)
        return result, self.report(result, given)


def pair(text: str) -> tuple[str, float]:
    """Return (name, number) from the text NAME=NUMBER.

    Example:
        >>> pair("right_knee_flexion=10")
        ('right_knee_flexion', 10.0)
    """
    name, _, value = text.partition("=")
    try:
        return name, float(value)
    except ValueError:
        allowed = "NAME=NUMBER, as in right_knee_flexion=10"
        raise ArgumentTypeError(describe(f"found {text!r}", allowed=allowed)) from None


def by_name(flag: str, given: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return what an option gives for each name; a name that is given twice is refused.

    Example:
        >>> by_name("--strength", [("left", 0.5), ("knee_flexion", 0.8)])
        {'left': 0.5, 'knee_flexion': 0.8}
    """
    found = dict[str, Any]()
    for name, value in given:
        if name in found:
            raise ModelError("is given twice", argument=name, where=flag, fix="keep one of them")
        found[name] = value
    return found


def pairs(flag: str, text: str, metavar: str = "NAME=NUMBER") -> Option:
    """Return an option that takes one or more NAME=NUMBER."""
    return Option(flag, type=pair, nargs="+", metavar=metavar, help=text)


# Options that several predictions of a human have: who it is, and a box in the hands.
BODY = (
    Option("--height", type=float, metavar="M", help="height of the body (default: 1.741)"),
    Option("--mass", type=float, metavar="KG", help="mass of the body (default: 73)"),
    Option("--sex", choices=tuple(BODY_TABLES), help="table of segments (default: male)"),
    Option("--age", type=float, metavar="YEARS", help="children and older people; sizes not given are medians"),
    Option(
        "--stature-percentile", type=float, metavar="PERCENT", help="taller than this part of the people, for --height"
    ),
    Option("--mass-percentile", type=float, metavar="PERCENT", help="mass that this part of people has at most"),
    Option("--population", choices=POPULATIONS, help="of the percentiles (default: CDC below 20 years, else NHANES)"),
    pairs("--lengths", "lengths of segments (m), as thigh=0.45 left_shank=0.41", "NAME=M"),
    pairs("--strength", "joints that are weaker or stronger, with factors: knee_flexion=0.8 left=0.5"),
    pairs("--largest-torque", "strengths of joints (N m), as elbow_flexion=60", "NAME=NM"),
)
_PAIRS = ("lengths", "strength", "largest_torque")
BOX = Option("--box", type=float, metavar="KG", help="mass of a box in the hands (default of lift: 10)")

ERGONOMICS = Option(
    "--ergonomics",
    type=Path,
    metavar="FILE",
    help="write an ergonomic report to this .html file: loads of the back, lifting equation, percent capable",
)


MOVIES = (".gif", ".mp4")


def movies(result: MotionResult) -> dict[str, Callable[[Path], object]]:
    """Return what writes a motion of a body as a movie, by suffix."""
    return dict.fromkeys(MOVIES, partial(animate, result))


def chosen(given: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return those of the given options that have one of the names.

    Example:
        >>> chosen({"speed": 1.0, "slope": 6.0}, "speed", "length")
        {'speed': 1.0}
    """
    return {name: given[name] for name in names if name in given}


def body_of(given: Mapping[str, Any]) -> Robot:
    """Return the body that the options describe.

    Example:
        >>> round(body_of({"mass": 80.0}).mass, 9)
        80.0
    """
    who = chosen(given, *(option.name for option in BODY))
    for option in BODY:
        if option.name in _PAIRS and option.name in who:
            who[option.name] = by_name(option.flag, who[option.name])
    return described_person(**who).body()
