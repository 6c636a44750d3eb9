"""From logs to samples of motions and forces: segments, equal steps, derivatives, delays; ``notes`` say what was done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from torsor.arrays import Array, Flags
from torsor.checks import by_name, number
from torsor.errors import ModelError, describe
from torsor.identification.differentiation import differentiate
from torsor.identification.logs import cutoffs
from torsor.identification.logs.delays import estimate
from torsor.identification.logs.force_model import ForceModel
from torsor.identification.logs.log import Log
from torsor.identification.logs.log_map import ESTIMATED, LogMap
from torsor.identification.logs.sampling import SHORTEST, Sampling, cubic, equal_times, linear, sampling_of
from torsor.robot.robot import Robot

HALVINGS = 8  # cutoffs below that of the spectrum with which the model is tried, each a factor of sqrt(2) lower
LEAST_SAMPLES = 200  # that are needed to compare cutoffs or delays by the model


class Segment(NamedTuple):
    """A run without gaps at equal steps: ``times`` (T,), ``q``, ``v``, ``a``, ``tau`` and ``saturated`` (T, n)."""

    times: Array
    q: Array
    v: Array | None
    a: Array | None
    tau: Array
    saturated: Flags

    @property
    def step(self) -> float:
        """The sampling period, s."""
        return float((self.times[-1] - self.times[0]) / (len(self.times) - 1))


class Samples(NamedTuple):
    """Samples of motions and forces, all segments of all logs; ``weights`` (N, n) are 0 where a drive saturates."""

    q: Array
    v: Array
    a: Array
    tau: Array
    weights: Array | None
    times: Array


class Prepared(NamedTuple):
    """The ``samples`` of logs, their ``segments``, the ``cutoff`` (Hz, None where nothing was differentiated).

    ``delay`` (n,) is what was taken off the times of the forces, s; ``noise`` (n,) that of the positions; ``notes`` say
    what was done.
    """

    samples: Samples
    segments: tuple[Segment, ...]
    cutoff: float | None
    delay: Array
    noise: Array
    notes: tuple[str, ...]


def prepare(robot: Robot, logs: Sequence[Log], given: LogMap) -> Prepared:
    """Return the samples of logs as the map says: segments, equal steps, derivatives, delays.

    Example:
        >>> from torsor.identification.logs.log import of_arrays
        >>> arm, t = torsor.library.two_link(), np.arange(1000) * 1e-3
        >>> q = np.sin(2 * np.pi * np.outer(t, [1.0, 1.5]))
        >>> log = of_arrays("log", t, q, np.zeros_like(q), None, None, arm)
        >>> found = prepare(arm, [log], LogMap({"q": [0, 1]}, cutoff=20.0))
        >>> len(found.samples.q), found.notes
        (900, ())
    """
    notes: list[str] = []
    segments: list[Segment] = []
    for log in logs:
        if len({(each.v is None, each.a is None) for each in logs}) > 1:
            raise ModelError(describe("some logs have velocities and some have not", where=log.source))
        segments += segments_of(robot, log, given, notes)
    if not segments:
        found = f"no run of {SHORTEST} samples without a gap"
        raise ModelError(describe(found, where=logs[0].source, fix="measure longer, or raise gap (s) in the map"))
    model = ForceModel(robot)
    noise = cutoffs.choose([(each.q, each.step) for each in segments])
    cutoff = None
    if segments[0].v is None or segments[0].a is None:
        cutoff = given.cutoff if given.cutoff is not None else _chosen(model, segments, noise, notes)
    delay = np.zeros(robot.nv)
    if given.delay == ESTIMATED:
        longest = quick(max(segments, key=lambda each: len(each.q)))
        found_delay = estimate(model, motion_of(longest, cutoff), longest.tau, longest.times, logs[0].source)
        notes.append(
            f"forces are {1e3 * found_delay.value:.3g} ms late (± {1e3 * found_delay.deviation:.2g} ms): "
            "the shift with which the model explains them best; their times are corrected"
        )
        delay = delay + found_delay.value
    else:
        delay = by_name(given.delay, robot.coordinate_names, 0.0, f"{given.source}: delay")
    parts = [_samples(each, cutoff, delay, given) for each in segments]
    kept = [each for each in parts if len(each.q)]
    if not kept:
        found = f"all samples are within 1 / cutoff = {1 / (cutoff or 1):.3g} s of an end or a gap"
        raise ModelError(describe(found, where=logs[0].source, fix="measure longer, or raise the cutoff"))
    if len(kept) < len(parts):
        notes.append(f"{len(parts) - len(kept)} of {len(parts)} segments are shorter than 2 / cutoff and left out")
    q, v, a, tau, weights, times = (
        np.concatenate([np.asarray(getattr(each, name)) for each in kept]) for name in Samples._fields
    )
    whole = Samples(q, v, a, tau, None if (weights == 1).all() else weights, times)
    return Prepared(whole, tuple(segments), cutoff, delay, noise.noise, tuple(notes))


def segments_of(robot: Robot, log: Log, given: LogMap, notes: list[str]) -> list[Segment]:
    """Return the segments of a log at equal steps."""
    if (log.v is None) and robot.nq != robot.nv:
        fix = "add columns of v and a, where positions are quaternions"
        raise ModelError(describe("no velocities", where=log.source, fix=fix))
    complete = log.complete
    if not complete.all():
        first = log.line(int(np.argmin(complete)))
        count = int(np.count_nonzero(~complete))
        notes.append(f"{log.source}: {count} rows have a cell without a number (the first: {first}): left out")
        log = log.kept(complete)
    if len(log) < SHORTEST:
        found = f"{len(log)} samples"
        raise ModelError(describe(found, where=log.source, allowed=f"{SHORTEST} or more", fix="measure longer"))
    if log.v is not None and log.a is not None:
        return [Segment(log.times, log.q, log.v, log.a, log.tau, log.saturated)]
    sampling = sampling_of(log.times, given.gap)
    parts = sampling.segments(len(log))
    long = [part for part in parts if part.stop - part.start >= SHORTEST]
    _note_sampling(log, sampling, len(parts), len(long), notes)
    return [_regular(log, part, sampling) for part in long]


def _note_sampling(log: Log, sampling: Sampling, count: int, used: int, notes: list[str]) -> None:
    rate = 1 / sampling.step
    if sampling.how == "rounded":
        notes.append(f"{log.source}: stamps are equal steps of {rate:.6g} Hz, rounded: the equal steps are used")
    if sampling.how == "unequal":
        notes.append(
            f"{log.source}: steps differ by up to {100 * sampling.spread:.3g} %: resampled at {rate:.6g} Hz, positions "
            "by cubics, forces linearly"
        )
    if count > 1:
        left = f", {count - used} of them too short to be used" if used < count else ""
        first = log.line(int(sampling.gaps[0]))
        notes.append(f"{log.source}: {count - 1} gaps, the first before {first}: {count} segments{left}")


def _regular(log: Log, part: slice, sampling: Sampling) -> Segment:
    """Return a segment of a log at equal steps."""
    own = log.times[part]
    times = equal_times(own, sampling)
    if sampling.how != "unequal":
        v = None if log.v is None else log.v[part]
        return Segment(times, log.q[part], v, None, log.tau[part], log.saturated[part])
    v = None if log.v is None else cubic(own, log.v[part], times)
    saturated = linear(own, log.saturated[part].astype(float), times) > 0
    return Segment(times, cubic(own, log.q[part], times), v, None, linear(own, log.tau[part], times), saturated)


def _chosen(model: ForceModel, segments: Sequence[Segment], noise: cutoffs.Cutoff, notes: list[str]) -> float:
    """Return the cutoff of the spectrum, or the lower one with which the model explains the forces best."""
    if segments[0].v is not None:
        noise = cutoffs.choose([(np.asarray(each.v), each.step) for each in segments], derivative=1)
    highest = noise.value
    longest = quick(max(segments, key=lambda each: len(each.q)))
    candidates = highest * 2.0 ** (-0.5 * np.arange(HALVINGS + 1))
    candidates = candidates[(candidates >= noise.lowest) & (candidates * longest.step * len(longest.q) > 8)]
    best = highest
    if len(longest.q) >= LEAST_SAMPLES and candidates.size:
        lost = int(np.ceil(1 / (candidates[-1] * longest.step)))
        inside = slice(lost, len(longest.q) - lost)
        scores = []
        for cutoff in candidates:
            motion = [x[inside] for x in motion_of(longest, float(cutoff))]
            thin = model.thinned(len(motion[0]))
            scores.append(model.fit(*(x[thin] for x in motion), longest.tau[inside][thin]).score)
        best = float(candidates[int(np.argmin(scores))])
    how = (
        "of the spectrum" if best == highest else f"explains the forces best; that of the spectrum is {highest:.3g} Hz"
    )
    notes.append(f"cutoff {best:.3g} Hz, which is {how}" if best == highest else f"cutoff {best:.3g} Hz, which {how}")
    return best


def quick(segment: Segment) -> Segment:
    """Return the longest beginning of a segment whose reflection, of 2 (T - 1) samples, has a fast Fourier transform."""
    count = len(segment.q)
    while count > SHORTEST and not _is_smooth(count - 1):
        count -= 1
    return Segment(*(None if x is None else x[:count] for x in segment))


def _is_smooth(count: int) -> bool:
    for factor in (2, 3, 5):
        while count % factor == 0:
            count //= factor
    return count == 1


def motion_of(segment: Segment, cutoff: float | None) -> tuple[Array, Array, Array]:
    """Return q, v and a (T, n) of a segment: as measured, or differentiated with a cutoff."""
    if segment.v is not None and segment.a is not None:
        return segment.q, segment.v, segment.a
    highest = 0.5 / segment.step
    cutoff = number(cutoff, "log", "cutoff (Hz, up to half the sampling rate)", above=0.0, most=highest)
    if segment.v is None:
        return differentiate(segment.times, segment.q, cutoff, where="log")
    v, a, _ = differentiate(segment.times, segment.v, cutoff, where="log")
    q = segment.q if segment.q.shape != v.shape else differentiate(segment.times, segment.q, cutoff, where="log")[0]
    return q, v, a


def _samples(segment: Segment, cutoff: float | None, delay: Array, given: LogMap) -> Samples:
    """Return the samples of a segment: filtered, at the times of the motion, without the ends."""
    q, v, a = motion_of(segment, cutoff)
    tau, step = segment.tau, segment.step
    if given.force_cutoff is not None:
        tau = differentiate(segment.times, tau, given.force_cutoff, where="log: force_cutoff")[0]
    ends = 0 if cutoff is None else int(np.ceil(1 / (cutoff * step) - 1e-9))
    late = int(np.ceil(np.abs(delay).max(initial=0.0) / step - 1e-9))
    first, last = max(ends, late if (delay < 0).any() else 0), max(ends, late if (delay > 0).any() else 0)
    times, full = segment.times, segment.saturated.astype(float)
    if delay.any():
        shifted = [times + each for each in delay]
        tau = np.stack([np.interp(at, times, x) for at, x in zip(shifted, tau.T, strict=True)], axis=1)
        full = np.stack([np.interp(at, times, x) for at, x in zip(shifted, full.T, strict=True)], axis=1)
    kept = slice(first, max(first, len(times) - last), given.every)
    return Samples(q[kept], v[kept], a[kept], tau[kept], np.where(full > 0, 0.0, 1.0)[kept], times[kept])
