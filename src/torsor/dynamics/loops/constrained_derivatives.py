"""Derivatives of the motion and forces of closed mechanisms with respect to the independent coordinates.

A small change dx of the independent coordinates moves all coordinates by dq = G dx. For given independent rows, the
differentials of the closure equations A v = 0 and phi'' = A a + drift = 0 satisfy

    A dv = -(d(A v)/dq) dq        A da = -(d phi''/dq) dq - (d phi''/dv) dv

In every coordinate, the inverse dynamics of the tree balances drives and loops, ID = B tau + A^T lambda, so

    G_a^T d(tau) = G^T (d(ID)/dq dq - d(A^T lambda)/dq dq + d(ID)/dv dv + M da)         lambda constant

because the change of lambda does no work along G. G itself need not be differentiated. The dependent rows of the same
balance determine the changes of lambda. With constant tau and unknown changes of x'', the balance describes forward
dynamics. If the actuation is redundant, tau = share G_a y also changes with G_a: d(G_a) y is dv at the velocity G y.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca

from torsor.dynamics.derivatives.dynamics import Loads, Three, inverse_dynamics_derivatives, joint_wrench_derivatives
from torsor.dynamics.loops import constrained
from torsor.dynamics.loops.constrained import ClosureChoice, Driven, Linkage, Sharing
from torsor.dynamics.loops.factors import Squares
from torsor.dynamics.recursions.composite import climb, mass_matrix
from torsor.dynamics.recursions.kinematics import moves, symmetric
from torsor.dynamics.recursions.newton_euler import Load, inverse_dynamics, to_body, to_link
from torsor.dynamics.trees.tree import Tree


@dataclass(frozen=True, eq=False)
class MotionDerivatives:
    """Derivatives of v and a of all coordinates with respect to the independent ones and their rates (nv x m each)."""

    linkage: Linkage
    v: ca.SX
    a: ca.SX

    @cached_property
    def _rate_derivatives(self) -> list[ca.SX]:
        derivatives = self.linkage.closures.rate_derivatives(self.v, self.a)
        return [derivative[self.linkage.rows, :] for derivative in derivatives]

    @cached_property
    def v_by_q(self) -> ca.SX:
        """Derivative (nv x m) of v with respect to x; the derivative with respect to x' is G."""
        return self.linkage.following(self._rate_derivatives[0] @ self.linkage.G)

    @cached_property
    def a_by_q(self) -> ca.SX:
        """Derivative (nv x m) of a with respect to x."""
        _, by_q, by_v = self._rate_derivatives
        return self.linkage.following(by_q @ self.linkage.G + by_v @ self.v_by_q)

    @cached_property
    def a_by_v(self) -> ca.SX:
        """Derivative (nv x m) of a with respect to x'; the derivative with respect to x'' is G."""
        return self.linkage.following(self._rate_derivatives[2] @ self.linkage.G)


class Balance:
    """Derivatives along G (nv x m) of the inverse dynamics minus the loop forces at constant multipliers."""

    def __init__(self, motion: MotionDerivatives, tau: ca.SX, passed: ca.SX, **loads: Any):
        self.linkage, self.motion, self.tau, self.passed = motion.linkage, motion, tau, passed
        tree, q = self.linkage.tree, self.linkage.q
        dq, self.dv, self.M = inverse_dynamics_derivatives(tree, q, motion.v, motion.a, **loads)
        self.dq = dq - self.linkage.closures.stiffness(self.linkage.all_rows(passed))

    @classmethod
    def of_motion(
        cls, tree: Tree, q: ca.SX, v_active: ca.SX, a_active: ca.SX, share: ca.SX, choice: ClosureChoice, **loads: Any
    ) -> "Balance":
        """Return the balance for a motion of the active coordinates."""
        driven = Driven(Linkage(tree, q, choice), v_active, a_active, share, Loads(**loads).external)
        return cls(MotionDerivatives(driven.linkage, driven.v, driven.a), driven.tau, driven.passed, **loads)

    def changes(self) -> Three:
        """Return the derivatives dq, dv and da in all coordinates."""
        G, motion = self.linkage.G, self.motion
        by_q = self.dq @ G + self.dv @ motion.v_by_q + self.M @ motion.a_by_q
        return by_q, self.dv @ G + self.M @ motion.a_by_v, self.M @ G

    def projected(self) -> Three:
        """Return G^T times ``changes`` (m x m each); multiplying from the left takes fewer operations."""
        G, motion = self.linkage.G, self.motion
        MG_T, dv = (self.M @ G).T, G.T @ self.dv
        by_q = G.T @ (self.dq @ G) + dv @ motion.v_by_q + MG_T @ motion.a_by_q
        return by_q, dv @ G + MG_T @ motion.a_by_v, symmetric(MG_T @ G)

    def drives(self, share: ca.SX, changes: Three) -> Three:
        """Return the derivatives of the drive forces (N x m each) from G^T times the derivatives of all forces."""
        sharing, linkage = Sharing(self.linkage, share), self.linkage
        if not linkage.is_redundant:
            return tuple(map(sharing.forces, changes))
        level = linkage.G @ sharing.levels(linkage.G.T @ self.tau)
        turned = MotionDerivatives(linkage, level, level).v_by_q[linkage.active, :]
        return sharing.turned(changes[0], turned), sharing.forces(changes[1]), sharing.forces(changes[2])

    def passed_changes(self, share: ca.SX) -> Three:
        """Return the derivatives of the multipliers of the chosen equations (rows x m each)."""
        linkage, changes = self.linkage, self.changes()
        if linkage.is_redundant:  # otherwise dependent coordinates are not driven
            drive_changes = map(linkage.driven, self.drives(share, tuple(linkage.G.T @ change for change in changes)))
            changes = tuple(change - drive for change, drive in zip(changes, drive_changes, strict=True))
        return tuple(map(linkage.multipliers, changes))


def constrained_velocity_derivatives(
    tree: Tree, q: ca.SX, v_active: ca.SX, choice: ClosureChoice
) -> tuple[ca.SX, ca.SX]:
    """Return dq and dv of v with respect to the active coordinates and their velocities (nv x N each)."""
    linkage = Linkage(tree, q, choice)
    v = linkage.velocities(v_active)
    return linkage.by_active(MotionDerivatives(linkage, v, v).v_by_q), linkage.by_active(linkage.G)


def constrained_acceleration_derivatives(
    tree: Tree, q: ca.SX, v_active: ca.SX, a_active: ca.SX, choice: ClosureChoice
) -> Three:
    """Return dq, dv and da of a with respect to the active coordinates and their rates (nv x N each)."""
    linkage = Linkage(tree, q, choice)
    motion = MotionDerivatives(linkage, *linkage.motion(v_active, a_active))
    return linkage.by_active(motion.a_by_q), linkage.by_active(motion.a_by_v), linkage.by_active(linkage.G)


def constrained_inverse_dynamics_derivatives(
    tree: Tree, q: ca.SX, v_active: ca.SX, a_active: ca.SX, share: ca.SX, choice: ClosureChoice, **loads: Any
) -> Three:
    """Return dq, dv and da of the drive forces with respect to the active coordinates and their rates (N x N each)."""
    balance = Balance.of_motion(tree, q, v_active, a_active, share, choice, **loads)
    return tuple(map(balance.linkage.by_active, balance.drives(share, balance.projected())))


def constrained_forward_dynamics_derivatives(
    tree: Tree, q: ca.SX, v_active: ca.SX, tau_active: ca.SX, choice: ClosureChoice, **loads: Any
) -> Three:
    """Return dq, dv and dtau of the active accelerations with respect to the active coordinates (N x N each)."""
    linkage = Linkage(tree, q, choice)
    v, M = linkage.velocities(v_active), mass_matrix(tree, q)
    external = Loads(**loads).external
    a = constrained.accelerated(linkage, v, tau_active, M, external)
    motion, tau = MotionDerivatives(linkage, v, a), inverse_dynamics(tree, q, v, a, external)
    passed = linkage.multipliers(tau - linkage.driven(tau_active))
    by_q, by_v, _ = Balance(motion, tau, passed, **loads).projected()
    factors, active = Squares(constrained.projected_mass(linkage, M)), linkage.active
    x_by_q, x_by_v, x_by_tau = (factors.solve(item) for item in (-by_q, -by_v, linkage.G_active.T))
    return (
        linkage.by_active(linkage.G_active @ x_by_q + motion.a_by_q[active, :]),
        linkage.by_active(linkage.G_active @ x_by_v + motion.a_by_v[active, :]),
        linkage.G_active @ x_by_tau,
    )


def loop_force_derivatives(
    tree: Tree, q: ca.SX, v_active: ca.SX, a_active: ca.SX, share: ca.SX, choice: ClosureChoice, **loads: Any
) -> Three:
    """Return the derivatives (c x N each) of the multipliers.

    They are taken with respect to the active positions, velocities and accelerations.
    """
    balance = Balance.of_motion(tree, q, v_active, a_active, share, choice, **loads)
    linkage = balance.linkage
    return tuple(linkage.all_rows(linkage.by_active(passed_change)) for passed_change in balance.passed_changes(share))


# Derivatives of the wrenches in the cut joints and tree joints of a mechanism with closed loops.
#
# The wrench in a cut joint depends on its multipliers and on the pose of b relative to a. It acts on the tree as an
# external load, so its changes are propagated to the root and added to those due to the motion.


class _Wrenches:
    """The wrenches in the cut joints, and their derivatives with respect to the independent coordinates."""

    def __init__(self, balance: Balance, share: ca.SX):
        self.linkage, self.closures = balance.linkage, balance.linkage.closures
        forces = self.linkage.all_rows(balance.passed)
        self.found = self.closures.wrenches(forces)
        changes = [self.linkage.all_rows(passed_change) for passed_change in balance.passed_changes(share)]
        none = ca.SX(*self.linkage.G.shape)
        self.dq = self.linkage.G, none, none  # positions do not depend on rates
        self.changes = [self.closures.wrench_changes(forces, *item) for item in zip(self.dq, changes, strict=True)]

    def on_bodies(self, kind: int) -> list[ca.SX | None]:
        """Return the derivatives (6 x m) of the load on each link, at its origin in link axes; None without a load."""
        tree = self.linkage.tree
        total: list[ca.SX | None] = [None] * len(tree.bodies)
        parts = zip(constrained.ends(tree, self.closures), self.found, self.changes[kind], strict=True)
        for (a, b, chain), wrench, change in parts:
            for place, load in ((a, -change), (b, chain.changes_at_b(wrench, self.dq[kind], change))):
                if place.link >= 0:
                    before, more = total[place.link], constrained.on_link(place, load)
                    total[place.link] = more if before is None else before + more
        return total


def loop_wrench_derivatives(
    tree: Tree, q: ca.SX, v_active: ca.SX, a_active: ca.SX, share: ca.SX, choice: ClosureChoice, external: Load = None
) -> Three:
    """Return dq, dv and da of the cut-joint wrenches with respect to the active coordinates (6 cuts x N each)."""
    balance = Balance.of_motion(tree, q, v_active, a_active, share, choice, external=external)
    wrenches, none = _Wrenches(balance, share), ca.SX(0, len(choice.active))
    return tuple(ca.vertcat(none, *map(balance.linkage.by_active, kind)) for kind in wrenches.changes)


def constrained_joint_wrench_derivatives(
    tree: Tree, q: ca.SX, v_active: ca.SX, a_active: ca.SX, share: ca.SX, choice: ClosureChoice, external: Load = None
) -> Three:
    """Return dq, dv and da of the joint reactions with respect to the active coordinates (6 L x N each)."""
    balance = Balance.of_motion(tree, q, v_active, a_active, share, choice, external=external)
    wrenches, linkage, motion = _Wrenches(balance, share), balance.linkage, balance.motion
    total = constrained.loads(tree, linkage.closures, wrenches.found, external)
    dq, dv, da = joint_wrench_derivatives(tree, q, motion.v, motion.a, external=total)
    G = linkage.G
    result = [dq @ G + dv @ motion.v_by_q + da @ motion.a_by_q, dv @ G + da @ motion.a_by_v, da @ G]
    moved = moves(tree, q)
    for kind, rows in enumerate(result):
        parts = ca.vertsplit(rows, 6) if tree.bodies else []
        for k, load in enumerate(wrenches.on_bodies(kind)):
            if load is not None:
                for j, seen in climb(tree, moved, k, *to_body(tree.bodies[k], load)):
                    parts[j] = parts[j] - to_link(tree.bodies[j], seen[:3, :], seen[3:, :])
        result[kind] = linkage.by_active(ca.vertcat(ca.SX(0, rows.size2()), *parts))
    return tuple(result)
