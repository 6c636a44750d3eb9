"""Signals: functions of time defined by samples, with polynomials between them.

A compiled step cannot look up a table. Instead, the polynomial for the time of the step is an input (``window``), so
that the same kernel is used for signals of any length.
"""

from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import real_array
from torsor.base.errors import ModelError, warn
from torsor.base.time_series import ROUNDING, derivative_factors, polynomials

CUBIC = 4  # number of points that determine a cubic
UNLIKE, STILL = 0.3, 1e-3  # relative difference of rates that is reported, and relative rate of a joint at rest
MOTION, LINEAR = 3, 1  # number of quantities that are continuous at the samples: q, v and a, or values alone


class Signal:
    """Polynomials between increasing ``breaks`` (S + 1,), in s; before and after them, the signal is constant.

    ``pieces`` (S + 2, powers, n) are coefficients of powers of the time since ``starts`` (S + 2,). The first and last
    pieces are the constants.

    Example:
        >>> ramp = Signal.joined(np.array([0.0, 2.0]), [np.array([[0.0], [4.0]])])
        >>> ramp.at(0.5, 2)[:, 0].tolist(), ramp.at(3.0, 2)[:, 0].tolist()
        ([1.0, 2.0], [4.0, 0.0])
        >>> ramp.window(0.5, 0.6)[:, 0].tolist()  # from 0 s: 0 + 2 t
        [0.0, 0.0, 2.0]
    """

    def __init__(self, breaks: Array, pieces: Array):
        if not np.isfinite(pieces).all():
            k = int(np.argwhere(~np.isfinite(pieces))[0, 0])
            text = f"the values from {breaks[k]:.6g} s to {breaks[k + 1]:.6g} s are too steep to compute with"
            raise ModelError(text, where="samples", fix="check the unit of the times, or remove one of the samples")
        first, last = np.zeros_like(pieces[:1]), np.zeros_like(pieces[:1])
        first[0, 0], last[0, 0] = pieces[0, 0], polynomials(pieces[-1], breaks[-1] - breaks[-2], 1)[0]
        self.breaks, self.pieces = breaks, np.concatenate([first, pieces, last])
        self.starts: Array = np.concatenate([breaks[:1], breaks])
        self._edges = breaks.copy()
        self._edges[-1] += ROUNDING * (breaks[-1] - breaks[0])  # the end belongs to the last piece

    @classmethod
    @np.errstate(all="ignore")  # the result is checked
    def joined(cls, times: Array, left: list[Array], right: list[Array] | None = None) -> "Signal":
        """Return the signal with values and rates ``left`` ((T, n) each) just after the samples at ``times`` (T,).

        ``right`` are the values and rates (T - 1, n) at the end of each interval. By default, the signal and its rates
        are continuous.
        """
        ends = [each[1:] for each in left] if right is None else right
        first, last = np.stack([each[:-1] for each in left], axis=-2), np.stack(ends, axis=-2)
        return cls(times, _hermite(first, last, np.diff(times)))

    @classmethod
    @np.errstate(all="ignore")
    def through(cls, times: Array, q: Array) -> "Signal":
        """Return the cubic spline through q (T, n), whose end slopes are those of cubics through four points."""
        # A quintic with the values, slopes and accelerations of a cubic at both ends equals that cubic.
        h, steep = np.diff(times)[:, None], np.diff(q, axis=0) / np.diff(times)[:, None]
        slopes = np.empty_like(q)
        slopes[0], slopes[-1] = _slope(times[:CUBIC], q[:CUBIC], 0), _slope(times[-CUBIC:], q[-CUBIC:], -1)
        # Continuity of accelerations determines h_k m_k-1 + 2 (h_k-1 + h_k) m_k + h_k-1 m_k+1; eliminate from the left.
        factors = np.zeros_like(h)
        for k in range(1, len(times) - 1):
            before, after = h[k - 1, 0], h[k, 0]
            known = 3 * (after * steep[k - 1] + before * steep[k]) - after * slopes[k - 1]
            pivot = 2 * (before + after) - after * factors[k - 1, 0]
            slopes[k], factors[k] = known / pivot, before / pivot
        for k in reversed(range(1, len(times) - 1)):
            slopes[k] -= factors[k] * slopes[k + 1]
        a = np.empty_like(q)
        a[:-1] = (6 * steep - 4 * slopes[:-1] - 2 * slopes[1:]) / h
        a[-1] = (-6 * steep[-1] + 2 * slopes[-2] + 4 * slopes[-1]) / h[-1]
        return cls.joined(times, [q, slopes, a])

    @property
    def size(self) -> tuple[int, int]:
        """Shape of a ``window``."""
        return 1 + self.pieces.shape[-2], self.pieces.shape[-1]

    def at(self, t: Any, orders: int = MOTION) -> Array:
        """Return the values and their rates (..., orders, n) at times t (...)."""
        k = np.searchsorted(self._edges, t, side="right")
        return polynomials(self.pieces[k], np.asarray(t) - self.starts[k], orders)

    def window(self, start: Any, end: Any) -> Array:
        """Return the polynomials (..., 1 + powers, n) from ``start`` (...) to ``end`` (...).

        The first row is their start time; the other rows are coefficients. If there is no break in between, the
        polynomials equal the signal. Otherwise, they match its values and rates at both ends.
        """
        start, end = np.broadcast_arrays(np.asarray(start, dtype=float), np.asarray(end, dtype=float))
        first = np.searchsorted(self._edges, start, side="right")
        last = np.maximum(first, np.searchsorted(self._edges, end, side="left"))
        result = np.empty((*start.shape, *self.size))
        result[..., 0, :], result[..., 1:, :] = self.starts[first][..., None], self.pieces[first]
        across = first < last
        if across.any():
            orders = self.pieces.shape[-2] // 2
            left, right = (
                polynomials(self.pieces[k[across]], (t - self.starts[k])[across], orders)
                for k, t in ((first, start), (last, end))
            )
            result[across, 0, :] = start[across][..., None]
            result[across, 1:, :] = _hermite(left, right, (end - start)[across])
        return result


def polynomial(t: ca.SX, window: ca.SX) -> ca.SX:
    """Return the values (n x 1) of a ``Signal`` at a time t within a window."""
    x, value = t - window[0, 0], window[window.size1() - 1, :]
    for k in reversed(range(1, window.size1() - 1)):
        value = window[k, :] + x * value
    return value.T


def _hermite(left: Array, right: Array, h: Array) -> Array:
    """Return coefficients (..., 2 orders, n) of polynomials with rates (..., orders, n) at 0 and at h (...)."""
    orders = left.shape[-2]
    factors = derivative_factors(2 * orders, orders)
    scale = h[..., None, None] ** np.arange(2 * orders)[:, None]
    near = left * scale[..., :orders, :] / np.diag(factors)[:, None]
    rest = right * scale[..., :orders, :] - factors[:, :orders] @ near
    far = np.linalg.solve(factors[:, orders:], rest)
    return np.asarray(np.concatenate([near, far], axis=-2) / scale)


def _slope(times: Array, q: Array, end: int) -> Array:
    """Return the slope (n,), at the point ``end``, of the polynomial through all points (Lagrange's formula)."""
    t, weights = times[end], np.zeros(len(times))
    for j in np.delete(np.arange(len(times)), end).tolist():
        rest = np.delete(times, [j, end])
        weights[j] = np.prod(t - rest) / (np.prod(times[j] - rest) * (times[j] - t))
    weights[end] = -weights.sum()
    return np.asarray(weights @ q)


def sampled_times(times: Any, where: str) -> Array:
    """Return the times (T,) of samples; raise ModelError unless they are finite and increase."""
    found = real_array(times, where, "times")
    text, allowed = f"times of shape {found.shape}", "2 or more increasing times"
    if found.ndim != 1 or len(found) < 2:
        raise ModelError(text, where=where, allowed=allowed)
    wrong = np.flatnonzero(~((np.diff(found) > 0) & np.isfinite(found[1:]) & np.isfinite(found[:-1])))
    if wrong.size:
        k = int(wrong[0])
        text = f"times[{k}] is {found[k]:.6g} s, and the next one is {found[k + 1]:.6g} s"
        raise ModelError(text, where=where, allowed=allowed)
    return found


def samples(given: Any, times: Array, count: int, where: str, name: str) -> Array:
    """Return samples (T, count), with one row for each time; a single column may have the shape (T,)."""
    rows = real_array(given, where, name)
    rows = rows[:, None] if rows.ndim == 1 and count == 1 else rows
    if rows.shape != (len(times), count):
        allowed = f"({len(times)}, {count}), a row for each time"
        raise ModelError(f"samples of shape {rows.shape}", where=where, allowed=allowed)
    if not np.isfinite(rows).all():
        raise ModelError(f"the samples of {name} are not finite", where=where, allowed="finite numbers")
    return rows


def check_duration(times: Array, duration: float, where: str) -> None:
    """Raise ModelError unless samples cover the duration of a simulation."""
    if times[0] > 0 or times[-1] < duration * (1 - 1e-12):
        found = f"samples from {times[0]:g} s to {times[-1]:g} s"
        raise ModelError(found, where=where, allowed=f"from 0 to the duration, {duration:g} s")


def warn_of_lost_samples(times: Array, step: float, where: str) -> None:
    """Warn if samples are closer together than the step (s), in which the signal is linear.

    A single short interval is a jump of the signal, so only the longer of two neighbouring intervals is considered.
    """
    gaps = np.diff(times)
    spacing = np.maximum(gaps[1:], gaps[:-1]).min(initial=np.inf)
    if spacing < step * (1 - 1e-6):
        found = f"samples are {spacing:.3g} s apart, closer than the step of {step:.3g} s, which skips some of them"
        fix = f"use `step={spacing:.3g}`, or samples {step:.3g} s apart, such as those of `retimed.sample(dt=...)`"
        warn(found, where=where, fix=fix)


def motion_signal(given: tuple[Any, ...], count: int, where: str) -> Signal:
    """Return the motion for (times, q), a cubic spline, or for (times, q, v, a), quintics between the samples."""
    if len(given) not in (2, 4):
        raise ModelError(f"{len(given)} arrays", where=where, allowed="(times, q) or (times, q, v, a)")
    times = sampled_times(given[0], where)
    rows = [samples(each, times, count, where, name) for name, each in zip("qva", given[1:], strict=False)]
    return Signal.through(times, rows[0]) if len(rows) == 1 else Signal.joined(times, rows)


def warn_of_rates(times: Array, rows: list[Array], where: str) -> None:
    """Warn if v (T, n) is not the derivative of q, or a is not that of v, because units or motions may differ."""
    h = np.diff(times)[:, None]
    for k, (name, rate) in enumerate(pairwise("qva")):
        changes, means = np.diff(rows[k], axis=0) / h, (rows[k + 1][1:] + rows[k + 1][:-1]) / 2
        wrong, *sizes = (np.sqrt(np.mean(each**2, axis=0)) for each in (changes - means, changes, means))
        size = np.maximum(*sizes)
        columns = np.flatnonzero((wrong > UNLIKE * size) & (size > STILL * size.max()))
        if columns.size:
            found = f"{rate} is not the derivative of {name} in column {columns[0]}: it differs by "
            found += f"{100 * wrong[columns[0]] / size[columns[0]]:.0f} %"
            fix = f"check the units of {rate}, or omit v and a: (times, q) is a spline"
            warn(found, where=where, fix=fix)
            return
