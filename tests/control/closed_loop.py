"""A robot under a continuous controller: its vector field as symbols, and Runge-Kutta of order 4 over arrays."""

from collections.abc import Callable, Iterator

import casadi as ca
import numpy as np

import torsor
from torsor.control import Controller


def run(
    law: Controller, q: np.ndarray, v: np.ndarray, seconds: float, step: float = 1e-3
) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
    """Yield (t, q, v) after each step."""
    robot = law.robot

    def rate(t: float, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return v, robot.forward_dynamics(q, v, law(t, q, v))

    for k in range(round(seconds / step)):
        t = k * step
        q1, v1 = rate(t, q, v)
        q2, v2 = rate(t + step / 2, q + step / 2 * q1, v + step / 2 * v1)
        q3, v3 = rate(t + step / 2, q + step / 2 * q2, v + step / 2 * v2)
        q4, v4 = rate(t + step, q + step * q3, v + step * v3)
        q = q + step / 6 * (q1 + 2 * q2 + 2 * q3 + q4)
        v = v + step / 6 * (v1 + 2 * v2 + 2 * v3 + v4)
        yield t + step, q, v


class Flow:
    """The closed loop over symbols: ``rate`` differentiates anything along the motion that the plant really has."""

    def __init__(self, law: Controller):
        robot = law.robot
        self.t, self.q, self.v = ca.SX.sym("t"), ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
        self.a = robot.function("forward_dynamics")(self.q, self.v, law.function(self.t, self.q, self.v))

    def rate(self, value: ca.SX) -> ca.SX:
        return ca.jtimes(value, ca.vertcat(self.t, self.q, self.v), ca.vertcat(1, self.v, self.a))

    def function(self, *values: ca.SX) -> ca.Function:
        return ca.Function("flow", [self.t, self.q, self.v], list(values))


def random_states(robot: torsor.Robot, count: int, seed: int = 0) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(seed)
    for _ in range(count):
        q = robot.integrate(robot.neutral(), 0.6 * rng.normal(size=robot.nv))
        yield float(rng.uniform(0, 5)), q, rng.normal(size=robot.nv)


def sines(count: int) -> Callable[[ca.SX], list[ca.SX]]:
    return lambda t: [0.5 * ca.sin(0.5 * np.pi * t + 0.3 * k) for k in range(count)]
