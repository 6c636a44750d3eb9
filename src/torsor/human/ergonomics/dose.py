"""Cumulative load of the lumbar spine over a shift: the sum of compression, and the dose with its square."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import number, one_of, real_array, vectors
from torsor.base.errors import ModelError, describe
from torsor.human.body.strength import SEXES

SHIFT = 8.0  # hours
LIMITS = {"male": 5500.0, "female": 3500.0}  # N h: recommended daily doses, Jaeger et al. (2000)


class Dose(NamedTuple):
    """Cumulative compression of a shift: ``linear`` (N s), ``squared`` (N h) and the recommended ``limit`` (N h).

    ``linear`` is the integral of compression over all repetitions. ``squared`` is the dose of the Mainz-Dortmund model,
    sqrt(integral of C^2 dt * 8 h): a load that is twice as high counts four times as long.
    """

    linear: float
    squared: float
    limit: float


def cumulative_dose(times: ArrayLike, compression: ArrayLike, repetitions: float = 1.0, sex: str = "male") -> Dose:
    """Return the cumulative load of a task with ``compression`` (K,) (N) at ``times`` (K,) (s), repeated in a shift.

    Example:
        >>> dose = cumulative_dose([0.0, 2.0], [3000.0, 3000.0], repetitions=900)
        >>> dose.linear, round(dose.squared)
        (5400000.0, 6000)
    """
    one_of(sex, SEXES, "cumulative dose", "sex")
    count = number(repetitions, "cumulative dose", "repetitions", above=0.0)
    t = real_array(times, "cumulative dose", "times")
    force: Array = vectors(compression, len(np.atleast_1d(t)), "cumulative dose", "compression")
    if t.ndim != 1 or len(t) < 2 or not (np.diff(t) > 0).all():
        raise ModelError(
            describe("times do not increase", where="cumulative dose", allowed="(K,) increasing times (s)")
        )
    if count * (t[-1] - t[0]) > SHIFT * 3600 * (1 + 1e-9):
        found = f"{count:g} repetitions of {t[-1] - t[0]:.3g} s take {count * (t[-1] - t[0]) / 3600:.3g} hours"
        allowed = f"at most {SHIFT:g} hours"
        raise ModelError(describe(found, where="cumulative dose", allowed=allowed, fix="give fewer repetitions"))
    if (force < 0).any():
        found = f"compression is {force.min():.4g} N at {t[int(np.argmin(force))]:g} s"
        raise ModelError(describe(found, where="cumulative dose", allowed="0 or more: discs are not pulled"))
    steps = np.diff(t)
    linear, squares = (float(count * (steps * (each[1:] + each[:-1]) / 2).sum()) for each in (force, force**2))
    return Dose(linear, float(np.sqrt(squares / 3600 * SHIFT)), LIMITS[sex])
