"""The data of a motion problem (robot, phases, objective and constraints) and its nonlinear program."""

import math
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from types import NoneType
from typing import Any, Self, cast

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import finite_vector, several
from torsor.base.errors import ModelError
from torsor.motion.terms.ends import Ends, EndState, Linked, whole_path
from torsor.motion.terms.frames import OnPath
from torsor.motion.terms.objectives import Rates
from torsor.motion.terms.term import Constraint, Cost, Number, Term
from torsor.motion.transcription.batch import Batch
from torsor.motion.transcription.known_points import KnownPoints, bound_control_points
from torsor.motion.transcription.motion_model import MotionModel, Path
from torsor.motion.transcription.node import Node
from torsor.motion.transcription.node_kernels import NodeKernels, grouped
from torsor.motion.transcription.phase import MAX_CLOCK_VARIABLE, Clock, Phase
from torsor.motion.transcription.program import Program, RowRates
from torsor.motion.transcription.variables import Layout, Linear
from torsor.robot.parallel import ParallelRobot
from torsor.robot.parametric import Parametric
from torsor.robot.robot import Robot


def check_types(where: str, what: str, given: Iterable[Any], types: tuple[type, ...], allowed: str) -> None:
    """Raise ModelError if one of the values has the wrong type."""
    for value in given:
        if not isinstance(value, types):
            raise ModelError(f"{what} contains {value!r}", value=value, where=where, allowed=allowed)


def check_number(number: Any, where: str) -> None:
    """Raise ModelError if a shared number has no finite start, or if its bounds are not lower <= upper."""
    if not isinstance(number, Number):
        raise ModelError(f"it is {number!r}", value=number, where=where, allowed="a Number(start, lower, upper)")
    start, lower, upper = number
    is_finite = math.isfinite(start) if type(start) is float else finite_vector([start]) is not None
    if not is_finite or not (isinstance(lower, (int, float)) and isinstance(upper, (int, float)) and lower <= upper):
        raise ModelError(f"it is {number!r}", value=number, where=where, allowed="a finite start, and lower <= upper")
    if lower == upper and not math.isfinite(lower):
        raise ModelError(f"it is {number!r}", value=number, where=where, allowed="a finite value if lower == upper")


_SHARED_PARTS = ("model", "terms", "_all_shared", "node", "_kernels", "samplers")  # shared by problems with equal terms


def _is_equal(one: Any, other: Any) -> bool:
    """Return whether two terms have equal fields."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    return all(np.array_equal(vars(one)[key], vars(other).get(key)) for key in vars(one))


@dataclass(frozen=True, eq=False, repr=False)
class ProblemStatement:
    """The data of a motion problem and its nonlinear program; ``MotionProblem`` adds the methods that solve it."""

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
        where = str(self.name)
        if not isinstance(self.robot, (Robot, Parametric)):
            fix = "pass robot.as_robot()" if isinstance(self.robot, ParallelRobot) else ""
            raise ModelError(
                argument="robot", value=self.robot, where=where, allowed="a Robot or a parametric one", fix=fix
            )
        check_types(where, "phases", self.stages, (Phase,), "a Phase, or several")
        if not self.stages:
            raise ModelError("there are no phases", where=where, fix="pass at least one")
        if len(self.stages) > 1 and any(phase.clock for phase in self.stages):
            raise ModelError(f"a clock is used with {len(self.stages)} phases", where=where, allowed="one phase")
        names = [phase.name for phase in self.stages if phase.name]
        for name in names:
            if names.count(name) > 1:
                fix = "give each a different name"
                raise ModelError(f"two phases are named {name!r}", value=name, where=where, fix=fix)
        check_types(where, "name", [self.name], (str,), "a string")
        check_types(where, "objective", self.costs, (Cost,), "terms with a weight, such as motion.Time()")
        allowed = "terms with bounds, such as motion.Torques(), or conditions at the ends of phases"
        check_types(where, "constraints", self.conditions, (Constraint, Ends), allowed)
        check_types(where, "path", [self.path], (Path, NoneType), "a Path")
        check_types(where, "numbers", [self.numbers], (Mapping,), "{name: motion.Number(start, lower, upper)}")
        check_types(where, "settings", [self.settings], (Mapping,), "{setting of solve: value}")
        groups = [self.relaxation_order, *several(self.relaxation_order)]
        check_types(where, "relaxation_order", groups, (list, tuple), "groups of constraint names")
        titles = [condition.title for condition in self.conditions]
        for name in (name for group in self.relaxation_order for name in group):
            if name not in titles:
                message = f"contains {name!r}"
                raise ModelError(
                    message, value=name, argument="relaxation_order", where=where, allowed=", ".join(titles)
                )
        for term in self.terms:
            term.check()
            if not any(term.holds_in(index, phase) for index, phase in enumerate(self.stages)):
                allowed = ", ".join(repr(phase.name or index) for index, phase in enumerate(self.stages))
                message = f"{term.title}: there is no phase {term.phase!r}"
                raise ModelError(message, value=term.phase, where=where, allowed=allowed)

    def __repr__(self) -> str:
        costs = " + ".join(cost.title for cost in self.costs)
        conditions = ", ".join(condition.title for condition in self.conditions)
        who = f"{type(self).__name__} {self.name!r} of {self.model.robot.name!r}"
        return f"<{who}: minimise {costs} subject to {conditions}>"

    def __getstate__(self) -> dict[str, Any]:
        """Pickle only the fields, because cached CasADi expressions and compiled kernels cannot be pickled."""
        for term in self.terms:
            for name, value in vars(term).items():
                if "<" in getattr(value, "__qualname__", ""):  # a lambda or a nested function
                    message = f"{self.name}: {term.title}: {name} is {value.__qualname__}, which cannot be pickled"
                    raise pickle.PicklingError(f"{message}; fix: define the function at the top of a module")
        return {entry.name: self.__dict__[entry.name] for entry in fields(self)}

    # Parts

    @cached_property
    def stages(self) -> tuple[Phase, ...]:
        """The phases as a tuple."""
        return several(self.phases)

    @cached_property
    def costs(self) -> tuple[Cost, ...]:
        """The terms of the objective."""
        return several(self.objective)

    @cached_property
    def conditions(self) -> tuple[Constraint | Ends, ...]:
        """All constraints; with several phases and no ``Linked``, continuity up to accelerations is added."""
        indices = {phase.name: index for index, phase in enumerate(self.stages) if phase.name}
        resolved = tuple(
            replace(constraint, phase=indices[constraint.phase])
            if isinstance(constraint, EndState) and isinstance(constraint.phase, str) and constraint.phase in indices
            else constraint
            for constraint in several(self.constraints)
        )
        if self.path is not None:
            resolved = whole_path(resolved)
        is_linked = len(self.stages) < 2 or any(isinstance(condition, Linked) for condition in resolved)
        return resolved if is_linked else (*resolved, Linked())

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """Terms that are evaluated at nodes, including their companions."""
        stated = [term for term in (*self.costs, *self.conditions) if isinstance(term, Term)]
        return (*stated, *(other for term in stated for other in term.companions()))

    @cached_property
    def model(self) -> MotionModel:
        """The robot, and the relation of its coordinates to the profiles."""
        return MotionModel(self.robot, self.frozen, self.path, tuple(self.extra_profiles), self.assembly)

    @cached_property
    def extra_profiles(self) -> dict[str, tuple[float | None, float | None]]:
        """Profiles that terms add, with their first and last values."""
        result: dict[str, tuple[float | None, float | None]] = {}
        for term in self.terms:
            for name, ends in term.profiles().items():
                if result.setdefault(name, ends) != ends:
                    where = f"{self.name}: {term.title}"
                    raise ModelError(f"profile {name!r} has other end values in another term", value=name, where=where)
        return result

    @property
    def _extra_phases(self) -> list[list[int]]:
        """The indices of the phases in which each extra profile is used."""
        stages = list(enumerate(self.stages))
        users = [[term for term in self.terms if name in term.profiles()] for name in self.extra_profiles]
        return [
            [index for index, phase in stages if any(term.holds_in(index, phase) for term in terms)] for terms in users
        ]

    # Shared numbers

    @property
    def shared(self) -> dict[str, Number]:
        """Numbers that are variables of all phases: free parameters of the robot, and numbers of terms."""
        held = self.held
        return {name: number for name, number in self._all_shared.items() if name not in held}

    @cached_property
    def held(self) -> dict[str, float]:
        """Shared numbers with equal bounds, which are not variables but inputs of the compiled kernels."""
        return {name: number.lower for name, number in self._all_shared.items() if number.lower == number.upper}

    @cached_property
    def _all_shared(self) -> dict[str, Number]:
        values = [] if isinstance(self.robot, Robot) else self.robot.values.tolist()
        result = dict(zip(self.model.parameters, map(Number, values), strict=True))
        for term in self.terms:
            for name, number in term.numbers().items():
                if name in result:
                    fix = "rename one of them"
                    raise ModelError(f"two terms have a number {name!r}", value=name, where=self.name, fix=fix)
                result[name] = number
        result |= dict.fromkeys(self._clock.names, Number(0.0, -MAX_CLOCK_VARIABLE, MAX_CLOCK_VARIABLE))
        for name, number in self.numbers.items():
            if name not in result:
                allowed = ", ".join(result) or "none: the robot has no free parameters"
                raise ModelError(f"contains {name!r}", argument="numbers", where=self.name, allowed=allowed)
            result[name] = number
        for name, number in result.items():
            check_number(number, f"{self.name}: numbers: {name}")
        return result

    @property
    def _clock(self) -> Clock:
        return self.stages[0].timing

    # Kernels

    @cached_property
    def node(self) -> Node:
        """The symbols of one node, from which terms build their expressions."""
        parameters = set(self.model.parameters)
        shared = [name for name in self._all_shared if name not in parameters]
        return Node(self.model, shared, self.held, self._clock)

    @property
    def problem_numbers(self) -> Array:
        """The values of ``Node.problem_numbers``."""
        path = np.zeros(0) if self.path is None else self.path.numbers
        return np.concatenate([list(self.held.values()), path])

    @cached_property
    def _kernels(self) -> dict[tuple[int, ...], NodeKernels]:
        return {}

    @cached_property
    def samplers(self) -> dict[tuple[str, ...], Any]:
        """Kernels of sampled quantities by name; ``results.samples`` adds them."""
        return {}

    def kernels_of(self, terms: Sequence[Term]) -> NodeKernels:
        """Return the kernels of terms at one node."""
        key = tuple(map(id, terms))
        if key not in self._kernels:
            constraints = [term for term in terms if isinstance(term, Constraint)]
            costs = [term for term in terms if isinstance(term, Cost)]
            self._kernels[key] = NodeKernels(self.node, constraints, costs, self.problem_numbers)
        return self._kernels[key]

    # The nonlinear program

    @cached_property
    def _known(self) -> KnownPoints:
        for index, phase in enumerate(self.stages):
            for name in phase.own or {}:
                if name not in self.model.names:
                    message = f"own of phase {phase.name or index!r} contains {name!r}"
                    raise ModelError(message, where=self.name, allowed=", ".join(self.model.names))
        return KnownPoints(self.stages, self.model.names, self.conditions, self.extra_profiles, self._extra_phases)

    @cached_property
    def program(self) -> Program:
        """The nonlinear program."""
        if "_alike" in self.__dict__:
            program, points = self.__dict__["_alike"]
            return cast(Program, program.with_known(points))
        known = self._known
        layout = Layout.of(self.stages, self.model.names, known.known, list(self.shared))
        batches = [
            Batch(self.kernels_of(terms), layout, phase, np.array(moments), np.array(weights))
            for (phase, moments, weights, _), terms in grouped(self.stages, self.terms, self.model).items()
        ]
        lower, upper = np.full(layout.size, -np.inf), np.full(layout.size, np.inf)
        for phase_layout in layout.phases:
            if phase_layout.duration >= 0:
                lower[phase_layout.duration], upper[phase_layout.duration] = phase_layout.phase.bounds
        for name, number in self.shared.items():
            lower[layout.numbers[name]], upper[layout.numbers[name]] = number.lower, number.upper
        for term in (*self.terms, *([] if self.path is None else [OnPath()])):
            bound_control_points(term, self.model, layout, lower, upper, self.name)
        rates = tuple(self.rates_of(cost, batches) for cost in self.costs if isinstance(cost, Rates))
        return Program(layout, tuple(batches), Linear(known.equations, layout), lower, upper, rates=rates)

    def rates_of(self, cost: Rates, batches: Sequence[Batch]) -> RowRates:
        """Return the cost of the rates of a constraint's rows."""
        ends = tuple(cost.only or ("",))
        for batch in batches:
            rows = enumerate(batch.kernels.labels)
            chosen = [k for k, (title, label) in rows if title == cost.of and label.endswith(ends)]
            if chosen:
                return RowRates(batch, np.array(chosen), cost.weight / self.held.get(cost.per, 1.0), cost.per)
        titles = ", ".join(condition.title for condition in self.conditions)
        raise ModelError(
            f"there are no rows of {cost.of!r}", value=cost.of, where=f"{self.name}: {cost.title}", allowed=titles
        )

    def guess(self) -> Array:
        """Return the initial guess (n,): straight lines between the positions prescribed at the ends of phases.

        A profile without a prescribed position is constant, at 0 or at the position in ``assembly``.
        """
        return np.clip(self._straight_lines(self.program), self.program.lower, self.program.upper)

    def _straight_lines(self, program: Program) -> Array:
        """Return the initial guess (n,), which may exceed the bounds."""
        x, ends = np.zeros(program.n), np.cumsum([0.0, *(phase.first_duration for phase in self.stages)])
        known = self._known.positions(ends.tolist())
        for profile, positions in enumerate(known):
            if not positions:
                positions[0.0] = 0.0 if self.assembly is None else float(self.assembly[self.model.places[profile]])
        for index, phase_layout in enumerate(program.layout.phases):
            for profile, spline in enumerate(phase_layout.splines):
                times = ends[index] + spline.greville * (ends[index + 1] - ends[index])
                columns, at = phase_layout.columns[profile, : spline.count], sorted(known[profile])
                line = np.interp(times, at, [known[profile][time] for time in at])
                x[columns[columns >= 0]] = line[columns >= 0]
            if phase_layout.duration >= 0:
                x[phase_layout.duration] = phase_layout.phase.first_duration
        for name, number in self.shared.items():
            x[program.layout.numbers[name]] = number.start
        return x

    def contact(self, solution: Any) -> tuple[Array, Array] | None:
        """Return the forces (K, nv) of a motion with contact, and the contact wrenches (K, L, 6), at its sample times.

        Return None if there is no contact. Problems with contact terms override this method.
        """
        return None

    def with_phases(self, *phases: Phase) -> Self:
        """Return the problem with different phases, using the same compiled kernels."""
        return self.changed(phases=phases)

    def changed(self, **changes: Any) -> Self:
        """Return the problem with new values of some fields, using the same symbols and kernels where possible."""
        other = replace(self, **changes)
        self.share_with(other)
        return other

    def with_known(
        self, constraints: Iterable[Sequence[Constraint | Ends]], known: Iterable[Sequence[Array]]
    ) -> Iterator[Self]:
        """Yield the problem with different end states of the same form, from the known control points of each phase.

        The end states are not checked, and programs are created on demand.
        """
        shared = {entry.name: self.__dict__[entry.name] for entry in fields(self)}
        shared |= {name: getattr(self, name) for name in (*_SHARED_PARTS, "stages", "costs")}
        for own, points in zip(constraints, known, strict=True):
            other = object.__new__(type(self))
            other.__dict__.update(shared, constraints=own, _alike=(self.program, points))
            yield other

    def share_with(self, other: "ProblemStatement") -> None:
        """Share the node with a problem of the same structure, and the kernels if all terms and numbers are equal.

        Otherwise, if the held numbers are equal, the kernels of terms that are the same objects are shared.
        """
        if other.robot is not self.robot or other.path is not self.path or other._form != self._form:
            return
        own, known = other.terms, self.terms
        is_same = other.held == self.held and dict(other.numbers) == dict(self.numbers) and len(own) == len(known)
        is_same = is_same and all(_is_equal(one, two) for one, two in zip(own, known, strict=True))
        for name in _SHARED_PARTS if is_same else ("node",):
            other.__dict__[name] = getattr(self, name)
        if not is_same and other.held == self.held:
            other.__dict__["_kernels"] = dict(self._kernels)

    @property
    def _form(self) -> tuple[Any, ...]:
        """The data on which the symbols of the node depend, except the robot and the path."""
        assembly = None if self.assembly is None else np.asarray(self.assembly).tolist()
        names = tuple(self._all_shared), tuple(self.held), tuple(self.extra_profiles)
        return dict(self.frozen), assembly, self._clock, *names
