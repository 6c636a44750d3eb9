"""Lifting a box with both hands."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from torsor.checks import frozen_array, instance_of, number, positive
from torsor.human.body.kernels import checked_body
from torsor.human.body.loads import Box
from torsor.human.body.person import person_of
from torsor.human.body.postures import crouching, hips_apart
from torsor.human.body.trunk_strength import TrunkStrength
from torsor.human.contact.support import Standing
from torsor.human.tasks.task import TaskSettings
from torsor.human.terms.habits import Upright
from torsor.human.terms.places import BoxAt, BoxClears, BoxLevel
from torsor.motion import End, MotionProblem, Start
from torsor.robot.robot import Robot


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
    plane; ``frozen`` has {coordinate: angle (rad)} of joints that do not move.

    Example:
        >>> problem = lifting(box=Box(15.0), from_=(0.4, 0.45))
        >>> problem.name, len(problem.model.names), round(problem.held["links.left_hand.mass"], 3)
        ('lift', 30, 7.945)
    """
    task = TaskSettings("lift", checked_body(body, "lift"), duration, points, nodes, symmetric, frozen)
    box = instance_of(Box(10.0) if box is None else box, Box, "lift", "box", allowed="a torsor.human.Box")
    places = [frozen_array(each, (2,), "lift", what).tolist() for each, what in ((from_, "from_"), (to, "to"))]
    lean = math.radians(number(lean, "lift", "lean", above=0.0, most=90.0))
    trunk = TrunkStrength(person_of(task.body)) if trunk is None else trunk
    instance_of(trunk, TrunkStrength, "lift", "trunk", allowed="a torsor.human.TrunkStrength")
    loaded = box.on(task.body)
    held: dict[str, Any] = {"body": loaded, "box": box}
    (low, near), (high, far) = places
    aims = [
        BoxAt(**held, height=low, ahead=near, at=0.0, name="box at the start"),
        BoxAt(**held, height=high, ahead=far, at=1.0, name="box at the end"),
        BoxLevel(**held, name="box level"),
        BoxClears(**held, depth=positive(depth, "lift", "depth"), name="box clear of the body"),
        Upright(body=task.body, sway=np.inf, lean=(-np.inf, math.sin(lean)), name="lean of the chest"),
    ]
    first, last = crouching(task.body, low, near, lean), crouching(task.body, high, far, lean)
    support = Standing(hips_apart(task.body) if width is None else width)
    ends = [Start(v=0.0, a=0.0), End(v=0.0, a=0.0)]
    return task.problem(support, aims, ends, (first, last), body=loaded, load=box, trunk=trunk)
