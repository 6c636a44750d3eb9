"""Figures of a trajectory (matplotlib, the extra ``plot``)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torsor.errors import ModelError, describe
from torsor.simulation.trajectory import Trajectory

__all__ = ["panels_of", "plot"]

Array = NDArray[np.float64]

# Title and unit of each quantity, and where the names of its curves come from.
QUANTITIES = {
    "q": ("Positions", "rad, m", "position_names"),
    "v": ("Velocities", "rad/s, m/s", "coordinate_names"),
    "a": ("Accelerations", "rad/s², m/s²", "coordinate_names"),
    "tau": ("Forces of the controller", "N m, N", "coordinate_names"),
    "energy": ("Energy", "J", ""),
    "reactions": ("Joint reactions: size of the force", "N", "joint_names"),
    "closure": ("Closure of the loops", "m, 1", ""),
}
UNNAMED = {"energy": ["kinetic", "potential", "together"], "closure": ["largest error"]}
MOST_NAMES = 14  # curves beyond which a legend would hide the picture
MOST_ROLLOUTS = 50


def panels_of(what: str | Sequence[str], known: Mapping[str, object]) -> tuple[Any, list[tuple[str, Any]]]:
    """Return a figure and, for each of the known quantities that are named, its name and an empty panel."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("figures need matplotlib; fix: pip install torsor[plot]") from None
    names = (what,) if isinstance(what, str) else tuple(what)
    for name in names:
        if name not in known:
            raise ModelError(describe(f"cannot plot {name!r}", allowed=", ".join(known)))
    if not names:
        raise ModelError(describe("nothing to plot", allowed=", ".join(known)))
    figure = Figure(figsize=(9, 2.6 * len(names) + 0.6), layout="constrained")
    return figure, list(zip(names, figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0], strict=True))


def plot(trajectory: Trajectory, path: str | Path | None, what: Sequence[str]) -> Any:
    """Return a figure with one panel for each quantity over time; rollouts lie over each other in one colour."""
    figure, panels = panels_of(what, QUANTITIES)
    for name, axes in panels:
        title, unit, labels = QUANTITIES[name]
        curves = _curves(trajectory, name)
        legend = [*getattr(trajectory.robot, labels)] if labels else UNNAMED[name]
        strength = 1.0 if len(curves) == 1 else max(0.15, 1 / len(curves) ** 0.5)
        for rollout in curves[:MOST_ROLLOUTS]:
            for k in range(rollout.shape[-1]):
                axes.plot(trajectory.times, rollout[:, k], color=f"C{k % 10}", alpha=strength, linewidth=1.3)
        axes.set(title=title, ylabel=unit)
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        if len(legend) <= MOST_NAMES and axes.lines:
            lines = axes.lines[: len(legend)]
            shown = axes.legend(
                lines, legend, fontsize="small", frameon=False, loc="center left", bbox_to_anchor=(1, 0.5)
            )
            for line in shown.get_lines():
                line.set_alpha(1.0)
    panels[-1][1].set_xlabel("time (s)")
    figure.suptitle(trajectory.robot.name)
    if path is not None:
        figure.savefig(path, dpi=130)
    return figure


def _curves(trajectory: Trajectory, name: str) -> Array:
    """Return the curves (rollouts, T, K) of a quantity."""
    if name == "energy":
        values = np.stack([trajectory.kinetic_energy, trajectory.potential_energy, trajectory.energy], -1)
    elif name == "closure":
        values = np.abs(trajectory.closure_error).max(axis=-1, initial=0.0)[..., None]
    elif name == "reactions":
        values = np.linalg.norm(trajectory.reactions[..., 3:], axis=-1)
    else:
        values = getattr(trajectory, name)
    return values.reshape(-1, *values.shape[-2:])
