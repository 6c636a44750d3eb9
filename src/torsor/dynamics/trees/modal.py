"""The inertia of a flexible link with assumed modes: integrals over its nodes, as polynomials in eta.

A node at r moves to r + Phi eta + eta^T Gamma eta / 2. In the frame of the body to which the link is clamped, the
kinetic energy, to second order in eta and eta', is that of a rigid body whose moments depend on eta, with additional
momenta of the coordinates:

    ms(eta)    = ms0 + B eta + eta^T Gamma_m eta / 2           b_k = d(ms)/d(eta_k)          linear momentum of eta'_k
    D_k(eta)   = D0_k + D_kl eta_l                             integral of d(r)/d(eta_k) r^T dm
    Sigma(eta) = Sigma0 + (Sigma1_k + Sigma2_kl eta_l / 2) eta_k          d(Sigma)/d(eta_k) = D_k + D_k^T
    h_k(eta)   = axial(D_k) + s_k                              angular momentum of eta'_k; s_k that of turning nodes
    T = (w, v)^T I(eta) (w, v) / 2 + sum of (w . h_k + v . b_k) eta'_k + sum of m_kl eta'_k eta'_l / 2

Lagrange's equations for this energy (Shabana 2013; in quasi-coordinates, Meirovitch 1991) are the Newton-Euler
equations of a body with the moments ms(eta) and Sigma(eta), to which the rates of the shape add

    n: axial(2 [w] E) + w x s + axial(G)                       E = sum of D_k eta'_k,  s = sum of s_k eta'_k
    f: 2 w x ms' + eta'^T Gamma_m eta'
    tau_k: U : D_k + s_k . w' + b_k . a + 2 w . sum of c_lk eta'_l        c_lk: integral of Phi_l x Phi_k

with U = [w'] + [w]^2, the acceleration a of the origin, and G the sum of eta'_k eta'_l times the integral of
Gamma_kl r^T. U : D_k contains the centrifugal forces that stiffen the link.
The modal masses m_kk are the armature of the coordinates; m_kl couple them if the modes are not orthogonal.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Array
from torsor.mechanism.flexible import Modes
from torsor.spatial import cross, rotational_inertia, skew

_CROSS = np.zeros((3, 3, 3))  # [a]_xz = sum over y of _CROSS[x, y, z] a_y
_CROSS[[0, 1, 2], [1, 2, 0], [2, 0, 1]], _CROSS[[0, 1, 2], [2, 0, 1], [1, 2, 0]] = 1.0, -1.0


@dataclass(frozen=True, eq=False)
class Modal:
    """The polynomials of a flexible link, in the frame of the body to which it is clamped.

    ``q`` and ``v`` are the slices of its coordinates. The coefficients are B (3, n), Gamma (3, n, n), D0 (3, 3, n), D1
    (3, 3, n, n) with the pair (k, l) last, s (3, n), c (3, n, n) with the pair (l, k) last, and G (3, n, n), which is
    axial(G) as a quadratic form in the rates. ``mass`` (n, n) is the modal mass matrix.
    """

    q: slice
    v: slice
    B: Array
    Gamma: Array
    D0: Array
    D1: Array
    s: Array
    c: Array
    G: Array
    mass: Array

    @classmethod
    def of(cls, modes: Modes, clamp: Array, q: slice, v: slice) -> "Modal":
        """Return the polynomials for modes whose clamped end has the pose ``clamp`` (4 x 4) in the body's frame."""
        R, m = clamp[:3, :3], modes.masses
        r = modes.positions @ R.T + clamp[:3, 3]
        Phi, Gamma = np.einsum("xy,iyk->ixk", R, modes.shapes), np.einsum("xy,iykl->ixkl", R, np.asarray(modes.second))
        Psi, J = np.einsum("xy,iyk->ixk", R, modes.rotations), R @ np.asarray(modes.inertias) @ R.T
        Phi_Phi, Gamma_r = np.einsum("i,ixk,iyl->xykl", m, Phi, Phi), np.einsum("i,ixkl,iy->xykl", m, Gamma, r)
        parts = {"B": np.einsum("i,ixk->xk", m, Phi), "Gamma": np.einsum("i,ixkl->xkl", m, Gamma)}
        parts |= {"D0": np.einsum("i,ixk,iy->xyk", m, Phi, r), "D1": _without_rounding(Phi_Phi) + Gamma_r}
        parts |= {"s": np.einsum("ixy,iyk->xk", J, Psi), "c": -_turning(Phi_Phi), "G": _turning(Gamma_r)}
        return cls(q, v, **{name: _without_rounding(part) for name, part in parts.items()}, mass=modes.mass_matrix)

    def planar(self) -> "Modal":
        """Return polynomials with fewer terms that give the same forces if the body rotates only about its z axis."""
        D0, D1 = self.D0.copy(), self.D1.copy()
        for D in (D0, D1):
            D[0, 0], D[1, 1] = D[0, 0] + D[1, 1], 0.0
        return replace(self, D0=D0, D1=D1)

    @cached_property
    def compliance(self) -> Array:
        """Inverse (n x n) of the modal mass matrix."""
        inverse = np.linalg.inv(self.mass)
        return _without_rounding((inverse + inverse.T) / 2)

    @cached_property
    def condensed(self) -> "Condensed":
        """Polynomials of the inertia of a terminal link after eliminating its modes: I - U M^-1 U^T."""
        n = self.B.shape[1]
        U0 = np.vstack([self.s + _turning(self.D0), self.B])
        U1 = np.vstack([_turning(self.D1), self.Gamma])  # (6, k, l)
        rigid = np.zeros((6, 6, n)), np.zeros((6, 6, n, n))
        for inertia, D, ms, half in zip(rigid, (self.D0, self.D1), (self.B, self.Gamma), (1.0, 0.5), strict=True):
            Sigma = D + D.swapaxes(0, 1)
            inertia[:3, :3] = half * (np.einsum("xx...,yz->yz...", Sigma, np.eye(3)) - Sigma)
            inertia[:3, 3:] = half * np.einsum("xyz,y...->xz...", _CROSS, ms)
            inertia[3:, :3] = inertia[:3, 3:].swapaxes(0, 1)
        lost1 = np.einsum("akm,kl,bl->abm", U1, self.compliance, U0)
        lost2 = np.einsum("akm,kl,blp->abmp", U1, self.compliance, U1)
        lost1, lost2 = lost1 + lost1.swapaxes(0, 1), lost2 + lost2.swapaxes(2, 3)
        first = _difference(rigid[0], lost1)
        second = _difference(rigid[1] + rigid[1].swapaxes(2, 3), lost2)
        changes = np.any(_without_rounding(lost1), axis=2) | np.any(_without_rounding(lost2), axis=(2, 3))
        curved = np.any(second, axis=(2, 3))
        return Condensed(U0 @ self.compliance @ U0.T, first, np.logical_not(changes), np.logical_not(curved))

    def at(self, eta: ca.SX) -> "Shape":
        """Return the inertia at the shape eta (n x 1)."""
        item = range(self.B.shape[1])
        bent = [_sx(self.Gamma[:, k, :]) @ eta for k in item]
        b = [_sx(self.B[:, k]) + bent[k] for k in item]
        ms = _sx(self.B) @ eta + 0.5 * sum((bent[k] * eta[k] for k in item), start=ca.SX.zeros(3, 1))
        slopes = [sum((_sx(self.D1[:, :, k, i]) * eta[i] for i in item), start=ca.SX.zeros(3, 3)) for k in item]
        D = [_sx(self.D0[:, :, k]) + slopes[k] for k in item]
        return Shape(self, eta, b, D, ms, self._second_moments(eta, slopes))

    def _second_moments(self, eta: ca.SX, slopes: list[ca.SX]) -> ca.SX:
        """Return the contribution of a shape to Sigma; ``slopes`` are D_k - D0_k, which contain the diagonal terms."""
        n, Sigma = len(slopes), ca.SX.zeros(3, 3)
        first, second = self.D0 + self.D0.swapaxes(0, 1), self.D1 + self.D1.swapaxes(0, 1)
        for x, y in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)):
            value = ca.SX(0)
            for k in range(n):
                if x == y:
                    rest = slopes[k][x, x]
                else:
                    pairs = [*second[x, y, k, :k].tolist(), float(second[x, y, k, k]) / 2]  # (k, l) with (l, k)
                    rest = sum((c * eta[i] for i, c in enumerate(pairs) if c), start=ca.SX(0))
                value = value + (first[x, y, k] + rest) * eta[k]
            Sigma[x, y] = Sigma[y, x] = value
        return Sigma


class Condensed(NamedTuple):
    """The inertia I(eta) - U M^-1 U^T of a link that carries nothing, with its modes eliminated; U_k = (h_k, b_k).

    ``lost`` (6, 6) is U M^-1 U^T at eta = 0, and ``first`` (6, 6, n) are the derivatives of the difference. ``fixed``
    entries of U M^-1 U^T are constant. ``linear`` entries of the difference are linear in eta, because second-order
    terms cancel.
    """

    lost: Array
    first: Array
    fixed: NDArray[np.bool_]
    linear: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Shape:
    """The inertia of a flexible link at a shape: b_k (3), D_k (3 x 3), and the contributions to ms and Sigma."""

    modal: Modal
    eta: ca.SX
    b: list[ca.SX]
    D: list[ca.SX]
    ms: ca.SX
    Sigma: ca.SX

    @property
    def h(self) -> list[ca.SX]:
        """Angular momentum (3 x 1) about the body's origin for a unit rate of each coordinate."""
        return [_sx(self.modal.s[:, k]) + _turning(D) for k, D in enumerate(self.D)]

    @property
    def momenta(self) -> ca.SX:
        """U (6 x n): angular and linear momentum of the body for a unit rate of each coordinate."""
        return ca.vertcat(ca.horzcat(*self.h), ca.horzcat(*self.b))

    def condensed(self, body: ca.SX) -> ca.SX:
        """Return the inertia (6 x 6) of a terminal link and its body, with the modes eliminated: I - U M^-1 U^T.

        ``body`` (6 x 6) is the inertia of the body at eta = 0. Entries in which the second-order terms cancel are
        linear in eta, with known coefficients. The lower triangle of the result is zero.
        """
        known, U = self.modal.condensed, self.momenta
        rest = ca.SX.zeros(6, 6)
        rest[:3, :3], rest[:3, 3:] = rotational_inertia(self.Sigma), skew(self.ms)
        lost, result = U @ (_sx(self.modal.compliance) @ U.T), ca.SX.zeros(6, 6)
        for i, j in combinations_with_replacement(range(6), 2):
            if known.linear[i, j]:
                result[i, j] = body[i, j] - known.lost[i, j] + _sx(known.first[i, j]).T @ self.eta
            elif known.fixed[i, j]:
                result[i, j] = body[i, j] - known.lost[i, j] + rest[i, j]
            else:
                result[i, j] = body[i, j] + rest[i, j] - lost[i, j]
        return result

    def wrench(self, w: ca.SX, rates: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the moment and force that the shape rates eta' add at the angular velocity w."""
        item = range(len(self.b))
        E = sum((self.D[k] * rates[k] for k in item), start=ca.SX.zeros(3, 3))
        ms_rate = sum((self.b[k] * rates[k] for k in item), start=ca.SX.zeros(3, 1))
        n = _turning(skew(2 * w) @ E) + cross(w, _sx(self.modal.s) @ rates) + _form(self.modal.G, rates)
        return n, cross(2 * w, ms_rate) + _form(self.modal.Gamma, rates)

    def forces(self, w: ca.SX, wd: ca.SX, U: ca.SX, a: ca.SX, rates: ca.SX | None) -> list[ca.SX]:
        """Return the force of each coordinate due to the body's motion and the shape rates eta'."""
        result = []
        for k, (b, D) in enumerate(zip(self.b, self.D, strict=True)):
            force = ca.dot(U, D) + ca.dot(_sx(self.modal.s[:, k]), wd) + ca.dot(b, a)
            if rates is not None:
                force = force + ca.dot(w, _sx(2 * self.modal.c[:, :, k]) @ rates)
            result.append(force)
        return result


def _turning(A: Any) -> Any:
    """Return the integral of r x a dm from that of a r^T: the first two axes of an array, or a matrix of symbols."""
    parts = A[2, 1] - A[1, 2], A[0, 2] - A[2, 0], A[1, 0] - A[0, 1]
    return ca.vertcat(*parts) if isinstance(A, ca.SX) else np.stack(parts)


def _form(A: Array, x: ca.SX) -> ca.SX:
    """Return the quadratic forms x^T A_i x (3 x 1), with each pair of coordinates computed once."""
    total = ca.SX.zeros(3, 1)
    for k in range(A.shape[1]):
        pairs = np.hstack([A[:, k, :k] + A[:, :k, k], A[:, k, k : k + 1]])
        total = total + _sx(_without_rounding(pairs)) @ x[: k + 1] * x[k]
    return total


def _sx(values: Array) -> ca.SX:
    return ca.densify(ca.SX(values))


def _without_rounding(values: Array) -> Array:
    """Return numbers with exact zeros in place of rounding errors, so that tracing removes them."""
    return np.where(np.abs(values) <= 1e-13 * np.abs(values).max(initial=0.0), 0.0, values)


def _difference(a: Array, b: Array) -> Array:
    """Return a - b, with exact zeros where both are equal up to rounding."""
    scale = max(np.abs(a).max(initial=0.0), np.abs(b).max(initial=0.0))
    return np.where(np.abs(a - b) <= 1e-13 * scale, 0.0, a - b)
