"""The contact of a run: the right foot carries all of the ground's force, the left foot swings; or nothing touches.

A running step begins with the touch-down of the right foot, and ends with that of the left foot after a flight. Places
are relative to the right heel. In flight nothing acts on the feet, and the six global coordinates need no force, which
constraints of the problem demand at nodes (``terms.flight``); what is left over between the nodes acts on no joint.
"""

from functools import cached_property

import casadi as ca

from torsor.human.body.coordinates import SIDES
from torsor.human.contact.balance import Wrench, required
from torsor.human.contact.sharing import SharedContact, heel_shift
from torsor.human.vector_layout import VectorLayout
from torsor.motion import Node

# Data of a node: whether only the toes of a foot are in contact, the sole of the right foot from its heel (m: its right
# and left side, its back and front), and whether it presses on the ground (1) or may not (0).
ONE_FOOT = VectorLayout(toes=2, sole=4, presses=1, mass=1, weight=1, friction=1)


class OneFootContact(SharedContact):
    """The contact of the right foot alone; ``force`` and ``moment`` are what the six global coordinates need."""

    def __init__(self, node: Node):
        self.node, self.names = node, node.robot.coordinate_names
        given = ONE_FOOT.unpack(node.data("shared ground", ONE_FOOT.size))
        self.mass: ca.SX = given["mass"]
        self.weight: ca.SX = given["weight"]
        self.friction: ca.SX = given["friction"]
        self.presses: ca.SX = given["presses"]
        self.sole: ca.SX = given["sole"]
        self.toes = {side: given["toes"][k] for k, side in enumerate(SIDES)}
        f, n = required(node.tau, node.q, node.position("pelvis"))
        nothing = ca.SX.zeros(3, 1)
        self.force, self.moment = f, n
        self.feet = {"right": Wrench(self.presses * f, self.presses * n), "left": Wrench(nothing, nothing)}
        self.directions = {"right": f}

    @cached_property
    def rows(self) -> dict[str, ca.SX]:
        """The distances of the centre of pressure from the sides of the sole, times the vertical force (N m)."""
        heel, up = heel_shift(self.node, "right"), self.force[1]
        x, z = self.moment[2] - heel[0] * up, -self.moment[0] - heel[2] * up
        right, left, back, front = ca.vertsplit(self.sole)
        along = {"right heel": z - back * up, "right toes": front * up - z}
        return along | {"right sole, right": x - right * up, "right sole, left": left * up - x}
