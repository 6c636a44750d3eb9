"""How well a motion explains the measured forces, whatever the parameters are: each coordinate fitted on its own.

    tau_j = known_j(q, v, a) + Y_j(q, v, a) x + c        x: base parameters with friction, c: the offset of a sensor

Only the geometry of the robot enters. The part of the force that no x and c explain compares delays, cutoffs, signs and
orders of columns; x shows signs that no robot has, such as a negative inertia.
"""

from typing import NamedTuple

import numpy as np

from torsor.arrays import Array, Flags
from torsor.robot.robot import Robot

SAMPLES = 2000  # that are compared
RANK = 1e-11  # eigenvalues of the normal equations with unit columns, relative to the largest, that count as zero
STILL = 0.02  # of the greatest speed: below it, the sign of the friction is not known


class Fitted(NamedTuple):
    """Fits of the coordinates: the part of the variance that is ``left`` (n,), the parameters ``x`` (n, b + 1)."""

    left: Array
    x: Array

    @property
    def score(self) -> float:
        """The mean logarithm of what is left: the likelihood of forces whose noise is unknown."""
        return float(np.mean(np.log(np.maximum(self.left, 1e-20))))


class ForceModel:
    """The forces of a robot of unknown parameters.

    Example:
        >>> robot = torsor.library.two_link()
        >>> q, v, a = np.random.default_rng(0).normal(size=(3, 200, 2))
        >>> bool(ForceModel(robot).fit(q, v, a, robot.inverse_dynamics(q, v, a) + 3.0).left.max() < 1e-12)
        True
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot.to(dtype="float64")
        self.base = self.robot.base_parameters()
        self._prior = np.where(self.base.unknown, self.robot.parameters(), 0.0)

    def thinned(self, count: int) -> slice:
        """Return which of ``count`` samples are compared."""
        return slice(None, None, max(1, count // SAMPLES))

    def of(self, q: Array, v: Array, a: Array, used: Flags | None = None) -> "MotionFit":
        """Return the fit of forces for motions q (N, nq), v, a (N, n); ``used`` (N, n) selects forces."""
        Y = self.robot.regressor(q, v, a)
        known = self.robot.inverse_dynamics(q, v, a) - Y @ self._prior
        moving = np.abs(v) >= STILL * np.abs(v).max(axis=0, initial=0.0)
        chosen = moving if used is None else moving & used
        rows = [_Row(Y[chosen[:, j], j][:, self.base.columns]) for j in range(v.shape[1])]
        return MotionFit(known, chosen, rows)

    def fit(self, q: Array, v: Array, a: Array, tau: Array, used: Flags | None = None) -> Fitted:
        """Return the fits for motions q (N, nq), v, a (N, n) and forces tau (N, n); ``used`` (N, n) selects forces."""
        return self.of(q, v, a, used).fit(tau)

    def inertia(self, q: Array, x: Array) -> Array:
        """Return the mean inertia (n,) of each coordinate about its own axis by the parameters x (n, b + 1) of a fit.

        It is M_jj of the mass matrix M(q), positive for every robot.
        """
        n = self.robot.nv
        still = np.zeros((len(q), n))
        rest = self.robot.regressor(q, still, still)[..., self.base.columns]
        found = np.empty(n)
        for j in range(n):
            unit = np.broadcast_to(np.eye(n)[j], still.shape)
            Y = self.robot.regressor(q, still, unit)[..., self.base.columns] - rest
            found[j] = float(np.mean(Y[:, j] @ x[j, :-1]))
        return found


class MotionFit:
    """The fit of forces for a given motion: it is decomposed once, for any number of forces."""

    def __init__(self, known: Array, chosen: Flags, rows: "list[_Row]") -> None:
        self.known, self.chosen, self.rows = known, chosen, rows

    def fit(self, tau: Array) -> Fitted:
        """Return the fits of forces tau (N, n)."""
        forces = tau - self.known
        pairs = [row.fit(forces[self.chosen[:, j], j]) for j, row in enumerate(self.rows)]
        return Fitted(np.array([left for left, _ in pairs]), np.array([x for _, x in pairs]))


class _Row:
    """The regressor (N, b + 1) of one coordinate and an offset, with an orthonormal basis (N, rank) of its columns."""

    def __init__(self, Y: Array) -> None:
        A = np.column_stack([Y, np.ones(len(Y))])
        lengths = np.linalg.norm(A, axis=0)
        scale = np.where(lengths > 0, lengths, 1.0)
        sizes, V = np.linalg.eigh((A / scale).T @ (A / scale))
        kept = sizes > RANK * max(float(sizes[-1]), 1e-300)
        self.back = V[:, kept] / np.sqrt(sizes[kept]) / scale[:, None]
        self.basis = A @ self.back

    def fit(self, tau: Array) -> tuple[float, Array]:
        """Return the part of the variance of tau (N,) that is left, and the parameters (b + 1,)."""
        total = float(np.sum((tau - tau.mean()) ** 2)) if tau.size else 0.0
        count, rank = self.basis.shape
        if count <= rank + 1 or not total > 0:
            return 1.0, np.zeros(len(self.back))
        y = self.basis.T @ tau
        left = float(np.sum((tau - self.basis @ y) ** 2)) / total * (count - 1) / (count - rank)
        return left, self.back @ y
