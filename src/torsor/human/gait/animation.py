"""Animations of a walk or another motion of a body (matplotlib and pillow, the extra ``plot``)."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import positive, whole_number
from torsor.base.figures import new_figure
from torsor.human.body.drawing import ARROW, LONG, VIEWS, landmarks, skeleton
from torsor.human.contact.schedule import Walk
from torsor.human.contact.stairs import stairs_of
from torsor.human.contact.support import Sitting
from torsor.human.gait.curves import COUNT, StrideCurves
from torsor.human.gait.stairs_drawing import draw_stairs
from torsor.human.tasks.seat_drawing import draw_seat
from torsor.human.terms.forces import Grounded
from torsor.human.terms.pressing import presses, pressure
from torsor.human.terms.problem import load_of
from torsor.motion import MotionResult
from torsor.robot.robot import Robot
from torsor.simulation.movie import movie_path, write_movie

UP = np.array([0.0, 1.0, 0.0])
MARKS = 0.2  # distance of the marks on the ground (m)


def _frames(
    result: MotionResult | StrideCurves, rate: float
) -> tuple[Robot, Array, Callable[[int, str], list[tuple[Array, Array]]]]:
    """Return a body, postures (K, 55), and a function that returns the arrows (m) of the ground's forces."""
    if isinstance(result, StrideCurves):
        stride = result
    else:
        term = next((each for each in result.problem.terms if isinstance(each, Grounded)), None)
        if term is None or not isinstance(term.support, Walk):
            times = np.linspace(0.0, result.T, max(2, round(result.T * rate)))
            q = result.at(times).q
            if term is None:
                return result.robot, q, lambda k, view: []
            return term.body, q, _arrows(presses(result, times / result.T), term.body)
        stride = StrideCurves(result)
    kept = np.linspace(0, COUNT - 1, round(stride.duration * rate), endpoint=False).round().astype(int)
    pressed = np.concatenate([pressure(stride.samples, stride.body), stride.samples.forces], axis=-1)
    return stride.body, stride.samples.q[kept], _arrows(pressed[kept], stride.body)


def _arrows(pressed: Array, body: Robot) -> Callable[[int, str], list[tuple[Array, Array]]]:
    """Return a function of the frame and the view: the starts of arrows, and the arrows (m), of ``feet_and_seat``."""
    weight = body.mass * float(np.linalg.norm(body.gravity))

    def arrows(k: int, view: str) -> list[tuple[Array, Array]]:
        (across, right), (along, up), *_ = VIEWS[view]
        own = pressed[k][np.isfinite(pressed[k]).all(axis=-1)]
        signs, places = np.array([right, up]), [across, along]
        return [(signs * each[:3][places], LONG / weight * signs * each[3:][places]) for each in own]

    return arrows


def animate(
    result: MotionResult | StrideCurves,
    path: str | Path,
    rate: int = 25,
    slower: float = 1.0,
    progress: bool | None = None,
) -> Path:
    """Write a motion of a body as a .gif or .mp4, seen from the right side and the front, and return its path.

    A walk is shown as one stride, repeated without end; any other motion of a body is shown from start to end. Arrows
    are the forces of the ground and of a seat. On stairs the picture climbs with the body. ``rate`` is the number of
    frames per second, ``slower`` the factor of slow motion. An .mp4 needs the program ffmpeg. ``progress`` is True,
    False, or None for a bar on a terminal.
    """
    target = movie_path(path)
    whole_number(rate, "animate", "rate")
    positive(slower, "animate", "slower")
    figure = new_figure(8.0, 5.2, tidy=False)
    figure.subplots_adjust(0.02, 0.02, 0.98, 0.93)
    body, q, arrows = _frames(result, rate * slower)
    solved = result.result if isinstance(result, StrideCurves) else result
    points = landmarks(body, q, load_of(solved.problem))
    term = next((each for each in solved.problem.terms if isinstance(each, Grounded)), None)
    seat = term.support if term is not None and isinstance(term.support, Sitting) else None
    panels = figure.subplots(1, 2, width_ratios=[1.5, 1.0])
    stairs = None if term is None else stairs_of(term.support, term.body)
    # On stairs the picture follows the climb.
    lift = np.zeros(len(q)) if stairs is None else -stairs.rise / stairs.length * points["pelvis"][..., 2]
    points = {name: each + np.multiply.outer(lift, UP) for name, each in points.items()}
    top = 1.08 * float(max(each[..., 1].max() for each in points.values()))
    for axes, title, half in zip(panels, ("right side", "front"), (0.9, 0.6), strict=True):
        low = -0.1 if stairs is None else -0.1 - 1.5 * abs(stairs.rise)
        axes.set(title=title, aspect="equal", xlim=(-half, half), ylim=(low, top))
        axes.axis("off")

    def show(k: int) -> None:
        here = {name: each[k] for name, each in points.items()}
        for axes, view in zip(panels, ("side", "front"), strict=True):
            for old in (*axes.lines, *axes.patches, *axes.texts):
                old.remove()
            shift = -float(here["pelvis"][2]) if view == "side" else 0.0
            if seat is not None and view == "side":
                draw_seat(axes, seat, shift)
            skeleton(axes, here, view, shift, scale=0.9)
            for at, way in arrows(k, view):
                foot = at + np.array([shift, lift[k]])
                axes.annotate("", foot + way, foot, arrowprops=ARROW, zorder=9)
            if stairs is not None:
                draw_stairs(axes, stairs, view, shift, lift[k])
                continue
            axes.plot([-2.0, 2.0], [0.0, 0.0], color="0.4", linewidth=1.2, zorder=0)
            if view == "side":  # marks on the ground show the progress
                marks = MARKS * np.arange(np.ceil((-1.0 - shift) / MARKS), np.floor((1.0 - shift) / MARKS) + 1) + shift
                axes.plot(marks, np.full(len(marks), -0.02), "|", color="0.4", markersize=6)

    return write_movie(figure, show, len(q), target, rate, progress=progress)
