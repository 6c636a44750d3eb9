"""The inward pass, tips to root: what forces the motion takes. Inverse dynamics and joint reactions are both it.

    f_j = m a + U ms          - external force  + sum over children of R f_k
    n_j = axial(U Sigma) + ms x a - external moment + sum over children of (R n_k + p x R f_k)
    tau_j = S^T (n_j, f_j) + Ia a + friction(v)

f_j, n_j is the wrench of the parent on body j at its origin. Document 003, eqs. 24-27; the pseudo-inertia (m, ms,
Sigma) about the origin takes fewer operations than the inertia about the centre of mass.
"""

from collections.abc import Iterable

import casadi as ca
import numpy as np

from torsor.dynamics.kinematics import Motion, Move, motions, moves, sx
from torsor.dynamics.tree import Body, Tree
from torsor.robot import Joint
from torsor.spatial import cross, moment

__all__ = ["bias_force", "friction_force", "gravity_force", "inverse_dynamics", "joint_wrenches", "rotor_force"]


def body_wrench(body: Body, motion: Motion) -> tuple[ca.SX, ca.SX]:
    """Return (n, f) about the body's origin that its motion takes: Newton's and Euler's equations."""
    Sigma, ms, m = sx(body.P[:3, :3]), sx(body.P[:3, 3]), float(body.P[3, 3])
    return moment(motion.U, Sigma) + cross(ms, motion.a), m * motion.a + motion.U @ ms


def wrenches(tree: Tree, moved: list[Move], motion: list[Motion], external: ca.SX | None) -> list[tuple[ca.SX, ca.SX]]:
    """Return (n, f) that each parent exerts on its body, at the body's origin in its axes, tips to root."""
    wrench = [body_wrench(body, m) for body, m in zip(tree.bodies, motion, strict=True)]
    for i in reversed(range(len(wrench))):
        n, f = wrench[i]
        if external is not None:
            n_e, f_e = _to_body(tree.bodies[i], external[i, :].T)
            n, f = n - n_e, f - f_e
            wrench[i] = n, f
        parent = tree.bodies[i].parent
        if parent >= 0:
            n_up, f_up = moved[i].up_wrench(n, f)
            wrench[parent] = wrench[parent][0] + n_up, wrench[parent][1] + f_up
    return wrench


def _to_body(body: Body, wrench: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return (n, f) in the body's frame of a wrench given in the user's link frame."""
    R, p = sx(body.link[:3, :3]), sx(body.link[:3, 3])
    f = R @ wrench[3:]
    return R @ wrench[:3] + cross(p, f), f


def _to_link(body: Body, n: ca.SX, f: ca.SX) -> ca.SX:
    """Return the wrench (6 x 1) in the user's link frame of (n, f) in the body's frame."""
    R_T, p = sx(body.link[:3, :3].T), sx(body.link[:3, 3])
    return ca.vertcat(R_T @ (n - cross(p, f)), R_T @ f)


def gather(tree: Tree, forces: Iterable[tuple[Body, ca.SX]]) -> ca.SX:
    """Return generalised forces (nv x 1) from forces of joints: a coordinate takes ratio times those it drives."""
    tau: list[ca.SX] = [ca.SX.zeros(1, 1)] * tree.nv
    for body, force in forces:
        for k, index in enumerate(range(body.v.start, body.v.stop)):
            tau[index] = tau[index] + body.joint.ratio * force[k]
    return ca.vertcat(ca.SX.zeros(0, 1), *tau)


def project(tree: Tree, moved: list[Move], wrench: list[tuple[ca.SX, ca.SX]]) -> ca.SX:
    """Return S^T (n, f) for each coordinate: what the wrenches ask of the joints."""
    joints = zip(tree.bodies, moved, wrench, strict=True)
    return gather(tree, ((body, move.S.T @ ca.vertcat(n, f)) for body, move, (n, f) in joints))


def rotor_force(tree: Tree, a: ca.SX) -> ca.SX:
    """Return Ia a for each coordinate: what accelerates the rotors."""
    geared = (body for body in tree.bodies if np.any(body.joint.rotor_inertia))
    return gather(tree, ((body, sx(body.joint.rotor_inertia) * body.rate(a)) for body in geared))


def friction_force(tree: Tree, v: ca.SX) -> ca.SX:
    """Return Fs sign(v) + Fv v for each coordinate, or Fs tanh(v / smooth) + Fv v for smooth Coulomb friction."""

    def friction(joint: Joint, rate: ca.SX) -> ca.SX:
        direction = ca.tanh(rate / joint.smooth) if joint.smooth else ca.sign(rate)
        return sx(joint.coulomb) * direction + sx(joint.viscous) * rate

    rubbing = (body for body in tree.bodies if np.any(body.joint.coulomb) or np.any(body.joint.viscous))
    return gather(tree, ((body, friction(body.joint, body.rate(v))) for body in rubbing))


def inverse_dynamics(tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX, external: ca.SX | None = None) -> ca.SX:
    """Return tau = M(q) a + C(q, v) v + g(q) + friction - J^T external (nv x 1)."""
    moved = moves(tree, q)
    motion = motions(tree, moved, v, a, sx(tree.gravity))
    tau = project(tree, moved, wrenches(tree, moved, motion, external))
    return tau + rotor_force(tree, a) + friction_force(tree, v)


def joint_wrenches(tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX, external: ca.SX | None = None) -> ca.SX:
    """Return what each parent exerts on its link, at the link's origin in its axes (L x 6)."""
    moved = moves(tree, q)
    motion = motions(tree, moved, v, a, sx(tree.gravity))
    wrench = wrenches(tree, moved, motion, external)
    rows = [_to_link(body, n, f).T for body, (n, f) in zip(tree.bodies, wrench, strict=True)]
    return ca.vertcat(ca.SX.zeros(0, 6), *rows)


def bias_force(tree: Tree, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return tau without acceleration: C(q, v) v + g(q) + friction."""
    moved = moves(tree, q)
    motion = motions(tree, moved, v, None, sx(tree.gravity))
    return project(tree, moved, wrenches(tree, moved, motion, None)) + friction_force(tree, v)


def gravity_force(tree: Tree, q: ca.SX) -> ca.SX:
    """Return tau at rest: g(q)."""
    moved = moves(tree, q)
    motion = motions(tree, moved, None, None, sx(tree.gravity))
    return project(tree, moved, wrenches(tree, moved, motion, None))
