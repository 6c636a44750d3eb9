"""Figures of an identification (matplotlib, the extra ``plot``)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from torsor.identification.result import Identified

__all__ = ["plot"]


def plot(found: "Identified", path: str | Path | None) -> Any:
    """Return a figure with a panel for each coordinate: measured and predicted forces, and their difference."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("figures need matplotlib; fix: pip install torsor[plot]") from None
    names, data = found.prior.coordinate_names, found.measurements
    columns = 1 if len(names) < 4 else 2
    rows = -(-len(names) // columns)
    figure = Figure(figsize=(6.5 * columns, 2.1 * rows + 0.9), layout="constrained")
    panels = figure.subplots(rows, columns, sharex=True, squeeze=False).T.ravel()
    along = np.arange(len(data)) if data.times is None else data.times
    for axes, name, measured, predicted, percent in zip(
        panels, names, data.tau.T, found.predicted.T, found.relative_residuals, strict=False
    ):
        axes.plot(along, measured, color="0.65", linewidth=2.2, label="measured")
        axes.plot(along, measured - predicted, color="C3", linewidth=0.6, alpha=0.7, label="difference")
        axes.plot(along, predicted, color="C0", linewidth=1.2, label="predicted")
        axes.set_title(f"{name}: difference {percent:.2g} % of the force", fontsize="medium")
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in panels[len(names) :]:
        figure.delaxes(axes)
    for axes in {panels[rows - 1], panels[len(names) - 1]}:
        axes.set_xlabel("sample" if data.times is None else "time (s)")
        axes.tick_params(labelbottom=True)
    panels[0].set_ylabel("N m, N")
    figure.suptitle(f"{found.prior.name}: measured and predicted forces")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper right", ncols=3, frameon=False)
    if path is not None:
        figure.savefig(path, dpi=130)
    return figure
