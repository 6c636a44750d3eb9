"""Hybrid dynamics: each coordinate is driven by motion (its acceleration is given) or by force (its force is given).

All by force is direct dynamics; the base by force and the joints by motion is the inverse dynamics of a moving base;
all by motion is plain inverse dynamics. Whatever is given, the equations of motion are linear in what is wanted:

    1. inverse dynamics with the unknown accelerations at zero gives the forces tau0;
    2. the unknown accelerations x solve M_ff x = tau_f - tau0_f, by elimination from the tips to the root (articulated
       bodies, document 003, eqs. 36-54, without velocities, since step 1 has taken them up):

           U = I S,  D = S^T U + Ia,  u = r - S^T p      I, p: articulated inertia and force of the body
           to the parent go  I - U U^T / D  and  p + U u / D

    3. and from the root to the tips  x = (u - U^T A) / D,  A <- A + S x;
    4. coordinates driven by motion need tau0 and, on top, S^T (I A + p).

A joint with several coordinates is eliminated one coordinate at a time, which is the same as all at once. Coordinates
that several joints share tie distant bodies together; with them the equations are solved with the mass matrix itself.
"""

from dataclasses import dataclass

import casadi as ca
import numpy as np

from torsor.dynamics.composite import mass_matrix
from torsor.dynamics.kinematics import Move, moves, sx
from torsor.dynamics.newton_euler import inverse_dynamics
from torsor.dynamics.tree import Body, Tree
from torsor.spatial import rotational_inertia, skew

__all__ = ["forward_dynamics", "hybrid_dynamics"]


@dataclass(frozen=True, eq=False)
class _Articulated:
    """A symmetric 6 x 6 inertia by blocks: moment = A wd + B a, force = B^T wd + C a, about the body's origin."""

    A: ca.SX
    B: ca.SX
    C: ca.SX

    @classmethod
    def of(cls, body: Body) -> "_Articulated":
        J, ms, m = rotational_inertia(body.P[:3, :3]), body.P[:3, 3], float(body.P[3, 3])
        return cls(sx(J), sx(skew(ms)), sx(m * np.eye(3)))

    def times(self, S: ca.SX) -> ca.SX:
        """Return the wrench (6 x 1) of an acceleration."""
        return ca.vertcat(self.A @ S[:3] + self.B @ S[3:], self.B.T @ S[:3] + self.C @ S[3:])

    def without(self, U: ca.SX, D: ca.SX, axis: int | None) -> "_Articulated":
        """Return I - U U^T / D. If D is an entry of I itself, its row and column vanish, and are made zero exactly."""
        w, v = U[:3], U[3:]
        scaled_w, scaled_v = w / D, v / D
        A, B, C = self.A - _mirrored(w @ scaled_w.T), self.B - scaled_w @ v.T, self.C - _mirrored(v @ scaled_v.T)
        if axis is not None:
            keep = np.ones(6)
            keep[axis] = 0.0
            kept_w, kept_v = sx(keep[:3]), sx(keep[3:])
            A, B, C = A * (kept_w @ kept_w.T), B * (kept_w @ kept_v.T), C * (kept_v @ kept_v.T)
        return _Articulated(A, B, C)

    def up(self, move: Move) -> "_Articulated":
        """Return the inertia in the parent's frame."""
        p = skew(move.p)
        C = _mirrored(move.up(move.up(self.C).T))
        B_turned = move.up(move.up(self.B.T).T)
        B = B_turned + p @ C
        A = _mirrored(move.up(move.up(self.A).T) - B_turned @ p + p @ B.T)
        return _Articulated(A, B, C)

    def __add__(self, other: "_Articulated") -> "_Articulated":
        return _Articulated(self.A + other.A, self.B + other.B, self.C + other.C)


def _mirrored(matrix: ca.SX) -> ca.SX:
    """Return a symmetric matrix whose lower triangle is its upper one, not the same numbers by other operations."""
    return ca.triu2symm(ca.triu(ca.densify(matrix)))


def _axis(S: ca.SX, inertia: float) -> int | None:
    """Return the entry that is 1 if S is a unit vector and no rotor inertia is added to its share of the inertia."""
    if inertia or not S.is_constant():
        return None
    numbers = np.asarray(ca.DM(S).full()).ravel()
    return int(np.argmax(numbers)) if sorted(numbers) == [0, 0, 0, 0, 0, 1] else None


@dataclass(frozen=True, eq=False)
class _Pivot:
    """What is kept of the elimination of one coordinate: its column of S, and U, D and u."""

    index: int
    S: ca.SX
    U: ca.SX
    D: ca.SX
    u: ca.SX


def _by_elimination(tree: Tree, moved: list[Move], residual: dict[int, ca.SX]) -> tuple[dict[int, ca.SX], ca.SX]:
    """Return the accelerations of the coordinates in ``residual``, and the forces that these ask of all coordinates."""
    inertia = [_Articulated.of(body) for body in tree.bodies]
    force = [ca.SX.zeros(6, 1) for _ in tree.bodies]
    pivots: list[list[_Pivot]] = [[] for _ in tree.bodies]
    for j in reversed(range(len(tree.bodies))):
        body, S = tree.bodies[j], tree.bodies[j].joint.ratio * moved[j].S
        for k, index in enumerate(range(body.v.start, body.v.stop)):
            if index in residual:
                column, rotor = S[:, k], body.joint.ratio**2 * float(np.asarray(body.joint.rotor_inertia)[k])
                U = inertia[j].times(column)
                D = ca.dot(column, U) + rotor
                u = residual[index] - ca.dot(column, force[j])
                pivots[j].append(_Pivot(index, column, U, D, u))
                inertia[j] = inertia[j].without(U, D, _axis(column, rotor))
                force[j] = force[j] + U * (u / D)
        if body.parent >= 0:
            n, f = moved[j].up_wrench(force[j][:3], force[j][3:])
            force[body.parent] = force[body.parent] + ca.vertcat(n, f)
            inertia[body.parent] = inertia[body.parent] + inertia[j].up(moved[j])
    found: dict[int, ca.SX] = {}
    extra = [ca.SX.zeros(1, 1)] * tree.nv
    acceleration: list[ca.SX] = []
    for j, (body, move) in enumerate(zip(tree.bodies, moved, strict=True)):
        above = acceleration[body.parent] if body.parent >= 0 else ca.SX.zeros(6, 1)
        A = ca.vertcat(move.down(above[:3]), move.down(above[3:] - skew(move.p) @ above[:3]))
        # With the joint's own unknowns eliminated, this is the wrench that the joint passes on.
        wrench = inertia[j].times(A) + force[j]
        for k, index in enumerate(range(body.v.start, body.v.stop)):
            if index not in residual:
                extra[index] = body.joint.ratio * ca.dot(move.S[:, k], wrench)
        for pivot in reversed(pivots[j]):
            found[pivot.index] = (pivot.u - ca.dot(pivot.U, A)) / pivot.D
            A = A + pivot.S * found[pivot.index]
        acceleration.append(A)
    return found, ca.vertcat(ca.SX.zeros(0, 1), *extra)


def _by_mass_matrix(tree: Tree, q: ca.SX, residual: dict[int, ca.SX]) -> tuple[dict[int, ca.SX], ca.SX]:
    """Return the same from the mass matrix, for coordinates that several joints share."""
    M = mass_matrix(tree, q)
    forced = sorted(residual)
    D, LT, order = ca.ldl(M[forced, forced])
    solved = ca.ldl_solve(ca.vertcat(*(residual[k] for k in forced)), D, LT, order)
    return dict(zip(forced, ca.vertsplit(solved), strict=True)), M[:, forced] @ solved


def hybrid_dynamics(
    tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX, tau: ca.SX, forced: frozenset[int], external: ca.SX | None = None
) -> tuple[ca.SX, ca.SX]:
    """Return (a, tau) complete: of the coordinates in ``forced`` tau is given, of the others a."""
    known = ca.vertcat(ca.SX.zeros(0, 1), *(ca.SX(0) if k in forced else a[k] for k in range(tree.nv)))
    tau0 = inverse_dynamics(tree, q, v, known, external)
    residual = {k: tau[k] - tau0[k] for k in forced}
    shared = len({body.v.start for body in tree.bodies}) < len(tree.bodies)
    found, extra = _by_mass_matrix(tree, q, residual) if shared else _by_elimination(tree, moves(tree, q), residual)
    all_a = [found[k] if k in forced else a[k] for k in range(tree.nv)]
    all_tau = [tau[k] if k in forced else tau0[k] + extra[k] for k in range(tree.nv)]
    return ca.vertcat(ca.SX.zeros(0, 1), *all_a), ca.vertcat(ca.SX.zeros(0, 1), *all_tau)


def forward_dynamics(tree: Tree, q: ca.SX, v: ca.SX, tau: ca.SX, external: ca.SX | None = None) -> ca.SX:
    """Return a = M^-1 (tau - C v - g - friction + J^T external) (nv x 1), in O(n)."""
    forced = frozenset(range(tree.nv))
    return hybrid_dynamics(tree, q, v, ca.SX.zeros(tree.nv, 1), tau, forced, external)[0]
