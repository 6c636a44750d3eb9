"""Refinement: add nodes and control points where rows are violated on a finer grid, and solve the problem again.

Inequalities need nodes where they are violated. Equations at more nodes would leave no motion, so they also need
control points. Both are inserted halfway between existing ones, so that the present motion can still be represented.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np

from torsor.base.arrays import Array
from torsor.motion.results.solution import Pass, Solution
from torsor.motion.statement import ProblemStatement
from torsor.motion.transcription.phase import Phase
from torsor.motion.transcription.splines import Spline

MAX_ROUNDS = 8
# Largest numbers of nodes and control points, relative to the original problem.
MAX_NODE_FACTOR, MAX_POINT_FACTOR = 10, 4
# Factor of the violation below which a round counts as progress, and rounds without progress.
PROGRESS_FACTOR, MAX_SLOW_ROUNDS = 0.9, 3

SolveAgain = Callable[[ProblemStatement, Solution, int], Solution]


def missing_nodes(result: Solution, tolerance: float) -> tuple[list[Array], list[bool]]:
    """Return where scaled rows are violated by more than a tolerance between nodes, for each phase.

    The first list has the s of violated inequalities: the worst of each row in each interval between two nodes, on a
    grid ten times finer. The second tells whether an equation is violated.
    """
    program, outside = result.fine
    equal = program.row_lower == program.row_upper
    places: list[set[float]] = [set() for _ in result.problem.stages]
    unequal = [False for _ in result.problem.stages]
    first = 0
    for batch in program.batches:
        rows = slice(first, first + batch.m)
        shape = len(batch.s), batch.kernels.m
        first += batch.m
        unequal[batch.phase] |= bool((outside[rows][equal[rows]] > tolerance).any())
        violations = np.where(equal[rows], 0.0, outside[rows]).reshape(shape)
        nodes = result.problem.stages[batch.phase].nodes
        starts = np.searchsorted(batch.s, nodes)
        for begin, end in pairwise(np.unique([0, *starts, len(batch.s)])):
            within = violations[begin:end]
            for row in np.flatnonzero(within.max(axis=0, initial=0.0) > tolerance):
                places[batch.phase].add(float(batch.s[begin + int(np.argmax(within[:, row]))]))
    return [np.array(sorted(s)) for s in places], unequal


def refined(result: Solution, tolerance: float, iterations: int, solve_again: SolveAgain) -> Solution:
    """Return the solution with nodes and control points added until all scaled rows hold to a tolerance between nodes.

    ``solve_again(problem, before, iterations)`` solves a problem from an earlier solution; all rounds together take at
    most ``iterations``. ``passes`` of the solution describe the rounds. If rows are still violated at the end, the
    status states this and why refinement ended.
    """
    passes, setup, seconds = [_described(result)], result.setup_seconds, result.solve_seconds
    nodes, points = _size(result.problem)
    why, slow, least = "", 0, result.max_violation_fine
    while True:
        missing, unequal = missing_nodes(result, tolerance)
        if not any(map(len, missing)) and not any(unequal):
            break
        left = iterations - sum(refinement.iterations for refinement in passes[1:])
        finer = [_finer(*arguments) for arguments in zip(result.problem.stages, missing, unequal, strict=True)]
        problem = result.problem.with_phases(*finer)
        size = _size(problem)
        is_large = size[0] > MAX_NODE_FACTOR * nodes or size[1] > MAX_POINT_FACTOR * points
        limits = {
            result.status: result.is_stopped,
            f"after {MAX_ROUNDS} rounds": len(passes) > MAX_ROUNDS,
            "at the iteration limit": left < 1,
            f"no progress in {MAX_SLOW_ROUNDS} rounds": slow >= MAX_SLOW_ROUNDS,
            f"{size[0]} nodes and {size[1]} control points would follow {nodes} and {points}": is_large,
        }
        why = next((text for text, is_reached in limits.items() if is_reached), "")
        if why:
            break
        better = solve_again(problem, result, left)
        setup, seconds = setup + better.setup_seconds, seconds + better.solve_seconds
        passes.append(_described(better))
        if not better.is_feasible:
            why = better.status
            break
        result = better
        slow = 0 if result.max_violation_fine < PROGRESS_FACTOR * least else slow + 1
        least = min(least, result.max_violation_fine)
    outcome = result.outcome
    if why:
        held = f"rows hold to {result.max_violation_fine:.2g} on a grid ten times finer"
        grown = f"from {passes[0].nodes} to {_size(result.problem)[0]} nodes in {len(passes) - 1} rounds"
        outcome = replace(outcome, status=f"{outcome.status}; {held}, where refinement ended ({grown}): {why}")
    return replace(result, outcome=outcome, passes=tuple(passes), setup_seconds=setup, solve_seconds=seconds)


def _described(result: Solution) -> Pass:
    nodes = _size(result.problem)[0]
    return Pass(nodes, result.max_violation_fine, result.objective, result.outcome.iterations)


def _size(problem: ProblemStatement) -> tuple[int, int]:
    """Return the number of nodes, and of control points of the longest profiles, over all phases."""
    return sum(len(phase.nodes) for phase in problem.stages), sum(phase.spline.count for phase in problem.stages)


def _finer(phase: Phase, missing: Array, with_points: bool) -> Phase:
    """Return a phase with more nodes and, for equations, twice as many intervals between knots and nodes."""
    nodes = np.union1d(phase.nodes, missing)
    if not with_points:
        return replace(phase, nodes=nodes)
    spline = _halved(phase.spline)
    own_splines = None if phase.own is None else {name: _halved(spline) for name, spline in phase.own.items()}
    nodes = np.union1d(nodes, (phase.nodes[:-1] + phase.nodes[1:]) / 2)
    return replace(phase, points=spline.count, knots=spline.inner.tolist(), own=own_splines, nodes=nodes)


def _halved(spline: Spline) -> Spline:
    """Return the spline with an additional knot in the middle of each interval; it contains the given one."""
    edges = np.concatenate([[0.0], spline.inner, [1.0]])
    return Spline(spline.degree, np.union1d(spline.inner, (edges[:-1] + edges[1:]) / 2))
