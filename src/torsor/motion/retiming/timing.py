"""The timing s(t) of a path: in each interval s'' is a linear function of s, so that all is known in closed form.

With the rate v = s' and u = s'' at the start of an interval and w = du/ds in it, v'' = w v in time, so that

    s = v S + u E,    s' = v + w v E + u S,    s'' = u + w (v S + u E),    s''' = w s'

with S = sinh(k t) / k and E = (cosh(k t) - 1) / w for k^2 = w, of sin and cos where w < 0. For w = 0, s'' is constant.
Intervals from and to rest have a constant s''' instead where s'' is to be continuous: x = s'^2 grows with the power 4/3
of the way.
"""

from typing import NamedTuple

import numpy as np

from torsor.arrays import Array, Indices

_SMALL = 1e-3  # of the angle below which a series is exact to rounding
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


class Timing(NamedTuple):
    """A timing: ``times`` (G + 1), ``s``, ``x`` = s'^2 at knots; ``u`` and ``w`` (G) of intervals.

    ``rest`` (G) is 1 for an interval from rest and -1 for one to rest with a constant s''', else 0.
    """

    times: Array
    s: Array
    x: Array
    u: Array
    w: Array
    rest: Indices

    @classmethod
    def steps(cls, s: Array, x: Array) -> "Timing":
        """Return the timing with a constant s'' in each interval.

        Example:
            >>> timing = Timing.steps(np.array([0.0, 1.0, 2.0]), np.array([0.0, 4.0, 4.0]))
            >>> timing.times.tolist(), timing.u.tolist()
            ([0.0, 1.0, 1.5], [2.0, 0.0])
        """
        h, rate = np.diff(s), np.sqrt(x)
        none = np.zeros(len(h))
        times = np.concatenate([[0.0], np.cumsum(2 * h / (rate[1:] + rate[:-1]))])
        return cls(times, s, x, np.diff(x) / (2 * h), none, none.astype(int))

    @classmethod
    def smooth(cls, s: Array, x: Array, u: Array) -> "Timing":
        """Return the timing with a continuous s'', u (G + 1) at the knots; ends with x = 0 have a constant s'''.

        Example:
            >>> x = np.array([0.0, 1.0, 1.0, 0.0])
            >>> timing = Timing.smooth(np.arange(4.0), x, np.array([0.0, 2 / 3, -2 / 3, 0.0]))
            >>> timing.rest.tolist(), timing.times.round(6).tolist()  # 3 / s' at the end of an interval from rest
            ([1, 0, -1], [0.0, 3.0, 3.9069, 6.9069])
        """
        h, rate, rest = np.diff(s), np.sqrt(x), np.zeros(len(s) - 1, dtype=int)
        rest[0], rest[-1] = int(x[0] == 0), -int(x[-1] == 0)
        w = np.where(rest == 0, np.diff(u) / h, 0.0)
        first, v = u[:-1], rate[:-1]
        used = np.where(rest == 0, 2 * h / (rate[1:] + v), 0.0)
        for _ in range(_ROUNDS):
            S, E = flow(w, used)
            change = np.where(rest == 0, v * S + first * E - h, 0.0) / (v + w * v * E + first * S + (rest != 0))
            used = used - change
            if np.abs(change).max() <= 1e-15 * used.max():
                break
        used = np.where(rest == 0, used, 3 * h / np.where(rest == 1, rate[1:], rate[:-1] + (rest == 0)))
        return cls(np.concatenate([[0.0], np.cumsum(used)]), s, x, first, w, rest)

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
        acceleration, jerk = u + w * way, w * rate
        if self.rest.any():
            from_rest, to_rest = self.rest[k] > 0, self.rest[k] < 0
            h, whole = self.s[k + 1] - self.s[k], self.times[k + 1] - self.times[k]
            left = np.where(from_rest, time, whole - time)  # from or to the rest
            constant = 6 * h / whole**3
            way = np.where(from_rest, constant * left**3 / 6, np.where(to_rest, h - constant * left**3 / 6, way))
            rate = np.where(from_rest | to_rest, constant * left**2 / 2, rate)
            sign = np.where(from_rest, 1.0, -1.0)
            acceleration = np.where(from_rest | to_rest, sign * constant * left, acceleration)
            jerk = np.where(from_rest | to_rest, constant, jerk)
        return self.s[k] + way, np.maximum(rate, 0.0), acceleration, jerk
