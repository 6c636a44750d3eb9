"""The contact of a node: feet that share the force by given fractions, or as the optimisation finds best."""

from functools import lru_cache

from torsor.human.contact.contact_forces import ContactForces
from torsor.human.contact.hand_node import railed
from torsor.human.contact.sharing import FRACTION, SharedContact
from torsor.motion import Node


@lru_cache(maxsize=8)
def contact_forces(node: Node) -> ContactForces:
    """Return the contact forces of a node, the same object for all terms of the node."""
    held = railed(node)
    return SharedContact(held) if FRACTION in node.model.names else ContactForces(held)
