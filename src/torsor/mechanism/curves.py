"""Functions of one coordinate: polynomials and splines, with two derivatives, of numbers and of symbols.

Joints of OpenSim move by polynomials, by cubic splines and by straight pieces. All of them are a polynomial and a sum
of truncated powers, which needs no branches and is straight beyond the ends of a spline:

    f(q) = p(q) + sum of c max(q - x, 0)^n        n = 1, 2, 3
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from torsor.base.arrays import Array


@dataclass(frozen=True)
class Curve:
    """A function: ``polynomial``, highest power first, and truncated ``powers`` (x, factor, exponent).

    Calling it with an array returns the values, the slopes and the second derivatives.

    Example:
        >>> value, slope, bend = Curve((2.0, 0.0, 1.0))(np.array([3.0]))
        >>> value.tolist(), slope.tolist(), bend.tolist()
        ([19.0], [12.0], [4.0])
    """

    polynomial: tuple[float, ...]
    powers: tuple[tuple[float, float, int], ...] = ()

    def __call__(self, q: Array) -> tuple[Array, Array, Array]:
        """Return values, slopes and second derivatives of the shape of q."""
        at = np.asarray(q, dtype=float)
        zero = np.zeros(at.shape)
        value, slope, bend = self._evaluated(at, lambda x: np.maximum(at - x, 0.0))
        return value + zero, slope + zero, bend + zero

    def traced(self, q: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
        """Return value, slope and second derivative over symbols."""
        value, slope, bend = self._evaluated(q, lambda x: ca.fmax(q - x, 0))
        return ca.SX(value), ca.SX(slope), ca.SX(bend)

    def _evaluated(self, q: Any, above: Callable[[float], Any]) -> tuple[Any, Any, Any]:
        value: Any = 0.0
        slope: Any = 0.0
        bend: Any = 0.0
        for coefficient in self.polynomial:
            bend = bend * q + 2 * slope
            slope = slope * q + value
            value = value * q + coefficient
        for x, factor, n in self.powers:
            over = above(x)
            step = over > 0 if n < 3 else 1.0  # the derivatives of lower powers jump
            value = value + factor * over**n
            slope = slope + factor * n * over ** (n - 1) * (step if n == 1 else 1.0)
            bend = bend + (factor * n * (n - 1) * over ** (n - 2) * step if n > 1 else 0.0)
        return value, slope, bend

    @property
    def line(self) -> tuple[float, float] | None:
        """The slope and the value at 0 if the function is a straight line, else None.

        Example:
            >>> Curve((0.0, -1.0, 0.5)).line
            (-1.0, 0.5)
        """
        if self.powers or any(self.polynomial[:-2]):
            return None
        return (0.0, 0.0, *self.polynomial)[-2], (0.0, *self.polynomial)[-1]


IDENTITY = Curve((1.0, 0.0))


def broken_line(x: Array, y: Array) -> Curve:
    """Return the straight lines between points; beyond the ends they go on.

    Example:
        >>> broken_line(np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 0.0]))(np.array([0.5, 1.5, 3.0]))[0].tolist()
        [0.5, 0.5, -1.0]
    """
    slopes = np.diff(y) / np.diff(x)
    bends = zip(x[1:-1].tolist(), np.diff(slopes).tolist(), strict=True)
    return Curve((float(slopes[0]), float(y[0] - slopes[0] * x[0])), tuple((at, by, 1) for at, by in bends))


def cubic_spline(x: Array, y: Array) -> Curve:
    """Return the cubic spline through points that OpenSim's SimmSpline is; beyond its ends it goes on straight.

    Its third derivatives at the ends are those of the cubics through the first and the last four points (Forsythe,
    Malcolm and Moler 1977).

    Example:
        >>> x = np.array([0.0, 0.5, 1.0, 2.0, 2.5])
        >>> cubic_spline(x, x**3)(np.array([1.5, 2.5]))[0].round(12).tolist()
        [3.375, 15.625]
    """
    n, step = len(x), np.diff(x)
    if n < 3:
        return broken_line(x, y)
    slopes = np.diff(y) / step
    A, right = np.zeros((n, n)), np.zeros(n)
    for k in range(1, n - 1):
        A[k, k - 1 : k + 2] = step[k - 1], 2 * (step[k - 1] + step[k]), step[k]
        right[k] = 6 * (slopes[k] - slopes[k - 1])
    A[0, :2] = A[-1, -2:] = -1.0, 1.0
    right[0], right[-1] = step[0] * _third(x[:4], y[:4]), step[-1] * _third(x[-4:], y[-4:])
    bend = np.linalg.solve(A, right)
    third = np.diff(bend) / step
    slope = float(slopes[0] - step[0] * (2 * bend[0] + bend[1]) / 6)
    powers = [(float(x[0]), float(bend[0]) / 2, 2), (float(x[-1]), float(-bend[-1]) / 2, 2)]
    jumps = np.diff(np.concatenate([[0.0], third, [0.0]])) / 6
    powers += [(at, jump, 3) for at, jump in zip(x.tolist(), jumps.tolist(), strict=True)]
    return Curve((slope, float(y[0] - slope * x[0])), tuple(powers))


def _third(x: Array, y: Array) -> float:
    """Return the third derivative of the cubic through four points; 0 for three."""
    if len(x) < 4:
        return 0.0
    differences = y
    for order in range(1, 4):
        differences = np.diff(differences) / (x[order:] - x[:-order])
    return 6 * float(differences[0])
