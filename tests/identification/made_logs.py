"""Logs with known parameters: sums of sines, forces by inverse dynamics, encoder and torque-sensor noise."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from torsor import Robot

Array = NDArray[np.float64]


class Truth(NamedTuple):
    """A motion at times (N,): q, v, a and the forces tau (N, n)."""

    t: Array
    q: Array
    v: Array
    a: Array
    tau: Array


def truth(robot: Robot, duration: float = 8.0, rate: float = 250.0, seed: int = 0) -> Truth:
    """A motion of five sines per joint below 1 Hz, within half of the limits, with friction."""
    rng, t = np.random.default_rng(seed), np.arange(int(duration * rate)) / rate
    w = 2 * np.pi * rng.uniform(0.1, 0.9, size=(5, robot.nv))
    phase, size = rng.uniform(0, 2 * np.pi, size=w.shape), rng.uniform(0.1, 0.35, size=w.shape)
    low, high = (np.where(np.isfinite(x), x, side) for x, side in ((robot.lower, -1.5), (robot.upper, 1.5)))
    size *= 0.5 * np.minimum((high - low) / 2, 1.5) / size.sum(axis=0)
    angle = w * t[:, None, None] + phase
    q = (low + high) / 2 + (size * np.sin(angle)).sum(axis=1)
    v, a = (size * w * np.cos(angle)).sum(axis=1), -(size * w**2 * np.sin(angle)).sum(axis=1)
    tau = robot.inverse_dynamics(q, v, a)
    spread = tau.std(axis=0)
    return Truth(t, q, v, a, tau + 0.1 * spread * np.sign(v) + 0.1 * spread * v / np.abs(v).max(axis=0))


def noisy(made: Truth, seed: int = 1) -> tuple[Array, Array, Array]:
    """Times, positions with noise of 1e-5, and forces with noise of 2 % of their spread."""
    rng = np.random.default_rng(seed)
    q = made.q + 1e-5 * rng.normal(size=made.q.shape)
    return made.t, q, made.tau + 0.02 * made.tau.std(axis=0) * rng.normal(size=made.tau.shape)
