"""Denavit-Hartenberg tables: standard tables, and modified tables with Khalil and Kleinfinger's six parameters.

Closed loops are described as in Khalil 2010, section 2.2: one joint of each loop is cut, and each of its two links gets
a frame there. The row of the cut joint describes the first of these frames, and ``closes`` is the row of the second.
"""

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import NoneType

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import is_whole, number, rows
from torsor.base.errors import ModelError
from torsor.mechanism import Frame, Joint, Link, Loop, Mechanism, Motor, Spring, build
from torsor.mechanism.loops import CUTS
from torsor.spatial import from_rpy, inverse_pose, make_pose

# Khalil's sigma: 0 is a revolute joint, 1 a prismatic joint, 2 a fixed frame.
_SIGMA = {0: "revolute", 1: "prismatic", 2: "fixed"}
# A rod has a length, for which the tables have no column.
_CUT = tuple(kind for kind in CUTS if kind != "rod")
_SETTINGS = ("lower", "upper", "velocity_limit", "effort_limit", "coulomb", "viscous", "rotor_inertia")


@dataclass(frozen=True, kw_only=True)
class _TableLink:
    """The columns of both tables: joint type, link inertia (in the link frame), limits and drives."""

    joint: str | int = "revolute"
    mass: float = 0.0
    com: ArrayLike = (0.0, 0.0, 0.0)
    inertia: ArrayLike = field(default_factory=lambda: np.zeros((3, 3)))
    rotor_inertia: float = 0.0
    coulomb: float = 0.0
    viscous: float = 0.0
    lower: float = -np.inf
    upper: float = np.inf
    velocity_limit: float = np.inf
    effort_limit: float = np.inf
    spring: Spring | None = None
    motor: Motor | None = None
    active: bool = False
    closes: int | None = None
    name: str | None = None


@dataclass(frozen=True)
class DHLink(_TableLink):
    """A row of a standard Denavit-Hartenberg table: T = Rz(theta) Tz(d) Tx(a) Rx(alpha).

    The ``joint``, "revolute" or "prismatic", rotates about, or slides along, the z axis of the previous frame. The link
    frame is at the far end of the link. Lengths are in m, angles in rad. The coordinate is added to theta (revolute) or
    d (prismatic). ``mass`` is in kg, and ``com`` and the 3 x 3 ``inertia`` about it are in the link frame. Limits,
    friction, ``spring`` and ``motor`` are those of a ``Joint``. In a robot with loops, ``active`` joints are driven. By
    default, links and joints are named by row (link1, joint1); a ``name`` gives link "name" and joint "name_joint".

    The last row may be a cut joint. Its frame then coincides with that of row ``closes`` (-1 for the base), as in
    Denavit and Hartenberg's loops, in which the product of all matrices is the identity. Such a row has no inertia and
    no coordinate.

    Example:
        >>> DHLink(a=0.4, mass=0.5, com=(-0.2, 0, 0)).a
        0.4
    """

    theta: float = 0.0
    d: float = 0.0
    a: float = 0.0
    alpha: float = 0.0


@dataclass(frozen=True)
class MDHLink(_TableLink):
    """A row of a modified table: T = Rz(gamma) Tz(b) Rx(alpha) Tx(d) Rz(theta) Tz(r), relative to frame ``parent``.

    ``parent`` is the index of the antecedent, -1 for the base. The joint rotates about, or slides along, the z axis of
    the link frame. ``joint`` is "revolute", "prismatic" or "fixed" (or Khalil's sigma: 0, 1, 2). Lengths are in
    m, angles in rad. The coordinate is added to theta (revolute) or r (prismatic). ``active`` is Khalil's mu: True (or
    1) if the joint is driven in a robot with loops. Other columns are as in ``DHLink``.

    A cut joint (Khalil 2010, section 2.2) has two rows. The first is the joint itself, with frame k on the link before
    the joint. Its ``closes`` is the index of the second, a "fixed" row with frame k + B on the link after the joint.
    The ``joint`` of the first row may be any kind of ``Loop`` except a rod. This row has no inertia and no coordinate.

    Example:
        >>> MDHLink(-1, alpha=1.5, joint="prismatic").parent
        -1
    """

    parent: int
    gamma: float = 0.0
    b: float = 0.0
    alpha: float = 0.0
    d: float = 0.0
    theta: float = 0.0
    r: float = 0.0


def _screw_z(angle: float, advance: float) -> Array:
    return make_pose(from_rpy([0.0, 0.0, angle]), [0.0, 0.0, advance])


def _screw_x(angle: float, advance: float) -> Array:
    return make_pose(from_rpy([angle, 0.0, 0.0]), [advance, 0.0, 0.0])


def _numbers(row: object, kind: type, names: tuple[str, ...], where: str) -> list[float]:
    """Return the geometric parameters of a row. Raise ModelError for angles above one turn, which may be in degrees."""
    if not isinstance(row, kind):
        raise ModelError(f"a {type(row).__name__}", where=where, allowed=f"a torsor.{kind.__name__}")
    numbers = {name: number(getattr(row, name), where, name) for name in names}
    for name in ("theta", "alpha", "gamma"):
        if abs(numbers.get(name, 0.0)) > 2 * np.pi:
            message, fix = f"{name} is {numbers[name]}", "convert degrees with numpy.radians"
            raise ModelError(message, where=where, allowed="radians, at most one turn", fix=fix)
    return list(numbers.values())


def _joint_type(row: _TableLink, where: str, allowed: tuple[str, ...]) -> str:
    result = _SIGMA.get(int(row.joint), "") if is_whole(row.joint) else row.joint
    if not isinstance(result, str) or result not in allowed:
        raise ModelError(argument="joint", value=row.joint, where=where, allowed=", ".join(map(repr, allowed)))
    return result


class _Table:
    """A table that is being read, with the parts of the rows read so far."""

    def __init__(self, name: str, rows: Sequence[_TableLink], strict: bool):
        self.name, self.rows, self.strict = name, rows, strict
        self.links, self.joints = {-1: Link("base")}, list[Joint]()
        self.frames, self.loops, self.active = list[Frame](), list[Loop](), list[str]()

    def where(self, index: int) -> str:
        return f"{self.name}: row {index}"

    def joint_name(self, index: int) -> str:
        name = self.rows[index].name
        return f"joint{index + 1}" if name is None else f"{name}_joint"

    def add(self, index: int, parent: int, kind: str, placement: Array, axis: ArrayLike, point: ArrayLike) -> None:
        """Add the link of a row and its joint."""
        row = self.rows[index]
        name = row.name if isinstance(row.name, str) and row.name else f"link{index + 1}"
        if not isinstance(row.name, (str, NoneType)):
            raise ModelError(f"name is {reprlib.repr(row.name)}", where=self.where(index), allowed="text")
        self.links[index] = Link(name, row.mass, row.com, row.inertia, strict=self.strict)  # type: ignore[arg-type]
        above = self.links[parent].name
        joint = Joint(self.joint_name(index), kind, above, name, placement, np.asarray(axis), np.asarray(point))
        if kind != "fixed":
            joint = replace(joint, **{item: getattr(row, item) for item in (*_SETTINGS, "spring", "motor")})
        self.joints.append(joint)
        if self.is_active(index):
            if kind == "fixed":
                fix = "set active=False, or change the joint type"
                raise ModelError("a fixed joint cannot be active", where=self.where(index), fix=fix)
            self.active.append(joint.name)

    def is_active(self, index: int) -> bool:
        active = self.rows[index].active
        if not np.isscalar(active) or active not in (0, 1):
            allowed = "True or False (Khalil's mu: 1 or 0)"
            raise ModelError(argument="active", value=active, where=self.where(index), allowed=allowed)
        return bool(active)

    def cut(self, index: int, parent: int, before: Array, after: Array) -> None:
        """Add the loop of a cut joint at the pose ``before`` in the parent's frame and ``after`` in row ``closes``."""
        row, where = self.rows[index], self.where(index)
        kind, name = _joint_type(row, where, _CUT), self.joint_name(index)
        plain = type(row)(parent=-1) if isinstance(row, MDHLink) else type(row)()
        for item in ("mass", "com", "inertia", *_SETTINGS, "spring", "motor"):
            if not np.array_equal(getattr(row, item), getattr(plain, item)):
                fix = "cut another joint of the loop, or move this to the rows of the two links that it connects"
                raise ModelError(f"a cut joint cannot have {item}", where=where, allowed="none", fix=fix)
        if self.is_active(index):
            raise ModelError("an active joint cannot be cut", where=where, fix="cut a passive joint of the loop")
        if not is_whole(row.closes) or row.closes not in self.links:
            allowed = f"-1 for the base, or a row without a cut joint: {', '.join(map(str, list(self.links)[1:]))}"
            raise ModelError(argument="closes", value=row.closes, where=where, allowed=allowed)
        a, b = f"{name}/a", f"{name}/b"
        self.frames += [Frame(a, self.links[parent].name, before), Frame(b, self.links[int(row.closes)].name, after)]
        self.loops.append(Loop(name, a, b, kind, source=where))

    def mechanism(self, gravity: ArrayLike, base: str) -> Mechanism:
        check_floats(len(self.joints), base, self.name)
        parts = list(self.links.values()), self.joints, self.frames
        return build(self.name, *parts, gravity, base=base, loops=self.loops, active=self.active)


def check_floats(count: int, base: str, where: str) -> None:
    """Raise ModelError for a floating base without links: the base of a table has no mass."""
    if base == "floating" and not count:
        fix = "for a free body use torsor.build(name, [torsor.Link(...)], [], base='floating')"
        raise ModelError("a floating base without links has no mass", where=where, allowed="links", fix=fix)


def read_dh(
    links: Sequence[DHLink],
    gravity: ArrayLike = (0.0, 0.0, -9.81),
    name: str = "robot",
    strict: bool = True,
    base: str = "fixed",
) -> Mechanism:
    """Return the serial mechanism of a standard Denavit-Hartenberg table. The last row may close a loop."""
    links = rows(links, name, "links", "a list of torsor.DHLink")
    table = _Table(name, links, strict)
    for index, row in enumerate(links):
        where = table.where(index)
        theta, d, a, alpha = _numbers(row, DHLink, ("theta", "d", "a", "alpha"), where)
        if row.closes is not None:
            if index < len(links) - 1:
                fix = "cut the last joint, or close other loops with robot.with_loop"
                raise ModelError("a cut joint is not in the last row", where=where, fix=fix)
            table.cut(index, index - 1, _screw_z(theta, d), inverse_pose(_screw_x(alpha, a)))
            continue
        kind = _joint_type(row, where, ("revolute", "prismatic"))
        placement = _screw_z(theta, d) @ _screw_x(alpha, a)
        # The joint axis is z of the previous frame: in the link frame, rotated by -alpha and at x = -a.
        axis, point = _screw_x(alpha, 0.0)[2, :3], (-a, 0.0, 0.0)
        table.add(index, index - 1, kind, placement, axis, point)
    return table.mechanism(gravity, base)


def read_mdh(
    links: Sequence[MDHLink],
    gravity: ArrayLike = (0.0, 0.0, -9.81),
    name: str = "robot",
    strict: bool = True,
    base: str = "fixed",
) -> Mechanism:
    """Return the mechanism of a modified Denavit-Hartenberg table with Khalil and Kleinfinger's six parameters."""
    links = rows(links, name, "links", "a list of torsor.MDHLink")
    table, cuts = _Table(name, links, strict), list[tuple[int, int, Array]]()
    for index, row in enumerate(links):
        where = table.where(index)
        gamma, b, alpha, d, theta, r = _numbers(row, MDHLink, ("gamma", "b", "alpha", "d", "theta", "r"), where)
        if not is_whole(row.parent) or row.parent not in table.links:
            fix = "number the links so that each comes after its antecedent, which must not be a cut joint"
            raise ModelError(argument="parent", value=row.parent, where=where, allowed=f"-1 to {index - 1}", fix=fix)
        placement = _screw_z(gamma, b) @ _screw_x(alpha, d) @ _screw_z(theta, r)
        if row.closes is not None:
            cuts.append((index, int(row.parent), placement))
            continue
        kind = _joint_type(row, where, ("revolute", "prismatic", "fixed"))
        table.add(index, int(row.parent), kind, placement, (0.0, 0.0, 1.0), (0.0, 0.0, 0.0))
    for index, parent, placement in cuts:  # at the end, because ``closes`` may be a later row
        table.cut(index, parent, placement, np.eye(4))
    return table.mechanism(gravity, base)
