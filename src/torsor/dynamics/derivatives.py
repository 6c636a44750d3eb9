"""Derivatives of forces and joint reactions by q, v and a: one pass, with columns that climb.

Moving joint k a little moves all that it carries, as one body, through the motion of what is before it. With the twist
V and its rate A (the base's being -g) of the parent, seen from body k, and V_k its own twist,

    P1 = V x S,   P2 = A x S + V x P1        change of twist and of its rate, by q
    P3 = V x S + V_k x S                     change of the rate of twist, by v

and of the composite that joint k carries (inertia I, velocity products B, wrench F) the wrench changes by

    dq: I P2 + 2 B P1 + S x* F       dv: I P3 + 2 B S       da: I S

(Singh, Russell and Wensing 2022; S x* F because F turns with the body). These climb to every joint above k as wrenches,
and their shares S_j there are the columns of k. The other way round, what joint k feels of joint j above it is

    dq: P2_j . I S + P1_j . 2 B^T S       dv: P3_j . I S + S_j . 2 B^T S       da: S_j . I S

with I S and 2 B^T S climbing likewise. A rotor with spin momentum h is such a joint that carries nothing: h stands for
I S, and w x h for both 2 B S and 2 B^T S. Where S itself changes with q, its derivatives join P1, P2 and P3.

External wrenches are fixed in their links, or in the world. In the world they turn back as the link turns, which
changes the wrench through joint k by E S, with Y = sum of f x^T + [n] over all that it carries (x from its origin) and
E w = (tr(Y) w - Y w, w x f): the same form as B, and it climbs with it.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca

from torsor.dynamics.composite import (
    Composite,
    Entries,
    carried_by_each,
    climb,
    composites,
    momentum_composites,
    times_B,
    times_B_T,
)
from torsor.dynamics.hybrid import hybrid_dynamics
from torsor.dynamics.kinematics import Move, motions, moves, sx, twists
from torsor.dynamics.newton_euler import to_link, wrenches
from torsor.dynamics.passive import slopes
from torsor.dynamics.tree import Body, Rotor, Tree
from torsor.spatial import ad, cross, skew

__all__ = [
    "Loads",
    "Setting",
    "carry",
    "forward_dynamics_derivatives",
    "hybrid_dynamics_derivatives",
    "inverse_dynamics_derivatives",
    "joint_wrench_derivatives",
]

Three = tuple[ca.SX, ca.SX, ca.SX]


class Loads(NamedTuple):
    """External wrenches (L x 6), and whether they are fixed in the world; then forces act at ``points`` (L x 3)."""

    external: ca.SX | None = None
    in_world: bool = False
    points: ca.SX | None = None


@dataclass(frozen=True, eq=False)
class Carried:
    """What a joint carries, as one body: inertia I and velocity products 2 B (of D and P twice) of twists (6 x m)."""

    composite: Composite
    D: ca.SX
    P: ca.SX
    load: "tuple[ca.SX, ca.SX] | None" = None  # Y and f of what is fixed in the world

    def times_I(self, X: ca.SX) -> ca.SX:
        """Return I X."""
        return ca.vertcat(*self.composite.momentum(X))

    def times_B(self, X: ca.SX) -> ca.SX:
        """Return 2 B X."""
        return times_B(self.D, self.P, X)

    def times_B_T(self, X: ca.SX) -> ca.SX:
        """Return 2 B^T X, moments without forces."""
        return times_B_T(self.D, self.P, X)

    def times_E(self, X: ca.SX) -> ca.SX:
        """Return E X, what turning does to loads that are fixed in the world."""
        return times_B(*self.load, X) if self.load else ca.SX.zeros(*X.shape)

    def times_E_T(self, X: ca.SX) -> ca.SX:
        """Return E^T X, moments without forces."""
        return times_B_T(*self.load, X) if self.load else ca.SX.zeros(*X.shape)


def carry(S: ca.SX, n: ca.SX, f: ca.SX) -> ca.SX:
    """Return S x* (n, f): how a wrench changes that is carried along with each twist that is a column of S."""
    turned: ca.SX = ca.vertcat(-skew(n) @ S[:3, :] - skew(f) @ S[3:, :], -skew(f) @ S[:3, :])
    return turned


@dataclass(frozen=True, eq=False)
class Change:
    """How the twist of a body (by q: P1) and its rate (by q: P2, by v: P3) change with its joint; by a: S."""

    S: ca.SX
    P1: ca.SX
    P2: ca.SX
    P3: ca.SX

    def wrenches(self, carried: Carried) -> Three:
        """Return how the wrench changes by q, v and a of what is carried; the body's own turning is not in it."""
        return (
            carried.times_I(self.P2) + carried.times_B(self.P1) + carried.times_E(self.S),
            carried.times_I(self.P3) + carried.times_B(self.S),
            carried.times_I(self.S),
        )

    def down(self, move: Move) -> "Change":
        """Return the same seen from a child."""
        return Change(*map(move.down_twist, (self.S, self.P1, self.P2, self.P3)))


class Setting:
    """All that the derivatives are made of, at a state."""

    def __init__(self, tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX, loads: Loads):
        external = loads.external
        self.tree, self.moved = tree, moves(tree, q)
        self.twist = twists(tree, self.moved, v)
        self.motion = motions(tree, self.moved, v, a, sx(tree.gravity))
        self.wrench = wrenches(tree, self.moved, self.motion, v, a, external)
        momenta = zip(*momentum_composites(tree, self.moved, self.twist, v, scale=2), strict=True)
        bodies = zip(composites(tree, self.moved), momenta, self._loads(loads), strict=True)
        self.carried = [Carried(composite, D, P, load) for composite, (D, P), load in bodies]
        self.change = [self._change(k, v, a) for k in range(len(tree.bodies))]

    def _loads(self, loads: Loads) -> list[tuple[ca.SX, ca.SX] | None]:
        """Return Y and f of the loads that each joint carries, where they are fixed in the world."""
        if loads.external is None or not loads.in_world:
            return [None] * len(self.tree.bodies)
        Y, f = [], []
        for i, body in enumerate(self.tree.bodies):
            R, moment, force = sx(body.link[:3, :3]), loads.external[i, :3].T, loads.external[i, 3:].T
            point = ca.SX.zeros(3, 1) if loads.points is None else loads.points[i, :].T
            f.append(R @ force)
            x = sx(body.link[:3, 3]) + R @ point  # where the force acts; the couple is what remains of the moment
            Y.append(skew(R @ (moment - cross(point, force))) + f[-1] @ x.T)
        return list(zip(*carried_by_each(self.tree, self.moved, Y, f), strict=True))

    def _change(self, k: int, v: ca.SX, a: ca.SX) -> Change:
        body, move = self.tree.bodies[k], self.moved[k]
        V, A = ca.SX.zeros(6, 1), ca.vertcat(ca.SX.zeros(3, 1), -sx(self.tree.gravity))
        if body.parent >= 0:
            V, m = self.twist[body.parent], self.motion[body.parent]
            A = ca.vertcat(m.wd, m.a - cross(V[:3], V[3:]))
        V, A = move.down_twist(V), move.down_twist(A)
        P1 = ad(V) @ move.S
        P2, P3 = ad(A) @ move.S + ad(V) @ P1, P1 + ad(self.twist[k]) @ move.S
        if move.varies:
            by_q, rate_by_q, rate_by_v = move.variations(body.rate(v), body.rate(a))
            P1, P2, P3 = P1 + by_q, P2 + rate_by_q + ad(V + self.twist[k]) @ by_q, P3 + rate_by_v
        return Change(move.S, P1, P2, P3)

    def columns(self, k: int) -> Three:
        """Return how the wrench through joint k changes with it, as those before it see it."""
        by_q, by_v, by_a = self.change[k].wrenches(self.carried[k])
        return by_q + carry(self.moved[k].S, *self.wrench[k]), by_v, by_a

    def rotor_columns(self, k: int, rotor: Rotor) -> Three:
        """Return the same for a rotor on body k: its angle does not matter."""
        spins = ca.SX.zeros(3, 1), cross(self.motion[k].w, sx(rotor.h)), sx(rotor.h)
        none, by_v, by_a = (ca.vertcat(spin, ca.SX.zeros(3, 1)) for spin in spins)
        return none, by_v, by_a

    def rotors(self) -> list[tuple[int, Rotor]]:
        """Return the rotors with the bodies that carry them."""
        return [(k, rotor) for k, body in enumerate(self.tree.bodies) for rotor in body.rotors]


def inverse_dynamics_derivatives(tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX, **loads: Any) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Return the derivatives of tau by q (along ``integrate``), v and a, each nv x nv, in O(n x depth)."""
    at, bodies = Setting(tree, q, v, a, Loads(**loads)), tree.bodies
    found = Entries(tree), Entries(tree), Entries(tree)

    def before(k: int, own: Body | Rotor, columns: Three) -> None:
        """Add what the joints before body k feel of a joint or rotor there."""
        for entries, column in zip(found, columns, strict=True):
            for j, wrench in climb(tree, at.moved, k, column[:3, :], column[3:, :]):
                if bodies[j] is not own:
                    entries.add(bodies[j], own, at.moved[j].S.T @ wrench)

    def felt(k: int, own: Body | Rotor, IS: ca.SX, BS: ca.SX, ES: ca.SX) -> None:
        """Add what a joint or rotor of body k feels of the joints before it."""
        climbs = (climb(tree, at.moved, k, X[:3, :], X[3:, :]) for X in (IS, BS, ES))
        for (j, u), (_, b), (_, e) in zip(*climbs, strict=True):
            if bodies[j] is not own:
                each = at.change[j]
                by_q = u.T @ each.P2 + b.T @ each.P1 + e.T @ each.S
                shares = by_q, u.T @ each.P3 + b.T @ each.S, u.T @ each.S
                for entries, share in zip(found, shares, strict=True):
                    entries.add(own, bodies[j], share)

    for k, body in enumerate(bodies):
        S, carried, (n, f) = at.moved[k].S, at.carried[k], at.wrench[k]
        before(k, body, at.columns(k))
        felt(k, body, carried.times_I(S), carried.times_B_T(S), carried.times_E_T(S))
        by_q, by_v, by_a = (S.T @ wrench for wrench in at.change[k].wrenches(carried))
        if at.moved[k].varies:
            by_q = by_q + at.moved[k].turning(ca.vertcat(n, f))
        for entries, block in zip(found, (by_q, by_v, ca.triu2symm(ca.triu(by_a))), strict=True):
            entries.add(body, body, block)
    for k, rotor in at.rotors():
        columns = at.rotor_columns(k, rotor)
        before(k, rotor, columns)
        felt(k, rotor, columns[2], columns[1], columns[0])  # its angle, and loads, do nothing to it
    dq, dv, da = found
    for (i, j), (K, D) in slopes(tree, q, v).items():
        for row, column in {(i, j), (j, i)}:
            dq.add_at(row, column, K)
            dv.add_at(row, column, D)
    return dq.matrix(), dv.matrix(), da.matrix() + ca.diag(sx(tree.armature))


def joint_wrench_derivatives(tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX, **loads: Any) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Return the derivatives of the joint reactions (in the links' axes) by q, v and a, each 6 L x nv."""
    at, bodies = Setting(tree, q, v, a, Loads(**loads)), tree.bodies
    columns: list[list[dict[int, ca.SX]]] = [[{} for _ in bodies] for _ in range(3)]  # by q, v, a; of each body

    def add(kind: int, i: int, own: Body | Rotor, wrench: ca.SX) -> None:
        first, ratio = (own.v.start, own.joint.ratio) if isinstance(own, Body) else (own.v, 1.0)
        for c in range(wrench.size2()):
            before = columns[kind][i].get(first + c, 0)
            columns[kind][i][first + c] = before + ratio * wrench[:, c]

    seen: list[dict[int, Change]] = []  # the changes of all joints before each body, and of its own, as it sees them
    for i, body in enumerate(bodies):
        above = seen[body.parent] if body.parent >= 0 else {}
        seen.append({j: change.down(at.moved[i]) for j, change in above.items()} | {i: at.change[i]})
        for j, change in seen[i].items():
            for kind, wrench in enumerate(change.wrenches(at.carried[i])):
                add(kind, i, bodies[j], wrench)

    def pass_on(k: int, own: Body | Rotor, climbing: Three) -> None:
        for kind, column in enumerate(climbing):
            for i, wrench in climb(tree, at.moved, k, column[:3, :], column[3:, :]):
                if bodies[i] is not own:
                    add(kind, i, own, wrench)

    for k, body in enumerate(bodies):
        pass_on(k, body, at.columns(k))
    for k, rotor in at.rotors():
        pass_on(k, rotor, at.rotor_columns(k, rotor))

    def matrix(kind: int) -> ca.SX:
        rows = [ca.SX(0, tree.nv)]
        for body, found in zip(bodies, columns[kind], strict=True):
            wrench = ca.horzcat(ca.SX(6, 0), *(found.get(k, ca.SX(6, 1)) for k in range(tree.nv)))
            rows.append(to_link(body, wrench[:3, :], wrench[3:, :]))
        return ca.vertcat(*rows)

    return matrix(0), matrix(1), matrix(2)


def forward_dynamics_derivatives(tree: Tree, q: ca.SX, v: ca.SX, tau: ca.SX, **loads: Any) -> Three:
    """Return the derivatives of a = M^-1 (tau - ...) by q, v and tau, each nv x nv: -M^-1 dtau/dq, ..., M^-1."""
    forced = frozenset(range(tree.nv))
    return hybrid_dynamics_derivatives(tree, q, v, ca.SX.zeros(tree.nv, 1), tau, forced, **loads)


def hybrid_dynamics_derivatives(
    tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX, tau: ca.SX, forced: frozenset[int], **loads: Any
) -> Three:
    """Return the derivatives by q, by v and by what is given, each nv x nv; a row is what is wanted of a coordinate.

    That is the acceleration of the coordinates in ``forced``, x, and the force of the others: with tau = ID(q, v, a)
    their changes obey M_ff dx = d(tau_f) - d(ID_f) and d(tau_o) = d(ID_o) + M_of dx, the d(ID) at x held.
    """
    a, _ = hybrid_dynamics(tree, q, v, a, tau, forced, Loads(**loads).external)
    *by, M = inverse_dynamics_derivatives(tree, q, v, a, **loads)
    # From the tips to the root, no entry fills in that was zero (Featherstone 2005).
    order = sorted(forced, reverse=True)
    others = [k for k in range(tree.nv) if k not in forced]
    D, L, same = ca.ldl(M[order, order], False)
    given = ca.SX(M)
    given[:, order] = -ca.SX.eye(tree.nv)[:, order]

    def wanted(change: ca.SX) -> ca.SX:
        found = ca.SX(tree.nv, tree.nv)
        dx = -ca.ldl_solve(ca.densify(change[order, :]), D, L, same)
        found[order, :] = dx
        found[others, :] = change[others, :] + M[others, order] @ dx
        return found

    dq, dv, dgiven = (wanted(change) for change in (*by, given))
    return dq, dv, dgiven
