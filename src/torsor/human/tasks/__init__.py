"""Tasks on flat feet; ``TASKS`` has them by name, as on the command line. Carrying is walking with a load."""

from collections.abc import Callable, Mapping

from torsor.human.tasks.hand_tasks import lifting
from torsor.human.tasks.pushing import pulling, pushing
from torsor.human.tasks.reaching import reaching
from torsor.human.tasks.seat_tasks import standing_up
from torsor.human.tasks.sitting_down import sitting_down
from torsor.motion import MotionProblem

TASKS: Mapping[str, Callable[..., MotionProblem]] = {
    "lift": lifting,
    "push": pushing,
    "pull": pulling,
    "reach": reaching,
    "stand-up": standing_up,
    "sit-down": sitting_down,
}
