"""Inverse-kinematics targets: requirements on a posture, as data with symbolic residuals.

The residual of a target (m, rad, or twice the sine of half an angle) is zero if the target is met. The residual of a
rotation is the rotation vector e of R R_target^T, in base axes. Its derivative along the angular velocity w is taken to
be w. Since J_l^-1(e) e = e, the gradient of |e|^2 / 2 and the Newton step are still exact (Sola, Deray and Atchuthan
2018, eq. 144).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import IDENTITY, Array
from torsor.base.checks import ROTATION_TOLERANCE, arrays, direction, flag, frozen_array, real_array
from torsor.base.errors import ModelError
from torsor.dynamics.recursions.configuration import steps
from torsor.dynamics.recursions.kinematics import moves, sx, world_poses
from torsor.dynamics.recursions.momentum import center_of_mass
from torsor.dynamics.recursions.places import bodies_above, place_in_base
from torsor.dynamics.trees.tree import Tree
from torsor.mechanism import Mechanism, Place
from torsor.mechanism.mechanism import lineage
from torsor.spatial import cross, log_rotation, skew, to_quaternion

# Symbolic poses of places and their Jacobians in base axes, from which targets are built.
#
# Let (w, v) be the axis of a joint as a twist at its origin o, in base axes. At a unit rate, the joint moves a point x
# with the velocity v + w x (x - o), and its link with the angular velocity w (Featherstone 2008, section 2.4).

Rows = tuple[ca.SX, ca.SX]  # values (m x 1), and their derivatives (m x nv) along ``integrate``


class Posture:
    """The bodies of a tree at the positions q (nq x 1)."""

    def __init__(self, tree: Tree, q: ca.SX):
        self.tree, self.q = tree, q
        self._moved = moves(tree, q)
        self._poses = world_poses(tree, self._moved)

    def pose(self, place: Place) -> tuple[ca.SX, ca.SX]:
        """Return (R, p) of a place in base axes."""
        return place_in_base(self.tree, self._poses, place)

    def jacobians(self, place: Place, point: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the Jacobians (3 x nv each) of the angular velocity and of the velocity of a point (3 x 1)."""
        turning, moving = [ca.SX(3, 1)] * self.tree.nv, [ca.SX(3, 1)] * self.tree.nv
        for k in bodies_above(self.tree, place.link):
            body, (_, origin) = self.tree.bodies[k], self._poses[k]
            for at, (w, v) in enumerate(self._axes[k], body.v.start):
                turning[at] = turning[at] + body.joint.ratio * w
                moving[at] = moving[at] + body.joint.ratio * (v + cross(w, point - origin))
        return ca.horzcat(ca.SX(3, 0), *turning), ca.horzcat(ca.SX(3, 0), *moving)

    @cached_property
    def _axes(self) -> list[list[Rows]]:
        """Angular and linear axes (3 x 1 each) of each body's joint, in base axes."""
        result = []
        for move, (R, _) in zip(self._moved, self._poses, strict=True):
            columns = range(move.S.size2())
            result.append([(R @ move.S[:3, c], R @ move.S[3:, c]) for c in columns])
        return result

    def center_of_mass(self) -> Rows:
        """Return the centre of mass (3 x 1) in base axes, and its Jacobian (3 x nv); the tree must not be lean."""
        q = ca.SX.sym("q", self.tree.nq)  # symbols for derivatives: the positions may be expressions
        c = center_of_mass(self.tree, q)
        at, J = ca.Function("c", [q], [c, ca.jacobian(c, q) @ steps(self.tree, q)]).call([self.q])
        return at, J


def coordinates_of(mechanism: Mechanism, place: Place) -> set[int]:
    """Return the indices in v of the coordinates that move a place."""
    velocities = (mechanism.coordinates[k].v for k in lineage(mechanism, place.link))
    return {k for at in velocities for k in range(at.start, at.stop)}


WHERE = "inverse kinematics"
# Distance (m) to the viewed point below which the direction of a frame is not defined.
NO_DIRECTION = 1e-12
MAX_DISTANCE = 1e6  # m: positions farther away have rounding errors far above the tolerance


@dataclass(frozen=True, eq=False, kw_only=True)
class Target:
    """Base class of all targets, with a ``weight`` and the flag ``hard``.

    If not all targets can be met, the error (m, rad) of each is multiplied by its weight; only weight ratios matter.
    Hard targets are met exactly, while the errors of the others are minimised.
    """

    weight: Any = 1.0
    hard: bool = False
    title: ClassVar[str] = "target"
    kinds: ClassVar[str] = ""  # kind of each three rows: "a" rotation vector, "p" position, "d" direction
    count: ClassVar[int] = 3  # number of values per state
    numbers: ClassVar[str] = ""  # the field that contains the values

    def __init_subclass__(cls, **own: Any) -> None:  # the four class variables above; others are inherited
        for name, value in own.items():
            setattr(cls, name, value)

    @property
    def where(self) -> str:
        """Name of the place, or "centre of mass"."""
        return str(getattr(self, "place", "centre of mass"))

    @property
    def label(self) -> str:
        """Name of the target in reports."""
        return f"{self.title} of {self.where!r}"

    @property
    def form(self) -> tuple[Any, ...]:
        """Everything except data that the traced rows depend on, for example the axis of a target."""
        fields = vars(self)
        axis = direction(fields["axis"], self.label, "axis").tolist() if "axis" in fields else ()
        return (type(self).__name__, repr(fields.get("place")), *axis)

    def bare(self) -> "Target":
        """Return the target without its values and its weight."""
        nothing: dict[str, Any] = {self.numbers: None, "weight": 1.0}
        return replace(self, **nothing)

    def weights(self) -> Array:
        """Return the weights, one for each three rows."""
        count = len(self.kinds)
        if type(self.weight) is float and 0 < self.weight < np.inf:
            return np.full(count, self.weight)
        values = real_array(self.weight, WHERE, f"weight of the {self.label}")
        if values.shape not in ((), (count,)) or not (np.isfinite(values) & (values > 0)).all():
            allowed = "a positive number" + (" or two, (position, angle)" if count == 2 else "")
            raise ModelError(argument="weight", value=self.weight, where=f"{WHERE}: {self.label}", allowed=allowed)
        return np.broadcast_to(values, (count,))[::-1].astype(float)  # rows have angles first

    def coordinates(self, mechanism: Mechanism) -> set[int]:
        """Return the indices in v of the coordinates that the target depends on."""
        return coordinates_of(mechanism, self.at(mechanism))

    def at(self, mechanism: Mechanism) -> Place:
        """Return the place; raise ModelError if its name is unknown."""
        return mechanism.place(self.place)  # type: ignore[attr-defined]

    def given(self) -> Array:
        """Return the checked values (..., count); by default a position (..., 3)."""
        return near_enough(arrays(getattr(self, self.numbers), (3,), self.label, self.numbers), self.label)

    def rows(self, mechanism: Mechanism, posture: Posture, data: ca.SX) -> Rows:
        """Return the residuals and their Jacobian; ``data`` are the symbols of the target values."""
        raise NotImplementedError

    def check(self, mechanism: Mechanism) -> None:
        """Raise ModelError if the target is not possible for the mechanism."""
        if type(self.hard) is not bool:
            flag(self.hard, WHERE, f"hard of the {self.label}")
        self.weights()
        self.at(mechanism)


@dataclass(frozen=True, eq=False)
class Pose(Target, title="pose", kinds="ap", count=12, numbers="pose"):
    """The pose (..., 4, 4) of a place in base axes; ``weight`` may be a pair (position, angle).

    Example:
        >>> arm = torsor.library.six_axis_arm()
        >>> there = arm.pose([0.1, -0.5, 0.7, 0.2, 0.4, 0.0], "link6")
        >>> bool(torsor.inverse_kinematics(arm, [Pose("link6", there)]).solved)
        True
    """

    place: str | int
    pose: ArrayLike

    def given(self) -> Array:
        """Return R, column by column, and p (..., 12)."""
        T = _rotations(self.pose, 4, self.label)
        last = np.abs(T[..., 3, :] - IDENTITY[3]).max(initial=0.0)
        if last > ROTATION_TOLERANCE:
            raise ModelError("the last row is not [0, 0, 0, 1]", where=self.label, allowed="[[R, p], [0, 0, 0, 1]]")
        return np.concatenate([_flat(T[..., :3, :3]), near_enough(T[..., :3, 3], self.label)], axis=-1)

    def rows(self, mechanism: Mechanism, posture: Posture, data: ca.SX) -> Rows:
        """Return the rotation vector and the difference of positions, in base axes."""
        place = self.at(mechanism)
        R, p = posture.pose(place)
        turning, moving = posture.jacobians(place, p)
        return ca.vertcat(_turn(R, data[:9]), p - data[9:12]), ca.vertcat(turning, moving)


@dataclass(frozen=True, eq=False)
class Position(Target, title="position", kinds="p", numbers="position"):
    """The position (..., 3) in base axes (m) of a ``point`` that is fixed to a place, in the place's axes (m).

    Example:
        >>> arm = torsor.library.two_link()
        >>> torsor.inverse_kinematics(arm, [Position("link2", arm.pose([0.4, 0.9], "link2")[:3, 3])]).solved.item()
        True
    """

    place: str | int
    position: ArrayLike
    point: ArrayLike = (0.0, 0.0, 0.0)

    @property
    def form(self) -> tuple[Any, ...]:
        """The form of the target, with the point."""
        point = near_enough(frozen_array(self.point, (3,), self.label, "point"), self.label)
        return (*super().form, *point.tolist())

    def rows(self, mechanism: Mechanism, posture: Posture, data: ca.SX) -> Rows:
        """Return the difference of positions, in base axes."""
        place = self.at(mechanism)
        R, p = posture.pose(place)
        point = p + R @ sx(np.asarray(self.form[2:]))
        return point - data, posture.jacobians(place, point)[1]


@dataclass(frozen=True, eq=False)
class Orientation(Target, title="orientation", kinds="a", count=9, numbers="rotation"):
    """The orientation of a place: a rotation matrix (..., 3, 3) to base axes.

    Example:
        >>> arm = torsor.library.six_axis_arm()
        >>> torsor.inverse_kinematics(arm, [Orientation("link6", np.eye(3))]).solved.item()
        True
    """

    place: str | int
    rotation: ArrayLike

    def given(self) -> Array:
        """Return R, column by column (..., 9)."""
        return _flat(_rotations(self.rotation, 3, self.label))

    def rows(self, mechanism: Mechanism, posture: Posture, data: ca.SX) -> Rows:
        """Return the rotation vector, in base axes."""
        place = self.at(mechanism)
        R, p = posture.pose(place)
        return _turn(R, data), posture.jacobians(place, p)[0]


@dataclass(frozen=True, eq=False)
class Direction(Target, title="direction", kinds="d", numbers="along"):
    """Alignment of an ``axis`` (3) of a place with a direction (..., 3) in base axes; both may have any length.

    The rotation about the axis is free. The residual is the difference of the two unit vectors. Its length is twice the
    sine of half the angle between them, so it is not zero for opposite vectors.

    Example:
        >>> arm = torsor.library.six_axis_arm()
        >>> down = torsor.inverse_kinematics(arm, [Direction("link6", (0, 0, 1), (0, 0, -1))])
        >>> arm.pose(down.q, "link6")[:3, 2].round(6).tolist()[2]
        -1.0
    """

    place: str | int
    axis: ArrayLike
    along: ArrayLike

    def given(self) -> Array:
        """Return the unit vector (..., 3)."""
        along = arrays(self.along, (3,), self.label, "along")
        largest = np.abs(along).max(axis=-1, keepdims=True)
        if not (largest > NO_DIRECTION).all():
            raise ModelError("is zero", argument="along", where=self.label, allowed="a direction")
        along = along / largest  # prevents overflow in the squares
        return np.asarray(along / np.linalg.norm(along, axis=-1, keepdims=True))

    def rows(self, mechanism: Mechanism, posture: Posture, data: ca.SX) -> Rows:
        """Return the difference of the unit vectors, in base axes."""
        place = self.at(mechanism)
        R, p = posture.pose(place)
        axis = R @ sx(np.asarray(self.form[2:]))
        return axis - data, -skew(axis) @ posture.jacobians(place, p)[0]


@dataclass(frozen=True, eq=False)
class LookAt(Target, title="view", kinds="d", numbers="point"):
    """Alignment of an ``axis`` (3) of a place with the line from its origin to a point (..., 3), as for a camera.

    The point is in base axes.

    Example:
        >>> arm = torsor.library.six_axis_arm()
        >>> torsor.inverse_kinematics(arm, [LookAt("link6", (2.0, 0, 0.5))]).solved.item()
        True
    """

    place: str | int
    point: ArrayLike
    axis: ArrayLike = (0.0, 0.0, 1.0)

    def rows(self, mechanism: Mechanism, posture: Posture, data: ca.SX) -> Rows:
        """Return the difference between the axis and the unit vector to the point, in base axes."""
        place = self.at(mechanism)
        R, p = posture.pose(place)
        turning, moving = posture.jacobians(place, p)
        axis, sight = R @ sx(np.asarray(self.form[2:])), data - p
        far = ca.fmax(ca.norm_2(sight), NO_DIRECTION)
        toward = sight / far
        return axis - toward, -skew(axis) @ turning + (moving - toward @ (toward.T @ moving)) / far


@dataclass(frozen=True, eq=False)
class CenterOfMass(Target, kinds="p", numbers="position"):
    """The centre of mass of all moving links (..., 3), in base axes (m).

    Example:
        >>> arm = torsor.library.two_link()
        >>> torsor.inverse_kinematics(arm, [CenterOfMass(arm.center_of_mass([0.2, 0.5]))]).solved.item()
        True
    """

    position: ArrayLike

    @property
    def label(self) -> str:
        """Name of the target in reports."""
        return "position of the centre of mass"

    def at(self, mechanism: Mechanism) -> Place:
        """Return the base, in whose axes the centre of mass is given; raise ModelError if the links have no mass."""
        if not mechanism.mass > 0:
            raise ModelError("the links have no mass", where=mechanism.name, fix="remove the CenterOfMass")
        return mechanism.place(mechanism.base.name)

    def coordinates(self, mechanism: Mechanism) -> set[int]:
        """Return the coordinates of all joints."""
        return {k for at in mechanism.coordinates for k in range(at.v.start, at.v.stop)}

    def rows(self, mechanism: Mechanism, posture: Posture, data: ca.SX) -> Rows:
        """Return the difference of positions."""
        c, J = posture.center_of_mass()
        return c - data, J


def near_enough(positions: Array, where: str) -> Array:
    """Return ``positions``; raise ModelError if they are too far away for a meaningful result."""
    far = float(np.abs(positions).max(initial=0.0))
    if far > MAX_DISTANCE:
        raise ModelError(f"a position is {far:.3g} m away", where=where, allowed=f"up to {MAX_DISTANCE:g} m")
    return positions


def _rotations(value: ArrayLike, size: int, where: str) -> Array:
    """Return checked rotations or poses (..., size, size)."""
    T = arrays(value, (size, size), where, "pose" if size == 4 else "rotation")
    R = T[..., :3, :3]
    off, mirrored = np.abs(R @ R.swapaxes(-1, -2) - IDENTITY[:3, :3]), np.linalg.det(R) < 0
    if off.max(initial=0.0) > ROTATION_TOLERANCE or mirrored.any():
        error = off.max(axis=(-1, -2))
        wrong = (error > ROTATION_TOLERANCE) | mirrored
        at = tuple(int(k) for k in np.argwhere(wrong)[0])
        of = f"[{', '.join(map(str, at))}] " if at else ""
        message = f"{of}is not a rotation: orthonormality error {error[at]:.1e}, determinant {np.linalg.det(R[at]):.3g}"
        raise ModelError(message, where=where, allowed="rotation matrices", fix="normalise it")
    return T


def _flat(R: Array) -> Array:
    return np.ascontiguousarray(R.swapaxes(-1, -2)).reshape(*R.shape[:-2], 9)


def _turn(R: ca.SX, flat: ca.SX) -> ca.SX:
    """Return the rotation vector (3 x 1) of R R_target^T; ``flat`` (9) is R_target, column by column."""
    turn: ca.SX = log_rotation(to_quaternion(R @ ca.reshape(flat, 3, 3).T))
    return turn


# Conversion of user input, which may be target objects or arrays by place, to targets.


def made(targets: Any, where: str) -> tuple[Target, ...]:
    """Return targets as objects, from {place: pose or position}, one target, or a sequence of them.

    Example:
        >>> [each.label for each in made({"link2": np.eye(4), "link1": [0, 0, 1.0]}, "arm")]
        ["pose of 'link2'", "position of 'link1'"]
    """
    if isinstance(targets, Target):
        targets = [targets]
    if isinstance(targets, Mapping):
        targets = [_plain(place, value, where) for place, value in targets.items()]
    allowed = "{place: pose (..., 4, 4) or position (..., 3)}, or a list of Pose, Position, Orientation, Direction, "
    allowed += "LookAt and CenterOfMass"
    if not isinstance(targets, Sequence) or isinstance(targets, str) or not len(targets):
        raise ModelError(argument="targets", value=targets, where=where, allowed=allowed)
    for target in targets:
        if not isinstance(target, Target) or type(target) is Target:
            raise ModelError(f"a target has type {type(target).__name__}", where=where, allowed=allowed)
    return tuple(targets)


def _all_rotations(array: Array) -> bool:
    """Return whether an array contains rotation matrices; three positions form one only by coincidence."""
    if array.shape[-2:] != (3, 3) or not array.size:
        return False
    return bool(np.abs(array @ array.swapaxes(-1, -2) - np.eye(3)).max() < ROTATION_TOLERANCE)


def _plain(place: Any, value: Any, where: str) -> Target:
    """Return the target of an array: a pose (..., 4, 4) or a position (..., 3)."""
    if isinstance(value, Target):
        fix = "pass a list of target objects, or {place: array}"
        raise ModelError(f"the target at {place!r} has type {type(value).__name__}", value=place, where=where, fix=fix)
    array = real_array(value, where, f"target of {place!r}")
    if array.shape[-2:] == (4, 4):
        return Pose(place, array)
    if array.shape[-1:] == (3,) and not _all_rotations(array):
        return Position(place, array)
    message = f"target of {place!r} has shape {array.shape}"
    fix = "for a rotation (3, 3) use Orientation; for three positions use Position(place, positions)"
    raise ModelError(message, value=place, where=where, allowed="(..., 4, 4) or (..., 3)", fix=fix)
