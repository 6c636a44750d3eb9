"""Predict two walks with 55 degrees of freedom: one from its speed alone, and the tuned default (Barman 2020).

The program prints tables of both strides, compared with measured people, and draws their moments and powers. In the
same folder it writes their leg angles (walking_curves.png), three views of the body (human.png) and an animation of
the walk with free steps (.gif):

    python examples/walking.py walking.png
"""

import sys
from collections.abc import Mapping
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import torsor
from torsor.human import REFERENCES, Step, Stride, animate, draw, walking

ANGLES = "hip_flexion", "knee_flexion", "ankle_flexion", "vertical"
MOMENTS = "hip_extension", "knee_extension", "ankle_plantarflexion", "hip_power", "knee_power", "ankle_power"
TITLES = {"angle": "", "moment": " moment", "power": "", "force": " ground force"}


def draw_curves(strides: Mapping[str, Stride], names: tuple[str, ...], columns: int, path: Path) -> None:
    """Draw curves over the stride, with mean and standard deviation of people."""
    rows = len(names) // columns
    figure, panels = plt.subplots(rows, columns, figsize=(3.5 * columns, 2.7 * rows + 0.7), layout="constrained")
    for axes, name in zip(panels.flat, names, strict=True):
        people = REFERENCES[name]
        percent = np.linspace(0.0, 100.0, len(people.mean))
        for (label, stride), style in zip(strides.items(), ("-", "--"), strict=True):
            color = "#1f4e8c" if style == "-" else "#d9822b"
            axes.plot(100 * stride.s, stride.curve(people), style, color=color, linewidth=1.8, label=label)
        if people.sd is None:
            axes.plot(percent, people.mean, ":", color="0.3", label=f"one adult, {people.label}")
        else:
            axes.plot(percent, people.mean, "--", color="0.45", linewidth=1.0, label=f"mean, {people.label}")
            band = (people.mean - people.sd, people.mean + people.sd)
            axes.fill_between(percent, *band, color="0.85", zorder=0, label="standard deviation, Schwartz 2008")
        axes.set(title=name.replace("_", " ") + TITLES[people.kind], ylabel=people.unit, xlim=(0.0, 100.0))
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in panels.flat[-columns:]:
        axes.set_xlabel("% of stride")
    pairs = [pair for axes in panels.flat for pair in zip(*axes.get_legend_handles_labels(), strict=True)]
    entries = {label: line for line, label in pairs}
    figure.legend(list(entries.values()), list(entries), loc="outside lower center", ncols=columns, frameon=False)
    figure.savefig(path, dpi=80)


def main(path: Path) -> None:
    """Print the tables and draw the pictures."""
    free = walking(step=Step(speed=1.25, length="free", width="free")).solve(progress=True)
    strides = {"free, 1.25 m/s": Stride(free), "default (tuned), 1.2 m/s": Stride(walking().solve(progress=True))}
    for stride in strides.values():
        print(stride.report())
    draw_curves(strides, ANGLES, 4, path.with_name("walking_curves.png"))
    draw_curves(strides, MOMENTS, 3, path)
    draw(torsor.library.human(), path=path.with_name("human.png"))
    animate(free, path.with_suffix(".gif"))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "walking.png"))
