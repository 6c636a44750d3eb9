"""The plan: x = s'^2 and u = s'' at the samples ahead, which ends at rest within the known path."""

from bisect import bisect_left
from collections.abc import Iterator

import numpy as np

from torsor.arrays import Array
from torsor.control.scaling.intervals import FromRest, Interval, Spline, ToRest


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

    def adopt(self, k: int, m: int, points: Array, end: str) -> None:
        """Take control points of x from sample m on in place of what was planned; samples before k are forgotten."""
        x, u = (points[1:] + points[:-1]) / 2, (points[1:] - points[:-1]) / (2 * self.spacing)
        if x[0] <= 0:  # from rest
            x[0] = u[0] = 0.0
        if end == "rest":
            x[-1] = u[-1] = 0.0
        kept = slice(k - self.first, m - self.first)
        self._x, self._u = self._x[kept] + x.tolist(), self._u[kept] + u.tolist()
        self.first, self.reach = min(k, m), m + len(x) - 1
        rates = np.sqrt(np.array(self._x))
        ways = 2 * self.spacing / np.maximum(rates[1:] + rates[:-1], 1e-12)
        self._passed = np.concatenate([[0.0], np.cumsum(ways)]).tolist()

    def stretched(self, m: int, n: int, fastest: Array) -> Array:
        """Return control points (n + 2) from sample m on: the plan, longer at its largest speed, so that it ends later.

        It is the first guess of a better plan.
        """
        x = np.array(self._x[m - self.first :])
        top = int(np.argmax(x))
        x = np.concatenate([x[:top], np.full(n + 1 - len(x), x[top]), x[top:]])
        x = np.minimum(x, _INSIDE * fastest)
        x[-1] = x[-2] / 3
        x, u = np.concatenate([x[:1], (x[1:] + x[:-1]) / 2, x[-1:]]), self.state(m)[1]
        x[:2] = self.state(m)[0] - self.spacing * u, self.state(m)[0] + self.spacing * u
        return x


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
    near = np.clip((points / wished - _NEAR) / (_AT - _NEAR), 0.0, 1.0)
    if not near.any():
        return
    if end == "free":
        yield np.full(len(points), wished)
    last = int((near > 0).nonzero()[0].max(initial=0))
    for part in (1.0, 0.75, 0.5):
        ahead = np.clip((part * last - np.arange(len(points))) / (_BLEND * last + 1), 0.0, 1.0)
        yield _raised(points, wished, ahead)
    yield _raised(points, wished, near)


def _raised(points: Array, wished: float, part: Array) -> Array:
    """Return control points between those given (part 0) and the wished x (part 1), smoothly."""
    found: Array = np.where(part == 1, wished, points + part * part * (3 - 2 * part) * (wished - points))
    return found


_NEAR, _AT = 0.97, 0.99  # parts of the wished x from which control points are raised to it, and are at it
_BLEND = 0.25  # the part of the way to the last braking on which points between the wish and those of a search are used
