"""Loads of the bearings of joints: axial and radial force, tilting moment, with peak and RMS over a motion."""

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
    """What the bearings of joints carry (..., L): forces in N, moments in N m, about the point of each joint.

    ``axial`` is the force along the joint's axis, with its sign, ``radial`` the size of the force across it,
    ``tilting`` the size of the moment across it. Joints without an axis (spherical, free) have all force as radial.

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
        """Return the largest sizes (L, 3) of axial, radial and tilting loads over all states."""
        return np.asarray(np.abs(self._columns()).max(axis=0))

    def rms(self) -> Array:
        """Return the root mean squares (L, 3) over all states."""
        return np.asarray(np.sqrt(np.mean(self._columns() ** 2, axis=0)))

    def _columns(self) -> Array:
        count = self.axial.shape[-1]
        return np.stack([each.reshape(-1, count) for each in self], axis=-1)


def bearing_loads(robot: Mechanism, wrenches: ArrayLike) -> BearingLoads:
    """Return the loads of bearings from joint wrenches (..., L, 6), as ``Robot.joint_wrenches`` gives them.

    A wrench (n, f) at the link's origin becomes n - p x f at the joint's point p, in the joint's frame, whose z axis is
    the joint's axis.

    Example:
        >>> robot = torsor.library.planar_chain(1)  # a rod of 1 kg and 1 m, hanging at x = 0, gravity along -y
        >>> still = robot.joint_wrenches([0.0], [0.0], [0.0])
        >>> bearing_loads(robot, still).radial.round(3).tolist()
        [9.81]
    """
    given = real_array(wrenches, robot.name, "wrenches")
    if given.shape[-2:] != (len(robot.links), 6):
        allowed = f"(..., {len(robot.links)}, 6), moment and force of each link"
        raise ModelError(f"have shape {given.shape}", argument="wrenches", where=robot.name, allowed=allowed)
    frames = np.array([joint.frame for joint in robot.joints])
    moments, forces = given[..., :3], given[..., 3:]
    at_joint = moments - np.cross(frames[:, :3, 3], forces)
    moment, force = (np.einsum("lji,...lj->...li", frames[:, :3, :3], each) for each in (at_joint, forces))
    has_axis = np.array([joint.type not in ("spherical", "free") for joint in robot.joints])
    axial = np.where(has_axis, force[..., 2], 0.0)
    radial = np.where(has_axis, np.hypot(force[..., 0], force[..., 1]), np.linalg.norm(force, axis=-1))
    tilting = np.where(has_axis, np.hypot(moment[..., 0], moment[..., 1]), 0.0)
    return BearingLoads(axial, radial, tilting)


def bearing_table(robot: Mechanism, loads: BearingLoads) -> Table:
    """Return peak and RMS of the loads of each joint as a table."""
    table = titled_table("Bearings", "joint", *(head for column in COLUMNS for head in (f"{column}, peak", "RMS")))
    for joint, peak, rms in zip(robot.joints, loads.peak(), loads.rms(), strict=True):
        pairs = (f"{value:.4g}" for pair in zip(peak, rms, strict=True) for value in pair)
        table.add_row(escape(joint.name), *pairs)
    return table
