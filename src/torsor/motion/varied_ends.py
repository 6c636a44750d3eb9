"""Array representation of cases that differ only in the positions at the ends of a motion.

On a GPU, solving a batch is faster than building the problems of its cases one by one. Known control points and initial
guesses are affine functions of the positions at the ends, separately for each profile. They are therefore interpolated
for all cases from those for the positions 0 and 1.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from torsor.base.arrays import Array, Indices
from torsor.base.checks import several
from torsor.motion.statement import ProblemStatement
from torsor.motion.terms.ends import EndState
from torsor.motion.transcription.known_points import point_bounds
from torsor.motion.transcription.program import Program


class VariedEnds(NamedTuple):
    """The problems of B cases, their initial guesses (B, n), and the known control points (B, N, P) of each phase."""

    problems: list[ProblemStatement]
    starts: Array
    known: list[Array]


def varied_ends(
    problem: ProblemStatement, cases: Sequence[Any], data: Mapping[str, str], is_named: bool
) -> VariedEnds | None:
    """Return the cases as arrays if they contain only positions at ends, such as "End.q", otherwise None.

    ``data`` maps the names used in the cases to names of data; with ``is_named``, the cases use the names of data. For
    invalid positions, the result is None too, so that building the problems one by one raises the error.
    """
    constraints = several(problem.constraints)
    names = _names(cases)
    if not names or problem.path is not None or type(problem).guess is not ProblemStatement.guess:
        return None
    places, values, count = list[int](), list[Array](), problem.model.names.moving
    for name in names:
        found = [k for k, each in enumerate(constraints) if f"{each.title}.q" == (name if is_named else data.get(name))]
        state = constraints[found[0]] if len(found) == 1 else None
        own = _numbers([case[name] for case in cases], count)
        if not isinstance(state, EndState) or own is None or _numbers([state.q], count) is None or found[0] in places:
            return None
        places.append(found[0])
        values.append(own)
    # one problem with all positions 0, and for each name, one with its positions 1
    origin, *units = (
        problem.changed(constraints=_with_positions(constraints, dict(zip(places, row, strict=True))))
        for row in (np.zeros((len(places), count)), *np.eye(len(places))[:, :, None] * np.ones(count))
    )
    if any(unit._known.equations != origin._known.equations for unit in units):
        return None  # a position is a row bound
    base, N = problem.program, len(problem.model.names)
    starts, known = _affine([each._straight_lines(base) for each in (origin, *units)], values, _profiles(base)), []
    for phase, layout in enumerate(base.layout.phases):
        ends = [_array(each._known.known[phase], layout.known.shape) for each in (origin, *units)]
        of_profile = np.broadcast_to(np.arange(N)[:, None], layout.known.shape)
        known.append(_affine(ends, values, np.where(of_profile < count, of_profile, 0)))
    for term in problem.terms:
        for bounds in point_bounds(term, problem.model, base.layout):
            points = bounds.points[base.layout.phases[bounds.phase].columns[bounds.profile, bounds.points] < 0]
            if bounds.beyond(known[bounds.phase][:, bounds.profile, points]).size:
                return None
    positions = (dict(zip(places, case.values(), strict=True)) for case in cases)
    made = problem.with_known((_with_positions(constraints, own) for own in positions), zip(*known, strict=True))
    return VariedEnds(list(made), np.clip(starts, base.lower, base.upper), known)


def _names(cases: Sequence[Any]) -> list[str]:
    """Return the names in the cases if all cases have the same names, otherwise an empty list."""
    first = list(cases[0]) if cases and isinstance(cases[0], Mapping) else []
    return first if all(isinstance(case, Mapping) and list(case) == first for case in cases) else []


def _numbers(rows: Sequence[Any], count: int) -> Array | None:
    """Return rows of finite numbers as an array (B, count), or None if they are invalid."""
    try:
        result = np.asarray(rows)
    except ValueError:  # rows of different lengths
        return None
    is_real = result.dtype.kind in "iuf" and result.shape == (len(rows), count) and np.isfinite(result).all()
    return result.astype(float) if is_real else None


def _with_positions(constraints: Sequence[Any], positions: Mapping[int, Any]) -> tuple[Any, ...]:
    """Return constraints with the positions of end states replaced, by index."""
    result = list(constraints)
    for place, q in positions.items():
        state = object.__new__(type(result[place]))
        state.__dict__.update(result[place].__dict__, q=q.copy() if isinstance(q, np.ndarray) else q)
        result[place] = state
    return tuple(result)


def _array(values: Mapping[tuple[int, int], float], shape: tuple[int, ...]) -> Array:
    result = np.zeros(shape)
    for place, value in values.items():
        result[place] = value
    return result


def _profiles(program: Program) -> Indices:
    """Return the profile (n,) of each variable; 0 for variables without one."""
    result = np.zeros(program.n, dtype=int)
    for layout in program.layout.phases:
        for profile, columns in enumerate(layout.columns):
            result[columns[columns >= 0]] = profile
    return result


def _affine(ends: Sequence[Array], values: Sequence[Array], profiles: Indices) -> Array:
    """Return arrays (B, ...) from those at positions 0 and 1, positions (B, N) and the profile of each entry."""
    result = np.broadcast_to(ends[0], (len(values[0]), *ends[0].shape))
    for one, positions in zip(ends[1:], values, strict=True):
        result = result + (one - ends[0]) * positions[:, profiles]
    return np.array(result)
