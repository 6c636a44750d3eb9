"""The mechanism: a base, moving links and the joints that move them, frames, gravity. Frozen."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.errors import ModelError, describe
from torsor.mechanism.loops import Closure, Coupling
from torsor.mechanism.parts import Frame, Joint, Link
from torsor.mechanism.values import Part, checked_name, frozen_array

__all__ = ["Coordinate", "Mechanism", "Place"]

Array = NDArray[np.float64]


_HERE = frozen_array(np.eye(4), (4, 4), "", "identity")


class Place(NamedTuple):
    """Where something is fixed: index of the link (-1 for the base) and pose in that link's axes."""

    link: int
    pose: Array


class Coordinate(NamedTuple):
    """Where a joint's positions and velocities lie in q and v."""

    q: slice
    v: slice


@dataclass(frozen=True, eq=False, repr=False)
class Mechanism(Part):
    """A tree of links: ``joints[i]`` moves ``links[i]``, and parents come before children.

    Made by the readers of ``formats`` and by ``assemble``, which merge fixed joints and sort; this class only checks
    that it was given such a tree. ``gravity`` is the acceleration (m/s^2) in the axes of the base. ``loops`` close what
    the tree leaves open, and ``active`` names the coordinates that are driven while they are closed.
    """

    name: str
    base: Link
    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    frames: tuple[Frame, ...] = ()
    gravity: Array = field(default_factory=lambda: np.array([0.0, 0.0, -9.81]))
    loops: tuple[Closure, ...] = ()
    active: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        checked_name(self.name, "robot")
        self._set(
            links=tuple(self.links),
            joints=tuple(self.joints),
            frames=tuple(self.frames),
            loops=tuple(sorted(self.loops, key=lambda loop: isinstance(loop, Coupling))),  # cut joints first
            active=tuple(self.active),
            gravity=frozen_array(self.gravity, (3,), self.name, "gravity"),
        )
        self._check_names()
        seen = {self.base.name}
        if len(self.links) != len(self.joints):
            raise ModelError(f"{self.name}: {len(self.links)} moving links need as many joints, not {len(self.joints)}")
        for link, joint in zip(self.links, self.joints, strict=True):
            if joint.child != link.name or joint.parent not in seen or joint.is_fixed:
                raise ModelError(f"{self.name}: joint {joint.name!r} is out of order; use torsor.assemble, which sorts")
            seen.add(link.name)
        for frame in self.frames:
            if frame.link not in seen:
                raise ModelError(f"{self.name}: frame {frame.name!r} is on the missing link {frame.link!r}")
        for joint in self.joints:
            if joint.motor is not None and joint.motor.carrier not in seen:
                found = f"the motor of joint {joint.name!r} is on the missing link {joint.motor.carrier!r}"
                raise ModelError(describe(found, where=self.name, allowed=_listing(seen)))

        self._check_loops()

    def _check_loops(self) -> None:
        """Refuse loops between frames, and relations and drives of coordinates, that do not exist."""
        names = [loop.name for loop in self.loops]
        if len(set(names)) < len(names):
            double = next(name for name in names if names.count(name) > 1)
            raise ModelError(f"{self.name}: two loops are named {double!r}; fix: give each its own name")
        for loop in self.loops:
            if isinstance(loop, Coupling):
                for name in loop.shares:
                    self._check_coordinate(name, f"coupling {loop.name!r}")
            else:
                for end in (loop.a, loop.b):
                    if end not in self.places:
                        found = f"loop {loop.name!r} ends at {end!r}, which does not exist"
                        raise ModelError(describe(found, where=self.name, allowed=_listing(self.places)))
        for name in self.active:
            if name not in self.coordinate_names:
                found = f"active names {name!r}, which is no coordinate"
                raise ModelError(describe(found, where=self.name, allowed=_listing(self.coordinate_names)))
        if len(set(self.active)) < len(self.active):
            raise ModelError(describe(f"active is {self.active}", where=self.name, allowed="each coordinate once"))

    def _check_coordinate(self, name: str, what: str) -> None:
        if name not in self.coordinate_names or name not in self.position_names:
            both = [each for each in self.coordinate_names if each in self.position_names]
            found = f"{what} names {name!r}, which is no coordinate of its own"
            raise ModelError(describe(found, where=self.name, allowed=_listing(both)))

    def _check_names(self) -> None:
        """Refuse names that are not unique and joints that follow no joint of the mechanism."""
        joints = [joint.name for joint in self.joints]
        places = [self.base.name, *(link.name for link in self.links), *(frame.name for frame in self.frames)]
        names_of_joints = joints + [f"{joint.name}/motor" for joint in self.joints if joint.is_elastic]
        for what, names in (("joints", names_of_joints), ("links or frames", places)):
            if len(set(names)) < len(names):
                double = next(name for name in names if names.count(name) > 1)
                raise ModelError(f"{self.name}: two {what} are named {double!r}; fix: give each its own name")
        leaders = {joint.name for joint in self.joints if not joint.follows}
        for joint in self.joints:
            if joint.coordinate not in leaders:
                found = f"joint {joint.name!r} follows {joint.coordinate!r}, which is not a joint with a coordinate"
                raise ModelError(f"{self.name}: {found}; fix: use torsor.assemble, which resolves chains")

    def __repr__(self) -> str:
        loops = f", {len(self.loops)} loops" if self.loops else ""
        return (
            f"<{type(self).__name__} {self.name!r}: {len(self.links)} moving links, nq={self.nq}, nv={self.nv}{loops}>"
        )

    # Sizes and names

    @cached_property
    def parents(self) -> tuple[int, ...]:
        """Index of each moving link's parent, -1 for the base."""
        index = {self.base.name: -1} | {link.name: i for i, link in enumerate(self.links)}
        return tuple(index[joint.parent] for joint in self.joints)

    @cached_property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """Where each joint's positions and velocities lie in q and v; joints that follow have their leader's."""
        slices: dict[str, Coordinate] = {}
        nq = nv = 0
        for joint in self.joints:
            if not joint.follows:
                slices[joint.name] = Coordinate(slice(nq, nq + joint.nq), slice(nv, nv + joint.nv))
                nq, nv = nq + joint.nq, nv + joint.nv
        return tuple(slices[joint.coordinate] for joint in self.joints)

    @cached_property
    def _leaders(self) -> tuple[Joint, ...]:
        return tuple(joint for joint in self.joints if not joint.follows)

    @cached_property
    def elastic(self) -> tuple[Joint, ...]:
        """The elastic joints. The coordinates of their motors stand behind those of all joints, in this order."""
        return tuple(joint for joint in self.joints if joint.is_elastic)

    @cached_property
    def motor_coordinates(self) -> Mapping[str, Coordinate]:
        """Where the motor's angle and rate of each elastic joint, by its name, lie in q and v."""
        nq, nv, count = self.nq, self.nv, len(self.elastic)
        return MappingProxyType(
            {
                joint.name: Coordinate(
                    slice(nq - count + k, nq - count + k + 1), slice(nv - count + k, nv - count + k + 1)
                )
                for k, joint in enumerate(self.elastic)
            }
        )

    @property
    def nq(self) -> int:
        """Number of positions."""
        return sum(joint.nq for joint in self._leaders) + len(self.elastic)

    @property
    def nv(self) -> int:
        """Number of velocities, and of generalised forces."""
        return sum(joint.nv for joint in self._leaders) + len(self.elastic)

    @property
    def _motor_names(self) -> tuple[str, ...]:
        return tuple(f"{joint.name}/motor" for joint in self.elastic)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints, in the order of ``links``."""
        return tuple(joint.name for joint in self.joints)

    @property
    def link_names(self) -> tuple[str, ...]:
        """Names of the moving links."""
        return tuple(link.name for link in self.links)

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """Names of the velocities and generalised forces, in the order of v."""
        return tuple(name for joint in self._leaders for name in joint.velocity_names) + self._motor_names

    @property
    def position_names(self) -> tuple[str, ...]:
        """Names of the positions, in the order of q."""
        return tuple(name for joint in self._leaders for name in joint.position_names) + self._motor_names

    @property
    def mass(self) -> float:
        """Mass (kg) of the moving links."""
        return sum(link.mass for link in self.links)

    # Limits

    def _gather(self, name: str, motors: ArrayLike) -> Array:
        own = [getattr(joint, name) for joint in self._leaders]
        return np.concatenate([np.zeros(0), *own, np.broadcast_to(np.asarray(motors, float), len(self.elastic))])

    @property
    def lower(self) -> Array:
        """Lower position limits (nq,), -inf where there is none."""
        return self._gather("lower", -np.inf)

    @property
    def upper(self) -> Array:
        """Upper position limits (nq,), inf where there is none."""
        return self._gather("upper", np.inf)

    @property
    def velocity_limit(self) -> Array:
        """Largest speeds (nv,), inf where there is no limit; an elastic joint's is its motor's too."""
        return self._gather("velocity_limit", [float(np.max(joint.velocity_limit)) for joint in self.elastic])

    @property
    def effort_limit(self) -> Array:
        """Largest generalised forces (nv,), inf where there is no limit.

        An elastic joint's limit is its motor's. Nothing but the spring drives the joint itself, so that it has 0 there.
        """
        limit = self._gather("effort_limit", [float(np.max(joint.effort_limit)) for joint in self.elastic])
        for joint, coordinate in zip(self.joints, self.coordinates, strict=True):
            if joint.is_elastic:
                limit[coordinate.v] = 0.0
        return limit

    def neutral(self) -> Array:
        """Return the positions (nq,) with every joint and motor at zero (quaternions at the identity)."""
        neutral = [joint.kind.neutral for joint in self._leaders]
        return np.concatenate([np.zeros(0), *neutral, np.zeros(len(self.elastic))])

    # Places

    @cached_property
    def places(self) -> Mapping[str, Place]:
        """The base, the links and the named frames, by name."""
        index = {self.base.name: -1} | {link.name: i for i, link in enumerate(self.links)}
        places = {name: Place(i, _HERE) for name, i in index.items()}
        places |= {frame.name: Place(index[frame.link], frame.pose) for frame in self.frames}
        return MappingProxyType(places)

    def place(self, name: str | int) -> Place:
        """Return where a link (by name or index) or a named frame is."""
        if isinstance(name, (int, np.integer)) and not isinstance(name, bool):
            if -len(self.links) <= name < len(self.links):
                return Place(int(name) % len(self.links), _HERE)
            raise ModelError(f"{self.name}: no link {name}; allowed: 0 to {len(self.links) - 1}")
        if not isinstance(name, str) or name not in self.places:
            raise ModelError(describe(f"no link or frame {name!r}", where=self.name, allowed=_listing(self.places)))
        return self.places[name]

    def joint(self, name: str) -> Joint:
        """Return a joint by name."""
        for joint in self.joints:
            if joint.name == name:
                return joint
        raise ModelError(describe(f"no joint {name!r}", where=self.name, allowed=_listing(self.joint_names)))


def _listing(names: object, most: int = 12) -> str:
    shown = [repr(name) for name in names]  # type: ignore[attr-defined]
    return ", ".join(shown[:most]) + (f", ... ({len(shown)} in all)" if len(shown) > most else "")
