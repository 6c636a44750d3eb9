"""The solution of a motion problem: the motion with its forces, objective and constraint values."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array, Flags
from torsor.motion.results.samples import Course, Moments, Profiled
from torsor.motion.statement import ProblemStatement
from torsor.motion.terms.objectives import Rates
from torsor.motion.terms.term import Cost
from torsor.motion.transcription.batch import Batch
from torsor.motion.transcription.node_kernels import moments_of
from torsor.motion.transcription.program import Program, Row
from torsor.optimisation import Iteration, Outcome, row_violations
from torsor.optimisation.optimum import Curvature, curvature_at
from torsor.robot.robot import Robot

VARIABLE_TITLES = ("Duration", "Number", "Control point")  # titles of variable bounds
FINER_FACTOR = 10  # factor of the number of nodes on the grid for violations between nodes
ACTIVE_DISTANCE = 1e-6  # scaled distance from a bound below which a row is active


class Active(NamedTuple):
    """A row at its bound: term and label, phase and time, side and bound, and dJ/d(bound) in user units.

    ``phase`` and ``time`` (s, from the start of the motion) are None for end conditions and variable bounds.
    """

    title: str
    label: str
    phase: int | None
    time: float | None
    side: str
    bound: float
    sensitivity: float


@dataclass(frozen=True)
class Group:
    """All rows of one name: their number, the number of active ones, and the largest violation.

    ``violation`` is in the units of the rows, ``scaled`` is relative to their scales, and ``fine`` is the scaled
    violation on a grid ten times finer. ``label`` and ``time`` state where it occurs. ``sensitivity`` is {(label,
    side): dJ/d(bound)} for a bound that changes by the same amount at all times.
    """

    title: str
    count: int
    active: int
    violation: float
    scaled: float
    fine: float
    label: str
    time: float | None
    sensitivity: dict[tuple[str, str], float] = field(default_factory=dict)


def time_of(program: Program, x: Array, row: Row) -> float | None:
    """Return the time of a row in s from the start of the motion, or None for end conditions."""
    if row.phase is None or row.s is None:
        return None
    seconds = [phase_layout.seconds(x) for phase_layout in program.layout.phases]
    return sum(seconds[: row.phase]) + float(program.layout.phases[row.phase].times(x, np.array(row.s)))


def on_finer_grid(program: Program) -> tuple[Program, Flags]:
    """Return the program with ten times as many nodes, and flags (m,) of the rows that must be satisfied.

    Terms that apply only at specified times (``at``) are not checked between them.
    """
    batches, required = list[Batch](), list[Flags]()
    for batch in program.batches:
        terms = batch.kernels.constraints
        if not batch.kernels.m:
            continue
        everywhere = [term.at is None for term in terms]
        inserted = 1 if not any(everywhere) else FINER_FACTOR
        parts = np.arange(inserted) / inserted
        s = np.append((batch.s[:-1, None] + np.diff(batch.s)[:, None] * parts).ravel(), batch.s[-1])
        batches.append(replace(batch, s=s, weights=np.zeros(len(s))))
        between = np.repeat(everywhere, [len(bound.labels) for bound in batch.kernels.rows])
        required.append((between | (np.arange(len(s)) % inserted == 0)[:, None]).ravel())
    required.append(np.ones(program.linear.m, dtype=bool))
    return replace(program, batches=tuple(batches)), np.concatenate(required)


def active_rows(program: Program, x: Array, multipliers: Array, bound_multipliers: Array) -> list[Active]:
    """Return the rows and variables at their bounds.

    With L = f + multipliers . rows, df/d(bound) = -multiplier, here per unit of the unscaled row. A row is active if it
    is at its bound, or if its multiplier exceeds its distance from the bound, because interior-point methods stop at a
    small distance from bounds.
    """
    g, lower, upper, scales = program.value(x)[1], program.row_lower, program.row_upper, program.scales
    rows_at_bounds = []
    for k in map(int, np.flatnonzero(_touching(g, lower, upper, multipliers))):
        row = program.rows[k]
        side, bound = _side(g[k], lower[k], upper[k], multipliers[k])
        sensitivity = -float(multipliers[k] / scales[k])
        at = row.phase, time_of(program, x, row)
        rows_at_bounds.append(Active(row.title, row.label, *at, side, float(bound * scales[k]), sensitivity))
    variables = dict[int, tuple[str, str]]()  # title and label by column
    for phase, phase_layout in enumerate(program.layout.phases):
        for profile, point in np.argwhere(phase_layout.columns >= 0).tolist():
            label = f"{point} of profile {profile}, phase {phase}"
            variables[int(phase_layout.columns[profile, point])] = VARIABLE_TITLES[2], label
        if phase_layout.duration >= 0:
            variables[phase_layout.duration] = VARIABLE_TITLES[0], f"phase {phase}"
    variables |= {column: (VARIABLE_TITLES[1], name) for name, column in program.layout.numbers.items()}
    near = _touching(x, program.lower, program.upper, bound_multipliers)
    for k, (title, label) in variables.items():
        if near[k]:
            side, bound = _side(x[k], program.lower[k], program.upper[k], bound_multipliers[k])
            rows_at_bounds.append(Active(title, label, None, None, side, float(bound), -float(bound_multipliers[k])))
    return rows_at_bounds


def _touching(values: Array, lower: Array, upper: Array, multipliers: Array) -> Flags:
    distance = np.minimum(upper - values, values - lower)
    return np.asarray((lower == upper) | (distance <= ACTIVE_DISTANCE) | (np.abs(multipliers) > distance))


def _side(value: float, lower: float, upper: float, multiplier: float) -> tuple[str, float]:
    if lower == upper:
        return "equal", lower
    above = multiplier > 0 if abs(multiplier) > ACTIVE_DISTANCE else upper - value < value - lower
    return ("upper", upper) if above else ("lower", lower)


def groups(
    program: Program, x: Array, multipliers: Array, active: list[Active], fine: tuple[Program, Array]
) -> dict[str, Group]:
    """Return the rows grouped by term name, with sensitivities summed over all times.

    ``fine`` is a program on a finer grid and the violations of its rows.
    """
    between = defaultdict[str, float](float)
    for row, violation in zip(fine[0].rows, fine[1], strict=True):
        between[row.title] = max(between[row.title], float(violation))
    places = defaultdict[str, list[int]](list)
    for k, row in enumerate(program.rows):
        places[row.title].append(k)
    outside, by_title = row_violations(program, x), dict[str, Group]()
    for title, indices in places.items():
        worst = indices[int(np.argmax(outside[indices]))]
        row, sensitivity = program.rows[worst], defaultdict[tuple[str, str], float](float)
        seen = [active_row for active_row in active if active_row.title == title]
        sides = {(active_row.label, active_row.side) for active_row in seen}
        for k in indices:
            equal = program.row_lower[k] == program.row_upper[k]
            key = program.rows[k].label, "equal" if equal else "upper" if multipliers[k] > 0 else "lower"
            if key in sides:
                sensitivity[key] -= float(multipliers[k] / program.scales[k])
        own_units, scaled = float((outside * program.scales)[indices].max()), float(outside[worst])
        sizes, time = (own_units, scaled, max(between[title], scaled)), time_of(program, x, row)
        by_title[title] = Group(title, len(indices), len(seen), *sizes, row.label, time, dict(sensitivity))
    return by_title


GRID_STEPS = 200  # steps of the profiles in each phase
MIN_TOLERANCE = 1e-8  # scaled violation that counts as 0, regardless of the tolerance
BETWEEN = 0.05  # scaled violation between nodes above which a motion is "optimal at the nodes only"


class Part(NamedTuple):
    """A term of the objective: name, weight, and unweighted value with and without smoothing."""

    title: str
    weight: float
    value: float
    exact: float

    @property
    def weighted(self) -> float:
        """The contribution to the objective: weight times value."""
        return self.weight * self.value


class Pass(NamedTuple):
    """A refinement round: nodes, largest scaled violation between them, objective, iterations and control points.

    Nodes and control points (of one profile) are summed over all phases.
    """

    nodes: int
    violation: float
    objective: float
    iterations: int
    points: int = 0


def value_of(problem: ProblemStatement, x: Array, term: Cost) -> float:
    """Return the unweighted value of a cost for the variables x (n,)."""
    if isinstance(term, Rates):
        return problem.rates_of(replace(term, weight=1.0), problem.program.batches).value(x)
    kernels, total = problem.kernels_of([term if term.weight == 1.0 else replace(term, weight=1.0)]), 0.0
    for index, phase in enumerate(problem.stages):
        if term.holds_in(index, phase):
            batch = Batch(kernels, problem.program.layout, index, *moments_of(term, phase, problem.model))
            total += batch.value(x)[1]
    return total


@dataclass(frozen=True, eq=False)
class Solution(Profiled):
    """A problem with its solver outcome; ``MotionResult`` documents the fields."""

    problem: ProblemStatement
    outcome: Outcome
    solver: str
    tolerance: float = 1e-6
    setup_seconds: float = 0.0
    solve_seconds: float = 0.0
    passes: tuple[Pass, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        message = f"T = {self.T:.6g} s, objective {self.objective:.6g}, {self.iterations} iterations"
        return f"<{type(self).__name__} of {self.problem.name!r}: {self.status}, {message}>"

    def __getstate__(self) -> dict[str, Any]:
        """Pickle only the fields, because derived values contain CasADi expressions."""
        return {entry.name: self.__dict__[entry.name] for entry in fields(self)}

    @property
    def x(self) -> Array:
        """The variables (n,)."""
        return self.outcome.x

    @property
    def program(self) -> Program:
        """The nonlinear program that was solved."""
        return self.problem.program

    @property
    def status(self) -> str:
        """The status of the solver, as text."""
        return self.outcome.status

    @property
    def is_solved(self) -> bool:
        """Whether the solver reached a local optimum to its tolerance."""
        return self.outcome.is_solved

    @property
    def is_stopped(self) -> bool:
        """Whether Ctrl-C or the time limit stopped the solver."""
        return self.status.startswith("stopped by") or "time limit" in self.status

    @property
    def iterations(self) -> int:
        """Solver iterations, summed over all refinement rounds."""
        return sum(refinement.iterations for refinement in self.passes) if self.passes else self.outcome.iterations

    @property
    def log(self) -> list[Iteration]:
        """The solver iterations, each with number, objective, violation and step."""
        return self.outcome.log

    @cached_property
    def robot(self) -> Robot:
        """The robot, with the free parameters of the solution."""
        model = self.problem.robot
        return model if isinstance(model, Robot) else model.at([self.numbers[name] for name in model.names])

    # Time and objective

    @cached_property
    def durations(self) -> Array:
        """Duration of each phase (s)."""
        return np.array([phase_layout.seconds(self.x) for phase_layout in self.program.layout.phases])

    @property
    def T(self) -> float:
        """Duration of the full motion (s)."""
        return float(self.durations.sum())

    @property
    def numbers(self) -> dict[str, float]:
        """The shared numbers: free parameters of the robot and of terms."""
        result = {name: float(self.x[column]) for name, column in self.program.layout.numbers.items()}
        return self.problem.held | result

    @cached_property
    def objective(self) -> float:
        """The value of the objective."""
        return float(self.program.value(self.x)[0])

    @cached_property
    def distance(self) -> float:
        """The estimated relative distance of the objective from its limit with more control points.

        It is extrapolated from the changes of the objective in refinement rounds, as a geometric series with a ratio
        from 1/4 to 1/2, or 2/3 after the first round. It is NaN if no control points were added.
        """
        pairs = [(one, other) for one, other in pairwise(self.passes) if other.points > one.points]
        changes = [abs(other.objective - one.objective) / max(abs(other.objective), 1e-300) for one, other in pairs]
        if not changes:
            return float("nan")
        ratio = 2 / 3 if len(changes) < 2 else float(np.clip(changes[-1] / max(changes[-2], 1e-300), 0.25, 0.5))
        return changes[-1] * ratio / (1 - ratio)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The values of the objective's terms."""
        return tuple(self._part(term) for term in self.problem.terms if isinstance(term, Cost))

    def _part(self, term: Cost) -> Part:
        exact, value = term.exact(), value_of(self.problem, self.x, term)
        return Part(
            term.title, float(term.weight), value, value if exact is term else value_of(self.problem, self.x, exact)
        )

    @cached_property
    def curvature(self) -> Curvature | None:
        """The second-order conditions, from the exact Hessian; None if the solver did not reach an optimum."""
        return curvature_at(self.program, self.outcome) if self.is_solved else None

    # Profiles

    def at(self, t: ArrayLike) -> Moments:
        """Return the motion at times t (...), from 0 to ``T``: q, v, a, j, tau, tau_rate and reactions (..., n)."""
        return self.course.at(t)

    @cached_property
    def course(self) -> Course:
        """The motion as a function of time."""
        return Course(self.problem, self.x)

    @property
    def times(self) -> Array:
        """Times (K,) of the profiles, in s."""
        return np.asarray(self.moments.times)

    @cached_property
    def moments(self) -> Moments:
        """The motion on the grid of ``times``."""
        grid = np.linspace(0.0, 1.0, GRID_STEPS + 1)
        return self.course.at_fractions([grid] * len(self.durations))

    @property
    def force_names(self) -> tuple[str, ...]:
        """Column names of ``tau``."""
        robot = self.problem.model.robot
        return tuple(robot.active if robot.loops else robot.coordinate_names)

    # Constraints

    @cached_property
    def max_violation(self) -> float:
        """The largest violation of a scaled row at the nodes, or of a variable bound."""
        program, x = self.program, self.x
        outside = np.maximum(program.lower - x, x - program.upper).max(initial=0.0)
        return float(max(outside, row_violations(program, x).max(initial=0.0)))

    @cached_property
    def fine(self) -> tuple[Program, Array]:
        """The program on a grid ten times finer, and its row violations (m,), which are infinite for NaN.

        Rows that need not be satisfied between the nodes have a violation of 0.
        """
        program, required = on_finer_grid(self.program)
        with np.errstate(invalid="ignore"):
            outside = np.nan_to_num(row_violations(program, self.x), nan=np.inf, posinf=np.inf)
        return program, np.where(required, outside, 0.0)

    @cached_property
    def max_violation_fine(self) -> float:
        """The largest scaled violation on a grid ten times finer, infinite for NaN; it is sampled, not proven."""
        return max(float(self.fine[1].max(initial=0.0)), self.max_violation)

    @property
    def is_only_at_nodes(self) -> bool:
        """Whether the solver succeeded, but rows are violated by more than 0.05 of their scales between the nodes."""
        return self.is_solved and self.max_violation_fine > BETWEEN

    @property
    def is_feasible(self) -> bool:
        """Whether all rows are satisfied at the nodes, to the larger of ten times the tolerance and 1e-8."""
        return self.max_violation <= self.accepted_violation

    @property
    def accepted_violation(self) -> float:
        """The largest scaled violation at the nodes that counts as feasible."""
        return max(10 * self.tolerance, MIN_TOLERANCE)

    @cached_property
    def active(self) -> list[Active]:
        """Active constraints: rows and variables at their bounds, with dJ/d(bound) in user units."""
        return active_rows(self.program, self.x, self.outcome.multipliers, self.outcome.bound_multipliers)

    @cached_property
    def constraints(self) -> dict[str, Group]:
        """The rows grouped by term name: violations, active rows, sensitivities."""
        return groups(self.program, self.x, self.outcome.multipliers, self.active, self.fine)

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of variables, constraints, equations, known control points and frozen coordinates."""
        program, layout = self.program, self.program.layout
        points = sum(spline.count for phase_layout in layout.phases for spline in phase_layout.splines)
        free = sum(int((phase_layout.columns >= 0).sum()) for phase_layout in layout.phases)
        equal = int((program.row_lower == program.row_upper).sum())
        result = {"variables": program.n, "constraints": program.m, "equalities": equal, "known": points - free}
        return result | {"frozen": len(self.problem.frozen)}
