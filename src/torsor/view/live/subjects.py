"""One of the robots or motions that a viewer shows: what it draws, and where."""

from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.scenes import Color
from torsor.robot.parallel import ParallelRobot
from torsor.robot.robot import Robot
from torsor.view.live.figure import Figure
from torsor.view.live.marks import Marks
from torsor.view.live.postures import Posture
from torsor.view.live.shots import Film, Shot
from torsor.view.live.words import node
from torsor.view.scene import Scene, timeline

MOST = 4000  # samples of a motion that are shown: those of a browser in a minute

COLORS: tuple[Color, ...] = (
    (0.12, 0.47, 0.71, 1.0),
    (1.0, 0.5, 0.05, 1.0),
    (0.17, 0.63, 0.17, 1.0),
    (0.58, 0.4, 0.74, 1.0),
    (0.84, 0.15, 0.16, 1.0),
    (0.55, 0.34, 0.29, 1.0),
    (0.89, 0.47, 0.76, 1.0),
    (0.09, 0.75, 0.81, 1.0),
)
"""Colours of what is compared, in turn."""


class Subject:
    """A robot that sliders move (``posture``), or a motion that is played (``film``)."""

    def __init__(self, what: Any, title: str):
        self.posture: Posture | None = None
        self.film: Film | None = None
        if isinstance(what, (Robot, ParallelRobot)):
            self.posture = Posture(what)
            self.scene, self.title = self.posture.scene, title or what.name
        else:
            motion = timeline(what, title).every(MOST)
            self.scene, self.title = Scene.of(motion.robot, things=motion.things), motion.title
            self.film = Film(self.scene, motion)
        self.time = 0.0
        self.sways = self.led = False
        self.wanted: list[float] | None = None

    def draw_in(self, server: Any, number: int, alone: bool) -> None:
        """Add the nodes to a scene; beside others, in a colour of its own."""
        self.color = COLORS[number % len(COLORS)]
        self.path = node(f"{number + 1} {self.title}")
        self.root = server.scene.add_frame(self.path, show_axes=False)
        self.figure = Figure(server, self.path, self.scene, None if alone else self.color)
        self.marks = Marks(server, self.path, self.scene, self.color)

    @property
    def shot(self) -> Shot:
        """What is shown now."""
        if self.posture is not None:
            return self.posture.shot
        assert self.film is not None
        return self.film.at(self.time)

    def corners(self) -> tuple[Array, Array]:
        """Return the least and largest coordinates (3,) that it reaches."""
        if self.posture is not None:
            return self.scene.corners(np.stack([self.posture.home, *self.posture.swings()]))
        assert self.film is not None
        few = Film(self.scene, self.film.motion.every(50))
        if few.motion.ahead is None:
            return self.scene.corners(few.motion.q)
        each = np.array([self.scene.corners(q) for q in few.motion.q]) - few.way[:, None]
        return each[:, 0].min(axis=0), each[:, 1].max(axis=0)

    @property
    def goes_on(self) -> bool:
        """Whether it is a walk that goes on in the next round."""
        return self.film is not None and self.film.motion.ahead is not None

    def place(self) -> None:
        """Draw what is shown now."""
        shot = self.shot
        self.figure.place(*shot.placed)
        self.marks.place(shot)
