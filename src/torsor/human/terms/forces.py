"""Terms with contact forces: effort, torque limits, strength curves, balance and friction, joint reactions."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.human.body.coordinates import GLOBAL, SIDES
from torsor.human.body.strength import CURVED_JOINTS, Curve, JointStrength, StrengthCurves
from torsor.human.contact.contact_forces import REACTIONS, ground_data
from torsor.human.contact.hand_node import KNUCKLES, WEIGHT
from torsor.human.contact.of_node import contact_forces
from torsor.human.contact.support import SharedSupport, Support
from torsor.human.terms.muscles import metres, muscle_torques
from torsor.human.vector_layout import VectorLayout
from torsor.motion import Node
from torsor.motion.terms.term import Constraint, Cost, Rows, Term
from torsor.robot.robot import Robot

LEAST = 0.05  # lower bound of the vertical force, as a fraction of the weight
SLOW = 0.03  # m/s: the weight on a foot that slips at this speed costs as much as a torque at its strength
ARM = 0.1  # lever arm that makes moments dimensionless, with the weight (m)
CURVED = tuple(f"{side}_{joint}" for side in SIDES for joint in CURVED_JOINTS)  # coordinates with strength curves
CURVES = VectorLayout({f"{name} {way}": len(Curve._fields) for name in CURVED for way in JointStrength._fields})


def hand_data(body: Robot, s: Array) -> dict[str, Array]:
    """Return where forces act on the hands (K, 3), and the weight (K, 1) that is the unit of the forces of rails."""
    at, weight = body.place("left_knuckles").pose[:3, 3], body.mass * float(np.linalg.norm(body.gravity))
    return {KNUCKLES: np.tile(at, (len(s), 1)), WEIGHT: np.full((len(s), 1), weight)}


@dataclass(frozen=True, eq=False, kw_only=True)
class Grounded(Term):
    """A term of a ``body`` (``library.human``) on a ``support``, with a coefficient of ``friction``.

    ``strength`` is {coordinate: factor} of the body's own strengths (``effort_limit``), 1 for all others.
    """

    body: Robot
    support: Support
    friction: float = 1.0
    strength: Mapping[str, float] = field(default_factory=dict)
    together = "forces"

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the contact data (K, ``GROUND.size``) at times s (K,)."""
        hands = {} if self.support.rails is None else hand_data(self.body, s)
        if isinstance(self.support, SharedSupport):
            return {"shared ground": self.support.shared(s, self.body, self.friction), **hands}
        return {"ground": ground_data(self.body, self.support, self.friction, s), **hands}


@dataclass(frozen=True, eq=False, kw_only=True)
class Driven(Grounded):
    """A grounded term with joint torques; ``moving`` are the coordinates that are not frozen."""

    moving: tuple[str, ...]

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the data of ``Grounded``, and the strengths (N m) of the joints that move."""
        limits = dict(zip(self.body.coordinate_names, self.body.effort_limit, strict=True))
        names = [name for name in self.body.coordinate_names[len(GLOBAL) :] if name in self.moving]
        strengths = [limits[name] * self.strength.get(name, 1.0) for name in names]
        return {**super().data(s), "strengths": np.tile(strengths, (len(s), 1))}


@dataclass(frozen=True, eq=False, kw_only=True)
class Effort(Driven, Cost):
    """The integral of squared torques divided by strengths (Barman 2020, eq. 5.1), of the joints that move."""

    def integrand(self, node: Node) -> ca.SX:
        """Return 0: the whole cost is a sum of squares."""
        return ca.SX(0)

    def squares(self, node: Node) -> ca.SX:
        """Return torques divided by strengths."""
        return contact_forces(node).relative_torques


@dataclass(frozen=True, eq=False, kw_only=True)
class Torques(Driven, Constraint):
    """Joint torques, with the ground's wrenches on the feet, within the strengths."""

    def rows(self, node: Node) -> Rows:
        """Return torques divided by strengths."""
        contact = contact_forces(node)
        ones, names = np.ones(len(contact.moving)), node.robot.coordinate_names[len(GLOBAL) :]
        return Rows(contact.relative_torques, -ones, ones, tuple(names[k] for k in contact.moving))


@dataclass(frozen=True, eq=False, kw_only=True)
class Curved(Grounded):
    """A grounded term with the strength curves of hips, knees and ankles, times the factors of ``strength``.

    The curves are data, so that one kernel serves all people.
    """

    curves: StrengthCurves

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the data of ``Grounded``, and the curves of both legs (K, 72)."""
        parts = dict[str, Array]()
        for name in CURVED:
            for way, curve in self.curves.of(self.body, name)._asdict().items():
                scaled = curve._replace(peak=self.strength.get(name, 1.0) * curve.peak)
                parts[f"{name} {way}"] = np.array(scaled)
        return {**super().data(s), "strength curves": CURVES.pack(len(s), **parts)}

    def joints(self, node: Node) -> dict[str, JointStrength]:
        """Return the curves of the coordinates that move, by name, in symbols."""
        given, found = CURVES.unpack(node.data("strength curves", CURVES.size)), dict[str, JointStrength]()
        for name in CURVED:
            if name in node.model.names:
                ways = (Curve(*ca.vertsplit(given[f"{name} {way}"])) for way in JointStrength._fields)
                found[name] = JointStrength(*ways)
        return found


@dataclass(frozen=True, eq=False, kw_only=True)
class Strengths(Curved, Constraint):
    """Torques of the muscles of hips, knees and ankles within strength curves, times the factors of ``strength``.

    Rows are the margins to the limits, divided by the peak torque of the direction. The constraint ``Torques`` holds as
    well.
    """

    def rows(self, node: Node) -> Rows:
        """Return the margins of the joints that move, in both directions."""
        torques = muscle_torques(node)
        rows, labels = list[ca.SX](), list[str]()
        for name, joint in self.joints(node).items():
            k = node.robot.coordinate_names.index(name)
            lower, upper = joint.limits(node.q[k], node.v[k])
            torque = torques[k - len(GLOBAL)]
            rows += [(torque - lower) / joint.extend.peak, (upper - torque) / joint.flex.peak]
            labels += [f"{name} extends", f"{name} flexes"]
        return Rows(ca.vertcat(ca.SX(0, 1), *rows), np.zeros(len(rows)), np.full(len(rows), np.inf), tuple(labels))


@dataclass(frozen=True, eq=False, kw_only=True)
class Balance(Grounded, Constraint):
    """The centre of pressure stays within its box, and the force on each foot within the friction cone.

    ``lateral=False`` leaves out the lateral sides of the box, for a body that moves in a plane.
    """

    lateral: bool = True

    def rows(self, node: Node) -> Rows:
        """Return the sides of the box (in dm), the vertical force and the friction cones, all divided by the weight."""
        contact = contact_forces(node)
        (f, n), (left, right, back, front) = contact.level, ca.vertsplit(contact.box)
        moment = ARM * contact.weight
        rows = {"back": (-n[0] - back * f[1]) / moment, "front": (front * f[1] + n[0]) / moment}
        rows["vertical force"] = f[1] / contact.weight
        for side in SIDES:
            x, y, z = ca.vertsplit(contact.directions[side] / contact.weight)
            rows[f"friction, {side}"] = (contact.friction * y) ** 2 - x**2 - z**2
        if self.lateral:
            rows |= {"right side": (n[2] - left * f[1]) / moment, "left side": (right * f[1] - n[2]) / moment}
        lower = np.array([LEAST if name == "vertical force" else 0.0 for name in rows])
        return Rows(ca.vertcat(*rows.values()), lower, np.full(len(rows), np.inf), tuple(rows))


@dataclass(frozen=True, eq=False, kw_only=True)
class Slipping(Grounded, Cost):
    """The integral of the squared power of the ground at feet that slip, divided by the weight times 0.03 m/s.

    Without it, slipping feet let the ground do work that no muscle pays for.
    """

    def integrand(self, node: Node) -> ca.SX:
        """Return 0: the whole cost is a sum of squares."""
        return ca.SX(0)

    def squares(self, node: Node) -> ca.SX:
        """Return the powers at both feet."""
        contact = contact_forces(node)
        return ca.vertcat(*(contact.ground_power(side) for side in SIDES)) / (SLOW * contact.weight)


@dataclass(frozen=True, eq=False, kw_only=True)
class Unbalance(Grounded, Cost):
    """The integral of the squared moments of the ground's force about the centre of the box of the pressure.

    Moments are divided by the weight times 0.1 m.
    """

    def integrand(self, node: Node) -> ca.SX:
        """Return 0: the whole cost is a sum of squares."""
        return ca.SX(0)

    def squares(self, node: Node) -> ca.SX:
        """Return the moments."""
        contact = contact_forces(node)
        (f, n), (left, right, back, front) = contact.level, ca.vertsplit(contact.box)
        aside, ahead = n[2] - (left + right) / 2 * f[1], n[0] + (back + front) / 2 * f[1]
        moments: ca.SX = ca.vertcat(aside, ahead) / (ARM * contact.weight)
        return moments


@dataclass(frozen=True, eq=False, kw_only=True)
class JointReactions(Grounded, Cost):
    """The integral of the squared forces in joints of the legs ("hip", "knee", "ankle"), divided by the weight (s).

    With free steps it is that for each metre (s/m). Forces are those between the links, without those of muscles.
    """

    joints: tuple[str, ...] = tuple(REACTIONS)

    def integrand(self, node: Node) -> ca.SX:
        """Return 0: the whole cost is a sum of squares."""
        return ca.SX(0)

    def squares(self, node: Node) -> ca.SX:
        """Return the forces of both sides."""
        contact = contact_forces(node)
        forces: ca.SX = ca.vertcat(*(contact.reaction(side, joint) for joint in self.joints for side in SIDES))
        return forces / (contact.weight * ca.sqrt(metres(node)))
