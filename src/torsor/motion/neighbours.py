"""The order in which similar problems are solved, each of them from the solution of a similar one.

Problems are compared by their data. The first one is nearest to the mean. It is followed by the problems that are
farthest from those before, in waves that can be solved together: the first wave has one problem for each process, and
each of the others as many as all before it, so that the distances shrink from wave to wave.
"""

from collections.abc import Sequence

import numpy as np

from torsor.base.arrays import Array

SAME = 1e-9  # range of a number, relative to its size, below which it counts as constant


def features(data: Sequence[Array]) -> Array:
    """Return points (B, count) whose distances measure how much B problems differ in each array (B, ...) of data."""
    parts = [np.zeros((len(data[0]), 1))]
    for values in data:
        flat = np.nan_to_num(values.reshape(len(values), -1), posinf=0.0, neginf=0.0)  # bounds that do not exist
        spread = np.ptp(flat, axis=0)
        differs = spread > SAME * np.abs(flat).max(axis=0)
        if differs.any():
            scaled = (flat[:, differs] - flat[:, differs].mean(axis=0)) / spread[differs]
            parts.append(scaled / np.sqrt(differs.sum()))
    return np.concatenate(parts, axis=1)


def waves(points: Array, largest: int, first: int = 1) -> list[list[tuple[int, int]]]:
    """Return the waves of at most ``largest`` problems: pairs of a problem and the nearest one of earlier waves.

    The ``first`` problems are the first wave, and are paired with themselves.

    Example:
        >>> waves(np.array([[0.0], [1.0], [2.0], [3.0], [3.9]]), largest=8)
        [[(2, 2)], [(0, 2)], [(4, 2), (1, 2)], [(3, 4)]]
        >>> waves(np.array([[0.0], [1.0], [2.0], [3.0], [3.9]]), largest=8, first=3)
        [[(2, 2), (0, 0), (4, 4)], [(1, 2), (3, 4)]]
    """
    centre = int(np.argmin(((points - points.mean(axis=0)) ** 2).sum(axis=1)))
    distance, nearest = np.full(len(points), np.inf), np.arange(len(points))  # of problems that are not in a wave
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
