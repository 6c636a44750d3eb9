"""Flat-footed tasks; ``TASKS`` contains them by command-line name. Carrying is walking with a load."""

from collections.abc import Callable, Mapping

from torsor.human.tasks.task import lifting, pulling, pushing, reaching, sitting_down, standing_up
from torsor.motion import MotionProblem

__all__ = ["TASKS", "lifting", "pulling", "pushing", "reaching", "sitting_down", "standing_up"]
TASKS: Mapping[str, Callable[..., MotionProblem]] = {
    "lift": lifting, "push": pushing, "pull": pulling, "reach": reaching, "stand-up": standing_up,
    "sit-down": sitting_down,
}  # fmt: skip
