"""Spatio-temporal parameters of a measured gait, from heel strikes and toe-offs (plates or events).

Each heel strike defines a footprint, the position of the heel at that time. Three consecutive footprints (two of one
foot, with one of the other in between) define a stride from the first to the last, step lengths along the stride, and
the step width across it (Huxham et al. 2006).
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.human.body.coordinates import SIDES
from torsor.human.measured.marker_set import recognised
from torsor.human.recordings import Markers
from torsor.human.recordings.axes import HUMAN
from torsor.human.recordings.contacts import STRIDE_TIMES, Contact


class LegSteps(NamedTuple):
    """Means of one side (None: unknown), with times in s, lengths in m, and fractions of a stride in %.

    ``step_length`` is the length of steps that end with a heel strike of this foot. ``foot_off`` is the duration of the
    stance phase, and ``double_support`` is the time from a heel strike of this foot to the toe-off of the other foot.
    """

    strides: int = 0
    stride_time: float | None = None
    stride_length: float | None = None
    step_time: float | None = None
    step_length: float | None = None
    foot_off: float | None = None
    double_support: float | None = None


class SpatioTemporal(NamedTuple):
    """Means over all strides (None: unknown): ``speed`` (m/s), ``cadence`` (steps/min) and ``step_width`` (m).

    ``double_support`` is the time with both feet on the ground in % of a stride. ``right`` and ``left`` are the means
    of each side.
    """

    speed: float | None
    cadence: float | None
    step_width: float | None
    double_support: float | None
    right: LegSteps
    left: LegSteps

    def as_dict(self) -> dict[str, Any]:
        """Return the parameters as a dict of numbers, with a nested dict for each side."""
        return {**self._asdict(), "right": self.right._asdict(), "left": self.left._asdict()}

    @property
    def rows(self) -> list[tuple[str, float | None, float | None, float | None, int]]:
        """Return table rows: names with units, values of right, left and both sides, and number of decimals."""
        both = {"double_support": self.double_support, "foot_off": _mean([self.right.foot_off, self.left.foot_off])}
        rows: list[tuple[str, float | None, float | None, float | None, int]] = [
            ("walking speed, m/s", None, None, self.speed, 2),
            ("cadence, steps/min", None, None, self.cadence, 1),
        ]
        for name, title, places in _TITLES:
            values = (getattr(self.right, name), getattr(self.left, name))
            rows.append((title, *values, both[name] if name in both else _mean(values), places))
        return [*rows, ("step width, m", None, None, self.step_width, 3)]


_TITLES = (
    ("stride_time", "stride time, s", 3),
    ("stride_length", "stride length, m", 3),
    ("step_time", "step time, s", 3),
    ("step_length", "step length, m", 3),
    ("foot_off", "foot off (stance), % of the stride", 1),
    ("double_support", "double support, % of the stride", 1),
)


class _Print(NamedTuple):
    """A footprint: ``side``, times (s) of heel strike and toe-off, and position (2,) to the left and forward (m)."""

    side: str
    strike: float
    off: float | None
    place: Array


class Heel(NamedTuple):
    """The positions (K, 3) of a heel at ``times`` (K,): to the left, up and forward (m)."""

    times: Array
    places: Array


def heel_markers(recording: Markers | None) -> dict[str, Heel] | None:
    """Return the heel markers of both sides, or None if one of them is missing."""
    if recording is None or not recording.axes:
        return None
    turned, heels = recording.in_axes(HUMAN), dict[str, Heel]()
    for name in turned.names:
        key, side = recognised(name) or ("", "")
        seen = turned.seen[:, turned.index(name)]
        if key == "heel" and seen.any():
            heels.setdefault(side, Heel(turned.times[seen], turned.position(name)[seen]))
    return heels if set(SIDES) <= set(heels) else None


def spatio_temporal(heels: Mapping[str, Heel], feet: Mapping[str, Sequence[Contact]]) -> SpatioTemporal:
    """Return the spatio-temporal parameters of a walk, from the heels and the contacts of the ``feet`` by side.

    Example:
        >>> t = np.arange(300) / 100
        >>> counts = {side: np.floor(t - 0.5 * (side == "left")) for side in SIDES}  # strides of 1 s
        >>> heels = {side: Heel(t, np.stack([0 * t, 0 * t, 1.2 * n], axis=1)) for side, n in counts.items()}
        >>> first = {"right": 0.0, "left": 0.5}
        >>> feet = {side: [Contact(at + k, at + k + 0.6) for k in range(3)] for side, at in first.items()}
        >>> walk = spatio_temporal(heels, feet)
        >>> round(walk.speed, 2), round(walk.cadence)
        (1.2, 120)
    """
    prints = list[_Print]()
    for side, (t, places) in heels.items():
        for contact in feet.get(side, ()):
            if contact.strike is not None and t[0] <= contact.strike <= t[-1]:
                place = np.array([np.interp(contact.strike, t, places[:, k]) for k in (0, 2)])
                prints.append(_Print(side, contact.strike, contact.off, place))
    prints.sort(key=lambda one: one.strike)
    found = {side: _Sums() for side in SIDES}
    for first, second in pairwise(prints):
        gap = second.strike - first.strike
        if first.side != second.side and gap < STRIDE_TIMES[1] / 2:
            found[second.side].step_times.append(gap)
            if first.off is not None:
                found[second.side].overlaps.append(max(first.off - second.strike, 0.0))
    for k, first in enumerate(prints):
        later = [one for one in prints[k + 1 :] if one.side == first.side][:1]
        if later and STRIDE_TIMES[0] <= later[0].strike - first.strike <= STRIDE_TIMES[1]:
            _add_stride(found, first, later[0], [one for one in prints[k + 1 :] if one.strike < later[0].strike])
    every = [stride for sums in found.values() for stride in sums.strides]
    mean_time = _mean([time for time, _ in every])
    speed = None if mean_time is None else sum(length for _, length in every) / sum(time for time, _ in every)
    legs = [sums.mean(mean_time) for sums in found.values()]
    overlaps = [leg.double_support for leg in legs if leg.double_support is not None]
    double = sum(overlaps) if len(overlaps) == len(SIDES) else None
    widths = [width for sums in found.values() for width in sums.widths]
    return SpatioTemporal(speed, None if mean_time is None else 120 / mean_time, _mean(widths), double, *legs)


class _Sums:
    """Values of one side to average."""

    def __init__(self) -> None:
        self.strides, self.feet_off = list[tuple[float, float]](), list[float]()  # times and lengths; %
        self.step_times, self.step_lengths = list[float](), list[float]()
        self.widths, self.overlaps = list[float](), list[float]()

    def mean(self, stride_time: float | None) -> LegSteps:
        """Return the means; ``stride_time`` (s) is the mean of both sides."""
        overlap, times, lengths = _mean(self.overlaps), *([each[k] for each in self.strides] for k in (0, 1))
        double = None if overlap is None or stride_time is None else 100 * overlap / stride_time
        steps = _mean(self.step_times), _mean(self.step_lengths)
        return LegSteps(len(times), _mean(times), _mean(lengths), *steps, _mean(self.feet_off), double)


def _add_stride(found: Mapping[str, _Sums], first: _Print, last: _Print, between: Sequence[_Print]) -> None:
    """Add the stride between two footprints of a foot, and its two steps if there is one footprint in between."""
    time, way = last.strike - first.strike, last.place - first.place
    length, own = float(np.linalg.norm(way)), found[first.side]
    own.strides.append((time, length))
    if first.off is not None:
        own.feet_off.append(100 * (first.off - first.strike) / time)
    if len(between) != 1 or not length:
        return
    other, ahead = between[0], way / length
    step = other.place - first.place
    found[other.side].step_lengths.append(float(step @ ahead))
    own.step_lengths.append(length - float(step @ ahead))
    aside = float(step @ [ahead[1], -ahead[0]])  # leftward component
    own.widths.append(aside if other.side == "left" else -aside)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
