"""The mechanism, a frozen object with a base, moving links and their joints, frames, loops and gravity."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import MAX_NUMBER, frozen_array, is_whole, name_of, number
from torsor.base.errors import ModelError, listing, shortened
from torsor.base.summary import Summary
from torsor.mechanism.loops import Closure, Coupling, CutJoint, Loop, Wheel
from torsor.mechanism.part import Part
from torsor.mechanism.parts import Frame, Joint, Link

Allowed = tuple[str, str, str]


def checked_allowed(pairs: Iterable[Any], places: Collection[str], where: str) -> tuple[Allowed, ...]:
    """Return sorted and unique pairs of links or frames, each with its first reason."""
    result = dict[tuple[str, str], str]()
    for item in pairs:
        words = tuple(item) if isinstance(item, Iterable) and not isinstance(item, str) else ()
        if len(words) != 3 or not all(isinstance(word, str) for word in words):
            message = "(link, link, reason), three strings"
            raise ModelError(f"the allowed collision {item!r} is not valid", value=item, where=where, allowed=message)
        a, b, reason = words
        for name in (a, b):
            if name not in places:
                allowed = listing(map(repr, places), like=repr(name))
                found_here = f"allowed collision of {name!r}, which is not a link or frame"
                raise ModelError(found_here, value=name, where=where, allowed=allowed)
        if a == b:
            raise ModelError(f"allowed collision of {a!r} with itself", value=a, where=where, allowed="two links")
        result.setdefault((min(a, b), max(a, b)), reason)
    return tuple((a, b, reason) for (a, b), reason in sorted(result.items()))


HEAD = ("joint", "type", "link", "parent", "mass (kg)", "range", "effort limit")


def _range(joint: Joint) -> str:
    lower, upper = (np.unique(np.atleast_1d(item)) for item in (joint.lower, joint.upper))
    if len(lower) != 1 or len(upper) != 1 or not (np.isfinite(lower).any() or np.isfinite(upper).any()):
        return ""
    unit = "rad" if joint.kind.turns[0] else "m"
    return f"{lower[0]:.4g} .. {upper[0]:.4g} {unit}"


def _effort(joint: Joint) -> str:
    limit = np.unique(np.atleast_1d(joint.effort_limit))
    if len(limit) != 1 or not np.isfinite(limit).all() or not joint.kind.turns:
        return ""
    return f"{limit[0]:.4g} {'N m' if joint.kind.turns[0] else 'N'}"


# Postures: named configurations that are stored with a mechanism, such as MJCF keyframes.
#
# They are stored by position name, so that edits of the mechanism need not update them: positions that no longer exist
# are ignored, and new ones are neutral.


class Postures(Mapping[str, Array]):
    """Immutable mapping from names to configurations (nq,), which unlike a mappingproxy can be pickled.

    Example:
        >>> Postures({"home": np.zeros(2)})
        {'home': array([0., 0.])}
    """

    def __init__(self, table: Mapping[str, Array]):
        self._table = dict(table)

    def __getitem__(self, name: str) -> Array:
        return self._table[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)

    def __repr__(self) -> str:
        return repr(self._table)


DEFAULT = "default"  # the initial posture in a robot's file


def default_posture(mechanism: "Mechanism") -> Array:
    """Return the posture "default" (nq,) if the robot has one, otherwise the neutral posture.

    Example:
        >>> default_posture(torsor.library.two_link().with_posture("default", [0.3, -1.2])).tolist()
        [0.3, -1.2]
    """
    return np.array(mechanism.postures.get(DEFAULT, mechanism.neutral()))


def checked_postures(
    table: object, joints: Iterable[Joint], names: Iterable[str], where: str
) -> dict[str, dict[str, float]]:
    """Return postures; raise ModelError for numbers that are not finite and positions that are not in ``names``."""
    if not isinstance(table, Mapping) or not all(isinstance(item, Mapping) for item in table.values()):
        raise ModelError("postures must be a table", where=where, allowed="{name: {position: number}}")
    if not table:
        return {}
    turning = [(joint, joint.position_names[-4:]) for joint in joints if joint.nq > joint.nv and not joint.follows]
    known = set(names)
    result = dict[str, dict[str, float]]()
    for name, positions in table.items():
        at = f"{where}: posture {name_of(name, 'posture', where)!r}"
        existing = ((key, value) for key, value in positions.items() if key in known)
        result[name] = {key: number(value, at, key, least=-MAX_NUMBER, most=MAX_NUMBER) for key, value in existing}
        for joint, quaternion in turning:
            neutral = dict(zip(quaternion, joint.kind.neutral[-4:], strict=True))
            if not any((neutral | result[name])[key] for key in quaternion):
                message = f"the quaternion of joint {joint.name!r} is 0"
                raise ModelError(message, value=joint.name, where=at, allowed="nonzero", fix="the identity is 0 0 0 1")
    return result


_ORDER = (Loop, Wheel, Coupling)  # sorting order of closures
_IDENTITY_POSE = frozen_array(np.eye(4), (4, 4), "", "identity")


class Place(NamedTuple):
    """A pose (4 x 4) fixed to a link: the index of the link (-1 for the base) and the pose in link axes."""

    link: int
    pose: Array


class Coordinate(NamedTuple):
    """The slices of q and v that belong to a joint."""

    q: slice
    v: slice


def places_in_q(joints: Iterable[Joint], coordinates: Iterable[Coordinate]) -> dict[int, int]:
    """Return the index in q of each coordinate by its index in v, without joints that have quaternions in q."""
    alike = [at for joint, at in zip(joints, coordinates, strict=True) if joint.nq == joint.nv]
    return {k: at.q.start + k - at.v.start for at in alike for k in range(at.v.start, at.v.stop)}


@dataclass(frozen=True, eq=False, repr=False)
class Mechanism(Part):
    """A tree of links: ``joints[i]`` moves ``links[i]``, and parents come before children.

    ``build`` and the readers in ``formats`` create mechanisms: they sort the joints and merge fixed ones. This class
    only checks the result. ``gravity`` (3,) is an acceleration (m/s^2) in base axes. ``loops`` are the closures of the
    tree, and ``active`` are the names of the driven coordinates of a robot with loops.
    ``posture_table`` maps posture names to {position name: value}; ``postures`` returns the postures as arrays.
    ``allowed_collisions`` are pairs of links or frames whose shapes may touch, each with the reason.
    """

    name: str
    base: Link
    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    frames: tuple[Frame, ...] = ()
    gravity: Array = field(default_factory=lambda: np.array([0.0, 0.0, -9.81]))
    loops: tuple[Closure, ...] = ()
    active: tuple[str, ...] = ()
    posture_table: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    allowed_collisions: tuple[tuple[str, str, str], ...] = ()

    def __post_init__(self) -> None:
        name_of(self.name, "robot")
        self._set(**{key: tuple(getattr(self, key)) for key in ("links", "joints", "frames", "active")})
        self._set(loops=tuple(sorted(self.loops, key=lambda loop: _ORDER.index(type(loop)))))
        self._set(gravity=frozen_array(self.gravity, (3,), self.name, "gravity", most=MAX_NUMBER))
        self._check_names()
        seen = {self.base.name}
        if len(self.links) != len(self.joints):
            message = f"{len(self.links)} moving links need the same number of joints, not {len(self.joints)}"
            raise ModelError(message, where=self.name)
        clamps = {joint.parent for joint in self.joints if joint.flexible is not None}
        for link, joint in zip(self.links, self.joints, strict=True):
            merged = joint.is_fixed and not (joint.parent == self.base.name and joint.child in clamps)
            if joint.child != link.name or joint.parent not in seen or merged:
                message, fix = f"joint {joint.name!r} is out of order", "use torsor.build, which sorts the joints"
                raise ModelError(message, value=joint.name, where=self.name, fix=fix)
            seen.add(link.name)
        for frame in self.frames:
            if frame.link not in seen:
                message = f"frame {frame.name!r} is on the missing link {frame.link!r}"
                raise ModelError(message, value=frame.link, where=self.name)
        for joint in self.joints:
            if joint.motor is not None and joint.motor.carrier not in seen:
                message = f"the motor of joint {joint.name!r} is on the missing link {joint.motor.carrier!r}"
                allowed = listing(map(repr, seen), like=repr(joint.motor.carrier))
                raise ModelError(message, where=self.name, allowed=allowed)
        self._check_loops()
        self._set(posture_table=checked_postures(self.posture_table, self.joints, self.position_names, self.name))
        if self.allowed_collisions != ():
            self._set(allowed_collisions=checked_allowed(self.allowed_collisions, self.places, self.name))

    def _check_loops(self) -> None:
        """Raise ModelError if loops or ``active`` contain unknown or duplicate names."""
        if not self.loops and not self.active:
            return
        check_unique((loop.name for loop in self.loops), "loops", self.name)
        positions = set(self.position_names)
        both = [name for name in self.coordinate_names if name in positions]
        for loop in self.loops:
            if isinstance(loop, Coupling):
                for name in (name for name in loop.coefficients if name not in both):
                    message = f"names {name!r}, which is not a coordinate with one position"
                    fields: dict[str, Any] = {"argument": f"coupling {loop.name!r}", "value": name}
                    allowed = listing(map(repr, both), like=repr(name))
                    raise ModelError(message, where=self.name, allowed=allowed, **fields)
            else:
                kind = "wheel" if isinstance(loop, Wheel) else "loop"
                for end in ends_of(self, loop):
                    if end not in self.places:
                        message = f"{kind} {loop.name!r} ends at {end!r}, which does not exist"
                        allowed = listing(map(repr, self.places), like=repr(end))
                        raise ModelError(message, where=self.name, allowed=allowed)
        for name in self.active:
            if name not in self.coordinate_names:
                message = f"names {name!r}, which is not a coordinate"
                allowed = listing(map(repr, self.coordinate_names), like=repr(name))
                raise ModelError(message, value=name, argument="active", where=self.name, allowed=allowed)
        if len(set(self.active)) < len(self.active):
            given, allowed = self.active, "each coordinate once"
            raise ModelError(f"is {given}", argument="active", value=given, where=self.name, allowed=allowed)

    def _check_names(self) -> None:
        """Raise ModelError for duplicate names, and for followers whose leader does not exist."""
        check_unique((*self.joint_names, *self._motor_names), "joints", self.name)
        frames = (frame.name for frame in self.frames)
        check_unique((self.base.name, *self.link_names, *frames), "links or frames", self.name)
        leaders = {joint.name for joint in self.joints if not joint.follows}
        for joint in self.joints:
            if joint.coordinate not in leaders:
                message = f"joint {joint.name!r} follows {joint.coordinate!r}, which is not a joint with a coordinate"
                raise ModelError(message, where=self.name, fix="use torsor.build, which resolves followers")

    def __repr__(self) -> str:
        loops = f", {len(self.loops)} loops" if self.loops else ""
        kind, size = type(self).__name__, f"{len(self.links)} moving links, nq={self.nq}, nv={self.nv}"
        return f"<{kind} {self.name!r}: {size}{loops}>"

    def __str__(self) -> str:
        return self._overview().text()

    def _repr_html_(self) -> str:
        return self._overview().html()

    def _overview(self) -> Summary:
        facts = {"mass": f"{self.mass:.6g} kg", "gravity": f"{shortened(self.gravity)} m/s²"}
        facts |= {"loops": listing(loop.name for loop in self.loops)} if self.loops else {}
        facts |= {"active": listing(self.active)} if self.active else {}
        facts |= {"frames": listing(frame.name for frame in self.frames)} if self.frames else {}
        rows = []
        for joint, link in zip(self.joints, self.links, strict=True):
            name = f"{joint.name} (follows {joint.coordinate})" if joint.follows else joint.name
            limits = _range(joint), _effort(joint)
            rows.append((name, joint.type, link.name, joint.parent, f"{link.mass:.4g}", *limits))
            if joint.motor is not None and joint.motor.is_elastic:
                rows.append((f"{joint.name}/motor", "elastic motor", "", joint.motor.carrier, "", "", ""))
        kept = [k for k in range(len(HEAD)) if any(row[k] for row in rows)]  # empty columns are omitted
        title, columns = repr(self).strip("<>"), [HEAD[k] for k in kept]
        return Summary(title, facts, columns, [[row[k] for k in kept] for row in rows])

    @cached_property
    def parents(self) -> tuple[int, ...]:
        """Index of each moving link's parent; -1 for the base."""
        return tuple(self._indices[joint.parent] for joint in self.joints)

    @cached_property
    def _indices(self) -> dict[str, int]:
        return {name: i for i, name in enumerate((self.base.name, *self.link_names), start=-1)}

    @cached_property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """Slices of q and v for each joint; a follower has the slices of its leader."""
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
        """Elastic joints; their motor coordinates come after all joint coordinates, in this order."""
        return tuple(joint for joint in self.joints if joint.is_elastic)

    @cached_property
    def motor_coordinates(self) -> Mapping[str, Coordinate]:
        """Slices of q and v for the motor of each elastic joint, by joint name."""
        q, v = ([slice(k, k + 1) for k in range(end - len(self.elastic), end)] for end in (self.nq, self.nv))
        return MappingProxyType({joint.name: Coordinate(q[k], v[k]) for k, joint in enumerate(self.elastic)})

    @cached_property
    def nq(self) -> int:
        """Number of positions."""
        return sum(joint.nq for joint in self._leaders) + len(self.elastic)

    @cached_property
    def nv(self) -> int:
        """Number of velocities, and of generalised forces."""
        return sum(joint.nv for joint in self._leaders) + len(self.elastic)

    @property
    def _motor_names(self) -> tuple[str, ...]:
        return tuple(f"{joint.name}/motor" for joint in self.elastic)

    @cached_property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints, in the order of ``links``."""
        return tuple(joint.name for joint in self.joints)

    @cached_property
    def link_names(self) -> tuple[str, ...]:
        """Names of the moving links."""
        return tuple(link.name for link in self.links)

    @cached_property
    def coordinate_names(self) -> tuple[str, ...]:
        """Names of the velocities and generalised forces, in the order of v."""
        return tuple(name for joint in self._leaders for name in joint.velocity_names) + self._motor_names

    @cached_property
    def position_names(self) -> tuple[str, ...]:
        """Names of the positions, in the order of q."""
        return tuple(name for joint in self._leaders for name in joint.position_names) + self._motor_names

    @property
    def mass(self) -> float:
        """Mass (kg) of the moving links."""
        return sum(link.mass for link in self.links)

    def _gather(self, name: str, motors: ArrayLike) -> Array:
        arrays = [getattr(joint, name) for joint in self._leaders]
        return np.concatenate([np.zeros(0), *arrays, np.broadcast_to(np.asarray(motors, float), len(self.elastic))])

    @property
    def lower(self) -> Array:
        """Lower position limits (nq,); -inf if there is none."""
        return self._gather("lower", -np.inf)

    @property
    def upper(self) -> Array:
        """Upper position limits (nq,); inf if there is none."""
        return self._gather("upper", np.inf)

    @property
    def velocity_limit(self) -> Array:
        """Velocity limits (nv,); inf if there is none. The limit of an elastic joint also applies to its motor."""
        return self._gather("velocity_limit", [float(np.max(joint.velocity_limit)) for joint in self.elastic])

    @property
    def effort_limit(self) -> Array:
        """Limits of the generalised forces (nv,); inf if there is none.

        The effort limit of an elastic joint applies to its motor. Its own entry is 0: only the spring drives it.
        """
        limit = self._gather("effort_limit", [float(np.max(joint.effort_limit)) for joint in self.elastic])
        for joint, coordinate in zip(self.joints, self.coordinates, strict=True):
            if joint.is_elastic:
                limit[coordinate.v] = 0.0
        return limit

    @property
    def kp(self) -> Array:
        """Position gains of the drives (nv,) in N m/rad or N/m; 0 if there are none."""
        return self._gather("kp", 0.0)

    @property
    def kd(self) -> Array:
        """Velocity gains of the drives (nv,) in N m s/rad or N s/m; 0 if there are none."""
        return self._gather("kd", 0.0)

    def neutral(self) -> Array:
        """Return the positions (nq,) with all joints and motors at zero, and quaternions at the identity."""
        neutral = [joint.kind.neutral for joint in self._leaders]
        return np.concatenate([np.zeros(0), *neutral, np.zeros(len(self.elastic))])

    @cached_property
    def postures(self) -> Mapping[str, Array]:
        """Named configurations (nq,), such as the keyframes of MJCF; see ``with_posture``."""
        names, result = self.position_names, dict[str, Array]()
        for name, positions in self.posture_table.items():
            q = np.array([positions.get(key, zero) for key, zero in zip(names, self.neutral(), strict=True)])
            result[name] = frozen_array(q, (self.nq,), self.name, "q")
        return Postures(result)

    @cached_property
    def places(self) -> Mapping[str, Place]:
        """Base, links and frames by name."""
        places = {name: Place(i, _IDENTITY_POSE) for name, i in self._indices.items()}
        places |= {frame.name: Place(self._indices[frame.link], frame.pose) for frame in self.frames}
        return MappingProxyType(places)

    def place(self, name: str | int) -> Place:
        """Return the place of a link (by name or index), the base or a named frame."""
        if is_whole(name):
            if -len(self.links) <= name < len(self.links):
                return Place(int(name) % len(self.links), _IDENTITY_POSE)
            raise ModelError(f"no link {name}", value=name, where=self.name, allowed=f"0 to {len(self.links) - 1}")
        if not isinstance(name, str) or name not in self.places:
            allowed = listing(map(repr, self.places), like=repr(name))
            raise ModelError(f"no link or frame {name!r}", value=name, where=self.name, allowed=allowed)
        return self.places[name]

    def joint(self, name: str) -> Joint:
        """Return a joint by name."""
        for joint in self.joints:
            if joint.name == name:
                return joint
        allowed = listing(map(repr, self.joint_names), like=repr(name))
        raise ModelError(f"no joint {name!r}", value=name, where=self.name, allowed=allowed)


def carrier(mechanism: Mechanism, place: Place) -> Link:
    """Return the link, or the base, to which a place is fixed."""
    return mechanism.base if place.link < 0 else mechanism.links[place.link]


def ends_of(mechanism: Mechanism, loop: CutJoint) -> tuple[str, str]:
    """Return the names of the two frames or links that a cut joint connects; for a wheel, (ground, frame)."""
    return (loop.ground or mechanism.base.name, loop.frame) if isinstance(loop, Wheel) else (loop.a, loop.b)


def check_unique(names: Iterable[str], what: str, where: str) -> None:
    """Raise ModelError if a name occurs twice."""
    double = next((name for name, count in Counter(names).items() if count > 1), None)
    if double is not None:
        raise ModelError(f"two {what} are named {double!r}", value=double, where=where, fix="give each its own name")


def lineage(mechanism: Mechanism, link: int) -> list[int]:
    """Return the indices of a link and its ancestors, without the base."""
    result = list[int]()
    while link >= 0:
        result.append(link)
        link = mechanism.parents[link]
    return result


FORCES = {"rad": "N m", "m": "N"}
"""Force units by coordinate unit."""


def units(mechanism: Mechanism) -> tuple[list[str], list[str]]:
    """Return the unit of each position, and of each velocity times s: rad, m, or 1 for quaternions.

    Motor angles are at the gear output, so they have the unit of the joint.

    Example:
        >>> units(torsor.library.stanford())[0]
        ['rad', 'rad', 'm', 'rad', 'rad', 'rad']
    """
    positions: list[str] = []
    rates: list[str] = []
    for joint in mechanism.joints:
        if not joint.follows:
            velocity_units = ["rad" if turns else "m" for turns in joint.kind.turns]
            rates += velocity_units
            positions += velocity_units if joint.nq == joint.nv else [*["m"] * (joint.nq - 4), *["1"] * 4]
    motors = ["rad" if joint.kind.turns[0] else "m" for joint in mechanism.elastic]
    return positions + motors, rates + motors


def force_units(mechanism: Mechanism) -> dict[str, str]:
    """Return the force unit of each coordinate by name: N m or N."""
    return {name: FORCES[unit] for name, unit in zip(mechanism.coordinate_names, units(mechanism)[1], strict=True)}


def robot_facts(robot: Mechanism) -> dict[str, Any]:
    """Return the names of a robot's coordinates with their units, for documentation."""
    positions, rates = units(robot)
    return {
        "name": robot.name,
        "mass": robot.mass,
        "positions": list(robot.position_names),
        "position_units": positions,
        "coordinates": list(robot.coordinate_names),
        "velocity_units": [f"{unit}/s" for unit in rates],
        "acceleration_units": [f"{unit}/s^2" for unit in rates],
        "force_units": [FORCES[unit] for unit in rates],
        "joints": list(robot.joint_names),
    }


def state_units(robot: Mechanism) -> dict[str, list[str]]:
    """Return the units of the columns of q, v, a and tau, by letter."""
    facts, keys = robot_facts(robot), ("position", "velocity", "acceleration", "force")
    return {name: facts[f"{key}_units"] for name, key in zip(("q", "v", "a", "tau"), keys, strict=True)}
