"""Access to the GPU through CuPy: arrays, memory, streams, and loading of PTX.

CuPy is used instead of the Python package of the driver, because users need GPU arrays in any case. CuPy provides
memory pools, the current stream and DLPack, and loads PTX in three lines.
"""

import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import real_numbers
from torsor.base.errors import ModelError
from torsor.compiler.cuda.code import NAME
from torsor.compiler.cuda.gpu import GpuModel
from torsor.compiler.cuda.layout import GPU

Launch = Callable[[int, int, int, Sequence[int]], None]
"""Launches a kernel: (blocks, threads per block, bytes of shared memory per block, arguments)."""

_LARGE_SHARED = 48 * 1024  # bytes; a kernel must request larger amounts
_CUDA_DEVICES = (2, 13)  # DLPack device types: GPU memory, and managed memory


class Device:
    """The current GPU of CuPy; ``xp`` is the array module with the functions of NumPy."""

    form = GPU

    def __init__(self, xp: Any):
        self.xp, self._gpus = xp, dict[int, GpuModel]()

    def number(self) -> int:
        """Return the number of the current GPU, because kernels are loaded separately on each GPU."""
        return int(self.xp.cuda.runtime.getDevice())

    @property
    def gpu(self) -> GpuModel:
        """The model of the current GPU."""
        number = self.number()
        if number not in self._gpus:
            capability = int(self.xp.cuda.Device(number).compute_capability)
            self._gpus[number] = GpuModel.of(capability, int(self.xp.cuda.runtime.driverGetVersion()))
        return self._gpus[number]

    def free_memory(self) -> int:
        """Return the free memory of the current GPU in bytes, including that of CuPy's pool."""
        free = self.xp.cuda.runtime.memGetInfo()[0] + self.xp.get_default_memory_pool().free_bytes()
        return int(free)

    def received(self, value: Any, dtype: str) -> Any:
        """Return a value as a real CuPy array, copied only if necessary, or None if it is not real."""
        cupy = self.xp
        if not isinstance(value, cupy.ndarray):
            if _is_on_gpu(value):
                value = cupy.from_dlpack(value)
            elif hasattr(value, "__cuda_array_interface__"):
                value = cupy.asarray(value)
            else:
                numbers: NDArray[Any] | None = real_numbers(value)
                if numbers is None:
                    return None
                with np.errstate(over="ignore"):  # numbers too large for float32 become infinite
                    return cupy.asarray(numbers.astype(dtype, copy=False))
        return value.astype(dtype, copy=False) if value.dtype.kind in "iuf" else None

    def pointer(self, array: Any) -> int:
        """Return the address of the first entry of an array."""
        return int(array.data.ptr)

    def of(self, arrays: Sequence[Any]) -> AbstractContextManager[Any]:
        """Return a context for the GPU of arrays; raise ModelError if they are on different GPUs."""
        numbers = sorted({array.device.id for array in arrays})
        if len(numbers) > 1:
            raise ModelError(f"are on GPUs {numbers}", argument="arrays", allowed="one GPU", fix="copy them to one GPU")
        context: AbstractContextManager[Any] = self.xp.cuda.Device(*numbers)
        return context

    def translated(self, module: str) -> bytes:
        """Return an LLVM module as PTX."""
        return self.gpu.ptx(module).encode()

    def load(self, code: bytes) -> Launch:
        """Return the kernel in PTX code, compiled by the driver for the current GPU, on CuPy's current stream."""
        cupy = self.xp
        module = cupy.cuda.Module()
        module.load(code)
        function = module.get_function(NAME)
        lock, largest = threading.Lock(), [_LARGE_SHARED]

        def launch(blocks: int, threads: int, shared: int, arguments: Sequence[int]) -> None:
            if shared > largest[0]:
                with lock:
                    driver = cupy.cuda.driver
                    attribute = driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                    driver.funcSetAttribute(function.ptr, attribute, shared)
                    largest[0] = shared
            function((blocks,), (threads,), tuple(map(np.int64, arguments)), shared_mem=shared)

        return launch


class _Stream:
    """A stream of another library, for the CUDA stream protocol."""

    def __init__(self, address: int):
        self._address = address

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._address


def foreign_stream(xp: Any, address: int) -> AbstractContextManager[Any]:
    """Return a context in which the PyTorch or JAX stream at an address is the current stream of CuPy."""
    from_external = getattr(xp.cuda.Stream, "from_external", None)  # CuPy 14
    if address == 0:
        return cast(AbstractContextManager[Any], xp.cuda.Stream.null)
    stream = xp.cuda.ExternalStream(address) if from_external is None else from_external(_Stream(address))
    return cast(AbstractContextManager[Any], stream)


def _is_on_gpu(value: Any) -> bool:
    """Return whether an object exposes GPU memory through DLPack, as PyTorch tensors and JAX arrays do."""
    where = getattr(value, "__dlpack_device__", None)
    return where is not None and hasattr(value, "__dlpack__") and where()[0] in _CUDA_DEVICES


def array_module(device: str) -> Any:
    """Return the array module of a device: CuPy for "cuda", otherwise NumPy."""
    return current().xp if device == "cuda" else np


def free_memory(device: str) -> int:
    """Return the free memory of a device in bytes; host memory counts as unlimited."""
    return current().free_memory() if device == "cuda" else sys.maxsize


def on_host(array: Any) -> NDArray[Any]:
    """Return an array as a NumPy array, copied from the GPU if necessary."""
    return cast(NDArray[Any], array.get() if hasattr(array, "get") else array)


@cache
def current() -> Device:
    """Return the device on which kernels run; raise ImportError or RuntimeError if a component is missing."""
    try:
        import cupy
    except ImportError:
        raise ImportError('device "cuda" needs CuPy; fix: pip install "torsor[gpu]"') from None
    try:
        count = int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError as error:
        fix = 'check the driver with nvidia-smi, or use device="cpu"'
        raise RuntimeError(f'device "cuda": {error}; fix: {fix}') from None
    if not count:
        raise RuntimeError('device "cuda": no NVIDIA GPU was found; fix: use device="cpu"')
    return Device(cupy)
