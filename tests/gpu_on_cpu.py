"""GPU kernels on the CPU, one thread after the other, for tests on machines without a GPU.

The LLVM module is that of the GPU except for the thread number and the kind of pointers. Tests therefore check indices,
strides, staging and results. The arrays of ``StrictDevice`` refuse operations with NumPy arrays, as those of CuPy do.
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

    def free_memory(self) -> int:
        """Return a billion bytes."""
        return 10**9

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


class GpuArray(np.ndarray):
    """An array that stands for one of CuPy: NumPy arrays cannot be mixed with it, and ``get`` copies it to the host."""

    def get(self) -> np.ndarray:
        """Return the array on the host."""
        return np.array(self.view(np.ndarray))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **more: Any) -> Any:
        targets = {} if out is None else {"out": _plain(out)}
        return _on_gpu(getattr(ufunc, method)(*_plain(inputs), **targets, **_plain(more)))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function in (np.asarray, np.array):  # with ``like=``: a copy to the GPU
            return _on_gpu(function(*args, **kwargs))
        return _on_gpu(function(*_plain(args), **_plain(kwargs)))

    def __getitem__(self, index: Any) -> Any:
        _plain(index)
        return super().__getitem__(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        _plain(index), _plain(value)
        super().__setitem__(index, value)


def _plain(value: Any) -> Any:
    """Return values without the type of their arrays; raise TypeError for arrays of the host."""
    if isinstance(value, GpuArray):
        return value.view(np.ndarray)
    if isinstance(value, np.ndarray):
        raise TypeError(f"an array {value.shape} of the host is mixed with arrays of the GPU")
    if isinstance(value, dict):
        return {key: _plain(own) for key, own in value.items()}
    return type(value)(map(_plain, value)) if type(value) in (list, tuple) else value


def _on_gpu(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_on_gpu, value))
    return value.view(GpuArray) if isinstance(value, np.ndarray) else value


class _Module:
    """The functions of NumPy with results on the GPU."""

    ndarray = GpuArray

    def __getattr__(self, name: str) -> Any:
        function = getattr(np, name)
        return lambda *args, **kwargs: _on_gpu(function(*args, **kwargs))


class StrictDevice(ProcessorDevice):
    """A GPU on the CPU whose arrays are ``GpuArray``."""

    def __init__(self) -> None:
        Device.__init__(self, _Module())
