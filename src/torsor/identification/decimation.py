"""The parallel filter: forces and regressor pass the same low-pass filter, and few samples of them are left.

tau = Y x holds for filtered tau and Y as well. Beyond the band of the motion there is only noise, which the filter
removes from both sides, so that what is left is nearly white at the lower rate. Gautier 1997 (the "parallel decimate
filter" of the IDIM method).
"""

from itertools import pairwise

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, describe

LOBES = 4  # zero crossings of the filter on each side of its centre
ROLL_OFF = 0.4  # of the filter: half the width of its edge over its cutoff
EQUAL = 1e-3  # fraction of a step by which steps may differ


def stretches(times: Array | None, count: int) -> list[slice]:
    """Return the parts of ``count`` samples whose ``times`` (N,) have equal steps: one part without times.

    Example:
        >>> stretches(np.array([0.0, 0.1, 0.2, 1.0, 1.1]), 5)
        [slice(0, 3, None), slice(3, 5, None)]
    """
    if times is None or count < 3:
        return [slice(0, count)]
    steps = np.diff(times)
    usual = float(np.median(steps))
    breaks = np.flatnonzero(np.abs(steps - usual) > EQUAL * abs(usual)) + 1
    ends = [0, *breaks.tolist(), count]
    return [slice(start, stop) for start, stop in pairwise(ends)]


def factor_of(times: Array | None, bandwidth: float, where: str) -> int:
    """Return every which sample is kept for a ``bandwidth`` (Hz) of half the rate that is left.

    Example:
        >>> factor_of(np.arange(9) / 1000, 20.0, "arm")
        25
    """
    if times is None:
        fix = "give the times of the samples: Measurements(..., times=t)"
        raise ModelError(describe("a bandwidth without times of the samples", where=where, fix=fix))
    step = float(np.median(np.diff(times))) if len(times) > 1 else 0.0
    if not step > 0:
        raise ModelError(describe("the times of the samples do not increase", where=where, allowed="equal steps"))
    return max(1, round(1 / (2 * bandwidth * step)))


def decimated(x: Array, parts: list[slice], factor: int) -> Array:
    """Return samples x (N, ...) after the filter, every ``factor``-th of each part (M, ...).

    The filter is a root-raised cosine: white noise is white after it too. Its gain is 0.71 at half the rate that is
    left. Each part loses ``LOBES`` samples of the new rate at both of its ends.

    Example:
        >>> line = np.arange(100.0)
        >>> decimated(line, [slice(0, 100)], 5).round(9).tolist()[:3]
        [19.5, 24.5, 29.5]
    """
    if factor == 1:
        return np.concatenate([x[part] for part in parts])
    h = _taps(factor)
    found = []
    for part in parts:
        own = x[part]
        blocks = len(own) // factor
        if blocks >= len(h):
            split = own[: blocks * factor].reshape(blocks, factor, -1)
            count = blocks - len(h) + 1
            # Rows of h times blocks of samples: a product for each lobe half.
            whole = sum(np.matmul(h[p], split[p : p + count]) for p in range(len(h)))
            found.append(np.asarray(whole).reshape(count, *x.shape[1:]))
    return np.concatenate(found) if found else np.empty((0, *x.shape[1:]))


def kept(weights: Array, parts: list[slice], factor: int) -> Array:
    """Return the weights (M, nv) of the decimated samples: 0 where any sample of the filter has the weight 0.

    Example:
        >>> weights = np.ones((100, 1))
        >>> weights[50] = 0
        >>> kept(weights, [slice(0, 100)], 5).ravel().tolist()
        [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0]
    """
    if factor == 1:
        return decimated(weights, parts, 1)
    size, found = 2 * LOBES, []
    for part in parts:
        own = weights[part]
        blocks = len(own) // factor
        if blocks >= size:
            least = own[: blocks * factor].reshape(blocks, factor, -1)
            windows = np.lib.stride_tricks.sliding_window_view(least.min(axis=1), size, axis=0)
            means = np.lib.stride_tricks.sliding_window_view(least.mean(axis=1), size, axis=0)
            found.append(np.where(windows.min(axis=-1) > 0, means.mean(axis=-1), 0.0))
    return np.concatenate(found) if found else np.empty((0, weights.shape[1]))


def decimated_parts(parts: list[slice], factor: int) -> list[slice]:
    """Return where the samples of each part are after ``decimated``.

    Example:
        >>> decimated_parts([slice(0, 100), slice(100, 160)], 5)
        [slice(0, 13, None), slice(13, 18, None)]
    """
    lost = 2 * LOBES - 1 if factor > 1 else 0
    counts = [max(0, (part.stop - part.start) // factor - lost) for part in parts]
    ends = np.concatenate([[0], np.cumsum(counts)]).tolist()
    return [slice(start, stop) for start, stop in pairwise(ends) if stop > start]


def _taps(factor: int) -> Array:
    """Return the filter as rows (2 LOBES, factor), with the sum 1."""
    count = 2 * LOBES * factor
    t = (np.arange(count) - (count - 1) / 2) / factor
    edge = np.abs(np.abs(4 * ROLL_OFF * t) - 1) < 1e-9  # 0 / 0 there and at t = 0
    x = np.pi * np.where(edge | (t == 0), 0.5, t)
    ordinary = (np.sin(x * (1 - ROLL_OFF)) + 4 * ROLL_OFF * x / np.pi * np.cos(x * (1 + ROLL_OFF))) / (
        x * (1 - (4 * ROLL_OFF * x / np.pi) ** 2)
    )
    angle = np.pi / (4 * ROLL_OFF)
    limit = ROLL_OFF / np.sqrt(2) * ((1 + 2 / np.pi) * np.sin(angle) + (1 - 2 / np.pi) * np.cos(angle))
    h = np.where(t == 0, 1 - ROLL_OFF + 4 * ROLL_OFF / np.pi, np.where(edge, limit, ordinary))
    return np.asarray((h / h.sum()).reshape(2 * LOBES, factor))
