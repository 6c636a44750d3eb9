"""Figures of an identification: measured and predicted forces, with the band of the residuals."""

from pathlib import Path
from typing import Any

import numpy as np

from torsor.arrays import Array
from torsor.identification.measurements import Measurements
from torsor.mechanism.units import force_units
from torsor.results.figures import label, label_of_title, new_figure, saved, styled
from torsor.robot.robot import Robot

MEASURED, PREDICTED, RESIDUAL = "0.65", "C0", "C3"


def plot(
    robot: Robot, data: Measurements, predicted: Array, rms: Array, percents: Array, how: str, path: str | Path | None
) -> Any:
    """Return a figure with a panel for each coordinate: measured and ``predicted`` (N, nv) forces, and residuals.

    ``rms`` (nv,) are the root mean squares of the residuals, a band about zero, and ``percents`` (nv,) these in percent
    of the forces; ``how`` says how the parameters were identified.
    """
    names, units = robot.coordinate_names, force_units(robot)
    columns = 1 if len(names) < 4 else 2 if len(names) < 13 else 4
    rows = -(-len(names) // columns)
    figure = new_figure((6.5 if columns < 4 else 5.0) * columns, 2.1 * rows + 0.9)
    panels = figure.subplots(rows, columns, sharex=True, squeeze=False).T.ravel()
    along = np.arange(len(data)) if data.times is None else data.times
    sizes = zip(rms, percents, strict=True)
    for axes, name, measured, own, (size, percent) in zip(panels, names, data.tau.T, predicted.T, sizes, strict=False):
        axes.plot(along, measured, color=MEASURED, linewidth=2.2, label="measured")
        axes.plot(along, own, color=PREDICTED, linewidth=1.2, label="predicted")
        # The residual is drawn behind the forces, which it would hide.
        axes.plot(along, measured - own, color=RESIDUAL, linewidth=0.6, alpha=0.5, zorder=1, label="residual")
        band = {"color": RESIDUAL, "alpha": 0.12, "linewidth": 0, "label": "± 2 RMS of the residual"}
        axes.axhspan(-2 * size, 2 * size, **band)
        styled(axes, unit=units[name])
        axes.set_title(
            f"{label(name)}: residual {size:.2g} {units[name]}, {percent:.2g} % of the force", fontsize="medium"
        )
    for axes in panels[len(names) :]:
        figure.delaxes(axes)
    lowest = [panels[min(k * rows + rows, len(names)) - 1] for k in range(-(-len(names) // rows))]
    for axes in lowest:
        axes.set_xlabel("sample" if data.times is None else "time (s)")
        axes.tick_params(labelbottom=True)
    what = f"{len(data)} samples, parameters: {how}"
    figure.suptitle(label_of_title(f"{robot.name}: measured and predicted forces\n{what}"))
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    return saved(figure, path)
