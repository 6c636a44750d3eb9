"""The equations of an identification: filtered measurements, and columns of base parameters and terms."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from torsor.base.arrays import Array
from torsor.base.errors import ModelError
from torsor.identification.closed_robot import MeasuredRobot
from torsor.identification.drives import Motion, frictional
from torsor.identification.estimation import Equations
from torsor.identification.measurements import Measurements
from torsor.robot.base_parameters import BaseParameters

LOBES = 4  # number of zero crossings of the filter on each side
ROLL_OFF = 0.4  # roll-off, which is half the transition width over the cutoff
STEP_TOLERANCE = 1e-3  # relative deviation of steps that count as equal


def stretches(times: Array | None, count: int) -> list[slice]:
    """Divide ``count`` samples at ``times`` (count,) into ranges with equal steps.

    Steps are equal if they are within 0.1 % of the median step. Without times, or with fewer than three samples, there
    is a single range.
    """
    if times is None or count < 3:
        return [slice(0, count)]
    steps = np.diff(times)
    usual = float(np.median(steps))
    breaks = np.flatnonzero(np.abs(steps - usual) > STEP_TOLERANCE * abs(usual)) + 1
    return [slice(start, stop) for start, stop in pairwise([0, *breaks.tolist(), count])]


def _taps(factor: int) -> Array:
    """Return the filter taps of a root-raised cosine as rows (2 LOBES, factor) with the sum 1."""
    count = 2 * LOBES * factor
    t = (np.arange(count) - (count - 1) / 2) / factor
    edge = np.abs(np.abs(4 * ROLL_OFF * t) - 1) < 1e-9  # the expression is 0 / 0 there and at t = 0
    x = np.pi * np.where(edge | (t == 0), 0.5, t)
    ordinary = (np.sin(x * (1 - ROLL_OFF)) + 4 * ROLL_OFF * x / np.pi * np.cos(x * (1 + ROLL_OFF))) / (
        x * (1 - (4 * ROLL_OFF * x / np.pi) ** 2)
    )
    angle = np.pi / (4 * ROLL_OFF)
    limit = ROLL_OFF / np.sqrt(2) * ((1 + 2 / np.pi) * np.sin(angle) + (1 - 2 / np.pi) * np.cos(angle))
    h = np.where(t == 0, 1 - ROLL_OFF + 4 * ROLL_OFF / np.pi, np.where(edge, limit, ordinary))
    return np.asarray((h / h.sum()).reshape(2 * LOBES, factor))


@dataclass(frozen=True, eq=False)
class Filter:
    """The parallel filter of samples in ``parts`` with equal steps, which keeps every ``factor``-th sample of a part.

    tau = Y x also holds for filtered tau and Y. Above the frequencies of the motion, there is only noise. The filter
    removes it from both sides, and the remaining noise is nearly white at the lower rate. This is the "parallel
    decimate filter" of the IDIM method (Gautier 1997).

    The filter is a root-raised cosine, which preserves white noise. Its gain is 0.71 at half the new rate. Each part
    loses ``LOBES`` samples of the new rate at both ends.
    """

    parts: list[slice]
    factor: int

    @classmethod
    def of(cls, data: Measurements, bandwidth: float | None, where: str) -> "Filter":
        """Return the filter of measurements; ``bandwidth`` is half the new rate (Hz), or None."""
        factor = 1
        if bandwidth is not None:
            if data.times is None:
                fix = "pass the times of the samples: Measurements(..., times=t)"
                raise ModelError("`bandwidth` needs the times of the samples", where=where, fix=fix)
            step = float(np.median(np.diff(data.times))) if len(data) > 1 else 0.0
            if not step > 0:
                raise ModelError("the times of the samples do not increase", where=where, allowed="equal steps")
            factor = max(1, round(1 / (2 * bandwidth * step)))
        made = cls(stretches(data.times, len(data)), factor)
        if not made.after:
            message = f"{len(data)} samples are too few for a bandwidth of {bandwidth:g} Hz"
            fix = f"measure more than {8 * factor} consecutive samples, or raise the bandwidth"
            raise ModelError(message, where=where, fix=fix)
        return made

    @property
    def after(self) -> list[slice]:
        """The parts of the remaining samples."""
        lost = 2 * LOBES - 1 if self.factor > 1 else 0
        counts = [max(0, (part.stop - part.start) // self.factor - lost) for part in self.parts]
        ends = np.concatenate([[0], np.cumsum(counts)]).tolist()
        return [slice(start, stop) for start, stop in pairwise(ends) if stop > start]

    def _blocks(self, x: Array) -> Iterator[Array]:
        """Yield the samples of each sufficiently long part in blocks (blocks, factor, ...)."""
        for part in self.parts:
            count = (part.stop - part.start) // self.factor
            if count >= 2 * LOBES:
                yield x[part][: count * self.factor].reshape(count, self.factor, -1)

    def __call__(self, x: Array) -> Array:
        """Return filtered samples (M, ...) of samples (N, ...)."""
        if self.factor == 1:
            return x
        h, filtered = _taps(self.factor), []
        for blocks in self._blocks(x):
            count = len(blocks) - len(h) + 1
            # There is one product of filter rows and sample blocks for each half lobe.
            whole = sum(np.matmul(h[p], blocks[p : p + count]) for p in range(len(h)))
            filtered.append(np.asarray(whole).reshape(count, *x.shape[1:]))
        return np.concatenate(filtered)

    def kept(self, weights: Array) -> Array:
        """Return the weights (M, nv) of the remaining samples, which are 0 if the filter uses a sample of weight 0."""
        if self.factor == 1:
            return weights
        found = []
        for blocks in self._blocks(weights):
            least, mean = (sliding_window_view(x, 2 * LOBES, axis=0) for x in (blocks.min(axis=1), blocks.mean(axis=1)))
            found.append(np.where(least.min(axis=-1) > 0, mean.mean(axis=-1), 0.0))
        return np.concatenate(found)

    def measurements(self, data: Measurements) -> Measurements:
        """Return filtered measurements, with the motion at the centre of each filter window."""
        if self.factor == 1:
            return data
        at = np.round(self(np.arange(float(len(data))))).astype(int)
        weights = None if data.weights is None else self.kept(data.weights)
        return replace(data.part(at), tau=self(data.tau), weights=weights)


MAX_FORCE = 1e100  # N m or N; maximum force, whose sums of squares are finite


@dataclass(frozen=True, eq=False)
class Model:
    """A robot and its base parameters along a motion q (N, nq), v, a (N, nv).

    ``warmth`` (N, nv) is the drive temperature above its mean, or zero. ``external`` (N, L, 6) contains the
    environment wrenches.
    """

    robot: MeasuredRobot
    base: BaseParameters
    q: Array
    v: Array
    a: Array
    warmth: Array | None = None
    external: Array | None = None

    @cached_property
    def _regressor(self) -> Array:
        Y = self.robot.inertial.regressor(self.q, self.v, self.a)
        _check_size(self.robot, Y)
        return Y

    @cached_property
    def Y(self) -> Array:
        """The columns (N, nv, b) of the base parameters."""
        return self._regressor[..., self.base.columns]

    @cached_property
    def known(self) -> Array:
        """The forces (N, nv) of springs, motors and known parameters, minus the environment forces.

        Forces that do not depend on the base parameters, such as unmeasured forces, are computed for the prior robot.
        """
        whole = self.robot.inverse_dynamics(self.q, self.v, self.a, self.external)
        return np.asarray(whole - self.Y @ self.base.values)

    def changed(self, parameters: Array) -> Array:
        """Return the forces (N, nv) of the robot with the parameters ``parameters`` (p,)."""
        moved = self._regressor @ (parameters - self.robot.inertial.values)
        return np.asarray(self.known + self.Y @ self.base.values + moved)

    def load(self, values: Array) -> Array:
        """Return the forces (N, nv) without friction for base parameters (b,), as transmitted by the gears."""
        rubs = frictional(self.robot)
        rubbed = self._regressor @ np.where(rubs & ~self.base.unknown, self.robot.inertial.values, 0.0)
        return np.asarray(self.known - rubbed + self.Y @ np.where(rubs[self.base.columns], 0.0, values))

    def motion(self, values: Array) -> Motion:
        """Return the quantities on which terms depend, for base parameters (b,)."""
        load = self.load(values)
        return Motion(self.v, self.a, load, np.zeros_like(load) if self.warmth is None else self.warmth)


def equations_of(model: Model, data: Measurements, through: Filter, still: float) -> Equations:
    """Return the equations of filtered measurements; see ``identify``.

    The ``model`` is evaluated along the motion of the ``data``. Forces with unknown, discontinuous Coulomb friction
    have zero weight at speeds below the fraction ``still`` of the coordinate's maximum speed.
    """
    robot = model.robot
    tau = data.tau - model.known
    _check_size(robot, tau)
    weights = through.kept(np.ones_like(tau) if data.weights is None else data.weights)
    # Forces with unknown, discontinuous Coulomb friction are excluded near zero speed.
    unknown = dict(zip(robot.inertial.names, model.base.unknown.tolist(), strict=True))
    smooth = {name for joint in robot.joints if joint.smooth for name in joint.velocity_names}
    exact = [unknown.get(f"{name}.coulomb", False) and name not in smooth for name in robot.coordinate_names]
    speed = through(np.abs(model.v))
    weights = np.where((speed < still * speed.max(axis=0, initial=0.0)) & exact, 0.0, weights)
    return Equations(through(model.Y), through(tau), weights, model.base.names, through.after, robot.name)


def _check_size(robot: MeasuredRobot, values: Array) -> None:
    """Raise ModelError if the values are so large that their squares may overflow."""
    largest = float(np.abs(values).max(initial=0.0))
    if not largest < MAX_FORCE:
        fix = "check the units of q, v, a and tau"
        raise ModelError(f"forces or their regressor reach {largest:.3g}", where=robot.name, fix=fix)
