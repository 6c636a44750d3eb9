"""Iteratively weighted least squares: the noise of each coordinate is estimated too (Gautier's IDIM-WLS)."""

from dataclasses import dataclass

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, describe

MAX_WEIGHT_ITERATIONS = 30  # at most; the weights converge within about five
NOISE_TOLERANCE = 1e-6  # relative change of the noise
RANK_TOLERANCE = 1e-8  # singular values of the regressor with unit columns, relative to the largest, that count as zero
ROUNDING = 1e-12  # noise below this fraction of a force is rounding


@dataclass(frozen=True, eq=False)
class Fit:
    """A solution of tau = Y x: ``values`` (b,), their ``covariance`` (b, b), the ``noise`` (n,) of each coordinate.

    ``root`` (b, b) has root^T root = covariance^-1. ``condition`` is the condition number of the weighted regressor.
    ``lag`` is the number of samples over which residuals are correlated; 0 for white noise.
    """

    values: Array
    covariance: Array
    noise: Array
    root: Array
    condition: float
    lag: int = 0


def fit(Y: Array, tau: Array, weights: Array, names: tuple[str, ...], where: str) -> Fit:
    """Return x (b,) that minimises the sum of ((tau - Y x) weights / noise)^2, for Y (N, n, b) and tau (N, n).

    The noise of a coordinate is the standard deviation of its residuals; its degrees of freedom are its number of
    samples minus its part of the trace of the hat matrix. Noise and solution are iterated until they converge.
    Gautier 1997; Janot, Vandanjon and Gautier 2014.

    Example:
        >>> Y = np.stack([np.ones(9), np.arange(9.0)], -1)[:, None, :]
        >>> fit(Y, Y @ [3.0, 2.0], np.ones((9, 1)), ("a", "b"), "line").values.round(9).tolist()
        [3.0, 2.0]
    """
    counts = np.count_nonzero(weights, axis=0)
    b = Y.shape[-1]
    if counts.sum() <= b:
        found = f"{int(counts.sum())} measured forces for {b} base parameters"
        raise ModelError(describe(found, where=where, allowed="more forces than parameters", fix="measure longer"))
    size = np.sqrt((weights**2 * tau**2).sum(axis=0) / np.maximum(counts, 1))
    # Residuals of zero give no estimate of the noise, hence a lower bound.
    largest = float(size.max(initial=0.0)) or 1.0
    least = ROUNDING * np.maximum(size, 1e-3 * largest)
    # One triangular matrix [R, y] per coordinate contains all information of its samples, for every iteration.
    triangles = [_weighted_triangle(weights[:, j], Y[:, j], tau[:, j]) for j in range(tau.shape[1])]
    noise = np.ones(tau.shape[1])
    for _ in range(MAX_WEIGHT_ITERATIONS):
        stacked = np.concatenate([each / sigma for each, sigma in zip(triangles, noise, strict=True)])
        x, root, condition = _solve(stacked[:, :b], stacked[:, b], names, where)
        back = np.linalg.solve(root, np.eye(b))
        traces = np.array([np.sum((each[:, :b] @ back) ** 2) for each in triangles]) / noise**2
        free = np.where(counts > 0, counts - traces, 1.0)
        if (free < 1e-6 * b).any():
            found = "a coordinate has no more samples than parameters"
            raise ModelError(describe(found, where=where, fix="measure longer"))
        squares = np.array([np.sum((each[:, b] - each[:, :b] @ x) ** 2) for each in triangles])
        previous, noise = noise, np.where(counts > 0, np.maximum(np.sqrt(squares / free), least), 1.0)
        if np.abs(noise / previous - 1).max() < NOISE_TOLERANCE:
            break
    return Fit(x, back @ back.T, previous, root, condition)


def _weighted_triangle(weights: Array, Y: Array, tau: Array) -> Array:
    """Return R of the QR decomposition of the weighted [Y, tau] (at most b + 1 rows)."""
    return np.asarray(np.linalg.qr(np.column_stack([Y, tau]) * weights[:, None], mode="r"))


def _solve(A: Array, y: Array, names: tuple[str, ...], where: str) -> tuple[Array, Array, float]:
    """Return the least-squares solution x, R with R^T R = A^T A, and the condition number of A."""
    lengths = np.linalg.norm(A, axis=0)
    if (lengths == 0).any():
        _raise_unidentifiable([names[k] for k in np.flatnonzero(lengths == 0)], where)
    Q, R = np.linalg.qr(A / lengths)
    _, sizes, V = np.linalg.svd(R)
    if sizes[-1] < RANK_TOLERANCE * sizes[0]:
        _raise_unidentifiable([names[k] for k in np.argsort(-np.abs(V[-1])) if abs(V[-1, k]) > 0.1], where)
    root = R * lengths
    return np.linalg.solve(root, Q.T @ y), root, float(np.linalg.cond(root))


def _raise_unidentifiable(names: list[str], where: str) -> None:
    shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    fix = "excite the robot more (torsor.identification.excite), or name the unknown parameters with among="
    if any(name.endswith(".inertia") for name in names):  # of a motor that turns with several joints
        fix += "; where joints have parallel axes, leave out couplings= (--uncoupled)"
    raise ModelError(describe(f"the motion does not excite {shown}", where=where, fix=fix))
