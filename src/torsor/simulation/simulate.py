"""``simulate``: the motion of a robot under its controller."""

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor.robot.robot import Robot
from torsor.simulation.adaptive import run_adaptive, sample_times
from torsor.simulation.events import Watch, read_events
from torsor.simulation.failure import refuse_singular
from torsor.simulation.fixed import run_fixed, samples_of
from torsor.simulation.progress import Bar
from torsor.simulation.recorder import Recorder
from torsor.simulation.setup import Setup
from torsor.simulation.trajectory import SimulationError, Trajectory

__all__ = ["simulate"]


def simulate(
    robot: Robot,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    duration: float = 1.0,
    *,
    controller: ArrayLike | Callable[..., Any] | ca.Function | None = None,
    method: str = "rk4",
    step: float = 1e-3,
    record: float | None = None,
    external: ArrayLike | Callable[..., Any] | ca.Function | None = None,
    control_period: float | None = None,
    delay: float = 0.0,
    rtol: float = 1e-8,
    atol: float = 1e-10,
    events: Any = (),
    progress: bool | None = None,
) -> Trajectory:
    """Return the motion from a state: q' = v (on the group), v' = M(q)^-1 (tau - C v - g - friction + J^T external).

    ``q0`` is (..., nq) and ``v0`` (..., nv), by default neutral and at rest; leading axes are rollouts and broadcast.
    Times are in s. Quaternions need not have length 1, but a length.

    ``controller`` gives the generalised forces (..., nv), in N m and N: an array that holds, a Python function
    ``controller(t, q, v)`` of the arrays of all rollouts, or a ``casadi.Function`` of (t, q, v) (or an object with one
    as its attribute ``function``), which is compiled into the step and acts at every stage of it. A Python function is
    called once a step by the methods of fixed step, and its force held; "adaptive" calls it whenever it looks.
    With a ``control_period`` the controller, whatever it is, is sampled that often and held, and acts ``delay`` later
    (a whole number of periods; until the first force arrives it is zero). ``external`` are the wrenches (..., L, 6) of
    the environment, given in the same ways, never sampled. Limits of joints and drives are not enforced.

    With closed loops, v' also has what these push, M^-1 A^T lambda with A v' = -A' v, and every state that comes out is
    closed to rounding. The state at the start is closed too (``assemble``, ``constrained_velocities``). The forces may
    then be those of the active coordinates alone (..., N). Dead points of the drives are passed; where the equations of
    closure lose their rank, so that the motion could go on in several ways, there is a ``SimulationError``.

    ``method="rk4"`` takes fixed steps of order 4, no longer than ``step``, so that a whole number of them fits into the
    duration or control period; all rollouts go at once. ``method="implicit"`` does so with symplectic steps of order 2
    that springs and dampers of any stiffness do not trouble. ``method="adaptive"`` needs ``torsor[simulate]``: steps
    adapt to ``rtol`` and ``atol``, stiff or not, and rollouts go one after the other (functions then see the arrays of
    one).

    Samples are kept every ``record`` seconds, to the nearest step; by default every step, or as many of them as fit
    into 1 GiB ("adaptive": every ``step`` seconds). ``events`` are functions ``event(t, q, v)`` whose changes of sign
    from one step to the next are located to 1e-10 s; attributes ``terminal`` and ``direction`` as in SciPy.
    ``progress`` shows a bar; by default if it takes long and stderr is a terminal. Ctrl-C ends the simulation and
    returns what there is; a motion that leaves all bounds is a ``SimulationError``, which has it as ``trajectory``.

    Example:
        >>> import numpy as np, torsor
        >>> arm = torsor.library.two_link()
        >>> def damper(t, q, v):
        ...     return -0.1 * v
        >>> swing = torsor.simulate(arm, v0=[[1.0, 0.0], [0.0, 2.0]], duration=0.2, controller=damper)
        >>> swing.q.shape, bool((swing.energy[:, -1] < swing.energy[:, 0]).all())
        ((2, 201, 2), True)
    """
    setup = Setup.of(
        robot, q0, v0, duration, controller, external, method, step, record, control_period, delay, rtol, atol
    )
    refuse_singular(setup)
    watch = Watch(read_events(robot, events, setup.batch), robot, len(setup.batch))
    run, recorder = _adaptive(setup) if method == "adaptive" else _fixed(setup)
    status = "interrupted"
    try:
        with Bar(setup.duration, progress) as bar:
            status = run(recorder, watch, bar)
    except KeyboardInterrupt:
        if not recorder.count:
            raise
    except SimulationError as error:
        error.trajectory = recorder.trajectory("failed", watch.crossings()) if recorder.count else None
        raise
    return recorder.trajectory(status, watch.crossings())


def _fixed(setup: Setup) -> tuple[Callable[..., str], Recorder]:
    every, count = samples_of(setup)
    return lambda recorder, watch, bar: run_fixed(setup, recorder, every, watch, bar), Recorder.of(setup, count)


def _adaptive(setup: Setup) -> tuple[Callable[..., str], Recorder]:
    """Return how rollouts are integrated one by one, into parts of one recorder; what is not reached stays NaN."""
    try:
        from scipy.integrate import LSODA
    except ImportError:
        raise ImportError('method "adaptive" needs SciPy; fix: pip install torsor[simulate]') from None
    times = sample_times(setup)

    def run(recorder: Recorder, watch: Watch, bar: Bar) -> str:
        status = "done"
        for index in np.ndindex(setup.batch):
            part = recorder.rollout(index)
            watch.start(0.0, part.setup.q, part.setup.v, index)
            try:
                status = run_adaptive(part.setup, part, times, watch, bar, LSODA)
            except SimulationError as error:
                raise SimulationError(f"rollout {list(index)}: {error}" if index else str(error)) from None
            finally:
                recorder.count = max(recorder.count, part.count)
        return status

    return run, Recorder.of(setup, len(times) + 1)
