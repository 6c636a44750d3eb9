"""Modes of a uniform beam from its properties, computed by the Ritz method with polynomials.

The trial functions are x^2 P_j for bending along y and z, and x P_j for torsion, where P_j are the Legendre polynomials
over the length of the beam. They are clamped at x = 0 and free at the tip. The lowest eigenvectors, computed with a
load on the tip, span the modes. Within this span, the modes of the beam alone are orthogonal. Second-order
displacements follow from strains that are linear in eta. With the rotation theta of a section and kappa = theta'
(Magnus expansion to second order),

    r2 = integral of ([theta]^2 / 2 + [theta2]) e_x,      theta2 = integral of theta x kappa / 2

The x component of r2 is the shortening -(u_y'^2 + u_z'^2) / 2 of a bending beam (Kane, Ryan and Banerjee 1987).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.polynomial import Legendre
from numpy.polynomial.legendre import leggauss

from torsor.base.arrays import Array
from torsor.base.checks import number, one_of, positive, positive_vector, whole_number
from torsor.base.errors import ModelError
from torsor.mechanism.flexible import Modes

# Number of additional trial functions that make the eigenvalues of the modes converge to rounding.
_EXTRA_TRIALS = 10
MAX_MODES = 12  # maximum number of modes in one direction; with more, the trial functions lose digits


def beam(
    length: float,
    mass: float,
    bending: Any,
    modes: Any = 2,
    torsion: float | None = None,
    axial_inertia: float | None = None,
    damping: float = 0.0,
    tip_mass: float = 0.0,
    tip_inertia: float = 0.0,
    carries: tuple[float, float] = (0.0, 0.0),
    coordinates: str = "modal",
) -> Modes:
    """Return the modes of a uniform beam along x that is clamped at its root (Euler-Bernoulli, Saint-Venant).

    - ``length`` in m, ``mass`` in kg.
    - ``bending``: the stiffness EI (N m^2), one number or (along y, along z) for the direction of the deflection.
    - ``modes``: the number of modes, one number for both directions, or (along y, along z), or (along y, along z,
      torsion).
    - ``torsion`` and ``axial_inertia``: the stiffness GJ (N m^2), and the inertia (kg m^2) of the whole beam about its
      axis, for torsion modes.
    - ``damping``: the damping ratio of every mode.
    - ``tip_mass`` (kg) and ``tip_inertia`` (kg m^2, about y and z): a load at the tip that is part of the beam.
    - ``carries``: approximate mass (kg) and inertia (kg m^2) of the bodies that will be attached to the tip. They only
      affect the choice of modes, so that fewer are needed.

    With ``coordinates="modal"``, modes are orthogonal, and a coordinate is the largest deflection (m) or angle (rad) of
    its mode. With "tip", the first two coordinates of a direction are the deflection (m) and the slope (rad) of the
    tip, which does not move in the other modes (Craig and Bampton 1968). Both describe the same motions, but "tip"
    takes fewer operations if the tip carries another link.

    Example:
        >>> modes = beam(length=2.0, mass=1.0, bending=(8.0, 50.0), modes=(2, 1))
        >>> modes.frequencies.round(3).tolist()  # 3.516 and 22.034 sqrt(EI / (m L^3)), both directions
        [3.516, 8.79, 22.034]
    """
    where = "beam"
    length, mass = positive(length, where, "length"), positive(mass, where, "mass")
    allowed = "one number, (along y, along z) or (along y, along z, torsion)"
    counts = mode_counts(modes, 2, (2, 3), allowed, where)
    EI = positive_vector(bending, 2, where, "bending")
    tip_load = number(tip_mass, where, "tip_mass", least=0), number(tip_inertia, where, "tip_inertia", least=0)
    if np.ndim(np.asarray(carries, dtype=object)) != 1:
        raise ModelError(argument="carries", value=carries, where=where, allowed="(mass, inertia)")
    later = positive_vector(carries, 2, where, "carries", or_zero=True)
    at_tip = one_of(coordinates, ("modal", "tip"), where, "coordinates") == "tip"
    if torsion is not None:
        torsion = positive(torsion, where, "torsion")
    fields: list[_Field] = []
    blocks: list[Array] = []
    for axis, stiffness, count in zip((1, 2), EI.tolist(), counts, strict=False):
        trial = _Trial(2, count, length, mass / length, stiffness, tip_load)
        shapes, K = trial.modes((float(later[0]), float(later[1])), at_tip)
        fields += [_Field(shape, axis, at_tip and k == 1) for k, shape in enumerate(shapes)]
        blocks.append(K)
    if counts[2]:
        GJ = _given(torsion, "torsion", where)
        J = positive(_given(axial_inertia, "axial_inertia", where), where, "axial_inertia")
        shapes, K = _Trial(1, counts[2], length, J / length, GJ, (0.0, 0.0)).modes((0.0, 0.0), at_tip)
        fields += [_Field(shape, 0, True) for shape in shapes]
        blocks.append(K)
    inertia = 0.0 if axial_inertia is None else number(axial_inertia, where, "axial_inertia", least=0)
    K, start = np.zeros((len(fields), len(fields))), 0
    for block in blocks:  # on the diagonal
        end = start + len(block)
        K[start:end, start:end], start = block, end
    return _modes(fields, K, length, (mass, inertia), tip_load, damping)


def _given(value: float | None, name: str, where: str) -> float:
    if value is None:
        raise ModelError(f"torsion modes need {name}", where=where, fix=f"pass {name}=")
    return value


def mode_counts(modes: Any, single: int, lengths: Sequence[int], allowed: str, where: str) -> list[int]:
    """Return the numbers of modes, with zeros for omitted numbers; a single number is repeated ``single`` times."""
    numbers = list(modes) if isinstance(modes, (Sequence, np.ndarray)) and np.ndim(modes) == 1 else [modes] * single
    if len(numbers) not in lengths:
        raise ModelError(argument="modes", value=modes, where=where, allowed=allowed)
    counts = [whole_number(value, where, "modes", least=0, most=MAX_MODES) for value in numbers]
    if not sum(counts):
        raise ModelError("there is no mode", where=where, allowed="at least one", fix="use a rigid link without modes")
    return counts + [0] * (max(lengths) - len(counts))


class _Trial:
    """Trial functions of a beam: mass and stiffness matrices, and values and slopes at the tip.

    ``clamped`` is 2 for bending, whose energy depends on the second derivative, and 1 for torsion.
    """

    def __init__(
        self, clamped: int, count: int, length: float, density: float, stiffness: float, own: tuple[float, float]
    ):
        self.count, self.clamped = count, clamped
        x = Legendre.identity([0.0, length]) / length
        self.functions = [x**clamped * Legendre.basis(j, [0.0, length]) for j in range(count + _EXTRA_TRIALS)]
        nodes, weights = leggauss(count + _EXTRA_TRIALS + 3)
        s, w = (nodes + 1) * length / 2, weights * length / 2
        bent = np.array([f.deriv(clamped)(s) for f in self.functions])
        values = np.array([f(s) for f in self.functions])
        self.tip = np.array([[f(length), f.deriv()(length)] for f in self.functions]).T
        self.K = stiffness * (bent * w) @ bent.T
        self.M = self.loaded(density * (values * w) @ values.T, own)
        self.places = np.append(s, length)

    def loaded(self, M: Array, load: tuple[float, float]) -> Array:
        """Return the mass matrix M plus that of a load (mass, inertia) at the tip."""
        return np.asarray(M + sum(m * np.outer(row, row) for m, row in zip(load, self.tip, strict=True)))

    def modes(self, carries: tuple[float, float], at_tip: bool) -> tuple[list[Legendre], Array]:
        """Return the polynomials of the modes, and their stiffness matrix."""
        try:
            return self._modes(carries, at_tip)
        except np.linalg.LinAlgError:
            message = "its numbers are too large or too small to compute its modes"
            raise ModelError(message, where="beam", fix="check the units: m, kg, N m^2") from None

    def _modes(self, carries: tuple[float, float], at_tip: bool) -> tuple[list[Legendre], Array]:
        span = _eigenvectors(self.K, self.loaded(self.M, carries))[:, : self.count]
        held = min(self.clamped, self.count) if at_tip else 0
        K, M, C = span.T @ self.K @ span, span.T @ self.M @ span, self.tip[:held] @ span
        bend = np.linalg.solve(K, C.T)  # static shapes for unit deflection and unit slope of the tip
        static = span @ bend @ np.linalg.inv(C @ bend) if held else span[:, :0]
        free = np.linalg.svd(C)[2][held:].T if held else np.eye(self.count)
        normal = span @ free @ _eigenvectors(free.T @ K @ free, free.T @ M @ free)
        largest = np.array([f(self.places) for f in self.functions]).T @ normal
        normal = normal / largest[np.argmax(np.abs(largest), axis=0), np.arange(self.count - held)]
        columns = np.hstack([static, normal])
        result = columns.T @ self.K @ columns
        scale = np.sqrt(np.outer(result.diagonal(), result.diagonal()))
        zero = 0 * self.functions[0]
        shapes = [sum((c * f for c, f in zip(x, self.functions, strict=True)), start=zero) for x in columns.T.tolist()]
        return shapes, np.where(np.abs(result) <= 1e-12 * scale, 0.0, result)


def _eigenvectors(K: Array, M: Array) -> Array:
    """Return the eigenvectors of K x = lambda M x, as columns, by increasing eigenvalues."""
    L = np.linalg.cholesky(M)
    reduced = np.linalg.solve(L, np.linalg.solve(L, K).T)
    return np.linalg.solve(L.T, np.linalg.eigh((reduced + reduced.T) / 2)[1])


class _Field:
    """A mode: deflection along axis 1 or 2, or torsion (axis 0), as a polynomial in s."""

    def __init__(self, shape: Legendre, axis: int, turns: bool):
        self.shape, self.axis, self.turns = shape, axis, turns
        none = 0 * shape
        # A deflection along y rotates sections about z, and one along z rotates them about -y.
        slope = {0: [shape, none, none], 1: [none, none, shape.deriv()], 2: [none, -shape.deriv(), none]}[axis]
        self.theta = slope
        self.kappa = [item.deriv() for item in slope]


def _cross(a: list[Legendre], b: list[Legendre]) -> list[Legendre]:
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def _second(one: _Field, other: _Field) -> tuple[list[Legendre], list[Legendre]]:
    """Return the second-order displacement and rotation of a pair of modes, as polynomials in s."""
    a, b = one.theta, other.theta
    turning = zip(_cross(a, other.kappa), _cross(b, one.kappa), strict=True)
    turn = [((left + right) / 2).integ(lbnd=0.0) for left, right in turning]
    none = 0 * turn[0]
    across = [(a[k] * b[0] + b[k] * a[0]) / 2 for k in range(3)]
    across[0] = across[0] - sum((a[k] * b[k] for k in range(3)), start=none)
    carried = [none, turn[2], -turn[1]]  # theta2 x e_x
    return [(left + right).integ(lbnd=0.0) for left, right in zip(across, carried, strict=True)], turn


def _modes(
    fields: list[_Field], K: Array, length: float, whole: tuple[float, float], tip: tuple[float, float], damping: float
) -> Modes:
    """Return the modes at the nodes of a Gauss quadrature that integrates all products exactly, and at the tip.

    ``whole`` is the (mass, axial inertia) of the beam, and ``tip`` the (mass, inertia) of the load at its tip.
    """
    ratio = number(damping, "beam", "damping", least=0)
    nodes, weights = leggauss(max(field.shape.degree() for field in fields) + 2)
    s, w = np.append((nodes + 1) * length / 2, length), np.append(weights / 2, 0.0)
    n, masses = len(fields), whole[0] * w
    masses[-1] = tip[0]
    shapes = np.zeros((len(s), 3, n))
    for k, mode in enumerate(fields):
        if mode.axis:
            shapes[:, mode.axis, k] = mode.shape(s)
    rotations = np.array([[theta(s) for theta in field.theta] for field in fields]).transpose(2, 1, 0)
    second, tip_second = np.zeros((len(s), 3, n, n)), np.zeros((3, n, n))
    for k in range(n):
        for i in range(k + 1):
            moved, turned = _second(fields[k], fields[i])
            second[:, :, k, i] = second[:, :, i, k] = np.array([entry(s) for entry in moved]).T
            tip_second[:, k, i] = tip_second[:, i, k] = [entry(length) for entry in turned]
    inertias = np.zeros((len(s), 3, 3))
    inertias[:, 0, 0] = whole[1] * w
    inertias[-1] += np.diag([0.0, tip[1], tip[1]])
    for item in (shapes[-1], rotations[-1], second[-1], tip_second):  # exact zeros at the tip save operations
        item[np.abs(item) <= 1e-11 * np.abs(item).max(initial=0.0)] = 0.0
    turns = tuple(field.turns for field in fields)
    parts: dict[str, Any] = {"positions": np.column_stack([s, 0 * s, 0 * s]), "masses": masses, "shapes": shapes}
    parts |= {"rotations": rotations, "stiffness": K, "second": second, "tip_second": tip_second}
    parts |= {"inertias": inertias, "turns": turns, "source": "beam"}
    made = Modes(**parts)
    J = made.body[2].diagonal()
    if J[0] > J[1] + J[2]:
        allowed = f"{J[1] + J[2]:.3g} at most, because no body of this length and mass has more"
        raise ModelError(f"is {whole[1]:.3g}", argument="axial_inertia", where="beam", allowed=allowed)
    # With the same ratio for all modes, the damping matrix is 2 ratio M (M^-1 K)^(1/2).
    X = _eigenvectors(K, made.mass_matrix)
    D = made.mass_matrix @ X @ np.diag(2 * ratio * made.frequencies) @ X.T @ made.mass_matrix
    D = np.where(np.abs(D) <= 1e-12 * np.abs(D).max(initial=0.0), 0.0, D)
    return Modes(damping=D, **parts)
