"""The posture in which a robot is shown and computed, where none is given."""

import numpy as np

from torsor.arrays import Array
from torsor.parallel import ParallelRobot
from torsor.robot.robot import Robot


def home_of(robot: Robot | ParallelRobot) -> Array:
    """Return the posture in which a robot is shown: the neutral one, loops closed; of a parallel robot, its home.

    Example:
        >>> home_of(torsor.library.two_link()).tolist()
        [0.0, 0.0]
    """
    if isinstance(robot, ParallelRobot):
        return np.concatenate([robot.home, robot.leg_home])
    return np.asarray(robot.closed_positions(robot.neutral()) if robot.loops else robot.neutral())
