"""Torques of the muscles at a node, and the way over which an objective is counted."""

import casadi as ca

from torsor.human.body.passive import torques_by_coordinate
from torsor.human.contact.of_node import contact_forces
from torsor.human.contact.sharing import SPEED, SharedContact
from torsor.motion import Node


def muscle_torques(node: Node) -> ca.SX:
    """Return the torques of the muscles at all joints, without the six global coordinates.

    With free steps these are the torques of inverse dynamics minus the passive ones; other walks have no passive
    torques.
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
