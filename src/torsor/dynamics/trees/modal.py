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

    n: (tr(Sigma') 1 - Sigma') w + sum of g_lk eta'_l eta'_k       f: w x ms' + eta'^T Gamma_m eta'
    tau_k: tr(U Sigma_k) / 2 + w . sum of (g_lk - g_kl) eta'_l     (the first is centrifugal: it stiffens the link)

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
    g (3, n, n), with the pair (l, k) last.
    """

    q: slice
    v: slice
    B: Array
    Gamma: Array
    Sigma1: Array
    Sigma2: Array
    h: Array
    g: Array

    @classmethod
    def of(cls, modes: Modes, clamp: Array, q: slice, v: slice) -> "Modal":
        """Return the integrals of modes whose clamped end has the pose ``clamp`` (4 x 4) in the body's frame."""
        R, m = clamp[:3, :3], modes.masses
        r = modes.positions @ R.T + clamp[:3, 3]
        Phi, Gamma = np.einsum("xy,iyk->ixk", R, modes.shapes), np.einsum("xy,iykl->ixkl", R, np.asarray(modes.second))
        Psi, J = np.einsum("xy,iyk->ixk", R, modes.rotations), R @ np.asarray(modes.inertias) @ R.T
        r_Phi, r_Gamma = np.einsum("i,ix,iyk->xyk", m, r, Phi), np.einsum("i,ix,iykl->xykl", m, r, Gamma)
        Phi_Phi = np.einsum("i,ixk,iyl->xykl", m, Phi, Phi)
        g = _axial(Phi_Phi) + _axial(r_Gamma)
        parts = (
            np.einsum("i,ixk->xk", m, Phi),
            np.einsum("i,ixkl->xkl", m, Gamma),
            r_Phi + r_Phi.swapaxes(0, 1),
            Phi_Phi + Phi_Phi.swapaxes(0, 1) + r_Gamma + r_Gamma.swapaxes(0, 1),
            _axial(r_Phi) + np.einsum("ixy,iyk->xk", J, Psi),
            g,
        )
        return cls(q, v, *map(_without_rounding, parts))

    def at(self, eta: ca.SX) -> "Shape":
        """Return the inertia at a shape."""
        n = self.B.shape[1]
        b = [_sx(self.B[:, k]) + _sx(self.Gamma[:, k, :]) @ eta for k in range(n)]
        h = [_sx(self.h[:, k]) + _sx(self.g[:, :, k]) @ eta for k in range(n)]
        Sigma_k, Sigma = [], ca.SX.zeros(3, 3)
        for k in range(n):
            terms = (eta[i] * _sx(self.Sigma2[:, :, k, i]) for i in range(n))
            Sigma_k.append(sum(terms, start=_sx(self.Sigma1[:, :, k])))
            Sigma = Sigma + (Sigma_k[k] + _sx(self.Sigma1[:, :, k])) * (eta[k] / 2)
        ms = sum(((b[k] + _sx(self.B[:, k])) * (eta[k] / 2) for k in range(n)), start=ca.SX.zeros(3, 1))
        return Shape(self, b, h, Sigma_k, ms, ca.triu2symm(ca.triu(Sigma)))


@dataclass(frozen=True, eq=False)
class Shape:
    """The inertia of a flexible link at a shape: momenta b_k and h_k, Sigma_k, and what the shape adds to ms, Sigma."""

    modal: Modal
    b: list[ca.SX]
    h: list[ca.SX]
    Sigma_k: list[ca.SX]
    ms: ca.SX
    Sigma: ca.SX

    def wrench(self, w: ca.SX, rates: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the moment and force of the rates of inertia, at the angular velocity w and the rates eta'."""
        each = range(len(self.b))
        Sigma_rate = sum((self.Sigma_k[k] * rates[k] for k in each), start=ca.SX.zeros(3, 3))
        ms_rate = sum((self.b[k] * rates[k] for k in each), start=ca.SX.zeros(3, 1))
        turned = (_sx(self.modal.g[:, :, k]) @ rates * rates[k] for k in each)
        n = ca.trace(Sigma_rate) * w - Sigma_rate @ w + sum(turned, start=ca.SX.zeros(3, 1))
        bent = (_sx(self.modal.Gamma[:, :, k]) @ rates * rates[k] for k in each)
        return n, cross(w, ms_rate) + sum(bent, start=ca.SX.zeros(3, 1))

    def forces(self, U: ca.SX, w: ca.SX, rates: ca.SX) -> list[ca.SX]:
        """Return the force of each coordinate due to velocities: centrifugal and Coriolis."""
        both = U + U.T
        found = []
        for k, Sigma in enumerate(self.Sigma_k):
            across = both[0, 1] * Sigma[0, 1] + both[0, 2] * Sigma[0, 2] + both[1, 2] * Sigma[1, 2]
            centrifugal = (ca.dot(ca.diag(U), ca.diag(Sigma))) / 2 + across / 2
            turning = _sx(self.modal.g[:, :, k] - self.modal.g[:, k, :]) @ rates
            found.append(centrifugal + ca.dot(w, turning))
        return found


def _sx(values: Array) -> ca.SX:
    return ca.densify(ca.SX(values))


def _axial(A: Array) -> Array:
    """Return the sum of a x b from that of the products a b^T in the first two axes."""
    return np.stack([A[1, 2] - A[2, 1], A[2, 0] - A[0, 2], A[0, 1] - A[1, 0]])


def _without_rounding(values: Array) -> Array:
    """Return numbers with those that are zero up to rounding made exact, so that tracing folds them."""
    return np.where(np.abs(values) <= 1e-13 * np.abs(values).max(initial=0.0), 0.0, values)
