"""Contact wrenches of ground and seat, computed a second time with arrays: the reference for joint torques."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.human.contact.contact_forces import ground_reaction
from torsor.human.contact.support import Foot, Support
from torsor.human.terms.forces import Grounded
from torsor.motion import MotionResult
from torsor.robot.robot import Robot

Array = NDArray[np.float64]


class Contact(NamedTuple):
    """External wrench on a link: ``force`` (K, 3) and ``moment`` (K, 3) about the origin, in base axes."""

    link: str
    force: Array
    moment: Array


def wrenches(support: Support, foot: Foot, s: ArrayLike, force: Array, moment: Array) -> tuple[Contact, ...]:
    """Return the wrenches on feet, toes and pelvis at times s (K,) whose sum is a given force and moment (K, 3).

    Moments are about the origin.
    """
    s = np.asarray(s, dtype=float)
    given, seat = support.carried(s, foot), support.seated(s)
    right, left = (np.insert(each, 1, 0.0, axis=1) for each in (given.right, given.left))
    feet = 1 - seat.fraction
    fractions = (seat.fraction, feet * given.right_fraction, feet * (1 - given.right_fraction))
    places = (seat.point, right, left)
    middle = sum((each[:, None] * at for each, at in zip(fractions, places, strict=True)), start=np.zeros((1, 3)))
    found = []
    for side, fraction, place in zip(("", "right", "left"), fractions, places, strict=True):
        own = moment + np.cross(place - middle, force)
        parts = [("pelvis", np.ones(len(s)))]
        if side:
            toes = given.toes[:, ("right", "left").index(side)]
            parts = [(f"{side}_foot", 1 - toes), (f"{side}_toes", toes)]
        for link, part in parts:
            k, push = (part * fraction)[:, None], np.zeros_like(force)
            if side:
                sign = 1.0 if side == "right" else -1.0
                push[:, [0, 2]] = sign * (part * force[:, 1])[:, None] * given.across
            found.append(Contact(link, k * force + push, k * own + np.cross(place, push)))
    return tuple(found)


def equilibrium(result: MotionResult) -> Array:
    """Return the forces (K, 55) of all coordinates by Newton-Euler, with ground and seat as external wrenches."""
    term = next(each for each in result.problem.terms if isinstance(each, Grounded))
    body, s = result.robot, result.times / result.T
    ground = ground_reaction(body, result.q, result.v, result.a)
    external = np.zeros((len(s), len(body.links), 6))
    for each in wrenches(term.support, Foot.of(term.body), s, ground.force, ground.moment):
        external[:, body.link_names.index(each.link)] += _at_link(body, result.q, each)
    return np.asarray(body.inverse_dynamics(result.q, result.v, result.a, external))


def _at_link(body: Robot, q: Array, contact: Contact) -> Array:
    """Return wrenches (K, 6), moment first, at a link's origin in its axes."""
    pose = body.pose(q, contact.link)
    turned, at = np.swapaxes(pose[..., :3, :3], -1, -2), pose[..., :3, 3]
    moment = contact.moment - np.cross(at, contact.force)
    return np.concatenate([np.einsum("kij,kj->ki", turned, each) for each in (moment, contact.force)], axis=1)
