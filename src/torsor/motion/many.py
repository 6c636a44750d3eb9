"""Many cases of one motion problem: cases with the same structure are solved in one batch.

A case is a set of values: arguments of the function that made the problem, or named data of any problem. Cases that the
batch does not solve, and problems that it does not support, are solved one by one.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from torsor.base.arrays import Array, Indices
from torsor.base.checks import several
from torsor.base.errors import ModelError, listing, warn
from torsor.base.progress import Bar
from torsor.motion.batched import WIDTH, BatchOutcome, solve_batch
from torsor.motion.results.solution import BETWEEN, Solution, on_finer_grid
from torsor.motion.solve import (
    LOOSE_TOLERANCE,
    ONLY_AT_NODES,
    SolveSettings,
    SolveState,
    leave_saddle,
    mark_between_nodes,
    refine_points,
    solve,
)
from torsor.motion.statement import ProblemStatement
from torsor.motion.terms.term import Cost, Number
from torsor.motion.transcription.cases import Cases, structure_of
from torsor.motion.wide.cases import WIDTH as WIDE_WIDTH
from torsor.motion.wide.cases import WideCases, wide_structure_of
from torsor.optimisation import Outcome, Settings
from torsor.robot.robot import Robot

BATCH_SOLVER = "condensed"  # the method of the batch
_INERTIAL = ("mass", "com", "inertia")  # fields of links that a payload changes

P = TypeVar("P", bound=ProblemStatement)


class Origin(NamedTuple):
    """The function that made a problem, and its arguments."""

    function: Callable[..., Any]
    values: tuple[Any, ...]
    given: dict[str, Any]

    def with_case(self, case: Mapping[str, Any]) -> Any:
        """Return the problem with other values of some arguments."""
        return self.function(*self.values, **{**self.given, **case})


def with_case(problem: P, case: Any, index: int) -> P:
    """Return the problem with the data of a case."""
    other = _made(problem, case, index)
    _build(problem, other, index)
    return other


def _build(problem: ProblemStatement, other: ProblemStatement, index: int) -> None:
    """Build the program of a case with the symbols of another problem; raise ModelError if its data are invalid."""
    try:
        problem.share_with(other)
        other.program.row_lower  # noqa: B018  # bounds are read when the program is built
    except ModelError as error:
        raise error.inside(f"case {index}") from None


def _made(problem: P, case: Any, index: int) -> P:
    """Return the problem of a case, without its program."""
    where = f"{problem.name}: case {index}"
    if not isinstance(case, Mapping):
        raise ModelError(f"is {case!r}", value=case, where=where, allowed="a dict of names and values")
    origin = problem.__dict__.get("origin")
    try:
        other: P = origin.with_case(case) if origin is not None else _with_data(problem, case)
    except ModelError as error:
        raise error.inside(f"case {index}") from None
    except TypeError as error:
        if origin is None:
            raise
        raise ModelError(str(error), where=where, allowed="arguments of the problem") from None
    return other


def _with_data(problem: P, case: Mapping[str, Any]) -> P:
    """Return the problem with other values of "TERM.FIELD", "phase.FIELD", shared numbers, and "robot"."""
    parts: dict[str, tuple[list[Any], str]] = {
        "phases": (list(problem.stages), "phase"),
        "objective": (list(problem.costs), ""),
        "constraints": (list(several(problem.constraints)), ""),
    }
    changes, numbers = dict[str, Any](), dict(problem.numbers)
    for key, value in case.items():
        allowed, is_known = [*problem.held, *problem.shared], False
        if key == "robot":
            changes["robot"], is_known = value, True
        elif key in allowed:
            numbers[key], changes["numbers"], is_known = Number(*[float(value)] * 3), numbers, True
        for kind, (members, default) in parts.items():
            for k, member in enumerate(members):
                title = (member.name or default) if default else member.title
                names = {f"{title}.{field.name}": field.name for field in fields(member)}
                allowed += names
                if key in names:
                    members[k] = replace(member, **{names[key]: value})
                    changes[kind], is_known = members, True
        if not is_known:
            raise ModelError(f"there is no {key!r}", value=key, allowed=listing([*allowed, "robot"], like=str(key)))
    return replace(problem, **changes)


def _with_one_robot(problem: P, others: list[P]) -> list[P]:
    """Return problems with one parametric robot if theirs differ only in numbers (``_is_alike``), which are inputs."""
    base, robots = problem.robot, {id(other.robot): other.robot for other in others}
    plain = {key: robot for key, robot in robots.items() if isinstance(robot, Robot)}
    if not isinstance(base, Robot) or len(plain) < len(robots) or {id(base)} == set(robots):
        return others
    if not all(_is_alike(base, robot) for robot in plain.values()):
        return others
    loaded = [k for k, link in enumerate(base.links) if any(robot.links[k] != link for robot in plain.values())]
    moved = [k for k, joint in enumerate(base.joints) if any(robot.joints[k] != joint for robot in plain.values())]
    if not loaded and not moved:
        return [replace(other, robot=base) for other in others]
    paths = [f"links.{base.links[k].name}.{name}" for k in loaded for name in _INERTIAL]
    paths += [f"joints.{base.joints[k].name}.origin" for k in moved]
    model, numbers = base.parametric(paths), dict[int, dict[str, Number]]()
    for key, robot in plain.items():
        pairs = zip(model.names, robot.parametric(paths).values.tolist(), strict=True)
        numbers[key] = {name: Number(value, value, value) for name, value in pairs}
    return [replace(other, robot=model, numbers={**other.numbers, **numbers[id(other.robot)]}) for other in others]


def _is_alike(one: Robot, other: Robot) -> bool:
    """Return whether two robots differ only in ``_INERTIAL`` fields of links, and in positions of joints."""
    if len(one.links) != len(other.links) or len(one.joints) != len(other.joints):
        return False
    joints = []
    for a, b in zip(one.joints, other.joints, strict=True):
        placement = a.placement.copy()
        placement[:3, 3] = b.placement[:3, 3]
        joints.append(replace(a, placement=placement))
    pairs = zip(one.links, other.links, strict=True)
    links = [replace(a, **{name: getattr(b, name) for name in (*_INERTIAL, "source")}) for a, b in pairs]
    return replace(one, links=tuple(links), joints=tuple(joints)) == other


def solve_cases(problem: ProblemStatement, cases: Sequence[Any], settings: SolveSettings) -> list[Solution]:
    """Return the solutions of all cases, in their order."""
    began = perf_counter()
    problems = _with_one_robot(problem, [_made(problem, case, index) for index, case in enumerate(cases)])
    for index, own in enumerate(problems):
        _build(problem if own.robot is problem.robot else problems[0], own, index)
    with Bar(len(cases), settings.progress, f"solving {problem.name}") as bar, threadpool_limits(1):
        together = solve_together(problems, settings, began, bar)
        ended = sum(solution is not None for solution in together)
        solutions = list[Solution]()
        for own, solution in zip(problems, together, strict=True):
            if solution is None:
                ended += 1
            solutions.append(_alone(own, settings) if solution is None else solution)
            bar.at(ended)
    partly = sum(solution.is_solved and ONLY_AT_NODES in solution.status for solution in solutions)
    if partly:
        message = f"{partly} of {len(solutions)} motions violate constraints between the nodes ({ONLY_AT_NODES!r})"
        warn(message, where=problem.name, fix="solve with `refine=True`")
    return solutions


def solve_together(
    problems: Sequence[ProblemStatement], settings: SolveSettings, began: float, bar: Bar | None = None
) -> list[Solution | None]:
    """Return the solutions of problems that a batch solves, and None for the others."""
    groups: dict[Any, list[int]] = {}
    for index, problem in enumerate(problems):
        with suppress(ModelError):  # raised again where the problem is solved alone
            structure = batch_structure(problem, settings)
            if structure is not None:
                groups.setdefault(structure, []).append(index)
    result: list[Solution | None] = [None] * len(problems)
    ended = 0
    for members in groups.values():
        tell = None if bar is None else partial(_tell, bar, ended)
        batch = _solve_group([problems[index] for index in members], settings, began, tell)
        for index, solution in zip(members, batch, strict=True):
            result[index] = solution
        ended += len(members)
    return result


def _tell(bar: Bar, before: int, ended: int) -> None:
    bar.at(before + ended)


def batch_structure(problem: ProblemStatement, settings: SolveSettings) -> tuple[Any, ...] | None:
    """Return a key that is equal for problems that can be solved in one batch; None if a problem cannot be batched."""
    is_plain = not (settings.feasible_first or settings.tie_break or settings.refine)
    is_plain = is_plain and settings.solver == BATCH_SOLVER and not np.isfinite(settings.seconds)
    costs: Sequence[Cost] = problem.costs
    if not is_plain or any(cost.scaled(1.0) is not cost for cost in costs):
        return None
    return structure_of(problem.program) or wide_structure_of(problem.program)


def _alone(problem: ProblemStatement, settings: SolveSettings) -> Solution:
    """Return the solution of one problem; if it is infeasible, the nearest motion."""
    state = solve(problem, None, replace(settings, check=True, progress=False))
    if state.result is not None:
        return state.result
    program, x = problem.program, problem.guess()
    status = f"infeasible: {state.diagnosis}"
    outcome = Outcome(x, np.zeros(program.m), np.zeros(program.n), float(program.value(x)[0]), 0, status, False)
    return Solution(problem, outcome, settings.solver, settings.tolerance)


def _solve_group(
    problems: Sequence[ProblemStatement], settings: SolveSettings, began: float, tell: Callable[[int], None] | None
) -> list[Solution | None]:
    """Return the solutions of problems with one structure, None for those that the batch does not solve."""
    starts, ended = np.stack([problem.guess() for problem in problems]), 0
    limits = Settings(settings.tolerance, settings.iterations)
    before, solver_settings = _solve_smoother(problems, starts, limits)
    kept = [k for k, outcome in enumerate(before) if outcome is None or outcome.is_solved]
    if not kept:
        return [None] * len(problems)
    found = [outcome for k in kept if (outcome := before[k]) is not None]
    starts_now, warm = np.stack([outcome.x for outcome in found]) if found else starts, None
    batch = _batch_of([problems[k] for k in kept], starts_now)
    if found:
        multipliers = np.stack([outcome.multipliers for outcome in found])[:, batch.order] * batch.units
        warm = multipliers, np.stack([outcome.bound_multipliers for outcome in found])

    def done(_: int, __: Outcome) -> None:
        nonlocal ended
        ended += 1
        if tell is not None:
            tell(ended)

    outcomes = solve_batch(batch.cases, starts_now, solver_settings, done, batch.width, warm)
    setup = perf_counter() - began
    between = _between_nodes(batch.cases, outcomes)
    results: list[Solution | None] = [None] * len(problems)
    for place, (k, (outcome, is_convex), worst) in enumerate(zip(kept, outcomes, between, strict=True)):
        problem, start, earlier = problems[k], starts[k], before[k]
        if not outcome.is_solved:
            continue
        iterations = outcome.iterations + (0 if earlier is None else earlier.iterations)
        outcome = replace(outcome, multipliers=batch.multipliers(place, outcome), iterations=iterations)
        solution = Solution(problem, outcome, BATCH_SOLVER, settings.tolerance, 0.0, setup / len(problems))
        state = SolveState(problem, settings, start, outcome.x, None, began, solution)
        if not is_convex:
            state = leave_saddle(state)
        if settings.refine is not False and any(phase.is_refinable for phase in problem.stages):
            state = refine_points(state)
        if worst > BETWEEN or state.result is not solution:
            state = mark_between_nodes(state)
        results[k] = state.result
    return results


class _Batch(NamedTuple):
    """The batch of some problems, the indices (m,) of its rows in their programs, and these in its units (B, m).

    ``width`` is the number of cases in work at a time.
    """

    cases: Cases | WideCases
    order: Indices
    units: Array
    width: int = WIDTH

    def multipliers(self, place: int, outcome: Outcome) -> Array:
        """Return the multipliers of the program of the case at a place in the batch."""
        result = np.empty_like(outcome.multipliers)
        result[self.order] = outcome.multipliers / self.units[place]
        return result


def _batch_of(problems: Sequence[ProblemStatement], starts: Array) -> _Batch:
    """Return the batch of problems that start from starts (B, n)."""
    programs = [problem.program for problem in problems]
    first = programs[0]
    if structure_of(first) is None:
        wide = WideCases.of(programs, starts)
        return _Batch(wide, np.arange(first.m), wide.units, WIDE_WIDTH)
    assert first.at_nodes is not None
    return _Batch(Cases.of(programs), first.at_nodes[1], np.ones((len(programs), first.m)))


def _solve_smoother(
    problems: Sequence[ProblemStatement], starts: Array, settings: Settings
) -> tuple[list[Outcome | None], Settings]:
    """Return the outcomes of the problems with smoother costs, None if there are none, and the remaining limits."""
    costs = [[cost.smoother() for cost in problem.costs] for problem in problems]
    if all(one is other for one, other in zip(costs[0], problems[0].costs, strict=True)):
        return [None] * len(problems), settings
    smoother = [problem.changed(objective=own) for problem, own in zip(problems, costs, strict=True)]
    batch, tolerance = _batch_of(smoother, starts), max(LOOSE_TOLERANCE, settings.tolerance)
    loose = replace(settings, tolerance=tolerance, iterations=max(1, settings.iterations // 2))
    outcomes = [outcome for outcome, _ in solve_batch(batch.cases, starts, loose, width=batch.width)]
    found: list[Outcome | None] = [
        replace(outcome, multipliers=batch.multipliers(k, outcome)) for k, outcome in enumerate(outcomes)
    ]
    most = max(outcome.iterations for outcome in outcomes)
    return found, replace(settings, iterations=max(1, settings.iterations - most))


def _between_nodes(cases: Cases | WideCases, outcomes: Sequence[BatchOutcome]) -> Array:
    """Return the largest violation (B,) of each solution on a grid ten times finer, or infinity if it is not known."""
    program, required = on_finer_grid(cases.program)
    finer = cases.on(program)
    if finer is None:
        return np.full(len(cases), np.inf)
    x = np.stack([outcome.x for outcome, _ in outcomes])
    worst = np.zeros(len(x))
    for first in range(0, len(x), 16):
        at = np.arange(first, min(first + 16, len(x)))
        own = finer.take(at)
        rows = own.value(x[at])[1]
        low, high = own.row_bounds
        outside = np.maximum(low - rows, rows - high)[:, required]
        worst[at] = np.nan_to_num(outside, nan=np.inf).max(axis=1, initial=0.0)
    return worst
