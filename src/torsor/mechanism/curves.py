"""Functions of one coordinate: polynomials and splines with two derivatives, for numbers and symbols.

The motions of OpenSim joints are polynomials, cubic splines and piecewise linear functions. Each can be written without
branches as a polynomial plus truncated powers, which extends a spline linearly beyond its ends:

    f(q) = p(q) + sum of c max(q - x, 0)^n        n = 1, 2, 3
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import MAX_NUMBER, frozen_array, real_array
from torsor.base.errors import ModelError
from torsor.mechanism.flexible import Flexible
from torsor.mechanism.joints import KINDS, JointKind
from torsor.spatial import Matrix, Vector, about_z, matrix, stack
from torsor.spatial.vectors import is_symbolic


@dataclass(frozen=True)
class Curve:
    """A function of one coordinate: a ``polynomial``, highest power first, plus ``powers`` (x, factor, exponent).

    Calling it with an array returns values, slopes and second derivatives.

    Example:
        >>> value, slope, bend = Curve((2.0, 0.0, 1.0))(np.array([3.0]))
        >>> value.tolist(), slope.tolist(), bend.tolist()
        ([19.0], [12.0], [4.0])
    """

    polynomial: tuple[float, ...]
    powers: tuple[tuple[float, float, int], ...] = ()

    def __call__(self, q: Array) -> tuple[Array, Array, Array]:
        """Return values, slopes and second derivatives, each of the shape of q."""
        at = np.asarray(q, dtype=float)
        zero = np.zeros(at.shape)
        value, slope, bend = self._evaluated(at, lambda x: np.maximum(at - x, 0.0))
        return value + zero, slope + zero, bend + zero

    def traced(self, q: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
        """Return the symbolic value, slope and second derivative."""
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
            step = over > 0 if n < 3 else 1.0  # lower powers have discontinuous derivatives
            value = value + factor * over**n
            slope = slope + factor * n * over ** (n - 1) * (step if n == 1 else 1.0)
            bend = bend + (factor * n * (n - 1) * over ** (n - 2) * step if n > 1 else 0.0)
        return value, slope, bend

    @property
    def line(self) -> tuple[float, float] | None:
        """(slope, value at 0) if the function is a straight line, otherwise None."""
        if self.powers or any(self.polynomial[:-2]):
            return None
        return (0.0, 0.0, *self.polynomial)[-2], (0.0, *self.polynomial)[-1]


IDENTITY = Curve((1.0, 0.0))


def broken_line(x: Array, y: Array) -> Curve:
    """Return the piecewise linear function through the points (x, y), extrapolated beyond the ends."""
    slopes = np.diff(y) / np.diff(x)
    bends = zip(x[1:-1].tolist(), np.diff(slopes).tolist(), strict=True)
    return Curve((float(slopes[0]), float(y[0] - slopes[0] * x[0])), tuple((at, by, 1) for at, by in bends))


def cubic_spline(x: Array, y: Array) -> Curve:
    """Return the cubic spline through the points (x, y), extrapolated linearly like OpenSim's SimmSpline.

    Its third derivatives at the ends are those of cubics through the four outermost points (Forsythe, Malcolm and Moler
    1977).
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
    """Return the third derivative of the cubic through four points; it is 0 for three points."""
    if len(x) < 4:
        return 0.0
    differences = y
    for order in range(1, 4):
        differences = np.diff(differences) / (x[order:] - x[:-order])
    return 6 * float(differences[0])


# Joints guided by a curve, such as cams: the rotation or translation x = f(q) is a function of a coordinate.
#
# With the derivatives f' and f'', x' = f' q' and x'' = f' q'' + f'' q'^2. Several cams may share one coordinate: the
# knee of a skeleton rotates and slides by functions of one angle (Rajagopal et al. 2016).


@dataclass(frozen=True, eq=False)
class _Guided(JointKind):
    """A rotation about z, or a translation along z, by outer(inner(q))."""

    inner: Curve = IDENTITY
    outer: Curve = IDENTITY

    def _motion(self, q: Vector) -> tuple[Any, Any, Any]:
        inner: Any = self.inner.traced if is_symbolic(q) else self.inner
        outer: Any = self.outer.traced if is_symbolic(q) else self.outer
        u, first, second = inner(q[0])
        x, slope, bend = outer(u)
        return x, slope * first, bend * first * first + slope * second

    def transform(self, q: Vector, pitch: float) -> tuple[Matrix, Vector]:
        x = self._motion(q)[0]
        return (about_z(x), np.zeros(3)) if self.turns[0] else (np.eye(3), stack(0.0, 0.0, x))

    def subspace(self, q: Vector, pitch: float) -> Matrix:
        return self._column(self._motion(q)[1])

    def subspace_rate(self, q: Vector, v: Vector, pitch: float) -> Matrix:
        return self._column(self._motion(q)[2] * v[0])

    def _column(self, slope: Any) -> Matrix:
        """Return the motion subspace (6 x 1) for a slope."""
        return matrix([[slope] if row == (2 if self.turns[0] else 5) else [0] for row in range(6)])

    def invisible(self, P: Array) -> Array:
        return KINDS["revolute" if self.turns[0] else "prismatic"].invisible(P)


@dataclass(frozen=True, eq=False)
class Cam(Flexible):
    """Data of a "flexible" joint whose rotation or translation is a function f of its coordinate.

    ``turns`` is (True,) for a rotation about the joint axis and (False,) for a translation along it. The function (rad
    or m) is the sum of a polynomial, highest power first, and truncated ``powers`` (x, factor, n), each of which is
    factor * max(q - x, 0)^n (``Curve``). If ``inner_polynomial`` is given, q is that function of the coordinate.

    Example:
        >>> from torsor.mechanism import Joint
        >>> cam = Cam((False,), [0.02, 0.0, 0.1])
        >>> slide = Joint("slide", "flexible", "thigh", "shank", axis=(1, 0, 0), flexible=cam)
        >>> slide.kind.transform(np.array([2.0]), 0.0)[1].round(12).tolist()
        [0.0, 0.0, 0.18]
    """

    turns: tuple[bool, ...]
    polynomial: ArrayLike
    powers: ArrayLike = ()
    inner_polynomial: ArrayLike = IDENTITY.polynomial
    inner_powers: ArrayLike = ()
    source: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        where = self.source or "cam"
        for name in ("polynomial", "inner_polynomial"):
            numbers = np.atleast_1d(real_array(getattr(self, name), where, name))
            self._set(**{name: frozen_array(numbers, (numbers.size,), where, name, most=MAX_NUMBER)})
        for name in ("powers", "inner_powers"):
            numbers = real_array(getattr(self, name), where, name)
            table = numbers.ndim == 2 and numbers.shape[1] == 3
            if numbers.size and not (table and np.isin(numbers[:, 2], (1, 2, 3)).all()):
                message = f"{name} has shape {numbers.shape}"
                raise ModelError(message, where=where, allowed="rows (x, factor, exponent 1, 2 or 3)")
            rows = numbers.reshape(-1, 3)
            self._set(**{name: frozen_array(rows, rows.shape, where, name, most=MAX_NUMBER)})
        if len(self.turns) != 1 or not np.size(self.polynomial) or not np.size(self.inner_polynomial):
            allowed = "one entry of turns, polynomials of at least one number"
            raise ModelError(f"is {self.turns}", argument="turns", value=self.turns, where=where, allowed=allowed)

    @classmethod
    def of(cls, turns: bool, function: Curve, inner: Curve = IDENTITY, source: str = "") -> "Cam":
        """Return the cam of x = function(inner(q)): a rotation if ``turns`` is true, otherwise a translation."""
        return cls((turns,), function.polynomial, function.powers, inner.polynomial, inner.powers, source)

    @cached_property
    def kind(self) -> JointKind:
        """The kinematics: a rotation about the joint's z axis, or a translation along it."""
        inner = _curve(self.inner_polynomial, self.inner_powers)
        outer = _curve(self.polynomial, self.powers)
        return _Guided("flexible", ("",), self.turns, inner=inner, outer=outer)


def _curve(polynomial: Any, powers: Any) -> Curve:
    return Curve(tuple(polynomial.tolist()), tuple((x, factor, int(n)) for x, factor, n in powers.tolist()))
