"""Parameters that real bodies have, nearest to the measurements: a convex problem, by Newton's method along a path.

    minimise  |root (M pi - beta)|^2 / 2 + gamma (sum of d(P_i, P0_i) + sum of d(x_k, x0_k))
    d(P, P0) = tr(P0^-1 P) - log det(P0^-1 P) - 4,      d(x, x0) = x / x0 - log(x / x0) - 1

where M pi are the base parameters, beta and root^T root = covariance^-1 the least-squares estimate, P_i the
pseudo-inertia (4 x 4) of link i, linear in its ten parameters, and x_k rotor inertias and friction. d is the distance
of Lee, Wensing and Park ("Geometric robot dynamic identification", 2020): it does not depend on units or frames, is
convex, keeps P positive definite and x positive, and decides what the measurements leave open by the prior P0. A small
gamma leaves alone whatever they do show. Each Newton step is a least-squares problem, since with P = L L^T the Hessian
of d is the square of the matrix of E -> L^-1 E L^-T.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torsor.dynamics import inertial, units
from torsor.errors import ModelError, describe

__all__ = ["nearest_physical"]

Array = NDArray[np.float64]

UNITS = np.array(units())
STEPS = 200  # Newton steps for one gamma; some ten are enough
SOUND = 1e-6  # least principal value of a prior, beside the largest, that is taken as it is


@dataclass(frozen=True, eq=False)
class _Problem:
    """The data: ``A`` (b, z) and ``c`` (b,) over the unknowns z, the links' and the scalars' places among all p."""

    A: Array
    c: Array
    start: Array  # all parameters (p,)
    unknown: NDArray[np.intp]
    links: tuple[int, ...]
    scalars: NDArray[np.intp]
    scales: Array
    priors: Array  # P0^-1 of each link


def nearest_physical(
    M: Array,
    beta: Array,
    root: Array,
    prior: Array,
    columns: NDArray[np.intp],
    unknown: NDArray[np.bool_],
    count: int,
    gamma: float,
    where: str,
) -> Array:
    """Return parameters pi (p,) of real bodies: all P_i positive definite, all friction and rotor inertias 0 or more.

    ``M`` (b, p), ``beta`` (b,), ``root`` (b, b) as above; ``prior`` (p,) are the parameters of the robot as described,
    ``count`` the number of its links. What is not ``unknown`` (p,) stays at the prior. So do friction and rotor inertia
    that the prior does not have and that are not among the ``columns`` of the base parameters: no motion shows them.

    Example:
        >>> M, prior = np.eye(3, 10), inertial(np.diag([1.0, 1.0, 1.0, 2.0]))
        >>> found = nearest_physical(M, np.array([2.5, 0.1, 0.0]), 1e3 * np.eye(3), prior, np.arange(3),
        ...                          np.ones(10, bool), 1, 1e-3, "ball")
        >>> found[:3].round(6).tolist()
        [2.5, 0.1, 0.0]
    """
    problem = _problem(M, beta, root, prior, columns, unknown, count, where)
    pi = problem.start
    miss = problem.A @ pi[problem.unknown] - problem.c
    weight = max(gamma, float(miss @ miss))
    while True:
        pi = _newton(problem, pi, weight)
        if weight <= gamma:
            return pi
        weight = max(gamma, weight / 10)


def _problem(
    M: Array,
    beta: Array,
    root: Array,
    prior: Array,
    columns: NDArray[np.intp],
    unknown: NDArray[np.bool_],
    count: int,
    where: str,
) -> _Problem:
    start, mask = prior.copy(), unknown.copy()
    first = 10 * count
    A = root @ M
    shown = np.zeros(len(prior), dtype=bool)
    shown[columns] = True
    mask[first:] &= shown[first:] | (prior[first:] > 0)
    links, priors = [], []
    for i in range(count):
        ten = slice(10 * i, 10 * i + 10)
        if not mask[ten].any():
            continue
        P = _sound(np.einsum("k,kij->ij", prior[ten], UNITS), prior[0:first:10].sum(), first)
        if P is not None and not mask[ten].all():
            found = f"the prior of link {i + 1} is no real body, and part of it is known"
            raise ModelError(describe(found, where=where, fix="let among= name all of the link's parameters"))
        if P is not None:
            start[ten] = inertial(P)
        links.append(i)
        priors.append(np.linalg.inv(np.einsum("k,kij->ij", start[ten], UNITS)))
    indices = np.flatnonzero(mask)
    scalars = indices[indices >= first]
    # A scale for what the prior does not have: its standard deviation if all else were known.
    own = 1 / np.maximum(np.linalg.norm(A[:, scalars], axis=0), 1e-9)
    scales = np.where(start[scalars] > 0, start[scalars], own)
    start[scalars] = scales
    known = np.where(mask, 0.0, prior)
    c = root @ beta - A @ known
    return _Problem(A[:, indices], c, start, indices, tuple(links), scalars, scales, np.array(priors))


def _sound(P: Array, mass: float, size: int) -> Array | None:
    """Return a real body near P, where P is none or hardly one; None where P is sound."""
    length = np.sqrt(max(np.trace(P[:3, :3]) / P[3, 3], 1e-4)) if P[3, 3] > 0 else 0.1
    scale = np.array([length, length, length, 1.0])
    values, vectors = np.linalg.eigh(P / np.outer(scale, scale))
    if values[0] > SOUND * values[-1]:
        return None
    least = max(1e-3 * values[-1], 1e-4 * mass / max(size, 1), 1e-9)
    clipped = (vectors * np.maximum(values, least)) @ vectors.T
    return np.asarray(clipped * np.outer(scale, scale))


def _factors(problem: _Problem, pi: Array) -> Array | None:
    """Return the Cholesky factors (links, 4, 4) of the pseudo-inertias, or None where one is not positive definite."""
    if (pi[problem.scalars] <= 0).any():
        return None
    ten = np.array([pi[10 * i : 10 * i + 10] for i in problem.links]).reshape(-1, 10)
    try:
        return np.asarray(np.linalg.cholesky(np.einsum("lk,kij->lij", ten, UNITS)))
    except np.linalg.LinAlgError:
        return None


def _cost(problem: _Problem, pi: Array, gamma: float) -> float:
    """Return the function that is minimised; infinite outside of its domain."""
    L = _factors(problem, pi)
    if L is None:
        return np.inf
    miss = problem.A @ pi[problem.unknown] - problem.c
    x = pi[problem.scalars] / problem.scales
    distance = (x - np.log(x)).sum() - 2 * np.log(np.diagonal(L, axis1=1, axis2=2)).sum()
    distance += np.einsum("lij,lik,ljk->", problem.priors, L, L)
    return float(miss @ miss / 2 + gamma * distance)


def _newton(problem: _Problem, pi: Array, gamma: float) -> Array:
    """Return the minimum for one gamma: damped Newton steps, each a least-squares problem."""
    where = {int(k): n for n, k in enumerate(problem.unknown)}
    for _ in range(STEPS):
        L = _factors(problem, pi)
        assert L is not None
        inverse = np.linalg.inv(L)
        blocks = [problem.A]
        right = [problem.c - problem.A @ pi[problem.unknown]]
        for i, Li, back, prior in zip(problem.links, L, inverse, problem.priors, strict=True):
            own = [k for k in range(10 * i, 10 * i + 10) if k in where]
            block = np.zeros((16, len(where)))
            block[:, [where[k] for k in own]] = np.stack(
                [(back @ UNITS[k - 10 * i] @ back.T).ravel() for k in own], axis=1
            )
            blocks.append(np.sqrt(gamma) * block)
            right.append(-np.sqrt(gamma) * (Li.T @ prior @ Li - np.eye(4)).ravel())
        x = pi[problem.scalars]
        block = np.zeros((len(x), len(where)))
        block[np.arange(len(x)), [where[int(k)] for k in problem.scalars]] = np.sqrt(gamma) / x
        blocks.append(block)
        right.append(-np.sqrt(gamma) * (x / problem.scales - 1))
        J = np.concatenate(blocks)
        lengths = np.linalg.norm(J, axis=0)
        step = np.linalg.lstsq(J / lengths, np.concatenate(right), rcond=None)[0] / lengths
        decrement = float(np.sum((J @ step) ** 2))
        if decrement < 1e-10 * min(gamma, 1.0):
            return pi
        pi, moved = _moved(problem, pi, step, gamma, decrement)
        if not moved:  # rounding hides what is left to gain
            return pi
    return pi


def _moved(problem: _Problem, pi: Array, step: Array, gamma: float, decrement: float) -> tuple[Array, bool]:
    """Return the parameters after as much of a step as lowers the cost enough, and whether there was any."""
    before, share = _cost(problem, pi, gamma), 1.0
    while share > 1e-12:
        trial = pi.copy()
        trial[problem.unknown] += share * step
        if _cost(problem, trial, gamma) <= before - 1e-4 * share * decrement:
            return trial, True
        share /= 2
    return pi, False
