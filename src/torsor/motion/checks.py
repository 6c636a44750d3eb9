"""What the parts of a motion problem have to be, said in words where they are something else."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np

from torsor.errors import ModelError, describe
from torsor.motion.terms.ends import Ends, _State
from torsor.motion.terms.term import Constraint, Cost, Number
from torsor.motion.transcription.paths import Path
from torsor.motion.transcription.phase import Phase, is_phase
from torsor.motion.transcription.splines import finite_numbers
from torsor.parallel import ParallelRobot
from torsor.robot.parametric import Parametric
from torsor.robot.robot import Robot

if TYPE_CHECKING:
    from torsor.motion.problem import MotionProblem

__all__ = ["check_number", "check_parts", "check_splines", "in_phases", "several"]


def several(given: Any) -> tuple[Any, ...]:
    """Return parts that are given alone, or several of them.

    Example:
        >>> several("one"), several(["one", "two"])
        (('one',), ('one', 'two'))
    """
    return tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (given,)


def in_phases(condition: Any, phases: Sequence[Phase]) -> Any:
    """Return a condition at an end with the index of its phase in place of the name.

    Example:
        >>> from torsor.motion import Start
        >>> in_phases(Start(q=0.0, phase="swing"), [Phase(1.0), Phase(1.0, name="swing")]).phase
        1
    """
    if not isinstance(condition, _State) or not isinstance(condition.phase, str):
        return condition
    own = [index for index, phase in enumerate(phases) if is_phase(condition.phase, index, phase)]
    return replace(condition, phase=own[0]) if own else condition


def check_parts(problem: "MotionProblem") -> None:
    """Refuse parts of a problem that are in the wrong place."""
    where, robot, phases = str(problem.name), problem.robot, problem.stages
    if not isinstance(robot, (Robot, Parametric)):
        fix = "give robot.as_robot()" if isinstance(robot, ParallelRobot) else ""
        raise ModelError(describe(f"robot is {robot!r}", where=where, allowed="a Robot, or a parametric one", fix=fix))
    if not phases:
        raise ModelError(describe("no phase is given", where=where, fix="give one or more"))
    kinds: list[tuple[str, Any, tuple[type, ...], str]] = [
        ("name", [problem.name], (str,), "a string"),
        ("phases", phases, (Phase,), "a Phase, or several"),
        ("objective", problem.costs, (Cost,), "terms with a weight, as motion.Time()"),
        (
            "constraints",
            problem.conditions,
            (Constraint, Ends),
            "terms with bounds, as motion.Torques(), or about ends",
        ),
        ("path", [problem.path], (Path, NoneType), "a Path"),
        ("numbers", [problem.numbers], (Mapping,), "{name: motion.Number(start, lower, upper)}"),
        ("settings", [problem.settings], (Mapping,), "{setting of solve: value}"),
        (
            "relaxation_order",
            [problem.relaxation_order, *several(problem.relaxation_order)],
            (list, tuple),
            "groups of names of constraints",
        ),
    ]
    for what, given, types, allowed in kinds:
        for each in given:
            if not isinstance(each, types):
                raise ModelError(describe(f"{what}: {each!r}", where=where, allowed=allowed))
    titles = [each.title for each in problem.conditions]
    for name in (name for group in problem.relaxation_order for name in group):
        if name not in titles:
            raise ModelError(describe(f"relaxation_order names {name!r}", where=where, allowed=", ".join(titles)))
    names = [phase.name for phase in phases if phase.name]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ModelError(describe(f"two phases are called {twice!r}", where=where, fix="give each a name of its own"))


def check_splines(where: str, phases: Sequence[Phase], names: Sequence[str]) -> None:
    """Refuse splines of profiles that there are not."""
    for index, phase in enumerate(phases):
        for name in phase.own or {}:
            if name not in names:
                found = f"phase {phase.name or index!r}: own names {name!r}"
                raise ModelError(describe(found, where=where, allowed=", ".join(names)))


def check_number(number: Any, where: str) -> None:
    """Refuse a shared number without a start, or with bounds that do not rise."""
    if not isinstance(number, Number):
        raise ModelError(describe(f"{number!r}", where=where, allowed="a Number(start, lower, upper)"))
    bounds = np.array([each for each in number[1:] if isinstance(each, (int, float))], dtype=float)
    if finite_numbers([number.start]) is None or len(bounds) != 2 or not bounds[0] <= bounds[1]:
        raise ModelError(describe(f"{number!r}", where=where, allowed="a finite start, and lower <= upper"))
    if bounds[0] == bounds[1] and not np.isfinite(bounds[0]):
        raise ModelError(describe(f"{number!r}", where=where, allowed="a finite value where lower == upper"))
