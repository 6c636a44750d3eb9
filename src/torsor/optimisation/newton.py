"""Newton equations of the barrier problem, condensed to the variables.

After elimination of the slacks s = h(x) of the inequalities and the bound multipliers z, the system

    [ W + Sx + H^T Ss H + d   E^T ] [ dx ]      S = z_lower / gap_lower + z_upper / gap_upper
    [ E                       0   ] [ dy ]      E = dc/dx, H = dh/dx

has n + e rows for any number of inequalities. It is solved in the null space of E. If the reduced matrix is not
positive definite, the regularisation d is increased until it is (Waechter and Biegler 2006).
"""

import numpy as np

from torsor.base.arrays import Array, Flags, Indices

BLOCK_SIZE = 32  # number of rows of the inverted diagonal blocks of a triangular matrix
DEPENDENCE_TOLERANCE = 1e-10  # relative singular value below which equations count as linearly dependent


class Triangle:
    """A lower triangular matrix with inverted diagonal blocks; LinAlgError is raised if an inverse is not finite."""

    def __init__(self, L: Array):
        starts = range(0, len(L), BLOCK_SIZE)
        self._L, self._blocks = L, [slice(start, min(start + BLOCK_SIZE, len(L))) for start in starts]
        self._inverses = [np.linalg.inv(L[own, own]) for own in self._blocks]
        if not all(np.isfinite(inverse).all() for inverse in self._inverses):
            raise np.linalg.LinAlgError

    def solve(self, right: Array) -> Array:
        """Return the solution of L L^T x = right for ``right`` (n, k)."""
        x = right.copy()
        for own, inverse in zip(self._blocks, self._inverses, strict=True):
            x[own] = inverse @ (x[own] - self._L[own, : own.start] @ x[: own.start])
        for own, inverse in zip(reversed(self._blocks), reversed(self._inverses), strict=True):
            x[own] = inverse.T @ (x[own] - self._L[own.stop :, own].T @ x[own.stop :])
        return x


class Regularisation:
    """The diagonal shift, which is stored between systems."""

    def __init__(self) -> None:
        self.last = 0.0

    def values(self, size: float) -> list[float]:
        """Return the trial shifts in order; ``size`` is the largest diagonal entry of the matrix."""
        first = max(1e-20, self.last / 3) if self.last else 1e-4
        growth = 8.0 if self.last else 100.0
        result, value = [0.0], first
        while value < 1e20 * max(size, 1.0):
            result.append(value)
            value *= growth
        return result


def inverse_and_null_space(E: Array) -> tuple[Array, Array]:
    """Return the pseudo-inverse (n, e) of equations E (e, n), and an orthonormal basis of their null space."""
    space = NullSpace(E)
    return space.inverse, space.times(np.eye(E.shape[1] - space.rank))


def _components(pattern: Flags) -> Indices:
    """Return the component number (e,) of each row of a pattern (e, n); rows that share columns are connected."""
    labels = np.arange(len(pattern))
    while True:
        by_column = np.where(pattern, labels[:, None], len(labels)).min(axis=0, initial=len(labels))
        smaller = np.where(pattern, by_column, labels[:, None]).min(axis=1, initial=len(labels))
        if np.array_equal(smaller, labels):
            return labels
        labels = smaller


class NullSpace:
    """The pseudo-inverse (n, e) of equations E (e, n), and an orthonormal basis Z of their null space.

    Equations without common variables have separate blocks in Z, and variables without equations are basis vectors.
    Products with Z therefore take few operations if E is sparse.
    """

    def __init__(self, E: Array):
        pattern, self.rank = E != 0, 0
        self._is_free, self._blocks, self.inverse = (
            ~pattern.any(axis=0),
            list[tuple[Indices, Array]](),
            np.zeros(E.T.shape),
        )
        labels, alike = _components(pattern), dict[tuple[int, int], list[tuple[Indices, Indices]]]()
        for label in np.unique(labels[pattern.any(axis=1)]):
            rows = np.flatnonzero(labels == label)
            columns = np.flatnonzero(pattern[rows].any(axis=0))
            alike.setdefault((len(rows), len(columns)), []).append((rows, columns))
        parts = []
        for members in alike.values():
            rows, columns = (np.stack(indices) for indices in zip(*members, strict=True))
            parts.append((rows, columns, *np.linalg.svd(E[rows[:, :, None], columns[:, None]])))
        least = DEPENDENCE_TOLERANCE * max((float(sizes.max()) for *_, sizes, _ in parts), default=1e-300)
        for rows, columns, U, sizes, V in parts:
            ranks = (sizes > least).sum(axis=1)
            for rank in np.unique(ranks).tolist():
                at = np.flatnonzero(ranks == rank)
                inverse = (V[at, :rank].swapaxes(1, 2) / sizes[at, None, :rank]) @ U[at, :, :rank].swapaxes(1, 2)
                self.inverse[columns[at][:, :, None], rows[at][:, None]] = inverse
                self._blocks.append((columns[at], V[at, rank:]))
                self.rank += rank * len(at)

    def transposed_times(self, x: Array) -> Array:
        """Return Z^T x (n - rank, k) for x (n, k)."""
        if not self._blocks:
            return x
        parts = [(V @ x[columns]).reshape(V.shape[0] * V.shape[1], x.shape[1]) for columns, V in self._blocks]
        return np.concatenate([x[self._is_free], *parts])

    def times(self, x: Array) -> Array:
        """Return Z x (n, k) for x (n - rank, k)."""
        if not self._blocks:
            return x
        first = int(self._is_free.sum())
        result = np.empty((len(self._is_free), x.shape[1]))
        result[self._is_free] = x[:first]
        for columns, V in self._blocks:
            own, first = slice(first, first + V.shape[0] * V.shape[1]), first + V.shape[0] * V.shape[1]
            result[columns] = V.swapaxes(1, 2) @ x[own].reshape(*V.shape[:2], x.shape[1])
        return result

    def reduced(self, matrix: Array) -> Array:
        """Return Z^T A Z of a symmetric matrix A (n, n)."""
        return self.transposed_times(self.transposed_times(matrix).T)


class Spaces:
    """A cache of the ``NullSpace`` of the last equations."""

    def __init__(self) -> None:
        self._E, self._found = np.zeros((0, 0)), NullSpace(np.zeros((0, 0)))

    def of(self, E: Array) -> NullSpace:
        """Return the null space of E (e, n)."""
        if not np.array_equal(E, self._E):
            self._E, self._found = E.copy(), NullSpace(E)
        return self._found


class Condensed:
    """A factorised system; ``solve`` returns dx and dy for right-hand sides.

    The regularisation ``shift`` is increased until the matrix is positive definite in the null space of the equations.
    LinAlgError is raised if no shift is sufficient.
    """

    def __init__(self, matrix: Array, equations: Array, regularisation: Regularisation, spaces: Spaces):
        self._E, n = equations, len(matrix)
        self._space = spaces.of(equations)
        reduced = self._space.reduced(matrix)
        size = float(np.abs(np.diagonal(matrix)).max(initial=0.0))
        self._factor, self.shift = self._factors(reduced, regularisation, size)
        self._matrix = matrix + self.shift * np.eye(n) if self.shift else matrix

    @staticmethod
    def _factors(reduced: Array, regularisation: Regularisation, size: float) -> tuple[Triangle, float]:
        """Return the Cholesky factor, and the shift of the diagonal."""
        for shift in regularisation.values(size):
            try:
                shifted = reduced + shift * np.eye(len(reduced)) if shift else reduced
                factor = Triangle(np.asarray(np.linalg.cholesky(shifted), dtype=float))
            except np.linalg.LinAlgError:
                continue
            regularisation.last = shift or regularisation.last
            return factor, shift
        raise np.linalg.LinAlgError

    def solve(self, by_x: Array, by_y: Array) -> tuple[Array, Array]:
        """Return dx (n, k) and dy (e, k) with matrix dx + E^T dy = by_x (n, k) and E dx = by_y (e, k)."""
        dx, dy = self._solve(by_x, by_y)
        correction = self._solve(by_x - self._matrix @ dx - self._E.T @ dy, by_y - self._E @ dx)
        return dx + correction[0], dy + correction[1]

    def _solve(self, by_x: Array, by_y: Array) -> tuple[Array, Array]:
        if not len(self._E):
            return self._factor.solve(by_x), by_y
        particular = self._space.inverse @ by_y
        along = self._space.transposed_times(by_x - self._matrix @ particular)
        dx = particular + self._space.times(self._factor.solve(along))
        return dx, self._space.inverse.T @ (by_x - self._matrix @ dx)
