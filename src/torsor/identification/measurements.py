"""Measurements: samples of motions and forces."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array, Indices
from torsor.base.checks import indices_of, real_array, several
from torsor.base.errors import ModelError, warn
from torsor.identification.bases import environment_forces, forces_of, wrenches_of
from torsor.identification.closed_robot import ClosedRobot, MeasuredRobot, drives_of, measured_robot, notes_of
from torsor.identification.differentiation import differentiate, motion_of
from torsor.identification.logs.first_look import FirstLook, first_look
from torsor.identification.logs.log import read
from torsor.identification.logs.log_map import LogMap, own_map
from torsor.identification.logs.preparing import prepare
from torsor.identification.logs.signal_checks import check_radians, motionless
from torsor.robot.parallel import ParallelRobot
from torsor.robot.robot import Robot
from torsor.simulation import Trajectory

WHERE = "measurements"  # location in messages


@dataclass(frozen=True, eq=False)
class Measurements:
    """Samples of motions and forces: ``q`` (N, nq), ``v``, ``a``, ``tau`` (N, nv), in SI units and radians.

    Samples may have any order and come from several motions. ``weights`` (N, nv) are relative weights of the forces of
    each coordinate. The default is 1; 0 excludes a force, for example of a saturated drive. ``times`` (N,) are used for
    filters, instruments and figures. ``notes`` document how ``load`` processed a log. ``temperature`` (N,) or (N, nv)
    is the drive temperature, for temperature-dependent friction. ``external`` (N, L, 6) are known environment wrenches
    on the links, as in ``inverse_dynamics``. Leading axes are flattened into samples. Use ``Measurements.of`` if the
    forces of some coordinates were not measured.

    Example:
        >>> robot = torsor.library.two_link()
        >>> q, v, a = np.random.default_rng(0).normal(size=(3, 50, 2))
        >>> len(Measurements(q, v, a, robot.inverse_dynamics(q, v, a)))
        50
    """

    q: Array
    v: Array
    a: Array
    tau: Array
    weights: Array | None = None
    times: Array | None = None
    notes: tuple[str, ...] = ()
    temperature: Array | None = None
    external: Array | None = None

    def __post_init__(self) -> None:
        for name in ("q", "v", "a", "tau"):
            object.__setattr__(self, name, _samples(getattr(self, name), name))
        samples = {name: len(getattr(self, name)) for name in ("q", "v", "a", "tau")}
        if len(set(samples.values())) > 1 or not len(self):
            raise ModelError(f"the numbers of samples are {samples}", where=WHERE, allowed="equal numbers, 1 or more")
        if self.weights is not None:
            weights = real_array(self.weights, WHERE, "weights")
            if weights.ndim > 1:
                weights = weights.reshape(-1, weights.shape[-1])
            try:
                weights = np.array(np.broadcast_to(weights, self.tau.shape))
            except ValueError:
                message, allowed = f"have shape {weights.shape}", f"the shape of tau, {self.tau.shape}"
                raise ModelError(message, argument="weights", where=WHERE, allowed=allowed) from None
            if not np.isfinite(weights).all() or (weights < 0).any():
                raise ModelError("are negative or not finite", argument="weights", where=WHERE, allowed="0 or more")
            object.__setattr__(self, "weights", weights)
        if self.times is not None:
            times = real_array(self.times, WHERE, "times").ravel()
            if len(times) != len(self):
                message = f"there are {len(times)} times"
                raise ModelError(message, where=WHERE, allowed=f"one for each of {len(self)} samples")
            if not np.isfinite(times).all():
                k = int(np.argmin(np.isfinite(times)))
                fix = "remove these samples, or omit `times`"
                message = f"the time of sample {k} is {times[k]}"
                raise ModelError(message, where=WHERE, allowed="finite numbers, in s", fix=fix)
            object.__setattr__(self, "times", times)
        for name, check in (("temperature", _temperature), ("external", _external)):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, check(getattr(self, name), *self.tau.shape))

    def __len__(self) -> int:
        return len(self.tau)

    def part(self, own: slice | Indices) -> Measurements:
        """Return the measurements of selected samples.

        Example:
            >>> len(Measurements(*np.zeros((4, 9, 2))).part(slice(0, 5)))
            5
        """
        cut: dict[str, Any] = {name: x[own] for name, x in vars(self).items() if isinstance(x, np.ndarray)}
        return replace(self, **cut)

    @classmethod
    def of(
        cls,
        robot: MeasuredRobot,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        tau: ArrayLike | None = None,
        *,
        external: ArrayLike | Mapping[str, ArrayLike] | None = None,
        measured: Sequence[str] | None = None,
        times: ArrayLike | None = None,
    ) -> Measurements:
        """Return samples of a robot with environment wrenches or with partially measured forces.

        ``external`` contains wrenches (N, L, 6) as in ``inverse_dynamics``, or {link or frame: (N, 6)} with the moment
        (N m) and force (N) at the origin, in local axes. ``measured`` names the coordinates whose forces are measured
        in ``tau`` (N, nv); other values are ignored and may be NaN. The six coordinates of a floating base have no
        drive. Their forces are known to be zero and may be omitted from tau (N, nv - 6). Without tau, only these forces
        are known, which is sufficient for all base parameters of the links (Ayusawa, Venture and Nakamura 2014).
        For ``times`` see the class. Leading axes of all arrays, such as runs, are flattened into samples.

        Example:
            >>> robot, rng = torsor.library.quadruped(), np.random.default_rng(0)
            >>> q = robot.integrate(robot.neutral(), rng.normal(size=(9, 18)))
            >>> v, a = rng.normal(size=(2, 9, 18))
            >>> data = Measurements.of(robot, q, v, a, external={"fl_foot": rng.normal(size=(9, 6))})
            >>> data.weights[0].tolist() == [1.0] * 6 + [0.0] * 12
            True
        """
        if not isinstance(robot, MeasuredRobot):
            raise ModelError(argument="robot", value=robot, where=WHERE, allowed="a Robot")
        positions = _samples(q, "q")
        at = None if measured is None else indices_of(measured, robot.coordinate_names, f"{robot.name}: measured")
        forces, weights = forces_of(robot, len(positions), tau, at)
        sample_times = None if times is None else real_array(times, WHERE, "times")
        known = None if (weights > 0).all() else weights
        made = cls(positions, _samples(v, "v"), _samples(a, "a"), forces, known, sample_times)
        measurements_of(robot, made)
        return made if external is None else replace(made, external=wrenches_of(robot, positions, external))

    @classmethod
    def from_trajectory(cls, trajectory: Trajectory) -> Measurements:
        """Return the samples of all rollouts of a simulation, including its external wrenches.

        Example:
            >>> fall = torsor.simulate(torsor.library.planar_chain(1), duration=0.5)
            >>> len(Measurements.from_trajectory(fall))
            501
        """
        times = np.broadcast_to(trajectory.times, trajectory.tau.shape[:-1]).ravel()
        external = trajectory.external if np.any(trajectory.external) else None
        return cls(trajectory.q, trajectory.v, trajectory.a, trajectory.tau, times=times, external=external)

    @classmethod
    def load(
        cls,
        path: str | Path | Sequence[str | Path],
        robot: MeasuredRobot | ParallelRobot,
        columns: Mapping[str, Any] | LogMap | str | Path | None = None,
        *,
        units: Mapping[str, Any] | None = None,
        delimiter: str | None = None,
        rate: float | None = None,
        cutoff: float | None = None,
    ) -> Measurements:
        """Return the samples of one or several laboratory logs with the same columns.

        ``columns`` maps time, q, and tau or current to column headers or numbers. It may also be a ``LogMap`` or its
        path, which defines units, gears, delays and more. Without it, Torsor's headers are expected: 'time', 'q NAME',
        'tau NAME', with units in brackets. ``units``, ``delimiter``, ``rate`` (Hz) and ``cutoff`` (Hz) replace settings
        of the map.

        Missing v and a are computed from the positions by ``differentiate``. If v is logged, a is computed from v. By
        default, the cutoff is selected from the spectrum and the model fit. Unequal steps are resampled, and segments
        between gaps are differentiated separately. ``notes`` document the processing. Missing numbers, decreasing times
        and rows with different lengths raise ModelError with the line number. Joints that never move and constant
        forces cause warnings. For a robot with loops or a parallel robot, the columns are those of the drives.

        Example:
            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     path = folder + "/log.csv"
            ...     np.savetxt(path, np.random.default_rng(0).normal(size=(9, 8)), delimiter=",")
            ...     columns = {"q": [0, 1], "v": [2, 3], "a": [4, 5], "tau": [6, 7]}
            ...     len(Measurements.load(path, torsor.library.two_link(), columns, rate=1000.0))
            9
        """
        drives = measured_robot(robot, where=str(path))
        paths = [Path(file) for file in several(path)]
        if not paths:
            raise ModelError("there is no log", where=drives.name, allowed="one file or more")
        log_map = own_map(paths[0], drives) if columns is None else columns
        settings = LogMap.of(log_map, units=units, delimiter=delimiter, rate=rate, cutoff=cutoff)
        logs = [read(each, drives, settings) for each in paths]
        for log in logs:
            for each in motionless(drives, log):
                warn(str(each))
        prepared = prepare(drives, logs, settings)
        samples = prepared.samples
        tau = samples.tau - environment_forces(drives, samples.q, samples.external)
        return cls(**samples._replace(tau=tau)._asdict(), notes=(*prepared.notes, *notes_of(drives)))

    def measured(self, robot: MeasuredRobot | ParallelRobot) -> list[str]:
        """Return the coordinates of a robot with known forces, for ``robot.inertial.base(measured=...)``.

        For robots with closed loops and parallel robots, these are the drives.

        Example:
            >>> robot = torsor.library.quadruped()
            >>> q, rest = np.tile(robot.neutral(), (9, 1)), np.zeros((9, 18))
            >>> data = Measurements.of(robot, q, rest, rest, rest, measured=["fl_knee"])
            >>> data.measured(robot)[5:], len(robot.inertial.base(measured=data.measured(robot)))
            (['root/vz', 'fl_knee'], 97)
        """
        shown = measured_robot(robot, where=WHERE)
        known = drives_of(shown, "weights", np.ones_like(self.tau) if self.weights is None else self.weights)
        if known.shape[1] != shown.nv:
            raise ModelError(f"has {known.shape[1]} columns", argument="tau", where=shown.name, allowed=str(shown.nv))
        return [name for name, own in zip(shown.coordinate_names, known.T, strict=True) if own.any()]

    def check(self, robot: Robot | ParallelRobot) -> FirstLook:
        """Return a quality report on the samples: suspicious signals and identifiable parameters.

        The samples must have equally spaced ``times``. ``first_look`` checks a raw log and detects more errors.

        Example:
            >>> robot, t = torsor.library.planar_chain(1), np.arange(2000) * 1e-3
            >>> q = np.sin(2 * np.pi * t)[:, None]
            >>> data = Measurements.from_positions(t, q, 0 * q, cutoff=20.0)
            >>> data.check(robot).kinds
            ('constant',)
        """
        if self.times is None:
            message = "the samples have no times"
            raise ModelError(message, where=WHERE, fix="pass `times`, or check the log with first_look")
        drives = measured_robot(robot, self)
        return first_look(drives, measurements_of(drives, self))

    @classmethod
    def from_positions(
        cls,
        t: ArrayLike,
        q: ArrayLike,
        tau: ArrayLike,
        cutoff: float,
        *,
        periodic: bool = False,
        trim: bool = True,
        robot: Robot | None = None,
    ) -> Measurements:
        """Return samples from positions q (N, n) and forces tau (N, n) at equally spaced times t (N,), in s.

        Velocities and accelerations are computed by ``differentiate``, a zero-phase filter. Choose a ``cutoff`` (Hz) of
        five to ten times the highest frequency of the motion. ``trim`` removes the samples within 1 / cutoff of the
        ends, where the derivatives are inaccurate, unless the motion is ``periodic``. Forces are not filtered, which
        preserves friction discontinuities; their noise averages out. If positions contain quaternions, as for a
        floating base, pass the ``robot``. The v and a of a floating base are in its local axes.

        Example:
            >>> t = np.arange(1000) * 2e-3
            >>> q = np.sin(2 * np.pi * t)[:, None]
            >>> data = Measurements.from_positions(t, q, np.zeros_like(q), cutoff=20.0)
            >>> len(data), bool(np.allclose(data.a, -(2 * np.pi) ** 2 * data.q, atol=1e-2))
            (950, True)
        """
        where = "Measurements.from_positions"
        forces = real_array(tau, where, "tau")
        if robot is None:
            filtered, v, a = differentiate(t, q, cutoff, periodic=periodic, where=where)
        else:
            filtered, v, a = motion_of(robot, t, q, cutoff, periodic=periodic, where=where)
        if forces.shape != v.shape:
            message = f"velocities have shape {v.shape} and tau {forces.shape}"
            raise ModelError(
                message, where=where, allowed="the same", fix="pass `robot` if positions contain quaternions"
            )
        times = real_array(t, where, "t")
        ends = 0 if periodic or not trim else int(np.ceil(1 / (cutoff * (times[1] - times[0])) - 1e-9))
        if 2 * ends >= len(times):
            fix = "measure longer, or raise the cutoff"
            raise ModelError(f"all {len(times)} samples are within 1 / cutoff of an end", where=where, fix=fix)
        kept = slice(ends, len(times) - ends)
        return cls(filtered[kept], v[kept], a[kept], forces[kept], times=times[kept])


def _samples(value: Any, name: str) -> Array:
    """Return finite samples (N, n) from (..., n)."""
    array = real_array(value, WHERE, name)
    if array.ndim < 2:
        raise ModelError(f"has shape {array.shape}", argument=name, where=WHERE, allowed="(samples, coordinates)")
    array = array.reshape(math.prod(array.shape[:-1]), array.shape[-1])
    if not np.isfinite(array).all():
        bad = int(np.count_nonzero(~np.isfinite(array).all(axis=1)))
        fix = "remove these samples, or replace the forces with any numbers of weight 0"
        raise ModelError(f"has numbers that are not finite in {bad} samples", argument=name, where=WHERE, fix=fix)
    return array


def _external(value: Any, count: int, drives: int) -> Array:
    """Return wrenches (N, L, 6) from (..., L, 6); the number of links is checked with the robot."""
    if isinstance(value, Mapping):
        fix = "use Measurements.of(robot, q, v, a, tau, external={...})"
        raise ModelError("external is a table of named wrenches", where=WHERE, allowed="(samples, links, 6)", fix=fix)
    array = real_array(value, WHERE, "external")
    if array.ndim < 3 or array.shape[-1] != 6 or math.prod(array.shape[:-2]) != count:
        raise ModelError(f"external has shape {array.shape}", where=WHERE, allowed=f"({count} samples, links, 6)")
    return array.reshape(count, *array.shape[-2:])


def _temperature(value: Any, count: int, drives: int) -> Array:
    """Return temperatures (N,) or (N, nv)."""
    array = real_array(value, WHERE, "temperature")
    array = array.reshape(-1) if array.size == count or array.ndim < 2 else array.reshape(-1, array.shape[-1])
    if array.shape not in ((count,), (count, drives)) or not np.isfinite(array).all():
        message = f"temperature has shape {array.shape}" if np.isfinite(array).all() else "temperature is not finite"
        raise ModelError(message, where=WHERE, allowed=f"({count},) or ({count}, {drives}), finite")
    return array


def measurements_of(robot: MeasuredRobot, data: Any) -> Measurements:
    """Return measurements of a robot from ``Measurements``, a ``Trajectory`` or a tuple (q, v, a, tau)."""
    if isinstance(data, Trajectory):
        data = Measurements.from_trajectory(data)
    elif isinstance(data, (tuple, list)) and len(data) == 4:
        data = Measurements(*data)
    if not isinstance(data, Measurements):
        allowed = "Measurements, a Trajectory, or (q, v, a, tau)"
        raise ModelError(f"data is of type {type(data).__name__}", where=robot.name, allowed=allowed)
    samples: Measurements = data
    if isinstance(robot, ClosedRobot):
        samples = replace(data, **robot.of_drives(data))
    sizes = {"q": robot.nq, "v": robot.nv, "a": robot.nv, "tau": robot.nv}
    for name, size in sizes.items():
        count = getattr(samples, name).shape[1]
        if count != size:
            raise ModelError(f"has {count} columns", argument=name, where=robot.name, allowed=str(size))
    if samples.external is not None:
        wrenches_of(robot, samples.q, samples.external)
    check_radians(robot, samples.q, samples.v)
    if isinstance(robot, ClosedRobot):
        robot.check_closure(samples.q, data.q, samples.times)
    return samples
