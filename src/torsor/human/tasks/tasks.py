"""Other tasks of a human on flat feet, predicted by the least effort: lifting a box, standing up, reaching.

They are made of the same parts as walking: its body, ground, strengths and compiled functions. The ground lies
at y = 0, and z = 0 is where the heels are, with their middle at x = 0; x points to the left, z forward. Clavicles,
wrists, neck, head and the upper spine do not move.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from torsor import library
from torsor.checks import positive
from torsor.errors import ModelError, describe
from torsor.human.body.kernels import check_body, shared
from torsor.human.body.loads import Box
from torsor.human.body.postures import BUTTOCKS, Task, both, crouching, hips_apart, sitting, standing
from torsor.human.contact.support import SIDES, Sitting, Standing
from torsor.human.gait.walking import FROZEN
from torsor.human.terms.feet import contacts
from torsor.human.terms.forces import Balance, Effort, Torques
from torsor.human.terms.habits import Habits, Upright
from torsor.human.terms.places import BoxAt, BoxClears, BoxLevel, Placed
from torsor.motion import End, MotionProblem, Phase, Positions, Start
from torsor.motion.terms.ends import Ends
from torsor.motion.terms.term import Constraint
from torsor.robot.robot import Robot

__all__ = ["TASKS", "lifting", "reaching", "standing_up"]

# What these tasks use of the joints' ranges (degrees; m): without them, joints that cost no torque wander.
RANGES: Mapping[str, tuple[float, float]] = {
    "tx": (-0.2, 0.2),
    "ty": (-0.8, 0.02),
    "tz": (-0.6, 0.4),
    "yaw": (-20, 20),
    "tilt": (-15, 90),
    "list": (-10, 10),
    "hip_adduction": (-25, 15),
    "hip_rotation": (-25, 25),
    "ankle_inversion": (-15, 15),
    "toe_extension": (-5, 5),
    **{f"spine{k}_flexion": (-2, 25) for k in (1, 2, 3)},
    "lateral": (-5, 5),
    "axial": (-10, 10),
    "shoulder_flexion": (-40, 150),
    "shoulder_adduction": (-60, 30),
    "shoulder_rotation": (-60, 60),
    "elbow_flexion": (0, 130),
    "pronation": (-80, 80),
}
# The same of arms that have nothing to do.
IDLE: Mapping[str, tuple[float, float]] = {
    "shoulder_flexion": (-5, 60),
    "shoulder_adduction": (-15, -5),
    "shoulder_rotation": (-10, 10),
    "elbow_flexion": (5, 75),
    "pronation": (-10, 10),
}
ODD = ("tx", "yaw", "list", "lateral", "axial")  # what is zero where left and right do the same
LAP = {"shoulder_adduction": -0.15, "shoulder_flexion": 0.5, "elbow_flexion": 1.0}  # of hands above the thighs (rad)
SLACK, SLIP, FRICTION = 0.003, 0.1, 0.8
EASY = 0.1  # weight of postures in reaching, which costs little torque


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
    points: int = 8,
    nodes: int = 31,
) -> MotionProblem:
    """Return the problem of lifting a box (10 kg) with both hands, from rest to rest.

    ``from_`` and ``to`` are heights of its middle, where the hands hold it, and how far it is ahead of the heels (m).
    It stays level, and clear of shanks, thighs and trunk by half its ``depth`` (m). The chest leans forward by ``lean``
    (degrees) at most: legs bend where this is little, and the back where it is much. The weight of the box is on the
    hands from the start to the end: the moment in which the ground lets it go is no part of the motion. How the body
    bends down at the start is free. ``width`` (m) is between the heels, by default as between the hips. ``symmetric``
    keeps trunk and pelvis in the middle plane.

    Example:
        >>> problem = lifting(box=Box(15.0), from_=(0.4, 0.45))
        >>> problem.name, len(problem.model.names), round(problem.held["links.left_hand.mass"], 3)
        ('lift', 30, 7.945)
    """
    body, box = _body(body, "lift"), Box(10.0) if box is None else box
    if not isinstance(box, Box):
        raise ModelError(describe(f"box is {box!r}", where="lift", allowed="a torsor.human.Box"))
    places = [_place(each, name) for each, name in ((from_, "from_"), (to, "to"))]
    loaded = box.on(body)
    given: dict[str, Any] = {"body": loaded, "box": box}
    rows: list[Constraint] = [
        *(
            BoxAt(**given, height=height, ahead=ahead, at=at, name=name)
            for (height, ahead), at, name in zip(
                places, (0.0, 1.0), ("box at the start", "box at the end"), strict=True
            )
        ),
        BoxLevel(**given, name="box level"),
        BoxClears(**given, depth=positive(depth, "lift", "depth"), name="box clear of the body"),
    ]
    most = math.radians(_angle(lean, "lean", "lift"))
    rows.append(Upright(body=body, sway=np.inf, lean=(-np.inf, math.sin(most)), name="lean of the chest"))
    first, last = (crouching(body, *place, most) for place in places)
    support = Standing(hips_apart(body) if width is None else width)
    ends = [Start(v=0.0, a=0.0), End(v=0.0, a=0.0)]
    return _task(
        "lift", loaded, support, rows, ends, RANGES, _phase(duration, points, nodes, "lift"), (first, last), symmetric
    )


def standing_up(
    body: Robot | None = None,
    seat: float = 0.45,
    duration: float = 1.5,
    *,
    off: float = 0.4,
    share: float = 0.8,
    symmetric: bool = True,
    points: int = 12,
    nodes: int = 31,
) -> MotionProblem:
    """Return the problem of standing up from a seat of that height (m), from rest to rest, with arms that swing freely.

    The body sits upright with its shanks 18 degrees forward and stands upright in the end. Until the share ``off`` of
    the motion the hips stay where they are, and the seat carries: ``share`` of the whole force at the start, and
    smoothly less. Its force is on the pelvis; see ``Sitting``. ``symmetric``
    keeps trunk and pelvis in the middle plane.

    Example:
        >>> problem = standing_up(seat=0.5)
        >>> problem.name, problem.stages[0].duration
        ('stand-up', 1.5)
    """
    body = _body(body, "stand-up")
    legs, still = (
        sitting(body, positive(seat, "stand-up", "seat"), "stand-up"),
        dict.fromkeys(_moving(body, symmetric), 0.0),
    )
    first, last, back = still | both(LAP) | legs, still | standing(body), -legs["tz"]
    support = Sitting(hips_apart(body), height=seat, back=back, share=share, off=off)
    place = (0.0, seat + BUTTOCKS, -back)
    rows = [Placed(body=body, frame="pelvis", place=place, near=0.015, during=(0.0, off), name="hips on the seat")]
    ends = [Start(q=first, v=0.0, a=0.0), End(q=last, v=0.0, a=0.0)]
    return _task(
        "stand-up",
        body,
        support,
        rows,
        ends,
        {**RANGES, **IDLE},
        _phase(duration, points, nodes, "stand-up"),
        (first, last),
        symmetric,
    )


def reaching(
    body: Robot | None = None,
    target: Sequence[float] = (-0.2, 1.1, 0.75),
    hand: str = "right",
    duration: float = 1.0,
    *,
    points: int = 8,
    nodes: int = 31,
) -> MotionProblem:
    """Return the problem of reaching a point (x, y, z) (m) with the knuckles of a hand, from standing, to rest there.

    Both feet stay flat; the body bends, squats and turns as far as it can and must. A target that cannot be reached
    raises a ``MotionError`` when the problem is solved, whose ``result`` is the posture that comes nearest.

    Example:
        >>> problem = reaching(target=(0.3, 0.6, 0.5), hand="left")
        >>> [each.title for each in problem.conditions][-1]
        'left hand at the target'
    """
    body = _body(body, "reach")
    if hand not in SIDES:
        raise ModelError(describe(f"hand is {hand!r}", where="reach", allowed="'right' or 'left'"))
    x, y, z = _numbers(target, 3, "target", "reach")
    rows = [Placed(body=body, frame=f"{hand}_knuckles", place=(x, y, z), at=1.0, name=f"{hand} hand at the target")]
    first = dict.fromkeys(_moving(body), 0.0) | standing(body)
    ends = [Start(q=first, v=0.0, a=0.0), End(v=0.0, a=0.0)]
    idle = {f"{side}_{name}": ends for side in SIDES if side != hand for name, ends in IDLE.items()}
    return _task(
        "reach",
        body,
        Standing(hips_apart(body)),
        rows,
        ends,
        {**RANGES, **idle},
        _phase(duration, points, nodes, "reach"),
        (first, first),
        posture=EASY,
        aim_first=True,
    )


TASKS: Mapping[str, Callable[..., MotionProblem]] = {"lift": lifting, "stand-up": standing_up, "reach": reaching}


def _task(
    name: str,
    body: Robot,
    support: Standing,
    rows: Sequence[Constraint],
    ends: Sequence[Ends],
    ranges: Mapping[str, tuple[float, float]],
    phase: Phase,
    postures: tuple[Mapping[str, float], Mapping[str, float]],
    symmetric: bool = False,
    posture: float = 0.02,
    aim_first: bool = False,
) -> MotionProblem:
    """Return the problem of a task: least effort on flat feet, within ranges and strengths, in balance.

    Where there is no motion, the rows of the task give way: before torques and balance, or after these.
    """
    moving = _moving(body, symmetric)
    given: dict[str, Any] = {"body": body, "support": support, "friction": FRICTION}
    model, numbers = shared(body)
    constraints: list[Constraint | Ends] = [
        *ends,
        _ranges(body, moving, ranges),
        Torques(moving=moving, **given, name="torques"),
        Balance(**given, name="balance"),
        *contacts(body, support, SLACK, SLIP),
        *rows,
    ]
    aims, forces = [each.title for each in rows], (["torques"], ["balance"])
    return Task(
        model,
        phase,
        Effort(moving=moving, posture=posture, **given, name="effort"),
        constraints,
        frozen={each: 0.0 for each in body.coordinate_names if each not in moving},
        numbers=numbers,
        name=name,
        settings={"solver": "condensed", "tolerance": 1e-5},
        relaxation_order=(aims, *forces) if aim_first else (*forces, aims),
        first=postures[0],
        last=postures[1],
    )


def _phase(duration: float, points: int, nodes: int, where: str) -> Phase:
    return Phase(positive(duration, where, "duration"), points=points, nodes=nodes, quadrature="trapezoid")


def _angle(value: Any, what: str, where: str) -> float:
    if not positive(value, where, what) <= 90:
        raise ModelError(describe(f"{what} is {value!r}", where=where, allowed="an angle from 0 to 90 (degrees)"))
    return float(value)


def _body(given: Robot | None, where: str) -> Robot:
    body = library.human() if given is None else given
    check_body(body, where)
    return body


def _moving(body: Robot, symmetric: bool = False) -> tuple[str, ...]:
    """Return the coordinates that move: as in walking, and none to the side where left and right do the same."""
    names = [name for name in body.coordinate_names if not any(word in name for word in FROZEN)]
    return tuple(name for name in names if not (symmetric and name.endswith(ODD)))


def _ranges(body: Robot, moving: Sequence[str], ranges: Mapping[str, tuple[float, float]]) -> Constraint:
    lower, upper = Habits(ranges).bounds(body, list(moving), 0.0, False)
    return Positions(lower=lower, upper=upper, hull=True, name="ranges")


def _place(value: Any, what: str) -> tuple[float, float]:
    """Return a height and a way ahead (m)."""
    height, ahead = _numbers(value, 2, what, "lift")
    return height, ahead


def _numbers(value: Any, count: int, what: str, where: str) -> list[float]:
    """Return finite numbers."""
    try:
        found = np.array(value, dtype=float)
    except (TypeError, ValueError):
        found = np.full(0, np.nan)
    if found.shape != (count,) or not np.isfinite(found).all():
        raise ModelError(describe(f"{what} is {value!r}", where=where, allowed=f"{count} finite numbers (m)"))
    return [float(each) for each in found]
