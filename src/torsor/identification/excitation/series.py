"""Finite Fourier series with exact derivatives."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array


def features(t: ArrayLike, period: float, harmonics: int) -> tuple[Array, Array, Array]:
    """Return the functions 1, sin(k w t), cos(k w t), their rates and second rates at times t: (..., 2 H + 1) each.

    w = 2 pi / period (1/s), k = 1 to H; the sines come before the cosines.

    Example:
        >>> value, rate, _ = features(0.0, 1.0, 2)
        >>> value.tolist(), rate.round(3).tolist()
        ([1.0, 0.0, 0.0, 1.0, 1.0], [0.0, 6.283, 12.566, -0.0, -0.0])
    """
    times = np.asarray(t, dtype=float)[..., None]
    w = 2 * np.pi / period * np.arange(1, harmonics + 1)
    s, c = np.sin(w * times), np.cos(w * times)
    one, nothing = np.ones_like(times), np.zeros_like(times)
    value, rate = np.concatenate([one, s, c], -1), np.concatenate([nothing, w * c, -w * s], -1)
    return value, rate, np.concatenate([nothing, -(w**2) * s, -(w**2) * c], -1)


def resting(harmonics: int) -> Array:
    """Return an orthonormal basis (2 H + 1, 2 H - 1) of the series that start and end at rest: v = 0 and a = 0.

    Example:
        >>> _, rate, second = features(0.0, 1.0, 3)
        >>> bool(np.abs([rate @ resting(3), second @ resting(3)]).max() < 1e-12)
        True
    """
    _, rate, second = features(0.0, 2 * np.pi, harmonics)
    return np.asarray(np.linalg.svd(np.stack([rate, second]))[2][2:].T)


@dataclass(frozen=True, eq=False)
class Series:
    """The Fourier series of a search: ``period`` in s, number of ``harmonics`` H, at ``rest`` at both ends or not.

    Example:
        >>> Series(1.0, 3, rest=True).basis.shape
        (7, 5)
    """

    period: float
    harmonics: int
    rest: bool

    @cached_property
    def basis(self) -> Array:
        """Orthonormal basis (2 H + 1, m) of the coefficients of one coordinate."""
        return resting(self.harmonics) if self.rest else np.eye(2 * self.harmonics + 1)

    def sampled(self, count: int) -> tuple[Array, Array, Array]:
        """Return ``features`` (count, 2 H + 1) at equally spaced times of one period."""
        return features(np.arange(count) * self.period / count, self.period, self.harmonics)
