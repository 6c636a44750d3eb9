"""A problem without a motion, in words: which constraints conflict, and by how much at least."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from torsor.errors import describe
from torsor.motion.results.constraints import active_rows, time_of
from torsor.motion.results.violations import violations
from torsor.motion.terms.ends import _State
from torsor.motion.transcription.program import Program
from torsor.optimisation.outcome import Outcome

if TYPE_CHECKING:
    from torsor.motion.problem import MotionProblem
    from torsor.motion.results.result import MotionResult

__all__ = ["MotionError", "check_given", "conflict", "short_of"]

Array = NDArray[np.float64]

NAMED = 3  # rows that are told of, where many cannot hold
FELT = 1e-3  # multiplier (1: the row is violated) from which a row takes part in a conflict


class MotionError(RuntimeError):
    """A search without a motion that satisfies the constraints; ``result`` is the one whose largest violation is least.

    ``conflict`` has the names of the constraints that contradict each other, ``violation`` is by how much all bounds
    would have to give way at least, in parts of their sizes.

    Example:
        >>> import torsor
        >>> from torsor import motion
        >>> ends = [motion.Start(q=[0.0], v=0.0), motion.End(q=[1.0], v=0.0)]
        >>> limits = motion.Velocities(upper=0.5, name="slow")
        >>> phase = motion.Phase(1.0, points=6)
        >>> problem = motion.MotionProblem(torsor.library.planar_chain(1), phase, motion.Effort(), [*ends, limits])
        >>> try:
        ...     problem.solve()
        ... except MotionError as error:
        ...     print(error.conflict)
        ('slow',)
    """

    result: "MotionResult | None" = None
    conflict: tuple[str, ...] = ()
    violation: float = np.nan


def conflict(problem: "MotionProblem", nearest: Outcome, wide: Array, tolerance: float) -> MotionError:
    """Return the error of a problem whose sum of violations, in parts of the rows' scales, is least at ``nearest``.

    Its multipliers are those of the sum: rows that are violated have 1, and those that stand against them another
    number that is not zero; so few rows are named. At the variables ``wide`` (n,) the largest violation is least: they
    tell by how much.
    """
    program = problem.program
    few, outside = violations(program, nearest.x), violations(program, wide)
    missed = dict[str, str]()
    for k in map(int, np.argsort(-few)):
        title = program.rows[k].title
        if few[k] > tolerance and title not in missed:
            own = np.array([row.title == title for row in program.rows])
            worst = int(np.argmax(np.where(own, outside, -1.0)))
            amount = f" ({_missed(program, wide, worst)})" if outside[worst] > tolerance else ""
            missed[title] = title + amount
    against = dict[str, str]()
    for each in active_rows(program, nearest.x, nearest.multipliers, nearest.bound_multipliers):
        if each.title not in missed and abs(each.sensitivity) > FELT:
            of_variable = f"{each.title} of {each.label} ({each.side} {each.bound:.6g})"
            against.setdefault(each.title, of_variable if each.time is None else each.title)
    what = f"no motion near the start satisfies {', '.join(missed.values())}"
    if against:
        what += f" together with {', '.join(against.values())}"
    given = _given(problem)
    if given:
        what += f" (given: {', '.join(given)})"
    largest = float(outside.max(initial=0.0))
    what += f"; least violation reachable: all bounds would have to give way by {largest:.3g} of their sizes"
    fix = "widen one of these, or start elsewhere (start=, multistart)"
    equations = int((program.row_lower == program.row_upper).sum())
    if equations > program.n:
        fix = f"give phases more control points: there are {equations} equations for {program.n} variables"
    error = MotionError(describe(what, where=problem.name, fix=fix))
    error.conflict, error.violation = (*missed, *against), largest
    return error


def short_of(
    problem: "MotionProblem", x: Array, soft: NDArray[np.bool_], without: Sequence[str], tolerance: float
) -> MotionError:
    """Return the error of a problem that has a motion once ``soft`` rows (m,) give way, as little as at variables x.

    ``without`` are names of constraints that are left out.
    """
    program, said = problem.program, dict[tuple[str, str], str]()
    outside = np.where(soft, violations(program, x), 0.0)
    for k in map(int, np.argsort(-outside)):
        row = program.rows[k]
        if outside[k] > tolerance and len(said) < NAMED:
            said.setdefault((row.title, row.label), f"{row.title} ({_missed(program, x, k)})")
    largest = float(outside.max(initial=0.0))
    rest = f"even without {', '.join(without)}" if without else "all else being kept"
    what = f"no motion near the start keeps {', '.join(said.values())}, {rest}"
    what += f"; in the nearest motion that was found these give way by {largest:.3g} of their sizes"
    error = MotionError(describe(what, where=problem.name, fix="ask for less, or start elsewhere (start=, multistart)"))
    error.conflict, error.violation = tuple(dict.fromkeys(title for title, _ in said)), largest
    return error


def check_given(problem: "MotionProblem", tolerance: float) -> None:
    """Raise the error of rows that do not hold and that no variable moves, as positions at ends that are given."""
    program, x = problem.program, problem.guess()
    outside = violations(program, x)
    for at in (x, problem.random_start(0)):  # a jacobian that is zero twice is zero
        outside[program.structure[0][program.jacobian(at)[1] != 0.0]] = 0.0
    if not outside.max(initial=0.0) > tolerance:
        return
    worst = int(np.argmax(outside))
    title, given = program.rows[worst].title, _given(problem)
    what = f"{title} cannot hold: {_missed(program, x, worst)}, whatever the motion is (given: {', '.join(given)})"
    error = MotionError(describe(what, where=problem.name, fix="change the bound, or what is given"))
    error.conflict, error.violation = (title, *given), float(outside[worst])
    raise error


def _missed(program: Program, x: Array, k: int) -> str:
    """Return what row k misses, by how much, and when."""
    row, value, scale = program.rows[k], program.value(x)[1][k], float(program.scales[k])
    bound = float(program.row_upper[k] if value > program.row_upper[k] else program.row_lower[k])
    words = f"{row.label} misses {bound * scale:.6g} by {abs(value - bound) * scale:.4g}"
    time = time_of(program, x, row)
    return words if time is None else f"{words} at {time:.4g} s"


def _given(problem: "MotionProblem") -> list[str]:
    """Return what is no row or variable since it is known beforehand: ends of profiles, and durations."""
    ends = [each.title for each in problem.conditions if isinstance(each, _State)]
    fixed = [(k, phase.bounds) for k, phase in enumerate(problem.stages) if phase.bounds[0] == phase.bounds[1]]
    return [*dict.fromkeys(ends), *(f"{T:.6g} s of phase {k}" for k, (T, _) in fixed)]
