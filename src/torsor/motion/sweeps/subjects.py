"""What a sweep computes: a function, a motion problem with a name, in a file or in Python, as one picklable object."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from torsor.base.checks import rows, table
from torsor.base.errors import ModelError, listing
from torsor.motion import MotionProblem, MotionResult, load_problem
from torsor.motion.declaration import NAMED_PROBLEMS
from torsor.motion.solve import CTRL_C, SolveSettings
from torsor.motion.sweeps.values import results_of
from torsor.motion.sweeps.variations import Variation

# Arrays of a motion that can be kept, and their units where all columns have the same.
KEPT = {"times": "s", "durations": "s", "q": "", "v": "", "a": "", "tau": "", "reactions": "", "x": ""}
_MOTION = {"T": "s", "solve_seconds": "s"}


class Found(NamedTuple):
    """The ``results`` of a case, the ``reason`` if it counts as failed although it has results, and known units."""

    results: dict[str, Any]
    reason: str = ""
    units: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Subject:
    """A function of the parameters of a case, with its ``name`` and units by name.

    If the function returns a motion problem, it is solved with ``settings``. The results of a motion are figures,
    those of ``report`` and the arrays of ``keep`` besides.
    """

    name: str
    function: Callable[..., Any]
    units: Mapping[str, str] = field(default_factory=dict)
    report: Callable[[MotionResult], dict[str, Any]] | None = None
    keep: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def check(self, values: Mapping[str, Any], where: str) -> None:
        """Raise ModelError where a case has a parameter that the function does not take, or lacks one."""
        if isinstance(self.function, Variation):
            for name in values:
                self.function.check(name)
            return
        try:
            signature = inspect.signature(self.function)
        except (TypeError, ValueError):  # some functions written in C tell nothing
            return
        try:
            signature.bind(**values)
        except TypeError as error:
            names = [each.name for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
            allowed = (
                f"the parameters of {self.name}: {listing(names)}" if names else f"none, as {self.name} takes none"
            )
            raise ModelError(str(error), where=where, allowed=allowed) from None

    def run(self, values: Mapping[str, Any]) -> Found:
        """Return the results of a case."""
        found = self.function(**values)
        if isinstance(found, MotionProblem):
            found = found.solve(**({"check": False} | dict(self.settings)))
        if not isinstance(found, MotionResult):
            return Found(results_of(found))
        if found.status.startswith(CTRL_C):  # the solver stops with a result; the study must not take it for one
            raise KeyboardInterrupt
        solved = found.is_solved and found.is_feasible
        return Found(self._figures(found), "" if solved else f"not solved: {found.status}", _MOTION | self._kept_units)

    @property
    def _kept_units(self) -> dict[str, str]:
        return {name: KEPT[name] for name in self.keep}

    def _figures(self, result: MotionResult) -> dict[str, Any]:
        found: dict[str, Any] = {
            "status": result.status,
            "T": result.T,
            "objective": result.objective,
            **{f"objective.{part.title}": part.weighted for part in result.parts if len(result.parts) > 1},
            **{name: result.numbers[name] for name in result.problem.shared},
            "iterations": result.iterations,
            "max_violation": result.max_violation,
            "max_violation_fine": result.max_violation_fine,
            "solve_seconds": result.solve_seconds,
        }
        found |= {} if self.report is None else self.report(result)
        return results_of(found | {name: np.asarray(getattr(result, name)) for name in self.keep})


def subject_of(
    what: Any, *, keep: Sequence[str] = (), settings: Mapping[str, Any] | None = None, units: Any = None
) -> Subject:
    """Return what is swept: a function, a motion problem, the name of one, or its .toml file.

    Example:
        >>> subject_of("walk").name, subject_of(max).name
        ('walk', 'max')
    """
    kept = tuple(rows(keep, "sweep", "keep", "a list of names"))
    for name in kept:
        if name not in KEPT:
            raise ModelError(f"names {name!r}", value=name, argument="keep", where="sweep", allowed=", ".join(KEPT))
    given = table(settings, "sweep", "settings")
    SolveSettings.of("sweep", **given)  # checks them before the first case
    own = {str(name): str(unit) for name, unit in table(units, "sweep", "units").items()}
    common: dict[str, Any] = {"keep": kept, "settings": given}
    if isinstance(what, (str, Path)):
        if str(what) in NAMED_PROBLEMS:
            named = NAMED_PROBLEMS[str(what)]
            return Subject(named.name, named, named.units | own, named.report, **common)
        if not Path(what).is_file():
            allowed = f"a .toml file of a motion problem, or one of {', '.join(NAMED_PROBLEMS)}"
            raise ModelError("no such problem", where=str(what), allowed=allowed)
        what = load_problem(what)
    if isinstance(what, MotionProblem):
        return Subject(what.name, Variation(what), own, **common)
    if not callable(what):
        allowed = "a function, a motion problem, its .toml file, or its name"
        raise ModelError(f"there is a {type(what).__name__} to compute", where="sweep", allowed=allowed)
    name = getattr(what, "__qualname__", type(what).__qualname__)
    return Subject(name, what, own, **common)
