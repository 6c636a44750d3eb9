"""Estimation of all unknowns from the equations of all samples: weighted, robust or with instruments."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array, Flags
from torsor.base.errors import ModelError

# Iteratively reweighted least squares with an estimate of the noise of each coordinate (Gautier's IDIM-WLS).
MAX_WEIGHT_ITERATIONS = 30  # maximum number of iterations; the weights usually converge within five
NOISE_TOLERANCE = 1e-6  # relative change of the noise at convergence
RANK_TOLERANCE = 1e-8  # relative singular value of the regressor with unit columns below which it counts as zero
ROUNDING_NOISE = 1e-12  # fraction of a force below which noise is rounding error


@dataclass(frozen=True, eq=False)
class Fit:
    """A solution of tau = Y x: ``values`` (b,), their ``covariance`` (b, b), and the coordinate ``noise`` (n,).

    ``root`` (b, b) satisfies root^T root = covariance^-1. ``condition`` is the condition number of the weighted
    regressor. ``lag`` is the number of samples over which residuals are correlated; 0 for white noise.
    """

    values: Array
    covariance: Array
    noise: Array
    root: Array
    condition: float
    lag: int = 0


def fit(Y: Array, tau: Array, weights: Array, names: tuple[str, ...], where: str) -> Fit:
    """Return the x (b,) that minimises the sum of ((tau - Y x) weights / noise)^2, for Y (N, n, b) and tau (N, n).

    The noise of a coordinate is the standard deviation of its residuals. The number of degrees of freedom is the number
    of samples minus the coordinate's share of the trace of the hat matrix. Noise and solution are iterated until
    convergence. See Gautier (1997) and Janot, Vandanjon and Gautier (2014).
    """
    counts = np.count_nonzero(weights, axis=0)
    b = Y.shape[-1]
    if counts.sum() <= b:
        message = f"there are {int(counts.sum())} measured forces for {b} base parameters"
        raise ModelError(message, where=where, allowed="more forces than parameters", fix="measure longer")
    size = np.sqrt((weights**2 * tau**2).sum(axis=0) / np.maximum(counts, 1))
    # The lower bound is required because zero residuals provide no noise estimate.
    largest = float(size.max(initial=0.0)) or 1.0
    least = ROUNDING_NOISE * np.maximum(size, 1e-3 * largest)
    # For all iterations, one triangular matrix [R, y] per coordinate contains the information of its samples.
    rows = (np.column_stack([Y[:, j], tau[:, j]]) * weights[:, j, None] for j in range(tau.shape[1]))
    triangles = [np.asarray(np.linalg.qr(row, mode="r")) for row in rows]
    noise = np.ones(tau.shape[1])
    for _ in range(MAX_WEIGHT_ITERATIONS):
        stacked = np.concatenate([each / sigma for each, sigma in zip(triangles, noise, strict=True)])
        x, root, condition = _solve(stacked[:, :b], stacked[:, b], names, where)
        back = np.linalg.solve(root, np.eye(b))
        traces = np.array([np.sum((each[:, :b] @ back) ** 2) for each in triangles]) / noise**2
        free = np.where(counts > 0, counts - traces, 1.0)
        if (free < 1e-6 * b).any():
            message = "a coordinate does not have more samples than parameters"
            raise ModelError(message, where=where, fix="measure longer")
        squares = np.array([np.sum((triangle[:, b] - triangle[:, :b] @ x) ** 2) for triangle in triangles])
        previous, noise = noise, np.where(counts > 0, np.maximum(np.sqrt(squares / free), least), 1.0)
        if np.abs(noise / previous - 1).max() < NOISE_TOLERANCE:
            break
    return Fit(x, back @ back.T, previous, root, condition)


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
    fix = "excite the robot more (torsor.identification.excite), or name the unknown parameters with `among=`"
    if any(name.endswith(".inertia") for name in names):  # inertia of a motor that drives several joints
        fix += "; if joint axes are parallel, omit `couplings` (--uncoupled)"
    raise ModelError(f"the motion does not excite {shown}", where=where, fix=fix)


# Robust estimation: residuals far above the noise get less weight (Huber 1964) or none (bisquare).
MEDIAN_TO_DEVIATION = 1.4826  # ratio of standard deviation to median absolute value, for normal noise


class Influence(NamedTuple):
    """A bounded function psi of u, the residuals over their noise: ``weight`` psi(u) / u and ``slope`` psi'(u)."""

    weight: Callable[[Array], Array]
    slope: Callable[[Array], Array]


HUBER, BISQUARE = 1.345, 4.685  # standard deviations beyond which residuals get less (Huber) or no (bisquare) weight
INFLUENCES = {
    "huber": Influence(
        lambda u: np.minimum(1.0, HUBER / np.maximum(np.abs(u), 1e-300)), lambda u: (np.abs(u) < HUBER).astype(float)
    ),
    "bisquare": Influence(
        lambda u: np.maximum(0.0, 1 - (u / BISQUARE) ** 2) ** 2,
        lambda u: np.maximum(0.0, 1 - (u / BISQUARE) ** 2) * (1 - 5 * (u / BISQUARE) ** 2),
    ),
}
"""Both have 95 % of the efficiency of least squares for normal noise (Holland and Welsch 1977)."""


def scale_of(residuals: Array) -> Array:
    """Return the noise (n,) of residuals (N, n) from their medians; zeros mark excluded samples."""
    sizes = np.abs(residuals).T
    return np.array([MEDIAN_TO_DEVIATION * np.median(size[size > 0]) if (size > 0).any() else 1.0 for size in sizes])


# Sandwich covariance of an estimate with time-correlated residuals, robust weights and instruments.
#
# The estimate x solves sum over t, j of z_tj e_tj = 0, with rows z_tj (b,) of the instruments (the regressor itself for
# least squares) and e_tj a bounded function of the residual over its noise. To first order
#
#     covariance = B^-1 S B^-T,      B = sum of e'_tj z_tj y_tj^T,      S = sum over t, s of K(t - s) g_t g_s^T
#
# with the scores g_t = sum over j of z_tj e_tj. For white noise, only t = s counts, and S = sum of z_tj C_jk z_tk^T
# with the covariance C of the coordinates (Zellner 1962). For autoregressive noise, S follows from the spectrum; see
# ``coloured``. Otherwise, K is the flat-top kernel of Politis and Romano (1995), which is 1 up to the lag m and then
# decreases linearly to 0 at 2 m; the autocorrelation of the residuals ends at m (Politis 2003). See also Huber 1967,
# Newey and West 1987.

MIN_QUIET_LAGS = 5  # minimum number of consecutive lags without autocorrelation
MAX_LAG_FRACTION = 1 / 80  # maximum lag (at least ten) as a fraction of the samples: about 60 independent windows
MIN_CORRELATION_DEVIATIONS = 4.0  # standard deviations below which a correlation between coordinates counts as zero
MIN_EIGENVALUE_RATIO = 1e-14  # relative eigenvalue of a scaled covariance below which it is a rounding error
MIN_VARIANCE_RATIO = 0.1  # minimum variance of a combination, as a fraction of the white-noise variance


def correlation_time(residuals: Array, parts: list[slice]) -> int:
    """Return the lag, in samples, beyond which residuals (N, n) are uncorrelated; 0 for white residuals.

    The lag is the largest of all coordinates. Zeros mark excluded samples.
    """
    most = max_lag(max(part.stop - part.start for part in parts))
    if most < 1:
        return 0
    sums, counts = np.zeros((2, most + 1, residuals.shape[1]))
    for part in parts:
        stretch = residuals[part]
        for into, signal in ((sums, stretch), (counts, (stretch != 0).astype(float))):
            length = 1 << int(np.ceil(np.log2(2 * len(stretch))))
            into[: len(stretch)] += _lagged(signal, length)[: min(most + 1, len(stretch))]
    lag = 0
    for total, count in zip(sums.T, counts.T, strict=True):
        if total[0] > 0:
            rho = total / np.maximum(count, 1.0) / (total[0] / count[0])
            limit = 2 * np.sqrt(np.log10(max(count[0], 10.0)) / np.maximum(count, 1.0))
            lag = max(lag, _end(np.abs(rho[1:]) < limit[1:]))
    return lag


def max_lag(count: int) -> int:
    """Return the maximum lag of ``count`` consecutive samples."""
    return max(int(MAX_LAG_FRACTION * count), min(2 * MIN_QUIET_LAGS, count // 10))


def _lagged(signal: Array, length: int) -> Array:
    """Return the autocorrelation sums of a signal (N, ...) by lag; ``length`` is 2 N or more."""
    return np.asarray(np.fft.irfft(np.abs(np.fft.rfft(signal, length, axis=0)) ** 2, length, axis=0)[: len(signal)])


def between(residuals: Array, counted: Flags) -> Array | None:
    """Return the correlations (n, n) between the coordinates of residuals (N, n), or None if none is significant.

    Residuals must be zero for samples that are not ``counted`` (N, n).
    """
    counts = counted.T.astype(float) @ counted
    covariance = residuals.T @ residuals / np.maximum(counts, 1.0)
    size = np.sqrt(np.maximum(np.diagonal(covariance), 1e-300))
    correlations = covariance / np.outer(size, size)
    np.fill_diagonal(correlations, 1.0)
    loud = np.abs(correlations) > MIN_CORRELATION_DEVIATIONS / np.sqrt(np.maximum(counts, 1.0))
    return np.asarray(correlations) if (loud & ~np.eye(len(correlations), dtype=bool)).any() else None


def _end(quiet: Flags) -> int:
    """Return the first lag m after which m + ``MIN_QUIET_LAGS`` consecutive lags are quiet, or the number of lags.

    The window grows with m because an oscillating autocorrelation is quiet at its zero crossings.
    """
    loud = np.flatnonzero(~quiet) + 1
    ends = np.concatenate([[0], loud])
    enough = np.concatenate([loud, [2 * len(quiet) + MIN_QUIET_LAGS]]) - ends > ends + MIN_QUIET_LAGS
    return int(ends[np.argmax(enough)]) if enough.any() else len(quiet)


def meat(scores: Array, parts: list[slice], lag: int) -> Array:
    """Return S (b, b), as defined above ``MIN_QUIET_LAGS``, of scores g (N, b) whose autocorrelation ends at ``lag`` m.

    The flat-top kernel is twice the triangle of width 2 m minus the triangle of width m. For a triangle of width m, the
    result is 1 / m times the sum of s s^T over all windows of m samples, where s is the sum of the scores in a window.
    In each direction, the variance is at least a tenth of the white-noise variance.
    """
    white = scores.T @ scores
    if lag == 0:
        return np.asarray(white)
    S = 2 * _triangular_sum(scores, parts, 2 * lag) - _triangular_sum(scores, parts, lag)
    # Relative to white noise: eigenvalues of L^-1 S L^-T, with white = L L^T.
    scale = np.sqrt(np.maximum(np.diagonal(white), 1e-300))
    L = np.linalg.cholesky(white / np.outer(scale, scale) + 1e-12 * np.eye(len(white))) * scale[:, None]
    values, vectors = np.linalg.eigh(np.linalg.solve(L, np.linalg.solve(L, S).T))
    root = L @ vectors * np.sqrt(np.maximum(values, MIN_VARIANCE_RATIO))
    return np.asarray(root @ root.T)


def root_of(covariance: Array) -> Array:
    """Return R (b, b) with R^T R = covariance^-1."""
    size = np.sqrt(np.diagonal(covariance))
    values, U = np.linalg.eigh(covariance / np.outer(size, size))
    # Rounding may make the smallest eigenvalues negative if the motion barely separates parameters.
    return np.asarray((U / np.sqrt(np.maximum(values, MIN_EIGENVALUE_RATIO * values[-1]))).T / size)


def free_part(count: int, lag: int, unknowns: int) -> float:
    """Return the fraction of the variance that remains in ``count`` residuals, correlated up to a ``lag``, after a fit.

    The unknowns use degrees of freedom of the independent samples, of which there is one per 4/3 ``lag`` samples
    (Andrews 1991).
    """
    return 1 - unknowns / max(count / max(1.0, 4 * lag / 3), 2.0 * unknowns)


def _triangular_sum(scores: Array, parts: list[slice], width: int) -> Array:
    """Return the sum over t, s of max(0, 1 - |t - s| / width) g_t g_s^T."""
    total = np.zeros((scores.shape[1],) * 2)
    for part in parts:
        edge = np.zeros((width, scores.shape[1]))
        sums = np.cumsum(np.concatenate([edge, scores[part], edge]), axis=0)
        windows = sums[width:] - sums[:-width]
        total += windows.T @ windows
    return total / width


MAX_ITERATIONS = 50  # maximum number of iterations with robust weights or instruments
ESTIMATE_TOLERANCE = 1e-3  # maximum change of an unknown at convergence, in standard deviations
BLOCK_SIZE = 4096  # samples per block


@dataclass(frozen=True, eq=False)
class Equations:
    """tau (N, n) = Y (N, n, b) x + noise, with ``weights`` (N, n), for the unknowns ``names`` (b).

    ``parts`` are the ranges of consecutive samples. ``Z`` (N, n, b) are instruments (regressors of the same motion
    without noise) or None. ``where`` is the robot name.
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
    """Estimator: ``robust`` is None or a key of ``INFLUENCES``; ``noise`` is "white", "correlated" or "auto".

    If ``noise`` is "ignored", the covariance assumes independent noise in each coordinate, as in least squares.
    """

    robust: str | None = None
    noise: str = "auto"


def estimate(equations: Equations, method: Method) -> Fit:
    """Return the solution of the equations with its covariance."""
    solution = fit(equations.Y, equations.tau, equations.weights, equations.names, equations.where)
    influence = None
    for name in () if method.robust is None else ("huber", method.robust):
        influence = INFLUENCES[name]
        for _ in range(MAX_ITERATIONS):  # iteratively weighted least squares
            weights = equations.weights * np.sqrt(_weights(equations, solution.values, influence))
            previous = solution
            solution = fit(equations.Y, equations.tau, weights, equations.names, equations.where)
            if _settled(solution, previous):
                break
    if equations.Z is not None:
        solution = _instrumental(equations, solution, influence)
    return solution if method.noise == "ignored" else _with_covariance(equations, solution, influence, method.noise)


def _weights(equations: Equations, x: Array, influence: Influence) -> Array:
    residuals = equations.residuals(x)
    scale = np.maximum(scale_of(residuals), 1e-12 * np.abs(equations.tau).max(initial=1e-300))
    return influence.weight(residuals / scale)


def without_outliers(equations: Equations, found: Fit, method: Method) -> Equations:
    """Return the equations with the robust weights of a solution."""
    if method.robust is None:
        return equations
    weights = equations.weights * np.sqrt(_weights(equations, found.values, INFLUENCES[method.robust]))
    return replace(equations, weights=weights)


def _settled(found: Fit, previous: Fit) -> bool:
    deviations = np.sqrt(np.diagonal(found.covariance))
    return bool((np.abs(found.values - previous.values) <= ESTIMATE_TOLERANCE * deviations).all())


def _instrumental(equations: Equations, found: Fit, influence: Influence | None) -> Fit:
    """Return the solution x of Z^T W (tau - Y x) = 0, with the noise and the robust weights of the fit in W.

    See Janot, Vandanjon and Gautier 2014 (IDIM-IV).
    """
    assert equations.Z is not None
    for _ in range(MAX_ITERATIONS):
        scaled = equations.weights / found.noise
        if influence is not None:
            scaled = scaled * np.sqrt(_weights(equations, found.values, influence))
        A, y = np.zeros((len(found.values),) * 2), np.zeros(len(found.values))
        for k in range(0, len(scaled), BLOCK_SIZE):
            block, w = slice(k, k + BLOCK_SIZE), scaled[k : k + BLOCK_SIZE]
            Z = (equations.Z[block] * w[..., None]).reshape(-1, len(y))
            A += Z.T @ (equations.Y[block] * w[..., None]).reshape(-1, len(y))
            y += Z.T @ (equations.tau[block] * w).ravel()
        size = np.sqrt(np.maximum(np.abs(np.diagonal(A)), 1e-300))
        if np.linalg.cond(A / np.outer(size, size)) > 1e14:
            fix = "pass instruments of the same motion at the same instants"
            raise ModelError("the instruments do not follow the measurements", where=equations.where, fix=fix)
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
    """Return the fit with its sandwich covariance; see the comment above ``MIN_QUIET_LAGS``."""
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
    for k in range(0, len(residuals), BLOCK_SIZE):
        block = slice(k, k + BLOCK_SIZE)
        scaled = (equations.weights[block] / found.noise)[..., None]
        Y = equations.Y[block] * scaled
        Z = Y if equations.Z is None else equations.Z[block] * scaled
        B += (Z * slopes[:, None]).reshape(-1, b).T @ Y.reshape(-1, b)
        S += (spread @ Z).reshape(-1, b).T @ Z.reshape(-1, b)
        scores[block] = np.einsum("tjb,tj->tb", Z, errors[block], optimize=True)
    if lag > 0:
        process = coloured(equations, found.noise, errors, S)
        if process is None:
            S = meat(scores, equations.parts, lag) / free_part(int(counted.sum()), lag, b)
        else:
            S, lag = process[0], max(process[1], 1)
    back = np.linalg.inv(B)
    covariance = back @ S @ back.T
    covariance = (covariance + covariance.T) / 2
    return replace(found, covariance=covariance, root=root_of(covariance), lag=lag)


# Noise of an autoregressive process, e_t = a_1 e_(t-1) + ... + a_p e_(t-p) + white noise of variance s, such as drift.
#
# Drift may last longer than the lags that ``meat`` can estimate, and most of its power is at low frequencies. The noise
# of differentiated positions has less power there than white noise. Its correlation is short and includes different
# coordinates at different lags, so ``meat`` describes it better. The spectrum of a process is Phi(w) = s / |1 - a_1
# exp(-iw) - ... - a_p exp(-iwp)|^2, and with the Fourier transform z(w) of the rows z_t
#
#     S = mean over w of Phi(w) z^* z
#
# The coefficients a follow from the autocovariances c_k of the residuals (Yule and Walker), and p minimises the
# Bayesian information criterion. The fit absorbs the part of the noise that resembles the regressor: residuals are
# r = e - Z B^-1 Z^T e, whose expected autocovariances are
#
#     c_k - mean over w of cos(kw) [2 Phi z B^-1 z^* - z B^-1 S B^-1 z^*]   (over the number of products)
#
# The process is corrected until these equal the autocovariances of the residuals.

MAX_ORDER = 5  # maximum order of a process
MIN_AUTOCORRELATION = 0.05  # autocorrelation of a process below which it counts as zero
MIN_INNOVATION = 1e-4  # minimum variance of the innovations, relative to the process; smaller ones are rounding errors
MAX_REFLECTION = 0.9999  # maximum partial autocorrelation, which makes the process stationary
SPECTRUM_BANDS = 256  # frequency bands in which z^* z is summed
MAX_TAKEN_RATIO = 3.0  # maximum variance that the fit is assumed to absorb, relative to the residuals
# The spectrum has approximately half as many degrees of freedom as there are independent samples, count * variance /
# max(Phi). A 95 % interval is therefore wider by t / 1.96: (t / 1.96)^2 = 1 + (1.96^2 + 1) / (2 degrees of freedom).
STUDENT = 1.96**2 + 1
CORRECTIONS = 12  # maximum number of corrections of the process
CORRECTION_TOLERANCE = 1e-2  # relative change of the variance at convergence


def coloured(equations: Equations, noise: Array, errors: Array, white: Array) -> tuple[Array, int] | None:
    """Return S (b, b) for autoregressive errors (N, n), already divided by the ``noise`` (n,), and the longest lag.

    See the comment above ``MAX_ORDER``. ``white`` (b, b) is S for white noise, including the correlation between
    coordinates, which is kept. The result is None if the errors of a coordinate are not autoregressive (their
    innovations are not white) or have less power at low frequencies than white noise, or if the motion barely separates
    parameters.
    """
    b, counted = len(white), equations.weights > 0
    coordinates = np.flatnonzero(counted.any(axis=0)).tolist()
    processes = [_Process.of(errors[:, j], counted[:, j], equations.parts) for j in coordinates]
    if not all(process.is_whole for process in processes):
        return None
    rows = equations.Y if equations.Z is None else equations.Z
    scaled = (rows[:, j] * (equations.weights[:, j] / noise[j])[:, None] for j in coordinates)
    spectra = [_Spectrum.of(Z, equations.parts) for Z in scaled]
    alone = np.asarray(sum(x.power[0] * z.bands.sum(axis=0) for x, z in zip(processes, spectra, strict=True)))
    back = np.linalg.inv(sum(spectrum.bands.sum(axis=0) for spectrum in spectra))
    targets, before = [process.power for process in processes], 0.0
    for _ in range(CORRECTIONS):
        densities = [x.density(c, z.frequencies) for x, c, z in zip(processes, targets, spectra, strict=True)]
        S = np.asarray(sum(np.tensordot(d, z.bands, 1) for d, z in zip(densities, spectra, strict=True)))
        size = float(np.trace(back @ S)) / b
        if abs(size - before) <= CORRECTION_TOLERANCE * size:
            break
        before = size
        parts = zip(processes, spectra, densities, strict=True)
        targets = [x.power + z.taken(d, back, S, x.power, x.products) for x, z, d in parts]
    if any(d[0] < c[0] for d, c in zip(densities, targets, strict=True)):
        return None
    independent = [x.products[0] * c[0] / d.max() for x, c, d in zip(processes, targets, densities, strict=True)]
    widened = [(1 + STUDENT / k) * d for k, d in zip(independent, densities, strict=True)]
    S = np.asarray(sum(np.tensordot(d, z.bands, 1) for d, z in zip(widened, spectra, strict=True)))
    # The effect of time correlation relative to white noise is applied to noise that is correlated between coordinates.
    if not (np.diagonal(alone) > 0).all():
        return None
    scale = np.sqrt(np.diagonal(alone))
    try:
        roots = [np.linalg.cholesky(each / np.outer(scale, scale) + 1e-12 * np.eye(b)) for each in (S, alone)]
    except np.linalg.LinAlgError:  # the motion barely separates parameters
        return None
    change = np.linalg.solve(roots[1].T, roots[0].T).T * scale[:, None] / scale
    return np.asarray(change @ white @ change.T), max(x.lag(c) for x, c in zip(processes, targets, strict=True))


@dataclass(frozen=True, eq=False)
class _Process:
    """An autoregressive process of order ``order``; ``power`` (L,) are autocovariances, means of ``products`` (L,).

    ``is_whole`` is True if its innovations are white.
    """

    power: Array
    products: Array
    order: int
    is_whole: bool

    @classmethod
    def of(cls, errors: Array, counted: Flags, parts: list[slice]) -> "_Process":
        longest = max(part.stop - part.start for part in parts)
        lags = min(max_lag(longest) + MAX_ORDER, longest - 1)
        sums, products = np.zeros((2, lags + 1))
        for part in parts:
            length = 1 << int(np.ceil(np.log2(2 * (part.stop - part.start))))
            for into, signal in ((sums, errors[part]), (products, counted[part].astype(float))):
                into[: len(signal)] += _lagged(signal, length)[: lags + 1]
        products = np.maximum(products, 1.0)
        power, count = sums / products, float(products[0])
        found = _levinson(power)
        scores = [count * np.log(max(s, 1e-300)) + k * np.log(count) for k, (_, s) in enumerate(found)]
        order = int(np.argmin(scores))
        a = np.append(1.0, -found[order][0])
        both = np.concatenate([power[:0:-1], power])
        rest = np.convolve(both, np.correlate(a, a, "full"), "valid")[lags - order :]  # of the innovations
        limit = 2 * np.sqrt(np.log10(max(count, 10.0)) / products[1 : len(rest)])
        is_whole = found[order][1] > MIN_INNOVATION * power[0] and (np.abs(rest[1:]) < limit * rest[0]).all()
        return cls(power, products, order, bool(is_whole))

    def lag(self, power: Array) -> int:
        """Return the lag beyond which autocorrelations are below ``MIN_AUTOCORRELATION``."""
        coefficients, last = _levinson(power)[self.order][0], list(power[self.order :: -1])
        for lag in range(self.order, 100 * len(power)):
            if abs(last[0]) < MIN_AUTOCORRELATION * power[0]:
                return lag
            last = [float(coefficients @ last[: self.order]), *last[: self.order]]
        return 100 * len(power)

    def density(self, power: Array, frequencies: Array) -> Array:
        """Return the spectrum Phi (K,) of the process with these autocovariances."""
        coefficients, innovation = _levinson(power)[self.order]
        waves = np.exp(-1j * np.outer(frequencies, np.arange(1, self.order + 1)))
        return np.asarray(innovation / np.maximum(np.abs(1 - waves @ coefficients), 1 - MAX_REFLECTION) ** 2)


@dataclass(frozen=True, eq=False)
class _Spectrum:
    """The sums ``bands`` (K, b, b) of z^* z of a coordinate around ``frequencies`` (K,), in rad per sample."""

    bands: Array
    frequencies: Array

    @classmethod
    def of(cls, Z: Array, parts: list[slice]) -> "_Spectrum":
        length = 1 << int(np.ceil(np.log2(2 * max(part.stop - part.start for part in parts))))
        half = length // 2 + 1
        low = np.arange(min(half, SPECTRUM_BANDS // 2))
        edges = np.unique(np.append(low, np.linspace(len(low), half, SPECTRUM_BANDS // 2 + 1).astype(int)))
        bands = np.zeros((len(edges) - 1, Z.shape[1], Z.shape[1]))
        for part in parts:
            waves = np.fft.rfft(Z[part], length, axis=0)
            waves[1 : length // 2] *= np.sqrt(2)  # accounts for both signs of the frequency
            for k, (first, last) in enumerate(pairwise(edges)):
                real, imaginary = waves[first:last].real, waves[first:last].imag
                bands[k] += (real.T @ real + imaginary.T @ imaginary) / length
        return cls(bands, np.pi * (edges[:-1] + edges[1:] - 1) / length)

    def taken(self, density: Array, back: Array, S: Array, power: Array, products: Array) -> Array:
        """Return the part of the autocovariances that the fit removes from the residuals."""
        own, spread = (np.tensordot(self.bands, each, 2) for each in (back, back @ S @ back))
        cosines = np.cos(np.outer(np.arange(len(power)), self.frequencies))
        taken = cosines @ (2 * density * own - spread) / products
        size = float(taken[0])
        return np.asarray(taken * (min(1.0, MAX_TAKEN_RATIO * power[0] / size) if size > 0 else 0.0))


def _levinson(power: Array) -> list[tuple[Array, float]]:
    """Return the coefficients and innovation variance of the process of each order, by Levinson's recursion."""
    coefficients, innovation = np.zeros(0), float(power[0])
    found = [(coefficients, innovation)]
    for k in range(1, min(MAX_ORDER + 1, len(power))):
        partial = float(power[k] - coefficients @ power[k - 1 : 0 : -1]) / max(innovation, 1e-300)
        partial = min(max(partial, -MAX_REFLECTION), MAX_REFLECTION)
        coefficients = np.append(coefficients - partial * coefficients[::-1], partial)
        innovation *= 1 - partial**2
        found.append((coefficients, innovation))
    return found
