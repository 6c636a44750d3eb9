"""Accelerations and forces along a motion whose coordinates are prescribed in part."""

import numpy as np

from torsor.base.arrays import Array
from torsor.simulation.prescribed import Prescribed
from torsor.simulation.trajectory import forward_dynamics


def needed(
    prescribed: Prescribed, times: Array, q: Array, v: Array, tau: Array, external: Array | None
) -> tuple[Array, Array]:
    """Return the accelerations (..., T, nv), and the forces (..., T, nv) of all coordinates, at samples of a motion.

    The forces of prescribed coordinates are those that their motion needs. With loops these follow from the response of
    the closed mechanism, which is linear: unit forces of each prescribed coordinate, and then those that give it its
    acceleration.
    """
    robot, given = prescribed.robot, prescribed.v
    wanted = np.array([prescribed.at(float(t))[2] for t in times])
    if not robot.loops:
        a, tau = robot.hybrid_dynamics(q, v, wanted, tau, prescribed.forced, external)
        return a, tau
    dynamics, tau = forward_dynamics(robot), np.array(np.broadcast_to(tau, v.shape))
    tau[..., given] = 0.0
    start = dynamics(q, v, tau, external)
    response = np.stack([dynamics(q, v, tau + np.eye(robot.nv)[k], external) - start for k in given], axis=-1)
    missing = wanted[..., given] - start[..., given]
    forces = np.linalg.solve(response[..., given, :], missing[..., None])[..., 0]
    tau[..., given] = forces
    return start + (response @ forces[..., None])[..., 0], tau
