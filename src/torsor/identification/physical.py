"""Physically consistent parameters closest to the measurements, from a convex problem solved by Newton's method.

    minimise  |root (M pi - beta)|^2 / 2 + gamma (sum of d(P_i, P0_i) + sum of d(x_k, x0_k))
    d(P, P0) = tr(P0^-1 P) - log det(P0^-1 P) - 4,      d(x, x0) = x / x0 - log(x / x0) - 1

Here M pi are the base parameters, and beta and root^T root = covariance^-1 define the least-squares estimate. P_i is
the pseudo-inertia (4 x 4) of link i, which is linear in its ten parameters, and x_k are rotor inertias and friction. d
is the distance of Lee, Wensing and Park ("Geometric robot dynamic identification", 2020). It is independent of units
and frames, convex, and keeps P positive definite and x positive. Parameters that the measurements do not determine stay
close to the prior P0; with a small gamma, the others hardly change. Each Newton step is a least-squares problem: with P
= L L^T, the Hessian of d is B^T B, where B is the matrix of E -> L^-1 E L^-T.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from torsor.base.arrays import Array, Flags, Indices
from torsor.base.errors import ModelError, warn
from torsor.dynamics import inertial, parameter_basis
from torsor.identification.bases import environment_forces
from torsor.identification.closed_robot import MeasuredRobot, whole
from torsor.identification.logs.force_model import ForceModel, Motion
from torsor.identification.logs.model_checks import column_findings, scale_findings, sign_findings
from torsor.identification.measurements import Measurements

UNITS = np.array(parameter_basis())
MAX_NEWTON_STEPS = 200  # maximum number of Newton steps per gamma; five are typical
STEP_TOLERANCE = 1e-8  # squared norm of the step at convergence, in units of gamma
CONTINUATION_TOLERANCE = 0.1  # the same for larger gammas during continuation
GAMMA_RATIO = 1.5  # ratio of successive gammas; for 2 or more, a full Newton step leaves the domain
EXACT = 1e-5  # relative standard deviation of a known total mass
MIN_EIGENVALUE_RATIO = 1e-6  # minimum accepted relative eigenvalue of a prior pseudo-inertia
NO_PHYSICAL_PARAMETERS = "Newton's method found no physical parameters"


class UnphysicalError(ModelError):
    """Error for an estimate without physically consistent parameters nearby."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """A least-squares estimate: base parameters ``beta`` (b,) = ``M`` (b, p) pi, and ``root`` (b, b).

    The module docstring defines these symbols.
    """

    M: Array
    beta: Array
    root: Array


@dataclass(frozen=True, eq=False)
class Prior:
    """The prior robot: all ``parameters`` (p,), the mask ``unknown`` (p,), and the number of ``links``.

    ``columns`` are the indices of the parameters that represent the base parameters.
    """

    parameters: Array
    columns: Indices
    unknown: Flags
    links: int


@dataclass(frozen=True, eq=False)
class _Problem:
    """The data: ``A`` (b, z) and ``c`` (b,) for the z unknowns, and the indices of links and scalars."""

    A: Array
    c: Array
    start: Array  # all parameters (p,)
    unknown: Indices
    links: tuple[int, ...]
    scalars: Indices
    scales: Array
    priors: Array  # P0^-1 of each link


def nearest_physical(estimate: Estimate, prior: Prior, gamma: float, where: str, mass: float | None = None) -> Array:
    """Return physically consistent parameters pi (p,): P_i positive definite, friction and rotor inertias 0 or more.

    Known parameters keep their prior values. Friction and rotor inertias that are zero in the prior and not in
    ``columns`` also stay zero, because no motion excites them. ``mass`` (kg) is the sum of all masses, if known.
    """
    problem = _problem(estimate, prior, where)
    if mass is not None:
        problem = _with_mass(problem, prior, mass, where)
    pi = problem.start
    miss = problem.A @ pi[problem.unknown] - problem.c
    weight = max(gamma, float(miss @ miss))
    while True:
        pi = _newton(problem, pi, weight, STEP_TOLERANCE if weight <= gamma else CONTINUATION_TOLERANCE, where)
        if weight <= gamma:
            return pi
        weight = max(gamma, weight / GAMMA_RATIO)


def _problem(estimate: Estimate, prior: Prior, where: str) -> _Problem:
    parameters, count = prior.parameters, prior.links
    start, mask = parameters.copy(), prior.unknown.copy()
    first = 10 * count
    A = estimate.root @ estimate.M
    mask[first:] &= np.isin(np.arange(len(parameters)), prior.columns)[first:] | (parameters[first:] > 0)
    links, priors = [], []
    for i in range(count):
        ten = slice(10 * i, 10 * i + 10)
        if not mask[ten].any():
            continue
        P = _repair(np.einsum("k,kij->ij", parameters[ten], UNITS), float(parameters[0:first:10].mean()))
        if P is not None and not mask[ten].all():
            message = f"the prior of link {i + 1} is not physically consistent, and some of its parameters are known"
            raise ModelError(message, where=where, fix="include all parameters of the link in `among`")
        if P is not None:
            start[ten] = inertial(P)
        links.append(i)
        priors.append(np.linalg.inv(np.einsum("k,kij->ij", start[ten], UNITS)))
    indices = np.flatnonzero(mask)
    scalars = indices[indices >= first]
    # The scale of a scalar that is zero in the prior is its standard deviation if all others are known.
    own = 1 / np.maximum(np.linalg.norm(A[:, scalars], axis=0), 1e-9)
    scales = np.where(start[scalars] > 0, start[scalars], own)
    start[scalars] = scales
    c = estimate.root @ estimate.beta - A @ np.where(mask, 0.0, parameters)
    return _Problem(A[:, indices], c, start, indices, tuple(links), scalars, scales, np.array(priors))


def _with_mass(problem: _Problem, prior: Prior, mass: float, where: str) -> _Problem:
    """Return the problem with the total mass as an additional measurement of relative accuracy ``EXACT``."""
    masses = np.arange(0, 10 * prior.links, 10)
    free = np.isin(problem.unknown, masses)
    rest = mass - float(prior.parameters[np.setdiff1d(masses, problem.unknown)].sum())
    if not free.any() or rest <= 0:
        message = f"is {mass:g} kg, but known masses sum to {mass - rest:g} kg"
        raise ModelError(message, argument="mass", where=where, allowed="more than the sum of the known masses")
    scale = 1 / (EXACT * mass)
    return replace(problem, A=np.vstack([problem.A, scale * free]), c=np.append(problem.c, scale * rest))


def _repair(P: Array, mass: float) -> Array | None:
    """Return a positive definite matrix close to an indefinite P, with ``mass`` as scale; None if P is definite."""
    length = np.sqrt(max(np.trace(P[:3, :3]) / P[3, 3], 1e-4)) if P[3, 3] > 0 else 0.1
    scale = np.array([length, length, length, 1.0])
    values, vectors = np.linalg.eigh(P / np.outer(scale, scale))
    if values[0] > MIN_EIGENVALUE_RATIO * values[-1]:
        return None
    clipped = (vectors * np.maximum(values, max(1e-3 * values[-1], 1e-3 * mass, 1e-9))) @ vectors.T
    return np.asarray(clipped * np.outer(scale, scale))


def _newton(problem: _Problem, pi: Array, gamma: float, near: float, name: str) -> Array:
    """Return the minimum for one gamma, by Newton steps with an exact line search."""
    where = {int(k): n for n, k in enumerate(problem.unknown)}
    root, rounding = np.sqrt(gamma), (1e-13 * float(np.linalg.norm(problem.c))) ** 2
    for _ in range(MAX_NEWTON_STEPS):
        ten = np.array([pi[10 * i : 10 * i + 10] for i in problem.links]).reshape(-1, 10)
        try:
            L = np.linalg.cholesky(np.einsum("lk,kij->lij", ten, UNITS))
        except np.linalg.LinAlgError:  # due to rounding errors of very small bodies
            break
        x = pi[problem.scalars]
        # B contains rows of E -> L^-1 E L^-T for each link, and of d -> d / x for each scalar.
        B = np.zeros((16 * len(L) + len(x), len(where)))
        for n, (i, back) in enumerate(zip(problem.links, np.linalg.inv(L), strict=True)):
            indices = [k for k in range(10 * i, 10 * i + 10) if k in where]
            moved = np.einsum("ab,kbc,dc->kad", back, UNITS[[k - 10 * i for k in indices]], back)
            B[16 * n : 16 * n + 16, [where[k] for k in indices]] = moved.reshape(-1, 16).T
        for n, k in enumerate(problem.scalars):
            B[16 * len(L) + n, where[int(k)]] = 1 / x[n]
        pulls = [(Li.T @ prior @ Li).ravel() for Li, prior in zip(L, problem.priors, strict=True)]
        pull = np.concatenate([*pulls, x / problem.scales])
        rest = np.concatenate([np.tile(np.eye(4).ravel(), len(L)), np.ones(len(x))]) - pull
        miss = problem.c - problem.A @ pi[problem.unknown]
        J = np.concatenate([problem.A, root * B])
        lengths = np.linalg.norm(J, axis=0)
        step = np.linalg.lstsq(J / lengths, np.concatenate([miss, root * rest]), rcond=None)[0] / lengths
        left = float(np.sum((J @ step) ** 2))
        if left < max(near * gamma, rounding):
            return pi
        change = B @ step
        principal = np.linalg.eigvalsh(change[: 16 * len(L)].reshape(-1, 4, 4)).ravel()
        stretches = np.concatenate([principal, change[16 * len(L) :]])
        s = _line_search(problem.A @ step, miss, gamma, float(pull @ change), stretches)
        pi = pi.copy()
        pi[problem.unknown] += s * step
    else:
        if left < CONTINUATION_TOLERANCE * gamma:  # rounding errors limit the accuracy
            return pi
    fix = "check the units of tau, raise `regularisation`, or pass a robot closer to the measured one"
    raise UnphysicalError(NO_PHYSICAL_PARAMETERS, where=name, fix=fix)


def _line_search(moved: Array, miss: Array, gamma: float, pull: float, stretches: Array) -> float:
    """Return the step length with the smallest objective, by bisection of the increasing derivative.

    ``moved`` (b,) is the change of A pi along the step, and ``stretches`` are the relative changes of the principal
    values.
    """
    start, growth = gamma * pull - float(moved @ miss), float(moved @ moved)

    def slope(s: float) -> float:
        return start + s * growth - gamma * float(np.sum(stretches / (1 + s * stretches)))

    least = float(stretches.min(initial=0.0))
    low, high = 0.0, 1.0 if least >= 0 else min(1.0, -0.999 / least)
    while slope(high) < 0 and (least >= 0 or 2 * high < -0.999 / least):
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return (low + high) / 2


MAX_FINDINGS = 3  # largest number of findings in the message
# Warning thresholds: multiple of the least-squares residual, and percent of a force.
WARNING_RATIO, WARNING_PERCENT = 3.0, 5.0


def explained(robot: MeasuredRobot, data: Measurements, mass: float | None, without: Callable[[], Array]) -> ModelError:
    """Return an error for an estimate without physically consistent parameters, with likely causes in the data.

    ``mass`` (kg) is the known total mass, and ``without`` returns the parameters (p,) without this constraint. Each
    force is fitted separately, as in ``first_look``, to find wrong column orders, signs, zeros and units.
    """
    where = robot.name
    if mass is not None:
        try:
            total = float(without()[: 10 * len(whole(robot).links) : 10].sum())
        except UnphysicalError:
            pass
        else:
            message = f"{NO_PHYSICAL_PARAMETERS} with the total mass {mass:.4g} kg, but with {total:.4g} kg"
            fix = "correct or omit `mass` (kg, all moving links), or check the units of tau"
            return ModelError(message, where=where, fix=fix)
    model = ForceModel(robot)
    tau = data.tau + environment_forces(robot, data.q, data.external)
    findings, corrected = column_findings(model, Motion(data.q, data.v, data.a, tau), where)
    findings += [*sign_findings(model, corrected, where), *scale_findings(model, corrected, where)]
    if not findings:
        fix = "check the log (torsor identify --check, or first_look), raise `regularisation`, or pass a robot closer "
        return ModelError(NO_PHYSICAL_PARAMETERS, where=where, fix=f"{fix}to the measured one")
    places = [finding.place.removeprefix(f"{where}: ") for finding in findings[:MAX_FINDINGS]]
    likely = ", and ".join(f"{place}: {each.found}" for place, each in zip(places, findings, strict=False))
    more = f", and {len(findings) - MAX_FINDINGS} more" * (len(findings) > MAX_FINDINGS)
    fixes = "; ".join(dict.fromkeys(each.fix for each in findings[:MAX_FINDINGS]))
    fix = f"{fixes} (in the map of the log, or in the arrays)"
    return ModelError(f"{NO_PHYSICAL_PARAMETERS}. Likely causes: {likely}{more}", where=where, fix=fix)


def check_distance(robot: MeasuredRobot, tau: Array, free: Array, physical: Array, mass: float | None) -> None:
    """Warn if physical parameters explain the forces tau (N, n) far worse than unconstrained parameters.

    ``free`` and ``physical`` (N, n) are the residuals of both, which are 0 for unused forces.
    """
    sizes = (np.sqrt(np.mean(each**2, axis=0)) for each in (tau, free, physical))
    size, before, after = (np.maximum(each, 1e-300) for each in sizes)
    percents = np.where(after > WARNING_RATIO * before, 100 * after / size, 0.0)
    k = int(np.argmax(percents))
    if percents[k] > WARNING_PERCENT:
        message = f"physical parameters leave {percents[k]:.3g} % of the force of {robot.coordinate_names[k]!r} "
        message += "unexplained, "
        message += f"but only {100 * before[k] / size[k]:.3g} % without constraints"
        fix = "check signs, units and column order: torsor identify --check, or first_look"
        if mass is not None:
            fix = f"correct or omit `mass`, {mass:.4g} kg, or {fix}"
        warn(message, where=robot.name, fix=fix)
