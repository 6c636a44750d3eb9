"""Flexible links: the shape of a link is a function of a few coordinates eta, those of a joint of type "flexible".

The joint leads from the clamped end of the link to its tip. Its data say how the tip moves with eta, and what a shape
costs: the stiffness. ``Modes`` are assumed modes (floating frame of reference): a point at r moves to

    r + Phi eta + eta^T Gamma eta / 2

with mode shapes Phi and second-order displacements Gamma: a beam that bends does not become longer, so that its
points move back towards the clamped end. The mass of the link is integrated over its nodes once, in ``dynamics``.
``mechanism.rods`` has the other kind, rods by strain modes.
"""

from dataclasses import dataclass, field
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor.arrays import Array
from torsor.checks import frozen_array, positive_vector, real_array
from torsor.errors import ModelError, describe, shortened
from torsor.mechanism.joints import JointKind
from torsor.mechanism.part import Part
from torsor.spatial import Matrix, Vector, from_quaternion, skew, stack
from torsor.spatial.vectors import is_symbolic

# Of the entries of the modal mass matrix: modes are orthogonal, up to rounding of the integrals over the nodes.
ORTHOGONAL = 1e-9


class Flexible(Part):
    """What a joint of type "flexible" needs: the ``kind``, ``stiffness`` and ``damping`` (n, n) of its coordinates."""

    @property
    def kind(self) -> JointKind:
        """The kinematics from the clamped end, or the section before, to the tip, or the section itself."""
        raise NotImplementedError

    @property
    def stiffness_matrix(self) -> Array:
        """The symmetric matrix K (n x n) of the elastic energy eta^T K eta / 2."""
        raise NotImplementedError

    @property
    def damping_matrix(self) -> Array:
        """The symmetric matrix D (n x n) of the damping forces D eta'."""
        raise NotImplementedError


def numbers_like(x: Vector, values: Array) -> Matrix:
    """Return numbers as CasADi numbers where x is a symbol, so that products of both fold."""
    return ca.densify(ca.SX(values)) if is_symbolic(x) else values


def _slope(first: Array, second: Array, q: Vector) -> Matrix:
    """Return the derivative (3 x n) of first q + q^T second q / 2."""
    columns = [numbers_like(q, second[:, :, k]) @ q for k in range(second.shape[2])]
    beside = ca.horzcat(*columns) if is_symbolic(q) else np.column_stack(columns)
    return numbers_like(q, first) + beside


@dataclass(frozen=True, eq=False)
class ModalKind(JointKind):
    """The motion of the tip: displacement ``shape`` (3, n) and rotation ``turn`` (3, n), with second-order terms.

    The rotation is that of the Gibbs vector theta (2 tan(angle / 2) times the axis): no sine and no cosine.
    """

    shape: Array = field(default_factory=lambda: np.zeros((3, 0)))
    shape_second: Array = field(default_factory=lambda: np.zeros((3, 0, 0)))
    turn: Array = field(default_factory=lambda: np.zeros((3, 0)))
    turn_second: Array = field(default_factory=lambda: np.zeros((3, 0, 0)))

    def _rotation(self, q: Vector) -> tuple[Matrix, Matrix]:
        """Return theta / 2 and its derivative (3 x n)."""
        slope = _slope(self.turn, self.turn_second, q) / 2
        return (numbers_like(q, self.turn / 2) + slope) @ q / 2, slope

    def transform(self, q: Vector, pitch: float) -> tuple[Matrix, Vector]:
        half, _ = self._rotation(q)
        p = (numbers_like(q, self.shape) + _slope(self.shape, self.shape_second, q)) @ q / 2
        return from_quaternion(stack(half, 1.0)), p

    def subspace(self, q: Vector, pitch: float) -> Matrix:
        (R, _), (half, slope) = self.transform(q, pitch), self._rotation(q)
        angular = (slope - skew(half) @ slope) * (2 / (1 + half.T @ half))
        return _rows(angular, R.T @ _slope(self.shape, self.shape_second, q))

    def subspace_rate(self, q: Vector, v: Vector, pitch: float) -> Matrix:
        (R, _), (half, slope) = self.transform(q, pitch), self._rotation(q)
        none = np.zeros_like(self.turn)
        half_rate, slope_rate = slope @ v, _slope(none, self.turn_second, v) / 2
        scale = 2 / (1 + half.T @ half)
        change = slope_rate - skew(half_rate) @ slope - skew(half) @ slope_rate
        turned = slope - skew(half) @ slope
        angular = change * scale - turned * (scale * scale * (half.T @ half_rate))
        linear = R.T @ _slope(self.shape, self.shape_second, q)
        w = (turned @ v) * scale
        return _rows(angular, R.T @ _slope(none, self.shape_second, v) - skew(w) @ linear)


def _rows(angular: Matrix, linear: Matrix) -> Matrix:
    return ca.vertcat(angular, linear) if is_symbolic(angular, linear) else np.vstack([angular, linear])


@dataclass(frozen=True, eq=False)
class Modes(Flexible):
    """Assumed modes of a link: N nodes with masses, n mode shapes and their stiffness, in the axes of the clamped end.

    ``positions`` (N, 3) m are at rest; the last node is the tip, which carries what follows. ``masses`` (N,) kg and
    ``inertias`` (N, 3, 3) kg m^2 are those of the nodes (a beam: weights of a quadrature). A unit of coordinate k
    displaces node i by ``shapes[i, :, k]`` (m) and rotates it by ``rotations[i, :, k]`` (rad); two coordinates displace
    it by ``second[i, :, k, l]`` / 2 more. ``tip_second`` (3, n, n) is the second-order rotation of the tip.
    ``stiffness`` (n,) and ``damping`` (n,) are those of the modes, which are orthogonal: so is their mass. ``turns``
    says which coordinates are angles; the others are in m.

    Example:
        >>> x = np.array([[0.5, 0, 0], [1.0, 0, 0]])
        >>> shapes, slopes = np.zeros((2, 3, 1)), np.zeros((2, 3, 1))
        >>> shapes[:, 1, 0], slopes[:, 2, 0] = [0.3, 1.0], [1.0, 1.4]
        >>> Modes(x, [1.0, 0.5], shapes, slopes, stiffness=[40.0]).modal_masses.round(9).tolist()
        [0.59]
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
            found = f"masses have shape {masses.shape}, mode shapes {shapes.shape}"
            raise ModelError(describe(found, where=where, allowed="(N,) and (N, 3, n): N nodes, n modes, at least one"))
        N, n = masses.size, shapes.shape[-1]
        none = {"second": (N, 3, n, n), "tip_second": (3, n, n), "inertias": (N, 3, 3)}
        for name, shape in {"positions": (N, 3), "shapes": (N, 3, n), "rotations": (N, 3, n), **none}.items():
            given = getattr(self, name)
            self._set(**{name: frozen_array(np.zeros(shape) if given is None else given, shape, where, name)})
        self._set(masses=positive_vector(masses, N, where, "masses", or_zero=True))
        self._set(stiffness=_frozen(positive_vector(self.stiffness, n, where, "stiffness")))
        self._set(damping=_frozen(positive_vector(self.damping, n, where, "damping", or_zero=True)))
        turns = tuple(bool(each) for each in self.turns) or (False,) * n
        if len(turns) != n:
            raise ModelError(describe(f"turns has {len(turns)} entries", where=where, allowed=f"{n}, one for each mode"))
        self._set(turns=turns)
        self._check_mass(where)

    def _check_mass(self, where: str) -> None:
        M = self.mass_matrix
        scale = np.sqrt(np.abs(np.outer(M.diagonal(), M.diagonal())))
        if not (M.diagonal() > 0).all() or np.linalg.matrix_rank(M / scale, tol=1e-10) < self.count:
            found = f"{self.count} modes at {np.count_nonzero(self.masses)} nodes with mass are not independent"
            raise ModelError(
                describe(found, where=where, allowed="modes that move mass, each in its own way", fix="use fewer modes")
            )
        if (np.abs(M - np.diag(M.diagonal())) > ORTHOGONAL * scale).any():
            found = f"the modal mass matrix {shortened(M.round(6))} is not diagonal"
            fix = "torsor.flexible.orthogonal_modes makes modes orthogonal"
            raise ModelError(describe(found, where=where, allowed="orthogonal modes", fix=fix))

    @property
    def count(self) -> int:
        """Number of modes."""
        return self.shapes.shape[-1]

    @cached_property
    def mass_matrix(self) -> Array:
        """Modal masses (n x n): the sum of m Phi^T Phi and of the rotational inertias."""
        inertias = np.asarray(self.inertias)
        moving = np.einsum("i,ixk,ixl->kl", self.masses, self.shapes, self.shapes)
        return np.asarray(moving + np.einsum("ixk,ixy,iyl->kl", self.rotations, inertias, self.rotations))

    @property
    def modal_masses(self) -> Array:
        """Modal masses (n,): kg, or kg m^2 for angles."""
        return np.asarray(self.mass_matrix.diagonal())

    @property
    def frequencies(self) -> Array:
        """Natural frequencies (n,) rad/s with the clamped end at rest and nothing on the tip.

        Example:
            >>> import torsor
            >>> torsor.flexible.beam(length=1.0, mass=1.0, bending=1.0, modes=(1, 0)).frequencies.round(4).tolist()
            [3.516]
        """
        return np.asarray(np.sqrt(self.stiffness / self.modal_masses))

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
        """The motion of the tip."""
        names = tuple(str(k + 1) for k in range(self.count))
        tip = self.shapes[-1], np.asarray(self.second)[-1], self.rotations[-1], np.asarray(self.tip_second)
        return ModalKind("flexible", names, self.turns, False, *tip)

    @property
    def stiffness_matrix(self) -> Array:
        """The diagonal matrix K (n x n) of the stiffnesses."""
        return np.diag(np.asarray(self.stiffness))

    @property
    def damping_matrix(self) -> Array:
        """The diagonal matrix D (n x n) of the dampings."""
        return np.diag(np.asarray(self.damping))


def _frozen(array: Array) -> Array:
    array = np.array(array)
    array.setflags(write=False)
    return array
