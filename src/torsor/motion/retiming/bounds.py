"""Bounds of a retimed motion: of the robot by default, each may be given, and none is infinite in silence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import by_name, number, real_array, table
from torsor.base.errors import ModelError, describe, listing
from torsor.robot.robot import Robot

KINDS = ("velocity", "acceleration", "jerk", "torque", "torque_rate")
RATES = ("jerk", "torque_rate")
SOURCES = GIVEN, OWN, NONE = "given", "of the robot", "none"


@dataclass(frozen=True, eq=False)
class Bounds:
    """Lower and upper bounds (2, n) of each kind, infinite where there is none, and where they come from.

    ``reactions`` are (joint, index of its link, "force" or "moment", bound in N or N m).

    Example:
        >>> bounds = Bounds.of(torsor.library.ur5(), {"acceleration": 10.0})
        >>> bounds.values["torque"][1].tolist(), bounds.sources["torque"], bounds.sources["jerk"]
        ([150.0, 150.0, 150.0, 28.0, 28.0, 28.0], 'of the robot', 'none')
    """

    values: Mapping[str, Array]
    sources: Mapping[str, str]
    reactions: tuple[tuple[str, int, str, float], ...] = ()

    @classmethod
    def of(cls, robot: Robot, given: Mapping[str, Any], reactions: Any = None) -> "Bounds":
        """Return the bounds that are given, and those of the robot where None is: velocities and torques."""
        where, names = f"{robot.name}: retime", robot.coordinate_names
        own = {"velocity": _velocities(robot), "torque": robot.effort_limit}
        values, sources = dict[str, Array](), dict[str, str]()
        for kind in KINDS:
            value = given.get(kind)
            sources[kind] = GIVEN if value is not None else OWN if kind in own else NONE
            if sources[kind] == NONE:
                values[kind] = np.array([[-np.inf], [np.inf]]).repeat(len(names), axis=1)
                continue
            values[kind] = _ends(own.get(kind), value, names, where, kind)
            if np.isinf(values[kind]).all():
                sources[kind] = NONE
            if kind in RATES and (values[kind][0] != -values[kind][1]).any():
                raise ModelError(
                    describe(f"lower and upper bounds of {kind} differ", where=where, allowed="one for both")
                )
        _check_bounded(names, values, given, where)
        return cls(values, sources, _reactions(robot, reactions, where))

    def has(self, kind: str) -> bool:
        """Return whether any coordinate has a bound of a kind."""
        return self.sources[kind] != NONE

    @cached_property
    def smooth(self) -> bool:
        """Whether rates of accelerations or torques are bounded, which takes a timing without steps of s''."""
        return any(self.has(kind) for kind in RATES)

    def text(self, kind: str, k: int) -> str:
        """Return the bound of coordinate k, for a person.

        Example:
            >>> bounds = Bounds.of(torsor.library.ur5(), {"acceleration": [[-2.0, 5.0]] * 6})
            >>> bounds.text("acceleration", 0), bounds.text("velocity", 0), bounds.text("jerk", 0)
            ('-2 to 5', '3.15', 'none')
        """
        low, high = self.values[kind][:, k]
        if np.isinf(low) and np.isinf(high):
            return NONE
        return f"{high:g}" if low == -high else f"{low:g} to {high:g}"

    def used(self) -> str:
        """Return which bounds hold, and where they come from, in one line.

        Example:
            >>> Bounds.of(torsor.library.ur5(), {"acceleration": 10.0}).used()
            'velocity, torque of the robot; acceleration given; none of jerk, torque rate'
        """
        kinds = {
            source: [kind.replace("_", " ") for kind in KINDS if self.sources[kind] == source] for source in SOURCES
        }
        kinds[GIVEN] += [f"reaction {kind} of {joint}" for joint, _, kind, _ in self.reactions]
        parts = [f"{', '.join(kinds[source])} {source}" for source in (OWN, GIVEN) if kinds[source]]
        return "; ".join([*parts, *([f"none of {', '.join(kinds[NONE])}"] if kinds[NONE] else [])])


def _velocities(robot: Robot) -> Array:
    """Return the velocity limits (n,) of a robot, with those of joints that follow a coordinate.

    Example:
        >>> arm = torsor.library.ur5()
        >>> _velocities(arm).tolist() == arm.velocity_limit.tolist()
        True
    """
    found, names = robot.velocity_limit.copy(), robot.coordinate_names
    for joint in robot.joints:
        if joint.follows and joint.coordinate in names and joint.ratio:
            k = names.index(joint.coordinate)
            found[k] = min(found[k], float(np.min(joint.velocity_limit)) / abs(joint.ratio))
    return found


def _ends(own: Array | None, given: Any, names: Sequence[str], where: str, kind: str) -> Array:
    """Return lower and upper bounds (2, n) from one number, n of them, {name: number}, or (n, 2).

    ``own`` are the bounds of the robot, which hold if none are given, and for names that are not in a table.
    """
    n = len(names)
    value: Any = own if given is None else given
    if not isinstance(value, Mapping) and np.ndim(value) == 2:
        ends = real_array(value, where, kind).T
        if ends.shape != (2, n):
            raise ModelError(describe(f"{kind} has shape {ends.T.shape}", where=where, allowed=f"({n},) or ({n}, 2)"))
    else:
        upper = by_name(value, names, np.inf, f"{where}: {kind}")
        if isinstance(value, Mapping) and own is not None:
            upper = np.where([name in value for name in names], upper, own)
        ends = np.stack([0.0 - upper, upper])
    if not (ends[0] < 0).all() or not (ends[1] > 0).all():  # NaN too
        wrong = int(np.flatnonzero(~((ends[0] < 0) & (ends[1] > 0)))[0])
        if given is None:
            found = f"the {kind} limit of {names[wrong]!r} is {ends[1, wrong]:g}"
            raise ModelError(describe(found, where=where, fix=f"give {kind}= (--{kind} of torsor retime)"))
        found = f"{kind} of {names[wrong]!r} is {ends[0, wrong]:g} to {ends[1, wrong]:g}"
        raise ModelError(describe(found, where=where, allowed="lower bounds below 0 and upper bounds above 0"))
    return ends


def _check_bounded(names: Sequence[str], values: Mapping[str, Array], given: Mapping[str, Any], where: str) -> None:
    """Raise ModelError for a coordinate without a bound that nobody said to be unbounded."""
    finite = {kind: np.isfinite(values[kind]).all(axis=0) for kind in ("velocity", "acceleration", "torque")}
    velocity = given.get("velocity")
    said = velocity if isinstance(velocity, Mapping) else () if velocity is None else names
    unknown = [
        name for name, own in zip(names, np.asarray(finite["velocity"]), strict=True) if not own and name not in said
    ]
    if unknown:
        name, fix = unknown[0], "give velocity= (--velocity of torsor retime)"
        raise ModelError(describe(f"coordinate {name!r} has no velocity limit", where=where, fix=fix))
    driven = finite["acceleration"] | finite["torque"]
    meant = given.get("acceleration") is not None and given.get("torque") is not None
    if not driven.any() or (not meant and not driven.all()):
        fix = "give acceleration= or torque= (--acceleration, --torque of torsor retime)"
        found = f"coordinate {names[int(np.argmin(driven))]!r} has neither an effort limit nor a bound of acceleration"
        raise ModelError(describe(found, where=where, fix=fix))


def _reactions(robot: Robot, given: Any, where: str) -> tuple[tuple[str, int, str, float], ...]:
    """Return the bounds of reactions from {joint: {"force": N, "moment": N m}}."""
    moving = {joint.name: joint.child for joint in robot.joints if joint.child in robot.link_names}
    found = []
    for joint, sizes in table(given, where, "reactions").items():
        if joint not in moving:
            allowed = listing(moving, like=str(joint))
            raise ModelError(
                describe(f"no joint {joint!r} of a moving link in reactions", where=where, allowed=allowed)
            )
        for kind, size in table(sizes, where, f"reactions of {joint!r}").items():
            if kind not in ("force", "moment"):
                allowed = "'force' (N), 'moment' (N m)"
                raise ModelError(describe(f"{kind!r} in reactions of {joint!r}", where=where, allowed=allowed))
            bound = number(size, where, f"{kind} of {joint!r} in reactions", above=0.0, finite=False)
            if bound < np.inf:
                found.append((joint, robot.link_names.index(moving[joint]), kind, bound))
    return tuple(found)
