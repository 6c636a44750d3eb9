"""Errata of Guarino Lo Bianco 2009."""

import numpy as np

from torsor.reproduce.equations import guarino
from torsor.reproduce.errata.erratum import Decision, by_place, compare, decide, words
from torsor.reproduce.samples import modified


def _rates(place: str) -> Decision:
    data, robot, motion = modified()
    truth = robot.force_rate(*motion)[1]
    return compare(place, truth, lambda form: guarino.force_rates(data, *motion, form=form).tau_rate)


def _forces() -> Decision:
    data, robot, motion = modified()
    truth = robot.inverse_dynamics(*motion[:3])
    return compare("19", truth, lambda form: guarino.force_rates(data, *motion, form=form).tau)


def _rotation() -> Decision:
    data, robot, (q, *_) = modified()
    R, _ = guarino.placement(data.a[0], data.alpha[0], data.theta[0] + q[0], data.d[0])
    return decide(robot.poses(q)[0, :3, :3], R, R.T)


def _inertia() -> Decision:
    data, robot, (q, *_) = modified()
    R, inertia, w = robot.poses(q)[1, :3, :3], data.I[1], np.array([0.3, -0.7, 0.5])
    energy = (R.T @ w) @ inertia @ (R.T @ w)  # in the axes of the link
    return decide(energy, w @ (R @ inertia @ R.T) @ w, w @ (R @ inertia @ R) @ w)


def _tip() -> Decision:
    data, robot, motion = modified()
    force, moment = np.random.default_rng(8).normal(size=(2, 3))
    external = np.zeros((robot.nv, 6))
    external[-1] = np.concatenate([moment, force])  # on the last link
    state = motion[:3]
    corrected, printed = (guarino.inverse_dynamics(data, *state, s * force, s * moment)[0] for s in (-1, 1))
    return decide(robot.inverse_dynamics(*state, external=external), corrected, printed)


def _jerk() -> Decision:
    s = np.array([0.0, 1.0])
    quintic, seventh = 60 - 360 * s + 360 * s**2, 210 * s * (1 - s) * (4 - 20 * s + 20 * s**2)
    velocity, acceleration = 30 * (s - s**2) ** 2, 60 * s - 180 * s**2 + 120 * s**3
    rests = not np.any(velocity) and not np.any(acceleration)
    return words(rests and not np.any(seventh), not np.any(quintic))


# Table II as printed: five numbers of six, of Ixx, Iyy and Izz two remain.
PRINTED = ((0.276, 0.071), (0.108, 0.100), (2.51, 2.51), (0.002, 0.001), (0.003, 0.0004), (0.013, 0.0003))


DECISIONS = {
    "section-2": _rotation,
    "eq-32": _inertia,
    "eq-19": _forces,
    "section-3.b": _tip,
    "section-5": _jerk,
    **by_place(_rates, "5", "8", "17"),
}
