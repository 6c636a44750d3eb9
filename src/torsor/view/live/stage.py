"""The viewer scene: subjects, ground, lights and camera, and the actions of the controls."""

import threading
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.base.scenes import Color
from torsor.robot.parallel import ParallelRobot
from torsor.robot.robot import Robot
from torsor.simulation.timeline import Batch, batch
from torsor.spatial import axis_frame
from torsor.view.live.figure import Figure, node
from torsor.view.live.marks import Marks
from torsor.view.live.postures import Posture
from torsor.view.live.shots import Crowd, Film, Shot
from torsor.view.scene import Scene, Timeline, timeline
from torsor.view.scene.batches import ACCURACY, arranged, extent, ground_grid, ground_surface


@dataclass
class Clock:
    """Time (s) from 0 to ``duration``, at ``speed`` times real time while ``playing``. With ``loop``, it restarts."""

    duration: float
    playing: bool = False
    loop: bool = True
    speed: float = 1.0
    time: float = 0.0
    rounds: int = 0

    @property
    def total(self) -> float:
        """Time (s) including all completed loops, for periodic motions."""
        return self.time + self.rounds * self.duration

    def advance(self, seconds: float) -> bool:
        """Advance by real time and return whether the time has changed. Without ``loop``, it stops at the end."""
        if not self.playing or self.duration <= 0:
            return False
        self.time += self.speed * seconds
        if self.time > self.duration:
            self.rounds += int(self.time // self.duration) if self.loop else 0
            self.time = self.time % self.duration if self.loop else self.duration
            self.playing = self.loop
        return True

    def seek(self, time: float) -> None:
        """Go to a time."""
        self.time, self.rounds = min(max(time, 0.0), self.duration), 0

    def play(self, playing: bool = True) -> None:
        """Play or pause. At the end, restart from the beginning."""
        if playing and self.time >= self.duration:
            self.time, self.rounds = 0.0, 0
        self.playing = playing


# The ground is a square of lines. viser's grid computes every pixel, which is slow without a GPU.
SQUARES_PER_SIDE = 15  # to each side
BOLD_INTERVAL = 5  # every fifth line
LINE_PIECES = 15  # of each line: browsers draw a long line that passes the camera in front of other objects
LINE_LOOKS = {"fine": ((0.83, 0.86, 0.89), 1.0), "bold": ((0.72, 0.76, 0.80), 1.2)}  # colour, pixels
AXES = "xy"
FLOOR_SIZE, SHADOW_OPACITY = 6.0, 0.25  # of the square that shows shadows, in sizes of the object


class Ground:
    """A grid around the point ``middle`` (3,), with a spacing of 1, 2 or 5 times a power of ten (m).

    The first two columns of ``level`` (3 x 3) are horizontal. ``size`` (m) is the size of the object on the grid.
    """

    def __init__(self, server: Any, middle: Array, level: Array, size: float):
        steps = [step * 10.0**power for power in range(-4, 5) for step in (1, 2, 5)]
        self.cell = min(steps, key=lambda step: abs(np.log(10 * step / size)))
        self.level, self._nodes = level, list[tuple[int, float, Any]]()
        corners = FLOOR_SIZE * size * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
        floor = corners @ level[:, :2].T + middle - 1e-3 * size * level[:, 2]
        looks = {"color": (255, 255, 255), "opacity": 0.0, "cast_shadow": False, "receive_shadow": SHADOW_OPACITY}
        faces = np.array([[0, 1, 2], [0, 2, 3]])
        server.scene.add_mesh_simple("/ground/floor", floor.astype(np.float32), faces, **looks)
        lines = np.arange(-SQUARES_PER_SIDE, SQUARES_PER_SIDE + 1)
        for across, axis in enumerate(AXES):
            for name, (color, width) in LINE_LOOKS.items():
                every = BOLD_INTERVAL if name == "bold" else 1  # fine lines are also below the bold ones
                at = self.cell * lines[lines % every == 0]
                ends = self.cell * SQUARES_PER_SIDE * np.linspace(-1, 1, LINE_PIECES + 1)
                flat = np.array([[(x, start), (x, end)] for x in at for start, end in pairwise(ends)])
                points = (flat if across == 0 else flat[..., ::-1]) @ level[:, :2].T + middle
                look = {"thickness": width, "thickness_units": "screen"}
                path = f"/ground/{name}/{axis}"
                segments = server.scene.add_line_segments(path, points.astype(np.float32), color, **look)
                self._nodes.append((across, every * self.cell, segments))

    def move(self, way: Array) -> None:
        """Move the ground under a walk in place by ``way`` (3,), in m. The grid repeats."""
        for across, period, segments in self._nodes:
            along = self.level[:, across]
            segments.position = tuple(-float(along @ way % period) * along)


SUBJECT_COLORS: tuple[Color, ...] = (
    (0.12, 0.47, 0.71, 1.0), (1.0, 0.5, 0.05, 1.0), (0.17, 0.63, 0.17, 1.0), (0.58, 0.4, 0.74, 1.0),
    (0.84, 0.15, 0.16, 1.0), (0.55, 0.34, 0.29, 1.0), (0.89, 0.47, 0.76, 1.0), (0.09, 0.75, 0.81, 1.0),
)  # fmt: skip
"""Colours of the subjects of a comparison, in turn."""


SWING_SAMPLES = 600  # of the trail of a swing, in one period
START_SHARE = 0.25  # of a period: after this time, the start from rest is over

GHOST_COLOR: Color = (0.95, 0.5, 0.1, 1.0)  # of the reference of other motions


class Subject:
    """A robot with sliders (``posture``), a motion (``film``), or a batch of motions (``crowd``).

    A ``ghost`` is the reference of other motions.
    """

    def __init__(self, what: Any, title: str, ghost: bool = False, spacing: float | None = None):
        self.ghost = ghost
        self.posture: Posture | None = None
        self.film: Film | None = None
        self.crowd: Crowd | None = None
        if isinstance(what, (Robot, ParallelRobot)):
            self.posture = Posture(what)
            self.scene, self.title = self.posture.scene, title or what.name
        elif (motions := batch(what, title)) is not None:
            self.scene, self.title = replace(Scene.of(motions.robot), compiled=True), motions.title
            self.crowd = Crowd(self.scene, *arranged(motions, self.scene, spacing))
        else:
            motion = timeline(what, title)
            self.scene = Scene.of(motion.robot, things=motion.things, skeleton=motion.is_person)
            self.title = motion.title
            self.film = Film(self.scene, motion)
        self.time, self._source = 0.0, what
        self.sways = self.led = False
        self.target: list[float] | None = None

    def draw_in(self, server: Any, number: int, tinted: bool) -> None:
        """Add the nodes to a scene. A ``tinted`` robot has one colour, which distinguishes it from similar robots."""
        self.color = GHOST_COLOR if self.ghost else SUBJECT_COLORS[number % len(SUBJECT_COLORS)]
        self.path = node(f"{number + 1} {self.title}")
        self.root = server.scene.add_frame(self.path, show_axes=False)
        tint = self.color if tinted or self.ghost else None
        count = 1 if self.crowd is None else len(self.crowd.offsets)
        self.figure = Figure(server, self.path, self.scene, tint, self.ghost, count)
        if self.crowd is None:
            self.marks = Marks(server, self.path, self.scene, self.color)

    @property
    def shot(self) -> Shot:
        """The instant to show now; a batch has none."""
        if self.posture is not None:
            return self.posture.shot
        assert self.film is not None
        return self.film.at(self.time)

    @property
    def known(self) -> Film | None:
        """The motion if it is known in advance: that of a result, or of a swing without closed loops."""
        if self.posture is not None and self.sways and not self.posture.robot.loops:
            return self._swing
        return self.film

    @cached_property
    def _swing(self) -> Film:
        """The swing from its start from rest until it repeats."""
        posture = Posture(self._source, self.scene)
        times = np.arange(0.0, posture.period * (1 + START_SHARE), posture.period / SWING_SAMPLES)
        return Film(self.scene, Timeline(posture.robot, self.title, times, *posture.swing(times)))

    @property
    def motion(self) -> Timeline | Batch | None:
        """The motion or motions of a result."""
        return self.crowd.motions if self.crowd is not None else self.film.motion if self.film is not None else None

    @property
    def duration(self) -> float:
        """Duration (s) of the motion, 0 without one."""
        return 0.0 if self.motion is None else float(self.motion.times[-1] - self.motion.times[0])

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the panel."""
        return self.crowd.motions.notes if self.crowd is not None else (self.posture.note,) if self.posture else ()

    def corners(self) -> tuple[Array, Array]:
        """Return the minimum and maximum coordinates (3,) of the surfaces."""
        if self.posture is not None:
            return self.scene.corners(np.stack([self.posture.home, *self.posture.swings()]))
        if self.crowd is not None:
            return extent(self.crowd.motions, self.scene, self.crowd.offsets)
        assert self.film is not None
        few = Film(self.scene, self.film.motion.every(50))
        if few.motion.ahead is None:
            return self.scene.corners(few.motion.q)
        boxes = np.array([self.scene.corners(q) for q in few.motion.q]) - few.way[:, None]
        return boxes[:, 0].min(axis=0), boxes[:, 1].max(axis=0)

    @property
    def goes_on(self) -> bool:
        """Whether the subject is a walk that continues in the next loop."""
        return self.film is not None and self.film.motion.ahead is not None

    def place(self) -> None:
        """Draw the current instant."""
        if self.crowd is not None:
            self.figure.place(*self.crowd.placed(self.time))
            return
        shot = self.shot
        self.figure.place(*shot.placed)
        self.marks.place(shot)


SUN = np.array([0.35, 0.3, 0.9])  # direction of the light as on the offline page: two horizontal axes, up
SKY_COLOR, EARTH_COLOR = (250, 252, 255), (150, 145, 140)
TERRAIN_COLOR = (158, 168, 184)
SKY_LIGHT, SUN_LIGHT = 2.2, 1.8
MIN_CAMERA_HEIGHTS = 1.8  # least distance of the camera, in heights of what is shown
CAMERA_HEIGHT, CAMERA_DISTANCE, CAMERA_SHIFT = 0.4, 1.35, 0.15  # above, before and beside the robot, in sizes of it


class Stage:
    """Subjects in the scene of a viser server. Controls send requests, and one thread executes them."""

    def __init__(self, server: Any, subjects: list[Subject]):
        self.server, self.subjects = server, subjects
        self.shown = [subject for subject in subjects if not subject.ghost]
        self.marked = [subject for subject in self.shown if subject.crowd is None]
        films = [subject.film for subject in subjects if subject.film is not None]
        self.clock = Clock(max((subject.duration for subject in subjects), default=0.0))
        self.clock.seek(max((film.motion.start for film in films), default=0.0))
        self.lock, self.awake = threading.RLock(), threading.Event()
        self.faults, self._swayed = list[str](), 0.0
        self._corners()
        same = len({subject.scene.robot.link_names for subject in subjects}) == 1
        for number, subject in enumerate(subjects):
            subject.draw_in(server, number, tinted=same and len(self.shown) > 1)
        self.apart = 0.0 if same or len(self.shown) == 1 else self.width
        self._set_up()
        self.spread(self.apart)
        self.draw()

    # The scene

    def _corners(self) -> None:
        gravity = np.asarray(self.subjects[0].scene.robot.gravity, dtype=float)
        size = float(np.linalg.norm(gravity))
        self.up = -gravity / size if size > 0 else np.array([0.0, 0.0, 1.0])
        corners = [subject.corners() for subject in self.subjects]
        self.low, self.high = np.min([low for low, _ in corners], axis=0), np.max([high for _, high in corners], axis=0)
        self.size = float(np.linalg.norm(self.high - self.low)) or 1.0
        level = axis_frame(self.up)[:, :2]
        self.side = level[:, int(np.argmin(np.abs(level.T @ (self.high - self.low))))]
        self.width = 1.2 * float(np.abs(self.side) @ (self.high - self.low)) or self.size

    def _set_up(self) -> None:
        """Set the camera, lights without shadows, and the ground."""
        scene, middle = self.server.scene, (self.low + self.high) / 2
        scene.set_up_direction(tuple(self.up))
        level = axis_frame(self.up)
        ahead = (level[:, 0] + level[:, 1]) / np.sqrt(2)
        camera = self.server.initial_camera
        width = (len(self.shown) - 1) * self.apart
        right = np.cross(self.up, ahead)  # of the picture, where the panel is
        camera.look_at = middle + self.side * width / 2 + CAMERA_SHIFT * self.size * right
        height = float(np.abs(self.up) @ (self.high - self.low))
        away = max(CAMERA_DISTANCE * self.size, MIN_CAMERA_HEIGHTS * height) + width
        camera.position = camera.look_at + away * (ahead + CAMERA_HEIGHT * self.up) / np.hypot(1, CAMERA_HEIGHT)
        camera.fov, camera.near, camera.far = 0.7, 1e-3 * self.size, 1e3 * self.size
        # The default map takes most of the frame time without a GPU; the page removes shadows there (software.js).
        scene.configure_default_lights(enabled=False)
        scene.configure_environment_map(hdri=None)
        scene.add_light_hemisphere("/light/sky", sky_color=SKY_COLOR, ground_color=EARTH_COLOR, intensity=SKY_LIGHT)
        sun = scene.add_light_directional("/light/sun", intensity=SUN_LIGHT, cast_shadow=True)
        sun.position = tuple(level @ SUN)
        motions = [subject.motion for subject in self.subjects if subject.motion is not None]
        floor = next((motion.floor for motion in motions if motion.floor is not None), None)
        terrain = next((motion.terrain for motion in motions if motion.terrain is not None), None)
        if terrain is not None:
            self._draw_terrain(terrain)
        if floor is None:
            self.ground = Ground(self.server, middle - self.up * height / 2, level, self.size)
        else:
            below = middle - (floor[:3] @ middle - floor[3]) * floor[:3]
            self.ground = Ground(self.server, below, axis_frame(floor[:3]), self.size)

    def _draw_terrain(self, height: ca.Function) -> None:
        margin = self.subjects[0].scene.size
        surface = ground_surface(*ground_grid(height, self.low - margin, self.high + margin, ACCURACY * margin))
        mesh = surface.vertices.astype(np.float32), surface.faces
        looks = {"color": TERRAIN_COLOR, "flat_shading": True, "cast_shadow": False}
        self.server.scene.add_mesh_simple("/ground/terrain", *mesh, **looks)

    # Actions of the controls

    def wake(self) -> None:
        """Request a new frame."""
        self.awake.set()

    def has(self, name: str) -> bool:
        """Return whether a motion has ground reaction forces, external wrenches or measured markers."""
        films = [subject.film.at(0.0) for subject in self.subjects if subject.film is not None]
        return any(getattr(moment, name) is not None for moment in films)

    def show(self, name: str, shown: bool) -> None:
        """Show or hide a mark of all subjects."""
        with self.lock:
            for subject in self.marked:
                subject.marks.show(name, shown)
        self.wake()

    def stretch(self, factor: float) -> None:
        """Scale the arrow lengths."""
        for subject in self.subjects:
            if subject.crowd is None:
                subject.marks.stretch = factor
        self.wake()

    def fade(self, opacity: float) -> None:
        """Change the opacity of robots."""
        with self.lock:
            for subject in self.shown:
                subject.figure.fade(opacity)

    def spread(self, apart: float) -> None:
        """Place the subjects side by side, ``apart`` (m) from each other."""
        self.apart = apart
        for number, subject in enumerate(self.shown):
            subject.root.position = tuple(number * apart * self.side)

    def trail(self, subject: Subject, name: str) -> None:
        """Draw the trail of a link, a frame or the centre of mass."""
        with self.lock:
            subject.marks.trail(name, subject.known)
        self.wake()

    def forget(self) -> None:
        """Remove all trails."""
        with self.lock:
            for subject in self.subjects:
                if subject.crowd is None:
                    subject.marks.forget()

    def move(self, number: int, values: list[float], led: bool = True) -> None:
        """Set the sliders of a robot. If several requests are pending, the last one applies.

        With ``led``, the program moves the robot and the sliders follow. Otherwise, the user moves the sliders.
        """
        self.sway(number, False)
        subject = self.subjects[number]
        subject.target, subject.led = values, led
        self.wake()

    def sway(self, number: int, sways: bool) -> None:
        """Start or stop the swing of a robot, and replace its trails by those of the new motion."""
        subject = self.subjects[number]
        if subject.sways != sways:
            subject.sways, self._swayed = sways, 0.0
            with self.lock:
                for name in subject.marks.trailed:
                    subject.marks.trail(name, subject.known)
        self.wake()

    # Time

    def draw(self) -> None:
        """Draw all subjects at the current time."""
        with self.lock, self.server.atomic():
            for subject in self.subjects:
                subject.time = self.clock.total if subject.goes_on else self.clock.time
                subject.place()
            for film in [subject.film for subject in self.subjects if subject.film is not None and subject.goes_on][:1]:
                self.ground.move(film.speed * self.clock.total)

    def step(self, seconds: float) -> bool:
        """Advance by real time and return whether something is moving."""
        with self.lock:
            moving = self.clock.advance(seconds)
            self._swayed += seconds
            for subject in self.subjects:
                target, subject.target = subject.target, None
                if subject.posture is not None and target is not None:
                    subject.posture.move(target)
                elif subject.posture is not None and subject.sways:
                    subject.posture.sway(self._swayed)
                    moving = True
        return moving
