"""Vectors of three or six components and the cross product, for numbers or symbols."""

from typing import Any, TypeAlias

import casadi as ca
import numpy as np

# A column of three (or six) components: a NumPy array of shape (3,) or a CasADi SX of size 3 x 1.
Vector: TypeAlias = Any
# A NumPy array of shape (r, c) or a CasADi SX of size r x c.
Matrix: TypeAlias = Any


def is_symbolic(*values: Any) -> bool:
    """Whether any of the values is a CasADi expression."""
    return any(isinstance(value, ca.SX) for value in values)


def stack(*parts: Any) -> Vector:
    """Return a column of scalars and columns, stacked vertically.

    Example:
        >>> stack(1.0, 2.0, 3.0)
        array([1., 2., 3.])
    """
    return ca.vertcat(*parts) if is_symbolic(*parts) else np.hstack(parts)


def matrix(rows: list[list[Any]]) -> Matrix:
    """Return a matrix from its entries, row by row.

    Example:
        >>> matrix([[1.0, 2.0], [3.0, 4.0]])
        array([[1., 2.],
               [3., 4.]])
    """
    return ca.blockcat(rows) if is_symbolic(*(entry for row in rows for entry in row)) else np.array(rows)


def choose(condition: Any, then: Any, otherwise: Any) -> Any:
    """Return ``then`` if the condition holds, else ``otherwise``; both must be finite, since both are differentiated.

    Example:
        >>> choose(True, 1.0, 2.0)
        1.0
    """
    if is_symbolic(condition):
        return ca.if_else(condition, then, otherwise)
    return then if condition else otherwise


def cross(a: Vector, b: Vector) -> Vector:
    """Return a x b.

    Example:
        >>> cross(np.array([1.0, 0, 0]), np.array([0, 1.0, 0]))
        array([0., 0., 1.])
    """
    return ca.cross(a, b) if is_symbolic(a, b) else np.cross(a, b)


def skew(a: Vector) -> Matrix:
    """Return the matrix of the cross product with a: [a] b = a x b.

    Example:
        >>> skew(np.array([1.0, 2.0, 3.0])) @ np.array([4.0, 5.0, 6.0])
        array([-3.,  6., -3.])
    """
    return ca.skew(a) if is_symbolic(a) else np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


def ad(V: Vector) -> Matrix:
    """Return the 6 x 6 matrix of the Lie bracket with a twist V: the rate of a twist that moves with V.

    Example:
        >>> (ad(np.array([0, 0, 1.0, 0, 0, 0])) @ np.array([1.0, 0, 0, 0, 0, 0])).tolist()
        [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    """
    W, X = skew(V[:3]), skew(V[3:])
    return ca.blockcat([[W, ca.SX(3, 3)], [X, W]]) if is_symbolic(V) else np.block([[W, 0 * W], [X, W]])
