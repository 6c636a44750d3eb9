"""Covariance of an estimate: a sandwich, for residuals that are correlated in time, robust weights and instruments.

The estimate x solves sum over t, j of z_tj e_tj = 0, with rows z_tj (b,) of the instruments (the regressor itself for
least squares) and e_tj a bounded function of the residual over its noise. To first order

    covariance = B^-1 S B^-T,      B = sum of e'_tj z_tj y_tj^T,      S = sum over t, s of K(t - s) g_t g_s^T

with the scores g_t = sum over j of z_tj e_tj. For white noise only t = s counts, and S = sum of z_tj C_jk z_tk^T with
the covariance C of the coordinates. Otherwise K is the flat-top kernel of Politis and Romano (1995): 1 up to the lag m,
then linear to 0 at 2 m; m is where the autocorrelation of the residuals ends (Politis 2003). Huber 1967; Newey and West
1987; Zellner 1962 (correlated coordinates).
"""

import numpy as np

from torsor.base.arrays import Array, Flags

QUIET = 5  # lags in a row without autocorrelation that end it, at least
LONGEST = 1 / 80  # of the samples: the longest lag, so that there are some 60 independent windows; at least ten lags
CLEAR = 4.0  # deviations of a correlation between coordinates that is none
LEAST_PART = 1e-14  # of the largest eigenvalue of a covariance in units of the deviations: less is rounding
LEAST = 0.1  # of the variance of white noise: the least variance of a combination


def correlation_time(residuals: Array, parts: list[slice]) -> int:
    """Return the lag, in samples, where the autocorrelation of residuals (N, n) ends; 0 if they are white.

    The greatest of all coordinates counts. Residuals of 0 are those of excluded samples.

    Example:
        >>> noise = np.random.default_rng(0).normal(size=(2000, 1))
        >>> correlation_time(noise, [slice(0, 2000)])
        0
        >>> correlation_time(noise[:-4] + noise[1:-3] + noise[2:-2] + noise[3:-1] + noise[4:], [slice(0, 1996)])
        4
    """
    whole = max(part.stop - part.start for part in parts)
    most = max(int(LONGEST * whole), min(2 * QUIET, whole // 10))
    if most < 1:
        return 0
    sums, counts = np.zeros((most + 1, residuals.shape[1])), np.zeros((most + 1, residuals.shape[1]))
    for part in parts:
        own = residuals[part]
        for into, signal in ((sums, own), (counts, (own != 0).astype(float))):
            length = 1 << int(np.ceil(np.log2(2 * len(own))))
            power = np.abs(np.fft.rfft(signal, length, axis=0)) ** 2
            lags = min(most + 1, len(own))
            into[:lags] += np.fft.irfft(power, length, axis=0)[:lags]
    found = 0
    for total, count in zip(sums.T, counts.T, strict=True):
        if total[0] > 0:
            rho = total / np.maximum(count, 1.0) / (total[0] / count[0])
            limit = 2 * np.sqrt(np.log10(max(count[0], 10.0)) / np.maximum(count, 1.0))
            found = max(found, _end(np.abs(rho[1:]) < limit[1:]))
    return found


def between(residuals: Array, counted: Flags) -> Array | None:
    """Return the correlations (n, n) between the coordinates of residuals (N, n), or None where there are none.

    Samples that are not ``counted`` (N, n) have the residual 0.

    Example:
        >>> noise = np.random.default_rng(0).normal(size=(2000, 2))
        >>> between(noise, np.ones((2000, 2), dtype=bool)) is None
        True
        >>> between(noise @ [[1.0, 1.0], [0.0, 1.0]], np.ones((2000, 2), dtype=bool)).round(1).tolist()
        [[1.0, 0.7], [0.7, 1.0]]
    """
    counts = counted.T.astype(float) @ counted
    covariance = residuals.T @ residuals / np.maximum(counts, 1.0)
    size = np.sqrt(np.maximum(np.diagonal(covariance), 1e-300))
    found = covariance / np.outer(size, size)
    np.fill_diagonal(found, 1.0)
    loud = np.abs(found) > CLEAR / np.sqrt(np.maximum(counts, 1.0))
    return np.asarray(found) if (loud & ~np.eye(len(found), dtype=bool)).any() else None


def _end(quiet: Flags) -> int:
    """Return the first lag m after which m + ``QUIET`` lags in a row are quiet; all lags if there is none.

    As many lags as there were before: an autocorrelation that oscillates is quiet where it crosses zero.
    """
    loud = np.flatnonzero(~quiet) + 1
    ends = np.concatenate([[0], loud])
    following = np.concatenate([loud, [2 * len(quiet) + QUIET]])
    enough = following - ends > ends + QUIET
    return int(ends[np.argmax(enough)]) if enough.any() else len(quiet)


def meat(scores: Array, parts: list[slice], lag: int) -> Array:
    """Return S (b, b) of scores g (N, b) whose autocorrelation ends at ``lag``; see the head of this file.

    The flat-top kernel is twice the triangle of width 2 m less that of width m. A triangle of width m is the mean of
    products of sums over windows of m samples. Directions with less than a tenth of the variance of white noise are
    raised to it.

    Example:
        >>> scores = np.random.default_rng(0).normal(size=(5000, 1))
        >>> (meat(scores, [slice(0, 5000)], 3) / 5000).round(1).tolist()
        [[1.0]]
    """
    white = scores.T @ scores
    if lag == 0:
        return np.asarray(white)
    S = 2 * _triangular_sum(scores, parts, 2 * lag) - _triangular_sum(scores, parts, lag)
    # Relative to white noise: eigenvalues of L^-1 S L^-T, with white = L L^T.
    scale = np.sqrt(np.maximum(np.diagonal(white), 1e-300))
    L = np.linalg.cholesky(white / np.outer(scale, scale) + 1e-12 * np.eye(len(white))) * scale[:, None]
    half = np.linalg.solve(L, S)
    values, vectors = np.linalg.eigh(np.linalg.solve(L, half.T))
    root = L @ vectors * np.sqrt(np.maximum(values, LEAST))
    return np.asarray(root @ root.T)


def root_of(covariance: Array) -> Array:
    """Return R (b, b) with R^T R = covariance^-1.

    Example:
        >>> R = root_of(np.array([[4.0, 1.0], [1.0, 1.0]]))
        >>> bool(np.allclose(R.T @ R @ [[4.0, 1.0], [1.0, 1.0]], np.eye(2)))
        True
    """
    size = np.sqrt(np.diagonal(covariance))
    values, U = np.linalg.eigh(covariance / np.outer(size, size))
    # Rounding may make the smallest ones negative where the motion hardly tells parameters apart.
    return np.asarray((U / np.sqrt(np.maximum(values, LEAST_PART * values[-1]))).T / size)


def free_part(count: int, lag: int, unknowns: int) -> float:
    """Return which part of the variance a fit leaves in ``count`` residuals that are correlated up to a ``lag``.

    The unknowns take their degrees of freedom from the independent samples: one in 4 m / 3 (Andrews 1991).

    Example:
        >>> free_part(900, 3, 45)
        0.8
    """
    independent = max(count / max(1.0, 4 * lag / 3), 2.0 * unknowns)
    return 1 - unknowns / independent


def _triangular_sum(scores: Array, parts: list[slice], width: int) -> Array:
    """Return the sum over t, s of max(0, 1 - |t - s| / width) g_t g_s^T."""
    total = np.zeros((scores.shape[1],) * 2)
    for part in parts:
        edge = np.zeros((width, scores.shape[1]))
        sums = np.cumsum(np.concatenate([edge, scores[part], edge]), axis=0)
        windows = sums[width:] - sums[:-width]
        total += windows.T @ windows
    return total / width
