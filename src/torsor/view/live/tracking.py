"""The swing of a robot as a motion, and the simulated motion under a controller that tracks it."""

import numpy as np

from torsor.base.errors import ModelError
from torsor.control import computed_torque
from torsor.robot.parallel import ParallelRobot
from torsor.robot.robot import Robot
from torsor.simulation import Trajectory, simulate
from torsor.view.live.postures import PERIOD, Posture

SPACING = 0.02  # s
SAMPLES = 301  # of one period of a swing: 0.04 s apart at full speed
BANDWIDTH = 15.0  # rad/s
HEAVIER = 1.1  # inertial parameters of the simulated robot, relative to those of the controller's model
TITLE = "{}, 10 % heavier than its model"


def swing(robot: Robot | ParallelRobot) -> Trajectory:
    """Return one period of the swing of a robot, with the forces of its drives.

    Example:
        >>> motion = swing(torsor.library.two_link())
        >>> float(motion.times[-1]), bool(np.allclose(motion.q[0], motion.q[-1]))
        (12.0, True)
    """
    posture = Posture(robot)
    if not posture.slides:
        raise ModelError("no coordinate can swing", where=robot.name, allowed="a robot with sliders")
    times, tree = np.linspace(0.0, posture.period, SAMPLES), posture.robot
    q, v, a = posture.swing(posture.period + times)  # after the start from rest
    if not tree.loops:
        return Trajectory(tree, times, q, v, a, tree.inverse_dynamics(q, v, a))
    active, tau = [tree.coordinate_names.index(name) for name in tree.active], np.zeros_like(v)
    tau[:, active] = tree.closed.inverse_dynamics(q, v[:, active], a[:, active])
    return Trajectory(tree, times, q, v, a, tau)


def tracked_swing(robot: Robot) -> tuple[Trajectory, Trajectory]:
    """Return a simulated swing under computed-torque control, and its reference.

    The simulated robot is 10 % heavier than the controller's model, which causes visible errors.

    Example:
        >>> run, reference = tracked_swing(torsor.library.two_link())
        >>> bool(0 < np.abs(run.q - reference.at(run.times).q).max() < 0.2)
        True
    """
    posture, times = Posture(robot), np.arange(0.0, PERIOD + SPACING / 2, SPACING)
    q, v, a = posture.swing(times)
    law = computed_torque(robot, (times, q, v, a), bandwidth=BANDWIDTH)
    plan = Trajectory(robot, times, q, v, a, posture.robot.inverse_dynamics(q, v, a))
    real = robot.inertial.replaced(HEAVIER * robot.inertial.values)
    return simulate(real, q[0], v[0], duration=PERIOD, controller=law, record=SPACING), plan
