"""The inward pass, tips to root: wrenches and forces of a motion, for inverse dynamics and joint reactions.

    f_j = m a + U ms          - external force  + sum over children of R f_k
    n_j = axial(U Sigma) + ms x a - external moment + sum over children of (R n_k + p x R f_k)
    tau_j = S^T (n_j, f_j) + Ia a + springs(q) + friction(v)

A rotor on body j adds the rate of its spin momentum to n_j, and h . omega'_j to the force of its own coordinate. A mode
of a flexible link also adds a linear momentum and the rates of its inertia (``trees.modal``). (n_j, f_j) is the wrench
that the parent exerts on body j at its origin. See Khalil 2010, eqs. 22-31. The pseudo-inertia (m, ms, Sigma) about the
origin takes fewer operations than the inertia about the centre of mass.
"""

from collections.abc import Iterator, Set
from dataclasses import replace

import casadi as ca
import numpy as np

from torsor.dynamics.recursions.kinematics import Motion, Move, motions, moves, sx
from torsor.dynamics.recursions.passive import gather, passive_force
from torsor.dynamics.trees.tree import Body, Tree
from torsor.spatial import cross, moment, skew

Load = ca.SX | None  # external wrenches (L x 6) on the links
Rate = ca.SX | None  # v or a (nv x 1); None means zero
Wrench = tuple[ca.SX, ca.SX]  # (n, f)


def body_wrench(body: Body, motion: Motion, v: Rate, a: Rate) -> Wrench:
    """Return the inertial wrench (n, f) about a body's origin; rotors add h a + (w x h) v (Hua et al. 2022, eq. 25)."""
    Sigma, ms, m = body.Sigma, body.ms, body.mass
    n, f = moment(motion.U, Sigma) + cross(ms, motion.a), m * motion.a + motion.U @ ms
    if a is not None:
        h, b = body.momenta(a)
        n, f = n + h, f + b
    if v is not None:
        n = n + cross(motion.w, body.spin(v))
        for shape in body.shapes:
            n_rate, f_rate = shape.wrench(motion.w, v[shape.modal.v])
            n, f = n + n_rate, f + f_rate
    return n, f


def wrenches(
    tree: Tree, moved: list[Move], motion: list[Motion], v: Rate, a: Rate, external: Load, cuts: Set[int] = frozenset()
) -> list[Wrench]:
    """Return (n, f) that each parent exerts on its body, at the body's origin; ``cuts`` do not load their parents."""
    wrench = [body_wrench(move.body, m, v, a) for move, m in zip(moved, motion, strict=True)]
    for i in reversed(range(len(wrench))):
        n, f = wrench[i]
        if external is not None:
            n_e, f_e = to_body(tree.bodies[i], external[i, :].T)
            n, f = n - n_e, f - f_e
            wrench[i] = n, f
        parent = tree.bodies[i].parent
        if parent >= 0 and i not in cuts:
            n_up, f_up = moved[i].up_wrench(n, f)
            wrench[parent] = wrench[parent][0] + n_up, wrench[parent][1] + f_up
    return wrench


def to_body(body: Body, wrench: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return (n, f) in the body's frame from wrenches (6 x k) in the user's link frame."""
    R, p = sx(body.link[:3, :3]), sx(skew(body.link[:3, 3]))
    f = R @ wrench[3:, :]
    return R @ wrench[:3, :] + p @ f, f


def to_link(body: Body, n: ca.SX, f: ca.SX) -> ca.SX:
    """Return wrenches (6 rows) in the user's link frame from the columns of (n, f) in the body's frame."""
    R_T, p = sx(body.link[:3, :3].T), sx(skew(body.link[:3, 3]))
    return ca.vertcat(R_T @ (n - p @ f), R_T @ f)


def _project(
    tree: Tree, moved: list[Move], wrench: list[Wrench], motion: list[Motion], v: Rate, cuts: Set[int] = frozenset()
) -> ca.SX:
    """Return the forces S^T (n, f) of the joints, including h . omega' of rotors, and the forces of modes."""

    def forces() -> Iterator[tuple[int, ca.SX]]:
        for i, (move, (n, f), m) in enumerate(zip(moved, wrench, motion, strict=True)):
            body = move.body
            if body.v.stop > body.v.start and i not in cuts:
                force = body.joint.ratio * (move.S.T @ ca.vertcat(n, f))
                yield from enumerate(ca.vertsplit(force), body.v.start)
            for rotor in body.rotors:
                if rotor.b is None:
                    yield rotor.v, ca.dot(rotor.momentum[0], m.wd)
            for shape in body.shapes:
                rates = None if v is None else v[shape.modal.v]
                yield from enumerate(shape.forces(m.w, m.wd, m.U, m.a, rates), shape.modal.v.start)

    return gather(tree.nv, forces())


def _forces(tree: Tree, q: ca.SX, v: Rate, a: Rate, external: Load = None) -> ca.SX:
    """Return the forces that move the bodies (nv x 1), including gravity; None for v or a means zero."""
    moved = moves(tree, q)
    motion = motions(tree, moved, v, a, sx(tree.gravity))
    return _project(tree, moved, wrenches(tree, moved, motion, v, a, external), motion, v)


def inertial_force(tree: Tree, q: ca.SX, a: ca.SX) -> ca.SX:
    """Return M(q) a (nv x 1); for a velocity in place of a, this is the generalised momentum."""
    return _forces(replace(tree, gravity=np.zeros(3)), q, None, a) + tree.armature_times(a)


def load_force(tree: Tree, q: ca.SX, external: ca.SX) -> ca.SX:
    """Return J^T external (nv x 1), the generalised forces of wrenches on the links."""
    return -_forces(replace(tree, gravity=np.zeros(3)), q, None, None, external)


def inverse_dynamics(tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX, external: Load = None) -> ca.SX:
    """Return tau = M(q) a + C(q, v) v + g(q) + springs and friction - J^T external (nv x 1)."""
    return inverse_dynamics_with_cuts(tree, q, v, a, external, frozenset())[0]


def joint_wrenches(tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX, external: Load = None) -> ca.SX:
    """Return the wrench that each parent exerts on its link, at the link's origin in its axes (L x 6)."""
    moved = moves(tree, q)
    wrench = wrenches(tree, moved, motions(tree, moved, v, a, sx(tree.gravity)), v, a, external)
    rows = [to_link(body, n, f).T for body, (n, f) in zip(tree.bodies, wrench, strict=True)]
    return ca.vertcat(ca.SX.zeros(0, 6), *rows)


def bias_force(tree: Tree, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return tau for zero acceleration: C(q, v) v + g(q) + springs and friction (nv x 1)."""
    return _forces(tree, q, v, None) + passive_force(tree, q, v)


def gravity_force(tree: Tree, q: ca.SX) -> ca.SX:
    """Return g(q) (nv x 1), the forces that balance gravity."""
    return _forces(tree, q, None, None)


def inverse_dynamics_with_cuts(
    tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX, external: Load, cuts: Set[int]
) -> tuple[ca.SX, dict[int, ca.SX]]:
    """Return the inverse dynamics without the wrenches (6 x 1) of the bodies in ``cuts``, and these wrenches."""
    moved = moves(tree, q)
    motion = motions(tree, moved, v, a, sx(tree.gravity))
    wrench = wrenches(tree, moved, motion, v, a, external, cuts)
    forces = _project(tree, moved, wrench, motion, v, cuts) + tree.armature_times(a) + passive_force(tree, q, v)
    return forces, {i: ca.vertcat(*wrench[i]) for i in cuts}
