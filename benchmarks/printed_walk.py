"""Interpretations of the walking problem of Barman 2020 (eqs. 5.1 to 5.10): effort, joint angles and force peaks.

    python benchmarks/printed_walk.py [--only NAME ...]

The script prints the Markdown table of docs/theory/walking.md, with one row per interpretation. The status, the number
of iterations and the processor time of each search are printed to stderr. With one process on one core (set
OMP_NUM_THREADS=1) and a tolerance of 1e-5, a row takes seconds to minutes.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from torsor import library
from torsor.human import Habits, Stride
from torsor.human.body.coordinates import frozen_joints
from torsor.human.terms.forces import Balance
from torsor.human.terms.places import Stands
from torsor.motion import MotionProblem, MotionResult
from torsor.reproduce.documents.drawing import peaks
from torsor.reproduce.documents.printed_walk import STEP, InSupport, habitual_problem, printed_problem

SEARCH: dict[str, Any] = {"solver": "condensed", "tolerance": 1e-5, "iterations": 2000, "check": False}
BANDS = 50, 20, 10, 5  # mm, mm/s
LEAST_PEAK = 0.05  # of the range of the vertical force: smaller maxima are not counted
STANCE = 0.01  # of the body weight: least vertical force in stance
BODY = library.human()
MOVING = [name for name in BODY.coordinate_names if name not in frozen_joints(BODY, None, "walk")]
LOWER, UPPER = Habits().bounds(BODY, MOVING, 0.0, False)
RANGES = tuple({name: bounds[name] for name in MOVING if name != "tz"} for bounds in (LOWER, UPPER))  # rad, m
SPINE = {name: 0.0 for name in MOVING if name.startswith("spine")}


def without_places(problem: MotionProblem) -> MotionProblem:
    """Return the problem without the positions of the feet (eq. 5.10)."""
    return replace(problem, constraints=[each for each in problem.conditions if not each.title.startswith("5.10")])


def in_box(problem: MotionProblem) -> MotionProblem:
    """Return the problem with a box around the path of the zero-moment point instead of the polygon (eq. 5.5)."""
    terms = [
        Balance(body=each.body, support=each.support, friction=each.friction, name=each.name)
        if isinstance(each, InSupport)
        else each
        for each in problem.conditions
    ]
    return replace(problem, constraints=terms)


class Reading(NamedTuple):
    """An interpretation of the printed problem.

    ``band`` is the height (mm) and the velocity (mm/s) allowed in eq. 5.4, or None for the walk with habits, and
    ``options`` are other arguments of ``printed_problem``. ``feasible_first`` searches for a feasible motion before
    effort is minimised. ``start`` is "zero" (q = 0), "bands" (from wide to narrow bands) or "habits" (the walk with
    habits).
    """

    name: str
    title: str
    band: float | None
    options: Mapping[str, Any] = MappingProxyType({})
    feasible_first: bool = False
    start: str = "zero"
    change: Callable[[MotionProblem], MotionProblem] | None = None

    def problem(self) -> MotionProblem:
        """Return the walking problem."""
        problem = habitual_problem() if self.band is None else printed_problem(self.band / 1e3, **self.options)
        return problem if self.change is None else self.change(problem)

    def solve(self, problem: MotionProblem) -> MotionResult:
        """Return the motion at which the search ends."""
        starts: dict[str, Callable[[], Any]] = {"zero": problem.guess, "bands": narrowed, "habits": habitual_walk}
        start = starts[self.start]()
        return problem.solve(start=start, feasible_first=self.feasible_first, **SEARCH)


def habitual_walk() -> MotionResult:
    """Return the walk with habits."""
    return habitual_problem().solve(feasible_first=True)


def narrowed() -> MotionResult:
    """Return the motion with a band of 5 mm; each search starts from the motion with a wider band."""
    start: Any = None
    for band in BANDS:
        start = printed_problem(band / 1e3).solve(start=start, **SEARCH)
    return start


READINGS = (
    Reading("printed", "as printed", 0, feasible_first=True),
    Reading("nodes-13", "13 nodes", 0, {"nodes": 13}, feasible_first=True),
    Reading("nodes-11", "11 nodes", 0, {"nodes": 11}, feasible_first=True),
    Reading("no-velocities", "without velocities in (5.8)", 0, {"order": 0}, feasible_first=True),
    Reading("no-places", "without (5.10)", 0, feasible_first=True, change=without_places),
    Reading("bands", "from wide to narrow bands", 2, start="bands"),
    Reading("feasible-5", "feasible motion first (thesis)", 5, feasible_first=True),
    Reading("feasible-8", "feasible motion first", 8, feasible_first=True),
    Reading("feasible-10", "feasible motion first", 10, feasible_first=True),
    Reading("from-habits", "start from the walk with habits", 8, start="habits"),
    Reading("effort", "without a feasible motion first", 10),
    Reading("double-20", "double support of 20 %", 10, {"step": replace(STEP, toe_off=0.2)}),
    Reading("double-30", "double support of 30 %", 10, {"step": replace(STEP, toe_off=0.3)}),
    Reading("box", "zero-moment point in a box around its path", 10, change=in_box),
    Reading("ranges", "ranges of `Habits`", 10, {"ranges": RANGES}),
    Reading("spine", "frozen spine", 10, {"frozen": SPINE}),
    Reading("points-8", "8 control points", 2, {"points": 8}),
    Reading("habits", "walk with habits", None, feasible_first=True),
)


def row(reading: Reading) -> str:
    """Return the row of an interpretation, and print its search to stderr."""
    problem = reading.problem()
    print(f"{reading.name}: {problem.program.n} variables, {problem.program.m} rows ... ", end="", file=sys.stderr)
    sys.stderr.flush()
    begin = time.process_time()
    result = reading.solve(problem)
    seconds = time.process_time() - begin
    print(f"{result.status}, {result.iterations} iterations, {seconds:.1f} s", file=sys.stderr, flush=True)
    contact = next(each for each in problem.conditions if isinstance(each, Stands))
    assert contact.slip is not None
    band = ", ".join(dict.fromkeys(f"{1e3 * width:g}" for width in (contact.slack, contact.slip)))
    cells = [reading.title, band, *(figures(result) if result.is_solved else ("none found", "", ""))]
    return "|" + "".join(f" {cell} |" if cell else " |" for cell in cells)


def figures(result: MotionResult) -> tuple[str, str, str]:
    """Return effort, correlations of the joint angles with human data, and the number of force peaks."""
    stride, effort = Stride(result), next(part.value for part in result.parts if "effort" in part.title)
    alike, up = stride.likeness(), stride.force[:, 1]
    r = [f"{alike[f'{joint}_flexion'].correlation:.2f}".replace("0.", ".") for joint in ("hip", "knee", "ankle")]
    return f"{effort:.2f}", ", ".join(r), str(peaks(up[up > STANCE], LEAST_PEAK))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [reading.name for reading in READINGS]
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names))
    chosen = parser.parse_args().only
    warnings.simplefilter("ignore")  # these walks are optimal at the nodes only
    print("| interpretation | band (mm and mm/s) | effort (s) | $r$ | peaks of the vertical force |")
    print("|---|---|---|---|---|", flush=True)
    for reading in READINGS:
        if reading.name in chosen:
            print(row(reading), flush=True)


if __name__ == "__main__":
    main()
