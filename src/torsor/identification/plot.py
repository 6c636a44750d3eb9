"""Figures of an identification: measured and predicted forces, with the band of the residuals."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.figures import label, label_of_title, new_figure, saved, styled
from torsor.identification.measurements import Measurements
from torsor.mechanism.units import force_units
from torsor.robot.robot import Robot

MEASURED, PREDICTED, RESIDUAL, HELD_OUT = "0.65", "C0", "C3", "0.93"


def plot(
    robot: Robot,
    data: Measurements,
    predicted: Array,
    rms: Array,
    percents: Array,
    how: str,
    path: str | Path | None,
    unseen: tuple[Measurements, Array, Array] | None = None,
) -> Any:
    """Return a figure with a panel for each coordinate: measured and ``predicted`` (N, nv) forces, and residuals.

    ``rms`` (nv,) are the root mean squares of the residuals, a band about zero, and ``percents`` (nv,) these in percent
    of the forces; ``how`` says how the parameters were identified. ``unseen`` are measurements that were held out,
    their predicted forces and the percents of these, which follow on a grey ground.
    """
    names, units = robot.coordinate_names, force_units(robot)
    columns = 1 if len(names) < 4 else 2 if len(names) < 13 else 4
    rows = -(-len(names) // columns)
    figure = new_figure((6.5 if columns < 4 else 5.0) * columns, 2.1 * rows + 0.9)
    panels = figure.subplots(rows, columns, sharex=True, squeeze=False).T.ravel()
    timed = _increasing(data, None if unseen is None else unseen[0])
    along, later = _axis(data, unseen, timed)
    tau, own_forces = data.tau, predicted
    if unseen is not None:
        along = np.concatenate([along, later])
        tau, own_forces = np.concatenate([tau, unseen[0].tau]), np.concatenate([own_forces, unseen[1]])
    sizes = zip(rms, percents, strict=True)
    later_percents = itertools.repeat(None) if unseen is None else unseen[2]
    for axes, name, measured, own, (size, percent), later_percent in zip(
        panels, names, tau.T, own_forces.T, sizes, later_percents, strict=False
    ):
        axes.plot(along, measured, color=MEASURED, linewidth=2.2, label="measured")
        axes.plot(along, own, color=PREDICTED, linewidth=1.2, label="predicted")
        # The residual is drawn behind the forces, which it would hide.
        axes.plot(along, measured - own, color=RESIDUAL, linewidth=0.6, alpha=0.5, zorder=1, label="residual")
        band = {"color": RESIDUAL, "alpha": 0.12, "linewidth": 0, "label": "± 2 RMS of the residual"}
        axes.axhspan(-2 * size, 2 * size, **band)
        if unseen is not None:
            axes.axvspan(later[0], later[-1], color=HELD_OUT, linewidth=0, zorder=0, label="held out")
        styled(axes, unit=units[name])
        held_out = "" if later_percent is None else f"; held out {later_percent:.2g} %"
        title = f"{label(name)}: residual {size:.2g} {units[name]}, {percent:.2g} % of the force{held_out}"
        axes.set_title(title, fontsize="medium")
    for axes in panels[len(names) :]:
        figure.delaxes(axes)
    lowest = [panels[min(k * rows + rows, len(names)) - 1] for k in range(-(-len(names) // rows))]
    for axes in lowest:
        axes.set_xlabel("time (s)" if timed else "sample")
        axes.tick_params(labelbottom=True)
    what = f"{len(data)} samples, parameters: {how}" + ("" if unseen is None else f"; {len(unseen[0])} held out")
    figure.suptitle(label_of_title(f"{robot.name}: measured and predicted forces\n{what}"))
    figure.legend(
        *panels[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=3 if columns == 1 else 5,
        frameon=False,
    )
    return saved(figure, path)


def _increasing(data: Measurements, unseen: Measurements | None) -> bool:
    """Whether times go on through all samples, so that they are the axis of the figure."""
    parts = [each.times for each in (data, unseen) if each is not None]
    return all(part is not None for part in parts) and bool(
        (np.diff(np.concatenate([part for part in parts if part is not None])) > 0).all()
    )


def _axis(data: Measurements, unseen: tuple[Measurements, Array, Array] | None, timed: bool) -> tuple[Array, Array]:
    """Return where the samples, and those that were held out, are along the axis: times, or numbers of samples."""
    count, more = len(data), 0 if unseen is None else len(unseen[0])
    if not timed:
        return np.arange(float(count)), count + np.arange(float(more))
    assert data.times is not None
    later = np.empty(0) if unseen is None or unseen[0].times is None else unseen[0].times
    return data.times, later
