"""Sliders of robots: names, units and ranges of the coordinates that the viewer and offline pages move."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from torsor.base.arrays import Array
from torsor.mechanism.mechanism import units
from torsor.robot.robot import Robot
from torsor.spatial import log_rotation

SLIDER_RANGE = 1.0  # range of sliders of lengths without limits, in sizes of the robot
DEFLECTION_RANGE = 0.05  # the same for deflections of flexible links
SLIDER_UNITS = {"rad": ("°", 180 / np.pi), "m": ("mm", 1000.0)}  # displayed unit and its factor


@dataclass(frozen=True)
class Slide:
    """A slider: its name, unit and range. ``start`` is its value in the first posture, and ``at`` is its index in q.

    ``turn`` is the component of the rotation vector if a quaternion begins at ``at``, and None otherwise.
    """

    name: str
    unit: str
    low: float
    high: float
    start: float
    at: int
    turn: int | None = None


def sliders(robot: Robot, start: Array, size: float) -> tuple[Slide, ...]:
    """Return the sliders of a robot in the posture ``start`` (nq,), in the order of q or of the active coordinates.

    Motors have no sliders; with closed loops, only active coordinates do. ``size`` (m) scales ranges without limits.

    Example:
        >>> arm = torsor.library.free_flying_arm()
        >>> [slide.name for slide in sliders(arm, arm.neutral(), 1.0)][2:5]
        ['root/z', 'root rotation x', 'root rotation y']
    """
    order = {name: k for k, name in enumerate(robot.active)} if robot.loops else {}
    return tuple(sorted(_sliders(robot, start, size), key=lambda slide: order.get(slide.name, slide.at)))


def _sliders(robot: Robot, start: Array, size: float) -> Iterator[Slide]:
    motors = {slot.q.start for slot in robot.motor_coordinates.values()}
    turned, bent = set[int](), set[int]()
    for joint, slot in zip(robot.joints, robot.coordinates, strict=True):
        if joint.flexible is not None:
            bent |= set(range(slot.q.start, slot.q.stop))
        if not joint.follows and joint.nq != joint.nv and not robot.loops:
            first = slot.q.stop - 4
            turned |= set(range(first, slot.q.stop))
            vector = log_rotation(start[first : slot.q.stop])
            for k, axis in enumerate("xyz"):
                yield Slide(f"{joint.name} rotation {axis}", "rad", -np.pi, np.pi, float(vector[k]), first, k)
    for index, (name, unit) in enumerate(zip(robot.position_names, units(robot)[0], strict=True)):
        if name in robot.active if robot.loops else index not in turned | motors:
            reach = np.pi if unit == "rad" else (DEFLECTION_RANGE if index in bent else SLIDER_RANGE) * size
            low, high = _range(robot, index, float(start[index]), reach)
            yield Slide(name, unit, low, high, float(start[index]), index)


def _range(robot: Robot, index: int, start: float, reach: float) -> tuple[float, float]:
    """Return the range of a slider: the limits of the position, or ``reach`` around ``start``."""
    low, high = float(robot.lower[index]), float(robot.upper[index])
    low, high = (low if np.isfinite(low) else start - reach), (high if np.isfinite(high) else start + reach)
    return min(low, start), max(high, start)
