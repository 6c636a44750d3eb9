"""Figures of curves over time (matplotlib, the extra ``plot``), with panels by unit, bounds and jumps.

All figures are drawn by this module or use its colours, units and axes.
"""

import colorsys
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from torsor.base.arrays import Array, Flags
from torsor.base.checks import several
from torsor.base.errors import ModelError, missing
from torsor.base.files import check_suffix, check_target, replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_CURVES = 8  # curves in a panel; more cannot be told apart
MAX_ROLLOUTS = 50  # maximum number of rollouts that are drawn
MAX_LABEL_LENGTH = 26  # characters of a name in a legend
DPI = 130
MAX_DEFAULT_COLOURS = 10  # maximum number of names that use the ten default colours; more names use a circle of hues
MAX_BOUND_DISTANCE = 1.0  # limits farther from the curves than this multiple of their span are not drawn
JUMPS = "dotted jumps: Coulomb friction acts against the velocity, and is zero at rest"
HOUSE = {"alpha": 0.3}
SIZES = {"wide": 9.0, "column": 6.2, "row": 2.5, "head": 0.7}


class Bound(NamedTuple):
    """Bounds ``lower`` and ``upper`` (K,) of a quantity's curves, from the time ``first`` to ``last`` (s)."""

    first: float
    last: float
    lower: Array
    upper: Array


@dataclass(frozen=True, eq=False)
class Quantity:
    """The curves of a quantity: ``values`` (..., T, K) with names and units (K); leading axes are rollouts.

    ``jumps`` (..., T - 1, K) marks intervals in which a curve jumps; they are dotted. If ``fits`` is True, the axes
    include all bounds; otherwise distant bounds are not drawn.

    Example:
        >>> Quantity("Positions", ["a", "b"], ["rad", "m"], np.zeros((5, 2))).panels
        [('rad', [0]), ('m', [1])]
    """

    title: str
    names: Sequence[str]
    units: Sequence[str]
    values: Array
    bounds: tuple[Bound, ...] = ()
    jumps: Flags | None = None
    fits: bool = True

    @property
    def panels(self) -> list[tuple[str, list[int]]]:
        """The panels: the unit of each, and the indices of up to eight curves in that unit."""
        result = []
        for unit in dict.fromkeys(self.units):
            curves = [k for k, item in enumerate(self.units) if item == unit]
            parts = np.array_split(curves, -(-len(curves) // MAX_CURVES))
            result += [(unit, part.tolist()) for part in parts]
        return result


# Shared parts


@cache
def shown_figure() -> "type[Figure]":
    """Return a figure class whose instances a notebook displays if they are the last expression of a cell.

    A plain matplotlib ``Figure`` is displayed only after importing pyplot or running ``%matplotlib inline``; otherwise
    a notebook prints its size. The extra ``plot`` (matplotlib) is required.

    Example:
        >>> shown_figure()(figsize=(1, 1))._repr_png_()[1:4]
        b'PNG'
    """
    from matplotlib.figure import Figure

    class ShownFigure(Figure):
        """A figure that a notebook displays."""

        def _repr_png_(self) -> bytes:
            content = io.BytesIO()
            self.savefig(content, format="png")
            return content.getvalue()

    return ShownFigure


def new_figure(width: float, height: float, tidy: bool = True) -> "Figure":
    """Return an empty figure of a given size (inches); ``tidy`` leaves space for labels between its panels.

    Example:
        >>> float(new_figure(4.0, 3.0).get_figwidth())
        4.0
    """
    try:
        made = shown_figure()
    except ImportError:
        raise missing("figures need matplotlib", "plot") from None
    return made(figsize=(width, height), layout="constrained" if tidy else None)


def saved(figure: "Figure", path: str | Path | None, dpi: int = DPI) -> "Figure":
    """Return a figure, and save it atomically (as .png by default) if a path is given.

    Example:
        >>> saved(new_figure(4.0, 3.0), "no/such.png")
        Traceback (most recent call last):
        torsor.ModelError: no/such.png: its folder does not exist; fix: create the folder first
    """
    if path is None:
        return figure
    file = Path(path)
    if not file.suffix and not file.is_dir():
        file = file.with_name(f"{file.name}.png")
    check_target(file)
    check_suffix(file, (f".{filetype}" for filetype in sorted(figure.canvas.get_supported_filetypes())), str(path))
    with replacing(file) as part:
        figure.savefig(part, dpi=dpi, format=file.suffix[1:].lower())
    return figure


def colours_of(*panels: Iterable[str]) -> dict[str, str]:
    """Return distinct colours for the names in several panels, far apart within each panel.

    Up to ten names get the ten default colours. More names get hues from a circle with eight slots, in which hue and
    lightness vary from name to name.

    Example:
        >>> colours_of(["hip", "knee"], ["hip", "toe"])
        {'hip': 'C0', 'knee': 'C1', 'toe': 'C2'}
        >>> len(set(colours_of(map(str, range(55))).values()))
        55
    """
    groups = [list(dict.fromkeys(panel)) for panel in panels]
    names = list(dict.fromkeys(name for group in groups for name in group))
    if len(names) <= MAX_DEFAULT_COLOURS:
        return {name: f"C{k}" for k, name in enumerate(names)}
    slots = dict[str, tuple[int, int]]()  # the slot of each name, and its position in the slot
    used = [0] * MAX_CURVES
    for group in groups:
        taken = [slots[name][0] for name in group if name in slots]
        for name in (member for member in group if member not in slots):
            slot = min(range(MAX_CURVES), key=lambda k: (taken.count(k), used[k], k))
            slots[name] = slot, used[slot]
            used[slot] += 1
            taken.append(slot)
    result = dict[str, str]()
    for name in names:
        slot, turn = slots[name]
        hue, lightness = (slot + turn / max(used)) / MAX_CURVES, (0.5, 0.3, 0.4)[turn % 3]
        rgb = colorsys.hls_to_rgb(hue, lightness, 0.9 if slot % 2 else 0.7)
        result[name] = "#" + "".join(f"{round(255 * channel):02x}" for channel in rgb)
    return result


def label(name: str) -> str:
    r"""Return a name as literal matplotlib text, in which dollar signs and leading underscores have no effect.

    Example:
        >>> label("_x$y"), label("joint1")
        (' _x\\$y', 'joint1')
    """
    short = name if len(name) <= MAX_LABEL_LENGTH else f"{name[: MAX_LABEL_LENGTH - 9]}...{name[-6:]}"
    return (" " if short.startswith("_") else "") + short.replace("$", r"\$")


def styled(axes: Any, title: str = "", unit: str = "") -> None:
    """Format a panel with a title, the unit of the vertical axis and a grid, without a frame at the top and right."""
    axes.set(title=title, ylabel=unit)
    axes.grid(**HOUSE)
    axes.spines[["top", "right"]].set_visible(False)


def checked_what(what: str | Sequence[str], known: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the quantities to draw; raise ModelError for an unknown name.

    Example:
        >>> checked_what("q", ["q", "v"])
        ('q',)
    """
    names, allowed = several(what), ", ".join(known)
    for name in names:
        if name not in allowed.split(", "):
            raise ModelError(f"cannot plot {name!r}", value=name, allowed=allowed)
    if not names:
        raise ModelError("there is nothing to plot", allowed=allowed)
    return names


# The figure of curves over time


def plot_quantities(
    quantities: Sequence[Quantity], times: Array, title: str, path: str | Path | None = None, marks: Array | None = None
) -> "Figure":
    """Return a figure of quantities over ``times`` (T,), with panels by unit of up to eight curves, and legends.

    A name has the same colour in all panels. Dashed vertical lines are drawn at the times ``marks`` (s).
    """
    counts = [len(item.panels) for item in quantities]
    most = max(counts)
    beside = most <= 2  # the panels of a quantity are side by side, otherwise stacked
    rows, columns = (len(quantities), most) if beside else (most, len(quantities))
    colours = colours_of(*([item.names[i] for i in own] for item in quantities for _, own in item.panels))
    width = SIZES["wide"] if columns == 1 else SIZES["column"] * columns
    figure = new_figure(width, SIZES["row"] * rows + SIZES["head"])
    grid = figure.subplots(rows, columns, sharex=True, squeeze=False)
    places = grid if beside else grid.T
    shown, used = False, np.zeros(grid.shape, dtype=bool)
    for k, quantity in enumerate(quantities):
        for j, (unit, curves) in enumerate(quantity.panels):
            axes = places[k, j]
            shown |= draw_panel(axes, quantity, times, colours, curves)
            styled(axes, "" if j else quantity.title, unit)
            (used if beside else used.T)[k, j] = True
            for mark in [] if marks is None else marks:
                axes.axvline(mark, color="0.5", linewidth=0.8, linestyle="--")
    for empty in grid[~used]:
        figure.delaxes(empty)
    for column, own_column in zip(grid.T, used.T, strict=True):
        lowest = column[np.flatnonzero(own_column)[-1]]
        lowest.set_xlabel("time (s)")
        lowest.tick_params(labelbottom=True)
    if len(times) > 1:
        grid[0, 0].set_xlim(float(times[0]), float(times[-1]))
    grid[0, 0].locator_params("x", nbins=6)
    jumps = any(item.jumps is not None and item.jumps.any() for item in quantities)
    lines = [label_of_title(title), *["dotted lines: bounds"] * shown, *[JUMPS] * jumps]
    figure.suptitle("\n".join(lines), fontsize="large")
    return saved(figure, path)


def label_of_title(title: str) -> str:
    """Return a title with literal dollar signs."""
    return title.replace("$", r"\$")


def draw_panel(
    axes: Any, quantity: Quantity, times: Array, colours: Mapping[str, str] | None = None, own: list[int] | None = None
) -> bool:
    """Draw the curves of a quantity, or only those in ``own``, in one panel with a legend beside it.

    Return whether bounds were close enough to be drawn.
    """
    colours = colours_of(quantity.names) if colours is None else colours
    own = list(range(len(quantity.names))) if own is None else own
    rollouts = quantity.values.reshape(-1, *quantity.values.shape[-2:])[:MAX_ROLLOUTS]
    jumps = None if quantity.jumps is None else quantity.jumps.reshape(-1, *quantity.jumps.shape[-2:])
    opacity = 1.0 if len(rollouts) == 1 else max(0.15, 1 / len(rollouts) ** 0.5)
    for k, rollout in enumerate(rollouts):
        for i in own:
            style = {"color": colours[quantity.names[i]], "alpha": opacity}
            _curve(axes, times, rollout[:, i], None if jumps is None else jumps[k, :, i], style)
    lines = [line for line in axes.lines if line.get_linestyle() == "-"][: len(own)]
    bounded = _bounds(axes, quantity, own, colours)
    if lines:
        names, place = [label(quantity.names[i]) for i in own], {"loc": "center left", "bbox_to_anchor": (1, 0.5)}
        for line in axes.legend(lines, names, fontsize="small", frameon=False, **place).get_lines():
            line.set_alpha(1.0)
    return bounded


def _curve(axes: Any, times: Array, values: Array, jumps: Flags | None, style: Mapping[str, Any]) -> None:
    """Draw a curve with a solid line, dotted where it jumps."""
    if jumps is None or not jumps.any():
        axes.plot(times, values, linewidth=1.3, **style)
        return
    places = np.flatnonzero(jumps) + 1
    axes.plot(np.insert(times, places, np.nan), np.insert(values, places, np.nan), linewidth=1.3, **style)
    for place in places:
        between = slice(place - 1, place + 1)
        axes.plot(times[between], values[between], linewidth=0.9, linestyle=":", **style)


def _bounds(axes: Any, quantity: Quantity, curves: list[int], colours: Mapping[str, str]) -> bool:
    """Draw the bounds of each curve while they apply, and shade the region beyond the bounds of all curves."""
    low, high = axes.get_ylim()
    span = high - low
    known = [(entry, entry.lower[curves], entry.upper[curves]) for entry in quantity.bounds]
    ends = np.concatenate([np.zeros(0), *(np.concatenate([lower, upper]) for _, lower, upper in known)])
    ends = ends[np.isfinite(ends)]
    if not quantity.fits:
        ends = ends[(ends >= low - MAX_BOUND_DISTANCE * span) & (ends <= high + MAX_BOUND_DISTANCE * span)]
    if not ends.size:
        return False
    margin = 0.08 * max(high, ends.max()) - 0.08 * min(low, ends.min())
    low = min(low, ends.min() - margin * bool(ends.min() < low))
    high = max(high, ends.max() + margin * bool(ends.max() > high))
    for item, lower, upper in known:
        for i, sides in zip(curves, zip(lower, upper, strict=True), strict=True):
            for bound in sides:
                if low <= bound <= high:
                    style = {"color": colours[quantity.names[i]], "linewidth": 0.9, "linestyle": ":"}
                    axes.plot([item.first, item.last], [bound, bound], **style)
        for edge, end in ((upper.max(), high), (lower.min(), low)):
            if low <= edge <= high:
                axes.fill_between([item.first, item.last], edge, end, color="0.5", alpha=0.15, linewidth=0)
    axes.set_ylim(low, high)
    return True
