"""Discontinuities of friction at zero velocity."""

import casadi as ca
import numpy as np

from torsor.base.arrays import Array, Flags
from torsor.mechanism.drives import friction_at
from torsor.mechanism.mechanism import Mechanism
from torsor.mechanism.parts import Joint

AT_REST = 1e-12  # rad/s or m/s: speed at which friction is evaluated on both sides of a jump


def friction_jumps(robot: Mechanism, v: Array) -> Flags:
    """Return a mask (..., T - 1, nv) of the intervals between velocities v (..., T, nv) in which friction jumps.

    Coulomb friction has the sign of the velocity, unless the joint's friction is ``smooth``.
    """
    rough = np.zeros(robot.nv, dtype=bool)
    for joint, at in zip(robot.joints, robot.coordinates, strict=True):
        if not joint.follows:
            rough[at.v] = jumps(joint)
    sign = np.sign(v)
    return np.asarray((sign[..., 1:, :] != sign[..., :-1, :]) & rough)


def jumps(joint: Joint) -> Flags:
    """Return a mask (nv,) of a joint's velocities whose friction is discontinuous at rest."""
    if joint.smooth:
        return np.zeros(joint.nv, dtype=bool)
    rough = np.asarray(joint.coulomb) > 0
    if joint.friction_model:
        sides = (float(ca.evalf(ca.SX(friction_at(joint.friction_model, ca.SX(v))))) for v in (AT_REST, -AT_REST))
        ahead, back = sides
        rough = rough | (abs(ahead - back) > 10 * AT_REST * max(1.0, abs(ahead)))
    return np.asarray(rough)
