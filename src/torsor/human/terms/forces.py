"""Terms with contact forces: effort, torque limits, strength curves, balance and friction, and joint reactions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.human.body.coordinates import GLOBAL, SIDES
from torsor.human.body.loads import HandForces
from torsor.human.body.strength import CURVED_JOINTS, Curve, JointStrength, StrengthCurves
from torsor.human.body.trunk_strength import SPINE, TrunkStrength, extension
from torsor.human.contact.contact_forces import (
    FORCES,
    KNUCKLES,
    REACTIONS,
    SPEED,
    WEIGHT,
    ContactForces,
    contact_forces,
    ground_data,
    loaded,
)
from torsor.human.contact.support import SharedSupport, Support
from torsor.human.vector_layout import VectorLayout
from torsor.motion import Node
from torsor.motion.terms.term import Constraint, Cost, Number, Rows, Term
from torsor.robot.robot import Robot


def metres(node: Node) -> ca.SX:
    """Return the divisor of objectives: the distance (m) of a walk, or 1 for tasks."""
    return node.shared[SPEED] * node.T if SPEED in node.shared else ca.SX(1)


MIN_VERTICAL_FORCE = 0.05  # lower bound of the vertical force, as a fraction of the weight
MOMENT_ARM = 0.1  # moment arm (m) that, times the weight, makes moments dimensionless
CURVED = tuple(f"{side}_{joint}" for side in SIDES for joint in CURVED_JOINTS)  # coordinates with strength curves
CURVES = VectorLayout({f"{name} {way}": len(Curve._fields) for name in CURVED for way in JointStrength._fields})


def at_least(least: float, rows: Mapping[str, ca.SX]) -> Rows:
    """Return labelled rows with a lower bound."""
    count = len(rows)
    return Rows(ca.vertcat(ca.SX(0, 1), *rows.values()), np.full(count, least), np.full(count, np.inf), tuple(rows))


@dataclass(frozen=True, eq=False, kw_only=True)
class Grounded(Term):
    """A term of a ``body`` (``library.human``) on a ``support``, with a ``friction`` coefficient.

    ``strength`` {coordinate: factor} multiplies the strengths of the body (``effort_limit``); other factors are 1.
    ``hands`` are prescribed hand forces in a motion with the duration ``seconds``.
    """

    body: Robot
    support: Support
    friction: float = 1.0
    strength: Mapping[str, float] = field(default_factory=dict)
    hands: HandForces | None = None
    seconds: float = 0.0
    together = "forces"

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the contact data at times s (K,), and any hand forces (K, 6) with their points of application."""
        if isinstance(self.support, SharedSupport):
            node_data = {"shared ground": self.support.shared(s, self.body, self.friction)}
        else:
            node_data = {"ground": ground_data(self.body, self.support, self.friction, s)}
        if self.hands is not None or self.support.rails is not None:
            weight = self.body.mass * float(np.linalg.norm(self.body.gravity))
            node_data[KNUCKLES] = np.tile(self.body.place("left_knuckles").pose[:3, 3], (len(s), 1))
            node_data[WEIGHT] = np.full((len(s), 1), weight)
        if self.hands is not None:
            node_data[FORCES] = self.hands.at(s * self.seconds).reshape(len(s), -1)
        return node_data

    def contact(self, node: Node) -> ContactForces:
        """Return the contact forces of a node, including prescribed hand forces."""
        return contact_forces(node if self.hands is None else loaded(node))


@dataclass(frozen=True, eq=False, kw_only=True)
class Driven(Grounded):
    """A grounded term with joint torques; ``moving`` contains the coordinates that are not frozen."""

    moving: tuple[str, ...]

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the data of ``Grounded``, and the strengths (N m) of the moving joints."""
        limits = dict(zip(self.body.coordinate_names, self.body.effort_limit, strict=True))
        names = [name for name in self.body.coordinate_names[len(GLOBAL) :] if name in self.moving]
        strengths = [limits[name] * self.strength.get(name, 1.0) for name in names]
        return {**super().data(s), "strengths": np.tile(strengths, (len(s), 1))}


@dataclass(frozen=True, eq=False, kw_only=True)
class Effort(Driven, Cost):
    """The integral of the squared ratios of torques to strengths of the moving joints (Barman 2020, eq. 5.1)."""

    def squares(self, node: Node) -> ca.SX:
        """Return the torques of the moving joints, divided by strengths."""
        return self.contact(node).relative_torques


@dataclass(frozen=True, eq=False, kw_only=True)
class Torques(Driven, Constraint):
    """Bounds on joint torques, including the effect of the ground wrenches, by joint strengths."""

    def rows(self, node: Node) -> Rows:
        """Return the torques of the moving joints, divided by strengths."""
        contact = self.contact(node)
        ones, names = np.ones(len(contact.moving)), node.robot.coordinate_names[len(GLOBAL) :]
        return Rows(contact.relative_torques, -ones, ones, tuple(names[k] for k in contact.moving))


@dataclass(frozen=True, eq=False, kw_only=True)
class Curved(Grounded):
    """A grounded term with the strength curves of hips, knees and ankles as data, so all people share one kernel."""

    curves: StrengthCurves

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the data of ``Grounded``, and the curves (K, 72) of both legs."""
        parts = dict[str, Array]()
        for name in CURVED:
            for way, curve in self.curves.of(self.body, name)._asdict().items():
                scaled = curve._replace(peak=self.strength.get(name, 1.0) * curve.peak)
                parts[f"{name} {way}"] = np.array(scaled)
        return {**super().data(s), "strength curves": CURVES.pack(len(s), **parts)}

    def joints(self, node: Node) -> dict[str, JointStrength]:
        """Return the curves of the moving coordinates by name, as symbols."""
        values, joints_by_name = CURVES.unpack(node.data("strength curves", CURVES.size)), dict[str, JointStrength]()
        for name in CURVED:
            if name in node.model.names:
                ways = (Curve(*ca.vertsplit(values[f"{name} {way}"])) for way in JointStrength._fields)
                joints_by_name[name] = JointStrength(*ways)
        return joints_by_name


@dataclass(frozen=True, eq=False, kw_only=True)
class Strengths(Curved, Constraint):
    """Bounds on muscle torques of hips, knees and ankles by strength ``curves`` times ``strength`` factors.

    The rows are the margins to these limits, divided by the peak torque in the same direction.
    """

    def rows(self, node: Node) -> Rows:
        """Return the margins of the moving joints, in both directions."""
        torques, rows = contact_forces(node).muscle_torques, dict[str, ca.SX]()
        for name, joint in self.joints(node).items():
            k = node.robot.coordinate_names.index(name)
            lower, upper = joint.limits(node.q[k], node.v[k])
            torque = torques[k - len(GLOBAL)]
            rows[f"{name} extends"] = (torque - lower) / joint.extend.peak
            rows[f"{name} flexes"] = (upper - torque) / joint.flex.peak
        return at_least(0.0, rows)


@dataclass(frozen=True, eq=False, kw_only=True)
class Balance(Grounded, Constraint):
    """A constraint that keeps the centre of pressure within its box, and foot forces within their friction cones.

    ``lateral=False`` omits the lateral edges of the box, for planar motion.
    """

    lateral: bool = True

    def rows(self, node: Node) -> Rows:
        """Return the distances (dm) of the centre of pressure from the edges of its box, times the vertical force.

        These rows and that of the vertical force are divided by body weight; friction cones, by its square.
        """
        contact = self.contact(node)
        (f, n), (left, right, back, front) = contact.level, ca.vertsplit(contact.box)
        moment = MOMENT_ARM * contact.weight
        rows = {"back": (-n[0] - back * f[1]) / moment, "front": (front * f[1] + n[0]) / moment}
        rows["vertical force"] = f[1] / contact.weight
        for side in SIDES:
            x, y, z = ca.vertsplit(contact.directions[side] / contact.weight)
            rows[f"friction, {side}"] = (contact.friction * y) ** 2 - x**2 - z**2
        if self.lateral:
            rows |= {"right side": (n[2] - left * f[1]) / moment, "left side": (right * f[1] - n[2]) / moment}
        lower = np.array([MIN_VERTICAL_FORCE if name == "vertical force" else 0.0 for name in rows])
        return Rows(ca.vertcat(*rows.values()), lower, np.full(len(rows), np.inf), tuple(rows))


@dataclass(frozen=True, eq=False, kw_only=True)
class JointReactions(Grounded, Cost):
    """The squared ratios of forces in leg joints to body weight, integrated over time, per metre (s/m).

    ``joints`` may contain "hip", "knee" and "ankle". The forces act between the links and do not include muscle forces.
    """

    joints: tuple[str, ...] = tuple(REACTIONS)

    def squares(self, node: Node) -> ca.SX:
        """Return the forces on both sides."""
        contact = contact_forces(node)
        forces: ca.SX = ca.vertcat(*(contact.reaction(side, joint) for joint in self.joints for side in SIDES))
        return forces / (contact.weight * ca.sqrt(metres(node)))


@dataclass(frozen=True, eq=False, kw_only=True)
class LimbTorques(Torques):
    """Bounds on joint torques by joint strengths, except for spine flexion, which ``TrunkTorques`` bounds."""

    def rows(self, node: Node) -> Rows:
        """Return the torques of the moving joints, divided by strengths."""
        bounded = super().rows(node)
        kept = [k for k, name in enumerate(bounded.labels) if name not in SPINE]
        return Rows(
            bounded.expression[kept], bounded.lower[kept], bounded.upper[kept], tuple(bounded.labels[k] for k in kept)
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class TrunkTorques(Grounded, Constraint):
    """Bounds on spine flexion torques by the trunk strength, whose coefficients are kernel data."""

    trunk: TrunkStrength

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the data of ``Grounded``, and the strength coefficients (K, 3)."""
        return {**super().data(s), "trunk strength": np.tile(self.trunk.coefficients, (len(s), 1))}

    def rows(self, node: Node) -> Rows:
        """Return torques divided by the strength in extension (lower bound -1) and in flexion (upper bound 1)."""
        names, coefficients = node.robot.coordinate_names, node.data("trunk strength", 3)
        torques, moving = self.contact(node).torques, [name for name in SPINE if name in node.model.names]
        limit = extension([coefficients[0], coefficients[1]], sum(node.q[names.index(name)] for name in SPINE))
        rows, free = list[ca.SX](), np.full(len(moving), np.inf)
        for back in (limit, coefficients[2]):
            rows += [torques[names.index(name) - len(GLOBAL)] / back for name in moving]
        ones = np.ones(len(moving))
        labels = (*(f"{name} extends" for name in moving), *(f"{name} flexes" for name in moving))
        return Rows(ca.vertcat(*rows), np.concatenate([-ones, -free]), np.concatenate([free, ones]), labels)


LEG_JOINTS = ("hip", "knee")
INITIAL_PEAK_MOMENT = 1.5  # initial guess of each peak (N m/kg), above the peaks of minimum effort


def _peak(title: str, joint: str) -> str:
    """Return the name of the shared parameter for the peak of a joint."""
    return f"{title}, {joint}"


@dataclass(frozen=True, eq=False, kw_only=True)
class _LegsBelow(Grounded, Constraint):
    """Bounds on the hip and knee extension moments per mass of both legs by peaks, which are shared parameters."""

    def rows(self, node: Node) -> Rows:
        """Return the differences (N m/kg) between the peaks and the moments."""
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
    """The sum of the peak hip and knee extension moments per mass (N m/kg), as in Yoshioka et al. (2007)."""

    at: float | Sequence[float] | None = 1.0

    def numbers(self) -> Mapping[str, Number]:
        """Return the peak of each leg joint as a variable."""
        return {_peak(self.title, joint): Number(INITIAL_PEAK_MOMENT, 0.0) for joint in LEG_JOINTS}

    def companions(self) -> Sequence[Term]:
        """Return the rows that bound the moments at all nodes by the peaks."""
        return (_LegsBelow(body=self.body, support=self.support, friction=self.friction, name=self.title),)

    def integrand(self, node: Node) -> ca.SX:
        """Return the sum of the peaks."""
        return sum((node.shared[_peak(self.title, joint)] for joint in LEG_JOINTS), start=ca.SX(0))
