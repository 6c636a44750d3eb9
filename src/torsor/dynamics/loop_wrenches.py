"""Wrenches with closed loops: what the cut joints pass on, and what then is left for the joints of the tree.

The multipliers of a cut joint's equations are forces along them. Together they are a wrench that frame a exerts on
frame b, and b the opposite on a; the tree carries both as it carries loads from outside.
"""

import casadi as ca

from torsor.dynamics.closure import Closures
from torsor.dynamics.constrained import Closing, Linkage
from torsor.dynamics.newton_euler import inverse_dynamics, joint_wrenches
from torsor.dynamics.tree import Cut, Tree
from torsor.robot import Place
from torsor.spatial import cross

__all__ = ["constrained_joint_wrenches", "loop_wrenches"]


def _solved(
    tree: Tree,
    q: ca.SX,
    v_active: ca.SX,
    a_active: ca.SX,
    share: ca.SX,
    closing: Closing,
    external: ca.SX | None,
) -> tuple[ca.SX, ca.SX, Closures, list[ca.SX]]:
    linkage = Linkage(tree, q, closing)
    v, a = linkage.motion(v_active, a_active)
    _, passed = linkage.balance(inverse_dynamics(tree, q, v, a, external), share)
    return v, a, linkage.closures, linkage.closures.wrenches(linkage.all_rows(passed))


def loop_wrenches(
    tree: Tree,
    q: ca.SX,
    v_active: ca.SX,
    a_active: ca.SX,
    share: ca.SX,
    closing: Closing,
    external: ca.SX | None = None,
) -> ca.SX:
    """Return what a exerts on b in each cut joint, at frame a in its axes (cuts x 6)."""
    *_, found = _solved(tree, q, v_active, a_active, share, closing, external)
    return ca.vertcat(ca.SX(0, 6), *(wrench.T for wrench in found))


def constrained_joint_wrenches(
    tree: Tree,
    q: ca.SX,
    v_active: ca.SX,
    a_active: ca.SX,
    share: ca.SX,
    closing: Closing,
    external: ca.SX | None = None,
) -> ca.SX:
    """Return what each parent exerts on its link, at the link's origin in its axes, while loops are closed (L x 6)."""
    v, a, closures, found = _solved(tree, q, v_active, a_active, share, closing, external)
    loads = ca.SX.zeros(len(tree.bodies), 6) if external is None else ca.SX(external)
    cuts = [each for each in tree.closures if isinstance(each, Cut)]
    for cut, chain, wrench in zip(cuts, closures.chains, found, strict=True):
        for place, load in ((cut.a, -wrench), (cut.b, chain.at_b(wrench))):
            if place.link >= 0:
                loads[place.link, :] += _on_link(place, load).T
    return joint_wrenches(tree, q, v, a, loads)


def _on_link(place: Place, wrench: ca.SX) -> ca.SX:
    """Return a wrench at a place as one at the origin of its link, in the link's axes."""
    R, p = ca.SX(place.pose[:3, :3]), ca.SX(place.pose[:3, 3])
    f = R @ wrench[3:]
    return ca.vertcat(R @ wrench[:3] + cross(p, f), f)
