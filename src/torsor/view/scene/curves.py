"""Curves of the charts of all viewers: position, error, velocity and force of each coordinate, and ground forces."""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.interpolate import CubicHermiteSpline

from torsor.base.arrays import Array
from torsor.mechanism import Mechanism
from torsor.mechanism.mechanism import force_units, units
from torsor.simulation.timeline import Timeline
from torsor.view.scene.scene import upwards, weight

MAX_POINTS = 500  # points of a curve
SHAPE_TOLERANCE = 2e-3  # largest distance of a curve from a sample, in ranges of the curve: 0.2 pixels
NEAR_LIMIT = 1.6  # a limit is drawn if it is at most this multiple of the largest value
MIN_STANCE_FORCE = 0.025  # of the weight: 20 N, the usual threshold of gait events, for a person of 80 kg
SHOWN_UNITS = {"rad": ("°", 180 / np.pi), "m": ("mm", 1000.0)}
KINDS = {"N m": "torque", "N": "force", "N m/kg": "moment", "N/kg": "force"}
PLACES = ("position", "angle")
PALE, RESIDUAL = "; pale: motor", "; pale: residual"  # parts of the titles of charts with pale curves
SIGNED = "; signed as the angle"  # part of the titles of joint moments: figures in reports have other signs
ORDER = (*PLACES, "error", "deflection", "velocity", "torque", "moment", "force", "vertical")


class Curve(NamedTuple):
    """Values (T,) at times (T,) in s, with lower and upper limits (infinite: none), a colour and the index of a motion.

    The curves of a motor behind a spring and of residuals are ``pale``.
    """

    times: Array
    values: Array
    limits: tuple[float, float]
    color: str
    dashed: bool = False
    pale: bool = False
    motion: int = 0

    @property
    def share(self) -> float:
        """The largest value as a fraction of its limit, or 0 without a limit."""
        largest = float(np.abs(self.values[np.isfinite(self.values)]).max(initial=0.0))
        return largest / self.limits[1] if 0 < self.limits[1] < np.inf else 0.0

    def thinned(self) -> "Curve":
        """Return the curve through at most 500 samples, from which all others deviate by at most 0.2 % of its range.

        The sample farthest from the curve is added repeatedly until all are near it. If there are too many, peaks are
        kept.

        Example:
            >>> impact = np.where(np.arange(1001) == 700, 9.0, 1.0)
            >>> few = Curve(np.arange(1001) / 1000, impact, (-np.inf, np.inf), "red").thinned()
            >>> few.times.tolist(), few.values.tolist()
            ([0.0, 0.699, 0.7, 0.701, 1.0], [1.0, 1.0, 9.0, 1.0, 1.0])
        """
        known = np.isfinite(self.values)
        edges = np.flatnonzero(known[1:] != known[:-1])
        samples = np.unique([0, *edges, *(edges + 1), len(known) - 1]).tolist()
        tolerance = SHAPE_TOLERANCE * float(np.ptp(self.values[known])) if known.any() else 0.0
        gaps = [self._gap(first, last) for first, last in pairwise(samples)]
        heapify(gaps)
        while gaps and -gaps[0][0] > tolerance and len(samples) < MAX_POINTS:
            _, first, farthest, last = heappop(gaps)
            samples.append(farthest)
            heappush(gaps, self._gap(first, farthest))
            heappush(gaps, self._gap(farthest, last))
        samples.sort()
        return self._replace(times=self.times[samples], values=self.values[samples])

    def _gap(self, first: int, last: int) -> tuple[float, int, int, int]:
        """Return minus the largest distance of samples from the line between two, and the sample that has it."""
        t, y = self.times[first : last + 1], self.values[first : last + 1]
        if len(t) < 3 or not np.isfinite(y[0]):
            return 0.0, first, first, last
        distance = np.abs(y - np.interp(t, t[[0, -1]], y[[0, -1]]))
        farthest = int(np.argmax(distance))
        return -float(distance[farthest]), first, first + farthest, last


Charts = dict[str, list[Curve]]
"""Curves by title: the quantity with its unit."""


def driven_joints(robot: Mechanism) -> dict[str, str]:
    """Return the elastic joint of each motor coordinate.

    Example:
        >>> driven_joints(torsor.library.two_link().with_motor("joint2", 1e-4, 50.0, "link1", stiffness=1000.0))
        {'joint2/motor': 'joint2'}
    """
    return {robot.position_names[slot.q.start]: joint for joint, slot in robot.motor_coordinates.items()}


def charts(lines: Sequence[tuple[Timeline, str, bool]]) -> dict[str, Charts]:
    """Return the charts of each coordinate, and of the ground force normal to the ground at each foot.

    Each motion has a colour, and the curves of a reference are dashed.

    The drive nearest to its limit comes first. The charts of an elastic joint include its motor. If all motions are of
    the same robot, errors are the differences of the other motions from the first one, which is the reference if there
    is one. Forces of people are divided by the mass, and are omitted where ground forces are unknown.

    Example:
        >>> from torsor.view.scene import timeline
        >>> fall = timeline(torsor.simulate(torsor.library.two_link(), duration=0.1))
        >>> list(charts([(fall, "blue", False)])["joint1"])
        ['position (°)', 'velocity (°/s)', 'torque (N m)']
    """
    found = dict[str, Charts]()
    against = "error: actual − reference" if any(dashed for _, _, dashed in lines) else "error relative to the first"
    same = len({line.robot.link_names for line, _, _ in lines}) == 1
    for number, (line, color, dashed) in enumerate(lines):
        robot = line.robot
        joints = driven_joints(robot)
        both, times = {*joints, *joints.values()}, line.times - line.times[0]

        def add(
            name: str, title: str, values: Array, limits: tuple[float, float] = (-np.inf, np.inf), pale: bool = False,
            times: Array = times, style: tuple[str, bool] = (color, dashed), joints: dict[str, str] = joints,
            number: int = number,
        ) -> list[Curve]:  # fmt: skip
            curves = found.setdefault(joints.get(name, name), {}).setdefault(title, [])
            curves.append(Curve(times, values, limits, *style, pale or (name in joints and PALE in title), number))
            return curves

        position_units, rate_units = units(robot)
        for k, (name, unit) in enumerate(zip(robot.position_names, position_units, strict=True)):
            shown, factor = SHOWN_UNITS.get(unit, (unit, 1.0))
            ends = (factor * float(robot.lower[k]), factor * float(robot.upper[k]))
            title = line.rotation_title if unit == "rad" else "position"
            curves = add(name, f"{title} ({shown}{PALE if name in both else ''})", factor * line.q[:, k], ends)
            if name in joints:
                ahead = factor * (line.q[:, k] - line.q[:, robot.position_names.index(joints[name])])
                add(name, f"deflection: motor − link ({shown})", ahead)
                continue
            curves = [curve for curve in curves if not curve.pale]
            if same and len(curves) > 1 and unit in SHOWN_UNITS:
                add(name, f"{against} ({shown})", factor * (line.q[:, k] - _position(lines[0][0], name, times)))
        for k, (name, unit) in enumerate(zip(robot.coordinate_names, rate_units, strict=True)):
            shown, factor = SHOWN_UNITS[unit]
            limit = factor * float(robot.velocity_limit[k])
            add(name, f"velocity ({shown}/s{PALE if name in both else ''})", factor * line.v[:, k], (-limit, limit))
        force_unit, (scale, per), known = force_units(robot), line.force_scale, line.known_tau
        for k in () if known is None else line.drives.tolist():
            name, limit = line.driven[k], scale * float(line.limits[k])
            unit = force_unit.get(name, "") + per
            kind = KINDS.get(unit, "force")
            note = RESIDUAL if line.residuals is not None else SIGNED if kind == "moment" else ""
            title = f"{kind} ({unit}{note})"
            if line.residuals is not None:
                add(name, title, scale * line.residuals[:, k], (-limit, limit), pale=True)
            add(name, title, scale * np.asarray(known)[:, k], (-limit, limit))
        normal = upwards(robot) if line.floor is None else line.floor[:3]
        for k, foot in enumerate(line.feet):
            push = np.nan_to_num(scale * np.asarray(line.ground)[:, k, 3:] @ normal)  # NaN where the foot is in the air
            unknown = np.zeros(len(line), bool) if line.valid is None else ~line.valid
            add(f"{foot} (ground)", f"vertical ground force (N{per})", np.where(unknown, np.nan, push))
    ordered = sorted(found.items(), key=lambda item: -_share(item[1]))
    return {
        name: {title: [curve.thinned() for curve in each[title]] for title in sorted(each, key=_place)}
        for name, each in ordered
    }


def _position(line: Timeline, name: str, times: Array) -> Array:
    """Return a position at times (s) after the start: cubic between samples, or linear if it has no velocity."""
    robot = line.robot
    known, samples = np.unique(line.times - line.times[0], return_index=True)
    q = line.q[samples, robot.position_names.index(name)]
    if name in robot.coordinate_names and len(known) > 1:
        v = line.v[samples, robot.coordinate_names.index(name)]
        if np.isfinite(v).all():
            return np.asarray(CubicHermiteSpline(known, q, v)(np.clip(times, 0.0, known[-1])))
    return np.asarray(np.interp(times, known, q))


def _kind(title: str) -> str:
    """Return the quantity of a chart, without its unit."""
    return title.split()[0].strip(":")


def _place(title: str) -> int:
    """Return the place of a chart below the others of a coordinate."""
    return ORDER.index(_kind(title))


def _share(each: Charts) -> float:
    """Return the largest drive force of a coordinate as a fraction of its limit, or -1 without a drive."""
    forces = [curve.share for title, curves in each.items() for curve in curves if _kind(title) in KINDS.values()]
    return max(forces, default=-1.0)


def stances(line: Timeline, coordinate: str) -> list[tuple[float, float]]:
    """Return the intervals (s) in which a person's foot on the side of a coordinate is on the ground."""
    for k, foot in enumerate(line.feet if line.is_person else ()):
        if coordinate.startswith(foot) or coordinate.endswith(f"_{foot[0]}"):
            force = np.linalg.norm(np.asarray(line.ground)[:, k, 3:], axis=-1)
            return line.intervals(force > MIN_STANCE_FORCE * weight(line.robot))
    return []


class Span(NamedTuple):
    """The values at the lower and upper end of a chart, the ``limits`` between them, and the limits ``far`` outside."""

    low: float
    high: float
    limits: list[float]
    far: list[float]


def span(title: str, curves: Sequence[Curve]) -> Span:
    """Return the range of a chart: that of its curves and of near limits. Only charts of positions can exclude zero.

    Example:
        >>> span("torque (N m)", [Curve(np.arange(2.0), np.array([1.0, 3.0]), (-4.0, 4.0), "red")])
        Span(low=-4.0, high=4.0, limits=[-4.0, 4.0], far=[])
    """
    values = np.concatenate([curve.values[np.isfinite(curve.values)] for curve in curves])
    places = title.startswith(PLACES) and len(values) > 0
    base = float(values[0]) if places else 0.0
    low, high = float(values.min(initial=base)), float(values.max(initial=base))
    near = (2 * low - high, 2 * high - low) if places else (NEAR_LIMIT * min(low, -high), NEAR_LIMIT * max(-low, high))
    limits = [limit for limit in dict.fromkeys(curves[0].limits) if near[0] <= limit <= near[1]]
    low, high = min([low, *limits]), max([high, *limits])
    low, high = (low, high) if high > low else (low - 1.0, high + 1.0)
    far = [limit for limit in dict.fromkeys(curves[-1].limits) if np.isfinite(limit) and limit not in limits]
    return Span(low, high, limits, far)
