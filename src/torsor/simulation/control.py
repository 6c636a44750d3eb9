"""The controller as Python asks it: at its own rate, and with its delay."""

from collections import deque

import numpy as np
from numpy.typing import NDArray

from torsor.simulation.dynamics import compiled
from torsor.simulation.setup import Setup
from torsor.simulation.sources import Ask

__all__ = ["ask_of", "sampled"]

Array = NDArray[np.float64]


def ask_of(setup: Setup) -> Ask | None:
    """Return the controller as a function of (t, q, v) that Python calls, or None if the compiled code has it."""
    source = setup.controller
    if source.function is not None and setup.control_period is not None:
        function = source.function
        kernel = compiled(setup.robot, "controller", (function,), lambda: function)
        return lambda t, q, v: kernel(t, q, v)
    if source.array is not None:
        array = source.array
        return lambda t, q, v: array
    return source.call


def sampled(setup: Setup, ask: Ask) -> Ask:
    """Return a controller whose answers act some periods later; until the first arrives, the force is zero."""
    waiting = deque([np.zeros(setup.robot.nv)] * setup.late)

    def sample(t: float, q: Array, v: Array) -> Array:
        waiting.append(ask(t, q, v))
        return waiting.popleft()

    return sample
