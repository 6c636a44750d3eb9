"""Tasks and contacts of a whole-body controller: targets for frames, centre of mass, posture and momentum.

Each task requests an acceleration that is linear in the coordinate accelerations, J a = wanted. The error e between
target and value then satisfies e'' + 2 d w e' + w^2 e = 0 with the bandwidth w (rad/s) and the damping ratio d.
"""

from dataclasses import KW_ONLY, dataclass
from itertools import product
from math import inf, sqrt
from typing import ClassVar

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import direction, frozen_pose, name_of, number, positive, real_array, whole_number
from torsor.base.errors import ModelError
from torsor.control.controller import Law, Reference, law_function
from torsor.control.partition import check_quaternions
from torsor.mechanism.loops import CUTS
from torsor.robot.robot import Robot
from torsor.spatial import axis_frame, cross, make_pose, skew

# Symbolic kinematics of a robot in (t, q, v), for the tasks and contacts of a whole-body controller.


class Symbols:
    """A robot at symbolic t, q and v; vectors are in base axes, with the angular part first."""

    def __init__(self, robot: Robot):
        self.robot = robot
        self.t, self.q, self.v = ca.SX.sym("t"), ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)

    def pose(self, place: str) -> ca.SX:
        """Return the pose (4 x 4) of a link or frame in base axes."""
        return self.robot.function("pose", place)(self.q)

    def jacobian(self, place: str, axes: str = "aligned") -> ca.SX:
        """Return the Jacobian (6 x nv) of the origin of a link or frame."""
        return self.robot.function("jacobian", place, axes=axes)(self.q)

    def velocity(self, place: str, axes: str = "aligned") -> ca.SX:
        """Return the twist (6 x 1) of a link or frame."""
        return self.robot.function("velocity", place, axes=axes)(self.q, self.v)

    def drift(self, place: str, axes: str = "aligned") -> ca.SX:
        """Return the acceleration (6 x 1) of a link or frame at zero coordinate accelerations."""
        still = ca.SX.zeros(self.robot.nv, 1)
        return self.robot.function("acceleration", place, axes=axes)(self.q, self.v, still)

    def of(self, name: str, *more: ca.SX) -> ca.SX:
        """Return the robot function ``name`` of q and ``more``."""
        return self.robot.function(name)(self.q, *more)


# Contacts of a whole-body controller: frames that do not move, and the forces that the ground can exert.
#
# The friction cone is replaced by an inscribed four-sided pyramid, so forces in the pyramid are also in the cone. The
# wrench of a rectangular surface contact |x| <= X, |y| <= Y can be produced by forces in the cones of its corners
# (Caron, Pham and Nakamura 2015) if, with the friction coefficient m of the pyramid,
#
#     |f_x|, |f_y| <= m f_z        |n_x| <= Y f_z        |n_y| <= X f_z
#     m (X + Y) f_z + n_z >= |Y f_x - m n_x| + |X f_y - m n_y|
#     m (X + Y) f_z - n_z >= |Y f_x + m n_x| + |X f_y + m n_y|


@dataclass(frozen=True, eq=False)
class Contact:
    """Base class of contacts: ``friction`` coefficient, largest normal force ``most`` (N), and slip ``damping`` (1/s).

    The ``size`` forces of a contact are in the ``axes`` of its Jacobian, with linear forces last.
    """

    place: str
    _: KW_ONLY
    friction: float = 0.7
    most: float = inf
    damping: float = 20.0
    size: ClassVar[int]
    axes: ClassVar[str]

    @property
    def where(self) -> str:
        """The name used in messages."""
        return f"contact of {self.place!r}"

    def __post_init__(self) -> None:
        positive(self.friction, self.where, "friction")
        number(self.damping, self.where, "damping", least=0)
        number(self.most, self.where, "most", above=0, finite=False)

    def check(self, robot: Robot) -> None:
        """Raise ModelError if the robot has no such link or frame, or if the link is the fixed base."""
        if robot.place(self.place).link < 0:
            raise ModelError("a contact must be on a moving link, not on the base", where=f"{robot.name}: {self.where}")

    def motion(self, at: Symbols) -> tuple[ca.SX, ca.SX]:
        """Return J and ``wanted`` in the frame's axes, where J a = wanted keeps the frame fixed."""
        rows = slice(6 - self.size, 6)
        J, V, drift = (of(self.place, "local") for of in (at.jacobian, at.velocity, at.drift))
        return J[rows, :], (-self.damping * V - drift)[rows]

    def moved(self, at: Symbols) -> ca.SX:
        """Return the Jacobian (size x nv) through which the force acts on the coordinates."""
        return at.jacobian(self.place, self.axes)[6 - self.size :, :]


@dataclass(frozen=True, eq=False)
class PointContact(Contact):
    """A contact that fixes the origin of a link or frame by a force (3) (N, base axes) in the friction cone.

    The axis of the cone is ``normal`` (3), in base axes, which points from the ground towards the robot. The cone is
    approximated by an inscribed pyramid of four sides. Other fields are described in ``WholeBody``.

    Example:
        >>> PointContact("fl_foot", friction=0.6).cone().shape
        (5, 3)
    """

    normal: ArrayLike = (0.0, 0.0, 1.0)
    size: ClassVar[int] = 3
    axes: ClassVar[str] = "aligned"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "normal", direction(self.normal, self.where, "normal"))

    def cone(self) -> Array:
        """Return the rows C (k x 3) of C f >= 0."""
        return _pyramid(self.friction / sqrt(2)) @ axis_frame(np.asarray(self.normal)).T

    def normal_row(self) -> Array:
        """Return the row of the normal force."""
        return np.asarray(self.normal, dtype=float)


@dataclass(frozen=True, eq=False)
class SurfaceContact(Contact):
    """A contact that keeps a rectangle of a link or frame on the ground; its z axis is the normal towards the robot.

    ``half_length`` and ``half_width`` (m) are half the side lengths along x and y of the frame, whose origin is the
    centre. The wrench (6), moment (N m) then force (N), is at the frame's origin in its axes. Other fields are
    described in ``WholeBody``.

    Example:
        >>> SurfaceContact("left_sole", 0.1, 0.05).cone().shape
        (17, 6)
    """

    half_length: float
    half_width: float
    size: ClassVar[int] = 6
    axes: ClassVar[str] = "local"

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(self.half_length, self.where, "half_length")
        positive(self.half_width, self.where, "half_width")

    def cone(self) -> Array:
        """Return the rows C (k x 6) of C w >= 0."""
        m, X, Y = self.friction / sqrt(2), self.half_length, self.half_width
        rows = [[0, 0, 0, *row] for row in _pyramid(m)]
        rows += [[s, 0, 0, 0, 0, Y] for s in (-1, 1)] + [[0, s, 0, 0, 0, X] for s in (-1, 1)]
        for side, s, r in product((-1, 1), repeat=3):
            # m (X + Y) f_z + side n_z >= s (Y f_x - side m n_x) + r (X f_y - side m n_y), for all signs
            rows.append([s * side * m, r * side * m, side, -s * Y, -r * X, m * (X + Y)])
        return np.array(rows, dtype=float)

    def normal_row(self) -> Array:
        """Return the row of the normal force."""
        return np.array([0.0, 0, 0, 0, 0, 1])


def _pyramid(m: float) -> Array:
    """Return the rows of a pyramid about z: f_z >= 0, and |f_x|, |f_y| <= m f_z."""
    return np.array([[0, 0, 1], [1, 0, m], [-1, 0, m], [0, 1, m], [0, -1, m]], dtype=float)


Wanted = tuple[ca.SX, ca.SX]  # J (k x nv) and the acceleration (k x 1) of J a = wanted
# Cosine of half the angle between two directions below which they are opposite, without a unique shortest rotation.
MIN_HALF_ANGLE_COSINE = 1e-6


@dataclass(frozen=True, eq=False, kw_only=True)
class Task:
    """Base class of tasks: ``weight`` (inf: a hard constraint), ``bandwidth`` w (rad/s), ``damping`` ratio d, ``name``.

    Tasks with a lower ``priority`` number have strict precedence; the others use the remaining freedom. The target is
    constant, a function of a symbolic (CasADi) time (s), or None if it is passed to ``WholeBody.solve`` at each call.
    ``goal`` is the name of the field that holds the target, and ``target_shape`` is the shape of the target.
    """

    weight: float = 1.0
    bandwidth: float = 10.0
    damping: float = 1.0
    name: str = ""
    priority: int = 0
    goal: ClassVar[str]
    target_shape: ClassVar[tuple[int, ...]] = (3,)

    def __post_init__(self) -> None:
        where = self.label
        number(self.weight, where, "weight", above=0, finite=False)
        positive(self.bandwidth, where, "bandwidth")
        number(self.damping, where, "damping", least=0)
        whole_number(self.priority, where, "priority", least=0)
        if self.name:
            name_of(self.name, "task")

    @property
    def target(self) -> Law | None:
        """The target: numbers, a function of a symbolic (CasADi) time, or None if it is passed at each call."""
        target: Law | None = getattr(self, self.goal)
        return target

    @property
    def label(self) -> str:
        """The name used in messages and targets."""
        return self.name or getattr(self, "place", "") or type(self).__name__

    @property
    def hard(self) -> bool:
        """Whether the task is a constraint."""
        return self.weight == inf

    def shape(self, robot: Robot) -> tuple[int, ...]:
        """Return the shape of the target."""
        return self.target_shape

    def where(self, robot: Robot) -> str:
        """Return the names of the robot and the task, for messages."""
        return f"{robot.name}: task {self.label!r}"

    def check(self, robot: Robot) -> None:
        """Raise ModelError if the robot has no such frame, or if the target is invalid."""
        if callable(self.target):
            start = self._law(robot)(0).full().reshape(self.shape(robot))
            if np.isfinite(start).all():  # a law may start later; ``solve`` reports times at which it is not finite
                self.checked(robot, start)
        elif self.target is not None:
            self.checked(robot, self.target)

    def checked(self, robot: Robot, target: ArrayLike) -> Array:
        """Return a constant target as an array, after checking its shape and values."""
        result = real_array(target, robot.name, f"target of {self.label!r}")
        if result.shape != self.shape(robot) or not np.isfinite(result).all():
            has_shape = result.shape == self.shape(robot)
            message = "target is not finite" if has_shape else f"target has shape {result.shape}"
            raise ModelError(message, where=self.where(robot), allowed=f"finite numbers {self.shape(robot)}")
        return result

    def _law(self, robot: Robot) -> ca.Function:
        return law_function(self.target, self.shape(robot), self.where(robot))  # type: ignore[arg-type]

    def rates(self, at: Symbols, given: ca.SX | None) -> list[ca.SX]:
        """Return the symbolic target, rate and second rate; rates of a target that is ``given`` per call are zero."""
        if given is not None:
            return [given, ca.SX(*given.shape), ca.SX(*given.shape)]
        return Reference(self._law(at.robot)).rates(at.t, 2)

    def wanted(self, at: Symbols, given: ca.SX | None) -> Wanted:
        """Return J and the desired acceleration."""
        raise NotImplementedError

    def pulled(self, error: ca.SX, rate: ca.SX) -> ca.SX:
        """Return 2 d w rate + w^2 error."""
        return 2 * self.damping * self.bandwidth * rate + self.bandwidth**2 * error


@dataclass(frozen=True, eq=False)
class _FrameTask(Task):
    """A task of a link or frame ``place``."""

    place: str

    def check(self, robot: Robot) -> None:
        robot.place(self.place)
        super().check(robot)


@dataclass(frozen=True, eq=False)
class FramePosition(_FrameTask):
    """A task that moves the origin of a link or frame to ``position`` (3) (m, base axes).

    The target is constant, a function of time, or None (see ``WholeBody.solve``).

    Example:
        >>> FramePosition("hand", [0.4, 0.0, 1.0], weight=10.0).label
        'hand'
    """

    position: Law | None = None
    goal: ClassVar[str] = "position"

    def wanted(self, at: Symbols, given: ca.SX | None) -> Wanted:
        """Return J and the desired acceleration."""
        x, v, a = self.rates(at, given)
        pull = self.pulled(x - at.pose(self.place)[:3, 3], v - at.velocity(self.place)[3:])
        return at.jacobian(self.place)[3:, :], a + pull - at.drift(self.place)[3:]


@dataclass(frozen=True, eq=False)
class FrameOrientation(_FrameTask):
    """A task that rotates a link or frame to ``rotation`` (3 x 3), whose columns are the desired axes in base axes.

    The target is constant, a function of time, or None (see ``WholeBody.solve``). The error is 2 sin(angle / 2) along
    the axis of the remaining rotation.

    Example:
        >>> FrameOrientation("trunk", np.eye(3)).hard
        False
    """

    rotation: Law | None = None
    goal: ClassVar[str] = "rotation"
    target_shape: ClassVar[tuple[int, ...]] = (3, 3)

    def checked(self, robot: Robot, target: ArrayLike) -> Array:
        """Return the rotation; raise ModelError if the target is not a rotation matrix."""
        return frozen_pose(make_pose(super().checked(robot, target)), self.where(robot), "rotation")[:3, :3]

    def wanted(self, at: Symbols, given: ca.SX | None) -> Wanted:
        """Return J and the desired acceleration."""
        turn = _turned(self, at, self.place, self.rates(at, given))
        return at.jacobian(self.place)[:3, :], turn - at.drift(self.place)[:3]


@dataclass(frozen=True, eq=False)
class FramePose(_FrameTask):
    """A task that moves a link or frame to ``pose`` (4 x 4) in base axes.

    The target is constant, a function of time, or None (see ``WholeBody.solve``). ``angular`` is the weight of the
    squared orientation error (rad^2) relative to the squared position error (m^2).

    Example:
        >>> FramePose("hand", weight=np.inf).hard
        True
    """

    pose: Law | None = None
    angular: float = 1.0
    goal: ClassVar[str] = "pose"
    target_shape: ClassVar[tuple[int, ...]] = (4, 4)

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(self.angular, self.label, "angular")

    def checked(self, robot: Robot, target: ArrayLike) -> Array:
        """Return the pose; raise ModelError if the target is not a pose."""
        return frozen_pose(super().checked(robot, target), self.where(robot), "pose")

    def wanted(self, at: Symbols, given: ca.SX | None) -> Wanted:
        """Return J and the desired acceleration."""
        x, v, a = self.rates(at, given)
        turn = _turned(self, at, self.place, [matrix[:3, :3] for matrix in (x, v, a)])
        twist, scale = at.velocity(self.place), ca.SX([self.angular**0.5] * 3 + [1.0] * 3)
        pull = self.pulled(x[:3, 3] - at.pose(self.place)[:3, 3], v[:3, 3] - twist[3:])
        acceleration = ca.vertcat(turn, a[:3, 3] + pull) - at.drift(self.place)
        return ca.diag(scale) @ at.jacobian(self.place), scale * acceleration


@dataclass(frozen=True, eq=False)
class FrameDirection(_FrameTask):
    """A task that points the ``axis`` (3) of a link or frame, in its own axes, along ``direction`` (3) in base axes.

    The rotation about the axis is free. The target is constant, a function of time, or None (see ``WholeBody.solve``).
    If the axis points in the opposite direction, there is no unique shortest rotation, and none is requested. The
    acceleration of the axis n, n x n'' = (1 - n n^T) w' + (w . n) n x w, follows the direction.

    Example:
        >>> FrameDirection("head", [0, 0, 2], [0, 0, 1]).axis.tolist()
        [0.0, 0.0, 1.0]
    """

    axis: ArrayLike
    direction: Law | None = None
    goal: ClassVar[str] = "direction"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "axis", direction(self.axis, self.label, "axis"))

    def checked(self, robot: Robot, target: ArrayLike) -> Array:
        """Return the direction as a unit vector."""
        return direction(super().checked(robot, target), self.where(robot), "direction")

    def wanted(self, at: Symbols, given: ca.SX | None) -> Wanted:
        """Return J and the desired acceleration."""
        w, n = at.velocity(self.place)[:3], at.pose(self.place)[:3, :3] @ ca.SX(ca.DM(np.asarray(self.axis)))
        along = self.rates(at, given)[0]
        along = along / ca.norm_2(along)
        rate = ca.jtimes(along, at.t, ca.SX(1))
        second = ca.jtimes(rate, at.t, ca.SX(1))
        across = ca.SX.eye(3) - n @ n.T
        half = ca.sqrt(ca.fmax((1 + ca.dot(n, along)) / 2, MIN_HALF_ANGLE_COSINE**2))
        pull = self.pulled(cross(n, along) / half, across @ (cross(along, rate) - w))
        drift = across @ at.drift(self.place)[:3] + ca.dot(w, n) * cross(n, w)
        return across @ at.jacobian(self.place)[:3, :], across @ cross(along, second) + pull - drift


@dataclass(frozen=True, eq=False)
class CenterOfMass(Task):
    """A task that moves the centre of mass to ``position`` (3) (m, base axes).

    The target is constant, a function of time, or None (see ``WholeBody.solve``).

    Example:
        >>> CenterOfMass(lambda t: [0.1 * ca.sin(t), 0.0, 0.9], weight=10.0).label
        'CenterOfMass'
    """

    position: Law | None = None
    goal: ClassVar[str] = "position"

    def wanted(self, at: Symbols, given: ca.SX | None) -> Wanted:
        """Return J and the desired acceleration."""
        x, v, a = self.rates(at, given)
        J = at.of("center_of_mass_jacobian")
        drift = at.of("center_of_mass_acceleration", at.v, ca.SX.zeros(at.robot.nv, 1))
        return J, a + self.pulled(x - at.of("center_of_mass"), v - J @ at.v) - drift


@dataclass(frozen=True, eq=False)
class Posture(Task):
    """A task that moves all driven coordinates to the posture ``q`` (nq).

    The target is constant, a function of time, or None (see ``WholeBody.solve``).

    Example:
        >>> Posture(weight=0.01, name="rest").label  # its target is given at each call
        'rest'
    """

    q: Law | None = None
    goal: ClassVar[str] = "q"

    def shape(self, robot: Robot) -> tuple[int, ...]:
        """Return the shape of the target."""
        return (robot.nq,)

    def checked(self, robot: Robot, target: ArrayLike) -> Array:
        """Return the positions; raise ModelError if a quaternion has length 0."""
        result = super().checked(robot, target)
        check_quaternions(robot, result, self.where(robot), "target")
        return result

    def wanted(self, at: Symbols, given: ca.SX | None) -> Wanted:
        """Return J and the desired acceleration of all coordinates; the controller selects the driven ones."""
        error = at.of("difference", self.rates(at, given)[0])
        rate = ca.jtimes(error, at.t, ca.SX(1))  # rate of the target, because q is a separate symbol
        second = ca.jtimes(rate, at.t, ca.SX(1))
        return ca.SX.eye(at.robot.nv), second + self.pulled(error, rate - at.v)


@dataclass(frozen=True, eq=False)
class AngularMomentum(Task):
    """A task that brings the angular momentum about the centre of mass to ``momentum`` (3) (kg m^2/s, base axes).

    The error decays at the rate ``bandwidth`` (1/s); ``damping`` has no effect. The default target is zero.

    Example:
        >>> AngularMomentum(weight=0.1).target
        (0.0, 0.0, 0.0)
    """

    momentum: Law | None = (0.0, 0.0, 0.0)
    goal: ClassVar[str] = "momentum"

    def wanted(self, at: Symbols, given: ca.SX | None) -> Wanted:
        """Return J and ``wanted``: if J a = wanted, the angular momentum has the desired rate."""
        h, rate, _ = self.rates(at, given)
        A = at.of("centroidal_momentum_matrix")[:3, :]
        return A, rate + self.bandwidth * (h - A @ at.v) - at.of("centroidal_momentum_bias", at.v)[:3]


def _turned(task: Task, at: Symbols, place: str, desired: list[ca.SX]) -> ca.SX:
    """Return the angular acceleration (3 x 1) that rotates a frame to ``desired`` (a rotation and its rates)."""
    R, w = at.pose(place)[:3, :3], at.velocity(place)[:3]
    R_d, R_d1, R_d2 = desired
    spin = _axial(R_d1 @ R_d.T)
    rate = _axial(R_d2 @ R_d.T - skew(spin) @ skew(spin))
    return rate + task.pulled(ca.vertcat(*CUTS["weld"][1].chords(R_d @ R.T)), spin - w)


def _axial(S: ca.SX) -> ca.SX:
    """Return the vector of the skew-symmetric part of a matrix."""
    return ca.vertcat(S[2, 1] - S[1, 2], S[0, 2] - S[2, 0], S[1, 0] - S[0, 1]) / 2
