"""Control points that end states determine or that terms bound, and the remaining equations."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from torsor.base.arrays import Array, Indices
from torsor.base.errors import ModelError, shortened
from torsor.motion.terms.ends import Ends, EndState
from torsor.motion.terms.term import TOUCHING, Term
from torsor.motion.transcription.motion_model import MotionModel, Profiles
from torsor.motion.transcription.phase import Phase
from torsor.motion.transcription.splines import Spline
from torsor.motion.transcription.variables import Equation, Layout

Known = dict[tuple[int, int], float]  # (profile, control point)


class KnownPoints:
    """The conditions at the ends of all phases, solved for control points if possible.

    ``extras`` are profiles that terms add after those that move the robot, with their first and last values.
    ``extra_phases`` are the indices of the phases that use each of them. ``known`` contains, for each phase, the
    control points that are not variables, and ``equations`` contains the remaining conditions.
    """

    def __init__(
        self,
        phases: Sequence[Phase],
        names: Profiles,
        conditions: Sequence[Any],
        extras: Mapping[str, tuple[float | None, float | None]],
        extra_phases: Sequence[Sequence[int]],
    ):
        self._phases, self._names, self._extras, self._extra_phases = phases, names, extras, extra_phases
        self._states = [condition for condition in conditions if isinstance(condition, EndState)]
        self.known: list[Known] = [{} for _ in phases]
        self.equations = list[Equation]()
        for condition in conditions:
            if isinstance(condition, EndState):
                solved = self._solve(condition, condition.index(len(phases)))
                equations = condition.equations(names, len(phases))
                self.equations += [one for one in equations if (one.parts[0].profile, one.parts[0].order) not in solved]
            elif isinstance(condition, Ends):
                for one in condition.equations(names, len(phases)):
                    # Profiles that do not move the robot are used in the phases to which the condition refers.
                    if all(
                        part.profile < names.moving or part.phase in extra_phases[part.profile - names.moving]
                        for part in one.parts
                    ):
                        self.equations.append(one)
        # The first and last values of extra profiles are known, and so are all their points in phases that do not use
        # them.
        first = names.moving
        for k, (ends, used) in enumerate(zip(extras.values(), extra_phases, strict=True)):
            for index, known in enumerate(self.known):
                if index not in used:
                    value = (ends[0] if index < used[0] else ends[1]) or 0.0
                    known |= {(first + k, point): value for point in range(self._splines[index][first + k].count)}
            last = self._splines[used[-1]][first + k].count - 1
            for phase, point, value_at_end in ((used[0], 0, ends[0]), (used[-1], last, ends[1])):
                if value_at_end is not None:
                    self.known[phase][first + k, point] = value_at_end

    def positions(self, ends: Sequence[float]) -> list[dict[float, float]]:
        """Return the prescribed {time: position} of each profile; phase k lasts from ends[k] to ends[k + 1]."""
        result: list[dict[float, float]] = [{} for _ in self._names]
        for state in self._states:
            time = float(ends[state.index(len(self._phases)) + (state.s == 1)])
            for (profile, order), value in state.values(self._names).items():
                if order == 0:
                    result[profile][time] = value
        for k, ((first, last), used) in enumerate(zip(self._extras.values(), self._extra_phases, strict=True)):
            at_ends = {float(ends[used[0]]): first, float(ends[used[-1] + 1]): last}
            result[self._names.moving + k] = {time: value for time, value in at_ends.items() if value is not None}
        return result

    @cached_property
    def _splines(self) -> list[list[Spline]]:
        return [[(phase.own or {}).get(name, phase.spline) for name in self._names] for phase in self._phases]

    def _solve(self, state: EndState, index: int) -> set[tuple[int, int]]:
        """Add the control points that an end state determines to ``known``; return the solved (profile, order).

        Rates are with respect to time, so nonzero rates determine control points only if the duration is known.
        """
        values, solved, known = state.values(self._names), set[tuple[int, int]](), self.known[index]
        if self._phases[index].clock and any(order and value for (_, order), value in values.items()):
            fix = "give rates of 0, or omit the clock"
            raise ModelError("a phase with a clock must have zero rates at its ends", where=state.title, fix=fix)
        least, most = self._phases[index].bounds
        for profile, spline in enumerate(self._splines[index]):
            at = range(spline.count) if state.s == 0 else range(spline.count - 1, -1, -1)
            for order in range(4):
                value = values.get((profile, order))
                if value is None or (order and value and least < most) or (profile, at[order]) in known:
                    break
                row = spline.row(state.s, order)
                before = sum(row[at[k]] * known[profile, at[k]] for k in range(order))
                known[profile, at[order]] = (value * least**order - before) / row[at[order]]
                solved.add((profile, order))
        return solved


class PointBounds(NamedTuple):
    """Bounds on the control points ``points`` (indices) of a profile in a phase."""

    phase: int
    profile: int
    points: Indices
    least: float
    most: float

    def beyond(self, known: Array) -> Array:
        """Return the values of known control points that are outside the bounds."""
        return known[~((known >= self.least - TOUCHING) & (known <= self.most + TOUCHING))]


def point_bounds(term: Term, model: MotionModel, layout: Layout) -> Iterator[PointBounds]:
    """Yield the bounds of a term on the control points that affect a profile while the term applies.

    A spline stays within the convex hull of its control points, so bounds on these apply everywhere.
    """
    bounds, (begin, end), points = term.point_bounds(model), term.during, dict[Spline, Indices]()
    for index, phase_layout in enumerate(layout.phases):
        if not bounds or not term.holds_in(index, phase_layout.phase):
            continue
        for profile, (least, most) in bounds.items():
            spline = phase_layout.splines[profile]
            if spline not in points:
                first, last = spline.knots[: spline.count], spline.knots[spline.degree + 1 :]
                near = (first < end) & (last > begin) | (spline.row(begin) != 0) | (spline.row(end) != 0)
                points[spline] = np.flatnonzero(near)
            yield PointBounds(index, profile, points[spline], least, most)


def bound_control_points(
    term: Term, model: MotionModel, layout: Layout, lower: Array, upper: Array, where: str
) -> None:
    """Tighten the bounds ``lower`` and ``upper`` (n,) of the variables to those of a term."""
    where = f"{where}: {term.title}"
    for bounds in point_bounds(term, model, layout):
        phase_layout, name, (least, most) = layout.phases[bounds.phase], model.names[bounds.profile], bounds[3:]
        columns = phase_layout.columns[bounds.profile, bounds.points]
        beyond = bounds.beyond(phase_layout.known[bounds.profile, bounds.points][columns < 0])
        if beyond.size:
            message = f"is given as {shortened(beyond)} at an end"
            raise ModelError(message, argument=name, where=where, allowed=f"{least} to {most}")
        free = columns[columns >= 0]
        lower[free], upper[free] = np.maximum(lower[free], least), np.minimum(upper[free], most)
        if (lower[free] > upper[free]).any():
            message = f"the bounds {least} to {most} on the control points of {name} contradict those of another term"
            raise ModelError(message, where=where)
