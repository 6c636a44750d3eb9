"""A problem without a motion, in words: which constraints conflict, and by how much at least."""

from typing import TYPE_CHECKING

import numpy as np

from torsor.errors import describe
from torsor.motion.constraints import active_rows
from torsor.motion.finer import violations
from torsor.motion.program import Program
from torsor.motion.solvers.outcome import Outcome

if TYPE_CHECKING:
    from torsor.motion.result import MotionResult

__all__ = ["MotionError", "conflict"]

FELT = 1e-3  # multiplier (1: the row is violated) from which a row takes part in a conflict


class MotionError(RuntimeError):
    """A search without a motion that satisfies the constraints; ``result`` is the nearest that was reached.

    ``conflict`` has the names of the constraints that contradict each other, ``violation`` the largest scaled one.
    """

    result: "MotionResult | None" = None
    conflict: tuple[str, ...] = ()
    violation: float = np.nan


def conflict(name: str, program: Program, nearest: Outcome, tolerance: float) -> MotionError:
    """Return the error of a program whose sum of violations, in parts of the rows' scales, is least at ``nearest``.

    Its multipliers are those of the sum: rows that are violated have 1, and those that stand against them another
    number that is not zero.
    """
    x, outside = nearest.x, violations(program, nearest.x)
    missed = dict[str, str]()
    for k in np.argsort(-outside):
        row = program.rows[k]
        if outside[k] <= tolerance or row.title in missed:
            continue
        scale = program.scales[k]
        above = program.value(x)[1][k] > program.row_upper[k]
        bound = float((program.row_upper if above else program.row_lower)[k] * scale)
        begun = sum(each.seconds(x) for each in program.layout.stretches[: row.phase or 0])
        when = ""
        if row.phase is not None and row.s is not None:
            when = f" at {begun + row.s * program.layout.stretches[row.phase].seconds(x):.4g} s"
        missed[row.title] = f"{row.title} ({row.label} misses {bound:.6g} by {outside[k] * scale:.4g}{when})"
    felt = active_rows(program, x, nearest.multipliers, nearest.bound_multipliers)
    against = dict[str, str]()
    for each in felt:
        size = abs(each.sensitivity)
        if each.title not in missed and np.isfinite(size) and size > FELT:
            words = f"{each.title} of {each.label}" if each.title in ("Duration", "Number") else each.title
            against.setdefault(each.title, f"{words} ({each.side} {each.bound:.6g})" if words != each.title else words)
    what = f"no motion near the start satisfies {', '.join(missed.values())}"
    if against:
        what += f" together with {', '.join(against.values())}"
    largest = float(outside.max(initial=0.0))
    what += f"; least violation reachable: {largest:.3g} of the bounds' size"
    error = MotionError(describe(what, where=name, fix="widen one of these, or start elsewhere (start=, multistart)"))
    error.conflict, error.violation = (*missed, *against), largest
    return error
