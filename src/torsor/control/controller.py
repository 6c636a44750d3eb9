"""A controller: a pure function (t, q, v) -> tau over CasADi symbols, which also runs as machine code; PD gains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
from numpy.typing import ArrayLike

from torsor.arrays import Array
from torsor.checks import positive_vector
from torsor.compiler import AnyKernel, compile
from torsor.control.references import Reference
from torsor.errors import ModelError, describe
from torsor.robot.robot import Robot


@dataclass(frozen=True, eq=False)
class Controller:
    """A control law for one robot.

    ``function`` is the law as a ``casadi.Function`` of SX: time t (s), positions q (nq), velocities v (nv) -> the
    generalised forces tau (nv) in N m and N. It has no state, so that a simulation can trace it into its step.
    ``reference`` is the desired motion. Calling the controller runs its machine code, over any leading axes, on the
    target of the robot (``robot.to``).

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

    def __call__(self, t: ArrayLike, q: ArrayLike, v: ArrayLike) -> Array:
        """Return the generalised forces (..., nv) at times t (...), positions q (..., nq), velocities v (..., nv)."""
        tau: Array = self._kernel(t, q, v)
        return tau


def traced(
    name: str, robot: Robot, law: Callable[[ca.SX, ca.SX, ca.SX], ca.SX], reference: Reference | None
) -> Controller:
    """Return the controller of a law over symbols (t, q, v)."""
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
    tau = ca.cse(ca.densify(law(t, q, v)))
    return Controller(ca.Function(name, [t, q, v], [tau], ["t", "q", "v"], ["tau"]), robot, reference)


def pd_gains(
    n: int, where: str, kp: ArrayLike | None, kd: ArrayLike | None, bandwidth: ArrayLike | None, damping: ArrayLike
) -> tuple[Array, Array]:
    """Return (kp, kd), each (n,), of e'' + kd e' + kp e = 0: as given, or bandwidth^2 and 2 damping bandwidth.

    Example:
        >>> pd_gains(1, "arm", None, None, 10.0, 1.0)
        (array([100.]), array([20.]))
    """
    if bandwidth is not None and kp is None and kd is None:
        rate = positive_vector(bandwidth, n, where, "bandwidth")
        return rate**2, 2 * positive_vector(damping, n, where, "damping") * rate
    if bandwidth is None and kp is not None and kd is not None:
        return positive_vector(kp, n, where, "kp"), positive_vector(kd, n, where, "kd")
    names = {"kp": kp, "kd": kd, "bandwidth": bandwidth}
    given = ", ".join(name for name, value in names.items() if value is not None) or "none"
    raise ModelError(describe(f"gains given: {given}", where=where, allowed="kp and kd, or bandwidth (with damping)"))
