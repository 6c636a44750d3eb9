"""Where the ground, a seat and rails press on a body, and how strongly: the arrows of pictures."""

import numpy as np

from torsor.base.arrays import Array
from torsor.human.body.coordinates import SIDES
from torsor.human.contact.balance import ground_reaction
from torsor.human.contact.support import Sitting
from torsor.human.terms.problem import hand_forces
from torsor.human.terms.samples import Samples, grounded_term, sampled
from torsor.motion import MotionResult
from torsor.robot.robot import Robot

CARRIES = 1e-6  # fraction of the weight below which a foot has no centre of pressure


def pressure(samples: Samples, body: Robot) -> Array:
    """Return the centres of pressure (K, 2, 3) of both feet on the ground (m), NaN for a foot without load."""
    forces, level = samples.forces, samples.heights
    moments = samples.moments - np.cross(level[..., None] * [0.0, 1.0, 0.0], forces)
    weight = body.mass * float(np.linalg.norm(body.gravity))
    up = np.where(forces[..., 1] > CARRIES * weight, forces[..., 1], np.nan)
    return np.stack([moments[..., 2] / up, level + 0.0 * up, -moments[..., 0] / up], axis=-1)


def feet_and_seat(result: MotionResult, samples: Samples, s: Array) -> Array:
    """Return points (m) and forces (N) (K, 2, 6) of the ground on both feet at times s (K,); with a seat, (K, 3, 6).

    With rails, their forces on both hands follow. Where a foot, the seat or a hand carries nothing, numbers are NaN.
    Times are fractions of the duration.
    """
    term = grounded_term(result.problem)
    body, parts = term.body, [np.concatenate([pressure(samples, term.body), samples.forces], axis=-1)]
    hands = hand_forces(result, s)
    if isinstance(term.support, Sitting):
        seat, whole = term.support.seated(s), ground_reaction(body, samples.q, samples.v, samples.a)
        rest = whole.force - samples.forces.sum(axis=1) - hands.sum(axis=1)
        force = np.where(seat.fraction[:, None] > 0, rest, np.nan)
        parts.append(np.concatenate([seat.point, force], axis=-1)[:, None])
    if term.support.rails is not None:
        places = np.stack([body.pose(samples.q, f"{side}_knuckles")[:, :3, 3] for side in SIDES], axis=1)
        least = CARRIES * body.mass * float(np.linalg.norm(body.gravity))
        pushes = np.linalg.norm(hands, axis=-1, keepdims=True) > least
        parts.append(np.concatenate([places, np.where(pushes, hands, np.nan)], axis=-1))
    return np.concatenate(parts, axis=1)


def presses(result: MotionResult, s: Array) -> Array:
    """Return ``feet_and_seat`` of a solved task at times s (K,), fractions of its duration."""
    return feet_and_seat(result, sampled(result, s), s)
