"""Strengths of a population, in which a person is ``z`` standard deviations above the mean at every joint.

The strength of a joint in one direction is M + z D, with the mean M at its angle and the standard deviation D. z is the
same for all joints, so a person is uniformly weak or strong. Torques T are divided by the mean:

    T / M - z D / M <= 1

The weakest person who can do a task has the smallest z for which a motion exists.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.human.body.coordinates import GLOBAL
from torsor.human.body.strength import Curve, smooth_ramp
from torsor.human.body.trunk_strength import SPINE, VARIATION, extension
from torsor.human.contact.contact_forces import ContactForces, hand_forces_of_node
from torsor.human.terms.forces import Driven, Grounded
from torsor.motion import Node
from torsor.motion.terms.term import Constraint, Cost, Number, Rows, Term

MAX_DEVIATIONS = 3.0  # largest |z|; 0.13 % of people are weaker, and 0.13 % are stronger
TRUNK_LINK = "spine1/spine1_flexion"  # the first link above the pelvis, whose joint is at the navel


@dataclass(frozen=True)
class Strength:
    """The strength of a ``coordinate`` in one direction: ``sign`` is 1 for positive torques and -1 for negative ones.

    The mean (N m) is ``mean`` at all angles, or that of the ``curve``, which is constant beyond the angle ``most``
    (rad). ``variation`` is the standard deviation divided by the mean.
    """

    coordinate: str
    sign: float
    variation: float
    mean: float = 1.0
    curve: Curve | None = None
    most: float = np.inf

    def at(self, q: Array) -> Array:
        """Return the mean (K,) (N m) at angles (K,) (rad)."""
        if self.curve is None:
            return np.full(np.shape(q), self.mean)
        return np.asarray(self.curve.peak * self.curve.at_angle(np.minimum(q, self.most)))


@dataclass(frozen=True)
class TrunkPopulation:
    """The strength of the trunk at L5/S1, with the mean ``coefficients`` (3,) of ``TrunkStrength``.

    L5/S1 lies ``below`` (m) below the navel, and the part of the trunk between them weighs ``weight`` (N).
    """

    coefficients: tuple[float, float, float]
    below: float
    weight: float


@dataclass(frozen=True, eq=False, kw_only=True)
class OtherTorques(Driven, Constraint):
    """Bounds on the torques of joints that are not ``covered`` by the strengths of the population."""

    covered: tuple[str, ...]

    def rows(self, node: Node) -> Rows:
        """Return torques divided by strengths."""
        contact, names = self.contact(node), node.robot.coordinate_names[len(GLOBAL) :]
        kept = [k for k, place in enumerate(contact.moving) if names[place] not in self.covered]
        ones, labels = np.ones(len(kept)), tuple(names[contact.moving[k]] for k in kept)
        return Rows(contact.relative_torques[kept], -ones, ones, labels)


@dataclass(frozen=True, eq=False, kw_only=True)
class _WithinStrengths(Grounded, Constraint):
    """Bounds on torques by the strengths of the person; see the module docstring."""

    strengths: tuple[Strength, ...]
    trunk: TrunkPopulation

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the data of ``Grounded``, and the strengths of limbs and trunk."""
        limbs = [(each.variation, each.mean, *(each.curve or ()), each.most) for each in self.strengths]
        back = (*self.trunk.coefficients, self.trunk.below, self.trunk.weight)
        values = {"population of limbs": np.concatenate(limbs), "population of trunks": np.array(back)}
        return {**super().data(s), **{name: np.tile(value, (len(s), 1)) for name, value in values.items()}}

    def rows(self, node: Node) -> Rows:
        """Return the margins of all directions, relative to the mean strengths."""
        z, contact, names = node.shared[self.title], self.contact(node), node.robot.coordinate_names
        sizes = [3 + len(each.curve or ()) for each in self.strengths]
        data = ca.vertsplit(node.data("population of limbs", sum(sizes)), [0, *np.cumsum(sizes).tolist()])
        rows = dict[str, ca.SX]()
        for each, values in zip(self.strengths, data, strict=True):
            if each.coordinate not in node.model.names:
                continue
            k, (variation, mean, *curve, most) = names.index(each.coordinate), ca.vertsplit(values)
            if each.curve is not None:
                q = node.q[k]
                mean = curve[0] * Curve(*curve).at_angle(q - smooth_ramp(q - most))
            torque = each.sign * contact.torques[k - len(GLOBAL)]
            rows[f"{each.coordinate} {'flexes' if each.sign > 0 else 'extends'}"] = 1 + z * variation - torque / mean
        back = ca.vertsplit(node.data("population of trunks", 5))
        moment = self._extension(contact, *back[3:])
        flexion = sum(node.q[names.index(name)] for name in SPINE)
        rows["trunk extends"] = 1 + z * VARIATION - moment / extension(back[:2], flexion)
        rows["trunk flexes"] = 1 + z * VARIATION + moment / back[2]
        zeros = np.zeros(len(rows))
        return Rows(ca.vertcat(*rows.values()), zeros, np.full(len(rows), np.inf), tuple(rows))

    def _extension(self, contact: ContactForces, below: ca.SX, weight: ca.SX) -> ca.SX:
        """Return the extension moment at L5/S1, with the static weight of the trunk part below the navel."""
        node, names = contact.node, contact.names
        pose, forward = node.pose(TRUNK_LINK), node.pose("pelvis")[:3, 2]
        force = pose[:3, :3] @ node.wrenches()[node.robot.link_names.index(TRUNK_LINK), 3:].T
        hands = hand_forces_of_node(node)
        if hands is not None:
            force = force - hands[:3] - hands[3:]
        force = force + ca.vertcat(0, weight / 2, 0)
        moment: ca.SX = -contact.torques[names.index(SPINE[0]) - len(GLOBAL)] - below * ca.dot(force, forward)
        return moment


@dataclass(frozen=True, eq=False, kw_only=True)
class Weakest(Grounded, Cost):
    """The integral of z of the person, with rows that bound torques by the strengths."""

    strengths: tuple[Strength, ...]
    trunk: TrunkPopulation

    def numbers(self) -> Mapping[str, Number]:
        """Return z as a variable."""
        return {self.title: Number(1.0, -MAX_DEVIATIONS, MAX_DEVIATIONS)}

    def companions(self) -> Sequence[Term]:
        """Return the constraint that bounds the torques."""
        shared = {name: getattr(self, name) for name in ("body", "support", "friction", "hands", "seconds")}
        return (_WithinStrengths(**shared, strengths=self.strengths, trunk=self.trunk, name=self.title),)

    def integrand(self, node: Node) -> ca.SX:
        """Return z, which does not vary in time."""
        return node.shared[self.title]
