"""The Newton system of a window: five diagonals, made of the systems of its intervals, solved row by row.

Control point i is part of the systems of intervals i - 2, i - 1 and i. With A = L D L^T, where L has ones on its
diagonal and L1, L2 below, one sweep gives D, L1, L2 and z = L^-1 b for each row, and one back the solution
x_i = z_i / D_i - L1_i x_i+1 - L2_i x_i+2.
"""

from functools import cache, lru_cache
from typing import Any

import casadi as ca
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from torsor.base.arrays import Array
from torsor.compiler import compile
from torsor.compiler.repeat import Call
from torsor.compiler.workspace import SHORT, Workspace

SYSTEM = 10  # numbers of an interval: the upper triangle of its matrix (6), its right side (3), and one more
REMEMBERED = 64  # numbers of intervals
STATE = 4  # numbers of a row after the first sweep: D, L1, L2, z


@cache
def row() -> ca.Function:
    """Return D, L1, L2 and z of a row from the systems (3, 10) of its intervals and the rows (2, 4) before it."""
    systems, known = ca.SX.sym("systems", 3, SYSTEM), ca.SX.sym("known", 2, STATE)
    (D2, _, L22, z2), (D1, L11, L21, z1) = (ca.horzsplit(each) for each in ca.vertsplit(known))
    own = systems[2, 0] + systems[1, 3] + systems[0, 5]
    # Control points that are no variables have empty rows.
    D = ca.if_else(own == 0, 1, own) - L11**2 * D1 - L22**2 * D2
    below, inverse = systems[2, 1] + systems[1, 4] - L11 * D1 * L21, 1 / D
    z = systems[2, 6] + systems[1, 7] + systems[0, 8] - L11 * z1 - L22 * z2
    return ca.Function("row", [systems, known], [ca.vertcat(D, below * inverse, systems[2, 2] * inverse, z)])


@cache
def back() -> ca.Function:
    """Return the solution in a row from its D, L1, L2 and z, and the solutions (2) in the rows after it."""
    known, after = ca.SX.sym("known", STATE), ca.SX.sym("after", 2)
    D, L1, L2, z = ca.vertsplit(known)
    return ca.Function("back", [known, after], [z / D - L1 * after[0] - L2 * after[1]])


def solution(count: int) -> ca.Function:
    """Return the solution (count + 2) of the system of a window from those of its intervals (count, 10).

    Example:
        >>> systems = np.zeros((2, 10))
        >>> systems[:, [0, 3, 5]], systems[:, 6:9] = 2.0, 4.0  # two times 2 I, and 4
        >>> solution(2)(systems).full().ravel().tolist()
        [2.0, 2.0, 2.0, 2.0]
    """
    systems = ca.SX.sym("systems", count, SYSTEM)
    none = ca.SX.zeros(2, SYSTEM)
    padded, states = ca.vertcat(none, systems, none), [ca.SX([[1, 0, 0, 0]])] * 2
    for i in range(count + 2):
        states.append(row()(padded[i : i + 3, :], ca.vertcat(*states[-2:])).T)
    found = [ca.SX(0), ca.SX(0)]
    for state in reversed(states[2:]):
        found.insert(0, back()(state, ca.vertcat(*found[:2])))
    return ca.Function("solve", [systems], [ca.vertcat(*found[:-2])])


def solve(systems: Array) -> Array:
    """Return the same for long windows, by functions that are compiled once for all numbers of intervals.

    Example:
        >>> systems = np.random.default_rng(0).uniform(1.0, 2.0, (30, 10)) + [9, 0, 0, 9, 0, 9, 0, 0, 0, 0]
        >>> bool(np.allclose(solve(systems), solution(30)(systems).full().ravel(), rtol=1e-12))
        True
    """
    work = _sweeps(len(systems))
    room = work.take()
    padded, states, found = room.arrays.values()
    padded[:2], padded[2:-2], padded[-2:] = 0.0, systems, 0.0
    states[:2], found[-2:] = [1.0, 0.0, 0.0, 0.0], 0.0
    room.run()
    result: Array = found[:-2].copy()
    work.give_back(room)
    return result


@lru_cache(maxsize=REMEMBERED)
def _sweeps(count: int) -> Workspace:
    """Return both sweeps for so many intervals."""

    def calls(arrays: dict[str, Array]) -> list[Call]:
        systems, states, found = (each[:, None] for each in arrays.values())
        near, before = (
            np.moveaxis(sliding_window_view(each, size, axis=0), -1, 2) for each, size in ((systems, 3), (states, 2))
        )
        after = sliding_window_view(found, 2, axis=0)
        first, second = _kernels()
        return [
            Call(first, [near, before[:-1]], [states[2:]]),
            Call(second, [states[:1:-1], after[:0:-1]], [found[-3::-1]]),
        ]

    return Workspace({"systems": (count + 4, SYSTEM), "states": (count + 4, STATE), "found": (count + 4,)}, calls)


@cache
def _kernels() -> tuple[Any, Any]:
    return (
        compile(row(), inputs=[(3, SYSTEM), (2, STATE)], outputs=[(STATE,)], width=SHORT),
        compile(back(), inputs=[(STATE,), (2,)], outputs=[()], width=SHORT),
    )
