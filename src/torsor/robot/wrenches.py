"""External wrenches from forces and moments at places: what ``external`` of the dynamics takes."""

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array, Maybe
from torsor.base.checks import common_shape, one_of, vectors
from torsor.base.errors import ModelError
from torsor.dynamics.recursions.places import AXES
from torsor.mechanism import Mechanism
from torsor.robot.kernels import RobotKernels


def wrench_at(
    kernels: RobotKernels, q: ArrayLike, place: str | int, moment: Maybe, force: Maybe, axes: str, point: Maybe
) -> Array:
    """Return ``external`` (..., L, 6) of one force and moment; see ``Robot.wrench_at``."""
    robot: Mechanism = kernels.mechanism
    one_of(axes, AXES, f"{robot.name}: wrench_at", "axes")
    at = robot.place(place)
    if at.link < 0:
        found = f"wrench_at at {place!r}, which is fixed to the base"
        raise ModelError(found, value=place, where=robot.name, allowed="a moving link, or a frame on one")
    if moment is None and force is None:
        raise ModelError("wrench_at without moment and force", where=robot.name, fix="give one, or both")
    n, f, x = (
        np.zeros(3) if each is None else vectors(each, 3, robot.name, what)
        for each, what in ((moment, "moment"), (force, "force"), (point, "point"))
    )
    x = at.pose[:3, 3] + x @ at.pose[:3, :3].T
    link = kernels.at_place("pose", (q,), at.link)
    shapes = {"moment": n.shape[:-1], "force": f.shape[:-1], "point": x.shape[:-1], "q": link.shape[:-2]}
    batch = common_shape(f"{robot.name}: wrench_at", **shapes)
    R = at.pose[:3, :3] if axes == "local" else np.swapaxes(link[..., :3, :3], -1, -2)  # to the link's axes
    n, f = ((R @ each[..., None])[..., 0] for each in (n, f))
    wrench = np.concatenate(np.broadcast_arrays(n + np.cross(x, f), f), axis=-1)
    external = np.zeros((*batch, len(robot.links), 6), dtype=link.dtype)
    external[..., at.link, :] = wrench
    return external
