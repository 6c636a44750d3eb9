"""Derivatives of forces and joint reactions with respect to q, v and a, in one pass from the tips to the root.

A small displacement of joint k moves its composite (all bodies that it carries) as one rigid body relative to the
parent. Let V be the parent's twist, A its rate (-g for the base), and V_k the twist of body k, all in its frame:

    P1 = V x S,   P2 = A x S + V x P1        change of twist and of its rate, with q
    P3 = V x S + V_k x S                     change of the rate of twist, with v

The wrench of the composite (inertia I, velocity products B, wrench F) changes by

    dq: I P2 + 2 B P1 + S x* F       dv: I P3 + 2 B S       da: I S

(Singh, Russell and Wensing 2022; the term S x* F arises because F rotates with the body). These changes are transformed
as wrenches to every joint j above k, and their projections onto S_j are the columns of k. Conversely, the derivatives
of the force of joint k with respect to a joint j above it are

    dq: P2_j . I S + P1_j . 2 B^T S       dv: P3_j . I S + S_j . 2 B^T S       da: S_j . I S

with I S and 2 B^T S transformed in the same way. A rotor with spin momentum h is a joint without a body: h replaces I
S, and w x h replaces both 2 B S and 2 B^T S. If S depends on q, its derivatives are added to P1, P2 and P3.

External wrenches are constant in their links or in the world. Wrenches that are constant in the world rotate relative
to the link, which changes the wrench through joint k by E S. With Y = sum of f x^T + [n] over the loads of its
composite (x from its origin), E w = (tr(Y) w - Y w, w x f). E has the form of B and is transformed with it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca

from torsor.dynamics.loops.factors import Squares
from torsor.dynamics.recursions import composite
from torsor.dynamics.recursions.composite import Composite, Entries, coordinates, times_B, times_B_T
from torsor.dynamics.recursions.configuration import steps
from torsor.dynamics.recursions.hybrid import hybrid_dynamics
from torsor.dynamics.recursions.kinematics import Move, motions, moves, sx, twists, world_poses
from torsor.dynamics.recursions.newton_euler import inverse_dynamics, joint_wrenches, to_link, wrenches
from torsor.dynamics.recursions.passive import passive_jacobians
from torsor.dynamics.trees.tree import Rotor, Tree
from torsor.spatial import ad, cross, skew

# Derivatives by CasADi, for trees with flexible links.
#
# The analytical recursions of this package are for rigid bodies. The inertia of a body with assumed modes depends on q,
# so its traced forces are differentiated by CasADi. Derivatives with respect to q are along ``integrate``: the
# components of q change by E(q) per step (``configuration.steps``).

Rule = Callable[..., ca.SX]  # (tree, q, v, a, external) -> forces (nv x 1) or reactions (L x 6)
Three = tuple[ca.SX, ...]  # derivatives with respect to q, v and a (or tau)


def _traced(tree: Tree, rule: Rule, q: ca.SX, v: ca.SX, a: ca.SX, loads: "Loads") -> Three:
    """Return the derivatives of a rule with respect to q (along ``integrate``), v and a."""
    arguments = {"q": q, "v": v, "a": a, "external": loads.external, "points": loads.points}
    at = {name: ca.SX.sym(name, *value.shape) for name, value in arguments.items() if value is not None}
    start, external = ca.SX.sym("start", tree.nq), at.get("external")
    if external is not None and loads.in_world:
        external = _turned(tree, start, at["q"], external, at.get("points"))
    result = rule(tree, at["q"], at["v"], at["a"], external)
    result = ca.densify(ca.vec(result.T) if result.size2() > 1 else result)  # link by link, if there is a row per link
    by_q = ca.jacobian(result, at["q"]) @ steps(tree, at["q"])
    derivatives = [ca.substitute(item, start, at["q"]) for item in (by_q, *(ca.jacobian(result, at[x]) for x in "va"))]
    results: Any = ca.Function("derivatives", list(at.values()), derivatives)(*(arguments[name] for name in at))
    return tuple(results)


def _turned(tree: Tree, start: ca.SX, q: ca.SX, external: ca.SX, points: ca.SX | None) -> ca.SX:
    """Return, in link axes at q, the wrenches (L x 6) given in link axes at ``start`` and constant in the world."""
    before, after = (world_poses(tree, moves(tree, item)) for item in (start, q))
    rows = [ca.SX(0, 6)]
    for i, body in enumerate(tree.bodies):
        link_axes = sx(body.link[:3, :3])
        back = (after[i][0] @ link_axes).T @ (before[i][0] @ link_axes)
        n, f = external[i, :3].T, external[i, 3:].T
        x = ca.SX.zeros(3, 1) if points is None else points[i, :].T
        f_now = back @ f
        rows.append(ca.vertcat(back @ (n - cross(x, f)) + cross(x, f_now), f_now).T)
    return ca.vertcat(*rows)


class Loads(NamedTuple):
    """External wrenches (L x 6); if ``in_world`` is True, they are constant in world axes, at ``points`` (L x 3)."""

    external: ca.SX | None = None
    in_world: bool = False
    points: ca.SX | None = None


@dataclass(frozen=True, eq=False)
class Carried:
    """The composite of a joint as one body: inertia, velocity products (2 D, 2 P) and loads."""

    composite: Composite
    D: ca.SX
    P: ca.SX
    load: "tuple[ca.SX, ca.SX] | None" = None  # Y and f of loads that are constant in world axes

    def times_I(self, X: ca.SX) -> ca.SX:
        """Return I X."""
        return ca.vertcat(*self.composite.momentum(X))

    def times_E(self, X: ca.SX) -> ca.SX:
        """Return E X, the effect of a rotation on loads that are constant in the world."""
        return times_B(*self.load, X) if self.load else ca.SX.zeros(*X.shape)

    def times_E_T(self, X: ca.SX) -> ca.SX:
        """Return E^T X, which are pure moments."""
        return times_B_T(*self.load, X) if self.load else ca.SX.zeros(*X.shape)


def carry(S: ca.SX, n: ca.SX, f: ca.SX) -> ca.SX:
    """Return S x* (n, f): the change of a wrench that moves with each column of S, which is a twist."""
    return ca.SX(ca.vertcat(-skew(n) @ S[:3, :] - skew(f) @ S[3:, :], -skew(f) @ S[:3, :]))


class Change(NamedTuple):
    """Derivatives of the twist of a body (dq: P1) and of its rate (dq: P2, dv: P3, da: S) for its joint."""

    S: ca.SX
    P1: ca.SX
    P2: ca.SX
    P3: ca.SX

    def wrenches(self, carried: Carried) -> Three:
        """Return dq, dv and da of the composite's wrench, without the term S x* F for its rotation."""
        by_q = carried.times_I(self.P2) + times_B(carried.D, carried.P, self.P1) + carried.times_E(self.S)
        return by_q, carried.times_I(self.P3) + times_B(carried.D, carried.P, self.S), carried.times_I(self.S)

    def down(self, move: Move) -> "Change":
        """Return the derivatives in the frame of a child."""
        return Change(*_parts(move.down_twist(ca.horzcat(*self)), 4))

    def beside(self, other: "Change") -> "Change":
        """Return the columns of both objects side by side."""
        return Change(*map(ca.horzcat, self, other))


def _parts(X: ca.SX, count: int) -> list[ca.SX]:
    """Return X as ``count`` blocks of equal width."""
    width = X.size2() // count
    return [X[:, k * width : (k + 1) * width] for k in range(count)]


@dataclass(frozen=True, eq=False)
class _Propagated:
    """Wrenches that one product propagates towards the root: a column (6 x 1) of each kind per coordinate."""

    coordinates: list[tuple[int, float]]
    kinds: tuple[ca.SX, ...]

    def beside(self, other: "_Propagated") -> "_Propagated":
        """Return the columns of both objects side by side."""
        both = zip(self.kinds, other.kinds, strict=True)
        return _Propagated(self.coordinates + other.coordinates, tuple(ca.horzcat(mine, its) for mine, its in both))

    def up(self, move: Move) -> "_Propagated":
        """Return the wrenches in the parent's frame."""
        X = ca.horzcat(*self.kinds)
        moved = ca.vertcat(*move.up_wrench(X[:3, :], X[3:, :]))
        return _Propagated(self.coordinates, tuple(_parts(moved, len(self.kinds))))


class Setting:
    """Quantities at one state from which the derivatives are computed."""

    def __init__(self, tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX, loads: Loads):
        external = loads.external
        self.tree, self.moved = tree, moves(tree, q)
        self.twist = twists(tree, self.moved, v)
        self.motion = motions(tree, self.moved, v, a, sx(tree.gravity))
        self.wrench = wrenches(tree, self.moved, self.motion, v, a, external)
        momenta = zip(*composite.momentum_composites(tree, self.moved, self.twist, v, scale=2), strict=True)
        bodies = zip(composite.composites(tree, self.moved), momenta, self._loads(loads), strict=True)
        self.carried = [Carried(body, D, P, load) for body, (D, P), load in bodies]
        self.change = [self._change(k, v, a) for k in range(len(tree.bodies))]

    def _loads(self, loads: Loads) -> list[tuple[ca.SX, ca.SX] | None]:
        """Return Y and f of the loads on the composite of each joint, if they are constant in the world."""
        if loads.external is None or not loads.in_world:
            return [None] * len(self.tree.bodies)
        Y, f = [], []
        for i, body in enumerate(self.tree.bodies):
            R, moment, force = sx(body.link[:3, :3]), loads.external[i, :3].T, loads.external[i, 3:].T
            point = ca.SX.zeros(3, 1) if loads.points is None else loads.points[i, :].T
            f.append(R @ force)
            x = sx(body.link[:3, 3]) + R @ point  # point of application; the remaining moment is a couple
            Y.append(skew(R @ (moment - cross(point, force))) + f[-1] @ x.T)
        return list(zip(*composite.carried_by_each(self.tree, self.moved, Y, f), strict=True))

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
        """Return dq, dv and da, with respect to joint k, of its wrench as seen by the joints above it."""
        by_q, by_v, by_a = self.change[k].wrenches(self.carried[k])
        return by_q + carry(self.moved[k].S, *self.wrench[k]), by_v, by_a

    def rotor_columns(self, k: int, rotor: Rotor) -> Three:
        """Return the columns (see ``columns``) of a rotor on body k; those for its angle are zero."""
        spins = ca.SX.zeros(3, 1), cross(self.motion[k].w, sx(rotor.h)), sx(rotor.h)
        return tuple(ca.vertcat(spin, ca.SX.zeros(3, 1)) for spin in spins)

    def below(
        self, joint: Callable[[int], tuple[ca.SX, ...]], rotor: Callable[[int, Rotor], tuple[ca.SX, ...]]
    ) -> list[_Propagated]:
        """Return, for each body, the columns of all joints below it and of its rotors, from two functions."""
        bodies, count = self.tree.bodies, len(joint(0)) if self.tree.bodies else 0
        arrived = [_Propagated([], (ca.SX(6, 0),) * count) for _ in bodies]
        for k in reversed(range(len(bodies))):
            for item in bodies[k].rotors:
                arrived[k] = arrived[k].beside(_Propagated(coordinates(item), rotor(k, item)))
            parent = bodies[k].parent
            if parent >= 0:
                propagated = _Propagated(coordinates(bodies[k]), joint(k))
                arrived[parent] = arrived[parent].beside(arrived[k].beside(propagated).up(self.moved[k]))
        return arrived


def inverse_dynamics_derivatives(tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX, **loads: Any) -> Three:
    """Return the derivatives of tau with respect to q (along ``integrate``), v and a, each nv x nv, in O(n x depth)."""
    if tree.bends:
        return _traced(tree, inverse_dynamics, q, v, a, Loads(**loads))
    at = Setting(tree, q, v, a, Loads(**loads))

    def of_joint(k: int) -> tuple[ca.SX, ...]:
        S, carried = at.moved[k].S, at.carried[k]
        return *at.columns(k), times_B_T(carried.D, carried.P, S), carried.times_E_T(S)

    def of_rotor(k: int, rotor: Rotor) -> tuple[ca.SX, ...]:
        none, by_v, by_a = at.rotor_columns(k, rotor)
        return none, by_v, by_a, by_v, none  # independent of the rotor angle and the loads

    result = Entries(tree), Entries(tree), Entries(tree)
    for k, (body, below) in enumerate(zip(tree.bodies, at.below(of_joint, of_rotor), strict=True)):
        S, item, carried, (n, f) = at.moved[k].S, at.change[k], at.carried[k], at.wrench[k]
        by_q, by_v, u, b, e = below.kinds
        # Derivatives of the joint's force with respect to the coordinates below it, and of their forces with respect to
        # the joint's coordinates.
        force = S.T @ by_q, S.T @ by_v, S.T @ u
        by_upper = u.T @ item.P2 + b.T @ item.P1 + e.T @ S, u.T @ item.P3 + b.T @ S, u.T @ S
        by_q, by_v, by_a = (S.T @ wrench for wrench in item.wrenches(carried))
        if at.moved[k].varies:
            by_q = by_q + at.moved[k].turning(ca.vertcat(n, f))
        diagonal = by_q, by_v, ca.triu2symm(ca.triu(by_a))
        here, others = coordinates(body), below.coordinates
        for entries, above, beneath, block in zip(result, force, by_upper, diagonal, strict=True):
            entries.add_block(here, here, block)
            entries.add_block(here, others, above)
            entries.add_block(others, here, beneath)
    dq, dv, da = result
    for (i, j), (K, D) in passive_jacobians(tree, q, v).items():
        for row, column in {(i, j), (j, i)}:
            dq.add_at(row, column, K)
            dv.add_at(row, column, D)
    return dq.matrix(), dv.matrix(), da.matrix() + ca.diag(sx(tree.armature))


def joint_wrench_derivatives(tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX, **loads: Any) -> Three:
    """Return the derivatives of the joint reactions (in link axes) with respect to q, v and a, each 6 L x nv."""
    if tree.bends:
        return _traced(tree, joint_wrenches, q, v, a, Loads(**loads))
    at = Setting(tree, q, v, a, Loads(**loads))
    none = ca.SX(6, 0)
    rows: tuple[list[ca.SX], ...] = [ca.SX(0, tree.nv)], [ca.SX(0, tree.nv)], [ca.SX(0, tree.nv)]
    seen: list[tuple[list[tuple[int, float]], Change]] = []  # changes due to all joints between base and each body
    for k, (body, below) in enumerate(zip(tree.bodies, at.below(at.columns, at.rotor_columns), strict=True)):
        before, change = seen[body.parent] if body.parent >= 0 else ([], Change(none, none, none, none))
        seen.append((before + coordinates(body), change.down(at.moved[k]).beside(at.change[k])))
        before, change = seen[k]
        gather = composite.onto_coordinates(before + below.coordinates, tree.nv)
        for kind, above, beneath in zip(rows, change.wrenches(at.carried[k]), below.kinds, strict=True):
            wrench = ca.horzcat(above, beneath) @ gather
            kind.append(to_link(body, wrench[:3, :], wrench[3:, :]))
    return tuple(ca.vertcat(*kind) for kind in rows)


# Derivatives of forward and hybrid dynamics.
#
# Hybrid dynamics solves tau = ID(q, v, a) for the accelerations x of the coordinates driven by force (f) and the forces
# of the other coordinates (o). With d(ID) at constant x, the differentials satisfy
#
#     M_ff dx = d(tau_f) - d(ID_f)        d(tau_o) = d(ID_o) + M_of dx
#
# If all coordinates are driven by force, this is forward dynamics: -M^-1 d(ID)/dq, -M^-1 d(ID)/dv and M^-1.


def forward_dynamics_derivatives(tree: Tree, q: ca.SX, v: ca.SX, tau: ca.SX, **loads: Any) -> Three:
    """Return the derivatives of a = M^-1 (tau - ...) with respect to q, v and tau, each nv x nv."""
    return hybrid_dynamics_derivatives(tree, q, v, ca.SX.zeros(tree.nv, 1), tau, frozenset(range(tree.nv)), **loads)


def hybrid_dynamics_derivatives(
    tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX, tau: ca.SX, forced: frozenset[int], **loads: Any
) -> Three:
    """Return the derivatives of each unknown a or tau with respect to q, v and the given a or tau, each nv x nv."""
    a, _ = hybrid_dynamics(tree, q, v, a, tau, forced, Loads(**loads).external)
    # Common subexpressions are eliminated before the long solution below, which adds none.
    dq, dv, M = ca.cse(list(inverse_dynamics_derivatives(tree, q, v, a, **loads)))
    if not forced:
        return dq, dv, M
    order, others = sorted(forced, reverse=True), [k for k in range(tree.nv) if k not in forced]
    factors = Squares(M[order, order])
    n, changes = tree.nv, ca.horzcat(dq, dv, M[:, others])
    dx = -factors.solve(ca.densify(changes[order, :]))
    inverse = factors.inverse()
    passed = M[others, order]
    complete, by_force = ca.SX(*changes.shape), ca.SX(n, len(order))
    complete[order, :], by_force[order, :] = dx, inverse
    complete[others, :], by_force[others, :] = changes[others, :] + passed @ dx, passed @ inverse
    by_given = ca.SX(n, n)
    by_given[:, others], by_given[:, order] = complete[:, 2 * n :], by_force
    return complete[:, :n], complete[:, n : 2 * n], by_given
