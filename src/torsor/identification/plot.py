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
        axes.plot(along, predicted, color="C0", linewidth=1.2, label="predicted")
        # Behind the others: where it covers them, there is nothing else to see.
        axes.plot(along, measured - predicted, color="C3", linewidth=0.6, alpha=0.5, zorder=1, label="difference")
        axes.set_title(f"{name}: difference, with all noise, {percent:.2g} % of the force", fontsize="medium")
        axes.set_ylabel("N m" if _turns(found, name) else "N")
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in panels[len(names) :]:
        figure.delaxes(axes)
    for axes in {panels[rows - 1], panels[len(names) - 1]}:
        axes.set_xlabel("sample" if data.times is None else "time (s)")
        axes.tick_params(labelbottom=True)
    figure.suptitle(f"{found.prior.name}: measured and predicted forces")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper right", ncols=3, frameon=False)
    if path is not None:
        figure.savefig(path, dpi=130)
    return figure


def _turns(found: "Identified", name: str) -> bool:
    joints = [joint for joint in found.prior.joints if name in joint.velocity_names]
    turns = [
        turn
        for joint in joints
        for each, turn in zip(joint.velocity_names, joint.kind.turns, strict=True)
        if each == name
    ]
    return turns[0] if turns else True  # the motor of an elastic joint
