"""Solution order of similar problems, each of which starts from the solution of a similar one.

Problems are compared by their data. The first problem is the one nearest to the mean. The next ones are those farthest
from the previous problems, in waves that can be solved together. The first wave has one problem per process, and each
other wave has as many as all previous waves, so distances decrease from wave to wave.
"""

from collections.abc import Sequence

import numpy as np

from torsor.base.arrays import Array

SAME = 1e-9  # range of a number, relative to its magnitude, below which it counts as constant


def features(data: Sequence[Array]) -> Array:
    """Return points (B, count) whose distances measure the differences of B problems in arrays (B, ...) of data."""
    parts = [np.zeros((len(data[0]), 1))]
    for values in data:
        flat = np.nan_to_num(values.reshape(len(values), -1), posinf=0.0, neginf=0.0)  # replaces missing bounds
        spread = np.ptp(flat, axis=0)
        differs = spread > SAME * np.abs(flat).max(axis=0)
        if differs.any():
            scaled = (flat[:, differs] - flat[:, differs].mean(axis=0)) / spread[differs]
            parts.append(scaled / np.sqrt(differs.sum()))
    return np.concatenate(parts, axis=1)


def waves(points: Array, largest: int, first: int = 1) -> list[list[tuple[int, int]]]:
    """Return waves of at most ``largest`` problems: pairs of a problem and its nearest one in earlier waves.

    The first wave contains ``first`` problems, paired with themselves.

    Example:
        >>> waves(np.array([[0.0], [1.0], [2.0], [3.0], [3.9]]), largest=8)
        [[(2, 2)], [(0, 2)], [(4, 2), (1, 2)], [(3, 4)]]
        >>> waves(np.array([[0.0], [1.0], [2.0], [3.0], [3.9]]), largest=8, first=3)
        [[(2, 2), (0, 0), (4, 4)], [(1, 2), (3, 4)]]
    """
    centre = int(np.argmin(((points - points.mean(axis=0)) ** 2).sum(axis=1)))
    distance, nearest = np.full(len(points), np.inf), np.arange(len(points))  # for problems that are not yet in a wave
    result, count = list[list[tuple[int, int]]](), 0
    while count < len(points):
        parents, wave = nearest.copy() if result else np.arange(len(points)), list[tuple[int, int]]()
        for _ in range(min(count or first, largest, len(points) - count)):
            k = int(np.argmax(distance)) if result or wave else centre
            wave.append((k, int(parents[k])))
            own = np.sqrt(((points - points[k]) ** 2).sum(axis=1))
            distance[k] = -1.0
            closer = own < distance
            distance[closer], nearest[closer] = own[closer], k
        result.append(wave)
        count += len(wave)
    return result
