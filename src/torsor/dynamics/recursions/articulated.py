"""The inertia of articulated bodies, by blocks: what remains of it when coordinates are eliminated, and other axes."""

from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from torsor.dynamics.recursions.kinematics import Move, sx
from torsor.dynamics.trees.modal import Shape
from torsor.dynamics.trees.tree import Body
from torsor.spatial import skew


@dataclass(frozen=True, eq=False)
class Articulated:
    """A symmetric 6 x 6 inertia by blocks: moment = A wd + B a, force = B^T wd + C a, about the body's origin."""

    A: ca.SX
    B: ca.SX
    C: ca.SX

    @classmethod
    def of(cls, body: Body, condensed: tuple[Shape, ...] = ()) -> "Articulated":
        """Return the inertia of a body, the modes of some of its flexible links being eliminated."""
        rigid = replace(body, shapes=tuple(shape for shape in body.shapes if shape not in condensed))
        found = cls(rigid.J, sx(skew(rigid.ms)), sx(body.mass * ca.SX.eye(3)))
        for shape in condensed:
            whole = ca.vertcat(ca.horzcat(found.A, found.B), ca.horzcat(found.B.T, found.C))
            left = shape.condensed(whole)
            found = cls(mirror(left[:3, :3]), left[:3, 3:], mirror(left[3:, 3:]))
        return found

    def times(self, S: ca.SX) -> ca.SX:
        """Return the wrench (6 x 1) of an acceleration."""
        return ca.vertcat(self.A @ S[:3] + self.B @ S[3:], self.B.T @ S[:3] + self.C @ S[3:])

    def without(self, U: ca.SX, inverse: ca.SX, axis: int | None) -> "Articulated":
        """Return I - U U^T / D, from 1 / D. If D is an entry of I, its row and column vanish, and are exact zeros."""
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


def mirror(matrix: ca.SX) -> ca.SX:
    """Return a symmetric matrix whose lower triangle is copied from its upper one, without further operations."""
    return ca.triu2symm(ca.triu(ca.densify(matrix)))
