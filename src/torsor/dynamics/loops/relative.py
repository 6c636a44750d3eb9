"""The relative motion of the two frames of a cut joint: the joints between them as one chain, from frame a to frame b.

All vectors are twists in the axes of frame a, at its point that coincides with the origin of b. Joint k of the chain
has the columns J_k, and moves the part of the chain after it:

    V = sum of u_k = J_k v_k        A = V' = sum of J_k a_k + C_k x u_k

with C_k the twist that moves the columns of joint k. Joints between b and the common ancestor of both frames move their
own columns (C_k includes u_k); those between a and the common ancestor, which the chain passes from child to parent, do
not, and have the opposite sign. With Z_j the part of V that joint j moves (that after it) and Y_j = V - Z_j the rest,

    dJ_k = J_j x J_k  (for columns that it moves)        dV/dq_j = J_j x Z_j
    dA/dq_j = J_j x (part of A that it moves) - (J_j x Y_j) x Z_j        dA/dv_j = C_j x J_j + J_j x Z_j

The equations of a cut joint are functions r(R, p) of the pose of b relative to a, whose change with a twist is
dR = [w] R, dp = v + w x (p - p_now): their derivatives are small and come from CasADi. A wheel has no such functions of
its slip, but the matrix W(R, p) of r' = W V all the same.
"""

from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import casadi as ca

from torsor.dynamics.recursions.axes import place_in_body
from torsor.dynamics.recursions.composite import coordinates, onto_coordinates
from torsor.dynamics.recursions.kinematics import Move, sx
from torsor.dynamics.trees.tree import Body, Cut, Tree
from torsor.mechanism import CutJoint, Loop, Wheel
from torsor.spatial import ad, cross, skew

Pose = tuple[ca.SX, ca.SX]


@dataclass(frozen=True, eq=False)
class _Link:
    """A joint of the chain with its columns J (6 x n); ``toward_b``: it is between b and the common ancestor."""

    body: Body
    move: Move
    pose: Pose  # of the moved body, in the axes of a, relative to the origin of b
    toward_b: bool

    def seen(self, S: ca.SX) -> ca.SX:
        """Return twists (6 rows) of the joint's motion in the axes of a, from those in the moved body's frame."""
        R, p = self.pose
        w = R @ S[:3, :]
        columns: ca.SX = ca.vertcat(w, R @ S[3:, :] + skew(p) @ w)
        return columns if self.toward_b else -columns

    @property
    def has_many(self) -> bool:
        """Whether the joint has more than one column."""
        return self.move.S.size2() > 1

    @property
    def turns_itself(self) -> bool:
        """Whether its columns move with it; a single column is not changed by its own motion."""
        return self.toward_b and self.has_many

    @cached_property
    def J(self) -> ca.SX:
        """The joint's columns."""
        return self.seen(self.move.S)


class RateDerivatives(NamedTuple):
    """Derivatives of the first and second rates of the equations (rows x nv each): r' by q, r'' by q and by v."""

    rate_by_q: ca.SX
    second_by_q: ca.SX
    second_by_v: ca.SX


class Chain:
    """The chain from frame a to frame b of a cut joint, at the positions of the tree."""

    def __init__(self, tree: Tree, moved: list[Move], cut: Cut, exact: bool = False):
        self.nv, self.count, self._rules = tree.nv, cut.loop.count, _rules_of(cut.loop, exact)
        up, down = _between(tree, cut)
        R, p = place_in_body(tree, cut.a)
        R, p = R.T, -R.T @ p  # of the body that carries a, relative to a
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
        """The matrix that maps columns of the joints to coordinates (columns x nv)."""
        return onto_coordinates([each for link in self.links for each in coordinates(link.body)], self.nv)

    @cached_property
    def J(self) -> ca.SX:
        """The columns of all joints, side by side."""
        return ca.horzcat(ca.SX(6, 0), *(link.J for link in self.links))

    @cached_property
    def _W(self) -> ca.SX:
        """The derivative of the equations along a twist (rows x 6)."""
        return self._rules[0](*self.pose)

    def jacobian(self) -> ca.SX:
        """Return the rows of r' = (W J) v (rows x nv)."""
        return self._W @ self.J @ self._gather

    def wrench(self, forces: ca.SX) -> ca.SX:
        """Return the wrench (6 x 1) of a on b, at frame a in its axes, of forces (rows x 1) along the equations."""
        wrench = self._W.T @ forces
        return ca.vertcat(wrench[:3] + cross(self.pose[1], wrench[3:]), wrench[3:])

    def at_b(self, wrench: ca.SX) -> ca.SX:
        """Return a wrench at frame a as one at frame b, in its axes."""
        R, p = self.pose
        return ca.vertcat(R.T @ (wrench[:3] - cross(p, wrench[3:])), R.T @ wrench[3:])

    def wrench_changes(self, forces: ca.SX, dq: ca.SX, changes: ca.SX) -> ca.SX:
        """Return the changes (6 x k) of the wrench at frame a for steps dq (nv x k) and changes of forces."""
        twists = self.J @ (self._gather @ dq)
        seen = self._rules[3](*self.pose, forces) @ twists + self._W.T @ changes
        at_a: ca.SX = ca.vertcat(seen[:3, :] + skew(self.pose[1]) @ seen[3:, :], seen[3:, :])
        return at_a

    def changes_at_b(self, wrench: ca.SX, dq: ca.SX, changes: ca.SX) -> ca.SX:
        """Return the changes of the wrench at frame b in its axes, from its changes (6 x k) at frame a."""
        (R, p), twists = self.pose, self.J @ (self._gather @ dq)
        w, step, f = twists[:3, :], twists[3:, :], wrench[3:]
        moment = changes[:3, :] - skew(p) @ changes[3:, :] + skew(f) @ step
        turned = skew(wrench[:3] - cross(p, f)) @ w, skew(f) @ w
        at_b: ca.SX = ca.vertcat(R.T @ (moment + turned[0]), R.T @ (changes[3:, :] + turned[1]))
        return at_b

    def _motion(self, v: ca.SX, a: ca.SX | None) -> tuple[list[ca.SX], list[ca.SX]]:
        """Return the partial sums of V and A, after none, one, ... of the joints."""
        V, A = [ca.SX.zeros(6, 1)], [ca.SX.zeros(6, 1)]
        for link in self.links:
            rate = link.body.rate(v)
            own = link.J @ rate
            rest = ad(V[-1]) @ own
            if link.move.varies:
                rest = rest + link.seen(link.move.bias(rate))
            if a is not None:
                rest = rest + link.J @ link.body.rate(a)
            V.append(V[-1] + own)
            A.append(A[-1] + rest)
        return V, A

    def second(self, v: ca.SX) -> ca.SX:
        """Return r'' for zero acceleration (rows x 1)."""
        V, A = self._motion(v, None)
        return self._rules[1](*self.pose, V[-1], A[-1])

    def rate_derivatives(self, v: ca.SX, a: ca.SX) -> RateDerivatives:
        """Return the derivatives of r' and r'' by positions (along ``integrate``) and velocities."""
        V, A = self._motion(v, a)
        V_by_q, A_by_q, A_by_v = [ca.SX(6, 0)], [ca.SX(6, 0)], [ca.SX(6, 0)]
        for k, link in enumerate(self.links):
            J, before, after = link.J, k, k + 1
            kept, carried = (before, after) if link.turns_itself else (after, before)
            Z = V[-1] - V[kept]
            turned, own = -ad(Z) @ J, ad(V[carried]) @ J
            shift = ad(V[kept]) @ J if link.has_many else own  # a single column does not move itself
            by_q = -ad(A[-1] - A[kept]) @ J - ad(Z) @ shift
            by_v = own + turned
            if link.move.varies:
                rates = link.body.rate(v), link.body.rate(a)
                S_by_q, rate_by_q, rate_by_v = (link.seen(each) for each in link.move.variations(*rates))
                turned = turned + S_by_q
                by_q = by_q + rate_by_q + ad(V[before] - (V[-1] - V[after])) @ S_by_q
                by_v = by_v + rate_by_v
            V_by_q.append(turned)
            A_by_q.append(by_q)
            A_by_v.append(by_v)
        V_q, A_q, A_v = (ca.horzcat(*each) for each in (V_by_q, A_by_q, A_by_v))
        W, (by_pose, second_by_pose, second_by_V) = self._W, self._rules[2](*self.pose, V[-1], A[-1])
        return RateDerivatives(
            (by_pose @ self.J + W @ V_q) @ self._gather,
            (second_by_pose @ self.J + second_by_V @ V_q + W @ A_q) @ self._gather,
            (second_by_V @ self.J + W @ A_v) @ self._gather,
        )

    def stiffness(self, forces: ca.SX) -> ca.SX:
        """Return the derivative of J^T W^T forces with respect to q (nv x nv), for constant forces."""
        wrench, J = self._W.T @ forces, self.J
        found = J.T @ (self._rules[3](*self.pose, forces) @ J)
        first = 0
        for link in self.links:
            last = first + link.J.size2()
            dual = _ad_T(link.J, wrench)  # (J_j x J_k) . wrench = J_k . dual_j
            turned = slice(first if link.turns_itself else last, J.size2())
            found[turned, first:last] += J[:, turned].T @ dual
            if link.move.varies:
                R, p = link.pose
                n, f = wrench[:3] - cross(p, wrench[3:]), wrench[3:]
                own = link.move.turning(ca.vertcat(R.T @ n, R.T @ f))
                found[first:last, first:last] += own if link.toward_b else -own
            first = last
        return self._gather.T @ found @ self._gather


def _ad_T(J: ca.SX, wrench: ca.SX) -> ca.SX:
    """Return ad(J_j)^T wrench for each column of J (6 x n)."""
    n, f = skew(wrench[:3]), skew(wrench[3:])
    columns: ca.SX = ca.vertcat(n @ J[:3, :] + f @ J[3:, :], f @ J[:3, :])
    return columns


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


def _rules_of(loop: CutJoint, exact: bool) -> Rules:
    """Return functions of the equations of a cut joint at the pose (R, p), and of V, A or forces.

    They are: W; r''; the derivatives of r' by the pose and of r'' by the pose and by V; the derivative of W^T forces by
    the pose. Derivatives by the pose are along twists.
    """
    if isinstance(loop, Wheel):
        return _rules("slips", loop.kind, loop.radius, loop.roller)
    return _rules("error" if exact else "rows", loop.kind, float(loop.kind == "rod"))  # its length has no effect


@cache
def _rules(of: str, kind: str, size: float, roller: float = 0.0) -> Rules:
    """Return these functions of the ``slips`` of a wheel, or of the ``error`` or the ``rows`` of a loop."""
    R, p, V, A = ca.SX.sym("R", 3, 3), ca.SX.sym("p", 3), ca.SX.sym("V", 6), ca.SX.sym("A", 6)
    step = ca.SX.sym("step", 3)  # of the origin of b from its present position: evaluated at zero
    at = ca.vertcat(ca.vec(R), step)
    turns = [ca.vec(skew(sx(axis)) @ R) for axis in ([1, 0, 0], [0, 1, 0], [0, 0, 1])]
    along = ca.vertcat(ca.horzcat(*turns, ca.SX(9, 3)), ca.horzcat(-skew(step), ca.SX.eye(3)))
    if of == "slips":
        at_b = ca.vertcat(ca.SX.eye(6)[:3, :], along[9:, :])  # from the twist at the present origin of b
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
        here = (ca.substitute(each, step, ca.SX.zeros(3, 1)) for each in outputs)
        return ca.Function(name, inputs, list(map(ca.sparsify, here)))

    return (
        rule("W", [R, p], W),
        rule("second", [R, p, V, A], second),
        rule("rate_derivatives", [R, p, V, A], *rate_derivatives),
        rule("stiffness", [R, p, forces], stiffness),
    )
