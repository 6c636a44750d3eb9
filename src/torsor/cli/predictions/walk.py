"""``torsor predict walk`` and ``run``: one step of a human, or a stride, and its report."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from torsor.base.checks import whole_number
from torsor.base.errors import ModelError
from torsor.cli.options import OutputFile
from torsor.cli.predictions.prediction import ERGONOMICS, MOVIES, Option, Prediction, Report, movies, plain_report
from torsor.human import Stride, near_optimal_walks, recorded_walk, write_opensim
from torsor.human.comparison.given import given_references
from torsor.human.comparison.recorded import SUFFIXES
from torsor.human.gait.near_optimal import MAX_STARTS
from torsor.human.gait.stride import peaks_table
from torsor.human.problems import PERSON, PROBLEMS, body_of
from torsor.motion import MotionProblem, MotionResult

ONE_START = (
    "This walk is a local minimum, found from one initial guess. Other walks may be nearly as good: --starts 4 shows "
    "how much they differ."
)
TREAD, CLIMB = 0.29, 0.5  # m, m/s: stairs without --length and --speed

COMPARE = "compare with a recording or a reference. A recording is one or more files with angles, moments and ground "
COMPARE += 'forces (.mot, .sto, .csv, .npz); a reference is a name such as "Schwartz 2008". The option may be repeated'
STARTS = "number of initial guesses (default: 1). The spread of all walks within 2 %% of the best objective is shown"
SAMPLES = "write the solved step as a table (.csv)"
OPTIONS = (
    ERGONOMICS,
    Option("--compare", nargs="+", action="append", metavar="FILE", help=COMPARE),
    Option("--compare-mass", type=float, metavar="KG", help="mass of the recorded person (default: from the forces)"),
    Option("--samples", action=OutputFile, suffixes=(".csv",), metavar="FILE", help=SAMPLES),
    Option("--starts", type=int, metavar="N", help=STARTS),
    Option("--workers", type=int, metavar="N", help="number of processes for --starts (default: one per core)"),
)


def _prepare_walk(given: Mapping[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of the arguments, with those of stairs, after checking the options."""
    given_references(_references(given), "right", Stride)  # reports errors in a file before the search
    for name in ("starts", "workers"):
        if name in given:
            whole_number(given[name], "walk", name, most=MAX_STARTS)
    if "workers" in given and given.get("starts", 1) == 1:
        raise ModelError("--workers needs several initial guesses", where="walk", fix="add --starts 4")
    if "backpack" in given and "box" in given:
        raise ModelError("--backpack and --box are both given", where="walk", allowed="one of them")
    if given.get("rise") == 0:
        raise ModelError("--rise is 0", where="walk", allowed="another number", fix="omit it for level ground")
    stairs = {"length": TREAD, "speed": CLIMB} if "rise" in given else {}
    return stairs | values | _checked_body("walk", given, values)


def _checked_body(where: str, given: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body. Errors about the ranges of frozen joints are in degrees, like the option."""
    body = body_of(**{argument.name: values[argument.name] for argument in PERSON if argument.name in values})
    degrees = dict(given.get("frozen", ()))
    for k, name in enumerate(body.coordinate_names):
        low, high = (round(math.degrees(bound[k]), 6) for bound in (body.lower, body.upper))
        if name in degrees and not low <= degrees[name] <= high:
            found, allowed = f"--frozen {name}={degrees[name]:g}", f"degrees, from {low:g} to {high:g}"
            raise ModelError(found, where=where, allowed=allowed)
    return {"body": body}


def _references(given: Mapping[str, Any]) -> list[Any] | None:
    """Return the references of ``--compare``, or None if it is not given. Several files are one recording."""
    named, mass = given.get("compare"), given.get("compare_mass")
    recorded = [names for names in named or () if Path(names[0]).suffix.lower() in SUFFIXES]
    if mass is not None and not recorded:
        fix = "add --compare with a recording, such as forces.mot"
        raise ModelError("--compare-mass needs a recording", where="walk", fix=fix)
    if named is None:
        return None
    return [
        recorded_walk(*names, mass=mass) if names in recorded else names[0] if len(names) == 1 else tuple(names)
        for names in named
    ]


def _search(
    problem: MotionProblem, given: Mapping[str, Any], settings: Mapping[str, Any]
) -> tuple[MotionResult, Report]:
    """Return the walk and its report or, with several initial guesses, the best walk and the spread of all."""
    if given.get("starts", 1) == 1:
        result = problem.solve(**settings)
        report = stride_report(result, given)
        return result, replace(report, tables=(*report.tables, ONE_START))
    from torsor.motion.sweeps.executors import cores  # slow to import, and few searches have several starts

    walks = near_optimal_walks(problem, given["starts"], workers=given.get("workers", cores()), **settings)
    report = stride_report(walks.best, given)
    return walks.best, replace(
        report,
        plot=partial(walks.plot, references=_references(given)),
        tables=(*report.tables, walks),
        figures={**report.figures, "near_optimal": walks.to_dict()},
        is_stopped=len(walks) < walks.starts,
    )


def stride_report(result: MotionResult, given: Mapping[str, Any]) -> Report:
    """Return the report of a walk or a run: its stride and a comparison, or a plain report if it is infeasible."""
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


_SAVES = (*MOVIES, ".mot")
WALK = Prediction.of(
    PROBLEMS["walk"], *OPTIONS, prepare=_prepare_walk, report=stride_report, saves=_SAVES, search=_search
)
RUN = Prediction.of(
    PROBLEMS["run"],
    prepare=lambda given, values: values | _checked_body("run", given, values),
    report=stride_report,
    saves=_SAVES,
)
