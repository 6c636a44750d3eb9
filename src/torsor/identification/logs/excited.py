"""What can be identified from measurements: the base parameters that they show, with the deviations to expect."""

from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.identification.logs.force_model import Fitted, ForceModel
from torsor.identification.logs.preparing import Samples

NULL = 1e-10  # singular values of the weighted regressor with unit columns, relative to the largest, that count as zero
PART = 1e-3  # of a parameter in directions that no sample shows
GOOD, WEAK = 10.0, 100.0  # percent


class Excited(NamedTuple):
    """Base parameters ``names`` (b): least-squares ``values`` (b,), ``deviations`` (b,), infinite where nothing shows.

    ``percents`` (b,) are deviations relative to the values. ``condition`` is that of the weighted regressor, ``forces``
    the number of forces. Deviations assume white noise of the forces, as large as what the model leaves of them.
    """

    names: tuple[str, ...]
    values: Array
    deviations: Array
    condition: float
    forces: int

    @property
    def percents(self) -> Array:
        """Deviations in percent of the values (b,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nan_to_num(100 * self.deviations / np.abs(self.values), nan=np.inf, posinf=np.inf)

    def graded(self) -> tuple[list[int], list[int], list[int]]:
        """Return the indices of parameters that are well determined, weakly determined, and not shown or zero."""
        shown = self.percents
        good = np.flatnonzero(shown <= GOOD).tolist()
        weak = np.flatnonzero((shown > GOOD) & (shown <= WEAK)).tolist()
        return good, weak, np.flatnonzero(~(shown <= WEAK)).tolist()


def excited(model: ForceModel, samples: Samples, fitted: Fitted) -> Excited:
    """Return what samples show of a robot; ``fitted`` gives the noise of each coordinate.

    Example:
        >>> robot, rng = torsor.library.planar_chain(1), np.random.default_rng(0)
        >>> q, v, a = rng.normal(size=(3, 400, 1))
        >>> tau = robot.inverse_dynamics(q, v, a) + 0.01 * rng.normal(size=(400, 1))
        >>> model = ForceModel(robot)
        >>> found = excited(model, Samples(q, v, a, tau, None, np.arange(400.0)), model.fit(q, v, a, tau))
        >>> found.graded()[0], found.forces
        ([0, 2], 400)
    """
    Y, known = model.regressor(samples.q, samples.v, samples.a)
    tau = samples.tau - known
    weights = np.ones_like(tau) if samples.weights is None else samples.weights
    spread = np.std(tau, axis=0)
    noise = np.maximum(np.sqrt(fitted.left) * spread, 1e-9 * max(float(spread.max(initial=0.0)), 1e-300))
    A = (Y * (weights / noise)[..., None]).reshape(-1, Y.shape[-1])
    y = (tau * weights / noise).reshape(-1)
    lengths = np.linalg.norm(A, axis=0)
    scale = np.where(lengths > 0, lengths, 1.0)
    R = np.linalg.qr(np.column_stack([A / scale, y]), mode="r")
    b = Y.shape[-1]
    padded = np.zeros((b, b + 1))
    padded[: min(len(R), b)] = R[:b]
    U, sizes, V = np.linalg.svd(padded[:, :b])
    kept = sizes > NULL * max(float(sizes[0]), 1e-300)
    values = V[kept].T @ ((U[:, kept].T @ padded[:, b]) / sizes[kept]) / scale
    deviations = np.sqrt(((V[kept] / sizes[kept, None]) ** 2).sum(axis=0)) / scale
    hidden = ((V[~kept] ** 2).sum(axis=0) > PART**2) | (lengths == 0)
    forces = int(np.count_nonzero(weights))
    condition = float(np.linalg.cond(padded[:, :b] * scale)) if kept.all() else float("inf")
    return Excited(model.base.names, values, np.where(hidden, np.inf, deviations), condition, forces)
