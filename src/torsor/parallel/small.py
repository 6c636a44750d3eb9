"""Solving small systems of symbols: what is triangular costs nothing but its entries."""

import casadi as ca

from torsor.dynamics.factors import Columns

__all__ = ["solve"]


def solve(A: ca.SX, B: ca.SX) -> ca.SX:
    """Return A^-1 B: rows and columns with one entry are taken off one after the other, the rest is solved whole.

    Example:
        >>> x = ca.SX.sym("x", 2)
        >>> ca.Function("f", [x], [solve(ca.diag(x), ca.SX([1, 6]))])([2, 3])
        DM([0.5, 2])
    """
    A, B = ca.densify(ca.SX(A)), ca.densify(ca.SX(B))
    rows, columns = list(range(A.size1())), list(range(A.size2()))
    X: dict[int, ca.SX] = {}
    later: list[tuple[int, int, list[int]]] = []  # row, column, and the columns that must be known before
    right = ca.vertsplit(B) if rows else []
    while rows:
        in_row = {i: [j for j in columns if not A[i, j].is_zero()] for i in rows}
        in_column = {j: [i for i in rows if not A[i, j].is_zero()] for j in columns}
        single = next((i for i in rows if len(in_row[i]) == 1), None)
        if single is not None:
            j = in_row[single][0]
            X[j] = right[single] / A[single, j]
            for i in in_column[j]:
                right[i] = right[i] - A[i, j] * X[j]
            rows.remove(single)
            columns.remove(j)
            continue
        alone = next((j for j in columns if len(in_column[j]) == 1), None)
        if alone is None:
            break
        i = in_column[alone][0]
        columns.remove(alone)
        later.append((i, alone, list(columns)))
        rows.remove(i)
    if rows:
        core = _core(A[rows, columns], ca.vertcat(*(right[i] for i in rows)))
        X.update(zip(columns, core, strict=True))
    for i, j, known in reversed(later):
        rest = right[i]
        for k in known:
            rest = rest - A[i, k] * X[k]
        X[j] = rest / A[i, j]
    return ca.vertcat(ca.SX(0, B.size2()), *(X[j] for j in range(A.size2())))


def _core(A: ca.SX, B: ca.SX) -> list[ca.SX]:
    """Return the rows of A^-1 B of what is not triangular."""
    if A.size1() == 2:
        a, b, c, d = A[0, 0], A[0, 1], A[1, 0], A[1, 1]
        inverse = 1 / (a * d - b * c)
        return [(d * B[0, :] - b * B[1, :]) * inverse, (a * B[1, :] - c * B[0, :]) * inverse]
    return list(ca.vertsplit(Columns(A).solve(B)))
