"""Derivatives of the wrenches in cut joints, and in the joints of the tree with closed loops.

The wrench of a cut joint changes with its multipliers, and at constant multipliers with the pose of b relative to a.
On the tree it is an external load: its changes are propagated to the root and added to those from the motion.
"""

import casadi as ca

from torsor.dynamics.derivatives.inverse_dynamics import Three, joint_wrench_derivatives, three
from torsor.dynamics.loops.constrained import ClosureChoice
from torsor.dynamics.loops.constrained_derivatives import Balance
from torsor.dynamics.loops.wrenches import ends, loads, on_link
from torsor.dynamics.recursions.composite import climb
from torsor.dynamics.recursions.kinematics import moves
from torsor.dynamics.recursions.newton_euler import Load, to_body, to_link
from torsor.dynamics.trees.tree import Tree


class _Wrenches:
    """The wrenches in the cut joints, and their derivatives by the independent coordinates and their rates."""

    def __init__(self, balance: Balance, share: ca.SX):
        self.linkage, self.closures = balance.linkage, balance.linkage.closures
        forces = self.linkage.all_rows(balance.passed)
        self.found = self.closures.wrenches(forces)
        changes = [self.linkage.all_rows(each) for each in balance.passed_changes(share)]
        none = ca.SX(*self.linkage.G.shape)
        self.dq = self.linkage.G, none, none  # positions depend on the coordinates alone
        self.changes = [self.closures.wrench_changes(forces, *each) for each in zip(self.dq, changes, strict=True)]

    def on_bodies(self, kind: int) -> list[ca.SX | None]:
        """Return the derivatives (6 x m) of the loads on each link, at its origin in its axes; None without loads."""
        tree = self.linkage.tree
        total: list[ca.SX | None] = [None] * len(tree.bodies)
        parts = zip(ends(tree, self.closures), self.found, self.changes[kind], strict=True)
        for (a, b, chain), wrench, change in parts:
            for place, load in ((a, -change), (b, chain.changes_at_b(wrench, self.dq[kind], change))):
                if place.link >= 0:
                    before, more = total[place.link], on_link(place, load)
                    total[place.link] = more if before is None else before + more
        return total


def loop_wrench_derivatives(
    tree: Tree, q: ca.SX, v_active: ca.SX, a_active: ca.SX, share: ca.SX, choice: ClosureChoice, external: Load = None
) -> Three:
    """Return the derivatives of the cut joints' wrenches by the active coordinates and their rates (6 cuts x N)."""
    balance = Balance.of_motion(tree, q, v_active, a_active, share, choice, external=external)
    wrenches, none = _Wrenches(balance, share), ca.SX(0, len(choice.active))
    return three(ca.vertcat(none, *map(balance.linkage.by_active, kind)) for kind in wrenches.changes)


def constrained_joint_wrench_derivatives(
    tree: Tree, q: ca.SX, v_active: ca.SX, a_active: ca.SX, share: ca.SX, choice: ClosureChoice, external: Load = None
) -> Three:
    """Return the derivatives of the joint reactions by the active coordinates and their rates (6 L x N each)."""
    balance = Balance.of_motion(tree, q, v_active, a_active, share, choice, external=external)
    wrenches, linkage, motion = _Wrenches(balance, share), balance.linkage, balance.motion
    total = loads(tree, linkage.closures, wrenches.found, external)
    dq, dv, da = joint_wrench_derivatives(tree, q, motion.v, motion.a, external=total)
    found = [
        dq @ linkage.G + dv @ motion.v_by_q + da @ motion.a_by_q,
        dv @ linkage.G + da @ motion.a_by_v,
        da @ linkage.G,
    ]
    moved = moves(tree, q)
    for kind, rows in enumerate(found):
        parts = ca.vertsplit(rows, 6) if tree.bodies else []
        for k, load in enumerate(wrenches.on_bodies(kind)):
            if load is not None:
                for j, seen in climb(tree, moved, k, *to_body(tree.bodies[k], load)):
                    parts[j] = parts[j] - to_link(tree.bodies[j], seen[:3, :], seen[3:, :])
        found[kind] = linkage.by_active(ca.vertcat(ca.SX(0, rows.size2()), *parts))
    return three(found)
