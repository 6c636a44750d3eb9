"""How thick rods between joints are drawn."""

import numpy as np

from torsor.mechanism import Mechanism
from torsor.view.scene.bodies import THIN, size_of

SLIM = 0.07  # radius of a bone, as a fraction of the root mean square of the distances between joints


def bone_radius(robot: Mechanism) -> float:
    """Return the radius (m) of the bones of a robot: thin beside the whole, and beside bones of the usual length.

    Example:
        >>> round(bone_radius(torsor.library.human()), 3)
        0.017
    """
    carried = [joint for joint in robot.joints if joint.parent != robot.base.name]
    lengths = [float(np.linalg.norm(joint.placement[:3, 3])) for joint in carried]
    long = [each for each in lengths if each > 0]
    usual = float(np.sqrt(np.mean(np.square(long)))) if long else np.inf
    return min(THIN * size_of(robot), SLIM * usual)
