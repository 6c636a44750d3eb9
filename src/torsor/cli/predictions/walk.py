"""``torsor predict walk``: one step of a human, or a stride, and its report."""

import argparse
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from torsor.base.checks import positive, whole_number
from torsor.base.errors import ModelError, describe
from torsor.cli.predictions.prediction import (
    BODY,
    BOX,
    ERGONOMICS,
    MOVIES,
    Option,
    Prediction,
    Report,
    body_of,
    by_name,
    chosen,
    movies,
    pairs,
    plain_report,
)
from torsor.human import Backpack, Box, Step, Stride, near_optimal_walks, recorded_walk, walking, write_opensim
from torsor.human.comparison.given import given_references
from torsor.human.comparison.recorded import SUFFIXES
from torsor.human.contact.free_walk import FreeWalk
from torsor.human.gait.near_optimal import MOST_STARTS
from torsor.human.gait.settings import FREE_OBJECTIVES, OBJECTIVES, VERSIONS
from torsor.human.gait.stride import peaks_table
from torsor.human.terms.habits import METRES
from torsor.human.terms.problem import walk_of
from torsor.motion import MotionError, MotionProblem, MotionResult
from torsor.robot.robot import Robot

ONE_START = (
    "Found from one start, the initial guess: a local minimum. Other starts may end at other walks that are nearly as "
    "good; --starts 4 shows how far they are apart."
)
LET_FREE = "or --version free: the times of the contacts, which are given here, are then results as well"
TREAD, CLIMB = 0.29, 0.5  # m, m/s: stairs without --length and --speed
STEEPEST = 45.0  # degrees: the range of walking's argument ``slope``, in the unit of --slope


def _range(text: str) -> tuple[str, tuple[float, float]]:
    """Return (name, (least, most)) from the text NAME=LEAST:MOST.

    Example:
        >>> _range("knee_flexion=30:120")
        ('knee_flexion', (30.0, 120.0))
    """
    name, _, ends = text.partition("=")
    low, _, high = ends.partition(":")
    try:
        least, most = float(low), float(high)
        if not least <= most:
            raise ValueError
        return name, (least, most)
    except ValueError:
        allowed = "NAME=LEAST:MOST, as in knee_flexion=30:120"
        raise argparse.ArgumentTypeError(describe(f"found {text!r}", allowed=allowed)) from None


def _words(names: Iterable[str]) -> str:
    """Return names as words of a command line."""
    return ", ".join(name.replace(" ", "_") for name in names)


_VERSIONS = (
    "free: length, width and times of the step are found as well, without habits (default with --speed alone); "
    "clean: 8 control points, forces that do not jump, feet that do not slip (default otherwise); "
    "thesis: 6 control points, looser contact; "
    "printed: Barman's equations alone, which no known motion satisfies; "
    "nearest: the same with contact within 2 mm and 2 mm/s"
)
# Options that walking and running have.
SPEED = Option(
    "--speed",
    type=float,
    metavar="M/S",
    help="speed (default: 1.2, run: 3.0); without --length, and for one step, the best step length is found",
)
LENGTH = Option(
    "--length", type=float, metavar="M", help="length of a step (default: 0.6, or free with --speed; run: free)"
)
WIDTH = Option("--width", type=float, metavar="M", help="width of a step (default: 0.1, run: free)")
PLANAR = Option("--planar", action="store_true", help="freeze lateral motion")
FROZEN = pairs("--frozen", "joints that do not move, with their angles in degrees")
OBJECTIVE = pairs(
    "--objective",
    f"weights of {_words(OBJECTIVES)} (default: effort=1); with --version free, of "
    f"{_words(FREE_OBJECTIVES)}; of a run: energy, effort, accelerations",
)
OPTIONS = (
    *BODY,
    SPEED,
    LENGTH,
    WIDTH,
    Option("--slope", type=float, metavar="DEGREES", help="slope, positive uphill (default: 0)"),
    Option(
        "--rise",
        type=float,
        metavar="M",
        help="stairs: rise of each step, negative downstairs; --length is the tread (then default: 0.29 m at 0.5 m/s), "
        "the version is free",
    ),
    Option("--backpack", type=float, metavar="KG", help="mass of a backpack"),
    BOX,
    Option("--version", choices=tuple(VERSIONS), help=_VERSIONS),
    Option("--steps", type=int, choices=(1, 2), help="2: left and right may differ"),
    PLANAR,
    FROZEN,
    Option(
        "--range",
        type=_range,
        nargs="+",
        metavar="NAME=LEAST:MOST",
        help="ranges of joints in degrees (tx, ty, tz in m), as in knee_flexion=30:120 for crouched walking",
    ),
    ERGONOMICS,
    Option(
        "--compare",
        nargs="+",
        action="append",
        metavar="FILE",
        help="compare with recorded people: files of one recording (.mot, .sto, .csv, .npz: angles, moments, ground "
        'forces), or a built-in reference, such as "Schwartz 2008"; may be repeated',
    ),
    Option("--compare-mass", type=float, metavar="KG", help="mass of the recorded person (default: by the forces)"),
    Option("--samples", type=Path, metavar="FILE", help="write the samples of the solved step to this table (.csv)"),
    Option(
        "--starts",
        type=int,
        metavar="N",
        help="search from N starts: the best walk, and the spread of those within 2 %% of its objective (default: 1)",
    ),
    Option("--workers", type=int, metavar="N", help="processes of --starts (default: one for each core)"),
    OBJECTIVE,
)


def _problem(given: Mapping[str, Any]) -> MotionProblem:
    given_references(_references(given), "right", Stride)  # a mistake in a file is told before the search
    _check_starts(given)
    body = body_of(given)
    if "backpack" in given and "box" in given:
        raise ModelError("--backpack and --box are both given", where="walk", allowed="one of them")
    for name in ("backpack", "box"):
        if name in given:
            positive(given[name], "walk", name)
    load = Backpack(given["backpack"]) if "backpack" in given else Box(given["box"]) if "box" in given else None
    slope = given.get("slope", 0.0)
    if not abs(slope) < STEEPEST:
        allowed = f"degrees, between {-STEEPEST:g} and {STEEPEST:g}"
        raise ModelError(f"--slope is {slope:g}", where="walk", allowed=allowed)
    return walking(
        body,
        _step(given),
        load=load,
        slope=math.radians(slope),
        **joints_and_weights(body, given, "walk"),
        ranges={name: _in_radians(name, ends) for name, ends in by_name("--range", given.get("range", ())).items()},
        **chosen(given, "version", "steps", "planar"),
    )


def joints_and_weights(body: Robot, given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return frozen joints (rad) and weights of the objective from the options."""
    return {
        "frozen": _frozen(body, by_name("--frozen", given.get("frozen", ())), where),
        "objective": _objective(given["objective"]) if "objective" in given else None,
    }


def _objective(pairs: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Return weights by name; joint_loads is "joint loads", which a shell would split."""
    return by_name("--objective", ((name.replace("_", " "), weight) for name, weight in pairs))


def _step(given: Mapping[str, Any]) -> Step:
    """Return the step; what is not given is free on stairs, with --version free, and with a speed alone."""
    is_alone = (
        "speed" in given and not {"length", "version", "box", "planar"} & given.keys() and given.get("steps") != 2
    )
    free: dict[str, Any] = {}
    if given.get("rise") == 0:
        raise ModelError("--rise is 0", where="walk", allowed="another number", fix="leave it out: level ground")
    if "rise" in given:
        free = {"length": TREAD, "speed": CLIMB, "width": "free", "timing": "free"}
    elif given.get("version") == "free" or is_alone:
        free = {"length": "free", "width": "free", "timing": "free"}
    return Step(**(free | chosen(given, "speed", "length", "width", "rise")))


def _in_radians(name: str, ends: tuple[float, float]) -> tuple[float, float]:
    """Return a range in rad; the slides of the pelvis are in m."""
    return ends if name in METRES else (math.radians(ends[0]), math.radians(ends[1]))


def _frozen(body: Robot, degrees: Mapping[str, float], where: str) -> dict[str, float]:
    """Return the angles of frozen joints in rad; an error about their ranges is in degrees, as the option is."""
    for k, name in enumerate(body.coordinate_names):
        low, high = (round(math.degrees(each[k]), 6) for each in (body.lower, body.upper))
        if name in degrees and not low <= degrees[name] <= high:
            found, allowed = f"--frozen {name}={degrees[name]:g}", f"degrees, from {low:g} to {high:g}"
            raise ModelError(found, where=where, allowed=allowed)
    return {name: math.radians(angle) for name, angle in degrees.items()}


def _references(given: Mapping[str, Any]) -> list[Any] | None:
    """Return what --compare names, None if it is not given: several files are one recording."""
    named, mass = given.get("compare"), given.get("compare_mass")
    recorded = [names for names in named or () if Path(names[0]).suffix.lower() in SUFFIXES]
    if mass is not None and not recorded:
        fix = "--compare forces.mot names a recording"
        raise ModelError("--compare-mass without a recording", where="walk", fix=fix)
    if named is None:
        return None
    return [
        recorded_walk(*names, mass=mass) if names in recorded else names[0] if len(names) == 1 else tuple(names)
        for names in named
    ]


def _check_starts(given: Mapping[str, Any]) -> None:
    for name in chosen(given, "starts", "workers"):
        whole_number(given[name], "walk", name, most=MOST_STARTS)
    if "workers" in given and given.get("starts", 1) == 1:
        raise ModelError("--workers without several starts", where="walk", fix="--starts 4")


def _search(
    problem: MotionProblem, given: Mapping[str, Any], settings: Mapping[str, Any]
) -> tuple[MotionResult, Report]:
    """Return the walk and its report; with several starts, the best walk, with the spread of the near-optimal ones."""
    is_free = isinstance(walk_of(problem)[1], FreeWalk)
    if given.get("starts", 1) == 1:
        try:
            result = problem.solve(**settings)
        except MotionError as error:
            if not is_free:
                error.fix = f"{error.fix}; {LET_FREE}" if error.fix else LET_FREE
            raise
        report = stride_report(result, given)
        return result, replace(report, tables=(*report.tables, ONE_START)) if is_free else report
    from torsor.motion.sweeps.processes import cores  # slow to import, and few searches have several starts

    found = near_optimal_walks(problem, given["starts"], workers=given.get("workers", cores()), **settings)
    report = stride_report(found.best, given)
    return found.best, replace(
        report,
        plot=partial(found.plot, references=_references(given)),
        tables=(*report.tables, found),
        figures={**report.figures, "near_optimal": found.to_dict()},
        is_stopped=len(found) < found.starts,
    )


def stride_report(result: MotionResult, given: Mapping[str, Any]) -> Report:
    """Return the report of a walk or a run: its stride, and a comparison."""
    if not result.is_feasible:
        return plain_report(result)
    stride = Stride(result)
    tables: tuple[RenderableType, ...] = (stride,)
    figures = {"stride": stride.to_dict()}
    if stride.walk.steps == 2:  # the sides may differ
        left = Stride(result, "left")
        tables += (peaks_table(left),)
        figures["left_stride"] = left.to_dict()
    references = _references(given)
    if references is not None:
        compared = stride.likeness(references)
        tables += (compared,)
        figures["comparison"] = compared.to_dict()
    saves: dict[str, Callable[[Path], object]] = {**movies(result), ".mot": partial(write_opensim, stride)}
    return Report(partial(stride.plot, references=references), tables, figures, stride.save, saves)


WALK = Prediction("walk", _problem, OPTIONS, stride_report, (*MOVIES, ".mot"), _search)
