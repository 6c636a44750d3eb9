"""Strides of a recording: heel strikes by the ground's force on a foot, and curves from heel strike to heel strike."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import real_array
from torsor.base.errors import ModelError, describe
from torsor.human.recordings.markers import runs

COUNT = 401  # instants of a stride, as of ``Stride``
LOADED = 0.025  # of the largest vertical force: 20 N, the usual threshold of gait events, for a person of 70 kg
SHORTEST_CONTACT = 0.1  # s; shorter ones are vibrations of a plate
STRIDE = (0.4, 2.5)  # s: from a fast run to a very slow walk
CLOSED = 0.02  # of the range of a curve: one stride ends as it began
AT_END = 0.015  # of the stride: a heel strike this near to the ends of a closed recording is at the ends

Span = tuple[float, float]


class Signal(NamedTuple):
    """A quantity over time: ``values`` (K,) at ``times`` (K,), NaN where it is missing."""

    times: Array
    values: Array

    @property
    def is_closed(self) -> bool:
        """Whether the last value is the first one, as of one whole stride."""
        if not np.isfinite(self.values).all():
            return False
        return bool(abs(self.values[-1] - self.values[0]) <= CLOSED * np.ptp(self.values))

    def covers(self, span: Span) -> bool:
        """Whether it is known from start to end of a span, but for half a sample."""
        return bool(self.times[0] <= span[0] + self._slack and span[1] - self._slack <= self.times[-1])

    @property
    def _slack(self) -> float:
        return 0.5 * float(np.median(np.diff(self.times))) if len(self.times) > 1 else 0.0

    def over(self, span: Span) -> Array:
        """Return the values (401,) at equal steps of a stride; NaN next to missing values.

        Where it begins within the stride, or ends there, the rest is of the stride after or before.
        """
        at, length = np.linspace(*span, COUNT), span[1] - span[0]
        if not self.covers(span):
            at = np.where(at < self.times[0], at + length, at)
            at = np.where(at > self.times[-1], at - length, at)
        known = np.isfinite(self.values)
        found = np.interp(at, self.times, np.where(known, self.values, 0.0))
        missing = np.interp(at, self.times, np.where(known, 0.0, 1.0)) > 0
        missing |= (at < self.times[0] - self._slack) | (at > self.times[-1] + self._slack)
        return np.where(missing, np.nan, found)


def check_length(times: Array, where: str) -> None:
    """Raise ModelError if times (K,) are shorter than any stride.

    Example:
        >>> check_length(np.array([0.0, 0.1]), "walk.mot")
        Traceback (most recent call last):
        torsor.ModelError: walk.mot: too short for one stride: 0 to 0.1 s; allowed: 0.4 s or more
    """
    if times[-1] - times[0] < STRIDE[0]:
        found = f"too short for one stride: {times[0]:g} to {times[-1]:g} s"
        raise ModelError(describe(found, where=where, allowed=f"{STRIDE[0]:g} s or more"))


def heel_strikes(vertical: Signal, where: str) -> list[float]:
    """Return the times (s) at which a foot begins to carry load, by its vertical force in any unit.

    Example:
        >>> t = np.arange(300) / 100
        >>> [round(each, 2) for each in heel_strikes(Signal(t, np.maximum(np.sin(2 * np.pi * t), 0.0)), "walk")]
        [0.0, 1.0, 2.0]
    """
    t, force = vertical
    check_length(t, where)
    if not np.isfinite(force).all():
        k = int(np.argmin(np.isfinite(force)))
        raise ModelError(describe(f"the vertical force is missing at {t[k]:g} s (row {k + 1})", where=where))
    peak = float(force.max())
    if peak <= 0:
        found = f"the vertical force is never positive (largest {peak:g})"
        fix = "the ground pushes people up: check axes and signs of the plates"
        raise ModelError(describe(found, where=where, fix=fix))
    level = LOADED * peak
    found_at = []
    for first, last in runs(np.asarray(force > level)):
        if first and t[last] - t[first] >= SHORTEST_CONTACT:
            low, high = force[first - 1], force[first]
            found_at.append(float(t[first - 1] + (t[first] - t[first - 1]) * (level - low) / (high - low)))
    return found_at


def spans_of(vertical: Signal, others: Sequence[Signal], side: str, where: str) -> list[Span]:
    """Return start and end (s) of the strides between heel strikes of a foot.

    A recording that ends as it began, in the vertical force and in the ``others``, and has no two heel strikes within,
    is one stride, and goes on with its beginning.
    """
    strikes = heel_strikes(vertical, where)
    spans = [(a, b) for a, b in pairwise(strikes) if STRIDE[0] <= b - a <= STRIDE[1]]
    if spans:
        return spans
    first, last = float(vertical.times[0]), float(vertical.times[-1])
    length = last - first
    if STRIDE[0] <= length <= STRIDE[1] and all(each.is_closed for each in (vertical, *others)):
        off = [at for at in strikes if min(at - first, last - at) > AT_END * length]
        return [(off[0], off[0] + length)] if off else [(first, last)]
    at = ", ".join(f"{each:.3g}" for each in strikes) or "none"
    found = f"too short for one stride of the {side} foot: {first:g} to {last:g} s, heel strikes at {at}"
    allowed = f"two heel strikes of a foot, {STRIDE[0]:g} to {STRIDE[1]:g} s apart"
    raise ModelError(
        describe(found, where=where, allowed=allowed, fix="a longer recording, the other side, or strikes=")
    )


def given_spans(strikes: Sequence[float], where: str) -> list[Span]:
    """Return start and end (s) of the strides between given heel strikes."""
    times = real_array(strikes, where, "strikes")
    if times.ndim != 1 or len(times) < 2 or not np.isfinite(times).all() or (np.diff(times) <= 0).any():
        allowed = "two or more increasing times (s)"
        raise ModelError(describe(f"strikes is {times.tolist()}", where=where, allowed=allowed))
    return [(float(a), float(b)) for a, b in pairwise(times)]


def of_strides(signal: Signal, spans: Sequence[Span]) -> Array:
    """Return a curve (N, 401) over those of the strides in which it is known throughout.

    If there are none, a recording that is as long as a stride is one, joined where it ends.
    """
    rows = [each for span in spans if signal.covers(span) and np.isfinite(each := signal.over(span)).all()]
    rows = rows or [each for each in map(signal.over, spans) if np.isfinite(each).all()]
    return np.array(rows).reshape(-1, COUNT)
