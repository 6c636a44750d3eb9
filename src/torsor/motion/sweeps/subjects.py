"""The subject of a sweep as a picklable object: a function, or a motion problem from Python, a file or by name."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from torsor.base.checks import rows, several, table
from torsor.base.errors import ModelError, listing
from torsor.motion import MotionProblem, MotionResult, Number, Phase, load_problem
from torsor.motion.batched import WIDTHS
from torsor.motion.declaration import NAMED_PROBLEMS, NamedProblem
from torsor.motion.problem import can_batch, solve_together, warn_between_nodes
from torsor.motion.solve import CTRL_C, DEFAULTS, SolveSettings
from torsor.motion.sweeps.cases import results_of
from torsor.motion.sweeps.fingerprint import fingerprint
from torsor.robot.parametric import Parametric
from torsor.robot.robot import Robot

# Variations of a motion problem: its parts and its robot's numbers by dotted name.
#
# | name | meaning |
# |---|---|
# | ``links.2.mass``, ``joints.elbow.origin.x``, ``gravity.z`` | number of the robot, as in ``Robot.parametric`` |
# | name of a free number of the robot or of a term | that number, which is then not a variable |
# | ``Torques.upper``, ``reach.weight`` | field of the constraint or objective with that title |
# | ``phases.0.duration``, ``phases.swing.points`` | field of a phase, by number or name |
# | ``frozen.elbow`` | position of a fixed coordinate |
# | ``solve.tolerance`` | setting of ``solve`` |
#
# Numbers of the robot are inputs of compiled functions, which all cases share.


class Variation:
    """A motion problem as a function of dotted names."""

    def __init__(self, problem: MotionProblem) -> None:
        self.problem = problem
        self._robots: dict[tuple[str, ...], Parametric[Robot]] = {}
        self._first: dict[int, MotionProblem] = {}  # by robot id; further cases use its symbols

    def __getstate__(self) -> dict[str, Any]:
        return {"problem": self.problem}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["problem"])  # type: ignore[misc]

    def __call__(self, **values: Any) -> MotionProblem:
        """Return the problem with values of the named parameters."""
        problem = self._varied(values)
        first = self._first.setdefault(id(problem.robot), problem)
        if first is not problem:
            first.share_with(problem)
        return problem

    def _varied(self, values: Mapping[str, Any]) -> MotionProblem:
        problem, numbers = self.problem, {}
        for name, value in values.items():
            place = _place(problem, name)
            if place is None:
                numbers[name] = value
            else:
                problem = _replaced(problem, place, value)
        if not numbers:
            return problem
        before, held = _numbers(problem), {name: Number(value, value, value) for name, value in numbers.items()}
        new = tuple(name for name in numbers if name not in before)
        return replace(problem, robot=self._with_free(new) if new else problem.robot, numbers=before | held)

    def check(self, name: str) -> None:
        """Raise ModelError if there is no parameter with that name."""
        if _place(self.problem, name) is None and name not in _numbers(self.problem):
            self._with_free((name,))

    def _with_free(self, names: tuple[str, ...]) -> Parametric[Robot]:
        """Return the robot with additional free numbers."""
        if names not in self._robots:
            robot = self.problem.robot
            free: dict[str, Any] = {} if isinstance(robot, Robot) else dict(robot.paths)
            plain = robot if isinstance(robot, Robot) else robot.robot
            try:
                self._robots[names] = plain.parametric(free | {name: name for name in names})
            except ModelError as error:
                titles = listing([term.title for term in (*self.problem.costs, *several(self.problem.constraints))])
                parts = f"a field of a term ({titles}), phases.N.FIELD, frozen.COORDINATE, solve.SETTING"
                message = f"there is no parameter {' or '.join(map(repr, names))}"
                allowed = f"{parts}, or a number of the robot ({error})"
                raise ModelError(message, where=self.problem.name, allowed=allowed) from None
        return self._robots[names]


class _Place(NamedTuple):
    """The location of a value: field of the problem, index of a part (-1: a dict), and field of that part."""

    field: str
    part: int
    name: str


def _numbers(problem: MotionProblem) -> dict[str, Number]:
    """Return the free numbers of the robot and those of terms, with their bounds."""
    return {name: Number(value, value, value) for name, value in problem.held.items()} | problem.shared


def _place(problem: MotionProblem, name: str) -> _Place | None:
    """Return the location for a name, or None if it can only be a number."""
    if name in _numbers(problem):
        return None
    title, _, field = name.rpartition(".")
    if title == "solve" and field in DEFAULTS:
        return _Place("settings", -1, field)
    if title == "frozen":
        return _Place("frozen", -1, field)
    parts = {"objective": problem.costs, "constraints": several(problem.constraints)}
    places = {member.title: (what, k) for what, members in parts.items() for k, member in enumerate(members)}
    for k, phase in enumerate(problem.stages):
        places |= {f"phases.{key}": ("phases", k) for key in (k, phase.name or k)}
    if title not in places:
        return None
    what, k = places[title]
    part = (parts | {"phases": problem.stages})[what][k]
    known = [entry.name for entry in fields(part) if entry.init]
    if field not in known:
        where = f"{problem.name}: {title}"
        raise ModelError(f"there is no field {field!r}", value=field, where=where, allowed=listing(known, like=field))
    return _Place(what, k, field)


def _replaced(problem: MotionProblem, place: _Place, value: Any) -> MotionProblem:
    """Return the problem with the value at a location replaced."""
    if place.part < 0:
        changes: dict[str, Any] = {place.field: dict(getattr(problem, place.field)) | {place.name: value}}
        return replace(problem, **changes)
    parts = list(several(getattr(problem, place.field)))
    part, changed = parts[place.part], {place.name: tuple(value) if isinstance(value, list) else value}
    if isinstance(part, Phase) and np.array_equal(replace(part, nodes=None).nodes, part.nodes):
        changed = {"nodes": None} | changed  # default nodes depend on the control points
    parts[place.part] = replace(part, **changed)
    changes = {place.field: parts}
    return replace(problem, **changes)


# Arrays of a motion that can be stored, with a unit if all columns share it.
KEEPABLE_ARRAYS = {"times": "s", "durations": "s", "q": "", "v": "", "a": "", "tau": "", "reactions": "", "x": ""}
_MOTION_UNITS = {"T": "s", "solve_seconds": "s"}


class Found(NamedTuple):
    """The ``results`` of a case, the ``reason`` if it failed despite having results, and the known units."""

    results: dict[str, Any]
    reason: str = ""
    units: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Subject:
    """A named function of the parameters of a case, with the ``units`` of quantities by name.

    If the function returns a motion problem, the problem is solved with ``settings``. The results of a motion are its
    key figures, those of ``report``, and the arrays in ``keep``.
    """

    name: str
    function: Callable[..., Any]
    units: Mapping[str, str] = field(default_factory=dict)
    report: Callable[[MotionResult], dict[str, Any]] | None = None
    keep: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the code and data from which cases are computed."""
        function = self.function.problem if isinstance(self.function, Variation) else self.function
        return fingerprint(function, self.settings)

    def check(self, values: Mapping[str, Any], where: str) -> None:
        """Raise ModelError if a case lacks a required parameter or has an unknown one."""
        if isinstance(self.function, Variation):
            for name in values:
                self.function.check(name)
            return
        try:
            signature = inspect.signature(self.function)
        except (TypeError, ValueError):  # some functions written in C have no signature
            return
        try:
            signature.bind(**values)
        except TypeError as error:
            names = [
                parameter.name
                for parameter in signature.parameters.values()
                if parameter.kind is not parameter.VAR_KEYWORD
            ]
            known = f"the parameters of {self.name}: {listing(names)}"
            allowed = known if names else f"none: {self.name} has no parameters"
            raise ModelError(str(error), where=where, allowed=allowed) from None

    @property
    def is_problem(self) -> bool:
        """Whether the function only creates a motion problem, so cases may be solved in batches."""
        return isinstance(self.function, (Variation, NamedProblem))

    def width(self, values: Mapping[str, Any]) -> int:
        """Return the batch size for cases like this one."""
        if not self.is_problem:
            return 1
        try:
            return WIDTHS["cpu"] if can_batch(self.function(**values), self.settings) else 1
        except ModelError:  # reported in the row of the case
            return 1

    def solved(self, made: Sequence[Any]) -> list[Any]:
        """Return the function values of the cases, with problems that a batch solves replaced by their results."""
        results = list(made)
        places = [k for k, one in enumerate(made) if self.is_problem and isinstance(one, MotionProblem)]
        problems = [made[k] for k in places]
        for k, result in zip(places, solve_together(problems, self.settings), strict=True):
            if result is not None:
                results[k] = result
        return results

    def found(self, made: Any) -> Found:
        """Return the results of a case from the function value or its solution."""
        result = made
        if isinstance(made, MotionProblem):
            result = made.solve(**({"check": False} | dict(self.settings)))
        elif isinstance(made, MotionResult):
            warn_between_nodes(made)
        if not isinstance(result, MotionResult):
            return Found(results_of(result))
        if result.status.startswith(CTRL_C):  # the study must not store the solver's partial result
            raise KeyboardInterrupt
        solved = result.is_solved and result.is_feasible
        units = _MOTION_UNITS | {name: KEEPABLE_ARRAYS[name] for name in self.keep}
        return Found(self._figures(result), "" if solved else f"not solved: {result.status}", units)

    def _figures(self, result: MotionResult) -> dict[str, Any]:
        figures: dict[str, Any] = {name: getattr(result, name) for name in ("status", "T", "objective")}
        if len(result.problem.costs) > 1:
            figures |= {f"objective.{part.title}": part.weighted for part in result.parts}
        figures |= {name: result.numbers[name] for name in result.problem.shared}
        names = ("iterations", "max_violation", "max_violation_fine", "solve_seconds")
        figures |= {name: getattr(result, name) for name in names}
        figures |= {} if self.report is None else self.report(result)
        return results_of(figures | {name: np.asarray(getattr(result, name)) for name in self.keep})


def subject_of(
    what: Any, *, keep: Sequence[str] = (), settings: Mapping[str, Any] | None = None, units: Any = None
) -> Subject:
    """Return the subject for a function, a motion problem, its name, or its .toml file."""
    kept = tuple(rows(keep, "sweep", "keep", "a list of names"))
    for name in kept:
        if name not in KEEPABLE_ARRAYS:
            raise ModelError(
                f"contains {name!r}", value=name, argument="keep", where="sweep", allowed=", ".join(KEEPABLE_ARRAYS)
            )
    solve_settings = table(settings, "sweep", "settings")
    SolveSettings.of("sweep", **solve_settings)  # raises here if the settings are invalid
    own_units = {str(name): str(unit) for name, unit in table(units, "sweep", "units").items()}
    common: dict[str, Any] = {"keep": kept, "settings": solve_settings}
    if isinstance(what, (str, Path)):
        if str(what) in NAMED_PROBLEMS:
            named = NAMED_PROBLEMS[str(what)]
            return Subject(named.name, named, named.units | own_units, named.report, **common)
        if not Path(what).is_file():
            allowed = f"a .toml file of a motion problem, or one of {', '.join(NAMED_PROBLEMS)}"
            raise ModelError("there is no such problem", where=str(what), allowed=allowed)
        what = load_problem(what)
    if isinstance(what, MotionProblem):
        return Subject(what.name, Variation(what), own_units, **common)
    if not callable(what):
        allowed = "a function, a motion problem, its .toml file, or its name"
        raise ModelError(f"the subject is a {type(what).__name__}", where="sweep", allowed=allowed)
    name = getattr(what, "__qualname__", type(what).__qualname__)
    return Subject(name, what, own_units, **common)
