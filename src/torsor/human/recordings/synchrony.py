"""Whether forces and markers are of the same time: the ground's force accelerates the body.

    sum of forces = m a + constant        a: vertical and horizontal accelerations of the markers of the upper body

Both are compared at several shifts in time, as far as both feet are on plates. The force is averaged with the same
weights as the second differences of the markers average accelerations.
"""

import numpy as np

from torsor.base.arrays import Array
from torsor.human.recordings.axes import up_axis
from torsor.human.recordings.findings import Finding, finding
from torsor.human.recordings.forces import GroundForces
from torsor.human.recordings.markers import Markers, runs

SPAN = 0.04  # s: the step of second differences
UPPER = 0.5  # of the height of the highest marker: those above it move as the centre of mass does
FULL = 0.5  # of the largest sum of forces: less is there only while a foot is on no plate
MIN_COMMON_TIME = 0.4  # s of common time
SHIFTS = np.linspace(-0.15, 0.15, 61)  # s
LATE = 0.03  # s: the least shift that is named; the best one of clean recordings is within 10 ms
AGREE, BETTER = 0.6, 0.1  # part of the variance that is left at the best shift, and how much less that is than now


def synchrony_findings(forces: GroundForces, markers: Markers) -> list[Finding]:
    """Return a finding where forces and accelerations of markers agree much better at other times.

    Example:
        >>> t = np.arange(300) / 100
        >>> y = 1.0 + 0.02 * np.sin(9 * t)
        >>> body = Markers(["C7"], t, np.stack([0 * t, y, 0 * t], axis=1)[:, None], axes="forward up right")
        >>> late = 700.0 - 70 * 0.02 * 81 * np.sin(9 * (t - 0.06))
        >>> force, zero = np.stack([0 * t, late, 0 * t], axis=1)[:, None], np.zeros((300, 1, 3))
        >>> plate = GroundForces(["plate 1"], t, force, zero, zero, axes="forward up right")
        >>> [each.kind for each in synchrony_findings(plate, body)]
        ['times']
    """
    left = _disagreement(forces, markers)
    if not np.isfinite(left).any():
        return []
    best, now = int(np.nanargmin(left)), int(np.argmin(np.abs(SHIFTS)))
    shift = float(SHIFTS[best])
    if abs(shift) < LATE or left[best] > AGREE or not left[now] - left[best] > BETTER:
        return []
    way = "before" if shift > 0 else "after"
    text = f"forces are about {1000 * abs(shift):.0f} ms {way} the motion that they make"
    fix = f"add {shift:.3f} s to the times of the forces, or synchronise the two files"
    return finding("times", [text], forces.source, fix)


def _disagreement(forces: GroundForces, markers: Markers) -> Array:
    """Return the part of the variance of the forces that accelerations at each shift leave, NaN where nothing tells."""
    found, up = np.full(len(SHIFTS), np.nan), up_axis(forces.axes)
    if up is None or min(markers.rate, forces.rate) * SPAN < 1:
        return found
    a, step = _accelerations(markers, up), round(SPAN * markers.rate) / markers.rate
    whole = np.where(forces.loaded()[:, :, None], forces.forces, 0.0).sum(axis=1)
    upward = whole[:, up[0]] * up[1]
    full = runs(np.asarray(upward > FULL * np.quantile(upward, 0.95)))
    if not full:
        return found
    width = max(1, round(step * forces.rate))
    weights = np.convolve(np.ones(width), np.ones(width)) / width**2
    mean = np.stack([np.convolve(column, weights, "same") for column in whole.T], axis=1)
    first, last = max(full, key=lambda run: run[1] - run[0])
    times, mean = forces.times[first : last + 1], mean[first : last + 1]
    for k, shift in enumerate(SHIFTS):
        there = np.stack([np.interp(times + shift, markers.times, column, np.nan, np.nan) for column in a.T], axis=1)
        known = np.isfinite(there).all(axis=1)
        if known.sum() > MIN_COMMON_TIME * forces.rate:
            x, y = there[known] - there[known].mean(axis=0), mean[known] - mean[known].mean(axis=0)
            mass = max(0.0, float((x * y).sum() / max((x * x).sum(), 1e-30)))
            found[k] = ((y - mass * x) ** 2).sum() / max((y**2).sum(), 1e-30)
    return found


def _accelerations(markers: Markers, up: tuple[int, float]) -> Array:
    """Return the accelerations (K, 3) of the mean of the upper markers; NaN at the ends and in gaps."""
    heights = np.where(markers.seen, up[1] * markers.positions[:, :, up[0]], -np.inf)
    middle = np.median(heights, axis=0)
    x = markers.positions[:, middle > UPPER * middle.max()].mean(axis=1)
    half, found = max(1, round(SPAN * markers.rate)), np.full((len(markers), 3), np.nan)
    if len(markers) > 2 * half:
        found[half:-half] = (x[2 * half :] - 2 * x[half:-half] + x[: -2 * half]) * (markers.rate / half) ** 2
    return found
