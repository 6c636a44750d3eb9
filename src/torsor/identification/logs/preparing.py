"""From logs to samples of motions and forces: segments, derivatives, delays; notes say what was done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import by_name
from torsor.base.errors import ModelError, describe
from torsor.identification.closed_robot import ClosedRobot
from torsor.identification.logs import cutoffs
from torsor.identification.logs.delays import estimate
from torsor.identification.logs.force_model import ForceModel
from torsor.identification.logs.log import Log
from torsor.identification.logs.log_map import ESTIMATED, LogMap
from torsor.identification.logs.sampling import SHORTEST
from torsor.identification.logs.segments import Segment, longest_of, segments_of
from torsor.robot.robot import Robot

ALIKE = 0.01  # of the mean of log(variance left): cutoffs that differ by less explain the forces alike
HALVINGS = 8  # cutoffs below that of the spectrum with which the model is tried, each a factor of sqrt(2) lower
LEAST_SAMPLES = 200  # that are needed to compare cutoffs by the model


class Samples(NamedTuple):
    """Samples of motions and forces, all segments of all logs; ``weights`` (N, n) are 0 where a drive saturates.

    ``temperature`` (N, 1) or (N, n) is that of the drives, if it was measured. With wrenches ``external`` (N, L, 6),
    tau is all that acts: tau + J^T w.
    """

    q: Array
    v: Array
    a: Array
    tau: Array
    weights: Array | None
    times: Array
    temperature: Array | None = None
    external: Array | None = None

    def every(self, step: int) -> Samples:
        """Return every so many samples."""
        cut: dict[str, Any] = {name: None if x is None else x[::step] for name, x in self._asdict().items()}
        return Samples(**cut)


class Prepared(NamedTuple):
    """The ``samples`` of logs, their ``segments``, the ``cutoff`` (Hz, None where nothing was differentiated).

    ``delay`` (n,) is what was taken off the times of the forces, s; ``notes`` say what was done.
    """

    samples: Samples
    segments: tuple[Segment, ...]
    cutoff: float | None
    delay: Array
    notes: tuple[str, ...]


def prepare(robot: Robot, logs: Sequence[Log], given: LogMap) -> Prepared:
    """Return the samples of logs as the map says: segments, equal steps, derivatives, delays.

    Example:
        >>> from torsor.identification.logs.log import of_arrays
        >>> arm, t = torsor.library.two_link(), np.arange(1000) * 1e-3
        >>> q = np.sin(2 * np.pi * np.outer(t, [1.0, 1.5]))
        >>> log = of_arrays("log", t, q, np.zeros_like(q), None, None, arm)
        >>> found = prepare(arm, [log], LogMap({"q": [0, 1]}, cutoff=20.0))
        >>> len(found.samples.q), found.notes[0][:33]
        (900, '100 of 1000 samples are within 1 ')
    """
    notes: list[str] = []
    source = logs[0].source
    if len({(each.v is None, each.a is None) for each in logs}) > 1:
        raise ModelError(describe("some logs have velocities and some have not", where=source))
    _check_temperatures(logs)
    for log in logs:
        _check_passive(robot, log)
    segments = [each for log in logs for each in segments_of(robot, log, given, notes)]
    if not segments:
        found = f"no run of {SHORTEST} samples without a gap"
        raise ModelError(describe(found, where=source, fix="measure longer, or raise gap (s) in the map"))
    cutoff = None
    if segments[0].v is None or segments[0].a is None:
        cutoff = given.cutoff if given.cutoff is not None else chosen_cutoff(robot, segments, notes)
    delay = _delay(robot, segments, cutoff, given, notes, source)
    parts = [_samples(each, cutoff, delay, given.every) for each in segments]
    kept = [each for each in parts if len(each.q)]
    if not kept:
        found = f"all samples are within 1 / cutoff = {1 / (cutoff or 1):.3g} s of an end or a gap"
        raise ModelError(describe(found, where=source, fix="measure longer, or raise the cutoff"))
    if cutoff is not None:
        count = sum(len(each.q) for each in segments)
        ends = sum(min(len(each.q), 2 * _ends(each, cutoff)) for each in segments)
        text = f"{ends} of {count} samples are within 1 / cutoff = {1 / cutoff:.3g} s of an end or a gap, where "
        notes.append(f"{text}accelerations are poor, and left out")
    if len(kept) < len(parts):
        notes.append(f"{len(parts) - len(kept)} of {len(parts)} segments are shorter than 2 / cutoff and left out")
    q, v, a, tau, weights, times = (
        np.concatenate([np.asarray(getattr(each, name)) for each in kept]) for name in Samples._fields[:6]
    )
    warm = [each.temperature for each in kept if each.temperature is not None]
    more = np.concatenate(warm) if warm else None, _wrenches(kept)
    whole = Samples(q, v, a, tau, None if (weights == 1).all() else weights, times, *more)
    return Prepared(whole, tuple(segments), cutoff, delay, tuple(notes))


def chosen_cutoff(robot: Robot, segments: Sequence[Segment], notes: list[str]) -> float:
    """Return the cutoff (Hz) of the spectrum, or the lower one with which the model explains the forces best.

    The spectrum tells motion from noise, but not the motion of a rigid robot from vibrations of its gears, which the
    model does not explain. So cutoffs down to the lowest that keeps the velocities are compared by the part of the
    forces that the model leaves, whatever its parameters are; of those alike, the highest has the least bias. Logs
    without some of the forces have the cutoff of the spectrum.

    Example:
        >>> arm, t = torsor.library.planar_chain(1), np.arange(4000) * 1e-3
        >>> q = np.sin(2 * np.pi * t)[:, None] + 1e-5 * np.random.default_rng(0).normal(size=(4000, 1))
        >>> run = Segment(t, q, None, None, q, np.zeros_like(q, dtype=bool))
        >>> 1.0 < chosen_cutoff(arm, [run], []) < 10.0
        True
    """
    rates = segments[0].v is not None
    signals = [(each.q if each.v is None else each.v, each.step) for each in segments]
    found = cutoffs.choose(signals, derivative=1 if rates else 2)
    longest = longest_of(segments)
    candidates = found.value * 2.0 ** (-0.5 * np.arange(HALVINGS + 1))
    candidates = candidates[(candidates >= found.lowest) & (candidates * longest.step * len(longest.q) > 8)]
    best = found.value
    if len(longest.q) >= LEAST_SAMPLES and len(candidates) > 1 and longest.all_measured:
        model = ForceModel(robot)
        lost = int(np.ceil(1 / (candidates[-1] * longest.step)))
        inside = slice(lost, len(longest.q) - lost, model.step(len(longest.q) - 2 * lost))
        scores = []
        for cutoff in candidates:
            q, v, a = longest.motion(float(cutoff))
            scores.append(model.fit(q[inside], v[inside], a[inside], longest.tau[inside]).score)
        best = float(candidates[int(np.argmax(np.array(scores) <= min(scores) + ALIKE))])  # the highest of them
    if best == found.value:
        notes.append(f"cutoff {best:.3g} Hz, from the spectrum")
    else:
        notes.append(f"cutoff {best:.3g} Hz, which explains the forces best; from the spectrum: {found.value:.3g} Hz")
    return best


def _delay(
    robot: Robot, segments: Sequence[Segment], cutoff: float | None, given: LogMap, notes: list[str], source: str
) -> Array:
    """Return what the forces (n,) are late by, s: as given, or estimated."""
    if not isinstance(given.delay, str):
        found = by_name(given.delay, robot.coordinate_names, 0.0, f"{given.source}: delay")
        if not np.isfinite(found).all():
            raise ModelError(describe(f"delay is {given.delay!r}", where=given.source, allowed="finite numbers, in s"))
        return found
    if given.delay != ESTIMATED:
        allowed = f'seconds, or "{ESTIMATED}"'
        raise ModelError(describe(f"delay is {given.delay!r}", where=given.source, allowed=allowed))
    longest = longest_of(segments)
    if not longest.all_measured:
        raise ModelError(describe("a delay of forces that were not all measured", where=source, fix="give it in s"))
    late = estimate(ForceModel(robot), longest.motion(cutoff), longest.tau, longest.times, source)
    way = "later" if late.value > 0 else "earlier"
    notes.append(
        f"forces are {1e3 * abs(late.value):.3g} ms {way} than the motion (deviation {1e3 * late.deviation:.2g} ms), "
        "which explains them best: their times are corrected"
    )
    return np.full(robot.nv, late.value)


def _samples(segment: Segment, cutoff: float | None, delay: Array, every: int) -> Samples:
    """Return the samples of a segment: forces at the times of the motion, without the ends."""
    q, v, a = segment.motion(cutoff)
    times, tau, full, step = segment.times, segment.tau, segment.saturated.astype(float), segment.step
    ends = 0 if cutoff is None else _ends(segment, cutoff)
    first = last = ends
    if delay.any():
        late = int(np.ceil(np.abs(delay).max() / step - 1e-9))
        first, last = max(ends, late * bool((delay < 0).any())), max(ends, late * bool((delay > 0).any()))
        tau, full = (
            np.stack([np.interp(times + each, times, x) for each, x in zip(delay, signal.T, strict=True)], axis=1)
            for signal in (tau, full)
        )
    kept = slice(first, max(first, len(times) - last), every)
    more = (None if x is None else x[kept] for x in (segment.temperature, segment.external))
    return Samples(q[kept], v[kept], a[kept], tau[kept], np.where(full > 0, 0.0, 1.0)[kept], times[kept], *more)


def _ends(segment: Segment, cutoff: float) -> int:
    """Return the samples within 1 / cutoff of each end of a segment."""
    return int(np.ceil(1 / (cutoff * segment.step) - 1e-9))


def _wrenches(parts: Sequence[Samples]) -> Array | None:
    """Return the wrenches (N, L, 6) of all segments, zero in those without any; None where none has any."""
    shape = next((each.external.shape[1:] for each in parts if each.external is not None), None)
    if shape is None:
        return None
    return np.concatenate([np.zeros((len(x.q), *shape)) if x.external is None else x.external for x in parts])


def _check_temperatures(logs: Sequence[Log]) -> None:
    """Raise ModelError for a log without temperatures beside others that have them."""
    without = [log.source for log in logs if log.temperature is None]
    if 0 < len(without) < len(logs):
        fix = "add its temperatures, or leave out those of all logs"
        raise ModelError(describe("no temperatures, which other logs have", where=without[0], fix=fix))


def _check_passive(robot: Robot, log: Log) -> None:
    """Raise ModelError where measured positions of passive joints are not where the closed loops have them."""
    if log.whole is not None and isinstance(robot, ClosedRobot):
        rows = log.complete & np.isfinite(log.whole).all(axis=1)
        robot.check_closure(log.q[rows], log.whole[rows], log.times[rows])
