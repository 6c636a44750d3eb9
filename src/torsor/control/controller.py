"""Controllers, which are compilable pure functions (t, q, v) -> tau of CasADi symbols, and their references."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor.base.archive import load_result
from torsor.base.arrays import Array, Maybe, real_numbers
from torsor.base.checks import frozen_array, positive, positive_vector, real_array
from torsor.base.errors import ModelError, listing, warn
from torsor.base.files import check_file
from torsor.compiler import AnyKernel, compile
from torsor.compiler.c import export_c
from torsor.mechanism.drives import saturated_force
from torsor.robot.about import about_controller
from torsor.robot.robot import Robot
from torsor.robot.state_tables import read_states
from torsor.simulation.signals import Signal, motion_signal, polynomial, sampled_times, samples, warn_of_rates

# Controller references: desired values as functions of time, with exact derivatives.

Law = Callable[[ca.SX], Any] | ArrayLike

MOTIONS = "constants, a function of a CasADi time, a result (MotionResult, Retimed, Trajectory), (times, q), or a file"


class Motion(Protocol):
    """A result with a time axis: ``at(t)`` returns q, v and a at times t between the first and last of ``times``."""

    @property
    def times(self) -> Any:
        """The times (T,) of the result, in s."""

    def at(self, t: Any) -> Any:
        """Return the motion at times t (...)."""


JointReference = Law | Motion | str | Path
"""The references that joint controllers accept in addition to a ``Reference``."""


@dataclass(frozen=True, eq=False)
class Reference:
    """Desired values over time: ``function`` is a ``casadi.Function`` t -> values.

    The reference of a sampled motion has a ``signal``. Its function is (t, window) -> values, where ``window(t)``
    returns the polynomials of the interval that contains t. A controller with such a reference is therefore compiled
    once for all motions.
    """

    function: ca.Function
    signal: Signal | None = None

    @cached_property
    def inputs(self) -> list[ca.SX]:
        """The symbol of the window if the motion is sampled, otherwise no symbol."""
        return [] if self.signal is None else [ca.SX.sym("window", *self.signal.size)]

    def window(self, start: Any, end: Any = None) -> Array:
        """Return the polynomials (..., 7, n) of a sampled motion between the times ``start`` and ``end`` (..., s).

        The first row is the start time of the polynomials, and the other six rows are their coefficients.

        Example:
            >>> law = torsor.control.reference(torsor.library.planar_chain(1), ([0.0, 2.0], [[0.0], [4.0]]))
            >>> law.window(0.5)[:3, 0].tolist()  # from 0 s: 0 + 2 t
            [0.0, 0.0, 2.0]
        """
        if self.signal is None:
            raise ModelError("the reference is not a sampled motion", where="window", fix="call the reference: law(t)")
        return self.signal.window(start, start if end is None else end)

    def rates(self, t: ca.SX, order: int) -> list[ca.SX]:
        """Return the values and their time derivatives up to an order, as expressions in t.

        Example:
            >>> law = torsor.control.reference(torsor.library.planar_chain(1), lambda t: [t**2])
            >>> law.rates(ca.SX.sym("t"), 2)
            [SX(sq(t)), SX((2.*t)), SX(2)]
        """
        time = ca.SX.sym("t")
        values = [self.function(time, *self.inputs)]
        for _ in range(order):
            values.append(ca.jtimes(values[-1], time, ca.SX(1)))
        result = ca.Function("rates", [time, *self.inputs], values)(t, *self.inputs)
        return [result] if order == 0 else list(result)

    @cached_property
    def _kernel(self) -> AnyKernel:
        t = ca.SX.sym("t")
        return compile(ca.Function("reference", [t], [ca.densify(rate) for rate in self.rates(t, 2)]))

    def __call__(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """Return (values, rates, second rates) at times t (...): (q_d, v_d, a_d), each (..., n), for positions."""
        if self.signal is not None:
            q, v, a = np.moveaxis(self.signal.at(real_array(t, "reference", "t")), -2, 0)
            return q, v, a
        values: tuple[Array, Array, Array] = self._kernel(t)
        return values


def reference(robot: Robot, law: JointReference | Reference) -> Reference:
    """Return a joint reference: desired joint positions over time, in the order of q, without elastic joints' motors.

    ``law`` is one of the following:

    - an array of constants (rad or m);
    - a function of a symbolic (CasADi) time t (s) that returns the positions (a list or SX), which are differentiated
      to obtain v_d, a_d and higher derivatives;
    - a result with ``at(t)`` and ``times`` (``Motion``): a ``MotionResult``, ``Retimed`` or ``Trajectory``;
    - samples (times, q), for a cubic spline, or (times, q, v, a), for quintics between the samples;
    - a file: a saved result (.npz), or a table (.csv) with the columns "time" and "q NAME", and optionally both
      "v NAME" and "a NAME". The motion begins with the first row.

    Before and after a sampled motion, the reference is its first and last position. The times of samples and results
    must not begin after 0 s. Robots with quaternions do not support sampled motions.

    Example:
        >>> law = reference(torsor.library.elastic_arm(), lambda t: [0.5 * ca.sin(2 * t), t, 0.1])
        >>> q_d, v_d, a_d = law(0.0)
        >>> v_d.tolist()
        [1.0, 1.0, 0.0]
        >>> reference(torsor.library.planar_chain(1), ([0.0, 2.0], [[0.0], [4.0]]))(0.5)[0].tolist()
        [1.0]
    """
    found = joint_reference(robot, law)
    if found.signal is not None and robot.nq != robot.nv:
        message = "the reference of a robot with quaternions must be constant"
        raise ModelError(message, where=robot.name, allowed="constant positions (nq)")
    return found


def joint_reference(robot: Robot, law: JointReference | Reference) -> Reference:
    """Return a joint reference as ``reference`` does; a robot with quaternions may have any motion."""
    n, where = robot.nq - len(robot.elastic), f"{robot.name}: reference"
    if isinstance(law, Reference) and law.signal is not None:
        if law.signal.size[1] != n:
            raise ModelError(f"the motion has {law.signal.size[1]} columns", where=where, allowed=f"{n}")
        return law
    if isinstance(law, Reference):
        return Reference(law_function(law.function, (n,), where))
    if isinstance(law, (str, Path)):
        signal = _of_file(robot, Path(law), n)
    elif isinstance(law, (tuple, list)) and law and isinstance(law[0], (Sequence, np.ndarray)):
        rows = [real_array(each, where, name) for name, each in zip("qva", law[1:], strict=False)]
        signal = _of_samples((law[0], *(_joints(each, robot, n) for each in rows), *law[4:]), n, where)
    elif hasattr(law, "at") and hasattr(law, "times"):
        signal = _of_result(robot, law, n, where)
    else:
        return Reference(law_function(law, (n,), where, MOTIONS))
    if signal.breaks[0] > 0:
        found = f"the motion begins at {signal.breaks[0]:.6g} s"
        raise ModelError(
            found, where=where, allowed="a motion from 0 s on", fix="subtract its first time: times - times[0]"
        )
    t, window = ca.SX.sym("t"), ca.SX.sym("window", *signal.size)
    return Reference(ca.Function("motion", [t, window], [polynomial(t, window)], ["t", "window"], ["q"]), signal)


def _joints(values: Any, robot: Robot, count: int) -> Any:
    """Return the joint columns of samples, which may also contain columns for the motors of elastic joints."""
    return values[:, :count] if np.shape(values)[1:] == (robot.nq,) else values


# Fraction of an interval by which end values are taken before its end, because accelerations may jump there.
BEFORE = 1e-9


def _of_result(robot: Robot, result: Any, count: int, where: str, start: bool = False) -> Signal:
    """Return the motion of a result with ``at`` as quintics between its times; ``start`` shifts it to begin at 0 s."""
    times = sampled_times(result.times, where)
    ends = times, times[1:] - BEFORE * np.diff(times)
    left, right = (result.at(each) for each in ends)
    names = ("q", "v", "a") if hasattr(left, "v") and hasattr(left, "a") else ("q",)
    both = [[real_array(getattr(each, name), where, name) for name in names] for each in (left, right)]
    if both[0][0].ndim > 2:
        batch = " x ".join(map(str, both[0][0].shape[:-2]))
        raise ModelError(f"{batch} motions at once", where=where, allowed="one motion", fix="select one: result[0]")
    rows = [
        [samples(_joints(row, robot, count), of, count, where, name) for name, row in zip(names, each, strict=True)]
        for of, each in zip(ends, both, strict=True)
    ]
    own = robot.position_names[:count]
    given = getattr(getattr(result, "robot", None), "position_names", own)[:count]
    if own != given:
        found = f"the motion has the coordinates {listing(given)}, in the place of {listing(own)}"
        warn(found, where=where, fix="if these are other joints, plan the motion with this robot")
    shown = times - times[0] if start else times
    return Signal.through(shown, rows[0][0]) if len(names) == 1 else Signal.joined(shown, *rows)


def _of_file(robot: Robot, path: Path, count: int) -> Signal:
    """Return the motion in a file: a saved result or a table."""
    where = path.name
    check_file(path, "a saved result (.npz) or a table (.csv)")
    if path.suffix.lower() == ".npz":
        result = load_result(path)
        if not (hasattr(result, "at") and hasattr(result, "times")):
            raise ModelError(f"the file contains {result!r}, which is not a motion", where=where, allowed=MOTIONS)
        return _of_result(robot, result, count, where, start=True)
    if path.suffix.lower() != ".csv":
        raise ModelError(f"the suffix is {path.suffix!r}", value=path.suffix, where=where, allowed=".npz, .csv")
    states = read_states(path, robot)
    if "time" not in states:
        raise ModelError("no column 'time'", where=where, allowed="'time', and 'q NAME' of each coordinate")
    names = "qva" if {"v", "a"} <= states.keys() else "q"
    times = sampled_times(states["time"], where)
    return _of_samples((times - times[0], *(_joints(states[name], robot, count) for name in names)), count, where)


def _of_samples(given: tuple[Any, ...], count: int, where: str) -> Signal:
    """Return the motion through samples; warn if v or a do not match the positions."""
    signal = motion_signal(given, count, where)
    if len(given) > 2:
        warn_of_rates(signal.breaks, [np.reshape(each, (len(signal.breaks), count)) for each in given[1:]], where)
    return signal


LAWS = "constants, or a function of a CasADi time"


def law_function(law: Law, shape: tuple[int, ...], where: str, allowed: str = LAWS) -> ca.Function:
    """Return a law (constants or a function of time) with the given shape as a CasADi function of t."""
    t = ca.SX.sym("t")
    rows, columns = (*shape, 1)[:2]
    if not callable(law):
        if real_numbers(law) is None:
            raise ModelError(argument="the law", value=law, where=where, allowed=allowed)
        value = ca.SX(ca.DM(frozen_array(law, shape, where, "a constant law")))
        return ca.Function("law", [t], [value])
    try:
        value = _as_sx(law(t), where)
    except ModelError:
        raise
    except Exception as error:
        message = f"the law cannot be evaluated on symbols ({type(error).__name__}: {error})"
        raise ModelError(message, where=where, fix="use CasADi functions, and casadi.if_else instead of if") from error
    if columns == 1 and value.shape == (1, rows):
        value = value.T
    if value.shape != (rows, columns):
        message = f"the law returns a {value.shape[0]} x {value.shape[1]} matrix"
        raise ModelError(message, where=where, allowed=f"{rows} x {columns}")
    foreign = [str(symbol) for symbol in ca.symvar(value) if not ca.is_equal(symbol, t)]
    if foreign:
        message = f"the law depends on the symbols {', '.join(foreign[:5])} in addition to time"
        raise ModelError(message, where=where, allowed="expressions of its argument t")
    return ca.Function("law", [t], [ca.densify(value)])


def _as_sx(value: Any, where: str) -> ca.SX:
    """Return the result of a law as SX; a matrix may be a list of rows."""
    try:
        if isinstance(value, Sequence | np.ndarray):
            rows = [ca.horzcat(*row) if isinstance(row, Sequence | np.ndarray) else row for row in value]
            return ca.SX(ca.vertcat(*rows))
        return ca.SX(value)
    except (NotImplementedError, RuntimeError, TypeError, ValueError):
        message = f"the law returns {reprlib.repr(value)}"
        raise ModelError(message, where=where, allowed="numbers and expressions of time") from None


@dataclass(frozen=True, eq=False)
class Controller:
    """A control law for one robot.

    ``function`` is the law as an SX ``casadi.Function``: time t (s), positions q (nq), velocities v (nv) -> generalised
    forces tau (nv) in N m and N. It has no state, so a simulation can include it in its compiled step. ``reference`` is
    the desired motion; if it is sampled, the function has a fourth input, ``reference.window(t)``. A call evaluates
    compiled code for any leading axes, on the robot's target (``robot.to``).

    Example:
        >>> law = torsor.control.computed_torque(torsor.library.two_link(), [0.0, 0.5], bandwidth=10.0)
        >>> law.function
        Function(computed_torque:(t,q[2],v[2])->(tau[2]) SXFunction)
        >>> law(0.0, np.zeros((5, 2)), np.zeros(2)).shape
        (5, 2)
    """

    function: ca.Function
    robot: Robot
    reference: Reference | None = None

    def __repr__(self) -> str:
        return f"<Controller {self.function.name()} of {self.robot.name!r}>"

    @property
    def window(self) -> Callable[[Any, Any], Array] | None:
        """The function (start, end) -> window of a sampled reference, for simulations, or None."""
        sampled = self.reference is not None and self.reference.signal is not None
        return self.reference.window if self.reference is not None and sampled else None

    @property
    def _data(self) -> list[Array]:
        """The inputs of the function after those of the reference."""
        return []

    @property
    def _unread(self) -> list[str]:
        """The entries of q and v on which the law does not depend, as in "q of joint1"."""
        _, *states = self.function.sx_in()[:3]
        tau = self.function(*self.function.sx_in())
        names = self.robot.position_names, self.robot.coordinate_names
        return [
            f"{letter} of {name}"
            for letter, state, of in zip("qv", states, names, strict=True)
            for name, is_read in zip(of, ca.which_depends(tau, state, 1, False), strict=True)
            if not is_read
        ]

    @cached_property
    def _kernel(self) -> AnyKernel:
        shapes = [(), (self.robot.nq,), (self.robot.nv,), *(each.shape for each in _inputs(self.reference))]
        shapes += [each.shape[-1:] for each in self._data]
        return compile(self.function, **vars(self.robot.target), inputs=shapes, outputs=[(self.robot.nv,)])

    def __call__(self, t: ArrayLike, q: ArrayLike, v: ArrayLike, out: Array | None = None) -> Array:
        """Return the generalised forces (..., nv) at times t (...), positions q (..., nq), velocities v (..., nv).

        ``out`` is an optional output array, which is filled and returned.
        """
        parts = [] if self.window is None else [self.window(real_array(t, repr(self), "t"), t)]
        tau: Array = self._kernel(t, q, v, *parts, *self._data, out=out)
        return tau

    def saturated(self, limit: Maybe = None) -> Controller:
        """Return the law with forces limited to [-limit, limit] (N m, N), by default the robot's effort limits.

        ``limit`` is one number, or one per coordinate (nv); inf means no limit. NaN forces remain NaN. Earlier limits
        remain in effect. ModelError is raised if ``limit`` is None and the robot has no effort limits.

        Example:
            >>> law = torsor.control.computed_torque(torsor.library.two_link(), [0.0, 3.0], bandwidth=10.0)
            >>> law.saturated(5.0)(0.0, [0.0, 0.0], [0.0, 0.0]).tolist()
            [5.0, 5.0]
        """
        most = force_limits(self.robot, limit)

        def law(t: ca.SX, q: ca.SX, v: ca.SX) -> ca.SX:
            return saturated_force(self.function(t, q, v, *_inputs(self.reference)), most)

        return traced(self.function.name(), self.robot, law, self.reference)

    def sampled(self, period: float) -> ca.Function:
        """Return the discrete-time law (k, q, v) -> tau: forces from t = k period (s), held constant for one period.

        Because a law has no state, its discrete form is the law evaluated at the samples. In a simulation, use
        ``simulate(..., control_period=period)`` to hold the forces in the same way.

        Example:
            >>> law = torsor.control.gravity_compensation(torsor.library.two_link())
            >>> law.sampled(1e-3)
            Function(gravity_compensation:(k,q[2],v[2])->(tau[2]) SXFunction)
        """
        h = positive(period, f"{self.robot.name}: sampled", "period")
        k, q, v = ca.SX.sym("k"), ca.SX.sym("q", self.robot.nq), ca.SX.sym("v", self.robot.nv)
        parts = self.function.sx_in()[3:]
        tau, names = self.function(h * k, q, v, *parts), ["k", *self.function.name_in()[1:]]
        return ca.Function(self.function.name(), [k, q, v, *parts], [tau], names, ["tau"])

    def export_c(
        self,
        path: str | Path,
        dtype: str = "float64",
        name: str = "torsor_controller",
        prefix: str = "",
        period: float | None = None,
        overwrite: bool = True,
    ) -> list[Path]:
        """Write the law as self-contained C99 to a folder and return the paths of its files.

        The files are the header, the source and CMakeLists.txt. The function name is that of the law, preceded by
        ``prefix``. It takes (t, q, v), or (k, q, v) if ``period`` (s) is given (see ``sampled``; k is a ``uint32_t``),
        and the window of a sampled reference (``reference.window``). It allocates no memory, has no state and calls
        only libm. The header documents the robot, the order and units of q, v and tau, the period and the precision.
        ``name`` is that of the files, and ``dtype`` is float64 or float32, in which time has 24 bits: restart k at 0
        for each motion, since from sample 2^24 on, time advances in steps of two periods or more. With
        ``overwrite=False``, an existing file raises ModelError.

        Example:
            >>> import tempfile
            >>> law = torsor.control.gravity_compensation(torsor.library.two_link())
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     header, *_ = law.export_c(folder)
            ...     [line for line in header.read_text().splitlines() if "gravity_compensation(" in line]
            ['void gravity_compensation(const double t[1], const double q[2], const double v[2], double tau[2]);']
        """
        function, title = self.function if period is None else self.sampled(period), prefix + self.function.name()
        clock, now = ["No sampling period: the law is a function of the time t."], "the time t"
        if period is not None:
            now, most = "sample k", f"{2**32 * period:.6g} s, 2^32 samples"
            clock = [
                f"Sampling period: {period!r} s. Sample k is at the time k x {period!r} s. k overflows after {most}."
            ]
            if dtype == "float32":
                late = f"From {2**24 * period:.6g} s (2^24 samples) on, time advances in steps of two periods or more,"
                clock.append(f"{late} because it has 24 bits. Restart k at 0 for each motion.")
        constants = "the reference, " if self.window is None else ""
        timing = (
            *clock,
            f"Constants of the code: the model, {constants}gains and limits. No state; memory: the stack.",
        )
        held = "until the next call" if period is None else "for one period"
        results = {title: f"Compute tau at {now}; hold it {held}. There is no return value."}
        about = about_controller(self.robot, f"Controller {self.function.name()}", results, timing, dtype, self._unread)
        return export_c({title: function}, path, dtype, name, about, overwrite, () if period is None else ("k",))


def force_limits(robot: Robot, limit: Maybe) -> Array:
    """Return the limits (nv,) of forces: one number, one per coordinate, or by default the robot's effort limits."""
    where = f"{robot.name}: saturated"
    if limit is None:
        most = np.asarray(robot.effort_limit, dtype=float)
        if np.isinf(most[most > 0]).all():  # elastic joints, which only springs drive, have 0
            raise ModelError("the robot has no effort limits", where=where, fix="give limit=")
        return most
    most = real_array(limit, where, "limit")
    most = np.full(robot.nv, most) if most.ndim == 0 else most
    if most.shape != (robot.nv,) or not (most > 0).all():
        allowed = f"one positive number, or {robot.nv} of them"
        raise ModelError(argument="limit", value=limit, where=where, allowed=allowed)
    return most


def traced(
    name: str, robot: Robot, law: Callable[[ca.SX, ca.SX, ca.SX], ca.SX], reference: Reference | None
) -> Controller:
    """Return the controller for a law, which is traced with symbols (t, q, v)."""
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
    tau, parts = ca.cse(ca.densify(law(t, q, v))), _inputs(reference)
    names = ["t", "q", "v", *["window"] * len(parts)]
    return Controller(ca.Function(name, [t, q, v, *parts], [tau], names, ["tau"]), robot, reference)


def _inputs(reference: Reference | None) -> list[ca.SX]:
    """Return the inputs of a law in addition to (t, q, v)."""
    return [] if reference is None else reference.inputs


def pd_gains(n: int, where: str, kp: Maybe, kd: Maybe, bandwidth: Maybe, damping: ArrayLike) -> tuple[Array, Array]:
    """Return (kp, kd), each (n,), for e'' + kd e' + kp e = 0: as given, or bandwidth^2 and 2 damping bandwidth."""
    if bandwidth is not None and kp is None and kd is None:
        rate = positive_vector(bandwidth, n, where, "bandwidth")
        return rate**2, 2 * positive_vector(damping, n, where, "damping") * rate
    if bandwidth is None and kp is not None and kd is not None:
        return positive_vector(kp, n, where, "kp"), positive_vector(kd, n, where, "kd")
    names = {"kp": kp, "kd": kd, "bandwidth": bandwidth}
    given_names = ", ".join(name for name, value in names.items() if value is not None) or "none"
    message = f"the given gains are: {given_names}"
    raise ModelError(message, where=where, allowed="kp and kd, or bandwidth (with damping)")
