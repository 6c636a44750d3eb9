"""Terms with contact forces: effort, torque limits, strength curves, balance and friction, joint reactions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.human.body.coordinates import GLOBAL, SIDES
from torsor.human.body.loads import HandForces
from torsor.human.body.strength import CURVED_JOINTS, Curve, JointStrength, StrengthCurves, torques_by_coordinate
from torsor.human.body.trunk_strength import SPINE, TrunkStrength, extension
from torsor.human.contact.contact_forces import (
    FORCES,
    KNUCKLES,
    REACTIONS,
    SPEED,
    WEIGHT,
    ContactForces,
    SharedContact,
    contact_forces,
    ground_data,
    loaded,
)
from torsor.human.contact.support import SharedSupport, Support
from torsor.human.vector_layout import VectorLayout
from torsor.motion import Node
from torsor.motion.terms.term import Constraint, Cost, Number, Rows, Term
from torsor.robot.robot import Robot


def muscle_torques(node: Node) -> ca.SX:
    """Return the torques of the muscles at all joints, without the six global coordinates.

    For free steps, the passive torques are subtracted from the joint torques; other walks have no passive torques.
    """
    contact = contact_forces(node)
    if not isinstance(contact, SharedContact):
        return contact.torques
    passive = torques_by_coordinate(node.robot.coordinate_names, node.q, node.v)
    found: ca.SX = contact.torques - ca.vertcat(*passive)
    return found


def metres(node: Node) -> ca.SX:
    """Return the way of a free step (m), by which objectives are divided; 1 for other motions, whose way is given."""
    return node.shared[SPEED] * node.T if SPEED in node.shared else ca.SX(1)


LEAST = 0.05  # lower bound of the vertical force, as a fraction of the weight
SLOW = 0.03  # m/s: the weight on a foot that slips at this speed costs as much as a torque at its strength
ARM = 0.1  # lever arm that makes moments dimensionless, with the weight (m)
CURVED = tuple(f"{side}_{joint}" for side in SIDES for joint in CURVED_JOINTS)  # coordinates with strength curves
CURVES = VectorLayout({f"{name} {way}": len(Curve._fields) for name in CURVED for way in JointStrength._fields})


def at_least(least: float, rows: Mapping[str, ca.SX]) -> Rows:
    """Return rows by label that are not below a number."""
    count = len(rows)
    return Rows(ca.vertcat(ca.SX(0, 1), *rows.values()), np.full(count, least), np.full(count, np.inf), tuple(rows))


@dataclass(frozen=True, eq=False, kw_only=True)
class Grounded(Term):
    """A term of a ``body`` (``library.human``) on a ``support``, with a coefficient of ``friction``.

    ``strength`` is {coordinate: factor} of the body's own strengths (``effort_limit``), 1 for all others; ``hands`` are
    given forces on the hands, in a motion that takes ``seconds``.
    """

    body: Robot
    support: Support
    friction: float = 1.0
    strength: Mapping[str, float] = field(default_factory=dict)
    hands: HandForces | None = None
    seconds: float = 0.0
    together = "forces"

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the contact data at times s (K,), and the forces on the hands (K, 6) with their points, if any act."""
        if isinstance(self.support, SharedSupport):
            found = {"shared ground": self.support.shared(s, self.body, self.friction)}
        else:
            found = {"ground": ground_data(self.body, self.support, self.friction, s)}
        if self.hands is not None or self.support.rails is not None:
            weight = self.body.mass * float(np.linalg.norm(self.body.gravity))
            found[KNUCKLES] = np.tile(self.body.place("left_knuckles").pose[:3, 3], (len(s), 1))
            found[WEIGHT] = np.full((len(s), 1), weight)
        if self.hands is not None:
            found[FORCES] = self.hands.at(s * self.seconds).reshape(len(s), -1)
        return found

    def contact(self, node: Node) -> ContactForces:
        """Return the contact forces of a node, with the given forces on the hands."""
        return contact_forces(node if self.hands is None else loaded(node))


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

    def squares(self, node: Node) -> ca.SX:
        """Return torques divided by strengths."""
        return self.contact(node).relative_torques


@dataclass(frozen=True, eq=False, kw_only=True)
class Torques(Driven, Constraint):
    """Joint torques, with the ground's wrenches on the feet, within the strengths."""

    def rows(self, node: Node) -> Rows:
        """Return torques divided by strengths."""
        contact = self.contact(node)
        ones, names = np.ones(len(contact.moving)), node.robot.coordinate_names[len(GLOBAL) :]
        return Rows(contact.relative_torques, -ones, ones, tuple(names[k] for k in contact.moving))


@dataclass(frozen=True, eq=False, kw_only=True)
class Curved(Grounded):
    """A grounded term whose data are the strength curves of hips, knees and ankles: one kernel serves all people."""

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
    """Muscle torques of hips, knees and ankles within the strength ``curves``, times the factors of ``strength``.

    The rows are the margins to these limits, divided by the peak torque of the direction.
    """

    def rows(self, node: Node) -> Rows:
        """Return the margins of the joints that move, in both directions."""
        torques, rows = muscle_torques(node), dict[str, ca.SX]()
        for name, joint in self.joints(node).items():
            k = node.robot.coordinate_names.index(name)
            lower, upper = joint.limits(node.q[k], node.v[k])
            torque = torques[k - len(GLOBAL)]
            rows[f"{name} extends"] = (torque - lower) / joint.extend.peak
            rows[f"{name} flexes"] = (upper - torque) / joint.flex.peak
        return at_least(0.0, rows)


@dataclass(frozen=True, eq=False, kw_only=True)
class Balance(Grounded, Constraint):
    """The centre of pressure stays within its box, and the force on each foot within the friction cone.

    ``lateral=False`` leaves out the lateral sides of the box, for a body that moves in a plane.
    """

    lateral: bool = True

    def rows(self, node: Node) -> Rows:
        """Return the sides of the box (in dm), the vertical force and the friction cones, all divided by the weight."""
        contact = self.contact(node)
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

    def squares(self, node: Node) -> ca.SX:
        """Return the powers at both feet."""
        contact = contact_forces(node)
        return ca.vertcat(*(contact.ground_power(side) for side in SIDES)) / (SLOW * contact.weight)


@dataclass(frozen=True, eq=False, kw_only=True)
class Unbalance(Grounded, Cost):
    """The integral of the squared moments of the ground's force about the centre of the pressure's box.

    Moments are divided by the weight times 0.1 m.
    """

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

    def squares(self, node: Node) -> ca.SX:
        """Return the forces of both sides."""
        contact = contact_forces(node)
        forces: ca.SX = ca.vertcat(*(contact.reaction(side, joint) for joint in self.joints for side in SIDES))
        return forces / (contact.weight * ca.sqrt(metres(node)))


@dataclass(frozen=True, eq=False, kw_only=True)
class LimbTorques(Torques):
    """Joint torques within the strengths, except for flexions of the spine, which ``TrunkTorques`` bounds."""

    def rows(self, node: Node) -> Rows:
        """Return torques divided by strengths."""
        found = super().rows(node)
        kept = [k for k, name in enumerate(found.labels) if name not in SPINE]
        return Rows(found.expression[kept], found.lower[kept], found.upper[kept], tuple(found.labels[k] for k in kept))


@dataclass(frozen=True, eq=False, kw_only=True)
class TrunkTorques(Grounded, Constraint):
    """Flexion torques of the spine within the strength of the trunk, whose coefficients are data of the kernel."""

    trunk: TrunkStrength

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the data of ``Grounded``, and the coefficients of the strength (K, 3)."""
        return {**super().data(s), "trunk strength": np.tile(self.trunk.coefficients, (len(s), 1))}

    def rows(self, node: Node) -> Rows:
        """Return torques divided by the strength in extension (least -1) and in flexion (most 1)."""
        names, given = node.robot.coordinate_names, node.data("trunk strength", 3)
        torques, moving = self.contact(node).torques, [name for name in SPINE if name in node.model.names]
        limit = extension([given[0], given[1]], sum(node.q[names.index(name)] for name in SPINE))
        rows, free = list[ca.SX](), np.full(len(moving), np.inf)
        for back in (limit, given[2]):
            rows += [torques[names.index(name) - len(GLOBAL)] / back for name in moving]
        ones = np.ones(len(moving))
        labels = (*(f"{name} extends" for name in moving), *(f"{name} flexes" for name in moving))
        return Rows(ca.vertcat(*rows), np.concatenate([-ones, -free]), np.concatenate([free, ones]), labels)


LEG_JOINTS = ("hip", "knee")
START = 1.5  # initial guess of each peak (N m/kg): above those of least effort


def _peak(title: str, joint: str) -> str:
    """Return the name of the shared number that is the peak of a joint."""
    return f"{title}, {joint}"


@dataclass(frozen=True, eq=False, kw_only=True)
class _LegsBelow(Grounded, Constraint):
    """Hip and knee extension moments of both legs, divided by the mass, below their peaks, which are shared numbers."""

    def rows(self, node: Node) -> Rows:
        """Return how far the moments are below their peaks (N m/kg)."""
        contact, names = contact_forces(node), node.robot.coordinate_names
        mass = contact.weight / float(np.linalg.norm(self.body.gravity))
        rows = dict[str, ca.SX]()
        for side in SIDES:
            for joint in LEG_JOINTS:
                extension = -contact.torques[names.index(f"{side}_{joint}_flexion") - len(GLOBAL)]
                rows[f"{side} {joint}"] = node.shared[_peak(self.title, joint)] - extension / mass
        return at_least(0.0, rows)


@dataclass(frozen=True, eq=False, kw_only=True)
class LegPeaks(Grounded, Cost):
    """The sum of the largest hip and knee extension moments per mass (N m/kg), as in Yoshioka et al. (2007)."""

    at: float | Sequence[float] | None = 1.0

    def numbers(self) -> Mapping[str, Number]:
        """Return the peaks."""
        return {_peak(self.title, joint): Number(START, 0.0) for joint in LEG_JOINTS}

    def companions(self) -> Sequence[Term]:
        """Return the rows that bound the moments at all nodes by the peaks."""
        return (_LegsBelow(body=self.body, support=self.support, friction=self.friction, name=self.title),)

    def integrand(self, node: Node) -> ca.SX:
        """Return the sum of the peaks."""
        return sum((node.shared[_peak(self.title, joint)] for joint in LEG_JOINTS), start=ca.SX(0))
