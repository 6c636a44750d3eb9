"""Charts of the panel: position, error, velocity and drive force of one coordinate over time, for all motions."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from torsor.base.arrays import Array
from torsor.base.scenes import Color
from torsor.view.live.figure import label, short, words
from torsor.view.live.shots import Film
from torsor.view.scene import curves as declared
from torsor.view.scene.curves import Charts, Curve, span

WIDTH, HEIGHT = 280, 88  # of one chart
MAX_STEPS, MAX_TIME_STEPS = 4, 5  # steps between numbers of an axis
LEFT, ABOVE, BELOW, APART = 40, 18, 8, 10  # its margins, for numbers, and the least distance of two numbers
AXIS = 12  # height of the numbers of the time, below the last chart


def charts(films: Sequence[tuple[Film, Color, bool]]) -> dict[str, Charts]:
    """Return the charts of ``torsor.view.scene.curves``, with names and colours for the panel."""
    lines = [
        (film.whole, f"rgb({','.join(str(round(255 * part)) for part in color[:3])})", dashed)
        for film, color, dashed in films
    ]
    return {label(name): each for name, each in declared.charts(lines).items()}


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
    for first, last, fill, title in ((*ends, fill, title) for spans, fill, title in shades for ends in spans):
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
    """Return round numbers (multiples of 1, 2 or 5 times a power of ten) between two numbers, with their texts.

    They divide the range into about ``steps`` intervals.

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
    low, high, limits, far = span(title, curves)

    def y(value: Array | float) -> Array:
        return np.asarray(top + ABOVE + (HEIGHT - ABOVE - BELOW) * (high - np.asarray(value)) / (high - low))

    def level(value: float, style: str) -> str:
        return f"<line x1='{LEFT}' x2='{WIDTH}' y1='{y(value):.1f}' y2='{y(value):.1f}' {style}/>"

    parts = [_text(LEFT, top + 11, words(title), "start")]
    if far:
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
