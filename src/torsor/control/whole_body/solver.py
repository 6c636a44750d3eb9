"""Quadratic programs of one state: solved by DAQP, and what is in conflict where there is no solution."""

from collections.abc import Iterable
from functools import cache
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import missing
from torsor.control.whole_body.program import INFINITE

SOLVED, INFEASIBLE, FAILED = 1, -1, -4
# Relative to the largest entry: singular values of equations that are zero, and contradictions between equations.
ZERO, CONTRADICTION = 1e-10, 1e-8
MISSED = 1e-8  # what equations may miss, relative to their right sides: rounding leaves 1e-12


class Problem(NamedTuple):
    """1/2 x^T H x + g^T x, lower <= (x, A x) <= upper: the first entries are bounds of x; kinds are 5 for equations.

    ``equations`` is the number of equations whose solution is checked: the first rows of A.
    """

    H: Array
    g: Array
    A: Array
    lower: Array
    upper: Array
    kinds: Array
    equations: int = 0


@cache
def solver() -> Any:
    """Return the module of the solver, which is an optional package."""
    try:
        import daqp
    except ImportError:
        raise missing("whole-body control needs DAQP, which is not installed", "wbc") from None
    return daqp


def solve(problem: Problem) -> tuple[Array, int, Array]:
    """Return x, the solver's exit flag (1: solved, -1: infeasible) and the multipliers of the rows.

    Equations that depend on each other stop the solver: they are then replaced by independent ones.
    """
    H, g, A, lower, upper, kinds, _ = problem
    x, _, flag, info = solver().solve(H, g, A, upper, lower, kinds.copy())
    if flag == INFEASIBLE or (flag == SOLVED and _holds(problem, x)):
        return x, int(flag), info["lam"]
    return _solve_independent(problem)


def _holds(problem: Problem, x: Array) -> bool:
    """Whether x satisfies the equations: a solver may stop early where they depend on each other."""
    if not problem.equations:
        return isfinite(x.dot(x))
    first, last = len(problem.lower) - len(problem.A), problem.equations
    found, wanted = problem.A[:last].dot(x), problem.upper[first : first + last]
    left = found - wanted
    return bool(left.dot(left) <= MISSED**2 * (1.0 + wanted.dot(wanted)))  # False for NaN


def _solve_independent(problem: Problem) -> tuple[Array, int, Array]:
    """Return the same, with the equations replaced by independent ones; contradictions are infeasible."""
    H, g, A, lower, upper, kinds, _ = problem
    first = len(lower) - len(A)
    equal = np.flatnonzero(kinds[first:] == 5)
    U, s, V = np.linalg.svd(A[equal], full_matrices=False)
    keep = s > ZERO * s.max(initial=0.0)
    right = U.T @ upper[first + equal]
    left = upper[first + equal] - U[:, keep] @ right[keep]
    multipliers = np.zeros(len(kinds))
    if np.abs(left).max(initial=0.0) > CONTRADICTION * max(1.0, np.abs(upper[first + equal]).max(initial=0.0)):
        return np.zeros(len(g)), INFEASIBLE, multipliers
    others = np.flatnonzero(kinds != 5)
    inside = others[others >= first] - first
    value = right[keep] / s[keep]
    rows = np.vstack([V[keep], A[inside]])
    low, high = (np.concatenate([each[:first], value, each[first + inside]]) for each in (lower, upper))
    sense = np.zeros(len(low), dtype=np.int32)
    sense[first : first + len(value)] = 5
    x, _, flag, info = solver().solve(H, g, np.ascontiguousarray(rows), high, low, sense)
    if flag == SOLVED and not _holds(problem, x):
        flag = FAILED
    multipliers[others] = np.delete(info["lam"], range(first, first + len(value)))
    multipliers[first + equal] = U[:, keep] @ (info["lam"][first : first + len(value)] / s[keep])
    return x, int(flag), multipliers


def conflict(problem: Problem, groups: dict[str, Array], kept: Iterable[str]) -> tuple[str, ...]:
    """Return names of groups that have no solution together, and have one without any one of them.

    Groups that are ``kept`` hold in any case: the laws of motion.
    """
    lower, upper, kinds = problem.lower.copy(), problem.upper.copy(), problem.kinds.copy()
    needed = list[str]()
    for name, rows in groups.items():
        if name in kept:
            continue
        before = lower[rows], upper[rows], kinds[rows]
        lower[rows], upper[rows], kinds[rows] = -INFINITE, INFINITE, 0
        if solve(problem._replace(lower=lower, upper=upper, kinds=kinds, equations=0))[1] != INFEASIBLE:
            lower[rows], upper[rows], kinds[rows] = before
            needed.append(name)
    return tuple(needed)
