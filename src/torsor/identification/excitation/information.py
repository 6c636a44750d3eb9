"""What earlier measurements tell of the base parameters: their information matrix, their noise and their rate.

    information = sum over samples of Y_t^T Y_t,       rows of Y_t weighted, and divided by the noise of a coordinate

The noise is that of the estimate (``Identified``), or what a model of any parameters leaves of the forces
(``Measurements``): the latter need not show all parameters.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from torsor.base.arrays import Array, Flags
from torsor.base.errors import ModelError
from torsor.identification.bases import environment_forces
from torsor.identification.closed_robot import MeasuredRobot
from torsor.identification.logs.force_model import ForceModel
from torsor.identification.measurements import Measurements, measurements_of
from torsor.identification.result import Identified
from torsor.robot.base_parameters import BaseParameters
from torsor.robot.robot import Robot
from torsor.simulation import Trajectory

CHUNK = 4096  # samples at a time
RATE = 100.0  # Hz, of measurements without times
NULL = 1e-13  # eigenvalues of the information of unit parameters, relative to the largest, that count as zero
PART = 1e-3  # of a parameter in directions that no sample shows
LEAST_NOISE = 1e-4  # as a fraction of the forces: measurements without noise do not count as perfect


class Known(NamedTuple):
    """The ``information`` (b, b) of earlier measurements, their ``noise`` (n,) and ``rate`` (Hz)."""

    information: Array
    noise: Array
    rate: float


class Measured(NamedTuple):
    """Samples of a robot: all that is ``acting`` (N, n), with wrenches, its ``weights``, and ``residuals`` if known.

    Example:
        >>> data = Measurements(*np.zeros((4, 9, 2)))
        >>> Measured(data, data.tau, np.ones((9, 2)) * [1, 0], None).measured.tolist()
        [True, False]
    """

    data: Measurements
    acting: Array
    weights: Array
    residuals: Array | None

    @property
    def measured(self) -> Flags:
        """Which forces (n,) were measured."""
        return np.asarray((self.weights > 0).any(axis=0))


def known_of(robot: Robot, base: BaseParameters, samples: Sequence[Measured], noise: Array | None) -> Known:
    """Return what earlier measurements tell, from their ``samples_of``; a ``noise`` (n,) replaces the estimated ones.

    The noise of a coordinate that none of them measured is infinite.
    """
    total, squares, count = np.zeros((len(base),) * 2), np.zeros(robot.nv), np.zeros(robot.nv)
    for each in samples:
        own = _noise(robot, base, each) if noise is None else noise
        total += _information(robot, base, each, own)
        squares += len(each.data) * np.where(each.measured, own, 0.0) ** 2
        count += len(each.data) * each.measured
    mean = np.sqrt(np.divide(squares, count, out=np.full(robot.nv, np.inf), where=count > 0))
    return Known(total, mean if noise is None else noise, _rate(samples[-1].data))


def samples_of(robot: Robot, measured: Any) -> list[Measured]:
    """Return the samples of an ``Identified``, ``Measurements``, a ``Trajectory``, or of several of them."""
    return [_samples(robot, each) for each in (measured if isinstance(measured, list | tuple) else [measured])]


def _samples(robot: Robot, given: Any) -> Measured:
    if not isinstance(given, Identified | Measurements | Trajectory):
        allowed = "results of identify, Measurements or trajectories"
        raise ModelError(f"measured has {given!r:.60}", where=f"{robot.name}: excite", allowed=allowed)
    if not isinstance(given, Measurements):
        _check_same(robot, given.prior if isinstance(given, Identified) else given.robot)
    data = measurements_of(robot, given.measurements if isinstance(given, Identified) else given)
    weights = np.ones_like(data.tau) if data.weights is None else data.weights
    # Weights are relative: those of a coordinate have the mean square 1 where they are positive.
    weights = weights / np.maximum(weights.max(axis=0), 1e-300)
    squares = (weights**2).sum(axis=0) / np.maximum((weights > 0).sum(axis=0), 1)
    weights = weights / np.sqrt(np.where(squares > 0, squares, 1.0))
    residuals = given.residuals if isinstance(given, Identified) else None
    return Measured(data, data.tau + environment_forces(robot, data.q, data.external), weights, residuals)


def _check_same(robot: Robot, other: MeasuredRobot) -> None:
    """Raise ModelError if measurements are of a robot with other parameters, geometry or gravity."""
    same = robot.inertial.names == other.inertial.names and (robot.nq, robot.nv) == (other.nq, other.nv)
    if same:
        q, a = np.random.default_rng(0).normal(size=(2, 3, robot.nv))
        own, others = (each.to(dtype="float64").inertial.regressor(q, 0 * a, a) for each in (robot, other))
        same = np.allclose(own, others, rtol=1e-6, atol=1e-6 * np.abs(own).max(initial=0.0))
    if not same:
        found = f"measured is of {other.name!r}, which has other links, geometry or gravity than {robot.name!r}"
        fix = "give the robot that was measured, or measurements of this one"
        raise ModelError(found, where=f"{robot.name}: excite", fix=fix)


def _rate(data: Measurements) -> float:
    """Return the usual number of samples a second."""
    steps = np.empty(0) if data.times is None else np.diff(data.times)
    steps = steps[steps > 0]
    return 1 / float(np.median(steps)) if steps.size else RATE


def _noise(robot: Robot, base: BaseParameters, given: Measured) -> Array:
    """Return the noise (n,) of the forces: of weighted residuals, and infinite where nothing was measured."""
    model, data = ForceModel(robot), given.data
    some = slice(None, None, model.step(len(data)))
    q, v, a, tau = data.q[some], data.v[some], data.a[some], given.acting[some]
    if given.residuals is not None:
        squares = ((given.weights * given.residuals) ** 2).sum(axis=0)
        own = np.sqrt(squares / np.maximum((given.weights > 0).sum(axis=0), 1))
    else:
        fit = model.of(q, v, a, given.weights[some] > 0)
        free = fit.chosen.sum(axis=0) - [row.basis.shape[1] for row in fit.rows]
        squares = ((given.weights[some] * fit.residuals(tau)) ** 2).sum(axis=0)
        own = np.where(free > 1, np.sqrt(squares / np.maximum(free, 1)), np.std(tau, axis=0))
    # Forces of all parameters, which may add up to nothing: the measured ones are zero in a free fall.
    parts = np.abs(robot.inertial.regressor(q, v, a)[..., base.columns] * base.values).sum(axis=-1)
    size = np.sqrt(np.mean(parts**2 + tau**2, axis=0))
    least = LEAST_NOISE * np.maximum(size, 1e-3 * max(float(size.max(initial=0.0)), 1e-9))
    return np.where(given.measured, np.maximum(own, least), np.inf)


def _information(robot: Robot, base: BaseParameters, given: Measured, noise: Array) -> Array:
    total, data = np.zeros((len(base),) * 2), given.data
    for k in range(0, len(data), CHUNK):
        own = slice(k, k + CHUNK)
        Y = robot.inertial.regressor(data.q[own], data.v[own], data.a[own])[..., base.columns]
        rows = (Y * (given.weights[own] / noise)[..., None]).reshape(-1, len(base))
        total += rows.T @ rows
    return total


def deviations_of(information: Array) -> Array:
    """Return the standard deviations (b,) of parameters with this information; infinite where it shows nothing."""
    sizes = np.sqrt(np.diagonal(information))
    scale = np.where(sizes > 0, sizes, 1.0)
    values, U = np.linalg.eigh(information / np.outer(scale, scale))
    shown = values > NULL * max(float(values[-1]), 1e-300)
    deviations = np.sqrt((U[:, shown] ** 2 / values[shown]).sum(axis=1)) / scale
    return np.where((U[:, ~shown] ** 2).sum(axis=1) > PART**2, np.inf, deviations)
