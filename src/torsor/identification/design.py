"""How well a periodic motion shows the base parameters, and how near it comes to the limits; with gradients.

With Y_t (n x b) the regressor of the base parameters at sample t, each row divided by its coordinate's noise, G is the
mean of Y_t^T Y_t, and covariance of the parameters ~ G^-1. The two criteria are functions of its eigenvalues l:

    determinant   -(sum of log l) / b                                     (the volume of uncertainty)
    condition     log of (sum of l^8)^(1/8) (sum of l^-8)^(1/8) / 2       (nearly log of the condition number of Y)

A function of eigenvalues with slopes s has the derivative U diag(s) U^T =: D by G, so 2 Y_t D by Y_t, which the
traced regressor carries back to q, v and a. Swevers, Ganseman, Tukel, De Schutter and Van Brussel 1997.
"""

from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from torsor.compiler import Kernel, compile
from torsor.identification.fourier import features
from torsor.robot.robot import Robot

__all__ = ["CRITERIA", "Design", "Limits"]

Array = NDArray[np.float64]

CRITERIA = ("condition", "determinant")
POWER = 8


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits (n,) of each coordinate: ``lower`` and ``upper`` positions; velocity, acceleration, effort or infinity."""

    lower: Array
    upper: Array
    velocity: Array
    acceleration: Array
    effort: Array

    def slacks(self, q: Array, v: Array, a: Array) -> list[Array]:
        """Return how far motions (T, n) are from each limit but effort, in shares of its size: 0 or less is at it."""
        half = (self.upper - self.lower) / 2
        found = [(self.upper - q) / half, (q - self.lower) / half]
        for limit, values in ((self.velocity, v), (self.acceleration, a)):
            found += [1 - values / limit, 1 + values / limit]
        return found


@dataclass(frozen=True, eq=False)
class Design:
    """The problem: a robot, columns of its regressor, noise (n,) of its forces, limits, and the series.

    A motion is given by x (m n,): coefficients of ``basis`` (2 H + 1, m) for each coordinate, in shares of half its
    range about the middle.
    """

    robot: Robot
    columns: NDArray[np.intp]
    noise: Array
    limits: Limits
    period: float
    harmonics: int
    samples: int
    basis: Array
    criterion: str

    @property
    def half(self) -> Array:
        """Half of the range (n,) of each coordinate."""
        return np.asarray((self.limits.upper - self.limits.lower) / 2)

    def coefficients(self, x: Array) -> Array:
        """Return the coefficients (2 H + 1, n) of a motion."""
        own = self.basis @ x.reshape(-1, len(self.half)) * self.half
        own[0] += (self.limits.upper + self.limits.lower) / 2
        return np.asarray(own)

    def shares(self, coefficients: Array) -> Array:
        """Return the x (m n,) of coefficients (2 H + 1, n) that the basis spans."""
        own = coefficients.copy()
        own[0] -= (self.limits.upper + self.limits.lower) / 2
        return np.asarray(self.basis.T @ (own / self.half)).ravel()

    @cached_property
    def _features(self) -> tuple[Array, Array, Array]:
        return features(np.arange(self.samples) * self.period / self.samples, self.period, self.harmonics)

    @cached_property
    def _fine(self) -> tuple[Array, Array, Array]:
        count = 40 * self.harmonics
        return features(np.arange(count) * self.period / count, self.period, self.harmonics)

    @cached_property
    def _smooth(self) -> Robot:
        """The robot with friction whose direction turns smoothly: a jump has no gradient."""
        robot = self.robot
        for joint, slices in zip(robot.joints, robot.coordinates, strict=True):
            if not joint.smooth:
                fast = float(np.min(self.half[slices.v])) * 2 * np.pi / self.period * abs(joint.ratio)
                robot = robot.with_friction(joint.name, smooth=0.1 * fast)
        return robot

    @cached_property
    def _kernels(self) -> tuple[Kernel, Kernel]:
        """Y (n, b) of (q, v, a), and the gradients of <L, Y> by them."""
        n, b = self.robot.nv, len(self.columns)
        q, v, a, L = ca.SX.sym("q", n), ca.SX.sym("v", n), ca.SX.sym("a", n), ca.SX.sym("L", n, b)
        Y = self._smooth.function("regressor")(q, v, a)[:, self.columns.tolist()]
        back = [ca.densify(each) for each in ca.cse([ca.gradient(ca.dot(L, Y), each) for each in (q, v, a)])]
        rows = compile(ca.Function("rows", [q, v, a], [ca.densify(Y)]), inputs=[(n,)] * 3, outputs=[(n, b)])
        carry = ca.Function("rows_back", [q, v, a, L], back)
        return rows, compile(carry, inputs=[(n,), (n,), (n,), (n, b)], outputs=[(n,)] * 3)

    def _shown(self, motion: tuple[Array, Array, Array]) -> tuple[float, tuple[Array, Array, Array]]:
        """Return the criterion of a motion (T, n) and its gradients by q, v and a (T, n)."""
        rows, back = self._kernels
        Y = rows(*motion) / self.noise[:, None]
        flat = Y.reshape(-1, len(self.columns))
        values, U = np.linalg.eigh(flat.T @ flat / self.samples)
        if values[0] <= 1e-14 * values[-1]:
            return np.inf, motion
        if self.criterion == "determinant":
            cost, slopes = -np.log(values).mean(), -1 / values / len(values)
        else:
            up, down = (values / values[-1]) ** POWER, (values[0] / values) ** POWER
            cost = (np.log(values[-1] / values[0]) + (np.log(up.sum()) + np.log(down.sum())) / POWER) / 2
            slopes = (up / up.sum() - down / down.sum()) / values / 2
        L = 2 / self.samples * (Y @ ((U * slopes) @ U.T)) / self.noise[:, None]
        gradients: tuple[Array, Array, Array] = back(*motion, L)
        return float(cost), gradients

    def cost(self, x: Array, barrier: float) -> tuple[float, Array]:
        """Return the criterion with a barrier at the limits, -log of the mean slack, and its gradient (m n,)."""
        C = self.coefficients(x)
        bounded = bool(np.isfinite(self.limits.effort).any())
        fine = (self._fine[0] @ C, self._fine[1] @ C, self._fine[2] @ C)
        motion = (self._features[0] @ C, self._features[1] @ C, self._features[2] @ C)
        slacks = self.limits.slacks(*fine)
        tau = self.robot.inverse_dynamics(*motion) if bounded else np.zeros((1, self.robot.nv))
        effort = [1 - tau / self.limits.effort, 1 + tau / self.limits.effort]
        if min(float(each.min()) for each in (*slacks, *effort)) <= 0:
            return np.inf, x
        value, gradients = self._shown(motion)
        if not np.isfinite(value):
            return value, x
        value -= barrier * sum(float(np.log(each).mean(axis=0).sum()) for each in (*slacks, *effort))
        by_C = sum(F.T @ g for F, g in zip(self._features, gradients, strict=True))
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
        return value, np.asarray(self.basis.T @ (by_C * self.half)).ravel()

    def condition(self, coefficients: Array) -> float:
        """Return the condition number of the base regressor along a motion, its rows divided by the noise."""
        Y = self.robot.regressor(*(F @ coefficients for F in self._features))[..., self.columns]
        return float(np.linalg.cond((Y / self.noise[:, None]).reshape(-1, len(self.columns))))
