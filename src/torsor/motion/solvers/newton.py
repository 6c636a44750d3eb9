"""Newton's equations of the barrier problem, condensed to the variables.

With slacks s = h(x) of the inequalities, gaps to bounds and their multipliers z eliminated,

    [ W + Sx + H^T Ss H + d   E^T ] [ dx ]      S = z_lower / gap_lower + z_upper / gap_upper
    [ E                       0   ] [ dy ]      E = dc/dx, H = dh/dx

has n + e rows, however many inequalities there are. It is solved in the null space of E; what is left is positive
definite where the step leads to a minimum, or the regularisation d is raised until it is (Waechter and Biegler 2006).
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["Condensed", "Regularisation"]

Array = NDArray[np.float64]

DEPENDENT = 1e-10  # equations whose part that others do not have is smaller than this share count as none


class Regularisation:
    """What was added to the diagonal, from one system to the next."""

    def __init__(self) -> None:
        self.last = 0.0

    def values(self, size: float) -> "list[float]":
        """Return what to try, one after the other; ``size`` is that of the matrix's entries."""
        first = max(1e-20, self.last / 3) if self.last else 1e-4
        growth = 8.0 if self.last else 100.0
        found, value = [0.0], first
        while value < 1e20 * max(size, 1.0):
            found.append(value)
            value *= growth
        return found


class Condensed:
    """A factorised system; ``solve`` gives dx and the multipliers' change dy for right sides of both."""

    def __init__(self, matrix: Array, equations: Array, regularisation: Regularisation):
        self.matrix, self.equations = matrix, equations
        e, n = equations.shape
        self._E = equations
        if e:
            self._split()
            reduced = self._Z.T @ matrix @ self._Z
            unit = self._Z.T @ self._Z
        else:
            reduced, unit = matrix, np.eye(n)
        self.shift = 0.0
        self._inverse = np.zeros_like(reduced)
        if not reduced.size:
            return
        for shift in regularisation.values(float(np.abs(np.diagonal(matrix)).max())):
            try:
                L = np.linalg.cholesky(reduced + shift * unit if shift else reduced)
            except np.linalg.LinAlgError:
                continue
            inverse = np.linalg.inv(L)
            if np.isfinite(inverse).all():
                self._inverse, self.shift = inverse, shift
                break
        else:
            raise np.linalg.LinAlgError
        if self.shift:
            regularisation.last = self.shift
            self.matrix = matrix + self.shift * np.eye(n)

    def _split(self) -> None:
        """Find bases of the range and of the null space of the equations."""
        U, sizes, V = np.linalg.svd(self.equations)
        rank = int((sizes > DEPENDENT * sizes.max(initial=1e-300)).sum())
        self._Z = V[rank:].T
        self._pinv = (V[:rank].T / sizes[:rank]) @ U[:, :rank].T  # (n, e)

    def solve(self, by_x: Array, by_y: Array) -> tuple[Array, Array]:
        """Return dx (n, k) and dy (e, k): matrix dx + E^T dy = by_x (n, k), E dx = by_y (e, k)."""
        dx, dy = self._solve(by_x, by_y)
        more = self._solve(by_x - self.matrix @ dx - self._E.T @ dy, by_y - self._E @ dx)
        return dx + more[0], dy + more[1]

    def _solve(self, by_x: Array, by_y: Array) -> tuple[Array, Array]:
        if not len(self._E):
            return self._inverse.T @ (self._inverse @ by_x), np.zeros_like(by_y)
        across = self._pinv @ by_y
        along = self._Z.T @ (by_x - self.matrix @ across)
        dx = across + self._Z @ (self._inverse.T @ (self._inverse @ along))
        return dx, self._pinv.T @ (by_x - self.matrix @ dx)
