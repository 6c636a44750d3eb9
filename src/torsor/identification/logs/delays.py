"""The delay between positions and forces: the shift of the forces with which the model explains them best.

The motion is kept, the forces are read at t + shift, and each coordinate is fitted on its own with unknown parameters.
The sum of N log(variance left) over the coordinates is twice the negative logarithm of the likelihood. The deviation
follows from the residuals r_t and the rates g_t of the forces, less what parameters explain, both over the noise of
their coordinate:

    shift - truth = sum of g_t r_t / sum of g_t^2

with the sum over t of what is correlated in time (``covariance.py``): forces are smooth, and so is the noise that the
filter of the motion leaves.
"""

import math
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, describe
from torsor.identification.covariance import correlation_time, free_part, meat
from torsor.identification.differentiation import differentiate
from torsor.identification.logs.force_model import ForceModel
from torsor.identification.logs.sampling import quintic

LARGEST = 0.1  # s, of a delay that is looked for
SHIFTS = 21  # that are tried at first
SMOOTH = 0.125  # of the sampling rate: cutoff of the forces that are compared
NEAR = 2  # samples before and after, between which forces change at their rate: as SMOOTH leaves them
REFINEMENTS = 6  # each tries shifts within one step of the best, four times as fine


class Delay(NamedTuple):
    """The forces are late by ``value`` (s), with a ``deviation`` (s); what is left of them (n,) without and with it."""

    value: float
    deviation: float
    before: Array
    after: Array


def estimate(model: ForceModel, motion: tuple[Array, Array, Array], tau: Array, t: Array, where: str = "log") -> Delay:
    """Return the delay of forces tau (T, n) after a motion (q, v, a), both at times t (T,).

    Example:
        >>> robot, t = torsor.library.planar_chain(1), np.arange(2000) * 1e-3
        >>> w = 2 * np.pi
        >>> q, v, a = np.sin(w * t)[:, None], w * np.cos(w * t)[:, None], -(w**2) * np.sin(w * t)[:, None]
        >>> tau = robot.inverse_dynamics(q, v, a)
        >>> late = np.interp(t - 0.006, t, tau[:, 0])[:, None]
        >>> round(estimate(ForceModel(robot), (q, v, a), late, t).value, 5)
        0.006
    """
    span = min(LARGEST, 0.1 * float(t[-1] - t[0]))
    inside = (t >= t[0] + 2 * span) & (t <= t[-1] - 2 * span)
    thin = np.flatnonzero(inside)[:: model.step(int(inside.sum()))]
    if thin.size < 50:
        found = f"{thin.size} samples to estimate the delay from"
        raise ModelError(
            describe(found, where=where, allowed="50 or more", fix="measure longer, or give the delay (s)")
        )
    q, v, a = (x[thin] for x in motion)
    fits = model.of(q, v, a)

    # Interpolation that averages noise would prefer shifts between samples: quintics of smooth forces do not.
    smooth = differentiate(t, tau, SMOOTH / float(np.median(np.diff(t))), where=where)

    def left(shift: float) -> Array:
        return fits.fit(quintic(t, smooth, t[thin] + shift)).left

    def score(shift: float) -> float:
        return float(np.sum(np.log(np.maximum(left(shift), 1e-20))))

    shifts = np.linspace(-span, span, SHIFTS)
    best, step = float(shifts[int(np.argmin([score(s) for s in shifts]))]), float(shifts[1] - shifts[0])
    for _ in range(REFINEMENTS):
        near = best + step * np.linspace(-1, 1, 9)
        best, step = float(near[int(np.argmin([score(s) for s in near]))]), step / 4
    forces = quintic(t, smooth, t[thin] + best)
    residuals, x = fits.residuals(forces), fits.fit(forces).x
    # Rates of the forces of the fit, which have less noise than those of the measured ones.
    ends = (_forces(model, tuple(each[thin + side] for each in motion), x) for side in (NEAR, -NEAR))
    rates = fits.residuals(fits.known + np.subtract(*ends) / (t[thin + NEAR] - t[thin - NEAR])[:, None])
    noise = np.maximum(np.sqrt(np.mean(residuals**2, axis=0)), 1e-300)
    deviation = _deviation(residuals / noise, rates / noise, x.size)
    return Delay(best, deviation, left(0.0), left(best))


def _forces(model: ForceModel, motion: tuple[Array, ...], x: Array) -> Array:
    """Return the forces (N, n) of parameters x (n, b + 1), those of each coordinate, along a motion (q, v, a)."""
    q, v, a = motion
    Y, known = model.regressor(q, v, a)
    return np.asarray(known + np.einsum("tjb,jb->tj", Y, x[:, :-1]) + x[:, -1])


def _deviation(residuals: Array, rates: Array, unknowns: int) -> float:
    """Return the deviation (s) of a shift from residuals of a fit and rates (N, n), both over the noise."""
    parts = [slice(0, len(residuals))]
    lag = correlation_time(residuals, parts)
    spread = float(meat(np.sum(rates * residuals, axis=1, keepdims=True), parts, lag)[0, 0])
    information, free = float(np.sum(rates**2)), free_part(residuals.size, lag, unknowns)
    return math.sqrt(spread / free) / information if information > 0 else math.inf
