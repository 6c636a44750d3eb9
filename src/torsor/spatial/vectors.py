"""Vectors with three or six components, matrices, and cross products, for numbers or symbols.

Numbers may be arrays with leading batch axes; symbols are a single vector or matrix.
"""

from typing import Any, TypeAlias

import casadi as ca
import numpy as np

# A column of three (or six) components: a NumPy array of shape (..., 3) or a CasADi SX of size 3 x 1.
Vector: TypeAlias = Any
# A NumPy array of shape (..., r, c) or a CasADi SX of size r x c.
Matrix: TypeAlias = Any


def is_symbolic(*values: Any) -> bool:
    """Return whether any of the values is a CasADi expression."""
    return any(isinstance(value, ca.SX) for value in values)


def stack(*parts: Any) -> Vector:
    """Return scalars and columns stacked vertically into one column.

    Example:
        >>> stack(1.0, 2.0, 3.0)
        array([1., 2., 3.])
    """
    return ca.vertcat(*parts) if is_symbolic(*parts) else np.hstack(parts)


def components(a: Vector) -> list[Any]:
    """Return the components of a column: scalars, or arrays over the leading axes.

    Example:
        >>> [part.tolist() for part in components(np.array([[1.0, 2.0], [3.0, 4.0]]))]
        [[1.0, 3.0], [2.0, 4.0]]
    """
    if isinstance(a, np.ndarray):
        return [a[..., k] for k in range(a.shape[-1])]
    return ca.vertsplit(a) if is_symbolic(a) else list(a)


def matrix(rows: list[list[Any]]) -> Matrix:
    """Return a matrix from its entries, row by row.

    Example:
        >>> matrix([[1.0, 2.0], [3.0, 4.0]])
        array([[1., 2.],
               [3., 4.]])
    """
    entries = [entry for row in rows for entry in row]
    if is_symbolic(*entries):
        return ca.blockcat(rows)
    if not any(getattr(entry, "ndim", 0) for entry in entries):
        return np.array(rows)
    shape = np.broadcast_shapes(*map(np.shape, entries))
    return np.stack([np.stack([np.broadcast_to(entry, shape) for entry in row], -1) for row in rows], -2)


def blocks(rows: list[list[Matrix]]) -> Matrix:
    """Return a matrix from blocks, row by row; leading axes broadcast.

    Example:
        >>> blocks([[np.eye(2), np.zeros((2, 1))], [np.ones((1, 2)), np.ones((1, 1))]])[2].tolist()
        [1.0, 1.0, 1.0]
    """
    parts = [part for row in rows for part in row]
    if is_symbolic(*parts):
        return ca.blockcat([list(map(ca.SX, row)) for row in rows])
    if any(part.ndim > 2 for part in parts):
        lead = np.broadcast_shapes(*(part.shape[:-2] for part in parts))
        rows = [[np.broadcast_to(part, lead + part.shape[-2:]) for part in row] for row in rows]
    return np.concatenate([np.concatenate(row, axis=-1) for row in rows], axis=-2)


def applied(A: Matrix, x: Vector) -> Vector:
    """Return the product A x.

    Example:
        >>> applied(np.array([[0.0, 1.0], [2.0, 0.0]]), np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
        [[2.0, 2.0], [4.0, 6.0]]
    """
    return A @ x if is_symbolic(A, x) else (A @ x[..., None])[..., 0]


def times(factor: Any, x: Any, axes: int) -> Any:
    """Return ``factor`` times x, a vector (``axes`` = 1) or matrix (``axes`` = 2), with one factor per batch entry.

    Example:
        >>> times(np.array([1.0, 2.0]), np.ones((2, 3)), 1).tolist()
        [[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]]
    """
    return factor * x if is_symbolic(factor, x) else np.expand_dims(factor, tuple(range(-axes, 0))) * x


def choose(condition: Any, then: Any, otherwise: Any) -> Any:
    """Return ``then`` where ``condition`` is true, else ``otherwise``; both are differentiated, so both must be finite.

    Example:
        >>> choose(True, 1.0, 2.0)
        1.0
    """
    if is_symbolic(condition):
        return ca.if_else(condition, then, otherwise)
    return np.where(condition, then, otherwise) if np.ndim(condition) else then if condition else otherwise


def cross(a: Vector, b: Vector) -> Vector:
    """Return the cross product a x b.

    Example:
        >>> cross(np.array([1.0, 0, 0]), np.array([0, 1.0, 0]))
        array([0., 0., 1.])
    """
    return ca.cross(a, b) if is_symbolic(a, b) else np.cross(a, b)


def skew(a: Vector) -> Matrix:
    """Return the cross-product matrix of a: [a] b = a x b.

    Example:
        >>> skew(np.array([1.0, 2.0, 3.0])) @ np.array([4.0, 5.0, 6.0])
        array([-3.,  6., -3.])
    """
    if is_symbolic(a):
        return ca.skew(a)
    x, y, z = components(a)
    return matrix([[0, -z, y], [z, 0, -x], [-y, x, 0]])


def ad(V: Vector) -> Matrix:
    """Return the 6 x 6 matrix of the Lie bracket with a twist V.

    It maps a twist that is constant in a frame moving with the twist V to its rate of change.

    Example:
        >>> (ad(np.array([0, 0, 1.0, 0, 0, 0])) @ np.array([1.0, 0, 0, 0, 0, 0])).tolist()
        [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    """
    w, v = (V[:3], V[3:]) if is_symbolic(V) else (V[..., :3], V[..., 3:])
    W = skew(w)
    return blocks([[W, ca.SX(3, 3) if is_symbolic(V) else 0 * W], [skew(v), W]])
