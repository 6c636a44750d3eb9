"""A free clock: how far the time of a phase has run when a fraction s of its spline has passed.

Splines, nodes and events of contact lie at fixed s. With a clock, the time that belongs to s is

    t = T h(s)      h = s + sum_k (a_k sin 2 pi k s + b_k (1 - cos 2 pi k s)) / (2 pi k)

with variables a_k, b_k, so that the durations between the events are results of the optimisation. The rate dh/ds and
its derivative are the same at both ends: states that are equal there by s are equal by t.
"""

import math
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from torsor.base.arrays import Array

SLOWEST = 0.25  # least rate dh/ds: time runs forward
LARGEST = 0.7  # bound of each variable


@dataclass(frozen=True)
class Clock:
    """A clock with ``harmonics`` pairs of variables; 0 is the even clock t = s T.

    Example:
        >>> clock = Clock(1)
        >>> clock.names
        ('clock cos 1', 'clock sin 1')
        >>> clock.fraction(np.array([0.0, 0.25, 1.0]), np.array([0.2, 0.0])).round(4).tolist()
        [0.0, 0.2818, 1.0]
    """

    harmonics: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables."""
        return tuple(f"clock {part} {k + 1}" for k in range(self.harmonics) for part in ("cos", "sin"))

    def _basis(self, s: Any, order: int, pi: Any) -> list[Any]:
        """Return the derivative of an order of the functions of s that the variables multiply in h."""
        found = list[Any]()
        for k in range(1, self.harmonics + 1):
            w = 2 * math.pi * k
            sine, cosine = pi.sin(w * s), pi.cos(w * s)
            found += [
                [sine / w, (1 - cosine) / w],
                [cosine, sine],
                [-w * sine, w * cosine],
                [-(w**2) * cosine, -(w**2) * sine],
            ][order]
        return found

    def derivative(self, s: ca.SX, values: ca.SX, order: int) -> ca.SX:
        """Return h (order 0) or its derivative by s, as an expression."""
        first = [s, ca.SX(1), ca.SX(0), ca.SX(0)][order]
        return first + sum((values[k] * b for k, b in enumerate(self._basis(s, order, ca))), start=ca.SX(0))

    def numeric(self, s: Array, values: Array, order: int = 0) -> Array:
        """Return h (order 0) or its derivative by s (K,), for values of the variables."""
        first = [s, np.ones_like(s), np.zeros_like(s), np.zeros_like(s)][order]
        basis = self._basis(s, order, np)
        return np.asarray(first + sum((float(v) * b for v, b in zip(values, basis, strict=True)), start=0.0))

    def fraction(self, s: Array, values: Array) -> Array:
        """Return the fractions of the duration (K,) that have passed at s (K,)."""
        return self.numeric(np.asarray(s, dtype=float), values)

    def place(self, fraction: Array, values: Array) -> Array:
        """Return the s (K,) at which fractions of the duration have passed: the inverse of ``fraction``, by Newton."""
        wanted = np.asarray(fraction, dtype=float)
        grid = np.linspace(0.0, 1.0, 257)
        s = np.interp(wanted, self.fraction(grid, values), grid)
        for _ in range(4):
            s = np.clip(s - (self.fraction(s, values) - wanted) / self.numeric(s, values, 1), 0.0, 1.0)
        return np.asarray(s)


EVEN = Clock()
