"""The ground: a square of lines. viser's own grid computes every pixel of it, which takes long without a card."""

from typing import Any

import numpy as np

from torsor.arrays import Array

SQUARES = 15  # to each side
BOLD = 5  # every fifth line
LOOKS = {"/ground/fine": ((0.85, 0.85, 0.87), 1.0), "/ground/bold": ((0.65, 0.65, 0.68), 1.5)}  # colour, pixels


def draw_ground(server: Any, middle: Array, level: Array, size: float) -> None:
    """Draw squares of 1, 2 or 5 times a power of ten, in m, about the point ``middle`` (3,).

    The first two columns of ``level`` (3 x 3) are horizontal; ``size`` (m) is that of what stands there.
    """
    steps = [step * 10.0**power for power in range(-4, 5) for step in (1, 2, 5)]
    cell = min(steps, key=lambda step: abs(np.log(10 * step / size)))
    lines = np.arange(-SQUARES, SQUARES + 1)
    for (path, (color, width)), bold in zip(LOOKS.items(), (False, True), strict=True):
        at = cell * lines[(lines % BOLD == 0) == bold]
        end = np.full_like(at, cell * SQUARES)
        one = np.stack([np.stack([at, -end], axis=-1), np.stack([at, end], axis=-1)], axis=1)
        points = np.concatenate([one, one[..., ::-1]]) @ level[:, :2].T + middle
        server.scene.add_line_segments(
            path, points.astype(np.float32), color, thickness=width, thickness_units="screen"
        )
