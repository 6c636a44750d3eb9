"""The exponential and the logarithm of rotations (SO(3)) and poses (SE(3)), and their derivatives.

A rotation vector w (axis times angle, rad) is an element of so(3), and a twist V = (w, v) is an element of se(3). With
K = [w] and t = |w|^2,

    exp(w) = 1 + A K + B K^2        J(w) = 1 + B K + C K^2        J(w)^-1 = 1 - K/2 + D K^2
    exp(V) = [[exp(w), J(w) v], [0, 1]]

where A, B, C and D are functions of t. Near zero, they are evaluated as power series to avoid cancellation. J is the
left Jacobian, exp(w + d) = exp(J(w) d) exp(w) for small d, and the right Jacobian is J(-w). The Jacobian of se(3) is
the same series with the matrix ad(V) = [[K, 0], [[v], K]] in place of K. Its diagonal blocks are J(w), and the block
below them is the derivative of J at w in the direction v. Its inverse has the same structure.
"""

import math
from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from torsor.base.checks import ROTATION_TOLERANCE, real_array
from torsor.base.errors import ModelError, shortened
from torsor.spatial.poses import make_pose, parts
from torsor.spatial.rotations import log_rotation, to_quaternion
from torsor.spatial.vectors import Matrix, Vector, applied, blocks, choose, components, is_symbolic, skew, times

# Squared angle below which the functions of t are summed as power series; above it, the closed forms lose no digits.
SERIES_BELOW = 1.0
# Number of terms in the series of A, B and C: for t < 1, the first omitted term is below 1/23!, less than rounding.
_TERMS = 10
_A, _B, _C = ([(-1) ** k / math.factorial(2 * k + n) for k in range(_TERMS)] for n in (1, 2, 3))
# Coefficients |B_2n| / (2n)! of D, with the Bernoulli numbers B_2n; the series converges for angles below a full turn.
_D = [
    1 / 12,
    1 / 720,
    1 / 30240,
    1 / 1209600,
    1 / 47900160,
    691 / 1307674368000,
    1 / 74724249600,
    3617 / 10670622842880000,
    43867 / 5109094217170944000,
    174611 / 802857662698291200000,
    77683 / 14101100039391805440000,
    236364091 / 1693824136731743669452800000,
]


class _Angle:
    """The functions A, B, C and D of t = |w|^2, and the derivatives of B, C and D with respect to t."""

    def __init__(self, w: Vector):
        self._library: Any = ca if is_symbolic(w) else np
        x, y, z = components(w)
        t = x * x + y * y + z * z
        self._small = t < SERIES_BELOW
        # The form that is not chosen gets an argument at which it can be evaluated and differentiated.
        self._near, self._far = choose(self._small, t, 0.0), choose(self._small, 1.0, t)
        self._angle = self._library.sqrt(self._far)

    def _choose(self, series: Sequence[float], closed: Any) -> Any:
        total: Any = series[-1]
        for coefficient in reversed(series[:-1]):
            total = coefficient + self._near * total
        return choose(self._small, total, closed)

    def _closed(self) -> tuple[Any, Any, Any, Any]:
        """Return A, B, C and (angle/2) cot(angle/2) from their closed forms."""
        angle, t = self._angle, self._far
        sine, half, cosine = self._library.sin(angle), self._library.sin(angle / 2), self._library.cos(angle / 2)
        return sine / angle, 2 * half * half / t, (angle - sine) / (angle * t), angle * cosine / (2 * half)

    def exponential(self) -> tuple[Any, Any]:
        """Return A and B."""
        A, B, _, _ = self._closed()
        return self._choose(_A, A), self._choose(_B, B)

    def jacobian(self) -> tuple[Any, Any]:
        """Return B and C."""
        _, B, C, _ = self._closed()
        return self._choose(_B, B), self._choose(_C, C)

    def jacobian_rates(self) -> tuple[Any, Any]:
        """Return the derivatives of B and C with respect to t."""
        (A, B, C, _), t = self._closed(), self._far
        by_B, by_C = (A - 2 * B) / (2 * t), (B - 3 * C) / (2 * t)
        return self._choose(_derivative(_B), by_B), self._choose(_derivative(_C), by_C)

    def inverse(self) -> Any:
        """Return D."""
        return self._choose(_D, (1 - self._closed()[3]) / self._far)

    def inverse_rate(self) -> Any:
        """Return the derivative of D with respect to t."""
        (_, B, _, cotangent), t = self._closed(), self._far
        return self._choose(_derivative(_D), ((1 / B - 2 * cotangent) / (4 * t) - (1 - cotangent) / t) / t)


def _derivative(series: Sequence[float]) -> list[float]:
    return [k * coefficient for k, coefficient in enumerate(series)][1:]


def exp_so3(w: Vector) -> Matrix:
    """Return the rotation (..., 3, 3) of rotation vectors w (..., 3), rad.

    Example:
        >>> exp_so3([0, 0, np.pi / 2]).round(12).tolist()
        [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    w = _columns(w, "w", (3,))
    A, B = _Angle(w).exponential()
    K = skew(w)
    return np.eye(3) + times(A, K, 2) + times(B, K @ K, 2)


def log_so3(R: Matrix) -> Vector:
    """Return the rotation vector (..., 3) of rotations R (..., 3, 3), with an angle from 0 to pi.

    This is the inverse of ``exp_so3``. It is accurate near 0 and near pi. At pi, it returns w or -w.

    Example:
        >>> log_so3(exp_so3([0.1, 0.2, 3.0])).round(12).tolist()
        [0.1, 0.2, 3.0]
    """
    return log_rotation(to_quaternion(_rotations(R, "R", 3)))


def exp_se3(V: Vector) -> Matrix:
    """Return the pose (..., 4, 4) that a body reaches from the identity in one unit of time at the twist V (..., 6).

    V = (omega, v) is constant in the body's own axes or, with the same result, in base axes at the base origin.

    Example:
        >>> exp_se3([0, 0, np.pi, 1.0, 0, 0])[:3, 3].round(12).tolist()  # half a circle of radius 1 / pi
        [0.0, 0.636619772368, 0.0]
    """
    w, v = _halves(_columns(V, "V", (6,)))
    return make_pose(exp_so3(w), applied(left_jacobian(w), v))


def log_se3(T: Matrix) -> Vector:
    """Return the twist (..., 6) whose ``exp_se3`` is T (..., 4, 4), with an angle from 0 to pi.

    Example:
        >>> log_se3(exp_se3([0.1, 0.2, 3.0, 1.0, 2.0, 3.0])).round(12).tolist()
        [0.1, 0.2, 3.0, 1.0, 2.0, 3.0]
    """
    R, p = parts(_rotations(T, "T", 4))
    w = log_so3(R)
    v = applied(inverse_left_jacobian(w), p)
    return ca.vertcat(w, v) if is_symbolic(w) else np.concatenate([w, v], axis=-1)


def left_jacobian(x: Vector) -> Matrix:
    """Return J with exp(x + d) = exp(J d) exp(x) for small d, for rotation vectors x (..., 3) or twists x (..., 6).

    The result is (..., 3, 3) or (..., 6, 6). For rotation vectors, it also determines the displacement at a constant
    twist: exp(omega, v) = (exp(omega), J(omega) v).

    Example:
        >>> left_jacobian(np.zeros(3)).tolist()
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
        >>> left_jacobian(np.array([0, 0, 0, 1.0, 2.0, 3.0]))[3].tolist()  # 1 + ad / 2
        [0.0, -1.5, 1.0, 1.0, 0.0, 0.0]
    """
    x = _columns(x, "x", (3, 6))
    w, v = _halves(x)
    angle, K = _Angle(w), skew(w)
    B, C = angle.jacobian()
    J = np.eye(3) + times(B, K, 2) + times(C, K @ K, 2)
    if v is None:
        return J
    X, twice = skew(v), 2 * _dot(w, v)
    by_B, by_C = angle.jacobian_rates()
    below = times(B, X, 2) + times(C, K @ X + X @ K, 2) + times(twice * by_B, K, 2) + times(twice * by_C, K @ K, 2)
    return blocks([[J, np.zeros((3, 3))], [below, J]])


def inverse_left_jacobian(x: Vector) -> Matrix:
    """Return the inverse of ``left_jacobian``, for angles below a full turn: log(exp(d) exp(x)) = x + J^-1 d.

    Example:
        >>> r = np.array([0.3, -0.2, 0.5])
        >>> (inverse_left_jacobian(r) @ left_jacobian(r)).round(12).diagonal().tolist()
        [1.0, 1.0, 1.0]
    """
    x = _columns(x, "x", (3, 6))
    w, v = _halves(x)
    angle, K = _Angle(w), skew(w)
    D = angle.inverse()
    J = np.eye(3) - K / 2 + times(D, K @ K, 2)
    if v is None:
        return J
    X = skew(v)
    below = -X / 2 + times(D, K @ X + X @ K, 2) + times(2 * _dot(w, v) * angle.inverse_rate(), K @ K, 2)
    return blocks([[J, np.zeros((3, 3))], [below, J]])


def right_jacobian(x: Vector) -> Matrix:
    """Return J with exp(x + d) = exp(x) exp(J d) for small d, for rotation vectors x (..., 3) or twists x (..., 6).

    The velocity of a body with the pose exp(x(t)) is J x' in its own axes.

    Example:
        >>> r = np.array([0.3, -0.2, 0.5])
        >>> bool(np.allclose(left_jacobian(r), exp_so3(r) @ right_jacobian(r)))
        True
    """
    return left_jacobian(-_columns(x, "x", (3, 6)))


def inverse_right_jacobian(x: Vector) -> Matrix:
    """Return the inverse of ``right_jacobian``, for angles below a full turn: log(exp(x) exp(d)) = x + J^-1 d.

    Example:
        >>> r = np.array([0.3, -0.2, 0.5])
        >>> bool(np.allclose(inverse_right_jacobian(r), inverse_left_jacobian(r).T))
        True
    """
    return inverse_left_jacobian(-_columns(x, "x", (3, 6)))


def _halves(x: Vector) -> tuple[Vector, Vector]:
    """Return the angular and linear parts; the linear part is None for a rotation vector."""
    if is_symbolic(x):
        return x[:3], x[3:] if x.numel() == 6 else None
    return x[..., :3], x[..., 3:] if x.shape[-1] == 6 else None


def _dot(a: Vector, b: Vector) -> Any:
    return ca.dot(a, b) if is_symbolic(a, b) else np.sum(a * b, axis=-1)


def _columns(x: Any, what: str, sizes: tuple[int, ...]) -> Vector:
    """Return an array (..., n) or a column of n symbols, where n is one of ``sizes``."""
    allowed = " or ".join(f"(..., {size})" for size in sizes)
    if is_symbolic(x):
        if x.size2() != 1 or x.size1() not in sizes:
            raise ModelError(f"is {x.size1()} x {x.size2()}", argument=what, allowed=f"a column of {allowed}")
        return x
    array = real_array(x, "torsor.spatial", what)
    if not array.ndim or array.shape[-1] not in sizes:
        raise ModelError(f"has shape {array.shape}", argument=what, where="torsor.spatial", allowed=allowed)
    return array


def _rotations(T: Any, what: str, size: int) -> Matrix:
    """Return rotations (``size`` 3) or poses (4); raise ModelError if a matrix is not a rotation."""
    kind = "rotations" if size == 3 else "poses"
    if is_symbolic(T):
        if T.shape != (size, size):
            raise ModelError(f"is {T.size1()} x {T.size2()}", argument=what, allowed=f"{size} x {size}")
        return T
    array = real_array(T, "torsor.spatial", what)
    allowed = f"{kind} (..., {size}, {size})"
    if array.ndim < 2 or array.shape[-2:] != (size, size):
        raise ModelError(f"has shape {array.shape}", argument=what, where="torsor.spatial", allowed=allowed)
    R, last = array[..., :3, :3], array[..., 3:, :].reshape(-1, size)  # rotations have no last row
    error = np.abs(R @ R.swapaxes(-1, -2) - np.eye(3)).max(initial=0.0)
    if not (error <= ROTATION_TOLERANCE and np.all(np.linalg.det(R) > 0)):
        raise ModelError(argument=what, value=T, where="torsor.spatial", allowed=f"{allowed} with R^T R = 1, det R = 1")
    for row in last[~(np.abs(last - np.eye(size)[3:]) <= ROTATION_TOLERANCE).all(axis=1)]:
        message, allowed = f"has the last row {shortened(row)}", "0, 0, 0, 1, as in every pose [[R, p], [0, 1]]"
        raise ModelError(message, argument=what, where="torsor.spatial", allowed=allowed)
    return array
