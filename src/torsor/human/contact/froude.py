"""Speeds at which people run: the Froude number of walking.

A leg is an inverted pendulum of length l on which the body vaults over the foot; the Froude number v^2/(g l) is the
centripetal acceleration divided by that of gravity. At equal Froude numbers, people of all sizes walk alike; they
change to running at about 0.5, adults at 2.0 m/s (Alexander 1989), and above 1 a stiff leg would leave the ground.
"""

import math
from dataclasses import replace
from functools import cache

from torsor.base.checks import instance_of, number
from torsor.base.errors import ModelError, describe, warn
from torsor.human.body.postures import landmark
from torsor.human.contact.schedule import Step
from torsor.library.human import human
from torsor.robot.robot import Robot

GRAVITY = 9.81  # m/s^2, of the default body
TRANSITION = 0.5  # Froude number at which people begin to run


def leg_length(body: Robot) -> float:
    """Return the height of the hips above the soles of a standing body (m).

    Example:
        >>> round(leg_length(torsor.library.human()), 4)
        0.9425
    """
    return float(landmark(body, "right_thigh")[1] - landmark(body, "right_heel")[1])


def froude_number(body: Robot, speed: float) -> float:
    """Return the Froude number of a speed (m/s), in the gravity of the body.

    Example:
        >>> body = torsor.library.human()
        >>> round(froude_number(body, 1.3), 3), round(froude_number(body.with_gravity([0, -1.62, 0]), 1.3), 2)
        (0.183, 1.11)
    """
    speed = number(speed, "Froude number", "speed (m/s)", least=0.0)
    return speed**2 / (leg_length(body) * math.hypot(*body.gravity))


def walking_limit(body: Robot) -> float:
    """Return the speed (m/s) at which people of this size begin to run.

    Example:
        >>> child = torsor.human.Person.of_percentile(age=6, sex="female").body()
        >>> round(walking_limit(torsor.library.human()), 2), round(walking_limit(child), 2)
        (2.15, 1.7)
    """
    return math.sqrt(TRANSITION * leg_length(body) * math.hypot(*body.gravity))


def similar_step(body: Robot, step: Step | None = None) -> Step:
    """Return the step with which a body walks as the default one does with ``step``, of a given length and speed.

    The Froude number is the same: lengths are proportional to the legs, speeds to the square root of their length.

    Example:
        >>> child = torsor.human.Person.of_percentile(age=6).body()
        >>> step = similar_step(child)
        >>> round(step.length, 3), round(step.speed, 3), round(froude_number(child, step.speed), 3)
        (0.398, 0.977, 0.156)
    """
    step = instance_of(Step() if step is None else step, Step, "similar step", "step")
    if step.is_free:
        raise ModelError(describe("a free step", where="similar step", allowed="a step of given length and speed"))
    scale = leg_length(body) / _default_leg()
    weight = math.hypot(*body.gravity) / GRAVITY
    return replace(
        step, length=scale * step.length, width=scale * step.width, speed=math.sqrt(scale * weight) * step.speed
    )


@cache
def _default_leg() -> float:
    return leg_length(human())


def warn_of_running(body: Robot, speed: float) -> None:
    """Warn of a speed (m/s) at which people of this size run.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(record=True, action="always") as found:
        ...     warn_of_running(torsor.library.human(), 3.0)
        >>> str(found[0].message).split(";")[0]
        'walk: the speed is 3 m/s, a Froude number of 0.97: people of this size run from 2.15 m/s on'
    """
    froude = froude_number(body, speed)
    if froude > TRANSITION:
        found = (
            f"the speed is {speed:.3g} m/s, a Froude number of {froude:.2f}: people of this size run from "
            f"{walking_limit(body):.3g} m/s on"
        )
        fix = "a lower speed, or torsor.human.running; people do not choose a walk at this speed, if there is one"
        warn(describe(found, where="walk", fix=fix))
