"""Walking steps: length, width, speed, and the times at which foot contacts change.

A step begins with the heel strike of the right foot and ends with the heel strike of the left foot. The right heel is
at z = 0, and the left foot is one step length behind it. A second step is the mirror image of the first.
"""

import math
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import instance_of, interval, number, one_of, positive, whole_number
from torsor.base.errors import ModelError, warn
from torsor.human.body.coordinates import other_side
from torsor.human.body.postures import landmark
from torsor.human.body.strength import GRAVITY
from torsor.human.contact.contact_forces import LEFT_STEP, ONE_FOOT, PROFILES, SHARED, SPEED, WIDTH
from torsor.human.contact.support import (
    FLAT_ENDS,
    FORE,
    FORE_ENDS,
    WHOLE,
    Carried,
    Foot,
    SharedSupport,
    Stance,
    Support,
    smoothstep,
)
from torsor.library.human import human
from torsor.motion.terms.term import TOUCHING
from torsor.motion.transcription.splines import Spline
from torsor.robot.robot import Robot

BOX_HALF_WIDTH = 0.667  # half-width of the box in double support, relative to the half-width of a foot
FREE_BOUNDS = {"length": (0.2, 1.4), "width": (0.03, 0.3), "speed": (0.3, 3.0)}  # bounds of free quantities (m, m, m/s)
FORCE_MEETING_HEIGHT = 4.0  # foot lengths: where the lines of the foot forces meet, about the centre of mass


class PressurePath(NamedTuple):
    """Points of application of the ground force in double support, as fractions of the foot length from the heel.

    The point on the leading foot moves from ``strike`` to ``pressed`` (at toe-off), and the point on the trailing foot
    from ``forefoot`` to ``tip``. The optimisation may shift both forward or backward by up to ``band``.
    """

    strike: float = 0.0
    pressed: float = 0.275
    forefoot: float = 0.853
    tip: float = 0.98
    band: float = 0.147


BARMAN = PressurePath()  # at heel strike the pressure may be behind the heel


@dataclass(frozen=True)
class Step:
    """One walking step: ``length`` and ``width`` (m), ``speed`` (m/s), and the times at which contacts change.

    Times are fractions of the step, from 0 to 1. The leading foot stands on its heel until ``flat``, on heel and ball
    until ``heel_off``, and then on ball and toes. The trailing foot stands on its forefoot until ``ball_off``, on its
    toe tips until ``toe_off``, and then swings. Double support lasts from 0 to ``toe_off``, while the fraction of the
    force on the leading foot rises smoothly from 0 to 1. ``knee`` is the time of peak knee flexion in swing. In double
    support the trailing foot pushes forward and the leading foot brakes. With ``push=1`` their lines of force meet at
    about the height of the centre of mass; with ``push=0`` they are parallel.

    ``length``, ``width`` and ``speed`` may be numbers, bounds (lower, upper), or "free", the default of length and
    width; the default speed is 1.25 m/s. Quantities that are not numbers are optimised, as are the times unless
    ``timing`` is "given". At a given speed, a free length means a free duration.

    On stairs each foot lands a ``rise`` (m) higher than the other one, or lower if it is negative. The length is then
    the tread depth. ``landing`` is the part of the foot that touches the ground first, "heel" or "forefoot". The latter
    is the default on stairs (McFadyen and Winter 1988): the leading foot stands on its ball and toes until ``flat``.

    Example:
        >>> Step(length=0.6, width=0.1, speed=1.2, timing="given").duration
        0.5
        >>> Step(speed=1.0, width=(0.05, 0.2)).bounds("width")
        (0.05, 0.2)
        >>> Step(length=0.29, rise=0.17, speed=0.5).first_contact
        'forefoot'
        >>> Step().leading_fraction(np.array([0.0, 0.12, 0.24, 1.0])).tolist()
        [0.0, 0.5, 1.0, 1.0]
    """

    length: Any = "free"
    width: Any = "free"
    speed: Any = 1.25
    flat: float = 0.16
    toe_off: float = 0.24
    heel_off: float = 0.62
    knee: float = 0.42
    ball_off: float = 0.06
    push: float = 1.0
    timing: str = "free"
    rise: float = 0.0
    landing: str | None = None

    def __post_init__(self) -> None:
        for name in FREE_BOUNDS:
            value = getattr(self, name)
            if isinstance(value, tuple | list):
                object.__setattr__(self, name, interval(value, "step", name))
                positive(value[0], "step", f"the lower bound of {name}")
            elif isinstance(value, str) and value != "free":
                allowed = "a number above 0, bounds (lower, upper), or 'free'"
                raise ModelError(argument=name, value=value, where="step", allowed=allowed)
            elif not isinstance(value, str):
                object.__setattr__(self, name, positive(value, "step", name))  # also converts NumPy scalars
        one_of(self.timing, ("given", "free"), "step", "timing")
        self._check_times()
        number(self.push, "step", "push", least=0.0)

    def _check_times(self) -> None:
        """Raise ModelError unless the contacts change in the order of a step."""
        for name in ("flat", "toe_off", "heel_off"):
            number(getattr(self, name), "step", name, above=0.0, below=1.0)
        if not self.flat < self.toe_off < self.heel_off:
            what = f"is {self.flat}, toe_off is {self.toe_off} and heel_off is {self.heel_off}"
            raise ModelError(what, argument="flat", where="step", allowed="increasing numbers from 0 to 1")
        number(self.ball_off, "step", "ball_off", above=0.0, below=self.toe_off)
        number(self.knee, "step", "knee", above=self.toe_off, below=1.0)
        number(self.rise, "step", "rise")
        if self.landing is not None:
            one_of(self.landing, ("heel", "forefoot"), "step", "landing")
        if self.rise and not isinstance(self.length, int | float):
            what, fix = f"is {self.rise:g} but length is {self.length!r}", "give the tread length (m)"
            allowed = "a numeric length on stairs"
            raise ModelError(what, argument="rise", value=self.length, where="step", allowed=allowed, fix=fix)

    @property
    def is_free(self) -> bool:
        """Whether any quantity is a result of the optimisation."""
        return self.timing == "free" or any(not isinstance(getattr(self, name), int | float) for name in FREE_BOUNDS)

    @property
    def first_contact(self) -> str:
        """The part of the foot that lands first: "heel" or "forefoot"."""
        return self.landing or ("forefoot" if self.rise else "heel")

    def bounds(self, name: str) -> tuple[float, float]:
        """Return the bounds (lower, upper) of "length", "width" or "speed"; they are equal if it is a number.

        Example:
            >>> Step(width=0.1).bounds("length"), Step(width=0.1).bounds("width")
            ((0.2, 1.4), (0.1, 0.1))
        """
        value = getattr(self, name)
        if value == "free":
            return FREE_BOUNDS[name]
        return (float(value[0]), float(value[1])) if isinstance(value, tuple) else (float(value), float(value))

    @property
    def nominal(self) -> "Step":
        """The step with numbers in place of free quantities, used as the initial guess.

        People take steps of about 0.62 m at 1 m/s, and the length grows with the speed to the power 0.42 (Kuo 2001).
        """
        if not self.is_free:
            return self
        speed = float(np.clip(1.3, *self.bounds("speed")))
        width = float(np.mean(self.bounds("width")))
        length = float(np.clip(0.62 * speed**0.42, *self.bounds("length")))
        return replace(self, length=length, width=width, speed=speed, timing="given")

    @property
    def duration(self) -> float:
        """Duration of the step (s)."""
        step = self.nominal
        return float(step.length / step.speed)

    @property
    def duty_factor(self) -> float:
        """Fraction of the stride (two steps) during which a foot is on the ground.

        Example:
            >>> Step(toe_off=0.24).duty_factor
            0.62
        """
        return (1 + self.toe_off) / 2

    def leading_fraction(self, s: Array) -> Array:
        """Return the fraction (K,) of the ground force on the leading foot; it is smooth, and 1 after toe-off."""
        return smoothstep(s / self.toe_off)

    def on_forefoot(self, s: Array) -> Array:
        """Return flags (K,): whether only the ball and toes of the leading foot are in contact at times s (K,)."""
        after = s > self.heel_off + TOUCHING
        return np.asarray(after | (s < self.flat - TOUCHING) if self.first_contact == "forefoot" else after)

    @property
    def stances(self) -> tuple[Stance, ...]:
        """All stances of the step."""
        right, left = (-self.width / 2, 0.0), (self.width / 2, -self.length)
        landing = FORE if self.first_contact == "forefoot" else (("heel", "xyz"),)
        return (
            Stance("right", 0.0, self.flat, landing, right),
            Stance("right", self.flat, self.heel_off, WHOLE, right),
            Stance("right", self.heel_off, 1.0, FORE, right),
            Stance("left", 0.0, self.ball_off, FORE, left, -self.rise),
            Stance("left", self.ball_off, self.toe_off, (("toe", "xyz"),), left, -self.rise),
        )

    def carried(self, s: Array, foot: Foot) -> Carried:
        """Return the force distribution between the feet at times s (K,) of the step."""
        path = BARMAN
        fraction, x, long = self.leading_fraction(s), self.width / 2, foot.length
        ahead = (path.strike + (path.pressed - path.strike) * np.minimum(s / self.toe_off, 1.0)) * long
        behind = (path.forefoot + (path.tip - path.forefoot) * np.minimum(s / self.ball_off, 1.0)) * long - self.length
        right, left = (np.stack([np.full(len(s), at), z], axis=1) for at, z in ((-x, ahead), (x, behind)))
        both, flat_foot = s <= self.toe_off + TOUCHING, s <= self.heel_off + TOUCHING
        toes = np.stack([self.on_forefoot(s), np.ones(len(s))], axis=1).astype(float)
        middle = fraction[:, None] * right + (1 - fraction)[:, None] * left
        aside = np.where(both, BOX_HALF_WIDTH, 1.0) * foot.half
        centre = np.where(both, middle[:, 0], -x)
        ends = [
            np.where(both, middle[:, 1] + sign * path.band * long, np.where(flat_foot, flat, fore) * long)
            for sign, flat, fore in zip((-1, 1), FLAT_ENDS, FORE_ENDS, strict=True)
        ]
        meet = FORCE_MEETING_HEIGHT * long / self.push if self.push else np.inf
        return Carried(fraction, right, left, toes, np.stack([centre - aside, centre + aside, *ends], axis=1), meet)


def described(step: Step) -> str:
    """Return the speed, length and rise of a step as text for titles."""
    way = f", {abs(step.rise):.3g} m {'up' if step.rise > 0 else 'down'}" if step.rise else ""
    return f"{step.speed:g} m/s, steps of {step.length:.3g} m{way}"


@dataclass(frozen=True)
class Walk(Support):
    """One ``step``, or with ``steps=2`` the step and its mirror image: a stride, in which the sides may differ.

    Example:
        >>> walk = Walk(Step(length=0.6, width=0.1, speed=1.2), steps=2)
        >>> walk.duration, [(each.side, each.heel) for each in walk.stances][5:7]
        (1.0, [('left', (0.05, 0.6)), ('left', (0.05, 0.6))])
    """

    step: Step = field(default_factory=Step)
    steps: int = 1

    def __post_init__(self) -> None:
        instance_of(self.step, Step, "walk", "step", allowed="a torsor.human.Step")
        whole_number(self.steps, "walk", "steps", most=2)

    @property
    def duration(self) -> float:
        """Duration of all steps (s)."""
        return self.steps * self.step.duration

    @cached_property
    def stances(self) -> tuple[Stance, ...]:
        """All stances; a foot that is in stance at the end of a step has another stance in the next one."""
        whole_stances = list[Stance]()
        for index in range(self.steps):
            for stance in self.step.nominal.stances:
                first, last = (self.whole_s(index, s) for s in (stance.first, stance.last))
                side = other_side(stance.side) if index else stance.side
                whole_stances.append(self._placed(stance._replace(side=side, first=first, last=last), index))
        return tuple(whole_stances)

    def _placed(self, stance: Stance, index: int) -> Stance:
        """Return a stance of the step at the place of the step with the given index."""
        x, z = stance.heel
        return stance._replace(heel=(-x if index else x, z + index * self.step.nominal.length))

    def within(self, s: Array) -> tuple[Array, Array]:
        """Return s (K,) within the step at each s (K,) of the whole walk, and the index of that step."""
        at = np.minimum(s * self.steps, self.steps)
        index = np.minimum(np.ceil(at - TOUCHING) - 1, self.steps - 1).clip(0)
        return at - index, index

    def whole_s(self, index: int, s: float) -> float:
        """Return s of the whole walk from s within the step of the given index."""
        return (index + s) / self.steps

    def heights(self, s: Array) -> Array:
        """Return the tread heights (K, 2) (m) under the right and left foot; in swing, the height of the next tread."""
        within, index = self.within(s)
        trailing = index + np.where(within <= self.step.toe_off + TOUCHING, -1, 1)
        feet = np.where(index % 2 == 0, (index, trailing), (trailing, index))
        return np.ascontiguousarray(feet.T * self.step.rise)

    def carried(self, s: Array, foot: Foot) -> Carried:
        """Return the force distribution between the feet at times s (K,) of the walk."""
        (within, index), step = self.within(s), self.step.nominal
        first = step.carried(within, foot)
        if self.steps == 1:
            return first
        second = first.mirrored(step.length)
        later, both = index > 0, zip(first[:5], second[:5], strict=True)
        parts = (np.where(later if one.ndim == 1 else later[:, None], two, one) for one, two in both)
        joined: dict[str, Any] = dict(zip(Carried._fields, parts, strict=False))
        return first._replace(**joined)


# Walk-to-run transition: the Froude number of walking.
#
# The stance leg is an inverted pendulum of length l over which the body vaults. The Froude number v^2/(g l) is the
# centripetal acceleration divided by gravity. At equal Froude numbers, people of all sizes walk in a similar way. They
# change to running at about 0.5, adults at 2.0 m/s (Alexander 1989). Above 1 a stiff leg would leave the ground.

TRANSITION_FROUDE_NUMBER = 0.5  # Froude number of the walk-to-run transition


def leg_length(body: Robot) -> float:
    """Return the height of the hips above the soles of a standing body (m).

    Example:
        >>> round(leg_length(torsor.library.human()), 4)
        0.9425
    """
    return float(landmark(body, "right_thigh")[1] - landmark(body, "right_heel")[1])


def froude_number(body: Robot, speed: float) -> float:
    """Return the Froude number of a speed (m/s), for the leg length and gravity of a body.

    Example:
        >>> body = torsor.library.human()
        >>> round(froude_number(body, 1.3), 3), round(froude_number(body.with_gravity([0, -1.62, 0]), 1.3), 2)
        (0.183, 1.11)
    """
    speed = number(speed, "Froude number", "speed (m/s)", least=0.0)
    return speed**2 / (leg_length(body) * math.hypot(*body.gravity))


def walking_limit(body: Robot) -> float:
    """Return the speed (m/s) of the walk-to-run transition for a person of this size.

    Example:
        >>> child = torsor.human.Person.of_percentile(age=6, sex="female").body()
        >>> round(walking_limit(torsor.library.human()), 2), round(walking_limit(child), 2)
        (2.15, 1.7)
    """
    return math.sqrt(TRANSITION_FROUDE_NUMBER * leg_length(body) * math.hypot(*body.gravity))


def similar_step(body: Robot, step: Step | None = None) -> Step:
    """Return the step at which a body walks with the same Froude number as the default body with ``step``.

    Lengths are proportional to the leg length, speeds to its square root. Free quantities remain free.

    Example:
        >>> child = torsor.human.Person.of_percentile(age=6).body()
        >>> step = similar_step(child, Step(length=0.6, speed=1.2))
        >>> round(step.length, 3), round(step.speed, 3), round(froude_number(child, step.speed), 3)
        (0.398, 0.977, 0.156)
    """
    step = instance_of(Step() if step is None else step, Step, "similar step", "step")
    scale, weight = leg_length(body) / _default_leg(), math.hypot(*body.gravity) / GRAVITY
    scales = {"length": scale, "width": scale, "speed": math.sqrt(scale * weight)}
    return replace(step, **{name: _scaled(getattr(step, name), each) for name, each in scales.items()})


def _scaled(value: Any, scale: float) -> Any:
    """Return a number or bounds times a scale; "free" remains."""
    if isinstance(value, str):
        return value
    return tuple(scale * each for each in value) if isinstance(value, tuple) else scale * value


@cache
def _default_leg() -> float:
    return leg_length(human())


def warn_of_running(body: Robot, speed: float) -> None:
    """Warn about a speed (m/s) at which people of this size run."""
    froude = froude_number(body, speed)
    if froude > TRANSITION_FROUDE_NUMBER:
        limit = f"people of this size run above {walking_limit(body):.3g} m/s"
        what = f"the speed is {speed:.3g} m/s, a Froude number of {froude:.2f}: {limit}"
        fix = "use a lower speed, or torsor.human.running"
        warn(what, where="walk", fix=fix)


MAX_STEP_LENGTHS = 2.0  # leg lengths: both legs would lie on the ground
MAX_RUNNING_STEP_LENGTHS = 3.5  # leg lengths: sprinters take steps shorter than 3
MAX_FROUDE_NUMBER = 3.0  # Froude number: race walkers stay below 2.1, and a stiff leg leaves the ground at 1


def check_step(step: Step, body: Robot, where: str, *, leaps: bool = False) -> None:
    """Raise ModelError if the body cannot take a step (a running step if ``leaps`` is true)."""
    leg = leg_length(body)
    for name, most in (
        ("length", MAX_RUNNING_STEP_LENGTHS if leaps else MAX_STEP_LENGTHS),
        ("width", MAX_STEP_LENGTHS),
    ):
        least = step.bounds(name)[0]
        if least > most * leg:
            what, allowed = (
                f"the {name} of the step is {least:.4g} m",
                f"up to {most * leg:.3g} m for a leg length of {leg:.3g} m",
            )
            raise ModelError(what, where=where, allowed=allowed, fix="give it in metres")
    speed = step.bounds("speed")[0]
    if not leaps and froude_number(body, speed) > MAX_FROUDE_NUMBER:
        most = math.sqrt(MAX_FROUDE_NUMBER * math.hypot(*body.gravity) * leg)
        fix = "use a lower speed (m/s), or torsor.human.running"
        raise ModelError(f"the speed is {speed:.4g} m/s", where=where, allowed=f"up to {most:.3g} m/s on foot", fix=fix)


# Stairs: positions of the treads under the feet of a step, and the edges that the swing foot passes.
#
# The right foot stands on the tread at y = 0 with its heel at z = 0. The left foot swings from the previous tread to
# the next one. Upstairs the edge of a tread is its back end, downstairs its front end.

RISER_GAP = 0.01  # m: between the toes and the next riser, or the heel and the previous one, on short treads
MIN_TREAD_FRACTION = 0.75  # shortest tread relative to the foot length: heel or toes may overhang the edge


class Edge(NamedTuple):
    """The edge of a tread, at ``z`` and ``y`` (m); the tread is in front of it (``ahead`` 1) or behind it (-1)."""

    z: float
    y: float
    ahead: float


class Stairs(NamedTuple):
    """Stairs for pictures: the tread at y = 0 begins at ``back`` (m); treads have a ``length`` and a ``rise`` (m)."""

    back: float
    length: float
    rise: float

    def profile(self, first: int, last: int) -> Array:
        """Return the corners (P, 2), as (z, y), of the treads ``first`` to ``last``; tread 0 is at y = 0."""
        numbers = range(first, last + 1)
        return np.array([(self.back + self.length * end, self.rise * k) for k in numbers for end in (k, k + 1)])


def stairs_of(support: Support, body: Robot) -> Stairs | None:
    """Return the stairs of a walk, or None on other ground."""
    if not isinstance(support, Walk) or not support.step.rise:
        return None
    step = support.step
    return Stairs(tread(step, Foot.of(body))[0], float(step.length), step.rise)


def tread(step: Step, foot: Foot) -> tuple[float, float]:
    """Return the back and front ends (m) of the tread under a foot, measured from its heel.

    The foot stands in the middle. If the tread is too short, the toes are close to the next riser when going up, so
    that the heel overhangs the edge. When going down, the heel is close to the previous riser.
    """
    length, room = float(step.length), float(step.length) - foot.length
    short = RISER_GAP - room if step.rise > 0 else -RISER_GAP
    back = -room / 2 if room >= 2 * RISER_GAP else short
    return round(back, 12), round(back + length, 12)


def edges(step: Step, foot: Foot) -> tuple[Edge, ...]:
    """Return the edges that the left foot passes in swing and, when going up, the edge of the following tread."""
    (back, front), rise, length = tread(step, foot), step.rise, float(step.length)
    if rise > 0:
        return tuple(Edge(round(back + k * length, 12), k * rise, 1.0) for k in range(3))
    return tuple(Edge(round(front + k * length, 12), k * rise + 0.0, -1.0) for k in (-1, 0))


def highest_rise(body: Robot) -> float:
    """Return the height (m) to which a body can lift its sole next to a straight leg, with the knee at its limit."""
    hip, knee, ankle = (landmark(body, f"right_{name}") for name in ("thigh", "shank", "foot"))
    thigh, shank = float(hip[1] - knee[1]), float(knee[1] - ankle[1])
    flexion = float(body.upper[body.coordinate_names.index("right_knee_flexion")])
    folded = math.sqrt(thigh**2 + shank**2 + 2 * thigh * shank * math.cos(flexion))
    return thigh + shank - folded


def check_stairs(step: Step, body: Robot) -> None:
    """Raise ModelError for stairs that a body cannot climb; warn about treads that are shorter than the foot."""
    foot, most = Foot.of(body), highest_rise(body)
    if abs(step.rise) > most:
        what = f"rise is {step.rise:g} m"
        allowed = f"at most {most:.3g} m, the height to which this body can lift its foot next to a straight leg"
        raise ModelError(what, where="stairs", allowed=allowed)
    if step.length < MIN_TREAD_FRACTION * foot.length:
        what = f"length is {step.length:g} m, too short for the ball of a foot of {foot.length:.3g} m to stand on"
        raise ModelError(what, where="stairs", allowed=f"at least {MIN_TREAD_FRACTION * foot.length:.3g} m")
    if step.length < foot.length:
        part = "heel" if step.rise > 0 else "toe tips"
        what = f"the tread of {step.length:g} m is shorter than the foot of {foot.length:.3g} m"
        warn(what, where="stairs", fix=f"use a longer tread, or accept the overhang of the {part}")


# Walking with contacts relative to the heels: length, width and timing of the step are variables.
#
# Contacts change at fixed s, the spline parameter. The clock of the phase maps s to time. The optimisation distributes
# the ground force between the feet.

EVENTS = ("ball_off", "flat", "toe_off", "heel_off", "knee")
UNLOADED_SOLE_EDGE = 10.0  # m: edges of the sole of an unloaded foot
HEEL_END, TOE_START = 0.10, 0.90  # of the foot length: limits of the pressure on the heel alone and on the toes alone
PIECES = 5  # knot intervals of the force sharing in double support
MIRRORED = {"right": "left", "left": "right", "right_box": "left_box", "left_box": "right_box"}  # in a left step


@dataclass(frozen=True)
class FreeWalk(Walk, SharedSupport):
    """A walk of one or two steps with contacts relative to the heels; two steps may differ in length and times."""

    def _placed(self, stance: Stance, index: int) -> Stance:
        return stance._replace(heel=(0.0, 0.0), left_at=self.left_at(index))

    def left_at(self, index: int) -> tuple[float, float]:
        """Return the place of the left heel in a step, in left step lengths and distances (``heel_place``).

        One step is a distance. In a stride, the left foot is first a right step behind the right one, then a left step
        ahead of it.
        """
        return (0.0, -1.0) if self.steps == 1 else (1.0, index - 1.0)

    def shared(self, s: Array, body: Robot, friction: float) -> Array:
        """Return the nominal force sharing and the soles (K, ``SHARED.size``) at s (K,)."""
        within, index = self.within(s)
        first = self._shared(within, body, friction)
        if self.steps == 1:
            return SHARED.pack(len(s), **first, left_at=self.left_at(0))
        second = {name: first[MIRRORED.get(name, name)] for name in first}
        second |= {"left_fraction": 1 - first["left_fraction"], "toes": first["toes"][:, ::-1]}
        steps = [SHARED.pack(len(s), **part, left_at=self.left_at(k)) for k, part in enumerate((first, second))]
        return np.where(index[:, None] > 0, steps[1], steps[0])

    def _shared(self, s: Array, body: Robot, friction: float) -> dict[str, Any]:
        """Return the data of ``shared``, except the place of the left heel, at s (K,) of a step of the right foot."""
        step, foot, count = self.step, Foot.of(body), len(s)
        # When a contact begins or ends, the smaller sole counts, so that the pressure does not jump between the nodes.
        is_landing, is_tip = s <= step.flat + TOUCHING, s >= step.ball_off - TOUCHING
        is_heel, is_fore = is_landing & (step.first_contact == "heel"), step.on_forefoot(s)
        right = (
            np.where(is_fore, FORE_ENDS[0], 0.0),
            np.where(is_heel, HEEL_END, np.where(is_fore, FORE_ENDS[1], FLAT_ENDS[1])),
        )
        left = np.where(is_tip, TOE_START, FORE_ENDS[0]), np.ones(count)
        sides = [np.full(count, -foot.half), np.full(count, foot.half)]
        on = tread(step, foot) if step.rise else (-np.inf, np.inf)
        soles = [np.stack([*sides, *(np.clip(foot.length * x, *on) for x in ends)], axis=1) for ends in (right, left)]
        loaded = (s < step.toe_off - TOUCHING)[:, None]
        first = FORE_ENDS[0] if step.first_contact == "forefoot" else 0.0
        ahead = first + (BARMAN.pressed - first) * np.minimum(s / step.toe_off, 1.0)
        behind = BARMAN.forefoot + (BARMAN.tip - BARMAN.forefoot) * np.minimum(s / step.ball_off, 1.0)
        return {
            "left_fraction": 1 - step.leading_fraction(s),
            "right": np.outer(ahead, [0.0, foot.length]),
            "left": np.outer(behind, [0.0, foot.length]),
            "height": -step.rise,
            "push": -step.push / (FORCE_MEETING_HEIGHT * foot.length),
            "toes": np.stack([is_fore, np.ones(count)], axis=1).astype(float),
            "right_box": soles[0],
            "left_box": np.where(
                loaded, soles[1], [-UNLOADED_SOLE_EDGE, UNLOADED_SOLE_EDGE, -UNLOADED_SOLE_EDGE, UNLOADED_SOLE_EDGE]
            ),
            "mass": body.mass,
            "weight": body.mass * float(np.linalg.norm(body.gravity)),
            "friction": friction,
        }

    def knots(self, points: int) -> Array:
        """Return inner knots of cubic splines, with ``points`` control points in each step."""
        inner = self.step_knots(points)
        return np.concatenate([inner, *((k + np.array([0.0, *inner])) for k in range(1, self.steps))]) / self.steps

    def step_knots(self, points: int) -> Array:
        """Return inner knots (points - 4,) of a step: at contact changes, then in the largest gaps."""
        knots = [0.0, *(getattr(self.step, name) for name in EVENTS[:-1]), 1.0]
        while len(knots) < points - 2:
            knots.sort()
            gap = int(np.argmax(np.diff(knots)))
            knots.append((knots[gap] + knots[gap + 1]) / 2)
        return np.array(sorted(knots)[1:-1])

    def splines(self) -> dict[str, Spline]:
        """Return the splines of the force sharing, with knots in double support and corners at heel strike."""
        pieces = self.step.toe_off * np.arange(1, PIECES + 1) / PIECES
        knots = [np.append([k] * 3 * (k > 0), k + pieces) for k in range(self.steps)]
        return {name: Spline(3, np.concatenate(knots) / self.steps) for name in PROFILES}


def solved_steps(walk: Walk, result: Any) -> tuple[Step, ...]:
    """Return the steps of a result, with the optimised values of free lengths and times.

    The first one ends with the heel strike of the left foot, and a second one with that of the right foot.
    """
    step = walk.step
    if not isinstance(walk, FreeWalk):
        return (step,) * walk.steps
    phase_layout, numbers = result.program.layout.phases[0], result.numbers
    distance = numbers[SPEED] * result.T
    lengths = [distance] if walk.steps == 1 else [numbers[LEFT_STEP], distance - numbers[LEFT_STEP]]
    ends = phase_layout.times(result.x, np.arange(walk.steps + 1) / walk.steps)
    steps = list[Step]()
    for k, (length, duration) in enumerate(zip(lengths, np.diff(ends).tolist(), strict=True)):
        at = np.array([walk.whole_s(k, getattr(step, name)) for name in EVENTS])
        times = dict(zip(EVENTS, ((phase_layout.times(result.x, at) - ends[k]) / duration).tolist(), strict=True))
        given: dict[str, Any] = {"length": length, "width": numbers[WIDTH], "speed": length / duration}
        steps.append(replace(step, **given, timing="given", **times))
    return tuple(steps)


# Running: one step is the stance of the right foot and a flight phase; the next step is its mirror image. As in
# walking, contacts change at fixed s, and the clock maps s to time.

STANCE = ("flat", "heel_off", "ball_off", "toe_off")  # contact changes in order of time
PELVIS_INTERVALS = 2  # pelvis intervals in flight for each interval of the joints
STANCE_NODE_INTERVALS = 4  # node intervals for each spline interval in stance
RUN_FREE = {"length": (0.5, 2.0), "width": (0.01, 0.3)}  # bounds of free quantities (m)


@dataclass(frozen=True)
class RunningStep(Step):
    """One running step: the stance of the right foot, and the flight after it.

    ``length`` and ``width`` are in m, and ``speed`` is in m/s. The times at which contacts change are fractions of the
    step, from 0 to 1. The foot stands on its heel until ``flat``, on heel and ball until ``heel_off``, on ball and toes
    until ``ball_off``, and on its toe tips until ``toe_off``. Then both feet are off the ground. As in a ``Step``, a
    quantity that is "free" or has bounds is a result of the optimisation; the times are results too unless ``timing``
    is "given".
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
            what = ", ".join(f"{name} is {value}" for name, value in zip(STANCE, times, strict=True))
            raise ModelError(what, where="step", allowed="increasing numbers from 0 to 1")

    def bounds(self, name: str) -> tuple[float, float]:
        """Return the bounds (lower, upper) of "length", "width" or "speed"; they are equal if it is a number."""
        return RUN_FREE[name] if name in RUN_FREE and getattr(self, name) == "free" else super().bounds(name)

    @property
    def nominal(self) -> "RunningStep":
        """The step with numbers in place of free quantities, used as the initial guess."""
        width, speed = float(np.mean(self.bounds("width"))), float(np.mean(self.bounds("speed")))
        length = float(np.clip(0.37 * speed, *self.bounds("length")))
        return replace(self, length=length, width=width, speed=speed, timing="given")

    @property
    def duty_factor(self) -> float:
        """Fraction of the stride (two steps) during which a foot is on the ground."""
        return self.toe_off / 2

    @property
    def stances(self) -> tuple[Stance, ...]:
        """All stances of the step, which are stances of the right foot."""
        ends, heel = (0.0, *(getattr(self, name) for name in STANCE)), (-self.width / 2, 0.0)
        points = (("heel", "xyz"),), WHOLE, FORE, (("toe", "xyz"),)
        return tuple(Stance("right", ends[k], ends[k + 1], contact, heel) for k, contact in enumerate(points))

    def carried(self, s: Array, foot: Foot) -> Carried:
        """Return the force distribution between the feet: the right foot carries the full force."""
        sole, x, ones = self.sole(s, foot), self.width / 2, np.ones(len(s))
        middle = np.stack([np.full(len(s), -x), sole[:, 2:].mean(axis=1)], axis=1)
        return Carried(ones, middle, middle, self.toes(s), sole - np.array([x, x, 0.0, 0.0]))

    def toes(self, s: Array) -> Array:
        """Return (K, 2): 1 where only the forefoot of the right or left foot is in contact, otherwise 0."""
        return np.stack([s > self.heel_off + TOUCHING, np.ones(len(s))], axis=1).astype(float)

    def sole(self, s: Array, foot: Foot) -> Array:
        """Return the edges (K, 4) of the part of the right sole in contact, from the heel (m)."""
        kinds = [s < self.flat - TOUCHING, s <= self.heel_off + TOUCHING, s <= self.ball_off + TOUCHING]
        back, front = (
            foot.length * np.select(kinds, ends[:3], ends[3])
            for ends in ((0.0, 0.0, FORE_ENDS[0], TOE_START), (HEEL_END, FLAT_ENDS[1], FORE_ENDS[1], 1.0))
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
        """Return the knots (K,) of the pelvis spline in flight, including both ends; the residual force is zero there.

        Accelerations of cubic splines are linear between knots. Zero wrenches at all knots determine the pelvis
        accelerations for any joint motion: there is one equation per acceleration.
        """
        knots = self.knots(points)
        ends = np.concatenate([knots[knots > self.step.toe_off - TOUCHING], [1.0]])
        return np.asarray(
            np.interp(np.arange(PELVIS_INTERVALS * (len(ends) - 1) + 1) / PELVIS_INTERVALS, np.arange(len(ends)), ends)
        )

    def pelvis(self, points: int) -> Spline:
        """Return the spline of the six global coordinates, which is finer in flight than the splines of the joints."""
        return Spline(3, np.union1d(self.knots(points), self.flight(points)[:-1]))

    def nodes(self, points: int) -> Array:
        """Return the nodes: the knots of the pelvis, and additional ones in stance."""
        knots = self.knots(points)
        ends = np.concatenate([[0.0], knots[knots < self.step.toe_off + TOUCHING]])
        at = np.arange(STANCE_NODE_INTERVALS * (len(ends) - 1) + 1) / STANCE_NODE_INTERVALS
        return np.union1d(np.interp(at, np.arange(len(ends)), ends), self.flight(points))
