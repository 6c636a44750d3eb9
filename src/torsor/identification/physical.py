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
STEPS = 200  # Newton steps for one gamma; some five are enough
SETTLED = 1e-8  # squared length of a step, in units of gamma, that ends the search
NEAR = 0.1  # the same on the way
SHRINK = 1.5  # gamma falls by this much at a time: beyond 2, Newton's full step leaves the domain
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
        >>> found = nearest_physical(M, np.array([2.5, 0.1, 0.2]), 1e3 * np.eye(3), prior, np.arange(3),
        ...                          np.ones(10, bool), 1, 1e-3, "ball")
        >>> found[:3].round(6).tolist()
        [2.5, 0.1, 0.2]
    """
    problem = _problem(M, beta, root, prior, columns, unknown, count, where)
    pi = problem.start
    miss = problem.A @ pi[problem.unknown] - problem.c
    weight = max(gamma, float(miss @ miss))
    while True:
        pi = _newton(problem, pi, weight, SETTLED if weight <= gamma else NEAR, where)
        if weight <= gamma:
            return pi
        weight = max(gamma, weight / SHRINK)


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
        P = _sound(np.einsum("k,kij->ij", prior[ten], UNITS), float(prior[0:first:10].mean()))
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


def _sound(P: Array, mass: float) -> Array | None:
    """Return a real body near P, where P is none or hardly one, beside links of a usual mass; None if P is sound."""
    length = np.sqrt(max(np.trace(P[:3, :3]) / P[3, 3], 1e-4)) if P[3, 3] > 0 else 0.1
    scale = np.array([length, length, length, 1.0])
    values, vectors = np.linalg.eigh(P / np.outer(scale, scale))
    if values[0] > SOUND * values[-1]:
        return None
    least = max(1e-3 * values[-1], 1e-3 * mass, 1e-9)
    clipped = (vectors * np.maximum(values, least)) @ vectors.T
    return np.asarray(clipped * np.outer(scale, scale))


def _newton(problem: _Problem, pi: Array, gamma: float, near: float, name: str) -> Array:
    """Return the minimum for one gamma: Newton steps, each a least-squares problem, each as long as it goes down."""
    where = {int(k): n for n, k in enumerate(problem.unknown)}
    root, rounding = np.sqrt(gamma), (1e-13 * float(np.linalg.norm(problem.c))) ** 2
    for _ in range(STEPS):
        ten = np.array([pi[10 * i : 10 * i + 10] for i in problem.links]).reshape(-1, 10)
        try:
            L = np.linalg.cholesky(np.einsum("lk,kij->lij", ten, UNITS))
        except np.linalg.LinAlgError:  # rounding beside bodies that are far too small
            break
        x = pi[problem.scalars]
        # Rows of E -> L^-1 E L^-T for each link, and of d -> d / x for what is one number.
        bends = np.zeros((16 * len(L) + len(x), len(where)))
        for n, (i, back) in enumerate(zip(problem.links, np.linalg.inv(L), strict=True)):
            own = [k for k in range(10 * i, 10 * i + 10) if k in where]
            moved = np.einsum("ab,kbc,dc->kad", back, UNITS[[k - 10 * i for k in own]], back)
            bends[16 * n : 16 * n + 16, [where[k] for k in own]] = moved.reshape(-1, 16).T
        for n, k in enumerate(problem.scalars):
            bends[16 * len(L) + n, where[int(k)]] = 1 / x[n]
        pull = np.concatenate(
            [(Li.T @ prior @ Li).ravel() for Li, prior in zip(L, problem.priors, strict=True)] + [x / problem.scales]
        )
        rest = np.concatenate([np.tile(np.eye(4).ravel(), len(L)), np.ones(len(x))]) - pull
        miss = problem.c - problem.A @ pi[problem.unknown]
        J = np.concatenate([problem.A, root * bends])
        lengths = np.linalg.norm(J, axis=0)
        step = np.linalg.lstsq(J / lengths, np.concatenate([miss, root * rest]), rcond=None)[0] / lengths
        left = float(np.sum((J @ step) ** 2))
        if left < max(near * gamma, rounding):
            return pi
        bent = bends @ step
        turns = np.linalg.eigvalsh(bent[: 16 * len(L)].reshape(-1, 4, 4)).ravel()
        stretches = np.concatenate([turns, bent[16 * len(L) :]])
        share = _share(problem.A @ step, miss, gamma, float(pull @ bent), stretches)
        pi = pi.copy()
        pi[problem.unknown] += share * step
    else:
        if left < NEAR * gamma:  # as near as the way there, with rounding in the way of more
            return pi
    fix = "check the units of tau, raise regularisation, or give a robot that is nearer to the measured one"
    found = "Newton's method found no physical parameters"
    raise ModelError(describe(found, where=name, fix=fix))


def _share(moved: Array, miss: Array, gamma: float, pull: float, stretches: Array) -> float:
    """Return how much of a step goes farthest down, by bisection of the slope along it, which grows.

    ``moved`` is how the step changes what is explained, ``stretches`` the relative changes of all principal values.
    """
    start, growth = gamma * pull - float(moved @ miss), float(moved @ moved)

    def slope(s: float) -> float:
        return start + s * growth - gamma * float(np.sum(stretches / (1 + s * stretches)))

    least = float(stretches.min(initial=0.0))
    low, high = 0.0, 1.0
    if least < 0:
        high = min(1.0, -0.999 / least)
    while slope(high) < 0 and (least >= 0 or 2 * high < -0.999 / least):
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return (low + high) / 2
