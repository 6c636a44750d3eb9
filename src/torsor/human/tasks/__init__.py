"""Flat-footed tasks; ``TASKS`` lists them by the names used on the command line. Carrying is walking with a load."""

from collections.abc import Callable, Mapping

from torsor.human.tasks.task import lifting, pulling, pushing, reaching, sitting_down, standing_up
from torsor.motion import MotionProblem

__all__ = ["TASKS", "lifting", "pulling", "pushing", "reaching", "sitting_down", "standing_up"]
TASKS: Mapping[str, Callable[..., MotionProblem]] = {
    "lift": lifting, "push": pushing, "pull": pulling, "reach": reaching, "stand-up": standing_up,
    "sit-down": sitting_down,
}  # fmt: skip
