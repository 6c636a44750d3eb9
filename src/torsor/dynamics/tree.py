"""The mechanism as the recursions see it: bodies in joint frames, whose z axis is the joint's axis.

A conventions' last trace ends here: whatever the description was, a body has a constant pose in its parent's frame, a
joint that moves it from there, and a pseudo-inertia. Frames of the user's links are kept as poses in the body's frame.

``Tree.lean`` is an equivalent tree for everything that is seen through the coordinates alone (generalised forces, mass
matrix). It uses two freedoms, both exact:

- a joint frame may slide along its axis (a prismatic one anywhere), so its origin goes to the point nearest to the
  parent's origin, which makes components of the placement zero;
- inertia that a joint cannot tell from inertia of its parent moves to the parent, from the tips to the root (Khalil's
  regrouping), which makes three of ten inertial parameters zero at a revolute joint and six at a prismatic one.

Since the trace folds zeros away, that takes a quarter off the operations of inverse dynamics.
"""

from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from torsor.robot import Joint, Mechanism
from torsor.spatial import inverse_pose, make_pose, move_pseudo_inertia, pseudo_inertia

__all__ = ["Body", "Tree"]

Array = NDArray[np.float64]

# Entries below this fraction of their neighbours are rounding left over from products of rotations.
ROUNDING = 4e-15


@dataclass(frozen=True, eq=False)
class Body:
    """A link in its joint frame: ``T`` is the pose in the parent's frame at rest, ``P`` the pseudo-inertia (4 x 4)."""

    parent: int
    joint: Joint
    q: slice
    v: slice
    T: Array
    P: Array
    link: Array  # pose of the user's link frame in the body's frame

    def position(self, q: ca.SX) -> ca.SX:
        """Return the joint's own positions from the robot's q."""
        if self.joint.ratio == 1 and self.joint.offset == 0:
            return q[self.q]
        return self.joint.ratio * q[self.q] + self.joint.offset

    def rate(self, v: ca.SX) -> ca.SX:
        """Return the joint's own velocities (or accelerations) from the robot's."""
        return v[self.v] if self.joint.ratio == 1 else self.joint.ratio * v[self.v]


@dataclass(frozen=True, eq=False)
class Tree:
    """Bodies, parents before children, with the numbers of coordinates and gravity (m/s^2, in base axes)."""

    bodies: tuple[Body, ...]
    nq: int
    nv: int
    gravity: Array

    @classmethod
    def of(cls, mechanism: Mechanism, lean: bool = False) -> "Tree":
        """Return the tree of a mechanism."""
        frames = [joint.frame for joint in mechanism.joints]
        bodies = []
        for link, joint, parent, slices in zip(
            mechanism.links, mechanism.joints, mechanism.parents, mechanism.coordinates, strict=True
        ):
            to_body = inverse_pose(joint.frame)
            T = joint.placement @ joint.frame
            if parent >= 0:
                T = inverse_pose(frames[parent]) @ T
            P = move_pseudo_inertia(to_body, pseudo_inertia(*link.body))
            bodies.append(Body(parent, joint, slices.q, slices.v, T, P, to_body))
        if lean:
            bodies = _regroup(_slide(bodies))
        tidy = tuple(replace(b, T=_tidy_pose(b.T), P=_tidy_inertia(b.P), link=_tidy_pose(b.link)) for b in bodies)
        return cls(tidy, mechanism.nq, mechanism.nv, mechanism.gravity)


def _slide(bodies: list[Body]) -> list[Body]:
    """Root to tips: move each joint frame, where its joint allows, to the point nearest to the parent's origin."""
    slid: list[Body] = []
    shifts: list[Array] = []
    for body in bodies:
        T = inverse_pose(shifts[body.parent]) @ body.T if body.parent >= 0 else body.T
        shift = make_pose(p=body.joint.kind.free_shift(T[:3, :3].T @ T[:3, 3]))
        back = inverse_pose(shift)
        shifts.append(shift)
        slid.append(replace(body, T=T @ shift, P=move_pseudo_inertia(back, body.P), link=back @ body.link))
    return slid


def _regroup(bodies: list[Body]) -> list[Body]:
    """Tips to root: give to each parent the inertia that the joint between cannot tell from the parent's own."""
    P = [body.P for body in bodies]
    for i in reversed(range(len(bodies))):
        invisible = bodies[i].joint.kind.invisible(P[i])
        P[i] = P[i] - invisible
        if bodies[i].parent >= 0:
            P[bodies[i].parent] = P[bodies[i].parent] + move_pseudo_inertia(bodies[i].T, invisible)
    return [replace(body, P=Pi) for body, Pi in zip(bodies, P, strict=True)]


def _tidy(values: Array, scale: float) -> Array:
    return np.where(np.abs(values) <= ROUNDING * scale, 0.0, values)


def _tidy_pose(T: Array) -> Array:
    R = _tidy(T[:3, :3], 1.0)
    units = np.abs(np.abs(R) - 1) <= ROUNDING
    return make_pose(np.where(units, np.sign(R), R), _tidy(T[:3, 3], max(np.abs(T[:3, 3]).max(), 0.1)))


def _tidy_inertia(P: Array) -> Array:
    tidy = P.copy()
    for block in (np.s_[:3, :3], np.s_[:3, 3], np.s_[3, :3]):
        tidy[block] = _tidy(P[block], np.abs(P[block]).max())
    return tidy
