"""Built-in motion problems by name: ``torsor predict two-link-time``, or ``PROBLEMS["two-link-time"]()``.

Example:
    >>> PROBLEMS["two-link-time"](points=8).program.n  # 4 free control points of each joint, and the duration
    9
"""

from collections.abc import Callable

from torsor.motion.problem import MotionProblem
from torsor.motion.problems.papers import elastic_arm, slide_link, stanford_rates, two_link_time
from torsor.motion.problems.products import panda_time, path_time, ur5_time

__all__ = [
    "PROBLEMS",
    "elastic_arm",
    "panda_time",
    "path_time",
    "slide_link",
    "stanford_rates",
    "two_link_time",
    "ur5_time",
]

PROBLEMS: dict[str, Callable[..., MotionProblem]] = {
    "two-link-time": two_link_time,
    "slide-link": slide_link,
    "stanford-rates": stanford_rates,
    "ur5-time": ur5_time,
    "panda-time": panda_time,
    "path-time": path_time,
    "elastic-arm": elastic_arm,
}
