"""Maximum-likelihood estimation by output error: the simulated motion is fitted to the measured positions.

The motion is simulated with the measured forces in short windows (multiple shooting), each with an unknown initial
state x0 = (q, v), and compared with the measured positions. With the encoder noise sigma, the problem

    minimise over beta and all x0   sum of ((q_measured - q(t; x0, beta)) / sigma)^2

is solved by the Gauss-Newton method. Forces are linear between samples. Each step is a Runge-Kutta step with exact
derivatives, which are propagated with the state in each stage:

    M da = -(tau_q dq + tau_v dv + Y dbeta)           (tau of inverse dynamics at the simulated acceleration)

The states x0 are eliminated by a QR decomposition for each window. Velocities and accelerations are neither measured
nor filtered, so encoder noise does not bias the result, unlike in least squares.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import frozen_array, instance_of, whole_number
from torsor.base.errors import ModelError
from torsor.compiler import AnyKernel, compile
from torsor.identification.closed_robot import ClosedRobot
from torsor.identification.differentiation import uniform_step
from torsor.identification.estimation import root_of
from torsor.identification.physical import Estimate, Prior, nearest_physical
from torsor.identification.result import Identified
from torsor.identification.simulated_instruments import estimated_dynamics, symbolic_forces
from torsor.robot.robot import Robot

FRICTION_WIDTH = 0.01  # width of smooth Coulomb friction, as a fraction of the maximum speed
STEP_TOLERANCE = 1e-3  # maximum step of a parameter at convergence, in standard deviations
STAGES = ((0.0, 1.0), (0.5, 2.0), (0.5, 2.0), (1.0, 1.0))  # instants, and weights in sixths, of the Runge-Kutta method
MAX_HALVINGS = 8
DIVERGENCE_LIMIT = 1e3  # rad or m; positions of a diverging simulated window exceed it


def output_error(
    start: Identified, t: ArrayLike, q: ArrayLike, tau: ArrayLike, *, window: int = 50, iterations: int = 20
) -> Identified:
    """Return the estimate ``start``, refined by the output-error method from positions q and forces tau (T, nv).

    ``t`` (T,) are equally spaced times in s, ``window`` is the number of steps of each simulated window, and
    ``iterations`` limits the Gauss-Newton iterations. Positions are unfiltered encoder positions. ``start``, from
    ``identify``, provides the robot and the initial values. If the windows simulated with these values do not follow
    the measured motion, the nearest physically consistent values are used instead. If the robot does not have smooth
    Coulomb friction, tanh(v / 1 % of the maximum speed) is used. Standard deviations assume independent windows. Loops,
    quaternions, external wrenches, ``drives`` and a bandwidth are not supported (ModelError).

    Example:
        >>> robot = torsor.library.planar_chain(1).with_friction("joint1", viscous=0.2)
        >>> run = torsor.simulate(robot, [1.0], duration=4.0, controller=lambda t, q, v: 5 * np.sin([3 * t]))
        >>> first = torsor.identify(robot, run, among=["link1.*", "*.viscous"])
        >>> found = output_error(first, run.times, run.q, run.tau)
        >>> bool(np.allclose(found.values, robot.inertial.base(among=["link1.*", "*.viscous"]).values, atol=1e-3))
        True
    """
    start = instance_of(start, Identified, "output_error", "start")
    robot, where = start.prior, start.prior.name
    other = robot.nq != robot.nv or start.drives is not None or start.measurements.external is not None
    if isinstance(robot, ClosedRobot) or other or start.settings.get("bandwidth") is not None:
        allowed = "nq = nv, no loops, no external wrenches, no further friction models, no bandwidth"
        fix = 'start from an estimate without these, `friction=()`, or use `instruments="simulation"`'
        raise ModelError("output error does not support this model", where=where, allowed=allowed, fix=fix)
    times = frozen_array(t, (np.size(t),), where, "t")
    step = uniform_step(times, where)
    shape = len(times), robot.nv
    measured, forces = frozen_array(q, shape, where, "q"), frozen_array(tau, shape, where, "tau")
    window = whole_number(window, where, "window", least=2 * robot.nv + 2)
    count = (len(times) - 1) // window
    if count < 2 + 2 * len(start) // (window * robot.nv):
        fix = "measure longer, or use shorter windows"
        raise ModelError(f"there are {count} windows of {window} steps", where=where, allowed="more", fix=fix)
    at = window * np.arange(count)[:, None] + np.arange(window + 1)
    problem = _Problem(_smooth(robot, measured, step), start, measured[at], forces[at], step)
    states, beta = problem.first_states(), start.values.copy()
    rows = problem.rows(states, beta)
    if not _follows(rows):
        beta = _bodies(start)
        rows = problem.rows(states, beta)
    if not _follows(rows):
        fix = "start closer to the robot, or use shorter windows"
        raise ModelError("the simulated motion diverges", where=where, fix=fix)
    for _ in range(whole_number(iterations, where, "iterations")):
        noise = _noise(rows)
        linear = _Linear.of(rows, noise)
        d_beta, d_states = linear.step()
        for _ in range(MAX_HALVINGS):
            trial_rows = problem.rows(states + d_states, beta + d_beta)
            trial = _Linear.of(trial_rows, noise)
            if trial.cost < linear.cost:
                break
            d_beta, d_states = d_beta / 2, d_states / 2
        else:
            break
        states, beta, rows, linear = states + d_states, beta + d_beta, trial_rows, trial
        if (np.abs(d_beta) <= STEP_TOLERANCE * np.sqrt(np.diagonal(linear.covariance()))).all():
            break
    settings = {**start.settings, "estimator": "output error", "window": window, "encoder_noise": _noise(rows)}
    made = replace(start, values=beta, covariance=linear.covariance(), parameters=None, settings=settings, lag=0)
    data = start.measurements
    return replace(made, predicted=made.predict(data.q, data.v, data.a), held_out=None, unseen=None).checked()


@dataclass(frozen=True, eq=False)
class _Linear:
    """Linearised residuals of all windows: ``R`` (W, 2 n + b + 1, 2 n + b + 1) with columns [x0, beta, residual]."""

    R: Array
    n: int

    @classmethod
    def of(cls, rows: Array, noise: Array) -> "_Linear":
        """Return the rows (W, K + 1, n, 2 n + b + 1) of all windows, divided by the noise (n,) and reduced by QR."""
        windows, count, n, width = rows.shape
        if not _follows(rows):
            return cls(np.full((windows, width, width), np.inf), n)
        flat = (rows / noise[:, None]).reshape(windows, count * n, width)
        return cls(np.asarray(np.linalg.qr(flat, mode="r")), n)

    @property
    def cost(self) -> float:
        return float(np.sum(self.R[..., -1] ** 2)) if np.isfinite(self.R).all() else np.inf

    @property
    def _reduced(self) -> tuple[Array, Array]:
        """Matrices (W, ., b) and residuals (W, .) after elimination of the states."""
        lower = self.R[:, 2 * self.n :]
        return lower[..., 2 * self.n : -1], lower[..., -1]

    def step(self) -> tuple[Array, Array]:
        """Return the changes of beta (b,) and of the states (W, 2 n)."""
        A, r = self._reduced
        size = np.sqrt(np.maximum(np.sum(A**2, axis=(0, 1)), 1e-300))
        d_beta = np.linalg.lstsq(A.reshape(-1, A.shape[-1]) / size, r.ravel(), rcond=1e-10)[0] / size
        upper = self.R[:, : 2 * self.n]
        rest = upper[..., -1] - upper[..., 2 * self.n : -1] @ d_beta
        return d_beta, np.linalg.solve(upper[..., : 2 * self.n], rest[..., None])[..., 0]

    def covariance(self) -> Array:
        """Return the covariance (b, b) of beta from the scores of independent windows."""
        A, r = self._reduced
        H = np.einsum("wab,wac->bc", A, A)
        scores = np.einsum("wab,wa->wb", A, r)
        windows = len(scores)
        back = np.linalg.inv(H)
        return np.asarray(back @ (scores.T @ scores) @ back * windows / max(windows - H.shape[0] / self.n, 1.0))


@dataclass(frozen=True, eq=False)
class _Problem:
    """Measured positions ``q`` and forces ``tau`` (W, K + 1, n) of all windows, with steps of ``h`` seconds."""

    robot: Robot
    start: Identified
    q: Array
    tau: Array
    h: float

    def first_states(self) -> Array:
        """Return initial states (W, 2 n) of the windows, from a parabola fitted to the positions of each window."""
        steps = self.h * np.arange(self.q.shape[1])
        fit = np.linalg.pinv(np.stack([np.ones_like(steps), steps, steps**2], axis=1))[:2]
        place = np.einsum("sk,wkn->swn", fit, self.q)
        return np.concatenate([place[0], place[1]], axis=-1)

    @cached_property
    def _dynamics(self) -> AnyKernel:
        return estimated_dynamics(self.robot, self.start.base.columns.tolist())

    @cached_property
    def _kernel(self) -> AnyKernel:
        """Kernel of the derivatives (n, n) of inverse dynamics by q and v, at (q, v, a, change of beta)."""
        n, b = self.robot.nv, len(self.start.base)
        inputs, tau = symbolic_forces(self.robot, self.start.base.columns.tolist())
        jacobians = ca.cse([ca.jacobian(tau, each) for each in inputs[:2]])
        function = ca.Function("output_error", inputs, [ca.densify(jacobian) for jacobian in jacobians])
        return compile(function, inputs=[(n,), (n,), (n,), (b,)], outputs=[(n, n), (n, n)])

    def _rates(self, x: Array, D: Array, tau: Array, d: Array) -> tuple[Array, Array]:
        """Return x' (W, 2 n) and its derivatives (W, 2 n, 2 n + b) from the derivatives D of x."""
        n = self.robot.nv
        q, v = x[:, :n], x[:, n:]
        bias, M = self._dynamics(q, v, d)
        a = np.linalg.solve(M, (tau - bias)[..., None])[..., 0]
        tau_q, tau_v = self._kernel(q, v, a, d)
        change = -(tau_q @ D[:, :n] + tau_v @ D[:, n:])
        change[..., 2 * n :] -= self.robot.inertial.regressor(q, v, a)[..., self.start.base.columns]
        return np.concatenate([v, a], axis=1), np.concatenate([D[:, n:], np.linalg.solve(M, change)], axis=1)

    def rows(self, states: Array, beta: Array) -> Array:
        """Return derivatives with respect to [x0, beta] and residuals of all windows, (W, K + 1, n, 2 n + b + 1)."""
        n, b = self.robot.nv, len(beta)
        windows, count = self.q.shape[0], self.q.shape[1]
        x, D = states, np.zeros((windows, 2 * n, 2 * n + b))
        D[:, :, : 2 * n] = np.eye(2 * n)
        d = beta - self.start.base.values
        rows = np.empty((windows, count, n, 2 * n + b + 1))
        with np.errstate(over="ignore", invalid="ignore"):
            for k in range(count):
                rows[:, k, :, :-1] = D[:, :n]
                rows[:, k, :, -1] = self.q[:, k] - x[:, :n]
                if k + 1 < count:
                    x, D = self._stepped(x, D, self.tau[:, k], self.tau[:, k + 1], d)
        return rows

    def _stepped(self, x: Array, D: Array, before: Array, after: Array, d: Array) -> tuple[Array, Array]:
        """Return state and derivatives after a Runge-Kutta step with forces (W, n) at both ends."""
        rate, slope = np.zeros_like(x), np.zeros_like(D)
        total, slopes = np.zeros_like(x), np.zeros_like(D)
        for part, weight in STAGES:
            tau = (1 - part) * before + part * after
            rate, slope = self._rates(x + part * self.h * rate, D + part * self.h * slope, tau, d)
            total, slopes = total + weight / 6 * rate, slopes + weight / 6 * slope
        return x + self.h * total, D + self.h * slopes


def _follows(rows: Array) -> bool:
    """Return whether the simulated windows stay near the measured positions."""
    return bool(np.isfinite(rows).all()) and float(np.abs(rows[..., -1]).max(initial=0.0)) < DIVERGENCE_LIMIT


def _bodies(start: Identified) -> Array:
    """Return the physically consistent base parameters (b,) nearest to an estimate."""
    robot, base = start.prior, start.base
    prior = Prior(robot.inertial.values, base.columns, base.unknown, len(robot.links))
    near = Estimate(base.matrix, start.values, root_of(start.covariance))
    return np.asarray(base.matrix @ nearest_physical(near, prior, start.settings["regularisation"], robot.name, None))


def _noise(rows: Array) -> Array:
    """Return the noise (n,) of the residuals in ``_Problem.rows`` after a fit of each window's state."""
    count = rows.shape[1]
    return np.asarray(np.maximum(np.sqrt(np.mean(rows[..., -1] ** 2, axis=(0, 1)) * count / max(count - 2, 1)), 1e-12))


def _smooth(robot: Robot, q: Array, step: float) -> Robot:
    """Return the robot with smooth Coulomb friction in all of its joints."""
    speed = np.percentile(np.abs(q[10:] - q[:-10]) / (10 * step), 99, axis=0) if len(q) > 10 else np.ones(robot.nv)
    for joint, at in zip(robot.joints, robot.coordinates, strict=True):
        if not joint.smooth and joint.nv:
            robot = robot.with_friction(joint.name, smooth=FRICTION_WIDTH * max(float(speed[at.v].max()), 1e-6))
    return robot
