"""A motion problem: a robot, phases, what is to be least, and what must hold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from torsor.errors import ModelError, describe
from torsor.motion.checks import check_number, check_parts, check_splines, in_phases, several
from torsor.motion.terms.ends import Ends, Linked, whole_path
from torsor.motion.terms.references import _OnPath
from torsor.motion.terms.term import TOUCHING, Constraint, Cost, Number, Term
from torsor.motion.transcription.batch import Batch
from torsor.motion.transcription.groups import grouped
from torsor.motion.transcription.known_points import KnownPoints
from torsor.motion.transcription.layout import Layout
from torsor.motion.transcription.linear_rows import Linear
from torsor.motion.transcription.motion_model import MotionModel
from torsor.motion.transcription.node import Node
from torsor.motion.transcription.node_kernels import Traced
from torsor.motion.transcription.paths import Path
from torsor.motion.transcription.phase import Phase
from torsor.motion.transcription.program import Program
from torsor.robot.parametric import Parametric
from torsor.robot.robot import Robot

if TYPE_CHECKING:
    from torsor.motion.results.result import MotionResult
    from torsor.motion.sweeps import Multistart

__all__ = ["MotionProblem"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class MotionProblem:
    """A motion to be found.

    A ``robot`` (or a parametric one, whose numbers are then variables, with starts and bounds in ``numbers``) moves
    through ``phases`` so that the sum of the parts of the ``objective`` is least and all ``constraints`` hold. Some
    coordinates may be ``frozen`` ({name: position}), or all follow a joint ``path``, as far as the profile ``progress``
    says, from 0 to 1. Robots with closed loops are moved by their active coordinates; positions (nq,) in ``assembly``
    say which way they are put together. ``settings`` are defaults of ``solve``. Where the problem is infeasible,
    ``relaxation_order`` has groups of names of constraints, in the order in which they may be relaxed: the error then
    says by how much the first sufficient group has to give way while everything but the groups before it holds.
    Profiles of successive phases are continuous up to accelerations, unless ``Linked`` says otherwise.

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
    constraints: Sequence[Constraint | Ends] = ()
    frozen: Mapping[str, float] = field(default_factory=dict)
    path: Path | None = None
    numbers: Mapping[str, Number] = field(default_factory=dict)
    name: str = "motion"
    assembly: Sequence[float] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    relaxation_order: Sequence[Sequence[str]] = ()

    def __post_init__(self) -> None:
        check_parts(self)
        for term in self.terms:
            term.check()
            if not any(term.holds_in(index, phase) for index, phase in enumerate(self.stages)):
                allowed = ", ".join(repr(phase.name or index) for index, phase in enumerate(self.stages))
                found = f"{term.title} is about phase {term.phase!r}"
                raise ModelError(describe(found, where=self.name, allowed=allowed))

    def __repr__(self) -> str:
        parts = " + ".join(each.title for each in self.costs)
        rows = ", ".join(each.title for each in self.conditions)
        return f"<MotionProblem {self.name!r} of {self.subject.robot.name!r}: {parts} least with {rows}>"

    @cached_property
    def stages(self) -> tuple[Phase, ...]:
        """The phases, one after the other."""
        return several(self.phases)

    @cached_property
    def costs(self) -> tuple[Cost, ...]:
        """The parts of the objective."""
        return several(self.objective)

    @cached_property
    def conditions(self) -> tuple[Constraint | Ends, ...]:
        """What must hold; phases go on from each other unless it is said how."""
        given = tuple(in_phases(each, self.stages) for each in several(self.constraints))
        if self.path is not None:
            given = whole_path(given)
        goes_on = len(self.stages) < 2 or any(isinstance(each, Linked) for each in given)
        return given if goes_on else (*given, Linked())

    @cached_property
    def subject(self) -> MotionModel:
        """What moves."""
        return MotionModel(self.robot, self.frozen, self.path, tuple(self._extras), self.assembly)

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

    @property
    def _lives(self) -> list[list[int]]:
        """The phases in which each of these is looked at."""
        stages = list(enumerate(self.stages))
        users = [[term for term in self.terms if name in term.profiles()] for name in self._extras]
        return [[index for index, phase in stages if any(term.holds_in(index, phase) for term in own)] for own in users]

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """Terms that are looked at in moments, with those that belong to them."""
        own = [each for each in (*self.costs, *self.conditions) if isinstance(each, Term)]
        return (*own, *(other for each in own for other in each.companions()))

    @property
    def shared(self) -> dict[str, Number]:
        """The numbers that all phases share, where they are variables: parameters of the robot, and those of terms."""
        return {name: each for name, each in self._all_shared.items() if name not in self.held}

    @cached_property
    def held(self) -> dict[str, float]:
        """The shared numbers whose bounds are one value: no variables, but inputs of what is compiled."""
        return {name: each.lower for name, each in self._all_shared.items() if each.lower == each.upper}

    @cached_property
    def _all_shared(self) -> dict[str, Number]:
        found = {}
        values = () if isinstance(self.robot, Robot) else self.robot.values
        for name, value in zip(self.subject.parameters, values, strict=True):
            found[name] = self._number(name, Number(float(value)))
        for term in self.terms:
            for name, number in term.numbers().items():
                if name in found:
                    fix = "give one of them another name"
                    raise ModelError(describe(f"two terms have a number {name!r}", where=self.name, fix=fix))
                found[name] = self._number(name, number)
        wrong = [name for name in self.numbers if name not in found]
        if wrong:
            allowed = ", ".join(found) or "none: the robot has no free numbers"
            raise ModelError(describe(f"numbers names {wrong[0]!r}", where=self.name, allowed=allowed))
        return found

    def _number(self, name: str, default: Number) -> Number:
        number = self.numbers.get(name, default)
        check_number(number, f"{self.name}: numbers: {name}")
        return number

    @cached_property
    def _node(self) -> Node:
        return Node(self.subject, [each for each in self._all_shared if each not in self.subject.parameters], self.held)

    @cached_property
    def _traced(self) -> dict[tuple[int, ...], Traced]:
        return {}

    @cached_property
    def _samplers(self) -> dict[tuple[str, ...], Any]:
        return {}

    def _trace(self, terms: Sequence[Term]) -> Traced:
        key = tuple(map(id, terms))
        if key not in self._traced:
            rows = [each for each in terms if isinstance(each, Constraint)]
            costs = [each for each in terms if isinstance(each, Cost)]
            self._traced[key] = Traced(self._node, rows, costs)
        return self._traced[key]

    @cached_property
    def program(self) -> Program:
        """The nonlinear program."""
        check_splines(self.name, self.stages, self.subject.names)
        ends = KnownPoints(self.stages, self.subject.names, self.conditions, self._extras, self._lives)
        layout = Layout.of(self.stages, self.subject.names, ends.known, list(self.shared))
        batches = [
            Batch(self._trace(terms), layout, phase, np.array(moments), np.array(weights))
            for (phase, moments, weights, _), terms in grouped(self.stages, self.terms, self.subject).items()
        ]
        lower, upper = np.full(layout.size, -np.inf), np.full(layout.size, np.inf)
        for stretch in layout.stretches:
            if stretch.duration >= 0:
                lower[stretch.duration], upper[stretch.duration] = stretch.phase.bounds
        for name, number in self.shared.items():
            lower[layout.numbers[name]], upper[layout.numbers[name]] = number.lower, number.upper
        for term in (*self.terms, *([] if self.path is None else [_OnPath()])):
            self._bound_points(term, layout, lower, upper)
        return Program(layout, tuple(batches), Linear(ends.equations, layout), lower, upper)

    def _bound_points(self, term: Term, layout: Layout, lower: Array, upper: Array) -> None:
        """Rows the control points that shape a profile during a term: the curve stays within their hull."""
        bounds, (begin, end) = term.point_bounds(self.subject), term.during
        for index, stretch in enumerate(layout.stretches):
            if not bounds or not term.holds_in(index, stretch.phase):
                continue
            for profile, (least, most) in bounds.items():
                spline = stretch.splines[profile]
                first, last = spline.knots[: spline.count], spline.knots[spline.degree + 1 :]
                near = (first < end) & (last > begin) | (spline.matrix([begin, end]) != 0).any(axis=0)
                columns, known = (each[profile, : spline.count][near] for each in (stretch.columns, stretch.known))
                given, where = known[columns < 0], f"{self.name}: {term.title}"
                beyond = given[~((given >= least - TOUCHING) & (given <= most + TOUCHING))]
                if beyond.size:
                    found = f"{self.subject.names[profile]} is held at {beyond.tolist()} at an end"
                    raise ModelError(describe(found, where=where, allowed=f"{least} to {most}"))
                free = columns[columns >= 0]
                lower[free], upper[free] = np.maximum(lower[free], least), np.minimum(upper[free], most)
                if (lower[free] > upper[free]).any():
                    found = f"no control points of {self.subject.names[profile]} are within {least} to {most}"
                    raise ModelError(describe(f"{found} and within another term's bounds", where=where))

    def guess(self) -> Array:
        """Return variables on straight lines between the positions that are given at ends of phases."""
        from torsor.motion.starts import straight_lines

        return straight_lines(self)

    def with_phases(self, *phases: Phase) -> "MotionProblem":
        """Return the problem with other phases; what was traced of its terms is used again."""
        other = replace(self, phases=phases)
        for name in ("subject", "terms", "_all_shared", "_node", "_traced", "_samplers"):
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
        feasible_first: bool | None = None,
    ) -> "MotionResult":
        """Return the motion that is found.

        ``solver`` is "ipopt" (the default) or another of ``motion.SOLVERS``. ``start`` is None for straight lines, an
        earlier result (a warm start, also with other phases), profiles (K, N) at equal steps of time, or variables
        (x,). ``tolerance`` (1e-6) is that of optimality and of rows in parts of their scales; ``iterations`` (500) and
        ``seconds`` (no limit) end the search, as does Ctrl-C: the best motion so far is then the result, and its status
        says so. ``refine`` adds nodes until bounds hold between them too: True to 1e-4 of the rows' scales, or a number
        of that kind. ``feasible_first`` searches for any motion that keeps the bounds, and from there for the best one.
        ``progress`` shows iterations on stderr. What is None is as in ``settings``, or as said here.

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
        given |= {"feasible_first": feasible_first}
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

        ``settings`` are those of ``solve``; progress is shown with one worker only. The same seeds give the same
        results, whatever the number of workers.
        """
        from torsor.motion.sweeps import multistart

        return multistart(self, count, seed, workers, spread, **settings)

    def save(self, path: str | FilePath) -> None:
        """Write the problem as TOML, with its robot in a file beside it (``NAME.robot.toml``)."""
        from torsor.motion.writing import save_problem

        save_problem(self, FilePath(path))
