"""Wrenches with closed loops: in the cut joints, and in the joints of the tree.

The multipliers of the equations of a cut joint are generalised forces. Together they are a wrench that frame a exerts
on frame b, with the opposite wrench on a; both act on the tree as external loads.
"""

from collections.abc import Iterator

import casadi as ca

from torsor.dynamics.loops.closure import Closures
from torsor.dynamics.loops.constrained import ClosureChoice, Driven, Linkage
from torsor.dynamics.loops.relative import Chain
from torsor.dynamics.recursions.newton_euler import Load, joint_wrenches
from torsor.dynamics.trees.tree import Cut, Tree
from torsor.mechanism import Place
from torsor.spatial import skew


def loop_wrenches(
    tree: Tree, q: ca.SX, v_active: ca.SX, a_active: ca.SX, share: ca.SX, choice: ClosureChoice, external: Load = None
) -> ca.SX:
    """Return the wrench of a on b in each cut joint, at frame a in its axes (cuts x 6)."""
    driven = Driven(Linkage(tree, q, choice), v_active, a_active, share, external)
    return ca.vertcat(ca.SX(0, 6), *(wrench.T for wrench in driven.linkage.closures.wrenches(driven.multipliers)))


def constrained_joint_wrenches(
    tree: Tree, q: ca.SX, v_active: ca.SX, a_active: ca.SX, share: ca.SX, choice: ClosureChoice, external: Load = None
) -> ca.SX:
    """Return the wrench of each parent on its link with closed loops, at the link's origin in its axes (L x 6)."""
    driven = Driven(Linkage(tree, q, choice), v_active, a_active, share, external)
    closures = driven.linkage.closures
    total = loads(tree, closures, closures.wrenches(driven.multipliers), external)
    return joint_wrenches(tree, q, driven.v, driven.a, total)


def loop_loads(tree: Tree, q: ca.SX, multipliers: ca.SX) -> ca.SX:
    """Return the wrenches (L x 6) that cut joints exert on the links, from the multipliers (c x 1)."""
    closures = Closures(tree, q)
    return loads(tree, closures, closures.wrenches(multipliers), None)


def ends(tree: Tree, closures: Closures) -> Iterator[tuple[Place, Place, Chain]]:
    """Yield the two places of each cut joint, and the chain between them."""
    cuts = (each for each in tree.closures if isinstance(each, Cut))
    for cut, chain in zip(cuts, closures.chains, strict=True):
        yield cut.a, cut.b, chain


def loads(tree: Tree, closures: Closures, found: list[ca.SX], external: Load) -> ca.SX:
    """Return the wrenches (L x 6) of the environment and of cut joints on the links, at their origins in their axes."""
    total = ca.SX.zeros(len(tree.bodies), 6) if external is None else ca.SX(external)
    for (a, b, chain), wrench in zip(ends(tree, closures), found, strict=True):
        for place, load in ((a, -wrench), (b, chain.at_b(wrench))):
            if place.link >= 0:
                total[place.link, :] += on_link(place, load).T
    return total


def on_link(place: Place, wrenches: ca.SX) -> ca.SX:
    """Return wrenches (6 x k) at a place as those at the origin of its link, in the link's axes."""
    R, p = ca.SX(place.pose[:3, :3]), ca.SX(place.pose[:3, 3])
    f = R @ wrenches[3:, :]
    return ca.vertcat(R @ wrenches[:3, :] + skew(p) @ f, f)
