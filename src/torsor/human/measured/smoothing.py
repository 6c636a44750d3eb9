"""All frames at once with smoothness: a block-pentadiagonal system, factorised for each Newton step.

    minimise  sum over k of |r_k(y_k)|^2  +  s sum of |y_(k-1) - 2 y_k + y_(k+1)|^2

The matrix has the blocks H_k + s D_kk on its diagonal and multiples of the identity beside it, two on each
side, where D is the matrix of squared second differences.
"""

from importlib import import_module

import numpy as np

from torsor.base.arrays import Array
from torsor.human.measured.fitting import EXACT, GROWTH, HOLD, MOST_HELD, MOST_STEPS, RIDGE, Fit, Fitted

HALVES = (1, 2, 4, 8)  # frames on each side of a running median


def second_differences(count: int) -> Array:
    """Return the three upper diagonals (3, K) of D^T D, with D the second differences of K numbers.

    Example:
        >>> second_differences(4).tolist()
        [[1.0, 5.0, 5.0, 1.0], [-2.0, -4.0, -2.0, 0.0], [1.0, 1.0, 0.0, 0.0]]
    """
    found = np.zeros((3, count))
    for at, one in enumerate((1.0, -2.0, 1.0)):
        for other, two in enumerate((1.0, -2.0, 1.0)):
            if other >= at and count > 2:
                found[other - at, at : count - 2 + at] += one * two
    return found


def fit_smoothly(fit: Fit, start: Fitted, measured: Array, weights: Array, smooth: float, tolerance: float) -> Fitted:
    """Return the fit of all frames with the weight ``smooth`` on second differences, from the fit of each frame."""
    count, n = start.y.shape
    if count < 3:
        return start
    diagonals = smooth * second_differences(count)
    total = float(weights.sum(axis=1).max())

    def evaluate(y: Array, exact: float) -> tuple[float, Array, Array, Array]:
        cost, gradient, hessian = fit.normal(y, fit.offsets, fit.local, measured, weights, exact)
        bend = np.diff(y, 2, axis=0)
        pull = np.zeros_like(y)
        pull[:-2] += bend
        pull[1:-1] -= 2 * bend
        pull[2:] += bend
        return float(cost.sum() + smooth * (bend**2).sum()), cost, gradient + smooth * pull, hessian

    # The fits of single frames jump where markers say little; medians over some frames are nearer to the smooth motion.
    starts = [start.y, *(_running_median(start.y, half) for half in HALVES if 2 * half < count)]
    y = min(starts, key=lambda each: evaluate(each, 0.0)[0])
    whole, cost, gradient, hessian = evaluate(y, 0.0)
    damping, exact, converged, each = 0.0, False, False, np.arange(n)
    for _ in range(MOST_STEPS):
        blocks = hessian.copy()
        blocks[:, each, each] = blocks[:, each, each] * (1 + damping) + RIDGE * total
        try:
            following = _bounded(blocks, diagonals, gradient, y, fit)
            found = evaluate(following, 1.0)
        except np.linalg.LinAlgError:  # far from the minimum the exact matrix may have a negative direction
            found = np.inf, cost, gradient, hessian
        if found[0] <= whole * (1 + GROWTH):
            change = float(np.abs(following - y).max())
            # Newton's method squares the error: after a small step with the exact matrix the next one is below it.
            converged = change <= (np.sqrt(tolerance) if exact and damping == 0 else tolerance)
            y, damping, exact = following, damping / 10 if damping > 10 * EXACT else 0.0, True
            whole, cost, gradient, hessian = found
        else:
            converged = found[0] < np.inf and float(np.abs(following - y).max()) <= tolerance
            _, _, _, hessian = evaluate(y, 0.0)
            damping, exact = max(10 * damping, 10 * EXACT), False
        if converged:
            break
    return Fitted(y, cost, np.full(count, converged), start.determined | converged)


def _running_median(y: Array, half: int) -> Array:
    """Return the medians of y (K, n) over 2 half + 1 frames, then the means over as many; the ends are repeated."""
    found = y
    for middle in (np.median, np.mean):
        padded = np.pad(found, ((half, half), (0, 0)), mode="edge")
        found = middle(np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1, axis=0), axis=-1)
    return np.asarray(found)


def _bounded(blocks: Array, diagonals: Array, gradient: Array, y: Array, fit: Fit) -> Array:
    """Return the minimum of the quadratic model within the bounds, by the active sets of ``fitting``."""
    each = np.arange(y.shape[1])
    stiff = HOLD * float(blocks[:, each, each].max())
    held = (y <= fit.lower) | (y >= fit.upper)
    goal = np.zeros_like(y)
    for _ in range(MOST_HELD):
        firm = blocks.copy()
        firm[:, each, each] += np.where(held, stiff, 0.0)
        following = y + _banded_solve(firm, diagonals, np.where(held, stiff * goal, 0.0) - gradient)
        beyond = (following < fit.lower) | (following > fit.upper)
        if (beyond == held).all():
            break
        held, goal = beyond, np.where(beyond, np.clip(following, fit.lower, fit.upper) - y, 0.0)
    return np.clip(following, fit.lower, fit.upper)


def _banded_solve(blocks: Array, diagonals: Array, right: Array) -> Array:
    """Solve the system with diagonal blocks (K, n, n) + diagonals[0] and multiples of the identity beside them.

    ``right`` is (K, n). Raises LinAlgError if the matrix is not positive definite. LAPACK's banded solver, if SciPy is
    installed, takes a third of the time of a loop over blocks.
    """
    try:
        solveh_banded = import_module("scipy.linalg").solveh_banded
    except ImportError:
        return _block_solve(blocks, diagonals, right)
    count, n = right.shape
    band = np.zeros((2 * n + 1, count, n))  # row i: the entries i places below the diagonal
    for i in range(n):
        band[i, :, : n - i] = blocks[:, np.arange(i, n), np.arange(n - i)]
    for k in range(3):
        band[k * n] += diagonals[k][:, None]
    found = solveh_banded(band.reshape(2 * n + 1, -1), right.ravel(), overwrite_ab=True, lower=True, check_finite=False)
    return np.asarray(found).reshape(count, n)


def _block_solve(blocks: Array, diagonals: Array, right: Array) -> Array:
    """Solve the same system without SciPy.

    Block Cholesky factorisation: the factor has the inverse of its diagonal block in ``inner``, and the two blocks
    beside it in ``near`` and ``far``.
    """
    count, n = right.shape
    eye = np.eye(n)
    inner, near, far = (np.empty((count, n, n)) for _ in range(3))
    x = right.copy()
    for k in range(count):
        S, beside = blocks[k] + diagonals[0, k] * eye, diagonals[1, k] * eye
        if k >= 1:
            S -= near[k - 1].T @ near[k - 1]
            beside -= near[k - 1].T @ far[k - 1]
            x[k] -= near[k - 1].T @ x[k - 1]
        if k >= 2:
            S -= far[k - 2].T @ far[k - 2]
            x[k] -= far[k - 2].T @ x[k - 2]
        inner[k] = np.linalg.inv(np.linalg.cholesky(S))
        near[k], far[k] = inner[k] @ beside, diagonals[2, k] * inner[k]
        x[k] = inner[k] @ x[k]
    for k in reversed(range(count)):
        if k + 1 < count:
            x[k] -= near[k] @ x[k + 1]
        if k + 2 < count:
            x[k] -= far[k] @ x[k + 2]
        x[k] = inner[k].T @ x[k]
    return x
