"""What coordinates are measured by, so that what is closed or singular does not depend on the size of a mechanism."""

import numpy as np
from numpy.typing import NDArray

from torsor.dynamics.trees.tree import Tree

__all__ = ["units"]

Array = NDArray[np.float64]


def units(tree: Tree, length: float) -> tuple[Array, Array]:
    """Return what positions (nq) and velocities (nv) are measured by: ways by the length (m), turns by 1."""
    positions, velocities = np.ones(tree.nq), np.ones(tree.nv)
    for body in tree.bodies:
        turns = body.joint.kind.turns
        velocities[body.v] = np.where(turns, 1.0, length)
        if body.q.stop - body.q.start == len(turns):
            positions[body.q] = velocities[body.v]
        else:  # a point before a quaternion, or a quaternion alone
            positions[body.q] = [*[length] * (body.q.stop - body.q.start - 4), *[1.0] * 4]
    return positions, velocities
