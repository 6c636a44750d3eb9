"""Positions of landmarks in the standing posture, from the placements of the joints: nothing is compiled."""

import numpy as np

from torsor.arrays import Array
from torsor.robot.robot import Robot


def landmark(body: Robot, place: str) -> Array:
    """Return the position (3,) of a link or frame in base axes (m), with all coordinates at 0.

    Example:
        >>> body = torsor.library.human()
        >>> bool(abs(landmark(body, "right_toe") - body.pose(body.neutral(), "right_toe")[:3, 3]).max() < 1e-12)
        True
    """
    link, within = body.place(place)
    at = within[:3, 3]
    while link >= 0:
        joint = body.joints[link]
        if joint.offset:  # at 0 such a joint is not at its placement
            return np.asarray(body.pose(body.neutral(), place)[:3, 3])
        at = joint.placement[:3, :3] @ at + joint.placement[:3, 3]
        link = body.parents[link]
    return at
