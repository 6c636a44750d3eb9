"""The measured motion of an identification for viewers, with measured less predicted forces."""

import numpy as np

from torsor.identification.closed_robot import ClosedRobot
from torsor.identification.result import Identified
from torsor.simulation.timeline import Timeline, timeline_of


@timeline_of.register
def _(result: Identified) -> Timeline:
    measured, robot = result.measurements, result.prior
    times = np.arange(len(measured), dtype=float) if measured.times is None else measured.times
    motion, tau = (measured.q, measured.v, measured.a), measured.tau
    residuals = tau - result.predicted
    if isinstance(robot, ClosedRobot):
        motion, tau, residuals = robot.whole(*motion), robot.spread(tau), robot.spread(residuals)
        robot = robot.mechanism
    states = (times, *motion, tau)
    return Timeline(robot, f"{robot.name}, measured", *states, robot.coordinate_names, residuals=residuals)
