"""Predict one walking step of least effort with 55 degrees of freedom (Barman 2020, chapter V).

The program prints tables of the stride, compared with measured people, and draws its curves. In the same folder it
writes four of the curves (walking_curves.png), three views of the body (human.png) and an animation (.gif):

    python examples/walking.py walking.png
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import torsor
from torsor.human import REFERENCES, Stride, animate, draw, walking


def draw_curves(stride: Stride, path: Path) -> None:
    """Draw leg angles and the vertical ground force over the stride, with mean and standard deviation of people."""
    figure, panels = plt.subplots(1, 4, figsize=(14.0, 3.4), layout="constrained")
    for axes, name in zip(panels, ("hip_flexion", "knee_flexion", "ankle_flexion", "vertical"), strict=True):
        people = REFERENCES[name]
        percent = np.linspace(0.0, 100.0, len(people.mean))
        axes.plot(100 * stride.s, stride.curve(people), color="#1f4e8c", linewidth=2.0, label="predicted")
        if people.sd is None:
            axes.plot(percent, people.mean, ":", color="0.3", label=f"one adult, {people.label}")
        else:
            axes.plot(percent, people.mean, "--", color="0.45", label=f"normal gait, {people.label}")
            band = (people.mean - people.sd, people.mean + people.sd)
            axes.fill_between(percent, *band, color="0.85", zorder=0, label="standard deviation, Schwartz 2008")
        title = "vertical ground force" if name == "vertical" else name.replace("_", " ")
        axes.set(title=title, ylabel=people.unit, xlabel="% of stride", xlim=(0.0, 100.0))
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    entries = {label: line for axes in panels for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(list(entries.values()), list(entries), loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(path, dpi=80)


def main(path: Path) -> None:
    """Print the tables and draw the pictures."""
    result = walking().solve(progress=True)
    stride = Stride(result)
    print(result)
    print(stride.report())
    stride.plot(path)
    draw_curves(stride, path.with_name("walking_curves.png"))
    draw(torsor.library.human(), path=path.with_name("human.png"))
    animate(result, path.with_suffix(".gif"))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "walking.png"))
