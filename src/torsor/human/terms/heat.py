"""Metabolic energy from heat rates in joint space (Kim and Roberts 2015; Roberts, Hillstrom and Kim 2016).

For each axis of each joint, with the torque t, the velocity v, and the largest velocity v_max, the metabolic power is

    t v + h_sl |t v| + (h_am + h_cc) |t| v_max

where h_sl is the heat of shortening (t v > 0) or lengthening (t v < 0), h_am that of activation and maintenance, and
h_cc that of co-contraction. The sum over all axes and the power at rest is the whole.

The four coefficients are quoted from memory: the authors' tables could not be read. They are fields of the term, so
that others can be given. The authors' v_max is the largest velocity of the recorded trial. That is not smooth in an
optimisation; here it is a constant of each joint (``rates``).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import indices_of, number, positive
from torsor.human.body.coordinates import GLOBAL, SIDES
from torsor.human.body.strength import CURVED_JOINTS, StrengthCurves
from torsor.human.contact.of_node import contact_forces
from torsor.human.terms.energy import BASAL, slipping, smooth_size
from torsor.human.terms.forces import Driven
from torsor.human.terms.muscles import metres, muscle_torques
from torsor.motion import Node
from torsor.motion.terms.term import Cost
from torsor.robot.robot import Robot

ACTIVATION_HEAT, COCONTRACTION_HEAT = 0.054, 0.004  # h_am and h_cc, from memory
SHORTENING_HEAT, LENGTHENING_HEAT = 0.283, 1.423  # h_sl of positive and of negative work, from memory


def joint_rates(body: Robot) -> dict[str, float]:
    """Return a typical fast velocity (rad/s) of each joint coordinate of a body (``library.human``).

    Flexions of hips, knees and ankles have the velocity at which half the isometric torque remains, the mean of both
    directions (Anderson et al. 2007, young men); all other coordinates have the mean of these three.

    Example:
        >>> rates = joint_rates(torsor.library.human())
        >>> names = "hip_flexion", "knee_flexion", "ankle_flexion", "hip_rotation"
        >>> [round(rates[f"right_{name}"], 2) for name in names]
        [3.73, 4.59, 2.75, 3.69]
    """
    curves = StrengthCurves()
    fast = {joint: float(np.mean([each.fast for each in curves.of(body, joint)])) for joint in CURVED_JOINTS}
    found = dict.fromkeys(body.coordinate_names[len(GLOBAL) :], float(np.mean(list(fast.values()))))
    return found | {f"{side}_{joint}": rate for side in SIDES for joint, rate in fast.items()}


@dataclass(frozen=True, eq=False, kw_only=True)
class Heat(Driven, Cost):
    """The metabolic energy by heat rates, for each kg (J/kg), and with free steps for each metre too (J/(kg m)).

    ``activation``, ``cocontraction``, ``shortening`` and ``lengthening`` are the coefficients above, ``basal`` (W/kg)
    is the power at rest, and ``rates`` has {coordinate: v_max (rad/s)} in place of those of ``joint_rates``. Work of
    the ground at feet that slip a little costs as in ``MetabolicEnergy``, so that slipping never pays.
    """

    activation: float = ACTIVATION_HEAT
    cocontraction: float = COCONTRACTION_HEAT
    shortening: float = SHORTENING_HEAT
    lengthening: float = LENGTHENING_HEAT
    basal: float = BASAL
    rates: Mapping[str, float] = field(default_factory=dict)

    def check(self) -> None:
        """Raise ModelError for coefficients below 0, and for rates of unknown coordinates or below 0."""
        super().check()
        for name in ("activation", "cocontraction", "shortening", "lengthening", "basal"):
            number(getattr(self, name), self.title, name, least=0.0)
        indices_of(list(self.rates), self.body.coordinate_names[len(GLOBAL) :], f"{self.title}: rates")
        for name, rate in self.rates.items():
            positive(rate, self.title, f"rate of {name}")

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the data of ``Driven``, the largest velocities (rad/s) of the joints that move, and the mass (kg)."""
        rates = joint_rates(self.body) | dict(self.rates)
        own = [rates[name] for name in self.body.coordinate_names[len(GLOBAL) :] if name in self.moving]
        return {**super().data(s), "joint rates": np.tile([*own, self.body.mass], (len(s), 1))}

    def integrand(self, node: Node) -> ca.SX:
        """Return the power for each kg, divided by the way."""
        contact = contact_forces(node)
        given = node.data("joint rates", len(contact.moving) + 1)
        rates, mass = given[:-1], given[-1]
        torques = muscle_torques(node)[contact.moving]
        joints = torques * node.v[len(GLOBAL) :][contact.moving]
        P = joints / mass
        size, held = smooth_size(P), smooth_size(torques * rates / mass)
        heat = self.shortening * (size + P) / 2 + self.lengthening * (size - P) / 2
        power = ca.sum1(P + heat) + (self.activation + self.cocontraction) * ca.sum1(held)
        return (power + self.basal) / metres(node)

    def squares(self, node: Node) -> ca.SX:
        """Return the powers of the ground at feet that slip, scaled."""
        return slipping(node, node.data("joint rates", len(contact_forces(node).moving) + 1)[-1])
