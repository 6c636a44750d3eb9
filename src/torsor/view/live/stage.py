"""All that a viewer shows: subjects, ground, lights and camera, and what controls can ask for."""

import threading
from typing import Any

import numpy as np

from torsor.spatial import axis_frame
from torsor.view.live.clock import Clock
from torsor.view.live.ground import Ground
from torsor.view.live.subjects import Subject

HIGH, AWAY, BESIDE = 0.4, 1.4, 0.12  # how far the camera is above, before and beside the robot, in sizes of it


class Stage:
    """Subjects in a scene of a viser server. Controls say what is wanted; one thread does it: ``step``, ``draw``."""

    def __init__(self, server: Any, subjects: list[Subject]):
        self.server, self.subjects = server, subjects
        self.clock = Clock(max((each.film.duration for each in subjects if each.film is not None), default=0.0))
        self.lock, self.awake = threading.RLock(), threading.Event()
        self.faults, self._swayed = list[str](), 0.0
        self._corners()
        for number, subject in enumerate(subjects):
            subject.draw_in(server, number, alone=len(subjects) == 1)
        same = len({subject.scene.robot.link_names for subject in subjects}) == 1
        self.apart = 0.0 if same else self.width
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
        width = (len(self.subjects) - 1) * self.apart
        right = np.cross(self.up, ahead)  # of the picture, where the panel is
        camera.look_at = middle + self.side * width / 2 + BESIDE * self.size * right
        camera.position = camera.look_at + (AWAY * self.size + width) * (ahead + HIGH * self.up) / np.hypot(1, HIGH)
        camera.fov, camera.near, camera.far = 0.7, 1e-3 * self.size, 1e3 * self.size
        # The default lights cast shadows and reflect a map: pretty, and most of the time of a frame without a card.
        scene.configure_default_lights(enabled=False)
        scene.configure_environment_map(hdri=None)
        scene.add_light_hemisphere("/light/sky", sky_color=(255, 255, 255), ground_color=(150, 150, 160), intensity=2.0)
        sun = scene.add_light_directional("/light/sun", intensity=2.2, cast_shadow=False)
        sun.position = tuple(self.up + 0.4 * ahead + 0.5 * level[:, 0])
        below = middle - self.up * float(np.abs(self.up) @ (self.high - self.low)) / 2
        self.ground = Ground(self.server, below, level, self.size)

    # What controls ask for

    def wake(self) -> None:
        """Draw again soon."""
        self.awake.set()

    def has(self, name: str) -> bool:
        """Return whether a motion has forces of the ground or external wrenches."""
        films = [subject.film.at(0.0) for subject in self.subjects if subject.film is not None]
        return any(getattr(each, name) is not None for each in films)

    def show(self, name: str, shown: bool) -> None:
        """Draw a mark of all subjects, or not."""
        with self.lock:
            for subject in self.subjects:
                subject.marks.show(name, shown)
        self.wake()

    def stretch(self, factor: float) -> None:
        """Change the length of arrows."""
        for subject in self.subjects:
            subject.marks.stretch = factor
        self.wake()

    def fade(self, opacity: float) -> None:
        """Change the opacity of robots."""
        with self.lock:
            for subject in self.subjects:
                subject.figure.fade(opacity)

    def spread(self, apart: float) -> None:
        """Put the subjects side by side, ``apart`` m from each other."""
        self.apart = apart
        for number, subject in enumerate(self.subjects):
            subject.root.position = tuple(number * apart * self.side)

    def trail(self, subject: Subject, name: str) -> None:
        """Draw the trail of a link, a frame or the centre of mass."""
        with self.lock:
            subject.marks.trail(name, subject.film)
        self.wake()

    def forget(self) -> None:
        """Remove all trails."""
        with self.lock:
            for subject in self.subjects:
                subject.marks.forget()

    def move(self, number: int, values: list[float], led: bool = True) -> None:
        """Move a robot to values of its sliders, soon; the last of several that come at once counts.

        ``led`` says that the program moves it, not a hand on the sliders, so that the sliders have to follow.
        """
        subject = self.subjects[number]
        subject.wanted, subject.led, subject.sways = values, led, False
        self.wake()

    def sway(self, number: int, sways: bool) -> None:
        """Let the coordinates of a robot swing, or not."""
        if self.subjects[number].sways != sways:
            self.subjects[number].sways = sways
            self._swayed = 0.0
        self.wake()

    # Time

    def draw(self) -> None:
        """Draw all subjects as they are now."""
        with self.lock, self.server.atomic():
            for subject in self.subjects:
                subject.time = self.clock.total if subject.goes_on else self.clock.time
                subject.place()
            for film in [each.film for each in self.subjects if each.film is not None and each.goes_on][:1]:
                self.ground.move(film.speed * self.clock.total)

    def step(self, seconds: float) -> bool:
        """Let real time pass and return whether something moves by itself."""
        with self.lock:
            moving = self.clock.advance(seconds)
            self._swayed += seconds
            for subject in self.subjects:
                wanted, subject.wanted = subject.wanted, None
                if subject.posture is not None and wanted is not None:
                    subject.posture.move(wanted)
                elif subject.posture is not None and subject.sways:
                    subject.posture.sway(self._swayed)
                    moving = True
        return moving
