"""Dynamics of a parallel robot, leg by leg.

Each leg follows the platform: q_i' = G_i u with G_i = J_i^-1 J_vi. The forces tau_i of a leg's own motion, by
Newton-Euler recursion, act on the platform as the wrench G_i^T tau_i. With F_p and M_p of the platform alone and the
rates of the drives q_a' = K u,

    F = F_p + sum of G_i^T tau_i = K^T Gamma          M = M_p + sum of G_i^T M_i G_i         K = J_p^-1

(Khalil 2010, eqs. 59-66; eq. 66 is solved for Gamma without J_p). F is the inverse dynamics in the platform's own
coordinates. No matrix is larger than the coordinates of one leg, or than those of the platform.
"""

from dataclasses import dataclass

import casadi as ca

from torsor.base.arrays import Array
from torsor.dynamics.loops.characteristic_scales import characteristic_scales
from torsor.dynamics.loops.factors import Columns
from torsor.dynamics.recursions.energy import kinetic_energy as tree_kinetic_energy
from torsor.dynamics.recursions.energy import potential_energy as tree_potential_energy
from torsor.dynamics.trees.tree import Tree
from torsor.robot.parallel.closed_form import Strut, closest
from torsor.robot.parallel.limbs import Limb, TracedLimb
from torsor.robot.parallel.platforms import Platform
from torsor.robot.parallel.small import least


@dataclass(frozen=True, eq=False)
class Parts:
    """The trees of a parallel robot: the platform on its joint, and the legs; ``struts`` are legs in closed form.

    ``whole`` are the trees of the platform and of the legs with all inertial parameters, also those that affect the
    energy but no force. ``length`` (m) is the size of the robot.
    """

    platform: Tree
    limbs: tuple[Limb, ...]
    struts: tuple[Strut | None, ...]
    whole: tuple[Tree, ...]
    length: float

    @property
    def units(self) -> Array:
        """Characteristic scales (nv) of the platform's velocities."""
        return characteristic_scales(self.platform, self.length)[1]

    @property
    def weights(self) -> ca.SX:
        """Factors (nv) that make forces along the platform's coordinates comparable: 1/length for moments."""
        return ca.SX(self.units / self.length)


class Assembly:
    """A parallel robot at one state: the platform and all legs, over symbols."""

    def __init__(
        self,
        parts: Parts,
        pose: ca.SX,
        q: ca.SX,
        u: ca.SX | None = None,
        u_rate: ca.SX | None = None,
        closed: bool = True,
    ):
        self.parts, self.platform = parts, Platform(parts.platform, pose, u, u_rate)
        self.limbs = [TracedLimb(limb, q[limb.q], self.platform, closed) for limb in parts.limbs]

    def motion(self) -> list[tuple[ca.SX, ca.SX]]:
        """Return (q', q'') of each leg."""
        return [(v := limb.velocities(), limb.accelerations(v)) for limb in self.limbs]

    def wrench(self) -> ca.SX:
        """Return the wrench (6 x 1) that moves the legs, at the platform's origin in base axes."""
        total = ca.SX.zeros(6, 1)
        for limb, (v, a) in zip(self.limbs, self.motion(), strict=True):
            total = total + limb.carried(limb.forces(v, a))
        return total

    def rows(self) -> ca.SX:
        """Return K^T (nv x N), in base axes if the platform is free, with rows scaled by ``Parts.weights``."""
        own = self.drives() if self.platform.is_free else self.platform.project(self.drives())
        return ca.diag(self.parts.weights) @ own

    def drives(self) -> ca.SX:
        """Return the wrenches (6 x N) whose product with the platform's twist, in base axes, is each drive's rate."""
        return ca.horzcat(*(limb.driven_rows() for limb in self.limbs))

    def force(self, external: ca.SX | None) -> ca.SX:
        """Return F (nv x 1), in the platform's own coordinates."""
        return self.platform.forces(external) + self.platform.project(self.wrench())

    def mass_matrix(self) -> ca.SX:
        """Return M (nv x nv), in the platform's own coordinates."""
        total, unit = self.platform.mass_matrix(), self.platform.unit_rates()
        for limb in self.limbs:
            G = (limb.carried(ca.SX.eye(limb.limb.tree.nv)).T) @ unit
            total = total + G.T @ limb.mass_matrix() @ G
        return total


def inverse_dynamics(
    parts: Parts, pose: ca.SX, q: ca.SX, u: ca.SX, u_rate: ca.SX, share: ca.SX, external: ca.SX | None = None
) -> ca.SX:
    """Return Gamma (N x 1), the forces of the drives; of redundant ones those of the least sum of tau^2 / share."""
    whole = Assembly(parts, pose, q, u, u_rate)
    if whole.platform.is_free:  # in base axes, in which the legs give the rows of K
        force = whole.platform.lifted(whole.platform.forces(external)) + whole.wrench()
    else:
        force = whole.force(external)
    K_T, force = whole.rows(), parts.weights * force
    if K_T.size1() == K_T.size2():
        return Columns(K_T).solve(force)
    spread = ca.diag(share) @ K_T.T
    return spread @ Columns(K_T @ spread).solve(force)


def platform_force(
    parts: Parts, pose: ca.SX, q: ca.SX, u: ca.SX, u_rate: ca.SX, external: ca.SX | None = None
) -> ca.SX:
    """Return F (nv x 1), the inverse dynamics in the platform's own coordinates."""
    return Assembly(parts, pose, q, u, u_rate).force(external)


def platform_mass_matrix(parts: Parts, pose: ca.SX, q: ca.SX) -> ca.SX:
    """Return M (nv x nv)."""
    return Assembly(parts, pose, q).mass_matrix()


def forward_dynamics(
    parts: Parts, pose: ca.SX, q: ca.SX, u: ca.SX, forces: ca.SX, external: ca.SX | None = None
) -> ca.SX:
    """Return the acceleration of the platform's coordinates (nv x 1)."""
    whole = Assembly(parts, pose, q, u)
    given = whole.platform.project(whole.drives() @ forces)
    return Columns(whole.mass_matrix()).solve(given - whole.force(external))


def inverse_jacobian(parts: Parts, pose: ca.SX, q: ca.SX) -> ca.SX:
    """Return K (N x nv): rates of the drives from those of the platform."""
    whole = Assembly(parts, pose, q)
    return whole.platform.project(whole.drives()).T


def robot_jacobian(parts: Parts, pose: ca.SX, q: ca.SX) -> ca.SX:
    """Return J_p (nv x N): rates of the platform from those of the drives; the pseudo-inverse if they are redundant."""
    K = inverse_jacobian(parts, pose, q)
    return Columns(K).solve(ca.SX.eye(K.size1())) if K.size1() == K.size2() else Columns(K.T @ K).solve(K.T)


def leg_velocities(parts: Parts, pose: ca.SX, q: ca.SX, u: ca.SX) -> ca.SX:
    """Return the velocities of all legs."""
    return ca.vertcat(*(limb.velocities() for limb in Assembly(parts, pose, q, u).limbs))


def leg_accelerations(parts: Parts, pose: ca.SX, q: ca.SX, u: ca.SX, u_rate: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return the velocities and the accelerations of all legs."""
    motion = Assembly(parts, pose, q, u, u_rate).motion()
    return ca.vertcat(*(v for v, _ in motion)), ca.vertcat(*(a for _, a in motion))


def kinetic_energy(parts: Parts, pose: ca.SX, q: ca.SX, u: ca.SX) -> ca.SX:
    """Return the kinetic energy (J) of platform and legs."""
    whole = Assembly(parts, pose, q, u)
    pairs = zip(parts.whole[1:], whole.limbs, strict=True)
    own = (tree_kinetic_energy(tree, each.q, each.velocities()) for tree, each in pairs)
    return sum(own, start=tree_kinetic_energy(parts.whole[0], pose, u))


def potential_energy(parts: Parts, pose: ca.SX, q: ca.SX) -> ca.SX:
    """Return the potential energy (J) of platform and legs."""
    pairs = zip(parts.whole[1:], parts.limbs, strict=True)
    own = (tree_potential_energy(tree, q[limb.q]) for tree, limb in pairs)
    return sum(own, start=tree_potential_energy(parts.whole[0], pose))


def closed_positions(parts: Parts, pose: ca.SX, guess: ca.SX) -> ca.SX:
    """Return the positions of the legs: struts in the assembly mode of the guess, other legs as in the guess."""
    platform, found = Platform(parts.platform, pose), []
    for limb, strut in zip(parts.limbs, parts.struts, strict=True):
        near = guess[limb.q]
        if strut is not None:
            near = closest(strut.solve(platform, strut.signs(near)).q, near)
        found.append(near)
    return ca.vertcat(*found)


def leg_errors(parts: Parts, pose: ca.SX, q: ca.SX) -> ca.SX:
    """Return the closing errors of the joints at the platform."""
    return ca.vertcat(*(limb.error for limb in Assembly(parts, pose, q).limbs))


def leg_matrices(parts: Parts, pose: ca.SX, q: ca.SX) -> ca.SX:
    """Return the entries of A_q of each leg, row by row, one leg after the other."""
    return ca.vertcat(*(ca.vec(limb.A.T) for limb in Assembly(parts, pose, q).limbs))


def soundness(parts: Parts, pose: ca.SX, q: ca.SX, drives: bool, positions: bool) -> ca.SX:
    """Return the distances from singular of the legs, and of the ``drives``; and the closing error of ``positions``.

    If it is traced together with an algorithm, common subexpressions are computed once.
    """
    whole = Assembly(parts, pose, q)
    found = [least([value for limb in whole.limbs for value in limb.margin()])]
    if drives:
        K_T = whole.rows()
        found.append(Columns(K_T if K_T.size1() == K_T.size2() else K_T.T).independence())
    if positions:
        found.append(ca.norm_2(ca.vertcat(*(limb.closure_error() for limb in whole.limbs))))
    return ca.vertcat(*found)
