"""What earlier measurements tell of the base parameters: their information matrix, their noise and their rate.

    information = sum over samples of Y_t^T Y_t,       rows of Y_t weighted, and divided by the noise of a coordinate

The noise is that of the estimate (``Identified``), or what a model of any parameters leaves of the forces
(``Measurements``): the latter need not show all parameters.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from torsor.arrays import Array
from torsor.errors import ModelError, describe
from torsor.identification.logs.force_model import ForceModel
from torsor.identification.measurements import Measurements, measurements_of
from torsor.identification.result import Identified
from torsor.robot.inertial import BaseParameters
from torsor.robot.robot import Robot
from torsor.simulation import Trajectory

CHUNK = 4096  # samples at a time
RATE = 100.0  # Hz, of measurements without times
NULL = 1e-13  # eigenvalues of the information of unit parameters, relative to the largest, that count as zero
PART = 1e-3  # of a parameter in directions that no sample shows
LEAST_NOISE = 1e-4  # as a fraction of the forces: measurements without noise do not count as perfect


class Known(NamedTuple):
    """The ``information`` (b, b) of earlier measurements, their ``noise`` (n,) and ``rate`` (Hz).

    Example:
        >>> Known(np.eye(2), np.ones(3), 100.0).rate
        100.0
    """

    information: Array
    noise: Array
    rate: float


def known_of(robot: Robot, base: BaseParameters, measured: Any, noise: Array | None) -> Known:
    """Return what earlier measurements tell: an ``Identified``, ``Measurements``, a ``Trajectory``, or several of them.

    With a ``noise`` (n,), it replaces the estimated ones.

    Example:
        >>> robot, rng = torsor.library.planar_chain(1), np.random.default_rng(0)
        >>> q, v, a = rng.normal(size=(3, 400, 1))
        >>> data = Measurements(q, v, a, robot.inverse_dynamics(q, v, a) + 0.1 * rng.normal(size=(400, 1)))
        >>> base = robot.base_parameters()
        >>> found, alike = known_of(robot, base, data, None), torsor.identify(robot, data)
        >>> bool(np.allclose(np.linalg.inv(found.information), alike.covariance, rtol=0.1, atol=1e-6))
        True
    """
    total, squares, count, rate = np.zeros((len(base),) * 2), np.zeros(robot.nv), 0, RATE
    for each in _several(measured):
        data, own = _samples(robot, base, each, noise)
        total += _information(robot, base, data, own)
        squares, count = squares + len(data) * own**2, count + len(data)
        rate = _rate(data)
    return Known(total, np.sqrt(squares / count), rate)


def _rate(data: Measurements) -> float:
    """Return the usual number of samples a second."""
    steps = np.empty(0) if data.times is None else np.diff(data.times)
    steps = steps[steps > 0]
    return 1 / float(np.median(steps)) if steps.size else RATE


def _several(measured: Any) -> Sequence[Any]:
    return list(measured) if isinstance(measured, list | tuple) else [measured]


def _samples(robot: Robot, base: BaseParameters, given: Any, noise: Array | None) -> tuple[Measurements, Array]:
    """Return the samples and the noise (n,) of their forces."""
    model = ForceModel(robot)
    if isinstance(given, Identified):
        data, own = measurements_of(robot, given.measurements), given.rms
        some = data.part(slice(None, None, model.step(len(data))))
    elif isinstance(given, Measurements | Trajectory):
        data = measurements_of(robot, given)
        some = data.part(slice(None, None, model.step(len(data))))
        used = None if some.weights is None else some.weights > 0
        left = model.fit(some.q, some.v, some.a, some.tau, used).left
        own = np.sqrt(left) * np.std(data.tau, axis=0)
    else:
        allowed = "results of identify, Measurements or trajectories"
        raise ModelError(describe(f"measured has {given!r:.60}", where=f"{robot.name}: excite", allowed=allowed))
    # Forces of all parameters, which may add up to nothing: the measured ones are zero in a free fall.
    parts = np.abs(robot.regressor(some.q, some.v, some.a)[..., base.columns] * base.values).sum(axis=-1)
    size = np.sqrt(np.mean(parts**2 + some.tau**2, axis=0))
    least = LEAST_NOISE * np.maximum(size, 1e-3 * max(float(size.max(initial=0.0)), 1e-9))
    return data, np.maximum(own, least) if noise is None else noise


def _information(robot: Robot, base: BaseParameters, data: Measurements, noise: Array) -> Array:
    total = np.zeros((len(base),) * 2)
    weights = np.ones_like(data.tau) if data.weights is None else data.weights
    for k in range(0, len(data), CHUNK):
        own = slice(k, k + CHUNK)
        Y = robot.regressor(data.q[own], data.v[own], data.a[own])[..., base.columns]
        rows = (Y * (weights[own] / noise)[..., None]).reshape(-1, len(base))
        total += rows.T @ rows
    return total


def deviations_of(information: Array) -> Array:
    """Return the standard deviations (b,) of parameters with this information; infinite where it shows nothing.

    Example:
        >>> deviations_of(np.diag([4.0, 0.0])).tolist()
        [0.5, inf]
    """
    sizes = np.sqrt(np.diagonal(information))
    scale = np.where(sizes > 0, sizes, 1.0)
    values, U = np.linalg.eigh(information / np.outer(scale, scale))
    shown = values > NULL * max(float(values[-1]), 1e-300)
    deviations = np.sqrt((U[:, shown] ** 2 / values[shown]).sum(axis=1)) / scale
    hidden = (U[:, ~shown] ** 2).sum(axis=1) > PART**2
    return np.where(hidden, np.inf, deviations)
