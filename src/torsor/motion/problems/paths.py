"""A given joint path in the least time."""

from typing import Any

import numpy as np

from torsor import library
from torsor.motion.problem import MotionProblem
from torsor.motion.terms.ends import End, Start
from torsor.motion.terms.limits import TorqueRates, Torques, Velocities
from torsor.motion.terms.objectives import Time
from torsor.motion.transcription.paths import Path
from torsor.motion.transcription.phase import Phase
from torsor.robot.robot import Robot

_WAY = (
    (0.0, -1.5, 1.5, -1.5, -1.5, 0.0),
    (0.2, -1.3, 1.4, -1.6, -1.4, 0.1),
    (0.5, -1.2, 1.2, -1.5, -1.2, 0.2),
    (0.8, -1.3, 1.0, -1.3, -1.1, 0.4),
    (1.1, -1.5, 0.9, -1.1, -1.1, 0.5),
    (1.3, -1.7, 1.0, -1.0, -1.2, 0.7),
    (1.4, -1.8, 1.2, -1.1, -1.4, 0.8),
)


def path_time(
    waypoints: Any = _WAY, robot: Robot | None = None, points: int = 30, torque_rates: Any = None
) -> MotionProblem:
    """Return the minimum-time motion along a joint path, from rest to rest: only the progress along it is free.

    The path is the spline through ``waypoints`` (six or more, nv), of a ``robot`` (by default a UR5). Torques and
    velocities stay within the robot's limits, and torque rates within ``torque_rates`` (N m/s: a number, or one for
    each joint; None: free), in which case the progress has a spline of degree 5 and no acceleration at the ends,
    otherwise a cubic one. ``points`` is the number of control points of the progress.

    Example:
        >>> path_time().model.names
        ('progress',)
    """
    arm = library.ur5() if robot is None else robot
    still: dict[str, Any] = {"v": 0.0} if torque_rates is None else {"v": 0.0, "a": 0.0}
    limits: list[Any] = [Start(q=0.0, **still), End(q=1.0, **still), Torques()]
    if np.isfinite(arm.velocity_limit).any():
        limits.append(Velocities())
    if torque_rates is not None:
        limits.append(TorqueRates(upper=torque_rates))
    phase = Phase((0.1, 5.0), points=points, degree=3 if torque_rates is None else 5)
    path = Path.through(waypoints)
    return MotionProblem(arm, phase, Time(), limits, path=path, name="path-time")
