"""Figures of a trajectory (matplotlib, the extra ``plot``)."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torsor.arrays import Array
from torsor.errors import ModelError, describe
from torsor.robot.robot import Robot

# Title and unit of each quantity, and the attribute of the robot that names its curves.
QUANTITIES = {
    "q": ("Positions", "rad, m", "position_names"),
    "v": ("Velocities", "rad/s, m/s", "coordinate_names"),
    "a": ("Accelerations", "rad/s², m/s²", "coordinate_names"),
    "tau": ("Forces of the controller", "N m, N", "coordinate_names"),
    "energy": ("Energy", "J", ""),
    "reactions": ("Joint reactions: norm of the force", "N", "joint_names"),
    "closure": ("Residual of loop closure", "m, 1", ""),
}
UNNAMED = {"energy": ["kinetic", "potential", "total"], "closure": ["largest error"]}
MOST_NAMES = 14  # a longer legend would hide the curves
MOST_ROLLOUTS = 50  # that are drawn


def panels_of(what: str | Sequence[str], known: Mapping[str, object]) -> tuple[Any, list[tuple[str, Any]]]:
    """Return a figure and the pairs (name, empty panel) for the quantities ``what``, which must be ``known``."""
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


def plot(
    robot: Robot, times: Array, curves: Callable[[str], Array], what: Sequence[str], path: str | Path | None
) -> Any:
    """Return a figure with one panel for each quantity over ``times`` (T,); all rollouts of a curve have one colour.

    ``curves(name)`` are the values (..., T, K) of a quantity.
    """
    figure, panels = panels_of(what, QUANTITIES)
    for name, axes in panels:
        title, unit, labels = QUANTITIES[name]
        values = curves(name)
        rollouts = values.reshape(-1, *values.shape[-2:])
        legend = [*getattr(robot, labels)] if labels else UNNAMED[name]
        opacity = 1.0 if len(rollouts) == 1 else max(0.15, 1 / len(rollouts) ** 0.5)
        for rollout in rollouts[:MOST_ROLLOUTS]:
            for k in range(rollout.shape[-1]):
                axes.plot(times, rollout[:, k], color=f"C{k % 10}", alpha=opacity, linewidth=1.3)
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
    figure.suptitle(robot.name)
    if path is not None:
        figure.savefig(path, dpi=130)
    return figure
