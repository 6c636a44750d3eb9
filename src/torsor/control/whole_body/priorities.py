"""Strict priorities: tasks of a later priority move only what those before leave free.

After each priority its tasks keep what they reached: J_i a = J_i a* is an equation of the programs that follow, each of
which minimises the errors of its own tasks (Kanoun, Lamiraux and Wieber 2011; Escande, Mansard and Wieber 2014). The
constraints hold in all of them.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from torsor.base.arrays import Array
from torsor.control.whole_body.solver import FAILED, SOLVED, Problem, solve


def solve_levels(
    problem: Problem, x: Array, J: Array, b: Array, levels: Sequence[int], regularisation: tuple[float, float]
) -> tuple[Array, int]:
    """Return the solution with all priorities, and the solver's flag, from x, that of the first priority.

    J (k x nv) and b (k) are the tasks J a = b, of which ``levels`` have that many rows each.
    """
    (count, nv), size = J.shape, len(x)
    ends = np.cumsum(levels)
    weights = np.full(size, regularisation[1])
    weights[:nv] = regularisation[0]
    wide = np.zeros((count, size))
    wide[:, :nv] = J
    for first, last in pairwise(ends):
        kept = wide[:first]
        reached = kept @ x
        own = wide[first:last]
        A = np.concatenate((problem.A, kept))
        lower, upper = (np.concatenate((each, reached)) for each in (problem.lower, problem.upper))
        kinds = np.concatenate((problem.kinds, np.full(first, 5, dtype=np.int32)))
        H = own.T @ own + np.diag(weights)
        x, flag, _ = solve(Problem(H, -own.T @ b[first:last], A, lower, upper, kinds, problem.equations))
        if flag != SOLVED:
            return x, FAILED  # there is a solution, that of the priority before
    return x, SOLVED
