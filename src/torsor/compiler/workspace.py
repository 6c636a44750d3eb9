"""The memory of a compiled chain of calls: named arrays in one block, which later calls use again."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array, Shape
from torsor.compiler.repeat import Call, Chain

KEPT = 2**20  # numbers of the largest block that is kept
FEW, SHORT = 2, 2  # states that are computed faster in short vectors, since a kernel fills the lanes that it needs not


class Room(NamedTuple):
    """The arrays of one call by name, in a ``block`` of memory, and the function that computes in them."""

    block: Array
    arrays: dict[str, Array]
    run: Callable[[], None]


class Workspace:
    """A chain of calls for arrays with some ``shapes``; ``calls`` makes it from these arrays.

    Who takes a room has it alone, until it is given back.

    Example:
        >>> import casadi as ca
        >>> x = ca.SX.sym("x")
        >>> kernel = torsor.compile(ca.Function("twice", [x], [2 * x]))
        >>> work = Workspace({"x": (5, 1)}, lambda a: [Call(kernel, [a["x"][:-1]], [a["x"][1:]])])
        >>> room = work.take()
        >>> room.arrays["x"][0] = 3.0
        >>> room.run()
        >>> room.arrays["x"][:, 0].tolist()
        [3.0, 6.0, 12.0, 24.0, 48.0]
        >>> work.give_back(room)
    """

    def __init__(self, shapes: Mapping[str, Shape], calls: Callable[[dict[str, Array]], Sequence[Call]]):
        ends = np.cumsum([0, *map(math.prod, shapes.values())]).tolist()
        self._size = ends[-1]
        parts = zip(shapes.items(), pairwise(ends), strict=True)
        self._places = [(name, slice(*place), shape) for (name, shape), place in parts]
        block = np.empty(self._size)
        self._chain = Chain(block, calls(self._arrays(block)))
        self._free: list[Room] = []

    def _arrays(self, block: Array) -> dict[str, Array]:
        return {name: block[place].reshape(shape) for name, place, shape in self._places}

    def take(self) -> Room:
        """Return arrays that nobody else uses, with any numbers in them."""
        try:
            return self._free.pop()
        except IndexError:
            block = np.empty(self._size)
            return Room(block, self._arrays(block), partial(self._chain, block))

    def give_back(self, room: Room) -> None:
        """Let others use arrays, from which all results were copied."""
        if self._size <= KEPT:
            self._free.append(room)


def narrow(states: int) -> int | None:
    """Return the width of kernels that are called many times with so many states, None for that of the machine."""
    return SHORT if states <= FEW else None
