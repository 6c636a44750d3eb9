"""Terms with forces: torques of the joints with the ground's wrenches on the feet, balance, friction, joint reactions.

How the feet carry is data of each moment (``support.Carried``), and so are strengths: one compiled function is for all
steps and bodies. Torques are those of the motion without the ground less what the feet's wrenches do to the legs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from torsor.human.contact.balance import Wrench, felt, required
from torsor.human.contact.support import SIDES, Foot, Support
from torsor.human.terms.habits import at_ease
from torsor.motion import Node
from torsor.motion.terms.term import Constraint, Cost, Rows, Term
from torsor.robot.robot import Robot

__all__ = ["Balance", "ContactForces", "Effort", "Grounded", "JointReactions", "Torques", "Unbalance", "contact_forces"]

Array = NDArray[np.float64]

LEGS = ("hip_flexion", "hip_adduction", "hip_rotation", "knee_flexion", "ankle_flexion", "ankle_inversion")
TOES = "toe_extension"
LEAST = 0.05  # of the weight: the ground's force is never less
# Of a moment: share, where the feet push, toes, box, across, leans of both feet, weight, friction, and the seat.
SIZES = (1, 2, 2, 2, 4, 2, 2, 2, 1, 1, 4)


class ContactForces:
    """A moment of a body on ground and seat: the wrenches on the feet, and the torques of the joints with them."""

    def __init__(self, node: Node):
        self.node, self.names = node, node.robot.coordinate_names
        parts = ca.vertsplit(node.data("ground", sum(SIZES)), np.cumsum([0, *SIZES]).tolist())
        share, right, left, toes, self.box, across, lean_right, lean_left, self.weight, self.friction, seat = parts
        self.toes = {"right": toes[0], "left": toes[1]}
        self.wrench = required(node.tau, node.q, node.position("pelvis"))
        f, n = self.wrench
        places = {"right": _level(right), "left": _level(left)}
        middle = share * places["right"] + (1 - share) * places["left"]
        middle = middle + seat[0] * (seat[1:] - middle)
        # What the seat carries is on the pelvis, and felt by no joint. What feet push across has no moment in all.
        shares = {"right": (1 - seat[0]) * share, "left": (1 - seat[0]) * (1 - share)}
        pushed = {"right": f[1] * _level(across), "left": -f[1] * _level(across)}
        self.feet = {
            side: Wrench(k * f + pushed[side], k * (n + ca.cross(at - middle, f)) + ca.cross(at, pushed[side]))
            for side, k, at in ((side, shares[side], places[side]) for side in SIDES)
        }
        self.level = Wrench(f, n - ca.cross(ca.vertcat(0, middle[1], 0), f))  # about the height where all push
        self.directions = {"right": f + f[1] * _level(lean_right), "left": f + f[1] * _level(lean_left)}

    @cached_property
    def moving(self) -> list[int]:
        """Which of the joints' torques, behind the six global forces, belong to profiles."""
        return [k for k, name in enumerate(self.names[6:]) if name in self.node.model.names]

    @cached_property
    def shares(self) -> ca.SX:
        """Torques of the joints that move, in parts of their strengths."""
        return self.torques[self.moving] / self.node.data("strengths", len(self.moving))

    @cached_property
    def torques(self) -> ca.SX:
        """Torques of all joints with the ground's wrenches; the forces of the six global coordinates are then zero."""
        node, found = self.node, [self.node.tau[k] for k in range(self.node.tau.numel())]
        for side, wrench in self.feet.items():
            for name in (*LEGS, TOES):
                joint = node.robot.joints[node.robot.joint_names.index(f"{side}_{name}")]
                pose = node.pose(joint.child)
                taken = felt(wrench, pose[:3, :3] @ ca.SX(joint.axis), pose[:3, 3])
                k = self.names.index(joint.name)
                found[k] = found[k] - (self.toes[side] * taken if name == TOES else taken)
        return ca.vertcat(*found[6:])

    def reaction(self, side: str, joint: str) -> ca.SX:
        """Return the force (3 x 1, base axes) on the part below a joint of a leg: "hip", "knee" or "ankle"."""
        child = {"hip": "thigh", "knee": "shank", "ankle": "foot"}[joint]
        link = self.node.robot.link_names.index(f"{side}_{child}")
        R = self.node.pose(f"{side}_{child}")[:3, :3]
        return R @ self.node.wrenches()[link, 3:].T - self.feet[side].f


def _level(place: ca.SX) -> ca.SX:
    """Return (x, z) as a vector (3 x 1)."""
    return ca.vertcat(place[0], 0, place[1])


@lru_cache(maxsize=8)
def contact_forces(node: Node) -> ContactForces:
    """Return what terms of a node share."""
    return ContactForces(node)


@dataclass(frozen=True, eq=False, kw_only=True)
class Grounded(Term):
    """A term of a ``body`` (``library.human``) on a ``support``; ``friction`` is that of the ground.

    ``strength`` has {coordinate: factor} of the body's own strengths (``effort_limit``), 1 where nothing is said.
    """

    body: Robot
    support: Support
    friction: float = 1.0
    strength: Mapping[str, float] = field(default_factory=dict)
    together = "forces"

    def strengths(self, moving: list[int]) -> Array:
        """Return the strengths of joints (N m), by their places behind the six global coordinates."""
        names = self.body.coordinate_names[6:]
        factors = np.array([self.strength.get(names[k], 1.0) for k in moving])
        return np.asarray(self.body.effort_limit[6:][moving] * factors)

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return how the feet carry with weight, friction and a seat, one row a moment."""
        weight = self.body.mass * float(np.linalg.norm(self.body.gravity))
        table = self.support.carried(s, Foot.of(self.body)).table
        more = np.tile([weight, self.friction], (len(s), 1))
        return {"ground": np.hstack([table, more, self.support.seated(s)])}


@dataclass(frozen=True, eq=False, kw_only=True)
class Driven(Grounded):
    """A grounded term with torques; ``moving`` are the coordinates that profiles move."""

    moving: tuple[str, ...]

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return what ``Grounded`` does, and strengths."""
        places = [k for k, name in enumerate(self.body.coordinate_names[6:]) if name in self.moving]
        return {**super().data(s), "strengths": np.tile(self.strengths(places), (len(s), 1))}


@dataclass(frozen=True, eq=False, kw_only=True)
class Effort(Driven, Cost):
    """The integral of squared torques over strengths, the ground's wrenches on the feet, and of postures not at ease.

    ``posture`` weighs squares of angles from those at ease (rad^2, ``habits.EASE``), which cost next to no torque:
    without it, they wander. Elbows at ease bend as arms swing forward.
    """

    posture: float = 0.03

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return what ``Driven`` does, and of each coordinate that moves the angle at ease and its weight."""
        ease = [at_ease(name) for name in self.body.coordinate_names if name in self.moving]
        angles, weights, drags, follows = np.array(ease).T
        row = np.concatenate([np.radians(angles), self.posture * weights, self.posture * drags, follows])
        return {**super().data(s), "posture": np.tile(row, (len(s), 1))}

    def integrand(self, node: Node) -> ca.SX:
        """Return the weighed sum of squares of angles from those at ease."""
        names, count, total = node.model.names, len(node.model.names), ca.SX(0)
        given = ca.reshape(node.data("posture", 4 * count), count, 4)
        for k, name in enumerate(names):
            angle, weight, drag, follows = (given[k, each] for each in range(4))
            leader = "yaw" if name.endswith("axial") else name.replace("elbow", "shoulder")
            rest = angle + follows * node.profile(leader) if leader != name and leader in names else angle
            total += weight * (node.profile(name) - rest) ** 2 + drag * node.profile(name, 1) ** 2
        return total

    def squares(self, node: Node) -> ca.SX:
        """Return torques in parts of strengths."""
        return contact_forces(node).shares


@dataclass(frozen=True, eq=False, kw_only=True)
class Torques(Driven, Constraint):
    """Torques of the joints, with the ground's wrenches on the feet, within their strengths."""

    def rows(self, node: Node) -> Rows:
        """Return torques in parts of strengths."""
        gait = contact_forces(node)
        ones, names = np.ones(len(gait.moving)), node.robot.coordinate_names[6:]
        return Rows(gait.shares, -ones, ones, tuple(names[k] for k in gait.moving))


@dataclass(frozen=True, eq=False, kw_only=True)
class Balance(Grounded, Constraint):
    """The point of pressure stays within the support, and the force on each foot within the friction cone.

    ``lateral`` is False where only what is forward matters, as of a body that moves in a plane.
    """

    lateral: bool = True

    def rows(self, node: Node) -> Rows:
        """Return the sides of the box, lengths in dm, the vertical force and friction; all over the weight."""
        gait = contact_forces(node)
        (f, n), (left, right, back, front) = gait.level, (gait.box[k] for k in range(4))
        sides = ca.vertcat(-n[0] - back * f[1], front * f[1] + n[0]) / (0.1 * gait.weight)
        up = f / gait.weight
        ways = [gait.directions[side] / gait.weight for side in SIDES]
        cones = [(gait.friction * way[1]) ** 2 - way[0] ** 2 - way[2] ** 2 for way in ways]
        aside = ca.vertcat(n[2] - left * f[1], right * f[1] - n[2]) / (0.1 * gait.weight)
        rows = ca.vertcat(sides, up[1], *cones, aside)
        least = np.array([0.0, 0.0, LEAST, 0.0, 0.0, 0.0, 0.0])
        labels = ("back", "front", "vertical force", "friction, right", "friction, left", "right side", "left side")
        count = 7 if self.lateral else 5
        return Rows(rows[:count], least[:count], np.full(count, np.inf), labels[:count])


@dataclass(frozen=True, eq=False, kw_only=True)
class Unbalance(Grounded, Cost):
    """How far the point of pressure is from the middle of its box: the integral of squared moments about that.

    Moments are in parts of the weight times 0.1 m.
    """

    def integrand(self, node: Node) -> ca.SX:
        """Return nothing: all of it are squares."""
        return ca.SX(0)

    def squares(self, node: Node) -> ca.SX:
        """Return the moments."""
        gait = contact_forces(node)
        (f, n), box = gait.level, gait.box
        aside, ahead = n[2] - (box[0] + box[1]) / 2 * f[1], n[0] + (box[2] + box[3]) / 2 * f[1]
        return ca.vertcat(aside, ahead) / (0.1 * gait.weight)


@dataclass(frozen=True, eq=False, kw_only=True)
class JointReactions(Grounded, Cost):
    """The integral of squared forces in joints of the legs ("hip", "knee", "ankle"), in parts of the weight."""

    joints: tuple[str, ...] = ("hip", "knee", "ankle")

    def integrand(self, node: Node) -> ca.SX:
        """Return nothing: all of it are squares."""
        return ca.SX(0)

    def squares(self, node: Node) -> ca.SX:
        """Return the forces of both sides."""
        gait = contact_forces(node)
        return ca.vertcat(*(gait.reaction(side, joint) for joint in self.joints for side in SIDES)) / gait.weight
