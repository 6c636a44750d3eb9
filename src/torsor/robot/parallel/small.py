"""Small symbolic linear systems: triangular parts are solved by substitution."""

from collections.abc import Sequence
from typing import NamedTuple

import casadi as ca

from torsor.dynamics.loops.factors import Columns, reflected


class _Order(NamedTuple):
    """The elimination order of a matrix.

    ``first`` are entries (row, column) that are the only ones in their row, with the other rows of the column.
    ``later`` are the only ones in their column, which are solved last, with the columns solved before. ``rows`` and
    ``columns`` form the dense core.
    """

    first: list[tuple[int, int, list[int]]]
    later: list[tuple[int, int, list[int]]]
    rows: list[int]
    columns: list[int]


def _order(A: ca.SX) -> _Order:
    rows, columns = list(range(A.size1())), list(range(A.size2()))
    order = _Order([], [], rows, columns)
    while rows:
        in_row = {i: [j for j in columns if not A[i, j].is_zero()] for i in rows}
        in_column = {j: [i for i in rows if not A[i, j].is_zero()] for j in columns}
        single = next((i for i in rows if len(in_row[i]) == 1), None)
        if single is not None:
            j = in_row[single][0]
            order.first.append((single, j, in_column[j]))
            rows.remove(single)
            columns.remove(j)
            continue
        alone = next((j for j in columns if len(in_column[j]) == 1), None)
        if alone is None:
            break
        i = in_column[alone][0]
        columns.remove(alone)
        order.later.append((i, alone, list(columns)))
        rows.remove(i)
    return order


def solve(A: ca.SX, B: ca.SX) -> ca.SX:
    """Return A^-1 B by eliminating rows and columns with one entry, then solving for the dense core."""
    A, B = ca.densify(ca.SX(A)), ca.densify(ca.SX(B))
    order, X = _order(A), dict[int, ca.SX]()
    right = ca.vertsplit(B) if A.size1() else []
    for single, j, others in order.first:
        X[j] = right[single] / A[single, j]
        for i in others:
            right[i] = right[i] - A[i, j] * X[j]
    if order.rows:
        core = _core(A[order.rows, order.columns], ca.vertcat(*(right[i] for i in order.rows)))
        X.update(zip(order.columns, core, strict=True))
    for i, j, known in reversed(order.later):
        rest = right[i]
        for k in known:
            rest = rest - A[i, k] * X[k]
        X[j] = rest / A[i, j]
    return ca.vertcat(ca.SX(0, B.size2()), *(X[j] for j in range(A.size2())))


def _core(A: ca.SX, B: ca.SX) -> list[ca.SX]:
    """Return the rows of A^-1 B of the dense core."""
    if A.size1() == 2:
        a, b, c, d = A[0, 0], A[0, 1], A[1, 0], A[1, 1]
        inverse = 1 / (a * d - b * c)
        return [(d * B[0, :] - b * B[1, :]) * inverse, (a * B[1, :] - c * B[0, :]) * inverse]
    return list(ca.vertsplit(Columns(A).solve(B)))


def margin(A: ca.SX, rows: Sequence[float], columns: Sequence[float], signed: bool = False) -> list[ca.SX]:
    """Return numbers of which at least one is zero if A is singular.

    ``rows`` and ``columns`` are the scales of the rows and columns of A. If ``signed``, the product of the numbers has
    the sign of the determinant, up to a constant factor of -1.
    """
    A = ca.densify(ca.SX(A))
    order = _order(A)
    result = [A[i, j] * (columns[j] / rows[i]) for i, j, _ in [*order.first, *order.later]]
    if not order.rows:
        return result
    core = A[order.rows, order.columns]
    scaled = ca.diag(ca.SX([1 / rows[i] for i in order.rows])) @ core
    lengths = [ca.norm_2(scaled[:, k]) for k in range(len(order.columns))]
    result += [length * columns[j] for length, j in zip(lengths, order.columns, strict=True)]
    if len(order.rows) == 2:
        determinant = core[0, 0] * core[1, 1] - core[0, 1] * core[1, 0]
        across = rows[order.rows[0]] * rows[order.rows[1]]
        return [*result, determinant / (across * lengths[0] * lengths[1])]
    if signed:
        return [*result, reflected(scaled, ca.SX(len(order.rows), 1))[1]]
    return [*result, Columns(core).independence()]


def least(values: Sequence[ca.SX], signed: bool = False) -> ca.SX:
    """Return (sum of 1 / x^2)^(-1/2), a smooth minimum of magnitudes; ``signed`` adds the sign of the product."""
    size = 1 / ca.sqrt(sum((1 / item**2 for item in values), start=ca.SX(0)))
    if not signed:
        return size
    sign = ca.SX(1)
    for value in values:
        sign = sign * ca.if_else(value >= 0, 1, -1)
    return sign * size
