"""Symmetric positive definite systems of one sparsity pattern, many at once.

The factorisation and the solution are compiled as straight-line code for the pattern, and computed for several systems
in the lanes of vector registers. Large patterns are factorised one by one by LAPACK.
"""

from functools import cache, cached_property
from typing import Any, Protocol

import casadi as ca
import numpy as np
from scipy.linalg.blas import dsymm
from scipy.linalg.lapack import dpotrf, dpotrs

from torsor.base.arrays import Array, Flags, Indices
from torsor.compiler.cache import source_hash
from torsor.optimisation.newton import Regularisation
from torsor.robot.kernels import Kernels
from torsor.robot.target import Target

MAX_COMPILED = 100_000  # largest number of operations of a factorisation that is compiled


class Systems:
    """Systems A x = r with a symmetric ``pattern`` (n, n), and the entries (B, nnz) of the lower triangles of A.

    The unknowns ``fixed`` are 0: their rows and columns are those of the unit matrix.
    """

    def __init__(self, pattern: Flags, fixed: Indices | None = None):
        self.n, self.fixed = len(pattern), np.zeros(0, dtype=int) if fixed is None else fixed
        self.rows, self.columns = np.nonzero(np.tril(pattern | np.eye(self.n, dtype=bool)))
        self.places = np.full(pattern.shape, -1)
        self.places[self.rows, self.columns] = self.places[self.columns, self.rows] = np.arange(len(self.rows))
        self.diagonal: Indices = np.diagonal(self.places).copy()
        self._fixed_entries = np.flatnonzero(np.isin(self.rows, self.fixed) | np.isin(self.columns, self.fixed))

    @cached_property
    def method(self) -> "_Method":
        """The way in which the systems are solved."""
        rows, columns = np.concatenate([self.rows, self.columns]), np.concatenate([self.columns, self.rows])
        pattern = ca.Sparsity.triplet(self.n, self.n, rows.tolist(), columns.tolist())
        filled = np.bincount(pattern.ldl(True)[0].get_triplet()[0], minlength=self.n)
        return _Compiled(self) if int(filled @ (filled + 1)) <= MAX_COMPILED else _Lapack(self)

    def dense(self, entries: Array) -> Array:
        """Return the matrices (B, n, n)."""
        padded = np.concatenate([entries, np.zeros((len(entries), 1))], axis=1)
        return np.asarray(padded[:, self.places])  # the index -1 is the added 0

    def factorised(self, entries: Array, last: Array) -> "Factors":
        """Return the factors of matrices; the diagonals of those that are not positive definite are shifted.

        ``last`` (B,) are the last shifts, from which larger ones are tried. ``entries`` are changed accordingly.
        """
        entries[:, self._fixed_entries] = 0.0
        entries[:, self.diagonal[self.fixed]] = 1.0
        factors, ok = self.method.factors(entries)
        shifts, is_convex = last.copy(), ok.copy()
        waiting = {int(k): iter(_shifts(entries[k, self.diagonal], float(last[k]))) for k in np.flatnonzero(~ok)}
        before = {k: entries[k, self.diagonal] for k in waiting}
        while waiting:
            tried = {k: next(values, None) for k, values in waiting.items()}
            waiting = {k: waiting[k] for k, shift in tried.items() if shift is not None}
            at = np.array(list(waiting), dtype=int)
            for k in waiting:
                shifts[k] = tried[k]
                entries[k, self.diagonal] = before[k] + shifts[k]
            if at.size:
                again, good = self.method.factors(entries[at])
                for values, new in zip(factors, again, strict=True):
                    values[at] = new
                ok[at] = good
                waiting = {k: waiting[k] for k, is_good in zip(at.tolist(), good, strict=True) if not is_good}
        return Factors(self, entries, factors, shifts, is_convex, ok)


def _shifts(diagonal: Array, last: float) -> list[float]:
    regularisation = Regularisation()
    regularisation.last = last
    return regularisation.values(float(np.abs(diagonal).max(initial=0.0)))[1:]


class Factors:
    """Factorised systems: the last ``shift`` of each diagonal (B,), and which matrices needed none.

    ``is_factorised`` is false where no shift was sufficient; the solution there is meaningless.
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
        """Return some of the systems."""
        arrays = self.shift[at], self.is_convex[at], self.is_factorised[at]
        return Factors(self._systems, self._entries[at], [values[at] for values in self._factors], *arrays)

    def solved(self, right: Array) -> Array:
        """Return the solutions (B, k, n) for right-hand sides (B, k, n), which are changed; refined once."""
        right[..., self._systems.fixed] = 0.0
        return self._systems.method.solved(self._entries, self._factors, right)


class _Method(Protocol):
    def factors(self, entries: Array) -> tuple[list[Array], Flags]:
        """Return arrays (B, ...) of factors, and which matrices are positive definite."""

    def solved(self, entries: Array, factors: list[Array], right: Array) -> Array:
        """Return the solutions (B, k, n), refined once."""


class _Compiled:
    """L D L^T with a fill-reducing order, as compiled code."""

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
        name = f"{self._systems.n} {self._systems.rows.tolist()} {self._systems.columns.tolist()}"
        return Kernels(Target(), lambda: f"{name} {source_hash('motion/linear_systems.py')}")

    def factors(self, entries: Array) -> tuple[list[Array], Flags]:
        """Return L^T and D, and which D are positive."""
        upper, diagonal = self._kernels.kernel("factors", lambda: self._factor)(entries)
        return [upper, diagonal], np.asarray((diagonal > 0).all(axis=1) & np.isfinite(diagonal).all(axis=1))

    @cache  # noqa: B019  # as long-lived as the compiled code
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
        return np.asarray(kernel(entries, *factors, right.reshape(B, k * n))).reshape(B, k, n)


class _Lapack:
    """Cholesky factors of dense matrices, one by one."""

    def __init__(self, systems: Systems):
        self._systems, self._lower = systems, systems.rows * systems.n + systems.columns

    def factors(self, entries: Array) -> tuple[list[Array], Flags]:
        """Return lower factors (B, n, n), and which matrices have one."""
        factors, ok = self._matrices(entries), np.ones(len(entries), dtype=bool)
        for k, own in enumerate(factors):
            _, info = dpotrf(own.T, lower=0, clean=0, overwrite_a=1)  # in place: LAPACK sees the transpose
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
