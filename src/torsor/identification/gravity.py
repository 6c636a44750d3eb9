"""The direction of gravity from forces: how a robot is mounted.

Forces are linear in gravity: with the robot's parameters, tau = tau_0 + G(q) g, where the three columns of G are the
forces of gravity along the axes of the base. With the base parameters unknown too, products of both appear, which are
solved by Gauss and Newton's method: each step is a linear fit of the base parameters and of a change of g.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import instance_of
from torsor.base.errors import ModelError, describe
from torsor.identification.estimation import Method, estimate
from torsor.identification.measurements import Measurements, measurements_of
from torsor.identification.model import Filter, Model, equations_of
from torsor.robot.robot import Robot
from torsor.simulation import Trajectory

STEPS = 20
CONVERGED = 1e-6  # rad: change of the direction


@dataclass(frozen=True, eq=False)
class Gravity:
    """Gravity as it was identified: the ``vector`` (3,) in m/s^2 in the base's axes, and the ``robot`` with it.

    ``deviations`` (2,) are the standard deviations of its direction, in rad, along the two ``axes`` (2, 3).
    """

    robot: Robot
    vector: Array
    deviations: Array
    axes: Array


def identify_gravity(
    robot: Robot,
    data: Measurements | Trajectory | Sequence[Any],
    *,
    among: Sequence[str] = ("*",),
    bandwidth: float | None = None,
    still: float = 0.01,
) -> Gravity:
    """Return the direction of gravity, from motions and forces; its size is that of the given robot.

    The parameters that ``among`` names are identified beside it. Parameters that have no effect where gravity has the
    given direction, such as first moments of a link that turns about the vertical, are taken from the given robot.
    Other arguments as in ``identify``.

    Example:
        >>> arm = torsor.library.ur5()
        >>> q, v, a = np.random.default_rng(0).normal(size=(3, 200, 6))
        >>> tilted = arm.with_gravity([0.0, 9.81 * np.sin(0.1), -9.81 * np.cos(0.1)])
        >>> found = identify_gravity(arm, (q, v, a, tilted.inverse_dynamics(q, v, a)))
        >>> bool(np.allclose(found.vector, tilted.gravity, atol=1e-6))
        True
    """
    robot = instance_of(robot, Robot, "identify_gravity", "robot").to(dtype="float64")
    size = float(np.linalg.norm(robot.gravity))
    if not size > 0:
        raise ModelError(describe("gravity is zero", where=robot.name, fix="give the size of gravity: with_gravity"))
    samples = measurements_of(robot, data)
    through = Filter.of(samples, bandwidth, robot.name)
    base = robot.base_parameters(among=among)
    motion = samples.q, samples.v, samples.a
    model = Model(robot, base, *motion, external=samples.external)
    equations = equations_of(model, samples, through, still)
    # Regressors (N, nv, p) without gravity, and of each of its components; forces of springs and motors are subtracted.
    none = robot.with_gravity([0.0, 0.0, 0.0]).regressor(*motion)
    along = [through(robot.with_gravity(axis).regressor(*motion) - none) for axis in np.eye(3)]
    other = robot.inverse_dynamics(*motion, samples.external) - robot.regressor(*motion) @ robot.parameters()
    without, rest = through(none), through(samples.tau - other)
    pi, g = robot.parameters(), np.array(robot.gravity, dtype=float)
    for _ in range(STEPS):
        axes = np.linalg.svd(g[None])[2][1:]
        Y = without + sum(g[k] * along[k] for k in range(3))
        turns = np.stack([size * sum(axis[k] * along[k] for k in range(3)) @ pi for axis in axes], axis=-1)
        columns = np.concatenate([Y[..., base.columns], turns], axis=-1)
        names = (*base.names, "gravity about 1", "gravity about 2")
        found = estimate(replace(equations, Y=columns, tau=rest - Y @ pi, names=names), Method())
        pi[base.columns] += found.values[:-2]
        g = g + size * found.values[-2:] @ axes
        g *= size / np.linalg.norm(g)
        if np.abs(found.values[-2:]).max() < CONVERGED:
            deviations = np.sqrt(np.diagonal(found.covariance)[-2:])
            return Gravity(robot.with_gravity(g), g, deviations, axes)
    fix = "give the robot a gravity closer to that of the measurement, or check the signs of tau"
    raise ModelError(describe("no direction of gravity explains the forces", where=robot.name, fix=fix))
