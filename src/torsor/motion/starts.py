"""Where a search starts: straight lines, given profiles, an earlier result, or chance."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from torsor.errors import ModelError, describe
from torsor.motion.terms.ends import _State
from torsor.motion.transcription.layout import Layout, PhaseLayout

if TYPE_CHECKING:
    from torsor.motion.problem import MotionProblem
    from torsor.motion.results.result import MotionResult

__all__ = ["from_profiles", "from_result", "is_same_program", "random_start", "read_start", "straight_lines"]

Array = NDArray[np.float64]

SAMPLES = 8  # of a profile for each of its control points, from which these are fitted
RESTLESS = 0.3  # standard deviation of the logarithm of a random duration


def read_start(problem: "MotionProblem", start: Any) -> Array:
    """Return the variables (n,) to start from.

    ``start`` is None (straight lines), a ``MotionResult``, variables (n,), or profiles (K, N) at equal steps of time
    from the start to the end of the whole motion.
    """
    from torsor.motion.results.result import MotionResult

    program, names = problem.program, problem.subject.names
    if start is None:
        return problem.guess()
    if isinstance(start, MotionResult):
        x = from_result(problem, start)
    else:
        try:
            given = np.array(start, dtype=float)
        except (TypeError, ValueError):
            given = np.full(0, np.nan)
        is_x, is_profiles = given.shape == (program.n,), given.ndim == 2 and given.shape[1:] == (len(names),)
        if not (is_x or (is_profiles and len(given) > 1)) or not np.isfinite(given).all():
            allowed = f"a MotionResult, profiles (K, {len(names)}) of {', '.join(names)}, or variables ({program.n},)"
            found = f"start has shape {given.shape}" if given.size else f"start is {type(start).__name__}"
            if given.size and not np.isfinite(given).all():
                found = "start has numbers that are not finite"
            raise ModelError(describe(found, where=problem.name, allowed=allowed))
        x = given if is_x else from_profiles(problem, given)
    return np.clip(x, program.lower, program.upper)


def straight_lines(problem: "MotionProblem") -> Array:
    """Return variables (n,) whose profiles are straight lines between what ends of phases say, and rest elsewhere."""
    program = problem.program
    x, spans = np.zeros(program.n), np.cumsum([0.0, *(sum(phase.bounds) / 2 for phase in problem.stages)])
    known = _known(problem, spans)
    for index, stretch in enumerate(program.layout.stretches):
        for profile, spline in enumerate(stretch.splines):
            times = spans[index] + spline.greville * (spans[index + 1] - spans[index])
            columns, at = stretch.columns[profile, : spline.count], sorted(known[profile])
            line = np.interp(times, at, [known[profile][time] for time in at])
            x[columns[columns >= 0]] = line[columns >= 0]
        if stretch.duration >= 0:
            x[stretch.duration] = sum(stretch.phase.bounds) / 2
    for name, number in problem.shared.items():
        x[program.layout.numbers[name]] = number.start
    return np.clip(x, program.lower, program.upper)


def _known(problem: "MotionProblem", spans: Array) -> list[dict[float, float]]:
    """Return of each profile {time: position} where ends say it, the phases lasting from one of ``spans`` to the next.

    Of a profile about which nothing is said it is 0, or what it is in the way of assembly.
    """
    names, assembly = problem.subject.names, problem.assembly
    known: list[dict[float, float]] = [{} for _ in names]
    for each in problem.conditions:
        if isinstance(each, _State):
            time = float(spans[each.index(len(problem.stages)) + (each._s == 1)])
            for (profile, order), value in each.values(names).items():
                if order == 0:
                    known[profile][time] = value
    for k, ((begin, end), live) in enumerate(zip(problem._extras.values(), problem._lives, strict=True)):
        known[names.moving + k] = {float(spans[live[0]]): begin, float(spans[live[-1] + 1]): end}
    for profile, own in enumerate(known):
        if not own:
            own[0.0] = 0.0 if assembly is None else float(assembly[problem.subject.places[profile]])
    return known


def from_profiles(problem: "MotionProblem", profiles: Array) -> Array:
    """Return variables whose profiles come nearest to samples (K, N) at equal steps over the whole motion."""
    x, layout = problem.guess(), problem.program.layout
    seconds = np.array([stretch.seconds(x) for stretch in layout.stretches])
    begun, at = np.cumsum(seconds) - seconds, np.linspace(0.0, seconds.sum(), len(profiles))
    for stretch, start, T in zip(layout.stretches, begun, seconds, strict=True):
        s = _shares(stretch)
        values = np.stack([np.interp(start + s * T, at, profile) for profile in profiles.T], axis=1)
        fit(stretch, x, s, values)
    return x


def from_result(problem: "MotionProblem", result: "MotionResult") -> Array:
    """Return variables whose motion is that of a result, of profiles with the same names; others stay on their lines.

    Phases take the profiles and durations of those with the same index if there are as many, and otherwise of the same
    share of the whole. A spline that has all knots of the earlier one takes over its profile exactly.
    """
    if is_same_program(problem, result):
        return np.array(result.x)
    x, layout, before = problem.guess(), problem.program.layout, result.problem.program.layout
    names, old = problem.subject.names, result.problem.subject.names
    common = [name for name in names if name in old]
    if not common:
        found = f"the result has no profile of {', '.join(names)}"
        raise ModelError(describe(found, where=problem.name, allowed="a result with profiles of the same names"))
    seconds = np.array([each.seconds(result.x) for each in before.stretches])
    paired = len(layout.stretches) == len(before.stretches)
    for index, stretch in enumerate(layout.stretches):
        T = seconds[index] if paired else seconds.sum() / len(layout.stretches)
        if stretch.duration >= 0:
            x[stretch.duration] = np.clip(T, *stretch.phase.bounds)
        s = _shares(stretch)
        if paired:
            values = before.stretches[index].profiles(result.x, s, 1)[0]
        else:
            values = _whole(before, seconds, result.x, (index + s) * T)
        own = np.full((len(s), len(names)), np.nan)
        for name in common:
            own[:, names.index(name)] = values[:, old.index(name)]
        fit(stretch, x, s, own)
    for name, column in layout.numbers.items():
        if name in result.numbers:  # held ones too
            x[column] = result.numbers[name]
    return x


def is_same_program(problem: "MotionProblem", result: "MotionResult") -> bool:
    """Whether variables of a result mean the same for a problem: the same profiles, splines, and what is known."""
    a, b = problem.program.layout, result.problem.program.layout
    if a is b:
        return True
    same = problem.subject.names == result.problem.subject.names and dict(a.numbers) == dict(b.numbers)
    if not same or a.size != b.size or len(a.stretches) != len(b.stretches):
        return False
    return all(
        np.array_equal(one.columns, other.columns)
        and one.duration == other.duration
        and all(
            f.degree == g.degree and np.array_equal(f.inner, g.inner)
            for f, g in zip(one.splines, other.splines, strict=True)
        )
        for one, other in zip(a.stretches, b.stretches, strict=True)
    )


def _shares(stretch: PhaseLayout) -> Array:
    return np.linspace(0.0, 1.0, SAMPLES * max(spline.count for spline in stretch.splines) + 1)


def _whole(layout: Layout, seconds: Array, x: Array, times: Array) -> Array:
    """Return the profiles (K, N) at times since the motion began."""
    ends = np.cumsum(seconds)
    phase = np.searchsorted(ends[:-1], times, side="right")
    found = np.empty((len(times), len(layout.stretches[0].splines)))
    for index, stretch in enumerate(layout.stretches):
        own = phase == index
        s = np.clip((times[own] - ends[index] + seconds[index]) / seconds[index], 0.0, 1.0)
        found[own] = stretch.profiles(x, s, 1)[0]
    return found


def fit(stretch: PhaseLayout, x: Array, s: Array, values: Array) -> None:
    """Put into x the control points of a phase that come nearest to values (K, N) at shares s; NaN is left alone."""
    for profile, spline in enumerate(stretch.splines):
        if np.isnan(values[:, profile]).any():
            continue
        columns, known = stretch.columns[profile, : spline.count], stretch.known[profile, : spline.count]
        B, free = spline.matrix(s), columns >= 0
        left = values[:, profile] - B[:, ~free] @ known[~free]
        x[columns[free]] = np.linalg.lstsq(B[:, free], left, rcond=None)[0]


def random_start(problem: "MotionProblem", seed: int, spread: float = 1.0) -> Array:
    """Return variables (n,) around the straight lines, the same for the same seed.

    Each free control point is moved by a normal number with a standard deviation of ``spread`` times the way that its
    profile goes (or, if this is shorter, the mean of all ways), durations by a factor, shared numbers within their
    bounds.

    Example:
        >>> import torsor
        >>> from torsor import motion
        >>> ends = [motion.Start(q=0.0, v=0.0), motion.End(q=1.0, v=0.0)]
        >>> phase = motion.Phase((0.1, 2.0), points=6)
        >>> problem = motion.MotionProblem(torsor.library.two_link(), phase, motion.Time(), ends)
        >>> bool((random_start(problem, 3) == problem.random_start(3)).all())
        True
    """
    if not (isinstance(seed, int | np.integer) and seed >= 0):
        raise ModelError(describe(f"seed is {seed!r}", where=problem.name, allowed="a whole number, 0 or more"))
    if not (isinstance(spread, int | float) and np.isfinite(spread) and spread >= 0):
        raise ModelError(describe(f"spread is {spread!r}", where=problem.name, allowed="a number, 0 or more"))
    rng, x, program = np.random.default_rng(seed), problem.guess(), problem.program
    layout = program.layout
    every = np.array([stretch.profiles(x, np.array([0.0, 1.0]), 1)[0] for stretch in layout.stretches])
    ways = np.abs(every[-1, 1] - every[0, 0])
    ways = np.maximum(ways, ways.mean() if ways.any() else 1.0)
    for stretch in layout.stretches:
        for profile, spline in enumerate(stretch.splines):
            columns = stretch.columns[profile, : spline.count]
            x[columns[columns >= 0]] += spread * ways[profile] * rng.normal(size=int((columns >= 0).sum()))
        if stretch.duration >= 0:
            x[stretch.duration] *= np.exp(spread * RESTLESS * rng.normal())
    for name, column in layout.numbers.items():
        number = problem.shared[name]
        width = number.upper - number.lower
        x[column] += spread * rng.normal() * (width / 4 if np.isfinite(width) else max(abs(number.start), 1e-3))
    return np.clip(x, program.lower, program.upper)
