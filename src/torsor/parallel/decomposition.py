"""Dynamics of a parallel robot, leg by leg.

Each leg follows the platform: q_i' = G_i u with G_i = J_i^-1 J_vi. What a leg's own motion takes, tau_i by Newton-Euler
recursion, reaches the platform as the wrench G_i^T tau_i; with the platform's own and the drives' rates q_a' = K u,

    F = F_p + sum of G_i^T tau_i = K^T Gamma          M = M_p + sum of G_i^T M_i G_i         K = J_p^-1

(document 003, eqs. 59-66, and its (66) solved for Gamma without J_p). F is the model in the platform's own space. No
matrix is larger than the coordinates of one leg, or than the platform's.
"""

from dataclasses import dataclass

import casadi as ca

from torsor.dynamics.configuration import integrate
from torsor.dynamics.energy import kinetic_energy as tree_kinetic_energy
from torsor.dynamics.energy import potential_energy as tree_potential_energy
from torsor.dynamics.factors import Columns, reflected
from torsor.dynamics.tree import Tree
from torsor.parallel.closed_form import Strut, closest
from torsor.parallel.limbs import Limb, TracedLimb
from torsor.parallel.platforms import Platform

__all__ = [
    "Parts",
    "assembly_trial",
    "closed_positions",
    "forward_dynamics",
    "inverse_dynamics",
    "inverse_jacobian",
    "kinetic_energy",
    "leg_accelerations",
    "leg_errors",
    "leg_matrices",
    "leg_trial",
    "leg_velocities",
    "platform_force",
    "platform_mass_matrix",
    "potential_energy",
    "robot_jacobian",
]


@dataclass(frozen=True, eq=False)
class Parts:
    """The trees of a parallel robot: the platform on its joint, and the legs; some are ``struts``, in closed form."""

    platform: Tree
    limbs: tuple[Limb, ...]
    struts: tuple[Strut | None, ...]


class _Assembly:
    """All of a parallel robot at its positions."""

    def __init__(
        self,
        parts: Parts,
        pose: ca.SX,
        q: ca.SX,
        u: ca.SX | None = None,
        u_rate: ca.SX | None = None,
        closed: bool = True,
    ):
        self.platform = Platform(parts.platform, pose, u, u_rate)
        self.limbs = [TracedLimb(limb, q[limb.q], self.platform, closed) for limb in parts.limbs]

    def motion(self) -> list[tuple[ca.SX, ca.SX]]:
        """Return (q', q'') of each leg."""
        rates = [limb.velocities() for limb in self.limbs]
        return [(v, limb.accelerations(v)) for limb, v in zip(self.limbs, rates, strict=True)]

    def wrench(self) -> ca.SX:
        """Return what the legs' motion takes of the platform, at its origin in base axes (6 x 1)."""
        total = ca.SX.zeros(6, 1)
        for limb, (v, a) in zip(self.limbs, self.motion(), strict=True):
            total = total + limb.carried(limb.forces(v, a))
        return total

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


def _shared(K: ca.SX, force: ca.SX, share: ca.SX) -> ca.SX:
    """Return Gamma (N x 1) with K^T Gamma = force: the one there is, or the least in tau^2 / share."""
    if K.size1() == K.size2():
        return Columns(K.T).solve(force)
    spread = ca.diag(share) @ K
    return spread @ Columns(K.T @ spread).solve(force)


def _inverse(K: ca.SX) -> ca.SX:
    """Return K^-1 (nv x N), or the left inverse with the least squares."""
    if K.size1() == K.size2():
        return Columns(K).solve(ca.SX.eye(K.size1()))
    return Columns(K.T @ K).solve(K.T)


def inverse_dynamics(
    parts: Parts, pose: ca.SX, q: ca.SX, u: ca.SX, u_rate: ca.SX, share: ca.SX, external: ca.SX | None = None
) -> ca.SX:
    """Return Gamma (N x 1), the forces of the drives."""
    whole = _Assembly(parts, pose, q, u, u_rate)
    if whole.platform.is_free:  # in base axes, where the rows of K are as the legs give them
        force = whole.platform.lifted(whole.platform.forces(external)) + whole.wrench()
        return _shared(whole.drives().T, force, share)
    return _shared(whole.platform.project(whole.drives()).T, whole.force(external), share)


def platform_force(
    parts: Parts, pose: ca.SX, q: ca.SX, u: ca.SX, u_rate: ca.SX, external: ca.SX | None = None
) -> ca.SX:
    """Return F (nv x 1), what the motion takes of the platform."""
    return _Assembly(parts, pose, q, u, u_rate).force(external)


def platform_mass_matrix(parts: Parts, pose: ca.SX, q: ca.SX) -> ca.SX:
    """Return M (nv x nv)."""
    return _Assembly(parts, pose, q).mass_matrix()


def forward_dynamics(
    parts: Parts, pose: ca.SX, q: ca.SX, u: ca.SX, forces: ca.SX, external: ca.SX | None = None
) -> ca.SX:
    """Return the acceleration of the platform's coordinates (nv x 1)."""
    whole = _Assembly(parts, pose, q, u)
    given = whole.platform.project(whole.drives() @ forces)
    return Columns(whole.mass_matrix()).solve(given - whole.force(external))


def inverse_jacobian(parts: Parts, pose: ca.SX, q: ca.SX) -> ca.SX:
    """Return K (N x nv): rates of the drives from those of the platform."""
    whole = _Assembly(parts, pose, q)
    return whole.platform.project(whole.drives()).T


def robot_jacobian(parts: Parts, pose: ca.SX, q: ca.SX) -> ca.SX:
    """Return J_p (nv x N): rates of the platform from those of the drives."""
    return _inverse(inverse_jacobian(parts, pose, q))


def leg_velocities(parts: Parts, pose: ca.SX, q: ca.SX, u: ca.SX) -> ca.SX:
    """Return the velocities of all legs."""
    return ca.vertcat(*(limb.velocities() for limb in _Assembly(parts, pose, q, u).limbs))


def leg_accelerations(parts: Parts, pose: ca.SX, q: ca.SX, u: ca.SX, u_rate: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return the velocities and the accelerations of all legs."""
    motion = _Assembly(parts, pose, q, u, u_rate).motion()
    return ca.vertcat(*(v for v, _ in motion)), ca.vertcat(*(a for _, a in motion))


def kinetic_energy(parts: Parts, pose: ca.SX, q: ca.SX, u: ca.SX) -> ca.SX:
    """Return the kinetic energy (J) of platform and legs."""
    whole = _Assembly(parts, pose, q, u)
    own = (tree_kinetic_energy(each.limb.tree, each.q, each.velocities()) for each in whole.limbs)
    return sum(own, start=tree_kinetic_energy(parts.platform, pose, u))


def potential_energy(parts: Parts, pose: ca.SX, q: ca.SX) -> ca.SX:
    """Return the potential energy (J) of platform and legs."""
    own = (tree_potential_energy(limb.tree, q[limb.q]) for limb in parts.limbs)
    return sum(own, start=tree_potential_energy(parts.platform, pose))


def closed_positions(parts: Parts, pose: ca.SX, guess: ca.SX) -> ca.SX:
    """Return the positions of the legs in closed form, put together as the guess is, of the others the guess itself."""
    platform, found = Platform(parts.platform, pose), []
    for limb, strut in zip(parts.limbs, parts.struts, strict=True):
        near = guess[limb.q]
        if strut is not None:
            near = closest(strut.solve(platform, strut.sign(near)).q, near)
        found.append(near)
    return ca.vertcat(*found)


def leg_errors(parts: Parts, pose: ca.SX, q: ca.SX) -> ca.SX:
    """Return what the joints at the platform are open by."""
    return ca.vertcat(*(limb.error for limb in _Assembly(parts, pose, q).limbs))


def leg_matrices(parts: Parts, pose: ca.SX, q: ca.SX) -> ca.SX:
    """Return the entries of A_q of each leg, row by row, one leg after the other."""
    return ca.vertcat(*(ca.vec(limb.A.T) for limb in _Assembly(parts, pose, q).limbs))


def leg_trial(parts: Parts, leg_state: ca.SX, dv: ca.SX) -> ca.SX:
    """Return a trial of closing the legs with the platform held: its state after a step, the next step, the error.

    The state is (pose, q); ``loops.assembly.Closer`` asks for all in one column.
    """
    pose, q = ca.vertsplit(leg_state, [0, parts.platform.nq, leg_state.numel()])
    q = _moved(parts, q, dv)
    limbs = _Assembly(parts, pose, q, closed=False).limbs
    steps, errors = ([ca.SX(0, 1), *each] for each in ((limb.step() for limb in limbs), (limb.error for limb in limbs)))
    return ca.vertcat(pose, q, _short(ca.vertcat(*steps)), ca.norm_2(ca.vertcat(*errors)), 1)


def assembly_trial(parts: Parts, state: ca.SX, move: ca.SX) -> ca.SX:
    """Return a trial of closing legs and platform with the drives held, as ``leg_trial``; (pose, q, drives) move."""
    nq, nv = parts.limbs[-1].q.stop, parts.limbs[-1].v.stop
    n, m = parts.platform.nq, parts.platform.nv
    pose, q, driven = ca.vertsplit(state, [0, n, n + nq, state.numel()])
    du, dv, led = ca.vertsplit(move, [0, m, m + nv, move.numel()])
    pose, q, driven = integrate(parts.platform, pose, du), _moved(parts, q, dv), driven + led
    whole = _Assembly(parts, pose, q, closed=False)
    steps = [limb.step() for limb in whole.limbs]
    pairs = zip(whole.limbs, steps, strict=True)
    driven_now = [
        (q[limb.limb.q.start + _position(limb.limb, k)], step[k]) for limb, step in pairs for k in limb.limb.driven
    ]
    apart = driven - ca.vertcat(*(position for position, _ in driven_now))
    K = whole.platform.project(whole.drives()).T
    wanted, side = apart - ca.vertcat(*(step for _, step in driven_now)), ca.SX(1)
    if K.size1() == K.size2():
        du, side = reflected(K, wanted)
    else:
        du = _inverse(K) @ wanted
    twist = whole.platform.unit_rates() @ du
    moved = [du]
    for limb, step in zip(whole.limbs, steps, strict=True):
        moved.append(step + limb.carried(ca.SX.eye(limb.limb.tree.nv)).T @ twist)
    error = ca.norm_2(ca.vertcat(apart, *(limb.error for limb in whole.limbs)))
    return ca.vertcat(pose, q, driven, _short(ca.vertcat(*moved)), ca.SX(driven.numel(), 1), error, side)


def _moved(parts: Parts, q: ca.SX, dv: ca.SX) -> ca.SX:
    """Return the positions of all legs after one unit of time at their velocities dv."""
    return ca.vertcat(*(integrate(limb.tree, q[limb.q], dv[limb.v]) for limb in parts.limbs))


def _short(step: ca.SX) -> ca.SX:
    """Return a step of at most 1 rad or m of each coordinate."""
    return ca.fmax(ca.fmin(step, 1), -1)


def _position(limb: Limb, k: int) -> int:
    """Return the position, among the leg's own, of a velocity that is the rate of one."""
    body = next(body for body in limb.tree.bodies if body.v.start <= k < body.v.stop)
    return int(body.q.start + k - body.v.start)
