"""Processing of recordings: smoothing, gap filling, resampling, treadmills and standing frames."""

from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import instance_of, number, positive, real_array, whole_number
from torsor.base.errors import ModelError
from torsor.human.recordings.axes import OPENSIM, rotation
from torsor.human.recordings.recording import GroundForces, Markers, MotionTable, at_times, checked_times, runs

MAX_BELT_SPEED = 15.0  # m/s; faster than any runner
Moved = TypeVar("Moved", Markers, GroundForces)


def overground(data: Moved, speed: float) -> Moved:
    """Return markers or forces of a treadmill trial with the belt ``speed`` (m/s) added in the walking direction.

    The belt moves backward relative to the person. Use the same speed for markers and forces of a trial. Forces do not
    change, but their centres of pressure move forward with time, and plate corners are removed. Joint moments do not
    depend on the speed.

    Example:
        >>> still = Markers(["C7"], [0.0, 0.5], np.zeros((2, 1, 3)), axes="forward up right")
        >>> overground(still, 1.2).position("C7").tolist()
        [[0.0, 0.0, 0.0], [0.6, 0.0, 0.0]]
    """
    if not isinstance(data, Markers | GroundForces):
        what = f"is a {type(data).__name__}"
        raise ModelError(what, argument="data", where="overground", allowed="Markers or GroundForces")
    speed = number(speed, data.source, "speed (m/s)", least=0.0, most=MAX_BELT_SPEED)
    forward = rotation(OPENSIM, data.axes, data.source) @ np.array([1.0, 0.0, 0.0])
    way = (speed * data.times)[:, None, None] * forward
    if isinstance(data, Markers):
        return data.with_positions(data.positions + way)
    return replace(data, centers=data.centers + way, corners=None)


MAX_SWAY_SPEED = 0.05  # m/s; above the sway of quiet standing, and far below the slowest walk
SPEED_INTERVAL = 0.1  # s; interval over which speeds are computed, which suppresses noise of single frames


def standing(markers: Markers, shortest: float = 0.5, *, still: float = MAX_SWAY_SPEED) -> Markers:
    """Return the longest interval, of at least ``shortest`` (s), in which no marker is faster than ``still`` (m/s).

    ModelError is raised if there is none, as in most recordings of walking.

    Example:
        >>> t = np.arange(300) / 100
        >>> x = np.where(t < 1.0, 0.0, t - 1.0)
        >>> len(standing(Markers(["toe"], t, np.stack([x, x, x], axis=1)[:, None])))
        101
    """
    instance_of(markers, Markers, "standing", "markers")
    if not markers.seen.any():
        raise ModelError("no marker is ever seen", where=markers.source, fix="export the markers again")
    shortest, still = positive(shortest, markers.source, "shortest (s)"), positive(still, markers.source, "still (m/s)")
    span = max(1, round(SPEED_INTERVAL * markers.rate))
    if len(markers) <= span:
        what = f"the recording has {len(markers)} frames, {markers.times[-1] - markers.times[0]:g} s"
        raise ModelError(what, where=markers.source, allowed=f"{shortest:g} s of standing")
    moved = np.linalg.norm(markers.positions[span:] - markers.positions[:-span], axis=2)
    took = markers.times[span:] - markers.times[:-span]
    speeds = np.nanmax(np.where(np.isnan(moved), -np.inf, moved), axis=1) / took
    first, last = max(runs(~(speeds > still)), key=lambda run: run[1] - run[0], default=(0, -1))
    if last < first or markers.times[last + span] - markers.times[first] < shortest:
        k = int(np.argmin(speeds))
        slowest = f"the slowest instant, {markers.times[k]:g} s, has {speeds[k]:.2g} m/s"
        what = f"the person does not stand for {shortest:g} s: {slowest}"
        fix = "load the standing trial of this person, or give limb lengths"
        raise ModelError(what, where=markers.source, allowed=f"{still:g} m/s or less", fix=fix)
    return markers.between(float(markers.times[first]), float(markers.times[last + span]))


Sampled = TypeVar("Sampled", Markers, MotionTable, GroundForces)
STEP_TOLERANCE = 0.1  # fraction of a step by which times may deviate from equal steps, because they are often rounded
MIN_GAP_SAMPLES = 4  # minimum number of samples around a gap for a cubic


def lowpass(values: ArrayLike, rate: float, cutoff: float, *, order: int = 4, where: str = "lowpass") -> Array:
    """Return samples (K, ...) at ``rate`` (Hz) after a zero-phase Butterworth low-pass filter.

    A filter of half the ``order`` is applied forward and backward. ``cutoff`` (Hz) is the -3 dB frequency of both
    passes together; for one pass it is correspondingly higher (Robertson and Dowling 2003). Runs between missing
    samples (NaN) are filtered separately; runs that are too short for the filter are unchanged.

    Example:
        >>> t = np.arange(500) / 100
        >>> slow = np.sin(2 * np.pi * 0.5 * t)
        >>> noisy = slow + 0.1 * np.sin(2 * np.pi * 30.0 * t)
        >>> bool(np.abs(lowpass(noisy, 100.0, cutoff=6.0) - slow)[50:-50].max() < 0.002)
        True
    """
    from scipy.signal import butter, sosfiltfilt

    samples = real_array(values, where, "values")
    rate = positive(rate, where, "rate (Hz)")
    cutoff = number(cutoff, where, "cutoff (Hz, below half the rate)", above=0.0, below=rate / 2)
    if whole_number(order, where, "order", least=2, most=12) % 2:
        allowed = "2, 4, 6, ...; half of it for each pass"
        raise ModelError(f"is {order}", argument="order", value=order, where=where, allowed=allowed)
    # The squared gain of one pass, 1 / (1 + w^order), must be 1 / sqrt(2) at the cutoff, where w = tan(pi f / rate) is
    # the frequency of the analogue filter.
    w = np.tan(np.pi * cutoff / rate) / (np.sqrt(2) - 1) ** (1 / order)
    sections = butter(order // 2, 2 / np.pi * np.arctan(w), output="sos")
    flat = samples.reshape(len(samples), -1).copy()
    pad = 3 * (2 * len(sections) + 1)
    for column in flat.T:
        for first, last in runs(np.isfinite(column)):
            if last - first + 1 > pad:
                column[first : last + 1] = sosfiltfilt(sections, column[first : last + 1], padlen=pad)
    return flat.reshape(samples.shape)


def smooth(data: Sampled, cutoff: float, *, order: int = 4) -> Sampled:
    """Return markers, a table or ground forces filtered by ``lowpass`` with a ``cutoff`` (Hz) at equal time steps.

    For ground forces, the moments about the origin are filtered and centres of pressure are computed from them, because
    centres of pressure jump when a foot leaves the ground, but moments do not. Unloaded samples must first be set to 0
    (``without_unloaded``).

    Example:
        >>> table = MotionTable(["x"], np.arange(100) / 100, np.ones((100, 1)))
        >>> bool(np.allclose(smooth(table, 6.0).values, 1.0))
        True
    """
    rate = uniform_rate(data.times, data.source)

    def filtered(values: Array) -> Array:
        return lowpass(values, rate, cutoff, order=order, where=data.source)

    return data.with_wrench(filtered(data.wrench())) if isinstance(data, GroundForces) else data.changed(filtered)


def fill_gaps(markers: Markers, longest: float = 0.2) -> Markers:
    """Return markers with gaps of up to ``longest`` (s) filled by cubic splines; longer gaps and ends stay NaN.

    The spline passes through up to ten samples on either side of the gap.

    Example:
        >>> t = np.arange(30) / 100
        >>> positions = np.stack([t, t**2, t**3], axis=1)[:, None]
        >>> seen = positions.copy()
        >>> seen[10:15] = np.nan
        >>> filled = fill_gaps(Markers(["toe"], t, seen))
        >>> bool(np.abs(filled.positions - positions).max() < 1e-12)
        True
    """
    from scipy.interpolate import CubicSpline

    instance_of(markers, Markers, "fill_gaps", "markers")
    longest = number(longest, markers.source, "longest (s)", least=0.0)
    positions = np.array(markers.positions)
    for gap in markers.gaps():
        k = markers.names.index(gap.marker)
        seen = np.flatnonzero(markers.seen[:, k])
        around = np.concatenate([seen[seen < gap.first][-10:], seen[seen > gap.last][:10]])
        inside = gap.first > 0 and gap.last < len(markers) - 1
        if inside and gap.duration <= longest and len(around) >= MIN_GAP_SAMPLES:
            filled = slice(gap.first, gap.last + 1)
            positions[filled, k] = CubicSpline(markers.times[around], markers.positions[around, k])(
                markers.times[filled]
            )
    return replace(markers, positions=positions)


def resample(data: Sampled, times: ArrayLike) -> Sampled:
    """Return markers, a table or ground forces at different ``times`` (K,) (s), by cubic spline interpolation.

    ModelError is raised for times outside the recording. Gaps of markers are preserved. Ground forces and their moments
    about the origin are interpolated linearly, because forces start and end with kinks.

    Example:
        >>> table = MotionTable(["x"], np.arange(11) / 10, (np.arange(11) / 10)[:, None] ** 2)
        >>> resample(table, [0.25]).values.round(6).tolist()
        [[0.0625]]
    """
    new = checked_times(times, data.source)
    slack = 1e-9 * max(1.0, float(np.abs(data.times).max()))
    if new[0] < data.times[0] - slack or new[-1] > data.times[-1] + slack:
        what = f"are {new[0]:g} to {new[-1]:g} s"
        allowed = f"within the recording, {data.times[0]:g} to {data.times[-1]:g} s"
        raise ModelError(what, argument="times", where=data.source, allowed=allowed)
    if isinstance(data, Markers):
        return replace(data, times=new, rate=0.0, positions=_interpolated(data.times, data.positions, new))
    if isinstance(data, MotionTable):
        return replace(data, times=new, values=_interpolated(data.times, data.values, new))
    return data.with_wrench(at_times(new, data.times, data.wrench()), new)


def rates(times: ArrayLike, values: ArrayLike, order: int = 2) -> tuple[Array, ...]:
    """Return samples without gaps and their derivatives up to ``order``, each (K, ...), by quintic splines.

    The default is (x, x', x''), and ``order`` is at most 4. At least 6 samples are required. The spline passes through
    all samples, including their noise, so filter them first (``smooth``).

    Example:
        >>> t = np.arange(200) / 100
        >>> x, v, a = rates(t, np.sin(t))
        >>> bool(np.abs(a + np.sin(t)).max() < 1e-5)
        True
    """
    from scipy.interpolate import make_interp_spline

    where, samples = "rates", real_array(values, "rates", "values")
    new = checked_times(times, where)
    if len(new) < 6 or samples.ndim < 1 or len(samples) != len(new):
        allowed = f"one for each of {len(new)} times, and 6 or more"
        raise ModelError(f"have shape {samples.shape}", argument="values", where=where, allowed=allowed)
    if not np.isfinite(samples).all():
        frame = int(np.argwhere(~np.isfinite(samples))[0][0])
        fix = "fill the gaps first with torsor.human.recordings.fill_gaps"
        raise ModelError(f"frame {frame + 1} has missing values", where=where, fix=fix)
    spline = make_interp_spline(new, samples, k=5)
    return tuple(np.asarray(spline(new, nu=k)) for k in range(whole_number(order, where, "order", least=0, most=4) + 1))


def uniform_rate(times: Array, where: str) -> float:
    """Return the rate (Hz) of times (K,), which must have equal steps to within their printed precision."""
    steps = np.diff(times)
    if not len(steps):
        raise ModelError("there is a single frame", where=where, allowed="2 or more")
    usual, mean = float(np.median(steps)), float(steps.mean())
    # Rounded times deviate from exact ones by at most half of their last digit.
    if np.abs(times - np.linspace(times[0], times[-1], len(times))).max() <= STEP_TOLERANCE * mean:
        return 1 / mean
    k = int(np.argmax(np.abs(steps - usual)))
    what = f"frame {k + 2} has a step of {steps[k]:.6g} s among steps of {usual:.6g} s"
    fix = "resample the recording first with torsor.human.recordings.resample"
    raise ModelError(what, where=where, allowed="equal steps", fix=fix)


def _interpolated(times: Array, values: Array, new: Array) -> Array:
    """Return values (L, ...) at new times, by cubic splines in each run of samples; NaN in gaps."""
    from scipy.interpolate import CubicSpline

    flat = values.reshape(len(values), -1)
    interpolated = np.full((len(new), flat.shape[1]), np.nan)
    for column, out in zip(flat.T, interpolated.T, strict=True):
        for first, last in runs(np.isfinite(column)):
            within = (new >= times[first] - 1e-9) & (new <= times[last] + 1e-9)
            run = slice(first, last + 1)
            if last == first:
                out[within] = column[first]
            else:
                out[within] = CubicSpline(times[run], column[run])(new[within])
    return interpolated.reshape(len(new), *values.shape[1:])
