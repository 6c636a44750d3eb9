"""The tree for the recursions: bodies in joint frames, whose z axis is the joint axis.

It is independent of the description's conventions. A body has a constant pose in its parent's frame, a joint that moves
it from this pose, and a pseudo-inertia. Frames of the user's links are stored as poses in the body's frame.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.dynamics.trees.modal import Modal, Shape
from torsor.mechanism import Coordinate, Coupling, CutJoint, Joint, Mechanism, Motor, Place, ends_of
from torsor.mechanism.flexible import Modes
from torsor.spatial import inverse_pose, make_pose, move_pseudo_inertia, pseudo_inertia, rotational_inertia

Numbers = Any  # an array, or SX if some of its entries are inputs (see ``imposed``)

# Entries below this fraction of their neighbours are rounding errors from products of rotations.
ROUNDING = 4e-15


@dataclass(frozen=True, eq=False)
class Rotor:
    """A rotor on a body: momentum per unit rate of ``v``, angular ``h`` (3) and, for modes, linear ``b`` (3)."""

    v: int
    h: Numbers
    b: Numbers = None

    @property
    def momentum(self) -> tuple[ca.SX, ca.SX]:
        """Return the (angular, linear) momentum (3 x 1 each) for a unit rate."""
        h, b = (ca.densify(ca.SX(np.zeros(3) if item is None else item)) for item in (self.h, self.b))
        return h, b


@dataclass(frozen=True, eq=False)
class Passive:
    """A force K(x) x + D x' + Fs sign(x') along x = offset + sum of c q; ``q`` and ``v`` are the indices of q and q'.

    ``model`` is the text of an additional friction force, a function of x'.
    """

    q: tuple[int, ...]
    v: tuple[int, ...]
    c: tuple[float, ...]
    offset: float = 0.0
    stiffness: float | str | ca.SX = 0.0
    damping: float | ca.SX = 0.0
    coulomb: float | ca.SX = 0.0
    smooth: float = 0.0
    model: str = ""


class Cut(NamedTuple):
    """A cut joint between two places of the tree."""

    loop: CutJoint
    a: Place
    b: Place


class Relation(NamedTuple):
    """A coupling: the sum of c[0] q[i] + c[1] q[i]^2 + ... over ``terms`` (i, j, c) equals ``offset``; q[i]' = v[j]."""

    terms: tuple[tuple[int, int, tuple[float, ...]], ...]
    offset: float


@dataclass(frozen=True, eq=False)
class Body:
    """A link in its joint frame: its pose ``T`` in the parent at zero position, and its pseudo-inertia ``P``, 4 x 4."""

    parent: int
    joint: Joint
    q: slice
    v: slice
    T: Numbers
    P: Numbers
    link: Numbers  # pose of the user's link frame in the body's frame
    turn: float = 0.0  # joint angle that T does not include
    rotors: tuple[Rotor, ...] = ()
    modal: tuple[Modal, ...] = ()  # inertia of the flexible links that are clamped to the body
    shapes: tuple[Shape, ...] = ()  # their inertia at positions q, see ``at``

    def at(self, q: ca.SX) -> "Body":
        """Return the body with its inertia at positions q, on which the inertia depends if it has flexible links."""
        if not self.modal:
            return self
        shapes = tuple(item.at(q[item.q]) for item in self.modal)
        modes = (
            Rotor(item.v.start + k, *momenta)
            for item, shape in zip(self.modal, shapes, strict=True)
            for k, momenta in enumerate(zip(shape.h, shape.b, strict=True))
        )
        return replace(self, rotors=(*self.rotors, *modes), shapes=shapes)

    @property
    def Sigma(self) -> ca.SX:
        """Second moments (3 x 3), including the contribution of flexible links."""
        return sum((shape.Sigma for shape in self.shapes), start=ca.densify(ca.SX(self.P[:3, :3])))

    @property
    def ms(self) -> ca.SX:
        """First moments (3 x 1), including the contribution of flexible links."""
        return sum((shape.ms for shape in self.shapes), start=ca.densify(ca.SX(self.P[:3, 3])))

    @property
    def J(self) -> ca.SX:
        """Rotational inertia (3 x 3), including the contribution of flexible links."""
        return ca.densify(ca.SX(rotational_inertia(self.Sigma if self.shapes else self.P[:3, :3])))

    @property
    def mass(self) -> float | ca.SX:
        """The mass (kg): a number, or a symbol if it is an input."""
        return float(self.P[3, 3]) if isinstance(self.P, np.ndarray) else self.P[3, 3]

    def position(self, q: ca.SX) -> ca.SX:
        """Return the joint's own positions from the robot's q."""
        offset = self.joint.offset + self.turn
        position = q[self.q] if self.joint.ratio == 1 else self.joint.ratio * q[self.q]
        return position + offset if offset else position

    def rate(self, v: ca.SX) -> ca.SX:
        """Return the joint's own velocities (or accelerations) from those of the robot."""
        return v[self.v] if self.joint.ratio == 1 else self.joint.ratio * v[self.v]

    def spin(self, rates: ca.SX) -> ca.SX:
        """Return the spin momentum (3 x 1) of the rotors on the body, without modes, at ``rates`` (nv x 1)."""
        spinning = (rotor for rotor in self.rotors if rotor.b is None)
        return sum((rotor.momentum[0] * rates[rotor.v] for rotor in spinning), start=ca.SX.zeros(3, 1))

    def momenta(self, rates: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the (angular, linear) momentum (3 x 1 each) of the rotors and modes at ``rates`` (nv x 1)."""
        angular, linear = ca.SX.zeros(3, 1), ca.SX.zeros(3, 1)
        for rotor in self.rotors:
            h, b = rotor.momentum
            angular, linear = angular + h * rates[rotor.v], linear + b * rates[rotor.v]
        return angular, linear


@dataclass(frozen=True, eq=False)
class Tree:
    """Bodies, parents before children, with the numbers of coordinates and gravity (m/s^2, in base axes).

    ``armature`` (nv) is the inertia that rotor spin adds to each coordinate. Motor coordinates are last.
    """

    bodies: tuple[Body, ...]
    nq: int
    nv: int
    gravity: Numbers
    armature: Numbers
    passives: tuple[Passive, ...]
    closures: tuple[Cut | Relation, ...] = ()
    coupled: tuple[tuple[int, int, float], ...] = ()  # modal masses (i, j, m), i < j, between coordinates

    def armature_times(self, a: ca.SX) -> ca.SX:
        """Return the forces (nv x 1) that accelerate the armature and the modal masses of flexible links."""
        forces = ca.densify(ca.SX(self.armature)) * a
        for i, j, m in self.coupled:
            forces[i], forces[j] = forces[i] + m * a[j], forces[j] + m * a[i]
        return forces

    @classmethod
    def of(cls, mechanism: Mechanism) -> "Tree":
        """Return the tree of a mechanism."""
        frames = [joint.frame for joint in mechanism.joints]
        rotors, modal = _rotors(mechanism), _modal(mechanism)
        bodies = []
        rows = zip(mechanism.links, mechanism.joints, mechanism.parents, mechanism.coordinates, strict=True)
        for link, joint, parent, slices in rows:
            to_body = inverse_pose(joint.frame)
            T = joint.placement @ joint.frame
            if parent >= 0:
                T = inverse_pose(frames[parent]) @ T
            P = move_pseudo_inertia(to_body, pseudo_inertia(*link.body))
            carried = tuple(replace(rotor, h=to_body[:3, :3] @ rotor.h) for rotor in rotors[link.name])
            clamped = tuple(modal[link.name])
            bodies.append(Body(parent, joint, slices.q, slices.v, T, P, to_body, rotors=carried, modal=clamped))
        closures = list[Cut | Relation]()
        positions, rates = mechanism.position_names, mechanism.coordinate_names
        for loop in mechanism.loops:
            if isinstance(loop, Coupling):
                terms = ((positions.index(name), rates.index(name), c) for name, c in loop.polynomials.items())
                closures.append(Relation(tuple(terms), loop.offset))
            else:
                closures.append(Cut(loop, *map(mechanism.place, ends_of(mechanism, loop))))
        drives = _armature(mechanism), tuple(_passives(mechanism)), tuple(closures)
        coupled = []  # the modal masses between two coordinates
        for joint, slices in zip(mechanism.joints, mechanism.coordinates, strict=True):
            if isinstance(joint.flexible, Modes):
                mass, first = joint.flexible.mass_matrix, slices.v.start
                pairs = np.argwhere(np.triu(mass, 1)).tolist()
                coupled += [(first + i, first + j, float(mass[i, j])) for i, j in pairs]
        return cls(tuple(map(tidy, bodies)), mechanism.nq, mechanism.nv, mechanism.gravity, *drives, tuple(coupled))

    @property
    def bends(self) -> bool:
        """Whether a link has assumed modes, so that the inertia of its body depends on q."""
        return any(body.modal for body in self.bodies)

    @property
    def floats(self) -> bool:
        """Whether every joint to the base is free."""
        return all(body.joint.type == "free" for body in self.bodies if body.parent < 0)

    @property
    def motors(self) -> tuple[tuple[int, int], ...]:
        """The indices in q and v of the angle and the rate of each motor of an elastic joint."""
        first_q = max((body.q.stop for body in self.bodies), default=0)
        first_v = max((body.v.stop for body in self.bodies), default=0)
        return tuple(zip(range(first_q, self.nq), range(first_v, self.nv), strict=True))


def _motor_rates(mechanism: Mechanism) -> Iterator[tuple[Joint, Motor, int, float]]:
    """Yield each joint with a motor, the motor, its index in v, and its rotor speed for a unit rate."""
    for joint, slices in zip(mechanism.joints, mechanism.coordinates, strict=True):
        if joint.motor is not None and joint.is_elastic:
            yield joint, joint.motor, mechanism.motor_coordinates[joint.name].v.start, joint.motor.ratio
        elif joint.motor is not None:
            yield joint, joint.motor, slices.v.start, joint.motor.ratio * joint.ratio


def _rotors(mechanism: Mechanism) -> dict[str, list[Rotor]]:
    """Return the rotors on each link, in the link's axes."""
    rotors: dict[str, list[Rotor]] = defaultdict(list)
    for _, motor, v, rate in _motor_rates(mechanism):
        if motor.inertia * rate:
            rotors[motor.carrier].append(Rotor(v, motor.inertia * rate * motor.axis))
    return rotors


def _modal(mechanism: Mechanism) -> dict[str, list[Modal]]:
    """Return the flexible links by the link to which they are clamped, in its joint frame."""
    modal: dict[str, list[Modal]] = defaultdict(list)
    frames = {link.name: joint.frame for link, joint in zip(mechanism.links, mechanism.joints, strict=True)}
    for joint, slices in zip(mechanism.joints, mechanism.coordinates, strict=True):
        if isinstance(joint.flexible, Modes):
            clamp = joint.placement @ make_pose(p=-joint.flexible.positions[-1])
            clamp = inverse_pose(frames[joint.parent]) @ clamp
            modal[joint.parent].append(Modal.of(joint.flexible, clamp, slices.q, slices.v))
    return modal


def _armature(mechanism: Mechanism) -> Array:
    armature = np.zeros(mechanism.nv)
    for joint, slices in zip(mechanism.joints, mechanism.coordinates, strict=True):
        armature[slices.v] += joint.ratio**2 * np.asarray(joint.rotor_inertia)
        if isinstance(joint.flexible, Modes):
            armature[slices.v] += joint.flexible.mass_matrix.diagonal()
    for _, motor, v, rate in _motor_rates(mechanism):
        armature[v] += rate**2 * motor.inertia
    return armature


def _passives(mechanism: Mechanism) -> Iterator[Passive]:
    """Yield the friction of joints and motors, the springs of joints, and the springs between joints and motors."""
    for joint, slices in zip(mechanism.joints, mechanism.coordinates, strict=True):
        coulomb, viscous = np.asarray(joint.coulomb), np.asarray(joint.viscous)
        for k in np.flatnonzero((coulomb + viscous > 0) | bool(joint.friction_model)):
            one, linear = (slices.v.start + int(k),), (0.0, 0.0, float(viscous[k]), float(coulomb[k]))
            yield Passive((), one, (joint.ratio,), *linear, joint.smooth, joint.friction_model)
        if joint.spring is not None:
            yield _spring(joint, slices)
        if joint.flexible is not None and not joint.follows:
            yield from _elasticity(joint, slices)
        if joint.is_elastic:
            yield _transmission(joint, slices, mechanism.motor_coordinates[joint.name])
    for joint, motor, v, _ in _motor_rates(mechanism):
        if motor.coulomb or motor.viscous:
            coefficient = 1.0 if joint.is_elastic else joint.ratio
            yield Passive((), (v,), (coefficient,), 0.0, 0.0, motor.viscous, motor.coulomb, motor.smooth)


def _elasticity(joint: Joint, at: Coordinate) -> Iterator[Passive]:
    """Yield springs and dampers that together have the stiffness and damping matrices of a flexible link.

    An off-diagonal entry K is a spring along the sum of two coordinates. Its contribution to the diagonal is subtracted
    there, so the spring of a single coordinate may have a negative stiffness.
    """
    flexible: Any = joint.flexible
    for name, matrix in (("stiffness", flexible.stiffness_matrix), ("damping", flexible.damping_matrix)):
        rest = matrix.diagonal() - (matrix.sum(axis=1) - matrix.diagonal())
        strengths: dict[tuple[int, ...], float] = {(k,): float(rest[k]) for k in np.flatnonzero(rest).tolist()}
        strengths |= {(i, j): float(matrix[i, j]) for i, j in np.argwhere(np.triu(matrix, 1)).tolist()}
        for used, strength in strengths.items():
            q, v = (tuple(item.start + k for k in used) for item in (at.q, at.v))
            force: Any = {name: strength}
            yield Passive(q if name == "stiffness" else (), v, (1.0,) * len(used), **force)


def _spring(joint: Joint, at: Coordinate) -> Passive:
    spring: Any = joint.spring
    where = (at.q.start,), (at.v.start,), (joint.ratio,)
    return Passive(*where, joint.offset - spring.rest, spring.stiffness, spring.damping)


def _transmission(joint: Joint, at: Coordinate, motor_at: Coordinate) -> Passive:
    motor: Any = joint.motor
    where = (motor_at.q.start, at.q.start), (motor_at.v.start, at.v.start), (1.0, -joint.ratio)
    return Passive(*where, -joint.offset, motor.stiffness, motor.damping)


def spring_along(mechanism: Mechanism, index: int) -> Passive:
    """Return the spring of a joint, or the spring between the joint and its motor."""
    joint, at = mechanism.joints[index], mechanism.coordinates[index]
    if joint.spring is not None:
        return _spring(joint, at)
    return _transmission(joint, at, mechanism.motor_coordinates[joint.name])


def tidy(body: Body) -> Body:
    """Return the body with exact zeros and ones for entries that differ from them only by rounding."""
    rotors = tuple(replace(rotor, h=_drop(rotor.h, np.abs(rotor.h).max())) for rotor in body.rotors)
    return replace(body, T=tidy_pose(body.T), P=tidy_inertia(body.P), link=tidy_pose(body.link), rotors=rotors)


def _drop(values: Array, scale: float) -> Array:
    return np.where(np.abs(values) <= ROUNDING * scale, 0.0, values)


def tidy_pose(T: Array) -> Array:
    """Return a pose with exact 0 and 1 for entries that differ from them only by rounding."""
    R = _drop(T[:3, :3], 1.0)
    units = np.abs(np.abs(R) - 1) <= ROUNDING
    return make_pose(np.where(units, np.sign(R), R), _drop(T[:3, 3], max(np.abs(T[:3, 3]).max(), 0.1)))


def tidy_inertia(P: Array) -> Array:
    """Return a pseudo-inertia with exact 0 for entries that are rounding errors."""
    kept = P.copy()
    for block in (np.s_[:3, :3], np.s_[:3, 3], np.s_[3, :3]):
        kept[block] = _drop(P[block], np.abs(P[block]).max())
    return kept
