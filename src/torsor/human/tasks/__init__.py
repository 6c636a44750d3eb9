"""Tasks on flat feet; ``TASKS`` has them by name, as on the command line. Carrying is walking with a load."""

from collections.abc import Callable, Mapping

from torsor.human.tasks.hand_tasks import lifting, pulling, pushing, reaching
from torsor.human.tasks.seat_tasks import sitting_down, standing_up
from torsor.motion import MotionProblem

TASKS: Mapping[str, Callable[..., MotionProblem]] = {
    "lift": lifting, "push": pushing, "pull": pulling, "reach": reaching, "stand-up": standing_up,
    "sit-down": sitting_down,
}  # fmt: skip
