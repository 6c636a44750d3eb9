"""The parts of a mechanism: links, joints, frames, shapes and visuals, which are frozen and have read-only arrays.

Each part validates its numbers on creation, so existing parts are valid.
"""

import math
import sys
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import IDENTITY, Array
from torsor.base.checks import (
    MAX_NUMBER,
    direction,
    flag,
    frozen_array,
    frozen_pose,
    instance_of,
    name_of,
    number,
    one_of,
    real_array,
    whole_number,
)
from torsor.base.errors import ModelError
from torsor.base.faults import refuse_or_warn
from torsor.mechanism.drives import Motor, Spring, checked_friction
from torsor.mechanism.flexible import Flexible
from torsor.mechanism.joints import KINDS, JointKind
from torsor.mechanism.part import Part
from torsor.spatial import axis_frame, is_physical, make_pose

# Number of values in the size of each shape.
SHAPE_SIZES = {"sphere": 1, "capsule": 2, "cylinder": 2, "box": 3, "ellipsoid": 3, "plane": 0, "mesh": 3}
SHAPE_SIZES |= {"height field": 2}
MAX_HEIGHTS = 1 << 24  # of a height field: float32 represents all whole numbers up to this one
ORIGIN = frozen_array(np.zeros(3), (3,), "", "")  # read-only array shared by most joints
SHAPE_KINDS = tuple(SHAPE_SIZES)
ALL_BITS = 2**31 - 1  # all bits of contype and conaffinity, which are signed 32-bit masks
FRICTION = 0.8  # friction coefficient of shapes from files that do not state it


@dataclass(frozen=True, eq=False)
class Shape(Part):
    """A collision shape of a link, in link axes: its kind, ``size`` (m) and ``pose`` (4 x 4).

    | shape | size |
    |---|---|
    | "sphere" | radius |
    | "capsule", about its z axis | radius, length between the centres of its ends |
    | "cylinder", about its z axis | radius, length |
    | "box" | three edges |
    | "ellipsoid" | three semi-axes |
    | "plane" (the half-space below z = 0) | none |
    | "mesh" | scale factors of the mesh; the shape is its convex hull |
    | "height field" | two edges, along x and y, around the origin |

    ``heights`` (rows, columns) (m) are those of a height field along z, as in ``torsor.simulation.height_field``.
    ``mesh`` is the file name as written in the description, ``path`` the path where that file was found. ``folders``
    are the folders from which meshes may be loaded; None (for shapes that are not from a file) allows all folders.

    ``link`` is the name of the link in the description if that link is welded to another and became a frame. Two shapes
    are checked for collision if the ``contype`` of one and the ``conaffinity`` of the other share a set bit. The
    coefficient of their Coulomb friction is the ``friction`` of the shape with the higher ``priority``, or the larger
    one if the priorities are equal. Both rules are those of MuJoCo.

    Example:
        >>> Shape("capsule", (0.04, 0.5)).size
        (0.04, 0.5)
        >>> Shape("sphere", (0.0,), name="tip")
        Traceback (most recent call last):
        torsor.ModelError: shape 'tip': size of a sphere is (0.0,); allowed: a positive radius
    """

    shape: str
    size: tuple[float, ...] = ()
    pose: Array = field(default_factory=lambda: IDENTITY)
    name: str = ""
    mesh: str | None = None
    path: str | None = None
    link: str = ""
    contype: int = 1
    conaffinity: int = 1
    friction: float = FRICTION
    priority: int = 0
    heights: Array | None = None
    folders: tuple[str, ...] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        where = f"shape {self.name!r}" if self.name else "shape"
        one_of(self.shape, SHAPE_KINDS, where, "shape")
        for key in ("name", "link"):
            instance_of(getattr(self, key), str, where, key, allowed="text")
        size = _size(self.size, SHAPE_SIZES[self.shape], where, f"size of a {self.shape}", MAX_NUMBER)
        self._set(size=size, pose=frozen_pose(self.pose, where, "pose", most=MAX_NUMBER))
        if self.shape == "height field":
            self._set(heights=checked_heights(self.heights, where))
        elif self.heights is not None:
            raise ModelError(f"a {self.shape} has `heights`", where=where, allowed="a height field", fix="omit them")
        for key in ("contype", "conaffinity", "priority"):
            whole_number(getattr(self, key), where, key, least=-ALL_BITS - 1, most=ALL_BITS)
        self._set(friction=number(self.friction, where, "friction", least=0.0, most=MAX_NUMBER))
        wrong = _wrong_size(self.shape, self.size)
        if wrong:
            raise ModelError(f"of a {self.shape} is {self.size}", argument="size", where=where, allowed=wrong)

    def may_touch(self, other: "Shape") -> bool:
        """Return whether the masks of two shapes allow contact.

        Example:
            >>> Shape("sphere", (0.1,), contype=2).may_touch(Shape("plane", conaffinity=4))
            True
        """
        return bool(self.contype & other.conaffinity or other.contype & self.conaffinity)

    def friction_with(self, other: "Shape") -> float:
        """Return the coefficient of friction between two shapes.

        Example:
            >>> Shape("sphere", (0.1,), friction=0.5, priority=1).friction_with(Shape("plane", friction=1.0))
            0.5
        """
        return max((self.priority, self.friction), (other.priority, other.friction))[1]


def checked_heights(value: ArrayLike | None, where: str) -> Array:
    """Return the heights (m) of a height field (rows, columns), read-only."""
    array = real_array(() if value is None else value, where, "heights")
    if array.ndim != 2 or min(array.shape) < 2 or array.size > MAX_HEIGHTS:
        allowed = f"(rows, columns), at least 2 of each, at most {MAX_HEIGHTS:,} heights"
        raise ModelError(f"has shape {array.shape}", argument="heights", where=where, allowed=allowed)
    return frozen_array(array, array.shape, where, "heights", most=MAX_NUMBER)


def _size(value: ArrayLike, count: int, where: str, what: str, most: float) -> tuple[float, ...]:
    """Return ``count`` numbers as floats; raise ModelError if one is larger than ``most``."""
    if isinstance(value, tuple) and list(map(type, value)) == [float] * count and all(0 <= x <= most for x in value):
        return value  # the form that readers pass
    return tuple(frozen_array(value, (count,), where, what, most=most).tolist())


def _wrong_size(shape: str, size: tuple[float, ...]) -> str:
    """Return text for the allowed sizes of a shape if ``size`` is not allowed, otherwise an empty string."""
    if shape == "mesh":
        return "" if all(size) else "a scale without 0; negative numbers mirror the mesh"
    if shape == "capsule":
        return "" if size[0] > 0 and size[1] >= 0 else "a positive radius and a length of 0 or more"
    if all(item > 0 for item in size):
        return ""
    words = {"sphere": "a positive radius", "cylinder": "a positive radius and length", "box": "three positive edges"}
    words["height field"] = "two positive edges"
    return words.get(shape, "three positive semi-axes")


Solid = tuple[float, Array, Array]


def symmetric(numbers: ArrayLike) -> Array:
    """Return the symmetric matrix (3 x 3) with the components xx, yy, zz, xy, xz, yz."""
    return np.asarray(numbers, dtype=float)[[[0, 3, 4], [3, 1, 5], [4, 5, 2]]]


def primitive_solid(kind: str, size: Array) -> Solid:
    """Return volume, centre and inertia about the centre of a primitive ``Shape`` of unit density, in its axes."""
    if kind == "box":
        volume, squares = float(np.prod(size)), size**2 / 12
    elif kind in ("sphere", "ellipsoid"):
        axes = np.broadcast_to(size, 3)
        volume, squares = 4 / 3 * np.pi * float(np.prod(axes)), axes**2 / 5
    else:
        r, length = size
        rod, ball = np.pi * r**2 * length, 4 / 3 * np.pi * r**3 * (kind == "capsule")
        volume = rod + ball
        # Second moment of the end hemispheres about the middle; their centroids are 3/8 r beyond the ends.
        ends = ball * (r**2 / 5 + length**2 / 4 + 3 / 8 * r * length)
        across = (rod * r**2 / 4 + ball * r**2 / 5) / volume
        squares = np.array([across, across, (rod * length**2 / 12 + ends) / volume])
    return volume, np.zeros(3), volume * np.diag(squares.sum() - squares)


def tetrahedra_solid(corners: Array, volumes: Array) -> Solid:
    """Return volume, centre and inertia about the centre of unit-density tetrahedra that share the origin.

    ``corners`` (n, 3, 3) are the faces opposite the origin, and ``volumes`` (n,) are the volumes of the tetrahedra. If
    the volumes have the sign of det(corners), the tetrahedra over a closed surface form the enclosed solid for any
    origin.
    """
    volume, sums = float(volumes.sum()), corners.sum(axis=1)
    center = (volumes[:, None] * sums).sum(axis=0) / (4 * volume)
    second = np.einsum("f,fki,fkj->ij", volumes, corners, corners) + np.einsum("f,fi,fj->ij", volumes, sums, sums)
    second = second / 20 - volume * np.outer(center, center)
    return volume, center, np.trace(second) * np.eye(3) - second


# Number of values in the size of each shape.
VISUAL_SIZES = {"box": 3, "cylinder": 2, "capsule": 2, "sphere": 1, "ellipsoid": 3, "mesh": 3}
VISUAL_KINDS = tuple(VISUAL_SIZES)
MOMENT_NOISE = 1e-12  # principal moments below this fraction of the largest are shown as zero in messages


@dataclass(frozen=True, eq=False)
class Visual(Part):
    """A shape for viewing: box (sizes), cylinder, capsule (radius, length), sphere, ellipsoid (radii), mesh (scale).

    ``size`` is in m. ``pose`` (4 x 4) is in link axes. ``color`` is red, green, blue and optionally opacity, 0 to 1.
    ``mesh`` is the file name as written in the description, ``path`` the path where that file was found. ``folders``
    are the folders from which meshes may be loaded; None (for shapes that are not from a file) allows all folders.

    Example:
        >>> Visual("cylinder", (0.04, 0.5)).size
        (0.04, 0.5)
    """

    shape: str
    size: tuple[float, ...]
    pose: Array = field(default_factory=lambda: IDENTITY)
    color: tuple[float, ...] | None = None
    mesh: str | None = None
    path: str | None = None
    name: str = ""
    folders: tuple[str, ...] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        where = f"visual {self.name!r}"
        one_of(self.shape, VISUAL_KINDS, where, "shape")
        size = _size(self.size, VISUAL_SIZES[self.shape], where, f"size of a {self.shape}", sys.float_info.max)
        self._set(size=size, pose=frozen_pose(self.pose, where, "pose", most=MAX_NUMBER))
        wrong = _wrong_size(self.shape, self.size)
        if wrong:
            raise ModelError(f"of a {self.shape} is {self.size}", argument="size", where=where, allowed=wrong)
        if self.color is not None:
            _size(self.color, 4 if np.size(self.color) == 4 else 3, where, "color", sys.float_info.max)


@dataclass(frozen=True, eq=False)
class Link(Part):
    """A rigid body: mass (kg), centre of mass ``com`` (m) and 3 x 3 ``inertia`` about it (kg m^2), in link axes.

    ``strict=False`` accepts a physically impossible inertia (``defect`` explains why it is impossible). Published files
    contain such inertias, and their dynamics are still well defined. ``visuals`` are drawn, and ``shapes`` collide.

    Example:
        >>> Link("arm", mass=1.0, com=(0, 0, 0.5), inertia=np.diag([0.1, 0.1, 0.01])).mass
        1.0
    """

    name: str
    mass: float = 0.0
    com: Array = field(default_factory=lambda: ORIGIN)
    inertia: Array = field(default_factory=lambda: np.zeros((3, 3)))
    visuals: tuple[Visual, ...] = ()
    strict: bool = field(default=True, compare=False, repr=False)
    source: str = field(default="", compare=False, repr=False)
    shapes: tuple[Shape, ...] = ()

    def __post_init__(self) -> None:
        name_of(self.name, "link", self.source)
        where = self.where
        mass = number(self.mass, where, "mass", least=0, most=MAX_NUMBER)
        com = frozen_array(self.com, (3,), where, "centre of mass", most=MAX_NUMBER)
        inertia = frozen_array(self.inertia, (3, 3), where, "inertia", most=MAX_NUMBER)
        (_, xy, xz), (yx, _, yz), (zx, zy, _) = inertia.tolist()
        if (xy, xz, yz) != (yx, zx, zy) and not np.allclose(
            inertia, inertia.T, rtol=1e-9, atol=1e-12 * np.abs(inertia).max()
        ):
            raise ModelError("is not symmetric", argument="inertia", value=inertia, where=where)
        shapes = tuple(instance_of(shape, Shape, where, "one of its shapes") for shape in self.shapes)
        self._set(mass=mass, com=com, inertia=inertia, visuals=tuple(self.visuals), shapes=shapes)
        if flag(self.strict, where, "strict") and self.defect:
            refuse_or_warn(self.defect, strict=True)
            self._set(strict=False)  # so that this fault is reported once when all faults of a file are collected

    @property
    def where(self) -> str:
        """File and name of the link, for messages."""
        return f"{self.source}: link {self.name!r}" if self.source else f"link {self.name!r}"

    @property
    def defect(self) -> ModelError | None:
        """Error that explains why no rigid body can have this inertia, or None if the inertia is physical."""
        positive, triangle = is_physical(self.inertia)
        if positive and triangle:
            return None
        moments = np.linalg.eigvalsh(self.inertia)
        moments[np.abs(moments) < MOMENT_NOISE * np.abs(moments).max()] = 0.0
        rounded = [float(f"{moment:.6g}") for moment in moments]
        return ModelError(
            f"no body has the principal moments of inertia {rounded} kg m^2",
            where=self.where,
            allowed="moments of 0 or more, none larger than the sum of the other two",
            fix="check signs, units and the reference point of the inertia, which is the centre of mass",
        )

    @property
    def body(self) -> tuple[float, Array, Array]:
        """(mass, centre of mass, inertia about it): the arguments of functions in ``spatial``."""
        return self.mass, self.com, self.inertia


def link_of(
    name: str, body: Solid, visuals: tuple[Visual, ...], shapes: tuple[Shape, ...], strict: bool, source: str
) -> Link:
    """Return a link from a file; unless ``strict`` is True, warn if the inertia is physically impossible."""
    link = Link(name, *body, visuals, strict, source, shapes)
    if link.defect and not strict:
        refuse_or_warn(link.defect, strict=False)
    return link


_JOINT_TYPES = (*KINDS, "flexible")
# Fields of a joint with one number per velocity, all of which are 0 or more.
PER_VELOCITY = ("velocity_limit", "effort_limit", "coulomb", "viscous", "rotor_inertia", "kp", "kd")


@lru_cache(maxsize=256)  # most values are 0 or infinity, the defaults of the seven fields of a joint
def _filled(value: float, count: int) -> Array:
    """Return a read-only array (count,) filled with one number."""
    array = np.full(count, value + 0.0)  # -0.0 becomes 0.0
    array.setflags(write=False)
    return array


@dataclass(frozen=True, eq=False)
class Joint(Part):
    """A joint between the link ``parent`` and the link ``child`` that it moves.

    ``placement`` (4 x 4) is the pose of the child's frame in the parent's frame with the joint at zero. The joint axis
    passes through ``point`` (m) along ``axis``, both in the child's axes.

    | type | motion |
    |---|---|
    | revolute, continuous | rotation about the axis |
    | prismatic | translation along the axis |
    | helical | both, advancing by ``pitch`` (m/rad) |
    | planar | translation normal to the axis (along columns 1 and 2 of ``axis_frame(axis)``), rotation about it |
    | spherical | rotation about ``point`` |
    | free | any; axis and point are not used, and the coordinates are the pose of the child's frame |
    | fixed | none; ``build`` merges the child into its parent |
    | flexible | a link that bends: ``flexible`` defines how the child moves with its coordinates |

    The position of a joint is ratio * q + offset, where q is its own coordinate. If ``coordinate`` names another joint,
    the joint follows that joint, and q is the coordinate of the leader. Several flexible joints may share one
    ``coordinate``, for example the end of a beam and the rotation of its tip, or the sections of a rod.

    The limits ``lower`` and ``upper`` (rad or m) have one number per position. The following fields have one number per
    velocity: ``velocity_limit`` (rad/s or m/s), ``effort_limit`` (N m or N), the friction ``coulomb`` (N m or N) and
    ``viscous`` (N m s/rad or N s/m), the ``rotor_inertia`` (kg m^2 or kg, reflected to the joint), and the gains ``kp``
    (N m/rad or N/m) and ``kd`` (N m s/rad or N s/m) of ``control.drives``. A single number is used for all. If
    ``smooth`` (rad/s or m/s) is not 0, tanh(v / smooth) replaces sign(v) in Coulomb friction. A joint with one degree
    of freedom may have a ``spring``, a ``motor`` and a ``friction_model``. The latter is text that defines additional
    friction (N m or N) as a function of the velocity v, such as "0.4 * sign(v) * exp(-(v / 0.1)**2)".

    Example:
        >>> Joint("elbow", "revolute", "upper", "lower", make_pose(p=[0, 0, 0.4]), axis=(0, 1, 0)).nv
        1
    """

    name: str
    type: str
    parent: str
    child: str
    placement: Array = field(default_factory=lambda: IDENTITY)
    axis: Array = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    point: Array = field(default_factory=lambda: ORIGIN)
    pitch: float = 0.0
    coordinate: str = ""
    ratio: float = 1.0
    offset: float = 0.0
    lower: ArrayLike = -np.inf
    upper: ArrayLike = np.inf
    velocity_limit: ArrayLike = np.inf
    effort_limit: ArrayLike = np.inf
    coulomb: ArrayLike = 0.0
    viscous: ArrayLike = 0.0
    smooth: float = 0.0
    friction_model: str = ""
    rotor_inertia: ArrayLike = 0.0
    kp: ArrayLike = 0.0
    kd: ArrayLike = 0.0
    spring: Spring | None = None
    motor: Motor | None = None
    flexible: Flexible | None = None
    source: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        name_of(self.name, "joint", self.source)
        where = f"{self.source}: joint {self.name!r}" if self.source else f"joint {self.name!r}"
        one_of(self.type, _JOINT_TYPES, where, "joint type")
        self._check_flexible(where)
        self._set(
            placement=frozen_pose(self.placement, where, "placement", most=MAX_NUMBER),
            axis=direction(self.axis, where, "axis"),
            point=ORIGIN if self.point is ORIGIN else frozen_array(self.point, (3,), where, "point", most=MAX_NUMBER),
            coordinate=self.coordinate or self.name,
        )
        least = {"pitch": -MAX_NUMBER, "ratio": -MAX_NUMBER, "offset": -MAX_NUMBER, "smooth": 0.0}
        self._set(**{key: number(getattr(self, key), where, key, least=least[key], most=MAX_NUMBER) for key in least})
        nq, nv = self.nq, self.nv
        if self.follows and nv != 1 and self.flexible is None:
            result = f"a {self.type} joint cannot follow {self.coordinate!r}"
            raise ModelError(result, value=self.coordinate, where=where, allowed="1-dof joints")
        if (self.ratio, self.offset) != (1.0, 0.0) and not nq == nv == 1:
            result = f"{self.offset} and ratio {self.ratio} are given for a {self.type} joint"
            allowed = "offset 0 and ratio 1; only joints with one degree of freedom have others"
            raise ModelError(result, argument="offset", where=where, allowed=allowed)
        if abs(self.ratio) < 1 / MAX_NUMBER and not self.is_fixed:
            allowed, fix = f"other numbers, from {1 / MAX_NUMBER:g} in size", "make it a fixed joint"
            raise ModelError(argument="ratio", value=self.ratio, where=where, allowed=allowed, fix=fix)
        lower, upper = self._expand("lower", nq, where), self._expand("upper", nq, where)
        self._set(lower=lower, upper=upper)
        if any(low > high for low, high in zip(lower.tolist(), upper.tolist(), strict=True)):
            raise ModelError(f"limit {lower} is above the upper limit {upper}", argument="lower", where=where)
        for name in PER_VELOCITY:
            values = self._expand(name, nv, where)
            if any(value < 0 for value in values.tolist()):
                raise ModelError(argument=name, value=values, where=where, allowed="0 or more")
            self._set(**{name: values})
        self._set(friction_model=checked_friction(self.friction_model, where))
        if self.friction_model and not self.nq == self.nv == 1:
            message = f"a {self.type} joint cannot have a friction_model"
            raise ModelError(message, where=where, allowed="1-dof joints", fix="use coulomb and viscous")
        for name, part in (("spring", Spring), ("motor", Motor)):
            result = getattr(self, name)
            if result is not None and not isinstance(result, part):
                raise ModelError(argument=name, value=result, where=where, allowed=f"a {part.__name__} or None")
            if result is not None and not nq == nv == 1:
                raise ModelError(f"a {self.type} joint cannot have a {name}", where=where, allowed="1-dof joints")
        if self.is_elastic and self.follows:
            result = f"a joint that follows {self.coordinate!r} cannot have a motor behind a spring"
            allowed = "a rigid motor, because a spring acts between a motor and its own coordinate"
            fix = f"omit its stiffness, put it on {self.coordinate!r}, or couple two joints: robot.with_coupling"
            raise ModelError(result, value=self.coordinate, where=where, allowed=allowed, fix=fix)

    def _check_flexible(self, where: str) -> None:
        if (self.type == "flexible") != isinstance(self.flexible, Flexible):
            message = f"a {self.type} joint has flexible = {self.flexible!r}"
            allowed = "modes on a flexible joint, None on all others"
            fix = "use torsor.mechanism.flexible_links.with_beam"
            raise ModelError(message, value=self.flexible, where=where, allowed=allowed, fix=fix)
        if self.flexible is not None and (self.spring, self.motor, self.ratio, self.offset) != (None, None, 1.0, 0.0):
            message = "a flexible joint cannot have a spring, motor, ratio or offset"
            raise ModelError(message, where=where, fix="give stiffness and damping with its modes")

    def _expand(self, name: str, count: int, where: str) -> Array:
        """Return ``count`` numbers from a single number or one per entry; only limits may be infinite."""
        value, infinite = getattr(self, name), name in ("lower", "upper", "velocity_limit", "effort_limit")
        bound = math.inf if infinite else MAX_NUMBER
        if type(value) is float and -bound <= value <= bound:
            return _filled(value, count)
        if np.isscalar(value) or (isinstance(value, np.ndarray) and value.ndim == 0):
            value = np.full(count, frozen_array(value, (), where, name, finite=not infinite, most=MAX_NUMBER))
        return frozen_array(value, (count,), where, name, finite=not infinite, most=MAX_NUMBER)

    @property
    def kind(self) -> JointKind:
        """Kinematics of the joint type."""
        return KINDS[self.type] if self.flexible is None else self.flexible.kind

    @property
    def nq(self) -> int:
        """Number of positions."""
        return self.kind.nq

    @property
    def nv(self) -> int:
        """Number of velocities."""
        return self.kind.nv

    @property
    def is_fixed(self) -> bool:
        """Whether the joint does not move."""
        return self.type == "fixed"

    @property
    def is_elastic(self) -> bool:
        """Whether a spring connects the joint to its motor, which then has its own coordinate."""
        return self.motor is not None and self.motor.is_elastic

    @property
    def follows(self) -> bool:
        """Whether the joint moves with the coordinate of another joint."""
        return self.coordinate != self.name

    @cached_property
    def frame(self) -> Array:
        """Pose (4 x 4) of the joint frame, whose z axis is the joint axis, in the child's frame."""
        R = None if self.type in ("free", "spherical") else axis_frame(self.axis)
        T = make_pose(R, None if self.type == "free" else self.point)
        T.setflags(write=False)
        return T

    @property
    def position_names(self) -> tuple[str, ...]:
        """Names of the positions, in the order of q."""
        suffixes = {4: ("qx", "qy", "qz", "qw"), 7: ("x", "y", "z", "qx", "qy", "qz", "qw")}
        plain = self.kind.velocity_names
        return tuple(self._name(suffix) for suffix in (plain if self.nq == self.nv else suffixes[self.nq]))

    @property
    def velocity_names(self) -> tuple[str, ...]:
        """Names of the velocities, in the order of v."""
        return tuple(self._name(suffix) for suffix in self.kind.velocity_names)

    def _name(self, suffix: str) -> str:
        return f"{self.name}/{suffix}" if suffix else self.name


@dataclass(frozen=True, eq=False)
class Frame(Part):
    """A named frame: its ``pose`` (4 x 4) in the axes of a link.

    ``joint`` is the name of the fixed joint that the frame replaces, if any.

    Example:
        >>> Frame("tool", "hand", make_pose(p=[0, 0, 0.1])).link
        'hand'
    """

    name: str
    link: str
    pose: Array = field(default_factory=lambda: IDENTITY)
    joint: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        name_of(self.name, "frame")
        self._set(pose=frozen_pose(self.pose, f"frame {self.name!r}", "pose", most=MAX_NUMBER))
