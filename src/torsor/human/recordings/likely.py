"""Guesses about a recording whose file does not say: which way is up, and which way the person goes."""

import numpy as np

from torsor.base.arrays import Array
from torsor.human.recordings.markers import Markers

FEWEST = 8  # markers from which the extent of a person can be seen
CLEARLY = 1.5  # times the extent along other axes
GOES = 0.5  # m: a person who moves by less may be standing


def likely_axes(markers: Markers | None, up: Array | None = None) -> str:
    """Return the likely axes of a recording, such as "forward left up", or "" where nothing tells.

    ``up`` (3,) points up, where it is known. Otherwise the axis along which the markers of an upright person extend
    most is vertical. The axis along which the person goes is forward or back; of a person who stays, the first
    horizontal axis is called forward.

    Example:
        >>> heights = np.linspace(0.1, 1.7, 10)
        >>> body = np.stack([0.1 * np.sin(heights * 9), 0.1 * np.cos(heights * 9), heights], axis=1)
        >>> goes_back = np.stack([body, body - [0.0, 1.0, 0.0]])
        >>> likely_axes(Markers([f"m{k}" for k in range(10)], [0.0, 1.0], goes_back))
        'left back up'
    """
    vertical = (
        vertical_axis(markers)
        if up is None
        else (int(np.argmax(np.abs(up))), float(np.sign(up[np.argmax(np.abs(up))])))
    )
    if vertical is None:
        return ""
    axis, sign = vertical
    travel = np.zeros(3) if markers is None else _travel(markers)
    travel[axis] = 0.0
    along = int(np.argmax(np.abs(travel)))
    forward = np.zeros(3)
    if abs(travel[along]) > GOES:
        forward[along] = np.sign(travel[along])
    else:
        forward[0 if axis else 1] = 1.0
    upward = np.zeros(3)
    upward[axis] = sign
    named = {"forward": forward, "up": upward, "right": np.cross(forward, upward)}
    opposite = {"forward": "back", "up": "down", "right": "left"}
    return " ".join(
        next(name if each[k] > 0 else opposite[name] for name, each in named.items() if each[k]) for k in range(3)
    )


def vertical_axis(markers: Markers | None) -> tuple[int, float] | None:
    """Return the axis along which an upright person extends most, and its sign; None where it is not clear.

    Example:
        >>> heights = np.linspace(0.1, 1.7, 10)
        >>> body = np.stack([0 * heights, 0 * heights, heights], axis=1)
        >>> vertical_axis(Markers([f"m{k}" for k in range(10)], [0.0], body[None]))
        (2, 1.0)
    """
    if markers is None or len(markers.names) < FEWEST:
        return None
    seen = markers.positions[markers.seen.sum(axis=1) >= FEWEST]
    if not len(seen):
        return None
    extents = np.median(np.nanmax(seen, axis=1) - np.nanmin(seen, axis=1), axis=0)
    axis = int(np.argmax(extents))
    if extents[axis] < CLEARLY * np.sort(extents)[1]:
        return None
    return axis, 1.0 if np.nanmedian(seen[:, :, axis]) >= 0 else -1.0  # the floor is near 0


def _travel(markers: Markers) -> Array:
    """Return by how much the markers that are seen at both ends go (3,), in m; 0 without such."""
    first, last = markers.positions[0], markers.positions[-1]
    moved = (last - first)[np.isfinite(last - first).all(axis=1)]
    return np.median(moved, axis=0) if len(moved) else np.zeros(3)
