"""What loops do to the links: a cut joint holds with a wrench on either side, equal and opposite.

The forces lambda of its equations phi(R, p) do the work lambda . phi' on the motion of frame b seen from frame a,

    R' = R [w],  p' = R v        (n, f) on b: the derivatives of lambda . phi' by w and by v, in the axes of b

and what acts on b is taken from a. A coupling acts within its joints, and puts no wrench on a link.
"""

import casadi as ca

from torsor.dynamics.closure import relative_pose
from torsor.dynamics.kinematics import moves, sx
from torsor.dynamics.tree import Relation, Tree
from torsor.spatial import cross, skew

__all__ = ["loop_wrenches"]


def loop_wrenches(tree: Tree, q: ca.SX, multipliers: ca.SX) -> ca.SX:
    """Return the wrenches (L x 6) that loops exert on the links, at their origins in their axes."""
    moved, first = moves(tree, q), 0
    found = [ca.SX.zeros(6, 1) for _ in tree.bodies]
    for closure in tree.closures:
        if isinstance(closure, Relation):
            first += 1
            continue
        R, p = relative_pose(tree, moved, closure)
        twist = ca.SX.sym("twist", 6)
        rows = closure.loop.rows(R @ (ca.SX.eye(3) + skew(twist[:3])), p + R @ twist[3:])
        own = multipliers[first : first + rows.numel()]
        first += rows.numel()
        on_b = ca.substitute(ca.gradient(ca.dot(own, rows), twist), twist, ca.SX.zeros(6, 1))
        n, f = R @ on_b[:3], R @ on_b[3:]
        for place, (n_here, f_here) in ((closure.b, (on_b[:3], on_b[3:])), (closure.a, (-n - cross(p, f), -f))):
            if place.link >= 0:
                turn, at = sx(place.pose[:3, :3]), sx(place.pose[:3, 3])
                push = turn @ f_here
                found[place.link] += ca.vertcat(turn @ n_here + cross(at, push), push)
    return ca.vertcat(ca.SX.zeros(0, 6), *(each.T for each in found))
