"""The masses of links whose shapes are known: the bodies of the given robot, each with another density.

    tau = sum over links of m_i y_i + friction,       y_i = Y_i pi_i / m_i: the forces of link i with a mass of 1 kg

where pi_i are the ten parameters of link i of the given robot. All masses that move are identifiable, unlike the ten
parameters of each link.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import instance_of, positive
from torsor.base.errors import ModelError, describe
from torsor.identification.drives import frictional
from torsor.identification.estimation import Method, estimate
from torsor.identification.measurements import Measurements, measurements_of
from torsor.identification.model import Filter, Model, equations_of
from torsor.robot.inertial import BaseParameters
from torsor.robot.robot import Robot
from torsor.simulation import Trajectory


@dataclass(frozen=True, eq=False)
class Masses:
    """Identified masses: ``values`` (L,) in kg of the links ``names``, with their ``covariance`` (L, L).

    ``prior`` is the given robot.
    """

    prior: Robot
    values: Array
    covariance: Array

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the links (L)."""
        return tuple(link.name for link in self.prior.links)

    @property
    def deviations(self) -> Array:
        """Standard deviations (L,) of the masses, in kg."""
        return np.sqrt(np.maximum(np.diagonal(self.covariance), 0.0))

    @cached_property
    def robot(self) -> Robot:
        """The given robot with these masses; centres of mass and radii of gyration stay."""
        pi = self.prior.parameters()
        pi[: 10 * len(self.values)] = (_bodies(self.prior) * self.values[:, None]).ravel()
        return self.prior.with_parameters(pi)


def identify_masses(
    robot: Robot,
    data: Measurements | Trajectory | Sequence[Any],
    *,
    total: float | None = None,
    bandwidth: float | None = None,
    still: float = 0.01,
) -> Masses:
    """Return the masses of all links from motions and forces, for known centres of mass and radii of gyration.

    ``robot`` gives these; its friction is identified beside the masses. ``total`` (kg) is the mass of all moving links,
    where it is known. Other arguments as in ``identify``.

    Example:
        >>> arm = torsor.library.two_link()
        >>> q, v, a = np.random.default_rng(0).normal(size=(3, 50, 2))
        >>> tau = arm.inverse_dynamics(q, v, a)
        >>> guess = arm.with_parameters(arm.parameters() * np.repeat([1.5, 0.5, 1.0], [10, 10, 6]))
        >>> found = identify_masses(guess, (q, v, a, tau))
        >>> bool(np.allclose(found.values, [link.mass for link in arm.links]))
        True
    """
    robot = instance_of(robot, Robot, "identify_masses", "robot").to(dtype="float64")
    where, count = robot.name, len(robot.links)
    samples = measurements_of(robot, data)
    through = Filter.of(samples, bandwidth, where)
    weightless = [link.name for link in robot.links if not link.mass > 0]
    if weightless:
        raise ModelError(describe(f"link {weightless[0]!r} has no mass", where=where, allowed="shapes of all links"))
    model = Model(robot, _unknowns(robot), samples.q, samples.v, samples.a, external=samples.external)
    equations = equations_of(model, samples, through, still)
    rubs = equations.Y[..., 10 * count :]
    parts = equations.Y[..., : 10 * count].reshape(*rubs.shape[:2], count, 10)
    Y = np.concatenate([np.einsum("tjik,ik->tji", parts, _bodies(robot)), rubs], axis=-1)
    names = (*(f"{link.name}.m" for link in robot.links), *equations.names[10 * count :])
    found = estimate(replace(equations, Y=Y, names=names), Method())
    values, covariance = found.values[:count], found.covariance[:count, :count]
    if total is not None:
        gain = covariance.sum(axis=1) / covariance.sum()
        values = values + gain * (positive(total, where, "total") - values.sum())
        covariance = covariance - np.outer(gain, covariance.sum(axis=0))
    return Masses(robot, values, covariance)


def _unknowns(robot: Robot) -> BaseParameters:
    """Return all parameters of links and all friction, each a base parameter of its own."""
    unknown = frictional(robot)
    unknown[: 10 * len(robot.links)] = True
    columns = np.flatnonzero(unknown)
    names = tuple(robot.parameter_names[k] for k in columns)
    matrix = np.eye(len(unknown))[columns]
    return BaseParameters(names, columns, matrix, matrix @ robot.parameters(), unknown, False)


def _bodies(robot: Robot) -> Array:
    """Return the ten parameters (L, 10) of each link with a mass of 1 kg."""
    ten = robot.parameters()[: 10 * len(robot.links)].reshape(-1, 10)
    return np.asarray(ten / ten[:, :1])
