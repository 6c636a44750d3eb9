"""A kernel many times in a row in one call of machine code, such as the steps of a simulation."""

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from torsor.arrays import Array
from torsor.compiler.gufunc import loop_address
from torsor.compiler.kernel import Kernel
from torsor.compiler.llvm import native

_MODULE = """
define void @repeat(ptr %loop, ptr %arrays, ptr %moves, i64 %count, ptr %lengths, ptr %steps, i64 %times) {
entry:
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %k.next, %moved ]
  %more = icmp slt i64 %k, %times
  br i1 %more, label %body, label %end
body:
  call void %loop(ptr %arrays, ptr %lengths, ptr %steps, ptr null)
  br label %move
move:
  %i = phi i64 [ 0, %body ], [ %i.next, %move ]
  %slot = getelementptr ptr, ptr %arrays, i64 %i
  %array = load ptr, ptr %slot
  %place = getelementptr i64, ptr %moves, i64 %i
  %bytes = load i64, ptr %place
  %next = getelementptr i8, ptr %array, i64 %bytes
  store ptr %next, ptr %slot
  %i.next = add i64 %i, 1
  %i.more = icmp slt i64 %i.next, %count
  br i1 %i.more, label %move, label %moved
moved:
  %k.next = add i64 %k, 1
  br label %head
end:
  ret void
}
"""


@cache
def _repeat() -> tuple[Any, Any]:
    """Return the machine code as a function, and the engine that it belongs to."""
    engine = native.link(native.emit_here([_MODULE]))
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64, *[ctypes.c_void_p] * 2, ctypes.c_int64)
    return kind(engine.get_function_address("repeat")), engine


def can_repeat(kernel: object) -> bool:
    """Return whether ``repeat`` takes a kernel: machine code of float64, with one thread."""
    return isinstance(kernel, Kernel) and kernel.is_plain and kernel.most_threads == 1


def repeat(kernel: Kernel, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
    """Call a kernel T times, one after the other, with arrays ``inputs`` (T, N, ...) and into ``outputs`` (T, N, ...).

    Unlike a call with the batch (T, N), each one may read what those before it have written: inputs may be views of the
    memory of outputs. All are arrays of float64; what all calls share may be broadcast.

    Example:
        >>> import casadi as ca
        >>> x = ca.SX.sym("x")
        >>> kernel = torsor.compile(ca.Function("twice", [x], [2 * x]))
        >>> powers = np.ones((6, 1))
        >>> repeat(kernel, [powers[:-1]], [powers[1:]])
        >>> powers[:, 0].tolist()
        [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
    """
    arrays = [*inputs, *outputs]
    times, states = outputs[0].shape[:2]
    cores = [*kernel.inputs, *kernel.outputs]
    for array, core in zip(arrays, cores, strict=True):
        if array.shape != (times, states, *core) or array.dtype != np.float64:
            allowed = f"float64 of shape {(times, states, *core)}"
            raise ValueError(f"{kernel.signature.name}: {array.dtype} of shape {array.shape}; allowed: {allowed}")
    steps = [array.strides[1] for array in arrays] + [step for array in arrays for step in array.strides[2:]]
    addresses = [array.ctypes.data for array in arrays]
    tables = addresses, [array.strides[0] for array in arrays], [states], steps
    data, moves, lengths, distances = ((ctypes.c_int64 * len(each))(*each) for each in tables)
    _repeat()[0](loop_address(kernel.ufunc), data, moves, len(arrays), lengths, distances, times)
