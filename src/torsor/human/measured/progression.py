"""Pelvis and feet of a measured person relative to the direction of progression.

The direction is that of the mean velocity of the pelvis. Axes are those of ``library.human``: x left, y up, z forward.
The pelvis rotates by rotation, tilt and obliquity, in this order, as in ``library.human``.
"""

from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.human.measured.inverse_dynamics import FEET, OSIM_FEET
from torsor.human.measured.skeleton import Skeleton, tree_of
from torsor.human.recordings.axes import HUMAN, OPENSIM, rotation
from torsor.robot.robot import Robot

PELVIS = "pelvis"
MIN_DISTANCE = 0.3  # m; for shorter motions, there is no direction of progression
# Angles of a side, and their signs on the right and the left side.
ANGLES = {
    "pelvis_tilt": (1.0, 1.0),
    "pelvis_obliquity": (1.0, -1.0),
    "pelvis_rotation": (1.0, -1.0),
    "foot_progression": (1.0, -1.0),
}


class Progression(NamedTuple):
    """The ``pelvis`` rotation (K, 3, 3), and the poses (rotation and heel position) (K, 4, 4) of the feet by side.

    The axes are x left, y up and z in the direction of progression.
    """

    pelvis: Array | None
    feet: dict[str, Array]

    def angle(self, side: str, name: str) -> Array | None:
        """Return one of the ``ANGLES`` (K,) in degrees, or None if the body has no pelvis or foot link for it.

        Forward tilt, a lowered side (obliquity), rotation that moves the side forward, and toe-in are positive.
        """
        sign = ANGLES[name][side == "left"]
        if name == "foot_progression":
            turn = self.feet.get(side)
            return None if turn is None else sign * np.degrees(np.arctan2(turn[:, 0, 2], turn[:, 2, 2]))
        R = self.pelvis
        if R is None:
            return None
        if name == "pelvis_tilt":
            return np.degrees(np.arcsin(-np.clip(R[:, 1, 2], -1.0, 1.0)))
        rows = (R[:, 1, 0], R[:, 1, 1]) if name == "pelvis_obliquity" else (R[:, 0, 2], R[:, 2, 2])
        return sign * np.degrees(np.arctan2(*rows))


def progression(body: Robot | Skeleton, times: Array, q: Array) -> Progression:
    """Return the pelvis and feet of a motion q (K, n) at times (K,) relative to the direction of progression."""
    tree = tree_of(body)
    x = body.states(q, 0.0 * q, 0.0 * q)[0] if isinstance(body, Skeleton) else q
    turn = rotation(OPENSIM if isinstance(body, Skeleton) else HUMAN, HUMAN, tree.name)
    frames = {"right": "right_heel", "left": "left_heel"} if FEET["right"] in tree.link_names else OSIM_FEET
    pelvis = _poses(tree, x, PELVIS, turn) if PELVIS in tree.link_names else None
    feet = {side: _poses(tree, x, name, turn) for side, name in frames.items() if name in tree.places}
    if pelvis is not None:
        ahead = _heading(times, pelvis[:, :3, 3])
        pelvis, feet = ahead @ pelvis, {side: ahead @ foot for side, foot in feet.items()}
    return Progression(None if pelvis is None else pelvis[:, :3, :3], feet)


def _poses(tree: Robot, x: Array, name: str, turn: Array) -> Array:
    """Return the poses (K, 4, 4) of a link or frame in the axes of ``library.human``, unrotated when standing."""
    T = np.array(tree.pose(x, name))
    T[:, :3, :3], T[:, :3, 3] = turn @ T[:, :3, :3] @ turn.T, T[:, :3, 3] @ turn.T
    return T


def _heading(times: Array, places: Array) -> Array:
    """Return the transformation (4, 4) that rotates the direction of motion of points (K, 3) to z."""
    result, t = np.eye(4), times - times.mean()
    if len(t) > 1 and np.linalg.norm((places[-1] - places[0])[[0, 2]]) > MIN_DISTANCE:
        left, forward = (t @ places[:, [0, 2]]) / (t @ t)
        s, c = np.array([left, forward]) / np.hypot(left, forward)
        result[np.ix_([0, 2], [0, 2])] = [[c, -s], [s, c]]
    return result
