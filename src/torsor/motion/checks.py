"""Input validation of the parts of a motion problem."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from torsor.base.checks import finite_vector
from torsor.base.errors import ModelError, describe
from torsor.motion.terms.ends import EndState
from torsor.motion.terms.term import Number
from torsor.motion.transcription.phase import Phase, is_phase
from torsor.robot.parallel import ParallelRobot
from torsor.robot.parametric import Parametric
from torsor.robot.robot import Robot


def with_phase_index(condition: Any, phases: Sequence[Phase]) -> Any:
    """Return a condition at an end of a phase with the name of the phase replaced by its index.

    Example:
        >>> from torsor.motion import Start
        >>> with_phase_index(Start(q=0.0, phase="swing"), [Phase(1.0), Phase(1.0, name="swing")]).phase
        1
    """
    if not isinstance(condition, EndState) or not isinstance(condition.phase, str):
        return condition
    own = [index for index, phase in enumerate(phases) if is_phase(condition.phase, index, phase)]
    return replace(condition, phase=own[0]) if own else condition


def check_types(where: str, what: str, given: Iterable[Any], types: tuple[type, ...], allowed: str) -> None:
    """Raise ModelError where one of several values has another type."""
    for each in given:
        if not isinstance(each, types):
            raise ModelError(describe(f"{what}: {each!r}", where=where, allowed=allowed))


def check_robot(robot: Any, where: str) -> None:
    """Raise ModelError where ``robot`` is neither a Robot nor a parametric one."""
    if not isinstance(robot, (Robot, Parametric)):
        fix = "give robot.as_robot()" if isinstance(robot, ParallelRobot) else ""
        raise ModelError(describe(f"robot is {robot!r}", where=where, allowed="a Robot, or a parametric one", fix=fix))


def check_phases(phases: Sequence[Phase], where: str) -> None:
    """Raise ModelError where there is no phase, or two phases have the same name."""
    if not phases:
        raise ModelError(describe("no phase is given", where=where, fix="give one or more"))
    if len(phases) > 1 and any(phase.clock for phase in phases):
        raise ModelError(describe(f"{len(phases)} phases with a clock", where=where, allowed="a clock of one phase"))
    names = [phase.name for phase in phases if phase.name]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ModelError(describe(f"two phases are called {twice!r}", where=where, fix="give each a name of its own"))


def check_splines(where: str, phases: Sequence[Phase], names: Sequence[str]) -> None:
    """Raise ModelError where ``Phase.own`` names a profile that does not exist."""
    for index, phase in enumerate(phases):
        for name in phase.own or {}:
            if name not in names:
                found = f"phase {phase.name or index!r}: own names {name!r}"
                raise ModelError(describe(found, where=where, allowed=", ".join(names)))


def check_number(number: Any, where: str) -> None:
    """Raise ModelError where a shared number has no finite start, or its bounds are not lower <= upper."""
    if not isinstance(number, Number):
        raise ModelError(describe(f"{number!r}", where=where, allowed="a Number(start, lower, upper)"))
    bounds = np.array([each for each in number[1:] if isinstance(each, (int, float))], dtype=float)
    if finite_vector([number.start]) is None or len(bounds) != 2 or not bounds[0] <= bounds[1]:
        raise ModelError(describe(f"{number!r}", where=where, allowed="a finite start, and lower <= upper"))
    if bounds[0] == bounds[1] and not np.isfinite(bounds[0]):
        raise ModelError(describe(f"{number!r}", where=where, allowed="a finite value where lower == upper"))
