"""Velocities and accelerations of sampled positions, by a low-pass filter that delays nothing."""

from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.errors import ModelError, describe
from torsor.mechanism.values import frozen_array

__all__ = ["differentiate", "uniform_step"]

Array = NDArray[np.float64]

ORDER = 6  # of the filter: half of the amplitude is left at the cutoff, 1/4097 an octave above it


def uniform_step(times: Array, where: str) -> float:
    """Return the sampling period (s) of times (T,), which must grow by equal steps.

    Example:
        >>> uniform_step(np.array([0.0, 0.1, 0.2]), "arm")
        0.1
    """
    step = float((times[-1] - times[0]) / (len(times) - 1)) if len(times) > 1 else 0.0
    if step <= 0 or np.abs(np.diff(times) - step).max() > 1e-3 * step:
        fix = "resample the positions at equal steps"
        raise ModelError(describe("the times are not equally spaced", where=where, allowed="growing steps", fix=fix))
    return step


def differentiate(
    t: ArrayLike, x: ArrayLike, cutoff: float, *, periodic: bool = False, where: str = "differentiate"
) -> tuple[Array, Array, Array]:
    """Return (x, x', x''), each (T, n), of samples x (T, n) at equally spaced times t (T,), in s.

    The samples pass a filter without phase, |H(f)| = 1 / (1 + (f / cutoff)^12), ``cutoff`` in Hz, and are
    differentiated where derivatives are exact, among frequencies: X' = 2 pi i f H X. A zero-phase Butterworth filter
    of order 6, forward and backward, has this H. ``periodic`` samples are one or more whole periods, the first of the
    next one left out. Others are continued as their images through both end points, less a cubic with their values and
    curvatures there: what is within about 1 / cutoff of the ends is less exact.

    Example:
        >>> t = np.arange(200) * 0.01
        >>> x, v, a = differentiate(t, np.sin(2 * np.pi * t)[:, None], cutoff=20.0, periodic=True)
        >>> bool(np.allclose(a, -(2 * np.pi) ** 2 * x))
        True
    """
    times = np.asarray(t, dtype=float)
    times = frozen_array(times, (len(np.atleast_1d(times)),), where, "t")
    samples = np.asarray(x, dtype=float)
    if samples.ndim != 2 or len(samples) != len(times) or len(times) < 8:
        allowed = f"(samples, n) with as many samples as times, {len(times)}, and at least 8"
        raise ModelError(describe(f"samples have shape {samples.shape}", where=where, allowed=allowed))
    samples = frozen_array(samples, samples.shape, where, "samples")
    step = uniform_step(times, where)
    highest = 0.5 / step
    if not (isinstance(cutoff, Real) and 0 < cutoff <= highest):
        allowed = f"above 0 and up to half the sampling rate, {highest:.6g} Hz"
        raise ModelError(describe(f"cutoff is {cutoff!r} Hz", where=where, allowed=allowed))
    elapsed = (times - times[0])[:, None]
    trend = [np.zeros_like(samples)] * 3 if periodic else _trend(elapsed, samples, cutoff)
    rest = samples - trend[0]
    # Images through the end points, where value and curvature of the rest are zero: what follows has no jump in them.
    whole = rest if periodic else np.concatenate([rest, -rest[-2:0:-1]])
    f = np.fft.rfftfreq(len(whole), step)[:, None]
    spectrum = np.fft.rfft(whole, axis=0) / (1 + (f / cutoff) ** (2 * ORDER))
    rates = (spectrum * (2j * np.pi * f) ** k for k in range(3))
    found = [
        np.fft.irfft(each, len(whole), axis=0)[: len(samples)] + own for each, own in zip(rates, trend, strict=True)
    ]
    return found[0], found[1], found[2]


def _trend(t: Array, x: Array, cutoff: float) -> list[Array]:
    """Return a cubic over times t (T, 1) with the values and curvatures of x (T, n) at its ends, and its two rates.

    Those at an end are of a parabola with a cubic term through what lies within 1 / cutoff of it.
    """
    duration = float(t[-1, 0])
    near = t[:, 0] <= max(1 / cutoff, t[min(7, len(t) - 1), 0])
    powers = np.vander(t[near, 0], 4, increasing=True)
    (x0, _, half0, _), (x1, _, half1, _) = (np.linalg.lstsq(powers, side[near], rcond=None)[0] for side in (x, x[::-1]))
    bend = (half1 - half0) / (3 * duration)
    slope = (x1 - x0) / duration - half0 * duration - bend * duration**2
    return [
        x0 + slope * t + half0 * t**2 + bend * t**3,
        slope + 2 * half0 * t + 3 * bend * t**2,
        2 * half0 + 6 * bend * t,
    ]
