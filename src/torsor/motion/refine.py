"""Bounds that hold everywhere: nodes are added where rows are violated between them, and it is solved again."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from torsor.motion.results.violations import finer, violations

if TYPE_CHECKING:
    from torsor.motion.problem import MotionProblem
    from torsor.motion.results.result import MotionResult

__all__ = ["missing_nodes", "refined"]

Array = NDArray[np.float64]

MOST = 12  # rounds
CLOSER = 10


def missing_nodes(result: "MotionResult", tolerance: float) -> list[Array]:
    """Return for each phase the shares at which rows between nodes are outside their bounds by more than that.

    Of each stretch between two nodes it is the worst place of each row. Equations are left out: at more moments than
    there are control points they would leave no motion.
    """
    program, asked = finer(result.program, CLOSER)
    outside = violations(program, result.x) * (asked & (program.row_lower < program.row_upper))
    found: list[set[float]] = [set() for _ in result.problem.stages]
    first = 0
    for batch in program.batches:
        own = outside[first : first + batch.m].reshape(len(batch.s), batch.traced.m)
        first += batch.m
        nodes = result.problem.stages[batch.phase].nodes
        starts = np.searchsorted(batch.s, nodes)
        for begin, end in pairwise(np.unique([0, *starts, len(batch.s)])):
            within = own[begin:end]
            for row in np.flatnonzero(within.max(axis=0, initial=0.0) > tolerance):
                found[batch.phase].add(float(batch.s[begin + int(np.argmax(within[:, row]))]))
    return [np.array(sorted(each)) for each in found]


def refined(
    result: "MotionResult", tolerance: float, search: Callable[["MotionProblem", "MotionResult"], "MotionResult"]
) -> "MotionResult":
    """Return the result of the problem with nodes added until all rows hold to a tolerance, in parts of their scales.

    ``search(problem, before)`` solves a problem from an earlier result. ``passes`` of the result tell of each round. If
    rows still do not hold at the end, the status says so, and why it is the end.
    """
    from torsor.motion.results.result import Pass

    def told(each: "MotionResult") -> Pass:
        nodes = sum(len(phase.nodes) for phase in each.problem.stages)
        return Pass(nodes, each.max_violation_fine, each.objective, each.outcome.iterations)

    passes, setup, seconds = [told(result)], result.setup_seconds, result.solve_seconds
    why = ""
    while sum(map(len, missing := missing_nodes(result, tolerance))):
        if result.is_stopped or len(passes) > MOST:
            why = result.status if result.is_stopped else f"after {MOST} rounds"
            break
        phases = [
            replace(phase, nodes=np.union1d(phase.nodes, more))
            for phase, more in zip(result.problem.stages, missing, strict=True)
        ]
        better = search(result.problem.with_phases(*phases), result)
        setup, seconds = setup + better.setup_seconds, seconds + better.solve_seconds
        if not better.is_feasible:
            passes.append(told(better))
            why = better.status
            break
        result = better
        passes.append(told(result))
    outcome = result.outcome
    if why:
        short = f"bounds hold to {result.max_violation_fine:.2g} between nodes, where refinement ended: {why}"
        outcome = replace(outcome, status=f"{outcome.status}; {short}")
    return replace(result, outcome=outcome, passes=tuple(passes), setup_seconds=setup, solve_seconds=seconds)
