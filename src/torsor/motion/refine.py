"""Refinement: nodes are added where rows are violated on a finer grid, and the problem is solved again."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np

from torsor.arrays import Array
from torsor.motion.results.constraints import on_finer_grid
from torsor.motion.results.solution import Pass, Solution
from torsor.motion.statement import ProblemStatement
from torsor.optimisation import row_violations

MOST = 12  # rounds


def missing_nodes(result: Solution, tolerance: float) -> list[Array]:
    """Return for each phase the s at which scaled inequalities are violated by more than a tolerance between nodes.

    It is the worst s of each row in each interval between two nodes of the grid ten times finer. Equations are left
    out: more equations than control points leave no motion.
    """
    program, required = on_finer_grid(result.program)
    outside = row_violations(program, result.x) * (required & (program.row_lower < program.row_upper))
    found: list[set[float]] = [set() for _ in result.problem.stages]
    first = 0
    for batch in program.batches:
        own = outside[first : first + batch.m].reshape(len(batch.s), batch.kernels.m)
        first += batch.m
        nodes = result.problem.stages[batch.phase].nodes
        starts = np.searchsorted(batch.s, nodes)
        for begin, end in pairwise(np.unique([0, *starts, len(batch.s)])):
            within = own[begin:end]
            for row in np.flatnonzero(within.max(axis=0, initial=0.0) > tolerance):
                found[batch.phase].add(float(batch.s[begin + int(np.argmax(within[:, row]))]))
    return [np.array(sorted(each)) for each in found]


def refined(
    result: Solution, tolerance: float, solve_again: Callable[[ProblemStatement, Solution], Solution]
) -> Solution:
    """Return the solution with nodes added until scaled inequalities hold to a tolerance on a grid ten times finer.

    ``solve_again(problem, before)`` solves a problem from an earlier solution. ``passes`` of the solution describe the
    rounds. If rows are still violated at the end, the status says so, and why refinement ended.
    """

    def described(each: Solution) -> Pass:
        nodes = sum(len(phase.nodes) for phase in each.problem.stages)
        return Pass(nodes, each.max_violation_fine, each.objective, each.outcome.iterations)

    passes, setup, seconds = [described(result)], result.setup_seconds, result.solve_seconds
    why = ""
    while sum(map(len, missing := missing_nodes(result, tolerance))):
        if result.is_stopped or len(passes) > MOST:
            why = result.status if result.is_stopped else f"after {MOST} rounds"
            break
        phases = [
            replace(phase, nodes=np.union1d(phase.nodes, more))
            for phase, more in zip(result.problem.stages, missing, strict=True)
        ]
        better = solve_again(result.problem.with_phases(*phases), result)
        setup, seconds = setup + better.setup_seconds, seconds + better.solve_seconds
        passes.append(described(better))
        if not better.is_feasible:
            why = better.status
            break
        result = better
    outcome = result.outcome
    if why:
        held = f"bounds hold to {result.max_violation_fine:.2g} on a grid ten times finer"
        outcome = replace(outcome, status=f"{outcome.status}; {held}, where refinement ended: {why}")
    return replace(result, outcome=outcome, passes=tuple(passes), setup_seconds=setup, solve_seconds=seconds)
