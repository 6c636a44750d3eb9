"""The timing s(t) of a path: in each interval s'' is a linear function of s, so that all is known in closed form.

With the rate v = s' and u = s'' at the start of an interval and w = du/ds in it, v'' = w v in time, so that

    s = v S + u E,    s' = v + w v E + u S,    s'' = u + w (v S + u E),    s''' = w s'

with S = sinh(k t) / k and E = (cosh(k t) - 1) / w for k^2 = w, of sin and cos where w < 0. For w = 0, s'' is constant.
Where s'' is to be continuous, all this is of a progress p from which s follows (``stretched``): near rest s is the
third power of p, so that a constant p' starts with a constant jerk.
"""

from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array, Indices

_SMALL = 1e-3  # of the angle below which a series is exact to rounding
_HALVES = 54  # to the rounding of p
_ROUNDS = 20  # Newton steps to the end of an interval; they converge in three or four


def flow(w: Array, time: Array) -> tuple[Array, Array]:
    """Return S and E of intervals at times after their start.

    Example:
        >>> [float(each.round(9)) for each in flow(np.array(0.0), np.array(2.0))]
        [2.0, 2.0]
    """
    half = time / 2
    angle, square = np.sqrt(np.abs(w)) * half, w * half * half
    safe = np.maximum(angle, _SMALL)
    near, grows = angle < _SMALL, w > 0
    with np.errstate(over="ignore"):
        sine = np.where(grows, np.sinh(safe), np.sin(safe)) * half / safe
        cosine = np.where(grows, np.cosh(safe), np.cos(safe))
    sine = np.where(near, half * (1 + square / 6 * (1 + square / 20)), sine)
    cosine = np.where(near, 1 + square / 2 * (1 + square / 12), cosine)
    return 2 * sine * cosine, 2 * sine * sine


def stretched(p: Array) -> Array:
    """Return the place s for a progress p, both from 0 to 1, and its first three derivatives by p (4, ...).

    s = 10 p^3 - 15 p^4 + 6 p^5, the smoothest step of degree 5: s' and s'' are 0 at both ends.

    Example:
        >>> stretched(np.array([0.0, 0.5])).tolist()
        [[0.0, 0.5], [0.0, 1.875], [0.0, 0.0], [60.0, -30.0]]
    """
    rest = p * (1 - p)
    return np.stack([p**3 * (10 - 15 * p + 6 * p * p), 30 * rest**2, 60 * rest * (1 - 2 * p), 60 * (1 - 6 * rest)])


def progress(s: Array) -> Array:
    """Return the progress p of places s, both from 0 to 1: the inverse of ``stretched``, by bisection.

    Example:
        >>> progress(np.array([0.0, 0.5, 0.896484375])).round(12).tolist()
        [0.0, 0.5, 0.75]
    """
    low, high = np.zeros_like(s), np.ones_like(s)
    for _ in range(_HALVES):
        middle = (low + high) / 2
        below = stretched(middle)[0] < s
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return high


class Timing(NamedTuple):
    """A timing: ``times`` (G + 1), ``s``, ``x`` = s'^2 at knots; ``u`` and ``w`` (G) of intervals.

    With ``stretch``, all of this is of the progress along the path, in the unit of s, and places are ``stretched``.
    """

    times: Array
    s: Array
    x: Array
    u: Array
    w: Array
    stretch: bool = False

    @classmethod
    def smooth(cls, s: Array, x: Array, u: Array) -> "Timing":
        """Return the timing of a progress s with continuous rates: x and u (G + 1) at the knots.

        Example:
            >>> Timing.smooth(np.arange(2.0), np.ones(2), np.array([2 / 3, -2 / 3])).times.round(6).tolist()
            [0.0, 0.9069]
        """
        h, rate, first = np.diff(s), np.sqrt(x), u[:-1]
        w, v = np.diff(u) / h, rate[:-1]
        used = 2 * h / (rate[1:] + v)
        for _ in range(_ROUNDS):
            S, E = flow(w, used)
            change = (v * S + first * E - h) / (v + w * v * E + first * S)
            used = used - change
            if np.abs(change).max() <= 1e-15 * used.max():
                break
        return cls(np.concatenate([[0.0], np.cumsum(used)]), s, x, first, w, True)

    @property
    def duration(self) -> float:
        """The duration, in s."""
        return float(self.times[-1])

    def interval(self, t: Array) -> Indices:
        """Return the intervals of times."""
        return np.clip(np.searchsorted(self.times, t, side="right") - 1, 0, len(self.u) - 1)

    def at(self, t: Array, k: Indices) -> tuple[Array, Array, Array, Array]:
        """Return s, s', s'' and s''' at times (...), in intervals k (...)."""
        time = t - self.times[k]
        v, u, w = np.sqrt(self.x[k]), self.u[k], self.w[k]
        S, E = flow(w, time)
        way, rate = v * S + u * E, v + w * v * E + u * S
        found = self.s[k] + way, np.maximum(rate, 0.0), u + w * way, w * rate
        return self._stretched(*found) if self.stretch else found

    def along(self, p: Array, k: Indices) -> tuple[Array, Array, Array, Array]:
        """Return s, s', s'' and s''' at places or progresses p (...) as those of the knots, in intervals k (...)."""
        way, u, w = p - self.s[k], self.u[k], self.w[k]
        rate = np.sqrt(np.maximum(self.x[k] + way * (2 * u + way * w), 0.0))
        found = p, rate, u + way * w, w * rate
        return self._stretched(*found) if self.stretch else found

    def reached(self, s: Array) -> Array:
        """Return the places or progresses p, as those of the knots, of places s."""
        first, length = self.s[0], self.s[-1] - self.s[0]
        return first + length * progress((s - first) / length) if self.stretch else s

    def _stretched(self, p: Array, rate: Array, u: Array, jerk: Array) -> tuple[Array, Array, Array, Array]:
        """Return s and its rates from the progress and its rates."""
        first, length = self.s[0], self.s[-1] - self.s[0]
        s, g1, g2, g3 = stretched((p - first) / length)
        g2, g3 = g2 / length, g3 / length**2
        higher = g1 * jerk + 3 * g2 * rate * u + g3 * rate**3
        return first + length * s, g1 * rate, g1 * u + g2 * rate**2, higher
