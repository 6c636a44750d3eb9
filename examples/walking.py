"""Predict a walk with 55 degrees of freedom from its speed alone, and compare it with measured people.

The program prints tables of the stride and draws its moments and powers. In the same folder it writes the leg angles
(walking_curves.png), three views of the body (human.png) and an animation of the walk (.gif):

    python examples/walking.py walking.png
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import torsor
from torsor.human import REFERENCES, Stride, animate, draw, walking

ANGLES = "hip_flexion", "knee_flexion", "ankle_flexion", "vertical"
MOMENTS = "hip_extension", "knee_extension", "ankle_plantarflexion", "hip_power", "knee_power", "ankle_power"
TITLES = {"angle": "", "moment": " moment", "power": "", "force": " ground force"}
# Published curves, by their keys in REFERENCES: children with standard deviations, and one adult.
PEOPLE = {"children": "children, mean ± SD (Schwartz 2008)", "adult": "one adult (Falisse 2019)"}


def draw_curves(stride: Stride, names: tuple[str, ...], columns: int, path: Path) -> None:
    """Draw curves over the gait cycle, with measured ones; each band has the mean and deviation of one source."""
    rows = len(names) // columns
    figure, panels = plt.subplots(rows, columns, figsize=(3.5 * columns, 2.7 * rows + 0.7), layout="constrained")
    for axes, name in zip(panels.flat, names, strict=True):
        people = REFERENCES[name]
        label = f"predicted, {stride.step.speed:g} m/s"
        axes.plot(100 * stride.s, stride.curve(people), color="#1f4e8c", linewidth=1.8, label=label)
        for each in REFERENCES.values():
            percent = np.linspace(0.0, 100.0, len(each.mean))
            if each.curve == name and each.source == "children" and each.sd is not None:
                band = (each.mean - each.sd, each.mean + each.sd)
                axes.fill_between(percent, *band, color="0.85", zorder=0, label=PEOPLE["children"])
            elif each.curve == name and each.source == "adult":
                axes.plot(percent, each.mean, ":", color="0.3", label=PEOPLE["adult"])
        title = name.replace("_", " ").replace("ankle fl", "ankle dorsifl") + TITLES[people.kind]
        axes.set(title=title, ylabel=people.unit, xlim=(0.0, 100.0))
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in panels.flat[-columns:]:
        axes.set_xlabel("gait cycle (%)")
    pairs = [pair for axes in panels.flat for pair in zip(*axes.get_legend_handles_labels(), strict=True)]
    entries = {label: line for line, label in pairs}
    figure.legend(list(entries.values()), list(entries), loc="outside lower center", ncols=columns, frameon=False)
    figure.savefig(path, dpi=80)


def main(path: Path) -> None:
    """Print the tables and draw the pictures."""
    result = walking().solve(progress=True)
    stride = Stride(result)
    print(stride.report())
    draw_curves(stride, ANGLES, 4, path.with_name("walking_curves.png"))
    draw_curves(stride, MOMENTS, 3, path)
    draw(torsor.library.human(), path=path.with_name("human.png"))
    animate(result, path.with_suffix(".gif"))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "walking.png"))
