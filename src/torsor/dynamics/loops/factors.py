"""Matrix factorisations without pivoting: a traced sequence of operations is fixed and cannot choose pivots.

``Columns`` is a QR factorisation of any matrix by modified Gram-Schmidt, and ``Squares`` is the L D L^T factorisation
of a positive definite matrix. Neither needs pivots, and both keep structural zeros.
"""

import casadi as ca


def placed(count: int, places: list[int], rows: ca.SX) -> ca.SX:
    """Return a matrix with ``count`` rows that has ``rows`` at ``places`` and structural zeros elsewhere."""
    whole = ca.SX(count, rows.size2())
    whole[places, :] = rows
    return whole


class Columns:
    """A = Q R with orthonormal columns Q (n x m, m <= n) and R upper triangular.

    The columns of Q are eliminated from the right-hand side one by one, as they are from A, so the solution is backward
    stable although Q loses orthogonality (Bjorck 1967). In reverse order, this also applies to A^T.
    """

    def __init__(self, A: ca.SX):
        self.shape, self._Q, self._R = A.shape, list[ca.SX](), ca.SX(A.size2(), A.size2())
        for j, column in enumerate(ca.horzsplit(ca.densify(A)) if A.size2() else []):
            for k, q in enumerate(self._Q):
                self._R[k, j] = ca.dot(q, column)
                column = column - self._R[k, j] * q
            self._R[j, j] = ca.sqrt(ca.dot(column, column))
            self._Q.append(column / self._R[j, j])

    def independence(self) -> ca.SX:
        """Return 1 for orthogonal columns and 0 if one column is a linear combination of others."""
        return _independence(self._R)

    def solve(self, B: ca.SX) -> ca.SX:
        """Return the least-squares solution X (m x k) of A X = B (n x k)."""
        Y, B = list[ca.SX](), ca.densify(B)
        for q in self._Q:
            Y.append(q.T @ B)
            B = B - q @ Y[-1]
        return _back(self._R, Y, B.size2())

    def solve_transposed(self, B: ca.SX) -> ca.SX:
        """Return the minimum-norm solution X (n x k) of A^T X = B (m x k)."""
        X, Y = ca.SX.zeros(self.shape[0], B.size2()), list[ca.SX]()  # Y: the rows of R^-T B
        for k, row in enumerate(ca.vertsplit(ca.densify(B)) if B.size1() else []):
            rest = sum((self._R[j, k] * Y[j] for j in range(k)), start=ca.SX(1, B.size2()))
            Y.append((row - rest) / self._R[k, k])
        for q, y in reversed(list(zip(self._Q, Y, strict=True))):
            X = X + q @ (y - q.T @ X)
        return X


def reflected(A: ca.SX, b: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return A^-1 b (n x 1) by Householder reflections, and the independence of A's columns times sign(det A)."""
    n, side = A.size1(), ca.SX(1)
    columns = [ca.vertsplit(item) for item in ca.horzsplit(ca.densify(ca.horzcat(A, b)))] if n else []
    R = ca.SX(n, n)
    for j in range(n):
        x = columns[j][j:]
        length, toward = ca.sqrt(sum(item**2 for item in x)), ca.if_else(x[0] >= 0, 1, -1)
        mirror = [x[0] + toward * length, *x[1:]]
        scale = length * (length + toward * x[0])
        for column in columns[j + 1 :]:
            seen = sum(m * c for m, c in zip(mirror, column[j:], strict=True)) / scale
            column[j:] = [c - m * seen for m, c in zip(mirror, column[j:], strict=True)]
        columns[j][j], side = -toward * length, side * toward
        for i in range(j + 1):
            R[i, j] = columns[j][i]
    return _back(R, columns[n] if n else [], 1), side * _independence(R)


def _back(R: ca.SX, Y: list[ca.SX], width: int) -> ca.SX:
    """Return R^-1 Y, from the rows of Y."""
    X: list[ca.SX] = [ca.SX(1, width)] * len(Y)
    for k in reversed(range(len(Y))):
        rest = sum((R[k, j] * X[j] for j in range(k + 1, len(Y))), start=ca.SX(1, width))
        X[k] = (Y[k] - rest) / R[k, k]
    return ca.vertcat(ca.SX(0, width), *X)


def _independence(R: ca.SX) -> ca.SX:
    """Return the independence of the columns of Q R, from 0 (dependent) to 1 (orthogonal).

    For each column, the component orthogonal to the previous columns is a fraction of its length. The result is the
    inverse of the root mean square of the inverse fractions. Unlike the smallest fraction, it propagates NaN.
    """
    n, total = R.size2(), ca.SX(0)
    for j in range(n):
        total += ca.sumsqr(R[: j + 1, j]) / R[j, j] ** 2
    return ca.sqrt(n / total) if n else ca.SX(1)


class Squares:
    """M = L diag(D) L^T, symmetric and positive definite.

    ``order`` is the order of elimination. For the mass matrix of a tree, elimination from the tips to the root has no
    fill-in (Featherstone 2005).
    """

    def __init__(self, M: ca.SX, order: list[int] | None = None):
        self.order = list(range(M.size1())) if order is None else order
        ordered = M[self.order, self.order]
        self.D, self.L_T = ca.ldl(ordered, False)[:2] if self.order else (ca.SX(0, 1), ordered)  # L^T without diagonal
        above, right_of = self.L_T.sparsity().get_triplet()
        self._pairs = list(zip(above, right_of, strict=True))  # column by column

    def forth(self, right: ca.SX) -> list[ca.SX]:
        """Return the rows of L^-1 times the right-hand side, whose rows are in the order of elimination."""
        rows = ca.vertsplit(right) if right.size1() else []
        for i, j in self._pairs:
            rows[j] = rows[j] - self.L_T[i, j] * rows[i]
        return list(rows)

    def back(self, rows: list[ca.SX], width: int) -> ca.SX:
        """Return L^-T times ``rows``, in the order of elimination; shorter rows are padded with zeros."""
        for i, j in reversed(self._pairs):
            rows[i] = rows[i] - self.L_T[i, j] * rows[j][:, : rows[i].size2()]
        padded = (ca.horzcat(row, ca.SX(1, width - row.size2())) for row in rows)
        return ca.vertcat(ca.SX(0, width), *padded)

    def solve(self, right: ca.SX) -> ca.SX:
        """Return M^-1 times the right-hand side."""
        rows = [row / self.D[k] for k, row in enumerate(self.forth(right[self.order, :]))]
        return self.placed(self.back(rows, right.size2()))

    def placed(self, rows: ca.SX) -> ca.SX:
        """Return ``rows``, which are in the order of elimination, in their original order."""
        return placed(rows.size1(), self.order, rows)

    def inverse(self) -> ca.SX:
        """Return M^-1 in the order of elimination; each row depends only on later rows, so one triangle is computed."""
        rows = [row / self.D[k] for k, row in enumerate(self.forth(ca.densify(ca.SX.eye(len(self.order)))))]
        triangle = self.back([row[:, : k + 1] for k, row in enumerate(rows)], len(rows))
        return ca.SX(ca.tril2symm(triangle))
