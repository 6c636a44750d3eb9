"""What callers give: numbers, or an error that says what was found in their place."""

import reprlib

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.errors import ModelError, describe

__all__ = ["broadcast", "numbers", "positive"]

Array = NDArray[np.float64]


def numbers(values: ArrayLike, where: str, what: str) -> Array:
    """Return real numbers as an array of their own; text, complex numbers and rows of unequal length are refused.

    Example:
        >>> numbers([1, 2], "robot", "pose")
        array([1., 2.])
    """
    try:
        given = np.asarray(values)
    except (TypeError, ValueError, OverflowError):
        given = np.asarray(None)
    if given.dtype.kind not in "biuf":
        raise ModelError(describe(f"{what} is {reprlib.repr(values)}", where=where, allowed="real numbers"))
    return np.array(given, dtype=float)


def positive(value: float, where: str, what: str) -> float:
    """Return one number above 0.

    Example:
        >>> positive(2, "robot", "length")
        2.0
    """
    given = numbers(value, where, what)
    if given.shape or not 0 < float(given) < np.inf:
        raise ModelError(describe(f"{what} is {reprlib.repr(value)}", where=where, allowed="a number above 0"))
    return float(given)


def broadcast(where: str, **shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the leading axes that arrays have together.

    Example:
        >>> broadcast("robot", pose=(3, 1), guess=(2,))
        (3, 2)
    """
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        found = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        text = f"leading axes do not broadcast: {found}"
        raise ModelError(describe(text, where=where, allowed="equal lengths, or 1")) from None
