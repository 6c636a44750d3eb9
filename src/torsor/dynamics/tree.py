"""The mechanism as the recursions see it: bodies in joint frames, whose z axis is the joint's axis.

The last trace of a convention ends here: whatever the description was, a body has a constant pose in its parent's
frame, a joint that moves it from there, and a pseudo-inertia. Frames of the user's links are kept as poses in the
body's frame.

"""

from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from torsor.robot import Joint, Mechanism
from torsor.spatial import inverse_pose, make_pose, move_pseudo_inertia, pseudo_inertia

__all__ = ["ROUNDING", "Body", "Tree", "tidy", "tidy_inertia", "tidy_pose"]

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
    turn: float = 0.0  # what the joint has turned already in the pose T

    def position(self, q: ca.SX) -> ca.SX:
        """Return the joint's own positions from the robot's q."""
        offset = self.joint.offset + self.turn
        position = q[self.q] if self.joint.ratio == 1 else self.joint.ratio * q[self.q]
        return position + offset if offset else position

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
    def of(cls, mechanism: Mechanism) -> "Tree":
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
        return cls(tuple(map(tidy, bodies)), mechanism.nq, mechanism.nv, mechanism.gravity)


def tidy(body: Body) -> Body:
    """Return the body with exact zeros and ones where only rounding makes them something else."""
    return replace(body, T=tidy_pose(body.T), P=tidy_inertia(body.P), link=tidy_pose(body.link))


def _drop(values: Array, scale: float) -> Array:
    return np.where(np.abs(values) <= ROUNDING * scale, 0.0, values)


def tidy_pose(T: Array) -> Array:
    """Return a pose whose rounding errors next to 0 and 1 are gone."""
    R = _drop(T[:3, :3], 1.0)
    units = np.abs(np.abs(R) - 1) <= ROUNDING
    return make_pose(np.where(units, np.sign(R), R), _drop(T[:3, 3], max(np.abs(T[:3, 3]).max(), 0.1)))


def tidy_inertia(P: Array) -> Array:
    """Return a pseudo-inertia whose rounding errors next to 0 are gone."""
    kept = P.copy()
    for block in (np.s_[:3, :3], np.s_[:3, 3], np.s_[3, :3]):
        kept[block] = _drop(P[block], np.abs(P[block]).max())
    return kept
