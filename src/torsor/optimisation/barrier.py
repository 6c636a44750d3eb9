"""Arithmetic of bounds in a primal-dual interior-point method, as CasADi expressions.

An entry w of the variables or slacks has a lower and an upper bound with multipliers z. A missing bound is at the
distance ``FAR``, with a zero multiplier. With the inverse distances b from the bounds (0 for missing bounds), a Newton
step dw with barrier parameter mu changes a multiplier by

    dz = mu b - c second b - z dw b - z      second = p dz_p,  dz_p = -z (1 + p b)

at a lower bound, where p is the step without a barrier, and c is the weight of the second-order products. At an upper
bound, dw and p have the opposite sign.

A slack with equal bounds represents an equation h = b. It does not move, and its multiplier is estimated by the
proximal method of multipliers: the multiplier changes by ``EQUATION_STIFFNESS`` times the residual. The condensed
matrix then remains positive definite, and the residual vanishes as the multiplier converges.
"""

from functools import reduce
from operator import mul

import casadi as ca

from torsor.optimisation.standard import MIN_BOUND_DISTANCE

FAR = 1e30  # distance of a missing bound
EQUATION_STIFFNESS = 1e8
ROWS_IN_LOG = 2  # number of rows whose distances are multiplied before taking the logarithm; more could underflow
CORRECTORS = 4  # number of trial weights of the second-order products


class Bounded:
    """Symbols (m x 1) of entries w, bound multipliers and bounds; lower and upper bounds may be equal."""

    def __init__(self, m: int, has_equations: bool = False):
        self.inputs = {name: ca.SX.sym(name, m) for name in ("w", "z_low", "z_high", "low", "high")}
        self.w, self.z_low, self.z_high, self.low, self.high = self.inputs.values()
        self.is_equation = self.low == self.high if has_equations else ca.SX.zeros(m)
        self.has_low, self.has_high = (
            is_finite * (1 - self.is_equation) for is_finite in (self.low > -FAR / 2, self.high < FAR / 2)
        )
        self.below, self.above = self._distances(self.w)
        self.by_low, self.by_high = self.has_low / self.below, self.has_high / self.above
        self.stiffness = self.z_low * self.by_low + self.z_high * self.by_high + EQUATION_STIFFNESS * self.is_equation
        self.repulsion = self.by_high - self.by_low  # gradient of the barrier for a unit barrier parameter

    def _distances(self, w: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the distances of entries from their bounds; 1 for equations."""
        return w - self.low + self.is_equation, self.high - w + self.is_equation

    def products(self) -> tuple[ca.SX, ca.SX, ca.SX]:
        """Return the sum, maximum and minimum of the products of distances and multipliers."""
        low, high = self.below * self.z_low, self.above * self.z_high
        least = ca.fmin(ca.if_else(self.has_low, low, FAR), ca.if_else(self.has_high, high, FAR))
        return ca.sum1(low + high), ca.mmax(ca.fmax(low, high)), ca.mmin(least)

    def logs(self, w: ca.SX) -> ca.SX:
        """Return the sum of the logarithms of the distances of new entries from their bounds."""
        below, above = self._distances(w)
        products = ca.if_else(self.has_low, below, 1) * ca.if_else(self.has_high, above, 1)
        rows = range(0, products.shape[0], ROWS_IN_LOG)
        parts = [reduce(mul, ca.vertsplit(products[k : k + ROWS_IN_LOG])) for k in rows]
        return ca.sum1(ca.log(ca.vertcat(ca.SX(0, 1), *parts)))

    def bend(self, predictor: ca.SX) -> ca.SX:
        """Return the gradient of the second-order products of a step without a barrier."""
        low, high = self._predicted(predictor)
        return predictor * (low * self.by_low + high * self.by_high)

    def product_changes(self, predictor: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the sums of z d(gap) and of d(gap) dz along a step without a barrier.

        The third part of the change, gap dz, is minus the products minus the first sum.
        """
        low, high = self._predicted(predictor)
        return ca.sum1(predictor * (self.z_low - self.z_high)), ca.sum1(predictor * (low - high))

    def _predicted(self, predictor: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the changes of the multipliers along a step without a barrier."""
        return -self.z_low * (1 + predictor * self.by_low), -self.z_high * (1 - predictor * self.by_high)

    def taken(self, dw: ca.SX, predictor: ca.SX, mu: ca.SX, corrector: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the relative reductions of the multipliers by a step."""
        results = []
        sides = ((self.z_low, self.by_low, 1), (self.z_high, self.by_high, -1))
        for z, by, sign in sides:
            second = corrector * predictor * (1 + sign * predictor * by)
            results.append(ca.if_else(z > 0, 1 + by * (sign * (dw - second) - mu / z), 0))
        return results[0], results[1]

    def ratios(self, dw: ca.SX, predictor: ca.SX, mu: ca.SX, corrector: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the largest relative reductions of the distances and of the multipliers by a step."""
        primal = ca.mmax(ca.fmax(-dw * self.by_low, dw * self.by_high))
        return primal, ca.mmax(ca.fmax(*self.taken(dw, predictor, mu, corrector)))

    def moved(
        self, dw: ca.SX, predictor: ca.SX, mu: ca.SX, corrector: ca.SX, length: ca.SX, dual: ca.SX
    ) -> tuple[ca.SX, ca.SX, ca.SX]:
        """Return w and z after a step, with multipliers clipped in accordance with the distances."""
        quarter = (self.high - self.low) / 4
        least = self.low + ca.fmin(MIN_BOUND_DISTANCE * ca.fmax(1, ca.fabs(self.low)), quarter)
        most = self.high - ca.fmin(MIN_BOUND_DISTANCE * ca.fmax(1, ca.fabs(self.high)), quarter)
        w = ca.fmin(ca.fmax(self.w + length * dw, least), most)
        low, high = self.taken(dw, predictor, mu, corrector)
        below, above = self._distances(w)
        sides = ((self.z_low, low, self.has_low / below), (self.z_high, high, self.has_high / above))
        z = [ca.fmin(ca.fmax(z - dual * part * z, 1e-10 * mu * by), 1e10 * mu * by) for z, part, by in sides]
        return w, z[0], z[1]

    def multiplier_step(self, u: ca.SX, dw: ca.SX, predictor: ca.SX, mu: ca.SX, corrector: ca.SX) -> ca.SX:
        """Return the change of the multipliers u of h - s = 0 for a change dw of the slacks."""
        kept = (1 - self.is_equation) * u
        return self.stiffness * dw - kept + mu * self.repulsion + corrector * self.bend(predictor)

    def pushed(self, off: ca.SX, u: ca.SX) -> ca.SX:
        """Return the forces of the rows without a barrier for the residuals ``off`` of h - s = 0."""
        return self.stiffness * off + self.is_equation * u
