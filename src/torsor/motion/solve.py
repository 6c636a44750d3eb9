"""Solving a motion problem: from a start through a solver to a result, with refinement and words for what fails."""

from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from torsor.errors import ModelError, describe
from torsor.motion.infeasible import MotionError, check_given, conflict, short_of
from torsor.motion.refine import refined
from torsor.motion.results.result import HELD, MotionResult
from torsor.motion.results.violations import violations
from torsor.motion.starts import is_same_program, read_start
from torsor.motion.transcription.program import Program
from torsor.optimisation import SOLVERS, min_max_violation, min_sum_violation
from torsor.optimisation.outcome import Outcome, Settings
from torsor.optimisation.squared_penalty import min_squared_violation
from torsor.optimisation.watch import Watch

if TYPE_CHECKING:
    from torsor.motion.problem import MotionProblem

__all__ = ["DEFAULTS", "Search", "solve"]

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

RELAXING = 200  # most iterations in which a group of constraints gives way
REFINED = 1e-4  # of a row's scale, where refinement ends unless it is said otherwise
RANGES = {"tolerance": (1e-12, 0.1), "iterations": (1, 10**9), "seconds": (1e-9, np.inf)}
DEFAULTS: dict[str, Any] = {
    "solver": "ipopt",
    "tolerance": 1e-6,
    "iterations": 500,
    "seconds": np.inf,
    "refine": False,
    "progress": False,
    "check": True,
    "feasible_first": False,
}


@dataclass(frozen=True)
class Search:
    """How to search: see ``MotionProblem.solve``."""

    solver: str
    tolerance: float
    iterations: int
    seconds: float
    refine: bool | float
    progress: bool
    check: bool
    feasible_first: bool

    @classmethod
    def of(cls, where: str, **given: Any) -> "Search":
        """Return the settings; what is None, or not given, has its default."""
        for key in given:
            if key not in DEFAULTS:
                raise ModelError(describe(f"unknown setting {key!r}", where=where, allowed=", ".join(DEFAULTS)))
        values = DEFAULTS | {key: value for key, value in given.items() if value is not None}
        if not (isinstance(values["solver"], str) and values["solver"] in SOLVERS):
            found = f"solver is {values['solver']!r}"
            raise ModelError(describe(found, where=where, allowed=", ".join(map(repr, SOLVERS))))
        for key in ("tolerance", "seconds", "iterations"):
            value = values[key]
            whole = key == "iterations"
            if isinstance(value, bool) or not isinstance(value, (int, np.integer) if whole else (int, float)):
                allowed = "a whole number above 0" if whole else "a number above 0"
                raise ModelError(describe(f"{key} is {value!r}", where=where, allowed=allowed))
            least, most = RANGES[key]
            if not least <= value <= most:
                raise ModelError(describe(f"{key} is {value!r}", where=where, allowed=f"from {least:g} to {most:g}"))
        for key in ("progress", "check", "feasible_first"):
            if not isinstance(values[key], bool):
                raise ModelError(describe(f"{key} is {values[key]!r}", where=where, allowed="True or False"))
        refine = values["refine"]
        if not isinstance(refine, bool) and not (isinstance(refine, (int, float)) and 0 < refine < np.inf):
            allowed = "True, False, or a tolerance above 0 in parts of the rows' scales"
            raise ModelError(describe(f"refine is {refine!r}", where=where, allowed=allowed))
        return cls(**values)


def solve(problem: "MotionProblem", start: Any, search: Search) -> MotionResult:
    """Return the motion that a solver finds, or raise a MotionError that says which constraints conflict."""
    with threadpool_limits(1):  # matrices are small: threads of the linear algebra would wait for each other
        return _solved(problem, start, search)


def _solved(problem: "MotionProblem", start: Any, search: Search) -> MotionResult:
    warm = start.outcome if isinstance(start, MotionResult) else None
    if warm is not None and not (is_same_program(problem, start) and problem.program.m == start.program.m):
        warm = None
    if warm is not None and not (start.is_solved and np.isfinite(warm.multipliers).all()):
        warm = None
    began = perf_counter()
    x = read_start(problem, start)
    if search.check:
        check_given(problem, max(10 * search.tolerance, HELD))
    first = _feasible(problem, x, search, began) if search.feasible_first else None
    result = _searched(problem, x if first is None else first.x, search, began, warm)
    if first is not None:
        result = _after(first, result)
    if not result.is_feasible and not result.is_stopped:
        result = _from_nearest(problem, x, result, search, perf_counter() - began)
    if search.refine is not False and result.is_feasible:
        tolerance = REFINED if search.refine is True else float(search.refine)

        def again(other: "MotionProblem", before: MotionResult) -> MotionResult:
            left = replace(search, seconds=search.seconds - (perf_counter() - began))
            return _searched(other, before.x, left, perf_counter(), None)

        result = refined(result, tolerance, again)
    return result


def _feasible(problem: "MotionProblem", x: Array, search: Search, began: float) -> MotionResult:
    """Return a motion that keeps all bounds, whatever its objective (Barman 2020, chapter V: J = const)."""
    return _searched(problem, x, search, began, None, replace(problem.program, factor=0.0))


def _after(first: MotionResult, result: MotionResult) -> MotionResult:
    """Return a result that counts the search before it."""
    log = [*first.outcome.log, *result.outcome.log]
    outcome = replace(result.outcome, iterations=first.iterations + result.outcome.iterations, log=log)
    spent = result.setup_seconds + result.solve_seconds - first.setup_seconds
    return replace(result, outcome=outcome, setup_seconds=first.setup_seconds, solve_seconds=spent)


def _searched(
    problem: "MotionProblem",
    x: Array,
    search: Search,
    began: float,
    warm: Outcome | None,
    program: Program | None = None,
) -> MotionResult:
    """Return what the solver finds from variables x; tracing and compiling belong to the setup, as does ``began``."""
    program = problem.program if program is None else program
    if not program.n:
        fix = "give phases more points, or a duration from least to most"
        raise ModelError(describe("nothing is left to find: all control points are known", where=problem.name, fix=fix))
    _check_start(problem, x)
    program.jacobian(x)
    program.hessian(x, np.zeros(program.m), 1.0)
    setup = perf_counter() - began
    with Watch(search.progress, problem.name) as watch:
        settings = Settings(search.tolerance, search.iterations, max(search.seconds - setup, 1e-3), watch)
        if warm is not None:
            settings = replace(settings, multipliers=warm.multipliers, bound_multipliers=warm.bound_multipliers)
        outcome = SOLVERS[search.solver](program, x, settings)
    seconds = perf_counter() - began - setup
    if watch.interrupted and not outcome.is_solved:
        outcome = replace(outcome, status="stopped by Ctrl-C")
    return MotionResult(problem, outcome, search.solver, search.tolerance, setup, seconds)


def _check_start(problem: "MotionProblem", x: Array) -> None:
    """Refuse a start at which a row or the objective is no number, and say which."""
    with np.errstate(all="ignore"):
        f, rows = problem.program.value(x)
    wrong = np.flatnonzero(~np.isfinite(rows))
    if wrong.size:
        row = problem.program.rows[wrong[0]]
        where = f"{problem.name}: {row.title}: {row.label}"
        found = f"no number at the start (share {row.s:.3g} of phase {row.phase})" if row.s is not None else "no number"
        if problem.subject.is_closed:
            found += ": loops that cannot be closed?"
        raise ModelError(describe(found, where=where, fix="start elsewhere (start=, random_start)"))
    if not np.isfinite(f):
        fix = "start elsewhere (start=, random_start)"
        raise ModelError(describe("the objective is no number at the start", where=problem.name, fix=fix))


def _from_nearest(
    problem: "MotionProblem", start: Array, result: MotionResult, search: Search, spent: float
) -> MotionResult:
    """Search again from the motion with the least violations; if these stay, tell what conflicts."""
    program, ends = problem.program, perf_counter() + search.seconds - spent
    for index in range(len(problem.relaxation_order)):
        told = _relaxed(problem, start, result, index, _until(search, ends), spent)
        if told is not None:
            return told
    left = _until(search, ends)
    short = min_sum_violation(program, result.x, Settings(search.tolerance, search.iterations, left.seconds))
    bounds = short.outcome.bound_multipliers[: program.n]  # behind these are those of the violations themselves
    nearest = replace(short.outcome, x=short.x, bound_multipliers=bounds)
    enough = max(10 * search.tolerance, HELD)
    if violations(program, nearest.x).max(initial=0.0) <= enough:
        again = _searched(problem, nearest.x, _until(search, ends), perf_counter(), None)
        result = replace(again, setup_seconds=result.setup_seconds, solve_seconds=spent + again.solve_seconds)
        error = MotionError(describe(f"no motion was found: {result.status}", where=problem.name))
        error.violation = result.max_violation
    elif nearest.is_solved:
        wide, _, _ = min_max_violation(
            program, nearest.x, Settings(search.tolerance, search.iterations, _until(search, ends).seconds)
        )
        error = conflict(problem, nearest, wide, enough)
        status = f"infeasible: {', '.join(error.conflict)} conflict"
        nearest = _without_multipliers(nearest, program)
        result = replace(result, outcome=replace(nearest, x=wide, status=status, is_solved=False))
    else:
        fix = "allow more iterations or seconds, or start elsewhere (start=, multistart)"
        error = MotionError(describe(f"no motion was found: {result.status}", where=problem.name, fix=fix))
        error.violation = result.max_violation
    return _told(result, error, search)


def _until(search: Search, ends: float) -> Search:
    """Return a search that ends by a time of ``perf_counter``."""
    return replace(search, seconds=max(ends - perf_counter(), 1e-3))


def _told(result: MotionResult, error: MotionError, search: Search) -> MotionResult:
    """Return a result, or raise the error that has it, where constraints are to be checked."""
    if result.is_feasible or not search.check:
        return result
    error.result = result
    raise error


def _relaxed(
    problem: "MotionProblem", start: Array, result: MotionResult, index: int, search: Search, spent: float
) -> MotionResult | None:
    """Return what is found where a group of constraints may give way, or raise by how much it has to.

    Groups before it are left out. None is for a group that is not enough.
    """
    program, enough = problem.program, max(10 * search.tolerance, HELD)
    without = [name for group in problem.relaxation_order[:index] for name in group]
    soft, left_out = (
        np.array([row.title in names for row in program.rows]) for names in (problem.relaxation_order[index], without)
    )
    settings = Settings(search.tolerance, min(search.iterations, RELAXING), search.seconds)
    began = perf_counter()
    wide, _, outcome = min_max_violation(program, start, settings, soft, ~left_out)
    if not outcome.is_solved:
        left = max(search.seconds - (perf_counter() - began), 1e-3)
        other = min_squared_violation(program, start, replace(settings, seconds=left), soft, ~left_out)
        if _is_nearer(program, other.x, wide, soft, ~left_out, enough):
            wide, outcome = other.x, other
    outside = violations(program, wide)
    if outside[~soft & ~left_out].max(initial=0.0) > enough:
        return None
    if outside[soft].max(initial=0.0) <= enough:
        if outside.max(initial=0.0) > enough:
            return None
        again = _searched(problem, wide, search, perf_counter(), None)
        if again.is_feasible:
            return replace(again, setup_seconds=result.setup_seconds, solve_seconds=spent + again.solve_seconds)
        return None
    error = short_of(problem, wide, soft, without, enough)
    status = f"infeasible: {', '.join(error.conflict)} cannot hold"
    nearest = replace(outcome, x=wide, status=status, is_solved=False)
    return _told(replace(result, outcome=_without_multipliers(nearest, program)), error, search)


def _is_nearer(program: Program, x: Array, y: Array, soft: Flags, kept: Flags, enough: float) -> bool:
    """Whether at x what is kept holds better than at y, or as well, soft rows being less outside."""
    (hard, gives), (other_hard, other_gives) = (
        (max(float(each[kept & ~soft].max(initial=0.0)), enough), float(each[soft].max(initial=0.0)))
        for each in (violations(program, x), violations(program, y))
    )
    return hard < other_hard or (hard == other_hard and gives < other_gives)


def _without_multipliers(outcome: Outcome, program: Program) -> Outcome:
    """Return an outcome of another program as one of this: its multipliers say nothing here."""
    return replace(outcome, multipliers=np.zeros(program.m), bound_multipliers=np.zeros(program.n))
