"""A robot with sliders, its resulting positions, and the swing motion."""

from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError
from torsor.mechanism import Wheel
from torsor.mechanism.mechanism import default_posture
from torsor.robot.closed_loops import AssemblyError
from torsor.robot.parallel import ParallelRobot
from torsor.robot.robot import Robot
from torsor.simulation.timeline import FREE_COORDINATES
from torsor.spatial import quaternion_exp
from torsor.view.live.shots import Still
from torsor.view.scene import Scene, home, upwards
from torsor.view.scene.sliders import sliders

MAX_SWINGS = {"rad": 0.6, "m": 0.15}  # largest swing of a coordinate; lengths are in sizes of the robot
RANGE_SHARE = 0.2  # largest swing to each side, in ranges of the coordinate
CLOSED_SHARE = 0.3  # part of that swing for closed loops, whose range of assembly is narrow
SWING_SHARES = (1.0, 0.7, 0.5, 0.35, 0.25, 0.15)  # of that swing, the first that stays above the floor
FLOOR_TOLERANCE = 0.02  # how far a swing may reach below the first posture, in sizes of the robot
PERIOD = 12.0  # s: of the whole swing at full speed
TURNS = (3, 2, 4)  # periods of the coordinates, in turn, in one period of the swing
SAMPLE_TIMES = np.linspace(0.0, PERIOD, 49)  # s: instants that the room and the limits of a swing are checked at
STEP = 1e-4  # s: of the differences that give velocities and accelerations
MIN_PACE = 0.1  # speed of a swing whose drives can hardly hold the robot


class Posture:
    """A robot in a posture, which ``move`` changes. ``note`` is a message for the panel.

    Example:
        >>> arm = Posture(torsor.library.two_link())
        >>> [slide.name for slide in arm.slides]
        ['joint1', 'joint2']
        >>> arm.move([0.5, 0.0]).q.tolist()
        [0.5, 0.0]
    """

    def __init__(self, source: Robot | ParallelRobot, scene: Scene | None = None):
        self.scene = Scene.of(source) if scene is None else scene
        robot = self.scene.robot
        for loop in robot.loops:
            if isinstance(loop, Wheel):  # a wheel restricts velocities, not positions
                robot = robot.without_loop(loop.name)
        self.robot, self.note = robot.to(device="casadi"), ""
        self.home = self._first(source)
        if self.robot.loops and not self.robot.active:
            self.note = self.note or "There are no sliders: the robot has closed loops and no active coordinates."
        self.slides = sliders(self.robot, self.home, self.scene.size)
        self.q, self.values = self.home, tuple(slide.start for slide in self.slides)
        self._rates: tuple[Array, Array] | None = None

    @property
    def shot(self) -> Still:
        """The instant to show."""
        return Still(self.scene, self.robot, self.q, self._rates)

    def _first(self, source: Robot | ParallelRobot) -> Array:
        """Return the first posture: the home posture, with loops closed."""
        robot = self.robot
        if isinstance(source, ParallelRobot):
            return np.concatenate([source.home, source.leg_home])
        if not robot.loops:
            return home(robot)
        q = np.clip(default_posture(robot), robot.lower, robot.upper)
        try:
            return robot.closed.positions(q)
        except ModelError as error:
            # All coordinates then have sliders, which show where the loops are open, and no search is repeated.
            self.note = f"Loops are open: {error}"
            self.robot = robot.open_tree().to(device="casadi")
            return q

    def move(self, values: list[float] | tuple[float, ...]) -> Still:
        """Move the sliders, which passive coordinates follow. For unreachable values, show the nearest posture."""
        self._rates = None
        pairs = [(v if np.isfinite(v) else slide.start, slide) for v, slide in zip(values, self.slides, strict=True)]
        self.values = tuple(float(np.clip(value, slide.low, slide.high)) for value, slide in pairs)
        if self.robot.loops:
            self._assemble(self.values)
        else:
            self.q = self._positions(self.values)
        return self.shot

    def _positions(self, values: tuple[float, ...]) -> Array:
        q, vectors = self.home.copy(), dict[int, Array]()
        for value, slide in zip(values, self.slides, strict=True):
            if slide.turn is None:
                q[slide.at] = value
            else:
                vectors.setdefault(slide.at, np.zeros(3))[slide.turn] = value
        for at, vector in vectors.items():
            q[at : at + 4] = quaternion_exp(vector)
        for joint, slot in zip(self.robot.joints, self.robot.coordinates, strict=True):
            if joint.name in self.robot.motor_coordinates:  # at rest, the spring of the motor is relaxed
                q[self.robot.motor_coordinates[joint.name].q] = q[slot.q]
        return q

    def _assemble(self, values: tuple[float, ...]) -> None:
        try:
            self.q, self.note = self.robot.closed.assemble(np.array(values), guess=self.q), ""
        except AssemblyError as error:
            pairs = zip(self.robot.active, error.q_active, strict=True)
            near = ", ".join(f"{name} {value:.4g}" for name, value in pairs)
            self.q, self.note = error.q, f"The loops cannot be closed there. The nearest posture is shown: {near}."
        except ModelError as error:
            self.note = f"The loops cannot be closed there: {error}"

    def sway(self, time: float) -> Still:
        """Move to time ``time`` (s) of the swing, in which coordinates oscillate with different periods.

        The velocities and accelerations of the swing are included in energies and forces. A swing that would exceed
        the velocity or force limit of a drive is slowed down.
        """
        pace = self._pace
        self.move(self._swung(pace * time))
        v, a = self._rates_at(pace * time)
        self._rates = pace * v, pace**2 * a
        return self.shot

    @property
    def period(self) -> float:
        """The period (s) with which the swing repeats after its start from rest."""
        return PERIOD / self._pace

    def swing(self, times: Array) -> tuple[Array, Array, Array]:
        """Return positions (T, nq), velocities and accelerations (T, nv) of the swing at times (T,), in s."""
        if self.robot.loops:
            shots, closed = [self.sway(float(time)) for time in times], self.robot.closed
            q, v, a = (np.stack([getattr(shot, name) for shot in shots]) for name in ("q", "v", "a"))
            return q, *closed.accelerations(q, v, a)
        pace = self._pace
        low, q, high = (
            np.stack([self._positions(tuple(self._swung(pace * time + step))) for time in times])
            for step in (-STEP, 0.0, STEP)
        )
        before, after = self.robot.difference(low, q), self.robot.difference(q, high)
        return q, pace * (before + after) / (2 * STEP), pace**2 * (after - before) / STEP**2

    def swings(self) -> list[Array]:
        """Return sample postures of the swing, which show how much space it needs, or none with closed loops."""
        if self.robot.loops:
            return []
        return [self._positions(tuple(self._swung(time))) for time in SAMPLE_TIMES]

    @cached_property
    def _floats(self) -> bool:
        """Whether the robot has joints besides a floating base."""
        return self.robot.joints[0].type == "free" and len(self.slides) > FREE_COORDINATES

    @cached_property
    def _share(self) -> float:
        """Return the fraction of the full swing that keeps the robot above the lowest point of its first posture."""
        if self.robot.loops:
            return CLOSED_SHARE
        up = upwards(self.robot)
        floor = float(up @ np.where(up > 0, *self.scene.corners(self.home)))
        for share in SWING_SHARES:
            postures = np.stack([self._positions(tuple(self._swung(time, share))) for time in SAMPLE_TIMES])
            if float(up @ np.where(up > 0, *self.scene.corners(postures))) >= floor - FLOOR_TOLERANCE * self.scene.size:
                return share
        return SWING_SHARES[-1]

    @cached_property
    def _pace(self) -> float:
        """Return the relative speed of the swing, at most 1, at which drives stay within their limits."""
        robot = self.robot
        if robot.loops:
            return 1.0
        v, a = (np.stack(rates) for rates in zip(*map(self._rates_at, SAMPLE_TIMES), strict=True))
        q = np.stack(self.swings())
        still, tau = robot.gravity_force(q), robot.inverse_dynamics(q, v, a)
        room = np.maximum(robot.effort_limit - np.abs(still), 0.0)  # forces of the motion grow with the square of speed
        with np.errstate(divide="ignore", invalid="ignore"):
            fast = np.fmin.reduce(np.where(v == 0, np.inf, robot.velocity_limit / np.abs(v)), axis=None)
            strong = np.sqrt(room / np.abs(tau - still))
        return float(np.clip(min(fast, np.fmin.reduce(strong[room > 0], axis=None, initial=np.inf)), MIN_PACE, 1.0))

    def _rates_at(self, time: float) -> tuple[Array, Array]:
        """Return the velocities and accelerations of the swing (with loops, those of the active coordinates)."""
        values = [np.array(self._swung(time + step)) for step in (-STEP, 0.0, STEP)]
        if self.robot.loops:
            before, after = values[1] - values[0], values[2] - values[1]
        else:
            low, here, high = (self._positions(tuple(sliders)) for sliders in values)
            before, after = self.robot.difference(low, here), self.robot.difference(here, high)
        return (before + after) / (2 * STEP), (after - before) / STEP**2

    def sliders_at(self, time: Any) -> list[Any]:
        """Return the values of the sliders at a time (s) of the swing, which may be a CasADi symbol."""
        return self._swung(self._pace * time)

    def _swung(self, time: Any, share: float | None = None) -> list[Any]:
        part = self._share if share is None else share
        finite = np.isfinite(self.robot.lower) & np.isfinite(self.robot.upper)
        values, bounded = list[Any](), [slide.turn is None and finite[slide.at] for slide in self.slides]
        base = self.robot.coordinates[0].q.stop if self._floats else 0
        for k, slide in enumerate(self.slides):
            if slide.at < base or (not bounded[k] and any(bounded)):  # a floating base stays in place
                values.append(slide.start)
                continue
            largest = MAX_SWINGS[slide.unit] * (1.0 if slide.unit == "rad" else self.scene.size)
            swing = min(largest, RANGE_SHARE * (slide.high - slide.low)) * part
            middle = float(np.clip(slide.start, slide.low + swing, slide.high - swing))
            turn = ca.sin(2 * np.pi * TURNS[k % len(TURNS)] * time / PERIOD)
            ready = 1 - ca.exp(-(time**2))  # it starts from rest
            values.append(slide.start + ready * (middle - slide.start + swing * turn))
        return values
