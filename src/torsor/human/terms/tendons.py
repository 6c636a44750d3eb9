"""Tendons of the leg in stance: the muscles of ankle and knee act on the bones through springs.

A tendon carries the force F of its muscle and stretches by x = e_ref l_slack sqrt(F / F_max), with e_ref = 0.04 (Geyer
and Herr 2010). With p = F / F_max, the lever arm r, and the angle b = e_ref l_slack / r by which a joint bends at the
largest force while its muscle keeps its length,

    torque = -r F_max p      power of the muscle = torque (v - b d sqrt(p)/dt)

so that a muscle does less work than its joint. The relative forces p are profiles of the motion problem; the torque at
each node determines them. sqrt(p) is p (p^2 + d^2)^(-1/4) here, which is smooth and odd. Tendons of the leg in swing,
which carry little, are left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.human.body.coordinates import GLOBAL
from torsor.human.body.person import Person
from torsor.human.contact.contact_forces import contact_forces
from torsor.human.terms.forces import Grounded, muscle_torques
from torsor.human.terms.objectives import MetabolicEnergy
from torsor.motion import Node
from torsor.motion.terms.term import Constraint, Rows
from torsor.motion.transcription.splines import Spline

MASS, HEIGHT = 80.0, 1.80  # kg and m of the person of the table
STRAIN = 0.04  # of a tendon at the largest force of its muscle
LINEAR = 0.02  # d: the relative force below which a tendon is linear


class Tendon(NamedTuple):
    """A tendon: the largest ``force`` of its muscle (N), the ``lever`` arm and the ``slack`` length (m)."""

    force: float
    lever: float
    slack: float


# Extensors of the leg in stance: soleus and gastrocnemius, vasti (Geyer and Herr 2010).
EXTENSORS = {
    "right_ankle_flexion": (Tendon(4000.0, 0.05, 0.26), Tendon(1500.0, 0.05, 0.40)),
    "right_knee_flexion": (Tendon(6000.0, 0.06, 0.23),),
}


def pull(coordinate: str) -> str:
    """Return the name of the profile of the relative force of a joint's tendons."""
    return f"pull of {coordinate}"


def stretch_slope(p: ca.SX) -> ca.SX:
    """Return the derivative of the relative stretch p (p^2 + d^2)^(-1/4) by the relative force p."""
    size = ca.sqrt(p**2 + LINEAR**2)
    found: ca.SX = (p**2 / 2 + LINEAR**2) / (size**2 * ca.sqrt(size))
    return found


def springs(person: Person) -> Array:
    """Return largest torque (N m) and largest stretch (rad) of each of ``EXTENSORS`` (2, 2), for a person.

    Forces are scaled by mass, lengths by height. Tendons at one joint have the same relative force.
    """
    torques = np.array([sum(each.force * each.lever for each in own) for own in EXTENSORS.values()])
    work = np.array([sum(each.force * STRAIN * each.slack for each in own) for own in EXTENSORS.values()])
    size = person.mass / MASS * person.height / HEIGHT
    return np.stack([size * torques, work / torques], axis=1)


def pull_splines(nodes: Array) -> dict[str, Spline]:
    """Return the splines of the relative forces: cubic ones with as many control points as there are nodes."""
    return {pull(name): Spline(3, nodes[2:-2]) for name in EXTENSORS}


@dataclass(frozen=True, eq=False, kw_only=True)
class _Sprung(Grounded):
    """A term with the tendons of a ``person``."""

    person: Person

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the data of the other base class, and the numbers of the tendons (K, 4)."""
        return {**super().data(s), "tendons": np.tile(springs(self.person).ravel(), (len(s), 1))}


@dataclass(frozen=True, eq=False, kw_only=True)
class Tendons(_Sprung, Constraint):
    """The relative forces of the tendons follow from the torques of their muscles."""

    def profiles(self) -> Mapping[str, tuple[float | None, float | None]]:
        """Return the relative forces, with free ends."""
        return {pull(name): (None, None) for name in EXTENSORS}

    def rows(self, node: Node) -> Rows:
        """Return the sums of the torques of tendons and of muscles, divided by the largest ones."""
        given, torques, names = node.data("tendons", 4), muscle_torques(node), node.robot.coordinate_names
        rows = list[ca.SX]()
        for k, name in enumerate(EXTENSORS):
            rows.append(node.profile(pull(name)) + torques[names.index(name) - len(GLOBAL)] / given[2 * k])
        zero = np.zeros(len(rows))
        return Rows(ca.vertcat(*rows), zero, zero, tuple(EXTENSORS))


@dataclass(frozen=True, eq=False, kw_only=True)
class SprungEnergy(_Sprung, MetabolicEnergy):
    """The metabolic energy of muscles that act through tendons."""

    def velocities(self, node: Node) -> ca.SX:
        """Return the velocities at which the muscles of the joints that move shorten or lengthen."""
        given, names = node.data("tendons", 4), node.robot.coordinate_names
        found = super().velocities(node)
        for k, name in enumerate(EXTENSORS):
            place = contact_forces(node).moving.index(names.index(name) - len(GLOBAL))
            rate = stretch_slope(node.profile(pull(name))) * node.profile(pull(name), 1)
            found[place] -= given[2 * k + 1] * rate
        return found
