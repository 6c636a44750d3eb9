"""Repeated kernel calls in one call of machine code, such as the steps of a simulation."""

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

# A call is a row of integers: these, then for each array its place in the block, its move between two times, and its
# steps between states and entries, all in bytes.
_HEAD = _RUN, _ARRAYS, _TIMES, _STATES, _WORDS = range(5)


@cache
def _chain() -> tuple[Any, Any]:
    """Return the function and its machine code, which must outlive it; racing threads create one each."""
    words = {"arrays": _ARRAYS, "times": _TIMES, "states": _STATES, "words": _WORDS, "head": len(_HEAD)}
    code = native.link(host().objects([ir("chain", max_arrays=MAX_ARRAYS, **words)]), ["chain"])
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
    return kind(code["chain"]), code


def can_repeat(kernel: object) -> bool:
    """Return whether ``repeat`` supports a kernel: float64 machine code with one thread."""
    return isinstance(kernel, Kernel) and kernel.is_plain and kernel.most_threads == 1


class Call(NamedTuple):
    """A kernel that is called T times with arrays ``inputs`` (T, N, ...), and writes to ``outputs`` (T, N, ...)."""

    kernel: Kernel
    inputs: Sequence[Array]
    outputs: Sequence[Array]

    def words(self, block: int) -> list[int]:
        """Return the call as integers; its arrays are in the block of memory at an address."""
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

    Unlike a call with the batch (T, N), each call may read results of earlier ones: inputs may be views of the memory
    of outputs. All are float64 arrays; inputs shared by all calls may be broadcast.
    """
    words = Call(kernel, inputs, outputs).words(0)
    run, _ = _chain()
    run((ctypes.c_int64 * len(words))(*words), 1, None)


class Chain:
    """Consecutive kernel calls, whose arrays are views of one ``block`` of memory (size,).

    It is created once, and then called with any block of the same size.
    """

    def __init__(self, block: Array, calls: Sequence[Call]):
        if not all(np.may_share_memory(item, block) for call in calls for item in (*call.inputs, *call.outputs)):
            raise ValueError("an array of a chain is not in its block of memory")
        words = [word for call in calls for word in call.words(block.ctypes.data)]
        self._table, self._count, self._shape = (ctypes.c_int64 * len(words))(*words), len(calls), block.shape
        self._kernels = [call.kernel for call in calls]  # their machine code must outlive the chain
        self._run, self._code = _chain()

    def __call__(self, block: Array) -> None:
        """Make all calls in a block of memory: contiguous float64 with the shape with which the chain was created."""
        if block.shape != self._shape or block.dtype != np.float64 or not block.flags.c_contiguous:
            allowed = f"contiguous float64 of shape {self._shape}"
            raise ValueError(f"{block.dtype} of shape {block.shape}; allowed: {allowed}")
        self._run(self._table, self._count, block.ctypes.data)


# The memory of a compiled chain of calls: named arrays in one block, which later calls reuse.

MAX_BLOCK_KEPT = 2**20  # numbers in the largest block that is kept
FEW, SHORT = 2, 2  # number of states for which short vectors are faster, because a kernel also fills unused lanes


class Room(NamedTuple):
    """The arrays of one call by name, in a ``block`` of memory, and the function that computes in them."""

    block: Array
    arrays: dict[str, Array]
    run: Callable[[], None]


class Workspace:
    """A chain of calls for arrays with some ``shapes``; ``calls`` creates it from these arrays.

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
        """Return arrays that are not in use, with arbitrary content."""
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
