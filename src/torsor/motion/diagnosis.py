"""Diagnosis of infeasible problems: the conflicting constraints, and the smallest relaxation that resolves them."""

from collections.abc import Sequence

import numpy as np

from torsor.base.arrays import Array, Flags
from torsor.base.errors import MotionError
from torsor.motion.results.solution import active_rows, time_of
from torsor.motion.starts import random_start
from torsor.motion.statement import ProblemStatement
from torsor.motion.terms.ends import EndState
from torsor.motion.transcription.program import Program
from torsor.optimisation import Outcome, row_violations

MAX_ROWS_NAMED = 3  # largest number of violated rows that a message names
MIN_CONFLICT_MULTIPLIER = 1e-3  # smallest multiplier of a conflicting row (1: the row is violated)


def diagnose_conflict(problem: ProblemStatement, nearest: Outcome, relaxed: Array, tolerance: float) -> MotionError:
    """Return the diagnosis of a problem; ``nearest`` minimises the sum of its scaled violations.

    The multipliers of ``nearest`` are 1 for violated rows and nonzero for rows that conflict with them, so few rows are
    named. The variables ``relaxed`` (n,) minimise the largest violation, and the message states the violations there.
    """
    program = problem.program
    few, outside = row_violations(program, nearest.x), row_violations(program, relaxed)
    missed = dict[str, str]()
    for k in map(int, np.argsort(-few)):
        title = program.rows[k].title
        if few[k] > tolerance and title not in missed:
            is_same = np.array([row.title == title for row in program.rows])
            worst = int(np.argmax(np.where(is_same, outside, -1.0)))
            amount = f" ({_violation_text(program, relaxed, worst)})" if outside[worst] > tolerance else ""
            missed[title] = title + amount
    against = dict[str, str]()
    for active_row in active_rows(program, nearest.x, nearest.multipliers, nearest.bound_multipliers):
        if active_row.title not in missed and abs(active_row.sensitivity) > MIN_CONFLICT_MULTIPLIER:
            of_variable = f"{active_row.title} of {active_row.label} ({active_row.side} {active_row.bound:.6g})"
            against.setdefault(active_row.title, of_variable if active_row.time is None else active_row.title)
    what = f"no motion near the start satisfies {', '.join(missed.values())}"
    what += f" together with {', '.join(against.values())}" if against else ""
    conditions = _given_conditions(problem)
    what += f", given {', '.join(conditions)}" if conditions else ""
    largest = float(outside.max(initial=0.0))
    what += f"; {_nearest(largest)}"
    fix = "widen one of these bounds, or give another initial guess (start=, multistart)"
    equations = int((program.row_lower == program.row_upper).sum())
    if equations > program.n:
        fix = f"give phases more control points: there are {equations} equations for {program.n} variables"
    return MotionError(what, where=problem.name, fix=fix).but(conflict=(*missed, *against), violation=largest)


def diagnose_group(
    problem: ProblemStatement, x: Array, soft: Flags, without: Sequence[str], tolerance: float
) -> MotionError:
    """Return the diagnosis of a problem that becomes feasible if the ``soft`` rows (m,) are violated as at x (n,).

    ``without`` lists the names of constraints that were omitted.
    """
    program, named = problem.program, dict[tuple[str, str], str]()
    outside = np.where(soft, row_violations(program, x), 0.0)
    for k in map(int, np.argsort(-outside)):
        row = program.rows[k]
        if outside[k] > tolerance and len(named) < MAX_ROWS_NAMED:
            named.setdefault((row.title, row.label), f"{row.title} ({_violation_text(program, x, k)})")
    largest = float(outside.max(initial=0.0))
    rest = f"even without {', '.join(without)}" if without else "while all other constraints hold"
    what = f"no motion near the start satisfies {', '.join(named.values())}, {rest}"
    what += f"; {_nearest(largest)}"
    fix = "relax these constraints, or give another initial guess (start=, multistart)"
    conflict = tuple(dict.fromkeys(title for title, _ in named))
    return MotionError(what, where=problem.name, fix=fix).but(conflict=conflict, violation=largest)


def constant_violation(problem: ProblemStatement, tolerance: float) -> MotionError | None:
    """Return the diagnosis of a violated row that depends on no variable, such as one at a fixed end state, or None.

    A Jacobian counts as zero if it is zero at two points, one of them random.
    """
    program, x = problem.program, problem.guess()
    outside = row_violations(program, x)
    for at in (x, random_start(problem, 0)):
        outside[program.structure[0][program.jacobian(at)[1] != 0.0]] = 0.0
    if not outside.max(initial=0.0) > tolerance:
        return None
    worst = int(np.argmax(outside))
    title, conditions = program.rows[worst].title, _given_conditions(problem)
    what = f"{title} cannot be satisfied: {_violation_text(program, x, worst)} for every motion"
    what += f", given {', '.join(conditions)}"
    error = MotionError(what, where=problem.name, fix="change the bound or the given values")
    return error.but(conflict=(title, *conditions), violation=float(outside[worst]))


def _violation_text(program: Program, x: Array, k: int) -> str:
    """Return the bound that row k violates, and the amount and time of the violation, as text."""
    row, value, scale = program.rows[k], program.value(x)[1][k], float(program.scales[k])
    lower, upper = float(program.row_lower[k]), float(program.row_upper[k])
    bound = upper if value > upper else lower
    side = "exceeds its upper bound" if value > upper else "is below its lower bound"
    relation = "differs from" if lower == upper else side
    words = f"{row.label} {relation} {bound * scale:.6g} by {abs(value - bound) * scale:.4g}"
    time = time_of(program, x, row)
    return words if time is None else f"{words} at {time:.4g} s"


def _nearest(largest: float) -> str:
    """Return the largest scaled violation of the nearest motion, as text."""
    return f"the nearest motion found violates a constraint by {100 * largest:.3g} % of its scale (usually its bound)"


def _given_conditions(problem: ProblemStatement) -> list[str]:
    """Return the conditions that are neither rows nor variables: fixed end states and durations."""
    ends = [condition.title for condition in problem.conditions if isinstance(condition, EndState)]
    fixed = [(k, phase.bounds) for k, phase in enumerate(problem.stages) if phase.bounds[0] == phase.bounds[1]]
    return [*dict.fromkeys(ends), *(f"duration {T:.6g} s of phase {k}" for k, (T, _) in fixed)]
