"""A robot with closed loops, or a parallel robot, as its drives show it: for logs that have nothing else.

Its coordinates are those of the drives. Positions of all other joints follow from the closure of the loops, and forces
and regressor are those of the mechanism, projected on the motion of the drives (``robot.closed.regressor``). So
everything that reads logs and identifies trees works for it too: see ``torsor.robot.protocols``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array, real_numbers
from torsor.base.errors import ModelError, listing
from torsor.mechanism import Link, Mechanism
from torsor.mechanism.mechanism import units as units_of
from torsor.robot.base_parameters import BaseParameters
from torsor.robot.closed_loops.constrained import written
from torsor.robot.closed_loops.inputs import check_driven
from torsor.robot.closed_loops.regressor import HOME, closed_base_parameters, start_posture
from torsor.robot.kernels import Out
from torsor.robot.parallel import ParallelRobot
from torsor.robot.parallel.inertial import carriers, spinning, start_of, with_parameters
from torsor.robot.robot import Robot

# Positions of all joints of a closed mechanism along a measured motion of its drives.
#
# Positions of the drives alone may belong to several assembly modes; a motion keeps its mode. So samples that follow
# each other closely are a run: its first sample is assembled from the posture ``start``, all others from those before
# them.

STEP = 0.2  # rad or sizes of the mechanism: a longer step of a drive begins another run
REACH = 0.3  # path of the drives that is assembled at once, from the sample before it
KEPT = 500_000  # samples whose positions are kept


class UnclosedError(ModelError):
    """Raised where the loops cannot be closed at a measured ``sample``, or where the drives do not determine it."""

    sample: int


def sample_at(sample: int, times: Array | None) -> str:
    """Return the words for a sample, with its time if ``times`` (N,) are known."""
    return f"sample {sample}" if times is None else f"sample {sample} (t = {times[sample]:.6g} s)"


@dataclass(eq=False)
class Closing:
    """The assembly of a ``mechanism`` along motions of its drives, in the mode of the posture ``start`` (nq,).

    Positions that were found are kept, by those of the drives: parts of a motion have the mode that the whole has.
    """

    mechanism: Robot
    start: Array
    _found: dict[bytes, Array] = field(default_factory=dict, repr=False)

    def positions(self, drives: Array, times: Array | None = None) -> Array:
        """Return the positions (N, nq) of all joints from those of the drives (N, n), at ``times`` (N,), if known.

        A sample whose loops cannot be closed, or where the drives do not determine the other joints, is an error.
        """
        keys = [row.tobytes() for row in np.ascontiguousarray(drives, dtype=float)]
        if any(key not in self._found for key in keys):
            q = self._followed(drives, times)
            if len(self._found) + len(q) > KEPT:
                self._found.clear()
            self._found.update(zip(keys, q, strict=True))
            return q
        return np.stack([self._found[key] for key in keys]) if keys else np.empty((0, self.mechanism.nq))

    def _followed(self, drives: Array, times: Array | None) -> Array:
        closure = self.mechanism.closed.closure
        steps = np.abs(np.diff(drives, axis=0) / closure.scales[2][closure.active]).max(axis=1, initial=0.0)
        first = np.flatnonzero(np.append(True, steps > STEP))
        ends = [*first[1:].tolist(), len(drives)]
        q = np.empty((len(drives), self.mechanism.nq))
        q[first] = self._assembled(drives[first], self.start, first.tolist(), times)
        path = np.cumsum(np.append(0.0, steps))
        for begin, end in zip(first.tolist(), ends, strict=True):
            at = begin + 1
            while at < end:
                last = max(at + 1, int(np.searchsorted(path[:end], path[at - 1] + REACH, side="right")))
                q[at:last] = self._assembled(drives[at:last], q[at - 1], range(at, last), times)
                at = last
        self._check_regular(q, times)
        return q

    def _assembled(self, drives: Array, guess: Array, samples: Sequence[int], times: Array | None) -> Array:
        """Return positions (M, nq) near a guess; the first of the ``samples`` (M) that has none is an error."""
        q = self.mechanism.closed.assemble(drives, guess, "nan")
        lost = np.flatnonzero(np.isnan(q).any(axis=1))
        if lost.size:
            k = int(lost[0])
            why = ModelError(f"the loops do not close with the drives at {drives[k].round(6).tolist()}")
            try:
                self.mechanism.closed.assemble(drives[k], guess)
            except ModelError as error:
                why = error
            raise self._error(why, samples[k], times)
        return q

    def _check_regular(self, q: Array, times: Array | None) -> None:
        """Raise ModelError at the first sample where the drives do not determine the motion of the other joints."""
        closure, low, high = self.mechanism.closed.closure, 0, len(q)
        try:
            return check_driven(closure, q)
        except ModelError as error:
            why = error
        while high - low > 1:  # q[low:high] has the first singular sample
            middle = (low + high) // 2
            try:
                check_driven(closure, q[low:middle])
                low = middle
            except ModelError as error:
                high, why = middle, error
        raise self._error(why, low, times)

    def _error(self, why: ModelError, sample: int, times: Array | None) -> UnclosedError:
        start = "check zeros, units and signs of the drives, and the posture 'home' from which the loops are closed"
        where = f"{self.mechanism.name}: {sample_at(sample, times)}"
        made = UnclosedError(why.what, where=where, allowed=why.allowed, fix=why.fix or start)
        return made.but(sample=sample)


SENSED = 0.2  # rad or sizes: largest difference of a measured position from that of the closed loops


@dataclass(frozen=True, eq=False, repr=False)
class ClosedRobot(Mechanism):
    """The drives of the robot ``given``: one joint for each, with its limits; see the head of the module.

    ``closing`` assembles all joints. Arguments q, v and a of its methods are those of the drives (..., n).
    """

    given: Robot | ParallelRobot = field(kw_only=True)
    closing: Closing = field(kw_only=True)

    @property
    def mechanism(self) -> Robot:
        """The tree with its loops."""
        return self.closing.mechanism

    @property
    def mass(self) -> float:
        """Mass of all links, kg."""
        return self.mechanism.mass

    @property
    def note(self) -> str:
        """What is done to the log of the drives."""
        passive = [name for name in self.mechanism.coordinate_names if name not in self.coordinate_names]
        return f"{self.name}: {len(passive)} passive coordinates ({listing(passive)}) follow from the closed loops"

    def whole(self, q: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
        """Return q (N, nq), v and a (N, nv) of all joints, from those of the drives (N, n)."""
        at = self.positions(q)
        return at, *self.mechanism.closed.accelerations(at, v, a)

    def spread(self, tau: Array) -> Array:
        """Return the forces (N, nv) of all coordinates from those of the drives (N, n): passive ones have none."""
        found = np.zeros((*tau.shape[:-1], self.mechanism.nv))
        found[..., self.mechanism.closed.closure.active] = tau
        return found

    def inverse_dynamics(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, external: ArrayLike | None = None, *, out: Out = None
    ) -> Array:
        """Return the forces (..., n) of the drives; ``external`` (..., L, 6) are wrenches on the mechanism's links."""
        return self.mechanism.closed.inverse_dynamics(self.positions(q), v, a, external, out=out)

    @cached_property
    def inertial(self) -> DriveParameters:
        """The parameters of the mechanism, in which the forces of the drives are linear."""
        return DriveParameters(self)

    def to(self, dtype: Any = None) -> Self:
        """Return the same drives: they are computed in double precision."""
        return self

    def positions(self, q: ArrayLike) -> Array:
        """Return the positions (..., nq) of all joints from those of the drives (..., n)."""
        drives = np.asarray(q, dtype=float)
        if drives.shape[-1:] != (self.nq,):
            places = self.mechanism.closed.closure.active_positions
            allowed = f"(..., {self.nq}): those of the drives, {listing(self.coordinate_names)}"
            fix = f"from those of all coordinates, take q[..., {places}], and likewise v and a"
            raise ModelError(f"has shape {drives.shape}", argument="q", where=self.name, allowed=allowed, fix=fix)
        found = self.closing.positions(drives.reshape(-1, self.nq))
        return found.reshape(*drives.shape[:-1], found.shape[-1])

    @cached_property
    def first(self) -> Array:
        """The closed posture (nq,) at ``start``."""
        start, closed = self.closing.start, self.mechanism.closed
        return closed.assemble(start[closed.closure.active_positions], start)

    @cached_property
    def own_mode(self) -> bool:
        """Whether the robot, without measured positions of its passive joints, is closed in the same mode."""
        drives = self.first[None, self.mechanism.closed.closure.active_positions]
        try:
            own = Closing(self.mechanism, _start(self.given, self.mechanism)).positions(drives)
        except UnclosedError:
            return False
        return bool(self._apart(own, self.first[None]).max() <= SENSED)

    def _apart(self, q: Array, other: Array) -> Array:
        """Return how far (N, nv) positions (N, nq) are from others, rad or sizes; whole turns do not count."""
        apart = self.mechanism.difference(q, other)
        turns = np.array(units_of(self.mechanism)[1]) == "rad"
        apart[:, turns] -= 2 * np.pi * np.round(apart[:, turns] / (2 * np.pi))
        return np.abs(apart / self.mechanism.closed.closure.scales[2])

    def drive_columns(self, what: str, values: Array) -> Array:
        """Return the columns (N, n) of the drives, from ``values`` of the drives or of all coordinates.

        ``what`` names the values, such as "q". Forces "tau" of passive coordinates, which have no drive, must be zero.
        """
        mechanism, closure = self.mechanism, self.mechanism.closed.closure
        count, places = (mechanism.nq, closure.active_positions) if what == "q" else (mechanism.nv, closure.active)
        columns = values.shape[-1] if values.ndim else 0
        if columns not in (self.nv, count):
            allowed = f"{self.nv}, of the drives ({listing(self.coordinate_names)}), or {count}, of all coordinates"
            raise ModelError(f"has {columns} columns", argument=what, where=self.name, allowed=allowed)
        if columns == self.nv:
            return values
        passive = [k for k in range(count) if k not in places and values[..., k].any()] if what == "tau" else []
        if passive:
            driven = mechanism.coordinate_names[passive[0]]
            fix = f"make it active: robot.with_active([..., {driven!r}])"
            raise ModelError(f"a force acts on the passive {driven!r}", value=driven, where=self.name, fix=fix)
        return values[..., places]

    def of_drives(self, data: Any) -> dict[str, Any]:
        """Return what ``Measurements`` of the drives have, from those of them or of all coordinates."""
        found = {name: getattr(data, name) for name in ("q", "v", "a", "tau", "weights", "temperature")}
        for name, values in found.items():
            if values is not None and values.ndim == 2:  # one temperature (N,) of all drives stays as it is
                found[name] = self.drive_columns(name, values)
        return found

    def check_closure(self, q: Array, measured: Array, times: Array | None) -> None:
        """Raise ModelError for a sample of the drives q (N, n) that cannot be closed, with its number and time.

        Where all positions are ``measured`` (N, nq), those of passive joints must agree with the closed loops: the
        first sample where they do not is named.
        """
        found = self.closing.positions(q, times)
        if measured.shape != found.shape:
            return
        apart = self._apart(found, measured)
        beyond = np.flatnonzero((apart > SENSED).any(axis=1))
        if beyond.size:
            k = int(beyond[0])
            j = int(np.argmax(apart[k]))
            what = f"{self.mechanism.coordinate_names[j]!r} is {apart[k, j]:.3g} rad or sizes of the mechanism from "
            what += "where the closed loops have it"
            fix = "check zero, sign and unit of its column, and the geometry of the robot"
            if k == 0 and isinstance(self.given, Robot):
                posture = f"robot.with_posture({HOME!r}, {measured[k].round(6).tolist()})"
                fix = f"{fix}; if it is assembled in another mode, {posture}"
            raise UnclosedError(what, where=f"{self.name}: {sample_at(k, times)}", fix=fix).but(sample=k)


@dataclass(frozen=True, eq=False, repr=False)
class DriveParameters:
    """The parameters (p,) of a closed mechanism, in which the forces (..., n) of its drives are linear.

    The arguments q, v and a of methods are those of the drives.
    """

    _drives: ClosedRobot

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters of the mechanism."""
        return self._drives.mechanism.inertial.names

    @property
    def values(self) -> Array:
        """The parameters (p,) of the mechanism."""
        return self._drives.mechanism.inertial.values

    def regressor(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, out: Out = None) -> Array:
        """Return the regressor (..., n, p) of the forces of the drives."""
        closed = self._drives.mechanism.closed
        return written(closed.regressor(self._drives.positions(q), v, a), out, "regressor")

    def base(
        self, seed: int = 0, among: Sequence[str] = ("*",), measured: Sequence[str] | None = None
    ) -> BaseParameters:
        """Return the smallest set of parameters that gives all forces of the drives."""
        given, closing = self._drives.given, self._drives.closing
        known = carriers(given) if isinstance(given, ParallelRobot) else ()
        closure = self._drives.mechanism.closed.closure
        return closed_base_parameters(closure, seed, among, measured, known, closing.start)

    def replaced(self, values: ArrayLike) -> ClosedRobot:
        """Return the drives of the robot with other parameters (p,).

        Where the loops are not closed in the mode of the robot itself, that mode is the new home.
        """
        drives = self._drives
        whole = drives.mechanism.inertial.replaced(values)
        if isinstance(drives.given, ParallelRobot):
            made = with_parameters(drives.given, whole)
            given: Robot | ParallelRobot = made if drives.own_mode else _at_home(made, drives.first)
        else:
            given = whole = whole if drives.own_mode else whole.with_posture(HOME, drives.first)
        return replace(drives, given=given, closing=Closing(whole, drives.closing.start))


MeasuredRobot = Robot | ClosedRobot
"""A robot as logs show it: a tree, or the drives of a closed mechanism."""


def closed_robot(robot: Robot | ParallelRobot, start: ArrayLike | None = None) -> ClosedRobot:
    """Return the drives of a robot with loops or of a parallel robot.

    The loops are closed from ``start`` (nq,): by default the posture "home" of the robot, the home of a parallel robot,
    or one that is found. Drives are coordinates of joints with one degree of freedom, as many as the mechanism has.
    """
    if isinstance(robot, ParallelRobot) and spinning(robot):
        found = f"leg {spinning(robot)!r} can spin about its line, which the drives do not show"
        raise ModelError(found, where=robot.name, fix="use a universal joint in place of one ball")
    whole = (robot.as_robot() if isinstance(robot, ParallelRobot) else robot).to(dtype="float64")
    closure, where = whole.closed.closure, whole.name
    if closure.velocity_rows.any():
        found = "wheels roll: positions of the drives do not determine those of the robot"
        raise ModelError(found, where=where, allowed="loops of cut joints and couplings")
    for name in whole.active:
        if not any(joint.name == name and joint.nv == joint.nq == 1 for joint in whole.joints):
            found = f"the active coordinate {name!r} is none of a joint with one degree of freedom"
            raise ModelError(found, value=name, where=where, fix="drive other coordinates: robot.with_active([...])")
    if len(closure.active) > len(closure.driven_choice.independent):
        found = f"{len(closure.active)} drives for {len(closure.driven_choice.independent)} degrees of freedom"
        fix = "their forces are not unique: leave out some, robot.with_active([...])"
        raise ModelError(found, where=where, fix=fix)
    if start is None:
        start = _start(robot, whole)
    joints = [
        replace(whole.joint(name), parent="base", child=f"{name}/drive", coordinate="", spring=None, motor=None)
        for name in whole.active
    ]
    links = [Link(joint.child) for joint in joints]
    closing = Closing(whole, np.array(start, dtype=float))
    return ClosedRobot(where, Link("base"), tuple(links), tuple(joints), given=robot, closing=closing)


def _start(robot: Robot | ParallelRobot, mechanism: Robot) -> Array:
    """Return the posture (nq,) from which the loops of a robot are closed where no other is given."""
    return start_of(robot) if isinstance(robot, ParallelRobot) else start_posture(mechanism.closed.closure)


def _at_home(robot: ParallelRobot, q: Array) -> ParallelRobot:
    """Return a parallel robot whose home is q (nq,): pose of the platform, then the legs."""
    ends = np.cumsum([len(robot.home), *(leg.robot.nq for leg in robot.legs)])
    pose, *parts = np.split(q, ends[:-1])
    legs = tuple(replace(leg, home=part) for leg, part in zip(robot.legs, parts, strict=True))
    return replace(robot, home=pose, legs=legs)


def measured_robot(robot: MeasuredRobot | ParallelRobot, data: Any = None, where: str = "") -> MeasuredRobot:
    """Return a robot as logs show it: a tree itself, or the drives of a robot with loops or a parallel robot.

    Anything else is refused; ``where`` is the caller in the message.
    Where ``data`` (``Measurements``, a ``Trajectory`` or a tuple q, v, a, tau) have the positions of all joints, the
    loops are closed from the first of them.
    """
    if not isinstance(robot, MeasuredRobot | ParallelRobot):
        raise ModelError(argument="robot", value=robot, where=where, allowed="a torsor.Robot")
    if not isinstance(robot, ParallelRobot) and not (isinstance(robot, Robot) and robot.loops):
        return robot
    made = closed_robot(robot)
    q = data[0] if isinstance(data, (tuple, list)) and len(data) == 4 else getattr(data, "q", None)
    found = None if q is None else real_numbers(q)  # others are refused by Measurements
    if found is None or found.ndim < 2 or found.shape[-1] != made.mechanism.nq or not np.isfinite(found).all():
        return made
    every = found.astype(float).reshape(-1, made.mechanism.nq)
    return closed_robot(robot, every[0]) if len(every) else made


def drives_of(robot: MeasuredRobot, what: str, values: Array) -> Array:
    """Return the columns (N, n) of the drives of a closed robot; those of a tree are all."""
    return robot.drive_columns(what, values) if isinstance(robot, ClosedRobot) else values


def driven_motion(robot: MeasuredRobot, q: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
    """Return q, v, a (..., n) of the drives of a closed robot, from those of them or of all coordinates.

    Positions of passive joints must agree with the closed loops. The motion of a tree is itself.
    """
    if not isinstance(robot, ClosedRobot):
        return q, v, a
    own = robot.drive_columns("q", q), robot.drive_columns("v", v), robot.drive_columns("a", a)
    if q.shape != own[0].shape:
        robot.check_closure(own[0].reshape(-1, robot.nq), q.reshape(-1, q.shape[-1]), None)
    return own


def is_excitable(robot: MeasuredRobot) -> bool:
    """Return whether ``excite`` has motions for a robot: one with plain coordinates, stiff joints and no loops."""
    return not isinstance(robot, ClosedRobot) and not robot.loops and robot.nq == robot.nv and not robot.elastic


def notes_of(robot: MeasuredRobot) -> tuple[str, ...]:
    """Return what is to be said of the log of a robot: of a closed one, where its passive joints come from."""
    return (robot.note,) if isinstance(robot, ClosedRobot) else ()


def whole(robot: MeasuredRobot) -> Robot:
    """Return the robot with all of its links and joints: of the drives of a closed one, the mechanism."""
    return robot.mechanism if isinstance(robot, ClosedRobot) else robot
