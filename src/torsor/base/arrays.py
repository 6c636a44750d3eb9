"""Array types (real numbers, indices, flags, shapes), and conversion to real arrays."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Flags = NDArray[np.bool_]
Shape = tuple[int, ...]
Maybe = ArrayLike | None  # an optional argument
IDENTITY: Array = np.eye(4)  # read-only array shared by the poses of most shapes
IDENTITY.setflags(write=False)


def real_numbers(value: Any) -> NDArray[Any] | None:
    """Return a value as a plain array of real numbers, at most float64, or None if it does not contain real numbers.

    Text, booleans, complex numbers and ragged lists are not real numbers. Neither are masked entries, whose values are
    unknown, and tensors without automatic conversion to arrays.

    Example:
        >>> real_numbers(np.ma.array([1.0, 2.0])), real_numbers(np.ma.array([1.0, 2.0], mask=[True, False]))
        (array([1., 2.]), None)
    """
    if type(value) is not np.ndarray:
        try:
            # NumPy imports its masked arrays on first use, which takes 30 ms.
            if isinstance(value, np.ndarray) and isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
                return None
            value = np.asarray(value)
        except Exception:  # other frameworks may raise any error
            return None
    array: NDArray[Any] = value
    if array.dtype.kind not in "iuf":
        return None
    if array.dtype.itemsize > 8:  # longdouble
        with np.errstate(over="ignore"):
            return array.astype(np.float64)
    return array
