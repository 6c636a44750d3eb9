"""Reaching a point with one hand."""

from collections.abc import Mapping, Sequence

from torsor.base.checks import frozen_array, instance_of, one_of
from torsor.human.body.coordinates import SIDES
from torsor.human.body.kernels import checked_body
from torsor.human.body.loads import HandForces
from torsor.human.body.postures import hips_apart, standing
from torsor.human.contact.support import Standing
from torsor.human.tasks.task import IDLE, RANGES, TaskSettings
from torsor.human.terms.places import Placed
from torsor.motion import End, MotionProblem, Start
from torsor.robot.robot import Robot

POSTURE = 0.1  # weight of squared deviations from the relaxed posture: reaching costs little torque


def reaching(
    body: Robot | None = None,
    target: Sequence[float] = (-0.2, 1.1, 0.75),
    hand: str = "right",
    duration: float = 1.0,
    *,
    hands: HandForces | None = None,
    frozen: Mapping[str, float] | None = None,
    points: int = 8,
    nodes: int = 31,
) -> MotionProblem:
    """Return the problem of reaching a point (x, y, z) (m) with the knuckles of a hand, from standing to rest.

    ``hands`` are forces on the hands (``HandForces``), for example of a tool. Both feet stay flat; the body bends,
    squats and turns as far as it can and must. ``frozen`` has {coordinate: angle (rad)} of joints that do not move. If
    the target is out of reach, ``solve`` raises a ``MotionError`` whose ``result`` is the posture that comes nearest.

    Example:
        >>> problem = reaching(target=(0.3, 0.6, 0.5), hand="left")
        >>> [each.title for each in problem.conditions][-1]
        'left hand at the target'
    """
    task = TaskSettings("reach", checked_body(body, "reach"), duration, points, nodes, frozen=frozen)
    if hands is not None:
        instance_of(hands, HandForces, "reach", "hands", allowed="torsor.human.HandForces")
    one_of(hand, SIDES, "reach", "hand")
    x, y, z = frozen_array(target, (3,), "reach", "target").tolist()
    frame, name = f"{hand}_knuckles", f"{hand} hand at the target"
    aims = [Placed(body=task.body, frame=frame, place=(x, y, z), at=1.0, name=name)]
    first = task.posture(standing(task.body))
    ends = [Start(q=first, v=0.0, a=0.0), End(v=0.0, a=0.0)]
    idle = {f"{side}_{name}": range_ for side in SIDES if side != hand for name, range_ in IDLE.items()}
    support, ranges = Standing(hips_apart(task.body)), {**RANGES, **idle}
    return task.problem(
        support, aims, ends, (first, first), ranges=ranges, posture=POSTURE, relax_aims_first=True, hands=hands
    )
