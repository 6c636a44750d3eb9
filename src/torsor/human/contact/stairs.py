"""Stairs: where the treads are under the feet of a step, and the edges that the swinging foot passes.

The right foot stands on the tread at y = 0 with its heel at z = 0; the left foot swings from the tread before it to the
one after it. Upstairs the edge of a tread is its back end, downstairs its front end.
"""

import math
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, warn
from torsor.human.body.postures import landmark
from torsor.human.contact.schedule import Step, Walk
from torsor.human.contact.support import Foot, Support
from torsor.robot.robot import Robot

GAP = 0.01  # m: between the toes and the next riser, or the heel and the one behind, on treads that are short
FEWEST = 0.75  # of the foot length: the heel or the toes may hang over an edge, while heel and ball or toes stand


class Edge(NamedTuple):
    """The edge of a tread, at ``z`` and ``y`` (m); the tread is before it (``ahead`` 1) or behind it (-1)."""

    z: float
    y: float
    ahead: float


class Stairs(NamedTuple):
    """Stairs for pictures: the tread at y = 0 begins at ``back`` (m); each has a ``length`` and a ``rise`` (m)."""

    back: float
    length: float
    rise: float

    def profile(self, first: int, last: int) -> Array:
        """Return the corners (P, 2) (z, y) of the treads with numbers from first to last; that at y = 0 is number 0."""
        numbers = range(first, last + 1)
        return np.array([(self.back + self.length * end, self.rise * k) for k in numbers for end in (k, k + 1)])


def stairs_of(support: Support, body: Robot) -> Stairs | None:
    """Return the stairs of a walk, or None on other ground."""
    if not isinstance(support, Walk) or not support.step.rise:
        return None
    step = support.step
    return Stairs(tread(step, Foot.of(body))[0], float(step.length), step.rise)


def tread(step: Step, foot: Foot) -> tuple[float, float]:
    """Return the back and the front end (m) of the tread under a foot, from its heel.

    The foot stands in the middle. On a tread that is too short for that, the toes are close to the next riser
    upstairs, so that the heel hangs over the edge, and the heel is close to the riser behind downstairs.
    """
    length, room = float(step.length), float(step.length) - foot.length
    short = GAP - room if step.rise > 0 else -GAP
    back = -room / 2 if room >= 2 * GAP else short
    return round(back, 12), round(back + length, 12)


def edges(step: Step, foot: Foot) -> tuple[Edge, ...]:
    """Return the edges that the left foot passes on its way, and the one of the tread after that upstairs."""
    (back, front), rise, length = tread(step, foot), step.rise, float(step.length)
    if rise > 0:
        return tuple(Edge(round(back + k * length, 12), k * rise, 1.0) for k in range(3))
    return tuple(Edge(round(front + k * length, 12), k * rise + 0.0, -1.0) for k in (-1, 0))


def highest_rise(body: Robot) -> float:
    """Return how high (m) a body lifts its sole beside a straight leg, with the knee at the end of its range."""
    hip, knee, ankle = (landmark(body, f"right_{name}") for name in ("thigh", "shank", "foot"))
    thigh, shank = float(hip[1] - knee[1]), float(knee[1] - ankle[1])
    flexion = float(body.upper[body.coordinate_names.index("right_knee_flexion")])
    folded = math.sqrt(thigh**2 + shank**2 + 2 * thigh * shank * math.cos(flexion))
    return thigh + shank - folded


def check_stairs(step: Step, body: Robot) -> None:
    """Raise ModelError for stairs that a body cannot climb; treads shorter than the foot warn."""
    foot, most = Foot.of(body), highest_rise(body)
    if abs(step.rise) > most:
        found = f"rise is {step.rise:g} m"
        allowed = f"at most {most:.3g} m: this body lifts its foot no higher beside a straight leg"
        raise ModelError(found, where="stairs", allowed=allowed)
    if step.length < FEWEST * foot.length:
        found = f"length is {step.length:g} m: the ball of a foot of {foot.length:.3g} m does not stand on the tread"
        raise ModelError(found, where="stairs", allowed=f"at least {FEWEST * foot.length:.3g} m")
    if step.length < foot.length:
        part = "heel" if step.rise > 0 else "tips of the toes"
        found = f"the tread of {step.length:g} m is shorter than the foot of {foot.length:.3g} m"
        warn(found, where="stairs", fix=f"a longer tread, or accept that the {part} hang over its edge")
