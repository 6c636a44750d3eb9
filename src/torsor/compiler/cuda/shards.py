"""Batches on several GPUs, split into one part per GPU."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torsor.compiler.cuda import device


def on_gpus(
    call: Callable[..., Any], inputs: Sequence[Any], cores: Sequence[int], gpus: Sequence[int] | None = None
) -> list[Any]:
    """Return the results of a call for parts of a batch, at most one per GPU, in order; the results stay on their GPUs.

    ``inputs`` are arrays on the host or on one GPU. ``cores`` contains the number of axes of each input for one state.
    The first batch axis is split; inputs without this axis, or with length 1, are copied to all GPUs. ``gpus`` are GPU
    numbers, by default all. The call does not wait for the results.

    Example (on a machine with two GPUs)::

        arm = robot.to(device="cuda", dtype="float32")
        parts = on_gpus(arm.inverse_dynamics, (q, v, a), (1, 1, 1))
        tau = np.concatenate([cupy.asnumpy(each) for each in parts])
    """
    xp: Any = device.current().xp
    numbers = range(int(xp.cuda.runtime.getDeviceCount())) if gpus is None else gpus
    batches = [input_.shape[: input_.ndim - core] for input_, core in zip(inputs, cores, strict=True)]
    rank = max(map(len, batches), default=0)
    length = max((batch[0] for batch in batches if len(batch) == rank and batch), default=1)
    bounds = np.linspace(0, length, len(numbers) + 1).astype(int)
    result = []
    for k, number in enumerate(numbers):
        if rank and bounds[k] == bounds[k + 1]:
            continue  # there are fewer states than GPUs
        cut = slice(bounds[k], bounds[k + 1])
        parts = [
            input_[cut] if len(batch) == rank and rank and batch[0] == length > 1 else input_
            for input_, batch in zip(inputs, batches, strict=True)
        ]
        with xp.cuda.Device(number):
            result.append(call(*(_moved(xp, part) for part in parts)))
    return result


def _moved(xp: Any, array: Any) -> Any:
    """Return an array on the current GPU, copied only if necessary."""
    is_here = isinstance(array, xp.ndarray) and array.device == xp.cuda.Device()
    return array if is_here else xp.array(array, copy=True) if isinstance(array, xp.ndarray) else xp.asarray(array)
