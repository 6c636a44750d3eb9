"""Forces of the ground and of the environment as arrows of a length in a picture."""

import numpy as np

from torsor.base.arrays import Array
from torsor.simulation.timeline import Timeline
from torsor.view.scene.scene import Scene

LONG = 1 / 3  # length of the arrow of the whole weight, in sizes of the robot
G = 9.81  # m/s^2, where the robot has no weight
LEAST = 1e-3  # arrows shorter than this part of the size are not drawn


def arrows(line: Timeline, scene: Scene) -> Array | None:
    """Return arrows (T, n, 7) of a motion: start and vector (m) in base axes, then 1 for forces of the ground, else 0.

    Forces of the ground begin where they press, those of other external wrenches at the origins of their links. NaN is
    no arrow, None no force at all.

    Example:
        >>> from torsor.view.scene import Scene, timeline
        >>> arm = torsor.library.two_link()
        >>> pushed = torsor.simulate(arm, duration=0.1, external=[[0.0] * 6, [0, 0, 0, 0, 5.0, 0]])
        >>> arrows(timeline(pushed), Scene.of(arm)).shape
        (101, 1, 7)
    """
    weight = line.robot.mass * (float(np.linalg.norm(line.robot.gravity)) or G) or 1.0
    scale = LONG * scene.size / weight
    if line.ground is not None:
        parts, kind = (line.ground[..., :3], scale * line.ground[..., 3:]), 1.0
    elif line.external is not None and line.external[..., 3:].any():
        links = np.flatnonzero(line.external[..., 3:].any(axis=(0, 2)))
        poses = scene.poses(line.q)[:, links + 1]
        ways = np.einsum("tnij,tnj->tni", poses[..., :3, :3], line.external[:, links, 3:])
        parts, kind = (poses[..., :3, 3], scale * ways), 0.0
    else:
        return None
    found = np.concatenate([*parts, np.full((*parts[0].shape[:-1], 1), kind)], axis=-1)
    found[np.linalg.norm(parts[1], axis=-1) < LEAST * scene.size] = np.nan
    return found
