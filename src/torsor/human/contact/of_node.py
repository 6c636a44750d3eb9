"""The contact of a node: feet that share the force by given fractions, or as is best, or one foot at a time."""

from functools import lru_cache

from torsor.human.contact.contact_forces import ContactForces
from torsor.human.contact.hand_node import railed
from torsor.human.contact.one_foot import OneFootContact
from torsor.human.contact.sharing import FRACTION, WIDTH, SharedContact
from torsor.motion import Node


@lru_cache(maxsize=8)
def contact_forces(node: Node) -> ContactForces:
    """Return the contact forces of a node, the same object for all terms of the node."""
    held = railed(node)
    if FRACTION in node.model.names:
        return SharedContact(held)
    return OneFootContact(node) if WIDTH in node.shared else ContactForces(held)
