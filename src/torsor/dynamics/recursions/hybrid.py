"""Hybrid dynamics: each coordinate is driven by motion (its acceleration is given) or by force (its force is given).

All by force is forward dynamics (Khalil calls it direct dynamics); the base by force and the joints by motion is the
inverse dynamics of a moving base; all by motion is inverse dynamics. The equations are always linear in the unknowns:

    1. inverse dynamics with the unknown accelerations at zero gives the forces tau0;
    2. the unknown accelerations x solve M_ff x = tau_f - tau0_f, by elimination from the tips to the root (articulated
       bodies, Khalil 2010, eqs. 36-54, without velocities, which step 1 includes):

           U = I S,  D = S^T U + Ia,  u = r - S^T p      I, p: articulated inertia and force of the body
           to the parent go  I - U U^T / D  and  p + U u / D

    3. and from the root to the tips  x = (u - U^T A) / D,  A <- A + S x;
    4. the forces of coordinates driven by motion are tau0 + S^T (I A + p).

A joint with several coordinates is eliminated one coordinate at a time, which is the same as all at once. A coordinate
that acts on several bodies (a motor on another link, joints with a common coordinate) is eliminated at their common
ancestor.
"""

from dataclasses import dataclass
from functools import reduce

import casadi as ca
import numpy as np

from torsor.dynamics.recursions.kinematics import Move, moves, sx
from torsor.dynamics.recursions.newton_euler import inverse_dynamics
from torsor.dynamics.recursions.passive import gather
from torsor.dynamics.trees.tree import Body, Tree
from torsor.spatial import skew

Stiffness = dict[tuple[int, int], ca.SX]


@dataclass(frozen=True, eq=False)
class _Articulated:
    """A symmetric 6 x 6 inertia by blocks: moment = A wd + B a, force = B^T wd + C a, about the body's origin."""

    A: ca.SX
    B: ca.SX
    C: ca.SX

    @classmethod
    def of(cls, body: Body) -> "_Articulated":
        return cls(body.J, sx(skew(body.ms)), sx(body.mass * ca.SX.eye(3)))

    def times(self, S: ca.SX) -> ca.SX:
        """Return the wrench (6 x 1) of an acceleration."""
        return ca.vertcat(self.A @ S[:3] + self.B @ S[3:], self.B.T @ S[:3] + self.C @ S[3:])

    def without(self, U: ca.SX, inverse: ca.SX, axis: int | None) -> "_Articulated":
        """Return I - U U^T / D, from 1 / D. If D is an entry of I, its row and column vanish, and are exact zeros."""
        w, v = U[:3], U[3:]
        scaled_w, scaled_v = w * inverse, v * inverse
        A, B, C = self.A - _mirror(w @ scaled_w.T), self.B - scaled_w @ v.T, self.C - _mirror(v @ scaled_v.T)
        if axis is not None:
            keep = np.ones(6)
            keep[axis] = 0.0
            kept_w, kept_v = sx(keep[:3]), sx(keep[3:])
            A, B, C = A * (kept_w @ kept_w.T), B * (kept_w @ kept_v.T), C * (kept_v @ kept_v.T)
        return _Articulated(A, B, C)

    def up(self, move: Move) -> "_Articulated":
        """Return the inertia in the parent's frame."""
        p = skew(move.p)
        C = _mirror(move.up_tensor(self.C))
        B_turned = move.up_tensor(self.B)
        B = B_turned + p @ C
        A = _mirror(move.up_tensor(self.A) - B_turned @ p + p @ B.T)
        return _Articulated(A, B, C)

    def __add__(self, other: "_Articulated") -> "_Articulated":
        return _Articulated(self.A + other.A, self.B + other.B, self.C + other.C)


def _mirror(matrix: ca.SX) -> ca.SX:
    """Return a symmetric matrix whose lower triangle is copied from its upper one, without further operations."""
    return ca.triu2symm(ca.triu(ca.densify(matrix)))


def _axis(S: ca.SX) -> int | None:
    """Return the entry that is 1 if S is a unit vector."""
    if not S.is_constant():
        return None
    numbers = np.asarray(ca.DM(S).full()).ravel()
    return int(np.argmax(numbers)) if sorted(numbers) == [0, 0, 0, 0, 0, 1] else None


@dataclass(frozen=True, eq=False)
class _Pivot:
    """An eliminated coordinate: x = (u - U . A - sum of c x over the coordinates that are eliminated later) / D.

    The ``inverse`` 1 / D is computed once: a division takes the time of ten products.
    """

    index: int
    U: ca.SX
    inverse: ca.SX
    u: ca.SX
    c: dict[int, ca.SX]


@dataclass(frozen=True, eq=False)
class _Step:
    """The joint's own motion: A <- A + S x."""

    index: int
    S: ca.SX


class _Elimination:
    """The equations of the unknown accelerations x, as a quadratic form in them and the acceleration A of each body.

    The form is A^T I A / 2 + p . A + sum of x U . A + sum of D x x / 2 - sum of u x, and the motion minimises it. A
    coordinate is eliminated at the lowest common ancestor of the bodies that it acts on; until then it is pending, and
    its U is transformed from body to body. Most coordinates act on one joint and are eliminated there. Those of motors
    on other links, and of several joints, are pending longer.
    """

    def __init__(self, tree: Tree, moved: list[Move], residual: dict[int, ca.SX], stiffness: Stiffness):
        self.tree, self.moved, self.u = tree, moved, dict(residual)
        self.inertia = [_Articulated.of(move.body) for move in moved]
        self.force = [ca.SX.zeros(6, 1) for _ in tree.bodies]
        self.pending: list[dict[int, ca.SX]] = [{} for _ in tree.bodies]  # U of the coordinates pending at a body
        self.D: dict[int, dict[int, ca.SX]] = {k: {k: ca.SX(tree.armature[k])} for k in residual}
        for i, j, m in tree.coupled:
            if i in residual and j in residual:
                self._couple(i, j, ca.SX(m))
        for (i, j), value in stiffness.items():
            self._couple(i, j, value)
        self.ends = _ends([move.body for move in moved], set(residual), stiffness)
        self.done: list[list[_Pivot | _Step]] = [[] for _ in tree.bodies]
        self.last: list[_Pivot] = []  # coordinates that are eliminated at the ground

    def _couple(self, i: int, j: int, value: ca.SX) -> None:
        for row, column in {(i, j), (j, i)}:
            self.D[row][column] = self.D[row].get(column, 0) + value

    def _pivot(self, k: int, U: ca.SX, pending: dict[int, ca.SX]) -> _Pivot:
        """Eliminate coordinate k from the equations of the pending ones."""
        pivot = _Pivot(k, U, 1 / self.D[k].pop(k), self.u.pop(k), self.D.pop(k))
        for m, c in pivot.c.items():
            del self.D[m][k]
            factor = c * pivot.inverse
            pending[m] = pending.get(m, ca.SX.zeros(6, 1)) - U * factor
            self.u[m] = self.u[m] - factor * pivot.u
            for n, other in pivot.c.items():
                if n <= m:
                    self._couple(m, n, -factor * other)
        return pivot

    def _eliminate(self, j: int, k: int, axis: int | None = None) -> None:
        pivot = self._pivot(k, self.pending[j].pop(k), self.pending[j])
        self.inertia[j] = self.inertia[j].without(pivot.U, pivot.inverse, axis)
        self.force[j] = self.force[j] + pivot.U * (pivot.u * pivot.inverse)
        self.done[j].append(pivot)

    def _move(self, j: int, k: int, S: ca.SX) -> None:
        """Let coordinate k move body j: substitute A + S x for A."""
        pending, IS = self.pending[j], self.inertia[j].times(S)
        for m, U in pending.items():
            self._couple(k, m, ca.dot(S, U) * (2 if m == k else 1))
        self._couple(k, k, ca.dot(S, IS))
        self.u[k] = self.u[k] - ca.dot(S, self.force[j])
        pending[k] = pending.get(k, ca.SX.zeros(6, 1)) + IS
        self.done[j].append(_Step(k, S))

    def inward(self) -> None:
        """Eliminate, from the tips to the root."""
        for j in reversed(range(len(self.tree.bodies))):
            body, pending = self.tree.bodies[j], self.pending[j]
            own = range(body.v.start, body.v.stop)
            for rotor in self.moved[j].body.rotors:
                if rotor.v in self.ends:
                    pending[rotor.v] = pending.get(rotor.v, ca.SX.zeros(6, 1)) + ca.vertcat(*rotor.momentum)
            for k in [k for k in pending if self.ends[k] == j and k not in own]:
                self._eliminate(j, k)
            for index, k in enumerate(own):
                if k in self.ends:
                    S = body.joint.ratio * self.moved[j].S[:, index]
                    alone = k not in pending and self.D[k][k].is_zero()
                    self._move(j, k, S)
                    if self.ends[k] == j:
                        self._eliminate(j, k, _axis(S) if alone else None)
            if body.parent >= 0:
                self._pass_up(j, body.parent)
        for k in sorted(self.D):
            self.last.append(self._pivot(k, ca.SX.zeros(6, 1), {}))

    def _pass_up(self, j: int, parent: int) -> None:
        n, f = self.moved[j].up_wrench(self.force[j][:3], self.force[j][3:])
        self.force[parent] = self.force[parent] + ca.vertcat(n, f)
        self.inertia[parent] = self.inertia[parent] + self.inertia[j].up(self.moved[j])
        for k, U in self.pending[j].items():
            up = ca.vertcat(*self.moved[j].up_wrench(U[:3], U[3:]))
            self.pending[parent][k] = self.pending[parent][k] + up if k in self.pending[parent] else up

    def outward(self) -> tuple[dict[int, ca.SX], ca.SX]:
        """Return the unknown accelerations, and the forces of all coordinates due to them, root to tips."""
        found: dict[int, ca.SX] = {}

        def solve(pivot: _Pivot, A: ca.SX) -> None:
            rest = pivot.u - ca.dot(pivot.U, A)
            for m, c in pivot.c.items():
                rest = rest - c * found[m]
            found[pivot.index] = rest * pivot.inverse

        for pivot in reversed(self.last):
            solve(pivot, ca.SX.zeros(6, 1))
        forces: list[tuple[int, ca.SX]] = []
        acceleration: list[ca.SX] = []
        for j, (body, move) in enumerate(zip(self.tree.bodies, self.moved, strict=True)):
            above = acceleration[body.parent] if body.parent >= 0 else ca.SX.zeros(6, 1)
            A = ca.vertcat(move.down(above[:3]), move.down(above[3:] - skew(move.p) @ above[:3]))
            # With the joint's own unknowns eliminated, this is the wrench through the joint.
            wrench = self.inertia[j].times(A) + self.force[j]
            for k, U in self.pending[j].items():
                wrench = wrench + U * found[k]
            for index, k in enumerate(range(body.v.start, body.v.stop)):
                if k not in self.ends:
                    forces.append((k, body.joint.ratio * ca.dot(move.S[:, index], wrench)))
            for act in reversed(self.done[j]):
                if isinstance(act, _Pivot):
                    solve(act, A)
                else:
                    A = A + act.S * found[act.index]
            others = (rotor for rotor in move.body.rotors if rotor.v not in self.ends)
            forces += [(rotor.v, ca.dot(ca.vertcat(*rotor.momentum), A)) for rotor in others]
            acceleration.append(A)
        for i, j, m in self.tree.coupled:
            forces += [(to, m * found[of]) for to, of in ((i, j), (j, i)) if of in found and to not in found]
        return found, gather(self.tree.nv, forces)


def _ends(bodies: list[Body], unknown: set[int], stiffness: Stiffness) -> dict[int, int]:
    """Return for each unknown coordinate the lowest common ancestor of the bodies it acts on, -1 for the ground."""
    acts_on: dict[int, set[int]] = {k: set() for k in unknown}
    for j, body in enumerate(bodies):
        for k in (*range(body.v.start, body.v.stop), *(rotor.v for rotor in body.rotors)):
            if k in unknown:
                acts_on[k].add(j)
    for i, j in stiffness:
        acts_on[i] = acts_on[j] = acts_on[i] | acts_on[j]

    def common(j: int, i: int) -> int:
        while i != j:  # parents come before children
            i, j = (i, bodies[j].parent) if i < j else (bodies[i].parent, j)
        return i

    return {k: reduce(common, acted) if acted else -1 for k, acted in acts_on.items()}


def solve_mass(
    tree: Tree, moved: list[Move], residual: dict[int, ca.SX], stiffness: Stiffness
) -> tuple[dict[int, ca.SX], ca.SX]:
    """Return x with (M + stiffness) x = residual for the coordinates in ``residual``, and M x of the others, in O(n).

    ``stiffness`` holds further entries (i, j), i <= j, of the matrix, which is symmetric.
    """
    elimination = _Elimination(tree, moved, residual, stiffness)
    elimination.inward()
    return elimination.outward()


def hybrid_dynamics(
    tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX, tau: ca.SX, forced: frozenset[int], external: ca.SX | None = None
) -> tuple[ca.SX, ca.SX]:
    """Return (a, tau) of all coordinates; tau is given for the coordinates in ``forced``, a for the others."""
    known = ca.vertcat(ca.SX.zeros(0, 1), *(ca.SX(0) if k in forced else a[k] for k in range(tree.nv)))
    tau0 = inverse_dynamics(tree, q, v, known, external)
    residual = {k: tau[k] - tau0[k] for k in forced}
    found, extra = solve_mass(tree, moves(tree, q), residual, {})
    all_a = [found[k] if k in forced else a[k] for k in range(tree.nv)]
    all_tau = [tau[k] if k in forced else tau0[k] + extra[k] for k in range(tree.nv)]
    return ca.vertcat(ca.SX.zeros(0, 1), *all_a), ca.vertcat(ca.SX.zeros(0, 1), *all_tau)


def forward_dynamics(tree: Tree, q: ca.SX, v: ca.SX, tau: ca.SX, external: ca.SX | None = None) -> ca.SX:
    """Return a = M^-1 (tau - C v - g - friction + J^T external) (nv x 1), in O(n)."""
    forced = frozenset(range(tree.nv))
    return hybrid_dynamics(tree, q, v, ca.SX.zeros(tree.nv, 1), tau, forced, external)[0]
