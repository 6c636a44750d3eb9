"""Model predictive control of arms: ``mpc`` plans the motion over a receding horizon at every call.

In each step of length h, the acceleration is constant, and the torque is that at the midpoint of the step (implicit
midpoint rule). The objective weights errors of positions, velocities and accelerations, so the dynamics only affect the
torque bounds. Each call linearises the torque about the previous plan and solves one quadratic program (real-time
iteration, Diehl, Bock and Schlöder 2005); see ``torsor.motion.horizon``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, Literal

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array, Maybe
from torsor.base.checks import by_name, number, positive_vector, rows, vectors, whole_number
from torsor.base.errors import ModelError
from torsor.compiler import compile
from torsor.compiler.c import c_texts
from torsor.compiler.source import MARK, About, asset, comment, write_all
from torsor.control.controller import JointReference, Reference
from torsor.control.controller import reference as make_reference
from torsor.control.partition import check_rigid, check_vector_space
from torsor.motion import horizon as program
from torsor.robot.about import about_controller
from torsor.robot.robot import Robot

WEIGHTS = 1.0, 5e-3, 6.25e-6  # of positions, velocities and accelerations, for a critically damped loop with 20 rad/s
LIMIT_WEIGHT = 1e5  # weight of a position beyond its bound, relative to the weight of its error
DOUBLINGS = 40  # doublings of the horizon, after which the terminal cost has converged for all weights


def torque_model(robot: Robot) -> ca.Function:
    """Return packed D, M, e and d of a step with length h (s), linearised about the motion from z to z_next."""
    names = ("z", "z_next", "target", "target_next")
    inputs = program.symbols(robot.nv, *names) | {"h": ca.SX.sym("h")}
    *ends, h = inputs.values()
    (q0, w0), (q1, w1), (r0, s0), (r1, s1) = (ca.vertsplit(end, robot.nv) for end in ends)
    q, w, b = (q0 + q1) / 2, (w0 + w1) / 2, w1 - w0
    tau = robot.function("inverse_dynamics")(q, w / h, b / h**2)
    by_q, by_v, by_a = robot.function("inverse_dynamics_derivatives")(q, w / h, b / h**2)
    by_w, by_b = by_v / h, by_a / h**2
    b_target = s1 - s0
    e = tau + by_q @ (r0 + s0 / 2 + b_target / 4 - q) + by_w @ ((s0 + s1) / 2 - w) + by_b @ (b_target - b)
    parts = [by_q, by_q / 2 + by_w, by_b + by_w / 2 + by_q / 4, e, r0 - r1 + (s0 + s1) / 2]
    return program.packed_function("torque_model", inputs, {"model": ca.veccat(*parts)})


def endless_cost(weights: Array) -> Array:
    """Return P (n, 2, 2) of the unbounded infinite-horizon cost x^T P x / 2 of errors.

    ``weights`` (3, n) are the weights of b, q and h v. The Riccati equation is solved by doubling the horizon.
    """
    A, G = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([0.5, 1.0])
    G, P = np.outer(G, G) / weights[0][:, None, None], np.eye(2) * weights[1:].T[:, None]
    for _ in range(DOUBLINGS):
        W, A_T = np.linalg.inv(np.eye(2) + G @ P), A.swapaxes(-1, -2)
        A, G, P = A @ W @ A, G + A @ W @ G @ A_T, P + A_T @ P @ W @ A
    return P


STATE_ARRAYS = *("z", "target", "cost", "model", "factors", "rows", "flags", "inner", "step"), *("tau", "excess")
"""The arrays of the exported state: the first three have a row for each node, the others for each step."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """The plan of a call: ``q`` and ``v`` (horizon + 1, nv) at ``times`` (s), and ``tau`` (horizon, nv) in between.

    ``status`` is "solved", or "inexact" if the active set was still wrong after the last of the ``passes``; the plan is
    then near the optimum and may slightly exceed bounds. ``residual`` (N m or N) is the largest difference between
    ``tau`` and the torques required by the motion. It is 0 if the plan also solves the nonlinear problem.
    """

    times: Array
    q: Array
    v: Array
    tau: Array
    status: str
    passes: int
    residual: float


class PredictiveController:
    """A receding-horizon controller of an arm, created by ``mpc``, which stores the plan of the last call.

    ``reference`` is the desired motion, and ``horizon`` is the number of steps of length ``dt`` (s). If the time of a
    call is before that of the last call, or more than the horizon after it, the plan is discarded.
    """

    def __init__(self, robot: Robot, reference: Reference, dt: float, horizon: int, limits: Array):
        n = robot.nv
        self.robot, self.reference, self.dt, self.horizon = robot, reference, dt, horizon
        self._where, self._limits = f"{robot.name}: mpc", limits
        self._model, self._program = compile(torque_model(robot)), program.HorizonProgram(n, horizon)
        self._grid = np.arange(horizon + 1) * np.float64(dt)
        self._time, self._status = np.nan, (False, 0)
        self._arrays = self._program.arrays
        self._arrays["limits"][0] = limits
        weights, P, k = limits[6 * n : 9 * n].reshape(3, n), np.zeros((2 * n, 2 * n)), np.arange(n)
        P.reshape(2, n, 2, n)[:, k, :, k] = endless_cost(weights)
        P -= np.diag(weights[1:].ravel())  # the weight of the last state is added together with its bounds
        self._arrays["cost"][-1, : -2 * n] = P[np.triu_indices(2 * n)]  # P is symmetric, so these are its columns

    @property
    def control_period(self) -> float:
        """The period (s) with which ``simulate`` calls the controller by default: ``dt``."""
        return self.dt

    def __repr__(self) -> str:
        return f"<PredictiveController of {self.robot.name!r}, {self.horizon} steps of {self.dt:g} s>"

    def reset(self) -> None:
        """Discard the plan, so that the next call does not depend on earlier ones."""
        self._time = np.nan

    def __call__(self, t: float, q: ArrayLike, v: ArrayLike, target: Maybe = None) -> Array:
        """Return the torques (nv,) for the next ``dt``, at time t (s), positions q (nv,) and velocities v (nv,).

        ``target`` replaces the reference in this call: positions (nv,), or positions (horizon + 1, nv) at t, t + dt and
        so on, with finite-difference velocities.
        """
        n, h, where, arrays = self.robot.nv, self.dt, self._where, self._arrays
        q, v, now = vectors(q, n, where, "q"), vectors(v, n, where, "v"), number(t, where, "t")
        if q.ndim > 1 or v.ndim > 1:
            fix = "use one controller for each state, because it stores its plan"
            raise ModelError(f"q has shape {q.shape}, v has shape {v.shape}", where=where, allowed=f"({n},)", fix=fix)
        self._set_target(now, target)
        self._shift((now - self._time) / h, np.concatenate([q, h * v]))
        self._time, z, aims = now, arrays["z"], arrays["target"]
        self._model(z[:-1], z[1:], aims[:-1], aims[1:], np.array(h), out=arrays["model"])
        self._status = self._program.solve()
        tau: Array = np.clip(arrays["tau"][0], self._limits[:n], self._limits[3 * n : 4 * n])
        if not isfinite(tau.sum()):
            self.reset()
            raise ModelError("the torques are not finite", where=where, fix="check the reference and the masses")
        return tau

    def _set_target(self, t: float, target: Maybe) -> None:
        """Set the states of the reference; positions beyond a bound are replaced with the bound, at rest."""
        n, h, where, aims = self.robot.nv, self.dt, self._where, self._arrays["target"]
        q: Array
        v: Array
        if target is None:
            q, v, _ = (each.reshape(-1, n) for each in self.reference(t + self._grid))
        else:
            q = vectors(target, n, where, "target")
            if q.shape not in ((n,), (self.horizon + 1, n)):
                allowed = f"({n},) or {(self.horizon + 1, n)}"
                raise ModelError(f"has shape {q.shape}", argument="target", where=where, allowed=allowed)
            order: Literal[1, 2] = 2 if self.horizon > 1 else 1
            v = np.zeros(n) if q.ndim == 1 else np.gradient(q, h, axis=0, edge_order=order)
        np.clip(q, self._limits[n : 2 * n], self._limits[4 * n : 5 * n], out=aims[:, :n])
        np.multiply(h * v, aims[:, :n] == q, out=aims[:, n:])

    def _shift(self, steps: float, z: Array) -> None:
        """Shift the plan by a number of steps and start it at z; without a plan, all states are z."""
        plan, flags, last = self._arrays["z"], self._arrays["flags"], self.horizon
        if not 0 <= steps <= last:
            plan[:], flags[:] = z, 0.0
            return
        before = np.arange(last + 1) + int(steps)
        nodes, following = (plan[np.minimum(each, last)] for each in (before, before + 1))  # repeats the last state
        plan[:] = nodes + (steps - int(steps)) * (following - nodes)
        plan[0] = z
        flags[:] = flags[np.minimum(np.arange(last) + int(steps + 0.5), last - 1)]

    @property
    def prediction(self) -> Prediction:
        """The plan of the last call.

        Example:
            >>> law = torsor.motion.mpc(torsor.library.two_link(), [0.5, 0.0], dt=0.01)
            >>> tau = law(0.0, [0.0, 0.0], [0.0, 0.0])
            >>> law.prediction.status, law.prediction.q.shape
            ('solved', (21, 2))
        """
        if not isfinite(self._time):
            raise ModelError("there is no plan", where=self._where, fix="call the controller first")
        n, h, tau, (is_solved, passes) = self.robot.nv, self.dt, self._arrays["tau"].copy(), self._status
        q, v = self._arrays["z"][:, :n].copy(), self._arrays["z"][:, n:] / h
        needed = self.robot.inverse_dynamics((q[1:] + q[:-1]) / 2, (v[1:] + v[:-1]) / 2, (v[1:] - v[:-1]) / h)
        residual = float(np.abs(needed - tau).max())
        return Prediction(self._time + self._grid, q, v, tau, "solved" if is_solved else "inexact", passes, residual)

    def export_c(self, folder: str | Path, name: str = "torsor_mpc", overwrite: bool = True) -> list[Path]:
        """Write the controller as self-contained C99 code to a folder, and return the paths of its files.

        ``NAME_step.h`` defines the struct ``NAME_state``, which stores the plan, and the function ``NAME_step``, which
        computes the torques from the state and the reference over the horizon. Bounds and weights are constants in the
        code, which allocates no memory and calls only libm. The header states the order and units of all arrays, the
        period, the memory size and the return value. Numbers have double precision. With ``overwrite=False``, an
        existing file raises ModelError.

        Example:
            >>> import tempfile
            >>> law = torsor.motion.mpc(torsor.library.two_link(), [0.5, 0.0], dt=0.01)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     [path.name for path in law.export_c(folder)]
            ['torsor_mpc.h', 'torsor_mpc.c', 'CMakeLists.txt', 'torsor_mpc_step.h']
        """
        n, N, DT = self.robot.nv, self.horizon, repr(self.dt)
        sizes = program.sizes(n)
        doubles = sum((N + 1 if key in ("z", "target", "cost") else N) * sizes.get(key, n) for key in STATE_ARRAYS)
        timing = (
            f"Sampling period: {DT} s. Horizon: {N} steps of this length.",
            f"Memory: {8 * doubles + 8} bytes for the struct {name}_state (double: 8 bytes, int: 4), and the stack.",
        )
        lines = about_controller(self.robot, "Predictive controller", {}, timing).lines
        functions = {"torque_model": torque_model(self.robot), **program.functions(n)}
        named = {f"{name}_{title}": each for title, each in functions.items()}
        texts, _ = c_texts(named, "float64", name, About(lines), f"{name}_step.h")
        blanks = {
            "name": name,
            "NAME": name.upper(),
            "ABOUT": comment(f"{MARK}.", *lines),
            "n": n,
            "N": N,
            "DT": DT,
        }
        blanks |= {key: getattr(program, key) for key in ("PATIENCE", "BARRIER_PASSES", "MAX_WIDTH", "MU_RATIO")}
        blanks |= {"MU_START": program.MU_ENDS[0], "MU_ENDS": ", ".join(map(repr, program.MU_ENDS))}
        blanks |= {f"SIZE_{key.upper()}": size for key, size in sizes.items()}
        blanks |= {"LIMITS": _listed(self._limits), "END_COST": _listed(self._arrays["cost"][-1])}
        header = asset("step.h", "torsor.motion")
        for key, value in blanks.items():
            header = header.replace(f"@{key}@", str(value))
        return write_all(Path(folder), {**texts, f"{name}_step.h": header}, overwrite)


def _listed(values: Array) -> str:
    return ", ".join(map(repr, values.tolist()))


def mpc(
    robot: Robot,
    reference: JointReference | Reference,
    dt: float = 0.02,
    horizon: int = 20,
    *,
    weights: Sequence[ArrayLike] = WEIGHTS,
    torque: Any = None,
    velocity: Any = None,
    lower: Any = None,
    upper: Any = None,
) -> PredictiveController:
    """Return a controller that minimises the tracking error over the next ``horizon`` steps of ``dt`` (s).

    ``reference`` is a motion, samples, a function of time, or constants (see ``control.reference``). Use the controller
    with ``simulate(..., controller=law)``, which calls it every ``dt``. ``weights`` are the weights of the squared
    errors of positions, velocities and accelerations, each one number or one per coordinate. While no bound is active,
    the closed loop is that of the infinite-horizon LQR with these weights; its bandwidth is approximately (w_position /
    w_acceleration)^(1/4), in rad/s. The default is 20 rad/s with critical damping: (1, 5e-3, 6.25e-6).

    Bounds are one number, one per coordinate, or {name: number}, by default those of the robot. Torques are always
    within ``torque`` (N m or N). ``velocity`` (rad/s or m/s), ``lower`` and ``upper`` (positions, rad or m) are soft
    constraints, so a plan always exists. The robot must be a tree with rigid joints and without quaternions.
    Computations use float64 and one core, regardless of ``robot.target``.

    Example:
        >>> arm = torsor.library.two_link()
        >>> law = mpc(arm, [1.0, -0.5], dt=0.01, torque=8.0)
        >>> run = torsor.simulate(arm, [0.0, 0.0], duration=1.0, controller=law)
        >>> bool(abs(run.tau).max() <= 8.0), bool(abs(run.q[-1] - [1.0, -0.5]).max() < 1e-3)
        (True, True)
    """
    check_vector_space(robot, "mpc")
    check_rigid(robot, "mpc", "use the robot without springs: robot.without_motor(...)")
    n, where = robot.nv, f"{robot.name}: mpc"
    h, steps = number(dt, where, "dt", above=0), whole_number(horizon, where, "horizon")
    three = rows(weights, where, "weights")
    if len(three) != 3:
        allowed = "3: of positions, velocities and accelerations"
        raise ModelError(f"has {len(three)} entries", argument="weights", where=where, allowed=allowed)
    q, v, a = (positive_vector(each, n, where, "weights", or_zero=k == 1) for k, each in enumerate(three))

    def bounds(what: str, value: Any, default: Array, missing: float = np.inf) -> Array:
        return by_name(default if value is None else value, robot.coordinate_names, missing, f"{where}: {what}")

    high = np.array(
        [
            bounds("torque", torque, robot.effort_limit),
            bounds("upper", upper, robot.upper),
            h * bounds("velocity", velocity, robot.velocity_limit),
        ]
    )
    low = np.array([-high[0], bounds("lower", lower, robot.lower, -np.inf), -high[2]])
    if not (low < high).all():
        row, k = np.argwhere(~(low < high))[0].tolist()
        message = f"the bounds of {robot.coordinate_names[k]!r} are {low[row, k]:g} and {high[row, k]:g}"
        what = ("torque", "lower and upper", "velocity")[row]
        raise ModelError(message, argument=what, where=where, allowed="a lower bound below the upper one")
    penalties = LIMIT_WEIGHT * q, LIMIT_WEIGHT * np.sqrt(q * a) / h**2
    limits = np.concatenate(
        [*np.clip([*low, *high], -program.NO_BOUND, program.NO_BOUND), a / h**4, q, v / h**2, *penalties]
    )
    return PredictiveController(robot, make_reference(robot, reference), h, steps, limits)
