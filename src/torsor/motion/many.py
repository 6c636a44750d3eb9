"""Many cases of a motion problem, in which cases with the same structure are solved in one batch.

A case is a set of values: arguments of the function that created the problem, or named data of any problem. Cases that
the batch does not solve, and problems that it does not support, are solved one by one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from itertools import chain
from time import perf_counter
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from threadpoolctl import threadpool_limits

from torsor.base.arrays import Array, Flags
from torsor.base.checks import number, several, whole_number
from torsor.base.errors import ModelError, listing, warn
from torsor.base.progress import Bar
from torsor.compiler import array_module, on_host
from torsor.compiler.program import uncollected
from torsor.motion.batched import MIN_WARM_MU, WIDTHS, BatchOutcome, Warm, solve_batch
from torsor.motion.neighbours import features, waves
from torsor.motion.processes import Here, Monitor, results
from torsor.motion.results.solution import BETWEEN, Solution, on_finer_grid
from torsor.motion.solve import (
    CTRL_C,
    LOOSE_TOLERANCE,
    ONLY_AT_NODES,
    SolveSettings,
    SolveState,
    leave_saddle,
    mark_between_nodes,
    refine_points,
    solve,
)
from torsor.motion.starts import moved
from torsor.motion.statement import ProblemStatement
from torsor.motion.terms.term import Cost, Number
from torsor.motion.transcription.cases import Cases, structure_of
from torsor.motion.transcription.program import Program
from torsor.motion.varied_ends import varied_ends
from torsor.motion.wide.cases import WIDTH, WideCases, wide_structure_of, without_linear
from torsor.optimisation import Outcome, Settings, Watch
from torsor.robot.robot import Robot

BATCH_SOLVER = "condensed"  # solver of the batch
SMOOTHER_MU = 1e-3  # smallest barrier parameter of searches from solutions with smoother costs
FINER_CASES = {"cpu": 16, "cuda": 1024}  # number of cases that are checked between the nodes together
MAX_JOB = 2 * WIDTHS["cpu"]  # largest number of cases per job of a process, so that processes end at similar times
_INERTIAL = ("mass", "com", "inertia")  # fields of links that payloads change

P = TypeVar("P", bound=ProblemStatement)


class Origin(NamedTuple):
    """The function that created a problem, its arguments, and the names of data that arguments set."""

    function: Callable[..., Any]
    values: tuple[Any, ...]
    given: dict[str, Any]
    data: Mapping[str, str] = MappingProxyType({})

    def with_case(self, case: Mapping[str, Any]) -> Any:
        """Return the problem with arguments replaced by those of ``case``."""
        return self.function(*self.values, **{**self.given, **case})


def with_case(problem: P, case: Any, index: int) -> P:
    """Return the problem with the data of a case."""
    other = made(problem, case, index)
    build(problem, other, index)
    return other


def build(problem: ProblemStatement, other: ProblemStatement, index: int) -> None:
    """Build the program of ``other`` with the symbols of ``problem``; raise ModelError if its data are invalid."""
    try:
        problem.share_with(other)
        other.program.row_lower  # noqa: B018  # validates the bounds
    except ModelError as error:
        raise error.inside(f"case {index}") from None


def made(problem: P, case: Any, index: int) -> P:
    """Return the problem of a case, without its program."""
    where = f"{problem.name}: case {index}"
    if not isinstance(case, Mapping):
        raise ModelError(f"is {case!r}", value=case, where=where, allowed="a dict of names and values")
    case = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in case.items()}
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
    """Return the problem with values of "TERM.FIELD", "phase.FIELD", shared numbers and "robot" replaced."""
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
            numbers[key], changes["numbers"], is_known = Number(*[number(value, problem.name, key)] * 3), numbers, True
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


def with_one_robot(problem: P, others: list[P]) -> list[P]:
    """Return ``others`` with one parametric robot if their robots differ from that of ``problem`` only in numbers.

    Otherwise, they are returned unchanged. See ``_is_alike``.
    """
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


def solve_cases(
    problem: ProblemStatement, cases: Sequence[Any], settings: SolveSettings, device: str = "cpu", workers: int = 1
) -> list[Solution]:
    """Return the solutions of all cases, in order; batches are solved on ``device``."""
    whole_number(workers, problem.name, "workers", most=None if device == "cpu" else 1)
    if isinstance(cases, (str, Mapping)) or not isinstance(cases, Iterable):
        raise ModelError(argument="cases", value=cases, where=problem.name, allowed="a list of dicts")
    cases = list(cases)
    searches = _searches(problem, cases, replace(settings, check=True), device)
    found = solve_searches(searches, workers, f"solving {problem.name}")
    pairs = zip(found, searches.problems, searches.starts, strict=True)
    solutions = [_unsolved(own, x, CTRL_C, settings) if each is None else each for each, own, x in pairs]
    partly = sum(solution.is_solved and ONLY_AT_NODES in solution.status for solution in solutions)
    if partly:
        message = f"{partly} of {len(solutions)} motions violate constraints between the nodes ({ONLY_AT_NODES!r})"
        warn(message, where=problem.name, fix="solve with `refine=True`")
    return solutions


def _searches(problem: ProblemStatement, cases: Sequence[Any], settings: SolveSettings, device: str) -> "Searches":
    """Return the searches of cases."""
    with suppress(ModelError):  # the data of the original problem may be invalid
        if batch_structure(problem, settings) is not None:
            origin = problem.__dict__.get("origin")
            varied = varied_ends(problem, cases, {} if origin is None else origin.data, origin is None)
            if varied is not None:
                return Searches(varied.problems, list(varied.starts), settings, device, varied.known)
    problems = with_one_robot(problem, [made(problem, case, index) for index, case in enumerate(cases)])
    for index, own in enumerate(problems):
        build(problem if own.robot is problem.robot else problems[0], own, index)
    return Searches(problems, [own.guess() for own in problems], settings, device)


class Searches:
    """Problems with their starts (n,), common settings, and the device of the batches.

    If the problems differ only in known control points, ``known`` contains these points (B, N, P) for each phase. If
    ``continued``, each search starts from the solution of a similar one. ``templates`` contains the templates of this
    process by structure.
    """

    def __init__(
        self,
        problems: Sequence[ProblemStatement],
        starts: Sequence[Array],
        settings: SolveSettings,
        device: str = "cpu",
        known: Sequence[Array] | None = None,
        continued: bool = False,
    ):
        self.problems, self.starts, self.settings, self.device, self.known = problems, starts, settings, device, known
        self.continued = continued
        self.templates: dict[Any, Template] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Searches, (self.problems, self.starts, self.settings, self.device, self.known, self.continued)

    def take(self, members: Sequence[int]) -> "Searches":
        """Return the searches ``members``."""
        known = None if self.known is None else [points[members] for points in self.known]
        problems, starts = [self.problems[index] for index in members], [self.starts[index] for index in members]
        return Searches(problems, starts, self.settings, self.device, known)

    def groups(self) -> dict[Any, list[int]]:
        """Return the searches that a batch can solve, by structure."""
        if self.known is not None:
            return {batch_structure(self.problems[0], self.settings): list(range(len(self.problems)))}
        return _groups(self.problems, self.settings)

    def template(self, structure: Any, problem: ProblemStatement) -> "Template":
        """Return the template of a structure."""
        if structure not in self.templates:
            self.templates[structure] = Template(problem.program, self.device)
        return self.templates[structure]


class Template:
    """Data shared by batches of one structure, including those at the nodes of a finer grid."""

    def __init__(self, program: Program, device: str):
        self._program, self.order, self._cases = program, np.arange(program.m), None
        if structure_of(program) is None:
            self._fine, self.required = on_finer_grid(program)
            return
        assert program.at_nodes is not None
        self.order = program.at_nodes[1]
        self._cases = Cases.of([program], device)
        self._fine, self.required = on_finer_grid(self._cases.program)
        self._finer = self._cases.on(self._fine)

    def cases(self, searches: Searches) -> Cases | WideCases:
        """Return the batch of searches."""
        if self._cases is None:
            return WideCases.of([problem.program for problem in searches.problems], np.stack(searches.starts))
        if searches.known is not None:
            return Cases.with_known(self._program, searches.known, self._cases.device, self._cases)
        return Cases.of([problem.program for problem in searches.problems], self._cases.device, self._cases)

    def finer(self, cases: Cases | WideCases) -> Cases | WideCases | None:
        """Return the cases at the nodes of the finer grid, or None if terms have data."""
        return cases.on(self._fine) if isinstance(cases, WideCases) else cases.on(self._fine, self._finer)


class _Found:
    """The solution of a search; only its differences from the problem of the search are sent between processes."""

    def __init__(self, index: int, problem: ProblemStatement, solution: Solution):
        self.index, self._problem, self._solution = index, problem, solution

    def solution(self, problem: ProblemStatement) -> Solution:
        """Return the solution, using the problem of the search."""
        return self._solution

    def __reduce__(self) -> tuple[Any, ...]:
        before, after, changes = self._problem, self._solution.problem, dict[str, Any]()
        if after is not before:
            changes["phases"] = after.stages
            if any(one is not other for one, other in zip(after.costs, before.costs, strict=True)):
                changes["objective"] = after.costs
        return _Sent, (self.index, replace(self._solution, problem=None), changes)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class _Sent:
    """A solution from another process without its problem, and the fields in which its problem differs."""

    index: int
    without_problem: Solution
    changes: dict[str, Any]

    def solution(self, problem: ProblemStatement) -> Solution:
        """Return the solution, using the problem of the search."""
        return replace(self.without_problem, problem=problem.changed(**self.changes) if self.changes else problem)


def solve_searches(searches: Searches, workers: int, title: str) -> list[Solution | None]:
    """Return the solution of each search, or None if it had not started when Ctrl-C was pressed.

    Searches with the same structure are solved in batches. The others, and those that a batch does not solve, are
    solved one by one. The first search of a structure is solved in this process, which compiles the functions for all.
    If Ctrl-C is pressed during compilation, before any search has ended, KeyboardInterrupt is raised.
    """
    problems, settings = searches.problems, searches.settings
    result: list[Solution | None] = [None] * len(problems)
    with (
        Watch() as watch,
        Bar(len(problems), settings.progress, title) as bar,
        threadpool_limits(1),
    ):
        monitor = Here(bar, watch)
        try:
            for found in _each(searches, workers, monitor):
                result[found.index] = found.solution(problems[found.index])
        except KeyboardInterrupt:
            if not any(result):
                raise
    return result


_Job = tuple[Any, list[int], list[Outcome] | None]  # structure, searches, and initial outcomes


def _each(searches: Searches, workers: int, monitor: Here) -> Iterator[_Found]:
    """Yield the solutions in order of completion."""
    left = dict.fromkeys(range(len(searches.problems)))
    for found in (_from_neighbours if searches.continued else _in_batches)(searches, workers, monitor):
        del left[found.index]
        yield found
    monitor.at(len(searches.problems) - len(left))
    if workers > 1 and left and not monitor.is_stopped:
        index = next(iter(left))
        program, x = searches.problems[index].program, searches.starts[index]
        with np.errstate(all="ignore"):  # compiled before processes are created
            program.value(x), program.jacobian(x), program.hessian(x, np.zeros(program.m), 1.0)
    yield from results(_solve_one, searches, list(left), workers, monitor)


def _in_batches(searches: Searches, workers: int, monitor: Here) -> Iterator[_Found]:
    """Yield the solutions of batches of searches with the same structure."""
    groups = searches.groups()
    first: list[_Job] = [(structure, members[:1], None) for structure, members in groups.items() if workers > 1]
    jobs = list[_Job]()
    for structure, members in groups.items():
        members = members[1:] if workers > 1 else members
        size = max(1, min(MAX_JOB, -(-len(members) // workers))) if workers > 1 else len(members)
        jobs += [(structure, members[at : at + size], None) for at in range(0, len(members), size)]
    yield from chain.from_iterable(results(_solve_some, searches, first, 1, monitor))
    yield from chain.from_iterable(results(_solve_some, searches, jobs, workers, monitor))


def _from_neighbours(searches: Searches, workers: int, monitor: Here) -> Iterator[_Found]:
    """Yield the solutions of searches that start from those of similar searches (``neighbours``)."""
    for structure, members in searches.groups().items():
        problems = [searches.problems[index] for index in members]
        cases = Cases.of([without_linear(problem.program) for problem in problems])
        points = features([np.stack([searches.starts[index] for index in members]), *cases.data_arrays])
        solved, parents = dict[int, Solution](), dict[int, int]()
        for wave in waves(points, workers * WIDTH, workers):
            parents.update(wave)
            for k, parent in wave:  # the nearest solved one, or itself
                while parent not in solved and parents[parent] != parent:
                    parent = parents[parent]
                parents[k] = parent if parent in solved else k
            warm = [k for k, _ in wave if parents[k] != k]
            outcomes = {k: _moved(problems[k], solved[parents[k]]) for k in warm}
            size = max(1, -(-len(warm) // workers))
            parts = [warm[at : at + size] for at in range(0, len(warm), size)]
            jobs: list[_Job] = [(structure, [members[k] for k in part], [outcomes[k] for k in part]) for part in parts]
            jobs += [(structure, [members[k]], None) for k, _ in wave if parents[k] == k]
            for found in chain.from_iterable(results(_solve_some, searches, jobs, workers, monitor)):
                solution = found.solution(searches.problems[found.index])
                if solution.is_solved:
                    solved[members.index(found.index)] = solution
                yield found


def _moved(problem: ProblemStatement, neighbour: Solution) -> Outcome:
    """Return the outcome of a neighbouring problem, with its variables shifted."""
    return replace(neighbour.outcome, x=moved(problem, neighbour, neighbour.x))


def _groups(problems: Sequence[ProblemStatement], settings: SolveSettings) -> dict[Any, list[int]]:
    """Return the indices of the problems that a batch can solve, by structure."""
    groups: dict[Any, list[int]] = {}
    for index, problem in enumerate(problems):
        with suppress(ModelError):  # raised again when the problem is solved separately
            structure = batch_structure(problem, settings)
            if structure is not None:
                groups.setdefault(structure, []).append(index)
    return groups


def solve_together(problems: Sequence[ProblemStatement], settings: SolveSettings) -> list[Solution | None]:
    """Return the solutions of problems that a batch solves, and None for the others."""
    result: list[Solution | None] = [None] * len(problems)
    for members in _groups(problems, settings).values():
        own = [problems[index] for index in members]
        searches = Searches(own, [problem.guess() for problem in own], settings)
        batch = solve_group(searches, Template(own[0].program, searches.device))
        for index, solution in zip(members, batch, strict=True):
            result[index] = solution
    return result


def _solve_some(searches: Searches, job: _Job, monitor: Monitor) -> list[_Found]:
    """Return the solutions of searches with the same structure, except those that the batch does not solve."""
    structure, members, warm = job
    some = searches.take(members)
    if warm is not None:
        some.starts = [outcome.x for outcome in warm]
    with uncollected():  # the garbage collector would repeatedly search thousands of results
        batch = solve_group(some, searches.template(structure, some.problems[0]), monitor, warm)
    pairs = zip(members, some.problems, batch, strict=True)
    return [_Found(index, problem, found) for index, problem, found in pairs if found is not None]


def _solve_one(searches: Searches, index: int, monitor: Monitor) -> _Found:
    """Return the solution of one search."""
    found = _alone(searches.problems[index], searches.starts[index], replace(searches.settings, progress=False))
    monitor.end()
    return _Found(index, searches.problems[index], found)


def batch_structure(problem: ProblemStatement, settings: SolveSettings) -> tuple[Any, ...] | None:
    """Return a key that is equal for problems that can be solved in one batch, or None for other problems."""
    is_plain = not (settings.feasible_first or settings.tie_break or settings.refine)
    is_plain = is_plain and settings.solver == BATCH_SOLVER and not np.isfinite(settings.seconds)
    costs: Sequence[Cost] = problem.costs
    if not is_plain or any(cost.scaled(1.0) is not cost for cost in costs):
        return None
    return structure_of(problem.program) or wide_structure_of(problem.program)


def _alone(problem: ProblemStatement, start: Array, settings: SolveSettings) -> Solution:
    """Return the solution of one problem; if it is infeasible, the nearest motion.

    If values are not finite at the start, the status states the error.
    """
    try:
        with np.errstate(all="ignore"):
            state = solve(problem, start, settings)
    except ModelError as error:
        return _unsolved(problem, start, str(error), settings)
    if state.result is not None:
        return state.result
    assert state.diagnosis is not None
    reason = f"infeasible: {state.diagnosis}" if state.diagnosis.conflict else str(state.diagnosis)
    return _unsolved(problem, start, reason, settings)


def _unsolved(problem: ProblemStatement, x: Array, status: str, settings: SolveSettings) -> Solution:
    """Return the start as the result of a search that has not begun."""
    program = problem.program
    with np.errstate(all="ignore"):
        objective = float(program.value(x)[0])
    objective = objective if np.isfinite(objective) else np.inf
    outcome = Outcome(x, np.zeros(program.m), np.zeros(program.n), objective, 0, status, False)
    return Solution(problem, outcome, settings.solver, settings.tolerance)


def solve_group(
    searches: Searches,
    template: Template,
    monitor: Monitor | None = None,
    warm: Sequence[Outcome] | None = None,
    mu: float = MIN_WARM_MU,
) -> list[Solution | None]:
    """Return the solutions of searches with the same structure, or None for those that the batch does not solve.

    ``warm`` contains the outcomes of neighbouring problems, from which the searches start, with barrier parameters of
    at least ``mu``.
    """
    problems, starts, settings, began = searches.problems, searches.starts, searches.settings, perf_counter()

    def is_stopped() -> bool:
        return monitor is not None and monitor.is_stopped

    def done(_: int, __: Outcome) -> None:
        if monitor is not None:
            monitor.end()

    smoother = _smoother(searches) if warm is None else None
    if smoother is not None:
        return _solve_from_smoother(searches, smoother, template, monitor)
    limits = Settings(settings.tolerance, settings.iterations)
    cases, outcomes = _outcomes(searches, template, limits, done, is_stopped, warm, mu)
    seconds = (perf_counter() - began) / len(problems)
    between = _between_nodes(template.finer(cases), template.required, outcomes)
    results = list[Solution | None]()
    for problem, result, worst, start in zip(problems, outcomes, between, starts, strict=True):
        if result is None or not (result.outcome.is_solved or is_stopped()):
            results.append(None)
            continue
        outcome = result.outcome if result.outcome.is_solved else replace(result.outcome, status=CTRL_C)
        solution = Solution(problem, outcome, BATCH_SOLVER, settings.tolerance, 0.0, seconds)
        refines = settings.refine is not False and any(phase.is_refinable for phase in problem.stages)
        if result.is_convex and not refines and worst <= BETWEEN:
            results.append(solution)
            continue
        state = SolveState(problem, settings, start, outcome.x, None, began, solution)
        if not result.is_convex and not is_stopped():
            state = leave_saddle(state)
        if refines and not is_stopped():
            state = refine_points(state)
        if worst > BETWEEN or state.result is not solution:
            state = mark_between_nodes(state)
        assert state.result is not None
        results.append(state.result)
    return results


def _outcomes(
    searches: Searches,
    template: Template,
    limits: Settings,
    done: Callable[[int, Outcome], None] | None,
    stops: Callable[[], bool],
    warm: Sequence[Outcome] | None = None,
    mu: float = MIN_WARM_MU,
) -> tuple[Cases | WideCases, list[BatchOutcome | None]]:
    """Return the batch of searches, and its outcomes with the multipliers of the program rows."""
    cases, first = template.cases(searches), None
    placed = array_module(cases.device).asarray
    if warm is not None:
        rows = placed(np.stack([outcome.multipliers[template.order] for outcome in warm])) * cases.units
        first = Warm(rows, placed(np.stack([outcome.bound_multipliers for outcome in warm])), mu)
    outcomes = solve_batch(cases, placed(np.stack(searches.starts)), limits, done, stops=stops, warm=first)
    if isinstance(cases, Cases) and (np.diff(template.order) == 1).all():
        return cases, outcomes
    for k, (result, units) in enumerate(zip(outcomes, on_host(cases.units), strict=True)):
        if result is not None:
            multipliers = np.empty_like(result.outcome.multipliers)
            multipliers[template.order] = result.outcome.multipliers / units
            outcomes[k] = result._replace(outcome=replace(result.outcome, multipliers=multipliers))
    return cases, outcomes


def _smoother(searches: Searches) -> Searches | None:
    """Return the searches with smoother costs, or None if the costs are smooth."""
    if all(cost.smoother() is cost for cost in searches.problems[0].costs):
        return None
    problems = [problem.changed(objective=[cost.smoother() for cost in problem.costs]) for problem in searches.problems]
    return Searches(problems, searches.starts, searches.settings, searches.device)


def _solve_from_smoother(
    searches: Searches, smoother: Searches, template: Template, monitor: Monitor | None
) -> list[Solution | None]:
    """Return the solutions of searches, started from solutions with smoother costs and a loose tolerance."""
    settings, result = searches.settings, cast(list[Solution | None], [None] * len(searches.problems))
    loose = Settings(max(LOOSE_TOLERANCE, settings.tolerance), max(1, settings.iterations // 2))
    there = Template(smoother.problems[0].program, smoother.device)
    _, before = _outcomes(smoother, there, loose, None, lambda: monitor is not None and monitor.is_stopped)
    found = {k: each.outcome for k, each in enumerate(before) if each is not None and each.outcome.is_solved}
    if not found:
        return result
    own, most = searches.take(list(found)), max(outcome.iterations for outcome in found.values())
    starts, left = [outcome.x for outcome in found.values()], max(1, settings.iterations - most)
    some = Searches(own.problems, starts, replace(settings, iterations=left), own.device, own.known)
    for k, solution in zip(found, solve_group(some, template, monitor, list(found.values()), SMOOTHER_MU), strict=True):
        if solution is not None:
            iterations = found[k].iterations + solution.outcome.iterations
            result[k] = replace(solution, outcome=replace(solution.outcome, iterations=iterations))
    return result


def _between_nodes(finer: Cases | WideCases | None, required: Flags, outcomes: Sequence[BatchOutcome | None]) -> Array:
    """Return the largest violation (B,) of each solution on a grid ten times finer; infinity if it is unknown."""
    worst = np.full(len(outcomes), np.inf)
    if finer is None:
        return worst
    known = np.array([index for index, outcome in enumerate(outcomes) if outcome is not None], dtype=int)
    needed, size = np.asarray(required, like=finer.lower), FINER_CASES[finer.device]
    for first in range(0, len(known), size):
        at = known[first : first + size]
        own = finer.take(np.asarray(at, like=finer.lower))
        x = np.stack([outcome.outcome.x for outcome in map(outcomes.__getitem__, at) if outcome is not None])
        worst[at] = on_host(own.violations(np.asarray(x, like=finer.lower), needed))
    return np.where(np.isnan(worst), np.inf, worst)
