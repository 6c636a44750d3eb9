"""Floating bases and environment forces: coordinates without a drive, and external wrenches.

    Y(q, v, a) pi = tau + sum over links of J^T w

Here w are the environment wrenches. A floating base has no drive: its six tau are zero, and the ground reaction forces
move the whole robot. These six equations alone determine all link parameters that joint torques determine (Ayusawa,
Venture and Nakamura, "Identifiability and identification of inertial parameters using the underactuated base-link
dynamics for legged multibody systems", 2014).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import real_array
from torsor.base.errors import ModelError
from torsor.identification.closed_robot import ClosedRobot, MeasuredRobot, whole

ALLOWED_WRENCHES = "(samples, links, 6), as external of inverse_dynamics, or {link or frame: (samples, 6)}"


def free_coordinates(robot: MeasuredRobot) -> list[int]:
    """Return the indices of the floating-base coordinates, which have no drives.

    A floating base is a free joint at the base, or three prismatic and three revolute joints in series with massless
    links between them, as in ``library.human`` and in OpenSim skeletons.
    """
    coordinates = [
        k
        for joint, parent, at in zip(robot.joints, robot.parents, robot.coordinates, strict=True)
        if joint.kind.name == "free" and parent < 0
        for k in range(at.v.start, at.v.stop)
    ]
    kinds = sorted(joint.kind.name for joint in robot.joints[:6])
    chain = list(robot.parents[:6]) == list(range(-1, 5)) and not any(link.mass for link in robot.links[:5])
    return list(range(6)) if chain and kinds == ["prismatic"] * 3 + ["revolute"] * 3 else coordinates


def wrenches_of(robot: MeasuredRobot, q: Array, external: ArrayLike | Mapping[str, ArrayLike]) -> Array:
    """Return ``external`` (N, L, 6) at positions q (N, nq), from an array of this shape or from named wrenches.

    {place: (N, 6)} contains the moment (N m) and force (N) exerted by the environment at the origin of a link or frame,
    in local axes. ``Robot.wrench_at`` returns arrays for forces in base axes or at other points; these arrays can be
    added.
    """
    where = f"{robot.name}: external"
    if not isinstance(external, Mapping):
        values = _flat(real_array(external, robot.name, "external"), 2)
        return _checked(values, (len(q), len(whole(robot).links), 6), where)
    if isinstance(robot, ClosedRobot):
        fix = "pass an array (N, L, 6) with all links of the mechanism"
        raise ModelError("wrenches by name are not supported for a robot with closed loops", where=where, fix=fix)
    wrenches = np.zeros((len(q), len(robot.links), 6))
    for place, each in external.items():
        values = _flat(real_array(each, where, f"wrench of {place!r}"), 1)
        wrench = _checked(values, (len(q), 6), f"{where} of {place!r}")
        wrenches += robot.wrench_at(q, place, moment=wrench[:, :3], force=wrench[:, 3:], axes="local")
    return wrenches


def _flat(values: Array, core: int) -> Array:
    """Return values (..., *core axes) with the leading axes flattened into one sample axis."""
    return values.reshape(-1, *values.shape[-core:]) if values.ndim > core + 1 and values.size else values


def _checked(wrenches: Array, shape: tuple[int, ...], where: str) -> Array:
    if wrenches.shape != shape:
        message = f"the wrenches have shape {wrenches.shape}"
        raise ModelError(message, where=where, allowed=f"{ALLOWED_WRENCHES}, here {shape}")
    finite = np.isfinite(wrenches).reshape(len(wrenches), -1).all(axis=1)
    if not finite.all():
        message = f"wrenches are not finite in {(~finite).sum()} samples, first in sample {int(np.argmin(finite))}"
        raise ModelError(message, where=where, fix="remove these samples")
    return wrenches


def environment_forces(robot: MeasuredRobot, q: Array, external: Array | None) -> Array:
    """Return the generalised forces J^T w (N, nv) of environment wrenches (N, L, 6)."""
    if external is None:
        return np.zeros((len(q), robot.nv))
    rest = np.zeros(robot.nv)
    return np.asarray(robot.inverse_dynamics(q, rest, rest) - robot.inverse_dynamics(q, rest, rest, external))


def forces_of(
    robot: MeasuredRobot, count: int, tau: ArrayLike | None, measured: list[int] | None
) -> tuple[Array, Array]:
    """Return the forces (N, nv) of ``count`` samples and their weights (N, nv), which are 0 for unmeasured forces.

    ``tau`` has shape (N, nv), or (N, nv - 6) without the floating base. ``measured`` lists the indices of the
    coordinates with measured forces (None: all). Without ``tau``, only the forces of a floating base are known.
    """
    base, where = free_coordinates(robot), robot.name
    if tau is None and (measured is not None or not base):
        message = "tau is missing" if base else "tau is missing, and the robot has no floating base"
        fix = "pass tau; values of coordinates that are not in `measured` are ignored"
        raise ModelError(message, where=where, fix=fix)
    known = np.zeros(robot.nv, dtype=bool)
    known[list(base)] = True
    forces = np.zeros((count, robot.nv))
    if tau is not None:
        columns = _forces(robot, count, tau, base)
        known[slice(None) if measured is None else measured] = True
        forces[:, known] = columns[:, known]
        if measured is None and forces[:, base].any():
            fix = "pass the forces that act on the base as `external`"
            message = "tau is not zero on the floating base, which has no drives"
            raise ModelError(message, where=where, allowed="zero", fix=fix)
        forces[:, base] = 0.0
    return forces, np.tile(known.astype(float), (count, 1))


def _forces(robot: MeasuredRobot, count: int, tau: Any, base: list[int]) -> Array:
    columns = _flat(real_array(tau, robot.name, "tau"), 1)
    driven = np.setdiff1d(np.arange(robot.nv), base)
    if columns.shape == (count, robot.nv):
        return columns
    if not base or columns.shape != (count, len(driven)):
        allowed = f"({count}, {robot.nv})" + (
            f", or ({count}, {len(driven)}) without the floating base" if base else ""
        )
        raise ModelError(f"has shape {columns.shape}", argument="tau", where=robot.name, allowed=allowed)
    forces = np.zeros((count, robot.nv))
    forces[:, driven] = columns
    return forces
