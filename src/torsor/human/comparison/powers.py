"""Powers of joints from recorded angles and moments: the sum over the axes of a joint of moment times angular rate."""

from collections.abc import Mapping, Sequence

import numpy as np

from torsor.human.comparison.signals import Signals
from torsor.human.comparison.strides import Signal, Span
from torsor.human.comparison.units import Scale

AXES = {
    "hip_power": ("hip_flexion", "hip_adduction", "hip_rotation"),
    "knee_power": ("knee_flexion",),
    "ankle_power": ("ankle_flexion", "ankle_inversion"),
}
CUTOFF, ORDER = 6.0, 3  # Hz, and the order of one pass, as in inverse dynamics of walking (Winter 2009)
FEWEST = 8  # samples that a rate is taken from


def powers_of(signals: Signals, spans: Sequence[Span]) -> dict[str, tuple[Signal, Scale]]:
    """Return the powers of hip, knee and ankle, of those axes whose angle and moment are both known.

    A joint without its first axis has none.
    """
    found: dict[str, tuple[Signal, Scale]] = {}
    scale = signals.scales.get("moment")
    for name, axes in AXES.items():
        if scale is None or axes[0] not in signals.moments or axes[0] not in signals.angles:
            continue
        times = signals.moments[axes[0]].times
        total = np.zeros(len(times))
        for axis in axes:
            if axis in signals.moments and axis in signals.angles:
                rate = _rate(axis, signals.angles, signals.rates, spans)
                moment = np.interp(times, *signals.moments[axis])
                total += moment * np.interp(times, *rate, left=np.nan, right=np.nan)
        found[name] = Signal(times, total), Scale("power", scale.factor, scale.absolute)
    return found


def _rate(axis: str, angles: Mapping[str, Signal], rates: Mapping[str, Signal], spans: Sequence[Span]) -> Signal:
    """Return the rate (rad/s) of an angle, NaN where the angle is missing.

    One whole stride that ends as it began is periodic; other recordings pass a filter of 6 Hz.
    """
    from torsor.identification.differentiation import differentiate  # not needed by most who import the human

    if axis in rates:
        return rates[axis]
    times, angle = angles[axis]
    known = np.isfinite(angle)
    if known.sum() < FEWEST:
        return Signal(times, np.full(len(times), np.nan))
    t = np.linspace(times[0], times[-1], len(times))
    x = np.radians(np.interp(t, times[known], angle[known]))
    nyquist = 0.5 * (len(t) - 1) / float(t[-1] - t[0])
    if len(spans) == 1 and np.isclose(np.diff(spans[0])[0], t[-1] - t[0]) and angles[axis].is_closed:
        found = differentiate(t[:-1], x[:-1, None], nyquist, periodic=True, order=12)[1][:, 0]
        rate = np.append(found, found[0])
    else:
        rate = differentiate(t, x[:, None], min(CUTOFF, nyquist), order=ORDER, ends="straight")[1][:, 0]
    return Signal(times, np.where(known, np.interp(times, t, rate), np.nan))
