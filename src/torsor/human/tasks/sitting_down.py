"""Sitting down on a seat."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import number, positive
from torsor.human.body.kernels import checked_body
from torsor.human.body.postures import BUTTOCKS, both, hips_apart, sitting, standing
from torsor.human.contact.support import Rails, Seat, Sitting, smoothstep
from torsor.human.tasks.seat_tasks import LAP, seated
from torsor.human.tasks.task import IDLE, RANGES, TaskSettings
from torsor.human.terms.places import Placed
from torsor.motion import End, MotionProblem, Start
from torsor.robot.robot import Robot


@dataclass(frozen=True)
class SittingDown(Sitting):
    """As ``Sitting`` in the reverse order: the seat carries nothing until 1 - ``off``, then smoothly more.

    Example:
        >>> SittingDown(off=0.4).seated(np.array([0.0, 0.6, 0.8, 1.0])).fraction.round(9).tolist()
        [0.0, 0.0, 0.4, 0.8]
    """

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
    weight, touch = number(peak, "sit-down", "peak", least=0.0), number(on, "sit-down", "on", above=0.0, below=1.0)
    legs = sitting(task.body, positive(seat, "sit-down", "seat"), "sit-down")
    first, last = task.posture(standing(task.body)), task.posture(both(LAP) | legs)
    back = -legs["tz"]
    support = SittingDown(hips_apart(task.body), height=seat, back=back, share=share, off=1 - touch, rails=rails)
    place = (0.0, seat + BUTTOCKS, -back)
    during = (touch, 1.0)
    aims = [Placed(body=task.body, frame="pelvis", place=place, near=0.015, during=during, name="hips on the seat")]
    ends = [Start(q=first, v=0.0, a=0.0), End(q=seated(task, last, place, rails), v=0.0, a=0.0)]
    arms, since = ({**RANGES, **IDLE}, 0.0) if rails is None else (RANGES, 1.0 - rails.until)
    return task.problem(support, aims, ends, (first, last), ranges=arms, peak=weight, on_rails=(since, 1.0))
