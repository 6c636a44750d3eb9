"""Rods by strain modes: the strain along a rod is a sum of polynomials, and the sections follow by integration.

A section at s has the pose g(s) with g' = g xi^, where the strain xi = (curvatures about x, y, z; stretch and shear) is
linear in the coordinates: xi(s) = xi_0 + B(s) q. Between two sections the pose changes by exp(Omega^) with Magnus'
expansion of order 6 (Blanes, Casas, Oteo and Ros 2009) at three Gauss points; a constant strain is exact. So a rod is a
chain of small rigid bodies that share the coordinates q, for any curvature (Boyer, Porez and Khalil 2006; Renda,
Boyer, Dias and Seneviratne 2018).
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
from numpy.polynomial.legendre import leggauss, legval

from torsor.base.arrays import Array
from torsor.base.checks import LARGEST, frozen_array, number, whole_number
from torsor.base.errors import ModelError, describe
from torsor.mechanism.flexible import Flexible, numbers_like
from torsor.mechanism.joints import JointKind
from torsor.spatial import Matrix, Vector, ad, exp_se3, right_jacobian
from torsor.spatial.vectors import is_symbolic

STRAINS = {"y": 2, "z": 1, "x": 0, "s": 3}
"""The strains by the letters in names of coordinates: bending along y and z, torsion, stretch; and their components."""
MOST_MODES = 100  # of one strain


def strain_basis(counts: tuple[int, ...], length: float, s: float) -> Array:
    """Return B(s) (6, n): the strain of each coordinate, Legendre polynomials divided by the length.

    Example:
        >>> strain_basis((2, 0, 0, 0), 2.0, 2.0)[2].tolist()
        [0.5, 0.5]
    """
    B, k = np.zeros((6, sum(counts))), 0
    for component, count in zip(STRAINS.values(), counts, strict=True):
        for j in range(count):
            B[component, k] = legval(2 * s / length - 1, np.eye(j + 1)[j]) / length
            k += 1
    return B


@dataclass(frozen=True, eq=False)
class _Strain(JointKind):
    """The motion from one section of a rod to the next: strains at three points, at rest (3, 6) and by q (3, 6, n)."""

    step: float = 0.0
    rest: Array = field(default_factory=lambda: np.zeros((3, 6)))
    basis: Array = field(default_factory=lambda: np.zeros((3, 6, 0)))

    def _twist(self, q: Vector) -> Vector:
        """Return Omega (6), by Magnus' expansion; brackets have the signs of g' = g xi^."""
        A = [numbers_like(q, self.rest[i]) + numbers_like(q, self.basis[i]) @ q for i in range(3)]
        a1, a2 = self.step * A[1], np.sqrt(15) / 3 * self.step * (A[2] - A[0])
        a3 = 10 / 3 * self.step * (A[2] - 2 * A[1] + A[0])
        c1 = ad(a1) @ a2
        c2 = ad(a1) @ (c1 - 2 * a3) / 60
        return a1 + a3 / 12 - ad(20 * a1 + a3 + c1) @ (c2 - a2) / 240

    def transform(self, q: Vector, pitch: float) -> tuple[Matrix, Vector]:
        T = exp_se3(self._twist(q))
        return T[:3, :3], T[:3, 3]

    @cached_property
    def _functions(self) -> tuple[ca.Function, ca.Function, ca.Function]:
        """S (6 x n) as a function of q; its rate S', and S' v, as functions of q and v."""
        q, v = ca.SX.sym("q", self.nq), ca.SX.sym("v", self.nv)
        twist = self._twist(q)
        S = ca.densify(right_jacobian(twist) @ ca.jacobian(twist, q))
        rate = ca.densify(ca.reshape(ca.jtimes(ca.vec(S), q, v), S.shape))
        bias = ca.densify(ca.jtimes(S @ v, q, v))
        of_rates = ca.Function("S_rate", [q, v], [ca.cse(rate)]), ca.Function("bias", [q, v], [ca.cse(bias)])
        return ca.Function("S", [q], [ca.cse(S)]), *of_rates

    def subspace(self, q: Vector, pitch: float) -> Matrix:
        return _called(self._functions[0], q)

    def subspace_rate(self, q: Vector, v: Vector, pitch: float) -> Matrix:
        return _called(self._functions[1], q, v)

    def bias(self, q: Vector, v: Vector, pitch: float) -> Vector:
        return _called(self._functions[2], q, v)


def _called(function: ca.Function, *values: Any) -> Matrix:
    """Return the result of a function: symbols for symbols, an array for numbers."""
    return function(*values) if is_symbolic(*values) else np.asarray(function(*values))


@dataclass(frozen=True, eq=False)
class RodSection(Flexible):
    """The part of a rod from ``start`` to ``end`` (m): the joint between two sections.

    ``counts`` are the numbers of coordinates: bending along y, along z, torsion, stretch. ``rest`` (6,) is the strain
    at rest, ``stiffness`` (4,) that of the four strains (N m^2, stretch N), ``damping`` (s) multiplies it.

    Example:
        >>> part = RodSection(0.0, 0.5, 1.0, (1, 0, 0, 0), np.array([0, 0, 0, 1.0, 0, 0]), np.ones(4))
        >>> R, p = part.kind.transform(np.array([np.pi]), 0.0)  # half of a half circle of length 1
        >>> (np.pi * p).round(9).tolist()
        [1.0, 1.0, 0.0]
    """

    start: float
    end: float
    length: float
    counts: tuple[int, ...]
    rest: Array
    stiffness: Array
    damping: float = 0.0

    def __post_init__(self) -> None:
        self._set(rest=frozen_array(self.rest, (6,), "rod", "rest", most=LARGEST))
        self._set(stiffness=frozen_array(self.stiffness, (4,), "rod", "stiffness", most=LARGEST))
        for name in ("start", "end", "damping"):
            self._set(**{name: number(getattr(self, name), "rod", name, least=0, most=LARGEST)})
        self._set(length=number(self.length, "rod", "length", least=1 / LARGEST, most=LARGEST))
        if len(self.counts) != len(STRAINS):
            raise ModelError(describe(f"counts are {self.counts}", where="rod", allowed=f"{len(STRAINS)} numbers"))
        for count in self.counts:
            whole_number(count, "rod", "one of its counts", least=0, most=MOST_MODES)

    @cached_property
    def kind(self) -> JointKind:
        """The motion from one section to the next."""
        names = [f"{letter}{j + 1}" for letter, count in zip(STRAINS, self.counts, strict=True) for j in range(count)]
        turns = tuple(not name.startswith("s") for name in names)
        step = self.end - self.start
        s = self.start + (leggauss(3)[0] + 1) / 2 * step
        basis = np.array([strain_basis(self.counts, self.length, each) for each in s.tolist()])
        rest = np.broadcast_to(self.rest, (3, 6))
        return _Strain("flexible", tuple(names), turns, step=step, rest=rest, basis=basis)

    @property
    def stiffness_matrix(self) -> Array:
        """K (n x n) of the whole rod: diagonal, since Legendre polynomials are orthogonal."""
        pairs = zip(self.stiffness.tolist(), self.counts, strict=True)
        return np.diag([C / (self.length * (2 * j + 1)) for C, count in pairs for j in range(count)])

    @property
    def damping_matrix(self) -> Array:
        """D (n x n) of the whole rod."""
        return self.damping * self.stiffness_matrix
