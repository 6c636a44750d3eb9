"""A small result of each kind that takes no time to compute."""

from functools import cache
from typing import Any

import numpy as np

import torsor
from torsor import identification, motion, simulation

ARM = torsor.library.two_link()
KINDS = (
    "trajectory",
    "batch",
    "motion",
    "multistart",
    "sequence",
    "rollout",
    "identification",
    "physical",
    "excitation",
    "retimed",
    "workspace",
)


def problem(limit: float = 10.0) -> motion.MotionProblem:
    ends = [motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)]
    limits = [motion.Torques(upper=limit), motion.TorqueRates(upper=500.0)]
    return motion.MotionProblem(ARM, motion.Phase((0.1, 2.0), points=6), motion.Time(), [*ends, *limits], name="reach")


@cache
def results() -> dict[str, Any]:
    robot = ARM.to(device="casadi")
    rng = np.random.default_rng(0)
    q, v, a = rng.normal(size=(3, 40, 2))
    data = identification.Measurements(q, v, a, robot.inverse_dynamics(q, v, a), times=np.arange(40.0))
    rrr, line = torsor.library.three_rrr(), np.linspace(-0.2, 0.2, 3)
    still = {"duration": 0.003, "controller": [0.3, 0.1]}
    wrenches = np.ones((2, 6))
    problem_ = problem()
    return {
        "trajectory": torsor.simulate(robot, events=[lambda t, q, v: t - 0.0015], **still),
        "batch": torsor.simulate(robot, np.zeros((3, 2)), external=wrenches, **still),
        "motion": problem_.solve(),
        "multistart": problem_.multistart(2),
        "sequence": motion.continuation(lambda limit: problem(limit), [10.0, 12.0]),
        "rollout": simulation.rollout(robot, np.zeros(2), np.array([1.0, 0.0]), 0.003),
        "identification": torsor.identify(ARM, data),
        "physical": torsor.identify(ARM, data, physical=True),
        "excitation": identification.excite(ARM, 4.0, 2, lower=-1.5, upper=1.5, velocity=3.0, iterations=1),
        "retimed": motion.retime(ARM, [[0, 0], [1, 1], [2, 0]], velocity=2.0, acceleration=5.0),
        "workspace": rrr.workspace(rrr.grid(x=line, y=line)),
    }
