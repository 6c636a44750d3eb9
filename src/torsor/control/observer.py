"""Disturbance observer based on the generalised momentum."""

from __future__ import annotations

from typing import Any

import casadi as ca
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import positive_vector, real_array
from torsor.base.errors import ModelError
from torsor.compiler import compile
from torsor.control.partition import check_tree
from torsor.robot.robot import Robot


class MomentumObserver:
    """Observer of the generalised forces r (nv) that the model does not include (contact, payload).

    The momentum p = M v has the rate p' = tau + C^T v - g - friction - springs + tau_ext (De Luca and Mattone 2003):

        r = K_O (p - p(0) - integral of (tau + C^T v - g - friction - springs + r)),   so r' = K_O (tau_ext - r)

    ``gain`` K_O (1/s) is the bandwidth of this filter, one number or one per coordinate. The observer works for all
    trees, including floating bases and elastic joints, and needs no accelerations.

    ``function`` is one step as a pure ``casadi.Function``: (state (3 nv), q, v, tau, h) -> (state, r). q and v are at
    the end of a step of h seconds, and tau (nv) acted during it. The filter is exact for a constant force; the integral
    uses the trapezoidal rule. ``start`` and ``step`` store the state. Arrays may have leading axes.

    Example:
        >>> robot = torsor.library.planar_chain(1, gravity=(0, 0, 0))
        >>> observer = MomentumObserver(robot, gain=50.0)
        >>> observer.start(q=[0.0], v=[0.0])
        >>> for k in range(1, 101):  # a disturbance of 3 N m on an inertia of 1/3
        ...     r = observer.step(q=[0.0], v=[9.0 * k * 1e-3], tau=[0.0], h=1e-3)
        >>> bool(abs(r[0] - 3.0 * (1 - np.exp(-5.0))) < 1e-12)
        True
    """

    def __init__(self, robot: Robot, gain: ArrayLike):
        check_tree(robot, "MomentumObserver", flexible=True)
        self.robot = robot
        self.gain = positive_vector(gain, robot.nv, f"{robot.name}: MomentumObserver", "gain")
        sizes = {"state": 3 * robot.nv, "q": robot.nq, "v": robot.nv, "tau": robot.nv, "h": 1}
        symbols = {name: ca.SX.sym(name, size) for name, size in sizes.items()}
        state, q, v, tau, h = symbols.values()
        M, C, bias = (robot.function(name) for name in ("mass_matrix", "coriolis_matrix", "bias_force"))
        C_v = C(q, v)
        # The momentum, and its rate without tau and tau_ext, where bias = C v + g + friction + springs.
        p, force = M(q) @ v, C_v.T @ v + C_v @ v - bias(q, v)
        p_old, force_old, r_old = (state[k * robot.nv : (k + 1) * robot.nv] for k in range(3))
        keep = ca.exp(-self.gain * h)
        unknown = (p - p_old) / h - tau - (force + force_old) / 2
        r = keep * r_old + (1 - keep) * unknown
        outputs = ca.cse([ca.densify(ca.vertcat(p, force, r)), ca.densify(r)])
        self.function = ca.Function("momentum_observer", list(symbols.values()), outputs, list(sizes), ["next", "r"])
        begin = ca.cse(ca.densify(ca.vertcat(p, force, ca.SX.zeros(robot.nv, 1))))
        self.start_function = ca.Function("momentum_start", [q, v], [begin], ["q", "v"], ["state"])
        self._kernels: dict[str, Any] = {}
        self._state: Array | None = None

    def __repr__(self) -> str:
        return f"<MomentumObserver of {self.robot.name!r}>"

    def _kernel(self, function: ca.Function) -> Any:
        name = function.name()
        if name not in self._kernels:
            self._kernels[name] = compile(function, **vars(self.robot.target))
        return self._kernels[name]

    def start(self, q: ArrayLike, v: ArrayLike) -> None:
        """Start at a state q (..., nq), v (..., nv) with a zero estimate."""
        self._state = self._kernel(self.start_function)(q, v)

    def step(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, h: ArrayLike) -> Array:
        """Return the estimate r (..., nv) at q, v, the end of a step of h seconds during which tau acted."""
        if self._state is None:
            raise ModelError("step was called before start", where=repr(self), fix="call start(q, v) first")
        if not (real_array(h, repr(self), "h") > 0).all():
            raise ModelError(argument="h", value=h, where=repr(self), allowed="positive numbers of seconds")
        r: Array
        self._state, r = self._kernel(self.function)(self._state, q, v, tau, h)
        return r
