"""Proofs that a motion satisfies its bounds at all times, including between the nodes.

The rows of all constraints are enclosed over time intervals (``transcription/ranges.py``), initially at most
``FIRST_WIDTH`` of the phase. If a bound is neither proven nor definitely violated, the interval is halved. This ends
when all bounds are proven, the interval is shorter than ``MIN_WIDTH``, or more than ``MAX_HALVED`` intervals would be
halved. The proof applies to the exact curve of the control points and to the model of the compiled functions. The
enclosures include rounding.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from torsor.base.arrays import Array, Flags
from torsor.base.checks import number
from torsor.base.errors import ModelError, MotionError
from torsor.base.summary import Summary
from torsor.motion.results.solution import Solution
from torsor.motion.statement import ProblemStatement
from torsor.motion.terms.term import Constraint
from torsor.motion.transcription.ranges import Pieces, RowRanges

# Fractions of a phase: the longest initial interval, and the length below which intervals are not halved.
FIRST_WIDTH, MIN_WIDTH = 1 / 64, 1e-6
MAX_HALVED = 2**15  # largest number of intervals of a phase that are halved simultaneously, which limits memory
# Relative increase of the duration: the first trial, which doubles up to the maximum (the last trial is 0.52), and the
# accuracy of the search.
FIRST_STRETCH, MAX_STRETCH, STRETCH_ACCURACY = 1e-6, 0.6, 0.02

S = TypeVar("S", bound=Solution)


@dataclass(frozen=True)
class CertifiedBound:
    """The result for one row of a constraint at all times.

    ``excess`` is a proven upper bound on the violation, in units of the row; it is negative if the row keeps a margin.
    ``intervals`` are the time intervals (s) in which the bound is not shown, and ``is_violated`` states whether it is
    definitely violated in one of them.
    """

    title: str
    label: str
    excess: float
    is_violated: bool
    intervals: tuple[tuple[float, float], ...]

    @property
    def is_shown(self) -> bool:
        """Whether the bound holds at all times."""
        return not self.intervals

    @property
    def status(self) -> str:
        """The status in the table: "shown", "violated" or "not shown"."""
        return "shown" if self.is_shown else "violated" if self.is_violated else "not shown"


@dataclass(frozen=True)
class Certificate:
    """The result of ``MotionResult.certify``: one entry per inequality row, and {title: reason} for unchecked terms."""

    bounds: tuple[CertifiedBound, ...]
    unchecked: Mapping[str, str]

    @property
    def is_proven(self) -> bool:
        """Whether every constraint is checked and every bound is shown."""
        return not self.unchecked and all(bound.is_shown for bound in self.bounds)

    def __str__(self) -> str:
        rows = [
            (bound.title, bound.label, bound.status, f"{bound.excess:.3g}", _text(bound.intervals))
            for bound in sorted(self.bounds, key=lambda bound: bound.is_shown)
        ]
        shown = sum(bound.is_shown for bound in self.bounds)
        facts = {"bounds shown at all times": f"{shown} of {len(self.bounds)}"}
        facts |= {f"{title}, not checked": reason for title, reason in self.unchecked.items()}
        title = "proven" if self.is_proven else "not proven"
        return Summary(title, facts, ("constraint", "row", "bound", "excess at most", "time (s)"), rows).text()


def _text(intervals: tuple[tuple[float, float], ...]) -> str:
    more = f" and {len(intervals) - 1} more" if len(intervals) > 1 else ""
    return f"{intervals[0][0]:.6g} to {intervals[0][1]:.6g}{more}" if intervals else ""


def certify(problem: ProblemStatement, x: Array, tolerance: float = 0.0) -> Certificate:
    """Return the certificate of a problem's bounds at all times of the motion with the variables x (n,).

    Rows may exceed their bounds by ``tolerance`` times their scale, which is half the distance between their bounds or
    the magnitude of the only bound.
    """
    number(tolerance, problem.name, "tolerance", least=0.0)
    layout = problem.program.layout
    constraints = [term for term in problem.terms if isinstance(term, Constraint)]
    key = ("ranges",)
    if key not in problem.samplers:
        problem.samplers[key] = RowRanges(problem.node, constraints, problem.problem_numbers)
    ranges: RowRanges = problem.samplers[key]
    shared = x[list(layout.numbers.values())]
    lower, upper = (
        np.concatenate([np.zeros(0), *(getattr(each.rows, side) for each in ranges.checked)])
        for side in ("lower", "upper")
    )
    sizes = np.where(np.isfinite(upper - lower), (upper - lower) / 2, np.fmin(np.abs(lower), np.abs(upper)))
    allowed = tolerance * np.where(sizes > 0, sizes, 1.0)
    excess, violated = np.full(ranges.m, -np.inf), np.zeros(ranges.m, dtype=bool)
    missing: list[list[tuple[float, float]]] = [[] for _ in range(ranges.m)]
    begun = 0.0
    for index, phase_layout in enumerate(layout.phases if ranges.m else ()):
        pieces, T = Pieces(phase_layout, x), phase_layout.seconds(x)
        first, last, is_active = _intervals(ranges, problem, index, pieces)
        while len(first):
            below, above, remainders = ranges(pieces, first, last, T, shared)
            over = np.maximum(above - upper, lower - below)
            is_open = is_active & ~(over <= allowed)  # also for NaN
            over = np.where(is_active, np.where(np.isnan(over), np.inf, over), -np.inf)
            is_broken = is_open & (over > allowed + 3 * remainders)  # twice the remainder, and rounding
            is_halved = (is_open & ~is_broken).any(axis=1) & (last - first > MIN_WIDTH)
            is_halved &= is_halved.sum() <= MAX_HALVED
            is_left = is_halved[:, None] & is_open
            excess = np.maximum(excess, np.where(is_left, -np.inf, over).max(axis=0))
            violated |= is_broken.any(axis=0)
            is_missing = is_open & ~is_left
            for row in np.flatnonzero(is_missing.any(axis=0)).tolist():
                edges = (begun + phase_layout.times(x, s[is_missing[:, row]]) for s in (first, last))
                missing[row] += zip(*(each.tolist() for each in edges), strict=True)
            middle = (first + (last - first) / 2)[is_halved]
            first, last = np.concatenate([first[is_halved], middle]), np.concatenate([middle, last[is_halved]])
            is_active = np.tile((is_active & is_open)[is_halved], (2, 1))
        begun += T
    labels = [(each.term.title, label) for each in ranges.checked for label in each.rows.labels]
    bounds = zip(labels, excess.tolist(), violated.tolist(), map(_merged, missing), strict=True)
    return Certificate(tuple(CertifiedBound(*names, *rest) for names, *rest in bounds), dict(ranges.unchecked))


def _intervals(ranges: RowRanges, problem: ProblemStatement, index: int, pieces: Pieces) -> tuple[Array, Array, Flags]:
    """Return the initial intervals of s (K,) of a phase, and flags (K, m) of the rows that are bounded there.

    Terms that apply at specified times have intervals of length 0.
    """
    phase = problem.stages[index]
    held = [each for each in ranges.checked if each.term.holds_in(index, phase)]
    over_time = [each for each in held if each.term.at is None]
    ends = [end for each in over_time for end in each.term.during]
    edges = np.unique(np.concatenate([pieces.starts, [1.0], ends]))
    counts = np.ceil(np.diff(edges) / FIRST_WIDTH).astype(int)
    parts = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    first = np.repeat(edges[:-1], counts) + parts * np.repeat(np.diff(edges) / counts, counts)
    last = np.append(first[1:], edges[-1])
    moments = [np.unique(np.asarray(each.term.at, dtype=float)) for each in held if each.term.at is not None]
    points = np.unique(np.concatenate([np.zeros(0), *moments]))
    is_active = np.zeros((len(first) + len(points), ranges.m), dtype=bool)
    for each in over_time:
        inside = (first >= each.term.during[0]) & (last <= each.term.during[1])
        is_active[: len(first), each.columns] = inside[:, None]
    for each, at in zip((each for each in held if each.term.at is not None), moments, strict=True):
        is_active[len(first) :, each.columns] = np.isin(points, at)[:, None]
    is_used = is_active.any(axis=1)
    first, last = np.concatenate([first, points]), np.concatenate([last, points])
    return first[is_used], last[is_used], is_active[is_used]


def _merged(intervals: list[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Return the intervals in order, with touching ones merged."""
    result: list[tuple[float, float]] = []
    for begin, end in sorted(intervals):
        if result and begin <= result[-1][1] * (1 + 1e-12):
            result[-1] = result[-1][0], max(end, result[-1][1])
        else:
            result.append((begin, end))
    return tuple(result)


def certified(solution: S, tolerance: float = 0.0) -> S:
    """Return the motion with all durations increased by a common factor for which its bounds are shown.

    The relative increase is the smallest one to within 2 %. ModelError is raised if a constraint cannot be checked or a
    duration is fixed, and MotionError if no factor up to about 1.5 shows all bounds or the constraints at the nodes do
    not hold.
    """
    problem, where = solution.problem, solution.problem.name
    first = certify(problem, solution.x, tolerance)
    if first.is_proven:
        return solution
    for title, reason in first.unchecked.items():
        raise ModelError(f"{title} cannot be checked: {reason}", where=where, fix="read the other bounds in certify()")
    durations = [phase.duration for phase in solution.program.layout.phases]
    if min(durations) < 0:
        fix = "give each phase bounds (lower, upper) of its duration"
        raise ModelError("a motion of a given duration cannot be slower", where=where, fix=fix)

    def slower(stretch: float) -> Array:
        x = solution.x.copy()
        x[durations] *= 1 + stretch
        return x

    below, stretch, last = 0.0, FIRST_STRETCH, first
    while not (last := certify(problem, slower(stretch), tolerance)).is_proven:
        below, stretch = stretch, 2 * stretch
        if stretch > MAX_STRETCH:
            names = ", ".join(f"{bound.title} of {bound.label}" for bound in last.bounds if not bound.is_shown)
            fix = "solve with bounds that are tighter by the excess in certify()"
            raise MotionError(f"{names} cannot be shown at any speed", where=where, fix=fix)
    while stretch - below > STRETCH_ACCURACY * stretch:
        middle = (below + stretch) / 2
        is_proven = certify(problem, slower(middle), tolerance).is_proven
        below, stretch = (below, middle) if is_proven else (middle, stretch)
    x, percent = slower(stretch), f"{100 * stretch:.2g} % slower"
    status = f"{solution.status}; {percent}, so that all bounds are proven at all times"
    result = replace(solution, outcome=replace(solution.outcome, x=x, status=status))
    if not result.is_feasible:
        worst = max(result.constraints.values(), key=lambda group: group.scaled)
        fix = "solve with bounds that are tighter by the excess in certify()"
        raise MotionError(f"{worst.title} does not hold for a motion that is {percent}", where=where, fix=fix)
    return replace(result, outcome=replace(result.outcome, objective=result.objective))
