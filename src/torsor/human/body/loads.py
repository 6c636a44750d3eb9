"""Loads that a body carries: a backpack, or a box in both hands."""

from dataclasses import dataclass

import numpy as np

from torsor.base.checks import interval, number, positive
from torsor.human.body.coordinates import SIDES
from torsor.robot.robot import Robot

HEAVIEST = 600.0  # kg: more than anybody has ever lifted


@dataclass(frozen=True)
class Backpack:
    """A backpack of a ``mass`` (kg), its centre of mass ``behind`` (m) the upper trunk.

    ``height`` (m) is that of the centre of mass above the lowest joint of the upper trunk; ``size`` (m) is the edge of
    a homogeneous cube with the same inertia.

    Example:
        >>> round(Backpack(15.0).on(torsor.library.human()).mass, 9)
        88.0
    """

    mass: float
    behind: float = 0.2
    height: float = 0.0
    size: float = 0.3

    def __post_init__(self) -> None:
        number(self.mass, "backpack", "mass", above=0.0, most=HEAVIEST)
        for name in ("behind", "size"):
            positive(getattr(self, name), "backpack", name)
        number(self.height, "backpack", "height")

    def on(self, body: Robot) -> Robot:
        """Return the body with this load."""
        inertia = self.mass * self.size**2 / 6 * np.eye(3)
        return body.with_payload("spine4", self.mass, [0.0, self.height, -self.behind], inertia)


@dataclass(frozen=True)
class Box:
    """A box of a ``mass`` (kg), held by both hands on its sides, ``width`` (m) apart.

    Each hand carries half of the mass, as a point mass. While walking, the box is held between ``near`` and ``far`` (m)
    in front of the upper trunk, and between ``low`` and ``high`` (m) above the lowest joint of the upper trunk.

    Example:
        >>> round(Box(8.0).on(torsor.library.human()).mass, 9)
        81.0
    """

    mass: float
    width: float = 0.35
    near: float = 0.2
    far: float = 0.5
    low: float = -0.4
    high: float = 0.0

    def __post_init__(self) -> None:
        number(self.mass, "box", "mass", above=0.0, most=HEAVIEST)
        positive(self.width, "box", "width")
        interval((self.near, self.far), "box", "near, far")
        interval((self.low, self.high), "box", "low, high")

    def on(self, body: Robot) -> Robot:
        """Return the body with this load."""
        for side in SIDES:
            body = body.with_payload(f"{side}_knuckles", self.mass / 2)
        return body
