"""Controllers that Python evaluates: continuously, or sampled at their own rate and held, with a delay."""

from collections import deque

import numpy as np

from torsor.arrays import Array
from torsor.simulation.dynamics import compiled
from torsor.simulation.setup import Setup
from torsor.simulation.sources import Law


def python_controller(setup: Setup) -> Law | None:
    """Return the controller as a function of (t, q, v) that Python calls, or None if it is traced into the step.

    A sampled controller is to be called once each control period. Its forces act ``delay_periods`` later; until the
    first one arrives, the force is zero.
    """
    law = _law(setup)
    if law is None or not setup.is_sampled:
        return law
    pending = deque([np.zeros(setup.robot.nv)] * setup.settings.delay_periods)

    def delayed(t: float, q: Array, v: Array) -> Array:
        pending.append(law(t, q, v))
        return pending.popleft()

    return delayed


def _law(setup: Setup) -> Law | None:
    source = setup.controller
    if source.function is not None and setup.is_sampled:
        function = source.function
        kernel = compiled(setup.robot, "controller", (function,), lambda: function)
        return lambda t, q, v: kernel(t, q, v)
    if source.array is not None:
        array = source.array
        return lambda t, q, v: array
    return source.call
