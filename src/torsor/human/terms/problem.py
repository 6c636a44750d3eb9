"""The motion problem of a human on the ground: trajectories have the ground's wrenches and the torques with them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.human.body.coordinates import SIDES
from torsor.human.body.hand_forces import hand_wrenches
from torsor.human.body.loads import Backpack, Box
from torsor.human.contact.balance import ground_reaction
from torsor.human.contact.hand_node import RAILS
from torsor.human.contact.support import Foot
from torsor.human.terms.hands import Handled
from torsor.human.terms.samples import grounded_term, sampled
from torsor.motion import MotionProblem
from torsor.robot.robot import Robot

SEATED = "pelvis"  # the link on which a seat acts


@dataclass(frozen=True, eq=False, repr=False)
class HumanProblem(MotionProblem):
    """A motion problem of ``torsor.human``.

    ``result.tau`` is without contact, as inverse dynamics gives it; trajectories (also as .csv and in ``to_dict``) have
    the torques of the joints that act together with the ground and a seat, and these as external wrenches. ``load`` is
    what the body carries, for pictures: its mass is that of the body already.

    Example:
        >>> isinstance(torsor.human.walking(), HumanProblem)
        True
    """

    load: Backpack | Box | None = None

    def contact(self, solution: Any) -> tuple[Array, Array]:
        """Return torques (K, nv) with contact, and the wrenches (K, L, 6) of ground, seat and hands.

        Wrenches are moment and force, at the origins of the links and in their axes.
        """
        term, body = grounded_term(self), solution.robot
        s = solution.moments.s
        found, whole = sampled(solution, s), ground_reaction(body, solution.q, solution.v, solution.a)
        toes = term.support.carried(s, Foot.of(term.body)).toes
        external = np.zeros((len(s), len(body.links), 6))
        for k, side in enumerate(SIDES):
            for link, part in ((f"{side}_foot", 1 - toes[:, k]), (f"{side}_toes", toes[:, k])):
                own = part[:, None] * found.forces[:, k], part[:, None] * found.moments[:, k]
                external[:, body.link_names.index(link)] = _at_link(body, found.q, link, *own)
        hands = hand_forces(solution, s)
        external += hand_wrenches(body, found.q, hands)
        places = np.stack([body.pose(found.q, f"{side}_knuckles")[:, :3, 3] for side in SIDES], axis=1)
        others = found.forces + hands, found.moments + np.cross(places, hands)
        seat = whole.force - others[0].sum(axis=1), whole.moment - others[1].sum(axis=1)
        if term.support.seated(s).fraction.any():
            external[:, body.link_names.index(SEATED)] = _at_link(body, found.q, SEATED, *seat)
        return found.torques, external


def hand_forces_of(problem: MotionProblem, times: Array) -> Array:
    """Return the given forces (K, 2, 3) (N) on the right and the left hand at times (K,) (s), zero without any.

    Example:
        >>> hand_forces_of(torsor.human.walking(), np.zeros(1)).shape
        (1, 2, 3)
    """
    term = grounded_term(problem)
    return term.hands.at(times) if isinstance(term, Handled) else np.zeros((len(times), len(SIDES), 3))


def hand_forces(solution: Any, s: Array) -> Array:
    """Return the forces (K, 2, 3) (N) on the right and the left hand at times s (K,): given ones and those of rails."""
    problem, body = solution.problem, solution.robot
    phase_layout, names = solution.program.layout.phases[0], problem.model.names
    found = hand_forces_of(problem, phase_layout.times(solution.x, s))
    if RAILS[0] in names:
        profiles, weight = phase_layout.profiles(solution.x, s, 1)[0], body.mass * float(np.linalg.norm(body.gravity))
        found = found + weight * profiles[:, [names.index(name) for name in RAILS]].reshape(len(s), len(SIDES), 3)
    return found


def load_of(problem: MotionProblem) -> Backpack | Box | None:
    """Return what the body of a problem carries, None for nothing.

    Example:
        >>> load_of(torsor.human.walking(load=torsor.human.Backpack(10.0))).mass
        10.0
    """
    return problem.load if isinstance(problem, HumanProblem) else None


def who(problem: MotionProblem) -> str:
    """Return who moves, for titles: the name and the mass of the body, and its load.

    Example:
        >>> who(torsor.human.walking(load=torsor.human.Backpack(10.0)))
        'human of 73 kg with a backpack of 10 kg'
    """
    body, load = grounded_term(problem).body, load_of(problem)
    carried = 0.0 if load is None else load.mass
    what = "" if load is None else f" with a {type(load).__name__.lower()} of {carried:g} kg"
    return f"{body.name} of {body.mass - carried:.4g} kg{what}"


def _at_link(body: Robot, q: Array, link: str, force: Array, moment: Array) -> Array:
    """Return wrenches (K, 6) at a link's origin in its axes, from force and moment about the origin in base axes."""
    pose = body.pose(q, link)
    about = moment - np.cross(pose[:, :3, 3], force)
    return np.concatenate([np.einsum("kji,kj->ki", pose[:, :3, :3], each) for each in (about, force)], axis=1)
