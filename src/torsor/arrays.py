"""Types of arrays: real numbers, indices, flags, and shapes."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Flags = NDArray[np.bool_]
Shape = tuple[int, ...]
