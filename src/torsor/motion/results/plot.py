"""Figures of a solution (matplotlib, the extra ``plot``)."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from torsor.arrays import Array
from torsor.motion.results.solution import Solution
from torsor.simulation.plot import panels_of

QUANTITIES = {
    "q": ("Positions", "rad, m"),
    "v": ("Velocities", "rad/s, m/s"),
    "a": ("Accelerations", "rad/s², m/s²"),
    "j": ("Jerks", "rad/s³, m/s³"),
    "tau": ("Forces", "N m, N"),
    "tau_rate": ("Rates of the forces", "N m/s, N/s"),
    "reactions": ("Joint reactions: size of the force", "N"),
}
MOST_NAMES = 14  # more curves than this have no legend


def plot(result: Solution, path: str | Path | None, what: Sequence[str]) -> Any:
    """Return a figure with one panel for each quantity over time; values beyond the limits are shaded."""
    figure, panels = panels_of(what, QUANTITIES)
    for name, axes in panels:
        _panel(axes, result, name)
    panels[-1][1].set_xlabel("time (s)")
    panels[-1][1].set_xlim(0.0, result.T)
    figure.suptitle(f"{result.problem.name}: {result.status}, T = {result.T:.5g} s")
    if path is not None:
        figure.savefig(path, dpi=130)
    return figure


def _panel(axes: Any, result: Solution, name: str) -> None:
    title, unit = QUANTITIES[name]
    curves, labels = _curves(result, name)
    for k, curve in enumerate(curves.T):
        axes.plot(result.times, curve, color=f"C{k % 10}", linewidth=1.3)
    for end in np.cumsum(result.durations)[:-1]:
        axes.axvline(end, color="0.5", linewidth=0.8, linestyle="--")
    _shade(axes, result, name, labels)
    axes.set(title=title, ylabel=unit)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    if len(labels) <= MOST_NAMES:
        lines, place = axes.lines[: len(labels)], {"loc": "center left", "bbox_to_anchor": (1, 0.5)}
        axes.legend(lines, labels, fontsize="small", frameon=False, **place)


def _curves(result: Solution, name: str) -> tuple[Array, list[str]]:
    robot = result.robot
    if name == "reactions":
        return np.linalg.norm(result.reactions[..., 3:], axis=-1), list(robot.joint_names)
    contact = result.problem.contact(result) if name == "tau" else None
    if contact is not None:
        return contact[0], list(robot.coordinate_names)
    names = {"q": robot.position_names, "tau": result.force_names, "tau_rate": result.force_names}
    return getattr(result, name), list(names.get(name, robot.coordinate_names))


def _shade(axes: Any, result: Solution, name: str, labels: list[str]) -> None:
    """Draw the bounds of each curve while they hold, and shade the region beyond the bounds of all curves."""
    limits = list(_limits(result, name, labels))
    ends = [bound[np.isfinite(bound)] for _, lower, upper in limits for bound in (lower, upper)]
    if not ends:
        return
    low, high = axes.get_ylim()
    every = np.concatenate([[low, high], *ends])
    margin = 0.08 * np.ptp(every)
    low = min(low, every.min() - margin * (every.min() < low))
    high = max(high, every.max() + margin * (every.max() > high))
    for times, lower, upper in limits:
        for k, sides in enumerate(zip(lower, upper, strict=True)):
            for bound in sides:
                if np.isfinite(bound):
                    axes.plot(times, [bound, bound], color=f"C{k % 10}", linewidth=0.8, linestyle=":")
        for edge, end in ((upper.max(), high), (lower.min(), low)):
            if np.isfinite(edge):
                axes.fill_between(times, edge, end, color="0.5", alpha=0.15, linewidth=0)
    axes.set_ylim(low, high)


def _limits(result: Solution, name: str, labels: list[str]) -> Iterator[tuple[list[float], Array, Array]]:
    """Yield the times between which a term bounds this quantity, and its bounds of the curves."""
    begun = np.cumsum(result.durations) - result.durations
    for batch in result.program.batches:
        T, start = result.durations[batch.phase], begun[batch.phase]
        for term, bound in zip(batch.kernels.constraints, batch.kernels.rows, strict=True):
            known = [k for k, label in enumerate(bound.labels) if label in labels]
            if getattr(term, "quantity", "") == name and term.at is None and known:
                lower, upper = np.full(len(labels), -np.inf), np.full(len(labels), np.inf)
                places = [labels.index(bound.labels[k]) for k in known]
                lower[places], upper[places] = bound.lower[known], bound.upper[known]
                yield [start + T * float(batch.s[0]), start + T * float(batch.s[-1])], lower, upper
