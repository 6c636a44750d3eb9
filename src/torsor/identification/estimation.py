"""An estimate of all unknowns from the equations of all samples: weighted, robust, with instruments, and its errors."""

from dataclasses import dataclass, replace

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, describe
from torsor.identification.covariance import between, correlation_time, free_part, meat, root_of
from torsor.identification.least_squares import Fit, fit
from torsor.identification.robust import INFLUENCES, Influence, scale_of

MAX_ITERATIONS = 50  # of robust weights and of instruments, at most
ESTIMATE_TOLERANCE = 1e-3  # largest change of an unknown, in standard deviations, that ends them
CHUNK = 4096  # samples at a time


@dataclass(frozen=True, eq=False)
class Equations:
    """tau (N, n) = Y (N, n, b) x + noise, with ``weights`` (N, n), of unknowns ``names`` (b).

    ``parts`` are the stretches of samples that follow each other. ``Z`` (N, n, b) are instruments, if not None:
    regressors of the same motion without its noise. ``where`` is the name of the robot.
    """

    Y: Array
    tau: Array
    weights: Array
    names: tuple[str, ...]
    parts: list[slice]
    where: str
    Z: Array | None = None

    def residuals(self, x: Array) -> Array:
        """Return the weighted residuals (N, n) of x (b,)."""
        return np.asarray((self.tau - self.Y @ x) * self.weights)


@dataclass(frozen=True, eq=False)
class Method:
    """How to estimate: ``robust`` is None or a name of ``INFLUENCES``; ``noise`` is "white", "correlated" or "auto"."""

    robust: str | None = None
    noise: str = "auto"


def estimate(equations: Equations, method: Method) -> Fit:
    """Return the solution of the equations with its covariance.

    Example:
        >>> t = np.arange(9.0)
        >>> Y = np.stack([np.ones(9), t], -1)[:, None, :]
        >>> tau = Y @ [3.0, 2.0] + 0.01 * np.sin(50 * t)[:, None]
        >>> tau[4] = 100.0
        >>> line = Equations(Y, tau, np.ones((9, 1)), ("a", "b"), [slice(0, 9)], "line")
        >>> estimate(line, Method(robust="bisquare")).values.round(1).tolist()
        [3.0, 2.0]
    """
    found = fit(equations.Y, equations.tau, equations.weights, equations.names, equations.where)
    influence = None
    for name in () if method.robust is None else ("huber", method.robust):
        influence = INFLUENCES[name]
        found = _reweighted(equations, found, influence)
    if equations.Z is not None:
        found = _instrumental(equations, found, influence)
    return _with_covariance(equations, found, influence, method.noise)


def _reweighted(equations: Equations, found: Fit, influence: Influence) -> Fit:
    """Return the fit whose residuals have the weights of the influence function: iteratively weighted least squares."""
    for _ in range(MAX_ITERATIONS):
        weights = equations.weights * np.sqrt(_weights(equations, found.values, influence))
        previous = found
        found = fit(equations.Y, equations.tau, weights, equations.names, equations.where)
        if _settled(found, previous):
            break
    return found


def _weights(equations: Equations, x: Array, influence: Influence) -> Array:
    residuals = equations.residuals(x)
    scale = np.maximum(scale_of(residuals), 1e-12 * np.abs(equations.tau).max(initial=1e-300))
    return influence.weight(residuals / scale)


def _settled(found: Fit, previous: Fit) -> bool:
    deviations = np.sqrt(np.diagonal(found.covariance))
    return bool((np.abs(found.values - previous.values) <= ESTIMATE_TOLERANCE * deviations).all())


def _instrumental(equations: Equations, found: Fit, influence: Influence | None) -> Fit:
    """Return the solution of Z^T W (tau - Y x) = 0, where W has the noise and the robust weights of the fit.

    Janot, Vandanjon and Gautier 2014 (IDIM-IV).
    """
    assert equations.Z is not None
    for _ in range(MAX_ITERATIONS):
        scaled = equations.weights / found.noise
        if influence is not None:
            scaled = scaled * np.sqrt(_weights(equations, found.values, influence))
        A, y = np.zeros((len(found.values),) * 2), np.zeros(len(found.values))
        for k in range(0, len(scaled), CHUNK):
            own, w = slice(k, k + CHUNK), scaled[k : k + CHUNK]
            Z = (equations.Z[own] * w[..., None]).reshape(-1, len(y))
            A += Z.T @ (equations.Y[own] * w[..., None]).reshape(-1, len(y))
            y += Z.T @ (equations.tau[own] * w).ravel()
        size = np.sqrt(np.maximum(np.abs(np.diagonal(A)), 1e-300))
        if np.linalg.cond(A / np.outer(size, size)) > 1e14:
            fix = "give instruments of the same motion, at the same instants"
            raise ModelError(describe("the instruments do not follow the measurements", where=equations.where, fix=fix))
        values = np.linalg.solve(A / np.outer(size, size), y / size) / size
        residuals = equations.residuals(values)
        counted = np.maximum(np.count_nonzero(equations.weights, axis=0) - len(y) / len(found.noise), 1.0)
        noise = np.maximum(np.sqrt((residuals**2).sum(axis=0) / counted), 1e-12 * np.abs(equations.tau).max())
        noise = np.where(np.count_nonzero(equations.weights, axis=0) > 0, noise, 1.0)
        previous, found = found, replace(found, values=values, noise=noise if influence is None else found.noise)
        if _settled(found, previous):
            break
    return found


def _with_covariance(equations: Equations, found: Fit, influence: Influence | None, noise: str) -> Fit:
    """Return the fit with the covariance of the head of ``covariance.py``."""
    residuals = equations.residuals(found.values)
    lag = 0 if noise == "white" else correlation_time(residuals, equations.parts)
    if noise == "correlated":
        lag = max(lag, 1)
    counted = equations.weights > 0
    together = between(residuals, counted)
    if lag == 0 and influence is None and equations.Z is None and together is None:
        return found
    errors, slopes = residuals / found.noise, np.ones(residuals.shape[1])
    if influence is not None:
        scale = scale_of(residuals)
        u = residuals / scale
        errors = influence.weight(u) * u * scale / found.noise
        slopes = np.sum(influence.slope(u) * counted, axis=0) / np.maximum(counted.sum(axis=0), 1)
    spread = np.sum(errors**2, axis=0) / np.maximum(counted.sum(axis=0), 1)
    together = np.eye(len(spread)) if together is None else together
    spread = together * np.sqrt(np.outer(spread, spread))
    b = len(found.values)
    B, S, scores = np.zeros((b, b)), np.zeros((b, b)), np.empty((len(residuals), b))
    for k in range(0, len(residuals), CHUNK):
        own = slice(k, k + CHUNK)
        scaled = (equations.weights[own] / found.noise)[..., None]
        Y = equations.Y[own] * scaled
        Z = Y if equations.Z is None else equations.Z[own] * scaled
        B += (Z * slopes[:, None]).reshape(-1, b).T @ Y.reshape(-1, b)
        S += (spread @ Z).reshape(-1, b).T @ Z.reshape(-1, b)
        scores[own] = np.einsum("tjb,tj->tb", Z, errors[own], optimize=True)
    if lag > 0:
        S = meat(scores, equations.parts, lag) / free_part(int(counted.sum()), lag, b)
    back = np.linalg.inv(B)
    covariance = back @ S @ back.T
    covariance = (covariance + covariance.T) / 2
    return replace(found, covariance=covariance, root=root_of(covariance), lag=lag)
