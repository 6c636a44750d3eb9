"""What is known before the search: control points that the ends of phases say, and the equations that are left."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from torsor.motion.terms.ends import Ends, _State
from torsor.motion.transcription.linear_rows import Equation
from torsor.motion.transcription.motion_model import Profiles
from torsor.motion.transcription.phase import Phase
from torsor.motion.transcription.splines import Spline

__all__ = ["KnownPoints"]

Known = dict[tuple[int, int], float]  # (profile, control point)


class KnownPoints:
    """The ends of all phases.

    ``extras`` are profiles that terms add, behind those that move the robot, with what they begin and end at, and
    ``lives`` the phases in which each is looked at. ``known`` has, of each phase, the control points that are no
    variables, and ``equations`` what is left to hold.
    """

    def __init__(
        self,
        phases: Sequence[Phase],
        names: Profiles,
        conditions: Sequence[Any],
        extras: Mapping[str, tuple[float, float]],
        lives: Sequence[Sequence[int]],
    ):
        self._phases, self._names, self._extras, self._lives = phases, names, extras, lives
        self.known: list[Known] = [{} for _ in phases]
        self.equations = list[Equation]()
        for each in conditions:
            if isinstance(each, _State):
                index = each.index(len(phases))
                solved = self._solved(each, index)
                own = each.equations(names, len(phases))
                self.equations += [one for one in own if (one.parts[0].profile, one.parts[0].order) not in solved]
            elif isinstance(each, Ends):
                self.equations += [one for one in each.equations(names, len(phases)) if self._is_live(one)]
        self._settle_extras()

    def _is_live(self, equation: Equation) -> bool:
        """Whether all profiles of an equation are looked at in the phases that it is about."""
        own = self._names.moving
        return all(part.profile < own or part.phase in self._lives[part.profile - own] for part in equation.parts)

    def _settle_extras(self) -> None:
        """Put what profiles of terms begin and end at into ``known``, and all of them in phases without the term."""
        own = self._names.moving
        for k, (ends, live) in enumerate(zip(self._extras.values(), self._lives, strict=True)):
            for index, known in enumerate(self.known):
                if index not in live:
                    value = ends[0] if index < live[0] else ends[1]
                    known |= {(own + k, point): value for point in range(self._splines[index][own + k].count)}
            self.known[live[0]][own + k, 0] = ends[0]
            self.known[live[-1]][own + k, self._splines[live[-1]][own + k].count - 1] = ends[1]

    @cached_property
    def _splines(self) -> list[list[Spline]]:
        return [[(phase.own or {}).get(name, phase.spline) for name in self._names] for phase in self._phases]

    def _solved(self, state: _State, index: int) -> set[tuple[int, int]]:
        """Put control points that a state at an end says into ``known``, and return which (profile, order) these say.

        Rates that are not zero are in seconds, and say control points only where the duration is known.
        """
        values, solved, known = state.values(self._names), set[tuple[int, int]](), self.known[index]
        least, most = self._phases[index].bounds
        for profile, spline in enumerate(self._splines[index]):
            at = range(spline.count) if state._s == 0 else range(spline.count - 1, -1, -1)
            for order in range(4):
                value = values.get((profile, order))
                if value is None or (order and value and least < most) or (profile, at[order]) in known:
                    break
                row = spline.matrix([state._s], order)[0]
                before = sum(row[at[k]] * known[profile, at[k]] for k in range(order))
                known[profile, at[order]] = (value * least**order - before) / row[at[order]]
                solved.add((profile, order))
        return solved
