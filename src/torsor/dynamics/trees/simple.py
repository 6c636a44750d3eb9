"""A tree whose joints all have a constant S: joints with a variable S are split into simple joints in series.

The links between them have no mass. Coordinates and generalised forces are unchanged.
"""

from dataclasses import replace

import casadi as ca
import numpy as np

from torsor.dynamics.trees.tree import Body, Tree
from torsor.mechanism import Joint
from torsor.spatial import make_pose


def simple(tree: Tree, external: ca.SX | None) -> tuple[Tree, ca.SX | None]:
    """Return the tree with simple joints, and the external wrenches (L x 6) on its links."""
    bodies: list[Body] = []
    last: list[int] = []  # the new index of each body
    for body in tree.bodies:
        bodies += _row(body, last[body.parent] if body.parent >= 0 else -1, len(bodies))
        last.append(len(bodies) - 1)
    if external is not None:
        external, given = ca.SX.zeros(len(bodies), 6), external
        external[last, :] = given
    return replace(tree, bodies=tuple(bodies)), external


def _row(body: Body, parent: int, first: int) -> list[Body]:
    """Return the bodies, with indices from ``first``, that replace one body."""
    kinds = body.joint.kind.simple
    if len(kinds) == 1:
        return [replace(body, parent=parent)]
    row: list[Body] = []
    T, q, v = body.T, body.q.start, body.v.start
    for k, (name, axes) in enumerate(kinds):
        joint = Joint(body.joint.name, name, body.joint.parent, body.joint.child)
        own = slice(q, q + joint.nq), slice(v, v + joint.nv)
        row.append(Body(parent, joint, *own, T @ make_pose(axes), np.zeros((4, 4)), np.eye(4)))
        T, q, v, parent = make_pose(axes.T), own[0].stop, own[1].stop, first + k
    return [*row[:-1], replace(row[-1], P=body.P, link=body.link, rotors=body.rotors)]
