"""What closed loops ask of the coordinates: errors of closure, their Jacobian, and what is left of their second rate.

For each loop the pose of frame b seen from frame a follows from the joints between them, up to the body that carries
both; the kind of the loop says which of its entries are zero (``robot.loops``). With phi(q) = 0 while closed,

    phi' = A(q) v        phi'' = A(q) a + drift(q, v)

Document 003, section 2.2, eqs. 3-5; here with the fewest equations that a cut joint needs, by its kind.
"""

import casadi as ca

from torsor.dynamics.configuration import steps
from torsor.dynamics.kinematics import Move, moves, sx
from torsor.dynamics.places import place_in_body
from torsor.dynamics.tree import Cut, Relation, Tree

__all__ = ["closure_drift", "closure_error", "closure_jacobian", "relative_pose"]


def relative_pose(tree: Tree, moved: list[Move], cut: Cut) -> tuple[ca.SX, ca.SX]:
    """Return (R, p) of frame b seen from frame a."""
    (i, j), poses = (cut.a.link, cut.b.link), [place_in_body(tree, cut.a), place_in_body(tree, cut.b)]
    while i != j:  # parents come before children
        k = 0 if i > j else 1
        body = max(i, j)
        R, p = poses[k]
        poses[k] = moved[body].up(R), moved[body].p + moved[body].up(p)
        i, j = (tree.bodies[i].parent, j) if k == 0 else (i, tree.bodies[j].parent)
    (R_a, p_a), (R_b, p_b) = poses
    return R_a.T @ R_b, R_a.T @ (p_b - p_a)


def closure_error(tree: Tree, q: ca.SX) -> ca.SX:
    """Return phi (c x 1): lengths in m, angles as 2 sin(angle/2), couplings in units of their coordinates."""
    moved = moves(tree, q)
    rows = [ca.SX.zeros(0, 1)]
    for closure in tree.closures:
        if isinstance(closure, Relation):
            rows.append(sum((c * q[k] for k, c in closure.shares), start=ca.SX(-closure.offset)))
        else:
            rows.append(closure.loop.error(*relative_pose(tree, moved, closure)))
    return ca.vertcat(*rows)


def closure_jacobian(tree: Tree, q: ca.SX) -> ca.SX:
    """Return A (c x nv) with phi' = A v."""
    return ca.jacobian(closure_error(tree, q), q) @ steps(tree, q)


def closure_drift(tree: Tree, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return phi'' without acceleration (c x 1)."""
    held = ca.SX.sym("v", tree.nv)  # v may depend on q, and is not to be differentiated
    drift = ca.jtimes(closure_jacobian(tree, q) @ held, q, steps(tree, q) @ held)
    return ca.substitute(sx(drift), held, ca.densify(v))  # v has gaps where a coordinate cannot move
