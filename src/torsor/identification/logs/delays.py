"""The delay between positions and forces: the shift of the forces with which the model explains them best.

The motion is kept, the forces are read at t + shift, and each coordinate is fitted on its own with unknown parameters.
The sum of N log(variance left) over the coordinates is twice the negative logarithm of the likelihood; its second
derivative at the minimum gives the deviation.
"""

import math
from typing import NamedTuple

import numpy as np

from torsor.arrays import Array
from torsor.errors import ModelError, describe
from torsor.identification.differentiation import differentiate
from torsor.identification.logs.force_model import ForceModel
from torsor.identification.logs.sampling import cubic

LARGEST = 0.1  # s, of a delay that is looked for
SHIFTS = 21  # that are tried at first
SMOOTH = 0.125  # of the sampling rate: cutoff of the forces that are compared
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

    # Interpolation between samples averages their noise; forces without high frequencies have no more to lose.
    smooth = differentiate(t, tau, SMOOTH / float(np.median(np.diff(t))), where=where)[0]

    def left(shift: float) -> Array:
        return fits.fit(cubic(t, smooth, t[thin] + shift)).left

    def score(shift: float) -> float:
        return float(np.sum(np.log(np.maximum(left(shift), 1e-20))))

    shifts = np.linspace(-span, span, SHIFTS)
    best, step = float(shifts[int(np.argmin([score(s) for s in shifts]))]), float(shifts[1] - shifts[0])
    for _ in range(REFINEMENTS):
        near = best + step * np.linspace(-1, 1, 9)
        best, step = float(near[int(np.argmin([score(s) for s in near]))]), step / 4
    wide = max(4 * step, 0.5 * float(np.median(np.diff(t))))
    curvature = (score(best + wide) - 2 * score(best) + score(best - wide)) / wide**2
    deviation = math.sqrt(2 / (thin.size * curvature)) if curvature > 0 else math.inf
    return Delay(best, deviation, left(0.0), left(best))
