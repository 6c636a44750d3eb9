"""The robot of an identification on disk: a tree, or a closed mechanism with the posture from which it is closed."""

from typing import Any

import numpy as np

from torsor.base.archive import Archive, as_bytes, as_text, robot_text
from torsor.base.files import check_array
from torsor.identification.closed_robot import ClosedRobot, closed_robot
from torsor.robot.parallel import ParallelRobot
from torsor.robot.parallel.files import parallel_fields, parallel_text
from torsor.robot.robot import Robot


def robot_arrays(robot: Robot) -> dict[str, Any]:
    """Return the arrays of a file that hold a robot.

    Example:
        >>> sorted(robot_arrays(closed_robot(torsor.library.three_rrr())))
        ['parallel_robot', 'robot', 'start']
    """
    if not isinstance(robot, ClosedRobot):
        return {"robot": as_bytes(robot_text(robot))}
    assert robot.closing is not None
    found: dict[str, Any] = {"robot": as_bytes(robot_text(robot.mechanism)), "start": robot.closing.start}
    if isinstance(robot.given, ParallelRobot):
        found["parallel_robot"] = as_bytes(parallel_text(robot.given))
    return found


def robot_of_arrays(found: Archive) -> Robot:
    """Return the robot of a file; raise ValueError or KeyError where the arrays are none."""
    robot: Robot | ParallelRobot = found.robot
    if "start" not in found.arrays:
        return found.robot
    if "parallel_robot" in found.arrays:
        robot = ParallelRobot(**parallel_fields(as_text(found.arrays["parallel_robot"])))
    made = closed_robot(robot, np.asarray(found.arrays["start"]))
    check_array(found.arrays["start"], (made.mechanism.nq,), "start", "f")
    return made
