"""Repeated kernel calls, such as simulation steps, in one call of machine code."""

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from torsor.base.arrays import Array, Shape
from torsor.base.errors import ModelError
from torsor.compiler.kernel import Kernel
from torsor.compiler.llvm import ir, native
from torsor.compiler.llvm.target import host
from torsor.compiler.machine_code import MAX_ARRAYS

# A call is a row of integers: these, followed for each array by its offset in the block, its change between two calls,
# and its strides between states and entries, all in bytes.
_HEAD = _RUN, _ARRAYS, _TIMES, _STATES, _WORDS = range(5)


@cache
def _chain() -> tuple[Any, Any]:
    """Return the function and its machine code, which must outlive it; concurrent threads may each create one."""
    words = {"arrays": _ARRAYS, "times": _TIMES, "states": _STATES, "words": _WORDS, "head": len(_HEAD)}
    code = native.link(host().objects([ir("chain", max_arrays=MAX_ARRAYS, **words)]), ["chain"])
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
    return kind(code["chain"]), code


def can_repeat(kernel: object) -> bool:
    """Return whether ``repeat`` supports a kernel: float64 machine code with one thread."""
    return isinstance(kernel, Kernel) and kernel.is_plain and kernel.most_threads == 1


class Call(NamedTuple):
    """T calls of a kernel from arrays ``inputs`` (T, N, ...) to ``outputs`` (T, N, ...)."""

    kernel: Kernel
    inputs: Sequence[Array]
    outputs: Sequence[Array]

    def words(self, block: int) -> list[int]:
        """Return the call as integers; its arrays are in the memory block at the address ``block``."""
        kernel, arrays = self.kernel, [*self.inputs, *self.outputs]
        times, states = self.outputs[0].shape[:2]
        if not can_repeat(kernel):
            allowed = "float64 machine code with one thread"
            raise ModelError(f"{kernel!r} cannot be repeated", value=kernel, allowed=allowed)
        for array, core in zip(arrays, [*kernel.inputs, *kernel.outputs], strict=True):
            if array.shape != (times, states, *core) or array.dtype != np.float64:
                allowed = f"float64 of shape {(times, states, *core)}"
                raise ModelError(f"{array.dtype} of shape {array.shape}", where=kernel.signature.name, allowed=allowed)
        places, strides = [array.ctypes.data - block for array in arrays], [array.strides for array in arrays]
        steps = [stride[1] for stride in strides] + [step for stride in strides for step in stride[2:]]
        words = [*places, *(stride[0] for stride in strides), *steps]
        return [kernel.run, len(arrays), times, states, len(_HEAD) + len(words), *words]


def repeat(kernel: Kernel, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
    """Call a kernel T times in sequence, from arrays ``inputs`` (T, N, ...) into ``outputs`` (T, N, ...).

    Unlike in a call with the batch (T, N), each call may read results of earlier ones, because inputs may be views of
    output memory. All arrays are float64; inputs that all calls share may be broadcast.
    """
    words = Call(kernel, inputs, outputs).words(0)
    run, _ = _chain()
    run((ctypes.c_int64 * len(words))(*words), 1, None)


class Chain:
    """Consecutive kernel calls, whose arrays are views of one ``block`` of memory (size,).

    A chain is created once and then called with any block of the same size.
    """

    def __init__(self, block: Array, calls: Sequence[Call]):
        if not all(np.may_share_memory(item, block) for call in calls for item in (*call.inputs, *call.outputs)):
            raise ValueError("an array of a chain is not in its block of memory")
        words = [word for call in calls for word in call.words(block.ctypes.data)]
        self._table, self._count, self._shape = (ctypes.c_int64 * len(words))(*words), len(calls), block.shape
        self._kernels = [call.kernel for call in calls]  # keeps their machine code alive
        self._run, self._code = _chain()

    def __call__(self, block: Array) -> None:
        """Make all calls in a memory block, a contiguous float64 array with the shape used at creation."""
        if block.shape != self._shape or block.dtype != np.float64 or not block.flags.c_contiguous:
            allowed = f"contiguous float64 of shape {self._shape}"
            raise ValueError(f"{block.dtype} of shape {block.shape}; allowed: {allowed}")
        self._run(self._table, self._count, block.ctypes.data)


# The memory of a compiled chain of calls: named arrays in one reusable block.

MAX_BLOCK_KEPT = 2**20  # maximum size of a block that is kept for reuse, in numbers
FEW, SHORT = 2, 2  # maximum number of states for short vectors, and their width; a kernel computes unused lanes too


class Room(NamedTuple):
    """The named arrays of one call in a memory ``block``, and the function that computes in them."""

    block: Array
    arrays: dict[str, Array]
    run: Callable[[], None]


class Workspace:
    """A chain of calls on arrays with named ``shapes``; ``calls`` returns the calls for these arrays.

    A room is used exclusively until it is released.

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
        """Return unused arrays with arbitrary content."""
        try:
            return self._free.pop()
        except IndexError:
            block = np.empty(self._size)
            return Room(block, self._arrays(block), partial(self._chain, block))

    def give_back(self, room: Room) -> None:
        """Release arrays after all results have been copied from them."""
        if self._size <= MAX_BLOCK_KEPT:
            self._free.append(room)


def narrow(states: int) -> int | None:
    """Return the width of kernels that are called many times with ``states`` states, or None for the default."""
    return SHORT if states <= FEW else None
