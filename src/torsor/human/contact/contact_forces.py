"""Contact wrenches and joint torques at a node of a motion problem, as symbolic expressions.

How the feet carry the body is data of each node (``support.Carried``): one kernel serves all steps and bodies. The
joint torques are those of inverse dynamics without the ground, minus the effect of the feet's wrenches on the legs.
"""

from functools import cached_property

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.human.body.coordinates import GLOBAL, SIDES
from torsor.human.contact.balance import Wrench, moment_about, required
from torsor.human.contact.hand_node import has_rails, rail_power
from torsor.human.contact.support import Foot, Support
from torsor.human.vector_layout import VectorLayout
from torsor.motion import Node
from torsor.robot.robot import Robot

LEGS = ("hip_flexion", "hip_adduction", "hip_rotation", "knee_flexion", "ankle_flexion", "ankle_inversion")
TOES = "toe_extension"
REACTIONS = {"hip": "thigh", "knee": "shank", "ankle": "foot"}  # joints of a leg with known reactions, and links below

# Data of a node that describe the contact: see ``support.Carried`` and ``support.Seat``.
GROUND = VectorLayout(
    right_fraction=1,
    right=2,
    left=2,
    toes=2,
    box=4,
    across=2,
    leans=4,
    weight=1,
    friction=1,
    seat_fraction=1,
    seat_point=3,
)


def ground_data(body: Robot, support: Support, friction: float, s: Array) -> Array:
    """Return the contact data (K, ``GROUND.size``) of a body on a support at times s (K,)."""
    carried, seat = support.carried(s, Foot.of(body)), support.seated(s)
    names = ("right_fraction", "right", "left", "toes", "box", "across", "leans")
    return GROUND.pack(
        len(s),
        **{name: getattr(carried, name) for name in names},
        weight=body.mass * float(np.linalg.norm(body.gravity)),
        friction=friction,
        seat_fraction=seat.fraction,
        seat_point=seat.point,
    )


class ContactForces:
    """Contact of a body with ground and seat at a node: the wrenches on the feet, and the resulting joint torques.

    ``feet`` are the wrenches by side, about the origin; ``level`` is the whole wrench about the height of its point of
    application, ``directions`` are the directions of the feet's forces, scaled by the whole force. ``toes`` by side,
    ``box``, ``weight`` and ``friction`` are data of the node.
    """

    def __init__(self, node: Node):
        self.node, self.names = node, node.robot.coordinate_names
        given = GROUND.unpack(node.data("ground", GROUND.size))
        self.box: ca.SX = given["box"]
        self.weight: ca.SX = given["weight"]
        self.friction: ca.SX = given["friction"]
        self.toes = {side: given["toes"][k] for k, side in enumerate(SIDES)}
        right, seat = given["right_fraction"], given["seat_fraction"]
        f, n = required(node.tau, node.q, node.position("pelvis"))
        places = {side: _horizontal(given[side]) for side in SIDES}
        middle = right * places["right"] + (1 - right) * places["left"]
        middle = middle + seat * (given["seat_point"] - middle)
        # The seat acts on the pelvis and loads no joint. The forces across the feet have no resulting moment.
        fractions = {"right": (1 - seat) * right, "left": (1 - seat) * (1 - right)}
        pushed = {"right": f[1] * _horizontal(given["across"]), "left": -f[1] * _horizontal(given["across"])}
        self.feet = {
            side: Wrench(k * f + pushed[side], k * (n + ca.cross(at - middle, f)) + ca.cross(at, pushed[side]))
            for side, k, at in ((side, fractions[side], places[side]) for side in SIDES)
        }
        self.level = Wrench(f, n - ca.cross(ca.vertcat(0, middle[1], 0), f))
        leans = {"right": given["leans"][:2], "left": given["leans"][2:]}
        self.directions = {side: f + f[1] * _horizontal(leans[side]) for side in SIDES}

    @cached_property
    def moving(self) -> list[int]:
        """Indices of the joints that move, among those of ``torques``."""
        return [k for k, name in enumerate(self.names[len(GLOBAL) :]) if name in self.node.model.names]

    @cached_property
    def relative_torques(self) -> ca.SX:
        """Torques of the joints that move, divided by their strengths."""
        return self.torques[self.moving] / self.node.data("strengths", len(self.moving))

    @cached_property
    def torques(self) -> ca.SX:
        """Torques of all joints with the contact wrenches; the forces of the six global coordinates are then zero."""
        node, found = self.node, [self.node.tau[k] for k in range(self.node.tau.numel())]
        for side, wrench in self.feet.items():
            for name in (*LEGS, TOES):
                joint = node.robot.joints[node.robot.joint_names.index(f"{side}_{name}")]
                pose = node.pose(joint.child)
                taken = moment_about(wrench, pose[:3, :3] @ ca.SX(joint.axis), pose[:3, 3])
                k = self.names.index(joint.name)
                found[k] = found[k] - (self.toes[side] * taken if name == TOES else taken)
        return ca.vertcat(*found[len(GLOBAL) :])

    def ground_power(self, side: str) -> ca.SX:
        """Return the power of the ground at a foot, and of a rail at the hand of that side.

        It is zero while the foot neither slips nor is lifted, and the hand does not slip.
        """
        wrench, toes = self.feet[side], self.toes[side]
        foot, tip = (_power(self.node, f"{side}_{link}", wrench) for link in ("foot", "toes"))
        total: ca.SX = (1 - toes) * foot + toes * tip
        return total + rail_power(self.node, side) if has_rails(self.node) else total

    def reaction(self, side: str, joint: str) -> ca.SX:
        """Return the force (3 x 1, base axes) on the link below a joint of a leg: "hip", "knee" or "ankle"."""
        child = f"{side}_{REACTIONS[joint]}"
        R = self.node.pose(child)[:3, :3]
        return R @ self.node.wrenches()[self.node.robot.link_names.index(child), 3:].T - self.feet[side].f


def _power(node: Node, link: str, wrench: Wrench) -> ca.SX:
    """Return the power of a wrench about the origin on a link."""
    pose, V = node.pose(link), node.velocity(link)
    omega, v = pose[:3, :3] @ V[:3], pose[:3, :3] @ V[3:]
    return ca.dot(wrench.n, omega) + ca.dot(wrench.f, v + ca.cross(pose[:3, 3], omega))


def _horizontal(place: ca.SX) -> ca.SX:
    """Return (x, z) as a vector (3 x 1)."""
    return ca.vertcat(place[0], 0, place[1])
