"""Poses as 4 x 4 matrices, and the transformation of twists, wrenches and inertias by a pose (numbers only)."""

import numpy as np
from numpy.typing import ArrayLike

from torsor.arrays import Array
from torsor.spatial.vectors import skew


def make_pose(R: ArrayLike | None = None, p: ArrayLike | None = None) -> Array:
    """Return the pose [[R, p], [0, 1]]: rotation R and origin p of a frame in its parent's axes.

    Example:
        >>> make_pose(p=[1, 2, 3])[:3, 3].tolist()
        [1.0, 2.0, 3.0]
    """
    T = np.eye(4)
    if R is not None:
        T[:3, :3] = R
    if p is not None:
        T[:3, 3] = p
    return T


def inverse_pose(T: Array) -> Array:
    """Return the inverse of a pose: [[R^T, -R^T p], [0, 1]].

    Example:
        >>> inverse_pose(make_pose(p=[1, 2, 3]))[:3, 3].tolist()
        [-1.0, -2.0, -3.0]
    """
    R, p = T[:3, :3], T[:3, 3]
    return make_pose(R.T, -R.T @ p + 0.0)


def adjoint(T: Array) -> Array:
    """Return the 6 x 6 adjoint matrix Ad(T), which transforms twists (omega, v) from the frame T to its parent.

    Its transpose transforms wrenches (moment, force) from the parent to the frame T: F_child = Ad(T)^T F_parent.

    Example:
        >>> (adjoint(make_pose(p=[0, 1, 0])) @ [0, 0, 1, 0, 0, 0]).tolist()
        [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]
    """
    R, p = T[:3, :3], T[:3, 3]
    return np.block([[R, np.zeros((3, 3))], [skew(p) @ R, R]])


def move_pseudo_inertia(T: Array, P: Array) -> Array:
    """Return the pseudo-inertia in the parent's axes of a body given in the axes of the frame T: T P T^T.

    Example:
        >>> move_pseudo_inertia(make_pose(p=[2, 0, 0]), np.diag([0, 0, 0, 3.0]))[0].tolist()
        [12.0, 0.0, 0.0, 6.0]
    """
    moved = T @ P @ T.T
    return 0.5 * (moved + moved.T)
