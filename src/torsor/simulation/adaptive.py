"""Integration with a step that adapts itself, stiff or not: SciPy's LSODA, one rollout after the other."""

from collections.abc import Callable
from functools import cache
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from torsor.compiler import Kernel
from torsor.dynamics.loops.constrained import ClosureChoice
from torsor.errors import describe
from torsor.simulation.control import ask_of, sampled
from torsor.simulation.dynamics import acceleration, closed, forces, position_rate
from torsor.simulation.events import Watch
from torsor.simulation.failure import too_fast
from torsor.simulation.held import Keeper, brought_back
from torsor.simulation.progress import Bar
from torsor.simulation.recorder import Recorder, thinning
from torsor.simulation.setup import WHOLE, Setup, normalised
from torsor.simulation.trajectory import SimulationError

__all__ = ["run_adaptive", "sample_times"]

Array = NDArray[np.float64]

# So many steps must come at least this part of the duration further: where a force jumps, as Coulomb's friction does at
# rest, a solver with error control goes to and fro in ever smaller steps.
CREEP, CREEP_SPEED = 2000, 1e-6
# How fast loops that the solver leaves open close again (1/s): faster than errors gather, slower than what moves.
PULL = 10.0


def sample_times(setup: Setup) -> Array:
    """Return the times at which samples are recorded: every ``record`` seconds (by default ``step``), and the end."""
    period = setup.record or setup.step * thinning(setup, int(setup.duration / setup.step) + 2)
    times = np.arange(0, int(setup.duration / period + WHOLE) + 1) * period
    if setup.control_period is not None:
        # A sample where the controller is asked is to have its new force: no rounding may put it before.
        whole = np.round(times / setup.control_period) * setup.control_period
        times = np.where(np.abs(times - whole) < WHOLE * setup.control_period, whole, times)
    return np.append(times[times < setup.duration * (1 - WHOLE)], setup.duration)


def run_adaptive(setup: Setup, recorder: Recorder, times: Array, watch: Watch, bar: Bar, solver: Any) -> str:
    """Integrate one rollout, record at the given times, and return the status."""
    robot, nq = setup.robot, setup.robot.nq
    keeper = Keeper(robot, setup.q) if robot.loops else None
    ask, ask_external = ask_of(setup), setup.external.call
    if setup.control_period is not None and ask is not None:
        ask = sampled(setup, ask)
    continuous = ask if setup.control_period is None else None
    tau: Array | None = None

    # The exact Jacobian does not know what a Python function does with the state; then LSODA takes differences.
    calls = (setup.controller.call is not None and setup.control_period is None) or ask_external is not None

    def forces(t: float, q: Array, v: Array) -> list[Array | None]:
        now = tau if continuous is None else continuous(t, q, v)
        return [now, setup.external.array if ask_external is None else ask_external(t, q, v)]

    def inputs(t: float, y: Array) -> list[Any]:
        q = normalised(robot, y[:nq]) if calls else y[:nq]
        return [np.array(t), y, *(each for each in forces(t, q, y[nq:]) if each is not None)]

    def begin(start: float, y: Array, end: float) -> Any:
        kept = None if keeper is None else keeper.kept
        rate = _kernel(setup, "y_rate", kept)
        jacobian = cache(lambda: _kernel(setup, "y_jacobian", kept))  # compiled once LSODA meets stiffness, only then
        exact = None if calls else lambda t, y: jacobian()(*inputs(t, y))
        return solver(lambda t, y: rate(*inputs(t, y)), start, y, end, rtol=setup.rtol, atol=setup.atol, jac=exact)

    y, due = np.concatenate([setup.q, setup.v]), 0
    for start, end in setup.segments:
        if setup.control_period is not None and ask is not None:
            tau = ask(start, normalised(robot, y[:nq]), y[nq:])
        run = begin(start, y, end)
        taken, seen = 0, start
        while run.status == "running":
            taken += 1
            if taken % CREEP == 0:
                if run.t - seen < CREEP_SPEED * setup.duration:
                    raise _stuck(setup, seen, f"{CREEP} steps came {run.t - seen:.2g} s further")
                seen = run.t
            before = run.t
            message = run.step()
            if run.status == "failed":
                raise _stuck(setup, run.t, message)
            if error := too_fast(setup, run.t, run.y[nq:]):
                raise error
            path = run.dense_output()
            state_at = _state(setup, path)
            if keeper is not None and not keeper.holds(run.t, state_at(run.t, ())[0]):
                run = begin(before, np.concatenate(state_at(before, ())), end)
                continue
            stop = watch.step(before, run.t, *state_at(run.t, ()), state_at) if watch.events else None
            reached = run.t if stop is None else stop[0]
            while due < len(times) and (times[due] < reached or reached == setup.duration == times[due]):
                state = state_at(times[due], ()) if due else (setup.q, setup.v)
                recorder.add(times[due], *state, *forces(times[due], *state))
                due += 1
            if stop is not None:
                recorder.add(stop[0], *stop[1], *forces(stop[0], *stop[1]))
                return "event"
            bar.at(run.t)
        y = np.concatenate(_sound(setup, run.y))
    return "done"


def _stuck(setup: Setup, t: float, why: str) -> SimulationError:
    found = f"LSODA is stuck at t = {t:.6g} s, as where a force jumps or is not finite ({why})"
    fix = 'friction without a jump (with_friction(joint, smooth=1e-3)), a continuous controller, or method="rk4"'
    return SimulationError(describe(found, where=setup.robot.name, fix=fix))


def _sound(setup: Setup, y: Array) -> tuple[Array, Array]:
    """Return the state (q, v) in what the solver has: quaternions of length 1, loops closed."""
    robot = setup.robot
    q, v = normalised(robot, y[: robot.nq]), y[robot.nq :]
    return brought_back(robot, q, v) if robot.loops else (q, v)


def _state(setup: Setup, path: Callable[[float], Array]) -> Callable[[float, tuple[int, ...]], tuple[Array, Array]]:
    """Return the state at a time within a step, from the solver's own interpolation."""
    return lambda t, index: _sound(setup, path(t))


def _field(setup: Setup, kept: ClosureChoice | None) -> tuple[dict[str, ca.SX], ca.SX, ca.SX]:
    """Return the inputs (t, y, ...) and y = (q, v) itself, and its rate."""
    robot = setup.robot
    acting = forces(robot, setup.controller, setup.external, setup.control_period is not None)
    a = acceleration(robot, acting, kept, rate=PULL)
    t, q, v, *others = (ca.SX.sym(name, *a.size_in(name)) for name in a.name_in())
    y = ca.SX.sym("y", robot.nq + robot.nv)
    inputs = {"t": t, "y": y} | dict(zip(a.name_in()[3:], others, strict=True))
    rate = ca.vertcat(position_rate(robot, q, v), a(t, q, v, *others))
    return inputs, y, ca.substitute(rate, ca.vertcat(q, v), y)


def _kernel(setup: Setup, name: str, kept: ClosureChoice | None) -> Kernel:
    def make() -> ca.Function:
        inputs, y, rate = _field(setup, kept)
        result = rate if name == "y_rate" else ca.jacobian(rate, y)
        return ca.Function(name, list(inputs.values()), [ca.cse(ca.densify(result))], list(inputs), [name])

    return closed(
        setup.robot, f"{name} {kept}", setup.controller, setup.external, setup.control_period is not None, make
    )
