"""Motions over time: the interface of ``result.at(t)``, interval search, and interpolation between samples.

``at`` takes one time or an array of times (...), in s, and returns ``Instants``. The axes of its arrays are those of a
batch of motions, if the result has one, then those of t, then the coordinates. Times outside the motion and NaN raise
ModelError. A time that exceeds the end by a rounding error, up to 1e-9 of the duration, is taken as the end.
"""

from bisect import bisect_right
from functools import cache, cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array, Indices
from torsor.base.checks import real_array
from torsor.base.errors import ModelError

ROUNDING = 1e-9  # largest rounding error of a time, relative to the duration
_NUMBERS = frozenset((float, int, np.float64))  # types of a single time, which needs no array


class Instants(Protocol):
    """A motion at ``times`` (...): ``q`` (..., nq), and ``v``, ``a``, ``tau`` (..., nv) if the result has them.

    Each array is computed on first use. The axes of a batch of motions come before those of the times.

    Example:
        >>> fall = torsor.simulate(torsor.library.planar_chain(1), np.zeros((5, 1)), duration=0.5)
        >>> fall.at(0.12345).q.shape, fall.at([0.1, 0.2, 0.3]).tau.shape
        ((5, 1), (5, 3, 1))
    """

    @property
    def times(self) -> Any:
        """The times (...), in s."""

    @property
    def q(self) -> Array:
        """Positions (..., nq)."""

    @property
    def v(self) -> Array:
        """Velocities (..., nv)."""

    @property
    def a(self) -> Array:
        """Accelerations (..., nv)."""

    @property
    def tau(self) -> Array:
        """Forces (..., nv)."""


class TimeAxis:
    """The times of a motion: increasing ``knots`` (T,), in s, and the start index ``last`` of the last interval.

    For samples, ``last`` is T - 1, an interval of zero length, so that each sample has its own interval.

    Example:
        >>> axis = TimeAxis(np.array([0.0, 1.0, 3.0]), "arm", last=1)
        >>> axis.find(3.0), axis.find([0.5, 1.0])
        ((3.0, 1), (array([0.5, 1. ]), array([0, 1])))
        >>> axis.find(4.0)
        Traceback (most recent call last):
        torsor.ModelError: arm: t is 4.0; allowed: times from 0 to 3 s
    """

    def __init__(self, knots: Array, where: str, last: int):
        self.array, self.knots, self.where, self.last = knots, knots.tolist(), where, last
        self._first: float = self.knots[0] if self.knots else np.inf
        self._end: float = self.knots[-1] if self.knots else -np.inf

    def find(self, t: Any) -> tuple[Any, Any]:
        """Return the times (...) and the indices (...) of their intervals; raise ModelError outside the range."""
        if type(t) in _NUMBERS and self._first <= t <= self._end:
            return t, self.interval(t)
        times, near = real_array(t, self.where, "t"), ROUNDING * max(self._end - self._first, 0.0)
        if not ((times >= self._first - near) & (times <= self._end + near)).all():
            allowed = f"times from {self._first:.6g} to {self._end:.6g} s" if self.knots else "none: it has no samples"
            raise ModelError(argument="t", value=t, where=self.where, allowed=allowed)
        times = np.clip(times, self._first, self._end)
        return times, self.interval(times)

    def interval(self, t: Any) -> Any:
        """Return the interval indices (...) of times (...); times outside the range get the first or last interval."""
        if type(t) in _NUMBERS:
            return min(max(bisect_right(self.knots, t) - 1, 0), self.last)
        return np.clip(np.searchsorted(self.array, t, side="right") - 1, 0, self.last)


@cache
def _powers(count: int, orders: int) -> tuple[Array, Array]:
    """Return factors and exponents (orders, count) of the derivatives of 1, x, x^2, ..."""
    exponents = np.maximum(np.arange(count) - np.arange(orders)[:, None], 0).astype(float)
    factors = np.zeros((orders, count))
    for order in range(orders):
        for power in range(order, count):
            factors[order, power] = np.prod(np.arange(power - order + 1, power + 1))
    return factors, exponents


def derivative_factors(count: int, orders: int) -> Array:
    """Return the derivatives (orders, count) of 1, x, x^2, ... at x = 1.

    Example:
        >>> derivative_factors(4, 2).tolist()
        [[1.0, 1.0, 1.0, 1.0], [0.0, 1.0, 2.0, 3.0]]
    """
    return _powers(count, orders)[0]


def polynomials(coefficients: Array, x: Any, orders: int) -> Array:
    """Return polynomials with ``coefficients`` (..., powers, n) and their derivatives (..., orders, n) at x (...).

    Example:
        >>> polynomials(np.array([[0.0], [0.0], [1.0]]), 3.0, 3)[:, 0].tolist()
        [9.0, 6.0, 2.0]
    """
    factors, exponents = _powers(coefficients.shape[-2], orders)
    at = x if type(x) in _NUMBERS else np.asarray(x)[..., None, None]
    return np.asarray((factors * at**exponents) @ coefficients)


class Series(NamedTuple):
    """Samples of a motion: ``q`` (..., T, nq), and ``v``, ``a`` and ``tau`` (..., T, nv) if known.

    If ``held`` is True, forces are constant until the next sample; otherwise they change linearly. ``group`` provides
    ``integrate`` and ``difference`` for positions that are not vectors.
    """

    axis: TimeAxis
    q: Array
    v: Array | None = None
    a: Array | None = None
    tau: Array | None = None
    held: bool = False
    group: Any = None

    @classmethod
    def of(cls, where: str, times: Array, q: Array, *rates: Array, held: bool = False, group: Any = None) -> "Series":
        """Return the samples q, and v, a and tau if known, at ``times`` (T,)."""
        v, a, tau = (*rates, None, None, None)[:3]
        return cls(TimeAxis(times, where, len(times) - 1), q, v, a, tau, held, group)


class SampledInstants:
    """Interpolation of a motion between samples.

    Positions follow the cubic defined by the neighbouring samples and their velocities (on the group, by de Casteljau's
    algorithm). Velocities follow the cubic defined by the samples and their accelerations, and accelerations are its
    derivative. If these rates are missing, positions and velocities change linearly between samples.

    Example:
        >>> t = np.linspace(0.0, 1.0, 3)[:, None]
        >>> found = SampledInstants(Series.of("arm", t[:, 0], t**3, 3 * t**2, 6 * t), 0.7)
        >>> found.q.round(9).tolist(), found.v.round(9).tolist(), found.a.round(9).tolist(), hasattr(found, "tau")
        ([0.343], [1.47], [4.2], False)
    """

    def __init__(self, series: Series, t: ArrayLike):
        axis = series.axis
        self._series, (self.times, k) = series, axis.find(t)
        self._left: int | Indices = k
        self._right: int | Indices
        self._h: Any
        if isinstance(k, int):
            self._right = min(k + 1, axis.last)
            start = axis.knots[k]
            self._h = axis.knots[self._right] - start or 1.0
            self._s = (self.times - start) / self._h
        else:
            self._right = np.minimum(k + 1, axis.last)
            h = axis.array[self._right] - axis.array[k]
            self._h = np.where(h > 0, h, 1.0)[..., None]
            self._s = (self.times - axis.array[k])[..., None] / self._h

    def _ends(self, x: Array) -> tuple[Array, Array]:
        return x[..., self._left, :], x[..., self._right, :]

    def _cubic(self, ends: tuple[Array, Array], rates: tuple[Array, Array]) -> Array:
        s, h = self._s, self._h
        rest = 1 - s
        before, after = rest * rest, s * s
        result = before * (1 + 2 * s) * ends[0] + before * s * h * rates[0]
        return np.asarray(result + after * (3 - 2 * s) * ends[1] - after * rest * h * rates[1])

    def _linear(self, name: str) -> Array:
        x = getattr(self._series, name)
        if x is None:
            raise AttributeError(f"the motion has no {name}")
        first, last = self._ends(x)
        return np.asarray(first + self._s * (last - first))

    @cached_property
    def _accelerations(self) -> tuple[Array, Array]:
        """Return the accelerations at the start and end of the interval."""
        assert self._series.a is not None
        return self._ends(self._series.a)

    def _positions(self) -> Array:
        series = self._series
        if series.v is None:
            return self._linear("q")
        ends, rates = self._ends(series.q), self._ends(series.v)
        if series.group is None:
            return self._cubic(ends, rates)
        integrate, difference, part = series.group.integrate, series.group.difference, self._h / 3
        inner = integrate(np.array(ends), np.array([part * rates[0], -part * rates[1]]))
        points = np.array([ends[0], inner[0], inner[1], ends[1]])
        while len(points) > 1:
            points = integrate(points[:-1], self._s * difference(points[:-1], points[1:]))
        return np.asarray(points[0])

    def _velocities(self) -> Array:
        if self._series.v is None or self._series.a is None:
            return self._linear("v")
        return self._cubic(self._ends(self._series.v), self._accelerations)

    @cached_property
    def q(self) -> Array:
        """Positions (..., nq)."""
        return self._positions()

    @cached_property
    def v(self) -> Array:
        """Velocities (..., nv)."""
        return self._velocities()

    @cached_property
    def a(self) -> Array:
        """Accelerations (..., nv)."""
        if self._series.a is None or self._series.v is None:
            return self._linear("a")
        s, (v0, v1), (a0, a1) = self._s, self._ends(self._series.v), self._accelerations
        rest = 1 - s
        return np.asarray(rest * (1 - 3 * s) * a0 + 6 * s * rest / self._h * (v1 - v0) + s * (3 * s - 2) * a1)

    @cached_property
    def tau(self) -> Array:
        """Forces (..., nv)."""
        if self._series.held and self._series.tau is not None:
            return self._series.tau[..., self._left, :]
        return self._linear("tau")
