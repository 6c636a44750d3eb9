"""Arrows of forces and moments: one node draws all of a kind; those without a length are not seen."""

from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.formats.meshes.triangles import turned
from torsor.view.live.figure import PLAIN

AROUND = 8  # corners of circles
SHAPE = turned([(0.0, 0.0), (1.0, 0.0), (1.0, 0.72), (2.7, 0.72), (0.0, 1.0)], AROUND)  # along z, of length 1
THIN, SLIM = 0.006, 0.06  # radius of an arrow: in sizes of the robot, and at most in lengths of the arrow
LEAST = 1e-3  # arrows shorter than this part of the size of the robot are not drawn


class Arrows:
    """A given number of arrows in one colour; ``size`` (m) is that of the robot."""

    def __init__(self, server: Any, path: str, count: int, color: tuple[float, ...], size: float):
        self.size = size
        turns = np.tile([1.0, 0.0, 0.0, 0.0], (count, 1))
        shape = SHAPE.vertices.astype(np.float32), SHAPE.faces
        self.node = server.scene.add_batched_meshes_simple(
            path,
            *shape,
            turns,
            np.zeros((count, 3)),
            batched_scales=np.zeros((count, 3)),
            batched_colors=color,
            lod="off",
            **PLAIN,
        )

    def place(self, starts: Array, vectors: Array) -> None:
        """Draw arrows from ``starts`` (count, 3) along ``vectors`` (count, 3), in m; NaN draws none."""
        lengths = np.linalg.norm(np.nan_to_num(vectors), axis=-1, keepdims=True)
        seen = lengths > LEAST * self.size
        widths = np.minimum(THIN * self.size, SLIM * lengths)
        scales = np.where(seen, np.concatenate([widths, widths, lengths], axis=-1), 0.0)
        self.node.batched_positions = np.where(seen, np.nan_to_num(starts), 0.0).astype(np.float32)
        self.node.batched_wxyzs = along(np.where(seen, np.nan_to_num(vectors), [0.0, 0.0, 1.0])).astype(np.float32)
        self.node.batched_scales = scales.astype(np.float32)


def along(vectors: Array) -> Array:
    """Return quaternions w x y z (..., 4) of rotations that turn the z axis along vectors (..., 3).

    Example:
        >>> along(np.array([[0.0, 0.0, -2.0], [0.0, 0.0, 1.0]])).tolist()
        [[0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]]
    """
    x, y, z = np.moveaxis(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True), -1, 0)
    down = z < -1 + 1e-12
    found = np.stack(
        [np.where(down, 0.0, 1 + z), np.where(down, 1.0, -y), np.where(down, 0.0, x), np.zeros_like(z)], axis=-1
    )
    return np.asarray(found / np.linalg.norm(found, axis=-1, keepdims=True)) + 0.0
