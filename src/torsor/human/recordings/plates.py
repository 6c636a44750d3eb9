"""Force plates: forces, centres of pressure and free moments in the axes of the laboratory, from what a plate measures.

Types 1 to 4 are those of the C3D format. A plate has axes of its own: x from corner 2 to corner 1, y from corner 4 to
corner 1, z = x × y, which points down, into the plate. Forces of type 3, of plates with four piezoelectric sensors, are
combined by the equations of their maker (Kistler).
"""

from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, describe

CHANNELS = {1: 6, 2: 6, 3: 8, 4: 6}  # by type


class Plate(NamedTuple):
    """A plate: its type, ``corners`` (4, 3) in m in laboratory axes, ``origin`` (3,) in m, and its channels.

    ``channels`` (K, 6 or 8) are in N, N m and m; those of type 4 are already multiplied by the calibration matrix.
    """

    name: str
    type: int
    corners: Array
    origin: Array
    channels: Array


def plate_axes(plate: Plate, where: str) -> Array:
    """Return the axes of a plate as columns of R (3, 3): x_laboratory = R x_plate.

    Example:
        >>> corners = np.array([[0.4, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.6, 0.0], [0.4, 0.6, 0.0]])
        >>> plate_axes(Plate("plate 1", 2, corners, np.zeros(3), np.zeros((1, 6))), "walk.c3d").tolist()
        [[1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, -1.0]]
    """
    first, second, _, fourth = plate.corners
    x, y = first - second, first - fourth
    z = np.cross(x, y)
    if not np.isfinite(z).all() or np.linalg.norm(z) < 1e-4:  # m²: smaller than any plate
        text, fix = f"{plate.name}: its corners enclose no area", "correct FORCE_PLATFORM:CORNERS in the file"
        raise ModelError(describe(text, where=where, fix=fix))
    y = np.cross(z, x)
    R: Array = np.stack([each / np.linalg.norm(each) for each in (x, y, z)], axis=1) + 0.0
    return R


def ground_reaction(plate: Plate, where: str, above: Array | None = None) -> tuple[Array, Array, Array]:
    """Return the force on the person, its centre of pressure and the free moment about it, each (K, 3), in lab axes.

    ``above`` (3,) is a point on the side of the plate where the person is, such as the mean of the markers; without it,
    that is against the plate's z axis. Files hold either the force on the plate or that on the person; the ground
    pushes and never pulls, which decides. Where nothing presses on the plate, the centre of pressure is NaN.

    Example:
        >>> corners = np.array([[0.4, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.6, 0.0], [0.4, 0.6, 0.0]])
        >>> plate = Plate("plate 1", 2, corners, np.array([0.0, 0.0, -0.04]), np.array([[0.0, 0, 700, 70, 0, 0]]))
        >>> [each.round(9).tolist() for each in ground_reaction(plate, "walk.c3d")[:2]]
        [[[0.0, 0.0, 700.0]], [[0.2, 0.2, 0.0]]]
    """
    R, center = plate_axes(plate, where), plate.corners.mean(axis=0)
    force, pressed, free = _in_plate_axes(plate)
    up = -R[:, 2] if above is None else R[:, 2] * np.sign((above - center) @ R[:, 2])
    upward = force @ R.T @ up
    sign = 1.0 if upward[np.argmax(np.abs(upward))] >= 0 else -1.0
    return sign * force @ R.T + 0.0, center + pressed @ R.T, sign * free @ R.T + 0.0


def _in_plate_axes(plate: Plate) -> tuple[Array, Array, Array]:
    """Return force, centre of pressure from the middle of the surface, and free moment, each (K, 3), in plate axes."""
    data, zeros = plate.channels, np.zeros(len(plate.channels))
    if plate.type == 1:  # the plate has computed the centre of pressure itself
        pressed = np.stack([data[:, 3], data[:, 4], zeros], axis=1)
        return data[:, :3], pressed, np.stack([zeros, zeros, data[:, 5]], axis=1)
    # From the origin of the plate's axes, below the surface, to the middle of the surface: up, against z.
    a, b, depth = plate.origin
    if plate.type == 3:
        fx12, fx34, fy14, fy23, fz1, fz2, fz3, fz4 = data.T
        force = np.stack([fx12 + fx34, fy14 + fy23, fz1 + fz2 + fz3 + fz4], axis=1)
        turn = b * (fx34 - fx12) + a * (fy14 - fy23)
        moment = np.stack([b * (fz1 + fz2 - fz3 - fz4), a * (fz2 + fz3 - fz1 - fz4), turn], axis=1)
        surface = np.array([0.0, 0.0, -abs(depth)])
    else:
        force, moment = data[:, :3], data[:, 3:]
        surface = plate.origin if depth <= 0 else -plate.origin  # many files give the opposite vector
    moment = moment - np.cross(surface, force)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        pressed = np.stack([-moment[:, 1] / force[:, 2], moment[:, 0] / force[:, 2], zeros], axis=1)
    pressed[~np.isfinite(pressed).all(axis=1)] = np.nan
    about = np.nan_to_num(pressed[:, 0] * force[:, 1] - pressed[:, 1] * force[:, 0])
    free = np.where(np.isnan(pressed[:, 0]), 0.0, moment[:, 2] - about)
    return force, pressed, np.stack([zeros, zeros, free], axis=1)
