"""Conversion of logs to samples of motions and forces: segments, derivatives and delays, documented in notes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import by_name
from torsor.base.errors import ModelError
from torsor.identification.closed_robot import ClosedRobot, MeasuredRobot
from torsor.identification.differentiation import FILTER_ORDER, differentiate
from torsor.identification.estimation import correlation_time, free_part, meat
from torsor.identification.logs.force_model import ForceModel
from torsor.identification.logs.log import Log
from torsor.identification.logs.log_map import ESTIMATED, LogMap
from torsor.identification.logs.sampling import MIN_SEGMENT_SAMPLES, Segment, linear, longest_of, segments_of
from torsor.simulation.signals import Signal

# Selection of the cutoff of the differentiation filter from signal spectra.
#
# Sensor noise is assumed to be white. Its power N per frequency is that of the spectrum at the highest frequencies,
# where robots do not move. Power clearly above N is the motion S(f). A filter H causes an expected squared error of the
# k-th derivative of
#
#     J = sum over f of (2 pi f)^2k [(1 - H)^2 S + H^2 N]        k = 2 for positions, 1 for velocities
#
# The cutoff minimises the sum of J over all moving coordinates, each relative to sum (2 pi f)^2k S, which corresponds
# to a Wiener filter with a fixed shape.

CANDIDATES = 60  # number of compared cutoffs
MAX_CUTOFF_FRACTION = 0.8  # maximum cutoff as a fraction of half the sampling rate
NOISE_BAND = (0.6, 0.98)  # noise band, as fractions of half the sampling rate
MOTION_THRESHOLD = 3.0  # minimum motion power, relative to the expected maximum of the noise power
MAX_LOST_POWER = 1e-3  # maximum power fraction of the next-to-last derivative that a cutoff may remove
MIN_PERIODS = 2.0  # minimum number of periods of the lowest cutoff in the longest segment


class Spectrum(NamedTuple):
    """Spectra of a segment: ``frequencies`` (F,) in Hz, ``power`` (F, n) per frequency, and its ``floor`` (n,)."""

    frequencies: Array
    power: Array
    floor: Array

    @property
    def motion(self) -> Array:
        """The power (F, n) minus the noise where it clearly exceeds the noise, otherwise 0."""
        clear = self.floor * (math.log(max(len(self.frequencies), 2)) + MOTION_THRESHOLD)
        return np.where(self.power > clear, self.power - self.floor, 0.0)


class Cutoff(NamedTuple):
    """The selected cutoff ``value`` (Hz), and the ``noise`` standard deviation (n,) of a signal.

    A cutoff below ``lowest`` (Hz) would remove more than ``MAX_LOST_POWER`` of the power of the next-to-last
    derivative.
    """

    value: float
    lowest: float
    noise: Array


def spectrum(values: Array, step: float) -> Spectrum:
    """Return the spectrum of a segment (T, n), sampled every ``step`` s, minus the line through its ends.

    A sin^4 window limits leakage of slow, large motions into high frequencies.
    """
    along = np.linspace(0.0, 1.0, len(values))[:, None]
    window = np.sin(np.pi * along) ** 4
    rest = values - values[0] - (values[-1] - values[0]) * along
    power = np.abs(np.fft.rfft(rest * window, axis=0)) ** 2 / (window**2).sum()
    f: Array = np.asarray(np.fft.rfftfreq(len(values), step), dtype=float)
    top = (f >= NOISE_BAND[0] * f[-1]) & (f <= NOISE_BAND[1] * f[-1])
    # The power of white noise has an exponential distribution, whose median is ln 2 times the mean.
    return Spectrum(f, power, np.median(power[top], axis=0) / math.log(2) if top.any() else power.min(axis=0))


def choose(segments: Sequence[tuple[Array, float]], derivative: int = 2) -> Cutoff:
    """Return the cutoff for segments of positions (``derivative`` 2) or velocities (1): samples (T, n) and step (s)."""
    spectra = tuple(spectrum(values, step) for values, step in segments)
    longest = max(len(values) * step for values, step in segments)
    highest = MAX_CUTOFF_FRACTION * 0.5 / max(step for _, step in segments)
    cutoffs = np.geomspace(min(MIN_PERIODS / longest, highest), highest, CANDIDATES)
    n = spectra[0].power.shape[1]
    lost, slower, risks = np.zeros((3, CANDIDATES, n))
    total, total_slower = np.zeros((2, n))
    for each in spectra:
        f = each.frequencies[:, None]
        noise = (2 * np.pi * f) ** (2 * derivative)
        motion = noise * each.motion
        total += motion.sum(axis=0)
        before = (2 * np.pi * f) ** (2 * derivative - 2) * each.motion
        total_slower += before.sum(axis=0)
        for k, cutoff in enumerate(cutoffs):
            H = 1 / (1 + (f / cutoff) ** (2 * FILTER_ORDER))
            lost[k] += ((1 - H) ** 2 * motion).sum(axis=0)
            slower[k] += ((1 - H) ** 2 * before).sum(axis=0)
            risks[k] += (H**2 * noise).sum(axis=0) * each.floor
    moves = total > 0
    relative = np.where(moves, total, 1.0)
    score = ((lost + risks) / relative)[:, moves].sum(axis=1) if moves.any() else risks.sum(axis=1)
    kept = np.flatnonzero((slower <= MAX_LOST_POWER * total_slower).all(axis=1))
    weights = np.array([len(values) for values, _ in segments], dtype=float)
    floor = np.average([signal.floor for signal in spectra], axis=0, weights=weights)
    best = int(np.argmin(score))
    lowest = min(best, int(kept[0])) if kept.size else best
    return Cutoff(float(cutoffs[best]), float(cutoffs[lowest]), np.sqrt(floor))


# The delay between positions and forces is the shift with which the model best explains the forces.
#
# The motion is kept, the forces are interpolated at t + shift, and each coordinate is fitted separately with unknown
# parameters. The sum of N log(residual variance) over the coordinates is twice the negative log-likelihood. The
# standard deviation follows from the residuals r_t and the force rates g_t, minus their explained part, both divided by
# the noise of their coordinate:
#
#     shift - truth = sum of g_t r_t / sum of g_t^2
#
# including correlation in time (``estimation.meat``), because forces and filtered noise are smooth.

MAX_DELAY = 0.1  # s; range of the delay search
SHIFT_COUNT = 21  # initial number of shifts
FORCE_CUTOFF_RATIO = 0.125  # force cutoff as a fraction of the sampling rate
RATE_SPAN = 2  # samples on each side of a force rate, consistent with SMOOTH
REFINEMENTS = 6  # refinements; each tries shifts within one step of the best on a grid four times finer


class Delay(NamedTuple):
    """A force delay ``value`` (s), its standard ``deviation`` (s), and residual fractions (n,) without and with it."""

    value: float
    deviation: float
    before: Array
    after: Array


def estimate(model: ForceModel, motion: tuple[Array, Array, Array], tau: Array, t: Array, where: str = "log") -> Delay:
    """Return the delay of forces tau (T, n) relative to a motion (q, v, a), both at times t (T,)."""
    span = min(MAX_DELAY, 0.1 * float(t[-1] - t[0]))
    inside = (t >= t[0] + 2 * span) & (t <= t[-1] - 2 * span)
    inside[:RATE_SPAN] = inside[-RATE_SPAN:] = False  # a step may be longer than the span
    thin = np.flatnonzero(inside)[:: model.step(int(inside.sum()))]
    if thin.size < 50:
        message = f"there are {thin.size} samples for the delay estimate"
        raise ModelError(message, where=where, allowed="50 or more", fix="measure longer, or set the delay (s)")
    q, v, a = (x[thin] for x in motion)
    fits = model.of(q, v, a)

    # Interpolation that averages noise would favour shifts between samples. Quintics through smoothed forces avoid
    # this.
    smooth = differentiate(t, tau, FORCE_CUTOFF_RATIO / float(np.median(np.diff(t))), where=where)
    signal = Signal.joined(t, list(smooth))

    def left(shift: float) -> Array:
        return fits.fit(signal.at(t[thin] + shift, 1)[:, 0]).left

    def score(shift: float) -> float:
        return float(np.sum(np.log(np.maximum(left(shift), 1e-20))))

    shifts = np.linspace(-span, span, SHIFT_COUNT)
    best, step = float(shifts[int(np.argmin([score(s) for s in shifts]))]), float(shifts[1] - shifts[0])
    for _ in range(REFINEMENTS):
        near = best + step * np.linspace(-1, 1, 9)
        best, step = float(near[int(np.argmin([score(s) for s in near]))]), step / 4
    forces = signal.at(t[thin] + best, 1)[:, 0]
    residuals, x = fits.residuals(forces), fits.fit(forces).x
    # The rates are those of the fitted forces, which are less noisy than measured forces.
    ends = (model.forces(x, *(array[thin + side] for array in motion)) for side in (RATE_SPAN, -RATE_SPAN))
    rates = fits.residuals(fits.known + np.subtract(*ends) / (t[thin + RATE_SPAN] - t[thin - RATE_SPAN])[:, None])
    noise = np.maximum(np.sqrt(np.mean(residuals**2, axis=0)), 1e-300)
    return Delay(best, _deviation(residuals / noise, rates / noise, x.size), left(0.0), left(best))


def _deviation(residuals: Array, rates: Array, unknowns: int) -> float:
    """Return the standard deviation (s) of a shift from residuals and rates (N, n), both divided by the noise."""
    parts = [slice(0, len(residuals))]
    lag = correlation_time(residuals, parts)
    spread = float(meat(np.sum(rates * residuals, axis=1, keepdims=True), parts, lag)[0, 0])
    information, free = float(np.sum(rates**2)), free_part(residuals.size, lag, unknowns)
    return math.sqrt(spread / free) / information if information > 0 else math.inf


EQUIVALENCE_TOLERANCE = 0.01  # cutoffs are equivalent if their mean log(residual variance) differs by less
LOWER_CUTOFFS = 8  # number of cutoffs, in steps of a factor sqrt(2), tested below that of the spectrum
MIN_SAMPLES = 200  # minimum number of samples for a comparison of cutoffs by the model


class Samples(NamedTuple):
    """Samples of motions and forces from all segments of all logs; ``weights`` (N, n) are 0 for saturated forces.

    ``temperature`` (N, 1) or (N, n) is the drive temperature, if measured. With wrenches ``external`` (N, L, 6), tau is
    the total force tau + J^T w.
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
        """Return every ``step``-th sample."""
        cut: dict[str, Any] = {name: None if x is None else x[::step] for name, x in self._asdict().items()}
        return Samples(**cut)


class Prepared(NamedTuple):
    """The ``samples`` of logs, their ``segments``, and the ``cutoff`` (Hz; None if nothing was differentiated).

    ``delay`` (n,), in s, was subtracted from the force times. ``notes`` document the processing.
    """

    samples: Samples
    segments: tuple[Segment, ...]
    cutoff: float | None
    delay: Array
    notes: tuple[str, ...]


def prepare(robot: MeasuredRobot, logs: Sequence[Log], given: LogMap) -> Prepared:
    """Return the samples of logs, processed as defined by the map: segments, equal steps, derivatives and delays."""
    notes: list[str] = []
    source = logs[0].source
    if len({(each.v is None, each.a is None) for each in logs}) > 1:
        raise ModelError("only some of the logs contain velocities", where=source)
    without = [log.source for log in logs if log.temperature is None]
    if 0 < len(without) < len(logs):
        fix = "add its temperatures, or omit the temperatures of all logs"
        raise ModelError("the log has no temperatures, but other logs have", where=without[0], fix=fix)
    for log in logs:
        if log.whole is not None and isinstance(robot, ClosedRobot):
            rows = log.complete & np.isfinite(log.whole).all(axis=1)
            robot.check_closure(log.q[rows], log.whole[rows], log.times[rows])
    segments = [each for log in logs for each in segments_of(robot, log, given, notes)]
    if not segments:
        message = f"there is no run of {MIN_SEGMENT_SAMPLES} samples without a gap"
        raise ModelError(message, where=source, fix="measure longer, or raise gap (s) in the map")
    cutoff = None
    if segments[0].v is None or segments[0].a is None:
        cutoff = given.cutoff if given.cutoff is not None else chosen_cutoff(robot, segments, notes)
    delay = _delay(robot, segments, cutoff, given, notes, source)
    parts = [_samples(segment, cutoff, delay, given.every) for segment in segments]
    kept = [part for part in parts if len(part.q)]
    if not kept:
        message = f"all samples are within 1 / cutoff = {1 / (cutoff or 1):.3g} s of an end or a gap"
        raise ModelError(message, where=source, fix="measure longer, or raise the cutoff")
    if cutoff is not None:
        count = sum(len(each.q) for each in segments)
        ends = sum(min(len(each.q), 2 * _ends(each, cutoff)) for each in segments)
        text = f"{ends} of {count} samples are within 1 / cutoff = {1 / cutoff:.3g} s of an end or a gap and "
        notes.append(f"{text}omitted, because accelerations are inaccurate there")
    if len(kept) < len(parts):
        notes.append(f"{len(parts) - len(kept)} of {len(parts)} segments are shorter than 2 / cutoff and omitted")
    q, v, a, tau, weights, times = (
        np.concatenate([np.asarray(getattr(each, name)) for each in kept]) for name in Samples._fields[:6]
    )
    warm = [each.temperature for each in kept if each.temperature is not None]
    # Wrenches are zero in segments without wrench data.
    shapes = [each.external.shape[1:] for each in kept if each.external is not None]
    loads = [np.zeros((len(x.q), *shapes[0])) if x.external is None else x.external for x in kept] if shapes else []
    more = np.concatenate(warm) if warm else None, np.concatenate(loads) if loads else None
    whole = Samples(q, v, a, tau, None if (weights == 1).all() else weights, times, *more)
    return Prepared(whole, tuple(segments), cutoff, delay, tuple(notes))


def chosen_cutoff(robot: MeasuredRobot, segments: Sequence[Segment], notes: list[str]) -> float:
    """Return the cutoff (Hz) of the spectrum, or a lower one with which the model explains the forces better.

    The spectrum separates motion from noise, but not rigid-body motion from gear vibrations, which the model cannot
    explain. Cutoffs down to the lowest one that preserves the velocities are therefore compared by the part of the
    forces that no parameters explain. Among equivalent cutoffs, the highest has the least bias. If some forces were not
    measured, the cutoff of the spectrum is used.
    """
    rates = segments[0].v is not None
    signals = [(segment.q if segment.v is None else segment.v, segment.step) for segment in segments]
    cutoff = choose(signals, derivative=1 if rates else 2)
    longest = longest_of(segments)
    candidates: Array = np.asarray(cutoff.value * 2.0 ** (-0.5 * np.arange(LOWER_CUTOFFS + 1)), dtype=float)
    candidates = candidates[(candidates >= cutoff.lowest) & (candidates * longest.step * len(longest.q) > 8)]
    best = cutoff.value
    if len(longest.q) >= MIN_SAMPLES and len(candidates) > 1 and longest.all_measured:
        scores = ForceModel(robot).scores(longest, candidates)
        equivalent = scores <= scores.min() + EQUIVALENCE_TOLERANCE
        best = float(candidates[int(np.argmax(equivalent))])  # the highest of them
    other = f"which best explains the forces; from the spectrum: {cutoff.value:.3g} Hz"
    notes.append(f"cutoff {best:.3g} Hz, {'from the spectrum' if best == cutoff.value else other}")
    return best


def _delay(
    robot: MeasuredRobot, segments: list[Segment], cutoff: float | None, given: LogMap, notes: list[str], source: str
) -> Array:
    """Return the force delays (n,) in s, as specified or estimated."""
    if not isinstance(given.delay, str):
        delays = by_name(given.delay, robot.coordinate_names, 0.0, f"{given.source}: delay")
        if not np.isfinite(delays).all():
            raise ModelError(argument="delay", value=given.delay, where=given.source, allowed="finite numbers, in s")
        return delays
    if given.delay != ESTIMATED:
        raise ModelError(argument="delay", value=given.delay, where=given.source, allowed=f'seconds, or "{ESTIMATED}"')
    longest = longest_of(segments)
    if not longest.all_measured:
        message = "the delay cannot be estimated because some forces were not measured"
        raise ModelError(message, where=source, fix="set the delay in s")
    late = estimate(ForceModel(robot), longest.motion(cutoff), longest.tau, longest.times, source)
    way = "later" if late.value > 0 else "earlier"
    text = f"forces are {1e3 * abs(late.value):.3g} ms {way} than the motion"
    notes.append(f"{text} (standard deviation {1e3 * late.deviation:.2g} ms), the best fit; their times are corrected")
    return np.full(robot.nv, late.value)


def _samples(segment: Segment, cutoff: float | None, delay: Array, every: int) -> Samples:
    """Return the samples of a segment except its ends, with forces at the times of the motion."""
    q, v, a = segment.motion(cutoff)
    times, tau, full, step = segment.times, segment.tau, segment.saturated.astype(float), segment.step
    ends = 0 if cutoff is None else _ends(segment, cutoff)
    first = last = ends
    if delay.any():
        late = int(np.ceil(np.abs(delay).max() / step - 1e-9))
        first, last = max(ends, late * bool((delay < 0).any())), max(ends, late * bool((delay > 0).any()))
        tau, full = (linear(times, signal, times, delay) for signal in (tau, full))
    kept = slice(first, max(first, len(times) - last), every)
    more = (None if x is None else x[kept] for x in (segment.temperature, segment.external))
    return Samples(q[kept], v[kept], a[kept], tau[kept], np.where(full > 0, 0.0, 1.0)[kept], times[kept], *more)


def _ends(segment: Segment, cutoff: float) -> int:
    """Return the number of samples within 1 / cutoff of one end of a segment."""
    return int(np.ceil(1 / (cutoff * segment.step) - 1e-9))
