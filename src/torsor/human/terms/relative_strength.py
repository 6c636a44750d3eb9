"""Effort relative to what a joint can do at its angle and velocity (Anderson, Madigan and Nussbaum 2007)."""

from dataclasses import dataclass

import casadi as ca

from torsor.human.body.coordinates import GLOBAL
from torsor.human.contact.of_node import contact_forces
from torsor.human.terms.forces import Curved, Driven
from torsor.human.terms.muscles import metres, muscle_torques
from torsor.motion import Node
from torsor.motion.terms.term import Cost

TORQUE_SMOOTHING = 0.01  # of the largest torque: max(x, 0) is (x + sqrt(x^2 + SMOOTH^2)) / 2


@dataclass(frozen=True, eq=False, kw_only=True)
class RelativeStrength(Curved, Driven, Cost):
    """The squared torques of the muscles, divided by the largest torque at the angle and velocity, for each metre.

    Flexions of hips, knees and ankles are divided by ``curves``: a torque that extends by the strength of extension, a
    torque that flexes by that of flexion. All other joints are divided by their constant strengths. The unit is s, with
    free steps s/m.
    """

    def integrand(self, node: Node) -> ca.SX:
        """Return 0: the whole cost is a sum of squares."""
        return ca.SX(0)

    def squares(self, node: Node) -> ca.SX:
        """Return the relative torques: of joints with curves one for each direction."""
        moving, names = contact_forces(node).moving, node.robot.coordinate_names[len(GLOBAL) :]
        torques, strengths = muscle_torques(node), node.data("strengths", len(moving))
        joints, rows = self.joints(node), list[ca.SX]()
        for at, k in enumerate(moving):
            if names[k] not in joints:
                rows.append(torques[k] / strengths[at])
                continue
            joint, q, v = joints[names[k]], node.q[k + len(GLOBAL)], node.v[k + len(GLOBAL)]
            for curve, sign in ((joint.extend, -1.0), (joint.flex, 1.0)):
                relative = _positive(sign * torques[k] / curve.peak)
                rows.append(relative / (curve.at_angle(q) * curve.at_speed(sign * v)))
        return ca.vertcat(*rows) / ca.sqrt(metres(node))


def _positive(x: ca.SX) -> ca.SX:
    """Return max(x, 0) smoothed near 0."""
    return (x + ca.sqrt(x**2 + TORQUE_SMOOTHING**2)) / 2
