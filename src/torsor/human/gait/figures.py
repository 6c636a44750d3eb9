"""The figure of a stride: curves compared with those of people, and postures (matplotlib, the extra ``plot``)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.linalg import norm

from torsor.arrays import Array
from torsor.human.body.drawing import ARROW, LONG, landmarks, skeleton
from torsor.human.contact.schedule import described
from torsor.human.contact.stairs import Stairs, stairs_of
from torsor.human.gait.curves import StrideCurves
from torsor.human.gait.references import REFERENCES, Likeness
from torsor.human.gait.stairs_drawing import FIRST, LAST, LINE
from torsor.human.terms.pressing import pressure
from torsor.human.terms.problem import load_of, who
from torsor.human.terms.samples import JOINTS
from torsor.results.figures import label_of_title, new_figure, saved

OWN, PEOPLE, OTHERS = "#1f4e8c", "0.45", ("#d98b2b", "#4c9a5f")
SHOWN = (
    *("hip_flexion", "knee_flexion", "ankle_flexion", "hip_adduction", "hip_rotation", "list"),
    *("yaw", "shoulder_flexion", "elbow_flexion", "hip_extension", "knee_extension", "ankle_plantarflexion"),
    *("hip_abduction", "vertical", "forward", "medial"),
)
TITLES = {"list": "pelvis list", "yaw": "pelvis yaw"} | {name: f"{name} force" for name in SHOWN[-3:]}
COLUMNS, POSTURES, APART = 4, 9, 0.75  # panels in a row, number of postures and their distance (m)


def plot(stride: StrideCurves, path: str | Path | None) -> Any:
    """Return a figure: curves with the bands of people, joint reactions, powers, and postures."""
    rows = len(SHOWN) // COLUMNS
    figure = new_figure(14.0, 2.45 * (rows + 1) + 4.0)
    grid = figure.add_gridspec(rows + 2, COLUMNS, height_ratios=[1.0] * (rows + 1) + [1.6])
    alike = stride.likeness()
    for index, name in enumerate(SHOWN):
        row, column = divmod(index, COLUMNS)
        _compare(figure.add_subplot(grid[row, column]), stride, name, alike)
    reaction = "joint reactions (without muscles)", "body weights"
    _joints(figure.add_subplot(grid[rows, 0]), stride, lambda joint: norm(stride.reaction(joint), axis=1), *reaction)
    _joints(figure.add_subplot(grid[rows, 1]), stride, stride.power, "joint power", "W/kg")
    _pressure(figure.add_subplot(grid[rows, 2]), stride)
    _energy(figure.add_subplot(grid[rows, 3]), stride)
    for axes in figure.axes[-COLUMNS:]:
        axes.set_xlabel("% of stride", fontsize=9)
    _postures(figure.add_subplot(grid[rows + 1, :]), stride)
    step = stride.step
    result = stride.result
    what = f"{who(result.problem)}: {stride.side} stride at {described(step)}"
    aims = " + ".join(part.title for part in result.problem.costs)
    how = f"minimise {aims}; {result.solver}: {result.status}"
    people = "blue: predicted; dashed and shaded: people, mean and standard deviation; vertical line: toe-off"
    people = people if alike else "vertical line: toe-off"
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


def _compare(axes: Any, stride: StrideCurves, name: str, alike: dict[str, Likeness]) -> None:
    """Draw a curve over the band of its reference, and other references as thin lines."""
    own = [each for each in REFERENCES if each.split(",")[0] == name and alike]
    for key, colour in zip(own, (PEOPLE, *OTHERS), strict=False):
        reference = REFERENCES[key]
        at = np.linspace(0.0, 100.0, len(reference.mean))
        if key == name:
            axes.plot(at, reference.mean, "--", color=colour, linewidth=1.3, label=reference.source)
            if reference.sd is not None:
                ends = reference.mean - reference.sd, reference.mean + reference.sd
                axes.fill_between(at, *ends, color=colour, alpha=0.2, linewidth=0)
        else:
            axes.plot(at, reference.mean, ":", color=colour, linewidth=1.2, label=reference.source)
    axes.plot(100 * stride.s, stride.curve(REFERENCES[name]), color=OWN, linewidth=2.0)
    _off(axes, stride)
    reference, title = REFERENCES[name], TITLES.get(name, name.replace("_", " "))
    if name not in alike:
        _style(axes, title, reference.unit)
        return
    digits, found = 2 if reference.kind == "moment" else 1, alike[name]
    _style(axes, f"{title}: r {found.correlation:.2f}, rms {found.rms:.{digits}f}", reference.unit)
    axes.legend(fontsize=7, frameon=False, loc="best", handlelength=1.6)


def _off(axes: Any, stride: StrideCurves) -> None:
    """Mark the toe-off of the own foot."""
    axes.axvline(50 * (1 + stride.step.toe_off), color="0.75", linewidth=0.9, zorder=0)


def _joints(axes: Any, stride: StrideCurves, curve: Callable[[str], Array], title: str, unit: str) -> None:
    for joint in JOINTS:
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
