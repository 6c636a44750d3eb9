"""Discontinuities of Coulomb friction."""

import numpy as np

from torsor.base.arrays import Array, Flags
from torsor.mechanism.mechanism import Mechanism


def friction_jumps(robot: Mechanism, v: Array) -> Flags:
    """Return the intervals (..., T - 1, nv) of velocities v (..., T, nv) in which Coulomb friction jumps.

    Friction has the sign of the velocity, unless the joint's friction is ``smooth``.
    """
    rough = np.zeros(robot.nv, dtype=bool)
    for joint, at in zip(robot.joints, robot.coordinates, strict=True):
        if not joint.follows and not joint.smooth:
            rough[at.v] = np.asarray(joint.coulomb) > 0
    sign = np.sign(v)
    return np.asarray((sign[..., 1:, :] != sign[..., :-1, :]) & rough)
