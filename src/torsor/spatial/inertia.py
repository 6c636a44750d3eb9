"""Inertia of rigid bodies, including the pseudo-inertia matrix.

    P = integral of (r, 1)(r, 1)^T dm = [[Sigma, ms], [ms^T, m]]        (4 x 4, symmetric)

with the second moments Sigma, the first moments ms and the mass m about the origin of a frame. P is equivalent to the
usual (mass, centre of mass, rotational inertia), but it is linear: the matrices P of several bodies can be added, and a
pose T transforms P to T P T^T. For a real body, P is positive semidefinite, which implies the triangle inequality for
the principal moments. See Wensing, Kim and Slotine, "Linear matrix inequalities for physically consistent inertial
parameters", 2018.
"""

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.spatial.vectors import Matrix, Vector, is_symbolic, skew


def second_moment(J: ArrayLike) -> Array:
    """Return Sigma = tr(J)/2 - J, the integral of r r^T dm, from the rotational inertia J about the same point.

    Example:
        >>> second_moment(np.diag([2.0, 2.0, 2.0])).diagonal().tolist()
        [1.0, 1.0, 1.0]
    """
    J = np.asarray(J, dtype=float)
    return np.asarray(0.5 * np.trace(J) * np.eye(3) - J)


def rotational_inertia(Sigma: Matrix) -> Matrix:
    """Return J = tr(Sigma) - Sigma, the inverse of ``second_moment``.

    Example:
        >>> rotational_inertia(np.eye(3)).diagonal().tolist()
        [2.0, 2.0, 2.0]
    """
    if is_symbolic(Sigma):
        J = -Sigma
        for k in range(3):  # avoids cancellation
            J[k, k] = Sigma[(k + 1) % 3, (k + 1) % 3] + Sigma[(k + 2) % 3, (k + 2) % 3]
        return J
    return np.asarray(np.trace(Sigma) * np.eye(3) - Sigma)


def pseudo_inertia(mass: float, com: ArrayLike, inertia: ArrayLike) -> Array:
    """Return P (4 x 4) from mass (kg), centre of mass (m) and 3 x 3 inertia about it (kg m^2), in frame axes.

    Example:
        >>> pseudo_inertia(2.0, [1, 0, 0], np.zeros((3, 3)))[0].tolist()
        [2.0, 0.0, 0.0, 2.0]
    """
    c = np.asarray(com, dtype=float)
    P = np.empty((4, 4))
    P[:3, :3] = second_moment(inertia) + mass * np.outer(c, c)
    P[:3, 3] = P[3, :3] = mass * c
    P[3, 3] = mass
    return P


def from_pseudo_inertia(P: Array) -> tuple[float, Array, Array]:
    """Return (mass, centre of mass, 3 x 3 inertia about it) from P. If the mass is 0, the centre of mass is the origin.

    Example:
        >>> mass, com, inertia = from_pseudo_inertia(pseudo_inertia(2.0, [1, 0, 0], np.eye(3)))
        >>> mass, com.tolist(), inertia[0].tolist()
        (2.0, [1.0, 0.0, 0.0], [1.0, 0.0, 0.0])
    """
    mass = float(P[3, 3])
    com = P[:3, 3] / mass if mass else np.zeros(3)
    return mass, com, rotational_inertia(P[:3, :3] - mass * np.outer(com, com))


def spatial_inertia(mass: float, com: ArrayLike, inertia: ArrayLike) -> Array:
    """Return G (6 x 6) = [[J, [m c]], [-[m c], m 1]] of a body: momentum (angular, linear) = G (omega, v).

    The mass m (kg), centre of mass c (m) and 3 x 3 inertia about it (kg m^2) are in the frame's axes. J is the inertia
    about the frame's origin, and [c] = skew(c). At the centre of mass, G = diag(inertia, m 1).

    Example:
        >>> spatial_inertia(2.0, [1, 0, 0], np.zeros((3, 3)))[2].tolist()
        [0.0, 0.0, 2.0, 0.0, 2.0, 0.0]
    """
    c = np.asarray(com, dtype=float)
    G = np.zeros((6, 6))
    G[:3, :3] = np.asarray(inertia, dtype=float) + mass * (c @ c * np.eye(3) - np.outer(c, c))
    G[:3, 3:] = mass * skew(c)
    G[3:, :3] = G[:3, 3:].T
    G[3:, 3:] = mass * np.eye(3)
    return G + 0.0


def composite(*bodies: tuple[float, ArrayLike, ArrayLike]) -> tuple[float, Array, Array]:
    """Return (mass, com, inertia about it) of rigidly connected bodies, which are given in the same form and axes.

    If only one body has mass or inertia, its values are returned unchanged.

    Example:
        >>> composite((1.0, [1, 0, 0], np.zeros((3, 3))), (1.0, [-1, 0, 0], np.zeros((3, 3))))[2].diagonal().tolist()
        [0.0, 2.0, 2.0]
    """
    present = [body for body in bodies if body[0] or np.any(body[2])]
    if len(present) == 1:
        mass, com, inertia = present[0]
        return mass, np.asarray(com, dtype=float), np.asarray(inertia, dtype=float)
    return from_pseudo_inertia(sum((pseudo_inertia(*body) for body in present), np.zeros((4, 4))))


def move_inertia(T: Array, mass: float, com: ArrayLike, inertia: ArrayLike) -> tuple[float, Array, Array]:
    """Return (mass, com, inertia about it) in the parent's axes for a body given in the axes of the frame T.

    Example:
        >>> move_inertia(np.eye(4), 1.0, [0, 0, 1], np.eye(3))[1].tolist()
        [0.0, 0.0, 1.0]
    """
    R = T[:3, :3]
    moved = R @ np.asarray(inertia, dtype=float) @ R.T
    return mass, R @ np.asarray(com, dtype=float) + T[:3, 3], 0.5 * (moved + moved.T)


def is_physical(inertia: ArrayLike, tolerance: float = 1e-3) -> tuple[bool, bool]:
    """Return whether a rotational inertia is positive and its principal moments obey the triangle inequality.

    The tolerance is relative to the largest moment, because data sheets round to three or four digits.

    Example:
        >>> is_physical(np.diag([1.0, 1.0, 3.0]))
        (True, False)
    """
    matrix = np.asarray(inertia, dtype=float)
    # Fast check for most bodies: Sigma = tr(J) / 2 - J, whose eigenvalues are half the slacks of the triangle
    # inequality, is positive definite according to its leading minors, within a third of the tolerance.
    (xx, _, _), (xy, yy, _), (xz, yz, zz) = matrix.tolist()
    if not (xx or yy or zz or xy or xz or yz):
        return True, True
    shifted = 0.5 * (xx + yy + zz) * (1 + 0.1 * tolerance)
    p, q, r = shifted - xx, shifted - yy, shifted - zz
    minor = p * q - xy * xy
    if p > 0 and minor > 0 and minor * r - p * yz * yz - q * xz * xz - 2 * xy * xz * yz > 0:
        return True, True
    a, b, c = np.linalg.eigvalsh(matrix).tolist()
    slack = tolerance * max(abs(c), abs(a))
    return bool(a >= -slack), bool(a + b >= c - slack)


def moment(U: Matrix, Sigma: Matrix) -> Vector:
    """Return the integral of r x (U r) dm, the axial vector of U Sigma - (U Sigma)^T, with 15 products and 15 sums.

    For ``U = [omega-dot] + [omega][omega]``, this is the moment J omega-dot + omega x J omega in Euler's equation.

    Example:
        >>> J, w, wd = np.diag([3.0, 4.0, 5.0]), np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.2, 0.3])
        >>> from torsor.spatial.vectors import skew
        >>> euler = J @ wd + np.cross(w, J @ w)
        >>> bool(np.allclose(moment(skew(wd) + skew(w) @ skew(w), second_moment(J)), euler))
        True
    """
    xy, yz, zx = (_cyclic(Sigma, *pair) for pair in ((0, 1), (1, 2), (2, 0)))
    yy, zz = _cyclic(Sigma, 1, 1), _cyclic(Sigma, 2, 2)
    return (
        xy * _cyclic(U, 2, 0)
        - zx * _cyclic(U, 1, 0)
        + yz * (_cyclic(U, 2, 2) - _cyclic(U, 1, 1))
        + yy * _cyclic(U, 2, 1)
        - zz * _cyclic(U, 1, 2)
    )


def _cyclic(A: Matrix, i: int, j: int) -> Vector:
    """Return (A[i, j], A[i+1, j+1], A[i+2, j+2]) with indices modulo 3."""
    entries = [(i + k) % 3 + 3 * ((j + k) % 3) for k in range(3)]
    return A[entries] if is_symbolic(A) else A.ravel(order="F")[entries]
