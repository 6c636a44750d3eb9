"""Lifting a box with both hands."""

import math
from collections.abc import Mapping
from typing import Any

from torsor.base.checks import frozen_array, instance_of, number, positive
from torsor.human.body.kernels import checked_body
from torsor.human.body.loads import Box
from torsor.human.body.postures import crouching, hips_apart
from torsor.human.body.trunk_strength import TrunkStrength
from torsor.human.contact.support import Standing
from torsor.human.tasks.task import TaskSettings
from torsor.human.terms.places import BoxAt, BoxClears, BoxFacing, BoxGripped, BoxLevel, ChestLean
from torsor.motion import End, MotionProblem, Start
from torsor.motion.terms.term import Constraint
from torsor.robot.robot import Robot

TWISTED = 90.0  # largest angle of a box beside the body (degrees)
HEAVIEST = 300.0  # kg: more than anybody lifts


def lifting(
    body: Robot | None = None,
    box: Box | None = None,
    from_: tuple[float, float] = (0.3, 0.45),
    to: tuple[float, float] = (1.0, 0.4),
    duration: float = 1.2,
    *,
    depth: float = 0.3,
    lean: float = 50.0,
    width: float | None = None,
    turn: float = 0.0,
    symmetric: bool = True,
    frozen: Mapping[str, float] | None = None,
    trunk: TrunkStrength | None = None,
    points: int = 8,
    nodes: int = 31,
) -> MotionProblem:
    """Return the problem of lifting a box (10 kg by default) with both hands, from rest to rest.

    ``from_`` and ``to`` are the height of its centre, where the hands hold it, and the distance ahead of the heels (m).
    The box stays level, and clear of shanks, thighs and trunk by half its ``depth`` (m). ``lean`` (degrees) is the
    largest forward lean of the chest: a small one bends the legs, a large one the back. The hands carry the weight of
    the box from start to end: the lift-off from the ground is not modelled. The posture at the start is free. ``width``
    (m) is the distance of the heels, by default that of the hips. ``symmetric`` keeps trunk and pelvis in the sagittal
    plane; ``frozen`` has {coordinate: angle (rad)} of joints that do not move. ``turn`` (degrees) is the direction in
    which the box is at the start, to the left of straight ahead: the trunk twists, and ``symmetric`` does not apply.

    ``trunk`` is the strength of the back by the flexion of the spine, by default the mean one of people of the same
    height, mass and sex; it replaces the ``effort_limit`` of the spine's flexions. A lift that nobody of this strength
    can do ends with a ``MotionError`` that names it.

    Example:
        >>> problem = lifting(box=Box(15.0), from_=(0.4, 0.45))
        >>> problem.name, len(problem.model.names), round(problem.held["links.left_hand.mass"], 3)
        ('lift', 30, 7.945)
    """
    angle = math.radians(number(turn, "lift", "turn", least=-TWISTED, most=TWISTED))
    symmetric = instance_of(symmetric, bool, "lift", "symmetric") and not angle
    task = TaskSettings("lift", checked_body(body, "lift"), duration, points, nodes, symmetric, frozen)
    box = instance_of(Box(10.0) if box is None else box, Box, "lift", "box", allowed="a torsor.human.Box")
    number(box.mass, "lift", "mass of the box", most=HEAVIEST)
    places = [frozen_array(each, (2,), "lift", what).tolist() for each, what in ((from_, "from_"), (to, "to"))]
    lean = math.radians(number(lean, "lift", "lean", above=0.0, most=90.0))
    trunk = task.mean_trunk if trunk is None else trunk
    instance_of(trunk, TrunkStrength, "lift", "trunk", allowed="a torsor.human.TrunkStrength")
    loaded = box.on(task.body)
    held: dict[str, Any] = {"body": loaded, "box": box}
    (low, near), (high, far) = places
    if angle:
        aside, ahead = near * math.sin(angle), near * math.cos(angle)
        aims: list[Constraint] = [
            BoxFacing(**held, place=(aside, low, ahead), turn=angle, at=0.0, name="box at the start"),
            BoxFacing(**held, place=(0.0, high, far), at=1.0, name="box at the end"),
            BoxGripped(**held, name="box level"),
        ]
    else:
        aims = [
            BoxAt(**held, height=low, ahead=near, at=0.0, name="box at the start"),
            BoxAt(**held, height=high, ahead=far, at=1.0, name="box at the end"),
            BoxLevel(**held, name="box level"),
        ]
    aims += [
        BoxClears(**held, depth=positive(depth, "lift", "depth"), name="box clear of the body"),
        ChestLean(most=lean, name="lean of the chest"),
    ]
    first, last = crouching(task.body, low, near, lean), crouching(task.body, high, far, lean)
    support = Standing(hips_apart(task.body) if width is None else width)
    ends = [Start(v=0.0, a=0.0), End(v=0.0, a=0.0)]
    return task.problem(support, aims, ends, (first, last), body=loaded, load=box, trunk=trunk)
