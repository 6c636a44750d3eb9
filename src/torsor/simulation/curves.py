"""Curves through samples: positions, velocities and accelerations at any time between them."""

from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array

CUBIC = 4  # points that determine a cubic


class Curve(NamedTuple):
    """Positions, velocities and accelerations (T, n each) at increasing ``times`` (T,), with quintics in between."""

    times: Array
    q: Array
    v: Array
    a: Array

    @classmethod
    def through(cls, times: Array, q: Array) -> "Curve":
        """Return the cubic spline through positions (T, n): its accelerations are continuous.

        The slopes at its ends are those of the cubics through the first and the last four points. A quintic with the
        values, slopes and accelerations of a cubic at both ends is that cubic.

        Example:
            >>> t = np.linspace(0.0, 2.0, 6)
            >>> q, v, a = Curve.through(t, (t**3)[:, None]).at(1.1)
            >>> q.round(9).tolist(), v.round(9).tolist(), a.round(9).tolist()
            ([1.331], [3.63], [6.6])
        """
        h, steep = np.diff(times)[:, None], np.diff(q, axis=0) / np.diff(times)[:, None]
        slopes = np.empty_like(q)
        slopes[0], slopes[-1] = _slope(times[:CUBIC], q[:CUBIC], 0), _slope(times[-CUBIC:], q[-CUBIC:], -1)
        # Continuous accelerations: h_k m_k-1 + 2 (h_k-1 + h_k) m_k + h_k-1 m_k+1 is known; eliminated from the left.
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
        return cls(times, q, slopes, a)

    def at(self, t: float) -> tuple[Array, Array, Array]:
        """Return the position, velocity and acceleration (n,) at a time."""
        k = int(np.clip(np.searchsorted(self.times, t, side="right") - 1, 0, len(self.times) - 2))
        h = self.times[k + 1] - self.times[k]
        s = (t - self.times[k]) / h
        (q0, q1), (v0, v1), (a0, a1) = self.q[k : k + 2], h * self.v[k : k + 2], h**2 * self.a[k : k + 2]
        # q0 + v0 s + a0 s^2 / 2 + c3 s^3 + c4 s^4 + c5 s^5, which has q1, v1 and a1 at s = 1.
        left, slope, bend = q1 - q0 - v0 - a0 / 2, v1 - v0 - a0, a1 - a0
        c3, c4, c5 = 10 * left - 4 * slope + bend / 2, -15 * left + 7 * slope - bend, 6 * left - 3 * slope + bend / 2
        q = q0 + s * (v0 + s * (a0 / 2 + s * (c3 + s * (c4 + s * c5))))
        v = v0 + s * (a0 + s * (3 * c3 + s * (4 * c4 + s * 5 * c5)))
        a = a0 + s * (6 * c3 + s * (12 * c4 + s * 20 * c5))
        return q, v / h, a / h**2


def _slope(times: Array, q: Array, end: int) -> Array:
    """Return the slope (n,) at one of some points of the polynomial through all of them (Lagrange's formula)."""
    t, weights = times[end], np.zeros(len(times))
    for j in np.delete(np.arange(len(times)), end).tolist():
        rest = np.delete(times, [j, end])
        weights[j] = np.prod(t - rest) / (np.prod(times[j] - rest) * (times[j] - t))
    weights[end] = -weights.sum()
    return np.asarray(weights @ q)
