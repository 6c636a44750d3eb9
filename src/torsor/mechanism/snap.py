"""Angles that were written with few digits become exact: 1.5708 becomes pi/2, and products with its cosine vanish.

Only directions change: rotations of joints and frames, axes, angles of offsets, and inertias whose principal axes are
that close to the link's axes. Lengths, masses and limits stay as they are.
"""

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from torsor.base.arrays import Array
from torsor.mechanism.parts import Frame, Joint, Link
from torsor.spatial import from_rpy, make_pose, to_rpy

STEP = math.pi / 12  # 15 degrees


def snapped_parts(
    links: Iterable[Link], joints: Iterable[Joint], frames: Iterable[Frame], within: float
) -> tuple[list[Link], list[Joint], list[Frame]]:
    """Return the parts with angles within ``within`` (rad) of multiples of pi/12 replaced by these.

    Example:
        >>> elbow = Joint("elbow", "revolute", "a", "b", make_pose(from_rpy([1.5708, 0, 0])), axis=(0, 1e-6, 1))
        >>> joint = snapped_parts([], [elbow], [], 1e-5)[1][0]
        >>> joint.placement[1].tolist(), joint.axis.tolist()
        ([0.0, 0.0, -1.0, 0.0], [0.0, 0.0, 1.0])
    """
    return (
        [replace(link, inertia=_inertia(link.inertia, within)) for link in links],
        [_joint(joint, within) for joint in joints],
        [replace(frame, pose=_pose(frame.pose, within)) for frame in frames],
    )


def _joint(joint: Joint, within: float) -> Joint:
    motor = joint.motor
    if motor is not None:
        motor = replace(motor, axis=_direction(motor.axis, within))
    offset = _angle(joint.offset, within) if joint.kind.turns == (True,) else joint.offset
    placement, axis = _pose(joint.placement, within), _direction(joint.axis, within)
    return replace(joint, placement=placement, axis=axis, offset=offset, motor=motor)


def _angle(angle: float, within: float) -> float:
    nearest = round(angle / STEP) * STEP
    return nearest if abs(angle - nearest) <= within else float(angle)


def _pose(T: Array, within: float) -> Array:
    return make_pose(_rotation(T[:3, :3], within), T[:3, 3])


def _rotation(R: Array, within: float) -> Array:
    """Return a rotation with those of its roll, pitch and yaw that are nearly multiples of pi/12 made exact."""
    given = to_rpy(R)
    roll, pitch, yaw = (_angle(angle, within) for angle in given)
    if abs(abs(pitch) - math.pi / 2) < 1e-12:  # gimbal lock: only the difference, or the sum, of roll and yaw matters
        roll, yaw = _angle(float(given[0] - math.copysign(1.0, pitch) * given[2]), within), 0.0
    exact = from_rpy([roll, pitch, yaw])
    return exact if np.abs(exact - R).max() <= 4 * within else R


def _direction(axis: Array, within: float) -> Array:
    """Return a unit vector with components near zero made zero, and an angle in a plane of two axes made exact."""
    kept = np.flatnonzero(np.abs(axis) > within)
    exact = np.zeros(3)
    if len(kept) == 1:
        exact[kept] = np.sign(axis[kept])
        return exact
    if len(kept) == 2:
        angle = _angle(math.atan2(axis[kept[1]], axis[kept[0]]), within)
        exact[kept] = math.cos(angle), math.sin(angle)
        return exact
    return axis


def _inertia(inertia: Array, within: float) -> Array:
    """Return an inertia without those products that a rotation of less than ``within`` about an axis would make."""
    moments = np.diag(inertia)
    small = np.abs(inertia) <= within * np.abs(moments[:, None] - moments[None, :])
    return np.where(small & ~np.eye(3, dtype=bool), 0.0, inertia)
