"""Motions in a page: poses of links, centre of mass, energies, forces of drives, reactions, forces of the ground."""

from dataclasses import replace
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.mechanism.mechanism import force_units
from torsor.robot.robot import Robot
from torsor.spatial import to_quaternion
from torsor.view.pages.numbers import Numbers
from torsor.view.scene import Scene, Timeline

MOST = 2000  # samples of a motion


def packed(poses: Array) -> Array:
    """Return poses (..., 4, 4) as positions and quaternions x, y, z, w (..., 7).

    Example:
        >>> packed(np.eye(4)).tolist()
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    """
    return np.concatenate([poses[..., :3, 3], to_quaternion(poses[..., :3, :3])], axis=-1)


def shown_samples(line: Timeline, rate: float) -> Timeline:
    """Return the samples of a motion that a page stores: ``rate`` a second, and at most 2000."""
    wanted = np.ceil((line.times[-1] - line.times[0]) * rate) + 1
    return line.every(int(np.clip(wanted, 2, MOST)))


def motion(line: Timeline, scene: Scene, numbers: Numbers) -> dict[str, Any]:
    """Return a motion as data of a page; ``line`` has the samples that are stored."""
    robot, tree = line.robot, scene.tree
    energy = np.stack([tree.kinetic_energy(line.q, line.v), tree.potential_energy(line.q)], axis=-1)
    poses = scene.poses(line.q)[:, 1:]
    content: dict[str, Any] = {
        "title": line.title,
        "times": numbers.add(line.times),
        "poses": numbers.add(packed(poses)),
        "com": numbers.add(scene.center_of_mass(line.q)),
        "energy": numbers.add(energy),
    }
    if line.ahead is not None:
        content["ahead"] = line.ahead.tolist()
    light = robot.to(device="casadi")  # for few samples, compiling takes too long
    if robot.loops:
        content["closure"] = numbers.add(np.abs(light.closed.error(line.q)).max(axis=-1, initial=0.0))
    if line.tau is not None:
        drives = _drives(line, numbers)
        content |= {"drives": drives} if drives["names"] else {}
        reactions = replace(line, robot=light).reactions
        links = [k for k, link in enumerate(robot.links) if link.mass > 0]
        content["reactionsAt"] = [_joint(robot, k) for k in links]
        content["reactions"] = numbers.add(_in_base_axes(reactions[:, links], poses[:, links], content["reactionsAt"]))
    if line.ground is not None:
        content["ground"] = numbers.add(line.ground)
    elif line.external is not None:
        links = [k for k in range(len(robot.links)) if np.abs(line.external[:, k]).max() > 0]
        content["externalAt"] = [{"link": k, "place": [0.0, 0.0, 0.0]} for k in links]
        places = content["externalAt"]
        content["external"] = numbers.add(_in_base_axes(line.external[:, links], poses[:, links], places))
    return content


def _drives(line: Timeline, numbers: Numbers) -> dict[str, Any]:
    units = force_units(line.robot)
    tau = np.asarray(line.tau)
    limits = line.limits
    # Coordinates that nothing drives, such as those of a floating base or of passive joints, are left out.
    sizes = np.abs(np.where(np.isfinite(tau), tau, 0.0))
    driven = [k for k in range(len(line.driven)) if sizes[:, k].max() > 1e-9 or 0 < limits[k] < np.inf]
    driven = [k for k in driven if limits[k] > 0]
    drives: dict[str, Any] = {
        "names": [line.driven[k] for k in driven],
        "units": [units[line.driven[k]] for k in driven],
        "limits": [float(limits[k]) if np.isfinite(limits[k]) else None for k in driven],
        "tau": numbers.add(tau[:, driven]),
        "peak": float(sizes[:, driven].max(initial=0.0)),
    }
    if line.residuals is not None:
        drives["residuals"] = numbers.add(line.residuals[:, driven])
    return drives


def _joint(robot: Robot, link: int) -> dict[str, Any]:
    """Return where the joint of a link is, in the axes of the link."""
    return {"link": link, "place": robot.joints[link].frame[:3, 3].round(9).tolist()}


def _in_base_axes(wrenches: Array, poses: Array, places: list[dict[str, Any]]) -> Array:
    """Return wrenches (T, n, 6) at frames of links, in their axes, as moments about places and forces in base axes."""
    arms = np.array([each["place"] for each in places]).reshape(-1, 3)
    force = wrenches[..., 3:]
    moment = wrenches[..., :3] - np.cross(arms, force)
    both = np.stack([moment, force], axis=-2)
    turned = np.einsum("tnij,tnkj->tnki", poses[..., :3, :3], both)
    return np.asarray(turned.reshape(*wrenches.shape[:-1], 6))
