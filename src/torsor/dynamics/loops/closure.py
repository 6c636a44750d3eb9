"""Loop-closure equations: residual, Jacobian, and the velocity terms of the second derivative (drift).

For each loop, the pose of frame b relative to frame a follows from the joints between them, up to their common
ancestor. The kind of loop determines which entries of the pose are zero (``mechanism.loops``). If phi(q) = 0 for closed
loops, then

    phi' = A(q) v        phi'' = A(q) a + drift(q, v)

Rolling wheels (``mechanism.loops.Wheel``) also have pure velocity equations, A(q) v = 0, which are not the derivatives
of any phi(q). Their rows of A and drift are defined as above, and their entries in phi are 0.

See Khalil 2010, section 2.2, eqs. 3-5; here each kind of cut joint has the smallest possible number of equations.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.dynamics.recursions.composite import coordinates, onto_coordinates
from torsor.dynamics.recursions.kinematics import Move, moves, sx
from torsor.dynamics.recursions.places import place_in_body
from torsor.dynamics.trees.tree import Body, Cut, Relation, Tree
from torsor.mechanism import Loop, Wheel
from torsor.spatial import ad, cross, skew

# The relative motion of the two frames of a cut joint: the joints between them as one chain, from frame a to frame b.
#
# All vectors are twists in the axes of frame a, at its point that coincides with the origin of b. Joint k of the chain
# has the columns J_k, and moves the part of the chain after it:
#
#     V = sum of u_k = J_k v_k        A = V' = sum of J_k a_k + C_k x u_k
#
# where C_k is the twist that moves the columns of joint k. Joints between b and the common ancestor of both frames move
# their own columns (C_k includes u_k). Joints between a and the common ancestor, which the chain passes from child to
# parent, do not, and have the opposite sign. With Z_j the part of V after joint j, which the joint moves, and Y_j = V -
# Z_j the rest,
#
#     dJ_k = J_j x J_k  (for columns that it moves)        dV/dq_j = J_j x Z_j
#     dA/dq_j = J_j x (part of A that it moves) - (J_j x Y_j) x Z_j        dA/dv_j = C_j x J_j + J_j x Z_j
#
# The equations of a cut joint are functions r(R, p) of the pose of b relative to a, which changes along a twist by dR =
# [w] R, dp = v + w x (p - p_now). Their derivatives are small and come from CasADi. The slip of a wheel is not the
# derivative of such a function, but it also has a matrix W(R, p) with r' = W V.

Pose = tuple[ca.SX, ca.SX]
Rates = tuple[ca.SX, ...]  # Jacobians (rows x nv) of the first rate r' in q, and of the second rate r'' in q and in v


@dataclass(frozen=True, eq=False)
class _Link:
    """A joint of the chain with columns J (6 x n); ``toward_b`` is True between the common ancestor and b."""

    body: Body
    move: Move
    pose: Pose  # pose of the moved body, in the axes of a, relative to the origin of b
    toward_b: bool

    def seen(self, S: ca.SX) -> ca.SX:
        """Return twists S (6 rows) of the joint's motion, given in the moved body's frame, in the axes of a."""
        R, p = self.pose
        w = R @ S[:3, :]
        columns: ca.SX = ca.vertcat(w, R @ S[3:, :] + skew(p) @ w)
        return columns if self.toward_b else -columns

    @property
    def turns_itself(self) -> bool:
        """Whether the joint moves its own columns; a single column is not changed by its own motion."""
        return self.toward_b and self.move.S.size2() > 1

    @cached_property
    def J(self) -> ca.SX:
        """Columns (6 x n) of the joint."""
        return self.seen(self.move.S)


class Chain:
    """The chain from frame a to frame b of a cut joint, at the positions of the tree."""

    def __init__(self, tree: Tree, moved: list[Move], cut: Cut, exact: bool = False):
        self.nv, self.count, loop = tree.nv, cut.loop.count, cut.loop
        if isinstance(loop, Wheel):
            self._rules = _rules("slips", loop.kind, loop.radius, loop.roller)
        else:
            self._rules = _rules("error" if exact else "rows", loop.kind, float(loop.kind == "rod"))  # for any length
        up, down = _between(tree, cut)
        R, p = place_in_body(tree, cut.a)
        R, p = R.T, -R.T @ p  # pose of the body that carries a, relative to a
        poses = list[Pose]()
        for k in up:
            poses.append((R, p))
            R = moved[k].up(R.T).T
            p = p - R @ moved[k].p
        for k in down:
            p = p + R @ moved[k].p
            R = moved[k].down(R.T).T
            poses.append((R, p))
        R_b, p_b = place_in_body(tree, cut.b)
        self.pose = R @ R_b, p + R @ p_b
        self.links = [
            _Link(tree.bodies[k], moved[k], (R, p - self.pose[1]), index >= len(up))
            for index, (k, (R, p)) in enumerate(zip(up + down, poses, strict=True))
        ]

    @cached_property
    def _gather(self) -> ca.SX:
        """Matrix (columns x nv) that maps joint columns to coordinates."""
        return onto_coordinates([coordinate for link in self.links for coordinate in coordinates(link.body)], self.nv)

    @cached_property
    def J(self) -> ca.SX:
        """Columns of all joints, side by side."""
        return ca.horzcat(ca.SX(6, 0), *(link.J for link in self.links))

    @cached_property
    def _W(self) -> ca.SX:
        """The derivative of the equations along a twist (rows x 6)."""
        return self._rules[0](*self.pose)

    def jacobian(self) -> ca.SX:
        """Return the rows of r' = (W J) v (rows x nv)."""
        return self._W @ self.J @ self._gather

    def wrench(self, forces: ca.SX) -> ca.SX:
        """Return the wrench (6 x 1) that a exerts on b, at frame a in its axes, from forces (rows x 1)."""
        wrench = self._W.T @ forces
        return ca.vertcat(wrench[:3] + cross(self.pose[1], wrench[3:]), wrench[3:])

    def at_b(self, wrench: ca.SX) -> ca.SX:
        """Return a wrench, given at frame a, at frame b in the axes of b."""
        R, p = self.pose
        return ca.vertcat(R.T @ (wrench[:3] - cross(p, wrench[3:])), R.T @ wrench[3:])

    def wrench_changes(self, forces: ca.SX, dq: ca.SX, changes: ca.SX) -> ca.SX:
        """Return the changes (6 x k) of the wrench at frame a due to steps dq (nv x k) and force changes."""
        twists = self.J @ (self._gather @ dq)
        seen = self._rules[3](*self.pose, forces) @ twists + self._W.T @ changes
        return ca.SX(ca.vertcat(seen[:3, :] + skew(self.pose[1]) @ seen[3:, :], seen[3:, :]))

    def changes_at_b(self, wrench: ca.SX, dq: ca.SX, changes: ca.SX) -> ca.SX:
        """Return the changes of the wrench at frame b in the axes of b, from its changes (6 x k) at frame a."""
        (R, p), twists = self.pose, self.J @ (self._gather @ dq)
        w, step, f = twists[:3, :], twists[3:, :], wrench[3:]
        moment = changes[:3, :] - skew(p) @ changes[3:, :] + skew(f) @ step
        turned = skew(wrench[:3] - cross(p, f)) @ w, skew(f) @ w
        return ca.SX(ca.vertcat(R.T @ (moment + turned[0]), R.T @ (changes[3:, :] + turned[1])))

    def _motion(self, v: ca.SX, a: ca.SX | None) -> tuple[list[ca.SX], list[ca.SX]]:
        """Return the partial sums of V and A after zero, one, ... joints."""
        V, A = [ca.SX.zeros(6, 1)], [ca.SX.zeros(6, 1)]
        for link in self.links:
            rate = link.body.rate(v)
            twist = link.J @ rate
            rest = ad(V[-1]) @ twist
            if link.move.varies:
                rest = rest + link.seen(link.move.bias(rate))
            if a is not None:
                rest = rest + link.J @ link.body.rate(a)
            V.append(V[-1] + twist)
            A.append(A[-1] + rest)
        return V, A

    def second(self, v: ca.SX) -> ca.SX:
        """Return r'' for zero acceleration (rows x 1)."""
        V, A = self._motion(v, None)
        return self._rules[1](*self.pose, V[-1], A[-1])

    def rate_derivatives(self, v: ca.SX, a: ca.SX) -> Rates:
        """Return the derivatives of r' and r'' with respect to positions (along ``integrate``) and velocities."""
        V, A = self._motion(v, a)
        V_by_q, A_by_q, A_by_v = [ca.SX(6, 0)], [ca.SX(6, 0)], [ca.SX(6, 0)]
        for k, link in enumerate(self.links):
            J, before, after = link.J, k, k + 1
            kept, carried = (before, after) if link.turns_itself else (after, before)
            Z = V[-1] - V[kept]
            turned, carried_columns = -ad(Z) @ J, ad(V[carried]) @ J
            shift = ad(V[kept]) @ J if J.size2() > 1 else carried_columns  # a single column is not moved by its joint
            by_q = -ad(A[-1] - A[kept]) @ J - ad(Z) @ shift
            by_v = carried_columns + turned
            if link.move.varies:
                rates = link.body.rate(v), link.body.rate(a)
                S_by_q, rate_by_q, rate_by_v = (link.seen(variation) for variation in link.move.variations(*rates))
                turned = turned + S_by_q
                by_q = by_q + rate_by_q + ad(V[before] - (V[-1] - V[after])) @ S_by_q
                by_v = by_v + rate_by_v
            V_by_q.append(turned)
            A_by_q.append(by_q)
            A_by_v.append(by_v)
        V_q, A_q, A_v = (ca.horzcat(*item) for item in (V_by_q, A_by_q, A_by_v))
        W, (by_pose, second_by_pose, second_by_V) = self._W, self._rules[2](*self.pose, V[-1], A[-1])
        return (
            (by_pose @ self.J + W @ V_q) @ self._gather,
            (second_by_pose @ self.J + second_by_V @ V_q + W @ A_q) @ self._gather,
            (second_by_V @ self.J + W @ A_v) @ self._gather,
        )

    def stiffness(self, forces: ca.SX) -> ca.SX:
        """Return the derivative of J^T W^T forces with respect to q (nv x nv), for constant forces."""
        wrench, J = self._W.T @ forces, self.J
        N, F = skew(wrench[:3]), skew(wrench[3:])
        result = J.T @ (self._rules[3](*self.pose, forces) @ J)
        first = 0
        for link in self.links:
            last = first + link.J.size2()
            # (J_j x J_k) . wrench = J_k . dual_j
            dual = ca.vertcat(N @ link.J[:3, :] + F @ link.J[3:, :], F @ link.J[:3, :])
            turned = slice(first if link.turns_itself else last, J.size2())
            result[turned, first:last] += J[:, turned].T @ dual
            if link.move.varies:
                R, p = link.pose
                n, f = wrench[:3] - cross(p, wrench[3:]), wrench[3:]
                turning = link.move.turning(ca.vertcat(R.T @ n, R.T @ f))
                result[first:last, first:last] += turning if link.toward_b else -turning
            first = last
        return self._gather.T @ result @ self._gather


def _between(tree: Tree, cut: Cut) -> tuple[list[int], list[int]]:
    """Return the bodies from a up to the common ancestor, and from there down to b, without the ancestor."""
    i, j, up, down = cut.a.link, cut.b.link, list[int](), list[int]()
    while i != j:  # parents come before children
        if i > j:
            up.append(i)
            i = tree.bodies[i].parent
        else:
            down.append(j)
            j = tree.bodies[j].parent
    return up, down[::-1]


Rules = tuple[ca.Function, ca.Function, ca.Function, ca.Function]


@cache
def _rules(of: str, kind: str, size: float, roller: float = 0.0) -> Rules:
    """Return functions for the ``slips`` of a wheel, or for the ``error`` or the ``rows`` of a loop.

    They take the pose (R, p), and V, A or forces. They return W, r'', and the derivatives of r' with respect to the
    pose, of r'' with respect to the pose and V, and of W^T forces with respect to the pose. Pose derivatives are along
    twists.
    """
    R, p, V, A = ca.SX.sym("R", 3, 3), ca.SX.sym("p", 3), ca.SX.sym("V", 6), ca.SX.sym("A", 6)
    step = ca.SX.sym("step", 3)  # displacement of the origin of b from its current position; evaluated at zero
    at = ca.vertcat(ca.vec(R), step)
    turns = [ca.vec(skew(sx(axis)) @ R) for axis in ([1, 0, 0], [0, 1, 0], [0, 0, 1])]
    along = ca.vertcat(ca.horzcat(*turns, ca.SX(9, 3)), ca.horzcat(-skew(step), ca.SX.eye(3)))
    if of == "slips":
        at_b = ca.vertcat(ca.SX.eye(6)[:3, :], along[9:, :])  # from the twist at the current origin of b
        W = Wheel("any", "b", kind, size, roller).slips(R) @ at_b
    else:
        loop = Loop("any", "a", "b", kind, size)
        r = loop.error(R, p + step) if of == "error" else loop.rows(R, p + step)
        W = ca.jacobian(r, at) @ along
    forces = ca.SX.sym("forces", W.size1())
    by_pose = ca.jacobian(W @ V, at) @ along
    second = by_pose @ V + W @ A
    rate_derivatives = by_pose, ca.jacobian(second, at) @ along, ca.jacobian(second, V)
    stiffness = ca.jacobian(W.T @ forces, at) @ along

    def rule(name: str, inputs: list[ca.SX], *outputs: ca.SX) -> ca.Function:
        here = (ca.substitute(output, step, ca.SX.zeros(3, 1)) for output in outputs)
        return ca.Function(name, inputs, list(map(ca.sparsify, here)))

    return (
        rule("W", [R, p], W),
        rule("second", [R, p, V, A], second),
        rule("rate_derivatives", [R, p, V, A], *rate_derivatives),
        rule("stiffness", [R, p, forces], stiffness),
    )


# The closure equation of a coupling, which is a sum of polynomials in the coordinates, and its derivatives.
#
# With phi = sum of p_k(q_k) - offset,
#
#     phi' = sum of p_k' v_k        phi'' = sum of p_k' a_k + p_k'' v_k^2


class Coupled:
    """The equation of a coupling at positions q.

    The methods ``jacobian``, ``second``, ``rate_derivatives`` and ``stiffness`` are those of a ``Chain``.
    """

    count = 1

    def __init__(self, tree: Tree, q: ca.SX, relation: Relation):
        self._nv, self._offset = tree.nv, relation.offset
        self._terms = [(q[i], j, _derivatives(c)) for i, j, c in relation.terms]

    @property
    def error(self) -> ca.SX:
        """The residual phi."""
        values = (_polynomial(powers[0], x) for x, _, powers in self._terms)
        return sum(values, start=ca.SX(-self._offset))

    def _row(self, order: int, v: ca.SX | None = None, power: int = 0) -> ca.SX:
        """Return the derivatives of the polynomials, of the given order, times a power of v, as a row (1 x nv)."""
        row = ca.SX(1, self._nv)
        for x, j, powers in self._terms:
            if powers[order]:
                value = _polynomial(powers[order], x)
                row[0, j] = value if v is None else value * v[j] ** power
        return row

    def jacobian(self) -> ca.SX:
        """Return the row of phi' = A v (1 x nv)."""
        return self._row(1)

    def second(self, v: ca.SX) -> ca.SX:
        """Return phi'' for zero acceleration."""
        return ca.sum2(self._row(2, v, 2))

    def rate_derivatives(self, v: ca.SX, a: ca.SX) -> Rates:
        """Return the derivatives of phi' and phi'' with respect to positions and velocities (1 x nv each)."""
        by_q = self._row(2, a, 1) + self._row(3, v, 2)
        return self._row(2, v, 1), by_q, 2 * self._row(2, v, 1)

    def stiffness(self, force: ca.SX) -> ca.SX:
        """Return the derivative of A^T force with respect to q (nv x nv), for a constant force."""
        curved = any(powers[2] for _, _, powers in self._terms)
        return ca.diag(self._row(2) * force) if curved else ca.SX(self._nv, self._nv)


def _derivatives(coefficients: tuple[float, ...]) -> list[list[float]]:
    """Return the coefficients (of 1, x, ...) of a polynomial without a constant term and of its three derivatives."""
    result = [[0.0, *coefficients]]
    for _ in range(3):
        result.append([power * c for power, c in enumerate(result[-1])][1:])
    return result


def _polynomial(coefficients: list[float], x: ca.SX) -> ca.SX:
    """Return the value of a polynomial by Horner's rule."""
    value = ca.SX(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        value = value * x + c
    return value


def characteristic_scales(tree: Tree, length: float) -> tuple[Array, Array]:
    """Return the scales of positions (nq) and velocities (nv): the length (m) for translations, 1 for rotations."""
    positions, velocities = np.ones(tree.nq), np.ones(tree.nv)
    for body in tree.bodies:
        turns = body.joint.kind.turns
        velocities[body.v] = np.where(turns, 1.0, length)
        if body.q.stop - body.q.start == len(turns):
            positions[body.q] = velocities[body.v]
        else:  # a point and a quaternion, or a quaternion alone
            positions[body.q] = [*[length] * (body.q.stop - body.q.start - 4), *[1.0] * 4]
    return positions, velocities


def closure_error(tree: Tree, q: ca.SX) -> ca.SX:
    """Return phi (c x 1): lengths in m, angles as 2 sin(angle/2), couplings in units of their coordinates."""
    moved = moves(tree, q)
    rows = [ca.SX.zeros(0, 1)]
    for closure in tree.closures:
        if isinstance(closure, Relation):
            rows.append(Coupled(tree, q, closure).error)
        else:
            rows.append(closure.loop.error(*Chain(tree, moved, closure).pose))
    return ca.vertcat(*rows)


def velocity_rows(tree: Tree) -> list[int]:
    """Return the indices of pure velocity equations (wheel slips), whose closure error is always 0."""
    result, first = list[int](), 0
    for closure in tree.closures:
        count, positions = (1, 1) if isinstance(closure, Relation) else (closure.loop.count, closure.loop.positions)
        result += range(first + positions, first + count)
        first += count
    return result


class Closures:
    """The closure equations at positions q: their Jacobian A, drift and derivatives.

    They are valid if the loops are closed. If ``exact`` is True, A is the Jacobian of ``closure_error`` everywhere.
    """

    def __init__(self, tree: Tree, q: ca.SX, exact: bool = False):
        moved = moves(tree, q)
        self._parts: list[Chain | Coupled] = [
            Chain(tree, moved, closure, exact) if isinstance(closure, Cut) else Coupled(tree, q, closure)
            for closure in tree.closures
        ]
        self._nv = tree.nv

    @property
    def chains(self) -> list[Chain]:
        """The chains of the cut joints."""
        return [part for part in self._parts if isinstance(part, Chain)]

    @cached_property
    def A(self) -> ca.SX:
        """The Jacobian (c x nv)."""
        return ca.vertcat(ca.SX(0, self._nv), *(part.jacobian() for part in self._parts))

    def drift(self, v: ca.SX) -> ca.SX:
        """Return phi'' for zero acceleration (c x 1)."""
        return ca.vertcat(ca.SX(0, 1), *(part.second(v) for part in self._parts))

    def rate_derivatives(self, v: ca.SX, a: ca.SX) -> Rates:
        """Return the derivatives of phi' with respect to q, and of phi'' with respect to q and v (c x nv each)."""
        start, parts = [ca.SX(0, self._nv)] * 3, (part.rate_derivatives(v, a) for part in self._parts)
        return tuple(ca.vertcat(*kind) for kind in zip(start, *parts, strict=True))

    def stiffness(self, forces: ca.SX) -> ca.SX:
        """Return the derivative of A^T forces with respect to q (nv x nv), for constant forces (c x 1)."""
        parts = (item.stiffness(force) for item, force in self._shared(forces))
        return sum(parts, start=ca.SX(self._nv, self._nv))

    def wrenches(self, forces: ca.SX) -> list[ca.SX]:
        """Return the wrench (6 x 1) that a exerts on b in each cut joint, at frame a in its axes."""
        return [item.wrench(force) for item, force in self._cut(forces)]

    def wrench_changes(self, forces: ca.SX, dq: ca.SX, changes: ca.SX) -> list[ca.SX]:
        """Return the changes (6 x k each) of ``wrenches`` due to steps dq (nv x k) and force ``changes`` (c x k)."""
        parts = zip(self._cut(forces), self._cut(changes), strict=True)
        return [item.wrench_changes(force, dq, change) for (item, force), (_, change) in parts]

    def _shared(self, forces: ca.SX) -> Iterator[tuple[Chain | Coupled, ca.SX]]:
        """Yield each loop or coupling with its rows of ``forces``."""
        first = 0
        for part in self._parts:
            yield part, forces[first : first + part.count, :]
            first += part.count

    def _cut(self, forces: ca.SX) -> Iterator[tuple[Chain, ca.SX]]:
        """Yield each chain with its rows of ``forces``."""
        return ((item, force) for item, force in self._shared(forces) if isinstance(item, Chain))


def closure_jacobian(tree: Tree, q: ca.SX) -> ca.SX:
    """Return A (c x nv) with phi' = A v."""
    return Closures(tree, q, exact=True).A


def closure_rate(tree: Tree, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return A v (c x 1): the rate of phi, and the slips of wheels."""
    return closure_jacobian(tree, q) @ v
