"""``identify``: the parameters of a robot from measured motions and forces."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from torsor.arrays import Array, Flags
from torsor.checks import number, positive
from torsor.errors import ModelError, describe
from torsor.identification.least_squares import fit
from torsor.identification.measurements import Measurements, measurements_of
from torsor.identification.physical import Estimate, Prior, nearest_physical
from torsor.identification.result import Identified
from torsor.robot.robot import Robot
from torsor.simulation import Trajectory

LEAST_NOISE = 1e-7  # noise, as a fraction of the force, to which a physical estimate fits at best
LARGEST = 1e100  # of forces, N m and N: sums of squares stay finite


def identify(
    robot: Robot,
    data: Measurements | Trajectory | Sequence[Any],
    *,
    physical: bool = False,
    among: Sequence[str] = ("*",),
    regularisation: float = 1e-3,
    still: float = 0.01,
) -> Identified:
    """Return the base parameters of a robot from motions and their forces, with standard deviations.

    ``robot`` gives geometry, gravity, springs and motors. The parameters that ``among`` names are unknown (patterns
    with *, as in ``base_parameters``); the others are taken from the robot. ``data`` are ``Measurements``, a
    ``Trajectory``, or a tuple (q, v, a, tau). The forces of springs, motors and known parameters are subtracted from
    tau; the rest is Y pi, solved by weighted least squares with the noise of each coordinate estimated too (Gautier's
    IDIM-WLS).

    Coulomb friction has the sign of the velocity, which is noise near rest: forces of a coordinate that moves slower
    than the fraction ``still`` of its greatest speed are excluded if its friction is unknown and not ``smooth``.

    With ``physical``, all parameters of all links are identified under the constraints of physical consistency
    (positive definite pseudo-inertias; friction and rotor inertias of 0 or more), and ``.robot`` is the robot with
    them. Parameters that the measurements do not determine stay close to the given robot; ``regularisation`` is the
    weight of this term, relative to the squared residuals over their noise. Standard deviations are those of the
    least squares without the constraints.

    Example:
        >>> robot = torsor.library.two_link()
        >>> q, v, a = np.random.default_rng(0).normal(size=(3, 50, 2))
        >>> found = identify(robot, (q, v, a, robot.inverse_dynamics(q, v, a)))
        >>> bool(np.allclose(found.values, robot.base_parameters().values))
        True
    """
    if not isinstance(robot, Robot):
        raise ModelError(describe(f"identify for {robot!r}", allowed="a torsor.Robot"))
    regularisation = positive(regularisation, robot.name, "regularisation")
    still = number(still, robot.name, "still", least=0.0, below=1.0)
    samples = measurements_of(robot, data)
    robot = robot.to(dtype="float64")
    base = robot.base_parameters(among=among)
    if not len(base):
        raise ModelError(describe("no motion excites any of the parameters", where=robot.name))
    prior = robot.parameters()
    motion = samples.q, samples.v, samples.a
    Y = robot.regressor(*motion)
    _check_size(robot, Y)
    known = robot.inverse_dynamics(*motion) - Y @ np.where(base.unknown, prior, 0.0)
    _check_size(robot, samples.tau - known)
    weights = np.ones_like(samples.tau) if samples.weights is None else samples.weights
    weights = np.where(_near_rest(robot, samples.v, base.unknown, still), 0.0, weights)
    samples = replace(samples, weights=weights)
    found = fit(Y[..., base.columns], samples.tau - known, weights, base.names, robot.name)
    values, parameters = found.values, None
    if physical:
        size = np.sqrt(np.mean((samples.tau - known) ** 2, axis=0))
        noise = np.maximum(found.noise, LEAST_NOISE * size)
        root = found.root * float(np.min(found.noise / noise))
        given = Prior(prior, base.columns, base.unknown, len(robot.links))
        parameters = nearest_physical(Estimate(base.matrix, values, root), given, regularisation, robot.name)
        values = base.matrix @ parameters
    predicted = known + Y[..., base.columns] @ values
    settings = {"physical": physical, "among": list(among), "regularisation": regularisation, "still": still}
    fitted = values, found.covariance, found.condition
    made = Identified(robot, base, *fitted, samples, predicted, parameters, settings)
    return made.checked()


def _near_rest(robot: Robot, v: Array, unknown: Flags, still: float) -> Flags:
    """Return which forces (N, nv) have unknown, discontinuous Coulomb friction at a velocity near zero."""
    names = dict(zip(robot.parameter_names, unknown.tolist(), strict=True))
    unknowns = [names.get(f"{name}.coulomb", False) for name in robot.coordinate_names]
    smooth = {name for joint in robot.joints if joint.smooth for name in joint.velocity_names}
    exact = np.array(unknowns) & ~np.isin(robot.coordinate_names, list(smooth))
    slow = np.abs(v) < still * np.abs(v).max(axis=0, initial=0.0)
    return np.asarray(slow & exact)


def _check_size(robot: Robot, values: Array) -> None:
    """Raise ModelError for numbers whose squares are not finite."""
    largest = float(np.abs(values).max(initial=0.0))
    if not largest < LARGEST:
        fix = "check the units of q, v, a and tau"
        raise ModelError(describe(f"forces or their regressor reach {largest:.3g}", where=robot.name, fix=fix))
