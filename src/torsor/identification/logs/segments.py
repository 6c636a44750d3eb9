"""Segments of a log: runs without gaps, at equal steps, that are differentiated alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from torsor.base.arrays import Array, Flags
from torsor.base.checks import number
from torsor.base.errors import ModelError, describe
from torsor.identification.differentiation import differentiate
from torsor.identification.logs.log import Log
from torsor.identification.logs.log_map import LogMap
from torsor.identification.logs.sampling import SHORTEST, Sampling, cubic, equal_times, linear, sampling_of
from torsor.identification.motion_rates import continuous, motion_of
from torsor.robot.robot import Robot


class Segment(NamedTuple):
    """A run without gaps at equal steps: ``times`` (T,), ``q``, ``v``, ``a``, ``tau`` and ``saturated`` (T, n).

    ``temperature`` (T, 1) or (T, n) is that of the drives and ``external`` (T, L, 6) are wrenches of the environment,
    if they were measured. Positions of a ``robot``, if it is given, have quaternions.
    """

    times: Array
    q: Array
    v: Array | None
    a: Array | None
    tau: Array
    saturated: Flags
    temperature: Array | None = None
    external: Array | None = None
    robot: Robot | None = None

    @property
    def step(self) -> float:
        """The sampling period, s."""
        return float((self.times[-1] - self.times[0]) / max(len(self.times) - 1, 1))

    @property
    def all_measured(self) -> bool:
        """Whether the forces of all coordinates were measured, at least at times."""
        return not bool(self.saturated.all(axis=0).any())

    def until(self, count: int) -> Segment:
        """Return the first ``count`` samples."""
        names = ("times", "q", "v", "a", "tau", "saturated", "temperature", "external")
        cut: dict[str, Any] = {name: None if (x := getattr(self, name)) is None else x[:count] for name in names}
        return self._replace(**cut)

    def motion(self, cutoff: float | None) -> tuple[Array, Array, Array]:
        """Return q, v and a (T, n): as measured, or differentiated with a cutoff (Hz)."""
        if self.v is not None and self.a is not None:
            return self.q, self.v, self.a
        cutoff = number(cutoff, "log", "cutoff (Hz, up to half the sampling rate)", above=0.0, most=0.5 / self.step)
        if self.v is None and self.robot is not None:
            return motion_of(self.robot, self.times, self.q, cutoff, where="log")
        if self.v is None:
            return differentiate(self.times, self.q, cutoff, where="log")
        v, a, _ = differentiate(self.times, self.v, cutoff, where="log")
        # Quaternions are not filtered: their mean is none.
        q = self.q if self.q.shape != v.shape else differentiate(self.times, self.q, cutoff, where="log")[0]
        return q, v, a


def segments_of(robot: Robot, log: Log, given: LogMap, notes: list[str]) -> list[Segment]:
    """Return the segments of a log at equal steps, with filtered forces where the map says so; add ``notes``.

    Example:
        >>> from torsor.identification.logs.log import of_arrays
        >>> arm, notes = torsor.library.planar_chain(1), list[str]()
        >>> t = np.concatenate([np.arange(100), 200 + np.arange(100)]) * 1e-2
        >>> log = of_arrays("log", t, np.sin(t)[:, None], np.cos(t)[:, None], None, None, arm)
        >>> [len(each.q) for each in segments_of(arm, log, LogMap({}), notes)], notes
        ([100, 100], ['log: 1 gaps, the first before sample 100: 2 segments'])
    """
    complete = log.complete
    if not complete.all():
        first, count = log.line(int(np.argmin(complete))), int(np.count_nonzero(~complete))
        notes.append(f"{log.source}: {count} rows lack a signal (the first: {first}): left out")
        log = log.kept(complete)
    log = replace(log, q=continuous(robot, log.q))
    if log.v is not None and log.a is not None:
        more = log.temperature, log.external
        whole = Segment(log.times, log.q, log.v, log.a, log.tau, log.saturated, *more)
        return [_filtered(whole, given)] if len(log) else []
    if len(log) < SHORTEST:
        found, allowed = f"{len(log)} samples", f"{SHORTEST} or more"
        raise ModelError(describe(found, where=log.source, allowed=allowed, fix="measure longer"))
    sampling = sampling_of(log.times, given.gap)
    if not sampling.step > 0:
        found, fix = "the times never increase", "correct the column of times, or give the rate (Hz) in the map"
        raise ModelError(describe(found, where=log.source, fix=fix))
    parts = sampling.segments(len(log))
    long = [part for part in parts if part.stop - part.start >= SHORTEST]
    _note(log, sampling, len(parts), len(long), notes)
    turning = robot if robot.nq != robot.nv else None
    return [_filtered(_regular(log, part, sampling), given)._replace(robot=turning) for part in long]


def longest_of(segments: Sequence[Segment]) -> Segment:
    """Return the longest segment, without the few last samples that would make its Fourier transform slow.

    Its reflection has 2 (T - 1) samples, a number that should have no factors but 2, 3 and 5.
    """
    longest = max(segments, key=lambda each: len(each.q))
    count = len(longest.q)
    while count > SHORTEST and not _is_smooth(count - 1):
        count -= 1
    return longest.until(count)


def _is_smooth(count: int) -> bool:
    for factor in (2, 3, 5):
        while count % factor == 0:
            count //= factor
    return count == 1


def _note(log: Log, sampling: Sampling, count: int, used: int, notes: list[str]) -> None:
    rate = 1 / sampling.step
    if sampling.how == "rounded":
        notes.append(f"{log.source}: stamps are equal steps of {rate:.6g} Hz, rounded: the equal steps are used")
    if sampling.how == "unequal":
        spread = 100 * sampling.spread
        text = f"{log.source}: steps differ by up to {spread:.3g} %: resampled at {rate:.6g} Hz, positions by cubics, "
        notes.append(text + "forces linearly")
    if count > 1:
        left = f", {count - used} of them too short to be used" if used < count else ""
        first = log.line(int(sampling.gaps[0]))
        notes.append(f"{log.source}: {count - 1} gaps, the first before {first}: {count} segments{left}")


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
    """Return a segment with filtered forces, where the map has a cutoff for them."""
    if given.force_cutoff is None:
        return segment
    where = f"{given.source}: force_cutoff"
    return segment._replace(tau=differentiate(segment.times, segment.tau, given.force_cutoff, where=where)[0])
