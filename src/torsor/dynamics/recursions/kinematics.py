"""The outward pass, root to tips: the motion of each body. All algorithms that need it call ``motions``.

    omega_j  = R^T omega_i + omega_J                                       (i = parent, R = iRj, p = origin of j in i)
    omega'_j = R^T omega'_i + omega'_J + (R^T omega_i) x omega_J
    U_j      = [omega'_j] + [omega_j][omega_j]
    a_j      = R^T (a_i + U_i p) + a_J + 2 (R^T omega_i) x v_J + omega_J x v_J

with the joint's own twist (omega_J, v_J) = S v and its rate (omega'_J, a_J) = S a + S' v in the moved axes. ``a`` is
the acceleration that an accelerometer at the origin would measure. The base has a_0 = -g, so that gravity acts on all
bodies. See Luh, Walker and Paul 1980, and Khalil 2010, eqs. 18-21; U is due to Khalil and Kleinfinger.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from torsor.dynamics.trees.tree import Body, Tree
from torsor.spatial import cross, skew


def sx(value: Any) -> ca.SX:
    """Return numbers or symbols as a dense CasADi SX, so that operations with zeros and ones are simplified."""
    return ca.densify(ca.SX(value))


def symmetric(A: ca.SX) -> ca.SX:
    """Return a symmetric matrix A with its upper triangle copied from the lower one, so that it is computed once."""
    return ca.SX(ca.tril2symm(ca.tril(A)))


class Move:
    """The transform of a joint (a constant rotation, then the joint rotation), its motion subspace S, and the body.

    The two rotations are applied in sequence, because the constant one is often a permutation, which takes no
    operations, and the joint rotation usually changes only two components.
    """

    def __init__(self, body: Body, q: ca.SX):
        kind, pitch, position = body.joint.kind, body.joint.pitch, body.position(q)
        R, p = kind.transform(position, pitch)
        self._placement, self._joint = sx(body.T[:3, :3]), sx(R)
        self._placement_T, self._joint_T = self._placement.T, self._joint.T
        self.p = sx(body.T[:3, 3]) + self._placement @ sx(p)
        self.S = sx(kind.subspace(position, pitch))
        self.varies = not self.S.is_constant()  # S varies with the joint's positions
        self.body = body.at(q)
        self._kind, self._position, self._pitch = kind, position, pitch

    def down(self, x: ca.SX) -> ca.SX:
        """Rotate a vector (or the columns of a matrix) from the parent's axes to the body's axes."""
        return self._joint_T @ (self._placement_T @ x)

    def up(self, x: ca.SX) -> ca.SX:
        """Rotate a vector (or the columns of a matrix) from the body's axes to the parent's axes."""
        return self._placement @ (self._joint @ x)

    def up_tensor(self, D: ca.SX) -> ca.SX:
        """Rotate a tensor (3 x 3) from the body's axes to the parent's axes."""
        return _rotate_tensor(self._placement, _rotate_tensor(self._joint, D))

    def down_twist(self, X: ca.SX) -> ca.SX:
        """Return twists of the parent (6 rows), or their rates, in the body's frame."""
        w, origin = X[:3, :], X[3:, :]
        return ca.vertcat(self.down(w), self.down(origin - skew(self.p) @ w))

    def S_rate(self, v: ca.SX) -> ca.SX:
        """Return the rate of S (6 x nv) in the moved axes, from the joint's velocities v."""
        rate = self._kind.subspace_rate(self._position, v, self._pitch)
        return ca.SX.zeros(*self.S.shape) if rate is None else rate

    def bias(self, v: ca.SX) -> ca.SX:
        """Return S' v (6 x 1) in the moved axes, from the joint's velocities v."""
        bias = self._kind.bias(self._position, v, self._pitch)
        return ca.SX.zeros(6, 1) if bias is None else sx(bias)

    def variations(self, v: ca.SX, a: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
        """Return the q derivatives of S v and S a + S' v, and the v derivative of S' v (6 x nv each)."""
        q, rate = ca.SX.sym("q", self._kind.nq), ca.SX.sym("rate", self._kind.nv)
        S, S_rate = self._kind.subspace(q, self._pitch), sx(self._kind.subspace_rate(q, rate, self._pitch))
        result = ca.jacobian(S @ rate, q), ca.jacobian(S @ a + S_rate @ rate, q), ca.jacobian(S_rate @ rate, rate)
        here = ca.vertcat(q, rate), ca.vertcat(self._position, v)
        by_q, rate_by_q, rate_by_v = (ca.substitute(item, *here) for item in result)
        return by_q, rate_by_q, rate_by_v

    def S_rates(self, rates: list[ca.SX]) -> list[ca.SX]:
        """Return S and, if it varies, its time derivatives (6 x nv each), one per entry of ``rates``."""
        if not self.varies:
            return [self.S]
        q, x = ca.SX.sym("q", self._kind.nq), [ca.SX.sym(f"x{k}", self._kind.nv) for k in range(len(rates))]
        result = [ca.vec(sx(self._kind.subspace(q, self._pitch)))]
        for _ in rates[1:]:  # valid because the velocities are the rates of the positions if S varies
            result.append(ca.jtimes(result[-1], ca.vertcat(q, *x[:-1]), ca.vertcat(*x)))
        here = ca.vertcat(q, *x), ca.vertcat(self._position, *rates)
        return [ca.reshape(ca.substitute(item, *here), self.S.shape) for item in result]

    def turning(self, wrench: ca.SX) -> ca.SX:
        """Return the derivative (nv x nv) of S^T wrench with respect to the positions, for a constant wrench."""
        q = ca.SX.sym("q", self._kind.nq)
        derivative = ca.jacobian(self._kind.subspace(q, self._pitch).T @ wrench, q)
        return ca.substitute(derivative, q, self._position)

    @property
    def S_before(self) -> ca.SX:
        """S (6 x nv) in the parent's axes."""
        before = sx(self._kind.subspace_before(self._position, self._pitch))
        return ca.vertcat(self._placement @ before[:3, :], self._placement @ before[3:, :])

    def up_both(self, X: ca.SX) -> ca.SX:
        """Return wrenches or twists X (6 rows) in the parent's axes, still about the body's origin."""
        return ca.vertcat(self.up(X[:3, :]), self.up(X[3:, :]))

    def shifted(self, wrench: ca.SX) -> ca.SX:
        """Return wrenches (6 rows) at the parent's origin from those at the body's origin, in the parent's axes."""
        return ca.vertcat(wrench[:3, :] + skew(self.p) @ wrench[3:, :], wrench[3:, :])

    def up_wrench(self, n: ca.SX, f: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return wrenches at the parent's origin in its axes, from (n, f) at the body's origin in the body's axes."""
        f = self.up(f)
        return self.up(n) + skew(self.p) @ f, f


def _rotate_tensor(R: ca.SX, D: ca.SX) -> ca.SX:
    """Return R D R^T, in 11 operations if R rotates about a coordinate axis (trace and skew part are invariant)."""
    # A half turn about a line orthogonal to the axis has the same zeros, but reverses the axis.
    others = {0: (1, 2), 1: (2, 0), 2: (0, 1)}
    stays = (k for k, ij in others.items() if all(R[k, i].is_zero() and R[i, k].is_zero() for i in ij))
    axis = next((k for k in stays if R[k, k].is_one()), None)
    if axis is None or (R.is_constant() and set(np.abs(ca.DM(R).full()).ravel()) <= {0.0, 1.0}):  # a permutation
        return R @ (R @ D.T).T
    x, y, z = (axis + 1) % 3, (axis + 2) % 3, axis
    c, s = R[x, x], R[y, x]
    k = s * (D[x, x] - D[y, y]) + c * (D[x, y] + D[y, x])
    turned = ca.SX.zeros(3, 3)
    turned[x, x], turned[y, y] = D[x, x] - s * k, D[y, y] + s * k
    turned[x, y], turned[y, x] = c * k - D[y, x], c * k - D[x, y]
    turned[:, z], turned[z, :] = R @ D[:, z], (R @ D[z, :].T).T
    return turned


class Motion(NamedTuple):
    """Angular velocity and acceleration, acceleration of the origin, and U, in the body's own axes."""

    w: ca.SX
    wd: ca.SX
    a: ca.SX
    U: ca.SX


def moves(tree: Tree, q: ca.SX) -> list[Move]:
    """Return the ``Move`` of each body."""
    return [Move(body, q) for body in tree.bodies]


def motions(
    tree: Tree, moved: list[Move], v: ca.SX | None, a: ca.SX | None, gravity: ca.SX | None = None
) -> list[Motion]:
    """Return the motion of each body, root to tips; None means zero. Gravity is an acceleration -g of the base."""
    zero = ca.SX.zeros(3, 1)
    ground = Motion(zero, zero, zero if gravity is None else -gravity, ca.SX.zeros(3, 3))
    motion: list[Motion] = []
    for body, move, parent in _outward(tree, moved, motion, ground):
        a_parent = parent.a + parent.U @ move.p
        wJ = vJ = wdJ = aJ = zero
        if v is not None:
            rate = body.rate(v)
            twist, rest = move.S @ rate, move.bias(rate)
            wJ, vJ, wdJ, aJ = twist[:3], twist[3:], rest[:3], rest[3:]
        if a is not None:
            acceleration = move.S @ body.rate(a)
            wdJ, aJ = wdJ + acceleration[:3], aJ + acceleration[3:]
        w_parent = move.down(parent.w)
        w = w_parent + wJ
        wd = move.down(parent.wd) + wdJ + cross(w_parent, wJ)
        W = skew(w)
        acc = move.down(a_parent) + aJ + cross(w_parent, 2 * vJ) + cross(wJ, vJ)
        motion.append(Motion(w, wd, acc, skew(wd) + symmetric(W @ W)))
    return motion


def twists(tree: Tree, moved: list[Move], v: ca.SX) -> list[ca.SX]:
    """Return the twist (omega, v of the origin) of each body, 6 x 1 in its own axes, root to tips."""
    twist: list[ca.SX] = []
    for body, move, parent in _outward(tree, moved, twist, ca.SX.zeros(6, 1)):
        twist.append(move.down_twist(parent) + move.S @ body.rate(v))
    return twist


def _outward(tree: Tree, moved: list[Move], done: list[Any], ground: Any) -> Iterator[tuple[Body, Move, Any]]:
    """Yield each body, root to tips, with the result of its parent."""
    for body, move in zip(tree.bodies, moved, strict=True):
        yield body, move, done[body.parent] if body.parent >= 0 else ground


def world_poses(tree: Tree, moved: list[Move]) -> list[tuple[ca.SX, ca.SX]]:
    """Return (R, p) of each body's frame in the base's axes, root to tips."""
    poses: list[tuple[ca.SX, ca.SX]] = []
    for _, move, (R, p) in _outward(tree, moved, poses, (sx(np.eye(3)), ca.SX.zeros(3, 1))):
        poses.append((move.down(R.T).T, p + R @ move.p))
    return poses
