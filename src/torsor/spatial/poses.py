"""Poses as 4 x 4 matrices, and transformations of twists, wrenches and inertias by a pose."""

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.spatial.vectors import Matrix, Vector, applied, blocks, is_symbolic, skew


def parts(T: Matrix) -> tuple[Matrix, Vector]:
    """Return the rotation (3 x 3) and origin (3) of a pose.

    Example:
        >>> parts(make_pose(p=[1, 2, 3]))[1].tolist()
        [1.0, 2.0, 3.0]
    """
    return (T[:3, :3], T[:3, 3]) if is_symbolic(T) else (T[..., :3, :3], T[..., :3, 3])


def make_pose(R: ArrayLike | None = None, p: ArrayLike | None = None) -> Array:
    """Return the pose [[R, p], [0, 1]]: rotation R and origin p of a frame in its parent's axes.

    Leading axes of R (..., 3, 3) and p (..., 3) broadcast. For symbols, the pose is symbolic.

    Example:
        >>> make_pose(p=[1, 2, 3])[:3, 3].tolist()
        [1.0, 2.0, 3.0]
    """
    if is_symbolic(R, p):
        turned, origin = np.eye(3) if R is None else R, np.zeros(3) if p is None else p
        symbolic: Array = blocks([[turned, origin], [np.zeros((1, 3)), np.ones((1, 1))]])  # actually an SX
        return symbolic
    T = np.eye(4)
    if np.ndim(R) > 2 or np.ndim(p) > 1:  # type: ignore[arg-type]  # None has no axes
        lead = np.broadcast_shapes(np.shape(R)[:-2], np.shape(p)[:-1])  # type: ignore[arg-type]
        T = np.broadcast_to(T, (*lead, 4, 4)).copy()
    if R is not None:
        T[..., :3, :3] = R
    if p is not None:
        T[..., :3, 3] = p
    return T


def inverse_pose(T: Matrix) -> Matrix:
    """Return the inverse of a pose: [[R^T, -R^T p], [0, 1]].

    Example:
        >>> inverse_pose(make_pose(p=[1, 2, 3]))[:3, 3].tolist()
        [-1.0, -2.0, -3.0]
    """
    R, p = parts(T)
    back = R.T if is_symbolic(R) else R.swapaxes(-1, -2)
    return make_pose(back, -applied(back, p) + 0.0)


def adjoint(T: Matrix) -> Matrix:
    """Return the 6 x 6 adjoint matrix Ad(T), which transforms twists (omega, v) from the frame T to its parent.

    Its transpose transforms wrenches (moment, force) from the parent to the frame T: F_child = Ad(T)^T F_parent.

    Example:
        >>> (adjoint(make_pose(p=[0, 1, 0])) @ [0, 0, 1, 0, 0, 0]).tolist()
        [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]
    """
    R, p = parts(T)
    return blocks([[R, np.zeros((3, 3))], [skew(p) @ R, R]])


def move_pseudo_inertia(T: Array, P: Array) -> Array:
    """Return T P T^T, the pseudo-inertia (4 x 4) in the parent's axes of a body given in the axes of the frame T.

    Example:
        >>> move_pseudo_inertia(make_pose(p=[2, 0, 0]), np.diag([0, 0, 0, 3.0]))[0].tolist()
        [12.0, 0.0, 0.0, 6.0]
    """
    moved = T @ P @ T.T
    return 0.5 * (moved + moved.T)
