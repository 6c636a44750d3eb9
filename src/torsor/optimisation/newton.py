"""Newton's equations of the barrier problem, condensed to the variables.

With slacks s = h(x) of the inequalities, gaps to bounds and their multipliers z eliminated,

    [ W + Sx + H^T Ss H + d   E^T ] [ dx ]      S = z_lower / gap_lower + z_upper / gap_upper
    [ E                       0   ] [ dy ]      E = dc/dx, H = dh/dx

has n + e rows, however many inequalities there are. It is solved in the null space of E; what is left is positive
definite where the step leads to a minimum, or the regularisation d is raised until it is (Waechter and Biegler 2006).
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["Condensed", "Regularisation", "Spaces"]

Array = NDArray[np.float64]

DEPENDENT = 1e-10  # equations whose part that others do not have is smaller than this share count as none


class Regularisation:
    """What was added to the diagonal, from one system to the next."""

    def __init__(self) -> None:
        self.last = 0.0

    def values(self, size: float) -> list[float]:
        """Return what to try, one after the other; ``size`` is that of the matrix's entries."""
        first = max(1e-20, self.last / 3) if self.last else 1e-4
        growth = 8.0 if self.last else 100.0
        found, value = [0.0], first
        while value < 1e20 * max(size, 1.0):
            found.append(value)
            value *= growth
        return found


class Spaces:
    """The null space Z (n, n - rank) of equations E (e, n), and their pseudo-inverse (n, e); kept while E stays."""

    def __init__(self) -> None:
        self._E: Array | None = None
        self._found = np.zeros((0, 0)), np.zeros((0, 0))

    def of(self, E: Array) -> tuple[Array, Array]:
        """Return Z and the pseudo-inverse; equations that depend on others are told apart by singular values."""
        if self._E is None or not np.array_equal(E, self._E):
            U, sizes, V = np.linalg.svd(E)
            rank = int((sizes > DEPENDENT * sizes.max(initial=1e-300)).sum())
            self._E, self._found = E.copy(), (V[rank:].T, (V[:rank].T / sizes[:rank]) @ U[:, :rank].T)
        return self._found


class Condensed:
    """A factorised system; ``solve`` gives dx and dy for right sides of both.

    The regularisation is raised until the matrix, in the null space of the equations, is positive definite; what was
    added is ``shift``. Raises LinAlgError where that is never so.
    """

    def __init__(self, matrix: Array, equations: Array, regularisation: Regularisation, spaces: Spaces):
        self._E, n = equations, len(matrix)
        self._Z, self._pinv = spaces.of(equations) if len(equations) else (np.eye(n), np.zeros((n, 0)))
        reduced = self._Z.T @ matrix @ self._Z if len(equations) else matrix
        size = float(np.abs(np.diagonal(matrix)).max(initial=0.0))
        self._inverse, self.shift = self._factors(reduced, regularisation, size)
        self._matrix = matrix + self.shift * np.eye(n) if self.shift else matrix

    @staticmethod
    def _factors(reduced: Array, regularisation: Regularisation, size: float) -> tuple[Array, float]:
        """Return the inverse of the Cholesky factor, and what was added to the diagonal."""
        for shift in regularisation.values(size):
            try:
                inverse = np.linalg.inv(np.linalg.cholesky(reduced + shift * np.eye(len(reduced))))
            except np.linalg.LinAlgError:
                continue
            if np.isfinite(inverse).all():
                regularisation.last = shift or regularisation.last
                return inverse, shift
        raise np.linalg.LinAlgError

    def solve(self, by_x: Array, by_y: Array) -> tuple[Array, Array]:
        """Return dx (n, k) and dy (e, k): matrix dx + E^T dy = by_x (n, k), E dx = by_y (e, k)."""
        dx, dy = self._solve(by_x, by_y)
        more = self._solve(by_x - self._matrix @ dx - self._E.T @ dy, by_y - self._E @ dx)
        return dx + more[0], dy + more[1]

    def _solve(self, by_x: Array, by_y: Array) -> tuple[Array, Array]:
        if not len(self._E):
            return self._inverse.T @ (self._inverse @ by_x), by_y
        across = self._pinv @ by_y
        along = self._Z.T @ (by_x - self._matrix @ across)
        dx = across + self._Z @ (self._inverse.T @ (self._inverse @ along))
        return dx, self._pinv.T @ (by_x - self._matrix @ dx)
