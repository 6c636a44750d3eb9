"""The swing of a robot as the reference of a controller, and the simulated motion that follows it."""

import numpy as np

from torsor.control import computed_torque
from torsor.robot.robot import Robot
from torsor.simulation import Trajectory, simulate
from torsor.view.live.postures import Posture

DURATION, SPACING = 12.0, 0.02  # s
BANDWIDTH = 15.0  # rad/s
HEAVIER = 1.1  # inertial parameters of the simulated robot, relative to those of the controller's model
TITLE = "{}, 10 % heavier than its model"


def tracked_swing(robot: Robot) -> tuple[Trajectory, Trajectory]:
    """Return a simulated swing under computed-torque control, and its reference.

    The simulated robot is 10 % heavier than the controller's model, so that there are errors to see.

    Example:
        >>> run, reference = tracked_swing(torsor.library.two_link())
        >>> bool(0 < np.abs(run.q - reference.at(run.times).q).max() < 0.2)
        True
    """
    posture, times = Posture(robot), np.arange(0.0, DURATION + SPACING / 2, SPACING)
    shots = [posture.sway(float(time)) for time in times]
    q, v, a = (np.stack([getattr(shot, name) for shot in shots]) for name in ("q", "v", "a"))
    law = computed_torque(robot, (times, q, v, a), bandwidth=BANDWIDTH)
    plan = Trajectory(robot, times, q, v, a, posture.robot.inverse_dynamics(q, v, a))
    real = robot.inertial.replaced(HEAVIER * robot.inertial.values)
    return simulate(real, q[0], v[0], duration=DURATION, controller=law, record=SPACING), plan
