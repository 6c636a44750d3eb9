"""Batches of motions in one scene: the place of each robot, the extent of the picture, and the terrain."""

from dataclasses import replace

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import number
from torsor.compiler import compile as compiled
from torsor.formats.meshes.triangles import Triangles
from torsor.simulation.timeline import Batch
from torsor.spatial import axis_frame
from torsor.view.scene.scene import Scene, upwards

CROWDED = 0.5  # mean distance of robots at the start, in sizes, below which they stand in a grid
SPACING = 1.3  # of the grid, in sizes
INSTANTS = 4  # samples of each motion from which the size of the picture is computed
OUTLYING, MOST = 3.0, 0.9  # the picture ignores robots at more than 3 times the distance of 90 % from the middle


def arranged(motions: Batch, scene: Scene, spacing: float | None) -> tuple[Batch, Array]:
    """Return a batch and the displacements (N, 3) at which its robots are drawn: zero, or a square grid.

    ``spacing`` (m) is that of the grid; 0 leaves the robots where they are. By default, they stand in a grid if they
    start at the same place and the ground is level. A batch in a grid has no terrain.
    """
    count = len(motions.q)
    level = axis_frame(upwards(scene.robot))[:, :2]
    if spacing is None:
        starts = scene.center_of_mass(motions.q[:, 0]) @ level
        close = np.ptp(starts, axis=0).max() < CROWDED * scene.size * np.sqrt(count)
        spacing = SPACING * scene.size if close and count > 1 and motions.terrain is None else 0.0
    width = int(np.ceil(np.sqrt(count)))
    cells = np.stack(np.divmod(np.arange(count), width)[::-1], axis=-1)
    offsets = number(spacing, "view", "spacing", least=0.0) * (cells - cells.max(axis=0) / 2) @ level.T
    if spacing and motions.terrain is not None:
        notes = *motions.notes, "The terrain is not drawn, because the robots are moved apart."
        motions = replace(motions, terrain=None, notes=notes)
    return motions, offsets


def extent(motions: Batch, scene: Scene, offsets: Array) -> tuple[Array, Array]:
    """Return the minimum and maximum coordinates (3,) of what a picture shows, without robots that are far away."""
    q = motions.every(INSTANTS).q
    centers = scene.center_of_mass(q)
    away = np.abs(centers - np.median(centers, axis=(0, 1))).max(axis=(1, 2))
    near = away <= max(OUTLYING * float(np.quantile(away, MOST)), scene.size)
    low, high = scene.corners(q[near])
    return low + offsets[near].min(axis=0), high + offsets[near].max(axis=0)


MAX_SAMPLES, MAX_LINES = 700, 300  # of a terrain along each axis: heights that are computed, and lines that are drawn
ACCURACY = 0.002  # largest error of a drawn terrain, in sizes of the robot, unless this takes too many lines


def ground_grid(height: ca.Function, low: Array, high: Array, accuracy: float) -> tuple[Array, Array, Array]:
    """Return lines x (m,) and y (n,), and heights (m, n) of a terrain between two corners, linear between the lines.

    The lines are where the slope changes. The error is at most ``accuracy`` (m) at the computed heights, or larger if
    this would take more than 300 lines.

    Example:
        >>> stairs = torsor.simulation.steps(0.1, 0.3)
        >>> x, y, z = ground_grid(stairs, np.array([-1.0, -1.0]), np.array([1.0, 1.0]), 0.001)
        >>> len(x) < 30, len(y), z.shape == (len(x), len(y))
        (True, 2, True)
    """
    x, y = (np.linspace(low[k], high[k], MAX_SAMPLES) for k in range(2))
    z = np.asarray(compiled(height)(*np.meshgrid(x, y, indexing="ij")))
    lines = [_bends(heights, accuracy) for heights in (z, z.T)]
    while max(map(len, lines)) > MAX_LINES:
        accuracy *= 2
        lines = [_bends(heights, accuracy) for heights in (z, z.T)]
    return x[lines[0]], y[lines[1]], z[np.ix_(*lines)]


def ground_surface(x: Array, y: Array, z: Array) -> Triangles:
    """Return the surface of a terrain between lines x (m,) and y (n,) with heights z (m, n)."""
    number = np.arange(z.size).reshape(z.shape)
    a, b, c, d = (part.ravel() for part in (number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]))
    faces = np.concatenate([np.stack([a, b, c], axis=-1), np.stack([a, c, d], axis=-1)])
    return Triangles(np.stack([*np.meshgrid(x, y, indexing="ij"), z], axis=-1).reshape(-1, 3), faces)


def _bends(heights: Array, accuracy: float) -> list[int]:
    """Return the rows of heights (m, n) between which all others are linear within ``accuracy`` (Douglas-Peucker)."""
    kept, open_ = [0, len(heights) - 1], [(0, len(heights) - 1)]
    while open_:
        first, last = open_.pop()
        part = np.linspace(0.0, 1.0, last - first + 1)[1:-1, None]
        between = heights[first] + part * (heights[last] - heights[first])
        errors = np.abs(heights[first + 1 : last] - between).max(axis=1, initial=0.0)
        if len(errors) and errors.max() > accuracy:
            middle = first + 1 + int(errors.argmax())
            kept.append(middle)
            open_ += [(first, middle), (middle, last)]
    return sorted(kept)
