"""Integration with a fixed step: the whole batch at once, one call of compiled code a step."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torsor.dynamics.loops.constrained import ClosureChoice
from torsor.simulation.control import ask_of, sampled
from torsor.simulation.dynamics import closed, forces, held
from torsor.simulation.events import Watch
from torsor.simulation.failure import FASTEST, too_fast
from torsor.simulation.held import HeldStep
from torsor.simulation.methods import STEPS
from torsor.simulation.progress import Bar
from torsor.simulation.recorder import Recorder, thinning
from torsor.simulation.setup import WHOLE, Setup
from torsor.simulation.trajectory import SimulationError

__all__ = ["run_fixed", "samples_of"]

Array = NDArray[np.float64]


# From here on BLAS shares even a sum among threads, which takes longer than the sum where other work runs.
MANY = 4096


def _steps(setup: Setup) -> list[tuple[float, int, float]]:
    """Return (start, number of steps, length of a step) of each segment: whole steps, no longer than asked for."""
    counts = [(s, e, max(1, math.ceil((e - s) / setup.step - WHOLE))) for s, e in setup.segments]
    return [(start, count, (end - start) / count) for start, end, count in counts]


def samples_of(setup: Setup) -> tuple[int, int]:
    """Return every how many steps a sample is recorded, and how many samples that makes at most."""
    steps = _steps(setup)
    total = sum(count for _, count, _ in steps)
    every = thinning(setup, total) if setup.record is None else max(1, round(setup.record / steps[0][2]))
    return every, math.ceil(total / every) + 2  # with the end, and the last good state of a failure


def run_fixed(setup: Setup, recorder: Recorder, every: int, watch: Watch, bar: Bar) -> str:
    """Integrate, record on the way, and return the status."""
    step, step_of = _stepper(setup)
    ask, ask_external = ask_of(setup), setup.external.call
    periodic = setup.control_period is not None
    if periodic and ask is not None:
        ask = sampled(setup, ask)
    tau, external = (None if source.array is None else source.array for source in (setup.controller, setup.external))
    q, v, done = setup.q, setup.v, 0
    square = _square if v.size < MANY else _square_of_many
    watch.start(0.0, q, v)
    for start, count, h in _steps(setup):
        length = np.array(h)
        if periodic and ask is not None:
            tau = ask(start, q, v)
        for k in range(count):
            t = start + k * h
            if ask is not None and not periodic:
                tau = ask(t, q, v)
            if ask_external is not None:
                external = ask_external(t, q, v)
            if done % every == 0:
                recorder.add(t, q, v, tau, external)
            forces = [each for each in (tau, external) if each is not None]
            try:
                q_next, v_next = step(np.array(t), q, v, *forces, length)
            except SimulationError:
                recorder.add(t, q, v, tau, external)
                raise
            # One sum sees every number that is not finite; only then is it worth a closer look.
            if not square(v_next) < FASTEST**2 and (error := too_fast(setup, t + h, v_next)):
                recorder.add(t, q, v, tau, external)
                raise error
            if watch.events:
                stop = watch.step(t, t + h, q_next, v_next, _within(setup, step_of, t, q, v, tau, external))
                if stop is not None:
                    recorder.add(stop[0], *stop[1], tau, external)
                    return "event"
            q, v, done = q_next, v_next, done + 1
            bar.at(t)
    recorder.add(setup.duration, q, v, tau, external)
    return "done"


def _square(v: Array) -> float:
    return float(np.vdot(v, v))


def _square_of_many(v: Array) -> float:
    return float(np.square(v).sum())


Step = Callable[..., tuple[Array, Array]]


def _stepper(setup: Setup) -> tuple[Step, Callable[[tuple[int, ...]], Step]]:
    """Return step(t, q, v, [tau], [external], h) -> (q, v) as machine code, and that of a single rollout."""
    robot, sources, periodic = setup.robot, (setup.controller, setup.external), setup.control_period is not None
    make = STEPS[setup.method]

    def kernel(closing: ClosureChoice | None) -> Callable[..., Any]:
        name = f"{setup.method} {closing}"
        return closed(
            robot, name, *sources, periodic, lambda: make(robot, forces(robot, *sources, periodic), closing)
        ).direct

    if not robot.loops:
        plain = kernel(None)
        return plain, lambda index: plain
    cores = (robot.nv,), (len(robot.links), 6)
    acting = [core for core, holds in zip(cores, held(*sources, periodic), strict=True) if holds]
    step = HeldStep(robot, kernel, setup.q, acting)
    return step, step.of


def _within(
    setup: Setup,
    step_of: Callable[[tuple[int, ...]], Step],
    start: float,
    q: Array,
    v: Array,
    tau: Array | None,
    external: Array | None,
) -> Callable[[float, tuple[int, ...]], tuple[Array, Array]]:
    """Return the state of one rollout at a time within a step, by a shorter step from its start."""
    cores = (setup.robot.nv,), (len(setup.robot.links), 6)
    shapes = [(*setup.batch, *core) for core in cores]

    def state_at(t: float, index: tuple[int, ...]) -> tuple[Array, Array]:
        pairs = zip((tau, external), shapes, strict=True)
        own = [np.broadcast_to(each, shape)[index] for each, shape in pairs if each is not None]
        return step_of(index)(np.array(start), q[index], v[index], *own, np.array(t - start))

    return state_at
