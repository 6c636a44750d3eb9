"""Tasks of the hands: lifting a box, the largest lift, pushing and pulling a handle, reaching a point."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from torsor.base.checks import frozen_array, instance_of, number, one_of, positive
from torsor.base.errors import ModelError
from torsor.human.body.coordinates import SIDES
from torsor.human.body.kernels import checked_body
from torsor.human.body.loads import STRONGEST, Box, HandForces
from torsor.human.body.postures import crouching, hips_apart, landmark, standing
from torsor.human.body.trunk_strength import TrunkStrength
from torsor.human.contact.support import Standing
from torsor.human.tasks.task import IDLE, RANGES, TaskSettings
from torsor.human.terms.places import BoxAt, BoxClears, BoxFacing, BoxGripped, BoxLevel, ChestLean, Placed
from torsor.motion import End, MotionProblem, MotionResult, Start
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
    first, last = held | {"at": 0.0, "name": "box at the start"}, held | {"at": 1.0, "name": "box at the end"}
    aims: list[Constraint] = [BoxAt(**first, height=low, ahead=near), BoxAt(**last, height=high, ahead=far)]
    if angle:
        start = (near * math.sin(angle), low, near * math.cos(angle))
        aims = [BoxFacing(**first, place=start, turn=angle), BoxFacing(**last, place=(0.0, high, far))]
    aims += [
        (BoxGripped if angle else BoxLevel)(**held, name="box level"),
        BoxClears(**held, depth=positive(depth, "lift", "depth"), name="box clear of the body"),
        ChestLean(most=lean, name="lean of the chest"),
    ]
    guess = crouching(task.body, low, near, lean), crouching(task.body, high, far, lean)
    support = Standing(hips_apart(task.body) if width is None else width)
    ends = [Start(v=0.0, a=0.0), End(v=0.0, a=0.0)]
    return task.problem(support, aims, ends, guess, body=loaded, load=box, trunk=trunk)


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
            fix = "another place of the box, more time, or a stronger person"
            raise ModelError(f"not even {most:.3g} kg can be lifted", where="largest lift", fix=fix)
        mass = min(2 * mass, (least + HEAVIEST) / 2) if most == HEAVIEST else (least + most) / 2
    return LargestLift(least, best, most)


LEAN = 0.5  # forward lean of the chest in the initial guess, for hips at half of their height (rad)
RISE = 0.7  # fraction of the duration in which the force rises


def pushing(
    body: Robot | None = None,
    force: float | HandForces = 100.0,
    height: float = 1.0,
    ahead: float = 0.55,
    duration: float = 1.5,
    *,
    grip: float = 0.4,
    trunk: TrunkStrength | None = None,
    frozen: Mapping[str, float] | None = None,
    points: int = 8,
    nodes: int = 31,
) -> MotionProblem:
    """Return the problem of pushing a handle forward with both hands, on flat feet side by side, from rest to rest.

    ``force`` (N) rises from 0 to this value in 70 % of the duration and then stays; ``HandForces`` give any other
    course and direction. The hands hold the handle at a ``height`` and a distance ``ahead`` of the heels, ``grip``
    apart (m), all the time: the body leans into it. People who push harder place one foot ahead, which these tasks do
    not.

    Example:
        >>> problem = pushing(force=80.0)
        >>> problem.name, [each.title for each in problem.conditions][-1]
        ('push', 'left hand at the handle')
    """
    task = TaskSettings("push", checked_body(body, "push"), duration, points, nodes, True, frozen)
    return _exerting(task, -1.0, force, height, ahead, grip, trunk)


def pulling(
    body: Robot | None = None,
    force: float | HandForces = 100.0,
    height: float = 1.0,
    ahead: float = 0.55,
    duration: float = 1.5,
    *,
    grip: float = 0.4,
    trunk: TrunkStrength | None = None,
    frozen: Mapping[str, float] | None = None,
    points: int = 8,
    nodes: int = 31,
) -> MotionProblem:
    """Return the problem of pulling a handle backward with both hands; the arguments are those of ``pushing``.

    Example:
        >>> pulling(force=80.0).name
        'pull'
    """
    task = TaskSettings("pull", checked_body(body, "pull"), duration, points, nodes, True, frozen)
    return _exerting(task, 1.0, force, height, ahead, grip, trunk)


def _exerting(
    task: TaskSettings,
    sign: float,
    force: float | HandForces,
    height: float,
    ahead: float,
    grip: float,
    trunk: TrunkStrength | None,
) -> MotionProblem:
    """Return the problem of exerting a force; ``sign`` is that of the handle's forward force on the hands."""
    name, body = task.name, task.body
    y, z = positive(height, name, "height"), number(ahead, name, "ahead", least=0.0)
    half = positive(grip, name, "grip") / 2
    shoulder, knuckles, heel = (landmark(body, f"left_{place}")[1] for place in ("upper_arm", "knuckles", "heel"))
    reach = float(2 * shoulder - knuckles - heel)
    if math.hypot(y, z) > reach or half > reach:
        found = f"the handle is {y:.3g} m up, {z:.3g} m ahead and {2 * half:.3g} m wide"
        allowed = f"within {reach:.3g} m of the heels, as high as the raised hands"
        raise ModelError(found, where=name, allowed=allowed, fix="give its place in metres")
    if isinstance(force, HandForces):
        hands = force
        if not np.allclose(hands.right * [-1, 1, 1], hands.left):
            allowed, fix = "forces that are mirror images of each other", "for other forces use reaching(hands=...)"
            raise ModelError("the forces on both hands differ", where=name, allowed=allowed, fix=fix)
    else:
        size = number(force, name, "force", above=0.0, most=STRONGEST)
        hands = HandForces.ramp((0.0, 0.0, sign * size), RISE * task.duration)
    if trunk is not None:
        instance_of(trunk, TrunkStrength, name, "trunk", allowed="a torsor.human.TrunkStrength")
    aims = [
        Placed(body=body, frame=f"{side}_knuckles", place=(x, y, z), near=0.005, name=f"{side} hand at the handle")
        for side, x in zip(SIDES, (-half, half), strict=True)
    ]
    guess, ends = crouching(body, y, z, LEAN), [Start(v=0.0, a=0.0), End(v=0.0, a=0.0)]
    return task.problem(Standing(hips_apart(body)), aims, ends, (guess, guess), hands=hands, trunk=trunk)


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
    other = SIDES[1 - SIDES.index(hand)]
    ranges = {**RANGES, **{f"{other}_{joint}": range_ for joint, range_ in IDLE.items()}}
    more: dict[str, Any] = {"posture": POSTURE, "relax_aims_first": True, "hands": hands}
    return task.problem(Standing(hips_apart(task.body)), aims, ends, (first, first), ranges=ranges, **more)
