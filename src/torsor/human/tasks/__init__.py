"""Tasks on flat feet: lifting a box, standing up and reaching; ``TASKS`` has them by name, as on the command line."""

from collections.abc import Callable, Mapping

from torsor.human.tasks.lifting import lifting
from torsor.human.tasks.reaching import reaching
from torsor.human.tasks.standing_up import standing_up
from torsor.motion import MotionProblem

TASKS: Mapping[str, Callable[..., MotionProblem]] = {"lift": lifting, "stand-up": standing_up, "reach": reaching}
