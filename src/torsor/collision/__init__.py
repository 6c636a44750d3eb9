"""Collision shapes: distances with gradients, pairs that are checked, points of contact. See docs/shapes.md."""

from torsor.collision.allowed import AllowedCollisions, read_srdf
from torsor.collision.closed_forms import Closest, closest, is_closed
from torsor.collision.contacts import contact_points, has_contact_points
from torsor.collision.distances import DistanceModel, Distances
from torsor.collision.enclosing import enclosing_capsule
from torsor.collision.overlaps import overlapping, refuse_overlap
from torsor.collision.pairs import distance_model
from torsor.collision.placed import Placed, placed_shapes
from torsor.collision.sampling import default_matrix

__all__ = [
    "AllowedCollisions",
    "Closest",
    "DistanceModel",
    "Distances",
    "Placed",
    "closest",
    "contact_points",
    "default_matrix",
    "distance_model",
    "enclosing_capsule",
    "has_contact_points",
    "is_closed",
    "overlapping",
    "placed_shapes",
    "read_srdf",
    "refuse_overlap",
]
