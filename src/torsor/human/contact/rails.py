"""Rails that the hands hold: where they are, and how strongly they can push."""

from dataclasses import dataclass

from torsor.base.checks import number, positive
from torsor.human.body.coordinates import SIDES


@dataclass(frozen=True)
class Rails:
    """Two rails or armrests, one for each hand, whose forces on the hands are results of the optimisation.

    Each hand is at a ``height`` (m) above the ground and ``ahead`` (m) of the heels, ``apart`` (m) from the other hand.
    The force on each hand is at most the fraction ``share`` of the weight. A hand that rests on its rail is pushed
    upwards, within a cone of ``friction``; with ``friction=None`` it grips the rail, and the force has any direction.
    In a task the hands hold the rails until the fraction ``until`` of the duration (when they sit down, from 1 minus
    this fraction on), and are free at other times. In a walk the hand of the side that swings holds its rail at that
    place, from the tread and the heel of the leading foot, during the whole step, while the other hand moves on.

    Example:
        >>> Rails(height=0.65).place("right")
        (-0.25, 0.65, 0.0)
    """

    height: float = 0.65
    ahead: float = 0.0
    apart: float = 0.5
    share: float = 0.25
    friction: float | None = 0.5
    until: float = 0.6

    def __post_init__(self) -> None:
        positive(self.height, "rails", "height")
        positive(self.apart, "rails", "apart")
        number(self.ahead, "rails", "ahead")
        number(self.share, "rails", "share", above=0.0, most=1.0)
        number(self.until, "rails", "until", above=0.0, most=1.0)
        if self.friction is not None:
            positive(self.friction, "rails", "friction")

    def place(self, side: str) -> tuple[float, float, float]:
        """Return where the knuckles of a hand are (m), in base axes."""
        half = self.apart / 2
        return (-half if side == SIDES[0] else half, self.height, self.ahead)
