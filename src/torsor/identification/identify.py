"""``identify``: the parameters of a robot from its measured motions and forces."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torsor.errors import ModelError, describe
from torsor.identification.least_squares import fit
from torsor.identification.measurements import Measurements, checked
from torsor.identification.physical import nearest_physical
from torsor.identification.result import Identified
from torsor.robot.robot import Robot
from torsor.simulation import Trajectory

__all__ = ["identify"]

Array = NDArray[np.float64]

CONSISTENT = 1e-7  # noise, as a share of a force, below which a physical estimate need not come nearer

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
    """Return the base parameters of a robot from motions and the forces that they took, with standard deviations.

    ``robot`` gives geometry, gravity, springs and motors; of its own parameters only those that ``among`` does not name
    are believed (patterns with *, as in ``base_parameters``). ``data`` are ``Measurements``, a ``Trajectory``, or a
    tuple (q, v, a, tau). From tau is taken what springs, motors and known parameters take; the rest is Y pi, solved by
    weighted least squares, where each coordinate's noise is estimated too (Gautier's IDIM-WLS).

    Coulomb friction has the sign of a velocity, which is noise near rest: forces of a coordinate that moves slower than
    the share ``still`` of its own greatest speed are left out, if its friction is sought and not ``smooth``.

    With ``physical`` the parameters of all links are found that a real robot can have (positive definite
    pseudo-inertias; friction and rotor inertias of 0 or more) and ``.robot`` is the robot that has them. What the
    measurements leave open stays near the given robot; ``regularisation`` is the weight of that, in units of the
    squared residuals over their noise. Standard deviations are those of the least squares without the constraints.

    Example:
        >>> import torsor
        >>> robot = torsor.library.two_link()
        >>> q, v, a = np.random.default_rng(0).normal(size=(3, 50, 2))
        >>> found = identify(robot, (q, v, a, robot.inverse_dynamics(q, v, a)))
        >>> bool(np.allclose(found.values, robot.base_parameters().values))
        True
    """
    if not isinstance(robot, Robot):
        raise ModelError(describe(f"identify for {robot!r}", allowed="a torsor.Robot"))
    if not (isinstance(regularisation, (int, float)) and 0 < regularisation < np.inf):
        raise ModelError(describe(f"regularisation is {regularisation!r}", where=robot.name, allowed="above 0"))
    if not (isinstance(still, (int, float)) and 0 <= still < 1):
        raise ModelError(describe(f"still is {still!r}", where=robot.name, allowed="from 0 to below 1"))
    samples = checked(robot, data)
    robot = robot.to(dtype="float64")
    base = robot.base_parameters(among=among)
    if not len(base):
        raise ModelError(describe("no motion shows any of the parameters", where=robot.name))
    prior = robot.parameters()
    motion = samples.q, samples.v, samples.a
    Y = robot.regressor(*motion)
    _refuse_too_large(robot, Y)
    known = robot.inverse_dynamics(*motion) - Y @ np.where(base.unknown, prior, 0.0)
    _refuse_too_large(robot, samples.tau - known)
    weights = np.ones_like(samples.tau) if samples.weights is None else samples.weights
    weights = np.where(_at_rest(robot, samples.v, base.unknown, still), 0.0, weights)
    samples = replace(samples, weights=weights)
    found = fit(Y[..., base.columns], samples.tau - known, weights, base.names, robot.name)
    values, parameters = found.values, None
    if physical:
        size = np.sqrt(np.mean((samples.tau - known) ** 2, axis=0))
        louder = np.maximum(found.noise, CONSISTENT * size)
        root = found.root * float(np.min(found.noise / louder))
        parameters = nearest_physical(
            base.matrix,
            values,
            root,
            prior,
            base.columns,
            base.unknown,
            len(robot.links),
            float(regularisation),
            robot.name,
        )
        values = base.matrix @ parameters
    predicted = known + Y[..., base.columns] @ values
    return Identified(robot, base, values, found.covariance, found.condition, samples, predicted, parameters)


def _at_rest(robot: Robot, v: Array, unknown: NDArray[np.bool_], still: float) -> NDArray[np.bool_]:
    """Return which forces (N, nv) of coordinates with Coulomb's law say nothing, since these hardly move."""
    names = dict(zip(robot.parameter_names, unknown.tolist(), strict=True))
    sought = [names.get(f"{name}.coulomb", False) for name in robot.coordinate_names]
    smooth = {name for joint in robot.joints if joint.smooth for name in joint.velocity_names}
    exact = np.array(sought) & ~np.isin(robot.coordinate_names, list(smooth))
    slow = np.abs(v) < still * np.abs(v).max(axis=0, initial=0.0)
    return np.asarray(slow & exact)


def _refuse_too_large(robot: Robot, values: Array) -> None:
    """Refuse numbers whose squares are not finite: nothing can be fitted to them."""
    largest = float(np.abs(values).max(initial=0.0))
    if not largest < LARGEST:
        fix = "check the units of q, v, a and tau"
        raise ModelError(describe(f"forces or their regressor reach {largest:.3g}", where=robot.name, fix=fix))
