"""Composite bodies, tips to root: mass matrix and Coriolis matrix.

The composite of joint k is everything that the joint carries, as one rigid body. In pseudo-inertia form it moves to the
parent's frame as

    Sigma' = R Sigma R^T + p h^T + h p^T,  h = R ms + m p / 2;    ms' = R ms + m p

and a motion of joint k alone gives it the momentum F = I S_k, whose share on each joint above is an entry of M:

    M_jk = S_j^T F    (Walker and Orin 1982; Featherstone's composite-rigid-body algorithm)

The Coriolis matrix needs one more composite. A body with twist (w, v) has the linear momentum P = m v + w x ms and
D = integral of (v + w x r) r^T dm = v ms^T + [w] Sigma; they move as P' = R P, D' = R D R^T + P' p^T. With

    B = [[tr(D) - D, 0], [-[P], 0]]        C_jk = S_j^T (I S'_k + B S_k),   C_kj = S'_j^T I S_k + S_j^T B^T S_k

C v are the velocity forces and M' - 2 C is skew (Echeandia and Wensing 2021, whose B this is, worked out for a body).
"""

from dataclasses import dataclass

import casadi as ca

from torsor.dynamics.kinematics import Move, moves, sx, twists
from torsor.dynamics.newton_euler import rotor_force
from torsor.dynamics.tree import Tree
from torsor.spatial import ad, cross, skew

__all__ = ["coriolis_matrix", "mass_matrix"]


@dataclass(frozen=True, eq=False)
class _Composite:
    Sigma: ca.SX
    ms: ca.SX
    m: float

    def momentum(self, S: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return (angular, linear) momentum about the origin for each twist that is a column of S."""
        J, c = ca.trace(self.Sigma) * sx(ca.SX.eye(3)) - self.Sigma, skew(self.ms)
        return J @ S[:3, :] + c @ S[3:, :], self.m * S[3:, :] - c @ S[:3, :]

    def up(self, move: Move) -> "_Composite":
        """Return the composite in the parent's frame."""
        ms = move.up(self.ms)
        h = ms + 0.5 * self.m * move.p
        outer = h @ move.p.T
        # One triangle is computed and mirrored: the other would be the same numbers by other operations.
        Sigma = ca.triu2symm(ca.triu(move.up(move.up(self.Sigma).T) + outer + outer.T))
        return _Composite(Sigma, ms + self.m * move.p, self.m)

    def __add__(self, other: "_Composite") -> "_Composite":
        return _Composite(self.Sigma + other.Sigma, self.ms + other.ms, self.m + other.m)


def _composites(tree: Tree, moved: list[Move]) -> list[_Composite]:
    total = [_Composite(sx(b.P[:3, :3]), sx(b.P[:3, 3]), float(b.P[3, 3])) for b in tree.bodies]
    for i in reversed(range(len(total))):
        parent = tree.bodies[i].parent
        if parent >= 0:
            total[parent] = total[parent] + total[i].up(moved[i])
    return total


class _Entries:
    """Blocks of a matrix between joints, summed into the rows and columns of their coordinates."""

    def __init__(self, tree: Tree):
        self._tree = tree
        self._values: dict[tuple[int, int], ca.SX] = {}

    def add(self, row: int, column: int, block: ca.SX) -> None:
        """Add the block between the joints ``row`` and ``column``."""
        i, j = self._tree.bodies[row], self._tree.bodies[column]
        block = i.joint.ratio * j.joint.ratio * block
        for r in range(block.size1()):
            for c in range(block.size2()):
                key = (i.v.start + r, j.v.start + c)
                self._values[key] = self._values.get(key, 0) + block[r, c]

    def matrix(self) -> ca.SX:
        """Return the matrix (nv x nv); entries that no block touched are structural zeros."""
        n = self._tree.nv
        keys = sorted(self._values, key=lambda key: (key[1], key[0]))
        sparsity = ca.Sparsity.triplet(n, n, [i for i, _ in keys], [j for _, j in keys])
        return ca.SX(sparsity, ca.vertcat(ca.SX.zeros(0, 1), *(self._values[key] for key in keys)))


def mass_matrix(tree: Tree, q: ca.SX) -> ca.SX:
    """Return M(q) (nv x nv), rotor inertias included."""
    moved = moves(tree, q)
    entries = _Entries(tree)
    for k, composite in enumerate(_composites(tree, moved)):
        S = moved[k].S
        n, f = composite.momentum(S)
        block = S.T @ ca.vertcat(n, f)
        entries.add(k, k, ca.triu2symm(ca.triu(block)))
        j = k
        while tree.bodies[j].parent >= 0:
            n, f = moved[j].up_wrench(n, f)
            j = tree.bodies[j].parent
            block = moved[j].S.T @ ca.vertcat(n, f)
            entries.add(j, k, block)
            entries.add(k, j, block.T)
    return entries.matrix() + ca.diag(rotor_force(tree, ca.SX.ones(tree.nv, 1)))


def coriolis_matrix(tree: Tree, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return C(q, v) (nv x nv) with C v the velocity forces and M' - 2 C skew-symmetric. Friction is not in it."""
    moved = moves(tree, q)
    twist = twists(tree, moved, v)
    composites = _composites(tree, moved)
    D, P = _momentum_composites(tree, moved, twist)
    S_rate = [
        ad(V) @ move.S + move.S_rate(body.rate(v)) for body, move, V in zip(tree.bodies, moved, twist, strict=True)
    ]
    entries = _Entries(tree)
    for k, (move, composite) in enumerate(zip(moved, composites, strict=True)):
        Sw, Sv = move.S[:3, :], move.S[3:, :]
        n, f = composite.momentum(S_rate[k])
        spin = ca.trace(D[k]) * Sw
        below = n + spin - D[k] @ Sw, f - skew(P[k]) @ Sw  # I S' + B S
        above = composite.momentum(move.S)  # I S
        turn = spin - D[k].T @ Sw + skew(P[k]) @ Sv  # moment of B^T S, which has no force
        entries.add(k, k, move.S.T @ ca.vertcat(*below))
        j = k
        while tree.bodies[j].parent >= 0:
            below, above, turn = moved[j].up_wrench(*below), moved[j].up_wrench(*above), moved[j].up(turn)
            j = tree.bodies[j].parent
            entries.add(j, k, moved[j].S.T @ ca.vertcat(*below))
            entries.add(k, j, ca.vertcat(*above).T @ S_rate[j] + turn.T @ moved[j].S[:3, :])
    return entries.matrix()


def _momentum_composites(tree: Tree, moved: list[Move], twist: list[ca.SX]) -> tuple[list[ca.SX], list[ca.SX]]:
    """Return D and P of everything that each joint carries, in the body's frame, tips to root."""
    D, P = [], []
    for body, V in zip(tree.bodies, twist, strict=True):
        Sigma, ms, w, v = sx(body.P[:3, :3]), sx(body.P[:3, 3]), V[:3], V[3:]
        D.append(v @ ms.T + skew(w) @ Sigma)
        P.append(float(body.P[3, 3]) * v + cross(w, ms))
    for i in reversed(range(len(D))):
        parent = tree.bodies[i].parent
        if parent >= 0:
            P_up = moved[i].up(P[i])
            P[parent] = P[parent] + P_up
            D[parent] = D[parent] + moved[i].up(moved[i].up(D[i]).T).T + P_up @ moved[i].p.T
    return D, P
