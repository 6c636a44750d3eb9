"""Dynamics of a parallel robot, computed leg by leg.

Each leg follows the platform: q_i' = G_i u with G_i = J_i^-1 J_vi. The forces tau_i of a leg's own motion (by the
Newton-Euler recursion) act on the platform as the wrench G_i^T tau_i. If F_p and M_p are the force and mass matrix of
the platform alone, and the drive rates are q_a' = K u,

    F = F_p + sum of G_i^T tau_i = K^T Gamma          M = M_p + sum of G_i^T M_i G_i         K = J_p^-1

(Khalil 2010, eqs. 59-66; eq. 66 is solved for Gamma without J_p). F is the inverse dynamics in the platform's own
coordinates. No matrix is larger than the number of coordinates of one leg or of the platform.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca
import numpy as np

from torsor.base.arrays import Array, Flags
from torsor.dynamics.loops.closure import characteristic_scales
from torsor.dynamics.loops.factors import Columns, reflected
from torsor.dynamics.recursions.configuration import integrate
from torsor.dynamics.recursions.kinematics import sx
from torsor.dynamics.recursions.momentum import kinetic_energy as tree_kinetic_energy
from torsor.dynamics.recursions.momentum import potential_energy as tree_potential_energy
from torsor.dynamics.trees.tree import Tree
from torsor.robot.parallel.limbs import Given, Limb, Platform, Strut, TracedLimb, closest
from torsor.robot.parallel.small import least


@dataclass(frozen=True, eq=False)
class Parts:
    """The trees of a parallel robot: the platform on its joint, and the legs; ``struts`` are legs in closed form.

    ``whole`` contains the trees of the platform and the legs with all inertial parameters, including those that affect
    the energy but no force. ``length`` (m) is the size of the robot.
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
        """Factors (nv) that make the platform's generalised forces comparable: 1/length for moments."""
        return ca.SX(self.units / self.length)


class Assembly:
    """A parallel robot at one state: the symbolic platform and legs."""

    def __init__(self, parts: Parts, pose: ca.SX, q: ca.SX, u: Given = None, u_rate: Given = None, closed: bool = True):
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
        wrenches = self.drives() if self.platform.is_free else self.platform.project(self.drives())
        return ca.diag(self.parts.weights) @ wrenches

    def drives(self) -> ca.SX:
        """Return the rows of K as wrenches (6 x N) in base axes: their products with the twist are the drive rates."""
        chosen = ((limb, np.eye(limb.limb.tree.nv)[:, list(limb.limb.driven)]) for limb in self.limbs)
        return ca.horzcat(*(limb.carried(sx(driven)) for limb, driven in chosen))

    def force(self, external: Given) -> ca.SX:
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
    parts: Parts, pose: ca.SX, q: ca.SX, u: ca.SX, u_rate: ca.SX, share: ca.SX, external: Given = None
) -> ca.SX:
    """Return the drive forces Gamma (N x 1); with redundant drives, they minimise the sum of Gamma^2 / share."""
    whole = Assembly(parts, pose, q, u, u_rate)
    if whole.platform.is_free:  # solve in base axes, in which the rows of K are computed
        force = whole.platform.lifted(whole.platform.forces(external)) + whole.wrench()
    else:
        force = whole.force(external)
    K_T, force = whole.rows(), parts.weights * force
    if K_T.size1() == K_T.size2():
        return Columns(K_T).solve(force)
    spread = ca.diag(share) @ K_T.T
    return spread @ Columns(K_T @ spread).solve(force)


def platform_force(parts: Parts, pose: ca.SX, q: ca.SX, u: ca.SX, u_rate: ca.SX, external: Given = None) -> ca.SX:
    """Return F (nv x 1), the inverse dynamics in the platform's own coordinates."""
    return Assembly(parts, pose, q, u, u_rate).force(external)


def platform_mass_matrix(parts: Parts, pose: ca.SX, q: ca.SX) -> ca.SX:
    """Return M (nv x nv)."""
    return Assembly(parts, pose, q).mass_matrix()


def forward_dynamics(parts: Parts, pose: ca.SX, q: ca.SX, u: ca.SX, forces: ca.SX, external: Given = None) -> ca.SX:
    """Return the acceleration of the platform's coordinates (nv x 1)."""
    whole = Assembly(parts, pose, q, u)
    drive_force = whole.platform.project(whole.drives() @ forces)
    return Columns(whole.mass_matrix()).solve(drive_force - whole.force(external))


def inverse_jacobian(parts: Parts, pose: ca.SX, q: ca.SX) -> ca.SX:
    """Return K (N x nv), which maps platform rates to drive rates."""
    whole = Assembly(parts, pose, q)
    return whole.platform.project(whole.drives()).T


def robot_jacobian(parts: Parts, pose: ca.SX, q: ca.SX) -> ca.SX:
    """Return J_p (nv x N), which maps drive rates to platform rates; for redundant drives, the pseudo-inverse of K."""
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
    """Return the kinetic energy (J) of the platform and legs."""
    whole = Assembly(parts, pose, q, u)
    pairs = zip(parts.whole[1:], whole.limbs, strict=True)
    energies = (tree_kinetic_energy(tree, item.q, item.velocities()) for tree, item in pairs)
    return sum(energies, start=tree_kinetic_energy(parts.whole[0], pose, u))


def potential_energy(parts: Parts, pose: ca.SX, q: ca.SX) -> ca.SX:
    """Return the potential energy (J) of the platform and legs."""
    pairs = zip(parts.whole[1:], parts.limbs, strict=True)
    energies = (tree_potential_energy(tree, q[limb.q]) for tree, limb in pairs)
    return sum(energies, start=tree_potential_energy(parts.whole[0], pose))


def closed_positions(parts: Parts, pose: ca.SX, guess: ca.SX) -> ca.SX:
    """Return the leg positions: struts in the assembly mode of the guess, other legs as in the guess."""
    platform, result = Platform(parts.platform, pose), []
    for limb, strut in zip(parts.limbs, parts.struts, strict=True):
        near = guess[limb.q]
        if strut is not None:
            near = closest(strut.solve(platform, strut.signs(near)).q, near)
        result.append(near)
    return ca.vertcat(*result)


def leg_errors(parts: Parts, pose: ca.SX, q: ca.SX) -> ca.SX:
    """Return the closure errors of the joints at the platform."""
    return ca.vertcat(*(limb.error for limb in Assembly(parts, pose, q).limbs))


def leg_matrices(parts: Parts, pose: ca.SX, q: ca.SX) -> ca.SX:
    """Return the entries of A_q of each leg, row by row, leg by leg."""
    return ca.vertcat(*(ca.vec(limb.A.T) for limb in Assembly(parts, pose, q).limbs))


def soundness(parts: Parts, pose: ca.SX, q: ca.SX, drives: bool, positions: bool) -> ca.SX:
    """Return the singularity distances of the legs and, if requested, of the drives, and the closure error."""
    whole = Assembly(parts, pose, q)
    result = [least([value for limb in whole.limbs for value in limb.margin()])]
    if drives:
        K_T = whole.rows()
        result.append(Columns(K_T if K_T.size1() == K_T.size2() else K_T.T).independence())
    if positions:
        result.append(ca.norm_2(ca.vertcat(*(limb.closure_error() for limb in whole.limbs))))
    return ca.vertcat(*result)


# Numerical detection of singularities of a parallel robot.
#
# First kind: A_q of a leg loses rank, and the leg can move while the platform is fixed. Second kind: J_p^-1 loses rank,
# and the platform can move with locked drives. Both matrices are nondimensional.

RANK_TOLERANCE = 1e-5  # ratio of smallest to largest singular value below which a matrix is singular


def legs(parts: Parts, matrices: Array) -> tuple[Flags, Array]:
    """Return a mask (..., legs) of singular legs, and the velocities (..., nv) of their free motions, from A_q."""
    batch, first = matrices.shape[:-1], 0
    result = np.zeros((*batch, len(parts.limbs)), dtype=bool)
    motion = np.zeros((*batch, parts.limbs[-1].v.stop))
    for k, limb in enumerate(parts.limbs):
        n = limb.tree.nv
        rows, columns = limb.units
        A = matrices[..., first : first + n * n].reshape(*batch, n, n) / np.array(rows)[:, None] * columns
        first += n * n
        _, values, V = np.linalg.svd(np.where(np.isfinite(A), A, 0.0))
        result[..., k] = values[..., -1] < RANK_TOLERANCE * np.maximum(values[..., 0], 1e-300)
        motion[..., limb.v] = np.where(result[..., k, None], _unit(V[..., -1, :] * columns), 0.0)
    return result, motion


class Platforms(NamedTuple):
    """Condition number (...) of J_p^-1, a mask of singular states, and the platform's free motion (..., n) there."""

    condition: Array
    singular: Flags
    motion: Array


def platforms(parts: Parts, K: Array, length: float | None = None) -> Platforms:
    """Return the singularities of the second kind from J_p^-1 (..., N, n); ``length`` (m) scales translations."""
    scales = characteristic_scales(parts.platform, parts.length if length is None else length)[1]
    finite: Flags = np.asarray(np.isfinite(K).all(axis=(-2, -1)))
    _, values, V = np.linalg.svd(np.where(finite[..., None, None], K, 0.0) * scales)
    with np.errstate(divide="ignore", invalid="ignore"):
        condition = np.where(finite, values[..., 0] / values[..., -1], np.inf)
    singular: Flags = np.asarray(finite & ~(values[..., -1] >= RANK_TOLERANCE * values[..., 0]))
    return Platforms(condition, singular, np.where(singular[..., None], _unit(V[..., -1, :] * scales), 0.0))


def _unit(vectors: Array) -> Array:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))


def moving(names: Sequence[str], motion: Array) -> str:
    """Return a description of a motion."""
    shown = (f"{name} ({value:.3g})" for name, value in zip(names, motion, strict=True) if abs(value) > 1e-6)
    return f"{', '.join(shown)} can move"


# Newton steps that close a parallel robot: one leg for a given pose, or legs and platform for given drives.
#
# A trial is one column, which ``robot.closed_loops.search.Closer`` evaluates: the state after a step, the next Newton
# step, the closure error, and the side. The side is the signed distance from a singularity. It changes sign when a leg
# or the platform passes through a singular configuration into another assembly mode.


def leg_trial(parts: Parts, leg_state: ca.SX, leg_move: ca.SX, leg: int) -> ca.SX:
    """Return a trial step that closes one leg at a given pose; the state is (pose, q), and a step is (du, dv)."""
    n, m, limb = parts.platform.nq, parts.platform.nv, parts.limbs[leg]
    pose, q = ca.vertsplit(leg_state, [0, n, leg_state.numel()])
    du, dv = ca.vertsplit(leg_move, [0, m, leg_move.numel()])
    pose, q = integrate(parts.platform, pose, du), integrate(limb.tree, q, dv)
    traced = TracedLimb(limb, q, Platform(parts.platform, pose), closed=False)
    step = _short(traced.step(), limb.units[1])
    return ca.vertcat(pose, q, ca.SX(m, 1), step, ca.norm_2(traced.closure_error()), least(traced.margin(True), True))


def leg_side(parts: Parts, leg_q: ca.SX, leg: int) -> ca.SX:
    """Return the side of a leg whose matrix A_q depends only on its own positions (not ``depends_on_pose``)."""
    limb, pose = parts.limbs[leg], ca.SX.sym("pose", parts.platform.nq)
    value = least(TracedLimb(limb, leg_q, Platform(parts.platform, pose)).margin(True), True)
    return ca.substitute(value, pose, ca.SX.ones(parts.platform.nq, 1))


def depends_on_pose(parts: Parts, leg: int) -> bool:
    """Return whether the matrix A_q of a leg, and its distance from singularity, also depend on the pose."""
    limb = parts.limbs[leg]
    pose, q = ca.SX.sym("pose", parts.platform.nq), ca.SX.sym("q", limb.tree.nq)
    return bool(ca.depends_on(TracedLimb(limb, q, Platform(parts.platform, pose)).A, pose))


def assembly_trial(parts: Parts, state: ca.SX, move: ca.SX) -> ca.SX:
    """Return a trial step that closes legs and platform for given drives; the state is (pose, q, drives).

    The positions of redundant drives need not agree before convergence. Their part of the closure error is the gradient
    of the sum of their squared differences.
    """
    nq, nv = parts.limbs[-1].q.stop, parts.limbs[-1].v.stop
    n, m = parts.platform.nq, parts.platform.nv
    pose, q, driven = ca.vertsplit(state, [0, n, n + nq, state.numel()])
    du, dv, led = ca.vertsplit(move, [0, m, m + nv, move.numel()])
    pose, driven = integrate(parts.platform, pose, du), driven + led
    q = ca.vertcat(*(integrate(limb.tree, q[limb.q], dv[limb.v]) for limb in parts.limbs))
    whole = Assembly(parts, pose, q, closed=False)
    steps = [limb.step() for limb in whole.limbs]
    drives, places = ca.SX(drive_units(parts)), [_position(limb, k) for limb in parts.limbs for k in limb.driven]
    apart = (driven - ca.vertcat(*(q[k] for k in places))) / drives
    ahead = [step[k] for limb, step in zip(parts.limbs, steps, strict=True) for k in limb.driven]
    drive_error, K = apart - ca.vertcat(*ahead) / drives, _scaled_jacobian(parts, whole)
    if K.size1() == K.size2():
        turn, side = reflected(K, drive_error)
    else:
        columns = Columns(K)
        turn, side, apart = columns.solve(drive_error), columns.independence(), K.T @ apart
    moved = [ca.SX(parts.units) * turn]
    twist = whole.platform.unit_rates() @ moved[0]
    for limb, step in zip(whole.limbs, steps, strict=True):
        moved.append(step + limb.carried(ca.SX.eye(limb.limb.tree.nv)).T @ twist)
    longest = np.concatenate([parts.units, *(limb.units[1] for limb in parts.limbs)])
    error = ca.norm_2(ca.vertcat(apart, *(limb.closure_error() for limb in whole.limbs)))
    all_sides = least([side, *(value for limb in whole.limbs for value in limb.margin(True))], signed=True)
    return ca.vertcat(pose, q, driven, _short(ca.vertcat(*moved), longest), ca.SX(driven.numel(), 1), error, all_sides)


def sides(parts: Parts, pose: ca.SX, q: ca.SX) -> ca.SX:
    """Return the sides of the legs and of the platform (legs + 1,); the latter is 1 for redundant drives."""
    whole = Assembly(parts, pose, q, closed=False)
    K = _scaled_jacobian(parts, whole)
    last = reflected(K, ca.SX(K.size1(), 1))[1] if K.size1() == K.size2() else ca.SX(1)
    return ca.vertcat(*(least(limb.margin(True), signed=True) for limb in whole.limbs), last)


def drive_units(parts: Parts) -> Array:
    """Return the characteristic scales (N,) of the drives."""
    return np.array([limb.units[1][k] for limb in parts.limbs for k in limb.driven])


def _scaled_jacobian(parts: Parts, whole: Assembly) -> ca.SX:
    """Return the nondimensional K, which is divided by the drive scales and multiplied by the platform scales."""
    K = whole.platform.project(whole.drives()).T
    return ca.diag(ca.SX(1 / drive_units(parts))) @ K @ ca.diag(ca.SX(parts.units))


def _short(step: ca.SX, longest: Array) -> ca.SX:
    """Return a step clipped to ``longest`` for each coordinate: 1 rad, or the size of the robot."""
    return ca.fmax(ca.fmin(step, ca.SX(longest)), -ca.SX(longest))


def _position(limb: Limb, k: int) -> int:
    """Return the index, among the positions of all legs, of the position whose rate is velocity k of a leg."""
    body = next(body for body in limb.tree.bodies if body.v.start <= k < body.v.stop)
    return int(limb.q.start + body.q.start + k - body.v.start)
