"""A robot that sliders move: which coordinates have one, and the positions of all that follow from them."""

from dataclasses import dataclass

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError
from torsor.mechanism import Wheel
from torsor.mechanism.mechanism import units
from torsor.robot.closed_loops import AssemblyError
from torsor.robot.parallel import ParallelRobot
from torsor.robot.robot import Robot
from torsor.spatial import log_rotation, quaternion_exp
from torsor.view.live.shots import Rest
from torsor.view.scene import Scene
from torsor.view.scene.scene import BENT, FAR, slider_range

SWAYS = {"rad": 0.6, "m": 0.15}  # largest swing of a coordinate; of lengths, in sizes of the robot
SHARE = 0.2  # of its range that a coordinate swings to each side
CLOSED = 0.3  # of that swing, for closed loops, which soon reach the end of what can be assembled
PERIOD = 4.0  # s


@dataclass(frozen=True)
class Slide:
    """A slider: its name, unit and range; ``start`` is its value in the first posture, ``at`` its place in q.

    ``turn`` is the component of a rotation vector whose quaternion begins at ``at``, or None.
    """

    name: str
    unit: str
    low: float
    high: float
    start: float
    at: int
    turn: int | None = None


class Posture:
    """A robot in one posture, which ``move`` changes. ``note`` says what the panel has to say of it.

    Example:
        >>> arm = Posture(torsor.library.two_link())
        >>> [slide.name for slide in arm.slides]
        ['joint1', 'joint2']
        >>> arm.move([0.5, 0.0]).q.tolist()
        [0.5, 0.0]
    """

    def __init__(self, given: Robot | ParallelRobot, scene: Scene | None = None):
        self.scene = Scene.of(given) if scene is None else scene
        robot = self.scene.robot
        for loop in robot.loops:
            if isinstance(loop, Wheel):  # it restricts velocities: every position can be shown
                robot = robot.without_loop(loop.name)
        self.robot, self.note = robot.to(device="casadi"), ""
        self.home = self._first(given)
        self.slides = tuple(self._slides())
        self.q, self.values = self.home, tuple(slide.start for slide in self.slides)

    @property
    def shot(self) -> Rest:
        """What is shown."""
        return Rest(self.scene, self.robot, self.q)

    def _first(self, given: Robot | ParallelRobot) -> Array:
        """Return the first posture: a parallel robot's home, otherwise zero, within limits and with closed loops."""
        robot = self.robot
        if isinstance(given, ParallelRobot):
            return np.concatenate([given.home, given.leg_home])
        q = np.clip(robot.neutral(), robot.lower, robot.upper)
        if not robot.loops:
            return q
        try:
            return robot.closed.positions(q)
        except ModelError as error:
            # All coordinates have sliders then: one can see where the loops gape, and no search is repeated.
            self.note = f"Loops are open: {error}"
            self.robot = robot.open_tree().to(device="casadi")
            return q

    def _slides(self) -> list[Slide]:
        robot, found = self.robot, list[Slide]()
        names, kinds = robot.position_names, units(robot)[0]
        if robot.loops and not robot.active:
            self.note = self.note or "No sliders: a robot with loops moves by its active coordinates, and has none."
        motors = {slot.q.start for slot in robot.motor_coordinates.values()}
        turns = set[int]()
        for joint, slot in zip(robot.joints, robot.coordinates, strict=True):
            if not joint.follows and joint.nq != joint.nv and not robot.loops:
                first = slot.q.stop - 4
                turns |= set(range(first, slot.q.stop))
                vector = log_rotation(self.home[first : slot.q.stop])
                for k, axis in enumerate("xyz"):
                    name = f"{joint.name} rotation {axis}"
                    found.append(Slide(name, "rad", -np.pi, np.pi, float(vector[k]), first, k))
        for index, (name, unit) in enumerate(zip(names, kinds, strict=True)):
            moved = name in robot.active if robot.loops else index not in turns | motors
            if moved:
                start = float(self.home[index])
                found.append(Slide(name, unit, *self._range(index, unit, start), start, index))
        order = {name: k for k, name in enumerate(robot.active)}
        return sorted(found, key=lambda slide: order.get(slide.name, slide.at))

    def _range(self, index: int, unit: str, start: float) -> tuple[float, float]:
        pairs = zip(self.robot.joints, self.robot.coordinates, strict=True)
        bends = any(joint.flexible is not None and slot.q.start <= index < slot.q.stop for joint, slot in pairs)
        reach = np.pi if unit == "rad" else (BENT if bends else FAR) * self.scene.size
        return slider_range(self.robot, index, start, reach)

    def move(self, values: list[float] | tuple[float, ...]) -> Rest:
        """Move the sliders; passive coordinates follow. What cannot be reached is shown as near as possible."""
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
            if joint.name in self.robot.motor_coordinates:  # at rest, the spring to the motor is straight
                q[self.robot.motor_coordinates[joint.name].q] = q[slot.q]
        return q

    def _assemble(self, values: tuple[float, ...]) -> None:
        try:
            self.q, self.note = self.robot.closed.assemble(np.array(values), guess=self.q), ""
        except AssemblyError as error:
            pairs = zip(self.robot.active, error.q_active, strict=True)
            near = ", ".join(f"{name} {value:.4g}" for name, value in pairs)
            self.q, self.note = error.q, f"The loops cannot be closed there. The nearest that can is shown: {near}."
        except ModelError as error:
            self.note = f"The loops cannot be closed there: {error}"

    def sway(self, time: float) -> Rest:
        """Swing the coordinates about the first posture, each with a period of its own, as they are at ``time`` (s)."""
        return self.move(self._swung(time))

    def swings(self) -> list[Array]:
        """Return some postures of the swing, where loops need not be closed: how much room it needs."""
        times = [] if self.robot.loops else [0.25 * PERIOD, 0.75 * PERIOD, 1.5 * PERIOD]
        return [self._positions(tuple(self._swung(time))) for time in times]

    def _swung(self, time: float) -> list[float]:
        finite = np.isfinite(self.robot.lower) & np.isfinite(self.robot.upper)
        values, bounded = list[float](), [slide.turn is None and finite[slide.at] for slide in self.slides]
        for k, slide in enumerate(self.slides):
            if not bounded[k] and any(bounded):  # a base that floats stays where it is
                values.append(slide.start)
                continue
            most = SWAYS[slide.unit] * (1.0 if slide.unit == "rad" else self.scene.size)
            swing = min(most, SHARE * (slide.high - slide.low)) * (CLOSED if self.robot.loops else 1.0)
            middle = float(np.clip(slide.start, slide.low + swing, slide.high - swing))
            turn = np.sin(2 * np.pi * time / (PERIOD + 0.6 * k))
            ready = 1 - np.exp(-time)  # without a jump at the start
            values.append(slide.start + ready * (middle - slide.start + swing * turn))
        return values
