"""The figure of a first look: positions, forces with those of the model, and spectra, one row for each coordinate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from torsor.base.figures import label, label_of_title, new_figure, saved, styled
from torsor.identification.logs.cutoffs import spectrum
from torsor.identification.logs.look import Look
from torsor.mechanism.units import force_units, units

MEASURED, MODEL, MARK, GAP = "0.35", "C0", "C3", "0.85"
POINTS = 2000  # of a curve over time
LINES = 400  # of a spectrum


def figure(look: Look, path: str | Path | None) -> Any:
    """Return the figure, and save it where a path is given; suspicious coordinates have a red title."""
    robot = look.robot
    names = robot.coordinate_names
    drawn = new_figure(14.0, 1.8 * len(names) + 1.2)
    panels = drawn.subplots(len(names), 3, squeeze=False)
    for j, name in enumerate(names):
        kinds = [each.kind for each in look.findings if repr(name) in each.place]
        _position(panels[j, 0], look, j)
        _force(panels[j, 1], look, j)
        _spectrum(panels[j, 2], look, j)
        title = f"{label(name)}: {', '.join(dict.fromkeys(kinds))}" if kinds else label(name)
        panels[j, 0].set_title(title, fontsize="medium", loc="left", color=MARK if kinds else "black")
    for k, text in enumerate(("time (s)", "time (s)", "frequency (Hz)")):
        panels[-1, k].set_xlabel(text)
    sources = ", ".join(log.source for log in look.logs)
    heading = f"{robot.name}: {sources}\n{len(look.findings)} suspicious: {', '.join(look.kinds) or 'nothing'}"
    drawn.suptitle(label_of_title(heading))
    return saved(drawn, path)


def _position(axes: Any, look: Look, j: int) -> None:
    for log in look.logs:
        if log.q.shape[1] == len(look.robot.coordinate_names):
            thin = slice(None, None, max(1, len(log) // POINTS))
            axes.plot(log.times[thin], log.q[thin, j], color=MEASURED, linewidth=1.0)
        _gaps(axes, log.times)
    styled(axes, unit=f"q ({units(look.robot)[1][j]})")


def _force(axes: Any, look: Look, j: int) -> None:
    for log in look.logs:
        thin = slice(None, None, max(1, len(log) // POINTS))
        axes.plot(log.times[thin], log.tau[thin, j], color=MEASURED, linewidth=1.0, label="measured")
        full = log.saturated[:, j]
        if full.any():
            axes.plot(log.times[full], log.tau[full, j], ".", color=MARK, markersize=3, label="saturated")
        _gaps(axes, log.times)
    if look.fit is not None:
        axes.plot(look.fit[:, 0], look.fit[:, 1 + j], color=MODEL, linewidth=0.8, label="model, best parameters")
    styled(axes, unit=f"force ({force_units(look.robot)[look.robot.coordinate_names[j]]})")
    if j == 0:
        axes.legend(fontsize="x-small", loc="upper right")


def _spectrum(axes: Any, look: Look, j: int) -> None:
    if look.prepared is None or look.prepared.segments[0].q.shape[1] <= j:
        return
    longest = max(look.prepared.segments, key=lambda each: len(each.q))
    found = spectrum(longest.q[:, [j]], longest.step)
    places = np.unique(np.geomspace(1, len(found.frequencies) - 1, LINES).astype(int))
    size = np.sqrt(np.maximum.reduceat(found.power[:, 0], places))
    axes.loglog(found.frequencies[places], np.maximum(size, 1e-18), color=MEASURED, linewidth=0.6)
    axes.axhline(np.sqrt(max(float(found.floor[0]), 1e-36)), color=MODEL, linewidth=0.8, linestyle="--")
    if look.prepared.cutoff is not None:
        axes.axvline(look.prepared.cutoff, color=MARK, linewidth=1.0)
        axes.set_title(f"cutoff {look.prepared.cutoff:.3g} Hz", fontsize="small", loc="right", color=MARK)
    axes.grid(alpha=0.3)


def _gaps(axes: Any, times: Any) -> None:
    known = times[np.isfinite(times)]
    steps = np.diff(known)
    if steps.size and (steps > 0).any():
        for k in np.flatnonzero(steps > 5 * np.median(steps[steps > 0])):
            axes.axvspan(known[k], known[k + 1], color=GAP, linewidth=0)
