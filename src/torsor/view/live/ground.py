"""The ground: a square of lines. viser's own grid computes every pixel of it, which takes long without a card."""

from typing import Any

import numpy as np

from torsor.base.arrays import Array

SQUARES = 15  # to each side
BOLD = 5  # every fifth line
LOOKS = {"fine": ((0.85, 0.85, 0.87), 1.0), "bold": ((0.65, 0.65, 0.68), 1.5)}  # colour, pixels
AXES = "xy"


class Ground:
    """Squares of 1, 2 or 5 times a power of ten, in m, about the point ``middle`` (3,).

    The first two columns of ``level`` (3 x 3) are horizontal; ``size`` (m) is that of what stands there.
    """

    def __init__(self, server: Any, middle: Array, level: Array, size: float):
        steps = [step * 10.0**power for power in range(-4, 5) for step in (1, 2, 5)]
        self.cell = min(steps, key=lambda step: abs(np.log(10 * step / size)))
        self.level, lines, self._nodes = level, np.arange(-SQUARES, SQUARES + 1), list[tuple[int, float, Any]]()
        for across, axis in enumerate(AXES):
            for name, (color, width) in LOOKS.items():
                every = BOLD if name == "bold" else 1  # fine lines are also below the bold ones: both repeat
                at = self.cell * lines[lines % every == 0]
                end = np.full_like(at, self.cell * SQUARES)
                flat = np.stack([np.stack([at, -end], axis=-1), np.stack([at, end], axis=-1)], axis=1)
                points = (flat if across == 0 else flat[..., ::-1]) @ level[:, :2].T + middle
                look = {"thickness": width, "thickness_units": "screen"}
                path = f"/ground/{name}/{axis}"
                node = server.scene.add_line_segments(path, points.astype(np.float32), color, **look)
                self._nodes.append((across, every * self.cell, node))

    def move(self, way: Array) -> None:
        """Let the ground pass under what walks in place and has come as far as ``way`` (3,): the lines repeat."""
        for across, period, node in self._nodes:
            along = self.level[:, across]
            node.position = tuple(-float(along @ way % period) * along)
