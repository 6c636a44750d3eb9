"""The optimal design of a periodic motion: a criterion of how well it excites the base parameters, and its limits.

With Y_t (n x b) the regressor of the base parameters at sample t, each row divided by its coordinate's noise, G is the
mean of Y_t^T Y_t, plus what is known from earlier measurements for each sample of the new motion; see ``criteria``. A
function of G with the gradient D has the gradient 2 Y_t D with respect to Y_t, and the traced regressor gives those
with respect to q, v and a. Swevers, Ganseman, Tukel, De Schutter and Van Brussel 1997.
"""

from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from torsor.base.arrays import Array, Indices
from torsor.compiler import AnyKernel, compile
from torsor.identification.excitation.clearance import Clearance
from torsor.identification.excitation.criteria import criterion_of
from torsor.identification.excitation.series import Series
from torsor.robot.robot import Robot

FINE = 40  # instants per harmonic at which the limits of motion are checked during the search


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits (n,) of each coordinate: ``lower`` and ``upper`` positions; others may be infinite."""

    lower: Array
    upper: Array
    velocity: Array
    acceleration: Array
    effort: Array

    def slacks(self, q: Array, v: Array, a: Array) -> list[Array]:
        """Return the slack of motions (T, n) to each limit except effort, relative to the limit; 0 is at the limit."""
        half = (self.upper - self.lower) / 2
        found = [(self.upper - q) / half, (q - self.lower) / half]
        for limit, values in ((self.velocity, v), (self.acceleration, a)):
            found += [1 - values / limit, 1 + values / limit]
        return found


@dataclass(frozen=True, eq=False)
class Design:
    """The design problem: a robot, columns of its regressor, noise (n,) of its forces, limits, and the series.

    A motion is given by x (m n,): coefficients of ``series.basis`` (2 H + 1, m) for each coordinate, relative to half
    of its range and about the middle. ``samples`` is the number of instants of a period that the criterion uses.
    ``known`` (b, b) is the information of earlier measurements over the number of samples of the new motion, ``sizes``
    (b,) are those of the parameters, ``clearance`` keeps collision shapes apart.
    """

    robot: Robot
    columns: Indices
    noise: Array
    limits: Limits
    series: Series
    samples: int
    criterion: str
    known: Array
    sizes: Array
    clearance: Clearance | None = None

    @property
    def half(self) -> Array:
        """Half of the range (n,) of each coordinate."""
        return np.asarray((self.limits.upper - self.limits.lower) / 2)

    def coefficients(self, x: Array) -> Array:
        """Return the coefficients (2 H + 1, n) of a motion."""
        own = self.series.basis @ x.reshape(-1, len(self.half)) * self.half
        own[0] += (self.limits.upper + self.limits.lower) / 2
        return np.asarray(own)

    def variables(self, coefficients: Array) -> Array:
        """Return the x (m n,) of coefficients (2 H + 1, n) within the span of the basis."""
        own = coefficients.copy()
        own[0] -= (self.limits.upper + self.limits.lower) / 2
        return np.asarray(self.series.basis.T @ (own / self.half)).ravel()

    @cached_property
    def _features(self) -> tuple[Array, Array, Array]:
        return self.series.sampled(self.samples)

    @cached_property
    def _fine(self) -> tuple[Array, Array, Array]:
        return self.series.sampled(FINE * self.series.harmonics)

    @cached_property
    def _smooth(self) -> Robot:
        """The robot with smooth Coulomb friction, since a discontinuity has no gradient."""
        robot = self.robot
        for joint, slices in zip(robot.joints, robot.coordinates, strict=True):
            if not joint.smooth:
                fast = float(np.min(self.half[slices.v])) * 2 * np.pi / self.series.period * abs(joint.ratio)
                robot = robot.with_friction(joint.name, smooth=0.1 * fast)
        return robot

    @cached_property
    def _kernels(self) -> tuple[AnyKernel, AnyKernel]:
        """Y (n, b) of (q, v, a), and the gradients of <L, Y> with respect to them."""
        n, b = self.robot.nv, len(self.columns)
        q, v, a, L = ca.SX.sym("q", n), ca.SX.sym("v", n), ca.SX.sym("a", n), ca.SX.sym("L", n, b)
        Y = self._smooth.function("regressor")(q, v, a)[:, self.columns.tolist()]
        back = [ca.densify(each) for each in ca.cse([ca.gradient(ca.dot(L, Y), each) for each in (q, v, a)])]
        rows = compile(ca.Function("rows", [q, v, a], [ca.densify(Y)]), inputs=[(n,)] * 3, outputs=[(n, b)])
        pullback = ca.Function("rows_back", [q, v, a, L], back)
        return rows, compile(pullback, inputs=[(n,), (n,), (n,), (n, b)], outputs=[(n,)] * 3)

    def _criterion(self, motion: tuple[Array, Array, Array]) -> tuple[float, tuple[Array, Array, Array]]:
        """Return the criterion of a motion (T, n) and its gradients with respect to q, v and a (T, n)."""
        rows, back = self._kernels
        Y = rows(*motion) / self.noise[:, None]
        flat = Y.reshape(-1, len(self.columns))
        cost, by_G = criterion_of(self.criterion, flat.T @ flat / self.samples + self.known, self.sizes)
        if not np.isfinite(cost):
            return cost, motion
        L = 2 / self.samples * (Y @ by_G) / self.noise[:, None]
        gradients: tuple[Array, Array, Array] = back(*motion, L)
        return cost, gradients

    def cost(self, x: Array, barrier: float) -> tuple[float, Array]:
        """Return the criterion plus a logarithmic barrier at the limits, and its gradient (m n,)."""
        C = self.coefficients(x)
        bounded = bool(np.isfinite(self.limits.effort).any())
        fine = (self._fine[0] @ C, self._fine[1] @ C, self._fine[2] @ C)
        motion = (self._features[0] @ C, self._features[1] @ C, self._features[2] @ C)
        slacks = self.limits.slacks(*fine)
        tau = self.robot.inverse_dynamics(*motion) if bounded else np.zeros((1, self.robot.nv))
        effort = [1 - tau / self.limits.effort, 1 + tau / self.limits.effort]
        if min(float(each.min()) for each in (*slacks, *effort)) <= 0:
            return np.inf, x
        apart, by_q = (0.0, 0.0 * fine[0]) if self.clearance is None else self.clearance.barrier(fine[0])
        value, gradients = self._criterion(motion) if np.isfinite(apart) else (np.inf, motion)
        if not np.isfinite(value):
            return np.inf, x
        value -= barrier * sum(float(np.log(each).mean(axis=0).sum()) for each in (*slacks, *effort))
        value += barrier * apart
        by_C = sum(F.T @ g for F, g in zip(self._features, gradients, strict=True)) + barrier * self._fine[0].T @ by_q
        count = len(fine[0])
        sides = (1 / self.half, 1 / self.limits.velocity, 1 / self.limits.acceleration)
        for F, (k, size) in zip(self._fine, zip((0, 2, 4), sides, strict=True), strict=True):
            by_C = by_C + barrier / count * (F.T @ (1 / slacks[k] - 1 / slacks[k + 1]) * size)
        if bounded:
            by_tau = barrier / len(tau) * (1 / effort[0] - 1 / effort[1]) / self.limits.effort
            parts = self.robot.inverse_dynamics_derivatives(*motion)
            by_C = by_C + sum(
                F.T @ np.einsum("ti,tij->tj", by_tau, part) for F, part in zip(self._features, parts, strict=True)
            )
        return value, np.asarray(self.series.basis.T @ (by_C * self.half)).ravel()

    def information(self, coefficients: Array) -> Array:
        """Return the mean information G (b, b) of a sample of a motion, without what is known from earlier ones."""
        rows = self._rows(coefficients)
        return np.asarray(rows.T @ rows / self.samples)

    def reached(self, coefficients: Array) -> float:
        """Return the exponential of the criterion of a motion: less is better."""
        return float(np.exp(criterion_of(self.criterion, self.information(coefficients) + self.known, self.sizes)[0]))

    def condition(self, coefficients: Array) -> float:
        """Return the condition number of the base regressor along a motion, its rows divided by the noise.

        Earlier measurements are rows of it.
        """
        values, U = np.linalg.eigh(self.known)
        before = np.sqrt(np.maximum(values, 0.0) * self.samples)[:, None] * U.T
        return float(np.linalg.cond(np.concatenate([self._rows(coefficients), before[values > 0]])))

    def _rows(self, coefficients: Array) -> Array:
        Y = self.robot.regressor(*(F @ coefficients for F in self._features))[..., self.columns]
        return np.asarray((Y / self.noise[:, None]).reshape(-1, len(self.columns)))
