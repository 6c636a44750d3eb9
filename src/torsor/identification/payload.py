"""A payload from two runs: its mass, centre of mass and inertia, from motions without and with it.

The unknowns of both runs are solved together: base parameters of the robot, which both share, and the ten parameters of
the load, which act in the second only. All ten are identifiable, and their covariance knows how well the robot is.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import instance_of, one_of
from torsor.dynamics import inertial, parameter_basis
from torsor.identification.estimation import Equations, Method, estimate
from torsor.identification.measurements import Measurements, measurements_of
from torsor.identification.model import Filter, Model, equations_of
from torsor.identification.physical import Estimate, Prior, nearest_physical
from torsor.robot.robot import Robot
from torsor.simulation import Trajectory
from torsor.spatial import from_pseudo_inertia, pseudo_inertia

GYRATION = 0.05  # m: the radius of gyration of a load of which nothing is measured


@dataclass(frozen=True, eq=False)
class Payload:
    """A load on a ``link``: ``mass`` (kg), ``com`` (3,) in the link's axes, ``inertia`` (3, 3) about it.

    ``parameters`` (10,) are m, m c and the inertia about the link's origin as measured, with their ``covariance``;
    mass, centre and inertia are those of the physically consistent body that is closest to them.
    """

    link: str
    mass: float
    com: Array
    inertia: Array
    parameters: Array
    covariance: Array

    @property
    def deviations(self) -> Array:
        """Standard deviations (10,) of the parameters."""
        return np.sqrt(np.diagonal(self.covariance))


def identify_payload(
    robot: Robot,
    empty: Measurements | Trajectory | Sequence[Any],
    loaded: Measurements | Trajectory | Sequence[Any],
    *,
    link: str | None = None,
    bandwidth: float | None = None,
    still: float = 0.01,
) -> Payload:
    """Return the load that a ``link`` (the last by default) carries in the motions ``loaded`` but not in ``empty``.

    Other arguments as in ``identify``. The robot's own parameters need not be known.

    Example:
        >>> arm = torsor.library.ur5()
        >>> state = np.random.default_rng(0).normal(size=(3, 100, 6))
        >>> heavy = arm.with_payload(arm.links[-1].name, 2.0, [0.0, 0.1, 0.05])
        >>> runs = [(*state, each.inverse_dynamics(*state)) for each in (arm, heavy)]
        >>> found = identify_payload(arm, *runs)
        >>> round(found.mass, 6), found.com.round(6).tolist()
        (2.0, [0.0, 0.1, 0.05])
    """
    robot = instance_of(robot, Robot, "identify_payload", "robot").to(dtype="float64")
    names = [each.name for each in robot.links]
    at = names.index(names[-1] if link is None else one_of(link, names, robot.name, "link"))
    base, ten = robot.base_parameters(), slice(10 * at, 10 * at + 10)
    both = []
    for data, carries in ((empty, 0.0), (loaded, 1.0)):
        samples = measurements_of(robot, data)
        through = Filter.of(samples, bandwidth, robot.name)
        model = Model(robot, base, samples.q, samples.v, samples.a, external=samples.external)
        own = equations_of(model, samples, through, still)
        load = through(carries * robot.regressor(samples.q, samples.v, samples.a)[..., ten])
        both.append(replace(own, Y=np.concatenate([own.Y, load], axis=-1)))
    load_names = [f"load.{name.split('.')[-1]}" for name in robot.parameter_names[ten]]
    found = estimate(_together(both[0], both[1], load_names), Method())
    values, covariance = found.values[-10:], found.covariance[-10:, -10:]
    mass, com, inertia = _body(values, covariance, robot.name)
    return Payload(names[at], mass, com, inertia, values, covariance)


def _together(first: Equations, second: Equations, load: Sequence[str]) -> Equations:
    """Return the equations of both runs, whose last unknowns are those of the load."""
    count = len(first.tau)
    parts = [*first.parts, *(slice(part.start + count, part.stop + count) for part in second.parts)]
    Y, tau, weights = (
        np.concatenate([getattr(first, name), getattr(second, name)]) for name in ("Y", "tau", "weights")
    )
    return replace(first, Y=Y, tau=tau, weights=weights, parts=parts, names=(*first.names, *load))


def _body(values: Array, covariance: Array, where: str) -> tuple[float, Array, Array]:
    """Return mass, centre and inertia of the physically consistent body closest to ten parameters."""
    size = np.sqrt(np.diagonal(covariance))
    root = np.linalg.inv(np.linalg.cholesky(covariance / np.outer(size, size))) / size
    mass = max(float(values[0]), float(size[0]), 1e-6)
    ball = inertial(pseudo_inertia(mass, values[1:4] / mass, 0.4 * mass * GYRATION**2 * np.eye(3)))
    prior = Prior(ball, np.arange(10), np.ones(10, dtype=bool), 1)
    ten = nearest_physical(Estimate(np.eye(10), values, root), prior, 1e-3, where)
    found = from_pseudo_inertia(np.einsum("k,kij->ij", ten, np.array(parameter_basis())))
    return float(found[0]), np.asarray(found[1]), np.asarray(found[2])
