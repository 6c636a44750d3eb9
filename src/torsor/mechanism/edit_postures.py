"""Edits of postures: named configurations that are kept with a mechanism."""

from dataclasses import replace
from typing import TypeVar

from numpy.typing import ArrayLike

from torsor.base.checks import frozen_array, name_of
from torsor.base.errors import ModelError, describe
from torsor.mechanism.mechanism import Mechanism

M = TypeVar("M", bound=Mechanism)


def with_posture(robot: M, name: str, q: ArrayLike) -> M:
    """Return the robot with a named configuration q (nq,)."""
    name_of(name, "posture", robot.name)
    where = f"{robot.name}: posture {name!r}"
    values = frozen_array(q, (robot.nq,), where, "q")
    positions = dict(zip(robot.position_names, values.tolist(), strict=True))
    return replace(robot, posture_table={**robot.posture_table, name: positions})


def without_posture(robot: M, name: str) -> M:
    """Return the robot without a named configuration."""
    if not isinstance(name, str) or name not in robot.posture_table:
        allowed = ", ".join(map(repr, robot.posture_table)) or "none: it has no postures"
        raise ModelError(describe(f"no posture {name!r}", where=robot.name, allowed=allowed))
    return replace(robot, posture_table={key: q for key, q in robot.posture_table.items() if key != name})
