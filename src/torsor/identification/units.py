"""Measurements in degrees where radians are meant: recognised by the limits of the joints, or by many turns."""

import math

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, warn
from torsor.identification.closed_robot import MeasuredRobot

FAR, DOUBTFUL = 3.0, 2.0  # times its largest limit that a number has to reach to be refused, or for a warning
LEAST = 2 * math.pi  # numbers below this are not taken for degrees
TURNS = 3.0  # turns that a joint without limits may span before a warning
DEGREE = math.pi / 180


def check_radians(robot: MeasuredRobot, q: Array, v: Array) -> None:
    """Raise ModelError for angles q (N, nq) or rates v (N, nv) that are in degrees, and warn where they may be.

    They are refused where a revolute joint goes to more than three times its limits and more than a turn, while all
    joints would be within their limits if the numbers were degrees. Twice the limits give a warning, and so does a
    joint without limits that spans more than three turns, but at most one if the numbers were degrees.
    """
    positions, rates = _angles(robot)
    if not rates:
        return
    low, high = robot.lower[positions], robot.upper[positions]
    for name, values, least, most in (
        ("q", q[:, positions], low, high),
        ("v", v[:, rates], -robot.velocity_limit[rates], robot.velocity_limit[rates]),
    ):
        _check_limits(robot, name, [robot.coordinate_names[k] for k in rates], values, (least, most))
    _check_turns(robot, [robot.position_names[k] for k in positions], q[:, positions], (low, high))


def _angles(robot: MeasuredRobot) -> tuple[list[int], list[int]]:
    """Return the indices in q and v of the angles: those of joints with one coordinate, and of their motors."""
    found = [
        (at.q.start, at.v.start)
        for joint, at in zip(robot.joints, robot.coordinates, strict=True)
        if joint.nv == 1 and joint.nq == 1 and joint.kind.turns[0] and not joint.follows
    ]
    return [at for at, _ in found], [at for _, at in found]


def _check_limits(
    robot: MeasuredRobot, what: str, names: list[str], values: Array, limits: tuple[Array, Array]
) -> None:
    least, most = limits
    ends = values.min(axis=0), values.max(axis=0)
    largest = np.maximum(np.abs(least), np.abs(most))
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.where(np.isfinite(largest) & (largest > 0), np.abs(values).max(axis=0) / largest, 0.0)
    outside = (ends[0] < least) | (ends[1] > most)
    inside = bool(((DEGREE * ends[0] >= least) & (DEGREE * ends[1] <= most)).all())
    worst = int(np.argmax(np.where(outside, reach, -1.0)))
    if not inside or not reach[worst] > DOUBTFUL or not np.abs(values[:, worst]).max() > LEAST:
        return
    unit, degrees = ("rad", "deg") if what == "q" else ("rad/s", "deg/s")
    size = float(np.abs(values[:, worst]).max())
    found = f"{what} of {names[worst]!r} reaches {size:.4g}, and its limit is {largest[worst]:.4g} {unit}"
    fix = f'convert them, np.radians({what}), with all rates; in the map of a log, units = {{{what} = "{degrees}"}}'
    fix += "; or correct the limits of the robot"
    if reach[worst] > FAR:
        text = f"{found}; all are within their limits if the numbers are degrees"
        raise ModelError(text, where=robot.name, allowed=unit, fix=fix)
    warn(f"{found}: are the numbers degrees?", where=robot.name, allowed=unit, fix=fix)


def _check_turns(robot: MeasuredRobot, names: list[str], q: Array, limits: tuple[Array, Array]) -> None:
    """Warn of joints without limits that span several turns, but at most one if the numbers were degrees."""
    free = ~np.isfinite(limits[0]) & ~np.isfinite(limits[1])
    span = np.where(free, np.ptp(q, axis=0), 0.0) / (2 * math.pi)
    if not (span.max(initial=0.0) > TURNS and (DEGREE * span <= 1).all()):
        return
    worst = int(np.argmax(span))
    found = f"q of {names[worst]!r} spans {span[worst]:.3g} turns: are the numbers degrees?"
    fix = 'if so, convert positions and rates, np.radians(q), or write units = {q = "deg"} in the map of a log; '
    fix += "if not, give the joint limits that allow these turns"
    warn(found, where=robot.name, allowed="rad", fix=fix)
