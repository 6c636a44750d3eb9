"""Inertial and friction parameters, on which forces depend linearly, and the identifiable base parameters."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.base.arrays import Array
from torsor.base.checks import frozen_array, several
from torsor.base.errors import ModelError, shortened
from torsor.dynamics import Tree, parameter_basis, parameter_names, parameters, regroupings
from torsor.mechanism import Mechanism
from torsor.robot.kernels import RobotKernels
from torsor.spatial import from_pseudo_inertia

M = TypeVar("M", bound=Mechanism)

# Rank tolerance: a column is dependent if less than this fraction of its length is independent of the others. Rounding
# errors are far smaller, geometric effects far larger.
RANK_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """Base parameters: each is one robot parameter plus a linear combination of others.

    ``names`` are the linear combinations as text. ``columns`` (b,) are their regressor columns. ``matrix`` (b, p) maps
    all parameters to the ``values`` (b,), so that tau = Y[:, columns] @ values. ``unknown`` (p,) is True for the
    parameters that are not known beforehand. ``by_rule`` is True if Khalil's rules alone determine the regrouping, and
    False if the numerical rank revealed more dependent parameters.
    """

    names: tuple[str, ...]
    columns: NDArray[np.intp]
    matrix: Array
    values: Array
    unknown: NDArray[np.bool_]
    by_rule: bool

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"<BaseParameters: {len(self)} of {self.matrix.shape[1]} parameters>"


def with_parameters(robot: M, parameters: ArrayLike) -> M:
    """Return a copy of the robot with other inertial and friction parameters (p,); see ``robot.inertial.replaced``."""
    pi = frozen_array(parameters, (len(parameter_names(robot)),), robot.name, "parameters")
    links, basis = [], np.array(parameter_basis())
    for link, ten in zip(robot.links, pi[: 10 * len(robot.links)].reshape(-1, 10), strict=True):
        if ten[0] < 0 or (ten[0] == 0 and ten[1:4].any()):
            message = f"m is {ten[0]:.6g} kg and m c is {shortened(ten[1:4])} kg m"
            fix = "identify(..., physical=True) returns physically consistent parameters"
            where, allowed = f"{robot.name}: {link.where}", "a mass above 0, or 0 for all of them"
            raise ModelError(message, where=where, allowed=allowed, fix=fix)
        mass, com, inertia = from_pseudo_inertia(np.einsum("k,kij->ij", ten, basis))
        links.append(replace(link, mass=mass, com=com, inertia=(inertia + inertia.T) / 2))
    joints, rest = [], pi[10 * len(robot.links) :].reshape(-1, 3)
    for joint in robot.joints:
        drive, rest = rest[: joint.nv], rest[joint.nv :]
        joints.append(replace(joint, rotor_inertia=drive[:, 0], coulomb=drive[:, 1], viscous=drive[:, 2]))
    return replace(robot, links=tuple(links), joints=tuple(joints))


def base_parameters(kernels: RobotKernels, seed: int, among: Sequence[str], rows: Sequence[int]) -> BaseParameters:
    """Return the base parameters of a tree for which the forces ``rows`` are known; see ``robot.inertial.base``."""
    robot, exact = kernels.mechanism, kernels.exact
    names, nv = parameter_names(robot), robot.nv
    rng = np.random.default_rng(seed)
    free = [joint.kind.name == "free" for joint in robot.joints for _ in range(3 * joint.nv)]
    undriven = np.array([False] * (10 * len(robot.links)) + free, dtype=bool) & (parameters(robot) == 0)
    unknown = unknown_parameters(robot.name, names, among) & ~undriven  # a free joint without a drive has no friction
    count = motions_needed(len(names), len(rows))
    q = kernels.call("integrate", robot.neutral(), rng.normal(size=(count, nv)))
    v, a = rng.normal(size=(2, count, nv))
    return decomposed(robot, exact.call("regressor", q, v, a)[:, list(rows)], unknown)


def motions_needed(p: int, forces: int) -> int:
    """Return how many random motions, each with ``forces`` forces, determine the base parameters among p parameters."""
    return 4 * p // max(forces, 1) + 10


def decomposed(robot: Mechanism, regressor: Array, unknown: NDArray[np.bool_]) -> BaseParameters:
    """Return the base parameters from a regressor (N, n, p), evaluated at N random motions with n forces each."""
    names, p = parameter_names(robot), regressor.shape[-1]
    Y = regressor.reshape(regressor.shape[0] * regressor.shape[1], p) * unknown  # -1 is not allowed where p is 0
    # Masses come last: among dependent parameters, moments are kept and masses are regrouped.
    preferred = [10 * link + k for link in range(len(robot.links)) for k in (9, 7, 4, 5, 6, 8, 1, 2, 3, 0)]
    kept = _independent(Y, [*preferred, *range(len(preferred), p)])
    unseen = np.eye(p)[unknown & ~Y.any(axis=0)] if regressor.shape[1] < robot.nv else np.zeros((0, p))
    rules = _within(np.concatenate([regroupings(Tree.of(robot)), unseen]), unknown)
    hold = np.abs(Y @ rules.T).max(initial=0.0) <= RANK_TOLERANCE * np.abs(Y).max(initial=0.0)
    by_rule = hold and np.linalg.matrix_rank(rules, tol=1e-8) == np.count_nonzero(unknown) - len(kept)
    matrix = _coefficients_by_rule(rules, kept, unknown) if by_rule else _coefficients(Y, kept)
    titles = tuple(_name(row, names, column) for row, column in zip(matrix, kept, strict=True))
    values = matrix @ parameters(robot)
    return BaseParameters(titles, np.array(kept, dtype=np.intp), matrix, values, unknown, bool(by_rule))


def unknown_parameters(where: str, names: Sequence[str], patterns: Sequence[str]) -> NDArray[np.bool_]:
    """Return a mask (p,) of parameters that match the patterns; raise ModelError for a pattern without a match."""
    allowed = "parameter names, such as link1.m, or patterns, such as *.viscous"
    unknown = np.zeros(len(names), dtype=bool)
    for pattern in several(patterns):
        if not isinstance(pattern, str):
            raise ModelError(f"among contains {pattern!r}", value=pattern, where=where, allowed=allowed)
        named = np.array([fnmatchcase(name, pattern) for name in names], dtype=bool)
        if named.size and not named.any():
            raise ModelError(f"no parameter is named {pattern!r}", value=pattern, where=where, allowed=allowed)
        unknown |= named
    return unknown


def _independent(Y: Array, order: list[int]) -> list[int]:
    """Return the indices of columns that span all others, selected in the given order."""
    scale = np.linalg.norm(Y, axis=0)
    largest = scale.max(initial=0.0)
    basis: list[Array] = []
    kept: list[int] = []
    for k in order:
        if scale[k] <= RANK_TOLERANCE * largest:
            continue
        rest = Y[:, k] / scale[k]
        for _ in range(2):  # twice is enough to be orthogonal to rounding
            for b in basis:
                rest = rest - (b @ rest) * b
        length = float(np.linalg.norm(rest))
        if length > RANK_TOLERANCE:
            basis.append(rest / length)
            kept.append(k)
    return sorted(kept)


def _coefficients(Y: Array, kept: list[int]) -> Array:
    """Return the coefficients (b x p) of all columns of Y in terms of the kept ones, by least squares."""
    coefficients = np.linalg.lstsq(Y[:, kept], Y, rcond=None)[0] if kept else np.zeros((0, Y.shape[1]))
    return np.where(np.abs(coefficients) < 1e-9 * max(1.0, np.abs(coefficients).max(initial=0.0)), 0.0, coefficients)


def _within(rules: Array, unknown: NDArray[np.bool_]) -> Array:
    """Return the combinations of changes (r x p) that leave known parameters unchanged."""
    if not len(rules) or unknown.all():
        return rules
    U, sizes, _ = np.linalg.svd(rules[:, ~unknown])
    free = U[:, np.count_nonzero(sizes > 1e-9 * sizes.max(initial=0.0)) :]
    return np.asarray(np.where(unknown, free.T @ rules, 0.0))


def _coefficients_by_rule(rules: Array, kept: list[int], unknown: NDArray[np.bool_]) -> Array:
    """Return the coefficients (b x p) of the unknown columns of the regressor Y in terms of the kept ones.

    The coefficients of known columns are 0. Each row n of ``rules`` (r x p) is a parameter change that does not affect
    the forces: Y n^T = 0. The columns D that are not kept are therefore Y_D = Y_K B with n_D B^T = -n_K.
    """
    coefficients = np.zeros((len(kept), len(unknown)))
    coefficients[np.arange(len(kept)), kept] = 1.0
    others = sorted({int(k) for k in np.flatnonzero(unknown)} - set(kept))
    if others:
        B = np.linalg.lstsq(rules[:, others], -rules[:, kept], rcond=None)[0].T
        coefficients[:, others] = np.where(np.abs(B) < 1e-12 * max(1.0, np.abs(B).max(initial=0.0)), 0.0, B)
    return coefficients


def _name(row: Array, names: tuple[str, ...], column: int) -> str:
    """Return a base parameter as text: a linear combination that begins with the name of ``column``."""
    parts = [names[column]]
    for k in np.flatnonzero(row):
        if k != column:
            coefficient = row[k]
            size = "" if abs(abs(coefficient) - 1) < 1e-9 else f"{abs(coefficient):.6g} "
            parts.append(f"{'+' if coefficient > 0 else '-'} {size}{names[k]}")
    return " ".join(parts)
