"""Batches of symmetric positive definite systems with the same sparsity pattern, on a CPU or a GPU.

On a CPU, factorisation and solution are compiled as straight-line code for the pattern, which computes several systems
in the lanes of vector registers. LAPACK factorises large systems one by one. On a GPU, where such code compiles slowly
and uses few threads, matrices are factorised by blocks with matrix products of the array library.
"""

from functools import cache, cached_property
from typing import Any, Protocol, cast

import casadi as ca
import numpy as np
from scipy.linalg.blas import dsymm
from scipy.linalg.lapack import dpotrf, dpotrs

from torsor.base.arrays import Array, Flags, Indices
from torsor.compiler import array_module
from torsor.compiler.cache import source_hash
from torsor.robot.kernels import Kernels
from torsor.robot.target import Target

MAX_COMPILED = 100_000  # largest number of operations of a compiled factorisation
MAX_BLOCK = 16  # largest number of rows of a block of a dense matrix
FIRST_SHIFT, SHIFT_GROWTH, NEXT_SHIFT_GROWTH = 1e-4, 100.0, 8.0
MAX_SHIFT = 1e20  # largest diagonal shift, relative to the largest diagonal entry


class Systems:
    """Systems A x = r with a symmetric ``pattern`` (n, n) and entries (B, nnz) of the lower triangles of A.

    The unknowns ``fixed`` are 0, because their rows and columns are those of the unit matrix.
    """

    def __init__(self, pattern: Flags, fixed: Indices | None = None, device: str = "cpu"):
        self.n, self.device, placed = len(pattern), device, array_module(device).asarray
        fixed = np.zeros(0, dtype=int) if fixed is None else fixed
        self.rows, self.columns = np.nonzero(np.tril(pattern | np.eye(self.n, dtype=bool)))
        self.places = np.full(pattern.shape, -1)
        self.places[self.rows, self.columns] = self.places[self.columns, self.rows] = np.arange(len(self.rows))
        self.diagonal: Indices = placed(np.diagonal(self.places).copy())
        self.fixed: Indices = placed(fixed)
        of_fixed = np.isin(self.rows, fixed) | np.isin(self.columns, fixed)
        self._fixed_entries: Indices = placed(np.flatnonzero(of_fixed))

    @cached_property
    def method(self) -> "_Method":
        """The solution method."""
        rows, columns = np.concatenate([self.rows, self.columns]), np.concatenate([self.columns, self.rows])
        pattern = ca.Sparsity.triplet(self.n, self.n, rows.tolist(), columns.tolist())
        filled = np.bincount(pattern.ldl(True)[0].get_triplet()[0], minlength=self.n)
        if self.device != "cpu":
            return _Blocked(self)
        return _Compiled(self) if int(filled @ (filled + 1)) <= MAX_COMPILED else _Lapack(self)

    def kernels(self, name: str) -> Kernels:
        """Return the compiled functions ``name`` for the device."""
        return Kernels(Target(device=self.device), lambda: f"{name} {source_hash('motion/linear_systems.py')}")

    def factorised(self, entries: Array, last: Array) -> "Factors":
        """Return the factors of matrices, with a shift of the diagonal if a matrix is not positive definite.

        ``last`` (B,) contains the previous shifts, from which increasing ones are tried. ``entries`` are modified
        accordingly.
        """
        entries[:, self._fixed_entries] = 0.0
        entries[:, self.diagonal[self.fixed]] = 1.0
        factors, ok = self.method.factors(entries)
        shifts, is_convex, at = last.copy(), ok.copy(), np.flatnonzero(~ok)
        if at.size:
            before = entries[:, self.diagonal]
            largest = MAX_SHIFT * np.maximum(np.abs(before).max(axis=1), 1.0)
            value = np.where(last > 0, np.maximum(1e-20, last / 3), FIRST_SHIFT)
            growth = np.where(last > 0, NEXT_SHIFT_GROWTH, SHIFT_GROWTH)
        while at.size:
            at = at[value[at] < largest[at]]
            if not at.size:
                break
            shifts[at] = value[at]
            entries[at[:, None], self.diagonal] = before[at] + value[at, None]
            again, good = self.method.factors(entries[at])
            for values, new in zip(factors, again, strict=True):
                values[at] = new
            ok[at], value[at] = good, value[at] * growth[at]
            at = at[~good]
        return Factors(self, entries, factors, shifts, is_convex, ok)


class Factors:
    """Factorised systems, with the ``shift`` (B,) of each diagonal, and flags of matrices that needed none.

    ``is_factorised`` is False where no shift was sufficient, in which case the solution is meaningless.
    """

    def __init__(
        self,
        systems: Systems,
        entries: Array,
        factors: list[Array],
        shift: Array,
        is_convex: Flags,
        is_factorised: Flags,
    ):
        self._systems, self._entries, self._factors = systems, entries, factors
        self.shift, self.is_convex, self.is_factorised = shift, is_convex, is_factorised

    def take(self, at: Indices) -> "Factors":
        """Return the systems at the indices ``at``."""
        arrays = self.shift[at], self.is_convex[at], self.is_factorised[at]
        return Factors(self._systems, self._entries[at], [values[at] for values in self._factors], *arrays)

    def solved(self, right: Array) -> Array:
        """Return the solutions (B, k, n), refined once, for right-hand sides (B, k, n), which are overwritten."""
        right[..., self._systems.fixed] = 0.0
        return self._systems.method.solved(self._entries, self._factors, right)


class _Method(Protocol):
    def factors(self, entries: Array) -> tuple[list[Array], Flags]:
        """Return arrays (B, ...) of factors, and flags (B,) of positive definite matrices."""

    def solved(self, entries: Array, factors: list[Array], right: Array) -> Array:
        """Return the solutions (B, k, n), refined once."""


class _Compiled:
    """L D L^T factorisation with a fill-reducing order, as compiled code."""

    def __init__(self, systems: Systems):
        self._systems = systems
        n, self._entries = systems.n, ca.SX.sym("entries", len(systems.rows))
        sparsity = ca.Sparsity.triplet(n, n, systems.rows.tolist(), systems.columns.tolist())
        order = np.lexsort((systems.rows, systems.columns)).tolist()  # CasADi's entries are in column-major order
        self._A = ca.tril2symm(ca.SX(sparsity, self._entries[order]))
        diagonal, self._upper, self._order = ca.ldl(self._A, True)
        outputs = [self._upper.nz[:], diagonal]
        self._factor = ca.Function("factors", [self._entries], outputs)

    @cached_property
    def _kernels(self) -> Kernels:
        return self._systems.kernels(
            f"{self._systems.n} {self._systems.rows.tolist()} {self._systems.columns.tolist()}"
        )

    def factors(self, entries: Array) -> tuple[list[Array], Flags]:
        """Return L^T and D, and flags (B,) of matrices with positive D."""
        upper, diagonal = self._kernels.kernel("factors", lambda: self._factor)(entries)
        is_positive: Flags = (diagonal > 0).all(axis=1) & np.isfinite(diagonal).all(axis=1)
        return [upper, diagonal], is_positive

    @cache  # noqa: B019  # the cache lives as long as the compiled code
    def _solution(self, k: int) -> ca.Function:
        n = self._systems.n
        upper, diagonal = ca.SX.sym("upper", self._upper.nnz()), ca.SX.sym("diagonal", n)
        right, L = ca.SX.sym("right", k * n), ca.SX(self._upper.sparsity(), upper)
        R = ca.reshape(right, n, k)

        def solve(values: ca.SX) -> ca.SX:
            return ca.ldl_solve(values, diagonal, L, self._order)

        first = solve(R)
        result = ca.vec(first + solve(R - self._A @ first))
        return ca.Function(f"solution_{k}", [self._entries, upper, diagonal, right], [result])

    def solved(self, entries: Array, factors: list[Array], right: Array) -> Array:
        """Return the solutions (B, k, n)."""
        B, k, n = right.shape
        kernel: Any = self._kernels.kernel(f"solution {k}", lambda: self._solution(k))
        result: Array = kernel(entries, *factors, right.reshape(B, k * n)).reshape(B, k, n)
        return result


class _Lapack:
    """Cholesky factorisation of dense matrices, one by one."""

    def __init__(self, systems: Systems):
        self._systems, self._lower = systems, systems.rows * systems.n + systems.columns

    def factors(self, entries: Array) -> tuple[list[Array], Flags]:
        """Return lower factors (B, n, n), and flags (B,) of matrices that have one."""
        factors, ok = self._matrices(entries), np.ones(len(entries), dtype=bool)
        for k, own in enumerate(factors):
            _, info = dpotrf(own.T, lower=0, clean=0, overwrite_a=1)  # in place; LAPACK uses the transpose
            ok[k] = not info and np.isfinite(own[-1, -1])
        return [factors], ok

    def _matrices(self, entries: Array) -> Array:
        """Return the lower triangles (B, n, n)."""
        result = np.zeros((len(entries), self._systems.n**2))
        result[:, self._lower] = entries
        return result.reshape(len(entries), self._systems.n, -1)

    def solved(self, entries: Array, factors: list[Array], right: Array) -> Array:
        """Return the solutions (B, k, n)."""
        result = np.empty_like(right)
        for own, lower, r, x in zip(self._matrices(entries), factors[0], right, result, strict=True):
            x[:] = dpotrs(lower.T, r.T, lower=0)[0].T
            left = dsymm(-1.0, own.T, x.T, 1.0, r.T)  # the upper triangle of the transpose
            x += dpotrs(lower.T, left, lower=0)[0].T
        return result


def _block_inverse(size: int) -> ca.Function:
    """Return the function that computes the inverse of the Cholesky factor of a symmetric block, row by row."""
    A = ca.SX.sym("A", size, size)
    L, inverse = ca.SX.zeros(size, size), ca.SX.zeros(size, size)
    for k in range(size):
        pivot = ca.sqrt(A[k, k] - ca.sumsqr(L[k, :k]))
        L[k, k], inverse[k, k] = pivot, 1 / pivot
        for i in range(k + 1, size):
            L[i, k] = (A[i, k] - ca.dot(L[i, :k], L[k, :k])) * inverse[k, k]
        for j in range(k):
            inverse[k, j] = -inverse[k, k] * ca.dot(L[k, j:k], inverse[j:k, j].T)
    return ca.Function("block_inverse", [ca.vec(A)], [ca.vec(ca.densify(inverse.T))])


class _Blocked:
    """Inverses of the Cholesky factors of dense matrices, by blocks."""

    def __init__(self, systems: Systems):
        self._systems, count = systems, -(-systems.n // MAX_BLOCK)
        self._block = -(-systems.n // count)
        size = count * self._block  # padded with unit rows, so that all blocks have the same size
        places = np.full((size, size), -1)
        places[: systems.n, : systems.n] = systems.places
        unit = np.arange(systems.n, size)
        places[unit, unit] = len(systems.rows)  # index of an added 1; -1 is the index of an added 0
        self._places = array_module(systems.device).asarray(places)

    @cached_property
    def _inverse(self) -> Any:
        size = self._block
        return self._systems.kernels("blocks").kernel(f"block inverse {size}", lambda: _block_inverse(size))

    def _dense(self, entries: Array) -> Array:
        """Return the matrices (B, size, size)."""
        added = np.zeros((len(entries), 2), like=entries)
        added[:, 0] = 1.0
        result: Array = np.concatenate([entries, added], axis=1)[:, self._places]
        return result

    def factors(self, entries: Array) -> tuple[list[Array], Flags]:
        """Return the inverses of the Cholesky factors, and flags (B,) of finite ones."""
        A, size = self._dense(entries), self._block
        inverse = np.zeros_like(A)
        for first in range(0, len(self._places), size):
            own, below = slice(first, first + size), slice(first + size, None)
            D = self._inverse(A[:, own, own].reshape(-1, size**2)).reshape(-1, size, size)
            A[:, below, own] = A[:, below, own] @ np.swapaxes(D, 1, 2)
            A[:, below, below] -= A[:, below, own] @ np.swapaxes(A[:, below, own], 1, 2)
            inverse[:, own, own] = D
            inverse[:, own, :first] = -D @ (A[:, own, :first] @ inverse[:, :first, :first])
        return [inverse], cast(Flags, np.isfinite(inverse).all(axis=(1, 2)))

    def solved(self, entries: Array, factors: list[Array], right: Array) -> Array:
        """Return the solutions (B, k, n)."""
        inverse, n = factors[0], self._systems.n
        wide = np.zeros((*right.shape[:2], len(self._places)), like=right)
        wide[..., :n] = right
        first = wide @ np.swapaxes(inverse, 1, 2) @ inverse
        rest = wide - first @ self._dense(entries)
        result: Array = (first + rest @ np.swapaxes(inverse, 1, 2) @ inverse)[..., :n]
        return result
