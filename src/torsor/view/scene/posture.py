"""How a robot stands in a picture: its first posture, and which way is up."""

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import frozen_array
from torsor.mechanism import Mechanism
from torsor.robot.parallel import ParallelRobot
from torsor.robot.robot import Robot

UPRIGHT = 0.9  # cosine of the angle up to which the direction of gravity is taken for that of an axis


def home(robot: Robot | ParallelRobot, q: ArrayLike | None = None) -> Array:
    """Return the positions (nq,) that a picture begins with: ``q``, or at home; closed loops are closed.

    Home is that of a parallel robot, or else the neutral posture within the limits of the joints.

    Example:
        >>> home(torsor.library.four_bar()).round(3).tolist()
        [0.525, 0.204, 1.549]
    """
    tree = robot.as_robot() if isinstance(robot, ParallelRobot) else robot
    if q is not None:
        given = np.array(frozen_array(q, (tree.nq,), tree.name, "q"))
        return tree.closed.positions(given) if tree.loops else given
    if isinstance(robot, ParallelRobot):
        return np.concatenate([np.asarray(robot.home, dtype=float), robot.inverse_kinematics(robot.home)])
    if tree.loops:
        return tree.closed.positions(tree.neutral())
    return np.clip(tree.neutral(), tree.lower, tree.upper)


def upwards(robot: Mechanism) -> Array:
    """Return the direction up (3,): against gravity; of a slope, the axis beside it; z without gravity.

    Example:
        >>> upwards(torsor.library.human()).tolist(), upwards(torsor.library.ur5()).tolist()
        ([0.0, 1.0, 0.0], [0.0, 0.0, 1.0])
    """
    size = float(np.linalg.norm(robot.gravity))
    if not size > 0:
        return np.array([0.0, 0.0, 1.0])
    up = -np.asarray(robot.gravity) / size + 0.0
    axis = int(np.argmax(np.abs(up)))
    return np.sign(up[axis]) * np.eye(3)[axis] + 0.0 if abs(up[axis]) > UPRIGHT else up
