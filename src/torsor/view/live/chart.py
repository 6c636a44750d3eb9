"""The chart of the panel: a drive torque, coordinate, velocity or error over time in all motions, with its limits."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.base.scenes import Color
from torsor.mechanism.mechanism import force_units, units
from torsor.view.live.figure import label, short
from torsor.view.live.shots import Film

WIDTH, HEIGHT = 280, 116  # of the drawing
LEFT, ABOVE, BELOW, APART = 40, 8, 24, 10  # its margins, for numbers, and the least distance of two numbers
MAX_POINTS = 300  # points of a curve
NEAR_LIMIT = 1.6  # a limit is drawn if it is at most this multiple of the largest value
SHOWN_UNITS = {"rad": ("°", 180 / np.pi), "m": ("mm", 1000.0)}
KINDS = {"N m": "torque", "N": "force"}


class Curve(NamedTuple):
    """Values (T,) at times (T,) in s, with the lower and upper limit (infinite: none) and a colour."""

    times: Array
    values: Array
    limits: tuple[float, float]
    color: str

    @property
    def share(self) -> float:
        """The largest value as a fraction of its limit; 0 without a limit."""
        largest = float(np.abs(self.values[np.isfinite(self.values)]).max(initial=0.0))
        return largest / self.limits[1] if 0 < self.limits[1] < np.inf else 0.0


def quantities(films: Sequence[tuple[Film, Color]]) -> dict[str, list[Curve]]:
    """Return the curves of each drive torque, coordinate, velocity and error by title.

    The drive nearest to its limit comes first. Errors are the differences of further motions from the first one, if all
    are of the same robot.
    """
    drives, positions = dict[str, list[Curve]](), dict[str, list[Curve]]()
    velocities, errors = dict[str, list[Curve]](), dict[str, list[Curve]]()
    same = len({film.motion.robot.link_names for film, _ in films}) == 1
    for film, color in films:
        line, robot = film.motion.every(MAX_POINTS), film.motion.robot
        times, css = line.times - line.times[0], f"rgb({','.join(str(round(255 * part)) for part in color[:3])})"
        force_unit = force_units(robot)
        for k in () if line.tau is None else film.drives.tolist():
            name, limit = line.driven[k], float(line.limits[k])
            title = label(f"{name} ({force_unit.get(name, '')})")
            drives.setdefault(title, []).append(Curve(times, np.asarray(line.tau)[:, k], (-limit, limit), css))
        position_units, rate_units = units(robot)
        for k, (name, unit) in enumerate(zip(robot.position_names, position_units, strict=True)):
            shown, factor = SHOWN_UNITS.get(unit, (unit, 1.0))
            ends = (factor * float(robot.lower[k]), factor * float(robot.upper[k]))
            title = label(f"{name} ({shown})")
            curves = positions.setdefault(title, [])
            curves.append(Curve(times, factor * line.q[:, k], ends, css))
            if same and len(curves) > 1 and unit in SHOWN_UNITS:
                error = curves[-1].values - np.interp(times, curves[0].times, curves[0].values)
                title = label(f"error of {name} ({shown})")
                errors.setdefault(title, []).append(Curve(times, error, (-np.inf, np.inf), css))
        for k, (name, unit) in enumerate(zip(robot.coordinate_names, rate_units, strict=True)):
            shown, factor = SHOWN_UNITS[unit]
            limit, title = factor * float(robot.velocity_limit[k]), label(f"velocity of {name} ({shown}/s)")
            velocities.setdefault(title, []).append(Curve(times, factor * line.v[:, k], (-limit, limit), css))
    ordered = sorted(drives, key=lambda title: -max(curve.share for curve in drives[title]))
    return {title: drives[title] for title in ordered} | positions | velocities | errors


def drawing(curves: Sequence[Curve], time: float, duration: float) -> str:
    """Return the curves as SVG, with dashed limits and a line at the time (s) that is shown."""
    values = np.concatenate([curve.values[np.isfinite(curve.values)] for curve in curves])
    low, high = float(values.min(initial=0.0)), float(values.max(initial=0.0))
    near = NEAR_LIMIT * max(-low, high)
    limits = [limit for limit in dict.fromkeys(curves[0].limits) if abs(limit) <= near]
    low, high = min([low, *limits]), max([high, *limits])
    low, high = (low, high) if high > low else (-1.0, 1.0)

    def x(t: Array | float) -> Array:
        return np.asarray(LEFT + (WIDTH - LEFT - 2) * np.asarray(t) / (duration or 1.0))

    def y(value: Array | float) -> Array:
        return np.asarray(ABOVE + (HEIGHT - ABOVE - BELOW) * (high - np.asarray(value)) / (high - low))

    def level(value: float, style: str) -> str:
        return f"<line x1='{LEFT}' x2='{WIDTH}' y1='{y(value):.1f}' y2='{y(value):.1f}' {style}/>"

    def text(at: float, height: float, words: str, anchor: str) -> str:
        return f"<text x='{at}' y='{height:.1f}' text-anchor='{anchor}' font-size='10' fill='#6a7482'>{words}</text>"

    parts = [level(0.0, "stroke='#8886'")]
    parts += [level(limit, "stroke='#c8342c' stroke-dasharray='4 3'") for limit in limits]
    for curve in curves:
        finite = np.isfinite(curve.values)
        points = zip(x(curve.times[finite]), y(curve.values[finite]), strict=True)
        listed = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
        parts.append(f"<polyline points='{listed}' fill='none' stroke='{curve.color}' stroke-width='1.6'/>")
    parts.append(f"<line x1='{x(time):.1f}' x2='{x(time):.1f}' y1='0' y2='{HEIGHT - BELOW + 4}' stroke='#8888'/>")
    written = list[float]()
    for value in (*limits, low, high, 0.0):
        if all(abs(float(y(value) - y(other))) >= APART for other in written):
            written.append(value)
    parts += [text(LEFT - 4, float(y(value)) + 3, short(value), "end") for value in written]
    parts += [text(LEFT, HEIGHT - 3, "0", "start"), text(WIDTH, HEIGHT - 3, f"{duration:.3g} s", "end")]
    return f"<svg viewBox='0 0 {WIDTH} {HEIGHT}' style='width:100%;padding:0 0.7em'>{''.join(parts)}</svg>"
