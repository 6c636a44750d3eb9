"""Batches divided among Python threads, where the system has no threads that generated code could run.

Waking these threads takes up to a millisecond, so it pays for batches of some ten milliseconds alone.
"""

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Shape

SMALLEST_PART = 256  # states: with fewer, a second thread costs more than it saves
PIECES = 16  # pieces of a large batch for each thread


def compute(
    ufunc: Callable[..., Any], arrays: Sequence[NDArray[Any]], cores: Sequence[Shape], batch: Shape, threads: int
) -> None:
    """Compute a batch, divided along its longest axis.

    ``arrays`` are inputs and results, ``cores`` their shapes for one state.
    """
    axis = int(np.argmax(batch)) if batch else 0
    most = min(batch[axis] if batch else 1, max(1, math.prod(batch) // SMALLEST_PART))
    threads, pieces = min(threads, most), min(threads * PIECES, most)
    if threads <= 1:
        ufunc(*arrays)
        return
    back = len(batch) - axis  # counted from the last batch axis: inputs may have fewer axes
    bounds = np.linspace(0, batch[axis], pieces + 1).astype(int)
    turns = iter(range(pieces))  # a thread takes the next piece when it is free: none waits for a slow core

    def part(array: NDArray[Any], core: int, piece: int) -> NDArray[Any]:
        index = array.ndim - core - back
        if index < 0 or array.shape[index] == 1:
            return array
        return array[(slice(None),) * index + (slice(bounds[piece], bounds[piece + 1]),)]

    def work() -> None:
        for piece in turns:
            ufunc(*(part(array, len(core), piece) for array, core in zip(arrays, cores, strict=True)))

    # The calling thread computes as well.
    helpers = [_pool(threads - 1).submit(work) for _ in range(threads - 1)]
    work()
    for helper in helpers:
        helper.result()


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="torsor")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a forked process has no copies of the threads
