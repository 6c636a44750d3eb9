"""Robust estimation: residuals that are far outside of the noise count less (Huber 1964) or not at all (bisquare)."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array

MEDIAN = 1.4826  # standard deviation over the median of the absolute value, of normal noise


class Influence(NamedTuple):
    """A bounded function psi of residuals u over their noise: ``weight`` psi(u) / u and ``slope`` psi'(u)."""

    weight: Callable[[Array], Array]
    slope: Callable[[Array], Array]


def _huber(limit: float) -> Influence:
    return Influence(
        lambda u: np.minimum(1.0, limit / np.maximum(np.abs(u), 1e-300)),
        lambda u: (np.abs(u) < limit).astype(float),
    )


def _bisquare(limit: float) -> Influence:
    return Influence(
        lambda u: np.maximum(0.0, 1 - (u / limit) ** 2) ** 2,
        lambda u: np.maximum(0.0, 1 - (u / limit) ** 2) * (1 - 5 * (u / limit) ** 2),
    )


INFLUENCES = {"huber": _huber(1.345), "bisquare": _bisquare(4.685)}
"""Both with 95 % of the efficiency of least squares where the noise is normal (Holland and Welsch 1977)."""


def scale_of(residuals: Array) -> Array:
    """Return the noise (n,) of residuals (N, n) from their medians; residuals of 0 are those of excluded samples.

    Example:
        >>> noise = np.random.default_rng(0).normal(size=(4000, 1))
        >>> noise[:400] = 100.0
        >>> bool(scale_of(noise)[0] < 1.2)
        True
    """
    found = np.empty(residuals.shape[1])
    for j, own in enumerate(np.abs(residuals).T):
        found[j] = MEDIAN * np.median(own[own > 0]) if (own > 0).any() else 1.0
    return found
