"""The setup of a simulation: validation of the input before the computation starts, and checks of the state."""

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np

from torsor.base.arrays import Array, Maybe
from torsor.base.checks import arrays, common_shape, number, one_of, positive, several
from torsor.base.errors import ModelError, SimulationError
from torsor.dynamics.recursions.passive import passive_jacobians
from torsor.dynamics.trees.tree import Tree
from torsor.mechanism import Wheel
from torsor.mechanism.mechanism import default_posture
from torsor.robot.robot import Robot, checked_robot
from torsor.simulation.contact import Contact, check_start, checked_contact, warn_of_long_step, with_contact
from torsor.simulation.dynamics import compiled
from torsor.simulation.inputs import Law, Prescribed, Source, words
from torsor.simulation.limits import Limits, check_limits
from torsor.simulation.loop_projection import Choices, project_start
from torsor.simulation.methods import METHODS
from torsor.simulation.trajectory import forward_dynamics

# Tolerance within which a quotient of two times is a whole number: in floating point, 0.3 / 0.1 is not 3.
WHOLE = 1e-9
# More steps would take days, and more samples would not fit in memory.
MAX_STEPS, MAX_SAMPLES = 1e11, 1e8
# A speed above that of light (m/s; for angles, rad/s) means that the integration has diverged.
FASTEST = 3e8
# An eigenvalue of the mass matrix below this fraction of the largest is a rounding error.
SINGULAR = 1e-14


@dataclass(frozen=True)
class Settings:
    """The settings of an integration, with times in s; ``simulate`` describes the fields."""

    duration: float
    method: str
    step: float
    record: float | None
    control_period: float | None
    delay: float
    rtol: float
    atol: float

    def checked(self, where: str) -> "Settings":
        """Return the settings with every number as a float; raise ModelError for invalid numbers."""
        one_of(self.method, METHODS, where, "method")
        names = ["duration", "step", "rtol", "atol"]
        names += [name for name in ("record", "control_period") if getattr(self, name) is not None]
        numbers: dict[str, Any] = {name: positive(getattr(self, name), where, name) for name in names}
        found = replace(self, **numbers, delay=number(self.delay, where, "delay", least=0.0))
        for name, length, most in (("step", found.step, MAX_STEPS), ("record", found.record, MAX_SAMPLES)):
            if length is not None and found.duration / length > most:
                text = f"{found.duration:g} s with a {name} of {length:g} s"
                raise ModelError(text, where=where, allowed=f"at most {most:g} of them")
        if found.record is not None and found.method != "adaptive" and found.record < found.step * (1 - WHOLE):
            text = f"is {found.record:g} s, shorter than the step of {found.step:g} s"
            raise ModelError(text, argument="record", where=where, allowed="the step or more", fix="reduce the step")
        if found.delay and found.control_period is None:
            text = f"is {found.delay:g} s without a control_period"
            raise ModelError(text, argument="delay", where=where, fix="give both")
        if found.control_period is not None:
            periods = found.delay / found.control_period
            if abs(periods - found.delay_periods) > WHOLE * max(found.delay_periods, 1):
                text, allowed = f"is {found.delay:g} s, {periods:.6g} control periods", found.control_period
                raise ModelError(text, argument="delay", where=where, allowed=f"whole multiples of {allowed:g} s")
        return found

    @property
    def delay_periods(self) -> int:
        """Delay of the controller in control periods."""
        return 0 if self.control_period is None else round(self.delay / self.control_period)

    @property
    def segments(self) -> list[tuple[float, float]]:
        """Start and end of each control period or, without periods, of the simulation or each sampling interval.

        If ``record`` is not an integer multiple of the step for the whole simulation, fixed steps end at the samples.
        """
        period = self.control_period
        if period is None:
            (_, _, h), *_ = self._steps([(0.0, self.duration)])
            if self.record is None or self.method == "adaptive" or is_whole_quotient(self.record, h):
                return [(0.0, self.duration)]
            period = self.record
        count = math.ceil(self.duration / period - WHOLE)
        edges = [*(k * period for k in range(count)), self.duration]
        return list(pairwise(edges))

    @property
    def steps(self) -> list[tuple[float, int, float]]:
        """Start, number of steps and step length of each segment; steps are equal and no longer than ``step``."""
        return self._steps(self.segments)

    def _steps(self, segments: list[tuple[float, float]]) -> list[tuple[float, int, float]]:
        counts = [(start, end, max(1, math.ceil((end - start) / self.step - WHOLE))) for start, end in segments]
        return [(start, count, (end - start) / count) for start, end, count in counts]


def is_whole_quotient(length: float, part: float) -> bool:
    """Return whether a duration is a whole number of parts, up to rounding."""
    return abs(length / part - round(length / part)) <= WHOLE * max(length / part, 1.0)


@dataclass(frozen=True, eq=False)
class Setup:
    """A simulation: initial state ``q`` (..., nq) and ``v`` (..., nv), acting forces, and integration settings."""

    robot: Robot
    q: Array
    v: Array
    controller: Source
    external: Source
    settings: Settings
    prescribed: Prescribed | None = None
    contact: Contact | None = None
    about: Mapping[str, Any] = field(default_factory=dict)  # arguments for the settings of the trajectory

    @cached_property
    def choices(self) -> Choices:
        """Choices of the equations that keep loops closed."""
        return Choices(self.robot, () if self.prescribed is None else self.prescribed.names)

    @property
    def batch(self) -> tuple[int, ...]:
        """Leading axes of the rollouts."""
        return self.v.shape[:-1]

    @property
    def sources(self) -> tuple[Source, Source, bool]:
        """Controller, external wrenches, and whether the controller is sampled: the arguments of the acting forces."""
        return self.controller, self.external, self.is_sampled

    @property
    def hard(self) -> Contact | None:
        """Hard contact, or None."""
        return self.contact if self.contact is not None and self.contact.kind == "hard" else None

    @property
    def is_sampled(self) -> bool:
        """Whether the controller is evaluated once per control period and its force is held."""
        return self.settings.control_period is not None

    def rollout(self, index: tuple[int, ...]) -> "Setup":
        """Return the simulation of one rollout alone."""
        sources = {
            name: source._replace(array=np.broadcast_to(source.array, (*self.batch, *core))[index])
            for name, core in (("controller", (self.robot.nv,)), ("external", (len(self.robot.links), 6)))
            if (source := getattr(self, name)).array is not None
        }
        return replace(self, q=self.q[index], v=self.v[index], **sources)

    @classmethod
    def of(
        cls,
        robot: Robot,
        q0: Maybe,
        v0: Maybe,
        controller: Any,
        external: Any,
        settings: Settings,
        prescribed: Any = None,
        contact: Contact | None = None,
        limits: Limits | None = None,
    ) -> "Setup":
        """Return the setup for the arguments of ``simulate``; raise ModelError for invalid arguments."""
        robot = checked_robot(robot)
        where, settings = robot.name, settings.checked(robot.name)
        if (settings.method == "adaptive" or robot.loops) and robot.target.dtype != "float64":
            robot = robot.to(dtype="float64")  # float32 is too coarse for error control and for closed loops
        h = 0.0 if settings.method == "adaptive" else settings.steps[0][2]
        held = settings.control_period is not None  # the controller is then evaluated once per period, as requested
        law = Source.of(robot, controller, "controller", (robot.nv,), settings.duration, 0.0 if held else h)
        if np.ndim(law.parameters) > 1:
            fix = "use torsor.simulation.rollout, or the same gains for all"
            raise ModelError("the gains of drives differ", argument="controller", where=where, fix=fix)
        wrenches = Source.of(robot, external, "external", (len(robot.links), 6), settings.duration, h)
        if not held and prescribed is None:
            settings = replace(settings, method=method_of(robot, settings.method, len(law.parameters) > 0, contact))
        wrenches = with_contact(robot, wrenches, contact, settings.method)
        if settings.control_period is not None and controller is None:
            raise ModelError("`control_period` needs a controller", where=where, fix="omit it")
        q = arrays(default_posture(robot) if q0 is None else q0, (robot.nq,), where, "q0")
        v = arrays(np.zeros(robot.nv) if v0 is None else v0, (robot.nv,), where, "v0")
        batch = common_shape(where, q0=q.shape[:-1], v0=v.shape[:-1])
        for name, source, axes in (("controller", law, 1), ("external", wrenches, 2)):
            if source.array is not None:
                check_rollouts(robot, name, source.array.shape, axes, batch)
        if 0 in batch:
            raise ModelError(f"the batch is empty: its axes are {batch}", where=where, allowed="1 or more")
        q = np.ascontiguousarray(np.broadcast_to(normalised(robot, q), (*batch, robot.nq)))
        v = np.ascontiguousarray(np.broadcast_to(v, (*batch, robot.nv)))
        motion = Prescribed.of(robot, prescribed, settings.duration)
        if motion is not None:
            q, v = motion.imposed(0.0, q, v)
        about = asdict(settings) | {
            "controller": words(controller, "controller", "force"),
            "external": words(external, "wrenches", "wrench"),
            "prescribed": [name for names in prescribed or () for name in several(names)],
        }
        if contact is not None:
            compliant = contact.kind == "compliant"
            explicit = wrenches.added is not None and settings.method == "rk4"
            about["contact"] = contact.about | check_start(robot, contact, q, settings.step if explicit else None)
            if external is None:  # then all wrenches of the result are those of contact
                about["contact"] |= {"floor": contact.floor(robot)}
            if not compliant:
                other = "" if settings.method == "rk4" else f'method "{settings.method}"'
                found = "prescribed motion" if motion is not None else other
                if found:
                    fix = f'{"omit `method`, or " if found == other else ""}use `kind="compliant"`'
                    raise ModelError(f"hard contact does not support {found}", where=where, fix=fix)
                about["method"] = "hard"
        if limits is not None:
            explicit = settings.method == "rk4" and about.get("method") != "hard"
            limits = check_limits(robot, limits, q, settings.step if explicit else None)
            most = [each for each in (law.limit, limits.effort(robot)) if each is not None]
            law = law._replace(added=limits.function(robot), limit=np.min(most, axis=0) if most else None)
            about["limits"] = asdict(limits)
            if motion is not None:
                found = "is not supported with `prescribed`"
                raise ModelError(found, argument="limits", where=where, fix="omit one of them")
        if settings.method == "rk4" and about.get("method") != "hard" and motion is None:
            check_springs(robot, q, h)
        setup = cls(robot, q, v, law, wrenches, settings, motion, contact, about)
        if robot.loops:
            q, v = project_start(robot, setup.choices, q, v)
        return replace(setup, q=q, v=v)


def method_of(robot: Robot, method: str, has_drives: bool, contact: Contact | None) -> str:
    """Return the fixed-step method: drives (``control.drives``) replace "rk4", which would be explicit."""
    is_hard = contact is not None and checked_contact(robot, contact).kind == "hard"  # its step is always implicit
    return "linearly_implicit" if has_drives and method == "rk4" and not is_hard else method


def check_rollouts(robot: Robot, name: str, shape: tuple[int, ...], axes: int, batch: tuple[int, ...]) -> None:
    """Raise ModelError if constant forces, which may be samples over time, have leading axes that the start lacks."""
    core = shape[len(shape) - axes :]
    try:
        if np.broadcast_shapes(shape[: len(shape) - axes], batch) == batch:
            return
    except ValueError:
        pass
    starts = f"the start (q0, v0) has the leading axes {batch}" if batch else "the start (q0, v0) is one state"
    allowed = f"{core} or {(*batch, *core)}" if batch else f"{core}"
    fix = f"samples over time are `{name}=(times, values)`; "
    fix += "for constants of many rollouts, give q0 the same leading axes"
    raise ModelError(f"has shape {shape}, but {starts}", argument=name, where=robot.name, allowed=allowed, fix=fix)


def normalised(robot: Robot, q: Array) -> Array:
    """Return positions with normalised quaternions; raise ModelError for a quaternion of length 0."""
    if robot.nq == robot.nv:
        return q
    kernel = compiled(robot, "chart", (), lambda: robot.function("chart"))
    found: Array = np.asarray(kernel(q, np.zeros(robot.nv)), dtype=float)
    if not np.isfinite(found).all():
        at = np.argwhere(~np.isfinite(found))[0]
        what = f"q0 has a quaternion of length 0 at {robot.position_names[at[-1]]}"
        raise ModelError(what, where=robot.name, fix="begin with robot.neutral()")
    return found


def check_mass_matrix(setup: Setup) -> None:
    """Raise SimulationError if the mass matrix at the start is singular, because accelerations are then undefined."""
    robot = setup.robot
    if setup.prescribed is not None:
        return  # prescribed coordinates need no inertia
    with np.errstate(all="ignore"):
        a = forward_dynamics(robot)(setup.q, setup.v, np.zeros(robot.nv))
        bad = np.argwhere(~np.isfinite(a))
        if not bad.size:
            return
        moments, directions = np.linalg.eigh(robot.mass_matrix(setup.q[tuple(bad[0, :-1])], loops="open"))
    if moments[0] <= SINGULAR * moments[-1]:
        name = robot.coordinate_names[int(np.argmax(np.abs(directions[:, 0])))]
        found = f"the mass matrix is singular at the start: {name} moves no inertia"
        raise SimulationError(found, where=robot.name, fix="give its links an inertia, or fix the joint")


def check_springs(robot: Robot, q: Array, step: float) -> None:
    """Warn if Runge-Kutta steps of length ``step`` (s) are unstable for the springs and dampers at q (..., nq).

    The linear motion x' = A x about the first posture is stable if |R(h lambda)| <= 1 for all eigenvalues lambda of A,
    where R is the stability function of the method. Controllers and closed loops, which also change the eigenvalues,
    are not considered.
    """
    tree = Tree.of(robot)
    if robot.loops or not any(passive.q for passive in tree.passives):
        return
    n, at = robot.nv, q.reshape(-1, robot.nq)[0]

    def traced() -> ca.Function:
        smooth = replace(tree, passives=tuple(replace(each, coulomb=0.0, model="") for each in tree.passives))
        K, D, x = ca.SX(n, n), ca.SX(n, n), ca.SX.sym("q", robot.nq)
        for (i, j), slopes in passive_jacobians(smooth, x, ca.SX.zeros(n)).items():
            K[i, j], D[i, j] = K[j, i], D[j, i] = slopes
        return ca.Function("slopes", [x], [K, D])

    slopes: ca.Function = robot.kernels.once(("slopes of springs",), traced)
    K, D = (each.full() for each in slopes(at))
    M = robot.mass_matrix(at, loops="open")
    rates = np.linalg.eigvals(np.vstack([np.eye(n, 2 * n, n), -np.linalg.solve(M, np.hstack([K, D]))]))
    rates = np.minimum(rates.real, 0) + 1j * rates.imag  # motions that grow by themselves need no shorter step

    def is_stable(h: float) -> bool:
        z = h * rates
        return bool((np.abs(1 + z * (1 + z / 2 * (1 + z / 3 * (1 + z / 4)))) <= 1 + 1e-6).all())

    if is_stable(step):
        return
    longest = step
    while not is_stable(longest):
        longest *= 0.99
    fix = "use a shorter step, or in `simulate` an implicit method"
    warn_of_long_step(robot, step, longest, "the springs", fix)


def divergence(setup: Setup, t: float, v: Array) -> SimulationError | None:
    """Return the error of a diverged state, or None if all velocities v (..., nv) are plausible."""
    with np.errstate(invalid="ignore"):
        bad = ~(np.abs(v) < FASTEST)
    if not bad.any():
        return None
    method = setup.settings.method
    *rollout, k = (int(each) for each in np.argwhere(bad)[0])
    where = f"{setup.robot.name}, rollout {rollout}" if rollout else setup.robot.name
    found = f"the speed of {setup.robot.coordinate_names[k]} is {v[(*rollout, k)]:.3g} at t = {t:.6g} s"
    if method in ("implicit", "sdirk") and np.isnan(v[(*rollout, k)]):
        found = f"the equations of the step to t = {t:.6g} s could not be solved"
    elif setup.robot.loops and np.isnan(v[(*rollout, k)]):
        wheels = any(isinstance(loop, Wheel) for loop in setup.robot.loops)
        found = "the loops could not be closed" + ", or the wheels not kept from slipping," * wheels
        found += f" after the step to t = {t:.6g} s" + ": a wheel that lies flat cannot roll" * wheels
        if setup.prescribed is not None:
            found += ": the prescribed motion may be out of their reach"
    others = None if method == "adaptive" else '`method="adaptive"`'  # "adaptive" chooses its own step
    if method == "rk4" and setup.prescribed is None:
        others = '`method="implicit"`, "linearly_implicit" or "adaptive"'
    if setup.hard is not None:
        others = "weaker gains and stops"
    finer = "" if others is None else f"a step below {setup.settings.step:g} s, or {others}; or "
    if setup.controller.call is not None and others is not None:
        finer += "a CasADi controller (control.drives for PD laws), since the force of a Python controller is constant "
        finer += "during the step; or "
    return SimulationError(found, where=where, fix=f"{finer}check forces, gains and inertias")


def python_controller(setup: Setup) -> Law | None:
    """Return the controller as a function of (t, q, v) called from Python, or None if it is traced into the step.

    A sampled controller is called once per control period. Its forces act ``delay_periods`` later; until the first one
    arrives, the force is zero.
    """
    source = setup.controller
    if source.function is not None and setup.is_sampled:
        law: Law | None = traced_law(setup.robot, source)
    else:
        law = source.call if source.array is None else lambda t, q, v, array=source.array: array
    if law is None or not setup.is_sampled:
        return law
    pending = deque([np.zeros(setup.robot.nv)] * setup.settings.delay_periods)

    def delayed(t: float, q: Array, v: Array) -> Array:
        pending.append(law(t, q, v))
        return pending.popleft()

    return delayed


def traced_law(robot: Robot, source: Source) -> Callable[[Any, Array, Array], Array]:
    """Return a source's compiled function with only (t, q, v) as arguments.

    It looks up the signal window and passes the parameters itself.
    """
    function, window = source.function, source.window
    assert function is not None
    kernel = compiled(robot, function.name_out(0), (function,), lambda: function)
    gains = [np.asarray(source.parameters)] if len(source.parameters) else []
    return lambda t, q, v: np.asarray(kernel(t, q, v, *([] if window is None else [window(t, t)]), *gains))
