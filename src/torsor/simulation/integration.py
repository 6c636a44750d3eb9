"""Integration: all rollouts at once with fixed steps, or one after the other with error control; and its recorder."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, cast

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import SimulationError, warn
from torsor.base.progress import Bar
from torsor.compiler import AnyKernel, Kernel
from torsor.compiler.repeat import can_repeat, repeat
from torsor.dynamics.loops.constrained import ClosureChoice
from torsor.simulation import dynamics
from torsor.simulation.compliant import contact_of_motion
from torsor.simulation.contact import residual_facts
from torsor.simulation.events import EventDetector, Index, State, StateAt
from torsor.simulation.files import Crossings
from torsor.simulation.hard import contact_step, hard_wrenches, step_key
from torsor.simulation.inputs import Source
from torsor.simulation.limits import limits_of
from torsor.simulation.loop_projection import ClosureMonitor, LoopStep, project
from torsor.simulation.setup import (
    FASTEST,
    WHOLE,
    Setup,
    divergence,
    is_whole_quotient,
    normalised,
    python_controller,
    traced_law,
)
from torsor.simulation.trajectory import Trajectory, forward_dynamics, needed

# Bytes of q, v, a and tau up to which every step is recorded, without ``record``.
LARGEST = 2**30


def thinning(setup: Setup, samples: int) -> int:
    """Return k such that every k-th of ``samples`` samples fits in memory, for simulations without ``record``."""
    numbers = (setup.robot.nq + 3 * setup.robot.nv) * math.prod(setup.batch)
    return max(1, math.ceil(8 * numbers * samples / LARGEST))


@dataclass
class Recorder:
    """Recorder that writes samples of (t, q, v) and held forces, one after the other, into preallocated arrays.

    If rollouts are integrated one by one, each has its own recorder on views of the same arrays.
    """

    setup: Setup
    times: Array
    q: Array
    v: Array
    tau: Array | None
    external: Array | None
    count: int = 0

    @classmethod
    def of(cls, setup: Setup, count: int) -> "Recorder":
        """Return a recorder with room for ``count`` samples."""
        robot, batch = setup.robot, (*setup.batch, count)
        holds_tau, holds_external = dynamics.held_inputs(*setup.sources)
        q, v = np.full((*batch, robot.nq), np.nan), np.full((*batch, robot.nv), np.nan)
        external = np.full((*batch, len(robot.links), 6), np.nan) if holds_external else None
        return cls(setup, np.full(count, np.nan), q, v, np.full_like(v, np.nan) if holds_tau else None, external)

    def rollout(self, index: tuple[int, ...]) -> "Recorder":
        """Return the recorder of one rollout."""
        tau = None if self.tau is None else self.tau[index]
        external = None if self.external is None else self.external[index]
        return Recorder(self.setup.rollout(index), self.times, self.q[index], self.v[index], tau, external)

    def add(self, t: float, q: Array, v: Array, tau: Array | None, external: Array | None) -> None:
        """Add a sample; it replaces the last sample if both have the same time."""
        k = self.count - 1 if self.count and self.times[self.count - 1] == t else self.count
        self.q[..., k, :], self.v[..., k, :] = q, v
        if self.tau is not None:
            self.tau[..., k, :] = tau
        if self.external is not None:
            self.external[..., k, :, :] = external
        self.times[k] = t
        self.count = k + 1

    def extend(self, times: Array, q: Array, v: Array, tau: Array | None, external: Array | None) -> None:
        """Add samples (T, ..., n) at later times; the held forces are the same in all of them."""
        rows = slice(self.count, self.count + len(times))
        self.times[rows] = times
        self.q[..., rows, :], self.v[..., rows, :] = np.moveaxis(q, 0, -2), np.moveaxis(v, 0, -2)
        if self.tau is not None and tau is not None:
            self.tau[..., rows, :] = tau[..., None, :]
        if self.external is not None and external is not None:
            self.external[..., rows, :, :] = external[..., None, :, :]
        self.count += len(times)

    def trajectory(self, status: str, events: tuple[Crossings, ...]) -> Trajectory:
        """Return the samples so far; traced forces and the accelerations are evaluated here."""
        robot, count, about = self.setup.robot, self.count, dict(self.setup.about)
        times, q, v = self.times[:count], self.q[..., :count, :], self.v[..., :count, :]
        tau = None if self.tau is None else self.tau[..., :count, :]
        external = None if self.external is None else self.external[..., :count, :, :]
        controller, environment = self.setup.controller.function, self.setup.external.function
        if tau is None:
            still = np.broadcast_to(np.zeros(robot.nv), v.shape)
            tau = still if controller is None else _evaluate(self.setup, self.setup.controller, times, q, v)
        if external is None and environment is not None:
            external = _evaluate(self.setup, self.setup.external, times, q, v)
        contact = contact_of_motion(robot, self.setup.contact, self.setup.settings.method)
        if contact is not None:
            wrenches = _evaluate(self.setup, Source(function=contact), times, q, v)
            external = wrenches if external is None else external + wrenches
        if self.setup.hard is not None:
            wrenches, residual = self._hard(times, q, v, tau, external)
            about["contact"] = {**about["contact"], **residual_facts(residual)}
            if robot.loops:
                error = robot.closed.error(q)
                about["contact"]["closure_error"] = float(np.abs(error).max(initial=0.0, where=np.isfinite(error)))
            external = wrenches if external is None else external + wrenches
        limits, prescribed = limits_of(self.setup.about), self.setup.prescribed
        if self.setup.controller.limit is not None:
            tau = np.clip(tau, -self.setup.controller.limit, self.setup.controller.limit)
        if prescribed is None:
            acting = tau if limits is None else tau + limits.stop_forces(robot, q, v)
            a = forward_dynamics(robot)(q, v, acting, external)
        else:
            a, tau = needed(prescribed, times, q, v, tau, external)
        holding = self.tau is not None and prescribed is None, self.external is not None and self.setup.contact is None
        return Trajectory(robot, times, q, v, a, tau, status, events, external, holding, about)

    def _hard(self, times: Array, q: Array, v: Array, tau: Array, external: Array | None) -> tuple[Array, Array]:
        """Return the wrenches of hard contact in the steps that begin at the samples, and their residuals (m/s)."""
        setup, contact = self.setup, self.setup.hard
        assert contact is not None
        robot, sources = setup.robot, setup.sources
        both = (tau, self.tau), (external, self.external)
        held = [value for value, own in both if own is not None and value is not None]
        choice = setup.choices.near(setup.q.reshape(-1, robot.nq)[0]) if robot.loops else None

        def make() -> ca.Function:
            return hard_wrenches(robot, dynamics.forces(robot, *sources), contact, choice)

        label = f"hard contact {choice} {contact.key(robot, inputs=True)}"
        kernel = dynamics.closed(robot, label, sources, make)
        h = setup.settings.steps[0][2]
        wrenches, residual = kernel(times, q, v, *held, *dynamics.further(sources, times, times + h), np.array(h))
        return wrenches, residual


def _evaluate(setup: Setup, source: Source, times: Array, q: Array, v: Array) -> Array:
    """Return the forces of the traced controller, environment or contact along the samples."""
    return traced_law(setup.robot, source)(times, q, v)


# Fixed steps without Python between them: one call of machine code takes many steps if no step needs Python.

MAX_STEPS = 2048  # steps per call, times the rollouts: every 10 ms or so, Ctrl-C and the progress bar are handled


def run_marching(setup: Setup, kernel: Kernel, recorder: Recorder, every: int, bar: Bar) -> str:
    """Integrate, record every ``every``-th step, and return the status."""
    count, robot, law = math.prod(setup.batch), setup.robot, python_controller(setup)
    most = max(1, MAX_STEPS // count)
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
            parts = dynamics.further(setup.sources, t, t + h)
            parts = [np.broadcast_to(each[:, None], (steps, count, *each.shape[1:])) for each in parts]
            inputs = [times, q[:steps], v[:steps], *given, *parts, length]
            repeat(kernel, inputs, [q[1 : steps + 1], v[1 : steps + 1]])
            failed = ~(np.abs(v[1 : steps + 1]) < FASTEST).all(axis=(1, 2))
            good = int(np.argmax(failed)) if failed.any() else steps
            samples = np.arange(-done % every, good, every)
            if samples.size:
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
    """Return states (..., N, n) of the flattened batch with its original axes."""
    return states.reshape(*states.shape[:-2], *setup.batch, states.shape[-1])


def _flat(setup: Setup, array: Array, core: int) -> Array:
    """Return forces or wrenches of all rollouts as (N, ...)."""
    own = array.shape[array.ndim - core :]
    whole = np.broadcast_to(array, (*setup.batch, *own))
    return np.ascontiguousarray(whole, dtype=float).reshape(-1, *own)


# Integration with error control, stiff or not: SciPy's LSODA, one rollout after the other.

# This many steps must advance by at least this fraction of the duration. If a force is discontinuous, such as
# Coulomb friction at rest, a solver with error control chatters about the discontinuity in ever smaller steps.
CREEP, CREEP_SPEED = 2000, 1e-6
# Rate (1/s) at which Baumgarte stabilisation closes loops: faster than errors grow, slower than the motion.
STABILISATION = 10.0


def sample_times(setup: Setup) -> Array:
    """Return the times at which samples are recorded: every ``record`` seconds (by default ``step``), and the end."""
    duration, step, control_period = setup.settings.duration, setup.settings.step, setup.settings.control_period
    period = setup.settings.record or step * thinning(setup, int(duration / step) + 2)
    times = np.arange(0, int(duration / period + WHOLE) + 1) * period
    if control_period is not None:
        # A sample at the start of a control period shows the new force, so rounding must not place it earlier.
        whole = np.round(times / control_period) * control_period
        times = np.where(np.abs(times - whole) < WHOLE * control_period, whole, times)
    return np.append(times[times < duration * (1 - WHOLE)], duration)


def run_adaptive(setup: Setup, recorder: Recorder, times: Array, detector: EventDetector, bar: Bar, solver: Any) -> str:
    """Integrate one rollout, record at the given times, and return the status."""
    robot, nq, settings = setup.robot, setup.robot.nq, setup.settings
    monitor = ClosureMonitor(setup.choices, setup.q) if robot.loops else None
    prescribed = setup.prescribed
    law, law_external = python_controller(setup), setup.external.call
    continuous = None if setup.is_sampled else law
    tau: Array | None = None

    # Derivatives of Python functions are not known: LSODA then approximates the Jacobian by finite differences.
    calls = (setup.controller.call is not None and not setup.is_sampled) or law_external is not None

    def forces(t: float, q: Array, v: Array) -> list[Array | None]:
        now = tau if continuous is None else continuous(t, q, v)
        return [now, setup.external.array if law_external is None else law_external(t, q, v)]

    def inputs(t: float, y: Array) -> list[Any]:
        q = normalised(robot, y[:nq]) if calls else y[:nq]
        given = dynamics.further(setup.sources, t, t) + ([] if prescribed is None else [prescribed.at(t)])
        return [np.array(t), y, *(each for each in forces(t, q, y[nq:]) if each is not None), *given]

    def begin(start: float, y: Array, end: float) -> Any:
        choice = None if monitor is None else monitor.choice
        rate = _kernel(setup, "y_rate", choice)
        jacobian = cache(lambda: _kernel(setup, "y_jacobian", choice))  # compiled only if LSODA finds the system stiff
        exact = None if calls else lambda t, y: jacobian()(*inputs(t, y))
        tolerances = {"rtol": settings.rtol, "atol": settings.atol}
        return solver(lambda t, y: rate(*inputs(t, y)), start, y, end, **tolerances, jac=exact)

    y, due = np.concatenate([setup.q, setup.v]), 0
    for start, end in settings.segments:
        if setup.is_sampled and law is not None:
            tau = law(start, normalised(robot, y[:nq]), y[nq:])
        run = begin(start, y, end)
        taken, seen = 0, start
        while run.status == "running":
            taken += 1
            if taken % CREEP == 0:
                if run.t - seen < CREEP_SPEED * settings.duration:
                    raise _stuck(setup, seen, f"{CREEP} steps advanced {run.t - seen:.2g} s")
                seen = run.t
            before = run.t
            message = run.step()
            if run.status == "failed":
                raise _stuck(setup, run.t, message)
            if error := divergence(setup, run.t, run.y[nq:]):
                raise error
            state_at = partial(_state, setup, run.dense_output())
            if monitor is not None and not monitor.is_valid(run.t, state_at(run.t)[0]):
                run = begin(before, np.concatenate(state_at(before)), end)
                continue
            stop = detector.step(before, run.t, *state_at(run.t), state_at) if detector.events else None
            reached = run.t if stop is None else stop[0]
            while due < len(times) and (times[due] < reached or reached == settings.duration == times[due]):
                state = state_at(times[due]) if due else (setup.q, setup.v)
                recorder.add(times[due], *state, *forces(times[due], *state))
                if prescribed is not None and times[due] < settings.duration:
                    prescribed.stages(times[due], min(settings.step, settings.duration - times[due]))  # for its warning
                due += 1
            if stop is not None:
                recorder.add(stop[0], *stop[1], *forces(stop[0], *stop[1]))
                return "event"
            bar.at(run.t)
        y = np.concatenate(_project(setup, run.t, run.y))
    return "done"


def _stuck(setup: Setup, t: float, why: str) -> SimulationError:
    found = f"LSODA is stuck at t = {t:.6g} s: a force may be discontinuous or not finite ({why})"
    fix = 'use smooth friction (with_friction(joint, smooth=1e-3)), a continuous controller or `method="rk4"`'
    return SimulationError(found, where=setup.robot.name, fix=fix)


def _state(setup: Setup, path: Callable[[float], Array], t: float, _: tuple[int, ...] = ()) -> tuple[Array, Array]:
    """Return the state at a time within a step, by the interpolation of the solver."""
    return _project(setup, t, path(t))


def _project(setup: Setup, t: float, y: Array) -> tuple[Array, Array]:
    """Return the state (q, v) of the solver's y with quaternions of length 1, prescribed motion and closed loops."""
    robot = setup.robot
    q, v = normalised(robot, y[: robot.nq]), y[robot.nq :]
    if setup.prescribed is not None:
        q, v = setup.prescribed.imposed(t, q, v)
    return project(robot, q, v, setup.choices) if robot.loops else (q, v)


def _kernel(setup: Setup, name: str, choice: ClosureChoice | None) -> AnyKernel:
    """Return the rate "y_rate" of the state y = (q, v), or its Jacobian "y_jacobian", as a function of (t, y, ...)."""
    robot, sources = setup.robot, setup.sources

    def make() -> ca.Function:
        a = dynamics.acceleration(robot, dynamics.forces(robot, *sources), choice, STABILISATION, setup.prescribed)
        t, q, v, *others = dynamics.symbols(a)
        y = ca.SX.sym("y", robot.nq + robot.nv)
        here = dynamics.imposed(setup.prescribed, q, v, others[-1] if others else None)
        rate = ca.vertcat(dynamics.position_rate(robot, *here), a(t, *here, *others))
        rate = ca.substitute(rate, ca.vertcat(q, v), y)
        result = rate if name == "y_rate" else ca.jacobian(rate, y)
        return ca.Function(name, [t, y, *others], [ca.cse(ca.densify(result))], ["t", "y", *a.name_in()[3:]], [name])

    return dynamics.closed(robot, f"{name} {choice}", sources, make, setup.prescribed)


# From this size on, BLAS uses several threads even for a dot product, which is slower if the cores are busy.
MANY = 4096


def samples_of(setup: Setup) -> tuple[int, int]:
    """Return k such that every k-th step is recorded, and the largest number of samples."""
    steps, record = setup.settings.steps, setup.settings.record
    total, h = sum(count for _, count, _ in steps), steps[0][2]
    every = thinning(setup, total) if record is None else max(1, round(record / h))
    if record is not None and not is_whole_quotient(record, h):  # only with a control period
        found = f"is {record:g} s, which is not a whole number of steps of {h:g} s in the control period"
        fix = f"use a multiple of {h:g} s, such as the control period"
        warn(f"{found}: samples are recorded every {every * h:g} s", argument="record", where=setup.robot.name, fix=fix)
    return every, math.ceil(total / every) + 2  # plus the end, and the last state before a failure


def run_fixed(setup: Setup, every: int, recorder: Recorder, detector: EventDetector, bar: Bar) -> str:
    """Integrate, record every ``every``-th step, and return the status."""
    step, step_of, kernel = _stepper(setup)
    called = setup.external.call is not None or (setup.controller.call is not None and not setup.is_sampled)
    asked = called or detector.events or setup.robot.loops or setup.prescribed is not None
    if not asked and can_repeat(kernel):  # no step needs Python
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
            parts = dynamics.further(setup.sources, t, t + h)
            try:
                q_next, v_next = step(np.array(t), q, v, *forces, *parts, length)
            except SimulationError:
                recorder.add(t, q, v, tau, external)
                raise
            # One sum detects any number that is not finite or too large; only then are the numbers checked one by one.
            square = np.vdot(v_next, v_next) if few else np.square(v_next).sum()
            if not square < FASTEST**2 and (error := divergence(setup, t + h, v_next)):
                recorder.add(t, q, v, tau, external)
                raise error
            if detector.events:
                state_at = _interpolation(setup, step_of, t, (q, v), (tau, external), parts)
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
    """Return step(t, q, v, [tau], [external], h) -> (q, v), and a function from an index to the step of one rollout.

    The third result is the kernel of the step, or None with loops.
    """
    robot, prescribed, sources = setup.robot, setup.prescribed, setup.sources
    contact, hard = setup.contact, setup.hard
    method = "rk4" if hard is not None else setup.settings.method

    def make(choice: ClosureChoice | None) -> ca.Function:
        return contact_step(robot, method, dynamics.forces(robot, *sources), contact, choice, prescribed)

    def compiled(choice: ClosureChoice | None) -> AnyKernel:
        name = f"{method} {choice} {step_key(robot, method, contact)}"
        single = not setup.batch and not robot.loops
        return dynamics.closed(robot, name, sources, lambda: make(choice), prescribed, single)

    def kernel(choice: ClosureChoice | None) -> Callable[..., Any]:
        direct = compiled(choice).direct
        if prescribed is None:
            return direct
        stages = prescribed.stages
        return lambda t, q, v, *rest: direct(t, q, v, *rest[:-1], stages(float(t), float(rest[-1])), rest[-1])

    if not robot.loops:
        plain = kernel(None)
        return plain, lambda index: plain, compiled(None)
    cores = (robot.nv,), (len(robot.links), 6)
    held = [core for core, holds in zip(cores, dynamics.held_inputs(*sources), strict=True) if holds]
    windowed = [each.function for each in dynamics.windowed(*sources) if each.function is not None]
    given = [*(each.size_in(3) for each in windowed), *(each.shape for each in dynamics.parameters(*sources).values())]
    step = LoopStep(setup.choices, kernel, setup.q, [*held, *given])
    return step, step.of, None


def _interpolation(
    setup: Setup,
    step_of: Callable[[Index], Step],
    start: float,
    state: State,
    held: tuple[Array | None, Array | None],
    parts: list[Array],
) -> StateAt:
    """Return the state of one rollout at a time within a step, by a shorter step from its start."""
    shapes = (*setup.batch, setup.robot.nv), (*setup.batch, len(setup.robot.links), 6)

    def state_at(t: float, index: Index) -> State:
        pairs = zip(held, shapes, strict=True)
        own = [np.broadcast_to(each, shape)[index] for each, shape in pairs if each is not None]
        return step_of(index)(np.array(start), *(each[index] for each in state), *own, *parts, np.array(t - start))

    return state_at
