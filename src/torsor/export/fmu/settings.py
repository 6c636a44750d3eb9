"""What an FMU is to have, checked before anything is computed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.checks import arrays, indices_of, number
from torsor.base.errors import ModelError
from torsor.export.fmu.quantities import Chosen, chosen
from torsor.mechanism.free import Free, free_numbers
from torsor.robot.robot import Robot
from torsor.simulation.loop_projection import Choices, project_start
from torsor.simulation.setup import normalised

SHORTEST = 1e-9
"""The shortest step of co-simulation (s)."""


@dataclass(frozen=True)
class Settings:
    """What an FMU has; ``torsor.export.fmi`` describes it.

    ``outputs`` are quantities besides q, v, a and tau, ``free`` the parameters and ``paths`` what names them,
    ``external`` the indices of links with a wrench as input.
    """

    outputs: tuple[Chosen, ...]
    free: tuple[Free, ...]
    paths: Sequence[str] | Mapping[str, Any]
    external: tuple[int, ...]
    inverse: bool
    q0: tuple[float, ...]
    v0: tuple[float, ...]
    step: float

    @classmethod
    def of(
        cls,
        robot: Robot,
        names: Sequence[str],
        parameters: Sequence[str] | Mapping[str, Any],
        external: Sequence[str],
        inverse: bool,
        q0: ArrayLike | None,
        v0: ArrayLike | None,
        step: float,
    ) -> "Settings":
        """Return the settings; raise ModelError where one is not allowed, or the robot has no such model."""
        where = robot.name
        if robot.loops and inverse:
            found, fix = "`inverse=True` with closed loops", "torsor.export.c with constrained_inverse_dynamics"
            raise ModelError(found, where=where, allowed="forward dynamics", fix=fix)
        if not robot.nv:
            raise ModelError("the robot has no coordinate", where=where, allowed="one or more joints")
        links = indices_of(external, robot.link_names, where, "moving link")
        if len(set(links)) < len(links):
            raise ModelError("names a link twice", argument="external", where=where, allowed="each once")
        if q0 is None:
            q0 = robot.closed.positions(robot.neutral()) if robot.loops else robot.neutral()
        q = arrays(q0, (robot.nq,), where, "q0")
        v = arrays(np.zeros(robot.nv) if v0 is None else v0, (robot.nv,), where, "v0")
        for array, name in ((q, "q0"), (v, "v0")):
            if array.ndim > 1:
                raise ModelError(f"has shape {array.shape}", argument=name, where=where, allowed="one state")
        length = number(step, where, "step", least=SHORTEST)
        free = free_numbers(robot, parameters) if parameters else ()
        q = normalised(robot, q)
        if robot.loops:
            q, v = project_start(robot, Choices(robot), q, v)
        start = tuple(q.tolist()), tuple(v.tolist())
        return cls(tuple(chosen(robot, names)), free, parameters, tuple(links), inverse, *start, length)
