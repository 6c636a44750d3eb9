"""Denavit-Hartenberg tables: standard ones, and modified ones with Khalil and Kleinfinger's six parameters."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.errors import ModelError, describe
from torsor.robot import Joint, Link, Mechanism, assemble
from torsor.robot.values import frozen_array
from torsor.spatial import from_rpy, make_pose

__all__ = ["DHLink", "MDHLink", "read_dh", "read_mdh"]

Array = NDArray[np.float64]

# Khalil's sigma: 0 turns, 1 slides, 2 is a frame that does not move.
_SIGMA = {0: "revolute", 1: "prismatic", 2: "fixed"}


@dataclass(frozen=True, kw_only=True)
class _TableLink:
    """What the rows of both tables have: the joint's kind and the link's inertia, in the link's own frame."""

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
    name: str | None = None


@dataclass(frozen=True)
class DHLink(_TableLink):
    """A row of a standard Denavit-Hartenberg table: T = Rz(theta) Tz(d) Tx(a) Rx(alpha).

    The joint turns about, or slides along, the z axis of the frame before; the link's own frame is at its far end.
    Lengths in m, angles in rad; the coordinate adds to theta (revolute) or d (prismatic). ``com`` and the 3 x 3
    ``inertia`` about it are in the link's frame.

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
    """A row of a modified table: T = Rz(gamma) Tz(b) Rx(alpha) Tx(d) Rz(theta) Tz(r), seen from frame ``parent``.

    ``parent`` is the index of the antecedent, -1 for the base. The joint turns about, or slides along, the z axis of
    the link's own frame; ``joint`` is "revolute", "prismatic" or "fixed" (Khalil's sigma 0, 1, 2 are taken too).
    Lengths in m, angles in rad; the coordinate adds to theta (revolute) or r (prismatic).

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
    """Return the geometric parameters of a row, or raise an error that says which of them is no number."""
    if not isinstance(row, kind):
        found = f"a {type(row).__name__}"
        raise ModelError(describe(found, where=where, allowed=f"a torsor.{kind.__name__}"))
    numbers = {name: float(frozen_array(getattr(row, name), (), where, name)) for name in names}
    for name in ("theta", "alpha", "gamma"):
        if abs(numbers.get(name, 0.0)) > 2 * np.pi:
            fix = "convert degrees with numpy.radians"
            found = f"{name} is {numbers[name]}"
            raise ModelError(describe(found, where=where, allowed="radians, at most a turn", fix=fix))
    return list(numbers.values())


def _joint_type(row: _TableLink, where: str, allowed: tuple[str, ...]) -> str:
    found = _SIGMA.get(int(row.joint), "") if isinstance(row.joint, (int, np.integer)) else row.joint
    if found not in allowed:
        raise ModelError(describe(f"joint type {row.joint!r}", where=where, allowed=", ".join(allowed)))
    return found


def _parts(
    row: _TableLink,
    index: int,
    parent: str,
    kind: str,
    placement: Array,
    axis: ArrayLike,
    point: ArrayLike,
    strict: bool,
) -> tuple[Link, Joint]:
    """Return the link of a row and the joint that moves it."""
    number = index + 1
    name = row.name or f"link{number}"
    link = Link(name, row.mass, row.com, row.inertia, strict=strict)  # type: ignore[arg-type]  # converted there
    joint = Joint(
        f"joint{number}" if row.name is None else f"{row.name}_joint",
        kind,
        parent,
        name,
        placement,
        np.asarray(axis),
        np.asarray(point),
    )
    if kind == "fixed":
        return link, joint
    settings = ("lower", "upper", "velocity_limit", "effort_limit", "coulomb", "viscous", "rotor_inertia")
    return link, replace(joint, **{setting: getattr(row, setting) for setting in settings})


def read_dh(
    links: Sequence[DHLink], gravity: ArrayLike = (0.0, 0.0, -9.81), name: str = "robot", strict: bool = True
) -> Mechanism:
    """Return the serial mechanism of a standard Denavit-Hartenberg table."""
    made, joints = [Link("base")], []
    for index, row in enumerate(links):
        where = f"{name}: row {index}"
        theta, d, a, alpha = _numbers(row, DHLink, ("theta", "d", "a", "alpha"), where)
        kind = _joint_type(row, where, ("revolute", "prismatic"))
        placement = _screw_z(theta, d) @ _screw_x(alpha, a)
        # Seen from the link's frame, the axis is the z of the frame before: turned back by alpha, a behind.
        axis, point = _screw_x(alpha, 0.0)[2, :3], (-a, 0.0, 0.0)
        link, joint = _parts(row, index, made[-1].name, kind, placement, axis, point, strict)
        made.append(link)
        joints.append(joint)
    return assemble(name, made, joints, gravity=gravity)


def read_mdh(
    links: Sequence[MDHLink], gravity: ArrayLike = (0.0, 0.0, -9.81), name: str = "robot", strict: bool = True
) -> Mechanism:
    """Return the tree mechanism of a modified Denavit-Hartenberg table with Khalil and Kleinfinger's six parameters."""
    made, joints = [Link("base")], []
    for index, row in enumerate(links):
        where = f"{name}: row {index}"
        gamma, b, alpha, d, theta, r = _numbers(row, MDHLink, ("gamma", "b", "alpha", "d", "theta", "r"), where)
        kind = _joint_type(row, where, ("revolute", "prismatic", "fixed"))
        if not isinstance(row.parent, (int, np.integer)) or not -1 <= row.parent < index:
            fix = "number the links so that each comes after its antecedent"
            raise ModelError(describe(f"parent is {row.parent!r}", where=where, allowed=f"-1 to {index - 1}", fix=fix))
        placement = _screw_z(gamma, b) @ _screw_x(alpha, d) @ _screw_z(theta, r)
        parent = made[row.parent + 1].name
        link, joint = _parts(row, index, parent, kind, placement, (0.0, 0.0, 1.0), (0.0, 0.0, 0.0), strict)
        made.append(link)
        joints.append(joint)
    return assemble(name, made, joints, gravity=gravity)
