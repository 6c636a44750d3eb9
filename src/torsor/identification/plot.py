"""Figures of an identification (matplotlib, the extra ``plot``)."""

from pathlib import Path
from typing import Any

import numpy as np

from torsor.arrays import Array
from torsor.identification.measurements import Measurements
from torsor.mechanism.units import force_units
from torsor.robot.robot import Robot


def plot(robot: Robot, data: Measurements, predicted: Array, percents: Array, path: str | Path | None) -> Any:
    """Return a figure with a panel for each coordinate: measured and ``predicted`` (N, nv) forces, and residuals.

    ``percents`` (nv,) are the residuals in percent of the forces.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("figures need matplotlib; fix: pip install torsor[plot]") from None
    names, units = robot.coordinate_names, force_units(robot)
    columns = 1 if len(names) < 4 else 2
    rows = -(-len(names) // columns)
    figure = Figure(figsize=(6.5 * columns, 2.1 * rows + 0.9), layout="constrained")
    panels = figure.subplots(rows, columns, sharex=True, squeeze=False).T.ravel()
    along = np.arange(len(data)) if data.times is None else data.times
    for axes, name, measured, own, percent in zip(panels, names, data.tau.T, predicted.T, percents, strict=False):
        axes.plot(along, measured, color="0.65", linewidth=2.2, label="measured")
        axes.plot(along, own, color="C0", linewidth=1.2, label="predicted")
        # The residual is drawn behind the forces, which it would hide.
        axes.plot(along, measured - own, color="C3", linewidth=0.6, alpha=0.5, zorder=1, label="residual")
        axes.set_title(f"{name}: residual {percent:.2g} % of the force", fontsize="medium")
        axes.set_ylabel(units[name])
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in panels[len(names) :]:
        figure.delaxes(axes)
    for axes in {panels[rows - 1], panels[len(names) - 1]}:
        axes.set_xlabel("sample" if data.times is None else "time (s)")
        axes.tick_params(labelbottom=True)
    figure.suptitle(f"{robot.name}: measured and predicted forces")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper right", ncols=3, frameon=False)
    if path is not None:
        figure.savefig(path, dpi=130)
    return figure
