"""The inertia of a flexible link by assumed modes: integrals over its nodes, computed once, as polynomials in eta.

A node at r moves to r + Phi eta + eta^T Gamma eta / 2. In the frame of the body that the link is clamped to, the
kinetic energy to second order in eta and eta' is that of a rigid body whose moments depend on eta, with momenta that
the coordinates add to it:

    ms(eta)    = ms0 + B eta + eta^T Gamma_m eta / 2           b_k = d(ms)/d(eta_k)          linear momentum of eta'_k
    Sigma(eta) = Sigma0 + Sigma1_k eta_k + ...                 Sigma_k = d(Sigma)/d(eta_k)
    h_k(eta)   = h0_k + eta_l g_lk                             angular momentum of eta'_k
    T = (w, v)^T I(eta) (w, v) / 2 + sum of (w . h_k + v . b_k) eta'_k + sum of m_k eta'_k^2 / 2

Lagrange's equations of this energy (Shabana 2013; in the form of quasi-coordinates, Meirovitch 1991) are those of a
rigid body with rotors (h_k, b_k) and with the rates of inertia

    n: J' w + sum of g_lk eta'_l eta'_k              f: w x ms' + eta'^T Gamma_m eta'        (J = tr(Sigma) 1 - Sigma)
    tau_k: -w^T J_k w / 2 + w . sum of (g_lk - g_kl) eta'_l       (the first is centrifugal: it stiffens the link)

The modal masses m_k are the armature of the coordinates.
"""

from dataclasses import dataclass

import casadi as ca
import numpy as np

from torsor.arrays import Array
from torsor.mechanism.flexible import Modes
from torsor.spatial import cross


@dataclass(frozen=True, eq=False)
class Modal:
    """The polynomials of a flexible link, in the frame of the body that it is clamped to.

    ``q`` and ``v`` are the coordinates; B (3, n), Gamma (3, n, n), Sigma1 (3, 3, n), Sigma2 (3, 3, n, n), h (3, n) and
    g (3, n, n), with the pair (l, k) last. J1 and J2 are tr(Sigma) 1 - Sigma.
    """

    q: slice
    v: slice
    B: Array
    Gamma: Array
    Sigma1: Array
    Sigma2: Array
    h: Array
    g: Array
    J1: Array
    J2: Array

    @classmethod
    def of(cls, modes: Modes, clamp: Array, q: slice, v: slice) -> "Modal":
        """Return the integrals of modes whose clamped end has the pose ``clamp`` (4 x 4) in the body's frame."""
        R, m = clamp[:3, :3], modes.masses
        r = modes.positions @ R.T + clamp[:3, 3]
        Phi, Gamma = np.einsum("xy,iyk->ixk", R, modes.shapes), np.einsum("xy,iykl->ixkl", R, np.asarray(modes.second))
        Psi, J = np.einsum("xy,iyk->ixk", R, modes.rotations), R @ np.asarray(modes.inertias) @ R.T
        r_Phi, r_Gamma = np.einsum("i,ix,iyk->xyk", m, r, Phi), np.einsum("i,ix,iykl->xykl", m, r, Gamma)
        Phi_Phi = np.einsum("i,ixk,iyl->xykl", m, Phi, Phi)
        Sigma1 = r_Phi + r_Phi.swapaxes(0, 1)
        Sigma2 = Phi_Phi + Phi_Phi.swapaxes(0, 1) + r_Gamma + r_Gamma.swapaxes(0, 1)
        h, g = _axial(r_Phi) + np.einsum("ixy,iyk->xk", J, Psi), _axial(Phi_Phi) + _axial(r_Gamma)
        B, Gamma_m = np.einsum("i,ixk->xk", m, Phi), np.einsum("i,ixkl->xkl", m, Gamma)
        parts = B, Gamma_m, Sigma1, Sigma2, h, g, _across(Sigma1), _across(Sigma2)
        return cls(q, v, *map(_without_rounding, parts))

    def at(self, eta: ca.SX) -> "Shape":
        """Return the inertia at a shape."""
        n = self.B.shape[1]
        b = [_sx(self.B[:, k]) + _sx(self.Gamma[:, k, :]) @ eta for k in range(n)]
        h = [_sx(self.h[:, k]) + _sx(self.g[:, :, k]) @ eta for k in range(n)]
        ms = sum(((b[k] + _sx(self.B[:, k])) * (eta[k] / 2) for k in range(n)), start=ca.SX.zeros(3, 1))
        J_k, J = _quadratic(self.J1, self.J2, eta)
        return Shape(self, b, h, J_k, ms, J, _quadratic(self.Sigma1, self.Sigma2, eta)[1])


@dataclass(frozen=True, eq=False)
class Shape:
    """The inertia of a flexible link at a shape: momenta b_k and h_k, J_k, and what the shape adds to ms, J, Sigma."""

    modal: Modal
    b: list[ca.SX]
    h: list[ca.SX]
    J_k: list[ca.SX]
    ms: ca.SX
    J: ca.SX
    Sigma: ca.SX

    def wrench(self, w: ca.SX, rates: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the moment and force of the rates of inertia, at the angular velocity w and the rates eta'."""
        each = range(len(self.b))
        J_rate = sum((self.J_k[k] * rates[k] for k in each), start=ca.SX.zeros(3, 3))
        ms_rate = sum((self.b[k] * rates[k] for k in each), start=ca.SX.zeros(3, 1))
        turned = (_sx(self.modal.g[:, :, k]) @ rates * rates[k] for k in each)
        bent = (_sx(self.modal.Gamma[:, :, k]) @ rates * rates[k] for k in each)
        n = J_rate @ w + sum(turned, start=ca.SX.zeros(3, 1))
        return n, cross(w, ms_rate) + sum(bent, start=ca.SX.zeros(3, 1))

    def forces(self, w: ca.SX, rates: ca.SX) -> list[ca.SX]:
        """Return the force of each coordinate due to velocities: centrifugal and Coriolis."""
        found = []
        for k, J in enumerate(self.J_k):
            turning = _sx(self.modal.g[:, :, k] - self.modal.g[:, k, :]) @ rates
            found.append(ca.dot(w, turning - J @ (w / 2)))
        return found


def _quadratic(first: Array, second: Array, eta: ca.SX) -> tuple[list[ca.SX], ca.SX]:
    """Return the derivatives by eta_k, and the value, of first_k eta_k + second_kl eta_k eta_l / 2 (3 x 3)."""
    slopes, value = [], ca.SX.zeros(3, 3)
    for k in range(first.shape[-1]):
        terms = (eta[i] * _sx(second[:, :, k, i]) for i in range(first.shape[-1]))
        slopes.append(sum(terms, start=_sx(first[:, :, k])))
        value = value + (slopes[k] + _sx(first[:, :, k])) * (eta[k] / 2)
    return slopes, ca.triu2symm(ca.triu(value))


def _sx(values: Array) -> ca.SX:
    return ca.densify(ca.SX(values))


def _axial(A: Array) -> Array:
    """Return the sum of a x b from that of the products a b^T in the first two axes."""
    return np.stack([A[1, 2] - A[2, 1], A[2, 0] - A[0, 2], A[0, 1] - A[1, 0]])


def _across(Sigma: Array) -> Array:
    """Return tr(Sigma) 1 - Sigma, over the first two axes."""
    return np.asarray(np.einsum("xx...,yz->yz...", Sigma, np.eye(3)) - Sigma)


def _without_rounding(values: Array) -> Array:
    """Return numbers with those that are zero up to rounding made exact, so that tracing folds them."""
    return np.where(np.abs(values) <= 1e-13 * np.abs(values).max(initial=0.0), 0.0, values)
