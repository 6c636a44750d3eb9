"""Collision shapes: distances with gradients, checked pairs and contact points. See docs/compute/shapes.md."""

from torsor.geometry.allowed import AllowedCollisions, default_matrix, read_srdf
from torsor.geometry.closed_forms import Closest, closest, is_closed
from torsor.geometry.contacts import contact_points, has_contact_points, terrain_points
from torsor.geometry.convex import enclosing_capsule
from torsor.geometry.distances import DistanceModel, Distances
from torsor.geometry.pairs import distance_model, overlapping, refuse_overlap
from torsor.geometry.placed import Placed, placed_shapes

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
    "terrain_points",
]
