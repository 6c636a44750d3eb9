"""Clamped B-splines on [0, 1], which represent the profiles of coordinates over a phase.

A spline of degree p is a sum of control points times basis functions N_j(s), each of which is nonzero on p + 1 knot
spans. "Clamped" means that the first and the last knot are repeated p + 1 times: the curve starts at the first control
point and ends at the last. Its derivatives are splines of lower degree,

    c_j' = p (c_{j+1} - c_j) / (t_{j+p+1} - t_{j+1})

(de Boor 1978; Barman 2020, section 4.1).
"""

import math
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array, Indices
from torsor.base.checks import finite_vector, whole_number
from torsor.base.errors import ModelError

DEGREES = range(3, 8)


@dataclass(frozen=True, eq=False)
class Spline:
    """A basis of clamped B-splines: ``degree`` from 3 to 7, and sorted ``inner`` knots between 0 and 1.

    At a knot that occurs m times, degree - m derivatives are continuous; m is at most the degree.

    Example:
        >>> spline = Spline.uniform(6)
        >>> spline.count, spline.inner.round(3).tolist()
        (6, [0.333, 0.667])
        >>> spline.matrix([0.0, 0.5]).round(3).tolist()
        [[1.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.031, 0.469, 0.469, 0.031, 0.0]]
    """

    degree: int
    inner: Array

    def __post_init__(self) -> None:
        degree = whole_number(self.degree, "spline", "degree", least=DEGREES.start, most=DEGREES.stop - 1)
        inner = finite_vector(self.inner)
        is_inside = inner is not None and ((inner > 0) & (inner < 1)).all()
        if inner is None or not is_inside or (np.diff(inner) < 0).any() or (inner[degree:] == inner[:-degree]).any():
            allowed = f"sorted numbers between 0 and 1, each at most {degree} times"
            raise ModelError(f"the knots are {self.inner!r}", value=self.inner, where="spline", allowed=allowed)
        inner.setflags(write=False)
        object.__setattr__(self, "degree", degree)
        object.__setattr__(self, "inner", inner)

    @classmethod
    def uniform(cls, count: int, degree: int = 3) -> "Spline":
        """Return the spline with ``count`` control points and equidistant knots."""
        degree = whole_number(degree, "spline", "degree", least=DEGREES.start, most=DEGREES.stop - 1)
        return _uniform(whole_number(count, "spline", "the number of control points", least=degree + 1), degree)

    @property
    def count(self) -> int:
        """Number of control points."""
        return len(self.inner) + self.degree + 1

    @cached_property
    def knots(self) -> Array:
        """All knots (count + degree + 1)."""
        return np.concatenate([np.zeros(self.degree + 1), self.inner, np.ones(self.degree + 1)])

    def differences(self, order: int) -> Array:
        """Return the matrix (count - order, count) from control points to those of the derivative with respect to s."""
        D, knots, p = np.eye(self.count), self.knots, self.degree
        for _ in range(order):
            spans = knots[p + 1 : -1] - knots[1 : -p - 1]
            rates = np.divide(p, spans, out=np.zeros(len(spans)), where=spans > 0)  # empty spans have no basis function
            D = rates[:, None] * np.diff(D, axis=0)
            knots, p = knots[1:-1], p - 1
        return D

    def bases(self, s: ArrayLike, degree: int) -> tuple[list[Array], Indices]:
        """Return the nonzero basis functions of each degree k from 0 to ``degree`` at s (K,), as arrays (K, k + 1).

        Functions of degree p - d are those of the d-th derivative. The second result is the index (K,) of the first
        function.
        """
        at = np.asarray(s, dtype=float)
        first = np.clip(np.searchsorted(self.inner, at, side="right"), 0, len(self.inner))
        result = [np.ones((len(at), 1))]
        for k in range(1, degree + 1):  # from degree k - 1 to k, on the span that contains s
            index = first[:, None] + self.degree - k + np.arange(1, k + 1)
            left, right = self.knots[index], self.knots[index + k]
            ratio = (at[:, None] - left) / (right - left)
            values = np.zeros((len(at), k + 1))
            values[:, :k] = result[-1] * (1 - ratio)
            values[:, 1:] += result[-1] * ratio
            result.append(values)
        return result, first

    def local(self, s: ArrayLike, order: int = 0) -> tuple[Array, Indices]:
        """Return the nonzero basis functions (K, degree + 1) at s (K,), or their derivatives with respect to s.

        The second result is the index (K,) of the first function.
        """
        bases, first = self.bases(s, self.degree - order)
        values = bases[-1]
        D, result = self.differences(order), np.empty((len(values), self.degree + 1))
        for span in np.unique(first):  # maps basis functions of the derivative to those of the control points
            is_inside = first == span
            result[is_inside] = (
                values[is_inside] @ D[span : span + self.degree + 1 - order, span : span + self.degree + 1]
            )
        return result, first

    def row(self, s: float, order: int = 0) -> Array:
        """Return the read-only row (count,) of ``matrix`` at one s."""
        key = s, order
        if key not in self._rows:
            row = self.matrix([s], order)[0]
            row.setflags(write=False)
            self._rows[key] = row
        return self._rows[key]

    @cached_property
    def _rows(self) -> dict[tuple[float, int], Array]:
        return {}

    def matrix(self, s: ArrayLike, order: int = 0) -> Array:
        """Return the matrix (K, count) from control points to values, or derivatives with respect to s, at s (K,)."""
        values, first = self.local(s, order)
        result = np.zeros((len(values), self.count))
        np.put_along_axis(result, first[:, None] + np.arange(self.degree + 1), values, axis=1)
        return result

    def taylor(self, s: ArrayLike, points: Array) -> Array:
        """Return Taylor coefficients (K, degree + 1, n) at s (K,) for control points (count, n)."""
        orders = range(self.degree + 1)
        return np.stack([self.matrix(s, order) @ points / math.factorial(order) for order in orders], axis=1)

    @cached_property
    def greville(self) -> Array:
        """Greville abscissae (count,); control points on a line at these abscissae reproduce the line."""
        return np.array([self.knots[k + 1 : k + 1 + self.degree].mean() for k in range(self.count)])


@cache
def _uniform(count: int, degree: int) -> Spline:
    return Spline(degree, np.linspace(0.0, 1.0, count - degree + 1)[1:-1])
