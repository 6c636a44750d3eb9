"""Robots whose coordinates are moved by sliders in a page: start, ranges, and the kinematics as JavaScript."""

import tempfile
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.compiler.js import export_js
from torsor.mechanism.mechanism import FORCES, units
from torsor.robot.robot import Robot

FUNCTIONS = ("poses", "integrate", "center_of_mass", "potential_energy")
CLOSING = ("closure_error", "closure_jacobian")
FAR = 1.0  # how far lengths without limits can be moved, in sizes of the robot
BENT = 0.05  # the same of deflections of flexible links, which are small
NO_DRIVES = (
    "The robot has closed loops and no active coordinates, so that it is shown in one posture. "
    'With robot.with_active(["..."]) there are sliders.'
)


def controls(robot: Robot, start: Array, size: float) -> tuple[dict[str, Any], str]:
    """Return sliders of a robot (its positions ``start`` (nq,) close its loops), and the module with its kinematics.

    A slider has the index of its coordinate in v and, if it is a position too, that in q. With closed loops the
    active coordinates have sliders, and the others (``passive``) follow.
    """
    names, positions = robot.coordinate_names, robot.position_names
    rates = units(robot)[1]
    scales = [1.0 if unit == "rad" else size for unit in rates]
    motors = {slot.v.start for slot in robot.motor_coordinates.values()}
    bends = {
        index
        for joint, slot in zip(robot.joints, robot.coordinates, strict=True)
        if joint.flexible is not None
        for index in range(slot.v.start, slot.v.stop)
    }
    moved = robot.active if robot.loops else names
    sliders = []
    for index, name in enumerate(names):
        if name in moved and index not in motors:
            place = positions.index(name) if name in positions else None
            reach = BENT * size if index in bends else np.pi if rates[index] == "rad" else FAR * size
            low, high = _range(robot, place, 0.0 if place is None else float(start[place]), reach)
            sliders.append(
                {"name": name, "unit": rates[index], "index": index, "position": place, "low": low, "high": high}
            )
    content: dict[str, Any] = {
        "sliders": sliders,
        "scales": scales,
        "start": start.tolist(),
        "postures": [{"name": name, "q": q.tolist()} for name, q in robot.postures.items()] if not robot.loops else [],
        "note": NO_DRIVES if robot.loops and not sliders else "",
    }
    if robot.loops:
        content["passive"] = [k for k, name in enumerate(names) if name not in moved and k not in motors]
    else:
        held = [k for k in range(robot.nv) if k not in motors and k not in bends]
        limits = [float(each) if np.isfinite(each) else None for each in robot.effort_limit[held]]
        forces = [FORCES[rates[k]] for k in held]
        content["drives"] = {"names": [names[k] for k in held], "units": forces, "limits": limits, "at": held}
    return content, _module(robot) if sliders else ""


def _range(robot: Robot, place: int | None, start: float, reach: float) -> tuple[float, float]:
    low = float(robot.lower[place]) if place is not None else -np.inf
    high = float(robot.upper[place]) if place is not None else np.inf
    low, high = min(low, start), max(high, start)
    return (low if np.isfinite(low) else start - reach), (high if np.isfinite(high) else start + reach)


def _module(robot: Robot) -> str:
    """Return the functions of a robot as the text of an ES module."""
    names = [*FUNCTIONS, *(CLOSING if robot.loops else ["gravity_force"])]
    with tempfile.TemporaryDirectory() as folder:
        functions = {name: robot.function(name, loops="open" if robot.loops else None) for name in names}
        return export_js(functions, folder)[0].read_text(encoding="utf-8")
