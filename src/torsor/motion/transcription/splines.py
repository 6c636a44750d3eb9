"""Clamped B-splines on [0, 1]: the shape of a coordinate over a phase.

A spline of degree p is a sum of control points times bell-shaped functions N_j(s), each of which is not zero on p + 1
spans between knots. "Clamped" means that the first and the last knot come p + 1 times: the curve begins at the first
control point and ends at the last. Its rates are splines of lower degree,

    c_j' = p (c_{j+1} - c_j) / (t_{j+p+1} - t_{j+1})

(de Boor 1978; Barman 2020, section 4.1).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.errors import ModelError, describe

__all__ = ["DEGREES", "Spline", "finite_numbers", "whole_number"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

DEGREES = range(3, 8)


def whole_number(value: object) -> int | None:
    """Return a whole number, or None for what is none.

    Example:
        >>> whole_number(np.int64(3)), whole_number(3.0), whole_number(True)
        (3, None, None)
    """
    return int(value) if isinstance(value, (int, np.integer)) and not isinstance(value, bool) else None


def finite_numbers(value: object) -> Array | None:
    """Return a number, or a list of them, as an array (K,), or None for what is none.

    Example:
        >>> finite_numbers((1, 2.5)), finite_numbers("2"), finite_numbers([1.0, np.nan])
        (array([1. , 2.5]), None, None)
    """
    try:
        array = np.array(value)
    except ValueError:  # rows of several lengths
        return None
    if array.dtype.kind not in "iuf" or array.ndim > 1 or not np.isfinite(array).all():
        return None
    return array.astype(float).ravel()


@dataclass(frozen=True, eq=False)
class Spline:
    """A basis of clamped B-splines: ``degree`` from 3 to 7, and the ``inner`` knots between 0 and 1, rising.

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
        degree = whole_number(self.degree)
        if degree not in DEGREES:
            allowed = f"{DEGREES.start} to {DEGREES.stop - 1}"
            raise ModelError(describe(f"degree is {self.degree!r}", where="spline", allowed=allowed))
        inner = finite_numbers(self.inner)
        if inner is None or not (np.diff(inner, prepend=0.0, append=1.0) > 0).all():
            raise ModelError(describe(f"knots are {self.inner!r}", where="spline", allowed="rising, between 0 and 1"))
        inner.setflags(write=False)
        object.__setattr__(self, "degree", degree)
        object.__setattr__(self, "inner", inner)

    @classmethod
    def uniform(cls, count: int, degree: int = 3) -> "Spline":
        """Return the spline with that many control points and knots at equal distances."""
        least, points = cls(degree, np.zeros(0)).count, whole_number(count)
        if points is None or points < least:
            raise ModelError(describe(f"{count!r} control points", where="spline", allowed=f"{least} or more"))
        return cls(degree, np.linspace(0.0, 1.0, points - least + 2)[1:-1])

    @property
    def count(self) -> int:
        """Number of control points."""
        return len(self.inner) + self.degree + 1

    @cached_property
    def knots(self) -> Array:
        """All knots (count + degree + 1)."""
        return np.concatenate([np.zeros(self.degree + 1), self.inner, np.ones(self.degree + 1)])

    def differences(self, order: int) -> Array:
        """Return the matrix (count - order, count) from control points to those of a rate by s."""
        D, knots, p = np.eye(self.count), self.knots, self.degree
        for _ in range(order):
            spans = knots[p + 1 : -1] - knots[1 : -p - 1]
            D = (p / spans)[:, None] * np.diff(D, axis=0)
            knots, p = knots[1:-1], p - 1
        return D

    def local(self, s: ArrayLike, order: int = 0) -> tuple[Array, Indices]:
        """Return the functions that are not zero at places s (K,), or their rates by s: (K, degree + 1).

        And the index (K,) of the first of them.
        """
        at = np.asarray(s, dtype=float)
        first = np.clip(np.searchsorted(self.inner, at, side="right"), 0, len(self.inner))
        p, knots = self.degree - order, self.knots[order : len(self.knots) - order] if order else self.knots
        values = np.ones((len(at), 1))
        for k in range(1, p + 1):  # from degree k - 1 to k, on the span that holds s
            index = first[:, None] + p - k + np.arange(1, k + 1)
            left, right = knots[index], knots[index + k]
            share = (at[:, None] - left) / (right - left)
            rising = values * share
            values = np.pad(values * (1 - share), ((0, 0), (0, 1)))
            values[:, 1:] += rising
        return self._lifted(values, first, order), first

    def _lifted(self, values: Array, first: Indices, order: int) -> Array:
        """Return values of the functions of a rate as those of control points."""
        D = self.differences(order)
        found = np.empty((len(values), self.degree + 1))
        for span in np.unique(first):
            own = first == span
            block = D[span : span + self.degree + 1 - order, span : span + self.degree + 1]
            found[own] = values[own] @ block
        return found

    def matrix(self, s: ArrayLike, order: int = 0) -> Array:
        """Return the matrix (K, count) from control points to values, or rates by s, at places s (K,)."""
        values, first = self.local(s, order)
        found = np.zeros((len(values), self.count))
        np.put_along_axis(found, first[:, None] + np.arange(self.degree + 1), values, axis=1)
        return found

    @cached_property
    def greville(self) -> Array:
        """Places (count,): control points at these values of a line make the line itself."""
        return np.array([self.knots[k + 1 : k + 1 + self.degree].mean() for k in range(self.count)])
