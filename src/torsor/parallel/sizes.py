"""The size of a parallel robot: tolerances of closure and of rank are relative to it."""

from collections.abc import Sequence

import casadi as ca
import numpy as np

from torsor.arrays import Array
from torsor.dynamics.trees.tree import Tree
from torsor.mechanism import Place
from torsor.parallel.legs import Leg
from torsor.parallel.platforms import Platform


def length_of(legs: Sequence[Leg], platform: Tree, home: Array) -> float:
    """Return the size (m): the longest distance from the base of a leg to its joint on the platform, or in a leg.

    It is rounded to a power of two, so that dividing by it is exact.
    """
    x, last = ca.SX.sym("x", platform.nq), len(platform.bodies) - 1
    there = Platform(platform, x)
    ends = ca.horzcat(*(there.p + there.place(Place(last, leg.at))[0] for leg in legs))
    found = np.asarray(ca.Function("ends", [x], [ends])(home).full()).T
    distances = [float(np.linalg.norm(end - leg.base[:3, 3])) for end, leg in zip(found, legs, strict=True)]
    for leg in legs:
        distances += [leg.length, *(float(np.linalg.norm(joint.placement[:3, 3])) for joint in leg.robot.joints)]
    size = max(distances)
    return float(2.0 ** round(np.log2(size))) if size > 0 else 1.0
