"""Bearing loads of joints: axial force, radial force and tilting moment, with peak and RMS values over a motion."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from rich.markup import escape
from rich.table import Table

from torsor.base.arrays import Array
from torsor.base.checks import real_array
from torsor.base.errors import ModelError
from torsor.base.summary import titled_table
from torsor.mechanism import Mechanism

COLUMNS = ("axial force (N)", "radial force (N)", "tilting moment (N m)")


class BearingLoads(NamedTuple):
    """Bearing loads (..., L) of the joints: forces in N, and moments in N·m about each joint point.

    ``axial`` is the signed force along the joint axis, ``radial`` the magnitude of the force normal to it, and
    ``tilting`` the magnitude of the moment normal to it. For joints without an axis (spherical, free), the total force
    is radial.

    Example:
        >>> robot = torsor.library.six_axis_arm()
        >>> loads = bearing_loads(robot, robot.joint_wrenches(np.zeros(6), np.zeros(6), np.zeros(6)))
        >>> loads.peak().shape
        (6, 3)
    """

    axial: Array
    radial: Array
    tilting: Array

    def peak(self) -> Array:
        """Return the largest magnitudes (L, 3) of axial, radial and tilting loads over all states."""
        return np.asarray(np.abs(self._columns()).max(axis=0))

    def rms(self) -> Array:
        """Return the root mean square (L, 3) of each load over all states."""
        return np.asarray(np.sqrt(np.mean(self._columns() ** 2, axis=0)))

    def _columns(self) -> Array:
        count = self.axial.shape[-1]
        return np.stack([load.reshape(-1, count) for load in self], axis=-1)


def bearing_loads(robot: Mechanism, wrenches: ArrayLike) -> BearingLoads:
    """Return bearing loads from joint wrenches (..., L, 6), as returned by ``Robot.joint_wrenches``.

    A wrench (n, f) at the link origin becomes (n - p x f, f) at the joint point p. It is then expressed in the joint
    frame, whose z axis is the joint axis.

    Example:
        >>> robot = torsor.library.planar_chain(1)  # a horizontal rod of 1 kg, with gravity along -y
        >>> still = robot.joint_wrenches([0.0], [0.0], [0.0])
        >>> bearing_loads(robot, still).radial.round(3).tolist()
        [9.81]
    """
    values = real_array(wrenches, robot.name, "wrenches")
    if values.shape[-2:] != (len(robot.links), 6):
        allowed = f"(..., {len(robot.links)}, 6), moment and force of each link"
        raise ModelError(f"have shape {values.shape}", argument="wrenches", where=robot.name, allowed=allowed)
    frames = np.array([joint.frame for joint in robot.joints])
    moments, forces = values[..., :3], values[..., 3:]
    at_joint = moments - np.cross(frames[:, :3, 3], forces)
    moment, force = (np.einsum("lji,...lj->...li", frames[:, :3, :3], vectors) for vectors in (at_joint, forces))
    has_axis = np.array([joint.type not in ("spherical", "free") for joint in robot.joints])
    axial = np.where(has_axis, force[..., 2], 0.0)
    radial = np.where(has_axis, np.hypot(force[..., 0], force[..., 1]), np.linalg.norm(force, axis=-1))
    tilting = np.where(has_axis, np.hypot(moment[..., 0], moment[..., 1]), 0.0)
    return BearingLoads(axial, radial, tilting)


def bearing_table(robot: Mechanism, loads: BearingLoads) -> Table:
    """Return a table with the peak and RMS bearing loads of each joint."""
    table = titled_table("Bearings", "joint", *(head for column in COLUMNS for head in (f"{column}, peak", "RMS")))
    for joint, peak, rms in zip(robot.joints, loads.peak(), loads.rms(), strict=True):
        pairs = (f"{value:.4g}" for pair in zip(peak, rms, strict=True) for value in pair)
        table.add_row(escape(joint.name), *pairs)
    return table
