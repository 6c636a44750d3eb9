"""Steps of walking: how long, wide and fast, and when which part of which foot is on the ground.

A step begins when the heel of the right foot strikes and ends when that of the left does; the right heel stands at
z = 0, and the left foot is a step behind it. A second step is its mirror image.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from torsor.checks import positive
from torsor.errors import ModelError, describe
from torsor.human.contact.support import (
    FLAT_ENDS,
    FORE,
    FORE_ENDS,
    FOREFOOT,
    LONG,
    MEET,
    PRESSED,
    SIDES,
    TIP,
    WHOLE,
    WIDE,
    Carried,
    Foot,
    Stance,
    Support,
)
from torsor.motion.terms.term import TOUCHING

__all__ = ["Step", "Walk"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Step:
    """One step: ``length`` and ``width`` (m), ``speed`` (m/s), and shares of its time at which contacts change.

    The foot that struck stands on its heel until ``flat``, then on heel and ball until ``heel_off``, then on ball and
    toes. The foot behind stands on its forefoot until ``ball_off``, on the tips of its toes until ``toe_off``, and
    swings then. Both carry from 0 to ``toe_off``: the share of the foot in front rises smoothly from 0 to 1. ``knee``
    is when the swinging knee is bent the most. While both carry, the foot behind pushes forward and the one in front
    brakes: with a ``push`` of 1 the lines of their forces meet at the height of the centre of mass, with 0 they are
    parallel.

    Example:
        >>> Step().duration
        0.5
        >>> Step().share(np.array([0.0, 0.12, 0.24, 1.0])).tolist()
        [0.0, 0.5, 1.0, 1.0]
    """

    length: float = 0.6
    width: float = 0.1
    speed: float = 1.2
    flat: float = 0.16
    toe_off: float = 0.24
    heel_off: float = 0.62
    knee: float = 0.42
    ball_off: float = 0.06
    push: float = 1.0

    def __post_init__(self) -> None:
        for name in ("length", "width", "speed"):
            positive(getattr(self, name), "step", name)
        shares = [self.flat, self.toe_off, self.heel_off, self.knee, self.ball_off]
        if not all(isinstance(each, (int, float)) for each in shares):
            raise ModelError(describe(f"shares are {shares}", where="step", allowed="numbers"))
        if not 0 < self.flat < self.toe_off < self.heel_off < 1:
            found = f"flat {self.flat}, toe_off {self.toe_off}, heel_off {self.heel_off}"
            raise ModelError(describe(found, where="step", allowed="shares that rise from 0 to 1"))
        if not 0 < self.ball_off < self.toe_off:
            allowed = f"a share between 0 and toe_off ({self.toe_off})"
            raise ModelError(describe(f"ball_off is {self.ball_off}", where="step", allowed=allowed))
        if isinstance(self.push, bool) or not isinstance(self.push, (int, float)) or not 0 <= self.push < np.inf:
            raise ModelError(describe(f"push is {self.push!r}", where="step", allowed="a number, 0 or more"))
        if not self.toe_off < self.knee < 1:
            allowed = f"a share between toe_off ({self.toe_off}) and 1"
            raise ModelError(describe(f"knee is {self.knee}", where="step", allowed=allowed))

    @property
    def duration(self) -> float:
        """Time of the step (s)."""
        return self.length / self.speed

    def share(self, s: Array) -> Array:
        """Return the share of the ground's force that the foot in front takes: smooth, 1 once the other has left."""
        u = np.clip(np.asarray(s, dtype=float) / self.toe_off, 0.0, 1.0)
        return u * u * (3 - 2 * u)

    @property
    def stances(self) -> tuple[Stance, ...]:
        """What stands when."""
        right, left = (-self.width / 2, 0.0), (self.width / 2, -self.length)
        return (
            Stance("right", 0.0, self.flat, (("heel", "xyz"),), right),
            Stance("right", self.flat, self.heel_off, WHOLE, right),
            Stance("right", self.heel_off, 1.0, FORE, right),
            Stance("left", 0.0, self.ball_off, FORE, left),
            Stance("left", self.ball_off, self.toe_off, (("toe", "xyz"),), left),
        )

    def carried(self, s: Array, foot: Foot) -> Carried:
        """Return how the feet carry at shares s (K,) of the step."""
        share, x, long = self.share(s), self.width / 2, foot.length
        ahead = PRESSED * long * np.minimum(s / self.toe_off, 1.0)
        behind = (FOREFOOT + (TIP - FOREFOOT) * np.minimum(s / self.ball_off, 1.0)) * long - self.length
        right, left = (np.stack([np.full(len(s), at), z], axis=1) for at, z in ((-x, ahead), (x, behind)))
        both, flat_foot = s <= self.toe_off + TOUCHING, s <= self.heel_off + TOUCHING
        toes = np.stack([~flat_foot, np.ones(len(s))], axis=1).astype(float)
        middle = share[:, None] * right + (1 - share)[:, None] * left
        aside = np.where(both, WIDE, 1.0) * foot.half
        centre = np.where(both, middle[:, 0], -x)
        ends = [
            np.where(both, middle[:, 1] + sign * LONG * long, np.where(flat_foot, flat, fore) * long)
            for sign, flat, fore in zip((-1, 1), FLAT_ENDS, FORE_ENDS, strict=True)
        ]
        meet = MEET * long / self.push if self.push else np.inf
        return Carried(share, right, left, toes, np.stack([centre - aside, centre + aside, *ends], axis=1), meet)


@dataclass(frozen=True)
class Walk(Support):
    """One ``step``, or with ``steps=2`` it and its mirror image: a stride, whose sides may then differ.

    Example:
        >>> walk = Walk(steps=2)
        >>> walk.duration, [(each.side, each.heel) for each in walk.stances][5:7]
        (1.0, [('left', (0.05, 0.6)), ('left', (0.05, 0.6))])
    """

    step: Step = field(default_factory=Step)
    steps: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.step, Step):
            raise ModelError(describe(f"step is {self.step!r}", where="walk", allowed="a torsor.human.Step"))
        if isinstance(self.steps, bool) or not isinstance(self.steps, int) or self.steps not in (1, 2):
            raise ModelError(describe(f"steps is {self.steps!r}", where="walk", allowed="1 or 2"))

    @property
    def duration(self) -> float:
        """Time of all steps (s)."""
        return self.steps * self.step.duration

    @cached_property
    def stances(self) -> tuple[Stance, ...]:
        """What stands when; a foot that stands on goes into the next step."""
        found = list[Stance]()
        for index in range(self.steps):
            for each in self.step.stances:
                (x, z), side = each.heel, SIDES[(SIDES.index(each.side) + index) % 2]
                heel = (-x if index else x, z + index * self.step.length)
                found.append(Stance(side, self.of(index, each.first), self.of(index, each.last), each.points, heel))
        return tuple(found)

    def of(self, index: int, share: float) -> float:
        """Return the share of the whole walk at which a share of a step has passed."""
        return (index + share) / self.steps

    def carried(self, s: Array, foot: Foot) -> Carried:
        """Return how feet of that size carry at shares s (K,)."""
        within = np.minimum(s * self.steps, self.steps)
        first = self.step.carried(within, foot)
        if self.steps == 1:
            return first
        second = self.step.carried(np.maximum(within - 1.0, 0.0), foot).mirrored(self.step.length)
        later = within > 1.0 + TOUCHING

        def joined(one: Array, two: Array) -> Array:
            return np.where(later.reshape(-1, *[1] * (one.ndim - 1)), two, one)

        share, right, left = (joined(a, b) for a, b in zip(first[:3], second[:3], strict=True))
        return Carried(share, right, left, joined(first.toes, second.toes), joined(first.box, second.box), first.meet)
