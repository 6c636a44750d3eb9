"""Arrays of compiled chains of calls: views of one block of memory, which is new in each call."""

import math
from collections.abc import Mapping

import numpy as np

from torsor.arrays import Array, Shape

FEW = 2  # states that are computed faster in short vectors, since a kernel fills the lanes that it does not need
SHORT = 2


class Block:
    """The places of arrays with some ``shapes`` in one block of memory.

    Example:
        >>> memory, arrays = Block({"x": (2, 3), "y": (4,)}).new()
        >>> memory[:] = range(10)
        >>> arrays["x"].tolist(), arrays["y"].tolist()
        ([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], [6.0, 7.0, 8.0, 9.0])
    """

    def __init__(self, shapes: Mapping[str, Shape]):
        ends = np.cumsum([0, *map(math.prod, shapes.values())]).tolist()
        self._size = ends[-1]
        self._places = [
            (name, slice(first, last), shape)
            for (name, shape), first, last in zip(shapes.items(), ends, ends[1:], strict=False)
        ]

    def new(self) -> tuple[Array, dict[str, Array]]:
        """Return a block (size,), whose numbers are to be written, and the arrays in it."""
        memory = np.empty(self._size)
        return memory, {name: memory[place].reshape(shape) for name, place, shape in self._places}


def narrow(states: int) -> int | None:
    """Return the width of kernels that are called many times with so many states, None for that of the machine."""
    return SHORT if states <= FEW else None
