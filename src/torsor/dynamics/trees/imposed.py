"""Mechanism parameters that are inputs: their symbols replace the values in the tree.

Masses do not move frames, so a lean tree remains valid: the difference from the nominal pseudo-inertia of a body is
added in its frame in the tree. The pose of a joint in its parent follows from the frames of the user's links,

    T = L_parent placement L^-1 Rz(-turn)        L: pose of the link's frame in the body's frame

which also applies to a lean tree if no inertia was regrouped through that pose (``SymbolicFrames``).
"""

from collections.abc import Sequence
from dataclasses import replace

import casadi as ca
import numpy as np

from torsor.base.errors import ModelError
from torsor.dynamics.recursions.kinematics import sx
from torsor.dynamics.trees.lean import SymbolicFrames, lean
from torsor.dynamics.trees.tree import Body, Passive, Tree, spring_along, tidy_pose
from torsor.mechanism import Mechanism
from torsor.mechanism.free import PAIRS, Free, Number, read_number
from torsor.spatial import about_z, from_quaternion, make_pose, pseudo_inertia, quaternion_exp

_POSES = ("origin", "turn", "point")


def touched(mechanism: Mechanism, free: Sequence[Free]) -> SymbolicFrames:
    """Return the bodies whose poses or joint frames depend on free parameters."""
    numbers = [number for parameter in free for number, _ in parameter.coefficients if number.part == "joints"]
    frames = {number.index for number in numbers if number.field == "point"}
    poses = {number.index for number in numbers if number.field in _POSES}
    poses |= {i for i, parent in enumerate(mechanism.parents) if parent in frames}
    return SymbolicFrames(frozenset(poses), frozenset(frames))


def tree_of(
    mechanism: Mechanism,
    free: Sequence[Free] = (),
    p: ca.SX | None = None,
    is_lean: bool = True,
    plain: bool = False,
) -> Tree:
    """Return the tree of a mechanism, lean or not, with p (k x 1), if given, in place of the free parameters."""
    tree = Tree.of(mechanism)
    if is_lean:
        tree = lean(tree, touched(mechanism, free))
    return tree if p is None else impose(tree, mechanism, free, p, plain)


class _Values:
    """The numbers of the mechanism: values, or expressions of the free parameters."""

    def __init__(self, mechanism: Mechanism, free: Sequence[Free], p: ca.SX):
        self.mechanism = mechanism
        self.given: dict[Number, ca.SX] = {}
        for k, item in enumerate(free):
            for number, coefficient in item.coefficients:
                # For a number with a single coefficient of 1, this is exactly p[k].
                before = self.given.get(number, ca.SX(read_number(mechanism, number)))
                self.given[number] = (before - coefficient * item.value) + coefficient * p[k]

    def has(self, part: str, index: int, *fields: str) -> bool:
        """Return whether any of the ``fields`` depends on a free parameter."""
        return any(n.part == part and n.index == index and n.field in fields for n in self.given)

    def vector(self, part: str, index: int, field: str, length: int) -> ca.SX:
        """Return a field (length x 1)."""
        numbers = [Number(part, index, field, k) for k in range(length)]
        return ca.vertcat(*(self.given.get(n, ca.SX(read_number(self.mechanism, n))) for n in numbers))


def impose(tree: Tree, mechanism: Mechanism, free: Sequence[Free], p: ca.SX, plain: bool = False) -> Tree:
    """Return the tree of a mechanism, lean or not, with p (k x 1) in place of the values of the free parameters.

    If ``plain`` is True (for a tree that is not lean), p replaces the numbers directly, not as a difference from them.
    """
    values, symbolic = _Values(mechanism, free, p), touched(mechanism, free)
    bodies = list(tree.bodies)
    for i in symbolic.frames:
        if bodies[i].modal:
            name = bodies[i].joint.name
            message = f"the point of joint {name!r} is an input, but a flexible link is clamped to its link"
            raise ModelError(message, where=mechanism.name, fix="choose other parameters as inputs")
        R = sx(mechanism.joints[i].frame[:3, :3])
        bodies[i] = replace(bodies[i], link=_pose(R.T, -R.T @ values.vector("joints", i, "point", 3)))
    for i in range(len(bodies)):
        if plain or i in symbolic.frames:  # no inertia was regrouped into or out of the body
            bodies[i] = replace(bodies[i], P=_congruence(bodies[i].link, _pseudo_inertia(values, i)))
        elif values.has("links", i, "mass", "com", "inertia"):
            change = _pseudo_inertia(values, i) - sx(pseudo_inertia(*mechanism.links[i].body))
            bodies[i] = replace(bodies[i], P=sx(bodies[i].P) + _congruence(bodies[i].link, change))
    for i in symbolic.poses:
        above = bodies[bodies[i].parent].link if bodies[i].parent >= 0 else np.eye(4)
        bodies[i] = replace(bodies[i], T=_joint_pose(values, i, bodies[i], sx(above), plain, bool(symbolic.frames)))
    armature, passives = _drives(tree, values)
    gravity = values.vector("gravity", -1, "gravity", 3)
    return replace(tree, bodies=tuple(bodies), armature=armature, passives=passives, gravity=gravity)


def _pseudo_inertia(values: _Values, i: int) -> ca.SX:
    m, c, six = (values.vector("links", i, *item) for item in (("mass", 1), ("com", 3), ("inertia", 6)))
    inertia = ca.SX(3, 3)
    for k, (row, column) in enumerate(PAIRS):
        inertia[row, column] = inertia[column, row] = six[k]
    Sigma = ca.trace(inertia) / 2 * ca.SX.eye(3) - inertia + m * (c @ c.T)
    return sx(ca.blockcat([[Sigma, m * c], [m * c.T, m]]))


def _congruence(T: ca.SX, P: ca.SX) -> ca.SX:
    """Return T P T^T; one triangle is computed and mirrored."""
    return ca.triu2symm(ca.triu(sx(T) @ P @ sx(T).T))


def _joint_pose(values: _Values, i: int, body: Body, above: ca.SX, plain: bool, frames: bool) -> ca.SX:
    """Return T of a body in a lean or ``plain`` tree; ``frames`` is True if the frames of some joints are inputs."""
    joint, origin = values.mechanism.joints[i], values.vector("joints", i, "origin", 3)
    turns, T, link = values.has("joints", i, "turn"), sx(body.T), sx(body.link)
    if not plain and not frames and not turns:  # only the origin is an input
        return _pose(T[:3, :3], T[:3, 3] + above[:3, :3] @ (origin - sx(joint.placement[:3, 3])))
    R = sx((tidy_pose(joint.placement) if plain else joint.placement)[:3, :3])
    if turns:
        R = R @ sx(from_quaternion(quaternion_exp(values.vector("joints", i, "turn", 3))))
    if plain:
        rotation = above[:3, :3] @ R @ link[:3, :3].T if turns else T[:3, :3]
        point = values.vector("joints", i, "point", 3)
        return _pose(rotation, above[:3, :3] @ (origin + R @ point) + above[:3, 3])
    back = _pose(link[:3, :3].T, -link[:3, :3].T @ link[:3, 3])
    return above @ _pose(R, origin) @ back @ sx(make_pose(about_z(-body.turn)))


def _pose(R: ca.SX, p: ca.SX) -> ca.SX:
    return ca.vertcat(ca.horzcat(R, p), sx([[0, 0, 0, 1]]))


def _drives(tree: Tree, values: _Values) -> tuple[ca.SX, tuple[Passive, ...]]:
    """Return the armature and the passive forces, including the changes due to free parameters of the drives."""
    armature, passives = sx(tree.armature), list(tree.passives)
    for number, value in values.given.items():
        if number.part != "joints" or number.field in _POSES:
            continue
        joint, where = values.mechanism.joints[number.index], values.mechanism.coordinates[number.index]
        change, v = value - read_number(values.mechanism, number), where.v.start + number.component
        if number.field == "rotor_inertia":
            armature[v] += joint.ratio**2 * change
        elif number.field == "stiffness":
            passives.append(replace(spring_along(values.mechanism, number.index), stiffness=change, damping=0.0))
        else:
            coulomb, viscous = (change, 0.0) if number.field == "coulomb" else (0.0, change)
            passives.append(Passive((), (v,), (joint.ratio,), damping=viscous, coulomb=coulomb, smooth=joint.smooth))
    return armature, tuple(passives)
