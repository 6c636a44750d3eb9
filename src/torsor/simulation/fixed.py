"""Integration with a fixed step: the whole batch at once, one call of machine code per step."""

import math
from collections.abc import Callable
from typing import Any, cast

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import SimulationError
from torsor.compiler import AnyKernel, Kernel
from torsor.dynamics.loops.constrained import ClosureChoice
from torsor.simulation.dynamics import closed, forces, held_inputs
from torsor.simulation.events import EventDetector, Index, State, StateAt
from torsor.simulation.hard import hard_step
from torsor.simulation.loop_projection import LoopStep
from torsor.simulation.marching import can_march, run_marching
from torsor.simulation.methods import STEPS
from torsor.simulation.progress import Bar
from torsor.simulation.recorder import Recorder, thinning
from torsor.simulation.setup import FASTEST, Setup, divergence, python_controller

# From this size on BLAS uses several threads even for a dot product, which is slower where the cores are busy.
MANY = 4096


def samples_of(setup: Setup) -> tuple[int, int]:
    """Return k, where every k-th step is recorded, and the largest number of samples."""
    steps = setup.settings.steps
    total = sum(count for _, count, _ in steps)
    record = setup.settings.record
    every = thinning(setup, total) if record is None else max(1, round(record / steps[0][2]))
    return every, math.ceil(total / every) + 2  # plus the end, and the last state before a failure


def run_fixed(setup: Setup, recorder: Recorder, every: int, detector: EventDetector, bar: Bar) -> str:
    """Integrate, record every ``every``-th step, and return the status."""
    step, step_of, kernel = _stepper(setup)
    if can_march(setup, kernel, detector):
        return run_marching(setup, cast(Kernel, kernel), recorder, every, bar)
    law, law_external = python_controller(setup), setup.external.call
    tau, external = setup.controller.array, setup.external.array
    q, v, done = setup.q, setup.v, 0
    few = v.size < MANY
    detector.start(0.0, q, v)
    for start, count, h in setup.settings.steps:
        length = np.array(h)
        if setup.is_sampled and law is not None:
            tau = law(start, q, v)
        for k in range(count):
            t = start + k * h
            if law is not None and not setup.is_sampled:
                tau = law(t, q, v)
            if law_external is not None:
                external = law_external(t, q, v)
            if done % every == 0:
                recorder.add(t, q, v, tau, external)
            forces = [each for each in (tau, external) if each is not None]
            try:
                q_next, v_next = step(np.array(t), q, v, *forces, length)
            except SimulationError:
                recorder.add(t, q, v, tau, external)
                raise
            # One sum detects every number that is not finite or too large; only then are they checked one by one.
            square = np.vdot(v_next, v_next) if few else np.square(v_next).sum()
            if not square < FASTEST**2 and (error := divergence(setup, t + h, v_next)):
                recorder.add(t, q, v, tau, external)
                raise error
            if detector.events:
                state_at = _interpolation(setup, step_of, t, (q, v), (tau, external))
                stop = detector.step(t, t + h, q_next, v_next, state_at)
                if stop is not None:
                    recorder.add(stop[0], *stop[1], tau, external)
                    return "event"
            q, v, done = q_next, v_next, done + 1
            bar.at(t)
    recorder.add(setup.settings.duration, q, v, tau, external)
    return "done"


Step = Callable[..., tuple[Array, Array]]


def _stepper(setup: Setup) -> tuple[Step, Callable[[Index], Step], AnyKernel | None]:
    """Return step(t, q, v, [tau], [external], h) -> (q, v) as machine code, and a function index -> step of one.

    The third is the kernel of the step, None with loops.
    """
    robot, sources, prescribed = setup.robot, (setup.controller, setup.external), setup.prescribed
    hard, method = setup.hard, setup.settings.method

    def make(choice: ClosureChoice | None) -> ca.Function:
        acting = forces(robot, *sources, setup.is_sampled)
        return STEPS[method](robot, acting, choice, prescribed) if hard is None else hard_step(robot, acting, hard)

    def compiled(choice: ClosureChoice | None) -> AnyKernel:
        name = f"{method} {choice}" if hard is None else f"hard {hard.key(robot)}"
        single = not setup.batch and not robot.loops
        return closed(robot, name, *sources, setup.is_sampled, lambda: make(choice), prescribed, single)

    def kernel(choice: ClosureChoice | None) -> Callable[..., Any]:
        direct = compiled(choice).direct
        if prescribed is None:
            return direct
        return lambda t, q, v, *rest: direct(
            t, q, v, *rest[:-1], prescribed.stages(float(t), float(rest[-1])), rest[-1]
        )

    if not robot.loops:
        plain = kernel(None)
        return plain, lambda index: plain, compiled(None)
    cores = (robot.nv,), (len(robot.links), 6)
    acting = [core for core, holds in zip(cores, held_inputs(*sources, setup.is_sampled), strict=True) if holds]
    step = LoopStep(robot, setup.choices, kernel, setup.q, acting)
    return step, step.of, None


def _interpolation(
    setup: Setup, step_of: Callable[[Index], Step], start: float, state: State, held: tuple[Array | None, Array | None]
) -> StateAt:
    """Return the state of one rollout at a time within a step, by a shorter step from its start."""
    cores = (setup.robot.nv,), (len(setup.robot.links), 6)
    shapes = [(*setup.batch, *core) for core in cores]

    def state_at(t: float, index: Index) -> State:
        pairs = zip(held, shapes, strict=True)
        own = [np.broadcast_to(each, shape)[index] for each, shape in pairs if each is not None]
        return step_of(index)(np.array(start), *(each[index] for each in state), *own, np.array(t - start))

    return state_at
