"""Ready-made robots: arms, a human, a quadruped, wheeled, closed-loop, parallel and flexible robots, and test trees."""

from inspect import signature

from torsor.base.registry import register
from torsor.library.arms import panda, scara, seven_axis_arm, six_axis_arm, ur5
from torsor.library.flexible import continuous_eel, flexible_arm, segmented_arm
from torsor.library.human import human
from torsor.library.loops import closed_leg, five_bar, four_bar, palletiser, slider_crank
from torsor.library.movers import eel, elastic_seven_axis_arm, free_flying_arm, quadruped
from torsor.library.papers import bevel_elastic_arm, elastic_arm, slide_link, stanford, two_link
from torsor.library.parallel import delta, gough_stewart, three_rrr
from torsor.library.trees import planar_chain, random_tree
from torsor.library.wheels import bicycle_car, caster, differential_drive, mobile_manipulator, rolling_disc

__all__ = [
    "bevel_elastic_arm",
    "bicycle_car",
    "caster",
    "closed_leg",
    "continuous_eel",
    "delta",
    "differential_drive",
    "eel",
    "elastic_arm",
    "elastic_seven_axis_arm",
    "five_bar",
    "flexible_arm",
    "four_bar",
    "free_flying_arm",
    "gough_stewart",
    "human",
    "mobile_manipulator",
    "palletiser",
    "panda",
    "planar_chain",
    "quadruped",
    "random_tree",
    "rolling_disc",
    "scara",
    "segmented_arm",
    "seven_axis_arm",
    "six_axis_arm",
    "slide_link",
    "slider_crank",
    "stanford",
    "three_rrr",
    "two_link",
    "ur5",
]


# Robots without required arguments are available by name in ``torsor.load`` and on the command line.
def _needs_no_argument(name: str) -> bool:
    parameters = signature(globals()[name]).parameters.values()
    return all(parameter.default is not parameter.empty for parameter in parameters)


register("robots", "library", {name: globals()[name] for name in __all__ if _needs_no_argument(name)})
