"""Objectives of walking for each metre of the way: metabolic energy, effort of the muscles, accelerations.

The torques are those of the muscles: inverse dynamics with the ground's wrenches, minus the passive torques.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.human.body.coordinates import GLOBAL, SIDES
from torsor.human.contact.of_node import contact_forces
from torsor.human.terms.forces import Driven, Grounded
from torsor.human.terms.muscles import metres, muscle_torques
from torsor.human.terms.sharing import shared_contact
from torsor.motion import Node
from torsor.motion.terms.term import Constraint, Cost, Rows

DRIVING, BRAKING = 0.25, 1.20  # efficiencies of positive and negative work (Margaria 1968)
BASAL = 1.2  # W/kg, the power of a body at rest (Bhargava et al. 2004)
POWER_SMOOTHING = 0.02  # W/kg: |P| is sqrt(P^2 + SMOOTH^2) - SMOOTH
SLIPPING = 0.005  # W/kg: above this power of the ground at slipping feet, a bit more costs more than that of muscles
SMOOTHER = 0.5, 0.2  # W/kg: the same two powers in the problem from whose solution the search starts
POWERS = "powers of smoothing"  # name of data
ACTIVATION = 0.06  # s, the time constant of deactivation (De Groote et al. 2016)


def smooth_size(P: ca.SX, smooth: ca.SX | float = POWER_SMOOTHING) -> ca.SX:
    """Return |P|, smooth at 0."""
    return ca.sqrt(P**2 + smooth**2) - smooth


def slipping(node: Node, mass: ca.SX, power: ca.SX | float = SLIPPING) -> ca.SX:
    """Return a column whose squares charge the ground's power at feet that slip: P^2 / (2 power DRIVING)."""
    P: ca.SX = ca.vertcat(*(contact_forces(node).ground_power(side) for side in SIDES)) / mass
    return P / ca.sqrt(2 * power * DRIVING * metres(node))


@dataclass(frozen=True, eq=False, kw_only=True)
class MuscleTorques(Driven, Constraint):
    """Torques of the muscles within the strengths."""

    def rows(self, node: Node) -> Rows:
        """Return torques divided by strengths."""
        moving, names = contact_forces(node).moving, node.robot.coordinate_names[len(GLOBAL) :]
        relative, ones = muscle_torques(node)[moving] / node.data("strengths", len(moving)), np.ones(len(moving))
        return Rows(relative, -ones, ones, tuple(names[k] for k in moving))


@dataclass(frozen=True, eq=False, kw_only=True)
class MetabolicEnergy(Driven, Cost):
    """The metabolic energy for each metre and kg (J/(kg m)): work by its efficiency, and the power at rest.

    Positive work costs 1/0.25 and negative work 1/1.20 of itself, for each axis of each joint (Margaria 1968). The
    squared power of the ground at feet that slip a little is added, so that slipping does not pay. |P| is rounded at 0
    over a power ``smooth``, and above a power ``slipping`` of the ground a bit more costs more than that of muscles
    (W/kg).
    """

    smooth: float = POWER_SMOOTHING
    slipping: float = SLIPPING

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the data of ``Driven``, and both powers (K, 2)."""
        return {**super().data(s), POWERS: np.tile([self.smooth, self.slipping], (len(s), 1))}

    def smoother(self) -> Self:
        """Return the same with a rounder |P| and a lower charge for slipping."""
        smooth, slipping = SMOOTHER
        return replace(self, smooth=smooth, slipping=slipping)

    def velocities(self, node: Node) -> ca.SX:
        """Return the velocities at which muscles do work: those of the joints that move."""
        found: ca.SX = node.v[len(GLOBAL) :][contact_forces(node).moving]
        return found

    def integrand(self, node: Node) -> ca.SX:
        """Return the power, divided by mass and way."""
        contact = shared_contact(node)
        joints = muscle_torques(node)[contact.moving] * self.velocities(node)
        P = joints / contact.mass
        size = smooth_size(P, node.data(POWERS, 2)[0])
        driving, braking = ca.sum1(size + P) / 2, ca.sum1(size - P) / 2
        return (driving / DRIVING + braking / BRAKING + BASAL) / metres(node)

    def squares(self, node: Node) -> ca.SX:
        """Return the powers of the ground at feet that slip, scaled."""
        return slipping(node, shared_contact(node).mass, node.data(POWERS, 2)[1])


@dataclass(frozen=True, eq=False, kw_only=True)
class MuscleEffort(Driven, Cost):
    """The squared torques of the muscles, divided by the strengths, for each metre (s/m)."""

    def integrand(self, node: Node) -> ca.SX:
        """Return 0: the whole cost is a sum of squares."""
        return ca.SX(0)

    def squares(self, node: Node) -> ca.SX:
        """Return the relative torques."""
        moving = contact_forces(node).moving
        relative: ca.SX = muscle_torques(node)[moving] / node.data("strengths", len(moving))
        return relative / ca.sqrt(metres(node))


@dataclass(frozen=True, eq=False, kw_only=True)
class Accelerations(Grounded, Cost):
    """The squared accelerations of the joints, in (100 rad/s^2)^2, for each metre (s/m).

    It is an integrand, not ``squares``: its second derivatives have few entries, where J^T J would be dense.
    """

    def integrand(self, node: Node) -> ca.SX:
        """Return the sum of the squares."""
        joints = node.model.names[len(GLOBAL) : node.model.names.moving]
        return ca.sumsqr(ca.vertcat(*(node.profile(name, 2) for name in joints)) / 100) / metres(node)
