"""Prescribed motion: coordinates that follow given functions of time, while the dynamics finds the others.

This is the dynamics of a robot with a moving base whose joints are given (Khalil 2010, section 7.2): the base is found,
and so are the forces of the joints that the motion needs.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import real_array
from torsor.base.errors import ModelError, describe, listing, warn
from torsor.robot.robot import Robot
from torsor.simulation.curves import Curve
from torsor.simulation.sources import casadi_function

Motion = Callable[[float], tuple[Array, Array, Array]]

# What the change of a position during a step may differ from the integral of its velocity, and that of a velocity from
# the integral of its acceleration: numbers that were rounded, or found by differences, and jumps of the acceleration.
ROUNDED, DIFFERENCES = 1e-9, (1e-3, 1e-6)

ALLOWED = (
    "a number, (times, q), (times, q, v, a), a casadi.Function t -> q or t -> (q, v, a), or a Python function "
    "t -> (q, v, a)"
)


@dataclass(frozen=True, eq=False)
class Prescribed:
    """The prescribed coordinates: their ``names``, and motions, each with the indices in v of its own."""

    robot: Robot
    names: tuple[str, ...]
    motions: tuple[tuple[tuple[int, ...], Motion], ...]
    jumped: set[int] = field(default_factory=set)
    """Indices in v of the coordinates whose motion a warning was given for."""

    @classmethod
    def of(cls, robot: Robot, given: Any, duration: float) -> "Prescribed | None":
        """Return the motions of the argument ``prescribed`` of ``simulate``; None if no coordinate has one."""
        if given is None:
            return None
        if not isinstance(given, Mapping):
            raise ModelError(describe(f"prescribed is {given!r}", where=robot.name, allowed="{coordinate: motion}"))
        names, motions = list[str](), []
        for key, motion in given.items():
            own = key if isinstance(key, tuple) else (key,)
            if not own:
                raise ModelError(describe("prescribed has a motion of no coordinate, ()", where=robot.name))
            where = f"{robot.name}: prescribed motion of {', '.join(map(repr, own))}"
            for name in own:
                _check_name(robot, name, names)
                names.append(name)
            indices = tuple(robot.coordinate_names.index(name) for name in own)
            motions.append((indices, _motion(motion, len(own), duration, where)))
        return cls(robot, tuple(names), tuple(motions)) if names else None

    @cached_property
    def v(self) -> list[int]:
        """Indices of the prescribed coordinates in v."""
        return [self.robot.coordinate_names.index(name) for name in self.names]

    @cached_property
    def q(self) -> list[int]:
        """Indices of the prescribed coordinates in q, in the same order."""
        return [self.robot.position_names.index(name) for name in self.names]

    @property
    def forced(self) -> tuple[str, ...]:
        """The names of all other coordinates, whose motion is found."""
        return tuple(name for name in self.robot.coordinate_names if name not in self.names)

    def at(self, t: float) -> Array:
        """Return positions, velocities and accelerations (3, nv) at a time; zero for all other coordinates."""
        found = np.zeros((3, self.robot.nv))
        for indices, motion in self.motions:
            found[:, indices] = motion(t)
        return found

    def stages(self, t: float, h: float) -> Array:
        """Return the same (9, nv) at the start, the middle and the end of a step; warn where a motion jumps."""
        found = np.concatenate([self.at(t), self.at(t + h / 2), self.at(t + h)])
        if len(self.jumped) < len(self.v):
            self._warn_of_jumps(t, h, found[:, self.v].reshape(3, 3, -1))
        return found

    def _warn_of_jumps(self, t: float, h: float, motion: Array) -> None:
        """Warn, once for each coordinate, where v is not the rate of q or a that of v, with (3 times, q v a, n).

        Such motions need forces that are not finite, which no step of an integrator sees.
        """
        sizes = np.abs(motion).max(axis=0)
        changes = motion[2] - motion[0]
        missed = np.abs(changes[:2] - h / 6 * (motion[0] + 4 * motion[1] + motion[2])[1:])  # Simpson's rule
        turns = 2 * h * sizes[2]  # where the acceleration jumps
        allowed = np.array([h * turns + DIFFERENCES[0] * h * sizes[1], turns + DIFFERENCES[1] * sizes[1]])
        wrong = np.argwhere(missed > allowed + ROUNDED * np.maximum(1.0, sizes[:2])).tolist()
        for row, k in reversed(wrong):  # a velocity that jumps misses the position as well
            if self.v[k] in self.jumped:
                continue
            self.jumped.add(self.v[k])
            what, rate = (("position", "velocity"), ("velocity", "acceleration"))[row]
            found = f"its {what} changes by {changes[row, k]:.3g} from t = {t:.6g} s to {t + h:.6g} s"
            found += f", and its {rate} gives another change: the forces of the motion are wrong there"
            fix = "a smooth motion, such as samples (times, q), which get a spline; or a smaller step"
            allowed_motion = f"a {what} without jumps, and the {rate} that is its derivative"
            where = f"{self.robot.name}: prescribed motion of {self.names[k]!r}"
            warn(describe(found, where=where, allowed=allowed_motion, fix=fix))

    def imposed(self, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        """Return states (..., nq) and (..., nv) with the prescribed positions and velocities at a time."""
        now, q, v = self.at(t), q.copy(), v.copy()
        q[..., self.q], v[..., self.v] = now[0, self.v], now[1, self.v]
        return q, v


def _check_name(robot: Robot, name: Any, taken: list[str]) -> None:
    single = [each for each in robot.coordinate_names if each in robot.position_names]
    if name not in single:
        found, allowed = f"prescribed names {name!r}", listing(map(repr, single), like=repr(name))
        raise ModelError(describe(found, where=robot.name, allowed=f"coordinates with one position: {allowed}"))
    if name in taken:
        raise ModelError(describe(f"prescribed has two motions of {name!r}", where=robot.name, allowed="one"))


def _motion(given: Any, count: int, duration: float, where: str) -> Motion:
    """Return the motion of ``count`` coordinates as a function of time, checked where it begins and ends."""
    function = casadi_function(given)
    if function is not None:
        motion = _of_casadi(function, count, where)
    elif callable(given):
        motion = given
    elif isinstance(given, tuple):
        motion = _of_samples(given, count, duration, where)
    else:
        still = real_array(given, where, "position")
        if still.shape not in ((), (count,)):
            raise ModelError(describe(f"positions of shape {still.shape}", where=where, allowed=f"() or ({count},)"))
        if not np.isfinite(still).all():
            raise ModelError(describe(f"positions are {still}", where=where, allowed="finite numbers"))
        rest = np.zeros(count)
        return lambda t: (np.broadcast_to(still, (count,)), rest, rest)

    def checked(t: float) -> tuple[Array, Array, Array]:
        try:
            q, v, a = (np.asarray(each, dtype=float).reshape(count) for each in motion(t))
        except (TypeError, ValueError):
            raise ModelError(describe(f"no numbers at t = {t:.6g} s", where=where, allowed=ALLOWED)) from None
        if not np.isfinite([q, v, a]).all():
            raise ModelError(describe(f"not finite at t = {t:.6g} s", where=where))
        return q, v, a

    for t in (0.0, duration):
        checked(t)
    return checked


def _of_casadi(function: ca.Function, count: int, where: str) -> Motion:
    """Return the motion of a CasADi function of t; velocities and accelerations that it does not give are derived."""
    sizes = [function.size_out(k) for k in range(function.n_out())]
    if function.n_in() != 1 or function.size_in(0) != (1, 1) or sizes not in ([(count, 1)], [(count, 1)] * 3):
        found = f"the function {function.name()} takes {function.n_in()} inputs and gives {sizes}"
        raise ModelError(describe(found, where=where, allowed=f"t -> q or t -> (q, v, a), each of size {(count, 1)}"))
    if function.n_out() == 1:
        t = ca.MX.sym("t")
        q = function(t)
        v = ca.jacobian(q, t)
        function = ca.Function(function.name(), [t], [q, v, ca.jacobian(v, t)])
    return lambda t: tuple(each.full().ravel() for each in function(t))


def _of_samples(given: tuple[Any, ...], count: int, duration: float, where: str) -> Motion:
    """Return the motion through samples: a cubic spline through positions, or quintics through q, v and a."""
    if len(given) not in (2, 4):
        raise ModelError(describe(f"{len(given)} arrays", where=where, allowed="(times, q) or (times, q, v, a)"))
    times = real_array(given[0], where, "times")
    if times.ndim != 1 or len(times) < 2 or not (np.diff(times) > 0).all():
        raise ModelError(describe(f"times of shape {times.shape}", where=where, allowed="2 or more increasing times"))
    if times[0] > 0 or times[-1] < duration * (1 - 1e-12):
        found = f"samples from {times[0]:g} s to {times[-1]:g} s"
        raise ModelError(describe(found, where=where, allowed=f"from 0 to the duration, {duration:g} s"))
    rows = [real_array(each, where, name) for name, each in zip(("q", "v", "a"), given[1:], strict=False)]
    rows = [each[:, None] if each.ndim == 1 and count == 1 else each for each in rows]
    for each in rows:
        if each.shape != (len(times), count):
            allowed = f"({len(times)}, {count}), a row for each time"
            raise ModelError(describe(f"samples of shape {each.shape}", where=where, allowed=allowed))
    return (Curve.through(times, rows[0]) if len(rows) == 1 else Curve(times, *rows)).at
