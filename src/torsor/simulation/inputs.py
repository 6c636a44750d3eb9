"""Inputs of a simulation: controllers, environment wrenches and prescribed motion.

Prescribed coordinates follow functions of time, and the dynamics determine the others. An example is a robot with a
moving base whose joint motion is known (Khalil 2010, section 7.2): base motion and joint forces are computed.
"""

import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from torsor.base.arrays import Array, Shape, real_numbers
from torsor.base.checks import arrays, real_array
from torsor.base.errors import ModelError, SimulationError, listing, warn
from torsor.compiler import calls_only_tables
from torsor.robot.robot import Robot
from torsor.simulation.signals import (
    Signal,
    check_duration,
    motion_signal,
    polynomial,
    sampled_times,
    warn_of_lost_samples,
)

# Sources of forces and wrenches: zero, a constant array, samples over time, a Python function, or a CasADi function.

Window = Callable[[Any, Any], Array]
Law = Callable[[float, Array, Array], Array]


class Source(NamedTuple):
    """The forces of a controller or the wrenches of the environment, as at most one of array, call and function.

    ``added`` is a function of (t, q, v) whose forces also act: contact or stop forces. ``limit`` (nv,) are
    the maximum forces of the controller's drives. With a ``window``, the function has a fourth input: the
    result of ``window(start, end)`` for the time of a step. ``parameters`` are numbers that are inputs of the step, so
    that one kernel serves all of them: of hard contact (n), or (..., n) of the drives of a controller
    (``control.drives``), which its function takes as its last input.
    """

    array: Array | None = None
    call: Law | None = None
    function: ca.Function | None = None
    added: ca.Function | None = None
    limit: Array | None = None
    window: Window | None = None
    parameters: Array | tuple[float, ...] = ()

    @classmethod
    def of(cls, robot: Robot, given: Any, what: str, core: Shape, duration: float, step: float) -> "Source":
        """Return the source for an argument of ``simulate``; ``core`` is the shape of its value for one rollout.

        ``step`` is the length of a fixed step in s, or 0 if the source is evaluated at any time.
        """
        if given is None:
            return cls()
        active = _active(robot) if what == "controller" else []
        if is_sampled(given, core):
            return cls._of_samples(robot, given, what, core, active, duration, step)
        gains = getattr(given, "gains", None)
        if gains is not None and given.robot.coordinate_names != robot.coordinate_names:
            found = f"are drives of {given.robot.name!r}, whose coordinates are different"
            raise ModelError(found, argument=what, where=robot.name, fix="make drives for this robot")
        function = casadi_function(given if gains is None else given.law)
        if function is not None:
            size = (core[0], core[1] if len(core) > 1 else 1)
            if active and function.n_out() == 1 and function.size_out(0) == (len(active), 1):
                inputs = [ca.MX.sym(f"i{k}", *function.size_in(k)) for k in range(function.n_in())]
                whole = ca.DM.eye(robot.nv)[:, active] @ function.call(inputs)[0]
                function = ca.Function(function.name(), inputs, [whole])
            window, sizes = getattr(given, "window", None), 0 if gains is None else gains.shape[-1]
            function = traced(robot, function, what, size, window is not None, sizes)
            if gains is None:
                return cls(function=function, window=window)
            return cls(function=function, window=window, parameters=gains, limit=given.limit)
        if callable(given):
            return cls(call=_checked(given, robot, what, core, active))
        if active and np.shape(given)[-1:] == (len(active),):
            return cls(array=_expand(arrays(given, (len(active),), robot.name, what), core[0], active))
        if active and np.shape(given)[-1:] != core:
            allowed = f"(..., {core[0]}), or (..., {len(active)}) of the active coordinates"
            raise ModelError(f"has shape {np.shape(given)}", argument=what, where=robot.name, allowed=allowed)
        if isinstance(given, (tuple, list)) and real_numbers(given) is None:
            allowed = f"an array {core}, or samples (times, values) of shapes (T,) and {('T', *core)}".replace("'", "")
            raise ModelError(argument=what, value=given, where=robot.name, allowed=allowed)
        return cls(array=arrays(given, core, robot.name, what))

    @classmethod
    def _of_samples(
        cls, robot: Robot, given: Any, what: str, core: Shape, active: list[int], duration: float, step: float
    ) -> "Source":
        """Return the source for samples (times, values), which are interpolated linearly."""
        where = f"{robot.name}: {what}"
        times, values = sampled_times(given[0], where), real_array(given[1], where, what)
        if active and values.shape[1:] == (len(active),):
            values = _expand(values, core[0], active)
        if values.shape != (len(times), *core):
            allowed = f"{(len(times), *core)}, a row for each time"
            raise ModelError(f"samples of shape {values.shape}", where=where, allowed=allowed)
        if not np.isfinite(values).all():
            raise ModelError("the samples are not finite", where=where, allowed="finite numbers")
        check_duration(times, duration, where)
        warn_of_lost_samples(times, step, where)
        signal = Signal.joined(times, [values.reshape(len(times), -1)])
        t, q, v = ca.SX.sym("t"), ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
        window = ca.SX.sym("window", *signal.size)
        now = ca.reshape(polynomial(t, window), *reversed((*core, 1)[:2])).T  # rows first, as in arrays
        inputs = [t, q, v, window]
        return cls(function=ca.Function(what, inputs, [now], ["t", "q", "v", "window"], [what]), window=signal.window)


def _active(robot: Robot) -> list[int]:
    """Return the indices of the active coordinates of a robot with loops; none if all coordinates are active."""
    active = [robot.coordinate_names.index(name) for name in robot.active] if robot.loops else []
    if len(active) == robot.nv and active != sorted(active):
        text = "all coordinates are active, but in a different order, so the order of the forces is ambiguous"
        raise ModelError(text, where=robot.name, fix="robot.with_active(robot.coordinate_names)")
    return active if len(active) < robot.nv else []


def _expand(forces: Array, count: int, places: list[int]) -> Array:
    """Return forces on all coordinates (..., count) from those on the coordinates at ``places``; zero elsewhere."""
    whole = np.zeros((*forces.shape[:-1], count))
    whole[..., places] = forces
    return whole


def casadi_function(given: Any) -> ca.Function | None:
    """Return a CasADi function, or an object's attribute ``function`` if it is one; None for other objects."""
    found = given if isinstance(given, ca.Function) else getattr(given, "function", None)
    return found if isinstance(found, ca.Function) else None


def is_sampled(given: Any, core: Shape) -> bool:
    """Return whether an argument is (times, values): two arrays, the second with one axis more than one value."""
    try:
        return isinstance(given, (tuple, list)) and [np.ndim(each) for each in given] == [1, 1 + len(core)]
    except ValueError:  # rows of different lengths
        return False


def traced(
    robot: Robot, function: ca.Function, what: str, size: tuple[int, int], has_window: bool = False, gains: int = 0
) -> ca.Function:
    """Return a CasADi function of (t, q, v), expanded into scalar operations; raise ModelError for wrong sizes.

    A window and a number of ``gains`` may follow as further inputs.
    """
    inputs = [function.size_in(k) for k in range(function.n_in())]
    outputs = [function.size_out(k) for k in range(function.n_out())]
    wanted = [(1, 1), (robot.nq, 1), (robot.nv, 1)]
    if inputs[: 3 if has_window or gains else None] != wanted or outputs != [size]:
        found = f"{what} {function.name()} takes {inputs} and returns {outputs}"
        missing = "window" in function.name_in() and not has_window
        fix = "pass the controller itself, which contains the samples" if missing else ""
        allowed = f"(t, q, v) of sizes {wanted} -> one of size {size}"
        raise ModelError(found, where=robot.name, allowed=allowed, fix=fix)
    names = ["t", "q", "v", *["window"] * has_window, *["gains"] * bool(gains)]
    value = expanded(function, what, names)
    if value is None:
        found = f"{what} {function.name()} cannot be expanded into scalar operations"
        raise ModelError(found, where=robot.name, fix="pass a Python function that calls it")
    return value


def expanded(function: ca.Function, what: str, names: Sequence[str]) -> ca.Function | None:
    """Return a function of one result, with these names, as scalar operations; None if it cannot be compiled."""
    symbols = [ca.SX.sym(name, *function.size_in(k)) for k, name in enumerate(names)]
    try:
        scalar = function if function.is_a("SXFunction") else function.expand()
        value = ca.Function(what, symbols, [ca.densify(scalar(*symbols))], names, [what])
    except RuntimeError:
        return None
    # Solvers, CasADi's interpolants and external functions remain calls, which cannot be compiled.
    return value if calls_only_tables(value) else None


def _checked(call: Callable[..., Any], robot: Robot, what: str, core: Shape, active: list[int]) -> Law:
    """Return a Python function whose results are checked, because a wrong shape could broadcast by accident."""

    def law(t: float, q: Array, v: Array) -> Array:
        # Read-only views, because a function that writes to the state would silently change the motion.
        q, v = q.view(), v.view()
        q.flags.writeable = v.flags.writeable = False
        given = call(t, q, v)
        try:
            result = np.asarray(given, dtype=float)
        except (TypeError, ValueError):
            found = f"{what} returned {reprlib.repr(given)} at t = {t:.6g} s"
            raise ModelError(found, where=robot.name, allowed=f"numbers of shape {core}") from None
        batch = v.shape[:-1]
        if active and result.shape in ((*batch, len(active)), (len(active),)):
            result = _expand(result, core[0], active)
        if result.shape != (*batch, *core) and result.shape != core:
            found = f"{what} returned an array of shape {result.shape} at t = {t:.6g} s"
            allowed = f"{(*batch, *core)}, or {core} for all"
            allowed += f", or {(*batch, len(active))} of the active coordinates" if active else ""
            raise ModelError(found, where=robot.name, allowed=allowed)
        if not np.isfinite(result).all():
            raise SimulationError(f"{what} returned numbers that are not finite at t = {t:.6g} s", where=robot.name)
        return result

    return law


def words(given: Any, what: str, constant: str) -> str:
    """Return a description of a controller or of wrenches for the settings of a trajectory."""
    if given is None:
        return f"no {what}"
    function = casadi_function(given)
    if function is not None:
        return f"{what} {function.name()}"
    if is_sampled(given, (1,)) or is_sampled(given, (1, 1)):
        return f"sampled {constant}"
    return f"{what} {getattr(given, '__name__', type(given).__name__)}" if callable(given) else f"constant {constant}"


Motion = Callable[[float], tuple[Array, Array, Array]]

# Allowed difference between the change of a position (velocity) during a step and the integral of its velocity
# (acceleration), due to rounding, finite differences and acceleration jumps.
ROUNDED, DIFFERENCES = 1e-9, (1e-3, 1e-6)

ALLOWED = "a number, (times, q), (times, q, v, a), a casadi.Function t -> q or t -> (q, v, a), or a Python function "
ALLOWED += "t -> (q, v, a)"


@dataclass(frozen=True, eq=False)
class Prescribed:
    """Prescribed coordinates: their ``names``, and motions with the indices of their coordinates in v."""

    robot: Robot
    names: tuple[str, ...]
    motions: tuple[tuple[tuple[int, ...], Motion], ...]
    jumped: set[int] = field(default_factory=set)  # indices in v of the coordinates for which a warning was issued

    @classmethod
    def of(cls, robot: Robot, given: Any, duration: float) -> "Prescribed | None":
        """Return the motions of the argument ``prescribed`` of ``simulate``; None if no coordinate has one."""
        if given is None:
            return None
        if not isinstance(given, Mapping):
            raise ModelError(f"prescribed is {given!r}", value=given, where=robot.name, allowed="{coordinate: motion}")
        names, motions = list[str](), []
        single = [each for each in robot.coordinate_names if each in robot.position_names]
        for key, motion in given.items():
            own = key if isinstance(key, tuple) else (key,)
            if not own:
                raise ModelError("`prescribed` is empty", where=robot.name)
            where = f"{robot.name}: prescribed motion of {', '.join(map(repr, own))}"
            for name in own:
                if name not in single:
                    allowed = f"coordinates with one position: {listing(map(repr, single), like=repr(name))}"
                    raise ModelError(f"prescribed names {name!r}", value=name, where=robot.name, allowed=allowed)
                if name in names:
                    text = f"`prescribed` has two motions of {name!r}"
                    raise ModelError(text, value=name, where=robot.name, allowed="one")
                names.append(name)
            indices = tuple(robot.coordinate_names.index(name) for name in own)
            motions.append((indices, _motion(motion, len(own), duration, where)))
        return cls(robot, tuple(names), tuple(motions)) if names else None

    @cached_property
    def v(self) -> list[int]:
        """Indices of the prescribed coordinates in v."""
        return [self.robot.coordinate_names.index(name) for name in self.names]

    @cached_property
    def q(self) -> list[int]:
        """Indices of the prescribed coordinates in q, in the same order."""
        return [self.robot.position_names.index(name) for name in self.names]

    @property
    def forced(self) -> tuple[str, ...]:
        """Names of the coordinates that are not prescribed, whose motion is computed."""
        return tuple(name for name in self.robot.coordinate_names if name not in self.names)

    def at(self, t: float) -> Array:
        """Return positions, velocities and accelerations (3, nv) at a time, with zeros for all other coordinates."""
        found = np.zeros((3, self.robot.nv))
        for indices, motion in self.motions:
            found[:, indices] = motion(t)
        return found

    def stages(self, t: float, h: float) -> Array:
        """Return ``at`` for the start, middle and end of a step, stacked (9, nv); warn if a motion jumps."""
        found = np.concatenate([self.at(t), self.at(t + h / 2), self.at(t + h)])
        if len(self.jumped) < len(self.v):
            self._warn_of_jumps(t, h, found[:, self.v].reshape(3, 3, -1))
        return found

    def _warn_of_jumps(self, t: float, h: float, motion: Array) -> None:
        """Warn once per coordinate if v is not the rate of q, or a is not the rate of v, in ``motion`` (3, q v a, n).

        Such motions need infinite forces, which an integrator cannot resolve.
        """
        sizes = np.abs(motion).max(axis=0)
        changes = motion[2] - motion[0]
        missed = np.abs(changes[:2] - h / 6 * (motion[0] + 4 * motion[1] + motion[2])[1:])  # Simpson's rule
        turns = 2 * h * sizes[2]  # allows for a jump of the acceleration
        allowed = np.array([h * turns + DIFFERENCES[0] * h * sizes[1], turns + DIFFERENCES[1] * sizes[1]])
        wrong = np.argwhere(missed > allowed + ROUNDED * np.maximum(1.0, sizes[:2])).tolist()
        for row, k in reversed(wrong):  # a velocity jump also causes a position error
            if self.v[k] in self.jumped:
                continue
            self.jumped.add(self.v[k])
            what, rate = (("position", "velocity"), ("velocity", "acceleration"))[row]
            found = f"its {what} changes by {changes[row, k]:.3g} from t = {t:.6g} s to {t + h:.6g} s"
            found += f", which its {rate} does not explain: the forces of the motion are wrong there"
            fix = "use a smooth motion, such as a spline through samples (times, q), or a smaller step"
            allowed_motion = f"a {what} without jumps, whose derivative is the {rate}"
            where = f"{self.robot.name}: prescribed motion of {self.names[k]!r}"
            warn(found, where=where, allowed=allowed_motion, fix=fix)

    def imposed(self, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        """Return states (..., nq) and (..., nv) with the prescribed positions and velocities at a time."""
        now, q, v = self.at(t), q.copy(), v.copy()
        q[..., self.q], v[..., self.v] = now[0, self.v], now[1, self.v]
        return q, v


def _motion(given: Any, count: int, duration: float, where: str) -> Motion:
    """Return the motion of ``count`` coordinates as a function of time, checked at its start and end."""
    function = casadi_function(given)
    if function is not None:
        motion = _of_casadi(function, count, where)
    elif callable(given):
        motion = given
    elif isinstance(given, tuple):
        signal = motion_signal(given, count, where)
        check_duration(signal.breaks, duration, where)

        def motion(t: float) -> tuple[Array, Array, Array]:
            return tuple(signal.at(t))
    else:
        still = real_array(given, where, "position")
        if still.shape not in ((), (count,)):
            raise ModelError(f"positions of shape {still.shape}", where=where, allowed=f"() or ({count},)")
        if not np.isfinite(still).all():
            raise ModelError(f"positions are {still}", where=where, allowed="finite numbers")
        rest = np.zeros(count)
        return lambda t: (np.broadcast_to(still, (count,)), rest, rest)

    def checked(t: float) -> tuple[Array, Array, Array]:
        try:
            q, v, a = (np.asarray(each, dtype=float).reshape(count) for each in motion(t))
        except (TypeError, ValueError):
            found = f"the function does not return numbers at t = {t:.6g} s"
            raise ModelError(found, where=where, allowed=ALLOWED) from None
        if not np.isfinite([q, v, a]).all():
            raise ModelError(f"the motion is not finite at t = {t:.6g} s", where=where)
        return q, v, a

    for t in (0.0, duration):
        checked(t)
    return checked


def _of_casadi(function: ca.Function, count: int, where: str) -> Motion:
    """Return the motion of a CasADi function of t; missing velocities and accelerations are its derivatives."""
    sizes = [function.size_out(k) for k in range(function.n_out())]
    if function.n_in() != 1 or function.size_in(0) != (1, 1) or sizes not in ([(count, 1)], [(count, 1)] * 3):
        found = f"the function {function.name()} takes {function.n_in()} inputs and returns {sizes}"
        raise ModelError(found, where=where, allowed=f"t -> q or t -> (q, v, a), each of size {(count, 1)}")
    if function.n_out() == 1:
        t = ca.MX.sym("t")
        q = function(t)
        v = ca.jacobian(q, t)
        function = ca.Function(function.name(), [t], [q, v, ca.jacobian(v, t)])
    return lambda t: tuple(each.full().ravel() for each in function(t))
