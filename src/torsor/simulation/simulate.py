"""``simulate`` computes the motion of a robot under controller forces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Maybe
from torsor.base.errors import ModelError, SimulationError
from torsor.base.progress import Bar
from torsor.robot.robot import Robot
from torsor.simulation.contact import Contact, warn_of_creep
from torsor.simulation.events import EventDetector, read_events
from torsor.simulation.integration import Recorder, run_adaptive, run_fixed, sample_times, samples_of
from torsor.simulation.limits import Limits
from torsor.simulation.setup import Settings, Setup, check_mass_matrix
from torsor.simulation.trajectory import Trajectory, warn_of_overloads


def simulate(
    robot: Robot,
    q0: Maybe = None,
    v0: Maybe = None,
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
    prescribed: Mapping[str | tuple[str, ...], Any] | None = None,
    contact: Contact | None = None,
    limits: Limits | None = None,
    progress: bool | None = None,
) -> Trajectory:
    """Return the motion from a state: q' = v (on the group), v' = M(q)^-1 (tau - bias_force(q, v) + J^T external).

    ``q0`` is (..., nq) and ``v0`` (..., nv); leading axes are rollouts and broadcast. By default, the motion starts at
    rest in the posture "default", which MJCF and OpenSim files define, or else in the neutral posture. Times are in s.
    Quaternions may have any nonzero length.

    ``controller`` defines the generalised forces (..., nv), in N m and N. It is one of the following:

    - a constant array with the leading axes of the initial state;
    - samples (times, tau), with tau (T, nv), which are interpolated linearly;
    - a Python function ``controller(t, q, v)`` of the arrays of all rollouts. Fixed-step methods call it once per step
      and hold its force; "adaptive" calls it at every evaluation;
    - a ``casadi.Function`` of (t, q, v), or an object with one as its attribute ``function``. It is compiled into the
      step and evaluated at each stage.

    With a ``control_period``, any controller is sampled once per period and held (zero-order hold). By default, this is
    the attribute ``control_period`` of the controller, if it has one, such as those of ``motion.mpc``. The force acts
    after ``delay``, a whole number of periods, and is zero before that. ``external`` is the wrench (..., L, 6) that
    the environment exerts on each link, given in the same ways; it is never sampled.

    ``limits`` (``torsor.simulation.Limits``) saturates drives at their ``effort_limit`` and adds stops at position
    limits. Without ``limits``, neither is enforced; a warning and ``overloads`` of the result name the drives whose
    force exceeds their ``effort_limit``.

    With closed loops, M^-1 A^T lambda is added to v', where the multipliers lambda follow from A v' = -A' v. Every
    state of the result is closed to rounding (to 1e-6 of the robot's size with "linearly_implicit" or hard contact).
    The initial state must be closed (``robot.closed.assemble`` and ``.velocities``). Forces may be given for the active
    coordinates alone (..., N). The motion may pass dead points of the drives. If the closure equations lose rank, so
    that the motion is not unique, a ``SimulationError`` is raised.

    ``prescribed`` maps coordinate names, or tuples of names that share one motion, to motions: a number (constant
    position), samples (times, q) for a cubic spline, samples (times, q, v, a), a ``casadi.Function`` t -> q (v and a
    are its derivatives) or t -> (q, v, a), or a Python function t -> (q, v, a). The motion of the other coordinates is
    computed, such as the base motion of a robot that swims or flies (Khalil 2010, section 7.2). ``tau`` contains the
    forces that the prescribed motion requires. Entries of q0, v0 and controller forces for prescribed coordinates are
    ignored. With loops, the other coordinates start with the velocities nearest to v0 that keep the loops closed. The
    methods "implicit", "sdirk" and "linearly_implicit" do not support prescribed motion.

    ``contact`` (``torsor.simulation.Contact``) defines which shapes may touch the ground and each other, with friction.
    Its wrenches are part of ``external`` of the result. Shapes that overlap at the start raise an error. If a step is
    too long for the contact stiffness, a warning names the largest stable step.

    - ``method="rk4"`` takes fixed steps of order 4, no longer than ``step``, so that a whole number of them fits in
      the duration or control period. All rollouts are integrated at once.
    - ``method="implicit"`` takes symplectic fixed steps of order 2 that are stable for springs and dampers of any
      stiffness. Energy does not drift, the momentum of a floating robot is conserved, and stiff oscillations that the
      step does not resolve are not damped.
    - ``method="sdirk"`` takes L-stable fixed steps of order 2, which damp such oscillations. It does not support loops.
    - ``method="linearly_implicit"`` takes fixed steps without iterations. Springs, dampers, friction and drives are
      implicit, of order 1, and other forces have order 2. It replaces "rk4" for ``control.drives``.
    - ``method="adaptive"`` is LSODA, whose steps are chosen by ``rtol`` and ``atol``. It is also suitable for stiff
      systems. Rollouts are integrated one after the other, and functions receive the arrays of one rollout.

    Samples are recorded every ``record`` seconds, and at the end; steps are shortened so that they end at these times.
    With a control period, fixed-step methods round the interval to whole steps, with a warning. By default, every step
    is recorded, or every k-th step to limit memory to 1 GiB ("adaptive": every ``step`` seconds). ``events`` are
    functions ``event(t, q, v)`` whose sign changes from one step to the next are located to 1e-10 s; they may have the
    attributes ``terminal`` and ``direction``, as in SciPy. ``progress`` shows a progress bar; by default, it appears if
    the simulation takes a long time and stderr is a terminal. Ctrl-C ends the simulation and returns the samples so
    far. A diverging motion raises a ``SimulationError`` whose ``trajectory`` contains the samples so far.

    Args:
        robot: a tree, or a robot with closed loops.
        q0: initial positions (..., nq), in rad and m.
        v0: initial velocities (..., nv), in rad/s and m/s; zero by default.
        duration: simulated time in s.
        controller: generalised forces (..., nv), in N m and N, as listed above; zero by default.
        method: "rk4", "implicit", "sdirk", "linearly_implicit" or "adaptive".
        step: largest step in s.
        record: interval of the samples in s; None records every step, or every k-th step of a long simulation.
        external: wrenches (..., L, 6) on the links, moments in N m before forces in N; zero by default.
        control_period: period in s of a sampled controller; None takes the attribute ``control_period`` of the
            controller, or evaluates a controller without this attribute in every step.
        delay: time in s after which a sampled force acts.
        rtol: relative tolerance of "adaptive".
        atol: absolute tolerance of "adaptive".
        events: functions ``event(t, q, v)`` whose sign changes are located.
        prescribed: motions by coordinate name, or by tuples of names.
        contact: contact with the ground and between shapes.
        limits: effort limits and position stops.
        progress: whether to show a progress bar; None shows it if the simulation takes long.

    Example:
        >>> arm = torsor.library.two_link()
        >>> def damper(t, q, v):
        ...     return -0.1 * v
        >>> swing = torsor.simulate(arm, v0=[[1.0, 0.0], [0.0, 2.0]], duration=0.2, controller=damper)
        >>> swing.q.shape, bool((swing.energy[:, -1] < swing.energy[:, 0]).all())
        ((2, 201, 2), True)
    """
    if isinstance(robot, Robot) and robot.target.device == "cuda":
        found, fix = "simulate does not run on a GPU", "use torsor.simulation.rollout, or robot.to(device='cpu')"
        raise ModelError(found, where=robot.name, allowed="device cpu or casadi", fix=fix)
    control_period = getattr(controller, "control_period", None) if control_period is None else control_period
    settings = Settings(duration, method, step, record, control_period, delay, rtol, atol)
    setup = Setup.of(robot, q0, v0, controller, external, settings, prescribed, contact, limits)
    check_mass_matrix(setup)
    detector = EventDetector(read_events(robot, events, setup.batch), robot, len(setup.batch))
    if method == "adaptive":
        run, recorder = _adaptive(setup)
    else:
        every, count = samples_of(setup)
        run, recorder = partial(run_fixed, setup, every), Recorder.of(setup, count)
    status = "interrupted"
    try:
        with Bar(setup.settings.duration, progress) as bar:
            status = run(recorder, detector, bar)
    except KeyboardInterrupt:
        if not recorder.count:
            raise
    except SimulationError as error:
        error.trajectory = recorder.trajectory("failed", detector.crossings()) if recorder.count else None
        raise
    trajectory = recorder.trajectory(status, detector.crossings())
    warn_of_creep(robot, trajectory.settings)
    warn_of_overloads(trajectory, trajectory.overloads)
    return trajectory


def _adaptive(setup: Setup) -> tuple[Callable[..., str], Recorder]:
    """Return the function that integrates rollouts one by one, and one recorder for all; missing samples stay NaN."""
    from scipy.integrate import LSODA

    times = sample_times(setup)

    def run(recorder: Recorder, detector: EventDetector, bar: Bar) -> str:
        status = "done"
        for index in np.ndindex(setup.batch):
            part = recorder.rollout(index)
            detector.start(0.0, part.setup.q, part.setup.v, index)
            try:
                status = run_adaptive(part.setup, part, times, detector, bar, LSODA)
            except SimulationError as error:
                raise (error.inside(f"rollout {list(index)}") if index else error) from None
            finally:
                recorder.count = max(recorder.count, part.count)
        return status

    return run, Recorder.of(setup, len(times) + 1)
