"""Which joints are too weak for a motion, and by how much: the reason why a load cannot be lifted."""

from typing import NamedTuple

import numpy as np

from torsor.base.checks import instance_of
from torsor.human.body.trunk_strength import SPINE
from torsor.human.terms.forces import Torques, TrunkTorques
from torsor.motion import MotionError, MotionResult
from torsor.motion.results.solution import time_of

NAMED = 4  # joints that a message names at most
SLIGHT = 1e-3  # relative excess of a strength that is no weakness
FIX = "a smaller load, nearer to the body, more time, or a stronger person"


class Weakness(NamedTuple):
    """A joint whose strength is exceeded most at a ``time`` (s): its ``torque`` (N m) and its ``strength`` (N m)."""

    joint: str
    torque: float
    strength: float
    time: float

    @property
    def ratio(self) -> float:
        """The torque divided by the strength."""
        return self.torque / self.strength

    def __str__(self) -> str:
        have = f"and has {self.strength:.0f} N m ({self.ratio:.2f} times its strength)"
        return f"{self.joint} needs {self.torque:.0f} N m at {self.time:.2f} s {have}"


def weaknesses(result: MotionResult) -> list[Weakness]:
    """Return the joints that are too weak for a motion of a task, the weakest first; none for a feasible motion.

    Torques that exceed a strength are those of ``problem.solve(check=False)`` or of ``MotionError.result``.

    Example:
        >>> weaknesses(3)
        Traceback (most recent call last):
        torsor.ModelError: weaknesses: result is 3; allowed: the result of a task of torsor.human
    """
    instance_of(result, MotionResult, "weaknesses", "result", allowed="the result of a task of torsor.human")
    program, x = result.problem.program, result.x
    terms, values = _strengths(result), program.value(x)[1]
    outside = np.maximum(program.row_lower - values, values - program.row_upper) * program.scales
    found: dict[str, Weakness] = {}
    for row, relative, excess in zip(program.rows, values * program.scales, outside, strict=True):
        term = terms.get(row.title)
        if term is None or excess <= SLIGHT:
            continue
        joint, time = row.label.split()[0], time_of(program, x, row) or 0.0
        strength = _strength(term, joint, float(relative), _posture(result, time))
        each = Weakness(joint, abs(float(relative)) * strength, strength, time)
        found[joint] = max(found.get(joint, each), each, key=lambda one: one.ratio)
    return sorted(found.values(), key=lambda each: -each.ratio)


def _posture(result: MotionResult, time: float) -> dict[str, float]:
    """Return the positions of all coordinates at a time."""
    q = [float(np.interp(time, result.times, column)) for column in result.q.T]
    return dict(zip(result.robot.coordinate_names, q, strict=True))


def _strength(term: Torques | TrunkTorques, joint: str, relative: float, posture: dict[str, float]) -> float:
    """Return the strength (N m) that a relative torque, which is out of its bounds, is a multiple of."""
    if isinstance(term, TrunkTorques):
        flexion = sum(posture[name] for name in SPINE)
        return float(term.trunk.extend(flexion) if relative < 0 else term.trunk.flex(flexion))
    names = term.body.coordinate_names
    return float(term.body.effort_limit[names.index(joint)]) * term.strength.get(joint, 1.0)


def explained(error: MotionError) -> MotionError | None:
    """Return the error of a task for which joints are too weak, in words; None if that is not the reason."""
    result = error.result
    weak = [] if result is None else weaknesses(result)
    if result is None or not weak or not set(error.conflict) <= _strengths(result).keys():
        return None
    more = f"; {len(weak) - NAMED} more joints are too weak" if len(weak) > NAMED else ""
    found = (
        f"no motion near the start satisfies {', '.join(error.conflict)}: in the nearest one that was found "
        f"{', '.join(map(str, weak[:NAMED]))}{more}"
    )
    name = result.problem.name
    fix = f"{FIX}; human.largest_lift finds the largest load" if name == "lift" else FIX
    made = MotionError(found, where=name, fix=fix)
    made.result, made.conflict, made.violation = result, error.conflict, error.violation
    return made


def _strengths(result: MotionResult) -> dict[str, Torques | TrunkTorques]:
    """Return the terms of a problem that bound torques, by title."""
    return {term.title: term for term in result.problem.terms if isinstance(term, Torques | TrunkTorques)}
