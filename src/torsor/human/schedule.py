"""When which part of which foot is on the ground, over one step, and how the feet share what the ground gives.

A step begins when the heel of the right foot strikes and ends when that of the left does. x points to the left, y up, z
forward; the right heel stands at z = 0, and the left foot is a step behind it.
"""

from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca
import numpy as np

from torsor.errors import ModelError, describe

__all__ = ["Stance", "Step"]


class Stance(NamedTuple):
    """A foot on the ground from the first to the last share of a step: which points of it stand, and on which line.

    ``points`` are landmarks without the side, each with the axes ("xyz") along which it is held.
    """

    side: str
    first: float
    last: float
    points: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Step:
    """One step: ``length`` and ``width`` (m), ``speed`` (m/s), and shares of its time at which contacts change.

    The foot that struck stands on its heel until ``flat``, then on heel and ball until ``heel_off``, then on ball and
    toes. The foot behind stands on its forefoot until ``flat``, on the tips of its toes until ``toe_off``, and swings
    then. Both carry from 0 to ``toe_off``: the share of the foot in front rises smoothly from 0 to 1. ``knee`` is when
    the swinging knee is bent the most.

    Example:
        >>> Step().duration
        0.5
        >>> [stance.side for stance in Step().stances]
        ['right', 'right', 'right', 'left', 'left']
    """

    length: float = 0.6
    width: float = 0.1
    speed: float = 1.2
    flat: float = 0.12
    toe_off: float = 0.24
    heel_off: float = 0.62
    knee: float = 0.48

    def __post_init__(self) -> None:
        for name in ("length", "width", "speed"):
            value = getattr(self, name)
            if not (isinstance(value, (int, float)) and 0 < value < np.inf):
                raise ModelError(describe(f"{name} is {value!r}", where="step", allowed="a finite number above 0"))
        if not 0 < self.flat < self.toe_off < self.heel_off < 1:
            found = f"flat {self.flat}, toe_off {self.toe_off}, heel_off {self.heel_off}"
            raise ModelError(describe(found, where="step", allowed="shares that rise from 0 to 1"))

    @property
    def duration(self) -> float:
        """Time of the step (s)."""
        return self.length / self.speed

    @property
    def stances(self) -> tuple[Stance, ...]:
        """What stands when."""
        whole = (("heel", "xyz"), ("ball", "xy"), ("ball_medial", "y"))
        fore = (("ball", "xyz"), ("toe", "xy"), ("toe_medial", "y"))
        return (
            Stance("right", 0.0, self.flat, (("heel", "xyz"),)),
            Stance("right", self.flat, self.heel_off, whole),
            Stance("right", self.heel_off, 1.0, fore),
            Stance("left", 0.0, self.flat, fore),
            Stance("left", self.flat, self.toe_off, (("toe", "xyz"),)),
        )

    def share(self, s: ca.SX) -> ca.SX:
        """Return the share of the ground's force that the foot in front takes: smooth, 1 once the other has left."""
        u = ca.fmin(s / self.toe_off, 1)
        return u * u * (3 - 2 * u)
