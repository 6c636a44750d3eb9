"""Bounds of a retimed motion: of the robot by default, each may be given, and none is infinite in silence."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from torsor.arrays import Array
from torsor.checks import by_name, positive, real_array, table
from torsor.errors import ModelError, describe, listing, shortened
from torsor.robot.robot import Robot

KINDS = ("velocity", "acceleration", "jerk", "torque", "torque_rate")
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
        where = f"{robot.name}: retime"
        own = {"velocity": robot.velocity_limit, "torque": robot.effort_limit}
        values, sources = dict[str, Array](), dict[str, str]()
        for kind in KINDS:
            value = given.get(kind)
            sources[kind] = GIVEN if value is not None else OWN if kind in own else NONE
            values[kind] = _ends(own.get(kind, np.inf) if value is None else value, robot, where, kind)
            if not np.isfinite(values[kind]).any():
                sources[kind] = NONE
        _check_bounded(robot, values, given, where)
        return cls(values, sources, _reactions(robot, reactions, where))

    def has(self, kind: str) -> bool:
        """Return whether any coordinate has a bound of a kind."""
        return self.sources[kind] != NONE

    @property
    def smooth(self) -> bool:
        """Whether rates of accelerations or torques are bounded, which takes a timing without steps of s''."""
        return self.has("jerk") or self.has("torque_rate")

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
        kinds = {source: [kind.replace("_", " ") for kind in KINDS if self.sources[kind] == source] for source in SOURCES}
        kinds[GIVEN] += [f"reaction {kind} of {joint}" for joint, _, kind, _ in self.reactions]
        parts = [f"{', '.join(kinds[source])} {source}" for source in (OWN, GIVEN) if kinds[source]]
        return "; ".join([*parts, *([f"none of {', '.join(kinds[NONE])}"] if kinds[NONE] else [])])


def _ends(value: Any, robot: Robot, where: str, kind: str) -> Array:
    """Return lower and upper bounds (2, n) from one number, n of them, {name: number}, or (n, 2)."""
    n = robot.nv
    if not isinstance(value, Mapping) and np.ndim(value) == 2:
        ends = real_array(value, where, kind).T
        if ends.shape != (2, n):
            raise ModelError(describe(f"{kind} has shape {ends.T.shape}", where=where, allowed=f"({n},) or ({n}, 2)"))
    else:
        upper = np.array(by_name(value, robot.coordinate_names, np.inf, f"{where}: {kind}"))
        ends = np.stack([-upper, upper])
    low, high = ends
    if not ((low < 0) & (high > 0)).all():  # NaN too
        allowed = "above 0, or lower bounds below and upper bounds above 0"
        raise ModelError(describe(f"{kind} is {shortened(np.asarray(ends[1]))}", where=where, allowed=allowed))
    return ends


def _check_bounded(robot: Robot, values: Mapping[str, Array], given: Mapping[str, Any], where: str) -> None:
    """Raise ModelError for a coordinate without a bound that nobody said to be unbounded."""
    for k, name in enumerate(robot.coordinate_names):
        finite = {kind: bool(np.isfinite(values[kind][:, k]).all()) for kind in KINDS}
        if not finite["velocity"] and given.get("velocity") is None:
            fix = "give velocity= (np.inf for none, --velocity of torsor retime)"
            raise ModelError(describe(f"coordinate {name!r} has no velocity limit", where=where, fix=fix))
        meant = given.get("acceleration") is not None and given.get("torque") is not None
        if not finite["acceleration"] and not finite["torque"] and not meant:
            fix = "give acceleration= or torque= (--acceleration, --torque of torsor retime)"
            found = f"coordinate {name!r} has neither an effort limit nor a bound of acceleration"
            raise ModelError(describe(found, where=where, fix=fix))
    if not np.isfinite(np.concatenate([values["acceleration"], values["torque"]])).any():
        found = "no coordinate has a bound of acceleration or torque: any speed is reached at once"
        raise ModelError(describe(found, where=where, fix="give acceleration= or torque="))


def _reactions(robot: Robot, given: Any, where: str) -> tuple[tuple[str, int, str, float], ...]:
    """Return the bounds of reactions from {joint: {"force": N, "moment": N m}}."""
    moving = {joint.name: joint.child for joint in robot.joints if joint.child in robot.link_names}
    found = []
    for joint, sizes in table(given, where, "reactions").items():
        if joint not in moving:
            allowed = listing(moving, like=str(joint))
            raise ModelError(describe(f"no joint {joint!r} of a moving link in reactions", where=where, allowed=allowed))
        for kind, size in table(sizes, where, f"reactions of {joint!r}").items():
            if kind not in ("force", "moment"):
                allowed = "'force' (N), 'moment' (N m)"
                raise ModelError(describe(f"{kind!r} in reactions of {joint!r}", where=where, allowed=allowed))
            bound = positive(size, where, f"{kind} of {joint!r} in reactions")
            found.append((joint, robot.link_names.index(moving[joint]), kind, bound))
    return tuple(found)
