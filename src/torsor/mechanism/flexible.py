"""Flexible links: the shape of a link is a function of a few coordinates eta of a "flexible" joint.

The joint connects the clamped end of the link to its tip. Its data define how the tip moves with eta, and the stiffness
that determines the elastic energy of a shape. ``Modes`` are assumed modes (floating frame of reference): a point at r
moves to

    r + Phi eta + eta^T Gamma eta / 2

with mode shapes Phi and second-order displacements Gamma. A bending beam keeps its length, so its points move towards
the clamped end. The mass of the link is integrated over its nodes once, in ``dynamics``. The second kind of flexible
link is a rod with strain modes (``RodSection``).
"""

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
from numpy.polynomial.legendre import leggauss, legval
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import MAX_NUMBER, frozen_array, number, positive_vector, real_array, whole_number
from torsor.base.errors import ModelError, shortened
from torsor.mechanism.joints import JointKind
from torsor.mechanism.part import Part
from torsor.spatial import Matrix, Vector, ad, axis_frame, exp_se3, from_quaternion, matrix, right_jacobian, skew, stack
from torsor.spatial.vectors import is_symbolic

# Eigenvalue of the modal mass matrix, scaled to a unit diagonal, below which modes are dependent.
INDEPENDENT = 1e-10


class Flexible(Part):
    """Data of a joint of type "flexible": the ``kind``, ``stiffness`` and ``damping`` (n, n) of its coordinates."""

    def numbers(self) -> list[Array]:
        """Return all numbers in order; objects with equal numbers have the same kinematics."""
        values = (getattr(self, item.name) for item in fields(self) if item.compare)  # type: ignore[arg-type]
        return [np.asarray(value, dtype=float) for value in values]

    @property
    def kind(self) -> JointKind:
        """The kinematics from the clamped end to the tip, or from the previous section to this one."""
        raise NotImplementedError

    @property
    def stiffness_matrix(self) -> Array:
        """Symmetric matrix K (n x n) of the elastic energy eta^T K eta / 2; zero for a rigid part."""
        return np.zeros((self.kind.nv, self.kind.nv))

    @property
    def damping_matrix(self) -> Array:
        """Symmetric matrix D (n x n) of the damping forces D eta'."""
        return np.zeros((self.kind.nv, self.kind.nv))


def numbers_like(x: Vector, values: Array) -> Matrix:
    """Return numbers as CasADi numbers if x is symbolic, so that products with zeros and ones are simplified."""
    return ca.densify(ca.SX(values)) if is_symbolic(x) else values


def _slope(first: Array, second: Array, q: Vector) -> Matrix:
    columns = [numbers_like(q, second[:, :, k]) @ q for k in range(second.shape[2])]
    beside = ca.horzcat(*columns) if is_symbolic(q) else np.column_stack(columns)
    return numbers_like(q, first) + beside


def _displacement(first: Array, second: Array, q: Vector) -> Vector:
    return numbers_like(q, first) @ q + 0.5 * (_slope(np.zeros_like(first), second, q) @ q)


def _form(second: Array, v: Vector) -> Vector:
    """Return v^T second v (3), computing each pair of coordinates once."""
    pairs = [np.hstack([2 * second[:, k, :k], second[:, k, k : k + 1]]) for k in range(second.shape[2])]
    return sum((numbers_like(v, pair) @ v[: k + 1] * v[k] for k, pair in enumerate(pairs)), start=0 * v[0])


def _rows(angular: Matrix, linear: Matrix) -> Matrix:
    return ca.vertcat(angular, linear) if is_symbolic(angular, linear) else np.vstack([angular, linear])


@dataclass(frozen=True, eq=False)
class _Slide(JointKind):
    """The displacement ``first`` q + q^T ``second`` q / 2 of the tip without rotation, in the clamped end's axes."""

    _invisible = (0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)  # as for a prismatic joint
    first: Array = field(default_factory=lambda: np.zeros((3, 0)))
    second: Array = field(default_factory=lambda: np.zeros((3, 0, 0)))

    def transform(self, q: Vector, pitch: float) -> tuple[Matrix, Vector]:
        return np.eye(3), _displacement(self.first, self.second, q)

    def subspace(self, q: Vector, pitch: float) -> Matrix:
        return _rows(np.zeros_like(self.first), _slope(self.first, self.second, q))

    def subspace_rate(self, q: Vector, v: Vector, pitch: float) -> Matrix:
        none = np.zeros_like(self.first)
        return _rows(none, _slope(none, self.second, v))

    def bias(self, q: Vector, v: Vector, pitch: float) -> Vector:
        return stack(np.zeros(3), _form(self.second, v))


@dataclass(frozen=True, eq=False)
class _Hinge(JointKind):
    """Bending in one plane: a rotation of the tip about the joint axis by 2 atan(x), x = ``slopes`` . q / 2.

    To second order, the angle is ``slopes`` . q. Its sine and cosine are rational functions of x, which take a tenth of
    the time of trigonometric functions.
    """

    _invisible = (3, 3), (2, 3), (2, 2)  # as for a revolute joint
    slopes: Array = field(default_factory=lambda: np.zeros(0))

    def _half(self, q: Vector) -> tuple[Any, Any]:
        """Return x and 2 / (1 + x^2)."""
        x = (numbers_like(q, self.slopes[None, :] / 2) @ q)[0]
        return x, 2 / (1 + x * x)

    def transform(self, q: Vector, pitch: float) -> tuple[Matrix, Vector]:
        x, scale = self._half(q)
        s = x * scale
        c = 1 - x * s
        return matrix([[c, -s, 0], [s, c, 0], [0, 0, 1]]), np.zeros(3)

    def _along(self, scale: Any) -> Matrix:
        none, slopes = np.zeros((2, self.slopes.size)), self.slopes[None, :] / 2
        return _rows(_rows(none, numbers_like(scale, slopes) * scale), np.zeros((3, self.slopes.size)))

    def subspace(self, q: Vector, pitch: float) -> Matrix:
        return self._along(self._half(q)[1])

    def subspace_rate(self, q: Vector, v: Vector, pitch: float) -> Matrix:
        (x, scale), (rate, _) = self._half(q), self._half(v)
        return self._along(-scale * scale * (x * rate))

    def bias(self, q: Vector, v: Vector, pitch: float) -> Vector:
        (x, scale), (rate, _) = self._half(q), self._half(v)
        turning = scale * rate
        return stack(np.zeros(2), -(turning * turning) * x, np.zeros(3))


@dataclass(frozen=True, eq=False)
class _Turn(JointKind):
    """The rotation of the tip by the Gibbs vector theta = ``first`` q + q^T ``second`` q / 2, without trigonometry.

    A Gibbs vector is 2 tan(angle / 2) times the axis. To second order, it equals the rotation vector.
    """

    _invisible = ((3, 3),)  # as for a spherical joint
    first: Array = field(default_factory=lambda: np.zeros((3, 0)))
    second: Array = field(default_factory=lambda: np.zeros((3, 0, 0)))

    def _half(self, q: Vector) -> tuple[Vector, Matrix, Any]:
        """Return x = theta / 2, its derivative X (3 x n), and 2 / (1 + x^2)."""
        halves = self.first / 2, self.second / 2
        half = _displacement(*halves, q)
        return half, _slope(*halves, q), 2 / (half.T @ half + 1)  # the same form as in from_quaternion

    def _turned(self, q: Vector) -> tuple[Matrix, Matrix]:
        """Return X and x x X, scaled: S is their difference in the moved axes and their sum in the previous axes."""
        half, slope, scale = self._half(q)
        return slope * scale, skew(half) @ slope * scale

    def transform(self, q: Vector, pitch: float) -> tuple[Matrix, Vector]:
        return from_quaternion(stack(self._half(q)[0], 1.0)), np.zeros(3)

    def subspace(self, q: Vector, pitch: float) -> Matrix:
        along, across = self._turned(q)
        return _rows(along - across, np.zeros_like(self.first))

    def subspace_before(self, q: Vector, pitch: float) -> Matrix:
        along, across = self._turned(q)
        return _rows(along + across, np.zeros_like(self.first))

    def subspace_rate(self, q: Vector, v: Vector, pitch: float) -> Matrix:
        half, slope, scale = self._half(q)
        none = np.zeros_like(self.first)
        half_rate, slope_rate = slope @ v, _slope(none, self.second / 2, v)
        change = slope_rate - skew(half_rate) @ slope - skew(half) @ slope_rate
        return _rows((change - (slope - skew(half) @ slope) * (scale * (half.T @ half_rate))) * scale, none)

    def bias(self, q: Vector, v: Vector, pitch: float) -> Vector:
        half, slope, scale = self._half(q)
        rate, change = slope @ v, _form(self.second / 2, v)
        change = change - rate * (scale * (half.T @ rate))  # due to the change of scale
        return stack((change - skew(half) @ change) * scale, np.zeros(3))


@dataclass(frozen=True, eq=False)
class TipTurn(Flexible):
    """The rotation of the tip of a link with modes: ``first`` (3, n) and ``second`` (3, n, n), in joint axes."""

    first: Array
    second: Array
    turns: tuple[bool, ...]

    def __post_init__(self) -> None:
        n = len(self.turns)
        self._set(first=frozen_array(self.first, (3, n), "tip", "first", most=MAX_NUMBER))
        self._set(second=frozen_array(self.second, (3, n, n), "tip", "second", most=MAX_NUMBER))

    @cached_property
    def kind(self) -> JointKind:
        """A hinge if the tip rotates only about the joint's z axis, otherwise a general rotation."""
        kind = "flexible", tuple(str(k + 1) for k in range(len(self.turns))), self.turns
        if self.first[:2].any() or self.second.any():
            return _Turn(*kind, first=self.first, second=self.second)
        return _Hinge(*kind, slopes=self.first[2])


@dataclass(frozen=True, eq=False)
class Modes(Flexible):
    """Assumed modes of a link: N nodes with masses, n mode shapes and their stiffness, in the axes of the clamped end.

    ``positions`` (N, 3), in m, are the node positions at rest; the last node is the tip, to which the following links
    are attached. ``masses`` (N,), in kg, and ``inertias`` (N, 3, 3), in kg m^2, belong to the nodes (for a beam, to the
    quadrature points). A unit of coordinate k displaces node i by ``shapes[i, :, k]`` (m) and rotates it by
    ``rotations[i, :, k]`` (rad). Each pair of coordinates adds the displacement ``second[i, :, k, l]`` / 2 times their
    product. ``tip_second`` (3, n, n) is the second-order rotation of the tip. ``second``, ``tip_second`` and
    ``inertias`` are zero by default. ``stiffness`` and ``damping`` are matrices (n, n) or their diagonals (n,).
    ``turns`` marks the coordinates that are angles; the others are in m.

    Example:
        >>> x = np.array([[0.5, 0, 0], [1.0, 0, 0]])
        >>> shapes, slopes = np.zeros((2, 3, 1)), np.zeros((2, 3, 1))
        >>> shapes[:, 1, 0], slopes[:, 2, 0] = [0.3, 1.0], [1.0, 1.4]
        >>> Modes(x, [1.0, 0.5], shapes, slopes, stiffness=[40.0]).mass_matrix.round(9).tolist()
        [[0.59]]
    """

    positions: Array
    masses: Array
    shapes: Array
    rotations: Array
    stiffness: ArrayLike
    damping: ArrayLike = 0.0
    second: Array | None = None
    tip_second: Array | None = None
    inertias: Array | None = None
    turns: tuple[bool, ...] = ()
    source: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        where = self.source or "modes"
        masses = real_array(self.masses, where, "masses")
        shapes = real_array(self.shapes, where, "shapes")
        if masses.ndim != 1 or shapes.ndim != 3 or not masses.size or not shapes.shape[-1]:
            message = f"have shape {masses.shape}, mode shapes {shapes.shape}"
            allowed = "(N,) and (N, 3, n): N nodes, n modes, at least one"
            raise ModelError(message, argument="masses", where=where, allowed=allowed)
        N, n = masses.size, shapes.shape[-1]
        none = {"second": (N, 3, n, n), "tip_second": (3, n, n), "inertias": (N, 3, 3)}
        for name, shape in {"positions": (N, 3), "shapes": (N, 3, n), "rotations": (N, 3, n), **none}.items():
            array = np.zeros(shape) if getattr(self, name) is None else getattr(self, name)
            self._set(**{name: frozen_array(array, shape, where, name, most=MAX_NUMBER)})
        frozen_array(masses, (N,), where, "masses", most=MAX_NUMBER)
        self._set(masses=positive_vector(masses, N, where, "masses", or_zero=True))
        self._set(stiffness=_elastic(self.stiffness, n, where, "stiffness"))
        self._set(damping=_elastic(self.damping, n, where, "damping", or_zero=True))
        _check_pairs(self, where)
        turns = tuple(bool(item) for item in self.turns) or (False,) * n
        if len(turns) != n:
            allowed = f"{n}, one for each mode"
            raise ModelError(f"has {len(turns)} entries", argument="turns", where=where, allowed=allowed)
        self._set(turns=turns)
        M = self.mass_matrix
        scale = np.sqrt(np.abs(M.diagonal()))
        if not scale.all() or np.linalg.eigvalsh(M / np.outer(scale, scale)).min() < INDEPENDENT:
            message = f"{n} modes are not independent at the {np.count_nonzero(self.masses)} nodes with mass"
            allowed = "modes that move mass in different ways"
            raise ModelError(message, where=where, allowed=allowed, fix="use fewer modes or more nodes")

    @property
    def count(self) -> int:
        """Number of modes."""
        return int(self.shapes.shape[-1])

    @cached_property
    def mass_matrix(self) -> Array:
        """Modal mass matrix (n x n): the sum of m Phi^T Phi and of the rotational inertias of the nodes."""
        inertias = np.asarray(self.inertias)
        moving = np.einsum("i,ixk,ixl->kl", self.masses, self.shapes, self.shapes)
        M = moving + np.einsum("ixk,ixy,iyl->kl", self.rotations, inertias, self.rotations)
        scale = np.sqrt(np.abs(np.outer(M.diagonal(), M.diagonal())))
        return np.where(np.abs(M) <= 1e-13 * scale, 0.0, M)  # removes rounding errors for orthogonal modes

    @property
    def frequencies(self) -> Array:
        """Natural frequencies (n,), in rad/s, in increasing order, for a fixed clamped end and a free tip.

        Example:
            >>> import torsor
            >>> from torsor.mechanism.flexible_links import beam
            >>> beam(length=1.0, mass=1.0, bending=1.0, modes=(1, 0)).frequencies.round(4).tolist()
            [3.516]
        """
        L = np.linalg.cholesky(self.mass_matrix)
        reduced = np.linalg.solve(L, np.linalg.solve(L, self.stiffness_matrix).T)
        return np.asarray(np.sqrt(np.linalg.eigvalsh((reduced + reduced.T) / 2)))

    @cached_property
    def body(self) -> tuple[float, Array, Array]:
        """(mass, centre of mass, inertia about it) of the link at rest, in the axes of the clamped end."""
        mass = float(self.masses.sum())
        com = self.masses @ self.positions / mass
        x = self.positions - com
        J = np.einsum("i,ix,ix->", self.masses, x, x) * np.eye(3) - np.einsum("i,ix,iy->xy", self.masses, x, x)
        return mass, com, J + np.asarray(self.inertias).sum(axis=0)

    @cached_property
    def kind(self) -> JointKind:
        """The displacement of the tip."""
        names = tuple(str(k + 1) for k in range(self.count))
        return _Slide("flexible", names, self.turns, first=self.shapes[-1], second=np.asarray(self.second)[-1])

    def turn(self) -> tuple[TipTurn, Array]:
        """Return the rotation of the tip, and the joint axis (3,): the only rotation axis, otherwise z."""
        first, second, z = self.rotations[-1], np.asarray(self.tip_second), np.array([0.0, 0.0, 1.0])
        largest = first[:, np.argmax(np.linalg.norm(first, axis=0))]
        sign = np.sign(largest[np.argmax(np.abs(largest))])  # prefer x, y, z to -x, -y, -z
        size = float(np.linalg.norm(largest)) * sign
        axis = largest / size if size else z
        if second.any() or np.abs(np.cross(axis, first.T)).max() > 1e-12 * np.abs(first).max():
            axis = z
        R = axis_frame(axis)
        return TipTurn(R.T @ first, np.einsum("xy,ykl->xkl", R.T, second), self.turns), axis

    @property
    def stiffness_matrix(self) -> Array:
        """Matrix K (n x n) of the elastic energy eta^T K eta / 2."""
        return np.asarray(self.stiffness)

    @property
    def damping_matrix(self) -> Array:
        """Matrix D (n x n) of the damping forces D eta'."""
        return np.asarray(self.damping)


def _check_pairs(modes: Modes, where: str) -> None:
    """Raise ModelError unless second-order displacements are symmetric and node inertias are physical."""
    for name in ("second", "tip_second"):
        values = getattr(modes, name)
        if np.abs(values - values.swapaxes(-1, -2)).max(initial=0.0) > 1e-9 * np.abs(values).max(initial=0.0):
            allowed = "equal numbers for the mode pairs (k, l) and (l, k)"
            raise ModelError("is not symmetric", argument=name, where=where, allowed=allowed)
        modes._set(**{name: frozen_array((values + values.swapaxes(-1, -2)) / 2, values.shape, where, name)})
    for i, J in enumerate(np.asarray(modes.inertias)):
        largest = np.abs(J).max()
        if np.abs(J - J.T).max() > 1e-9 * largest or np.linalg.eigvalsh((J + J.T) / 2).min() < -1e-9 * largest:
            allowed = "a symmetric matrix without negative eigenvalues"
            raise ModelError(f"inertia of node {i + 1} is {shortened(J)}", where=where, allowed=allowed)


def _elastic(value: ArrayLike, n: int, where: str, what: str, or_zero: bool = False) -> Array:
    """Return a stiffness or damping as a symmetric matrix (n, n), positive definite (semidefinite for a damping)."""
    if np.ndim(np.asarray(value, dtype=object)) < 2:
        diagonal = positive_vector(value, n, where, what, or_zero=or_zero)
        return frozen_array(np.diag(diagonal), (n, n), where, what, most=MAX_NUMBER)
    A = frozen_array(value, (n, n), where, what, most=MAX_NUMBER)
    largest, least = np.abs(A).max(), np.linalg.eigvalsh((A + A.T) / 2).min()
    if np.abs(A - A.T).max() > 1e-9 * largest or least < -1e-12 * largest or (least <= 0 and not or_zero):
        message = f"{what} {shortened(A)} has the smallest eigenvalue {least:.3g}"
        raise ModelError(message, where=where, allowed="a symmetric matrix with positive eigenvalues")
    return frozen_array((A + A.T) / 2, (n, n), where, what)


# Rods with strain modes: the strain along a rod is a sum of polynomials, and integrating it gives the section poses.
#
# A section at s has the pose g(s) with g' = g xi^, where the strain xi (torsion, two curvatures, stretch, shear) is
# linear in the coordinates: xi(s) = xi_0 + B(s) q. Between two sections, the pose changes by exp(Omega^), where
# Omega is the Magnus expansion of order 6 (Blanes, Casas, Oteo and Ros 2009) at three Gauss points. For a constant
# strain it is exact. For any curvature, a rod is thus a chain of small rigid bodies that share the coordinates q
# (Boyer, Porez and Khalil 2006; Renda, Boyer, Dias and Seneviratne 2018).

STRAINS = {"y": 2, "z": 1, "x": 0, "s": 3}
"""Strain components by the letter in coordinate names: bending along y and z, torsion, stretch."""
MAX_MODES = 100  # maximum number of modes of one strain


def strain_basis(counts: tuple[int, ...], length: float, s: float) -> Array:
    """Return B(s) (6, n), the strain per coordinate: Legendre polynomials divided by ``length`` (m)."""
    B, k = np.zeros((6, sum(counts))), 0
    for component, count in zip(STRAINS.values(), counts, strict=True):
        for j in range(count):
            B[component, k] = legval(2 * s / length - 1, np.eye(j + 1)[j]) / length
            k += 1
    return B


@dataclass(frozen=True, eq=False)
class _Strain(JointKind):
    """The motion between two sections of a rod, from strains at three points: at rest (3, 6) and per q (3, 6, n)."""

    step: float = 0.0
    rest: Array = field(default_factory=lambda: np.zeros((3, 6)))
    basis: Array = field(default_factory=lambda: np.zeros((3, 6, 0)))

    def _twist(self, q: Vector) -> Vector:
        """Return Omega (6) by the Magnus expansion, with bracket signs for g' = g xi^."""
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
    """Return the result of a function: symbolic for symbolic values, an array for numbers."""
    return function(*values) if is_symbolic(*values) else np.asarray(function(*values))


@dataclass(frozen=True, eq=False)
class RodSection(Flexible):
    """The joint between two sections of a rod: its part from ``start`` to ``end`` (m).

    ``counts`` are the numbers of coordinates: bending along y, along z, torsion, stretch. ``rest`` (6,) is the strain
    at rest. ``stiffness`` (4,) has one value per strain (N m^2, or N for stretch). The damping matrix is the stiffness
    matrix times ``damping`` (s).

    Example:
        >>> part = RodSection(0.0, 0.5, 1.0, (1, 0, 0, 0), np.array([0, 0, 0, 1.0, 0, 0]), np.ones(4))
        >>> R, p = part.kind.transform(np.array([np.pi]), 0.0)  # half of a semicircle of length 1
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
        self._set(rest=frozen_array(self.rest, (6,), "rod", "rest", most=MAX_NUMBER))
        self._set(stiffness=frozen_array(self.stiffness, (4,), "rod", "stiffness", most=MAX_NUMBER))
        for name in ("start", "end", "damping"):
            self._set(**{name: number(getattr(self, name), "rod", name, least=0, most=MAX_NUMBER)})
        self._set(length=number(self.length, "rod", "length", least=1 / MAX_NUMBER, most=MAX_NUMBER))
        if len(self.counts) != len(STRAINS):
            raise ModelError(f"are {self.counts}", argument="counts", where="rod", allowed=f"{len(STRAINS)} numbers")
        for count in self.counts:
            whole_number(count, "rod", "one of its counts", least=0, most=MAX_MODES)

    @cached_property
    def kind(self) -> JointKind:
        """The motion from one section to the next."""
        names = [f"{letter}{j + 1}" for letter, count in zip(STRAINS, self.counts, strict=True) for j in range(count)]
        turns = tuple(not name.startswith("s") for name in names)
        step = self.end - self.start
        s = self.start + (leggauss(3)[0] + 1) / 2 * step
        basis = np.array([strain_basis(self.counts, self.length, item) for item in s.tolist()])
        rest = np.broadcast_to(self.rest, (3, 6))
        return _Strain("flexible", tuple(names), turns, step=step, rest=rest, basis=basis)

    @property
    def stiffness_matrix(self) -> Array:
        """Matrix K (n x n) of the whole rod, which is diagonal because Legendre polynomials are orthogonal."""
        pairs = zip(self.stiffness.tolist(), self.counts, strict=True)
        return np.diag([C / (self.length * (2 * j + 1)) for C, count in pairs for j in range(count)])

    @property
    def damping_matrix(self) -> Array:
        """Damping matrix D (n x n) of the whole rod."""
        return self.damping * self.stiffness_matrix
