"""Standing up from a seat, and sitting down."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import instance_of, number, positive
from torsor.human.body.kernels import checked_body
from torsor.human.body.postures import BUTTOCKS, both, hips_apart, landmark, sitting, standing
from torsor.human.contact.support import Rails, Seat, Sitting, smoothstep
from torsor.human.tasks.task import IDLE, RANGES, TaskSettings
from torsor.human.terms.places import Placed, check_reach
from torsor.motion import End, MotionProblem, Start
from torsor.robot.robot import Robot

ARM = ("shoulder_flexion", "shoulder_adduction", "shoulder_rotation", "elbow_flexion", "pronation")
LAP = {"shoulder_adduction": -0.15, "shoulder_flexion": 0.5, "elbow_flexion": 1.0}  # hands above the thighs (rad)


def standing_up(
    body: Robot | None = None,
    seat: float = 0.45,
    duration: float = 1.5,
    *,
    off: float = 0.4,
    share: float = 0.8,
    peak: float = 1.0,
    rails: Rails | None = None,
    symmetric: bool = True,
    frozen: Mapping[str, float] | None = None,
    points: int = 12,
    nodes: int = 31,
) -> MotionProblem:
    """Return the problem of standing up from a seat of a height (m), from rest to rest, with freely swinging arms.

    At the start the body sits upright, with its shanks inclined forward by 18 degrees; at the end it stands upright.
    Until the fraction ``off`` of the duration the hips stay on the seat. The seat carries the fraction ``share`` of the
    whole force at the start, and smoothly less until ``off``; its force acts on the pelvis (see ``Sitting``). ``peak``
    is the weight of the sum of the largest hip and knee extension moment (N m/kg of one leg) beside the effort: with 10
    and in 2.5 s the legs need little more than in any quasi-static way of standing up, with 0 the effort alone decides,
    which accepts high peaks for a short time. ``rails`` (``Rails``) are armrests: the hands are on them at first, and
    their forces are found together with the motion. ``symmetric`` keeps trunk and pelvis in the sagittal plane;
    ``frozen`` has {coordinate: angle (rad)} of joints that do not move.

    Example:
        >>> problem = standing_up(seat=0.5)
        >>> problem.name, problem.stages[0].duration
        ('stand-up', 1.5)
    """
    task = TaskSettings("stand-up", checked_body(body, "stand-up"), duration, points, nodes, symmetric, frozen)
    return _seat_task(task, Sitting, seat, off, share, peak, rails)


def _seat_task(
    task: TaskSettings, kind: type[Sitting], seat: float, off: float, share: float, peak: float, rails: Rails | None
) -> MotionProblem:
    """Return the problem of leaving a seat, or of the reverse; the hips are on it for the fraction ``off``."""
    weight = number(peak, task.name, "peak", least=0.0)
    legs = sitting(task.body, positive(seat, task.name, "seat"), task.name)
    seated, upright = task.posture(both(LAP) | legs), task.posture(standing(task.body))
    support = kind(hips_apart(task.body), height=seat, back=-legs["tz"], share=share, off=off, rails=rails)
    place, given, ranges, held = (0.0, seat + BUTTOCKS, legs["tz"]), seated, {**RANGES, **IDLE}, 1.0
    if rails is not None:
        instance_of(rails, Rails, task.name, "rails", allowed="a torsor.human.Rails")
        shoulder = landmark(task.body, "right_upper_arm") - landmark(task.body, "pelvis") + np.array(place)
        check_reach(task.body, rails, tuple(shoulder.tolist()), task.name)
        given = {name: at for name, at in seated.items() if not name.endswith(ARM)}
        ranges, held = dict(RANGES), rails.until
    still: dict[str, Any] = {"v": 0.0, "a": 0.0}
    if kind is Sitting:
        during, on_rails, guess = (0.0, off), (0.0, held), (seated, upright)
        ends = [Start(q=given, **still), End(q=upright, **still)]
    else:
        during, on_rails, guess = (1.0 - off, 1.0), (1.0 - held, 1.0), (upright, seated)
        ends = [Start(q=upright, **still), End(q=given, **still)]
    aims = [Placed(body=task.body, frame="pelvis", place=place, near=0.015, during=during, name="hips on the seat")]
    return task.problem(support, aims, ends, guess, ranges=ranges, peak=weight, on_rails=on_rails)


@dataclass(frozen=True)
class SittingDown(Sitting):
    """As ``Sitting`` in the reverse order: the seat carries nothing until 1 - ``off``, then smoothly more."""

    def seated(self, s: Array) -> Seat:
        """Return the fraction of the force on the seat, and its point of application."""
        fraction = self.share * smoothstep((s - 1 + self.off) / self.off)
        return super().seated(s)._replace(fraction=np.asarray(fraction))


def sitting_down(
    body: Robot | None = None,
    seat: float = 0.45,
    duration: float = 1.5,
    *,
    on: float = 0.6,
    share: float = 0.8,
    peak: float = 1.0,
    rails: Rails | None = None,
    symmetric: bool = True,
    frozen: Mapping[str, float] | None = None,
    points: int = 12,
    nodes: int = 31,
) -> MotionProblem:
    """Return the problem of sitting down on a seat of a height (m), from standing to sitting upright at rest.

    From the fraction ``on`` of the duration the hips are on the seat, which carries smoothly more until it has the
    fraction ``share`` of the whole force at the end. The hands are on ``rails`` at the end. ``peak`` and the other
    arguments are those of ``standing_up``.

    Example:
        >>> sitting_down(seat=0.5).name
        'sit-down'
    """
    task = TaskSettings("sit-down", checked_body(body, "sit-down"), duration, points, nodes, symmetric, frozen)
    touch = number(on, "sit-down", "on", above=0.0, below=1.0)
    return _seat_task(task, SittingDown, seat, 1 - touch, share, peak, rails)
