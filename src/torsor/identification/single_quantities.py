"""Payload, link masses, gravity direction and joint elasticity from measured motions and forces.

For a payload, runs without and with it are solved together: both runs share the base parameters of the robot, and the
ten parameters of the payload act only in the second run. All ten are identifiable, and their covariance includes the
uncertainty of the robot parameters.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import instance_of, one_of, positive, real_array
from torsor.base.errors import ModelError
from torsor.dynamics import inertial, parameter_basis
from torsor.identification.drives import frictional
from torsor.identification.estimation import Equations, Method, estimate
from torsor.identification.measurements import Measurements, measurements_of
from torsor.identification.model import Filter, Model, equations_of, stretches
from torsor.identification.physical import Estimate, Prior, nearest_physical
from torsor.robot.base_parameters import BaseParameters
from torsor.robot.robot import Robot
from torsor.simulation import Trajectory
from torsor.spatial import from_pseudo_inertia, pseudo_inertia

# Masses of links with known shapes: the links of the prior robot, each with an unknown density.
#
#     tau = sum over links of m_i y_i + friction,       y_i = Y_i pi_i / m_i: forces of link i with a mass of 1 kg
#
# where pi_i are the ten parameters of link i of the prior robot. All moving masses are identifiable, unlike the ten
# parameters of each link.


@dataclass(frozen=True, eq=False)
class Masses:
    """Identified masses: ``values`` (L,), in kg, of the links ``names``, with their ``covariance`` (L, L).

    ``prior`` is the robot with the initial masses.
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
        """The prior robot with these masses; centres of mass and radii of gyration are unchanged."""
        pi = self.prior.inertial.values
        pi[: 10 * len(self.values)] = (_bodies(self.prior) * self.values[:, None]).ravel()
        return self.prior.inertial.replaced(pi)


def identify_masses(
    robot: Robot,
    data: Measurements | Trajectory | Sequence[Any],
    *,
    total: float | None = None,
    bandwidth: float | None = None,
    still: float = 0.01,
) -> Masses:
    """Return the masses of all links from motions and forces, with known centres of mass and radii of gyration.

    ``robot`` provides these centres and radii; its friction is also identified. ``total`` (kg) is the known mass of all
    moving links. For the other arguments, see ``identify``.

    Example:
        >>> arm = torsor.library.two_link()
        >>> q, v, a = np.random.default_rng(0).normal(size=(3, 50, 2))
        >>> tau = arm.inverse_dynamics(q, v, a)
        >>> guess = arm.inertial.replaced(arm.inertial.values * np.repeat([1.5, 0.5, 1.0], [10, 10, 6]))
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
        raise ModelError(f"link {weightless[0]!r} has no mass", where=where, allowed="links with mass")
    unknown = frictional(robot)
    unknown[: 10 * count] = True
    columns = np.flatnonzero(unknown)
    matrix, friction_names = np.eye(len(unknown))[columns], tuple(robot.inertial.names[k] for k in columns)
    each_alone = BaseParameters(friction_names, columns, matrix, matrix @ robot.inertial.values, unknown, False)
    model = Model(robot, each_alone, samples.q, samples.v, samples.a, external=samples.external)
    equations = equations_of(model, samples, through, still)
    rubs = equations.Y[..., 10 * count :]
    parts = equations.Y[..., : 10 * count].reshape(*rubs.shape[:2], count, 10)
    Y = np.concatenate([np.einsum("tjik,ik->tji", parts, _bodies(robot)), rubs], axis=-1)
    names = (*(f"{link.name}.m" for link in robot.links), *equations.names[10 * count :])
    solution = estimate(replace(equations, Y=Y, names=names), Method())
    values, covariance = solution.values[:count], solution.covariance[:count, :count]
    if total is not None:
        gain = covariance.sum(axis=1) / covariance.sum()
        values = values + gain * (positive(total, where, "total") - values.sum())
        covariance = covariance - np.outer(gain, covariance.sum(axis=0))
    return Masses(robot, values, covariance)


def _bodies(robot: Robot) -> Array:
    """Return the ten parameters (L, 10) of each link, scaled to a mass of 1 kg."""
    ten = robot.inertial.values[: 10 * len(robot.links)].reshape(-1, 10)
    return np.asarray(ten / ten[:, :1])


# The direction of gravity from forces, which determines the mounting orientation of a robot.
#
# Forces are linear in gravity: with the robot's parameters, tau = tau_0 + G(q) g, where the three columns of G are the
# forces due to gravity along the base axes. If the base parameters are also unknown, the equations contain products of
# both unknowns and are solved by the Gauss-Newton method: each step is a linear fit of the base parameters and of a
# change of g.

MAX_STEPS = 20
DIRECTION_TOLERANCE = 1e-6  # rad; maximum change of direction at convergence


@dataclass(frozen=True, eq=False)
class Gravity:
    """Identified gravity: the ``vector`` (3,) in m/s^2 in base axes, and the ``robot`` with this gravity.

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
    """Return the direction of gravity from motions and forces; its magnitude is that of ``robot``.

    The parameters named by ``among`` are also identified. Parameters that have no effect with the gravity direction of
    ``robot``, such as first moments of a link that rotates about the vertical, keep their values. For the other
    arguments, see ``identify``.

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
        raise ModelError("gravity is zero", where=robot.name, fix="set the magnitude of gravity: with_gravity")
    samples = measurements_of(robot, data)
    through = Filter.of(samples, bandwidth, robot.name)
    base = robot.inertial.base(among=among)
    motion = samples.q, samples.v, samples.a
    equations = equations_of(Model(robot, base, *motion, external=samples.external), samples, through, still)
    # Regressors (N, nv, p) without gravity, and for each of its components; forces of springs and motors are
    # subtracted.
    none = robot.with_gravity([0.0, 0.0, 0.0]).inertial.regressor(*motion)
    along = [through(robot.with_gravity(axis).inertial.regressor(*motion) - none) for axis in np.eye(3)]
    pi, g = robot.inertial.values, np.array(robot.gravity, dtype=float)
    other = robot.inverse_dynamics(*motion, samples.external) - robot.inertial.regressor(*motion) @ pi
    without, rest = through(none), through(samples.tau - other)
    for _ in range(MAX_STEPS):
        axes = np.linalg.svd(g[None])[2][1:]
        Y = without + sum(g[k] * along[k] for k in range(3))
        turns = np.stack([size * sum(axis[k] * along[k] for k in range(3)) @ pi for axis in axes], axis=-1)
        columns = np.concatenate([Y[..., base.columns], turns], axis=-1)
        names = (*base.names, "gravity about 1", "gravity about 2")
        solution = estimate(replace(equations, Y=columns, tau=rest - Y @ pi, names=names), Method())
        pi[base.columns] += solution.values[:-2]
        g = g + size * solution.values[-2:] @ axes
        g *= size / np.linalg.norm(g)
        if np.abs(solution.values[-2:]).max() < DIRECTION_TOLERANCE:
            return Gravity(robot.with_gravity(g), g, np.sqrt(np.diagonal(solution.covariance)[-2:]), axes)
    fix = "start with a gravity direction closer to the true one, or check the signs of tau"
    raise ModelError("no direction of gravity explains the forces", where=robot.name, fix=fix)


# Stiffness and damping of elastic joints from two encoders: one on the motor, and one on the joint at the gear output.
#
# The force transmitted by a spring is the force on the links, f = M a + ..., which a model without motor friction
# predicts from the joint motion. It also equals the motor force minus the motor's inertial and friction forces. It is
# linear in the unknowns,
#
#     f = k (theta - q) + d (theta' - q') + c
#
# with the motor position theta on the joint side of the gear. The constant c absorbs encoder offsets.

WHERE = "identify_elasticity"


@dataclass(frozen=True, eq=False)
class Elasticity:
    """Springs of n joints: ``stiffness`` (n,) in N m/rad or N/m, ``damping`` (n,) and force ``offset`` (n,).

    Damping is in N m s/rad or N s/m, the offset in N m or N. ``deviations`` (n, 3) are the standard deviations of
    stiffness, damping and offset, and ``rms`` (n,) is the root mean square of the residuals, in N m or N.
    """

    stiffness: Array
    damping: Array
    offset: Array
    deviations: Array
    rms: Array


def identify_elasticity(
    theta: ArrayLike,
    theta_rate: ArrayLike,
    q: ArrayLike,
    v: ArrayLike,
    force: ArrayLike,
    *,
    times: ArrayLike | None = None,
    robust: str | None = None,
) -> Elasticity:
    """Return the stiffness and damping of n joints from samples (N, n) of motors, joints and forces.

    ``theta`` and ``theta_rate`` are motor positions and velocities on the joint side of the gears, and ``q`` and ``v``
    are those of the joints. ``force`` is the transmitted force, such as ``robot.inverse_dynamics(q, v, a)`` of the
    links. ``times`` (N,) determine which samples are consecutive. For ``robust``, see ``identify``.

    Example:
        >>> t = np.linspace(0, 5, 500)[:, None]
        >>> q, v, theta, w = np.sin(t), np.cos(t), np.sin(t) + 0.01 * np.sin(3 * t), np.cos(t) + 0.03 * np.cos(3 * t)
        >>> found = identify_elasticity(theta, w, q, v, 2000.0 * (theta - q) + 3.0 * (w - v))
        >>> found.stiffness.round(6).tolist(), found.damping.round(6).tolist()
        ([2000.0], [3.0])
    """
    given = {"theta": theta, "theta_rate": theta_rate, "q": q, "v": v, "force": force}
    arrays = {name: real_array(each, WHERE, name) for name, each in given.items()}
    shapes = {name: each.shape for name, each in arrays.items()}
    if len(set(shapes.values())) > 1 or arrays["q"].ndim != 2 or not all(np.isfinite(x).all() for x in arrays.values()):
        allowed = "finite numbers, all of shape (samples, joints)"
        raise ModelError(f"are {shapes}", argument="shapes", where=WHERE, allowed=allowed)
    instants = None if times is None else real_array(times, WHERE, "times").ravel()
    samples, count = arrays["q"].shape
    parts = stretches(instants, samples)
    bent, rate = arrays["theta"] - arrays["q"], arrays["theta_rate"] - arrays["v"]
    values, deviations, rms = np.empty((count, 3)), np.empty((count, 3)), np.empty(count)
    for j in range(count):
        Y = np.stack([bent[:, j], rate[:, j], np.ones(samples)], axis=-1)[:, None, :]
        names = tuple(f"joint {j + 1}.{quantity}" for quantity in ("stiffness", "damping", "offset"))
        tau = arrays["force"][:, j, None]
        solution = estimate(Equations(Y, tau, np.ones_like(tau), names, parts, WHERE), Method(robust))
        values[j], deviations[j] = solution.values, np.sqrt(np.diagonal(solution.covariance))
        rms[j] = np.sqrt(np.mean((tau - Y @ solution.values) ** 2))
    stiffness, damping, offset = values.T
    return Elasticity(stiffness, damping, offset, deviations, rms)


DEFAULT_GYRATION_RADIUS = 0.05  # m; default radius of gyration of a payload


@dataclass(frozen=True, eq=False)
class Payload:
    """A payload on a ``link``: ``mass`` (kg), ``com`` (3,) in link axes, and ``inertia`` (3, 3) about ``com``.

    ``parameters`` (10,) are the identified m, m c and inertia about the link origin, with their ``covariance`` (10,
    10). Mass, centre and inertia are those of the closest physically consistent body.
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
    """Return the payload that a ``link`` (default: the last) carries in the motions ``loaded`` but not in ``empty``.

    The robot parameters need not be known. For the other arguments, see ``identify``.

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
    base, ten = robot.inertial.base(), slice(10 * at, 10 * at + 10)
    both = []
    for data, carries in ((empty, 0.0), (loaded, 1.0)):
        samples = measurements_of(robot, data)
        through = Filter.of(samples, bandwidth, robot.name)
        model = Model(robot, base, samples.q, samples.v, samples.a, external=samples.external)
        equations = equations_of(model, samples, through, still)
        load = through(carries * robot.inertial.regressor(samples.q, samples.v, samples.a)[..., ten])
        both.append(replace(equations, Y=np.concatenate([equations.Y, load], axis=-1)))
    load_names = [f"load.{name.split('.')[-1]}" for name in robot.inertial.names[ten]]
    first, second = both
    count = len(first.tau)
    parts = [*first.parts, *(slice(part.start + count, part.stop + count) for part in second.parts)]
    Y, tau, weights = (np.concatenate([getattr(x, name) for x in both]) for name in ("Y", "tau", "weights"))
    names_of_both = (*first.names, *load_names)
    solution = estimate(replace(first, Y=Y, tau=tau, weights=weights, parts=parts, names=names_of_both), Method())
    values, covariance = solution.values[-10:], solution.covariance[-10:, -10:]
    mass, com, inertia = _body(values, covariance, robot.name)
    return Payload(names[at], mass, com, inertia, values, covariance)


def _body(values: Array, covariance: Array, where: str) -> tuple[float, Array, Array]:
    """Return the mass, centre and inertia of the physically consistent body closest to ten parameters."""
    size = np.sqrt(np.diagonal(covariance))
    root = np.linalg.inv(np.linalg.cholesky(covariance / np.outer(size, size))) / size
    mass = max(float(values[0]), float(size[0]), 1e-6)
    ball = inertial(pseudo_inertia(mass, values[1:4] / mass, 0.4 * mass * DEFAULT_GYRATION_RADIUS**2 * np.eye(3)))
    prior = Prior(ball, np.arange(10), np.ones(10, dtype=bool), 1)
    ten = nearest_physical(Estimate(np.eye(10), values, root), prior, 1e-3, where)
    body = from_pseudo_inertia(np.einsum("k,kij->ij", ten, np.array(parameter_basis())))
    return float(body[0]), np.asarray(body[1]), np.asarray(body[2])
