"""Loads in pictures of a body: the backpack on the upper trunk, or the box between the hands, as boxes."""

from itertools import product

import numpy as np

from torsor.base.arrays import Array
from torsor.human.body.loads import Backpack, Box
from torsor.robot.robot import Robot

DEPTH = 0.3  # depth and height of a box in pictures (m); only its width is known
CORNERS = np.array(list(product((-0.5, 0.5), repeat=3)))
EDGES = [(a, b) for a in range(8) for b in range(a) if np.abs(CORNERS[a] - CORNERS[b]).sum() == 1]
COLOUR = "#a9794a"


def load_size(load: Backpack | Box) -> Array:
    """Return the edges (3,) of a load in pictures (m): across, up, forward.

    Example:
        >>> load_size(Box(8.0, width=0.4)).tolist()
        [0.4, 0.3, 0.3]
    """
    return np.full(3, load.size) if isinstance(load, Backpack) else np.array([load.width, DEPTH, DEPTH])


def load_pose(body: Robot, poses: Array, load: Backpack | Box) -> Array:
    """Return the pose (..., 4, 4) of the middle of a load, from the poses (..., L, 4, 4) of all links of the body.

    Its axes point across, up and forward.

    Example:
        >>> body = torsor.library.human()
        >>> pose = load_pose(body, body.poses(body.neutral()), Backpack(10.0, behind=0.2))
        >>> round(float(pose[2, 3]), 9)
        -0.2
    """
    found = np.zeros((*poses.shape[:-3], 4, 4))
    found[..., 3, 3] = 1.0
    if isinstance(load, Backpack):
        trunk = poses[..., body.link_names.index("spine4"), :3, :]
        found[..., :3, :3] = trunk[..., :3]
        found[..., :3, 3] = trunk @ np.array([0.0, load.height, -load.behind, 1.0])
        return found
    right, left = (_at(body, poses, f"{side}_knuckles") for side in ("right", "left"))
    across = _unit(left - right)
    forward = _unit(np.cross(across, [0.0, 1.0, 0.0]))
    found[..., :3, :3] = np.stack([across, np.cross(forward, across), forward], axis=-1)
    found[..., :3, 3] = (right + left) / 2
    return found


def load_corners(body: Robot, poses: Array, load: Backpack | Box) -> Array:
    """Return the corners (..., 8, 3) of a load, from the poses (..., L, 4, 4) of all links of the body.

    Example:
        >>> body = torsor.library.human()
        >>> corners = load_corners(body, body.poses(body.neutral()), Backpack(10.0))
        >>> corners.shape, bool(corners[:, 2].max() < 0.0)  # behind the back
        ((8, 3), True)
    """
    pose = load_pose(body, poses, load)
    local = load_size(load) * CORNERS
    return np.asarray(local @ np.swapaxes(pose[..., :3, :3], -1, -2) + pose[..., None, :3, 3])


def _at(body: Robot, poses: Array, name: str) -> Array:
    place = body.place(name)
    return np.asarray(poses[..., place.link, :3, :] @ place.pose[:, 3])


def _unit(vectors: Array) -> Array:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))
