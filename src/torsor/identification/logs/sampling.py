"""Sampling: the segments of a log between gaps, and equal steps within each of them.

Stamps that are equal steps rounded to few digits are replaced by the equal steps. Other unequal steps are resampled:
positions and rates by the cubic through the four nearest samples, forces linearly, which does not overshoot where
friction jumps.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Array

GAP = 5.0  # usual steps: a longer one is a gap
EQUAL = 1e-3  # of a step: deviations below this are none
SHORTEST = 8  # samples of a segment: the filter needs as many


class Sampling(NamedTuple):
    """How a log is sampled: the usual ``step`` (s), ``gaps`` (k,) before which samples a segment begins, ``how``.

    ``how`` is "equal", "rounded" (equal steps with rounded stamps) or "unequal". ``spread`` is the largest deviation
    of a step within a segment, as a fraction of the usual one.
    """

    step: float
    gaps: NDArray[np.intp]
    how: str
    spread: float

    def segments(self, count: int) -> list[slice]:
        """Return the rows of each segment of a log of ``count`` rows."""
        ends = [0, *self.gaps.tolist(), count]
        return [slice(first, last) for first, last in pairwise(ends)]


def sampling_of(times: Array, gap: float | None = None) -> Sampling:
    """Return the sampling of times (N,); steps longer than ``gap`` (s), and those that go back, separate segments.

    Example:
        >>> found = sampling_of(np.concatenate([np.arange(20) * 0.01, 1.0 + np.arange(20) * 0.01]))
        >>> round(found.step, 12), found.gaps.tolist(), found.how
        (0.01, [20], 'equal')
    """
    steps = np.diff(times)
    forward = steps[steps > 0]
    step = float(np.median(forward)) if forward.size else 0.0
    longest = GAP * step if gap is None else gap
    gaps = np.flatnonzero((steps > longest) | (steps <= 0)) + 1
    whole = Sampling(step, gaps, "equal", 0.0)
    parts = [times[part] for part in whole.segments(len(times))]
    inside = np.concatenate([np.diff(part) for part in parts]) if parts else steps
    if not inside.size or not step:
        return whole
    mean = float(inside.mean())
    spread = float(np.abs(inside / step - 1).max())
    if np.abs(inside / mean - 1).max() <= EQUAL:
        return whole._replace(step=mean, spread=spread)
    long = [part for part in parts if len(part) >= SHORTEST]
    if long and max(_deviation(part) for part in long) <= 1.01 * _resolution(times):
        # The steps of rounded stamps scatter about the true one: their mean is better than their median.
        return whole._replace(step=mean, how="rounded", spread=spread)
    return whole._replace(how="unequal", spread=spread)


def equal_times(times: Array, sampling: Sampling) -> Array:
    """Return equally spaced times for a segment of times (N,): as many for rounded stamps, else all that are inside.

    Example:
        >>> equal_times(np.array([0.0, 0.11, 0.19, 0.3]), Sampling(0.1, np.empty(0, int), "unequal", 0.1)).round(9)
        array([0. , 0.1, 0.2, 0.3])
    """
    if sampling.how == "unequal":
        count = int(np.floor((times[-1] - times[0]) / sampling.step + 1e-6)) + 1
        return np.asarray(times[0] + sampling.step * np.arange(count))
    k = np.arange(len(times))
    slope, start = np.polyfit(k, times - times[0], 1) if len(times) > 2 else (sampling.step, 0.0)
    return np.asarray(times[0] + start + slope * k)


def cubic(times: Array, values: Array, wanted: Array) -> Array:
    """Return values (T, n) at ``wanted`` times (T,): the cubic through the four nearest of the samples (N, n), N >= 4.

    Example:
        >>> t = np.array([0.0, 0.1, 0.25, 0.3, 0.5])
        >>> bool(np.allclose(cubic(t, t[:, None] ** 3, np.array([0.2, 0.4])), [[0.008], [0.064]]))
        True
    """
    first = np.clip(np.searchsorted(times, wanted, side="right") - 2, 0, len(times) - 4)
    nodes = times[first[:, None] + np.arange(4)]
    found = np.zeros((len(wanted), values.shape[1]))
    for k in range(4):
        others = [m for m in range(4) if m != k]
        weight = np.prod([(wanted - nodes[:, m]) / (nodes[:, k] - nodes[:, m]) for m in others], axis=0)
        found += weight[:, None] * values[first + k]
    return found


def quintic(times: Array, values: tuple[Array, Array, Array], wanted: Array) -> Array:
    """Return a signal at ``wanted`` times (T,) from its values and first two derivatives (N, n) at equal times (N,).

    Each step is the polynomial of degree 5 with those of its two ends.

    Example:
        >>> t = 0.1 * np.arange(5)[:, None]
        >>> found = quintic(t[:, 0], (t**4, 4 * t**3, 12 * t**2), np.array([0.15]))
        >>> bool(np.allclose(found, 0.15**4))
        True
    """
    step = float(times[-1] - times[0]) / (len(times) - 1)
    first = np.clip(np.searchsorted(times, wanted, side="right") - 1, 0, len(times) - 2)
    u = ((wanted - times[first]) / step)[:, None]
    (x0, x1), (v0, v1), (a0, a1) = ((each[first], each[first + 1]) for each in values)
    rise = u**3 * (10 - 15 * u + 6 * u**2)
    slopes = (u - u**3 * (6 - 8 * u + 3 * u**2)) * v0 - u**3 * (4 - 7 * u + 3 * u**2) * v1
    bends = u**2 * (1 - u) ** 3 * a0 + u**3 * (1 - u) ** 2 * a1
    return np.asarray(x0 + rise * (x1 - x0) + step * slopes + step**2 / 2 * bends)


def linear(times: Array, values: Array, wanted: Array) -> Array:
    """Return values (T, n) at ``wanted`` times (T,), linear between the samples (N, n).

    Example:
        >>> linear(np.array([0.0, 1.0]), np.array([[0.0], [2.0]]), np.array([0.25])).tolist()
        [[0.5]]
    """
    return np.stack([np.interp(wanted, times, column) for column in values.T], axis=1)


def _deviation(times: Array) -> float:
    """Return the largest deviation of times from equal steps, in s."""
    k = np.arange(len(times))
    return float(np.abs(times - np.polyval(np.polyfit(k, times, 1), k)).max())


def _resolution(times: Array) -> float:
    """Return half of the smallest decimal step that all times are multiples of, in s."""
    for digits in range(9):
        if np.abs(times * 10**digits - np.round(times * 10**digits)).max() < 1e-3:
            return 0.5 * 10.0**-digits
    return 0.0
