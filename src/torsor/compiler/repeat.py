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
from torsor.compiler.llvm import native
from torsor.compiler.llvm.target import host
from torsor.compiler.machine_code import MAX_ARRAYS

# A call is a row of integers: these, then for each array its place in the block, its move between two times, and its
# steps between states and entries, all in bytes.
_HEAD = _RUN, _ARRAYS, _TIMES, _STATES, _WORDS = range(5)
_MODULE = f"""
declare i32 @feclearexcept(i32)
define void @chain(ptr %table, i64 %calls, ptr %block) {{
entry:
  %arrays = alloca ptr, i64 {MAX_ARRAYS}
  br label %call
call:
  %c = phi i64 [ 0, %entry ], [ %c.next, %done ]
  %row = phi ptr [ %table, %entry ], [ %row.next, %done ]
  %run = load ptr, ptr %row
  %count.p = getelementptr i64, ptr %row, i64 {_ARRAYS}
  %count = load i64, ptr %count.p
  %times.p = getelementptr i64, ptr %row, i64 {_TIMES}
  %times = load i64, ptr %times.p
  %lengths = getelementptr i64, ptr %row, i64 {_STATES}
  %words.p = getelementptr i64, ptr %row, i64 {_WORDS}
  %words = load i64, ptr %words.p
  %row.next = getelementptr i64, ptr %row, i64 %words
  %places = getelementptr i64, ptr %row, i64 {len(_HEAD)}
  %moves = getelementptr i64, ptr %places, i64 %count
  %steps = getelementptr i64, ptr %moves, i64 %count
  br label %place
place:
  %i = phi i64 [ 0, %call ], [ %i.next, %place ]
  %place.p = getelementptr i64, ptr %places, i64 %i
  %offset = load i64, ptr %place.p
  %first = getelementptr i8, ptr %block, i64 %offset
  %first.p = getelementptr ptr, ptr %arrays, i64 %i
  store ptr %first, ptr %first.p
  %i.next = add i64 %i, 1
  %i.more = icmp slt i64 %i.next, %count
  br i1 %i.more, label %place, label %head
head:
  %k = phi i64 [ 0, %place ], [ %k.next, %moved ]
  %more = icmp slt i64 %k, %times
  br i1 %more, label %body, label %done
body:
  call void %run(ptr %arrays, ptr %lengths, ptr %steps)
  br label %move
move:
  %j = phi i64 [ 0, %body ], [ %j.next, %move ]
  %slot = getelementptr ptr, ptr %arrays, i64 %j
  %array = load ptr, ptr %slot
  %move.p = getelementptr i64, ptr %moves, i64 %j
  %bytes = load i64, ptr %move.p
  %next = getelementptr i8, ptr %array, i64 %bytes
  store ptr %next, ptr %slot
  %j.next = add i64 %j, 1
  %j.more = icmp slt i64 %j.next, %count
  br i1 %j.more, label %move, label %moved
moved:
  %k.next = add i64 %k, 1
  br label %head
done:
  %c.next = add i64 %c, 1
  %c.more = icmp slt i64 %c.next, %calls
  br i1 %c.more, label %call, label %end
end:
  %cleared = call i32 @feclearexcept(i32 63)
  ret void
}}
"""


@cache
def _chain() -> tuple[Any, Any]:
    """Return the function and its machine code, which must outlive it; racing threads create one each."""
    code = native.link(host().objects([_MODULE]), ["chain"])
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
    return kind(code["chain"]), code


def can_repeat(kernel: object) -> bool:
    """Return whether ``repeat`` supports a kernel: float64 machine code with one thread."""
    return isinstance(kernel, Kernel) and kernel.is_plain and kernel.most_threads == 1


class Call(NamedTuple):
    """A kernel that is called T times with arrays ``inputs`` (T, N, ...), and into ``outputs`` (T, N, ...)."""

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
    """Call a kernel T times in sequence, with arrays ``inputs`` (T, N, ...) and into ``outputs`` (T, N, ...).

    Unlike a call with the batch (T, N), each call may read what earlier ones have written: inputs may be views of the
    memory of outputs. All are float64 arrays; data shared by all calls may be broadcast.
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
        """Do all calls in a block of memory: contiguous float64 of the shape with which the chain was created."""
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

    A room is used exclusively until it is given back.

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
        """Return arrays that nobody else uses, with arbitrary content."""
        try:
            return self._free.pop()
        except IndexError:
            block = np.empty(self._size)
            return Room(block, self._arrays(block), partial(self._chain, block))

    def give_back(self, room: Room) -> None:
        """Release arrays, from which all results were copied."""
        if self._size <= MAX_BLOCK_KEPT:
            self._free.append(room)


def narrow(states: int) -> int | None:
    """Return the width of kernels that are called many times with this many states, or None for the default."""
    return SHORT if states <= FEW else None
