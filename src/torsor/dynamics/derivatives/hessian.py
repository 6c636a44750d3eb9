"""Second derivatives of weight . tau with respect to q, v and a, in one pass that propagates covectors to the root.

The weight is a virtual velocity that gives each body a virtual twist W. L = weight . tau is the virtual power of the
inertial forces. A displacement of joint j changes the twists W and V of the bodies that it carries, and the rate A of
V, by

    q: W_ x S, P1, P2        v: 0, S, P3        a: 0, 0, S          (W_ of the parent; P1, P2, P3 of ``derivatives``)

Let joint k carry a composite with wrench F, inertia I, velocity products B of V and B_W of W, H = sum of I W and G =
sum of 2 B^T W. Then dL is W_ x S . F + P1 . G + P2 . H for q, S . G + P3 . H for v, and S . H for a. A joint j above k
changes all of these except S. Since 2 B(X)^T W = -2 B(W)^T X, the second derivatives are the products of these changes
of W, V and A with the covectors

    q: S x* F + I P2 + 2 B P1,   S x* G + 2 B^T (W_ x S) - 2 B_W^T P1,   S x* H + I (W_ x S)
    v: I P3 + 2 B S,             -2 B_W^T S
    a: I S

which are transformed like wrenches from k towards the root. The covectors of V are pure moments. The products are also
valid for j = k in the blocks (v, q) and (a, q) and, after symmetrisation, in (q, q) (second derivatives along
``integrate``) and (v, v). A rotor with spin momentum h is a joint without a body: v: w x h, h x W; a: h. Joints with a
variable S are first split into simple ones.
"""

from collections.abc import Iterator
from dataclasses import replace

import casadi as ca
import numpy as np

from torsor.dynamics.derivatives.dynamics import Loads, Setting, carry
from torsor.dynamics.recursions.composite import Entries, body_momenta, climb, momentum_composites, rotors, times_B_T
from torsor.dynamics.recursions.configuration import integrate
from torsor.dynamics.recursions.kinematics import sx, twists
from torsor.dynamics.recursions.newton_euler import inverse_dynamics
from torsor.dynamics.recursions.passive import passive_hessians
from torsor.dynamics.trees.tree import Body, Tree
from torsor.mechanism import Joint
from torsor.spatial import ad, cross, make_pose


class _Virtual:
    """Covectors at a state and a virtual velocity."""

    def __init__(self, at: Setting, v: ca.SX, weight: ca.SX):
        tree, self.at = at.tree, at
        self.twist = twists(tree, at.moved, weight)
        above = [self.twist[body.parent] if body.parent >= 0 else ca.SX.zeros(6, 1) for body in tree.bodies]
        self.change = [ad(move.down_twist(W)) @ move.S for move, W in zip(at.moved, above, strict=True)]  # W_ x S
        self.D, self.P = momentum_composites(tree, at.moved, self.twist, weight)
        self.G = list[ca.SX]()  # moments of each joint's composite, tips to root
        for k, (D, P) in enumerate(zip(*body_momenta(tree, at.twist, v, scale=2), strict=True)):
            spin = tree.bodies[k].spin(weight)
            self.G.append(times_B_T(D, P, self.twist[k])[:3] + cross(at.twist[k][:3], spin))
        for k in reversed(range(len(self.G))):
            parent = tree.bodies[k].parent
            if parent >= 0:
                self.G[parent] = self.G[parent] + at.moved[k].up(self.G[k])

    def covectors(self, k: int) -> tuple[ca.SX, ...]:
        """Return the covectors of joint k for changes of W, V and A: three for q, two for v and one for a."""
        S, W, real, D, P = self.at.moved[k].S, self.change[k], self.at.carried[k], self.D[k], self.P[k]
        W_by_q, W_by_v, W_by_a = self.at.columns(k)
        turned = carry(S, self.G[k], ca.SX.zeros(3, 1))
        V_by_q = turned + times_B_T(real.D, real.P, W) - times_B_T(D, P, 2 * self.at.change[k].P1)
        H = ca.vertcat(D[2, 1] - D[1, 2], D[0, 2] - D[2, 0], D[1, 0] - D[0, 1])  # P is the linear part
        A_by_q = carry(S, H, P) + real.times_I(W)
        return W_by_q, V_by_q, A_by_q, W_by_v, -times_B_T(D, P, 2 * S), W_by_a

    def climb(self, k: int, covectors: tuple[ca.SX, ...]) -> Iterator[tuple[int, list[ca.SX]]]:
        """Yield the transposed covectors in the frame of body k and of each body above it."""
        wide, width = ca.horzcat(*covectors), covectors[0].size2()
        for j, seen in climb(self.at.tree, self.at.moved, k, wide[:3, :], wide[3:, :]):
            yield j, [seen[:, width * c : width * (c + 1)].T for c in range(len(covectors))]


def inverse_dynamics_hessian(
    tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX, weight: ca.SX, external: ca.SX | None = None
) -> ca.SX:
    """Return the Hessian of weight . tau with respect to q (along ``integrate``), v and a (3 nv x 3 nv)."""
    if tree.bends or any(body.joint.flexible is not None for body in tree.bodies):
        return _traced(tree, q, v, a, weight, external)
    tree, external = _simple(tree, external)
    at = Setting(tree, q, v, a, Loads(external))
    virtual, bodies = _Virtual(at, v, weight), tree.bodies
    qq, qv, qa, vv = (Entries(tree) for _ in range(4))
    for k, body in enumerate(bodies):
        for j, (W_by_q, V_by_q, A_by_q, W_by_v, V_by_v, W_by_a) in virtual.climb(k, virtual.covectors(k)):
            other, item, W = bodies[j], at.change[j], virtual.change[j]
            twice = W_by_q @ W + V_by_q @ item.P1 + A_by_q @ item.P2
            qv.add(other, body, (W_by_v @ W + V_by_v @ item.P1).T)
            qa.add(other, body, (W_by_a @ W).T)
            if j == k:
                qq.add(body, body, _symmetric(twice))
                vv.add(body, body, _symmetric(V_by_v @ item.S))
            else:
                qq.add_both(body, other, twice)
                vv.add_both(body, other, V_by_v @ item.S)
                qv.add(body, other, V_by_q @ item.S + A_by_q @ item.P3)
                qa.add(body, other, A_by_q @ item.S)
    for k, rotor in rotors(at.moved):
        _, by_v, by_a = at.rotor_columns(k, rotor)
        turned = ca.vertcat(cross(sx(rotor.h), virtual.twist[k][:3]), ca.SX.zeros(3, 1))
        for j, (W_by_v, V_by_v, W_by_a) in virtual.climb(k, (by_v, turned, by_a)):
            item, W = at.change[j], virtual.change[j]
            qv.add(bodies[j], rotor, (W_by_v @ W + V_by_v @ item.P1).T)
            qa.add(bodies[j], rotor, (W_by_a @ W).T)
            vv.add_both(rotor, bodies[j], V_by_v @ item.S)
    for (i, j), (spring, friction) in passive_hessians(tree, q, v, weight):
        qq.add_at(i, j, spring)
        vv.add_at(i, j, friction)
    QV, QA, none = qv.matrix(), qa.matrix(), ca.SX(tree.nv, tree.nv)
    return ca.blockcat([[qq.matrix(), QV, QA], [QV.T, vv.matrix(), none], [QA.T, none, none]])


def _traced(tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX, weight: ca.SX, external: ca.SX | None) -> ca.SX:
    """Return the Hessian for a tree with flexible links, by CasADi's differentiation."""
    inputs = [item for item in (q, v, a, weight, external) if item is not None]
    at = [ca.SX.sym(f"x{k}", *value.shape) for k, value in enumerate(inputs)]
    (x, v, a, weight, *load), step = at, ca.SX.sym("step", tree.nv)
    forces = inverse_dynamics(tree, integrate(tree, x, step), v, a, *load)
    H = ca.hessian(ca.dot(weight, forces), ca.vertcat(step, v, a))[0]
    return ca.Function("hessian", at, [ca.substitute(H, step, ca.SX.zeros(tree.nv, 1))])(*inputs)


def _symmetric(block: ca.SX) -> ca.SX:
    """Return the symmetric part of ``block``, computing only one triangle."""
    return ca.triu2symm(ca.triu(block + block.T) / 2) if block.size1() > 1 else block


def _simple(tree: Tree, external: ca.SX | None) -> tuple[Tree, ca.SX | None]:
    """Return an equivalent tree whose joints have a constant S, and the external wrenches (L x 6) on its links.

    Joints with a variable S are split into simple joints in series, with massless links. The coordinates are unchanged.
    """
    bodies: list[Body] = []
    last: list[int] = []  # the new index of each body
    for body in tree.bodies:
        above, kinds = last[body.parent] if body.parent >= 0 else -1, body.joint.kind.simple
        T, q, v = body.T, body.q.start, body.v.start
        for name, axes in kinds if len(kinds) > 1 else ():
            joint = Joint(body.joint.name, name, body.joint.parent, body.joint.child)
            slices = slice(q, q + joint.nq), slice(v, v + joint.nv)
            bodies.append(Body(above, joint, *slices, T @ make_pose(axes), np.zeros((4, 4)), np.eye(4)))
            T, q, v, above = make_pose(axes.T), slices[0].stop, slices[1].stop, len(bodies) - 1
        if len(kinds) > 1:
            bodies[-1] = replace(bodies[-1], P=body.P, link=body.link, rotors=body.rotors)
        else:
            bodies.append(replace(body, parent=above))
        last.append(len(bodies) - 1)
    if external is not None:
        external, original = ca.SX.zeros(len(bodies), 6), external
        external[last, :] = original
    return replace(tree, bodies=tuple(bodies)), external
