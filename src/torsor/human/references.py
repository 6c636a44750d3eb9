"""Curves of people who walk, over a stride from heel strike to heel strike of the same foot, and how near others come.

Angles (degrees; flexion, adduction, inward rotation and dorsiflexion positive) are those of OpenSim's tutorial on
normal gait; forces on one foot (% of body weight) those of an adult on force plates, subject 01 of its gait pipeline.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["ANGLES", "FORCES", "Likeness", "likeness"]

Array = NDArray[np.float64]

# Every 10 % of a stride.
ANGLES: dict[str, Array] = {
    "hip_flexion": np.array([24.6, 21.8, 11.9, 0.3, -10.1, -16.6, -10.7, 8.6, 21.8, 25.3, 24.7]),
    "hip_adduction": np.array([1.1, 4.8, 5.8, 4.6, 4.2, 2.7, -2.7, -3.4, -0.7, 0.5, 1.2]),
    "hip_rotation": np.array([-1.4, 4.2, 2.4, 1.0, -0.1, 1.3, -1.0, 0.3, -3.7, -4.0, -1.2]),
    "knee_flexion": np.array([3.9, 16.4, 13.9, 6.6, 2.4, 8.2, 32.7, 57.8, 47.0, 14.4, 4.1]),
    "ankle_flexion": np.array([-1.7, -2.5, 3.9, 6.8, 9.6, 9.8, -9.7, -7.6, 1.4, 1.2, -0.5]),
}
# Every 5 % of a stride: up, and forward.
FORCES: dict[str, Array] = {
    "vertical": np.array(
        [2.5, 38.9, 82.0, 107.3, 97.5, 85.1, 85.2, 88.6, 92.7, 101.6, 108.0, 89.4, 32.8, 0.9, 0, 0, 0, 0, 0, 0, 2.7]
    ),
    "forward": np.array(
        [-0.3, -5.1, -12.7, -12.4, -8.5, -5.1, -4.1, -2.6, 1.6, 7.6, 14.4, 18.3, 9.9, 0, 0, 0, 0, 0, 0, 0, 0.3]
    ),
}


class Likeness(NamedTuple):
    """How like a curve is to a reference: their correlation, and the root of the mean square of what they differ by."""

    correlation: float
    rms: float


def likeness(curve: ArrayLike, reference: ArrayLike) -> Likeness:
    """Return how like a curve (K,) over a whole stride is to a reference, both at equal steps from start to end.

    Example:
        >>> round(likeness(2 * ANGLES["knee_flexion"], ANGLES["knee_flexion"]).correlation, 9)
        1.0
    """
    wanted = np.asarray(reference, dtype=float)
    given = np.asarray(curve, dtype=float)
    at = np.linspace(0.0, 1.0, len(wanted))
    found = np.interp(at, np.linspace(0.0, 1.0, len(given)), given)
    return Likeness(float(np.corrcoef(found, wanted)[0, 1]), float(np.sqrt(np.mean((found - wanted) ** 2))))
