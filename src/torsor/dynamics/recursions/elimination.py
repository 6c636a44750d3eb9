"""Articulated bodies: elimination of unknown accelerations from the tips to the root (equations in ``hybrid``).

A joint with several coordinates is eliminated one coordinate at a time, which gives the same result as eliminating them
together. A coordinate that acts on several bodies (a motor on another link, joints with a common coordinate) is
eliminated at their common ancestor. There are two shortcuts for flexible links:

- The modes of a link that carries nothing have a constant mass matrix. They are eliminated together, without divisions,
  and terms that cancel are known beforehand (``Shape.condensed``).
- If few coordinates move a body on a flexible link, its motion is expressed in these coordinates, which takes fewer
  operations than transforming its inertia from body to body.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from functools import reduce
from typing import NamedTuple

import casadi as ca
import numpy as np

from torsor.dynamics.recursions.kinematics import Move, sx
from torsor.dynamics.recursions.newton_euler import to_body
from torsor.dynamics.recursions.passive import gather
from torsor.dynamics.trees.modal import Modal, Shape
from torsor.dynamics.trees.tree import Body, Tree
from torsor.spatial import skew

# The inertia of articulated bodies by blocks: elimination of coordinates, and changes of axes.


@dataclass(frozen=True, eq=False)
class Articulated:
    """A symmetric 6 x 6 inertia in blocks: moment = A wd + B a, force = B^T wd + C a, about the body's origin."""

    A: ca.SX
    B: ca.SX
    C: ca.SX

    @classmethod
    def of(cls, body: Body, condensed: tuple[Shape, ...] = ()) -> "Articulated":
        """Return the inertia of a body, with the modes of some of its flexible links eliminated."""
        rigid = replace(body, shapes=tuple(shape for shape in body.shapes if shape not in condensed))
        result = cls(rigid.J, sx(skew(rigid.ms)), sx(body.mass * ca.SX.eye(3)))
        for shape in condensed:
            whole = ca.vertcat(ca.horzcat(result.A, result.B), ca.horzcat(result.B.T, result.C))
            result = cls.from_matrix(shape.condensed(whole))
        return result

    @classmethod
    def from_matrix(cls, whole: ca.SX) -> "Articulated":
        """Return a symmetric matrix (6 x 6) in blocks."""
        return cls(mirror(whole[:3, :3]), whole[:3, 3:], mirror(whole[3:, 3:]))

    def times(self, S: ca.SX) -> ca.SX:
        """Return the wrench (6 x 1) of an acceleration."""
        return ca.vertcat(self.A @ S[:3] + self.B @ S[3:], self.B.T @ S[:3] + self.C @ S[3:])

    def without(self, U: ca.SX, inverse: ca.SX, axis: int | None) -> "Articulated":
        """Return I - U U^T / D, where ``inverse`` is 1 / D. If D is an entry of I, its row and column become zero."""
        w, v = U[:3], U[3:]
        scaled_w, scaled_v = w * inverse, v * inverse
        A, B, C = self.A - mirror(w @ scaled_w.T), self.B - scaled_w @ v.T, self.C - mirror(v @ scaled_v.T)
        if axis is not None:
            keep = np.ones(6)
            keep[axis] = 0.0
            kept_w, kept_v = sx(keep[:3]), sx(keep[3:])
            A, B, C = A * (kept_w @ kept_w.T), B * (kept_w @ kept_v.T), C * (kept_v @ kept_v.T)
        return Articulated(A, B, C)

    def turned(self, move: Move) -> "Articulated":
        """Return the inertia in the parent's axes, about the body's origin."""
        return Articulated(mirror(move.up_tensor(self.A)), move.up_tensor(self.B), mirror(move.up_tensor(self.C)))

    def shifted(self, move: Move) -> "Articulated":
        """Return the inertia in the parent's axes about the parent's origin."""
        p = skew(move.p)
        B = self.B + p @ self.C
        return Articulated(mirror(self.A - self.B @ p + p @ B.T), B, self.C)

    def __add__(self, other: "Articulated") -> "Articulated":
        return Articulated(self.A + other.A, self.B + other.B, self.C + other.C)


def on_body(body: Body, Z: ca.SX) -> ca.SX:
    """Return the impedance Z (6 x 6) of a link, which is about the origin of the user's frame, in the body's frame."""
    carried = ca.vertcat(*to_body(body, ca.SX.eye(6)))
    return carried @ Z @ carried.T


def mirror(matrix: ca.SX) -> ca.SX:
    """Return a symmetric matrix with its lower triangle copied from the upper one, which takes no operations."""
    return ca.triu2symm(ca.triu(ca.densify(matrix)))


# Maximum number of coordinates for this substitution, and maximum number of those that belong to ordinary joints.
# Beyond these limits, transforming the inertia takes fewer operations (counted for arms with beams, and for rods).
FEW, FEW_RIGID = 7, 1

Stiffness = dict[tuple[int, int], ca.SX]
LinkImpedance = Mapping[int, ca.SX]  # by link: 6 x 6, symmetric, from the acceleration of the link's frame to a wrench


class _Pivot(NamedTuple):
    """An eliminated coordinate: x = (u - U . A - sum of c x over coordinates eliminated later) * ``inverse``."""

    k: int
    U: ca.SX
    inverse: ca.SX
    u: ca.SX
    c: dict[int, ca.SX]


class _Shape(NamedTuple):
    """The eliminated modes of a flexible link that carries nothing: x = y - M^-1 U^T A, y = M^-1 u, M constant."""

    modes: range
    U: ca.SX
    inverse: ca.SX
    y: ca.SX


class _Step(NamedTuple):
    """The joint's own motion: A <- A + S x."""

    k: int
    S: ca.SX


class Elimination:
    """The equations of the unknown accelerations x, as a quadratic form in x and the acceleration A of each body.

    The motion minimises A^T I A / 2 + p . A + sum of x U . A + sum of D x x / 2 - sum of u x. A coordinate is
    eliminated at the lowest common ancestor of the bodies that it acts on. Until then it is pending, and its U is
    transformed from body to body. Most coordinates act on one joint and are eliminated there. Coordinates of motors on
    other links, and coordinates of several joints, are pending longer.
    """

    def __init__(self, tree: Tree, moved: list[Move], unknown: Set[int], stiffness: Stiffness, on_links: LinkImpedance):
        self.tree, self.moved = tree, moved
        self.light = _weightless(tree)
        self.D: dict[int, dict[int, ca.SX]] = {k: {k: ca.SX(tree.armature[k])} for k in unknown}
        for i, j, m in tree.coupled:
            if i in unknown and j in unknown:
                self._couple(i, j, ca.SX(m))
        for (i, j), value in stiffness.items():
            self._couple(i, j, value)
        self.ends = _ends([move.body for move in moved], unknown, stiffness)
        self.alone = [tuple(shape for shape in move.body.shapes if self._is_alone(shape)) for move in moved]
        self.condensed = {k for shapes in self.alone for shape in shapes for k in _own(shape.modal)}
        self.few = {j for j in range(len(moved)) if self._is_moved_by_few(j)}
        self.inertia = [Articulated.of(move.body, alone) for move, alone in zip(moved, self.alone, strict=True)]
        for j, Z in on_links.items():
            self.inertia[j] = self.inertia[j] + Articulated.from_matrix(on_body(tree.bodies[j], Z))
        self.u: dict[int, ca.SX] = {}
        self.force = [ca.SX.zeros(6, 1) for _ in tree.bodies]
        self.pending: list[dict[int, ca.SX]] = [{} for _ in tree.bodies]  # U of the coordinates pending at each body
        self.late: list[list[_Step]] = [[] for _ in tree.bodies]  # motions that are substituted in the parent's axes
        self.columns: dict[int, dict[int, ca.SX]] = {}
        self.motions: dict[int, dict[int, ca.SX]] = {}  # S of all coordinates of bodies that few coordinates move
        self.done: list[list[_Pivot | _Step | _Shape]] = [[] for _ in tree.bodies]
        self.last: list[_Pivot] = []  # coordinates that are eliminated at the ground

    def solve(self, residual: dict[int, ca.SX], wrenches: dict[int, ca.SX]) -> tuple[dict[int, ca.SX], ca.SX]:
        """Return the unknown x, and M x of the known coordinates, without the ``wrenches`` (6 x 1) on bodies."""
        self.u = dict(residual)
        for j, wrench in wrenches.items():
            self.force[j] = wrench
        self._inward()
        return self._outward()

    def _is_alone(self, shape: Shape) -> bool:
        """Return whether the modes of a flexible link act only on its clamping body, with a constant mass matrix."""
        modes = _own(shape.modal)
        bodies = [body for i, body in enumerate(self.tree.bodies) if i not in self.light]
        others = {k for body in bodies for k in _own(body)}
        others |= {rotor.v for body in bodies for rotor in body.rotors}
        if not set(modes) <= set(self.ends) - others or any(set(self.D[k]) - set(modes) for k in modes):
            return False
        mass = ca.vertcat(*(ca.horzcat(*(self.D[k].get(m, ca.SX(0)) for m in modes)) for k in modes))
        return bool(mass.is_constant() and np.array_equal(ca.DM(mass).full(), shape.modal.mass))

    def _is_moved_by_few(self, j: int) -> bool:
        """Return whether few coordinates move body j, all of them unknown, besides those that are eliminated at j.

        The body must also have or carry inertia, and be a flexible link or be carried by one.
        """
        bodies, chain = self.tree.bodies, [j]
        while bodies[chain[-1]].parent >= 0:
            chain.append(bodies[chain[-1]].parent)
        soft = {k for i in chain if bodies[i].joint.flexible is not None for k in _own(bodies[i])}
        movers = {k for i in chain for k in _own(bodies[i]) if self.ends.get(k) != j}
        few = len(movers) <= FEW and len(movers - soft) <= FEW_RIGID
        return bool(soft or bodies[j].modal) and movers <= set(self.ends) and j not in self.light and few

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

    def _substitute(self, k: int, S: ca.SX, inertia: Articulated, force: ca.SX, pending: dict[int, ca.SX]) -> None:
        """Substitute A + S x for A in the quadratic form."""
        IS = inertia.times(S)
        for m, U in pending.items():
            self._couple(k, m, ca.dot(S, U) * (2 if m == k else 1))
        self._couple(k, k, ca.dot(S, IS))
        self.u[k] = self.u[k] - ca.dot(S, force)
        pending[k] = pending.get(k, ca.SX.zeros(6, 1)) + IS

    def _inward(self) -> None:
        """Eliminate all unknown coordinates, from the tips to the root."""
        for j in reversed(range(len(self.tree.bodies))):
            body, pending = self.tree.bodies[j], self.pending[j]
            coordinates = _own(body)
            for shape in self.alone[j]:  # the inertia of the body already excludes them
                modes, U, inverse = _own(shape.modal), shape.momenta, sx(shape.modal.compliance)
                y = inverse @ ca.vertcat(*(self.u.pop(k) for k in modes))
                for k in modes:
                    del self.D[k]
                self.force[j] = self.force[j] + U @ y
                self.done[j].append(_Shape(modes, U, inverse, y))
            for rotor in self.moved[j].body.rotors:
                if rotor.v in self.D and rotor.v not in self.condensed:
                    pending[rotor.v] = pending.get(rotor.v, ca.SX.zeros(6, 1)) + ca.vertcat(*rotor.momentum)
            # Next to the ground, few coordinates are eliminated last, without using the motion of the body.
            last = body.parent < 0 and j in self.few and len({*pending, *coordinates}) <= FEW
            for k in [k for k in pending if self.ends[k] == j and k not in coordinates and not last]:
                self._eliminate(j, k)
            later = {k for k in coordinates if k in self.D and k not in pending and self.ends[k] != j} - self.condensed
            later = later if body.parent >= 0 else set()
            for index, k in enumerate(coordinates):
                if k in self.D and k not in later and k not in self.condensed:
                    S = body.joint.ratio * self.moved[j].S[:, index]
                    alone = k not in pending and self.D[k][k].is_zero()
                    self._substitute(k, S, self.inertia[j], self.force[j], pending)
                    self.done[j].append(_Step(k, S))
                    if self.ends[k] == j and not last:
                        self._eliminate(j, k, _axis(S) if alone else None)
            if j in self.few and not last:
                # All coordinates that move the body replace its motion, and its inertia is not passed up.
                self.motions[j], left = self._columns(j, later), dict(pending)
                for k, Z in self.motions[j].items():
                    self._substitute(k, Z, self.inertia[j], self.force[j], left)
            elif body.parent >= 0:
                self._pass_up(j, body.parent, later)
        for k in sorted(self.D):
            self.last.append(self._pivot(k, ca.SX.zeros(6, 1), {}))

    def _columns(self, j: int, coordinates: set[int]) -> dict[int, ca.SX]:
        """Return the motion (6 x 1) of body j for a unit of each of ``coordinates`` and of the unknowns above it."""
        body, move = self.tree.bodies[j], self.moved[j]
        if body.parent >= 0 and body.parent not in self.columns:
            self.columns[body.parent] = self._columns(body.parent, set(_own(self.tree.bodies[body.parent])))
        result = {k: move.down_twist(Z) for k, Z in self.columns.get(body.parent, {}).items()}
        for index, k in enumerate(_own(body)):
            if k in coordinates:
                result[k] = result.get(k, ca.SX.zeros(6, 1)) + body.joint.ratio * move.S[:, index]
        return result

    def _pass_up(self, j: int, parent: int, later: set[int]) -> None:
        body, move = self.tree.bodies[j], self.moved[j]
        force, inertia = move.up_both(self.force[j]), self.inertia[j].turned(move)
        pending = {k: move.up_both(U) for k, U in self.pending[j].items()}
        for index, k in enumerate(_own(body)):
            if k in later:
                # Nothing below depends on this coordinate, so its U is computed in the parent's axes directly.
                self.late[j].append(_Step(k, body.joint.ratio * move.S[:, index]))
                self._substitute(k, body.joint.ratio * move.S_before[:, index], inertia, force, pending)
        self.force[parent] = self.force[parent] + move.shifted(force)
        self.inertia[parent] = self.inertia[parent] + inertia.shifted(move)
        for k, U in pending.items():
            up = move.shifted(U)
            self.pending[parent][k] = self.pending[parent][k] + up if k in self.pending[parent] else up

    def _outward(self) -> tuple[dict[int, ca.SX], ca.SX]:
        """Return the unknown accelerations, and the forces of all coordinates due to them, root to tips."""
        result: dict[int, ca.SX] = {}

        def solve(pivot: _Pivot, A: ca.SX) -> None:
            rest = pivot.u - ca.dot(pivot.U, A)
            for m, c in pivot.c.items():
                rest = rest - c * result[m]
            result[pivot.k] = rest * pivot.inverse

        for pivot in reversed(self.last):
            solve(pivot, ca.SX.zeros(6, 1))
        forces: list[tuple[int, ca.SX]] = []
        acceleration: list[ca.SX] = []
        for j, (body, move) in enumerate(zip(self.tree.bodies, self.moved, strict=True)):
            above = acceleration[body.parent] if body.parent >= 0 else ca.SX.zeros(6, 1)
            A = ca.vertcat(move.down(above[:3]), move.down(above[3:] - skew(move.p) @ above[:3]))
            for step in self.late[j]:
                A = A + step.S * result[step.k]
            if j in self.motions:
                A = sum((Z * result[k] for k, Z in self.motions[j].items()), start=ca.SX.zeros(6, 1))
            # After eliminating the joint's own unknowns, this is the wrench through the joint.
            wrench = self.inertia[j].times(A) + self.force[j]
            for k, U in self.pending[j].items():
                wrench = wrench + U * result[k]
            for index, k in enumerate(_own(body)):
                if k not in self.ends:
                    forces.append((k, body.joint.ratio * ca.dot(move.S[:, index], wrench)))
            for act in reversed(self.done[j]):
                if isinstance(act, _Pivot):
                    solve(act, A)
                elif isinstance(act, _Shape):
                    x = act.y - act.inverse @ (act.U.T @ A)
                    result |= {k: x[index] for index, k in enumerate(act.modes)}
                else:
                    A = A + act.S * result[act.k]
            others = (rotor for rotor in move.body.rotors if rotor.v not in self.ends)
            forces += [(rotor.v, ca.dot(ca.vertcat(*rotor.momentum), A)) for rotor in others]
            acceleration.append(A)
        for i, j, m in self.tree.coupled:
            forces += [(to, m * result[of]) for to, of in ((i, j), (j, i)) if of in result and to not in result]
        return result, gather(self.tree.nv, forces)


def _own(part: Body | Modal) -> range:
    """Return the coordinates of a body's joint, or of a flexible link's modes."""
    return range(part.v.start, part.v.stop)


def _weightless(tree: Tree) -> set[int]:
    """Return the indices of the bodies that neither have nor carry inertia."""
    heavy = [bool(body.modal or body.rotors or isinstance(body.P, ca.SX) or np.any(body.P)) for body in tree.bodies]
    for j in reversed(range(len(heavy))):
        if heavy[j] and tree.bodies[j].parent >= 0:
            heavy[tree.bodies[j].parent] = True
    return {j for j, item in enumerate(heavy) if not item}


def _ends(bodies: list[Body], unknown: Set[int], stiffness: Stiffness) -> dict[int, int]:
    """Return the lowest common ancestor of the bodies that each unknown coordinate acts on, or -1 for the ground."""
    acts_on: dict[int, set[int]] = {k: set() for k in unknown}
    for j, body in enumerate(bodies):
        for k in (*_own(body), *(rotor.v for rotor in body.rotors)):
            if k in unknown:
                acts_on[k].add(j)
    for i, j in stiffness:
        acts_on[i] = acts_on[j] = acts_on[i] | acts_on[j]

    def common(j: int, i: int) -> int:
        while i != j:  # parents come before children
            i, j = (i, bodies[j].parent) if i < j else (bodies[i].parent, j)
        return i

    return {k: reduce(common, acted) if acted else -1 for k, acted in acts_on.items()}


def _axis(S: ca.SX) -> int | None:
    """Return the index of the nonzero entry if S is a coordinate unit vector, otherwise None."""
    if not S.is_constant():
        return None
    numbers = np.asarray(ca.DM(S).full()).ravel()
    return int(np.argmax(numbers)) if sorted(numbers) == [0, 0, 0, 0, 0, 1] else None
