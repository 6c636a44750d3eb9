"""The samples of a motion: plain data that trajectories, files and figures share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Array
from torsor.robot.robot import Robot


class Crossings(NamedTuple):
    """The sign changes of an event: ``times`` (K,) in s, states ``q`` (K, nq) and ``v`` (K, nv), and their rollouts.

    ``rollouts`` (K, B) has the index of the rollout in the B leading axes of the simulation; B is 0 for a single one.
    """

    times: Array
    q: Array
    v: Array
    rollouts: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Samples:
    """The fields of a ``Trajectory``, which describes them."""

    robot: Robot
    times: Array
    q: Array
    v: Array
    a: Array
    tau: Array
    status: str = "done"
    events: tuple[Crossings, ...] = ()
    external: Array | None = None
    held: tuple[bool, bool] = (False, False)
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.times)
