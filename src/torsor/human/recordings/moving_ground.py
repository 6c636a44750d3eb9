"""Recordings of a treadmill as if the person had walked on the floor."""

from dataclasses import replace
from typing import TypeVar

import numpy as np

from torsor.base.checks import number
from torsor.base.errors import ModelError, describe
from torsor.human.recordings.axes import OPENSIM, rotation
from torsor.human.recordings.forces import GroundForces
from torsor.human.recordings.markers import Markers

FASTEST = 15.0  # m/s: nobody runs faster
Moved = TypeVar("Moved", Markers, GroundForces)


def overground(data: Moved, speed: float) -> Moved:
    """Return markers or ground forces of a treadmill with the ``speed`` (m/s) of its belt added along the way.

    Give markers and forces of a trial the same speed; the belt moves backward for the person. Forces stay, their
    centres of pressure move forward with the time, and corners of plates are left out. Joint moments are the same with
    and without it.

    Example:
        >>> still = Markers(["C7"], [0.0, 0.5], np.zeros((2, 1, 3)), axes="forward up right")
        >>> overground(still, 1.2).position("C7").tolist()
        [[0.0, 0.0, 0.0], [0.6, 0.0, 0.0]]
    """
    if not isinstance(data, Markers | GroundForces):
        found = f"data is a {type(data).__name__}"
        raise ModelError(describe(found, where="overground", allowed="Markers or GroundForces"))
    speed = number(speed, data.source, "speed (m/s)", least=0.0, most=FASTEST)
    forward = rotation(OPENSIM, data.axes, data.source) @ np.array([1.0, 0.0, 0.0])
    way = (speed * data.times)[:, None, None] * forward
    if isinstance(data, Markers):
        return data.with_positions(data.positions + way)
    return replace(data, centers=data.centers + way, corners=None)
