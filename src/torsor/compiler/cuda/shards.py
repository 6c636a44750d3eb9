"""Several GPUs: a batch is split into parts, one per GPU, which are computed concurrently."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torsor.compiler.cuda import device


def on_gpus(
    call: Callable[..., Any], inputs: Sequence[Any], cores: Sequence[int], gpus: Sequence[int] | None = None
) -> list[Any]:
    """Return the results of a call for parts of a batch, one per GPU, in order; they stay on their GPUs.

    ``inputs`` are arrays on the host or on one GPU. ``cores`` are the numbers of axes that they have for one state. The
    first batch axis is split; inputs without it, or of length 1, go to all GPUs. ``gpus`` are GPU numbers; the default
    is all of them. The call does not wait: the parts are computed while the caller continues.

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
            continue  # fewer states than GPUs
        cut = slice(bounds[k], bounds[k + 1])
        parts = [
            input_[cut] if len(batch) == rank and rank and batch[0] == length > 1 else input_
            for input_, batch in zip(inputs, batches, strict=True)
        ]
        with xp.cuda.Device(number):
            result.append(call(*(_moved(xp, part) for part in parts)))
    return result


def _moved(xp: Any, array: Any) -> Any:
    """Return an array on the current GPU, without a copy if it is already there."""
    is_here = isinstance(array, xp.ndarray) and array.device == xp.cuda.Device()
    return array if is_here else xp.array(array, copy=True) if isinstance(array, xp.ndarray) else xp.asarray(array)
