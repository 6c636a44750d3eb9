"""Pushing and pulling a handle with both hands."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from torsor.base.checks import instance_of, number, positive
from torsor.base.errors import ModelError
from torsor.human.body.coordinates import SIDES
from torsor.human.body.kernels import checked_body
from torsor.human.body.loads import STRONGEST, HandForces
from torsor.human.body.postures import crouching, hips_apart, landmark
from torsor.human.body.trunk_strength import TrunkStrength
from torsor.human.contact.support import Standing
from torsor.human.tasks.task import TaskSettings
from torsor.human.terms.places import Placed
from torsor.motion import End, MotionProblem, Start
from torsor.robot.robot import Robot

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
    return _exerting("push", -1.0, body, force, height, ahead, duration, grip, trunk, frozen, points, nodes)


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
    return _exerting("pull", 1.0, body, force, height, ahead, duration, grip, trunk, frozen, points, nodes)


def _exerting(
    name: str,
    sign: float,
    body: Robot | None,
    force: float | HandForces,
    height: float,
    ahead: float,
    duration: float,
    grip: float,
    trunk: TrunkStrength | None,
    frozen: Mapping[str, float] | None,
    points: int,
    nodes: int,
) -> MotionProblem:
    """Return the problem of exerting a force; ``sign`` is that of the handle's forward force on the hands."""
    task = TaskSettings(name, checked_body(body, name), duration, points, nodes, True, frozen)
    y, z = positive(height, name, "height"), number(ahead, name, "ahead", least=0.0)
    half = positive(grip, name, "grip") / 2
    _check_handle(task.body, y, z, half, name)
    if isinstance(force, HandForces):
        hands = force
        if not np.allclose(hands.right * [-1, 1, 1], hands.left):
            allowed, fix = "forces that are mirror images of each other", "for other forces use reaching(hands=...)"
            raise ModelError("the forces on both hands differ", where=name, allowed=allowed, fix=fix)
    else:
        size = number(force, name, "force", above=0.0, most=STRONGEST)
        hands = HandForces.ramp((0.0, 0.0, sign * size), RISE * duration)
    if trunk is not None:
        instance_of(trunk, TrunkStrength, name, "trunk", allowed="a torsor.human.TrunkStrength")
    aims: list[Any] = [
        Placed(body=task.body, frame=f"{side}_knuckles", place=(x, y, z), near=0.005, name=f"{side} hand at the handle")
        for side, x in zip(SIDES, (-half, half), strict=True)
    ]
    guess = crouching(task.body, y, z, LEAN)
    ends = [Start(v=0.0, a=0.0), End(v=0.0, a=0.0)]
    support = Standing(hips_apart(task.body))
    return task.problem(support, aims, ends, (guess, guess), hands=hands, trunk=trunk)


def _check_handle(body: Robot, y: float, z: float, half: float, where: str) -> None:
    """Raise ModelError for a handle that no hand reaches: farther from the heels than the body with raised arms."""
    shoulder, knuckles, heel = (landmark(body, f"left_{place}")[1] for place in ("upper_arm", "knuckles", "heel"))
    reach = float(2 * shoulder - knuckles - heel)
    if math.hypot(y, z) > reach or half > reach:
        found = f"the handle is {y:.3g} m up, {z:.3g} m ahead and {2 * half:.3g} m wide"
        allowed = f"within {reach:.3g} m of the heels, as high as the raised hands"
        raise ModelError(found, where=where, allowed=allowed, fix="give its place in metres")
