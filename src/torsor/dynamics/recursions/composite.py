"""Composite bodies, tips to root: mass matrix and Coriolis matrix.

The composite of joint k is the subtree that the joint carries, taken as one rigid body. Its pseudo-inertia is
transformed to the parent's frame by

    Sigma' = R Sigma R^T + p h^T + h p^T,  h = R ms + m p / 2;    ms' = R ms + m p

A motion of joint k alone produces the momentum F = I S_k, whose projection onto each joint above is an entry of M:

    M_jk = S_j^T F    (Walker and Orin 1982; Featherstone's composite-rigid-body algorithm)

The Coriolis matrix needs a second kind of composite. A body with twist (w, v) has the linear momentum P = m v + w x ms
and D = integral of (v + w x r) r^T dm = v ms^T + [w] Sigma. They are transformed by P' = R P and D' = R D R^T + P' p^T.
With

    B = [[tr(D) - D, 0], [-[P], 0]]        C_jk = S_j^T (I S'_k + B S_k),   C_kj = S'_j^T I S_k + S_j^T B^T S_k

C v are the velocity-dependent forces, and M' - 2 C is skew-symmetric (B as in Echeandia and Wensing 2021, for a rigid
body).

A rotor adds the momentum h to its body at a unit rate of its coordinate r. h is transformed like any momentum:

    M_jr = S_j^T (h, 0)      C_rj = S'_j^T (h, 0) + S_j^T (w x h, 0) / 2,   C_jr = S_j^T (w x h, 0) / 2

and [h] v_r / 2, half of the gyroscopic moment, is added to D; the other half is in C_jr.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import casadi as ca
import numpy as np

from torsor.dynamics.recursions.configuration import steps
from torsor.dynamics.recursions.elimination import Stiffness
from torsor.dynamics.recursions.kinematics import Move, moves, sx, twists
from torsor.dynamics.trees.tree import Body, Rotor, Tree
from torsor.spatial import ad, cross, rotational_inertia, skew

Coordinates = list[tuple[int, float]]


@dataclass(frozen=True, eq=False)
class Composite:
    """The subtree of a joint as one rigid body: second moments, first moments and mass in the joint frame."""

    Sigma: ca.SX
    ms: ca.SX
    m: float | ca.SX

    def momentum(self, S: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the (angular, linear) momentum about the origin for each column of S, which is a twist."""
        J, c = rotational_inertia(self.Sigma), skew(self.ms)
        return J @ S[:3, :] + c @ S[3:, :], self.m * S[3:, :] - c @ S[:3, :]

    def up(self, move: Move) -> "Composite":
        """Return the composite in the parent's frame."""
        ms = move.up(self.ms)
        h = ms + 0.5 * self.m * move.p
        outer = h @ move.p.T
        # One triangle is computed and mirrored, because the other would repeat the operations.
        Sigma = ca.triu2symm(ca.triu(move.up_tensor(self.Sigma) + outer + outer.T))
        return Composite(Sigma, ms + self.m * move.p, self.m)

    def __add__(self, other: "Composite") -> "Composite":
        return Composite(self.Sigma + other.Sigma, self.ms + other.ms, self.m + other.m)


def composites(tree: Tree, moved: list[Move]) -> list[Composite]:
    """Return the composite of each joint, in its body's frame, tips to root."""
    return summed(tree, moved, [Composite(move.body.Sigma, move.body.ms, move.body.mass) for move in moved])


def summed(tree: Tree, moved: list[Move], total: list[Composite]) -> list[Composite]:
    """Return the sum of the bodies that each joint carries, in its body's frame, tips to root."""
    for i in reversed(range(len(total))):
        parent = tree.bodies[i].parent
        if parent >= 0:
            total[parent] = total[parent] + total[i].up(moved[i])
    return total


def climb(tree: Tree, moved: list[Move], k: int, *wrench: ca.SX) -> Iterator[tuple[int, ca.SX]]:
    """Yield wrenches (n, f) on body k as columns (6 rows), in the frame of body k and of each body above it."""
    n, f = wrench
    while True:
        yield k, ca.vertcat(n, f)
        parent = tree.bodies[k].parent
        if parent < 0:
            return
        n, f = moved[k].up_wrench(n, f)
        k = parent


class Entries:
    """Accumulator of matrix blocks between joints or rotors, by the rows and columns of their coordinates."""

    def __init__(self, tree: Tree):
        self._tree = tree
        self._values: dict[tuple[int, int], ca.SX] = {}

    def add(self, row: Body | Rotor, column: Body | Rotor, block: ca.SX) -> None:
        """Add the block between the coordinates of two joints or rotors."""
        self.add_block(coordinates(row), coordinates(column), block)

    def add_block(self, rows: Coordinates, columns: Coordinates, block: ca.SX) -> None:
        """Add the block between several coordinates, each paired with the ratio of its joint."""
        values = iter(ca.vertsplit(ca.vec(ca.densify(block))) if block.numel() else [])
        for j, j_ratio in columns:
            for i, i_ratio in rows:
                value, ratio = next(values), i_ratio * j_ratio
                self.add_at(i, j, value if ratio == 1 else ratio * value)

    def add_both(self, row: Body | Rotor, column: Body | Rotor, block: ca.SX) -> None:
        """Add the block, and its transpose at the transposed place."""
        self.add(row, column, block)
        self.add(column, row, block.T)

    def add_at(self, row: int, column: int, value: ca.SX) -> None:
        """Add one entry."""
        before = self._values.get((row, column))
        self._values[row, column] = value if before is None else before + value

    def matrix(self) -> ca.SX:
        """Return the matrix (nv x nv); entries without a block are structural zeros."""
        n = self._tree.nv
        keys = sorted(self._values, key=lambda key: (key[1], key[0]))
        sparsity = ca.Sparsity.triplet(n, n, [i for i, _ in keys], [j for _, j in keys])
        return ca.SX(sparsity, ca.vertcat(ca.SX.zeros(0, 1), *(self._values[key] for key in keys)))


def coordinates(owner: Body | Rotor) -> Coordinates:
    """Return the coordinates of a joint or rotor, each paired with the ratio of the joint."""
    if isinstance(owner, Rotor):
        return [(owner.v, 1.0)]
    return [(k, owner.joint.ratio) for k in range(owner.v.start, owner.v.stop)]


def onto_coordinates(columns: Coordinates, nv: int) -> ca.SX:
    """Return the matrix (columns x nv) that maps columns of joints to coordinates."""
    matrix = ca.SX(len(columns), nv)
    for index, (coordinate, ratio) in enumerate(columns):
        matrix[index, coordinate] = ratio
    return matrix


def rotors(moved: list[Move]) -> Iterator[tuple[int, Rotor]]:
    """Yield each rotor, and each mode of a flexible link, with the index of the body that carries it."""
    return ((k, rotor) for k, move in enumerate(moved) for rotor in move.body.rotors)


def mass_matrix(tree: Tree, q: ca.SX, added: Stiffness | None = None) -> ca.SX:
    """Return M(q) (nv x nv), including rotors, with an impedance ``added`` if there is one."""
    moved, bodies = moves(tree, q), tree.bodies
    entries = Entries(tree)
    for k, composite in enumerate(composites(tree, moved)):
        for j, F in climb(tree, moved, k, *composite.momentum(moved[k].S)):
            block = moved[j].S.T @ F
            if j == k:
                entries.add(bodies[k], bodies[k], ca.triu2symm(ca.triu(block)))
            else:
                entries.add_both(bodies[j], bodies[k], block)
    for k, rotor in rotors(moved):
        for j, F in climb(tree, moved, k, *rotor.momentum):
            entries.add_both(bodies[j], rotor, moved[j].S.T @ F)
    for i, j, m in tree.coupled:
        entries.add_at(i, j, ca.SX(m))
        entries.add_at(j, i, ca.SX(m))
    for place, value in (added or {}).items():
        for i, j in {place, place[::-1]}:
            entries.add_at(i, j, value)
    return entries.matrix() + ca.diag(sx(tree.armature))


def coriolis_matrix(tree: Tree, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return C(q, v) (nv x nv): C v are the Coriolis and centrifugal forces, and M' - 2 C is skew-symmetric."""
    if tree.bends:
        return _flexible_coriolis_matrix(tree, q, v)
    moved, bodies = moves(tree, q), tree.bodies
    twist = twists(tree, moved, v)
    D, P = momentum_composites(tree, moved, twist, v)
    S_rate = [ad(V) @ move.S + move.S_rate(body.rate(v)) for body, move, V in zip(bodies, moved, twist, strict=True)]
    entries = Entries(tree)
    for k, (move, composite) in enumerate(zip(moved, composites(tree, moved), strict=True)):
        below = ca.vertcat(*composite.momentum(S_rate[k])) + times_B(D[k], P[k], move.S)
        above = ca.vertcat(*composite.momentum(move.S))
        turn = times_B_T(D[k], P[k], move.S)
        climbs = (climb(tree, moved, k, X[:3, :], X[3:, :]) for X in (below, above, turn))
        for (j, down), (_, up), (_, turned) in zip(*climbs, strict=True):
            entries.add(bodies[j], bodies[k], moved[j].S.T @ down)
            if j != k:
                entries.add(bodies[k], bodies[j], up.T @ S_rate[j] + turned.T @ moved[j].S)
    for k, rotor in rotors(moved):
        h, zero = sx(rotor.h), ca.SX.zeros(3, 1)
        half = cross(twist[k][:3], h) / 2
        for (j, F), (_, G) in zip(climb(tree, moved, k, h, zero), climb(tree, moved, k, half, zero), strict=True):
            gyroscopic = moved[j].S.T @ G
            entries.add(bodies[j], rotor, gyroscopic)
            entries.add(rotor, bodies[j], (S_rate[j].T @ F + gyroscopic).T)
    return entries.matrix()


def _flexible_coriolis_matrix(tree: Tree, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return the Coriolis matrix of a tree with flexible links, using CasADi's derivatives of M.

    It is the matrix of the Levi-Civita connection of the metric M in the fields e_k of unit velocities, whose Lie
    brackets are those of the joints' groups (Koszul's formula):

        2 C_ij = v(M_ij) + sum of v_k (e_j(M_ik) - e_i(M_jk)) + (M ad_v)_ij - (M ad_v)_ji - [e_j, e_i] . M v
    """
    n, M = tree.nv, ca.densify(mass_matrix(tree, q))
    slopes = ca.jacobian(ca.vec(M), q) @ steps(tree, q)
    along = [ca.reshape(slopes[:, k], n, n) for k in range(n)]  # e_k(M)
    rate = sum((along[k] * v[k] for k in range(n)), start=ca.SX.zeros(n, n))
    turned = ca.horzcat(*(along[j] @ v for j in range(n)))  # e_j(M) v as columns
    M_ad = M @ _brackets(tree, v)
    momentum = M @ v
    carried = ca.vertcat(*(momentum.T @ _brackets(tree, ca.SX(np.eye(n)[:, k])) for k in range(n)))  # [e_k, e_i] . M v
    return (rate + turned - turned.T + M_ad - M_ad.T - carried.T) / 2


def _brackets(tree: Tree, x: ca.SX) -> ca.SX:
    """Return ad_x (nv x nv), the Lie brackets of velocities; only those of rotations and poses are not zero."""
    result = ca.SX(tree.nv, tree.nv)
    for body in tree.bodies:
        if body.joint.type == "spherical":
            result[body.v, body.v] = skew(x[body.v])
        elif body.joint.type == "free":
            result[body.v, body.v] = ad(x[body.v])
    return result


def times_B(D: ca.SX, P: ca.SX, X: ca.SX) -> ca.SX:
    """Return B X for twists X (6 x m)."""
    w = X[:3, :]
    return ca.SX(ca.vertcat(rotational_inertia(D) @ w, -skew(P) @ w))


def times_B_T(D: ca.SX, P: ca.SX, X: ca.SX) -> ca.SX:
    """Return B^T X for twists X (6 x m), which are pure moments."""
    moment: ca.SX = rotational_inertia(D).T @ X[:3, :] + skew(P) @ X[3:, :]
    return ca.vertcat(moment, ca.SX.zeros(*moment.shape))


def momentum_composites(
    tree: Tree, moved: list[Move], twist: list[ca.SX], rates: ca.SX, scale: float = 1.0
) -> tuple[list[ca.SX], list[ca.SX]]:
    """Return D and P of the composite of each joint, in the body's frame, tips to root."""
    return carried_by_each(tree, moved, *body_momenta(tree, twist, rates, scale))


def body_momenta(tree: Tree, twist: list[ca.SX], rates: ca.SX, scale: float = 1.0) -> tuple[list[ca.SX], list[ca.SX]]:
    """Return ``scale`` times D and P of each single body; scaling the constants takes no operations."""
    D, P = [], []
    for body, V in zip(tree.bodies, twist, strict=True):
        w, v, P_body = V[:3], V[3:], scale * sx(body.P)
        Sigma, ms = P_body[:3, :3], P_body[:3, 3]
        D.append(v @ ms.T + skew(w) @ Sigma + scale / 2 * skew(body.spin(rates)))
        P.append(P_body[3, 3] * v + cross(w, ms))
    return D, P


def carried_by_each(tree: Tree, moved: list[Move], D: list[ca.SX], P: list[ca.SX]) -> tuple[list[ca.SX], list[ca.SX]]:
    """Return the sums of D and P over the composite of each joint, where D is the product of P with position."""
    for i in reversed(range(len(D))):
        parent = tree.bodies[i].parent
        if parent >= 0:
            P_up = moved[i].up(P[i])
            P[parent] = P[parent] + P_up
            D[parent] = D[parent] + moved[i].up_tensor(D[i]) + P_up @ moved[i].p.T
    return D, P
