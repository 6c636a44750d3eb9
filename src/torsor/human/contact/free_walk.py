"""Walking whose contacts are relative to the heels: length, width and timing of the step are variables.

Contacts change at fixed s, the parameter of the splines; the clock of the phase says at which times that happens. The
feet share the ground's force as ``sharing`` describes.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import number
from torsor.base.errors import ModelError
from torsor.human.contact.contact_forces import ONE_FOOT, PROFILES, SHARED, SPEED, WIDTH
from torsor.human.contact.schedule import BARMAN, MEET, PressurePath, Step, Walk, tread
from torsor.human.contact.support import FLAT_ENDS, FORE, FORE_ENDS, WHOLE, Carried, Foot, SharedSupport, Stance
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
        """Return inner knots (points - 4,) of cubic splines: where contacts change, then in the largest gaps."""
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


# Running: one step is the stance of the right foot and a flight; the next one is its mirror image. As in walking with
# free steps, contacts change at fixed s, and the clock says when that is.

STANCE = ("flat", "heel_off", "ball_off", "toe_off")  # changes of contact in the order of time
FINER = 2  # intervals of the pelvis in flight for each one of the joints
BETWEEN = 4  # intervals of the nodes for each one of the splines in stance
FREE = {"length": (0.5, 2.0), "width": (0.01, 0.3)}  # bounds of what is free (m)


@dataclass(frozen=True)
class RunningStep(Step):
    """One step of running: ``length`` and ``width`` (m), ``speed`` (m/s), and when the contacts change.

    Times are fractions of the step, from 0 to 1. The foot stands on its heel until ``flat``, on heel and ball until
    ``heel_off``, on ball and toes until ``ball_off``, on the tip of its toes until ``toe_off``. Then both feet are off
    the ground. As in a ``Step``, what is "free" or an interval is a result of the optimisation.
    """

    length: Any = "free"
    width: Any = "free"
    speed: Any = 3.0
    flat: float = 0.12
    heel_off: float = 0.36
    ball_off: float = 0.58
    toe_off: float = 0.68
    timing: str = "free"

    def _check_times(self) -> None:
        """Raise ModelError unless the contacts change in the order of a step."""
        times = [getattr(self, name) for name in STANCE]
        for name, value in zip(STANCE, times, strict=True):
            number(value, "step", name, above=0.0, below=1.0)
        if not all(np.diff(times) > 0):
            found = ", ".join(f"{name} {value}" for name, value in zip(STANCE, times, strict=True))
            raise ModelError(found, where="step", allowed="numbers that rise from 0 to 1")

    def bounds(self, name: str) -> tuple[float, float]:
        """Return least and most of "length", "width" or "speed"; they are equal if it is given."""
        return FREE[name] if name in FREE and getattr(self, name) == "free" else super().bounds(name)

    @property
    def nominal(self) -> "RunningStep":
        """The step with numbers in place of what is free, from which the search starts."""
        width, speed = float(np.mean(self.bounds("width"))), float(np.mean(self.bounds("speed")))
        length = float(np.clip(0.37 * speed, *self.bounds("length")))
        return replace(self, length=length, width=width, speed=speed, timing="given")

    @property
    def duty_factor(self) -> float:
        """Fraction of the stride (two steps) for which a foot is on the ground."""
        return self.toe_off / 2

    @property
    def stances(self) -> tuple[Stance, ...]:
        """All stances of the step: those of the right foot."""
        ends, heel = (0.0, *(getattr(self, name) for name in STANCE)), (-self.width / 2, 0.0)
        points = (("heel", "xyz"),), WHOLE, FORE, (("toe", "xyz"),)
        return tuple(Stance("right", ends[k], ends[k + 1], each, heel) for k, each in enumerate(points))

    def carried(self, s: Array, foot: Foot, path: PressurePath = BARMAN) -> Carried:
        """Return how feet of a size carry the body: the right one carries all of it."""
        sole, x, ones = self.sole(s, foot), self.width / 2, np.ones(len(s))
        middle = np.stack([np.full(len(s), -x), sole[:, 2:].mean(axis=1)], axis=1)
        return Carried(ones, middle, middle, self.toes(s), sole - np.array([x, x, 0.0, 0.0]))

    def toes(self, s: Array) -> Array:
        """Return whether only the toes (K, 2) of the right, the left foot are in contact (1) or not (0)."""
        return np.stack([s > self.heel_off + TOUCHING, np.ones(len(s))], axis=1).astype(float)

    def sole(self, s: Array, foot: Foot) -> Array:
        """Return the sides (K, 4) of the part of the right sole that is in contact, from the heel (m)."""
        kinds = [s < self.flat - TOUCHING, s <= self.heel_off + TOUCHING, s <= self.ball_off + TOUCHING]
        back, front = (
            foot.length * np.select(kinds, ends[:3], ends[3])
            for ends in ((0.0, 0.0, FORE_ENDS[0], TOES), (HEEL, FLAT_ENDS[1], FORE_ENDS[1], 1.0))
        )
        return np.stack([np.full(len(s), -foot.half), np.full(len(s), foot.half), back, front], axis=1)


@dataclass(frozen=True)
class Run(FreeWalk):
    """A run of one step with contacts relative to the heel."""

    def shared(self, s: Array, body: Robot, friction: float) -> Array:
        """Return the sole and the toes (K, ``ONE_FOOT.size``) at s (K,)."""
        step = self.step
        assert isinstance(step, RunningStep)
        presses = (s > TOUCHING) & (s < step.toe_off - TOUCHING)
        return ONE_FOOT.pack(
            len(s),
            toes=step.toes(s),
            sole=step.sole(s, Foot.of(body)),
            presses=presses.astype(float),
            mass=body.mass,
            weight=body.mass * float(np.linalg.norm(body.gravity)),
            friction=friction,
        )

    def flight(self, points: int) -> Array:
        """Return the knots (K,) of the pelvis in flight, with its ends: there no force is left over.

        Accelerations of cubic splines are lines between knots. Zero wrenches at all of them determine those of the
        pelvis, whatever the joints do: there are as many equations as accelerations.
        """
        knots = self.knots(points)
        own = np.concatenate([knots[knots > self.step.toe_off - TOUCHING], [1.0]])
        return np.asarray(np.interp(np.arange(FINER * (len(own) - 1) + 1) / FINER, np.arange(len(own)), own))

    def pelvis(self, points: int) -> Spline:
        """Return the spline of the six global coordinates: finer than that of the joints in flight."""
        return Spline(3, np.union1d(self.knots(points), self.flight(points)[:-1]))

    def nodes(self, points: int) -> Array:
        """Return the nodes: knots of the pelvis, and more of them in stance."""
        knots = self.knots(points)
        own = np.concatenate([[0.0], knots[knots < self.step.toe_off + TOUCHING]])
        at = np.arange(BETWEEN * (len(own) - 1) + 1) / BETWEEN
        return np.union1d(np.interp(at, np.arange(len(own)), own), self.flight(points))
