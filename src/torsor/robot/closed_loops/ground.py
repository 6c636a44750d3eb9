"""Wheels in messages: which of them is off the ground, lies flat, or slips."""

from collections.abc import Iterator

import numpy as np

from torsor.base.arrays import Array
from torsor.mechanism import Mechanism, Wheel


def off_ground(mechanism: Mechanism, error: Array, most: float) -> str:
    """Return what is wrong with a wheel at a closure error (..., c), or nothing; ``most`` (m) is the largest height."""
    for wheel, rows in _wheels(mechanism):
        heights = error[..., rows.start].ravel()
        if np.isnan(heights).any():
            return f"wheel {wheel.name!r} lies flat: its axle is normal to its ground"
        far = float(heights[np.abs(heights).argmax()]) if heights.size else 0.0
        if abs(far) > most:
            return f"wheel {wheel.name!r} is {abs(far):.3g} m {'above' if far > 0 else 'below'} its ground"
    return ""


def sliding(mechanism: Mechanism, rate: Array, least: float) -> str:
    """Return which wheel slips at the rates (..., c) of the closure equations, or nothing; ``least`` is in m/s."""
    for wheel, rows in _wheels(mechanism):
        slip = float(np.linalg.norm(rate[..., rows], axis=-1).max(initial=0.0))
        if slip > least:
            return f"let wheel {wheel.name!r} slip by {slip:.3g} m/s"
    return ""


def _wheels(mechanism: Mechanism) -> Iterator[tuple[Wheel, slice]]:
    """Yield the wheels with their rows of the closure equations."""
    first = 0
    for loop in mechanism.loops:
        if isinstance(loop, Wheel):
            yield loop, slice(first, first + loop.count)
        first += loop.count
