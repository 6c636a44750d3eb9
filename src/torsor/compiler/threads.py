"""Division of batches among threads: number of threads, size of parts, and the thread pool.

The threads run only generated code (``llvm/pool.py``) and never wait for the interpreter. Windows has different thread
functions, so a pool of Python threads is used there (``compute``).
"""

import ctypes
import hashlib
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Shape
from torsor.compiler.cache import load, store
from torsor.compiler.llvm import native, pool
from torsor.compiler.llvm.target import host

# Batches divided among Python threads, for systems on which generated code cannot use threads.
#
# Waking these threads takes up to 1 ms, so it is worthwhile only for batches that take about 10 ms or more.

SMALLEST_PART = 256  # states; for smaller parts, a second thread costs more than it saves
PIECES = 16  # number of pieces of a large batch per thread


def compute(
    ufunc: Callable[..., Any], arrays: Sequence[NDArray[Any]], cores: Sequence[Shape], batch: Shape, threads: int
) -> None:
    """Compute a batch divided along its longest axis; ``cores`` are the shapes of the ``arrays`` for one state."""
    axis = int(np.argmax(batch)) if batch else 0
    most = min(batch[axis] if batch else 1, max(1, math.prod(batch) // SMALLEST_PART))
    threads, pieces = min(threads, most), min(threads * PIECES, most)
    if threads <= 1:
        ufunc(*arrays)
        return
    back = len(batch) - axis  # counted from the last batch axis, because inputs may have fewer axes
    bounds = np.linspace(0, batch[axis], pieces + 1).astype(int)
    turns = iter(range(pieces))  # a free thread takes the next piece, so no thread waits for a slow core

    def part(array: NDArray[Any], core: int, piece: int) -> NDArray[Any]:
        index = array.ndim - core - back
        if index < 0 or array.shape[index] == 1:
            return array
        return array[(slice(None),) * index + (slice(bounds[piece], bounds[piece + 1]),)]

    def work() -> None:
        for piece in turns:
            ufunc(*(part(array, len(core), piece) for array, core in zip(arrays, cores, strict=True)))

    # The calling thread also computes.
    helpers = [_pool(threads - 1).submit(work) for _ in range(threads - 1)]
    work()
    for helper in helpers:
        helper.result()


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="torsor")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a forked process has no copies of the threads


AUTO = "auto"

# Duration of a vector operation in ns; in inverse dynamics of UR5 and Talos, it is 0.23 with AVX-512 and 0.33 with
# NEON.
OPERATION = 0.3
# Work in ns: minimum for waking a sleeping thread, share of each thread, and shortest and longest chunk. Waking a
# thread takes about 10 us, and taking a chunk 0.1 us.
LEAST, SHARE, SMALLEST, LARGEST = 120_000, 15_000, 5_000, 50_000
MAX_THREADS = 1024  # more than the cores of any machine, but few enough to create
# Time (s) for which an idle thread spins before it sleeps; longer than the Python code between two calls.
SPIN = 40e-6


def available_cores() -> int:
    """Return the number of cores available to this process, from its affinity and container quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, _quota()))


def _quota(folder: str = "/sys/fs/cgroup") -> int:
    """Return the number of cores available to the control group of this process, rounded up."""
    root = Path(folder)
    try:
        if (root / "cpu.max").is_file():
            quota, period = (root / "cpu.max").read_text().split()
        else:
            quota, period = ((root / "cpu" / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        return math.ceil(int(quota) / int(period)) if int(quota) > 0 else sys.maxsize
    except (OSError, ValueError, ZeroDivisionError):  # no control groups, or no quota ("max")
        return sys.maxsize


def has_native_threads() -> bool:
    """Return whether this system has the thread functions required by the pool."""
    return _native_pool() is not None


class _Pool:
    """The native pool of this process."""

    def __init__(self, addresses: dict[str, int]):
        target = host()
        family = "arm" if target.is_arm else target.triple.split("-")[0]
        text = pool.write_pool(family, int(signal.SIG_SETMASK))
        key = hashlib.sha256(f"{target.description} {text}".encode()).hexdigest()
        objects = load(key)
        if objects is None:
            objects = target.objects([text])
            store(key, objects)
        code = native.link(objects, ["loop", "share", "reset", "pause", "spins"], addresses)
        # Idle threads run this code until the process ends, even during interpreter shutdown.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(code))
        self.loop: int = code["loop"]
        self.share = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code["share"])
        reset = ctypes.PYFUNCTYPE(None)(code["reset"])
        pause = ctypes.CFUNCTYPE(None, ctypes.c_int64)(code["pause"])
        reset()
        count = 1000
        times = []
        for _ in range(3):
            start = time.perf_counter()
            pause(count)
            times.append(time.perf_counter() - start)
        spins = ctypes.c_int64.from_address(code["spins"])
        spins.value = max(1, int(count * SPIN / min(times)))
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=reset)  # a forked process has no copies of the threads


def _native_pool() -> _Pool | None:
    with native.LINKING:  # one pool per process, even if two threads request it simultaneously
        return _make_pool()


@cache
def _make_pool() -> _Pool | None:
    if os.name != "posix" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return None
    addresses = native.c_addresses(pool.FUNCTIONS)
    return _Pool(addresses) if addresses.keys() == set(pool.FUNCTIONS) else None


class SharedKernel:
    """The machine code of a function, with the data for dividing batches among threads.

    ``code`` contains its addresses. ``loop`` and ``data`` are the inner loop of the gufunc and its data.
    """

    def __init__(self, code: Any, arrays: int, threads: int):
        native_pool = _native_pool()
        assert native_pool is not None
        self._pool, self._code = native_pool, code
        table = code["work"]
        work, width = (ctypes.c_int64.from_address(table + 8 * k).value for k in range(2))
        memory = ctypes.c_int64.from_address(code["memory"]).value
        state = OPERATION * work / width

        def states(nanoseconds: float) -> int:
            return width * max(1, round(nanoseconds / state / width))

        run, prepare, blocks = (code[name] for name in ("run", "prepare", "blocks"))
        least, share, smallest, largest = map(states, (LEAST, SHARE, SMALLEST, LARGEST))
        functions, sizes = (run, prepare, blocks, memory), (least, share, smallest, largest, width)
        self.compiled = pool.Compiled(*functions, arrays, min(threads, MAX_THREADS), *sizes)
        self._words = (ctypes.c_int64 * len(self.compiled))(*self.compiled)
        self.loop, self.data = native_pool.loop, ctypes.addressof(self._words)

    def compute(self, arrays: Sequence[NDArray[Any]], cores: Sequence[Shape], batch: Shape) -> None:
        """Compute a batch with several axes; ``arrays`` are inputs and results, ``cores`` their shapes per state."""
        wide = [np.broadcast_to(a, (*batch, *core)) for a, core in zip(arrays, cores, strict=True)]
        outer, this = len(batch), self.compiled
        lengths, strides = _merged(list(batch), [list(item.strides[:outer]) for item in wide])
        # Rows of states fill vectors. They are the last axis, unless it is short and another axis is longer.
        axis = len(lengths) - 1 if lengths[-1] >= this.smallest else int(np.argmax(lengths))
        length, steps = lengths.pop(axis), [stride.pop(axis) for stride in strides]
        states = math.prod(batch)
        threads = min(this.threads, states // this.share) if states >= this.least else 1
        even = -(-states // (pool.ROUNDS * threads * this.width)) * this.width
        chunk = max(this.smallest, min(this.largest, even))
        pieces = -(-length // chunk)
        tables = [
            np.array([item.ctypes.data for item in wide], np.int64),
            np.array([*steps, *(step for item in wide for step in item.strides[outer:])], np.int64),
            np.array(lengths, np.int64),
            np.array(strides, np.int64).T.copy(),
        ]
        of_arrays, of_steps, of_lengths, of_strides = (table.ctypes.data for table in tables)
        total, several = math.prod(lengths) * pieces, max(1, chunk // length)
        row = length, len(lengths), of_lengths, of_strides
        job = pool.Job(self.data, of_arrays, of_steps, *row, chunk, pieces, total, several, helpers=threads - 1)
        room = np.zeros(pool.JOB_WORDS + pool.ALIGN // 8, np.int64)
        place = room[(-room.ctypes.data % pool.ALIGN) // 8 :]
        place[: len(job)] = job
        self._pool.share(place.ctypes.data)


def _merged(lengths: list[int], strides: list[list[int]]) -> tuple[list[int], list[list[int]]]:
    """Return the batch axes with adjacent ones merged if all arrays traverse both with one stride."""
    several = [axis for axis, length in enumerate(lengths) if length > 1] or [0]
    lengths, strides = [lengths[axis] for axis in several], [[item[axis] for axis in several] for item in strides]
    for axis in reversed(range(len(lengths) - 1)):
        if all(item[axis] == lengths[axis + 1] * item[axis + 1] for item in strides):
            lengths[axis : axis + 2] = [lengths[axis] * lengths[axis + 1]]
            for stride in strides:
                del stride[axis]
    return lengths, strides
