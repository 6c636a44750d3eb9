"""The largest load that a person can lift: bisection over the mass of the box."""

from typing import Any, NamedTuple

from torsor.base.checks import positive
from torsor.base.errors import ModelError
from torsor.human.body.loads import Box
from torsor.human.tasks.hand_tasks import HEAVIEST, lifting
from torsor.motion import MotionResult
from torsor.robot.robot import Robot

ITERATIONS = 120  # of one lift: a feasible motion is found sooner, an infeasible one is given up


class LargestLift(NamedTuple):
    """The largest ``mass`` (kg) that was lifted, its motion, and the least ``too_heavy`` mass (kg) that was not."""

    mass: float
    result: MotionResult
    too_heavy: float


def largest_lift(body: Robot | None = None, *, within: float = 1.0, first: float = 10.0, **lift: Any) -> LargestLift:
    """Return the largest box that a person can lift, to ``within`` kg, and its motion.

    ``first`` (kg) is the mass that is tried first; further arguments are those of ``lifting`` without the box. Each
    mass is a motion problem of its own, solved for a feasible motion: it takes some seconds, and longer where there is
    none. A heavier box may be possible in a motion that is far from those found.

    Example:
        >>> largest_lift(within=-1.0)
        Traceback (most recent call last):
        torsor.ModelError: largest lift: within (kg) is -1.0; allowed: a finite number, above 0
    """
    within = positive(within, "largest lift", "within (kg)")
    mass, least, most, best = positive(first, "largest lift", "first (kg)"), 0.0, HEAVIEST, None
    if "box" in lift:
        raise ModelError("box is given", where="largest lift", allowed="arguments of lifting without the box")
    while best is None or most - least > within:
        problem = lifting(body, Box(mass), **lift)
        found = problem.solve(start=best, check=False, iterations=ITERATIONS)
        if best is not None and not found.is_feasible:  # a lighter lift may be a bad start
            found = problem.solve(check=False, iterations=ITERATIONS)
        if found.is_feasible:
            best, least = found, mass
        else:
            most = mass
        if best is None and most < within:
            found_text = f"not even {most:.3g} kg can be lifted"
            fix = "another place of the box, more time, or a stronger person"
            raise ModelError(found_text, where="largest lift", fix=fix)
        mass = min(2 * mass, (least + HEAVIEST) / 2) if most == HEAVIEST else (least + most) / 2
    return LargestLift(least, best, most)
