"""What a body carries: a pack on its back, or a box in its hands."""

from dataclasses import dataclass

import numpy as np

from torsor.checks import positive
from torsor.human.contact.support import SIDES
from torsor.human.given import number, pair
from torsor.robot.robot import Robot

__all__ = ["Backpack", "Box"]


@dataclass(frozen=True)
class Backpack:
    """A pack of so many kg whose centre is ``behind`` (m) the upper trunk, at ``height`` (m) above its lowest joint.

    ``size`` (m) is that of a cube with its moments of inertia.

    Example:
        >>> import torsor
        >>> round(Backpack(15.0).on(torsor.library.human()).mass, 9)
        88.0
    """

    mass: float
    behind: float = 0.2
    height: float = 0.0
    size: float = 0.3

    def __post_init__(self) -> None:
        for name in ("mass", "behind", "size"):
            positive(getattr(self, name), "backpack", name)
        number(self.height, "height", "backpack")

    def on(self, body: Robot) -> Robot:
        """Return a body that carries it."""
        inertia = self.mass * self.size**2 / 6 * np.eye(3)
        return body.with_payload("spine4", self.mass, [0.0, self.height, -self.behind], inertia)


@dataclass(frozen=True)
class Box:
    """A box of so many kg, held by both hands on its sides, ``width`` (m) apart; each hand carries half, as a point.

    While walking it is held between ``near`` and ``far`` (m) before the upper trunk, between ``low`` and ``high`` (m)
    above the lowest joint of that.

    Example:
        >>> import torsor
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
        for name in ("mass", "width"):
            positive(getattr(self, name), "box", name)
        pair((self.near, self.far), "near, far", "box")
        pair((self.low, self.high), "low, high", "box")

    def on(self, body: Robot) -> Robot:
        """Return a body that carries it."""
        for side in SIDES:
            body = body.with_payload(f"{side}_knuckles", self.mass / 2)
        return body
