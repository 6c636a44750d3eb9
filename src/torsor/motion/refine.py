"""Refinement: nodes and control points are added, and the problem is solved again.

Nodes are added where rows are violated on a finer grid. Equations at more nodes would make the problem infeasible, so
they also require more control points. Phases without a prescribed number of control points receive more where these
reduce the objective. Knots are inserted between existing ones, so the refined splines contain the current motion.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from torsor.base.arrays import Array
from torsor.motion.results.solution import Pass, Solution
from torsor.motion.statement import ProblemStatement
from torsor.motion.transcription.phase import Phase
from torsor.motion.transcription.splines import Spline
from torsor.motion.transcription.variables import PhaseLayout

MAX_ROUNDS = 8
# Largest numbers of nodes and control points, relative to the original problem.
MAX_NODE_FACTOR, MAX_POINT_FACTOR = 10, 4
# A round is progress if it reduces the violation below this fraction; largest number of rounds without progress.
PROGRESS_FACTOR, MAX_SLOW_ROUNDS = 0.9, 3

# Refinement of control points: estimated relative distance from the limit of the objective at which it ends, largest
# number of rounds, largest number of control points relative to the original number, and nodes between two knots.
ACCURACY, MAX_POINT_ROUNDS, MAX_GROWTH, NODES_PER_INTERVAL = 0.005, 6, 8, 10
# Change of a profile's acceleration between two knots, relative to its range, above which the interval is divided into
# two and into four. A switch between bounds takes one interval, so long intervals cost time.
HALVED_CHANGE, QUARTERED_CHANGE = 0.4, 0.7
# Smallest range of a profile's acceleration, relative to the largest one; smaller ranges are noise of nearly still
# joints.
MIN_RANGE = 1e-3
INTERVAL_SAMPLES = 5  # samples of the acceleration per interval
JERK_DEGREE = 5  # smallest spline degree for which knots follow switches of the jerk instead of the acceleration

P = TypeVar("P", bound=ProblemStatement)
SolveAgain = Callable[[ProblemStatement, Solution, int], Solution]


def missing_nodes(result: Solution, tolerance: float) -> tuple[list[Array], list[bool]]:
    """Return, for each phase, the fractions s between nodes at which scaled rows violate a tolerance.

    The first list contains the fractions s of violated inequalities: the worst violation of each row in each interval
    between two nodes, on a grid ten times finer. The second list states whether an equation is violated.
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
    """Return the solution with nodes and control points added until scaled rows satisfy a tolerance between nodes.

    ``solve_again(problem, before, iterations)`` solves a problem from an earlier solution. All rounds together take at
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


def with_more_points(result: Solution, iterations: int, solve_again: SolveAgain) -> Solution:
    """Return the solution with control points added until the objective is close to its limit.

    The limit is the objective as the number of control points grows. ``Solution.distance`` estimates the relative
    distance from it, which is at most ``ACCURACY`` unless refinement ends earlier; the status then states why. Only
    phases without a prescribed number of control points are changed (``Phase.is_refinable``). For ``solve_again`` and
    ``iterations``, see ``refined``.
    """
    passes, setup, seconds, why = [_described(result)], result.setup_seconds, result.solve_seconds, ""
    is_open, points = [phase.is_refinable for phase in result.problem.stages], _size(result.problem)[1]
    while len(passes) == 1 or result.distance > ACCURACY:
        layouts = result.program.layout.phases
        finer = [
            _with_finer_spline(layout, result.x) if is_free else layout.phase
            for layout, is_free in zip(layouts, is_open, strict=True)
        ]
        problem, size = result.problem.with_phases(*finer), _size(result.problem)[1]
        more = _size(problem)[1]
        if more == size:
            break
        left = iterations - sum(refinement.iterations for refinement in passes[1:])
        limits = {
            result.status: result.is_stopped,
            f"after {MAX_POINT_ROUNDS} rounds": len(passes) > MAX_POINT_ROUNDS,
            "at the iteration limit": left < 1,
            f"{more} control points would follow {size}": more > MAX_GROWTH * points,
        }
        why = next((text for text, is_reached in limits.items() if is_reached), "")
        if why:
            break
        better = solve_again(problem, result, left)
        setup, seconds = setup + better.setup_seconds, seconds + better.solve_seconds
        if not better.is_feasible or not better.is_solved:
            why = f"with {more} control points, {better.status}"
            break
        passes.append(_described(better))
        result = replace(better, passes=tuple(passes))
    outcome = result.outcome
    if why:
        far = f"estimated {100 * result.distance:.2g} % from" if len(passes) > 1 else "not compared with"
        status = f"{outcome.status}; {far} the optimum with more control points, because refinement ended: {why}"
        outcome = replace(outcome, status=status)
    shown = tuple(passes) if len(passes) > 1 else ()
    return replace(result, outcome=outcome, passes=shown, setup_seconds=setup, solve_seconds=seconds)


def with_points_of(problem: P, result: Solution) -> P:
    """Return a problem with the control points that refinement added to a similar problem."""
    before = result.problem.stages
    if not np.isfinite(result.distance) or len(before) != len(problem.stages):
        return problem
    phases = [
        replace(phase, knots=other.knots, nodes=other.nodes)
        if phase.is_refinable and other.knots is not None and other.degree == phase.degree
        else phase
        for phase, other in zip(problem.stages, before, strict=True)
    ]
    is_same = all(new is old for new, old in zip(phases, problem.stages, strict=True))
    return problem if is_same else problem.with_phases(*phases)


def _with_finer_spline(layout: PhaseLayout, x: Array) -> Phase:
    """Return a phase with more knots where accelerations (jerks for degree 5 and above) change most.

    Between two knots of a cubic spline, accelerations change linearly, so a switch from one bound to another takes a
    full interval. A phase whose accelerations are constant is returned unchanged.
    """
    phase = layout.phase
    spline, order = phase.spline, 2 if phase.degree < JERK_DEGREE else 3
    edges = np.concatenate([[0.0], spline.inner, [1.0]])
    # Derivatives may jump at a knot, so intervals are sampled up to shortly before their end.
    parts = np.linspace(0.0, 1.0 - 1e-9, INTERVAL_SAMPLES)
    s = edges[:-1, None] + np.diff(edges)[:, None] * parts
    values = layout.profiles(x, s.ravel(), order + 1)[order].reshape(*s.shape, -1)
    ranges = np.ptp(values, axis=(0, 1))
    if not ranges.max(initial=0.0) > 0:
        return phase
    changes = (np.ptp(values, axis=1) / np.maximum(ranges, MIN_RANGE * ranges.max())).max(axis=1)
    is_halved = changes > min(HALVED_CHANGE, changes.max() / 2)
    pieces = np.where(changes > QUARTERED_CHANGE, 4, np.where(is_halved, 2, 1))
    inner = _divided(edges, pieces)[1:-1]
    nodes = _divided(np.concatenate([[0.0], inner, [1.0]]), NODES_PER_INTERVAL)
    return replace(phase, points=None, knots=inner.tolist(), nodes=nodes)


def _divided(edges: Array, pieces: Any) -> Array:
    """Return the edges of intervals after division into equal ``pieces``."""
    counts = np.broadcast_to(pieces, len(edges) - 1)
    parts = [np.linspace(a, b, count + 1)[:-1] for (a, b), count in zip(pairwise(edges), counts, strict=True)]
    return np.append(np.concatenate(parts), edges[-1])


def _described(result: Solution) -> Pass:
    nodes, points = _size(result.problem)
    return Pass(nodes, result.max_violation_fine, result.objective, result.outcome.iterations, points)


def _size(problem: ProblemStatement) -> tuple[int, int]:
    """Return the total number of nodes over all phases, and of control points of the longest profiles."""
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
    """Return the spline with a knot added in the middle of each interval; it can represent the original one."""
    edges = np.concatenate([[0.0], spline.inner, [1.0]])
    return Spline(spline.degree, np.union1d(spline.inner, (edges[:-1] + edges[1:]) / 2))
