"""Stiffness and damping of elastic joints from two encoders: of the motor, and of the joint behind its gear.

The force that a spring transmits is that of the links, f = M a + ..., which a model without friction of the motors
predicts from the joints' motion, or that of the motor less its own inertia and friction. It is linear,

    f = k (theta - q) + d (theta' - q') + c

with the motor's position theta at the joint's side of the gear. The constant c takes up offsets of the encoders.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import real_array
from torsor.base.errors import ModelError, describe
from torsor.identification.decimation import stretches
from torsor.identification.estimation import Equations, Method, estimate

WHERE = "identify_elasticity"


@dataclass(frozen=True, eq=False)
class Elasticity:
    """Springs of n joints: ``stiffness`` (n,) in N m/rad or N/m, ``damping`` (n,), ``offset`` (n,) of the force.

    ``deviations`` (n, 3) are their standard deviations, ``rms`` (n,) the root mean square of what is not explained.
    """

    stiffness: Array
    damping: Array
    offset: Array
    deviations: Array
    rms: Array


def identify_elasticity(
    theta: ArrayLike,
    theta_rate: ArrayLike,
    q: ArrayLike,
    v: ArrayLike,
    force: ArrayLike,
    *,
    times: ArrayLike | None = None,
    robust: str | None = None,
) -> Elasticity:
    """Return stiffness and damping of n joints from samples (N, n) of motors, joints and forces.

    ``theta`` and ``theta_rate`` are of the motors at the joints' side of the gears, ``q`` and ``v`` of the joints, and
    ``force`` what the springs transmit, such as ``robot.inverse_dynamics(q, v, a)`` of the links. ``times`` (N,) say
    where samples follow each other, ``robust`` as in ``identify``.

    Example:
        >>> t = np.linspace(0, 5, 500)[:, None]
        >>> q, v, theta, w = np.sin(t), np.cos(t), np.sin(t) + 0.01 * np.sin(3 * t), np.cos(t) + 0.03 * np.cos(3 * t)
        >>> found = identify_elasticity(theta, w, q, v, 2000.0 * (theta - q) + 3.0 * (w - v))
        >>> found.stiffness.round(6).tolist(), found.damping.round(6).tolist()
        ([2000.0], [3.0])
    """
    given = {"theta": theta, "theta_rate": theta_rate, "q": q, "v": v, "force": force}
    arrays = {name: real_array(each, WHERE, name) for name, each in given.items()}
    shapes = {name: each.shape for name, each in arrays.items()}
    if len(set(shapes.values())) > 1 or arrays["q"].ndim != 2 or not all(np.isfinite(x).all() for x in arrays.values()):
        allowed = "finite numbers, all of shape (samples, joints)"
        raise ModelError(describe(f"shapes are {shapes}", where=WHERE, allowed=allowed))
    instants = None if times is None else real_array(times, WHERE, "times").ravel()
    samples, count = arrays["q"].shape
    parts = stretches(instants, samples)
    bent, rate = arrays["theta"] - arrays["q"], arrays["theta_rate"] - arrays["v"]
    found = []
    for j in range(count):
        Y = np.stack([bent[:, j], rate[:, j], np.ones(samples)], axis=-1)[:, None, :]
        names = tuple(f"joint {j + 1}.{each}" for each in ("stiffness", "damping", "offset"))
        tau = arrays["force"][:, j, None]
        equations = Equations(Y, tau, np.ones_like(tau), names, parts, WHERE)
        own = estimate(equations, Method(robust))
        rms = float(np.sqrt(np.mean((tau - Y @ own.values) ** 2)))
        found.append((own.values, np.sqrt(np.diagonal(own.covariance)), rms))
    values = np.array([each[0] for each in found]).reshape(count, 3)
    deviations = np.array([each[1] for each in found]).reshape(count, 3)
    stiffness, damping, offset = values.T
    return Elasticity(stiffness, damping, offset, deviations, np.array([each[2] for each in found]))
