"""Fits of measured forces with free parameters along a motion, separately for each coordinate.

    tau_j = known_j(q, v, a) + Y_j(q, v, a) x + c        x: base parameters with friction, c: sensor offset

Only the robot geometry is used. The unexplained part of the force ranks delays, cutoffs, signs and column orders.
x reveals impossible signs, such as a negative inertia.
"""

from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array, Flags
from torsor.identification.closed_robot import MeasuredRobot
from torsor.identification.logs.sampling import Segment

MAX_SAMPLES = 2000  # number of compared samples
RANK_TOLERANCE = 1e-11  # relative eigenvalue of the scaled normal equations below which it counts as zero
STILL_FRACTION = 0.02  # fraction of the maximum speed below which the sign of friction is unknown


class Motion(NamedTuple):
    """A motion q, v, a (N, n) and its forces tau (N, n)."""

    q: Array
    v: Array
    a: Array
    tau: Array

    def every(self, step: int) -> "Motion":
        """Return every ``step``-th sample."""
        return Motion(self.q[::step], self.v[::step], self.a[::step], self.tau[::step])


class Fitted(NamedTuple):
    """Fits by coordinate: unexplained part ``left`` (n,) of the variance, and parameters ``x`` (n, b + 1)."""

    left: Array
    x: Array

    @property
    def score(self) -> float:
        """The mean logarithm of ``left``, which is the negative log-likelihood for unknown noise, up to constants."""
        return float(np.mean(np.log(np.maximum(self.left, 1e-20))))


class ForceModel:
    """The forces of a robot with unknown parameters."""

    def __init__(self, robot: MeasuredRobot) -> None:
        self.robot = robot.to(dtype="float64")
        self.base = self.robot.inertial.base()
        self._prior = np.where(self.base.unknown, self.robot.inertial.values, 0.0)

    def regressor(self, q: Array, v: Array, a: Array) -> tuple[Array, Array]:
        """Return the regressor (N, n, b) of the base parameters, and the known forces (N, n)."""
        Y = self.robot.inertial.regressor(q, v, a)
        known = self.robot.inverse_dynamics(q, v, a) - Y @ self._prior
        return Y[..., self.base.columns], known

    def forces(self, x: Array, q: Array, v: Array, a: Array) -> Array:
        """Return the forces (N, n) of separate parameters x (n, b + 1) for each coordinate."""
        Y, known = self.regressor(q, v, a)
        return np.asarray(known + np.einsum("tjb,jb->tj", Y, x[:, :-1]) + x[:, -1])

    def step(self, count: int) -> int:
        """Return the decimation factor for the comparison of ``count`` samples."""
        return max(1, count // MAX_SAMPLES)

    def of(self, q: Array, v: Array, a: Array, used: Flags | None = None) -> "MotionFit":
        """Return the force fit for motions q (N, nq), v, a (N, n); ``used`` (N, n) selects forces."""
        Y, known = self.regressor(q, v, a)
        moving = np.abs(v) >= STILL_FRACTION * np.abs(v).max(axis=0, initial=0.0)
        chosen = moving if used is None else moving & used
        return MotionFit(known, chosen, [_Row(Y[chosen[:, j], j]) for j in range(v.shape[1])])

    def fit(self, q: Array, v: Array, a: Array, tau: Array, used: Flags | None = None) -> Fitted:
        """Return the fits for motions q (N, nq), v, a (N, n) and forces tau (N, n); ``used`` (N, n) selects forces."""
        return self.of(q, v, a, used).fit(tau)

    def scores(self, segment: Segment, cutoffs: Array) -> Array:
        """Return scores of the model fit for a segment differentiated with each of ``cutoffs`` (Hz, decreasing).

        Lower scores are better. All scores use the same samples, which are at least one period of the lowest cutoff
        away from the ends.
        """
        lost, count = int(np.ceil(1 / (cutoffs[-1] * segment.step))), len(segment.q)
        inside = slice(lost, count - lost, self.step(count - 2 * lost))
        motions = ((x[inside] for x in segment.motion(float(cutoff))) for cutoff in cutoffs)
        return np.array([self.fit(q, v, a, segment.tau[inside]).score for q, v, a in motions])

    def inertia_rows(self, q: Array) -> Array:
        """Return a matrix (n, b + 1) whose product with the fitted parameters is the mean of M_jj(q).

        The inertia M_jj of a coordinate is positive for every robot.
        """
        n = self.robot.nv
        still = np.zeros((len(q), n))
        rest, rows = self.robot.inertial.regressor(q, still, still), np.zeros((n, len(self.base) + 1))
        for j in range(n):
            Y = self.robot.inertial.regressor(q, still, np.broadcast_to(np.eye(n)[j], still.shape)) - rest
            rows[j, :-1] = Y[:, j][:, self.base.columns].mean(axis=0)
        return rows

    def friction_rows(self, v: Array) -> Array:
        """Return a matrix (n, b + 1) whose product with the fitted parameters is the friction at a typical speed.

        This friction is positive for every robot.
        """
        names, rows = self.robot.inertial.names, np.zeros((v.shape[1], len(self.base) + 1))
        index_of = {names[column]: k for k, column in enumerate(self.base.columns)}
        for j, name in enumerate(self.robot.coordinate_names):
            for kind, size in (("coulomb", 1.0), ("viscous", float(np.sqrt(np.mean(v[:, j] ** 2))))):
                if f"{name}.{kind}" in index_of:
                    rows[j, index_of[f"{name}.{kind}"]] = size
        return rows


class MotionFit:
    """Force fits for one motion; the regressor is factorised once for any number of forces."""

    def __init__(self, known: Array, chosen: Flags, rows: "list[_Row]") -> None:
        self.known, self.chosen, self.rows = known, chosen, rows

    def fit(self, tau: Array) -> Fitted:
        """Return the fits of forces tau (N, n)."""
        forces = tau - self.known
        pairs = [row.fit(forces[self.chosen[:, j], j]) for j, row in enumerate(self.rows)]
        return Fitted(np.array([left for left, _ in pairs]), np.array([x for _, x in pairs]))

    def together(self, tau: Array) -> Array:
        """Return the fraction (n,) of the variance of tau (N, n) that one common parameter set does not explain."""
        forces, n = tau - self.known, tau.shape[1]
        row_indices = [np.flatnonzero(self.chosen[:, j]) for j in range(n)]
        sizes = [float(np.std(forces[at, j])) or 1.0 for j, at in enumerate(row_indices)]
        b = self.rows[0].A.shape[1] - 1
        A, y = np.zeros((sum(map(len, row_indices)), b + n)), np.zeros(sum(map(len, row_indices)))
        ends = np.cumsum([0, *map(len, row_indices)])
        for j, (row, at, size) in enumerate(zip(self.rows, row_indices, sizes, strict=True)):
            part = slice(ends[j], ends[j + 1])
            A[part, :b], A[part, b + j], y[part] = row.A[:, :b] / size, 1.0, forces[at, j] / size
        scale = np.linalg.norm(A, axis=0)
        A /= np.where(scale > 0, scale, 1.0)
        rest = y - A @ np.linalg.lstsq(A, y, rcond=RANK_TOLERANCE**0.5)[0]
        return np.array([np.mean(rest[ends[j] : ends[j + 1]] ** 2) if len(row_indices[j]) else 0.0 for j in range(n)])

    def residuals(self, tau: Array) -> Array:
        """Return the unexplained part of forces tau (N, n); it is 0 for unused forces."""
        forces = np.where(self.chosen, tau - self.known, 0.0)
        for j, row in enumerate(self.rows):
            values = forces[self.chosen[:, j], j]
            forces[self.chosen[:, j], j] = values - row.basis @ (row.basis.T @ values)
        return np.asarray(forces)

    def significance(self, tau: Array, fitted: Fitted, rows: Array) -> Array:
        """Return the products (n,) of ``rows`` (n, b + 1) and the fitted parameters, over their standard deviations."""
        sizes = [float(np.std(tau[self.chosen[:, j], j] - self.known[self.chosen[:, j], j])) for j in range(len(rows))]
        spread = np.array([np.linalg.norm(each.back.T @ row) for each, row in zip(self.rows, rows, strict=True)])
        deviations = np.sqrt(fitted.left) * np.array(sizes) * spread
        value = (rows * fitted.x).sum(axis=1)
        return np.asarray(np.divide(value, deviations, out=np.zeros_like(value), where=deviations > 0))


class _Row:
    """The regressor A (N, b + 1) of one coordinate and an offset, with an orthonormal basis (N, rank)."""

    def __init__(self, Y: Array) -> None:
        self.A = A = np.column_stack([Y, np.ones(len(Y))])
        lengths = np.linalg.norm(A, axis=0)
        scale = np.where(lengths > 0, lengths, 1.0)
        sizes, V = np.linalg.eigh((A / scale).T @ (A / scale))
        kept = sizes > RANK_TOLERANCE * max(float(sizes[-1]), 1e-300)
        self.back = V[:, kept] / np.sqrt(sizes[kept]) / scale[:, None]
        self.basis = A @ self.back

    def fit(self, tau: Array) -> tuple[float, Array]:
        """Return the unexplained part of the variance of tau (N,), and the parameters (b + 1,)."""
        total = float(np.sum((tau - tau.mean()) ** 2)) if tau.size else 0.0
        count, rank = self.basis.shape
        if count <= rank + 1 or not total > 0:
            return 1.0, np.zeros(len(self.back))
        y = self.basis.T @ tau
        left = float(np.sum((tau - self.basis @ y) ** 2)) / total * (count - 1) / (count - rank)
        return left, self.back @ y
