"""The motion in one interval of the path, where s'' is a linear function of s: in closed form."""

from math import cos, cosh, sin, sinh, sqrt
from typing import Protocol

_SMALL = 1e-3  # of the angle below which a series of two terms is exact to rounding
_ROUNDS = 20  # Newton steps to the end of an interval; they converge in three or four


def _flow(w: float, time: float) -> tuple[float, float]:
    """Return (S, E) of s'' = w s: sinh(k t) / k and (cosh(k t) - 1) / w with k^2 = w, of sin and cos where w < 0."""
    half = time / 2
    angle = sqrt(abs(w)) * half
    if angle < _SMALL:
        square = w * half * half
        sine, cosine = half * (1 + square / 6 * (1 + square / 20)), 1 + square / 2 * (1 + square / 12)
    elif w > 0:
        sine, cosine = sinh(angle) * half / angle, cosh(angle)
    else:
        sine, cosine = sin(angle) * half / angle, cos(angle)
    return 2 * sine * cosine, 2 * sine * sine


class Interval(Protocol):
    """The motion between two samples: the ``way`` from the first one, its rate and its acceleration."""

    way: float
    rate: float
    acceleration: float

    def advance(self, time: float) -> float:
        """Move on for a time (s); return the time that is left at the end of the interval, negative before the end."""
        ...


class Spline:
    """An interval with s'' = u + w (s - s_k), where x is a quadratic function of s."""

    def __init__(self, length: float, x: float, u: float, w: float, period: float):
        self.length, self.w = length, w
        self.way, self.rate, self.acceleration = 0.0, sqrt(x), u
        self._period, self._of_period = period, _flow(w, period)

    def advance(self, time: float) -> float:
        """Move on for a time; see ``Interval``."""
        S, E = self._of_period if time == self._period else _flow(self.w, time)
        v, a, w = self.rate, self.acceleration, self.w
        way = self.way + v * S + a * E
        if way < self.length:
            self.way, self.rate, self.acceleration = way, v + w * v * E + a * S, a + w * (a * E + v * S)
            return -1.0
        used, target = time * (self.length - self.way) / (way - self.way), self.length - self.way
        for _ in range(_ROUNDS):
            S, E = _flow(w, used)
            change = (v * S + a * E - target) / (v + w * v * E + a * S)
            used -= change
            if abs(change) <= 1e-15 * time:
                break
        return max(0.0, time - used)


class FromRest:
    """An interval that begins at rest, with a constant jerk."""

    def __init__(self, length: float, x_end: float):
        self.length = length
        self._jerk: float = 2 * x_end**1.5 / (9 * length**2)
        self._time = 0.0
        self.way = self.rate = self.acceleration = 0.0

    def advance(self, time: float) -> float:
        """Move on for a time; see ``Interval``."""
        t = self._time = self._time + time
        J = self._jerk
        self.way, self.rate, self.acceleration = J * t**3 / 6, J * t**2 / 2, J * t
        return t - (6 * self.length / J) ** (1 / 3) if self.way >= self.length else -1.0


class ToRest:
    """An interval that ends at rest, with a constant jerk."""

    def __init__(self, length: float, x: float):
        self.length = length
        self._jerk: float = 2 * x**1.5 / (9 * length**2)
        self._left: float = (6 * length / self._jerk) ** (1 / 3)
        self._state()

    def _state(self) -> None:
        t, J = self._left, self._jerk
        self.way, self.rate, self.acceleration = self.length - J * t**3 / 6, J * t**2 / 2, -J * t

    def advance(self, time: float) -> float:
        """Move on for a time; see ``Interval``."""
        self._left -= time
        if self._left <= 0:
            return -self._left
        self._state()
        return -1.0
