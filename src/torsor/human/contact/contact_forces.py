"""Contact wrenches and joint torques at a node of a motion problem, as symbolic expressions.

The load distribution between the feet is part of the node data (``support.Carried``), so all steps and bodies share one
kernel. The joint torques are those of inverse dynamics without ground contact, minus the effect of the foot wrenches on
the legs.
"""

from functools import cached_property, lru_cache
from typing import NamedTuple, TypeVar

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.errors import ModelError
from torsor.compiler import AnyKernel
from torsor.compiler.cache import source_hash
from torsor.human.body.coordinates import GLOBAL, SIDES
from torsor.human.body.loads import Backpack, Box
from torsor.human.body.strength import torques_by_coordinate
from torsor.human.contact.support import Foot, Support
from torsor.human.vector_layout import VectorLayout
from torsor.motion import Node
from torsor.robot.robot import Robot

# The ground reaction: the wrench that keeps the body in dynamic equilibrium, and its distribution to two feet.
#
# The ground must exert the forces in the six global coordinates that inverse dynamics without ground contact yields.
# With their force f and their moment n about the origin,
#
#     x_zmp = n_z / f_y      z_zmp = -n_x / f_y
#
# is the zero-moment point, about which the ground exerts no horizontal moment (Barman 2020, section 5.2, y up). In
# double support, the leading foot carries the fraction s of the force, and the part
#
#     n_F = s (n + (p_F - p) x f)      p = s p_F + (1 - s) p_R
#
# of the moment, where p_F and p_R are the points of application at the leading and the trailing foot. The trailing foot
# carries the remainder, so the sum is exact. The joint torques are those without the ground minus the effect of the
# foot wrenches on the joints.


class Wrench(NamedTuple):
    """A force and its moment about the origin, in base axes (3 x 1 each)."""

    f: ca.SX
    n: ca.SX


def required(tau: ca.SX, q: ca.SX, origin: ca.SX) -> Wrench:
    """Return the ground wrench from the six global coordinate forces (three translations, yaw, tilt, list).

    ``origin`` (3 x 1) is the position of the pelvis.
    """
    yaw, tilt = q[3], q[4]
    aside = ca.vertcat(ca.cos(yaw), 0, -ca.sin(yaw))  # tilt axis
    ahead = ca.vertcat(ca.sin(yaw), 0, ca.cos(yaw))
    about = (tau[5] + ca.sin(tilt) * tau[3]) / ca.cos(tilt)
    moment = tau[3] * ca.SX([0, 1, 0]) + tau[4] * aside + about * ahead
    return Wrench(tau[:3], moment + ca.cross(origin, tau[:3]))


def moment_about(wrench: Wrench, axis: ca.SX, at: ca.SX) -> ca.SX:
    """Return the moment of a wrench about an axis through a point ``at``, all in base axes: axis . (n - at x f)."""
    return ca.dot(axis, wrench.n - ca.cross(at, wrench.f))


class GroundReaction(NamedTuple):
    """The ground reaction: ``force`` (..., 3) (N) and ``moment`` (..., 3) (N m) about the origin.

    ``zmp`` (..., 2) is the zero-moment point (x, z) (m), and ``twist`` (...) is the moment (N m) about the vertical
    axis through it.
    """

    force: Array
    moment: Array
    zmp: Array
    twist: Array


def ground_reaction(
    body: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, load: Backpack | Box | None = None
) -> GroundReaction:
    """Return the wrench that the ground must exert on a body (``library.human``) for a motion q, v, a (..., 55).

    If the body carries a load, pass ``load``; omit it for ``result.robot`` of a predicted motion, which already
    includes the load. Without a vertical force, as in free fall, the zero-moment point does not exist, and ``zmp`` is
    NaN or infinite.

    Example:
        >>> body, still = torsor.library.human(), np.zeros(55)
        >>> ground = ground_reaction(body, still, still, still)
        >>> ground.force.round(6).tolist(), bool(abs(ground.zmp - body.center_of_mass(still)[[0, 2]]).max() < 1e-9)
        ([0.0, 716.13, 0.0], True)
        >>> ground_reaction(body, still, still, still, load=torsor.human.Box(10.0)).force.round(6).tolist()
        [0.0, 814.23, 0.0]
    """
    if not isinstance(body, Robot) or body.coordinate_names[:6] != GLOBAL:
        allowed, fix = f"a body whose first coordinates are {', '.join(GLOBAL)}", "use torsor.library.human()"
        raise ModelError(argument="body", value=body, where="ground reaction", allowed=allowed, fix=fix)
    if load is not None:
        if not isinstance(load, Backpack | Box):
            raise ModelError(argument="load", value=load, where="ground reaction", allowed="a Backpack or a Box")
        body = load.on(body)
    force, moment = _kernel(body)(q, v, a)
    with np.errstate(divide="ignore", invalid="ignore"):
        zmp = np.stack([moment[..., 2], -moment[..., 0]], axis=-1) / force[..., 1, None]
    twist = moment[..., 1] - (zmp[..., 1] * force[..., 0] - zmp[..., 0] * force[..., 2])
    return GroundReaction(force, moment, zmp, twist)


def _kernel(body: Robot) -> AnyKernel:
    def trace() -> ca.Function:
        q, v, a = (ca.SX.sym(name, body.nv) for name in "qva")
        origin = body.function("pose", place="pelvis")(q)[:3, 3]
        wrench = required(body.function("inverse_dynamics")(q, v, a), q, origin)
        outputs = ca.cse([ca.densify(part) for part in wrench])
        return ca.Function("ground", [q, v, a], outputs, list("qva"), ["f", "n"])

    pelvis = body.place("pelvis")  # names and frames are not part of the kernel identity
    place = pelvis.link, pelvis.pose.tobytes()
    return body.kernels.kernel(("ground_reaction", place, source_hash("human/contact/contact_forces.py")), trace)


FORCES, KNUCKLES = "hand forces", "knuckles"  # keys of node data: forces on both hands, and their points of application
WEIGHT = "weight on rails"  # key of node data: unit of the rail forces
RAILS = tuple(f"rail on {side} hand, {axis}" for side in SIDES for axis in "xyz")  # profiles, in body weights


class _HandNode(Node):
    """A node whose joint forces include the hand forces; all other quantities are those of the wrapped node."""

    def __init__(self, node: Node):
        self.__dict__ = node.__dict__  # shared symbols, so that quantities are computed only once

    def hand_forces(self) -> ca.SX:
        """Return the forces (6 x 1) (N) on the right and left hand, in base axes."""
        return rail_forces(self)

    @property
    def tau(self) -> ca.SX:
        """Forces (nv x 1) of all coordinates without ground contact, including the effect of hand forces."""
        names, forces_of_coordinates = self.robot.coordinate_names, ca.SX(super().tau)
        forces, at = self.hand_forces(), self.data(KNUCKLES, 3)
        for k, side in enumerate(SIDES):
            link = self.robot.link_names.index(f"{side}_hand")
            pose, force = self.pose(f"{side}_hand"), forces[3 * k : 3 * k + 3]
            wrench = Wrench(force, ca.cross(pose[:3, :3] @ at + pose[:3, 3], force))
            while link >= 0:
                joint = self.robot.joints[link]
                pose_of_joint = self.pose(joint.child)
                axis = pose_of_joint[:3, :3] @ ca.SX(joint.axis)
                slides = joint.type == "prismatic"
                taken = ca.dot(axis, wrench.f) if slides else moment_about(wrench, axis, pose_of_joint[:3, 3])
                forces_of_coordinates[names.index(joint.name)] -= taken
                link = self.robot.parents[link]
        return forces_of_coordinates


class _LoadedNode(_HandNode):
    """A node with prescribed hand forces and rail forces."""

    def hand_forces(self) -> ca.SX:
        """Return the sum (6 x 1) of prescribed hand forces and rail forces (N)."""
        forces: ca.SX = self.data(FORCES, 3 * len(SIDES))
        return forces + rail_forces(self) if has_rails(self) else forces


def has_rails(node: Node) -> bool:
    """Return whether the hands of a node hold rails."""
    return RAILS[0] in node.model.names


def rail_forces(node: Node) -> ca.SX:
    """Return the rail forces (6 x 1) (N) on the right and left hand."""
    forces: ca.SX = node.data(WEIGHT, 1) * ca.vertcat(*(node.profile(name) for name in RAILS))
    return forces


def rail_power(node: Node, side: str) -> ca.SX:
    """Return the power (W) of a rail at the hand on a side."""
    k, pose, V = SIDES.index(side), node.pose(f"{side}_hand"), node.velocity(f"{side}_hand")
    velocity = pose[:3, :3] @ (V[3:] + ca.cross(V[:3], node.data(KNUCKLES, 3)))
    power: ca.SX = ca.dot(rail_forces(node)[3 * k : 3 * k + 3], velocity)
    return power


def hand_forces_of_node(node: Node) -> ca.SX | None:
    """Return the forces (6 x 1) (N) on the right and left hand of a node, or None if there are none."""
    return node.hand_forces() if isinstance(node, _HandNode) else None


@lru_cache(maxsize=8)
def loaded(node: Node) -> Node:
    """Return a node with prescribed hand forces; all terms of the node share one object."""
    return _LoadedNode(node)


@lru_cache(maxsize=8)
def railed(node: Node) -> Node:
    """Return a node with its rail forces; all terms of the node share one object."""
    return node if isinstance(node, _HandNode) or not has_rails(node) else _HandNode(node)


LEGS = ("hip_flexion", "hip_adduction", "hip_rotation", "knee_flexion", "ankle_flexion", "ankle_inversion")
TOES = "toe_extension"
REACTIONS = {"hip": "thigh", "knee": "shank", "ankle": "foot"}  # leg joints with reactions, and their child links

# Node data that describe the contact: see ``support.Carried`` and ``support.Seat``.
GROUND = VectorLayout(
    right_fraction=1, right=2, left=2, toes=2, box=4, across=2, leans=4, weight=1, friction=1, seat_fraction=1,
    seat_point=3,
)  # fmt: skip


def ground_data(body: Robot, support: Support, friction: float, s: Array) -> Array:
    """Return the contact data (K, ``GROUND.size``) of a body on a support at times s (K,)."""
    carried, seat = support.carried(s, Foot.of(body)), support.seated(s)
    names = ("right_fraction", "right", "left", "toes", "box", "across", "leans")
    return GROUND.pack(
        len(s),
        **{name: getattr(carried, name) for name in names},
        weight=body.mass * float(np.linalg.norm(body.gravity)),
        friction=friction,
        seat_fraction=seat.fraction,
        seat_point=seat.point,
    )


class ContactForces:
    """Contact of a body with the ground and a seat at a node: foot wrenches and the resulting joint torques.

    ``feet`` contains the wrenches about the origin, by side. ``level`` is the total wrench at the height of its point
    of application. ``directions`` are the directions of the foot forces, scaled by the total force. ``toes`` (by side),
    ``box``, ``weight`` and ``friction`` are node data.
    """

    def __init__(self, node: Node):
        data, (f, n) = self._begin(node, "ground", GROUND)
        self.box: ca.SX = data["box"]
        right, seat = data["right_fraction"], data["seat_fraction"]
        places = {side: _horizontal(data[side]) for side in SIDES}
        middle = right * places["right"] + (1 - right) * places["left"]
        middle = middle + seat * (data["seat_point"] - middle)
        # The seat acts on the pelvis and does not load joints. The transverse foot forces have no resultant moment.
        fractions = {"right": (1 - seat) * right, "left": (1 - seat) * (1 - right)}
        pushed = {"right": f[1] * _horizontal(data["across"]), "left": -f[1] * _horizontal(data["across"])}
        self.feet = {
            side: Wrench(k * f + pushed[side], k * (n + ca.cross(at - middle, f)) + ca.cross(at, pushed[side]))
            for side, k, at in ((side, fractions[side], places[side]) for side in SIDES)
        }
        self.level = Wrench(f, n - ca.cross(ca.vertcat(0, middle[1], 0), f))
        leans = {"right": data["leans"][:2], "left": data["leans"][2:]}
        self.directions = {side: f + f[1] * _horizontal(leans[side]) for side in SIDES}

    def _begin(self, node: Node, name: str, layout: VectorLayout) -> tuple[dict[str, ca.SX], Wrench]:
        """Return the data of a node, and the total ground wrench."""
        data: dict[str, ca.SX] = layout.unpack(node.data(name, layout.size))
        self.node, self.names = node, node.robot.coordinate_names
        self.weight, self.friction = data["weight"], data["friction"]
        self.toes = {side: data["toes"][k] for k, side in enumerate(SIDES)}
        return data, required(node.tau, node.q, node.position("pelvis"))

    @cached_property
    def moving(self) -> list[int]:
        """Indices of the moving joints in ``torques``."""
        return [k for k, name in enumerate(self.names[len(GLOBAL) :]) if name in self.node.model.names]

    @cached_property
    def relative_torques(self) -> ca.SX:
        """Torques of the moving joints, divided by their strengths."""
        return self.torques[self.moving] / self.node.data("strengths", len(self.moving))

    @cached_property
    def torques(self) -> ca.SX:
        """Torques of all joints with contact wrenches, which make the six global forces zero."""
        node, tau = self.node, ca.SX(self.node.tau)
        for side, wrench in self.feet.items():
            for name in (*LEGS, TOES):
                joint = node.robot.joints[node.robot.joint_names.index(f"{side}_{name}")]
                pose = node.pose(joint.child)
                taken = moment_about(wrench, pose[:3, :3] @ ca.SX(joint.axis), pose[:3, 3])
                k = self.names.index(joint.name)
                tau[k] -= self.toes[side] * taken if name == TOES else taken
        return tau[len(GLOBAL) :]

    @property
    def muscle_torques(self) -> ca.SX:
        """Torques of the muscles, which are all torques because there are no passive ones."""
        return self.torques

    @property
    def relative_muscle_torques(self) -> ca.SX:
        """Torques of the muscles of the moving joints, divided by the strengths of the joints."""
        return self.muscle_torques[self.moving] / self.node.data("strengths", len(self.moving))

    def ground_power(self, side: str) -> ca.SX:
        """Return the power (W) of the ground at a foot, plus that of a rail at the hand on the same side.

        The power is zero while the foot neither slips nor lifts and the hand does not slip.
        """
        wrench, toes = self.feet[side], self.toes[side]
        foot, tip = (_power(self.node, f"{side}_{link}", wrench) for link in ("foot", "toes"))
        total: ca.SX = (1 - toes) * foot + toes * tip
        return total + rail_power(self.node, side) if has_rails(self.node) else total

    def reaction(self, side: str, joint: str) -> ca.SX:
        """Return the force (3 x 1, base axes) on the link below a leg joint: "hip", "knee" or "ankle"."""
        child = f"{side}_{REACTIONS[joint]}"
        R = self.node.pose(child)[:3, :3]
        return R @ self.node.wrenches()[self.node.robot.link_names.index(child), 3:].T - self.feet[side].f


Contact = TypeVar("Contact", bound=ContactForces)


def _power(node: Node, link: str, wrench: Wrench) -> ca.SX:
    """Return the power (W) of a wrench about the origin on a link."""
    pose, V = node.pose(link), node.velocity(link)
    omega, v = pose[:3, :3] @ V[:3], pose[:3, :3] @ V[3:]
    return ca.dot(wrench.n, omega) + ca.dot(wrench.f, v + ca.cross(pose[:3, 3], omega))


def _horizontal(place: ca.SX) -> ca.SX:
    """Return (x, z) as a vector (3 x 1)."""
    return ca.vertcat(place[0], 0, place[1])


# Two feet that share the ground wrench optimally.
#
# With the ground force f, its moment n about the origin and its centre of pressure Z, the left foot carries in double
# support
#
#     F_L = l f + l (1 - l) k f_y d      at      Z + (1 - l) d
#     F_R = f - F_L                      at      Z - l d
#
# where l is the fraction of the vertical force, d is the vector from the right to the left centre of pressure, and k
# (1/m) is the relative inclination of both forces along d. All sums are exact, and no equation divides by a force. l, d
# and k are profiles of the motion problem, as deviations from nominal values. Positions are relative to the heels, so
# that the length and width of the step may be variables. On stairs, the left foot is higher or lower by h: d includes
# this height, and Z is at l h, so that both centres of pressure are on their treads.

FRACTION, LATERAL_OFFSET, FORWARD_OFFSET, PUSH = (
    "left fraction",
    "left of right foot",
    "left behind right foot",
    "inclination",
)
PROFILES = (FRACTION, LATERAL_OFFSET, FORWARD_OFFSET, PUSH)
SPEED, WIDTH, LEFT_STEP = "speed", "step width", "left step length"  # shared parameters of the problem

# Node data: nominal values, position of the left heel, and for each foot, the edges of its sole relative to the heel
# (m).
SHARED = VectorLayout(
    left_fraction=1, right=2, left=2, left_at=2, height=1, push=1, toes=2, right_box=4, left_box=4, mass=1, weight=1,
    friction=1,
)  # fmt: skip


class SharedContact(ContactForces):
    """The contact of two feet whose shares of the ground wrench are profiles of the problem."""

    def __init__(self, node: Node):
        data, (f, n) = self._begin(node, "shared ground", SHARED)
        self.mass, self.soles = data["mass"], {side: data[f"{side}_box"] for side in SIDES}
        self.heels = {side: heel_place(node, side, data["left_at"]) for side in SIDES}
        heels = {side: ca.vertcat(place[0], place[2]) for side, place in self.heels.items()}
        part = data["left_fraction"] + node.profile(FRACTION)
        apart = heels["left"] - heels["right"] + data["left"] - data["right"]
        apart = apart + ca.vertcat(node.profile(LATERAL_OFFSET), node.profile(FORWARD_OFFSET))
        push = data["push"] + node.profile(PUSH)
        d = ca.vertcat(apart[0], data["height"], apart[1])
        level = part * data["height"]
        pushed = part * (1 - part) * push * f[1] * d
        # f_y Z, without division
        pressed = ca.vertcat(n[2] + level * f[0], level * f[1], -n[0] + level * f[2])
        left = Wrench(
            part * f + pushed,
            part * (n + (1 - part) * ca.cross(d, f)) + part * (1 - part) * push * ca.cross(pressed, d),
        )
        self.feet = {"right": Wrench(f - left.f, n - left.n), "left": left}
        self.force, self.fraction = f, part
        self.directions = {"right": f - part * push * f[1] * d, "left": f + (1 - part) * push * f[1] * d}
        aside = {"right": -part * apart, "left": (1 - part) * apart}
        centre = ca.vertcat(pressed[0], pressed[2])
        self.pressures = {side: centre + f[1] * (aside[side] - heels[side]) for side in SIDES}

    @cached_property
    def muscle_torques(self) -> ca.SX:
        """Torques of the muscles: joint torques minus passive torques."""
        torques: ca.SX = self.torques - torques_by_coordinate(self.names, self.node.q, self.node.v)
        return torques

    @cached_property
    def rows(self) -> dict[str, ca.SX]:
        """Distances of each centre of pressure from the edges of its sole, times the vertical force (N m)."""
        distances, up = dict[str, ca.SX](), self.force[1]
        for side in SIDES:
            x, z = ca.vertsplit(self.pressures[side])
            right, left, back, front = ca.vertsplit(self.soles[side])
            distances |= {f"{side} heel": z - back * up, f"{side} toes": front * up - z}
            distances |= {f"{side} sole, right": x - right * up, f"{side} sole, left": left * up - x}
        return distances


def heel_place(node: Node, side: str, left_at: ca.SX | None = None) -> ca.SX:
    """Return the position (3 x 1) of a heel; the right heel is at z = 0.

    The left heel is at z = a l + b d, where ``left_at`` = (a, b), l is the left step length, and d is the distance of
    the walk.
    """
    half = node.shared[WIDTH] / 2
    if side == "right" or left_at is None:
        return ca.vertcat(-half, 0, 0)
    z = left_at[0] * node.shared.get(LEFT_STEP, 0.0) + left_at[1] * node.shared[SPEED] * node.T
    return ca.vertcat(half, 0, z)


# The contact of a run: either the right foot carries the full ground force while the left foot swings, or both feet are
# off the ground.
#
# A running step begins with the touch-down of the right foot, and ends with that of the left foot after a flight phase.
# Positions are relative to the right heel. In flight, the feet carry no force, so the forces of the six global
# coordinates must be zero, which constraints of the problem enforce at the nodes (``Flight``). Residual forces between
# the nodes do not act on joints.

# Node data: whether only the toes of a foot are in contact, the sole of the right foot relative to its heel (m; right
# and left edge, back and front), and whether the foot may press on the ground (1) or not (0).
ONE_FOOT = VectorLayout(toes=2, sole=4, presses=1, mass=1, weight=1, friction=1)


class OneFootContact(SharedContact):
    """The contact of only the right foot; the global coordinates determine ``force`` and ``moment``."""

    def __init__(self, node: Node):
        data, (f, n) = self._begin(node, "shared ground", ONE_FOOT)
        self.mass, self.presses, self.sole = data["mass"], data["presses"], data["sole"]
        self.force, self.moment, nothing = f, n, ca.SX.zeros(3, 1)
        self.feet = {"right": Wrench(self.presses * f, self.presses * n), "left": Wrench(nothing, nothing)}
        self.directions = {"right": f}

    @cached_property
    def rows(self) -> dict[str, ca.SX]:
        """Distances of the centre of pressure from the edges of the sole, times the vertical force (N m)."""
        heel, up = heel_place(self.node, "right"), self.force[1]
        x, z = self.moment[2] - heel[0] * up, -self.moment[0] - heel[2] * up
        right, left, back, front = ca.vertsplit(self.sole)
        along = {"right heel": z - back * up, "right toes": front * up - z}
        return along | {"right sole, right": x - right * up, "right sole, left": left * up - x}


@lru_cache(maxsize=8)
def contact_forces(node: Node) -> ContactForces:
    """Return the contact forces at a node; all terms of the node share one object."""
    held = railed(node)
    if FRACTION in node.model.names:
        return SharedContact(held)
    return OneFootContact(node) if WIDTH in node.shared else ContactForces(held)


def contact_as(kind: type[Contact], node: Node) -> Contact:
    """Return the contact forces of a node as an instance of the class ``kind``."""
    contact = contact_forces(node)
    assert isinstance(contact, kind)
    return contact
