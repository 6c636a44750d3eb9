"""Laboratory axes, named by their directions relative to the person; "forward up right" is x forward, y up, z right."""

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError

OPENSIM = "forward up right"
HUMAN = "left up forward"  # base axes of Torsor's human body
# All directions in OpenSim axes; any right-handed axes could be used.
_DIRECTIONS = {
    "forward": (1, 0, 0), "back": (-1, 0, 0), "up": (0, 1, 0), "down": (0, -1, 0), "right": (0, 0, 1),
    "left": (0, 0, -1),
}  # fmt: skip
ALLOWED = 'three right-handed directions of forward, back, up, down, left, right, such as "forward up right", or ""'


def checked_axes(axes: object, where: str) -> str:
    """Return the names of three right-handed axes, or "" for unknown axes."""
    words = axes.split() if isinstance(axes, str) else None
    if words == []:
        return ""
    if words is None or len(words) != 3 or not set(words) <= set(_DIRECTIONS) or _determinant(words) != 1:
        raise ModelError(argument="axes", value=axes, where=where, allowed=ALLOWED)
    return " ".join(words)


def rotation(source: str, target: str, where: str) -> Array:
    """Return R (3, 3) of x_target = R x_source, for vectors in the axes ``source`` and ``target``."""
    if not checked_axes(source, where):
        fix = 'pass them: torsor.human.recordings.load(path, axes="forward up right")'
        raise ModelError("the axes of the recording are unknown", where=where, fix=fix)
    if not checked_axes(target, where):
        raise ModelError("axes is ''", where=where, allowed=ALLOWED.removesuffix(', or ""'))
    R: Array = _matrix(target.split()) @ _matrix(source.split()).T
    return R + 0.0  # avoids -0.0


def up_axis(axes: str) -> tuple[int, float] | None:
    """Return the index of the vertical axis and its sign, or None for unknown axes."""
    words = axes.split()
    if not words:
        return None
    return (words.index("up"), 1.0) if "up" in words else (words.index("down"), -1.0)


def _matrix(words: list[str]) -> Array:
    """Return the matrix (3, 3) with the three directions as rows."""
    return np.array([_DIRECTIONS[word] for word in words], dtype=float)


def _determinant(words: list[str]) -> int:
    return round(float(np.linalg.det(_matrix(words))))
