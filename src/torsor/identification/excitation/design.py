"""Optimal design of a periodic excitation trajectory: criteria, limits and minimisation.

The criteria are functions of the information matrix G (b, b). G is the mean of Y_t^T Y_t over all samples, plus the
information of earlier measurements divided by the number of samples of the new motion. Y_t (n, b) is the regressor of
the base parameters, with each row divided by the noise of its coordinate. With the eigenvalues l of G, the sizes s of
the parameters, and r_p = (G^-1)_pp / s_p^2, they are

    determinant   -(sum of log l) / b                                (volume of the confidence ellipsoid)
    condition     log of (sum of l^8)^(1/8) (sum of l^-8)^(1/8) / 2  (approx. log of the condition number of Y)
    uncertainty   log of (sum of r^8)^(1/8) / 2                      (approx. log of the largest relative deviation)

The sum of 8th powers is a smooth approximation of the maximum. A function of G with the gradient D has the gradient 2
Y_t D with respect to Y_t, and the traced regressor provides the gradients with respect to q, v and a. See Swevers,
Ganseman, Tukel, De Schutter and Van Brussel (1997).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import casadi as ca
import numpy as np

from torsor.base.arrays import Array, Flags, Indices
from torsor.base.checks import number
from torsor.compiler import AnyKernel, compile
from torsor.geometry.distances import DistanceModel
from torsor.geometry.pairs import Pairs, distance_model
from torsor.identification.excitation.fourier import Series
from torsor.robot.robot import Robot

CRITERIA = ("condition", "determinant", "uncertainty")
NORM_POWER = 8
SINGULAR_TOLERANCE = 1e-14  # relative eigenvalue below which it counts as zero
MIN_SIZE_RATIO = 0.1  # minimum size of a parameter, as a fraction of the largest of its kind
KINDS = (("mx", "my", "mz"), ("Jxx", "Jxy", "Jxz", "Jyy", "Jyz", "Jzz"))


def criterion_of(name: str, G: Array, sizes: Array) -> tuple[float, Array]:
    """Return a criterion of G (b, b) and its gradient (b, b); infinite where G is singular."""
    values, U = np.linalg.eigh(G)
    if not values[0] > SINGULAR_TOLERANCE * values[-1]:
        return np.inf, np.zeros_like(G)
    if name == "uncertainty":
        covariance = (U / values) @ U.T
        relative = np.diagonal(covariance) / sizes**2
        largest = float(relative.max())
        powers = (relative / largest) ** NORM_POWER
        by_diagonal = powers / powers.sum() / np.diagonal(covariance) / 2
        gradient = -(covariance * by_diagonal) @ covariance
        return float(np.log(largest) / 2 + np.log(powers.sum()) / (2 * NORM_POWER)), np.asarray(gradient)
    if name == "determinant":
        cost, derivatives = -np.log(values).mean(), -1 / values / len(values)
    else:
        up, down = (values / values[-1]) ** NORM_POWER, (values[0] / values) ** NORM_POWER
        cost = (np.log(values[-1] / values[0]) + (np.log(up.sum()) + np.log(down.sum())) / NORM_POWER) / 2
        derivatives = (up / up.sum() - down / down.sum()) / values / 2
    return float(cost), np.asarray((U * derivatives) @ U.T)


def sizes_of(names: tuple[str, ...], values: Array) -> Array:
    """Return the reference sizes (b,) of deviations: the values, but at least a tenth of the largest of their kind.

    ``names`` are the names of the parameters that represent the base parameters, such as "link2.mx".
    """
    letters = [re.sub(r".*\.", "", name) for name in names]
    kinds = [next((kind_names for kind_names in KINDS if letter in kind_names), (letter,)) for letter in letters]
    sizes = np.abs(values)
    largest = np.array([max(size for size, other in zip(sizes, kinds, strict=True) if other == kind) for kind in kinds])
    return np.asarray(np.maximum(sizes, np.where(largest > 0, MIN_SIZE_RATIO * largest, 1.0)))


# Minimisation of a smooth function by BFGS with a line search that stays within its domain.
MIN_STEP_FRACTION = 1e-10  # step fraction at which the line search fails
ARMIJO = 1e-4  # fraction of the predicted decrease that a step must achieve


@dataclass(eq=False)
class Descent:
    """Minimisation of a function x -> (value, gradient), infinite outside its domain, from a point ``x`` (z,).

    ``H`` (z, z) is the BFGS approximation of the inverse Hessian (Nocedal and Wright, "Numerical
    Optimization", 2006, chapter 6).
    """

    function: Callable[[Array], tuple[float, Array]]
    x: Array
    value: float = field(init=False)
    gradient: Array = field(init=False)
    H: Array = field(init=False)

    def __post_init__(self) -> None:
        self.restart(self.function)

    def restart(self, function: Callable[[Array], tuple[float, Array]]) -> None:
        """Continue with a different function from the same point."""
        self.function = function
        self.value, self.gradient = function(self.x)
        self.H = np.eye(len(self.x)) * 0.1 / max(float(np.linalg.norm(self.gradient)), 1e-12)

    def step(self) -> bool:
        """Take one step; return whether the value decreased by more than rounding error."""
        direction = -self.H @ self.gradient
        slope = float(direction @ self.gradient)
        fraction = 1.0
        while fraction > MIN_STEP_FRACTION:
            x = self.x + fraction * direction
            value, gradient = self.function(x)
            if value <= self.value + ARMIJO * fraction * slope:
                break
            fraction /= 2
        else:
            return False
        s, y = x - self.x, gradient - self.gradient
        decrease = self.value - value
        self.x, self.value, self.gradient = x, value, gradient
        curvature = float(s @ y)
        if curvature > 1e-10 * float(np.linalg.norm(s) * np.linalg.norm(y)):
            factor = np.eye(len(s)) - np.outer(s, y) / curvature
            self.H = factor @ self.H @ factor.T + np.outer(s, s) / curvature
        return decrease > 1e-9 * max(abs(value), 1e-3)


# Clearance of a motion: a barrier with compact support that keeps collision shapes apart.
#
# With the pair distance d, the minimum distance c, and y = 1 - (d - c) / REACH where positive, the barrier of a pair is
# -log(1 - y^3). The barrier and its first two derivatives are zero at distances of c + REACH and above.

BARRIER_REACH = 0.1  # m; pairs farther apart than this plus the minimum distance are ignored
CLEARANCE_MARGIN = 1e-3  # m; additional margin of the search, which checks fewer instants than the final check


@dataclass(frozen=True, eq=False)
class Clearance:
    """Compiled distances between collision shapes, and the minimum distance ``least`` (m)."""

    model: DistanceModel
    least: float

    @classmethod
    def of(cls, robot: Robot, least: float, pairs: Pairs, where: str) -> "Clearance":
        """Return the clearance of a robot; for ``pairs``, see ``robot.shapes.distances``."""
        least = number(least, where, "clearance", least=0.0)
        return cls(distance_model(robot, pairs, within=least + CLEARANCE_MARGIN + BARRIER_REACH), least)

    def barrier(self, q: Array) -> tuple[float, Array]:
        """Return the mean barrier of postures q (T, n) and its gradient (T, n); infinite if shapes are too close."""
        if not self.model.pairs:
            return 0.0, np.zeros_like(q)
        distances = self.model(q, True)
        y = np.maximum(1 - (distances.distance[:, self._moving] - self.least - CLEARANCE_MARGIN) / BARRIER_REACH, 0.0)
        if y.max(initial=0.0) >= 1:
            return np.inf, np.zeros_like(q)
        assert distances.gradient is not None
        by_distance = -3 * y**2 / (1 - y**3) / BARRIER_REACH
        value = -np.log(1 - y**3).sum() / len(q)
        return float(value), np.einsum("tp,tpj->tj", by_distance, distances.gradient[:, self._moving]) / len(q)

    def distances(self, q: Array) -> Array:
        """Return the minimum distance (T,) in m at postures q (T, n), or a lower bound if large; inf without pairs."""
        if not self.model.pairs:
            return np.full(len(q), np.inf)
        return np.asarray(self.model(q).distance[:, self._moving].min(axis=1, initial=np.inf))

    @cached_property
    def _moving(self) -> Flags:
        """Mask (P,) of the pairs whose distance changes."""
        return np.asarray(self.model.depends.any(axis=1))


CHECKS_PER_HARMONIC = 40  # instants per harmonic at which the search checks limits


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits (n,) of the coordinates; ``lower`` and ``upper`` positions are finite, and others may be infinite."""

    lower: Array
    upper: Array
    velocity: Array
    acceleration: Array
    effort: Array

    def slacks(self, q: Array, v: Array, a: Array) -> list[Array]:
        """Return the relative slack of motions (T, n) to each limit except effort; 0 at the limit."""
        half = (self.upper - self.lower) / 2
        slacks = [(self.upper - q) / half, (q - self.lower) / half]
        for limit, values in ((self.velocity, v), (self.acceleration, a)):
            slacks += [1 - values / limit, 1 + values / limit]
        return slacks


@dataclass(frozen=True, eq=False)
class Design:
    """The design problem: robot, columns of its regressor, force noise (n,), limits and Fourier series.

    A motion is defined by x (m n,), the coefficients of ``series.basis`` (2 H + 1, m) for each coordinate, relative to
    the middle of its range and divided by half of the range. ``samples`` is the number of samples per period that the
    criterion uses. ``known`` (b, b) is the information of earlier measurements divided by the number of samples of the
    new motion. ``sizes`` (b,) are the parameter sizes, and ``clearance`` keeps collision shapes apart.
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
        """Half the range (n,) of each coordinate."""
        return np.asarray((self.limits.upper - self.limits.lower) / 2)

    def coefficients(self, x: Array) -> Array:
        """Return the coefficients (2 H + 1, n) of a motion."""
        coefficients = self.series.basis @ x.reshape(-1, len(self.half)) * self.half
        coefficients[0] += (self.limits.upper + self.limits.lower) / 2
        return np.asarray(coefficients)

    def variables(self, coefficients: Array) -> Array:
        """Return x (m n,) of coefficients (2 H + 1, n) within the span of the basis."""
        shifted = coefficients.copy()
        shifted[0] -= (self.limits.upper + self.limits.lower) / 2
        return np.asarray(self.series.basis.T @ (shifted / self.half)).ravel()

    @cached_property
    def _features(self) -> tuple[Array, Array, Array]:
        return self.series.sampled(self.samples)

    @cached_property
    def _fine(self) -> tuple[Array, Array, Array]:
        return self.series.sampled(CHECKS_PER_HARMONIC * self.series.harmonics)

    @cached_property
    def _smooth(self) -> Robot:
        """The robot with smooth Coulomb friction, because a discontinuity has no gradient."""
        robot = self.robot
        for joint, slices in zip(robot.joints, robot.coordinates, strict=True):
            if not joint.smooth:
                fast = float(np.min(self.half[slices.v])) * 2 * np.pi / self.series.period * abs(joint.ratio)
                robot = robot.with_friction(joint.name, smooth=0.1 * fast)
        return robot

    @cached_property
    def _kernels(self) -> tuple[AnyKernel, AnyKernel]:
        """Kernels of Y (n, b) at (q, v, a), and of the gradients of <L, Y> with respect to q, v and a."""
        n, b = self.robot.nv, len(self.columns)
        q, v, a, L = ca.SX.sym("q", n), ca.SX.sym("v", n), ca.SX.sym("a", n), ca.SX.sym("L", n, b)
        Y = self._smooth.function("regressor")(q, v, a)[:, self.columns.tolist()]
        back = [ca.densify(each) for each in ca.cse([ca.gradient(ca.dot(L, Y), variable) for variable in (q, v, a)])]
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
        """Return the criterion plus a logarithmic barrier at the limits, and the gradient (m n,) of the sum."""
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
            parts = zip(self._features, self.robot.derivatives.inverse_dynamics(*motion), strict=True)
            by_C = by_C + sum(F.T @ np.einsum("ti,tij->tj", by_tau, part) for F, part in parts)
        return value, np.asarray(self.series.basis.T @ (by_C * self.half)).ravel()

    def information(self, coefficients: Array) -> Array:
        """Return the mean information G (b, b) per sample of a motion, without earlier measurements."""
        rows = self._rows(coefficients)
        return np.asarray(rows.T @ rows / self.samples)

    def reached(self, coefficients: Array) -> float:
        """Return the exponential of the criterion of a motion; lower is better."""
        return float(np.exp(criterion_of(self.criterion, self.information(coefficients) + self.known, self.sizes)[0]))

    def condition(self, coefficients: Array) -> float:
        """Return the condition number of the base regressor along a motion, with rows divided by the noise.

        Earlier measurements contribute additional rows.
        """
        values, U = np.linalg.eigh(self.known)
        before = np.sqrt(np.maximum(values, 0.0) * self.samples)[:, None] * U.T
        return float(np.linalg.cond(np.concatenate([self._rows(coefficients), before[values > 0]])))

    def _rows(self, coefficients: Array) -> Array:
        Y = self.robot.inertial.regressor(*(F @ coefficients for F in self._features))[..., self.columns]
        return np.asarray((Y / self.noise[:, None]).reshape(-1, len(self.columns)))
