"""Controllers: pure functions (t, q, v) -> tau of CasADi symbols that compile to machine code, and their references."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array, Maybe
from torsor.base.checks import frozen_array, positive, positive_vector, real_array
from torsor.base.errors import ModelError
from torsor.compiler import AnyKernel, compile
from torsor.compiler.c import export_c
from torsor.mechanism.drives import saturated_force
from torsor.robot.robot import Robot

# Controller references: desired values as functions of time, with exact derivatives.

Law = Callable[[ca.SX], Any] | ArrayLike


@dataclass(frozen=True, eq=False)
class Reference:
    """Desired values over time: ``function`` is a ``casadi.Function`` t -> values."""

    function: ca.Function

    def rates(self, t: ca.SX, order: int) -> list[ca.SX]:
        """Return the values and their time derivatives up to an order, as expressions of t.

        Example:
            >>> law = torsor.control.reference(torsor.library.planar_chain(1), lambda t: [t**2])
            >>> law.rates(ca.SX.sym("t"), 2)
            [SX(sq(t)), SX((2.*t)), SX(2)]
        """
        time = ca.SX.sym("t")
        values = [self.function(time)]
        for _ in range(order):
            values.append(ca.jtimes(values[-1], time, ca.SX(1)))
        result = ca.Function("rates", [time], values)(t)
        return [result] if order == 0 else list(result)

    @cached_property
    def _kernel(self) -> AnyKernel:
        t = ca.SX.sym("t")
        return compile(ca.Function("reference", [t], [ca.densify(rate) for rate in self.rates(t, 2)]))

    def __call__(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """Return (values, rates, second rates) at times t (...): for positions q_d, v_d, a_d, each (..., n)."""
        values: tuple[Array, Array, Array] = self._kernel(t)
        return values


def reference(robot: Robot, law: Law | Reference) -> Reference:
    """Return a joint reference: desired joint positions over time.

    ``law`` is either an array of constants or a function of a CasADi time t (s). The function returns the desired joint
    positions (a list or SX, rad or m) in the order of q, without the motors of elastic joints. v_d, a_d and higher
    derivatives are obtained by differentiation with respect to t.

    Example:
        >>> law = reference(torsor.library.elastic_arm(), lambda t: [0.5 * ca.sin(2 * t), t, 0.1])
        >>> q_d, v_d, a_d = law(0.0)
        >>> v_d.tolist()
        [1.0, 1.0, 0.0]
    """
    if isinstance(law, Reference):
        law = law.function
    n = robot.nq - len(robot.elastic)
    return Reference(law_function(law, (n,), f"{robot.name}: reference"))


def law_function(law: Law, shape: tuple[int, ...], where: str) -> ca.Function:
    """Return a function of time, or constants, of a given shape as a CasADi function of t."""
    t = ca.SX.sym("t")
    rows, columns = (*shape, 1)[:2]
    if not callable(law):
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
    """Return the result of a law as SX; rows of a matrix may be lists."""
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
    forces tau (nv) in N m and N. It has no state, so a simulation can trace it into its step. ``reference`` is the
    desired motion. Calling the controller runs compiled code over any leading axes, on the robot's target
    (``robot.to``).

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

    @cached_property
    def _kernel(self) -> AnyKernel:
        return compile(self.function, **vars(self.robot.target))

    def __call__(self, t: ArrayLike, q: ArrayLike, v: ArrayLike, out: Array | None = None) -> Array:
        """Return the generalised forces (..., nv) at times t (...), positions q (..., nq), velocities v (..., nv).

        ``out`` is an optional output array, which is filled and returned.
        """
        tau: Array = self._kernel(t, q, v, out=out)
        return tau

    def saturated(self, limit: Maybe = None) -> Controller:
        """Return the same law with forces limited to [-limit, limit] (N m, N), by default the robot's effort limits.

        ``limit`` is one number, or one per coordinate (nv); inf means no limit. Forces that are NaN stay NaN.

        Example:
            >>> law = torsor.control.computed_torque(torsor.library.two_link(), [0.0, 3.0], bandwidth=10.0)
            >>> law.saturated(5.0)(0.0, [0.0, 0.0], [0.0, 0.0]).tolist()
            [5.0, 5.0]
        """
        robot, where = self.robot, f"{self.robot.name}: saturated"
        if limit is None:
            force_limit = np.asarray(robot.effort_limit, dtype=float)
            if np.isinf(force_limit[force_limit > 0]).all():  # elastic joints, which only springs drive, have 0
                raise ModelError("the robot has no effort limits", where=where, fix="give limit=")
        else:
            force_limit = real_array(limit, where, "limit")
            force_limit = np.full(robot.nv, force_limit) if force_limit.ndim == 0 else force_limit
            if force_limit.shape != (robot.nv,) or not (force_limit > 0).all():
                allowed = f"one positive number, or {robot.nv} of them"
                raise ModelError(argument="limit", value=limit, where=where, allowed=allowed)

        def law(t: ca.SX, q: ca.SX, v: ca.SX) -> ca.SX:
            return saturated_force(self.function(t, q, v), force_limit)

        return traced(self.function.name(), robot, law, self.reference)

    def sampled(self, period: float) -> ca.Function:
        """Return the discrete-time law (k, q, v) -> tau: forces from t = k period (s), held constant for one period.

        Because a law has no state, its discrete form is the law evaluated at the samples. A simulation holds the forces
        in the same way with ``simulate(..., control_period=period)``.

        Example:
            >>> law = torsor.control.gravity_compensation(torsor.library.two_link())
            >>> law.sampled(1e-3)
            Function(gravity_compensation:(k,q[2],v[2])->(tau[2]) SXFunction)
        """
        h = positive(period, f"{self.robot.name}: sampled", "period")
        k, q, v = ca.SX.sym("k"), ca.SX.sym("q", self.robot.nq), ca.SX.sym("v", self.robot.nv)
        tau = self.function(h * k, q, v)
        return ca.Function(self.function.name(), [k, q, v], [tau], ["k", "q", "v"], ["tau"])

    def export_c(
        self,
        path: str | Path,
        dtype: str = "float64",
        name: str = "torsor_controller",
        prefix: str = "",
        period: float | None = None,
        overwrite: bool = True,
    ) -> list[Path]:
        """Write the law as self-contained C99 to a folder and return the paths of header, source and CMakeLists.txt.

        The function is named after the law, with ``prefix`` in front. It takes (t, q, v), or (k, q, v) if ``period`` is
        given (see ``sampled``). It allocates no memory, has no state and calls only libm.

        Example:
            >>> import tempfile
            >>> law = torsor.control.gravity_compensation(torsor.library.two_link())
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     header, *_ = law.export_c(folder)
            ...     [line for line in header.read_text().splitlines() if "gravity_compensation(" in line]
            ['void gravity_compensation(const double t[1], const double q[2], const double v[2], double tau[2]);']
        """
        function = self.function if period is None else self.sampled(period)
        return export_c({f"{prefix}{function.name()}": function}, path, dtype, name, overwrite=overwrite)


def traced(
    name: str, robot: Robot, law: Callable[[ca.SX, ca.SX, ca.SX], ca.SX], reference: Reference | None
) -> Controller:
    """Return the controller of a law that is traced over symbols (t, q, v)."""
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
    tau = ca.cse(ca.densify(law(t, q, v)))
    return Controller(ca.Function(name, [t, q, v], [tau], ["t", "q", "v"], ["tau"]), robot, reference)


def pd_gains(n: int, where: str, kp: Maybe, kd: Maybe, bandwidth: Maybe, damping: ArrayLike) -> tuple[Array, Array]:
    """Return (kp, kd), each (n,), of e'' + kd e' + kp e = 0, given directly or as bandwidth^2, 2 damping bandwidth."""
    if bandwidth is not None and kp is None and kd is None:
        rate = positive_vector(bandwidth, n, where, "bandwidth")
        return rate**2, 2 * positive_vector(damping, n, where, "damping") * rate
    if bandwidth is None and kp is not None and kd is not None:
        return positive_vector(kp, n, where, "kp"), positive_vector(kd, n, where, "kd")
    names = {"kp": kp, "kd": kd, "bandwidth": bandwidth}
    given_names = ", ".join(name for name, value in names.items() if value is not None) or "none"
    raise ModelError(
        f"the given gains are: {given_names}", where=where, allowed="kp and kd, or bandwidth (with damping)"
    )
