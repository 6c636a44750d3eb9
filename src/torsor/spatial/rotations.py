"""Rotations: roll-pitch-yaw angles, quaternions (x, y, z, w) and rotation vectors.

R = ``aRb`` transforms components in axes b to components in axes a: x_a = R x_b.
"""

import math
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.spatial.vectors import Matrix, Vector, choose, components, cross, is_symbolic, matrix, times

# Distance (rad) within which an angle is rounded to a multiple of a quarter turn, because files contain pi/2 with about
# 11 digits. The error is below 1e-10 rad. Zeros of the rotation matrix become exact, and tracing removes them.
QUARTER_TURN_SNAP = 1e-10

# Squared angle below which the exponential uses its Taylor series; the first omitted term is then below 1e-16.
SMALL_ANGLE_SQUARED = 1e-5


def _cos_sin(angle: float) -> tuple[float, float]:
    quarters = angle / (math.pi / 2)
    if abs(quarters - round(quarters)) * (math.pi / 2) < QUARTER_TURN_SNAP:
        return ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[round(quarters) % 4]
    return math.cos(angle), math.sin(angle)


def from_rpy(rpy: ArrayLike) -> Array:
    """Return the rotation Rz(yaw) Ry(pitch) Rx(roll) of URDF's ``rpy`` (roll, pitch, yaw), in radians.

    Example:
        >>> from_rpy([0, 0, np.pi / 2]) @ np.array([1.0, 0, 0])
        array([0., 1., 0.])
    """
    (cr, sr), (cp, sp), (cy, sy) = map(_cos_sin, np.asarray(rpy, dtype=float).tolist())
    R = [
        [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
        [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
        [-sp, cp * sr, cp * cr],
    ]
    return np.array(R) + 0.0  # adding zero turns -0.0 into 0.0


def to_rpy(R: Array) -> Array:
    """Return the angles (roll, pitch, yaw) of a rotation, the inverse of ``from_rpy``; in gimbal lock, yaw is 0.

    Example:
        >>> to_rpy(from_rpy([0.1, 0.2, 0.3])).round(12).tolist()
        [0.1, 0.2, 0.3]
    """
    pitch = math.atan2(-R[2, 0], math.hypot(R[0, 0], R[1, 0]))
    if math.hypot(R[0, 0], R[1, 0]) < 1e-12:
        return np.array([math.atan2(-R[1, 2], R[1, 1]), pitch, 0.0])
    return np.array([math.atan2(R[2, 1], R[2, 2]), pitch, math.atan2(R[1, 0], R[0, 0])])


def about_z(angle: Any) -> Matrix:
    """Return the rotation by an angle (rad) about the z axis.

    Example:
        >>> about_z(np.pi / 2)[0].round(12).tolist()
        [0.0, -1.0, 0.0]
    """
    c, s = ca.cos(angle), ca.sin(angle)  # these also accept numbers
    return matrix([[c, -s, 0], [s, c, 0], [0, 0, 1]])


def axis_frame(axis: ArrayLike) -> Array:
    """Return a rotation whose third column is along ``axis``, and whose first column has a zero component.

    Axes along x, y and z give permutation matrices (z: the identity), which take no operations after tracing.

    Example:
        >>> axis_frame([1, 0, 0]).tolist()
        [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    z = np.asarray(axis, dtype=float)
    z = z / np.linalg.norm(z)
    largest = int(np.argmax(np.abs(z)))
    if np.count_nonzero(z) == 1:
        x = np.roll([1.0, 0.0, 0.0], largest + 1)
    else:
        x = np.cross(np.eye(3)[int(np.argmin(np.abs(z)))], z)
        x = x / np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z]) + 0.0


def from_quaternion(quaternion: Any) -> Matrix:
    """Return the rotation of a quaternion (x, y, z, w), which need not be normalised.

    Example:
        >>> from_quaternion(np.array([0, 0, 1.0, 1.0])).round(12).tolist()
        [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    x, y, z, w = components(quaternion)
    s = 2 / (x * x + y * y + z * z + w * w)
    sx, sy, sz = s * x, s * y, s * z
    xx, yy, zz = x * sx, y * sy, z * sz
    xy, xz, yz = x * sy, x * sz, y * sz
    wx, wy, wz = w * sx, w * sy, w * sz
    return matrix(
        [[1 - (yy + zz), xy - wz, xz + wy], [xy + wz, 1 - (xx + zz), yz - wx], [xz - wy, yz + wx, 1 - (xx + yy)]]
    )


def to_quaternion(R: Matrix) -> Vector:
    """Return the unit quaternion (x, y, z, w), w >= 0, of a rotation.

    Example:
        >>> to_quaternion(np.eye(3)).tolist()
        [0.0, 0.0, 0.0, 1.0]
    """
    symbolic = is_symbolic(R)

    def entry(i: int, j: int) -> Any:
        return R[i, j] if symbolic else R[..., i, j]

    # Shepperd's method: all rows of 4 q q^T are multiples of the quaternion q. The row with the largest diagonal entry
    # is used, because it is not small.
    x, y, z = (entry(j, i) - entry(i, j) for i, j in ((1, 2), (2, 0), (0, 1)))
    xy, yz, zx = (entry(i, j) + entry(j, i) for i, j in ((0, 1), (1, 2), (2, 0)))
    a, b, c = (entry(k, k) for k in range(3))
    trace = a + b + c
    rows = [(1 + 2 * a - trace, xy, zx, x), (xy, 1 + 2 * b - trace, yz, y), (zx, yz, 1 + 2 * c - trace, z)]
    chosen, largest = (x, y, z, 1 + trace), 1 + trace
    for k, row in enumerate(rows):
        larger = row[k] > largest
        chosen = tuple(choose(larger, new, old) for new, old in zip(row, chosen, strict=True))
        largest = choose(larger, row[k], largest)
    upright = choose(chosen[3] < 0, -1.0, 1.0)
    if symbolic:
        quaternion = upright * ca.vertcat(*chosen)
        return quaternion / ca.norm_2(quaternion)
    quaternion = times(upright, np.stack(chosen, axis=-1), 1)
    return np.asarray(quaternion / np.linalg.norm(quaternion, axis=-1, keepdims=True) + 0.0)


def quaternion_product(a: Vector, b: Vector) -> Vector:
    """Return the quaternion (x, y, z, w) of the rotation R(a) R(b).

    Example:
        >>> quaternion_product(np.array([0, 0, 1.0, 0]), np.array([0, 0, 1.0, 0])).tolist()
        [0.0, 0.0, 0.0, -1.0]
    """
    if is_symbolic(a, b):
        u, s, v, t = a[:3], a[3], b[:3], b[3]
        return ca.vertcat(s * v + t * u + cross(u, v), s * t - (u[0] * v[0] + u[1] * v[1] + u[2] * v[2]))
    u, s, v, t = a[..., :3], a[..., 3], b[..., :3], b[..., 3]
    vector = times(s, v, 1) + times(t, u, 1) + cross(u, v)
    return np.concatenate([vector, (s * t - np.sum(u * v, axis=-1))[..., None]], axis=-1)


def quaternion_exp(rotation_vector: Vector) -> Vector:
    """Return the unit quaternion (x, y, z, w) of a rotation vector (axis times angle, rad), smooth through zero.

    Example:
        >>> quaternion_exp(np.array([0, 0, np.pi])).round(12).tolist()
        [0.0, 0.0, 1.0, 0.0]
    """
    symbolic = is_symbolic(rotation_vector)
    library: Any = ca if symbolic else np
    x, y, z = components(rotation_vector)
    t = x * x + y * y + z * z
    small = t < SMALL_ANGLE_SQUARED
    angle = library.sqrt(choose(small, 1.0, t))  # 1 where it is small, to allow division
    vector = choose(small, 1 / 2 - t / 48 + t**2 / 3840 - t**3 / 645120, library.sin(angle / 2) / angle)
    scalar = choose(small, 1 - t / 8 + t**2 / 384 - t**3 / 46080, library.cos(angle / 2))
    if symbolic:
        return ca.vertcat(vector * rotation_vector, scalar)
    return np.stack([vector * x, vector * y, vector * z, scalar], axis=-1)


def log_rotation(quaternion: Vector) -> Vector:
    """Return the rotation vector (angle at most pi) of a quaternion (x, y, z, w), which need not be normalised.

    Example:
        >>> log_rotation(np.array([0, 0, 1.0, 1.0])).round(12).tolist()
        [0.0, 0.0, 1.570796326795]
    """
    symbolic = is_symbolic(quaternion)
    library: Any = ca if symbolic else np
    x, y, z, w = components(quaternion)
    squared = x * x + y * y + z * z
    small = squared < 1e-6 * w * w
    length = library.sqrt(choose(small, 1.0, squared))
    nearest = choose(w < 0, -1.0, 1.0)  # q and -q are the same rotation; the one with the smaller angle is used
    w_safe = choose(small, w, 1.0)
    t = squared / (w_safe * w_safe)
    series = 2 / w_safe * (1 - t / 3 + t**2 / 5 - t**3 / 7)
    closed = nearest * 2 * library.arctan2(length, nearest * w) / length
    return times(choose(small, series, closed), quaternion[:3] if symbolic else quaternion[..., :3], 1)
