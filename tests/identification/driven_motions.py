"""Motions of the drives of closed mechanisms, with the forces of constrained inverse dynamics."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import torsor
from torsor.identification.closed_robot import closed_robot

Array = NDArray[np.float64]


class Swing(NamedTuple):
    """Times (N,), positions, rates and forces (N, n) of the drives ``names``."""

    t: Array
    q: Array
    v: Array
    a: Array
    tau: Array
    names: tuple[str, ...]

    @property
    def motion(self) -> tuple[Array, Array, Array]:
        """q, v and a."""
        return self.q, self.v, self.a

    @property
    def data(self) -> tuple[Array, Array, Array, Array]:
        """q, v, a and tau, as ``identify`` takes them."""
        return *self.motion, self.tau


SIZES = {"four_bar": 2.5, "slider_crank": 2.5, "five_bar": 0.4, "palletiser": 0.35}


def swing(
    robot: torsor.Robot | torsor.ParallelRobot,
    seed: int = 0,
    count: int = 400,
    rate: float = 100.0,
    size: float = 0.2,
    turns: float = 0.0,
) -> Swing:
    """Return sums of sines about the posture from which the loops are closed, which all fit into ``size`` (rad, m)."""
    drives = closed_robot(robot)
    middle = drives.closing.start[drives.mechanism.closed.closure.active_positions]
    rng, t = np.random.default_rng(seed), np.arange(count) / rate
    w = 2 * np.pi * rng.uniform(0.2, 0.9, size=(4, drives.nv))
    phase, amplitude = rng.uniform(0, 2 * np.pi, size=w.shape), rng.uniform(0.3, 1.0, size=w.shape)
    amplitude *= SIZES.get(robot.name, size) / amplitude.sum(axis=0)
    angle = w * t[:, None, None] + phase
    q = middle + turns * t[:, None] + (amplitude * np.sin(angle)).sum(axis=1)
    v, a = turns + (amplitude * w * np.cos(angle)).sum(axis=1), -(amplitude * w**2 * np.sin(angle)).sum(axis=1)
    return Swing(t, q, v, a, drives.inverse_dynamics(q, v, a), drives.coordinate_names)
