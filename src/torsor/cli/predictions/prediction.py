"""The definition of a built-in problem of ``torsor predict``: its options, its problem and its report."""

import math
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, Self

from rich.console import RenderableType

from torsor.base.errors import ModelError, describe
from torsor.cli.options import OutputFile
from torsor.cli.states import pair
from torsor.human import animate
from torsor.human.terms.habits import METRES
from torsor.motion import MotionProblem, MotionResult
from torsor.motion.declaration import Argument, NamedProblem


class Option:
    """An option of some predictions: its flag, and settings for ``ArgumentParser.add_argument``.

    Options with the same flag are equal. If an option is not given, its value is None.
    """

    def __init__(self, flag: str, **settings: Any) -> None:
        self.flag, self.settings = flag, {"default": None, **settings}
        self.name = flag.removeprefix("--").replace("-", "_")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Option) and self.flag == other.flag

    def __hash__(self) -> int:
        return hash(self.flag)


@dataclass(frozen=True)
class Report:
    """Output in addition to the table of a result: more ``tables``, a ``plot``, and ``figures`` for the JSON file.

    ``csv`` writes the table (.csv), by default the samples of the motion. ``saves`` maps suffixes other than .npz
    and .csv to the functions that write these files. ``is_stopped`` is True if Ctrl-C ended the search before all
    initial guesses. ``assessment`` is the ergonomic assessment, if it is known.
    """

    plot: Callable[[Path], object]
    tables: tuple[RenderableType, ...] = ()
    figures: Mapping[str, Any] = field(default_factory=dict)
    csv: Callable[[Path], object] | None = None
    saves: Mapping[str, Callable[[Path], object]] = field(default_factory=dict)
    is_stopped: bool = False
    assessment: Any = None


def plain_report(result: MotionResult, given: Mapping[str, Any] | None = None) -> Report:
    """Return the report of a motion, which has only a plot."""
    return Report(result.plot)


# Function that solves a problem with the given options of a prediction and the settings of ``MotionProblem.solve``.
Search = Callable[[MotionProblem, Mapping[str, Any], Mapping[str, Any]], tuple[MotionResult, Report]]


@dataclass(frozen=True)
class Prediction:
    """A motion that can be predicted: ``torsor predict NAME``.

    ``problem`` builds the motion problem from the given options by name, and ``report`` is called with the result and
    the same options. ``saves`` are the suffixes of ``--output`` in addition to .npz and .csv. ``search`` replaces
    ``problem.solve()`` and ``report`` if options require a different search. ``defaults`` are the option defaults.
    """

    name: str
    problem: Callable[[Mapping[str, Any]], MotionProblem]
    options: tuple[Option, ...] = ()
    report: Callable[[MotionResult, Mapping[str, Any]], Report] = plain_report
    saves: tuple[str, ...] = ()
    search: Search | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        named: NamedProblem,
        *more: Option,
        prepare: Callable[[Mapping[str, Any], dict[str, Any]], dict[str, Any]] | None = None,
        **own: Any,
    ) -> Self:
        """Return the prediction of a declared problem, with ``more`` options of the command line.

        ``prepare`` is called with the given options and the values of the problem's arguments, and returns the values
        to use.
        """
        declared = {option_of(argument): argument for argument in named.arguments if argument.kind is not list}

        def problem(given: Mapping[str, Any]) -> MotionProblem:
            values = {
                argument.name: value_of(argument, given[option.name], named.name)
                for option, argument in declared.items()
                if option.name in given
            }
            return named(**(values if prepare is None else prepare(given, values)))

        defaults = {option.name: named.defaults[argument.name] for option, argument in declared.items()}
        return cls(named.name, problem, (*declared, *more), defaults=defaults, **own)

    def solved(
        self, problem: MotionProblem, given: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> tuple[MotionResult, Report]:
        """Return the solved motion and its report."""
        if self.search is not None:
            return self.search(problem, given, settings)
        result = problem.solve(**settings)
        return result, self.report(result, given)


def by_name(flag: str, given: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return the values of an option by name; raise ModelError if a name is given twice.

    Example:
        >>> by_name("--strength", [("left", 0.5), ("knee_flexion", 0.8)])
        {'left': 0.5, 'knee_flexion': 0.8}
    """
    values = dict[str, Any]()
    for name, value in given:
        if name in values:
            raise ModelError("is given twice", argument=name, where=flag, fix="keep one of them")
        values[name] = value
    return values


def interval(text: str) -> tuple[str, tuple[float, float]]:
    """Return (name, (minimum, maximum)) from the text NAME=MIN:MAX."""
    name, _, ends = text.partition("=")
    low, _, high = ends.partition(":")
    try:
        minimum, maximum = float(low), float(high)
        if not minimum <= maximum:
            raise ValueError
        return name, (minimum, maximum)
    except ValueError:
        allowed = "NAME=MIN:MAX, such as knee_flexion=30:120"
        raise ArgumentTypeError(describe(f"{text!r} is not a range", allowed=allowed)) from None


@cache
def option_of(argument: Argument) -> Option:
    """Return the option of a declared argument."""
    settings: dict[str, Any] = {"help": argument.help}
    if argument.kind is bool:
        settings["action"] = "store_true"
    else:
        readers: dict[type, Any] = {dict: pair, tuple: interval}
        settings["type"] = readers.get(argument.kind, argument.kind)
        settings["choices"], settings["metavar"] = argument.choices or None, argument.metavar
        if argument.kind in (dict, tuple):
            settings["nargs"] = "+"
        elif argument.count is not None:
            settings["nargs"] = argument.count if isinstance(argument.count, int) else "+"
    return Option(f"--{argument.option_name.replace('_', '-')}", **settings)


def value_of(argument: Argument, given: Any, where: str) -> Any:
    """Return the value of an argument from the value of its option."""
    option = option_of(argument)
    if argument.kind in (dict, tuple):
        values = by_name(option.flag, given)
        return {name: _in_radians(name, angle) for name, angle in values.items()} if argument.degrees else values
    if argument.degrees:
        low, high = (math.degrees(argument.bounds[end]) for end in ("above", "below"))
        if not low < given < high:
            allowed = f"degrees, between {low:g} and {high:g}"
            raise ModelError(f"{option.flag} is {given:g}", where=where, allowed=allowed)
        return math.radians(given)
    if argument.count == "1+" and len(given) == 1:
        given = given[0]
    argument.check(given, where, option.name)
    return given


def _in_radians(name: str, value: Any) -> Any:
    """Return an angle or a range of angles in rad; translations of the pelvis are in m."""
    if name in METRES:
        return value
    return tuple(map(math.radians, value)) if isinstance(value, tuple) else math.radians(value)


_TEXT = "write an ergonomic report (.html): spine loads, lifting equation, percent capable"
ERGONOMICS = Option("--ergonomics", action=OutputFile, kind="report", suffixes=(".html",), metavar="FILE", help=_TEXT)
MOVIES = (".gif", ".mp4")


def movies(result: MotionResult) -> dict[str, Callable[[Path], object]]:
    """Return the functions that write a human motion as a movie, by suffix."""
    return dict.fromkeys(MOVIES, partial(animate, result))
