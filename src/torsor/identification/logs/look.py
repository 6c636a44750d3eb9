"""What a first look at a log found: suspicious things, signals, and what can be identified."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from torsor.base.arrays import Array
from torsor.identification.logs.delays import Delay
from torsor.identification.logs.excited import Excited
from torsor.identification.logs.findings import LogFinding
from torsor.identification.logs.log import Log
from torsor.identification.logs.preparing import Prepared
from torsor.robot.robot import Robot


class Signal(NamedTuple):
    """One coordinate of a log: spans of q, largest v, a and force, the step and the noise of the encoder, SI units.

    ``force`` is all that acts, with measured wrenches of the environment; ``left`` is the part of it (%, as root mean
    square, less its mean) that the model leaves, whatever its parameters are. Spans, step and noise of a coordinate
    without a position of its own, as of a quaternion, are NaN.
    """

    name: str
    least: float
    most: float
    v: float
    a: float
    force: float
    step: float
    noise: float
    left: float


@dataclass(frozen=True, eq=False)
class Look:
    """What a log shows: ``findings`` that are suspicious, ``notes`` of what was done, ``signals`` of each coordinate.

    ``excited`` are the base parameters with the deviations to expect, ``delay`` that of the forces (s). They are None
    where a mistake must be corrected first. ``fit`` (T, n) are forces of the model at the times of the longest segment.
    """

    robot: Robot
    logs: tuple[Log, ...]
    findings: tuple[LogFinding, ...]
    notes: tuple[str, ...]
    signals: tuple[Signal, ...] = ()
    prepared: Prepared | None = None
    excited: Excited | None = None
    delay: Delay | None = None
    fit: Array | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of the findings, each once."""
        return tuple(dict.fromkeys(each.kind for each in self.findings))
