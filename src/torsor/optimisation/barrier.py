"""The barrier problem of an interior-point method: its point, the Newton step, and the choice of the barrier parameter.

w = (x, s) are the variables and the slacks of the inequalities, with one pair of bounds each; y and u are the
multipliers of c(x) = 0 and h(x) - s = 0, z those of the bounds. Infinite bounds have infinite gaps and zero
multipliers.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from torsor.arrays import Array
from torsor.optimisation.newton import Condensed, Regularisation, Spaces
from torsor.optimisation.standard import Jacobians, StandardForm

WEIGHTS = 9  # weights of the corrector that are tried
NEAREST = 0.99  # largest fraction of the distance to a bound that a step covers


def longest_steps(gap: Array, change: Array, nearest: float) -> Array:
    """Return the longest steps (k,) up to 1 along changes (k, w) that leave a fraction 1 - nearest of the gaps (w,)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        worst = np.nan_to_num(change / gap, nan=0.0).min(axis=-1, initial=0.0)
    found: Array = np.minimum(1.0, nearest / np.maximum(-worst, 1e-300))
    return found


class Step(NamedTuple):
    """Changes of w, y, u and of the multipliers of lower and upper bounds; also of k steps at once (k, ...)."""

    w: Array
    y: Array
    u: Array
    z_lower: Array
    z_upper: Array


@dataclass(frozen=True, eq=False)
class Point:
    """A point of the barrier problem, with cached values and derivatives."""

    form: StandardForm
    w: Array
    y: Array
    u: Array
    z_lower: Array
    z_upper: Array

    @property
    def n(self) -> int:
        """Number of variables."""
        return len(self.form.free)

    @property
    def x(self) -> Array:
        """The variables."""
        return self.w[: self.n]

    @cached_property
    def gaps(self) -> tuple[Array, Array]:
        """Distances of w from its bounds."""
        return self.form.gaps(self.w)

    @cached_property
    def value(self) -> tuple[float, Array]:
        """f, and the equations (c, h - s)."""
        f, c, h = self.form.value(self.x)
        return f, np.concatenate([c, h - self.w[self.n :]])

    @cached_property
    def theta(self) -> float:
        """The sum of the absolute residuals of the equations."""
        return float(np.abs(self.value[1]).sum())

    def merit(self, mu: float) -> float:
        """Return f - mu sum log gaps."""
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = sum(float(np.log(gap[np.isfinite(gap)]).sum()) for gap in self.gaps)
        return self.value[0] - mu * logs

    def merit_gradient(self, mu: float) -> Array:
        """Return the gradient by w of the merit."""
        gradient = np.concatenate([self.jacobians.gradient, np.zeros(len(self.w) - self.n)])
        found: Array = gradient - mu / self.gaps[0] + mu / self.gaps[1]
        return found

    @cached_property
    def jacobians(self) -> Jacobians:
        """First derivatives."""
        return self.form.jacobian(self.x)

    @cached_property
    def stationarity(self) -> Array:
        """The gradient by w of the Lagrangian without the bounds' multipliers."""
        gradient, E, H = self.jacobians
        return np.concatenate([gradient + self.y @ E + self.u @ H, -self.u])

    @cached_property
    def dual(self) -> Array:
        """The gradient by w of the Lagrangian."""
        found: Array = self.stationarity - self.z_lower + self.z_upper
        return found

    @cached_property
    def products(self) -> Array:
        """Gaps times their multipliers, of finite bounds."""
        lower, upper = (np.isfinite(gap) for gap in self.gaps)
        return np.concatenate(
            [self.gaps[0][lower] * self.z_lower[lower], self.gaps[1][upper] * self.z_upper[upper]],
        )

    @property
    def mu(self) -> float:
        """The average complementarity."""
        return float(self.products.mean()) if self.products.size else 0.0

    def error(self, mu: float) -> float:
        """Return the largest residual of the barrier problem's optimality conditions, scaled for large multipliers."""
        z = float(self.z_lower.sum() + self.z_upper.sum())
        bounds = max(self.products.size, 1)
        all_ = float(np.abs(self.y).sum() + np.abs(self.u).sum()) + z
        by_dual = max(100.0, all_ / max(len(self.y) + len(self.u) + bounds, 1)) / 100
        by_gap = max(100.0, z / bounds) / 100
        return max(
            float(np.abs(self.dual).max(initial=0.0)) / by_dual,
            float(np.abs(self.value[1]).max(initial=0.0)),
            float(np.abs(self.products - mu).max(initial=0.0)) / by_gap,
        )

    def moved(self, step: Step, length: float, dual_length: float, mu: float) -> "Point":
        """Return the point after a step, with the bounds' multipliers clipped to fit its gaps."""
        w = np.clip(self.w + length * step.w, *self.form.inner)
        z = []
        for old, change, gap in zip((self.z_lower, self.z_upper), step[3:], self.form.gaps(w), strict=True):
            centre = mu / gap
            z.append(np.clip(old + dual_length * change, centre * 1e-10, centre * 1e10))
        return Point(self.form, w, self.y + length * step.y, self.u + length * step.u, z[0], z[1])


class Direction:
    """Newton's equations at a point, factorised: steps for any barrier parameter."""

    def __init__(self, point: Point, regularisation: Regularisation, spaces: Spaces):
        self.point, n = point, point.n
        _, E, H = point.jacobians
        self._S = point.z_lower / point.gaps[0] + point.z_upper / point.gaps[1]
        scaled = H * np.sqrt(self._S[n:])[:, None]
        matrix = point.form.hessian(point.x, point.y, point.u) + scaled.T @ scaled
        matrix[np.diag_indices(n)] += self._S[:n]
        self._system = Condensed(matrix, E, regularisation, spaces)

    def steps(self, mu: Array, second_order: tuple[Array, Array] | None = None, equations: Array | None = None) -> Step:
        """Return steps (k, ...) for barrier parameters mu (k,).

        ``second_order``, (w,) or (k, w), are the products of the changes of gaps and multipliers, lower and upper, that
        the linear equations leave out; ``equations`` replaces the residuals (c, h - s).
        """
        point, n, e = self.point, self.point.n, len(self.point.y)
        H = point.jacobians.inequalities
        off = point.value[1] if equations is None else equations
        centre = [mu[:, None] / gap for gap in point.gaps]
        if second_order is not None:
            centre = [each - extra / gap for each, extra, gap in zip(centre, second_order, point.gaps, strict=True)]
        r = point.stationarity[:, None] - (centre[0] - centre[1]).T
        c, d = off[:e, None], off[e:, None]
        by_x = -r[:n] - H.T @ (self._S[n:, None] * d + r[n:])
        dx, dy = self._system.solve(by_x, np.repeat(-c, len(mu), axis=1))
        ds = H @ dx + d
        du = self._S[n:, None] * ds + r[n:]
        dw = np.concatenate([dx, ds]).T
        dz = [
            each - z - sign * z / gap * dw
            for each, gap, z, sign in zip(centre, point.gaps, (point.z_lower, point.z_upper), (1, -1), strict=True)
        ]
        return Step(dw, dy.T, du.T, dz[0], dz[1])

    def lengths(self, step: Step, nearest: float) -> tuple[Array, Array]:
        """Return the longest steps (k,) of variables and of multipliers of bounds."""
        lower, upper = self.point.gaps
        primal = np.minimum(longest_steps(lower, step.w, nearest), longest_steps(upper, -step.w, nearest))
        z_lower, z_upper = self.point.z_lower, self.point.z_upper
        dual = np.minimum(longest_steps(z_lower, step.z_lower, nearest), longest_steps(z_upper, step.z_upper, nearest))
        return primal, dual

    def corrected(self, least: float, most: float) -> tuple[float, tuple[Array, Array], Step]:
        """Return a barrier parameter, second-order products, lower and upper (w,), and the step with both.

        They follow from Mehrotra's predictor, the step without a barrier: its length determines the barrier parameter,
        and the products of its changes are the terms that the linear equations leave out. These are weighted so that
        the step is longest (Colombo and Gondzio 2008), with weights from the predictor's own length to 1.
        """
        point, step = self.point, self.steps(np.zeros(1))
        primal, dual = (float(each[0]) for each in self.lengths(step, 1.0))
        total, products = 0.0, []
        for gap, sign, z, dz in zip(point.gaps, (1, -1), (point.z_lower, point.z_upper), step[3:], strict=True):
            finite = np.isfinite(gap)
            after = (gap + sign * primal * step.w[0])[finite] * (z + dual * dz[0])[finite]
            total += float(after.sum())
            products.append(np.where(finite, sign * step.w[0] * dz[0], 0.0))
        average = total / max(point.products.size, 1)
        mu = (average / point.mu) ** 3 * point.mu if point.mu else 0.0
        mu = min(max(mu, least), most)
        lower, upper = (np.stack([np.zeros_like(each), each]) for each in products)
        both = self.steps(np.array([mu, mu]), (lower, upper))  # weights 0 and 1
        weights = np.linspace(primal * dual, 1.0, WEIGHTS)
        several = Step(*(each[0] + weights[:, None] * (each[1] - each[0]) for each in both))
        lengths = self.lengths(several, NEAREST)
        best = int(np.argmax(lengths[0] * lengths[1]))
        return mu, (weights[best] * products[0], weights[best] * products[1]), Step(*(each[best] for each in several))
