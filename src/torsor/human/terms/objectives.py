"""Walking objectives per metre: metabolic energy, muscle effort and accelerations.

The torques are muscle torques, that is, joint torques from inverse dynamics with ground wrenches minus passive torques.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import indices_of, number, positive
from torsor.human.body.coordinates import GLOBAL, SIDES
from torsor.human.body.person import Person
from torsor.human.body.strength import CURVED_JOINTS, StrengthCurves
from torsor.human.contact.contact_forces import SharedContact, contact_as, contact_forces
from torsor.human.contact.support import Foot
from torsor.human.terms.forces import Curved, Driven, Grounded, metres
from torsor.motion import Node
from torsor.motion.terms.term import Constraint, Cost, Rows
from torsor.robot.robot import Robot

DRIVING, BRAKING = 0.25, 1.20  # efficiencies of positive and negative work (Margaria 1968)
BASAL = 1.2  # W/kg; metabolic power at rest (Bhargava et al. 2004)
POWER_SMOOTHING = 0.02  # W/kg; |P| is approximated by sqrt(P^2 + w^2) - w with this power w
SLIPPING_POWER = 0.005  # W/kg; above this ground power at slipping feet, an increase costs more than muscle power
SMOOTHER_POWERS = 0.5, 0.2  # W/kg; the same two powers in the problem that provides the warm start
POWERS = "powers of smoothing"  # key of node data
ACTIVATION = 0.06  # s; time constant of deactivation (De Groote et al. 2016)
ACCELERATION_SCALE = 100.0  # rad/s^2; scale of joint accelerations


def smooth_size(P: ca.SX, smooth: ca.SX | float = POWER_SMOOTHING) -> ca.SX:
    """Return a smooth approximation of |P|."""
    return ca.sqrt(P**2 + smooth**2) - smooth


def slipping(node: Node, mass: ca.SX, power: ca.SX | float = SLIPPING_POWER) -> ca.SX:
    """Return a column whose squares P^2 / (2 power DRIVING d) penalise the ground power P (W/kg) at slipping feet.

    d is the distance of a walk, or 1 for tasks (``metres``).
    """
    P: ca.SX = ca.vertcat(*(contact_forces(node).ground_power(side) for side in SIDES)) / mass
    return P / ca.sqrt(2 * power * DRIVING * metres(node))


@dataclass(frozen=True, eq=False, kw_only=True)
class MuscleTorques(Driven, Constraint):
    """Bounds on muscle torques by joint strengths."""

    def rows(self, node: Node) -> Rows:
        """Return torques divided by strengths."""
        contact, names = contact_forces(node), node.robot.coordinate_names[len(GLOBAL) :]
        ones = np.ones(len(contact.moving))
        return Rows(contact.relative_muscle_torques, -ones, ones, tuple(names[k] for k in contact.moving))


@dataclass(frozen=True, eq=False, kw_only=True)
class MetabolicEnergy(Driven, Cost):
    """Metabolic energy per metre and kg (J/(kg m)): work divided by its efficiency, and power at rest.

    For each axis of each joint, positive work costs 1/0.25 and negative work costs 1/1.20 times its amount (Margaria
    1968). The squared ground power at slightly slipping feet is added, so that slipping is not advantageous. |P| is
    smoothed near 0 with the width ``smooth`` (W/kg). Above a ground power ``slipping`` (W/kg), a marginal increase
    costs more than muscle power.
    """

    smooth: float = POWER_SMOOTHING
    slipping: float = SLIPPING_POWER

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the data of ``Driven``, and both powers of smoothing (K, 2)."""
        return {**super().data(s), POWERS: np.tile([self.smooth, self.slipping], (len(s), 1))}

    def smoother(self) -> Self:
        """Return the term with a smoother |P| and a lower penalty for slipping."""
        smooth, slipping = SMOOTHER_POWERS
        return replace(self, smooth=smooth, slipping=slipping)

    def velocities(self, node: Node) -> ca.SX:
        """Return the velocities at which muscles do work, which are those of the moving joints."""
        v: ca.SX = node.v[len(GLOBAL) :][contact_forces(node).moving]
        return v

    def integrand(self, node: Node) -> ca.SX:
        """Return the power divided by mass and distance."""
        contact = contact_as(SharedContact, node)
        joints = contact.muscle_torques[contact.moving] * self.velocities(node)
        P = joints / contact.mass
        size = smooth_size(P, node.data(POWERS, 2)[0])
        driving, braking = ca.sum1(size + P) / 2, ca.sum1(size - P) / 2
        return (driving / DRIVING + braking / BRAKING + BASAL) / metres(node)

    def squares(self, node: Node) -> ca.SX:
        """Return the scaled ground powers at slipping feet."""
        return slipping(node, contact_as(SharedContact, node).mass, node.data(POWERS, 2)[1])


@dataclass(frozen=True, eq=False, kw_only=True)
class MuscleEffort(Driven, Cost):
    """The squared ratios of muscle torques to strengths, integrated over time, per metre (s/m)."""

    def squares(self, node: Node) -> ca.SX:
        """Return the relative torques."""
        return contact_forces(node).relative_muscle_torques / ca.sqrt(metres(node))


@dataclass(frozen=True, eq=False, kw_only=True)
class Accelerations(Grounded, Cost):
    """The squared joint accelerations, in (100 rad/s^2)^2, per metre (s/m).

    The term is an ``integrand`` instead of ``squares``, because its Hessian is sparse, whereas J^T J would be dense.
    """

    def integrand(self, node: Node) -> ca.SX:
        """Return the sum of the squared joint accelerations, scaled and per metre."""
        joints = node.model.names[len(GLOBAL) : node.model.names.moving]
        return ca.sumsqr(ca.vertcat(*(node.profile(name, 2) for name in joints)) / ACCELERATION_SCALE) / metres(node)


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadStability(Grounded, Cost):
    """The squared angular velocity of the head (rad/s), integrated over time, per metre (1/(s m))."""

    def squares(self, node: Node) -> ca.SX:
        """Return the angular velocity divided by the square root of the distance."""
        turning: ca.SX = node.velocity("head")[:3] / ca.sqrt(metres(node))
        return turning


@dataclass(frozen=True, eq=False, kw_only=True)
class PassiveTorques(Driven, Cost):
    """The squared ratios of passive torques to strengths, integrated over time, per metre (s/m) (Falisse et al. 2019).

    These are the passive torques that ``MuscleTorques`` excludes.
    """

    def squares(self, node: Node) -> ca.SX:
        """Return the relative passive torques."""
        contact = contact_forces(node)
        passive = (contact.torques - contact.muscle_torques)[contact.moving]
        relative: ca.SX = passive / node.data("strengths", len(contact.moving))
        return relative / ca.sqrt(metres(node))


@dataclass(frozen=True, eq=False, kw_only=True)
class FootForces(Grounded, Constraint):
    """The ground forces on both feet, in body weights, as rows without bounds, whose rates are a cost."""

    def rows(self, node: Node) -> Rows:
        """Return the components of both forces."""
        contact = contact_as(SharedContact, node)
        forces = ca.vertcat(*(contact.feet[side].f for side in SIDES)) / contact.weight
        unbounded, labels = np.full(6, np.inf), tuple(f"{side} {axis}" for side in SIDES for axis in "xyz")
        return Rows(forces, -unbounded, unbounded, labels)


# Metabolic energy from heat rates in joint space (Kim and Roberts 2015; Roberts, Hillstrom and Kim 2016).
#
# For each axis of each joint, with torque t, velocity v and largest velocity v_max, the metabolic power is
#
#     t v + h_sl |t v| + (h_am + h_cc) |t| v_max
#
# where h_sl is the heat coefficient of shortening (t v > 0) or lengthening (t v < 0), h_am that of activation and
# maintenance, and h_cc that of co-contraction. The total is the sum over all axes plus the power at rest.
#
# The four coefficients were not compared with the authors' tables, which were not available. They are fields of the
# term, so other values can be used. The authors' v_max is the largest velocity of the recorded trial. Because this
# would not be smooth in an optimisation, it is a constant of each joint here (``rates``).

ACTIVATION_HEAT, COCONTRACTION_HEAT = 0.054, 0.004  # h_am and h_cc
SHORTENING_HEAT, LENGTHENING_HEAT = 0.283, 1.423  # h_sl of positive and negative work


def joint_rates(body: Robot) -> dict[str, float]:
    """Return a typical fast velocity (rad/s) of each joint coordinate of a body (``library.human``).

    For hip, knee and ankle flexion, it is the velocity at which half of the isometric torque remains, averaged over
    both directions (Anderson et al. 2007, young men). For all other coordinates, it is the mean of these three.
    """
    curves = StrengthCurves()
    fast = {joint: float(np.mean([curve.fast for curve in curves.of(body, joint)])) for joint in CURVED_JOINTS}
    rates = dict.fromkeys(body.coordinate_names[len(GLOBAL) :], float(np.mean(list(fast.values()))))
    return rates | {f"{side}_{joint}": rate for side in SIDES for joint, rate in fast.items()}


@dataclass(frozen=True, eq=False, kw_only=True)
class Heat(Driven, Cost):
    """Metabolic energy per metre and kg (J/(kg m)) from heat rates.

    ``activation``, ``cocontraction``, ``shortening`` and ``lengthening`` are the dimensionless heat coefficients (Kim
    and Roberts 2015; their default values were not compared with the paper). ``basal`` (W/kg) is the power at rest.
    ``rates`` {coordinate: v_max (rad/s)} replaces ``joint_rates``. Ground power at slightly slipping feet is penalised
    as in ``MetabolicEnergy``.
    """

    activation: float = ACTIVATION_HEAT
    cocontraction: float = COCONTRACTION_HEAT
    shortening: float = SHORTENING_HEAT
    lengthening: float = LENGTHENING_HEAT
    basal: float = BASAL
    rates: Mapping[str, float] = field(default_factory=dict)

    def check(self) -> None:
        """Raise ModelError for negative coefficients or rates, and for unknown coordinates."""
        super().check()
        for name in ("activation", "cocontraction", "shortening", "lengthening", "basal"):
            number(getattr(self, name), self.title, name, least=0.0)
        indices_of(list(self.rates), self.body.coordinate_names[len(GLOBAL) :], f"{self.title}: rates")
        for name, rate in self.rates.items():
            positive(rate, self.title, f"rate of {name}")

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the data of ``Driven``, and the heat data (K, N + 5).

        Each row of the heat data contains v_max (rad/s) of the N moving joints, ``shortening``, ``lengthening``,
        ``activation`` + ``cocontraction``, ``basal`` (W/kg) and the mass (kg).
        """
        rates = joint_rates(self.body) | dict(self.rates)
        fast = [rates[name] for name in self.body.coordinate_names[len(GLOBAL) :] if name in self.moving]
        held = self.activation + self.cocontraction
        numbers = [*fast, self.shortening, self.lengthening, held, self.basal, self.body.mass]
        return {**super().data(s), "heat": np.tile(numbers, (len(s), 1))}

    def integrand(self, node: Node) -> ca.SX:
        """Return the power divided by mass and distance."""
        contact = contact_forces(node)
        values = node.data("heat", len(contact.moving) + 5)
        rates, (shortening, lengthening, holding, basal, mass) = values[:-5], ca.vertsplit(values[-5:])
        torques = contact.muscle_torques[contact.moving]
        joints = torques * node.v[len(GLOBAL) :][contact.moving]
        P = joints / mass
        size, held = smooth_size(P), smooth_size(torques * rates / mass)
        heat = shortening * (size + P) / 2 + lengthening * (size - P) / 2
        return (ca.sum1(P + heat) + holding * ca.sum1(held) + basal) / metres(node)

    def squares(self, node: Node) -> ca.SX:
        """Return the scaled ground powers at slipping feet."""
        return slipping(node, node.data("heat", len(contact_forces(node).moving) + 5)[-1])


# Effort relative to the strength of a joint at its angle and velocity (Anderson, Madigan and Nussbaum 2007).

TORQUE_SMOOTHING = 0.01  # width w, relative to the largest torque, of max(x, 0) = (x + sqrt(x^2 + w^2)) / 2


@dataclass(frozen=True, eq=False, kw_only=True)
class RelativeStrength(Curved, Driven, Cost):
    """The squared ratios of muscle torques to the largest torques at the angle and velocity, integrated over time.

    Extension and flexion torques of hips, knees and ankles are divided by the extension and flexion strengths of
    ``curves``. All other torques are divided by constant joint strengths. The integral is divided by the distance
    (s/m).
    """

    def squares(self, node: Node) -> ca.SX:
        """Return the relative torques, with one for each direction of joints with curves."""
        moving, names = contact_forces(node).moving, node.robot.coordinate_names[len(GLOBAL) :]
        torques, strengths = contact_forces(node).muscle_torques, node.data("strengths", len(moving))
        joints, rows = self.joints(node), list[ca.SX]()
        for at, k in enumerate(moving):
            if names[k] not in joints:
                rows.append(torques[k] / strengths[at])
                continue
            joint, q, v = joints[names[k]], node.q[k + len(GLOBAL)], node.v[k + len(GLOBAL)]
            for curve, sign in ((joint.extend, -1.0), (joint.flex, 1.0)):
                x = sign * torques[k] / curve.peak
                relative = (x + ca.sqrt(x**2 + TORQUE_SMOOTHING**2)) / 2
                rows.append(relative / (curve.at_angle(q) * curve.at_speed(sign * v)))
        return ca.vertcat(*rows) / ca.sqrt(metres(node))


# The margin of stability of a walk, from the extrapolated centre of mass (Hof, Gazendam and Sinke 2005).
#
# A body that falls like an inverted pendulum with length l is stopped by a foot at the extrapolated centre of mass
#
#     xi = x + v / w      w = sqrt(g / l)
#
# where x and v are the position and velocity of the centre of mass. The margin of stability b is the distance of xi
# from the border of the support. If it is negative, the body falls to that side unless it steps there. Here, l is the
# height of the centre of mass when standing, and the borders are the lateral edges of the loaded feet: the right edge
# of the right sole and the left edge of the left sole. The forward margin does not count, because it is always negative
# in walking, which is a forward fall stopped by the next step.


def pendulum_rate(body: Robot) -> float:
    """Return w (1/s) of a body (``library.human``), the square root of gravity over centre-of-mass height."""
    still = body.neutral()
    ground = min(float(body.pose(still, f"{side}_heel")[1, 3]) for side in SIDES)
    height = float(body.center_of_mass(still)[1]) - ground
    return float(np.sqrt(np.linalg.norm(body.gravity) / height))


def margins(node: Node, rate: ca.SX) -> ca.SX:
    """Return the margins (2 x 1) (m) to the right edge of the right sole and the left edge of the left sole.

    The margin of an unloaded foot is large.
    """
    contact = contact_as(SharedContact, node)
    velocity = node.call("momentum", node.q, node.v)[3] / contact.mass
    xi = node.call("center_of_mass", node.q)[0] + velocity / rate
    right = contact.heels["right"][0] + contact.soles["right"][0]
    left = contact.heels["left"][0] + contact.soles["left"][1]
    distances: ca.SX = ca.vertcat(xi - right, left - xi)
    return distances


@dataclass(frozen=True, eq=False, kw_only=True)
class Instability(Grounded, Cost):
    """The squared shortfall of the lateral margin of stability, in sole half-widths, per metre (s/m).

    With the margin b and u = -b / half-width, the shortfall is log(1 + exp(u)), which is approximately u if the margin
    is negative, and nearly zero if the margin is several half-widths.
    """

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the data of ``Grounded``, the pendulum rate (1/s) and the half-width of a sole (m)."""
        constants = [pendulum_rate(self.body), Foot.of(self.body).half]
        return {**super().data(s), "pendulum": np.tile(constants, (len(s), 1))}

    def squares(self, node: Node) -> ca.SX:
        """Return the shortfalls of both sides."""
        pendulum = node.data("pendulum", 2)
        short: ca.SX = ca.log1p(ca.exp(-margins(node, pendulum[0]) / pendulum[1]))
        return short / ca.sqrt(metres(node))


# Tendons of the stance leg, through which the muscles of ankle and knee act on the bones.
#
# A tendon transmits the force F of its muscle and stretches by x = e_ref l_slack sqrt(F / F_max), with e_ref = 0.04
# (Geyer and Herr 2010). With p = F / F_max, the moment arm r, and the angle b = e_ref l_slack / r by which a joint
# bends at the largest force while the muscle length is constant,
#
#     torque = -r F_max p      power of the muscle = torque (v - b d sqrt(p)/dt)
#
# A muscle therefore does less work than its joint. The relative forces p are profiles of the motion problem, and the
# torques determine them at each node. sqrt(p) is replaced by p (p^2 + d^2)^(-1/4), which is smooth and odd. Tendons of
# the swing leg, which transmit small forces, are not modelled.

MASS, HEIGHT = 80.0, 1.80  # kg and m of the reference person
STRAIN = 0.04  # tendon strain at the largest force of its muscle
LINEAR_FORCE = 0.02  # d, the relative force below which a tendon is linear


class Tendon(NamedTuple):
    """A tendon: largest ``force`` of its muscle (N), moment ``arm`` (m) and ``slack`` length (m)."""

    force: float
    arm: float
    slack: float


# Extensors in stance: soleus and gastrocnemius, and vasti (Geyer and Herr 2010). The muscles of one joint share p.
EXTENSORS = {
    "right_ankle_flexion": (Tendon(4000.0, 0.05, 0.26), Tendon(1500.0, 0.05, 0.40)),
    "right_knee_flexion": (Tendon(6000.0, 0.06, 0.23),),
}


def pull(coordinate: str) -> str:
    """Return the profile name for the relative tendon force of a joint."""
    return f"pull of {coordinate}"


def stretch_slope(p: ca.SX) -> ca.SX:
    """Return the derivative of the relative stretch p (p^2 + d^2)^(-1/4) by the relative force p."""
    size = ca.sqrt(p**2 + LINEAR_FORCE**2)
    slope: ca.SX = (p**2 / 2 + LINEAR_FORCE**2) / (size**2 * ca.sqrt(size))
    return slope


def springs(person: Person) -> Array:
    """Return the largest torques (N m) and stretches (rad) of the ``EXTENSORS``, (2, 2), scaled to a person."""
    torques = np.array([sum(tendon.force * tendon.arm for tendon in tendons) for tendons in EXTENSORS.values()])
    work = np.array([sum(tendon.force * STRAIN * tendon.slack for tendon in tendons) for tendons in EXTENSORS.values()])
    size = person.mass / MASS * person.height / HEIGHT
    return np.stack([size * torques, work / torques], axis=1)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Sprung(Grounded):
    """A term with the tendons of a ``person``."""

    person: Person

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the data of the other base class, and the tendon parameters (K, 4)."""
        return {**super().data(s), "tendons": np.tile(springs(self.person).ravel(), (len(s), 1))}


@dataclass(frozen=True, eq=False, kw_only=True)
class Tendons(_Sprung, Constraint):
    """A constraint that determines relative tendon forces from the torques of their muscles."""

    def profiles(self) -> Mapping[str, tuple[float | None, float | None]]:
        """Return the profiles of relative forces, with free ends."""
        return {pull(name): (None, None) for name in EXTENSORS}

    def rows(self, node: Node) -> Rows:
        """Return the sums of tendon and muscle torques, each divided by its maximum torque."""
        torques, parameters = contact_forces(node).muscle_torques, node.data("tendons", 4)
        names = node.robot.coordinate_names
        muscles = [torques[names.index(name) - len(GLOBAL)] / parameters[2 * k] for k, name in enumerate(EXTENSORS)]
        rows = [node.profile(pull(name)) + muscle for name, muscle in zip(EXTENSORS, muscles, strict=True)]
        return Rows(ca.vertcat(*rows), np.zeros(len(rows)), np.zeros(len(rows)), tuple(EXTENSORS))


@dataclass(frozen=True, eq=False, kw_only=True)
class SprungEnergy(_Sprung, MetabolicEnergy):
    """The metabolic energy of muscles that act through tendons."""

    def velocities(self, node: Node) -> ca.SX:
        """Return the velocities of the muscles of the moving joints."""
        parameters, names = node.data("tendons", 4), node.robot.coordinate_names
        v = super().velocities(node)
        for k, name in enumerate(EXTENSORS):
            place = contact_forces(node).moving.index(names.index(name) - len(GLOBAL))
            rate = stretch_slope(node.profile(pull(name))) * node.profile(pull(name), 1)
            v[place] -= parameters[2 * k + 1] * rate
        return v
