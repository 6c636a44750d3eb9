"""Characteristic scales of a mechanism, so that tolerances of closure and rank do not depend on its size."""

import numpy as np

from torsor.base.arrays import Array
from torsor.dynamics.trees.tree import Tree


def characteristic_scales(tree: Tree, length: float) -> tuple[Array, Array]:
    """Return the scales of positions (nq) and velocities (nv): the length (m) for translations, 1 for rotations."""
    positions, velocities = np.ones(tree.nq), np.ones(tree.nv)
    for body in tree.bodies:
        turns = body.joint.kind.turns
        velocities[body.v] = np.where(turns, 1.0, length)
        if body.q.stop - body.q.start == len(turns):
            positions[body.q] = velocities[body.v]
        else:  # a point before a quaternion, or a quaternion alone
            positions[body.q] = [*[length] * (body.q.stop - body.q.start - 4), *[1.0] * 4]
    return positions, velocities
