"""Velocities and accelerations of sampled positions of a robot, quaternions among them.

Components of quaternions p are filtered and differentiated like other positions. The rotation is that of p / |p|, and

    omega = 2 vec(p* p') / |p|^2,      omega' = 2 vec(p* p'') / |p|^2 - 2 omega (p . p') / |p|^2

in the moved axes (p*: the conjugate; vec: the first three components). A free joint has v = R^T x' and
a = R^T x'' - omega x v of its origin x.
"""

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import real_array
from torsor.base.errors import ModelError, describe
from torsor.identification.differentiation import differentiate
from torsor.robot.robot import Robot

UNIT = 0.1  # deviation of the length of a quaternion from 1 that is accepted


def motion_of(
    robot: Robot, t: ArrayLike, q: ArrayLike, cutoff: float, *, periodic: bool = False, where: str = "motion_of"
) -> tuple[Array, Array, Array]:
    """Return filtered positions (T, nq), velocities and accelerations (T, nv) of positions q (T, nq) at times t (T,).

    Filter and arguments are those of ``differentiate``. Quaternions may change their sign from sample to sample.

    Example:
        >>> robot, t = torsor.library.free_flying_arm(), np.arange(200) * 0.01
        >>> q = np.tile(robot.neutral(), (200, 1))
        >>> q[:, 5], q[:, 6] = np.sin(t), np.cos(t)
        >>> motion_of(robot, t, q, 10.0)[1][100].round(6).tolist()[:3]
        [0.0, 0.0, 2.0]
    """
    positions = real_array(q, where, "q")
    if positions.ndim != 2 or positions.shape[1] != robot.nq:
        raise ModelError(describe(f"q has shape {positions.shape}", where=where, allowed=f"(samples, {robot.nq})"))
    positions = continuous(robot, positions)
    for four, _, _ in _turning(robot):
        _check_quaternions(positions[:, four], periodic, where)
    x, dx, ddx = differentiate(t, positions, cutoff, periodic=periodic, where=where)
    v, a = np.zeros((2, len(x), robot.nv))
    plain = [at for joint, at in zip(robot.joints, robot.coordinates, strict=True) if joint.nq == joint.nv]
    for at in (*plain, *robot.motor_coordinates.values()):
        v[:, at.v], a[:, at.v] = dx[:, at.q], ddx[:, at.q]
    for four, three, free in _turning(robot):
        p, dp, ddp = x[:, four], dx[:, four], ddx[:, four]
        square = np.sum(p * p, axis=1, keepdims=True)
        omega = 2 * _product(p, dp) / square
        v[:, three] = omega
        a[:, three] = 2 * (_product(p, ddp) - omega * np.sum(p * dp, axis=1, keepdims=True)) / square
        x[:, four] = p / np.sqrt(square)
        if free:
            place, own = slice(four.start - 3, four.start), slice(three.stop, three.stop + 3)
            v[:, own] = _back(x[:, four], dx[:, place])
            a[:, own] = _back(x[:, four], ddx[:, place]) - np.cross(omega, v[:, own])
    return x, v, a


def continuous(robot: Robot, q: Array) -> Array:
    """Return positions q (T, nq) whose quaternions do not change their sign from sample to sample.

    Example:
        >>> robot = torsor.library.quadruped()
        >>> q = np.stack([robot.neutral(), robot.neutral()])
        >>> q[1, 3:7] *= -1
        >>> continuous(robot, q)[1, 3:7].tolist()
        [0.0, 0.0, 0.0, 1.0]
    """
    found = q.copy()
    for four, _, _ in _turning(robot):
        flips = np.where(np.sum(q[1:, four] * q[:-1, four], axis=1) < 0, -1.0, 1.0)
        found[:, four] *= np.concatenate([[1.0], np.cumprod(flips)])[: len(q), None]
    return found + 0.0


def _turning(robot: Robot) -> list[tuple[slice, slice, bool]]:
    """Return where the quaternions are in q, where their rates are in v, and which belong to free joints."""
    return [
        (slice(at.q.stop - 4, at.q.stop), slice(at.v.start, at.v.start + 3), joint.nv == 6)
        for joint, at in zip(robot.joints, robot.coordinates, strict=True)
        if joint.nq != joint.nv
    ]


def _check_quaternions(p: Array, periodic: bool, where: str) -> None:
    """Raise ModelError for quaternions (T, 4) that are none, or have the other sign after a period."""
    lengths = np.linalg.norm(p, axis=1)
    wrong = ~(np.abs(lengths - 1) < UNIT)
    if wrong.any():
        k = int(np.argmax(wrong))
        found = f"the quaternion of sample {k} has the length {lengths[k]:.3g}"
        raise ModelError(describe(found, where=where, allowed="1", fix="check the order of the columns: x, y, z, w"))
    if periodic and float(p[-1] @ p[0]) < 0:
        fix = "give two periods, or periodic=False"
        raise ModelError(describe("a quaternion has the other sign after a period", where=where, fix=fix))


def _product(p: Array, r: Array) -> Array:
    """Return vec(p* r) (T, 3) of quaternions (x, y, z, w)."""
    return np.asarray(p[:, 3:] * r[:, :3] - r[:, 3:] * p[:, :3] - np.cross(p[:, :3], r[:, :3]))


def _back(p: Array, u: Array) -> Array:
    """Return R^T u (T, 3) for the rotations R of unit quaternions p (T, 4)."""
    across = np.cross(p[:, :3], u)
    return np.asarray(u - 2 * p[:, 3:] * across + 2 * np.cross(p[:, :3], across))
