"""The figure of a task: postures and the largest torques (matplotlib, the extra ``plot``)."""

from pathlib import Path
from typing import Any

import numpy as np

from torsor.human.body.coordinates import GLOBAL
from torsor.human.body.drawing import figure_of, landmarks, skeleton
from torsor.human.terms.samples import joint_torques
from torsor.motion import MotionResult

POSTURES, APART, TORQUES = 9, 1.1, 8  # number of postures and their distance (m), number of torques


def plot_task(result: MotionResult, path: str | Path | None = None) -> Any:
    """Return a figure of a task: postures from the right side, and torques (N m) with the wrenches of ground and seat.

    The torques are those with the largest fraction of the strength; ``path`` saves the figure.
    """
    body, torques = result.robot, joint_torques(result)
    figure = figure_of(12.0, 7.5)
    upper, lower = figure.subplots(2, 1, height_ratios=[1.3, 1.0])
    points = landmarks(body, result.at(np.linspace(0.0, result.T, POSTURES)).q)
    for k in range(POSTURES):
        skeleton(upper, {name: each[k] for name, each in points.items()}, "side", APART * k, scale=0.6)
        upper.text(APART * k, -0.15, f"{result.T * k / (POSTURES - 1):.2f} s", ha="center", fontsize=8)
    upper.axhline(0.0, color="0.4", linewidth=1.0, zorder=0)
    upper.set(aspect="equal", title=f"{result.problem.name}: {result.status}")
    upper.axis("off")
    joints = slice(len(GLOBAL), None)
    fractions = np.abs(torques[:, joints] / body.effort_limit[joints]).max(axis=0)
    for k in len(GLOBAL) + np.argsort(-fractions)[:TORQUES]:
        lower.plot(result.times, torques[:, k], label=body.coordinate_names[k].replace("_", " "))
    lower.set(xlabel="s", ylabel="N m", title="torques with ground and seat")
    lower.legend(fontsize=8, frameon=False, ncols=2)
    lower.grid(alpha=0.25)
    if path is not None:
        figure.savefig(path, dpi=110)
    return figure
