"""Solution of a motion problem by a list of strategies, each of which is a function of the solve state.

The order is as follows:

- Reject constraints that no motion can satisfy.
- Scale the smoothing of powers.
- Find a feasible motion, if requested, and solve with smoother costs, if there are any.
- Solve from that motion, and again with less smoothing if the powers are much smaller than expected.
- If the result is infeasible, relax groups of constraints in their order, minimise the sum of violations, solve again
  from that motion, and diagnose the conflict.
- Escape saddle points along negative curvature.
- If the result is feasible, add control points and nodes, and choose among equally fast motions.
- Mark motions that are optimal but violate rows between the nodes.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from torsor.base.arrays import Array, Flags
from torsor.base.checks import flag, number, one_of, whole_number
from torsor.base.errors import ModelError, MotionError
from torsor.base.interrupts import OutOfTimeError, Stoppable
from torsor.motion.diagnosis import constant_violation, diagnose_conflict, diagnose_group
from torsor.motion.refine import refined, with_more_points, with_points_of
from torsor.motion.results.solution import MIN_TOLERANCE, Solution, value_of
from torsor.motion.starts import check_start, is_same_program, read_start
from torsor.motion.statement import ProblemStatement
from torsor.motion.terms.limits import Torques
from torsor.motion.terms.objectives import Effort, Time
from torsor.motion.terms.term import Cost
from torsor.motion.transcription.program import Program
from torsor.optimisation import (
    SOLVERS,
    Outcome,
    Patience,
    Settings,
    Watch,
    min_max_violation,
    min_squared_violation,
    min_sum_violation,
    row_violations,
)

# The tie-break of minimum-time motions: if one joint limits the time, many motions of the others are equally fast, and
# they may chatter between their limits. A second problem chooses one of these motions. It has the same constraints,
# bounds durations to MAX_LENGTHENING above the shortest ones, and minimises the integral of squared forces relative to
# their bounds.

# Fraction of its shortest duration by which a phase may be lengthened.
MAX_LENGTHENING = 1e-4


def check_tie_break(problem: ProblemStatement) -> None:
    """Raise ModelError if the objective is not the time, or if no duration is free."""
    if not all(isinstance(cost, Time) for cost in problem.costs):
        message = f"does not apply to the objective {', '.join(each.title for each in problem.costs)}"
        allowed = "only the objective Time"
        raise ModelError(message, argument="tie_break", where=problem.name, allowed=allowed, fix="omit it")
    if all(phase.bounds[0] == phase.bounds[1] for phase in problem.stages):
        fix = "omit it, or give a duration as bounds (least, most)"
        raise ModelError("does not apply to fixed durations", argument="tie_break", where=problem.name, fix=fix)


def least_effort_problem(found: Solution) -> ProblemStatement:
    """Return the least-effort problem with phase durations equal to or slightly longer than those of a solution.

    Its variables are those of the original problem.
    """
    problem, phases = found.problem, []
    for phase, T in zip(found.problem.stages, found.durations, strict=True):
        least, most = phase.bounds
        bounds = (least, max(least, min(most, float(T) * (1 + MAX_LENGTHENING))))
        phases.append(phase if least == most else replace(phase, duration=bounds))
    # The scale of a force is its largest bound in the problem, otherwise that of the robot, otherwise 1.
    robot, names = problem.model.robot, problem.node.force_names
    scales = robot.effort_limit[[robot.coordinate_names.index(name) for name in names]]
    for term in problem.conditions:
        if type(term) is Torques and (term.lower is not None or term.upper is not None):
            bound = np.abs(term.bounds_of(robot, names)).max(axis=0)
            scales = np.where(np.isfinite(bound), bound, scales)
    scales = np.where((scales > 0) & np.isfinite(scales), scales, 1.0)
    return problem.changed(objective=Effort(scale=scales.tolist(), name="tie-break"), phases=phases, settings={})


LARGEST_FLOAT = float(np.finfo(float).max)  # larger integers are not floats
DEFAULT_REFINEMENT = 1e-4  # default scaled violation at which refinement ends
REFINEMENT_SOLVER = "condensed"  # for added control points: near a solution, it is several times faster than the others


@dataclass(frozen=True)
class SolveSettings:
    """The settings of a solve; ``MotionProblem.solve`` documents them."""

    solver: str = "ipopt"
    tolerance: float = 1e-6
    iterations: int = 500
    seconds: float = np.inf
    refine: bool | float | None = None
    progress: bool | None = None
    check: bool = True
    feasible_first: bool = False
    tie_break: bool = False

    @classmethod
    def of(cls, where: str, **given: Any) -> "SolveSettings":
        """Return validated settings; None selects the default of a setting."""
        for key in given:
            if key not in DEFAULTS:
                raise ModelError(f"there is no setting {key!r}", value=key, where=where, allowed=", ".join(DEFAULTS))
        values = DEFAULTS | {key: value for key, value in given.items() if value is not None}
        one_of(values["solver"], list(SOLVERS), where, "solver")
        number(values["tolerance"], where, "tolerance", least=1e-12, most=0.1)
        whole_number(values["iterations"], where, "iterations", most=10**9)
        number(values["seconds"], where, "seconds", least=1e-9, finite=False)
        for key in ("progress", "check", "feasible_first", "tie_break"):
            if values[key] is not None:  # the default of ``progress``
                flag(values[key], where, key)
        refine = values["refine"]
        is_tolerance = isinstance(refine, (int, float)) and 0 < refine <= LARGEST_FLOAT
        if refine is not None and not isinstance(refine, bool) and not is_tolerance:
            allowed = "True, False, or a positive tolerance of the scaled rows"
            raise ModelError(argument="refine", value=refine, where=where, allowed=allowed)
        return cls(**values)


DEFAULTS: dict[str, Any] = asdict(SolveSettings())


# Largest number of successive saddle points to escape, distances along negative curvature relative to the variables,
# and smallest relative decrease of the objective that counts as an improvement.
MAX_SADDLES, SADDLE_DISTANCES, MIN_SADDLE_GAIN = 3, (0.01, -0.1), 1e-4
MAX_RESCALINGS, MAX_RESCALING_ITERATIONS = 4, 100  # solves with less smoothing, and iterations of each
RESCALING_SOLVER = "sqp"  # near kinks, interior-point methods chatter
MIN_POWER = 1e-300  # W; smaller than any mean power
LOOSE_TOLERANCE = 1e-2  # tolerance of the problem with smoother costs
MAX_RELAXING_ITERATIONS = 200  # largest number of iterations for the relaxation of one group of constraints
CTRL_C = "stopped by Ctrl-C"
GRACE_SECONDS = 1.0  # compilation may continue for this time (s) after ``seconds``, so that there is a result
ONLY_AT_NODES = "at the nodes only"  # appended to the status of motions that violate rows between the nodes


@dataclass(frozen=True, eq=False)
class SolveState:
    """The state of a solve: the problem, the starting point of the solver, and the results of the strategies so far.

    ``guess`` (n,) is the initial guess, ``x`` (n,) is the solver's starting point, ``warm`` is the outcome with the
    initial multipliers, and ``began`` is the ``perf_counter`` time at the start. ``result`` is the best solution so
    far, ``nearest`` is the outcome with the smallest sum of violations, and ``diagnosis`` is the reason why no motion
    is feasible.
    """

    problem: ProblemStatement
    settings: SolveSettings
    guess: Array
    x: Array
    warm: Outcome | None
    began: float
    result: Solution | None = None
    nearest: Outcome | None = None
    diagnosis: MotionError | None = None

    @property
    def tolerance(self) -> float:
        """The largest scaled violation that counts as feasible."""
        return max(10 * self.settings.tolerance, MIN_TOLERANCE)

    @property
    def setup_seconds_left(self) -> float:
        """The remaining time (s) for compilation, which ends one second after the time limit."""
        return self.began + self.settings.seconds + GRACE_SECONDS - perf_counter()

    @property
    def is_open(self) -> bool:
        """Whether the result is infeasible but neither stopped nor diagnosed."""
        result = self.result
        return result is not None and self.diagnosis is None and not result.is_feasible and not result.is_stopped

    def optimiser_settings(self, iterations: int | None = None) -> Settings:
        """Return the tolerance and limits of the next solver call."""
        seconds = max(self.began + self.settings.seconds - perf_counter(), 1e-3)
        return Settings(self.settings.tolerance, iterations or self.settings.iterations, seconds)

    def unsolved(self, diagnosis: str, fix: str = "") -> "SolveState":
        """Return the state with a diagnosis without named conflicts."""
        assert self.result is not None
        error = MotionError(f"{diagnosis}: {self.result.status}", where=self.problem.name, fix=fix)
        return replace(self, diagnosis=error.but(violation=self.result.max_violation))

    def infeasible(self, outcome: Outcome, x: Array, diagnosis: MotionError, reason: str) -> "SolveState":
        """Return the state with an infeasible result at x and its diagnosis, without multipliers."""
        assert self.result is not None
        program = self.problem.program
        status = f"infeasible: {', '.join(diagnosis.conflict)} {reason}"
        outcome = replace(outcome, x=x, status=status, is_solved=False)
        outcome = replace(outcome, multipliers=np.zeros(program.m), bound_multipliers=np.zeros(program.n))
        return replace(self, result=replace(self.result, outcome=outcome), diagnosis=diagnosis)

    def interrupted(self) -> "SolveState":
        """Return the state with its best result so far, marked as stopped by Ctrl-C."""
        assert self.result is not None
        outcome = replace(self.result.outcome, status=CTRL_C)
        return replace(self, result=replace(self.result, outcome=outcome), nearest=None)


Strategy = Callable[[SolveState], SolveState]


def solve(problem: ProblemStatement, start: Any, settings: SolveSettings) -> SolveState:
    """Return the final state, with a ``result``, or a ``diagnosis`` if there is no feasible motion near the start."""
    if settings.tie_break:
        check_tie_break(problem)
    if isinstance(start, Solution) and settings.refine is not False:
        problem = with_points_of(problem, start)
    with threadpool_limits(1):  # matrices are too small to benefit from linear-algebra threads
        nothing = np.zeros(0)
        state = SolveState(problem, settings, nothing, nothing, None, perf_counter())
        try:
            with Stoppable(state.setup_seconds_left):
                guess = read_start(problem, start)
                state = replace(state, guess=guess, x=guess, warm=warm_start(problem, start))
            for strategy in STRATEGIES:
                state = strategy(state)
        except OutOfTimeError:  # during compilation
            if state.result is None:
                message = f"the limit of {settings.seconds:g} s was reached during compilation, before the search began"
                fix = "increase seconds; compiled functions are cached, so the next attempt is faster"
                return replace(state, diagnosis=MotionError(message, where=problem.name, fix=fix))
            status = f"{state.result.status}; the time limit was reached while the next step was compiled"
            outcome = replace(state.result.outcome, status=status)
            return mark_between_nodes(replace(state, result=replace(state.result, outcome=outcome)))
        return state


def warm_start(problem: ProblemStatement, start: Any) -> Outcome | None:
    """Return the outcome of an earlier solution of the same program, for a warm start, otherwise None."""
    if not isinstance(start, Solution) or not start.is_solved or not np.isfinite(start.outcome.multipliers).all():
        return None
    is_same = is_same_program(problem, start) and problem.program.m == start.program.m
    return start.outcome if is_same else None


# The strategies


def reject_constant_violations(state: SolveState) -> SolveState:
    """Diagnose violated rows that depend on no variable; if there are any, nothing is solved."""
    if not state.settings.check:
        return state
    with Stoppable(state.setup_seconds_left):
        return replace(state, diagnosis=constant_violation(state.problem, state.tolerance))


def find_feasible_first(state: SolveState) -> SolveState:
    """Solve with a constant objective, if requested (Barman 2020, chapter V: J = const), and start from there."""
    if state.diagnosis is not None or not state.settings.feasible_first:
        return state
    feasible = _solve_from(state, state.x, program=replace(state.problem.program, factor=0.0))
    return replace(state, x=feasible.x, result=_of_problem(state, feasible))


def scale_smoothing(state: SolveState) -> SolveState:
    """Scale the smoothing of powers without a specified width by the mean power of the initial guess."""
    return _with_scaled_smoothing(state, state.x) if state.diagnosis is None else state


def rescale_smoothing(state: SolveState) -> SolveState:
    """Solve again with less smoothing, if the powers of the solution are much smaller than the previous powers."""
    for _ in range(MAX_RESCALINGS):
        result, before = state.result, state.problem
        if result is None or not result.is_solved or not result.is_feasible:
            return state
        state = _with_scaled_smoothing(state, result.x)
        if state.problem is before:
            return state
        begun, iterations = perf_counter(), min(state.settings.iterations, MAX_RESCALING_ITERATIONS)
        settings = replace(state.settings, iterations=iterations, solver=RESCALING_SOLVER)
        limited = replace(state, settings=settings, result=None)
        again = _solve_from(limited, result.x, since=begun)
        if not again.is_solved or not again.is_feasible:
            return replace(state, problem=before)
        setup, seconds = result.setup_seconds, result.solve_seconds + perf_counter() - begun
        again = replace(_of_problem(state, again), setup_seconds=setup, solve_seconds=seconds)
        state = replace(state, result=again)
    return state


def _with_scaled_smoothing(state: SolveState, x: Array) -> SolveState:
    """Return the state with powers smoothed in proportion to their exact means for x (n,)."""
    problem, costs = state.problem, list[Cost]()
    for cost in problem.costs:
        if cost.scaled(MIN_POWER) is not cost:  # its width is not specified
            seconds = sum(layout.seconds(x) for layout in problem.program.layout.phases)
            power = abs(value_of(problem, x, cost.exact())) / (len(problem.node.force_names) * seconds)
            costs.append(cost.scaled(power))
        else:
            costs.append(cost)
    is_same = all(one is other for one, other in zip(costs, problem.costs, strict=True))
    return state if is_same else replace(state, problem=problem.changed(objective=costs))


def solve_smoother_first(state: SolveState) -> SolveState:
    """Solve with smoother costs to a loose tolerance, if the objective has any, and start from there.

    With kinked costs, such as positive and negative work, the solver would otherwise take short steps between kinks.
    """
    costs = [cost.smoother() for cost in state.problem.costs]
    is_same = all(one is other for one, other in zip(costs, state.problem.costs, strict=True))
    if state.diagnosis is not None or state.warm is not None or is_same:
        return state
    problem, settings = state.problem.changed(objective=costs), state.settings
    loose = replace(
        settings, tolerance=max(LOOSE_TOLERANCE, settings.tolerance), iterations=max(1, settings.iterations // 2)
    )
    result = _solve_from(replace(state, problem=problem, settings=loose), state.x)
    warm = result.outcome if result.is_solved and result.is_feasible else None
    left = replace(settings, iterations=max(1, settings.iterations - result.iterations))
    return replace(state, settings=left, x=result.x, result=_of_problem(state, result), warm=warm)


def solve_from_start(state: SolveState) -> SolveState:
    """Solve the problem from the initial guess, or from the motion of an earlier strategy."""
    if state.diagnosis is not None or (state.result is not None and state.result.is_stopped):
        return state
    return replace(state, result=_of_problem(state, _solve_from(state, state.x, warm=state.warm)))


def relax_groups(state: SolveState) -> SolveState:
    """Relax the groups of ``relaxation_order`` one after another, and omit all earlier groups each time."""
    for index in range(len(state.problem.relaxation_order)):
        if state.is_open:
            state = _relax_group(state, index)
    return state


def minimise_violations(state: SolveState) -> SolveState:
    """Find the motion with the smallest sum of violations."""
    if not state.is_open or state.result is None:
        return state
    program = state.problem.program
    with Watch(state.settings.progress, f"{state.problem.name}: smallest violation") as watch:
        least = min_sum_violation(program, state.result.x, replace(state.optimiser_settings(), watch=watch))
    if watch.interrupted:
        return state.interrupted()
    bounds = least.outcome.bound_multipliers[: program.n]  # the others belong to the relaxation variables
    return replace(state, nearest=replace(least.outcome, x=least.x, bound_multipliers=bounds))


def retry_from_nearest(state: SolveState) -> SolveState:
    """Solve again from the motion with the smallest sum of violations, if it is feasible."""
    nearest = state.nearest
    if nearest is None or not row_violations(state.problem.program, nearest.x).max(initial=0.0) <= state.tolerance:
        return state
    result = _solve_from(state, nearest.x)
    state = replace(state, result=result)
    return state if result.is_feasible else state.unsolved("no motion was found")


def diagnose(state: SolveState) -> SolveState:
    """Name the conflicting constraints, based on the motion that minimises the largest violation."""
    if not state.is_open or state.nearest is None:
        return state
    if not state.nearest.is_solved:
        fix = "allow more iterations or seconds, or give another initial guess (start=, multistart)"
        return state.unsolved("no motion was found", fix)
    with Watch(state.settings.progress, f"{state.problem.name}: smallest maximum violation") as watch:
        settings = replace(state.optimiser_settings(), watch=Patience(watch, state.settings.tolerance))
        x, _, _ = min_max_violation(state.problem.program, state.nearest.x, settings)
    if watch.interrupted:
        return state.interrupted()
    diagnosis = diagnose_conflict(state.problem, state.nearest, x, state.tolerance)
    return state.infeasible(state.nearest, x, diagnosis, "conflict")


def refine_nodes(state: SolveState) -> SolveState:
    """Add nodes where bounds are violated on a finer grid, if requested, and solve again."""
    setting = state.settings.refine
    if not setting or state.result is None or not state.result.is_feasible:
        return state
    tolerance, earlier = DEFAULT_REFINEMENT if setting is True else float(setting), state.result.passes[:-1]
    result = refined(state.result, tolerance, state.settings.iterations, partial(_solve_again, state))
    return replace(state, result=replace(result, passes=(*earlier, *result.passes)))


def leave_saddle(state: SolveState) -> SolveState:
    """Solve again along negative curvature if the motion is a saddle point of the Lagrangian.

    From a symmetric start, solvers stop at a point with zero slope, even if neighbouring motions are better.
    """
    for _ in range(MAX_SADDLES):
        result = state.result
        if result is None or not result.is_feasible or result.curvature is None or result.curvature.is_minimum:
            return state
        better = _beside_saddle(state, result)
        if better is None:
            words = f"negative curvature {result.curvature.least:.2g} remains, and no better motion was found along it"
            outcome = replace(result.outcome, status=f"{result.status}; {words}")
            return replace(state, result=replace(result, outcome=outcome))
        status = f"{better.status}; a saddle point with the objective {result.objective:.6g} was left"
        state = replace(state, result=replace(better, outcome=replace(better.outcome, status=status)))
    return state


def _beside_saddle(state: SolveState, saddle: Solution) -> Solution | None:
    """Return a better solution near a saddle point, from a start on one of its sides, or None."""
    problem, program, curvature = saddle.problem, saddle.program, saddle.curvature
    assert curvature is not None and curvature.direction is not None
    size = max(1.0, float(np.abs(saddle.x).max(initial=0.0))) / float(np.abs(curvature.direction).max())
    for distance in SADDLE_DISTANCES:
        x = np.clip(saddle.x + distance * size * curvature.direction, program.lower, program.upper)
        if not np.isfinite(program.value(x)[0]):
            continue
        begun = perf_counter()
        other = _solve_from(replace(state, problem=problem, result=None), x, since=begun)
        gain = saddle.objective - other.objective
        if other.is_solved and other.is_feasible and gain > MIN_SADDLE_GAIN * max(abs(saddle.objective), 1e-300):
            count = saddle.outcome.iterations + other.outcome.iterations
            outcome = replace(other.outcome, iterations=count, log=[*saddle.outcome.log, *other.outcome.log])
            seconds = saddle.solve_seconds + perf_counter() - begun
            setup, passes = saddle.setup_seconds, saddle.passes
            return replace(other, outcome=outcome, setup_seconds=setup, solve_seconds=seconds, passes=passes)
        if other.is_stopped:
            break
    return None


def refine_points(state: SolveState) -> SolveState:
    """Add control points to phases without a prescribed number and solve again, unless ``refine`` is False."""
    result, settings = state.result, state.settings
    if settings.refine is False or result is None or not result.is_solved or not result.is_feasible:
        return state
    if not any(phase.is_refinable for phase in result.problem.stages):
        return state

    def solve_again(problem: ProblemStatement, before: Solution, iterations: int) -> Solution:
        quick = replace(settings, solver=REFINEMENT_SOLVER)
        better = _solve_again(replace(state, settings=quick), problem, before, iterations)
        is_done = better.is_solved and better.is_feasible
        left = iterations - better.outcome.iterations
        if is_done or better.is_stopped or settings.solver == REFINEMENT_SOLVER or left < 1:
            return better
        return _solve_again(state, problem, before, left)

    finer = with_more_points(result, settings.iterations, solve_again)
    note = result.status.partition(";")[2]  # about saddle points
    if note and note not in finer.status:
        finer = replace(finer, outcome=replace(finer.outcome, status=f"{finer.status};{note}"))
    return replace(state, result=finer)


def _solve_again(state: SolveState, problem: ProblemStatement, before: Solution, iterations: int) -> Solution:
    """Return the solution of a refined problem, starting from the solution of the previous problem."""
    settings, begun = replace(state.settings, iterations=iterations), perf_counter()
    x = before.x if is_same_program(problem, before) else read_start(problem, before)
    return _solve_from(replace(state, problem=problem, settings=settings), x, since=begun)


def break_ties(state: SolveState) -> SolveState:
    """Choose the motion of least effort among the fastest, if requested; multipliers remain those of the time."""
    fastest = state.result
    if not state.settings.tie_break or fastest is None or not fastest.is_solved or not fastest.is_feasible:
        return state
    problem = least_effort_problem(fastest)
    x = np.clip(fastest.x, problem.program.lower, problem.program.upper)
    smoothest = _solve_from(replace(state, problem=problem, result=None), x, since=perf_counter())
    outcome, count = fastest.outcome, fastest.outcome.iterations + smoothest.outcome.iterations
    status = f"{outcome.status}; the tie-break ended: {smoothest.status}"
    if not smoothest.is_feasible:
        return replace(state, result=replace(fastest, outcome=replace(outcome, status=status)))
    status = outcome.status if smoothest.is_solved else status
    objective = float(fastest.program.value(smoothest.x)[0])
    log = [*outcome.log, *smoothest.outcome.log]
    outcome = replace(outcome, x=smoothest.x, objective=objective, iterations=count, status=status, log=log)
    setup, seconds = fastest.setup_seconds + smoothest.setup_seconds, fastest.solve_seconds + smoothest.solve_seconds
    return replace(state, result=replace(fastest, outcome=outcome, setup_seconds=setup, solve_seconds=seconds))


def mark_between_nodes(state: SolveState) -> SolveState:
    """Mark the status of a solved motion that violates rows between the nodes by more than 0.05 of their scales."""
    if state.result is None or not state.result.is_only_at_nodes:
        return state
    outcome = state.result.outcome
    words, dot, rest = outcome.status.partition(";")
    outcome = replace(outcome, status=f"{words} {ONLY_AT_NODES}{dot}{rest}")
    return replace(state, result=replace(state.result, outcome=outcome))


STRATEGIES: tuple[Strategy, ...] = (
    reject_constant_violations,
    scale_smoothing,
    find_feasible_first,
    solve_smoother_first,
    solve_from_start,
    rescale_smoothing,
    relax_groups,
    minimise_violations,
    retry_from_nearest,
    diagnose,
    leave_saddle,
    refine_points,
    refine_nodes,
    break_ties,
    mark_between_nodes,
)


# Helpers of the strategies


def _solve_from(
    state: SolveState,
    x: Array,
    *,
    warm: Outcome | None = None,
    program: Program | None = None,
    since: float | None = None,
) -> Solution:
    """Return the solution from variables x (n,), by default with the program of the problem.

    The setup time is the time from ``since`` (by default the start of the solve) to the first solver call, including
    compilation.
    """
    problem, settings, since = state.problem, state.settings, state.began if since is None else since
    with Stoppable(state.setup_seconds_left):  # traces and compiles all functions
        program = problem.program if program is None else program
        if not program.n:
            fix = "give phases more points, or a duration as bounds (least, most)"
            raise ModelError("there are no variables: all control points are known", where=problem.name, fix=fix)
        check_start(problem, x)
        program.jacobian(x)
        program.hessian(x, np.zeros(program.m), 1.0)
    is_first = state.result is None or state.result.problem is not problem
    setup = perf_counter() - since if is_first or state.result is None else state.result.setup_seconds
    with Watch(settings.progress, problem.name) as watch:
        solver_settings = replace(state.optimiser_settings(), watch=watch)
        if warm is not None:
            solver_settings = replace(
                solver_settings, multipliers=warm.multipliers, bound_multipliers=warm.bound_multipliers
            )
        outcome = SOLVERS[settings.solver](program, x, solver_settings)
    if watch.interrupted and not outcome.is_solved:
        outcome = replace(outcome, status=CTRL_C)
    return Solution(problem, outcome, settings.solver, settings.tolerance, setup, perf_counter() - since - setup)


def _of_problem(state: SolveState, found: Solution) -> Solution:
    """Return a solution with the original objective, including the iterations of earlier searches."""
    searches = [found.outcome] if state.result is None else [state.result.outcome, found.outcome]
    log = [line for search in searches for line in search.log]
    objective = float(state.problem.program.value(found.x)[0])
    count = sum(search.iterations for search in searches)
    outcome = replace(found.outcome, objective=objective, iterations=count, log=log)
    return replace(found, problem=state.problem, outcome=outcome)


def _relax_group(state: SolveState, index: int) -> SolveState:
    """Minimise the violation of one group of constraints, without the groups before it.

    If only the group is violated, the diagnosis of the returned state states by how much it has to be relaxed. If no
    constraint is violated, the problem is solved from the motion found. If the search is interrupted, the state is
    interrupted. In all other cases, the state remains open.
    """
    problem, program, order = state.problem, state.problem.program, state.problem.relaxation_order
    without = [name for group in order[:index] for name in group]
    soft, left_out = (np.array([row.title in names for row in program.rows]) for names in (order[index], without))
    iterations = min(state.settings.iterations, MAX_RELAXING_ITERATIONS)
    with Watch(state.settings.progress, f"{problem.name}: relaxing {', '.join(order[index])}") as watch:

        def settings() -> Settings:
            patience = Patience(watch, state.settings.tolerance)
            return replace(state.optimiser_settings(iterations), watch=patience)

        x, _, outcome = min_max_violation(program, state.guess, settings(), soft, ~left_out)
        if not outcome.is_solved and not watch.interrupted:
            other = min_squared_violation(program, state.guess, settings(), soft, ~left_out)
            if _is_nearer(state, other.x, x, soft, ~left_out):
                x, outcome = other.x, other
    if watch.interrupted:
        return state.interrupted()
    outside = row_violations(program, x)
    if outside[~soft & ~left_out].max(initial=0.0) > state.tolerance:
        return state
    if outside[soft].max(initial=0.0) > state.tolerance:
        return state.infeasible(outcome, x, diagnose_group(problem, x, soft, without, state.tolerance), "cannot hold")
    result = _solve_from(state, x) if outside.max(initial=0.0) <= state.tolerance else None
    return state if result is None or not result.is_feasible else replace(state, result=result)


def _is_nearer(state: SolveState, x: Array, y: Array, soft: Flags, kept: Flags) -> bool:
    """Return whether hard rows are violated less at x than at y, or equally with smaller violations of soft rows."""
    (hard, gives), (other_hard, other_gives) = (
        (
            max(float(violations[kept & ~soft].max(initial=0.0)), state.tolerance),
            float(violations[soft].max(initial=0.0)),
        )
        for violations in (row_violations(state.problem.program, at) for at in (x, y))
    )
    return hard < other_hard or (hard == other_hard and gives < other_gives)
