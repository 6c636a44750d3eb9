"""Ready-made robots: those of the papers, industrial arms, chains, and random trees for tests."""

from torsor.library.arms import scara, seven_axis_arm, six_axis_arm
from torsor.library.papers import elastic_arm, slide_link, stanford, two_link
from torsor.library.trees import planar_chain, random_tree

__all__ = [
    "elastic_arm",
    "planar_chain",
    "random_tree",
    "scara",
    "seven_axis_arm",
    "six_axis_arm",
    "slide_link",
    "stanford",
    "two_link",
]
