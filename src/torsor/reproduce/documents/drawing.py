"""What the figures share: the look of panels, and sketches of planar arms."""

from typing import Any

import numpy as np

from torsor.base.arrays import Array


def tidy(axes: Any, title: str, x: str = "", y: str = "", beside: bool = False) -> None:
    """Give a panel its title and labels, a light grid, and a legend of its curves, which may be beside the panel."""
    axes.set_title(title, fontsize=10)
    axes.set(xlabel=x, ylabel=y)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[0]:
        place = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)} if beside else {}
        axes.legend(fontsize="small", frameon=False, **place)


def curves(axes: Any, x: Array, y: Array, names: tuple[str, ...]) -> None:
    """Draw the columns of y (T, n) over x (T,)."""
    for column, name in zip(np.asarray(y).T, names, strict=True):
        axes.plot(x, column, label=name, linewidth=1.6)


def snapshots(axes: Any, x: Array, y: Array, shown: Array) -> None:
    """Draw polygons with corners x, y (K, corners), from dark (first) to light (last)."""
    import matplotlib

    colours = matplotlib.colormaps["viridis"]
    for k, s in enumerate(shown):
        axes.plot(x[k], y[k], "o-", color=colours(0.9 * s), markersize=3.5, linewidth=1.8)
    axes.set_aspect("equal")


def peaks(values: Array, least: float) -> int:
    """Return the number of maxima of a curve that stand out from the valleys beside them by ``least`` of its range.

    Example:
        >>> peaks(np.array([0.0, 1.0, 0.2, 0.9, 0.0]), 0.1)
        2
    """
    margin, count, low, high, is_rising = least * np.ptp(values), 0, values[0], values[0], True
    for value in values[1:]:
        low, high = min(low, value), max(high, value)
        if is_rising and value < high - margin:
            count, low, is_rising = count + 1, value, False
        elif not is_rising and value > low + margin:
            high, is_rising = value, True
    return count + int(is_rising and high > low + margin)
