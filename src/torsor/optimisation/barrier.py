"""The barrier problem of an interior-point method: its point, the Newton step, and the choice of the barrier parameter.

w = (x, s) are the variables and the slacks of the inequalities, with one pair of bounds each; y and u are the
multipliers of c(x) = 0 and h(x) - s = 0, z (2, w) those of the lower and upper bounds. Infinite bounds
have infinite gaps and zero multipliers.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.optimisation.newton import Condensed, Regularisation, Spaces
from torsor.optimisation.standard import SIGNS, Jacobians, StandardForm

WEIGHTS = 9  # weights of the corrector that are tried
NEAREST = 0.99  # largest fraction of the distance to a bound that a step covers


def longest_steps(gap: Array, change: Array, nearest: float) -> Array:
    """Return the longest steps (k,) up to 1 along changes (k, 2, w) that leave 1 - nearest of the gaps (2, w)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        worst = np.nan_to_num(change / gap, nan=0.0).min(axis=(-2, -1), initial=0.0)
    found: Array = np.minimum(1.0, nearest / np.maximum(-worst, 1e-300))
    return found


class Step(NamedTuple):
    """Changes of w, y, u and of the multipliers z (2, w) of bounds; also of k steps at once (k, ...)."""

    w: Array
    y: Array
    u: Array
    z: Array


@dataclass(frozen=True, eq=False)
class Point:
    """A point of the barrier problem, with cached values and derivatives."""

    form: StandardForm
    w: Array
    y: Array
    u: Array
    z: Array

    @property
    def n(self) -> int:
        """Number of variables."""
        return len(self.form.free)

    @property
    def x(self) -> Array:
        """The variables."""
        return self.w[: self.n]

    @cached_property
    def gaps(self) -> Array:
        """Distances (2, w) of w from its bounds."""
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
        return np.concatenate([gradient + self.y @ E + H.transposed_times(self.u), -self.u])

    @cached_property
    def dual(self) -> Array:
        """The gradient by w of the Lagrangian."""
        found: Array = self.stationarity - self.z[0] + self.z[1]
        return found

    @cached_property
    def products(self) -> Array:
        """Gaps times their multipliers, of finite bounds."""
        finite = np.isfinite(self.gaps)
        return self.gaps[finite] * self.z[finite]

    @property
    def mu(self) -> float:
        """The average complementarity."""
        return float(self.products.mean()) if self.products.size else 0.0

    def error(self, mu: float) -> float:
        """Return the largest residual of the barrier problem's optimality conditions, scaled for large multipliers."""
        z = float(self.z[0].sum() + self.z[1].sum())
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
        centre = mu / self.form.gaps(w)
        z = np.clip(self.z + dual_length * step.z, centre * 1e-10, centre * 1e10)
        return Point(self.form, w, self.y + length * step.y, self.u + length * step.u, z)


class Direction:
    """Newton's equations at a point, factorised: steps for any barrier parameter.

    ``curvature`` is the weight of the constraints in the Hessian.
    """

    def __init__(self, point: Point, regularisation: Regularisation, spaces: Spaces, curvature: float = 1.0):
        self.point, n = point, point.n
        _, E, H = point.jacobians
        self._S = (point.z / point.gaps).sum(axis=0)
        matrix = point.form.hessian(point.x, curvature * point.y, curvature * point.u) + H.gram(self._S[n:])
        matrix[np.diag_indices(n)] += self._S[:n]
        self._system = Condensed(matrix, E, regularisation, spaces)

    def steps(self, mu: Array, second_order: Array | None = None, equations: Array | None = None) -> Step:
        """Return steps (k, ...) for barrier parameters mu (k,).

        ``second_order``, (2, w) or (k, 2, w), are the products of the changes of gaps and multipliers that the linear
        equations leave out; ``equations`` replaces the residuals (c, h - s).
        """
        point, n, e = self.point, self.point.n, len(self.point.y)
        H = point.jacobians.inequalities
        off = point.value[1] if equations is None else equations
        centre = mu[:, None, None] / point.gaps
        if second_order is not None:
            centre = centre - second_order / point.gaps
        r = point.stationarity[:, None] - (centre[:, 0] - centre[:, 1]).T
        c, d = off[:e, None], off[e:, None]
        by_x = -r[:n] - H.transposed_times(self._S[n:, None] * d + r[n:])
        dx, dy = self._system.solve(by_x, np.repeat(-c, len(mu), axis=1))
        ds = H.times(dx) + d
        du = self._S[n:, None] * ds + r[n:]
        dw = np.concatenate([dx, ds]).T
        return Step(dw, dy.T, du.T, centre - point.z - SIGNS * point.z / point.gaps * dw[:, None])

    def lengths(self, step: Step, nearest: float) -> tuple[Array, Array]:
        """Return the longest steps (k,) of variables and of multipliers of bounds."""
        primal = longest_steps(self.point.gaps, SIGNS * step.w[:, None], nearest)
        return primal, longest_steps(self.point.z, step.z, nearest)

    def corrected(self, least: float, most: float) -> tuple[float, Array, Step]:
        """Return a barrier parameter, second-order products (2, w), and the step with both.

        They follow from Mehrotra's predictor, the step without a barrier: its length determines the barrier parameter,
        and the products of its changes are the terms that the linear equations leave out. These are weighted so that
        the step is longest (Colombo and Gondzio 2008), with weights from the predictor's own length to 1.
        """
        point, step = self.point, self.steps(np.zeros(1))
        primal, dual = (float(each[0]) for each in self.lengths(step, 1.0))
        finite = np.isfinite(point.gaps)
        gaps, z = point.gaps + primal * SIGNS * step.w[0], point.z + dual * step.z[0]
        total = sum(float((gaps[k][finite[k]] * z[k][finite[k]]).sum()) for k in range(2))
        products = np.where(finite, SIGNS * step.w[0] * step.z[0], 0.0)
        average = total / max(point.products.size, 1)
        mu = (average / point.mu) ** 3 * point.mu if point.mu else 0.0
        mu = min(max(mu, least), most)
        both = self.steps(np.array([mu, mu]), np.stack([np.zeros_like(products), products]))  # weights 0 and 1
        weights = np.linspace(primal * dual, 1.0, WEIGHTS)
        several = Step(*(each[0] + np.multiply.outer(weights, each[1] - each[0]) for each in both))
        lengths = self.lengths(several, NEAREST)
        best = int(np.argmax(lengths[0] * lengths[1]))
        return mu, weights[best] * products, Step(*(each[best] for each in several))
