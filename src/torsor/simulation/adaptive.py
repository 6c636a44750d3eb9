"""Integration with error control, stiff or not: SciPy's LSODA, one rollout after the other."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import SimulationError, describe
from torsor.compiler import AnyKernel
from torsor.dynamics.loops.constrained import ClosureChoice
from torsor.simulation.dynamics import acceleration, closed, forces, imposed, position_rate, symbols
from torsor.simulation.events import EventDetector
from torsor.simulation.loop_projection import ClosureMonitor, project
from torsor.simulation.progress import Bar
from torsor.simulation.recorder import Recorder, thinning
from torsor.simulation.setup import WHOLE, Setup, divergence, normalised, python_controller

# This many steps must advance at least this fraction of the duration. Where a force is discontinuous, as Coulomb
# friction is at rest, a solver with error control chatters about the discontinuity in ever smaller steps.
CREEP, CREEP_SPEED = 2000, 1e-6
# Rate (1/s) at which Baumgarte stabilisation closes loops: faster than errors grow, slower than the motion.
STABILISATION = 10.0


def sample_times(setup: Setup) -> Array:
    """Return the times at which samples are recorded: every ``record`` seconds (by default ``step``), and the end."""
    duration, step, control_period = setup.settings.duration, setup.settings.step, setup.settings.control_period
    period = setup.settings.record or step * thinning(setup, int(duration / step) + 2)
    times = np.arange(0, int(duration / period + WHOLE) + 1) * period
    if control_period is not None:
        # A sample at the start of a control period shows the new force: rounding must not put it before.
        whole = np.round(times / control_period) * control_period
        times = np.where(np.abs(times - whole) < WHOLE * control_period, whole, times)
    return np.append(times[times < duration * (1 - WHOLE)], duration)


def run_adaptive(setup: Setup, recorder: Recorder, times: Array, detector: EventDetector, bar: Bar, solver: Any) -> str:
    """Integrate one rollout, record at the given times, and return the status."""
    robot, nq, settings = setup.robot, setup.robot.nq, setup.settings
    monitor = ClosureMonitor(robot, setup.choices, setup.q) if robot.loops else None
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
        given = [] if prescribed is None else [prescribed.at(t)]
        return [np.array(t), y, *(each for each in forces(t, q, y[nq:]) if each is not None), *given]

    def begin(start: float, y: Array, end: float) -> Any:
        choice = None if monitor is None else monitor.choice
        rate = _kernel(setup, "y_rate", choice)
        jacobian = cache(lambda: _kernel(setup, "y_jacobian", choice))  # compiled only if LSODA finds the system stiff
        exact = None if calls else lambda t, y: jacobian()(*inputs(t, y))
        return solver(
            lambda t, y: rate(*inputs(t, y)), start, y, end, rtol=settings.rtol, atol=settings.atol, jac=exact
        )

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
    fix = 'smooth friction (with_friction(joint, smooth=1e-3)), a continuous controller, or method="rk4"'
    return SimulationError(describe(found, where=setup.robot.name, fix=fix))


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
    robot, sources = setup.robot, (setup.controller, setup.external, setup.is_sampled)

    def make() -> ca.Function:
        a = acceleration(robot, forces(robot, *sources), choice, STABILISATION, setup.prescribed)
        t, q, v, *others = symbols(a)
        y = ca.SX.sym("y", robot.nq + robot.nv)
        here = imposed(setup.prescribed, q, v, others[-1] if others else None)
        rate = ca.vertcat(position_rate(robot, *here), a(t, *here, *others))
        rate = ca.substitute(rate, ca.vertcat(q, v), y)
        result = rate if name == "y_rate" else ca.jacobian(rate, y)
        return ca.Function(name, [t, y, *others], [ca.cse(ca.densify(result))], ["t", "y", *a.name_in()[3:]], [name])

    return closed(robot, f"{name} {choice}", *sources, make, setup.prescribed)
