"""The cutoff of the filter that differentiates, from the spectra of the signals.

The noise of a sensor is taken to be white. Its power N per frequency is that of the spectrum at the highest
frequencies, where no robot moves. What exceeds it clearly is the motion, of power S(f). The filter H of a cutoff leaves
the expected squared error of the k-th derivative

    J = sum over f of (2 pi f)^2k [(1 - H)^2 S + H^2 N]        k = 2 for positions, 1 for velocities

and the cutoff is the one with the least sum of J over all coordinates that move, each relative to sum (2 pi f)^2k S. It
is that of a Wiener filter whose shape is given.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.identification.differentiation import ORDER

CANDIDATES = 60  # cutoffs that are compared
HIGHEST = 0.8  # of half the sampling rate
TOP = (0.6, 0.98)  # of half the sampling rate: the band of the noise
SURE = 3.0  # how much more than expected of the largest of all noise a power must be to be motion, in units of N
LOST = 1e-3  # of the power of the derivative before the last that a cutoff may lose
LEAST_PERIODS = 2.0  # of the lowest cutoff, in the longest segment


class Spectrum(NamedTuple):
    """Spectra of a segment: ``frequencies`` (F,) in Hz, ``power`` (F, n) per frequency, its ``floor`` (n,)."""

    frequencies: Array
    power: Array
    floor: Array

    @property
    def motion(self) -> Array:
        """The power (F, n) above the noise, where it is clearly above it."""
        clear = self.floor * (math.log(max(len(self.frequencies), 2)) + SURE)
        return np.where(self.power > clear, self.power - self.floor, 0.0)


class Cutoff(NamedTuple):
    """The chosen ``value`` (Hz), the standard deviation of the ``noise`` (n,) of a signal, and its ``spectra``.

    Below ``lowest`` (Hz), more than ``LOST`` of the power of the derivative before the last would be lost.
    """

    value: float
    lowest: float
    noise: Array
    spectra: tuple[Spectrum, ...]


def spectrum(values: Array, step: float) -> Spectrum:
    """Return the spectrum of a segment (T, n), sampled every ``step`` s, less the line through its ends.

    The window sin^4 keeps slow motions of large amplitude out of high frequencies, as far as the ends cause them there.

    Example:
        >>> t = np.arange(1000) * 1e-3
        >>> found = spectrum(np.sin(2 * np.pi * 5 * t)[:, None], 1e-3)
        >>> float(found.frequencies[np.argmax(found.power)])
        5.0
    """
    along = np.linspace(0.0, 1.0, len(values))[:, None]
    window = np.sin(np.pi * along) ** 4
    rest = values - values[0] - (values[-1] - values[0]) * along
    power = np.abs(np.fft.rfft(rest * window, axis=0)) ** 2 / (window**2).sum()
    f: Array = np.asarray(np.fft.rfftfreq(len(values), step), dtype=float)
    top = (f >= TOP[0] * f[-1]) & (f <= TOP[1] * f[-1])
    # The power of white noise has an exponential distribution, whose median is ln 2 times the mean.
    return Spectrum(f, power, np.median(power[top], axis=0) / math.log(2) if top.any() else power.min(axis=0))


def choose(segments: Sequence[tuple[Array, float]], derivative: int = 2) -> Cutoff:
    """Return the cutoff for segments of positions (``derivative`` 2) or velocities (1): samples (T, n) and step (s).

    Example:
        >>> t, rng = np.arange(5000) * 1e-3, np.random.default_rng(0)
        >>> q = np.sin(2 * np.pi * t)[:, None] + 1e-4 * rng.normal(size=(5000, 1))
        >>> found = choose([(q, 1e-3)])
        >>> 1.0 < found.value < 5.0, found.noise.round(5).tolist()
        (True, [0.0001])
    """
    spectra = tuple(spectrum(values, step) for values, step in segments)
    longest = max(len(values) * step for values, step in segments)
    highest = HIGHEST * 0.5 / max(step for _, step in segments)
    cutoffs = np.geomspace(min(LEAST_PERIODS / longest, highest), highest, CANDIDATES)
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
            H = 1 / (1 + (f / cutoff) ** (2 * ORDER))
            lost[k] += ((1 - H) ** 2 * motion).sum(axis=0)
            slower[k] += ((1 - H) ** 2 * before).sum(axis=0)
            risks[k] += (H**2 * noise).sum(axis=0) * each.floor
    moves = total > 0
    relative = np.where(moves, total, 1.0)
    score = ((lost + risks) / relative)[:, moves].sum(axis=1) if moves.any() else risks.sum(axis=1)
    kept = np.flatnonzero((slower <= LOST * total_slower).all(axis=1))
    weights = np.array([len(values) for values, _ in segments], dtype=float)
    floor = np.average([each.floor for each in spectra], axis=0, weights=weights)
    best = int(np.argmin(score))
    lowest = min(best, int(kept[0])) if kept.size else best
    return Cutoff(float(cutoffs[best]), float(cutoffs[lowest]), np.sqrt(floor), spectra)
