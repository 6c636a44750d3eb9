"""Newton equations of the barrier problem, condensed to the variables.

With slacks s = h(x) of the inequalities, gaps to bounds and their multipliers z eliminated,

    [ W + Sx + H^T Ss H + d   E^T ] [ dx ]      S = z_lower / gap_lower + z_upper / gap_upper
    [ E                       0   ] [ dy ]      E = dc/dx, H = dh/dx

has n + e rows for any number of inequalities. It is solved in the null space of E. If the reduced matrix is not
positive definite, the regularisation d is raised until it is (Waechter and Biegler 2006).
"""

import numpy as np

from torsor.base.arrays import Array

MAX_DIRECT_SIZE = 64  # largest triangular matrix that is inverted directly
DEPENDENCE_TOLERANCE = 1e-10  # relative singular value below which equations count as linearly dependent


def _inverse(L: Array) -> Array:
    """Return the inverse of a lower triangular matrix by recursive halving, mostly with matrix products."""
    n = len(L)
    if n <= MAX_DIRECT_SIZE:
        return np.asarray(np.linalg.inv(L), dtype=float)
    half, result = n // 2, np.zeros_like(L)
    upper, lower = _inverse(L[:half, :half]), _inverse(L[half:, half:])
    result[:half, :half], result[half:, half:] = upper, lower
    result[half:, :half] = -lower @ (L[half:, :half] @ upper)
    return result


class Regularisation:
    """The shift of the diagonal, remembered from one system to the next."""

    def __init__(self) -> None:
        self.last = 0.0

    def values(self, size: float) -> list[float]:
        """Return the shifts to try in order; ``size`` is the largest diagonal entry of the matrix."""
        first = max(1e-20, self.last / 3) if self.last else 1e-4
        growth = 8.0 if self.last else 100.0
        result, value = [0.0], first
        while value < 1e20 * max(size, 1.0):
            result.append(value)
            value *= growth
        return result


def inverse_and_null_space(E: Array) -> tuple[Array, Array]:
    """Return the pseudo-inverse (n, e) of equations E (e, n), and an orthonormal basis of their null space."""
    if not E.size:
        return np.zeros(E.shape[::-1]), np.eye(E.shape[1])
    U, sizes, V = np.linalg.svd(E)
    rank = int((sizes > DEPENDENCE_TOLERANCE * sizes.max(initial=1e-300)).sum())
    return (V[:rank].T / sizes[:rank]) @ U[:, :rank].T, V[rank:].T


class Spaces:
    """A cache of ``inverse_and_null_space`` for the last equations."""

    def __init__(self) -> None:
        self._E: Array | None = None
        self._found = np.zeros((0, 0)), np.zeros((0, 0))

    def of(self, E: Array) -> tuple[Array, Array]:
        """Return the pseudo-inverse (n, e) and the null space (n, n - rank) of E (e, n)."""
        if self._E is None or not np.array_equal(E, self._E):
            self._E, self._found = E.copy(), inverse_and_null_space(E)
        return self._found


class Condensed:
    """A factorised system; ``solve`` returns dx and dy for given right-hand sides.

    The regularisation ``shift`` is raised until the matrix is positive definite in the null space of the equations.
    LinAlgError is raised if no shift is sufficient.
    """

    def __init__(self, matrix: Array, equations: Array, regularisation: Regularisation, spaces: Spaces):
        self._E, n = equations, len(matrix)
        self._pinv, self._Z = spaces.of(equations)
        reduced = self._Z.T @ matrix @ self._Z if len(equations) else matrix
        size = float(np.abs(np.diagonal(matrix)).max(initial=0.0))
        self._inverse, self.shift = self._factors(reduced, regularisation, size)
        self._matrix = matrix + self.shift * np.eye(n) if self.shift else matrix

    @staticmethod
    def _factors(reduced: Array, regularisation: Regularisation, size: float) -> tuple[Array, float]:
        """Return the inverse of the Cholesky factor, and the shift of the diagonal."""
        for shift in regularisation.values(size):
            try:
                L = np.linalg.cholesky(reduced + shift * np.eye(len(reduced)))
                inverse = _inverse(np.asarray(L, dtype=float))
            except np.linalg.LinAlgError:
                continue
            if np.isfinite(inverse).all():
                regularisation.last = shift or regularisation.last
                return inverse, shift
        raise np.linalg.LinAlgError

    def solve(self, by_x: Array, by_y: Array) -> tuple[Array, Array]:
        """Return dx (n, k) and dy (e, k): matrix dx + E^T dy = by_x (n, k), E dx = by_y (e, k)."""
        dx, dy = self._solve(by_x, by_y)
        correction = self._solve(by_x - self._matrix @ dx - self._E.T @ dy, by_y - self._E @ dx)
        return dx + correction[0], dy + correction[1]

    def _solve(self, by_x: Array, by_y: Array) -> tuple[Array, Array]:
        if not len(self._E):
            return self._inverse.T @ (self._inverse @ by_x), by_y
        particular = self._pinv @ by_y
        along = self._Z.T @ (by_x - self._matrix @ particular)
        dx = particular + self._Z @ (self._inverse.T @ (self._inverse @ along))
        return dx, self._pinv.T @ (by_x - self._matrix @ dx)
