"""The plan: x = s'^2 and u = s'' at the samples ahead, which ends at rest within the known path."""

from bisect import bisect_left
from collections.abc import Generator, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Array
from torsor.control.scaling.intervals import FromRest, Interval, Spline, ToRest

Ahead = tuple[list[float], list[float], list[float]]  # x and u at samples, and the times of all but the first


class Plan:
    """A timing over samples ``first`` to ``reach``; between them s'' is a linear function of s."""

    def __init__(self, spacing: float):
        self.spacing = spacing
        self.first, self.reach = 0, 0
        self._x, self._u = [0.0], [0.0]
        self._passed = [0.0]  # roughly the times at which samples are passed

    def state(self, k: int) -> tuple[float, float]:
        """Return (x, u) at sample k."""
        return self._x[k - self.first], self._u[k - self.first]

    def interval(self, k: int, period: float) -> Interval:
        """Return the motion between samples k and k + 1."""
        (x, u), (x_end, u_end) = self.state(k), self.state(k + 1)
        if x == 0:
            return FromRest(self.spacing, x_end)
        if x_end == 0:
            return ToRest(self.spacing, x)
        return Spline(self.spacing, x, u, (u_end - u) / self.spacing, period)

    def ahead(self, k: int, time: float) -> int:
        """Return the first sample after k that is passed later than in a time (s), or the last of the plan."""
        now = self._passed[k + 1 - self.first]
        return min(self.first + bisect_left(self._passed, now + time), self.reach)

    def time_between(self, first: int, last: int) -> float:
        """Return about how long (s) it takes from one sample to another."""
        return self._passed[last - self.first] - self._passed[first - self.first]

    def ahead_of(self, m: int, points: Array, end: str) -> Generator[None, None, Ahead]:
        """Return x, u and times at the samples from m on for control points of x, in pieces of work."""
        x, u = points[1:] + points[:-1], points[1:] - points[:-1]
        x *= 0.5
        u /= 2 * self.spacing
        if x[0] <= 0:  # from rest
            x[0] = u[0] = 0.0
        if end == "rest":
            x[-1] = u[-1] = 0.0
        yield
        rates = np.sqrt(x)
        times = 2 * self.spacing / np.maximum(rates[1:] + rates[:-1], 1e-12)
        times[0] += self._passed[m - self.first]
        yield
        ahead = x.tolist(), u.tolist(), np.cumsum(times).tolist()
        yield
        return ahead

    def adopt(self, k: int, m: int, ahead: Ahead) -> None:
        """Take a timing from sample m on in place of what was planned; samples before k are forgotten."""
        x, u, times = ahead
        first, last = min(k, m) - self.first, m - self.first
        self._x, self._u = self._x[first:last] + x, self._u[first:last] + u
        self._passed = self._passed[first : last + 1] + times
        self.first, self.reach = min(k, m), m + len(x) - 1

    def stretched(self, m: int, n: int, fastest: Array) -> Generator[None, None, Array]:
        """Return control points (n + 2) from sample m on: the plan, longer at its largest speed, so that it ends later.

        It is the first guess of a better plan, made in pieces of work.
        """
        x, u = self.state(m)
        planned = self._x[m - self.first :]
        most = max(planned)
        top = planned.index(most)
        found = np.array(planned[:top] + [most] * (n + 1 - len(planned)) + planned[top:])
        yield
        np.minimum(found[:-1], _INSIDE * fastest, out=found[:-1])
        found[-1] = found[-2] / 3
        points = np.empty(n + 2)
        np.add(found[1:], found[:-1], out=points[1:-1])
        points[1:-1] *= 0.5
        points[0], points[1], points[-1] = x - self.spacing * u, x + self.spacing * u, found[-1]
        return points


_INSIDE = 0.95  # of the largest x: the part that a first guess keeps to


def first_points(n: int, spacing: float, jerk: float, fastest: Array, start: str, end: str) -> Array:
    """Return control points (n + 2) of a timing with a jerk from rest and to rest, and half of the least largest x."""
    s = (np.arange(n + 2) - 0.5) * spacing
    way = np.full(n + 2, np.inf)
    if start == "rest":
        way = np.maximum(s, spacing / 2)
    if end == "rest":
        way = np.minimum(way, np.maximum(n * spacing - s, spacing / 2))
    found: Array = np.minimum(jerk ** (2 / 3) * (6 * way) ** (4 / 3) / 4, fastest.min() / 2)
    return found


def near_wish(points: Array, wished: float, end: str) -> Iterator[Array]:
    """Yield guesses of control points at the wished x: all before the last braking, fewer of them, and those near it.

    A search ends a little below the wish, and points at the wish may be within the bounds too.

    Example:
        >>> [each.round(3).tolist() for each in near_wish(np.array([0.98, 0.5, 0.995, 0.3]), 1.0, "rest")][-1]
        [0.99, 0.5, 1.0, 0.3]
    """
    if points.max() <= _NEAR * wished:
        return
    near = _part((points / wished - _NEAR) / (_AT - _NEAR))
    if end == "free":
        yield np.full(len(points), wished)
    last = int((near > 0).nonzero()[0].max(initial=0))
    for part in (1.0, 0.75, 0.5):
        ahead = _part((part * last - np.arange(len(points))) / (_BLEND * last + 1))
        yield _raised(points, wished, ahead)
    yield _raised(points, wished, near)


def _part(value: NDArray[np.floating[Any]]) -> Array:
    """Return numbers limited to 0 to 1."""
    found: Array = np.minimum(np.maximum(value, 0.0), 1.0)
    return found


def _raised(points: Array, wished: float, part: Array) -> Array:
    """Return control points between those given (part 0) and the wished x (part 1), smoothly."""
    found: Array = np.where(part == 1, wished, points + part * part * (3 - 2 * part) * (wished - points))
    return found


_NEAR, _AT = 0.97, 0.99  # parts of the wished x from which control points are raised to it, and are at it
_BLEND = 0.25  # the part of the way to the last braking on which points between the wish and those of a search are used
