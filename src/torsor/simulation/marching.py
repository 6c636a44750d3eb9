"""Fixed steps without Python between them: many in one call of machine code, where nothing in Python is asked."""

import math

import numpy as np

from torsor.base.arrays import Array
from torsor.compiler import AnyKernel, Kernel
from torsor.compiler.repeat import can_repeat, repeat
from torsor.simulation.events import EventDetector
from torsor.simulation.progress import Bar
from torsor.simulation.recorder import Recorder
from torsor.simulation.setup import FASTEST, Setup, divergence, python_controller

MOST = 2048  # steps of one call, times the rollouts: after some 10 ms Ctrl-C and the progress bar have their turn


def can_march(setup: Setup, kernel: AnyKernel | None, detector: EventDetector) -> bool:
    """Return whether no step needs Python: no function that is called, no event, no loop, no prescribed motion."""
    called = setup.external.call is not None or (setup.controller.call is not None and not setup.is_sampled)
    asked = called or detector.events or setup.robot.loops or setup.prescribed is not None
    return not asked and can_repeat(kernel)


def run_marching(setup: Setup, kernel: Kernel, recorder: Recorder, every: int, bar: Bar) -> str:
    """Integrate, record every ``every``-th step, and return the status."""
    count, robot, law = math.prod(setup.batch), setup.robot, python_controller(setup)
    most = max(1, MOST // count)
    q, v = (np.empty((most + 1, count, size)) for size in (robot.nq, robot.nv))
    q[0], v[0], done = setup.q.reshape(count, -1), setup.v.reshape(count, -1), 0
    tau, external = setup.controller.array, setup.external.array
    for start, total, h in setup.settings.steps:
        if law is not None:
            tau = law(start, _batch(setup, q[0]), _batch(setup, v[0]))
        held = [_flat(setup, each, core) for each, core in ((tau, 1), (external, 2)) if each is not None]
        for first in range(0, total, most):
            steps = min(most, total - first)
            t: Array = start + h * np.arange(first, first + steps, dtype=float)
            given = [np.broadcast_to(each, (steps, *each.shape)) for each in held]
            times, length = (np.broadcast_to(each, (steps, count)) for each in (t[:, None], h))
            inputs = [times, q[:steps], v[:steps], *given, length]
            repeat(kernel, inputs, [q[1 : steps + 1], v[1 : steps + 1]])
            failed = ~(np.abs(v[1 : steps + 1]) < FASTEST).all(axis=(1, 2))
            good = int(np.argmax(failed)) if failed.any() else steps
            samples = np.arange(-done % every, good, every)
            recorder.extend(t[samples], _batch(setup, q[samples]), _batch(setup, v[samples]), tau, external)
            if good < steps:
                recorder.add(t[good], _batch(setup, q[good]), _batch(setup, v[good]), tau, external)
                error = divergence(setup, t[good] + h, _batch(setup, v[good + 1]))
                assert error is not None
                raise error
            q[0], v[0], done = q[steps], v[steps], done + steps
            bar.at(t[-1])
    recorder.add(setup.settings.duration, _batch(setup, q[0]), _batch(setup, v[0]), tau, external)
    return "done"


def _batch(setup: Setup, states: Array) -> Array:
    """Return states (..., N, n) of the flat batch with its axes."""
    return states.reshape(*states.shape[:-2], *setup.batch, states.shape[-1])


def _flat(setup: Setup, array: Array, core: int) -> Array:
    """Return forces or wrenches of all rollouts as (N, ...)."""
    own = array.shape[array.ndim - core :]
    whole = np.broadcast_to(array, (*setup.batch, *own))
    return np.ascontiguousarray(whole, dtype=float).reshape(-1, *own)
