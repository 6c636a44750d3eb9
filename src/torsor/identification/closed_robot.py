"""A robot with closed loops, or a parallel robot, reduced to its drives, for logs without passive joints.

Its coordinates are the drive coordinates. The positions of all other joints follow from the loop closure. The
forces and the regressor of the mechanism are projected onto the drive motion (``robot.closed.regressor``). Log reading
and identification therefore work as for a tree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array, real_numbers
from torsor.base.errors import ModelError, listing
from torsor.mechanism import Link, Mechanism
from torsor.mechanism.mechanism import units as units_of
from torsor.robot.closed_loops.constrained import written
from torsor.robot.closed_loops.inputs import check_driven
from torsor.robot.closed_loops.regressor import HOME, constrained_regressor, start_posture
from torsor.robot.inertial import Inertial
from torsor.robot.kernels import Out
from torsor.robot.parallel import ParallelRobot
from torsor.robot.parallel.inertial import carriers, spinning, start_of, with_parameters
from torsor.robot.robot import Robot

# Positions of all joints of a closed mechanism along a measured drive motion.
#
# The same drive positions may occur in several assembly modes, but a motion keeps its mode. Successive samples that are
# close to each other therefore form a run: its first sample is assembled from the posture ``start``, and each other
# sample from the previous one.

MAX_DRIVE_STEP = 0.2  # rad or mechanism sizes; a longer drive step begins a new run
ASSEMBLY_REACH = 0.3  # length of drive path that is assembled together, from the sample before it
CACHE_SIZE = 500_000  # number of samples whose positions are cached


class UnclosedError(ModelError):
    """Error at a measured ``sample``: the loops cannot be closed, or the drives do not determine the posture."""

    sample: int


def sample_at(sample: int, times: Array | None) -> str:
    """Return text that identifies a sample, including its time if ``times`` (N,) are known."""
    return f"sample {sample}" if times is None else f"sample {sample} (t = {times[sample]:.6g} s)"


@dataclass(eq=False)
class Closing:
    """Assembly of a ``mechanism`` along drive motions, in the assembly mode of the posture ``start`` (nq,).

    Positions are cached by drive position, so parts of a motion keep the mode of the full motion.
    """

    mechanism: Robot
    start: Array
    _found: dict[bytes, Array] = field(default_factory=dict, repr=False)

    def positions(self, drives: Array, times: Array | None = None) -> Array:
        """Return the positions (N, nq) of all joints from drive positions (N, n) at ``times`` (N,), if known.

        UnclosedError is raised at a sample whose loops cannot be closed or whose drives do not determine the other
        joints.
        """
        keys = [row.tobytes() for row in np.ascontiguousarray(drives, dtype=float)]
        if any(key not in self._found for key in keys):
            q = self._followed(drives, times)
            if len(self._found) + len(q) > CACHE_SIZE:
                self._found.clear()
            self._found.update(zip(keys, q, strict=True))
            return q
        return np.stack([self._found[key] for key in keys]) if keys else np.empty((0, self.mechanism.nq))

    def _followed(self, drives: Array, times: Array | None) -> Array:
        closure = self.mechanism.closed.closure
        steps = np.abs(np.diff(drives, axis=0) / closure.scales[2][closure.active]).max(axis=1, initial=0.0)
        first = np.flatnonzero(np.append(True, steps > MAX_DRIVE_STEP))
        ends = [*first[1:].tolist(), len(drives)]
        q = np.empty((len(drives), self.mechanism.nq))
        q[first] = self._assembled(drives[first], self.start, first.tolist(), times)
        path = np.cumsum(np.append(0.0, steps))
        for begin, end in zip(first.tolist(), ends, strict=True):
            at = begin + 1
            while at < end:
                last = max(at + 1, int(np.searchsorted(path[:end], path[at - 1] + ASSEMBLY_REACH, side="right")))
                q[at:last] = self._assembled(drives[at:last], q[at - 1], range(at, last), times)
                at = last
        self._check_regular(q, times)
        return q

    def _assembled(self, drives: Array, guess: Array, samples: Sequence[int], times: Array | None) -> Array:
        """Return positions (M, nq) near a guess; raise UnclosedError at the first of ``samples`` (M) without any."""
        q = self.mechanism.closed.assemble(drives, guess, "nan")
        lost = np.flatnonzero(np.isnan(q).any(axis=1))
        if lost.size:
            k = int(lost[0])
            why = ModelError(f"the loops cannot be closed with the drives at {drives[k].round(6).tolist()}")
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
        while high - low > 1:  # q[low:high] contains the first singular sample
            middle = (low + high) // 2
            try:
                check_driven(closure, q[low:middle])
                low = middle
            except ModelError as error:
                high, why = middle, error
        raise self._error(why, low, times)

    def _error(self, why: ModelError, sample: int, times: Array | None) -> UnclosedError:
        start = "check the zeros, units and signs of the drives, and the posture 'home' from which the loops are closed"
        where = f"{self.mechanism.name}: {sample_at(sample, times)}"
        made = UnclosedError(why.what, where=where, allowed=why.allowed, fix=why.fix or start)
        return made.but(sample=sample)


CLOSURE_TOLERANCE = 0.2  # rad or mechanism sizes; maximum difference between measured and closed positions


@dataclass(frozen=True, eq=False, repr=False)
class ClosedRobot(Mechanism):
    """The drives of the robot ``given`` with their limits, one joint per drive; see the module docstring.

    ``closing`` assembles all joints. The methods take q, v and a of the drives (..., n).
    """

    given: Robot | ParallelRobot = field(kw_only=True)
    closing: Closing = field(kw_only=True)

    @property
    def mechanism(self) -> Robot:
        """The tree with its loop closures."""
        return self.closing.mechanism

    @property
    def mass(self) -> float:
        """Total mass of all moving links, kg."""
        return self.mechanism.mass

    @property
    def note(self) -> str:
        """A note on how the drive log is processed."""
        passive = [name for name in self.mechanism.coordinate_names if name not in self.coordinate_names]
        return f"{self.name}: {len(passive)} passive coordinates ({listing(passive)}) follow from the closed loops"

    def whole(self, q: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
        """Return q (N, nq), v and a (N, nv) of all joints from q, v and a of the drives (N, n)."""
        at = self.positions(q)
        return at, *self.mechanism.closed.accelerations(at, v, a)

    def spread(self, tau: Array) -> Array:
        """Return the forces (N, nv) of all coordinates from drive forces (N, n); passive coordinates have none."""
        forces = np.zeros((*tau.shape[:-1], self.mechanism.nv))
        forces[..., self.mechanism.closed.closure.active] = tau
        return forces

    def inverse_dynamics(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, external: ArrayLike | None = None, *, out: Out = None
    ) -> Array:
        """Return the drive forces (..., n); ``external`` (..., L, 6) are wrenches on the mechanism's links."""
        return self.mechanism.closed.inverse_dynamics(self.positions(q), v, a, external, out=out)

    @cached_property
    def inertial(self) -> DriveParameters:
        """The mechanism parameters, in which the drive forces are linear."""
        known = carriers(self.given) if isinstance(self.given, ParallelRobot) else ()
        closure, start = self.mechanism.closed.closure, self.closing.start
        return DriveParameters(closure, self._replaced, known, start, _positions=self.positions)

    def _replaced(self, values: ArrayLike) -> Self:
        """Return the drives of the robot with the parameters ``values`` (p,).

        If the loops are closed in a different mode, that mode becomes the new home posture.
        """
        whole = self.mechanism.inertial.replaced(values)
        if isinstance(self.given, ParallelRobot):
            made = with_parameters(self.given, whole)
            robot: Robot | ParallelRobot = made if self.own_mode else _at_home(made, self.first)
        else:
            robot = whole = whole if self.own_mode else whole.with_posture(HOME, self.first)
        return replace(self, given=robot, closing=Closing(whole, self.closing.start))

    def to(self, dtype: Any = None) -> Self:
        """Return the robot unchanged, because drives are computed in double precision."""
        return self

    def positions(self, q: ArrayLike) -> Array:
        """Return the positions (..., nq) of all joints from the drive positions (..., n)."""
        drives = np.asarray(q, dtype=float)
        if drives.shape[-1:] != (self.nq,):
            places = self.mechanism.closed.closure.active_positions
            allowed = f"(..., {self.nq}): those of the drives, {listing(self.coordinate_names)}"
            fix = f"select the drives, q[..., {places}], and likewise for v and a"
            raise ModelError(f"has shape {drives.shape}", argument="q", where=self.name, allowed=allowed, fix=fix)
        positions = self.closing.positions(drives.reshape(-1, self.nq))
        return positions.reshape(*drives.shape[:-1], positions.shape[-1])

    @cached_property
    def first(self) -> Array:
        """The closed posture (nq,) near ``start``."""
        start, closed = self.closing.start, self.mechanism.closed
        return closed.assemble(start[closed.closure.active_positions], start)

    @cached_property
    def own_mode(self) -> bool:
        """Whether the loops close in the same mode when positions of passive joints are not measured."""
        drives = self.first[None, self.mechanism.closed.closure.active_positions]
        try:
            positions = Closing(self.mechanism, _start(self.given, self.mechanism)).positions(drives)
        except UnclosedError:
            return False
        return bool(self._apart(positions, self.first[None]).max() <= CLOSURE_TOLERANCE)

    def _apart(self, q: Array, other: Array) -> Array:
        """Return the differences (N, nv) between positions (N, nq), in rad or mechanism sizes, modulo full turns."""
        apart = self.mechanism.difference(q, other)
        turns = np.array(units_of(self.mechanism)[1]) == "rad"
        apart[:, turns] -= 2 * np.pi * np.round(apart[:, turns] / (2 * np.pi))
        return np.abs(apart / self.mechanism.closed.closure.scales[2])

    def drive_columns(self, what: str, values: Array) -> Array:
        """Return the drive columns (N, n), from ``values`` of the drives or of all coordinates.

        ``what`` names the values, such as "q". Forces "tau" of passive coordinates must be zero.
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
            message = f"tau is not zero on the passive coordinate {driven!r}"
            raise ModelError(message, value=driven, where=self.name, fix=fix)
        return values[..., places]

    def of_drives(self, data: Any) -> dict[str, Any]:
        """Return the ``Measurements`` fields of the drives from data of the drives or of all coordinates."""
        fields = {name: getattr(data, name) for name in ("q", "v", "a", "tau", "weights", "temperature")}
        for name, values in fields.items():
            if values is not None and values.ndim == 2:  # one temperature (N,) for all drives is kept
                fields[name] = self.drive_columns(name, values)
        return fields

    def check_closure(self, q: Array, measured: Array, times: Array | None) -> None:
        """Raise ModelError at the first sample of drive positions q (N, n) at which the loops cannot be closed.

        If all positions are ``measured`` (N, nq), the passive joints must agree with the closed loops. The message
        states the number and time of the sample.
        """
        closed = self.closing.positions(q, times)
        if measured.shape != closed.shape:
            return
        apart = self._apart(closed, measured)
        beyond = np.flatnonzero((apart > CLOSURE_TOLERANCE).any(axis=1))
        if beyond.size:
            k = int(beyond[0])
            j = int(np.argmax(apart[k]))
            what = f"{self.mechanism.coordinate_names[j]!r} is {apart[k, j]:.3g} rad or mechanism sizes away from "
            what += "its position in the closed loops"
            fix = "check the zero, sign and unit of its column, and the robot geometry"
            if k == 0 and isinstance(self.given, Robot):
                posture = f"robot.with_posture({HOME!r}, {measured[k].round(6).tolist()})"
                fix = f"{fix}; if the robot is assembled in another mode, use {posture}"
            raise UnclosedError(what, where=f"{self.name}: {sample_at(k, times)}", fix=fix).but(sample=k)


@dataclass(frozen=True, eq=False, repr=False)
class DriveParameters(Inertial[ClosedRobot]):
    """The parameters (p,) of a closed mechanism, in which its drive forces (..., n) are linear.

    ``_positions`` returns the positions of all joints from those of the drives.
    """

    _positions: Callable[[ArrayLike], Array] = field(kw_only=True)

    def regressor(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, out: Out = None) -> Array:
        """Return the regressor (..., n, p) of the drive forces, from q, v and a of the drives."""
        return written(constrained_regressor(self._closure, self._positions(q), v, a), out, "regressor")


MeasuredRobot = Robot | ClosedRobot
"""A robot as it appears in logs: a tree, or the drives of a closed mechanism."""


def closed_robot(robot: Robot | ParallelRobot, start: ArrayLike | None = None) -> ClosedRobot:
    """Return the drives of a robot with loops or of a parallel robot.

    The loops are closed from ``start`` (nq,), by default the robot's posture "home", the home of a parallel robot, or a
    computed closed posture. Drives must be coordinates of joints with one degree of freedom, and there must be as many
    as the mechanism has degrees of freedom.
    """
    if isinstance(robot, ParallelRobot) and spinning(robot):
        message = f"leg {spinning(robot)!r} can spin about its axis, and the drives do not determine the spin"
        raise ModelError(message, where=robot.name, fix="replace one ball joint with a universal joint")
    whole = (robot.as_robot() if isinstance(robot, ParallelRobot) else robot).to(dtype="float64")
    closure, where = whole.closed.closure, whole.name
    if closure.velocity_rows.any():
        message = "the robot has rolling wheels, so drive positions do not determine its position"
        raise ModelError(message, where=where, allowed="loops of cut joints and couplings")
    for name in whole.active:
        if not any(joint.name == name and joint.nv == joint.nq == 1 for joint in whole.joints):
            message = f"the active coordinate {name!r} does not belong to a joint with one degree of freedom"
            raise ModelError(message, value=name, where=where, fix="drive other coordinates: robot.with_active([...])")
    if len(closure.active) > len(closure.driven_choice.independent):
        message = f"there are {len(closure.active)} drives for {len(closure.driven_choice.independent)} degrees of "
        message += "freedom"
        fix = "drive forces are not unique; select fewer drives: robot.with_active([...])"
        raise ModelError(message, where=where, fix=fix)
    start = _start(robot, whole) if start is None else start
    joints = [
        replace(whole.joint(name), parent="base", child=f"{name}/drive", coordinate="", spring=None, motor=None)
        for name in whole.active
    ]
    links = [Link(joint.child) for joint in joints]
    closing = Closing(whole, np.array(start, dtype=float))
    return ClosedRobot(where, Link("base"), tuple(links), tuple(joints), given=robot, closing=closing)


def _start(robot: Robot | ParallelRobot, mechanism: Robot) -> Array:
    """Return the default posture (nq,) from which the loops of a robot are closed."""
    return start_of(robot) if isinstance(robot, ParallelRobot) else start_posture(mechanism.closed.closure)


def _at_home(robot: ParallelRobot, q: Array) -> ParallelRobot:
    """Return a parallel robot with the home posture q (nq,): the platform pose, followed by the legs."""
    ends = np.cumsum([len(robot.home), *(leg.robot.nq for leg in robot.legs)])
    pose, *parts = np.split(q, ends[:-1])
    legs = tuple(replace(leg, home=part) for leg, part in zip(robot.legs, parts, strict=True))
    return replace(robot, home=pose, legs=legs)


def measured_robot(robot: MeasuredRobot | ParallelRobot, data: Any = None, where: str = "") -> MeasuredRobot:
    """Return a robot as it appears in logs: a tree unchanged, or the drives of a robot with loops or a parallel robot.

    If ``data`` (``Measurements``, a ``Trajectory`` or a tuple q, v, a, tau) contain the positions of all joints, the
    loops are closed from the first sample. If ``robot`` is not a robot, ModelError is raised; ``where`` names the
    caller in the message.
    """
    if not isinstance(robot, MeasuredRobot | ParallelRobot):
        raise ModelError(argument="robot", value=robot, where=where, allowed="a torsor.Robot")
    if not isinstance(robot, ParallelRobot) and not (isinstance(robot, Robot) and robot.loops):
        return robot
    made = closed_robot(robot)
    q = data[0] if isinstance(data, (tuple, list)) and len(data) == 4 else getattr(data, "q", None)
    positions = None if q is None else real_numbers(q)  # Measurements raises ModelError for other values
    if positions is None or positions.ndim < 2 or positions.shape[-1] != made.mechanism.nq:
        return made
    every = positions.astype(float).reshape(-1, made.mechanism.nq)
    return closed_robot(robot, every[0]) if len(every) and np.isfinite(every).all() else made


def drives_of(robot: MeasuredRobot, what: str, values: Array) -> Array:
    """Return the drive columns (N, n) of a closed robot, or all columns of a tree."""
    return robot.drive_columns(what, values) if isinstance(robot, ClosedRobot) else values


def rubbing_joints(robot: MeasuredRobot) -> set[str]:
    """Return the joints that can have friction models: those with one position, one velocity and the ratio 1."""
    return {joint.name for joint in robot.joints if joint.nq == joint.nv == 1 and joint.ratio == 1}


def with_friction_models(robot: MeasuredRobot, models: Mapping[str, str]) -> Robot | ParallelRobot:
    """Return the measured robot with friction models of joints, given as text in their velocities."""
    if not models:
        return robot.given if isinstance(robot, ClosedRobot) else robot
    tree = whole(robot)
    for name, text in models.items():
        tree = tree.with_friction(name, friction_model=text)
    if isinstance(robot, ClosedRobot) and isinstance(robot.given, ParallelRobot):
        return with_parameters(robot.given, tree)
    return tree


def driven_motion(robot: MeasuredRobot, q: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
    """Return q, v, a (..., n) of the drives of a closed robot from data of the drives or of all coordinates.

    Positions of passive joints must agree with the closed loops. The motion of a tree is returned unchanged.
    """
    if not isinstance(robot, ClosedRobot):
        return q, v, a
    motion = robot.drive_columns("q", q), robot.drive_columns("v", v), robot.drive_columns("a", a)
    if q.shape != motion[0].shape:
        robot.check_closure(motion[0].reshape(-1, robot.nq), q.reshape(-1, q.shape[-1]), None)
    return motion


def is_excitable(robot: MeasuredRobot) -> bool:
    """Return whether ``excite`` supports a robot: nq = nv, rigid joints and no loops."""
    return not isinstance(robot, ClosedRobot) and not robot.loops and robot.nq == robot.nv and not robot.elastic


def notes_of(robot: MeasuredRobot) -> tuple[str, ...]:
    """Return notes on the log of a robot: for a closed robot, how passive joints are computed."""
    return (robot.note,) if isinstance(robot, ClosedRobot) else ()


def whole(robot: MeasuredRobot) -> Robot:
    """Return the full robot with all links and joints, which is the mechanism for the drives of a closed robot."""
    return robot.mechanism if isinstance(robot, ClosedRobot) else robot
