"""The parts of a parallel robot: a leg, and the platform on the joints of its motion."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import frozen_array, frozen_pose, name_of, real_array
from torsor.base.errors import ModelError, describe
from torsor.mechanism import Joint, Link, Loop
from torsor.mechanism.part import Part
from torsor.robot.load import build
from torsor.robot.robot import Robot
from torsor.spatial import make_pose


@dataclass(frozen=True, eq=False)
class Leg(Part):
    """A leg of a parallel robot: an open chain from the base, and the joint that connects its end to the platform.

    The base of ``robot`` is at the pose ``base`` (4 x 4, or the point (3,)) in the parallel robot's base. Its link or
    frame ``tip`` is connected to the pose ``at`` (4 x 4, or the point (3,)) on the platform by a ``kind``: weld,
    revolute, prismatic, cylindrical, universal, spherical, planar, or rod with its ``length``; its axes are the z axes
    of the tip and of ``at`` (see ``Loop``). ``driven`` names the coordinates with a drive. ``home`` (nq,) is the
    initial guess of the leg's positions with the platform at home; by default it is zero.

    Example:
        >>> arm = torsor.library.planar_chain(2).with_frame("tip", "link2", make_pose(p=[1, 0, 0]))
        >>> Leg("left", arm, "tip", at=(0.1, 0, 0), kind="revolute", driven=("joint1",)).driven
        ('joint1',)
    """

    name: str
    robot: Robot
    tip: str
    at: Array = field(default_factory=lambda: np.zeros(3))
    kind: str = "spherical"
    driven: tuple[str, ...] = ()
    base: Array = field(default_factory=lambda: np.zeros(3))
    home: Array | None = None
    length: float = 0.0

    def __post_init__(self) -> None:
        where = f"leg {name_of(self.name, 'leg')!r}"
        if not isinstance(self.robot, Robot):
            raise ModelError(describe(f"robot is of type {type(self.robot).__name__}", where=where, allowed="a Robot"))
        if self.robot.loops:
            fix = "build it as a robot with loops: robot.with_loop(...)"
            raise ModelError(describe("the leg has loops of its own", where=where, allowed="an open chain", fix=fix))
        if not self.robot.nv:
            raise ModelError(describe("the leg does not move", where=where, allowed="one joint or more"))
        if max(at.v.stop for at in self.robot.coordinates) < self.robot.nv:
            found, fix = "the leg has elastic motors, which are not constrained", "build it as a tree with loops"
            raise ModelError(describe(found, where=where, allowed="rigid gears", fix=fix))
        self.robot.place(self.tip)
        for name in ("at", "base"):
            value = real_array(getattr(self, name), where, name)
            pose = make_pose(p=frozen_array(value, (3,), where, name)) if value.shape == (3,) else value
            self._set(**{name: frozen_pose(pose, where, name)})
        driven = (self.driven,) if isinstance(self.driven, str) else self.driven
        if not isinstance(driven, Iterable):
            allowed = "names of its coordinates"
            raise ModelError(describe(f"driven is {self.driven!r}", where=where, allowed=allowed))
        driven = tuple(driven)
        for each in driven:
            if each not in self.robot.coordinate_names or each not in self.robot.position_names:
                both = [name for name in self.robot.coordinate_names if name in self.robot.position_names]
                found = f"driven names {each!r}, which is no coordinate of its own"
                raise ModelError(describe(found, where=where, allowed=", ".join(both)))
        if len(set(driven)) < len(driven):
            raise ModelError(describe(f"driven is {driven}", where=where, allowed="each coordinate once"))
        home = self.robot.neutral() if self.home is None else self.home
        self._set(driven=driven, home=frozen_array(home, (self.robot.nq,), where, "home"))
        # Loop raises an error for an unknown kind.
        self._set(length=Loop(self.name, "a", "b", self.kind, self.length).length)


def carriage(platform: Link | Robot, motion: str, gravity: Array) -> Robot:
    """Return a robot whose last link is the platform, on the joint or joints of its motion."""
    if isinstance(platform, Robot):
        if platform.loops or len(platform.links) == 0:
            raise ModelError(describe("the platform's robot", where=platform.name, allowed="an open chain that moves"))
        last = platform.links[-1].name
        welded = [
            frame.name for frame in platform.frames if frame.link == last and np.abs(frame.pose - np.eye(4)).any()
        ]
        if welded:
            found = f"frames {', '.join(welded)} on the last link {last!r} may be links welded to it: which is meant?"
            fix = "give the platform its own joint, or drop frames: replace(robot, frames=()); legs end at that link"
            raise ModelError(describe(found, where=platform.name, allowed="no frames there", fix=fix))
        return platform.with_gravity(gravity)
    if not isinstance(platform, Link):
        allowed = "a Link, or a Robot whose last link it is"
        raise ModelError(describe(f"platform is of type {type(platform).__name__}", allowed=allowed))
    name = platform.name
    if not isinstance(motion, str) or motion == "fixed":
        raise ModelError(describe(f"motion is {motion!r}", where=name, allowed="a motion"))
    if motion != "translation":
        joints = [Joint(name, motion, "base", name)]
        return build(name, [Link("base"), platform], joints, gravity=gravity)
    carriers = [Link(f"{name}/{axis}") for axis in "xy"]
    names = ["base", *(link.name for link in carriers), name]
    joints = [
        Joint(f"{name}/{axis}", "prismatic", names[k], names[k + 1], axis=np.eye(3)[k]) for k, axis in enumerate("xyz")
    ]
    return build(name, [Link("base"), *carriers, platform], joints, gravity=gravity)


def coordinates_of(T: Array, robot: Robot, motion: str) -> Array:
    """Return the platform's coordinates (..., nq) at poses (..., 4, 4); an impossible pose is an error."""
    R, p = T[..., :3, :3], T[..., :3, 3]
    if motion == "free":
        found = np.concatenate([p, _quaternions(R)], axis=-1)
    elif motion == "translation":
        found = p
    elif motion == "planar":
        found = np.stack([p[..., 0], p[..., 1], np.arctan2(R[..., 1, 0], R[..., 0, 0])], axis=-1)
    else:
        fix = f"give the coordinates {', '.join(robot.position_names)}"
        raise ModelError(describe("poses as matrices", where=robot.name, allowed="free, planar, translation", fix=fix))
    off = float(np.abs(robot.pose(found, robot.links[-1].name) - T).max(initial=0.0))
    if not off <= 1e-6:
        found_text = f"pose differs by {off:.2g} from the possible poses of a {motion} platform"
        raise ModelError(describe(found_text, where=robot.name, allowed="poses that its motion allows"))
    return np.asarray(found)


def _quaternions(R: Array) -> Array:
    """Return unit quaternions (..., 4), (x, y, z, w), of rotations (..., 3, 3)."""
    # The largest of four candidates, each of which is the quaternion times one of its own components (Shepperd).
    xx, yy, zz = (R[..., k, k] for k in range(3))
    s = {(i, j): R[..., i, j] + R[..., j, i] for i, j in ((0, 1), (0, 2), (1, 2))}
    d = [R[..., 2, 1] - R[..., 1, 2], R[..., 0, 2] - R[..., 2, 0], R[..., 1, 0] - R[..., 0, 1]]
    table: list[list[Any]] = [
        [1 + xx - yy - zz, s[0, 1], s[0, 2], d[0]],
        [s[0, 1], 1 - xx + yy - zz, s[1, 2], d[1]],
        [s[0, 2], s[1, 2], 1 - xx - yy + zz, d[2]],
        [*d, 1 + xx + yy + zz],
    ]
    candidates = np.stack([np.stack(row, axis=-1) for row in table], axis=-2)
    best = np.argmax(np.diagonal(candidates, axis1=-2, axis2=-1), axis=-1)
    chosen = np.take_along_axis(candidates, best[..., None, None], axis=-2)[..., 0, :]
    chosen = np.where(chosen[..., 3:] < 0, -chosen, chosen)
    return np.asarray(chosen / np.linalg.norm(chosen, axis=-1, keepdims=True))
