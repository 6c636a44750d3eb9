"""GPU kernels on the CPU, one thread after the other, for tests on machines without a GPU.

The LLVM module is that of the GPU except for the thread number and the kind of pointers. Tests therefore check indices,
strides, staging and results.
"""

import ctypes
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from torsor.base.arrays import real_numbers
from torsor.compiler.cuda.device import Device, Launch
from torsor.compiler.cuda.gpu import H200, WARP
from torsor.compiler.cuda.layout import PHASES, PROCESSOR
from torsor.compiler.llvm import native
from torsor.compiler.llvm.target import host


class ProcessorDevice(Device):
    """A GPU whose threads run one after the other on the CPU, with NumPy arrays."""

    form, gpu = PROCESSOR, H200

    def __init__(self) -> None:
        super().__init__(np)

    def number(self) -> int:
        """Return 0: there is one."""
        return 0

    def received(self, value: Any, dtype: str) -> Any:
        """Return a value as an array."""
        numbers = real_numbers(value)
        return None if numbers is None else numbers.astype(dtype, copy=False)

    def pointer(self, array: Any) -> int:
        """Return the address of an array."""
        return int(array.ctypes.data)

    def of(self, arrays: Sequence[Any]) -> AbstractContextManager[Any]:
        """Return an empty context."""
        return nullcontext()

    def translated(self, module: str) -> bytes:
        """Return the object code of a module."""
        return host().objects([module], level=1)[0]

    def load(self, code: bytes) -> Launch:
        """Return the kernel of some object code."""
        linked = native.link([code], PHASES)
        addresses = [linked[phase] for phase in PHASES]

        def launch(blocks: int, threads: int, shared: int, arguments: Sequence[int]) -> None:
            kinds = [ctypes.c_int64, ctypes.c_void_p, *[ctypes.c_int64] * len(arguments)]
            phases = [ctypes.CFUNCTYPE(None, *kinds)(address) for address in addresses]
            tile = np.full(shared // 8 + 2, np.nan)  # numbers that nobody has written are seen in the results
            begin = tile.ctypes.data + (-tile.ctypes.data) % 16
            for first in range(0, blocks * threads, WARP):
                for phase in phases:
                    for lane in range(WARP):
                        phase(first + lane, begin, *arguments)
            assert linked is not None  # the code lives as long as this function

        return launch
