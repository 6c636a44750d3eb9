"""An equivalent tree with fewer nonzero numbers, for results that depend only on the coordinates.

Four exact transformations leave generalised forces and the mass matrix unchanged:

- A joint frame is shifted along its axis (a prismatic one in any direction) to the point nearest to the parent's
  origin, which makes components of the placement zero.
- Inertia that is equivalent to inertia of the parent is moved to the parent, from the tips to the root (Khalil's
  regrouping). Of ten inertial parameters, three become zero at a revolute joint and six at a prismatic one.
- The frame of a revolute joint is rotated about its axis, which turns an oblique placement into a rotation about x, as
  in the modified Denavit-Hartenberg convention, or simplifies an inertia.
- If a body rotates only about its z axis, as in a planar mechanism, its forces depend only on the sum of its second
  moments along x and y, which is redistributed between them.

Tracing removes operations with zeros; docs/contribute/architecture.md states how many operations this saves.
"""

import math
from collections import defaultdict
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.dynamics.trees.tree import ROUNDING, Body, Tree, tidy, tidy_inertia, tidy_pose
from torsor.spatial import about_z, axis_frame, inverse_pose, make_pose, move_pseudo_inertia


class SymbolicFrames(NamedTuple):
    """Bodies whose poses or joint frames are inputs.

    No inertia is regrouped through bodies in ``poses``, and the joint frames of bodies in ``frames`` are not moved.
    """

    poses: frozenset[int] = frozenset()
    frames: frozenset[int] = frozenset()


NOTHING = SymbolicFrames()


def lean(tree: Tree, symbolic: SymbolicFrames = NOTHING) -> Tree:
    """Return an equivalent tree that needs fewer operations; its poses and joint wrenches differ from the robot's."""
    # Modes of flexible links are in the frame of the body to which they are clamped, which is not moved.
    clamps = frozenset(i for i, body in enumerate(tree.bodies) if body.modal)
    symbolic = SymbolicFrames(symbolic.poses, symbolic.frames | clamps)
    bodies = _align(_regroup(_slide(list(tree.bodies), symbolic), symbolic), symbolic)
    return replace(tree, bodies=tuple(_planar(list(map(tidy, bodies)), symbolic)))


def _slide(bodies: list[Body], symbolic: SymbolicFrames) -> list[Body]:
    """Shift each joint frame, as its joint allows, to the point nearest to the parent's origin, root to tips."""
    slid: list[Body] = []
    shifts: list[Array] = []
    for i, body in enumerate(bodies):
        T = inverse_pose(shifts[body.parent]) @ body.T if body.parent >= 0 else body.T
        shift = np.eye(4)
        if i not in symbolic.frames:
            shift = make_pose(p=body.joint.kind.free_shift(T[:3, :3].T @ T[:3, 3]))
        back = inverse_pose(shift)
        shifts.append(shift)
        slid.append(replace(body, T=T @ shift, P=move_pseudo_inertia(back, body.P), link=back @ body.link))
    return slid


def _regroup(bodies: list[Body], symbolic: SymbolicFrames) -> list[Body]:
    """Return the bodies with inertia regrouped from the tips to the root.

    The part of a body's inertia that is equivalent to inertia of its parent is moved to the parent.
    """
    P = [body.P for body in bodies]
    for i in reversed(range(len(bodies))):
        parent = bodies[i].parent
        if i in symbolic.poses or (parent >= 0 and bodies[parent].joint.flexible is not None and not P[parent].any()):
            continue  # the massless tip of a flexible link must remain massless
        invisible = bodies[i].joint.kind.invisible(P[i])
        P[i] = P[i] - invisible
        if bodies[i].parent >= 0:
            P[bodies[i].parent] = P[bodies[i].parent] + move_pseudo_inertia(bodies[i].T, invisible)
    return [replace(body, P=Pi) for body, Pi in zip(bodies, P, strict=True)]


def _align(bodies: list[Body], symbolic: SymbolicFrames) -> list[Body]:
    """Rotate each joint frame about its axis to the angle with the lowest cost, root to tips.

    This applies only to joints that rotate about the axis: the angle is then an offset of the coordinate, one addition.
    """
    children: dict[int, list[int]] = defaultdict(list)
    for i, body in enumerate(bodies):
        children[body.parent].append(i)
    aligned = list(bodies)
    for i in range(len(bodies)):
        if aligned[i].joint.kind.absorbs_turn and i not in symbolic.frames:
            family = [aligned[i], *(aligned[k] for k in children[i])]
            # Candidate angles: zero, and the directions of the first moment and of the children's axes and origins.
            directions = [family[0].P[:2, 3], *(child.T[:2, k] for child in family[1:] for k in (2, 3))]
            angles = [0.0] + [math.atan2(y, x) for x, y in directions if math.hypot(x, y) > ROUNDING]
            options = [_rotate_frame(family, angle) for angle in angles]
            best = min(options, key=_cost)  # among equal costs, the first: angle zero, the original frame
            for k, body in zip([i, *children[i]], best, strict=True):
                aligned[k] = body
    return aligned


def _planar(bodies: list[Body], symbolic: SymbolicFrames) -> list[Body]:
    """Redistribute the second moments of each body that rotates only about its z axis, root to tips."""
    z, result = np.array([0.0, 0.0, 1.0]), list(bodies)
    axes: list[Array | None] = []  # rotation axis of each body: zero if it does not rotate, None if there are several
    for i, body in enumerate(bodies):
        above = axes[body.parent] if body.parent >= 0 else np.zeros(3)
        turns = body.joint.kind.turns_about_z
        if above is None or i in symbolic.poses or turns is None:
            axes.append(None)
            continue
        axis = body.T[:3, :3].T @ above
        if turns:
            axis = z if np.array_equal(np.abs(axis), z) or not axis.any() else None
        axes.append(axis)
        if axis is not None and np.array_equal(np.abs(axis), z):
            P = body.P.copy()
            whole = P[0, 0] + P[1, 1]
            # Equal halves do not change if the frame is rotated about z; without a parent, a zero saves a term.
            P[0, 0], P[1, 1] = (whole, 0.0) if body.parent < 0 or body.modal else (whole / 2, whole / 2)
            result[i] = replace(body, P=P, modal=tuple(item.planar() for item in body.modal))
    return result


def _rotate_frame(family: list[Body], angle: float) -> list[Body]:
    """Return a body and its children after rotating the body's frame about its axis by an angle."""
    body, *children = family
    turn = make_pose(about_z(angle))
    back = inverse_pose(turn)
    T, rest = body.T @ turn, axis_frame(body.T[:3, 2])  # the simplest axes with the same z axis
    x = rest[:, 0] @ T[:3, 0], rest[:, 1] @ T[:3, 0]
    already = math.atan2(x[1], x[0])
    if abs(math.remainder(already, math.pi / 2)) <= ROUNDING:
        already = 0.0  # quarter turns of axes are permutations, which take no operations
    else:
        T = make_pose(rest, T[:3, 3])
    P = tidy_inertia(move_pseudo_inertia(back, body.P))
    moved = [replace(child, T=tidy_pose(back @ child.T)) for child in children]
    rotors = tuple(replace(rotor, h=back[:3, :3] @ rotor.h) for rotor in body.rotors)
    return [replace(body, T=tidy_pose(T), P=P, link=back @ body.link, turn=already, rotors=rotors), *moved]


def _cost(family: list[Body]) -> int:
    """Return approximately how many operations of inverse dynamics the frame of a body causes: inertia and poses."""
    body, *children = family
    products_of_inertia = np.count_nonzero(body.P[[0, 0, 1], [1, 2, 2]])
    inertia = 7 * products_of_inertia + 10 * np.count_nonzero(body.P[:3, 3])
    # A child that can be rotated will get the simplest axes later.
    axes = [axis_frame(c.T[:3, 2]) if c.joint.kind.absorbs_turn else c.T[:3, :3] for c in children]
    poses = [body.T, *(make_pose(R, c.T[:3, 3]) for R, c in zip(axes, children, strict=True))]
    cost = (body.turn != 0) + inertia
    for T in map(tidy_pose, poses):  # a pose transforms three vectors down and two up
        R, p = T[:3, :3], T[:3, 3]
        products = np.count_nonzero((R != 0) & (np.abs(R) != 1))
        cost += 5 * (products + np.count_nonzero(R) - 3) + 10 * np.count_nonzero(p)
    return int(cost)
