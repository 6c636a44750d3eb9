"""The figure of a measured gait: angles, moments, powers and ground forces over time (matplotlib, extra ``plot``)."""

from pathlib import Path
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.figures import label_of_title, new_figure, saved, styled
from torsor.human.body.coordinates import SIDES
from torsor.human.measured.gait_curves import GaitCurves
from torsor.human.recordings.markers import runs

COLOURS = {"right": "#1f4e8c", "left": "#d98b2b"}
# Titles by joint, of the angle and of the moment, which is drawn in the direction that carries the body.
SHOWN = {
    "hip_flexion": ("hip flexion", "hip extension"),
    "knee_flexion": ("knee flexion", "knee extension"),
    "ankle_flexion": ("ankle dorsiflexion", "ankle plantarflexion"),
}


def plot(gait: GaitCurves, path: str | Path | None) -> Any:
    """Return the figure: three joints, right and left, and below them the forces on the feet and the residual."""
    rows = 1 if gait.dynamics is None else 4
    figure = new_figure(11.0, 2.3 * rows + 0.9)
    grid = figure.add_gridspec(rows, 3)
    for column, (joint, (angle, moment)) in enumerate(SHOWN.items()):
        axes = figure.add_subplot(grid[0, column])
        _sides(axes, gait, lambda side, joint=joint: gait.angle(side, joint), angle, "deg")
        if gait.dynamics is not None:
            axes = figure.add_subplot(grid[1, column])
            _sides(axes, gait, lambda side, joint=joint: -gait.moment(side, joint), f"{moment} moment", "N m/kg")
            name = joint.partition("_")[0]
            axes = figure.add_subplot(grid[2, column])
            _sides(axes, gait, lambda side, joint=joint: gait.power(side, joint), f"{name} power", "W/kg")
    if gait.dynamics is not None:
        for column, (k, title) in enumerate(((1, "vertical force"), (2, "forward force"))):
            axes = figure.add_subplot(grid[3, column])
            _sides(axes, gait, lambda side, k=k: gait.force(side)[:, k], title, "body weights")
        axes = figure.add_subplot(grid[3, 2])
        size = np.linalg.norm(gait.dynamics.residual_force, axis=1) / gait.dynamics.weight
        axes.plot(gait.times, 100 * size, color="0.3", linewidth=1.6)
        _style(axes, gait, "residual force", "% of the weight")
    for axes in figure.axes[-3:]:
        axes.set_xlabel("time, s")
    figure.axes[0].legend(fontsize=8, frameon=False)
    whole = 1000 * float(np.sqrt(np.nanmean(gait.motion.errors**2)))
    how = f"{len(gait.motion.markers.names)} markers, {whole:.1f} mm RMS"
    grey = "" if gait.valid.all() else "; grey: motion and ground forces do not agree, a foot may be on no plate"
    figure.suptitle(label_of_title(f"{gait.source}: {gait.mass:.4g} kg, {how}{grey}"))
    return saved(figure, path, dpi=100)


def _sides(axes: Any, gait: GaitCurves, curve: Any, title: str, unit: str) -> None:
    for side in SIDES:
        axes.plot(gait.times, _shown(gait, curve(side)), color=COLOURS[side], linewidth=1.8, label=side)
    _style(axes, gait, title, unit)


def _shown(gait: GaitCurves, values: Array) -> Array:
    return np.where(gait.valid, values, np.nan) if gait.valid.any() else values


def _style(axes: Any, gait: GaitCurves, title: str, unit: str) -> None:
    for first, last in runs(~gait.valid):
        axes.axvspan(gait.times[first], gait.times[last], color="0.93", linewidth=0, zorder=0)
    styled(axes, title, unit)
    axes.set_xlim(gait.times[0], gait.times[-1])
