"""Charts of the panel: position, error, velocity and drive force of one coordinate over time, for all motions."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.base.scenes import Color
from torsor.mechanism.mechanism import force_units, units
from torsor.view.live.figure import label, short, words
from torsor.view.live.shots import Film

WIDTH, HEIGHT = 280, 88  # of one chart
MAX_STEPS, MAX_TIME_STEPS = 4, 5  # steps between numbers of an axis
LEFT, ABOVE, BELOW, APART = 40, 18, 8, 10  # its margins, for numbers, and the least distance of two numbers
AXIS = 12  # height of the numbers of the time, below the last chart
MAX_POINTS = 300  # points of a curve
NEAR_LIMIT = 1.6  # a limit is drawn if it is at most this multiple of the largest value
SHOWN_UNITS = {"rad": ("°", 180 / np.pi), "m": ("mm", 1000.0)}
KINDS = {"N m": "torque", "N": "force", "N m/kg": "moment", "N/kg": "force"}
PLACES = ("position", "angle")
PALE = "; pale: motor"  # part of the titles of charts with a motor and its link
ORDER = (*PLACES, "error", "deflection", "velocity", "torque", "moment", "force")


class Curve(NamedTuple):
    """Values (T,) at times (T,) in s, with lower and upper limits (infinite: none) and a colour.

    The curve of a motor behind a spring is ``pale``.
    """

    times: Array
    values: Array
    limits: tuple[float, float]
    color: str
    dashed: bool = False
    pale: bool = False

    @property
    def share(self) -> float:
        """The largest value as a fraction of its limit, or 0 without a limit."""
        largest = float(np.abs(self.values[np.isfinite(self.values)]).max(initial=0.0))
        return largest / self.limits[1] if 0 < self.limits[1] < np.inf else 0.0


Charts = dict[str, list[Curve]]
"""Curves by title: the quantity with its unit."""


def charts(films: Sequence[tuple[Film, Color, bool]]) -> dict[str, Charts]:
    """Return the charts of each coordinate. Each motion has a colour, and the curves of a reference are dashed.

    The drive nearest to its limit comes first. The charts of an elastic joint include its motor. If all motions are of
    the same robot, errors are the differences of the other motions from the first one, which is the reference if there
    is one. Moments of people are divided by the mass, and are omitted where ground forces are unknown.
    """
    found = dict[str, Charts]()
    against = "error: actual − reference" if any(dashed for _, _, dashed in films) else "error relative to the first"
    same = len({film.motion.robot.link_names for film, _, _ in films}) == 1
    for film, color, dashed in films:
        line, robot = film.motion.every(MAX_POINTS), film.motion.robot
        motors = {slot.q.start: name for name, slot in robot.motor_coordinates.items()}
        joints = {robot.position_names[k]: name for k, name in motors.items()}
        both = {*joints, *joints.values()}
        times, css = line.times - line.times[0], f"rgb({','.join(str(round(255 * part)) for part in color[:3])})"

        def add(
            name: str, title: str, values: Array, limits: tuple[float, float], times: Array = times, css: str = css,
            dashed: bool = dashed, joints: dict[str, str] = joints,
        ) -> list[Curve]:  # fmt: skip
            curves = found.setdefault(label(joints.get(name, name)), {}).setdefault(title, [])
            curves.append(Curve(times, values, limits, css, dashed, pale=name in joints and PALE in title))
            return curves

        position_units, rate_units = units(robot)
        for k, (name, unit) in enumerate(zip(robot.position_names, position_units, strict=True)):
            shown, factor = SHOWN_UNITS.get(unit, (unit, 1.0))
            ends = (factor * float(robot.lower[k]), factor * float(robot.upper[k]))
            title = line.rotation_title if unit == "rad" else "position"
            curves = add(name, f"{title} ({shown}{PALE if name in both else ''})", factor * line.q[:, k], ends)
            if k in motors:
                joint = robot.position_names.index(motors[k])
                ahead = factor * (line.q[:, k] - line.q[:, joint])
                add(motors[k], f"deflection: motor − link ({shown})", ahead, (-np.inf, np.inf))
                continue
            curves = [curve for curve in curves if not curve.pale]
            if same and len(curves) > 1 and unit in SHOWN_UNITS:
                error = curves[-1].values - np.interp(times, curves[0].times, curves[0].values)
                add(name, f"{against} ({shown})", error, (-np.inf, np.inf))
        for k, (name, unit) in enumerate(zip(robot.coordinate_names, rate_units, strict=True)):
            shown, factor = SHOWN_UNITS[unit]
            limit = factor * float(robot.velocity_limit[k])
            add(name, f"velocity ({shown}/s{PALE if name in both else ''})", factor * line.v[:, k], (-limit, limit))
        force_unit, (scale, per), known = force_units(robot), line.force_scale, line.known_tau
        for k in () if known is None else line.drives.tolist():
            name, limit = line.driven[k], scale * float(line.limits[k])
            unit = force_unit.get(name, "") + per
            add(name, f"{KINDS.get(unit, 'force')} ({unit})", scale * np.asarray(known)[:, k], (-limit, limit))
    ordered = sorted(found.items(), key=lambda item: -_share(item[1]))
    return {name: dict(sorted(each.items(), key=lambda item: ORDER.index(_kind(item[0])))) for name, each in ordered}


def _kind(title: str) -> str:
    """Return the quantity of a chart, without its unit."""
    return title.split()[0].strip(":")


def _share(each: Charts) -> float:
    """Return the largest drive force of a coordinate as a fraction of its limit, or -1 without a drive."""
    forces = [curve.share for title, curves in each.items() for curve in curves if _kind(title) in KINDS.values()]
    return max(forces, default=-1.0)


def drawing(
    each: Mapping[str, Sequence[Curve]],
    time: float,
    duration: float,
    gaps: Sequence[tuple[float, float]] = (),
    stances: Sequence[tuple[float, float]] = (),
    stride: str = "",
) -> str:
    """Return stacked charts as SVG, with dashed limits, a line at the time (s), grey gaps and green stance phases.

    With the side of a ``stride``, the numbers on the time axis are percentages of the gait cycle.
    """
    count = len(each)
    height = count * HEIGHT + (2 if stride else 1) * AXIS

    def x(t: Array | float) -> Array:
        return np.asarray(LEFT + (WIDTH - LEFT - 2) * np.asarray(t) / (duration or 1.0))

    parts = []
    shades = [(stances, "#2a63", "stance"), (gaps, "#8883", "no ground forces")]
    for first, last, fill, title in ((*span, fill, title) for spans, fill, title in shades for span in spans):
        wide = f"x='{x(first):.1f}' width='{x(last) - x(first):.1f}' y='0' height='{count * HEIGHT}'"
        parts.append(f"<rect {wide} fill='{fill}'><title>{title}</title></rect>")
    for k, (title, curves) in enumerate(each.items()):
        parts += _chart(title, curves, x, k * HEIGHT)
    parts.append(f"<line x1='{x(time):.1f}' x2='{x(time):.1f}' y1='0' y2='{count * HEIGHT}' stroke='#8888'/>")
    end, below = (100.0, count * HEIGHT + AXIS - 3) if stride else (duration, height - 3)
    times = ticks(0.0, end, MAX_TIME_STEPS)
    for t, text in times.items():
        shown = f"{text} s" if t == max(times) and not stride else text
        parts.append(_text(min(float(x(t * (duration / end if stride else 1.0))), WIDTH - 12), below, shown, "middle"))
    if stride:
        parts.append(_text((LEFT + WIDTH) / 2, height - 3, f"gait cycle (%) from {stride} heel strike", "middle"))
    return f"<svg viewBox='0 0 {WIDTH} {height}' style='width:100%;padding:0 0.7em'>{''.join(parts)}</svg>"


def ticks(low: float, high: float, steps: int) -> dict[float, str]:
    """Return round numbers between two numbers, and their texts: multiples of 1, 2 or 5 times a power of ten.

    Example:
        >>> ticks(-26.3, 0.0, 4)
        {-20.0: '−20', -10.0: '−10', 0.0: '0'}
    """
    rough = (high - low) / steps
    if not rough > 0:
        return {low: short(low)}
    sizes = 10.0 ** np.floor(np.log10(rough)) * np.array([0.5, 1.0, 2.0, 5.0, 10.0])
    enough = int(np.searchsorted(sizes[1:], 0.9 * rough)) + 1
    for step in (sizes[enough], sizes[enough - 1]):
        counts = range(int(np.ceil(low / step - 1e-6)), int(np.floor(high / step + 1e-6)) + 1)
        if len(counts) > 1:
            break
    return {float(k * step): f"{k * step:.6g}".replace("-", "−") for k in counts}


def _text(at: float, height: float, content: str, anchor: str) -> str:
    return f"<text x='{at}' y='{height:.1f}' text-anchor='{anchor}' font-size='10' fill='#6a7482'>{content}</text>"


def _chart(title: str, curves: Sequence[Curve], x: Callable[[Array | float], Array], top: int) -> list[str]:
    """Return the parts of one chart, from the height ``top`` downwards."""
    values = np.concatenate([curve.values[np.isfinite(curve.values)] for curve in curves])
    places = title.startswith(PLACES) and len(values) > 0  # all other charts include zero
    base = float(values[0]) if places else 0.0
    low, high = float(values.min(initial=base)), float(values.max(initial=base))
    near = (2 * low - high, 2 * high - low) if places else (NEAR_LIMIT * min(low, -high), NEAR_LIMIT * max(-low, high))
    limits = [limit for limit in dict.fromkeys(curves[0].limits) if near[0] <= limit <= near[1]]
    low, high = min([low, *limits]), max([high, *limits])
    low, high = (low, high) if high > low else (low - 1.0, high + 1.0)

    def y(value: Array | float) -> Array:
        return np.asarray(top + ABOVE + (HEIGHT - ABOVE - BELOW) * (high - np.asarray(value)) / (high - low))

    def level(value: float, style: str) -> str:
        return f"<line x1='{LEFT}' x2='{WIDTH}' y1='{y(value):.1f}' y2='{y(value):.1f}' {style}/>"

    parts = [_text(LEFT, top + 11, words(title), "start")]
    if far := [limit for limit in dict.fromkeys(curves[-1].limits) if np.isfinite(limit) and limit not in limits]:
        named = f"±{short(far[-1])}" if far == [-far[-1], far[-1]] else " and ".join(map(short, far))
        parts.append(_text(WIDTH, top + 11, f"limit{'s' if ' ' in named else ''} {named}", "end"))
    numbers = ticks(low, high, MAX_STEPS)
    parts += [level(value, "stroke='#8886'" if value == 0 else "stroke='#8882'") for value in numbers]
    parts += [level(limit, "stroke='#c8342c' stroke-dasharray='4 3'") for limit in limits]
    for curve in sorted(curves, key=lambda curve: curve.dashed):  # a reference is above the motion that follows it
        known = np.flatnonzero(np.isfinite(curve.values))
        style = f"fill='none' stroke='{curve.color}' stroke-width='1.6'" + " stroke-dasharray='3 2'" * curve.dashed
        style += " stroke-opacity='0.4'" * curve.pale
        for piece in np.split(known, np.flatnonzero(np.diff(known) > 1) + 1):
            points = zip(x(curve.times[piece]), y(curve.values[piece]), strict=True)
            listed = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
            parts.append(f"<polyline points='{listed}' {style}/>")
    written = {limit: short(limit) for limit in limits}
    for value, text in numbers.items():
        if all(abs(float(y(value) - y(other))) >= APART for other in written):
            written[value] = text
    return parts + [_text(LEFT - 4, float(y(value)) + 3, text, "end") for value, text in written.items()]
