"""The modes of a uniform beam from its numbers, by Ritz' method with polynomials.

Bending along y and z has the trial functions x^2 P_j, torsion x P_j, with the Legendre polynomials P_j on the length of
the beam: they are clamped at x = 0 and free at the tip. The lowest eigenvectors with a load on the tip span the modes;
within this span the modes of the beam alone are orthogonal. Second-order displacements follow from strains that are
linear in eta: with theta the rotation of a section and kappa = theta' (Magnus' expansion to second order),

    r2 = integral of ([theta]^2 / 2 + [theta2]) e_x,      theta2 = integral of theta x kappa / 2

whose x component is the shortening -(u_y'^2 + u_z'^2) / 2 of a beam that bends (Kane, Ryan and Banerjee 1987).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.polynomial import Legendre
from numpy.polynomial.legendre import leggauss

from torsor.arrays import Array
from torsor.checks import number, positive, positive_vector, whole_number
from torsor.errors import ModelError, describe
from torsor.mechanism.flexible import Modes

# Trial functions beyond the number of modes: the eigenvalues that are used have then converged to rounding.
_MORE = 8
MOST_MODES = 12  # in one direction; beyond that the trial functions lose digits
_ALONG = {"y": 1, "z": 2}


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
) -> Modes:
    """Return the modes of a uniform beam along x that is clamped at its root (Euler-Bernoulli, Saint-Venant).

    ``length`` is in m, ``mass`` in kg, ``bending`` the stiffness EI (N m^2): one number, or one for deflections along y
    and one along z. ``modes`` counts the modes: one number for both directions, or (along y, along z), or (along y,
    along z, torsion). Torsion needs the stiffness ``torsion`` GJ (N m^2) and the ``axial_inertia`` (kg m^2) of the
    whole beam about its axis. ``damping`` is the damping ratio of every mode. ``tip_mass`` (kg) and ``tip_inertia``
    (kg m^2) are what the beam will carry, roughly: fewer modes are then needed. They only choose the modes and are
    not added to the mass. A coordinate is the largest deflection (m) of its mode, or the largest angle (rad).

    Example:
        >>> modes = beam(length=2.0, mass=1.0, bending=(8.0, 50.0), modes=(2, 1))
        >>> modes.frequencies.round(3).tolist()  # 3.516 and 22.034 sqrt(EI / (m L^3)), first along y, then along z
        [3.516, 22.034, 8.79]
    """
    where = "beam"
    length, mass = positive(length, where, "length"), positive(mass, where, "mass")
    counts = _counts(modes, where)
    EI = positive_vector(bending, 2, where, "bending")
    load = number(tip_mass, where, "tip_mass", least=0), number(tip_inertia, where, "tip_inertia", least=0)
    fields: list[_Field] = []
    for direction, stiffness, count in zip(_ALONG.values(), EI.tolist(), counts, strict=False):
        shapes, K = _ritz(2, count, length, mass / length, stiffness, load)
        fields += [_Field(shape, direction, k) for shape, k in zip(shapes, K, strict=True)]
    if counts[2]:
        GJ = positive(_given(torsion, "torsion", where), where, "torsion")
        J = positive(_given(axial_inertia, "axial_inertia", where), where, "axial_inertia")
        shapes, K = _ritz(1, counts[2], length, J / length, GJ, (0.0, 0.0))
        fields += [_Field(shape, 0, k) for shape, k in zip(shapes, K, strict=True)]
    return _modes(fields, length, mass, 0.0 if axial_inertia is None else axial_inertia, damping)


def _given(value: float | None, name: str, where: str) -> float:
    if value is None:
        raise ModelError(describe(f"modes of torsion without {name}", where=where, fix=f"give {name}="))
    return value


def _counts(modes: Any, where: str) -> tuple[int, int, int]:
    """Return the numbers of modes along y, along z and of torsion."""
    given = list(modes) if isinstance(modes, Sequence) else [modes, modes]
    if not 2 <= len(given) <= 3:
        allowed = "one number, (along y, along z) or (along y, along z, torsion)"
        raise ModelError(describe(f"modes is {modes!r}", where=where, allowed=allowed))
    y, z, x = (whole_number(each, where, "modes", least=0, most=MOST_MODES) for each in (*given, 0)[:3])
    if not y + z + x:
        raise ModelError(describe("no mode at all", where=where, allowed="at least one", fix="a rigid link has none"))
    return y, z, x


def _ritz(
    clamped: int, count: int, length: float, density: float, stiffness: float, load: tuple[float, float]
) -> tuple[list[Legendre], list[float]]:
    """Return polynomials of the lowest modes, with the largest value 1, and their stiffnesses.

    ``clamped`` is 2 for bending, whose energy is in the second derivative, and 1 for torsion.
    """
    x = Legendre.identity([0.0, length]) / length
    trial = [x**clamped * Legendre.basis(j, [0.0, length]) for j in range(count + _MORE)]
    nodes, weights = leggauss(count + _MORE + 3)
    s, w = (nodes + 1) * length / 2, weights * length / 2
    values, bent = (np.array([f(s) for f in each]) for each in (trial, [f.deriv(clamped) for f in trial]))
    M, K = density * (values * w) @ values.T, stiffness * (bent * w) @ bent.T
    tip, slope = (np.array([f(length) for f in each]) for each in (trial, [f.deriv() for f in trial]))
    loaded = M + load[0] * np.outer(tip, tip) + load[1] * np.outer(slope, slope)
    span = _eigenvectors(K, loaded)[:, :count]
    span = span @ _eigenvectors(span.T @ K @ span, span.T @ M @ span)
    shapes, stiffnesses = [], []
    for column in span.T:
        shape = sum((c * f for c, f in zip(column.tolist(), trial, strict=True)), start=0 * x)
        at = np.append(shape(s), shape(length))
        scale = 1 / at[np.argmax(np.abs(at))]
        shapes.append(shape * scale)
        stiffnesses.append(float(scale**2 * column @ K @ column))
    return shapes, stiffnesses


def _eigenvectors(K: Array, M: Array) -> Array:
    """Return the eigenvectors of K x = lambda M x, as columns, by increasing eigenvalues."""
    L = np.linalg.cholesky(M)
    reduced = np.linalg.solve(L, np.linalg.solve(L, K).T)
    return np.linalg.solve(L.T, np.linalg.eigh((reduced + reduced.T) / 2)[1])


class _Field:
    """A mode: deflection along axis 1 or 2, or torsion (axis 0), as a polynomial in s."""

    def __init__(self, shape: Legendre, axis: int, stiffness: float):
        self.shape, self.axis, self.stiffness = shape, axis, stiffness
        none = 0 * shape
        # A deflection along y turns sections about z, one along z turns them about -y.
        slope = {0: [shape, none, none], 1: [none, none, shape.deriv()], 2: [none, -shape.deriv(), none]}[axis]
        self.theta = slope
        self.kappa = [each.deriv() for each in slope]

    def displacement(self, s: Array) -> Array:
        """Return the displacement (N, 3)."""
        found = np.zeros((len(s), 3))
        if self.axis:
            found[:, self.axis] = self.shape(s)
        return found


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


def _modes(fields: list[_Field], length: float, mass: float, axial_inertia: float, damping: float) -> Modes:
    """Return the modes at the nodes of a Gauss quadrature that integrates all products exactly, and at the tip."""
    ratio = number(damping, "beam", "damping", least=0)
    degree = max(each.shape.degree() for each in fields)
    nodes, weights = leggauss(degree + 2)
    s, w = np.append((nodes + 1) * length / 2, length), np.append(weights / 2, 0.0)
    n, masses = len(fields), mass * w
    shapes = np.stack([each.displacement(s) for each in fields], axis=-1)
    rotations = np.array([[theta(s) for theta in each.theta] for each in fields]).transpose(2, 1, 0)
    second, tip_second = np.zeros((len(s), 3, n, n)), np.zeros((3, n, n))
    for k in range(n):
        for i in range(k + 1):
            moved, turned = _second(fields[k], fields[i])
            second[:, :, k, i] = second[:, :, i, k] = np.array([each(s) for each in moved]).T
            tip_second[:, k, i] = tip_second[:, i, k] = [each(length) for each in turned]
    inertias = np.zeros((len(s), 3, 3))
    inertias[:, 0, 0] = axial_inertia * w
    stiffness = np.array([each.stiffness for each in fields])
    positions = np.column_stack([s, 0 * s, 0 * s])
    turns = tuple(each.axis == 0 for each in fields)
    made = Modes(positions, masses, shapes, rotations, stiffness, 0.0, second, tip_second, inertias, turns, "beam")
    critical = 2 * np.sqrt(stiffness * made.modal_masses)
    parts: tuple[Any, ...] = (positions, masses, shapes, rotations, stiffness, ratio * critical)
    return Modes(*parts, second, tip_second, inertias, turns, "beam")
