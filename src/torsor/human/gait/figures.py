"""The figure of a stride: curves compared with those of people, and postures (matplotlib, the extra ``plot``)."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np
from numpy.linalg import norm

from torsor.base.arrays import Array
from torsor.base.figures import label_of_title, new_figure, saved
from torsor.human.body.drawing import ARROW, LONG, landmarks, skeleton
from torsor.human.comparison.table import DIGITS, LikenessTable
from torsor.human.contact.schedule import described
from torsor.human.contact.stairs import Stairs, stairs_of
from torsor.human.gait.curves import StrideCurves
from torsor.human.gait.references import REFERENCES, SOURCES, Reference
from torsor.human.gait.spread import CurveSpread
from torsor.human.gait.stairs_drawing import FIRST, LAST, LINE
from torsor.human.terms.pressing import pressure
from torsor.human.terms.problem import load_of, who
from torsor.human.terms.samples import REACTION_JOINTS

OWN, PEOPLE = "#1f4e8c", ("0.45", "#d98b2b", "#4c9a5f", "#a8527a", "#7a5c3a")
SHOWN = (
    *("hip_flexion", "knee_flexion", "ankle_flexion", "hip_adduction"),
    *("hip_extension", "knee_extension", "ankle_plantarflexion", "hip_abduction"),
    *("hip_power", "knee_power", "ankle_power", "hip_rotation"),
    *("vertical", "forward", "medial", "list"),
    *("shoulder_flexion", "elbow_flexion", "yaw"),
)
TITLES = {"list": "pelvis list", "yaw": "pelvis yaw"} | {name: f"{name} force" for name in SHOWN[12:15]}
COLUMNS, ROWS = 4, 6  # of panels
POSTURES, APART = 9, 0.75  # number of postures and their distance (m)
WIDE, MOST = 78, 6  # letters of a line of the legend, and sources from which on it has two columns


def plot(
    stride: StrideCurves,
    path: str | Path | None,
    references: Any = None,
    spreads: Mapping[str, CurveSpread] | None = None,
) -> Any:
    """Return a figure: curves with the bands of people, joint reactions, and postures.

    ``spreads`` are blue bands: the least and the most of near-optimal walks.
    """
    figure = new_figure(14.0, 2.45 * ROWS + 4.0)
    grid = figure.add_gridspec(ROWS + 1, COLUMNS, height_ratios=[1.0] * ROWS + [1.6])
    places = [grid[divmod(k, COLUMNS)] for k in range(ROWS * COLUMNS)]
    given = stride.references(references).references
    colours = _colours(given)
    for place, name in zip(places, SHOWN, strict=False):
        axes = figure.add_subplot(place)
        if spreads is not None:
            _spread(axes, spreads[name])
        _compare(axes, stride, name, [each for each in given if each.curve == name], colours)
    reaction = "joint reactions (without muscles)", "body weights"
    later = iter(places[len(SHOWN) :])
    _joints(figure.add_subplot(next(later)), stride, lambda joint: norm(stride.reaction(joint), axis=1), *reaction)
    _pressure(figure.add_subplot(next(later)), stride)
    _energy(figure.add_subplot(next(later)), stride)
    for axes in figure.axes[-COLUMNS:]:
        axes.set_xlabel("% of stride", fontsize=9)
    _legend(figure.add_subplot(grid[ROWS - 1, 2:]), stride, given, colours)
    _postures(figure.add_subplot(grid[ROWS, :]), stride)
    step = stride.step
    result = stride.result
    what = f"{who(result.problem)}: {stride.side} stride at {described(step)}"
    aims = " + ".join(part.title for part in result.problem.costs)
    how = f"minimise {aims}; {result.solver}: {result.status}"
    own = "blue: predicted" if spreads is None else "blue: the best walk, light blue: all near-optimal walks"
    people = "" if not given else "; dashed and shaded: people, mean and standard deviation"
    people = f"{own}{people}; vertical line: toe-off"
    figure.suptitle(label_of_title(f"{what}\n{how}\n{people}"))
    return saved(figure, path, dpi=80)


def _style(axes: Any, title: str, unit: str) -> None:
    axes.set_title(title, fontsize=10)
    axes.set_ylabel(unit, fontsize=9)
    axes.set_xlim(0.0, 100.0)
    axes.set_xticks([0, 25, 50, 75, 100])
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def _colours(references: Sequence[Reference]) -> dict[str, str]:
    """Return the colour of each source; of many sources, some share one."""
    sources = dict.fromkeys(each.source for each in references)
    return {source: PEOPLE[k % len(PEOPLE)] for k, source in enumerate(sources)}


def _spread(axes: Any, spread: CurveSpread) -> None:
    """Draw the band between the least and the most of several walks."""
    at = np.linspace(0.0, 100.0, len(spread.best))
    axes.fill_between(at, spread.least, spread.most, color=OWN, alpha=0.3, linewidth=0)


def _compare(
    axes: Any, stride: StrideCurves, name: str, references: Sequence[Reference], colours: Mapping[str, str]
) -> None:
    """Draw a curve over the band of its first reference that has one; references after the first are dotted."""
    wide = next((each for each in references if each.sd is not None), None)
    for k, each in enumerate(references):
        at, colour = np.linspace(0.0, 100.0, len(each.mean)), colours[each.source]
        axes.plot(at, each.mean, ":" if k else "--", color=colour, linewidth=1.3, label=label_of_title(each.label))
        if each is wide and each.sd is not None:
            axes.fill_between(at, each.mean - each.sd, each.mean + each.sd, color=colour, alpha=0.2, linewidth=0)
    own = references[0] if references else REFERENCES[name]
    axes.plot(100 * stride.s, stride.curve(own), color=OWN, linewidth=2.0)
    _off(axes, stride)
    title = TITLES.get(name, name.replace("_", " "))
    if references:
        found = LikenessTable([(own, stride.curve(own))])[name]
        title += f": r {found.correlation:.2f}, rms {found.rms:.{DIGITS[own.kind]}f}"
        axes.legend(fontsize=7, frameon=False, loc="best", handlelength=1.6)
    _style(axes, title, own.unit)


def _legend(axes: Any, stride: StrideCurves, references: Sequence[Reference], colours: Mapping[str, str]) -> None:
    """List the sources, each with the mean likeness over its sagittal curves."""
    axes.plot([], [], color=OWN, linewidth=2.0, label="predicted")
    table = LikenessTable([(each, stride.curve(each)) for each in references])
    dashed = {each.source for each in {each.curve: each for each in reversed(references)}.values()}  # first in a panel
    for source, colour in colours.items():
        label = next(each.label for each in references if each.source == source)
        mean = table.means[label]
        words = shorten(SOURCES.get(source, source), WIDE, placeholder=" ...")
        if mean.curves:
            sd = "" if mean.rms_sd is None else f", RMSE {mean.rms_sd:.2f} SD"
            words += f"\n    r2 {mean.r2:.2f}{sd}, mean of {mean.curves} sagittal curve{'s' * (mean.curves > 1)}"
        axes.plot([], [], "--" if source in dashed else ":", color=colour, linewidth=1.3, label=label_of_title(words))
    axes.axis("off")
    axes.legend(fontsize=8, frameon=False, loc="center left", ncols=1 if len(colours) < MOST else 2)


def _off(axes: Any, stride: StrideCurves) -> None:
    """Mark the toe-off of the own foot."""
    axes.axvline(100 * stride.step.duty_factor, color="0.75", linewidth=0.9, zorder=0)


def _joints(axes: Any, stride: StrideCurves, curve: Callable[[str], Array], title: str, unit: str) -> None:
    for joint in REACTION_JOINTS:
        axes.plot(100 * stride.s, curve(joint), label=joint, linewidth=1.6)
    _off(axes, stride)
    _style(axes, title, unit)
    axes.legend(fontsize=8, frameon=False)


def _pressure(axes: Any, stride: StrideCurves) -> None:
    """Draw the distance of the centre of pressure in front of the own heel."""
    axes.plot(100 * stride.s, stride.pressure[:, 0, 1], color=OWN, linewidth=1.8)
    _off(axes, stride)
    _style(axes, "centre of pressure in front of the heel", "m")


def _energy(axes: Any, stride: StrideCurves) -> None:
    for name, curve, colour in (("kinetic", stride.kinetic, "C4"), ("potential", stride.potential, "C5")):
        axes.plot(100 * stride.s, (curve - curve.mean()) / stride.body.mass, color=colour, label=name, linewidth=1.6)
    both = stride.kinetic + stride.potential
    axes.plot(100 * stride.s, (both - both.mean()) / stride.body.mass, color="0.2", label="both", linewidth=1.2)
    cost = stride.energy.cost_of_transport
    _style(axes, f"energy; work {cost:.2f} J/(kg m)", "J/kg, about the mean")
    axes.legend(fontsize=8, frameon=False)


def _postures(axes: Any, stride: StrideCurves) -> None:
    """Draw postures of the stride from the right side, with the ground's forces."""
    places = np.linspace(0, len(stride.s) - 1, POSTURES).round().astype(int)
    forces, load, stairs = stride.forces, load_of(stride.result.problem), stairs_of(stride.walk, stride.body)
    points, pressed = landmarks(stride.body, stride.samples.q[places], load), pressure(stride.samples, stride.body)
    if stairs is not None:
        _on_stairs(axes, stairs, points, pressed[places], forces[places])
        return
    for k, place in enumerate(places):
        here = {name: each[k] for name, each in points.items()}
        shift = APART * k - float(here["pelvis"][2])
        skeleton(axes, here, "side", shift, scale=0.6)
        for foot in range(2):
            if np.isfinite(pressed[place, foot]).all():
                at = np.array([pressed[place, foot, 2] + shift, 0.0])
                way = LONG * forces[place, foot, [2, 1]]
                axes.annotate("", at + way, at, arrowprops=ARROW, zorder=9)
        axes.text(APART * k, -0.13, f"{100 * stride.s[place]:.0f} %", ha="center", fontsize=8)
    axes.axhline(0.0, color="0.4", linewidth=1.0, zorder=0)
    axes.set(aspect="equal", xlim=(-0.6, APART * (POSTURES - 1) + 0.6), ylim=(-0.2, 1.85))
    axes.axis("off")


def _on_stairs(axes: Any, stairs: Stairs, points: dict[str, Array], pressed: Array, forces: Array) -> None:
    """Draw postures on their stairs from the right side, each with its own piece of them, and the forces."""
    for k in range(len(forces)):
        here = {name: each[k] for name, each in points.items()}
        shift = APART * k - float(here["pelvis"][2])
        lift = -stairs.rise / stairs.length * float(here["pelvis"][2])
        skeleton(
            axes, {name: each + np.array([0.0, lift, 0.0]) for name, each in here.items()}, "side", shift, scale=0.6
        )
        corners = stairs.profile(FIRST, LAST) + np.array([shift, lift])
        near = corners[abs(corners[:, 0] - APART * k) < APART / 2]
        ends = [[APART * (k - 0.48), near[0, 1]], *near, [APART * (k + 0.48), near[-1, 1]]]
        axes.plot(*np.array(ends).T, **LINE)
        for at, force in zip(pressed[k], forces[k], strict=True):
            if np.isfinite(at).all():
                foot = np.array([at[2] + shift, at[1] + lift])
                axes.annotate("", foot + LONG * force[[2, 1]], foot, arrowprops=ARROW, zorder=9)
    axes.set(aspect="equal", xlim=(-0.6, APART * (POSTURES - 1) + 0.6), ylim=(-0.45, 1.95))
    axes.axis("off")
