"""Initial guesses of the variables: from profiles, from an earlier solution, or random."""

from typing import Any

import numpy as np

from torsor.base.arrays import Array, real_numbers
from torsor.base.checks import number, whole_number
from torsor.base.errors import ModelError
from torsor.motion.results.solution import Solution
from torsor.motion.statement import ProblemStatement
from torsor.motion.transcription.variables import Layout, PhaseLayout

SAMPLES_PER_POINT = 8  # samples per control point in a profile fit
DURATION_SPREAD = 0.3  # standard deviation of the logarithm of a random duration


def read_start(problem: ProblemStatement, start: Any) -> Array:
    """Return the initial guess (n,).

    ``start`` is None (straight lines), a ``MotionResult``, variables (n,), or profiles (K, N) at equal time steps from
    the start to the end of the full motion. Given values are clipped to the bounds of the variables. ModelError is
    raised for another shape and for values that are not finite.
    """
    program, names = problem.program, problem.model.names
    if start is None:
        return problem.guess()
    if isinstance(start, Solution):
        x = from_result(problem, start)
    else:
        numbers = real_numbers(start)
        values = np.zeros(0) if numbers is None else numbers.astype(float)
        is_x, is_profiles = values.shape == (program.n,), values.ndim == 2 and values.shape[1:] == (len(names),)
        if not (is_x or (is_profiles and len(values) > 1)) or not np.isfinite(values).all():
            allowed = f"a MotionResult, profiles (K, {len(names)}) of {', '.join(names)}, or variables ({program.n},)"
            message = f"start has shape {values.shape}" if values.size else f"start is a {type(start).__name__}"
            if values.size and not np.isfinite(values).all():
                message = "start has values that are not finite"
            raise ModelError(message, where=problem.name, allowed=allowed)
        x = values if is_x else from_profiles(problem, values)
    return np.clip(x, program.lower, program.upper)


def moved(problem: ProblemStatement, neighbour: Solution, x: Array) -> Array:
    """Return variables x (n,) of a neighbouring solution, shifted by the difference of the initial guesses."""
    program = problem.program
    return np.clip(x + problem.guess() - neighbour.problem.guess(), program.lower, program.upper)


def from_profiles(problem: ProblemStatement, profiles: Array) -> Array:
    """Return variables whose profiles fit samples (K, N) at equal time steps over the full motion."""
    x, layout = problem.guess(), problem.program.layout
    seconds = np.array([phase_layout.seconds(x) for phase_layout in layout.phases])
    begun, at = np.cumsum(seconds) - seconds, np.linspace(0.0, seconds.sum(), len(profiles))
    for phase_layout, start, T in zip(layout.phases, begun, seconds, strict=True):
        s = _fit_points(phase_layout)
        values = np.stack([np.interp(start + s * T, at, profile) for profile in profiles.T], axis=1)
        fit(phase_layout, x, s, values)
    return x


def from_result(problem: ProblemStatement, result: Solution) -> Array:
    """Return variables with the motion of a solution; profiles missing in the solution remain straight lines.

    If both have the same number of phases, each phase takes the profiles and duration of the phase with the same index.
    Otherwise the motion is split into phases of equal duration. A spline that includes all knots of the earlier one
    reproduces its profile exactly.
    """
    if is_same_program(problem, result):
        return np.array(result.x)
    x, layout, before = problem.guess(), problem.program.layout, result.problem.program.layout
    names, old = problem.model.names, result.problem.model.names
    common = [name for name in names if name in old]
    if not common:
        message = f"the result has no profile of {', '.join(names)}"
        raise ModelError(message, where=problem.name, allowed="a result with profiles of the same names")
    seconds = np.array([phase.seconds(result.x) for phase in before.phases])
    paired = len(layout.phases) == len(before.phases)
    for index, phase_layout in enumerate(layout.phases):
        T = seconds[index] if paired else seconds.sum() / len(layout.phases)
        if phase_layout.duration >= 0:
            x[phase_layout.duration] = np.clip(T, *phase_layout.phase.bounds)
        s = _fit_points(phase_layout)
        if paired:
            values = before.phases[index].profiles(result.x, s, 1)[0]
        else:
            values = _profiles_at(before, seconds, result.x, (index + s) * T)
        samples = np.full((len(s), len(names)), np.nan)
        for name in common:
            samples[:, names.index(name)] = values[:, old.index(name)]
        fit(phase_layout, x, s, samples)
    for name, column in layout.numbers.items():
        if name in result.numbers:  # including those with fixed values
            x[column] = result.numbers[name]
    return x


def is_same_program(problem: ProblemStatement, result: Solution) -> bool:
    """Return whether the variables of a solution have the same meaning in a problem.

    This is the case if profiles, splines and known points are equal.
    """
    a, b = problem.program.layout, result.problem.program.layout
    if a is b:
        return True
    same = problem.model.names == result.problem.model.names and dict(a.numbers) == dict(b.numbers)
    return same and a.size == b.size and list(map(_meaning, a.phases)) == list(map(_meaning, b.phases))


def _meaning(phase_layout: PhaseLayout) -> Any:
    """Return a comparable description of the variables of a phase: columns, duration column and splines."""
    splines = [(spline.degree, spline.inner.tolist()) for spline in phase_layout.splines]
    return phase_layout.columns.tolist(), phase_layout.duration, splines


def _fit_points(phase_layout: PhaseLayout) -> Array:
    return np.linspace(0.0, 1.0, SAMPLES_PER_POINT * max(spline.count for spline in phase_layout.splines) + 1)


def _profiles_at(layout: Layout, seconds: Array, x: Array, times: Array) -> Array:
    """Return the profiles (K, N) at times from the start of the motion."""
    ends = np.cumsum(seconds)
    phase = np.searchsorted(ends[:-1], times, side="right")
    result = np.empty((len(times), len(layout.phases[0].splines)))
    for index, phase_layout in enumerate(layout.phases):
        is_inside = phase == index
        s = np.clip((times[is_inside] - ends[index] + seconds[index]) / seconds[index], 0.0, 1.0)
        result[is_inside] = phase_layout.profiles(x, s, 1)[0]
    return result


def fit(phase_layout: PhaseLayout, x: Array, s: Array, values: Array) -> None:
    """Fit the control points of a phase in ``x`` to values (K, N) at s (K,); profiles with NaN are unchanged."""
    for profile, spline in enumerate(phase_layout.splines):
        if np.isnan(values[:, profile]).any():
            continue
        columns, known = phase_layout.columns[profile, : spline.count], phase_layout.known[profile, : spline.count]
        B, free = spline.matrix(s), columns >= 0
        left = values[:, profile] - B[:, ~free] @ known[~free]
        x[columns[free]] = np.linalg.lstsq(B[:, free], left, rcond=None)[0]


def random_start(problem: ProblemStatement, seed: int, spread: float = 1.0) -> Array:
    """Return random variables (n,) around the initial guess; the same seed yields the same variables.

    Each free control point is shifted by a normally distributed number. Its standard deviation is ``spread`` times the
    range of its profile, or times the mean range of all profiles if that is larger. Durations are multiplied by a
    random factor, and shared numbers are shifted within their bounds.
    """
    whole_number(seed, problem.name, "seed", least=0)
    number(spread, problem.name, "spread", least=0.0)
    rng, x, program = np.random.default_rng(seed), problem.guess(), problem.program
    layout = program.layout
    every = np.array([phase_layout.profiles(x, np.array([0.0, 1.0]), 1)[0] for phase_layout in layout.phases])
    distances = np.abs(every[-1, 1] - every[0, 0])
    distances = np.maximum(distances, distances.mean() if distances.any() else 1.0)
    for phase_layout in layout.phases:
        for profile, spline in enumerate(phase_layout.splines):
            columns = phase_layout.columns[profile, : spline.count]
            x[columns[columns >= 0]] += spread * distances[profile] * rng.normal(size=int((columns >= 0).sum()))
        if phase_layout.duration >= 0:
            x[phase_layout.duration] *= np.exp(spread * DURATION_SPREAD * rng.normal())
    for name, column in layout.numbers.items():
        shared_number = problem.shared[name]
        width = shared_number.upper - shared_number.lower
        x[column] += spread * rng.normal() * (width / 4 if np.isfinite(width) else max(abs(shared_number.start), 1e-3))
    return np.clip(x, program.lower, program.upper)


def check_start(problem: ProblemStatement, x: Array) -> None:
    """Raise ModelError if a row or the objective is NaN at the start."""
    with np.errstate(all="ignore"):
        f, rows = problem.program.value(x)
    fix = "give another initial guess (start=, random_start)"
    wrong = np.flatnonzero(~np.isfinite(rows))
    if wrong.size:
        row = problem.program.rows[wrong[0]]
        place = "" if row.s is None else f" (s = {row.s:.3g} of phase {row.phase})"
        cause = "; the loops may not close there" if problem.model.is_closed else ""
        where = f"{problem.name}: {row.title}: {row.label}"
        raise ModelError(f"the row is not a number at the start{place}{cause}", where=where, fix=fix)
    if not np.isfinite(f):
        raise ModelError("the objective is not a number at the start", where=problem.name, fix=fix)
