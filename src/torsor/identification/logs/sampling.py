"""Sampling of logs: segments between gaps, and equal steps within each segment.

Time stamps that are rounded values of equally spaced times are replaced by these times. Other unequal steps are
resampled: positions and rates by the cubic through the four nearest samples, and forces by linear interpolation, which
does not overshoot where friction jumps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Array, Flags
from torsor.base.checks import number
from torsor.base.errors import ModelError
from torsor.identification.closed_robot import MeasuredRobot
from torsor.identification.differentiation import continuous, differentiate, motion_of
from torsor.identification.logs.log import Log
from torsor.identification.logs.log_map import LogMap

GAP_STEPS = 5.0  # median steps beyond which a step is a gap
STEP_TOLERANCE = 1e-3  # step fraction below which deviations of steps are ignored
MIN_SEGMENT_SAMPLES = 8  # minimum number of samples per segment, required by the filter


class Sampling(NamedTuple):
    """The sampling of a log: ``step`` (s), ``gaps`` (k,) (first samples of segments) and ``how``.

    ``how`` is "equal", "rounded" (equal steps with rounded stamps) or "unequal". ``step`` is the mean of equal steps,
    otherwise the median. ``spread`` is the largest deviation of a step within a segment, as a fraction of the median.
    """

    step: float
    gaps: NDArray[np.intp]
    how: str
    spread: float

    def segments(self, count: int) -> list[slice]:
        """Return the rows of each segment of a log of ``count`` rows."""
        return [slice(first, last) for first, last in pairwise([0, *self.gaps.tolist(), count])]


def sampling_of(times: Array, gap: float | None = None) -> Sampling:
    """Return the sampling of times (N,); steps that are negative or longer than ``gap`` (s) separate segments."""
    steps = np.diff(times)
    forward = steps[steps > 0]
    step = float(np.median(forward)) if forward.size else 0.0
    longest = GAP_STEPS * step if gap is None else gap
    whole = Sampling(step, np.flatnonzero((steps > longest) | (steps <= 0)) + 1, "equal", 0.0)
    parts = [times[part] for part in whole.segments(len(times))]
    inside = np.concatenate([np.diff(part) for part in parts]) if parts else steps
    if not inside.size or not step:
        return whole
    mean = float(inside.mean())
    spread = float(np.abs(inside / step - 1).max())
    if np.abs(inside / mean - 1).max() <= STEP_TOLERANCE:
        return whole._replace(step=mean, spread=spread)
    long = [part for part in parts if len(part) >= MIN_SEGMENT_SAMPLES]
    if long and max(_deviation(part) for part in long) <= 1.01 * _resolution(times):
        # Steps of rounded time stamps scatter about the true step, so their mean is more accurate than their median.
        return whole._replace(step=mean, how="rounded", spread=spread)
    return whole._replace(how="unequal", spread=spread)


def equal_times(times: Array, sampling: Sampling) -> Array:
    """Return equally spaced times for a segment of times (N,): N for rounded stamps, otherwise all that fit inside."""
    if sampling.how == "unequal":
        count = int(np.floor((times[-1] - times[0]) / sampling.step + 1e-6)) + 1
        return np.asarray(times[0] + sampling.step * np.arange(count))
    k = np.arange(len(times))
    slope, start = np.polyfit(k, times - times[0], 1) if len(times) > 2 else (sampling.step, 0.0)
    return np.asarray(times[0] + start + slope * k)


def cubic(times: Array, values: Array, wanted: Array) -> Array:
    """Return values (T, n) at ``wanted`` times (T,): by the cubic through the four nearest samples (N, n), N >= 4."""
    first = np.clip(np.searchsorted(times, wanted, side="right") - 2, 0, len(times) - 4)
    nodes = times[first[:, None] + np.arange(4)]
    interpolated = np.zeros((len(wanted), values.shape[1]))
    for k in range(4):
        others = [m for m in range(4) if m != k]
        weight = np.prod([(wanted - nodes[:, m]) / (nodes[:, k] - nodes[:, m]) for m in others], axis=0)
        interpolated += weight[:, None] * values[first + k]
    return interpolated


def linear(times: Array, values: Array, wanted: Array, delay: Array | float = 0.0) -> Array:
    """Return values (T, n) at ``wanted`` times (T,) plus ``delay`` (n,), by linear interpolation of samples (N, n)."""
    columns = zip(np.broadcast_to(delay, values.shape[1:]), values.T, strict=True)
    return np.stack([np.interp(wanted + late, times, column) for late, column in columns], axis=1)


def _deviation(times: Array) -> float:
    """Return the largest deviation (s) of times from equal steps."""
    k = np.arange(len(times))
    return float(np.abs(times - np.polyval(np.polyfit(k, times, 1), k)).max())


def _resolution(times: Array) -> float:
    """Return half of the smallest decimal step (s) of which all times are multiples."""
    for digits in range(9):
        if np.abs(times * 10**digits - np.round(times * 10**digits)).max() < 1e-3:
            return 0.5 * 10.0**-digits
    return 0.0


class Segment(NamedTuple):
    """A part of a log with equal steps and without gaps: ``times`` (T,), ``q``, and ``v``, ``a``, ``tau`` (T, n).

    If v and a were both measured, the whole log is one segment at its own times. ``saturated`` (T, n) is True where
    the force is saturated or unmeasured. The drive ``temperature``, (T, 1) or (T, n), and the environment wrenches
    ``external`` (T, L, 6) are None unless measured. ``robot`` is set only if q contains quaternions and v or a was not
    measured.
    """

    times: Array
    q: Array
    v: Array | None
    a: Array | None
    tau: Array
    saturated: Flags
    temperature: Array | None = None
    external: Array | None = None
    robot: MeasuredRobot | None = None

    @property
    def step(self) -> float:
        """The sampling period, in s."""
        return float((self.times[-1] - self.times[0]) / max(len(self.times) - 1, 1))

    @property
    def all_measured(self) -> bool:
        """Whether the forces of all coordinates were measured at some time."""
        return not bool(self.saturated.all(axis=0).any())

    def until(self, count: int) -> Segment:
        """Return the first ``count`` samples."""
        cut: Any = (x[:count] if isinstance(x, np.ndarray) else x for x in self)
        return Segment(*cut)

    def motion(self, cutoff: float | None) -> tuple[Array, Array, Array]:
        """Return q, v and a (T, n): as measured, or filtered at ``cutoff`` (Hz) and differentiated."""
        if self.v is not None and self.a is not None:
            return self.q, self.v, self.a
        cutoff = number(cutoff, "log", "cutoff (Hz, up to half the sampling rate)", above=0.0, most=0.5 / self.step)
        if self.v is None and self.robot is not None:
            return motion_of(self.robot, self.times, self.q, cutoff, where="log")
        if self.v is None:
            return differentiate(self.times, self.q, cutoff, where="log")
        v, a, _ = differentiate(self.times, self.v, cutoff, where="log")
        # Quaternions are not filtered, because the mean of quaternions is not a unit quaternion.
        q = self.q if self.q.shape != v.shape else differentiate(self.times, self.q, cutoff, where="log")[0]
        return q, v, a


def segments_of(robot: MeasuredRobot, log: Log, given: LogMap, notes: list[str]) -> list[Segment]:
    """Return the segments of a log with equal steps and with forces filtered as in the map; append to ``notes``."""
    complete = log.complete
    if not complete.all():
        first, count = log.line(int(np.argmin(complete))), int(np.count_nonzero(~complete))
        notes.append(f"{log.source}: {count} rows lack a signal (first: {first}) and are omitted")
        log = log.kept(complete)
    log = replace(log, q=continuous(robot, log.q))
    if log.v is not None and log.a is not None:
        more = log.temperature, log.external
        whole = Segment(log.times, log.q, log.v, log.a, log.tau, log.saturated, *more)
        return [_filtered(whole, given)] if len(log) else []
    if len(log) < MIN_SEGMENT_SAMPLES:
        message, allowed = f"the log has {len(log)} samples", f"{MIN_SEGMENT_SAMPLES} or more"
        raise ModelError(message, where=log.source, allowed=allowed, fix="measure longer")
    sampling = sampling_of(log.times, given.gap)
    if not sampling.step > 0:
        message, fix = "the times never increase", "correct the time column, or set the rate (Hz) in the map"
        raise ModelError(message, where=log.source, fix=fix)
    parts = sampling.segments(len(log))
    long = [part for part in parts if part.stop - part.start >= MIN_SEGMENT_SAMPLES]
    rate = 1 / sampling.step
    if sampling.how == "rounded":
        notes.append(f"{log.source}: time stamps are rounded equal steps of {rate:.6g} Hz; equal steps are used")
    if sampling.how == "unequal":
        text = f"{log.source}: steps differ by up to {100 * sampling.spread:.3g} %; resampled at {rate:.6g} Hz"
        notes.append(f"{text}, positions by cubic and forces by linear interpolation")
    if len(parts) > 1:
        left = f", {len(parts) - len(long)} of them too short" if len(long) < len(parts) else ""
        first = log.line(int(sampling.gaps[0]))
        notes.append(f"{log.source}: {len(parts) - 1} gaps, the first before {first}: {len(parts)} segments{left}")
    turning = robot if robot.nq != robot.nv else None
    return [_filtered(_regular(log, part, sampling), given)._replace(robot=turning) for part in long]


def longest_of(segments: Sequence[Segment]) -> Segment:
    """Return the longest segment, shortened slightly for a fast Fourier transform.

    Its reflection has 2 (T - 1) samples, a number with no prime factors other than 2, 3 and 5.
    """
    longest = max(segments, key=lambda each: len(each.q))
    count = len(longest.q)
    while count > MIN_SEGMENT_SAMPLES and 60**20 % (count - 1):  # has factors other than 2, 3 and 5
        count -= 1
    return longest.until(count)


def _regular(log: Log, part: slice, sampling: Sampling) -> Segment:
    """Return a segment of a log at equal steps."""
    own, loads = log.times[part], None if log.external is None else log.external[part]
    times = equal_times(own, sampling)
    if sampling.how != "unequal":
        v, warm = (None if x is None else x[part] for x in (log.v, log.temperature))
        return Segment(times, log.q[part], v, None, log.tau[part], log.saturated[part], warm, loads)
    v = None if log.v is None else cubic(own, log.v[part], times)
    warm = None if log.temperature is None else linear(own, log.temperature[part], times)
    saturated = linear(own, log.saturated[part].astype(float), times) > 0
    if loads is not None:
        loads = linear(own, loads.reshape(len(own), -1), times).reshape(len(times), *loads.shape[1:])
    q, tau = cubic(own, log.q[part], times), linear(own, log.tau[part], times)
    return Segment(times, q, v, None, tau, saturated, warm, loads)


def _filtered(segment: Segment, given: LogMap) -> Segment:
    """Return a segment with filtered forces, if the map has a cutoff for them."""
    if given.force_cutoff is None:
        return segment
    where = f"{given.source}: force_cutoff"
    return segment._replace(tau=differentiate(segment.times, segment.tau, given.force_cutoff, where=where)[0])
