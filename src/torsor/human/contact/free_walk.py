"""Walking whose contacts are relative to the heels: length, width and timing of the step are variables.

Contacts change at fixed s, the parameter of the splines; the clock of the phase says at which times that happens. The
feet share the ground's force as ``sharing`` describes.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.human.contact.contact_forces import PROFILES, SHARED, SPEED, WIDTH
from torsor.human.contact.schedule import BARMAN, MEET, Step, Walk
from torsor.human.contact.stairs import tread
from torsor.human.contact.support import FLAT_ENDS, FORE_ENDS, Foot, SharedSupport, Stance
from torsor.motion.terms.term import TOUCHING
from torsor.motion.transcription.splines import Spline
from torsor.robot.robot import Robot

EVENTS = ("ball_off", "flat", "toe_off", "heel_off", "knee")
BEYOND = 10.0  # m: sides of the sole of a foot that carries nothing
HEEL, TOES = 0.10, 0.90  # of the foot length: the pressure is behind, before it while only heel, toes are in contact
PIECES = 5  # intervals between the knots of the sharing in double support


@dataclass(frozen=True)
class FreeWalk(Walk, SharedSupport):
    """A walk of one step with contacts relative to the heels."""

    @property
    def stances(self) -> tuple[Stance, ...]:
        """All stances, with the heels at the origin."""
        return tuple(each._replace(heel=(0.0, 0.0)) for each in self.step.nominal.stances)

    def shared(self, s: Array, body: Robot, friction: float) -> Array:
        """Return the nominal sharing and the soles (K, ``SHARED.size``) at s (K,)."""
        step, foot, count = self.step, Foot.of(body), len(s)
        is_landing, is_tip = s < step.flat - TOUCHING, s > step.ball_off + TOUCHING
        is_heel, is_fore = is_landing & (step.first_contact == "heel"), step.on_forefoot(s)
        right = (
            np.where(is_fore, FORE_ENDS[0], 0.0),
            np.where(is_heel, HEEL, np.where(is_fore, FORE_ENDS[1], FLAT_ENDS[1])),
        )
        left = np.where(is_tip, TOES, FORE_ENDS[0]), np.ones(count)
        sides = [np.full(count, -foot.half), np.full(count, foot.half)]
        on = tread(step, foot) if step.rise else (-np.inf, np.inf)
        soles = [np.stack([*sides, *(np.clip(foot.length * x, *on) for x in ends)], axis=1) for ends in (right, left)]
        loaded = (s < step.toe_off - TOUCHING)[:, None]
        first = FORE_ENDS[0] if step.first_contact == "forefoot" else 0.0
        ahead = first + (BARMAN.pressed - first) * np.minimum(s / step.toe_off, 1.0)
        behind = BARMAN.forefoot + (BARMAN.tip - BARMAN.forefoot) * np.minimum(s / step.ball_off, 1.0)
        return SHARED.pack(
            count,
            left_fraction=1 - step.leading_fraction(s),
            right=np.outer(ahead, [0.0, foot.length]),
            left=np.outer(behind, [0.0, foot.length]),
            height=-step.rise,
            push=-step.push / (MEET * foot.length),
            toes=np.stack([is_fore, np.ones(count)], axis=1).astype(float),
            right_box=soles[0],
            left_box=np.where(loaded, soles[1], [-BEYOND, BEYOND, -BEYOND, BEYOND]),
            mass=body.mass,
            weight=body.mass * float(np.linalg.norm(body.gravity)),
            friction=friction,
        )

    def carried(self, s: Array, foot: Foot) -> Any:
        """Return how the feet carry when the sharing is nominal."""
        return self.step.nominal.carried(s, foot)

    def knots(self, points: int) -> Array:
        """Return inner knots (points - 4,) of cubic splines: where contacts change, then in the middle of the gaps.

        A foot stands still between changes of contact and moves after them: its spline has a knot there.
        """
        knots = [0.0, *(getattr(self.step, name) for name in EVENTS[:-1]), 1.0]
        while len(knots) < points - 2:
            knots.sort()
            gap = int(np.argmax(np.diff(knots)))
            knots.append((knots[gap] + knots[gap + 1]) / 2)
        return np.array(sorted(knots)[1:-1])

    def splines(self) -> dict[str, Spline]:
        """Return the splines of the sharing: their knots are in double support."""
        knots = self.step.toe_off * np.arange(1, PIECES + 1) / PIECES
        return {name: Spline(3, knots) for name in PROFILES}


def solved_step(walk: Walk, result: Any) -> Step:
    """Return the step of a result: lengths and times that were variables are numbers."""
    step = walk.step
    if not isinstance(walk, FreeWalk):
        return step
    phase_layout, numbers = result.program.layout.phases[0], result.numbers
    fractions = phase_layout.times(result.x, np.array([getattr(step, name) for name in EVENTS])) / result.T
    times = dict(zip(EVENTS, fractions.tolist(), strict=True))
    speed = numbers[SPEED]
    return replace(step, length=speed * result.T, width=numbers[WIDTH], speed=speed, timing="given", **times)
