"""Steps that no body can take: too long or too wide for its legs, or too fast for its weight."""

import math

from torsor.base.errors import ModelError, describe
from torsor.human.contact.froude import froude_number, leg_length
from torsor.human.contact.schedule import Step
from torsor.robot.robot import Robot

SPLIT = 2.0  # leg lengths: both legs would lie on the ground
LEAP = 3.5  # leg lengths: sprinters take steps of less than 3
FASTEST = 3.0  # Froude number: race walkers stay below 2.1, and a stiff leg leaves the ground at 1


def check_step(step: Step, body: Robot, where: str, *, leaps: bool = False) -> None:
    """Raise ModelError for a step that the body cannot take, before any search; with ``leaps``, of running.

    Example:
        >>> check_step(Step(length=60.0), torsor.library.human(), "walk")
        Traceback (most recent call last):
        torsor.ModelError: walk: length of the step is 60 m; allowed: up to 1.88 m, for legs of 0.942 m; fix: \
give it in metres
    """
    leg = leg_length(body)
    for name, most in (("length", LEAP if leaps else SPLIT), ("width", SPLIT)):
        least = step.bounds(name)[0]
        if least > most * leg:
            found, allowed = (
                f"{name} of the step is {least:.4g} m",
                f"up to {most * leg:.3g} m, for legs of {leg:.3g} m",
            )
            raise ModelError(describe(found, where=where, allowed=allowed, fix="give it in metres"))
    speed = step.bounds("speed")[0]
    if not leaps and froude_number(body, speed) > FASTEST:
        most = math.sqrt(FASTEST * math.hypot(*body.gravity) * leg)
        fix = "a lower speed, in m/s, or torsor.human.running"
        raise ModelError(
            describe(f"the speed is {speed:.4g} m/s", where=where, allowed=f"up to {most:.3g} m/s on foot", fix=fix)
        )
