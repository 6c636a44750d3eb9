"""Declarations of named problems: their arguments in Python, sweeps, TOML files and on the command line."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from torsor.base.checks import number
from torsor.base.registry import names, register, registered
from torsor.motion.many import Origin
from torsor.motion.problem import MotionProblem, MotionResult


@dataclass(frozen=True, eq=False)
class Argument:
    """An argument of one or more named problems, which share this object.

    ``kind`` is float, int, str, bool, dict (numbers by name) or tuple (intervals by name). ``count`` is the length of a
    list, "+" for any length, or "1+" for one shared number or a list. Numbers are bounded by ``least`` and ``most``
    (inclusive) or ``above`` and ``below`` (exclusive). ``unit`` is the unit in Python, sweeps and files. If ``degrees``
    is True, values on the command line are in degrees. The command-line option is ``--name`` unless ``option`` is set.
    ``data`` is the name of the problem data that the argument sets, such as "End.q".
    """

    name: str
    kind: type
    help: str
    unit: str = ""
    metavar: str | tuple[str, ...] | None = None
    choices: tuple[Any, ...] = ()
    count: int | str | None = None
    option: str = ""
    degrees: bool = False
    bounds: Mapping[str, Any] = field(default_factory=dict)
    data: str = ""

    @property
    def option_name(self) -> str:
        """The option name, with underscores."""
        return self.option or self.name

    def check(self, value: Any, where: str, what: str = "") -> None:
        """Raise ModelError if a number is out of bounds."""
        if self.bounds and not isinstance(value, str):  # text, such as "free", is checked by the problem
            number(value, where, what or self.name, **self.bounds)


@dataclass(frozen=True, eq=False)
class NamedProblem:
    """A named motion problem; calling it with values of its ``arguments`` returns a ``MotionProblem``.

    Missing values default to those of ``function``. ``report`` returns key figures of a result beyond those of all
    motions, and ``figures`` contains their units.
    """

    name: str
    function: Callable[..., MotionProblem]
    arguments: tuple[Argument, ...] = ()
    figures: Mapping[str, str] = field(default_factory=dict)
    report: Callable[[MotionResult], dict[str, Any]] | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        defaults = self.defaults or defaults_of(self.function)
        own_defaults = {argument.name: defaults.get(argument.name) for argument in self.arguments}
        parameters = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=own_defaults[name]) for name in own_defaults
        ]
        object.__setattr__(self, "defaults", own_defaults)
        object.__setattr__(self, "__signature__", inspect.Signature(parameters))
        register("problem", self.name, self)

    def __call__(self, *values: Any, **given: Any) -> MotionProblem:
        """Return the problem; further arguments of ``function`` are accepted."""
        for argument in self.arguments:
            if given.get(argument.name) is not None:
                argument.check(given[argument.name], self.name)
        problem = self.function(*values, **given)
        data = {argument.name: argument.data for argument in self.arguments if argument.data}
        problem.__dict__["origin"] = Origin(self.function, values, given, data)
        return problem

    def __reduce__(self) -> tuple[Any, ...]:
        return NAMED_PROBLEMS.__getitem__, (self.name,)

    @property
    def units(self) -> dict[str, str]:
        """Units of the arguments and figures that have one, by name."""
        return {argument.name: argument.unit for argument in self.arguments if argument.unit} | dict(self.figures)


def defaults_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the default values of a function by argument name."""
    result = inspect.signature(function).parameters.values()
    return {parameter.name: parameter.default for parameter in result if parameter.default is not parameter.empty}


class _NamedProblems(Mapping[str, NamedProblem]):
    """All registered problems by name; the package that defines a problem is imported on first use."""

    def __getitem__(self, name: str) -> NamedProblem:
        result: NamedProblem | None = registered("problem", name)
        if result is None:
            raise KeyError(name)
        return result

    def __contains__(self, name: object) -> bool:
        return name in names("problem")

    def __iter__(self) -> Iterator[str]:
        return iter(names("problem"))

    def __len__(self) -> int:
        return len(names("problem"))

    def __reduce__(self) -> str:
        return "NAMED_PROBLEMS"


NAMED_PROBLEMS = _NamedProblems()
