"""The motion problem of a human on the ground: trajectories have the ground's wrenches and the torques with them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from torsor.arrays import Array
from torsor.human.body.coordinates import SIDES
from torsor.human.body.hand_forces import hand_wrenches
from torsor.human.body.loads import Backpack, Box
from torsor.human.contact.balance import ground_reaction
from torsor.human.contact.support import Foot
from torsor.human.terms.hands import Handled
from torsor.human.terms.samples import grounded_term, sampled
from torsor.motion import MotionProblem
from torsor.motion.starts import fit
from torsor.robot.robot import Robot

SEATED = "pelvis"  # the link on which a seat acts


@dataclass(frozen=True, eq=False, repr=False)
class HumanProblem(MotionProblem):
    """A motion problem of ``torsor.human``.

    ``result.tau`` is without contact, as inverse dynamics gives it; trajectories (also as .csv and in ``to_dict``) have
    the torques of the joints that act together with the ground and a seat, and these as external wrenches. ``load`` is
    what the body carries, for pictures: its mass is that of the body already. The initial guess is a straight line
    between two postures, ``first`` and ``last``: both are {coordinate: position}, 0 for all others; start and end
    constraints of the problem take precedence.

    Example:
        >>> isinstance(torsor.human.walking(), HumanProblem)
        True
    """

    load: Backpack | Box | None = None
    first: Mapping[str, float] = field(default_factory=dict)
    last: Mapping[str, float] = field(default_factory=dict)

    def guess(self) -> Array:
        """Return the variables of the straight line between the postures."""
        x, program = super().guess(), self.program
        if not self.first and not self.last:
            return x
        ends = np.array([[each.get(name, 0.0) for name in self.model.names] for each in (self.first, self.last)])
        s = np.linspace(0.0, 1.0, 41)
        for phase_layout in program.layout.phases:
            fit(phase_layout, x, s, (1 - s)[:, None] * ends[0] + s[:, None] * ends[1])
        return np.clip(x, program.lower, program.upper)

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
        hands = hand_forces_of(self, solution.times)
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
