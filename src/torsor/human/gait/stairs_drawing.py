"""Stairs in pictures from the side and from the front."""

from typing import Any

import numpy as np

from torsor.human.contact.stairs import Stairs

FIRST, LAST = -3, 6  # numbers of the treads that are drawn
LINE = {"color": "0.4", "linewidth": 1.2, "zorder": 0}


def draw_stairs(axes: Any, stairs: Stairs, view: str, shift: float = 0.0, lift: float = 0.0) -> None:
    """Draw stairs into a panel, "side" or "front", moved to the right and up (m)."""
    corners = stairs.profile(FIRST, LAST) + np.array([shift, lift])
    if view == "side":
        axes.plot(*corners.T, **LINE)
        return
    for height in np.unique(corners[:, 1]):
        axes.plot([-2.0, 2.0], [height, height], **LINE)
