"""Two feet that share the ground's wrench as the optimisation finds best.

With f and n the force of the ground and its moment about the origin, and Z its centre of pressure, the left foot
carries in double support

    F_L = l f + l (1 - l) k f_y d      at      Z + (1 - l) d
    F_R = f - F_L                      at      Z - l d

where l is the fraction of the vertical force, d the way from the right to the left centre of pressure, and k (1/m) the
inclination of both forces against each other along d: every sum is exact, and no equation divides by a force. l, d and
k are profiles of the motion problem, as deviations from nominal values, by which the feet carry when these are zero.
Places are relative to the heels, so that length and width of the step may be variables. On stairs the left foot stands
higher or lower by h: d has this height, and Z is at l h, so that both centres of pressure are on their treads.
"""

from functools import cached_property

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.human.body.coordinates import SIDES
from torsor.human.contact.balance import Wrench, required
from torsor.human.contact.contact_forces import ContactForces
from torsor.human.vector_layout import VectorLayout
from torsor.motion import Node

FRACTION, APART, AHEAD, PUSH = "left fraction", "left of right foot", "left behind right foot", "inclination"
PROFILES = (FRACTION, APART, AHEAD, PUSH)
SPEED, WIDTH = "speed", "step width"  # shared numbers of the problem

# Data of a node: nominal values, and for each foot the sides of its sole, from the heel (m).
SHARED = VectorLayout(
    left_fraction=1, right=2, left=2, height=1, push=1, toes=2, right_box=4, left_box=4, mass=1, weight=1, friction=1
)


class SharedContact(ContactForces):
    """The contact of two feet whose shares of the ground's wrench are profiles of the problem."""

    def __init__(self, node: Node):
        self.node, self.names = node, node.robot.coordinate_names
        given = SHARED.unpack(node.data("shared ground", SHARED.size))
        self.mass: ca.SX = given["mass"]
        self.weight: ca.SX = given["weight"]
        self.friction: ca.SX = given["friction"]
        self.toes = {side: given["toes"][k] for k, side in enumerate(SIDES)}
        self.soles = {side: given[f"{side}_box"] for side in SIDES}
        f, n = required(node.tau, node.q, node.position("pelvis"))
        heels = {side: _heel(node, side) for side in SIDES}
        part = given["left_fraction"] + node.profile(FRACTION)
        apart = heels["left"] - heels["right"] + given["left"] - given["right"]
        apart = apart + ca.vertcat(node.profile(APART), node.profile(AHEAD))
        push = given["push"] + node.profile(PUSH)
        d = ca.vertcat(apart[0], given["height"], apart[1])
        level = part * given["height"]
        pushed = part * (1 - part) * push * f[1] * d
        # f_y Z, without a division
        pressed = ca.vertcat(n[2] + level * f[0], level * f[1], -n[0] + level * f[2])
        left = Wrench(
            part * f + pushed,
            part * (n + (1 - part) * ca.cross(d, f)) + part * (1 - part) * push * ca.cross(pressed, d),
        )
        self.feet = {"right": Wrench(f - left.f, n - left.n), "left": left}
        self.force, self.fraction = f, part
        self.directions = {"right": f - part * push * f[1] * d, "left": f + (1 - part) * push * f[1] * d}
        aside = {"right": -part * apart, "left": (1 - part) * apart}
        centre = ca.vertcat(pressed[0], pressed[2])
        self.pressures = {side: centre + f[1] * (aside[side] - heels[side]) for side in SIDES}

    @cached_property
    def rows(self) -> dict[str, ca.SX]:
        """The distances of each centre of pressure from the sides of its sole, times the vertical force (N m)."""
        found, up = dict[str, ca.SX](), self.force[1]
        for side in SIDES:
            x, z = ca.vertsplit(self.pressures[side])
            right, left, back, front = ca.vertsplit(self.soles[side])
            found |= {f"{side} heel": z - back * up, f"{side} toes": front * up - z}
            found |= {f"{side} sole, right": x - right * up, f"{side} sole, left": left * up - x}
        return found


def _heel(node: Node, side: str) -> ca.SX:
    """Return the place (x, z) of a heel: the right one at z = 0, the left one a step behind."""
    half = node.shared[WIDTH] / 2
    return ca.vertcat(-half, 0) if side == "right" else ca.vertcat(half, -node.shared[SPEED] * node.T)


def heel_shift(node: Node, side: str) -> ca.SX:
    """Return the place of a heel as a vector (3 x 1)."""
    at = _heel(node, side)
    return ca.vertcat(at[0], 0, at[1])


def shared_data(**parts: Array) -> Array:
    """Return the data (K, ``SHARED.size``) of nodes."""
    return SHARED.pack(len(parts["left_fraction"]), **{name: np.asarray(each) for name, each in parts.items()})
