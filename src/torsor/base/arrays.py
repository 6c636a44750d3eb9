"""Array types (real numbers, indices, flags, shapes), and the definition of a real array."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Flags = NDArray[np.bool_]
Shape = tuple[int, ...]
Maybe = ArrayLike | None  # an optional argument
IDENTITY: Array = np.eye(4)  # pose of most shapes in their links: one shared read-only array
IDENTITY.setflags(write=False)


def real_numbers(value: Any) -> NDArray[Any] | None:
    """Return a plain array of real numbers, at most float64, or None.

    Text, booleans, complex numbers and ragged lists are not real numbers. Neither are masked entries, whose value is
    unknown, nor tensors that do not convert to arrays by themselves.

    Example:
        >>> real_numbers(np.ma.array([1.0, 2.0])), real_numbers(np.ma.array([1.0, 2.0], mask=[True, False]))
        (array([1., 2.]), None)
    """
    if type(value) is not np.ndarray:
        try:
            # NumPy imports its masked arrays, 30 ms, when they are first used.
            if isinstance(value, np.ndarray) and isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
                return None
            value = np.asarray(value)
        except Exception:  # other frameworks raise errors of all kinds
            return None
    array: NDArray[Any] = value
    if array.dtype.kind not in "iuf":
        return None
    if array.dtype.itemsize > 8:  # longdouble
        with np.errstate(over="ignore"):
            return array.astype(np.float64)
    return array
