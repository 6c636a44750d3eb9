"""Types of arrays: real numbers, indices, flags, and shapes; and what counts as an array of real numbers."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Flags = NDArray[np.bool_]
Shape = tuple[int, ...]
Maybe = ArrayLike | None  # an argument that may be left out
IDENTITY: Array = np.eye(4)  # the pose of most shapes in their links: one read-only array for all
IDENTITY.setflags(write=False)


def real_numbers(value: Any) -> NDArray[Any] | None:
    """Return an array of real numbers, no longer than float64 and without a subclass, or None.

    Text, booleans, complex numbers and ragged lists are no real numbers; nor are masked entries, whose value is not
    known, and tensors that do not become arrays by themselves.

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
