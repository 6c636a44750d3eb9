"""A motion problem: a robot, phases, what is to be least, and what must hold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from torsor.errors import ModelError, describe
from torsor.model import Robot
from torsor.motion.batch import Batch
from torsor.motion.ends import Ends, Linked, _State
from torsor.motion.layout import Layout
from torsor.motion.linear import Equation, Linear
from torsor.motion.node import Node
from torsor.motion.paths import Path
from torsor.motion.phase import Phase
from torsor.motion.program import Program
from torsor.motion.splines import Spline
from torsor.motion.subject import Subject
from torsor.motion.terms import TOUCHING, Cost, Number, Rows, Term
from torsor.motion.traced import Traced
from torsor.parametric import Parametric

if TYPE_CHECKING:
    from torsor.motion.result import MotionResult
    from torsor.motion.sweeps import Multistart

__all__ = ["MotionProblem"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MotionProblem:
    """A motion to be found.

    A ``robot`` (or a parametric one, whose numbers are then variables, with starts and bounds in ``numbers``) moves
    through ``phases`` so that the sum of the parts of the ``objective`` is least and all ``constraints`` hold. Some
    coordinates may be ``frozen`` ({name: position}), or all follow a joint ``path``. ``settings`` are defaults of
    ``solve``. Profiles of phases after each other go on up to accelerations, unless ``Linked`` says otherwise.

    Example:
        >>> import torsor
        >>> from torsor import motion
        >>> problem = motion.MotionProblem(
        ...     torsor.library.two_link(),
        ...     motion.Phase((0.1, 2.0), points=12),
        ...     motion.Time(),
        ...     [motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0), motion.Torques(upper=10.0)],
        ... )
        >>> round(problem.solve().T, 5)
        0.39563
    """

    robot: Robot | Parametric[Robot]
    phases: Phase | Sequence[Phase]
    objective: Cost | Sequence[Cost]
    constraints: Sequence[Rows | Ends] = ()
    frozen: Mapping[str, float] = field(default_factory=dict)
    path: Path | None = None
    numbers: Mapping[str, Number] = field(default_factory=dict)
    name: str = "motion"
    assembly: Sequence[float] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for each in (*self.costs, *self.conditions):
            if not isinstance(each, (Term, Ends)):
                raise ModelError(describe(f"{each!r}", where=self.name, allowed="terms of torsor.motion"))
        for term in self.terms:
            if not any(term.holds_in(index, phase) for index, phase in enumerate(self.stages)):
                allowed = ", ".join(repr(phase.name or index) for index, phase in enumerate(self.stages))
                found = f"{term.title} is about phase {term.phase!r}"
                raise ModelError(describe(found, where=self.name, allowed=allowed))

    @cached_property
    def stages(self) -> tuple[Phase, ...]:
        """The phases, one after the other."""
        return (self.phases,) if isinstance(self.phases, Phase) else tuple(self.phases)

    @cached_property
    def costs(self) -> tuple[Cost, ...]:
        """The parts of the objective."""
        return (self.objective,) if isinstance(self.objective, Cost) else tuple(self.objective)

    @cached_property
    def conditions(self) -> tuple[Rows | Ends, ...]:
        """What must hold; phases go on from each other unless it is said how."""
        given = tuple(self.constraints)
        goes_on = len(self.stages) < 2 or any(isinstance(each, Linked) for each in given)
        return given if goes_on else (*given, Linked())

    @cached_property
    def subject(self) -> Subject:
        """What moves."""
        return Subject(self.robot, self.frozen, self.path, tuple(self._extras), self.assembly)

    @cached_property
    def _extras(self) -> dict[str, tuple[float, float]]:
        """Profiles that terms add, with what they begin and end at."""
        found: dict[str, tuple[float, float]] = {}
        for term in self.terms:
            for name, ends in term.profiles().items():
                if found.setdefault(name, ends) != ends:
                    where = f"{self.name}: {term.title}"
                    raise ModelError(describe(f"profile {name!r} ends elsewhere in another term", where=where))
        return found

    @cached_property
    def _lives(self) -> list[list[int]]:
        """The phases in which each of these is looked at."""
        return [
            [
                index
                for index, phase in enumerate(self.stages)
                if any(name in term.profiles() and term.holds_in(index, phase) for term in self.terms)
            ]
            for name in self._extras
        ]

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """Terms that are looked at in moments, with those that belong to them."""
        own = [each for each in (*self.costs, *self.conditions) if isinstance(each, Term)]
        return (*own, *(other for each in own for other in each.companions()))

    @cached_property
    def shared(self) -> dict[str, Number]:
        """The numbers that all phases share: free parameters of the robot, and those of terms."""
        found = {}
        values = () if isinstance(self.robot, Robot) else self.robot.values
        for name, value in zip(self.subject.parameters, values, strict=True):
            found[name] = self.numbers.get(name, Number(float(value)))
        for term in self.terms:
            for name, number in term.numbers().items():
                if name in found:
                    fix = "give one of them another name"
                    raise ModelError(describe(f"two terms have a number {name!r}", where=self.name, fix=fix))
                found[name] = self.numbers.get(name, number)
        wrong = [name for name in self.numbers if name not in found]
        if wrong:
            allowed = ", ".join(found) or "none: the robot has no free numbers"
            raise ModelError(describe(f"numbers names {wrong[0]!r}", where=self.name, allowed=allowed))
        return found

    @cached_property
    def _node(self) -> Node:
        return Node(self.subject, [name for name in self.shared if name not in self.subject.parameters])

    @cached_property
    def _traced(self) -> dict[tuple[int, ...], Traced]:
        return {}

    @cached_property
    def _samplers(self) -> dict[tuple[str, ...], Any]:
        return {}

    def _trace(self, terms: Sequence[Term]) -> Traced:
        key = tuple(map(id, terms))
        if key not in self._traced:
            rows = [each for each in terms if isinstance(each, Rows)]
            costs = [each for each in terms if isinstance(each, Cost)]
            self._traced[key] = Traced(self._node, rows, costs)
        return self._traced[key]

    # Ends

    def _ends(self) -> tuple[list[dict[tuple[int, int], float]], list[Equation]]:
        """Return control points that are known beforehand, of each phase, and the equations that are left."""
        names = self.subject.names
        known: list[dict[tuple[int, int], float]] = [{} for _ in self.stages]
        left = list[Equation]()
        for each in self.conditions:
            if isinstance(each, _State):
                index = each.index(len(self.stages))
                solved = self._solved(each, index, known[index])
                for equation in each.equations(names, len(self.stages)):
                    part = equation.parts[0]
                    if (part.profile, part.order) not in solved:
                        left.append(equation)
            elif isinstance(each, Ends):
                left += [one for one in each.equations(names, len(self.stages)) if self._is_live(one)]
        self._settle_extras(known)
        return known, left

    def _is_live(self, equation: Equation) -> bool:
        """Whether all profiles of an equation are looked at in the phases that it is about."""
        own = self.subject.names.moving
        return all(part.profile < own or part.phase in self._lives[part.profile - own] for part in equation.parts)

    def _settle_extras(self, known: list[dict[tuple[int, int], float]]) -> None:
        """Put what profiles of terms begin and end at into ``known``, and all of them in phases without the term."""
        own = self.subject.names.moving
        for k, (ends, live) in enumerate(zip(self._extras.values(), self._lives, strict=True)):
            for index in range(len(self.stages)):
                count = self._spline(index, own + k).count
                if index not in live:
                    value = ends[0] if index < live[0] else ends[1]
                    known[index] |= {(own + k, point): value for point in range(count)}
            known[live[0]][own + k, 0] = ends[0]
            known[live[-1]][own + k, self._spline(live[-1], own + k).count - 1] = ends[1]

    def _spline(self, phase: int, profile: int) -> Spline:
        stage = self.stages[phase]
        return (stage.own or {}).get(self.subject.names[profile], stage.spline)

    def _solved(self, state: _State, index: int, known: dict[tuple[int, int], float]) -> set[tuple[int, int]]:
        """Put control points that a state at an end says into ``known``, and return which (profile, order) these say.

        Rates that are not zero are in seconds, and say control points only where the duration is known.
        """
        names, phase = self.subject.names, self.stages[index]
        values, solved = state.values(names), set[tuple[int, int]]()
        least, most = phase.bounds
        for profile in range(len(names)):
            spline = self._spline(index, profile)
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

    @cached_property
    def program(self) -> Program:
        """The nonlinear program."""
        known, equations = self._ends()
        layout = Layout.of(self.stages, self.subject.names, known, list(self.shared))
        batches = [
            Batch(self._trace(terms), layout, phase, np.array(moments), np.array(weights))
            for (phase, moments, weights), terms in self._groups().items()
        ]
        lower, upper = np.full(layout.size, -np.inf), np.full(layout.size, np.inf)
        for stretch in layout.stretches:
            if stretch.duration >= 0:
                lower[stretch.duration], upper[stretch.duration] = stretch.phase.bounds
        for name, number in self.shared.items():
            lower[layout.numbers[name]], upper[layout.numbers[name]] = number.lower, number.upper
        for term in self.terms:
            self._bound_points(term, layout, lower, upper)
        return Program(layout, tuple(batches), Linear(equations, layout), lower, upper)

    def _bound_points(self, term: Term, layout: Layout, lower: Array, upper: Array) -> None:
        """Bound the control points that shape a profile during a term: the curve stays within their hull."""
        bounds, (begin, end) = term.point_bounds(self.subject), term.during
        for index, stretch in enumerate(layout.stretches):
            if not bounds or not term.holds_in(index, stretch.phase):
                continue
            for profile, (least, most) in bounds.items():
                spline = stretch.splines[profile]
                first, last = spline.knots[: spline.count], spline.knots[spline.degree + 1 :]
                near = (first < end) & (last > begin) | (spline.matrix([begin, end]) != 0).any(axis=0)
                columns, known = (each[profile, : spline.count][near] for each in (stretch.columns, stretch.known))
                given = known[columns < 0]
                if not ((given >= least - TOUCHING) & (given <= most + TOUCHING)).all():
                    found = f"{self.subject.names[profile]} is held at {given.tolist()} at an end"
                    where = f"{self.name}: {term.title}"
                    raise ModelError(describe(found, where=where, allowed=f"{least} to {most}"))
                free = columns[columns >= 0]
                lower[free], upper[free] = np.maximum(lower[free], least), np.minimum(upper[free], most)

    def _groups(self) -> dict[tuple[int, tuple[float, ...], tuple[float, ...]], list[Term]]:
        """Return terms that are looked at in the same moments, by phase, moments and weights of the integral."""
        found: dict[tuple[int, tuple[float, ...], tuple[float, ...]], list[Term]] = {}
        for index, phase in enumerate(self.stages):
            for term in self.terms:
                if not term.has_rows or not term.holds_in(index, phase):
                    continue
                moments, weights = self._moments(term, phase)
                found.setdefault((index, tuple(moments.tolist()), tuple(weights.tolist())), []).append(term)
        return self._merged(found)

    @staticmethod
    def _moments(term: Term, phase: Phase) -> tuple[Array, Array]:
        """Return where a term is looked at (K,), and the weights (K,) of its integral or sum; 0 for constraints."""
        if isinstance(term, Cost) and not term.is_sum:
            return phase.integral(*term.during)
        moments = term.moments(phase)
        return moments, np.full(len(moments), float(isinstance(term, Cost)))

    @staticmethod
    def _merged(
        groups: dict[tuple[int, tuple[float, ...], tuple[float, ...]], list[Term]],
    ) -> dict[tuple[int, tuple[float, ...], tuple[float, ...]], list[Term]]:
        """Return groups with rows beside integrals over the same moments: what both need is then computed once."""
        integrals = {(phase, moments): weights for phase, moments, weights in groups if any(weights)}
        merged: dict[tuple[int, tuple[float, ...], tuple[float, ...]], list[Term]] = {}
        for (phase, moments, weights), terms in groups.items():
            own = weights if any(weights) else integrals.get((phase, moments), weights)
            merged.setdefault((phase, moments, own), []).extend(terms)
        for (phase, moments, weights), terms in list(merged.items()):
            # Where only the duration is integrated, any moments do: those of rows, which are looked at anyway.
            if all(isinstance(each, Cost) and each.is_even and not each.is_sum for each in terms):
                rows = next((key for key in merged if key[0] == phase and not any(key[2])), None)
                if rows is not None:
                    del merged[phase, moments, weights]
                    merged[phase, rows[1], (sum(weights), *rows[2][1:])] = [*merged.pop(rows), *terms]
        return merged

    def guess(self) -> Array:
        """Return variables on straight lines between the given ends."""
        program, layout = self.program, self.program.layout
        x = np.zeros(program.n)
        states = [each for each in self.conditions if isinstance(each, _State)]
        first, last = dict[int, float](), dict[int, float]()
        for each in states:
            ends = {profile: value for (profile, order), value in each.values(self.subject.names).items() if order == 0}
            (first if each._s == 0 else last).update(ends)
        for profile, (begin, end) in enumerate(self._extras.values(), start=self.subject.names.moving):
            first[profile], last[profile] = begin, end
        spans = np.cumsum([0.0, *(sum(phase.bounds) / 2 for phase in self.stages)])
        for index, stretch in enumerate(layout.stretches):
            for profile, spline in enumerate(stretch.splines):
                begin = first[profile] if profile in first else last.get(profile, 0.0)
                end = last.get(profile, begin)
                share = (spans[index] + spline.greville * (spans[index + 1] - spans[index])) / spans[-1]
                columns = stretch.columns[profile, : spline.count]
                free = columns >= 0
                x[columns[free]] = (begin + share * (end - begin))[free]
            if stretch.duration >= 0:
                x[stretch.duration] = sum(stretch.phase.bounds) / 2
        for name, number in self.shared.items():
            x[layout.numbers[name]] = number.start
        return np.clip(x, program.lower, program.upper)

    def with_phases(self, *phases: Phase) -> "MotionProblem":
        """Return the problem with other phases; what was traced of its terms is used again."""
        other = replace(self, phases=phases)
        for name in ("subject", "terms", "shared", "_node", "_traced", "_samplers"):
            other.__dict__[name] = getattr(self, name)
        return other

    def solve(
        self,
        solver: str | None = None,
        *,
        start: Any = None,
        tolerance: float | None = None,
        iterations: int | None = None,
        seconds: float | None = None,
        refine: bool | float | None = None,
        progress: bool | None = None,
        check: bool | None = None,
    ) -> "MotionResult":
        """Return the motion that is found.

        ``solver`` is "ipopt" (the default) or another of ``motion.SOLVERS``. ``start`` is None for straight lines, an
        earlier result (a warm start, also with other phases), profiles (K, N) at equal steps of time, or variables
        (x,). ``tolerance`` (1e-6) is that of optimality and of rows in parts of their scales; ``iterations`` (500) and
        ``seconds`` (no limit) end the search, as does Ctrl-C: the best motion so far is then the result, and its status
        says so. ``refine`` adds nodes until bounds hold between them too: True to 1e-4 of the rows' scales, or a number
        of that kind. ``progress`` shows iterations on stderr. What is None is as in ``settings``, or as said here.

        A problem without a motion raises a ``MotionError`` that names the constraints in conflict and the least
        violation; with ``check=False`` the result is the nearest motion.

        Example:
            >>> import torsor
            >>> from torsor import motion
            >>> lift = motion.MotionProblem(
            ...     torsor.library.two_link(),
            ...     motion.Phase(1.0, points=6),
            ...     motion.Effort(),
            ...     [motion.Start(q=0.0, v=0.0), motion.End(q=0.5, v=0.0)],
            ... )
            >>> first = lift.solve()
            >>> again = lift.solve(start=first)
            >>> again.iterations <= first.iterations, again.status
            (True, 'optimal')
        """
        from torsor.motion.solve import Search, solve

        given = {"solver": solver, "tolerance": tolerance, "iterations": iterations, "seconds": seconds}
        given |= {"refine": refine, "progress": progress, "check": check}
        chosen = dict(self.settings) | {key: value for key, value in given.items() if value is not None}
        return solve(self, start, Search.of(self.name, **chosen))

    def random_start(self, seed: int, spread: float = 1.0) -> Array:
        """Return variables (n,) around straight lines, the same for the same seed; see ``starts.random_start``."""
        from torsor.motion.starts import random_start

        return random_start(self, seed, spread)

    def multistart(
        self, count: int = 20, seed: int = 0, workers: int = 1, spread: float = 1.0, **settings: Any
    ) -> "Multistart":
        """Return what is found from that many random starts (seeds seed, seed + 1, ...), in several processes.

        ``settings`` are those of ``solve``. The same seeds give the same results, whatever the number of workers.
        """
        from torsor.motion.sweeps import multistart

        return multistart(self, count, seed, workers, spread, **settings)

    def save(self, path: str | FilePath) -> None:
        """Write the problem as TOML, with its robot in a file beside it (``NAME.robot.toml``)."""
        from torsor.motion.writing import save_problem

        save_problem(self, FilePath(path))
